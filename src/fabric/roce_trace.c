/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages that are no packets, as the RoCEv2 packets that they would have been: for captures only.
 * A packet is shown when all of its payload has been moved, so that a long message takes as many
 * turns to show as it takes to move. Its payload is read once more, from the memory it came from or
 * went to; what has gone from there meanwhile is shown as zeros.
 *
 * Only the requester's header template is known on both sides. Answers go the other way: theirs is
 * the same with its ends swapped.
 */
#include <string.h>

#include "fabric/roce_internal.h"

static void swap(uint8_t *a, uint8_t *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* Turns the link and IP headers round. */
static void turn(uint8_t *frame, size_t link, uint8_t ip_version)
{
	uint8_t *ip = frame + link;

	swap(frame, frame + 6, 6);
	if (ip_version == 4)
		swap(ip + 12, ip + 16, 4);
	else
		swap(ip + 8, ip + 24, 16);
}

static int peek(const struct roce_trace *trace, uint32_t offset, void *buf, size_t size)
{
	return trace->msg ? rdma_msg_peek(trace->msg, offset, buf, size)
	                  : rdma_inbound_peek(trace->in, offset, buf, size);
}

/* Shows a packet with SIZE bytes that begin at payload byte OFFSET of the message. */
static void show(const struct roce_trace *trace, const struct roce_fields *fields, uint32_t offset,
                 uint32_t size)
{
	uint16_t flags = roce_op_flags(fields->opcode);
	bool answer = (flags & ROCE_IS_RESPONSE) != 0;
	size_t link = trace->av->vlan ? 18 : 14;
	uint8_t frame[ROCE_FRAME_MAX];

	if (flags == 0) /* no packet could be that: a peer asks for what its transport has not */
		return;
	uint8_t *payload = roce_frame_begin(frame, trace->av, fields, size);

	if (answer)
		turn(frame, link, trace->av->ip_version);
	if (size > 0 && peek(trace, offset, payload, size))
		memset(payload, 0, size);
	size_t end = (size_t)(payload - frame) + size;
	struct iovec iov = {frame, roce_seal(frame, link, end, 0)};
	struct net_frame shown = {.iov = &iov, .iov_count = 1, .size = iov.iov_len};

	net_wire_trace(trace->wire, &shown, answer ? trace->to_peer : trace->from_peer);
}

/* ---- requests ---- */

static void show_request(const struct roce_trace *trace, uint32_t index)
{
	const struct rdma_request *req = trace->req;
	struct roce_fields fields;
	uint32_t size = roce_packet_fields(req, trace->mtu_shift, index, &fields);
	bool fetch = rdma_op_fetches(req->opcode);

	fields.ack_request = req->transport == RDMA_QP_RC && (fetch || index + 1 == req->packets);
	show(trace, &fields, index << trace->mtu_shift, fetch ? 0 : size);
}

void roce_trace_begin(const struct roce_trace *trace)
{
	show_request(trace, 0);
}

/* ---- answers ---- */

static struct roce_fields answer_fields(const struct roce_trace *trace, uint8_t opcode,
                                        uint32_t psn)
{
	return (struct roce_fields){.opcode = opcode,
	                            .qpn = trace->req->src_qpn,
	                            .src_qpn = trace->req->dst_qpn,
	                            .psn = psn & ROCE_PSN_MASK,
	                            .msn = trace->msn,
	                            .syndrome = ROCE_SYNDROME_ACK};
}

static void show_read_answer(const struct roce_trace *trace, uint32_t index)
{
	const struct rdma_request *req = trace->req;
	struct roce_fields request, fields;
	uint32_t size = roce_packet_fields(req, trace->mtu_shift, index, &request);
	uint8_t opcode = ROCE_READ_MIDDLE;

	if (req->packets == 1)
		opcode = ROCE_READ_ONLY;
	else if (index == 0)
		opcode = ROCE_READ_FIRST;
	else if (index + 1 == req->packets)
		opcode = ROCE_READ_LAST;
	fields = answer_fields(trace, opcode, request.psn);
	show(trace, &fields, index << trace->mtu_shift, size);
}

void roce_trace_moved(const struct roce_trace *trace, uint32_t before, uint32_t now)
{
	const struct rdma_request *req = trace->req;
	uint32_t end = now >> trace->mtu_shift;

	if (before == now && req->length > 0)
		return;
	if (now == req->length && (now == 0 || end << trace->mtu_shift < now))
		end++;          /* the last, which is short */
	if (end > req->packets) /* a datagram; or the path MTU was changed meanwhile */
		end = req->packets;
	for (uint32_t index = before >> trace->mtu_shift; index < end; index++) {
		if (req->opcode == RDMA_READ)
			show_read_answer(trace, index);
		else
			show_request(trace, index);
	}
}

void roce_trace_ack(const struct roce_trace *trace, uint32_t psn)
{
	struct roce_fields fields =
	        answer_fields(trace, ROCE_ACK, roce_psn_add(psn, ROCE_PSN_MASK));

	show(trace, &fields, 0, 0);
}

void roce_trace_atomic(const struct roce_trace *trace, uint64_t value)
{
	struct roce_fields fields = answer_fields(trace, ROCE_ATOMIC_ACK, trace->req->psn);

	fields.original = value;
	show(trace, &fields, 0, 0);
}

void roce_trace_nak(const struct roce_trace *trace, uint32_t psn, enum rdma_verdict verdict,
                    uint8_t rnr_timer)
{
	struct roce_fields fields = answer_fields(trace, ROCE_ACK, psn);

	fields.syndrome = verdict == RDMA_VERDICT_RNR ? ROCE_SYNDROME_RNR | (rnr_timer & 0x1f)
	                                              : roce_syndrome(verdict);
	show(trace, &fields, 0, 0);
}
