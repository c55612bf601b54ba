#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: 100 programs killed in mid traffic, clients and servers, leave the device healthy and nothing behind
# vcpus: 4
# cpus: parallel
# timeout: 240
# file: lib/lib.sh lib/rdma.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=lib/rdma.sh
. /lab/rdma.sh

# Programs that would run for minutes. They wait for events, so that many can run at a time. The
# n-th has port 20000 + n.
long='-n 100000000'
programs=(
    "ibv_rc_pingpong -d $RDMA -g 1 -e $long"
    "ibv_ud_pingpong -d $RDMA -g 1 -e $long"
    "ibv_rc_pingpong -d $RDMA -g 2 -e $long -s 65536"
    "ibv_ud_pingpong -d $RDMA -g 2 -e $long"
    "ibv_rc_pingpong -d $RDMA -g 1 -e $long -s 1000000"
    "ibv_rc_pingpong -d $RDMA -g 0 -e $long"
    "ib_send_bw -d $RDMA -x 1 -F -e -s 4096 -n 1000000"
    "ib_read_bw -d $RDMA -x 1 -F -e -s 65536 -n 1000000"
)
last=$((20000 + ${#programs[@]}))

all_listen() {
    local port
    for ((port = 20000; port < last; port++)); do accepts $port || return; done
    [ "$(rdma resource show cm_id | grep -c 'state LISTEN')" = 2 ]
}

# start: all pairs; their process numbers are in `servers` and `clients`, pair by pair.
start() {
    local port
    servers=() clients=()
    for ((port = 20000; port < last; port++)); do
        ${programs[port - 20000]} -p $port >/tmp/server.$port 2>&1 &
        servers+=($!)
    done
    for port in 21000 21001; do
        rping -s -a "$IP" -p $port -C 100000000 >/tmp/server.$port 2>&1 &
        servers+=($!)
    done
    wait_for 20 all_listen || fail "not all listen: $(tail -n 2 /tmp/server.*)"
    for ((port = 20000; port < last; port++)); do
        ${programs[port - 20000]} -p $port "$IP" >/dev/null 2>&1 &
        clients+=($!)
    done
    for port in 21000 21001; do
        rping -c -a "$IP" -p $port -C 100000000 >/dev/null 2>&1 &
        clients+=($!)
    done
}

# end: kill client and server of each pair, in turns the one and the other first, and count those that
# had not noticed yet that their peer was gone.
end() {
    local i pid victims
    for i in "${!clients[@]}"; do
        victims="${clients[i]} ${servers[i]}"
        [ $(((round + i) % 2)) = 0 ] || victims="${servers[i]} ${clients[i]}"
        for pid in $victims; do kill -KILL "$pid"; done
    done
    for pid in "${clients[@]}" "${servers[@]}"; do
        wait "$pid"
        [ $? = 137 ] && killed=$((killed + 1))
    done
} 2>/dev/null # the shell's obituaries

# What the kernel has of the device's objects.
held() {
    rdma resource show "$RDMA" | sed 's/ctx.*//'
}
nothing_left() {
    [ "$(held)" = "$before" ]
}

in_traffic() {
    [ $(($(hw_counter tx_rdma_ucast_pkts) - sent)) -gt 100 ]
}

before=$(held)
killed=0
for round in 1 2 3 4 5; do
    start
    sent=$(hw_counter tx_rdma_ucast_pkts)
    wait_for 20 in_traffic || fail "round $round: no traffic"
    end
    wait_for 10 nothing_left || fail "round $round: left: $(held), not $before"
    works
done
[ $killed -ge 90 ] || fail "only $killed programs were alive to be killed"
ok "$killed programs killed"
quiet_kernel
