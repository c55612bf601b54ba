// SPDX-License-Identifier: GPL-2.0-or-later
/* Firmware life: stop, start, restart, reset event, heartbeat (spec ionic-ethernet 2.6, 12.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;
static uint64_t fake_now = UINT64_C(1) << 60; /* ns, so late that no timer is due by itself */

/* The room's clock (linked with --wrap). */
uint64_t __wrap_loop_now(const struct loop *loop);
uint64_t __wrap_loop_now(const struct loop *loop)
{
	(void)loop;
	return fake_now;
}

static int setup(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	fake_probe(&guest);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

#define SECOND UINT64_C(1000000000)

static unsigned fw_status(void)
{
	return (unsigned)fake_read(&guest, 7, 1);
}

static uint32_t heartbeat(void)
{
	return (uint32_t)fake_read(&guest, 8, 4);
}

static bool has_state(void)
{
	return guest.dev->lif.initialized || guest.dev->eth_port.initialized ||
	       guest.dev->lif.adminq.initialized || guest.dev->stats_timer.armed;
}

/* What a driver that has noticed does: all from the beginning, without INIT. */
static void recover(void)
{
	union ionic_cmd reset = {.any = {.opcode = IONIC_CMD_RESET}};

	guest.quiet = false;
	assert_int_equal(fake_devcmd(&guest, &reset, NULL), IONIC_RC_SUCCESS);
	fake_probe(&guest);
	assert_true(has_state());
}

static void test_stop_and_start(void **state)
{
	(void)state;
	assert_int_equal(fw_status(), 0x11);
	ionic_fw_action(guest.dev, IONIC_FW_STOP);
	assert_false(has_state());
	assert_int_equal(fw_status(), 0x10);
	guest.quiet = true; /* the driver frees its memory without a word */
	fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, 5);
	fake_run(&guest);
	ionic_fw_action(guest.dev, IONIC_FW_STOP);
	assert_int_equal(fw_status(), 0x10);
	ionic_fw_action(guest.dev, IONIC_FW_START);
	assert_int_equal(fw_status(), 0x21);
	ionic_fw_action(guest.dev, IONIC_FW_START); /* it runs */
	assert_int_equal(fw_status(), 0x21);
	recover();
}

/* Nobody executes commands meanwhile; the driver does not send any. */
static void test_no_command_while_stopped(void **state)
{
	union ionic_cmd nop = {.any = {.opcode = IONIC_CMD_NOP}};

	(void)state;
	ionic_fw_action(guest.dev, IONIC_FW_STOP);
	assert_int_equal(fake_devcmd(&guest, &nop, NULL), -1);
	ionic_fw_action(guest.dev, IONIC_FW_START);
	fake_run(&guest);
	assert_int_equal(fake_read(&guest, 0x804, 4), 0); /* forgotten, not postponed */
	assert_int_equal(fake_devcmd(&guest, &nop, NULL), IONIC_RC_SUCCESS);
}

/* A command that was pending when the firmware stopped is never answered. */
static void test_stop_drops_pending_command(void **state)
{
	(void)state;
	fake_write(&guest, 0x808, IONIC_CMD_NOP, 4);
	fake_write(&guest, 0x800, 1, 4);
	ionic_fw_action(guest.dev, IONIC_FW_STOP);
	fake_run(&guest);
	assert_int_equal(fake_read(&guest, 0x804, 4) & 1, 1); /* of the command before */
	assert_false(guest.dev->devcmd_pending);
}

static void test_restart(void **state)
{
	(void)state;
	for (unsigned i = 2; i < 40; i++) {
		ionic_fw_action(guest.dev, IONIC_FW_RESTART);
		assert_int_equal(fw_status(), (i & 15) << 4 | 1);
		assert_int_not_equal(fw_status(), 0xff);
		assert_false(has_state());
	}
	recover();
}

/* The event first, and the new generation without which the driver stays down. */
static void test_reset_event(void **state)
{
	const union ionic_event *event = fake_ptr(&guest, guest.notifyq.desc + 4096, 64);
	uint64_t interrupts = guest.msix[0];

	(void)state;
	ionic_fw_action(guest.dev, IONIC_FW_RESET_EVENT);
	assert_int_equal(fw_status(), 0x11); /* it takes guest memory, and so the work */
	fake_run(&guest);
	assert_int_equal(le64_get(event->reset.eid), 1);
	assert_int_equal(le16_get(event->reset.ecode), IONIC_EVENT_RESET);
	assert_int_equal(guest.msix[0], interrupts + 1);
	assert_int_equal(fw_status(), 0x21);
	assert_false(has_state());
	recover();
	/* Stopped firmware sends no events. */
	ionic_fw_action(guest.dev, IONIC_FW_STOP);
	ionic_fw_action(guest.dev, IONIC_FW_RESET_EVENT);
	fake_run(&guest);
	assert_int_equal(fw_status(), 0x20);
}

/* Once a second, and never 0. */
static void test_heartbeat(void **state)
{
	uint32_t last = heartbeat();

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		fake_now += SECOND;
		assert_int_not_equal(heartbeat(), last);
		last = heartbeat();
		assert_int_not_equal(last, 0);
	}
	for (fake_now = 0; fake_now < 5 * SECOND; fake_now += SECOND / 4)
		assert_int_not_equal(heartbeat(), 0);
}

static void test_stall(void **state)
{
	uint32_t last;

	(void)state;
	ionic_fw_action(guest.dev, IONIC_FW_STALL);
	last = heartbeat();
	assert_int_not_equal(last, 0);
	fake_now += 30 * SECOND;
	assert_int_equal(heartbeat(), last);
	ionic_fw_action(guest.dev, IONIC_FW_STALL);
	assert_int_equal(heartbeat(), last);
	assert_true(has_state()); /* nothing else stops */
	ionic_fw_action(guest.dev, IONIC_FW_UNSTALL);
	assert_int_not_equal(heartbeat(), last);
}

/* Function resets leave the firmware as it is, and the link as the operator wants it. */
static void test_function_reset_keeps_firmware(void **state)
{
	(void)state;
	ionic_fw_action(guest.dev, IONIC_FW_RESTART);
	ionic_link_set(guest.dev, false);
	fake_reset(&guest, VFIO_RESET_DEVICE);
	assert_int_equal(fw_status(), 0x21);
	assert_false(ionic_link_up(guest.dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_stop_and_start, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_no_command_while_stopped, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_stop_drops_pending_command, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset_event, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_heartbeat, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_stall, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_function_reset_keeps_firmware, setup,
	                                        teardown),
	};

	return cmocka_run_group_tests_name("ionic/fw", tests, NULL, NULL);
}
