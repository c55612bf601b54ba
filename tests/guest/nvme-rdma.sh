#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: the kernel's NVMe host and target talk over the NIC: connect, verified fio, reset, lost connections, disconnect
# vcpus: 4
# timeout: 300
# file: lib/lib.sh lib/rdma.sh lib/nvmet.sh
# Fast registration, local and remote invalidation, and drains: what only the kernel does.
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh
# shellcheck source=lib/nvmet.sh
. /lab/nvmet.sh
verify_seconds=${VERIFY_SECONDS:-3}

nvmet_up rdma "$IP" 64
nvme_up rdma
nvme discover -t rdma -a "$IP" -s 4420 >/tmp/discover 2>&1 || fail "discover: $(cat /tmp/discover)"
expect "subnqn: *$NQN" /tmp/discover
ok discover
nvme_connect rdma "$IP" -i 2 -Q 32 --reconnect-delay 1 --keep-alive-tmo 5
ok "connected: $CONTROLLER $DISK"

make_data 8388608 /tmp/data
dd if=/tmp/data of="$DISK" bs=1M oflag=direct 2>/dev/null || fail "write"
dd if="$DISK" bs=1M count=8 iflag=direct 2>/dev/null | cmp - /tmp/data || fail "the data differ"
ok "8 MiB written and read back"
verify "$verify_seconds" 16 4k
verify "$verify_seconds" 8 128k

# A reset while fio runs: it waits, and finds its data.
verify 4 16 4k >/tmp/verify &
fio=$!
sleep 1
nvme reset "/dev/$CONTROLLER" || fail "nvme reset"
wait_for 20 controller_state live || fail "not live after a reset"
wait $fio || fail "fio and a reset: $(cat /tmp/verify)"
ok "reset under load"

# The target's port goes away, and with it every connection; then it comes back.
verify 6 16 4k >/tmp/verify &
fio=$!
sleep 1
rm "$NVMET/ports/1/subsystems/$NQN"
wait_for 20 controller_state connecting || fail "the host did not notice"
ln -s "$NVMET/subsystems/$NQN" "$NVMET/ports/1/subsystems/"
wait_for 30 controller_state live || fail "not live again"
wait $fio || fail "fio and a lost connection: $(cat /tmp/verify)"
ok "lost connections under load"
verify 1 16 4k

nvme disconnect -n $NQN >/tmp/disconnect || fail "disconnect"
expect 'disconnected 1' /tmp/disconnect
rm "$NVMET/ports/1/subsystems/$NQN"
rmmod nvme_rdma nvmet_rdma || fail "the modules do not go away"
ok "disconnected"
works
quiet_kernel
