/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An owner of RDMA devices for tests; see verbs.h. */
#include "verbs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/bytes.h"

/* ---- memory ---- */

static bool overlaps(uint64_t addr, size_t size, uint64_t start, uint64_t end)
{
	return start < end && addr < end && addr + size > start;
}

static int check_dma(struct nic *nic, uint64_t addr, size_t size, enum rdma_mem_access access)
{
	if (access == RDMA_MEM_WRITE && overlaps(addr, size, nic->read_only, nic->read_only_end))
		return -EACCES;
	if (addr < DMA_BASE || size > nic->mem_size || addr - DMA_BASE > nic->mem_size - size)
		return -EFAULT;
	return overlaps(addr, size, nic->hole, nic->hole_end) ? -EFAULT : 0;
}

static int mem_map(void *owner, uint64_t addr, size_t size, enum rdma_mem_access access,
                   struct iovec *iov, unsigned max)
{
	struct nic *nic = owner;
	unsigned count = 0;
	int error = check_dma(nic, addr, size, access);

	nic->maps++;
	if (error)
		return error;
	if (overlaps(addr, size, nic->copy_only, nic->copy_only_end))
		return -ENOTSUP;
	while (size > 0) {
		size_t part = nic->piece > 0 && size > nic->piece ? nic->piece : size;

		if (count == max)
			return -E2BIG;
		iov[count].iov_base = nic_host(nic, addr);
		iov[count++].iov_len = part;
		addr += part;
		size -= part;
	}
	return (int)count;
}

static uint64_t mem_generation(void *owner)
{
	return ((struct nic *)owner)->generation;
}

static int mem_read(void *owner, uint64_t addr, void *dst, size_t size)
{
	struct nic *nic = owner;
	int error = check_dma(nic, addr, size, RDMA_MEM_READ);

	nic->copies++;
	if (!error)
		memcpy(dst, nic_host(nic, addr), size);
	return error;
}

static int mem_write(void *owner, uint64_t addr, const void *src, size_t size)
{
	struct nic *nic = owner;
	int error = check_dma(nic, addr, size, RDMA_MEM_WRITE);

	nic->copies++;
	if (!error)
		memcpy(nic_host(nic, addr), src, size);
	return error;
}

uint64_t nic_dma(struct nic *nic, size_t size, size_t align)
{
	size_t at = (nic->mem_used + align - 1) / align * align;

	assert_true(size <= nic->mem_size && at <= nic->mem_size - size);
	nic->mem_used = at + size;
	return DMA_BASE + at;
}

uint8_t *nic_host(struct nic *nic, uint64_t dma)
{
	return nic->mem + (dma - DMA_BASE);
}

/* ---- queues ---- */

static int fetch_send(void *owner, struct rdma_wr *wr)
{
	struct test_qp *qp = owner;

	if (qp->sq_head == qp->sq_tail)
		return 0;
	*wr = qp->sq[qp->sq_head++ % qp->queue_max];
	return qp->fetch_error ? qp->fetch_error : 1;
}

static int fetch_recv(void *owner, struct rdma_recv *recv)
{
	struct test_qp *qp = owner;

	if (qp->rq_head == qp->rq_tail)
		return 0;
	*recv = qp->rq[qp->rq_head++ % qp->queue_max];
	return qp->fetch_recv_error ? qp->fetch_recv_error : 1;
}

static void complete_send(void *owner, const struct rdma_wc *wc)
{
	struct test_qp *qp = owner;

	assert_int_equal(qp->flushes, 0);
	qp->send_wc[qp->send_wcs++ % qp->queue_max] = *wc;
	if (qp->fail_on_complete)
		rdma_qp_fail(qp->qp, true);
	if (qp->on_send)
		qp->on_send(qp, wc);
}

static void complete_recv(void *owner, const struct rdma_wc *wc)
{
	struct test_qp *qp = owner;

	assert_int_equal(qp->flushes, 0);
	qp->recv_wc[qp->recv_wcs++ % qp->queue_max] = *wc;
	if (qp->on_recv)
		qp->on_recv(qp, wc);
}

static void flush(void *owner)
{
	((struct test_qp *)owner)->flushes++;
}

static void sq_pause(void *owner)
{
	((struct test_qp *)owner)->pauses++;
}

static void event(void *owner, enum rdma_event number)
{
	((struct test_qp *)owner)->events[number]++;
}

static bool owns_mac(void *owner, const uint8_t mac[6])
{
	return memcmp(((struct nic *)owner)->mac, mac, 6) == 0;
}

static const struct rdma_owner_ops owner_ops = {
        .mem_map = mem_map,
        .mem_generation = mem_generation,
        .mem_read = mem_read,
        .mem_write = mem_write,
        .owns_mac = owns_mac,
        .fetch_send = fetch_send,
        .fetch_recv = fetch_recv,
        .complete_send = complete_send,
        .complete_recv = complete_recv,
        .flush = flush,
        .sq_pause = sq_pause,
        .event = event,
};

const struct rdma_owner_ops *const nic_owner_ops = &owner_ops;

/* ---- NICs ---- */

static const struct rdma_limits default_limits = {
        .qps = 32768, .mrs = 131072, .ahs = 32768, .pages = 1 << 20};

static struct nic *nic_make(struct loop *loop, struct rdma_fabric *fabric, uint8_t ip,
                            const struct rdma_limits *limits, size_t mem)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	assert_non_null(nic);
	nic->loop = loop;
	nic->fabric = fabric;
	nic->ip = ip;
	memcpy(nic->mac, (uint8_t[]){2, 0, 0, 0, 0, ip}, 6);
	nic->mem_size = mem;
	nic->mem = aligned_alloc(DMA_PAGE, mem);
	assert_non_null(nic->mem);
	nic->next_mr = 1;
	nic->next_qpn = 2;
	struct rdma_dev_config config = {.name = "test",
	                                 .loop = loop,
	                                 .ops = &owner_ops,
	                                 .owner = nic,
	                                 .limits = *limits,
	                                 .fabric = fabric,
	                                 .datagram_mtu = 4096};

	assert_int_equal(rdma_dev_create(&config, &nic->dev), 0);
	return nic;
}

struct nic *nic_new_limits(const char *text, const struct rdma_limits *limits, size_t mem)
{
	struct rdma_fabric *fabric;
	struct loop *loop;
	char error[200];

	assert_int_equal(loop_create(&loop), 0);
	const struct fabric_place place = {.loop = loop};

	assert_int_equal(fabric_create(&place, text, &fabric, error, sizeof(error)), 0);
	struct nic *nic = nic_make(loop, fabric, 1, limits, mem);

	nic->owns_fabric = true;
	return nic;
}

struct nic *nic_new(const char *text)
{
	return nic_new_limits(text, &default_limits, 64 << 20);
}

struct nic *nic_on(struct loop *loop, struct rdma_fabric *fabric, uint8_t ip)
{
	return nic_make(loop, fabric, ip, &default_limits, 16 << 20);
}

struct nic *nic_join(struct nic *first)
{
	return nic_make(first->loop, first->fabric, 2, &default_limits, 16 << 20);
}

void nic_free(struct nic *nic)
{
	rdma_dev_destroy(nic->dev);
	if (nic->owns_fabric) {
		fabric_destroy(nic->fabric);
		loop_destroy(nic->loop);
	}
	free(nic->mem);
	free(nic);
}

void nic_spin(struct nic *nic, unsigned turns)
{
	while (turns-- > 0)
		assert_int_equal(loop_turn(nic->loop, 0), 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void nic_wait(struct nic *nic, const uint32_t *counter, uint32_t value)
{
	uint64_t end = now_ms() + 60000;

	while (*counter < value) {
		if (now_ms() > end)
			fail_msg("waited 60 s for %u, got %u", value, *counter);
		loop_turn(nic->loop, 1000000);
	}
}

void nic_pass(struct nic *nic, unsigned ms)
{
	uint64_t end = now_ms() + ms;

	while (now_ms() < end)
		loop_turn(nic->loop, 1000000);
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

size_t nic_template(const struct nic *from, const struct nic *to, int version, bool vlan,
                    uint8_t out[RDMA_TEMPLATE_MAX])
{
	uint8_t *ip = out + (vlan ? 18 : 14);
	size_t ip_size = version == 4 ? 20 : 40;

	memset(out, 0, RDMA_TEMPLATE_MAX);
	memcpy(out, to->mac, 6);
	memcpy(out + 6, from->mac, 6);
	if (vlan) {
		put16(out + 12, 0x8100);
		put16(out + 14, 0x6064);
	}
	put16(ip - 2, version == 4 ? 0x0800 : 0x86dd);
	if (version == 4) {
		memcpy(ip, (uint8_t[]){0x45, 0x68, 0xff, 0xff, 0, 0, 0x40, 0, 0x40, 17}, 10);
		memcpy(ip + 12, (uint8_t[]){10, 0, 0, from->ip, 10, 0, 0, to->ip}, 8);
	} else {
		memcpy(ip, (uint8_t[]){0x66, 0xa1, 0x23, 0x45, 0, 0x20, 17, 0x40}, 8);
		memcpy(ip + 8, (uint8_t[]){0xfe, 0x80}, 2);
		ip[23] = from->ip;
		memcpy(ip + 24, (uint8_t[]){0xfe, 0x80}, 2);
		ip[39] = to->ip;
	}
	put16(ip + ip_size, 0x6e70);
	put16(ip + ip_size + 2, 4791);
	put16(ip + ip_size + 4, 0x20);
	return (size_t)(ip - out) + ip_size + 8;
}

/* ---- regions ---- */

struct test_mr mr_new(struct nic *nic, uint32_t pd, uint64_t va, size_t size, unsigned access)
{
	struct test_mr mr = {.nic = nic, .va = va, .size = size, .key = nic->next_mr++ << 8 | 7};

	mr.dma = nic_dma(nic, size, DMA_PAGE) + va % DMA_PAGE % 64;
	nic->mem_used += 64;
	mr.mem = nic_host(nic, mr.dma);
	struct rdma_mr_config config = {.key = mr.key,
	                                .pd = pd,
	                                .va = va,
	                                .length = size,
	                                .dma_addr = mr.dma,
	                                .page_count = 1,
	                                .flags = (uint16_t)access};

	assert_int_equal(rdma_mr_create(nic->dev, &config), 0);
	return mr;
}

struct test_mr mr_scattered(struct nic *nic, uint32_t pd, uint64_t va, size_t size, unsigned access)
{
	struct test_mr mr = {.nic = nic, .va = va, .size = size, .key = nic->next_mr++ << 8 | 9};

	mr.first = va % DMA_PAGE;
	mr.pages = (uint32_t)((mr.first + size + DMA_PAGE - 1) / DMA_PAGE);
	mr.page_dma = calloc(mr.pages, sizeof(uint64_t));
	uint64_t table = nic_dma(nic, mr.pages * 8, 8);
	uint64_t base = nic_dma(nic, (size_t)mr.pages * 2 * DMA_PAGE, DMA_PAGE);

	for (uint32_t i = 0; i < mr.pages; i++) { /* backwards, every second page */
		mr.page_dma[i] = base + (uint64_t)(mr.pages - 1 - i) * 2 * DMA_PAGE;
		le64 entry = le64_make(mr.page_dma[i]);

		memcpy(nic_host(nic, table + 8 * i), &entry, 8);
	}
	struct rdma_mr_config config = {.key = mr.key,
	                                .pd = pd,
	                                .va = va,
	                                .length = size,
	                                .first = mr.first,
	                                .dma_addr = mr.pages > 1 ? table : base + mr.first,
	                                .page_count = mr.pages,
	                                .page_shift = 12,
	                                .flags = (uint16_t)access};

	assert_int_equal(rdma_mr_create(nic->dev, &config), 0);
	memset(nic_host(nic, table), 0xee, mr.pages * 8); /* it is the driver's again */
	return mr;
}

void mr_free(struct test_mr *mr)
{
	free(mr->page_dma);
	mr->page_dma = NULL;
}

uint8_t *mr_byte(const struct test_mr *mr, size_t offset)
{
	if (!mr->page_dma)
		return mr->mem + offset;
	size_t at = mr->first + offset;

	return nic_host(mr->nic, mr->page_dma[at / DMA_PAGE] + at % DMA_PAGE);
}

/* The bytes at OFFSET, *SIZE of them at most: what follows on the same page. */
static uint8_t *mr_piece(const struct test_mr *mr, size_t offset, size_t *size)
{
	size_t left = DMA_PAGE - (mr->first + offset) % DMA_PAGE;

	if (mr->page_dma && *size > left)
		*size = left;
	return mr_byte(mr, offset);
}

void mr_set(const struct test_mr *mr, size_t offset, const void *bytes, size_t size)
{
	for (size_t i = 0, piece; i < size; i += piece) {
		piece = size - i;
		uint8_t *at = mr_piece(mr, offset + i, &piece);

		memcpy(at, (const uint8_t *)bytes + i, piece);
	}
}

void mr_get(const struct test_mr *mr, size_t offset, void *bytes, size_t size)
{
	for (size_t i = 0, piece; i < size; i += piece) {
		piece = size - i;
		const uint8_t *at = mr_piece(mr, offset + i, &piece);

		memcpy((uint8_t *)bytes + i, at, piece);
	}
}

void mr_fill(const struct test_mr *mr, unsigned seed)
{
	for (size_t i = 0, piece; i < mr->size; i += piece) {
		piece = mr->size - i;
		uint8_t *at = mr_piece(mr, i, &piece);

		for (size_t j = 0; j < piece; j++)
			at[j] = (uint8_t)(seed + (i + j) * 131 + ((i + j) >> 8) * 17);
	}
}

struct rdma_sge sge_of(const struct test_mr *mr, size_t offset, size_t size)
{
	return (struct rdma_sge){.va = mr->va + offset, .length = (uint32_t)size, .lkey = mr->key};
}

/* ---- queue pairs ---- */

struct test_qp *qp_new_config(struct nic *nic, const struct rdma_qp_config *config,
                              uint32_t queue_max)
{
	struct test_qp *qp = calloc(1, sizeof(*qp));

	assert_non_null(qp);
	qp->nic = nic;
	qp->qpn = config->qpn;
	qp->queue_max = queue_max;
	qp->sq = calloc(queue_max, sizeof(*qp->sq));
	qp->rq = calloc(queue_max, sizeof(*qp->rq));
	qp->send_wc = calloc(queue_max, sizeof(*qp->send_wc));
	qp->recv_wc = calloc(queue_max, sizeof(*qp->recv_wc));
	assert_true(qp->sq && qp->rq && qp->send_wc && qp->recv_wc);
	struct rdma_qp_config with_owner = *config;

	with_owner.owner = qp;
	assert_int_equal(rdma_qp_create(nic->dev, &with_owner, &qp->qp), 0);
	return qp;
}

struct test_qp *qp_new(struct nic *nic, enum rdma_qp_type type, uint32_t pd)
{
	struct rdma_qp_config config = {.qpn = nic->next_qpn++, .type = type, .pd = pd};

	return qp_new_config(nic, &config, QUEUE_MAX);
}

void qp_free(struct test_qp *qp)
{
	rdma_qp_destroy(qp->qp);
	free(qp->sq);
	free(qp->rq);
	free(qp->send_wc);
	free(qp->recv_wc);
	free(qp);
}

struct rdma_qp_attr qp_attr(struct test_qp *qp, struct test_qp *peer)
{
	struct rdma_qp_attr attr = {.access = 7,
	                            .mtu_shift = 10,
	                            .timeout = 8, /* 1 ms */
	                            .retry_count = 3,
	                            .rnr_retry = RDMA_RETRY_FOREVER,
	                            .rnr_timer = 12, /* 0.64 ms */
	                            .qkey = 0x11111111,
	                            .dest_qpn = peer->qpn,
	                            .sq_psn = (qp->qpn * 77777) & 0xffffff,
	                            .rq_psn = (peer->qpn * 77777) & 0xffffff,
	                            .max_rd_atomic = 1,
	                            .max_dest_rd_atomic = 1};
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(qp->nic, peer->nic, 4, false, header);

	assert_int_equal(rdma_av_parse(header, size, &attr.av), 0);
	return attr;
}

int qp_state(struct test_qp *qp, enum rdma_qp_state state)
{
	struct rdma_qp_attr attr = {.state = state};

	return rdma_qp_modify(qp->qp, RDMA_ATTR_STATE, &attr);
}

void qp_up(struct test_qp *qp, const struct rdma_qp_attr *attr)
{
	assert_int_equal(qp_state(qp, RDMA_QPS_INIT), 0);
	assert_int_equal(rdma_qp_modify(qp->qp, QP_ATTR_ALL, attr), 0);
	assert_int_equal(qp_state(qp, RDMA_QPS_RTR), 0);
	assert_int_equal(qp_state(qp, RDMA_QPS_RTS), 0);
}

void qp_connect(struct test_qp *a, struct test_qp *b)
{
	struct rdma_qp_attr attr = qp_attr(a, b);

	qp_up(a, &attr);
	if (a == b)
		return;
	attr = qp_attr(b, a);
	qp_up(b, &attr);
}

void qp_put_send(struct test_qp *qp, const struct rdma_wr *wr)
{
	assert_true(qp->sq_tail - qp->sq_head < qp->queue_max);
	qp->sq[qp->sq_tail++ % qp->queue_max] = *wr;
}

void qp_post_send(struct test_qp *qp, const struct rdma_wr *wr)
{
	qp_put_send(qp, wr);
	rdma_qp_kick(qp->qp);
}

void qp_post_recv(struct test_qp *qp, const struct rdma_recv *recv)
{
	assert_true(qp->rq_tail - qp->rq_head < qp->queue_max);
	qp->rq[qp->rq_tail++ % qp->queue_max] = *recv;
	rdma_qp_kick_recv(qp->qp);
}

void qp_post_recv_sge(struct test_qp *qp, uint64_t wr_id, struct rdma_sge sge)
{
	struct rdma_recv recv = {.wr_id = wr_id, .length = sge.length, .num_sge = 1, .sge = {sge}};

	qp_post_recv(qp, &recv);
}

const struct rdma_wc *qp_poll_send(struct test_qp *qp)
{
	if (qp->send_polled == qp->send_wcs)
		return NULL;
	return &qp->send_wc[qp->send_polled++ % qp->queue_max];
}

const struct rdma_wc *qp_poll_recv(struct test_qp *qp)
{
	if (qp->recv_polled == qp->recv_wcs)
		return NULL;
	return &qp->recv_wc[qp->recv_polled++ % qp->queue_max];
}

const struct rdma_wc *qp_expect_send(struct test_qp *qp, enum rdma_status status)
{
	nic_wait(qp->nic, &qp->send_wcs, qp->send_polled + 1);
	const struct rdma_wc *wc = qp_poll_send(qp);

	if (wc->status != status)
		fail_msg("send of QP %u ended with %s instead of %s", qp->qpn,
		         rdma_status_name(wc->status), rdma_status_name(status));
	return wc;
}

const struct rdma_wc *qp_expect_recv(struct test_qp *qp, enum rdma_status status)
{
	nic_wait(qp->nic, &qp->recv_wcs, qp->recv_polled + 1);
	const struct rdma_wc *wc = qp_poll_recv(qp);

	if (wc->status != status)
		fail_msg("receive of QP %u ended with %s instead of %s", qp->qpn,
		         rdma_status_name(wc->status), rdma_status_name(status));
	return wc;
}

/* ---- requests ---- */

struct rdma_wr wr_rdma(enum rdma_opcode opcode, struct rdma_sge sge, uint64_t va, uint32_t rkey)
{
	struct rdma_wr wr = {.opcode = (uint8_t)opcode,
	                     .flags = RDMA_WR_SIGNALED,
	                     .num_sge = 1,
	                     .length = sge.length};

	wr.remote.va = va;
	wr.remote.rkey = rkey;
	wr.sge[0] = sge;
	return wr;
}

struct rdma_wr wr_send(enum rdma_opcode opcode, struct rdma_sge sge)
{
	struct rdma_wr wr = {.opcode = (uint8_t)opcode,
	                     .flags = RDMA_WR_SIGNALED,
	                     .num_sge = 1,
	                     .length = sge.length};

	wr.sge[0] = sge;
	return wr;
}

struct rdma_wr wr_atomic(enum rdma_opcode opcode, struct rdma_sge sge, uint64_t va, uint32_t rkey)
{
	return wr_rdma(opcode, sge, va, rkey);
}

uint64_t test_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * 0x2545f4914f6cdd1dull;
}

uint64_t test_seed(void)
{
	const char *text = getenv("ERNIC_TEST_SEED");
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t seed = text ? strtoull(text, NULL, 0)
	                     : (uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec;

	print_message("seed: ERNIC_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed ? seed : 1;
}
