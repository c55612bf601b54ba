/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that stay in the process, in a capture: packets that are whole, in order, and right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "net/net.h"
#include "net/pcap.h"
#include "net/roce_headers.h"
#include "verbs.h"

#define PD  1
#define ALL 0x1f

static struct rig {
	struct loop *loop;
	struct net_wire *wire;
	struct rdma_fabric *fabric;
	struct nic *nic;
	struct test_qp *a, *b;
	struct test_mr src, dst;
	struct net_pcap *pcap;
	char path[32];
	uint8_t bytes[1 << 18];
	size_t size, at;
} rig;

static void rig_up(const char *backend)
{
	struct fabric_place place;
	char error[160];

	memset(&rig, 0, sizeof(rig));
	strcpy(rig.path, "/tmp/ernic-trace-XXXXXX");
	close(mkstemp(rig.path));
	assert_int_equal(loop_create(&rig.loop), 0);
	assert_int_equal(net_wire_create(&rig.wire), 0);
	place = (struct fabric_place){.loop = rig.loop, .wire = rig.wire};
	assert_int_equal(fabric_create(&place, backend, &rig.fabric, error, sizeof(error)), 0);
	rig.nic = nic_on(rig.loop, rig.fabric, 1);
	rig.src = mr_new(rig.nic, PD, 0x1000, 65536, ALL);
	rig.dst = mr_new(rig.nic, PD, 0x90000, 65536, ALL);
	mr_fill(&rig.src, 1);
	mr_fill(&rig.dst, 2);
	rig.a = qp_new(rig.nic, RDMA_QP_RC, PD);
	rig.b = qp_new(rig.nic, RDMA_QP_RC, PD);
	qp_connect(rig.a, rig.b);
	assert_int_equal(net_pcap_open(rig.loop, rig.path, &rig.pcap), 0);
	net_wire_capture(rig.wire, rig.pcap, true);
}

static void rig_read(void)
{
	net_wire_capture(rig.wire, NULL, false);
	net_pcap_close(rig.pcap);
	FILE *file = fopen(rig.path, "rb");

	assert_non_null(file);
	rig.size = fread(rig.bytes, 1, sizeof(rig.bytes), file);
	fclose(file);
	unlink(rig.path);
	rig.at = 28 + 44; /* behind the head of the file */
}

static void rig_down(void)
{
	assert_int_equal(rig.at, rig.size);
	qp_free(rig.a);
	qp_free(rig.b);
	nic_free(rig.nic);
	fabric_destroy(rig.fabric);
	net_wire_destroy(rig.wire);
	loop_destroy(rig.loop);
}

/* The next packet of the capture. */
static struct roce_packet next(uint8_t opcode)
{
	struct roce_packet packet;
	uint32_t block[7];

	assert_true(rig.at + 28 < rig.size);
	memcpy(block, rig.bytes + rig.at, sizeof(block));
	if (roce_parse(rig.bytes + rig.at + 28, block[5], &packet) != ROCE_OK)
		fail_msg("a packet with opcode %#x is not well-formed", packet.fields.opcode);
	assert_int_equal(packet.fields.opcode, opcode);
	rig.at += block[1];
	return packet;
}

static void post(enum rdma_opcode opcode, size_t size, uint32_t key, enum rdma_status status)
{
	struct rdma_wr wr = wr_rdma(opcode, sge_of(&rig.src, 64, size), rig.dst.va + 64, key);

	wr.remote.swap_add = 3;
	qp_post_send(rig.a, &wr);
	qp_expect_send(rig.a, status);
}

static void messages(const char *backend)
{
	uint32_t psn = 2 * 77777, length = 0;
	struct roce_packet packet;

	rig_up(backend);
	qp_post_recv_sge(rig.b, 1, sge_of(&rig.dst, 0, 4096));
	post(RDMA_SEND, 2500, 0, RDMA_OK);
	post(RDMA_WRITE, 1, rig.dst.key, RDMA_OK);
	post(RDMA_READ, 2500, rig.dst.key, RDMA_OK);
	post(RDMA_FETCH_ADD, 8, rig.dst.key, RDMA_OK);
	post(RDMA_WRITE, 9, 0x100, RDMA_REM_ACCESS_ERR);
	rig_read();

	packet = next(ROCE_SEND_FIRST);
	assert_int_equal(packet.fields.psn, psn);
	assert_int_equal(packet.fields.qpn, rig.b->qpn);
	assert_int_equal(next(ROCE_SEND_MIDDLE).size, 1024);
	assert_int_equal(next(ROCE_SEND_LAST).size, 2500 - 2048);
	packet = next(ROCE_ACK);
	assert_int_equal(packet.fields.psn, psn + 2);
	assert_int_equal(packet.fields.msn, 1);
	assert_int_equal(packet.fields.qpn, rig.a->qpn);
	assert_int_equal(next(ROCE_WRITE_ONLY).size, 1);
	next(ROCE_ACK);
	packet = next(ROCE_READ_REQUEST);
	assert_int_equal(packet.fields.length, 2500);
	for (unsigned i = 0; i < 3; i++) {
		static const uint8_t opcodes[] = {ROCE_READ_FIRST, ROCE_READ_MIDDLE,
		                                  ROCE_READ_LAST};

		packet = next(opcodes[i]);
		assert_int_equal(packet.fields.psn, psn + 4 + i);
		assert_memory_equal(packet.payload + 8, rig.src.mem + 64 + length + 8,
		                    packet.size - 8); /* but the old value that came later */
		length += (uint32_t)packet.size;
	}
	assert_int_equal(length, 2500);
	next(ROCE_FETCH_ADD);
	packet = next(ROCE_ATOMIC_ACK);
	assert_memory_equal(&packet.fields.original, rig.src.mem + 64, 8);
	next(ROCE_WRITE_ONLY);
	assert_int_equal(next(ROCE_ACK).fields.syndrome, ROCE_SYNDROME_ACCESS);
	rig_down();
}

/* A long message takes as many turns with a capture as without, each with its share. */
static void slices(void **state)
{
	enum { LENGTH = 1 << 20, PACKETS = LENGTH / 1024, TURN = 2 * (256 << 10) / 1024 };
	const struct counter *frames = counter_find("net_pcap_frames");
	const struct rdma_wc *wc;

	(void)state;
	rig_up("loopback");
	struct test_mr src = mr_new(rig.nic, PD, 0x200000, LENGTH, ALL);
	struct test_mr dst = mr_new(rig.nic, PD, 0x400000, LENGTH, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&src, 0, LENGTH), dst.va, dst.key);
	uint64_t first = counter_get(frames), before = first;

	qp_post_send(rig.a, &wr);
	while (!(wc = qp_poll_send(rig.a))) {
		loop_turn(rig.loop, 1000000);
		assert_true(counter_get(frames) - before <= TURN);
		before = counter_get(frames);
	}
	assert_int_equal(wc->status, RDMA_OK);
	assert_int_equal(counter_get(frames) - first, PACKETS + 1);
	mr_free(&src);
	mr_free(&dst);
	rig_read();
	rig.at = rig.size; /* too much to be read here */
	rig_down();
}

/* A guest that changes the path MTU half-way has each turn's share shown all the same. */
static void mtu_changes(void **state)
{
	enum { LENGTH = 1 << 20, TURN = 2 * (256 << 10) / 256 };
	const struct counter *frames = counter_find("net_pcap_frames");
	struct rdma_qp_attr attr = {.mtu_shift = 8};
	const struct rdma_wc *wc;

	(void)state;
	rig_up("loopback");
	struct test_mr src = mr_new(rig.nic, PD, 0x200000, LENGTH, ALL);
	struct test_mr dst = mr_new(rig.nic, PD, 0x400000, LENGTH, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&src, 0, LENGTH), dst.va, dst.key);
	uint64_t before = counter_get(frames);

	assert_int_equal(rdma_qp_modify(rig.a->qp, RDMA_ATTR_MTU, &attr), 0);
	qp_post_send(rig.a, &wr);
	attr.mtu_shift = 12;
	while (!(wc = qp_poll_send(rig.a))) {
		loop_turn(rig.loop, 1000000);
		assert_true(counter_get(frames) - before <= TURN);
		if (counter_get(frames) > before)
			assert_int_equal(rdma_qp_modify(rig.a->qp, RDMA_ATTR_MTU, &attr), 0);
		before = counter_get(frames);
	}
	assert_int_equal(wc->status, RDMA_OK);
	mr_free(&src);
	mr_free(&dst);
	rig_read();
	rig.at = rig.size; /* too much to be read here */
	rig_down();
}

static void loopback(void **state)
{
	(void)state;
	messages("loopback");
}

static void roce(void **state)
{
	(void)state;
	messages("roce");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(loopback),
	        cmocka_unit_test(roce),
	        cmocka_unit_test(slices),
	        cmocka_unit_test(mtu_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
