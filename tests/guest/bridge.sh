#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: two guests on one bridge ping each other and move bytes both ways at once
# needs: tap
# guests: 2
# timeout: 180
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
other=192.168.200.$((13 - GUEST))

mkdir /tmp/www
make_data 16777216 /tmp/www/blob
sha256sum </tmp/www/blob >/tmp/www/sum
busybox httpd -p 80 -h /tmp/www
barrier up || exit

wait_for 10 answers "$other" || fail "no answer from the other guest"
ping -q -c 20 -i 0.01 -s 1472 "$other" >/tmp/ping || fail "pings were lost: $(cat /tmp/ping)"
ok "ping"

want=$(curl -sS --max-time 10 "http://$other/sum") || fail "no connection to the other guest"
got=$(curl -sS --max-time 60 "http://$other/blob" | sha256sum)
[ "$want" = "$got" ] || fail "16 MiB of the other guest arrived damaged"
ok "16 MiB from the other guest, which fetched as many from here"
download 4194304
quiet_kernel
barrier end
