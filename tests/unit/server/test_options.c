/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line: every way to write an option, and every way to get one wrong. */
#include "server/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "server/help.h"
#include "unit.h"

#define WORDS_MAX 40

static struct options options;
static struct error_text error;

/* Parses words that are separated by single spaces; '_' in a word stands for the empty word. */
static int parse(const char *line)
{
	static char copy[1024];
	char *argv[WORDS_MAX + 1] = {(char *)(uintptr_t) "rocm-ernic"}, *rest = copy, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	error.text[0] = '\0';
	while ((word = strsep(&rest, " ")) != NULL && argc < WORDS_MAX)
		if (*line)
			argv[argc++] = strcmp(word, "_") == 0 ? word + 1 : word;
	return options_parse(argc, argv, &options, &error);
}

/* The line is refused, with one line that holds all of the words. */
static void refuses(const char *line, const char *first, const char *second)
{
	if (parse(line) >= 0)
		fail_msg("'%s' was accepted", line);
	if (!strstr(error.text, first) || !strstr(error.text, second))
		fail_msg("'%s' says: %s", line, error.text);
	assert_null(strchr(error.text, '\n'));
}

static void defaults_are_those_of_the_table(void **state)
{
	(void)state;
	assert_int_equal(parse("--socket /s"), 0);
	assert_string_equal(options.socket_path, "/s");
	assert_int_equal(options.socket_mode, 0600);
	assert_string_equal(options.backend, "loopback");
	assert_int_equal(options.log_level, LOG_LEVEL_WARN);
	assert_int_equal(options.busy_poll_us, 0);
	assert_true(options.fd == OPTION_NOT_GIVEN);
	assert_true(options.eth_queues == OPTION_NOT_GIVEN);
	assert_true(options.stats_interval_ms == OPTION_NOT_GIVEN);
	assert_false(options.mac.given);
	assert_null(options.tap);
	assert_int_equal(options.nic_profiles.count, 0);
}

static void options_are_written_in_every_usual_way(void **state)
{
	static const char *const lines[] = {"--socket /s --tap t0 --log-level info",
	                                    "--socket=/s --tap=t0 --log-level=info",
	                                    "-s /s -T t0 -L info",
	                                    "-s/s -Tt0 -Linfo",
	                                    "-vs /s -Tt0",
	                                    "--socket-path=/s -T t0 --verbose",
	                                    "--socket-path /s -T t0 -v"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lines); i++) {
		if (parse(lines[i]))
			fail_msg("'%s' says: %s", lines[i], error.text);
		assert_string_equal(options.socket_path, "/s");
		assert_string_equal(options.tap, "t0");
		assert_int_equal(options.log_level, LOG_LEVEL_INFO);
	}
}

static void all_values_arrive(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};

	(void)state;
	assert_int_equal(parse("--fd 3 -b none -m 02:00:00:00:00:09 --nic-profile a.ini "
	                       "--nic-profile small-vm --eth-queues 64 --stats-interval-ms 10 "
	                       "--busy-poll-us 1000000 -S stats --control c -vv -l log "
	                       "--print-profile --limits"),
	                 0);
	assert_int_equal(options.fd, 3);
	assert_string_equal(options.backend, "none");
	assert_true(options.mac.given);
	assert_memory_equal(options.mac.address, mac, 6);
	assert_int_equal(options.nic_profiles.count, 2);
	assert_string_equal(options.nic_profiles.item[1], "small-vm");
	assert_int_equal(options.eth_queues, 64);
	assert_int_equal(options.stats_interval_ms, 10);
	assert_int_equal(options.busy_poll_us, 1000000);
	assert_string_equal(options.stats_file, "stats");
	assert_string_equal(options.control_path, "c");
	assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
	assert_string_equal(options.log_file, "log");
	assert_true(options.print_profile && options.print_limits);
}

static void verbose_raises_the_level_and_never_lowers_it(void **state)
{
	(void)state;
	assert_int_equal(parse("-s x -v -L error"), 0);
	assert_int_equal(options.log_level, LOG_LEVEL_INFO);
	assert_int_equal(parse("-s x -L debug -v"), 0);
	assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(parse("-s x -vvvv"), 0);
	assert_int_equal(options.log_level, LOG_LEVEL_DEBUG);
}

static void unknown_words_are_refused(void **state)
{
	(void)state;
	refuses("-s x --sockt y", "--sockt", "--socket");
	refuses("-s x --sock y", "--sock", "unknown"); /* no abbreviations */
	refuses("-s x --frobnicate", "--frobnicate", "--help");
	refuses("-s x -z", "-z", "unknown");
	refuses("-s x -vz", "-z", "unknown");
	refuses("-s x stray", "stray", "remove it");
	refuses("-s x -- y", "--", "remove it");
	refuses("-s x -", "'-'", "remove it");
	refuses("-s x _", "''", "remove it");
	refuses("--=x", "--", "unknown");
}

static void values_that_are_missing_or_too_much_are_refused(void **state)
{
	(void)state;
	refuses("--socket", "--socket", "missing");
	refuses("-s", "--socket", "missing");
	refuses("--socket --tap t", "--socket", "missing");
	refuses("--socket=", "--socket", "empty");
	refuses("--socket _", "--socket", "empty");
	refuses("-s x --nic-profile=", "--nic-profile", "empty");
	refuses("-s x --verbose=2", "--verbose=2", "takes no value");
	refuses("-s x --help=", "--help", "takes no value");
}

static void values_out_of_range_are_refused_with_the_range(void **state)
{
	(void)state;
	refuses("-s x --eth-queues 0", "--eth-queues 0", "1 to 64");
	refuses("-s x --eth-queues 65", "--eth-queues 65", "1 to 64");
	refuses("-s x --eth-queues four", "--eth-queues four", "1 to 64");
	refuses("-s x --eth-queues 4x", "--eth-queues 4x", "1 to 64");
	refuses("-s x --stats-interval-ms 9", "--stats-interval-ms 9", "10 to 60000");
	refuses("-s x --stats-interval-ms 60001", "--stats-interval-ms", "10 to 60000");
	refuses("-s x --busy-poll-us 1000001", "--busy-poll-us", "0 to 1000000");
	refuses("--fd 2", "--fd 2", "3 to");
	refuses("--fd 99999999999999999999", "--fd", "3 to");
	refuses("-s x --socket-mode 1000", "--socket-mode 1000", "0777");
	refuses("-s x --socket-mode 800", "--socket-mode 800", "octal");
	refuses("-s x --backend tpc", "--backend tpc", "none, loopback");
	refuses("-s x -b loopbak", "--backend loopbak", "loopback?");
	refuses("-s x -b loopbak:md5", "--backend loopbak", "loopback?");
	refuses("-s x -L loud", "--log-level loud", "none, error, warn, info, debug");
	refuses("-s x -m 01:00:5e:00:00:01", "--mac 01:00:5e:00:00:01", "multicast");
	refuses("-s x -m 00:00:00:00:00:00", "--mac", "zero");
	refuses("-s x -m 02:00", "--mac 02:00", "pairs");
	refuses("-s x --tap averyverylongname", "--tap", "at most 15");
}

static void options_given_twice_are_refused(void **state)
{
	(void)state;
	refuses("-s a -s b", "--socket b", "twice");
	refuses("--socket a --socket-path b", "--socket b", "twice");
	refuses("-s a --print-profile --print-profile", "--print-profile", "twice");
	assert_int_equal(parse("-s a -v -v --nic-profile x --nic-profile x"), 0);
	refuses("-s a --nic-profile 1 --nic-profile 2 --nic-profile 3 --nic-profile 4 "
	        "--nic-profile 5 --nic-profile 6 --nic-profile 7 --nic-profile 8 --nic-profile 9 "
	        "--nic-profile 10 --nic-profile 11 --nic-profile 12 --nic-profile 13 "
	        "--nic-profile 14 --nic-profile 15 --nic-profile 16 --nic-profile 17",
	        "--nic-profile 17", "16 times");
}

static void options_that_exclude_each_other_are_refused(void **state)
{
	(void)state;
	refuses("", "--socket", "--fd");
	refuses("-v", "--socket", "--fd");
	refuses("--fd 3 --socket x", "--fd 3", "--socket x");
	refuses("--fd 3 --socket-mode 0600", "--socket-mode", "remove it");
	refuses("-s x --control x", "--control x", "another");
}

static void paths_longer_than_a_socket_address_are_refused(void **state)
{
	char line[300] = "--socket ";

	(void)state;
	memset(line + 9, 'p', 108);
	refuses(line, "--socket ppp", "at most 107");
	line[9 + 107] = '\0';
	assert_int_equal(parse(line), 0);
}

static void what_prints_and_exits_needs_no_socket(void **state)
{
	(void)state;
	assert_int_equal(parse("--print-profile"), 0);
	assert_int_equal(parse("--limits"), 0);
	assert_int_equal(parse("--help --nonsense"), 0);
	assert_true(options.help);
	assert_int_equal(parse("-vh --nonsense"), 0);
	assert_true(options.help);
	assert_int_equal(parse("--version"), 0);
	assert_true(options.version);
	refuses("--nonsense --help", "--nonsense", "unknown");
}

static void capabilities_are_told_whatever_else_is_said(void **state)
{
	(void)state;
	assert_int_equal(parse("--nonsense --print-capabilities stray"), 0);
	assert_true(options.print_capabilities);
}

static void hostile_words_stay_one_line(void **state)
{
	char *argv[] = {(char *)(uintptr_t) "rocm-ernic", (char *)(uintptr_t) "a\nb\x1b[0m"};

	(void)state;
	assert_true(options_parse(2, argv, &options, &error) < 0);
	assert_null(strpbrk(error.text, "\n\x1b"));
}

/* What the table itself must keep for parser, help, manual and completion to work. */
static void the_table_is_sound(void **state)
{
	char summary[HELP_SUMMARY_MAX];

	(void)state;
	for (size_t i = 0; i < option_spec_count; i++) {
		const struct option_spec *spec = &option_specs[i];

		assert_non_null(spec->group);
		assert_non_null(spec->help);
		assert_int_equal(spec->placeholder != NULL, option_takes_value(spec));
		assert_true(strlen(help_summary(spec, summary)) > 0);
		assert_null(strchr(summary, '\n'));
		for (size_t j = 0; j < i; j++) {
			assert_string_not_equal(spec->name, option_specs[j].name);
			assert_true(!spec->letter || spec->letter != option_specs[j].letter);
		}
	}
}

static void help_shows_every_option_in_eighty_columns(void **state)
{
	char *text = NULL, *rest, *line, name[64];
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	help_print(file);
	fclose(file);
	for (size_t i = 0; i < option_spec_count; i++) {
		snprintf(name, sizeof(name), "--%s", option_specs[i].name);
		if (!strstr(text, name))
			fail_msg("%s is missing", name);
	}
	for (rest = text; (line = strsep(&rest, "\n")) != NULL;)
		if (strlen(line) > 80)
			fail_msg("too long: %s", line);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(defaults_are_those_of_the_table),
	        cmocka_unit_test(options_are_written_in_every_usual_way),
	        cmocka_unit_test(all_values_arrive),
	        cmocka_unit_test(verbose_raises_the_level_and_never_lowers_it),
	        cmocka_unit_test(unknown_words_are_refused),
	        cmocka_unit_test(values_that_are_missing_or_too_much_are_refused),
	        cmocka_unit_test(values_out_of_range_are_refused_with_the_range),
	        cmocka_unit_test(options_given_twice_are_refused),
	        cmocka_unit_test(options_that_exclude_each_other_are_refused),
	        cmocka_unit_test(paths_longer_than_a_socket_address_are_refused),
	        cmocka_unit_test(what_prints_and_exits_needs_no_socket),
	        cmocka_unit_test(capabilities_are_told_whatever_else_is_said),
	        cmocka_unit_test(hostile_words_stay_one_line),
	        cmocka_unit_test(the_table_is_sound),
	        cmocka_unit_test(help_shows_every_option_in_eighty_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
