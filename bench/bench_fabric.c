// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What verbs and Ethernet cost between servers, against limits measured in the same run.
 *
 * Driver models stand in for the guests, one for each server. Measurement and limit take turns and
 * the middle of the rounds' ratios counts, so that other load on the machine hits both. The column
 * CPU compares the CPU time of all servers with that of both ends of the limit, for the same work;
 * it says more than the ratio where there are fewer CPUs than the three programs that take part.
 *
 *	write-SIZE	WRITEs over the mesh; limit: one TCP flow on loopback
 *	latency		of an 8-byte WRITE over the mesh, less that of one within the NIC: what
 *			the fabric adds to doorbell and completion; limit: a TCP round trip
 *			between processes that sleep in epoll_wait() as the servers do
 *	latency-all	the whole of it; limit: the same hops by bare sockets, a UNIX socket to a
 *			process that passes it on by TCP, and back
 *	rate-32		8-byte WRITEs, 32 a doorbell; limit: a TCP flow with a send() for each
 *	eth-MTU		TCP segments of 64 KiB over the mesh, cut to MTU where they arrive;
 *			limit: one TCP flow
 *	nodes-N		CPU of all servers for a WRITE of 4 KiB to each node in turn; limit: of 2
 *	icrc		time of the ICRC of a 4 KiB packet, made and checked; limit: 5 % of what
 *			both servers spend on the packet
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frame.h"
#include "harness.h"
#include "net/icrc.h"
#include "rdma.h"
#include "tcp.h"

#define PD          1
#define PAGE        1 /* doorbell page: a process */
#define NODES_MAX   64
#define WARM_UP     0.05
#define BUFFER      (16u << 20)
#define NODES_TIMES 3 /* as long as other measurements */
#define NAP_US      50
#define LATENCY_OPS 3000
#define MESSAGE     64 /* bytes of a TCP message that stands for a WRITE of 8 */
#define MTU_JUMBO   9000
#define ICRC_BYTES  (20 + 8 + 12 + 4096) /* IPv4, UDP, BTH, payload */
#define ICRC_OPS    100000

static void ok(int err, const char *what)
{
	if (err)
		bench_die(what, err < 0 ? err : -EPROTO);
}

static void nap(void)
{
	const struct timespec time = {.tv_nsec = NAP_US * 1000};

	nanosleep(&time, NULL);
}

/* ---- servers ---- */

struct node {
	struct server *server;
	struct nic *nic;
	struct rdma *rdma;
	struct rdma_cq *cq;
	struct rdma_mr mr;
};

/* The last node sends to all others. */
struct fabric {
	unsigned count;
	struct node node[NODES_MAX];
	struct rdma_qp *qp[NODES_MAX], *peer[NODES_MAX];
	unsigned qps;
};

struct fabric_config {
	unsigned nodes; /* 1: its QP is its own peer */
	size_t buffer;
	uint32_t mtu;
	bool roce, ethernet;
};

static void start_server(struct node *node, const struct fabric_config *config, unsigned index,
                         uint16_t port)
{
	char backend[48] = "roce", mac[18], tap[16];
	const char *const args[] = {"--backend", backend, NULL};
	struct server_options options = {
	        .profile = "generic-100g", .stats_ms = 1000, .args = args, .mac = mac};

	snprintf(mac, sizeof(mac), "02:00:00:00:ab:%02x", (uint8_t)(index + 1));
	if (config->roce) {
		snprintf(tap, sizeof(tap), "fab%u", index);
		options.tap = tap;
	} else if (index == 0) {
		snprintf(backend, sizeof(backend), "tcp:manager:%u", port);
	} else {
		snprintf(backend, sizeof(backend), "tcp:worker:127.0.0.1:%u", port);
	}
	ok(server_spawn(&node->server, &options), "server");
}

static void node_open(struct node *node, const struct fabric_config *config)
{
	const struct rdma_cq_config cq = {.log2 = 16, .eq = 2, .page = PAGE};
	struct rdma_mr_config mr = {.pd = PD, .flags = MRF_ALL, .size = config->buffer};
	struct nic_options nic = NIC_OPTIONS(node->server->socket);

	nic.brief = true;
	nic.pairs = config->ethernet ? 1 : 4;
	nic.mtu = config->mtu;
	/* More than a window, and little enough to be used again soon: fresh memory is slow. */
	nic.rx_log2 = !config->ethernet ? 6 : config->mtu > 1500 ? 9 : 11;
	nic.ram_size = config->ethernet ? 256u << 20 : 64u << 20;
	ok(nic_start(&node->nic, &nic), "NIC");
	if (config->ethernet)
		return;
	ok(rdma_open(&node->rdma, node->nic), "RDMA function");
	ok(rdma_cq_create(node->rdma, &node->cq, &cq), "CQ");
	ok(rdma_mr_create(node->rdma, &node->mr, &mr), "region");
	memset(rdma_mr_at(&node->mr, 0), 1, config->buffer);
}

static void make_qps(struct fabric *fabric, const struct fabric_config *config)
{
	struct node *from = &fabric->node[fabric->count - 1];
	struct rdma_path path = RDMA_PATH;
	struct rdma_qp_config qp = {.pd = PD, .page = PAGE, .sq_log2 = 9, .rq_log2 = 1};

	path.pmtu = config->mtu > 4200 ? 12 : 10;
	fabric->qps = fabric->count > 1 ? fabric->count - 1 : 1;
	for (unsigned i = 0; i < fabric->qps; i++) {
		struct node *to = &fabric->node[i];

		qp.sq_cq = qp.rq_cq = from->cq;
		ok(rdma_qp_create(from->rdma, &fabric->qp[i], &qp), "QP");
		fabric->peer[i] = fabric->qp[i];
		qp.sq_cq = qp.rq_cq = to->cq;
		if (to != from)
			ok(rdma_qp_create(to->rdma, &fabric->peer[i], &qp), "QP");
		ok(rdma_qp_connect(fabric->qp[i], fabric->peer[i], &path), "QP");
	}
}

static void fabric_open(struct fabric *fabric, const struct fabric_config *config)
{
	uint16_t port = bench_tcp_port();

	*fabric = (struct fabric){.count = config->nodes};
	for (unsigned i = 0; i < config->nodes; i++)
		start_server(&fabric->node[i], config, i, port);
	for (unsigned i = 0; i < config->nodes; i++)
		node_open(&fabric->node[i], config);
	if (!config->ethernet)
		make_qps(fabric, config);
}

static void fabric_close(struct fabric *fabric)
{
	for (unsigned i = 0; i < fabric->qps; i++) {
		if (fabric->peer[i] != fabric->qp[i])
			rdma_qp_free(fabric->peer[i]);
		rdma_qp_free(fabric->qp[i]);
	}
	for (unsigned i = 0; i < fabric->count; i++) {
		rdma_cq_free(fabric->node[i].cq);
		if (fabric->node[i].rdma)
			rdma_free(fabric->node[i].rdma);
		nic_close(fabric->node[i].nic);
	}
	/* Workers first: they would miss the manager. */
	for (unsigned i = fabric->count; i-- > 0;)
		ok(server_stop(fabric->node[i].server), "server");
}

static double fabric_cpu(const struct fabric *fabric)
{
	double cpu = 0;

	for (unsigned i = 0; i < fabric->count; i++)
		cpu += bench_server_cpu(fabric->node[i].server);
	return cpu;
}

/* ---- WRITEs ---- */

struct load {
	uint32_t size;
	unsigned batch; /* requests for a doorbell; the last one is signalled */
	unsigned depth; /* requests outstanding, each with buffers of its own */
};

static unsigned take(struct rdma_cq *cq)
{
	struct rdma_wc wc;
	unsigned count = 0;
	int got;

	while ((got = rdma_poll(cq, &wc)) == 1) {
		if (wc.status)
			bench_die("completion with an error", -EIO);
		count++;
	}
	ok(got, "poll");
	return count;
}

/* Requests in the queue that have not completed. */
static unsigned outstanding(const struct rdma_qp *qp)
{
	return (qp->sq.prod - qp->sq.cons) & ((1u << qp->sq.ring.log2) - 1);
}

/* Posts a batch on QP INDEX when it has room. */
static bool post(struct fabric *fabric, unsigned index, const struct load *load)
{
	const struct rdma_mr *src = &fabric->node[fabric->count - 1].mr;
	const struct rdma_mr *dst = &fabric->node[index].mr;
	struct rdma_qp *qp = fabric->qp[index];
	struct rdma_send send = {.op = OP_WRITE, .num_sge = 1, .rkey = dst->key};

	if (outstanding(qp) + load->batch > load->depth)
		return false;
	for (unsigned i = 1; i <= load->batch; i++) {
		size_t slot = (size_t)(qp->sq.prod % load->depth) * load->size;

		send.flags = i == load->batch ? WQE_SIGNALED : 0;
		send.sge[0] = rdma_sge(src, slot, load->size);
		send.va = dst->va + slot;
		ok(rdma_post_send(qp, &send), "post");
	}
	ok(rdma_ring_send(qp), "doorbell");
	return true;
}

/* Runs the load on all QPs for SECONDS and waits for the rest. Returns WRITEs a second, and in CPU
 * the us that the servers spent on one. */
static double run_load(struct fabric *fabric, const struct load *load, double seconds, double *cpu)
{
	struct rdma_cq *cq = fabric->node[fabric->count - 1].cq;
	double start = bench_now(), cpu_before = fabric_cpu(fabric);
	uint64_t posted = 0;

	while (bench_now() < start + seconds) {
		bool any = take(cq) > 0;

		for (unsigned i = 0; i < fabric->qps; i++)
			if (post(fabric, i, load)) {
				any = true;
				posted += load->batch;
			}
		if (!any)
			nap();
	}
	for (unsigned i = 0; i < fabric->qps; i++)
		while (outstanding(fabric->qp[i]))
			if (!take(cq))
				nap();
	seconds = bench_now() - start;
	*cpu = (fabric_cpu(fabric) - cpu_before) * 1e6 / (double)posted;
	return (double)posted / seconds;
}

static double write_load(double seconds, const struct fabric_config *config,
                         const struct load *load, double *cpu)
{
	static struct fabric fabric;
	double per_second;

	fabric_open(&fabric, config);
	run_load(&fabric, load, WARM_UP, cpu);
	per_second = run_load(&fabric, load, seconds, cpu);
	fabric_close(&fabric);
	return per_second;
}

static struct bench_sample mesh_bandwidth(struct bench *bench, const void *arg)
{
	const struct fabric_config config = {.nodes = 2, .buffer = BUFFER, .mtu = 1500};
	const struct load *load = arg;
	double cpu, per_second = write_load(bench->seconds, &config, load, &cpu);

	return (struct bench_sample){per_second * load->size / 1e9, cpu};
}

static struct bench_sample mesh_rate(struct bench *bench, const void *arg)
{
	const struct fabric_config config = {.nodes = 2, .buffer = BUFFER, .mtu = 1500};
	double cpu, per_second = write_load(bench->seconds, &config, arg, &cpu);

	return (struct bench_sample){per_second / 1000, cpu};
}

static struct bench_sample tcp_bandwidth(struct bench *bench, const void *arg)
{
	const struct load *load = arg;
	double cpu, per_second = bench_tcp_flow(bench->seconds, load->size, &cpu);

	return (struct bench_sample){per_second * load->size / 1e9, cpu};
}

static struct bench_sample tcp_rate(struct bench *bench, const void *arg)
{
	double cpu, per_second = bench_tcp_flow(bench->seconds, MESSAGE, &cpu);

	(void)arg;
	return (struct bench_sample){per_second / 1000, cpu};
}

static void run_write_64k(struct bench *bench, struct bench_row *row)
{
	static const struct load load = {64 << 10, 16, 128};

	bench_take_turns(bench, row, mesh_bandwidth, tcp_bandwidth, &load);
}

static void run_write_1m(struct bench *bench, struct bench_row *row)
{
	static const struct load load = {1 << 20, 1, 16};

	bench_take_turns(bench, row, mesh_bandwidth, tcp_bandwidth, &load);
}

static void run_rate(struct bench *bench, struct bench_row *row)
{
	static const struct load load = {8, 32, 256};

	bench_take_turns(bench, row, mesh_rate, tcp_rate, &load);
}

/* ---- latency ---- */

/* The middle of the WRITEs' durations, in us; the program sleeps until the event. */
static double write_latency(unsigned nodes)
{
	const struct fabric_config config = {.nodes = nodes, .buffer = RAM_PAGE, .mtu = 1500};
	static const struct load load = {8, 1, 1};
	static double seconds[LATENCY_OPS];
	static struct fabric fabric;
	struct node *from;
	double cpu;

	fabric_open(&fabric, &config);
	from = &fabric.node[nodes - 1];
	run_load(&fabric, &load, WARM_UP, &cpu);
	for (unsigned i = 0; i < LATENCY_OPS; i++) {
		double start;

		ok(rdma_cq_arm(from->cq, false), "arm");
		start = bench_now();
		post(&fabric, 0, &load);
		while (!take(from->cq))
			if (rdma_events_wait(from->rdma, 2, 1000) < 0)
				bench_die("event", -EPROTO);
		seconds[i] = bench_now() - start;
	}
	fabric_close(&fabric);
	return bench_median(seconds, LATENCY_OPS) * 1e6;
}

static struct bench_sample latency_added(struct bench *bench, const void *arg)
{
	double within = write_latency(1);

	(void)bench, (void)arg;
	return (struct bench_sample){.value = write_latency(2) - within};
}

static struct bench_sample latency_all(struct bench *bench, const void *arg)
{
	(void)bench, (void)arg;
	return (struct bench_sample){.value = write_latency(2)};
}

static struct bench_sample round_trip(struct bench *bench, const void *arg)
{
	const bool *relayed = arg;

	(void)bench;
	return (struct bench_sample){.value = bench_tcp_round_trip(*relayed)};
}

static void run_latency(struct bench *bench, struct bench_row *row)
{
	bool all = strcmp(row->name, "latency-all") == 0;

	bench_take_turns(bench, row, all ? latency_all : latency_added, round_trip, &all);
}

/* ---- Ethernet ---- */

#define ETH_WINDOW  (2u << 20) /* bytes that may be under way, or a TCP sender's worth */
#define ETH_STALL_S 0.02       /* ... are lost after that long */

struct stream {
	struct node *from, *to;
	struct nic_packet packet;
	unsigned mtu;
	uint64_t sent, received, lost; /* bytes of payload */
	double heard;                  /* when something arrived last */
};

static void stream_prepare(struct bench *bench, struct stream *stream)
{
	struct nic *nic = stream->from->nic;
	struct flow flow = flow_make(4, FRAME_PROTO_TCP, stream->to->nic->mac, nic->mac);
	size_t size = frame_build(bench->frame, &flow, 65000, 1, FRAME_CSUM_TSO);

	stream->packet = (struct nic_packet){.mss = (uint16_t)(stream->mtu - 40),
	                                     .hdr_size = 54,
	                                     .fragment = 32768,
	                                     .size = size,
	                                     .resident = nic->pair[0].tx.data};
	memcpy(ram_at(&nic->ram, stream->packet.resident), bench->frame, size);
}

static bool stream_receive(struct stream *stream)
{
	struct nic *nic = stream->to->nic;
	struct nic_pair *pair = &nic->pair[0];
	uint64_t before = pair->rx_frames;
	int got;

	while ((got = nic_rx_take(nic, pair, NULL)) == 1)
		;
	if (got < 0)
		bench_die("receive", got);
	if (pair->rx_frames == before)
		return false;
	ok(nic_rx_fill(nic, pair), "receive buffers");
	stream->received += (pair->rx_frames - before) * stream->packet.mss;
	stream->heard = bench_now();
	return true;
}

static bool stream_send(struct stream *stream)
{
	struct nic *nic = stream->from->nic;
	struct nic_pair *pair = &nic->pair[0];
	bool any = false;
	int err;

	while (stream->sent < stream->received + stream->lost + ETH_WINDOW &&
	       nic_tx_post(nic, pair, &stream->packet) == 0) {
		stream->sent += 65000;
		any = true;
	}
	err = any ? nic_tx_ring(nic, pair) : 0;
	if (err < 0 || (err = nic_tx_reap(nic, pair, 256)) < 0)
		bench_die("transmit", err);
	return any;
}

static void stream_run(struct stream *stream, double seconds)
{
	double start = bench_now();

	stream->heard = start;
	while (bench_now() < start + seconds) {
		bool any = stream_receive(stream);

		if (bench_now() > stream->heard + ETH_STALL_S) {
			stream->lost = stream->sent - stream->received;
			stream->heard = bench_now();
		}
		if (!stream_send(stream) && !any)
			nap();
	}
}

static struct bench_sample mesh_ethernet(struct bench *bench, const void *arg)
{
	const struct fabric_config config = {
	        .nodes = 2, .mtu = *(const unsigned *)arg, .ethernet = true};
	static struct fabric fabric;
	struct stream stream = {.mtu = config.mtu};
	double cpu, start;
	uint64_t before;

	fabric_open(&fabric, &config);
	stream.from = &fabric.node[1];
	stream.to = &fabric.node[0];
	stream_prepare(bench, &stream);
	/* Until all buffers have been used. */
	for (start = bench_now(); stream.received < BUFFER && bench_now() < start + 5;)
		stream_run(&stream, WARM_UP);
	before = stream.received;
	cpu = fabric_cpu(&fabric);
	start = bench_now();
	stream_run(&stream, bench->seconds);
	before = stream.received - before;
	start = bench_now() - start;
	cpu = fabric_cpu(&fabric) - cpu;
	fabric_close(&fabric);
	if (!before)
		bench_die("Ethernet: nothing arrived", -EPROTO);
	return (struct bench_sample){(double)before / start / 1e9, cpu * 65536e6 / (double)before};
}

static struct bench_sample tcp_64k(struct bench *bench, const void *arg)
{
	static const struct load load = {64 << 10, 1, 1};

	(void)arg;
	return tcp_bandwidth(bench, &load);
}

static void run_ethernet(struct bench *bench, struct bench_row *row)
{
	unsigned mtu = (unsigned)strtoul(strchr(row->name, '-') + 1, NULL, 10);

	bench_take_turns(bench, row, mesh_ethernet, tcp_64k, &mtu);
}

/* ---- ICRC ---- */

/* ns for the ICRC of one packet. */
static double icrc_time(void)
{
	static uint8_t packet[ICRC_BYTES] = {0x45};
	volatile uint32_t sum = 0;
	double start = bench_clock(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned i = 0; i < ICRC_OPS; i++) {
		packet[ICRC_BYTES - 1] = (uint8_t)i;
		sum = sum + net_icrc(packet, sizeof(packet));
	}
	return (bench_clock(CLOCK_THREAD_CPUTIME_ID) - start) * 1e9 / ICRC_OPS;
}

/* Two TAPs and a bridge in a private namespace. */
static bool make_bridge(char *reason, size_t size)
{
	static const char commands[] =
	        "ip link set lo up && ip link add fabbr type bridge mcast_snooping 0 && "
	        "ip link set fabbr mtu 9216 up && for i in 0 1; do "
	        "ip tuntap add dev fab$i mode tap && "
	        "ip link set fab$i mtu 9216 master fabbr up || exit; done";

	if (!peer_prepare(reason, size))
		return false;
	if (system(commands) == 0) /* NOLINT(cert-env33-c): a fixed text */
		return true;
	snprintf(reason, size, "not measured: no bridge of two TAPs");
	return false;
}

static struct bench_sample packet_cost(struct bench *bench, const void *arg)
{
	const struct fabric_config config = {
	        .nodes = 2, .buffer = BUFFER, .mtu = MTU_JUMBO, .roce = true};
	static const struct load load = {64 << 10, 4, 16};
	double cpu;

	(void)arg;
	write_load(bench->seconds, &config, &load, &cpu);
	return (struct bench_sample){.value = cpu * 1000 / 16 * 0.05};
}

static struct bench_sample icrc_cost(struct bench *bench, const void *arg)
{
	(void)bench, (void)arg;
	return (struct bench_sample){.value = 2 * icrc_time()};
}

static void run_icrc(struct bench *bench, struct bench_row *row)
{
	static char reason[160];

	if (make_bridge(reason, sizeof(reason)))
		bench_take_turns(bench, row, icrc_cost, packet_cost, NULL);
	else
		row->missing = reason;
}

/* ---- many nodes ---- */

static struct bench_sample cost_of_nodes(struct bench *bench, const void *arg)
{
	const struct fabric_config config = {
	        .nodes = *(const unsigned *)arg, .buffer = 256 << 10, .mtu = 1500};
	const struct load load = {4096, 8, 16};
	double cpu;

	/* Long enough for what starting that many servers leaves to do not to count. */
	write_load(NODES_TIMES * bench->seconds, &config, &load, &cpu);
	return (struct bench_sample){.value = cpu};
}

static struct bench_sample cost_of_two(struct bench *bench, const void *arg)
{
	static const unsigned two = 2;

	(void)arg;
	return cost_of_nodes(bench, &two);
}

static void run_nodes(struct bench *bench, struct bench_row *row)
{
	unsigned count = (unsigned)strtoul(strchr(row->name, '-') + 1, NULL, 10);

	bench_take_turns(bench, row, cost_of_nodes, cost_of_two, &count);
}

/* ---- rows ---- */

#define LATENCY_AIM (1 / 1.15)

static const struct bench_entry entries[] = {
        {{"write-64k", "mesh, WRITE of 64 KiB; TCP flow", "GB/s", .aim = 0.90}, run_write_64k},
        {{"write-1m", "mesh, WRITE of 1 MiB; TCP flow", "GB/s", .aim = 0.90}, run_write_1m},
        {{"latency", "mesh adds to a WRITE; TCP round trip", "us", .aim = LATENCY_AIM,
          .cost = true},
         run_latency},
        {{"latency-all", "mesh, 8-byte WRITE; bare sockets, same hops", "us", .aim = 0,
          .cost = true},
         run_latency},
        {{"rate-32", "mesh, 8-byte WRITEs; TCP, a send() each", "k/s", .aim = 0}, run_rate},
        {{"eth-9000", "mesh, Ethernet, MTU 9000; TCP flow", "GB/s", .aim = 0.60}, run_ethernet},
        {{"eth-1500", "mesh, Ethernet, MTU 1500; TCP flow", "GB/s", .aim = 0.60}, run_ethernet},
        {{"nodes-8", "CPU for a WRITE, 8 nodes; 2", "us", .aim = 0.83, .cost = true}, run_nodes},
        {{"nodes-64", "CPU for a WRITE, 64 nodes; 2", "us", .aim = 0.83, .cost = true}, run_nodes},
        {{"icrc", "ICRC of a 4 KiB packet; 5 % of its cost", "ns", .aim = 1.0, .cost = true},
         run_icrc},
};

int main(int argc, char **argv)
{
	static const struct bench_program program = {
	        .name = "fabric",
	        .what = "What verbs and Ethernet cost between servers, against limits of the same "
	                "run.",
	        .entries = entries,
	        .count = sizeof(entries) / sizeof(entries[0]),
	};

	return bench_main(argc, argv, &program);
}
