#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: the driver recovers from a stopped and a restarted firmware and a stalled heartbeat
# needs: tap
# timeout: 240
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# tolerates: the driver reports firmware that stops as errors, which is right
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"

# said SECONDS TEXT: the kernel says so within that time, since the last `mark`.
exec {KERNEL}< <(exec cat /dev/kmsg)
mark() { while read -rt 0.1 -u "$KERNEL"; do :; done; }
said() {
    local end=$((SECONDS + $1)) line
    while [ $SECONDS -le $end ]; do
        line=
        read -rt $((end - SECONDS + 1)) -u "$KERNEL" line || [ $? -gt 128 ] || fail "no kernel log"
        [[ $line != *"$2"* ]] || return 0
    done
    return 1
}

mark
ctl_later '{"cmd":"fw","action":"stop"}' 7 '{"cmd":"fw","action":"start"}'
said 15 'FW stopped' || fail "the driver did not see the firmware stop"
said 20 'FW running' || fail "the driver did not see the firmware run again"
wait_for 20 answers || fail "no answer after a stop and a start"
download 1048576
ok "stop and start"

mark
ctl_later '{"cmd":"fw","action":"restart"}'
said 20 'FW running' || fail "the driver did not recover from a restart"
wait_for 20 answers || fail "no answer after a restart"
upload 1048576
ok "restart in one step"

mark
ctl_later '{"cmd":"fw","action":"reset-event"}'
said 25 'FW running' || fail "the driver did not recover from a reset event"
wait_for 20 answers || fail "no answer after a reset event"
ok "reset event"

# Traffic goes on, so the peer can be told. The driver looks every ten seconds.
mark
ctl '{"cmd":"fw","action":"stall"}' >/dev/null
said 40 'FW heartbeat stalled' || fail "the driver did not see the heartbeat stall"
answers "$PEER" || fail "a stalled heartbeat stopped traffic"
ctl '{"cmd":"fw","action":"unstall"}' >/dev/null
said 40 'FW heartbeat restored' || fail "the driver did not see the heartbeat again"
ip link set "$NIC" mtu 4000 || fail "no admin command works after the heartbeat came back"
wait_for 10 answers || fail "no answer after a heartbeat stall"
download 1048576
ok "heartbeat stall"

# Only what belongs to it may have been said.
dmesg -r | grep -E '^<[0-9]*[01234]>' | grep -E 'WARNING|BUG|Oops|hung task' && fail "the kernel warned"
true
