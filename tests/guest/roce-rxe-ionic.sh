#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: RoCEv2 between our verbs and Soft-RoCE on our Ethernet, both directions
# needs: tap
# guests: 2
# vcpus: 4
# timeout: 300
# nic: --backend roce --tap $TAP
# file: lib/lib.sh lib/pair.sh lib/roce.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/pair.sh
. /lab/pair.sh
# shellcheck source=lib/roce.sh
. /lab/roce.sh
# shellcheck source=/dev/null
. nic-up || exit
if [ "$GUEST" = 1 ]; then
    [ -n "$RDMA" ] || fail "no RDMA device"
    # shellcheck disable=SC2034  # used by roce.sh
    DEV=$NIC
else
    # With two RDMA devices on an interface the connection manager may take either.
    rmmod ionic_rdma || fail "ionic_rdma stays"
    rxe_on "$NIC"
fi
keep_cpus 1

roce_begin
roce_basics
quiet_kernel
barrier end
