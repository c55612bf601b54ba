/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Walks the registry that the linker assembles from every COUNTER() of the program. */
#include "base/counter.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* One counter always exists, so that the section does too in a program that has no other. */
COUNTER(base_counter_walks, "times the list of counters was walked");

extern struct counter *const __start_ernic_counters[];
extern struct counter *const __stop_ernic_counters[];

/* More than the program has; what would exceed it is a build-time matter and is asserted in tests.
 */
#define COUNTERS_MAX 1024

static int by_name(const void *left, const void *right)
{
	const struct counter *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

void counter_visit(void (*visit)(const struct counter *counter, void *arg), void *arg)
{
	static struct counter *sorted[COUNTERS_MAX];
	static size_t count;

	counter_inc(&base_counter_walks);
	if (count == 0) {
		struct counter *const *entry;

		for (entry = __start_ernic_counters;
		     entry < __stop_ernic_counters && count < ARRAY_SIZE(sorted); entry++)
			sorted[count++] = *entry;
		qsort(sorted, count, sizeof(sorted[0]), by_name);
	}
	for (size_t i = 0; i < count; i++)
		visit(sorted[i], arg);
}

const struct counter *counter_find(const char *name)
{
	struct counter *const *entry;

	for (entry = __start_ernic_counters; entry < __stop_ernic_counters; entry++)
		if (strcmp((*entry)->name, name) == 0)
			return *entry;
	return NULL;
}
