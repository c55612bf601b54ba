// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bring-up of the RDMA function and its admin queue (spec ionic-rdma 1, 2, 3): identity, the
 * commands of the Ethernet AdminQ, strides, order, every opcode with what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rdma_rig.h"

static struct rdma_rig rig;

static int setup(void **state)
{
	(void)state;
	rig_create(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_destroy(&rig);
	return 0;
}

/* ---- identity ---- */

static void test_identity(void **state)
{
	const union ionic_cmd cmd = {.lif_identify = {.opcode = IONIC_CMD_LIF_IDENTIFY, .ver = 1}};
	struct ionic_lif_identity lif;
	struct ionic_rdma_identity id;

	(void)state;
	assert_int_equal(fake_devcmd(&rig.guest, &cmd, NULL), IONIC_RC_SUCCESS);
	fake_devcmd_data_read(&rig.guest, &lif, sizeof(lif));
	memcpy(&id, lif.rdma, sizeof(id));
	assert_true(le64_get(lif.capabilities) & IONIC_LIF_CAP_RDMA);
	assert_int_equal(id.version, 1);
	assert_true(id.qp_opcodes > IONIC_RDMA_WQE_BIND_MW);
	assert_int_equal(id.admin_opcodes, 19);
	assert_int_equal(id.max_stride, 9);
	assert_int_equal(id.udma_shift, 3);
	assert_int_equal(le32_get(id.sq.count), 32768);
	assert_int_equal(le32_get(id.rq.count), 32768);
	assert_int_equal(le32_get(id.cq.count), 131072);
	assert_int_equal(le32_get(id.eq.count), fake_profile.rdma_eqs);
	assert_int_equal(le32_get(id.nmrs), 131072);
	/* shared by address handles and RC queue pairs (1.2) */
	assert_true(le32_get(id.nahs) >= le32_get(id.sq.count) + 32768);
	assert_int_equal(le32_get(id.eq.base), 0);
	assert_int_equal(le16_get(id.stats_type), 3);
	assert_int_equal(id.sq.qtype, IONIC_DB_RDMA_SQ);
	assert_int_equal(id.rq.qtype, IONIC_DB_RDMA_RQ);
	assert_int_equal(id.cq.qtype, IONIC_DB_RDMA_CQ);
	assert_int_equal(id.aq.qtype, IONIC_DB_RDMA_AQ);
}

/* ---- commands of the Ethernet AdminQ ---- */

static void test_create_eq_refusals(void **state)
{
	static const struct {
		const char *counter;
		uint32_t id, intr;
		unsigned depth, stride;
		uint64_t offset;
		int status;
	} rows[] = {
	        {"ionic_eq_busy", 0, 1, 10, 2, 0, IONIC_RC_EEXIST},
	        {"ionic_eq_bad_id", 4, 1, 10, 2, 0, IONIC_RC_EQID},
	        {"ionic_eq_bad_id", 0xffffff, 1, 10, 2, 0, IONIC_RC_EQID},
	        {"ionic_eq_bad_intr", 0, 9, 10, 2, 0, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_intr", 0, UINT32_MAX, 10, 2, 0, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_ring", 0, 1, 0, 2, 0, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_ring", 0, 1, 17, 2, 0, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_ring", 0, 1, 255, 2, 0, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_ring", 0, 1, 10, 3, 0, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_ring", 0, 1, 10, 2, 1, IONIC_RC_EINVAL},
	        {"ionic_eq_bad_ring", 0, 1, 10, 2, IONIC_ADDR_END, IONIC_RC_EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t before = rig_counter(rows[i].counter);

		if (rows[i].status != IONIC_RC_EEXIST)
			assert_int_equal(rig_command(&rig, 50, 0, 0, 0, 0, 0), 0);
		assert_int_equal(rig_command(&rig, 51, rows[i].id, rows[i].intr, rows[i].depth,
		                             rows[i].stride, FAKE_RAM_BASE + rows[i].offset),
		                 rows[i].status);
		assert_int_equal(rig_counter(rows[i].counter), before + 1);
	}
}

static void test_create_cq_and_adminq_refusals(void **state)
{
	uint64_t page = fake_alloc(&rig.guest, 4096);

	(void)state;
	assert_int_equal(rig_command(&rig, 52, 0, 2, 7, 5, page), IONIC_RC_EEXIST);
	assert_int_equal(rig_command(&rig, 52, 1, 4, 7, 5, page), IONIC_RC_EQID);
	assert_int_equal(rig_command(&rig, 52, IONIC_RDMA_CQS, 2, 7, 5, page), IONIC_RC_EQID);
	assert_int_equal(rig_command(&rig, 52, 1, 2, 7, 6, page), IONIC_RC_EINVAL);
	assert_int_equal(rig_command(&rig, 52, 1, 2, 17, 5, page), IONIC_RC_EINVAL);
	assert_int_equal(rig_command(&rig, 52, 1, 2, 7, 5, page + 8), IONIC_RC_EINVAL);
	assert_int_equal(rig_command(&rig, 52, 1, 2, 7, 5, UINT64_MAX - 31), IONIC_RC_EINVAL);
	assert_int_equal(rig_command(&rig, 52, 1, 2, 7, 5, page), IONIC_RC_SUCCESS);
	assert_int_equal(rig_command(&rig, 53, 0, 1, 6, 6, page), IONIC_RC_EQID); /* exists */
	assert_int_equal(rig_command(&rig, 50, 0, 0, 0, 0, 0), IONIC_RC_SUCCESS);
	assert_int_equal(rig_command(&rig, 53, 0, 0, 6, 6, page), IONIC_RC_EQID); /* no CQ */
	assert_int_equal(rig_command(&rig, 51, 2, 3, 10, 2, page), IONIC_RC_SUCCESS);
	assert_int_equal(rig_command(&rig, 52, 0, 2, 7, 5, page), IONIC_RC_SUCCESS);
	assert_int_equal(rig_command(&rig, 53, 1, 0, 6, 6, page), IONIC_RC_EQID);
	assert_int_equal(rig_command(&rig, 53, 0, 0, 6, 5, page), IONIC_RC_EINVAL);
	assert_int_equal(rig_command(&rig, 53, 0, 0, 0, 6, page), IONIC_RC_EINVAL);
	assert_int_equal(rig_command(&rig, 53, 0, 0, 6, 6, page), IONIC_RC_SUCCESS);
}

/* Also when there is nothing, and by device command (2.1, 2.5). */
static void test_reset_lif(void **state)
{
	const union ionic_cmd cmd = {.any = {.opcode = IONIC_CMD_RDMA_RESET_LIF}};
	union ionic_rdma_admin wqe = {{0}};

	(void)state;
	assert_int_equal(fake_devcmd(&rig.guest, &cmd, NULL), IONIC_RC_SUCCESS);
	assert_int_equal(fake_devcmd(&rig.guest, &cmd, NULL), IONIC_RC_SUCCESS);
	assert_int_equal(rig_command(&rig, 50, 0, 0, 0, 0, 0), IONIC_RC_SUCCESS);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_NOOP, &wqe, 0), -1);
	rig_bring_up(&rig);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_NOOP, &wqe, 0), 0);
}

/* ---- the queue ---- */

/* Strides wrap; the index is that of the first; several commands ring once and are answered in
 * order; what is behind the length is stale and means nothing. */
static void test_strides(void **state)
{
	union ionic_rdma_admin wqe;
	union ionic_rdma_cqe cqe;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		uint16_t len = (uint16_t)(i * 7 % 124);
		uint32_t first;

		memset(&wqe, 0xff, sizeof(wqe));
		rig_admin_post(&rig, IONIC_RDMA_NOOP, &wqe, len);
		first = rig.aq_last;
		memset(&wqe, 0xff, sizeof(wqe));
		rig_admin_post(&rig, 99, &wqe, 4);
		rig_admin_ring(&rig);
		assert_true(rig_cq_poll(&rig.admin_cq, &cqe));
		assert_int_equal(be16_get(cqe.admin.cmd_idx), first);
		assert_int_equal(cqe.admin.cmd_op, IONIC_RDMA_NOOP);
		assert_false(cqe_error(&cqe));
		assert_true(rig_cq_poll(&rig.admin_cq, &cqe));
		assert_int_equal(be16_get(cqe.admin.cmd_idx), rig.aq_last);
		assert_int_equal(cqe.admin.cmd_op, 99);
		assert_int_equal(cqe_status(&cqe), IONIC_RDMA_BAD_CMD);
		assert_true(cqe_error(&cqe));
		assert_false(rig_cq_poll(&rig.admin_cq, &cqe));
		rig_cq_consume(&rig.admin_cq);
	}
}

/* A length that is not there: one answer, and the queue goes on behind what was posted. */
static void test_torn_command(void **state)
{
	uint64_t before = rig_counter("ionic_aq_torn");
	union ionic_rdma_admin wqe = {{0}};

	(void)state;
	rig_admin_post(&rig, IONIC_RDMA_CREATE_QP, &wqe, 60);
	((uint8_t *)fake_ptr(&rig.guest, rig.aq, 64))[3] = 0xff; /* 64 K */
	rig_admin_ring(&rig);
	assert_int_equal(rig_admin_result(&rig), IONIC_RDMA_BAD_CMD);
	assert_int_equal(rig_counter("ionic_aq_torn"), before + 1);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_NOOP, &wqe, 0), 0);
}

static void test_short_and_unsupported(void **state)
{
	static const struct {
		uint8_t op;
		uint16_t len;
	} rows[] = {{IONIC_RDMA_CREATE_CQ, 33},    {IONIC_RDMA_CREATE_QP, 63},
	            {IONIC_RDMA_CREATE_MR, 44},    {IONIC_RDMA_STATS_HDRS, 16},
	            {IONIC_RDMA_STATS_VALS, 16},   {IONIC_RDMA_DESTROY_MR, 3},
	            {IONIC_RDMA_DESTROY_CQ, 0},    {IONIC_RDMA_MODIFY_QP, 59},
	            {IONIC_RDMA_QUERY_QP, 33},     {IONIC_RDMA_DESTROY_QP, 3},
	            {IONIC_RDMA_CREATE_AH, 23},    {IONIC_RDMA_DESTROY_AH, 3},
	            {IONIC_RDMA_QP_STATS_HDRS, 0}, {IONIC_RDMA_QP_STATS_VALS, 16}},
	  unsupported[] = {{IONIC_RDMA_RESIZE_CQ, 60},
	                   {IONIC_RDMA_DEBUG, 60},
	                   {IONIC_RDMA_QUERY_AH, 8},
	                   {IONIC_RDMA_MODIFY_DCQCN, 60},
	                   {19, 60},
	                   {255, 60}};
	uint64_t before = rig_counter("ionic_aq_short");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		union ionic_rdma_admin wqe = {{0}};

		assert_int_equal(rig_admin(&rig, rows[i].op, &wqe, rows[i].len),
		                 IONIC_RDMA_BAD_CMD);
	}
	assert_int_equal(rig_counter("ionic_aq_short"), before + ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(unsupported); i++) {
		union ionic_rdma_admin wqe = {{0}};

		assert_int_equal(rig_admin(&rig, unsupported[i].op, &wqe, unsupported[i].len),
		                 IONIC_RDMA_BAD_CMD);
	}
}

static void test_doorbell(void **state)
{
	union ionic_rdma_admin wqe = {{0}};
	uint64_t page = rig_counter("ionic_rdma_bad_page");
	uint64_t index = rig_counter("ionic_aq_bad_index");
	uint64_t ring = rig_counter("ionic_rdma_bad_ring"), qid = rig_counter("ionic_rdma_bad_qid");

	(void)state;
	rig_admin_post(&rig, IONIC_RDMA_NOOP, &wqe, 0);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_AQ, 0, 0, 1);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 0, 0, 16);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 0, 1, 1);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 1, 0, 1);
	fake_run(&rig.guest);
	assert_int_equal(rig_admin_result(&rig), -1);
	assert_int_equal(rig_counter("ionic_rdma_bad_page"), page + 1);
	assert_int_equal(rig_counter("ionic_aq_bad_index"), index + 1);
	assert_int_equal(rig_counter("ionic_rdma_bad_ring"), ring + 1);
	assert_int_equal(rig_counter("ionic_rdma_bad_qid"), qid + 1);
	rig_admin_ring(&rig);
	assert_int_equal(rig_admin_result(&rig), 0);
}

/* More commands than a turn serves: all of them are answered all the same. */
static void test_many_commands(void **state)
{
	union ionic_rdma_admin wqe = {{0}};
	union ionic_rdma_cqe cqe;

	(void)state;
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 15; i++)
			rig_admin_post(&rig, IONIC_RDMA_NOOP, &wqe, 0);
		rig_admin_ring(&rig);
		for (unsigned i = 0; i < 15; i++)
			assert_true(rig_cq_poll(&rig.admin_cq, &cqe));
		rig_cq_consume(&rig.admin_cq);
	}
}

/* ---- CQs and queue pairs ---- */

static void test_cq_refusals(void **state)
{
	struct rig_cq cq;
	union ionic_rdma_admin wqe = {.destroy = {.id = le32_make(7)}};

	(void)state;
	assert_int_equal(rig_cq_create(&rig, &cq, 0, 4, 0), IONIC_RDMA_BAD_STATE);
	assert_int_equal(rig_cq_create(&rig, &cq, IONIC_RDMA_CQS, 4, 0), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_cq_create(&rig, &cq, 1, 4, 1024), IONIC_RDMA_BAD_ATTR);
	assert_int_equal(rig_cq_create(&rig, &cq, 7, 8, 1), 0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_CQ, &wqe, 4), 0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_CQ, &wqe, 4), IONIC_RDMA_BAD_INDEX);
	wqe.destroy.id = le32_make(0); /* the admin queue's */
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_CQ, &wqe, 4), IONIC_RDMA_BAD_STATE);
}

/* Page tables that cannot be: too short, unaligned pages, out of memory, impossible page sizes. */
static void test_page_tables(void **state)
{
	uint64_t table = fake_alloc(&rig.guest, 4096);
	le64 *page = fake_ptr(&rig.guest, table, 4096);
	static const struct {
		uint32_t count;
		uint8_t shift;
		uint64_t addr, first;
		int status;
	} rows[] = {
	        {2, 12, 0, 0, IONIC_RDMA_BAD_ATTR}, /* one page too few */
	        {0, 12, 0, 0, IONIC_RDMA_BAD_ATTR},
	        {3, 11, 0, 0, IONIC_RDMA_BAD_ATTR},
	        {3, 41, 0, 0, IONIC_RDMA_BAD_ATTR},
	        {3, 255, 0, 0, IONIC_RDMA_BAD_ATTR},
	        {3, 12, 0, 1, IONIC_RDMA_BAD_ATTR}, /* flag bits in an entry */
	        {3, 12, FAKE_RAM_BASE + FAKE_RAM_SIZE - 8, 0, IONIC_RDMA_BAD_ATTR},
	        {3, 12, UINT64_MAX - 8, 0, IONIC_RDMA_BAD_ATTR},
	        {UINT32_MAX, 12, 0, 0, 0}, /* what the ring does not need is not looked at */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		union ionic_rdma_admin wqe = {
		        .create_cq = {.eq_id = le32_make(2),
		                      .depth_log2 = 8, /* two pages */
		                      .stride_log2 = 5,
		                      .page_size_log2 = rows[i].shift,
		                      .id_ver = le32_make(5),
		                      .pages = {.map_count = le32_make(rows[i].count),
		                                .dma_addr = le64_make(rows[i].addr ? rows[i].addr
		                                                                   : table)}}};

		if (rows[i].count == 2)
			wqe.create_cq.depth_log2 = 9;
		for (unsigned j = 0; j < 3; j++)
			page[j] = le64_make(FAKE_RAM_BASE + 4096 * j + (j ? 0 : rows[i].first));
		assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_CQ, &wqe, 34), rows[i].status);
	}
}

static void test_qp_refusals(void **state)
{
	struct rig_cq cq, admin = {.rig = &rig}, none = {.rig = &rig, .id = 77};
	union ionic_rdma_admin wqe = {.destroy = {.id = le32_make(4)}};
	struct rig_qp qp;

	(void)state;
	assert_int_equal(rig_cq_create(&rig, &cq, 4, 6, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 4, 2, 1), IONIC_RDMA_BAD_TYPE);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 4, 4, 1), IONIC_RDMA_BAD_TYPE);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 0, 0, 1), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, IONIC_RDMA_QPS, 0, 1), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 4, 0, 1024), IONIC_RDMA_BAD_ATTR);
	assert_int_equal(rig_qp_create(&rig, &qp, &admin, 4, 0, 0), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_qp_create(&rig, &qp, &none, 4, 0, 0), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 4, 0, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 4, 0, 1), IONIC_RDMA_BAD_STATE);
	/* a CQ goes after its queue pairs */
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_CQ, &wqe, 4), IONIC_RDMA_BAD_STATE);
	assert_int_equal(rig_qp_destroy(&qp), 0);
	assert_int_equal(rig_qp_destroy(&qp), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_CQ, &wqe, 4), 0);
}

/* QUERY_QP in RESET, and with values; a header address of 0 writes nothing (3.4). */
static void test_query_qp(void **state)
{
	uint64_t page = fake_alloc(&rig.guest, 4096);
	union ionic_rdma_admin wqe = {.query_qp = {.hdr_dma_addr = le64_make(0),
	                                           .sq_dma_addr = le64_make(page + 256),
	                                           .rq_dma_addr = le64_make(page + 512),
	                                           .id_ver = le32_make(8)}};
	const struct ionic_rdma_query_sq *sq = fake_ptr(&rig.guest, page + 256, 20);
	const struct ionic_rdma_query_rq *rq = fake_ptr(&rig.guest, page + 512, 12);
	const uint8_t *header = fake_ptr(&rig.guest, page, 66);
	struct rig_cq cq;
	struct rig_qp qp;

	(void)state;
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_QUERY_QP, &wqe, 34), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_cq_create(&rig, &cq, 8, 6, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 8, 0, 1), 0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_QUERY_QP, &wqe, 34), 0);
	assert_int_equal(rq->state_pmtu >> 4, RDMA_QPS_RESET);
	assert_in_range(rq->state_pmtu & 15, 8, 12);
	rig_qp_connect(&qp, &qp);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_QUERY_QP, &wqe, 34), 0);
	assert_int_equal(rq->state_pmtu, RDMA_QPS_RTS << 4 | 10);
	assert_int_equal(rq->retry_rnrtry, 0x77);
	assert_int_equal(rq->rrq_depth, 4);
	assert_int_equal(rq->rsq_depth, 4);
	assert_int_equal(be32_get(rq->sq_psn), 8 << 8);
	assert_int_equal(be32_get(sq->rq_psn), 8 << 8);
	assert_int_equal(be32_get(sq->qkey_dest_qpn), 8);
	assert_int_equal(be16_get(sq->flags) & 7, 7);
	assert_int_equal(sq->retry_timeout, 14);
	assert_int_equal(sq->rnr_timer, 1);
	assert_int_equal(header[0], 0);
	wqe.query_qp.hdr_dma_addr = le64_make(page);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_QUERY_QP, &wqe, 34), 0);
	assert_memory_equal(header, fake_mac, 6);
	wqe.query_qp.sq_dma_addr = le64_make(8);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_QUERY_QP, &wqe, 34), IONIC_RDMA_BAD_ATTR);
}

/* The device's state, not the driver's, decides; ERR and RESET are always possible (3.4). */
static void test_modify_states(void **state)
{
	struct rdma_qp_attr attr = {.state = RDMA_QPS_RTS, .cur_state = RDMA_QPS_INIT};
	struct rig_cq cq;
	struct rig_qp qp;

	(void)state;
	assert_int_equal(rig_cq_create(&rig, &cq, 8, 6, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &qp, &cq, 8, 0, 1), 0);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_RTR), IONIC_RDMA_BAD_STATE);
	rig_qp_connect(&qp, &qp);
	assert_int_equal(rig_qp_modify(&qp, 3, &attr), IONIC_RDMA_BAD_STATE);
	attr.cur_state = RDMA_QPS_RTS;
	assert_int_equal(rig_qp_modify(&qp, 3, &attr), 0);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_SQD), 0);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_ERR), 0);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_RTS), IONIC_RDMA_BAD_STATE);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_SQD), IONIC_RDMA_BAD_STATE);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_ERR), 0);
	assert_int_equal(rig_qp_state(&qp, RDMA_QPS_RESET), 0);
	rig_qp_connect(&qp, &qp);
	attr.mtu_shift = 13;
	assert_int_equal(rig_qp_modify(&qp, RDMA_ATTR_MTU, &attr), IONIC_RDMA_BAD_ATTR);
	assert_int_equal(rig_qp_modify(&qp, 0, &attr), 0);
}

static void test_templates(void **state)
{
	union ionic_rdma_admin destroy = {.destroy = {.id = le32_make(0)}};
	uint64_t bad = rig_counter("ionic_qp_bad_template");
	union ionic_rdma_admin wqe = {
	        .create_ah = {.dma_addr = le64_make(FAKE_RAM_BASE), .id_ver = le32_make(1)}};

	(void)state;
	assert_int_equal(rig_ah_create(&rig, 0, 1), 0); /* 0 is an id like others */
	assert_int_equal(rig_ah_create(&rig, 0, 1), IONIC_RDMA_BAD_STATE);
	assert_int_equal(rig_ah_create(&rig, IONIC_RDMA_AHS, 1), IONIC_RDMA_BAD_INDEX);
	assert_int_equal(rig_ah_create(&rig, IONIC_RDMA_AHS - 1, 1), 0);
	wqe.create_ah.length = le32_make(67);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_AH, &wqe, 24), IONIC_RDMA_BAD_ATTR);
	wqe.create_ah.length = le32_make(UINT32_MAX);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_AH, &wqe, 24), IONIC_RDMA_BAD_ATTR);
	assert_int_equal(rig_counter("ionic_qp_bad_template"), bad + 2);
	wqe.create_ah.length = le32_make(0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_AH, &wqe, 24), IONIC_RDMA_BAD_ATTR);
	wqe.create_ah.length = le32_make(42); /* not a template */
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_AH, &wqe, 24), IONIC_RDMA_BAD_ATTR);
	wqe.create_ah.dma_addr = le64_make(FAKE_RAM_BASE + FAKE_RAM_SIZE - 41);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_AH, &wqe, 24), IONIC_RDMA_BAD_ATTR);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_AH, &destroy, 4), 0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_AH, &destroy, 4), IONIC_RDMA_BAD_INDEX);
}

/* A table of many pages takes turns; what was posted behind it waits, in order. */
static void test_large_region(void **state)
{
	const uint32_t count = 100000;
	uint64_t table = fake_alloc(&rig.guest, count * 8);
	le64 *page = fake_ptr(&rig.guest, table, count * 8);
	struct loop_stats before, after;
	union ionic_rdma_admin wqe = {.create_mr = {.length = le64_make(count * 4096ull),
	                                            .pd_id = le32_make(1),
	                                            .id_ver = le32_make(5 << 8 | 1),
	                                            .pages = {.map_count = le32_make(count),
	                                                      .dma_addr = le64_make(table)},
	                                            .page_size_log2 = 12}};
	union ionic_rdma_admin noop = {{0}}, destroy = {.destroy = {.id = le32_make(5 << 8)}};
	union ionic_rdma_cqe cqe;

	(void)state;
	for (uint32_t i = 0; i < count; i++)
		page[i] = le64_make(FAKE_RAM_BASE + 4096 * (i % 7));
	loop_get_stats(rig.guest.loop, &before);
	rig_admin_post(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45);
	rig_admin_post(&rig, IONIC_RDMA_NOOP, &noop, 0);
	rig_admin_ring(&rig);
	loop_get_stats(rig.guest.loop, &after);
	assert_true(after.turns - before.turns >= count / IONIC_RDMA_PAGES_A_TURN);
	assert_true(rig_cq_poll(&rig.admin_cq, &cqe));
	assert_int_equal(cqe.admin.cmd_op, IONIC_RDMA_CREATE_MR);
	assert_false(cqe_error(&cqe));
	assert_true(rig_cq_poll(&rig.admin_cq, &cqe));
	assert_int_equal(cqe.admin.cmd_op, IONIC_RDMA_NOOP);
	rig_cq_consume(&rig.admin_cq);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_MR, &destroy, 4), 0);
	/* a table that ends outside of memory fails late, and leaves nothing */
	wqe.create_mr.pages.dma_addr = le64_make(FAKE_RAM_BASE + FAKE_RAM_SIZE - (count - 1) * 8);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_BAD_ATTR);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_MR, &destroy, 4), IONIC_RDMA_BAD_INDEX);
	/* reset in between */
	wqe.create_mr.pages.dma_addr = le64_make(table);
	rig_admin_post(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 0, 0, rig.aq_prod);
	loop_turn(rig.guest.loop, 0);
	loop_turn(rig.guest.loop, 0);
	fake_reset(&rig.guest, VFIO_RESET_FUNCTION);
	rig.guest.quiet = true;
	fake_run(&rig.guest);
	assert_int_equal(rig_admin_result(&rig), -1);
}

static void test_regions(void **state)
{
	struct rig_mr mr;
	union ionic_rdma_admin destroy;
	union ionic_rdma_admin wqe = {
	        .create_mr = {.length = le64_make(4096), .page_size_log2 = 12}};

	(void)state;
	rig_mr_create(&rig, &mr, 1, 1, 4 * 4096, RIG_ALL_ACCESS);
	destroy = (union ionic_rdma_admin){.destroy = {.id = le32_make(mr.key ^ 0x55)}};
	wqe.create_mr.id_ver = le32_make(1 << 8);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_BAD_STATE);
	/* by the index alone: the key byte may have changed (3.4) */
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_MR, &destroy, 4), 0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_DESTROY_MR, &destroy, 4), IONIC_RDMA_BAD_INDEX);
	wqe.create_mr.id_ver = le32_make(7);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_BAD_INDEX);
	wqe.create_mr.id_ver = le32_make((uint32_t)IONIC_RDMA_MRS << 8);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_BAD_INDEX);
	wqe.create_mr.id_ver = le32_make(2 << 8);
	wqe.create_mr.pages.map_count = le32_make((1u << 19) + 1);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_MSG_TOO_BIG);
	wqe.create_mr.pages.map_count = le32_make(2);
	wqe.create_mr.page_size_log2 = 64;
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_BAD_ATTR);
	wqe.create_mr.page_size_log2 = 12; /* the table is not in memory */
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), IONIC_RDMA_BAD_ATTR);
	wqe.create_mr.pages.map_count = le32_make(0); /* of fast registration */
	wqe.create_mr.flags = le16_make(0xa000);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &wqe, 45), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(test_identity),
	        TEST(test_create_eq_refusals),
	        TEST(test_create_cq_and_adminq_refusals),
	        TEST(test_reset_lif),
	        TEST(test_strides),
	        TEST(test_torn_command),
	        TEST(test_short_and_unsupported),
	        TEST(test_doorbell),
	        TEST(test_many_commands),
	        TEST(test_cq_refusals),
	        TEST(test_page_tables),
	        TEST(test_qp_refusals),
	        TEST(test_query_qp),
	        TEST(test_modify_states),
	        TEST(test_templates),
	        TEST(test_large_region),
	        TEST(test_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
