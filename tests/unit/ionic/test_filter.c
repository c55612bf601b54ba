// SPDX-License-Identifier: GPL-2.0-or-later
/* Receive filters and modes (spec ionic-ethernet 5.5). */
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
	fake_probe(&guest);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

static int add_mac(const uint8_t mac[6], uint32_t *id)
{
	union ionic_cmd cmd = {.rx_filter_add = {.opcode = IONIC_CMD_RX_FILTER_ADD,
	                                         .match = le16_make(IONIC_RX_FILTER_MAC)}};
	union ionic_comp comp;
	int status;

	memcpy(cmd.rx_filter_add.mac, mac, 6);
	status = fake_admin(&guest, &cmd, &comp);
	*id = le32_get(comp.rx_filter_add.filter_id);
	return status;
}

static int add_vlan(unsigned vid, uint32_t *id)
{
	union ionic_cmd cmd = {.rx_filter_add = {.opcode = IONIC_CMD_RX_FILTER_ADD,
	                                         .match = le16_make(IONIC_RX_FILTER_VLAN),
	                                         .vlan = le16_make((uint16_t)vid)}};
	union ionic_comp comp;
	int status = fake_admin(&guest, &cmd, &comp);

	*id = le32_get(comp.rx_filter_add.filter_id);
	return status;
}

static int add_match(unsigned match)
{
	union ionic_cmd cmd = {.rx_filter_add = {.opcode = IONIC_CMD_RX_FILTER_ADD,
	                                         .match = le16_make((uint16_t)match)}};

	return fake_admin(&guest, &cmd, NULL);
}

static int del(uint32_t id)
{
	union ionic_cmd cmd = {
	        .rx_filter_del = {.opcode = IONIC_CMD_RX_FILTER_DEL, .filter_id = le32_make(id)}};

	return fake_admin(&guest, &cmd, NULL);
}

static int set_mode(unsigned mode)
{
	union ionic_cmd cmd = {.rx_mode_set = {.opcode = IONIC_CMD_RX_MODE_SET,
	                                       .rx_mode = le16_make((uint16_t)mode)}};

	return fake_admin(&guest, &cmd, NULL);
}

static void set_features(uint64_t features)
{
	union ionic_cmd cmd = {.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                    .attr = IONIC_LIF_ATTR_FEATURES,
	                                    .features = le64_make(features)}};

	assert_int_equal(fake_admin(&guest, &cmd, NULL), IONIC_RC_SUCCESS);
}

static bool accepts(const uint8_t dst[6])
{
	struct net_headers headers = {.vlan_tags = 0};

	return ionic_filter_accept(guest.dev, dst, &headers);
}

static bool accepts_tagged(const uint8_t dst[6], uint16_t tpid, uint16_t tci)
{
	struct net_headers headers = {.vlan_tags = 1, .vlan_tpid = tpid, .vlan_tci = tci};

	return ionic_filter_accept(guest.dev, dst, &headers);
}

static const uint8_t own[6] = {2, 0, 0, 0, 0xaa, 1};
static const uint8_t other[6] = {2, 0, 0, 0, 0xaa, 2};
static const uint8_t group[6] = {0x33, 0x33, 0, 0, 0, 1};
static const uint8_t other_group[6] = {0x33, 0x33, 0, 0, 0, 2};
static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* Which of the destinations above each mode lets in; own and group have filters. */
static void test_modes(void **state)
{
	static const struct {
		unsigned mode;
		bool own, other, group, other_group, everybody;
	} rows[] = {
	        {0x00, false, false, false, false, false}, {0x01, true, false, false, false, false},
	        {0x02, false, false, true, false, false},  {0x04, false, false, false, false, true},
	        {0x07, true, false, true, false, true},    {0x10, false, false, true, true, false},
	        {0x17, true, false, true, true, true},     {0x08, true, true, true, true, true},
	        {0x1f, true, true, true, true, true},
	};
	uint32_t id;

	(void)state;
	assert_int_equal(add_mac(own, &id), IONIC_RC_SUCCESS);
	assert_int_equal(add_mac(group, &id), IONIC_RC_SUCCESS);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(set_mode(rows[i].mode), IONIC_RC_SUCCESS);
		assert_int_equal(accepts(own), rows[i].own);
		assert_int_equal(accepts(other), rows[i].other);
		assert_int_equal(accepts(group), rows[i].group);
		assert_int_equal(accepts(other_group), rows[i].other_group);
		assert_int_equal(accepts(everybody), rows[i].everybody);
	}
	assert_int_equal(set_mode(0x40), IONIC_RC_EINVAL);
	assert_int_equal(guest.dev->lif.filters.rx_mode, 0x1f);
}

/* On EEXIST the driver takes the id from the completion all the same. */
static void test_existing_filter_has_its_id(void **state)
{
	uint32_t mac_id, again, vlan_id;

	(void)state;
	assert_int_equal(add_mac(own, &mac_id), IONIC_RC_SUCCESS);
	assert_int_equal(add_mac(own, &again), IONIC_RC_EEXIST);
	assert_int_equal(again, mac_id);
	assert_int_equal(add_vlan(100, &vlan_id), IONIC_RC_SUCCESS);
	assert_int_equal(add_vlan(100, &again), IONIC_RC_EEXIST);
	assert_int_equal(again, vlan_id);
	assert_int_not_equal(vlan_id, mac_id);
}

static void make_mac(uint8_t mac[6], unsigned i)
{
	mac[0] = i & 1 ? 0x33 : 0x02;
	mac[1] = 0;
	mac[2] = (uint8_t)(i * 7);
	mac[3] = 0;
	mac[4] = (uint8_t)(i >> 8);
	mac[5] = (uint8_t)i;
}

/* As many as are promised, unicast and multicast together, and then ENOSPC. */
static void test_full_table(void **state)
{
	uint32_t ids[IONIC_MAX_MAC_FILTERS], id;
	uint8_t mac[6];

	(void)state;
	assert_int_equal(set_mode(3), IONIC_RC_SUCCESS);
	for (unsigned i = 0; i < IONIC_MAX_MAC_FILTERS; i++) {
		make_mac(mac, i);
		assert_int_equal(add_mac(mac, &ids[i]), IONIC_RC_SUCCESS);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(ids[k], ids[i]);
	}
	make_mac(mac, 500);
	assert_int_equal(add_mac(mac, &id), IONIC_RC_ENOSPC);
	assert_false(accepts(mac));
	make_mac(mac, 3);
	assert_int_equal(add_mac(mac, &id), IONIC_RC_EEXIST);
	assert_int_equal(id, ids[3]);
	/* Every second one goes; the others stay findable, and there is room again. */
	for (unsigned i = 0; i < IONIC_MAX_MAC_FILTERS; i += 2)
		assert_int_equal(del(ids[i]), IONIC_RC_SUCCESS);
	for (unsigned i = 0; i < IONIC_MAX_MAC_FILTERS; i++) {
		make_mac(mac, i);
		assert_int_equal(accepts(mac), i & 1);
	}
	make_mac(mac, 500);
	assert_int_equal(add_mac(mac, &id), IONIC_RC_SUCCESS);
	assert_true(accepts(mac));
	assert_int_equal(guest.dev->lif.filters.mac_count, IONIC_MAX_MAC_FILTERS / 2 + 1);
}

static void test_every_vlan(void **state)
{
	uint32_t first, id;

	(void)state;
	assert_int_equal(add_vlan(0, &first), IONIC_RC_SUCCESS);
	for (unsigned vid = 1; vid < 4096; vid++) {
		assert_int_equal(add_vlan(vid, &id), IONIC_RC_SUCCESS);
		assert_int_equal(id, first + vid);
	}
	assert_int_equal(add_vlan(4096, &id), IONIC_RC_EINVAL);
	assert_int_equal(add_vlan(0xffff, &id), IONIC_RC_EINVAL);
	assert_int_equal(guest.dev->lif.filters.vlan_count, 4096);
	assert_int_equal(del(first + 4095), IONIC_RC_SUCCESS);
	assert_int_equal(guest.dev->lif.filters.vlan_count, 4095);
}

static void test_vlan_filtering(void **state)
{
	uint32_t id;

	(void)state;
	assert_int_equal(add_mac(own, &id), IONIC_RC_SUCCESS);
	assert_int_equal(add_vlan(100, &id), IONIC_RC_SUCCESS);
	assert_int_equal(set_mode(7), IONIC_RC_SUCCESS);
	/* Not negotiated: tags do not matter. */
	assert_true(accepts_tagged(own, 0x8100, 200));
	set_features(IONIC_FEATURE_VLAN_RX_FILTER);
	assert_false(accepts_tagged(own, 0x8100, 200));
	assert_true(accepts_tagged(own, 0x8100, 100));
	assert_true(accepts_tagged(own, 0x8100, 0xe000 | 100)); /* with a priority */
	assert_false(accepts_tagged(own, 0x8100, 0));
	assert_true(accepts(own));
	assert_true(accepts_tagged(own, 0x88a8, 200)); /* not a customer tag */
	assert_false(accepts_tagged(other, 0x8100, 100));
	assert_int_equal(set_mode(0xf), IONIC_RC_SUCCESS);
	assert_true(accepts_tagged(own, 0x8100, 200)); /* promiscuous */
	assert_int_equal(set_mode(7), IONIC_RC_SUCCESS);
	assert_int_equal(del(id), IONIC_RC_SUCCESS);
	assert_false(accepts_tagged(own, 0x8100, 100));
}

static void test_delete_what_is_not_there(void **state)
{
	static const uint32_t ids[] = {0, 1, 2, 128, 129, 0x10000, 0x10fff, 0x11000, UINT32_MAX};
	uint32_t id;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		assert_int_equal(del(ids[i]), IONIC_RC_ENOENT);
	assert_int_equal(add_mac(own, &id), IONIC_RC_SUCCESS);
	assert_int_equal(del(id), IONIC_RC_SUCCESS);
	assert_int_equal(del(id), IONIC_RC_ENOENT);
}

static void test_other_kinds(void **state)
{
	(void)state;
	assert_int_equal(add_match(IONIC_RX_FILTER_MAC_VLAN), IONIC_RC_ENOSUPP);
	assert_int_equal(add_match(IONIC_RX_FILTER_STEER), IONIC_RC_ENOSUPP);
	assert_int_equal(add_match(3), IONIC_RC_EINVAL);
	assert_int_equal(add_match(0xffff), IONIC_RC_EINVAL);
}

static void test_lif_reset_drops_all(void **state)
{
	union ionic_cmd reset = {.any = {.opcode = IONIC_CMD_LIF_RESET}};
	uint32_t id;

	(void)state;
	assert_int_equal(add_mac(own, &id), IONIC_RC_SUCCESS);
	assert_int_equal(add_vlan(5, &id), IONIC_RC_SUCCESS);
	assert_int_equal(set_mode(7), IONIC_RC_SUCCESS);
	assert_int_equal(fake_devcmd(&guest, &reset, NULL), IONIC_RC_SUCCESS);
	assert_false(accepts(own));
	assert_false(accepts(everybody));
	assert_int_equal(guest.dev->lif.filters.mac_count, 0);
	assert_int_equal(guest.dev->lif.filters.vlan_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_modes, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_existing_filter_has_its_id, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_full_table, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_every_vlan, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_vlan_filtering, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_delete_what_is_not_there, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_other_kinds, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_lif_reset_drops_all, setup, teardown),
	};

	return cmocka_run_group_tests_name("ionic/filter", tests, NULL, NULL);
}
