/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stats file: the report as text, replaced as a whole on an interval.
 *
 * The text is made in one buffer that was allocated at the start, written to a temporary file
 * beside the target and renamed over it: a reader sees the old file or the new one. What goes wrong
 * while the server runs (a full disk) is counted and logged rarely; the old file stays.
 *
 * Not done: fsync. The file tells about a living process; after a crash of the host it may be gone.
 */
#include "server/stats_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/log.h"
#include "server/report.h"
#include "server/server.h"

COUNTER(server_stats_writes, "times the stats file was replaced");
COUNTER(server_stats_write_errors, "times the stats file could not be replaced");
COUNTER(server_stats_too_large, "times the report did not fit the stats buffer");

/* The report has some 400 lines of 40 bytes; counters to come have room. */
#define STATS_TEXT_MAX 65536
#define NS_PER_MS      1000000ull

struct stats_file {
	struct report_sink sink;
	const struct server *server;
	struct loop_timer timer;
	bool started;
	struct log_limit complaints;
	char path[PATH_MAX], temporary[PATH_MAX];
	size_t size;
	bool overflow;
	char text[STATS_TEXT_MAX];
};

/* ---- text ---- */

__attribute__((format(printf, 2, 3))) static void append(struct stats_file *file,
                                                         const char *format, ...)
{
	size_t left = sizeof(file->text) - file->size;
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(file->text + file->size, left, format, args);
	va_end(args);
	if (size < 0 || (size_t)size >= left)
		file->overflow = true;
	else
		file->size += (size_t)size;
}

static void put_section(struct report_sink *sink, const char *name)
{
	struct stats_file *file = container_of(sink, struct stats_file, sink);

	append(file, "%s[%s]\n", file->size ? "\n" : "", name);
}

static void put_text(struct report_sink *sink, const char *name, const char *value)
{
	append(container_of(sink, struct stats_file, sink), "%s : %s\n", name, value);
}

static void put_number(struct report_sink *sink, const char *name, uint64_t value)
{
	append(container_of(sink, struct stats_file, sink), "%s : %" PRIu64 "\n", name, value);
}

/* ---- files ---- */

/* Opens a fresh temporary file. One that a killed server left behind is removed. */
static int open_temporary(const struct stats_file *file)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = open(file->temporary, flags, 0644);

	if (fd < 0 && errno == EEXIST) {
		unlink(file->temporary);
		fd = open(file->temporary, flags, 0644);
	}
	return fd < 0 ? -errno : fd;
}

static int write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t done = write(fd, text, size);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			text += done;
			size -= (size_t)done;
		}
	}
	return 0;
}

static int replace_file(const struct stats_file *file)
{
	int fd = open_temporary(file), error;

	if (fd < 0)
		return fd;
	error = write_all(fd, file->text, file->size);
	if (close(fd) < 0 && !error)
		error = -errno;
	if (!error && rename(file->temporary, file->path) < 0)
		error = -errno;
	if (error)
		unlink(file->temporary);
	return error;
}

static void write_report(struct stats_file *file)
{
	int error;

	file->size = 0;
	file->overflow = false;
	report_all(file->server, &file->sink);
	if (file->overflow)
		counter_inc(&server_stats_too_large);
	error = replace_file(file);
	if (!error) {
		counter_inc(&server_stats_writes);
		return;
	}
	counter_inc(&server_stats_write_errors);
	if (log_enabled(LOG_LEVEL_WARN) && log_limit_pass(&file->complaints))
		log_write(LOG_LEVEL_WARN, "stats file %s could not be replaced: %s", file->path,
		          strerror(-error));
}

static void interval_over(struct loop_timer *timer)
{
	struct stats_file *file = container_of(timer, struct stats_file, timer);
	struct loop *loop = file->server->loop;

	loop_arm(loop, timer, loop_now(loop) + file->server->values.stats_interval_ms * NS_PER_MS);
	write_report(file);
}

/* ---- life ---- */

static int check_path(const struct stats_file *file, struct error_text *error)
{
	struct stat info;
	int fd;

	if (lstat(file->path, &info) == 0 && !S_ISREG(info.st_mode))
		return error_set(error, -EEXIST,
		                 "--stats-file %.300s: exists and is not a regular file; give "
		                 "another path",
		                 file->path);
	fd = open_temporary(file);
	if (fd < 0)
		return error_set(
		        error, fd,
		        "--stats-file %.300s: its folder cannot be written to (%s); give a "
		        "path in a folder that can",
		        file->path, strerror(-fd));
	close(fd);
	unlink(file->temporary);
	return 0;
}

int stats_file_create(const struct server *server, const char *path, struct stats_file **out,
                      struct error_text *error)
{
	struct stats_file *file = calloc(1, sizeof(*file));
	int failed;

	if (!file)
		return error_set(error, -ENOMEM, "--stats-file %.300s: out of memory", path);
	snprintf(file->path, sizeof(file->path), "%s", path);
	snprintf(file->temporary, sizeof(file->temporary), "%s.tmp", path);
	failed = check_path(file, error);
	if (failed) {
		stats_file_destroy(file);
		return failed;
	}
	file->server = server;
	file->sink = (struct report_sink){put_section, put_text, put_number};
	file->timer.expired = interval_over;
	*out = file;
	return 0;
}

void stats_file_start(struct stats_file *file)
{
	file->started = true;
	interval_over(&file->timer);
}

void stats_file_destroy(struct stats_file *file)
{
	if (!file)
		return;
	if (file->started) {
		loop_disarm(file->server->loop, &file->timer);
		write_report(file);
	}
	free(file);
}
