#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: NVMe over RoCEv2 between two guests, each a target and a host once, with verification
# needs: tap
# guests: 2
# vcpus: 4
# timeout: 500
# nic: --backend roce --nic-profile generic-100g --tap $TAP
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

roce_begin
mtu 9000
for server in 1 2; do
    nvme_from $server
done
quiet_kernel
barrier end
