/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Integers of a fixed byte order: the bytes in memory, and back. */
#include "base/bytes.h"

#include "unit.h"

static void little_endian_has_the_low_byte_first(void **state)
{
	static const uint8_t bytes[] = {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
	le64 wide = le64_make(0x1122334455667788ull);
	le32 word = le32_make(0x55667788);
	le16 half = le16_make(0x7788);

	(void)state;
	assert_memory_equal(&wide, bytes, 8);
	assert_memory_equal(&word, bytes, 4);
	assert_memory_equal(&half, bytes, 2);
	assert_true(le64_get(wide) == 0x1122334455667788ull);
	assert_true(le32_get(word) == 0x55667788);
	assert_true(le16_get(half) == 0x7788);
}

static void big_endian_has_the_high_byte_first(void **state)
{
	static const uint8_t bytes[] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
	be64 wide = be64_make(0x1122334455667788ull);
	be32 word = be32_make(0x11223344);
	be16 half = be16_make(0x1122);

	(void)state;
	assert_memory_equal(&wide, bytes, 8);
	assert_memory_equal(&word, bytes, 4);
	assert_memory_equal(&half, bytes, 2);
	assert_true(be64_get(wide) == 0x1122334455667788ull);
	assert_true(be32_get(word) == 0x11223344);
	assert_true(be16_get(half) == 0x1122);
}

static void types_fit_a_packed_structure(void **state)
{
	struct mixed {
		uint8_t first;
		be64 wide;
		le16 half;
	};

	(void)state;
	assert_int_equal(sizeof(struct mixed), 11);
	assert_int_equal(offsetof(struct mixed, half), 9);
}

static void container_of_undoes_taking_a_member(void **state)
{
	struct owner {
		int before, member;
	} owner;

	(void)state;
	assert_ptr_equal(container_of(&owner.member, struct owner, member), &owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(little_endian_has_the_low_byte_first),
	        cmocka_unit_test(big_endian_has_the_high_byte_first),
	        cmocka_unit_test(types_fit_a_packed_structure),
	        cmocka_unit_test(container_of_undoes_taking_a_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
