/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Results of a benchmark: what was measured against which limit, as a table or JSON. */
#ifndef ERNIC_BENCH_TABLE_H
#define ERNIC_BENCH_TABLE_H

#include <stdbool.h>

struct bench_row {
	const char *name; /* one word */
	const char *what; /* a line for people */
	const char *unit;
	double measured, limit; /* in UNIT */
	double aim;             /* of the ratio, which is never better than 1 by much */
	double cpu;             /* CPU time of the limit / CPU time measured; 0: not shown */
	bool cost;              /* small is good: ratio = limit / measured, else measured / limit */
	const char *missing;    /* why there is no measurement, or NULL */
};

double bench_ratio(const struct bench_row *row);
bool bench_low(const struct bench_row *row); /* below its aim */

/* Prints rows to stdout. Returns how many are below their aim. */
unsigned bench_print(const char *name, const struct bench_row *rows, unsigned count, bool json);

/* The middle of COUNT values, which it sorts. */
double bench_median(double *values, unsigned count);

#endif
