#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What ./run demo mesh runs in its two guests.
# shellcheck source=demo/pair.sh
. /lab/pair.sh
# shellcheck source=/dev/null
. nic-up || fail "the NIC did not come up"
[ -n "$RDMA" ] || fail "no RDMA device"

show_self "guest $GUEST: $RDMA on $NIC, $HERE, driver $(ethtool -i "$NIC" | sed -n 's/^driver: //p')"
show_ping
show_bw 65536 1000 1
show_bw 1048576 100 1
show_rping
barrier the-end
