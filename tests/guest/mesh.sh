#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: two guests on a mesh, without root: ping, verbs and the connection manager, TCP
# guests: 2
# vcpus: 4
# timeout: 600
# nic: --backend tcp:manager:17471
# nic: --backend tcp:worker:127.0.0.1:17471
# file: lib/lib.sh lib/pair.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/pair.sh
. /lab/pair.sh

pair_begin
keep_cpus 1
for size in 1472 8000 60000; do
    ping -q -c 3 -i 0.01 -W 2 -s "$size" "$OTHER" >/tmp/ping || fail "ping of $size bytes: $(cat /tmp/ping)"
done
ok "ping"

each ibv_rc_pingpong -d "$RDMA" -g 1 -n 500 -c
each ibv_rc_pingpong -d "$RDMA" -g 1 -n 200 -e -s 100000 -c
each ibv_rc_pingpong -d "$RDMA" -g 0 -n 100 -e
each ibv_ud_pingpong -d "$RDMA" -g 1 -n 500
rping_each -C 20 -S 4096 -V
for size in 8 65536 1048576; do
    count=$((size > 8 ? 500 : 5000))
    for verb in write read send; do
        perf "ib_${verb}_bw" -s "$size" -n "$count"
    done
done
perf ib_send_bw -c UD -s 1024 -n 1000
perf ib_atomic_bw -A FETCH_AND_ADD -n 1000
perf ib_write_lat -s 8 -n 1000
between 1 "accepts 5201" iperf3 -s -1 -- iperf3 -c "$OTHER" -t 3
grep receiver /tmp/out
quiet_kernel
barrier end
