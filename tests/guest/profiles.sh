#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: each of the four profiles probes, is what it says, and moves traffic, all on one bridge
# needs: tap
# guests: 4
# vcpus: 1
# timeout: 240
# nic: --nic-profile compat --tap $TAP
# nic: --nic-profile small-vm --tap $TAP
# nic: --nic-profile generic-100g --tap $TAP
# nic: --nic-profile generic-400g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# lab: --boot-timeout 200 --mem 640
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit

# vectors, speed, port, maximum of queues, TSO: with one vCPU the driver asks for one queue
case $GUEST in
    1) set -- 32 100000 'Direct Attach Copper' off ;;
    2) set -- 7 100000 'Direct Attach Copper' off ;;
    3) set -- 49 100000 FIBRE on ;;
    4) set -- 97 400000 FIBRE on ;;
esac
lspci -vv -d 1dd8:1002 >/tmp/lspci
expect "MSI-X: Enable+ Count=$1 " /tmp/lspci
ethtool "$NIC" >/tmp/link
expect "Speed: $2Mb/s" /tmp/link
expect "Port: $3" /tmp/link
ethtool -k "$NIC" >/tmp/features
expect "tcp-segmentation-offload: $4" /tmp/features

wait_for 5 answers || fail "no answer to a ping"
download 1048576
upload 1048576
barrier ready || exit
for guest in 1 2 3 4; do
    [ "$guest" = "$GUEST" ] || wait_for 5 answers "192.168.200.$((10 + guest))" || fail "guest $guest is out of reach"
done
quiet_kernel
ok "profile $GUEST"
barrier end
