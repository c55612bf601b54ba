// SPDX-License-Identifier: GPL-2.0-or-later
/* The scene of a test of verbs, rdma_scene.h. */
#include "rdma_scene.h"

#include <string.h>

const unsigned scene_opcodes[4] = {
        [QPT_RC] = TRANSFERS,
        [QPT_UC] = OP(SEND) | OP(SEND_IMM) | WRITES,
        [QPT_UD] = OP(SEND) | OP(SEND_IMM),
};

uint32_t scene_size(const struct scene *s)
{
	if (1u << s->send.op & ATOMICS)
		return 8;
	return s->type == QPT_UD ? 1000 : SCENE_LENGTH;
}

void scene_region(struct scene *s, struct rdma_mr *mr, uint32_t pd, uint32_t flags)
{
	const struct rdma_mr_config config = {
	        .pd = pd, .flags = flags, .size = SCENE_BOUNDS, .scattered = true};

	nic_ok(s->env->nic, rdma_mr_create(s->rdma, mr, &config));
}

static void make_pair(struct scene *s)
{
	struct rdma_path path = RDMA_PATH;
	struct rdma_qp_config config = {
	        .type = s->type, .pd = SCENE_PD, .page = SCENE_PAGE, .sq_log2 = 6, .rq_log2 = 6};
	const struct rdma_cq_config cq = {.log2 = 8, .eq = 2, .page = SCENE_PAGE};

	nic_ok(s->env->nic, rdma_cq_create(s->rdma, &s->cq_a, &cq));
	nic_ok(s->env->nic, rdma_cq_create(s->rdma, &s->cq_b, &cq));
	config.sq_cq = config.rq_cq = s->cq_a;
	nic_ok(s->env->nic, rdma_qp_create(s->rdma, &s->a, &config));
	config.sq_cq = config.rq_cq = s->cq_b;
	nic_ok(s->env->nic, rdma_qp_create(s->rdma, &s->b, &config));
	/* Nobody waits long for a peer that is gone. */
	path.timeout = 8;
	path.retry = 1;
	nic_ok(s->env->nic, rdma_qp_connect(s->a, s->b, &path));
}

static void make_request(struct scene *s, uint8_t op)
{
	uint32_t grh = s->type == QPT_UD ? RDMA_GRH : 0;

	s->send = (struct rdma_send){.wr_id = 0xabc,
	                             .op = op,
	                             .flags = WQE_SIGNALED,
	                             .num_sge = 1,
	                             .imm = op == OP_SEND_INV ? s->spare.key : 0x44332211,
	                             .va = s->dst.va,
	                             .rkey = s->dst.key,
	                             .swap_add = 5,
	                             .compare = 0,
	                             .ah = s->ah,
	                             .qpn = s->b->id,
	                             .qkey = s->b->qkey};
	s->send.sge[0] = rdma_sge(&s->src, 0, scene_size(s));
	s->recv = (struct rdma_recv){.wr_id = 0xdef, .num_sge = 1};
	s->recv.sge[0] = rdma_sge(&s->dst, 0, scene_size(s) + grh);
}

struct scene scene_make(struct env *env, struct rdma *rdma, enum rdma_qp_type type, uint8_t op)
{
	struct scene s = {.env = env, .rdma = rdma, .type = type, .used = env->nic->ram.used};

	make_pair(&s);
	scene_region(&s, &s.src, SCENE_PD, MRF_LOCAL_WRITE);
	scene_region(&s, &s.dst, SCENE_PD, MRF_ALL);
	nic_ok(env->nic, rdma_mr_create_empty(rdma, &s.spare, SCENE_PD, MRF_MW_2));
	nic_ok(env->nic, rdma_ah_create(rdma, SCENE_PD, env->nic->mac, &s.ah));
	rdma_mr_fill(&s.src, 0, SCENE_BOUNDS, SCENE_SEED);
	make_request(&s, op);
	return s;
}

void scene_end(struct scene *s)
{
	struct nic *nic = s->env->nic;

	nic_ok(nic, rdma_qp_destroy(s->a));
	if (s->b)
		nic_ok(nic, rdma_qp_destroy(s->b));
	nic_ok(nic, rdma_cq_destroy(s->cq_a));
	nic_ok(nic, rdma_cq_destroy(s->cq_b));
	nic_ok(nic, rdma_mr_destroy(&s->src));
	if (s->dst.key)
		nic_ok(nic, rdma_mr_destroy(&s->dst));
	nic_ok(nic, rdma_mr_destroy(&s->spare));
	if (s->has_extra)
		nic_ok(nic, rdma_mr_destroy(&s->extra));
	nic_ok(nic, rdma_ah_destroy(s->rdma, s->ah));
	nic->ram.used = s->used;
}

void scene_bind(struct scene *s)
{
	struct rdma_send bind = {.wr_id = 1,
	                         .op = OP_BIND_MW,
	                         .flags = WQE_SIGNALED,
	                         .imm = s->spare.key,
	                         .va = s->dst.va,
	                         .length = SCENE_BOUNDS,
	                         .lkey = s->dst.key,
	                         .access = 0xc000 | MRF_REMOTE_WRITE | MRF_REMOTE_READ};
	struct rdma_wc wc;

	nic_ok(s->env->nic, rdma_send(s->b, &bind));
	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	/* The new key: the byte that the request gave (6.3). */
	s->spare.key = (s->spare.key & ~0xffu) | ((s->spare.key + 1) & 0xff);
	if (s->send.op == OP_SEND_INV)
		s->send.imm = s->spare.key;
}

void scene_open(struct env *env, struct rdma **rdma)
{
	nic_ok(env->nic, rdma_open(rdma, env->nic));
}

/* ---- what succeeds ---- */

static void check_receive(struct scene *s)
{
	uint32_t grh = s->type == QPT_UD ? RDMA_GRH : 0;
	static const uint8_t ops[OP_COUNT] = {
	        [OP_SEND_INV] = 1, [OP_SEND_IMM] = 2, [OP_WRITE_IMM] = 3};
	struct rdma_wc wc;

	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	assert_true(wc.recv);
	assert_int_equal(wc.wr_id, 0xdef);
	assert_int_equal(wc.op, ops[s->send.op]);
	assert_int_equal(wc.length, scene_size(s) + grh);
	assert_int_equal(wc.src_qpn, s->a->id);
	assert_int_equal(wc.ipv4, s->type == QPT_UD);
	if (s->send.op != OP_SEND)
		assert_int_equal(wc.imm, s->send.imm);
}

static void check_landed(struct scene *s)
{
	uint32_t size = scene_size(s), grh = s->type == QPT_UD ? RDMA_GRH : 0;
	uint64_t word;

	if (1u << s->send.op & ATOMICS) {
		memcpy(&word, rdma_mr_at(&s->dst, 0), 8);
		assert_int_equal(word, s->send.op == OP_CMP_SWAP ? 5 : 1005);
		memcpy(&word, rdma_mr_at(&s->src, 0), 8);
		assert_int_equal(word, s->send.op == OP_CMP_SWAP ? 0 : 1000);
	} else {
		assert_true(rdma_mr_check(&s->dst, grh, size, SCENE_SEED));
		assert_int_equal(*(uint8_t *)rdma_mr_at(&s->dst, grh + size), 0);
	}
}

void scene_target(struct scene *s)
{
	uint64_t word = s->send.op == OP_FETCH_ADD ? 1000 : 0;

	for (size_t i = 0; i < SCENE_BOUNDS; i++)
		*(uint8_t *)rdma_mr_at(&s->dst, i) = 0;
	memcpy(rdma_mr_at(&s->dst, 0), &word, 8);
	if (s->send.op == OP_READ) { /* the other way round */
		rdma_mr_fill(&s->dst, 0, SCENE_BOUNDS, SCENE_SEED);
		for (size_t i = 0; i < SCENE_BOUNDS; i++)
			*(uint8_t *)rdma_mr_at(&s->src, i) = 0;
	}
}

void scene_run(struct env *env, struct rdma *rdma, enum rdma_qp_type type, uint8_t op)
{
	struct scene s = scene_make(env, rdma, type, op);
	struct rdma_wc wc;

	if (op == OP_SEND_INV)
		scene_bind(&s);
	scene_target(&s);
	if (1u << op & RECEIVES)
		nic_ok(env->nic, rdma_recv(s.b, &s.recv));
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	assert_int_equal(wc.status, WC_OK);
	assert_int_equal(wc.wr_id, 0xabc);
	assert_int_equal(wc.op, op);
	if (1u << op & RECEIVES)
		check_receive(&s);
	if (op == OP_READ)
		assert_true(rdma_mr_check(&s.src, 0, SCENE_LENGTH, SCENE_SEED));
	else
		check_landed(&s);
	scene_end(&s);
}
