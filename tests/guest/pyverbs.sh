#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: rdma-core's pyverbs suite passes, and every case that does not apply is known, and why
# flavour: full
# vcpus: 4
# timeout: 600
# file: lib/lib.sh lib/pyverbs-run.py lib/pyverbs-skips
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"

echo 16 >/proc/sys/vm/nr_hugepages # one case wants a few
python3 /lab/pyverbs-run.py --list /lab/pyverbs-skips "$RDMA" || exit
ibv_devinfo -d "$RDMA" >/tmp/info || fail "ibv_devinfo after the suite"
expect 'state:.*PORT_ACTIVE' /tmp/info
quiet_kernel
