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

# shellcheck source=/dev/null
. nic-up || fail "the NIC did not come up"
show_nic
[ -n "$PEER" ] || exit 0
title "ping to the host through a TAP"
ping -c 3 -i 0.2 "$PEER" || fail "no answer"
title "TCP both ways"
transfer
