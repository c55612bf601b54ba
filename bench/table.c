// SPDX-License-Identifier: GPL-2.0-or-later
/* Results of a benchmark, table.h. */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>

double bench_ratio(const struct bench_row *row)
{
	double above = row->cost ? row->limit : row->measured;
	double below = row->cost ? row->measured : row->limit;

	return below > 0 ? above / below : above > 0 ? 0 : 1;
}

bool bench_low(const struct bench_row *row)
{
	return !row->missing && bench_ratio(row) < row->aim;
}

static void print_row(const struct bench_row *row)
{
	char measured[32], limit[32], cpu[16] = "";

	if (row->missing) {
		printf("%-46s %s\n", row->what, row->missing);
		return;
	}
	snprintf(measured, sizeof(measured), "%.2f %s", row->measured, row->unit);
	snprintf(limit, sizeof(limit), "%.2f %s", row->limit, row->unit);
	if (row->cpu > 0)
		snprintf(cpu, sizeof(cpu), "%.2f", row->cpu);
	printf("%-46s %14s %14s %7.2f %6.2f %-4s %7s\n", row->what, measured, limit,
	       bench_ratio(row), row->aim, bench_low(row) ? "LOW" : "ok", cpu);
}

static void print_json(const struct bench_row *row, const char *comma)
{
	printf("    {\"name\": \"%s\", \"what\": \"%s\", ", row->name, row->what);
	if (row->missing)
		printf("\"missing\": \"%s\"}%s\n", row->missing, comma);
	else
		printf("\"unit\": \"%s\", \"measured\": %.6g, \"limit\": %.6g, \"ratio\": %.4f, "
		       "\"aim\": %.2f, \"ok\": %s, \"cpu_ratio\": %.4f}%s\n",
		       row->unit, row->measured, row->limit, bench_ratio(row), row->aim,
		       bench_low(row) ? "false" : "true", row->cpu, comma);
}

unsigned bench_print(const char *name, const struct bench_row *rows, unsigned count, bool json)
{
	unsigned low = 0;

	if (json)
		printf("{\"bench\": \"%s\", \"results\": [\n", name);
	else
		printf("%-46s %14s %14s %7s %6s %-4s %7s\n", name, "measured", "limit", "ratio",
		       "aim", "", "CPU");
	for (unsigned i = 0; i < count; i++) {
		low += bench_low(&rows[i]);
		if (json)
			print_json(&rows[i], i + 1 < count ? "," : "");
		else
			print_row(&rows[i]);
	}
	if (json)
		printf("]}\n");
	return low;
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

double bench_median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return count & 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
