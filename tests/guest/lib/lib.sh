# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# What guest tests share; sourced as /lab/lib.sh. Tests with a TAP have peer.py on the host.

PEER=192.168.200.1
# shellcheck disable=SC2034  # used by tests
PEER6=fd00:200::1
PEER_URL=http://$PEER:8000

fail() {
    echo "FAIL: $*"
    exit 1
}

# expect PATTERN FILE: the pattern is in what was printed.
expect() {
    grep -q -e "$1" "$2" || fail "no '$1' in: $(cat "$2")"
}

# A pipe that nobody writes to: to read from it with a time limit is to sleep, without a process,
# which costs an emulated CPU more than most of what is waited for.
exec {NEVER}<> <(:)

# wait_for SECONDS COMMAND...: until the command succeeds. The longer it takes, the rarer the looks:
# an eighth of the time that went by lies between them, from 50 ms to half a second.
wait_for() {
    local begin=${EPOCHREALTIME/./} limit=$(($1 * 1000000)) elapsed pause
    shift
    until "$@" >/dev/null 2>&1; do
        elapsed=$((${EPOCHREALTIME/./} - begin))
        [ "$elapsed" -lt "$limit" ] || return 1
        pause=$((elapsed / 8))
        pause=$((pause < 50000 ? 50000 : pause > 500000 ? 500000 : pause))
        printf -v pause '0.%06d' "$pause"
        read -rt "$pause" -u "$NEVER" || true
    done
}

# keep_cpus N: the guest goes on with N CPUs, for a test that does not need more. RDMA takes four when
# the driver probes the NIC (it asks how many there are, once), but emulated ones cost time when they
# wake each other. The driver must not probe again, or there is no RDMA device. The kernel's NVMe host
# connects either with one CPU or with all of them.
keep_cpus() {
    local number
    for ((number = $(nproc) - 1; number >= $1; number--)); do
        echo 0 >"/sys/devices/system/cpu/cpu$number/online" || fail "cannot take CPU $number away"
    done
}

# answers [ADDRESS]: the peer answers one ping.
answers() {
    ping -c 1 -W 1 -s 8 "${1:-$PEER}" >/dev/null 2>&1
}

# accepts PORT: somebody listens for TCP on it.
accepts() {
    local port sockets sockets6
    printf -v port '%04X' "$1"
    mapfile -t sockets </proc/net/tcp
    mapfile -t sockets6 </proc/net/tcp6
    [[ "${sockets[*]} ${sockets6[*]}" =~ :$port\ 0*:0000\ 0A ]]
}

# cm_listens: somebody listens through the connection manager.
cm_listens() {
    [[ $(rdma resource show cm_id 2>/dev/null) =~ 'state LISTEN'|'ps UDP' ]]
}

# shellcheck source=../../../lab/guest/barrier
. barrier

# http METHOD URL [BODY]: sets $ANSWER to what the peer answers; fails unless that is a success. For
# short texts: curl alone takes an emulated CPU 90 ms to start.
http() {
    local place=${2#http://} peer host line answer
    peer=${place%%/*} host=${peer%:*} host=${host#[} host=${host%]}
    exec {line}<>"/dev/tcp/$host/${peer##*:}" || return
    printf '%s /%s HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s' "$1" "${place#*/}" ${#3} "$3" >&"$line"
    IFS= read -rt 10 -N 1000000 -u "$line" answer # to the end, where it fails
    exec {line}>&-
    ANSWER=${answer#*$'\r\n\r\n'}
    [[ $answer =~ ^HTTP/1\..\ 200\ .*Content-Length:\ ([0-9]+) ]] && [ ${#ANSWER} = "${BASH_REMATCH[1]}" ]
}

# ctl JSON: one command for the server's control socket; prints the answer.
ctl() {
    http POST "$PEER_URL/control/${GUEST:-1}" "$1" || fail "control: $1"
    echo "$ANSWER"
}

# ctl_later JSON...: commands that the peer gives after its answer has left, one after the other;
# a bare number is a pause in seconds. For what cuts us off.
ctl_later() {
    local list='' word
    for word in "$@"; do list="$list${list:+,}$word"; done
    http POST "$PEER_URL/later/${GUEST:-1}" "[$list]" || fail "later: $list"
}

# nic_stat NAME: a counter of ethtool -S.
nic_stat() {
    value_in "$(ethtool -S "$NIC")" "$1"
}

# value_in TEXT NAME: what is behind NAME and a colon, in the first line that has it.
value_in() {
    [[ $'\n'$1 =~ $'\n'\ *"$2"\ *:\ *([^$'\n']*) ]] && echo "${BASH_REMATCH[1]}"
}

# frames N HEX [TAP]: the peer sends a raw Ethernet frame to the guest N times.
frames() {
    http POST "$PEER_URL/frames/${3:-ernic${GUEST:-1}}/$1" "$2" || fail "the peer could not send frames"
}

# download BYTES [URL]: the bytes that arrive are those that were sent.
download() {
    local url=${2:-$PEER_URL} want got
    http GET "$url/sha256/$1" && want=$ANSWER
    got=$(curl -gsS --max-time 60 "$url/blob/$1" | sha256sum | cut -d' ' -f1)
    [ "${want:-none}" = "$got" ] || fail "download of $1 bytes: sha256 $got, not $want"
}

# make_data BYTES FILE: of random bytes, which an emulated CPU makes slowly; so they repeat after two
# megabytes, but each time a little further on: nothing that lands in a wrong place looks right.
make_data() {
    local part=$2.part size=$(($1 < 2097152 ? $1 : 2097152)) at
    head -c $size /dev/urandom >"$part"
    for ((at = 0; at < $1; at += size)); do echo $at && cat "$part"; done >"$2"
    truncate -s "$1" "$2"
    rm "$part"
}

# upload BYTES [URL]: the bytes that arrive are those that were sent, RATE a second if that is set.
upload() {
    local url=${2:-$PEER_URL} want got file
    file=$(mktemp)
    make_data "$1" "$file"
    want=$(sha256sum <"$file" | cut -d' ' -f1)
    got=$(curl -gsS --max-time 60 ${RATE:+--limit-rate "$RATE"} -T "$file" "$url/sum")
    rm -f "$file"
    [ "$want" = "$got" ] || fail "upload of $1 bytes: sha256 $got, not $want"
}

# quiet_kernel: neither the driver nor the network core has warned. Levels 0 to 4.
quiet_kernel() {
    dmesg -r | grep -E '^<[0-9]*[01234]>' | grep -iE "ionic|hw csum|NETDEV WATCHDOG|${NIC:-eth}" |
        grep -v 'loading out-of-tree' && fail "the kernel warned"
    return 0
}

ok() {
    echo "ok: $*"
}
