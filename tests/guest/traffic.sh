#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: ARP, ping of every size and bulk TCP both ways, with every byte compared
# needs: tap
# nic: --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# lab: --tap-mtu 1500
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit

wait_for 5 answers || fail "no answer to a ping"
ip neigh show "$PEER" dev "$NIC" | grep -q lladdr || fail "ARP did not resolve"
ok "ARP"

for size in 0 1 17 18 46 56 1000 1472 1473 4000 8000 16000 65507; do
    ping -q -c 3 -i 0.01 -W 2 -s "$size" "$PEER" >/tmp/ping || fail "ping of $size bytes: $(cat /tmp/ping)"
done
ping -q -c 3 -i 0.01 -s 1400 "$PEER6" >/tmp/ping || fail "ping over IPv6: $(cat /tmp/ping)"
ok "ping of 0 to 65507 bytes, IPv6"

for bytes in 1 1448 100000 16777216; do
    download "$bytes"
    upload "$bytes"
done
ok "TCP over IPv4, both ways"
download 4194304 "http://[$PEER6]:8000"
upload 4194304 "http://[$PEER6]:8000"
ok "TCP over IPv6, both ways"

for n in 1 2 3; do upload 4194304 & uploads="$uploads $!"; done
for n in 1 2; do download 4194304 & uploads="$uploads $!"; done
for n in $uploads; do wait "$n" || fail "one of five transfers at once"; done
ok "five transfers at once"
quiet_kernel
