/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs: their two rings, and what becomes of the requests in them (spec ionic-rdma 5, 6).
 *
 * The engine asks for requests one by one and tells how each ended. What the driver hears of a send
 * follows from what it counts (5.3). Requests that a peer answers (RC and UC, not local opcodes)
 * it counts in the MSN: a completion carries the number of those that are done, and means all up to
 * it; so one is written at the end of a run of them, if one of the run was signaled. All others
 * complete one by one, by their index (NPG), signaled or not; as the driver retires requests in
 * order only, one that the application hears of needs those before it to be accounted for first.
 *
 *	                         signaled                      not signaled
 *	answered by a peer       MSN, at the end of the run    nothing, until something else needs
 *it local, or on UD          MSN if behind, NPG            NPG failed at the peer       MSN with
 *the status           the same failed on this side      MSN if behind, NPG with it    the same
 *
 * A QP that enters ERR writes one flush marker for each of its queues: the driver then invents
 * completions for all that is left in them (5.6). What is posted later it flushes by itself when
 * its CQ is polled; but nobody polls who waits for an event, and the kernel's call of its own
 * handler is lost when it meets the end of a poll. So a doorbell in ERR is answered with one more
 * marker, which the driver takes for nothing but an entry of the CQ, with its event.
 */
#include "rdma_lif.h"

#include <errno.h>

COUNTER(ionic_sq_bad_index, "send doorbells with an index beyond the ring, ignored");
COUNTER(ionic_rq_bad_index, "receive doorbells with an index beyond the ring, ignored");
COUNTER(ionic_sq_bad_state, "send doorbells of a QP in a state that has no sends, ignored");
COUNTER(ionic_rq_bad_state, "receive doorbells of a QP in a state that has no receives, ignored");
COUNTER(ionic_wqe_fetch_error, "work requests that could not be read");

/* ---- doorbells (7.3) ---- */

#define STATE_BIT(state) (1u << RDMA_QPS_##state)

/* Where a send doorbell means something; in SQD it is remembered. */
#define SQ_STATES (STATE_BIT(RTS) | STATE_BIT(SQD) | STATE_BIT(SQE))
#define RQ_STATES                                                                                  \
	(STATE_BIT(INIT) | STATE_BIT(RTR) | STATE_BIT(RTS) | STATE_BIT(SQD) | STATE_BIT(SQE))

static bool in_states(const struct ionic_qp *qp, unsigned states)
{
	return states >> rdma_qp_state(qp->engine) & 1;
}

/* The marker is due in the work phase; one is enough for all that is posted until then. */
static void posted_in_error(struct ionic_wq *wq)
{
	struct ionic_rdma *rdma = wq->qp->rdma;

	if (wq->flush_due)
		return;
	wq->flush_due = true;
	TAILQ_INSERT_TAIL(&rdma->posted_in_err, wq, posted);
	ionic_dev_schedule(rdma->dev);
}

void ionic_wq_forget_posted(struct ionic_wq *wq)
{
	if (wq->flush_due)
		TAILQ_REMOVE(&wq->qp->rdma->posted_in_err, wq, posted);
	wq->flush_due = false;
}

void ionic_qp_sq_doorbell(struct ionic_qp *qp, uint32_t index)
{
	qp->rdma->count.sq_doorbells++;
	qp->doorbells++;
	if (index > ionic_ring_mask(&qp->sq.ring)) {
		counter_inc(&ionic_sq_bad_index);
	} else if (in_states(qp, STATE_BIT(ERR))) {
		posted_in_error(&qp->sq);
	} else if (!in_states(qp, SQ_STATES)) {
		counter_inc(&ionic_sq_bad_state);
	} else {
		qp->sq.prod = index;
		rdma_qp_kick(qp->engine);
	}
}

void ionic_qp_rq_doorbell(struct ionic_qp *qp, uint32_t index)
{
	qp->rdma->count.rq_doorbells++;
	qp->doorbells++;
	if (index > ionic_ring_mask(&qp->rq.ring)) {
		counter_inc(&ionic_rq_bad_index);
	} else if (in_states(qp, STATE_BIT(ERR))) {
		posted_in_error(&qp->rq);
	} else if (!in_states(qp, RQ_STATES)) {
		counter_inc(&ionic_rq_bad_state);
	} else {
		qp->rq.prod = index;
		rdma_qp_kick_recv(qp->engine);
	}
}

void ionic_qp_restart(struct ionic_qp *qp)
{
	qp->sq.prod = qp->sq.cons = 0;
	qp->rq.prod = qp->rq.cons = 0;
	qp->msn = qp->msn_reported = 0;
	qp->msn_wanted = false;
	ionic_wq_forget_posted(&qp->sq);
	ionic_wq_forget_posted(&qp->rq);
	ionic_eq_forget(&qp->events);
}

/* ---- requests ---- */

/*
 * Reads the request at the head of a queue into *WQE: the first bytes, and the others when SIZE_OF
 * says so. Returns 1, 0 when the queue is empty, -EINVAL when the request cannot be, or another
 * errno when it cannot be read. The head moves on in every case but the last.
 */
static int wqe_read(struct ionic_wq *wq, union ionic_rdma_wqe *wqe,
                    int (*size_of)(const union ionic_rdma_wqe *wqe, size_t stride))
{
	struct ionic_rdma *rdma = wq->qp->rdma;
	uint64_t addr = ionic_ring_addr(&wq->ring, wq->cons);
	const size_t first = IONIC_RDMA_WQE_SIZE;
	int size, rc;

	if (wq->cons == wq->prod)
		return 0;
	rc = ionic_rdma_read(rdma, addr, wqe->bytes, first);
	if (rc < 0)
		goto unreadable;
	size = size_of(wqe, (size_t)1 << wq->ring.stride_log2);
	if (size > (int)first) {
		rc = ionic_rdma_read(rdma, addr + first, wqe->bytes + first, (size_t)size - first);
		if (rc < 0)
			goto unreadable;
	}
	wq->cons = (wq->cons + 1) & ionic_ring_mask(&wq->ring);
	return size < 0 ? -EINVAL : 1;

unreadable:
	counter_inc(&ionic_wqe_fetch_error);
	return rc == -EINVAL ? -EFAULT : rc;
}

/* The keys of the next request are looked up while this one is executed: with many regions, that is
 * what takes long. Nothing hangs on what is read here; the request is copied when it is due. */
static void prefetch_keys(const struct ionic_qp *qp)
{
	struct ionic_rdma *rdma = qp->rdma;
	const union ionic_rdma_wqe *next;
	struct ionic_rdma_sge sge;
	struct iovec iov;

	if (qp->sq.cons == qp->sq.prod ||
	    ionic_rdma_map(rdma, ionic_ring_addr(&qp->sq.ring, qp->sq.cons), IONIC_RDMA_WQE_SIZE,
	                   GUEST_READ, &iov, 1) != 1)
		return;
	next = iov.iov_base;
	memcpy(&sge, next->bytes + IONIC_RDMA_WQE_PAYLOAD, sizeof(sge));
	rdma_mr_prefetch(rdma->engine, be32_get(next->rdma.rkey));
	rdma_mr_prefetch(rdma->engine, be32_get(sge.lkey));
}

int ionic_qp_fetch_send(void *owner, struct rdma_wr *wr)
{
	struct ionic_qp *qp = owner;
	union ionic_rdma_wqe wqe;
	int rc;

	wr->wr_id = qp->sq.cons;
	rc = wqe_read(&qp->sq, &wqe, ionic_wqe_send_size);
	if (rc == 1) {
		prefetch_keys(qp);
		ionic_wqe_send(&wqe, qp->datagram, wr);
	}
	return rc;
}

int ionic_qp_fetch_recv(void *owner, struct rdma_recv *recv)
{
	struct ionic_qp *qp = owner;
	union ionic_rdma_wqe wqe;
	int rc = wqe_read(&qp->rq, &wqe, ionic_wqe_recv_size);

	if (rc == 1)
		ionic_wqe_recv(&wqe, recv);
	if (rc == 1 || rc == -EINVAL)
		memcpy(&recv->wr_id, wqe.recv.wqe_id.raw, sizeof(recv->wr_id));
	return rc;
}

/* ---- completions ---- */

static void post(struct ionic_qp *qp, struct ionic_cq *cq, enum ionic_rdma_cqe_type type,
                 enum rdma_status status, union ionic_rdma_cqe *cqe, bool solicited)
{
	uint32_t flags = qp->qpn << IONIC_RDMA_CQE_QID_SHIFT | (uint32_t)type
	                                                               << IONIC_RDMA_CQE_TYPE_SHIFT;

	if (status != RDMA_OK) {
		flags |= IONIC_RDMA_CQE_ERROR;
		cqe->any.status_length = be32_make(status);
	}
	cqe->any.qid_type_flags = be32_make(flags);
	qp->completions++;
	ionic_cq_post(cq, cqe, solicited || status != RDMA_OK);
}

static void post_msn(struct ionic_qp *qp, enum rdma_status status)
{
	union ionic_rdma_cqe cqe = {{0}};

	qp->msn_reported = qp->msn;
	qp->msn_wanted = false;
	cqe.msn.msn = be32_make(qp->msn);
	post(qp, qp->sq.cq, IONIC_RDMA_CQE_SEND_MSN, status, &cqe, false);
}

static void post_npg(struct ionic_qp *qp, uint64_t index, enum rdma_status status)
{
	union ionic_rdma_cqe cqe = {{0}};

	cqe.npg.wqe_id = le64_make(index);
	post(qp, qp->sq.cq, IONIC_RDMA_CQE_SEND_NPG, status, &cqe, false);
}

/* The driver hears of all that are done. */
static void report_msn(struct ionic_qp *qp)
{
	if (qp->msn != qp->msn_reported)
		post_msn(qp, RDMA_OK);
}

/* Errors that a peer is the source of: the others are this side's (5.1). */
static bool is_peers(enum rdma_status status)
{
	return status == RDMA_BAD_RESP_ERR ||
	       (status >= RDMA_REM_INV_REQ_ERR && status <= RDMA_RNR_RETRY_EXC_ERR);
}

void ionic_qp_complete_send(void *owner, const struct rdma_wc *wc)
{
	struct ionic_qp *qp = owner;

	if (wc->remote && wc->status == RDMA_OK) {
		qp->msn++;
		qp->msn_wanted |= wc->signaled;
	} else if (wc->remote && is_peers(wc->status)) {
		qp->msn++;
		post_msn(qp, wc->status);
	} else {
		if (wc->signaled || wc->status != RDMA_OK)
			report_msn(qp);
		post_npg(qp, wc->wr_id, wc->status);
	}
}

void ionic_qp_sq_pause(void *owner)
{
	struct ionic_qp *qp = owner;

	if (qp->msn_wanted)
		report_msn(qp);
}

void ionic_qp_complete_recv(void *owner, const struct rdma_wc *wc)
{
	static const uint8_t ops[RDMA_OPCODES] = {
	        [RDMA_SEND] = IONIC_RDMA_RECV_SEND,
	        [RDMA_SEND_INV] = IONIC_RDMA_RECV_SEND_INV,
	        [RDMA_SEND_IMM] = IONIC_RDMA_RECV_SEND_IMM,
	        [RDMA_WRITE_IMM] = IONIC_RDMA_RECV_WRITE_IMM,
	};
	struct ionic_qp *qp = owner;
	union ionic_rdma_cqe cqe = {{0}};
	uint32_t word = wc->src_qpn | (uint32_t)ops[wc->opcode] << IONIC_RDMA_RECV_OP_SHIFT;
	be32 key = be32_make(wc->inv_key);

	memcpy(cqe.recv.wqe_id.raw, &wc->wr_id, sizeof(wc->wr_id));
	if (wc->opcode == RDMA_SEND_INV)
		memcpy(cqe.recv.imm_data_rkey, &key, sizeof(key));
	else
		memcpy(cqe.recv.imm_data_rkey, &wc->imm, sizeof(wc->imm));
	if (qp->datagram) {
		word |= wc->ipv4 ? IONIC_RDMA_RECV_IPV4 : 0;
		word |= wc->vlan ? IONIC_RDMA_RECV_VLAN : 0;
		memcpy(cqe.recv.src_mac, wc->src_mac, sizeof(cqe.recv.src_mac));
		cqe.recv.vlan_tag = be16_make(wc->vlan_tci);
	}
	cqe.recv.src_qpn_op = be32_make(word);
	cqe.any.status_length = be32_make(wc->length);
	post(qp, qp->rq.cq, IONIC_RDMA_CQE_RECV, wc->status, &cqe, wc->solicited);
}

static void post_flush(struct ionic_wq *wq)
{
	struct ionic_qp *qp = wq->qp;
	union ionic_rdma_cqe cqe = {{0}};

	post(qp, wq->cq, wq == &qp->sq ? IONIC_RDMA_CQE_SEND_NPG : IONIC_RDMA_CQE_RECV,
	     RDMA_FLUSHED, &cqe, false);
}

void ionic_qp_flush(void *owner)
{
	struct ionic_qp *qp = owner;

	report_msn(qp);
	post_flush(&qp->sq);
	post_flush(&qp->rq);
}

/* Guest memory may have to be waited for, and doorbells heard meanwhile: those that come again
 * stand behind the last one of now, and are served in the next turn. */
void ionic_qp_flush_posted(struct ionic_rdma *rdma)
{
	struct ionic_wq *last = TAILQ_LAST(&rdma->posted_in_err, ionic_posted_list);
	struct ionic_wq *wq = NULL;

	while (wq != last) {
		wq = TAILQ_FIRST(&rdma->posted_in_err);
		ionic_wq_forget_posted(wq);
		post_flush(wq);
	}
}

void ionic_qp_event(void *owner, enum rdma_event event)
{
	struct ionic_qp *qp = owner;

	qp->rdma->count.qp_events++;
	ionic_eq_raise(qp->rdma, &qp->events, event);
	if (qp->events.queued)
		ionic_eq_flush(qp->events.eq);
}
