/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Named event counters. Every branch that is rare enough to be a surprise has one; the stats file
 * and the exporter list them all without knowing any of them.
 *
 * A counter is declared in the .c file that moves it:
 *
 *	COUNTER(vfio_bad_size, "messages with a size below the header's or above the limit");
 *	...
 *	counter_inc(&vfio_bad_size);
 *
 * Names are unique in the program and start with the room. Counters are per process, and so per
 * NIC; they never go back, a device reset included.
 */
#ifndef ERNIC_BASE_COUNTER_H
#define ERNIC_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

struct counter {
	const char *name;
	const char *help;
	_Atomic uint64_t value;
};

/* The registry is a linker section of pointers, so that declaring a counter is all it takes. */
#define COUNTER(ident, text)                                                                       \
	static struct counter ident = {.name = #ident, .help = text};                              \
	static struct counter *const ident##_entry                                                 \
	        __attribute__((used, section("ernic_counters"))) = &ident

static inline void counter_add(struct counter *counter, uint64_t amount)
{
	atomic_fetch_add_explicit(&counter->value, amount, memory_order_relaxed);
}

static inline void counter_inc(struct counter *counter)
{
	counter_add(counter, 1);
}

static inline uint64_t counter_get(const struct counter *counter)
{
	return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

/* Calls VISIT with ARG for every counter of the program, in name order. */
void counter_visit(void (*visit)(const struct counter *counter, void *arg), void *arg);

/* The counter called NAME, or NULL. For tests; walks the whole registry. */
const struct counter *counter_find(const char *name);

#endif
