/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Order and fairness: completions, fences, local opcodes between transfers, slices and turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "verbs.h"

#define PD  1
#define ALL 0x1f

struct pair {
	struct nic *nic;
	struct test_qp *a, *b;
	struct test_mr mr;
};

static struct pair pair_new(void)
{
	struct pair pair = {.nic = nic_new("loopback")};

	pair.a = qp_new(pair.nic, RDMA_QP_RC, PD);
	pair.b = qp_new(pair.nic, RDMA_QP_RC, PD);
	pair.mr = mr_new(pair.nic, PD, 0x1000, 24 << 20, ALL);
	qp_connect(pair.a, pair.b);
	return pair;
}

static void pair_free(struct pair *pair)
{
	qp_free(pair->a);
	qp_free(pair->b);
	nic_free(pair->nic);
}

/* Mixed sizes and opcodes, posted at once: each completes once, in order, with its own flags. */
static void completions_in_order(void **state)
{
	static const enum rdma_opcode opcodes[] = {RDMA_WRITE, RDMA_SEND, RDMA_READ, RDMA_FETCH_ADD,
	                                           RDMA_WRITE_IMM};
	struct pair pair = pair_new();
	unsigned receives = 0;

	(void)state;
	for (uint64_t i = 0; i < 500; i++) {
		enum rdma_opcode opcode = opcodes[i % ARRAY_SIZE(opcodes)];
		uint32_t size = opcode == RDMA_FETCH_ADD ? 8 : (uint32_t)(i * 7919 % 100000);
		struct rdma_wr wr = wr_rdma(opcode, sge_of(&pair.mr, 0, size),
		                            pair.mr.va + (1 << 20), pair.mr.key);

		wr.wr_id = i;
		wr.flags = (uint8_t)((i % 3 ? RDMA_WR_SIGNALED : 0) | (i % 7 ? 0 : RDMA_WR_FENCE));
		qp_put_send(pair.a, &wr);
		if (opcode == RDMA_SEND || opcode == RDMA_WRITE_IMM)
			qp_post_recv_sge(pair.b, receives++, sge_of(&pair.mr, 2 << 20, 1 << 20));
	}
	rdma_qp_kick(pair.a->qp);
	for (uint64_t i = 0; i < 500; i++) {
		const struct rdma_wc *wc = qp_expect_send(pair.a, RDMA_OK);

		assert_int_equal(wc->wr_id, i);
		assert_int_equal(wc->opcode, opcodes[i % ARRAY_SIZE(opcodes)]);
		assert_int_equal(wc->signaled, i % 3 != 0);
	}
	for (uint64_t i = 0; i < receives; i++)
		assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->wr_id, i);
	assert_null(qp_poll_send(pair.a));
	assert_null(qp_poll_recv(pair.b));
	assert_true(pair.a->pauses > 0 && pair.a->pauses < 500);
	pair_free(&pair);
}

/* REG_MR takes effect before the SEND behind it, LOCAL_INV after the WRITE before it. */
static void local_opcodes_between(void **state)
{
	struct pair pair = pair_new();
	struct rdma_mr_config config = {
	        .key = 0x70000, .pd = PD, .flags = RDMA_MR_UKEY | RDMA_MR_INV};
	struct rdma_wr reg = {.opcode = RDMA_REG_MR, .wr_id = 1}, inv = {.opcode = RDMA_LOCAL_INV};
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&pair.mr, 0, 100), 0x5000, 0);

	(void)state;
	assert_int_equal(rdma_mr_create(pair.nic->dev, &config), 0);
	reg.reg.va = 0x5000;
	reg.reg.length = 4096;
	reg.reg.dma_addr = pair.mr.dma + (1 << 20);
	reg.reg.page_count = 1;
	reg.reg.access = 0xf;
	for (uint32_t i = 1; i <= 100; i++) {
		reg.key = inv.inv_key = wr.remote.rkey = 0x70000 | i;
		wr.wr_id = i;
		pair.mr.mem[0] = (uint8_t)i;
		qp_put_send(pair.a, &reg);
		qp_put_send(pair.a, &wr);
		qp_put_send(pair.a, &inv);
		rdma_qp_kick(pair.a->qp);
		assert_false(qp_expect_send(pair.a, RDMA_OK)->remote);
		assert_true(qp_expect_send(pair.a, RDMA_OK)->remote);
		assert_int_equal(qp_expect_send(pair.a, RDMA_OK)->opcode, RDMA_LOCAL_INV);
		assert_int_equal(pair.mr.mem[1 << 20], i);
	}
	qp_put_send(pair.a, &wr);
	rdma_qp_kick(pair.a->qp);
	qp_expect_send(pair.a, RDMA_REM_ACCESS_ERR);
	pair_free(&pair);
}

/* A READ or WRITE that follows another sees what it did, whatever the flags. */
static void effects_in_order(void **state)
{
	struct pair pair = pair_new();
	uint64_t one = 1;

	(void)state;
	mr_set(&pair.mr, 0, &one, 8);
	/* cell 0 moves through the cells, each WRITE from where the one before has put it */
	for (uint32_t i = 0; i < 1000; i++) {
		struct rdma_wr wr =
		        wr_rdma(i % 2 ? RDMA_READ : RDMA_WRITE,
		                sge_of(&pair.mr, i % 2 ? (i + 1) * 8 : i * 8, 8),
		                pair.mr.va + (i % 2 ? i * 8 : (i + 1) * 8), pair.mr.key);

		wr.flags = i % 5 ? 0 : RDMA_WR_FENCE;
		qp_put_send(pair.a, &wr);
	}
	rdma_qp_kick(pair.a->qp);
	nic_wait(pair.nic, &pair.a->send_wcs, 1000);
	mr_get(&pair.mr, 8000, &one, 8);
	assert_int_equal(one, 1);
	pair_free(&pair);
}

/* A large message is cut into slices, and a small one of another QP comes in between. */
static void large_messages_yield(void **state)
{
	struct pair pair = pair_new();
	struct test_qp *c = qp_new(pair.nic, RDMA_QP_RC, PD), *d = qp_new(pair.nic, RDMA_QP_RC, PD);
	struct rdma_wr big = wr_rdma(RDMA_WRITE, sge_of(&pair.mr, 0, 8 << 20),
	                             pair.mr.va + (8 << 20), pair.mr.key);
	struct rdma_wr small = wr_rdma(RDMA_WRITE, sge_of(&pair.mr, 16 << 20, 8),
	                               pair.mr.va + (17 << 20), pair.mr.key);

	(void)state;
	mr_fill(&pair.mr, 5);
	qp_connect(c, d);
	qp_post_send(pair.a, &big);
	nic_spin(pair.nic, 1);
	qp_post_send(c, &small);
	/* Where time runs fast, a turn is over after one slice: the large one's, and then the
	 * other's. */
	nic_spin(pair.nic, 2);
	assert_int_equal(c->send_wcs, 1);
	assert_int_equal(pair.a->send_wcs, 0);
	nic_wait(pair.nic, &pair.a->send_wcs, 1);
	assert_memory_equal(pair.mr.mem, pair.mr.mem + (8 << 20), 8 << 20);
	assert_true(rdma_dev_stat(pair.nic->dev, RDMA_STAT_SLICES) >= 8);
	qp_free(c);
	qp_free(d);
	pair_free(&pair);
}

/* Queues that never run dry share: none gets twice as much as another. */
static void equal_shares(void **state)
{
	enum { QPS = 8, POSTS = 2000 };
	struct nic *nic = nic_new("loopback");
	struct test_mr mr = mr_new(nic, PD, 0x1000, 4 << 20, ALL);
	struct test_qp *qps[QPS];
	uint32_t least, most;

	(void)state;
	for (unsigned i = 0; i < QPS; i++) {
		/* half of them write 8 bytes, half 64 KiB */
		struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, i % 2 ? 8 : 65536),
		                            mr.va + (1 << 20), mr.key);

		struct rdma_qp_config config = {
		        .qpn = nic->next_qpn++, .type = RDMA_QP_RC, .pd = PD};

		qps[i] = qp_new_config(nic, &config, POSTS + 1);
		qp_connect(qps[i], qps[i]);
		for (unsigned n = 0; n < POSTS; n++)
			qp_put_send(qps[i], &wr);
		rdma_qp_kick(qps[i]->qp);
	}
	nic_spin(nic, 32);
	for (unsigned kind = 0; kind < 2; kind++) {
		least = UINT32_MAX;
		most = 0;
		for (unsigned i = kind; i < QPS; i += 2) {
			least = qps[i]->send_wcs < least ? qps[i]->send_wcs : least;
			most = qps[i]->send_wcs > most ? qps[i]->send_wcs : most;
		}
		assert_true(least > 0 && most < POSTS && most <= 2 * least);
	}
	for (unsigned i = 0; i < QPS; i++)
		qp_free(qps[i]);
	nic_free(nic);
}

/* An owner may post and kick from a completion: ping-pong without any turn from outside. */
static unsigned pings;

static void pong(struct test_qp *qp, const struct rdma_wc *wc)
{
	struct test_mr *mr = qp->arg;
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(mr, 0, 64));

	(void)wc;
	if (++pings >= 1000)
		return;
	qp_post_recv_sge(qp, 1, sge_of(mr, 4096, 64));
	qp_post_send(qp, &wr);
}

static void posts_from_completions(void **state)
{
	struct pair pair = pair_new();
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&pair.mr, 0, 64));

	(void)state;
	pair.a->on_recv = pair.b->on_recv = pong;
	pair.a->arg = pair.b->arg = &pair.mr;
	qp_post_recv_sge(pair.a, 1, sge_of(&pair.mr, 4096, 64));
	qp_post_recv_sge(pair.b, 1, sge_of(&pair.mr, 4096, 64));
	qp_post_send(pair.a, &wr);
	pings = 0;
	nic_wait(pair.nic, &pings, 1000);
	pair_free(&pair);
}

/*
 * A fabric whose answers come late and out of order, with a window of 16: completions are still in
 * order, READs respect their depth, fences and LOCAL_INV wait, and a rewind sends again.
 */
struct late_fabric {
	struct rdma_fabric base;
	struct rdma_msg *held[64];
	unsigned count, rewinds, forgets, most;
	bool wait;
};

static enum rdma_tx late_transmit(struct rdma_fabric *fabric, struct rdma_msg *msg, size_t *budget)
{
	struct late_fabric *late = container_of(fabric, struct late_fabric, base);

	(void)budget;
	if (late->wait)
		return RDMA_TX_WAIT;
	late->held[late->count++] = msg;
	if (late->count > late->most)
		late->most = late->count;
	return RDMA_TX_SENT;
}

static void late_rewind(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	struct late_fabric *late = container_of(fabric, struct late_fabric, base);

	(void)qp;
	late->rewinds++;
	late->count = 0;
}

static void late_forget(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	struct late_fabric *late = container_of(fabric, struct late_fabric, base);

	(void)qp;
	late->forgets++;
	late->count = 0;
}

static const struct rdma_fabric_ops late_ops = {.name = "late",
                                                .window = 16,
                                                .transmit = late_transmit,
                                                .rewind = late_rewind,
                                                .forget = late_forget};

/* The test's NIC with its device moved to another fabric. */
static struct test_qp *late_qp(struct nic *nic, struct late_fabric *late, struct test_mr *mr)
{
	struct rdma_dev_config config = {.name = "late",
	                                 .loop = nic->loop,
	                                 .ops = nic_owner_ops,
	                                 .owner = nic,
	                                 .limits = {.qps = 64, .mrs = 64, .ahs = 8, .pages = 64},
	                                 .fabric = &late->base,
	                                 .datagram_mtu = 4096};

	rdma_dev_destroy(nic->dev);
	assert_int_equal(rdma_dev_create(&config, &nic->dev), 0);
	*mr = mr_new(nic, PD, 0x1000, 4096, 0xf);
	struct test_qp *qp = qp_new(nic, RDMA_QP_RC, PD);
	struct rdma_qp_attr attr = qp_attr(qp, qp);

	attr.max_rd_atomic = 3;
	attr.timeout = 16; /* 268 ms: a machine that is busy does not add timeouts */
	qp_up(qp, &attr);
	return qp;
}

static void asynchronous_fabric(void **state)
{
	struct late_fabric late = {.base.ops = &late_ops};
	struct nic *nic = nic_new("none");
	struct test_mr mr;
	struct test_qp *qp = late_qp(nic, &late, &mr);
	struct rdma_wr write = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 8), mr.va, mr.key);
	struct rdma_wr read = wr_rdma(RDMA_READ, sge_of(&mr, 0, 8), mr.va, mr.key);

	(void)state;
	/* the window, answered backwards */
	for (uint64_t i = 0; i < 20; i++) {
		write.wr_id = i;
		qp_put_send(qp, &write);
	}
	rdma_qp_kick(qp->qp);
	nic_spin(nic, 1);
	assert_int_equal(late.count, 16);
	assert_ptr_equal(rdma_qp_outstanding(qp->qp, 3), late.held[3]);
	for (unsigned i = 15; i > 0; i--)
		rdma_msg_done(late.held[i], RDMA_OK);
	nic_spin(nic, 1);
	assert_int_equal(qp->send_wcs, 0);
	rdma_msg_done(late.held[0], RDMA_OK);
	late.count = 0;
	nic_spin(nic, 1);
	assert_int_equal(qp->send_wcs, 16);
	assert_int_equal(late.count, 4);
	for (unsigned i = 0; i < 4; i++)
		rdma_msg_done(late.held[i], RDMA_OK);
	nic_spin(nic, 1);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(qp_expect_send(qp, RDMA_OK)->wr_id, i);

	/* three READs at a time; then a fenced WRITE waits for all of them */
	late.count = 0;
	for (int i = 0; i < 4; i++)
		qp_put_send(qp, &read);
	write.flags = RDMA_WR_FENCE;
	qp_put_send(qp, &write);
	rdma_qp_kick(qp->qp);
	nic_spin(nic, 1);
	assert_int_equal(late.count, 3);
	rdma_msg_done(late.held[0], RDMA_OK);
	nic_spin(nic, 1);
	assert_int_equal(late.count, 4);
	for (int i = 1; i < 3; i++)
		rdma_msg_done(late.held[i], RDMA_OK);
	nic_spin(nic, 1);
	assert_int_equal(late.count, 4);
	rdma_msg_done(late.held[3], RDMA_OK);
	nic_spin(nic, 1);
	assert_int_equal(late.count, 5);
	rdma_msg_done(late.held[4], RDMA_OK);
	nic_spin(nic, 1);
	assert_int_equal(qp->send_wcs, 25);

	/* LOCAL_INV waits for what is on its way, and what follows waits for LOCAL_INV */
	struct rdma_mr_config config = {.key = 0x3001,
	                                .pd = PD,
	                                .length = 8,
	                                .dma_addr = mr.dma,
	                                .page_count = 1,
	                                .flags = RDMA_MR_INV};
	struct rdma_wr inv = {.opcode = RDMA_LOCAL_INV, .inv_key = 0x3001};
	struct rdma_dev_stats stats;

	assert_int_equal(rdma_mr_create(nic->dev, &config), 0);
	late.count = 0;
	write.flags = 0;
	write.sge[0] = (struct rdma_sge){.va = 0, .length = 8, .lkey = 0x3001};
	qp_put_send(qp, &write);
	qp_put_send(qp, &inv);
	qp_put_send(qp, &read);
	rdma_qp_kick(qp->qp);
	nic_spin(nic, 2);
	assert_int_equal(late.count, 1);
	struct iovec iov;

	assert_int_equal(rdma_msg_map(late.held[0], 8, &iov, 1), 1); /* the key still works */
	rdma_msg_done(late.held[0], RDMA_OK);
	nic_spin(nic, 1);
	assert_int_equal(qp->send_wcs, 27);
	assert_int_equal(late.count, 2);
	rdma_dev_stats(nic->dev, &stats);
	assert_int_equal(stats.traffic.tx[RDMA_LOCAL_INV].messages, 1);
	qp_free(qp);
	nic_free(nic);
}

/* Timeouts rewind; RNR in flight goes back to its message; waiting ends with resume. */
static void asynchronous_retries(void **state)
{
	struct late_fabric late = {.base.ops = &late_ops};
	struct nic *nic = nic_new("none");
	struct test_mr mr;
	struct test_qp *qp = late_qp(nic, &late, &mr);
	struct rdma_wr write = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 8), mr.va, mr.key);

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		write.wr_id = i;
		qp_put_send(qp, &write);
	}
	rdma_qp_kick(qp->qp);
	nic_wait(nic, &late.rewinds, 1); /* the timeout */
	nic_spin(nic, 1);
	assert_int_equal(late.count, 3);
	assert_int_equal(late.held[0]->wr.wr_id, 0);
	rdma_msg_done(late.held[0], RDMA_OK);
	rdma_msg_not_ready(late.held[1], 1); /* 10 us */
	nic_wait(nic, &late.rewinds, 2);
	nic_spin(nic, 1);
	assert_int_equal(qp->send_wcs, 1);
	assert_int_equal(late.count, 2);
	assert_int_equal(late.held[0]->wr.wr_id, 1);
	rdma_msg_done(late.held[0], RDMA_OK);
	rdma_msg_done(late.held[1], RDMA_REM_OP_ERR);
	nic_spin(nic, 1);
	qp_expect_send(qp, RDMA_OK);
	qp_expect_send(qp, RDMA_OK);
	qp_expect_send(qp, RDMA_REM_OP_ERR);
	assert_int_equal(qp->flushes, 1);
	assert_true(late.forgets >= 1);
	qp_free(qp);

	qp = qp_new(nic, RDMA_QP_RC, PD);
	struct rdma_qp_attr attr = qp_attr(qp, qp);

	/* one retry, which every message gets anew */
	attr.retry_count = 1;
	attr.timeout = 16;
	qp_up(qp, &attr);
	for (int i = 0; i < 3; i++) {
		unsigned rewinds = late.rewinds;

		late.count = 0;
		qp_post_send(qp, &write);
		nic_wait(nic, &late.rewinds, rewinds + 1);
		nic_spin(nic, 1);
		rdma_msg_done(late.held[0], RDMA_OK);
		qp_expect_send(qp, RDMA_OK);
	}
	qp_state(qp, RDMA_QPS_RESET);
	attr.timeout = 0;
	qp_up(qp, &attr);
	late.wait = true;
	late.count = 0;
	qp_post_send(qp, &write);
	nic_spin(nic, 3);
	assert_int_equal(late.count, 0);
	late.wait = false;
	rdma_qp_resume(qp->qp);
	nic_spin(nic, 1);
	assert_int_equal(late.count, 1);
	struct rdma_msg *msg = late.held[0];

	qp_state(qp, RDMA_QPS_RESET);
	rdma_msg_done(msg, RDMA_OK); /* too late: without effect */
	nic_spin(nic, 2);
	assert_int_equal(qp->send_wcs, 3);
	qp_free(qp);
	nic_free(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(completions_in_order), cmocka_unit_test(local_opcodes_between),
	        cmocka_unit_test(effects_in_order),     cmocka_unit_test(large_messages_yield),
	        cmocka_unit_test(equal_shares),         cmocka_unit_test(posts_from_completions),
	        cmocka_unit_test(asynchronous_fabric),  cmocka_unit_test(asynchronous_retries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
