/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the engine costs, without rings and doorbells: ns per 8-byte WRITE at batches of 32 and one
 * at a time, with many QPs and regions, and bandwidth against memcpy() over the same buffers.
 * Prints a table; run it by hand from the build folder.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "fabric/fabric.h"
#include "rdma/rdma.h"

#define DMA_BASE   0x100000000ull
#define DMA_SIZE   (256ull << 20)
#define QPS_MAX    10000
#define REGIONS    100000
#define BIG_BUFFER (64u << 20)

static uint8_t *memory;
static struct loop *loop;
static struct rdma_dev *dev;
static uint64_t sink;

struct bench_qp {
	struct rdma_qp *qp;
	struct rdma_wr wr;
	uint32_t posted, fetched, completed;
	uint64_t stride; /* moves the addresses from one request to the next ... */
	uint32_t wrap;   /* ... so often, then back */
	uint32_t keys;   /* so many are used at random */
};

static int map(void *owner, uint64_t addr, size_t size, enum rdma_mem_access access,
               struct iovec *iov, unsigned max)
{
	(void)owner, (void)access, (void)max;
	if (addr < DMA_BASE || size > DMA_SIZE || addr - DMA_BASE > DMA_SIZE - size)
		return -EFAULT;
	iov->iov_base = memory + (addr - DMA_BASE);
	iov->iov_len = size;
	return 1;
}

static int no_copy(void *owner, uint64_t addr, const void *src, size_t size)
{
	(void)owner, (void)addr, (void)src, (void)size;
	return -EFAULT;
}

static int copy_out(void *owner, uint64_t addr, void *dst, size_t size)
{
	(void)owner;
	memcpy(dst, memory + (addr - DMA_BASE), size);
	return 0;
}

static uint64_t generation(void *owner)
{
	(void)owner;
	return 1;
}

static bool owns_mac(void *owner, const uint8_t mac[6])
{
	(void)owner;
	return mac[0] == 2;
}

static int fetch_send(void *owner, struct rdma_wr *wr)
{
	struct bench_qp *qp = owner;

	if (qp->fetched == qp->posted)
		return 0;
	/* as a queue would do: only what is used */
	memcpy(wr, &qp->wr, offsetof(struct rdma_wr, sge) + sizeof(struct rdma_sge));
	wr->remote.va += qp->fetched % qp->wrap * qp->stride;
	wr->sge[0].va += qp->fetched % qp->wrap * qp->stride;
	if (qp->keys > 1) {
		uint32_t key = 2 + qp->fetched * 7919u % qp->keys;

		wr->remote.rkey = key << 8;
		wr->sge[0].lkey = key << 8;
		rdma_mr_prefetch(dev, (2 + (qp->fetched + 1) * 7919u % qp->keys) << 8);
	}
	qp->fetched++;
	return 1;
}

static int fetch_recv(void *owner, struct rdma_recv *recv)
{
	(void)owner, (void)recv;
	return 0;
}

static void complete_send(void *owner, const struct rdma_wc *wc)
{
	struct bench_qp *qp = owner;

	if (wc->status != RDMA_OK) {
		fprintf(stderr, "request failed: %s\n", rdma_status_name(wc->status));
		exit(1);
	}
	qp->completed++;
}

static void complete_recv(void *owner, const struct rdma_wc *wc)
{
	(void)owner, (void)wc;
}

static void flush(void *owner)
{
	(void)owner;
}

static void event(void *owner, enum rdma_event number)
{
	(void)owner, (void)number;
}

static const struct rdma_owner_ops ops = {.mem_map = map,
                                          .mem_generation = generation,
                                          .mem_read = copy_out,
                                          .mem_write = no_copy,
                                          .owns_mac = owns_mac,
                                          .fetch_send = fetch_send,
                                          .fetch_recv = fetch_recv,
                                          .complete_send = complete_send,
                                          .complete_recv = complete_recv,
                                          .flush = flush,
                                          .event = event};

/* Processor time, so that other work on the machine disturbs less. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void make_region(uint32_t index, uint64_t va, uint64_t size, uint64_t dma, uint32_t pages)
{
	struct rdma_mr_config config = {.key = index << 8,
	                                .va = va,
	                                .length = size,
	                                .dma_addr = dma,
	                                .page_count = pages,
	                                .page_shift = 12,
	                                .flags = 0xf};
	int error = rdma_mr_create(dev, &config);

	if (error) {
		fprintf(stderr, "region %u: %s\n", index, strerror(-error));
		exit(1);
	}
}

static void make_qp(struct bench_qp *bench, uint32_t qpn)
{
	static const uint8_t header[42] = {2,    0,    0,    0,    0,    1,    2,    0, 0,  0,    0,
	                                   1,    8,    0,    0x45, 0,    0xff, 0xff, 0, 0,  0x40, 0,
	                                   0x40, 17,   0,    0,    10,   0,    0,    1, 10, 0,    0,
	                                   1,    0x6e, 0x70, 0x12, 0xb7, 0,    0x20, 0, 0};
	struct rdma_qp_config config = {.qpn = qpn, .type = RDMA_QP_RC, .owner = bench};
	struct rdma_qp_attr attr = {.access = 7,
	                            .mtu_shift = 12,
	                            .dest_qpn = qpn,
	                            .max_rd_atomic = 1,
	                            .max_dest_rd_atomic = 1};
	static const enum rdma_qp_state states[] = {RDMA_QPS_INIT, RDMA_QPS_RTR, RDMA_QPS_RTS};

	if (rdma_qp_create(dev, &config, &bench->qp) ||
	    rdma_av_parse(header, sizeof(header), &attr.av))
		exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		attr.state = states[i];
		if (rdma_qp_modify(bench->qp,
		                   RDMA_ATTR_STATE | RDMA_ATTR_ACCESS | RDMA_ATTR_MTU |
		                           RDMA_ATTR_AV | RDMA_ATTR_DEST_QPN |
		                           RDMA_ATTR_MAX_RD_ATOMIC | RDMA_ATTR_MAX_DEST_RD_ATOMIC,
		                   &attr))
			exit(1);
	}
}

static void set_write(struct bench_qp *qp, uint32_t size, uint32_t key)
{
	qp->wr = (struct rdma_wr){.opcode = RDMA_WRITE,
	                          .flags = RDMA_WR_SIGNALED,
	                          .num_sge = 1,
	                          .length = size,
	                          .remote = {.va = 0, .rkey = key << 8}};
	qp->wr.sge[0] = (struct rdma_sge){.va = 0, .length = size, .lkey = key << 8};
}

/* Posts BATCH requests to each of COUNT QPs, kicks, and runs until all are complete. */
static double run(struct bench_qp *qps, unsigned count, unsigned batch, unsigned rounds)
{
	double start = now();

	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < count; i++) {
			qps[i].posted += batch;
			rdma_qp_kick(qps[i].qp);
		}
		while (qps[count - 1].completed != qps[count - 1].posted)
			loop_turn(loop, 0);
	}
	return now() - start;
}

static void small_writes(struct bench_qp *qps)
{
	struct bench_qp *qp = &qps[0];
	double base, ns;

	set_write(qp, 8, 1);
	qp->stride = 64;
	qp->wrap = 1024;
	run(qp, 1, 32, 1000);
	base = run(qp, 1, 32, 100000) / 3.2e6 * 1e9;
	printf("8-byte WRITE, batches of 32          %7.1f ns  %6.2f M/s\n", base, 1e3 / base);
	ns = run(qp, 1, 1, 300000) / 3e5 * 1e9;
	printf("8-byte WRITE, one at a time          %7.1f ns  %6.2f M/s (a turn of the loop "
	       "each)\n",
	       ns, 1e3 / ns);
	for (unsigned keys = 1000; keys <= REGIONS; keys *= 100) {
		qp->keys = keys;
		ns = run(qp, 1, 32, 30000) / 9.6e5 * 1e9;
		printf("8-byte WRITE, %6u regions at random %6.1f ns  %6.2f of one region\n", keys,
		       ns, ns / base);
	}
	qp->keys = 1;
	for (unsigned count = 100; count <= QPS_MAX; count *= 100) {
		unsigned rounds = 1000000 / 32 / count;

		for (unsigned i = 0; i < count; i++) {
			set_write(&qps[i], 8, 1);
			qps[i].stride = 64;
			qps[i].wrap = 1024;
		}
		ns = run(qps, count, 32, rounds) / (32.0 * count * rounds) * 1e9;
		printf("8-byte WRITE, %6u QPs by turns      %6.1f ns  %6.2f of one QP\n", count, ns,
		       ns / base);
	}
}

static double memcpy_speed(uint32_t size, unsigned rounds, uint32_t span)
{
	uint8_t *src = memory, *dst = memory + BIG_BUFFER;
	double start = now();

	for (unsigned i = 0; i < rounds; i++) {
		size_t at = (size_t)i * size % span;

		memcpy(dst + at, src + at, size);
		sink += dst[at];
	}
	return (double)size * rounds / (now() - start) / 1e9;
}

/* The same to the scattered pages: what no copy by pages can exceed. */
static double page_speed(uint32_t size, unsigned rounds, uint32_t span)
{
	uint8_t *src = memory, *dst = memory + BIG_BUFFER;
	double start = now();

	for (unsigned i = 0; i < rounds; i++) {
		size_t at = (size_t)i * size % span;

		for (size_t n = 0; n < size; n += 4096)
			memcpy(dst + ((at + n) ^ 4096), src + at + n, 4096);
		sink += dst[at];
	}
	return (double)size * rounds / (now() - start) / 1e9;
}

/* Moves SIZE bytes from region 1 to region KEY, at addresses that walk through SPAN bytes, as many
 * requests a kick as make 1 MiB. */
static double write_speed(struct bench_qp *qp, uint32_t size, unsigned rounds, uint32_t span,
                          uint32_t key)
{
	unsigned batch = size < 1 << 20 ? (1u << 20) / size : 1;
	double start;

	set_write(qp, size, 1);
	qp->stride = size;
	qp->wrap = span / size;
	qp->wr.remote.va = key == 1 ? BIG_BUFFER : 0;
	qp->wr.remote.rkey = key << 8;
	start = now();
	rounds /= batch;
	run(qp, 1, batch, rounds);
	return (double)size * batch * rounds / (now() - start) / 1e9;
}

static void bandwidth(struct bench_qp *qp, uint32_t scattered)
{
	static const uint32_t sizes[] = {4096, 65536, 1 << 20, 8 << 20};
	static const uint32_t spans[] = {256 << 10, 64 << 20};

	for (size_t s = 0; s < ARRAY_SIZE(spans); s++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			unsigned rounds = (2u << 30) / sizes[i];
			uint32_t span = spans[s] > sizes[i] ? spans[s] : sizes[i];
			double copy = 0, flat = 0, by_page = 0, pages = 0;

			for (int pass = 0; pass < 3; pass++) { /* the best of each, in turns */
				double value = memcpy_speed(sizes[i], rounds / 3, span);

				copy = value > copy ? value : copy;
				value = write_speed(qp, sizes[i], rounds / 3, span, 1);
				flat = value > flat ? value : flat;
				value = page_speed(sizes[i], rounds / 3, span);
				by_page = value > by_page ? value : by_page;
				value = write_speed(qp, sizes[i], rounds / 3, span, scattered);
				pages = value > pages ? value : pages;
			}
			printf("WRITE %5u KiB over %5u KiB: %6.2f of memcpy's %6.2f GB/s; "
			       "to 4 KiB pages %6.2f of %6.2f\n",
			       sizes[i] >> 10, span >> 10, flat / copy, copy, pages / by_page,
			       by_page);
		}
	}
}

/* A region whose pages swap places two by two, so that none follows its neighbour. */
static void make_scattered(uint32_t index)
{
	uint32_t pages = BIG_BUFFER / 4096;
	uint64_t *table = (uint64_t *)(memory + 3ull * BIG_BUFFER);

	for (uint32_t i = 0; i < pages; i++)
		table[i] = DMA_BASE + BIG_BUFFER + (uint64_t)(i ^ 1) * 4096;
	make_region(index, 0, BIG_BUFFER, DMA_BASE + 3ull * BIG_BUFFER, pages);
}

int main(int argc, char **argv)
{
	static struct bench_qp qps[QPS_MAX];
	struct rdma_fabric *fabric;
	char error[100];

	memory = aligned_alloc(2 << 20, DMA_SIZE);
	if (!memory || loop_create(&loop) ||
	    fabric_create(&(struct fabric_place){.loop = loop}, "loopback", &fabric, error,
	                  sizeof(error)))
		return 1;
	memset(memory, 1, DMA_SIZE);
	struct rdma_dev_config config = {
	        .name = "bench",
	        .loop = loop,
	        .ops = &ops,
	        .limits = {.qps = 32768, .mrs = 131072, .ahs = 1, .pages = 1 << 22},
	        .fabric = fabric,
	        .datagram_mtu = 4096};

	if (rdma_dev_create(&config, &dev))
		return 1;
	make_region(1, 0, DMA_SIZE, DMA_BASE, 1);
	for (uint32_t i = 2; i < REGIONS + 2; i++)
		make_region(i, 0, 1 << 20, DMA_BASE, 1);
	make_scattered(REGIONS + 2);
	for (uint32_t i = 0; i < QPS_MAX; i++)
		make_qp(&qps[i], i + 1);
	for (int i = 0; i < 100; i++)
		loop_turn(loop, 0);
	if (argc < 2 || strcmp(argv[1], "small") == 0)
		small_writes(qps);
	if (argc < 2 || strcmp(argv[1], "big") == 0)
		bandwidth(&qps[0], REGIONS + 2);
	rdma_dev_destroy(dev);
	fabric_destroy(fabric);
	loop_destroy(loop);
	return sink == 1;
}
