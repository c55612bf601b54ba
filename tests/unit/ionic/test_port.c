// SPDX-License-Identifier: GPL-2.0-or-later
/* The port: life, attributes, info block (spec ionic-ethernet 3.6, 10.2). */
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

static struct ionic_port_info *info(void)
{
	return fake_ptr(&guest, guest.port_info, sizeof(struct ionic_port_info));
}

static const struct ionic_lif_info *lif_info(void)
{
	return fake_ptr(&guest, guest.lif_info, sizeof(struct ionic_lif_info));
}

static int port_init(uint64_t addr)
{
	union ionic_cmd cmd = {
	        .port_init = {.opcode = IONIC_CMD_PORT_INIT, .info_addr = le64_make(addr)}};

	return fake_devcmd(&guest, &cmd, NULL);
}

static int port_reset(void)
{
	union ionic_cmd cmd = {.port = {.opcode = IONIC_CMD_PORT_RESET}};

	return fake_devcmd(&guest, &cmd, NULL);
}

/* VALUE is little-endian at the place of the attribute's value, whatever its width. */
static int setattr(unsigned attr, uint32_t value)
{
	union ionic_cmd cmd = {.port_setattr = {.opcode = IONIC_CMD_PORT_SETATTR,
	                                        .attr = (uint8_t)attr,
	                                        .speed = le32_make(value)}};

	return fake_devcmd(&guest, &cmd, NULL);
}

static void put_config(void)
{
	struct ionic_port_config config;

	ionic_port_default_config(&fake_profile, &config);
	fake_devcmd_data_write(&guest, &config, sizeof(config));
}

static void test_init_fills_the_block(void **state)
{
	(void)state;
	guest.dev->stats.port[3] = 9;
	guest.port_info = fake_alloc(&guest, 4096);
	memset(info()->extra_stats, 0xff, sizeof(info()->extra_stats));
	put_config();
	assert_int_equal(port_init(guest.port_info), IONIC_RC_SUCCESS);
	assert_int_equal(le32_get(info()->config.speed), 100000);
	assert_int_equal(le32_get(info()->config.mtu), 9000);
	assert_int_equal(info()->config.state, IONIC_PORT_UP);
	assert_int_equal(info()->status.status, IONIC_PORT_UP);
	assert_int_equal(le32_get(info()->status.speed), 100000);
	assert_int_equal(info()->status.xcvr.phy, 2);
	assert_int_equal(le16_get(info()->status.xcvr.pid), 50);
	assert_int_equal(le64_get(info()->stats[3]), 9);
	/* The driver's ones say that there are no extra counters. */
	for (size_t i = 0; i < sizeof(info()->extra_stats); i++)
		assert_int_equal(info()->extra_stats[i], 0xff);
}

static void test_init_refused(void **state)
{
	uint64_t addr = fake_alloc(&guest, 4096), config = counter("ionic_port_init_config");
	struct ionic_port_config bad;

	(void)state;
	memset(&bad, 0xff, sizeof(bad));
	fake_devcmd_data_write(&guest, &bad, sizeof(bad));
	assert_int_equal(port_init(addr), IONIC_RC_EINVAL);
	memset(&bad, 0, sizeof(bad));
	fake_devcmd_data_write(&guest, &bad, sizeof(bad));
	assert_int_equal(port_init(addr), IONIC_RC_EINVAL);
	assert_int_equal(counter("ionic_port_init_config"), config + 2);
	put_config();
	assert_int_equal(port_init(addr + 1), IONIC_RC_BAD_ADDR);
	assert_int_equal(port_init(0), IONIC_RC_BAD_ADDR);
	assert_int_equal(port_init(FAKE_RAM_BASE + FAKE_RAM_SIZE - 2040), IONIC_RC_BAD_ADDR);
	assert_false(guest.dev->eth_port.initialized);
	assert_int_equal(port_init(addr), IONIC_RC_SUCCESS);
	put_config();
	assert_int_equal(port_init(addr), IONIC_RC_EBUSY);
}

/* Stops the writes and zeroes the counters of the port, not those of the LIF. */
static void test_reset(void **state)
{
	(void)state;
	guest.dev->stats.port[0] = 3;
	guest.dev->stats.lif[0] = 4;
	assert_int_equal(port_reset(), IONIC_RC_SUCCESS);
	memset(info(), 0xee, sizeof(*info()));
	ionic_stats_publish(guest.dev);
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	for (size_t i = 0; i < sizeof(*info()); i++)
		assert_int_equal(((const uint8_t *)info())[i], 0xee);
	assert_int_equal(guest.dev->stats.port[0], 0);
	assert_int_equal(le64_get(lif_info()->stats[0]), 4);
	assert_int_equal(le16_get(lif_info()->status.link_status), 0);
	assert_int_equal(setattr(IONIC_PORT_ATTR_STATE, 2), IONIC_RC_EPERM);
	assert_int_equal(port_reset(), IONIC_RC_SUCCESS);
}

/* After each the block has the value: ethtool reads nothing else. */
static void test_attributes_show_in_the_block(void **state)
{
	(void)state;
	assert_int_equal(setattr(IONIC_PORT_ATTR_AUTONEG, 1), IONIC_RC_SUCCESS);
	assert_int_equal(info()->config.an_enable, 1);
	assert_int_equal(setattr(IONIC_PORT_ATTR_FEC, IONIC_PORT_FEC_FC), IONIC_RC_SUCCESS);
	assert_int_equal(info()->config.fec_type, IONIC_PORT_FEC_FC);
	assert_int_equal(info()->status.fec_type, IONIC_PORT_FEC_FC);
	assert_int_equal(setattr(IONIC_PORT_ATTR_PAUSE, 0x31), IONIC_RC_SUCCESS);
	assert_int_equal(info()->config.pause_type, 0x31);
	assert_int_equal(setattr(IONIC_PORT_ATTR_MTU, 1500), IONIC_RC_SUCCESS);
	assert_int_equal(le32_get(info()->config.mtu), 1500);
	assert_int_equal(setattr(IONIC_PORT_ATTR_LOOPBACK, 0), IONIC_RC_SUCCESS);
}

static void test_bad_attributes(void **state)
{
	static const struct {
		unsigned attr;
		uint32_t value;
		int status;
	} rows[] = {
	        {IONIC_PORT_ATTR_STATE, 0, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_STATE, 3, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_SPEED, 0, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_SPEED, 12345, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_SPEED, 200000, IONIC_RC_EINVAL}, /* faster than the port */
	        {IONIC_PORT_ATTR_MTU, 9198 + 19, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_AUTONEG, 2, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_FEC, 3, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_PAUSE, 0x02, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_PAUSE, 0x41, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_LOOPBACK, 1, IONIC_RC_EINVAL},
	        {IONIC_PORT_ATTR_STATS_CTRL, 0, IONIC_RC_ENOSUPP},
	        {8, 0, IONIC_RC_EINVAL},
	        {255, 0, IONIC_RC_EINVAL},
	};
	struct ionic_port_config before = guest.dev->eth_port.config;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(setattr(rows[i].attr, rows[i].value), rows[i].status);
	assert_memory_equal(&before, &guest.dev->eth_port.config, sizeof(before));
}

/* ethtool -r: down, then up, each with its event. */
static void test_state_takes_the_link_along(void **state)
{
	uint64_t events = guest.dev->count.events;

	(void)state;
	assert_int_equal(setattr(IONIC_PORT_ATTR_STATE, IONIC_PORT_DOWN), IONIC_RC_SUCCESS);
	assert_false(ionic_link_up(guest.dev));
	assert_int_equal(le16_get(lif_info()->status.link_status), 0);
	assert_int_equal(info()->status.status, IONIC_PORT_DOWN);
	assert_int_equal(le16_get(info()->status.link_down_count), 1);
	assert_int_equal(setattr(IONIC_PORT_ATTR_STATE, IONIC_PORT_UP), IONIC_RC_SUCCESS);
	assert_int_equal(le16_get(lif_info()->status.link_status), 1);
	assert_int_equal(guest.dev->count.events, events + 2);
	/* The operator's word counts too. */
	ionic_link_set(guest.dev, false);
	fake_run(&guest);
	assert_int_equal(setattr(IONIC_PORT_ATTR_STATE, IONIC_PORT_UP), IONIC_RC_SUCCESS);
	assert_int_equal(le16_get(lif_info()->status.link_status), 0);
}

static void test_speed(void **state)
{
	uint64_t events = guest.dev->count.events;

	(void)state;
	assert_int_equal(setattr(IONIC_PORT_ATTR_SPEED, 25000), IONIC_RC_SUCCESS);
	assert_int_equal(le32_get(info()->config.speed), 25000);
	assert_int_equal(le32_get(info()->status.speed), 25000);
	assert_int_equal(le32_get(lif_info()->status.link_speed), 25000);
	assert_int_equal(guest.dev->count.events, events + 1);
	assert_int_equal(le16_get(info()->status.link_down_count), 0);
}

static void test_block_lost(void **state)
{
	uint64_t before = counter("ionic_port_info_lost");

	(void)state;
	guest.bus_master = false;
	assert_int_equal(setattr(IONIC_PORT_ATTR_AUTONEG, 1), IONIC_RC_SUCCESS);
	assert_int_equal(counter("ionic_port_info_lost"), before + 1);
}

static void test_small_mtu_profile(void **state)
{
	struct ionic_profile profile = fake_profile;
	struct ionic_port_config config;

	(void)state;
	profile.mtu_max = 1500;
	profile.speed_mbps = 1000;
	ionic_port_default_config(&profile, &config);
	assert_int_equal(le32_get(config.mtu), 1500);
	assert_int_equal(le32_get(config.speed), 1000);
	assert_int_equal(config.fec_type, IONIC_PORT_FEC_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_init_fills_the_block, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_init_refused, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_attributes_show_in_the_block, setup_probed,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_bad_attributes, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_state_takes_the_link_along, setup_probed,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_speed, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_block_lost, setup_probed, teardown),
	        cmocka_unit_test(test_small_mtu_profile),
	};

	return cmocka_run_group_tests_name("ionic/port", tests, NULL, NULL);
}
