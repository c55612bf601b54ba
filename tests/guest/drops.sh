#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: frames that find no buffer, and frames that are too long, are dropped and counted
# needs: tap
# nic: --tap $TAP --stats-interval-ms 50
# host: lib/peer.py
# file: lib/lib.sh
# lab: --tap-mtu 12000
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
wait_for 5 answers || fail "no answer to a ping"
own=$(cat "/sys/class/net/$NIC/address")
header="${own//:/}02000000009988b5"

# frame BYTES: a frame of so many bytes to us
frame() { printf '%s%0*d' "$header" $((2 * ($1 - 14))) 0; }
stat_file() { cat "/sys/class/net/$NIC/statistics/$1"; }

# Too long for the port: 9198 + 18 is the longest frame.
too_long=$(nic_stat frames_rx_too_long)
bad=$(nic_stat frames_rx_bad_all)
before=$(stat_file rx_packets)
frames 100 "$(frame 9217)" # and the peer answers that it did: some more
sleep 0.3
[ $(($(nic_stat frames_rx_too_long) - too_long)) = 100 ] || fail "frames_rx_too_long: $too_long, then $(nic_stat frames_rx_too_long)"
[ $(($(nic_stat frames_rx_bad_all) - bad)) = 100 ] || fail "frames_rx_bad_all"
[ $(($(stat_file rx_packets) - before)) -lt 50 ] || fail "frames that are too long were received"
ok "too long for the port"

# Too long for the buffers, which hold MTU + 18 bytes.
missed=$(stat_file rx_missed_errors)
dropped=$(stat_file rx_dropped)
frames 20 "$(frame 4000)"
sleep 0.3
[ $(($(stat_file rx_missed_errors) - missed)) = 20 ] || fail "rx_missed_errors: $missed, then $(stat_file rx_missed_errors)"
[ $(($(stat_file rx_dropped) - dropped)) -ge 20 ] || fail "rx_dropped"
wait_for 5 answers || fail "no answer after frames that were too long"
download 1048576
ok "too long for the buffers"

# No buffer: a small ring and more frames than the guest takes in time.
ethtool -G "$NIC" rx 64 || fail "ethtool -G"
ethtool -L "$NIC" combined 1 || fail "ethtool -L"
wait_for 5 answers || fail "no answer with a small ring"
over=$(stat_file rx_over_errors)
for _ in 1 2 3 4 5; do
    frames 20000 "$(frame 60)"
    sleep 0.2
    [ "$(stat_file rx_over_errors)" = "$over" ] || break
done
[ "$(stat_file rx_over_errors)" -gt "$over" ] || fail "100000 frames into 64 buffers and none was dropped"
[ "$(nic_stat frames_rx_dropped)" -gt 0 ] || fail "frames_rx_dropped"
wait_for 5 answers || fail "no answer after an overrun"
download 1048576
ok "no buffer"
quiet_kernel
