/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The log: levels, one line a message whatever is in it, and the limit on a guest's lines. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counter.h"
#include "unit.h"

static char path[] = "/tmp/ernic-test-log-XXXXXX";

/* What the log has written since the last call, in one buffer. */
static const char *logged(void)
{
	static char text[65536];
	FILE *file = fopen(path, "r");
	size_t size = fread(text, 1, sizeof(text) - 1, file);

	fclose(file);
	text[size] = '\0';
	assert_int_equal(truncate(path, 0), 0);
	return text;
}

static unsigned count_lines(const char *text)
{
	unsigned lines = 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

static int open_log(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return log_set_file(path);
}

static int remove_log(void **state)
{
	(void)state;
	return unlink(path);
}

static void a_level_lets_through_what_is_above_it(void **state)
{
	(void)state;
	for (unsigned level = LOG_LEVEL_NONE; level < LOG_LEVEL_COUNT; level++) {
		log_set_level((enum log_level)level);
		assert_int_equal(log_get_level(), level);
		log_error("e");
		log_warn("w");
		log_info("i");
		log_debug("d");
		assert_int_equal(count_lines(logged()), level);
	}
}

static void a_line_has_time_level_and_text(void **state)
{
	const char *text;
	char *end;

	(void)state;
	log_set_level(LOG_LEVEL_WARN);
	log_warn("text %d", 7);
	text = logged();
	assert_true(strtod(text, &end) > 0);
	assert_string_equal(end, " warn  text 7\n");
}

static void control_characters_do_not_break_a_line(void **state)
{
	const char *text;

	(void)state;
	log_set_level(LOG_LEVEL_WARN);
	log_warn("name %s end", "a\nb\x1b[31m\x7f");
	text = logged();
	assert_int_equal(count_lines(text), 1);
	assert_non_null(strstr(text, "name a?b?[31m? end\n"));
}

static void a_long_line_is_cut(void **state)
{
	char word[4000];
	const char *text;

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	log_set_level(LOG_LEVEL_WARN);
	log_warn("%s", word);
	text = logged();
	assert_int_equal(count_lines(text), 1);
	assert_true(strlen(text) < sizeof(word));
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void a_guest_cannot_flood_the_log(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_INFO);
	for (unsigned i = 0; i < 1000; i++)
		log_guest("guest says %u", i);
	assert_int_equal(count_lines(logged()), LOG_GUEST_PER_MINUTE);
	log_set_level(LOG_LEVEL_WARN);
	log_guest("a guest is never above info");
	assert_int_equal(count_lines(logged()), 0);
}

static void the_limit_tells_what_it_left_out(void **state)
{
	struct log_limit limit = {0};

	(void)state;
	log_set_level(LOG_LEVEL_INFO);
	for (unsigned i = 0; i < LOG_GUEST_PER_MINUTE; i++)
		assert_true(log_limit_pass(&limit));
	assert_false(log_limit_pass(&limit));
	assert_false(log_limit_pass(&limit));
	limit.window_start_ns = 1; /* a minute goes by */
	assert_true(log_limit_pass(&limit));
	assert_non_null(strstr(logged(), "2 similar lines left out"));
}

static void a_file_that_cannot_be_opened_keeps_the_old_one(void **state)
{
	(void)state;
	log_set_level(LOG_LEVEL_WARN);
	assert_int_equal(log_set_file("/nonexistent/folder/log"), -ENOENT);
	log_warn("still here");
	assert_int_equal(count_lines(logged()), 1);
}

/* Nobody waits for a pipe: not for its reader, and not for its room. */
static void a_pipe_does_not_stop_the_program(void **state)
{
	const struct counter *lost = counter_find("base_log_lines_lost");
	char fifo[64], bytes[8192];
	uint64_t before = counter_get(lost), written = 0, lines = 0;

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	log_set_level(LOG_LEVEL_WARN);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(log_set_file(fifo), -ENXIO);

	int reader = open(fifo, O_RDONLY | O_NONBLOCK);

	assert_true(reader >= 0);
	assert_int_equal(log_set_file(fifo), 0);
	while (counter_get(lost) < before + 10) {
		log_warn("line %d", 1);
		written++;
	}
	for (ssize_t size; (size = read(reader, bytes, sizeof(bytes))) > 0;)
		for (ssize_t i = 0; i < size; i++)
			lines += bytes[i] == '\n';
	assert_int_equal(lines, written - 10);
	log_warn("there is room");
	assert_true(read(reader, bytes, sizeof(bytes)) > 0);
	assert_int_equal(log_set_file(path), 0);
	close(reader);
	unlink(fifo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_level_lets_through_what_is_above_it),
	        cmocka_unit_test(a_line_has_time_level_and_text),
	        cmocka_unit_test(control_characters_do_not_break_a_line),
	        cmocka_unit_test(a_long_line_is_cut),
	        cmocka_unit_test(a_guest_cannot_flood_the_log),
	        cmocka_unit_test(the_limit_tells_what_it_left_out),
	        cmocka_unit_test(a_file_that_cannot_be_opened_keeps_the_old_one),
	        cmocka_unit_test(a_pipe_does_not_stop_the_program),
	};

	return cmocka_run_group_tests(tests, open_log, remove_log);
}
