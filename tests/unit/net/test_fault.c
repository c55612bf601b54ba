/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The faults of the wire: how they are written, and that each does what it says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "net/fault.h"
#include "net/net.h"

enum { FRAMES = 2000, SIZE = 64 };

static struct {
	struct loop *loop;
	struct net_wire *wire;
	struct net_port guest, host;
	unsigned count;
	uint16_t number[2 * FRAMES]; /* of the frames that came, in their order */
	unsigned damaged;
} rig;

static int host_deliver(struct net_port *port, const struct net_frame *frame)
{
	const uint8_t *bytes = frame->iov[0].iov_base;
	uint8_t others = 0;

	(void)port;
	assert_true(rig.count < ARRAY_SIZE(rig.number));
	rig.number[rig.count++] = (uint16_t)(bytes[14] << 8 | bytes[15]);
	for (unsigned i = 16; i < SIZE; i++)
		others |= bytes[i];
	rig.damaged += others != 0;
	return 0;
}

static const struct net_port_ops ops = {.deliver = host_deliver};

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof(rig));
	assert_int_equal(loop_create(&rig.loop), 0);
	assert_int_equal(net_wire_create(&rig.wire), 0);
	rig.guest = (struct net_port){.name = "guest", .ops = &ops};
	rig.host = (struct net_port){.name = "host", .ops = &ops};
	assert_int_equal(net_wire_attach(rig.wire, &rig.guest), 0);
	assert_int_equal(net_wire_attach(rig.wire, &rig.host), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	net_wire_detach(&rig.guest);
	net_wire_detach(&rig.host);
	net_wire_destroy(rig.wire);
	loop_destroy(rig.loop);
	return 0;
}

static void set(const char *text)
{
	struct net_fault_config config;
	char error[160];

	assert_int_equal(net_fault_parse(text, &config, error, sizeof(error)), 0);
	assert_int_equal(net_wire_set_faults(rig.wire, rig.loop, &config), 0);
}

/* Sends frames with the numbers 0..COUNT-1, and waits for those that come later. */
static void send_frames(unsigned count)
{
	uint8_t bytes[SIZE] = {0};
	struct iovec iov = {bytes, SIZE};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = SIZE};

	rig.count = rig.damaged = 0;
	for (unsigned i = 0; i < count; i++) {
		bytes[14] = (uint8_t)(i >> 8);
		bytes[15] = (uint8_t)i;
		assert_int_equal(net_wire_send(&rig.guest, &frame), 0);
		if (i % 16 == 0)
			loop_turn(rig.loop, 0);
	}
	for (unsigned i = 0; i < 50; i++)
		loop_turn(rig.loop, 1000000);
}

static void words(void **state)
{
	static const struct {
		const char *text, *error; /* error NULL: good, and comes back as `again` */
		const char *again;
	} cases[] = {
	        {"off", NULL, "off"},
	        {"seed=7", NULL, "off"},
	        {"loss=1%", NULL,
	         "loss=1%,reorder=0%,dup=0%,corrupt=0%,delay=0us,jitter=0us,seed=1"},
	        {"loss=0.05%,delay=2ms,jitter=1ms,reorder=0.5%,dup=0.25%,corrupt=0.1%,seed=42",
	         NULL,
	         "loss=0.05%,reorder=0.5%,dup=0.25%,corrupt=0.1%,delay=2000us,jitter=1000us,seed="
	         "42"},
	        {"", "unknown fault ''", NULL},
	        {"lost=1%", "unknown fault 'lost=1%'", NULL},
	        {"loss", "'' is no value of loss", NULL},
	        {"loss=1", "'1' is no value of loss (give, for example, loss=1%)", NULL},
	        {"loss=101%", "'101%' is no value of loss", NULL},
	        {"loss=-1%", "'-1%' is no value of loss", NULL},
	        {"loss=nan%", "'nan%' is no value of loss", NULL},
	        {"delay=2", "'2' is no value of delay (give, for example, delay=2ms)", NULL},
	        {"delay=11s", "'11s' is no value of delay", NULL},
	        {"jitter=1 ms", "'1 ms' is no value of jitter", NULL},
	        {"seed=x", "'x' is no value of seed", NULL},
	        {"seed=-1", "'-1' is no value of seed", NULL},
	        {"loss=1%,", "unknown fault ''", NULL},
	};
	struct net_fault_config config;
	char text[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int result = net_fault_parse(cases[i].text, &config, text, sizeof(text));

		assert_int_equal(result, cases[i].error ? -EINVAL : 0);
		if (cases[i].error) {
			assert_memory_equal(text, cases[i].error, strlen(cases[i].error));
			continue;
		}
		net_fault_format(&config, text, sizeof(text));
		assert_string_equal(text, cases[i].again);
	}
}

static bool in_order(void)
{
	for (unsigned i = 1; i < rig.count; i++)
		if (rig.number[i] <= rig.number[i - 1])
			return false;
	return true;
}

static void none(void **state)
{
	(void)state;
	set("off");
	send_frames(FRAMES);
	assert_int_equal(rig.count, FRAMES);
	assert_true(in_order());
}

static void loss(void **state)
{
	unsigned first;

	(void)state;
	set("loss=10%,seed=5");
	send_frames(FRAMES);
	first = rig.count;
	assert_in_range(first, FRAMES * 85 / 100, FRAMES * 95 / 100);
	assert_true(in_order());
	set("loss=10%,seed=5"); /* the same seed, the same faults */
	send_frames(FRAMES);
	assert_int_equal(rig.count, first);
	set("loss=100%");
	send_frames(100);
	assert_int_equal(rig.count, 0);
	set("off");
	send_frames(100);
	assert_int_equal(rig.count, 100);
}

static void duplicates(void **state)
{
	(void)state;
	set("dup=100%");
	send_frames(100);
	assert_int_equal(rig.count, 200);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(rig.number[i], i / 2);
}

static void corruption(void **state)
{
	uint8_t bytes[SIZE] = {0};
	struct iovec iov = {bytes, SIZE};
	struct net_frame frame = {.iov = &iov,
	                          .iov_count = 1,
	                          .size = SIZE,
	                          .csum_partial = true,
	                          .csum_start = 20,
	                          .csum_offset = 6};

	(void)state;
	set("corrupt=100%");
	send_frames(500);
	assert_int_equal(rig.count, 500);
	/* one of 64 bytes: 16 in front of those that are looked at */
	assert_in_range(rig.damaged, 500 * 60 / 100, 500 * 90 / 100);
	/* what is still to be summed would hide the damage */
	assert_int_equal(net_wire_send(&rig.guest, &frame), 0);
	assert_int_equal(rig.count, 500);
}

static void later_in_order(void **state)
{
	(void)state;
	set("delay=2ms,jitter=3ms");
	send_frames(500);
	assert_int_equal(rig.count, 500);
	assert_true(in_order());
}

static void out_of_order(void **state)
{
	(void)state;
	set("reorder=5%");
	send_frames(FRAMES);
	assert_int_equal(rig.count, FRAMES);
	assert_false(in_order());
}

/* Frames under way are lost with their port, and with the wire. */
static void port_goes(void **state)
{
	uint8_t bytes[SIZE] = {0};
	struct iovec iov = {bytes, SIZE};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = SIZE};

	(void)state;
	set("delay=1ms");
	net_wire_send(&rig.guest, &frame);
	net_wire_detach(&rig.guest);
	for (unsigned i = 0; i < 5; i++)
		loop_turn(rig.loop, 1000000);
	assert_int_equal(rig.count, 0);
	assert_int_equal(net_wire_attach(rig.wire, &rig.guest), 0);
	net_wire_send(&rig.guest, &frame); /* for tear_down() */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(words),
	        cmocka_unit_test_setup_teardown(none, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(loss, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(duplicates, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(corruption, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(later_in_order, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(out_of_order, set_up, tear_down),
	        cmocka_unit_test_setup_teardown(port_goes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
