// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Completion and event queues (spec ionic-rdma 4, 5.7): colors, arming, solicited events, overflow,
 * rings that vanish, event queues that are not read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rdma_rig.h"

static struct rdma_rig rig;
static struct rig_cq cq;
static struct rig_qp a, b;
static struct rig_mr mr;

/* Two queue pairs of process 1, connected with each other. */
static int setup_with(uint16_t dbid)
{
	rig_create(&rig);
	assert_int_equal(rig_cq_create(&rig, &cq, 9, 5, dbid), 0);
	assert_int_equal(rig_qp_create(&rig, &a, &cq, 2, 0, dbid), 0);
	assert_int_equal(rig_qp_create(&rig, &b, &cq, 8, 0, dbid), 0);
	rig_qp_connect(&a, &b);
	rig_qp_connect(&b, &a);
	rig_mr_create(&rig, &mr, 1, 1, 2 * 4096, RIG_ALL_ACCESS);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_with(1);
}

static int setup_kernel(void **state)
{
	(void)state;
	return setup_with(0);
}

static int teardown(void **state)
{
	(void)state;
	rig_destroy(&rig);
	return 0;
}

/* A message from A to B: one completion for the receiver, one for the sender if signaled. */
static void transfer(uint16_t flags)
{
	union ionic_rdma_wqe wqe = rig_wqe_send(IONIC_RDMA_WQE_SEND, flags, &mr, 0, 16);

	rig_post_recv(&b, 77, &mr, 4096, 64);
	rig_ring_recv(&b);
	rig_post_send(&a, &wqe, 64);
	rig_ring_send(&a);
}

static unsigned poll_all(void)
{
	union ionic_rdma_cqe cqe;
	unsigned count = 0;

	while (rig_cq_poll(&cq, &cqe))
		count++;
	return count;
}

static bool notified(void)
{
	struct rig_event event;

	if (!rig_event(&rig, 3, &event))
		return false;
	assert_int_equal(event.type, 0);
	assert_int_equal(event.code, 0);
	assert_int_equal(event.id, 9);
	return true;
}

/* A process that has not rung a doorbell yet is told of its first completion (5.7), the kernel is
 * not. */
static void test_armed_at_first(void **state)
{
	(void)state;
	transfer(0);
	assert_true(notified());
	transfer(0);
	assert_false(notified());
}

static void test_kernel_not_armed_at_first(void **state)
{
	(void)state;
	transfer(0);
	assert_false(notified());
}

static void test_arm_any(void **state)
{
	uint64_t msix = rig.guest.msix[RIG_EQ_VECTOR + 3];

	(void)state;
	rig_cq_arm(&cq, false);
	assert_false(notified());
	transfer(0);
	assert_true(notified());
	assert_false(notified());
	assert_int_equal(rig.guest.msix[RIG_EQ_VECTOR + 3], msix + 1);
	transfer(0);
	assert_false(notified());
}

/* Armed with entries that have not been consumed: the event is due at once (5.7). */
static void test_arm_with_unseen(void **state)
{
	(void)state;
	transfer(0);
	rig_cq_arm(&cq, false);
	assert_true(notified());
	assert_int_equal(poll_all(), 1);
	rig_cq_consume(&cq);
	rig_cq_arm(&cq, false);
	assert_false(notified());
}

static void test_arm_solicited(void **state)
{
	(void)state;
	rig_cq_arm(&cq, true);
	transfer(0);
	assert_false(notified());
	transfer(RIG_SOLICITED);
	assert_true(notified());
	/* unseen and solicited: due at once */
	rig_cq_arm(&cq, true);
	assert_true(notified());
	poll_all();
	rig_cq_consume(&cq);
	rig_cq_arm(&cq, true);
	assert_false(notified());
	/* unseen, but not solicited */
	transfer(0);
	rig_cq_arm(&cq, true);
	assert_false(notified());
	/* an error is what everybody waits for */
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_ERR), 0);
	assert_true(notified());
}

/* A consumed solicited entry in front of an unseen plain one. */
static void test_solicited_is_forgotten_when_consumed(void **state)
{
	union ionic_rdma_cqe cqe;

	(void)state;
	transfer(RIG_SOLICITED);
	transfer(0);
	assert_true(rig_cq_poll(&cq, &cqe));
	rig_cq_consume(&cq);
	rig_cq_arm(&cq, true);
	assert_false(notified());
}

/* Many laps: colors, and slots in two pages of the application. */
static void test_laps(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		transfer(i % 3 == 0 ? RIG_SIGNALED : 0);
		assert_int_equal(poll_all(), i % 3 == 0 ? 2 : 1);
		rig_cq_consume(&cq);
	}
}

static void test_bad_doorbells(void **state)
{
	uint64_t page = rig_counter("ionic_rdma_bad_page");
	uint64_t index = rig_counter("ionic_cq_bad_index");
	uint64_t ring = rig_counter("ionic_cq_bad_ring"), qid = rig_counter("ionic_rdma_bad_qid");

	(void)state;
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_CQ, 9, 0, 1);  /* nothing is there */
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_CQ, 9, 0, 32); /* beyond the ring */
	assert_int_equal(rig_counter("ionic_cq_bad_index"), index + 2);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_CQ, 9, 3, 1);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_CQ, 9, 7, 1);
	assert_int_equal(rig_counter("ionic_cq_bad_ring"), ring + 2);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_CQ, 10, 1, 1);
	rig_doorbell(&rig, 1, IONIC_DB_RDMA_CQ, 0xffffff, 1, 1);
	assert_int_equal(rig_counter("ionic_rdma_bad_qid"), qid + 2);
	transfer(0);
	assert_true(notified());
	rig_doorbell(&rig, 2, IONIC_DB_RDMA_CQ, 9, 1, 1); /* another process */
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_CQ, 9, 1, 1);
	fake_run(&rig.guest);
	assert_int_equal(rig_counter("ionic_rdma_bad_page"), page + 2);
	assert_false(notified());
}

/* ---- failures ---- */

static void expect_cq_error(void)
{
	struct rig_event event;

	assert_true(rig_event(&rig, 3, &event));
	if (event.code == 0) /* armed at first */
		assert_true(rig_event(&rig, 3, &event));
	assert_int_equal(event.type, 0);
	assert_int_equal(event.code, 8);
	assert_int_equal(event.id, 9);
	assert_false(rig_event(&rig, 3, &event));
	/* both queue pairs have ended, each with an event on its half's queue */
	assert_true(rig_event(&rig, 0, &event));
	assert_int_equal(event.type, 1);
	assert_int_equal(event.code, 8);
	assert_int_equal(event.id, 2);
	assert_true(rig_event(&rig, 1, &event));
	assert_int_equal(event.id, 8);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_RTS), IONIC_RDMA_BAD_STATE);
	assert_int_equal(rig_qp_state(&b, RDMA_QPS_RTS), IONIC_RDMA_BAD_STATE);
}

static void test_overflow(void **state)
{
	uint64_t before = rig_counter("ionic_cq_overflow");

	(void)state;
	for (unsigned i = 0; i < 31; i++)
		transfer(0);
	assert_int_equal(rig_counter("ionic_cq_overflow"), before);
	transfer(0);
	assert_int_equal(rig_counter("ionic_cq_overflow"), before + 1);
	assert_int_equal(poll_all(), 31);
	expect_cq_error();
	/* it stays so, also when there is room again */
	rig_cq_consume(&cq);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_RESET), 0);
	assert_int_equal(rig_qp_state(&a, RDMA_QPS_ERR), 0);
	assert_int_equal(poll_all(), 0);
	assert_int_equal(rig_counter("ionic_cq_overflow"), before + 1);
}

static void test_ring_out_of_reach(void **state)
{
	uint64_t before = rig_counter("ionic_cq_unreachable");
	struct ionic_cq *inside = ionic_cq_find(rig.guest.dev->rdma, 9);

	(void)state;
	inside->ring.base = 8;
	transfer(0);
	assert_int_equal(rig_counter("ionic_cq_unreachable"), before + 1);
	expect_cq_error();
}

/* ---- event queues ---- */

/* 15 entries of 16 may be unseen; the rest waits until the handler is done, and none is lost. */
static void test_event_queue_full(void **state)
{
	uint64_t full = rig_counter("ionic_eq_full");
	unsigned events = 0;

	(void)state;
	fake_write(&rig.guest, IONIC_REG_INTR_CONTROL + 32 * (RIG_EQ_VECTOR + 3) + 4, 1, 4);
	rig.guest.dev->intr[RIG_EQ_VECTOR + 3].credits = 0;
	rig.guest.dev->intr[RIG_EQ_VECTOR + 3].since = 0;
	transfer(0);
	for (unsigned i = 0; i < 40; i++)
		rig_cq_arm(&cq, false);
	assert_true(rig_counter("ionic_eq_full") > full);
	while (notified())
		events++;
	assert_int_equal(events, 15);
	rig_unmask(&rig, 3);
	fake_run(&rig.guest);
	assert_false(notified()); /* nothing was announced before: they may all be unseen */
	rig_unmask(&rig, 3);
	fake_run(&rig.guest);
	assert_true(notified());
	assert_false(notified());
	rig_unmask(&rig, 3);
	rig_cq_arm(&cq, false);
	assert_true(notified());
}

/* An event queue that is gone takes nothing with it. */
static void test_event_ring_out_of_reach(void **state)
{
	uint64_t before = rig_counter("ionic_eq_lost");

	(void)state;
	rig.guest.dev->rdma->eqs[3].base = 8;
	transfer(0);
	assert_int_equal(rig_counter("ionic_eq_lost"), before + 1);
	assert_int_equal(poll_all(), 1);
}

/* Memory that is reached by messages only works as well. */
static void test_memory_without_descriptor(void **state)
{
	(void)state;
	rig.guest.messages_only = true;
	transfer(RIG_SIGNALED);
	assert_int_equal(poll_all(), 2);
	assert_true(notified());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(test_armed_at_first),
	        cmocka_unit_test_setup_teardown(test_kernel_not_armed_at_first, setup_kernel,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_arm_any, setup_kernel, teardown),
	        cmocka_unit_test_setup_teardown(test_arm_with_unseen, setup_kernel, teardown),
	        cmocka_unit_test_setup_teardown(test_arm_solicited, setup_kernel, teardown),
	        cmocka_unit_test_setup_teardown(test_solicited_is_forgotten_when_consumed,
	                                        setup_kernel, teardown),
	        TEST(test_laps),
	        TEST(test_bad_doorbells),
	        TEST(test_overflow),
	        TEST(test_ring_out_of_reach),
	        TEST(test_event_queue_full),
	        TEST(test_event_ring_out_of_reach),
	        TEST(test_memory_without_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
