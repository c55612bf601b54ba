#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the RDMA counters that a guest has printed with those of the LIF block.

The guest prints "counter NAME VALUE" lines. The stats file is read until it says the same, because
it is written at intervals; what the LIF block lacks is compared with the section RDMA, as sums of
the process, which are the guest's because its driver has been loaded only once.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

LAB = Path(os.environ["LAB_DIR"])
PATIENCE = 10

# Words of the kernel's names, and what they are in the LIF block.
WORDS = [
    (r"^(req|resp)_", r"rdma_\1_"),
    (r"rmt_acc_err", "remote_access_err"),
    (r"req_rx_rmt_req_err", "req_rx_remote_inv_req_err"),
    (r"req_rx_oper_err", "req_rx_remote_oper_err"),
    (r"rmt_inval_req_err", "remote_inv_req_err"),
    (r"rmt_oper_err", "remote_oper_err"),
    (r"impl_nak", "implied_nak"),
    (r"cqe_flush$", "cqe_flush_err"),
    (r"dup_response$", "dup_responses"),
    (r"inval_pkts", "invalid_packets"),
    (r"loc_acc_err", "local_access_err"),
    (r"req_tx_loc_oper_err", "req_tx_local_oper_err"),
    (r"mem_mgmt_err", "memory_mgmt_err"),
    (r"out_of_seq$", "out_of_seq_pkts"),
    (r"loc_len_err", "local_len_err"),
    (r"inval_request", "inv_request_err"),
    (r"resp_rx_loc_oper_err", "resp_rx_local_qp_oper_err"),
    (r"out_of_atomic_res$", "out_of_atomic_resource"),
    (r"ucast_pkts", "ucast_packets"),
    (r"rdma_req_(retries|retry_exceeded|rnr_retry_exceeded|no_destination)", r"rdma_\1"),
    (r"rdma_resp_rx_dropped", "rdma_dropped"),
    (r"rdma_req_tx_datagram_too_long", "rdma_datagram_too_long"),
]


def our_name(name):
    for pattern, replacement in WORDS:
        name = re.sub(pattern, replacement, name)
    return name


def guest_counters():
    text = (LAB / "output.1").read_text("utf-8", "replace")
    return {name: int(value) for name, value in re.findall(r"counter (\w+) (\d+)", text)}


def sections():
    """The stats file: {section: {name: value}}."""
    found, section = {}, {}
    for line in (LAB / "stats.1").read_text("utf-8").splitlines():
        if title := re.fullmatch(r"\[(.*)\]", line):
            section = found.setdefault(title[1], {})
        elif pair := re.fullmatch(r"(\w+) : (\d+)", line):
            section[pair[1]] = int(pair[2])
    return found


def differences(counters):
    stats = sections()
    lif, rdma = stats["LIF Statistics"], stats["RDMA"]
    for name, value in counters.items():
        ours = our_name(name)
        if ours not in lif and ours not in rdma:
            yield f"{name}: no counter {ours}"
        elif lif.get(ours, rdma[ours]) != value:
            yield f"{name}: the guest has {value}, the LIF block {lif.get(ours, rdma[ours])}"


def main():
    subprocess.run(["barrier", "printed", "2"], check=True)
    counters = guest_counters()
    if len(counters) < 30:
        sys.exit(f"the guest printed only {len(counters)} counters")
    end = time.monotonic() + PATIENCE
    while found := list(differences(counters)):
        if time.monotonic() > end:
            sys.exit("\n".join(found))
        time.sleep(0.1)
    print(f"{len(counters)} counters agree")
    subprocess.run(["barrier", "compared", "2"], check=True)


main()
