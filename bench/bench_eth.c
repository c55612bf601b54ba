// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the Ethernet path costs, against limits measured in the same run.
 *
 * The driver model stands in for the guest: it posts descriptors and takes interrupts as a guest
 * does, at native speed. Measurement and limit take turns, round by round, on the same TAP in a
 * private network namespace, and the middle of the rounds' ratios counts, so that other load on
 * the machine hits both. The column CPU compares the CPU time of the server with that of the limit;
 * it says the same on an idle machine, and more on a busy one, where waiting costs turns.
 *
 *	transmit	frames to the TAP; limit: the same frames written to the TAP directly
 *	receive		a full TAP queue drained; limit: the same queue read directly. The server is
 *			stopped while the queue is filled, so that the filling costs nobody
 *	doorbell	CPU time of the server for a doorbell; limit: of one receive of such a
 *message system calls	of the server for a frame; limit: one write each idle		wake-ups of
 *the server; limit: timers that are due
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"
#include "harness.h"
#include "nic.h"
#include "peer.h"
#include "server.h"

#define RX_BURST         6000 /* frames in the TAP's queue */
#define DOORBELLS        100000
#define STRACE_FRAMES    20000
#define IDLE_MS          3000
#define STATS_MS         1000
#define TX_PER_DOORBELL  32 /* plain frames */
#define TSO_PER_DOORBELL 4

/* ---- the two ends ---- */

struct target {
	struct server *server;
	struct nic *nic;
};

static void target_open(const struct bench *bench, struct target *target)
{
	struct server_options options = {
	        .profile = "generic-100g", .tap = bench->tap, .stats_ms = STATS_MS};
	struct nic_options nic;
	int err = server_spawn(&target->server, &options);

	if (err)
		bench_die("server", err);
	nic = NIC_OPTIONS(target->server->socket);
	nic.pairs = 1;
	nic.brief = true;
	nic.tx_log2 = 12;
	nic.rx_log2 = 13;
	err = nic_start(&target->nic, &nic);
	if (err)
		bench_die("NIC", err);
}

static void target_close(struct target *target)
{
	nic_close(target->nic);
	if (server_stop(target->server))
		bench_die("server", -ECHILD);
}

static int raw_open(const struct bench *bench)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	memcpy(ifr.ifr_name, bench->tap, sizeof(bench->tap));
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr) < 0 ||
	    ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) < 0)
		bench_die("TAP", -errno);
	return fd;
}

static void wait_carrier(const struct bench *bench)
{
	struct peer peer = {0};

	memcpy(peer.tap, bench->tap, sizeof(peer.tap));
	if (peer_wait_carrier(&peer, 5000))
		bench_die("carrier of the TAP", -ETIMEDOUT);
}

/* ---- transmit ---- */

#define WARM_UP 0.05 /* seconds */

struct load {
	size_t size;
	uint16_t mss; /* 0: a plain frame */
};

static size_t make_frame(struct bench *bench, const struct load *load)
{
	static const uint8_t to[6] = {2, 0, 0, 0, 0xcc, 9}, from[6] = {2, 0, 0, 0, 0xaa, 1};
	/* To somebody else: the host's stack drops it at once. */
	struct flow flow = flow_make(load->mss ? 4 : 0, FRAME_PROTO_TCP, to, from);

	return frame_build(bench->frame, &flow, load->size - flow_payload(&flow), 1,
	                   load->mss ? FRAME_CSUM_TSO : FRAME_CSUM_FULL);
}

/* Sends the packet again and again for SECONDS. Returns how long it took. */
static double tx_pass(struct target *target, const struct nic_packet *packet, double seconds)
{
	struct nic_pair *pair = &target->nic->pair[0];
	unsigned batch = packet->mss ? TSO_PER_DOORBELL : TX_PER_DOORBELL;
	double start = bench_now(), end;

	while ((end = bench_now()) < start + seconds) {
		unsigned posted = 0;
		int err = 0;

		while (posted < batch && nic_tx_post(target->nic, pair, packet) == 0)
			posted++;
		if (posted)
			err = nic_tx_ring(target->nic, pair);
		else
			err = nic_pair_wait(target->nic, pair, nic_now_ms() + 10000);
		if (err < 0 || (err = nic_tx_reap(target->nic, pair, 256)) < 0)
			bench_die("transmit", err);
	}
	return end - start;
}

static struct bench_sample tx_model(struct bench *bench, const void *arg)
{
	const struct load *load = arg;
	struct nic_packet packet = {.mss = load->mss, .hdr_size = 54, .fragment = 32768};
	struct target target;
	struct nic_pair *pair;
	struct bench_sample sample;
	double cpu, seconds;
	uint64_t before;

	target_open(bench, &target);
	pair = &target.nic->pair[0];
	packet.size = make_frame(bench, load);
	packet.resident = pair->tx.data;
	memcpy(ram_at(&target.nic->ram, packet.resident), bench->frame, packet.size);
	tx_pass(&target, &packet, WARM_UP);
	cpu = bench_server_cpu(target.server);
	before = pair->tx_packets;
	seconds = tx_pass(&target, &packet, bench->seconds);
	sample = bench_rate((double)(pair->tx_packets - before), seconds,
	                    bench_server_cpu(target.server) - cpu);
	target_close(&target);
	return sample;
}

static struct bench_sample tx_raw(struct bench *bench, const void *arg)
{
	const struct load *load = arg;
	size_t size = make_frame(bench, load);
	struct virtio_net_hdr hdr = {0};
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {bench->frame, size}};
	int fd = raw_open(bench);
	uint64_t count = 0;
	double start, end, cpu;

	if (load->mss) {
		hdr = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		                              .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		                              .hdr_len = 54,
		                              .gso_size = load->mss,
		                              .csum_start = 34,
		                              .csum_offset = 16};
		bench->frame[16] = (uint8_t)((size - 14) >> 8); /* the whole packet's length */
		bench->frame[17] = (uint8_t)(size - 14);
	}
	wait_carrier(bench);
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
	start = bench_now();
	while ((end = bench_now()) < start + bench->seconds) {
		for (int i = 0; i < TX_PER_DOORBELL; i++)
			if (writev(fd, iov, 2) < 0)
				bench_die("write to the TAP", -errno);
		count += TX_PER_DOORBELL;
	}
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	close(fd);
	return bench_rate((double)count, end - start, cpu);
}

/* ---- receive ---- */

/* Puts RX_BURST frames into the TAP's queue. */
static void fill_tap(const struct bench *bench, const uint8_t *frame, size_t size)
{
	struct sockaddr_ll addr = {.sll_family = AF_PACKET};
	int one = 1, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	addr.sll_ifindex = (int)if_nametoindex(bench->tap);
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0 ||
	    bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		bench_die("packet socket", -errno);
	for (int i = 0; i < RX_BURST; i++)
		if (send(fd, frame, size, 0) < 0)
			bench_die("send", -errno);
	close(fd);
}

static size_t make_rx_frame(struct bench *bench, const uint8_t mac[6])
{
	static const uint8_t from[6] = {2, 0, 0, 0, 0xbb, 1};
	struct flow flow = flow_make(4, FRAME_PROTO_UDP, mac, from);

	return frame_build(bench->frame, &flow, 1514 - flow_payload(&flow), 1, FRAME_CSUM_FULL);
}

/* Queues RX_BURST frames while the server is stopped, lets it go on, and takes them. Returns the
 * seconds from then on. */
static double rx_pass(struct bench *bench, struct target *target, size_t size)
{
	struct nic_pair *pair = &target->nic->pair[0];
	uint64_t end = pair->rx_frames + RX_BURST;
	double start;
	int status;

	kill(target->server->pid, SIGSTOP);
	waitpid(target->server->pid, &status, WUNTRACED);
	fill_tap(bench, bench->frame, size);
	start = bench_now();
	kill(target->server->pid, SIGCONT);
	while (pair->rx_frames < end) {
		int err = nic_rx_take(target->nic, pair, NULL);

		if (err == 0)
			err = nic_pair_wait(target->nic, pair, nic_now_ms() + 10000);
		if (err < 0 || bench_now() > start + 10)
			bench_die("receive", err < 0 ? err : -ETIMEDOUT);
	}
	return bench_now() - start;
}

static struct bench_sample rx_model(struct bench *bench, const void *unused)
{
	struct target target;
	struct bench_sample sample;
	double seconds, cpu;
	size_t size;

	(void)unused;
	target_open(bench, &target);
	wait_carrier(bench);
	size = make_rx_frame(bench, target.nic->mac);
	/* Twice around the ring: a guest's buffers have been used before. */
	rx_pass(bench, &target, size);
	rx_pass(bench, &target, size);
	cpu = bench_server_cpu(target.server);
	seconds = rx_pass(bench, &target, size);
	sample = bench_rate(RX_BURST, seconds, bench_server_cpu(target.server) - cpu);
	target_close(&target);
	return sample;
}

static struct bench_sample rx_raw(struct bench *bench, const void *unused)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0xaa, 1};
	static uint8_t buffer[70000];
	size_t size = make_rx_frame(bench, mac);
	int fd = raw_open(bench);
	unsigned count = 0;
	double start, end, cpu;

	(void)unused;
	wait_carrier(bench);
	fill_tap(bench, bench->frame, size);
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
	start = bench_now();
	while (read(fd, buffer, sizeof(buffer)) > 0)
		count++;
	end = bench_now();
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	close(fd);
	return bench_rate(count, end - start, cpu);
}

/* ---- doorbell ---- */

/* Microseconds of server CPU for one doorbell. */
static struct bench_sample doorbell_model(struct bench *bench, const void *unused)
{
	struct target target;
	struct nic_pair *pair;
	double before, after;

	(void)unused;
	target_open(bench, &target);
	pair = &target.nic->pair[0];
	nic_fw_status(target.nic);
	before = bench_server_cpu(target.server);
	for (int i = 0; i < DOORBELLS; i++)
		if (nic_tx_ring(target.nic, pair))
			bench_die("doorbell", -EPIPE);
	nic_fw_status(target.nic); /* everything before it is done */
	after = bench_server_cpu(target.server);
	target_close(&target);
	return (struct bench_sample){.value = (after - before) * 1e6 / DOORBELLS};
}

struct receiver {
	int fd;
	double microseconds; /* of CPU, all messages */
};

static void *receive_all(void *arg)
{
	struct receiver *receiver = arg;
	uint8_t message[40], control[1032];
	struct iovec iov = {message, sizeof(message)};

	for (;;) {
		struct msghdr msg = {.msg_iov = &iov,
		                     .msg_iovlen = 1,
		                     .msg_control = control,
		                     .msg_controllen = sizeof(control)};

		if (recvmsg(receiver->fd, &msg, MSG_CMSG_CLOEXEC) <= 0)
			break;
	}
	receiver->microseconds = bench_clock(CLOCK_THREAD_CPUTIME_ID) * 1e6;
	return NULL;
}

/* Microseconds of CPU for one recvmsg() of a message as large as a doorbell's. */
static struct bench_sample doorbell_raw(struct bench *bench, const void *unused)
{
	uint8_t message[40] = {0};
	struct receiver receiver;
	pthread_t thread;
	int fds[2];

	(void)bench;
	(void)unused;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		bench_die("socketpair", -errno);
	receiver.fd = fds[1];
	if (pthread_create(&thread, NULL, receive_all, &receiver))
		bench_die("thread", -EAGAIN);
	for (int i = 0; i < DOORBELLS; i++)
		if (send(fds[0], message, sizeof(message), 0) < 0)
			bench_die("send", -errno);
	close(fds[0]);
	pthread_join(thread, NULL);
	close(fds[1]);
	return (struct bench_sample){.value = receiver.microseconds / DOORBELLS};
}

/* ---- system calls ---- */

/* System calls for a frame, or a negative number when they cannot be counted. */
static double calls_per_frame(struct bench *bench)
{
	const struct load load = {1514, 0};
	struct nic_packet packet = {0};
	struct target target;
	char output[128];
	double total;
	pid_t pid;

	target_open(bench, &target);
	packet.size = make_frame(bench, &load);
	packet.resident = target.nic->pair[0].tx.data;
	memcpy(ram_at(&target.nic->ram, packet.resident), bench->frame, packet.size);
	snprintf(output, sizeof(output), "%s/strace", target.server->dir);
	pid = bench_strace_start(target.server->pid, output);
	for (int sent = 0; pid > 0 && sent < STRACE_FRAMES;) {
		struct nic_pair *pair = &target.nic->pair[0];

		for (int i = 0; i < TX_PER_DOORBELL; i++, sent++)
			if (nic_tx_post(target.nic, pair, &packet) < 0)
				break;
		if (nic_tx_ring(target.nic, pair) || nic_tx_reap(target.nic, pair, 256) < 0)
			bench_die("transmit", -EIO);
		if (nic_queue_room(&pair->tx) < TX_PER_DOORBELL && nic_tx_flush(target.nic, pair))
			bench_die("transmit", -EIO);
	}
	if (pid > 0) {
		if (nic_tx_flush(target.nic, &target.nic->pair[0]))
			bench_die("transmit", -EIO);
		kill(pid, SIGINT);
		waitpid(pid, NULL, 0);
	}
	total = pid > 0 ? bench_strace_total(output) : -1;
	unlink(output);
	target_close(&target);
	return total / STRACE_FRAMES;
}

/* ---- idle ---- */

static double idle_wakeups(struct bench *bench)
{
	struct target target;
	int64_t before;
	double wakeups;

	target_open(bench, &target);
	nic_fw_status(target.nic);
	before = server_wakeups(target.server);
	poll(NULL, 0, IDLE_MS);
	wakeups = (double)(server_wakeups(target.server) - before) * 1000 / IDLE_MS;
	target_close(&target);
	return wakeups;
}

/* ---- rows ---- */

static void run_tx(struct bench *bench, struct bench_row *row)
{
	static const struct load frame = {1514, 0};

	bench_take_turns(bench, row, tx_model, tx_raw, &frame);
}

static void run_tso(struct bench *bench, struct bench_row *row)
{
	static const struct load segment = {65160 + 54, 1448};

	bench_take_turns(bench, row, tx_model, tx_raw, &segment);
}

static void run_rx(struct bench *bench, struct bench_row *row)
{
	bench_take_turns(bench, row, rx_model, rx_raw, NULL);
}

static void run_doorbell(struct bench *bench, struct bench_row *row)
{
	bench_take_turns(bench, row, doorbell_model, doorbell_raw, NULL);
}

static void run_calls(struct bench *bench, struct bench_row *row)
{
	row->measured = calls_per_frame(bench);
	row->limit = 1;
	if (row->measured < 0)
		row->missing = "not measured: strace is missing or may not watch";
}

static void run_idle(struct bench *bench, struct bench_row *row)
{
	row->measured = idle_wakeups(bench);
	/* The counters' block and the stats file, each once an interval. */
	row->limit = 2 * 1000.0 / STATS_MS;
}

static const struct bench_entry entries[] = {
        {{"tx-1514", "driver model to TAP, 1514-byte frames", "k/s", .aim = 0.90}, run_tx},
        {{"tx-64k", "driver model to TAP, 64 KiB TSO packets", "k/s", .aim = 0.85}, run_tso},
        {{"rx-1514", "TAP to driver model, 1514-byte frames", "k/s", .aim = 0.90}, run_rx},
        {{"doorbell", "doorbell, server CPU; one recvmsg", "us", .aim = 1.0, .cost = true},
         run_doorbell},
        {{"syscalls", "system calls a transmitted frame; one write", "", .aim = 0.90, .cost = true},
         run_calls},
        {{"idle", "wake-ups when idle; timers due", "/s", .aim = 1.0, .cost = true}, run_idle},
};

/* Makes the TAP in a namespace of its own. Returns false, with the reason printed, when it may not.
 */
static bool prepare(struct bench *bench)
{
	char reason[200];
	struct peer peer;
	int err;

	if (!peer_prepare(reason, sizeof(reason))) {
		fprintf(stderr, "bench_eth: skipped: %s\n", reason);
		return false;
	}
	err = peer_open(&peer, false);
	if (err)
		bench_die("TAP", err);
	memcpy(bench->tap, peer.tap, sizeof(bench->tap));
	close(peer.fd); /* a listener would make every frame dearer */
	return true;
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
	        .name = "eth",
	        .what = "What the Ethernet path costs, against limits measured in the same run.",
	        .entries = entries,
	        .count = sizeof(entries) / sizeof(entries[0]),
	        .prepare = prepare,
	};

	return bench_main(argc, argv, &program);
}
