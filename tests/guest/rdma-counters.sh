#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: after traffic and errors the guest's hw_counters are those of the LIF block in the stats file
# vcpus: 4
# timeout: 240
# nic: --stats-interval-ms 100
# host: lib/rdma_counters.py
# file: lib/lib.sh lib/rdma.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

flows() {
    [ "$(hw_counter tx_rdma_ucast_pkts)" -gt 5000 ]
}

moved() { # NAME: the counter has counted
    [ "$(hw_counter "$1")" -gt 0 ] || fail "$1 is 0"
}

both ib_write_bw -d "$RDMA" -x 1 -F -s 65536 -n 100
both ib_send_bw -d "$RDMA" -x 1 -F -s 64 -n 100
both ib_read_bw -d "$RDMA" -x 1 -F -s 4096 -n 100
both ibv_ud_pingpong -d "$RDMA" -g 1 -n 20 -e

# The server reads more than it has registered room for.
serve cm_listens -- rping-done -s -a "$IP" -C 1 -S 64
timeout 20 rping-done -c -a "$IP" -C 1 -S 4096 >/tmp/client 2>&1
wait "$SERVER"
moved req_tx_loc_acc_err
ok 'a local protection error'
moved req_rx_cqe_err
# Writes to a program that has been killed.
serve accepts 18515 -- ib_write_bw -d "$RDMA" -x 1 -F -n 1000000
timeout 60 ib_write_bw -d "$RDMA" -x 1 -F -n 1000000 "$IP" >/tmp/client 2>&1 &
wait_for 20 flows || fail "no writes"
kill "$SERVER"
wait
expect 'Completion with error' /tmp/client
moved req_retry_exceeded
moved req_no_destination
moved tx_rdma_ucast_bytes
ok 'a peer that is gone'

cd "/sys/class/infiniband/$RDMA/ports/1/hw_counters" || fail "no hw_counters"
grep -H . [rt]* | sed 's/^\(.*\):\(.*\)$/counter \1 \2/'
echo counters-end
if ! barrier printed 2 || ! barrier compared 2; then fail "the host found differences"; fi
quiet_kernel
