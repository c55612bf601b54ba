# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What guest tests of RoCEv2 share; sourced as /lab/roce.sh, after lib.sh and pair.sh. The guest has
# brought up its end: RDMA device $RDMA on network interface $DEV.

# gid_of ADDRESS-PATTERN: the index of the GID that matches.
gid_of() {
    local index
    for index in 0 1 2 3 4 5 6 7; do
        grep -qE "$1" "/sys/class/infiniband/$RDMA/ports/1/gids/$index" 2>/dev/null &&
            echo $index && return
    done
    fail "no GID like $1: $(cat "/sys/class/infiniband/$RDMA/ports/1/gids/"[0-7])"
}

# rxe_on INTERFACE: brings Soft-RoCE up on it, at MTU 1500.
# shellcheck disable=SC2034  # used by tests
rxe_on() {
    DEV=$1 RDMA=rxe0
    ip addr replace "$ME/24" dev "$DEV"
    ip link set "$DEV" mtu 1500 || fail "MTU 1500"
    modprobe -a rdma_rxe ib_uverbs rdma_ucm || fail "no rdma_rxe"
    rdma link add $RDMA type rxe netdev "$DEV" || fail "no rxe link"
}

# shellcheck disable=SC2034  # used by tests
roce_begin() {
    GID4=$(gid_of "ffff:c0a8:c8") || fail "$GID4"
    GIDLL=$(gid_of "^fe80") || fail "$GIDLL"
    barrier begin || exit
    wait_for 10 answers "$OTHER" || fail "no answer from the other guest"
}

# mtu BYTES: of both ends.
mtu() {
    ip link set "$DEV" mtu "$1" || fail "MTU $1"
    barrier "mtu-$1" || exit
}

# The least that RoCEv2 has to do between two guests, in an order that tells most first.
roce_basics() {
    each ibv_rc_pingpong -d "$RDMA" -g "$GID4" -n 50 -e -c
    each ibv_rc_pingpong -d "$RDMA" -g "$GIDLL" -n 20 -e -c
    each ibv_ud_pingpong -d "$RDMA" -g "$GID4" -n 20 -e -s 1000
    rping_each -C 20 -S 4096 -V
    perf ib_write_bw -s 65536 -n 100 -m 1024
    perf ib_read_bw -s 65536 -n 50 -m 1024
}

# What it has to do.
roce_all() {
    roce_basics
    perf ib_send_bw -s 65536 -n 100 -m 1024
    perf ib_send_bw -c UD -s 1024 -n 100
    mtu 9000
    each ibv_rc_pingpong -d "$RDMA" -g "$GID4" -m 4096 -n 50 -s 65536 -e -c
    rping_each -C 20 -S 60000 -V
    perf ib_write_bw -s 65536 -n 200 -m 4096
    perf ib_read_bw -s 65536 -n 100 -m 4096
    perf ib_send_bw -s 65536 -n 200 -m 4096
    perf ib_send_bw -c UD -s 4096 -n 100
    each ibv_ud_pingpong -d "$RDMA" -g "$GID4" -n 20 -e -s 4096
    perf ib_atomic_bw -A FETCH_AND_ADD -n 100 -m 4096
    cm_each ucmatose ucmatose -c 4 -C 20 -S 65536
    cm_each udaddy udaddy -c 4 -C 20
    cm_each rdma_server rdma_client
}

# The same over a VLAN: the bridge carries the tag.
roce_vlan() {
    local gid
    modprobe 8021q
    ip link add link "$DEV" name vlan5 type vlan id 5 || fail "no VLAN"
    ip addr add 192.168.205.$((10 + GUEST))/24 dev vlan5
    ip link set vlan5 up
    wait_for 5 gid_of "ffff:c0a8:cd" || fail "no GID of the VLAN"
    gid=$(gid_of "ffff:c0a8:cd")
    barrier vlan || exit
    wait_for 10 answers 192.168.205.$((13 - GUEST)) || fail "no answer on the VLAN"
    each ibv_rc_pingpong -d "$RDMA" -g "$gid" -n 20 -e -c
    each ibv_ud_pingpong -d "$RDMA" -g "$gid" -n 20 -e -s 1000
}
