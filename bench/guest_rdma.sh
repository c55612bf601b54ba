#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: perftest through the NIC and through Soft-RoCE on a dummy interface, in turns, both
# ends in this guest. Prints the middle of both: "result guest-write-64k NIC RXE" in Gbit/s,
# "result guest-rate-8 NIC RXE" and "result guest-rate-8-list NIC RXE" in thousand RDMA WRITEs a
# second, posted one by one and 32 at a time; "result guest-latency NIC RXE" and "result
# guest-latency-mean NIC RXE" in microseconds for a message that is waited for with events: the
# middle of all, which Soft-RoCE's rare long waits do not touch, and the average, which has them.
# ROUNDS comes from bench/run.
# shellcheck source=/dev/null
. nic-up || exit
# shellcheck source=/dev/null
. rxe-up || exit
[ -n "$RDMA" ] || { echo "no RDMA device" >&2 && exit 1; }
IP=192.168.200.$((10 + GUEST))
ip link set "$NIC" mtu 9000

# accepts: perftest's server listens
accepts() {
	cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 0*:0000 0A'
}

# run DEVICE ADDRESS COLUMN PROGRAM ARGUMENTS... - one figure of perftest's last line
run() {
	local device=$1 address=$2 column=$3 tries
	shift 3
	set -- "$@" -d "$device" -x 1 -F
	timeout 60 "$@" >/tmp/server 2>&1 &
	for ((tries = 0; tries < 200; tries++)); do
		accepts && break
		sleep 0.05
	done
	timeout 60 "$@" "$address" >/tmp/client 2>&1 || {
		cat /tmp/client /tmp/server >&2
		return 1
	}
	wait
	awk -v column="$column" '/^ *[0-9]+ +[0-9]/ { value = $column } END { print value }' /tmp/client
}

middle() {
	sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# row NAME FACTOR COLUMN NIC-COUNT RXE-COUNT PROGRAM ARGUMENTS...
row() {
	local name=$1 factor=$2 column=$3 nic_count=$4 rxe_count=$5 round
	shift 5
	: >/tmp/nic
	: >/tmp/rxe
	for round in $(seq "$ROUNDS"); do
		run "$RDMA" "$IP" "$column" "$@" -n "$nic_count" >>/tmp/nic || exit
		run "$RXE" "$RXE_IP" "$column" "$@" -n "$rxe_count" >>/tmp/rxe || exit
		echo "$name: round $round of $ROUNDS: $(tail -n 1 /tmp/nic) and $(tail -n 1 /tmp/rxe)"
	done
	echo "result $name $(middle </tmp/nic | awk "{ print \$1 * $factor }")" \
		"$(middle </tmp/rxe | awk "{ print \$1 * $factor }")"
}

row guest-write-64k 1 4 5000 300 ib_write_bw -s 65536 --report_gbits
row guest-rate-8 1000 5 100000 5000 ib_write_bw -s 8 --report_gbits
row guest-rate-8-list 1000 5 640000 6400 ib_write_bw -s 8 -l 32 --report_gbits
row guest-latency 1 5 2000 1000 ib_send_lat -s 8 -e
row guest-latency-mean 1 6 2000 1000 ib_send_lat -s 8 -e
