// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Posting and polling of the driver model.
 *
 * Polling follows 5.3: completions only mark requests, and requests retire strictly in the order of
 * their queue. Remote ones retire by the count of messages (MSN), all others by index (NPG); after
 * an error everything behind it is flushed by the driver itself.
 */
#include "rdma.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static uint32_t wq_mask(const struct rdma_wq *wq)
{
	return (1u << wq->ring.log2) - 1;
}

static uint32_t wq_count(const struct rdma_wq *wq)
{
	return (wq->prod - wq->cons) & wq_mask(wq);
}

static size_t wq_stride(const struct rdma_wq *wq)
{
	return (size_t)1 << wq->ring.stride_log2;
}

static union rdma_wqe *wq_slot(const struct rdma_qp *qp, const struct rdma_wq *wq)
{
	return ram_at(&qp->rdma->nic->ram, wq->ring.base + wq_stride(wq) * wq->prod);
}

/* ---- posting (6.3, 6.5) ---- */

/* Writes SGEs and returns the flags for their format, or -E2BIG. */
static int put_sges(union rdma_wqe *wqe, size_t stride, const struct rdma_sge *sge, unsigned count)
{
	size_t at = WQE_HEADER;
	bool spec = count > 2;

	if (spec) {
		be32 *lengths = (be32 *)(void *)(wqe->raw + at);

		if (stride < 2 * WQE_HEADER)
			return -E2BIG;
		memset(lengths, 0, WQE_HEADER);
		for (unsigned i = 0; i < count; i++)
			lengths[i] = be32_make(sge[i].len);
		at += WQE_HEADER;
	}
	if (count > WQE_SGE_MAX || at + count * sizeof(struct rdma_wqe_sge) > stride)
		return -E2BIG;
	for (unsigned i = 0; i < count; i++) {
		const struct rdma_wqe_sge entry = {be64_make(sge[i].va), be32_make(sge[i].len),
		                                   be32_make(sge[i].lkey)};

		memcpy(wqe->raw + at + i * sizeof(entry), &entry, sizeof(entry));
	}
	return spec ? WQE_SPEC32 : 0;
}

static uint32_t sge_total(const struct rdma_sge *sge, unsigned count)
{
	uint32_t total = 0;

	for (unsigned i = 0; i < count; i++)
		total += sge[i].len;
	return total;
}

static int put_payload(union rdma_wqe *wqe, size_t stride, const struct rdma_send *send)
{
	if (send->flags & WQE_INLINE) {
		if (WQE_HEADER + send->inline_size > stride)
			return -E2BIG;
		if (send->inline_size)
			memcpy(wqe->raw + WQE_HEADER, send->inline_data, send->inline_size);
		wqe->any.length = be32_make(send->inline_size);
		return 0;
	}
	wqe->any.length = be32_make(sge_total(send->sge, send->num_sge));
	wqe->any.num_sge_key = (uint8_t)send->num_sge;
	return put_sges(wqe, stride, send->sge, send->num_sge);
}

static int put_message(union rdma_wqe *wqe, size_t stride, const struct rdma_send *send,
                       bool datagram)
{
	if (send->op == OP_READ || send->op == OP_WRITE || send->op == OP_WRITE_IMM) {
		wqe->rdma.va = be64_make(send->va);
		wqe->rdma.rkey = be32_make(send->rkey);
	} else if (datagram) {
		wqe->ud.ah = be32_make(send->ah);
		wqe->ud.dest_qpn = be32_make(send->qpn);
		wqe->ud.dest_qkey = be32_make(send->qkey);
	}
	return put_payload(wqe, stride, send);
}

static int put_atomic(union rdma_wqe *wqe, const struct rdma_send *send)
{
	wqe->rdma.va = be64_make(send->va);
	wqe->rdma.rkey = be32_make(send->rkey);
	wqe->any.num_sge_key = 1;
	wqe->atomic.swap_add = be64_make(send->swap_add);
	wqe->atomic.compare = be64_make(send->compare);
	wqe->atomic.sge = (struct rdma_wqe_sge){be64_make(send->sge[0].va), be32_make(8),
	                                        be32_make(send->sge[0].lkey)};
	return 0;
}

static int put_local(union rdma_wqe *wqe, const struct rdma_send *send)
{
	if (send->op == OP_REG_MR) {
		wqe->any.num_sge_key = (uint8_t)send->imm;
		wqe->reg.va = be64_make(send->va);
		wqe->reg.length = be64_make(send->length);
		wqe->reg.offset = be64_make(0);
		wqe->reg.dma_addr = be64_make(send->dma_addr);
		wqe->reg.map_count = be32_make(send->map_count);
		wqe->reg.flags = be16_make(send->access);
		wqe->reg.page_size_log2 = 12;
	} else if (send->op == OP_BIND_MW) {
		wqe->any.num_sge_key = (uint8_t)(send->imm + 1);
		wqe->bind.va = be64_make(send->va);
		wqe->bind.length = be64_make(send->length);
		wqe->bind.lkey = be32_make(send->lkey);
		wqe->bind.flags = be16_make(send->access);
	}
	return 0;
}

static bool is_local(uint8_t op)
{
	return op == OP_REG_MR || op == OP_LOCAL_INV || op == OP_BIND_MW;
}

static bool has_imm(uint8_t op)
{
	return op == OP_SEND_IMM || op == OP_WRITE_IMM;
}

static int put_body(union rdma_wqe *wqe, size_t stride, const struct rdma_send *send, bool datagram)
{
	if (is_local(send->op))
		return put_local(wqe, send);
	if (send->op == OP_CMP_SWAP || send->op == OP_FETCH_ADD)
		return put_atomic(wqe, send);
	return put_message(wqe, stride, send, datagram);
}

int rdma_post_send(struct rdma_qp *qp, const struct rdma_send *send)
{
	struct rdma_wq *wq = &qp->sq;
	union rdma_wqe *wqe = wq_slot(qp, wq);
	be32 imm = be32_make(send->imm);
	int format;

	if (wq_count(wq) == wq_mask(wq))
		return -EAGAIN;
	memset(wqe->raw, 0, 2 * WQE_HEADER);
	format = put_body(wqe, wq_stride(wq), send, qp->type == QPT_UD);
	if (format < 0)
		return format;
	wqe->any.wqe_id = le64_make(wq->prod);
	wqe->any.op = send->op;
	wqe->any.flags = be16_make((uint16_t)(send->flags | format));
	/* An immediate is in the byte order of the network already. */
	if (has_imm(send->op))
		memcpy(wqe->any.imm_key, &send->imm, 4);
	else
		memcpy(wqe->any.imm_key, &imm, 4);
	wq->slot[wq->prod] = (struct rdma_slot){.wr_id = send->wr_id,
	                                        .op = send->op,
	                                        .remote = qp->type != QPT_UD && !is_local(send->op),
	                                        .signaled = send->flags & WQE_SIGNALED};
	qp->msn_posted += wq->slot[wq->prod].remote;
	wq->prod = (wq->prod + 1) & wq_mask(wq);
	return 0;
}

int rdma_post_recv(struct rdma_qp *qp, const struct rdma_recv *recv)
{
	struct rdma_wq *wq = &qp->rq;
	union rdma_wqe *wqe = wq_slot(qp, wq);
	int format;

	if (wq_count(wq) == wq_mask(wq))
		return -EAGAIN;
	memset(wqe->raw, 0, 2 * WQE_HEADER);
	format = put_sges(wqe, wq_stride(wq), recv->sge, recv->num_sge);
	if (format < 0)
		return format;
	wqe->recv.wqe_id = le64_make(wq->prod);
	wqe->recv.num_sge = (uint8_t)recv->num_sge;
	wqe->recv.flags = be16_make((uint16_t)format);
	wqe->recv.length = be32_make(sge_total(recv->sge, recv->num_sge));
	wq->slot[wq->prod] = (struct rdma_slot){.wr_id = recv->wr_id, .signaled = true};
	wq->prod = (wq->prod + 1) & wq_mask(wq);
	return 0;
}

int rdma_ring_send(struct rdma_qp *qp)
{
	return rdma_doorbell(qp->rdma, qp->page, qp->rdma->id.slot.sq, 0, qp->id, qp->sq.prod);
}

int rdma_ring_recv(struct rdma_qp *qp)
{
	return rdma_doorbell(qp->rdma, qp->page, qp->rdma->id.slot.rq, 0, qp->id, qp->rq.prod);
}

int rdma_send(struct rdma_qp *qp, const struct rdma_send *send)
{
	int err = rdma_post_send(qp, send);

	return err ? err : rdma_ring_send(qp);
}

int rdma_recv(struct rdma_qp *qp, const struct rdma_recv *recv)
{
	int err = rdma_post_recv(qp, recv);

	return err ? err : rdma_ring_recv(qp);
}

/* ---- send completions (5.3) ---- */

/* The MSN counts from 1; the one told may be behind by nothing and ahead by what is posted. */
static int take_msn(struct rdma_qp *qp, const union rdma_cqe *cqe, uint32_t word)
{
	uint32_t msn = be32_get(cqe->msn.msn);
	struct rdma_wq *wq = &qp->sq;

	if (msn == qp->msn_done || msn - qp->msn_done > qp->msn_posted - qp->msn_done)
		return nic_complain(qp->rdma->nic, "QP %u: MSN %u after %u, of %u posted", qp->id,
		                    msn, qp->msn_done, qp->msn_posted);
	qp->msn_done = msn;
	if (!(word & CQE_ERROR))
		return 0;
	/* The status is that of the last message counted. */
	for (uint32_t at = wq->cons, seen = qp->msn_retired; at != wq->prod;
	     at = (at + 1) & wq_mask(wq)) {
		struct rdma_slot *slot = &wq->slot[at];

		seen += slot->remote;
		if (slot->remote && seen == msn) {
			slot->status = (uint8_t)be32_get(cqe->any.status_length);
			break;
		}
	}
	return 0;
}

static int take_npg(struct rdma_qp *qp, const union rdma_cqe *cqe, uint32_t word)
{
	uint64_t index = le64_get(cqe->npg.wqe_id) & wq_mask(&qp->sq);
	struct rdma_slot *slot = &qp->sq.slot[index];
	uint32_t status = be32_get(cqe->any.status_length);

	if (word & CQE_ERROR && status == WC_FLUSH) {
		qp->sq.flushing = true;
		return 0;
	}
	if (((index - qp->sq.cons) & wq_mask(&qp->sq)) >= wq_count(&qp->sq))
		return nic_complain(qp->rdma->nic, "QP %u: NPG of slot %llu, not outstanding",
		                    qp->id, (unsigned long long)index);
	slot->done = true;
	if (!(word & CQE_ERROR))
		return 0;
	slot->status = (uint8_t)status;
	slot->remote = false;
	return 0;
}

/* Retires the oldest send. Returns 1 with a completion, or 0. */
static int retire_send(struct rdma_qp *qp, struct rdma_wc *wc)
{
	struct rdma_wq *wq = &qp->sq;

	while (wq->cons != wq->prod) {
		struct rdma_slot *slot = &wq->slot[wq->cons];
		bool ready = slot->remote ? qp->msn_retired != qp->msn_done : slot->done;
		uint8_t status = slot->status;

		if (!ready && !wq->flushing)
			return 0;
		if (ready)
			qp->msn_retired += slot->remote;
		else
			status = WC_FLUSH;
		wq->cons = (wq->cons + 1) & wq_mask(wq);
		if (status)
			wq->flushing = true;
		if (!slot->signaled && !status)
			continue;
		*wc = (struct rdma_wc){
		        .qp = qp, .wr_id = slot->wr_id, .status = status, .op = slot->op};
		return 1;
	}
	return 0;
}

/* ---- receive completions (5.4) ---- */

static int flush_recv(struct rdma_qp *qp, struct rdma_wc *wc)
{
	struct rdma_wq *wq = &qp->rq;

	if (!wq->flushing || wq->cons == wq->prod)
		return 0;
	*wc = (struct rdma_wc){
	        .qp = qp, .wr_id = wq->slot[wq->cons].wr_id, .status = WC_FLUSH, .recv = true};
	wq->cons = (wq->cons + 1) & wq_mask(wq);
	return 1;
}

/* Returns 1 with a completion, 0 for a flush marker or what comes behind it, or -EPROTO. */
static int take_recv(struct rdma_qp *qp, const union rdma_cqe *cqe, uint32_t word,
                     struct rdma_wc *wc)
{
	struct rdma_wq *wq = &qp->rq;
	uint64_t id = le64_get(cqe->recv.wqe_id);
	uint32_t status = be32_get(cqe->any.status_length), src = be32_get(cqe->recv.src_qpn_op);
	be32 key;

	if (wq->flushing)
		return 0;
	if (word & CQE_ERROR && status == WC_FLUSH) {
		wq->flushing = true;
		return 0;
	}
	if (id != wq->cons || wq->cons == wq->prod)
		return nic_complain(qp->rdma->nic, "QP %u: receive %llu complete, expected %u",
		                    qp->id, (unsigned long long)id, wq->cons);
	*wc = (struct rdma_wc){.qp = qp,
	                       .wr_id = wq->slot[wq->cons].wr_id,
	                       .recv = true,
	                       .op = CQE_RECV_OP(src) & 3,
	                       .src_qpn = CQE_RECV_QPN(src),
	                       .ipv4 = src & CQE_RECV_IPV4};
	wq->cons = (wq->cons + 1) & wq_mask(wq);
	if (word & CQE_ERROR) {
		wc->status = status;
		wq->flushing = true;
		return 1;
	}
	wc->length = status;
	memcpy(&key, cqe->recv.imm_key, 4);
	if (wc->op == 1)
		wc->imm = be32_get(key);
	else
		memcpy(&wc->imm, cqe->recv.imm_key, 4);
	return 1;
}

/* ---- polling ---- */

/* The entry at position AT, or NULL when it is not there yet. */
static union rdma_cqe *cq_entry(const struct rdma_cq *cq, uint32_t at)
{
	uint32_t mask = (1u << cq->ring.log2) - 1;
	union rdma_cqe *cqe = ram_at(&cq->rdma->nic->ram, cq->ring.base + CQE_SIZE * (at & mask));
	uint8_t color = !(at >> cq->ring.log2 & 1);

	/* The color is read first and orders what follows (5.2). */
	if ((__atomic_load_n(&cqe->raw[CQE_SIZE - 1], __ATOMIC_ACQUIRE) & CQE_COLOR) != color)
		return NULL;
	return cqe;
}

void rdma_cq_clean(struct rdma_cq *cq, const struct rdma_qp *qp)
{
	union rdma_cqe *cqe;

	for (uint32_t at = cq->cons; (cqe = cq_entry(cq, at)); at++) {
		uint32_t word = be32_get(cqe->any.qid_type_flags);

		if (CQE_QID(word) == qp->id)
			cqe->any.qid_type_flags = be32_make(word | ~0u << CQE_QID_SHIFT);
	}
}

/* Takes one entry. Returns as rdma_poll(). */
static int cq_take(struct rdma_cq *cq, const union rdma_cqe *cqe, struct rdma_wc *wc)
{
	uint32_t word = be32_get(cqe->any.qid_type_flags);
	struct rdma_qp *qp = CQE_QID(word) < cq->rdma->id.qps ? cq->rdma->qps[CQE_QID(word)] : NULL;
	int result;

	cq->cons++;
	if (!qp) /* destroyed meanwhile: its completions are skipped */
		return 0;
	cq->current = qp;
	switch (CQE_TYPE(word)) {
	case CQE_RECV:
		return take_recv(qp, cqe, word, wc);
	case CQE_SEND_MSN:
		result = take_msn(qp, cqe, word);
		break;
	case CQE_SEND_NPG:
		result = take_npg(qp, cqe, word);
		break;
	default:
		return nic_complain(cq->rdma->nic, "CQ %u: completion %#x", cq->id, word);
	}
	return result;
}

int rdma_poll(struct rdma_cq *cq, struct rdma_wc *wc)
{
	uint32_t half = 1u << cq->ring.log2 >> 1;

	for (;;) {
		struct rdma_qp *qp = cq->current;
		const union rdma_cqe *cqe;
		int result = 0;

		if (qp && qp->sq.cq == cq)
			result = retire_send(qp, wc);
		if (!result && qp && qp->rq.cq == cq)
			result = flush_recv(qp, wc);
		if (result)
			return result;
		cqe = cq_entry(cq, cq->cons);
		if (!cqe)
			return 0;
		result = cq_take(cq, cqe, wc);
		if (cq->cons - cq->told >= half) {
			int err = rdma_cq_consume(cq);

			if (err)
				return err;
		}
		if (result)
			return result;
	}
}

int rdma_wait(struct rdma_cq *cq, struct rdma_wc *wc)
{
	int64_t deadline = nic_now_ms() + cq->rdma->nic->options.timeout_ms;
	int result;

	while ((result = rdma_poll(cq, wc)) == 0) {
		int err = vfu_service(cq->rdma->nic->vfu);

		if (err)
			return err;
		if (nic_now_ms() > deadline)
			return -ETIMEDOUT;
		sched_yield();
	}
	return result > 0 ? 0 : result;
}
