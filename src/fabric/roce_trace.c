/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages that stay in the process, as the RoCEv2 packets that they would have been: for captures
 * only. A message is shown when it has been executed, in one go: its request packets, then its
 * answer. Payload is read once more, from the memory at its origin.
 */
#include <string.h>

#include "fabric/roce_internal.h"

struct trace {
	struct net_wire *wire;
	struct rdma_msg *msg;
	struct rdma_qp *receiver;
	uint8_t frame[ROCE_FRAME_MAX];
};

/* Shows a packet to AV, with SIZE bytes that begin at payload byte OFFSET of the message. */
static void show(struct trace *trace, const struct rdma_av *av, const struct roce_fields *fields,
                 uint32_t offset, uint32_t size)
{
	size_t link = av->vlan ? 18 : 14;
	uint8_t *payload = roce_frame_begin(trace->frame, av, fields, size);

	/* what has gone from there meanwhile is shown as zeros */
	if (size > 0 && rdma_msg_peek(trace->msg, offset, payload, size))
		memset(payload, 0, size);
	size_t end = (size_t)(payload - trace->frame) + size;
	struct iovec iov = {trace->frame, roce_seal(trace->frame, link, end, 0)};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = iov.iov_len};

	net_wire_trace(trace->wire, &frame);
}

static void show_request(struct trace *trace)
{
	const struct rdma_msg *msg = trace->msg;
	bool reliable = msg->req.transport == RDMA_QP_RC;
	unsigned shift = rdma_qp_attributes(msg->qp)->mtu_shift;
	uint32_t count = roce_is_fetch(&msg->req) ? 1 : msg->req.packets;
	struct roce_fields fields;

	for (uint32_t index = 0; index < count; index++) {
		uint32_t size = roce_request_fields(msg, index, &fields);

		fields.ack_request = reliable && index + 1 == count;
		show(trace, msg->av, &fields, index << shift, roce_is_fetch(&msg->req) ? 0 : size);
	}
}

static void fill_answer(const struct trace *trace, struct roce_fields *fields)
{
	const struct rdma_request *req = &trace->msg->req;

	*fields = (struct roce_fields){.opcode = ROCE_ACK,
	                               .qpn = req->src_qpn,
	                               .src_qpn = req->dst_qpn,
	                               .psn = req->psn,
	                               .msn = rdma_qp_msn(trace->receiver),
	                               .syndrome = ROCE_SYNDROME_ACK};
}

static void show_read_answer(struct trace *trace, const struct rdma_av *av)
{
	const struct rdma_msg *msg = trace->msg;
	uint32_t count = msg->req.packets;
	unsigned shift = rdma_qp_attributes(msg->qp)->mtu_shift;
	struct roce_fields fields, request;

	fill_answer(trace, &fields);
	for (uint32_t index = 0; index < count; index++) {
		uint32_t size = roce_request_fields(msg, index, &request);

		fields.psn = roce_psn_add(msg->req.psn, index);
		if (count == 1)
			fields.opcode = ROCE_READ_ONLY;
		else if (index + 1 == count)
			fields.opcode = ROCE_READ_LAST;
		else
			fields.opcode = index == 0 ? ROCE_READ_FIRST : ROCE_READ_MIDDLE;
		show(trace, av, &fields, index << shift, size);
	}
}

static void show_answer(struct trace *trace, enum rdma_verdict verdict)
{
	const struct rdma_av *av = &rdma_qp_attributes(trace->receiver)->av;
	const struct rdma_request *req = &trace->msg->req;
	struct roce_fields fields;

	if (req->transport != RDMA_QP_RC || av->ip_version == 0)
		return;
	if (verdict == RDMA_VERDICT_OK && req->opcode == RDMA_READ) {
		show_read_answer(trace, av);
		return;
	}
	fill_answer(trace, &fields);
	fields.psn = roce_psn_add(req->psn, req->packets - 1);
	if (verdict != RDMA_VERDICT_OK) {
		fields.syndrome = roce_syndrome(verdict);
	} else if (roce_is_fetch(req)) {
		fields.opcode = ROCE_ATOMIC_ACK;
		fields.original = trace->msg->inbound.atomic;
	}
	show(trace, av, &fields, 0, 0);
}

void roce_trace(struct net_wire *wire, struct rdma_msg *msg, struct rdma_qp *receiver,
                enum rdma_verdict verdict)
{
	struct trace trace = {.wire = wire, .msg = msg, .receiver = receiver};

	show_request(&trace);
	show_answer(&trace, verdict);
}
