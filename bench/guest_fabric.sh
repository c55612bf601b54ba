#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# In two guests: perftest between them, RoCEv2 through the NIC and Soft-RoCE through virtio-net, in
# turns, each over a bridge of two TAPs at MTU 9000. Guest 1 serves; guest 2 prints the middle of
# both: "result guest-roce-64k NIC RXE" in Gbit/s, "result guest-roce-8 NIC RXE" in thousand RDMA
# WRITEs a second. ROUNDS comes from bench/run.
# shellcheck source=/dev/null
. nic-up || exit
# shellcheck source=/dev/null
. virtio-up || exit
[ -n "$RDMA" ] || { echo "no RDMA device" >&2 && exit 1; }
modprobe rdma_rxe && rdma link add rxe0 type rxe netdev "$VNIC" || exit
ip link set "$NIC" mtu 9000 && ip link set "$VNIC" mtu 9000 || exit
STEP=0

# accepts: perftest's server listens
accepts() {
	cat /proc/net/tcp /proc/net/tcp6 | grep -q ':4853 0*:0000 0A'
}

# gid DEVICE: the index of its IPv4 address
gid() {
	basename "$(grep -l 'ffff:c0a8' "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null | head -n 1)"
}

serve() {
	local tries
	timeout 90 "$@" >/tmp/server 2>&1 &
	for ((tries = 0; tries < 400; tries++)); do
		accepts && break
		sleep 0.05
	done
	barrier "run-$STEP" || exit
	wait $! || { cat /tmp/server >&2 && exit 1; }
}

# run DEVICE SUBNET COLUMN PROGRAM ARGUMENTS... - in guest 2, one figure of perftest's last line
run() {
	local device=$1 subnet=$2 column=$3
	shift 3
	set -- "$@" -d "$device" -x "$(gid "$device")" -F
	if [ "$GUEST" = 1 ]; then
		serve "$@"
	else
		barrier "run-$STEP" || exit
		timeout 90 "$@" "192.168.$subnet.11" >/tmp/client 2>&1 || {
			cat /tmp/client >&2
			exit 1
		}
		awk -v column="$column" '/^ *[0-9]+ +[0-9]/ { value = $column } END { print value }' \
			/tmp/client
	fi
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
		STEP=$((STEP + 1))
		run "$RDMA" 200 "$column" "$@" -n "$nic_count" >>/tmp/nic || exit
		STEP=$((STEP + 1))
		run rxe0 201 "$column" "$@" -n "$rxe_count" >>/tmp/rxe || exit
		[ "$GUEST" = 1 ] ||
			echo "$name: round $round of $ROUNDS: $(tail -n 1 /tmp/nic) and $(tail -n 1 /tmp/rxe)"
	done
	[ "$GUEST" = 1 ] || echo "result $name $(middle </tmp/nic | awk "{ print \$1 * $factor }")" \
		"$(middle </tmp/rxe | awk "{ print \$1 * $factor }")"
}

barrier begin || exit
# The first packets only find each other.
ping -q -c 1 -W 5 "192.168.200.$((13 - GUEST))" >/dev/null || exit
ping -q -c 1 -W 5 "192.168.201.$((13 - GUEST))" >/dev/null || exit
row guest-roce-64k 1 4 2000 200 ib_write_bw -s 65536 -m 4096 --report_gbits
row guest-roce-8 1000 5 20000 2000 ib_write_bw -s 8 -m 4096 --report_gbits
barrier "done"
