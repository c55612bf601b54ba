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

#define BUFFER_STRIDE 16384u

static void create(void **state, uint64_t features)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig_create(rig, features);
	*state = rig;
}

static int set_up(void **state)
{
	create(state, RIG_FEATURES);
	return 0;
}

static int set_up_plain(void **state) /* nothing accepted */
{
	create(state, 0);
	return 0;
}

static int set_up_no_hash(void **state) /* steering by flow hash */
{
	create(state, RIG_FEATURES & ~IONIC_FEATURE_RX_HASH);
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	free(*state);
	return 0;
}

/* COUNT buffers of SIZE bytes in one piece, to queue INDEX. Buffer n is at n * BUFFER_STRIDE. */
static void post_simple(struct rig *rig, unsigned index, unsigned count, uint16_t size)
{
	for (unsigned i = 0; i < count; i++)
		rig_rx_post(rig, index, rig->memory + i * BUFFER_STRIDE, size, NULL, 0);
	rig_rx_ring(rig, index);
}

static uint8_t *buffer(struct rig *rig, unsigned n)
{
	return fake_ptr(&rig->guest, rig->memory + n * BUFFER_STRIDE, BUFFER_STRIDE);
}

static struct ionic_rxq_comp expect_comp(struct rig *rig, unsigned index)
{
	const uint8_t *raw = fake_ring_completion(&rig->guest, &rig->rx[index]);
	struct ionic_rxq_comp comp;

	assert_non_null(raw);
	memcpy(&comp, raw, sizeof(comp));
	comp.pkt_type_color &= 0x7f;
	return comp;
}

static void expect_no_comp(struct rig *rig, unsigned index)
{
	assert_null(fake_ring_completion(&rig->guest, &rig->rx[index]));
}

/* The driver's view of the checksum: bytes behind the Ethernet header, in network order. */
static void expect_csum(const struct ionic_rxq_comp *comp, const uint8_t *bytes, size_t size)
{
	uint16_t sum = naive_sum(bytes + 14, size - 14);

	assert_int_equal(comp->csum_flags & IONIC_RXQ_CSUM_CALC, IONIC_RXQ_CSUM_CALC);
	assert_int_equal((comp->csum[0] << 8 | comp->csum[1]) % 0xffff, sum % 0xffff);
}

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
	post_simple(rig, 0, 2, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_int_equal(comp.status, 0);
	assert_int_equal(comp.num_sg_elems, 0);
	assert_int_equal(le16_get(comp.comp_index), 0);
	assert_int_equal(le16_get(comp.len), frame.size);
	assert_int_equal(comp.pkt_type_color, IONIC_PKT_IPV4_TCP);
	assert_memory_equal(buffer(rig, 0), frame.bytes, frame.size);
	assert_int_equal(buffer(rig, 0)[frame.size], 0); /* and no more */
	expect_csum(&comp, frame.bytes, frame.size);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES), frame.size);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 1);
	assert_int_equal(rig_port_stat(rig, "frames_rx_ok"), 1);
	assert_int_equal(rig->guest.dev->intr[1].credits, 1);
}

static void test_short_frame_is_not_padded(void **state)
{
	struct rig *rig = *state;
	uint8_t arp[42] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 1, 2, 3};

	post_simple(rig, 0, 2, 1518);
	assert_int_equal(rig_host_send(rig, arp, sizeof(arp), (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_int_equal(le16_get(comp.len), 42);
	assert_int_equal(comp.pkt_type_color, IONIC_PKT_NON_IP);
	expect_csum(&comp, arp, sizeof(arp));
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
		struct ionic_rxq_comp comp = expect_comp(rig, 0);
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
		expect_csum(&comp, frame.bytes, frame.size);
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
		struct ionic_rxq_comp comp = expect_comp(rig, 0);
		size_t at = 0;

		for (unsigned i = 0; i < 9; i++) {
			uint64_t addr = i ? le64_get(sg[i - 1].addr) : rig->memory;

			memcpy(flat + at, fake_ptr(&rig->guest, addr, sizes[i]), sizes[i]);
			at += sizes[i];
		}
		assert_int_equal(le16_get(comp.len), expected.size);
		assert_memory_equal(flat, expected.bytes, expected.size);
		expect_csum(&comp, expected.bytes, expected.size);
	}
}

static void test_checksum_is_filled_without_rx_csum(void **state)
{
	struct rig *rig = *state;
	static struct frame frame, expected;

	build(&frame, 999);
	expected = frame;
	frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
	post_simple(rig, 0, 2, 1518);
	for (unsigned i = 0; i < 4; i++)
		if (i)
			fake_q_control(&rig->guest, &rig->rx[i], IONIC_Q_DISABLE);
	struct net_frame notes = {
	        .csum_partial = true, .csum_start = (uint16_t)frame.l4, .csum_offset = 16};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_memory_equal(buffer(rig, 0), expected.bytes, expected.size);
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
		post_simple(rig, 0, 63, 1518);
		for (unsigned i = 0; i < 63; i++)
			rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0});
		for (unsigned i = 0; i < 63; i++)
			assert_int_equal(le16_get(expect_comp(rig, 0).comp_index), next++ & 255);
		expect_no_comp(rig, 0);
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
	post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_memory_equal(buffer(rig, 0), plain.bytes, plain.size);
	assert_int_equal(le16_get(comp.len), plain.size);
	assert_int_equal(le16_get(comp.vlan_tci), 0xe005);
	assert_int_equal(comp.csum_flags & IONIC_RXQ_CSUM_VLAN, IONIC_RXQ_CSUM_VLAN);
	expect_csum(&comp, plain.bytes, plain.size);
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
	post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_memory_equal(buffer(rig, 0), frame.bytes, frame.size);
	assert_int_equal(comp.csum_flags, IONIC_RXQ_CSUM_CALC);
	expect_csum(&comp, frame.bytes, frame.size);
	assert_int_equal(rig_port_stat(rig, "frames_rx_vlan_good"), 1);
}

static void test_tag_is_kept_without_the_feature(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 500, .tagged = true, .tci = 9};
	static struct frame frame;

	frame_build(&spec, &frame);
	for (unsigned i = 0; i < 4; i++)
		post_simple(rig, i, 1, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	assert_memory_equal(buffer(rig, 0), frame.bytes, frame.size);
}

/* A tag that the other port leaves to us: the switch puts it in, and it is stripped again. */
static void test_tag_from_the_notes(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	post_simple(rig, 0, 1, 1518);
	struct net_frame notes = {.vlan = true, .vlan_tci = 5};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_memory_equal(buffer(rig, 0), frame.bytes, frame.size);
	assert_int_equal(le16_get(comp.vlan_tci), 5);
}

/* ---- large packets ---- */

static void check_segments(struct rig *rig, const struct frame_spec *spec, size_t mss,
                           const unsigned *slots, unsigned count)
{
	static struct frame expected;

	for (unsigned i = 0; i < count; i++) {
		struct ionic_rxq_comp comp = expect_comp(rig, 0);

		assert_true(frame_segment(spec, mss, i, &expected));
		assert_int_equal(le16_get(comp.len), expected.size);
		assert_memory_equal(buffer(rig, slots[i]), expected.bytes, expected.size);
		expect_csum(&comp, expected.bytes, expected.size);
		assert_int_equal(frame_l4_error(buffer(rig, slots[i]), expected.size), 0);
	}
	expect_no_comp(rig, 0);
}

static void test_large_packet_is_cut(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	unsigned slots[64];

	for (unsigned i = 0; i < 64; i++)
		slots[i] = i;
	for (unsigned round = 0; round < 60; round++) {
		struct frame_spec spec = {.payload = 1 + (size_t)rand() % 60000,
		                          .ipv6 = rand() % 2,
		                          .tcp_options = (unsigned)(rand() % 11) * 4,
		                          .tcp_flags = (uint8_t)rand(),
		                          .seq = (uint32_t)rand() << 8,
		                          .ip_id = (uint16_t)rand(),
		                          .seed = round};
		size_t mss = 1000 + (size_t)rand() % 7000;
		unsigned count = (unsigned)((spec.payload + mss - 1) / mss);

		frame_build(&spec, &frame);
		frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
		post_simple(rig, 0, count, 9018);
		struct net_frame notes = {
		        .csum_partial = true,
		        .csum_start = (uint16_t)frame.l4,
		        .csum_offset = 16,
		        .gso = spec.ipv6 ? NET_GSO_TCPV6 : NET_GSO_TCPV4,
		        .gso_size = (uint16_t)mss,
		        .hdr_size = (uint16_t)frame.payload,
		};

		assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
		check_segments(rig, &spec, mss, slots, count);
	}
	assert_int_equal(rig_port_stat(rig, "frames_rx_ok"),
	                 rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1));
}

static void test_large_packet_runs_out_of_buffers(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 10000};
	static struct frame frame;

	frame_build(&spec, &frame);
	frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
	post_simple(rig, 0, 3, 1518);
	struct net_frame notes = {.csum_partial = true,
	                          .csum_start = (uint16_t)frame.l4,
	                          .csum_offset = 16,
	                          .gso = NET_GSO_TCPV4,
	                          .gso_size = 1000,
	                          .hdr_size = (uint16_t)frame.payload};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 3);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 7);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_DROP_BYTES + 1), 7);
}

static struct net_frame waiting_packet(struct frame *frame, size_t payload)
{
	struct frame_spec spec = {.payload = payload};

	frame_build(&spec, frame);
	frame_unsum(frame, (uint32_t)(frame->size - frame->l4));
	return (struct net_frame){.csum_partial = true,
	                          .csum_start = (uint16_t)frame->l4,
	                          .csum_offset = 16,
	                          .gso = NET_GSO_TCPV4,
	                          .gso_size = 1000,
	                          .hdr_size = (uint16_t)frame->payload,
	                          .may_wait = true};
}

static void test_large_packet_waits_for_buffers(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	struct net_frame notes = waiting_packet(&frame, 10000);

	post_simple(rig, 0, 3, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EAGAIN);
	expect_no_comp(rig, 0); /* nothing was taken, and nothing counted */
	assert_int_equal(rig_port_stat(rig, "frames_rx_all"), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 0);
	post_simple(rig, 1, 10, 1518); /* of another queue */
	post_simple(rig, 0, 6, 1518);
	assert_int_equal(rig->host.ready, 0); /* one is missing still */
	post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig->host.ready, 1);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 10);
	post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig->host.ready, 1); /* nobody waits any more */
}

/* More segments than the driver ever has buffers for: it refills 16 at a time, so a ring that lacks
 * no more than that is all there is to wait for. */
static void test_large_packet_for_a_small_ring(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	struct net_frame notes = waiting_packet(&frame, 60000);

	notes.gso_size = 200;
	post_simple(rig, 0, 60, 600);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EAGAIN);
	for (unsigned i = 0; i < 3; i++)
		post_simple(rig, 0, 59, 600);
	assert_int_equal(rig->host.ready, 0);
	post_simple(rig, 0, 2, 600); /* 239 */
	assert_int_equal(rig->host.ready, 1);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 300 - 239);
}

static void test_waiting_ends_with_the_queue(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	struct net_frame notes = waiting_packet(&frame, 10000);

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EAGAIN);
	fake_q_control(&rig->guest, &rig->rx[0], IONIC_Q_DISABLE);
	assert_int_equal(rig->host.ready, 1);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EAGAIN);
	fake_reset(&rig->guest, VFIO_RESET_DEVICE);
	assert_int_equal(rig->host.ready, 2);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -ENETDOWN);
}

static void test_large_packet_with_bad_notes(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 10000);
	post_simple(rig, 0, 20, 1518);
	struct net_frame notes = {.csum_partial = true,
	                          .csum_start = (uint16_t)frame.l4,
	                          .csum_offset = 16,
	                          .gso = NET_GSO_TCPV6,
	                          .gso_size = 1000,
	                          .hdr_size = (uint16_t)frame.payload};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EBADMSG);
	expect_no_comp(rig, 0);
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
	post_simple(rig, 0, 1, 1518); /* and it goes on */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	expect_comp(rig, 0);
}

/* Dropped, and the buffer is there for the next frame. */
static void test_buffer_too_small(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	post_simple(rig, 0, 1, 1518);
	build(&frame, 1465); /* 1519 */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -EMSGSIZE);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_DESC_DATA_ERROR), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_DROP_BYTES + 1), 1);
	expect_no_comp(rig, 0);
	build(&frame, 1464);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	assert_int_equal(le16_get(expect_comp(rig, 0).len), 1518);
}

static void test_over_the_ports_maximum(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	post_simple(rig, 0, 2, 16000);
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

	post_simple(rig, 0, 4, 1518);
	build(&frame, 100);
	frame.bytes[5] = 77; /* to another station */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	frame_build(&spec, &frame); /* a VLAN that is not ours */
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	expect_no_comp(rig, 0);
	assert_int_equal(rig_port_stat(rig, "frames_rx_ok"), 2);
	assert_int_equal(rig_port_stat(rig, "frames_rx_dropped"), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 0);
}

static void test_link_down(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	post_simple(rig, 0, 2, 1518);
	ionic_link_set(rig->guest.dev, false);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENETDOWN);
	expect_no_comp(rig, 0);
	ionic_link_set(rig->guest.dev, true);
	fake_run(&rig->guest);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	expect_comp(rig, 0);
}

static void test_after_reset(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 100);
	post_simple(rig, 0, 2, 1518);
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
		struct ionic_rxq_comp comp = expect_comp(rig, 0);

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
	post_simple(rig, 0, 3, 1518);
	rig->guest.dev->lif.rxq[0].ring_base = 0x1000;
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), -EIO);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_DESC_FETCH_ERROR), 1);
}

static void test_checksum_far_into_the_frame(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build(&frame, 1000);
	post_simple(rig, 0, 3, 1518);
	struct net_frame notes = {.csum_partial = true, .csum_start = 800, .csum_offset = 16};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EBADMSG);
	expect_no_comp(rig, 0);
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
	assert_memory_equal(buffer(rig, 0), frame.bytes, frame.size);
	struct ionic_rxq_comp comp = expect_comp(rig, 0);

	assert_int_equal(comp.num_sg_elems, 2);
	expect_csum(&comp, frame.bytes, frame.size);
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

/* ---- steering ---- */

static const uint8_t key[40] = {
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
        0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
        0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* The queue that has a completion, or -1. */
static int queue_hit(struct rig *rig, struct ionic_rxq_comp *comp)
{
	for (unsigned i = 0; i < 4; i++) {
		const uint8_t *raw = fake_ring_completion(&rig->guest, &rig->rx[i]);

		if (!raw)
			continue;
		memcpy(comp, raw, sizeof(*comp));
		return (int)i;
	}
	return -1;
}

static int send_flow(struct rig *rig, uint16_t sport, struct ionic_rxq_comp *comp)
{
	struct frame_spec spec = {.payload = 64, .sport = sport, .dport = 80};
	static struct frame frame;

	frame_build(&spec, &frame);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}), 0);
	return queue_hit(rig, comp);
}

static uint32_t toeplitz(uint16_t sport)
{
	static struct net_rss_key rss;
	struct frame_spec spec = {.payload = 64, .sport = sport, .dport = 80};
	static struct frame frame;
	struct net_headers headers;
	uint32_t hash;
	bool l4;

	net_rss_key_init(&rss, key);
	frame_build(&spec, &frame);
	net_headers_parse(frame.bytes, frame.size, &headers);
	assert_true(net_rss_hash(&rss, 63, frame.bytes, &headers, &hash, &l4));
	return hash;
}

static void test_rss(void **state)
{
	struct rig *rig = *state;
	struct ionic_rxq_comp comp;
	uint8_t table[128];

	for (unsigned i = 0; i < 128; i++)
		table[i] = (uint8_t)(3 - i % 4);
	for (unsigned i = 0; i < 4; i++)
		post_simple(rig, i, 60, 1518);
	assert_int_equal(send_flow(rig, 1, &comp), 0); /* no table yet */
	rig_rss(rig, 63, key, table);
	for (uint16_t port = 100; port < 140; port++) {
		uint32_t hash = toeplitz(port);

		assert_int_equal(send_flow(rig, port, &comp), table[hash % 128]);
		assert_int_equal(le32_get(comp.rss_hash), hash);
		assert_int_equal(comp.pkt_type_color & 0x7f, IONIC_PKT_IPV4_TCP);
	}
	/* Addresses only: one queue for all, and the type says so. */
	rig_rss(rig, NET_RSS_IPV4, key, table);
	int first = send_flow(rig, 100, &comp);

	for (uint16_t port = 101; port < 110; port++)
		assert_int_equal(send_flow(rig, port, &comp), first);
	assert_int_equal(comp.pkt_type_color & 0x7f, IONIC_PKT_IPV4);
	rig_rss(rig, 0, key, table); /* no types: queue 0, no hash */
	assert_int_equal(send_flow(rig, 100, &comp), 0);
	assert_int_equal(le32_get(comp.rss_hash), 0);
}

static void test_rss_queue_not_enabled(void **state)
{
	struct rig *rig = *state;
	struct ionic_rxq_comp comp;
	uint8_t table[128];

	memset(table, 3, sizeof(table));
	for (unsigned i = 0; i < 4; i++)
		post_simple(rig, i, 10, 1518);
	rig_rss(rig, 63, key, table);
	assert_int_equal(send_flow(rig, 1, &comp), 3);
	fake_q_control(&rig->guest, &rig->rx[3], IONIC_Q_DISABLE);
	fake_q_control(&rig->guest, &rig->rx[0], IONIC_Q_DISABLE);
	assert_int_equal(send_flow(rig, 1, &comp), 1);
	fake_q_control(&rig->guest, &rig->rx[1], IONIC_Q_DISABLE);
	fake_q_control(&rig->guest, &rig->rx[2], IONIC_Q_DISABLE);
	static struct frame frame;

	build(&frame, 100);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENETDOWN);
}

static uint32_t fnv(uint16_t sport)
{
	const uint8_t input[13] = {
	        192, 168, 77, 1, 192, 168, 77, 2, 6, (uint8_t)(sport >> 8), (uint8_t)sport, 0, 80};
	uint32_t hash = 0x811c9dc5;

	for (unsigned i = 0; i < sizeof(input); i++)
		hash = (hash ^ input[i]) * 0x01000193;
	return hash;
}

/* Modulo the enabled queues, in index order (manual, The ionic Device). */
static void test_flow_hash_steering(void **state)
{
	struct rig *rig = *state;
	static const unsigned three[] = {0, 2, 3};
	struct ionic_rxq_comp comp;

	for (unsigned i = 0; i < 4; i++)
		post_simple(rig, i, 60, 1518);
	for (uint16_t port = 1; port < 30; port++) {
		assert_int_equal(send_flow(rig, port, &comp), fnv(port) % 4);
		assert_int_equal(le32_get(comp.rss_hash), 0);
	}
	fake_q_control(&rig->guest, &rig->rx[1], IONIC_Q_DISABLE);
	for (uint16_t port = 1; port < 30; port++)
		assert_int_equal(send_flow(rig, port, &comp), three[fnv(port) % 3]);
}

/* The frame waits for no other queue (manual, The ionic Device). */
static void test_no_fall_back_to_other_queues(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	uint16_t port = 1;

	while (fnv(port) % 4 != 2)
		port++;
	for (unsigned i = 0; i < 4; i++)
		if (i != 2)
			post_simple(rig, i, 60, 1518);
	struct frame_spec spec = {.payload = 64, .sport = port, .dport = 80};

	frame_build(&spec, &frame);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENOBUFS);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 1);
}

#define rxq_test(name)       cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define rxq_plain_test(name) cmocka_unit_test_setup_teardown(name, set_up_plain, tear_down)
#define rxq_fnv_test(name)   cmocka_unit_test_setup_teardown(name, set_up_no_hash, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        rxq_test(test_simple_frame),
	        rxq_test(test_short_frame_is_not_padded),
	        rxq_test(test_scattered_buffers),
	        rxq_test(test_tiny_odd_buffers),
	        rxq_plain_test(test_checksum_is_filled_without_rx_csum),
	        rxq_test(test_completions_in_order_and_color),
	        rxq_test(test_tag_is_stripped),
	        rxq_test(test_service_tag_is_kept),
	        rxq_plain_test(test_tag_is_kept_without_the_feature),
	        rxq_test(test_tag_from_the_notes),
	        rxq_test(test_large_packet_is_cut),
	        rxq_test(test_large_packet_runs_out_of_buffers),
	        rxq_test(test_large_packet_waits_for_buffers),
	        rxq_test(test_large_packet_for_a_small_ring),
	        rxq_test(test_waiting_ends_with_the_queue),
	        rxq_test(test_large_packet_with_bad_notes),
	        rxq_test(test_no_buffer),
	        rxq_test(test_buffer_too_small),
	        rxq_test(test_over_the_ports_maximum),
	        rxq_test(test_filtered),
	        rxq_test(test_link_down),
	        rxq_test(test_after_reset),
	        rxq_test(test_bad_buffers_are_completed_in_error),
	        rxq_test(test_endless_list),
	        rxq_test(test_unreadable_ring),
	        rxq_test(test_checksum_far_into_the_frame),
	        rxq_test(test_memory_by_messages),
	        cmocka_unit_test(test_reset_while_delivering),
	        rxq_test(test_rss),
	        rxq_test(test_rss_queue_not_enabled),
	        rxq_fnv_test(test_flow_hash_steering),
	        rxq_fnv_test(test_no_fall_back_to_other_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
