/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The TAP port against the real kernel, in a network namespace of its own. Exits with 77 where one
 * may not be made (needs root or user namespaces, and /dev/net/tun).
 */
#include "net/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/counter.h"
#include "base/iov.h"
#include "base/log.h"
#include "frames.h"
#include "net/batch.h"

#define SKIP 77

/* Nothing here takes as long, on whatever machine; what does is a hang. */
enum { HANG_MS = 60000 };
#define HANG_NS (HANG_MS * 1000000ull)

/* What the port under test takes for the time is this much ahead. */
static uint64_t clock_ahead;

uint64_t __real_loop_now(const struct loop *loop);
uint64_t __wrap_loop_now(const struct loop *loop);

uint64_t __wrap_loop_now(const struct loop *loop)
{
	return __real_loop_now(loop) + clock_ahead;
}

/* The packet socket that a frame is sent from between two reads of a window, or -1. */
static int interloper = -1;

void __real_net_batch_read(struct net_batch *batch, struct net_batch_op *ops, unsigned count);
void __wrap_net_batch_read(struct net_batch *batch, struct net_batch_op *ops, unsigned count);

/* ---- the kernel's side ---- */

/* Makes a persistent TAP (or TUN, by FLAGS) and takes it up. Returns false when not permitted. */
static bool make_tap(const char *name, int flags)
{
	struct ifreq request = {.ifr_flags = (short)flags};
	int fd = open("/dev/net/tun", O_RDWR);

	if (fd < 0)
		return false;
	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	bool made = ioctl(fd, TUNSETIFF, &request) == 0 && ioctl(fd, TUNSETPERSIST, 1) == 0;

	close(fd);
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	request.ifr_flags = IFF_UP;
	made = made && ioctl(sock, SIOCSIFFLAGS, &request) == 0;
	close(sock);
	return made;
}

static void set_up_flag(const char *name, bool up)
{
	struct ifreq request = {.ifr_flags = up ? IFF_UP : 0};
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	strncpy(request.ifr_name, name, IFNAMSIZ - 1);
	assert_return_code(ioctl(sock, SIOCSIFFLAGS, &request), errno);
	close(sock);
}

/* A packet socket on the interface, with virtio headers, so that notes can be given and seen. */
static int open_packet(const char *name, int bypass)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
	                              .sll_protocol = htobe16(ETH_P_ALL),
	                              .sll_ifindex = (int)if_nametoindex(name)};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htobe16(ETH_P_ALL)), one = 1;

	assert_return_code(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), errno);
	/* A TAP that was opened just now has, for a moment, a queueing discipline that drops. */
	assert_return_code(setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &bypass, sizeof(bypass)),
	                   errno);
	assert_return_code(bind(fd, (struct sockaddr *)&address, sizeof(address)), errno);
	return fd;
}

/* ---- our side ---- */

struct sink {
	struct net_port port;
	unsigned frames;
	bool full; /* no room */
	unsigned refused;
	uint8_t order[64]; /* byte 60 of each frame */
	struct net_frame last;
	uint8_t bytes[FRAME_BUFFER];
};

/* And not what the kernel says on its own: neighbour discovery, which is to groups. */
static bool is_ours(const uint8_t *bytes)
{
	return bytes[0] == 2 && bytes[5] == 2;
}

static int sink_deliver(struct net_port *port, const struct net_frame *frame)
{
	struct sink *sink = (struct sink *)port;

	if (frame->size < 14 || frame->iov_count != 1 || !is_ours(frame->iov[0].iov_base))
		return 0;
	if (sink->full) {
		sink->refused++;
		return frame->may_wait ? -EAGAIN : -ENOBUFS;
	}
	if (frame->size > 60)
		sink->order[sink->frames % 64] = ((uint8_t *)frame->iov[0].iov_base)[60];
	sink->frames++;
	sink->last = *frame;
	iov_to_buf(frame->iov, frame->iov_count, 0, sink->bytes, frame->size);
	return 0;
}

static const struct net_port_ops sink_ops = {.deliver = sink_deliver};

struct setup {
	struct loop *loop;
	struct net_wire *wire;
	struct sink guest;
	struct net_tap *tap;
};

static int set_up(void **state)
{
	struct setup *setup = calloc(1, sizeof(*setup));

	*state = setup;
	clock_ahead = 0;
	setup->guest.port =
	        (struct net_port){.name = "guest", .ops = &sink_ops, .offloads = NET_OFFLOAD_ALL};
	return loop_create(&setup->loop) || net_wire_create(&setup->wire) ||
	       net_wire_attach(setup->wire, &setup->guest.port);
}

static int tear_down(void **state)
{
	struct setup *setup = *state;

	net_tap_close(setup->tap);
	net_wire_detach(&setup->guest.port);
	net_wire_destroy(setup->wire);
	loop_destroy(setup->loop);
	free(setup);
	return 0;
}

static int open_tap(struct setup *setup, const char *name, unsigned queues)
{
	return net_tap_open(setup->loop, setup->wire, name, queues, &setup->tap);
}

/* Runs the loop until *VALUE, which its turns move, is COUNT. */
static void run_until_is(struct setup *setup, const unsigned *value, unsigned count)
{
	uint64_t hang = __real_loop_now(setup->loop) + HANG_NS;

	while (*value < count && __real_loop_now(setup->loop) < hang)
		loop_turn(setup->loop, HANG_NS);
	assert_int_equal(*value, count);
}

/* Runs the loop until the guest has COUNT frames. */
static void run_until(struct setup *setup, unsigned count)
{
	run_until_is(setup, &setup->guest.frames, count);
}

/* What waits for room waits for as long as the test likes. */
static void wait_for_ever(void)
{
	clock_ahead = 3600 * 1000000000ull;
}

static uint64_t count_of(const char *name)
{
	return counter_get(counter_find(name));
}

/* ---- opening ---- */

static void test_missing_interface_is_not_made(void **state)
{
	assert_int_equal(open_tap(*state, "none0", 1), -ENODEV);
	assert_int_equal(if_nametoindex("none0"), 0);
	assert_int_equal(open_tap(*state, "a-name-that-is-too-long", 1), -ENODEV);
	assert_int_equal(open_tap(*state, "", 1), -ENODEV);
}

static void test_not_a_tap(void **state)
{
	assert_true(make_tap("tun0", IFF_TUN | IFF_NO_PI));
	assert_int_equal(open_tap(*state, "tun0", 1), -ENODEV);
	assert_int_equal(open_tap(*state, "lo", 1), -ENODEV);
}

static void test_busy(void **state)
{
	struct setup *setup = *state;
	struct net_tap *second;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	assert_int_equal(net_tap_open(setup->loop, setup->wire, "tap0", 1, &second), -EBUSY);
}

static void test_busy_multi_queue(void **state)
{
	struct setup *setup = *state;
	struct net_tap *second;

	assert_int_equal(open_tap(setup, "tapm0", 4), 0);
	assert_int_equal(net_tap_open(setup->loop, setup->wire, "tapm0", 4, &second), -EBUSY);
}

static void test_owned_by_somebody_else(void **state)
{
	struct setup *setup = *state;
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "tapo0"};
	int fd = open("/dev/net/tun", O_RDWR);

	assert_return_code(ioctl(fd, TUNSETIFF, &request), errno);
	assert_return_code(ioctl(fd, TUNSETPERSIST, 1), errno);
	if (ioctl(fd, TUNSETOWNER, 12345) != 0 || seteuid(4321) != 0) {
		close(fd);
		skip(); /* a user namespace knows no other users */
	}
	close(fd);
	int result = open_tap(setup, "tapo0", 1);

	assert_return_code(seteuid(0), errno);
	/* Where only root may open the tun driver at all, that is what is said. */
	assert_true(result == -EPERM || result == -EACCES);
}

/* ---- frames ---- */

static int send_built(struct setup *setup, const struct frame *built, struct net_frame frame)
{
	static uint8_t store[FRAME_BUFFER + NET_MAX_IOV];
	struct iovec iov[NET_MAX_IOV];

	frame.iov = iov;
	frame.iov_count = split_random(built->bytes, built->size, iov, 40, store);
	frame.size = built->size;
	return net_wire_send(&setup->guest.port, &frame);
}

static size_t receive_packet(int fd, struct virtio_net_hdr *vnet, uint8_t *bytes, size_t max)
{
	struct iovec iov[2] = {{vnet, sizeof(*vnet)}, {bytes, max}};
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(poll(&wait, 1, HANG_MS), 1);
		ssize_t size = readv(fd, iov, 2);

		assert_return_code(size, errno);
		if (is_ours(bytes))
			return (size_t)size - sizeof(*vnet);
	}
	fail();
	return 0;
}

static void test_frame_to_host(void **state)
{
	static uint8_t bytes[FRAME_BUFFER];
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 1400, .seed = 3};
	static struct frame built;
	struct virtio_net_hdr vnet;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	frame_build(&spec, &built);
	assert_int_equal(send_built(setup, &built, (struct net_frame){0}), 0);
	assert_int_equal(receive_packet(fd, &vnet, bytes, sizeof(bytes)), built.size);
	assert_memory_equal(bytes, built.bytes, built.size);
	close(fd);
}

static void test_large_packet_to_host(void **state)
{
	static uint8_t bytes[FRAME_BUFFER];
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 60000, .tcp_options = 12, .tcp_flags = 0x90};
	static struct frame built;
	struct virtio_net_hdr vnet;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	frame_build(&spec, &built);
	frame_unsum(&built, (uint32_t)(built.size - built.l4));
	struct net_frame frame = {.csum_partial = true,
	                          .csum_start = (uint16_t)built.l4,
	                          .csum_offset = 16,
	                          .gso = NET_GSO_TCPV4,
	                          .gso_size = 1448,
	                          .hdr_size = (uint16_t)built.payload,
	                          .gso_ecn = true};

	assert_int_equal(send_built(setup, &built, frame), 0);
	assert_int_equal(receive_packet(fd, &vnet, bytes, sizeof(bytes)), built.size);
	assert_memory_equal(bytes, built.bytes, built.size);
	assert_int_equal(vnet.gso_type, VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN);
	assert_int_equal(vnet.gso_size, 1448);
	assert_int_equal(vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(vnet.csum_start, built.l4);
	close(fd);
}

static void host_sends(int fd, struct virtio_net_hdr *vnet, const struct frame *built)
{
	struct iovec iov[2] = {{vnet, sizeof(*vnet)},
	                       {(void *)(uintptr_t)built->bytes, built->size}};

	assert_int_equal(writev(fd, iov, 2), (ssize_t)(sizeof(*vnet) + built->size));
}

static void test_frame_from_host(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 1400, .seed = 5};
	struct virtio_net_hdr vnet = {0};
	static struct frame built;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	frame_build(&spec, &built);
	host_sends(fd, &vnet, &built);
	run_until(setup, 1);
	assert_int_equal(setup->guest.last.size, built.size);
	assert_memory_equal(setup->guest.bytes, built.bytes, built.size);
	assert_false(setup->guest.last.csum_partial);
	close(fd);
}

static void large_from_host(struct setup *setup, bool ipv6)
{
	struct frame_spec spec = {.payload = 50000, .tcp_options = 12, .ipv6 = ipv6};
	static struct frame built;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	frame_build(&spec, &built);
	frame_unsum(&built, (uint32_t)(built.size - built.l4));
	struct virtio_net_hdr vnet = {
	        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	        .gso_type = ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
	        .hdr_len = (uint16_t)built.payload,
	        .gso_size = 1428,
	        .csum_start = (uint16_t)built.l4,
	        .csum_offset = 16,
	};

	host_sends(fd, &vnet, &built);
	run_until(setup, 1); /* in one piece */
	const struct net_frame *frame = &setup->guest.last;

	assert_int_equal(frame->size, built.size);
	assert_memory_equal(setup->guest.bytes, built.bytes, built.size);
	assert_int_equal(frame->gso, ipv6 ? NET_GSO_TCPV6 : NET_GSO_TCPV4);
	assert_int_equal(frame->gso_size, 1428);
	assert_int_equal(frame->hdr_size, built.payload);
	assert_int_equal(frame->csum_start, built.l4);
	assert_true(frame->csum_partial);
	close(fd);
}

static void test_large_packet_from_host_v4(void **state)
{
	large_from_host(*state, false);
}

static void test_large_packet_from_host_v6(void **state)
{
	large_from_host(*state, true);
}

static void test_burst_is_read_to_the_end(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 100};
	struct virtio_net_hdr vnet = {0};
	static struct frame built;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	frame_build(&spec, &built);
	for (unsigned i = 0; i < 300; i++)
		host_sends(fd, &vnet, &built);
	run_until(setup, 300);
	close(fd);
}

/* Every flow arrives, whichever queue the kernel chose, and each flow stays in order. */
static void test_multi_queue(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.udp = true, .payload = 100, .dport = 7};
	struct virtio_net_hdr vnet = {0};
	static struct frame built;
	static uint8_t bytes[FRAME_BUFFER];

	assert_int_equal(open_tap(setup, "tapm0", 4), 0);
	int fd = open_packet("tapm0", 1);

	for (unsigned flow = 0; flow < 64; flow++) {
		spec.sport = (uint16_t)(1000 + flow);
		frame_build(&spec, &built);
		host_sends(fd, &vnet, &built);
	}
	run_until(setup, 64);
	for (unsigned flow = 0; flow < 16; flow++) {
		spec.sport = (uint16_t)(2000 + flow);
		frame_build(&spec, &built);
		assert_int_equal(send_built(setup, &built, (struct net_frame){0}), 0);
		assert_int_equal(receive_packet(fd, &vnet, bytes, sizeof(bytes)), built.size);
		assert_memory_equal(bytes, built.bytes, built.size);
	}
	close(fd);
}

/* ---- waiting ---- */

/* Frame number INDEX of a row: large ones that may wait, and small ones that may not. */
static void send_numbered(int fd, uint8_t index, bool large)
{
	struct frame_spec spec = {.payload = large ? 20000 : 100};
	static struct frame built;
	struct virtio_net_hdr vnet = {0};

	frame_build(&spec, &built);
	built.bytes[60] = index;
	if (large)
		vnet = (struct virtio_net_hdr){
		        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		        .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		        .hdr_len = (uint16_t)built.payload,
		        .gso_size = 1400,
		        .csum_start = (uint16_t)built.l4,
		        .csum_offset = 16,
		};
	host_sends(fd, &vnet, &built);
}

/* Frame 7 comes before the last read of a window when the one before that found nothing. */
void __wrap_net_batch_read(struct net_batch *batch, struct net_batch_op *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		__real_net_batch_read(batch, ops + i, 1);
		if (ops[i].result != -EAGAIN || interloper < 0 || i + 2 != count)
			continue;
		send_numbered(interloper, 7, false);
		interloper = -1;
	}
}

/* The kernel looks again at each read of a window: one may find a frame where the one before found
 * none. Frames 0 to 6 fill windows of 1, 2 and 4 reads; the one of 8 has frame 7 in the last. */
static void test_frame_behind_an_empty_read(void **state)
{
	struct setup *setup = *state;
	uint64_t gaps = count_of("net_tap_rx_gaps");

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	for (uint8_t i = 0; i < 7; i++)
		send_numbered(fd, i, false);
	interloper = fd;
	run_until(setup, 8);
	assert_int_equal(interloper, -1);
	assert_int_equal(count_of("net_tap_rx_gaps"), gaps + 1);
	send_numbered(fd, 8, false); /* and none comes twice */
	run_until(setup, 9);
	for (uint8_t i = 0; i < 9; i++)
		assert_int_equal(setup->guest.order[i], i);
	close(fd);
}

static void turns(struct setup *setup, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		loop_turn(setup->loop, 1000000);
}

/* While a large packet waits nothing is read, and nothing lost; then all come in their order. */
static void test_large_packets_wait(void **state)
{
	struct setup *setup = *state;
	uint64_t held = count_of("net_tap_rx_held");
	struct loop_stats before, after;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	wait_for_ever();
	setup->guest.full = true;
	for (uint8_t i = 0; i < 40; i++)
		send_numbered(fd, i, true);
	run_until_is(setup, &setup->guest.refused, 1);
	/* It sleeps, though the descriptor is readable. */
	loop_get_stats(setup->loop, &before);
	turns(setup, 3);
	loop_get_stats(setup->loop, &after);
	assert_int_equal(after.work_turns, before.work_turns);
	assert_int_equal(setup->guest.refused, 1);
	setup->guest.full = false;
	net_port_ready(&setup->guest.port);
	run_until(setup, 40);
	for (uint8_t i = 0; i < 40; i++)
		assert_int_equal(setup->guest.order[i], i);
	assert_int_equal(count_of("net_tap_rx_held"), held + 1);
	close(fd);
}

static void test_small_frames_do_not_wait(void **state)
{
	struct setup *setup = *state;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	setup->guest.full = true;
	for (uint8_t i = 0; i < 10; i++)
		send_numbered(fd, i, false);
	run_until_is(setup, &setup->guest.refused, 10);
	close(fd);
}

/* Nobody ever makes room: after a time the packet is dropped, and the next ones at once. */
static void test_waiting_ends(void **state)
{
	struct setup *setup = *state;
	uint64_t late = count_of("net_tap_rx_late");

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	setup->guest.full = true;
	for (uint8_t i = 0; i < 20; i++)
		send_numbered(fd, i, true);
	run_until_is(setup, &setup->guest.refused, 21); /* the first one twice */
	assert_int_equal(count_of("net_tap_rx_late"), late + 1);
	setup->guest.full = false; /* and it recovers */
	send_numbered(fd, 20, true);
	run_until(setup, 1);
	wait_for_ever();
	setup->guest.full = true;
	send_numbered(fd, 21, true);
	run_until_is(setup, &setup->guest.refused, 22);
	setup->guest.full = false;
	net_port_ready(&setup->guest.port);
	run_until(setup, 2);
	close(fd);
}

static void test_closing_while_one_waits(void **state)
{
	struct setup *setup = *state;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	int fd = open_packet("tap0", 1);

	setup->guest.full = true;
	wait_for_ever();
	send_numbered(fd, 0, true);
	run_until_is(setup, &setup->guest.refused, 1);
	close(fd); /* and what is torn down complains about timers and work that are left */
}

/* ---- trouble ---- */

static void test_interface_down(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 100};
	static struct frame built;
	uint64_t before = count_of("net_tap_tx_down");

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	frame_build(&spec, &built);
	set_up_flag("tap0", false);
	assert_int_equal(send_built(setup, &built, (struct net_frame){0}), -ENETDOWN);
	assert_int_equal(count_of("net_tap_tx_down"), before + 1);
	set_up_flag("tap0", true);
	assert_int_equal(send_built(setup, &built, (struct net_frame){0}), 0);
}

static void test_kernel_refuses_notes(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 3000};
	static struct frame built;
	uint64_t before = count_of("net_tap_tx_refused");

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	frame_build(&spec, &built);
	/* Passes the wire, which only looks at the bounds: a large packet of another protocol. */
	built.bytes[built.l3 + 9] = 17;
	struct net_frame frame = {.csum_partial = true,
	                          .csum_start = (uint16_t)built.l4,
	                          .csum_offset = 6,
	                          .gso = NET_GSO_TCPV4,
	                          .gso_size = 1448,
	                          .hdr_size = (uint16_t)built.payload};

	assert_int_equal(send_built(setup, &built, frame), -EBADMSG);
	assert_int_equal(count_of("net_tap_tx_refused"), before + 1);
}

static void test_deleted_interface(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 100};
	static struct frame built;
	uint64_t before = count_of("net_tap_gone");
	struct loop_stats stats;

	assert_true(make_tap("tapd0", IFF_TAP | IFF_NO_PI));
	assert_int_equal(open_tap(setup, "tapd0", 1), 0);
	assert_int_equal(system("ip link delete tapd0"), 0);
	uint64_t hang = __real_loop_now(setup->loop) + HANG_NS;

	while (count_of("net_tap_gone") == before && __real_loop_now(setup->loop) < hang)
		loop_turn(setup->loop, HANG_NS);
	assert_int_equal(count_of("net_tap_gone"), before + 1);
	frame_build(&spec, &built);
	assert_int_equal(send_built(setup, &built, (struct net_frame){0}), -ENETDOWN);
	/* The loop rests: the dead descriptor does not wake it. */
	for (unsigned i = 0; i < 3; i++)
		loop_turn(setup->loop, 1000000);
	loop_get_stats(setup->loop, &stats);
	assert_int_equal(stats.work_turns, 0);
}

/* Offloads must not stay on an interface that outlives us. */
static void test_closing_resets_offloads(void **state)
{
	struct setup *setup = *state;
	struct frame_spec spec = {.payload = 50000};
	static struct frame built;

	assert_int_equal(open_tap(setup, "tap0", 1), 0);
	net_tap_close(setup->tap);
	setup->tap = NULL;
	int ctl = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI, .ifr_name = "tap0"};

	assert_return_code(ioctl(ctl, TUNSETIFF, &request), errno);
	int fd = open_packet("tap0", 0);

	frame_build(&spec, &built);
	frame_unsum(&built, (uint32_t)(built.size - built.l4));
	struct virtio_net_hdr vnet = {
	        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
	        .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
	        .hdr_len = (uint16_t)built.payload,
	        .gso_size = 1400,
	        .csum_start = (uint16_t)built.l4,
	        .csum_offset = 16,
	};

	static uint8_t bytes[FRAME_BUFFER];
	struct pollfd wait = {.fd = ctl, .events = POLLIN};
	ssize_t size = 0;

	/* Until the kernel lets it through. */
	for (unsigned waited = 0; waited < HANG_MS && size < 1000; waited += 20) {
		host_sends(fd, &vnet, &built);
		if (poll(&wait, 1, 20) > 0)
			size = read(ctl, bytes, sizeof(bytes));
	}
	assert_int_equal(size, built.payload + 1400); /* a segment: the kernel cut it */
	close(fd);
	close(ctl);
}

static bool enter_namespace(void)
{
	if (unshare(CLONE_NEWNET) == 0)
		return true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

#define tap_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        tap_test(test_missing_interface_is_not_made),
	        tap_test(test_not_a_tap),
	        tap_test(test_busy),
	        tap_test(test_busy_multi_queue),
	        tap_test(test_owned_by_somebody_else),
	        tap_test(test_frame_to_host),
	        tap_test(test_large_packet_to_host),
	        tap_test(test_frame_from_host),
	        tap_test(test_large_packet_from_host_v4),
	        tap_test(test_large_packet_from_host_v6),
	        tap_test(test_burst_is_read_to_the_end),
	        tap_test(test_multi_queue),
	        tap_test(test_frame_behind_an_empty_read),
	        tap_test(test_large_packets_wait),
	        tap_test(test_small_frames_do_not_wait),
	        tap_test(test_waiting_ends),
	        tap_test(test_closing_while_one_waits),
	        tap_test(test_interface_down),
	        tap_test(test_kernel_refuses_notes),
	        tap_test(test_deleted_interface),
	        tap_test(test_closing_resets_offloads),
	};

	log_set_level(LOG_LEVEL_ERROR);
	if (!enter_namespace() || !make_tap("tap0", IFF_TAP | IFF_NO_PI) ||
	    !make_tap("tapm0", IFF_TAP | IFF_NO_PI | IFF_MULTI_QUEUE)) {
		printf("skipped: a TAP in a network namespace of our own cannot be made (needs "
		       "root, or user namespaces and access to /dev/net/tun): %s\n",
		       strerror(errno));
		return SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL); /* the TAPs go with the namespace */
}
