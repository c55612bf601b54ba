/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks histories of atomics. Each change is found by the value that it saw, so they make a chain
 * from the first value to the last; a compare that failed stands anywhere behind the change that
 * made what it saw and before the next. Then what ended before another began has to stand before
 * it.
 */
#include "history.h"

static bool changes(const struct history_op *op)
{
	return !op->swap || op->seen == op->compare;
}

static uint64_t result(const struct history_op *op)
{
	return op->swap ? op->operand : op->seen + op->operand;
}

/* Gives the changes their places; returns how many are in the chain. */
static size_t chain(struct history_op *ops, size_t count, uint64_t *value)
{
	size_t length = 0, i;

	do {
		for (i = 0; i < count; i++)
			if (ops[i].place < 0 && changes(&ops[i]) && ops[i].seen == *value)
				break;
		if (i < count) {
			*value = result(&ops[i]);
			ops[i].place = (double)++length;
		}
	} while (i < count);
	return length;
}

/* Whether a compare that failed saw a value that there was; gives it its place. */
static bool place_failed(struct history_op *ops, size_t count, uint64_t initial,
                         struct history_op *op)
{
	if (op->seen == initial)
		op->place = 0.5;
	for (size_t i = 0; i < count; i++)
		if (changes(&ops[i]) && result(&ops[i]) == op->seen)
			op->place = ops[i].place + 0.5;
	return op->place > 0;
}

static bool in_order(const struct history_op *a, const struct history_op *b)
{
	bool first = a->end < b->begin || (a->party == b->party && a->begin < b->begin);

	return !first || a->place <= b->place;
}

const char *history_check(struct history_op *ops, size_t count, uint64_t initial, uint64_t final)
{
	uint64_t value = initial;
	size_t changed = 0;

	for (size_t i = 0; i < count; i++) {
		ops[i].place = -1;
		changed += changes(&ops[i]);
	}
	if (chain(ops, count, &value) != changed)
		return "a change saw a value that there never was, or that another saw too";
	if (value != final)
		return "a change is missing from the last value, or was done twice";
	for (size_t i = 0; i < count; i++)
		if (!changes(&ops[i]) && !place_failed(ops, count, initial, &ops[i]))
			return "a compare that failed saw a value that there never was";
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (!in_order(&ops[i], &ops[j]))
				return "one operation took effect before another that was over";
	return NULL;
}
