/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 on a bad wire: every fault alone, and all together, against every kind of operation. No
 * completion may be lost, doubled, out of order or wrong, and what completed must be intact.
 *
 * ERNIC_TEST_OPS is the number of operations of a cell of the matrix (default 400).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "net/fault.h"
#include "roce_rig.h"

#define PD  1
#define ALL 0x1f

enum { SLOTS = 32, SLOT = 16384, TIMEOUT_MS = 60000 };

enum kind { KIND_SEND, KIND_WRITE, KIND_READ, KIND_ADD, KIND_MIX, KINDS };

static const char *const kind_names[] = {"send", "write", "read", "fetch_add", "mix"};

static const char *const fault_texts[] = {
        "off",
        "loss=2%",
        "dup=2%",
        "reorder=2%",
        "corrupt=2%",
        "delay=200us,jitter=200us",
        "loss=1%,delay=100us,jitter=100us,reorder=0.5%,dup=0.5%,corrupt=0.5%",
};

struct cell {
	struct rig *rig;
	struct test_qp *a, *b;
	struct test_mr ma, mb;
	enum kind kind;
	uint64_t random, ops, posted, done, received;
	/* per slot: what was posted in it */
	enum rdma_opcode opcode[SLOTS];
	uint32_t size[SLOTS];
	uint8_t *expected; /* what the other side of the slot must hold */
	uint64_t sum;      /* of all additions so far */
	uint64_t last_old;
};

static uint8_t *expected_at(struct cell *cell, unsigned slot)
{
	return cell->expected + (size_t)slot * SLOT;
}

static enum rdma_opcode opcode_for(struct cell *cell)
{
	static const enum rdma_opcode of_kind[] = {RDMA_SEND, RDMA_WRITE, RDMA_READ,
	                                           RDMA_FETCH_ADD};
	static const enum rdma_opcode mixed[] = {RDMA_SEND,      RDMA_SEND_IMM, RDMA_WRITE,
	                                         RDMA_WRITE_IMM, RDMA_READ,     RDMA_FETCH_ADD};

	if (cell->kind == KIND_MIX)
		return mixed[test_random(&cell->random) % ARRAY_SIZE(mixed)];
	return of_kind[cell->kind];
}

static uint32_t size_for(struct cell *cell)
{
	uint64_t dice = test_random(&cell->random);

	return dice % 4 == 0 ? (uint32_t)(dice >> 8) % 64 : (uint32_t)(dice >> 8) % (SLOT - 8);
}

static void noise(struct cell *cell, const struct test_mr *mr, size_t at, uint32_t size,
                  uint8_t *copy)
{
	for (uint32_t i = 0; i < size; i++)
		copy[i] = (uint8_t)test_random(&cell->random);
	mr_set(mr, at, copy, size);
}

/* Requests of slot N use bytes N * SLOT of both regions; the last word of A's is for old values,
 * and all atomics go to the word behind the slots of B. */
static void post_one(struct cell *cell)
{
	unsigned slot = cell->posted % SLOTS;
	size_t at = (size_t)slot * SLOT;
	enum rdma_opcode opcode = opcode_for(cell);
	uint32_t size = opcode == RDMA_FETCH_ADD ? 8 : size_for(cell);
	struct rdma_wr wr;

	cell->opcode[slot] = opcode;
	cell->size[slot] = size;
	if (opcode == RDMA_FETCH_ADD) {
		wr = wr_atomic(opcode, sge_of(&cell->ma, at + SLOT - 8, 8),
		               cell->mb.va + SLOTS * SLOT, cell->mb.key);
		wr.remote.swap_add = 1 + cell->posted % 5;
		cell->sum += wr.remote.swap_add;
	} else {
		bool read = opcode == RDMA_READ;

		noise(cell, read ? &cell->mb : &cell->ma, at, size, expected_at(cell, slot));
		wr = wr_rdma(opcode, sge_of(&cell->ma, at, size), cell->mb.va + at, cell->mb.key);
	}
	wr.wr_id = cell->posted;
	if (opcode == RDMA_SEND || opcode == RDMA_SEND_IMM || opcode == RDMA_WRITE_IMM)
		qp_post_recv_sge(cell->b, cell->posted, sge_of(&cell->mb, at, SLOT));
	cell->posted++;
	qp_post_send(cell->a, &wr);
}

static void check_slot(struct cell *cell, unsigned slot)
{
	const struct test_mr *mr = cell->opcode[slot] == RDMA_READ ? &cell->ma : &cell->mb;
	static uint8_t got[SLOT];
	uint64_t old;

	if (cell->opcode[slot] == RDMA_FETCH_ADD) {
		mr_get(&cell->ma, (size_t)slot * SLOT + SLOT - 8, &old, 8);
		if (old < cell->last_old)
			fail_msg("an atomic was executed out of order or twice");
		cell->last_old = old;
		return;
	}
	mr_get(mr, (size_t)slot * SLOT, got, cell->size[slot]);
	assert_memory_equal(got, expected_at(cell, slot), cell->size[slot]);
}

static void collect(struct cell *cell)
{
	const struct rdma_wc *wc;

	while ((wc = qp_poll_recv(cell->b))) {
		assert_int_equal(wc->status, RDMA_OK);
		assert_true(wc->wr_id >= cell->received && wc->wr_id < cell->posted);
		cell->received = wc->wr_id + 1;
	}
	while ((wc = qp_poll_send(cell->a))) {
		if (wc->status != RDMA_OK)
			fail_msg("%s %llu ended with %s", kind_names[cell->kind],
			         (unsigned long long)wc->wr_id, rdma_status_name(wc->status));
		assert_int_equal(wc->wr_id, cell->done);
		check_slot(cell, cell->done % SLOTS);
		cell->done++;
	}
}

static void cell_up(struct cell *cell, struct test_qp *own, struct test_qp *peer)
{
	struct rdma_qp_attr attr = qp_attr(own, peer);

	(void)cell;
	attr.mtu_shift = 10;
	attr.timeout = 12; /* 17 ms */
	attr.retry_count = 7;
	attr.rnr_timer = 1;
	attr.sq_psn = attr.rq_psn = 0xffff00;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 8;
	qp_up(own, &attr);
}

static void set_faults(struct rig *rig, const char *text, uint64_t seed)
{
	struct net_fault_config config;
	char error[160];

	assert_int_equal(net_fault_parse(text, &config, error, sizeof(error)), 0);
	for (unsigned i = 0; i < 2; i++) {
		config.seed = seed + i;
		assert_int_equal(net_wire_set_faults(rig->side[i].wire, rig->loop, &config), 0);
	}
}

static void run_cell(enum kind kind, const char *faults, uint64_t ops, uint64_t seed)
{
	struct cell cell = {.rig = rig_new(), .kind = kind, .ops = ops, .random = seed | 1};
	uint64_t word = 0;

	cell.a = qp_new(cell.rig->side[0].nic, RDMA_QP_RC, PD);
	cell.b = qp_new(cell.rig->side[1].nic, RDMA_QP_RC, PD);
	cell.ma = mr_new(cell.a->nic, PD, 0x10000, SLOTS * SLOT + 64, ALL);
	cell.mb = mr_new(cell.b->nic, PD, 0x50000, SLOTS * SLOT + 64, ALL);
	cell.expected = malloc((size_t)SLOTS * SLOT);
	assert_non_null(cell.expected);
	mr_set(&cell.mb, SLOTS * SLOT, &word, 8);
	cell_up(&cell, cell.a, cell.b);
	cell_up(&cell, cell.b, cell.a);
	set_faults(cell.rig, faults, seed);
	while (cell.done < ops) {
		while (cell.posted < ops && cell.posted - cell.done < SLOTS)
			post_one(&cell);
		uint64_t before = cell.done;

		for (unsigned i = 0; i < TIMEOUT_MS && cell.done == before; i++) {
			loop_turn(cell.rig->loop, 1000000);
			collect(&cell);
		}
		if (cell.done == before)
			fail_msg("%s: nothing completes any more after %llu operations",
			         kind_names[kind], (unsigned long long)cell.done);
	}
	nic_spin(cell.a->nic, 20);
	collect(&cell); /* nothing comes twice */
	assert_int_equal(cell.done, ops);
	mr_get(&cell.mb, SLOTS * SLOT, &word, 8);
	assert_true(word == cell.sum);
	qp_free(cell.a);
	qp_free(cell.b);
	free(cell.expected);
	rig_free(cell.rig);
}

/* In a process of its own: a cell waits for timers most of its time. One that fails has said why.
 */
static pid_t fork_cell(enum kind kind, const char *faults, uint64_t ops, uint64_t seed)
{
	fflush(stdout);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	run_cell(kind, faults, ops, seed); /* a failure leaves by the end of main() */
	_exit(0);
}

/* The kinds of operations side by side. The last, which has all of them, is run here, so that its
 * counters are there to be looked at. */
static void run_row(const char *faults, uint64_t ops, uint64_t seed)
{
	pid_t pids[KIND_MIX];
	int status, failed = 0;

	for (int kind = 0; kind < KIND_MIX; kind++)
		pids[kind] = fork_cell((enum kind)kind, faults, ops, seed);
	run_cell(KIND_MIX, faults, ops, seed);
	for (int kind = 0; kind < KIND_MIX; kind++) {
		assert_int_equal(waitpid(pids[kind], &status, 0), pids[kind]);
		failed |= status;
	}
	assert_int_equal(failed, 0);
}

static void matrix(void **state)
{
	const char *text = getenv("ERNIC_TEST_OPS");
	uint64_t ops = text ? strtoull(text, NULL, 0) : 400, seed = test_seed();

	(void)state;
	for (size_t f = 0; f < ARRAY_SIZE(fault_texts); f++) {
		print_message("faults %s\n", fault_texts[f]);
		run_row(fault_texts[f], ops, seed);
	}
}

/* Each fault really happens. */
static void faults_happen(void **state)
{
	static const char *const names[] = {"net_fault_lost",          "net_fault_doubled",
	                                    "net_fault_reordered",     "net_fault_corrupted",
	                                    "fabric_roce_rx_bad_icrc", "fabric_roce_rx_duplicates",
	                                    "fabric_roce_rx_missing",  "fabric_roce_tx_again",
	                                    "fabric_roce_tx_repeats",  "fabric_roce_rx_gaps"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct counter *counter = counter_find(names[i]);

		assert_non_null(counter);
		print_message("%s %llu\n", names[i], (unsigned long long)counter_get(counter));
		if (counter_get(counter) == 0)
			fail_msg("%s never moved", names[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(matrix),
	        cmocka_unit_test(faults_happen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
