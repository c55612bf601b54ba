/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Captures: a pcapng file whose blocks say which frames went which way, and when. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

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
	uint8_t bytes[60] = {0};
	struct iovec iov = {bytes, sizeof(bytes)};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = sizeof(bytes)};
	struct net_pcap *pcap;
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_create(&loop), 0);
	assert_int_equal(net_pcap_open(loop, "/nowhere/file", &pcap), -ENOENT);
	/* nobody waits for the reader of a pipe */
	assert_int_equal(mkfifo("test_pcap.fifo", 0600), 0);
	assert_int_equal(net_pcap_open(loop, "test_pcap.fifo", &pcap), -ENXIO);
	int reader = open("test_pcap.fifo", O_RDONLY | O_NONBLOCK);

	assert_true(reader >= 0);
	assert_int_equal(net_pcap_open(loop, "test_pcap.fifo", &pcap), 0);
	for (int i = 0; i < 10000; i++) /* more than a pipe takes */
		net_pcap_frame(pcap, &frame, true);
	net_pcap_close(pcap);
	close(reader);
	unlink("test_pcap.fifo");
	if (net_pcap_open(loop, "/dev/full", &pcap) == 0) { /* says so, and ends */
		net_pcap_frame(pcap, &frame, true);
		net_pcap_close(pcap);
	}
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_directions),
	        cmocka_unit_test(written_soon),
	        cmocka_unit_test(cannot_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
