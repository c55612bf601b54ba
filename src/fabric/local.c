/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Destinations in this process: the payload goes from one QP's memory to the other's in one copy.
 *
 * A message is offered to its responder, then moved in as many turns as its budgets take, then
 * ended, and is answered in the same moment. There is no acknowledgement to lose, so the engine's
 * window is 1 and its timer only runs when nobody is there: the destination does not exist, or is
 * not in a state to answer; the engine then tries again until its retries are used up.
 *
 * A message that finds no receive is held: its QP waits, and is woken by the receive. Retries are
 * counted only for RNR periods that pass meanwhile (spec ionic-rdma 9.2).
 */
#include "fabric/fabric_internal.h"

#include <assert.h>
#include <string.h>

#include "base/counter.h"

COUNTER(fabric_local_gone, "messages in this process whose destination went away half-way");

/* rdma_msg.fabric_word: the message was accepted by its destination. */
enum { LOCAL_NEW, LOCAL_ACCEPTED };

void local_attach(struct local_net *net, struct rdma_dev *dev)
{
	assert(net->count < LOCAL_DEVICES_MAX);
	net->devices[net->count++] = dev;
}

void local_detach(struct local_net *net, struct rdma_dev *dev)
{
	for (unsigned i = 0; i < net->count; i++)
		if (net->devices[i] == dev)
			net->devices[i--] = net->devices[--net->count];
}

struct rdma_dev *local_find(const struct local_net *net, const struct rdma_msg *msg)
{
	struct rdma_dev *own = rdma_qp_dev(msg->qp);

	if (!msg->av)
		return NULL;
	if (rdma_dev_owns_mac(own, msg->av->dst_mac) ||
	    memcmp(msg->av->sgid, msg->av->dgid, sizeof(msg->av->dgid)) == 0)
		return own;
	for (unsigned i = 0; i < net->count; i++)
		if (net->devices[i] != own && rdma_dev_owns_mac(net->devices[i], msg->av->dst_mac))
			return net->devices[i];
	return NULL;
}

/* The destination did not take the message, or did not like its end. */
static enum rdma_tx answer(struct rdma_msg *msg, struct rdma_qp *receiver,
                           enum rdma_verdict verdict)
{
	msg->fabric_word = LOCAL_NEW;
	switch (verdict) {
	case RDMA_VERDICT_RNR:
		msg->rnr_timer = msg->inbound.rnr_timer;
		rdma_qp_await_recv(receiver, msg->qp);
		return RDMA_TX_RNR;
	case RDMA_VERDICT_DROP:
	case RDMA_VERDICT_DUPLICATE:
		return rdma_msg_unreachable(msg);
	default:
		rdma_msg_answered(msg, verdict);
		return RDMA_TX_SENT;
	}
}

static enum rdma_verdict offer(struct local_net *net, struct rdma_msg *msg,
                               struct rdma_qp **receiver)
{
	struct rdma_dev *dev = local_find(net, msg);

	*receiver = dev ? rdma_qp_find(dev, msg->req.dst_qpn) : NULL;
	if (!*receiver)
		return RDMA_VERDICT_DROP;
	return rdma_inbound_begin(&msg->inbound, *receiver, &msg->req);
}

/* ---- captures ---- */

static struct roce_trace trace_of(const struct local_net *net, const struct rdma_msg *msg,
                                  const struct rdma_qp *receiver)
{
	return (struct roce_trace){.wire = net->wire,
	                           .req = &msg->req,
	                           .av = msg->av,
	                           .mtu_shift = rdma_qp_attributes(msg->qp)->mtu_shift,
	                           .msn = rdma_qp_msn(receiver),
	                           .msg = msg};
}

/* What the receiver said to the message, or to its end. */
static void trace_verdict(const struct local_net *net, struct rdma_msg *msg,
                          const struct rdma_qp *receiver, enum rdma_verdict verdict)
{
	const struct rdma_request *req = &msg->req;
	uint32_t end = req->psn + req->packets;

	if (!net_wire_traces(net->wire) || req->transport != RDMA_QP_RC)
		return;
	struct roce_trace trace = trace_of(net, msg, receiver);

	if (verdict >= RDMA_VERDICT_INV_REQ)
		roce_trace_nak(&trace, msg->offset == 0 ? req->psn : end - 1, verdict, 0);
	else if (verdict == RDMA_VERDICT_OK && rdma_op_is_atomic(req->opcode))
		roce_trace_atomic(&trace, msg->inbound.atomic);
	else if (verdict == RDMA_VERDICT_OK && req->opcode != RDMA_READ)
		roce_trace_ack(&trace, end);
}

/* The message was taken, or refused before anything of it was moved. */
static void trace_offer(const struct local_net *net, struct rdma_msg *msg,
                        const struct rdma_qp *receiver, enum rdma_verdict verdict)
{
	bool fetch = rdma_op_fetches(msg->req.opcode);
	bool shown = verdict == RDMA_VERDICT_OK ? fetch : verdict >= RDMA_VERDICT_INV_REQ;

	if (!shown || !net_wire_traces(net->wire))
		return;
	struct roce_trace trace = trace_of(net, msg, receiver);

	roce_trace_begin(&trace);
	if (verdict != RDMA_VERDICT_OK)
		trace_verdict(net, msg, receiver, verdict);
}

static void trace_moved(const struct local_net *net, struct rdma_msg *msg, uint32_t before)
{
	if (!net_wire_traces(net->wire))
		return;
	struct roce_trace trace = trace_of(net, msg, msg->inbound.qp);

	roce_trace_moved(&trace, before, msg->offset);
}

/* ---- sending ---- */

static enum rdma_tx finish(struct local_net *net, struct rdma_msg *msg)
{
	struct rdma_qp *receiver = msg->inbound.qp;
	enum rdma_verdict verdict = rdma_inbound_end(&msg->inbound);

	trace_verdict(net, msg, receiver, verdict);
	if (verdict == RDMA_VERDICT_OK && net->landed)
		net->landed(net, msg);
	if (verdict == RDMA_VERDICT_OK && rdma_op_is_atomic(msg->req.opcode) &&
	    rdma_msg_store_atomic(msg, msg->inbound.atomic))
		return RDMA_TX_SENT;
	return answer(msg, receiver, verdict);
}

enum rdma_tx local_transmit(struct local_net *net, struct rdma_msg *msg, size_t *budget)
{
	const struct rdma_request *req = &msg->req;
	struct rdma_qp *receiver;

	if (msg->fabric_word == LOCAL_NEW) {
		enum rdma_verdict verdict = offer(net, msg, &receiver);

		if (!receiver)
			return rdma_msg_unreachable(msg);
		trace_offer(net, msg, receiver, verdict);
		if (verdict != RDMA_VERDICT_OK)
			return answer(msg, receiver, verdict);
		msg->fabric_word = LOCAL_ACCEPTED;
	} else if (!msg->inbound.qp) {
		counter_inc(&fabric_local_gone); /* when sent again, it starts over */
		return answer(msg, NULL, RDMA_VERDICT_DROP);
	}
	size_t left = rdma_op_is_atomic(req->opcode) ? 0 : req->length - msg->offset;
	size_t part = left < *budget ? left : *budget;

	if (req->transport == RDMA_QP_UD) /* is never left half-way: its address may go */
		part = left;

	/* GSI datagrams carry the connection manager: patterns would only break it */
	rdma_copy_fn *copy = req->dst_qpn == RDMA_QPN_GSI ? NULL : net->copy;

	uint32_t before = msg->offset;

	if (rdma_msg_move(msg, part, copy, msg))
		return RDMA_TX_SENT;
	trace_moved(net, msg, before);
	*budget -= part < *budget ? part : *budget;
	return part < left ? RDMA_TX_MORE : finish(net, msg);
}
