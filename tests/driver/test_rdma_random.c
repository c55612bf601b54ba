// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random sequences of verbs through real queues, against a model that is two arrays: batches of
 * requests with random pieces, sizes, flags and receives, and after each batch every byte of both
 * ends and every completion is compared. A run repeats with the seed that it prints.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_scene.h"

#define MEMORY     32768u /* bytes of each end */
#define ROUNDS     150
#define BATCH_MAX  20
#define INLINE_MAX 200
#define PIECE_MAX  3000u
#define QP_LOG2    6

static const struct env_options bare = {0}, empty = {.no_nic = true};

/* One connected pair: a asks, b answers. */
struct pair {
	struct env *env;
	enum rdma_qp_type type;
	struct rdma_cq *cq_a, *cq_b;
	struct rdma_qp *a, *b;
	struct rdma_mr mr_a, mr_b;
	uint8_t *model_a, *model_b;
	uint32_t *seed;
	/* what is to come of the batch */
	unsigned sends, recvs;
	bool signaled[BATCH_MAX];
	uint8_t op[BATCH_MAX];
	uint32_t recv_length[BATCH_MAX], recv_imm[BATCH_MAX];
	uint8_t recv_op[BATCH_MAX];
};

static uint32_t chance(struct pair *pair, uint32_t below)
{
	return env_random(pair->seed) % below;
}

static void load_model(const struct rdma_mr *mr, uint8_t *model)
{
	for (size_t i = 0; i < MEMORY; i++)
		model[i] = *(uint8_t *)rdma_mr_at(mr, i);
}

static void pair_make(struct pair *pair, struct rdma *rdma)
{
	const struct rdma_mr_config mr = {
	        .pd = SCENE_PD, .flags = MRF_ALL, .size = MEMORY, .scattered = true};
	const struct rdma_cq_config cq = {.log2 = 8, .eq = 2, .page = SCENE_PAGE};
	struct rdma_qp_config qp = {.type = pair->type,
	                            .pd = SCENE_PD,
	                            .page = SCENE_PAGE,
	                            .sq_log2 = QP_LOG2,
	                            .rq_log2 = QP_LOG2,
	                            .sq_stride = 8,
	                            .rq_stride = 8};
	struct rdma_path path = RDMA_PATH;

	nic_ok(pair->env->nic, rdma_cq_create(rdma, &pair->cq_a, &cq));
	nic_ok(pair->env->nic, rdma_cq_create(rdma, &pair->cq_b, &cq));
	nic_ok(pair->env->nic, rdma_mr_create(rdma, &pair->mr_a, &mr));
	nic_ok(pair->env->nic, rdma_mr_create(rdma, &pair->mr_b, &mr));
	qp.sq_cq = qp.rq_cq = pair->cq_a;
	nic_ok(pair->env->nic, rdma_qp_create(rdma, &pair->a, &qp));
	qp.sq_cq = qp.rq_cq = pair->cq_b;
	nic_ok(pair->env->nic, rdma_qp_create(rdma, &pair->b, &qp));
	nic_ok(pair->env->nic, rdma_qp_connect(pair->a, pair->b, &path));
	rdma_mr_fill(&pair->mr_a, 0, MEMORY, 3);
	rdma_mr_fill(&pair->mr_b, 0, MEMORY, 4);
	pair->model_a = malloc(MEMORY);
	pair->model_b = malloc(MEMORY);
	assert_true(pair->model_a && pair->model_b);
	load_model(&pair->mr_a, pair->model_a);
	load_model(&pair->mr_b, pair->model_b);
}

static void pair_free(struct pair *pair)
{
	nic_ok(pair->env->nic, rdma_qp_destroy(pair->a));
	nic_ok(pair->env->nic, rdma_qp_destroy(pair->b));
	nic_ok(pair->env->nic, rdma_cq_destroy(pair->cq_a));
	nic_ok(pair->env->nic, rdma_cq_destroy(pair->cq_b));
	free(pair->model_a);
	free(pair->model_b);
}

/* ---- pieces ---- */

struct pieces {
	unsigned count;
	uint32_t size; /* of all */
	struct rdma_sge sge[WQE_SGE_MAX];
	uint32_t offset[WQE_SGE_MAX];
};

static struct pieces random_pieces(struct pair *pair, const struct rdma_mr *mr, uint32_t limit)
{
	struct pieces pieces = {.count = chance(pair, 4) ? 1 + chance(pair, 2)
	                                                 : chance(pair, WQE_SGE_MAX + 1)};

	for (unsigned i = 0; i < pieces.count; i++) {
		uint32_t size = chance(pair, 3) ? chance(pair, 64) : chance(pair, PIECE_MAX);

		if (size > limit - pieces.size)
			size = limit - pieces.size;
		pieces.offset[i] = chance(pair, MEMORY - size + 1);
		pieces.sge[i] = rdma_sge(mr, pieces.offset[i], size);
		pieces.size += size;
	}
	return pieces;
}

/* Gathers the pieces of a model, or scatters bytes into them. */
static void gather(const struct pieces *pieces, const uint8_t *model, uint8_t *out)
{
	for (unsigned i = 0; i < pieces->count; i++) {
		memcpy(out, model + pieces->offset[i], pieces->sge[i].len);
		out += pieces->sge[i].len;
	}
}

static void scatter(const struct pieces *pieces, uint8_t *model, const uint8_t *in, uint32_t size)
{
	for (unsigned i = 0; i < pieces->count && size > 0; i++) {
		uint32_t part = pieces->sge[i].len < size ? pieces->sge[i].len : size;

		memcpy(model + pieces->offset[i], in, part);
		in += part;
		size -= part;
	}
}

/* ---- requests ---- */

static uint8_t pick_op(struct pair *pair)
{
	static const uint8_t ops[] = {OP_SEND,  OP_SEND_IMM, OP_WRITE,    OP_WRITE_IMM,
	                              OP_WRITE, OP_READ,     OP_CMP_SWAP, OP_FETCH_ADD};

	return ops[chance(pair, pair->type == QPT_UC ? 5 : ARRAY_SIZE(ops))];
}

/* Enlarges the last piece, so that there is room for SIZE bytes. */
static void make_room(struct pair *pair, struct pieces *pieces, uint32_t size)
{
	unsigned last;

	if (pieces->size >= size)
		return;
	if (pieces->count == 0)
		pieces->count = 1;
	last = pieces->count - 1;
	size -= pieces->size - pieces->sge[last].len;
	pieces->offset[last] = chance(pair, MEMORY - size + 1);
	pieces->sge[last] = rdma_sge(&pair->mr_b, pieces->offset[last], size);
}

/* A receive that the message fits in, and what it does to the model. */
static void expect_recv(struct pair *pair, const struct rdma_send *send, const uint8_t *bytes,
                        uint32_t size)
{
	struct pieces pieces = {0};
	struct rdma_recv recv = {.wr_id = pair->recvs};

	if (send->op != OP_WRITE_IMM) {
		pieces = random_pieces(pair, &pair->mr_b, MEMORY);
		make_room(pair, &pieces, size);
	}
	recv.num_sge = pieces.count;
	memcpy(recv.sge, pieces.sge, sizeof(recv.sge));
	nic_ok(pair->env->nic, rdma_post_recv(pair->b, &recv));
	if (send->op != OP_WRITE_IMM)
		scatter(&pieces, pair->model_b, bytes, size);
	pair->recv_length[pair->recvs] = size;
	pair->recv_imm[pair->recvs] = send->op == OP_SEND ? 0 : send->imm;
	pair->recv_op[pair->recvs++] = send->op == OP_SEND ? 0 : send->op == OP_SEND_IMM ? 2 : 3;
}

static void model_atomic(struct pair *pair, struct rdma_send *send)
{
	uint32_t at = chance(pair, MEMORY / 8) * 8, to = chance(pair, MEMORY - 7);
	uint64_t old, word;

	memcpy(&old, pair->model_b + at, 8);
	send->va = pair->mr_b.va + at;
	send->num_sge = 1;
	send->sge[0] = rdma_sge(&pair->mr_a, to, 8);
	send->swap_add = (uint64_t)env_random(pair->seed) << 32 | env_random(pair->seed);
	send->compare = chance(pair, 2) ? old : old + 1;
	word = send->op == OP_FETCH_ADD ? old + send->swap_add
	       : old == send->compare   ? send->swap_add
	                                : old;
	memcpy(pair->model_b + at, &word, 8);
	memcpy(pair->model_a + to, &old, 8);
}

static void model_message(struct pair *pair, struct rdma_send *send, uint8_t *bytes)
{
	struct pieces pieces = random_pieces(pair, &pair->mr_a, MEMORY);
	uint32_t at = chance(pair, MEMORY - pieces.size + 1), size = pieces.size;
	bool is_write = send->op == OP_WRITE || send->op == OP_WRITE_IMM;

	send->num_sge = pieces.count;
	memcpy(send->sge, pieces.sge, sizeof(send->sge));
	send->va = pair->mr_b.va + at;
	if (send->op == OP_READ) {
		scatter(&pieces, pair->model_a, pair->model_b + at, size);
		return;
	}
	gather(&pieces, pair->model_a, bytes);
	if (size <= INLINE_MAX && chance(pair, 2)) {
		send->flags |= WQE_INLINE;
		send->inline_data = bytes;
		send->inline_size = size;
	}
	if (is_write)
		memcpy(pair->model_b + at, bytes, size);
	if (send->op != OP_WRITE)
		expect_recv(pair, send, bytes, size);
}

static void post_one(struct pair *pair, bool fence, bool last)
{
	static uint8_t bytes[MEMORY];
	struct rdma_send send = {.wr_id = pair->sends,
	                         .op = pick_op(pair),
	                         .rkey = pair->mr_b.key,
	                         .imm = env_random(pair->seed)};

	send.flags =
	        (uint16_t)((fence ? WQE_FENCE : 0) | (last || chance(pair, 2) ? WQE_SIGNALED : 0));
	if (send.op == OP_CMP_SWAP || send.op == OP_FETCH_ADD)
		model_atomic(pair, &send);
	else
		model_message(pair, &send, bytes);
	nic_ok(pair->env->nic, rdma_post_send(pair->a, &send));
	pair->op[pair->sends] = send.op;
	pair->signaled[pair->sends++] = send.flags & WQE_SIGNALED;
}

static void expect_completions(struct pair *pair)
{
	struct rdma_wc wc;

	for (unsigned i = 0; i < pair->sends; i++) {
		if (!pair->signaled[i])
			continue;
		nic_ok(pair->env->nic, rdma_wait(pair->cq_a, &wc));
		assert_int_equal(wc.status, WC_OK);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.op, pair->op[i]);
	}
	for (unsigned i = 0; i < pair->recvs; i++) {
		nic_ok(pair->env->nic, rdma_wait(pair->cq_b, &wc));
		assert_int_equal(wc.status, WC_OK);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.op, pair->recv_op[i]);
		assert_int_equal(wc.length, pair->recv_length[i]);
		if (wc.op)
			assert_int_equal(wc.imm, pair->recv_imm[i]);
	}
	assert_int_equal(rdma_poll(pair->cq_a, &wc), 0);
	assert_int_equal(rdma_poll(pair->cq_b, &wc), 0);
}

static void expect_same_memory(struct pair *pair)
{
	for (size_t i = 0; i < MEMORY; i++) {
		if (*(uint8_t *)rdma_mr_at(&pair->mr_a, i) != pair->model_a[i])
			fail_msg("byte %zu of the asking end differs", i);
		if (*(uint8_t *)rdma_mr_at(&pair->mr_b, i) != pair->model_b[i])
			fail_msg("byte %zu of the answering end differs", i);
	}
}

static void run_batch(struct pair *pair)
{
	unsigned count = 1 + chance(pair, BATCH_MAX);
	bool fence = false;

	pair->sends = pair->recvs = 0;
	for (unsigned i = 0; i < count; i++) {
		post_one(pair, fence, i == count - 1);
		/* What a READ brings, later requests may need. */
		fence |= pair->op[i] == OP_READ || pair->op[i] >= OP_CMP_SWAP;
	}
	nic_ok(pair->env->nic, rdma_ring_recv(pair->b));
	nic_ok(pair->env->nic, rdma_ring_send(pair->a));
	expect_completions(pair);
	expect_same_memory(pair);
}

static void run_random(struct env *env, unsigned rounds)
{
	uint32_t seed = env_seed();
	struct pair pairs[3] = {{.type = QPT_RC}, {.type = QPT_UC}, {.type = QPT_RC}};
	struct rdma *rdma;

	scene_open(env, &rdma);
	for (unsigned i = 0; i < 3; i++) {
		pairs[i].env = env;
		pairs[i].seed = &seed;
		pair_make(&pairs[i], rdma);
	}
	for (unsigned round = 0; round < rounds; round++)
		run_batch(&pairs[round % 3]);
	for (unsigned i = 0; i < 3; i++)
		pair_free(&pairs[i]);
	nic_ok(env->nic, rdma_close(rdma));
}

static void test_random(void **state)
{
	run_random(*state, ROUNDS);
}

/* Guest memory without a descriptor: every access of the device is a message. */
static void test_random_by_messages(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);
	struct rdma *rdma;

	options.message_ram = true;
	options.ram_size = 64u << 20;
	nic_ok(NULL, nic_start(&env->nic, &options));
	run_random(env, ROUNDS / 5);
	scene_open(env, &rdma);
	for (unsigned op = OP_SEND; op <= OP_FETCH_ADD; op++)
		scene_run(env, rdma, QPT_RC, (uint8_t)op);
	nic_ok(env->nic, rdma_close(rdma));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_random, &bare),
	        ENV_TEST(test_random_by_messages, &empty),
	};

	return env_main("driver/rdma_random", tests, false);
}
