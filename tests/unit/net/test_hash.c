/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flow hashes: published vectors for Toeplitz, hand-made ones for FNV-1a steering. */
#include "net/net.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"

/* The key of the RSS verification suite (Microsoft, "Verifying the RSS Hash Calculation"). */
static const uint8_t suite_key[NET_RSS_KEY_SIZE] = {
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
        0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
        0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

struct vector {
	const char *dst, *src;
	uint16_t dport, sport;
	uint32_t addresses, with_ports; /* expected hashes */
};

static const struct vector suite_v4[] = {
        {"161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
        {"65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
        {"12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
        {"209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
        {"202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
};

static const struct vector suite_v6[] = {
        {"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
        {"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
        {"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
         0x4b61e985, 0x02d1feef},
};

static void make_frame(const struct vector *vector, bool ipv6, bool udp, struct frame *frame)
{
	struct frame_spec spec = {
	        .ipv6 = ipv6, .udp = udp, .sport = vector->sport, .dport = vector->dport};

	frame_build(&spec, frame);
	int family = ipv6 ? AF_INET6 : AF_INET;
	uint8_t *ip = frame->bytes + frame->l3;

	assert_int_equal(inet_pton(family, vector->src, ip + (ipv6 ? 8 : 12)), 1);
	assert_int_equal(inet_pton(family, vector->dst, ip + (ipv6 ? 24 : 16)), 1);
}

static void check_vector(const struct vector *vector, bool ipv6)
{
	static struct net_rss_key key;
	unsigned shift = ipv6 ? 3 : 0;
	struct net_headers headers;
	struct frame frame;
	uint32_t hash;
	bool l4;

	net_rss_key_init(&key, suite_key);
	for (int udp = 0; udp < 2; udp++) {
		unsigned ports = (udp ? NET_RSS_IPV4_UDP : NET_RSS_IPV4_TCP) << shift;
		unsigned others = 63 & ~ports & ~(NET_RSS_IPV4 << shift);

		make_frame(vector, ipv6, udp, &frame);
		net_headers_parse(frame.bytes, frame.size, &headers);
		assert_true(net_rss_hash(&key, 63, frame.bytes, &headers, &hash, &l4));
		assert_int_equal(hash, vector->with_ports);
		assert_true(l4);
		assert_true(net_rss_hash(&key, ports, frame.bytes, &headers, &hash, &l4));
		assert_int_equal(hash, vector->with_ports);
		assert_true(net_rss_hash(&key, 63 & ~ports, frame.bytes, &headers, &hash, &l4));
		assert_int_equal(hash, vector->addresses);
		assert_false(l4);
		assert_false(net_rss_hash(&key, others, frame.bytes, &headers, &hash, &l4));
	}
}

static void test_rss_suite_ipv4(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(suite_v4) / sizeof(suite_v4[0]); i++)
		check_vector(&suite_v4[i], false);
}

static void test_rss_suite_ipv6(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(suite_v6) / sizeof(suite_v6[0]); i++)
		check_vector(&suite_v6[i], true);
}

static void test_rss_needs_ip(void **state)
{
	static struct net_rss_key key;
	uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct net_headers headers;
	uint32_t hash;
	bool l4;

	(void)state;
	net_headers_parse(arp, sizeof(arp), &headers);
	assert_false(net_rss_hash(&key, 63, arp, &headers, &hash, &l4));
}

/* The formula, spelled out over the bytes that the manual names. */
static uint32_t fnv1a(const uint8_t *bytes, size_t size)
{
	uint32_t hash = 0x811c9dc5;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x01000193;
	return hash;
}

static void test_fnv_vectors(void **state)
{
	(void)state;
	assert_int_equal(fnv1a((const uint8_t *)"a", 1),
	                 0xe40c292c); /* of the FNV hash's own list */
	assert_int_equal(fnv1a((const uint8_t *)"foobar", 6), 0xbf9cf968);
}

static uint32_t flow_hash(const struct frame *frame)
{
	struct net_headers headers;

	net_headers_parse(frame->bytes, frame->size, &headers);
	return net_flow_hash(frame->bytes, frame->size, &headers);
}

static void test_flow_tcp_over_ipv4(void **state)
{
	static const uint8_t input[] = {192, 168, 77,   1,    192,  168, 77,
	                                2,   6,   0x12, 0x34, 0x56, 0x78};
	struct frame_spec spec = {.sport = 0x1234, .dport = 0x5678, .payload = 100};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	assert_int_equal(flow_hash(&frame), fnv1a(input, sizeof(input)));
	spec.tagged = true; /* a tag changes nothing */
	frame_build(&spec, &frame);
	assert_int_equal(flow_hash(&frame), fnv1a(input, sizeof(input)));
}

static void test_flow_udp_over_ipv6(void **state)
{
	struct frame_spec spec = {.ipv6 = true, .udp = true, .sport = 0x1234, .dport = 0x5678};
	uint8_t input[32 + 1 + 4];
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	memcpy(input, frame.bytes + frame.l3 + 8, 32);
	memcpy(input + 32, "\x11\x12\x34\x56\x78", 5);
	assert_int_equal(flow_hash(&frame), fnv1a(input, sizeof(input)));
}

static void test_flow_fragments_stay_together(void **state)
{
	static const uint8_t input[] = {192, 168, 77, 1, 192, 168, 77, 2, 17};
	struct frame_spec spec = {.udp = true, .sport = 1, .dport = 2, .payload = 100};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	frame.bytes[frame.l3 + 6] = 0x20; /* the first: more fragments */
	assert_int_equal(flow_hash(&frame), fnv1a(input, sizeof(input)));
	frame.bytes[frame.l3 + 6] = 0; /* the last: an offset */
	frame.bytes[frame.l3 + 7] = 13;
	assert_int_equal(flow_hash(&frame), fnv1a(input, sizeof(input)));
}

static void test_flow_other_frames_by_mac(void **state)
{
	struct frame frame = {.size = 60};

	(void)state;
	memcpy(frame.bytes, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x08\x06", 14);
	assert_int_equal(flow_hash(&frame), fnv1a(frame.bytes, 12));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rss_suite_ipv4),
	        cmocka_unit_test(test_rss_suite_ipv6),
	        cmocka_unit_test(test_rss_needs_ip),
	        cmocka_unit_test(test_fnv_vectors),
	        cmocka_unit_test(test_flow_tcp_over_ipv4),
	        cmocka_unit_test(test_flow_udp_over_ipv6),
	        cmocka_unit_test(test_flow_fragments_stay_together),
	        cmocka_unit_test(test_flow_other_frames_by_mac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
