/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two engines with RoCEv2 between them: every operation, and the rules of the protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "net/roce_headers.h"
#include "roce_rig.h"

#define PD  1
#define ALL 0x1f

enum { BIG = 1 << 20 };

/* Two QPs of TYPE, connected, and a region on each side. */
struct pair {
	struct rig *rig;
	struct test_qp *a, *b;
	struct test_mr ma, mb;
};

static struct pair pair_new(enum rdma_qp_type type, unsigned mtu_shift, int version)
{
	struct pair p = {.rig = rig_new()};
	struct rdma_qp_attr attr;
	uint8_t header[RDMA_TEMPLATE_MAX];

	p.a = qp_new(p.rig->side[0].nic, type, PD);
	p.b = qp_new(p.rig->side[1].nic, type, PD);
	p.ma = mr_scattered(p.a->nic, PD, 0x1003, BIG, ALL);
	p.mb = mr_scattered(p.b->nic, PD, 0x77777, BIG, ALL);
	mr_fill(&p.ma, 1);
	mr_fill(&p.mb, 2);
	for (int i = 0; i < 2; i++) {
		struct test_qp *own = i ? p.b : p.a, *peer = i ? p.a : p.b;
		size_t size = nic_template(own->nic, peer->nic, version, version == 6, header);

		attr = qp_attr(own, peer);
		attr.mtu_shift = (uint8_t)mtu_shift;
		attr.timeout = 19;      /* 2 s: a busy machine adds no timeouts */
		attr.sq_psn = 0xfffff0; /* wraps */
		attr.rq_psn = 0xfffff0;
		attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
		assert_int_equal(rdma_av_parse(header, size, &attr.av), 0);
		qp_up(own, &attr);
	}
	return p;
}

/* For tests of timeouts. */
static void hurry(struct pair *p)
{
	struct rdma_qp_attr attr = {.timeout = 12}; /* 17 ms */

	assert_int_equal(rdma_qp_modify(p->a->qp, RDMA_ATTR_TIMEOUT, &attr), 0);
}

static void pair_free(struct pair *p)
{
	qp_free(p->a);
	qp_free(p->b);
	mr_free(&p->ma);
	mr_free(&p->mb);
	rig_free(p->rig);
}

static void assert_same(const struct test_mr *a, size_t at, const struct test_mr *b, size_t bt,
                        size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (*mr_byte(a, at + i) != *mr_byte(b, bt + i))
			fail_msg("byte %zu of %zu differs", i, size);
}

static uint64_t counted(const char *name)
{
	const struct counter *counter = counter_find(name);

	assert_non_null(counter);
	return counter_get(counter);
}

/* Turns until the counter NAME is above VALUE. */
static void await_counter(struct nic *nic, const char *name, uint64_t value)
{
	for (unsigned i = 0; i < 10000 && counted(name) <= value; i++)
		loop_turn(nic->loop, 1000000);
	assert_true(counted(name) > value);
}

static const size_t sizes[] = {0, 1, 3, 255, 256, 257, 1024, 4096, 4097, 9001, 65536, 300001};

static void test_send(struct pair *p, size_t size, enum rdma_opcode opcode)
{
	struct rdma_wr wr = wr_send(opcode, sge_of(&p->ma, 5, size));
	const struct rdma_wc *wc;
	uint32_t key = p->b->nic->next_mr << 8;

	if (opcode == RDMA_SEND_IMM)
		memcpy(&wr.imm, "\1\2\3\4", 4);
	if (opcode == RDMA_SEND_INV) {
		struct rdma_mr_config config = {.key = key,
		                                .pd = PD,
		                                .length = 8,
		                                .dma_addr = nic_dma(p->b->nic, 64, 64),
		                                .page_count = 1,
		                                .flags = RDMA_ACCESS_REMOTE_READ | RDMA_MR_INV};

		p->b->nic->next_mr++;
		assert_int_equal(rdma_mr_create(p->b->nic->dev, &config), 0);
		wr.inv_key = key;
	}
	qp_post_recv_sge(p->b, 77, sge_of(&p->mb, 9, size + 11));
	qp_post_send(p->a, &wr);
	wc = qp_expect_recv(p->b, RDMA_OK);
	assert_int_equal(wc->length, size);
	assert_int_equal(wc->opcode, opcode);
	if (opcode == RDMA_SEND_IMM)
		assert_memory_equal(&wc->imm, "\1\2\3\4", 4);
	if (opcode == RDMA_SEND_INV)
		assert_int_equal(wc->inv_key, key);
	qp_expect_send(p->a, RDMA_OK);
	assert_same(&p->ma, 5, &p->mb, 9, size);
}

static void test_write(struct pair *p, size_t size, bool imm)
{
	struct rdma_wr wr = wr_rdma(imm ? RDMA_WRITE_IMM : RDMA_WRITE, sge_of(&p->ma, 5, size),
	                            p->mb.va + 20001, p->mb.key);

	memcpy(&wr.imm, "\4\3\2\1", 4);
	if (imm)
		qp_post_recv_sge(p->b, 5, sge_of(&p->mb, 0, 0));
	qp_post_send(p->a, &wr);
	qp_expect_send(p->a, RDMA_OK);
	if (imm)
		assert_memory_equal(&qp_expect_recv(p->b, RDMA_OK)->imm, "\4\3\2\1", 4);
	else
		nic_spin(p->a->nic, 3); /* UC says nothing when it has landed */
	assert_same(&p->ma, 5, &p->mb, 20001, size);
}

static void test_read(struct pair *p, size_t size)
{
	struct rdma_wr wr =
	        wr_rdma(RDMA_READ, sge_of(&p->ma, 5, size), p->mb.va + 20001, p->mb.key);

	qp_post_send(p->a, &wr);
	qp_expect_send(p->a, RDMA_OK);
	assert_same(&p->ma, 5, &p->mb, 20001, size);
}

static void test_atomics(struct pair *p)
{
	struct rdma_wr wr =
	        wr_atomic(RDMA_FETCH_ADD, sge_of(&p->ma, 0, 8), (p->mb.va + 7) & ~7ull, p->mb.key);
	size_t at = (size_t)(wr.remote.va - p->mb.va);
	uint64_t value = 0x1122334455667788, got;

	mr_set(&p->mb, at, &value, 8);
	wr.remote.swap_add = 0x10;
	qp_post_send(p->a, &wr);
	qp_expect_send(p->a, RDMA_OK);
	mr_get(&p->ma, 0, &got, 8);
	assert_true(got == value);
	mr_get(&p->mb, at, &got, 8);
	assert_true(got == value + 0x10);
	wr.opcode = RDMA_CMP_SWAP;
	wr.remote.compare = value + 0x10;
	wr.remote.swap_add = 42;
	qp_post_send(p->a, &wr);
	qp_expect_send(p->a, RDMA_OK);
	mr_get(&p->mb, at, &got, 8);
	assert_true(got == 42);
	qp_post_send(p->a, &wr); /* does not match any more */
	qp_expect_send(p->a, RDMA_OK);
	mr_get(&p->ma, 0, &got, 8);
	assert_true(got == 42);
}

static void reliable(void **state)
{
	uint64_t again = counted("fabric_roce_tx_again");

	(void)state;
	for (unsigned shift = 8; shift <= 12; shift += 2)
		for (int version = 4; version <= 6; version += 2) {
			struct pair p = pair_new(RDMA_QP_RC, shift, version);

			for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
				test_send(&p, sizes[i], RDMA_SEND);
				test_send(&p, sizes[i], RDMA_SEND_IMM);
				test_send(&p, sizes[i], RDMA_SEND_INV);
				test_write(&p, sizes[i], false);
				test_write(&p, sizes[i], true);
				mr_fill(&p.mb, (unsigned)i);
				test_read(&p, sizes[i]);
				mr_fill(&p.ma, (unsigned)i + 7);
			}
			test_atomics(&p);
			pair_free(&p);
		}
	assert_int_equal(counted("fabric_roce_tx_again"), again);
}

static void unreliable(void **state)
{
	struct pair p = pair_new(RDMA_QP_UC, 10, 4);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		test_send(&p, sizes[i], RDMA_SEND);
		test_send(&p, sizes[i], RDMA_SEND_IMM);
		mr_fill(&p.ma, (unsigned)i + 7);
		test_write(&p, sizes[i], true);
	}
	pair_free(&p);
}

/* One QP to another by address handle; what arrives has the headers of the packet before it. */
static void datagrams_of(int version)
{
	struct pair p = pair_new(RDMA_QP_UD, 10, version);
	uint8_t header[RDMA_TEMPLATE_MAX], grh[40];
	size_t size = nic_template(p.a->nic, p.b->nic, version, version == 6, header);
	struct rdma_wr wr = wr_send(RDMA_SEND_IMM, sge_of(&p.ma, 3, 1000));
	const struct rdma_wc *wc;

	assert_int_equal(rdma_ah_create(p.a->nic->dev, 5, PD, header, size), 0);
	wr.ud.ah = 5;
	wr.ud.qpn = p.b->qpn;
	wr.ud.qkey = 0x11111111;
	memcpy(&wr.imm, "\1\2\3\4", 4);
	qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 8, 1040));
	qp_post_send(p.a, &wr);
	qp_expect_send(p.a, RDMA_OK);
	wc = qp_expect_recv(p.b, RDMA_OK);
	assert_int_equal(wc->length, 1040);
	assert_int_equal(wc->src_qpn, p.a->qpn);
	assert_int_equal(wc->ipv4, version == 4);
	assert_int_equal(wc->vlan, version == 6);
	assert_memory_equal(wc->src_mac, p.a->nic->mac, 6);
	assert_memory_equal(&wc->imm, "\1\2\3\4", 4);
	assert_same(&p.ma, 3, &p.mb, 48, 1000);
	mr_get(&p.mb, 8, grh, 40);
	if (version == 4) {
		assert_int_equal(grh[0], 0);
		assert_memory_equal(grh + 32, ((uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2}), 8);
	} else {
		assert_int_equal(grh[0] >> 4, 6);
		assert_int_equal(grh[4] << 8 | grh[5], 8 + 12 + 8 + 4 + 1000 + 4);
	}
	/* another Q_Key: nobody hears it */
	wr.ud.qkey = 5;
	qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 8, 1040));
	qp_post_send(p.a, &wr);
	qp_expect_send(p.a, RDMA_OK);
	nic_spin(p.a->nic, 5);
	assert_null(qp_poll_recv(p.b));
	pair_free(&p);
}

static void datagrams(void **state)
{
	(void)state;
	datagrams_of(4);
	datagrams_of(6);
}

/* Many requests at once, of all kinds: they complete in their order. */
static void pipelined(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);
	struct rdma_wr wr;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		enum rdma_opcode opcode = i % 3 == 0   ? RDMA_SEND
		                          : i % 3 == 1 ? RDMA_READ
		                                       : RDMA_WRITE;
		size_t size = i * 37 % 9000;

		wr = wr_rdma(opcode, sge_of(&p.ma, i * 100, size), p.mb.va + 500000, p.mb.key);
		wr.wr_id = i;
		if (opcode == RDMA_SEND)
			qp_post_recv_sge(p.b, i, sge_of(&p.mb, 0, 9000));
		qp_post_send(p.a, &wr);
	}
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(qp_expect_send(p.a, RDMA_OK)->wr_id, i);
	for (unsigned i = 0; i < 300; i += 3)
		assert_int_equal(qp_expect_recv(p.b, RDMA_OK)->wr_id, i);
	pair_free(&p);
}

/* A receive that comes late: the sender waits for the timer that the peer names, then goes on. */
static void not_ready(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&p.ma, 0, 5000));
	uint64_t naks = counted("fabric_roce_tx_naks");

	(void)state;
	qp_post_send(p.a, &wr);
	await_counter(p.a->nic, "fabric_roce_tx_naks", naks);
	qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 0, 5000));
	qp_expect_send(p.a, RDMA_OK);
	qp_expect_recv(p.b, RDMA_OK);
	assert_same(&p.ma, 0, &p.mb, 0, 5000);
	/* the same for immediate data: only its last packet waits */
	wr = wr_rdma(RDMA_WRITE_IMM, sge_of(&p.ma, 100, 5000), p.mb.va + 1000, p.mb.key);
	qp_post_send(p.a, &wr);
	await_counter(p.a->nic, "fabric_roce_tx_naks", counted("fabric_roce_tx_naks"));
	assert_null(qp_poll_send(p.a));
	qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 0, 0));
	qp_expect_send(p.a, RDMA_OK);
	assert_int_equal(qp_expect_recv(p.b, RDMA_OK)->opcode, RDMA_WRITE_IMM);
	assert_same(&p.ma, 100, &p.mb, 1000, 5000);
	pair_free(&p);
}

/* What the peer refuses, and how both sides hear of it. */
static void refusals(void **state)
{
	static const struct {
		enum rdma_opcode opcode;
		uint32_t size;
		uint64_t va; /* beyond the region's */
		uint32_t key;
		enum rdma_status status;
	} cases[] = {
	        {RDMA_WRITE, 3000, 0, 0x100, RDMA_REM_ACCESS_ERR},
	        {RDMA_READ, 3000, 0, 0x100, RDMA_REM_ACCESS_ERR},
	        {RDMA_WRITE, 3000, BIG - 2999, 0, RDMA_REM_ACCESS_ERR},
	        {RDMA_READ, 3000, BIG - 2999, 0, RDMA_REM_ACCESS_ERR},
	        {RDMA_FETCH_ADD, 8, 0x100, 0x100, RDMA_REM_ACCESS_ERR}, /* its address is odd */
	        {RDMA_SEND, 3000, 0, 0, RDMA_REM_INV_REQ_ERR}, /* too long for its receive */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair p = pair_new(RDMA_QP_RC, 10, 4);
		struct rdma_wr wr = wr_rdma(cases[i].opcode, sge_of(&p.ma, 0, cases[i].size),
		                            p.mb.va + cases[i].va, p.mb.key + cases[i].key);
		bool atomic = cases[i].opcode == RDMA_FETCH_ADD;

		qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 0, 2999));
		qp_post_send(p.a, &wr);
		qp_expect_send(p.a, atomic ? RDMA_REM_INV_REQ_ERR : cases[i].status);
		assert_int_equal(rdma_qp_state(p.a->qp), RDMA_QPS_ERR);
		assert_int_equal(rdma_qp_state(p.b->qp), RDMA_QPS_ERR);
		if (cases[i].opcode == RDMA_SEND)
			qp_expect_recv(p.b, RDMA_LOC_LEN_ERR);
		else
			assert_int_equal(
			        p.b->events[atomic ? RDMA_EVENT_REQ_ERR : RDMA_EVENT_ACCESS_ERR],
			        1);
		pair_free(&p);
	}
}

/* A peer that is not there any more. */
static void gone(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&p.ma, 0, 100));

	(void)state;
	assert_int_equal(qp_state(p.b, RDMA_QPS_RESET), 0);
	hurry(&p);
	qp_post_send(p.a, &wr);
	qp_expect_send(p.a, RDMA_RETRY_EXC_ERR);
	assert_int_equal(p.a->flushes, 1);
	pair_free(&p);
}

/* Every packet comes twice: nothing is executed twice. */
static unsigned double_all(struct rig *rig, unsigned side, struct rig_frame *frame)
{
	(void)rig, (void)side, (void)frame;
	return 2;
}

static void doubled(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);

	(void)state;
	p.rig->look = double_all;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		test_send(&p, sizes[i], RDMA_SEND_IMM);
		test_write(&p, sizes[i], true);
		test_read(&p, sizes[i]);
		mr_fill(&p.ma, (unsigned)i + 7);
	}
	test_atomics(&p);
	assert_null(qp_poll_send(p.a));
	assert_null(qp_poll_recv(p.b));
	pair_free(&p);
}

/* Drops the packet with the opcode that arg names, once. */
static unsigned drop_one(struct rig *rig, unsigned side, struct rig_frame *frame)
{
	int *opcode = rig->arg;

	(void)side;
	if (frame->bytes[42] != *opcode)
		return 1;
	*opcode = -1;
	return 0;
}

/* Whatever packet is lost, what it takes to repair it is known: no timeout where the peer, or the
 * next response, tells. */
static void lost_once(void **state)
{
	static const struct {
		int opcode;
		bool timeout; /* nobody can tell */
	} cases[] = {
	        {ROCE_SEND_FIRST, false},  {ROCE_SEND_MIDDLE, false}, {ROCE_SEND_LAST, true},
	        {ROCE_WRITE_FIRST, false}, {ROCE_WRITE_LAST, true},   {ROCE_READ_REQUEST, true},
	        {ROCE_READ_FIRST, false},  {ROCE_READ_MIDDLE, false}, {ROCE_READ_LAST, true},
	        {ROCE_ACK, true},          {ROCE_FETCH_ADD, true},    {ROCE_ATOMIC_ACK, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair p = pair_new(RDMA_QP_RC, 10, 4);
		int opcode = cases[i].opcode;
		struct rdma_dev *dev = p.a->nic->dev;

		if (cases[i].timeout)
			hurry(&p);
		p.rig->look = drop_one;
		p.rig->arg = &opcode;
		test_send(&p, 9000, RDMA_SEND);
		test_write(&p, 9000, false);
		test_read(&p, 9000);
		test_atomics(&p);
		assert_int_equal(opcode, -1);
		if (!cases[i].timeout)
			assert_int_equal(rdma_dev_stat(dev, RDMA_STAT_RETRIES), 1);
		pair_free(&p);
	}
}

/* Marks all data as having met congestion. */
static unsigned mark(struct rig *rig, unsigned side, struct rig_frame *frame)
{
	(void)rig;
	if (side == 0)
		frame->bytes[15] |= 3;
	return 1;
}

static void congestion(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);
	uint64_t sent = counted("fabric_roce_tx_cnps"), got = counted("fabric_roce_rx_cnps");

	(void)state;
	p.rig->look = mark;
	test_write(&p, 300001, false);
	test_send(&p, 300001, RDMA_SEND);
	assert_true(counted("fabric_roce_tx_cnps") > sent);
	assert_true(counted("fabric_roce_rx_cnps") > got);
	pair_free(&p);
}

/* Without a link nothing goes and nothing comes; with it again, the connection goes on. */
static void link_down(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&p.ma, 0, 5000));

	(void)state;
	hurry(&p);
	p.rig->side[0].guest.down = true;
	qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 0, 5000));
	qp_post_send(p.a, &wr);
	await_counter(p.a->nic, "fabric_roce_tx_no_link", counted("fabric_roce_tx_no_link"));
	assert_null(qp_poll_recv(p.b));
	p.rig->side[0].guest.down = false;
	qp_expect_send(p.a, RDMA_OK);
	qp_expect_recv(p.b, RDMA_OK);
	pair_free(&p);
}

/* Somebody else with all numbers right, but another address, is not heard. */
static unsigned disguise(struct rig *rig, unsigned side, struct rig_frame *frame)
{
	size_t size = frame->size;

	(void)rig;
	if (side != 0 || frame->bytes[29] != 1)
		return 1;
	frame->bytes[29] = 9; /* 10.0.0.9 */
	assert_int_equal(roce_seal(frame->bytes, 14, size - 4, 7), size);
	return 1;
}

static void stranger(void **state)
{
	struct pair p = pair_new(RDMA_QP_RC, 10, 4);
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&p.ma, 0, 100));

	(void)state;
	p.rig->look = disguise;
	qp_post_recv_sge(p.b, 1, sge_of(&p.mb, 0, 100));
	qp_post_send(p.a, &wr);
	await_counter(p.a->nic, "fabric_roce_rx_stranger", counted("fabric_roce_rx_stranger"));
	assert_null(qp_poll_recv(p.b));
	pair_free(&p);
}

/* Frames of others pass by; so does RoCE while the device has no QP (13.1). */
static void steering(void **state)
{
	struct rig *rig = rig_new();
	uint8_t frame[100];
	size_t size = nic_template(rig->side[0].nic, rig->side[1].nic, 4, false, frame);

	(void)state;
	memset(frame + size, 0, sizeof(frame) - size);
	rig_inject(rig, 0, frame, sizeof(frame));
	nic_spin(rig->side[0].nic, 3);
	assert_int_equal(rig->side[1].for_guest, 1);
	struct test_qp *qp = qp_new(rig->side[1].nic, RDMA_QP_RC, PD);

	rig_inject(rig, 0, frame, sizeof(frame));
	nic_spin(rig->side[0].nic, 3);
	assert_int_equal(rig->side[1].for_guest, 1);
	frame[37]++; /* another UDP port */
	rig_inject(rig, 0, frame, sizeof(frame));
	nic_spin(rig->side[0].nic, 3);
	assert_int_equal(rig->side[1].for_guest, 2);
	qp_free(qp);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(reliable),   cmocka_unit_test(unreliable),
	        cmocka_unit_test(datagrams),  cmocka_unit_test(pipelined),
	        cmocka_unit_test(not_ready),  cmocka_unit_test(refusals),
	        cmocka_unit_test(gone),       cmocka_unit_test(steering),
	        cmocka_unit_test(doubled),    cmocka_unit_test(lost_once),
	        cmocka_unit_test(congestion), cmocka_unit_test(link_down),
	        cmocka_unit_test(stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
