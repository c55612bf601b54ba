/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log: one line a message, written with a single system call so that lines never mix. A line is
 * shorter than PIPE_BUF, so a pipe takes all of it or nothing.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/counter.h"

COUNTER(base_log_lines_lost,
        "lines of the log that could not be written, as when its pipe is full");

#define LOG_LINE_MAX 1024
#define NS_PER_S     1000000000ull

_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "written whole");

const char *const log_level_names[LOG_LEVEL_COUNT] = {"none", "error", "warn", "info", "debug"};

static enum log_level log_level = LOG_LEVEL_WARN;
static int log_fd = STDERR_FILENO;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void log_set_level(enum log_level level)
{
	log_level = level;
}

enum log_level log_get_level(void)
{
	return log_level;
}

int log_set_file(const char *path)
{
	/* The program waits for nobody who reads a pipe. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	if (log_fd != STDERR_FILENO)
		close(log_fd);
	log_fd = fd;
	return 0;
}

bool log_enabled(enum log_level level)
{
	return level <= log_level && level != LOG_LEVEL_NONE;
}

/* What a guest or a peer named may be in the text; a line is one line whatever it says. */
static void make_one_line(char *text, int size)
{
	for (int i = 0; i < size; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
}

void log_write(enum log_level level, const char *format, ...)
{
	char line[LOG_LINE_MAX];
	uint64_t now = now_ns();
	va_list args;
	int size;

	size = snprintf(line, sizeof(line), "%6llu.%06llu %-5s ",
	                (unsigned long long)(now / NS_PER_S),
	                (unsigned long long)(now % NS_PER_S / 1000), log_level_names[level]);
	va_start(args, format);
	size += vsnprintf(line + size, sizeof(line) - (size_t)size, format, args);
	va_end(args);
	if ((size_t)size >= sizeof(line) - 1)
		size = sizeof(line) - 2;
	make_one_line(line, size);
	line[size++] = '\n';
	/* Nowhere else is left to report a failure of the log itself. */
	if (write(log_fd, line, (size_t)size) != size)
		counter_inc(&base_log_lines_lost);
}

bool log_limit_pass(struct log_limit *limit)
{
	uint64_t now = now_ns();

	if (limit->window_start_ns == 0 || now - limit->window_start_ns > 60 * NS_PER_S) {
		if (limit->suppressed > 0)
			log_write(LOG_LEVEL_INFO, "(%u similar lines left out)", limit->suppressed);
		*limit = (struct log_limit){.window_start_ns = now};
	}
	if (limit->count < LOG_GUEST_PER_MINUTE) {
		limit->count++;
		return true;
	}
	limit->suppressed++;
	return false;
}
