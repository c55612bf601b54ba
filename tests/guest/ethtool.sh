#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: every view and knob of ethtool that the driver offers
# needs: tap
# vcpus: 4
# timeout: 180
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"

# view FLAG PATTERN...: ethtool FLAG works and says all that.
view() {
    local flag=$1
    shift
    ethtool "$flag" "$NIC" >/tmp/view 2>&1 || fail "ethtool $flag: $(cat /tmp/view)"
    for pattern in "$@"; do expect "$pattern" /tmp/view; done
    ok "ethtool $flag"
}

# set_to WHAT: ethtool WHAT works and traffic goes on.
set_to() {
    ethtool "$@" >/tmp/set 2>&1 || fail "ethtool $*: $(cat /tmp/set)"
    wait_for 10 answers || fail "no answer after ethtool $*"
}

view -i 'driver: ionic' 'firmware-version: rocm-ernic' 'bus-info: 0000:'
view -k 'rx-checksumming: on' 'tx-checksumming: on' 'receive-hashing: on'
view -l 'Combined:'
view -g 'RX:' 'TX:'
view -c 'rx-usecs:'
view -x 'RX flow hash indirection table' 'RSS hash key:'
view -S 'frames_rx_ok:' 'tx_0_pkts:'
view -d 'Offset'
view -a 'Pause parameters'
view -T 'Time stamping'
view --show-fec 'FEC'
ethtool -m "$NIC" >/tmp/view 2>&1 || fail "ethtool -m: $(cat /tmp/view)"
expect 'Identifier' /tmp/view
expect 'Vendor name' /tmp/view
ok "ethtool -m"

set_to -L "$NIC" combined 2
view -l 'Combined:.*2'
set_to -L "$NIC" combined 0 rx 2 tx 2
download 1048576
upload 1048576
set_to -L "$NIC" combined 4 rx 0 tx 0
ok "channels, split and combined"

for entries in 64 256 8192 1024; do
    set_to -G "$NIC" rx "$entries" tx "$entries"
    download 262144
done
ethtool -G "$NIC" rx 100 2>/dev/null && ! ethtool -g "$NIC" | grep -q 'RX:.*\(64\|128\|1024\)' &&
    fail "a ring of 100 entries"
ok "rings"

set_to -C "$NIC" rx-usecs 100
view -c 'rx-usecs:.*10[0-2]\|rx-usecs:.*99'
ethtool -C "$NIC" rx-usecs 100000 2>/dev/null && fail "a coalescing time beyond the device's"
ok "coalescing"

# The table: all of it on queue 2, and that is where frames go.
set_to -X "$NIC" weight 0 0 1 0
counted() { nic_stat "rx_$1_pkts"; }
before=$(counted 2)
others=$(($(counted 0) + $(counted 1) + $(counted 3)))
download 1048576
[ $(($(counted 2) - before)) -gt 100 ] || fail "queue 2 got nothing"
[ $(($(counted 0) + $(counted 1) + $(counted 3) - others)) -lt 20 ] || fail "other queues got frames"
set_to -X "$NIC" hkey "$(printf '%02x:' $(seq 1 39))28"
view -x '01:02:03:04:05'
set_to -X "$NIC" equal 4
ok "receive hash: table and key"

set_to -A "$NIC" rx on tx on
view -a 'RX:.*on' 'TX:.*on'
set_to -A "$NIC" rx off tx off
ethtool -s "$NIC" speed 100000 2>/dev/null || true
set_to --set-fec "$NIC" encoding off
set_to --set-fec "$NIC" encoding rs
set_to -r "$NIC"
ok "pause, FEC, renegotiation"

# Offloads change under traffic, and no byte suffers.
(while :; do
    download 1048576 || exit 1
    upload 1048576 || exit 1
    [ ! -e /tmp/enough ] || exit 0
done) &
traffic=$!
for feature in tx rx tso sg rxhash rxvlan txvlan rx-vlan-filter gro gso tx-tcp6-segmentation; do
    ethtool -K "$NIC" "$feature" off || fail "ethtool -K $feature off"
    sleep 0.2
    ethtool -K "$NIC" "$feature" on || fail "ethtool -K $feature on"
done
for feature in tx rx tso rxhash; do ethtool -K "$NIC" "$feature" off; done
sleep 0.5
for feature in tx sg tso tx-tcp6-segmentation rx rxhash; do ethtool -K "$NIC" "$feature" on; done
touch /tmp/enough
wait "$traffic" || fail "traffic suffered from changed offloads"
ok "offloads toggled under traffic"

[ "$(nic_stat rx_csum_error)" -eq 0 ] || fail "the device reported wrong checksums"
quiet_kernel
