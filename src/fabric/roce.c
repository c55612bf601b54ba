/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RoCEv2 fabric: messages become packets on the emulated wire, and come back from it.
 *
 * Theory of operation
 *
 * Goal: to be a RoCEv2 NIC for every other: Soft-RoCE, hardware, itself, across any IP network.
 * Facts about the protocol are those of spec rocev2; sections named in comments are its.
 *
 * Place. The fabric shares the port "guest" of the wire: packets to the NIC's MAC and UDP port 4791
 * are taken before the Ethernet queues see them, as long as the device has any QP; packets leave as
 * if the guest had sent them, with the headers that the driver gave (its template holds everything
 * up to UDP). ARP and IPv6 neighbours are the guest's own business. What the NIC addresses to
 *itself stays in the process (local.c).
 *
 *	transmit() -> roce_req.c -----> roce_tx.c -> wire
 *	wire -> take() -> response ---> roce_comp.c -> rdma_msg_done(), retry, not ready
 *	               -> request ----> roce_resp.c -> rdma_inbound_*(), then roce_reply.c -> wire
 *	               -> datagram ---> roce_resp.c -> rdma_inbound_*()
 *
 * Contexts. Everything happens in the work phase of the loop: the TAP reads there too. Answers are
 * not sent from inside take(), but by the fabric's own work in the same turn or the next: so a
 * batch of packets costs one acknowledgement, and no frame is sent from inside another's delivery.
 * Frames gather in a batch and leave when it is full or the turn ends.
 *
 * State. Per QP and in the requester: una, the oldest PSN that is not acknowledged, and next. All
 * packets of una..next may be asked for again; what was sent is not kept, but made anew from the
 * message (go-back-N). Timer and retry counters are the engine's. In the responder: the PSN that is
 * expected (the engine's, between messages), the message that is landing, the READs and atomics
 * that are being answered or remembered, and what is to be acknowledged.
 *
 * Failures. A packet that breaks the rules of the wire is dropped and counted; one that breaks
 *those of a QP ends that QP with the NAK that the architecture wants (8.2). A peer that is gone
 *costs its QPs their retries. Memory per QP is fixed: the window of the engine, and as many
 *remembered READs as the QP allows.
 *
 * Not done: end-to-end credits (all are offered, none looked at), automatic path migration, XRC,
 * RD, multicast, FLUSH and ATOMIC WRITE, fragments. A request that ends its QP while a long READ
 * before it is still being answered ends that answer too; its requester sees retries exceeded.
 */
#include "fabric/fabric_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/iov.h"
#include "fabric/roce_internal.h"

COUNTER(fabric_roce_rx_packets, "RoCEv2 packets taken from the wire");
COUNTER(fabric_roce_rx_bad_length,
        "RoCEv2 packets cut short, fragmented, or of contradicting lengths");
COUNTER(fabric_roce_rx_bad_opcode, "RoCEv2 packets with an unknown opcode or version");
COUNTER(fabric_roce_rx_bad_icrc, "RoCEv2 packets damaged on the way");
COUNTER(fabric_roce_rx_bad_pkey, "RoCEv2 packets of another partition");
COUNTER(fabric_roce_rx_no_qp, "RoCEv2 packets for no QP, or one of another type or not ready");
COUNTER(fabric_roce_rx_stranger,
        "RoCEv2 packets for a connected QP from another address than its peer's");

static struct roce *roce_from(struct rdma_fabric *fabric)
{
	return container_of(fabric, struct roce, base);
}

/* ---- queue pairs ---- */

struct roce_qp *roce_qp_get(struct roce *roce, struct rdma_qp *qp)
{
	void **slot = rdma_qp_fabric_slot(qp);
	struct roce_qp *rq = *slot;

	if (rq)
		return rq;
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		return NULL;
	rq->roce = roce;
	rq->qp = qp;
	TAILQ_INIT(&rq->answers);
	roce_rate_reset(rq);
	*slot = rq;
	return rq;
}

void roce_qp_due(struct roce_qp *rq)
{
	struct roce *roce = rq->roce;

	if (rq->on_due)
		return;
	rq->on_due = true;
	roce->due_count++;
	TAILQ_INSERT_TAIL(&roce->due, rq, due);
	loop_schedule(roce->loop, &roce->work);
}

static void not_due(struct roce_qp *rq)
{
	if (!rq->on_due)
		return;
	rq->on_due = false;
	rq->roce->due_count--;
	TAILQ_REMOVE(&rq->roce->due, rq, due);
}

/* Nothing of it is under way any more. */
static void qp_clear(struct roce_qp *rq)
{
	rdma_inbound_cancel(&rq->in);
	for (uint32_t i = 0; i < (rq->fetches ? rq->fetch_count : 0); i++) {
		rdma_inbound_cancel(&rq->fetches[i].in);
		rq->fetches[i].queued = false;
		rq->fetches[i].req.packets = 0; /* not remembered */
	}
	TAILQ_INIT(&rq->answers);
	rq->landing = 0;
	rq->reply = ROCE_REPLY_NONE;
	rq->gap_told = rq->gap_seen = rq->cnp_due = false;
	rq->started = rq->waiting = rq->recovering = false;
	rq->fetched = 0;
	roce_rate_reset(rq);
}

static void qp_free(struct roce_qp *rq)
{
	not_due(rq);
	*rdma_qp_fabric_slot(rq->qp) = NULL;
	free(rq->fetches);
	free(rq);
}

/* ---- answers ---- */

static void roce_run(struct loop_work *work)
{
	struct roce *roce = container_of(work, struct roce, work);
	struct roce_qp *rq;

	/* those with more to say are at the end by then, for the next turn */
	for (unsigned left = roce->due_count; left > 0 && (rq = TAILQ_FIRST(&roce->due)); left--) {
		not_due(rq);
		roce->busy = rq;
		bool more = roce_answer(rq);

		roce->busy = NULL;
		if (more)
			roce_qp_due(rq);
	}
	roce_tx_flush(roce);
}

/* ---- incoming packets ---- */

/* Whether the addresses are those of the QP's own template, the other way round. */
static bool from_peer(const struct rdma_av *av, const struct roce_packet *packet)
{
	const uint8_t *own = av->header + (av->vlan ? 18 : 14);
	size_t size = av->ip_version == 4 ? 4 : 16, at = av->ip_version == 4 ? 12 : 8;

	return av->ip_version == packet->ip_version &&
	       memcmp(packet->ip + at, own + at + size, size) == 0 &&
	       memcmp(packet->ip + at + size, own + at, size) == 0;
}

static bool takes_packet(const struct roce_rx *rx)
{
	enum rdma_qp_state state = rdma_qp_state(rx->qp);

	if (rx->packet.flags & ROCE_IS_RESPONSE)
		return state == RDMA_QPS_RTS || state == RDMA_QPS_SQD;
	return state == RDMA_QPS_RTR || state == RDMA_QPS_RTS || state == RDMA_QPS_SQD ||
	       state == RDMA_QPS_SQE;
}

static bool type_fits(const struct roce_rx *rx)
{
	enum rdma_qp_type type = rdma_qp_type(rx->qp);

	switch (rx->packet.fields.opcode & ROCE_TRANSPORT_MASK) {
	case ROCE_RC:
		return type == RDMA_QP_RC;
	case ROCE_UC:
		return type == RDMA_QP_UC;
	case ROCE_UD:
		return type == RDMA_QP_UD;
	default: /* a notification */
		return type != RDMA_QP_UD;
	}
}

static void receive_connected(struct roce_rx *rx)
{
	if (rx->packet.flags & ROCE_IS_CNP)
		roce_rate_notified(rx->rq);
	else if (rx->packet.flags & ROCE_IS_RESPONSE)
		roce_receive_response(rx);
	else
		roce_receive_request(rx);
	/* unless that was its end */
	if (rx->packet.congested && takes_packet(rx) && !(rx->packet.flags & ROCE_IS_CNP))
		roce_rate_marked(rx->rq);
}

/* A packet that is in order as such, for the QP that it names. */
static void receive_for_qp(struct roce_rx *rx, const uint8_t *frame)
{
	size_t headers = rx->packet.link_size + (rx->packet.ip_version == 4 ? 28 : 48);

	if (!takes_packet(rx) || !type_fits(rx)) {
		counter_inc(&fabric_roce_rx_no_qp);
		return;
	}
	if (rdma_qp_type(rx->qp) != RDMA_QP_UD && !from_peer(&rx->attr->av, &rx->packet)) {
		counter_inc(&fabric_roce_rx_stranger);
		return;
	}
	if (rx->packet.flags & ROCE_STARTS && rdma_av_parse(frame, headers, &rx->roce->rx_av))
		return;
	if (rdma_qp_type(rx->qp) == RDMA_QP_UD) {
		roce_receive_datagram(rx);
		return;
	}
	rx->rq = roce_qp_get(rx->roce, rx->qp);
	if (!rx->rq)
		return;
	rx->roce->busy = rx->rq;
	receive_connected(rx);
	rx->roce->busy = NULL;
}

static void receive_packet(struct roce *roce, struct rdma_dev *dev, const uint8_t *frame,
                           size_t size)
{
	static struct counter *const faults[] = {
	        [ROCE_NOT_ROCE] = &fabric_roce_rx_bad_length,
	        [ROCE_BAD_LENGTH] = &fabric_roce_rx_bad_length,
	        [ROCE_BAD_OPCODE] = &fabric_roce_rx_bad_opcode,
	        [ROCE_BAD_VERSION] = &fabric_roce_rx_bad_opcode,
	        [ROCE_BAD_ICRC] = &fabric_roce_rx_bad_icrc,
	};
	struct roce_rx rx = {.roce = roce};
	enum roce_verdict verdict = roce_parse(frame, size, &rx.packet);

	counter_inc(&fabric_roce_rx_packets);
	if (verdict != ROCE_OK) {
		counter_inc(faults[verdict]);
		return;
	}
	if ((rx.packet.fields.pkey & 0x7fff) != (ROCE_PKEY & 0x7fff)) {
		counter_inc(&fabric_roce_rx_bad_pkey);
		return;
	}
	rx.qp = rdma_qp_find(dev, rx.packet.fields.qpn);
	if (!rx.qp) {
		counter_inc(&fabric_roce_rx_no_qp);
		return;
	}
	rx.attr = rdma_qp_attributes(rx.qp);
	receive_for_qp(&rx, frame);
}

/* The device that a frame to MAC is for, if it has anything to receive with. */
static struct rdma_dev *find_device(struct roce *roce, const uint8_t *mac)
{
	for (unsigned i = 0; i < roce->net.count; i++)
		if (rdma_dev_in_use(roce->net.devices[i]) &&
		    rdma_dev_owns_mac(roce->net.devices[i], mac))
			return roce->net.devices[i];
	return NULL;
}

/* The frame in one piece with its tag in it, or NULL when it is too large for any packet. */
static const uint8_t *frame_bytes(struct roce *roce, const struct net_frame *frame, size_t *size)
{
	size_t tag = frame->vlan ? NET_VLAN_HEADER : 0;
	uint8_t *out = roce->rx_bytes;

	*size = frame->size + tag;
	if (frame->iov_count == 1 && !tag)
		return frame->iov[0].iov_base;
	if (*size > sizeof(roce->rx_bytes))
		return NULL;
	iov_to_buf(frame->iov, frame->iov_count, 0, out, 12);
	if (tag)
		memcpy(out + 12,
		       (uint8_t[]){0x81, 0, (uint8_t)(frame->vlan_tci >> 8),
		                   (uint8_t)frame->vlan_tci},
		       tag);
	iov_to_buf(frame->iov, frame->iov_count, 12, out + 12 + tag, frame->size - 12);
	return out;
}

static bool roce_take(struct net_sharer *sharer, const struct net_frame *frame)
{
	struct roce *roce = container_of(sharer, struct roce, sharer);
	struct rdma_dev *dev;
	size_t size;

	if (frame->gso != NET_GSO_NONE || frame->csum_partial)
		return false;
	/* most frames are none of ours, as their first piece tells */
	if (frame->iov[0].iov_len >= RDMA_TEMPLATE_MAX &&
	    !roce_is_packet(frame->iov[0].iov_base, frame->iov[0].iov_len))
		return false;
	const uint8_t *bytes = frame_bytes(roce, frame, &size);

	if (!bytes || !roce_is_packet(bytes, size))
		return false;
	dev = find_device(roce, bytes);
	if (!dev)
		return false;
	receive_packet(roce, dev, bytes, size);
	return true;
}

/* ---- what the engine calls ---- */

static enum rdma_tx roce_transmit(struct rdma_fabric *fabric, struct rdma_msg *msg, size_t *budget)
{
	struct roce *roce = roce_from(fabric);

	if (local_find(&roce->net, msg))
		return local_transmit(&roce->net, msg, budget);
	return roce_transmit_packets(roce, msg, budget);
}

static void roce_rewind(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	struct roce_qp *rq = *rdma_qp_fabric_slot(qp);

	(void)fabric;
	if (rq)
		roce_requester_rewind(rq);
}

static void roce_forget(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	struct roce_qp *rq = *rdma_qp_fabric_slot(qp);

	if (!rq)
		return;
	bool busy = rq == roce_from(fabric)->busy;

	/* the guest has seen the message complete and ends its QP; the peer waits for the word */
	if (!busy)
		roce_answer_last(rq);
	qp_clear(rq);
	if (!busy) /* else it has to say why, and goes at the next call */
		qp_free(rq);
}

static void roce_turn_ended(struct rdma_fabric *fabric)
{
	roce_tx_flush(roce_from(fabric));
}

static void roce_attach(struct rdma_fabric *fabric, struct rdma_dev *dev)
{
	local_attach(&roce_from(fabric)->net, dev);
}

static void roce_detach(struct rdma_fabric *fabric, struct rdma_dev *dev)
{
	local_detach(&roce_from(fabric)->net, dev);
}

static const struct rdma_fabric_ops roce_ops = {
        .name = "roce",
        .window = 32,
        .transmit = roce_transmit,
        .rewind = roce_rewind,
        .forget = roce_forget,
        .turn_ended = roce_turn_ended,
        .attach = roce_attach,
        .detach = roce_detach,
};

static int roce_create(const struct fabric_place *place, const char *options,
                       struct rdma_fabric **fabric, char *error, size_t size)
{
	if (options) {
		snprintf(error, size, "unknown option '%s' (roce has no options)", options);
		return -EINVAL;
	}
	struct roce *roce = calloc(1, sizeof(*roce));

	if (!roce)
		return -ENOMEM;
	roce->base.ops = &roce_ops;
	roce->loop = place->loop;
	roce->net.wire = place->wire;
	roce->work.run = roce_run;
	TAILQ_INIT(&roce->due);
	roce->sharer = (struct net_sharer){.port_name = "guest", .take = roce_take};
	if (place->wire && net_wire_share(place->wire, &roce->sharer)) {
		free(roce);
		return -ENOMEM;
	}
	*fabric = &roce->base;
	return 0;
}

static void roce_destroy(struct rdma_fabric *fabric)
{
	struct roce *roce = roce_from(fabric);

	net_wire_unshare(&roce->sharer);
	if (roce->loop)
		loop_cancel(roce->loop, &roce->work);
	free(roce);
}

const struct fabric_kind fabric_roce = {
        .name = "roce", .create = roce_create, .destroy = roce_destroy, .ops = &roce_ops};
