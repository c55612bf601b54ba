# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What tests with two guests share; sourced as /lab/pair.sh, after lib.sh. The guests take each step
# together. The RDMA device is $RDMA; $GID4 is the index of its GID of IPv4.

# shellcheck disable=SC2034 # for those who source this
ME=192.168.200.$((10 + GUEST)) OTHER=192.168.200.$((13 - GUEST))
GID4=1
LIMIT=90 # seconds that a program may take
STEP=0

# pair_begin: the NIC with its RDMA device is up in both guests, and they reach each other.
pair_begin() {
    # shellcheck source=/dev/null
    . nic-up || exit
    [ -n "$RDMA" ] || fail "no RDMA device"
    barrier up || exit
    wait_for 10 answers "$OTHER" || fail "no answer to a ping"
}

# stuck TEXT: fails, and tells what the device has counted, which says who lost what.
stuck() {
    grep -rv '^0$' "/sys/class/infiniband/$RDMA/ports/1/hw_counters" | sed 's|.*/||' | paste -s -d ' '
    fail "$@"
}

# between SERVER READY PROGRAM... [-- CLIENT-WORDS...]: guest SERVER serves, which it does as soon as
# the command READY succeeds, and the other is the client; words behind -- are the client's only, and without any the server's address is appended.
between() {
    local server=$1 ready=$2 words=() client=() begin=${EPOCHREALTIME/./}
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do words+=("$1") && shift; done
    [ $# -gt 0 ] && shift && client=("$@")
    STEP=$((STEP + 1))
    if [ "$GUEST" = "$server" ]; then
        timeout $LIMIT "${words[@]}" </dev/null >/tmp/out 2>&1 &
        # shellcheck disable=SC2086  # a command with its words
        wait_for 20 $ready || fail "${words[*]}: does not listen: $(tail -n 5 /tmp/out)"
        barrier "serve-$STEP" || exit
        wait $! || stuck "server ${words[*]}: status $?: $(tail -n 8 /tmp/out)"
    else
        [ ${#client[@]} -gt 0 ] || client=("${words[@]}" "$OTHER")
        barrier "serve-$STEP" || exit
        timeout $LIMIT "${client[@]}" </dev/null >/tmp/out 2>&1 ||
            stuck "client ${client[*]}: status $?: $(tail -n 8 /tmp/out)"
        ok "${client[*]} ($(((${EPOCHREALTIME/./} - begin) / 1000)) ms)"
        grep -E '^ +[0-9]+ +[0-9]+ +[0-9.]+ ' /tmp/out | tail -n 1 # what perftest measured
    fi
    barrier "done-$STEP" || exit
}

# each PROGRAM...: a pingpong or perftest program, either guest serving once.
each() {
    between 1 "accepts 18515" "$@"
    between 2 "accepts 18515" "$@"
}

# rping_each WORDS...: rping, either guest serving once.
rping_each() {
    local server address
    for server in 1 2; do
        address=192.168.200.$((10 + server))
        between $server cm_listens rping-done -s -a $address "$@" -- \
            rping-done -c -a $address "$@"
    done
}

# cm_each SERVER CLIENT WORDS...: programs of rdmacm-utils, either guest serving once.
cm_each() {
    local server
    for server in 1 2; do
        between $server cm_listens "$1" "${@:3}" -- \
            "$2" -s 192.168.200.$((10 + server)) "${@:3}"
    done
}

# perf PROGRAM...: perftest over both directions, with the GID of IPv4.
perf() {
    each "$1" -d "$RDMA" -x "$GID4" -F "${@:2}"
}
