/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures: a pcapng file whose blocks say which frames went which way, and when. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/counter.h"
#include "net/net.h"
#include "net/pcap.h"

static int swallow(struct net_port *port, const struct net_frame *frame)
{
	(void)port, (void)frame;
	return 0;
}

static const struct net_port_ops ops = {.deliver = swallow};

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return value;
}

static size_t read_file(const char *path, uint8_t *bytes, size_t size)
{
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	size = fread(bytes, 1, size, file);
	fclose(file);
	return size;
}

/* Checks a packet block at AT; returns its size. */
static size_t check_packet(const uint8_t *at, const uint8_t *bytes, uint32_t size, uint32_t flags)
{
	uint64_t ns = (uint64_t)word(at + 12) << 32 | word(at + 16);
	uint32_t padded = (size + 3) & ~3u;

	assert_int_equal(word(at), 6);
	assert_int_equal(word(at + 4), 28 + padded + 16);
	assert_int_equal(word(at + 8), 0);
	assert_in_range(ns / 1000000000, (uint64_t)time(NULL) - 60, (uint64_t)time(NULL) + 1);
	assert_int_equal(word(at + 20), size);
	assert_int_equal(word(at + 24), size);
	assert_memory_equal(at + 28, bytes, size);
	assert_int_equal(word(at + 28 + padded + 4), flags);
	assert_int_equal(word(at + 28 + padded + 12), word(at + 4));
	return word(at + 4);
}

static void both_directions(void **state)
{
	char path[] = "/tmp/ernic-pcap-XXXXXX";
	uint8_t bytes[61], tagged[65], file[1000];
	struct iovec iov[2] = {{bytes, 10}, {bytes + 10, 51}};
	struct net_frame frame = {.iov = iov, .iov_count = 2, .size = sizeof(bytes)};
	struct net_port guest = {.name = "guest", .ops = &ops},
	                host = {.name = "host", .ops = &ops};
	struct net_pcap *pcap;
	struct net_wire *wire;
	struct loop *loop;

	(void)state;
	close(mkstemp(path));
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	memcpy(tagged, bytes, 12);
	memcpy(tagged + 12, (uint8_t[]){0x81, 0, 0x20, 5}, 4);
	memcpy(tagged + 16, bytes + 12, sizeof(bytes) - 12);
	assert_int_equal(loop_create(&loop), 0);
	assert_int_equal(net_wire_create(&wire), 0);
	assert_int_equal(net_wire_attach(wire, &host), 0);
	assert_int_equal(net_wire_attach(wire, &guest), 0);
	assert_int_equal(net_pcap_open(loop, path, &pcap), 0);
	net_wire_capture(wire, pcap, false);
	net_wire_send(&guest, &frame);
	frame.vlan = true;
	frame.vlan_tci = 0x2005;
	net_wire_send(&host, &frame);
	net_wire_capture(wire, NULL, false);
	net_wire_send(&host, &frame);
	net_pcap_close(pcap);

	size_t size = read_file(path, file, sizeof(file)), at = 28 + 44;

	assert_int_equal(word(file), 0x0a0d0d0a);
	assert_int_equal(word(file + 8), 0x1a2b3c4d);
	assert_int_equal(word(file + 28), 1);
	assert_int_equal(word(file + 28 + 4), 44);
	assert_int_equal(word(file + 28 + 40), 44);
	at += check_packet(file + at, bytes, sizeof(bytes), 2);
	at += check_packet(file + at, tagged, sizeof(tagged), 1);
	assert_int_equal(at, size);
	net_wire_detach(&guest);
	net_wire_detach(&host);
	net_wire_destroy(wire);
	loop_destroy(loop);
	unlink(path);
}

/* What follows a file sees frames without waiting for the buffer to be full. */
static void written_soon(void **state)
{
	char path[] = "/tmp/ernic-pcap-XXXXXX";
	uint8_t bytes[60] = {0}, file[1000];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = sizeof(bytes)};
	struct net_pcap *pcap;
	struct loop *loop;

	(void)state;
	close(mkstemp(path));
	assert_int_equal(loop_create(&loop), 0);
	assert_int_equal(net_pcap_open(loop, path, &pcap), 0);
	assert_int_equal(read_file(path, file, sizeof(file)), 28 + 44);
	net_pcap_frame(pcap, &frame, true);
	for (unsigned i = 0; i < 1000 && read_file(path, file, sizeof(file)) == 28 + 44; i++)
		loop_turn(loop, 10000000);
	assert_int_equal(read_file(path, file, sizeof(file)), 28 + 44 + 28 + 60 + 16);
	net_pcap_close(pcap);
	loop_destroy(loop);
	unlink(path);
}

static void cannot_write(void **state)
{
	struct net_pcap *pcap;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_create(&loop), 0);
	assert_int_equal(net_pcap_open(loop, "/nowhere/file", &pcap), -ENOENT);
	if (access("/dev/full", W_OK) == 0)
		assert_int_equal(net_pcap_open(loop, "/dev/full", &pcap), -ENOSPC);
	loop_destroy(loop);
}

/* What a failed start must not touch, and must not leave. */
static void prepared_only(void **state)
{
	struct net_pcap *pcap;
	struct loop *loop;
	uint8_t file[100];

	(void)state;
	assert_int_equal(loop_create(&loop), 0);
	unlink("test_pcap.new");
	assert_int_equal(net_pcap_prepare(loop, "test_pcap.new", &pcap), 0);
	assert_int_equal(access("test_pcap.new", F_OK), 0);
	net_pcap_close(pcap);
	assert_int_equal(access("test_pcap.new", F_OK), -1);

	FILE *old = fopen("test_pcap.old", "w");

	assert_non_null(old);
	for (unsigned i = 0; i < 50; i++)
		fputs("old\n", old);
	fclose(old);
	assert_int_equal(net_pcap_prepare(loop, "test_pcap.old", &pcap), 0);
	net_pcap_close(pcap);
	assert_int_equal(read_file("test_pcap.old", file, 4), 4);
	assert_memory_equal(file, "old\n", 4);
	assert_int_equal(net_pcap_prepare(loop, "test_pcap.old", &pcap), 0);
	assert_int_equal(net_pcap_begin(pcap), 0);
	net_pcap_close(pcap);
	assert_int_equal(read_file("test_pcap.old", file, sizeof(file)), 28 + 44);
	unlink("test_pcap.old");
	loop_destroy(loop);
}

/* ---- pipes ---- */

/* A capture into a pipe, and what has come out of it. */
struct pipe_scene {
	struct loop *loop;
	struct net_pcap *pcap;
	int reader;
	uint32_t sent;
	size_t size;
	uint8_t *bytes;
};

enum { FRAME_SIZE = 1500, BLOCK_SIZE = 28 + FRAME_SIZE + 16, BYTES_MAX = 32 << 20 };

static uint64_t count(const char *name)
{
	return counter_get(counter_find(name));
}

static void open_pipe(struct pipe_scene *scene)
{
	*scene = (struct pipe_scene){.bytes = malloc(BYTES_MAX)};
	assert_non_null(scene->bytes);
	signal(SIGPIPE, SIG_IGN); /* as in the server */
	assert_int_equal(loop_create(&scene->loop), 0);
	unlink("test_pcap.fifo");
	assert_int_equal(mkfifo("test_pcap.fifo", 0600), 0);
	assert_int_equal(net_pcap_open(scene->loop, "test_pcap.fifo", &scene->pcap), -ENXIO);
	scene->reader = open("test_pcap.fifo", O_RDONLY | O_NONBLOCK);
	assert_true(scene->reader >= 0);
	assert_int_equal(net_pcap_open(scene->loop, "test_pcap.fifo", &scene->pcap), 0);
}

static void close_pipe(struct pipe_scene *scene)
{
	unlink("test_pcap.fifo");
	loop_destroy(scene->loop);
	free(scene->bytes);
}

/* Each frame has its number. */
static void send_frames(struct pipe_scene *scene, unsigned frames)
{
	uint8_t bytes[FRAME_SIZE] = {0};
	struct iovec iov[2] = {{bytes, 700}, {bytes + 700, sizeof(bytes) - 700}};
	struct net_frame frame = {.iov = iov, .iov_count = 2, .size = sizeof(bytes)};

	while (frames-- > 0) {
		memcpy(bytes + 14, &scene->sent, 4);
		memcpy(bytes + sizeof(bytes) - 4, &scene->sent, 4);
		scene->sent++;
		net_pcap_frame(scene->pcap, &frame, true);
	}
}

/* Takes what is in the pipe; at its end returns false. */
static bool take(struct pipe_scene *scene)
{
	for (;;) {
		ssize_t part =
		        read(scene->reader, scene->bytes + scene->size, BYTES_MAX - scene->size);

		if (part < 0 && errno == EAGAIN)
			return true;
		assert_true(part >= 0);
		if (part == 0)
			return false;
		scene->size += (size_t)part;
	}
}

/* Lets the loop and the reader take turns until nothing more comes. */
static void take_all(struct pipe_scene *scene)
{
	size_t before;

	do {
		before = scene->size;
		take(scene);
		loop_turn(scene->loop, 0);
		take(scene);
	} while (scene->size > before);
}

/* Walks what came: whole blocks, frames in their order. Returns how many, and what the statistics
 * at the end say is missing. */
static uint32_t check_blocks(const struct pipe_scene *scene, uint64_t *missing)
{
	const uint8_t *bytes = scene->bytes;
	uint32_t frames = 0, last = 0;
	size_t at = 28 + 44;

	*missing = 0;
	while (at < scene->size) {
		uint32_t kind = word(bytes + at), size = word(bytes + at + 4);

		assert_true(size <= scene->size - at);
		assert_int_equal(word(bytes + at + size - 4), size);
		if (kind == 5) {
			assert_int_equal(size, 52);
			memcpy(missing, bytes + at + 36, 8);
			at += size;
			assert_int_equal(at, scene->size);
			break;
		}
		assert_int_equal(kind, 6);
		assert_int_equal(size, BLOCK_SIZE);

		uint32_t number = word(bytes + at + 28 + 14);

		assert_int_equal(word(bytes + at + 28 + FRAME_SIZE - 4), number);
		assert_true(frames == 0 ? number == 0 : number > last);
		last = number;
		frames++;
		at += size;
	}
	return frames;
}

/* Bursts of more than a pipe holds, and a reader that comes after each of them. */
static void pipe_with_a_prompt_reader(void **state)
{
	struct pipe_scene scene;
	uint64_t dropped = count("net_pcap_dropped"), missing;

	(void)state;
	open_pipe(&scene);
	for (unsigned i = 0; i < 6; i++) {
		send_frames(&scene, 2000);
		take_all(&scene);
	}
	send_frames(&scene, 1);
	assert_true(net_pcap_live(scene.pcap));
	net_pcap_close(scene.pcap);
	assert_false(take(&scene));
	close(scene.reader);
	assert_int_equal(check_blocks(&scene, &missing), scene.sent);
	assert_int_equal(missing, 0);
	assert_int_equal(count("net_pcap_dropped"), dropped);
	close_pipe(&scene);
}

/* Whole frames are left out while nothing is read, and the capture goes on behind them. */
static void pipe_with_a_slow_reader(void **state)
{
	struct pipe_scene scene;
	uint64_t dropped = count("net_pcap_dropped"), missing;

	(void)state;
	open_pipe(&scene);
	while (count("net_pcap_dropped") < dropped + 100)
		send_frames(&scene, 100);
	assert_true(net_pcap_live(scene.pcap));
	take_all(&scene);
	send_frames(&scene, 10);
	net_pcap_close(scene.pcap);
	assert_false(take(&scene));
	close(scene.reader);

	uint32_t frames = check_blocks(&scene, &missing);

	assert_int_equal(missing, count("net_pcap_dropped") - dropped);
	assert_int_equal(frames + missing, scene.sent);
	close_pipe(&scene);
}

/* An end does not wait: what comes is what fits. */
static void pipe_that_is_full_at_the_end(void **state)
{
	struct pipe_scene scene;

	(void)state;
	open_pipe(&scene);
	send_frames(&scene, 2000);
	net_pcap_close(scene.pcap);
	assert_false(take(&scene));
	assert_in_range(scene.size, 4096, 2000 * BLOCK_SIZE - 1);
	close(scene.reader);
	close_pipe(&scene);
}

/* It ends without a frame that says so, and costs nothing from then on. */
static void pipe_without_its_reader(void **state)
{
	struct pipe_scene scene;
	uint64_t frames;

	(void)state;
	open_pipe(&scene);
	assert_true(net_pcap_live(scene.pcap));
	close(scene.reader);
	loop_turn(scene.loop, 0);
	assert_false(net_pcap_live(scene.pcap));
	frames = count("net_pcap_frames");
	send_frames(&scene, 10);
	assert_int_equal(count("net_pcap_frames"), frames);
	net_pcap_close(scene.pcap);
	close_pipe(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_directions),
	        cmocka_unit_test(written_soon),
	        cmocka_unit_test(cannot_write),
	        cmocka_unit_test(prepared_only),
	        cmocka_unit_test(pipe_with_a_prompt_reader),
	        cmocka_unit_test(pipe_with_a_slow_reader),
	        cmocka_unit_test(pipe_that_is_full_at_the_end),
	        cmocka_unit_test(pipe_without_its_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
