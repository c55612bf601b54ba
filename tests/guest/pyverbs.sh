#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: rdma-core's pyverbs suite passes, every case that does not apply is known, and what is posted in ERR wakes its waiter
# flavour: full
# vcpus: 4
# boot: cold
# timeout: 600
# file: lib/lib.sh lib/pyverbs-run.py lib/pyverbs-skips lib/flush-events.py
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
keep_cpus 1

echo 16 >/proc/sys/vm/nr_hugepages # one case wants a few
python3 /lab/pyverbs-run.py --list /lab/pyverbs-skips "$RDMA" || exit
python3 /lab/flush-events.py "$RDMA" || fail "no event for what was posted in ERR"
ibv_devinfo -d "$RDMA" >/tmp/info || fail "ibv_devinfo after the suite"
expect 'state:.*PORT_ACTIVE' /tmp/info
quiet_kernel
