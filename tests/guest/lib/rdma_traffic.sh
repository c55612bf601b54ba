# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# RDMA traffic for tests that take the device away from it; after rdma.sh. The test counts in $round.

round=0
TRAFFIC=()

# traffic: messages or, in each second round, datagrams, without end, until the device goes away.
traffic() {
    local program="ibv_rc_pingpong -g 1 -e -n 100000000 -s 65536"
    [ $((round % 2)) = 1 ] || program="ibv_ud_pingpong -g 1 -e -n 100000000"
    $program -d "$RDMA" >/dev/null 2>&1 &
    TRAFFIC=($!)
    wait_for 20 accepts 18515 || fail "round $round: the server does not listen"
    $program -d "$RDMA" "$IP" >/dev/null 2>&1 &
    TRAFFIC+=($!)
    wait_for 20 traffic_flows || fail "round $round: no traffic"
}

traffic_flows() { # the counter begins anew with each driver
    [ "$(hw_counter tx_rdma_ucast_pkts)" -gt 200 ]
}

# traffic_ends: programs that notice that the device has gone end by themselves; not all do.
traffic_ends() {
    kill -KILL "${TRAFFIC[@]}"
    wait
}

# device_back: the NIC and its RDMA device have come up; now and then some messages prove it.
device_back() {
    # shellcheck source=/dev/null
    . nic-up || fail "round $round: no NIC"
    [ -n "$RDMA" ] || fail "round $round: no RDMA device"
    [ $((round % 5)) != 0 ] || works
}

exec 2>/dev/null # the shell's obituaries
