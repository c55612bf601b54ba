/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internet checksums: against a byte-by-byte sum, for all sizes, alignments and splits. */
#include "net/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"

/* The two representations of zero are one value. */
static void assert_same_sum(uint16_t a, uint16_t b)
{
	assert_int_equal(a % 0xffff, b % 0xffff);
}

static void fill_random(uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)rand();
}

static void test_rfc1071_example(void **state)
{
	static const uint8_t data[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};

	(void)state;
	assert_int_equal(net_csum_fold(net_csum_add(0, data, sizeof(data))), 0xddf2);
}

static void test_odd_size_is_padded(void **state)
{
	(void)state;
	assert_int_equal(net_csum_fold(net_csum_add(0, "\x12\x34\x56", 3)), 0x1234 + 0x5600);
}

static void test_all_sizes_and_alignments(void **state)
{
	uint8_t data[700], copy[700];

	(void)state;
	fill_random(data, sizeof(data));
	for (size_t offset = 0; offset < 9; offset++) {
		for (size_t size = 0; size < 600; size++) {
			uint16_t expected = naive_sum(data + offset, size);

			assert_same_sum(net_csum_fold(net_csum_add(0, data + offset, size)),
			                expected);
			memset(copy, 0xee, sizeof(copy));
			uint32_t sum = net_csum_copy(0, copy + 3, data + offset, size);

			assert_same_sum(net_csum_fold(sum), expected);
			assert_memory_equal(copy + 3, data + offset, size);
			assert_int_equal(copy[3 + size], 0xee);
		}
	}
}

static void test_ones_do_not_overflow(void **state)
{
	static uint8_t data[65536];

	(void)state;
	memset(data, 0xff, sizeof(data));
	assert_int_equal(net_csum_fold(net_csum_add(0xffffffff, data, sizeof(data))), 0xffff);
}

static void test_join_at_odd_distance(void **state)
{
	uint8_t data[257];

	(void)state;
	fill_random(data, sizeof(data));
	for (size_t cut = 0; cut <= sizeof(data); cut++) {
		uint32_t a = net_csum_add(0, data, cut);
		uint32_t b = net_csum_add(0, data + cut, sizeof(data) - cut);

		assert_same_sum(net_csum_fold(net_csum_join(a, b, cut & 1)),
		                naive_sum(data, sizeof(data)));
	}
}

static void test_pieces_of_any_size(void **state)
{
	static uint8_t data[4000], store[4000 + 64];
	struct iovec iov[64];

	(void)state;
	fill_random(data, sizeof(data));
	for (unsigned round = 0; round < 2000; round++) {
		size_t size = (size_t)rand() % sizeof(data) + 1;
		size_t from = (size_t)rand() % size;
		size_t part = (size_t)rand() % (size - from + 1);
		unsigned count = split_random(data, size, iov, 64, store);

		assert_same_sum(net_csum_fold(net_csum_iov(iov, count, from, part)),
		                naive_sum(data + from, part));
	}
}

static void test_final_is_never_zero(void **state)
{
	(void)state;
	assert_int_equal(net_csum_final(0xffff), 0xffff);
	assert_int_equal(net_csum_final(0), 0xffff);
	assert_int_equal(net_csum_final(0x1234), 0xedcb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_rfc1071_example),
	        cmocka_unit_test(test_odd_size_is_padded),
	        cmocka_unit_test(test_all_sizes_and_alignments),
	        cmocka_unit_test(test_ones_do_not_overflow),
	        cmocka_unit_test(test_join_at_odd_distance),
	        cmocka_unit_test(test_pieces_of_any_size),
	        cmocka_unit_test(test_final_is_never_zero),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
