#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: SIGKILL of a mesh's manager, of a guest's server, of a QEMU: the rest goes on, the killed come back
# guests: 2
# vcpus: 4
# boots: 2
# timeout: 400
# nic: --backend tcp:worker:127.0.0.1:17477
# host: lib/mesh_kill.py
# file: lib/lib.sh lib/pair.sh
# lab: --allow-server-exit
# tolerates: the driver reports a NIC whose server is gone as errors, which is right
# shellcheck source=lib/lib.sh
. /lab/lib.sh
[ "$BOOT" != 1 ] || barrier manager 3 || exit
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
keep_cpus 1
# shellcheck source=lib/pair.sh
. /lab/pair.sh

# meet NAME [COUNT]: with the host too.
meet() {
    barrier "$1" "${2:-3}" || exit
}

# works PHASE [GID]: verbs both ways, in a phase that both guests have come to.
works() {
    STEP=$1 # a guest that has booted again has lost count
    barrier "works-$1" || exit
    wait_for 30 answers "$OTHER" || fail "no answer to a ping"
    each ibv_rc_pingpong -d "$RDMA" -g "${2:-$GID4}" -n 100 -e -c
}

# The GID of an address that the first manager never heard of.
new_gid() {
    local found
    found=$(grep -l 'ffff:c0a8:c9' "/sys/class/infiniband/$RDMA/ports/1/gids/"*) && basename "${found%%$'\n'*}"
}

sent() {
    cat "/sys/class/infiniband/$RDMA/ports/1/hw_counters/tx_rdma_ucast_pkts"
}

flows() {
    [ $(($(sent) - before)) -gt 500 ]
}

# The other guest is written to until there is nobody any more.
write_begin() { # SERVER
    if [ "$GUEST" = "$1" ]; then
        ib_write_bw -d "$RDMA" -x "$GID4" -F -n 100000000 </dev/null >/tmp/write 2>&1 &
        wait_for 20 accepts 18515 || fail "ib_write_bw does not listen: $(cat /tmp/write)"
    fi
    barrier "write-$1" || exit
    [ "$GUEST" != "$1" ] || return
    before=$(sent)
    timeout 120 ib_write_bw -d "$RDMA" -x "$GID4" -F -n 100000000 "$OTHER" </dev/null >/tmp/write 2>&1 &
    WRITER=$!
    wait_for 30 flows || fail "no writes: $(cat /tmp/write)"
}

write_failed() {
    wait_for 30 grep -q 'Completion with error' /tmp/write || fail "writes to nobody: $(cat /tmp/write)"
    expect 'Failed status 12' /tmp/write # retry exceeded
    kill "$WRITER" 2>/dev/null
    wait "$WRITER"
    ok "writes to nobody have ended: retry exceeded"
}

# The driver has noticed that there is nothing behind its registers.
device_gone() {
    [ ! -e "/sys/class/infiniband/$RDMA" ] && dmesg | grep -q 'FW Down: LIFs stopped'
}

case $GUEST$BOOT in
    11 | 21)
        works 100
        meet kill-manager
        meet manager-killed
        works 200
        ok "without a manager"
        meet start-manager
        meet manager-started
        ip addr add "192.168.201.$((10 + GUEST))/24" dev "$NIC"
        wait_for 10 new_gid || fail "no GID of the new address"
        works 300 "$(new_gid)"
        ;;
esac
case $GUEST$BOOT in
    11)
        write_begin 2
        meet kill-server
        meet server-killed
        write_failed
        meet start-server
        meet server-started
        works 400
        ok "with a new server and guest"
        write_begin 1
        meet kill-qemu # no more is heard of this boot
        sleep 60
        fail "QEMU was not killed"
        ;;
    21)
        write_begin 2
        meet kill-server
        meet server-killed
        wait_for 60 device_gone || fail "the driver did not notice that the server is gone"
        ok "the device is gone"
        meet start-server
        meet server-started
        ;;
    22)
        works 400
        write_begin 1
        meet kill-qemu
        meet qemu-killed 2
        write_failed
        ;;
esac
case $GUEST$BOOT in
    12 | 22)
        works 500
        ok "with a new guest on the old server"
        meet end
        ;;
esac
