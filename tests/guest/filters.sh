#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: unicast, multicast, all-multicast, promiscuous and a changed MAC address
# needs: tap
# nic: --tap $TAP --stats-interval-ms 50
# host: lib/peer.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"
sysctl -qw "net.ipv6.conf.$NIC.disable_ipv6=1"

received() { read -r RECEIVED <"/sys/class/net/$NIC/statistics/rx_packets"; }

# takes yes|no MAC WHAT: whether 100 frames to the address come through.
takes() {
    local before got
    sleep 0.2
    received && before=$RECEIVED
    frames 100 "${2//:/}02000000009988b5$(printf '%092d' 0)"
    sleep 0.3
    received && got=$((RECEIVED - before))
    case $1 in
        yes) [ "$got" -ge 100 ] || fail "$3: $got of 100 frames came" ;;
        no) [ "$got" -lt 50 ] || fail "$3: $got of 100 frames came" ;;
    esac
    ok "$3"
}

own=$(cat "/sys/class/net/$NIC/address")
takes yes "$own" "own address"
takes yes ff:ff:ff:ff:ff:ff "broadcast"
takes no 02:00:00:00:77:01 "somebody else's address is filtered"
takes no 01:00:5e:77:77:01 "an unknown group is filtered"

ip maddr add 01:00:5e:77:77:01 dev "$NIC"
takes yes 01:00:5e:77:77:01 "a group that was joined"
takes no 01:00:5e:77:77:02 "another group"
ip maddr del 01:00:5e:77:77:01 dev "$NIC"
takes no 01:00:5e:77:77:01 "a group that was left"

ip link set "$NIC" allmulticast on
takes yes 01:00:5e:77:77:02 "all-multicast"
takes no 02:00:00:00:77:01 "all-multicast is not promiscuous"
ip link set "$NIC" allmulticast off
takes no 01:00:5e:77:77:02 "all-multicast off"

ip link set "$NIC" promisc on
takes yes 02:00:00:00:77:01 "promiscuous"
ip link set "$NIC" promisc off
takes no 02:00:00:00:77:01 "promiscuous off"

# More groups than the device has filters: the driver falls back to taking everything.
for n in {1..200}; do
    printf -v group 01:00:5e:01:%02x:%02x $((n / 256)) $((n % 256))
    ip maddr add "$group" dev "$NIC"
done
takes yes 01:00:5e:01:00:c8 "the last of 200 groups"
for n in {1..200}; do
    printf -v group 01:00:5e:01:%02x:%02x $((n / 256)) $((n % 256))
    ip maddr del "$group" dev "$NIC"
done

ip link set "$NIC" address 02:00:00:00:55:66 || fail "the address cannot be changed"
takes yes 02:00:00:00:55:66 "a new address"
takes no "$own" "the old address"
wait_for 5 answers || fail "no answer under the new address"
quiet_kernel
