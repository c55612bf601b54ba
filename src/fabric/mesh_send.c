/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages from our queue pairs to other nodes, and what comes back for them.
 *
 * A connected queue pair has a flow on the connection to its peer's node. A message is a REQUEST
 * with its first piece, then DATA; a queue pair sends one piece and gets in line again behind the
 * others. What is out is kept in a ring until it has been answered: by an ACK, which stands for all
 * before it, by the data of a READ, or by a NAK.
 *
 * The stream loses nothing while the connection lives, so after a timeout nothing is sent again
 * blindly: a PROBE asks, behind everything that is under way, what the peer has executed; what it
 * has not, it has dropped, and that is sent again. When the connection breaks, all that was out is
 * lost. The queue pair then waits for its timeout, as one on a real wire would, and begins a new
 * flow; its peer finds out by their PSNs which messages it has seen.
 */
#include "fabric/mesh_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/iov.h"

COUNTER(fabric_mesh_probes, "times a queue pair's timeout made it ask what its peer has executed");
COUNTER(fabric_mesh_flows_lost, "flows that ended with their connection while messages were out");
COUNTER(fabric_mesh_unresolved, "messages to a GID that no node, or more than one, claims");

#define PSN_MASK 0xffffffu

/* rdma_msg.fabric_word */
enum { MSG_NEW, MSG_STARTED };

/* ---- the ring of what is out ---- */

static struct mesh_sent *sent_at(struct mesh_qp *mq, uint32_t index)
{
	return &mq->sent[index % MESH_WINDOW];
}

static uint32_t psn_end(const struct rdma_msg *msg)
{
	return (msg->req.psn + msg->req.packets) & PSN_MASK;
}

/* Whether all before ACKED includes the message. */
static bool is_before(const struct rdma_msg *msg, uint32_t acked)
{
	return ((acked - psn_end(msg)) & PSN_MASK) <= PSN_MASK / 2;
}

static void sent_pop(struct mesh_qp *mq)
{
	while (mq->head != mq->tail && sent_at(mq, mq->head)->done)
		mq->head++;
}

static struct mesh_sent *sent_find(struct mesh_qp *mq, uint32_t psn)
{
	for (uint32_t i = mq->head; i != mq->tail; i++)
		if (!sent_at(mq, i)->done && sent_at(mq, i)->msg->req.psn == psn)
			return sent_at(mq, i);
	return NULL;
}

static bool sent_has(struct mesh_qp *mq, const struct rdma_msg *msg)
{
	for (uint32_t i = mq->head; i != mq->tail; i++)
		if (sent_at(mq, i)->msg == msg)
			return true;
	return false;
}

/* The message under way, if any, starts over: the peer drops its begin when it comes again. */
static void restart_unfinished(struct mesh_qp *mq)
{
	if (mq->head == mq->tail || sent_at(mq, mq->tail - 1)->whole)
		return;
	struct rdma_msg *msg = sent_at(mq, --mq->tail)->msg;

	msg->fabric_word = MSG_NEW;
	rdma_msg_seek(msg, 0);
	mq->offset = 0;
}

/* What is out from INDEX on was dropped, and will be sent again. */
static void sent_truncate(struct mesh_qp *mq, uint32_t index)
{
	restart_unfinished(mq);
	if ((int32_t)(mq->tail - index) > 0)
		mq->tail = index;
}

/* ---- life ---- */

struct mesh_qp *mesh_qp_get(struct mesh *mesh, struct rdma_qp *qp)
{
	void **slot = rdma_qp_fabric_slot(qp);
	struct mesh_qp *mq = *slot;

	if (mq)
		return mq;
	mq = calloc(1, sizeof(*mq));
	if (!mq)
		return NULL;
	mq->mesh = mesh;
	mq->qp = qp;
	*slot = mq;
	return mq;
}

static void stop_waiting(struct mesh_qp *mq)
{
	if (mq->waits)
		TAILQ_REMOVE(&mq->waits->waiters, mq, waiter);
	mq->waits = NULL;
}

static void close_flow(struct mesh_qp *mq)
{
	if (!mq->conn)
		return;
	mesh_conn_put(mq->conn, mesh_frame_make(MESH_CLOSE, 0, mq->flow, 0), NULL);
	mesh_flows_drop(&mq->conn->outflows, mq->flow);
	mq->conn = NULL;
}

void mesh_qp_free(struct mesh_qp *mq)
{
	stop_waiting(mq);
	close_flow(mq);
	if (mq->starved)
		mq->starved->starves = NULL;
	*rdma_qp_fabric_slot(mq->qp) = NULL;
	free(mq->replay);
	free(mq);
}

void mesh_rewind(struct mesh_qp *mq)
{
	restart_unfinished(mq);
	mq->offset = 0;
	mq->lost = false;
	mq->asked = false;
	mq->rewound = mq->head != mq->tail;
	mq->ask = mq->rewound; /* again, if need be: the one before may not have been answered */
	stop_waiting(mq);
	/* the engine has put all messages to their begin; answers under way go on where they are */
	for (uint32_t i = mq->head; i != mq->tail; i++)
		if (sent_at(mq, i)->fetch && !sent_at(mq, i)->done)
			rdma_msg_seek(sent_at(mq, i)->msg, sent_at(mq, i)->received);
}

static void flow_lost(struct mesh_qp *mq)
{
	restart_unfinished(mq);
	mq->conn = NULL;
	mq->lost = mq->head != mq->tail;
	if (mq->lost)
		counter_inc(&fabric_mesh_flows_lost);
	mq->head = mq->tail = 0;
	mq->offset = 0;
	mq->rewound = mq->ask = mq->asked = false;
}

void mesh_send_lost(struct mesh_conn *conn)
{
	struct mesh_qp *mq;

	for (uint32_t i = 0; i < conn->outflows.size; i++)
		if (conn->outflows.items[i])
			flow_lost(conn->outflows.items[i]);
	while ((mq = TAILQ_FIRST(&conn->waiters))) {
		stop_waiting(mq);
		rdma_qp_resume(mq->qp);
	}
}

void mesh_send_wake(struct mesh_conn *conn, unsigned count)
{
	struct mesh_qp *mq;

	while (count-- > 0 && mesh_conn_has_room(conn) && (mq = TAILQ_FIRST(&conn->waiters))) {
		stop_waiting(mq);
		rdma_qp_resume(mq->qp);
	}
	if (!TAILQ_EMPTY(&conn->waiters) && mesh_conn_has_room(conn))
		loop_schedule(conn->mesh->loop, &conn->work);
}

/* ---- sending ---- */

/* The connection to the message's destination; it may not be up yet. */
static struct mesh_conn *find_conn(struct mesh *mesh, const struct rdma_msg *msg)
{
	struct mesh_node *node = mesh_resolve(mesh, msg->av);

	if (!node)
		counter_inc(&fabric_mesh_unresolved);
	return node ? mesh_node_conn(mesh, node) : NULL;
}

static int open_flow(struct mesh_qp *mq, const struct rdma_msg *msg, struct mesh_conn *conn)
{
	struct mesh_flow flow = {.src_qpn = be32_make(msg->req.src_qpn),
	                         .dst_qpn = be32_make(msg->req.dst_qpn),
	                         .transport = msg->req.transport};
	int error = mesh_flows_add(&conn->outflows, mq, &mq->flow);

	if (error)
		return error;
	mq->conn = conn;
	mesh_address_put(&flow.address, msg->av);
	mesh_conn_put(conn, mesh_frame_make(MESH_FLOW, sizeof(flow), mq->flow, 0), &flow);
	return 0;
}

/* Builds the frame of a piece at OUT; returns its size without payload. */
static size_t put_head(const struct mesh_qp *mq, const struct rdma_msg *msg, size_t piece,
                       uint8_t *out)
{
	bool first = msg->fabric_word == MSG_NEW;
	size_t fixed = first ? sizeof(struct mesh_request) : 0;
	struct mesh_frame frame = mesh_frame_make(first ? MESH_REQUEST : MESH_DATA, fixed + piece,
	                                          mq->flow, msg->req.psn);
	struct mesh_request request;

	memcpy(out, &frame, sizeof(frame));
	if (first) {
		mesh_request_put(&request, &msg->req);
		memcpy(out + sizeof(frame), &request, sizeof(request));
	}
	return sizeof(frame) + fixed;
}

enum { HEAD_MAX = sizeof(struct mesh_frame) + sizeof(struct mesh_request) };

/* A piece by copying. Returns 0, or -EIO when the message ended with an error. */
static int put_copied(struct mesh_qp *mq, struct rdma_msg *msg, size_t piece)
{
	uint8_t *out = mesh_conn_reserve(mq->conn, HEAD_MAX + piece);

	if (!out) /* the connection ends; so does the flow, soon */
		return 0;
	size_t head = put_head(mq, msg, piece, out);

	if (piece > 0 && rdma_msg_copy(msg, out + head, piece))
		return -EIO;
	mesh_conn_commit(mq->conn, head + piece);
	return 0;
}

/* At most *PIECE bytes from where they are; *PIECE becomes how many. As put_copied(). */
static int put_mapped(struct mesh_qp *mq, struct rdma_msg *msg, size_t *piece)
{
	struct iovec iov[MESH_PIECES];
	uint8_t head[HEAD_MAX];
	int count = rdma_msg_map(msg, *piece, iov, MESH_PIECES);

	if (count == -ENOTSUP) {
		*piece = *piece < MESH_COPY_MAX ? *piece : MESH_COPY_MAX;
		return put_copied(mq, msg, *piece);
	}
	if (count <= 0)
		return -EIO;
	*piece = iov_size(iov, (size_t)count);
	mesh_conn_send(mq->conn, head, put_head(mq, msg, *piece, head), iov, (unsigned)count);
	return 0;
}

static void sent_push(struct mesh_qp *mq, struct rdma_msg *msg)
{
	assert(mq->tail - mq->head < MESH_WINDOW);
	*sent_at(mq, mq->tail++) =
	        (struct mesh_sent){.msg = msg, .fetch = rdma_op_fetches(msg->req.opcode)};
	mq->offset = 0;
}

/* All of the message is out. */
static enum rdma_tx finish(struct mesh_qp *mq, struct rdma_msg *msg)
{
	struct mesh_sent *sent = sent_at(mq, mq->tail - 1);

	sent->whole = true;
	if (msg->req.transport == RDMA_QP_UC) { /* nothing comes back */
		sent->done = true;
		sent_pop(mq);
		rdma_msg_done(msg, RDMA_OK);
	}
	return RDMA_TX_SENT;
}

static enum rdma_tx send_piece(struct mesh_qp *mq, struct rdma_msg *msg, size_t *budget)
{
	size_t length = rdma_op_fetches(msg->req.opcode) ? 0 : msg->req.length;

	if (msg->fabric_word == MSG_STARTED && (mq->head == mq->tail || mq->offset >= length))
		msg->fabric_word = MSG_NEW; /* begun elsewhere: in this process, perhaps */
	if (msg->fabric_word == MSG_NEW) {
		sent_push(mq, msg);
		mq->conn->sent_messages++;
	}
	size_t piece = length - mq->offset;

	if (piece > MESH_PIECE_MAX)
		piece = MESH_PIECE_MAX;
	if (piece > *budget)
		piece = *budget;
	int error =
	        piece > MESH_COPY_MAX ? put_mapped(mq, msg, &piece) : put_copied(mq, msg, piece);

	if (error) { /* the engine ends the queue pair, and the flow with it */
		mq->tail--;
		return RDMA_TX_SENT;
	}
	msg->fabric_word = MSG_STARTED;
	mesh_trace_sent(mq->mesh, msg, mq->offset, mq->offset + (uint32_t)piece);
	mq->offset += (uint32_t)piece;
	*budget -= piece;
	return mq->offset < length ? RDMA_TX_MORE : finish(mq, msg);
}

static enum rdma_tx wait(struct mesh_conn *conn, struct mesh_qp *mq)
{
	mesh_conn_wait(conn, mq);
	return RDMA_TX_WAIT;
}

static void send_probe(struct mesh_qp *mq)
{
	struct mesh_frame frame = mesh_frame_make(MESH_PROBE, 0, mq->flow, 0);

	counter_inc(&fabric_mesh_probes);
	frame.mark = be16_make(++mq->mark);
	mesh_conn_put(mq->conn, frame, NULL);
	mq->ask = false;
	mq->asked = true;
}

static enum rdma_tx transmit_message(struct mesh_qp *mq, struct rdma_msg *msg, size_t *budget)
{
	struct mesh_conn *conn = mq->conn;

	if (mq->lost)
		return RDMA_TX_LOST;
	if (!conn)
		conn = find_conn(mq->mesh, msg);
	if (!conn)
		return rdma_msg_unreachable(msg);
	if (!mesh_conn_has_room(conn))
		return wait(conn, mq);
	if (!mq->conn && open_flow(mq, msg, conn))
		return rdma_msg_unreachable(msg);
	if (mq->ask)
		send_probe(mq);
	if (mq->asked)
		return RDMA_TX_WAIT;
	if (mq->rewound && sent_has(mq, msg))
		return RDMA_TX_SENT; /* its answer is still to come */
	mq->rewound = false;
	return send_piece(mq, msg, budget);
}

static enum rdma_tx transmit_datagram(struct mesh_qp *mq, struct rdma_msg *msg, size_t *budget)
{
	struct mesh_conn *conn = find_conn(mq->mesh, msg);
	const struct rdma_request *req = &msg->req;
	struct mesh_datagram datagram = {.src_qpn = be32_make(req->src_qpn),
	                                 .dst_qpn = be32_make(req->dst_qpn),
	                                 .qkey = be32_make(req->qkey),
	                                 .opcode = req->opcode,
	                                 .solicited = req->solicited};
	size_t head = sizeof(struct mesh_frame) + sizeof(datagram);

	if (!conn || req->length > mesh_type_info(MESH_DATAGRAM)->payload_max)
		return rdma_msg_unreachable(msg);
	if (!mesh_conn_has_room(conn))
		return wait(conn, mq);
	uint8_t *out = mesh_conn_reserve(conn, head + req->length);
	struct mesh_frame frame =
	        mesh_frame_make(MESH_DATAGRAM, sizeof(datagram) + req->length, 0, 0);

	if (!out)
		return rdma_msg_unreachable(msg);
	memcpy(datagram.imm, &req->imm, sizeof(datagram.imm));
	mesh_address_put(&datagram.address, msg->av);
	memcpy(out, &frame, sizeof(frame));
	memcpy(out + sizeof(frame), &datagram, sizeof(datagram));
	if (req->length > 0 && rdma_msg_copy(msg, out + head, req->length))
		return RDMA_TX_SENT;
	mesh_conn_commit(conn, head + req->length);
	conn->sent_messages++;
	mesh_trace_sent(mq->mesh, msg, 0, req->length);
	*budget -= req->length < *budget ? req->length : *budget;
	rdma_msg_done(msg, RDMA_OK);
	return RDMA_TX_SENT;
}

enum rdma_tx mesh_transmit(struct mesh *mesh, struct rdma_msg *msg, size_t *budget)
{
	if (local_find(&mesh->net, msg))
		return local_transmit(&mesh->net, msg, budget);
	struct mesh_qp *mq = mesh_qp_get(mesh, msg->qp);

	if (!mq)
		return rdma_msg_unreachable(msg);
	return msg->req.transport == RDMA_QP_UD ? transmit_datagram(mq, msg, budget)
	                                        : transmit_message(mq, msg, budget);
}

/* ---- answers ---- */

static struct mesh_qp *answered_qp(struct mesh_conn *conn, const struct mesh_frame *frame)
{
	return mesh_flows_get(&conn->outflows, be32_get(frame->flow));
}

/* All before ACKED is executed. */
static void take_ack(struct mesh_qp *mq, uint32_t acked)
{
	for (uint32_t i = mq->head; i != mq->tail; i++) {
		struct mesh_sent *sent = sent_at(mq, i);

		if (sent->done || sent->fetch)
			continue;
		if (!sent->whole || !is_before(sent->msg, acked))
			break;
		sent->done = true;
		mq->msn++;
		mesh_trace_acked(mq, sent->msg);
		rdma_msg_done(sent->msg, RDMA_OK);
	}
	sent_pop(mq);
}

/* The answer to our PROBE: what is not executed has been dropped. */
static void take_probed(struct mesh_qp *mq, uint32_t acked)
{
	uint32_t index = mq->head;

	mq->asked = false;
	while (index != mq->tail && is_before(sent_at(mq, index)->msg, acked))
		index++;
	sent_truncate(mq, index);
	rdma_qp_resume(mq->qp);
}

int mesh_handle_ack(struct mesh_conn *conn, const struct mesh_frame *frame)
{
	struct mesh_qp *mq = answered_qp(conn, frame);
	uint32_t acked = be32_get(frame->psn);

	if (!mq)
		return 0;
	take_ack(mq, acked);
	if ((frame->flags & MESH_PROBED) && mq->asked && be16_get(frame->mark) == mq->mark)
		take_probed(mq, acked);
	return 0;
}

int mesh_handle_nak(struct mesh_conn *conn, const struct mesh_frame *frame,
                    const struct mesh_nak *nak)
{
	struct mesh_qp *mq = answered_qp(conn, frame);
	uint32_t psn = be32_get(frame->psn);

	if (nak->verdict != RDMA_VERDICT_RNR && nak->verdict != RDMA_VERDICT_INV_REQ &&
	    nak->verdict != RDMA_VERDICT_ACCESS && nak->verdict != RDMA_VERDICT_OPER)
		return mesh_conn_violation(conn, "a NAK without a reason");
	if (!mq)
		return 0;
	take_ack(mq, psn);
	struct mesh_sent *sent = sent_find(mq, psn);

	if (!sent)
		return 0;
	struct rdma_msg *msg = sent->msg;

	mesh_trace_nakked(mq, msg, nak);
	if (nak->verdict == RDMA_VERDICT_RNR) {
		sent_truncate(mq,
		              mq->head + (uint32_t)(sent - sent_at(mq, mq->head) + MESH_WINDOW) %
		                                 MESH_WINDOW);
		rdma_msg_not_ready(msg, nak->rnr_timer);
	} else {
		sent->done = true;
		rdma_msg_answered(msg, nak->verdict);
	}
	return 0;
}

int mesh_handle_ready(struct mesh_conn *conn, const struct mesh_frame *frame)
{
	struct mesh_qp *mq = answered_qp(conn, frame);

	if (mq && !mq->asked)
		rdma_qp_resume(mq->qp);
	return 0;
}

int mesh_handle_atomic(struct mesh_conn *conn, const struct mesh_frame *frame,
                       const struct mesh_atomic *atomic)
{
	struct mesh_qp *mq = answered_qp(conn, frame);
	struct mesh_sent *sent = mq ? sent_find(mq, be32_get(frame->psn)) : NULL;

	if (!sent || !sent->fetch || sent->msg->req.opcode == RDMA_READ)
		return 0;
	sent->done = true;
	mq->msn++;
	mesh_trace_old_value(mq, sent->msg, be64_get(atomic->value));
	if (rdma_msg_store_atomic(sent->msg, be64_get(atomic->value)) == 0)
		rdma_msg_done(sent->msg, RDMA_OK);
	sent_pop(mq);
	return 0;
}

/* ---- data of READs ---- */

/* The READ that the current frame answers, or NULL when nobody waits for it any more. */
static struct mesh_sent *response_target(struct mesh_conn *conn, struct mesh_qp **mq)
{
	*mq = answered_qp(conn, &conn->frame);
	struct mesh_sent *sent = *mq ? sent_find(*mq, be32_get(conn->frame.psn)) : NULL;

	return sent && sent->msg->req.opcode == RDMA_READ ? sent : NULL;
}

static void response_received(struct mesh_qp *mq, struct mesh_sent *sent, size_t size)
{
	sent->received += (uint32_t)size;
	mesh_trace_response(mq, sent, size);
	if (sent->received < sent->msg->req.length)
		return;
	mq->msn++;
	sent->done = true;
	rdma_msg_done(sent->msg, RDMA_OK);
	sent_pop(mq);
}

int mesh_response_begin(struct mesh_conn *conn)
{
	struct mesh_qp *mq;
	struct mesh_sent *sent = response_target(conn, &mq);

	if (!sent)
		return 0;
	if (conn->body_left > sent->msg->req.length - sent->received)
		return mesh_conn_violation(conn, "more data than was asked for");
	if (conn->body_left == 0)
		response_received(mq, sent, 0);
	else
		rdma_qp_progress(mq->qp);
	return 0;
}

int mesh_response_map(struct mesh_conn *conn, size_t size, struct iovec *iov, unsigned max)
{
	struct mesh_qp *mq;
	struct mesh_sent *sent = response_target(conn, &mq);
	int count = sent ? rdma_msg_map(sent->msg, size, iov, max) : 0;

	if (count < 0 && count != -ENOTSUP)
		sent->done = true; /* the engine has ended it */
	return count;
}

int mesh_response_moved(struct mesh_conn *conn, size_t mapped, size_t size)
{
	struct mesh_qp *mq;
	struct mesh_sent *sent = response_target(conn, &mq);

	if (!sent)
		return 0;
	sent->received += (uint32_t)size;
	mesh_trace_response(mq, sent, size);
	if (size < mapped)
		rdma_msg_seek(sent->msg, sent->received);
	return 0;
}

int mesh_response_copy(struct mesh_conn *conn, void *data, size_t size)
{
	struct mesh_qp *mq;
	struct mesh_sent *sent = response_target(conn, &mq);

	if (!sent)
		return 0;
	if (rdma_msg_copy(sent->msg, data, size))
		sent->done = true;
	else
		response_received(mq, sent, size);
	return 0;
}
