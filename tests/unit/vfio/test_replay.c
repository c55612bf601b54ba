/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Recordings: the same messages without a socket. */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/iov.h"
#include "unit.h"

#define PAGE UINT64_C(4096)

static uint8_t recording[8192];
static size_t recorded;

static struct {
	unsigned count;
	uint16_t commands[64];
	uint32_t errors[64];
	uint8_t last[8192];
} replies;

static int memory;

static int setup(void **state)
{
	*state = rig_create(NULL);
	recorded = 0;
	memset(&replies, 0, sizeof(replies));
	return 0;
}

static void on_reply(void *arg, const struct iovec *iov, unsigned count)
{
	struct vfio_user_header header;

	assert_ptr_equal(arg, &replies);
	assert_true(iov_size(iov, count) <= sizeof(replies.last));
	iov_to_buf(iov, count, 0, replies.last, sizeof(replies.last));
	memcpy(&header, replies.last, sizeof(header));
	replies.commands[replies.count] = header.command;
	replies.errors[replies.count++] = header.error;
}

static unsigned attach(void *arg, const void *bytes, int *fds, unsigned max)
{
	struct vfio_user_header header;

	(void)arg;
	assert_true(max >= 1);
	memcpy(&header, bytes, sizeof(header));
	if (header.command != VFIO_USER_DMA_MAP)
		return 0;
	fds[0] = dup(memory);
	return 1;
}

static void record(struct rig *rig, uint16_t command, uint32_t flags, const void *body, size_t size)
{
	recorded += rig_build(rig, recording + recorded, command, flags, body, size);
}

static void record_session(struct rig *rig)
{
	uint8_t version[4] = {0}, master[18] = {0};
	struct vfio_user_dma_map map = {.argsz = 32, .flags = 3, .address = PAGE, .size = PAGE};
	struct vfio_user_region_access access = {
	        .offset = RIG_COMMAND_REG, .region = 7, .count = 2};
	struct vfio_user_region_access post = {.offset = 0, .region = 0, .count = 8};
	uint8_t doorbell[24] = {0};

	memcpy(master, &access, sizeof(access));
	master[16] = 6;
	memcpy(doorbell, &post, sizeof(post));
	record(rig, VFIO_USER_VERSION, 0, version, sizeof(version));
	record(rig, VFIO_USER_DMA_MAP, 0, &map, sizeof(map));
	record(rig, VFIO_USER_REGION_WRITE, 0, master, sizeof(master));
	record(rig, VFIO_USER_REGION_WRITE, VFIO_USER_NO_REPLY, doorbell, sizeof(doorbell));
	access.offset = 0;
	access.count = 4096;
	record(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
}

/* The device writes into memory that came with the recording. */
static void on_work(struct rig *rig)
{
	rig->result = guest_mem_write(vfio_server_guest_mem(rig->server), PAGE + 8, "done", 4);
}

static void replays_messages_with_descriptors(void **state)
{
	struct rig *rig = *state;
	struct vfio_replay replay = {
	        .data = recording, .attach = attach, .reply = on_reply, .arg = &replies};
	char text[4];
	unsigned before;

	memory = rig_memfd(PAGE);
	before = rig_open_fds();
	record_session(rig);
	replay.size = recorded;
	rig->on_work = on_work;
	rig->result = 1;
	for (unsigned round = 1; round <= 3; round++) {
		replies.count = 0;
		assert_int_equal(vfio_server_replay(rig->server, &replay), 0);
		assert_int_equal(replies.count, 4);
		assert_int_equal(replies.commands[0], VFIO_USER_VERSION);
		assert_int_equal(replies.commands[3], VFIO_USER_REGION_READ);
		assert_memory_equal(replies.last + 32, "\xd8\x1d\x02\x10\x06\x00", 6);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(replies.errors[i], 0);
		assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], round);
		assert_int_equal(rig_open_fds(), before);
	}
	assert_int_equal(rig->result, 0);
	assert_int_equal(pread(memory, text, 4, 8), 4);
	assert_memory_equal(text, "done", 4);
	close(memory);
}

/* A recording cut anywhere, and one of nothing. */
static void replays_what_there_is(void **state)
{
	struct rig *rig = *state;
	struct vfio_replay replay = {.data = recording};

	record_session(rig);
	for (replay.size = 0; replay.size <= recorded; replay.size++)
		assert_int_equal(vfio_server_replay(rig->server, &replay), 0);
	assert_false(vfio_server_attached(rig->server));
}

static void replays_a_file(void **state)
{
	struct rig *rig = *state;
	char path[] = "/tmp/ernic-unit-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(vfio_server_replay_file(rig->server, path), 0); /* empty */
	record_session(rig);
	assert_int_equal(write(fd, recording, recorded), recorded);
	close(fd);
	EXPECT_COUNT("vfio_clients_attached",
	             assert_int_equal(vfio_server_replay_file(rig->server, path), 0));
	assert_int_equal(rig->access_count, 1);
	unlink(path);
	assert_int_equal(vfio_server_replay_file(rig->server, path), -ENOENT);
}

/* Memory without descriptors, and a recording that ends where the answer should be. */
static void work_reads(struct rig *rig)
{
	uint8_t byte;

	rig->result = guest_mem_read(vfio_server_guest_mem(rig->server), PAGE, &byte, 1);
}

static void fails_dma_messages_that_the_recording_does_not_answer(void **state)
{
	struct rig *rig = *state;
	struct vfio_replay replay = {.data = recording};

	record_session(rig);
	replay.size = recorded;
	rig->on_work = work_reads;
	assert_int_equal(vfio_server_replay(rig->server, &replay), 0);
	assert_int_equal(rig->result, -EIO);
	replay.size = recorded;
	rig_pair(rig, NULL);
	assert_int_equal(vfio_server_replay(rig->server, &replay), -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
	        TEST(replays_messages_with_descriptors),
	        TEST(replays_what_there_is),
	        TEST(replays_a_file),
	        TEST(fails_dma_messages_that_the_recording_does_not_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
