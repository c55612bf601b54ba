// SPDX-License-Identifier: GPL-2.0-or-later
/* Commands: paths, order, indices, identities; the good and the bad form of each. */
#include <errno.h>
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

static int devcmd(uint8_t opcode, uint8_t b1, uint8_t b2, uint8_t b4, uint8_t b5)
{
	union ionic_cmd cmd = {.bytes = {opcode, b1, b2, 0, b4, b5}};

	return fake_devcmd(&guest, &cmd, NULL);
}

static int admin(uint8_t opcode)
{
	union ionic_cmd cmd = {.any = {.opcode = opcode}};

	return fake_admin(&guest, &cmd, NULL);
}

/* ---- paths and order ---- */

/* Each opcode: is it known on the path, and what does it say there before any initialization. */
static void test_every_opcode_as_device_command(void **state)
{
	static const uint8_t known[] = {0,   1,   2,   3,   4,   5,   10,  11,  12, 13, 14,
	                                20,  21,  22,  39,  40,  50,  60,  61,  62, 80, 240,
	                                241, 242, 243, 244, 245, 252, 253, 254, 255};
	size_t next = 0;

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		int status = devcmd((uint8_t)opcode, 0, 0, 0, 0);

		if (next < sizeof(known) && known[next] == opcode) {
			assert_int_not_equal(status, IONIC_RC_EOPCODE);
			next++;
		} else {
			assert_int_equal(status, IONIC_RC_EOPCODE);
		}
	}
	assert_int_equal(next, sizeof(known));
	assert_int_equal(guest.dev->count.devcmds, 256);
}

static void test_every_opcode_as_admin_command(void **state)
{
	static const uint8_t known[] = {0, 23, 24, 25, 30, 31, 32, 40, 41, 50, 51, 52, 53};
	size_t next = 0;

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		int status = admin((uint8_t)opcode);

		if (next < sizeof(known) && known[next] == opcode) {
			assert_int_not_equal(status, IONIC_RC_EOPCODE);
			next++;
		} else {
			assert_int_equal(status, IONIC_RC_EOPCODE);
		}
	}
	assert_int_equal(next, sizeof(known));
}

static void test_wrong_path_is_counted(void **state)
{
	uint64_t path = counter("ionic_cmd_wrong_path"), unknown = counter("ionic_cmd_unknown");

	(void)state;
	assert_int_equal(devcmd(IONIC_CMD_RX_MODE_SET, 0, 0, 0, 0), IONIC_RC_EOPCODE);
	assert_int_equal(admin(IONIC_CMD_RESET), IONIC_RC_EOPCODE);
	assert_int_equal(counter("ionic_cmd_wrong_path"), path + 2);
	assert_int_equal(devcmd(99, 0, 0, 0, 0), IONIC_RC_EOPCODE);
	assert_int_equal(counter("ionic_cmd_unknown"), unknown + 1);
}

static void test_unsupported(void **state)
{
	static const uint8_t opcodes[] = {4,   5,   13,  60,  61,  62,  80,  240, 241,
	                                  242, 243, 244, 245, 252, 253, 254, 255};

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes); i++)
		assert_int_equal(devcmd(opcodes[i], 0, 0, 0, 0), IONIC_RC_ENOSUPP);
	assert_int_equal(admin(IONIC_CMD_LIF_SETPHC), IONIC_RC_ENOSUPP);
}

static void test_out_of_order(void **state)
{
	uint64_t port = counter("ionic_cmd_no_port"), lif = counter("ionic_cmd_no_lif");

	(void)state;
	assert_int_equal(devcmd(IONIC_CMD_PORT_SETATTR, 0, 0, 2, 0), IONIC_RC_EPERM);
	assert_int_equal(counter("ionic_cmd_no_port"), port + 1);
	assert_int_equal(devcmd(IONIC_CMD_Q_INIT, 0, 0, 0, 0), IONIC_RC_EPERM);
	assert_int_equal(counter("ionic_cmd_no_lif"), lif + 1);
}

/* What a driver may send at any time: at remove, twice, after a restart (spec 3.4, 3.7, 3.13). */
static void test_harmless_any_time(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(devcmd(IONIC_CMD_RESET, 0, 0, 0, 0), IONIC_RC_SUCCESS);
		assert_int_equal(devcmd(IONIC_CMD_LIF_RESET, 0, 0, 0, 0), IONIC_RC_SUCCESS);
		assert_int_equal(devcmd(IONIC_CMD_PORT_RESET, 0, 0, 0, 0), IONIC_RC_SUCCESS);
		assert_int_equal(devcmd(IONIC_CMD_RDMA_RESET_LIF, 0, 0, 0, 0), IONIC_RC_SUCCESS);
		assert_int_equal(devcmd(IONIC_CMD_NOP, 0, 0, 0, 0), IONIC_RC_SUCCESS);
	}
}

/* RESET comes before bus mastering (spec 1.5). */
static void test_reset_needs_no_memory(void **state)
{
	uint64_t accesses = guest.accesses;

	(void)state;
	guest.bus_master = false;
	assert_int_equal(devcmd(IONIC_CMD_RESET, 0, 0, 0, 0), IONIC_RC_SUCCESS);
	assert_int_equal(guest.accesses, accesses);
}

static void test_bad_indices(void **state)
{
	uint64_t port = counter("ionic_cmd_bad_port_index");
	uint64_t lif = counter("ionic_cmd_bad_lif_index");
	union ionic_cmd cmd = {.any = {.opcode = IONIC_CMD_RX_MODE_SET, .lif_index = le16_make(1)}};

	(void)state;
	assert_int_equal(devcmd(IONIC_CMD_PORT_IDENTIFY, 1, 0, 0, 0), IONIC_RC_EINVAL);
	assert_int_equal(devcmd(IONIC_CMD_PORT_RESET, 255, 0, 0, 0), IONIC_RC_EINVAL);
	assert_int_equal(devcmd(IONIC_CMD_LIF_RESET, 0, 1, 0, 0), IONIC_RC_EINVAL);
	assert_int_equal(devcmd(IONIC_CMD_LIF_INIT, 0, 1, 0, 0), IONIC_RC_EINVAL);
	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_EINVAL);
	assert_int_equal(counter("ionic_cmd_bad_port_index"), port + 2);
	assert_int_equal(counter("ionic_cmd_bad_lif_index"), lif + 3);
}

static void test_init(void **state)
{
	(void)state;
	assert_int_equal(devcmd(IONIC_CMD_INIT, 0, 0, 0, 0), IONIC_RC_SUCCESS);
	assert_int_equal(devcmd(IONIC_CMD_INIT, 1, 0, 0, 0), IONIC_RC_EINVAL);
}

/* ---- identities ---- */

static void test_identify(void **state)
{
	union ionic_cmd cmd = {.identify = {.opcode = IONIC_CMD_IDENTIFY, .ver = 2}};
	struct ionic_dev_identity identity;
	union ionic_comp comp;

	(void)state;
	assert_int_equal(fake_devcmd(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(comp.identify.ver, 2);
	fake_devcmd_data_read(&guest, &identity, sizeof(identity));
	assert_int_equal(identity.nports, 1);
	assert_int_equal(le32_get(identity.nlifs), 1);
	assert_int_equal(le32_get(identity.nintrs), fake_profile.intr_vectors);
	assert_int_equal(le32_get(identity.ndbpgs_per_lif), 1024);
	assert_int_equal(le32_get(identity.intr_coal_mult), 1);
	assert_int_equal(le32_get(identity.intr_coal_div), 3);
	assert_int_equal(le64_get(identity.capabilities), 0);
	/* A driver of the first version, and one that knows more than we do. */
	cmd.identify.ver = 1;
	assert_int_equal(fake_devcmd(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(comp.identify.ver, 1);
	cmd.identify.ver = 9;
	assert_int_equal(fake_devcmd(&guest, &cmd, &comp), IONIC_RC_SUCCESS);
	assert_int_equal(comp.identify.ver, 2);
	cmd.identify.ver = 0;
	assert_int_equal(fake_devcmd(&guest, &cmd, &comp), IONIC_RC_EVERSION);
}

/* The window is the input of a retry: an error leaves it alone (spec 2.3). */
static void test_error_leaves_the_data(void **state)
{
	uint8_t data[64], after[64];

	(void)state;
	memset(data, 0xa5, sizeof(data));
	fake_devcmd_data_write(&guest, data, sizeof(data));
	assert_int_equal(devcmd(IONIC_CMD_IDENTIFY, 0, 0, 0, 0), IONIC_RC_EVERSION);
	assert_int_equal(devcmd(IONIC_CMD_LIF_IDENTIFY, 0, 0, 0, 0), IONIC_RC_EVERSION);
	assert_int_equal(devcmd(IONIC_CMD_Q_IDENTIFY, 0, 0, 7, 0), IONIC_RC_EQTYPE);
	fake_devcmd_data_read(&guest, after, sizeof(after));
	assert_memory_equal(data, after, sizeof(data));
}

static void test_lif_identify(void **state)
{
	struct ionic_lif_identity identity;

	(void)state;
	assert_int_equal(devcmd(IONIC_CMD_LIF_IDENTIFY, 0, 1, 0, 0), IONIC_RC_SUCCESS);
	fake_devcmd_data_read(&guest, &identity, sizeof(identity));
	assert_int_equal(le64_get(identity.capabilities), IONIC_LIF_CAP_ETH | IONIC_LIF_CAP_RDMA);
	assert_int_equal(le32_get(identity.eth.max_ucast_filters), 128);
	assert_int_equal(le16_get(identity.eth.rss_table_size), 128);
	assert_int_equal(le32_get(identity.eth.min_frame_size), 64);
	assert_int_equal(le32_get(identity.eth.max_frame_size), 9198 + 18);
	assert_int_equal(le64_get(identity.eth.hwstamp_tx_modes) & 1, 1);
	assert_int_equal(le32_get(identity.eth.config.queue_count[0]), 1);
	assert_int_equal(le32_get(identity.eth.config.queue_count[1]), 1);
	assert_int_equal(le32_get(identity.eth.config.queue_count[2]), 4);
	assert_int_equal(le32_get(identity.eth.config.queue_count[3]), 4);
	assert_int_equal(le64_get(identity.eth.config.features) & IONIC_FEATURE_TIMESTAMP, 0);
	assert_int_equal(devcmd(IONIC_CMD_LIF_IDENTIFY, 1, 1, 0, 0), IONIC_RC_EINVAL);
}

static void test_port_identify(void **state)
{
	struct ionic_port_identity identity;

	(void)state;
	assert_int_equal(devcmd(IONIC_CMD_PORT_IDENTIFY, 0, 0, 0, 0), IONIC_RC_SUCCESS);
	fake_devcmd_data_read(&guest, &identity, sizeof(identity));
	assert_int_equal(identity.type, 1);
	assert_int_equal(identity.num_lanes, 4);
	assert_int_equal(le32_get(identity.max_frame_size), 9198 + 18);
	assert_int_equal(le32_get(identity.speeds[0]), 1000);
	assert_int_equal(le32_get(identity.speeds[5]), 100000);
	assert_int_equal(le32_get(identity.speeds[6]), 0);
	assert_int_equal(le32_get(identity.config.speed), 100000);
	assert_int_equal(le32_get(identity.config.mtu), 9000);
	assert_int_equal(identity.config.state, IONIC_PORT_UP);
}

static void test_q_identify(void **state)
{
	static const struct {
		uint8_t type, ver; /* what the driver knows */
		uint16_t desc, comp, sg, elems;
		uint8_t version;
	} rows[] = {
	        {IONIC_QTYPE_ADMINQ, 0, 64, 16, 0, 0, 0},
	        {IONIC_QTYPE_NOTIFYQ, 0, 4, 64, 0, 0, 0},
	        {IONIC_QTYPE_RXQ, 2, 16, 16, 128, 8, 0},
	        {IONIC_QTYPE_TXQ, 3, 16, 16, 256, 15, 1},
	};
	struct ionic_q_identity identity;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(devcmd(IONIC_CMD_Q_IDENTIFY, 0, 0, rows[i].type, rows[i].ver),
		                 IONIC_RC_SUCCESS);
		fake_devcmd_data_read(&guest, &identity, sizeof(identity));
		assert_int_equal(identity.version, rows[i].version);
		assert_int_equal(le16_get(identity.desc_size), rows[i].desc);
		assert_int_equal(le16_get(identity.comp_size), rows[i].comp);
		assert_int_equal(le16_get(identity.sg_desc_size), rows[i].sg);
		assert_int_equal(le16_get(identity.max_sg_elems), rows[i].elems);
		assert_int_equal(le64_get(identity.features) & IONIC_Q_FEATURE_CQ, 1);
	}
	assert_int_equal(devcmd(IONIC_CMD_Q_IDENTIFY, 0, 0, 4, 9), IONIC_RC_EQTYPE);
	assert_int_equal(devcmd(IONIC_CMD_Q_IDENTIFY, 0, 1, 0, 0), IONIC_RC_EINVAL);
	/* Version 0 of the TXQ has small SG descriptors, which we do not serve. */
	assert_int_equal(devcmd(IONIC_CMD_Q_IDENTIFY, 0, 0, IONIC_QTYPE_TXQ, 0), IONIC_RC_EVERSION);
}

/* ---- features of the profiles ---- */

static void test_features_of_profile(void **state)
{
	struct ionic_profile profile = fake_profile;

	(void)state;
	assert_int_equal(ionic_lif_features_offered(&profile), 0x7ff);
	profile.vlan = profile.rx_hash = profile.rx_csum = false;
	assert_int_equal(ionic_lif_features_offered(&profile), 0x7e0);
	profile.sg = profile.tx_csum = profile.tso = false;
	assert_int_equal(ionic_lif_features_offered(&profile), 0);
	profile.tso = true;
	assert_int_equal(ionic_lif_features_offered(&profile), 0x700);
}

static void test_invalid_profile(void **state)
{
	struct ionic_profile profile = fake_profile;
	struct ionic_config config = {.profile = &profile};
	struct ionic_dev *dev;

	(void)state;
	profile.eth_queues = 0;
	assert_int_equal(ionic_create(&config, &dev), -EINVAL);
	profile = fake_profile;
	profile.intr_vectors = 129;
	assert_int_equal(ionic_create(&config, &dev), -EINVAL);
	profile = fake_profile;
	profile.speed_mbps = 12345;
	assert_int_equal(ionic_create(&config, &dev), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_every_opcode_as_device_command, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_every_opcode_as_admin_command, setup_probed,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(test_wrong_path_is_counted, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_unsupported, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_out_of_order, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_harmless_any_time, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_reset_needs_no_memory, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_bad_indices, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_init, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_identify, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_error_leaves_the_data, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_lif_identify, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_port_identify, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_q_identify, setup, teardown),
	        cmocka_unit_test(test_features_of_profile),
	        cmocka_unit_test(test_invalid_profile),
	};

	return cmocka_run_group_tests_name("ionic/cmd", tests, NULL, NULL);
}
