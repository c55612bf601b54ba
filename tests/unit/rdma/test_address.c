/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Header templates and address handles. The dumps are those of spec ionic-rdma 3.6. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "verbs.h"

static const uint8_t ipv4[42] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00,
                                 0x01, 0x08, 0x00, 0x45, 0x68, 0xff, 0xff, 0x00, 0x00, 0x40, 0x00,
                                 0x40, 0x11, 0x00, 0x00, 0x0a, 0x00, 0x00, 0x01, 0x0a, 0x00, 0x00,
                                 0x02, 0x6e, 0x70, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00};
static const uint8_t ipv6[66] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00,
                                 0x01, 0x81, 0x00, 0x60, 0x64, 0x86, 0xdd, 0x66, 0xa1, 0x23, 0x45,
                                 0x00, 0x20, 0x11, 0x40, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
                                 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0xf0, 0xf1,
                                 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc,
                                 0xfd, 0xfe, 0xff, 0xc1, 0x23, 0x12, 0xb7, 0x00, 0x20, 0x00, 0x00};

static void parse_ipv4(void **state)
{
	static const uint8_t dgid[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2};
	struct rdma_av av;

	(void)state;
	assert_int_equal(rdma_av_parse(ipv4, sizeof(ipv4), &av), 0);
	assert_memory_equal(av.dst_mac, ipv4, 6);
	assert_memory_equal(av.src_mac, ipv4 + 6, 6);
	assert_false(av.vlan);
	assert_int_equal(av.ip_version, 4);
	assert_int_equal(av.tclass, 0x68);
	assert_int_equal(av.hop_limit, 64);
	assert_int_equal(av.udp_sport, 0x6e70);
	assert_memory_equal(av.dgid, dgid, 16);
	assert_int_equal(av.sgid[15], 1);
	assert_int_equal(av.template_size, 42);
	assert_memory_equal(av.header, ipv4, 42);
}

static void parse_ipv6(void **state)
{
	struct rdma_av av;

	(void)state;
	assert_int_equal(rdma_av_parse(ipv6, sizeof(ipv6), &av), 0);
	assert_true(av.vlan);
	assert_int_equal(av.vlan_tci, 0x6064);
	assert_int_equal(av.ip_version, 6);
	assert_int_equal(av.tclass, 0x6a);
	assert_int_equal(av.flow_label, 0x12345);
	assert_int_equal(av.hop_limit, 64);
	assert_int_equal(av.udp_sport, 0xc123);
	assert_memory_equal(av.sgid, ipv6 + 26, 16);
	assert_memory_equal(av.dgid, ipv6 + 42, 16);
}

/* Every length, and every byte that must be what it is. */
static void refuse_others(void **state)
{
	static const struct {
		size_t offset;
		uint8_t value;
	} bad4[] = {{12, 0x09}, {13, 0x06}, {14, 0x46}, {14, 0x65}, {23, 6}, {36, 0}, {37, 0}},
	  bad6[] = {{12, 0x88}, {16, 0x81}, {18, 0x46}, {24, 6}, {61, 0}};
	uint8_t copy[RDMA_TEMPLATE_MAX + 1];
	struct rdma_av av;

	(void)state;
	for (size_t size = 0; size <= sizeof(copy); size++) {
		memset(copy, 0, sizeof(copy));
		memcpy(copy, ipv4, sizeof(ipv4));
		assert_int_equal(rdma_av_parse(copy, size, &av), size == 42 ? 0 : -EINVAL);
		memcpy(copy, ipv6, sizeof(ipv6));
		assert_int_equal(rdma_av_parse(copy, size, &av), size == 66 ? 0 : -EINVAL);
	}
	for (size_t i = 0; i < sizeof(bad4) / sizeof(bad4[0]); i++) {
		memcpy(copy, ipv4, sizeof(ipv4));
		copy[bad4[i].offset] = bad4[i].value;
		assert_int_equal(rdma_av_parse(copy, 42, &av), -EINVAL);
	}
	for (size_t i = 0; i < sizeof(bad6) / sizeof(bad6[0]); i++) {
		memcpy(copy, ipv6, sizeof(ipv6));
		copy[bad6[i].offset] = bad6[i].value;
		if (rdma_av_parse(copy, 66, &av) != -EINVAL)
			fail_msg("byte %zu may be %u", bad6[i].offset, bad6[i].value);
	}
}

static void handles(void **state)
{
	struct rdma_limits limits = {.qps = 4, .mrs = 4, .ahs = 100, .pages = 4};
	struct nic *nic = nic_new_limits("loopback", &limits, 1 << 20);
	struct rdma_dev_stats stats;
	struct rdma_av av4, av6;

	(void)state;
	assert_int_equal(rdma_av_parse(ipv4, 42, &av4), 0);
	assert_int_equal(rdma_av_parse(ipv6, 66, &av6), 0);
	assert_false(rdma_dev_uses_gid(nic->dev, av4.sgid));
	assert_int_equal(rdma_ah_create(nic->dev, 0, 1, ipv4, 42), 0);
	assert_int_equal(rdma_ah_create(nic->dev, 0, 1, ipv4, 42), -EEXIST);
	assert_int_equal(rdma_ah_create(nic->dev, 99, 1, ipv6, 66), 0);
	assert_int_equal(rdma_ah_create(nic->dev, 100, 1, ipv6, 66), -ERANGE);
	assert_int_equal(rdma_ah_create(nic->dev, 5, 1, ipv6, 65), -EINVAL);
	assert_int_equal(rdma_ah_destroy(nic->dev, 5), -ENOENT);
	assert_int_equal(rdma_ah_destroy(nic->dev, 0xffffffff), -ENOENT);
	assert_true(rdma_dev_uses_gid(nic->dev, av4.sgid) && rdma_dev_uses_gid(nic->dev, av6.sgid));
	assert_int_equal(rdma_ah_destroy(nic->dev, 0), 0);
	assert_false(rdma_dev_uses_gid(nic->dev, av4.sgid));
	assert_int_equal(rdma_ah_destroy(nic->dev, 0), -ENOENT);
	rdma_dev_stats(nic->dev, &stats);
	assert_int_equal(stats.ahs, 1);
	nic_free(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(parse_ipv4),
	        cmocka_unit_test(parse_ipv6),
	        cmocka_unit_test(refuse_others),
	        cmocka_unit_test(handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
