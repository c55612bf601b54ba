/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder's answers, in the order of the requests (spec rocev2 7.2).
 *
 * READs and atomics are answered one after the other; behind them goes one acknowledgement for all
 * that has been executed, or the reason why it does not go on. All of it leaves once in a turn, so
 * that what a turn brings is acknowledged together.
 *
 * An answered READ or atomic is remembered until its place is needed for a new one: the places are
 * as many as the QP may have outstanding, so none that its peer may still ask for is forgotten.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/counter.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_tx_acks, "acknowledgements sent");
COUNTER(fabric_roce_tx_naks, "negative acknowledgements sent, of any kind");

/* ---- READs and atomics that are remembered ---- */

static bool fetches_allocate(struct roce_qp *rq)
{
	uint32_t wanted = rdma_qp_attributes(rq->qp)->max_dest_rd_atomic;

	if (rq->fetches)
		return true;
	if (wanted < 1)
		wanted = 1; /* for the one that the engine refuses */
	rq->fetch_count = wanted < ROCE_FETCHES_MAX ? wanted : ROCE_FETCHES_MAX;
	rq->fetches = calloc(rq->fetch_count, sizeof(*rq->fetches));
	return rq->fetches != NULL;
}

struct roce_fetch *roce_fetch_new(struct roce_qp *rq)
{
	struct roce_fetch *fetch;

	if (!fetches_allocate(rq))
		return NULL;
	fetch = &rq->fetches[rq->fetch_next];
	if (fetch->queued)
		return NULL;
	rq->fetch_next = (rq->fetch_next + 1) % rq->fetch_count;
	assert(!fetch->in.qp);
	*fetch = (struct roce_fetch){.queued = false};
	return fetch;
}

struct roce_fetch *roce_fetch_find(struct roce_qp *rq, uint32_t psn)
{
	uint32_t count = rq->fetches ? rq->fetch_count : 0;

	/* the newest first: an old one may have the same PSN, of a round of PSNs before */
	for (uint32_t i = 1; i <= count; i++) {
		struct roce_fetch *fetch = &rq->fetches[(rq->fetch_next + count - i) % count];

		if (((psn - fetch->req.psn) & ROCE_PSN_MASK) < fetch->req.packets)
			return fetch;
	}
	return NULL;
}

void roce_fetch_queue(struct roce_qp *rq, struct roce_fetch *fetch)
{
	if (fetch->queued)
		return;
	fetch->queued = true;
	TAILQ_INSERT_TAIL(&rq->answers, fetch, link);
	roce_qp_due(rq);
}

static void fetch_answered(struct roce_qp *rq, struct roce_fetch *fetch)
{
	TAILQ_REMOVE(&rq->answers, fetch, link);
	fetch->queued = false;
	fetch->begun = false;
}

/* ---- what is owed ---- */

void roce_reply_ack(struct roce_qp *rq)
{
	rq->reply = ROCE_REPLY_ACK;
	roce_qp_due(rq);
}

void roce_reply_nak(struct roce_qp *rq, uint32_t psn, uint8_t syndrome)
{
	rq->reply = ROCE_REPLY_NAK;
	rq->reply_psn = psn;
	rq->syndrome = syndrome;
	roce_qp_due(rq);
}

uint8_t roce_syndrome(enum rdma_verdict verdict)
{
	static const uint8_t syndromes[] = {
	        [RDMA_VERDICT_INV_REQ] = ROCE_SYNDROME_INVALID,
	        [RDMA_VERDICT_ACCESS] = ROCE_SYNDROME_ACCESS,
	        [RDMA_VERDICT_OPER] = ROCE_SYNDROME_OPERATION,
	};

	assert(verdict >= RDMA_VERDICT_INV_REQ);
	return syndromes[verdict];
}

void roce_reply_verdict(struct roce_qp *rq, uint32_t psn, enum rdma_verdict verdict,
                        uint8_t rnr_timer)
{
	switch (verdict) {
	case RDMA_VERDICT_OK:
		roce_reply_ack(rq);
		return;
	case RDMA_VERDICT_RNR:
		roce_reply_nak(rq, psn, (uint8_t)(ROCE_SYNDROME_RNR + (rnr_timer & 0x1f)));
		return;
	case RDMA_VERDICT_DROP:
	case RDMA_VERDICT_DUPLICATE:
		return;
	default:
		roce_reply_nak(rq, psn, roce_syndrome(verdict));
	}
}

/* ---- sending ---- */

static void fill_answer(const struct roce_qp *rq, struct roce_fields *fields, uint8_t opcode,
                        uint32_t psn)
{
	*fields = (struct roce_fields){
	        .opcode = ROCE_RC | opcode,
	        .qpn = rdma_qp_attributes(rq->qp)->dest_qpn,
	        .src_qpn = rdma_qp_number(rq->qp),
	        .psn = psn,
	        .syndrome = ROCE_SYNDROME_ACK,
	};
}

static uint8_t read_opcode(const struct roce_fetch *fetch, bool last)
{
	if (!fetch->begun)
		return last ? ROCE_READ_ONLY : ROCE_READ_FIRST;
	return last ? ROCE_READ_LAST : ROCE_READ_MIDDLE;
}

/* The memory went away between the request and its answer, or with the QP. */
static void read_failed(struct roce_qp *rq, struct roce_fetch *fetch)
{
	uint32_t psn = fetch->next;
	enum rdma_verdict verdict;

	fetch_answered(rq, fetch);
	verdict = rdma_inbound_end(&fetch->in);
	assert(verdict != RDMA_VERDICT_RNR);
	if (verdict != RDMA_VERDICT_OK)
		roce_reply_verdict(rq, psn, verdict, 0);
}

/* One packet. */
static void answer_read(struct roce_qp *rq, struct roce_fetch *fetch)
{
	const struct rdma_qp_attr *attr = rdma_qp_attributes(rq->qp);
	uint32_t left = fetch->part.length - fetch->in.done, mtu = 1u << attr->mtu_shift;
	bool last = left <= mtu;
	uint32_t size = last ? left : mtu;
	struct roce_fields fields;

	if (!fetch->in.qp) { /* given up meanwhile */
		fetch_answered(rq, fetch);
		return;
	}
	fill_answer(rq, &fields, read_opcode(fetch, last), fetch->next);
	fields.msn = fetch->msn;
	uint8_t *payload = roce_tx_begin(rq->roce, &attr->av, &fields, size);

	if (size > 0 && rdma_inbound_copy(&fetch->in, payload, size)) {
		read_failed(rq, fetch);
		return;
	}
	roce_tx_add(rq->roce);
	fetch->begun = true;
	fetch->next = roce_psn_add(fetch->next, 1);
	if (!last)
		return;
	rdma_inbound_end(&fetch->in);
	fetch_answered(rq, fetch);
}

static void answer_atomic(struct roce_qp *rq, struct roce_fetch *fetch)
{
	struct roce_fields fields;

	fill_answer(rq, &fields, ROCE_ATOMIC_ACK, fetch->req.psn);
	fields.msn = fetch->msn;
	fields.original = fetch->original;
	roce_tx_begin(rq->roce, &rdma_qp_attributes(rq->qp)->av, &fields, 0);
	roce_tx_add(rq->roce);
	fetch_answered(rq, fetch);
}

static void send_reply(struct roce_qp *rq)
{
	bool nak = rq->reply == ROCE_REPLY_NAK;
	struct roce_fields fields;

	fill_answer(rq, &fields, ROCE_ACK, nak ? rq->reply_psn : roce_newest_psn(rq));
	fields.msn = rdma_qp_msn(rq->qp);
	if (nak)
		fields.syndrome = rq->syndrome;
	counter_inc(nak ? &fabric_roce_tx_naks : &fabric_roce_tx_acks);
	rq->reply = ROCE_REPLY_NONE;
	roce_tx_begin(rq->roce, &rdma_qp_attributes(rq->qp)->av, &fields, 0);
	roce_tx_add(rq->roce);
}

void roce_answer_last(struct roce_qp *rq)
{
	if (rq->reply == ROCE_REPLY_NONE || !TAILQ_EMPTY(&rq->answers) ||
	    rdma_qp_attributes(rq->qp)->av.ip_version == 0)
		return;
	send_reply(rq);
	loop_schedule(rq->roce->loop, &rq->roce->work); /* which flushes */
}

bool roce_answer(struct roce_qp *rq)
{
	struct roce_fetch *fetch;
	unsigned packets = 0;

	if (rdma_qp_attributes(rq->qp)->av.ip_version == 0)
		return false;
	if (rq->cnp_due)
		roce_rate_send_cnp(rq);
	while ((fetch = TAILQ_FIRST(&rq->answers))) {
		if (packets++ == ROCE_ANSWER_SLICE)
			return true;
		if (fetch->req.opcode == RDMA_READ)
			answer_read(rq, fetch);
		else
			answer_atomic(rq, fetch);
	}
	if (rq->reply != ROCE_REPLY_NONE)
		send_reply(rq);
	return false;
}
