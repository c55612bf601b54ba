/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queues: frames from the wire against what the driver finds in its buffers, completions
 * and counters.
 */
#include "eth_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/iov.h"

static void build(struct frame *frame, size_t payload)
{
	struct frame_spec spec = {.payload = payload, .seed = 4, .sport = 7, .dport = 8};

	frame_build(&spec, frame);
}

/* ---- delivery ---- */

static void test_simple_frame(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 1000);
	rig_rx_post_simple(rig, 0, 2, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_int_equal(comp.status, 0);
	assert_int_equal(comp.num_sg_elems, 0);
	assert_int_equal(le16_get(comp.comp_index), 0);
	assert_int_equal(le16_get(comp.len), frame.size);
	assert_int_equal(comp.pkt_type_color, IONIC_PKT_IPV4_TCP);
	assert_memory_equal(rig_rx_buffer(rig, 0), frame.bytes, frame.size);
	assert_int_equal(rig_rx_buffer(rig, 0)[frame.size], 0); /* and no more */
	rig_expect_csum(&comp, frame.bytes, frame.size);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES), frame.size);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 1);
	assert_int_equal(rig_port_stat(rig, "frames_rx_ok"), 1);
	assert_int_equal(rig->guest.dev->intr[1].credits, 1);
}

static void test_short_frame_is_not_padded(void **state)
{
	struct rig *rig = *state;
	uint8_t arp[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 1, 2, 3};

	rig_rx_post_simple(rig, 0, 2, 1518);
	assert_int_equal(rig_host_send(rig, arp, sizeof(arp), (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_int_equal(le16_get(comp.len), 42);
	assert_int_equal(comp.pkt_type_color, IONIC_PKT_NON_IP);
	rig_expect_csum(&comp, arp, sizeof(arp));
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 5), 1);
	assert_int_equal(rig_port_stat(rig, "frames_rx_64b"), 1);
}

/* MTU 9000 as the driver posts it: 4096 + 4096 + 826, each at any alignment. */
static void test_scattered_buffers(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg[2] = {
	        {.addr = le64_make(rig->memory + 8193), .len = le16_make(4096)},
	        {.addr = le64_make(rig->memory + 20001), .len = le16_make(826)}};
	static const struct {
		size_t payload;
		unsigned used;
	} cases[] = {{8964, 2}, {8137, 1}, {8139, 2}, {4042, 0}, {4043, 1}, {1, 0}};
	static struct frame frame;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		build(&frame, cases[i].payload);
		rig_rx_post(rig, 0, rig->memory + 3, 4096, sg, 2);
		rig_rx_ring(rig, 0);
		assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
		                 0);
		struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);
		struct iovec iov[3] = {
		        {fake_ptr(&rig->guest, rig->memory + 3, 4096), 4096},
		        {fake_ptr(&rig->guest, rig->memory + 8193, 4096), 4096},
		        {fake_ptr(&rig->guest, rig->memory + 20001, 826), 826},
		};
		static uint8_t flat[9018];

		iov_to_buf(iov, 3, 0, flat, frame.size);
		assert_memory_equal(flat, frame.bytes, frame.size);
		assert_int_equal(comp.num_sg_elems, cases[i].used);
		assert_int_equal(le16_get(comp.len), frame.size);
		rig_expect_csum(&comp, frame.bytes, frame.size);
	}
}

/* Many odd buffers: every boundary falls anywhere, in head, options and payload. */
static void test_tiny_odd_buffers(void **state)
{
	struct rig *rig = *state;
	static struct frame frame, expected;
	static uint8_t flat[4096];

	for (unsigned round = 0; round < 300; round++) {
		struct frame_spec spec = {.payload = (size_t)rand() % 400,
		                          .ipv6 = rand() % 2,
		                          .tagged = rand() % 2,
		                          .tci = 5,
		                          .tcp_options = (unsigned)(rand() % 11) * 4,
		                          .seed = round};
		uint16_t sizes[9];
		struct ionic_sg_elem sg[8];

		for (unsigned i = 0; i < 9; i++)
			sizes[i] = (uint16_t)(1 + rand() % 120);
		sizes[8] = 1000;
		for (unsigned i = 0; i < 8; i++)
			sg[i] = (struct ionic_sg_elem){
			        .addr = le64_make(rig->memory + (i + 1) * 2000u + i),
			        .len = le16_make(sizes[i + 1])};
		frame_build(&spec, &frame);
		expected = frame;
		frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
		rig_rx_post(rig, 0, rig->memory, sizes[0], sg, 8);
		rig_rx_ring(rig, 0);
		struct net_frame notes = {
		        .csum_partial = true, .csum_start = (uint16_t)frame.l4, .csum_offset = 16};

		assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
		if (spec.tagged) { /* stripped */
			memmove(expected.bytes + 12, expected.bytes + 16, expected.size - 16);
			expected.size -= 4;
		}
		struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);
		size_t at = 0;

		for (unsigned i = 0; i < 9; i++) {
			uint64_t addr = i ? le64_get(sg[i - 1].addr) : rig->memory;

			memcpy(flat + at, fake_ptr(&rig->guest, addr, sizes[i]), sizes[i]);
			at += sizes[i];
		}
		assert_int_equal(le16_get(comp.len), expected.size);
		assert_memory_equal(flat, expected.bytes, expected.size);
		rig_expect_csum(&comp, expected.bytes, expected.size);
	}
}

static void test_checksum_is_filled_without_rx_csum(void **state)
{
	struct rig *rig = *state;
	static struct frame frame, expected;

	build(&frame, 999);
	expected = frame;
	frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
	rig_rx_post_simple(rig, 0, 2, 1518);
	for (unsigned i = 0; i < 4; i++)
		if (i)
			fake_q_control(&rig->guest, &rig->rx[i], IONIC_Q_DISABLE);
	struct net_frame notes = {
	        .csum_partial = true, .csum_start = (uint16_t)frame.l4, .csum_offset = 16};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_memory_equal(rig_rx_buffer(rig, 0), expected.bytes, expected.size);
	assert_int_equal(comp.csum_flags, 0);
	assert_int_equal(comp.csum[0] | comp.csum[1], 0);
}

static void test_completions_in_order_and_color(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	unsigned next = 0;

	build(&frame, 100);
	for (unsigned round = 0; round < 9; round++) {
		rig_rx_post_simple(rig, 0, 63, 1518);
		for (unsigned i = 0; i < 63; i++)
			rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0});
		for (unsigned i = 0; i < 63; i++)
			assert_int_equal(le16_get(rig_expect_comp(rig, 0).comp_index),
			                 next++ & 255);
		rig_expect_no_comp(rig, 0);
	}
}

/* ---- tags ---- */

static void test_tag_is_stripped(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 500, .tagged = true, .tci = 0xe005};
	static struct frame frame, plain;

	frame_build(&spec, &frame);
	spec.tagged = false;
	frame_build(&spec, &plain);
	rig_rx_post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_memory_equal(rig_rx_buffer(rig, 0), plain.bytes, plain.size);
	assert_int_equal(le16_get(comp.len), plain.size);
	assert_int_equal(le16_get(comp.vlan_tci), 0xe005);
	assert_int_equal(comp.csum_flags & IONIC_RXQ_CSUM_VLAN, IONIC_RXQ_CSUM_VLAN);
	rig_expect_csum(&comp, plain.bytes, plain.size);
	/* On the wire it had its tag. */
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES), frame.size);
	assert_int_equal(rig_port_stat(rig, "frames_rx_vlan_good"), 1);
	assert_int_equal(rig_port_stat(rig, "frames_rx_pri_7"), 1);
}

static void test_service_tag_is_kept(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 500, .tagged = true, .tci = 5};
	static struct frame frame;

	frame_build(&spec, &frame);
	memcpy(frame.bytes + 12, "\x88\xa8", 2);
	rig_rx_post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_memory_equal(rig_rx_buffer(rig, 0), frame.bytes, frame.size);
	assert_int_equal(comp.csum_flags, IONIC_RXQ_CSUM_CALC);
	rig_expect_csum(&comp, frame.bytes, frame.size);
	assert_int_equal(rig_port_stat(rig, "frames_rx_vlan_good"), 1);
}

static void test_tag_is_kept_without_the_feature(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 500, .tagged = true, .tci = 9};
	static struct frame frame;

	frame_build(&spec, &frame);
	for (unsigned i = 0; i < 4; i++)
		rig_rx_post_simple(rig, i, 1, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	assert_memory_equal(rig_rx_buffer(rig, 0), frame.bytes, frame.size);
}

/* A tag that the other port leaves to us: the switch puts it in, and it is stripped again. */
static void test_tag_from_the_notes(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	rig_rx_post_simple(rig, 0, 1, 1518);
	struct net_frame notes = {.vlan = true, .vlan_tci = 5};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_memory_equal(rig_rx_buffer(rig, 0), frame.bytes, frame.size);
	assert_int_equal(le16_get(comp.vlan_tci), 5);
}

/* ---- drops ---- */

static void test_no_buffer(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENOBUFS);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_DROP_BYTES), frame.size);
	assert_int_equal(rig_port_stat(rig, "frames_rx_dropped"), 1);
	assert_int_equal(rig_port_stat(rig, "frames_rx_ok"), 1);
	rig_rx_post_simple(rig, 0, 1, 1518); /* and it goes on */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	rig_expect_comp(rig, 0);
}

/* Dropped, and the buffer is there for the next frame. */
static void test_buffer_too_small(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	rig_rx_post_simple(rig, 0, 1, 1518);
	build(&frame, 1465); /* 1519 */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -EMSGSIZE);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_DESC_DATA_ERROR), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_DROP_BYTES + 1), 1);
	rig_expect_no_comp(rig, 0);
	build(&frame, 1464);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	assert_int_equal(le16_get(rig_expect_comp(rig, 0).len), 1518);
}

static void test_over_the_ports_maximum(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	rig_rx_post_simple(rig, 0, 2, 16000);
	build(&frame, 9216 - 54);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	build(&frame, 9217 - 54);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -EMSGSIZE);
	assert_int_equal(rig_port_stat(rig, "frames_rx_oversized"), 1);
	assert_int_equal(rig_port_stat(rig, "frames_rx_bad_all"), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_DROP_BYTES + 1), 0);
}

static void test_filtered(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 100, .tagged = true, .tci = 6};
	static struct frame frame;

	rig_rx_post_simple(rig, 0, 4, 1518);
	build(&frame, 100);
	frame.bytes[5] = 77; /* to another station */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	frame_build(&spec, &frame); /* a VLAN that is not ours */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	rig_expect_no_comp(rig, 0);
	assert_int_equal(rig_port_stat(rig, "frames_rx_ok"), 2);
	assert_int_equal(rig_port_stat(rig, "frames_rx_dropped"), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 0);
}

static void test_link_down(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	rig_rx_post_simple(rig, 0, 2, 1518);
	ionic_link_set(rig->guest.dev, false);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENETDOWN);
	rig_expect_no_comp(rig, 0);
	ionic_link_set(rig->guest.dev, true);
	fake_run(&rig->guest);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	rig_expect_comp(rig, 0);
}

static void test_after_reset(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	rig_rx_post_simple(rig, 0, 2, 1518);
	fake_reset(&rig->guest, VFIO_RESET_DEVICE);
	rig->guest.quiet = true;
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENETDOWN);
	rig->guest.quiet = false;
}

/* ---- nonsense ---- */

/* Completed in error, so that the queue goes on with the next descriptor. */
static void test_bad_buffers_are_completed_in_error(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg = {.addr = le64_make(0x1000), .len = le16_make(4096)};
	static struct frame frame;

	build(&frame, 1000);
	rig_rx_post(rig, 0, 0x1000, 1518, NULL, 0);
	rig_rx_post(rig, 0, UINT64_MAX - 10, 1518, NULL, 0);
	rig_rx_post(rig, 0, rig->memory, 100, &sg, 1);
	rig_rx_post(rig, 0, rig->memory, 1518, NULL, 0);
	*(uint8_t *)fake_ptr(&rig->guest, rig->rx[0].desc + 3 * 16, 1) = 9; /* opcode */
	rig_rx_post(rig, 0, rig->memory, 1518, NULL, 0);
	rig_rx_ring(rig, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
		                 -EIO);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	for (unsigned i = 0; i < 5; i++) {
		struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

		assert_int_equal(le16_get(comp.comp_index), i);
		assert_int_equal(comp.status != 0, i < 4);
	}
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_DMA_ERROR), 3);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_DESC_DATA_ERROR), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_DROP_BYTES + 1), 4);
}

static void test_endless_list(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg[8];
	static struct frame frame;

	for (unsigned i = 0; i < 8; i++) /* no end; an element without bytes is not one */
		sg[i] = (struct ionic_sg_elem){.addr = le64_make(rig->memory + 4096),
		                               .len = le16_make(0)};
	build(&frame, 1000);
	rig_rx_post(rig, 0, rig->memory, 100, sg, 8);
	rig_rx_ring(rig, 0);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -EMSGSIZE);
}

static void test_unreadable_ring(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 1000);
	rig_rx_post_simple(rig, 0, 3, 1518);
	rig->guest.dev->lif.rxq[0].ring_base = 0x1000;
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), -EIO);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_DESC_FETCH_ERROR), 1);
}

static void test_checksum_far_into_the_frame(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 1000);
	rig_rx_post_simple(rig, 0, 3, 1518);
	struct net_frame notes = {.csum_partial = true, .csum_start = 800, .csum_offset = 16};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EBADMSG);
	rig_expect_no_comp(rig, 0);
}

/* ---- memory that is reached by messages ---- */

static void test_memory_by_messages(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg[2] = {
	        {.addr = le64_make(rig->memory + 1000), .len = le16_make(4096)},
	        {.addr = le64_make(rig->memory + 5096), .len = le16_make(4096)}};
	static struct frame frame;

	build(&frame, 8000);
	rig->guest.messages_only = true;
	rig_rx_post(rig, 0, rig->memory, 1000, sg, 2);
	rig_rx_ring(rig, 0);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	assert_memory_equal(rig_rx_buffer(rig, 0), frame.bytes, frame.size);
	struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

	assert_int_equal(comp.num_sg_elems, 2);
	rig_expect_csum(&comp, frame.bytes, frame.size);
}

/* A reset that arrives with the Nth message. */
static void reset_at(struct fake_guest *guest, uint64_t addr, size_t size, enum guest_access access)
{
	(void)addr;
	(void)size;
	(void)access;
	if (--guest->hook_arg > 0)
		return;
	fake_reset(guest, VFIO_RESET_DEVICE);
	guest->quiet = true;
	guest->on_access = NULL;
}

static void test_reset_while_delivering(void **state)
{
	struct frame_spec spec = {.payload = 10000};
	static struct frame frame;

	(void)state;
	frame_build(&spec, &frame);
	frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
	struct net_frame notes = {.csum_partial = true,
	                          .csum_start = (uint16_t)frame.l4,
	                          .csum_offset = 16,
	                          .gso = NET_GSO_TCPV4,
	                          .gso_size = 1000,
	                          .hdr_size = (uint16_t)frame.payload};

	for (unsigned nth = 1; nth <= 2; nth++) { /* descriptor, list */
		struct rig *rig = calloc(1, sizeof(*rig));

		rig_create(rig, RIG_FEATURES);
		struct ionic_sg_elem sg = {.addr = le64_make(rig->memory + 1000),
		                           .len = le16_make(4096)};

		rig->guest.messages_only = true;
		rig_rx_post(rig, 0, rig->memory, 100, &sg, 1);
		rig_rx_post(rig, 0, rig->memory, 100, &sg, 1);
		rig_rx_ring(rig, 0);
		rig->guest.on_access = reset_at;
		rig->guest.hook_arg = nth;
		assert_true(rig_host_send(rig, frame.bytes, frame.size, notes) < 0);
		assert_true(rig->guest.quiet);
		assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 0);
		rig_destroy(rig);
		free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        rig_test(test_simple_frame),
	        rig_test(test_short_frame_is_not_padded),
	        rig_test(test_scattered_buffers),
	        rig_test(test_tiny_odd_buffers),
	        rig_test_plain(test_checksum_is_filled_without_rx_csum),
	        rig_test(test_completions_in_order_and_color),
	        rig_test(test_tag_is_stripped),
	        rig_test(test_service_tag_is_kept),
	        rig_test_plain(test_tag_is_kept_without_the_feature),
	        rig_test(test_tag_from_the_notes),
	        rig_test(test_no_buffer),
	        rig_test(test_buffer_too_small),
	        rig_test(test_over_the_ports_maximum),
	        rig_test(test_filtered),
	        rig_test(test_link_down),
	        rig_test(test_after_reset),
	        rig_test(test_bad_buffers_are_completed_in_error),
	        rig_test(test_endless_list),
	        rig_test(test_unreadable_ring),
	        rig_test(test_checksum_far_into_the_frame),
	        rig_test(test_memory_by_messages),
	        cmocka_unit_test(test_reset_while_delivering),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
