/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder: what request packets do (spec rocev2 8).
 *
 * A packet goes through steps; each function says which comes next. RC takes packets in exactly
 * their order, and tells its peer once when one is missing. UC has no answers: a message that lost
 * a packet is given up, and the next one that starts sets the order. UD messages are one packet.
 *
 *	RC  SEQUENCE -> ORDER -> BEGIN -> LAND -> END		   -> DONE
 *	        |          |        |       |      |	       (begin, end: what the engine says)
 *	        |          `--------+-------+------+-> REFUSE  -> DONE
 *	        `-> DUPLICATE					   -> DONE
 *	UC  UNRELIABLE -> BEGIN -> LAND -> END
 */
#include <errno.h>

#include "base/counter.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_rx_duplicates, "request packets that were executed before");
COUNTER(fabric_roce_rx_missing, "request packets that came before an earlier one");
COUNTER(fabric_roce_rx_forgotten, "duplicate READs and atomics that are not remembered, dropped");
COUNTER(fabric_roce_rx_malformed, "request packets of a size or order that the protocol forbids");
COUNTER(fabric_roce_rx_no_room, "READs and atomics beyond what can be remembered, dropped");
COUNTER(fabric_roce_tx_repeats, "READs and atomics answered once more");
COUNTER(fabric_roce_rx_uc_broken, "UC messages given up because a packet was lost");

enum step {
	STEP_SEQUENCE,
	STEP_UNRELIABLE,
	STEP_ORDER,
	STEP_BEGIN,
	STEP_FETCH,
	STEP_LAND,
	STEP_END,
	STEP_REFUSE,
	STEP_DUPLICATE,
	STEP_DONE
};

#define IS_MESSAGE (ROCE_IS_SEND | ROCE_IS_WRITE)

static const struct rdma_request no_request = {.opcode = RDMA_SEND};

/* The PSN that comes next. */
static uint32_t expected_psn(const struct roce_rx *rx)
{
	return rx->rq->landing ? rx->rq->expected : rx->attr->rq_psn;
}

uint32_t roce_newest_psn(const struct roce_qp *rq)
{
	uint32_t expected = rq->landing ? rq->expected : rdma_qp_attributes(rq->qp)->rq_psn;

	return (expected - 1) & ROCE_PSN_MASK;
}

/* ---- order ---- */

static enum step step_sequence(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	int32_t ahead = roce_psn_diff(rx->packet.fields.psn, expected_psn(rx));

	if (ahead < 0)
		return STEP_DUPLICATE;
	if (ahead == 0) {
		rq->gap_told = false;
		return STEP_ORDER;
	}
	counter_inc(&fabric_roce_rx_missing);
	/* once, and again when the peer has started over and what is expected was lost once more */
	if (!rq->gap_told || roce_psn_diff(rx->packet.fields.psn, rq->gap_newest) < 0)
		roce_reply_nak(rq, expected_psn(rx), ROCE_SYNDROME_SEQUENCE);
	rq->gap_told = true;
	rq->gap_newest = rx->packet.fields.psn;
	return STEP_DONE;
}

/* Whether the size of the payload is what its place in the message demands. */
static bool size_fits(const struct roce_rx *rx)
{
	size_t size = rx->packet.size, mtu = (size_t)1 << rx->attr->mtu_shift;
	uint16_t flags = rx->packet.flags;

	if (!(flags & IS_MESSAGE))
		return true;
	if (!(flags & ROCE_ENDS))
		return size == mtu;
	return size <= mtu && (flags & ROCE_STARTS || size > 0);
}

/* Whether a WRITE stays within, and ends with, the length that it was begun with. */
static bool total_fits(const struct roce_rx *rx)
{
	uint32_t length = rx->rq->req.length, left;
	uint16_t flags = rx->packet.flags;

	if (!(flags & ROCE_IS_WRITE))
		return true;
	left = flags & ROCE_STARTS ? rx->packet.fields.length : length - rx->rq->in.done;
	return flags & ROCE_ENDS ? rx->packet.size == left : rx->packet.size < left;
}

static enum step step_order(struct roce_rx *rx)
{
	uint16_t landing = rx->rq->landing, flags = rx->packet.flags;
	bool in_order =
	        landing ? !(flags & ROCE_STARTS) && (flags & landing) : (flags & ROCE_STARTS) != 0;

	if (!in_order || !size_fits(rx) || !total_fits(rx))
		return STEP_REFUSE;
	if (landing)
		return STEP_LAND;
	return flags & (ROCE_IS_READ | ROCE_IS_ATOMIC) ? STEP_FETCH : STEP_BEGIN;
}

static enum step step_unreliable(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	uint16_t flags = rx->packet.flags;
	bool follows = rq->landing && (flags & rq->landing) && !(flags & ROCE_STARTS) &&
	               rx->packet.fields.psn == rq->expected;

	if (rq->landing && !follows) {
		counter_inc(&fabric_roce_rx_uc_broken);
		rdma_inbound_cancel(&rq->in);
		rq->landing = 0;
	}
	if ((!follows && !(flags & ROCE_STARTS)) || !size_fits(rx) || !total_fits(rx))
		return STEP_REFUSE;
	return follows ? STEP_LAND : STEP_BEGIN;
}

/* ---- execution ---- */

static const uint8_t transport_types[] = {
        [ROCE_RC >> 5] = RDMA_QP_RC, [ROCE_UC >> 5] = RDMA_QP_UC, [ROCE_UD >> 5] = RDMA_QP_UD};

/* The opcode of the engine, as far as the packet tells. */
static uint8_t engine_opcode(const struct roce_packet *packet)
{
	if (packet->flags & ROCE_IS_SEND) {
		if (packet->flags & ROCE_HAS_IMM)
			return RDMA_SEND_IMM;
		return packet->flags & ROCE_HAS_INV ? RDMA_SEND_INV : RDMA_SEND;
	}
	if (packet->flags & ROCE_IS_WRITE)
		return packet->flags & ROCE_HAS_IMM ? RDMA_WRITE_IMM : RDMA_WRITE;
	if (packet->flags & ROCE_IS_READ)
		return RDMA_READ;
	return (packet->fields.opcode & ~ROCE_TRANSPORT_MASK) == ROCE_CMP_SWAP ? RDMA_CMP_SWAP
	                                                                       : RDMA_FETCH_ADD;
}

static void fill_tail(struct rdma_request *req, const struct roce_packet *packet)
{
	req->opcode = engine_opcode(packet);
	req->solicited = packet->fields.solicited;
	if (packet->flags & ROCE_HAS_IMM)
		req->imm = packet->fields.imm;
	if (packet->flags & ROCE_HAS_INV)
		req->inv_key = packet->fields.inv_key;
}

/* The request that a packet begins. A SEND tells its length with its last packet. */
static void fill_request(const struct roce_rx *rx, struct rdma_request *req)
{
	const struct roce_packet *packet = &rx->packet;
	const struct roce_fields *fields = &packet->fields;
	bool whole = packet->flags & ROCE_ENDS;

	*req = (struct rdma_request){
	        .transport = transport_types[fields->opcode >> 5],
	        .src_qpn = rx->attr->dest_qpn,
	        .dst_qpn = fields->qpn,
	        .psn = fields->psn,
	        .packets = 1,
	        .length = packet->flags & ROCE_IS_SEND
	                          ? (whole ? (uint32_t)packet->size : RDMA_LENGTH_UNKNOWN)
	                          : fields->length,
	        .va = fields->va,
	        .rkey = fields->rkey,
	        .qkey = fields->qkey,
	        .swap_add = fields->swap_add,
	        .compare = fields->compare,
	        .av = &rx->roce->rx_av,
	};
	if (packet->flags & ROCE_IS_ATOMIC)
		req->length = sizeof(uint64_t);
	fill_tail(req, packet);
}

/* The engine has decided about the packet, for good or not. */
static enum step conclude(struct roce_rx *rx, enum rdma_verdict verdict, uint8_t rnr_timer)
{
	struct roce_qp *rq = rx->rq;

	if (rx->packet.fields.opcode >> 5 != ROCE_RC >> 5)
		return STEP_DONE;
	if (verdict == RDMA_VERDICT_RNR) {
		rq->gap_told = true; /* what follows is known to come too early */
		rq->gap_newest = rx->packet.fields.psn;
	}
	if (verdict != RDMA_VERDICT_OK || rx->packet.fields.ack_request)
		roce_reply_verdict(rq, rx->packet.fields.psn, verdict, rnr_timer);
	return STEP_DONE;
}

static enum step step_begin(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;

	fill_request(rx, &rq->req);
	/* until its last packet comes, a WRITE with immediate data is a WRITE */
	enum rdma_verdict verdict = rdma_inbound_begin(&rq->in, rx->qp, &rq->req);

	if (verdict != RDMA_VERDICT_OK)
		return conclude(rx, verdict, rq->in.rnr_timer);
	rq->landing = rx->packet.flags & IS_MESSAGE;
	rq->expected = rx->packet.fields.psn;
	return STEP_LAND;
}

static enum step step_land(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	const struct roce_packet *packet = &rx->packet;
	bool ends = packet->flags & ROCE_ENDS;

	if (ends && !(packet->flags & ROCE_STARTS)) {
		fill_tail(&rq->req, packet);
		enum rdma_verdict verdict = packet->flags & ROCE_HAS_IMM
		                                    ? rdma_inbound_want_recv(&rq->in)
		                                    : RDMA_VERDICT_OK;

		if (verdict != RDMA_VERDICT_OK) {
			if (verdict == RDMA_VERDICT_RNR) /* what comes next need not be its end */
				rq->req.opcode = RDMA_WRITE;
			else
				rq->landing = 0;
			return conclude(rx, verdict, rq->in.rnr_timer);
		}
	}
	rq->expected = roce_psn_add(packet->fields.psn, 1);
	rq->req.packets = (rq->expected - rq->req.psn) & ROCE_PSN_MASK;
	int error = packet->size > 0
	                    ? rdma_inbound_copy(&rq->in, (void *)(uintptr_t)packet->payload,
	                                        packet->size)
	                    : 0;

	if (error || ends)
		return STEP_END;
	return conclude(rx, RDMA_VERDICT_OK, 0);
}

static enum step step_end(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	enum rdma_verdict verdict = rdma_inbound_end(&rq->in);

	rq->landing = 0;
	return conclude(rx, verdict, rq->in.rnr_timer);
}

/* READs and atomics: accepted at once, answered in their order by roce_answer(). */
static enum step step_fetch(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	struct roce_fetch *fetch = roce_fetch_new(rq);
	enum rdma_verdict verdict;

	if (!fetch) {
		counter_inc(&fabric_roce_rx_no_room);
		return STEP_DONE;
	}
	fill_request(rx, &fetch->req);
	if (fetch->req.opcode == RDMA_READ && fetch->req.length > 0)
		fetch->req.packets = (uint32_t)(((uint64_t)fetch->req.length +
		                                 (1u << rx->attr->mtu_shift) - 1) >>
		                                rx->attr->mtu_shift);
	fetch->part = fetch->req;
	verdict = rdma_inbound_begin(&fetch->in, rx->qp, &fetch->part);
	if (verdict == RDMA_VERDICT_OK && fetch->req.opcode != RDMA_READ) {
		verdict = rdma_inbound_end(&fetch->in);
		fetch->original = fetch->in.atomic;
	}
	if (verdict != RDMA_VERDICT_OK)
		return conclude(rx, verdict, 0);
	fetch->msn = rdma_qp_msn(rx->qp);
	fetch->next = fetch->req.psn;
	roce_fetch_queue(rq, fetch);
	return STEP_DONE;
}

static enum step step_refuse(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;

	counter_inc(&fabric_roce_rx_malformed);
	if (rx->packet.fields.opcode >> 5 != ROCE_RC >> 5)
		return STEP_DONE;
	enum rdma_verdict verdict = rdma_inbound_refuse(&rq->in, rx->qp, &no_request);

	rq->landing = 0;
	return conclude(rx, verdict, 0);
}

/* ---- duplicates (8.3) ---- */

/* Answers the end of a READ once more, as PACKET asks for it. */
static void repeat_read(struct roce_rx *rx, struct roce_fetch *fetch)
{
	const struct roce_fields *fields = &rx->packet.fields;
	uint64_t skip = (uint64_t)((fields->psn - fetch->req.psn) & ROCE_PSN_MASK)
	                << rx->attr->mtu_shift;

	if (fields->rkey != fetch->req.rkey || fields->va - fetch->req.va != skip ||
	    skip > fetch->req.length || fields->length > fetch->req.length - skip) {
		counter_inc(&fabric_roce_rx_forgotten);
		return;
	}
	rdma_inbound_cancel(&fetch->in);
	fetch->part = fetch->req;
	fetch->part.va = fields->va;
	fetch->part.psn = fields->psn;
	fetch->part.length = fields->length;
	fetch->part.packets = fetch->req.packets - ((fields->psn - fetch->req.psn) & ROCE_PSN_MASK);
	fetch->part.av = &rx->roce->rx_av;
	enum rdma_verdict verdict = rdma_inbound_repeat(&fetch->in, rx->qp, &fetch->part);

	if (verdict != RDMA_VERDICT_OK) {
		conclude(rx, verdict, 0);
		return;
	}
	fetch->next = fields->psn;
	fetch->begun = false;
	counter_inc(&fabric_roce_tx_repeats);
	roce_fetch_queue(rx->rq, fetch);
}

static void repeat_atomic(struct roce_rx *rx, struct roce_fetch *fetch)
{
	counter_inc(&fabric_roce_tx_repeats);
	roce_fetch_queue(rx->rq, fetch);
}

static enum step step_duplicate(struct roce_rx *rx)
{
	struct roce_fetch *fetch;

	counter_inc(&fabric_roce_rx_duplicates);
	if (!(rx->packet.flags & (ROCE_IS_READ | ROCE_IS_ATOMIC))) {
		roce_reply_ack(rx->rq);
		return STEP_DONE;
	}
	fetch = roce_fetch_find(rx->rq, rx->packet.fields.psn);
	if (!fetch || fetch->req.opcode != engine_opcode(&rx->packet))
		counter_inc(&fabric_roce_rx_forgotten);
	else if (fetch->req.opcode == RDMA_READ)
		repeat_read(rx, fetch);
	else
		repeat_atomic(rx, fetch);
	return STEP_DONE;
}

/* ---- dispatch ---- */

static enum step (*const steps[])(struct roce_rx *rx) = {
        [STEP_SEQUENCE] = step_sequence,
        [STEP_UNRELIABLE] = step_unreliable,
        [STEP_ORDER] = step_order,
        [STEP_BEGIN] = step_begin,
        [STEP_FETCH] = step_fetch,
        [STEP_LAND] = step_land,
        [STEP_END] = step_end,
        [STEP_REFUSE] = step_refuse,
        [STEP_DUPLICATE] = step_duplicate,
};

void roce_receive_request(struct roce_rx *rx)
{
	enum step step = rdma_qp_type(rx->qp) == RDMA_QP_RC ? STEP_SEQUENCE : STEP_UNRELIABLE;

	while (step != STEP_DONE)
		step = steps[step](rx);
}

void roce_receive_datagram(struct roce_rx *rx)
{
	struct rdma_inbound in = {0};
	struct rdma_request req;

	fill_request(rx, &req);
	req.src_qpn = rx->packet.fields.src_qpn;
	if (rdma_inbound_begin(&in, rx->qp, &req) != RDMA_VERDICT_OK)
		return;
	if (rx->packet.size > 0)
		rdma_inbound_copy(&in, (void *)(uintptr_t)rx->packet.payload, rx->packet.size);
	rdma_inbound_end(&in);
	rdma_inbound_cancel(&in);
}
