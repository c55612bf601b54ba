/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester: from a send queue to the fabric, and back to completions in order.
 *
 * One function per step; each says which comes next. A slice begins with RETIRE and ends with STOP
 * (nothing more to do until something happens) or AGAIN (the budget is used up).
 *
 *	RETIRE    completes what is done at the head of the window
 *	EXPIRE    the timer fired: retry, or give up
 *	TRANSMIT  gives the next message to the fabric, or executes a local opcode
 *	FETCH     takes the next request from the owner and checks it
 */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <string.h>

enum step { STEP_RETIRE, STEP_EXPIRE, STEP_TRANSMIT, STEP_FETCH, STEP_STOP, STEP_AGAIN };

COUNTER(rdma_wr_malformed, "send requests that make no sense or are not allowed on their QP");
COUNTER(rdma_wr_protection, "send requests whose local memory was refused");
COUNTER(rdma_ring_unreadable, "queues that their owner could not read");

/* ---- from request to message ---- */

static enum rdma_status check_form(const struct rdma_qp *qp, struct rdma_wr *wr)
{
	if (wr->opcode >= RDMA_OPCODES || !(rdma_ops[wr->opcode].qp_types & 1 << qp->type))
		return RDMA_LOC_QP_OP_ERR;
	if (rdma_op_is(wr->opcode, OP_LOCAL))
		return RDMA_OK;
	if (wr->num_sge > RDMA_SGE_MAX)
		return RDMA_LOC_QP_OP_ERR;
	if (rdma_op_is(wr->opcode, OP_ATOMIC))
		wr->length = sizeof(uint64_t);
	if (wr->length > RDMA_MESSAGE_MAX)
		return RDMA_LOC_LEN_ERR;
	if ((wr->flags & RDMA_WR_INLINE) &&
	    (!rdma_op_is(wr->opcode, OP_OUT) || wr->length > RDMA_INLINE_MAX))
		return RDMA_LOC_QP_OP_ERR;
	if (rdma_op_fetches(wr->opcode) && qp->attr.max_rd_atomic == 0)
		return RDMA_LOC_QP_OP_ERR;
	return RDMA_OK;
}

/* The message's memory on this side. */
static enum rdma_status open_memory(struct rdma_msg *msg)
{
	const struct rdma_qp *qp = msg->qp;
	const struct rdma_wr *wr = &msg->wr;
	bool is_inline = wr->flags & RDMA_WR_INLINE;

	msg->cursor = (struct rdma_cursor){.dev = qp->dev,
	                                   .flat = is_inline ? wr->inline_data : NULL,
	                                   .pd = qp->pd,
	                                   .qpn = qp->qpn,
	                                   .access = rdma_ops[wr->opcode].local,
	                                   .raw_key = qp->privileged};
	rdma_msg_seek(msg, 0);
	return is_inline ? RDMA_OK : rdma_cursor_check(&msg->cursor, wr->length);
}

static uint32_t packet_count(const struct rdma_qp *qp, const struct rdma_wr *wr)
{
	uint32_t mtu_mask = (1u << qp->attr.mtu_shift) - 1;

	if (wr->length <= mtu_mask || rdma_op_is(wr->opcode, OP_ATOMIC))
		return 1;
	return (wr->length >> qp->attr.mtu_shift) + ((wr->length & mtu_mask) != 0);
}

/* What travels: all but the payload. */
static void open_request(struct rdma_msg *msg)
{
	struct rdma_qp *qp = msg->qp;
	const struct rdma_wr *wr = &msg->wr;
	struct rdma_request *req = &msg->req;
	bool datagram = qp->type == RDMA_QP_UD;

	req->opcode = wr->opcode;
	req->transport = qp->type;
	req->solicited = wr->flags & RDMA_WR_SOLICITED;
	req->src_qpn = qp->qpn;
	req->dst_qpn = datagram ? wr->ud.qpn : qp->attr.dest_qpn;
	req->psn = qp->attr.sq_psn;
	req->packets = datagram ? 1 : packet_count(qp, wr);
	req->length = wr->length;
	req->imm = wr->imm;
	qp->attr.sq_psn = (qp->attr.sq_psn + req->packets) & RDMA_PSN_MASK;
	if (datagram) {
		req->qkey = wr->ud.qkey & 1u << 31 ? qp->attr.qkey : wr->ud.qkey;
	} else if (rdma_op_is(wr->opcode, OP_REMOTE)) {
		req->va = wr->remote.va;
		req->rkey = wr->remote.rkey;
		if (rdma_op_is(wr->opcode, OP_ATOMIC)) {
			req->swap_add = wr->remote.swap_add;
			req->compare = wr->remote.compare;
		}
	}
}

/* Where it goes. Asked again at every attempt, as a datagram's handle may be gone by then. */
static bool find_address(struct rdma_msg *msg)
{
	struct rdma_qp *qp = msg->qp;
	const struct rdma_ah *ah;

	if (qp->type != RDMA_QP_UD) {
		msg->av = qp->attr.av.ip_version ? &qp->attr.av : NULL;
	} else {
		ah = rdma_ah_find(qp->dev, msg->wr.ud.ah);
		if (!ah || ah->pd != qp->pd)
			return false;
		msg->av = &ah->av;
	}
	msg->req.av = msg->av;
	return true;
}

static enum rdma_status open_message(struct rdma_msg *msg)
{
	enum rdma_status status = check_form(msg->qp, &msg->wr);

	if (status != RDMA_OK || rdma_op_is(msg->wr.opcode, OP_LOCAL))
		return status;
	status = open_memory(msg);
	if (status != RDMA_OK)
		return status;
	open_request(msg);
	return find_address(msg) ? RDMA_OK : RDMA_LOC_QP_OP_ERR;
}

/* ---- steps ---- */

static void message_end(struct rdma_msg *msg, enum rdma_status status)
{
	struct rdma_qp *qp = msg->qp;

	if (msg->state == RDMA_MSG_STARTED && rdma_op_fetches(msg->wr.opcode))
		qp->fetching--;
	msg->state = RDMA_MSG_DONE;
	msg->status = (uint8_t)status;
	if (status != RDMA_OK)
		qp->stopped = true;
}

static enum step step_fetch(struct rdma_qp *qp, struct rdma_budget *budget)
{
	if (!rdma_states[qp->state].fetches || !qp->kicked || qp->stopped ||
	    qp->tail - qp->head > qp->window_mask)
		return STEP_STOP;
	if (budget->ops == 0)
		return STEP_AGAIN;
	struct rdma_msg *msg = rdma_qp_msg(qp, qp->tail);

	msg->wr.opcode = RDMA_OPCODES; /* in case the owner does not get so far */
	msg->wr.flags = 0;
	msg->wr.length = 0;
	int got = qp->dev->ops->fetch_send(qp->owner, &msg->wr);

	if (got == 0) {
		qp->kicked = false;
		return STEP_STOP;
	}
	if (got < 0 && got != -EINVAL) {
		counter_inc(&rdma_ring_unreadable);
		rdma_qp_enter_error(qp, RDMA_EVENT_QP_FATAL);
		return STEP_STOP;
	}
	budget->ops--;
	msg->state = RDMA_MSG_OPEN;
	msg->fabric_word = 0;
	enum rdma_status status = got < 0 ? RDMA_LOC_QP_OP_ERR : open_message(msg);

	if (status != RDMA_OK)
		message_end(msg, status);
	qp->tail++;
	return STEP_TRANSMIT;
}

static enum rdma_status execute_local(struct rdma_qp *qp, const struct rdma_wr *wr)
{
	switch (wr->opcode) {
	case RDMA_REG_MR:
		return rdma_mr_register(qp, wr);
	case RDMA_BIND_MW:
		return rdma_mr_bind(qp, wr);
	default:
		return rdma_mr_invalidate(qp, wr->inv_key);
	}
}

/* Whether MSG may start now, or has to wait for earlier ones. */
static bool may_start(const struct rdma_qp *qp, const struct rdma_msg *msg)
{
	if ((msg->wr.flags & RDMA_WR_FENCE) && qp->fetching > 0)
		return false;
	if (rdma_op_is(msg->wr.opcode, OP_DRAIN) && qp->head != qp->tx)
		return false;
	return !rdma_op_fetches(msg->wr.opcode) || qp->fetching < qp->attr.max_rd_atomic;
}

/* Copying a page table takes as long as copying as much payload. */
static void charge_table(const struct rdma_wr *wr, struct rdma_budget *budget)
{
	size_t size = wr->opcode == RDMA_REG_MR ? (size_t)wr->reg.page_count * sizeof(uint64_t) : 0;

	budget->bytes -= size < budget->bytes ? size : budget->bytes;
}

/* What needs no fabric; true when that is all there was to do. */
static bool start_message(struct rdma_qp *qp, struct rdma_msg *msg, struct rdma_budget *budget)
{
	if (rdma_op_is(msg->wr.opcode, OP_LOCAL)) {
		message_end(msg, execute_local(qp, &msg->wr));
		charge_table(&msg->wr, budget);
		return true;
	}
	if (qp->type == RDMA_QP_UD && msg->req.length > qp->dev->datagram_mtu) {
		/* nothing is sent, successfully (spec rocev2 8.5) */
		rdma_count(qp->dev, RDMA_STAT_TRUNCATED);
		message_end(msg, RDMA_OK);
		return true;
	}
	msg->state = RDMA_MSG_STARTED;
	if (rdma_op_fetches(msg->wr.opcode))
		qp->fetching++;
	return false;
}

enum rdma_tx rdma_msg_unreachable(struct rdma_msg *msg)
{
	rdma_count(msg->qp->dev, RDMA_STAT_NO_DESTINATION);
	if (msg->qp->type == RDMA_QP_RC)
		return RDMA_TX_LOST;
	rdma_msg_done(msg, RDMA_OK);
	return RDMA_TX_SENT;
}

static enum rdma_tx call_fabric(struct rdma_qp *qp, struct rdma_msg *msg, size_t *bytes)
{
	struct rdma_fabric *fabric = qp->dev->fabric;

	if (!find_address(msg)) { /* the handle went away while the datagram waited */
		rdma_msg_done(msg, RDMA_OK);
		return RDMA_TX_SENT;
	}
	return fabric ? fabric->ops->transmit(fabric, msg, bytes) : rdma_msg_unreachable(msg);
}

static enum step step_transmit(struct rdma_qp *qp, struct rdma_budget *budget)
{
	if (qp->tx == qp->tail)
		return STEP_FETCH;
	struct rdma_msg *msg = rdma_qp_msg(qp, qp->tx);

	if (msg->state == RDMA_MSG_DONE) {
		rdma_qp_stop_waiting(qp);
		qp->block = RDMA_BLOCK_NONE;
		qp->tx++;
		return STEP_RETIRE;
	}
	if (qp->block != RDMA_BLOCK_NONE)
		return STEP_STOP;
	if (budget->bytes == 0)
		return STEP_AGAIN;
	if (msg->state == RDMA_MSG_OPEN) {
		if (!may_start(qp, msg))
			return STEP_STOP;
		if (start_message(qp, msg, budget))
			return STEP_TRANSMIT;
	}
	enum rdma_tx result = call_fabric(qp, msg, &budget->bytes);

	if (!rdma_states[qp->state].sends) /* it was itself the peer, and failed */
		return STEP_STOP;
	switch (result) {
	case RDMA_TX_SENT:
		qp->tx++;
		return STEP_RETIRE;
	case RDMA_TX_MORE:
		return STEP_AGAIN;
	case RDMA_TX_WAIT:
		qp->block = RDMA_BLOCK_FABRIC;
		return STEP_STOP;
	case RDMA_TX_LOST:
		assert(qp->type == RDMA_QP_RC);
		qp->block = RDMA_BLOCK_LOST;
		return STEP_STOP;
	case RDMA_TX_RNR:
		qp->block = RDMA_BLOCK_RNR;
		qp->rnr_code = msg->rnr_timer;
		return STEP_STOP;
	}
	return STEP_STOP;
}

/* ---- completion ---- */

/* Which counter a failure moves; RDMA_STAT_REQ_CQE_ERR moves with all of them. */
static const enum rdma_stat failure_stats[RDMA_STATUSES] = {
        [RDMA_LOC_LEN_ERR] = RDMA_STAT_REQ_TX_LOC_OPER,
        [RDMA_LOC_QP_OP_ERR] = RDMA_STAT_REQ_TX_LOC_OPER,
        [RDMA_LOC_PROT_ERR] = RDMA_STAT_REQ_TX_LOC_ACCESS,
        [RDMA_MEM_MGMT_ERR] = RDMA_STAT_REQ_TX_MEM_MGMT,
        [RDMA_BAD_RESP_ERR] = RDMA_STAT_REQ_RX_INVALID,
        [RDMA_REM_INV_REQ_ERR] = RDMA_STAT_REQ_RX_REM_INV_REQ,
        [RDMA_REM_ACCESS_ERR] = RDMA_STAT_REQ_RX_REM_ACCESS,
        [RDMA_REM_OP_ERR] = RDMA_STAT_REQ_RX_REM_OPER,
        [RDMA_RETRY_EXC_ERR] = RDMA_STAT_RETRY_EXC,
        [RDMA_RNR_RETRY_EXC_ERR] = RDMA_STAT_RNR_RETRY_EXC,
};

static void count_failure(struct rdma_qp *qp, enum rdma_status status)
{
	rdma_count(qp->dev, RDMA_STAT_REQ_CQE_ERR);
	rdma_count(qp->dev, failure_stats[status]);
	qp->stats.tx_errors++;
	qp->dev->stats.traffic.tx_errors++;
	if (status == RDMA_LOC_QP_OP_ERR)
		counter_inc(&rdma_wr_malformed);
	if (status == RDMA_LOC_PROT_ERR)
		counter_inc(&rdma_wr_protection);
	log_guest("rdma %s: QP %u: send ends with %s", qp->dev->name, qp->qpn,
	          rdma_status_name(status));
}

/* The oldest message leaves the window. */
static enum rdma_status complete_head(struct rdma_qp *qp)
{
	struct rdma_msg *msg = rdma_qp_msg(qp, qp->head);
	const struct rdma_wr *wr = &msg->wr;
	enum rdma_status status = msg->status;
	struct rdma_wc wc;

	wc.wr_id = wr->wr_id;
	wc.status = status;
	wc.opcode = wr->opcode;
	wc.length = wr->length;
	wc.signaled = wr->flags & RDMA_WR_SIGNALED;
	wc.remote = qp->type != RDMA_QP_UD && wr->opcode < RDMA_OPCODES &&
	            !rdma_op_is(wr->opcode, OP_LOCAL);
	if (status == RDMA_OK)
		rdma_count_tx(qp, wr->opcode, rdma_op_is(wr->opcode, OP_LOCAL) ? 0 : wr->length);
	else
		count_failure(qp, status);
	msg->state = RDMA_MSG_IDLE;
	qp->head++;
	qp->paused = true;
	qp->dev->ops->complete_send(qp->owner, &wc);
	return status;
}

static enum step step_retire(struct rdma_qp *qp, struct rdma_budget *budget)
{
	(void)budget;
	while (qp->head != qp->tx && rdma_qp_msg(qp, qp->head)->state == RDMA_MSG_DONE) {
		if (complete_head(qp) != RDMA_OK) {
			rdma_qp_enter_error(qp, 0);
			return STEP_STOP;
		}
	}
	if (qp->fail_pending) {
		rdma_qp_enter_error(qp, qp->fail_fatal ? RDMA_EVENT_QP_FATAL : 0);
		return STEP_STOP;
	}
	if (qp->state == RDMA_QPS_SQD && qp->head == qp->tail && qp->sqd_event) {
		qp->sqd_event = false;
		qp->dev->ops->event(qp->owner, RDMA_EVENT_SQ_DRAINED);
	}
	return qp->timer_fired ? STEP_EXPIRE : STEP_TRANSMIT;
}

/* ---- time ---- */

/* The oldest message has used up its retries. */
static enum step give_up(struct rdma_qp *qp, enum rdma_status status)
{
	message_end(rdma_qp_msg(qp, qp->head), status);
	if (qp->tx == qp->head)
		qp->tx++;
	return STEP_RETIRE;
}

static enum step step_expire(struct rdma_qp *qp, struct rdma_budget *budget)
{
	(void)budget;
	bool rnr = qp->timer_kind == RDMA_TIMER_RNR;

	qp->timer_fired = false;
	qp->timer_stale = true;
	qp->timer_kind = RDMA_TIMER_NONE;
	if (qp->head == qp->tail || rdma_qp_msg(qp, qp->head)->state == RDMA_MSG_DONE)
		return STEP_TRANSMIT;
	if (rnr) {
		rdma_count(qp->dev, RDMA_STAT_REQ_RX_RNR_RETRY);
		qp->stats.rnrs++;
		qp->dev->stats.traffic.rnrs++;
		if (qp->attr.rnr_retry != RDMA_RETRY_FOREVER && qp->rnr_left-- == 0)
			return give_up(qp, RDMA_RNR_RETRY_EXC_ERR);
	} else {
		if (qp->retry_left-- == 0)
			return give_up(qp, RDMA_RETRY_EXC_ERR);
		rdma_count(qp->dev, RDMA_STAT_RETRIES);
		qp->stats.retries++;
		qp->dev->stats.traffic.retries++;
	}
	rdma_requester_rewind(qp);
	return STEP_TRANSMIT;
}

static void message_restart(struct rdma_msg *msg)
{
	rdma_inbound_cancel(&msg->inbound);
	if (msg->state == RDMA_MSG_STARTED) {
		msg->fabric_word = 0;
		rdma_msg_seek(msg, 0);
	}
}

void rdma_requester_rewind(struct rdma_qp *qp)
{
	struct rdma_fabric *fabric = qp->dev->fabric;

	rdma_qp_stop_waiting(qp);
	qp->block = RDMA_BLOCK_NONE;
	for (uint32_t i = qp->head; i != qp->tail; i++)
		message_restart(rdma_qp_msg(qp, i));
	qp->tx = qp->head;
	if (fabric && fabric->ops->rewind)
		fabric->ops->rewind(fabric, qp);
}

void rdma_requester_drop(struct rdma_qp *qp)
{
	struct rdma_fabric *fabric = qp->dev->fabric;

	for (uint32_t i = qp->head; i != qp->tail; i++) {
		rdma_inbound_cancel(&rdma_qp_msg(qp, i)->inbound);
		rdma_qp_msg(qp, i)->state = RDMA_MSG_IDLE;
	}
	qp->head = qp->tx = qp->tail = 0;
	qp->fetching = 0;
	qp->kicked = false;
	qp->stopped = false;
	qp->kick_ns = 0;
	qp->block = RDMA_BLOCK_NONE;
	rdma_qp_stop_waiting(qp);
	if (fabric && fabric->ops->forget)
		fabric->ops->forget(fabric, qp);
}

/* ---- slices ---- */

static enum step (*const steps[])(struct rdma_qp *qp, struct rdma_budget *budget) = {
        [STEP_RETIRE] = step_retire,
        [STEP_EXPIRE] = step_expire,
        [STEP_TRANSMIT] = step_transmit,
        [STEP_FETCH] = step_fetch,
};

bool rdma_requester_run(struct rdma_qp *qp, struct rdma_budget *budget)
{
	enum step step = rdma_states[qp->state].sends || qp->fail_pending ? STEP_RETIRE : STEP_STOP;

	qp->running = true;
	while (step < STEP_STOP)
		step = steps[step](qp, budget);
	qp->running = false;
	rdma_qp_update_timer(qp);
	if (qp->paused) {
		qp->paused = false;
		if (qp->dev->ops->sq_pause)
			qp->dev->ops->sq_pause(qp->owner);
	}
	return step == STEP_AGAIN;
}

/* ---- what fabrics call ---- */

bool rdma_msg_is_open(const struct rdma_msg *msg)
{
	return msg->state == RDMA_MSG_STARTED;
}

/* The QP looks at its window again, when it is not just doing so. */
static void look_again(struct rdma_qp *qp)
{
	if (!qp->running)
		rdma_qp_make_ready(qp);
}

static void note_progress(struct rdma_qp *qp)
{
	qp->retry_left = qp->attr.retry_count;
	qp->rnr_left = qp->attr.rnr_retry;
	qp->timer_stale = true;
}

void rdma_msg_done(struct rdma_msg *msg, enum rdma_status status)
{
	if (!rdma_msg_is_open(msg))
		return;
	message_end(msg, status);
	note_progress(msg->qp);
	look_again(msg->qp);
}

void rdma_msg_answered(struct rdma_msg *msg, enum rdma_verdict verdict)
{
	static const enum rdma_status statuses[] = {
	        [RDMA_VERDICT_OK] = RDMA_OK,
	        [RDMA_VERDICT_DROP] = RDMA_OK, /* UC and UD: it was sent, that is all */
	        [RDMA_VERDICT_INV_REQ] = RDMA_REM_INV_REQ_ERR,
	        [RDMA_VERDICT_ACCESS] = RDMA_REM_ACCESS_ERR,
	        [RDMA_VERDICT_OPER] = RDMA_REM_OP_ERR,
	};

	assert(verdict != RDMA_VERDICT_RNR && verdict != RDMA_VERDICT_DUPLICATE);
	rdma_msg_done(msg, statuses[verdict]);
}

void rdma_msg_not_ready(struct rdma_msg *msg, uint8_t rnr_timer)
{
	struct rdma_qp *qp = msg->qp;

	if (!rdma_msg_is_open(msg))
		return;
	/* with a full window the place behind the newest message is that of the oldest */
	while (qp->tx != qp->head && (qp->tx == qp->tail || rdma_qp_msg(qp, qp->tx) != msg))
		message_restart(rdma_qp_msg(qp, --qp->tx));
	qp->block = RDMA_BLOCK_RNR;
	qp->rnr_code = rnr_timer;
	qp->timer_stale = true;
	look_again(qp);
}

void rdma_msg_seek(struct rdma_msg *msg, uint32_t offset)
{
	msg->offset = offset;
	rdma_cursor_seek(&msg->cursor, msg->wr.sge, msg->cursor.flat ? 0 : msg->wr.num_sge, offset);
}

/* A failure of local memory in mid-message. */
static void message_fail_local(struct rdma_msg *msg)
{
	rdma_inbound_cancel(&msg->inbound);
	rdma_msg_done(msg, RDMA_LOC_PROT_ERR);
}

int rdma_msg_map(struct rdma_msg *msg, size_t size, struct iovec *iov, unsigned max)
{
	int count = rdma_cursor_map(&msg->cursor, size, iov, max);

	if (msg->cursor.failed)
		message_fail_local(msg);
	return count;
}

int rdma_msg_copy(struct rdma_msg *msg, void *buf, size_t size)
{
	int error = rdma_op_fetches(msg->wr.opcode) ? rdma_cursor_write(&msg->cursor, buf, size)
	                                            : rdma_cursor_read(&msg->cursor, buf, size);

	if (error)
		message_fail_local(msg);
	return error;
}

int rdma_msg_peek(const struct rdma_msg *msg, uint32_t offset, void *buf, size_t size)
{
	struct rdma_cursor cursor = msg->cursor;

	if (offset > msg->wr.length || size > msg->wr.length - offset)
		return -EINVAL;
	rdma_cursor_seek(&cursor, msg->wr.sge, cursor.flat ? 0 : msg->wr.num_sge, offset);
	return rdma_cursor_read(&cursor, buf, size);
}

int rdma_msg_store_atomic(struct rdma_msg *msg, uint64_t value)
{
	return rdma_msg_copy(msg, &value, sizeof(value));
}

int rdma_msg_move(struct rdma_msg *msg, size_t size, rdma_copy_fn *fn, void *arg)
{
	struct rdma_inbound *in = &msg->inbound;
	struct rdma_copy copy = {.fn = fn, .arg = arg, .offset = msg->offset};
	int error = rdma_op_is(msg->wr.opcode, OP_OUT)
	                    ? rdma_cursor_move(&in->cursor, &msg->cursor, size, &copy)
	                    : rdma_cursor_move(&msg->cursor, &in->cursor, size, &copy);

	if (!error) {
		msg->offset += (uint32_t)size;
		in->done += (uint32_t)size;
		return 0;
	}
	if (msg->cursor.failed)
		message_fail_local(msg);
	else
		rdma_msg_answered(msg, rdma_inbound_end(in));
	return -EIO;
}

void rdma_qp_progress(struct rdma_qp *qp)
{
	note_progress(qp);
	if (!qp->running)
		rdma_qp_update_timer(qp);
}

void rdma_qp_retry(struct rdma_qp *qp)
{
	if (qp->block == RDMA_BLOCK_RNR || qp->head == qp->tail)
		return;
	loop_disarm(qp->dev->loop, &qp->timer);
	qp->timer_kind = RDMA_TIMER_ACK;
	qp->timer_fired = true;
	look_again(qp);
}

void rdma_qp_resume(struct rdma_qp *qp)
{
	if (qp->block != RDMA_BLOCK_FABRIC && qp->block != RDMA_BLOCK_RNR)
		return;
	rdma_qp_stop_waiting(qp);
	qp->block = RDMA_BLOCK_NONE;
	rdma_qp_update_timer(qp); /* a period that ends now does not count any more */
	rdma_qp_make_ready(qp);
}

struct rdma_msg *rdma_qp_outstanding(struct rdma_qp *qp, unsigned index)
{
	return index < qp->tx - qp->head ? rdma_qp_msg(qp, qp->head + index) : NULL;
}

struct rdma_msg *rdma_qp_message(struct rdma_qp *qp, unsigned index)
{
	return index < qp->tail - qp->head ? rdma_qp_msg(qp, qp->head + index) : NULL;
}

void rdma_msg_count(struct rdma_msg *msg, enum rdma_stat stat)
{
	rdma_count(msg->qp->dev, stat);
}
