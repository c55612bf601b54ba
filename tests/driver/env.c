// SPDX-License-Identifier: GPL-2.0-or-later
/* What every driver test stands on, env.h. */
#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ENV_WAIT_MS 30000

const uint8_t env_peer_mac[6] = {0x02, 0x00, 0x00, 0x00, 0xbb, 0x01};

void env_check(const struct nic *nic, int result, const char *expr, const char *file, int line)
{
	if (!result)
		return;
	print_error("%s: %d (%s) %s\n", expr, result,
	            result < 0 ? strerror(-result) : "status of the device",
	            nic ? nic->complaint : "");
	_fail(file, line);
}

bool env_ready(bool needs_tap)
{
	char reason[200];

	if (!needs_tap || peer_prepare(reason, sizeof(reason)))
		return true;
	printf("skipped: %s\n", reason);
	return false;
}

/* ---- set-up ---- */

struct nic_options env_nic_options(const struct env *env)
{
	struct nic_options options = env->options->nic;

	if (options.pairs == 0)
		return NIC_OPTIONS(env->server->socket);
	options.socket = env->server->socket;
	options.fd = -1;
	return options;
}

void env_start_nic(struct env *env)
{
	struct nic_options options = env_nic_options(env);

	nic_ok(NULL, nic_open(&env->nic, &options));
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
}

static int env_start(struct env *env)
{
	struct server_options server = env->options->server;
	int err = 0;

	env->peer.fd = -1;
	if (env->options->tap) {
		err = peer_open(&env->peer, env->options->multi);
		if (err) {
			print_error("TAP: %s\n", strerror(-err));
			return err;
		}
		server.tap = env->peer.tap;
	}
	err = server_spawn(&env->server, &server);
	if (!err && env->options->tap)
		err = peer_wait_carrier(&env->peer, ENV_WAIT_MS);
	return err;
}

int env_setup(void **state)
{
	struct env *env = calloc(1, sizeof(*env));
	int err;

	if (!env)
		return -1;
	env->options = *state;
	env->got = malloc(sizeof(*env->got));
	env->frame = malloc(sizeof(*env->frame));
	env->packet = malloc(PEER_FRAME_MAX);
	env->expect = malloc(PEER_FRAME_MAX);
	err = env->got && env->frame && env->packet && env->expect ? env_start(env) : -1;
	*state = env;
	if (err) {
		env_teardown(state);
		return -1;
	}
	if (!env->options->no_nic)
		env_start_nic(env);
	return 0;
}

int env_teardown(void **state)
{
	struct env *env = *state;
	int err;

	nic_close(env->nic);
	err = server_stop(env->server);
	peer_close(&env->peer);
	free(env->got);
	free(env->frame);
	free(env->packet);
	free(env->expect);
	free(env);
	return err ? -1 : 0;
}

/* ---- traffic ---- */

struct flow env_flow_out(const struct env *env, int version, uint8_t protocol)
{
	return flow_make(version, protocol, env_peer_mac, env->nic->mac);
}

struct flow env_flow_in(const struct env *env, int version, uint8_t protocol)
{
	return flow_make(version, protocol, env->nic->mac, env_peer_mac);
}

static void env_same(const uint8_t *got, size_t got_size, const uint8_t *want, size_t size,
                     const char *who)
{
	if (got_size != size)
		fail_msg("%s got %zu bytes, expected %zu", who, got_size, size);
	for (size_t i = 0; i < size; i++)
		if (got[i] != want[i])
			fail_msg("%s got byte %zu of %zu as %02x, expected %02x", who, i, size,
			         got[i], want[i]);
}

void env_expect_out(struct env *env, const uint8_t *frame, size_t size)
{
	sys_ok(peer_recv(&env->peer, env->got, ENV_WAIT_MS));
	/* A short frame may come padded. */
	if (env->got->size == 60 && size < 60)
		env->got->size = size;
	env_same(env->got->data, env->got->size, frame, size, "host");
}

void env_expect_in(struct env *env, const uint8_t *frame, size_t size)
{
	nic_ok(env->nic, nic_recv(env->nic, env->frame));
	if (env->frame->status)
		fail_msg("receive completion with status %u", env->frame->status);
	env_same(env->frame->data, env->frame->size, frame, size, "NIC");
}

void env_check_traffic(struct env *env)
{
	static uint32_t mark;
	uint8_t frame[200];
	struct flow out = env_flow_out(env, 0, 0), in = env_flow_in(env, 0, 0);
	size_t size = frame_build(frame, &out, 120, ++mark, FRAME_CSUM_FULL);

	nic_ok(env->nic, nic_send_frame(env->nic, frame, size));
	env_expect_out(env, frame, size);
	size = frame_build(frame, &in, 130, ++mark, FRAME_CSUM_FULL);
	sys_ok(peer_send(&env->peer, frame, size));
	env_expect_in(env, frame, size);
}

void env_expect_nothing_in(struct env *env)
{
	uint8_t frame[200];
	struct flow in = env_flow_in(env, 0, 0);
	size_t size = frame_build(frame, &in, 77, 0x99, FRAME_CSUM_FULL);

	memset(frame, 0xff, 6);
	sys_ok(peer_send(&env->peer, frame, size));
	env_expect_in(env, frame, size);
}

/* ---- counters ---- */

static void env_expect_stat(struct env *env, uint64_t (*read)(const struct nic *, unsigned),
                            const char *what, unsigned index, uint64_t value)
{
	int64_t deadline = nic_now_ms() + ENV_WAIT_MS;

	while (read(env->nic, index) != value && nic_now_ms() < deadline)
		sys_ok(server_stats_wait(env->server, 1));
	if (read(env->nic, index) != value)
		fail_msg("%s statistic %u is %llu, expected %llu", what, index,
		         (unsigned long long)read(env->nic, index), (unsigned long long)value);
}

void env_expect_lif(struct env *env, unsigned index, uint64_t value)
{
	env_expect_stat(env, nic_lif_stat, "LIF", index, value);
}

void env_expect_port(struct env *env, unsigned index, uint64_t value)
{
	env_expect_stat(env, nic_port_stat, "port", index, value);
}

uint64_t env_counter(struct env *env, const char *name)
{
	uint64_t value = 0;

	if (server_stat(env->server, NULL, name, &value))
		fail_msg("no line \"%s\" in the stats file", name);
	return value;
}

void env_control(struct env *env, const char *command)
{
	char answer[512] = "";
	int err = server_control(env->server, command, answer, sizeof(answer));

	if (err)
		fail_msg("%s: %s (%s)", command, strerror(-err), answer);
}

/* ---- chance ---- */

uint32_t env_seed(void)
{
	const char *given = getenv("ERNIC_TEST_SEED");
	uint32_t seed = given ? (uint32_t)strtoul(given, NULL, 0)
	                      : (uint32_t)time(NULL) * 2654435761u ^ (uint32_t)nic_now_ms();

	if (!seed)
		seed = 1;
	print_message("seed: ERNIC_TEST_SEED=%u\n", seed);
	return seed;
}

uint32_t env_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}
