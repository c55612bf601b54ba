// SPDX-License-Identifier: GPL-2.0-or-later
/* Counters: what moves them, and when they reach guest memory (spec ionic-ethernet 10.4, 10.5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fake_guest.h"

static struct fake_guest guest;
static uint64_t fake_now = UINT64_C(1) << 60; /* ns, so late that no timer is due by itself */

/* The room's clock (linked with --wrap). The loop still has the real one. */
uint64_t __wrap_loop_now(const struct loop *loop);
uint64_t __wrap_loop_now(const struct loop *loop)
{
	(void)loop;
	return fake_now;
}

static int setup(void **state)
{
	(void)state;
	fake_guest_create(&guest, NULL);
	return 0;
}

static int setup_probed(void **state)
{
	setup(state);
	fake_probe(&guest);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_guest_destroy(&guest);
	return 0;
}

/* ---- by name ---- */

struct lookup {
	const char *name;
	uint64_t value, sum;
	unsigned names;
	bool found;
};

static void look(const char *name, uint64_t value, void *arg)
{
	struct lookup *lookup = arg;

	lookup->names++;
	lookup->sum += value;
	if (lookup->name && strcmp(name, lookup->name) == 0) {
		assert_false(lookup->found); /* names are unique */
		lookup->found = true;
		lookup->value = value;
	}
}

static uint64_t lif(const char *name)
{
	struct lookup lookup = {.name = name};

	ionic_lif_stats_visit(guest.dev, look, &lookup);
	if (!lookup.found)
		fail_msg("no LIF counter %s", name);
	return lookup.value;
}

static uint64_t port(const char *name)
{
	struct lookup lookup = {.name = name};

	ionic_port_stats_visit(guest.dev, look, &lookup);
	if (!lookup.found)
		fail_msg("no port counter %s", name);
	return lookup.value;
}

static uint64_t lif_sum(void)
{
	struct lookup lookup = {.name = NULL};

	ionic_lif_stats_visit(guest.dev, look, &lookup);
	return lookup.sum;
}

static void clear(void)
{
	memset(&guest.dev->stats, 0, sizeof(guest.dev->stats));
}

static const struct ionic_frame_facts unicast = {.dst = {2, 0, 0, 0, 0, 1}, .size = 100};
static const struct ionic_frame_facts multicast = {.dst = {0x33, 0x33, 0, 0, 0, 1}, .size = 200};
static const struct ionic_frame_facts broadcast = {.dst = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                                   .size = 42};

/* ---- names and places ---- */

static void test_names(void **state)
{
	struct lookup lookup = {.name = NULL};

	(void)state;
	ionic_lif_stats_visit(guest.dev, look, &lookup);
	assert_int_equal(lookup.names, 74);
	lookup.names = 0;
	ionic_port_stats_visit(guest.dev, look, &lookup);
	assert_int_equal(lookup.names, 89);
}

/* Some indices of the interface, against the names. */
static void test_places(void **state)
{
	static const struct {
		unsigned index;
		const char *name;
	} lif_rows[] =
	        {{0, "rx_ucast_bytes"},
	         {5, "rx_bcast_packets"},
	         {14, "rx_dma_error"},
	         {29, "tx_bcast_drop_packets"},
	         {33, "rx_queue_empty"},
	         {40, "tx_queue_disabled"},
	         {44, "tx_queue_empty"},
	         {61, "rx_rdma_ecn_packets"}}, /* those of test_rdma_stats.c are the engine's */
	        port_rows[] = {{0, "frames_rx_ok"},        {5, "octets_rx_all"},
	                       {19, "frames_rx_dropped"},  {31, "frames_rx_other"},
	                       {36, "octets_tx_total"},    {54, "frames_tx_other"},
	                       {63, "frames_rx_pri_0"},    {71, "tx_pripause_0_1us_count"},
	                       {87, "rx_pause_1us_count"}, {88, "frames_tx_truncated"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lif_rows); i++) {
		guest.dev->stats.lif[lif_rows[i].index] = 100 + i;
		assert_int_equal(lif(lif_rows[i].name), 100 + i);
	}
	for (size_t i = 0; i < ARRAY_SIZE(port_rows); i++) {
		guest.dev->stats.port[port_rows[i].index] = 100 + i;
		assert_int_equal(port(port_rows[i].name), 100 + i);
	}
}

/* ---- counting ---- */

static void test_transmit(void **state)
{
	(void)state;
	ionic_stats_tx(&guest.dev->stats, &unicast);
	ionic_stats_tx(&guest.dev->stats, &multicast);
	ionic_stats_tx(&guest.dev->stats, &broadcast);
	assert_int_equal(lif("tx_ucast_packets"), 1);
	assert_int_equal(lif("tx_ucast_bytes"), 100);
	assert_int_equal(lif("tx_mcast_packets"), 1);
	assert_int_equal(lif("tx_mcast_bytes"), 200);
	assert_int_equal(lif("tx_bcast_packets"), 1);
	assert_int_equal(lif("tx_bcast_bytes"), 42); /* not padded */
	assert_int_equal(lif_sum(), 345);
	assert_int_equal(port("frames_tx_all"), 3);
	assert_int_equal(port("frames_tx_ok"), 3);
	assert_int_equal(port("octets_tx_total"), 104 + 204 + 64);
	assert_int_equal(port("octets_tx_ok"), 104 + 204 + 64);
	assert_int_equal(port("frames_tx_unicast"), 1);
	assert_int_equal(port("frames_tx_multicast"), 1);
	assert_int_equal(port("frames_tx_broadcast"), 1);
	assert_int_equal(port("frames_tx_64b"), 1);
	assert_int_equal(port("frames_tx_65b_127b"), 1);
	assert_int_equal(port("frames_tx_128b_255b"), 1);
	assert_int_equal(port("frames_tx_pri_0"), 3);
	assert_int_equal(port("frames_tx_vlan"), 0);
}

static void test_receive(void **state)
{
	(void)state;
	ionic_stats_rx(&guest.dev->stats, &unicast);
	ionic_stats_rx(&guest.dev->stats, &broadcast);
	assert_int_equal(lif("rx_ucast_packets"), 1);
	assert_int_equal(lif("rx_ucast_bytes"), 100);
	assert_int_equal(lif("rx_bcast_bytes"), 42);
	assert_int_equal(port("frames_rx_all"), 2);
	assert_int_equal(port("frames_rx_ok"), 2);
	assert_int_equal(port("octets_rx_all"), 168);
	assert_int_equal(port("octets_rx_ok"), 168);
	assert_int_equal(port("frames_rx_64b"), 1); /* an ARP of 42 bytes is a frame of 64 */
	assert_int_equal(port("frames_rx_undersized"), 0);
	assert_int_equal(port("frames_rx_less_than_64b"), 0);
}

/* The edges of every bucket, by size without FCS. */
static void test_size_buckets(void **state)
{
	static const struct {
		uint32_t first, last; /* with padding and FCS */
		const char *rx, *tx;
	} rows[] = {
	        {64, 64, "frames_rx_64b", "frames_tx_64b"},
	        {65, 127, "frames_rx_65b_127b", "frames_tx_65b_127b"},
	        {128, 255, "frames_rx_128b_255b", "frames_tx_128b_255b"},
	        {256, 511, "frames_rx_256b_511b", "frames_tx_256b_511b"},
	        {512, 1023, "frames_rx_512b_1023b", "frames_tx_512b_1023b"},
	        {1024, 1518, "frames_rx_1024b_1518b", "frames_tx_1024b_1518b"},
	        {1519, 2047, "frames_rx_1519b_2047b", "frames_tx_1519b_2047b"},
	        {2048, 4095, "frames_rx_2048b_4095b", "frames_tx_2048b_4095b"},
	        {4096, 8191, "frames_rx_4096b_8191b", "frames_tx_4096b_8191b"},
	        {8192, 9215, "frames_rx_8192b_9215b", "frames_tx_8192b_9215b"},
	        {9216, 65535, "frames_rx_other", "frames_tx_other"},
	};
	struct ionic_frame_facts facts = unicast;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		clear();
		facts.size = rows[i].first - 4;
		ionic_stats_rx(&guest.dev->stats, &facts);
		ionic_stats_tx(&guest.dev->stats, &facts);
		facts.size = rows[i].last - 4;
		ionic_stats_rx(&guest.dev->stats, &facts);
		ionic_stats_tx(&guest.dev->stats, &facts);
		assert_int_equal(port(rows[i].rx), 2);
		assert_int_equal(port(rows[i].tx), 2);
	}
	clear();
	for (facts.size = 0; facts.size <= 60; facts.size++)
		ionic_stats_rx(&guest.dev->stats, &facts);
	assert_int_equal(port("frames_rx_64b"), 61);
	assert_int_equal(port("octets_rx_all"), 61 * 64);
}

static void test_tags(void **state)
{
	struct ionic_frame_facts facts = unicast;
	char name[32] = "frames_rx_pri_N";

	(void)state;
	facts.tagged = true;
	for (facts.pcp = 0; facts.pcp < 8; facts.pcp++) {
		for (unsigned i = 0; i <= facts.pcp; i++)
			ionic_stats_rx(&guest.dev->stats, &facts);
		ionic_stats_tx(&guest.dev->stats, &facts);
	}
	for (unsigned pcp = 0; pcp < 8; pcp++) {
		name[14] = (char)('0' + pcp);
		name[7] = 'r';
		assert_int_equal(port(name), pcp + 1);
		name[7] = 't';
		assert_int_equal(port(name), 1);
	}
	assert_int_equal(port("frames_rx_vlan_good"), 36);
	assert_int_equal(port("frames_tx_vlan"), 8);
}

static void test_segments(void **state)
{
	struct ionic_frame_facts facts = unicast;

	(void)state;
	facts.size = 1514;
	ionic_stats_tx_segments(&guest.dev->stats, &facts, 28, 100);
	assert_int_equal(lif("tx_ucast_packets"), 28);
	assert_int_equal(lif("tx_ucast_bytes"), 27 * 1514 + 100);
	assert_int_equal(port("frames_tx_1024b_1518b"), 27);
	assert_int_equal(port("frames_tx_65b_127b"), 1);
	assert_int_equal(port("octets_tx_total"), 27 * 1518 + 104);
	clear();
	ionic_stats_tx_segments(&guest.dev->stats, &facts, 1, 66);
	assert_int_equal(lif("tx_ucast_bytes"), 66);
	assert_int_equal(port("frames_tx_ok"), 1);
	clear();
	ionic_stats_tx_segments(&guest.dev->stats, &facts, 0, 66);
	assert_int_equal(lif_sum(), 0);
}

static void test_drops(void **state)
{
	(void)state;
	ionic_stats_tx_drop(&guest.dev->stats, &multicast);
	assert_int_equal(lif("tx_mcast_drop_packets"), 1);
	assert_int_equal(lif("tx_mcast_drop_bytes"), 200);
	assert_int_equal(port("frames_tx_all"), 0);
	clear();
	ionic_stats_rx_drop(&guest.dev->stats, &broadcast, IONIC_LIF_RX_QUEUE_EMPTY);
	assert_int_equal(lif("rx_bcast_drop_packets"), 1);
	assert_int_equal(lif("rx_bcast_drop_bytes"), 42);
	assert_int_equal(lif("rx_queue_empty"), 1);
	assert_int_equal(lif("rx_bcast_packets"), 0);
	assert_int_equal(port("frames_rx_dropped"), 1);
	assert_int_equal(port("frames_rx_ok"), 1); /* the MAC took it in */
	assert_int_equal(port("frames_rx_broadcast"), 1);
	clear();
	ionic_stats_rx_drop(&guest.dev->stats, &unicast, -1);
	assert_int_equal(lif_sum(), 101);
}

static void test_filtered_and_oversize(void **state)
{
	(void)state;
	ionic_stats_rx_filtered(&guest.dev->stats, &unicast);
	assert_int_equal(lif_sum(), 0);
	assert_int_equal(port("frames_rx_ok"), 1);
	assert_int_equal(port("frames_rx_dropped"), 0);
	clear();
	ionic_stats_rx_oversize(&guest.dev->stats);
	assert_int_equal(lif_sum(), 0);
	assert_int_equal(port("frames_rx_too_long"), 1);
	assert_int_equal(port("frames_rx_oversized"), 1);
	assert_int_equal(port("frames_rx_bad_all"), 1);
	assert_int_equal(port("frames_rx_ok"), 0);
}

/* ---- publication ---- */

static uint64_t lif_block(unsigned index)
{
	const struct ionic_lif_info *info =
	        fake_ptr(&guest, guest.lif_info, sizeof(struct ionic_lif_info));

	return le64_get(info->stats[index]);
}

static uint64_t port_block(unsigned index)
{
	const struct ionic_port_info *info =
	        fake_ptr(&guest, guest.port_info, sizeof(struct ionic_port_info));

	return le64_get(info->stats[index]);
}

/* What the loop does when the timer's time has come. */
static void expire(void)
{
	assert_true(guest.dev->stats_timer.armed);
	fake_now = guest.dev->stats_timer.due_ns;
	loop_disarm(guest.loop, &guest.dev->stats_timer);
	guest.dev->stats_timer.expired(&guest.dev->stats_timer);
}

static void test_interval(void **state)
{
	uint64_t due, accesses;

	(void)state;
	guest.dev->stats.lif[1] = 11;
	guest.dev->stats.port[1] = 22;
	due = guest.dev->stats_timer.due_ns;
	accesses = guest.accesses;
	fake_run(&guest);
	assert_int_equal(guest.accesses, accesses); /* nothing between two intervals */
	expire();
	assert_int_equal(guest.accesses, accesses); /* the timer itself touches no memory */
	fake_run(&guest);
	assert_int_equal(lif_block(1), 11);
	assert_int_equal(port_block(1), 22);
	/* In step with the first one, and one interval after now when it came late. */
	assert_int_equal(guest.dev->stats_timer.due_ns, due + UINT64_C(1000000000));
	fake_now = due + UINT64_C(7500000000);
	loop_disarm(guest.loop, &guest.dev->stats_timer);
	guest.dev->stats_timer.due_ns = due + UINT64_C(1000000000);
	guest.dev->stats_timer.expired(&guest.dev->stats_timer);
	assert_int_equal(guest.dev->stats_timer.due_ns, due + UINT64_C(8500000000));
}

/* Without blocks there is no timer, and so nothing that wakes an idle server. */
static void test_timer_only_with_blocks(void **state)
{
	union ionic_cmd lif_reset = {.any = {.opcode = IONIC_CMD_LIF_RESET}};
	union ionic_cmd port_reset = {.any = {.opcode = IONIC_CMD_PORT_RESET}};

	(void)state;
	assert_false(guest.dev->stats_timer.armed);
	fake_port_init(&guest);
	assert_true(guest.dev->stats_timer.armed);
	fake_lif_init(&guest);
	assert_int_equal(fake_devcmd(&guest, &port_reset, NULL), IONIC_RC_SUCCESS);
	expire();
	assert_true(guest.dev->stats_timer.armed);
	assert_int_equal(fake_devcmd(&guest, &lif_reset, NULL), IONIC_RC_SUCCESS);
	if (guest.dev->stats_timer.armed)
		expire();
	assert_false(guest.dev->stats_timer.armed);
	fake_lif_init(&guest);
	assert_true(guest.dev->stats_timer.armed);
	fake_reset(&guest, VFIO_RESET_DISCONNECT);
	assert_false(guest.dev->stats_timer.armed);
}

/* Which reset stops which block, and which counters it zeroes. */
static void test_resets(void **state)
{
	union ionic_cmd reset = {.any = {.opcode = IONIC_CMD_RESET}};
	union ionic_cmd lif_reset = {.any = {.opcode = IONIC_CMD_LIF_RESET}};

	(void)state;
	guest.dev->stats.lif[1] = 1;
	guest.dev->stats.port[1] = 1;
	assert_int_equal(fake_devcmd(&guest, &lif_reset, NULL), IONIC_RC_SUCCESS);
	expire();
	fake_run(&guest);
	assert_int_equal(lif_block(1), 0);
	assert_int_equal(port_block(1), 1);
	assert_int_equal(guest.dev->stats.lif[1], 1);
	assert_int_equal(fake_devcmd(&guest, &reset, NULL), IONIC_RC_SUCCESS);
	assert_int_equal(guest.dev->stats.lif[1], 0);
	assert_int_equal(guest.dev->stats.port[1], 0);
	guest.quiet = true;
	ionic_stats_publish(guest.dev);
	fake_run(&guest);
}

static void test_lost(void **state)
{
	uint64_t before = counter_get(counter_find("ionic_stats_lost"));

	(void)state;
	guest.bus_master = false;
	expire();
	fake_run(&guest);
	assert_int_equal(counter_get(counter_find("ionic_stats_lost")), before + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_places, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_transmit, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_receive, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_size_buckets, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_tags, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_segments, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_drops, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_filtered_and_oversize, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_interval, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_timer_only_with_blocks, setup, teardown),
	        cmocka_unit_test_setup_teardown(test_resets, setup_probed, teardown),
	        cmocka_unit_test_setup_teardown(test_lost, setup_probed, teardown),
	};

	return cmocka_run_group_tests_name("ionic/stats", tests, NULL, NULL);
}
