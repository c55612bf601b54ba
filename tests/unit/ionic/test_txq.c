/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit queues: descriptors as the driver writes them, and as it never would, against what
 * arrives at the other end of the wire, completions and counters.
 */
#include "eth_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/iov.h"

static struct rig_desc simple_desc(struct rig *rig, const struct frame *frame)
{
	return (struct rig_desc){.opcode = IONIC_TXQ_CSUM_NONE,
	                         .addr = rig_put(rig, 0, frame->bytes, frame->size),
	                         .size = (uint16_t)frame->size};
}

static void build_small(struct frame *frame)
{
	struct frame_spec spec = {.udp = true, .payload = 100, .seed = 9};

	frame_build(&spec, frame);
}

/* ---- plain frames ---- */

static void test_plain_frame(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.frames, 1);
	assert_int_equal(rig->host.last.size, frame.size);
	assert_memory_equal(rig->host.bytes, frame.bytes, frame.size);
	rig_expect_sent(rig, 0, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES), frame.size);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 1);
	assert_int_equal(rig_port_stat(rig, "frames_tx_ok"), 1);
	assert_int_equal(rig_port_stat(rig, "octets_tx_ok"), frame.size + 4);
	assert_int_equal(rig->guest.dev->intr[1].credits, 1);
}

static void test_scattered_frame(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 5000};
	struct ionic_sg_elem sg[IONIC_TXQ_SG_MAX];
	static struct frame frame;

	frame_build(&spec, &frame);
	size_t at = 77;

	for (unsigned i = 0; i < IONIC_TXQ_SG_MAX; i++) {
		size_t size = i == IONIC_TXQ_SG_MAX - 1 ? frame.size - at : 200 + i;

		sg[i] = (struct ionic_sg_elem){
		        .addr = le64_make(rig_put(rig, 8192 * (i + 1) + i, frame.bytes + at, size)),
		        .len = le16_make((uint16_t)size)};
		at += size;
	}
	rig_tx_post(rig, 1,
	            &(struct rig_desc){.addr = rig_put(rig, 3, frame.bytes, 77),
	                               .size = 77,
	                               .sg = sg,
	                               .sg_count = IONIC_TXQ_SG_MAX});
	rig_tx_ring(rig, 1);
	assert_int_equal(rig->host.last.size, frame.size);
	assert_memory_equal(rig->host.bytes, frame.bytes, frame.size);
	assert_int_equal(rig->host.last.iov_count, 16);
	rig_expect_sent(rig, 1, 0);
}

static void test_neighbours_become_one_piece(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	uint64_t addr = rig_put(rig, 0, frame.bytes, frame.size);
	struct ionic_sg_elem sg[2] = {
	        {.addr = le64_make(addr + 50), .len = le16_make(10)},
	        {.addr = le64_make(addr + 60), .len = le16_make((uint16_t)(frame.size - 60))}};

	rig_tx_post(rig, 0, &(struct rig_desc){.addr = addr, .size = 50, .sg = sg, .sg_count = 2});
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.last.iov_count, 1);
	assert_memory_equal(rig->host.bytes, frame.bytes, frame.size);
}

static void test_checksum_and_tag(void **state)
{
	struct rig *rig = *state;
	static struct frame frame, expected;

	for (unsigned ports = 0; ports < 2; ports++) {
		struct frame_spec spec = {.payload = 1001, .seed = ports};

		net_port_set_offloads(&rig->host.port, ports ? NET_OFFLOAD_ALL : 0);
		frame_build(&spec, &frame);
		frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
		struct rig_desc desc = simple_desc(rig, &frame);

		desc.opcode = IONIC_TXQ_CSUM_PARTIAL;
		desc.flags = IONIC_TXQ_VLAN;
		desc.vlan_tci = 0x6005;
		desc.csum_start_or_hdr_len = (uint16_t)frame.l4;
		desc.csum_offset_or_mss = 16;
		rig_tx_post(rig, 0, &desc);
		rig_tx_ring(rig, 0);
		if (ports) { /* left to the port */
			assert_true(rig->host.last.csum_partial && rig->host.last.vlan);
			assert_int_equal(rig->host.last.csum_start, frame.l4);
			assert_int_equal(rig->host.last.vlan_tci, 0x6005);
			continue;
		}
		spec.tagged = true;
		spec.tci = 0x6005;
		frame_build(&spec, &expected);
		assert_int_equal(rig->host.last.size, expected.size);
		assert_memory_equal(rig->host.bytes, expected.bytes, expected.size);
	}
	assert_int_equal(rig_port_stat(rig, "frames_tx_vlan"), 2);
	assert_int_equal(rig_port_stat(rig, "frames_tx_pri_3"), 2);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES), 2 * expected.size);
}

static void test_long_burst_wraps_and_completes(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	uint32_t sent = 0;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	for (unsigned round = 0; round < 7; round++) {
		for (unsigned i = 0; i < 255; i++, sent++)
			rig_tx_post(rig, 0, &desc);
		rig_tx_ring(rig, 0);
		assert_int_equal(rig->host.frames, sent);
		rig_expect_sent(rig, 0, (sent - 1) & 255);
	}
}

/* Interrupts are worth more than completions: a burst is covered by few. */
static void test_completions_are_few(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	for (unsigned i = 0; i < 200; i++)
		rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->guest.dev->lif.txq[0].completions, 1);
	assert_int_equal(rig->guest.msix[1], 0); /* still masked */
	rig_expect_sent(rig, 0, 199);
}

static void test_host_refuses(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	rig->host.result = -ENOBUFS;
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	rig_expect_sent(rig, 0, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_DROP_BYTES + 1), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 0);
	assert_int_equal(rig_port_stat(rig, "frames_tx_ok"), 0);
}

static void test_no_other_port_counts_as_sent(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	net_wire_detach(&rig->host.port);
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	rig_expect_sent(rig, 0, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 1);
}

static void test_link_down(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	ionic_link_set(rig->guest.dev, false);
	fake_run(&rig->guest);
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	rig_expect_sent(rig, 0, 0);
	assert_int_equal(rig->host.frames, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_DROP_BYTES + 1), 1);
}

static void test_disabled_queue_waits(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	assert_int_equal(fake_q_control(&rig->guest, &rig->tx[0], IONIC_Q_DISABLE), 0);
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.frames, 0);
	assert_int_equal(fake_q_control(&rig->guest, &rig->tx[0], IONIC_Q_ENABLE), 0);
	fake_run(&rig->guest);
	assert_int_equal(rig->host.frames, 1);
	rig_expect_sent(rig, 0, 0);
}

/* ---- nonsense ---- */

/* Posts DESC, and behind it a good frame, which must come through. */
static void expect_refused(struct rig *rig, const struct rig_desc *desc, enum ionic_lif_stat stat)
{
	static struct frame good;
	uint64_t before = rig_lif_stat(rig, stat);
	uint32_t last = (rig->tx[0].head + 1) & 255;

	build_small(&good);
	struct rig_desc behind = {.addr = rig_put(rig, RIG_MEMORY - 4096, good.bytes, good.size),
	                          .size = (uint16_t)good.size};

	rig->host.frames = 0;
	rig_tx_post(rig, 0, desc);
	rig_tx_post(rig, 0, &behind);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig_lif_stat(rig, stat), before + 1);
	assert_int_equal(rig->host.frames, 1);
	assert_memory_equal(rig->host.bytes, good.bytes, good.size);
	rig_expect_sent(rig, 0, last);
}

static void test_bad_descriptors(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	struct frame_spec spec = {.payload = 1000};

	frame_build(&spec, &frame);
	uint64_t addr = rig_put(rig, 0, frame.bytes, frame.size);
	uint16_t size = (uint16_t)frame.size;
	unsigned tso = IONIC_TXQ_TSO, whole = IONIC_TXQ_TSO_SOT | IONIC_TXQ_TSO_EOT;
	const struct rig_desc bad[] = {
	        {.opcode = 2, .addr = addr, .size = size},
	        {.opcode = 7, .addr = addr, .size = size},
	        {.opcode = 0, .addr = addr, .size = 13},
	        {.opcode = 0, .addr = addr, .size = 0},
	        {.opcode = 0, .addr = addr, .size = 9217},
	        {.opcode = 0, .addr = addr, .size = 9213, .flags = IONIC_TXQ_VLAN},
	        {.opcode = 1,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 34,
	         .csum_offset_or_mss = 65535},
	        {.opcode = 1,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 65535,
	         .csum_offset_or_mss = 65535},
	        {.opcode = 1, .addr = addr, .size = size, .csum_start_or_hdr_len = 2},
	        {.opcode = 1,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 800,
	         .csum_offset_or_mss = 16},
	        {.opcode = tso,
	         .flags = 0,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = IONIC_TXQ_TSO_EOT,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = IONIC_TXQ_TSO_SOT,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100}, /* another follows */
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 0},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 53,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 65535,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 0,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = 40,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = 20000,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 9500}, /* segments too large */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(rig, &bad[i], IONIC_LIF_TX_DESC_DATA_ERROR);
}

static void test_bad_memory(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg[2] = {{.addr = le64_make(rig->memory), .len = le16_make(100)},
	                              {.addr = le64_make(0x1000), .len = le16_make(100)}};
	const struct rig_desc bad[] = {
	        {.addr = 0x1000, .size = 100},
	        {.addr = 0xfffffffffffff, .size = 65535},
	        {.addr = FAKE_RAM_BASE + FAKE_RAM_SIZE - 99, .size = 100},
	        {.addr = rig->memory, .size = 100, .sg = sg, .sg_count = 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(rig, &bad[i], IONIC_LIF_TX_DMA_ERROR);
}

static void test_too_many_bytes(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg = {.addr = le64_make(rig->memory), .len = le16_make(65535)};

	expect_refused(rig,
	               &(struct rig_desc){.opcode = IONIC_TXQ_TSO,
	                                  .flags = IONIC_TXQ_TSO_SOT | IONIC_TXQ_TSO_EOT,
	                                  .addr = rig->memory,
	                                  .size = 66,
	                                  .csum_start_or_hdr_len = 54,
	                                  .csum_offset_or_mss = 1448,
	                                  .sg = &sg,
	                                  .sg_count = 1},
	               IONIC_LIF_TX_DESC_DATA_ERROR);
}

/* A ring full of a packet that never ends: completed, or the queue would hang for ever. */
static void test_full_ring_without_end(void **state)
{
	struct rig *rig = *state;
	uint64_t before = rig_counter("ionic_tx_bad_sequence");

	for (unsigned i = 0; i < 255; i++)
		rig_tx_post(rig, 0,
		            &(struct rig_desc){.opcode = IONIC_TXQ_TSO,
		                               .flags = i == 0 ? IONIC_TXQ_TSO_SOT : 0,
		                               .addr = rig->memory,
		                               .size = 60});
	rig_tx_ring(rig, 0);
	rig_expect_sent(rig, 0, 254);
	assert_int_equal(rig_counter("ionic_tx_bad_sequence"), before + 1);
	assert_int_equal(rig->host.frames, 0);
}

static void test_list_on_a_queue_without_lists(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg = {.addr = le64_make(rig->memory), .len = le16_make(100)};

	rig->guest.dev->lif.txq[0].has_sg = false;
	expect_refused(
	        rig, &(struct rig_desc){.addr = rig->memory, .size = 100, .sg = &sg, .sg_count = 1},
	        IONIC_LIF_TX_DESC_DATA_ERROR);
}

static void test_unreadable_ring(void **state)
{
	struct rig *rig = *state;

	rig->guest.dev->lif.txq[0].ring_base = FAKE_RAM_BASE + FAKE_RAM_SIZE - 3 * 16;
	fake_doorbell(&rig->guest, rig->tx[0].hw_type, rig->tx[0].hw_index, 10);
	fake_run(&rig->guest);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_DESC_FETCH_ERROR), 7);
	rig_expect_sent(rig, 0, 9);
}

static void test_no_bus_mastering(void **state)
{
	struct rig *rig = *state;

	rig->guest.bus_master = false;
	fake_doorbell(&rig->guest, rig->tx[0].hw_type, rig->tx[0].hw_index, 200);
	fake_run(&rig->guest); /* comes to an end */
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_DESC_FETCH_ERROR), 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        rig_test(test_plain_frame),
	        rig_test(test_scattered_frame),
	        rig_test(test_neighbours_become_one_piece),
	        rig_test(test_checksum_and_tag),
	        rig_test(test_long_burst_wraps_and_completes),
	        rig_test(test_completions_are_few),
	        rig_test(test_host_refuses),
	        rig_test(test_no_other_port_counts_as_sent),
	        rig_test(test_link_down),
	        rig_test(test_disabled_queue_waits),
	        rig_test(test_bad_descriptors),
	        rig_test(test_bad_memory),
	        rig_test(test_too_many_bytes),
	        rig_test(test_full_ring_without_end),
	        rig_test(test_list_on_a_queue_without_lists),
	        rig_test(test_unreadable_ring),
	        rig_test(test_no_bus_mastering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
