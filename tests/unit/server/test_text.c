/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strict reading of words: what is taken, and above all what is not. */
#include "server/text.h"

#include <limits.h>
#include <string.h>

#include "base/bytes.h"
#include "server/identity.h"
#include "unit.h"

static void numbers_are_digits_and_nothing_else(void **state)
{
	static const char *const bad[] = {"",
	                                  " 1",
	                                  "1 ",
	                                  "+1",
	                                  "-1",
	                                  "0x10",
	                                  "1e3",
	                                  "010",
	                                  "00",
	                                  "1.0",
	                                  "1k",
	                                  "\n1",
	                                  "1\n",
	                                  "18446744073709551616",
	                                  "99999999999999999999999",
	                                  "one",
	                                  "1,000"};
	uint64_t number = 7;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(text_number(bad[i], 10, &number));
	assert_int_equal(number, 7);
	assert_true(text_number("0", 10, &number));
	assert_int_equal(number, 0);
	assert_true(text_number("18446744073709551615", 10, &number));
	assert_true(number == UINT64_MAX);
}

static void modes_are_octal(void **state)
{
	uint64_t number;

	(void)state;
	assert_true(text_number("0660", 8, &number));
	assert_int_equal(number, 0660);
	assert_true(text_number("660", 8, &number));
	assert_int_equal(number, 0660);
	assert_false(text_number("0680", 8, &number));
	assert_false(text_number("rw-", 8, &number));
}

static void addresses_are_six_pairs(void **state)
{
	static const uint8_t expected[6] = {0x02, 0x00, 0xab, 0xCD, 0x0e, 0xff};
	static const char *const bad[] = {"",
	                                  "02:00:ab:cd:0e",
	                                  "02:00:ab:cd:0e:ff:",
	                                  "02:00:ab:cd:0e:ff:00",
	                                  "02-00-ab-cd-0e-ff",
	                                  "2:0:ab:cd:e:ff:000",
	                                  "02:00:ab:cd:0e:fg",
	                                  "0200abcd0eff     "};
	char text[TEXT_MAC_SIZE];
	uint8_t mac[6];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(text_mac(bad[i], mac));
	assert_true(text_mac("02:00:aB:cD:0e:FF", mac));
	assert_memory_equal(mac, expected, 6);
	assert_string_equal(text_mac_format(mac, text), "02:00:ab:cd:0e:ff");
}

static void usable_addresses_are_unicast(void **state)
{
	(void)state;
	assert_true(text_mac_usable((uint8_t[6]){0x02, 0, 0, 0, 0, 1}));
	assert_false(text_mac_usable((uint8_t[6]){0x01, 0, 0x5e, 0, 0, 1}));
	assert_false(text_mac_usable((uint8_t[6]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
	assert_false(text_mac_usable((uint8_t[6]){0}));
}

static void default_addresses_are_stable_and_differ(void **state)
{
	uint8_t one[6], again[6], other[6];
	char serial[32];

	(void)state;
	identity_mac("/run/a.sock", one);
	identity_mac("/run/a.sock", again);
	identity_mac("/run/b.sock", other);
	assert_memory_equal(one, again, 6);
	assert_memory_not_equal(one, other, 6);
	assert_int_equal(one[0] & 3, 2); /* locally administered, unicast */
	identity_serial((uint8_t[6]){2, 0, 0xab, 0xcd, 0xef, 1}, serial, sizeof(serial));
	assert_string_equal(serial, "ERNIC0200ABCDEF01");
}

static void distance_counts_edits(void **state)
{
	char longer[100];

	(void)state;
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(text_distance("", ""), 0);
	assert_int_equal(text_distance("tap", "tap"), 0);
	assert_int_equal(text_distance("tap", ""), 3);
	assert_int_equal(text_distance("socket", "sockt"), 1);
	assert_int_equal(text_distance("kitten", "sitting"), 3);
	assert_true(text_distance("tap", longer) == UINT_MAX);
}

static const char *candidate_at(size_t index, const void *arg)
{
	static const char *const candidates[] = {"socket", "socket-mode", "stats-file"};

	(void)arg;
	return index < ARRAY_SIZE(candidates) ? candidates[index] : NULL;
}

static void a_typo_finds_its_word_and_nonsense_finds_none(void **state)
{
	(void)state;
	assert_string_equal(text_nearest("sockt", candidate_at, NULL), "socket");
	assert_string_equal(text_nearest("socketmode", candidate_at, NULL), "socket-mode");
	assert_string_equal(text_nearest("stat-file", candidate_at, NULL), "stats-file");
	assert_null(text_nearest("frobnicate", candidate_at, NULL));
	assert_null(text_nearest("", candidate_at, NULL));
}

static void a_line_has_no_control_characters(void **state)
{
	char text[] = "a\nb\tc\x7f"
	              "d\xc3\xa9";

	(void)state;
	text_make_line(text);
	assert_string_equal(text, "a?b?c?d\xc3\xa9");
}

static void the_hash_is_fnv1a(void **state)
{
	(void)state;
	assert_true(text_hash(TEXT_HASH_START, "", 0) == 0xcbf29ce484222325ull);
	assert_true(text_hash(TEXT_HASH_START, "a", 1) == 0xaf63dc4c8601ec8cull);
	assert_true(text_hash(TEXT_HASH_START, "foobar", 6) == 0x85944171f73967e8ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(numbers_are_digits_and_nothing_else),
	        cmocka_unit_test(modes_are_octal),
	        cmocka_unit_test(addresses_are_six_pairs),
	        cmocka_unit_test(usable_addresses_are_unicast),
	        cmocka_unit_test(default_addresses_are_stable_and_differ),
	        cmocka_unit_test(distance_counts_edits),
	        cmocka_unit_test(a_typo_finds_its_word_and_nonsense_finds_none),
	        cmocka_unit_test(a_line_has_no_control_characters),
	        cmocka_unit_test(the_hash_is_fnv1a),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
