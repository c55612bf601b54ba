#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What ./run demo runs in the guest. $PEER is the host's address on the wire, empty without a TAP.

MIB=32

title() {
    printf '\n== %s\n' "$*"
}

fail() {
    echo "FAILED: $*"
    exit 1
}

show_nic() {
    title "the PCI device, as the guest sees it"
    lspci -nn -d 1dd8:
    title "its driver, the one that Linux ships"
    ethtool -i "$NIC" | head -n 3
    title "its link"
    ethtool "$NIC" | grep -E 'Speed|Port:|Link detected'
    ip -br address show dev "$NIC"
}

same() {
    [ "$1" = "$2" ] || fail "$3: the contents differ"
    echo "$3: $MIB MiB, sha256 ${1:0:16}..., equal at both ends"
}

# The host's services: see demo/host.
transfer() {
    local digest
    head -c $((MIB << 20)) /dev/urandom >/tmp/up
    digest=$(sha256sum </tmp/up)
    same "${digest%% *}" "$(socat -t 60 STDIO "TCP:$PEER:7001" </tmp/up)" "guest to host"
    socat -u "TCP:$PEER:7002" OPEN:/tmp/down,creat
    digest=$(sha256sum </tmp/down)
    same "${digest%% *}" "$(socat -u "TCP:$PEER:7003" STDIO)" "host to guest"
}

# accepts PORT: somebody listens on it.
accepts() {
    local port
    printf -v port '%04X' "$1"
    cat /proc/net/tcp /proc/net/tcp6 | grep -q ":$port 0*:0000 0A"
}

# serve READY... -- PROGRAM...: in the background; returns when the command READY succeeds.
serve() {
    local ready=() tries
    while [ "$1" != -- ]; do ready+=("$1") && shift; done
    shift
    "$@" >/tmp/server 2>&1 &
    for ((tries = 0; tries < 200; tries++)); do
        "${ready[@]}" && return
        sleep 0.05
    done
    fail "$*: $(cat /tmp/server)"
}

# client PROGRAM...: its output is in /tmp/client.
client() {
    timeout 30 "$@" >/tmp/client 2>&1 || fail "$*: $(cat /tmp/client)"
    wait
}

# write_bw DEVICE ADDRESS COUNT: bandwidth of RDMA WRITEs of 64 KiB, in Gbit/s.
write_bw() {
    set -- ib_write_bw -d "$1" -x 1 -F -s 65536 -n "$3" --report_gbits "$2"
    serve accepts 18515 -- "${@:1:$#-1}"
    client "$@"
    awk '$1 == 65536 { print $4 }' /tmp/client
}

cm_listens() {
    rdma resource show cm_id | grep -q 'state LISTEN'
}

show_verbs() {
    local here=192.168.200.$((10 + GUEST)) nic rxe
    title "the RDMA device: ibv_devinfo"
    ibv_devinfo -d "$RDMA" || fail "ibv_devinfo"
    title "a reliable connection: ibv_rc_pingpong, from the guest through the NIC to itself"
    serve accepts 18515 -- ibv_rc_pingpong -d "$RDMA" -g 1 -e -c
    client ibv_rc_pingpong -d "$RDMA" -g 1 -e -c "$here"
    cat /tmp/client
    title "RDMA WRITE, 64 KiB: ib_write_bw on the NIC, and on Soft-RoCE in the same guest"
    # shellcheck source=/dev/null
    . rxe-up || fail "no Soft-RoCE device"
    nic=$(write_bw "$RDMA" "$here" 2000) && rxe=$(write_bw "$RXE" "$RXE_IP" 200) || exit
    echo "$RDMA: $nic Gbit/s"
    echo "$RXE: $rxe Gbit/s"
    title "the connection manager: rping"
    serve cm_listens -- rping-done -s -a "$here" -C 3
    client rping-done -c -a "$here" -C 3 -v
    grep 'ping data' /tmp/client
}

# shellcheck source=/dev/null
. nic-up || fail "the NIC did not come up"
show_nic
show_verbs
[ -n "$PEER" ] || exit 0
title "ping to the host through a TAP"
ping -c 3 -i 0.2 "$PEER" || fail "no answer"
title "TCP both ways"
transfer
