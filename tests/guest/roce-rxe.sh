#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: RoCEv2 between our NIC and a Soft-RoCE guest on virtio-net, both directions
# needs: tap
# guests: 2
# vcpus: 4
# boot: cold
# timeout: 800
# nic: --backend roce --nic-profile generic-100g --tap $TAP
# lab: --virtio-tap virt%n
# host: lib/roce_bridge.sh
# file: lib/lib.sh lib/pair.sh lib/roce.sh lib/roce_nvme.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/pair.sh
. /lab/pair.sh
# shellcheck source=lib/roce.sh
. /lab/roce.sh
# shellcheck source=lib/roce_nvme.sh
. /lab/roce_nvme.sh
if [ "$GUEST" = 1 ]; then
    # shellcheck source=/dev/null
    . nic-up || exit
    [ -n "$RDMA" ] || fail "no RDMA device"
    # shellcheck disable=SC2034  # used by roce.sh
    DEV=$NIC
else
    # shellcheck source=/dev/null
    . virtio-up || exit
    ip addr flush dev "$VNIC"
    echo 0 >"/proc/sys/net/ipv6/conf/$VNIC/accept_dad"
    ip link set "$VNIC" down && ip link set "$VNIC" up
    rxe_on "$VNIC"
fi
keep_cpus 1

roce_begin
roce_all
for server in 1 2; do
    nvme_from $server
done
roce_vlan
quiet_kernel
barrier end
