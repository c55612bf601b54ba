// SPDX-License-Identifier: GPL-2.0-or-later
/* What the benchmark programs share, harness.h. */
#include "harness.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS_GIVEN  8
#define ENTRIES_MAX 32

_Noreturn void bench_die(const char *what, int err)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(-err));
	exit(1);
}

double bench_clock(clockid_t clock)
{
	struct timespec spec;

	clock_gettime(clock, &spec);
	return (double)spec.tv_sec + (double)spec.tv_nsec / 1e9;
}

double bench_now(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

struct bench_sample bench_rate(double count, double seconds, double cpu_seconds)
{
	return (struct bench_sample){count / seconds / 1000, cpu_seconds * 1e6 / count};
}

double bench_server_cpu(const struct server *server)
{
	return (double)server_cpu_ns(server) / 1e9;
}

pid_t bench_strace_start(pid_t server, const char *output)
{
	char pid_text[16], line[256];
	int out[2];
	pid_t pid;
	FILE *said;

	if (pipe(out) < 0)
		bench_die("pipe", -errno);
	snprintf(pid_text, sizeof(pid_text), "%d", (int)server);
	pid = fork();
	if (pid == 0) {
		dup2(out[1], STDERR_FILENO);
		close(out[0]);
		execlp("strace", "strace", "-f", "-c", "-o", output, "-p", pid_text, NULL);
		_exit(127);
	}
	close(out[1]);
	said = fdopen(out[0], "r");
	if (!said || !fgets(line, sizeof(line), said) || !strstr(line, "attached")) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	if (said)
		fclose(said);
	return pid;
}

/* The calls in the last line of strace -c: % time, seconds, usecs/call, calls, ..., "total". */
double bench_strace_total(const char *output)
{
	char line[256];
	double total = -1;
	FILE *file = fopen(output, "r");

	while (file && fgets(line, sizeof(line), file)) {
		char *at = line;

		if (!strstr(line, " total"))
			continue;
		for (int column = 0; column < 4; column++)
			total = strtod(at, &at);
	}
	if (file)
		fclose(file);
	return total;
}

void bench_take_turns(struct bench *bench, struct bench_row *row, bench_measure_fn *measure,
                      bench_measure_fn *limit, const void *arg)
{
	double ratios[BENCH_ROUNDS_MAX], limits[BENCH_ROUNDS_MAX], cpus[BENCH_ROUNDS_MAX];

	for (unsigned i = 0; i < bench->rounds; i++) {
		struct bench_sample want = limit(bench, arg), got = measure(bench, arg);

		limits[i] = want.value;
		ratios[i] = got.value / want.value;
		cpus[i] = got.cpu > 0 ? want.cpu / got.cpu : 0;
		fprintf(stderr, "%s: round %u of %u: %.2f\n", row->name, i + 1, bench->rounds,
		        row->cost ? 1 / ratios[i] : ratios[i]);
	}
	row->limit = bench_median(limits, bench->rounds);
	row->measured = bench_median(ratios, bench->rounds) * row->limit;
	row->cpu = bench_median(cpus, bench->rounds);
}

/* ---- options ---- */

static void usage(FILE *out, const struct bench_program *program)
{
	fprintf(out,
	        "usage: bench_%s [OPTION]...\n"
	        "%s\n\n"
	        "  --json         results as JSON\n"
	        "  --rounds N     measurements of each kind, 1 to 21 (5)\n"
	        "  --seconds S    length of a measurement (0.5)\n"
	        "  --only NAME    those whose name begins so, of:",
	        program->name, program->what);
	for (unsigned i = 0; i < program->count; i++)
		fprintf(out, " %s", program->entries[i].row.name);
	fprintf(out, "\n  --row ROW      a line of the table that somebody else measured, first:\n"
	             "                 NAME|WHAT|UNIT|MEASURED|LIMIT|AIM, or NAME|WHAT|REASON;\n"
	             "                 with |cost at the end, small is good\n"
	             "  --strict       exit with 1 when a ratio is below its aim\n"
	             "  --help         this text\n\n"
	             "The program measured is $ROCM_ERNIC, or the one of this build.\n");
}

struct settings {
	bool json, strict;
	const char *only;
	struct bench_row given[ROWS_GIVEN];
	unsigned given_count;
};

/* Takes a row that somebody else measured; TEXT is cut up. */
static bool take_row(char *text, struct settings *settings)
{
	char *fields[7] = {NULL}, *next = text;
	struct bench_row *row = &settings->given[settings->given_count];
	unsigned count = 0;

	while (count < 7 && next)
		fields[count++] = strsep(&next, "|");
	if (count == 7 && strcmp(fields[6], "cost") != 0)
		return false;
	if (next || (count != 3 && count < 6) || settings->given_count == ROWS_GIVEN)
		return false;
	*row = (struct bench_row){.name = fields[0], .what = fields[1]};
	if (count == 3) {
		row->missing = fields[2];
	} else {
		row->unit = fields[2];
		row->measured = strtod(fields[3], NULL);
		row->limit = strtod(fields[4], NULL);
		row->aim = strtod(fields[5], NULL);
		row->cost = fields[6] != NULL;
	}
	settings->given_count++;
	return true;
}

/* Returns whether to go on; else *STATUS is what to exit with. */
static bool parse(int argc, char **argv, struct bench *bench, struct settings *settings,
                  const struct bench_program *program, int *status)
{
	static const struct option options[] = {
	        {"json", no_argument, NULL, 'j'},          {"rounds", required_argument, NULL, 'r'},
	        {"seconds", required_argument, NULL, 's'}, {"only", required_argument, NULL, 'o'},
	        {"strict", no_argument, NULL, 'x'},        {"help", no_argument, NULL, 'h'},
	        {"row", required_argument, NULL, 'w'},     {0}};
	int option;

	*status = 2;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'j')
			settings->json = true;
		else if (option == 'r')
			bench->rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 's')
			bench->seconds = strtod(optarg, NULL);
		else if (option == 'o')
			settings->only = optarg;
		else if (option == 'x')
			settings->strict = true;
		else if (option == 'w' && take_row(optarg, settings))
			continue;
		else {
			*status = option == 'h' ? 0 : 2;
			usage(option == 'h' ? stdout : stderr, program);
			return false;
		}
	}
	if (bench->rounds < 1 || bench->rounds > BENCH_ROUNDS_MAX || bench->seconds <= 0 ||
	    optind != argc) {
		usage(stderr, program);
		return false;
	}
	return true;
}

int bench_main(int argc, char **argv, const struct bench_program *program)
{
	static struct bench bench = {.seconds = 0.5, .rounds = 5};
	static struct settings settings;
	static struct bench_row rows[ROWS_GIVEN + ENTRIES_MAX];
	unsigned count, low;
	int status;

	assert(program->count <= ENTRIES_MAX);
	if (!parse(argc, argv, &bench, &settings, program, &status))
		return status;
	/* Files of the server in memory, so that no disk wakes it. */
	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	if (program->prepare && !program->prepare(&bench))
		return 77;
	count = settings.given_count;
	memcpy(rows, settings.given, count * sizeof(rows[0]));
	for (unsigned i = 0; i < program->count; i++) {
		const struct bench_entry *entry = &program->entries[i];

		if (settings.only &&
		    strncmp(settings.only, entry->row.name, strlen(settings.only)) != 0)
			continue;
		rows[count] = entry->row;
		entry->run(&bench, &rows[count]);
		count++;
	}
	low = bench_print(program->name, rows, count, settings.json);
	return settings.strict && low ? 1 : 0;
}
