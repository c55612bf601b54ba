/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester: from messages to request packets.
 *
 * rdma_msg.fabric_word is 0 for a message that is new or rewound, else 1 + the index of the packet
 * that comes next. What the peer has acknowledged of a message that is sent again is skipped: it
 * resumes in the middle (spec rocev2 9.4), a READ with what is still missing of it.
 */
#include <assert.h>

#include "base/counter.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_tx_again, "request packets sent again");

/* What kind of packets an opcode of the engine becomes. */
static const struct {
	uint8_t first, middle, last, only;
} packets[RDMA_OPCODES] = {
        [RDMA_SEND] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST, ROCE_SEND_ONLY},
        [RDMA_SEND_INV] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST_INV,
                           ROCE_SEND_ONLY_INV},
        [RDMA_SEND_IMM] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST_IMM,
                           ROCE_SEND_ONLY_IMM},
        [RDMA_WRITE] = {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST, ROCE_WRITE_ONLY},
        [RDMA_WRITE_IMM] = {ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST_IMM,
                            ROCE_WRITE_ONLY_IMM},
        [RDMA_READ] = {.only = ROCE_READ_REQUEST},
        [RDMA_CMP_SWAP] = {.only = ROCE_CMP_SWAP},
        [RDMA_FETCH_ADD] = {.only = ROCE_FETCH_ADD},
};

static const uint8_t transports[RDMA_QP_TYPES] = {
        [RDMA_QP_RC] = ROCE_RC, [RDMA_QP_UC] = ROCE_UC, [RDMA_QP_UD] = ROCE_UD};

/* The window holds what the network has to hold at once: request packets. */
bool roce_may_send(const struct roce_qp *rq)
{
	return ((rq->next - rq->una) & ROCE_PSN_MASK) - rq->fetched < rq->window;
}

/* As many READs as the engine allows, but one at a time while lost ones are asked for again: a peer
 * that is slow would else send all of their answers once more for every timeout. */
bool roce_may_fetch(const struct roce_qp *rq)
{
	return !rq->recovering || rq->fetched == 0;
}

void roce_requester_rewind(struct roce_qp *rq)
{
	rq->recovering = rq->newest != rq->una;
	rq->recover = rq->newest;
	roce_rate_lost(rq);
	rq->next = rq->una;
	rq->fetched = 0;
	rq->unasked = 0;
	rq->waiting = false;
}

static void fill_fields(const struct rdma_request *req, struct roce_fields *fields)
{
	*fields = (struct roce_fields){
	        .solicited = req->solicited,
	        .qpn = req->dst_qpn,
	        .src_qpn = req->src_qpn,
	        .psn = req->psn,
	        .va = req->va,
	        .rkey = req->rkey,
	        .length = req->length,
	        .qkey = req->qkey,
	        .swap_add = req->swap_add,
	        .compare = req->compare,
	        .imm = req->imm,
	        .inv_key = req->inv_key,
	};
}

/* The opcode of packet INDEX. */
static uint8_t opcode_of(const struct rdma_request *req, uint32_t index)
{
	uint8_t transport = transports[req->transport];

	if (req->packets == 1 || rdma_op_fetches(req->opcode))
		return transport | packets[req->opcode].only;
	if (index == 0)
		return transport | packets[req->opcode].first;
	return transport | (index == req->packets - 1 ? packets[req->opcode].last
	                                              : packets[req->opcode].middle);
}

/* Payload bytes of packet INDEX of a message with a path MTU of 2^SHIFT. */
static uint32_t size_of(const struct rdma_request *req, uint32_t index, unsigned shift)
{
	uint64_t offset = (uint64_t)index << shift;
	uint32_t mtu = 1u << shift;

	if (offset >= req->length)
		return 0;
	return req->length - offset < mtu ? req->length - (uint32_t)offset : mtu;
}

uint32_t roce_packet_fields(const struct rdma_request *req, unsigned shift, uint32_t index,
                            struct roce_fields *fields)
{
	fill_fields(req, fields);
	fields->opcode = opcode_of(req, index);
	fields->psn = roce_psn_add(req->psn, index);
	fields->solicited = fields->solicited && index + 1 == req->packets;
	return req->transport == RDMA_QP_UD ? req->length : size_of(req, index, shift);
}

/* The same for a message of one of our queue pairs. */
static uint32_t request_fields(const struct rdma_msg *msg, uint32_t index,
                               struct roce_fields *fields)
{
	return roce_packet_fields(&msg->req, rdma_qp_attributes(msg->qp)->mtu_shift, index, fields);
}

static void note_sent(struct roce_qp *rq, uint32_t psn, uint32_t count)
{
	if (roce_psn_diff(rq->newest, psn) > 0)
		counter_inc(&fabric_roce_tx_again);
	rq->next = roce_psn_add(psn, count);
	if (roce_psn_diff(rq->next, rq->newest) > 0)
		rq->newest = rq->next;
}

/* ---- SEND and WRITE ---- */

static bool asks_for_ack(struct roce_qp *rq, const struct rdma_msg *msg, uint32_t index)
{
	if (msg->req.transport != RDMA_QP_RC)
		return false;
	uint32_t every = rq->window / 2 < ROCE_ACK_EVERY ? rq->window / 2 : ROCE_ACK_EVERY;

	/* twice in a window at least, or a small one would fill up with nobody being asked */
	if (index + 1 < msg->req.packets && ++rq->unasked < every)
		return false;
	rq->unasked = 0;
	return true;
}

/* Adds packet INDEX. Returns false when the local memory failed: then the message is done. */
static bool add_packet(struct roce_qp *rq, struct rdma_msg *msg, uint32_t index)
{
	struct roce_fields fields;
	uint32_t size = request_fields(msg, index, &fields);

	fields.ack_request = asks_for_ack(rq, msg, index);
	uint8_t *payload = roce_tx_begin(rq->roce, msg->av, &fields, size);
	uint32_t offset = index << rdma_qp_attributes(msg->qp)->mtu_shift;

	if (size > 0 && msg->offset != offset)
		rdma_msg_seek(msg, offset);
	if (size > 0 && rdma_msg_copy(msg, payload, size))
		return false;
	msg->offset += size;
	roce_tx_add(rq->roce);
	note_sent(rq, fields.psn, 1);
	return true;
}

static enum rdma_tx send_payload(struct roce_qp *rq, struct rdma_msg *msg, size_t *budget)
{
	unsigned shift = rdma_qp_attributes(msg->qp)->mtu_shift;
	bool reliable = msg->req.transport == RDMA_QP_RC;
	uint32_t index;

	while ((index = msg->fabric_word - 1) < msg->req.packets) {
		uint32_t size = size_of(&msg->req, index, shift);

		if (reliable && !roce_may_send(rq)) {
			rq->waiting = true;
			return RDMA_TX_WAIT;
		}
		if (*budget == 0)
			return RDMA_TX_MORE;
		if (!add_packet(rq, msg, index))
			return RDMA_TX_SENT;
		*budget -= size < *budget ? size : *budget;
		msg->fabric_word++;
	}
	if (reliable)
		return RDMA_TX_SENT;
	rq->una = rq->next; /* nobody will answer */
	rdma_msg_done(msg, RDMA_OK);
	return RDMA_TX_SENT;
}

/* ---- READ and atomics ---- */

static enum rdma_tx send_fetch(struct roce_qp *rq, struct rdma_msg *msg)
{
	uint32_t skip = msg->fabric_word - 1, left = msg->req.packets - skip;
	uint64_t offset = (uint64_t)skip << rdma_qp_attributes(msg->qp)->mtu_shift;
	struct roce_fields fields;

	if (!roce_may_fetch(rq)) {
		rq->waiting = true;
		return RDMA_TX_WAIT;
	}
	request_fields(msg, skip, &fields);
	fields.solicited = false;
	fields.ack_request = true;
	if (offset < fields.length) { /* else: the path MTU was changed meanwhile */
		fields.va += offset;
		fields.length -= (uint32_t)offset;
	}
	roce_tx_begin(rq->roce, msg->av, &fields, 0);
	roce_tx_add(rq->roce);
	note_sent(rq, fields.psn, left);
	rq->fetched += left;
	return RDMA_TX_SENT;
}

/* ---- datagrams ---- */

static enum rdma_tx send_datagram(struct roce *roce, struct rdma_msg *msg, size_t *budget)
{
	struct roce_fields fields;
	uint32_t size = request_fields(msg, 0, &fields);
	uint8_t *payload = roce_tx_begin(roce, msg->av, &fields, size);

	if (size > 0 && rdma_msg_copy(msg, payload, size))
		return RDMA_TX_SENT;
	roce_tx_add(roce);
	*budget -= size < *budget ? size : *budget;
	rdma_msg_done(msg, RDMA_OK);
	return RDMA_TX_SENT;
}

/* ---- any ---- */

/* Goes on behind what is acknowledged. Returns false when that is all of the message. */
static bool resume_message(struct roce_qp *rq, struct rdma_msg *msg)
{
	int32_t ahead = roce_psn_diff(rq->una, msg->req.psn);
	uint32_t skip = ahead > 0 ? (uint32_t)ahead : 0;

	if (msg->fabric_word > skip)
		return true;
	if (skip >= msg->req.packets)
		return false;
	msg->fabric_word = 1 + skip;
	return true;
}

enum rdma_tx roce_transmit_packets(struct roce *roce, struct rdma_msg *msg, size_t *budget)
{
	if (!msg->av)
		return rdma_msg_unreachable(msg);
	if (msg->req.transport == RDMA_QP_UD)
		return send_datagram(roce, msg, budget);
	struct roce_qp *rq = roce_qp_get(roce, msg->qp);

	if (!rq)
		return rdma_msg_unreachable(msg);
	if (!rq->started) {
		rq->started = true;
		rq->una = rq->next = rq->newest = msg->req.psn;
	}
	if (!resume_message(rq, msg)) {
		rdma_msg_done(msg, RDMA_OK);
		return RDMA_TX_SENT;
	}
	return rdma_op_fetches(msg->req.opcode) ? send_fetch(rq, msg)
	                                        : send_payload(rq, msg, budget);
}
