/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of a QP: which transitions there are, what works in each, drain, reset, and the timer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "verbs.h"

#define PD  1
#define ALL 0xf

struct pair {
	struct nic *nic;
	struct test_qp *a, *b;
	struct test_mr mr;
	struct rdma_wr write, send;
};

static struct pair pair_new(void)
{
	struct pair pair = {.nic = nic_new("loopback")};

	pair.a = qp_new(pair.nic, RDMA_QP_RC, PD);
	pair.b = qp_new(pair.nic, RDMA_QP_RC, PD);
	pair.mr = mr_new(pair.nic, PD, 0x1000, 8 << 20, ALL);
	pair.write = wr_rdma(RDMA_WRITE, sge_of(&pair.mr, 0, 8), pair.mr.va + 4096, pair.mr.key);
	pair.send = wr_send(RDMA_SEND, sge_of(&pair.mr, 0, 8));
	return pair;
}

static void pair_free(struct pair *pair)
{
	qp_free(pair->a);
	qp_free(pair->b);
	nic_free(pair->nic);
}

/* Brings a fresh QP to STATE by legal steps. */
static void bring(struct test_qp *qp, enum rdma_qp_state state)
{
	static const enum rdma_qp_state path[] = {RDMA_QPS_INIT, RDMA_QPS_RTR, RDMA_QPS_RTS,
	                                          RDMA_QPS_SQD};

	assert_int_equal(qp_state(qp, RDMA_QPS_RESET), 0);
	if (state == RDMA_QPS_ERR)
		assert_int_equal(qp_state(qp, RDMA_QPS_ERR), 0);
	else
		for (size_t i = 0; i < ARRAY_SIZE(path) && path[i] <= state; i++)
			assert_int_equal(qp_state(qp, path[i]), 0);
	assert_int_equal(rdma_qp_state(qp->qp), state);
	qp->flushes = 0;
}

static void transitions(void **state)
{
	/* rows: from; letters: to RESET INIT RTR RTS SQD SQE ERR */
	static const char *const legal[] = {
	        [RDMA_QPS_RESET] = "yy....y", [RDMA_QPS_INIT] = "yyy...y",
	        [RDMA_QPS_RTR] = "y..y..y",   [RDMA_QPS_RTS] = "y..yy.y",
	        [RDMA_QPS_SQD] = "y..yy.y",   [RDMA_QPS_ERR] = "y.....y",
	};
	struct nic *nic = nic_new("loopback");
	struct test_qp *qp = qp_new(nic, RDMA_QP_RC, PD);

	(void)state;
	for (unsigned from = 0; from < RDMA_QP_STATES; from++) {
		if (from == RDMA_QPS_SQE) /* nobody gets there */
			continue;
		for (unsigned to = 0; to < RDMA_QP_STATES; to++) {
			bring(qp, from);
			int result = qp_state(qp, to);

			if (result != (legal[from][to] == 'y' ? 0 : -EPROTO))
				fail_msg("%s to %s: %d", rdma_qp_state_name(from),
				         rdma_qp_state_name(to), result);
			assert_int_equal(rdma_qp_state(qp->qp), result ? from : to);
			assert_int_equal(qp->flushes, to == RDMA_QPS_ERR && from != to);
		}
	}
	struct rdma_qp_attr attr = {.state = RDMA_QPS_INIT, .cur_state = RDMA_QPS_INIT};

	bring(qp, RDMA_QPS_RESET);
	assert_int_equal(rdma_qp_modify(qp->qp, RDMA_ATTR_STATE | RDMA_ATTR_CUR_STATE, &attr),
	                 -EPROTO);
	qp_free(qp);
	nic_free(nic);
}

static void attributes(void **state)
{
	static const struct {
		uint32_t bit;
		struct rdma_qp_attr attr;
	} bad[] = {
	        {RDMA_ATTR_STATE, {.state = RDMA_QP_STATES}},
	        {RDMA_ATTR_MTU, {.mtu_shift = 7}},
	        {RDMA_ATTR_MTU, {.mtu_shift = 13}},
	        {RDMA_ATTR_TIMEOUT, {.timeout = 32}},
	        {RDMA_ATTR_RETRY, {.retry_count = 8}},
	        {RDMA_ATTR_RNR_RETRY, {.rnr_retry = 8}},
	        {RDMA_ATTR_RNR_TIMER, {.rnr_timer = 32}},
	        {RDMA_ATTR_SQ_PSN, {.sq_psn = 1 << 24}},
	        {RDMA_ATTR_RQ_PSN, {.rq_psn = 1 << 24}},
	        {RDMA_ATTR_DEST_QPN, {.dest_qpn = 1 << 24}},
	};
	struct pair pair = pair_new();
	struct rdma_qp_attr garbage, attr;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(rdma_qp_modify(pair.a->qp, bad[i].bit, &bad[i].attr), -EINVAL);

	/* fields without their bit are garbage and are not looked at */
	memset(&garbage, 0xff, sizeof(garbage));
	garbage.state = RDMA_QPS_INIT;
	assert_int_equal(rdma_qp_modify(pair.a->qp, RDMA_ATTR_STATE, &garbage), 0);
	rdma_qp_query(pair.a->qp, &attr);
	assert_int_equal(attr.state, RDMA_QPS_INIT);
	assert_int_equal(attr.access, 0);
	assert_int_equal(attr.timeout, 0);

	/* what is set is reported, and PSNs move with the messages */
	qp_state(pair.a, RDMA_QPS_RESET);
	qp_connect(pair.a, pair.b);
	rdma_qp_query(pair.a->qp, &attr);
	assert_int_equal(attr.state, RDMA_QPS_RTS);
	assert_int_equal(attr.rnr_timer, 12);
	assert_int_equal(attr.dest_qpn, pair.b->qpn);
	assert_int_equal(attr.av.ip_version, 4);
	uint32_t psn = attr.sq_psn;

	pair.write.length = pair.write.sge[0].length = 2049; /* three packets of 1024 */
	qp_post_send(pair.a, &pair.write);
	qp_expect_send(pair.a, RDMA_OK);
	rdma_qp_query(pair.a->qp, &attr);
	assert_int_equal(attr.sq_psn, (psn + 3) & 0xffffff);
	rdma_qp_query(pair.b->qp, &attr);
	assert_int_equal(attr.rq_psn, (psn + 3) & 0xffffff);
	assert_int_equal(rdma_qp_msn(pair.b->qp), 1);
	qp_state(pair.b, RDMA_QPS_RESET);
	rdma_qp_query(pair.b->qp, &attr);
	assert_int_equal(rdma_qp_msn(pair.b->qp), 0);
	assert_int_equal(attr.dest_qpn, 0);
	assert_int_equal(attr.access, 0);
	pair_free(&pair);
}

/* PSNs wrap at 24 bits. */
static void psn_wraps(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = qp_attr(pair.a, pair.b);

	(void)state;
	attr.sq_psn = 0xfffffe;
	qp_up(pair.a, &attr);
	attr = qp_attr(pair.b, pair.a);
	attr.rq_psn = 0xfffffe;
	qp_up(pair.b, &attr);
	for (int i = 0; i < 5; i++) {
		qp_post_send(pair.a, &pair.write);
		qp_expect_send(pair.a, RDMA_OK);
	}
	rdma_qp_query(pair.a->qp, &attr);
	assert_int_equal(attr.sq_psn, 3);
	pair_free(&pair);
}

/* The first message in RTR raises COMM_EST, once; sends posted before RTS wait for it. */
static void communication_established(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = qp_attr(pair.b, pair.a);

	(void)state;
	qp_state(pair.b, RDMA_QPS_INIT);
	rdma_qp_modify(pair.b->qp, QP_ATTR_ALL, &attr);
	qp_post_recv_sge(pair.b, 1, sge_of(&pair.mr, 0, 100));
	qp_state(pair.b, RDMA_QPS_RTR);
	attr = qp_attr(pair.a, pair.b);
	qp_up(pair.a, &attr);
	qp_post_send(pair.a, &pair.send);
	qp_post_send(pair.a, &pair.write);
	qp_expect_send(pair.a, RDMA_OK);
	qp_expect_send(pair.a, RDMA_OK);
	qp_expect_recv(pair.b, RDMA_OK);
	assert_int_equal(pair.b->events[RDMA_EVENT_COMM_EST], 1);

	qp_post_send(pair.b, &pair.write);
	nic_spin(pair.nic, 3);
	assert_int_equal(pair.b->sq_head, 0);
	qp_state(pair.b, RDMA_QPS_RTS);
	qp_expect_send(pair.b, RDMA_OK);
	pair_free(&pair);
}

/* SQD: what has begun ends, then the event; posts wait for RTS; the peer is still answered. */
static void drain(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = {.state = RDMA_QPS_SQD, .sqd_notify = true};
	struct rdma_wr big = pair.write;

	(void)state;
	qp_connect(pair.a, pair.b);
	big.length = big.sge[0].length = 3 << 20;
	big.remote.va = pair.mr.va + (4 << 20);
	qp_put_send(pair.a, &big);
	qp_put_send(pair.a, &pair.write);
	rdma_qp_kick(pair.a->qp);
	nic_spin(pair.nic, 1); /* in the middle of the first */
	assert_int_equal(pair.a->send_wcs, 0);
	assert_int_equal(rdma_qp_modify(pair.a->qp, RDMA_ATTR_STATE | RDMA_ATTR_SQD_NOTIFY, &attr),
	                 0);
	rdma_qp_query(pair.a->qp, &attr);
	assert_true(attr.sq_draining);
	assert_int_equal(pair.a->events[RDMA_EVENT_SQ_DRAINED], 0);
	qp_expect_send(pair.a, RDMA_OK);
	nic_spin(pair.nic, 3);
	assert_int_equal(pair.a->events[RDMA_EVENT_SQ_DRAINED], 1);
	rdma_qp_query(pair.a->qp, &attr);
	assert_false(attr.sq_draining);
	qp_post_send(pair.a, &pair.write);
	qp_post_send(pair.b, &pair.write);
	qp_expect_send(pair.b, RDMA_OK);
	nic_spin(pair.nic, 3);
	assert_int_equal(pair.a->send_wcs, 1);
	attr.cur_state = RDMA_QPS_SQD;
	attr.state = RDMA_QPS_RTS;
	assert_int_equal(rdma_qp_modify(pair.a->qp, RDMA_ATTR_STATE | RDMA_ATTR_CUR_STATE, &attr),
	                 0);
	qp_expect_send(pair.a, RDMA_OK);
	qp_expect_send(pair.a, RDMA_OK);

	/* an idle queue is drained at once; without notification nobody is told */
	attr = (struct rdma_qp_attr){.state = RDMA_QPS_SQD, .sqd_notify = true};
	rdma_qp_modify(pair.a->qp, RDMA_ATTR_STATE | RDMA_ATTR_SQD_NOTIFY, &attr);
	nic_spin(pair.nic, 2);
	assert_int_equal(pair.a->events[RDMA_EVENT_SQ_DRAINED], 2);
	attr.sqd_notify = false;
	rdma_qp_modify(pair.b->qp, RDMA_ATTR_STATE | RDMA_ATTR_SQD_NOTIFY, &attr);
	nic_spin(pair.nic, 2);
	assert_int_equal(pair.b->events[RDMA_EVENT_SQ_DRAINED], 0);
	pair_free(&pair);
}

/* How a large transfer can be cut short, and what its sender hears. */
static void cut_short(unsigned how)
{
	static const enum rdma_status expected[] = {RDMA_RETRY_EXC_ERR, RDMA_RETRY_EXC_ERR,
	                                            RDMA_RETRY_EXC_ERR, RDMA_REM_ACCESS_ERR,
	                                            RDMA_LOC_PROT_ERR};
	struct pair pair = pair_new();
	struct test_mr dst = mr_new(pair.nic, PD, 0x1000000, 8 << 20, ALL);
	struct test_mr src = mr_new(pair.nic, PD, 0x2000000, 8 << 20, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&src, 0, 8 << 20), dst.va, dst.key);

	qp_connect(pair.a, pair.b);
	qp_post_send(pair.a, &wr);
	nic_spin(pair.nic, 2);
	assert_int_equal(pair.a->send_wcs, 0);
	if (how == 0)
		qp_state(pair.b, RDMA_QPS_RESET);
	else if (how == 1)
		qp_state(pair.b, RDMA_QPS_ERR);
	else if (how == 2)
		rdma_qp_destroy(pair.b->qp);
	else
		rdma_mr_destroy(pair.nic->dev, how == 3 ? dst.key : src.key);
	if (how == 2)
		pair.b->qp = NULL;
	qp_expect_send(pair.a, expected[how]);
	assert_int_equal(pair.a->flushes, 1);
	assert_int_equal(pair.b->events[RDMA_EVENT_ACCESS_ERR], how == 3);
	pair_free(&pair);
}

static void cut_short_in_flight(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 5; how++)
		cut_short(how);
}

/* RESET in mid-transfer: nothing of the old life comes; the next life works, on either side. */
static void reset_in_flight(void **state)
{
	struct pair pair = pair_new();
	struct rdma_wr big = pair.send;

	(void)state;
	for (int round = 0; round < 3; round++) {
		qp_connect(pair.a, pair.b);
		qp_post_recv_sge(pair.b, 1, sge_of(&pair.mr, 4 << 20, 4 << 20));
		big.length = big.sge[0].length = 3 << 20;
		qp_post_send(pair.a, &big);
		nic_spin(pair.nic, 2);
		qp_state(pair.a, RDMA_QPS_RESET);
		if (round == 1)
			rdma_dev_reset(pair.nic->dev), pair.a->qp = pair.b->qp = NULL;
		nic_spin(pair.nic, 10);
		assert_int_equal(pair.a->send_wcs, 0);
		assert_int_equal(pair.b->recv_wcs, 0);
		if (round == 1) {
			pair_free(&pair);
			pair = pair_new();
			continue;
		}
		qp_state(pair.b, RDMA_QPS_RESET);
		pair.b->rq_head = pair.b->rq_tail;
	}
	qp_connect(pair.a, pair.b);
	qp_post_send(pair.a, &pair.write);
	qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(pair.a->flushes + pair.b->flushes, 0);
	pair_free(&pair);
}

/* A sender that goes away leaves its peer's receive for the next sender. */
static void receive_survives_sender(void **state)
{
	struct pair pair = pair_new();
	struct rdma_wr big = pair.send;
	struct rdma_qp_attr attr;

	(void)state;
	qp_connect(pair.a, pair.b);
	qp_post_recv_sge(pair.b, 77, sge_of(&pair.mr, 4 << 20, 4 << 20));
	big.length = big.sge[0].length = 3 << 20;
	qp_post_send(pair.a, &big);
	nic_spin(pair.nic, 2);
	qp_state(pair.a, RDMA_QPS_RESET);
	attr = qp_attr(pair.a, pair.b);
	qp_up(pair.a, &attr);
	qp_post_send(pair.a, &pair.send);
	qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->wr_id, 77);
	pair_free(&pair);
}

/* Without a receive a message is held; the receive, not the timer, lets it go on. */
static void held_until_receive(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = {.rnr_timer = 0}; /* 655 ms */

	(void)state;
	qp_connect(pair.a, pair.b);
	rdma_qp_modify(pair.b->qp, RDMA_ATTR_RNR_TIMER, &attr);
	qp_put_send(pair.a, &pair.send);
	qp_put_send(pair.a, &pair.write);
	rdma_qp_kick(pair.a->qp);
	nic_spin(pair.nic, 20);
	assert_int_equal(pair.a->send_wcs, 0);
	qp_post_recv_sge(pair.b, 1, sge_of(&pair.mr, 0, 8));
	nic_spin(pair.nic, 2);
	assert_int_equal(pair.a->send_wcs, 2);
	assert_int_equal(rdma_qp_stats(pair.a->qp)->rnrs, 0);
	assert_int_equal(rdma_dev_stat(pair.nic->dev, RDMA_STAT_RESP_TX_RNR), 1);
	pair_free(&pair);
}

/* RNR retries are counted by periods, 7 is for ever, and progress gives them back. */
static void rnr_periods(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = {.rnr_timer = 1, .rnr_retry = 3};

	(void)state;
	qp_connect(pair.a, pair.b);
	rdma_qp_modify(pair.b->qp, RDMA_ATTR_RNR_TIMER, &attr);
	qp_post_send(pair.a, &pair.send);
	while (rdma_qp_stats(pair.a->qp)->rnrs <= 8) /* 7: for ever */
		nic_pass(pair.nic, 1);
	assert_int_equal(pair.a->send_wcs, 0);
	qp_post_recv_sge(pair.b, 1, sge_of(&pair.mr, 0, 8));
	qp_expect_send(pair.a, RDMA_OK);

	rdma_qp_modify(pair.a->qp, RDMA_ATTR_RNR_RETRY, &attr);
	uint64_t before = rdma_qp_stats(pair.a->qp)->rnrs;

	qp_post_send(pair.a, &pair.send);
	qp_expect_send(pair.a, RDMA_RNR_RETRY_EXC_ERR);
	assert_int_equal(rdma_qp_stats(pair.a->qp)->rnrs - before, 4);
	assert_int_equal(rdma_dev_stat(pair.nic->dev, RDMA_STAT_RNR_RETRY_EXC), 1);
	assert_int_equal(pair.b->flushes, 0);
	pair_free(&pair);
}

/* A peer that comes late is found by a retry; then the retries are whole again. */
static void late_peer(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = qp_attr(pair.a, pair.b);

	(void)state;
	attr.timeout = 12; /* 17 ms */
	attr.retry_count = 7;
	qp_up(pair.a, &attr);
	qp_post_send(pair.a, &pair.write);
	while (rdma_qp_stats(pair.a->qp)->retries == 0)
		nic_pass(pair.nic, 1);
	attr = qp_attr(pair.b, pair.a);
	qp_up(pair.b, &attr);
	qp_expect_send(pair.a, RDMA_OK);
	pair_free(&pair);
}

/* Timeout 0 means to wait for ever; RESET ends the wait. */
static void no_timeout(void **state)
{
	struct pair pair = pair_new();
	struct rdma_qp_attr attr = qp_attr(pair.a, pair.b);

	(void)state;
	attr.timeout = 0;
	qp_up(pair.a, &attr);
	qp_post_send(pair.a, &pair.write);
	nic_pass(pair.nic, 20);
	assert_int_equal(pair.a->send_wcs, 0);
	qp_state(pair.a, RDMA_QPS_RESET);
	nic_pass(pair.nic, 5);
	assert_int_equal(pair.a->send_wcs, 0);
	pair_free(&pair);
}

/* Destroying in every moment of waiting leaves nothing armed, scheduled or linked behind. */
static void destroy_while_waiting(void **state)
{
	(void)state;
	for (int who = 0; who < 4; who++) {
		struct pair pair = pair_new();

		qp_connect(pair.a, pair.b);
		if (who & 1) { /* for a receive */
			qp_post_send(pair.a, &pair.send);
		} else { /* for nobody */
			qp_state(pair.b, RDMA_QPS_RESET);
			qp_post_send(pair.a, &pair.write);
		}
		nic_spin(pair.nic, 2);
		qp_post_send(pair.a, &pair.write); /* on the ready list */
		struct test_qp *first = who & 2 ? pair.b : pair.a;

		rdma_qp_destroy(first->qp);
		first->qp = NULL;
		nic_pass(pair.nic, 10);
		pair_free(&pair);
	}
}

/* UC: a message that breaks off is forgotten, its receive serves the next. */
static void uc_breaks_off(void **state)
{
	struct nic *nic = nic_new("loopback");
	struct test_qp *a = qp_new(nic, RDMA_QP_UC, PD), *b = qp_new(nic, RDMA_QP_UC, PD);
	struct test_mr mr = mr_new(nic, PD, 0x1000, 8 << 20, ALL);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&mr, 0, 3 << 20));
	struct rdma_qp_attr attr;

	(void)state;
	qp_connect(a, b);
	qp_post_recv_sge(b, 5, sge_of(&mr, 4 << 20, 4 << 20));
	qp_post_send(a, &wr);
	nic_spin(nic, 2);
	qp_state(a, RDMA_QPS_RESET);
	attr = qp_attr(a, b);
	attr.sq_psn = 12345; /* any will do */
	qp_up(a, &attr);
	wr.length = 100;
	qp_post_send(a, &wr);
	assert_true(qp_expect_send(a, RDMA_OK)->remote);
	assert_int_equal(qp_expect_recv(b, RDMA_OK)->wr_id, 5);
	/* the receiver goes away in mid-message: UC does not mind */
	qp_post_recv_sge(b, 6, sge_of(&mr, 4 << 20, 4 << 20));
	wr.length = 3 << 20;
	qp_post_send(a, &wr);
	nic_spin(nic, 2);
	qp_state(b, RDMA_QPS_ERR);
	qp_expect_send(a, RDMA_OK);
	qp_free(a);
	qp_free(b);
	nic_free(nic);
}

static void object_numbers(void **state)
{
	struct rdma_limits limits = {.qps = 100, .mrs = 100, .ahs = 10, .pages = 100};
	struct nic *nic = nic_new_limits("loopback", &limits, 1 << 20);
	struct rdma_qp_config config = {.qpn = 99, .type = RDMA_QP_RC};
	struct rdma_qp *qp, *other;

	(void)state;
	assert_int_equal(rdma_qp_create(nic->dev, &config, &qp), 0);
	assert_int_equal(rdma_qp_create(nic->dev, &config, &other), -EEXIST);
	config.qpn = 100;
	assert_int_equal(rdma_qp_create(nic->dev, &config, &other), -ERANGE);
	config.qpn = 0;
	assert_int_equal(rdma_qp_create(nic->dev, &config, &other), -ERANGE);
	config.qpn = 1;
	config.type = RDMA_QP_TYPES;
	assert_int_equal(rdma_qp_create(nic->dev, &config, &other), -EINVAL);
	assert_ptr_equal(rdma_qp_find(nic->dev, 99), qp);
	assert_null(rdma_qp_find(nic->dev, 98));
	assert_null(rdma_qp_find(nic->dev, 0xffffffff));
	rdma_qp_destroy(qp);
	assert_null(rdma_qp_find(nic->dev, 99));
	rdma_qp_destroy(NULL);
	nic_free(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(transitions),
	        cmocka_unit_test(attributes),
	        cmocka_unit_test(psn_wraps),
	        cmocka_unit_test(communication_established),
	        cmocka_unit_test(drain),
	        cmocka_unit_test(cut_short_in_flight),
	        cmocka_unit_test(reset_in_flight),
	        cmocka_unit_test(receive_survives_sender),
	        cmocka_unit_test(held_until_receive),
	        cmocka_unit_test(rnr_periods),
	        cmocka_unit_test(late_peer),
	        cmocka_unit_test(no_timeout),
	        cmocka_unit_test(destroy_while_waiting),
	        cmocka_unit_test(uc_breaks_off),
	        cmocka_unit_test(object_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
