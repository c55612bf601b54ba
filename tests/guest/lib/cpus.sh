# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# The body of the tests cpus-N.sh: as many queue pairs as there are CPUs, all of them used.
# shellcheck source=lib.sh
. /lab/lib.sh
# shellcheck source=/dev/null
. nic-up || exit
cpus=$(nproc)
[ "$cpus" = "$1" ] || fail "$cpus CPUs"
wait_for 5 answers || fail "no answer to a ping"
queues=$(ethtool -l "$NIC" | sed -n '/Current/,$s/Combined:[^0-9]*//p')
[ "$queues" = "$cpus" ] || fail "$queues queues for $cpus CPUs"

transfers=''
for n in $(seq 1 16); do
    download $((100000 * n)) &
    transfers="$transfers $!"
done
for n in $transfers; do wait "$n" || fail "a transfer"; done
upload 4194304

used() {
    ethtool -S "$NIC" | grep -cE '^ *rx_[0-9]+_pkts: [1-9]'
}

# The hash is linear, and the ports of transfers that begin together differ in few bits: under some
# keys they all fall into a part of the queues. Ports far apart reach all of them.
for n in $(seq 1 200); do
    [ "$(used)" != "$cpus" ] || break
    curl -sS --max-time 10 --local-port $((20011 + 199 * n)) -o /dev/null "$PEER_URL/sha256/8" || fail "a request"
done
[ "$(used)" = "$cpus" ] || fail "only $(used) of $cpus receive queues were used: $(ethtool -S "$NIC" | grep -E 'rx_[0-9]+_pkts')"
grep -E "ionic|$NIC" /proc/interrupts | head -n 12
quiet_kernel
ok "$cpus CPUs, $queues queues"
