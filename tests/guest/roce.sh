#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: RoCEv2 between two of our NICs over a bridge: pingpongs, rping, perftest, both directions
# needs: tap
# guests: 2
# vcpus: 4
# timeout: 800
# nic: --backend roce --nic-profile generic-100g --tap $TAP
# file: lib/lib.sh lib/pair.sh lib/roce.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
# shellcheck disable=SC2034  # used by roce.sh
DEV=$NIC
# shellcheck source=lib/pair.sh
. /lab/pair.sh
# shellcheck source=lib/roce.sh
. /lab/roce.sh

roce_begin
roce_all
roce_vlan
quiet_kernel
barrier end
