/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RDMA admin queue: commands of one or more strides, answered strictly in order
 * (spec ionic-rdma 3).
 *
 * A command that is not answered within two seconds makes the driver give the device up for good,
 * so every command that was rung for gets its completion, whatever is in it. Everything that a
 * command does is done, and seen by the guest, before that: it frees the memory that the command
 * names as soon as it sees the completion. A command that takes long (a region of many pages) is
 * executed in pieces, a piece a turn, and those behind it wait.
 */
#include "rdma_lif.h"

#include <errno.h>

COUNTER(ionic_aq_bad_id, "RDMA_CREATE_ADMINQ of a queue or CQ that does not exist, or is in use");
COUNTER(ionic_aq_bad_ring, "RDMA_CREATE_ADMINQ with a ring that cannot be");
COUNTER(ionic_aq_bad_index, "admin queue doorbells with an index beyond the ring, ignored");
COUNTER(ionic_aq_fetch_error, "admin commands that could not be read");
COUNTER(ionic_aq_unknown, "admin commands with an unknown opcode");
COUNTER(ionic_aq_unsupported, "admin commands for features that the device does not have");
COUNTER(ionic_aq_short, "admin commands shorter than their opcode needs");
COUNTER(ionic_aq_torn, "admin commands longer than what was posted");
COUNTER(ionic_aq_failed, "admin commands completed with an error");

#define AQ_BUDGET 16 /* commands in one turn */

/* ---- life ---- */

enum ionic_status ionic_aq_create(struct ionic_rdma *rdma, uint32_t id, const union ionic_cmd *cmd)
{
	struct ionic_cq *cq = ionic_cq_find(rdma, le32_get(cmd->rdma_queue.cid));
	struct ionic_aq *aq;
	const struct ionic_ring_config ring = {
	        .dma_addr = le64_get(cmd->rdma_queue.dma_addr),
	        .map_count = 1,
	        .depth_log2 = cmd->rdma_queue.depth_log2,
	        .stride_log2 = cmd->rdma_queue.stride_log2,
	};

	if (id >= IONIC_RDMA_AQS || !cq || rdma->aqs[id].exists || cq->is_admin ||
	    !LIST_EMPTY(&cq->users))
		return ionic_refuse(&ionic_aq_bad_id, IONIC_RC_EQID);
	aq = &rdma->aqs[id];
	if (ring.stride_log2 != IONIC_RDMA_AQ_SHIFT ||
	    le16_get(cmd->rdma_queue.dbid) >= IONIC_DB_PAGES ||
	    ionic_ring_init(rdma, &aq->ring, &ring) < 0)
		return ionic_refuse(&ionic_aq_bad_ring, IONIC_RC_EINVAL);
	aq->rdma = rdma;
	aq->id = id;
	aq->dbid = le16_get(cmd->rdma_queue.dbid);
	aq->cq = cq;
	aq->prod = 0;
	aq->cons = 0;
	aq->busy = false;
	aq->exists = true;
	cq->is_admin = true;
	return IONIC_RC_SUCCESS;
}

void ionic_aq_doorbell(struct ionic_aq *aq, uint32_t index)
{
	aq->rdma->count.aq_doorbells++;
	if (index > ionic_ring_mask(&aq->ring)) {
		counter_inc(&ionic_aq_bad_index);
		return;
	}
	aq->prod = index;
	ionic_dev_schedule(aq->rdma->dev);
}

/* ---- the commands ---- */

static enum ionic_rdma_admin_status admin_noop(struct ionic_rdma *rdma,
                                               const union ionic_rdma_admin *wqe)
{
	(void)rdma, (void)wqe;
	return IONIC_RDMA_OK;
}

static enum ionic_rdma_admin_status admin_unsupported(struct ionic_rdma *rdma,
                                                      const union ionic_rdma_admin *wqe)
{
	(void)rdma, (void)wqe;
	counter_inc(&ionic_aq_unsupported);
	return IONIC_RDMA_BAD_CMD;
}

enum ionic_rdma_admin_status ionic_admin_create_cq(struct ionic_rdma *rdma,
                                                   const union ionic_rdma_admin *wqe)
{
	const struct ionic_cq_config config = {
	        .id = le32_get(wqe->create_cq.id_ver) & IONIC_RDMA_ID_MASK,
	        .eq_id = le32_get(wqe->create_cq.eq_id),
	        .dbid = le16_get(wqe->create_cq.dbid_flags),
	        .ring = {.dma_addr = le64_get(wqe->create_cq.pages.dma_addr),
	                 .map_count = le32_get(wqe->create_cq.pages.map_count),
	                 .depth_log2 = wqe->create_cq.depth_log2,
	                 .stride_log2 = wqe->create_cq.stride_log2,
	                 .page_shift = wqe->create_cq.page_size_log2},
	};

	return ionic_admin_status(ionic_cq_create(rdma, &config));
}

enum ionic_rdma_admin_status ionic_admin_destroy_cq(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe)
{
	uint32_t id = le32_get(wqe->destroy.id) & IONIC_RDMA_ID_MASK;

	return ionic_admin_status(ionic_cq_destroy(rdma, id));
}

struct admin_desc {
	const char *name;
	uint16_t len; /* shortest body, 3.4 */
	ionic_admin_fn *run;
};

/* By opcode. */
static const struct admin_desc descs[IONIC_RDMA_ADMIN_OPS] = {
        [IONIC_RDMA_NOOP] = {"NOOP", 0, admin_noop},
        [IONIC_RDMA_CREATE_CQ] = {"CREATE_CQ", 34, ionic_admin_create_cq},
        [IONIC_RDMA_CREATE_QP] = {"CREATE_QP", 64, ionic_admin_create_qp},
        [IONIC_RDMA_CREATE_MR] = {"CREATE_MR", 45, ionic_admin_create_mr},
        [IONIC_RDMA_STATS_HDRS] = {"STATS_HDRS", 17, ionic_admin_stats_hdrs},
        [IONIC_RDMA_STATS_VALS] = {"STATS_VALS", 17, ionic_admin_stats_vals},
        [IONIC_RDMA_DESTROY_MR] = {"DESTROY_MR", 4, ionic_admin_destroy_mr},
        [IONIC_RDMA_RESIZE_CQ] = {"RESIZE_CQ", 0, admin_unsupported},
        [IONIC_RDMA_DESTROY_CQ] = {"DESTROY_CQ", 4, ionic_admin_destroy_cq},
        [IONIC_RDMA_MODIFY_QP] = {"MODIFY_QP", 60, ionic_admin_modify_qp},
        [IONIC_RDMA_QUERY_QP] = {"QUERY_QP", 34, ionic_admin_query_qp},
        [IONIC_RDMA_DESTROY_QP] = {"DESTROY_QP", 4, ionic_admin_destroy_qp},
        [IONIC_RDMA_DEBUG] = {"DEBUG", 0, admin_unsupported},
        [IONIC_RDMA_CREATE_AH] = {"CREATE_AH", 24, ionic_admin_create_ah},
        [IONIC_RDMA_QUERY_AH] = {"QUERY_AH", 0, admin_unsupported},
        [IONIC_RDMA_MODIFY_DCQCN] = {"MODIFY_DCQCN", 0, admin_unsupported},
        [IONIC_RDMA_DESTROY_AH] = {"DESTROY_AH", 4, ionic_admin_destroy_ah},
        [IONIC_RDMA_QP_STATS_HDRS] = {"QP_STATS_HDRS", 17, ionic_admin_qp_stats_hdrs},
        [IONIC_RDMA_QP_STATS_VALS] = {"QP_STATS_VALS", 17, ionic_admin_qp_stats_vals},
};

enum ionic_rdma_admin_status ionic_admin_status(int error)
{
	switch (error) {
	case 0:
		return IONIC_RDMA_OK;
	case -ERANGE:
	case -ENOENT:
		return IONIC_RDMA_BAD_INDEX;
	case -EPROTO:
	case -EEXIST:
	case -EBUSY:
		return IONIC_RDMA_BAD_STATE;
	case -ENOSPC:
		return IONIC_RDMA_MSG_TOO_BIG;
	default:
		return IONIC_RDMA_BAD_ATTR;
	}
}

static enum ionic_rdma_admin_status admin_run(struct ionic_rdma *rdma,
                                              const union ionic_rdma_admin *wqe)
{
	const struct admin_desc *desc;
	enum ionic_rdma_admin_status status;

	if (wqe->any.op >= IONIC_RDMA_ADMIN_OPS) {
		counter_inc(&ionic_aq_unknown);
		return IONIC_RDMA_BAD_CMD;
	}
	desc = &descs[wqe->any.op];
	if (le16_get(wqe->any.len) < desc->len) {
		counter_inc(&ionic_aq_short);
		return IONIC_RDMA_BAD_CMD;
	}
	status = desc->run(rdma, wqe);
	log_debug("ionic: RDMA admin command %s: status %u", desc->name, status);
	return status;
}

/* ---- the queue ---- */

/*
 * Copies the command at the queue's head, zeroed behind its length, and says in *STRIDES how many
 * it takes. Strides wrap at the end of the ring, so each is read by itself; what is behind those
 * that the longest known command needs is not looked at. Returns 0 or a negative errno.
 */
static int command_read(struct ionic_aq *aq, union ionic_rdma_admin *wqe, uint32_t *strides)
{
	uint32_t posted = (aq->prod - aq->cons) & ionic_ring_mask(&aq->ring);
	size_t size, have = IONIC_RDMA_AQ_STRIDE;
	int rc = ionic_rdma_read(aq->rdma, ionic_ring_addr(&aq->ring, aq->cons), wqe->bytes, have);

	*strides = 1;
	if (rc < 0)
		return rc;
	size = IONIC_RDMA_ADMIN_HEADER + (size_t)le16_get(wqe->any.len);
	*strides = (uint32_t)((size + IONIC_RDMA_AQ_STRIDE - 1) / IONIC_RDMA_AQ_STRIDE);
	if (*strides > posted) {
		counter_inc(&ionic_aq_torn);
		*strides = posted;
		return -EINVAL;
	}
	if (size > sizeof(*wqe))
		size = sizeof(*wqe);
	if (size > have) {
		rc = ionic_rdma_read(aq->rdma, ionic_ring_addr(&aq->ring, aq->cons + 1),
		                     wqe->bytes + have, size - have);
		have = size;
	}
	if (size < have)
		memset(wqe->bytes + size, 0, have - size);
	memset(wqe->bytes + have, 0, sizeof(*wqe) - have);
	return rc;
}

static void command_complete(struct ionic_aq *aq, uint32_t index, uint8_t op,
                             enum ionic_rdma_admin_status status)
{
	uint32_t flags = aq->id << IONIC_RDMA_CQE_QID_SHIFT | IONIC_RDMA_CQE_ADMIN
	                                                              << IONIC_RDMA_CQE_TYPE_SHIFT;
	union ionic_rdma_cqe cqe = {{0}};

	aq->rdma->count.admin_commands++;
	if (status != IONIC_RDMA_OK) {
		flags |= IONIC_RDMA_CQE_ERROR;
		aq->rdma->count.admin_errors++;
		counter_inc(&ionic_aq_failed);
		log_guest("ionic: RDMA admin command %u refused with status %u", op, status);
	}
	cqe.admin.cmd_idx = be16_make((uint16_t)index);
	cqe.admin.cmd_op = op;
	cqe.any.status_length = be32_make(status);
	cqe.any.qid_type_flags = be32_make(flags);
	ionic_cq_post(aq->cq, &cqe, true);
}

static void command_end(struct ionic_aq *aq, enum ionic_rdma_admin_status status)
{
	uint32_t index = aq->cons;

	aq->busy = false;
	aq->cons = (aq->cons + aq->strides) & ionic_ring_mask(&aq->ring);
	command_complete(aq, index, aq->op, status);
}

static void command_serve(struct ionic_aq *aq)
{
	enum ionic_rdma_admin_status status = IONIC_RDMA_BAD_CMD;
	union ionic_rdma_admin wqe = {.any = {.op = IONIC_RDMA_NOOP}};
	int rc = command_read(aq, &wqe, &aq->strides);

	aq->op = wqe.any.op;
	if (rc == 0)
		status = admin_run(aq->rdma, &wqe);
	else if (rc != -EINVAL)
		counter_inc(&ionic_aq_fetch_error);
	if (aq->rdma->reset_pending)
		return;
	if (status == IONIC_RDMA_IN_PROGRESS) {
		aq->busy = true;
		aq->mr_key = le32_get(wqe.create_mr.id_ver);
	} else {
		command_end(aq, status);
	}
}

static void command_continue(struct ionic_aq *aq)
{
	int rc = rdma_mr_load(aq->rdma->engine, aq->mr_key, IONIC_RDMA_PAGES_A_TURN);

	if (rc != 1 && !aq->rdma->reset_pending)
		command_end(aq, ionic_admin_status(rc));
}

bool ionic_aq_run(struct ionic_aq *aq)
{
	if (aq->busy)
		command_continue(aq);
	for (unsigned i = 0; i < AQ_BUDGET; i++) {
		if (aq->busy || aq->prod == aq->cons || aq->rdma->reset_pending)
			break;
		command_serve(aq);
	}
	return aq->busy || aq->prod != aq->cons;
}
