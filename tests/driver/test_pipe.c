// SPDX-License-Identifier: GPL-2.0-or-later
/* A capture into a pipe: bursts of the guest's that the pipe does not hold come out whole. */
#include "env.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FRAMES = 2000,
	FRAME_SIZE = 1500,
	HEAD_SIZE = 28 + 44, /* section and interface */
	BLOCK_SIZE = 28 + FRAME_SIZE + 16,
	PATIENCE_MS = 30000,
};

static void send_frames(struct env *env, uint32_t first)
{
	uint8_t frame[FRAME_SIZE] = {0};

	memset(frame, 0xff, 6);
	memcpy(frame + 6, env->nic->mac, 6);
	memcpy(frame + 12, (uint8_t[]){0x88, 0xb5}, 2);
	for (uint32_t i = first; i < first + FRAMES; i++) {
		memcpy(frame + 14, &i, 4);
		nic_ok(env->nic, nic_send_frame(env->nic, frame, sizeof(frame)));
	}
}

/* Reads exactly SIZE bytes. */
static void take(int reader, uint8_t *bytes, size_t size)
{
	struct pollfd ready = {.fd = reader, .events = POLLIN};

	while (size > 0) {
		ssize_t part = read(reader, bytes, size);

		if (part < 0 && errno == EAGAIN) {
			assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
			continue;
		}
		assert_true(part > 0);
		bytes += part;
		size -= (size_t)part;
	}
}

static void check_blocks(const uint8_t *bytes, uint32_t first)
{
	for (uint32_t i = 0; i < FRAMES; i++, bytes += BLOCK_SIZE) {
		const uint32_t head[] = {6, BLOCK_SIZE}, number = first + i;

		assert_memory_equal(bytes, head, sizeof(head));
		assert_memory_equal(bytes + 28 + 14, &number, sizeof(number));
		assert_memory_equal(bytes + BLOCK_SIZE - 4, head + 1, 4);
	}
}

/* The pipe is full long before anybody reads it, each time. */
static void test_bursts(void **state)
{
	struct env *env = *state;
	uint8_t *bytes = malloc((size_t)FRAMES * BLOCK_SIZE);
	char path[128], command[256];
	int reader;

	assert_non_null(bytes);
	snprintf(path, sizeof(path), "%s/pipe", env->server->dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	snprintf(command, sizeof(command), "{\"cmd\":\"capture\",\"file\":\"%s\"}", path);
	env_control(env, command);
	take(reader, bytes, HEAD_SIZE);
	for (uint32_t i = 0; i < 3; i++) {
		send_frames(env, i * FRAMES);
		take(reader, bytes, (size_t)FRAMES * BLOCK_SIZE);
		check_blocks(bytes, i * FRAMES);
	}
	assert_int_equal(env_counter(env, "net_pcap_dropped"), 0);
	env_control(env, "{\"cmd\":\"capture\",\"file\":\"off\"}");
	assert_int_equal(read(reader, bytes, 1), 0);
	close(reader);
	unlink(path);
	free(bytes);
}

int main(void)
{
	static const struct env_options up = {0};
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_bursts, &up),
	};

	return env_main("pipe", tests, false);
}
