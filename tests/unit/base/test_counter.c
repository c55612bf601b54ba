/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registry of counters: it knows each one that is declared, in order. */
#include "base/counter.h"

#include <stdbool.h>
#include <string.h>

#include "unit.h"

COUNTER(test_zebra, "declared first, last by name");
COUNTER(test_ant, "declared last, first by name");

static void a_counter_counts(void **state)
{
	uint64_t before = counter_get(&test_ant);

	(void)state;
	counter_inc(&test_ant);
	counter_add(&test_ant, 41);
	assert_int_equal(counter_get(&test_ant), before + 42);
}

static void a_counter_is_found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(counter_find("test_zebra"), &test_zebra);
	assert_string_equal(counter_find("test_zebra")->help, "declared first, last by name");
	assert_null(counter_find("test_zebr"));
	assert_null(counter_find(""));
}

struct seen {
	const char *last;
	unsigned count, ours;
	bool ordered;
};

static void look(const struct counter *counter, void *arg)
{
	struct seen *seen = arg;

	if (seen->last && strcmp(seen->last, counter->name) >= 0)
		seen->ordered = false;
	seen->last = counter->name;
	seen->count++;
	if (counter == &test_zebra || counter == &test_ant)
		seen->ours++;
}

static void a_visit_sees_each_once_in_name_order(void **state)
{
	struct seen seen = {.ordered = true};

	(void)state;
	counter_visit(look, &seen);
	assert_true(seen.ordered);
	assert_int_equal(seen.ours, 2);
	assert_int_equal(seen.count, 3); /* ours and the registry's own */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_counter_counts),
	        cmocka_unit_test(a_counter_is_found_by_name),
	        cmocka_unit_test(a_visit_sees_each_once_in_name_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
