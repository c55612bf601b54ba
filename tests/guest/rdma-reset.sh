#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: 25 function resets under RDMA traffic leave no warning and a working device
# vcpus: 4
# cpus: parallel
# timeout: 300
# nic: --nic-profile generic-100g --nic-profile $HERE/lib/salina.ini
# file: lib/lib.sh lib/rdma.sh lib/rdma_traffic.sh
# Why not one of the older ASICs, see reload.sh.
# The drivers probe in the process that asks for the reset, and a signal meanwhile makes that fail,
# because Linux 7.2 waits for the statistics interruptibly. So it is not this shell, whose children
# are dying.
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh
# shellcheck source=lib/rdma_traffic.sh
. /lab/rdma_traffic.sh
pci=$(basename "$(readlink -f "/sys/class/net/$NIC/device")")

for round in $(seq 25); do
    traffic
    sh -c "echo 1 >/sys/bus/pci/devices/$pci/reset" || fail "round $round: no function reset"
    traffic_ends
    device_back
done
ok "25 function resets under traffic"
quiet_kernel
