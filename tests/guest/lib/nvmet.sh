# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# An NVMe-oF target of the kernel on a RAM disk, and its host, in one guest or two; after lib.sh.

NQN=nqn.2026-01.test:ram
# shellcheck disable=SC2034  # used by tests
NVMET=/sys/kernel/config/nvmet

# nvmet_up TRANSPORT ADDRESS MIB: a subsystem with one namespace of that size.
nvmet_up() {
    local subsystem=$NVMET/subsystems/$NQN port=$NVMET/ports/1
    modprobe -a configfs "nvmet_$1" || fail "no target for NVMe over $1"
    modprobe brd rd_nr=1 rd_size=$(($3 * 1024)) || fail "no RAM disk"
    [ -d $NVMET ] || mount -t configfs none /sys/kernel/config
    mkdir -p "$subsystem/namespaces/1" "$port"
    echo 1 >"$subsystem/attr_allow_any_host"
    echo /dev/ram0 >"$subsystem/namespaces/1/device_path"
    echo 1 >"$subsystem/namespaces/1/enable"
    echo "$1" >"$port/addr_trtype"
    echo ipv4 >"$port/addr_adrfam"
    echo "$2" >"$port/addr_traddr"
    echo 4420 >"$port/addr_trsvcid"
    ln -s "$subsystem" "$port/subsystems/" || fail "the target does not listen: $(dmesg | tail -n 3)"
}

# nvme_up TRANSPORT: what a host needs.
nvme_up() {
    modprobe "nvme_$1" || fail "no host for NVMe over $1"
    mkdir -p /etc/nvme
    cat /proc/sys/kernel/random/uuid >/etc/nvme/hostid
    echo "nqn.2014-08.org.nvmexpress:uuid:$(cat /etc/nvme/hostid)" >/etc/nvme/hostnqn
}

# nvme_connect TRANSPORT ADDRESS ARGUMENTS...: sets CONTROLLER and DISK.
nvme_connect() {
    local transport=$1 address=$2
    shift 2
    nvme connect -t "$transport" -a "$address" -s 4420 -n $NQN "$@" >/tmp/connect 2>&1 ||
        fail "nvme connect: $(cat /tmp/connect) $(dmesg | tail -n 3)"
    wait_for 10 nvme_disk || fail "no disk after connect"
}

nvme_disk() {
    CONTROLLER=$(basename "$(dirname "$(grep -l "$NQN" /sys/class/nvme/nvme*/subsysnqn)")")
    DISK=/dev/$(cd "/sys/class/nvme/$CONTROLLER" && echo nvme*n1 | sed 's/c[0-9]*n/n/')
    [ -b "$DISK" ]
}

# controller_state STATE: live, resetting, connecting ...
controller_state() {
    [ "$(<"/sys/class/nvme/$CONTROLLER/state")" = "$1" ]
}

# verify SECONDS DEPTH SIZE: random writes and reads of the disk, every block compared.
verify() {
    fio --name=verify --filename="$DISK" --direct=1 --ioengine=libaio --rw=randrw --bs="$3" \
        --iodepth="$2" --time_based --runtime="$1" --verify=crc32c --verify_fatal=1 \
        --verify_backlog=64 --randseed="$RANDOM" --output-format=json >/tmp/fio 2>&1 ||
        fail "fio: $(tail -n 20 /tmp/fio)"
    jq -r '.jobs[0] | "fio: \(.read.total_ios) reads, \(.write.total_ios) writes, error \(.error)"' /tmp/fio
    [ "$(jq '.jobs[0].error' /tmp/fio)" = 0 ] || fail "fio found an error"
}
