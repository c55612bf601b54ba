#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# On the host, beside guest_eth.sh: the other end of its transfers.
iperf3 -s >/dev/null &
barrier ready 2 || exit
barrier finished 2
