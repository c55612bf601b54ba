/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sorted map of guest ranges against a plain bitmap, and at the size a virtual IOMMU makes it.
 */
#include "vfio/region_map.h"

#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define PAGES 4096u

static struct region_map map;

static struct region page_region(uint64_t page)
{
	return (struct region){.start = page * 4096, .last = page * 4096 + 4095, .access = 3};
}

static void insert_page(uint64_t page)
{
	struct region region = page_region(page);

	assert_int_equal(region_map_insert(&map, &region), 0);
}

static void remove_page(uint64_t page)
{
	struct region *region = region_map_find(&map, page * 4096 + 7);

	assert_non_null(region);
	assert_int_equal(region->start, page * 4096);
	region_map_remove(&map, region);
}

/* What find() must say for every page, by a look at the bitmap. */
static void compare(const bool *present)
{
	uint64_t next = PAGES;

	for (uint64_t page = PAGES; page-- > 0;) {
		struct region *region = region_map_find(&map, page * 4096 + page % 4096);

		if (present[page])
			next = page;
		if (next == PAGES)
			assert_null(region);
		else
			assert_int_equal(region->start, next * 4096);
	}
}

static void matches_a_bitmap_through_random_changes(void **state)
{
	static bool present[PAGES];
	unsigned count = 0;

	(void)state;
	uint32_t random = 1;

	for (unsigned i = 0; i < 40000; i++) {
		unsigned page = unit_random(&random) % PAGES;

		/* mostly full, then mostly empty, and so on */
		if (!present[page] && unit_random(&random) % 4 < (i / 8000 % 2 ? 1 : 3)) {
			insert_page(page);
			present[page] = true;
			count++;
		} else if (present[page] && unit_random(&random) % 4 < (i / 8000 % 2 ? 3 : 1)) {
			remove_page(page);
			present[page] = false;
			count--;
		}
		assert_int_equal(map.count, count);
		if (i % 2000 == 0)
			compare(present);
	}
	compare(present);
	region_map_clear(&map);
	assert_null(region_map_find(&map, 0));
}

static void empties_and_fills_again(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t page = 0; page < 1000; page++)
			insert_page(page);
		for (uint64_t page = 1000; page-- > 0;)
			remove_page(page);
		assert_int_equal(map.count, 0);
		assert_int_equal(map.entry_count, 0);
		assert_null(region_map_find(&map, 0));
	}
	region_map_clear(&map);
}

static void holds_65535_in_any_order(void **state)
{
	static uint16_t order[65535];

	(void)state;
	for (unsigned i = 0; i < 65535; i++)
		order[i] = (uint16_t)i;
	uint32_t random = 2;

	for (unsigned i = 65534; i > 0; i--) {
		unsigned j = unit_random(&random) % (i + 1);
		uint16_t swap = order[i];

		order[i] = order[j];
		order[j] = swap;
	}
	for (unsigned i = 0; i < 65535; i++)
		insert_page(order[i]);
	assert_int_equal(map.count, 65535);
	for (unsigned i = 0; i < 65535; i++)
		assert_int_equal(region_map_find(&map, i * UINT64_C(4096))->start,
		                 i * UINT64_C(4096));
	for (unsigned i = 0; i < 65535; i++)
		remove_page(order[65534 - i]);
	assert_int_equal(map.count, 0);
	region_map_clear(&map);
}

static void reaches_the_end_of_the_address_space(void **state)
{
	struct region whole = {.start = 0, .last = UINT64_MAX};
	struct region top = {.start = UINT64_MAX, .last = UINT64_MAX};

	(void)state;
	assert_int_equal(region_map_insert(&map, &whole), 0);
	assert_non_null(region_map_find(&map, 0));
	assert_non_null(region_map_find(&map, UINT64_MAX));
	region_map_clear(&map);
	assert_int_equal(region_map_insert(&map, &top), 0);
	assert_int_equal(region_map_find(&map, 0)->start, UINT64_MAX);
	region_map_clear(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(matches_a_bitmap_through_random_changes),
	        cmocka_unit_test(empties_and_fills_again),
	        cmocka_unit_test(holds_65535_in_any_order),
	        cmocka_unit_test(reaches_the_end_of_the_address_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
