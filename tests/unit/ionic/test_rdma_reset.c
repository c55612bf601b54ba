// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resets at any moment of RDMA traffic.
 *
 * The scenario is run once to count the accesses to guest memory that it makes, and then once for
 * each of them with a reset at that very place. From there on the device may not touch memory until
 * it is set up again, and then it works as if nothing had been. The same with everything that ends
 * the RDMA function alone, and without any end: a scenario is left as it is and the guest vanishes.
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

/* ---- the scenario: it does not care to be answered ---- */

static void post(union ionic_rdma_wqe wqe)
{
	rig_post_send(&a, &wqe, 64);
	rig_ring_send(&a);
}

static void traffic(void)
{
	struct rig_mr wrong = mr;
	union ionic_rdma_admin wqe = {
	        .stats = {.dma_addr = le64_make(mr.addr), .length = le32_make(4096)}};

	rig_cq_arm(&cq, false);
	rig_post_recv(&b, 1, &mr, 4096, 64);
	rig_ring_recv(&b);
	post(rig_wqe_send(IONIC_RDMA_WQE_SEND, RIG_SIGNALED, &mr, 0, 32));
	post(rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, RIG_SIGNALED, &mr, 5000, &mr));
	post(rig_wqe_rdma(IONIC_RDMA_WQE_READ, 0, &mr, 5000, &mr));
	rig_admin_post(&rig, IONIC_RDMA_STATS_HDRS, &wqe, 17);
	rig_admin_ring(&rig);
	rig_cq_arm(&cq, true);
	wrong.key ^= 1;
	post(rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, RIG_SIGNALED, &mr, 8, &wrong));
}

static void objects(void)
{
	rig_bring_up(&rig);
	assert_int_equal(rig_cq_create(&rig, &cq, 9, 8, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &a, &cq, 2, 0, 1), 0);
	assert_int_equal(rig_qp_create(&rig, &b, &cq, 8, 0, 1), 0);
	rig_qp_connect(&a, &b);
	rig_qp_connect(&b, &a);
	rig_mr_create(&rig, &mr, 1, 1, 2 * 4096, RIG_ALL_ACCESS);
	assert_int_equal(rig_ah_create(&rig, 5, 1), 0);
}

static void set_up(void)
{
	rig.guest.on_access = NULL;
	rig.guest.quiet = false;
	rig.guest.used = 0;
	fake_reset(&rig.guest, VFIO_RESET_FUNCTION);
	fake_probe(&rig.guest);
	objects();
}

/* ---- resets ---- */

static void reset_function(struct fake_guest *guest)
{
	fake_reset(guest, VFIO_RESET_FUNCTION);
	guest->quiet = true;
}

static void restart_firmware(struct fake_guest *guest)
{
	ionic_fw_action(guest->dev, IONIC_FW_RESTART);
	guest->quiet = true;
}

static void (*reset_now)(struct fake_guest *guest);

static void count_down(struct fake_guest *guest, uint64_t addr, size_t size,
                       enum guest_access access)
{
	(void)addr, (void)size, (void)access;
	if (guest->hook_arg > 0 && --guest->hook_arg == 0)
		reset_now(guest);
}

static int setup(void **state)
{
	(void)state;
	rig_create(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	rig.guest.on_access = NULL;
	rig_destroy(&rig);
	return 0;
}

static bool works(void)
{
	union ionic_rdma_cqe cqe;

	set_up();
	traffic();
	return rig_cq_poll(&cq, &cqe);
}

static uint64_t accesses_of_traffic(void)
{
	uint64_t before;

	set_up();
	before = rig.guest.accesses;
	traffic();
	return rig.guest.accesses - before;
}

static void reset_at_each_access(void (*reset)(struct fake_guest *guest), bool messages)
{
	uint64_t count;

	rig.guest.messages_only = messages;
	count = accesses_of_traffic();
	assert_in_range(count, 20, 1000);
	reset_now = reset;
	for (uint64_t i = 1; i <= count; i++) {
		set_up();
		rig.guest.hook_arg = i;
		rig.guest.on_access = count_down;
		traffic();
		assert_true(rig.guest.quiet);
		fake_run(&rig.guest);
		assert_null(rdma_qp_find(rig.guest.dev->rdma->engine, 2));
	}
	assert_true(works());
}

static void test_function_reset(void **state)
{
	(void)state;
	reset_at_each_access(reset_function, false);
}

static void test_function_reset_with_messages(void **state)
{
	(void)state;
	reset_at_each_access(reset_function, true);
}

static void test_firmware_restart(void **state)
{
	(void)state;
	reset_at_each_access(restart_firmware, false);
}

/* Commands that end it, in mid traffic: nothing is written afterwards, and doorbells are ignored
 * (2.5). */
static void test_commands(void **state)
{
	static const uint8_t opcodes[] = {IONIC_CMD_RDMA_RESET_LIF, IONIC_CMD_LIF_RESET,
	                                  IONIC_CMD_RESET};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		union ionic_cmd cmd = {.any = {.opcode = opcodes[i]}};
		union ionic_rdma_wqe wqe;

		set_up();
		wqe = rig_wqe_rdma(IONIC_RDMA_WQE_WRITE, RIG_SIGNALED, &mr, 5000, &mr);
		for (unsigned j = 0; j < 20; j++)
			rig_post_send(&a, &wqe, 64);
		rig_doorbell(&rig, 1, IONIC_DB_RDMA_SQ, 2, 0, a.sq.prod);
		assert_int_equal(fake_devcmd(&rig.guest, &cmd, NULL), 0);
		rig.guest.quiet = true;
		traffic();
		fake_run(&rig.guest);
	}
	assert_true(works());
}

/* A guest that vanishes while everything is in use leaves nothing behind. */
static void test_disconnect(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		set_up();
		traffic();
		fake_reset(&rig.guest, VFIO_RESET_DISCONNECT);
		rig.guest.quiet = true;
		fake_run(&rig.guest);
	}
	assert_true(works());
	/* and now the device goes, as it is */
}

/* The guest's memory goes away under a working device: errors, and life goes on. */
static void test_memory_vanishes(void **state)
{
	(void)state;
	set_up();
	rig.guest.bus_master = false;
	traffic();
	fake_run(&rig.guest);
	rig.guest.bus_master = true;
	assert_true(works());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(test_function_reset),   TEST(test_function_reset_with_messages),
	        TEST(test_firmware_restart), TEST(test_commands),
	        TEST(test_disconnect),       TEST(test_memory_vanishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
