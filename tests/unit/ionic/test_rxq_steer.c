/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Receive queues: large packets, cut and waiting, and which queue a frame is steered to. */
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

/* ---- large packets ---- */

static void check_segments(struct rig *rig, const struct frame_spec *spec, size_t mss,
                           const unsigned *slots, unsigned count)
{
	static struct frame expected;

	for (unsigned i = 0; i < count; i++) {
		struct ionic_rxq_comp comp = rig_expect_comp(rig, 0);

		assert_true(frame_segment(spec, mss, i, &expected));
		assert_int_equal(le16_get(comp.len), expected.size);
		assert_memory_equal(rig_rx_buffer(rig, slots[i]), expected.bytes, expected.size);
		rig_expect_csum(&comp, expected.bytes, expected.size);
		assert_int_equal(frame_l4_error(rig_rx_buffer(rig, slots[i]), expected.size), 0);
	}
	rig_expect_no_comp(rig, 0);
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
		rig_rx_post_simple(rig, 0, count, 9018);
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
	rig_rx_post_simple(rig, 0, 3, 1518);
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

	rig_rx_post_simple(rig, 0, 3, 1518);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EAGAIN);
	rig_expect_no_comp(rig, 0); /* nothing was taken, and nothing counted */
	assert_int_equal(rig_port_stat(rig, "frames_rx_all"), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 0);
	rig_rx_post_simple(rig, 1, 10, 1518); /* of another queue */
	rig_rx_post_simple(rig, 0, 6, 1518);
	assert_int_equal(rig->host.ready, 0); /* one is missing still */
	rig_rx_post_simple(rig, 0, 1, 1518);
	assert_int_equal(rig->host.ready, 1);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_UCAST_BYTES + 1), 10);
	rig_rx_post_simple(rig, 0, 1, 1518);
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
	rig_rx_post_simple(rig, 0, 60, 600);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EAGAIN);
	for (unsigned i = 0; i < 3; i++)
		rig_rx_post_simple(rig, 0, 59, 600);
	assert_int_equal(rig->host.ready, 0);
	rig_rx_post_simple(rig, 0, 2, 600); /* 239 */
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
	rig_rx_post_simple(rig, 0, 20, 1518);
	struct net_frame notes = {.csum_partial = true,
	                          .csum_start = (uint16_t)frame.l4,
	                          .csum_offset = 16,
	                          .gso = NET_GSO_TCPV6,
	                          .gso_size = 1000,
	                          .hdr_size = (uint16_t)frame.payload};

	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, notes), -EBADMSG);
	rig_expect_no_comp(rig, 0);
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
		rig_rx_post_simple(rig, i, 60, 1518);
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
		rig_rx_post_simple(rig, i, 10, 1518);
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
		rig_rx_post_simple(rig, i, 60, 1518);
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
			rig_rx_post_simple(rig, i, 60, 1518);
	struct frame_spec spec = {.payload = 64, .sport = port, .dport = 80};

	frame_build(&spec, &frame);
	assert_int_equal(rig_host_send(rig, frame.bytes, frame.size, (struct net_frame){0}),
	                 -ENOBUFS);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_RX_QUEUE_EMPTY), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        rig_test(test_large_packet_is_cut),
	        rig_test(test_large_packet_runs_out_of_buffers),
	        rig_test(test_large_packet_waits_for_buffers),
	        rig_test(test_large_packet_for_a_small_ring),
	        rig_test(test_waiting_ends_with_the_queue),
	        rig_test(test_large_packet_with_bad_notes),
	        rig_test(test_rss),
	        rig_test(test_rss_queue_not_enabled),
	        rig_test_no_hash(test_flow_hash_steering),
	        rig_test_no_hash(test_no_fall_back_to_other_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
