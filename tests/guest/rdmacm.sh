#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: the connection manager with both ends on the NIC: the programs of rdmacm-utils
# vcpus: 4
# timeout: 240
# file: lib/lib.sh lib/rdma.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

for address in "$IP" "$IP6"; do
    serve cm_listens -- rping-done -s -a "$address" -C 10 -S 4096
    client rping-done -c -a "$address" -C 10 -V -S 4096
done
serve cm_listens -- rping -s -a "$IP" -C 100 -P
LIMIT=20
for round in 1 2 3 4; do
    rping-done -c -a "$IP" -C 100 -V >/tmp/rping.$round 2>&1 &
    clients="${clients:-} $!"
done
for pid in $clients; do wait "$pid" || fail "rping, one of four: $(tail -n 5 /tmp/rping.*)"; done
kill "$SERVER"
ok "four rpings at a time"

serve cm_listens -- ucmatose -c 10 -C 20
client ucmatose -s "$IP" -c 10 -C 20
serve cm_listens -- ucmatose -b "$IP6" -c 2 -C 20 -S 65536
client ucmatose -s "$IP6" -c 2 -C 20 -S 65536
serve cm_listens -- udaddy -c 4 -C 20
client udaddy -s "$IP" -c 4 -C 20
serve cm_listens -- udaddy -b "$IP6"
client udaddy -s "$IP6"
serve cm_listens -- rdma_server
client rdma_client -s "$IP"
for program in rstream riostream; do
    serve cm_listens -- $program -T v -C 10 -I 5 -S 65536
    client $program -s "$IP" -T v -C 10 -I 5 -S 65536
done
# The ends invent queue pair numbers for their second part; on one node they must not be the same.
serve accepts 7471 -- cmtime -L -b "$IP" -C "$IP" -P 2 -c 10 -q 70000
client cmtime -b "$IP" -C "$IP" -P 2 -c 10 -q 80000

# A port that nobody listens on is refused at once.
rping -c -a "$IP" -p 9999 -C 1 >/tmp/refused 2>&1 && fail "a connection to nobody"
expect 'REJECTED' /tmp/refused
ok "a port without a listener refuses"
works
quiet_kernel
