#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: the connection of two servers of a mesh is cut for 1, 5 and 30 s under traffic, and all comes back by itself
# guests: 2
# vcpus: 4
# timeout: 400
# nic: --backend tcp:manager:17480
# nic: --backend tcp:worker:127.0.0.1:17479
# host: lib/mesh_partition.py
# file: lib/lib.sh lib/pair.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
keep_cpus 1
# shellcheck source=lib/pair.sh
. /lab/pair.sh

# meet NAME: with the host too.
meet() {
    barrier "$1" 3 || exit
}

# begin NAME READY PROGRAM... [-- CLIENT-WORDS...]: as between(), but in the background, and guest 2
# serves. Sets PID; what it says is in /tmp/NAME.
begin() {
    local name=$1 ready=$2 words=() client=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do words+=("$1") && shift; done
    [ $# -gt 0 ] && shift && client=("$@")
    [ ${#client[@]} -gt 0 ] || client=("${words[@]}" "$OTHER")
    [ "$GUEST" = 2 ] || words=("${client[@]}")
    STEP=$((STEP + 1))
    [ "$GUEST" = 2 ] || barrier "begin-$STEP" || exit
    "${words[@]}" </dev/null >"/tmp/$name" 2>&1 &
    PID=$!
    [ "$GUEST" = 2 ] || return
    # shellcheck disable=SC2086  # a command with its words
    wait_for 20 $ready || fail "${words[*]}: does not listen: $(cat "/tmp/$name")"
    barrier "begin-$STEP" || exit
}

# end PID: at once, without the shell's obituary.
end() {
    kill "$1"
    wait "$1"
} 2>/dev/null

# carried: packets with data, which those of a READ are at the end that receives.
carried() {
    local counters=/sys/class/infiniband/$RDMA/ports/1/hw_counters
    echo $(($(<"$counters/tx_rdma_ucast_pkts") + $(<"$counters/rx_rdma_ucast_pkts")))
}
moved() {
    [ $(($(carried) - before)) -gt 200 ]
}

# lives NAME PID [OTHER]: guest 1 reads or writes and goes on to, and the program has not ended. What is
# carried is its own: the other program stands still.
lives() {
    if [ "$GUEST" = 1 ]; then
        [ $# -lt 3 ] || kill -STOP "$3"
        before=$(carried)
        wait_for 30 moved || fail "$1: nothing is carried: $(cat "/tmp/$1")"
        [ $# -lt 3 ] || kill -CONT "$3"
    fi
    kill -0 "$2" || fail "$1 has ended: $(cat "/tmp/$1")"
}

# How long a queue pair tries is up to its timeout, times eight: 69 s for those that have to live
# through everything, one second for those that may not.
# The long one sleeps until it is answered, which perftest cannot do with WRITEs: an emulated CPU that
# spins for a minute costs the tests beside this one theirs.
options=(-d "$RDMA" -x "$GID4" -F -s 4096 -n 100000000)
reads=(ib_read_bw -e "${options[@]}" -o 4 -p 18600 -u 21)
writes=(ib_write_bw "${options[@]}" -t 4 -p 18601 -u 15)

# Traffic that a cut of so many seconds meets, and what has to become of it.
during_1() {
    NAME=rping # the connection manager's queue pairs try for some seconds; every byte is compared
    begin rping cm_listens rping -s -a "$ME" -V -S 4096 -C 100000000 \
        -- rping -c -a "$OTHER" -V -S 4096 -C 100000000
}
after_1() {
    lives rping "$PID" "$PATIENT"
    lives patient "$PATIENT" "$PID"
}
during_5() {
    NAME=hasty
    begin hasty "accepts 18601" "${writes[@]}"
}
after_5() {
    [ "$GUEST" = 2 ] || wait_for 30 grep -q 'Failed status 12' /tmp/hasty || # retry exceeded
        fail "writes that try for a second: $(cat /tmp/hasty)"
    lives patient "$PATIENT"
}
during_30() { during_5; }
after_30() { after_5; }

meet up
wait_for 10 answers "$OTHER" || fail "no answer to a ping"
each ibv_rc_pingpong -d "$RDMA" -g "$GID4" -n 100 -e -c
begin patient "accepts 18600" "${reads[@]}"
PATIENT=$PID
lives patient "$PATIENT"

for seconds in 1 5 30; do
    "during_$seconds"
    lives "$NAME" "$PID" "$PATIENT"
    meet "ready-$seconds"
    meet "cut-$seconds"
    meet "joined-$seconds"
    "after_$seconds"
    barrier "after-$seconds" || exit
    end "$PID"
    wait_for 30 answers "$OTHER" || fail "no answer to a ping after $seconds s"
    each ibv_rc_pingpong -d "$RDMA" -g "$GID4" -n 100 -e -c
    rping_each -C 20 -S 4096 -V
    ok "$seconds s"
done
end "$PATIENT"
quiet_kernel
meet end
