// SPDX-License-Identifier: GPL-2.0-or-later
/* Which frames the LIF takes, and which queue they go to: filters, modes, RSS, steering. */
#include "env.h"

#include <string.h>

static const struct env_options hashing = {
        .tap = true, .server.profile = "generic-100g", .nic = {0}};
static const struct env_options steering = {.tap = true};

static const uint8_t group[6] = {0x01, 0x00, 0x5e, 0x00, 0x00, 0x01};
static const uint8_t other_group[6] = {0x33, 0x33, 0x00, 0x00, 0x00, 0x02};
static const uint8_t stranger[6] = {0x02, 0x00, 0x00, 0x00, 0xcc, 0x07};
static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* ---- filters and modes (5.5) ---- */

static size_t frame_to(struct env *env, const uint8_t dst[6], uint8_t *out)
{
	struct flow flow = flow_make(0, 0, dst, env_peer_mac);

	(void)env;
	return frame_build(out, &flow, 99, dst[5], FRAME_CSUM_FULL);
}

static void send_to(struct env *env, const uint8_t dst[6])
{
	size_t size = frame_to(env, dst, env->packet);

	sys_ok(peer_send(&env->peer, env->packet, size));
}

static void arrives(struct env *env, const uint8_t dst[6])
{
	send_to(env, dst);
	env_expect_in(env, env->packet, frame_to(env, dst, env->packet));
}

/* Sends it, and then a frame to the own address, which must be the next to arrive. */
static void does_not_arrive(struct env *env, const uint8_t dst[6])
{
	send_to(env, dst);
	arrives(env, env->nic->mac);
}

static void test_unicast(void **state)
{
	struct env *env = *state;
	uint32_t id, again;

	arrives(env, env->nic->mac);
	does_not_arrive(env, stranger);
	nic_ok(env->nic, nic_filter_mac(env->nic, stranger, &id));
	assert_int_not_equal(id, env->nic->mac_filter_id);
	arrives(env, stranger);
	assert_int_equal(nic_filter_mac(env->nic, stranger, &again), RC_EEXIST);
	assert_int_equal(again, id);
	nic_ok(env->nic, nic_filter_del(env->nic, id));
	does_not_arrive(env, stranger);
	assert_int_equal(nic_filter_del(env->nic, id), RC_ENOENT);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT | RX_MODE_PROMISC));
	arrives(env, stranger);
	arrives(env, other_group);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT));
	does_not_arrive(env, stranger);
}

static void test_multicast(void **state)
{
	struct env *env = *state;
	uint32_t id;

	does_not_arrive(env, group);
	nic_ok(env->nic, nic_filter_mac(env->nic, group, &id));
	arrives(env, group);
	does_not_arrive(env, other_group);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT | RX_MODE_ALLMULTI));
	arrives(env, other_group);
	does_not_arrive(env, stranger);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_UNICAST | RX_MODE_BROADCAST));
	does_not_arrive(env, group);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT));
	arrives(env, group);
}

static void test_broadcast(void **state)
{
	struct env *env = *state;

	arrives(env, broadcast);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_UNICAST | RX_MODE_MULTICAST));
	does_not_arrive(env, broadcast);
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT));
	arrives(env, broadcast);
}

/* The own address is an ordinary filter: what `ip link set address` does. */
static void test_change_address(void **state)
{
	struct env *env = *state;
	uint8_t old[6];

	memcpy(old, env->nic->mac, 6);
	nic_ok(env->nic, nic_filter_del(env->nic, env->nic->mac_filter_id));
	nic_ok(env->nic, nic_filter_mac(env->nic, stranger, &env->nic->mac_filter_id));
	memcpy(env->nic->mac, stranger, 6);
	does_not_arrive(env, old);
	env_check_traffic(env);
}

/* The device holds as many address filters as it said, all of them distinct (trap 33). */
static void test_filter_capacity(void **state)
{
	struct env *env = *state;
	uint32_t max = env->nic->id.max_ucast, id, ids[4096];
	uint8_t mac[6] = {0x02, 0x11, 0, 0, 0, 0};
	int status = 0;

	assert_true(max >= 2 && max < ARRAY_SIZE(ids));
	for (uint32_t i = 1; i < max; i++) { /* the station address is the first */
		mac[4] = (uint8_t)(i >> 8);
		mac[5] = (uint8_t)i;
		nic_ok(env->nic, nic_filter_mac(env->nic, mac, &ids[i]));
		for (uint32_t k = 1; k < i; k++)
			assert_int_not_equal(ids[k], ids[i]);
	}
	arrives(env, mac);
	for (uint32_t i = 0; i < 100000 && !status; i++) {
		frame_fill(mac + 1, 5, i);
		status = nic_filter_mac(env->nic, mac, &id);
		if (status == RC_EEXIST)
			status = 0;
	}
	assert_int_equal(status, RC_ENOSPC);
	nic_ok(env->nic, nic_filter_del(env->nic, ids[1]));
	nic_ok(env->nic, nic_filter_mac(env->nic, mac, &id));
	env_check_traffic(env);
}

/* ---- RSS (9) ---- */

/* The verification suite of the hash's definition, so that the reference itself is right. */
static void test_reference_hash(void **state)
{
	static const uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	                                0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	                                0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	                                0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
	struct flow flow = {.version = 4,
	                    .saddr = {66, 9, 149, 187},
	                    .daddr = {161, 142, 100, 80},
	                    .sport = 2794,
	                    .dport = 1766};

	(void)state;
	assert_int_equal(flow_toeplitz(&flow, key, true), 0x51ccc178);
	assert_int_equal(flow_toeplitz(&flow, key, false), 0x323e8fc2);
}

static const struct {
	int version;
	uint8_t protocol, type;
	bool ports;
} rss_kinds[] = {
        {4, FRAME_PROTO_TCP, RX_IPV4_TCP, true},
        {4, FRAME_PROTO_UDP, RX_IPV4_UDP, true},
        {6, FRAME_PROTO_TCP, RX_IPV6_TCP, true},
        {6, FRAME_PROTO_UDP, RX_IPV6_UDP, true},
        {4, 50, RX_IPV4, false},
        {6, 50, RX_IPV6, false},
};

/* Flow number N of a kind. */
static struct flow rss_flow(struct env *env, size_t kind, unsigned n)
{
	struct flow flow = env_flow_in(env, rss_kinds[kind].version, rss_kinds[kind].protocol);

	flow.saddr[2] = (uint8_t)(n * 37);
	flow.saddr[3] = (uint8_t)n;
	flow.saddr[12] = (uint8_t)(n * 11);
	flow.sport = (uint16_t)(1024 + 977 * n);
	return flow;
}

static unsigned receive_flow(struct env *env, const struct flow *flow)
{
	size_t size = frame_build(env->packet, flow, 64, flow->sport, FRAME_CSUM_FULL);

	sys_ok(peer_send(&env->peer, env->packet, size));
	env_expect_in(env, env->packet, size);
	return env->frame->queue;
}

static void test_rss(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	const uint8_t *table = ram_at(&nic->ram, nic->rss_table);
	unsigned used[NIC_PAIRS_MAX] = {0};

	for (size_t kind = 0; kind < ARRAY_SIZE(rss_kinds); kind++) {
		for (unsigned n = 0; n < 100; n++) {
			struct flow flow = rss_flow(env, kind, n);
			uint32_t hash = flow_toeplitz(&flow, nic->rss_key, rss_kinds[kind].ports);
			unsigned queue = receive_flow(env, &flow);

			assert_int_equal(env->frame->type, rss_kinds[kind].type);
			assert_int_equal(env->frame->hash, hash);
			assert_int_equal(queue, table[hash % nic->id.rss_entries]);
			used[queue]++;
		}
	}
	for (unsigned i = 0; i < nic->pair_count; i++)
		assert_true(used[i] > 0);
}

/* Types that are not enabled fall back to the addresses, or to no hash at all. */
static void test_rss_types(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct flow tcp = rss_flow(env, 0, 5), udp = rss_flow(env, 1, 5), six = rss_flow(env, 2, 5);

	nic_ok(nic, nic_rss_config(nic, 0x03)); /* IPv4, and TCP over it */
	receive_flow(env, &tcp);
	assert_int_equal(env->frame->hash, flow_toeplitz(&tcp, nic->rss_key, true));
	receive_flow(env, &udp);
	assert_int_equal(env->frame->hash, flow_toeplitz(&udp, nic->rss_key, false));
	assert_int_equal(receive_flow(env, &six), 0);
	nic_ok(nic, nic_rss_config(nic, 0));
	assert_int_equal(receive_flow(env, &tcp), 0);
	assert_int_equal(receive_flow(env, &udp), 0);
}

/* A key and a table of the guest's own; the table is read again with every command. */
static void test_rss_own_table(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint8_t *table = ram_at(&nic->ram, nic->rss_table);

	frame_fill(nic->rss_key, RSS_KEY_SIZE, 4711);
	for (unsigned i = 0; i < nic->id.rss_entries; i++)
		table[i] = (uint8_t)(i % 7 == 0 ? 3 : 1);
	nic_ok(nic, nic_rss_config(nic, RSS_ALL));
	for (unsigned n = 0; n < 100; n++) {
		struct flow flow = rss_flow(env, 0, n);
		uint32_t hash = flow_toeplitz(&flow, nic->rss_key, true);

		assert_int_equal(receive_flow(env, &flow),
		                 (hash % nic->id.rss_entries) % 7 == 0 ? 3 : 1);
		assert_int_equal(env->frame->hash, hash);
	}
}

/* Entries that name no queue of ours do no harm. */
static void test_rss_nonsense_table(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	uint8_t *table = ram_at(&nic->ram, nic->rss_table);
	struct cmd cmd = {.opcode = CMD_LIF_SETATTR};

	memset(table, 0xff, nic->id.rss_entries);
	(void)nic_rss_config(nic, RSS_ALL); /* may be refused */
	env_check_traffic(env);
	cmd.lif_attr.attr = LIF_RSS;
	cmd.lif_attr.rss.types = le16_make(RSS_ALL);
	cmd.lif_attr.rss.addr = le64_make(0xdead0000);
	assert_int_not_equal(nic_admin(nic, &cmd, NULL), 0);
	env_check_traffic(env);
}

/* A queue that is not enabled: the lowest that is gets the frame (8.3). */
static void test_rss_disabled_queue(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	nic_ok(nic, nic_queue_control(nic, &nic->pair[0].rx, false));
	nic_ok(nic, nic_queue_control(nic, &nic->pair[2].rx, false));
	for (unsigned n = 0; n < 60; n++) {
		struct flow flow = rss_flow(env, 0, n);
		uint32_t hash = flow_toeplitz(&flow, nic->rss_key, true);
		unsigned want = hash % nic->id.rss_entries % nic->pair_count;

		assert_int_equal(receive_flow(env, &flow), want == 0 || want == 2 ? 1 : want);
	}
}

/* ---- steering without hash (manual, Ethernet and TCP/IP) ---- */

static void check_steering(struct env *env, const unsigned *enabled, unsigned count)
{
	for (size_t kind = 0; kind < ARRAY_SIZE(rss_kinds); kind++) {
		for (unsigned n = 0; n < 40; n++) {
			struct flow flow = rss_flow(env, kind, n);

			if (!rss_kinds[kind].ports)
				continue; /* other protocols: the formula has no ports to read */
			assert_int_equal(receive_flow(env, &flow),
			                 enabled[flow_fnv(&flow) % count]);
			assert_true(env->frame->hash == 0 || env->nic->features & FEAT_RX_HASH);
		}
	}
	for (unsigned n = 0; n < 40; n++) {
		struct flow flow = env_flow_in(env, 0, 0);

		flow.src[5] = (uint8_t)n;
		assert_int_equal(receive_flow(env, &flow), enabled[flow_fnv(&flow) % count]);
	}
}

static void test_steering(void **state)
{
	struct env *env = *state;
	static const unsigned all[] = {0, 1, 2, 3}, some[] = {1, 3}, one[] = {3};

	assert_int_equal(env->nic->pair_count, 4);
	assert_int_equal(env->nic->features & FEAT_RX_HASH, 0);
	check_steering(env, all, 4);
	nic_ok(env->nic, nic_queue_control(env->nic, &env->nic->pair[0].rx, false));
	nic_ok(env->nic, nic_queue_control(env->nic, &env->nic->pair[2].rx, false));
	check_steering(env, some, 2);
	nic_ok(env->nic, nic_queue_control(env->nic, &env->nic->pair[1].rx, false));
	check_steering(env, one, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_reference_hash),
	        ENV_TEST(test_unicast, &steering),
	        ENV_TEST(test_multicast, &steering),
	        ENV_TEST(test_broadcast, &steering),
	        ENV_TEST(test_change_address, &steering),
	        ENV_TEST(test_filter_capacity, &steering),
	        ENV_TEST(test_rss, &hashing),
	        ENV_TEST(test_rss_types, &hashing),
	        ENV_TEST(test_rss_own_table, &hashing),
	        ENV_TEST(test_rss_nonsense_table, &hashing),
	        ENV_TEST(test_rss_disabled_queue, &hashing),
	        ENV_TEST(test_steering, &steering),
	};

	return env_main("steer", tests, true);
}
