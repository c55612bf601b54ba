/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder: from the fabric to memory and receive queue.
 *
 * A message is offered, passes a list of checks in the order of the architecture (spec rocev2 8.2),
 * takes its bytes, and ends. The first check that fails decides what its sender hears, and what the
 * owner of this QP does: see refuse().
 */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define BTH_SIZE  12 /* spec rocev2 2, 3, 5 */
#define DETH_SIZE 8
#define IMM_SIZE  4
#define ICRC_SIZE 4

COUNTER(rdma_rx_bad_state, "messages for a QP that takes none in its state, or not of this type");
COUNTER(rdma_rx_bad_peer, "messages for a connected QP from somebody else than its peer");
COUNTER(rdma_rx_bad_qkey, "datagrams with another Q_Key than their QP's");
COUNTER(rdma_rx_too_long, "messages that did not fit their receive");

static const struct rdma_op_info *op_of(const struct rdma_inbound *in)
{
	return &rdma_ops[in->req->opcode];
}

static uint32_t grh_size(const struct rdma_qp *qp)
{
	return qp->type == RDMA_QP_UD ? RDMA_GRH_SIZE : 0;
}

/* ---- under way ---- */

static void inbound_link(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	in->next = qp->inbounds;
	in->link = &qp->inbounds;
	if (in->next)
		in->next->link = &in->next;
	qp->inbounds = in;
	if (rdma_op_fetches(in->req->opcode))
		qp->answering++;
	else
		qp->landing = in;
}

/* The message is not under way any more, or never was. */
static void inbound_unlink(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	in->qp = NULL;
	if (!in->link)
		return;
	*in->link = in->next;
	if (in->next)
		in->next->link = in->link;
	in->next = NULL;
	in->link = NULL;
	if (qp->landing == in)
		qp->landing = NULL;
	else
		qp->answering--;
}

void rdma_inbound_cancel(struct rdma_inbound *in)
{
	if (in->qp)
		inbound_unlink(in);
}

void rdma_responder_drop(struct rdma_qp *qp)
{
	while (qp->inbounds)
		inbound_unlink(qp->inbounds);
	assert(!qp->landing && qp->answering == 0);
	qp->recv_held = false;
}

/* ---- receives ---- */

/* Has a receive for the next message. Returns 0, -EAGAIN when none is posted, -EINVAL when it is
 * malformed, or another negative errno when the queue cannot be read. */
static int take_receive(struct rdma_qp *qp)
{
	if (qp->recv_held)
		return 0;
	int got = qp->dev->ops->fetch_recv(qp->owner, &qp->recv);

	if (got == 0)
		return -EAGAIN;
	if (got < 0 && got != -EINVAL)
		return got;
	qp->recv_held = true;
	return got < 0 || qp->recv.num_sge > RDMA_SGE_MAX ? -EINVAL : 0;
}

static uint64_t receive_capacity(const struct rdma_recv *recv)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < recv->num_sge; i++)
		size += recv->sge[i].length;
	return size < recv->length ? size : recv->length;
}

static void complete_receive(struct rdma_inbound *in, struct rdma_qp *qp, enum rdma_status status)
{
	const struct rdma_request *req = in->req;
	struct rdma_wc wc = {.wr_id = qp->recv.wr_id,
	                     .status = status,
	                     .opcode = req->opcode,
	                     .solicited = req->solicited,
	                     .imm = req->imm,
	                     .src_qpn = req->src_qpn};

	qp->recv_held = false;
	if (status == RDMA_OK) {
		wc.length = in->done + grh_size(qp);
		if (qp->type == RDMA_QP_UD) {
			memcpy(wc.src_mac, req->av->src_mac, sizeof(wc.src_mac));
			wc.ipv4 = req->av->ip_version == 4;
			wc.vlan = req->av->vlan;
			wc.vlan_tci = req->av->vlan_tci;
		}
		qp->stats.receives++;
		qp->dev->stats.traffic.receives++;
	} else {
		rdma_count(qp->dev, RDMA_STAT_RESP_CQE_ERR);
		qp->stats.rx_errors++;
		qp->dev->stats.traffic.rx_errors++;
	}
	qp->dev->ops->complete_recv(qp->owner, &wc);
}

/* ---- refusals ---- */

static const struct {
	enum rdma_stat sent;   /* the NAK */
	enum rdma_event event; /* for the owner, when no receive takes the blame */
} refusals[] = {
        [RDMA_VERDICT_INV_REQ] = {RDMA_STAT_RESP_TX_INV_REQ, RDMA_EVENT_REQ_ERR},
        [RDMA_VERDICT_ACCESS] = {RDMA_STAT_RESP_TX_ACCESS, RDMA_EVENT_ACCESS_ERR},
        [RDMA_VERDICT_OPER] = {RDMA_STAT_RESP_TX_OPER, RDMA_EVENT_QP_FATAL},
};

static enum rdma_verdict drop(struct rdma_inbound *in, struct counter *counter)
{
	if (counter)
		counter_inc(counter);
	rdma_count(in->qp->dev, RDMA_STAT_DROPPED);
	inbound_unlink(in);
	return RDMA_VERDICT_DROP;
}

/*
 * The message cannot be executed (spec ionic-rdma 9.3). RC: the receive that it took completes with
 * BLAME, or else an event is raised; the QP goes to ERR; the sender hears VERDICT. UC and UD: it
 * is dropped and its receive serves the next, unless the receive itself is at fault.
 */
static enum rdma_verdict refuse(struct rdma_inbound *in, enum rdma_verdict verdict,
                                enum rdma_status blame)
{
	struct rdma_qp *qp = in->qp;
	bool connected = qp->type == RDMA_QP_RC;
	bool own_fault = blame == RDMA_LOC_PROT_ERR || blame == RDMA_LOC_QP_OP_ERR;

	if (!connected && !own_fault)
		return drop(in, NULL);
	bool blamed = qp->recv_held && (op_of(in)->flags & OP_RECV);

	if (connected)
		rdma_count(qp->dev, refusals[verdict].sent);
	log_guest("rdma %s: QP %u refuses a %s of QP %u: %s", qp->dev->name, qp->qpn,
	          op_of(in)->name, in->req->src_qpn, rdma_status_name(blame));
	inbound_unlink(in);
	if (blamed)
		complete_receive(in, qp, blame);
	rdma_qp_enter_error(qp, blamed ? 0 : refusals[verdict].event);
	return connected ? verdict : RDMA_VERDICT_DROP;
}

/* ---- checks, in their order ---- */

static enum rdma_verdict check_state(struct rdma_inbound *in)
{
	const struct rdma_qp *qp = in->qp;
	const struct rdma_request *req = in->req;

	if (!rdma_states[qp->state].answers || req->transport != qp->type ||
	    req->opcode >= RDMA_OPCODES || rdma_op_is(req->opcode, OP_LOCAL) ||
	    !(op_of(in)->qp_types & 1 << qp->type))
		return drop(in, &rdma_rx_bad_state);
	return RDMA_VERDICT_OK;
}

static bool is_peer(const struct rdma_qp *qp, const struct rdma_request *req)
{
	const struct rdma_av *own = &qp->attr.av;

	return req->src_qpn == qp->attr.dest_qpn && req->av && own->ip_version != 0 &&
	       memcmp(req->av->sgid, own->dgid, sizeof(own->dgid)) == 0 &&
	       memcmp(req->av->dgid, own->sgid, sizeof(own->sgid)) == 0;
}

static enum rdma_verdict check_peer(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	if (qp->type == RDMA_QP_UD) {
		if (!in->req->av || in->req->qkey != qp->attr.qkey)
			return drop(in, &rdma_rx_bad_qkey);
		return RDMA_VERDICT_OK;
	}
	if (!is_peer(qp, in->req))
		return drop(in, &rdma_rx_bad_peer);
	return RDMA_VERDICT_OK;
}

/* RC: exactly the next message. UC: any first packet sets the sequence (spec rocev2 6). */
static enum rdma_verdict check_sequence(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;
	uint32_t ahead = (in->req->psn - qp->attr.rq_psn) & RDMA_PSN_MASK;

	if (qp->type == RDMA_QP_RC && ahead != 0) {
		bool duplicate = ahead > RDMA_PSN_MASK / 2;

		rdma_count(qp->dev,
		           duplicate ? RDMA_STAT_RESP_RX_DUP : RDMA_STAT_RESP_RX_OUT_OF_SEQ);
		inbound_unlink(in);
		return duplicate ? RDMA_VERDICT_DUPLICATE : RDMA_VERDICT_DROP;
	}
	if (qp->landing)
		return drop(in, NULL);
	if (qp->state == RDMA_QPS_RTR && qp->type != RDMA_QP_UD && !qp->comm_est) {
		qp->comm_est = true;
		qp->dev->ops->event(qp->owner, RDMA_EVENT_COMM_EST);
	}
	return RDMA_VERDICT_OK;
}

static enum rdma_verdict check_permission(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	if (op_of(in)->qp_access & ~qp->attr.access)
		return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_LOC_ACCESS_ERR);
	if (rdma_op_fetches(in->req->opcode) && qp->answering >= qp->attr.max_dest_rd_atomic) {
		rdma_count(qp->dev, RDMA_STAT_RESP_RX_OUT_OF_ATOMIC);
		return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_LOC_ACCESS_ERR);
	}
	return RDMA_VERDICT_OK;
}

static enum rdma_verdict check_receive(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	if (!(op_of(in)->flags & OP_RECV))
		return RDMA_VERDICT_OK;
	int error = take_receive(qp);

	if (!error)
		return RDMA_VERDICT_OK;
	if (error == -EAGAIN) {
		rdma_count(qp->dev, RDMA_STAT_RESP_RX_OUT_OF_BUFFER);
		if (qp->type != RDMA_QP_RC)
			return drop(in, NULL);
		rdma_count(qp->dev, RDMA_STAT_RESP_TX_RNR);
		in->rnr_timer = qp->attr.rnr_timer;
		if (!in->link) /* had not begun */
			in->qp = NULL;
		return RDMA_VERDICT_RNR;
	}
	rdma_count(qp->dev, RDMA_STAT_RESP_RX_LOC_QP_OPER);
	return refuse(in, RDMA_VERDICT_OPER, RDMA_LOC_QP_OP_ERR);
}

static enum rdma_verdict refuse_too_long(struct rdma_inbound *in)
{
	counter_inc(&rdma_rx_too_long);
	rdma_count(in->qp->dev, RDMA_STAT_RESP_RX_LOC_LEN);
	return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_LOC_LEN_ERR);
}

static enum rdma_verdict check_length(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;
	uint32_t length = in->req->length;

	if (length == RDMA_LENGTH_UNKNOWN)
		return RDMA_VERDICT_OK;
	if (length > RDMA_MESSAGE_MAX) {
		rdma_count(qp->dev, RDMA_STAT_RESP_RX_INV_REQ);
		return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_LOC_LEN_ERR);
	}
	if ((op_of(in)->flags & OP_SINK) &&
	    (uint64_t)length + grh_size(qp) > receive_capacity(&qp->recv))
		return refuse_too_long(in);
	return RDMA_VERDICT_OK;
}

/* Memory that the request names. A length of 0 touches nothing and needs no key. */
static enum rdma_verdict open_remote(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	if (rdma_op_is(in->req->opcode, OP_ATOMIC) && in->req->va % sizeof(uint64_t) != 0) {
		rdma_count(qp->dev, RDMA_STAT_RESP_RX_INV_REQ);
		return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_LOC_ACCESS_ERR);
	}
	in->target = (struct rdma_sge){
	        .va = in->req->va, .length = in->req->length, .lkey = in->req->rkey};
	in->cursor.access = op_of(in)->remote;
	in->cursor.raw_key = qp->remote_privileged;
	in->cursor.remote = true;
	rdma_cursor_seek(&in->cursor, &in->target, 1, 0);
	if (rdma_cursor_check(&in->cursor, in->req->length) != RDMA_OK)
		return refuse(in, RDMA_VERDICT_ACCESS, RDMA_LOC_ACCESS_ERR);
	return RDMA_VERDICT_OK;
}

/* The receive's memory; in front of a datagram goes its GRH. */
static enum rdma_verdict open_receive(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;
	uint64_t size = in->req->length == RDMA_LENGTH_UNKNOWN ? 0 : in->req->length;
	uint8_t grh[RDMA_GRH_SIZE];

	in->cursor.access = RDMA_ACCESS_LOCAL_WRITE;
	in->cursor.raw_key = qp->privileged;
	rdma_cursor_seek(&in->cursor, qp->recv.sge, qp->recv.num_sge, 0);
	enum rdma_status status = rdma_cursor_check(&in->cursor, size + grh_size(qp));

	if (status == RDMA_OK && qp->type == RDMA_QP_UD) {
		uint32_t udp = BTH_SIZE + DETH_SIZE + ICRC_SIZE + ((in->req->length + 3) & ~3u);

		if (op_of(in)->flags & OP_IMM)
			udp += IMM_SIZE;
		rdma_av_grh(in->req->av, udp, grh);
		if (rdma_cursor_write(&in->cursor, grh, sizeof(grh)))
			status = RDMA_LOC_PROT_ERR;
	}
	if (status != RDMA_OK)
		return refuse(in, RDMA_VERDICT_OPER, RDMA_LOC_PROT_ERR);
	return RDMA_VERDICT_OK;
}

static enum rdma_verdict check_memory(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	in->cursor = (struct rdma_cursor){.dev = qp->dev, .pd = qp->pd, .qpn = qp->qpn};
	if (op_of(in)->flags & OP_SINK)
		return open_receive(in);
	return in->req->length > 0 ? open_remote(in) : RDMA_VERDICT_OK;
}

/* A READ whose answer got lost, and nothing else. */
static enum rdma_verdict check_repeated(struct rdma_inbound *in)
{
	uint32_t ahead = (in->req->psn - in->qp->attr.rq_psn) & RDMA_PSN_MASK;

	if (in->req->opcode != RDMA_READ || ahead <= RDMA_PSN_MASK / 2)
		return drop(in, NULL);
	return RDMA_VERDICT_OK;
}

typedef enum rdma_verdict check_fn(struct rdma_inbound *in);

static check_fn *const checks[] = {
        check_state,   check_peer,   check_sequence, check_permission,
        check_receive, check_length, check_memory,
};

static check_fn *const repeat_checks[] = {
        check_state, check_peer, check_repeated, check_permission, check_length, check_memory,
};

static void advance_sequence(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	qp->attr.rq_psn = (in->req->psn + in->req->packets) & RDMA_PSN_MASK;
	qp->msn = (qp->msn + 1) & RDMA_PSN_MASK;
}

/* Sets IN up for REQ and runs the checks, until the first that fails. */
static enum rdma_verdict run_checks(struct rdma_inbound *in, struct rdma_qp *qp,
                                    const struct rdma_request *req, check_fn *const *list,
                                    size_t count)
{
	assert(!in->qp);
	in->qp = qp;
	in->link = NULL;
	in->req = req;
	in->done = 0;
	in->too_long = false;
	for (size_t i = 0; i < count; i++) {
		enum rdma_verdict verdict = list[i](in);

		if (verdict != RDMA_VERDICT_OK)
			return verdict;
	}
	inbound_link(in);
	return RDMA_VERDICT_OK;
}

enum rdma_verdict rdma_inbound_repeat(struct rdma_inbound *in, struct rdma_qp *qp,
                                      const struct rdma_request *req)
{
	return run_checks(in, qp, req, repeat_checks, ARRAY_SIZE(repeat_checks));
}

enum rdma_verdict rdma_inbound_begin(struct rdma_inbound *in, struct rdma_qp *qp,
                                     const struct rdma_request *req)
{
	enum rdma_verdict verdict = run_checks(in, qp, req, checks, ARRAY_SIZE(checks));

	if (verdict != RDMA_VERDICT_OK)
		return verdict;
	/* what is answered with data counts as soon as it is accepted (spec rocev2 7.1) */
	if (rdma_op_fetches(req->opcode))
		advance_sequence(in);
	return RDMA_VERDICT_OK;
}

/* ---- the bytes ---- */

/* A SEND of unknown length grows beyond its receive. */
static bool outgrows_receive(struct rdma_inbound *in, size_t size)
{
	if (in->req->length != RDMA_LENGTH_UNKNOWN)
		return false;
	in->too_long = (uint64_t)in->done + size > receive_capacity(&in->qp->recv);
	return in->too_long;
}

int rdma_inbound_map(struct rdma_inbound *in, size_t size, struct iovec *iov, unsigned max)
{
	if (!in->qp)
		return -ENOTCONN;
	if (outgrows_receive(in, size))
		return -EMSGSIZE;
	int count = rdma_cursor_map(&in->cursor, size, iov, max);

	for (int i = 0; i < count; i++)
		in->done += (uint32_t)iov[i].iov_len;
	return count;
}

int rdma_inbound_copy(struct rdma_inbound *in, void *buf, size_t size)
{
	if (!in->qp)
		return -ENOTCONN;
	if (outgrows_receive(in, size))
		return -EMSGSIZE;
	int error = rdma_op_fetches(in->req->opcode) ? rdma_cursor_read(&in->cursor, buf, size)
	                                             : rdma_cursor_write(&in->cursor, buf, size);

	if (!error)
		in->done += (uint32_t)size;
	return error;
}

void rdma_inbound_seek(struct rdma_inbound *in, uint32_t offset)
{
	struct rdma_qp *qp = in->qp;
	bool sink = qp && op_of(in)->flags & OP_SINK;

	in->done = offset;
	if (sink)
		rdma_cursor_seek(&in->cursor, qp->recv.sge, qp->recv.num_sge,
		                 offset + grh_size(qp));
	else if (qp && in->req->length > 0)
		rdma_cursor_seek(&in->cursor, &in->target, 1, offset);
}

int rdma_inbound_peek(const struct rdma_inbound *in, uint32_t offset, void *buf, size_t size)
{
	struct rdma_inbound copy = *in;

	if (!in->qp || offset > in->done || size > in->done - offset)
		return -EINVAL;
	rdma_inbound_seek(&copy, offset);
	return rdma_cursor_read(&copy.cursor, buf, size);
}

/* ---- the end ---- */

static uint64_t atomic_on_word(const struct rdma_request *req, _Atomic uint64_t *word)
{
	uint64_t old = req->compare;

	if (req->opcode == RDMA_FETCH_ADD)
		return atomic_fetch_add(word, req->swap_add);
	atomic_compare_exchange_strong(word, &old, req->swap_add);
	return old;
}

/* Memory that can only be copied is shared with nobody who could tell the difference. */
static int atomic_by_copy(struct rdma_inbound *in)
{
	struct rdma_cursor at = in->cursor;
	_Atomic uint64_t word = 0;
	uint64_t value;

	if (rdma_cursor_read(&in->cursor, &value, sizeof(value)))
		return -EACCES;
	atomic_store(&word, value);
	in->atomic = atomic_on_word(in->req, &word);
	value = atomic_load(&word);
	in->cursor = at;
	return rdma_cursor_write(&in->cursor, &value, sizeof(value)) ? -EACCES : 0;
}

static enum rdma_verdict end_atomic(struct rdma_inbound *in)
{
	_Atomic uint64_t *word;
	int error = rdma_cursor_word(&in->cursor, &word);

	if (!error)
		in->atomic = atomic_on_word(in->req, word);
	else if (error == -ENOTSUP)
		error = atomic_by_copy(in);
	if (error == -EINVAL)
		return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_LOC_ACCESS_ERR);
	return error ? refuse(in, RDMA_VERDICT_ACCESS, RDMA_LOC_ACCESS_ERR) : RDMA_VERDICT_OK;
}

/* What is left to do behind the last byte, or to refuse. */
static enum rdma_verdict end_checks(struct rdma_inbound *in)
{
	enum rdma_verdict verdict = check_receive(in); /* a WRITE may have become WRITE_IMM */

	if (verdict != RDMA_VERDICT_OK)
		return verdict;
	if (in->too_long)
		return refuse_too_long(in);
	if (in->cursor.failed)
		return in->cursor.remote ? refuse(in, RDMA_VERDICT_ACCESS, RDMA_LOC_ACCESS_ERR)
		                         : refuse(in, RDMA_VERDICT_OPER, RDMA_LOC_PROT_ERR);
	if (op_of(in)->flags & OP_ATOMIC)
		return end_atomic(in);
	if ((op_of(in)->flags & OP_INV) && rdma_mr_invalidate(in->qp, in->req->inv_key) != RDMA_OK)
		return refuse(in, RDMA_VERDICT_OPER, RDMA_LOC_ACCESS_ERR);
	return RDMA_VERDICT_OK;
}

enum rdma_verdict rdma_inbound_want_recv(struct rdma_inbound *in)
{
	return in->qp ? check_receive(in) : RDMA_VERDICT_DROP;
}

enum rdma_verdict rdma_inbound_refuse(struct rdma_inbound *in, struct rdma_qp *qp,
                                      const struct rdma_request *req)
{
	if (!in->qp) {
		in->qp = qp;
		in->link = NULL;
		in->req = req;
	}
	rdma_count(qp->dev, RDMA_STAT_RESP_RX_INV_REQ);
	return refuse(in, RDMA_VERDICT_INV_REQ, RDMA_REM_INV_REQ_ERR);
}

enum rdma_verdict rdma_inbound_end(struct rdma_inbound *in)
{
	struct rdma_qp *qp = in->qp;

	if (!qp)
		return RDMA_VERDICT_DROP;
	enum rdma_verdict verdict = end_checks(in);

	if (verdict != RDMA_VERDICT_OK)
		return verdict;
	if (!rdma_op_fetches(in->req->opcode))
		advance_sequence(in);
	rdma_count_rx(qp, in->req->opcode,
	              op_of(in)->flags & OP_ATOMIC ? sizeof(uint64_t) : in->done);
	inbound_unlink(in);
	if (op_of(in)->flags & OP_RECV)
		complete_receive(in, qp, RDMA_OK);
	return RDMA_VERDICT_OK;
}
