// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queue pairs through their rings: what is written for which request (spec ionic-rdma 5.3 to 5.6),
 * who may ring, what the states hear, and what datagrams look like.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rdma_rig.h"

static struct rdma_rig rig;
static struct rig_cq cq_a, cq_b;
static struct rig_qp a, b;
static struct rig_mr mr;

static int setup_type(unsigned type)
{
	rig_create(&rig);
	assert_int_equal(rig_cq_create(&rig, &cq_a, 2, 6, 1), 0);
	assert_int_equal(rig_cq_create(&rig, &cq_b, 9, 8, 2), 0);
	assert_int_equal(rig_qp_create(&rig, &a, &cq_a, 2, type, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &b, &cq_b, 8, type, 2), 0);
	rig_qp_connect(&a, type == 3 ? NULL : &b);
	rig_qp_connect(&b, type == 3 ? NULL : &a);
	rig_mr_create(&rig, &mr, 1, 1, 4 * 4096, RIG_ALL_ACCESS);
	return 0;
}

static int setup_rc(void **state)
{
	(void)state;
	return setup_type(0);
}

static int setup_uc(void **state)
{
	(void)state;
	return setup_type(1);
}

static int setup_ud(void **state)
{
	(void)state;
	return setup_type(3);
}

static int teardown(void **state)
{
	(void)state;
	rig_destroy(&rig);
	return 0;
}

/* ---- what is expected ---- */

static void expect_none(struct rig_cq *cq)
{
	union ionic_rdma_cqe cqe;

	assert_false(rig_cq_poll(cq, &cqe));
}

static void expect_msn(struct rig_cq *cq, uint32_t msn, uint32_t status)
{
	union ionic_rdma_cqe cqe;

	assert_true(rig_cq_poll(cq, &cqe));
	assert_int_equal(cqe_type(&cqe), IONIC_RDMA_CQE_SEND_MSN);
	assert_int_equal(cqe_error(&cqe), status != 0);
	assert_int_equal(be32_get(cqe.msn.msn), msn);
	if (status)
		assert_int_equal(cqe_status(&cqe), status);
}

static void expect_npg(struct rig_cq *cq, uint64_t index, uint32_t status)
{
	union ionic_rdma_cqe cqe;

	assert_true(rig_cq_poll(cq, &cqe));
	assert_int_equal(cqe_type(&cqe), IONIC_RDMA_CQE_SEND_NPG);
	assert_int_equal(cqe_error(&cqe), status != 0);
	assert_true(le64_get(cqe.npg.wqe_id) == index);
	if (status)
		assert_int_equal(cqe_status(&cqe), status);
}

static union ionic_rdma_cqe expect_recv(struct rig_cq *cq, uint64_t wqe_id, uint32_t length)
{
	union ionic_rdma_cqe cqe;

	assert_true(rig_cq_poll(cq, &cqe));
	assert_int_equal(cqe_type(&cqe), IONIC_RDMA_CQE_RECV);
	assert_false(cqe_error(&cqe));
	assert_true(le64_get(cqe.recv.wqe_id) == wqe_id);
	assert_int_equal(cqe_status(&cqe), length);
	return cqe;
}

/* One marker for each queue, SQ first (5.6). */
static void expect_flush(struct rig_cq *cq, const struct rig_qp *qp)
{
	union ionic_rdma_cqe cqe;

	assert_true(rig_cq_poll(cq, &cqe));
	assert_int_equal(be32_get(cqe.any.qid_type_flags) & ~1u, qp->qpn << 8 | 3 << 5 | 2);
	assert_int_equal(cqe_status(&cqe), 4);
	assert_true(rig_cq_poll(cq, &cqe));
	assert_int_equal(be32_get(cqe.any.qid_type_flags) & ~1u, qp->qpn << 8 | 1 << 5 | 2);
	assert_int_equal(cqe_status(&cqe), 4);
	expect_none(cq);
}

/* ---- requests ---- */

static void post(struct rig_qp *qp, union ionic_rdma_wqe wqe)
{
	rig_post_send(qp, &wqe, 128);
}

static void post_write(struct rig_qp *qp, uint16_t flags)
{
	post(qp, rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, flags, &mr, 64, &mr));
}

static void post_local_inv(struct rig_qp *qp, uint16_t flags, uint32_t key)
{
	union ionic_rdma_wqe wqe = {
	        .any = {.op = IONIC_RDMA_WQE_LOCAL_INV, .flags = be16_make(flags)}};
	be32 raw = be32_make(key);

	memcpy(wqe.any.imm_data_key, &raw, 4);
	post(qp, wqe);
}

/* Makes region INDEX of fast registration and fills it by a request of QP. Returns its key. */
static uint32_t post_reg_mr(struct rig_qp *qp, uint32_t index, uint16_t flags)
{
	union ionic_rdma_admin create = {.create_mr = {.pd_id = le32_make(1),
	                                               .id_ver = le32_make(index << 8 | 1),
	                                               .flags = le16_make(0xa000)}};
	union ionic_rdma_wqe wqe = {.reg_mr = {.va = be64_make(0x1000),
	                                       .length = be64_make(100),
	                                       .dma_addr = be64_make(mr.addr),
	                                       .map_count = be32_make(1),
	                                       .flags = be16_make(7)}};
	be32 key = be32_make(index << 8 | 9);

	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &create, 45), 0);
	wqe.any.op = IONIC_RDMA_WQE_REG_MR;
	wqe.any.num_sge_key = 9;
	wqe.any.flags = be16_make(flags);
	memcpy(wqe.any.imm_data_key, &key, 4);
	post(qp, wqe);
	return index << 8 | 9;
}

/* ---- MSN and NPG (5.3) ---- */

/* One completion for a run of requests, with the number of all of them. */
static void test_msn_is_cumulative(void **state)
{
	(void)state;
	post_write(&a, 0);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 2, 0);
	expect_none(&cq_a);
	for (unsigned i = 0; i < 8; i++)
		post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 10, 0);
	expect_none(&cq_a);
}

/* Applications make room for signaled completions only. */
static void test_unsignaled_needs_none(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		post_write(&a, 0);
		rig_ring_send(&a);
	}
	expect_none(&cq_a);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 201, 0);
	expect_none(&cq_a);
}

/* Local requests have one each; one that is signaled waits for what stands before it. */
static void test_local_requests(void **state)
{
	uint32_t key;

	(void)state;
	key = post_reg_mr(&a, 5, 0);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_npg(&cq_a, 0, 0);
	expect_msn(&cq_a, 1, 0);
	expect_none(&cq_a);
	post_write(&a, 0);
	post_local_inv(&a, RIG_SIGNALED, key);
	rig_ring_send(&a);
	expect_msn(&cq_a, 2, 0);
	expect_npg(&cq_a, 3, 0);
	expect_none(&cq_a);
	/* an unsignaled one needs not, and the next signaled accounts for both */
	post_write(&a, 0);
	post_reg_mr(&a, 6, 0);
	post_write(&a, 0);
	rig_ring_send(&a);
	expect_npg(&cq_a, 5, 0);
	expect_none(&cq_a);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 5, 0);
	expect_none(&cq_a);
}

static void test_uc_counts_in_the_msn(void **state)
{
	(void)state;
	rig_post_recv(&b, 3, &mr, 4096, 100);
	rig_ring_recv(&b);
	post(&a, rig_wqe_send(IONIC_RDMA_WQE_SEND, RIG_SIGNALED, &mr, 0, 50));
	post(&a, rig_wqe_send(IONIC_RDMA_WQE_SEND, RIG_SIGNALED, &mr, 0, 50)); /* dropped */
	rig_ring_send(&a);
	expect_recv(&cq_b, 3, 50);
	expect_none(&cq_b);
	expect_msn(&cq_a, 2, 0);
	expect_none(&cq_a);
}

/* ---- errors ---- */

static void test_local_error_after_good_writes(void **state)
{
	union ionic_rdma_wqe bad = rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, 0, &mr, 64, &mr);

	(void)state;
	bad.bytes[32 + 15] ^= 1; /* lkey */
	post_write(&a, 0);
	post_write(&a, 0);
	post(&a, bad);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 2, 0);
	expect_npg(&cq_a, 2, RDMA_LOC_PROT_ERR);
	expect_flush(&cq_a, &a);
	expect_none(&cq_b);
}

static void test_remote_error_after_good_writes(void **state)
{
	union ionic_rdma_wqe bad = rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, 0, &mr, 64, &mr);
	struct rig_event event;

	(void)state;
	bad.rdma.rkey = be32_make(mr.key ^ 1);
	post_write(&a, 0);
	post_write(&a, 0);
	post(&a, bad);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 3, RDMA_REM_ACCESS_ERR);
	expect_flush(&cq_a, &a);
	expect_flush(&cq_b, &b);
	assert_true(rig_event(&rig, 1, &event)); /* the queue of the responder's half */
	assert_int_equal(event.type, 1);
	assert_int_equal(event.code, RDMA_EVENT_ACCESS_ERR);
	assert_int_equal(event.id, 8);
	assert_false(rig_event(&rig, 0, &event));
}

static void test_malformed(void **state)
{
	union ionic_rdma_wqe bad = {.any = {.op = 77}};

	(void)state;
	post_write(&a, 0);
	post(&a, bad);
	rig_ring_send(&a);
	expect_msn(&cq_a, 1, 0);
	expect_npg(&cq_a, 1, RDMA_LOC_QP_OP_ERR);
	expect_flush(&cq_a, &a);
}

static void test_refused_registration(void **state)
{
	(void)state;
	post_write(&a, 0);
	post_local_inv(&a, 0, 0x77777701);
	rig_ring_send(&a);
	expect_msn(&cq_a, 1, 0);
	expect_npg(&cq_a, 1, RDMA_MEM_MGMT_ERR);
	expect_flush(&cq_a, &a);
}

static void test_receive_too_small(void **state)
{
	union ionic_rdma_cqe cqe;

	(void)state;
	rig_post_recv(&b, 0x11, &mr, 4096, 63);
	rig_ring_recv(&b);
	post(&a, rig_wqe_send(IONIC_RDMA_WQE_SEND, 0, &mr, 0, 64));
	rig_ring_send(&a);
	expect_msn(&cq_a, 1, RDMA_REM_INV_REQ_ERR);
	expect_flush(&cq_a, &a);
	assert_true(rig_cq_poll(&cq_b, &cqe));
	assert_int_equal(cqe_type(&cqe), IONIC_RDMA_CQE_RECV);
	assert_true(cqe_error(&cqe));
	assert_int_equal(cqe_status(&cqe), RDMA_LOC_LEN_ERR);
	assert_true(le64_get(cqe.recv.wqe_id) == 0x11);
	expect_flush(&cq_b, &b);
}

/* A ring that cannot be read ends its queue pair, and no other. */
static void test_unreadable_ring(void **state)
{
	uint64_t before = rig_counter("ionic_wqe_fetch_error");
	struct ionic_qp *inside = rdma_qp_owner(rdma_qp_find(rig.guest.dev->rdma->engine, 2));
	struct rig_event event;

	(void)state;
	assert_non_null(inside->sq.ring.pages); /* of a process: 8 KiB in two pages */
	inside->sq.ring.pages[0] = 4096;
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	assert_int_equal(rig_counter("ionic_wqe_fetch_error"), before + 1);
	expect_flush(&cq_a, &a);
	assert_true(rig_event(&rig, 0, &event));
	assert_int_equal(event.code, RDMA_EVENT_QP_FATAL);
	post_write(&b, RIG_SIGNALED);
	assert_int_equal(rig_qp_state(&b, RDMA_QPS_RTS), 0);
}

/* ---- states (7.3, 9.1) ---- */

static void test_error_on_request(void **state)
{
	(void)state;
	post_write(&a, 0);
	rig_ring_send(&a);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_ERR), 0);
	expect_msn(&cq_a, 1, 0); /* it did complete */
	expect_flush(&cq_a, &a);
	/* again: accepted, and no second marker */
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_ERR), 0);
	expect_none(&cq_a);
}

static void ring_both(const struct rig_qp *qp)
{
	rig_doorbell(&rig, qp->dbid, IONIC_DB_RDMA_SQ, qp->qpn, 0, qp->sq.prod);
	rig_doorbell(&rig, qp->dbid, IONIC_DB_RDMA_RQ, qp->qpn, 0, qp->rq.prod);
}

/* What is posted in ERR: a marker for each queue and turn, and none for a QP that is gone. */
static void test_posted_in_error(void **state)
{
	(void)state;
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_ERR), 0);
	expect_flush(&cq_a, &a);
	for (unsigned i = 0; i < 3; i++) {
		post_write(&a, RIG_SIGNALED);
		rig_post_recv(&a, 0, &mr, 0, 0);
		ring_both(&a);
		ring_both(&a);
		fake_run(&rig.guest);
		expect_flush(&cq_a, &a);
	}
	ring_both(&a);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_RESET), 0);
	expect_flush(&cq_a, &a); /* before the command that ends it */
	a.sq.prod = a.rq.prod = 0;
	rig_qp_connect(&a, &b);
	expect_none(&cq_a);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_ERR), 0);
	expect_flush(&cq_a, &a);
	ring_both(&a);
	ring_both(&b);
	ionic_rdma_clear(rig.guest.dev);
	fake_run(&rig.guest);
	expect_none(&cq_a);
}

static void test_reset_starts_anew(void **state)
{
	(void)state;
	post_write(&a, RIG_SIGNALED);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 2, 0);
	rig_post_recv(&a, 1, &mr, 0, 64);
	rig_ring_recv(&a);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_RESET), 0);
	post_write(&a, RIG_SIGNALED); /* no state for it */
	rig_ring_send(&a);
	a.sq.prod = 0;
	assert_int_equal(rig_qp_state(&b, RDMA_QPS_RESET), 0);
	rig_qp_connect(&a, &b);
	rig_qp_connect(&b, &a);
	expect_none(&cq_a);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_msn(&cq_a, 1, 0);
	/* the receive of the old life is gone */
	rig_post_recv(&a, 7, &mr, 4096, 64);
	rig_ring_recv(&a);
	post(&b, rig_wqe_send(IONIC_RDMA_WQE_SEND, 0, &mr, 0, 10));
	rig_ring_send(&b);
	expect_recv(&cq_a, 7, 10);
}

/* Posts in SQD are remembered (7.3), and the drained queue has its event. */
static void test_sqd(void **state)
{
	const struct rdma_qp_attr sqd = {.state = RDMA_QPS_SQD, .sqd_notify = true, .access = 7};
	struct rig_event event;

	(void)state;
	assert_int_equal(rig_qp_modify(&a, RDMA_ATTR_STATE | RDMA_ATTR_SQD_NOTIFY, &sqd), 0);
	fake_run(&rig.guest);
	assert_true(rig_event(&rig, 0, &event));
	assert_int_equal(event.code, RDMA_EVENT_SQ_DRAINED);
	assert_int_equal(event.id, 2);
	post_write(&a, RIG_SIGNALED);
	rig_ring_send(&a);
	expect_none(&cq_a);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_RTS), 0);
	fake_run(&rig.guest);
	expect_msn(&cq_a, 1, 0);
}

static void test_destroy_is_silent(void **state)
{
	(void)state;
	rig_post_recv(&b, 1, &mr, 0, 64);
	rig_ring_recv(&b);
	assert_int_equal(rig_qp_destroy(&b), 0);
	expect_none(&cq_b);
	post(&a, rig_wqe_send(IONIC_RDMA_WQE_SEND, 0, &mr, 0, 10));
	rig_ring_send(&a);
	rig_ring_recv(&b);  /* of nobody */
	expect_none(&cq_a); /* its timeout is still to come */
}

/* ---- doorbells (7.3) ---- */

static void test_doorbells(void **state)
{
	uint64_t page = rig_counter("ionic_rdma_bad_page");
	uint64_t sq = rig_counter("ionic_sq_bad_index"), rq = rig_counter("ionic_rq_bad_index");

	(void)state;
	post_write(&a, RIG_SIGNALED);
	for (unsigned other = 0; other < 4; other++)
		if (other != 1) {
			rig_doorbell(&rig, (uint16_t)other, IONIC_DB_RDMA_SQ, 2, 0, 1);
			rig_doorbell(&rig, (uint16_t)other, IONIC_DB_RDMA_RQ, 2, 0, 1);
		}
	rig_doorbell(&rig, 1023, IONIC_DB_RDMA_SQ, 2, 0, 1);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_SQ, 2, 0, 64);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_RQ, 2, 0, 0xffff);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_SQ, 2, 1, 1);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_SQ, 3, 0, 1);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_SQ, 0xffffff, 0, 1);
	fake_run(&rig.guest);
	expect_none(&cq_a);
	assert_int_equal(rig_counter("ionic_rdma_bad_page"), page + 7);
	assert_int_equal(rig_counter("ionic_sq_bad_index"), sq + 1);
	assert_int_equal(rig_counter("ionic_rq_bad_index"), rq + 1);
	rig_ring_send(&a);
	expect_msn(&cq_a, 1, 0);
}

/* The latest index wins, and nothing is executed twice. */
static void test_doorbells_merge(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 10; i++) {
		post_write(&a, RIG_SIGNALED);
		rig_doorbell(&rig, 1, IONIC_DB_RDMA_SQ, 2, 0, i);
	}
	fake_run(&rig.guest);
	expect_msn(&cq_a, 10, 0);
	expect_none(&cq_a);
}

/* ---- receives ---- */

/* The token comes back in all its bits (5.4); immediate data as it stood in memory. */
static void test_receive_completion(void **state)
{
	union ionic_rdma_wqe wqe = rig_wqe_send(IONIC_RDMA_WQE_SEND_IMM, RIG_SIGNALED, &mr, 0, 40);
	union ionic_rdma_cqe cqe;

	(void)state;
	memset(fake_ptr(&rig.guest, mr.addr, 40), 0x5a, 40);
	memcpy(wqe.any.imm_data_key, "\x11\x22\x33\x44", 4);
	rig_post_recv(&b, 0x8877665544332211, &mr, 4096, 64);
	rig_ring_recv(&b);
	post(&a, wqe);
	rig_ring_send(&a);
	cqe = expect_recv(&cq_b, 0x8877665544332211, 40);
	assert_int_equal(be32_get(cqe.recv.src_qpn_op), 2u << 24 | 2);
	assert_memory_equal(cqe.recv.imm_data_rkey, "\x11\x22\x33\x44", 4);
	assert_memory_equal(fake_ptr(&rig.guest, mr.addr + 4096, 41),
	                    "\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a"
	                    "\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a"
	                    "\x5a\x5a\x5a\x5a\x5a\x5a\0",
	                    41);
	expect_msn(&cq_a, 1, 0);
}

static void test_write_imm_takes_a_receive(void **state)
{
	union ionic_rdma_wqe wqe =
	        rig_wqe_rdma(IONIC_RDMA_WQE_WRITE_IMM, RIG_SIGNALED, &mr, 64, &mr);
	union ionic_rdma_cqe cqe;

	(void)state;
	wqe.rdma.va = be64_make(mr.addr + 8192);
	rig_post_recv(&b, 5, &mr, 4096, 0);
	rig_ring_recv(&b);
	post(&a, wqe);
	rig_ring_send(&a);
	cqe = expect_recv(&cq_b, 5, 64);
	assert_int_equal(be32_get(cqe.recv.src_qpn_op), 3u << 24 | 2);
	expect_msn(&cq_a, 1, 0);
}

static void test_send_with_invalidate(void **state)
{
	uint32_t key = post_reg_mr(&b, 5, RIG_SIGNALED);
	union ionic_rdma_wqe wqe = rig_wqe_send(IONIC_RDMA_WQE_SEND_INV, RIG_SIGNALED, &mr, 0, 1);
	be32 raw = be32_make(key);
	union ionic_rdma_cqe cqe;

	(void)state;
	rig_ring_send(&b);
	expect_npg(&cq_b, 0, 0);
	memcpy(wqe.any.imm_data_key, &raw, 4);
	rig_post_recv(&b, 3, &mr, 4096, 16);
	rig_ring_recv(&b);
	post(&a, wqe);
	rig_ring_send(&a);
	cqe = expect_recv(&cq_b, 3, 1);
	assert_int_equal(be32_get(cqe.recv.src_qpn_op), 1u << 24 | 2);
	assert_memory_equal(cqe.recv.imm_data_rkey, &raw, 4);
	expect_msn(&cq_a, 1, 0);
}

/* No receive is posted: the message waits for one (9.2). */
static void test_late_receive(void **state)
{
	(void)state;
	post(&a, rig_wqe_send(IONIC_RDMA_WQE_SEND, RIG_SIGNALED, &mr, 0, 10));
	rig_ring_send(&a);
	expect_none(&cq_a);
	rig_post_recv(&b, 1, &mr, 4096, 16);
	rig_ring_recv(&b);
	expect_recv(&cq_b, 1, 10);
	expect_msn(&cq_a, 1, 0);
}

static void test_read_and_atomics(void **state)
{
	union ionic_rdma_wqe add = {.atomic = {.swap_add = be64_make(5),
	                                       .sge = {.va = be64_make(mr.addr + 64),
	                                               .len = be32_make(8),
	                                               .lkey = be32_make(mr.key)}}};
	uint64_t *word = fake_ptr(&rig.guest, mr.addr + 4096, 8);
	uint64_t *old = fake_ptr(&rig.guest, mr.addr + 64, 8);
	union ionic_rdma_wqe read = rig_wqe_rdma(IONIC_RDMA_WQE_READ, RIG_SIGNALED, &mr, 8, &mr);

	(void)state;
	*word = 1000;
	read.rdma.va = be64_make(mr.addr + 4096);
	post(&a, read);
	add.any.op = IONIC_RDMA_WQE_FETCH_ADD;
	add.any.num_sge_key = 1;
	add.any.flags = be16_make(RIG_SIGNALED);
	add.rdma.va = be64_make(mr.addr + 4096);
	add.rdma.rkey = be32_make(mr.key);
	post(&a, add);
	rig_ring_send(&a);
	expect_msn(&cq_a, 2, 0);
	assert_true(*word == 1005 && *old == 1000);
	assert_memory_equal(fake_ptr(&rig.guest, mr.addr, 2), "\xe8\x03", 2);
}

/* A type 2 window: bound, used by its rkey, invalidated. */
static void test_memory_window(void **state)
{
	union ionic_rdma_admin create = {.create_mr = {.pd_id = le32_make(1),
	                                               .id_ver = le32_make(6 << 8 | 1),
	                                               .flags = le16_make(0xe000)}};
	union ionic_rdma_wqe bind = {.bind_mw = {.va = be64_make(mr.addr + 4096),
	                                         .length = be64_make(64),
	                                         .lkey = be32_make(mr.key),
	                                         .flags = be16_make(0xc006)}};
	struct rig_mr window = {.addr = mr.addr + 4096, .size = 64, .key = 6 << 8 | 0x33};
	be32 old = be32_make(6 << 8 | 1);

	(void)state;
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_CREATE_MR, &create, 45), 0);
	bind.any.op = IONIC_RDMA_WQE_BIND_MW;
	bind.any.num_sge_key = 0x33;
	bind.any.flags = be16_make(RIG_SIGNALED);
	memcpy(bind.any.imm_data_key, &old, 4);
	post(&b, bind);
	rig_ring_send(&b);
	expect_npg(&cq_b, 0, 0);
	post(&a, rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, RIG_SIGNALED, &mr, 64, &window));
	rig_ring_send(&a);
	expect_msn(&cq_a, 1, 0);
	post_local_inv(&b, RIG_SIGNALED, window.key);
	rig_ring_send(&b);
	expect_npg(&cq_b, 1, 0);
	post(&a, rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, RIG_SIGNALED, &mr, 64, &window));
	rig_ring_send(&a);
	expect_msn(&cq_a, 2, RDMA_REM_ACCESS_ERR);
}

/* ---- datagrams (9.5) ---- */

static union ionic_rdma_wqe datagram(uint16_t flags, uint32_t qpn, uint32_t qkey, uint32_t size)
{
	union ionic_rdma_wqe wqe = rig_wqe_send(IONIC_RDMA_WQE_SEND, flags, &mr, 0, size);

	wqe.ud.ah_id = be32_make(7);
	wqe.ud.dest_qpn = be32_make(qpn);
	wqe.ud.dest_qkey = be32_make(qkey);
	return wqe;
}

static void test_datagram(void **state)
{
	const uint8_t *area = fake_ptr(&rig.guest, mr.addr + 4096, 60);
	static const uint8_t zeros[20];
	union ionic_rdma_cqe cqe;

	(void)state;
	assert_int_equal(rig_ah_create(&rig, 7, 1), 0);
	memcpy(fake_ptr(&rig.guest, mr.addr, 20), "payload of 20 bytes.", 20);
	rig_post_recv(&b, 11, &mr, 4096, 296);
	rig_post_recv(&b, 12, &mr, 8192, 296);
	rig_ring_recv(&b);
	post(&a, datagram(0, 8, 0x11111111, 20));
	post(&a, datagram(0, 8, 0x22222222, 20));            /* another key: dropped */
	post(&a, datagram(RIG_SIGNALED, 8, 0x80000000, 20)); /* the sender's own */
	rig_ring_send(&a);
	for (unsigned i = 0; i < 3; i++)
		expect_npg(&cq_a, i, 0); /* signaled or not */
	expect_none(&cq_a);
	cqe = expect_recv(&cq_b, 11, 60);
	assert_int_equal(be32_get(cqe.recv.src_qpn_op), 1u << 31 | 2);
	assert_memory_equal(cqe.recv.src_mac, fake_mac, 6);
	assert_int_equal(be16_get(cqe.recv.vlan_tag), 0);
	assert_memory_equal(area, zeros, 20);
	assert_int_equal(area[20], 0x45);
	assert_memory_equal(area + 40, "payload of 20 bytes.", 20);
	expect_recv(&cq_b, 12, 60);
	expect_none(&cq_b);
}

/* What does not fit the MTU of the link (11) is sent nowhere. */
static void test_datagram_mtu(void **state)
{
	union ionic_cmd cmd = {.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                    .attr = IONIC_LIF_ATTR_MTU,
	                                    .mtu = le32_make(2048 + 96)}};

	(void)state;
	assert_int_equal(rig_ah_create(&rig, 7, 1), 0);
	rig_post_recv(&b, 1, &mr, 0, 4096);
	rig_post_recv(&b, 2, &mr, 0, 4096);
	rig_ring_recv(&b);
	post(&a, datagram(0, 8, 0x11111111, 1024));
	post(&a, datagram(0, 8, 0x11111111, 1025));
	rig_ring_send(&a);
	expect_recv(&cq_b, 1, 1064);
	expect_none(&cq_b);
	assert_int_equal(fake_admin(&rig.guest, &cmd, NULL), 0);
	post(&a, datagram(0, 8, 0x11111111, 2049));
	post(&a, datagram(0, 8, 0x11111111, 2048));
	rig_ring_send(&a);
	expect_recv(&cq_b, 2, 2088);
	for (unsigned i = 0; i < 4; i++)
		expect_npg(&cq_a, i, 0);
}

/* Nobody, too long for the buffer, no buffer: sent, and that is all. */
static void test_datagrams_that_are_lost(void **state)
{
	(void)state;
	assert_int_equal(rig_ah_create(&rig, 7, 1), 0);
	post(&a, datagram(RIG_SIGNALED, 99, 0x11111111, 20));
	post(&a, datagram(RIG_SIGNALED, 8, 0x11111111, 20));
	rig_ring_send(&a);
	rig_post_recv(&b, 1, &mr, 4096, 59);
	rig_ring_recv(&b);
	post(&a, datagram(RIG_SIGNALED, 8, 0x11111111, 20));
	rig_ring_send(&a);
	for (unsigned i = 0; i < 3; i++)
		expect_npg(&cq_a, i, 0);
	expect_none(&cq_b);
	post(&a, datagram(RIG_SIGNALED, 8, 0x11111111, 19));
	rig_ring_send(&a);
	expect_recv(&cq_b, 1, 59);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define RC(name) cmocka_unit_test_setup_teardown(name, setup_rc, teardown)
#define UD(name) cmocka_unit_test_setup_teardown(name, setup_ud, teardown)
	        RC(test_msn_is_cumulative),
	        RC(test_unsignaled_needs_none),
	        RC(test_local_requests),
	        cmocka_unit_test_setup_teardown(test_uc_counts_in_the_msn, setup_uc, teardown),
	        RC(test_local_error_after_good_writes),
	        RC(test_remote_error_after_good_writes),
	        RC(test_malformed),
	        RC(test_refused_registration),
	        RC(test_receive_too_small),
	        RC(test_unreadable_ring),
	        RC(test_error_on_request),
	        RC(test_posted_in_error),
	        RC(test_reset_starts_anew),
	        RC(test_sqd),
	        RC(test_destroy_is_silent),
	        RC(test_doorbells),
	        RC(test_doorbells_merge),
	        RC(test_receive_completion),
	        RC(test_write_imm_takes_a_receive),
	        RC(test_send_with_invalidate),
	        RC(test_late_receive),
	        RC(test_read_and_atomics),
	        RC(test_memory_window),
	        UD(test_datagram),
	        UD(test_datagram_mtu),
	        UD(test_datagrams_that_are_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
