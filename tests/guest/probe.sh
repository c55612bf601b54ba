#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: an unmodified driver finds the NIC, knows what it is, and has nothing to complain about
# vcpus: 2
# boot: cold

fail() {
    echo "FAIL: $*"
    exit 1
}

# expect TEXT WHERE: the pattern is in what was printed.
expect() {
    grep -q -e "$1" "$2" || fail "no '$1' in: $(cat "$2")"
}

# shellcheck source=/dev/null
. nic-up || exit

lspci -vv -d 1dd8:1002 >/tmp/lspci
expect 'Ethernet controller' /tmp/lspci
expect 'Region 0: Memory at .*64-bit.*size=64K' /tmp/lspci
expect 'Region 2: Memory at .*64-bit.*size=4M' /tmp/lspci
expect 'MSI-X: Enable+ Count=32 Masked-' /tmp/lspci
expect 'Express .*Endpoint' /tmp/lspci
expect 'FLReset+' /tmp/lspci
expect 'LnkSta:.*Speed [0-9.]*GT/s.*Width x[0-9]' /tmp/lspci
expect 'Power Management' /tmp/lspci
expect 'Kernel driver in use: ionic' /tmp/lspci
lspci -n -vv -d 1dd8:1002 >/tmp/lspci-n
expect 'Subsystem: 1dd8:5400' /tmp/lspci-n
head -n 2 /tmp/lspci

ethtool -i "$NIC" | tee /tmp/driver
expect 'driver: ionic' /tmp/driver
expect 'firmware-version: rocm-ernic-1.0' /tmp/driver

ethtool "$NIC" >/tmp/link
expect 'Speed: 100000Mb/s' /tmp/link
expect 'Port: Direct Attach Copper' /tmp/link
expect 'Link detected: yes' /tmp/link

# Kernel levels 0 to 4 are emergency to warning.
dmesg -r | grep -E '^<[0-9]*[01234]>' | grep -i ionic && fail "the driver warned"
echo "no warning from the driver"
