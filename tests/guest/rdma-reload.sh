#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: 25 driver unloads under RDMA traffic leave no warning and a working device
# vcpus: 4
# timeout: 300
# nic: --nic-profile generic-100g --nic-profile $HERE/lib/salina.ini
# file: lib/lib.sh lib/rdma.sh lib/rdma_traffic.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh
# shellcheck source=lib/rdma_traffic.sh
. /lab/rdma_traffic.sh

for round in $(seq 15); do
    traffic
    rmmod ionic_rdma || fail "round $round: rmmod ionic_rdma"
    traffic_ends
    modprobe ionic_rdma || fail "round $round: modprobe ionic_rdma"
    device_back
done
ok "15 unloads of ionic_rdma under traffic"
for round in $(seq 10); do
    traffic
    rmmod ionic_rdma || fail "round $round: rmmod ionic_rdma"
    rmmod ionic || fail "round $round: rmmod ionic"
    traffic_ends
    device_back
done
ok "10 unloads of both drivers under traffic"
quiet_kernel
