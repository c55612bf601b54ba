#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: UC queue pairs, which the stock driver and provider refuse and changed ones allow
# flavour: full
# vcpus: 4
# boot: cold
# timeout: 300
# lab: --uc
# file: lib/lib.sh lib/rdma.sh lib/pyverbs-run.py lib/pyverbs-skips
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

both ibv_uc_pingpong -d "$RDMA" -g 1 -n 500 -c
both ibv_uc_pingpong -d "$RDMA" -g 1 -n 500 -e -c
both ibv_uc_pingpong -d "$RDMA" -g 0 -n 100 -s 65536 -m 1024 -c
for size in 2 4096 1048576; do
    both ib_send_bw -d "$RDMA" -x 1 -F -c UC -s "$size" -n 500
    both ib_write_bw -d "$RDMA" -x 1 -F -c UC -s "$size" -n 500
done
both ib_send_bw -d "$RDMA" -x 1 -F -c UC -s 65536 -n 500 -b -q 4
both ib_send_lat -d "$RDMA" -x 1 -F -c UC -s 64 -n 200 -e
both ib_write_lat -d "$RDMA" -x 1 -F -c UC -s 64 -n 200
# What is of the other types works as ever with the changed driver.
both ibv_rc_pingpong -d "$RDMA" -g 1 -n 100 -c
both ibv_ud_pingpong -d "$RDMA" -g 1 -n 100
# The suite's cases for UC apply now.
sed '/^\[UC:/,/^$/d' /lab/pyverbs-skips >/tmp/skips
python3 /lab/pyverbs-run.py --list /tmp/skips "$RDMA" '*_uc_*' || exit
quiet_kernel
