#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What ./run demo roce runs in its two guests: guest 1 has the NIC, guest 2 has Soft-RoCE on
# virtio-net.
# shellcheck source=demo/pair.sh
. /lab/pair.sh

soft_roce() {
    # shellcheck source=/dev/null
    . virtio-up || fail "no virtio-net device"
    NIC=$VNIC RDMA=rxe0
    ip addr flush dev "$NIC"
    ip addr add "$HERE/24" dev "$NIC"
    modprobe -a rdma_rxe ib_uverbs rdma_ucm || fail "no rdma_rxe"
    rdma link add $RDMA type rxe netdev "$NIC" || fail "no Soft-RoCE device"
}

# The index of the GID that is our IPv4 address.
gid_index() {
    local file
    for file in "/sys/class/infiniband/$RDMA/ports/1/gids/"*; do
        if grep -q 'ffff:c0a8' "$file" 2>/dev/null; then
            echo "${file##*/}"
            return
        fi
    done
}

if [ "$GUEST" = 1 ]; then
    # shellcheck source=/dev/null
    . nic-up || fail "the NIC did not come up"
    [ -n "$RDMA" ] || fail "no RDMA device"
else
    soft_roce
fi
ip link set "$NIC" mtu 9000 || fail "MTU 9000"
until_ok 10 test -n "$(gid_index)" || fail "no GID for $HERE"

show_self "guest $GUEST: $RDMA on $NIC, $HERE, driver $(ethtool -i "$NIC" | sed -n 's/^driver: //p')"
show_ping
show_bw 65536 200 "$(gid_index)" -m 4096
show_rping
barrier the-end
