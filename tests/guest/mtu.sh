#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: MTU 1500, 9000 and the profile's limit, one more is refused; ping and TCP in each
# needs: tap
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# lab: --tap-mtu 9300
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit

limit=$(ip -d link show "$NIC" | grep -o 'maxmtu [0-9]*' | cut -d' ' -f2)
[ "$limit" = 9198 ] || fail "the driver's limit is $limit"
ip link set "$NIC" mtu $((limit + 1)) 2>/dev/null && fail "an MTU above the limit was accepted"
for mtu in 1500 9000 "$limit" 68 576 1500; do
    ip link set "$NIC" mtu "$mtu" || fail "MTU $mtu was refused"
    wait_for 10 answers || fail "no answer at MTU $mtu"
    ping -q -c 5 -i 0.01 -M 'do' -s $((mtu - 28)) "$PEER" >/tmp/ping || fail "MTU $mtu: $(cat /tmp/ping)"
    if [ "$mtu" -ge 576 ]; then
        download 2097152
        upload 2097152
    fi
    ok "MTU $mtu"
done
quiet_kernel
