#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: RoCEv2 between two guests on a wire that loses, doubles, damages and reorders: data is right
# needs: tap
# guests: 2
# vcpus: 4
# timeout: 500
# nic: --backend roce --tap $TAP --fault loss=0.5%,reorder=0.5%,dup=0.5%,corrupt=0.2%,delay=200us,jitter=100us,seed=42
# file: lib/lib.sh lib/pair.sh lib/roce.sh lib/roce_nvme.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
keep_cpus 1
# shellcheck disable=SC2034  # used by roce.sh
DEV=$NIC
# shellcheck source=lib/pair.sh
. /lab/pair.sh
# shellcheck source=lib/roce.sh
. /lab/roce.sh
# shellcheck source=lib/roce_nvme.sh
. /lab/roce_nvme.sh

# Only programs that agree on their end by other means: where one end leaves as soon as it has its
# own answers, a lost acknowledgement costs the other its last request, on any network.
roce_begin
perf ib_write_bw -s 65536 -n 50 -m 1024
perf ib_read_bw -s 65536 -n 50 -m 1024
perf ib_send_bw -s 65536 -n 50 -m 1024
perf ib_atomic_bw -A FETCH_AND_ADD -n 200 -m 1024
# shellcheck disable=SC2034  # used by roce_nvme.sh
NVME_SIZES=(4k 64k)
nvme_from 1
quiet_kernel
barrier end
