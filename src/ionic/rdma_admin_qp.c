/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Admin commands for queue pairs (spec ionic-rdma 3.4, 3.5, 3.6). */
#include "rdma_lif.h"

#include <errno.h>
#include <stdlib.h>

COUNTER(ionic_qp_bad_type, "CREATE_QP of a type that does not exist");
COUNTER(ionic_qp_bad_cmb, "CREATE_QP with a ring in controller memory, which there is none of");
COUNTER(ionic_qp_bad_cq, "CREATE_QP with a CQ that does not exist or belongs to an admin queue");
COUNTER(ionic_qp_bad_template, "MODIFY_QP or CREATE_AH whose header template cannot be used");

/* PSNs and QPNs have 24 bits; what an application had above them the driver passes on. */
#define BITS_24 0xffffffu

/* Outstanding READs and atomics are 2^n - 1; the driver asks for 5 at most (16 becomes 15). */
#define RD_ATOMIC_SHIFT_MAX 16

/* Not an access bit: MODIFY_QP puts a depth of one queue, and the log2 of an MTU, there. */
#define MTU_BITS 4

static struct ionic_qp *find_qp(struct ionic_rdma *rdma, le32 id_ver)
{
	uint32_t qpn = le32_get(id_ver) & IONIC_RDMA_ID_MASK;
	struct rdma_qp *engine = rdma_qp_find(rdma->engine, qpn);

	return engine ? rdma_qp_owner(engine) : NULL;
}

/* ---- CREATE_QP ---- */

static int wq_init(struct ionic_qp *qp, struct ionic_wq *wq,
                   const struct ionic_rdma_queue_desc *desc)
{
	const struct ionic_ring_config ring = {
	        .dma_addr = le64_get(desc->pages.dma_addr),
	        .map_count = le32_get(desc->pages.map_count),
	        .depth_log2 = desc->depth_log2,
	        .stride_log2 = desc->stride_log2,
	        .page_shift = desc->page_size_log2,
	};
	struct ionic_cq *cq = ionic_cq_find(qp->rdma, le32_get(desc->cq_id));

	if (!cq || cq->is_admin) {
		counter_inc(&ionic_qp_bad_cq);
		return -ERANGE;
	}
	if (ring.stride_log2 < IONIC_RDMA_WQE_SHIFT)
		return -EINVAL;
	int rc = ionic_ring_init(qp->rdma, &wq->ring, &ring);

	if (rc < 0)
		return rc;
	wq->qp = qp;
	wq->cq = cq;
	LIST_INSERT_HEAD(&cq->users, wq, user);
	return 0;
}

static void wq_free(struct ionic_wq *wq)
{
	if (!wq->cq)
		return;
	ionic_wq_forget_posted(wq);
	LIST_REMOVE(wq, user);
	ionic_ring_free(wq->qp->rdma, &wq->ring);
}

void ionic_qp_free(struct ionic_qp *qp)
{
	rdma_qp_destroy(qp->engine);
	ionic_eq_forget(&qp->events);
	wq_free(&qp->sq);
	wq_free(&qp->rq);
	TAILQ_REMOVE(&qp->rdma->all_qps, qp, link);
	free(qp);
}

/* QP events go to the event queues that no CQ uses, one for each half of the device (4.2). */
static struct ionic_eq *events_queue(struct ionic_rdma *rdma, uint32_t qpn)
{
	return ionic_eq_find(rdma, qpn >> IONIC_RDMA_UDMA_SHIFT & 1);
}

static int qp_setup(struct ionic_qp *qp, const union ionic_rdma_admin *wqe, enum rdma_qp_type type)
{
	uint32_t flags = be32_get(wqe->create_qp.priv_flags);
	const struct rdma_qp_config config = {
	        .qpn = qp->qpn,
	        .type = type,
	        .pd = le32_get(wqe->create_qp.pd_id),
	        .privileged = flags & IONIC_RDMA_QPF_PRIVILEGED,
	        .remote_privileged = flags & IONIC_RDMA_QPF_REMOTE_PRIVILEGED,
	        .owner = qp,
	};
	int rc = wq_init(qp, &qp->sq, &wqe->create_qp.sq);

	if (rc == 0)
		rc = wq_init(qp, &qp->rq, &wqe->create_qp.rq);
	if (rc == 0)
		rc = rdma_qp_create(qp->rdma->engine, &config, &qp->engine);
	return rc;
}

static int qp_create(struct ionic_rdma *rdma, const union ionic_rdma_admin *wqe,
                     enum rdma_qp_type type)
{
	struct ionic_qp *qp = calloc(1, sizeof(*qp));
	int rc;

	if (!qp)
		return -ENOMEM;
	qp->rdma = rdma;
	qp->qpn = le32_get(wqe->create_qp.id_ver) & IONIC_RDMA_ID_MASK;
	qp->dbid = le16_get(wqe->create_qp.dbid_flags);
	qp->datagram = type == RDMA_QP_UD;
	qp->events = (struct ionic_event_source){
	        .eq = events_queue(rdma, qp->qpn), .id = qp->qpn, .type = IONIC_RDMA_EQE_QP};
	TAILQ_INSERT_TAIL(&rdma->all_qps, qp, link);
	rc = qp_setup(qp, wqe, type);
	if (rc < 0)
		ionic_qp_free(qp);
	return rc;
}

enum ionic_rdma_admin_status ionic_admin_create_qp(struct ionic_rdma *rdma,
                                                   const union ionic_rdma_admin *wqe)
{
	static const int8_t types[] = {RDMA_QP_RC, RDMA_QP_UC, -1, RDMA_QP_UD};
	unsigned type = wqe->create_qp.type_state & 0xf;

	if (type >= ARRAY_SIZE(types) || types[type] < 0) {
		counter_inc(&ionic_qp_bad_type);
		return IONIC_RDMA_BAD_TYPE;
	}
	if (be32_get(wqe->create_qp.priv_flags) & (IONIC_RDMA_QPF_SQ_CMB | IONIC_RDMA_QPF_RQ_CMB)) {
		counter_inc(&ionic_qp_bad_cmb);
		return IONIC_RDMA_BAD_ATTR;
	}
	if (le16_get(wqe->create_qp.dbid_flags) >= IONIC_DB_PAGES)
		return IONIC_RDMA_BAD_ATTR;
	return ionic_admin_status(qp_create(rdma, wqe, (enum rdma_qp_type)types[type]));
}

enum ionic_rdma_admin_status ionic_admin_destroy_qp(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe)
{
	struct ionic_qp *qp = find_qp(rdma, wqe->destroy.id);

	if (!qp)
		return IONIC_RDMA_BAD_INDEX;
	ionic_qp_free(qp);
	return IONIC_RDMA_OK;
}

/* ---- MODIFY_QP ---- */

int ionic_rdma_read_template(struct ionic_rdma *rdma, uint64_t addr, uint32_t size,
                             uint8_t header[RDMA_TEMPLATE_MAX])
{
	if (size > RDMA_TEMPLATE_MAX) {
		counter_inc(&ionic_qp_bad_template);
		return -EINVAL;
	}
	return ionic_rdma_read(rdma, addr, header, size);
}

static int read_address(struct ionic_rdma *rdma, const union ionic_rdma_admin *wqe,
                        struct rdma_av *av)
{
	uint32_t size = le32_get(wqe->modify_qp.ah_id_len) >> 24;
	uint8_t header[RDMA_TEMPLATE_MAX];
	int rc = ionic_rdma_read_template(rdma, le64_get(wqe->modify_qp.dma_addr), size, header);

	if (rc < 0)
		return rc;
	rc = rdma_av_parse(header, size, av);
	if (rc < 0)
		counter_inc(&ionic_qp_bad_template);
	return rc;
}

/* 0 means none at all; n means 2^n - 1, and what is beyond reason means very many. */
static uint32_t rd_atomic(uint8_t shift)
{
	return (1u << (shift < RD_ATOMIC_SHIFT_MAX ? shift : RD_ATOMIC_SHIFT_MAX)) - 1;
}

/* Fields whose bit is not in the mask are garbage (3.4). They are translated all the same and then
 * not looked at. */
static void attr_fill(const struct ionic_qp *qp, const union ionic_rdma_admin *wqe,
                      struct rdma_qp_attr *attr)
{
	uint16_t flags = be16_get(wqe->modify_qp.access_flags);
	uint32_t qkey_dest_qpn = le32_get(wqe->modify_qp.qkey_dest_qpn);

	*attr = (struct rdma_qp_attr){
	        .state = wqe->modify_qp.type_state & 0xf,
	        .cur_state = wqe->modify_qp.type_state >> 4,
	        .sqd_notify = flags & IONIC_RDMA_QPF_SQD_NOTIFY,
	        .access = flags & IONIC_RDMA_QPF_ACCESS,
	        .mtu_shift = wqe->modify_qp.pmtu,
	        .timeout = wqe->modify_qp.retry_timeout,
	        .retry_count = wqe->modify_qp.retry & 0xf,
	        .rnr_retry = wqe->modify_qp.retry >> 4,
	        .rnr_timer = wqe->modify_qp.rnr_timer,
	        .sq_psn = le32_get(wqe->modify_qp.sq_psn) & BITS_24,
	        .rq_psn = le32_get(wqe->modify_qp.rq_psn) & BITS_24,
	        .max_rd_atomic = rd_atomic(wqe->modify_qp.rrq_depth),
	        .max_dest_rd_atomic = rd_atomic(wqe->modify_qp.rsq_depth),
	        .rate_limit = le32_get(wqe->modify_qp.rate_limit_kbps),
	};
	if (qp->datagram)
		attr->qkey = qkey_dest_qpn;
	else
		attr->dest_qpn = qkey_dest_qpn & BITS_24;
}

/* Attributes that mean something for the type: the field of Q_Key and peer is one. */
static uint32_t attr_mask(const struct ionic_qp *qp, const union ionic_rdma_admin *wqe)
{
	uint32_t mask = be32_get(wqe->modify_qp.attr_mask);

	if (qp->datagram)
		return mask & ~(uint32_t)(RDMA_ATTR_DEST_QPN | RDMA_ATTR_AV);
	return mask & ~(uint32_t)RDMA_ATTR_QKEY;
}

enum ionic_rdma_admin_status ionic_admin_modify_qp(struct ionic_rdma *rdma,
                                                   const union ionic_rdma_admin *wqe)
{
	struct ionic_qp *qp = find_qp(rdma, wqe->modify_qp.id_ver);
	struct rdma_qp_attr attr;
	uint32_t mask;
	int rc = 0;

	if (!qp)
		return IONIC_RDMA_BAD_INDEX;
	attr_fill(qp, wqe, &attr);
	mask = attr_mask(qp, wqe);
	if (mask & RDMA_ATTR_AV)
		rc = read_address(rdma, wqe, &attr.av);
	if (rc == 0)
		rc = rdma_qp_modify(qp->engine, mask, &attr);
	if (rc == 0 && mask & RDMA_ATTR_STATE && attr.state == RDMA_QPS_RESET)
		ionic_qp_restart(qp);
	return ionic_admin_status(rc);
}

/* ---- QUERY_QP ---- */

static uint8_t rd_atomic_shift(uint32_t count)
{
	return count == 0 ? 0 : (uint8_t)(32 - __builtin_clz(count));
}

static void query_fill(const struct ionic_qp *qp, const struct rdma_qp_attr *attr,
                       struct ionic_rdma_query_sq *sq, struct ionic_rdma_query_rq *rq)
{
	uint16_t flags = attr->access;

	if (attr->sq_draining)
		flags |= IONIC_RDMA_QPF_SQ_DRAINING;
	if (attr->sqd_notify)
		flags |= IONIC_RDMA_QPF_SQD_NOTIFY;
	*sq = (struct ionic_rdma_query_sq){
	        .rnr_timer = attr->rnr_timer,
	        .retry_timeout = attr->timeout,
	        .flags = be16_make(flags),
	        .qkey_dest_qpn = be32_make(qp->datagram ? attr->qkey : attr->dest_qpn),
	        .rate_limit_kbps = be32_make(attr->rate_limit),
	        .rq_psn = be32_make(attr->rq_psn),
	};
	*rq = (struct ionic_rdma_query_rq){
	        .state_pmtu = (uint8_t)(attr->state << MTU_BITS | attr->mtu_shift),
	        .retry_rnrtry = (uint8_t)(attr->retry_count | attr->rnr_retry << 4),
	        .rrq_depth = rd_atomic_shift(attr->max_rd_atomic),
	        .rsq_depth = rd_atomic_shift(attr->max_dest_rd_atomic),
	        .sq_psn = be32_make(attr->sq_psn),
	        .flags = be16_make(flags),
	};
}

enum ionic_rdma_admin_status ionic_admin_query_qp(struct ionic_rdma *rdma,
                                                  const union ionic_rdma_admin *wqe)
{
	uint64_t header = le64_get(wqe->query_qp.hdr_dma_addr);
	struct ionic_qp *qp = find_qp(rdma, wqe->query_qp.id_ver);
	struct ionic_rdma_query_sq sq;
	struct ionic_rdma_query_rq rq;
	struct rdma_qp_attr attr;
	int rc;

	if (!qp)
		return IONIC_RDMA_BAD_INDEX;
	rdma_qp_query(qp->engine, &attr);
	query_fill(qp, &attr, &sq, &rq);
	rc = ionic_rdma_write(rdma, le64_get(wqe->query_qp.sq_dma_addr), &sq, sizeof(sq));
	if (rc == 0)
		rc = ionic_rdma_write(rdma, le64_get(wqe->query_qp.rq_dma_addr), &rq, sizeof(rq));
	if (rc == 0 && header != 0 && attr.av.template_size > 0)
		rc = ionic_rdma_write(rdma, header, attr.av.header, attr.av.template_size);
	return ionic_admin_status(rc);
}
