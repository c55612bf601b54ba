#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: two guests on a mesh, without root: ping, verbs and the connection manager, TCP
# guests: 2
# vcpus: 4
# timeout: 600
# nic: --backend tcp:manager:17471
# nic: --backend tcp:worker:127.0.0.1:17471
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
peer=192.168.200.$((13 - GUEST))

barrier up || exit
wait_for 10 answers "$peer" || fail "no answer to a ping"
for size in 1472 8000 60000; do
    ping -q -c 3 -i 0.01 -W 2 -s "$size" "$peer" >/tmp/ping || fail "ping of $size bytes: $(cat /tmp/ping)"
done
ok "ping"

# between PROGRAM...: guest 1 is its server, guest 2 its client.
steps=0
between() {
    steps=$((steps + 1))
    if [ "$GUEST" = 1 ]; then
        "$@" >/tmp/out 2>&1 &
        local server=$!
        sleep 1
        barrier "ready-$steps" || exit
        wait "$server" || fail "the server of $*: $(tail -n 5 /tmp/out)"
    else
        barrier "ready-$steps" || exit
        timeout 120 "$@" "$peer" >/tmp/out 2>&1 || fail "$*: $(tail -n 5 /tmp/out)"
        grep -A1 '#bytes' /tmp/out
        ok "$*"
    fi
}

between ibv_rc_pingpong -d "$RDMA" -g 1 -n 1000
between ibv_rc_pingpong -d "$RDMA" -g 1 -n 500 -e -s 100000
between ibv_ud_pingpong -d "$RDMA" -g 1 -n 500

if [ "$GUEST" = 1 ]; then
    rping -s -a 192.168.200.11 -C 20 -v >/tmp/out 2>&1 &
    sleep 1
    barrier rping || exit
    wait
else
    barrier rping || exit
    timeout 60 rping -c -a "$peer" -C 20 -V >/tmp/out 2>&1 || fail "rping: $(tail -n 5 /tmp/out)"
    ok rping
fi

for size in 8 65536 1048576; do
    count=$((size > 8 ? 500 : 5000))
    for verb in write read send; do
        between "ib_${verb}_bw" -d "$RDMA" -x 1 -F -s "$size" -n "$count"
    done
done
between ib_atomic_bw -d "$RDMA" -x 1 -F -n 1000
between ib_write_lat -d "$RDMA" -x 1 -F -s 8 -n 1000

if [ "$GUEST" = 1 ]; then
    iperf3 -s -1 >/tmp/out 2>&1 &
    sleep 1
    barrier iperf || exit
    wait
else
    barrier iperf || exit
    iperf3 -c "$peer" -t 3 >/tmp/out 2>&1 || fail "iperf3: $(tail -n 5 /tmp/out)"
    grep receiver /tmp/out
    ok iperf3
fi
barrier "done" || exit
quiet_kernel
