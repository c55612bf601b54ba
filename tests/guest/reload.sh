#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: 50 driver reloads and function resets under traffic leave no warning and a working NIC
# needs: tap
# timeout: 400
# nic: --nic-profile generic-100g --nic-profile $HERE/lib/salina.ini --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# The driver's doorbell work-around (ASIC none or elba) outlives its work queue in a function reset:
# Linux 7.2 warns then in __queue_work. So the NIC is one that needs no work-around.
# And a reset that cancels the driver's pending link check leaves its request bit set, so that no
# check follows and the queues stay off: the next reset waits until traffic flows again.
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"
pci=$(basename "$(readlink -f "/sys/class/net/$NIC/device")")

# The host sends as fast as it can, whatever state the NIC is in; so does the guest when it can.
curl -sS --data "ping -f -s 1000 -b 192.168.200.255 >/dev/null 2>&1 & ping -f 192.168.200.11 >/dev/null 2>&1 & echo" \
    "$PEER_URL/run" >/dev/null
(while :; do ping -q -f -c 1000 -s 1400 "$PEER" >/dev/null 2>&1 || sleep 0.05; done) &
noise=$!
trap 'kill $noise' EXIT

for round in $(seq 1 25); do
    rmmod ionic || fail "round $round: rmmod"
    modprobe ionic || fail "round $round: modprobe"
    # shellcheck source=/dev/null
    . nic-up || fail "round $round: no NIC after a reload"
    [ $((round % 5)) != 0 ] || { wait_for 10 answers || fail "round $round: no answer after a reload"; }
done
ok "25 reloads under traffic"
for round in $(seq 1 25); do
    echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "round $round: the function did not reset"
    wait_for 10 answers || fail "round $round: no answer after a reset"
done
ok "25 function resets under traffic"
kill $noise
trap - EXIT
curl -sS --max-time 20 --data "pkill ping; true" "$PEER_URL/run"
wait_for 10 answers || fail "no answer"
download 4194304
upload 4194304
quiet_kernel
