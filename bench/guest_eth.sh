#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: TCP through the NIC and through virtio-net, in turns, to the same host. Prints for
# each row of the table the middle of both in Gbit/s: "result ROW NIC VIRTIO".
# SECONDS_EACH and ROUNDS come from bench/run; guest_eth_host.sh is the other end.
#
# At MTU 1500 the stock driver spends a descriptor on each frame, cut or received, where virtio-net
# passes 64 KiB in one; so there is also virtio-net without receive coalescing, and MTU 9000.
# shellcheck source=/dev/null
. nic-up || exit
# shellcheck source=/dev/null
. virtio-up || exit
barrier ready 2 || exit

# gbits ADDRESS [FLAG] - one transfer
gbits() {
	iperf3 --json -c "$1" -t "$SECONDS_EACH" -O 1 ${2:+"$2"} >/tmp/iperf3 || {
		jq -r '.error' /tmp/iperf3 >&2
		return 1
	}
	jq -r '.end.sum_received.bits_per_second / 1e9' /tmp/iperf3
}

middle() {
	sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# row NAME [FLAG] - rounds of both, in turns
row() {
	: >/tmp/nic
	: >/tmp/virtio
	for round in $(seq "$ROUNDS"); do
		gbits 192.168.200.1 "${@:2}" >>/tmp/nic || exit
		gbits 192.168.201.1 "${@:2}" >>/tmp/virtio || exit
		echo "$1: round $round of $ROUNDS: $(tail -n 1 /tmp/nic) and" \
			"$(tail -n 1 /tmp/virtio) Gbit/s"
	done
	echo "result $1 $(middle </tmp/nic) $(middle </tmp/virtio)"
}

virtio=$(ip -br addr | awk '/192\.168\.201\./ { print $1 }')
row guest-tx
row guest-rx --reverse
ethtool -K "$virtio" rx-gro-hw off || exit
row guest-rx-cut --reverse
ethtool -K "$virtio" rx-gro-hw on || exit
ip link set "$NIC" mtu 9000 && ip link set "$virtio" mtu 9000 || exit
row guest-tx-9000
row guest-rx-9000 --reverse
barrier finished 2
