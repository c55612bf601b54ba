/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of other nodes for our queue pairs, and what is said to them.
 *
 * A peer opens a flow for each of its queue pairs that talks to one of ours. A REQUEST is offered
 * to the engine, which checks it as it checks those of this process; its payload goes to where the
 * engine says, or is skipped when the engine does not want it. The answer is what the engine says:
 * all that is good is acknowledged once a turn, by the PSN that is expected next; a refusal goes
 * back at once; what a real responder would drop in silence is dropped in silence.
 *
 * What is to be said is kept as state of the flow (acknowledge, ready, READs in line), so it has a
 * bound whatever the peer sends and however slowly it reads: an ACK a flow, and as many READs as
 * the queue pair has agreed to. READs of several flows take turns, a piece each.
 */
#include "fabric/mesh_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/iov.h"

COUNTER(fabric_mesh_rx_no_flow, "requests of a flow that was not opened, skipped");
COUNTER(fabric_mesh_rx_flows_full, "flows that were not opened because too many are, of all peers");
COUNTER(fabric_mesh_rx_no_qp, "messages to a queue pair that is not here, skipped");
COUNTER(fabric_mesh_rx_skipped, "messages that their queue pair did not take, skipped");
COUNTER(fabric_mesh_rx_reads, "READs beyond what a flow may have in line, skipped");
COUNTER(fabric_mesh_rx_replayed, "atomics whose answer was given again");

enum { READS_MAX = 128 };

#define PSN_MASK 0xffffffu

static struct mesh_inflow *inflow_of(struct mesh_conn *conn, const struct mesh_frame *frame)
{
	return mesh_flows_get(&conn->inflows, be32_get(frame->flow));
}

/* The device that the address leads to, or NULL. */
static struct rdma_dev *local_device(struct mesh *mesh, const struct rdma_av *av)
{
	for (unsigned i = 0; i < mesh->net.count; i++)
		if (rdma_dev_owns_mac(mesh->net.devices[i], av->dst_mac))
			return mesh->net.devices[i];
	return NULL;
}

static struct rdma_qp *local_qp(struct mesh *mesh, const struct rdma_av *av, uint32_t qpn)
{
	struct rdma_dev *dev = local_device(mesh, av);
	struct rdma_qp *qp = dev ? rdma_qp_find(dev, qpn) : NULL;

	if (!qp)
		counter_inc(&fabric_mesh_rx_no_qp);
	return qp;
}

/* ---- flows ---- */

static void read_drop(struct mesh_inflow *flow, struct mesh_read *read)
{
	TAILQ_REMOVE(&flow->reads, read, entry);
	flow->read_count--;
	rdma_inbound_cancel(&read->in);
	TAILQ_INSERT_HEAD(&flow->conn->mesh->spare_reads, read, entry);
}

static void inflow_unlist(struct mesh_inflow *flow)
{
	if (flow->on_acks)
		TAILQ_REMOVE(&flow->conn->acks, flow, ack_entry);
	if (flow->on_readers)
		TAILQ_REMOVE(&flow->conn->readers, flow, reader_entry);
	flow->on_acks = flow->on_readers = false;
}

void mesh_inflow_free(struct mesh_inflow *flow)
{
	inflow_unlist(flow);
	rdma_inbound_cancel(&flow->in);
	while (!TAILQ_EMPTY(&flow->reads))
		read_drop(flow, TAILQ_FIRST(&flow->reads));
	if (flow->starves)
		flow->starves->starved = NULL;
	flow->conn->mesh->inflow_count--;
	free(flow);
}

void mesh_answer_lost(struct mesh_conn *conn)
{
	for (uint32_t i = 0; i < conn->inflows.size; i++)
		if (conn->inflows.items[i])
			mesh_inflow_free(conn->inflows.items[i]);
	mesh_flows_free(&conn->inflows);
}

int mesh_handle_flow(struct mesh_conn *conn, const struct mesh_frame *frame,
                     const struct mesh_flow *wire)
{
	uint32_t id = be32_get(frame->flow);

	if (conn->mesh->inflow_count >= MESH_INFLOWS_MAX) {
		counter_inc(&fabric_mesh_rx_flows_full); /* its requests are skipped */
		return 0;
	}
	struct mesh_inflow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return -ENOMEM;
	flow->conn = conn;
	flow->id = id;
	flow->src_qpn = be32_get(wire->src_qpn);
	flow->dst_qpn = be32_get(wire->dst_qpn);
	flow->transport = wire->transport;
	TAILQ_INIT(&flow->reads);
	if (mesh_address_get(&wire->address, &flow->av) ||
	    (wire->transport != RDMA_QP_RC && wire->transport != RDMA_QP_UC) ||
	    mesh_flows_set(&conn->inflows, id, flow)) {
		free(flow);
		return mesh_conn_violation(conn, "a flow that makes no sense");
	}
	conn->mesh->inflow_count++;
	return 0;
}

int mesh_handle_close(struct mesh_conn *conn, const struct mesh_frame *frame)
{
	struct mesh_inflow *flow = inflow_of(conn, frame);

	if (!flow)
		return 0;
	mesh_flows_drop(&conn->inflows, flow->id);
	mesh_inflow_free(flow);
	return 0;
}

/* ---- answers ---- */

static void say(struct mesh_inflow *flow)
{
	if (flow->on_acks)
		return;
	flow->on_acks = true;
	TAILQ_INSERT_TAIL(&flow->conn->acks, flow, ack_entry);
}

static void send_nak(struct mesh_inflow *flow, uint32_t psn, enum rdma_verdict verdict,
                     uint8_t rnr_timer)
{
	struct mesh_nak nak = {.verdict = (uint8_t)verdict, .rnr_timer = rnr_timer};

	mesh_conn_put(flow->conn, mesh_frame_make(MESH_NAK, sizeof(nak), flow->id, psn), &nak);
}

/* There is no receive: the peer will be told when there is. */
static void starve(struct mesh_inflow *flow, struct rdma_qp *qp)
{
	struct mesh_qp *mq = mesh_qp_get(flow->conn->mesh, qp);

	if (!mq)
		return; /* its RNR timer does without */
	if (mq->starved)
		mq->starved->starves = NULL;
	if (flow->starves)
		flow->starves->starved = NULL;
	mq->starved = flow;
	flow->starves = mq;
	rdma_qp_watch_recv(qp);
}

/* QP got a receive; nothing of it may be touched here. */
void mesh_recv_posted(struct mesh *mesh, struct rdma_qp *qp)
{
	struct mesh_qp *mq = *rdma_qp_fabric_slot(qp);
	struct mesh_inflow *flow = mq ? mq->starved : NULL;

	if (!flow)
		return;
	mq->starved = NULL;
	flow->starves = NULL;
	flow->ready = true;
	say(flow);
	loop_schedule(mesh->loop, &flow->conn->work);
}

/* All before PSN is executed. It is kept, as the queue pair may be gone when there is room to say
 * so. */
static void acknowledge(struct mesh_inflow *flow, uint32_t psn)
{
	if (!flow->ack || ((psn - flow->ack_psn) & PSN_MASK) <= PSN_MASK / 2)
		flow->ack_psn = psn;
	flow->ack = true;
	say(flow);
}

/* What the engine said of the message REQ of FLOW, to QP; IN is what it said it with. */
static void answer(struct mesh_inflow *flow, struct rdma_qp *qp, enum rdma_verdict verdict,
                   const struct rdma_request *req, const struct rdma_inbound *in)
{
	if (flow->transport != RDMA_QP_RC)
		return;
	mesh_trace_answer(flow->conn->mesh, qp, req, verdict, in->rnr_timer);
	switch (verdict) {
	case RDMA_VERDICT_OK:
	case RDMA_VERDICT_DUPLICATE:
		acknowledge(flow, (req->psn + req->packets) & PSN_MASK);
		return;
	case RDMA_VERDICT_DROP:
		counter_inc(&fabric_mesh_rx_skipped);
		return;
	case RDMA_VERDICT_RNR:
		starve(flow, qp);
		send_nak(flow, req->psn, verdict, in->rnr_timer);
		return;
	case RDMA_VERDICT_INV_REQ:
	case RDMA_VERDICT_ACCESS:
	case RDMA_VERDICT_OPER:
		send_nak(flow, req->psn, verdict, 0);
		return;
	}
}

/* ---- atomics ---- */

static void send_atomic(struct mesh_inflow *flow, uint32_t psn, uint64_t value)
{
	struct mesh_atomic atomic = {be64_make(value)};

	mesh_conn_put(flow->conn, mesh_frame_make(MESH_ATOMIC, sizeof(atomic), flow->id, psn),
	              &atomic);
}

static void remember_atomic(struct mesh *mesh, struct rdma_qp *qp, uint32_t psn, uint64_t value)
{
	struct mesh_qp *mq = mesh_qp_get(mesh, qp);

	if (mq && !mq->replay)
		mq->replay = calloc(1, sizeof(*mq->replay));
	if (!mq || !mq->replay)
		return;
	uint32_t index = mq->replay->next++ % MESH_WINDOW;

	mq->replay->old[index].used = true;
	mq->replay->old[index].psn = psn;
	mq->replay->old[index].value = value;
}

static void replay_atomic(struct mesh_inflow *flow, struct rdma_qp *qp, uint32_t psn)
{
	struct mesh_qp *mq = *rdma_qp_fabric_slot(qp);

	/* the newest first: an old one may have the same PSN, of a round of PSNs before */
	for (uint32_t i = 1; mq && mq->replay && i <= MESH_WINDOW; i++) {
		uint32_t index = (mq->replay->next - i) % MESH_WINDOW;

		if (mq->replay->old[index].used && mq->replay->old[index].psn == psn) {
			counter_inc(&fabric_mesh_rx_replayed);
			send_atomic(flow, psn, mq->replay->old[index].value);
			return;
		}
	}
}

static void run_atomic(struct mesh_inflow *flow, struct rdma_qp *qp)
{
	struct mesh *mesh = flow->conn->mesh;
	enum rdma_verdict verdict = rdma_inbound_begin(&flow->in, qp, &flow->req);

	mesh_trace_begun(mesh, qp, &flow->in, &flow->req);
	if (verdict == RDMA_VERDICT_OK)
		verdict = rdma_inbound_end(&flow->in);
	if (verdict == RDMA_VERDICT_OK) {
		mesh_trace_value(mesh, qp, &flow->req, flow->in.atomic);
		remember_atomic(mesh, qp, flow->req.psn, flow->in.atomic);
		send_atomic(flow, flow->req.psn, flow->in.atomic);
	} else if (verdict == RDMA_VERDICT_DUPLICATE) {
		replay_atomic(flow, qp, flow->req.psn);
	} else {
		answer(flow, qp, verdict, &flow->req, &flow->in);
	}
}

/* ---- READs ---- */

static struct mesh_read *read_add(struct mesh_inflow *flow)
{
	struct mesh_reads *spare = &flow->conn->mesh->spare_reads;
	struct mesh_read *read = TAILQ_FIRST(spare);

	if (read)
		TAILQ_REMOVE(spare, read, entry);
	else
		read = calloc(1, sizeof(*read));
	if (!read)
		return NULL;
	read->req = flow->req;
	TAILQ_INSERT_TAIL(&flow->reads, read, entry);
	flow->read_count++;
	return read;
}

static void begin_read(struct mesh_inflow *flow, struct rdma_qp *qp)
{
	struct mesh_read *read = flow->read_count < READS_MAX ? read_add(flow) : NULL;

	if (!read) {
		counter_inc(&fabric_mesh_rx_reads);
		return;
	}
	enum rdma_verdict verdict = rdma_inbound_begin(&read->in, qp, &read->req);

	mesh_trace_begun(flow->conn->mesh, qp, &read->in, &read->req);
	if (verdict == RDMA_VERDICT_DUPLICATE)
		verdict = rdma_inbound_repeat(&read->in, qp, &read->req);
	if (verdict != RDMA_VERDICT_OK) {
		answer(flow, qp, verdict, &read->req, &read->in);
		read_drop(flow, read);
		return;
	}
	if (!flow->on_readers)
		TAILQ_INSERT_TAIL(&flow->conn->readers, flow, reader_entry);
	flow->on_readers = true;
}

/* A piece of the READ by copying or from where it is. Returns its size, or a negative errno. */
static int send_response(struct mesh_inflow *flow, struct mesh_read *read)
{
	size_t piece = read->req.length - read->in.done;
	struct iovec iov[MESH_PIECES];
	struct mesh_frame frame;
	int count = -ENOTSUP;

	if (piece > MESH_PIECE_MAX)
		piece = MESH_PIECE_MAX;
	if (piece > MESH_COPY_MAX)
		count = rdma_inbound_map(&read->in, piece, iov, MESH_PIECES);
	if (count > 0) {
		piece = iov_size(iov, (size_t)count);
		frame = mesh_frame_make(MESH_RESPONSE, piece, flow->id, read->req.psn);
		mesh_conn_send(flow->conn, &frame, sizeof(frame), iov, (unsigned)count);
		return 0;
	}
	if (count != -ENOTSUP)
		return -EIO;
	if (piece > MESH_COPY_MAX)
		piece = MESH_COPY_MAX;
	uint8_t *out = mesh_conn_reserve(flow->conn, sizeof(frame) + piece);

	if (!out)
		return -ENOMEM;
	frame = mesh_frame_make(MESH_RESPONSE, piece, flow->id, read->req.psn);
	memcpy(out, &frame, sizeof(frame));
	if (piece > 0 && rdma_inbound_copy(&read->in, out + sizeof(frame), piece))
		return -EIO;
	mesh_conn_commit(flow->conn, sizeof(frame) + piece);
	return 0;
}

/* One piece of the flow's first READ. */
static void serve_read(struct mesh_inflow *flow)
{
	struct mesh_read *read = TAILQ_FIRST(&flow->reads);
	struct rdma_qp *qp = read->in.qp;

	if (!qp) { /* was reset or destroyed: nobody answers */
		read_drop(flow, read);
		return;
	}
	uint32_t before = read->in.done;
	int error = send_response(flow, read);

	if (!error)
		mesh_trace_landed(flow->conn->mesh, &read->in, read->in.done - before);
	if (!error && read->in.done < read->req.length)
		return;
	enum rdma_verdict verdict =
	        error == -ENOMEM ? RDMA_VERDICT_DROP : rdma_inbound_end(&read->in);

	if (verdict != RDMA_VERDICT_OK)
		answer(flow, qp, verdict, &read->req, &read->in);
	read_drop(flow, read);
}

static void serve_readers(struct mesh_conn *conn)
{
	struct mesh_inflow *flow;

	for (unsigned i = 0; i < MESH_WAKE && mesh_conn_has_room(conn); i++) {
		flow = TAILQ_FIRST(&conn->readers);
		if (!flow)
			return;
		TAILQ_REMOVE(&conn->readers, flow, reader_entry);
		flow->on_readers = false;
		serve_read(flow);
		if (TAILQ_EMPTY(&flow->reads))
			continue;
		flow->on_readers = true;
		TAILQ_INSERT_TAIL(&conn->readers, flow, reader_entry);
	}
	if (!TAILQ_EMPTY(&conn->readers) && mesh_conn_has_room(conn))
		loop_schedule(conn->mesh->loop, &conn->work);
}

/* ---- messages with payload ---- */

static void land_end(struct mesh_inflow *flow)
{
	struct rdma_qp *qp = flow->in.qp;
	enum rdma_verdict verdict = rdma_inbound_end(&flow->in);

	flow->landing = false;
	answer(flow, qp, verdict, &flow->req, &flow->in);
}

static void begin_message(struct mesh_inflow *flow, struct rdma_qp *qp)
{
	enum rdma_verdict verdict = rdma_inbound_begin(&flow->in, qp, &flow->req);

	flow->landing = verdict == RDMA_VERDICT_OK;
	if (!flow->landing) {
		mesh_trace_begun(flow->conn->mesh, qp, &flow->in, &flow->req);
		answer(flow, qp, verdict, &flow->req, &flow->in);
	} else if (flow->expected == 0) {
		mesh_trace_landed(flow->conn->mesh, &flow->in, 0);
		land_end(flow);
	}
}

static int check_payload(struct mesh_conn *conn, struct mesh_inflow *flow)
{
	if (conn->body_left > flow->expected)
		return mesh_conn_violation(conn, "more payload than the message has");
	return 0;
}

int mesh_handle_request(struct mesh_conn *conn, const struct mesh_request *request)
{
	struct mesh_inflow *flow = inflow_of(conn, &conn->frame);
	struct rdma_request *req;

	if (!flow) {
		counter_inc(&fabric_mesh_rx_no_flow);
		return 0;
	}
	rdma_inbound_cancel(&flow->in); /* the one before was given up */
	flow->landing = false;
	req = &flow->req;
	*req = (struct rdma_request){.transport = flow->transport,
	                             .src_qpn = flow->src_qpn,
	                             .dst_qpn = flow->dst_qpn,
	                             .psn = be32_get(conn->frame.psn),
	                             .av = &flow->av};
	if (mesh_request_get(request, req))
		return mesh_conn_violation(conn, "a request that makes no sense");
	flow->expected = rdma_op_fetches(req->opcode) ? 0 : req->length;
	int error = check_payload(conn, flow);
	struct rdma_qp *qp = error ? NULL : local_qp(conn->mesh, &flow->av, flow->dst_qpn);

	if (!qp)
		return error;
	if (req->opcode == RDMA_READ)
		begin_read(flow, qp);
	else if (rdma_op_fetches(req->opcode))
		run_atomic(flow, qp);
	else
		begin_message(flow, qp);
	return 0;
}

int mesh_handle_data(struct mesh_conn *conn)
{
	struct mesh_inflow *flow = inflow_of(conn, &conn->frame);

	return flow ? check_payload(conn, flow) : 0;
}

/* The flow whose message takes the payload of the current frame, or NULL when it is skipped. */
static struct mesh_inflow *land_target(struct mesh_conn *conn)
{
	struct mesh_inflow *flow = inflow_of(conn, &conn->frame);

	return flow && flow->landing ? flow : NULL;
}

int mesh_land_map(struct mesh_conn *conn, size_t size, struct iovec *iov, unsigned max)
{
	struct mesh_inflow *flow = land_target(conn);

	return flow ? rdma_inbound_map(&flow->in, size, iov, max) : 0;
}

int mesh_land_moved(struct mesh_conn *conn, size_t mapped, size_t size)
{
	struct mesh_inflow *flow = land_target(conn);

	if (!flow)
		return 0;
	flow->expected -= (uint32_t)size;
	if (size < mapped)
		rdma_inbound_seek(&flow->in, flow->in.done - (uint32_t)(mapped - size));
	mesh_trace_landed(conn->mesh, &flow->in, size);
	return 0;
}

int mesh_land_copy(struct mesh_conn *conn, void *data, size_t size)
{
	struct mesh_inflow *flow = inflow_of(conn, &conn->frame);

	if (!flow)
		return 0;
	flow->expected -= (uint32_t)size;
	if (!flow->landing)
		return 0;
	/* a failure shows at the end, or now, so that nothing more is taken */
	int error = rdma_inbound_copy(&flow->in, data, size);

	if (!error)
		mesh_trace_landed(conn->mesh, &flow->in, size);
	if (error || flow->expected == 0)
		land_end(flow);
	return 0;
}

/* ---- the others ---- */

static bool is_answering(const struct mesh_inflow *flow, struct rdma_qp *qp, uint32_t *expected)
{
	struct rdma_qp_attr attr;

	rdma_qp_query(qp, &attr);
	*expected = attr.rq_psn;
	return attr.state >= RDMA_QPS_RTR && attr.state <= RDMA_QPS_SQE &&
	       attr.dest_qpn == flow->src_qpn;
}

/* A queue pair that does not answer, or is not there, says nothing: its peer's timeout counts. */
int mesh_handle_probe(struct mesh_conn *conn, const struct mesh_frame *frame)
{
	struct mesh_inflow *flow = inflow_of(conn, frame);
	struct rdma_qp *qp = flow ? local_qp(conn->mesh, &flow->av, flow->dst_qpn) : NULL;
	uint32_t expected;

	if (!qp || !is_answering(flow, qp, &expected))
		return 0;
	struct mesh_frame reply = mesh_frame_make(MESH_ACK, 0, flow->id, expected);

	reply.flags = MESH_PROBED;
	reply.mark = frame->mark;
	mesh_conn_put(conn, reply, NULL);
	return 0;
}

int mesh_handle_datagram(struct mesh_conn *conn, const struct mesh_datagram *datagram,
                         uint8_t *payload, size_t size)
{
	struct rdma_inbound in = {0};
	struct rdma_request req = {.opcode = datagram->opcode,
	                           .transport = RDMA_QP_UD,
	                           .solicited = datagram->solicited,
	                           .src_qpn = be32_get(datagram->src_qpn),
	                           .dst_qpn = be32_get(datagram->dst_qpn),
	                           .qkey = be32_get(datagram->qkey),
	                           .packets = 1,
	                           .length = (uint32_t)size};
	struct rdma_av av;

	memcpy(&req.imm, datagram->imm, sizeof(req.imm));
	if (mesh_address_get(&datagram->address, &av) || req.opcode >= RDMA_OPCODES)
		return mesh_conn_violation(conn, "a datagram that makes no sense");
	req.av = &av;
	struct rdma_qp *qp = local_qp(conn->mesh, &av, req.dst_qpn);

	if (!qp || rdma_inbound_begin(&in, qp, &req) != RDMA_VERDICT_OK)
		return 0;
	if (size > 0)
		rdma_inbound_copy(&in, payload, size);
	mesh_trace_landed(conn->mesh, &in, size);
	rdma_inbound_end(&in);
	return 0;
}

static void send_words(struct mesh_inflow *flow)
{
	if (flow->ack)
		mesh_conn_put(flow->conn, mesh_frame_make(MESH_ACK, 0, flow->id, flow->ack_psn),
		              NULL);
	if (flow->ready)
		mesh_conn_put(flow->conn, mesh_frame_make(MESH_READY, 0, flow->id, 0), NULL);
	flow->ack = flow->ready = false;
}

void mesh_answer_pump(struct mesh_conn *conn)
{
	struct mesh_inflow *flow;

	while (!conn->blocked && (flow = TAILQ_FIRST(&conn->acks))) {
		TAILQ_REMOVE(&conn->acks, flow, ack_entry);
		flow->on_acks = false;
		send_words(flow);
	}
	serve_readers(conn);
}
