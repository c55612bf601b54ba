// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDMA counters (spec ionic-rdma 12, ionic-ethernet 10.4): the lists of the admin queue, the LIF
 * block, and the stats file tell the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rdma_rig.h"

static struct rdma_rig rig;
static struct rig_cq cq;
static struct rig_qp a, b;
static struct rig_mr mr;

static int setup(void **state)
{
	(void)state;
	rig_create(&rig);
	assert_int_equal(rig_cq_create(&rig, &cq, 9, 8, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &a, &cq, 2, 0, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &b, &cq, 8, 0, 1), 0);
	rig_qp_connect(&a, &b);
	rig_qp_connect(&b, &a);
	rig_mr_create(&rig, &mr, 1, 1, 2 * 4096, RIG_ALL_ACCESS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig_destroy(&rig);
	return 0;
}

/* ---- the guest's reading of the lists ---- */

struct list {
	struct ionic_rdma_stat_header headers[128];
	le64 values[512];
};

static int fetch(uint8_t op, uint32_t qpn, void *data)
{
	uint64_t page = fake_alloc(&rig.guest, 4096);
	union ionic_rdma_admin wqe = {.stats = {.dma_addr = le64_make(page),
	                                        .length = le32_make(4096),
	                                        .id_ver = le32_make(qpn)}};
	int status = rig_admin(&rig, op, &wqe, 17);

	memcpy(data, fake_ptr(&rig.guest, page, 4096), 4096);
	return status;
}

/* The value NAME, or UINT64_MAX. Checks what the driver relies on. */
static uint64_t value_of(const struct list *list, const char *name)
{
	for (size_t i = 0; i < 128; i++) {
		uint32_t word = be32_get(list->headers[i].type_off);

		if (word >> 28 == 0)
			return UINT64_MAX;
		assert_int_equal(word >> 28, 4);
		assert_int_equal(word % 8, 0);
		assert_in_range(word & 0xfffffff, 0, 4088);
		assert_int_equal(list->headers[i].name[27], 0);
		if (strcmp(list->headers[i].name, name) == 0)
			return le64_get(list->values[(word & 0xfffffff) / 8]);
	}
	fail_msg("the list has no end");
	return UINT64_MAX;
}

static void check_names(const struct list *list, unsigned count)
{
	unsigned i = 0;

	for (; be32_get(list->headers[i].type_off) >> 28 != 0; i++) {
		const char *name = list->headers[i].name;

		assert_in_range(strlen(name), 1, 27);
		assert_null(strchr(name, '/'));
		assert_string_not_equal(name, "lifespan");
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(name, list->headers[j].name);
	}
	assert_int_equal(i, count);
}

static struct list port_list(void)
{
	struct list list = {0};

	assert_int_equal(fetch(IONIC_RDMA_STATS_HDRS, 0, list.headers), 0);
	assert_int_equal(fetch(IONIC_RDMA_STATS_VALS, 0, list.values), 0);
	return list;
}

static struct list qp_list(uint32_t qpn)
{
	struct list list = {0};

	assert_int_equal(fetch(IONIC_RDMA_QP_STATS_HDRS, 0, list.headers), 0);
	assert_int_equal(fetch(IONIC_RDMA_QP_STATS_VALS, qpn, list.values), 0);
	return list;
}

struct lookup {
	const char *name;
	uint64_t value;
	unsigned found;
};

static void look(const char *name, uint64_t value, void *arg)
{
	struct lookup *lookup = arg;

	if (strcmp(lookup->name, name) == 0) {
		lookup->value = value;
		lookup->found++;
	}
}

static uint64_t lif_stat(const char *name)
{
	struct lookup lookup = {.name = name};

	ionic_lif_stats_visit(rig.guest.dev, look, &lookup);
	assert_int_equal(lookup.found, 1);
	return lookup.value;
}

static uint64_t file_stat(const char *name)
{
	struct lookup lookup = {.name = name};

	ionic_rdma_stats_visit(rig.guest.dev, look, &lookup);
	ionic_qp_stats_visit(rig.guest.dev, look, &lookup);
	assert_int_equal(lookup.found, 1);
	return lookup.value;
}

static uint64_t block_stat(unsigned index)
{
	const struct ionic_lif_info *info =
	        fake_ptr(&rig.guest, rig.guest.lif_info, sizeof(struct ionic_lif_info));

	return le64_get(info->stats[index]);
}

static void write_some(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		union ionic_rdma_wqe wqe =
		        rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, RIG_SIGNALED, &mr, 100, &mr);

		rig_post_send(&a, &wqe, 64);
		rig_ring_send(&a);
	}
}

static void fail_remotely(void)
{
	struct rig_mr wrong = mr;
	union ionic_rdma_wqe wqe;

	wrong.key ^= 1;
	wqe = rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, 0, &mr, 100, &wrong);
	rig_post_send(&a, &wqe, 64);
	rig_ring_send(&a);
}

/* ---- tests ---- */

static void test_names(void **state)
{
	struct list port = port_list(), qp = qp_list(2);

	(void)state;
	check_names(&port, 37);
	check_names(&qp, 8 * 4 + 3 + 6);
	value_of(&port, "");
	value_of(&qp, "");
}

static void test_port(void **state)
{
	struct list list = {0};

	(void)state;
	write_some(3);
	fail_remotely();
	list = port_list();
	assert_int_equal(value_of(&list, "tx_rdma_ucast_bytes"), 300);
	assert_int_equal(value_of(&list, "tx_rdma_ucast_pkts"), 3);
	assert_int_equal(value_of(&list, "rx_rdma_ucast_bytes"), 300);
	assert_int_equal(value_of(&list, "req_rx_rmt_acc_err"), 1);
	assert_int_equal(value_of(&list, "resp_tx_rmt_acc_err"), 1);
	assert_int_equal(value_of(&list, "req_rx_cqe_flush"), 2);
}

static void test_qp(void **state)
{
	struct list list = {0};

	(void)state;
	write_some(3);
	list = qp_list(2);
	assert_int_equal(value_of(&list, "tx_write_msgs"), 3);
	assert_int_equal(value_of(&list, "tx_write_bytes"), 300);
	assert_int_equal(value_of(&list, "sq_doorbells"), 3);
	list = qp_list(8);
	assert_int_equal(value_of(&list, "rx_write_msgs"), 3);
	assert_int_equal(value_of(&list, "tx_write_msgs"), 0);
	assert_int_equal(fetch(IONIC_RDMA_QP_STATS_VALS, 3, list.values), IONIC_RDMA_BAD_INDEX);
}

/* The LIF block, the stats file and the lists agree, in the places of the interface. */
static void test_lif_block(void **state)
{
	struct list list = {0};

	(void)state;
	write_some(2);
	fail_remotely();
	list = port_list();
	assert_int_equal(lif_stat("tx_rdma_ucast_bytes"), 200);
	assert_int_equal(rig.guest.dev->stats.lif[48], 200);
	assert_int_equal(rig.guest.dev->stats.lif[57], 2);
	assert_int_equal(lif_stat("rdma_req_rx_remote_access_err"), 1);
	assert_int_equal(rig.guest.dev->stats.lif[98], 1);
	assert_int_equal(rig.guest.dev->stats.lif[123], value_of(&list, "resp_tx_rmt_acc_err"));
	assert_int_equal(block_stat(48), 0);
	rig.guest.dev->publish_pending = true;
	ionic_dev_schedule(rig.guest.dev);
	fake_run(&rig.guest);
	assert_int_equal(block_stat(48), 200);
	assert_int_equal(block_stat(98), 1);
}

/* A device reset zeroes what the guest sees; a reset of the RDMA function does not. */
static void test_reset(void **state)
{
	struct list list = {0};

	(void)state;
	write_some(4);
	assert_int_equal(rig_command(&rig, IONIC_CMD_RDMA_RESET_LIF, 0, 0, 0, 0, 0), 0);
	assert_int_equal(lif_stat("tx_rdma_ucast_bytes"), 400);
	fake_reset(&rig.guest, VFIO_RESET_FUNCTION);
	assert_int_equal(lif_stat("tx_rdma_ucast_bytes"), 0);
	rig.guest.used = 0;
	fake_probe(&rig.guest);
	rig_bring_up(&rig);
	list = port_list();
	assert_int_equal(value_of(&list, "tx_rdma_ucast_bytes"), 0);
	assert_int_equal(file_stat("tx_rdma_ucast_bytes"), 400); /* of the process */
}

static void test_file(void **state)
{
	(void)state;
	write_some(5);
	assert_int_equal(file_stat("send_doorbells"), 5);
	assert_int_equal(file_stat("cq_entries"), 5 + file_stat("admin_commands"));
	assert_int_equal(file_stat("qps"), 2);
	assert_int_equal(file_stat("eq_3_events"), 1);
	assert_int_equal(file_stat("qp_2_tx_write_messages"), 5);
	assert_int_equal(file_stat("qp_2_doorbells"), 5);
	assert_int_equal(file_stat("qp_2_completions"), 5);
	assert_int_equal(file_stat("active"), 1); /* the other has never been rung for */
}

/* Room for fewer than there are, for none, and none at all. */
static void test_short_buffers(void **state)
{
	uint64_t page = fake_alloc(&rig.guest, 4096);
	union ionic_rdma_admin wqe = {
	        .stats = {.dma_addr = le64_make(page), .length = le32_make(40)}};
	const uint8_t *bytes = fake_ptr(&rig.guest, page, 4096);

	(void)state;
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_STATS_HDRS, &wqe, 17), 0);
	assert_int_not_equal(bytes[32], 0);
	assert_int_equal(bytes[40], 0);
	wqe.stats.length = le32_make(0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_STATS_HDRS, &wqe, 17), 0);
	wqe.stats.length = le32_make(4096);
	wqe.stats.dma_addr = le64_make(0);
	assert_int_equal(rig_admin(&rig, IONIC_RDMA_STATS_VALS, &wqe, 17), IONIC_RDMA_BAD_ATTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(test_names),         TEST(test_port),  TEST(test_qp),
	        TEST(test_lif_block),     TEST(test_reset), TEST(test_file),
	        TEST(test_short_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
