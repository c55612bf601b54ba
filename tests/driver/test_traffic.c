// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames both ways with every byte checked: sizes, layouts, rings that wrap, buffers that lack. */
#include "env.h"

#include <errno.h>
#include <string.h>

#define PORT_MTU_MAX 9198 /* of the default profile */

static const struct env_options plain = {.tap = true};
static const struct env_options offloads = {.tap = true, .server.profile = "generic-100g"};
static const char *const spin_args[] = {"--busy-poll-us", "50", NULL};
static const struct env_options spinning = {
        .tap = true, .server.profile = "generic-100g", .server.args = spin_args};
static const struct env_options multi_tap = {
        .tap = true, .multi = true, .server.profile = "generic-100g"};

static size_t test_frame(struct env *env, bool out, size_t payload, uint32_t seed)
{
	struct flow flow = out ? env_flow_out(env, 0, 0) : env_flow_in(env, 0, 0);

	return frame_build(env->packet, &flow, payload, seed, FRAME_CSUM_FULL);
}

static void test_both_ways(void **state)
{
	struct env *env = *state;

	for (int i = 0; i < 300; i++)
		env_check_traffic(env);
}

/* Sends a frame with the buffers that LINEAR and FRAGMENT make. */
static void send_layout(struct env *env, size_t payload, size_t linear, size_t fragment)
{
	struct nic_packet packet = {.frame = env->packet, .linear = linear, .fragment = fragment};

	packet.size = test_frame(env, true, payload, (uint32_t)(payload + linear));
	nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	env_expect_out(env, env->packet, packet.size);
}

static void test_tx_sizes(void **state)
{
	struct env *env = *state;

	for (size_t payload = 46; payload <= 1500; payload += 97)
		send_layout(env, payload, 0, 0);
	send_layout(env, 1500, 0, 0);
	send_layout(env, PORT_MTU_MAX, 0, 0);
}

/* SG must be taken in any shape, whatever the features say. */
static void test_tx_scatter(void **state)
{
	struct env *env = *state;

	send_layout(env, 1500, 14, 100);
	send_layout(env, 1500, 1, 101);
	send_layout(env, 1500, 42, 1472);
	send_layout(env, 1500, 60, 97);
	send_layout(env, 9000, 66, 600);
	send_layout(env, 46, 13, 4);
	send_layout(env, 60, 30, 3);
}

/* A frame shorter than the minimum may be padded, and its bytes must be right. */
static void test_tx_short(void **state)
{
	struct env *env = *state;
	static const uint8_t zero[60];

	for (size_t payload = 0; payload < 46; payload++) {
		size_t size = test_frame(env, true, payload, (uint32_t)payload + 7);

		nic_ok(env->nic, nic_send_frame(env->nic, env->packet, size));
		sys_ok(peer_recv(&env->peer, env->got, 5000));
		assert_true(env->got->size == size || env->got->size == 60);
		assert_memory_equal(env->got->data, env->packet, size);
		assert_memory_equal(env->got->data + size, zero, env->got->size - size);
	}
}

/* Posts COUNT frames on PAIR with one doorbell. */
static void post_burst(struct env *env, struct nic_pair *pair, unsigned count, uint32_t seed)
{
	for (unsigned i = 0; i < count; i++) {
		struct nic_packet packet = {.frame = env->packet};

		packet.size = test_frame(env, true, 46 + (seed + i) % 1400, seed + i);
		nic_ok(env->nic, nic_tx_post(env->nic, pair, &packet));
	}
	nic_ok(env->nic, nic_tx_ring(env->nic, pair));
}

static void expect_burst(struct env *env, unsigned count, uint32_t seed)
{
	for (unsigned i = 0; i < count; i++)
		env_expect_out(env, env->packet,
		               test_frame(env, true, 46 + (seed + i) % 1400, seed + i));
}

static void test_tx_bursts(void **state)
{
	struct env *env = *state;

	for (unsigned i = 0; i < env->nic->pair_count; i++) {
		for (unsigned count = 1; count <= 512; count *= 2) {
			post_burst(env, &env->nic->pair[i], count, count * 1000);
			nic_ok(env->nic, nic_tx_flush(env->nic, &env->nic->pair[i]));
			expect_burst(env, count, count * 1000);
		}
	}
}

/* A small ring wraps hundreds of times, also with full rings. */
static void test_tx_wrap(void **state)
{
	struct env *env = *state;
	struct nic_pair *pair = &env->nic->pair[0];

	for (unsigned round = 0; round < 400; round++) {
		unsigned count = 1 + round % 15;

		post_burst(env, pair, count, round * 100);
		nic_ok(env->nic, nic_tx_flush(env->nic, pair));
		expect_burst(env, count, round * 100);
	}
}

static void send_in(struct env *env, size_t payload, uint32_t seed)
{
	size_t size = test_frame(env, false, payload, seed);

	sys_ok(peer_send(&env->peer, env->packet, size));
}

static void expect_in(struct env *env, size_t payload, uint32_t seed)
{
	env_expect_in(env, env->packet, test_frame(env, false, payload, seed));
}

static void test_rx_wrap(void **state)
{
	struct env *env = *state;

	for (uint32_t round = 0; round < 400; round++) {
		/* An answer means that the refill of the round before has been seen. */
		assert_true(nic_fw_status(env->nic) > 0);
		/* The ring holds 15, and is refilled as frames are taken. */
		for (uint32_t i = 0; i < 1 + round % 8; i++)
			send_in(env, 46 + (round * 13 + i) % 1400, round * 100 + i);
		for (uint32_t i = 0; i < 1 + round % 8; i++)
			expect_in(env, 46 + (round * 13 + i) % 1400, round * 100 + i);
	}
}

static void test_rx_sizes(void **state)
{
	struct env *env = *state;
	size_t max = env->nic->options.mtu;

	for (size_t payload = 46; payload <= max; payload += max / 31) {
		send_in(env, payload, (uint32_t)payload);
		expect_in(env, payload, (uint32_t)payload);
	}
	send_in(env, max, 1);
	expect_in(env, max, 1);
}

/* The device fills buffers in order and writes nothing beside them (8.3). */
static void test_rx_writes_only_the_frame(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	size_t payload = 5000, size = payload + 14;
	uint64_t changed = 0;

	for (unsigned i = 0; i < nic->pair_count; i++)
		memset(ram_at(&nic->ram, nic->pair[i].rx.data), 0xa5, nic->pair[i].rx.data_size);
	for (uint32_t i = 0; i < 20; i++) {
		send_in(env, payload, i);
		expect_in(env, payload, i);
	}
	for (unsigned i = 0; i < nic->pair_count; i++) {
		const uint8_t *data = ram_at(&nic->ram, nic->pair[i].rx.data);

		for (size_t at = 0; at < nic->pair[i].rx.data_size; at++)
			changed += data[at] != 0xa5;
	}
	/* Random bytes happen to be 0xa5 now and then. */
	assert_true(changed <= 20 * size);
	assert_true(changed >= 20 * size - 20 * size / 64);
}

/* ---- drops (manual, Statistics) ---- */

static void test_rx_no_buffer(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint64_t drops = 0, delivered = 0;

	/* Nothing is taken, so that every ring runs dry at 15. */
	for (uint32_t i = 0; i < 100; i++)
		send_in(env, 100, i);
	for (int i = 0; i < 500 && drops + delivered != 100; i++) {
		sys_ok(server_stats_wait(env->server, 1));
		drops = nic_lif_stat(nic, LIF_RX_UCAST_DROP_PACKETS);
		delivered = nic_lif_stat(nic, LIF_RX_UCAST_PACKETS);
	}
	assert_int_equal(delivered, 15); /* one flow, one queue */
	env_expect_lif(env, LIF_RX_QUEUE_EMPTY, 85);
	env_expect_lif(env, LIF_RX_UCAST_DROP_BYTES, 85 * 114);
	env_expect_port(env, PORT_RX_DROPPED, 85);
	env_expect_port(env, PORT_RX_ALL, 100);
	for (uint32_t i = 0; i < 15; i++)
		expect_in(env, 100, i);
	env_check_traffic(env);
}

/* Larger than the buffers, and not larger than the port takes. */
static void test_rx_larger_than_buffer(void **state)
{
	struct env *env = *state;
	size_t capacity = nic_rx_capacity(env->nic);

	send_in(env, capacity + 1 - 14, 1);
	send_in(env, 9000, 2);
	env_expect_nothing_in(env);
	env_expect_lif(env, LIF_RX_DESC_DATA_ERROR, 2);
	env_expect_lif(env, LIF_RX_UCAST_DROP_PACKETS, 2);
	send_in(env, capacity - 14, 3);
	expect_in(env, capacity - 14, 3);
}

static void test_rx_larger_than_port(void **state)
{
	struct env *env = *state;

	send_in(env, PORT_MTU_MAX + 18 + 1 - 14, 1);
	env_expect_nothing_in(env);
	env_expect_port(env, PORT_RX_TOO_LONG, 1);
	env_expect_port(env, PORT_RX_OVERSIZED, 1);
	env_expect_port(env, PORT_RX_BAD_ALL, 1);
	env_expect_lif(env, LIF_RX_UCAST_DROP_PACKETS, 0);
}

static void test_tx_nonsense_sizes(void **state)
{
	struct env *env = *state;
	struct nic_packet packet = {.frame = env->packet, .size = 13};

	test_frame(env, true, 1000, 1);
	nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	packet.size = 1;
	nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	packet.size = 20000;
	nic_ok(env->nic, nic_send(env->nic, 0, &packet));
	env_check_traffic(env);
	env_expect_lif(env, LIF_TX_DESC_DATA_ERROR, 3);
	env_expect_lif(env, LIF_TX_UCAST_PACKETS, 1);
}

/* Large memory by messages instead of a descriptor: the same bytes. */
static void test_message_memory(void **state)
{
	struct env *env = *state;

	for (int i = 0; i < 50; i++)
		env_check_traffic(env);
	send_layout(env, 9000, 66, 600);
	send_in(env, 1500, 5);
	expect_in(env, 1500, 5);
	assert_true(env->nic->vfu->dma_writes > 100);
}

int main(void)
{
	static struct env_options small, jumbo, largest, messages;

	small = jumbo = largest = messages = plain;
	small.nic = NIC_OPTIONS(NULL);
	small.nic.tx_log2 = small.nic.rx_log2 = 4;
	jumbo.nic = NIC_OPTIONS(NULL);
	jumbo.nic.mtu = 9000;
	largest.nic = NIC_OPTIONS(NULL);
	largest.nic.mtu = PORT_MTU_MAX;
	messages.nic = NIC_OPTIONS(NULL);
	messages.nic.message_ram = true;
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_both_ways, &plain),
	        ENV_TEST(test_both_ways, &offloads),
	        ENV_TEST(test_both_ways, &multi_tap),
	        ENV_TEST(test_both_ways, &spinning),
	        ENV_TEST(test_tx_bursts, &spinning),
	        ENV_TEST(test_tx_sizes, &plain),
	        ENV_TEST(test_tx_scatter, &plain),
	        ENV_TEST(test_tx_scatter, &offloads),
	        ENV_TEST(test_tx_short, &plain),
	        ENV_TEST(test_tx_bursts, &plain),
	        ENV_TEST(test_tx_bursts, &offloads),
	        ENV_TEST(test_tx_wrap, &small),
	        ENV_TEST(test_rx_wrap, &small),
	        ENV_TEST(test_rx_sizes, &plain),
	        ENV_TEST(test_rx_sizes, &jumbo),
	        ENV_TEST(test_rx_sizes, &largest),
	        ENV_TEST(test_rx_writes_only_the_frame, &jumbo),
	        ENV_TEST(test_rx_no_buffer, &small),
	        ENV_TEST(test_rx_larger_than_buffer, &plain),
	        ENV_TEST(test_rx_larger_than_port, &largest),
	        ENV_TEST(test_tx_nonsense_sizes, &plain),
	        ENV_TEST(test_message_memory, &messages),
	};

	return env_main("traffic", tests, true);
}
