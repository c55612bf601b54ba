#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: two guests on a mesh: a thousand connections, librdmacm's programs, atomics from both sides
# guests: 2
# vcpus: 4
# timeout: 300
# nic: --backend tcp:manager:17473
# nic: --backend tcp:worker:127.0.0.1:17473
# file: lib/lib.sh lib/pair.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/pair.sh
. /lab/pair.sh

pair_begin
keep_cpus 1

# Connections made and ended: a thousand, half of them from either side. cmtime takes each step with
# 250 of them before the next, and does all twice, first with real queue pairs, then without any; the
# ends invent the numbers of those.
for server in 1 2; do
    address=192.168.200.$((10 + server))
    between $server "accepts 7471" cmtime -L -b $address -C $address -c 250 -q 70000 \
        -- cmtime -b "$ME" -C $address -c 250 -q 80000
done
cm_each ucmatose ucmatose -c 50 -C 10
cm_each udaddy udaddy -c 20 -C 10

# Both ends send at once.
perf ib_atomic_bw -b -A FETCH_AND_ADD -n 1000
perf ib_atomic_bw -b -A CMP_AND_SWAP -n 1000
each ibv_rc_pingpong -d "$RDMA" -g "$GID4" -n 100 -e -c
quiet_kernel
barrier end
