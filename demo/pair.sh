# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What the demos of two guests share; sourced in both as /lab/pair.sh. Guest 1 serves, guest 2 is the
# client and shows what came out.

# shellcheck disable=SC2153 # from the lab
PEER=192.168.200.$((13 - GUEST))
# shellcheck disable=SC2034 # for those who source this
HERE=192.168.200.$((10 + GUEST))
STEP=0

title() {
    [ "$GUEST" = 1 ] || printf '\n== %s\n' "$*"
}

fail() {
    echo "FAILED: $*"
    exit 1
}

# until_ok SECONDS COMMAND...: tries it until it succeeds.
until_ok() {
    local tries=$(($1 * 20))
    shift
    until "$@"; do
        [ $((tries -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}

# A program of perftest or libibverbs listens.
accepts() {
    cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 0*:0000 0A'
}

cm_listens() {
    rdma resource show cm_id | grep -q 'state LISTEN'
}

answers() {
    ping -q -c 1 -W 1 "$PEER" >/dev/null 2>&1
}

# between READY SERVER... -- CLIENT...: the client's output is in /tmp/out of guest 2.
between() {
    local ready=$1 server=() step=$((STEP += 1))
    shift
    while [ "$1" != -- ]; do server+=("$1") && shift; done
    shift
    if [ "$GUEST" = 1 ]; then
        timeout 40 "${server[@]}" >/tmp/out 2>&1 &
        until_ok 20 "$ready" || fail "${server[*]}: $(cat /tmp/out)"
        barrier "ready-$step" || exit
        wait $! || fail "${server[*]}: $(cat /tmp/out)"
    else
        barrier "ready-$step" || exit
        timeout 40 "$@" >/tmp/out 2>&1 || fail "$*: $(cat /tmp/out)"
    fi
}

# The sides of the demo, each in one line, in order.
show_self() {
    local guest
    for guest in 1 2; do
        [ "$GUEST" != $guest ] || echo "$*"
        barrier "self-$guest" || exit
    done
}

show_ping() {
    until_ok 20 answers || fail "no answer from $PEER"
    barrier answered || exit
    title "ping"
    [ "$GUEST" = 1 ] || ping -c 3 -i 0.2 "$PEER"
    barrier pinged || exit
}

# show_bw SIZE COUNT GID-INDEX [FLAG...]: RDMA WRITE from guest 2 to guest 1.
show_bw() {
    local words=(ib_write_bw -d "$RDMA" -x "$3" -F -s "$1" -n "$2" --report_gbits "${@:4}")
    title "RDMA WRITE of $1 bytes: ib_write_bw"
    between accepts "${words[@]}" -- "${words[@]}" 192.168.200.11
    [ "$GUEST" = 1 ] || awk -v size="$1" '$1 == size { print $4 " Gbit/s" }' /tmp/out
}

show_rping() {
    title "the connection manager: rping"
    between cm_listens rping-done -s -a 192.168.200.11 -C 3 -- \
        rping-done -c -a 192.168.200.11 -C 3 -v
    [ "$GUEST" = 1 ] || grep 'ping data' /tmp/out
}
