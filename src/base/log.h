/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The log: one line a message, with a monotonic time stamp, to stderr or a file.
 *
 * What a guest, a client or a peer can cause is logged with log_guest() only: it is rate limited
 * per call site and never above the level info. A counter goes with it.
 */
#ifndef ERNIC_BASE_LOG_H
#define ERNIC_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_NONE,
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	LOG_LEVEL_COUNT
};

/* Names of the levels, in their order, as the options and the log spell them. */
extern const char *const log_level_names[LOG_LEVEL_COUNT];

/* Sets what is logged from now on: LEVEL and everything below it. The default is warn. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Appends to the file at PATH instead of stderr. Returns 0 or a negative errno, -ENXIO for a pipe
 * that nobody reads. Never waits for a pipe: lines that it does not take are lost, and counted. */
int log_set_file(const char *path);

bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_at(level, ...)                                                                         \
	do {                                                                                       \
		if (log_enabled(level))                                                            \
			log_write(level, __VA_ARGS__);                                             \
	} while (0)

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/* Lines that one call site of log_guest() may write in a minute. */
#define LOG_GUEST_PER_MINUTE 5

struct log_limit {
	uint64_t window_start_ns;
	unsigned count;
	unsigned suppressed;
};

/* Whether the call site may write now; says how many lines were left out when it may again. */
bool log_limit_pass(struct log_limit *limit);

#define log_guest(...)                                                                             \
	do {                                                                                       \
		static struct log_limit limit_;                                                    \
		if (log_enabled(LOG_LEVEL_INFO) && log_limit_pass(&limit_))                        \
			log_write(LOG_LEVEL_INFO, __VA_ARGS__);                                    \
	} while (0)

#endif
