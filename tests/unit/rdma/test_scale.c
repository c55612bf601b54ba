/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ten thousand QPs, a hundred thousand regions, memory only for what is used, none per message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "verbs.h"

#define PD      1
#define ALL     0x1f
#define QPS     10000u
#define REGIONS 100000u

/* ---- a count of what is allocated, by the linker's --wrap ---- */

static uint64_t allocations, allocated;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	allocations++;
	allocated += size;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	allocations++;
	allocated += count * size;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	allocations++;
	allocated += size;
	return __real_realloc(old, size);
}

/* ---- tests ---- */

/* An idle device with the largest tables costs next to nothing; each object its own size. */
static void memory_when_used(void **state)
{
	struct rdma_limits limits = {.qps = 32768, .mrs = 131072, .ahs = 32768, .pages = 1 << 22};
	uint64_t before = allocated;
	struct nic *nic = nic_new_limits("loopback", &limits, 1 << 20);

	(void)state;
	assert_true(allocated - before < 64 << 10);
	before = allocated;
	struct rdma_mr_config config = {.key = 130000 << 8, .page_count = 1, .length = 1};

	assert_int_equal(rdma_mr_create(nic->dev, &config), 0);
	assert_true(allocated - before < 16 << 10);
	before = allocated;
	struct rdma_qp_config qp_config = {.qpn = 32767, .type = RDMA_QP_RC};
	struct rdma_qp *qp;

	assert_int_equal(rdma_qp_create(nic->dev, &qp_config, &qp), 0);
	assert_true(allocated - before < 8 << 10);
	nic_free(nic);
}

static enum rdma_tx never_asked(struct rdma_fabric *fabric, struct rdma_msg *msg, size_t *budget)
{
	(void)fabric;
	(void)msg;
	(void)budget;
	fail();
	return RDMA_TX_LOST;
}

/* A fabric with many messages under way costs nothing for QPs that send none. */
static void window_when_it_may_send(void **state)
{
	static const struct rdma_fabric_ops ops = {
	        .name = "wide", .window = 64, .transmit = never_asked};
	struct rdma_fabric fabric = {.ops = &ops};
	struct loop *loop;
	struct rdma_qp_config config = {.qpn = 2, .type = RDMA_QP_RC, .pd = PD};
	struct rdma_qp_attr attr = {.mtu_shift = 10, .dest_qpn = 3};
	struct rdma_qp *qp;

	(void)state;
	assert_int_equal(loop_create(&loop), 0);
	struct nic *nic = nic_on(loop, &fabric, 1);
	uint64_t before = allocated;

	assert_int_equal(rdma_qp_create(nic->dev, &config, &qp), 0);
	for (int to = RDMA_QPS_INIT; to <= RDMA_QPS_RTR; to++) {
		attr.state = (enum rdma_qp_state)to;
		assert_int_equal(rdma_qp_modify(qp, RDMA_ATTR_STATE, &attr), 0);
	}
	assert_true(allocated - before < 8 << 10);
	attr.state = RDMA_QPS_RTS;
	assert_int_equal(rdma_qp_modify(qp, RDMA_ATTR_STATE, &attr), 0);
	assert_true(allocated - before > 8 << 10);
	rdma_qp_destroy(qp);
	nic_free(nic);
	loop_destroy(loop);
}

static void many_qps(void **state)
{
	struct nic *nic = nic_new("loopback");
	struct test_qp **qps = calloc(QPS, sizeof(*qps));
	struct test_mr mr = mr_new(nic, PD, 0, QPS * 8, ALL);
	uint8_t zeros[8] = {0};

	(void)state;
	for (uint32_t i = 0; i < QPS; i++) {
		struct rdma_qp_config config = {.qpn = i + 2, .type = RDMA_QP_RC, .pd = PD};

		qps[i] = qp_new_config(nic, &config, 4);
	}
	for (uint32_t i = 0; i < QPS; i += 2)
		qp_connect(qps[i], qps[i + 1]);
	for (uint32_t i = 0; i < QPS; i++) {
		uint64_t value = i + 1;
		struct rdma_wr wr = wr_rdma(RDMA_WRITE, (struct rdma_sge){0}, i * 8, mr.key);

		wr.flags |= RDMA_WR_INLINE;
		wr.num_sge = 0;
		wr.length = 8;
		memcpy(wr.inline_data, &value, 8);
		qp_post_send(qps[i], &wr);
	}
	for (uint32_t i = 0; i < QPS; i++) {
		uint64_t value;

		qp_expect_send(qps[i], RDMA_OK);
		memcpy(&value, mr.mem + i * 8, 8);
		assert_int_equal(value, i + 1);
	}
	for (uint32_t i = 0; i < QPS; i++) /* in an order that is not theirs */
		qp_free(qps[i * 7919u % QPS]);
	free(qps);
	assert_memory_not_equal(mr.mem, zeros, 8);
	nic_free(nic);
}

/* Ten thousand senders wait for one that never gets ready; it goes; all of them end. */
static void many_waiting(void **state)
{
	enum { SENDERS = 2000 };
	struct nic *nic = nic_new("loopback");
	struct test_qp **qps = calloc(SENDERS, sizeof(*qps));
	struct test_mr mr = mr_new(nic, PD, 0, 4096, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 8), 0, mr.key);

	(void)state;
	for (uint32_t i = 0; i < SENDERS; i++) {
		struct rdma_qp_config config = {.qpn = i + 2, .type = RDMA_QP_RC, .pd = PD};
		struct rdma_qp_attr attr;

		qps[i] = qp_new_config(nic, &config, 4);
		attr = qp_attr(qps[i], qps[i]);
		attr.dest_qpn = 30000;
		attr.timeout = (uint8_t)(8 + i % 4);
		qp_up(qps[i], &attr);
		qp_post_send(qps[i], &wr);
	}
	for (uint32_t i = 0; i < SENDERS; i++) {
		qp_expect_send(qps[i], RDMA_RETRY_EXC_ERR);
		qp_free(qps[i]);
	}
	free(qps);
	nic_free(nic);
}

static void many_regions(void **state)
{
	struct nic *nic = nic_new("loopback");
	struct test_qp *qp = qp_new(nic, RDMA_QP_RC, PD);
	struct test_mr mr = mr_new(nic, PD, 0, 8, ALL);
	uint64_t base = nic_dma(nic, REGIONS * 8, 8);
	struct rdma_dev_stats stats;

	(void)state;
	qp_connect(qp, qp);
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct rdma_mr_config config = {.key = (i + 100) << 8 | (i & 0xff),
		                                .pd = PD,
		                                .va = i,
		                                .length = 8,
		                                .dma_addr = base + 8ull * i,
		                                .page_count = 1,
		                                .flags = ALL};

		assert_int_equal(rdma_mr_create(nic->dev, &config), 0);
	}
	rdma_dev_stats(nic->dev, &stats);
	assert_int_equal(stats.mrs, REGIONS + 1);
	for (uint32_t n = 0; n < 20000; n++) {
		uint32_t i = n * 7919u % REGIONS;
		uint64_t value = n;
		struct rdma_wr wr =
		        wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 8), i, (i + 100) << 8 | (i & 0xff));

		memcpy(mr.mem, &value, 8);
		qp_post_send(qp, &wr);
		qp_expect_send(qp, RDMA_OK);
		assert_memory_equal(nic_host(nic, base + 8ull * i), &value, 8);
	}
	for (uint32_t i = 0; i < REGIONS; i++)
		assert_int_equal(rdma_mr_destroy(nic->dev, (i * 7919u % REGIONS + 100) << 8), 0);
	qp_free(qp);
	nic_free(nic);
}

/* Once everything is set up, no message allocates: of no kind, not even those that wait. */
static void no_allocation(void **state)
{
	struct nic *nic = nic_new("loopback");
	struct test_qp *a = qp_new(nic, RDMA_QP_RC, PD), *b = qp_new(nic, RDMA_QP_RC, PD);
	struct test_mr mr = mr_scattered(nic, PD, 0, 1 << 20, ALL);
	struct rdma_mr_config fast = {.key = 0x70001, .pd = PD, .flags = 0xa000};
	struct rdma_wr reg = {.opcode = RDMA_REG_MR, .key = 0x70001};
	struct rdma_wr inv = {.opcode = RDMA_LOCAL_INV, .inv_key = 0x70001};
	uint64_t table = nic_dma(nic, 4096, 8), before = 0;

	(void)state;
	assert_int_equal(rdma_mr_create(nic->dev, &fast), 0);
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t entry = htole64(DMA_BASE + i * 8192);

		memcpy(nic_host(nic, table + 8 * i), &entry, 8);
	}
	reg.reg.length = 100 * 4096;
	reg.reg.dma_addr = table;
	reg.reg.page_count = 100;
	reg.reg.page_shift = 12;
	qp_connect(a, b);
	for (unsigned round = 0; round < 100; round++) {
		if (round == 1) /* the first may set things up */
			before = allocations;
		for (unsigned op = 0; op < RDMA_REG_MR; op++) {
			uint32_t size = op >= RDMA_CMP_SWAP ? 8 : 100000;
			struct rdma_wr wr = wr_rdma(op, sge_of(&mr, 0, size), 200000, mr.key);

			if (op == RDMA_SEND_INV)
				continue;
			qp_put_send(a, &wr);
		}
		qp_put_send(a, &reg);
		qp_put_send(a, &inv);
		rdma_qp_kick(a->qp);
		nic_spin(nic, 2); /* the first waits for its receive */
		for (unsigned i = 0; i < 3; i++)
			qp_post_recv_sge(b, i, sge_of(&mr, 400000, 100000));
		nic_wait(nic, &a->send_wcs, (round + 1) * 9);
	}
	assert_int_equal(allocations, before);
	mr_free(&mr);
	qp_free(a);
	qp_free(b);
	nic_free(nic);
}

/* The counters tell what has happened. */
static void find(const char *name, uint64_t value, void *arg)
{
	uint64_t *found = arg;

	if (strcmp(name, "tx_write_messages") == 0)
		found[0] = value;
	if (strcmp(name, "rx_read_bytes") == 0)
		found[1] = value;
	if (strcmp(name, "tx_rdma_ucast_bytes") == 0)
		found[2] = value;
	if (strcmp(name, "turn_requests_below_8") == 0) /* four requests in one turn */
		found[4] = value;
	found[3]++;
}

static void counters(void **state)
{
	struct nic *nic = nic_new("loopback");
	struct test_qp *a = qp_new(nic, RDMA_QP_RC, PD), *b = qp_new(nic, RDMA_QP_RC, PD);
	struct test_mr mr = mr_new(nic, PD, 0, 65536, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 100), 1000, mr.key);
	uint64_t found[5] = {0};
	struct rdma_dev_stats stats;

	(void)state;
	qp_connect(a, b);
	for (int i = 0; i < 3; i++)
		qp_put_send(a, &wr);
	wr = wr_rdma(RDMA_READ, sge_of(&mr, 0, 77), 1000, mr.key);
	qp_put_send(a, &wr);
	rdma_qp_kick(a->qp);
	nic_wait(nic, &a->send_wcs, 4);
	rdma_dev_stats_visit(nic->dev, find, found);
	assert_int_equal(found[0], 3);
	assert_int_equal(found[1], 77);
	assert_int_equal(found[4], 1);
	assert_int_equal(found[2], 377); /* three WRITEs, and the answer to the READ */
	assert_int_equal(rdma_dev_stat(nic->dev, RDMA_STAT_RX_BYTES), 377);
	assert_int_equal(rdma_dev_stat(nic->dev, RDMA_STAT_TX_PACKETS), 4);
	assert_int_equal(rdma_qp_stats(a->qp)->tx[RDMA_WRITE].bytes, 300);
	assert_int_equal(rdma_qp_stats(b->qp)->rx[RDMA_WRITE].messages, 3);
	assert_int_equal(rdma_qp_stats(a->qp)->kicks, 1);
	memset(found, 0, sizeof(found));
	rdma_qp_stats_visit(a->qp, find, found);
	assert_int_equal(found[0], 3);
	assert_int_equal(found[3], 5); /* two opcodes, and kicks */
	rdma_dev_stats(nic->dev, &stats);
	assert_int_equal(stats.qps, 2);
	assert_int_equal(stats.mrs, 1);
	for (unsigned i = 0; i < RDMA_STAT_COUNT; i++) {
		assert_true(rdma_stat_lif_index(i) < 128);
		assert_true(strlen(rdma_stat_name(i)) > 4);
	}
	qp_free(a);
	qp_free(b);
	nic_free(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(memory_when_used), cmocka_unit_test(window_when_it_may_send),
	        cmocka_unit_test(many_qps),         cmocka_unit_test(many_waiting),
	        cmocka_unit_test(many_regions),     cmocka_unit_test(no_allocation),
	        cmocka_unit_test(counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
