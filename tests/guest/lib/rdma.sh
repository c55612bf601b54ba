# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What guest tests of verbs share; sourced as /lab/rdma.sh, after lib.sh. Both ends are in the guest,
# at its own address $IP. Needs 4 CPUs, for the driver's sake.

# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || { echo "FAIL: no RDMA device" && exit 1; }
IP=192.168.200.$((10 + GUEST))
# shellcheck disable=SC2034  # used by tests
IP6=fd00:200::$((10 + GUEST))
SERVER= # process number
LIMIT=60 # seconds that a client may take

# serve READY... -- PROGRAM...: the program in the background, until the command READY succeeds.
serve() {
    local ready=()
    while [ "$1" != -- ]; do ready+=("$1") && shift; done
    shift
    timeout $LIMIT "$@" </dev/null >/tmp/server 2>&1 &
    SERVER=$!
    wait_for 20 "${ready[@]}" || fail "the server of $* does not listen: $(tail -n 5 /tmp/server)"
}

# client PROGRAM...: to its end, and that of the server.
client() {
    local begin=${EPOCHREALTIME/./}
    timeout $LIMIT "$@" </dev/null >/tmp/client 2>&1 ||
        fail "$*: status $?: $(tail -n 8 /tmp/client) server: $(tail -n 8 /tmp/server)"
    wait "$SERVER" || fail "the server of $*: status $?: $(tail -n 8 /tmp/server)"
    ok "$* ($(((${EPOCHREALTIME/./} - begin) / 1000)) ms)"
}

# both PROGRAM...: of perftest or a pingpong, as a server and then as its client.
both() {
    serve accepts 18515 -- "$@"
    client "$@" "$IP"
}

# works: a few messages, in proof that the device is well.
works() {
    both ibv_rc_pingpong -d "$RDMA" -g 1 -n 20 -e
}

# hw_counter NAME: its value in the guest.
hw_counter() {
    local value
    read -r value <"/sys/class/infiniband/$RDMA/ports/1/hw_counters/$1"
    echo "$value"
}
