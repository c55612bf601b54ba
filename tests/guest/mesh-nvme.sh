#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: NVMe over the mesh between two guests, each the target and the host once, with verified fio
# guests: 2
# vcpus: 4
# timeout: 300
# nic: --backend tcp:manager:17475
# nic: --backend tcp:worker:127.0.0.1:17475
# file: lib/lib.sh lib/pair.sh lib/nvmet.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/pair.sh
. /lab/pair.sh
# shellcheck source=lib/nvmet.sh
. /lab/nvmet.sh

# One guest is the host: connects, writes, reads back, disconnects.
be_host() {
    nvme_up rdma
    nvme_connect rdma "$OTHER" -i 2 -Q 32
    make_data 8388608 /tmp/data
    dd if=/tmp/data of="$DISK" bs=1M oflag=direct 2>/dev/null || fail "write"
    dd if="$DISK" bs=1M count=8 iflag=direct 2>/dev/null | cmp - /tmp/data || fail "the data differ"
    ok "8 MiB written and read back"
    verify 3 16 4k
    verify 3 8 128k
    nvme disconnect -n "$NQN" >/tmp/disconnect || fail "disconnect"
    expect 'disconnected 1' /tmp/disconnect
}

pair_begin
for target in 1 2; do
    [ "$GUEST" != $target ] || nvmet_up rdma "$ME" 64
    barrier "target-$target" || exit
    [ "$GUEST" = $target ] || be_host
    barrier "host-$target" || exit
done
quiet_kernel
barrier end
