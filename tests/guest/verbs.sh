#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: verbs in one guest: pingpongs, the connection manager, and every kind of RDMA operation
# vcpus: 4
# timeout: 300
# file: lib/lib.sh
# shellcheck source=lib/lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
[ -n "$RDMA" ] || fail "no RDMA device"
ip=192.168.200.$((10 + GUEST))

ibv_devinfo -d "$RDMA" >/tmp/info || fail "ibv_devinfo"
expect 'state:.*PORT_ACTIVE' /tmp/info

# both PROGRAM...: the program as a server, then as its client.
both() {
    "$@" >/tmp/server 2>&1 &
    local server=$!
    sleep 1
    timeout 60 "$@" "$ip" >/tmp/client 2>&1 || fail "$*: $(tail -n 5 /tmp/client)"
    wait "$server" || fail "the server of $*: $(tail -n 5 /tmp/server)"
    ok "$*"
}

both ibv_rc_pingpong -d "$RDMA" -g 1 -n 500
both ibv_rc_pingpong -d "$RDMA" -g 1 -n 500 -e
both ibv_ud_pingpong -d "$RDMA" -g 1 -n 500

rping -s -a "$ip" -C 10 >/tmp/server 2>&1 &
sleep 1
timeout 60 rping -c -a "$ip" -C 10 -V >/tmp/client 2>&1 || fail "rping: $(tail -n 5 /tmp/client)"
wait
ok rping

for size in 8 65536; do
    both ib_write_bw -d "$RDMA" -x 1 -F -s "$size" -n 1000
    both ib_read_bw -d "$RDMA" -x 1 -F -s "$size" -n 1000
    both ib_send_bw -d "$RDMA" -x 1 -F -s "$size" -n 1000
done
both ib_atomic_bw -d "$RDMA" -x 1 -F -n 1000
quiet_kernel
