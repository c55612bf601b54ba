// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resets at any moment.
 *
 * A reset can arrive between any two accesses to guest memory, because some of them wait for the
 * client's answers. The scenario below is run once to count its accesses, and then once for each of
 * them with a reset at that place: afterwards the device may not touch memory until it is set up
 * again, and then it works as if nothing had been.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;

/* ---- the scenario: what it posts, it does not care to be answered ----
 *
 * So it goes on after a reset, as a driver does that has not noticed. */

static void post_devcmd(const union ionic_cmd *cmd)
{
	for (size_t i = 0; i < sizeof(*cmd); i += 4)
		fake_bar_write(&guest, IONIC_BAR_REGS, 0x808 + i, cmd->bytes + i, 4);
	fake_write(&guest, 0x804, 0, 4);
	fake_write(&guest, 0x800, 1, 4);
	fake_run(&guest);
}

static void post_admin(const union ionic_cmd *cmd)
{
	fake_admin_post(&guest, cmd);
	fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, guest.adminq.head);
	fake_run(&guest);
}

static void post_port_init(void)
{
	union ionic_cmd cmd = {.port_init = {.opcode = IONIC_CMD_PORT_INIT}};
	struct ionic_port_config config;

	ionic_port_default_config(&fake_profile, &config);
	fake_devcmd_data_write(&guest, &config, sizeof(config));
	guest.port_info = fake_alloc(&guest, 4096);
	cmd.port_init.info_addr = le64_make(guest.port_info);
	post_devcmd(&cmd);
}

static void post_lif_init(void)
{
	union ionic_cmd cmd = {.lif_init = {.opcode = IONIC_CMD_LIF_INIT}};

	guest.quiet = false; /* a new LIF may use memory again */
	guest.lif_info = fake_alloc(&guest, 4096);
	cmd.lif_init.info_addr = le64_make(guest.lif_info);
	post_devcmd(&cmd);
}

static void post_q_init(struct fake_ring *ring, unsigned type)
{
	union ionic_cmd cmd;

	fake_ring_init(&guest, ring, type, 0, 4);
	cmd = fake_q_init_cmd(ring, 0, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_ENA);
	if (type == IONIC_QTYPE_ADMINQ)
		post_devcmd(&cmd);
	else
		post_admin(&cmd);
}

static void post_setattrs(void)
{
	union ionic_cmd features = {.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                         .attr = IONIC_LIF_ATTR_FEATURES,
	                                         .features = le64_make(0x7ff)}};
	union ionic_cmd rss = {.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                    .attr = IONIC_LIF_ATTR_RSS,
	                                    .rss = {.addr = le64_make(fake_alloc(&guest, 128))}}};
	union ionic_cmd port = {.port_setattr = {.opcode = IONIC_CMD_PORT_SETATTR,
	                                         .attr = IONIC_PORT_ATTR_STATE,
	                                         .state = IONIC_PORT_DOWN}};

	post_admin(&features);
	post_admin(&rss);
	post_devcmd(&port);
	port.port_setattr.state = IONIC_PORT_UP;
	post_devcmd(&port);
}

static void post_link_flap(void)
{
	ionic_link_set(guest.dev, false);
	ionic_link_set(guest.dev, true);
	fake_run(&guest);
}

/* A frame in two buffers. */
static void post_frame(struct fake_ring *tx)
{
	uint64_t addr = fake_alloc(&guest, 128);
	le64 *desc = fake_ptr(&guest, tx->desc, 16);
	le64 *sg = fake_ptr(&guest, tx->sg, 16);

	desc[0] = le64_make(addr << 12 | 1 << 8);
	desc[1] = le64_make(64);
	sg[0] = le64_make(addr + 64);
	sg[1] = le64_make(64);
	fake_doorbell(&guest, IONIC_DB_TXQ, 0, 1);
	fake_run(&guest);
}

static void post_batch(void)
{
	union ionic_cmd nop = {.any = {.opcode = IONIC_CMD_NOP}};

	for (unsigned i = 0; i < 5; i++)
		fake_admin_post(&guest, &nop);
	fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, guest.adminq.head);
	fake_run(&guest);
}

static void scenario(void)
{
	struct fake_ring notify, rx, tx;

	guest.used = 0;
	post_port_init();
	post_lif_init();
	post_q_init(&guest.adminq, IONIC_QTYPE_ADMINQ);
	post_q_init(&notify, IONIC_QTYPE_NOTIFYQ);
	post_q_init(&rx, IONIC_QTYPE_RXQ);
	post_q_init(&tx, IONIC_QTYPE_TXQ);
	post_setattrs();
	post_link_flap();
	post_frame(&tx);
	post_batch();
	guest.dev->publish_pending = true;
	ionic_dev_schedule(guest.dev);
	fake_run(&guest);
}

/* ---- the reset ---- */

/* hook_arg: accesses left before it. From the reset on memory is taboo. Not in the access itself,
 * which is under way: its bytes may arrive. */
static void reset_at(struct fake_guest *at, uint64_t addr, size_t size, enum guest_access access)
{
	(void)addr, (void)size, (void)access;
	if (at->hook_arg-- > 0)
		return;
	at->on_access = NULL;
	fake_reset(at, VFIO_RESET_DEVICE);
	at->quiet = true;
}

static void restart_at(struct fake_guest *at, uint64_t addr, size_t size, enum guest_access access)
{
	(void)addr, (void)size, (void)access;
	if (at->hook_arg-- > 0)
		return;
	at->on_access = NULL;
	ionic_fw_action(at->dev, IONIC_FW_RESTART);
	at->quiet = true;
}

static void check_works(void)
{
	union ionic_cmd nop = {.any = {.opcode = IONIC_CMD_NOP}};

	guest.quiet = false;
	guest.on_access = NULL;
	guest.used = 0;
	fake_reset(&guest, VFIO_RESET_FUNCTION);
	fake_probe(&guest);
	assert_int_equal(fake_admin(&guest, &nop, NULL), IONIC_RC_SUCCESS);
	assert_int_equal(guest.dev->intr[0].credits, 0);
	assert_int_equal(guest.dev->ready_count, 0);
}

static uint64_t count_accesses(void)
{
	uint64_t before = guest.accesses;

	scenario();
	return guest.accesses - before;
}

static void at_every_access(fake_access_fn *hook)
{
	uint64_t total;

	fake_guest_create(&guest, NULL);
	total = count_accesses();
	assert_true(total > 40);
	for (uint64_t at = 0; at < total; at++) {
		fake_reset(&guest, VFIO_RESET_FUNCTION);
		guest.hook_arg = at;
		guest.on_access = hook;
		scenario();
		assert_null(guest.on_access); /* it was reached */
		check_works();
	}
	fake_guest_destroy(&guest);
}

static void test_reset_at_every_access(void **state)
{
	(void)state;
	at_every_access(reset_at);
}

static void test_restart_at_every_access(void **state)
{
	(void)state;
	at_every_access(restart_at);
}

/* ---- resets in peace ---- */

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

static void test_function_reset_forgets_all(void **state)
{
	(void)state;
	for (unsigned reason = VFIO_RESET_DEVICE; reason <= VFIO_RESET_DISCONNECT; reason++) {
		fake_reset(&guest, (enum vfio_reset)reason);
		guest.quiet = true;
		assert_false(guest.dev->lif.initialized);
		assert_false(guest.dev->eth_port.initialized);
		assert_false(guest.dev->stats_timer.armed);
		for (unsigned i = 0x800; i < 0x1000; i += 8)
			assert_int_equal(fake_read(&guest, i, 8), 0);
		assert_int_equal(fake_read(&guest, 7, 1), 0x11);
		fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, 3);
		fake_doorbell(&guest, IONIC_DB_TXQ, 0, 3);
		fake_doorbell(&guest, IONIC_DB_RXQ, 0, 3);
		fake_run(&guest);
		guest.quiet = false;
		guest.used = 0;
		fake_probe(&guest);
	}
	assert_int_equal(guest.dev->count.resets, 3);
}

/* With a command pending and the AdminQ ready: neither happens. */
static void test_reset_overtakes_work(void **state)
{
	union ionic_cmd nop = {.any = {.opcode = IONIC_CMD_NOP}};
	uint64_t devcmds = guest.dev->count.devcmds;

	(void)state;
	fake_admin_post(&guest, &nop);
	fake_doorbell(&guest, IONIC_DB_ADMINQ, 0, guest.adminq.head);
	fake_write(&guest, 0x808, IONIC_CMD_NOP, 4);
	fake_write(&guest, 0x800, 1, 4);
	fake_reset(&guest, VFIO_RESET_FUNCTION);
	guest.quiet = true;
	fake_run(&guest);
	assert_int_equal(guest.dev->count.devcmds, devcmds);
	assert_int_equal(fake_read(&guest, 0x804, 4), 0);
}

/* A reset while the command waits for memory: its end does not show in the new guest's registers.
 */
static void test_reset_overtakes_command(void **state)
{
	union ionic_cmd reset = {.any = {.opcode = IONIC_CMD_PORT_RESET}};
	uint64_t before = counter_get(counter_find("ionic_devcmd_orphaned"));

	(void)state;
	assert_int_equal(fake_devcmd(&guest, &reset, NULL), IONIC_RC_SUCCESS);
	guest.on_access = reset_at;
	guest.hook_arg = 0;
	post_port_init();
	assert_null(guest.on_access);
	for (unsigned i = 0x800; i < 0x1000; i += 8)
		assert_int_equal(fake_read(&guest, i, 8), 0);
	assert_false(guest.dev->eth_port.initialized);
	assert_int_equal(counter_get(counter_find("ionic_devcmd_orphaned")), before + 1);
}

/* RESET by command keeps the registers of the command, for the driver to read its end. */
static void test_reset_command_completes(void **state)
{
	union ionic_cmd reset = {.any = {.opcode = IONIC_CMD_RESET}};

	(void)state;
	assert_int_equal(fake_devcmd(&guest, &reset, NULL), IONIC_RC_SUCCESS);
	assert_false(guest.dev->lif.initialized);
	assert_int_equal(guest.dev->count.resets, 0);
	assert_int_equal(guest.dev->count.clears, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_reset_at_every_access),
	        cmocka_unit_test(test_restart_at_every_access),
	        cmocka_unit_test_setup_teardown(test_function_reset_forgets_all, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset_overtakes_work, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset_overtakes_command, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset_command_completes, setup, teardown),
	};

	return cmocka_run_group_tests_name("ionic/reset", tests, NULL, NULL);
}
