#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Posts to a queue pair in ERR and waits for the event of each flush, as who never polls does.

One receive only: libionic loses the flush of those that are posted after one has completed.
"""

import signal
import sys

from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.libibverbs_enums import (
    ibv_access_flags,
    ibv_qp_attr_mask,
    ibv_qp_state,
    ibv_qp_type,
    ibv_wc_status,
    ibv_wr_opcode,
)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ROUNDS = 50
PATIENCE = 20  # seconds, for all


def post(qp, sge, number):
    if number == 0:
        qp.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[sge]))
    else:
        qp.post_send(SendWR(wr_id=number, opcode=ibv_wr_opcode.IBV_WR_SEND, num_sge=1, sg=[sge]))


def drain(cq):
    """The (wr_id, status) of all that is complete."""
    taken = []
    while True:
        count, completions = cq.poll(16)
        if not count:
            return taken
        taken += [(wc.wr_id, wc.status) for wc in completions]


def main():
    context = Context(name=sys.argv[1])
    channel = CompChannel(context)
    cq = CQ(context, 64, channel=channel)
    pd = PD(context)
    mr = MR(pd, 64, ibv_access_flags.IBV_ACCESS_LOCAL_WRITE)
    sge = SGE(mr.buf, 64, mr.lkey)
    init = QPInitAttr(qp_type=ibv_qp_type.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(8, 8, 1, 1))
    qp = QP(pd, init, QPAttr(port_num=1))
    signal.alarm(PATIENCE)
    qp.modify(QPAttr(qp_state=ibv_qp_state.IBV_QPS_ERR), ibv_qp_attr_mask.IBV_QP_STATE)
    drain(cq)
    for number in range(ROUNDS):
        cq.req_notify()
        post(qp, sge, number)
        channel.get_cq_event(cq)
        cq.ack_events(1)
        if drain(cq) != [(number, ibv_wc_status.IBV_WC_WR_FLUSH_ERR)]:
            sys.exit(f"round {number}: not the flush that was waited for")
    print(f"{ROUNDS} flushes, each with its event")


main()
