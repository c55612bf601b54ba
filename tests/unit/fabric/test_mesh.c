/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages between two nodes of a mesh: every opcode, errors, lost connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/counter.h"
#include "mesh_rig.h"

#define PD  1
#define ALL 0x1f

struct pair {
	struct loop *loop;
	struct node *a, *b; /* manager and worker */
	struct test_qp *qa, *qb;
};

static int setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	uint16_t port = rig_port();

	pair->loop = rig_loop();
	pair->a = node_manager(pair->loop, port, 1);
	pair->b = node_worker(pair->loop, port, 2);
	rig_wait_nodes(pair->b, 2);
	rig_wait_nodes(pair->a, 2);
	pair->qa = qp_new(pair->a->nic, RDMA_QP_RC, PD);
	pair->qb = qp_new(pair->b->nic, RDMA_QP_RC, PD);
	rig_connect(pair->qa, pair->qb);
	*state = pair;
	return 0;
}

static int teardown(void **state)
{
	struct pair *pair = *state;

	if (pair->qa)
		qp_free(pair->qa);
	if (pair->qb)
		qp_free(pair->qb);
	node_free(pair->b);
	node_free(pair->a);
	loop_destroy(pair->loop);
	free(pair);
	return 0;
}

/* The bytes of two regions are the same. */
static void assert_same(const struct test_mr *x, const struct test_mr *y, size_t size)
{
	uint8_t *left = malloc(size + 1), *right = malloc(size + 1);

	assert_true(left && right);
	mr_get(x, 0, left, size);
	mr_get(y, 0, right, size);
	assert_memory_equal(left, right, size);
	free(left);
	free(right);
}

static void every_size(void **state)
{
	static const size_t sizes[] = {0,    1,    8,     63,    64,    4096,    8191,
	                               8192, 8193, 65535, 65536, 65537, 1000003, 2097152};
	static const enum rdma_opcode opcodes[] = {RDMA_SEND, RDMA_WRITE, RDMA_READ};
	struct pair *pair = *state;
	struct test_mr here = mr_scattered(pair->a->nic, PD, 0x1033, 2 << 20, ALL);
	struct test_mr there = mr_scattered(pair->b->nic, PD, 0x2777, 2 << 20, ALL);
	unsigned seed = 1;

	for (size_t op = 0; op < ARRAY_SIZE(opcodes); op++)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct rdma_wr wr = wr_rdma(opcodes[op], sge_of(&here, 0, sizes[i]),
			                            there.va, there.key);

			mr_fill(&here, seed++);
			mr_fill(&there, seed++);
			if (opcodes[op] == RDMA_SEND)
				qp_post_recv_sge(pair->qb, seed, sge_of(&there, 0, sizes[i]));
			qp_post_send(pair->qa, &wr);
			qp_expect_send(pair->qa, RDMA_OK);
			if (opcodes[op] == RDMA_SEND)
				assert_int_equal(qp_expect_recv(pair->qb, RDMA_OK)->length,
				                 sizes[i]);
			assert_same(&here, &there, sizes[i]);
		}
	mr_free(&here);
	mr_free(&there);
}

static void immediate_and_invalidate(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 4096, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 4096, ALL);
	struct test_mr victim = mr_new(pair->b->nic, PD, 0x3000, 4096, ALL | RDMA_MR_INV);
	struct rdma_wr wr = wr_send(RDMA_SEND_IMM, sge_of(&here, 0, 100));

	wr.imm = 0x12345678;
	qp_post_recv_sge(pair->qb, 1, sge_of(&there, 0, 4096));
	qp_post_send(pair->qa, &wr);
	assert_int_equal(qp_expect_recv(pair->qb, RDMA_OK)->imm, 0x12345678);
	wr = wr_rdma(RDMA_WRITE_IMM, sge_of(&here, 0, 100), there.va, there.key);
	wr.imm = 0x9abcdef0;
	qp_post_recv_sge(pair->qb, 2, sge_of(&there, 0, 0));
	qp_post_send(pair->qa, &wr);
	assert_int_equal(qp_expect_recv(pair->qb, RDMA_OK)->imm, 0x9abcdef0);
	wr = wr_send(RDMA_SEND_INV, sge_of(&here, 0, 100));
	wr.inv_key = victim.key;
	qp_post_recv_sge(pair->qb, 3, sge_of(&there, 0, 4096));
	qp_post_send(pair->qa, &wr);
	assert_int_equal(qp_expect_recv(pair->qb, RDMA_OK)->inv_key, victim.key);
	for (int i = 0; i < 3; i++)
		qp_expect_send(pair->qa, RDMA_OK);
	mr_free(&here);
	mr_free(&there);
	mr_free(&victim);
}

static void atomics(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 4096, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 4096, ALL);
	uint64_t value = 40, old;

	mr_set(&there, 8, &value, 8);
	for (int i = 0; i < 40; i++) { /* more than may be out at once */
		struct rdma_wr wr = wr_atomic(RDMA_FETCH_ADD, sge_of(&here, (size_t)i * 8, 8),
		                              there.va + 8, there.key);

		wr.remote.swap_add = 1;
		qp_post_send(pair->qa, &wr);
	}
	for (uint64_t i = 0; i < 40; i++) {
		qp_expect_send(pair->qa, RDMA_OK);
		mr_get(&here, i * 8, &old, 8);
		assert_int_equal(old, 40 + i);
	}
	struct rdma_wr wr = wr_atomic(RDMA_CMP_SWAP, sge_of(&here, 0, 8), there.va + 8, there.key);

	wr.remote.compare = 80;
	wr.remote.swap_add = 7;
	qp_post_send(pair->qa, &wr);
	qp_expect_send(pair->qa, RDMA_OK);
	mr_get(&there, 8, &value, 8);
	assert_int_equal(value, 7);
	mr_free(&here);
	mr_free(&there);
}

/* Many messages of mixed kinds, both ways at once, in order. */
static void mixed_streams(void **state)
{
	enum { COUNT = 600, SIZE = 20000 };
	struct pair *pair = *state;
	struct test_mr here = mr_scattered(pair->a->nic, PD, 0x1000, SIZE, ALL);
	struct test_mr there = mr_scattered(pair->b->nic, PD, 0x2000, SIZE, ALL);
	uint64_t random = test_seed();

	for (int i = 0; i < COUNT; i++) {
		size_t size = test_random(&random) % SIZE;
		bool read = test_random(&random) % 3 == 0;
		struct rdma_wr to = wr_rdma(read ? RDMA_READ : RDMA_WRITE, sge_of(&here, 0, size),
		                            there.va, there.key);
		struct rdma_wr back = wr_rdma(read ? RDMA_WRITE : RDMA_READ,
		                              sge_of(&there, 0, size), here.va, here.key);

		to.wr_id = back.wr_id = (uint64_t)i;
		qp_post_send(pair->qa, &to);
		qp_post_send(pair->qb, &back);
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(qp_expect_send(pair->qa, RDMA_OK)->wr_id, i);
		assert_int_equal(qp_expect_send(pair->qb, RDMA_OK)->wr_id, i);
	}
	mr_free(&here);
	mr_free(&there);
}

/* Without a receive the sender waits, and goes on as soon as there is one. */
static void not_ready(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 300000, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 300000, ALL);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&here, 0, 300000));

	mr_fill(&here, 5);
	for (int i = 0; i < 5; i++)
		qp_post_send(pair->qa, &wr);
	rig_pass(pair->loop, 50);
	assert_int_equal(pair->qa->send_wcs, 0);
	for (int i = 0; i < 5; i++) {
		qp_post_recv_sge(pair->qb, 1, sge_of(&there, 0, 300000));
		rdma_qp_kick_recv(pair->qb->qp);
		qp_expect_recv(pair->qb, RDMA_OK);
		qp_expect_send(pair->qa, RDMA_OK);
	}
	assert_same(&here, &there, 300000);
	mr_free(&here);
	mr_free(&there);
}

/* The RNR timer of the longest kind is no wait when a receive comes before. */
static void ready_is_told(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 64, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 64, ALL);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&here, 0, 64));
	struct rdma_qp_attr attr = {.rnr_timer = 0}; /* 655 ms */

	assert_int_equal(rdma_qp_modify(pair->qb->qp, RDMA_ATTR_RNR_TIMER, &attr), 0);
	for (int i = 0; i < 8; i++) {
		uint64_t start = rig_ms();

		qp_post_send(pair->qa, &wr);
		rig_pass(pair->loop, 5);
		qp_post_recv_sge(pair->qb, 1, sge_of(&there, 0, 64));
		rdma_qp_kick_recv(pair->qb->qp);
		qp_expect_send(pair->qa, RDMA_OK);
		assert_true(rig_ms() - start < 600);
	}
	mr_free(&here);
	mr_free(&there);
}

/* The same with as many messages out as may be, and no timer that would make up for it. */
static void full_window_is_told(void **state)
{
	enum { MANY = 2 * MESH_WINDOW };
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 64, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 64, ALL);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&here, 0, 64));
	struct rdma_qp_attr attr = {.rnr_timer = 0, .timeout = 0};

	assert_int_equal(rdma_qp_modify(pair->qb->qp, RDMA_ATTR_RNR_TIMER, &attr), 0);
	assert_int_equal(rdma_qp_modify(pair->qa->qp, RDMA_ATTR_TIMEOUT, &attr), 0);
	for (int i = 1; i < MANY; i++)
		qp_put_send(pair->qa, &wr);
	qp_post_send(pair->qa, &wr);
	rig_pass(pair->loop, 20);
	for (int i = 0; i < MANY; i++)
		qp_post_recv_sge(pair->qb, 1, sge_of(&there, 0, 64));
	rdma_qp_kick_recv(pair->qb->qp);
	nic_wait(pair->a->nic, &pair->qa->send_wcs, MANY);
	assert_int_equal(pair->qb->recv_wcs, MANY);
	mr_free(&here);
	mr_free(&there);
}

static void bad_key(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 1 << 20, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 1 << 20, ALL);
	struct rdma_wr good = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 1 << 20), there.va, there.key);
	struct rdma_wr bad = good;

	bad.remote.rkey ^= 0x10000;
	qp_post_send(pair->qa, &good);
	qp_post_send(pair->qa, &bad);
	qp_post_send(pair->qa, &good);
	qp_expect_send(pair->qa, RDMA_OK);
	qp_expect_send(pair->qa, RDMA_REM_ACCESS_ERR);
	rig_pass(pair->loop, 20);
	assert_int_equal(pair->qa->flushes, 1);
	assert_int_equal(pair->qb->events[RDMA_EVENT_ACCESS_ERR], 1);
	mr_free(&here);
	mr_free(&there);
}

static void local_fault(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 1 << 20, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 1 << 20, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 1 << 20), there.va, there.key);

	pair->a->nic->hole = here.dma + 500000;
	pair->a->nic->hole_end = here.dma + 500001;
	qp_post_send(pair->qa, &wr);
	qp_expect_send(pair->qa, RDMA_LOC_PROT_ERR);
	mr_free(&here);
	mr_free(&there);
}

static void memory_by_copy(void **state)
{
	static const enum rdma_opcode opcodes[] = {RDMA_WRITE, RDMA_READ};
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 200000, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 200000, ALL);

	pair->a->nic->copy_only = here.dma;
	pair->a->nic->copy_only_end = here.dma + 100000;
	pair->b->nic->copy_only = there.dma + 50000;
	pair->b->nic->copy_only_end = there.dma + 150000;
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct rdma_wr wr =
		        wr_rdma(opcodes[i], sge_of(&here, 0, 200000), there.va, there.key);

		mr_fill(&here, 8);
		mr_fill(&there, 9);
		qp_post_send(pair->qa, &wr);
		qp_expect_send(pair->qa, RDMA_OK);
		assert_same(&here, &there, 200000);
	}
	mr_free(&here);
	mr_free(&there);
}

static void datagrams(void **state)
{
	struct pair *pair = *state;
	struct test_qp *ua = qp_new(pair->a->nic, RDMA_QP_UD, PD);
	struct test_qp *ub = qp_new(pair->b->nic, RDMA_QP_UD, PD);
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 4096, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 8192, ALL);
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(pair->a->nic, pair->b->nic, 4, true, header);
	struct rdma_qp_attr attr = qp_attr(ua, ub);

	qp_up(ua, &attr);
	attr = qp_attr(ub, ua);
	qp_up(ub, &attr);
	assert_int_equal(rdma_ah_create(pair->a->nic->dev, 1, PD, header, size), 0);
	struct rdma_wr wr = wr_send(RDMA_SEND_IMM, sge_of(&here, 0, 4000));

	wr.ud.ah = 1;
	wr.ud.qpn = ub->qpn;
	wr.ud.qkey = attr.qkey;
	wr.imm = 77;
	mr_fill(&here, 3);
	qp_post_recv_sge(ub, 1, sge_of(&there, 0, 8192));
	qp_post_send(ua, &wr);
	qp_expect_send(ua, RDMA_OK);
	const struct rdma_wc *wc = qp_expect_recv(ub, RDMA_OK);

	assert_int_equal(wc->length, 4040);
	assert_int_equal(wc->imm, 77);
	assert_int_equal(wc->src_qpn, ua->qpn);
	assert_true(wc->vlan && wc->ipv4);
	assert_memory_equal(wc->src_mac, pair->a->nic->mac, 6);
	for (size_t i = 0; i < 4000; i++)
		assert_int_equal(*mr_byte(&there, 40 + i), *mr_byte(&here, i));
	qp_free(ua);
	qp_free(ub);
	mr_free(&here);
	mr_free(&there);
}

static struct mesh_conn *conn_of(struct node *node)
{
	return LIST_FIRST(&node->mesh->conns);
}

/* A connection that breaks in the midst of things: nothing is lost or done twice. */
static void broken_connection(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 1 << 20, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 1 << 20, ALL);
	struct rdma_wr add = wr_atomic(RDMA_FETCH_ADD, sge_of(&there, 8, 8), here.va, here.key);
	struct rdma_wr big =
	        wr_rdma(RDMA_WRITE, sge_of(&there, 0, 500000), here.va + 1000, here.key);
	struct rdma_wr read =
	        wr_rdma(RDMA_READ, sge_of(&there, 0, 500000), here.va + 1000, here.key);
	uint64_t zero = 0, sum;

	mr_set(&here, 0, &zero, 8);
	add.remote.swap_add = 1;
	for (uint64_t round = 1; round <= 6; round++) {
		for (int i = 0; i < 10; i++) {
			qp_post_send(pair->qb, &add);
			qp_post_send(pair->qb, i % 2 ? &big : &read);
		}
		nic_spin(pair->b->nic, (unsigned)round * 5);
		if (conn_of(pair->b))
			mesh_conn_close(conn_of(pair->b), "test");
		for (int i = 0; i < 20; i++)
			qp_expect_send(pair->qb, RDMA_OK);
		mr_get(&here, 0, &sum, 8);
		assert_int_equal(sum, round * 10);
	}
	mr_free(&here);
	mr_free(&there);
}

/* A peer that is gone for good: exactly its queue pairs fail, with retry exceeded. */
static void peer_gone(void **state)
{
	struct pair *pair = *state;
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 1 << 20, ALL);
	struct test_qp *self1 = qp_new(pair->a->nic, RDMA_QP_RC, PD);
	struct test_qp *self2 = qp_new(pair->a->nic, RDMA_QP_RC, PD);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 1 << 20), 0x2000, 7);
	struct rdma_wr own = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 1000), here.va + 5000, here.key);

	rig_connect(self1, self2);
	qp_free(pair->qb);
	pair->qb = NULL;
	node_free(pair->b);
	pair->b = NULL;
	qp_post_send(pair->qa, &wr);
	qp_post_send(self1, &own);
	qp_expect_send(self1, RDMA_OK);
	qp_expect_send(pair->qa, RDMA_RETRY_EXC_ERR);
	assert_int_equal(pair->qa->flushes, 1);
	assert_int_equal(self1->flushes, 0);
	qp_free(self1);
	qp_free(self2);
	mr_free(&here);
}

/* The peer's queue pair is not ready to receive yet: what was dropped is sent again, once. */
static void late_peer(void **state)
{
	struct pair *pair = *state;
	struct test_qp *qa = qp_new(pair->a->nic, RDMA_QP_RC, PD);
	struct test_qp *qb = qp_new(pair->b->nic, RDMA_QP_RC, PD);
	struct test_mr here = mr_new(pair->a->nic, PD, 0x1000, 100000, ALL);
	struct test_mr there = mr_new(pair->b->nic, PD, 0x2000, 100000, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 100000), there.va, there.key);
	struct rdma_qp_attr attr = rig_attr(qa, qb);

	mr_fill(&here, 1);
	qp_up(qa, &attr);
	for (int i = 0; i < 10; i++)
		qp_post_send(qa, &wr);
	rig_pass(pair->loop, 100);
	assert_int_equal(qa->send_wcs, 0);
	attr = rig_attr(qb, qa);
	qp_up(qb, &attr);
	for (int i = 0; i < 10; i++)
		qp_expect_send(qa, RDMA_OK);
	assert_same(&here, &there, 100000);
	qp_free(qa);
	qp_free(qb);
	mr_free(&here);
	mr_free(&there);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_size),        TEST(immediate_and_invalidate),
	        TEST(atomics),           TEST(mixed_streams),
	        TEST(not_ready),         TEST(ready_is_told),
	        TEST(bad_key),           TEST(local_fault),
	        TEST(memory_by_copy),    TEST(datagrams),
	        TEST(broken_connection), TEST(peer_gone),
	        TEST(late_peer),         TEST(full_window_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
