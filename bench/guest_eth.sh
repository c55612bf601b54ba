#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# In the guest: TCP through the NIC and through virtio-net, in turns, to the same host. Prints for
# each direction the middle of both in Gbit/s: "guest-tx NIC VIRTIO", "guest-rx NIC VIRTIO".
# SECONDS_EACH and ROUNDS come from bench/run; guest_eth_host.sh is the other end.
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

for direction in tx rx; do
	flag=
	[ "$direction" = rx ] && flag=--reverse
	: >/tmp/nic
	: >/tmp/virtio
	for round in $(seq "$ROUNDS"); do
		gbits 192.168.200.1 $flag >>/tmp/nic || exit
		gbits 192.168.201.1 $flag >>/tmp/virtio || exit
		echo "guest-$direction: round $round of $ROUNDS: $(tail -n 1 /tmp/nic) and" \
			"$(tail -n 1 /tmp/virtio) Gbit/s"
	done
	echo "result guest-$direction $(middle </tmp/nic) $(middle </tmp/virtio)"
done
barrier finished 2
