# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# NVMe over RDMA between two guests; sourced as /lab/roce_nvme.sh, after roce.sh.

NVME_SIZES=(4k 64k 1M)

# nvme_target: a RAM disk at our address.
nvme_target() {
    local nvmet=/sys/kernel/config/nvmet
    modprobe brd rd_nr=1 rd_size=131072 || fail "no brd"
    modprobe -a configfs nvmet nvmet_rdma || fail "no target"
    mount -t configfs configfs /sys/kernel/config 2>/dev/null
    mkdir -p $nvmet/subsystems/test/namespaces/1 $nvmet/ports/1 || fail "no subsystem"
    echo 1 >$nvmet/subsystems/test/attr_allow_any_host
    echo /dev/ram0 >$nvmet/subsystems/test/namespaces/1/device_path
    echo 1 >$nvmet/subsystems/test/namespaces/1/enable
    echo rdma >$nvmet/ports/1/addr_trtype
    echo ipv4 >$nvmet/ports/1/addr_adrfam
    echo "$ME" >$nvmet/ports/1/addr_traddr
    echo 4420 >$nvmet/ports/1/addr_trsvcid
    ln -s $nvmet/subsystems/test $nvmet/ports/1/subsystems/test || fail "the port does not open"
}

# nvme_host: connects, writes, reads back, disconnects.
nvme_host() {
    local size want
    modprobe nvme_rdma || fail "no nvme_rdma"
    mkdir -p /etc/nvme
    [ -e /etc/nvme/hostnqn ] || nvme gen-hostnqn >/etc/nvme/hostnqn
    [ -e /etc/nvme/hostid ] || cat /proc/sys/kernel/random/uuid >/etc/nvme/hostid
    nvme connect -t rdma -a "$OTHER" -s 4420 -n test -i 2 || fail "nvme connect"
    wait_for 10 test -b /dev/nvme0n1 || fail "no namespace"
    make_data 67108864 /tmp/data
    for size in "${NVME_SIZES[@]}"; do
        dd if=/tmp/data of=/dev/nvme0n1 bs="$size" oflag=direct count=64 2>/tmp/dd || fail "write $size"
        dd if=/dev/nvme0n1 of=/tmp/back bs="$size" iflag=direct count=64 2>/tmp/dd || fail "read $size"
        want=$(dd if=/tmp/data bs="$size" count=64 2>/dev/null | sha256sum) # cmp takes longer
        [ "$(sha256sum </tmp/back)" = "$want" ] || fail "$size differs"
        ok "64 blocks of $size, written and read back"
    done
    nvme disconnect -n test >/dev/null || fail "nvme disconnect"
}

# nvme_from SERVER: one guest is the target, the other the host.
nvme_from() {
    [ "$GUEST" != "$1" ] || nvme_target
    barrier "target-$1" || exit
    [ "$GUEST" = "$1" ] || nvme_host
    barrier "host-$1" || exit
}
