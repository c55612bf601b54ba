// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Offloads: checksums, segmentation, VLAN tags, both ways.
 *
 * The server may do the work or hand it to the kernel with the TAP's offload header. Both must come
 * to the same frames on the wire, so what the kernel got is first made into those frames.
 */
#include "env.h"

#include <string.h>

#define GSO_TCPV4 1
#define GSO_TCPV6 4
#define GSO_ECN   0x80

static const struct env_options offloads = {.tap = true, .server.profile = "generic-100g"};
static const struct env_options none = {.tap = true};

static const struct {
	int version;
	uint8_t protocol;
} kinds[] = {
        {4, FRAME_PROTO_TCP}, {4, FRAME_PROTO_UDP}, {6, FRAME_PROTO_TCP}, {6, FRAME_PROTO_UDP}};

/* ---- transmit checksum ---- */

/* Fills the checksum that the kernel was asked to fill. */
static void settle_csum(struct peer_frame *got)
{
	uint16_t sum;

	if (!got->needs_csum)
		return;
	assert_true(got->csum_start + got->csum_offset + 2u <= got->size);
	sum = (uint16_t)~frame_sum(got->data + got->csum_start, got->size - got->csum_start);
	if (!sum)
		sum = 0xffff;
	got->data[got->csum_start + got->csum_offset] = (uint8_t)(sum >> 8);
	got->data[got->csum_start + got->csum_offset + 1] = (uint8_t)sum;
	got->needs_csum = false;
}

static void expect_settled(struct env *env, const uint8_t *frame, size_t size)
{
	sys_ok(peer_recv(&env->peer, env->got, 5000));
	assert_int_equal(env->got->gso, 0);
	settle_csum(env->got);
	assert_int_equal(env->got->size, size);
	assert_memory_equal(env->got->data, frame, size);
}

static void send_csum(struct env *env, const struct flow *flow, size_t payload, bool vlan)
{
	struct nic_packet packet = {.frame = env->packet,
	                            .csum = true,
	                            .csum_start = (uint16_t)flow_l4(flow),
	                            .csum_offset = (uint16_t)flow_csum_offset(flow),
	                            .vlan = vlan,
	                            .vlan_tci = 0x6123,
	                            .linear = payload % 3 ? 0 : 60,
	                            .fragment = 701};
	size_t size;

	packet.size =
	        frame_build(env->packet, flow, payload, (uint32_t)payload, FRAME_CSUM_PARTIAL);
	nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	size = frame_build(env->expect, flow, payload, (uint32_t)payload, FRAME_CSUM_FULL);
	if (vlan) {
		size = frame_tag(env->expect, size, 0x6123, env->packet);
		expect_settled(env, env->packet, size);
	} else {
		expect_settled(env, env->expect, size);
	}
}

static void test_tx_csum(void **state)
{
	struct env *env = *state;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct flow flow = env_flow_out(env, kinds[i].version, kinds[i].protocol);

		for (size_t payload = 0; payload < 1400; payload += 67)
			send_csum(env, &flow, payload, false);
		flow.tagged = true; /* in the buffer: the offsets move with it */
		flow.tci = 0x0064;
		send_csum(env, &flow, 300, false);
	}
}

static void test_tx_csum_vlan(void **state)
{
	struct env *env = *state;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct flow flow = env_flow_out(env, kinds[i].version, kinds[i].protocol);

		for (size_t payload = 1; payload < 1400; payload += 333)
			send_csum(env, &flow, payload, true);
	}
}

/* Offsets outside the frame: an error and a counter, and life goes on. */
static void test_tx_csum_nonsense(void **state)
{
	struct env *env = *state;
	struct flow flow = env_flow_out(env, 4, FRAME_PROTO_UDP);
	static const uint16_t bad[][2] = {{34, 60000}, {60000, 6}, {65535, 65535},
	                                  {142, 0},    {141, 0},   {34, 107}};
	struct nic_packet packet = {.frame = env->packet, .csum = true};

	packet.size = frame_build(env->packet, &flow, 100, 1, FRAME_CSUM_PARTIAL);
	assert_int_equal(packet.size, 142);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		packet.csum_start = bad[i][0];
		packet.csum_offset = bad[i][1];
		nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	}
	env_expect_lif(env, LIF_TX_DESC_DATA_ERROR, ARRAY_SIZE(bad));
	env_check_traffic(env);
}

/* ---- transmit segmentation ---- */

/* Makes the frames that a large frame stands for, and compares each with what the template asks
 * for. Returns the number of segments. */
static unsigned expect_large(struct env *env, const uint8_t *packet, size_t size,
                             const struct flow *flow, uint16_t mss, unsigned first)
{
	static uint8_t want[PEER_FRAME_MAX], have[PEER_FRAME_MAX];
	const struct peer_frame *got = env->got;
	struct flow seen = *flow;
	size_t hdr = flow_payload(flow);
	unsigned count = 0;

	assert_int_equal(got->gso & ~GSO_ECN, flow->version == 4 ? GSO_TCPV4 : GSO_TCPV6);
	assert_int_equal(got->gso_size, mss);
	assert_true(got->needs_csum);
	assert_int_equal(got->csum_start, flow_l4(flow));
	assert_int_equal(got->csum_offset, 16);
	for (;; count++) {
		size_t want_size = frame_segment(packet, size, flow, mss, first + count, want);
		size_t have_size = frame_segment(got->data, got->size, &seen, mss, count, have);

		if (!have_size)
			break;
		assert_int_equal(have_size, want_size);
		/* Of a large frame cut off a larger one, FIN and PSH were taken already. */
		assert_memory_equal(have, want, want_size);
	}
	assert_true(got->size > hdr);
	return count;
}

/* The large frame's own lengths and pseudo-header sum must fit it: the kernel trusts them. */
static void check_large_header(const struct peer_frame *got, const struct flow *flow)
{
	const uint8_t *ip = got->data + flow_l3(flow);
	struct peer_frame *whole = (struct peer_frame *)(uintptr_t)got;
	size_t l3 = flow_l3(flow);

	if (flow->version == 4)
		assert_int_equal(ip[2] << 8 | ip[3], got->size - l3);
	else
		assert_int_equal(ip[4] << 8 | ip[5], got->size - l3 - 40);
	settle_csum(whole);
	assert_true(frame_csum_ok(whole->data, whole->size, flow));
}

static void expect_segments(struct env *env, const uint8_t *packet, size_t size,
                            const struct flow *flow, uint16_t mss)
{
	static uint8_t want[PEER_FRAME_MAX];
	unsigned done = 0;
	size_t want_size;

	while ((want_size = frame_segment(packet, size, flow, mss, done, want)) != 0) {
		sys_ok(peer_recv(&env->peer, env->got, 5000));
		if (env->got->gso) {
			done += expect_large(env, packet, size, flow, mss, done);
			check_large_header(env->got, flow);
			continue;
		}
		settle_csum(env->got);
		assert_int_equal(env->got->size, want_size);
		assert_memory_equal(env->got->data, want, want_size);
		done++;
	}
}

struct tso_case {
	size_t payload, fragment;
	uint16_t mss;
	bool vlan;
};

static void post_tso(struct env *env, struct nic_pair *pair, const struct flow *flow,
                     const struct tso_case *tso)
{
	struct nic_packet packet = {.frame = env->packet,
	                            .mss = tso->mss,
	                            .hdr_size = (uint16_t)flow_payload(flow),
	                            .vlan = tso->vlan,
	                            .vlan_tci = 0x0fff,
	                            .fragment = tso->fragment};

	packet.size = frame_build(env->packet, flow, tso->payload, (uint32_t)tso->payload,
	                          FRAME_CSUM_TSO);
	nic_ok(env->nic, nic_tx_post(env->nic, pair, &packet));
}

static void expect_tso(struct env *env, const struct flow *flow, const struct tso_case *tso)
{
	struct flow seen = *flow;
	size_t size = frame_build(env->packet, flow, tso->payload, (uint32_t)tso->payload,
	                          FRAME_CSUM_TSO);

	if (!tso->vlan) {
		expect_segments(env, env->packet, size, flow, tso->mss);
		return;
	}
	seen.tagged = true;
	size = frame_tag(env->packet, size, 0x0fff, env->expect);
	expect_segments(env, env->expect, size, &seen, tso->mss);
}

static void send_tso(struct env *env, const struct flow *flow, const struct tso_case *tso)
{
	struct nic_pair *pair = &env->nic->pair[0];

	post_tso(env, pair, flow, tso);
	nic_ok(env->nic, nic_tx_ring(env->nic, pair));
	nic_ok(env->nic, nic_tx_flush(env->nic, pair));
	expect_tso(env, flow, tso);
}

static void test_tso(void **state)
{
	struct env *env = *state;
	static const struct tso_case cases[] = {
	        {40000, 4096, 1448, false}, {1448, 4096, 1448, false},   {1449, 4096, 1448, false},
	        {2896, 333, 1448, false},   {65000, 32768, 1460, false}, {9000, 700, 536, false},
	        {10000, 4096, 88, false},   {1, 4096, 1448, false},      {60000, 8192, 8948, false},
	        {5000, 1000, 1400, true},   {65000, 4096, 1448, true},
	};

	for (int version = 4; version <= 6; version += 2) {
		struct flow flow = env_flow_out(env, version, FRAME_PROTO_TCP);

		flow.tcp_flags = 0x19; /* ACK PSH FIN */
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
			send_tso(env, &flow, &cases[i]);
	}
}

/* CWR stays in the first segment only. */
static void test_tso_ecn(void **state)
{
	struct env *env = *state;
	static const struct tso_case tso = {20000, 4096, 1448, false};

	for (int version = 4; version <= 6; version += 2) {
		struct flow flow = env_flow_out(env, version, FRAME_PROTO_TCP);

		flow.tcp_flags = 0xd8; /* CWR ECE ACK PSH */
		send_tso(env, &flow, &tso);
	}
}

/* Packets wrap around a ring that is a little larger than they. */
static void test_tso_wrap(void **state)
{
	struct env *env = *state;
	struct flow flow = env_flow_out(env, 4, FRAME_PROTO_TCP);

	for (size_t i = 0; i < 100; i++) {
		struct tso_case tso = {1000 + i * 401, 4096, 1448, false};

		send_tso(env, &flow, &tso);
	}
}

/* A doorbell in the middle of a packet: nothing is sent or completed until the rest is there
 * (14, trap 14). */
static void test_tso_in_two_doorbells(void **state)
{
	struct env *env = *state;
	struct nic_pair *pair = &env->nic->pair[0];
	struct flow flow = env_flow_out(env, 4, FRAME_PROTO_TCP);
	static const struct tso_case tso = {14480, 4096, 1448, false};
	uint32_t middle;

	for (int i = 0; i < 20; i++) {
		middle = (pair->tx.head + 1 + (uint32_t)i % 9) & (pair->tx.entries - 1);
		post_tso(env, pair, &flow, &tso);
		nic_ok(env->nic, nic_doorbell(env->nic, pair->tx.hw_type,
		                              DB_VALUE(pair->tx.hw_index, middle)));
		/* A command comes back after the doorbell was seen. */
		nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT));
		assert_null(nic_queue_peek(env->nic, &pair->tx));
		nic_ok(env->nic, nic_tx_ring(env->nic, pair));
		nic_ok(env->nic, nic_tx_flush(env->nic, pair));
		expect_tso(env, &flow, &tso);
	}
}

/* ---- receive ---- */

static void check_rx_csum(struct env *env)
{
	const struct nic_frame *frame = env->frame;

	if (!(env->nic->features & FEAT_RX_CSUM)) {
		assert_int_equal(frame->csum_flags & RX_CSUM_VALID, 0);
		return;
	}
	assert_int_equal(frame->csum_flags & RX_CSUM_VALID, RX_CSUM_VALID);
	assert_int_equal(frame->csum, frame_sum(frame->data + 14, frame->size - 14));
	assert_int_equal(frame->csum_flags & (RX_CSUM_TCP_BAD | RX_CSUM_UDP_BAD | RX_CSUM_IP_BAD),
	                 0);
}

static void test_rx_csum(void **state)
{
	struct env *env = *state;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct flow flow = env_flow_in(env, kinds[i].version, kinds[i].protocol);

		for (size_t payload = 1; payload < 1400; payload += 111) {
			size_t size = frame_build(env->packet, &flow, payload, (uint32_t)payload,
			                          FRAME_CSUM_FULL);

			sys_ok(peer_send(&env->peer, env->packet, size));
			env_expect_in(env, env->packet, size);
			check_rx_csum(env);
		}
	}
	env_check_traffic(env);
	check_rx_csum(env);
}

/* The host left the checksum to the card: the frame that arrives has a right one. */
static void test_rx_csum_to_fill(void **state)
{
	struct env *env = *state;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct flow flow = env_flow_in(env, kinds[i].version, kinds[i].protocol);

		for (size_t payload = 1; payload < 1400; payload += 111) {
			env->got->size = frame_build(env->got->data, &flow, payload,
			                             (uint32_t)payload, FRAME_CSUM_PARTIAL);
			env->got->gso = 0;
			env->got->gso_size = 0;
			env->got->csum_start = (uint16_t)flow_l4(&flow);
			env->got->csum_offset = (uint16_t)flow_csum_offset(&flow);
			sys_ok(peer_send_offload(&env->peer, env->got, 0));
			env_expect_in(env, env->expect,
			              frame_build(env->expect, &flow, payload, (uint32_t)payload,
			                          FRAME_CSUM_FULL));
			check_rx_csum(env);
		}
	}
}

static void receive_large(struct env *env, const struct flow *flow, uint8_t gso)
{
	const uint16_t mss = 1400;
	size_t size = frame_build(env->got->data, flow, 60000, 9, FRAME_CSUM_PARTIAL), want_size;

	env->got->size = size;
	env->got->gso = gso;
	env->got->gso_size = mss;
	env->got->csum_start = (uint16_t)flow_l4(flow);
	env->got->csum_offset = 16;
	sys_ok(peer_send_offload(&env->peer, env->got, (uint16_t)flow_payload(flow)));
	for (unsigned i = 0;
	     (want_size = frame_segment(env->got->data, size, flow, mss, i, env->expect)) != 0;
	     i++) {
		env_expect_in(env, env->expect, want_size);
		check_rx_csum(env);
	}
}

/* The host sends 64 KiB at once: the guest gets segments that fit its buffers. FIN and PSH are in
 * the last one, CWR in the first, whether the host told of it or not. */
static void test_rx_large(void **state)
{
	struct env *env = *state;

	for (int version = 4; version <= 6; version += 2) {
		struct flow flow = env_flow_in(env, version, FRAME_PROTO_TCP);
		uint8_t gso = version == 4 ? GSO_TCPV4 : GSO_TCPV6;

		receive_large(env, &flow, gso);
		flow.tcp_flags = 0xd9; /* CWR ECE ACK PSH FIN */
		receive_large(env, &flow, gso);
		receive_large(env, &flow, gso | GSO_ECN);
	}
}

/* ---- VLAN ---- */

static void send_tagged_in(struct env *env, uint16_t tci)
{
	struct flow flow = env_flow_in(env, 4, FRAME_PROTO_UDP);
	size_t size;

	flow.tagged = true;
	flow.tci = tci;
	size = frame_build(env->packet, &flow, 333, tci, FRAME_CSUM_FULL);
	sys_ok(peer_send(&env->peer, env->packet, size));
}

/* The tagged frame of send_tagged_in() as it must arrive. */
static void expect_tagged_in(struct env *env, uint16_t tci, bool stripped)
{
	struct flow flow = env_flow_in(env, 4, FRAME_PROTO_UDP);

	flow.tagged = !stripped;
	flow.tci = tci;
	env_expect_in(env, env->packet, frame_build(env->packet, &flow, 333, tci, FRAME_CSUM_FULL));
	assert_int_equal(env->frame->csum_flags & RX_CSUM_VLAN, stripped ? RX_CSUM_VLAN : 0);
	if (stripped)
		assert_int_equal(env->frame->vlan_tci, tci);
	check_rx_csum(env);
}

static void test_vlan_rx(void **state)
{
	struct env *env = *state;
	uint32_t id, again;

	send_tagged_in(env, 100);
	env_expect_nothing_in(env);
	nic_ok(env->nic, nic_filter_vlan(env->nic, 100, &id));
	assert_int_equal(nic_filter_vlan(env->nic, 100, &again), RC_EEXIST);
	assert_int_equal(again, id);
	send_tagged_in(env, 0xa000 | 100); /* priority 5 */
	expect_tagged_in(env, 0xa000 | 100, true);
	send_tagged_in(env, 101);
	env_expect_nothing_in(env);
	nic_ok(env->nic, nic_filter_del(env->nic, id));
	send_tagged_in(env, 100);
	env_expect_nothing_in(env);
	/* Promiscuous mode looks at no filter. */
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT | RX_MODE_PROMISC));
	send_tagged_in(env, 4000);
	expect_tagged_in(env, 4000, true);
}

static void test_vlan_features_off(void **state)
{
	struct env *env = *state;

	nic_ok(env->nic, nic_lif_features(env->nic, FEAT_LINUX & ~(uint64_t)(FEAT_VLAN_FILTER |
	                                                                     FEAT_VLAN_STRIP)));
	send_tagged_in(env, 77);
	expect_tagged_in(env, 77, false);
}

static void test_vlan_insert(void **state)
{
	struct env *env = *state;
	struct flow flow = env_flow_out(env, 0, 0);

	for (unsigned tci = 0; tci < 0x10000; tci += 0x0fed) {
		struct nic_packet packet = {
		        .frame = env->packet, .vlan = true, .vlan_tci = (uint16_t)tci};
		size_t size;

		packet.size = frame_build(env->packet, &flow, 200, tci, FRAME_CSUM_FULL);
		nic_ok(env->nic, nic_send(env->nic, 0, &packet));
		size = frame_tag(env->packet, packet.size, (uint16_t)tci, env->expect);
		env_expect_out(env, env->expect, size);
	}
}

int main(void)
{
	static struct env_options tso_ring;

	tso_ring = offloads;
	tso_ring.nic = NIC_OPTIONS(NULL);
	tso_ring.nic.tx_log2 = 6;
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_tx_csum, &offloads),
	        ENV_TEST(test_tx_csum_vlan, &offloads),
	        ENV_TEST(test_tx_csum_nonsense, &offloads),
	        ENV_TEST(test_tso, &offloads),
	        ENV_TEST(test_tso_ecn, &offloads),
	        ENV_TEST(test_tso_wrap, &tso_ring),
	        ENV_TEST(test_tso_in_two_doorbells, &offloads),
	        ENV_TEST(test_rx_csum, &offloads),
	        ENV_TEST(test_rx_csum, &none),
	        ENV_TEST(test_rx_csum_to_fill, &offloads),
	        ENV_TEST(test_rx_csum_to_fill, &none),
	        ENV_TEST(test_rx_large, &offloads),
	        ENV_TEST(test_rx_large, &none),
	        ENV_TEST(test_vlan_rx, &offloads),
	        ENV_TEST(test_vlan_features_off, &offloads),
	        ENV_TEST(test_vlan_insert, &offloads),
	};

	return env_main("offload", tests, true);
}
