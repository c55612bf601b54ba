// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Verbs in numbers, and verbs cut off: ten thousand queue pairs, a hundred thousand regions, resets
 * of every kind and clients that vanish with traffic under way. What comes after finds a device as
 * after power-on, and nothing of the old memory is touched any more (spec ionic-rdma 2.5).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_scene.h"

static const struct env_options bare = {0};
static const struct env_options empty = {.no_nic = true};

/* ---- numbers ---- */

#define MANY_QPS     10000
#define MANY_REGIONS 100000
#define CELL         8 /* bytes that each QP writes, into a place of its own */

struct crowd {
	struct env *env;
	struct rdma *rdma;
	struct rdma_cq *cq;
	struct rdma_mr src, dst;
	struct rdma_qp **qp;
};

static void crowd_make(struct crowd *c)
{
	const struct rdma_mr_config mr = {
	        .pd = SCENE_PD, .flags = MRF_ALL, .size = MANY_QPS * CELL, .scattered = true};
	const struct rdma_cq_config cq = {.log2 = 15, .eq = 2, .page = SCENE_PAGE};
	struct rdma_qp_config qp = {.pd = SCENE_PD, .page = SCENE_PAGE, .sq_log2 = 2, .rq_log2 = 1};
	struct rdma_path path = RDMA_PATH;

	scene_open(c->env, &c->rdma);
	nic_ok(c->env->nic, rdma_cq_create(c->rdma, &c->cq, &cq));
	nic_ok(c->env->nic, rdma_mr_create(c->rdma, &c->src, &mr));
	nic_ok(c->env->nic, rdma_mr_create(c->rdma, &c->dst, &mr));
	c->qp = calloc(MANY_QPS, sizeof(struct rdma_qp *));
	assert_non_null(c->qp);
	qp.sq_cq = qp.rq_cq = c->cq;
	rdma_admin_defer(c->rdma);
	for (unsigned i = 0; i < MANY_QPS; i++)
		nic_ok(c->env->nic, rdma_qp_create(c->rdma, &c->qp[i], &qp));
	for (unsigned i = 0; i < MANY_QPS; i += 2)
		nic_ok(c->env->nic, rdma_qp_connect(c->qp[i], c->qp[i + 1], &path));
	nic_ok(c->env->nic, rdma_admin_sync(c->rdma));
}

static void crowd_take(struct crowd *c, unsigned count)
{
	struct rdma_wc wc;

	while (count-- > 0) {
		nic_ok(c->env->nic, rdma_wait(c->cq, &wc));
		assert_int_equal(wc.status, WC_OK);
	}
}

static void test_many_qps(void **state)
{
	struct crowd c = {.env = *state};
	struct rdma_send send = {.op = OP_WRITE, .flags = WQE_SIGNALED, .num_sge = 1};

	crowd_make(&c);
	for (unsigned i = 0; i < MANY_QPS; i++)
		rdma_mr_fill(&c.src, i * CELL, CELL, i);
	for (unsigned i = 0; i < MANY_QPS; i++) {
		send.sge[0] = rdma_sge(&c.src, i * CELL, CELL);
		send.va = c.dst.va + i * CELL;
		send.rkey = c.dst.key;
		nic_ok(c.env->nic, rdma_send(c.qp[i], &send));
	}
	crowd_take(&c, MANY_QPS);
	for (unsigned i = 0; i < MANY_QPS; i++)
		if (!rdma_mr_check(&c.dst, i * CELL, CELL, i))
			fail_msg("QP %u wrote something else", c.qp[i]->id);
	rdma_admin_defer(c.rdma);
	for (unsigned i = 0; i < MANY_QPS; i++)
		nic_ok(c.env->nic, rdma_qp_destroy(c.qp[i]));
	nic_ok(c.env->nic, rdma_admin_sync(c.rdma));
	free(c.qp);
	nic_ok(c.env->nic, rdma_cq_destroy(c.cq));
	scene_run(c.env, c.rdma, QPT_RC, OP_SEND);
	nic_ok(c.env->nic, rdma_close(c.rdma));
}

/* Every key names its own bytes, and none that was destroyed names any. */
static void test_many_regions(void **state)
{
	struct env *env = *state;
	struct rdma_mr *mr = calloc(MANY_REGIONS, sizeof(*mr));
	struct rdma_mr_config config = {.pd = SCENE_PD, .flags = MRF_ALL, .size = CELL};
	uint32_t seed = env_seed();
	uint64_t memory = ram_take(&env->nic->ram, (size_t)MANY_REGIONS * CELL);
	struct rdma_wc wc;
	struct rdma *rdma;
	struct scene s;

	assert_non_null(mr);
	assert_true(memory != 0);
	scene_open(env, &rdma);
	s = scene_make(env, rdma, QPT_RC, OP_WRITE);
	rdma_admin_defer(rdma);
	for (uint32_t i = 0; i < MANY_REGIONS; i++) {
		config.addr = memory + (uint64_t)i * CELL;
		nic_ok(env->nic, rdma_mr_create(rdma, &mr[i], &config));
	}
	nic_ok(env->nic, rdma_admin_sync(rdma));
	s.send.sge[0].len = CELL;
	for (int n = 0; n < 1000; n++) {
		uint32_t i = env_random(&seed) % MANY_REGIONS;

		rdma_mr_fill(&s.src, 0, CELL, i);
		s.send.va = mr[i].va;
		s.send.rkey = mr[i].key;
		nic_ok(env->nic, rdma_send(s.a, &s.send));
		nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
		assert_int_equal(wc.status, WC_OK);
		assert_memory_equal(ram_at(&env->nic->ram, mr[i].addr), rdma_mr_at(&s.src, 0),
		                    CELL);
	}
	rdma_admin_defer(rdma);
	for (uint32_t i = 0; i < MANY_REGIONS; i++)
		nic_ok(env->nic, rdma_mr_destroy(&mr[i]));
	nic_ok(env->nic, rdma_admin_sync(rdma));
	s.send.rkey = mr[env_random(&seed) % MANY_REGIONS].key;
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	assert_int_equal(wc.status, WC_REM_ACCESS);
	scene_end(&s);
	nic_ok(env->nic, rdma_close(rdma));
	free(mr);
}

/* ---- traffic to cut off ---- */

#define LOAD_QPS  6
#define LOAD_SIZE (1u << 20)

struct load {
	struct rdma *rdma;
	struct rdma_cq *cq;
	struct rdma_mr src, dst;
	struct rdma_qp *qp[LOAD_QPS];
};

static void load_make(struct env *env, struct load *load)
{
	static const enum rdma_qp_type types[LOAD_QPS] = {QPT_RC, QPT_RC, QPT_UC,
	                                                  QPT_UC, QPT_RC, QPT_RC};
	const struct rdma_mr_config mr = {
	        .pd = SCENE_PD, .flags = MRF_ALL, .size = LOAD_SIZE, .scattered = true};
	const struct rdma_cq_config cq = {.log2 = 10, .eq = 2, .page = SCENE_PAGE};
	struct rdma_qp_config qp = {.pd = SCENE_PD, .page = SCENE_PAGE, .sq_log2 = 6, .rq_log2 = 6};
	struct rdma_path path = RDMA_PATH;

	scene_open(env, &load->rdma);
	nic_ok(env->nic, rdma_cq_create(load->rdma, &load->cq, &cq));
	nic_ok(env->nic, rdma_mr_create(load->rdma, &load->src, &mr));
	nic_ok(env->nic, rdma_mr_create(load->rdma, &load->dst, &mr));
	qp.sq_cq = qp.rq_cq = load->cq;
	for (unsigned i = 0; i < LOAD_QPS; i++) {
		qp.type = types[i];
		nic_ok(env->nic, rdma_qp_create(load->rdma, &load->qp[i], &qp));
	}
	for (unsigned i = 0; i < LOAD_QPS; i += 2)
		nic_ok(env->nic, rdma_qp_connect(load->qp[i], load->qp[i + 1], &path));
}

/* Fills all queues and rings: WRITEs, SENDs with receives, and SENDs that wait for one. */
static void load_start(struct env *env, struct load *load, uint32_t *seed)
{
	for (unsigned i = 0; i < LOAD_QPS; i++) {
		uint32_t size = 1 + env_random(seed) % LOAD_SIZE;
		struct rdma_send send = {.op = i % 3 == 0 ? OP_SEND : OP_WRITE,
		                         .flags = WQE_SIGNALED,
		                         .num_sge = 1,
		                         .sge = {rdma_sge(&load->src, 0, size)},
		                         .va = load->dst.va,
		                         .rkey = load->dst.key};
		const struct rdma_recv recv = {.num_sge = 1,
		                               .sge = {rdma_sge(&load->dst, 0, LOAD_SIZE)}};

		while (rdma_post_send(load->qp[i], &send) == 0)
			;
		for (unsigned n = env_random(seed) % 60; n > 0; n--)
			nic_ok(env->nic, rdma_post_recv(load->qp[i], &recv));
		nic_ok(env->nic, rdma_ring_recv(load->qp[i]));
		nic_ok(env->nic, rdma_ring_send(load->qp[i]));
	}
}

static void load_free(struct load *load)
{
	for (unsigned i = 0; i < LOAD_QPS; i++)
		rdma_qp_free(load->qp[i]);
	rdma_cq_free(load->cq);
	rdma_free(load->rdma);
}

/* ---- resets ---- */

static int reset_rdma(struct nic *nic)
{
	return rdma_reset_lif(nic);
}

static int reset_lif(struct nic *nic)
{
	const struct cmd cmd = {.opcode = CMD_LIF_RESET};

	return nic_devcmd(nic, &cmd, NULL);
}

static int reset_command(struct nic *nic)
{
	const struct cmd cmd = {.opcode = CMD_RESET};

	return nic_devcmd(nic, &cmd, NULL);
}

static int reset_message(struct nic *nic)
{
	return vfu_reset(nic->vfu);
}

static int (*const resets[])(struct nic *nic) = {reset_rdma, reset_lif, reset_command,
                                                 reset_message, nic_config_flr};

/* From when the reset is complete on, the memory is the guest's alone. */
static void expect_quiet(struct env *env, const struct load *load)
{
	size_t ring = CQE_SIZE << load->cq->ring.log2;
	uint8_t *target = ram_at(&env->nic->ram, load->dst.addr);
	uint8_t *cq = ram_at(&env->nic->ram, load->cq->ring.base);

	memset(target, 0x5a, LOAD_SIZE);
	memset(cq, 0x5a, ring);
	/* Turns of the server: each answer is one. */
	for (int i = 0; i < 20; i++)
		assert_true(nic_fw_status(env->nic) >= 0);
	for (size_t i = 0; i < LOAD_SIZE; i++)
		assert_int_equal(target[i], 0x5a);
	for (size_t i = 0; i < ring; i++)
		assert_int_equal(cq[i], 0x5a);
}

static void test_reset_under_traffic(void **state)
{
	struct env *env = *state;
	uint32_t seed = env_seed();

	for (unsigned round = 0; round < 50; round++) {
		unsigned kind = round % ARRAY_SIZE(resets);
		size_t used = env->nic->ram.used;
		struct rdma *rdma;
		struct load load;

		load_make(env, &load);
		load_start(env, &load, &seed);
		/* Sometimes at once, sometimes when much of it is done. */
		for (unsigned n = env_random(&seed) % 8; n > 0; n--)
			assert_true(nic_fw_status(env->nic) >= 0);
		nic_ok(env->nic, resets[kind](env->nic));
		if (kind == ARRAY_SIZE(resets) - 1 || resets[kind] == reset_message) {
			/* No memory decode until the next probe; the message was answered. */
			uint16_t word;

			nic_ok(env->nic, nic_config_read(env->nic, 0, &word, sizeof(word)));
		} else {
			expect_quiet(env, &load);
		}
		load_free(&load);
		if (kind == 0) {
			env->nic->ram.used = used;
		} else {
			nic_forget(env->nic);
			nic_ok(env->nic, nic_probe(env->nic));
			nic_ok(env->nic, nic_up(env->nic));
		}
		scene_open(env, &rdma);
		scene_run(env, rdma, QPT_RC, OP_SEND);
		nic_ok(env->nic, rdma_close(rdma));
		if (kind == 0)
			env->nic->ram.used = used;
	}
}

/* ---- clients that vanish ---- */

static void open_client(struct env *env)
{
	struct nic_options options = env_nic_options(env);

	options.brief = true;
	options.ram_size = 64u << 20;
	nic_ok(NULL, nic_start(&env->nic, &options));
}

/* The socket closes in the middle of it all, a hundred times; the server is in good health. */
static void test_client_killed(void **state)
{
	struct env *env = *state;
	uint32_t seed = env_seed();
	struct rdma *rdma;

	for (unsigned round = 0; round < 100; round++) {
		struct load load;

		open_client(env);
		load_make(env, &load);
		load_start(env, &load, &seed);
		for (unsigned n = env_random(&seed) % 4; n > 0; n--)
			assert_true(nic_fw_status(env->nic) >= 0);
		load_free(&load);
		nic_close(env->nic);
		env->nic = NULL;
	}
	open_client(env);
	scene_open(env, &rdma);
	for (unsigned op = OP_SEND; op <= OP_FETCH_ADD; op++)
		scene_run(env, rdma, QPT_RC, (uint8_t)op);
	nic_ok(env->nic, rdma_close(rdma));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_many_qps, &bare),
	        ENV_TEST(test_many_regions, &bare),
	        ENV_TEST(test_reset_under_traffic, &bare),
	        ENV_TEST(test_client_killed, &empty),
	};

	return env_main("driver/rdma_stress", tests, false);
}
