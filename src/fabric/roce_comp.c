/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester: what responses mean (spec rocev2 9.3). Every response acknowledges what came
 * before it; READs and atomics only by their own answer, so that an acknowledgement of something
 * behind one tells that its answer was lost.
 */
#include "base/counter.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_rx_ghosts, "responses to what was never asked, or long ago, ignored");
COUNTER(fabric_roce_rx_gaps,
        "responses that came before an earlier one: what is missing is asked again");
COUNTER(fabric_roce_rx_naks, "negative acknowledgements of packets that got lost");
COUNTER(fabric_roce_rx_bad_size, "READ responses of another size than was asked for");

static bool fetches(const struct rdma_msg *msg)
{
	return msg->req.opcode == RDMA_READ || msg->req.opcode == RDMA_CMP_SWAP ||
	       msg->req.opcode == RDMA_FETCH_ADD;
}

/* The message that PSN is of, of those that are not done. */
static struct rdma_msg *find_message(struct roce_qp *rq, uint32_t psn)
{
	struct rdma_msg *msg;

	for (unsigned i = 0; (msg = rdma_qp_message(rq->qp, i)); i++) {
		int32_t index = roce_psn_diff(psn, msg->req.psn);

		if (rdma_msg_is_open(msg) && index >= 0 && (uint32_t)index < msg->req.packets)
			return msg;
	}
	return NULL;
}

static void advance(struct roce_qp *rq, uint32_t psn)
{
	roce_rate_acknowledged(rq, (psn - rq->una) & ROCE_PSN_MASK);
	rq->una = psn;
	if (roce_psn_diff(psn, rq->next) > 0) /* sent before the last rewind */
		rq->next = psn;
	if (roce_psn_diff(psn, rq->recover) >= 0)
		rq->recovering = false;
}

/* Everything before PSN is acknowledged. Returns false when a READ or atomic before it is not
 * answered; then una is its next packet. */
static bool acknowledge(struct roce_qp *rq, uint32_t psn)
{
	struct rdma_msg *msg;

	for (unsigned i = 0; roce_psn_diff(psn, rq->una) > 0; i++) {
		msg = rdma_qp_message(rq->qp, i);
		if (!msg)
			break;
		if (!rdma_msg_is_open(msg))
			continue;
		if (fetches(msg))
			return false;
		uint32_t end = roce_psn_add(msg->req.psn, msg->req.packets);

		if (roce_psn_diff(end, psn) > 0)
			break;
		advance(rq, end);
		rdma_msg_done(msg, RDMA_OK);
	}
	if (roce_psn_diff(psn, rq->una) > 0)
		advance(rq, psn);
	return true;
}

/* Counts for the guest to see. */
static void count(struct roce_qp *rq, enum rdma_stat stat)
{
	struct rdma_msg *msg = rdma_qp_message(rq->qp, 0);

	if (msg)
		rdma_msg_count(msg, stat);
}

/*
 * A response came while an earlier one is missing. It is asked for again once; that it is still
 * missing says nothing more, as what follows it comes in any order and comes twice. When the answer
 * is lost too, the timer tells.
 */
static void note_gap(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	bool same = rq->gap_seen && rq->gap_una == rq->una;

	rq->gap_seen = true;
	rq->gap_una = rq->una;
	if (same)
		return;
	counter_inc(&fabric_roce_rx_gaps);
	count(rq, RDMA_STAT_REQ_RX_IMPLIED_NAK);
	rx->retry = true;
}

/* ---- kinds of responses ---- */

static void on_ack(struct roce_rx *rx, uint32_t psn)
{
	if (!acknowledge(rx->rq, roce_psn_add(psn, 1)))
		note_gap(rx);
}

static void on_sequence_nak(struct roce_rx *rx, uint32_t psn)
{
	counter_inc(&fabric_roce_rx_naks);
	count(rx->rq, RDMA_STAT_REQ_RX_SEQ_ERR);
	acknowledge(rx->rq, psn);
	rx->retry = true;
}

static void on_rnr(struct roce_rx *rx, uint32_t psn)
{
	struct rdma_msg *msg;

	if (!acknowledge(rx->rq, psn)) {
		note_gap(rx);
		return;
	}
	msg = find_message(rx->rq, psn);
	if (!msg)
		return;
	rx->rq->waiting = false;
	rdma_msg_not_ready(msg, rx->packet.fields.syndrome & 0x1f);
}

static void on_refusal(struct roce_rx *rx, uint32_t psn)
{
	static const enum rdma_status statuses[] = {RDMA_REM_INV_REQ_ERR, RDMA_REM_ACCESS_ERR,
	                                            RDMA_REM_OP_ERR};
	unsigned index = rx->packet.fields.syndrome - ROCE_SYNDROME_INVALID;
	struct rdma_msg *msg;

	acknowledge(rx->rq, psn);
	msg = find_message(rx->rq, psn);
	if (msg && index < ARRAY_SIZE(statuses))
		rdma_msg_done(msg, statuses[index]);
}

static void on_acknowledge(struct roce_rx *rx)
{
	uint8_t syndrome = rx->packet.fields.syndrome;
	uint32_t psn = rx->packet.fields.psn;

	if (syndrome < ROCE_SYNDROME_RNR)
		on_ack(rx, psn);
	else if (syndrome < 0x40)
		on_rnr(rx, psn);
	else if (syndrome == ROCE_SYNDROME_SEQUENCE)
		on_sequence_nak(rx, psn);
	else
		on_refusal(rx, psn);
}

/* The message that a response with data is for: the oldest that is not answered, at PSN. */
static struct rdma_msg *answered_message(struct roce_rx *rx, uint32_t psn)
{
	struct rdma_msg *msg;

	if (!acknowledge(rx->rq, psn)) {
		note_gap(rx);
		return NULL;
	}
	msg = psn == rx->rq->una ? find_message(rx->rq, psn) : NULL;
	/* fabric_word 0: it is about to be asked again; what comes now is not waited for */
	return msg && fetches(msg) && msg->fabric_word != 0 ? msg : NULL;
}

static void fetch_advance(struct roce_qp *rq, uint32_t psn)
{
	if (rq->fetched > 0)
		rq->fetched--;
	advance(rq, roce_psn_add(psn, 1));
}

static void on_read(struct roce_rx *rx)
{
	uint32_t psn = rx->packet.fields.psn, size = (uint32_t)rx->packet.size;
	unsigned shift = rx->attr->mtu_shift;
	struct rdma_msg *msg = answered_message(rx, psn);

	if (!msg || msg->req.opcode != RDMA_READ)
		return;
	uint32_t index = (psn - msg->req.psn) & ROCE_PSN_MASK;
	uint64_t offset = (uint64_t)index << shift;
	uint64_t left = offset < msg->req.length ? msg->req.length - offset : 0;

	if (size != (left < 1u << shift ? left : 1u << shift)) {
		counter_inc(&fabric_roce_rx_bad_size);
		rdma_msg_done(msg, RDMA_BAD_RESP_ERR);
		return;
	}
	if (msg->offset != offset)
		rdma_msg_seek(msg, (uint32_t)offset);
	if (size > 0 && rdma_msg_copy(msg, (void *)(uintptr_t)rx->packet.payload, size))
		return;
	msg->offset += size;
	fetch_advance(rx->rq, psn);
	if (index + 1 == msg->req.packets)
		rdma_msg_done(msg, RDMA_OK);
}

static void on_atomic(struct roce_rx *rx)
{
	uint32_t psn = rx->packet.fields.psn;
	struct rdma_msg *msg = answered_message(rx, psn);

	if (!msg || msg->req.opcode == RDMA_READ)
		return;
	if (rdma_msg_store_atomic(msg, rx->packet.fields.original))
		return;
	fetch_advance(rx->rq, psn);
	rdma_msg_done(msg, RDMA_OK);
}

static void (*const handlers[])(struct roce_rx *rx) = {
        [ROCE_READ_FIRST] = on_read, [ROCE_READ_MIDDLE] = on_read, [ROCE_READ_LAST] = on_read,
        [ROCE_READ_ONLY] = on_read,  [ROCE_ACK] = on_acknowledge,  [ROCE_ATOMIC_ACK] = on_atomic,
};

/* Whether PSN is of what was asked and has not been acknowledged. */
static bool in_question(const struct roce_qp *rq, uint32_t psn)
{
	return rq->started &&
	       ((psn - rq->una) & ROCE_PSN_MASK) < ((rq->newest - rq->una) & ROCE_PSN_MASK);
}

void roce_receive_response(struct roce_rx *rx)
{
	struct roce_qp *rq = rx->rq;
	uint32_t before = rq->una;

	if (!in_question(rq, rx->packet.fields.psn)) {
		counter_inc(&fabric_roce_rx_ghosts);
		return;
	}
	handlers[rx->packet.fields.opcode & ~ROCE_TRANSPORT_MASK](rx);
	if (rq->una != before)
		rdma_qp_progress(rq->qp);
	if (rx->retry) /* after the progress, which starts the timer anew */
		rdma_qp_retry(rq->qp);
	if (rq->waiting && roce_may_send(rq) && roce_may_fetch(rq)) {
		rq->waiting = false;
		rdma_qp_resume(rq->qp);
	}
}
