#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: VLANs: tags inserted, stripped and filtered by the device, and by the stack
# needs: tap
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"
modprobe 8021q || fail "no 8021q"
mac=$(cat "/sys/class/net/$NIC/address")
to_us=${mac//:/}

# tagged VID: a frame of 60 bytes with ethertype 0x88b5 inside the VLAN
tagged() {
    printf '%s020000000099''8100%04x88b5%084d' "$to_us" "$1" 0
}

# captured COUNT: so many tagged frames have come up the stack; sends as many, as the driver turns
# promiscuous mode on some time after it was told.
captured() {
    frames "$1" "$(tagged 100)"
    sleep 0.2
    [ "$(tcpdump -Z root -n -e -r /tmp/capture 2>/dev/null | grep -c 'vlan 100')" -ge "$1" ]
}

for strip in on off; do
    ethtool -K "$NIC" rxvlan "$strip" txvlan "$strip" || fail "ethtool -K"
    ip link add link "$NIC" name v100 type vlan id 100
    ip link set v100 up
    ip addr add 192.168.100.2/24 dev v100
    # The host's kernel may have no VLANs: answer through its raw socket instead of an interface.
    sent=$(nic_stat tx_0_packets)
    arping -c 2 -w 1 -I v100 192.168.100.1 >/dev/null 2>&1
    [ "$(nic_stat tx_0_packets)" != "$sent" ] || [ "$(nic_stat frames_tx_vlan)" -gt 0 ] ||
        fail "no tagged frame left"
    # Promiscuous mode of a capture would switch the filter off.
    before=$(cat /sys/class/net/v100/statistics/rx_packets)
    frames 10 "$(tagged 100)"
    wait_for 3 sh -c "[ \$(cat /sys/class/net/v100/statistics/rx_packets) -ge $((before + 10)) ]" ||
        fail "tagged frames did not reach v100 with rxvlan $strip"
    ip link del v100
    ok "VLAN 100 with insertion and stripping $strip"
done
ethtool -K "$NIC" rxvlan on txvlan on

# The filter: VLAN 100 is gone, so the device drops its frames; without the filter they come up.
ethtool -k "$NIC" | grep -q 'rx-vlan-filter: on' || fail "no VLAN filter"
vlan_good=$(nic_stat frames_rx_vlan_good)
rx() { cat "/sys/class/net/$NIC/statistics/rx_packets"; }
wait_for 3 sh -c "sleep 1.2" # the counters of the device are a second old
before=$(rx)
frames 10 "$(tagged 100)"
sleep 1.2
[ $(($(rx) - before)) -lt 10 ] || fail "filtered frames were counted as received"
[ "$(nic_stat frames_rx_vlan_good)" -ge $((vlan_good + 10)) ] || fail "the port did not see the tagged frames"
ok "frames of a VLAN without a filter are dropped"

tcpdump -Z root -n -e -i "$NIC" -w /tmp/capture -U "ether src 02:00:00:00:00:99" 2>/tmp/tcpdump &
capture=$!
wait_for 10 grep -q 'listening on' /tmp/tcpdump || fail "tcpdump: $(cat /tmp/tcpdump)"
wait_for 10 captured 10 || fail "no tagged frames in promiscuous mode: $(tcpdump -Z root -n -e -r /tmp/capture 2>&1)"
kill "$capture"
ok "in promiscuous mode they come through, with their tag"
quiet_kernel
