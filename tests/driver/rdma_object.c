// SPDX-License-Identifier: GPL-2.0-or-later
/* Regions, CQs, queue pairs and address handles of the driver model. */
#include "rdma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define MR_VA_BASE 0x7f0000000000ull /* where a process has its memory */
#define RING_PAGE  12                /* log2: rings in pages have pages of 4 KiB (8.2) */

/* ---- regions (8) ---- */

static uint32_t rdma_new_key(struct rdma *rdma)
{
	if (rdma->next_mr == rdma->id.mrs)
		rdma->next_mr = 1;
	return rdma->next_mr++ << 8 | rdma->next_key++;
}

/* Page N of COUNT is where in memory? */
static uint64_t mr_page(uint64_t addr, bool scattered, uint64_t n, uint64_t count, unsigned shift)
{
	return addr + ((scattered ? count - 1 - n : n) << shift);
}

/* Fills map_count and dma_addr for SIZE bytes of whole pages. */
static int mr_pages(struct rdma *rdma, const struct rdma_mr *mr, unsigned shift,
                    union rdma_admin_cmd *cmd)
{
	uint64_t count = (mr->size + (1ull << shift) - 1) >> shift;
	uint64_t table = mr->addr;

	if (count > 1) {
		le64 *entry;

		table = rdma_take_table(rdma, (uint32_t)count);
		if (!table)
			return -ENOMEM;
		entry = ram_at(&rdma->nic->ram, table);
		for (uint64_t i = 0; i < count; i++)
			entry[i] = le64_make(mr_page(mr->addr, mr->scattered, i, count, shift));
	}
	cmd->create_mr.map_count = le32_make((uint32_t)count);
	cmd->create_mr.dma_addr = le64_make(table);
	cmd->create_mr.page_size_log2 = (uint8_t)shift;
	return 0;
}

static void mr_command(const struct rdma_mr *mr, uint32_t flags, union rdma_admin_cmd *cmd)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->create_mr.va = le64_make(mr->va);
	cmd->create_mr.length = le64_make(mr->size);
	cmd->create_mr.pd = le32_make(mr->pd);
	cmd->create_mr.key = le32_make(mr->key);
	cmd->create_mr.tbl_index = le32_make(AQ_NO_INDEX);
	cmd->create_mr.flags = le16_make((uint16_t)flags);
}

int rdma_mr_create(struct rdma *rdma, struct rdma_mr *mr, const struct rdma_mr_config *config)
{
	unsigned shift = config->page_shift ? config->page_shift : RING_PAGE;
	union rdma_admin_cmd cmd;
	int err;

	*mr = (struct rdma_mr){.rdma = rdma,
	                       .key = rdma_new_key(rdma),
	                       .pd = config->pd,
	                       .addr = config->addr,
	                       .size = config->size,
	                       .scattered = config->scattered};
	if (!mr->addr)
		mr->addr = ram_take(&rdma->nic->ram, config->size);
	if (!mr->addr)
		return -ENOMEM;
	mr->va = config->va ? config->va : MR_VA_BASE + (mr->addr - rdma->nic->ram.base);
	mr_command(mr, config->flags, &cmd);
	err = mr_pages(rdma, mr, shift, &cmd);
	return err ? err : rdma_admin(rdma, AQ_CREATE_MR, &cmd, AQ_CREATE_MR_LEN);
}

int rdma_mr_create_empty(struct rdma *rdma, struct rdma_mr *mr, uint32_t pd, uint32_t flags)
{
	union rdma_admin_cmd cmd;

	*mr = (struct rdma_mr){.rdma = rdma, .key = rdma_new_key(rdma), .pd = pd};
	mr_command(mr, flags, &cmd);
	return rdma_admin(rdma, AQ_CREATE_MR, &cmd, AQ_CREATE_MR_LEN);
}

static int rdma_destroy(struct rdma *rdma, enum rdma_admin_op op, uint32_t id)
{
	union rdma_admin_cmd cmd = {{0}};

	cmd.destroy.id = le32_make(id);
	return rdma_admin(rdma, op, &cmd, AQ_DESTROY_LEN);
}

int rdma_mr_destroy(struct rdma_mr *mr)
{
	return rdma_destroy(mr->rdma, AQ_DESTROY_MR, mr->key);
}

void *rdma_mr_at(const struct rdma_mr *mr, size_t offset)
{
	uint64_t count = (mr->size + RAM_PAGE - 1) / RAM_PAGE;
	uint64_t page = mr_page(mr->addr, mr->scattered, offset / RAM_PAGE, count, RING_PAGE);

	return ram_at(&mr->rdma->nic->ram, page + offset % RAM_PAGE);
}

/* Byte N of the pattern of SEED. */
static uint8_t pattern(uint32_t seed, size_t n)
{
	return (uint8_t)(seed * 37 + n + (n >> 8) * 11);
}

void rdma_mr_fill(const struct rdma_mr *mr, size_t offset, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		*(uint8_t *)rdma_mr_at(mr, offset + i) = pattern(seed, i);
}

bool rdma_mr_check(const struct rdma_mr *mr, size_t offset, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		if (*(uint8_t *)rdma_mr_at(mr, offset + i) != pattern(seed, i))
			return false;
	return true;
}

/* ---- rings (8.1) ---- */

/* Takes memory; a process's rings are told in pages, the kernel's as one piece. */
static int ring_make(struct rdma *rdma, struct rdma_ring *ring, unsigned log2, unsigned stride)
{
	size_t size = (size_t)1 << (log2 + stride);

	ring->log2 = (uint8_t)log2;
	ring->stride_log2 = (uint8_t)stride;
	ring->base = ram_take(&rdma->nic->ram, size);
	if (!ring->base)
		return -ENOMEM;
	memset(ram_at(&rdma->nic->ram, ring->base), 0, size);
	return 0;
}

struct ring_told {
	le32 map_count;
	le64 dma_addr;
	uint8_t page_size_log2;
};

static int ring_tell(struct rdma *rdma, const struct rdma_ring *ring, bool user,
                     struct ring_told *told)
{
	uint64_t size = 1ull << (ring->log2 + ring->stride_log2);
	uint32_t count = (uint32_t)((size + RAM_PAGE - 1) / RAM_PAGE);
	uint64_t table;
	le64 *entry;

	*told = (struct ring_told){.map_count = le32_make(1),
	                           .dma_addr = le64_make(ring->base),
	                           .page_size_log2 = user ? RING_PAGE : 0};
	if (!user || count == 1)
		return 0;
	table = rdma_take_table(rdma, count);
	if (!table)
		return -ENOMEM;
	entry = ram_at(&rdma->nic->ram, table);
	for (uint32_t i = 0; i < count; i++)
		entry[i] = le64_make(ring->base + (uint64_t)i * RAM_PAGE);
	told->map_count = le32_make(count);
	told->dma_addr = le64_make(table);
	return 0;
}

/* ---- CQs ---- */

static int cq_command(struct rdma_cq *cq, const struct rdma_cq_config *config)
{
	union rdma_admin_cmd cmd = {{0}};
	struct ring_told told;
	int err = ring_tell(cq->rdma, &cq->ring, config->page != 0, &told);

	if (err)
		return err;
	cmd.create_cq.eq_id = le32_make(config->eq);
	cmd.create_cq.depth_log2 = cq->ring.log2;
	cmd.create_cq.stride_log2 = cq->ring.stride_log2;
	cmd.create_cq.page_size_log2 = told.page_size_log2;
	cmd.create_cq.id = le32_make(cq->id);
	cmd.create_cq.tbl_index = le32_make(AQ_NO_INDEX);
	cmd.create_cq.map_count = told.map_count;
	cmd.create_cq.dma_addr = told.dma_addr;
	cmd.create_cq.dbid = le16_make(config->page);
	return rdma_admin(cq->rdma, AQ_CREATE_CQ, &cmd, AQ_CREATE_CQ_LEN);
}

int rdma_cq_create(struct rdma *rdma, struct rdma_cq **cq, const struct rdma_cq_config *config)
{
	struct rdma_cq *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->rdma = rdma;
	new->id = rdma->next_cq++;
	new->page = config->page;
	err = ring_make(rdma, &new->ring, config->log2, 5);
	if (!err)
		err = cq_command(new, config);
	if (err) {
		free(new);
		return err;
	}
	rdma->cqs[new->id] = new;
	*cq = new;
	return 0;
}

void rdma_cq_free(struct rdma_cq *cq)
{
	free(cq);
}

int rdma_cq_destroy(struct rdma_cq *cq)
{
	int err = rdma_destroy(cq->rdma, AQ_DESTROY_CQ, cq->id);

	cq->rdma->cqs[cq->id] = NULL;
	rdma_cq_free(cq);
	return err;
}

int rdma_cq_consume(struct rdma_cq *cq)
{
	if (cq->told == cq->cons)
		return 0;
	cq->told = cq->cons;
	return rdma_doorbell(cq->rdma, cq->page, cq->rdma->id.slot.cq, 0, cq->id,
	                     cq->cons & ((1u << cq->ring.log2) - 1));
}

int rdma_cq_arm(struct rdma_cq *cq, bool solicited)
{
	int err = rdma_cq_consume(cq);

	return err ? err
	           : rdma_doorbell(cq->rdma, cq->page, cq->rdma->id.slot.cq, solicited ? 2 : 1,
	                           cq->id, ++cq->arms);
}

/* ---- queue pairs ---- */

static int qp_ring_desc(struct rdma *rdma, const struct rdma_wq *wq, bool user,
                        struct rdma_ring_desc *desc)
{
	struct ring_told told;
	int err = ring_tell(rdma, &wq->ring, user, &told);

	*desc = (struct rdma_ring_desc){.cq_id = le32_make(wq->cq->id),
	                                .depth_log2 = wq->ring.log2,
	                                .stride_log2 = wq->ring.stride_log2,
	                                .page_size_log2 = told.page_size_log2,
	                                .tbl_index = le32_make(AQ_NO_INDEX),
	                                .map_count = told.map_count,
	                                .dma_addr = told.dma_addr};
	return err;
}

static int qp_command(struct rdma_qp *qp, const struct rdma_qp_config *config)
{
	union rdma_admin_cmd cmd = {{0}};
	int err = qp_ring_desc(qp->rdma, &qp->sq, qp->page != 0, &cmd.create_qp.sq);

	if (!err)
		err = qp_ring_desc(qp->rdma, &qp->rq, qp->page != 0, &cmd.create_qp.rq);
	if (err)
		return err;
	cmd.create_qp.pd = le32_make(qp->pd);
	cmd.create_qp.flags = be32_make(QPF_SPEC | (config->privileged ? QPF_PRIVILEGED : 0));
	cmd.create_qp.id = le32_make(qp->id);
	cmd.create_qp.dbid = le16_make(qp->page);
	cmd.create_qp.type = (uint8_t)qp->type;
	return rdma_admin(qp->rdma, AQ_CREATE_QP, &cmd, AQ_CREATE_QP_LEN);
}

static int wq_make(struct rdma *rdma, struct rdma_wq *wq, struct rdma_cq *cq, unsigned log2,
                   unsigned stride)
{
	wq->cq = cq;
	wq->slot = calloc((size_t)1 << log2, sizeof(*wq->slot));
	return wq->slot ? ring_make(rdma, &wq->ring, log2, stride ? stride : 6) : -ENOMEM;
}

int rdma_qp_create(struct rdma *rdma, struct rdma_qp **qp, const struct rdma_qp_config *config)
{
	struct rdma_qp *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return -ENOMEM;
	new->rdma = rdma;
	new->id = config->id ? config->id : rdma->next_qp++;
	new->pd = config->pd;
	new->type = config->type;
	new->page = config->page;
	err = wq_make(rdma, &new->sq, config->sq_cq, config->sq_log2, config->sq_stride);
	if (!err)
		err = wq_make(rdma, &new->rq, config->rq_cq, config->rq_log2, config->rq_stride);
	if (!err)
		err = qp_command(new, config);
	if (err) {
		rdma_qp_free(new);
		return err;
	}
	rdma->qps[new->id] = new;
	*qp = new;
	return 0;
}

void rdma_qp_free(struct rdma_qp *qp)
{
	if (!qp)
		return;
	free(qp->sq.slot);
	free(qp->rq.slot);
	free(qp);
}

int rdma_qp_destroy(struct rdma_qp *qp)
{
	int err = rdma_destroy(qp->rdma, AQ_DESTROY_QP, qp->id);

	qp->rdma->qps[qp->id] = NULL;
	if (qp->sq.cq->current == qp)
		qp->sq.cq->current = NULL;
	if (qp->rq.cq->current == qp)
		qp->rq.cq->current = NULL;
	rdma_qp_free(qp);
	return err;
}

/* ---- states (9.1) ---- */

/* The driver forgets all requests with RESET. */
static void qp_restart(struct rdma_qp *qp)
{
	rdma_cq_clean(qp->sq.cq, qp);
	rdma_cq_clean(qp->rq.cq, qp);
	qp->sq.prod = qp->sq.cons = qp->rq.prod = qp->rq.cons = 0;
	qp->sq.flushing = qp->rq.flushing = false;
	qp->msn_posted = qp->msn_done = qp->msn_retired = 0;
}

/* Ethernet, IPv4 and UDP towards MAC, as the driver builds it (3.6); IPv4 addresses are 10 and the
 * last three bytes of the MAC. Returns its guest address. */
static uint64_t write_template(struct rdma *rdma, const uint8_t mac[6])
{
	static const uint8_t tail[RDMA_TEMPLATE - 12] = {
	        0x08, 0x00,                                                /* IPv4 */
	        0x45, 0x02, 0xff, 0xff, 0,  0, 0x40, 0, 64,   17, 0,    0, /* UDP */
	        10,   0,    0,    0,    10, 0, 0,    0, 0xc0, 1,  0x12, 0xb7, 0, 0x20, 0, 0};
	uint64_t addr = rdma->scratch + 1024;
	uint8_t *place = ram_at(&rdma->nic->ram, addr);
	uint8_t template[RDMA_TEMPLATE];

	memcpy(template, mac, 6);
	memcpy(template + 6, rdma->nic->mac, 6);
	memcpy(template + 12, tail, sizeof(tail));
	memcpy(template + 27, rdma->nic->mac + 3, 3);
	memcpy(template + 31, mac + 3, 3);
	if (memcmp(place, template, sizeof(template)) != 0) {
		/* Commands that read what stands there have to be over. */
		if (rdma_admin_wait(rdma, 0))
			return 0;
		memcpy(place, template, sizeof(template));
	}
	return addr;
}

int rdma_qp_modify(struct rdma_qp *qp, const struct rdma_qp_attr *attr)
{
	uint32_t mask = attr->mask;
	union rdma_admin_cmd cmd;
	int err;

	/* What is not named is whatever was in memory (3.4). */
	memset(&cmd, 0xa5, sizeof(cmd));
	cmd.modify_qp.mask = be32_make(mask);
	cmd.modify_qp.id = le32_make(qp->id);
	cmd.modify_qp.csum_profile = 0;
	if (mask & QPM_STATE)
		cmd.modify_qp.state = (uint8_t)attr->state;
	cmd.modify_qp.access = be16_make(
	        (uint16_t)(QPF_SPEC | (mask & QPM_ACCESS ? attr->access : QPF_ACCESS_ALL)));
	cmd.modify_qp.rq_psn = le32_make(attr->rq_psn);
	cmd.modify_qp.sq_psn = le32_make(attr->sq_psn);
	cmd.modify_qp.qkey_dest_qpn = le32_make(qp->type == QPT_UD ? attr->qkey : attr->dest_qpn);
	if (mask & QPM_PMTU)
		cmd.modify_qp.pmtu = attr->pmtu;
	if (mask & (QPM_RETRY | QPM_RNR_RETRY))
		cmd.modify_qp.retry = (uint8_t)(attr->retry | attr->rnr_retry << 4);
	if (mask & QPM_RNR_TIMER)
		cmd.modify_qp.rnr_timer = attr->rnr_timer;
	if (mask & QPM_TIMEOUT)
		cmd.modify_qp.timeout = attr->timeout;
	if (mask & QPM_RD_ATOMIC)
		cmd.modify_qp.rrq_depth = attr->rd_atomic_log2;
	if (mask & QPM_DEST_RD_ATOMIC)
		cmd.modify_qp.rsq_depth = attr->dest_rd_atomic_log2;
	if (mask & QPM_AV) {
		cmd.modify_qp.ah_id_len = le32_make((uint32_t)RDMA_TEMPLATE << 24 | qp->id);
		cmd.modify_qp.template_addr = le64_make(write_template(qp->rdma, attr->mac));
	}
	err = rdma_admin(qp->rdma, AQ_MODIFY_QP, &cmd, AQ_MODIFY_QP_LEN);
	if (!err && mask & QPM_STATE && attr->state == QPS_RESET)
		qp_restart(qp);
	return err;
}

int rdma_qp_set_state(struct rdma_qp *qp, enum rdma_qp_state state)
{
	const struct rdma_qp_attr attr = {.mask = QPM_STATE, .state = state};

	return rdma_qp_modify(qp, &attr);
}

/* Masks of INIT, RTR and RTS by QP type, as ibv programs send them (9.2, 9.5, 10). */
static const uint32_t start_masks[4][3] = {
        [QPT_RC] = {0x39, 0x129181, 0x12e01},
        [QPT_UC] = {0x39, 0x101181, 0x10001},
        [QPT_UD] = {0x71, 0x1, 0x10001},
};

int rdma_qp_start(struct rdma_qp *qp, uint32_t dest, const struct rdma_path *path)
{
	static const enum rdma_qp_state states[3] = {QPS_INIT, QPS_RTR, QPS_RTS};
	struct rdma_qp_attr attr = {.access = path->access,
	                            .qkey = 0x11111111,
	                            .dest_qpn = dest,
	                            .pmtu = path->pmtu ? path->pmtu : 10,
	                            .retry = path->retry,
	                            .rnr_retry = path->rnr_retry,
	                            .rnr_timer = path->rnr_timer,
	                            .timeout = path->timeout,
	                            .rd_atomic_log2 = 4,
	                            .dest_rd_atomic_log2 = 5};

	memcpy(attr.mac, path->mac ? path->mac : qp->rdma->nic->mac, 6);
	qp->qkey = attr.qkey;
	for (unsigned i = 0; i < 3; i++) {
		int err;

		attr.state = states[i];
		attr.mask = start_masks[qp->type][i];
		err = rdma_qp_modify(qp, &attr);
		if (err)
			return err;
	}
	return 0;
}

int rdma_qp_connect(struct rdma_qp *a, struct rdma_qp *b, const struct rdma_path *path)
{
	struct rdma_path to = *path;
	int err;

	to.mac = b->rdma->nic->mac;
	err = rdma_qp_start(a, b->id, &to);
	to.mac = a->rdma->nic->mac;
	return err || a == b ? err : rdma_qp_start(b, a->id, &to);
}

int rdma_qp_query(struct rdma_qp *qp, struct rdma_qp_info *info)
{
	uint8_t *blocks = ram_at(&qp->rdma->nic->ram, qp->rdma->scratch);
	union rdma_admin_cmd cmd = {{0}};
	be32 word;
	be16 half;
	int err;

	memset(blocks, 0, 64);
	cmd.query_qp.sq_addr = le64_make(qp->rdma->scratch);
	cmd.query_qp.rq_addr = le64_make(qp->rdma->scratch + 32);
	cmd.query_qp.id = le32_make(qp->id);
	err = rdma_admin(qp->rdma, AQ_QUERY_QP, &cmd, AQ_QUERY_QP_LEN);
	if (err)
		return err;
	memcpy(&word, blocks + 8, sizeof(word));
	info->dest_qpn = be32_get(word);
	memcpy(&word, blocks + 16, sizeof(word));
	info->rq_psn = be32_get(word);
	memcpy(&word, blocks + 32 + 4, sizeof(word));
	info->sq_psn = be32_get(word);
	memcpy(&half, blocks + 2, sizeof(half));
	info->flags = be16_get(half);
	memcpy(&half, blocks + 32 + 8, sizeof(half));
	info->flags |= be16_get(half);
	info->state = blocks[32] >> 4;
	if ((blocks[32] & 0xf) < 8 || (blocks[32] & 0xf) > 12)
		return nic_complain(qp->rdma->nic, "QUERY_QP: path MTU code %u", blocks[32] & 0xf);
	return 0;
}

/* ---- address handles ---- */

int rdma_ah_create(struct rdma *rdma, uint32_t pd, const uint8_t mac[6], uint32_t *id)
{
	union rdma_admin_cmd cmd = {{0}};

	*id = rdma->next_ah++;
	cmd.create_ah.template_addr = le64_make(write_template(rdma, mac));
	cmd.create_ah.length = le32_make(RDMA_TEMPLATE);
	cmd.create_ah.pd = le32_make(pd);
	cmd.create_ah.id = le32_make(*id);
	return rdma_admin(rdma, AQ_CREATE_AH, &cmd, AQ_CREATE_AH_LEN);
}

int rdma_ah_destroy(struct rdma *rdma, uint32_t id)
{
	return rdma_destroy(rdma, AQ_DESTROY_AH, id);
}
