/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every operation does what it says, byte for byte: over pages, SGEs, sizes, immediates and keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "verbs.h"

#define PD   7
#define RW   (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ)
#define ALL  (RW | RDMA_ACCESS_REMOTE_ATOMIC | RDMA_ACCESS_MW_BIND)
#define SIZE 40000u

struct pair {
	struct nic *nic;
	struct test_qp *a, *b;
};

static struct pair pair_new(enum rdma_qp_type type)
{
	struct pair pair = {.nic = nic_new("loopback")};

	pair.a = qp_new(pair.nic, type, PD);
	pair.b = qp_new(pair.nic, type, PD);
	qp_connect(pair.a, pair.b);
	return pair;
}

static void pair_free(struct pair *pair)
{
	qp_free(pair->a);
	qp_free(pair->b);
	nic_free(pair->nic);
}

/* Sizes and offsets at which something changes: words, pages, one more and one less. */
static const struct {
	uint32_t size, src, dst;
} shapes[] = {
        {1, 0, 0},       {7, 1, 3},        {8, 0, 0},        {8, 5, 2},    {9, 0, 7},
        {64, 0, 0},      {4095, 0, 0},     {4096, 0, 0},     {4096, 1, 0}, {4096, 0, 1},
        {4097, 0, 4095}, {8192, 4000, 17}, {30000, 333, 71}, {SIZE, 0, 0},
};

/* Bytes of DST at OFFSET are those of SRC; those around are as mr_fill(seed) left them. */
static void check_landed(const struct test_mr *dst, size_t dst_offset, const struct test_mr *src,
                         size_t src_offset, size_t size, unsigned seed)
{
	for (size_t i = 0; i < dst->size; i++) {
		uint8_t old = (uint8_t)(seed + i * 131 + (i >> 8) * 17);
		bool inside = i >= dst_offset && i - dst_offset < size;
		uint8_t want = inside ? *mr_byte(src, src_offset + i - dst_offset) : old;

		if (*mr_byte(dst, i) != want)
			fail_msg("byte %zu (size %zu, %zu to %zu) is 0x%02x, not 0x%02x", i, size,
			         src_offset, dst_offset, *mr_byte(dst, i), want);
	}
}

static void run_shapes(enum rdma_qp_type type, enum rdma_opcode opcode, size_t piece)
{
	struct pair pair = pair_new(type);
	struct test_mr src = mr_scattered(pair.nic, PD, 0x10000123, SIZE + 5000, RW);
	struct test_mr dst = mr_scattered(pair.nic, PD, 0x7fff00000ff0, SIZE + 5000, RW);

	pair.nic->piece = piece;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		uint32_t size = shapes[i].size;
		bool read = opcode == RDMA_READ;
		const struct test_mr *local = read ? &dst : &src, *remote = read ? &src : &dst;
		uint32_t local_offset = read ? shapes[i].dst : shapes[i].src;
		uint32_t remote_offset = read ? shapes[i].src : shapes[i].dst;
		struct rdma_wr wr = wr_rdma(opcode, sge_of(local, local_offset, size),
		                            remote->va + remote_offset, remote->key);

		mr_fill(&src, 1);
		mr_fill(&dst, 2);
		if (opcode == RDMA_SEND)
			qp_post_recv_sge(pair.b, 55, sge_of(&dst, shapes[i].dst, size));
		qp_post_send(pair.a, &wr);
		qp_expect_send(pair.a, RDMA_OK);
		if (opcode == RDMA_SEND)
			assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->length, size);
		check_landed(&dst, shapes[i].dst, &src, shapes[i].src, size, 2);
	}
	mr_free(&src);
	mr_free(&dst);
	pair_free(&pair);
}

static void write_lands(void **state)
{
	(void)state;
	run_shapes(RDMA_QP_RC, RDMA_WRITE, 0);
	run_shapes(RDMA_QP_UC, RDMA_WRITE, 0);
	run_shapes(RDMA_QP_RC, RDMA_WRITE, 100); /* a page takes many host pieces */
}

static void read_lands(void **state)
{
	(void)state;
	run_shapes(RDMA_QP_RC, RDMA_READ, 0);
	run_shapes(RDMA_QP_RC, RDMA_READ, 1000);
}

static void send_lands(void **state)
{
	(void)state;
	run_shapes(RDMA_QP_RC, RDMA_SEND, 0);
	run_shapes(RDMA_QP_UC, RDMA_SEND, 0);
}

/* Eight SGEs of odd sizes, empty ones among them, onto eight others. */
static void scatter_and_gather(void **state)
{
	static const uint32_t out[] = {1, 0, 4096, 13, 5000, 0, 8, 883};
	static const uint32_t in[] = {2000, 7, 0, 0, 4000, 1, 3990, 10};
	struct pair pair = pair_new(RDMA_QP_RC);
	struct test_mr src = mr_scattered(pair.nic, PD, 0x1000, 40000, 0);
	struct test_mr dst = mr_scattered(pair.nic, PD, 0x800, 40000, RDMA_ACCESS_LOCAL_WRITE);
	struct rdma_wr wr = wr_send(RDMA_SEND, (struct rdma_sge){0});
	struct rdma_recv recv = {.num_sge = 8, .length = 10008};
	uint8_t sent[10001], landed[10001];
	uint32_t at = 0, total = 0;

	(void)state;
	mr_fill(&src, 9);
	mr_fill(&dst, 1);
	wr.num_sge = 8;
	for (unsigned i = 0; i < 8; i++) {
		wr.sge[i] = sge_of(&src, 4500 * i + 3, out[i]);
		mr_get(&src, 4500 * i + 3, sent + total, out[i]);
		total += out[i];
		recv.sge[i] = sge_of(&dst, 4900 * i, in[i]);
	}
	assert_int_equal(total, sizeof(sent));
	wr.length = total;
	qp_post_recv(pair.b, &recv);
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->length, total);
	for (unsigned i = 0; i < 8; i++) {
		uint32_t part = in[i] < total - at ? in[i] : total - at;

		mr_get(&dst, 4900 * i, landed + at, part);
		at += part;
	}
	assert_memory_equal(sent, landed, total);
	assert_int_equal(*mr_byte(&dst, 4900 * 7 + 3),
	                 (uint8_t)(1 + (4900 * 7 + 3) * 131 + ((4900 * 7 + 3) >> 8) * 17));
	mr_free(&src);
	mr_free(&dst);
	pair_free(&pair);
}

/* The message is the first `length` bytes, however much the SGEs hold: the kernel writes 2^31 for
 * an empty one. */
static void length_rules(void **state)
{
	struct pair pair = pair_new(RDMA_QP_RC);
	struct test_mr mr = mr_new(pair.nic, PD, 0x1000, 4096, RW);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&mr, 0, 0x80000000));
	struct rdma_recv recv = {.num_sge = 1, .length = 0, .sge = {sge_of(&mr, 0, 0x80000000)}};

	(void)state;
	wr.length = 0;
	qp_post_recv(pair.b, &recv);
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->length, 0);
	pair_free(&pair);
}

/* Zero bytes need no key, no address, and no access flags of the memory. */
static void zero_length(void **state)
{
	static const enum rdma_opcode opcodes[] = {RDMA_WRITE, RDMA_READ, RDMA_WRITE_IMM,
	                                           RDMA_SEND};
	struct pair pair = pair_new(RDMA_QP_RC);
	struct rdma_recv empty = {.wr_id = 3};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct rdma_wr wr =
		        wr_rdma(opcodes[i], (struct rdma_sge){.lkey = 0xdead}, 1, 0xbad);

		wr.num_sge = i % 2;
		qp_post_recv(pair.b, &empty);
		qp_post_send(pair.a, &wr);
		qp_expect_send(pair.a, RDMA_OK);
	}
	assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->opcode, RDMA_WRITE_IMM);
	assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->opcode, RDMA_SEND);
	assert_null(qp_poll_recv(pair.b));
	pair_free(&pair);
}

static void inline_data(void **state)
{
	struct pair pair = pair_new(RDMA_QP_RC);
	struct test_mr dst = mr_scattered(pair.nic, PD, 0xfff, 9000, RW);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, (struct rdma_sge){0}, dst.va + 3900, dst.key);
	uint8_t landed[RDMA_INLINE_MAX];

	(void)state;
	wr.flags |= RDMA_WR_INLINE;
	wr.num_sge = 0;
	wr.length = RDMA_INLINE_MAX;
	for (unsigned i = 0; i < RDMA_INLINE_MAX; i++)
		wr.inline_data[i] = (uint8_t)(i * 7);
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	mr_get(&dst, 3900, landed, sizeof(landed));
	assert_memory_equal(landed, wr.inline_data, sizeof(landed));
	wr.length = RDMA_INLINE_MAX + 1;
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_LOC_QP_OP_ERR);
	mr_free(&dst);
	pair_free(&pair);
}

static void immediate_and_flags(void **state)
{
	struct pair pair = pair_new(RDMA_QP_RC);
	struct test_mr mr = mr_new(pair.nic, PD, 0x1000, 4096, RW);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE_IMM, sge_of(&mr, 0, 100), mr.va + 200, mr.key);
	const struct rdma_wc *wc;

	(void)state;
	wr.imm = 0xddccbbaa;
	wr.wr_id = 0xabcdef0123456789;
	wr.flags = RDMA_WR_SOLICITED;
	qp_post_recv_sge(pair.b, 0x1111222233334444, sge_of(&mr, 0, 1));
	qp_post_send(pair.a, &wr);
	wc = qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(wc->wr_id, 0xabcdef0123456789);
	assert_false(wc->signaled);
	assert_true(wc->remote);
	wc = qp_expect_recv(pair.b, RDMA_OK);
	assert_int_equal(wc->wr_id, 0x1111222233334444);
	assert_int_equal(wc->opcode, RDMA_WRITE_IMM);
	assert_int_equal(wc->imm, 0xddccbbaa);
	assert_int_equal(wc->length, 100);
	assert_int_equal(wc->src_qpn, pair.a->qpn);
	assert_true(wc->solicited);

	wr = wr_send(RDMA_SEND_IMM, sge_of(&mr, 0, 10));
	wr.imm = 1;
	qp_post_recv_sge(pair.b, 2, sge_of(&mr, 100, 10));
	qp_post_send(pair.a, &wr);
	assert_true(qp_expect_send(pair.a, RDMA_OK)->signaled);
	wc = qp_expect_recv(pair.b, RDMA_OK);
	assert_int_equal(wc->imm, 1);
	assert_false(wc->solicited);
	pair_free(&pair);
}

/* SEND_INV frees the region that it names at the peer, and says so. */
static void send_invalidates(void **state)
{
	struct pair pair = pair_new(RDMA_QP_RC);
	struct test_mr mr = mr_new(pair.nic, PD, 0x1000, 4096, RW);
	struct test_mr fast = mr_new(pair.nic, PD, 0x2000, 4096, RW | RDMA_MR_INV);
	struct rdma_wr wr = wr_send(RDMA_SEND_INV, sge_of(&mr, 0, 16));
	const struct rdma_wc *wc;

	(void)state;
	wr.inv_key = fast.key;
	qp_post_recv_sge(pair.b, 2, sge_of(&mr, 100, 16));
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	wc = qp_expect_recv(pair.b, RDMA_OK);
	assert_int_equal(wc->opcode, RDMA_SEND_INV);
	assert_int_equal(wc->inv_key, fast.key);
	wr = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 16), fast.va, fast.key);
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_REM_ACCESS_ERR);
	pair_free(&pair);
}

static void atomics(void **state)
{
	struct pair pair = pair_new(RDMA_QP_RC);
	struct test_mr local = mr_new(pair.nic, PD, 0x1000, 4096, RW);
	struct test_mr remote = mr_scattered(pair.nic, PD, 0x2ff8, 8192, ALL);
	uint64_t word = 100, result;
	struct rdma_wr wr =
	        wr_atomic(RDMA_FETCH_ADD, sge_of(&local, 24, 8), remote.va + 8, remote.key);

	(void)state;
	mr_set(&remote, 8, &word, 8);
	wr.remote.swap_add = UINT64_MAX; /* minus one */
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	memcpy(&result, local.mem + 24, 8);
	mr_get(&remote, 8, &word, 8);
	assert_int_equal(result, 100);
	assert_int_equal(word, 99);

	wr.opcode = RDMA_CMP_SWAP;
	wr.remote.compare = 98; /* does not match */
	wr.remote.swap_add = 0x5555666677778888;
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	memcpy(&result, local.mem + 24, 8);
	mr_get(&remote, 8, &word, 8);
	assert_int_equal(result, 99);
	assert_int_equal(word, 99);

	wr.remote.compare = 99;
	qp_post_send(pair.a, &wr);
	qp_expect_send(pair.a, RDMA_OK);
	memcpy(&result, local.mem + 24, 8);
	mr_get(&remote, 8, &word, 8);
	assert_int_equal(result, 99);
	assert_int_equal(word, 0x5555666677778888);
	mr_free(&remote);
	pair_free(&pair);
}

/* Memory without a host mapping is reached by copies, at either end and at both. */
static void unmapped_memory(void **state)
{
	(void)state;
	for (unsigned ends = 1; ends <= 3; ends++) {
		struct pair pair = pair_new(RDMA_QP_RC);
		struct test_mr src = mr_new(pair.nic, PD, 0x1000, 20000, RW);
		struct test_mr dst = mr_new(pair.nic, PD, 0x9000, 20000, ALL);
		struct rdma_wr wr =
		        wr_rdma(RDMA_WRITE, sge_of(&src, 3, 15000), dst.va + 5, dst.key);
		uint64_t first = ends & 1 ? src.dma : dst.dma;
		uint64_t last = ends & 2 ? dst.dma : src.dma;

		pair.nic->copy_only = first;
		pair.nic->copy_only_end = last + 20000;
		mr_fill(&src, 1);
		mr_fill(&dst, 2);
		qp_post_send(pair.a, &wr);
		qp_expect_send(pair.a, RDMA_OK);
		check_landed(&dst, 5, &src, 3, 15000, 2);
		assert_true(pair.nic->copies > 0);

		uint64_t word = 41;

		mr_set(&dst, 16, &word, 8);
		wr = wr_atomic(RDMA_FETCH_ADD, sge_of(&src, 0, 8), dst.va + 16, dst.key);
		wr.remote.swap_add = 1;
		qp_post_send(pair.a, &wr);
		qp_expect_send(pair.a, RDMA_OK);
		mr_get(&dst, 16, &word, 8);
		assert_int_equal(word, 42);
		mr_get(&src, 0, &word, 8);
		assert_int_equal(word, 41);
		pair_free(&pair);
	}
}

/* A QP that is connected with itself, and two NICs on one fabric. */
static void who_talks_to_whom(void **state)
{
	struct nic *one = nic_new("loopback"), *two = nic_join(one);
	struct test_qp *self = qp_new(one, RDMA_QP_RC, PD), *a = qp_new(one, RDMA_QP_RC, PD);
	struct test_qp *b = qp_new(two, RDMA_QP_RC, 99);
	struct test_mr here = mr_new(one, PD, 0x1000, 4096, RW);
	struct test_mr there = mr_new(two, 99, 0x1000, 4096, RW);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 100), here.va + 1000, here.key);

	(void)state;
	mr_fill(&here, 1);
	qp_connect(self, self);
	qp_post_send(self, &wr);
	qp_expect_send(self, RDMA_OK);
	assert_memory_equal(here.mem, here.mem + 1000, 100);

	qp_connect(a, b);
	wr = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 100), there.va, there.key);
	qp_post_send(a, &wr);
	qp_expect_send(a, RDMA_OK);
	assert_memory_equal(here.mem, there.mem, 100);
	assert_int_equal(rdma_dev_stat(one->dev, RDMA_STAT_TX_PACKETS), 2);
	assert_int_equal(rdma_dev_stat(two->dev, RDMA_STAT_RX_BYTES), 100);
	qp_free(self);
	qp_free(a);
	qp_free(b);
	nic_free(two);
	nic_free(one);
}

/* ---- datagrams ---- */

static uint16_t sum16(const uint8_t *bytes, size_t size)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i += 2)
		sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

static void datagram(int version, bool vlan, bool with_imm)
{
	struct pair pair = pair_new(RDMA_QP_UD);
	struct test_mr mr = mr_new(pair.nic, PD, 0x1000, 8192, RW);
	struct rdma_wr wr = wr_send(with_imm ? RDMA_SEND_IMM : RDMA_SEND, sge_of(&mr, 0, 101));
	uint8_t header[RDMA_TEMPLATE_MAX], *grh = mr.mem + 4096;
	size_t size = nic_template(pair.nic, pair.nic, version, vlan, header);
	const struct rdma_wc *wc;

	mr_fill(&mr, 3);
	assert_int_equal(rdma_ah_create(pair.nic->dev, 0, PD, header, size), 0);
	wr.ud.ah = 0;
	wr.ud.qpn = pair.b->qpn;
	wr.ud.qkey = 0x80000000; /* its own */
	wr.imm = 0x01020304;
	qp_post_recv_sge(pair.b, 9, sge_of(&mr, 4096, 141));
	qp_post_send(pair.a, &wr);
	wc = qp_expect_send(pair.a, RDMA_OK);
	assert_false(wc->remote);
	wc = qp_expect_recv(pair.b, RDMA_OK);
	assert_int_equal(wc->length, 141);
	assert_int_equal(wc->src_qpn, pair.a->qpn);
	assert_int_equal(wc->ipv4, version == 4);
	assert_int_equal(wc->vlan, vlan);
	assert_int_equal(wc->vlan_tci, vlan ? 0x6064 : 0);
	assert_memory_equal(wc->src_mac, pair.nic->mac, 6);
	assert_memory_equal(grh + 40, mr.mem, 101);
	/* UDP: 8, BTH 12, DETH 8, [4], 101 + 3 of pad, ICRC 4 */
	unsigned udp = 8 + 12 + 8 + (with_imm ? 4 : 0) + 104 + 4;

	if (version == 4) {
		static const uint8_t zeros[20];

		assert_memory_equal(grh, zeros, 20);
		assert_memory_equal(grh + 32, ((uint8_t[]){10, 0, 0, 1, 10, 0, 0, 1}), 8);
		assert_int_equal(grh[22] << 8 | grh[23], 20 + udp);
		assert_int_equal(sum16(grh + 20, 20), 0xffff);
	} else {
		assert_int_equal(grh[0] >> 4, 6);
		assert_int_equal(grh[4] << 8 | grh[5], udp);
		assert_memory_equal(grh + 8, header + (vlan ? 26 : 22), 32);
	}
	pair_free(&pair);
}

static void datagrams(void **state)
{
	(void)state;
	datagram(4, false, false);
	datagram(4, true, true);
	datagram(6, false, true);
	datagram(6, true, false);
}

/* What does not fit, or is not meant for the QP, is dropped; the sender does not mind. */
static void datagrams_dropped(void **state)
{
	struct pair pair = pair_new(RDMA_QP_UD);
	struct test_mr mr = mr_new(pair.nic, PD, 0x1000, 16384, RW);
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(pair.nic, pair.nic, 4, false, header);
	struct nic stranger = {.mac = {2, 0, 0, 0, 0, 77}, .ip = 77};
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&mr, 0, 100));

	(void)state;
	assert_int_equal(rdma_ah_create(pair.nic->dev, 1, PD, header, size), 0);
	size = nic_template(pair.nic, &stranger, 4, false, header);
	assert_int_equal(rdma_ah_create(pair.nic->dev, 2, PD, header, size), 0);
	qp_post_recv_sge(pair.b, 1, sge_of(&mr, 4096, 139)); /* 40 + 100 do not fit */
	wr.ud.ah = 1;
	wr.ud.qpn = pair.b->qpn;
	wr.ud.qkey = 0x11111111;
	qp_post_send(pair.a, &wr); /* too long for its receive, which stays */
	wr.length = wr.sge[0].length = 99;
	wr.ud.qkey = 0x11111112;
	qp_post_send(pair.a, &wr); /* Q_Key */
	wr.ud.qkey = 0x11111111;
	wr.ud.ah = 2;
	qp_post_send(pair.a, &wr); /* nobody's MAC */
	wr.ud.ah = 1;
	wr.ud.qpn = 1000;
	qp_post_send(pair.a, &wr); /* no such QP */
	wr.ud.qpn = pair.b->qpn;
	wr.length = wr.sge[0].length = 4097;
	qp_post_send(pair.a, &wr); /* longer than the MTU */
	wr.length = wr.sge[0].length = 99;
	qp_post_send(pair.a, &wr); /* good */
	for (int i = 0; i < 6; i++)
		qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(qp_expect_recv(pair.b, RDMA_OK)->wr_id, 1);
	assert_null(qp_poll_recv(pair.b));
	assert_int_equal(rdma_dev_stat(pair.nic->dev, RDMA_STAT_TRUNCATED), 1);
	assert_int_equal(pair.b->flushes, 0);
	qp_post_send(pair.a, &wr); /* no receive */
	qp_expect_send(pair.a, RDMA_OK);
	assert_int_equal(rdma_dev_stat(pair.nic->dev, RDMA_STAT_RESP_RX_OUT_OF_BUFFER), 1);
	pair_free(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(write_lands),      cmocka_unit_test(read_lands),
	        cmocka_unit_test(send_lands),       cmocka_unit_test(scatter_and_gather),
	        cmocka_unit_test(length_rules),     cmocka_unit_test(zero_length),
	        cmocka_unit_test(inline_data),      cmocka_unit_test(immediate_and_flags),
	        cmocka_unit_test(send_invalidates), cmocka_unit_test(atomics),
	        cmocka_unit_test(unmapped_memory),  cmocka_unit_test(who_talks_to_whom),
	        cmocka_unit_test(datagrams),        cmocka_unit_test(datagrams_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
