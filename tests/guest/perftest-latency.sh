#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: perftest's latency programs: every operation, small to large, polling and waiting for events
# vcpus: 4
# timeout: 300
# file: lib/lib.sh lib/rdma.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

measure() {
    both "$@" -d "$RDMA" -x 1 -F
}

# by_cm PROGRAM ARGUMENTS...: connected by the connection manager.
by_cm() {
    serve cm_listens -- "$@" -d "$RDMA" -x 1 -F -R
    client "$@" -d "$RDMA" -x 1 -F -R "$IP"
}

for size in 2 65536; do
    for operation in write read send; do
        measure ib_${operation}_lat -s $size -n 20
    done
done
for operation in read send; do
    measure ib_${operation}_lat -s 64 -n 50 -e
done
measure ib_write_lat -s 8388608 -n 5
measure ib_read_lat -s 8388608 -n 5 -e
for kind in FETCH_AND_ADD CMP_AND_SWAP; do
    measure ib_atomic_lat -A $kind -n 50
done
measure ib_atomic_lat -n 50 -e
for size in 2 1024; do
    measure ib_send_lat -c UD -s $size -n 20
    measure ib_send_lat -c UD -s $size -n 20 -e
done
by_cm ib_send_lat -s 64 -n 20 -I 64
quiet_kernel
