// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The queues of verbs: rings that wrap and overflow, events, doorbells of the wrong process, and
 * what one process can do to the latency of another (spec ionic-rdma 5.7, 6.1, 7.3).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_scene.h"

static const struct env_options bare = {0};

/* A CQ that overflows: an event of its own, its QPs in ERR; other CQs go on. */
static void test_cq_overflow(void **state)
{
	struct env *env = *state;
	const struct rdma_cq_config small = {.log2 = 4, .eq = 2, .page = SCENE_PAGE};
	struct rdma_qp_config config = {
	        .pd = SCENE_PD, .page = SCENE_PAGE, .sq_log2 = 6, .rq_log2 = 6};
	struct rdma_path path = RDMA_PATH;
	struct rdma_qp_info info;
	struct rdma_cq *cq;
	struct rdma_qp *qp;
	struct rdma *rdma;
	struct scene s;

	scene_open(env, &rdma);
	s = scene_make(env, rdma, QPT_RC, OP_WRITE);
	nic_ok(env->nic, rdma_cq_create(rdma, &cq, &small));
	config.sq_cq = config.rq_cq = cq;
	nic_ok(env->nic, rdma_qp_create(rdma, &qp, &config));
	nic_ok(env->nic, rdma_qp_connect(qp, qp, &path));
	for (int i = 0; i < 40; i++) { /* one turn each, so that each has a completion */
		nic_ok(env->nic, rdma_send(qp, &s.send));
		nic_ok(env->nic, rdma_qp_query(qp, &info));
		if (info.state == QPS_ERR)
			break;
	}
	nic_ok(env->nic, rdma_qp_query(qp, &info));
	assert_int_equal(info.state, QPS_ERR);
	nic_ok(env->nic, rdma_events(rdma) < 0);
	assert_true(cq->failed);
	assert_true(qp->events >> EQE_QP_FATAL & 1);
	nic_ok(env->nic, rdma_qp_destroy(qp));
	nic_ok(env->nic, rdma_cq_destroy(cq));
	scene_end(&s);
	scene_run(env, rdma, QPT_RC, OP_WRITE);
	nic_ok(env->nic, rdma_close(rdma));
}

/* A scene in a NIC of its own, and its end. */
static struct scene begin(void **state, uint8_t op)
{
	struct rdma *rdma;

	scene_open(*state, &rdma);
	return scene_make(*state, rdma, QPT_RC, op);
}

static void end(struct scene *s)
{
	scene_end(s);
	nic_ok(s->env->nic, rdma_close(s->rdma));
}

/* Posts in states that have no sends or receives are not heard, and nothing is lost later. */
static void test_posts_in_every_state(void **state)
{
	struct env *env = *state;
	struct rdma_path path = RDMA_PATH;
	struct rdma_wc wc;
	struct scene s = begin(state, OP_WRITE);

	nic_ok(env->nic, rdma_qp_set_state(s.a, QPS_RESET));
	nic_ok(env->nic, rdma_ring_send(s.a));
	nic_ok(env->nic, rdma_doorbell(s.rdma, SCENE_PAGE, s.rdma->id.slot.sq, 0, s.a->id, 3));
	nic_ok(env->nic, rdma_doorbell(s.rdma, SCENE_PAGE, s.rdma->id.slot.rq, 0, s.a->id, 3));
	nic_ok(env->nic, rdma_qp_start(s.a, s.b->id, &path));
	assert_int_equal(rdma_poll(s.cq_a, &wc), 0);
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	assert_int_equal(wc.status, WC_OK);
	end(&s);
}

static void expect_event(struct rdma_cq *cq, uint64_t number)
{
	while (cq->notified < number)
		if (rdma_events_wait(cq->rdma, 2, 5000) <= 0)
			fail_msg("no event %llu", (unsigned long long)number);
	assert_int_equal(cq->notified, number);
}

/* The event of a CQ: at once when it holds entries, at the next entry otherwise, once. */
static void test_events(void **state)
{
	struct env *env = *state;
	struct rdma_wc wc;
	struct scene s = begin(state, OP_WRITE);

	for (uint64_t i = 1; i <= 20; i++) {
		nic_ok(env->nic, rdma_send(s.a, &s.send));
		if (i > 1) /* the first comes unasked: a process may block before it ever armed */
			nic_ok(env->nic, rdma_cq_arm(s.cq_a, false));
		expect_event(s.cq_a, i);
		nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
		assert_int_equal(s.cq_a->notified, i);
	}
	end(&s);
}

/* What is posted in ERR has an event too, for who waits for its flush: on each queue, each time. */
static void test_posts_in_error(void **state)
{
	struct env *env = *state;
	struct rdma_path path = RDMA_PATH;
	struct rdma_wc wc;
	struct scene s = begin(state, OP_SEND);

	nic_ok(env->nic, rdma_qp_set_state(s.a, QPS_ERR));
	expect_event(s.cq_a, 1); /* of the markers */
	assert_int_equal(rdma_poll(s.cq_a, &wc), 0);
	for (uint64_t i = 2; i <= 20; i++) {
		nic_ok(env->nic, rdma_cq_arm(s.cq_a, i % 3 == 0));
		if (i % 2)
			nic_ok(env->nic, rdma_send(s.a, &s.send));
		else
			nic_ok(env->nic, rdma_recv(s.a, &s.recv));
		expect_event(s.cq_a, i);
		assert_int_equal(rdma_poll(s.cq_a, &wc), 1);
		assert_int_equal(wc.status, WC_FLUSH);
		assert_int_equal(rdma_poll(s.cq_a, &wc), 0);
	}
	/* Started anew, none is left over. */
	nic_ok(env->nic, rdma_recv(s.a, &s.recv));
	nic_ok(env->nic, rdma_qp_set_state(s.a, QPS_RESET));
	assert_int_equal(rdma_poll(s.cq_a, &wc), 0);
	nic_ok(env->nic, rdma_qp_set_state(s.b, QPS_RESET));
	nic_ok(env->nic, rdma_qp_connect(s.a, s.b, &path));
	nic_ok(env->nic, rdma_recv(s.b, &s.recv));
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	assert_int_equal(wc.status, WC_OK);
	end(&s);
}

#define WRAP_SENDS 3000

/* Sends are signalled one in three. */
static void take_sends(struct scene *s, uint32_t until_room)
{
	struct rdma_wc wc;
	int got;

	do {
		got = rdma_poll(s->cq_a, &wc);
		assert_true(got >= 0);
		if (got == 1) {
			assert_int_equal(wc.status, WC_OK);
			assert_true(wc.wr_id % 3 == 0);
		}
	} while (got == 1 || ((s->a->sq.prod - s->a->sq.cons) & 63) + until_room > 63);
}

/* Many in a row, wrapping all rings, with unsignalled ones between: retired in order, none lost. */
static void test_rings_wrap(void **state)
{
	struct env *env = *state;
	struct rdma_wc wc;
	struct scene s = begin(state, OP_SEND);
	uint64_t posted = 0, done = 0;

	while (done < WRAP_SENDS) {
		while (posted < WRAP_SENDS && posted - done < 60) {
			s.recv.wr_id = s.send.wr_id = ++posted;
			s.send.flags = posted % 3 ? 0 : WQE_SIGNALED;
			nic_ok(env->nic, rdma_recv(s.b, &s.recv));
			take_sends(&s, 1);
			nic_ok(env->nic, rdma_send(s.a, &s.send));
		}
		nic_ok(env->nic, rdma_wait(s.cq_b, &wc));
		assert_int_equal(wc.status, WC_OK);
		assert_int_equal(wc.wr_id, ++done);
	}
	take_sends(&s, 63);
	end(&s);
}

/* ---- other processes ---- */

/* A doorbell on any page but the owner's is not heard, whatever it says. */
static void test_foreign_doorbells(void **state)
{
	static const uint16_t pages[] = {0, SCENE_PAGE - 1, SCENE_PAGE + 1, 255};
	struct env *env = *state;
	struct rdma_qp_info info;
	struct rdma_wc wc;
	struct scene s = begin(state, OP_SEND);

	scene_target(&s);
	nic_ok(env->nic, rdma_post_recv(s.b, &s.recv));
	nic_ok(env->nic, rdma_post_send(s.a, &s.send));
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		nic_ok(env->nic, rdma_doorbell(s.rdma, pages[i], s.rdma->id.slot.rq, 0, s.b->id,
		                               s.b->rq.prod));
		nic_ok(env->nic, rdma_doorbell(s.rdma, pages[i], s.rdma->id.slot.sq, 0, s.a->id,
		                               s.a->sq.prod));
		nic_ok(env->nic,
		       rdma_doorbell(s.rdma, pages[i], s.rdma->id.slot.cq, 0, s.cq_a->id, 7));
		nic_ok(env->nic,
		       rdma_doorbell(s.rdma, pages[i], s.rdma->id.slot.cq, 1, s.cq_a->id, 7));
		/* The admin queue is the kernel's. */
		if (pages[i] != 0)
			nic_ok(env->nic,
			       rdma_doorbell(s.rdma, pages[i], s.rdma->id.slot.aq, 0, 0, 77));
	}
	nic_ok(env->nic, rdma_qp_query(s.a, &info));
	assert_int_equal(info.state, QPS_RTS);
	assert_int_equal(rdma_poll(s.cq_a, &wc), 0);
	assert_int_equal(rdma_poll(s.cq_b, &wc), 0);
	sys_ok(server_stats_wait(env->server, 2));
	assert_int_equal(env_counter(env, "ionic_rdma_bad_page"), 4 * ARRAY_SIZE(pages) + 3);
	nic_ok(env->nic, rdma_ring_recv(s.b));
	nic_ok(env->nic, rdma_ring_send(s.a));
	nic_ok(env->nic, rdma_wait(s.cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	end(&s);
}

/* However many rings name one page in all entries of their tables: what the server keeps of the
 * tables has a limit, and is given back. */
static void test_tables_without_end(void **state)
{
	enum { DEPTH = 16, STRIDE = 9, PAGES = 1 << (DEPTH + STRIDE - 12), MOST = 1 << 22 };
	struct env *env = *state;
	struct rdma *rdma;
	struct rdma_cq *cq;
	const struct rdma_cq_config config = {.log2 = 8, .page = 5};
	unsigned made[2] = {0, 0};

	nic_ok(env->nic, rdma_open(&rdma, env->nic));
	nic_ok(env->nic, rdma_cq_create(rdma, &cq, &config));
	uint64_t table = ram_take(&env->nic->ram, PAGES * sizeof(le64));
	le64 *entry = ram_at(&env->nic->ram, table);

	for (unsigned i = 0; i < PAGES; i++)
		entry[i] = le64_make(table);
	for (unsigned round = 0; round < 2; round++) {
		for (;;) {
			union rdma_admin_cmd cmd = {{0}};

			cmd.create_qp.sq = cmd.create_qp.rq =
			        (struct rdma_ring_desc){.cq_id = le32_make(cq->id),
			                                .depth_log2 = DEPTH,
			                                .stride_log2 = STRIDE,
			                                .page_size_log2 = 12,
			                                .tbl_index = le32_make(AQ_NO_INDEX),
			                                .map_count = le32_make(PAGES),
			                                .dma_addr = le64_make(table)};
			cmd.create_qp.pd = le32_make(3);
			cmd.create_qp.id = le32_make(10 + made[round]);
			cmd.create_qp.dbid = le16_make(5);
			cmd.create_qp.type = QPT_RC;
			if (rdma_admin(rdma, AQ_CREATE_QP, &cmd, AQ_CREATE_QP_LEN))
				break;
			made[round]++;
		}
		for (unsigned i = 0; i < made[round]; i++) {
			union rdma_admin_cmd cmd = {{0}};

			cmd.destroy.id = le32_make(10 + i);
			nic_ok(env->nic, rdma_admin(rdma, AQ_DESTROY_QP, &cmd, AQ_DESTROY_LEN));
		}
	}
	assert_in_range(made[0], 1, MOST / PAGES / 2);
	assert_int_equal(made[1], made[0]);
	rdma_cq_free(cq);
	rdma_free(rdma);
}

/* Indices beyond rings, rings and queues that do not exist: nothing happens. */
static void test_wild_doorbells(void **state)
{
	struct env *env = *state;
	uint32_t seed = env_seed();
	struct rdma *rdma;

	scene_open(env, &rdma);
	for (int i = 0; i < 20000; i++) {
		uint8_t slot = (uint8_t)(env_random(&seed) % 16);
		uint32_t id = env_random(&seed) % 4 ? env_random(&seed) & 0xffffff : 0;

		if (slot == rdma->id.slot.aq && id == 0)
			continue; /* that would be this test's own admin queue */
		if (slot < 3)
			continue; /* Ethernet */
		nic_ok(env->nic, rdma_doorbell(rdma, (uint16_t)(env_random(&seed) % 256), slot,
		                               env_random(&seed) % 8, id, env_random(&seed)));
	}
	scene_run(env, rdma, QPT_RC, OP_WRITE);
	nic_ok(env->nic, rdma_close(rdma));
}

#define ABUSE_SIZE (8u << 20)
#define ABUSES     31
#define PINGS      20

/* A second connected pair that completes into the CQs of the scene. */
static void second_pair(struct scene *s, struct rdma_qp **a, struct rdma_qp **b)
{
	const struct rdma_path path = RDMA_PATH;
	struct rdma_qp_config config = {
	        .type = QPT_RC, .pd = SCENE_PD, .page = SCENE_PAGE + 1, .sq_log2 = 6, .rq_log2 = 6};

	config.sq_cq = config.rq_cq = s->cq_a;
	nic_ok(s->env->nic, rdma_qp_create(s->rdma, a, &config));
	config.sq_cq = config.rq_cq = s->cq_b;
	nic_ok(s->env->nic, rdma_qp_create(s->rdma, b, &config));
	nic_ok(s->env->nic, rdma_qp_connect(*a, *b, &path));
}

/*
 * One process posts 31 messages of 8 MiB, another one of eight bytes behind them, and the device
 * learns of both at once. The second waits for a slice of the first's, not for whole messages: the
 * order of the completions in their CQ says so, whatever the clock does meanwhile.
 */
static void test_abuser(void **state)
{
	struct env *env = *state;
	const struct rdma_mr_config big = {.pd = SCENE_PD, .flags = MRF_ALL, .size = ABUSE_SIZE};
	struct rdma_send flood = {.op = OP_WRITE, .flags = WQE_SIGNALED, .num_sge = 1};
	struct rdma_qp *victim, *other;
	struct rdma_mr src, dst;
	struct scene s = begin(state, OP_WRITE);

	second_pair(&s, &victim, &other);
	nic_ok(env->nic, rdma_mr_create(s.rdma, &src, &big));
	nic_ok(env->nic, rdma_mr_create(s.rdma, &dst, &big));
	flood.sge[0] = rdma_sge(&src, 0, ABUSE_SIZE);
	flood.va = dst.va;
	flood.rkey = dst.key;
	s.send.sge[0].len = 8;
	for (int ping = 0; ping < PINGS; ping++) {
		int served = -1; /* messages of the abuser before that of the victim */

		for (int i = 0; i < ABUSES; i++)
			nic_ok(env->nic, rdma_post_send(s.a, &flood));
		nic_ok(env->nic, rdma_post_send(victim, &s.send));
		vfu_hold(env->nic->vfu);
		nic_ok(env->nic, rdma_ring_send(s.a));
		nic_ok(env->nic, rdma_ring_send(victim));
		nic_ok(env->nic, vfu_release(env->nic->vfu));
		for (int done = 0; done <= ABUSES; done++) {
			struct rdma_wc wc;

			nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
			assert_int_equal(wc.status, WC_OK);
			if (wc.wr_id == s.send.wr_id)
				served = done;
		}
		assert_in_range(served, 0, 1);
	}
	nic_ok(env->nic, rdma_qp_destroy(victim));
	nic_ok(env->nic, rdma_qp_destroy(other));
	nic_ok(env->nic, rdma_mr_destroy(&src));
	nic_ok(env->nic, rdma_mr_destroy(&dst));
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_cq_overflow, &bare),    ENV_TEST(test_posts_in_every_state, &bare),
	        ENV_TEST(test_events, &bare),         ENV_TEST(test_posts_in_error, &bare),
	        ENV_TEST(test_rings_wrap, &bare),     ENV_TEST(test_foreign_doorbells, &bare),
	        ENV_TEST(test_wild_doorbells, &bare), ENV_TEST(test_tables_without_end, &bare),
	        ENV_TEST(test_abuser, &bare),
	};

	return env_main("driver/rdma_queues", tests, false);
}
