/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Congestion (spec rocev2 11). A packet that a router has marked makes its receiver tell the
 * sender, at most once in ROCE_CNP_NS and QP. The sender halves its window, as it does when it has
 * to send again, and grows it by one packet for every window that is acknowledged, as TCP does:
 * simple, and fair among its likes.
 */
#include <string.h>

#include "base/counter.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_rx_marked, "packets that came with a mark of congestion");
COUNTER(fabric_roce_tx_cnps, "congestion notifications sent");
COUNTER(fabric_roce_rx_cnps, "congestion notifications received");

#define ROCE_CNP_NS 50000ull

void roce_rate_reset(struct roce_qp *rq)
{
	rq->window = ROCE_WINDOW;
	rq->grown = 0;
}

void roce_rate_acknowledged(struct roce_qp *rq, uint32_t packets)
{
	if (rq->window >= ROCE_WINDOW)
		return;
	rq->grown += packets;
	if (rq->grown >= rq->window) {
		rq->grown = 0;
		rq->window++;
	}
}

void roce_rate_marked(struct roce_qp *rq)
{
	uint64_t now = loop_now(rq->roce->loop);

	counter_inc(&fabric_roce_rx_marked);
	if (rq->cnp_due || (rq->cnp_sent_ns && now - rq->cnp_sent_ns < ROCE_CNP_NS))
		return;
	rq->cnp_sent_ns = now;
	rq->cnp_due = true;
	roce_qp_due(rq);
}

void roce_rate_lost(struct roce_qp *rq)
{
	rq->grown = 0;
	rq->window = rq->window / 2 > ROCE_WINDOW_MIN ? rq->window / 2 : ROCE_WINDOW_MIN;
}

void roce_rate_notified(struct roce_qp *rq)
{
	counter_inc(&fabric_roce_rx_cnps);
	roce_rate_lost(rq);
}

void roce_rate_send_cnp(struct roce_qp *rq)
{
	const struct rdma_qp_attr *attr = rdma_qp_attributes(rq->qp);
	const struct roce_fields fields = {.opcode = ROCE_CNP_OPCODE,
	                                   .becn = true,
	                                   .qpn = attr->dest_qpn,
	                                   .src_qpn = rdma_qp_number(rq->qp)};
	uint8_t *zeros = roce_tx_begin(rq->roce, &attr->av, &fields, ROCE_CNP_BYTES);

	memset(zeros, 0, ROCE_CNP_BYTES);
	roce_tx_add(rq->roce);
	counter_inc(&fabric_roce_tx_cnps);
	rq->cnp_due = false;
}
