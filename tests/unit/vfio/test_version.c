/* SPDX-License-Identifier: GPL-2.0-or-later */
/* VERSION: what is agreed, and every way to get it wrong (spec vfio-user 3 and 12, rows 6 and 7).
 */
#include "client.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "unit.h"

/* Sends VERSION with SIZE bytes of JSON, and takes the answer. */
static int negotiate(struct rig *rig, uint16_t major, const char *json, size_t size, void *answer,
                     size_t max)
{
	static uint8_t body[4 + 2 * VFIO_USER_MAX_JSON];
	struct vfio_user_version version = {.major = major, .minor = 1};

	memcpy(body, &version, sizeof(version));
	memcpy(body + sizeof(version), json, size);
	return rig_call(rig, VFIO_USER_VERSION, body, sizeof(version) + size, answer, max);
}

static void expect_capability(struct json_object *capabilities, const char *name, int64_t value)
{
	struct json_object *found;

	assert_true(json_object_object_get_ex(capabilities, name, &found));
	assert_true(json_object_is_type(found, json_type_int));
	assert_int_equal(json_object_get_int64(found), value);
}

static void edit_write_multiple(struct vfio_server_config *config)
{
	config->write_multiple = true;
}

/* QEMU refuses a reply of more than the 214 bytes of its request, and more descriptors than 16. */
static void check_answer(struct rig *rig, bool multiple)
{
	struct vfio_user_version version;
	char answer[256] = "";
	int size = negotiate(rig, 0, "{}", 3, answer, sizeof(answer));

	assert_in_range(size, 5, 214 - (int)sizeof(struct vfio_user_header));
	memcpy(&version, answer, sizeof(version));
	assert_int_equal(version.major, 0);
	assert_int_equal(version.minor, 0);
	assert_int_equal(answer[size - 1], '\0');
	assert_int_equal(strlen(answer + 4), size - 5);

	struct json_object *root = json_tokener_parse(answer + 4), *capabilities, *found;

	assert_non_null(root);
	assert_true(json_object_object_get_ex(root, "capabilities", &capabilities));
	expect_capability(capabilities, "max_msg_fds", 16);
	expect_capability(capabilities, "max_data_xfer_size", 1048576);
	expect_capability(capabilities, "max_dma_maps", 65535);
	expect_capability(capabilities, "pgsizes", 4096);
	assert_int_equal(json_object_object_get_ex(capabilities, "write_multiple", &found),
	                 multiple);
	json_object_put(root);
}

static void answers_what_qemu_takes(void **state)
{
	check_answer(*state, false);
}

static void announces_write_multiple_when_told(void **state)
{
	struct rig *rig = *state;

	rig_pair(rig, edit_write_multiple);
	check_answer(rig, true);
}

static void accepts_every_valid_form(void **state)
{
	static const char *const valid[] = {
	        "{}",
	        "{\"foo\": [1, {\"bar\": null}]}",
	        "{\"capabilities\": {}}",
	        "{\"capabilities\": {\"max_msg_fds\": 0, \"unknown\": \"x\"}}",
	        "{\"capabilities\": {\"max_msg_fds\": 1, \"migration\": {\"pgsize\": 4096}}}",
	        "{\"capabilities\": {\"twin_socket\": {\"supported\": true, \"fd_index\": 0}}}",
	};
	struct rig *rig = *state;
	char answer[256];

	/* SPDK has none at all. */
	assert_true(negotiate(rig, 0, "", 0, answer, sizeof(answer)) > 4);
	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++) {
		rig_pair(rig, NULL);
		assert_true(negotiate(rig, 0, valid[i], strlen(valid[i]) + 1, answer,
		                      sizeof(answer)) > 4);
		assert_true(vfio_server_attached(rig->server));
	}
}

static void expect_refused(struct rig *rig, const char *counter, const char *json, size_t size)
{
	uint64_t before = rig_counter(counter);
	char answer[256];

	rig_pair(rig, NULL);
	assert_int_equal(negotiate(rig, 0, json, size, answer, sizeof(answer)), -EINVAL);
	rig_expect_closed(rig);
	assert_int_equal(rig_counter(counter), before + 1);
}

static void refuses_values_of_wrong_type_or_range(void **state)
{
	static const char *const invalid[] = {
	        "{\"capabilities\": 7}",
	        "{\"capabilities\": []}",
	        "{\"capabilities\": null}",
	        "{\"capabilities\": {\"max_msg_fds\": \"16\"}}",
	        "{\"capabilities\": {\"max_msg_fds\": -1}}",
	        "{\"capabilities\": {\"max_msg_fds\": 1025}}",
	        "{\"capabilities\": {\"max_msg_fds\": 8.0}}",
	        "{\"capabilities\": {\"max_msg_fds\": 99999999999999999999999999}}",
	        "{\"capabilities\": {\"max_msg_fds\": 1, \"max_msg_fds\": -1}}",
	        "{\"capabilities\": {\"max_data_xfer_size\": 0}}",
	        "{\"capabilities\": {\"max_data_xfer_size\": -4096}}",
	        "{\"capabilities\": {\"max_data_xfer_size\": 1e6}}",
	        "{\"capabilities\": {\"max_dma_maps\": 0}}",
	        "{\"capabilities\": {\"pgsizes\": 0}}",
	        "{\"capabilities\": {\"pgsizes\": 4095}}",
	        "{\"capabilities\": {\"migration\": 4096}}",
	        "{\"capabilities\": {\"migration\": {\"pgsize\": \"4096\"}}}",
	        "{\"capabilities\": {\"migration\": {\"pgsize\": 4095}}}",
	        "{\"capabilities\": {\"migration\": {\"max_bitmap_size\": 0}}}",
	        "{\"capabilities\": {\"write_multiple\": 1}}",
	        "{\"capabilities\": {\"twin_socket\": true}}",
	        "{\"capabilities\": {\"twin_socket\": {\"supported\": \"yes\"}}}",
	        "[]",
	        "7",
	        "\"text\"",
	};

	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		expect_refused(*state, "vfio_version_value", invalid[i], strlen(invalid[i]) + 1);
}

static void refuses_malformed_json(void **state)
{
	static const char *const malformed[] = {
	        "{\"capabilities\": {}",
	        "{\"capabilities: {}}",
	        "{\"capabilities\": {}}}",
	        "{\"capabilities\": {}} x",
	        "{\"capabilities\": {},}",
	        "{\"a\": \"\xff\xfe\"}",
	        "",
	        " ",
	        "nul",
	};

	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		expect_refused(*state, "vfio_version_json", malformed[i], strlen(malformed[i]) + 1);
	/* no NUL; a NUL inside; two at the end */
	expect_refused(*state, "vfio_version_json", "{}", 2);
	expect_refused(*state, "vfio_version_json", "{\0}", 4);
	expect_refused(*state, "vfio_version_json", "{}\0", 4);
}

static void refuses_json_that_is_deep_or_large(void **state)
{
	static char json[VFIO_USER_MAX_JSON + 64];
	struct rig *rig = *state;

	memset(json, '[', 2000);
	memset(json + 2000, ']', 2000);
	json[4000] = '\0';
	expect_refused(rig, "vfio_version_json", json, 4001);
	/* as large as it may be */
	memset(json, ' ', sizeof(json));
	json[0] = '{';
	json[VFIO_USER_MAX_JSON - 2] = '}';
	json[VFIO_USER_MAX_JSON - 1] = '\0';
	char answer[256];

	rig_pair(rig, NULL);
	assert_true(negotiate(rig, 0, json, VFIO_USER_MAX_JSON, answer, sizeof(answer)) > 4);
	/* and one byte more: before the version no larger message is even read */
	expect_refused(rig, "vfio_bad_size", json, VFIO_USER_MAX_JSON + 1);
}

static void refuses_other_major_versions(void **state)
{
	struct rig *rig = *state;
	char answer[256];

	EXPECT_COUNT("vfio_version_major",
	             assert_int_equal(negotiate(rig, 1, "{}", 3, answer, sizeof(answer)), -EINVAL));
	rig_expect_closed(rig);
}

static void refuses_a_short_version(void **state)
{
	struct rig *rig = *state;

	for (size_t size = 0; size < 4; size++) {
		rig_pair(rig, NULL);
		assert_int_equal(rig_call(rig, VFIO_USER_VERSION, "\0\0\0", size, NULL, 0),
		                 -EINVAL);
		rig_expect_closed(rig);
	}
}

/* Row 6: anything else first closes the connection; the device has not been touched. */
static void closes_when_version_is_not_first(void **state)
{
	struct rig *rig = *state;
	uint8_t body[64] = {0};

	for (uint16_t command = 0; command < 24; command++) {
		if (command == VFIO_USER_VERSION)
			continue;
		rig_pair(rig, NULL);
		EXPECT_COUNT("vfio_bad_order",
		             assert_int_equal(rig_call(rig, command, body, sizeof(body), NULL, 0),
		                              -EINVAL));
		rig_expect_closed(rig);
	}
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 0);
}

static void refuses_a_second_version_and_goes_on(void **state)
{
	struct rig *rig = *state;
	char answer[256];

	rig_version(rig);
	EXPECT_COUNT("vfio_bad_order",
	             assert_int_equal(negotiate(rig, 0, "{}", 3, answer, sizeof(answer)), -EINVAL));
	assert_true(vfio_server_attached(rig->server));
	assert_int_equal(rig_config_read(rig, 0, 4), 0x10021dd8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup_silent, rig_teardown)
	        TEST(answers_what_qemu_takes),          TEST(announces_write_multiple_when_told),
	        TEST(accepts_every_valid_form),         TEST(refuses_values_of_wrong_type_or_range),
	        TEST(refuses_malformed_json),           TEST(refuses_json_that_is_deep_or_large),
	        TEST(refuses_other_major_versions),     TEST(refuses_a_short_version),
	        TEST(closes_when_version_is_not_first), TEST(refuses_a_second_version_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
