#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Host part of roce-rxe.sh: the virtio-net device of guest 2 joins the bridge of the NICs.
set -e
ip link set virt2 nomaster
ip link set virt2 master br-ernic up
