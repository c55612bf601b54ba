#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: ip -s link, ethtool -S and the stats file agree within one interval
# needs: tap
# nic: --tap $TAP --stats-interval-ms 100
# host: lib/peer.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"
ping -q -c 50 -i 0.01 -s 1472 "$PEER" >/dev/null || fail "ping"
ping -q -c 20 -i 0.01 -s 100 -b 192.168.200.255 >/dev/null 2>&1
download 1048576
upload 1048576
sysctl -qw "net.ipv6.conf.$NIC.disable_ipv6=1"
ip neigh replace "$PEER" lladdr "$(ip neigh show "$PEER" dev "$NIC" | grep -o '..:..:..:..:..:..')" nud permanent dev "$NIC"
sleep 0.5

# Reading the stats file moves counters itself, so it is fetched once, and what the guest has to say
# is taken before and after: the file must lie between.
sums() { # rx_packets rx_bytes tx_packets tx_bytes as the driver derives them
    sleep 0.3
    for name in rx_packets rx_bytes tx_packets tx_bytes; do cat "/sys/class/net/$NIC/statistics/$name"; done
}
sums >/tmp/before
http GET "$PEER_URL/stats/1" || fail "no stats file"
echo "$ANSWER" >/tmp/stats
sums >/tmp/after

value() { sed -n "s/^$1 *: *//p" /tmp/stats | head -n 1; }
of() { echo $(($(value "$1_ucast_$2") + $(value "$1_mcast_$2") + $(value "$1_bcast_$2"))); }
line=0
for name in rx_packets rx_bytes tx_packets tx_bytes; do
    line=$((line + 1))
    low=$(sed -n ${line}p /tmp/before)
    high=$(sed -n ${line}p /tmp/after)
    file=$(of "${name%_*}" "${name#*_}")
    echo "$name: guest $low .. $high, stats file $file"
    [ "$file" -ge "$low" ] || fail "$name: the stats file is behind"
    [ "$file" -le "$high" ] || fail "$name: the stats file is ahead"
done

[ "$(value frames_rx_1024b_1518b)" -ge 50 ] || fail "ping -s 1472 does not show in frames_rx_1024b_1518b"
[ "$(value frames_tx_1024b_1518b)" -ge 50 ] || fail "ping -s 1472 does not show in frames_tx_1024b_1518b"
[ "$(value frames_rx_64b)" -gt 0 ] || fail "no 64-byte frame"
[ "$(value frames_rx_less_than_64b)" = 0 ] || fail "a frame below 64 bytes"
[ "$(value tx_bcast_packets)" -ge 20 ] || fail "broadcasts: $(value tx_bcast_packets)"
for section in Instance Device 'LIF Statistics' 'Port Statistics'; do
    grep -q "$section" /tmp/stats || fail "no section $section"
done
ethtool -S "$NIC" >/tmp/ethtool
for name in frames_rx_ok octets_tx_ok frames_rx_pri_0 hw_rx_dropped; do expect "$name:" /tmp/ethtool; done
quiet_kernel
