// SPDX-License-Identifier: GPL-2.0-or-later
/* The LIF: life, attributes, info block (spec ionic-ethernet 3.7, 5.3, 9.1, 10.1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;

static int setup(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	return 0;
}

static int setup_probed(void **state)
{
	setup(state);
	fake_probe(&guest);
	return 0;
}

static int setup_compat(void **state)
{
	struct ionic_profile profile = fake_profile;

	(void)state;
	profile.vlan = profile.rx_hash = profile.rx_csum = false;
	profile.sg = profile.tx_csum = profile.tso = false;
	fake_guest_create(&guest, &profile);
	fake_probe(&guest);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

static uint64_t counter(const char *name)
{
	return counter_get(counter_find(name));
}

static const struct ionic_lif_info *info(void)
{
	return fake_ptr(&guest, guest.lif_info, sizeof(struct ionic_lif_info));
}

static int lif_init(uint64_t addr, unsigned type)
{
	union ionic_cmd cmd = {.lif_init = {.opcode = IONIC_CMD_LIF_INIT,
	                                    .type = (uint8_t)type,
	                                    .info_addr = le64_make(addr)}};

	return fake_devcmd(&guest, &cmd, NULL);
}

static int lif_reset(void)
{
	union ionic_cmd cmd = {.any = {.opcode = IONIC_CMD_LIF_RESET}};

	return fake_devcmd(&guest, &cmd, NULL);
}

static union ionic_cmd setattr(unsigned attr)
{
	union ionic_cmd cmd = {
	        .lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR, .attr = (uint8_t)attr}};

	return cmd;
}

static int getattr(unsigned attr, union ionic_comp *comp)
{
	union ionic_cmd cmd = {
	        .lif_attr = {.opcode = IONIC_CMD_LIF_GETATTR, .attr = (uint8_t)attr}};

	return fake_admin(&guest, &cmd, comp);
}

/* ---- life ---- */

static void test_init_fills_the_block(void **state)
{
	(void)state;
	guest.dev->stats.lif[33] = 77;
	fake_port_init(&guest);
	fake_lif_init(&guest);
	assert_int_equal(le16_get(info()->status.link_status), 1);
	assert_int_equal(le32_get(info()->status.link_speed), 100000);
	assert_int_equal(le16_get(info()->status.link_down_count), 0);
	assert_memory_equal(info()->config.mac, fake_mac, 6);
	assert_int_equal(le32_get(info()->config.queue_count[2]), 4);
	assert_int_equal(le64_get(info()->stats[33]), 77);
}

static void test_init_refused(void **state)
{
	uint64_t addr = fake_alloc(&guest, 4096);
	uint64_t bad = counter("ionic_lif_info_addr"), busy = counter("ionic_lif_init_busy");

	(void)state;
	assert_int_equal(lif_init(addr, 1), IONIC_RC_EINVAL);
	assert_int_equal(lif_init(addr + 4, 0), IONIC_RC_BAD_ADDR);
	assert_int_equal(lif_init(0x1000, 0), IONIC_RC_BAD_ADDR);
	assert_int_equal(lif_init(FAKE_RAM_BASE + FAKE_RAM_SIZE - 8, 0), IONIC_RC_BAD_ADDR);
	assert_int_equal(lif_init(UINT64_MAX - 7, 0), IONIC_RC_BAD_ADDR);
	assert_int_equal(counter("ionic_lif_info_addr"), bad + 4);
	assert_false(guest.dev->lif.initialized);
	guest.bus_master = false;
	assert_int_equal(lif_init(addr, 0), IONIC_RC_BAD_ADDR);
	guest.bus_master = true;
	assert_int_equal(lif_init(addr, 0), IONIC_RC_SUCCESS);
	assert_int_equal(lif_init(addr, 0), IONIC_RC_EBUSY);
	assert_int_equal(counter("ionic_lif_init_busy"), busy + 1);
}

/* Everything goes but the counters, and no byte is written afterwards. */
static void test_reset(void **state)
{
	struct fake_ring ring;
	union ionic_cmd features = setattr(IONIC_LIF_ATTR_FEATURES);

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_RXQ, 0, 4);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	features.lif_attr.features = le64_make(0x7ff);
	assert_int_equal(fake_admin(&guest, &features, NULL), IONIC_RC_SUCCESS);
	guest.dev->stats.lif[0] = 5;
	assert_int_equal(lif_reset(), IONIC_RC_SUCCESS);
	assert_false(guest.dev->lif.initialized);
	assert_false(guest.dev->lif.adminq.initialized);
	assert_false(guest.dev->lif.notifyq.initialized);
	assert_false(guest.dev->lif.rxq[0].initialized);
	assert_int_equal(guest.dev->lif.features, 0);
	assert_int_equal(guest.dev->stats.lif[0], 5);
	memset(fake_ptr(&guest, guest.lif_info, 1344), 0xee, 1344);
	ionic_link_set(guest.dev, false);
	ionic_stats_publish(guest.dev);
	fake_run(&guest);
	for (unsigned i = 0; i < 1344; i++)
		assert_int_equal(((const uint8_t *)info())[i], 0xee);
	/* Twice, as at remove; and then all over again. */
	assert_int_equal(lif_reset(), IONIC_RC_SUCCESS);
	fake_lif_init(&guest);
	fake_adminq_init(&guest);
	assert_int_equal(le16_get(info()->status.link_status), 0);
	assert_int_equal(le64_get(info()->stats[0]), 5);
}

/* ---- attributes ---- */

static void test_mac(void **state)
{
	static const uint8_t mac[6] = {2, 1, 2, 3, 4, 5};
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_MAC);
	union ionic_comp comp;

	(void)state;
	assert_int_equal(getattr(IONIC_LIF_ATTR_MAC, &comp), IONIC_RC_SUCCESS);
	assert_memory_equal(comp.lif_attr.mac, fake_mac, 6);
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_EINVAL); /* all zero */
	memcpy(cmd.lif_attr.mac, mac, 6);
	cmd.lif_attr.mac[0] = 3;
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_EINVAL); /* a group */
	cmd.lif_attr.mac[0] = 2;
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
	assert_int_equal(getattr(IONIC_LIF_ATTR_MAC, &comp), IONIC_RC_SUCCESS);
	assert_memory_equal(comp.lif_attr.mac, mac, 6);
	assert_memory_equal(info()->config.mac, mac, 6);
}

static void test_getattr_others(void **state)
{
	union ionic_comp comp;

	(void)state;
	for (unsigned attr = 0; attr < 256; attr++) {
		if (attr == IONIC_LIF_ATTR_MAC)
			continue;
		assert_int_equal(getattr(attr, &comp), attr <= IONIC_LIF_ATTR_TXSTAMP
		                                               ? IONIC_RC_ENOSUPP
		                                               : IONIC_RC_EINVAL);
	}
}

static void test_features(void **state)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_FEATURES);
	union ionic_comp comp;

	(void)state;
	cmd.lif_attr.features = le64_make(0x1ffbf); /* what the driver asks for at probe */
	assert_int_equal(fake_admin(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(le64_get(comp.lif_attr.features), 0x7bf);
	assert_int_equal(guest.dev->lif.features, 0x7bf);
	assert_int_equal(le64_get(info()->config.features), 0x7bf);
	cmd.lif_attr.features = le64_make(UINT64_MAX);
	assert_int_equal(fake_admin(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(le64_get(comp.lif_attr.features), 0x7ff);
	cmd.lif_attr.features = le64_make(0);
	assert_int_equal(fake_admin(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(le64_get(comp.lif_attr.features), 0);
}

static void test_no_features_in_compat(void **state)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_FEATURES);
	union ionic_comp comp;

	(void)state;
	cmd.lif_attr.features = le64_make(0x1ffbf);
	assert_int_equal(fake_admin(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(le64_get(comp.lif_attr.features), 0);
}

static void test_name(void **state)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_NAME);

	(void)state;
	memcpy(cmd.lif_attr.name, "eth0", 5);
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
	assert_string_equal(info()->config.name, "eth0");
	memset(cmd.lif_attr.name, 'x', 16); /* no end */
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
	assert_int_equal(strlen(guest.dev->lif.name), 15);
}

static void test_mtu(void **state)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_MTU);
	static const struct {
		uint32_t mtu;
		int status;
	} rows[] = {{0, IONIC_RC_ERANGE},
	            {68, IONIC_RC_SUCCESS},
	            {9198, IONIC_RC_SUCCESS},
	            {9199, IONIC_RC_ERANGE},
	            {UINT32_MAX, IONIC_RC_ERANGE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cmd.lif_attr.mtu = le32_make(rows[i].mtu);
		assert_int_equal(fake_admin(&guest, &cmd, NULL), rows[i].status);
	}
	assert_int_equal(le32_get(info()->config.mtu), 9198);
}

static void test_state(void **state)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_STATE);
	struct fake_ring ring;

	(void)state;
	fake_ring_init(&guest, &ring, IONIC_QTYPE_TXQ, 0, 4);
	fake_q_init(&guest, &ring, 1, IONIC_Q_FLAG_IRQ);
	assert_int_equal(fake_q_control(&guest, &ring, IONIC_Q_ENABLE), IONIC_RC_SUCCESS);
	for (uint8_t value = 0; value < 2; value++) {
		cmd.lif_attr.state = value;
		assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
		assert_true(guest.dev->lif.txq[0].enabled);
	}
	cmd.lif_attr.state = IONIC_LIF_DISABLE;
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
	assert_false(guest.dev->lif.txq[0].enabled);
	cmd.lif_attr.state = 3;
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_EINVAL);
}

static void test_other_attributes(void **state)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_TXSTAMP);

	(void)state;
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS); /* off */
	cmd.lif_attr.txstamp_mode = le16_make(1);
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_ENOSUPP);
	cmd = setattr(IONIC_LIF_ATTR_STATS_CTRL);
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_ENOSUPP);
	for (unsigned attr = 8; attr < 256; attr++) {
		cmd = setattr(attr);
		assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_EINVAL);
	}
}

/* ---- RSS ---- */

static int set_rss(unsigned types, uint64_t addr, uint8_t key)
{
	union ionic_cmd cmd = setattr(IONIC_LIF_ATTR_RSS);

	cmd.lif_attr.rss.types = le16_make((uint16_t)types);
	memset(cmd.lif_attr.rss.key, key, sizeof(cmd.lif_attr.rss.key));
	cmd.lif_attr.rss.addr = le64_make(addr);
	return fake_admin(&guest, &cmd, NULL);
}

static void test_rss(void **state)
{
	uint64_t addr = fake_alloc(&guest, IONIC_RSS_TABLE_SIZE);
	uint8_t *table = fake_ptr(&guest, addr, IONIC_RSS_TABLE_SIZE);

	(void)state;
	assert_false(guest.dev->lif.rss.valid);
	assert_int_equal(set_rss(0, addr, 1), IONIC_RC_SUCCESS);
	assert_true(guest.dev->lif.rss.valid);
	for (unsigned i = 0; i < IONIC_RSS_TABLE_SIZE; i++)
		table[i] = i % 4;
	assert_int_equal(set_rss(0x3f, addr, 0x6d), IONIC_RC_SUCCESS);
	assert_int_equal(guest.dev->lif.rss.types, 0x3f);
	assert_memory_equal(guest.dev->lif.rss.table, table, IONIC_RSS_TABLE_SIZE);
	/* The device has a copy: what the guest writes later does not count. */
	table[5] = 3;
	assert_int_equal(guest.dev->lif.rss.table[5], 1);
}

static void test_rss_refused(void **state)
{
	uint64_t addr = fake_alloc(&guest, IONIC_RSS_TABLE_SIZE);
	uint8_t *table = fake_ptr(&guest, addr, IONIC_RSS_TABLE_SIZE);

	(void)state;
	assert_int_equal(set_rss(0x40, addr, 0), IONIC_RC_EINVAL);
	assert_int_equal(set_rss(1, 0, 0), IONIC_RC_BAD_ADDR);
	assert_int_equal(set_rss(1, FAKE_RAM_BASE + FAKE_RAM_SIZE - 127, 0), IONIC_RC_BAD_ADDR);
	table[127] = 4; /* no such queue */
	assert_int_equal(set_rss(1, addr, 0), IONIC_RC_EINVAL);
	assert_false(guest.dev->lif.rss.valid);
	assert_int_equal(guest.dev->lif.rss.types, 0);
}

/* ---- the link in the block ---- */

static void test_link_in_block(void **state)
{
	(void)state;
	ionic_link_set(guest.dev, false);
	assert_int_equal(le16_get(info()->status.link_status), 1); /* the work will do it */
	assert_false(ionic_link_up(guest.dev));
	fake_run(&guest);
	assert_int_equal(le16_get(info()->status.link_status), 0);
	assert_int_equal(le32_get(info()->status.link_speed), 0);
	assert_int_equal(le16_get(info()->status.link_down_count), 1);
	ionic_link_set(guest.dev, true);
	fake_run(&guest);
	assert_int_equal(le16_get(info()->status.link_status), 1);
	assert_int_equal(le32_get(info()->status.link_speed), 100000);
	assert_int_equal(le64_get(info()->status.eid), 1); /* event 2 follows the block */
}

/* Down and up in one turn: the driver shall see both. */
static void test_short_flap(void **state)
{
	uint64_t events = guest.dev->count.events;

	(void)state;
	ionic_link_set(guest.dev, false);
	ionic_link_set(guest.dev, true);
	fake_run(&guest);
	assert_int_equal(guest.dev->count.events, events + 2);
	assert_int_equal(le16_get(info()->status.link_down_count), 1);
	assert_int_equal(le16_get(info()->status.link_status), 1);
	/* Up, down, up while it was down: one change. */
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	ionic_link_set(guest.dev, true);
	ionic_link_set(guest.dev, false);
	ionic_link_set(guest.dev, true);
	fake_run(&guest);
	assert_int_equal(guest.dev->count.events, events + 4);
	assert_int_equal(le16_get(info()->status.link_down_count), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_init_fills_the_block, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_init_refused, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_mac, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_getattr_others, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_features, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_no_features_in_compat, setup_compat, teardown),
	        cmocka_unit_test_setup_teardown(test_name, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_mtu, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_state, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_other_attributes, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_rss, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_rss_refused, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_link_in_block, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_short_flap, setup_probed, teardown),
	};

	return cmocka_run_group_tests_name("ionic/lif", tests, NULL, NULL);
}
