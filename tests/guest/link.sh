#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: link down and up, from outside and by the driver, keeps everything; flaps under traffic
# needs: tap
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"

down_events() { ethtool -I "$NIC" | sed -n 's/.*Link Down Events: //p'; }
carrier() { [ "$(<"/sys/class/net/$NIC/carrier")" = "$1" ]; }

ctl_later '{"cmd":"link","up":false}' 2 '{"cmd":"link","up":true}'
wait_for 2 carrier 0 || fail "the link did not go down"
answers "$PEER" && fail "a ping was answered while the link was down"
wait_for 4 carrier 1 || fail "the link did not come up"
wait_for 5 answers || fail "no answer after the link came up"
download 1048576
[ "$(down_events)" = 1 ] || fail "not one link-down event"
ok "down and up by event"

# It takes four seconds at least, which is longer than the flaps do.
RATE=8M upload 33554432 &
transfer=$!
sent() { cat "/sys/class/net/$NIC/statistics/tx_bytes"; }
flapped() { [ "$(down_events)" -gt 1 ]; }
flows() { [ $(($(sent) - before)) -gt 1048576 ]; }
before=$(sent)
wait_for 20 flows || fail "no traffic"
ctl_later '{"cmd":"link","up":false}' 0.3 '{"cmd":"link","up":true}' 0.5 \
    '{"cmd":"link","up":false}' 0.1 '{"cmd":"link","up":true}' 0.1 \
    '{"cmd":"link","up":false}' 0.05 '{"cmd":"link","up":true}'
wait_for 5 flapped || fail "the link did not go down"
kill -0 "$transfer" || fail "the transfer was over before the flaps"
wait "$transfer" || fail "a transfer did not survive flaps"
wait_for 5 carrier 1 || fail "the link stayed down"
ok "flaps under traffic"

ethtool -r "$NIC" || fail "ethtool -r"
wait_for 10 answers || fail "no answer after ethtool -r"
ok "restart by the driver"

for _ in 1 2 3 4 5; do
    ip link set "$NIC" down
    ip link set "$NIC" up
done
wait_for 10 answers || fail "no answer after down and up"
download 1048576
quiet_kernel
ok "interface down and up"
