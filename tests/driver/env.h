/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every driver test stands on: a server of its own, with a TAP and a NIC brought up when the
 * test wants them, and a verdict about the server at the end.
 *
 * Each test names its needs in a struct env_options and is declared with ENV_TEST().
 */
#ifndef ERNIC_TESTS_DRIVER_ENV_H
#define ERNIC_TESTS_DRIVER_ENV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frame.h"
#include "nic.h"
#include "peer.h"
#include "server.h"

struct env_options {
	struct server_options server;
	bool tap, multi;        /* the server has a TAP; with several queues */
	bool no_nic;            /* the test opens its own */
	struct nic_options nic; /* all zero: NIC_OPTIONS */
};

struct env {
	const struct env_options *options;
	struct server *server;
	struct peer peer;
	struct nic *nic;
	struct peer_frame *got;
	struct nic_frame *frame;
	uint8_t *packet, *expect; /* scratch of 64 KiB packets */
};

/* cmocka set-up and tear-down; the initial state is the struct env_options. */
int env_setup(void **state);
int env_teardown(void **state);

#define ENV_TEST(function, options)                                                                \
	cmocka_unit_test_prestate_setup_teardown(function, env_setup, env_teardown,                \
	                                         (void *)(options))

/* Runs the group; returns what main() returns: 77 with a reason when there can be no TAP. */
#define env_main(name, tests, needs_tap)                                                           \
	(env_ready(needs_tap) ? cmocka_run_group_tests_name(name, tests, NULL, NULL) : 77)
bool env_ready(bool needs_tap);

/* Options for a NIC on the environment's server. */
struct nic_options env_nic_options(const struct env *env);

/* Opens and brings up the NIC. */
void env_start_nic(struct env *env);

/* Asserts that EXPR is 0; else tells what it was and what the NIC complained about. */
#define nic_ok(nic, expr) env_check((nic), (expr), #expr, __FILE__, __LINE__)
#define sys_ok(expr)      env_check(NULL, (expr), #expr, __FILE__, __LINE__)
void env_check(const struct nic *nic, int result, const char *expr, const char *file, int line);

/* The MAC address of the host's end, as tests use it. */
extern const uint8_t env_peer_mac[6];

/* A flow from the NIC to the host, and back. */
struct flow env_flow_out(const struct env *env, int version, uint8_t protocol);
struct flow env_flow_in(const struct env *env, int version, uint8_t protocol);

/* Asserts that the next frame the host gets is FRAME. */
void env_expect_out(struct env *env, const uint8_t *frame, size_t size);

/* Asserts that the next frame the NIC gets is FRAME; it is in env->frame. */
void env_expect_in(struct env *env, const uint8_t *frame, size_t size);

/* Asserts that both directions work: a marked frame each way. */
void env_check_traffic(struct env *env);

/* Asserts that the NIC gets nothing until a frame that it does get, which is sent to prove it. */
void env_expect_nothing_in(struct env *env);

/* Waits until LIF or port statistic INDEX in guest memory is VALUE; asserts it. */
void env_expect_lif(struct env *env, unsigned index, uint64_t value);
void env_expect_port(struct env *env, unsigned index, uint64_t value);

/* A counter of the stats file, of any section; asserts that it exists. */
uint64_t env_counter(struct env *env, const char *name);

/* Sends a control command; asserts that it is done. */
void env_control(struct env *env, const char *command);

/* A random seed, from $ERNIC_TEST_SEED or the clock; printed. */
uint32_t env_seed(void);
uint32_t env_random(uint32_t *state); /* xorshift */

#endif
