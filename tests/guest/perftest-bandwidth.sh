#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: perftest's bandwidth programs: every operation, small to large, both ways, many queue pairs
# vcpus: 4
# timeout: 300
# file: lib/lib.sh lib/rdma.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

# measure PROGRAM ARGUMENTS...: with few iterations; perftest compares nothing, so neither do we.
measure() {
    both "$@" -d "$RDMA" -x 1 -F
}

# by_cm PROGRAM ARGUMENTS...: connected by the connection manager.
by_cm() {
    serve cm_listens -- "$@" -d "$RDMA" -x 1 -F -R
    client "$@" -d "$RDMA" -x 1 -F -R "$IP"
}

for operation in write read send; do
    measure ib_${operation}_bw -s 2 -n 500
    measure ib_${operation}_bw -s 65536 -n 100 -q 8
    measure ib_${operation}_bw -s 4096 -n 100 -b -q 2
    measure ib_${operation}_bw -s 8388608 -n 10
done
for size in 2 65536; do
    measure ib_write_bw -s $size -n 1600 -l 16
    measure ib_send_bw -s $size -n 200 -e
    measure ib_read_bw -s $size -n 200 -e
done
measure ib_write_bw -s 100 -n 1000 -I 128 -q 4
measure ib_read_bw -s 4096 -n 200 -o 15
measure ib_atomic_bw -A FETCH_AND_ADD -n 500 -q 4
measure ib_atomic_bw -A CMP_AND_SWAP -n 500 -b
measure ib_send_bw -c UD -s 2 -n 200
measure ib_send_bw -c UD -s 1024 -n 200 -b -q 4
measure ib_send_bw -c UD -s 1024 -n 200 -e
by_cm ib_write_bw -s 4096 -n 100
by_cm ib_send_bw -s 4096 -n 100
works
quiet_kernel
