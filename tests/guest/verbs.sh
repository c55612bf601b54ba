#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: verbs in one guest: what the device says of itself, and pingpongs over all of its GIDs
# vcpus: 4
# timeout: 240
# file: lib/lib.sh lib/rdma.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

ibv_devinfo -v -d "$RDMA" >/tmp/info || fail "ibv_devinfo"
for line in 'vendor_id:.*0x1dd8' 'state:.*PORT_ACTIVE' 'max_qp:.*32768$' 'max_cq:.*65536$' \
    'max_mr:.*131072$' 'max_sge:.*8$' 'max_qp_rd_atom:.*16$' 'atomic_cap:.*ATOMIC_GLOB' \
    'MEM_WINDOW_TYPE_2B' 'MEM_MGT_EXTENSIONS' 'link_layer:.*Ethernet' 'GID\[.*RoCE v2'; do
    expect "$line" /tmp/info
done
gids=$(grep -c 'GID\[' /tmp/info)
[ "$gids" -ge 3 ] || fail "$gids GIDs: there should be link-local, IPv4 and IPv6"
ok "ibv_devinfo: $gids GIDs"

for ((gid = 0; gid < gids; gid++)); do
    for events in "" -e; do
        both ibv_rc_pingpong -d "$RDMA" -g $gid -n 50 $events
        both ibv_ud_pingpong -d "$RDMA" -g $gid -n 50 $events
    done
done

both ibv_rc_pingpong -d "$RDMA" -g 1 -n 20 -s 1048576 -r 10 -e -c
both ibv_rc_pingpong -d "$RDMA" -g 1 -n 20 -s 1 -m 256 -e -c
ip link set "$NIC" mtu 9000
wait_for 5 sh -c "ibv_devinfo -d $RDMA | grep -q 'active_mtu:.*4096'" || fail "no MTU of 4096"
both ibv_rc_pingpong -d "$RDMA" -g 1 -n 50 -m 4096 -e -c
both ibv_ud_pingpong -d "$RDMA" -g 1 -n 50 -s 4096 -e -c

# The device has no shared receive queues: that is said, not suffered.
ibv_srq_pingpong -d "$RDMA" -g 1 >/tmp/srq 2>&1 && fail "a shared receive queue"
expect "Couldn't create SRQ" /tmp/srq
ok "shared receive queues are refused"
quiet_kernel
