#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: RoCEv2 between our NIC and a Soft-RoCE guest on virtio-net, both directions
# needs: tap
# guests: 2
# vcpus: 4
# timeout: 800
# nic: --backend roce --nic-profile generic-100g --tap $TAP
# lab: --virtio-tap virt%n
# host: lib/roce_bridge.sh
# file: lib/lib.sh lib/pair.sh lib/roce.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
if [ "$GUEST" = 1 ]; then
    # shellcheck source=/dev/null
    . nic-up || exit
    [ -n "$RDMA" ] || fail "no RDMA device"
    DEV=$NIC
else
    # shellcheck source=/dev/null
    . virtio-up || exit
    DEV=$VNIC RDMA=rxe0
    ip addr flush dev "$DEV"
    ip addr add 192.168.200.12/24 dev "$DEV"
    echo 0 >"/proc/sys/net/ipv6/conf/$DEV/accept_dad"
    ip link set "$DEV" down && ip link set "$DEV" mtu 1500 up
    modprobe -a rdma_rxe ib_uverbs rdma_ucm || fail "no rdma_rxe"
    rdma link add rxe0 type rxe netdev "$DEV" || fail "no rxe link"
fi
# shellcheck source=lib/pair.sh
. /lab/pair.sh
# shellcheck source=lib/roce.sh
. /lab/roce.sh

roce_begin
roce_all
roce_vlan
quiet_kernel
barrier end
