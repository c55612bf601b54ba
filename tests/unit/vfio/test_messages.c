/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every message is checked for, and the requests about the device as a whole
 * (spec vfio-user 12, rows 1 to 11, 38 to 40). */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

static void send_header(struct rig *rig, uint32_t size, uint32_t flags)
{
	struct vfio_user_header header = {
	        .id = 77, .command = VFIO_USER_REGION_READ, .size = size, .flags = flags};

	rig_send_raw(rig, &header, sizeof(header), NULL, 0);
}

/* Takes an error reply to message 77. */
static void expect_error(struct rig *rig, int error)
{
	struct vfio_user_header header;

	rig_turn(rig);
	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.id, 77);
	assert_int_equal(header.flags, VFIO_USER_TYPE_REPLY | VFIO_USER_ERROR);
	assert_int_equal(header.error, error);
}

/* Row 1. */
static void closes_on_a_size_below_the_header(void **state)
{
	struct rig *rig = *state;

	for (uint32_t size = 0; size < 16; size += 5) {
		rig_pair(rig, NULL);
		rig_version(rig);
		/* it cannot be told from where to go on, so it is answered in any case */
		send_header(rig, size, size ? 0 : VFIO_USER_NO_REPLY);
		EXPECT_COUNT("vfio_bad_size", expect_error(rig, EINVAL));
		rig_expect_closed(rig);
	}
}

/* Row 2. */
static void closes_on_a_size_above_the_limit(void **state)
{
	struct rig *rig = *state;

	send_header(rig, VFIO_USER_MAX_MESSAGE + 1, 0);
	EXPECT_COUNT("vfio_bad_size", expect_error(rig, EINVAL));
	rig_expect_closed(rig);
	rig_pair(rig, NULL);
	rig_version(rig);
	send_header(rig, UINT32_MAX, 0);
	EXPECT_COUNT("vfio_bad_size", expect_error(rig, EINVAL));
	rig_expect_closed(rig);
}

/* Row 4. */
static void refuses_a_reply_to_nothing(void **state)
{
	struct rig *rig = *state;

	send_header(rig, 16, VFIO_USER_TYPE_REPLY);
	EXPECT_COUNT("vfio_unsolicited", expect_error(rig, EINVAL));
	assert_int_equal(rig_config_read(rig, 0, 2), 0x1dd8);
}

/* Row 5. */
static void refuses_unknown_commands(void **state)
{
	static const uint16_t unknown[] = {0, 11, 12, 14, 19, 255, 65535};
	struct rig *rig = *state;
	uint8_t body[32] = {0};

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		EXPECT_COUNT(
		        "vfio_bad_command",
		        assert_int_equal(rig_call(rig, unknown[i], NULL, 0, NULL, 0), -EINVAL));
		EXPECT_COUNT("vfio_bad_command", assert_int_equal(rig_call(rig, unknown[i], body,
		                                                           sizeof(body), NULL, 0),
		                                                  -EINVAL));
	}
	assert_int_equal(rig_config_read(rig, 0, 2), 0x1dd8);
}

static void refuses_unknown_flags(void **state)
{
	static const uint32_t flags[] = {2, 15, VFIO_USER_ERROR, 0x40, 0x80000000};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		send_header(rig, 16, flags[i]);
		EXPECT_COUNT("vfio_bad_flags", expect_error(rig, EINVAL));
	}
}

static void refuses_bodies_of_the_wrong_size(void **state)
{
	static const struct {
		uint16_t command;
		size_t wrong[3];
	} cases[] = {
	        {VFIO_USER_DMA_MAP, {0, 31, 33}},
	        {VFIO_USER_DMA_UNMAP, {0, 23, 25}},
	        {VFIO_USER_GET_INFO, {0, 15, 17}},
	        {VFIO_USER_GET_REGION_INFO, {0, 31, 8193}},
	        {VFIO_USER_GET_REGION_IO_FDS, {0, 15, 17}},
	        {VFIO_USER_GET_IRQ_INFO, {0, 15, 17}},
	        {VFIO_USER_SET_IRQS, {0, 19, 20 + 2049}},
	        {VFIO_USER_REGION_READ, {0, 15, 17}},
	        {VFIO_USER_REGION_WRITE, {0, 8, 15}},
	        {VFIO_USER_RESET, {1, 16, 4096}},
	        {VFIO_USER_REGION_WRITE_MULTI, {0, 1, 7}},
	};
	static uint8_t body[8193];
	struct rig *rig = *state;

	memset(body, 0xff, sizeof(body));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t j = 0; j < 3; j++)
			EXPECT_COUNT("vfio_bad_body",
			             assert_int_equal(rig_call(rig, cases[i].command, body,
			                                       cases[i].wrong[j], NULL, 0),
			                              -EINVAL));
	assert_int_equal(rig->resets[VFIO_RESET_DEVICE], 0);
}

/* Row 8, for every command; the next free descriptor tells that none is left. */
static void closes_descriptors_of_refused_messages(void **state)
{
	struct rig *rig = *state;
	int fds[VFIO_USER_MAX_FDS];
	uint8_t body[64] = {0};
	struct vfio_user_header header;
	unsigned before;

	for (unsigned i = 0; i < VFIO_USER_MAX_FDS; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	before = rig_open_fds();
	for (uint16_t command = 0; command < 24; command++)
		for (unsigned count = 1; count <= VFIO_USER_MAX_FDS; count += 126) {
			if (command == VFIO_USER_RESET)
				continue;
			rig_call_fds(rig, command, body, sizeof(body), fds, count);
			assert_int_equal(rig_open_fds(), before);
		}
	EXPECT_COUNT(
	        "vfio_bad_fds",
	        assert_int_equal(rig_call_fds(rig, VFIO_USER_RESET, NULL, 0, fds, 1), -EINVAL));
	EXPECT_COUNT(
	        "vfio_bad_fds",
	        assert_int_equal(rig_call_fds(rig, VFIO_USER_DMA_MAP, body, 32, fds, 2), -EINVAL));
	assert_int_equal(rig_open_fds(), before);
	assert_int_equal(rig_receive(rig, &header, NULL, 0), -EAGAIN);
	for (unsigned i = 0; i < VFIO_USER_MAX_FDS; i++)
		close(fds[i]);
}

/* A request that wants no reply gets none, whatever becomes of it. */
static void never_answers_what_wants_no_reply(void **state)
{
	static uint8_t body[4096];
	struct rig *rig = *state;

	for (unsigned fill = 0; fill < 256; fill += 255) {
		memset(body, (int)fill, sizeof(body));
		for (uint16_t command = 2; command < 24; command++)
			for (size_t size = 0; size <= 48; size += 8)
				rig_send(rig, command, VFIO_USER_NO_REPLY, body, size);
		rig_expect_silence(rig);
	}
	assert_true(vfio_server_attached(rig->server));
}

static void tells_what_the_device_is(void **state)
{
	struct vfio_user_device_info info = {.argsz = 32};
	struct rig *rig = *state;

	assert_int_equal(
	        rig_call(rig, VFIO_USER_GET_INFO, &info, sizeof(info), &info, sizeof(info)), 16);
	assert_int_equal(info.argsz, 16);
	assert_int_equal(info.flags, VFIO_USER_DEVICE_RESET | VFIO_USER_DEVICE_PCI);
	assert_int_equal(info.num_regions, 9);
	assert_int_equal(info.num_irqs, 5);
	info.argsz = 15;
	EXPECT_COUNT("vfio_bad_argsz", assert_int_equal(rig_call(rig, VFIO_USER_GET_INFO, &info,
	                                                         sizeof(info), NULL, 0),
	                                                -EINVAL));
}

static void tells_what_the_regions_are(void **state)
{
	static const uint64_t sizes[9] = {RIG_BAR0_SIZE, 0, RIG_BAR2_SIZE, 0, 0, 0, 0, 4096, 0};
	struct vfio_user_region_info info;
	struct rig *rig = *state;

	for (uint32_t index = 0; index < 9; index++) {
		/* SPDK's is larger than the answer */
		uint8_t large[4064] = {0};

		info = (struct vfio_user_region_info){.argsz = index % 2 ? 32 : 4064,
		                                      .index = index};
		memcpy(large, &info, sizeof(info));
		assert_int_equal(rig_call(rig, VFIO_USER_GET_REGION_INFO, large, info.argsz, &info,
		                          sizeof(info)),
		                 32);
		assert_int_equal(info.argsz, 32);
		assert_int_equal(info.index, index);
		assert_int_equal(info.size, sizes[index]);
		assert_int_equal(info.cap_offset, 0);
		assert_int_equal(info.offset, 0);
		/* never the mmap flag: posted writes depend on it */
		assert_int_equal(info.flags, sizes[index] ? 3 : 0);
	}
	info = (struct vfio_user_region_info){.argsz = 31};
	EXPECT_COUNT("vfio_bad_argsz",
	             assert_int_equal(rig_call(rig, VFIO_USER_GET_REGION_INFO, &info, 32, NULL, 0),
	                              -EINVAL));
	info = (struct vfio_user_region_info){.argsz = UINT32_MAX, .index = 9};
	EXPECT_COUNT("vfio_bad_index",
	             assert_int_equal(rig_call(rig, VFIO_USER_GET_REGION_INFO, &info, 32, NULL, 0),
	                              -EINVAL));
}

static void tells_that_there_are_no_io_fds(void **state)
{
	struct vfio_user_region_io_fds fds = {.argsz = 16, .index = 2}, answer;
	const struct vfio_user_region_io_fds bad[] = {{.argsz = 15},
	                                              {.argsz = 16, .flags = 1},
	                                              {.argsz = 16, .count = 1},
	                                              {.argsz = 16, .index = 9}};
	struct rig *rig = *state;

	assert_int_equal(rig_call(rig, VFIO_USER_GET_REGION_IO_FDS, &fds, sizeof(fds), &answer,
	                          sizeof(answer)),
	                 16);
	assert_memory_equal(&answer, &fds, sizeof(fds));
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(
		        rig_call(rig, VFIO_USER_GET_REGION_IO_FDS, &bad[i], sizeof(fds), NULL, 0),
		        -EINVAL);
}

static void tells_what_the_interrupts_are(void **state)
{
	static const uint32_t counts[5] = {0, 0, RIG_VECTORS, 1, 1};
	static const uint32_t flags[5] = {7, 1, 1, 1, 1};
	struct vfio_user_irq_info info;
	struct rig *rig = *state;

	for (uint32_t index = 0; index < 5; index++) {
		info = (struct vfio_user_irq_info){.argsz = 16, .index = index};
		assert_int_equal(rig_call(rig, VFIO_USER_GET_IRQ_INFO, &info, sizeof(info), &info,
		                          sizeof(info)),
		                 16);
		assert_int_equal(info.argsz, 16);
		assert_int_equal(info.index, index);
		assert_int_equal(info.count, counts[index]);
		assert_int_equal(info.flags, flags[index]);
	}
	info = (struct vfio_user_irq_info){.argsz = 16, .index = 5};
	assert_int_equal(rig_call(rig, VFIO_USER_GET_IRQ_INFO, &info, sizeof(info), NULL, 0),
	                 -EINVAL);
	info = (struct vfio_user_irq_info){.argsz = 12, .index = 2};
	assert_int_equal(rig_call(rig, VFIO_USER_GET_IRQ_INFO, &info, sizeof(info), NULL, 0),
	                 -EINVAL);
}

/* Rows 38 to 40: there is no migration, whatever is asked about it. */
static void refuses_everything_about_migration(void **state)
{
	static uint8_t body[2048];
	struct rig *rig = *state;

	for (uint16_t command = 16; command <= 18; command++)
		for (size_t size = 0; size <= sizeof(body); size = size * 2 + 1)
			EXPECT_COUNT("vfio_unsupported",
			             assert_int_equal(rig_call(rig, command, body, size, NULL, 0),
			                              -EINVAL));
}

/* What a client causes is told, but not in a flood. */
static void limits_what_it_logs(void **state)
{
	struct rig *rig = *state;
	char path[] = "/tmp/ernic-unit-XXXXXX";
	int fd = mkstemp(path);
	char text[8192] = "";
	unsigned lines = 0;

	assert_true(fd >= 0);
	assert_int_equal(log_set_file(path), 0);
	log_set_level(LOG_LEVEL_DEBUG);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(rig_call(rig, VFIO_USER_DEVICE_FEATURE, NULL, 0, NULL, 0),
		                 -EINVAL);
	assert_int_equal(rig_call(rig, 99, NULL, 0, NULL, 0), -EINVAL);
	log_set_level(LOG_LEVEL_WARN);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_in_range(lines, 2, 10);
	assert_non_null(strstr(text, "DEVICE_FEATURE refused"));
	assert_non_null(strstr(text, "unknown command refused"));
	assert_null(strstr(text, "error"));
	close(fd);
	unlink(path);
}

/* Row 32. */
static void resets_as_often_as_asked(void **state)
{
	struct rig *rig = *state;
	int memory = rig_memfd(4096), event = eventfd(0, EFD_NONBLOCK);
	uint8_t byte = 1;

	rig_enable(rig);
	assert_int_equal(rig_map(rig, 0, 4096, 3, memory, 0), 0);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(0x24, 2, 7, 1), &event, 1), 0);
	for (unsigned i = 1; i <= 1000; i++)
		assert_int_equal(rig_call(rig, VFIO_USER_RESET, NULL, 0, NULL, 0), 0);
	assert_int_equal(rig->resets[VFIO_RESET_DEVICE], 1000);
	/* the configuration is gone */
	assert_int_equal(rig_config_read(rig, RIG_COMMAND_REG, 2), 0);
	assert_int_equal(guest_mem_read(vfio_server_guest_mem(rig->server), 0, &byte, 1), -EPERM);
	/* memory and interrupts are not */
	rig_enable(rig);
	assert_int_equal(guest_mem_read(vfio_server_guest_mem(rig->server), 0, &byte, 1), 0);
	pci_irq_raise(vfio_server_pci_irq(rig->server), 7);
	assert_int_equal(rig_signals(event), 1);
	close(memory);
	close(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	        TEST(closes_on_a_size_below_the_header),
	        TEST(closes_on_a_size_above_the_limit),
	        TEST(refuses_a_reply_to_nothing),
	        TEST(refuses_unknown_commands),
	        TEST(refuses_unknown_flags),
	        TEST(refuses_bodies_of_the_wrong_size),
	        TEST(closes_descriptors_of_refused_messages),
	        TEST(never_answers_what_wants_no_reply),
	        TEST(tells_what_the_device_is),
	        TEST(tells_what_the_regions_are),
	        TEST(tells_that_there_are_no_io_fds),
	        TEST(tells_what_the_interrupts_are),
	        TEST(refuses_everything_about_migration),
	        TEST(limits_what_it_logs),
	        TEST(resets_as_often_as_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
