// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resets of every kind, at every step of a probe and under traffic, and clients that vanish: the
 * next probe finds a device as after power-on, and nothing of the old one's memory is touched.
 */
#include "env.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct env_options plain = {.tap = true};
static struct env_options bare = {.tap = true, .no_nic = true};

/* ---- kinds of reset ---- */

static int reset_message(struct nic *nic)
{
	return vfu_reset(nic->vfu);
}

static int reset_function(struct nic *nic)
{
	return nic_config_flr(nic);
}

static int reset_command(struct nic *nic)
{
	const struct cmd cmd = {.opcode = CMD_RESET};

	return nic_devcmd(nic, &cmd, NULL);
}

/* The whole of `rmmod`, which a probe that failed half way does in part. */
static int reset_lif(struct nic *nic)
{
	const struct cmd lif = {.opcode = CMD_LIF_RESET}, port = {.opcode = CMD_PORT_RESET};
	int err = nic_devcmd(nic, &lif, NULL);

	if (!err)
		err = nic_devcmd(nic, &lif, NULL);
	if (!err)
		err = nic_devcmd(nic, &port, NULL);
	return err ? err : reset_command(nic);
}

static const struct {
	const char *name;
	int (*run)(struct nic *nic);
	bool needs_decode; /* registers are reachable only then */
} resets[] = {
        {"DEVICE_RESET", reset_message, false},
        {"FLR", reset_function, false},
        {"RESET", reset_command, true},
        {"LIF_RESET and all", reset_lif, true},
};

static void reopen(struct env *env)
{
	struct nic_options options = env_nic_options(env);

	nic_close(env->nic);
	env->nic = NULL;
	nic_ok(NULL, nic_open(&env->nic, &options));
}

static void probe_again(struct env *env)
{
	nic_forget(env->nic);
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
	env_check_traffic(env);
}

/* Stops a probe at every step, resets, and probes in full. */
static void test_reset_at_every_step(void **state)
{
	struct env *env = *state;

	for (size_t kind = 0; kind < ARRAY_SIZE(resets); kind++) {
		for (int step = resets[kind].needs_decode; step <= nic_probe_steps(); step++) {
			reopen(env);
			nic_ok(env->nic, nic_probe_until(env->nic, step));
			nic_ok(env->nic, resets[kind].run(env->nic));
			probe_again(env);
		}
	}
}

/* Twice in a row, as a reboot does (spec vfio-user 4.11). */
static void test_reset_twice(void **state)
{
	struct env *env = *state;

	for (size_t kind = 0; kind < ARRAY_SIZE(resets); kind++) {
		nic_ok(env->nic, resets[kind].run(env->nic));
		nic_ok(env->nic, resets[kind].run(env->nic));
		probe_again(env);
	}
}

/* ---- no DMA after a reset ---- */

static void flood_in(struct env *env, int count)
{
	struct flow flow = env_flow_in(env, 0, 0);
	size_t size = frame_build(env->packet, &flow, 700, 5, FRAME_CSUM_FULL);

	for (int i = 0; i < count; i++)
		sys_ok(peer_send(&env->peer, env->packet, size));
}

static void post_many(struct env *env, struct nic_pair *pair)
{
	struct flow flow = env_flow_out(env, 0, 0);
	struct nic_packet packet = {.frame = env->packet};

	packet.size = frame_build(env->packet, &flow, 1000, 6, FRAME_CSUM_FULL);
	while (nic_tx_post(env->nic, pair, &packet) == 0)
		;
	nic_ok(env->nic, nic_tx_ring(env->nic, pair));
}

static void test_reset_under_traffic(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;

	for (int round = 0; round < 24; round++) {
		for (unsigned i = 0; i < nic->pair_count; i++)
			post_many(env, &nic->pair[i]);
		flood_in(env, 500);
		nic_ok(nic, resets[round % 4].run(nic));
		/* A reset message or a FLR turned bus mastering off; the memory is ours again. */
		memset(nic->ram.host, 0xa5, nic->ram.used);
		flood_in(env, 100);
		sys_ok(server_stats_wait(env->server, 1));
		nic_ok(nic, nic_fw_status(nic) < 0);
		for (size_t i = 0; i < nic->ram.used; i++)
			if (nic->ram.host[i] != 0xa5)
				fail_msg("byte %#zx was written after %s", i,
				         resets[round % 4].name);
		peer_drain(&env->peer);
		probe_again(env);
	}
}

/* The driver's own function reset (12.4): disables, LIF_RESET, FLR, probe. */
static void test_function_reset(void **state)
{
	struct env *env = *state;

	for (int i = 0; i < 30; i++) {
		for (unsigned k = 0; k < env->nic->pair_count; k++)
			post_many(env, &env->nic->pair[k]);
		flood_in(env, 50);
		nic_ok(env->nic, nic_flr(env->nic));
		while (peer_drain(&env->peer))
			;
		env_check_traffic(env);
	}
}

/* After FLR registers are at their first values and the device answers at once. */
static void test_function_reset_registers(void **state)
{
	struct env *env = *state;
	uint32_t value;

	nic_ok(env->nic, nic_intr_write(env->nic, 3, REG_INTR_MASK, 0));
	nic_ok(env->nic, nic_config_flr(env->nic));
	nic_ok(env->nic, nic_reg_read32(env->nic, REG_SIGNATURE, &value));
	assert_int_equal(value, DEV_SIGNATURE);
	assert_int_equal(nic_fw_status(env->nic) & FW_RUNNING, FW_RUNNING);
	nic_ok(env->nic, nic_intr_read(env->nic, 3, REG_INTR_MASK, &value));
	assert_int_equal(value, 1);
	nic_ok(env->nic, nic_config_read(env->nic, 4, &value, 2));
	assert_int_equal(value & 6, 0);
}

/* Bus mastering off: no DMA, whatever is posted (spec vfio-user 6). */
static void test_bus_master_off(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	const le16 off = le16_make(2), on = le16_make(6);
	size_t used = nic->ram.used;

	env_check_traffic(env);
	nic_ok(nic, nic_config_write(nic, 4, &off, 2));
	memset(nic->ram.host, 0xa5, used);
	flood_in(env, 20);
	nic_ok(nic, nic_tx_ring(nic, &nic->pair[0]));
	sys_ok(server_stats_wait(env->server, 2));
	for (size_t i = 0; i < used; i++)
		if (nic->ram.host[i] != 0xa5)
			fail_msg("byte %#zx was written without bus mastering", i);
	nic_ok(nic, nic_config_write(nic, 4, &on, 2));
	nic_ok(nic, reset_function(nic));
	probe_again(env);
}

/* ---- clients that vanish ---- */

/* A child connects, probes up to STEP, floods when it is up, and waits to be killed. */
static void victim(struct env *env, int step, int ready)
{
	struct nic_options options = env_nic_options(env);
	struct nic *nic;
	bool up = step > nic_probe_steps();

	if (nic_open(&nic, &options) || nic_probe_until(nic, up ? nic_probe_steps() : step))
		_exit(1);
	env->nic = nic;
	if (up && nic_up(nic))
		_exit(1);
	if (write(ready, "r", 1) != 1)
		_exit(1);
	while (up) {
		struct flow flow = env_flow_out(env, 0, 0);
		size_t size = frame_build(env->packet, &flow, 1000, 6, FRAME_CSUM_FULL);

		if (nic_send_frame(nic, env->packet, size))
			_exit(1);
	}
	for (;;)
		pause();
}

static void kill_client(struct env *env, int step)
{
	int ready[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		close(ready[0]);
		victim(env, step, ready[1]);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	assert_true(WIFSIGNALED(status));
}

static void test_client_killed(void **state)
{
	struct env *env = *state;

	for (int step = 0; step <= nic_probe_steps() + 10; step++) {
		kill_client(env, step);
		if (step % 5 && step < nic_probe_steps())
			continue;
		env_start_nic(env);
		peer_drain(&env->peer);
		env_check_traffic(env);
		nic_close(env->nic);
		env->nic = NULL;
	}
}

/* Connects and leaves, or stays silent, while others want to be served. */
static void test_clients_in_turn(void **state)
{
	struct env *env = *state;

	for (int i = 0; i < 50; i++) {
		struct vfu *vfu;

		sys_ok(vfu_open(&vfu, env->server->socket, -1, 5000));
		if (i & 1)
			sys_ok(vfu_version(vfu));
		vfu_close(vfu);
	}
	env_start_nic(env);
	env_check_traffic(env);
}

/* While one is attached a second one waits, or is turned away; the first one notices nothing. */
static void test_second_client(void **state)
{
	struct env *env = *state;
	struct vfu *second;

	env_start_nic(env);
	for (int i = 0; i < 5; i++) {
		int err = vfu_open(&second, env->server->socket, -1, 200);

		if (!err) {
			err = vfu_version(second);
			assert_true(err == -ECONNRESET || err == -EPIPE || err == -ETIMEDOUT);
			vfu_close(second);
		}
		env_check_traffic(env);
	}
	nic_close(env->nic);
	env_start_nic(env);
	env_check_traffic(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_reset_at_every_step, &bare),
	        ENV_TEST(test_reset_twice, &plain),
	        ENV_TEST(test_reset_under_traffic, &plain),
	        ENV_TEST(test_function_reset, &plain),
	        ENV_TEST(test_function_reset_registers, &plain),
	        ENV_TEST(test_bus_master_off, &plain),
	        ENV_TEST(test_client_killed, &bare),
	        ENV_TEST(test_clients_in_turn, &bare),
	        ENV_TEST(test_second_client, &bare),
	};

	plain.nic = NIC_OPTIONS(NULL);
	plain.nic.brief = true;
	plain.nic.rx_log2 = 8;
	bare.nic = plain.nic;
	return env_main("reset", tests, true);
}
