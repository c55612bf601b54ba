/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages between nodes as the RoCEv2 packets that they would have been, for captures: at their
 * origin as they leave, at their destination as they land. Answers are shown one a message.
 */
#include "fabric/mesh_internal.h"
#include "net/roce_headers.h"

/* ---- of our queue pairs ---- */

static struct roce_trace ours(const struct mesh *mesh, const struct rdma_msg *msg, uint32_t msn)
{
	return (struct roce_trace){.wire = mesh->net.wire,
	                           .req = &msg->req,
	                           .av = msg->av,
	                           .mtu_shift = rdma_qp_attributes(msg->qp)->mtu_shift,
	                           .msn = msn,
	                           .to_peer = true,
	                           .msg = msg};
}

void mesh_trace_sent(const struct mesh *mesh, const struct rdma_msg *msg, uint32_t before,
                     uint32_t now)
{
	if (!net_wire_traces(mesh->net.wire))
		return;
	struct roce_trace trace = ours(mesh, msg, 0);

	if (rdma_op_fetches(msg->req.opcode))
		roce_trace_begin(&trace);
	else
		roce_trace_moved(&trace, before, now);
}

void mesh_trace_acked(const struct mesh_qp *mq, const struct rdma_msg *msg)
{
	if (!net_wire_traces(mq->mesh->net.wire))
		return;
	struct roce_trace trace = ours(mq->mesh, msg, mq->msn);

	roce_trace_ack(&trace, msg->req.psn + msg->req.packets);
}

void mesh_trace_nakked(const struct mesh_qp *mq, const struct rdma_msg *msg,
                       const struct mesh_nak *nak)
{
	if (!net_wire_traces(mq->mesh->net.wire))
		return;
	struct roce_trace trace = ours(mq->mesh, msg, mq->msn);

	roce_trace_nak(&trace, msg->req.psn, nak->verdict, nak->rnr_timer);
}

void mesh_trace_old_value(const struct mesh_qp *mq, const struct rdma_msg *msg, uint64_t value)
{
	if (!net_wire_traces(mq->mesh->net.wire))
		return;
	struct roce_trace trace = ours(mq->mesh, msg, mq->msn);

	roce_trace_atomic(&trace, value);
}

void mesh_trace_response(const struct mesh_qp *mq, const struct mesh_sent *sent, size_t size)
{
	if (!net_wire_traces(mq->mesh->net.wire))
		return;
	struct roce_trace trace = ours(mq->mesh, sent->msg, mq->msn + 1);

	roce_trace_moved(&trace, sent->received - (uint32_t)size, sent->received);
}

/* ---- of others ---- */

/*
 * A peer's message to QP. What it says of its packets is not relied on: they are as many as its
 * length takes. False: it is not shown.
 */
static bool theirs(const struct mesh *mesh, const struct rdma_qp *qp,
                   const struct rdma_request *req, struct rdma_request *shown,
                   struct roce_trace *trace)
{
	if (!net_wire_traces(mesh->net.wire) || !req->av)
		return false;
	unsigned shift = req->transport == RDMA_QP_UD ? RDMA_MTU_SHIFT_MAX
	                                              : rdma_qp_attributes(qp)->mtu_shift;

	if (shift < RDMA_MTU_SHIFT_MIN || shift > RDMA_MTU_SHIFT_MAX)
		return false;
	*shown = *req;
	shown->packets = 1;
	if (req->length > 0 && (req->opcode == RDMA_READ || !rdma_op_fetches(req->opcode)))
		shown->packets = ((req->length - 1) >> shift) + 1;
	*trace = (struct roce_trace){.wire = mesh->net.wire,
	                             .req = shown,
	                             .av = req->av,
	                             .mtu_shift = shift,
	                             .msn = rdma_qp_msn(qp),
	                             .from_peer = true};
	return req->transport != RDMA_QP_UD || shown->packets == 1;
}

void mesh_trace_begun(const struct mesh *mesh, const struct rdma_qp *qp,
                      const struct rdma_inbound *in, const struct rdma_request *req)
{
	struct rdma_request shown;
	struct roce_trace trace;

	if (!theirs(mesh, qp, req, &shown, &trace))
		return;
	trace.in = in;
	roce_trace_begin(&trace);
}

void mesh_trace_landed(const struct mesh *mesh, const struct rdma_inbound *in, size_t size)
{
	struct rdma_request shown;
	struct roce_trace trace;

	if (!in->qp || size > in->done || !theirs(mesh, in->qp, in->req, &shown, &trace))
		return;
	trace.in = in;
	roce_trace_moved(&trace, in->done - (uint32_t)size, in->done);
}

void mesh_trace_answer(const struct mesh *mesh, const struct rdma_qp *qp,
                       const struct rdma_request *req, enum rdma_verdict verdict, uint8_t rnr_timer)
{
	struct rdma_request shown;
	struct roce_trace trace;

	if (verdict == RDMA_VERDICT_DROP || !theirs(mesh, qp, req, &shown, &trace))
		return;
	if (verdict == RDMA_VERDICT_OK || verdict == RDMA_VERDICT_DUPLICATE)
		roce_trace_ack(&trace, req->psn + shown.packets);
	else
		roce_trace_nak(&trace, req->psn, verdict, rnr_timer);
}

void mesh_trace_value(const struct mesh *mesh, const struct rdma_qp *qp,
                      const struct rdma_request *req, uint64_t value)
{
	struct rdma_request shown;
	struct roce_trace trace;

	if (theirs(mesh, qp, req, &shown, &trace))
		roce_trace_atomic(&trace, value);
}
