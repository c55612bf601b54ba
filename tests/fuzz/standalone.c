// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a fuzz target without libFuzzer: the saved corpus, then simple mutations of it for a bounded
 * time, so that every compiler and every test run has the targets.
 *
 *	fuzz_NAME [--seconds N] [--runs N] [--seed N] [--max-size N] [FILE|FOLDER]...
 *
 * It ends with 0, or dies as the target died; the input that did it is then in ./crash-PID. The
 * seed is printed: with the same seed, corpus and --runs the same inputs are made.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Either may be missing. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

#define INPUT_MAX  (1u << 20)
#define CORPUS_MAX 4096
#define ROUNDS_MAX 8 /* mutations of one input */

struct input {
	uint8_t *data;
	size_t size;
};

static struct input corpus[CORPUS_MAX];
static size_t corpus_count;
static uint8_t current[INPUT_MAX]; /* what runs now, for the crash file */
static size_t current_size;

/* ---- a crash leaves its input ---- */

static void save_crash(void)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "crash-%d", (int)getpid());
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, current, current_size) != (ssize_t)current_size)
		return;
	close(fd);
	fprintf(stderr, "the input of %zu bytes is in %s\n", current_size, name);
}

static void on_crash(int signal_number)
{
	save_crash();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void catch_crashes(void)
{
	static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(save_crash);
		signal(SIGABRT, on_crash);
		return;
	}
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], on_crash);
}

/* ---- corpus ---- */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(2);
}

static void load_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct input input = {malloc(INPUT_MAX), 0};

	if (!file)
		die(path, strerror(errno));
	if (!input.data || corpus_count == CORPUS_MAX)
		die(path, "too many inputs");
	input.size = fread(input.data, 1, INPUT_MAX, file);
	fclose(file);
	input.data = realloc(input.data, input.size ? input.size : 1);
	corpus[corpus_count++] = input;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void load(const char *path)
{
	struct dirent **entries;
	struct stat stat_buffer;
	char name[4096];
	int count;

	if (stat(path, &stat_buffer) < 0)
		die(path, strerror(errno));
	if (!S_ISDIR(stat_buffer.st_mode)) {
		load_file(path);
		return;
	}
	/* Sorted, so that a seed means the same everywhere. */
	count = scandir(path, &entries, NULL, by_name);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			load_file(name);
		free(entries[i]);
	}
	free(entries);
}

/* ---- mutation ---- */

static uint64_t random_state;

static uint32_t chance(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return below ? (uint32_t)(random_state >> 20) % below : 0;
}

static void put_number(uint8_t *at, size_t room)
{
	static const uint64_t values[] = {0,          1,           0x7f,       0x80,
	                                  0xff,       0xffff,      0x7fffffff, 0x80000000,
	                                  0xffffffff, 0x100000000, 4096,       UINT64_MAX};
	uint64_t value = values[chance(sizeof(values) / sizeof(values[0]))] + chance(3) - 1;
	size_t size = (size_t)1 << chance(4);

	memcpy(at, &value, size < room ? size : room);
}

static void mutate_insert(size_t max)
{
	size_t at = chance((uint32_t)current_size + 1), size = 1 + chance(64);

	if (size > max - current_size)
		return;
	memmove(current + at + size, current + at, current_size - at);
	for (size_t i = 0; i < size; i++)
		current[at + i] = (uint8_t)chance(256);
	current_size += size;
}

static void mutate_splice(size_t max)
{
	const struct input *other = &corpus[chance((uint32_t)corpus_count)];
	size_t at = chance((uint32_t)current_size + 1);
	size_t from = chance((uint32_t)other->size + 1), size = other->size - from;

	if (size > max - at)
		size = max - at;
	memcpy(current + at, other->data + from, size);
	current_size = at + size;
}

static void mutate(size_t max)
{
	size_t at = chance((uint32_t)current_size), size;

	if (current_size == 0 || chance(8) == 0) {
		mutate_insert(max);
		return;
	}
	switch (chance(6)) {
	case 0:
		current[at] ^= (uint8_t)(1u << chance(8));
		break;
	case 1:
		current[at] = (uint8_t)chance(256);
		break;
	case 2:
		put_number(current + at, current_size - at);
		break;
	case 3: /* remove */
		size = 1 + chance((uint32_t)(current_size - at));
		memmove(current + at, current + at + size, current_size - at - size);
		current_size -= size;
		break;
	case 4: /* repeat a piece elsewhere */
		size = 1 + chance((uint32_t)(current_size - at));
		memmove(current + chance((uint32_t)(current_size - size + 1)), current + at, size);
		break;
	default:
		if (corpus_count)
			mutate_splice(max);
	}
}

static void make_input(size_t max)
{
	current_size = 0;
	if (corpus_count && chance(50)) {
		const struct input *base = &corpus[chance((uint32_t)corpus_count)];

		current_size = base->size < max ? base->size : max;
		memcpy(current, base->data, current_size);
	}
	for (uint32_t rounds = 1 + chance(ROUNDS_MAX); rounds; rounds--)
		mutate(max);
}

/* ---- main ---- */

static double now(void)
{
	struct timespec time_spec;

	clock_gettime(CLOCK_MONOTONIC, &time_spec);
	return (double)time_spec.tv_sec + (double)time_spec.tv_nsec / 1e9;
}

struct settings {
	double seconds;
	uint64_t runs, seed;
	size_t max_size;
};

static void parse(int argc, char **argv, struct settings *settings)
{
	static const struct option options[] = {{"seconds", required_argument, NULL, 't'},
	                                        {"runs", required_argument, NULL, 'r'},
	                                        {"seed", required_argument, NULL, 's'},
	                                        {"max-size", required_argument, NULL, 'm'},
	                                        {"help", no_argument, NULL, 'h'},
	                                        {0}};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 't')
			settings->seconds = strtod(optarg, NULL);
		else if (option == 'r')
			settings->runs = strtoull(optarg, NULL, 0);
		else if (option == 's')
			settings->seed = strtoull(optarg, NULL, 0);
		else if (option == 'm')
			settings->max_size = strtoull(optarg, NULL, 0);
		else {
			printf("usage: %s [--seconds N] [--runs N] [--seed N] [--max-size N] "
			       "[FILE|FOLDER]...\n",
			       argv[0]);
			exit(option == 'h' ? 0 : 2);
		}
	}
	if (settings->max_size == 0 || settings->max_size > INPUT_MAX)
		settings->max_size = INPUT_MAX;
}

static void run_current(void)
{
	/* A copy of its very size, so that reading beyond the end is seen. */
	uint8_t *exact = malloc(current_size ? current_size : 1);

	if (!exact)
		die("input", "out of memory");
	memcpy(exact, current, current_size);
	LLVMFuzzerTestOneInput(exact, current_size);
	free(exact);
}

int main(int argc, char **argv)
{
	struct settings settings = {.seconds = 2, .runs = UINT64_MAX, .max_size = 4096};
	uint64_t runs = 0;
	double end;

	settings.seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
	parse(argc, argv, &settings);
	random_state = settings.seed ? settings.seed : 1;
	catch_crashes();
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = optind; i < argc; i++)
		load(argv[i]);
	printf("%zu inputs, then mutations for %g s with --seed %llu\n", corpus_count,
	       settings.seconds, (unsigned long long)settings.seed);
	fflush(stdout);
	for (size_t i = 0; i < corpus_count; i++) {
		current_size = corpus[i].size;
		memcpy(current, corpus[i].data, current_size);
		run_current();
	}
	for (end = now() + settings.seconds; runs < settings.runs && now() < end; runs++) {
		make_input(settings.max_size);
		run_current();
	}
	printf("%llu mutations\n", (unsigned long long)runs);
	for (size_t i = 0; i < corpus_count; i++)
		free(corpus[i].data);
	return 0;
}
