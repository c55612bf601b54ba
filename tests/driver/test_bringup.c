// SPDX-License-Identifier: GPL-2.0-or-later
/* Probe, interface up, removal: every profile, interrupts and polling, shared memory and messages.
 */
#include "env.h"

#include <string.h>

/* What the manual says of the built-in profiles (The ionic Device, NIC Profiles). */
static const struct {
	const char *name;
	uint32_t queues, eqs, nintrs, speed;
	uint64_t features; /* that must be accepted of what Linux asks for */
} profiles[] = {
        {"compat", 4, 32, 32, 100000, 0},
        {"small-vm", 2, 4, 7, 100000, 0},
        {"generic-100g", 16, 32, 49, 100000, 0x7bf},
        {"generic-400g", 64, 32, 97, 400000, 0x7bf},
};

static const struct env_options bare = {.no_nic = true};
static const struct env_options bare_by_profile[] = {
        {.no_nic = true, .server.profile = "compat"},
        {.no_nic = true, .server.profile = "small-vm"},
        {.no_nic = true, .server.profile = "generic-100g"},
        {.no_nic = true, .server.profile = "generic-400g"},
};

static void check_identity(const struct nic *nic, size_t profile)
{
	assert_int_equal(nic->id.queue_count[Q_TX], profiles[profile].queues);
	assert_int_equal(nic->id.queue_count[Q_RX], profiles[profile].queues);
	/* Event queues are offered with verbs, never without. */
	assert_int_equal(nic->id.eq_count,
	                 nic->id.lif_caps & LIF_CAP_RDMA ? profiles[profile].eqs : 0);
	assert_int_equal(nic->id.nintrs, profiles[profile].nintrs);
	assert_true(nic->msix_count >= nic->id.nintrs);
	assert_int_equal(nic_link_speed(nic), profiles[profile].speed);
	assert_int_equal(nic->features, profiles[profile].features);
	assert_true(nic->id.lif_caps & LIF_CAP_ETH);
	assert_true(nic->id.max_frame >= 1518);
	assert_true(nic->id.min_frame <= 68);
	assert_true(nic->id.rss_entries > 0);
	assert_memory_equal(nic->mac, "\x02\x00\x00\x00\xaa\x01", 6);
	assert_true(nic_link_up(nic));
}

/* A guest with COUNT CPUs. */
static void bring_up(struct env *env, size_t profile, unsigned pairs)
{
	struct nic_options options = env_nic_options(env);
	const uint8_t frame[60] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = 0x88, [13] = 0xb5};

	options.pairs = pairs;
	nic_ok(NULL, nic_open(&env->nic, &options));
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
	check_identity(env->nic, profile);
	for (unsigned i = 0; i < env->nic->pair_count; i++) {
		struct nic_packet packet = {.frame = frame, .size = sizeof(frame)};

		nic_ok(env->nic, nic_send(env->nic, i, &packet));
	}
	nic_ok(env->nic, nic_remove(env->nic));
	nic_close(env->nic);
	env->nic = NULL;
}

static void each_profile(struct env *env, const char *name)
{
	size_t profile = 0;

	while (strcmp(profiles[profile].name, name) != 0)
		profile++;
	for (unsigned pairs = 1; pairs <= profiles[profile].queues; pairs *= 4)
		bring_up(env, profile, pairs);
	bring_up(env, profile, NIC_PAIRS_MAX);
}

static void test_profile(void **state)
{
	struct env *env = *state;

	each_profile(env, env->options->server.profile);
}

/* Unload and load again, many times, on one connection. */
static void test_reload(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);

	options.brief = true;
	nic_ok(NULL, nic_open(&env->nic, &options));
	for (int i = 0; i < 50; i++) {
		nic_ok(env->nic, nic_probe(env->nic));
		nic_ok(env->nic, nic_up(env->nic));
		nic_ok(env->nic, nic_remove(env->nic));
	}
}

static void test_up_down(void **state)
{
	struct env *env = *state;

	env_start_nic(env);
	for (int i = 0; i < 20; i++) {
		nic_ok(env->nic, nic_down(env->nic));
		nic_ok(env->nic, nic_up(env->nic));
	}
}

static void send_some(struct nic *nic)
{
	uint8_t frame[1514] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, [12] = 0x88, [13] = 0xb5};

	for (int i = 0; i < 100; i++)
		nic_ok(nic, nic_send_frame(nic, frame, sizeof(frame)));
}

static void test_polled(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);

	options.polled = true;
	nic_ok(NULL, nic_start(&env->nic, &options));
	send_some(env->nic);
	nic_ok(env->nic, nic_remove(env->nic));
}

/* Guest memory without a descriptor: slow and correct. */
static void test_message_memory(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);

	options.message_ram = true;
	nic_ok(NULL, nic_open(&env->nic, &options));
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
	send_some(env->nic);
	nic_ok(env->nic, nic_remove(env->nic));
	assert_true(env->nic->vfu->dma_reads > 100);
	assert_true(env->nic->vfu->dma_writes > 100);
}

/* Messages that arrive in pieces. */
static void test_split_messages(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);

	nic_ok(NULL, nic_open(&env->nic, &options));
	env->nic->vfu->split = 7;
	nic_ok(env->nic, nic_probe(env->nic));
	nic_ok(env->nic, nic_up(env->nic));
	env->nic->vfu->split = 1;
	send_some(env->nic);
	nic_ok(env->nic, nic_remove(env->nic));
}

/* The version reply must fit into what QEMU has room for (spec vfio-user 1, rule 4). */
static void test_version_reply(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);

	nic_ok(NULL, nic_open(&env->nic, &options));
	assert_true(env->nic->vfu->version_reply_size <= 214);
	assert_non_null(strstr(env->nic->vfu->version_reply, "\"capabilities\""));
}

/* No device command needs INIT (spec ionic-ethernet 3.4); RESET comes at any time. */
static void test_reset_twice(void **state)
{
	struct env *env = *state;
	struct nic_options options = env_nic_options(env);
	const struct cmd reset = {.opcode = CMD_RESET};

	nic_ok(NULL, nic_open(&env->nic, &options));
	nic_ok(env->nic, nic_probe_until(env->nic, 2));
	for (int i = 0; i < 3; i++)
		nic_ok(env->nic, nic_devcmd(env->nic, &reset, NULL));
	nic_ok(env->nic, nic_probe(env->nic));
}

/* AdminQ commands outstanding at once complete in order, across many wraps of the ring. */
static void test_admin_pipeline(void **state)
{
	struct env *env = *state;
	struct cmd cmd = {.opcode = CMD_LIF_GETATTR};

	cmd.lif_attr.attr = LIF_MAC;
	for (int round = 0; round < 40; round++) {
		int slots[16], posted = 0;

		while ((slots[posted] = nic_admin_post(env->nic, &cmd)) >= 0)
			posted++;
		assert_int_equal(posted, 15);
		nic_ok(env->nic, nic_admin_wait(env->nic));
		for (int i = 0; i < posted; i++)
			assert_memory_equal(env->nic->admin_comp[slots[i]].mac, env->nic->mac, 6);
	}
}

static void test_bad_commands(void **state)
{
	struct env *env = *state;
	const struct cmd unknown = {.opcode = 200}, nop = {.opcode = CMD_NOP};

	assert_int_equal(nic_devcmd(env->nic, &unknown, NULL), RC_EOPCODE);
	assert_int_equal(nic_admin(env->nic, &unknown, NULL), RC_EOPCODE);
	assert_int_equal(nic_devcmd(env->nic, &nop, NULL), RC_SUCCESS);
	assert_int_equal(nic_admin(env->nic, &nop, NULL), RC_SUCCESS);
}

/* Data, completion and done stay when the doorbell is cleared (2.3). */
static void test_devcmd_window_stays(void **state)
{
	struct env *env = *state;
	struct nic *nic = env->nic;
	struct cmd cmd = {.opcode = CMD_IDENTIFY};
	uint32_t before, after, done;

	cmd.identify.ver = 2;
	nic_ok(nic, nic_devcmd(nic, &cmd, NULL));
	nic_ok(nic, nic_reg_read32(nic, REG_DEVCMD_DATA + DEV_ID_NINTRS, &before));
	nic_ok(nic, nic_reg_write32(nic, REG_DEVCMD_DB, 0));
	nic_ok(nic, nic_reg_read32(nic, REG_DEVCMD_DATA + DEV_ID_NINTRS, &after));
	nic_ok(nic, nic_reg_read32(nic, REG_DEVCMD_DONE, &done));
	assert_int_equal(before, nic->id.nintrs);
	assert_int_equal(after, before);
	assert_int_equal(done & 1, 1);
}

int main(void)
{
	static const struct env_options up = {0};
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_profile, &bare_by_profile[0]),
	        ENV_TEST(test_profile, &bare_by_profile[1]),
	        ENV_TEST(test_profile, &bare_by_profile[2]),
	        ENV_TEST(test_profile, &bare_by_profile[3]),
	        ENV_TEST(test_reload, &bare),
	        ENV_TEST(test_up_down, &bare),
	        ENV_TEST(test_polled, &bare),
	        ENV_TEST(test_message_memory, &bare),
	        ENV_TEST(test_split_messages, &bare),
	        ENV_TEST(test_version_reply, &bare),
	        ENV_TEST(test_reset_twice, &bare),
	        ENV_TEST(test_admin_pipeline, &up),
	        ENV_TEST(test_bad_commands, &up),
	        ENV_TEST(test_devcmd_window_stays, &up),
	};

	return env_main("bringup", tests, false);
}
