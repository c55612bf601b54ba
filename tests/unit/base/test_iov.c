/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies and slices over lists of pieces, checked against a flat copy of the same bytes. */
#include "base/iov.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "unit.h"

/* Ten bytes 0..9 in pieces of 3, 0, 1, 4 and 2 bytes. */
struct pieces {
	char bytes[10];
	struct iovec iov[5];
};

static void make_pieces(struct pieces *pieces)
{
	static const size_t sizes[] = {3, 0, 1, 4, 2};
	char *at = pieces->bytes;

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		pieces->iov[i] = (struct iovec){at, sizes[i]};
		at += sizes[i];
	}
	for (unsigned i = 0; i < sizeof(pieces->bytes); i++)
		pieces->bytes[i] = (char)i;
}

static void size_is_the_sum(void **state)
{
	struct pieces pieces;

	(void)state;
	make_pieces(&pieces);
	assert_int_equal(iov_size(pieces.iov, 5), 10);
	assert_int_equal(iov_size(pieces.iov, 0), 0);
}

static void every_range_is_read(void **state)
{
	struct pieces pieces;

	(void)state;
	make_pieces(&pieces);
	for (size_t offset = 0; offset <= 12; offset++)
		for (size_t size = 0; size <= 12; size++) {
			size_t there = offset >= 10 ? 0 : 10 - offset;
			size_t expected = size < there ? size : there;
			char buf[16];

			memset(buf, -1, sizeof(buf));
			assert_int_equal(iov_to_buf(pieces.iov, 5, offset, buf, size), expected);
			for (size_t i = 0; i < sizeof(buf); i++)
				assert_int_equal(buf[i], i < expected ? (int)(offset + i) : -1);
		}
}

static void every_range_is_written(void **state)
{
	static const char ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
	struct pieces pieces;

	(void)state;
	for (size_t offset = 0; offset <= 10; offset++)
		for (size_t size = 0; size <= 12; size++) {
			size_t expected = size < 10 - offset ? size : 10 - offset;

			make_pieces(&pieces);
			memset(pieces.bytes, 0, sizeof(pieces.bytes));
			assert_int_equal(iov_from_buf(pieces.iov, 5, offset, ones, size), expected);
			for (size_t i = 0; i < 10; i++)
				assert_int_equal(pieces.bytes[i],
				                 i >= offset && i < offset + expected);
		}
}

static void a_slice_is_the_range(void **state)
{
	struct pieces pieces;
	struct iovec slice[5];

	(void)state;
	make_pieces(&pieces);
	for (size_t offset = 0; offset <= 10; offset++)
		for (size_t size = 0; size <= 10 - offset; size++) {
			int count = iov_slice(pieces.iov, 5, offset, size, slice, 5);
			char buf[10];

			assert_true(count >= 0);
			assert_int_equal(iov_size(slice, (size_t)count), size);
			iov_to_buf(slice, (size_t)count, 0, buf, size);
			assert_memory_equal(buf, pieces.bytes + offset, size);
		}
}

static void a_slice_that_does_not_fit_is_refused(void **state)
{
	struct pieces pieces;
	struct iovec slice[5];

	(void)state;
	make_pieces(&pieces);
	assert_int_equal(iov_slice(pieces.iov, 5, 0, 10, slice, 3), -E2BIG);
	assert_int_equal(iov_slice(pieces.iov, 5, 0, 8, slice, 3), 3);
	assert_int_equal(iov_slice(pieces.iov, 5, 1, 10, slice, 5), -EFAULT);
	assert_int_equal(iov_slice(pieces.iov, 5, 11, 1, slice, 5), -EFAULT);
	assert_int_equal(iov_slice(pieces.iov, 0, 0, 1, slice, 5), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(size_is_the_sum),
	        cmocka_unit_test(every_range_is_read),
	        cmocka_unit_test(every_range_is_written),
	        cmocka_unit_test(a_slice_is_the_range),
	        cmocka_unit_test(a_slice_that_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
