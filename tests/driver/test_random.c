// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Honest operations in random order for a bounded time: after every one of them the NIC works. The
 * seed is printed; ERNIC_TEST_SEED repeats a run, ERNIC_TEST_OPERATIONS makes it longer.
 */
#include "env.h"

#include <stdlib.h>

static struct env_options options[2] = {{.tap = true, .server.profile = "compat"},
                                        {.tap = true, .server.profile = "generic-100g"}};

#define OPERATIONS 250

static void op_send(struct env *env, uint32_t *seed)
{
	struct flow flow = env_flow_out(env, 4, FRAME_PROTO_UDP);
	struct nic_packet packet = {.frame = env->packet,
	                            .linear = 14 + env_random(seed) % 60,
	                            .fragment = 100 + env_random(seed) % 3000};
	unsigned pair = env_random(seed) % env->nic->pair_count;

	packet.size =
	        frame_build(env->packet, &flow, env_random(seed) % 1472, *seed, FRAME_CSUM_FULL);
	nic_ok(env->nic, nic_send(env->nic, pair, &packet));
	env_expect_out(env, env->packet, packet.size);
}

static void op_receive(struct env *env, uint32_t *seed)
{
	struct flow flow = env_flow_in(env, 6, FRAME_PROTO_TCP);
	size_t size;

	flow.sport = (uint16_t)env_random(seed);
	size = frame_build(env->packet, &flow, env_random(seed) % (env->nic->options.mtu - 60),
	                   *seed, FRAME_CSUM_FULL);
	sys_ok(peer_send(&env->peer, env->packet, size));
	env_expect_in(env, env->packet, size);
}

static void op_burst(struct env *env, uint32_t *seed)
{
	struct flow flow = env_flow_out(env, 0, 0);
	struct nic_pair *pair = &env->nic->pair[env_random(seed) % env->nic->pair_count];
	struct nic_packet packet = {.frame = env->packet};
	unsigned posted = 0, count = 1 + env_random(seed) % 300;

	packet.size = frame_build(env->packet, &flow, 1000, *seed, FRAME_CSUM_FULL);
	while (posted < count && nic_tx_post(env->nic, pair, &packet) == 0)
		posted++;
	nic_ok(env->nic, nic_tx_ring(env->nic, pair));
	nic_ok(env->nic, nic_tx_flush(env->nic, pair));
	for (unsigned i = 0; i < posted; i++)
		env_expect_out(env, env->packet, packet.size);
}

static void op_link(struct env *env, uint32_t *seed)
{
	(void)seed;
	env_control(env, "{\"cmd\":\"link\",\"up\":false}");
	nic_ok(env->nic, nic_event_wait(env->nic, EVENT_LINK_CHANGE));
	nic_ok(env->nic, nic_link_stop(env->nic));
	env_control(env, "{\"cmd\":\"link\",\"up\":true}");
	nic_ok(env->nic, nic_event_wait(env->nic, EVENT_LINK_CHANGE));
	nic_ok(env->nic, nic_link_start(env->nic));
}

static void op_resize(struct env *env, uint32_t *seed)
{
	nic_ok(env->nic, nic_down(env->nic));
	env->nic->options.mtu = 200 + env_random(seed) % 8900;
	env->nic->options.tx_log2 = 2 + env_random(seed) % 9;
	env->nic->options.rx_log2 = 3 + env_random(seed) % 7;
	nic_ok(env->nic, nic_up(env->nic));
}

static void op_features(struct env *env, uint32_t *seed)
{
	nic_ok(env->nic, nic_lif_features(env->nic, env_random(seed) & FEAT_LINUX));
}

static void op_filter(struct env *env, uint32_t *seed)
{
	uint8_t mac[6];
	uint32_t id;

	frame_fill(mac, 6, env_random(seed));
	nic_ok(env->nic, nic_filter_mac(env->nic, mac, &id));
	nic_ok(env->nic, nic_filter_del(env->nic, id));
}

static void op_mode(struct env *env, uint32_t *seed)
{
	nic_ok(env->nic, nic_rx_mode(env->nic, RX_MODE_DEFAULT | (env_random(seed) & 0x18)));
}

static void op_queue(struct env *env, uint32_t *seed)
{
	struct nic_pair *pair = &env->nic->pair[env_random(seed) % env->nic->pair_count];

	nic_ok(env->nic, nic_queue_control(env->nic, &pair->tx, false));
	nic_ok(env->nic, nic_queue_control(env->nic, &pair->rx, false));
	nic_ok(env->nic, nic_queue_control(env->nic, &pair->rx, true));
	nic_ok(env->nic, nic_queue_control(env->nic, &pair->tx, true));
}

static void op_firmware(struct env *env, uint32_t *seed)
{
	env_control(env, env_random(seed) & 1 ? "{\"cmd\":\"fw\",\"action\":\"restart\"}"
	                                      : "{\"cmd\":\"fw\",\"action\":\"stop\"}");
	env_control(env, "{\"cmd\":\"fw\",\"action\":\"start\"}");
	nic_forget(env->nic);
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
}

static void op_function_reset(struct env *env, uint32_t *seed)
{
	(void)seed;
	nic_ok(env->nic, nic_flr(env->nic));
}

static void op_reload(struct env *env, uint32_t *seed)
{
	(void)seed;
	nic_ok(env->nic, nic_remove(env->nic));
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
}

static void op_reset(struct env *env, uint32_t *seed)
{
	(void)seed;
	nic_ok(env->nic, vfu_reset(env->nic->vfu));
	nic_forget(env->nic);
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
}

static void op_reconnect(struct env *env, uint32_t *seed)
{
	(void)seed;
	nic_close(env->nic);
	env->nic = NULL;
	env_start_nic(env);
}

static const struct {
	const char *name;
	void (*run)(struct env *env, uint32_t *seed);
	unsigned weight;
} operations[] = {
        {"send", op_send, 20},        {"receive", op_receive, 20},    {"burst", op_burst, 8},
        {"link", op_link, 4},         {"resize", op_resize, 3},       {"features", op_features, 4},
        {"filter", op_filter, 4},     {"mode", op_mode, 4},           {"queue", op_queue, 6},
        {"firmware", op_firmware, 1}, {"FLR", op_function_reset, 1},  {"reload", op_reload, 1},
        {"reset", op_reset, 1},       {"reconnect", op_reconnect, 1},
};

static size_t choose(uint32_t *seed)
{
	unsigned total = 0, at;

	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		total += operations[i].weight;
	at = env_random(seed) % total;
	for (size_t i = 0;; i++) {
		if (at < operations[i].weight)
			return i;
		at -= operations[i].weight;
	}
}

static void test_random(void **state)
{
	struct env *env = *state;
	const char *given = getenv("ERNIC_TEST_OPERATIONS");
	long count = given ? strtol(given, NULL, 0) : OPERATIONS;
	uint32_t seed = env_seed();

	for (long i = 0; i < count; i++) {
		size_t op = choose(&seed);

		env->nic->complaint[0] = '\0';
		if (getenv("ERNIC_TEST_VERBOSE"))
			print_message("%ld %s\n", i, operations[op].name);
		operations[op].run(env, &seed);
		env_check_traffic(env);
	}
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		options[i].nic = NIC_OPTIONS(NULL);
		options[i].nic.brief = true;
	}
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_random, &options[0]),
	        ENV_TEST(test_random, &options[1]),
	};

	return env_main("random", tests, true);
}
