/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The history of one word that several parties change by atomics: whether there is an order of all
 * operations, one after the other, that explains every value that was seen.
 */
#ifndef ERNIC_TESTS_DRIVER_HISTORY_H
#define ERNIC_TESTS_DRIVER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One atomic. Operands have to be such that no value comes twice: random ones do. */
struct history_op {
	bool swap;           /* compare and swap; else fetch and add */
	uint64_t operand;    /* added, or swapped in */
	uint64_t compare;    /* with what */
	uint64_t seen;       /* the old value that came back */
	uint64_t begin, end; /* when it was posted and when it was over, by one clock */
	unsigned party;      /* operations of one party take effect in the order of their begin */
	double place;        /* in the order found, by history_check() */
};

/* Returns NULL when the COUNT operations lead from INITIAL to FINAL, else what is wrong. */
const char *history_check(struct history_op *ops, size_t count, uint64_t initial, uint64_t final);

#endif
