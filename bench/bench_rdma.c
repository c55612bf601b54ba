// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What verbs cost through the queues of the device, against limits measured in the same run.
 *
 * The driver model stands in for the guest: it writes work requests, rings doorbells over the real
 * socket and looks for completions in memory, at native speed. Measurement and limit take turns and
 * the middle of the rounds' ratios counts, so that other load on the machine hits both. The column
 * CPU compares the CPU time of the server with that of the limit, for the same work; it says the
 * same on an idle machine, and more on a busy one, where two programs have to share turns. For the
 * rate of batches it is CPUs needed for the aim.
 *
 *	write-, read-, send-SIZE	bandwidth; limit: memcpy() between the same buffers
 *	rate-32, rate-1			8-byte WRITEs with one QP; limits: 2 million a second, and
 *					what one UNIX socket carries in messages like a doorbell
 *	latency				8-byte WRITE, doorbell to visible completion, the server
 *					spinning; limit: a round trip on a UNIX socket between two
 *					threads that spin
 *	qps-N, regions-N		server CPU for a WRITE; limit: with one QP, or one region
 *	syscalls			of the server for a WRITE of its own doorbell; limit: one
 *	allocations			of the server for a WRITE; limit: none
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "rdma.h"

#define PD           1
#define PAGE         1 /* doorbell page: a process */
#define WARM_UP      0.03
#define BUFFER       (32u << 20)
#define QPS_MAX      10000
#define REGIONS_MAX  100000
#define RATE_AIM     2000 /* thousand WRITEs a second */
#define BATCH        32
#define COST_OPS     200000
#define COST_POSTS   16 /* for a doorbell */
#define LATENCY_OPS  20000
#define SYSCALL_OPS  20000
#define ALLOC_OPS    100000
#define MESSAGE_SIZE 40 /* of a doorbell on the socket */

/* ---- the two ends ---- */

struct rig {
	struct server *server;
	struct nic *nic;
	struct rdma *rdma;
	struct rdma_cq *cq, *recv_cq;
	struct rdma_qp **qp; /* each is its own peer, unless there is a receiver */
	struct rdma_qp *receiver;
	unsigned qps;
	struct rdma_mr src, dst;
	/* Small regions, a page of src each. What the model remembers of 100,000 of them must not
	 * push what the server does from a cache that they share: their keys, and no more. */
	uint32_t *keys;
	unsigned regions;
};

struct rig_config {
	unsigned qps, sq_log2, regions;
	bool receiver;
	const char *const *args; /* of the server */
};

static void ok(int err, const char *what)
{
	if (err)
		bench_die(what, err < 0 ? err : -EPROTO);
}

static void open_nic(struct rig *rig, const struct rig_config *config)
{
	struct server_options options = {
	        .profile = "generic-100g", .stats_ms = 1000, .args = config->args};
	struct nic_options nic;

	ok(server_spawn(&rig->server, &options), "server");
	nic = NIC_OPTIONS(rig->server->socket);
	nic.brief = true;
	ok(nic_start(&rig->nic, &nic), "NIC");
	ok(rdma_open(&rig->rdma, rig->nic), "RDMA function");
}

/* Where a small region is in src. */
static uint64_t region_offset(unsigned index)
{
	return (uint64_t)(index % 16) * RAM_PAGE;
}

static void make_regions(struct rig *rig, const struct rig_config *config)
{
	struct rdma_mr_config mr = {.pd = PD, .flags = MRF_ALL, .size = BUFFER};
	struct rdma_mr small;

	ok(rdma_mr_create(rig->rdma, &rig->src, &mr), "region");
	ok(rdma_mr_create(rig->rdma, &rig->dst, &mr), "region");
	memset(rdma_mr_at(&rig->src, 0), 1, BUFFER);
	memset(rdma_mr_at(&rig->dst, 0), 2, BUFFER);
	rig->regions = config->regions;
	rig->keys = calloc(config->regions + 1, sizeof(*rig->keys));
	mr.size = RAM_PAGE;
	for (unsigned i = 0; i < config->regions; i++) {
		mr.addr = rig->src.addr + region_offset(i);
		mr.va = rig->src.va + region_offset(i);
		ok(rdma_mr_create(rig->rdma, &small, &mr), "region");
		rig->keys[i] = small.key;
	}
}

static void make_qps(struct rig *rig, const struct rig_config *config)
{
	const struct rdma_path path = RDMA_PATH;
	struct rdma_qp_config qp = {
	        .pd = PD, .page = PAGE, .sq_log2 = config->sq_log2, .rq_log2 = 1};

	qp.sq_cq = qp.rq_cq = rig->cq;
	rig->qps = config->qps;
	rig->qp = calloc(config->qps, sizeof(struct rdma_qp *));
	for (unsigned i = 0; i < config->qps; i++) {
		ok(rdma_qp_create(rig->rdma, &rig->qp[i], &qp), "QP");
		if (!config->receiver)
			ok(rdma_qp_connect(rig->qp[i], rig->qp[i], &path), "QP");
	}
	if (!config->receiver)
		return;
	qp.rq_log2 = 8;
	qp.sq_cq = qp.rq_cq = rig->recv_cq;
	ok(rdma_qp_create(rig->rdma, &rig->receiver, &qp), "QP");
	ok(rdma_qp_connect(rig->qp[0], rig->receiver, &path), "QP");
}

static void rig_open(struct rig *rig, const struct rig_config *config)
{
	const struct rdma_cq_config cq = {.log2 = 16, .eq = 2, .page = PAGE};

	*rig = (struct rig){0};
	open_nic(rig, config);
	ok(rdma_cq_create(rig->rdma, &rig->cq, &cq), "CQ");
	ok(rdma_cq_create(rig->rdma, &rig->recv_cq, &cq), "CQ");
	rdma_admin_defer(rig->rdma);
	make_regions(rig, config);
	make_qps(rig, config);
	ok(rdma_admin_sync(rig->rdma), "admin commands");
}

static void rig_close(struct rig *rig)
{
	for (unsigned i = 0; i < rig->qps; i++)
		rdma_qp_free(rig->qp[i]);
	rdma_qp_free(rig->receiver);
	rdma_cq_free(rig->cq);
	rdma_cq_free(rig->recv_cq);
	free(rig->qp);
	free(rig->keys);
	rdma_free(rig->rdma);
	nic_close(rig->nic);
	ok(server_stop(rig->server), "server");
}

/* Takes completions. Returns the number of those of sends. */
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
	if (count == 0)
		sched_yield(); /* on a busy machine the server may want this CPU */
	return count;
}

/* Requests in the queue that have not completed. */
static unsigned outstanding(const struct rdma_qp *qp)
{
	return (qp->sq.prod - qp->sq.cons) & ((1u << qp->sq.ring.log2) - 1);
}

/* ---- bandwidth ---- */

struct load {
	uint8_t op;
	uint32_t size;
	unsigned batch; /* requests for a doorbell; the last one is signalled */
	unsigned depth; /* requests outstanding, each with buffers of its own */
};

static void refill(struct rig *rig, const struct load *load)
{
	struct rdma_recv recv = {.num_sge = 1};
	bool any = false;

	assert(rig->receiver);
	do {
		uint32_t slot = rig->receiver->rq.prod % load->depth;

		recv.sge[0] = rdma_sge(&rig->dst, (size_t)slot * load->size, load->size);
	} while (rdma_post_recv(rig->receiver, &recv) == 0 && (any = true));
	if (any)
		ok(rdma_ring_recv(rig->receiver), "doorbell");
}

/* Runs the load for SECONDS, and at least LEAST requests. Returns the requests a second. */
static double run_load(struct rig *rig, const struct load *load, double seconds, uint64_t least)
{
	struct rdma_send send = {.op = load->op, .num_sge = 1, .rkey = rig->dst.key};
	struct rdma_qp *qp = rig->qp[0];
	double start = bench_now(), end;
	unsigned received = 0;
	uint64_t posted = 0;

	if (rig->receiver)
		refill(rig, load);
	while (bench_now() < start + seconds || posted < least) {
		if (rig->receiver)
			received += take(rig->recv_cq);
		if (received >= load->batch) {
			refill(rig, load);
			received = 0;
		}
		take(rig->cq);
		if (outstanding(qp) + load->batch > load->depth)
			continue;
		for (unsigned i = 1; i <= load->batch; i++) {
			size_t slot = (posted + i) % load->depth * load->size;

			send.flags = i == load->batch ? WQE_SIGNALED : 0;
			send.sge[0] = rdma_sge(&rig->src, slot, load->size);
			send.va = rig->dst.va + slot;
			ok(rdma_post_send(qp, &send), "post");
		}
		ok(rdma_ring_send(qp), "doorbell");
		posted += load->batch;
	}
	posted -= outstanding(qp);
	end = bench_now();
	while (outstanding(qp)) {
		if (rig->receiver && take(rig->recv_cq))
			refill(rig, load);
		take(rig->cq);
	}
	return (double)posted / (end - start);
}

/* GB/s, and us of CPU for a message, from messages a second and the part of a CPU. */
static struct bench_sample bandwidth_of(const struct load *load, double per_second, double cpu)
{
	return (struct bench_sample){per_second * load->size / 1e9, cpu * 1e6 / per_second};
}

static struct bench_sample bandwidth(struct bench *bench, const void *arg)
{
	const struct load *load = arg;
	const struct rig_config config = {.qps = 1, .sq_log2 = 8, .receiver = load->op == OP_SEND};
	double per_second, cpu;
	struct rig rig;

	rig_open(&rig, &config);
	/* Twice around all buffers: the server has seen their pages then. */
	run_load(&rig, load, WARM_UP, 2 * load->depth);
	cpu = bench_server_cpu(rig.server);
	per_second = run_load(&rig, load, bench->seconds, 0);
	cpu = bench_server_cpu(rig.server) - cpu;
	rig_close(&rig);
	return bandwidth_of(load, per_second, cpu / bench->seconds);
}

/* memcpy() between the same buffers, in memory of the kind that guests have. */
static struct bench_sample copy(struct bench *bench, const void *arg)
{
	const struct load *load = arg;
	double start, end, cpu;
	uint64_t count = 0;
	struct ram ram;
	uint8_t *src, *dst;

	ok(ram_create(&ram, 2 * BUFFER), "memory");
	src = ram.host;
	dst = ram.host + BUFFER;
	memset(src, 1, 2 * (size_t)BUFFER);
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID);
	start = bench_now();
	while ((end = bench_now()) < start + bench->seconds)
		for (unsigned i = 0; i < load->depth; i++, count++) {
			size_t slot = (size_t)i * load->size;

			memcpy(dst + slot, src + slot, load->size);
			__asm__ volatile("" : : "r"(dst) : "memory");
		}
	cpu = bench_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
	ram_destroy(&ram);
	return bandwidth_of(load, (double)count / (end - start), cpu / (end - start));
}

static void run_bandwidth(struct bench *bench, struct bench_row *row)
{
	static const struct {
		const char *name;
		uint8_t op;
	} ops[] = {{"write", OP_WRITE}, {"read", OP_READ}, {"send", OP_SEND}};
	static const struct {
		const char *name;
		uint32_t size;
		unsigned batch, depth;
	} sizes[] = {{"4k", 4 << 10, 16, 128},
	             {"64k", 64 << 10, 16, 128},
	             {"1m", 1 << 20, 1, 32},
	             {"8m", 8 << 20, 1, 4}};
	struct load load = {0};

	for (unsigned i = 0; i < 3; i++)
		if (strncmp(row->name, ops[i].name, strlen(ops[i].name)) == 0)
			load.op = ops[i].op;
	for (unsigned i = 0; i < 4; i++)
		if (strcmp(strchr(row->name, '-') + 1, sizes[i].name) == 0) {
			load.size = sizes[i].size;
			load.batch = sizes[i].batch;
			load.depth = sizes[i].depth;
		}
	bench_take_turns(bench, row, bandwidth, copy, &load);
}

/* ---- rates ---- */

static struct bench_sample rate(struct bench *bench, const void *arg)
{
	const struct rig_config config = {.qps = 1, .sq_log2 = 9};
	double per_second, cpu;
	struct rig rig;

	rig_open(&rig, &config);
	run_load(&rig, arg, WARM_UP, 0);
	cpu = bench_server_cpu(rig.server);
	per_second = run_load(&rig, arg, bench->seconds, 0);
	cpu = bench_server_cpu(rig.server) - cpu;
	rig_close(&rig);
	return bench_rate(per_second, 1, cpu / bench->seconds);
}

static struct bench_sample rate_limit(struct bench *bench, const void *arg)
{
	(void)bench, (void)arg;
	return (struct bench_sample){.value = RATE_AIM, .cpu = 1000.0 / RATE_AIM};
}

static void *receive_all(void *arg)
{
	uint8_t message[MESSAGE_SIZE];

	while (recv(*(int *)arg, message, sizeof(message), MSG_WAITALL) > 0)
		;
	return NULL;
}

static struct bench_sample message_rate(struct bench *bench, const void *arg)
{
	uint8_t message[MESSAGE_SIZE] = {0};
	uint64_t count = 0;
	pthread_t thread;
	double start, end;
	int fds[2];

	(void)arg;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		bench_die("socketpair", -errno);
	if (pthread_create(&thread, NULL, receive_all, &fds[1]))
		bench_die("thread", -EAGAIN);
	start = bench_now();
	while ((end = bench_now()) < start + bench->seconds)
		for (int i = 0; i < 100; i++, count++)
			if (send(fds[0], message, sizeof(message), 0) < 0)
				bench_die("send", -errno);
	close(fds[0]);
	pthread_join(thread, NULL);
	close(fds[1]);
	return bench_rate((double)count, end - start, 0);
}

static void run_batched(struct bench *bench, struct bench_row *row)
{
	static const struct load load = {OP_WRITE, 8, BATCH, 8 * BATCH};

	bench_take_turns(bench, row, rate, rate_limit, &load);
}

static void run_single(struct bench *bench, struct bench_row *row)
{
	static const struct load load = {OP_WRITE, 8, 1, 64};

	bench_take_turns(bench, row, rate, message_rate, &load);
}

/* ---- latency ---- */

static const char *const spinning[] = {"--busy-poll-us", "1000000", NULL};

/* The middle of LATENCY_OPS durations, in us. */
static double middle(double *seconds)
{
	return bench_median(seconds, LATENCY_OPS) * 1e6;
}

static struct bench_sample latency(struct bench *bench, const void *arg)
{
	const struct rig_config config = {.qps = 1, .sq_log2 = 6, .args = spinning};
	static double seconds[LATENCY_OPS];
	struct rdma_send send = {.op = OP_WRITE, .num_sge = 1, .flags = WQE_SIGNALED};
	struct rdma_wc wc;
	struct rig rig;

	(void)bench, (void)arg;
	rig_open(&rig, &config);
	send.sge[0] = rdma_sge(&rig.src, 0, 8);
	send.va = rig.dst.va;
	send.rkey = rig.dst.key;
	for (int i = 0; i < LATENCY_OPS; i++) {
		double start;
		int got;

		ok(rdma_post_send(rig.qp[0], &send), "post");
		start = bench_now();
		ok(rdma_ring_send(rig.qp[0]), "doorbell");
		while ((got = rdma_poll(rig.cq, &wc)) == 0)
			;
		seconds[i] = bench_now() - start;
		ok(got < 0 ? got : (int)wc.status, "WRITE");
	}
	rig_close(&rig);
	return (struct bench_sample){.value = middle(seconds)};
}

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	uint8_t message[MESSAGE_SIZE];

	for (;;) {
		ssize_t got = recv(fd, message, sizeof(message), MSG_DONTWAIT);

		if (got == 0 || (got > 0 && send(fd, message, sizeof(message), 0) < 0))
			return NULL;
	}
}

static struct bench_sample round_trip(struct bench *bench, const void *arg)
{
	static double seconds[LATENCY_OPS];
	uint8_t message[MESSAGE_SIZE] = {0};
	pthread_t thread;
	int fds[2];

	(void)bench, (void)arg;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		bench_die("socketpair", -errno);
	if (pthread_create(&thread, NULL, echo, &fds[1]))
		bench_die("thread", -EAGAIN);
	for (int i = 0; i < LATENCY_OPS; i++) {
		double start = bench_now();

		if (send(fds[0], message, sizeof(message), 0) < 0)
			bench_die("send", -errno);
		while (recv(fds[0], message, sizeof(message), MSG_DONTWAIT) < 0)
			;
		seconds[i] = bench_now() - start;
	}
	close(fds[0]);
	pthread_join(thread, NULL);
	close(fds[1]);
	return (struct bench_sample){.value = middle(seconds)};
}

static void run_latency(struct bench *bench, struct bench_row *row)
{
	bench_take_turns(bench, row, latency, round_trip, NULL);
}

/* ---- cost with many ---- */

struct crowd {
	unsigned qps, regions;
};

/* WRITEs in turn on all QPs, between regions chosen at random. */
static void cost_pass(struct rig *rig, unsigned ops)
{
	struct rdma_send send = {.op = OP_WRITE, .num_sge = 1, .sge = {{.len = 8}}};
	uint32_t chance = 1;

	for (unsigned done = 0; done < ops; done += COST_POSTS) {
		struct rdma_qp *qp = rig->qp[done / COST_POSTS % rig->qps];

		while (outstanding(qp) + COST_POSTS >= 1u << qp->sq.ring.log2)
			take(rig->cq);
		for (unsigned i = 1; i <= COST_POSTS; i++) {
			unsigned from, to;

			chance = chance * 1664525 + 1013904223;
			from = (chance >> 8) % rig->regions;
			to = (chance >> 4) % rig->regions;
			send.sge[0].va = rig->src.va + region_offset(from) + 64;
			send.sge[0].lkey = rig->keys[from];
			send.va = rig->src.va + region_offset(to) + 128;
			send.rkey = rig->keys[to];
			send.flags = i == COST_POSTS ? WQE_SIGNALED : 0;
			ok(rdma_post_send(qp, &send), "post");
		}
		ok(rdma_ring_send(qp), "doorbell");
		take(rig->cq);
	}
	for (unsigned i = 0; i < rig->qps; i++)
		while (outstanding(rig->qp[i]))
			take(rig->cq);
}

/* us of server CPU for a WRITE. */
static struct bench_sample cost(struct bench *bench, const void *arg)
{
	const struct crowd *crowd = arg;
	const struct rig_config config = {
	        .qps = crowd->qps,
	        /* One queue holds as much as a hundred: the server never waits. */
	        .sq_log2 = crowd->qps == 1 ? 14 : 8,
	        .regions = crowd->regions};
	struct rig rig;
	double cpu;

	(void)bench;
	rig_open(&rig, &config);
	cost_pass(&rig, COST_OPS);
	cpu = bench_server_cpu(rig.server);
	cost_pass(&rig, COST_OPS);
	cpu = bench_server_cpu(rig.server) - cpu;
	rig_close(&rig);
	return (struct bench_sample){.value = cpu * 1e6 / COST_OPS};
}

static struct bench_sample cost_of_one(struct bench *bench, const void *arg)
{
	static const struct crowd one = {1, 1};

	(void)arg;
	return cost(bench, &one);
}

static void run_cost(struct bench *bench, struct bench_row *row)
{
	unsigned count = (unsigned)strtoul(strchr(row->name, '-') + 1, NULL, 10);
	struct crowd crowd = {1, 1};

	if (strncmp(row->name, "qps", 3) == 0)
		crowd.qps = count;
	else
		crowd.regions = count;
	bench_take_turns(bench, row, cost, cost_of_one, &crowd);
}

/* ---- system calls and allocations ---- */

static void write_some(struct rig *rig, unsigned count, unsigned batch)
{
	struct rdma_send send = {.op = OP_WRITE,
	                         .num_sge = 1,
	                         .sge = {rdma_sge(&rig->src, 0, 8)},
	                         .va = rig->dst.va,
	                         .rkey = rig->dst.key};
	struct rdma_qp *qp = rig->qp[0];

	for (unsigned i = 1; i <= count; i++) {
		while (outstanding(qp) > 64)
			take(rig->cq);
		send.flags = i % batch ? 0 : WQE_SIGNALED;
		ok(rdma_post_send(qp, &send), "post");
		if (i % batch == 0)
			ok(rdma_ring_send(qp), "doorbell");
	}
	while (outstanding(qp))
		take(rig->cq);
}

static void run_syscalls(struct bench *bench, struct bench_row *row)
{
	const struct rig_config config = {.qps = 1, .sq_log2 = 7};
	char output[128];
	struct rig rig;
	pid_t pid;

	(void)bench;
	rig_open(&rig, &config);
	snprintf(output, sizeof(output), "%s/strace", rig.server->dir);
	pid = bench_strace_start(rig.server->pid, output);
	if (pid > 0) {
		write_some(&rig, SYSCALL_OPS, 1);
		kill(pid, SIGINT);
		waitpid(pid, NULL, 0);
		row->measured = bench_strace_total(output) / SYSCALL_OPS;
		row->limit = 1;
	}
	if (pid <= 0 || row->measured < 0)
		row->missing = "not measured: strace is missing or may not watch";
	unlink(output);
	rig_close(&rig);
}

static void run_allocations(struct bench *bench, struct bench_row *row)
{
	const struct rig_config config = {.qps = 1, .sq_log2 = 7};
	char path[] = "/tmp/bench-alloc-XXXXXX";
	uint64_t *counter, before;
	int fd = mkstemp(path);
	struct rig rig;

	(void)bench;
	if (fd < 0 || ftruncate(fd, RAM_PAGE) < 0)
		bench_die(path, -errno);
	counter = mmap(NULL, RAM_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		bench_die(path, -errno);
	setenv("LD_PRELOAD", BENCH_ALLOC_MODULE, 1);
	setenv("BENCH_ALLOC_FILE", path, 1);
	rig_open(&rig, &config);
	unsetenv("LD_PRELOAD");
	unsetenv("BENCH_ALLOC_FILE");
	write_some(&rig, 1000, 1);
	before = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
	write_some(&rig, ALLOC_OPS, BATCH);
	row->measured = (double)(__atomic_load_n(counter, __ATOMIC_ACQUIRE) - before) / ALLOC_OPS;
	if (before == 0)
		row->missing = "not measured: the counter is not in the server";
	rig_close(&rig);
	munmap(counter, RAM_PAGE);
	close(fd);
	unlink(path);
}

/* ---- rows ---- */

#define BANDWIDTH(name, what, least)                                                               \
	{                                                                                          \
		{name, what "; memcpy", "GB/s", .aim = (least)}, run_bandwidth                     \
	}
#define COST(name, what)                                                                           \
	{                                                                                          \
		{name, "server CPU for a WRITE, " what, "us", .aim = 0.83, .cost = true}, run_cost \
	}

static const struct bench_entry entries[] = {
        BANDWIDTH("write-4k", "WRITE of 4 KiB", 0),
        BANDWIDTH("write-64k", "WRITE of 64 KiB", 0.80),
        BANDWIDTH("write-1m", "WRITE of 1 MiB", 0.80),
        BANDWIDTH("write-8m", "WRITE of 8 MiB", 0.80),
        BANDWIDTH("read-4k", "READ of 4 KiB", 0),
        BANDWIDTH("read-64k", "READ of 64 KiB", 0.80),
        BANDWIDTH("read-1m", "READ of 1 MiB", 0.80),
        BANDWIDTH("read-8m", "READ of 8 MiB", 0.80),
        BANDWIDTH("send-4k", "SEND of 4 KiB", 0),
        BANDWIDTH("send-64k", "SEND of 64 KiB", 0.80),
        BANDWIDTH("send-1m", "SEND of 1 MiB", 0.80),
        BANDWIDTH("send-8m", "SEND of 8 MiB", 0.80),
        {{"rate-32", "8-byte WRITEs, 32 a doorbell; 2 M/s", "k/s", .aim = 1.0}, run_batched},
        {{"rate-1", "8-byte WRITEs, one a doorbell; messages", "k/s", .aim = 0}, run_single},
        {{"latency", "8-byte WRITE, spinning; socket round trip", "us", .aim = 0.77, .cost = true},
         run_latency},
        COST("qps-100", "100 QPs; 1"),
        COST("qps-10000", "10 K QPs; 1"),
        COST("regions-1000", "1 K regions; 1"),
        COST("regions-100000", "100 K regions; 1"),
        {{"syscalls", "system calls for a WRITE; one", "", .aim = 0.90, .cost = true},
         run_syscalls},
        {{"allocations", "allocations for a WRITE; none", "", .aim = 1.0, .cost = true},
         run_allocations},
};

int main(int argc, char **argv)
{
	static const struct bench_program program = {
	        .name = "rdma",
	        .what = "What verbs cost, against limits measured in the same run.",
	        .entries = entries,
	        .count = sizeof(entries) / sizeof(entries[0]),
	};

	return bench_main(argc, argv, &program);
}
