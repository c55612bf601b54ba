/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages in a byte stream, however they are cut and glued, and whose descriptors are whose
 * (spec vfio-user 2 and 12, rows 3, 8 and 34). */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

#define PAGE UINT64_C(4096)

/* A stream of messages of every kind but those with descriptors, and how many answers it gets. */
struct stream {
	uint8_t bytes[2048];
	size_t size;
	size_t ends[16]; /* of the messages */
	unsigned messages, answers;
};

static void add(struct rig *rig, struct stream *stream, uint16_t command, uint32_t flags,
                const void *body, size_t size)
{
	stream->size += rig_build(rig, stream->bytes + stream->size, command, flags, body, size);
	stream->ends[stream->messages++] = stream->size;
	stream->answers += flags == 0;
}

static void make_stream(struct rig *rig, struct stream *stream)
{
	struct vfio_user_region_access read = {.offset = 8, .region = 0, .count = 8};
	struct {
		struct vfio_user_region_access access;
		uint64_t value;
	} write = {{.offset = 8, .region = 0, .count = 8}, 0x1234567};
	struct vfio_user_dma_map map = {.argsz = 32, .flags = 3, .address = PAGE, .size = PAGE};
	struct vfio_user_dma_unmap unmap = {.argsz = 24, .address = PAGE, .size = PAGE};

	*stream = (struct stream){0};
	add(rig, stream, VFIO_USER_REGION_WRITE, VFIO_USER_NO_REPLY, &write, 20);
	add(rig, stream, VFIO_USER_DMA_MAP, 0, &map, sizeof(map));
	add(rig, stream, VFIO_USER_REGION_WRITE, VFIO_USER_NO_REPLY, &write, sizeof(write));
	add(rig, stream, VFIO_USER_REGION_READ, 0, &read, sizeof(read));
	add(rig, stream, VFIO_USER_RESET, 0, NULL, 0);
	add(rig, stream, VFIO_USER_DMA_UNMAP, 0, &unmap, sizeof(unmap));
}

/* Takes the answers: to each message that wants one, in order, and with the value that was written
 * before it was read. The first one, a write whose size is not its count, is dropped. */
static void expect_answers(struct rig *rig, const struct stream *stream)
{
	static const uint16_t commands[] = {VFIO_USER_DMA_MAP, VFIO_USER_REGION_READ,
	                                    VFIO_USER_RESET, VFIO_USER_DMA_UNMAP};
	struct vfio_user_header header;
	uint8_t body[64];
	uint64_t value;

	rig_turn(rig);
	for (unsigned i = 0; i < stream->answers; i++) {
		assert_true(rig_receive(rig, &header, body, sizeof(body)) >= 0);
		assert_int_equal(header.command, commands[i]);
		assert_int_equal(header.error, 0);
		if (header.command == VFIO_USER_REGION_READ) {
			memcpy(&value, body + 16, 8);
			assert_int_equal(value, 0x1234567);
		}
	}
	rig_expect_silence(rig);
}

static void takes_messages_cut_at_any_two_bytes(void **state)
{
	struct rig *rig = *state;
	struct stream stream;

	make_stream(rig, &stream);
	for (size_t first = 1; first < stream.size; first++)
		for (size_t second = first; second < stream.size; second += 7) {
			rig_send_raw(rig, stream.bytes, first, NULL, 0);
			rig_turn(rig);
			if (second > first)
				rig_send_raw(rig, stream.bytes + first, second - first, NULL, 0);
			rig_turn(rig);
			rig_send_raw(rig, stream.bytes + second, stream.size - second, NULL, 0);
			expect_answers(rig, &stream);
		}
}

static void takes_messages_byte_by_byte(void **state)
{
	struct rig *rig = *state;
	struct stream stream;

	make_stream(rig, &stream);
	for (size_t i = 0; i < stream.size; i++) {
		rig_send_raw(rig, stream.bytes + i, 1, NULL, 0);
		rig_turn(rig);
	}
	expect_answers(rig, &stream);
}

/* 50 times the stream, in pieces that are cut anywhere but contain many messages. */
static void takes_messages_glued_at_any_offset(void **state)
{
	static uint8_t bytes[50 * 2048];
	struct rig *rig = *state;
	struct stream stream;
	size_t size = 0;

	make_stream(rig, &stream);
	for (unsigned i = 0; i < 50; i++, size += stream.size)
		memcpy(bytes + size, stream.bytes, stream.size);
	uint32_t random = 4;

	for (size_t sent = 0; sent < size;) {
		size_t chunk = 1 + unit_random(&random) % 900;

		if (chunk > size - sent)
			chunk = size - sent;
		rig_send_raw(rig, bytes + sent, chunk, NULL, 0);
		sent += chunk;
		if (unit_random(&random) % 2)
			rig_turn(rig);
	}
	struct vfio_user_header header;
	uint8_t body[64];

	rig_turn(rig);
	for (unsigned i = 0; i < 50 * stream.answers; i++) {
		assert_true(rig_receive(rig, &header, body, sizeof(body)) >= 0);
		assert_int_equal(header.error, 0);
	}
	rig_expect_silence(rig);
}

/* One receive, and no more, for as many doorbells as the socket holds. */
static void takes_a_burst_in_one_receive(void **state)
{
	struct rig *rig = *state;
	uint64_t before;

	for (unsigned i = 0; i < 200; i++)
		rig_post(rig, 2, 8 * i, i, 8);
	before = rig_counter("vfio_receives");
	rig_turn(rig);
	assert_int_equal(rig->access_count, 200);
	assert_int_equal(rig_counter("vfio_receives"), before + 1);
}

/* ---- descriptors ---- */

static size_t build_map(struct rig *rig, uint8_t *buf, uint64_t addr)
{
	struct vfio_user_dma_map map = {.argsz = 32, .flags = 3, .address = addr, .size = PAGE};

	return rig_build(rig, buf, VFIO_USER_DMA_MAP, 0, &map, sizeof(map));
}

static void expect_mapped(struct rig *rig, uint64_t addr, uint8_t value)
{
	struct vfio_user_header header;
	uint8_t byte = 0;

	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.error, 0);
	assert_int_equal(guest_mem_read(vfio_server_guest_mem(rig->server), addr, &byte, 1), 0);
	assert_int_equal(byte, value);
}

static int filled_memfd(uint8_t value)
{
	int fd = rig_memfd(PAGE);

	assert_int_equal(pwrite(fd, &value, 1, 0), 1);
	return fd;
}

/* The descriptor may ride on any byte of its message, seen in one receive or in two. */
static void finds_a_descriptor_on_any_byte(void **state)
{
	struct rig *rig = *state;
	int fd = filled_memfd(77);
	uint8_t buf[48];

	rig_enable(rig);
	for (unsigned turned = 0; turned < 2; turned++)
		for (size_t at = 0; at < sizeof(buf); at++) {
			build_map(rig, buf, PAGE);
			if (at > 0)
				rig_send_raw(rig, buf, at, NULL, 0);
			if (turned)
				rig_turn(rig);
			rig_send_raw(rig, buf + at, sizeof(buf) - at, &fd, 1);
			rig_turn(rig);
			expect_mapped(rig, PAGE, 77);
			assert_int_equal(rig_unmap(rig, PAGE, PAGE), 0);
			/* and its message may be cut behind it */
			if (at == 0)
				continue;
			build_map(rig, buf, PAGE);
			rig_send_raw(rig, buf, at, &fd, 1);
			if (turned)
				rig_turn(rig);
			rig_send_raw(rig, buf + at, sizeof(buf) - at, NULL, 0);
			rig_turn(rig);
			expect_mapped(rig, PAGE, 77);
			assert_int_equal(rig_unmap(rig, PAGE, PAGE), 0);
		}
	close(fd);
}

/* A, B with a descriptor, C: sent one by one, they come glued, and only B has it. */
static void gives_a_descriptor_to_its_own_message(void **state)
{
	struct rig *rig = *state;
	uint8_t buf[48];
	int first = filled_memfd(1), second = filled_memfd(2);
	unsigned before;

	rig_enable(rig);
	before = rig_open_fds();
	for (unsigned round = 0; round < 2; round++) {
		rig_post(rig, 0, 0, 0, 4);
		build_map(rig, buf, PAGE);
		rig_send_raw(rig, buf, sizeof(buf), &first, 1);
		rig_post(rig, 0, 0, 0, 4);
		build_map(rig, buf, 2 * PAGE);
		rig_send_raw(rig, buf, sizeof(buf), &second, 1);
		build_map(rig, buf, 3 * PAGE);
		rig_send_raw(rig, buf, sizeof(buf), NULL, 0); /* without a file */
		build_map(rig, buf, 4 * PAGE);
		rig_send_raw(rig, buf, sizeof(buf), &first, 1);
		rig_turn(rig);
		struct vfio_user_header header;

		expect_mapped(rig, PAGE, 1);
		expect_mapped(rig, 2 * PAGE, 2);
		assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
		assert_int_equal(header.error, 0);
		expect_mapped(rig, 4 * PAGE, 1);
		struct iovec iov;

		assert_int_equal(guest_mem_map(vfio_server_guest_mem(rig->server), 3 * PAGE, 1,
		                               GUEST_READ, &iov, 1),
		                 -ENOTSUP);
		assert_int_equal(rig_unmap(rig, 0, 16 * PAGE), 0);
		assert_int_equal(rig_open_fds(), before);
	}
	close(first);
	close(second);
}

/* The end of one message and the beginning of the next in one packet, both with descriptors. */
static void keeps_two_sets_apart(void **state)
{
	struct rig *rig = *state;
	uint8_t buf[96];
	int first = filled_memfd(1), second = filled_memfd(2);

	rig_enable(rig);
	for (size_t cut = 1; cut < 48; cut++)
		for (size_t end = 49; end <= 96; end++) {
			build_map(rig, buf, PAGE);
			build_map(rig, buf + 48, 2 * PAGE);
			rig_send_raw(rig, buf, cut, &first, 1);
			rig_turn(rig);
			rig_send_raw(rig, buf + cut, end - cut, &second, 1);
			rig_turn(rig);
			if (end < 96)
				rig_send_raw(rig, buf + end, 96 - end, NULL, 0);
			rig_turn(rig);
			expect_mapped(rig, PAGE, 1);
			expect_mapped(rig, 2 * PAGE, 2);
			assert_int_equal(rig_unmap(rig, 0, 16 * PAGE), 0);
		}
	close(first);
	close(second);
}

/* Two sets on one message add up: here to more than it takes, and then to more than any takes. */
static void adds_up_the_descriptors_of_one_message(void **state)
{
	struct rig *rig = *state;
	int fds[VFIO_USER_MAX_FDS];
	struct vfio_user_header header;
	uint8_t buf[48];
	unsigned before;

	for (unsigned i = 0; i < VFIO_USER_MAX_FDS; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	before = rig_open_fds();
	build_map(rig, buf, PAGE);
	rig_send_raw(rig, buf, 20, fds, 1);
	rig_send_raw(rig, buf + 20, 28, fds, 1);
	EXPECT_COUNT("vfio_bad_fds", rig_turn(rig));
	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.error, EINVAL);
	assert_int_equal(rig_open_fds(), before);
	build_map(rig, buf, PAGE);
	rig_send_raw(rig, buf, 20, fds, VFIO_USER_MAX_FDS);
	rig_send_raw(rig, buf + 20, 10, fds, 1);
	EXPECT_COUNT("vfio_fds_too_many", rig_turn(rig));
	rig_expect_closed(rig);
	assert_int_equal(rig_open_fds(), before - 2);
	for (unsigned i = 0; i < VFIO_USER_MAX_FDS; i++)
		close(fds[i]);
}

/* Descriptors of a message that never becomes complete. */
static void closes_descriptors_of_an_unfinished_message(void **state)
{
	struct rig *rig = *state;
	int fds[4];
	uint8_t buf[48];
	unsigned before;

	for (unsigned i = 0; i < 4; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	before = rig_open_fds();
	build_map(rig, buf, PAGE);
	rig_send_raw(rig, buf, 30, fds, 4);
	rig_turn(rig);
	assert_int_equal(rig_open_fds(), before + 4);
	assert_int_equal(shutdown(rig->fd, SHUT_WR), 0);
	rig_expect_closed(rig);
	assert_int_equal(rig_open_fds(), before - 2);
	for (unsigned i = 0; i < 4; i++)
		close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
	        TEST(takes_messages_cut_at_any_two_bytes),
	        TEST(takes_messages_byte_by_byte),
	        TEST(takes_messages_glued_at_any_offset),
	        TEST(takes_a_burst_in_one_receive),
	        TEST(finds_a_descriptor_on_any_byte),
	        TEST(gives_a_descriptor_to_its_own_message),
	        TEST(keeps_two_sets_apart),
	        TEST(adds_up_the_descriptors_of_one_message),
	        TEST(closes_descriptors_of_an_unfinished_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
