#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The host's side of ./run demo roce: the NIC's TAP joins the bridge of the virtio-net devices.
set -e
ip addr flush dev ernic0
ip link set ernic0 master br-virtio up
