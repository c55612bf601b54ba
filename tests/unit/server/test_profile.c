/* SPDX-License-Identifier: GPL-2.0-or-later */
/* NIC profiles: keys, layers, errors with their place, and the round trip through INI. */
#include "server/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "unit.h"

static struct nic_profile profile;
static struct error_text error;

static int apply(const char *text)
{
	error.text[0] = '\0';
	return profile_apply_text(&profile, "x.ini", text, strlen(text), &error);
}

/* TEXT is refused at PLACE ("x.ini:LINE: KEY") with a message that holds WORD, and leaves the
 * profile as it was. */
static void refuses(const char *text, const char *place, const char *word)
{
	struct nic_profile before;

	profile_init(&profile);
	before = profile;
	if (apply(text) >= 0)
		fail_msg("accepted: %s", text);
	if (strncmp(error.text, place, strlen(place)) != 0 || !strstr(error.text, word))
		fail_msg("wanted %s ... %s, got: %s", place, word, error.text);
	assert_null(strchr(error.text, '\n'));
	assert_memory_equal(&before, &profile, sizeof(profile));
}

static void accepts(const char *text)
{
	profile_init(&profile);
	if (apply(text))
		fail_msg("%s", error.text);
}

/* The numbers of the manual, The ionic Device, NIC Profiles. */
static void compat_is_the_documented_device(void **state)
{
	struct ionic_profile values;

	(void)state;
	profile_init(&profile);
	profile_resolve(&profile, &values);
	assert_int_equal(values.asic_type, IONIC_ASIC_NONE);
	assert_int_equal(values.asic_rev, 0);
	assert_string_equal(values.fw_version, "rocm-ernic-1.0");
	assert_int_equal(values.speed_mbps, 100000);
	assert_int_equal(values.xcvr, IONIC_XCVR_COPPER);
	assert_int_equal(values.mtu_max, 9198);
	assert_int_equal(values.stats_interval_ms, 1000);
	assert_int_equal(values.eth_queues, 4);
	assert_int_equal(values.rdma_eqs, 32);
	assert_int_equal(values.intr_vectors, 32);
	assert_false(values.tx_csum || values.tso || values.sg || values.rx_csum ||
	             values.rx_hash || values.vlan);
	assert_string_equal(profile.chain, "compat");
}

static void built_ins_are_the_documented_shapes(void **state)
{
	static const struct {
		const char *name;
		unsigned eth, eqs, vectors, speed;
		enum ionic_xcvr xcvr;
		bool offloads;
	} shapes[] = {
	        {"compat", 4, 32, 32, 100000, IONIC_XCVR_COPPER, false},
	        {"small-vm", 2, 4, 7, 100000, IONIC_XCVR_COPPER, false},
	        {"generic-100g", 16, 32, 49, 100000, IONIC_XCVR_FIBER, true},
	        {"generic-400g", 64, 32, 97, 400000, IONIC_XCVR_FIBER, true},
	};

	(void)state;
	assert_int_equal(profile_builtin_count, ARRAY_SIZE(shapes));
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++) {
		struct ionic_profile v;

		profile_init(&profile);
		assert_int_equal(profile_apply(&profile, shapes[i].name, &error), 0);
		assert_int_equal(profile_check(&profile, &error), 0);
		profile_resolve(&profile, &v);
		assert_int_equal(v.eth_queues, shapes[i].eth);
		assert_int_equal(v.rdma_eqs, shapes[i].eqs);
		assert_int_equal(v.intr_vectors, shapes[i].vectors);
		assert_int_equal(v.speed_mbps, shapes[i].speed);
		assert_int_equal(v.xcvr, shapes[i].xcvr);
		assert_true(v.tx_csum == shapes[i].offloads && v.tso == shapes[i].offloads &&
		            v.sg == shapes[i].offloads && v.rx_csum == shapes[i].offloads &&
		            v.rx_hash == shapes[i].offloads && v.vlan == shapes[i].offloads);
	}
}

static void the_file_of_the_manual_loads(void **state)
{
	(void)state;
	accepts("# fast.ini\n[identity]\nfw_version = 1.8.0-E-32\n\n[link]\nspeed_mbps = 400000\n"
	        "xcvr = fiber\n");
	assert_string_equal(profile.values.fw_version, "1.8.0-E-32");
	assert_int_equal(profile.values.speed_mbps, 400000);
	assert_int_equal(profile.values.xcvr, IONIC_XCVR_FIBER);
	assert_int_equal(profile.values.eth_queues, 4);
}

/* Each key at both ends of its range, and one step outside; each word of a choice. */
static void every_key_takes_its_range_and_no_more(void **state)
{
	char text[200], place[80];

	(void)state;
	for (size_t i = 0; i < profile_key_count; i++) {
		const struct profile_key *key = &profile_keys[i];
		const uint32_t good[] = {key->min, key->max}, bad[] = {key->min - 1, key->max + 1};

		snprintf(place, sizeof(place), "x.ini:2: %s.%s: ", key->section, key->name);
		for (const struct profile_choice *c = key->choices; c && c->name; c++) {
			snprintf(text, sizeof(text), "[%s]\n%s=%s\n", key->section, key->name,
			         c->name);
			accepts(text);
		}
		for (unsigned j = 0; j < 2 && key->kind == PROFILE_NUMBER; j++) {
			snprintf(text, sizeof(text), "[%s]\n%s=%u\n", key->section, key->name,
			         good[j]);
			accepts(text);
			snprintf(text, sizeof(text), "[%s]\n%s=%u\n", key->section, key->name,
			         bad[j]);
			refuses(text, place, "not accepted");
		}
		snprintf(text, sizeof(text), "[%s]\n%s=\n", key->section, key->name);
		refuses(text, place, "give");
		if (key->kind == PROFILE_TEXT)
			continue;
		snprintf(text, sizeof(text), "[%s]\n%s=nonsense\n", key->section, key->name);
		refuses(text, place, "'nonsense' is not accepted");
	}
}

static void numbers_of_another_form_are_refused(void **state)
{
	(void)state;
	refuses("[queues]\neth = 0x4\n", "x.ini:2: queues.eth", "1 to 64");
	refuses("[queues]\neth = 4.0\n", "x.ini:2: queues.eth", "1 to 64");
	refuses("[queues]\neth = 04\n", "x.ini:2: queues.eth", "1 to 64");
	refuses("[queues]\neth = +4\n", "x.ini:2: queues.eth", "1 to 64");
	refuses("[queues]\neth = 4294967300\n", "x.ini:2: queues.eth", "1 to 64");
	refuses("[queues]\neth = \"4\"\n", "x.ini:2: queues.eth", "1 to 64");
	refuses("[link]\nspeed_mbps = 12345\n", "x.ini:2: link.speed_mbps", "400000");
	refuses("[offload]\ntso = yes\n", "x.ini:2: offload.tso", "on, off");
	refuses("[queues]\nintr_vectors = 129\n", "x.ini:2: queues.intr_vectors",
	        "auto, or 2 to 128");
}

static void the_firmware_version_is_printable(void **state)
{
	(void)state;
	accepts("[identity]\nfw_version = 0123456789012345678901234567890\n");
	refuses("[identity]\nfw_version = 01234567890123456789012345678901\n",
	        "x.ini:2: identity.fw_version", "1 to 31");
	refuses("[identity]\nfw_version = a\\b\n", "x.ini:2: identity.fw_version", "\\");
	refuses("[identity]\nfw_version = \xc3\xa9\n", "x.ini:2: identity.fw_version", "ASCII");
	refuses("[identity]\nfw_version = a\tb\n", "x.ini:2: identity.fw_version", "ASCII");
	accepts("[identity]\nfw_version =   spaced out  \n");
	assert_string_equal(profile.values.fw_version, "spaced out");
}

/* A parser made to be lenient would read these as something else than they say. */
static void values_are_taken_as_they_are_written(void **state)
{
	(void)state;
	accepts("[identity]\nfw_version = 1.0 ;rc1 #2\n");
	assert_string_equal(profile.values.fw_version, "1.0 ;rc1 #2");
	accepts("[identity]\nfw_version = ;x\n");
	assert_string_equal(profile.values.fw_version, ";x");
	accepts("[identity]\nfw_version = a=b:c [d]\n");
	assert_string_equal(profile.values.fw_version, "a=b:c [d]");
	refuses("[queues]\neth = 4 ; four\n", "x.ini:2: queues.eth", "line of its own");
	refuses("[queues]\neth = 4 # four\n", "x.ini:2: queues.eth", "line of its own");
}

static void indented_lines_are_lines_of_their_own(void **state)
{
	(void)state;
	accepts("[queues]\n  eth = 8\n\trdma_eqs = 8\n");
	assert_int_equal(profile.values.eth_queues, 8);
	assert_int_equal(profile.values.rdma_eqs, 8);
	refuses("[identity]\nfw_version = 1\n  2\n", "x.ini:3: ", "key = value");
}

static void lines_that_are_too_long_are_refused(void **state)
{
	char text[600] = "[queues]\neth = ";

	(void)state;
	memset(text + strlen(text), '0', 300);
	refuses(text, "x.ini:2: ", "no profile needs that many");
	/* A cut would have left a good value. */
	memset(text, 0, sizeof(text));
	strcpy(text, "[queues]\neth = 4");
	memset(text + strlen(text), ' ', 300);
	strcat(text, "9\n");
	refuses(text, "x.ini:2: ", "no profile needs that many");
	/* Comments and spaces at the end may be as long as they like. */
	memset(text, 0, sizeof(text));
	strcpy(text, "[queues]\n#");
	memset(text + strlen(text), 'c', 300);
	strcat(text, "\neth = 8");
	memset(text + strlen(text), ' ', 100);
	accepts(text);
	assert_int_equal(profile.values.eth_queues, 8);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
	static const char nul[] = "[queues]\neth = 4\0 9\n";

	(void)state;
	profile_init(&profile);
	assert_true(profile_apply_text(&profile, "x.ini", nul, sizeof(nul) - 1, &error) < 0);
	assert_non_null(strstr(error.text, "x.ini:2: control character 0x00 in column 8"));
	refuses("[queues]\neth = 4\x1e\n", "x.ini:2: ", "0x1e");
	refuses("[queues]\rfoo\neth = 4\n", "x.ini:1: ", "0x0d");
	accepts("\xef\xbb\xbf[queues]\r\neth = 8\r\n");
	assert_int_equal(profile.values.eth_queues, 8);
	refuses("[queues]\n\xef\xbb\xbf"
	        "eth = 8\n",
	        "x.ini:2: ", "unknown key");
}

static void unknown_names_are_refused_with_what_was_meant(void **state)
{
	(void)state;
	refuses("[queue]\neth = 4\n", "x.ini:1: [queue]", "[queues]");
	refuses("[nonsense]\n", "x.ini:1: [nonsense]", "unknown section");
	refuses("\xef\xbb\xbf[nonsense]\n", "x.ini:1: [nonsense]", "unknown section");
	refuses("[]\n", "x.ini:1: []", "unknown section");
	refuses("[queues]\neths = 4\n", "x.ini:2: queues.eths", "queues.eth?");
	refuses("[link]\neth = 4\n", "x.ini:2: link.eth", "queues.eth?");
	refuses("[Queues]\n", "x.ini:1: [Queues]", "[queues]");
	refuses("[queues]\nEth = 4\n", "x.ini:2: queues.Eth", "queues.eth?");
	refuses("eth = 4\n", "x.ini:1: eth", "before any [section]");
	refuses("[queues]\n= 4\n", "x.ini:2: queues.", "unknown key");
	refuses("[queues\neth = 4\n", "x.ini:1: '[queues'", "]");
	refuses("[queues] eth = 9\n", "x.ini:1: ", "nothing may follow");
	refuses("[queues]\neth\n", "x.ini:2: ", "key = value");
}

static void a_key_may_stand_once_in_a_layer(void **state)
{
	(void)state;
	refuses("[queues]\neth = 4\neth = 4\n", "x.ini:3: queues.eth", "second time");
	refuses("[queues]\neth = 4\n[link]\n[queues]\neth = 5\n", "x.ini:5: queues.eth",
	        "second time");
	accepts("[queues]\neth = 8\n[link]\n[queues]\nrdma_eqs = 8\n");
}

/* The first line is good and must not stick. */
static void a_layer_that_fails_changes_nothing(void **state)
{
	(void)state;
	refuses("[queues]\neth = 8\n[link]\nmtu_max = 1\n", "x.ini:4: link.mtu_max", "1500");
}

static void later_layers_win_key_by_key(void **state)
{
	(void)state;
	profile_init(&profile);
	assert_int_equal(profile_apply(&profile, "generic-100g", &error), 0);
	assert_int_equal(apply("[queues]\neth = 2\n"), 0);
	assert_int_equal(apply("[link]\nxcvr = none\n"), 0);
	assert_int_equal(profile.values.eth_queues, 2);
	assert_int_equal(profile.values.rdma_eqs, 32);
	assert_int_equal(profile.values.xcvr, IONIC_XCVR_NONE);
	assert_true(profile.values.tso);
	assert_int_equal(profile_apply(&profile, "compat", &error), 0);
	assert_int_equal(profile.values.eth_queues, 4);
	assert_false(profile.values.tso);
	assert_string_equal(profile.chain, "compat + generic-100g + compat");
}

static void auto_follows_the_queues_of_later_layers(void **state)
{
	struct ionic_profile values;

	(void)state;
	profile_init(&profile);
	assert_int_equal(profile_apply(&profile, "generic-400g", &error), 0);
	assert_int_equal(apply("[queues]\neth = 1\nrdma_eqs = 4\n"), 0);
	profile_resolve(&profile, &values);
	assert_int_equal(values.intr_vectors, 6);
	assert_int_equal(profile_full_vectors(&values), 6);
}

static void names_choose_between_files_and_built_ins(void **state)
{
	char folder[] = "/tmp/ernic-test-profile-XXXXXX", path[64];
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/compat", folder);
	file = fopen(path, "w");
	fputs("[queues]\neth = 9\n", file);
	fclose(file);
	profile_init(&profile);
	assert_int_equal(profile_apply(&profile, path, &error), 0);
	assert_int_equal(profile.values.eth_queues, 9);
	assert_non_null(strstr(profile.chain, path));
	assert_int_equal(profile_apply(&profile, folder, &error), -EISDIR);
	unlink(path);
	rmdir(folder);
	assert_int_equal(profile_apply(&profile, path, &error), -ENOENT);
	assert_non_null(strstr(error.text, path));
	assert_int_equal(profile_apply(&profile, "nonsense", &error), -ENOENT);
	assert_non_null(strstr(error.text, "generic-400g"));
	assert_int_equal(profile_apply(&profile, "small-wm", &error), -ENOENT);
	assert_non_null(strstr(error.text, "did you mean small-vm?"));
	assert_int_equal(profile_apply(&profile, "nonsense.ini", &error), -ENOENT);
	assert_non_null(strstr(error.text, "cannot be read"));
	assert_int_equal(profile_apply(&profile, "/dev/zero", &error), -EFBIG);
	assert_int_equal(profile.values.eth_queues, 9);
}

static void segmentation_needs_checksums_and_pieces(void **state)
{
	(void)state;
	accepts("[offload]\ntso = on\ntx_csum = on\n");
	assert_int_equal(profile_check(&profile, &error), -EINVAL);
	assert_non_null(strstr(error.text, "offload.tso"));
	assert_non_null(strstr(error.text, "offload.sg"));
	accepts("[offload]\ntso = on\nsg = on\n");
	assert_int_equal(profile_check(&profile, &error), -EINVAL);
	assert_non_null(strstr(error.text, "offload.tx_csum"));
	assert_int_equal(apply("[offload]\ntx_csum = on\n"), 0);
	assert_int_equal(profile_check(&profile, &error), 0);
}

static void too_many_names_do_not_fit_the_chain(void **state)
{
	struct nic_profile before;
	char name[300];
	int failed = 0;

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	profile_init(&profile);
	for (unsigned i = 0; i < 10 && !failed; i++) {
		before = profile;
		failed = profile_note_layer(&profile, name, &error);
	}
	assert_int_equal(failed, -E2BIG);
	assert_string_equal(before.chain, profile.chain);
	while (profile_note_layer(&profile, "x", &error) == 0)
		;
	before = profile;
	assert_int_equal(profile_apply(&profile, "small-vm", &error), -E2BIG);
	assert_memory_equal(&before, &profile, sizeof(profile));
}

/* Prints and loads again over compat. */
static void check_round_trip(void)
{
	struct nic_profile again;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	profile_print(&profile, file);
	fclose(file);
	profile_init(&again);
	if (profile_apply_text(&again, "again.ini", text, size, &error))
		fail_msg("%s in\n%s", error.text, text);
	assert_memory_equal(&again.values, &profile.values, sizeof(again.values));
	assert_true(profile_hash(&again) == profile_hash(&profile));
	free(text);
}

static void what_is_printed_loads_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < profile_builtin_count; i++) {
		profile_init(&profile);
		assert_int_equal(profile_apply(&profile, profile_builtins[i].name, &error), 0);
		check_round_trip();
	}
	accepts("[identity]\nfw_version = ; a #b = [c] : d\nasic_type = salina\nasic_rev = 255\n"
	        "[link]\nxcvr = none\n[queues]\nintr_vectors = 2\n");
	assert_int_equal(profile_note_layer(&profile, "evil\n[queues]\neth = 9", &error), 0);
	check_round_trip();
}

static void the_hash_tells_devices_apart_and_nothing_else(void **state)
{
	uint64_t compat, named;

	(void)state;
	profile_init(&profile);
	compat = profile_hash(&profile);
	assert_int_equal(profile_note_layer(&profile, "other.ini", &error), 0);
	assert_true(profile_hash(&profile) == compat);
	assert_int_equal(apply("[identity]\nfw_version = 2\n"), 0);
	named = profile_hash(&profile);
	assert_true(named != compat);
	accepts("[queues]\nintr_vectors = auto\n");
	compat = profile_hash(&profile);
	accepts("[queues]\nintr_vectors = 37\n");
	assert_true(profile_hash(&profile) == compat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(compat_is_the_documented_device),
	        cmocka_unit_test(built_ins_are_the_documented_shapes),
	        cmocka_unit_test(the_file_of_the_manual_loads),
	        cmocka_unit_test(every_key_takes_its_range_and_no_more),
	        cmocka_unit_test(numbers_of_another_form_are_refused),
	        cmocka_unit_test(the_firmware_version_is_printable),
	        cmocka_unit_test(values_are_taken_as_they_are_written),
	        cmocka_unit_test(indented_lines_are_lines_of_their_own),
	        cmocka_unit_test(lines_that_are_too_long_are_refused),
	        cmocka_unit_test(bytes_that_are_no_text_are_refused),
	        cmocka_unit_test(unknown_names_are_refused_with_what_was_meant),
	        cmocka_unit_test(a_key_may_stand_once_in_a_layer),
	        cmocka_unit_test(a_layer_that_fails_changes_nothing),
	        cmocka_unit_test(later_layers_win_key_by_key),
	        cmocka_unit_test(auto_follows_the_queues_of_later_layers),
	        cmocka_unit_test(names_choose_between_files_and_built_ins),
	        cmocka_unit_test(segmentation_needs_checksums_and_pieces),
	        cmocka_unit_test(too_many_names_do_not_fit_the_chain),
	        cmocka_unit_test(what_is_printed_loads_back),
	        cmocka_unit_test(the_hash_tells_devices_apart_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
