/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The header parser: what it sees, what it refuses to see, and that no input upsets it. */
#include "net/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"

static struct net_headers parse(const struct frame *frame)
{
	struct net_headers headers;

	net_headers_parse(frame->bytes, frame->size, &headers);
	return headers;
}

static void test_tcp_with_options_and_tag(void **state)
{
	struct frame_spec spec = {.tagged = true, .tci = 0x6123, .tcp_options = 12, .payload = 10};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	struct net_headers headers = parse(&frame);

	assert_int_equal(headers.ethertype, 0x0800);
	assert_int_equal(headers.vlan_tags, 1);
	assert_int_equal(headers.vlan_tci, 0x6123);
	assert_int_equal(headers.vlan_tpid, 0x8100);
	assert_int_equal(headers.ip_version, 4);
	assert_int_equal(headers.l3_offset, 18);
	assert_int_equal(headers.l4_offset, 38);
	assert_int_equal(headers.protocol, 6);
	assert_int_equal(headers.payload_offset, 70);
	assert_false(headers.fragment);
}

static void test_two_tags_outer_counts(void **state)
{
	struct frame frame = {.size = 60};

	(void)state;
	memcpy(frame.bytes + 12, "\x88\xa8\x20\x05\x81\x00\x00\x07\x08\x06", 10);
	struct net_headers headers = parse(&frame);

	assert_int_equal(headers.vlan_tags, 2);
	assert_int_equal(headers.vlan_tpid, 0x88a8);
	assert_int_equal(headers.vlan_tci, 0x2005);
	assert_int_equal(headers.ethertype, 0x0806);
	assert_int_equal(headers.ip_version, 0);
}

/* Inserts an IPv6 extension header of 8 bytes behind the fixed one. */
static void insert_extension(struct frame *frame, uint8_t type, const char *body)
{
	uint8_t *ip = frame->bytes + frame->l3;

	memmove(ip + 48, ip + 40, frame->size - frame->l3 - 40);
	memcpy(ip + 40, body, 8);
	ip[40] = ip[6];
	ip[6] = type;
	frame->size += 8;
}

static void test_ipv6_extensions_are_stepped_over(void **state)
{
	struct frame_spec spec = {.ipv6 = true, .udp = true, .payload = 20};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	insert_extension(&frame, 60, "\0\0\1\4\0\0\0\0");
	insert_extension(&frame, 0, "\0\0\1\4\0\0\0\0");
	struct net_headers headers = parse(&frame);

	assert_int_equal(headers.protocol, 17);
	assert_int_equal(headers.l4_offset, 14 + 40 + 16);
	assert_int_equal(headers.payload_offset, 14 + 40 + 16 + 8);
}

static void test_ipv6_fragments(void **state)
{
	struct frame_spec spec = {.ipv6 = true, .udp = true, .payload = 20};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	insert_extension(&frame, 44, "\0\0\0\1\0\0\0\7"); /* the first of several */
	struct net_headers headers = parse(&frame);

	assert_true(headers.fragment);
	assert_int_equal(headers.l4_offset, 0);
	assert_int_equal(headers.protocol, 17);
	frame_build(&spec, &frame);
	insert_extension(&frame, 44, "\0\0\0\0\0\0\0\7"); /* atomic: the whole datagram */
	headers = parse(&frame);
	assert_false(headers.fragment);
	assert_int_equal(headers.l4_offset, 14 + 48);
}

static void test_endless_extensions_end(void **state)
{
	struct frame frame = {.size = 4000};
	struct net_headers headers;

	(void)state;
	frame.bytes[12] = 0x86;
	frame.bytes[13] = 0xdd;
	frame.bytes[14] = 0x60; /* next header 0, and so in all that follow */
	headers = parse(&frame);
	assert_int_equal(headers.ip_version, 6);
	assert_int_equal(headers.l4_offset, 0);
}

/* The cut must be seen at every length: headers appear as they become complete, and never move. */
static void test_every_truncation(void **state)
{
	struct frame_spec spec = {.tcp_options = 12, .payload = 10, .tagged = true};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	for (size_t size = 0; size <= frame.size; size++) {
		struct net_headers headers;
		uint8_t *copy = malloc(size ? size : 1); /* so that a sanitizer sees what is read */

		memcpy(copy, frame.bytes, size);
		net_headers_parse(copy, size, &headers);
		assert_int_equal(headers.l3_offset, size >= 38 ? 18 : 0);
		assert_int_equal(headers.l4_offset, size >= 58 ? 38 : 0);
		assert_int_equal(headers.payload_offset, size >= 70 ? 70 : 0);
		free(copy);
	}
}

static void test_impossible_ipv4_header(void **state)
{
	struct frame_spec spec = {.payload = 10};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	frame.bytes[frame.l3] = 0x44; /* 16 bytes */
	assert_int_equal(parse(&frame).ip_version, 0);
	frame.bytes[frame.l3] = 0x55; /* version 5 */
	assert_int_equal(parse(&frame).ip_version, 0);
}

static void test_impossible_tcp_header(void **state)
{
	struct frame_spec spec = {.payload = 10};
	struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	frame.bytes[frame.l4 + 12] = 0x40;             /* 16 bytes */
	assert_int_equal(parse(&frame).l4_offset, 34); /* the ports are there */
	assert_int_equal(parse(&frame).payload_offset, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_tcp_with_options_and_tag),
	        cmocka_unit_test(test_two_tags_outer_counts),
	        cmocka_unit_test(test_ipv6_extensions_are_stepped_over),
	        cmocka_unit_test(test_ipv6_fragments),
	        cmocka_unit_test(test_endless_extensions_end),
	        cmocka_unit_test(test_every_truncation),
	        cmocka_unit_test(test_impossible_ipv4_header),
	        cmocka_unit_test(test_impossible_tcp_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
