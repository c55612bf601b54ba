// SPDX-License-Identifier: GPL-2.0-or-later
/* A fake guest with its RDMA function up; see rdma_rig.h. */
#include "rdma_rig.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/fabric.h"

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

uint64_t rig_counter(const char *name)
{
	const struct counter *found = counter_find(name);

	must(found);
	return counter_get(found);
}

/* ---- bring-up ---- */

static struct rdma_fabric *make_fabric(struct loop *loop)
{
	struct rdma_fabric *fabric = NULL;
	char error[100];

	must(fabric_create(&(struct fabric_place){.loop = loop}, "loopback", &fabric, error,
	                   sizeof(error)) == 0);
	return fabric;
}

int rig_execute(struct rdma_rig *rig, const struct rig_command *command)
{
	const union ionic_cmd cmd = {.rdma_queue = {.opcode = (uint8_t)command->opcode,
	                                            .qid_ver = le32_make(command->id),
	                                            .cid = le32_make(command->cid),
	                                            .depth_log2 = (uint8_t)command->depth,
	                                            .stride_log2 = (uint8_t)command->stride,
	                                            .dma_addr = le64_make(command->addr)}};

	return fake_admin(&rig->guest, &cmd, NULL);
}

static void unmask_vector(struct rdma_rig *rig, unsigned vector)
{
	fake_write(&rig->guest, IONIC_REG_INTR_CONTROL + 32 * vector + IONIC_INTR_MASK_ASSERT, 1,
	           4);
	fake_write(&rig->guest, IONIC_REG_INTR_CONTROL + 32 * vector + IONIC_INTR_MASK, 0, 4);
}

void rig_bring_up(struct rdma_rig *rig)
{
	struct fake_guest *guest = &rig->guest;

	must(rig_command(rig, IONIC_CMD_RDMA_RESET_LIF, 0, 0, 0, 0, 0) == 0);
	for (unsigned i = 0; i < RIG_EQS; i++) {
		rig->eq[i] = fake_alloc(guest, 4u << RIG_EQ_DEPTH);
		rig->eq_cons[i] = 0;
		must(rig_command(rig, IONIC_CMD_RDMA_CREATE_EQ, i, RIG_EQ_VECTOR + i, RIG_EQ_DEPTH,
		                 2, rig->eq[i]) == 0);
		unmask_vector(rig, RIG_EQ_VECTOR + i);
	}
	rig->admin_cq = (struct rig_cq){.rig = rig,
	                                .depth = RIG_ADMIN_DEPTH,
	                                .base = fake_alloc(guest, 32u << RIG_ADMIN_DEPTH)};
	must(rig_command(rig, IONIC_CMD_RDMA_CREATE_CQ, 0, 2, RIG_ADMIN_DEPTH, 5,
	                 rig->admin_cq.base) == 0);
	rig->aq = fake_alloc(guest, 64u << RIG_AQ_DEPTH);
	rig->aq_prod = 0;
	must(rig_command(rig, IONIC_CMD_RDMA_CREATE_ADMINQ, 0, 0, RIG_AQ_DEPTH, 6, rig->aq) == 0);
}

void rig_create(struct rdma_rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	fake_fabric = make_fabric;
	fake_guest_create(&rig->guest, NULL);
	fake_probe(&rig->guest);
	rig_bring_up(rig);
}

void rig_destroy(struct rdma_rig *rig)
{
	struct rdma_fabric *fabric = rig->guest.fabric;

	fake_guest_destroy(&rig->guest);
	fabric_destroy(fabric);
}

/* ---- doorbells and the admin queue ---- */

void rig_doorbell(struct rdma_rig *rig, uint16_t page, unsigned slot, uint32_t id, unsigned ring,
                  uint32_t index)
{
	le64 raw = le64_make((uint64_t)id << 24 | (uint64_t)ring << 16 | index);

	fake_bar_write(&rig->guest, IONIC_BAR_DB, page * 4096ul + slot * 8, &raw, sizeof(raw));
}

void rig_admin_post(struct rdma_rig *rig, uint8_t op, union ionic_rdma_admin *wqe, uint16_t len)
{
	unsigned strides = (len + 4u + 63) / 64;

	wqe->any.op = op;
	wqe->any.len = le16_make(len);
	rig->aq_last = rig->aq_prod;
	for (unsigned i = 0; i < strides; i++) {
		void *slot = fake_ptr(&rig->guest, rig->aq + 64ul * rig->aq_prod, 64);

		if (i < 2)
			memcpy(slot, wqe->bytes + 64ul * i, 64);
		rig->aq_prod = (rig->aq_prod + 1) & ((1u << RIG_AQ_DEPTH) - 1);
	}
}

void rig_admin_ring(struct rdma_rig *rig)
{
	rig_doorbell(rig, 0, IONIC_DB_RDMA_AQ, 0, 0, rig->aq_prod);
	fake_run(&rig->guest);
}

int rig_admin_result(struct rdma_rig *rig)
{
	union ionic_rdma_cqe cqe;

	if (!rig_cq_poll(&rig->admin_cq, &cqe))
		return -1;
	rig_cq_consume(&rig->admin_cq);
	must(cqe_type(&cqe) == IONIC_RDMA_CQE_ADMIN && cqe_qid(&cqe) == 0);
	must(be16_get(cqe.admin.cmd_idx) == rig->aq_last);
	must(cqe_error(&cqe) == (cqe_status(&cqe) != 0));
	return (int)cqe_status(&cqe);
}

int rig_admin(struct rdma_rig *rig, uint8_t op, union ionic_rdma_admin *wqe, uint16_t len)
{
	rig_admin_post(rig, op, wqe, len);
	rig_admin_ring(rig);
	return rig_admin_result(rig);
}

/* ---- rings ---- */

/* Says where a ring of SIZE bytes at BASE is: by a page table if PAGED and more than a page. */
static void fill_pages(struct rdma_rig *rig, struct ionic_rdma_pages *pages, uint8_t *page_shift,
                       uint64_t base, uint64_t size, bool paged)
{
	uint64_t count = (size + 4095) / 4096, table;
	le64 *entry;

	*page_shift = paged ? 12 : 0;
	pages->tbl_index = le32_make(UINT32_MAX);
	if (!paged || count == 1) {
		pages->map_count = le32_make(1);
		pages->dma_addr = le64_make(base);
		return;
	}
	table = fake_alloc(&rig->guest, count * 8);
	entry = fake_ptr(&rig->guest, table, count * 8);
	for (uint64_t i = 0; i < count; i++)
		entry[i] = le64_make(base + 4096 * i);
	pages->map_count = le32_make((uint32_t)count);
	pages->dma_addr = le64_make(table);
}

int rig_cq_create(struct rdma_rig *rig, struct rig_cq *cq, uint32_t id, unsigned depth,
                  uint16_t dbid)
{
	union ionic_rdma_admin wqe = {.create_cq = {.eq_id = le32_make(2 + (id >> 3 & 1)),
	                                            .depth_log2 = (uint8_t)depth,
	                                            .stride_log2 = 5,
	                                            .id_ver = le32_make(id),
	                                            .dbid_flags = le16_make(dbid)}};
	uint64_t size = 32ul << depth;

	*cq = (struct rig_cq){.rig = rig,
	                      .id = id,
	                      .depth = depth,
	                      .dbid = dbid,
	                      .base = fake_alloc(&rig->guest, size)};
	fill_pages(rig, &wqe.create_cq.pages, &wqe.create_cq.page_size_log2, cq->base, size,
	           dbid != 0);
	return rig_admin(rig, IONIC_RDMA_CREATE_CQ, &wqe, 34);
}

bool rig_cq_poll(struct rig_cq *cq, union ionic_rdma_cqe *cqe)
{
	uint32_t mask = (1u << cq->depth) - 1;
	bool color = !(cq->cons >> cq->depth & 1);

	memcpy(cqe, fake_ptr(&cq->rig->guest, cq->base + 32ul * (cq->cons & mask), 32), 32);
	if ((cqe->bytes[31] & 1) != color)
		return false;
	cq->cons++;
	return true;
}

void rig_cq_consume(struct rig_cq *cq)
{
	rig_doorbell(cq->rig, cq->dbid, IONIC_DB_RDMA_CQ, cq->id, 0,
	             cq->cons & ((1u << cq->depth) - 1));
}

void rig_cq_arm(struct rig_cq *cq, bool solicited)
{
	rig_doorbell(cq->rig, cq->dbid, IONIC_DB_RDMA_CQ, cq->id, solicited ? 2 : 1,
	             ++cq->arm_count & 0xffff);
	fake_run(&cq->rig->guest);
}

bool rig_event(struct rdma_rig *rig, unsigned eq, struct rig_event *event)
{
	uint32_t slot = rig->eq_cons[eq] & ((1u << RIG_EQ_DEPTH) - 1);
	bool color = !(rig->eq_cons[eq] >> RIG_EQ_DEPTH & 1);
	be32 raw;
	uint32_t value;

	memcpy(&raw, fake_ptr(&rig->guest, rig->eq[eq] + 4ul * slot, 4), 4);
	value = be32_get(raw);
	if ((value & 1) != color)
		return false;
	rig->eq_cons[eq]++;
	*event = (struct rig_event){
	        .type = value >> 1 & 7, .code = value >> 4 & 15, .id = value >> 8};
	return true;
}

void rig_unmask(struct rdma_rig *rig, unsigned eq)
{
	fake_write(&rig->guest, IONIC_REG_INTR_CONTROL + 32 * (RIG_EQ_VECTOR + eq) + 8,
	           IONIC_INTR_CREDITS_UNMASK, 4);
}

/* ---- queue pairs ---- */

#define RIG_WQ_DEPTH  6
#define RIG_WQ_STRIDE 7 /* 128 bytes: two pages */

static void fill_queue(struct rig_qp *qp, struct ionic_rdma_queue_desc *desc, struct rig_wq *wq)
{
	uint64_t size = 1ul << (RIG_WQ_DEPTH + RIG_WQ_STRIDE);

	*wq = (struct rig_wq){.base = fake_alloc(&qp->rig->guest, size),
	                      .depth = RIG_WQ_DEPTH,
	                      .stride = RIG_WQ_STRIDE};
	desc->cq_id = le32_make(qp->cq->id);
	desc->depth_log2 = RIG_WQ_DEPTH;
	desc->stride_log2 = RIG_WQ_STRIDE;
	fill_pages(qp->rig, &desc->pages, &desc->page_size_log2, wq->base, size, qp->dbid != 0);
}

int rig_qp_create(struct rdma_rig *rig, struct rig_qp *qp, struct rig_cq *cq, uint32_t qpn,
                  unsigned type, uint16_t dbid)
{
	union ionic_rdma_admin wqe = {.create_qp = {.pd_id = le32_make(1),
	                                            .priv_flags = be32_make(dbid ? 0x300 : 0x8300),
	                                            .id_ver = le32_make(qpn),
	                                            .dbid_flags = le16_make(dbid),
	                                            .type_state = (uint8_t)type}};

	*qp = (struct rig_qp){.rig = rig, .qpn = qpn, .pd = 1, .dbid = dbid, .cq = cq};
	fill_queue(qp, &wqe.create_qp.sq, &qp->sq);
	fill_queue(qp, &wqe.create_qp.rq, &qp->rq);
	return rig_admin(rig, IONIC_RDMA_CREATE_QP, &wqe, 64);
}

/* The template of 42 bytes of one's own address (3.6). */
static uint64_t make_template(struct rdma_rig *rig)
{
	static const uint8_t rest[] = {0x08, 0x00, 0x45, 0x00, 0xff, 0xff, 0x00, 0x00, 0x40, 0x00,
	                               0x40, 0x11, 0x00, 0x00, 10,   9,    0,    1,    10,   9,
	                               0,    1,    0xc1, 0x23, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00};
	uint64_t addr = fake_alloc(&rig->guest, 42);
	uint8_t *bytes = fake_ptr(&rig->guest, addr, 42);

	memcpy(bytes, fake_mac, 6);
	memcpy(bytes + 6, fake_mac, 6);
	memcpy(bytes + 12, rest, sizeof(rest));
	return addr;
}

static uint8_t depth_of(uint32_t count)
{
	return count == 0 ? 0 : (uint8_t)(32 - __builtin_clz(count));
}

int rig_qp_modify(struct rig_qp *qp, uint32_t mask, const struct rdma_qp_attr *attr)
{
	union ionic_rdma_admin wqe;

	memset(&wqe, 0xa5, sizeof(wqe)); /* what the mask does not name is garbage */
	wqe.modify_qp.attr_mask = be32_make(mask);
	if (mask & RDMA_ATTR_ACCESS)
		wqe.modify_qp.access_flags =
		        be16_make((uint16_t)(attr->access | (attr->sqd_notify ? 0x1000 : 0)));
	wqe.modify_qp.sq_psn = le32_make(attr->sq_psn);
	wqe.modify_qp.rq_psn = le32_make(attr->rq_psn);
	wqe.modify_qp.qkey_dest_qpn = le32_make(attr->qkey ? attr->qkey : attr->dest_qpn);
	wqe.modify_qp.pmtu = attr->mtu_shift;
	wqe.modify_qp.retry = (uint8_t)(attr->retry_count | attr->rnr_retry << 4);
	wqe.modify_qp.rnr_timer = attr->rnr_timer;
	wqe.modify_qp.retry_timeout = attr->timeout;
	wqe.modify_qp.rsq_depth = depth_of(attr->max_dest_rd_atomic);
	wqe.modify_qp.rrq_depth = depth_of(attr->max_rd_atomic);
	wqe.modify_qp.type_state = (uint8_t)(attr->state | attr->cur_state << 4);
	wqe.modify_qp.id_ver = le32_make(qp->qpn);
	if (mask & RDMA_ATTR_SQD_NOTIFY)
		wqe.modify_qp.access_flags =
		        be16_make((uint16_t)(attr->access | (attr->sqd_notify ? 0x1000 : 0)));
	if (mask & RDMA_ATTR_AV) {
		wqe.modify_qp.ah_id_len = le32_make(42u << 24 | qp->qpn);
		wqe.modify_qp.dma_addr = le64_make(make_template(qp->rig));
	}
	return rig_admin(qp->rig, IONIC_RDMA_MODIFY_QP, &wqe, 60);
}

int rig_qp_state(struct rig_qp *qp, enum rdma_qp_state state)
{
	const struct rdma_qp_attr attr = {.state = state};
	int status = rig_qp_modify(qp, RDMA_ATTR_STATE, &attr);

	if (status == 0 && state == RDMA_QPS_RESET)
		qp->sq.prod = qp->rq.prod = 0;
	return status;
}

int rig_qp_destroy(struct rig_qp *qp)
{
	union ionic_rdma_admin wqe = {.destroy = {.id = le32_make(qp->qpn)}};

	return rig_admin(qp->rig, IONIC_RDMA_DESTROY_QP, &wqe, 4);
}

void rig_qp_connect(struct rig_qp *qp, const struct rig_qp *peer)
{
	struct rdma_qp_attr attr = {.state = RDMA_QPS_INIT, .access = 7, .qkey = 0x11111111};

	if (!peer) {
		must(rig_qp_modify(qp, 0x51, &attr) == 0);
		attr.state = RDMA_QPS_RTR;
		must(rig_qp_modify(qp, 1, &attr) == 0);
		attr.state = RDMA_QPS_RTS;
		must(rig_qp_modify(qp, 0x10001, &attr) == 0);
		return;
	}
	attr.qkey = 0;
	must(rig_qp_modify(qp, 0x39, &attr) == 0);
	attr.state = RDMA_QPS_RTR;
	attr.dest_qpn = peer->qpn;
	attr.mtu_shift = 10;
	attr.rq_psn = peer->qpn << 8;
	attr.max_dest_rd_atomic = 15;
	attr.rnr_timer = 1;
	must(rig_qp_modify(qp, 0x129181, &attr) == 0);
	attr.state = RDMA_QPS_RTS;
	attr.sq_psn = qp->qpn << 8;
	attr.retry_count = attr.rnr_retry = 7;
	attr.timeout = 14;
	attr.max_rd_atomic = 15;
	must(rig_qp_modify(qp, 0x12e01, &attr) == 0);
}

static void *slot_of(struct rig_qp *qp, const struct rig_wq *wq, size_t size)
{
	must(size <= 1u << wq->stride);
	return fake_ptr(&qp->rig->guest, wq->base + ((uint64_t)wq->prod << wq->stride), size);
}

void rig_post_send(struct rig_qp *qp, union ionic_rdma_wqe *wqe, size_t size)
{
	struct rig_wq *wq = &qp->sq;

	wqe->any.wqe_id = le64_make(wq->prod);
	memcpy(slot_of(qp, wq, size), wqe, size);
	wq->prod = (wq->prod + 1) & ((1u << wq->depth) - 1);
}

void rig_post_recv(struct rig_qp *qp, uint64_t wqe_id, const struct rig_mr *mr, uint64_t offset,
                   uint32_t size)
{
	union ionic_rdma_wqe wqe = {
	        .recv = {.wqe_id = le64_make(wqe_id), .num_sge = 1, .length = be32_make(size)}};
	const struct ionic_rdma_sge sge = {.va = be64_make(mr->addr + offset),
	                                   .len = be32_make(size),
	                                   .lkey = be32_make(mr->key)};
	struct rig_wq *wq = &qp->rq;

	memcpy(wqe.bytes + 32, &sge, sizeof(sge));
	memcpy(slot_of(qp, wq, 64), &wqe, 64);
	wq->prod = (wq->prod + 1) & ((1u << wq->depth) - 1);
}

void rig_ring_send(struct rig_qp *qp)
{
	rig_doorbell(qp->rig, qp->dbid, IONIC_DB_RDMA_SQ, qp->qpn, 0, qp->sq.prod);
	fake_run(&qp->rig->guest);
}

void rig_ring_recv(struct rig_qp *qp)
{
	rig_doorbell(qp->rig, qp->dbid, IONIC_DB_RDMA_RQ, qp->qpn, 0, qp->rq.prod);
	fake_run(&qp->rig->guest);
}

/* ---- memory ---- */

void rig_mr_create(struct rdma_rig *rig, struct rig_mr *mr, uint32_t index, uint32_t pd,
                   uint64_t size, uint16_t flags)
{
	union ionic_rdma_admin wqe = {.create_mr = {.pd_id = le32_make(pd),
	                                            .length = le64_make(size),
	                                            .flags = le16_make(flags)}};

	*mr = (struct rig_mr){.addr = fake_alloc(&rig->guest, size),
	                      .size = size,
	                      .key = index << 8 | (++rig->next_key & 0xff)};
	wqe.create_mr.va = le64_make(mr->addr);
	wqe.create_mr.id_ver = le32_make(mr->key);
	fill_pages(rig, &wqe.create_mr.pages, &wqe.create_mr.page_size_log2, mr->addr, size, true);
	must(rig_admin(rig, IONIC_RDMA_CREATE_MR, &wqe, 45) == 0);
}

int rig_ah_create(struct rdma_rig *rig, uint32_t id, uint32_t pd)
{
	union ionic_rdma_admin wqe = {.create_ah = {.dma_addr = le64_make(make_template(rig)),
	                                            .length = le32_make(42),
	                                            .pd_id = le32_make(pd),
	                                            .id_ver = le32_make(id)}};

	return rig_admin(rig, IONIC_RDMA_CREATE_AH, &wqe, 24);
}

static void put_sge(union ionic_rdma_wqe *wqe, const struct rig_mr *mr, uint64_t offset,
                    uint32_t size)
{
	const struct ionic_rdma_sge sge = {.va = be64_make(mr->addr + offset),
	                                   .len = be32_make(size),
	                                   .lkey = be32_make(mr->key)};

	wqe->any.num_sge_key = 1;
	wqe->any.length = be32_make(size);
	memcpy(wqe->bytes + 32, &sge, sizeof(sge));
}

union ionic_rdma_wqe rig_wqe_send(uint8_t op, uint16_t flags, const struct rig_mr *mr,
                                  uint64_t offset, uint32_t size)
{
	union ionic_rdma_wqe wqe = {.any = {.op = op, .flags = be16_make(flags)}};

	put_sge(&wqe, mr, offset, size);
	return wqe;
}

union ionic_rdma_wqe rig_wqe_rdma(uint8_t op, uint16_t flags, const struct rig_mr *local,
                                  uint32_t size, const struct rig_mr *remote)
{
	union ionic_rdma_wqe wqe = rig_wqe_send(op, flags, local, 0, size);

	wqe.rdma.va = be64_make(remote->addr);
	wqe.rdma.rkey = be32_make(remote->key);
	return wqe;
}
