#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: the traffic of traffic.sh with checksums, TSO, scatter-gather and receive hash on
# needs: tap
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# vcpus: 4
# file: lib/lib.sh traffic.sh
# lab: --tap-mtu 1500
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
for feature in tx-checksumming tcp-segmentation-offload tx-tcp6-segmentation scatter-gather \
    rx-checksumming receive-hashing rx-vlan-offload; do
    ethtool -k "$NIC" | grep -q "$feature: on" || fail "$feature is off"
done
# shellcheck source=traffic.sh
. /lab/traffic.sh
[ "$(nic_stat tx_tso)" -gt 0 ] || fail "nothing was segmented by the device"
[ "$(nic_stat tx_csum)" -gt 0 ] || fail "no checksum was left to the device"
[ "$(nic_stat rx_csum_complete)" -gt 0 ] || fail "no checksum came from the device"
[ "$(nic_stat rx_csum_error)" -eq 0 ] || fail "the device reported wrong checksums"
