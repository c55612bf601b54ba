/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the benchmark programs share: options, turns of measurement and limit, clocks, and counting
 * system calls of the server.
 */
#ifndef ERNIC_BENCH_HARNESS_H
#define ERNIC_BENCH_HARNESS_H

#include <time.h>

#include "peer.h"
#include "server.h"
#include "table.h"

#define BENCH_ROUNDS_MAX 21

struct bench {
	double seconds; /* of a measurement */
	unsigned rounds;
	/* for the programs */
	char tap[16];
	uint8_t frame[PEER_FRAME_MAX];
};

/* What one measurement gave. */
struct bench_sample {
	double value;
	double cpu; /* us of CPU for each piece of work; 0: not measured */
};

/* A rate in thousands a second, with the CPU time that it took. */
struct bench_sample bench_rate(double count, double seconds, double cpu_seconds);

typedef struct bench_sample bench_measure_fn(struct bench *bench, const void *arg);

/* Runs measurement and limit in turns. The ratio of a row is the middle of the rounds' ratios;
 * shown are the middle limit, and the ratio times it. */
void bench_take_turns(struct bench *bench, struct bench_row *row, bench_measure_fn *measure,
                      bench_measure_fn *limit, const void *arg);

struct bench_entry {
	struct bench_row row;
	void (*run)(struct bench *bench, struct bench_row *row);
};

struct bench_program {
	const char *name; /* of the table; the program is bench_NAME */
	const char *what; /* one sentence for --help */
	const struct bench_entry *entries;
	unsigned count;
	bool (*prepare)(struct bench *bench); /* false: skipped, and it has said why; optional */
};

/* The whole of main(). */
int bench_main(int argc, char **argv, const struct bench_program *program);

/* Says what failed with which negative errno, and exits with 1. */
_Noreturn void bench_die(const char *what, int err);

double bench_clock(clockid_t clock);                  /* seconds */
double bench_now(void);                               /* ... of CLOCK_MONOTONIC */
double bench_server_cpu(const struct server *server); /* seconds on a CPU so far */

/* Starts strace -c on a process and waits until it watches. Returns its pid, or -1. SIGINT ends it,
 * and bench_strace_total() then gives the number of calls, negative when there is none. */
pid_t bench_strace_start(pid_t pid, const char *output);
double bench_strace_total(const char *output);

#endif
