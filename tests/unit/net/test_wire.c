/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The switch and the work it does for ports: forwarding, tags, checksums, segmentation. */
#include "net/net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/counter.h"
#include "base/iov.h"
#include "frames.h"

/* A port that keeps what it is given. */
struct sink {
	struct net_port port;
	unsigned frames;
	struct net_frame last; /* its notes; the pieces are in bytes */
	uint8_t bytes[FRAME_BUFFER];
	int result;          /* of deliver */
	unsigned peer_calls; /* of peers_changed */
	unsigned ready_calls;
	void (*then)(struct sink *sink, const struct net_frame *frame);
};

static int sink_deliver(struct net_port *port, const struct net_frame *frame)
{
	struct sink *sink = (struct sink *)port;

	assert_true(frame->iov_count <= NET_PORT_IOV);
	assert_int_equal(iov_size(frame->iov, frame->iov_count), frame->size);
	sink->frames++;
	sink->last = *frame;
	iov_to_buf(frame->iov, frame->iov_count, 0, sink->bytes, frame->size);
	if (sink->then)
		sink->then(sink, frame);
	return sink->result;
}

static void sink_peers_changed(struct net_port *port)
{
	((struct sink *)port)->peer_calls++;
}

static void sink_peer_ready(struct net_port *port)
{
	((struct sink *)port)->ready_calls++;
}

static const struct net_port_ops sink_ops = {.deliver = sink_deliver,
                                             .peer_ready = sink_peer_ready,
                                             .peers_changed = sink_peers_changed};

struct setup {
	struct net_wire *wire;
	struct sink sinks[9];
	unsigned count;
};

static int set_up(void **state)
{
	struct setup *setup = calloc(1, sizeof(*setup));

	*state = setup;
	return net_wire_create(&setup->wire);
}

static int tear_down(void **state)
{
	struct setup *setup = *state;

	for (unsigned i = 0; i < setup->count; i++)
		net_wire_detach(&setup->sinks[i].port);
	net_wire_destroy(setup->wire);
	free(setup);
	return 0;
}

static struct sink *add_sink(struct setup *setup, unsigned offloads)
{
	struct sink *sink = &setup->sinks[setup->count++];

	sink->port = (struct net_port){.name = "sink", .ops = &sink_ops, .offloads = offloads};
	assert_int_equal(net_wire_attach(setup->wire, &sink->port), 0);
	return sink;
}

static uint64_t count_of(const char *name)
{
	const struct counter *counter = counter_find(name);

	assert_non_null(counter);
	return counter_get(counter);
}

/* Sends a small frame from one station to another. */
static int send_between(struct sink *from, uint8_t src, uint8_t dst)
{
	uint8_t bytes[60] = {2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 0x88, 0xb5};
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = sizeof(bytes)};

	if (dst == 0xff)
		memset(bytes, 0xff, 6);
	return net_wire_send(&from->port, &frame);
}

/* ---- forwarding ---- */

static void test_alone_discards(void **state)
{
	struct sink *a = add_sink(*state, 0);
	uint64_t before = count_of("net_wire_discarded");

	assert_int_equal(send_between(a, 1, 2), 0);
	assert_int_equal(count_of("net_wire_discarded"), before + 1);
	assert_int_equal(a->frames, 0);
}

static void test_two_ports_are_a_cable(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0);

	assert_int_equal(send_between(a, 1, 2), 0);
	assert_int_equal(send_between(a, 1, 1), 0); /* even to itself: the other end decides */
	assert_int_equal(b->frames, 2);
	b->result = -ENOBUFS;
	assert_int_equal(send_between(a, 1, 2), -ENOBUFS);
	assert_int_equal(a->frames, 0);
}

static void test_three_ports_learn(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0), *c = add_sink(*state, 0);

	send_between(a, 1, 2); /* unknown: to all others */
	assert_int_equal(b->frames + c->frames, 2);
	send_between(b, 2, 1); /* known: to one */
	assert_int_equal(a->frames, 1);
	assert_int_equal(c->frames, 1);
	send_between(a, 1, 2);
	assert_int_equal(b->frames, 2);
	assert_int_equal(c->frames, 1);
	send_between(a, 1, 0xff); /* broadcast */
	assert_int_equal(b->frames, 3);
	assert_int_equal(c->frames, 2);
	send_between(c, 2, 1); /* the station moved */
	send_between(a, 1, 2);
	assert_int_equal(b->frames, 3);
	assert_int_equal(c->frames, 3);
}

static void test_own_port_is_not_sent_to(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0);

	add_sink(*state, 0);
	send_between(a, 1, 9);
	unsigned before = b->frames;

	assert_int_equal(send_between(a, 3, 1), 0);
	assert_int_equal(a->frames, 0);
	assert_int_equal(b->frames, before);
}

static void test_detached_port_is_forgotten(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0), *c = add_sink(*state, 0),
	            *d = add_sink(*state, 0);

	send_between(b, 2, 1);
	net_wire_detach(&b->port);
	net_wire_detach(&b->port); /* idempotent */
	c->frames = d->frames = 0;
	assert_int_equal(send_between(a, 1, 2), 0);
	assert_int_equal(c->frames + d->frames, 2);
	assert_int_equal(send_between(b, 2, 1), 0); /* goes nowhere */
}

static void test_more_stations_than_the_table(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0);

	add_sink(*state, 0);
	uint64_t before = count_of("net_wire_forgotten");

	for (unsigned i = 0; i < 4096; i++) {
		uint8_t bytes[60] = {2, 0, 0, 0, 0, 99, 2, 0, 0, 7, (uint8_t)(i >> 8), (uint8_t)i};
		struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
		struct net_frame frame = {.iov = &iov, .iov_count = 1, .size = sizeof(bytes)};

		assert_int_equal(net_wire_send(&a->port, &frame), 0);
	}
	assert_true(count_of("net_wire_forgotten") > before);
	b->frames = 0;
	send_between(b, 5, 0xff);
	send_between(a, 1, 5); /* the table still works */
	assert_int_equal(b->frames, 1);
}

static void test_flood_succeeds_when_one_takes(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0), *c = add_sink(*state, 0);

	b->result = -ENOBUFS;
	assert_int_equal(send_between(a, 1, 0xff), 0);
	c->result = -ENETDOWN;
	assert_true(send_between(a, 1, 0xff) < 0);
}

static void test_ninth_port_is_refused(void **state)
{
	struct setup *setup = *state;

	for (unsigned i = 0; i < 8; i++)
		add_sink(setup, 0);
	struct net_port *ninth = &setup->sinks[8].port;

	*ninth = (struct net_port){.name = "ninth", .ops = &sink_ops};
	assert_int_equal(net_wire_attach(setup->wire, ninth), -ENOSPC);
}

static void test_peers_hear_of_offloads(void **state)
{
	struct sink *a = add_sink(*state, NET_OFFLOAD_ALL), *b = add_sink(*state, NET_OFFLOAD_CSUM);

	assert_int_equal(a->peer_calls, 1);
	assert_int_equal(net_wire_peer_offloads(&a->port), NET_OFFLOAD_CSUM);
	net_port_set_offloads(&b->port, 0);
	net_port_set_offloads(&b->port, 0); /* no change, no call */
	assert_int_equal(a->peer_calls, 2);
	assert_int_equal(b->peer_calls, 0);
	assert_int_equal(net_wire_peer_offloads(&a->port), 0);
}

static void answer(struct sink *sink, const struct net_frame *frame)
{
	net_wire_send(&sink->port, frame);
}

static void test_answers_to_answers_end(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0);
	uint64_t before = count_of("net_wire_too_deep");

	a->then = b->then = answer;
	send_between(a, 1, 2);
	assert_int_equal(count_of("net_wire_too_deep"), before + 1);
	assert_int_equal(a->frames + b->frames, 4);
}

/* ---- undone work ---- */

struct notes {
	unsigned gso_size; /* 0: not to be cut */
	bool csum, vlan;
	uint16_t tci;
};

/* Sends the packet of SPEC in random pieces with notes as asked. */
static int send_spec(struct sink *from, const struct frame_spec *spec, const struct notes *notes)
{
	static struct frame built;
	static uint8_t store[FRAME_BUFFER + NET_MAX_IOV];
	struct iovec iov[NET_MAX_IOV];
	struct net_frame frame = {.iov = iov, .vlan = notes->vlan, .vlan_tci = notes->tci};

	frame_build(spec, &built);
	frame.size = built.size;
	if (notes->csum) {
		frame_unsum(&built, (uint32_t)(built.size - built.l4));
		frame.csum_partial = true;
		frame.csum_start = (uint16_t)built.l4;
		frame.csum_offset = spec->udp ? 6 : 16;
	}
	if (notes->gso_size) {
		frame.gso = spec->ipv6 ? NET_GSO_TCPV6 : NET_GSO_TCPV4;
		frame.gso_size = (uint16_t)notes->gso_size;
		frame.hdr_size = (uint16_t)built.payload;
	}
	unsigned max = rand() % 2 ? NET_MAX_IOV : 1 + (unsigned)rand() % 10;

	frame.iov_count = split_random(built.bytes, built.size, iov, max, store);
	uint8_t *before = malloc(sizeof(store));

	memcpy(before, store, sizeof(store));
	int result = net_wire_send(&from->port, &frame);

	assert_memory_equal(before, store, sizeof(store)); /* the sender's memory is not written */
	free(before);
	return result;
}

static void expect_frame(const struct sink *sink, const struct frame *expected)
{
	assert_int_equal(sink->last.size, expected->size);
	assert_memory_equal(sink->bytes, expected->bytes, expected->size);
}

static struct frame_spec random_spec(void)
{
	return (struct frame_spec){
	        .ipv6 = rand() % 2,
	        .tagged = rand() % 4 == 0,
	        .tci = (uint16_t)rand(),
	        .tcp_options = (unsigned)(rand() % 11) * 4,
	        .payload = (size_t)rand() % (rand() % 2 ? 3000 : 65000),
	        .tcp_flags = (uint8_t)rand(),
	        .seq = (uint32_t)rand() << 12,
	        .ip_id = (uint16_t)rand(),
	        .sport = (uint16_t)rand(),
	        .dport = (uint16_t)rand(),
	        .seed = (unsigned)rand(),
	};
}

static void test_checksum_is_filled(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0);
	static struct frame expected;

	for (unsigned round = 0; round < 300; round++) {
		struct frame_spec spec = random_spec();

		spec.udp = rand() % 2;
		assert_int_equal(send_spec(a, &spec, &(struct notes){.csum = true}), 0);
		frame_build(&spec, &expected);
		expect_frame(b, &expected);
		assert_false(b->last.csum_partial);
	}
}

/* A tag from the notes must give the same bytes as one that was built in. */
static void test_tag_is_inserted(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, NET_OFFLOAD_CSUM);
	static struct frame expected;

	for (unsigned round = 0; round < 300; round++) {
		struct frame_spec spec = random_spec();
		struct notes notes = {.vlan = true, .tci = spec.tci, .csum = rand() % 2};

		spec.tagged = false;
		assert_int_equal(send_spec(a, &spec, &notes), 0);
		spec.tagged = true;
		frame_build(&spec, &expected);
		if (notes.csum) {
			frame_unsum(&expected, (uint32_t)(expected.size - expected.l4));
			assert_int_equal(b->last.csum_start, expected.l4);
		}
		expect_frame(b, &expected);
		assert_false(b->last.vlan);
	}
}

static const struct frame_spec *cut_spec;
static size_t cut_mss;
static bool cut_partial;

static void check_segment(struct sink *sink, const struct net_frame *frame)
{
	static struct frame expected;

	assert_true(frame_segment(cut_spec, cut_mss, sink->frames - 1, &expected));
	assert_int_equal(frame->gso, NET_GSO_NONE);
	assert_int_equal(frame->csum_partial, cut_partial);
	if (cut_partial) {
		frame_unsum(&expected, (uint32_t)(expected.size - expected.l4));
		assert_int_equal(frame->csum_start, expected.l4);
	}
	expect_frame(sink, &expected);
}

static void cut_and_compare(struct setup *setup, unsigned offloads)
{
	struct sink *a = add_sink(setup, 0), *b = add_sink(setup, offloads);

	b->then = check_segment;
	cut_partial = offloads & NET_OFFLOAD_CSUM;
	for (unsigned round = 0; round < 200; round++) {
		struct frame_spec spec = random_spec();
		struct notes notes = {.csum = true, .tci = spec.tci};

		notes.gso_size = 8 + (unsigned)rand() % (rand() % 2 ? 1500 : 9000);
		if (spec.payload == 0)
			spec.payload = 1;
		notes.vlan = spec.tagged && rand() % 2;
		spec.tagged = spec.tagged && !notes.vlan;
		struct frame_spec on_wire = spec;

		on_wire.tagged = spec.tagged || notes.vlan;
		cut_spec = &on_wire;
		cut_mss = notes.gso_size;
		b->frames = 0;
		assert_int_equal(send_spec(a, &spec, &notes), 0);
		assert_int_equal(b->frames, (spec.payload + cut_mss - 1) / cut_mss);
	}
}

static void test_segments_match_the_naive_ones(void **state)
{
	cut_and_compare(*state, 0);
}

static void test_segments_for_a_port_that_sums(void **state)
{
	cut_and_compare(*state, NET_OFFLOAD_CSUM);
}

static void test_large_packet_crosses_whole(void **state)
{
	struct sink *a = add_sink(*state, 0);
	struct sink *b = add_sink(*state, NET_OFFLOAD_CSUM | NET_OFFLOAD_TSO4);
	struct frame_spec spec = {.payload = 60000, .tcp_flags = 0x18};
	struct notes notes = {.gso_size = 1448, .csum = true, .vlan = true, .tci = 5};

	assert_int_equal(send_spec(a, &spec, &notes), 0);
	assert_int_equal(b->frames, 1);
	assert_int_equal(b->last.size, 54 + 4 + 60000);
	assert_int_equal(b->last.gso, NET_GSO_TCPV4);
	assert_int_equal(b->last.hdr_size, 58);
	assert_int_equal(b->last.csum_start, 38);
	spec.ipv6 = true; /* of which the port has not said that it takes it */
	b->frames = 0;
	assert_int_equal(send_spec(a, &spec, &notes), 0);
	assert_int_equal(b->frames, 42);
}

static int send_raw(struct sink *from, const struct frame *built, struct net_frame frame)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)built->bytes, .iov_len = built->size};

	frame.iov = &iov;
	frame.iov_count = 1;
	frame.size = built->size;
	return net_wire_send(&from->port, &frame);
}

static void test_notes_that_do_not_fit(void **state)
{
	struct sink *a = add_sink(*state, 0), *b = add_sink(*state, 0);
	struct frame_spec spec = {.payload = 3000};
	static struct frame built;

	frame_build(&spec, &built);
	const struct net_frame bad[] = {
	        {.csum_partial = true, .csum_start = 4000, .csum_offset = 16},
	        {.csum_partial = true, .csum_start = 3050, .csum_offset = 16},
	        {.csum_partial = true, .csum_start = 34, .csum_offset = 65535},
	        {.csum_partial = true, .csum_start = 10, .csum_offset = 2},
	        {.csum_partial = true, .csum_start = 600, .csum_offset = 16}, /* too deep to copy */
	        {.gso = NET_GSO_TCPV4, .gso_size = 1448, .hdr_size = 54},     /* no checksum */
	        {.gso = NET_GSO_TCPV6,
	         .gso_size = 1448,
	         .hdr_size = 54,
	         .csum_partial = true,
	         .csum_start = 34,
	         .csum_offset = 16},
	        {.gso = NET_GSO_TCPV4,
	         .gso_size = 0,
	         .hdr_size = 54,
	         .csum_partial = true,
	         .csum_start = 34,
	         .csum_offset = 16},
	        {.gso = NET_GSO_TCPV4,
	         .gso_size = 1448,
	         .hdr_size = 55,
	         .csum_partial = true,
	         .csum_start = 34,
	         .csum_offset = 16},
	        {.gso = NET_GSO_TCPV4,
	         .gso_size = 1448,
	         .hdr_size = 4000,
	         .csum_partial = true,
	         .csum_start = 34,
	         .csum_offset = 16},
	        {.gso = NET_GSO_TCPV4,
	         .gso_size = 1448,
	         .hdr_size = 54,
	         .csum_partial = true,
	         .csum_start = 34,
	         .csum_offset = 6},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t before = count_of("net_wire_bad_notes");

		assert_int_equal(send_raw(a, &built, bad[i]), -EBADMSG);
		assert_int_equal(count_of("net_wire_bad_notes"), before + 1);
	}
	built.size = 13;
	assert_int_equal(send_raw(a, &built, (struct net_frame){0}), -EBADMSG);
	assert_int_equal(b->frames, 0);
}

/* ---- waiting ---- */

static void answer_again(struct sink *sink, const struct net_frame *frame)
{
	sink->result = frame->may_wait ? -EAGAIN : 0;
}

/* To one port a frame may wait; to several it may not, as it would reach some twice. */
static void test_waiting(void **state)
{
	struct setup *setup = *state;
	struct sink *a = add_sink(setup, 0), *b = add_sink(setup, 0);
	uint8_t bytes[60] = {0xff, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
	struct iovec iov = {bytes, sizeof(bytes)};
	struct net_frame frame = {
	        .iov = &iov, .iov_count = 1, .size = sizeof(bytes), .may_wait = true};

	a->then = b->then = answer_again;
	assert_int_equal(net_wire_send(&a->port, &frame), -EAGAIN);
	net_port_ready(&b->port);
	assert_int_equal(a->ready_calls, 1);
	assert_int_equal(b->ready_calls, 0);
	struct sink *c = add_sink(setup, 0);

	c->then = answer_again;
	assert_int_equal(net_wire_send(&a->port, &frame), 0);
	assert_int_equal(c->frames, 1);
	bytes[0] = 2; /* to a station that is known to be on one port */
	send_between(b, 2, 1);
	assert_int_equal(net_wire_send(&a->port, &frame), -EAGAIN);
	assert_int_equal(c->frames, 1);
}

/* ---- many at once ---- */

static unsigned many_calls;

static void sink_deliver_many(struct net_port *port, const struct net_frame *frames, unsigned count,
                              int *results)
{
	many_calls++;
	assert_true(count > 1 && count <= NET_MANY_MAX);
	for (unsigned i = 0; i < count; i++)
		results[i] = sink_deliver(port, &frames[i]);
}

static const struct net_port_ops many_ops = {.deliver = sink_deliver,
                                             .deliver_many = sink_deliver_many};

static void check_order(struct sink *sink, const struct net_frame *frame)
{
	(void)frame;
	assert_int_equal(sink->bytes[30], sink->frames - 1);
	sink->result = sink->frames == 3 ? -ENOBUFS : 0;
}

/* Frames that the port does not take as they are go one by one, and none overtakes another. */
static void test_many_at_once(void **state)
{
	struct setup *setup = *state;
	struct sink *a = add_sink(setup, 0), *b = add_sink(setup, NET_OFFLOAD_CSUM);
	uint8_t bytes[10][60] = {0};
	struct iovec iov[10];
	struct net_frame frames[10] = {0};
	int results[10];

	b->port.ops = &many_ops;
	b->then = check_order;
	many_calls = 0;
	for (unsigned i = 0; i < 10; i++) {
		bytes[i][0] = 0xff; /* to a group */
		bytes[i][30] = (uint8_t)i;
		iov[i] = (struct iovec){bytes[i], 60};
		frames[i] = (struct net_frame){.iov = &iov[i], .iov_count = 1, .size = 60};
	}
	frames[5].vlan = true;
	bytes[5][26] = 5;    /* in its place once the tag is in */
	frames[8].size = 10; /* not a frame */
	net_wire_send_many(&a->port, frames, 8, results);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(results[i], i == 2 ? -ENOBUFS : 0);
	assert_int_equal(many_calls, 2);
	b->frames = 9;
	b->then = NULL;
	b->result = 0;
	net_wire_send_many(&a->port, frames + 8, 2, results);
	assert_int_equal(results[0], -EBADMSG);
	assert_int_equal(results[1], 0);
	add_sink(setup, 0); /* a switch now */
	many_calls = 0;
	net_wire_send_many(&a->port, frames, 4, results);
	assert_int_equal(many_calls, 0);
	assert_int_equal(setup->sinks[2].frames, 4);
}

#define wire_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        wire_test(test_alone_discards),
	        wire_test(test_two_ports_are_a_cable),
	        wire_test(test_three_ports_learn),
	        wire_test(test_own_port_is_not_sent_to),
	        wire_test(test_detached_port_is_forgotten),
	        wire_test(test_more_stations_than_the_table),
	        wire_test(test_flood_succeeds_when_one_takes),
	        wire_test(test_ninth_port_is_refused),
	        wire_test(test_peers_hear_of_offloads),
	        wire_test(test_answers_to_answers_end),
	        wire_test(test_checksum_is_filled),
	        wire_test(test_tag_is_inserted),
	        wire_test(test_segments_match_the_naive_ones),
	        wire_test(test_segments_for_a_port_that_sums),
	        wire_test(test_large_packet_crosses_whole),
	        wire_test(test_notes_that_do_not_fit),
	        wire_test(test_waiting),
	        wire_test(test_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
