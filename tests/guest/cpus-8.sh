#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shows: 8 vCPU(s): as many queue pairs, and receive hashing uses them all
# needs: tap
# vcpus: 8
# cpus: parallel
# boot: cold
# nic: --nic-profile generic-100g --tap $TAP
# host: lib/peer.py
# file: lib/lib.sh lib/cpus.sh
# shellcheck source=lib/cpus.sh
. /lab/cpus.sh 8
