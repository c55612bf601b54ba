/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions, windows and keys: page tables, bounds, life, and who may use what. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "verbs.h"

#define PD  4
#define ALL 0x1f

struct scene {
	struct nic *nic;
	struct test_qp *a, *b; /* on one NIC, connected */
	struct test_mr mr;
};

static struct scene scene_new(void)
{
	struct scene s = {.nic = nic_new("loopback")};

	s.a = qp_new(s.nic, RDMA_QP_RC, PD);
	s.b = qp_new(s.nic, RDMA_QP_RC, PD);
	s.mr = mr_new(s.nic, PD, 0x10000, 65536, ALL);
	qp_connect(s.a, s.b);
	return s;
}

static void scene_free(struct scene *s)
{
	qp_free(s->a);
	qp_free(s->b);
	nic_free(s->nic);
}

/* Both QPs again from RESET, after an error. */
static void again(struct scene *s)
{
	qp_state(s->a, RDMA_QPS_RESET);
	qp_state(s->b, RDMA_QPS_RESET);
	s->a->flushes = s->b->flushes = 0;
	s->a->sq_head = s->a->sq_tail;
	qp_connect(s->a, s->b);
}

/* Whether a can write 8 bytes at VA with KEY through b. */
static bool can_write(struct scene *s, uint64_t va, uint32_t key)
{
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&s->mr, 0, 8), va, key);

	qp_post_send(s->a, &wr);
	nic_wait(s->nic, &s->a->send_wcs, s->a->send_polled + 1);
	enum rdma_status status = qp_poll_send(s->a)->status;

	if (status == RDMA_OK)
		return true;
	assert_int_equal(status, RDMA_REM_ACCESS_ERR);
	again(s);
	return false;
}

/* Runs a local opcode on QP; fails the test when its status is not STATUS. */
static void local(struct scene *s, struct test_qp *qp, const struct rdma_wr *wr,
                  enum rdma_status status)
{
	qp_post_send(qp, wr);
	const struct rdma_wc *wc = qp_expect_send(qp, status);

	assert_false(wc->remote);
	if (status != RDMA_OK)
		again(s);
}

static void bad_regions(void **state)
{
	static const struct {
		int result;
		struct rdma_mr_config config;
	} cases[] = {
	        {-ERANGE, {.key = 0xff}},
	        {-ERANGE, {.key = 50 << 8}},
	        {-ERANGE, {.key = 0xffffffff}},
	        {0, {.key = 1 << 8}},
	        {-EEXIST, {.key = 1 << 8 | 5}},
	        {-EINVAL, {.key = 2 << 8, .page_count = 1, .va = UINT64_MAX, .length = 2}},
	        {-EINVAL, {.key = 2 << 8, .page_count = 1, .dma_addr = UINT64_MAX, .length = 2}},
	        {-EINVAL, {.key = 2 << 8, .page_count = 2, .page_shift = 11, .length = 1}},
	        {-EINVAL, {.key = 2 << 8, .page_count = 2, .page_shift = 41, .length = 1}},
	        {-EINVAL, {.key = 2 << 8, .page_count = 2, .page_shift = 12, .first = 4096}},
	        {-EINVAL, {.key = 2 << 8, .page_count = 2, .page_shift = 12, .length = 8193}},
	        {-EINVAL,
	         {.key = 2 << 8, .page_count = 2, .page_shift = 12, .length = 8192, .first = 1}},
	        {-EINVAL,
	         {.key = 2 << 8,
	          .page_count = 2,
	          .page_shift = 12,
	          .length = UINT64_MAX,
	          .first = 9}},
	        {-EFAULT, {.key = 2 << 8, .page_count = 2, .page_shift = 12, .length = 1}},
	        {-ENOSPC, {.key = 2 << 8, .page_count = 101, .page_shift = 12, .length = 1}},
	        {-ENOSPC, {.key = 2 << 8, .page_count = UINT32_MAX, .page_shift = 12, .length = 1}},
	        {0, {.key = 2 << 8, .page_count = 100, .page_shift = 40, .dma_addr = DMA_BASE}},
	        {-ENOSPC, {.key = 3 << 8, .page_count = 2, .page_shift = 12, .dma_addr = DMA_BASE}},
	};
	struct rdma_limits limits = {.qps = 10, .mrs = 50, .ahs = 1, .pages = 100};
	struct nic *nic = nic_new_limits("loopback", &limits, 1 << 20);
	struct rdma_dev_stats stats;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int result = rdma_mr_create(nic->dev, &cases[i].config);

		if (result != cases[i].result)
			fail_msg("case %zu: %d instead of %d", i, result, cases[i].result);
	}
	rdma_dev_stats(nic->dev, &stats);
	assert_int_equal(stats.mrs, 2);
	assert_int_equal(stats.pages, 100);
	assert_int_equal(rdma_mr_destroy(nic->dev, 2 << 8 | 0x77), 0); /* the byte may differ */
	assert_int_equal(rdma_mr_destroy(nic->dev, 2 << 8), -ENOENT);
	assert_int_equal(rdma_mr_destroy(nic->dev, 0xffffffff), -ENOENT);
	rdma_dev_stats(nic->dev, &stats);
	assert_int_equal(stats.pages, 0);
	nic_free(nic);
}

/* Pages of 2 MiB, and a table that turns out to be contiguous. */
static void page_sizes(void **state)
{
	struct scene s = scene_new();
	uint64_t pages = nic_dma(s.nic, 6 << 20, 2 << 20), table = nic_dma(s.nic, 4096, 8);
	uint64_t entries[2] = {htole64(pages + (4 << 20)), htole64(pages)};
	struct rdma_mr_config config = {.key = 0x9900,
	                                .pd = PD,
	                                .va = 0x123456,
	                                .first = 0x1ffff8,
	                                .length = (2 << 20) + 8,
	                                .dma_addr = table,
	                                .page_count = 2,
	                                .page_shift = 21,
	                                .flags = ALL};
	uint64_t value = 0x1122334455667788;

	(void)state;
	memcpy(nic_host(s.nic, table), entries, sizeof(entries));
	assert_int_equal(rdma_mr_create(s.nic->dev, &config), 0);
	mr_set(&s.mr, 0, &value, 8);
	assert_true(can_write(&s, 0x123456, 0x9900)); /* the last 8 bytes of the first page */
	assert_memory_equal(nic_host(s.nic, pages + (6 << 20) - 8), &value, 8);
	assert_true(can_write(&s, 0x123456 + (2 << 20), 0x9900)); /* the last of the region */
	assert_memory_equal(nic_host(s.nic, pages + (2 << 20) - 8), &value, 8);
	assert_true(can_write(&s, 0x123456 + 4, 0x9900)); /* across */
	assert_memory_equal(nic_host(s.nic, pages), (uint8_t *)&value + 4, 4);
	assert_false(can_write(&s, 0x123456 + (2 << 20) + 1, 0x9900));

	entries[0] = htole64(pages);
	entries[1] = htole64(pages + (2 << 20));
	memcpy(nic_host(s.nic, table), entries, sizeof(entries));
	config.key = 0x9a00;
	assert_int_equal(rdma_mr_create(s.nic->dev, &config), 0);
	uint64_t before = s.nic->maps;

	assert_true(can_write(&s, 0x123456 + 4, 0x9a00));
	assert_int_equal(s.nic->maps - before, 2); /* one piece at each end */
	scene_free(&s);
}

/* A zero-based region is addressed from 0, its first page still comes from va. */
static void zero_based(void **state)
{
	struct scene s = scene_new();
	struct test_mr mr = mr_scattered(s.nic, PD, 0x7123, 9000, ALL | RDMA_ACCESS_ZERO_BASED);
	uint64_t value = 0x1122334455667788;

	(void)state;
	mr_set(&s.mr, 0, &value, 8);
	assert_true(can_write(&s, 0, mr.key));
	assert_memory_equal(mr_byte(&mr, 0), &value, 8);
	assert_true(can_write(&s, 8992, mr.key));
	assert_memory_equal(mr_byte(&mr, 8992), &value, 8);
	assert_false(can_write(&s, 8993, mr.key));
	assert_false(can_write(&s, 0x7123 + 9000, mr.key));
	assert_false(can_write(&s, UINT64_MAX - 3, mr.key));
	mr_free(&mr);
	scene_free(&s);
}

/* Key 0 is raw DMA memory: for SGEs of a privileged QP, and for peers of a remote-privileged one.
 */
static void key_zero(void **state)
{
	struct scene s = scene_new();
	struct rdma_qp_config config = {.qpn = 500,
	                                .type = RDMA_QP_RC,
	                                .pd = 1,
	                                .privileged = true,
	                                .remote_privileged = true};
	struct test_qp *qp = qp_new_config(s.nic, &config, 64);
	uint64_t dma = nic_dma(s.nic, 4096, 4096);
	struct rdma_sge raw = {.va = dma, .length = 16};
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, raw, dma + 100, 0);

	(void)state;
	qp_connect(qp, qp);
	memset(nic_host(s.nic, dma), 0x5a, 16);
	qp_post_send(qp, &wr);
	qp_expect_send(qp, RDMA_OK);
	assert_memory_equal(nic_host(s.nic, dma), nic_host(s.nic, dma + 100), 16);
	wr.sge[0].va = UINT64_MAX - 3; /* wraps */
	qp_post_send(qp, &wr);
	qp_expect_send(qp, RDMA_LOC_PROT_ERR);
	qp_free(qp);
	scene_free(&s);
}

/* ---- fast registration ---- */

static struct rdma_wr reg_wr(uint32_t key, uint64_t dma, uint32_t pages, uint64_t length)
{
	struct rdma_wr wr = {.opcode = RDMA_REG_MR, .key = key};

	wr.reg.va = 0x50000;
	wr.reg.length = length;
	wr.reg.dma_addr = dma;
	wr.reg.page_count = pages;
	wr.reg.page_shift = 12;
	wr.reg.access = ALL;
	return wr;
}

static void fast_registration(void **state)
{
	struct scene s = scene_new();
	struct rdma_mr_config config = {
	        .key = 0x60001, .pd = PD, .flags = RDMA_MR_UKEY | RDMA_MR_INV};
	uint64_t pages = nic_dma(s.nic, 16 * 4096, 4096), table = nic_dma(s.nic, 4096, 8);
	struct rdma_wr reg = reg_wr(0x60002, table, 3, 3 * 4096);
	struct rdma_wr inv = {.opcode = RDMA_LOCAL_INV, .inv_key = 0x60002};

	(void)state;
	assert_int_equal(rdma_mr_create(s.nic->dev, &config), 0);
	assert_false(can_write(&s, 0x50000, 0x60001)); /* names no memory yet */
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t entry = htole64(pages + i * 2 * 4096);

		memcpy(nic_host(s.nic, table + 8 * i), &entry, 8);
	}
	local(&s, s.a, &reg, RDMA_OK);
	memset(nic_host(s.nic, table), 0xff, 24); /* has been copied */
	assert_true(can_write(&s, 0x50000 + 4092, 0x60002));
	assert_false(can_write(&s, 0x50000 + 3 * 4096 - 7, 0x60002));
	assert_false(can_write(&s, 0x50000, 0x60001)); /* the old key */
	local(&s, s.a, &reg, RDMA_MEM_MGMT_ERR);       /* is valid already */
	local(&s, s.a, &inv, RDMA_OK);
	assert_false(can_write(&s, 0x50000, 0x60002));

	reg.reg.page_count = 0;
	local(&s, s.a, &reg, RDMA_MEM_MGMT_ERR);
	reg = reg_wr(0x60003, DMA_BASE + s.nic->mem_size - 8, 3, 3 * 4096);
	local(&s, s.a, &reg, RDMA_MEM_MGMT_ERR); /* the table is not all in memory */
	reg = reg_wr(0x60003, pages + 5, 1, 100);
	local(&s, s.a, &reg, RDMA_OK); /* one page: the address of the first byte itself */
	assert_true(can_write(&s, 0x50000 + 92, 0x60003));
	assert_false(can_write(&s, 0x50000 + 93, 0x60003));
	assert_int_equal(rdma_mr_destroy(s.nic->dev, 0x60001), 0);
	local(&s, s.a, &reg, RDMA_MEM_MGMT_ERR);
	scene_free(&s);
}

static void registration_rules(void **state)
{
	struct scene s = scene_new();
	struct rdma_mr_config fixed = {.key = 0x60001, .pd = PD, .flags = RDMA_MR_INV};
	struct rdma_mr_config foreign = {.key = 0x61001, .pd = PD + 1, .flags = 0xa000};
	uint64_t dma = nic_dma(s.nic, 4096, 4096);
	struct rdma_wr wr = reg_wr(0x60002, dma, 1, 100);

	(void)state;
	assert_int_equal(rdma_mr_create(s.nic->dev, &fixed), 0);
	assert_int_equal(rdma_mr_create(s.nic->dev, &foreign), 0);
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR); /* its key may not change */
	wr.key = 0x60001;
	local(&s, s.a, &wr, RDMA_OK);
	wr.key = 0x61001;
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR); /* another PD's */
	wr.key = 0x7f0001;
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR); /* does not exist */
	wr = (struct rdma_wr){.opcode = RDMA_LOCAL_INV, .inv_key = s.mr.key};
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR); /* may not be invalidated */
	wr.inv_key = 0x60002;
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR); /* stale key */
	wr.inv_key = 0x61001;
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR);
	wr.inv_key = 0;
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR);
	assert_int_equal(rdma_dev_stat(s.nic->dev, RDMA_STAT_REQ_TX_MEM_MGMT), 7);
	scene_free(&s);
}

/* ---- windows ---- */

enum { TYPE1 = 0x6000, TYPE2 = 0xe000 };

static void window_new(struct scene *s, uint32_t key, uint16_t flags)
{
	struct rdma_mr_config config = {.key = key, .pd = PD, .flags = flags};

	assert_int_equal(rdma_mr_create(s->nic->dev, &config), 0);
}

static struct rdma_wr bind_wr(const struct scene *s, uint32_t key, uint8_t byte, uint64_t offset,
                              uint64_t length)
{
	struct rdma_wr wr = {.opcode = RDMA_BIND_MW, .key = key, .key_byte = byte};

	wr.bind.va = s->mr.va + offset;
	wr.bind.length = length;
	wr.bind.lkey = s->mr.key;
	wr.bind.access = RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ;
	return wr;
}

static void window_type1(void **state)
{
	struct scene s = scene_new();
	struct rdma_wr bind = bind_wr(&s, 0x80001, 2, 4096, 100), unbind;
	struct rdma_wr wr;
	uint64_t value = 77;

	(void)state;
	window_new(&s, 0x80001, TYPE1);
	assert_false(can_write(&s, s.mr.va + 4096, 0x80001));
	local(&s, s.b, &bind, RDMA_OK);
	mr_set(&s.mr, 0, &value, 8);
	assert_true(can_write(&s, s.mr.va + 4096, 0x80002));
	assert_memory_equal(s.mr.mem + 4096, &value, 8);
	assert_true(can_write(&s, s.mr.va + 4096 + 92, 0x80002));
	assert_false(can_write(&s, s.mr.va + 4096 + 93, 0x80002));
	assert_false(can_write(&s, s.mr.va + 4095, 0x80002));
	assert_false(can_write(&s, s.mr.va + 4096, 0x80001)); /* the old key */
	wr = wr_rdma(RDMA_FETCH_ADD, sge_of(&s.mr, 0, 8), s.mr.va + 4096, 0x80002);
	qp_post_send(s.a, &wr);
	qp_expect_send(s.a, RDMA_REM_ACCESS_ERR); /* the window does not allow it */
	again(&s);
	wr = wr_rdma(RDMA_WRITE, (struct rdma_sge){s.mr.va + 4096, 8, 0x80002}, s.mr.va, s.mr.key);
	qp_post_send(s.a, &wr);
	qp_expect_send(s.a, RDMA_LOC_PROT_ERR); /* a window is no lkey */
	again(&s);
	/* bound again, elsewhere; then unbound */
	bind = bind_wr(&s, 0x80002, 3, 8192, 8);
	local(&s, s.b, &bind, RDMA_OK);
	assert_true(can_write(&s, s.mr.va + 8192, 0x80003));
	assert_false(can_write(&s, s.mr.va + 4096, 0x80003));
	unbind = bind_wr(&s, 0x80003, 4, 0, 0);
	local(&s, s.b, &unbind, RDMA_OK);
	assert_false(can_write(&s, s.mr.va + 8192, 0x80004));
	wr = (struct rdma_wr){.opcode = RDMA_LOCAL_INV, .inv_key = 0x80004};
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR); /* type 1 is unbound, not invalidated */
	scene_free(&s);
}

static void window_type2(void **state)
{
	struct scene s = scene_new();
	struct rdma_wr bind = bind_wr(&s, 0x80001, 2, 0, 4096), wr;
	struct test_qp *other = qp_new(s.nic, RDMA_QP_RC, PD);
	struct test_qp *others_peer = qp_new(s.nic, RDMA_QP_RC, PD);

	(void)state;
	window_new(&s, 0x80001, TYPE2);
	local(&s, s.b, &bind, RDMA_OK);
	assert_true(can_write(&s, s.mr.va, 0x80002));
	bind = bind_wr(&s, 0x80002, 3, 0, 4096);
	local(&s, s.b, &bind, RDMA_MEM_MGMT_ERR); /* is bound */
	/* only through the QP that bound it, and only that QP invalidates it */
	qp_connect(other, others_peer);
	wr = wr_rdma(RDMA_WRITE, sge_of(&s.mr, 0, 8), s.mr.va, 0x80002);
	qp_post_send(other, &wr);
	qp_expect_send(other, RDMA_REM_ACCESS_ERR);
	wr = (struct rdma_wr){.opcode = RDMA_LOCAL_INV, .inv_key = 0x80002};
	local(&s, s.a, &wr, RDMA_MEM_MGMT_ERR);
	assert_true(can_write(&s, s.mr.va, 0x80002));
	/* by the peer, with SEND_INV */
	wr = wr_send(RDMA_SEND_INV, sge_of(&s.mr, 0, 8));
	wr.inv_key = 0x80002;
	qp_post_recv_sge(s.b, 1, sge_of(&s.mr, 100, 8));
	qp_post_send(s.a, &wr);
	assert_int_equal(qp_expect_recv(s.b, RDMA_OK)->inv_key, 0x80002);
	qp_expect_send(s.a, RDMA_OK);
	assert_false(can_write(&s, s.mr.va, 0x80002));
	wr = bind_wr(&s, 0x80002, 9, 0, 0);
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR); /* length 0 is for type 1 */
	wr = bind_wr(&s, 0x80002, 9, 0, 8);
	local(&s, s.b, &wr, RDMA_OK);
	assert_true(can_write(&s, s.mr.va, 0x80009));
	qp_free(other);
	qp_free(others_peer);
	scene_free(&s);
}

static void window_rules(void **state)
{
	struct scene s = scene_new();
	struct test_mr no_bind = mr_new(s.nic, PD, 0x10000, 4096, 0xf);
	struct test_mr read_only = mr_new(s.nic, PD, 0x10000, 4096, RDMA_ACCESS_MW_BIND);
	struct test_mr foreign = mr_new(s.nic, PD + 1, 0x10000, 4096, ALL);
	struct rdma_wr good = bind_wr(&s, 0x80001, 2, 0, 100), wr;

	(void)state;
	window_new(&s, 0x80001, TYPE1);
	wr = good;
	wr.bind.lkey = no_bind.key;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr.bind.lkey = read_only.key;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr.bind.lkey = foreign.key;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr.bind.lkey = 0x80001; /* itself */
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr.bind.lkey = 0;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr = good;
	wr.bind.length = 65537;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr = good;
	wr.bind.va -= 1;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr = good;
	wr.key ^= 0x80;
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr.key = s.mr.key; /* a region is no window */
	local(&s, s.b, &wr, RDMA_MEM_MGMT_ERR);
	wr = good;
	wr.bind.lkey = read_only.key; /* remote read alone needs no local write */
	wr.bind.access = RDMA_ACCESS_REMOTE_READ;
	local(&s, s.b, &wr, RDMA_OK);
	struct rdma_wr reg = reg_wr(0x80002, s.mr.dma, 1, 8);

	local(&s, s.b, &reg, RDMA_MEM_MGMT_ERR); /* a window is no region */
	scene_free(&s);
}

/* A window dies with its region, and does not wake up with the region's next registration. */
static void window_without_region(void **state)
{
	struct scene s = scene_new();
	struct rdma_mr_config config = {
	        .key = 0x60001, .pd = PD, .flags = RDMA_MR_UKEY | RDMA_MR_INV};
	struct rdma_wr reg = reg_wr(0x60001, s.mr.dma, 1, 4096);
	struct rdma_wr inv = {.opcode = RDMA_LOCAL_INV, .inv_key = 0x60001};
	struct rdma_wr bind = bind_wr(&s, 0x80001, 1, 0, 100);

	(void)state;
	assert_int_equal(rdma_mr_create(s.nic->dev, &config), 0);
	window_new(&s, 0x80001, TYPE1);
	local(&s, s.b, &reg, RDMA_OK);
	bind.bind.lkey = 0x60001;
	bind.bind.va = 0x50000;
	local(&s, s.b, &bind, RDMA_OK);
	assert_true(can_write(&s, 0x50000, 0x80001));
	local(&s, s.b, &inv, RDMA_OK);
	assert_false(can_write(&s, 0x50000, 0x80001));
	local(&s, s.b, &reg, RDMA_OK);
	assert_false(can_write(&s, 0x50000, 0x80001));
	local(&s, s.b, &bind, RDMA_OK);
	assert_true(can_write(&s, 0x50000, 0x80001));
	assert_int_equal(rdma_mr_destroy(s.nic->dev, 0x60001), 0);
	assert_false(can_write(&s, 0x50000, 0x80001));
	assert_int_equal(rdma_mr_destroy(s.nic->dev, 0x80001), 0);
	scene_free(&s);
}

/* Atomics need an aligned word in one host piece, whatever address the guest calls it by. */
static void split_words(void **state)
{
	struct scene s = scene_new();
	struct rdma_mr_config config = {.key = 0x60001,
	                                .pd = PD,
	                                .va = 0x1000,
	                                .length = 64,
	                                .dma_addr = s.mr.dma + 4,
	                                .page_count = 1,
	                                .flags = ALL};
	struct rdma_wr wr = wr_rdma(RDMA_FETCH_ADD, sge_of(&s.mr, 0, 8), 0x1000, 0x60001);

	(void)state;
	assert_int_equal(rdma_mr_create(s.nic->dev, &config), 0);
	qp_post_send(s.a, &wr);
	qp_expect_send(s.a, RDMA_REM_INV_REQ_ERR);
	again(&s);
	s.nic->piece = 4;
	wr.remote.rkey = s.mr.key;
	wr.remote.va = s.mr.va;
	qp_post_send(s.a, &wr);
	qp_expect_send(s.a, RDMA_REM_INV_REQ_ERR);
	scene_free(&s);
}

/* Host addresses are remembered while the owner's map stays the same, and not a moment longer. */
static void remembered_pages(void **state)
{
	struct scene s = scene_new();
	struct test_mr mr = mr_scattered(s.nic, PD, 0x7123, 5 * 4096, ALL);
	uint64_t maps;

	(void)state;
	for (int round = 0; round < 2; round++) {
		uint64_t va = round ? s.mr.va + 8 : mr.va + 4096;
		uint32_t key = round ? s.mr.key : mr.key;

		s.nic->generation++;
		s.nic->hole_end = 0;
		assert_true(can_write(&s, va, key));
		maps = s.nic->maps;
		assert_true(can_write(&s, va, key));
		assert_int_equal(s.nic->maps, maps);
		s.nic->hole = round ? s.mr.dma : mr.page_dma[1];
		s.nic->hole_end = s.nic->hole + 4096;
		if (round) /* the source is in there too */
			break;
		assert_true(can_write(&s, va, key)); /* the owner has not said so yet */
		s.nic->generation++;
		assert_false(can_write(&s, va, key));
	}
	s.nic->generation++;
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&s.mr, 0, 8), s.mr.va + 8, s.mr.key);

	qp_post_send(s.a, &wr);
	qp_expect_send(s.a, RDMA_LOC_PROT_ERR);
	mr_free(&mr);
	scene_free(&s);
}

/* What was remembered of one registration is nothing for the next, also when the owner has ceased
 * to tell whether its map changes. */
static void remembers_no_former_registration(void **state)
{
	struct scene s = scene_new();
	struct rdma_mr_config config = {.key = 0x60001, .pd = PD, .flags = RDMA_MR_INV};
	uint64_t old = nic_dma(s.nic, 4096, 4096), new = nic_dma(s.nic, 4096, 4096);
	struct rdma_wr reg = reg_wr(0x60001, old, 1, 4096);
	struct rdma_wr inv = {.opcode = RDMA_LOCAL_INV, .inv_key = 0x60001};

	(void)state;
	assert_int_equal(rdma_mr_create(s.nic->dev, &config), 0);
	s.nic->generation++;
	local(&s, s.a, &reg, RDMA_OK);
	assert_true(can_write(&s, 0x50000, 0x60001));
	local(&s, s.a, &inv, RDMA_OK);
	reg = reg_wr(0x60001, new, 1, 4096);
	local(&s, s.a, &reg, RDMA_OK);
	s.nic->generation = 0;
	memset(nic_host(s.nic, old), 0xee, 8);
	memset(nic_host(s.nic, new), 0xee, 8);
	memset(mr_byte(&s.mr, 0), 0x11, 8);
	assert_true(can_write(&s, 0x50000, 0x60001));
	assert_int_equal(*nic_host(s.nic, old), 0xee);
	assert_int_equal(*nic_host(s.nic, new), 0x11);
	scene_free(&s);
}

/* That memory may be read says nothing about writing it, in whatever order both are tried. */
static void read_only_memory(void **state)
{
	struct scene s = scene_new();
	struct test_mr mrs[] = {mr_new(s.nic, PD, 0x90000, 4096, ALL),
	                        mr_scattered(s.nic, PD, 0x7123, 2 * 4096, ALL)};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mrs); i++) {
		struct test_mr *mr = &mrs[i];
		struct rdma_wr wr = wr_rdma(RDMA_READ, sge_of(&s.mr, 0, 8), mr->va, mr->key);

		s.nic->generation++;
		s.nic->read_only = mr->page_dma ? mr->page_dma[0] : mr->dma;
		s.nic->read_only_end = s.nic->read_only + 4096;
		for (int round = 0; round < 3; round++) {
			assert_false(can_write(&s, mr->va, mr->key));
			qp_post_send(s.a, &wr);
			qp_expect_send(s.a, RDMA_OK);
		}
		s.nic->read_only_end = 0;
		s.nic->generation++;
		assert_true(can_write(&s, mr->va, mr->key));
	}
	mr_free(&mrs[1]);
	scene_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bad_regions),
	        cmocka_unit_test(page_sizes),
	        cmocka_unit_test(zero_based),
	        cmocka_unit_test(key_zero),
	        cmocka_unit_test(fast_registration),
	        cmocka_unit_test(registration_rules),
	        cmocka_unit_test(window_type1),
	        cmocka_unit_test(window_type2),
	        cmocka_unit_test(window_rules),
	        cmocka_unit_test(window_without_region),
	        cmocka_unit_test(split_words),
	        cmocka_unit_test(remembered_pages),
	        cmocka_unit_test(read_only_memory),
	        cmocka_unit_test(remembers_no_former_registration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
