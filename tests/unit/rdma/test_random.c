/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random sequences of operations against a model that executes each at once, in order, on plain
 * arrays; and many QPs that do atomics on the same words, against their history.
 *
 * A failing run is repeated with the seed that it printed: ERNIC_TEST_SEED=... unit_rdma_random
 * For longer runs set ERNIC_TEST_STEPS.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "verbs.h"

#define PD    1
#define ALL   0x1f
#define PAIRS 4
#define MRS   6
#define SIZE  100000u
#define STEPS 10000 /* or ERNIC_TEST_STEPS */

/* What the model knows of a region: its bytes, and whether its key works. */
struct model_mr {
	struct test_mr mr;
	uint8_t bytes[SIZE];
	unsigned access;
	bool alive;
};

/* A completion that the model foresees. */
struct foreseen {
	uint64_t wr_id;
	enum rdma_status status;
	uint32_t length;
	bool recv;
};

struct model_pair {
	struct test_qp *a, *b; /* a sends, b receives */
	struct foreseen sends[QUEUE_MAX], recvs[QUEUE_MAX];
	unsigned send_count, recv_count, recv_done;
	struct rdma_recv posted[QUEUE_MAX];
	bool dead;
};

struct world {
	struct nic *nic;
	struct model_mr mrs[MRS];
	struct model_pair pairs[PAIRS];
	uint64_t random, next_id;
	unsigned posted;
};

static uint32_t pick(struct world *w, uint32_t below)
{
	return (uint32_t)(test_random(&w->random) >> 33) % below;
}

static void world_connect(struct world *w, struct model_pair *pair)
{
	if (pair->a) {
		qp_free(pair->a);
		qp_free(pair->b);
	}
	pair->a = qp_new(w->nic, RDMA_QP_RC, PD);
	pair->b = qp_new(w->nic, RDMA_QP_RC, PD);
	qp_connect(pair->a, pair->b);
	pair->send_count = pair->recv_count = pair->recv_done = 0;
	pair->dead = false;
}

static void world_mr(struct world *w, unsigned i)
{
	struct model_mr *m = &w->mrs[i];

	w->nic->mem_used = (size_t)(i + 1) * (4 << 20); /* the same place again */
	m->access = ALL & ~(pick(w, 4) ? 0 : 1u << pick(w, 4));
	m->mr = i % 2 ? mr_scattered(w->nic, PD, 0x100000 + i * 0x111111 / 8 * 8, SIZE, m->access)
	              : mr_new(w->nic, PD, 0x100000 + i * 0x100000, SIZE, m->access);
	m->alive = true;
	for (size_t n = 0; n < SIZE; n++) /* before it is written to */
		*mr_byte(&m->mr, n) = m->bytes[n] = (uint8_t)(n * 7 + i);
}

static struct world *world_new(uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->nic = nic_new("loopback");
	w->random = seed;
	for (unsigned i = 0; i < MRS; i++)
		world_mr(w, i);
	for (unsigned i = 0; i < PAIRS; i++)
		world_connect(w, &w->pairs[i]);
	return w;
}

static void world_free(struct world *w)
{
	for (unsigned i = 0; i < PAIRS; i++) {
		qp_free(w->pairs[i].a);
		qp_free(w->pairs[i].b);
	}
	for (unsigned i = 0; i < MRS; i++)
		mr_free(&w->mrs[i].mr);
	nic_free(w->nic);
	free(w);
}

/* ---- the model ---- */

static struct model_mr *model_find(struct world *w, uint32_t key)
{
	for (unsigned i = 0; i < MRS; i++)
		if (w->mrs[i].alive && w->mrs[i].mr.key == key)
			return &w->mrs[i];
	return NULL;
}

/* The bytes that an access may touch, or NULL. */
static uint8_t *model_bytes(struct world *w, uint64_t va, uint32_t size, uint32_t key,
                            unsigned access)
{
	struct model_mr *m = model_find(w, key);

	if (!m || access & ~m->access || va < m->mr.va || va - m->mr.va > SIZE ||
	    size > SIZE - (va - m->mr.va))
		return NULL;
	return m->bytes + (va - m->mr.va);
}

/* Whether all of the list may be touched, up to SIZE bytes. */
static bool model_list_good(struct world *w, const struct rdma_sge *sge, unsigned count,
                            uint32_t size, unsigned access)
{
	for (unsigned i = 0; i < count && size > 0; i++) {
		uint32_t part = sge[i].length < size ? sge[i].length : size;

		if (part > 0 && !model_bytes(w, sge[i].va, part, sge[i].lkey, access))
			return false;
		size -= part;
	}
	return true;
}

/* Copies between a list and a buffer. */
static void model_list_copy(struct world *w, const struct rdma_sge *sge, unsigned count,
                            uint8_t *buf, uint32_t size, bool to_list)
{
	for (unsigned i = 0; i < count && size > 0; i++) {
		uint32_t part = sge[i].length < size ? sge[i].length : size;
		uint8_t *bytes = part ? model_bytes(w, sge[i].va, part, sge[i].lkey, 0) : NULL;

		if (part && to_list)
			memcpy(bytes, buf, part);
		else if (part)
			memcpy(buf, bytes, part);
		buf += part;
		size -= part;
	}
}

static void foresee_recv(struct model_pair *pair, enum rdma_status status, uint32_t length)
{
	struct rdma_recv *recv = &pair->posted[pair->recv_done++];

	pair->recvs[pair->recv_count++] = (struct foreseen){
	        .wr_id = recv->wr_id, .status = status, .length = length, .recv = true};
}

static enum rdma_status model_send(struct world *w, struct model_pair *pair,
                                   const struct rdma_wr *wr, uint8_t *payload)
{
	struct rdma_recv *recv = &pair->posted[pair->recv_done];
	uint64_t room = 0;

	for (unsigned i = 0; i < recv->num_sge; i++)
		room += recv->sge[i].length;
	if (wr->length > room || wr->length > recv->length) {
		foresee_recv(pair, RDMA_LOC_LEN_ERR, 0);
		return RDMA_REM_INV_REQ_ERR;
	}
	if (!model_list_good(w, recv->sge, recv->num_sge, wr->length, RDMA_ACCESS_LOCAL_WRITE)) {
		foresee_recv(pair, RDMA_LOC_PROT_ERR, 0);
		return RDMA_REM_OP_ERR;
	}
	model_list_copy(w, recv->sge, recv->num_sge, payload, wr->length, true);
	foresee_recv(pair, RDMA_OK, wr->length);
	return RDMA_OK;
}

static enum rdma_status model_atomic(struct world *w, const struct rdma_wr *wr)
{
	uint64_t old, value;

	if (wr->remote.va % 8)
		return RDMA_REM_INV_REQ_ERR;
	uint8_t *bytes =
	        model_bytes(w, wr->remote.va, 8, wr->remote.rkey, RDMA_ACCESS_REMOTE_ATOMIC);

	if (!bytes)
		return RDMA_REM_ACCESS_ERR;
	memcpy(&old, bytes, 8);
	value = wr->opcode == RDMA_FETCH_ADD ? old + wr->remote.swap_add
	        : old == wr->remote.compare  ? wr->remote.swap_add
	                                     : old;
	memcpy(bytes, &value, 8);
	model_list_copy(w, wr->sge, wr->num_sge, (uint8_t *)&old, 8, true);
	return RDMA_OK;
}

static enum rdma_status model_remote(struct world *w, struct model_pair *pair,
                                     const struct rdma_wr *wr, uint8_t *payload)
{
	bool read = wr->opcode == RDMA_READ;
	uint8_t *bytes = NULL;

	if (wr->length > 0) {
		bytes = model_bytes(w, wr->remote.va, wr->length, wr->remote.rkey,
		                    read ? RDMA_ACCESS_REMOTE_READ : RDMA_ACCESS_REMOTE_WRITE);
		if (!bytes) {
			if (wr->opcode == RDMA_WRITE_IMM)
				foresee_recv(pair, RDMA_LOC_ACCESS_ERR, 0);
			return RDMA_REM_ACCESS_ERR;
		}
	}
	if (read && wr->length) {
		memcpy(payload, bytes, wr->length);
		model_list_copy(w, wr->sge, wr->num_sge, payload, wr->length, true);
	} else if (wr->length) {
		memcpy(bytes, payload, wr->length);
	}
	if (wr->opcode == RDMA_WRITE_IMM)
		foresee_recv(pair, RDMA_OK, wr->length);
	return RDMA_OK;
}

static enum rdma_status model_execute(struct world *w, struct model_pair *pair,
                                      const struct rdma_wr *wr)
{
	static uint8_t payload[SIZE * RDMA_SGE_MAX];
	bool fetches = wr->opcode == RDMA_READ || wr->opcode == RDMA_CMP_SWAP ||
	               wr->opcode == RDMA_FETCH_ADD;

	if (wr->flags & RDMA_WR_INLINE) {
		memcpy(payload, wr->inline_data, wr->length);
	} else {
		if (!model_list_good(w, wr->sge, wr->num_sge, wr->length,
		                     fetches ? RDMA_ACCESS_LOCAL_WRITE : 0))
			return RDMA_LOC_PROT_ERR;
		if (!fetches)
			model_list_copy(w, wr->sge, wr->num_sge, payload, wr->length, false);
	}
	if (wr->opcode == RDMA_SEND || wr->opcode == RDMA_SEND_IMM)
		return model_send(w, pair, wr, payload);
	if (wr->opcode == RDMA_READ || wr->opcode == RDMA_WRITE || wr->opcode == RDMA_WRITE_IMM)
		return model_remote(w, pair, wr, payload);
	return model_atomic(w, wr);
}

/* ---- random requests ---- */

static uint32_t random_size(struct world *w)
{
	switch (pick(w, 4)) {
	case 0:
		return pick(w, 16);
	case 1:
		return pick(w, 5000);
	case 2:
		return 4096 * pick(w, 4);
	default:
		return pick(w, 20000);
	}
}

/* Source and destination never overlap: sources are in the low half of a region. */
static struct rdma_sge random_sge(struct world *w, uint32_t size, bool high)
{
	const struct test_mr *mr = &w->mrs[pick(w, MRS)].mr;
	uint32_t half = SIZE / 2;
	uint32_t offset = (high ? half : 0) + pick(w, half - size + 1);
	struct rdma_sge sge = sge_of(mr, offset, size);

	if (pick(w, 400) == 0)
		sge.lkey ^= 1u << pick(w, 32);
	if (pick(w, 400) == 0)
		sge.va = mr->va + SIZE - size + 1;
	return sge;
}

static void random_list(struct world *w, struct rdma_sge *sge, uint8_t *count, uint32_t size,
                        bool high)
{
	*count = (uint8_t)(1 + pick(w, RDMA_SGE_MAX));
	for (unsigned i = 0; i < *count; i++) {
		uint32_t part = i + 1u == *count ? size : pick(w, size + 1);

		sge[i] = random_sge(w, part, high);
		size -= part;
	}
}

static bool lists_overlap(const struct rdma_sge *sge, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < i; j++)
			if (sge[i].va < sge[j].va + sge[j].length &&
			    sge[j].va < sge[i].va + sge[i].length)
				return true;
	return false;
}

static struct rdma_wr random_wr(struct world *w)
{
	static const uint8_t opcodes[] = {RDMA_SEND, RDMA_SEND_IMM, RDMA_WRITE,    RDMA_WRITE_IMM,
	                                  RDMA_READ, RDMA_CMP_SWAP, RDMA_FETCH_ADD};
	struct rdma_wr wr = {.wr_id = w->next_id++, .opcode = opcodes[pick(w, 7)]};
	bool fetches =
	        wr.opcode >= RDMA_READ && wr.opcode != RDMA_WRITE && wr.opcode != RDMA_WRITE_IMM;
	bool atomic = fetches && wr.opcode != RDMA_READ;

	wr.flags =
	        (uint8_t)((pick(w, 2) ? RDMA_WR_SIGNALED : 0) | (pick(w, 8) ? 0 : RDMA_WR_FENCE));
	wr.length = atomic ? 8 : random_size(w);
	if (!fetches && wr.length <= RDMA_INLINE_MAX && pick(w, 3) == 0) {
		wr.flags |= RDMA_WR_INLINE;
		for (uint32_t i = 0; i < wr.length; i++)
			wr.inline_data[i] = (uint8_t)pick(w, 256);
	} else {
		do {
			random_list(w, wr.sge, &wr.num_sge, wr.length, fetches);
		} while (fetches && lists_overlap(wr.sge, wr.num_sge));
	}
	if (wr.opcode > RDMA_SEND_IMM) {
		struct rdma_sge remote = random_sge(w, wr.length, !fetches);

		if (atomic && pick(w, 50))
			remote.va &= ~7ull;
		wr.remote.va = remote.va;
		wr.remote.rkey = remote.lkey;
		if (atomic) {
			wr.remote.swap_add = test_random(&w->random);
			wr.remote.compare = pick(w, 2) ? 0x0706050403020100 : 0;
		}
	}
	return wr;
}

static void random_recv(struct world *w, struct model_pair *pair)
{
	struct rdma_recv recv = {.wr_id = w->next_id++};
	uint32_t size = pick(w, 100) ? 20000 : pick(w, 1000);

	do {
		random_list(w, recv.sge, &recv.num_sge, size, true);
	} while (lists_overlap(recv.sge, recv.num_sge));
	recv.length = pick(w, 100) ? UINT32_MAX : size / 2;
	pair->posted[pair->b->rq_tail] = recv;
	qp_post_recv(pair->b, &recv);
}

/* ---- the run ---- */

/* Runs until PAIR has completed what the model foresees, and compares. */
static void settle(struct world *w, struct model_pair *pair)
{
	nic_wait(w->nic, &pair->a->send_wcs, pair->send_count);
	nic_spin(w->nic, 1);
	assert_int_equal(pair->a->send_wcs, pair->send_count);
	assert_int_equal(pair->b->recv_wcs, pair->recv_count);
	for (unsigned i = 0; i < pair->send_count; i++) {
		assert_int_equal(pair->a->send_wc[i].wr_id, pair->sends[i].wr_id);
		if (pair->a->send_wc[i].status != pair->sends[i].status)
			fail_msg("request %llu ended with %s, not %s",
			         (unsigned long long)pair->sends[i].wr_id,
			         rdma_status_name(pair->a->send_wc[i].status),
			         rdma_status_name(pair->sends[i].status));
	}
	for (unsigned i = 0; i < pair->recv_count; i++) {
		assert_int_equal(pair->b->recv_wc[i].wr_id, pair->recvs[i].wr_id);
		assert_int_equal(pair->b->recv_wc[i].status, pair->recvs[i].status);
		assert_int_equal(pair->b->recv_wc[i].length, pair->recvs[i].length);
	}
	if (pair->dead || pair->send_count > QUEUE_MAX / 2)
		world_connect(w, pair);
}

static void compare_memory(struct world *w)
{
	for (unsigned i = 0; i < MRS; i++)
		for (size_t n = 0; n < SIZE; n++)
			if (*mr_byte(&w->mrs[i].mr, n) != w->mrs[i].bytes[n])
				fail_msg("region %u differs at byte %zu", i, n);
}

/* One batch: requests on one pair, sometimes with the kick before the receives. */
static void random_batch(struct world *w)
{
	struct model_pair *pair = &w->pairs[pick(w, PAIRS)];
	unsigned count = 1 + pick(w, 12);
	bool late_receives = pick(w, 3) == 0;
	unsigned receives = 0;
	struct rdma_wr wr[12];

	for (unsigned i = 0; i < count; i++) {
		wr[i] = random_wr(w);
		qp_put_send(pair->a, &wr[i]);
		receives += wr[i].opcode == RDMA_SEND || wr[i].opcode == RDMA_SEND_IMM ||
		            wr[i].opcode == RDMA_WRITE_IMM;
		w->posted++;
	}
	for (unsigned i = 0; i < receives; i++) {
		if (late_receives && i == receives / 2) {
			rdma_qp_kick(pair->a->qp);
			nic_spin(w->nic, 2);
		}
		random_recv(w, pair);
	}
	rdma_qp_kick(pair->a->qp);
	for (unsigned i = 0; i < count && !pair->dead; i++) {
		enum rdma_status status = model_execute(w, pair, &wr[i]);

		pair->sends[pair->send_count++] =
		        (struct foreseen){.wr_id = wr[i].wr_id, .status = status};
		pair->dead = status != RDMA_OK;
	}
	settle(w, pair);
}

static void replace_region(struct world *w)
{
	unsigned i = pick(w, MRS);

	assert_int_equal(rdma_mr_destroy(w->nic->dev, w->mrs[i].mr.key), 0);
	mr_free(&w->mrs[i].mr);
	world_mr(w, i);
}

static void against_the_model(void **state)
{
	struct world *w = world_new(test_seed());
	const char *steps = getenv("ERNIC_TEST_STEPS");
	unsigned long end = steps ? strtoul(steps, NULL, 0) : STEPS;
	uint64_t generation = 0;

	(void)state;
	while (w->posted < end) {
		random_batch(w);
		if (pick(w, 100) == 0)
			replace_region(w);
		if (pick(w, 200) == 0)
			compare_memory(w);
		if (pick(w, 50) == 0) { /* the memory map changes */
			/* at least a word: real pieces end on pages, and an atomic needs one */
			w->nic->piece = pick(w, 2) * (sizeof(uint64_t) + pick(w, 5000));
			w->nic->generation = pick(w, 3) ? ++generation : 0;
		}
	}
	compare_memory(w);
	print_message("%llu bytes in %u requests, %llu of which failed\n",
	              (unsigned long long)rdma_dev_stat(w->nic->dev, RDMA_STAT_RX_BYTES), w->posted,
	              (unsigned long long)rdma_dev_stat(w->nic->dev, RDMA_STAT_REQ_CQE_ERR));
	assert_true(rdma_dev_stat(w->nic->dev, RDMA_STAT_REQ_RX_REM_ACCESS) > 0);
	assert_true(rdma_dev_stat(w->nic->dev, RDMA_STAT_REQ_RX_REM_INV_REQ) > 0);
	assert_true(rdma_dev_stat(w->nic->dev, RDMA_STAT_REQ_TX_LOC_ACCESS) > 0);
	world_free(w);
}

/*
 * Many QPs add to, and swap, the same few words. Of FETCH_ADD 1 every old value must come back
 * exactly once; a successful CMP_SWAP from n to n+1 likewise.
 */
static void atomic_history(void **state)
{
	enum { QPS = 50, OPS = 400 };
	uint64_t random = test_seed();
	struct nic *nic = nic_new("loopback");
	struct test_mr words = mr_new(nic, PD, 0, 64, ALL),
	               results = mr_new(nic, PD, 0, QPS * OPS * 8, ALL);
	struct test_qp *qps[QPS];
	static uint8_t seen[QPS * OPS];
	uint64_t count = 0;

	(void)state;
	memset(words.mem, 0, 64);
	for (unsigned q = 0; q < QPS; q++) {
		qps[q] = qp_new(nic, RDMA_QP_RC, PD);
		qp_connect(qps[q], qps[q]);
	}
	for (unsigned i = 0; i < OPS; i++)
		for (unsigned q = 0; q < QPS; q++) {
			struct rdma_wr wr =
			        wr_atomic(RDMA_FETCH_ADD, sge_of(&results, (q * OPS + i) * 8, 8), 8,
			                  words.key);

			wr.remote.swap_add = 1;
			qp_put_send(qps[q], &wr);
			if (test_random(&random) % 3 == 0)
				rdma_qp_kick(qps[q]->qp);
			if (test_random(&random) % 64 == 0)
				nic_spin(nic, 1);
		}
	for (unsigned q = 0; q < QPS; q++) {
		rdma_qp_kick(qps[q]->qp);
		nic_wait(nic, &qps[q]->send_wcs, OPS);
	}
	for (unsigned i = 0; i < QPS * OPS; i++) {
		uint64_t old;

		memcpy(&old, results.mem + i * 8, 8);
		assert_true(old < QPS * OPS);
		if (seen[old]++)
			fail_msg("the old value %llu came back twice", (unsigned long long)old);
	}
	memcpy(&count, words.mem + 8, 8);
	assert_int_equal(count, QPS * OPS);

	/* locks: everybody tries to move the word on from what it last saw; one succeeds each */
	unsigned successes = 0;

	for (unsigned i = 0; i < OPS / 2; i++) {
		for (unsigned q = 0; q < QPS; q++) {
			struct rdma_wr wr =
			        wr_atomic(RDMA_CMP_SWAP, sge_of(&results, q * 8, 8), 16, words.key);

			wr.remote.compare = i;
			wr.remote.swap_add = i + 1;
			qp_post_send(qps[q], &wr);
		}
		for (unsigned q = 0; q < QPS; q++)
			nic_wait(nic, &qps[q]->send_wcs, OPS + i + 1);
		for (unsigned q = 0; q < QPS; q++) {
			uint64_t old;

			memcpy(&old, results.mem + q * 8, 8);
			successes += old == i;
		}
	}
	assert_int_equal(successes, OPS / 2);
	for (unsigned q = 0; q < QPS; q++)
		qp_free(qps[q]);
	nic_free(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(against_the_model),
	        cmocka_unit_test(atomic_history),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
