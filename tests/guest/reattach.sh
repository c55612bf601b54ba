#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: QEMU is killed under traffic, three times, and a new guest gets the same server each time
# needs: tap
# boots: 4
# timeout: 200
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/reattach.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
sent() { cat "/sys/class/net/$NIC/statistics/tx_bytes"; }
flows() { [ $(($(sent) - before)) -gt 8388608 ]; }

wait_for 10 answers || fail "boot $BOOT: no answer to a ping"
download 2097152
upload 2097152
quiet_kernel
ok "boot $BOOT"
if [ "$BOOT" -lt 4 ]; then
    ping -f -s 1400 "$PEER" >/dev/null &
    make_data 2097152 /tmp/data
    before=$(sent)
    (while :; do curl -gsS -T /tmp/data "$PEER_URL/sum"; done) >/dev/null &
    wait_for 20 flows || fail "no traffic"
    curl -sS "$PEER_URL/kill" # and that was the end of this guest
    sleep 60
    fail "QEMU was not killed"
fi
