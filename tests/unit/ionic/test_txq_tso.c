/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit queues: large packets, in whatever pieces, against segments that were made the slow and
 * obvious way; and memory that is reached by messages.
 */
#include "eth_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/iov.h"

/* The template as the driver leaves it (spec 7.6). */
static void make_template(const struct frame_spec *spec, struct frame *frame)
{
	frame_build(spec, frame);
	frame_unsum(frame, 0);
	uint8_t *ip = frame->bytes + frame->l3;

	if (spec->ipv6) {
		ip[4] = ip[5] = 0;
	} else {
		ip[2] = (uint8_t)rand(); /* not to be trusted */
		ip[3] = (uint8_t)rand();
		ip[10] = ip[11] = 0;
	}
}

struct tso {
	struct rig *rig;
	const struct frame *frame;
	size_t mss, next; /* offset of the next byte to place */
	uint64_t memory;  /* where the next piece goes */
	uint16_t flags, tci;
	unsigned gap; /* at most, between pieces */
};

static uint64_t place_piece(struct tso *tso, size_t size)
{
	uint64_t addr = tso->memory;

	memcpy(fake_ptr(&tso->rig->guest, addr, size), tso->frame->bytes + tso->next, size);
	tso->next += size;
	tso->memory += size + (tso->gap ? (unsigned)rand() % tso->gap : 0);
	return addr;
}

/* One descriptor of a packet, with its segment in random pieces. */
static void post_segment(struct tso *tso, size_t size, unsigned flags)
{
	struct ionic_sg_elem sg[IONIC_TXQ_SG_MAX];
	unsigned pieces = (unsigned)rand() % (IONIC_TXQ_SG_MAX + 1);
	size_t first = pieces ? 1 + (size_t)rand() % size : size;

	if (flags & IONIC_TXQ_TSO_SOT && pieces &&
	    rand() % 2) /* the headers alone, or part of them */
		first = rand() % 2 ? tso->frame->payload : 1 + (size_t)rand() % 40;
	size_t left = size - first;
	struct rig_desc desc = {
	        .opcode = IONIC_TXQ_TSO,
	        .flags = flags | tso->flags,
	        .size = (uint16_t)first,
	        .vlan_tci = tso->tci,
	        .csum_start_or_hdr_len = (uint16_t)tso->frame->payload,
	        .csum_offset_or_mss = (uint16_t)tso->mss,
	        .sg = sg,
	};

	desc.addr = place_piece(tso, first);
	for (unsigned i = 0; i < pieces && left > 0; i++) {
		size_t chunk = i == pieces - 1 ? left : 1 + (size_t)rand() % left;

		sg[i] = (struct ionic_sg_elem){.addr = le64_make(place_piece(tso, chunk)),
		                               .len = le16_make((uint16_t)chunk)};
		left -= chunk;
		desc.sg_count++;
	}
	rig_tx_post(tso->rig, 0, &desc);
}

/* Posts the packet one segment a descriptor, as the driver does. Returns how many it took. */
static unsigned post_packet(struct tso *tso)
{
	unsigned count = 0;
	size_t left = tso->frame->size;

	tso->memory = tso->rig->memory;
	tso->next = 0;
	while (left > 0) {
		size_t size = tso->mss + (count == 0 ? tso->frame->payload : 0);

		if (size > left)
			size = left;
		left -= size;
		post_segment(tso, size,
		             (count == 0 ? IONIC_TXQ_TSO_SOT : 0u) |
		                     (left == 0 ? IONIC_TXQ_TSO_EOT : 0u));
		count++;
	}
	return count;
}

static struct frame_spec tso_spec;
static size_t tso_mss;

static void check_segment(struct rig_port *port, const struct net_frame *frame)
{
	static struct frame expected;

	assert_true(frame_segment(&tso_spec, tso_mss, port->frames - 1, &expected));
	assert_int_equal(frame->size, expected.size);
	assert_memory_equal(port->bytes, expected.bytes, expected.size);
}

static struct frame_spec random_tso(void)
{
	return (struct frame_spec){
	        .ipv6 = rand() % 2,
	        .tcp_options = (unsigned)(rand() % 11) * 4,
	        .payload = 1 + (size_t)rand() % 65000,
	        .tcp_flags = (uint8_t)rand(),
	        .seq = (uint32_t)rand() << 10,
	        .ip_id = (uint16_t)rand(),
	        .seed = (unsigned)rand(),
	};
}

static void test_tso_matches_naive_segments(void **state)
{
	struct rig *rig = *state;
	static struct frame template;
	uint64_t bytes = 0, packets = 0;

	rig->host.then = check_segment;
	for (unsigned round = 0; round < 200; round++) {
		struct tso tso = {.rig = rig, .frame = &template, .gap = rand() % 2 ? 100 : 0};
		uint32_t last = rig->tx[0].head;

		tso_spec = random_tso();
		tso.mss = tso_mss = 300 + (size_t)rand() % 8000;
		if (rand() % 3 == 0) {
			tso.flags = IONIC_TXQ_VLAN;
			tso.tci = (uint16_t)rand();
		}
		make_template(&tso_spec, &template);
		unsigned count = post_packet(&tso);

		tso_spec.tagged = tso.flags & IONIC_TXQ_VLAN;
		tso_spec.tci = tso.tci;
		rig->host.frames = 0;
		rig_tx_ring(rig, 0);
		assert_int_equal(rig->host.frames, count);
		rig_expect_sent(rig, 0, (last + count - 1) & 255);
		packets += count;
		bytes +=
		        tso_spec.payload + count * (template.payload + (tso_spec.tagged ? 4u : 0u));
		assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES), bytes);
		assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), packets);
		assert_int_equal(rig_port_stat(rig, "frames_tx_ok"), packets);
	}
}

static void test_tso_crosses_in_one_piece(void **state)
{
	struct rig *rig = *state;
	static struct frame template, expected;

	net_port_set_offloads(&rig->host.port, NET_OFFLOAD_ALL);
	for (unsigned ipv6 = 0; ipv6 < 2; ipv6++) {
		struct tso tso = {.rig = rig, .frame = &template, .mss = 1448, .gap = 1};
		struct frame_spec spec = {
		        .ipv6 = ipv6, .payload = 65000, .tcp_options = 12, .tcp_flags = 0x98};

		make_template(&spec, &template);
		post_packet(&tso);
		rig->host.frames = 0;
		rig_tx_ring(rig, 0);
		assert_int_equal(rig->host.frames, 1);
		/* Headers of one valid large packet. */
		frame_build(&spec, &expected);
		frame_unsum(&expected, (uint32_t)(expected.size - expected.l4));
		assert_int_equal(rig->host.last.size, expected.size);
		assert_memory_equal(rig->host.bytes, expected.bytes, expected.size);
		assert_int_equal(rig->host.last.gso, ipv6 ? NET_GSO_TCPV6 : NET_GSO_TCPV4);
		assert_int_equal(rig->host.last.gso_size, 1448);
		assert_int_equal(rig->host.last.hdr_size, template.payload);
		assert_int_equal(rig->host.last.csum_start, template.l4);
		assert_true(rig->host.last.csum_partial && rig->host.last.gso_ecn);
	}
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 2 * 45);
}

static struct frame_spec burst_specs[8];
static unsigned burst_packet, burst_segment;

static void check_burst(struct rig_port *port, const struct net_frame *frame)
{
	static struct frame expected;

	if (!frame_segment(&burst_specs[burst_packet], tso_mss, burst_segment, &expected)) {
		burst_segment = 0;
		assert_true(frame_segment(&burst_specs[++burst_packet], tso_mss, 0, &expected));
	}
	burst_segment++;
	assert_int_equal(frame->size, expected.size);
	assert_memory_equal(port->bytes, expected.bytes, expected.size);
}

/* Packets that are sent at once must not get into each other's pieces. */
static void test_tso_burst(void **state)
{
	struct rig *rig = *state;
	static struct frame template;

	rig->host.then = check_burst;
	tso_mss = 2000;
	for (unsigned round = 0; round < 50; round++) {
		uint64_t memory = rig->memory;

		for (unsigned i = 0; i < 8; i++) {
			struct tso tso = {.rig = rig, .frame = &template, .mss = 2000, .gap = 20};

			burst_specs[i] = random_tso();
			burst_specs[i].payload = 1 + (size_t)rand() % 4000;
			make_template(&burst_specs[i], &template);
			rig->memory = memory + i * (RIG_MEMORY / 8);
			post_packet(&tso);
		}
		rig->memory = memory;
		burst_packet = burst_segment = 0;
		rig_tx_ring(rig, 0);
		assert_int_equal(burst_packet, 7);
	}
}

/* More pieces than a frame may have: copied, and right all the same. */
static void test_tso_of_many_pieces(void **state)
{
	struct rig *rig = *state;
	static struct frame template;
	uint64_t before = rig_counter("ionic_tx_linearized");
	unsigned rounds = 0;

	rig->host.then = check_segment;
	while (rig_counter("ionic_tx_linearized") < before + 5) {
		struct tso tso = {.rig = rig, .frame = &template, .mss = 400, .gap = 5};

		assert_true(rounds++ < 100);
		tso_spec = random_tso();
		tso_spec.payload = 60000;
		tso_mss = tso.mss;
		make_template(&tso_spec, &template);
		post_packet(&tso);
		rig->host.frames = 0;
		rig_tx_ring(rig, 0);
		assert_int_equal(rig->host.frames, 150);
	}
}

static void test_tso_waits_for_its_end(void **state)
{
	struct rig *rig = *state;
	static struct frame template;
	struct tso tso = {.rig = rig, .frame = &template, .mss = 1000};

	rig->host.then = check_segment;
	tso_spec = (struct frame_spec){.payload = 10000};
	tso_mss = 1000;
	make_template(&tso_spec, &template);
	assert_int_equal(post_packet(&tso), 10);
	for (uint32_t head = 1; head < 10; head++) {
		fake_doorbell(&rig->guest, rig->tx[0].hw_type, rig->tx[0].hw_index, head);
		fake_run(&rig->guest); /* it rests: no turn of the loop without end */
		rig_expect_none_sent(rig, 0);
		assert_int_equal(rig->host.frames, 0);
	}
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.frames, 10);
	rig_expect_sent(rig, 0, 9);
}

static void test_tso_of_one_segment(void **state)
{
	struct rig *rig = *state;
	static struct frame template;
	struct tso tso = {.rig = rig, .frame = &template, .mss = 1448};

	net_port_set_offloads(&rig->host.port, NET_OFFLOAD_ALL);
	tso_spec = (struct frame_spec){.payload = 1000, .tcp_flags = 0x18};
	make_template(&tso_spec, &template);
	post_packet(&tso);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.last.gso, NET_GSO_NONE);
	assert_true(rig->host.last.csum_partial);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 1);
}

/* ---- memory that is reached by messages ---- */

static void test_memory_by_messages(void **state)
{
	struct rig *rig = *state;
	static struct frame template;

	rig->guest.messages_only = true;
	rig->host.then = check_segment;
	for (unsigned round = 0; round < 20; round++) {
		struct tso tso = {.rig = rig, .frame = &template};

		tso_spec = random_tso();
		tso.mss = tso_mss = 1000;
		make_template(&tso_spec, &template);
		unsigned count = post_packet(&tso);

		rig->host.frames = 0;
		rig_tx_ring(rig, 0);
		assert_int_equal(rig->host.frames, count);
	}
}

/* A reset that arrives while a message is answered: the Nth access to the rings. */
static void reset_at(struct fake_guest *guest, uint64_t addr, size_t size, enum guest_access access)
{
	const struct rig *rig = (const struct rig *)guest;

	(void)size;
	(void)access;
	if (addr >= rig->memory || --guest->hook_arg > 0)
		return;
	fake_reset(guest, VFIO_RESET_DEVICE);
	guest->quiet = true;
	guest->on_access = NULL;
}

static void test_reset_while_reading(void **state)
{
	(void)state;
	for (unsigned nth = 1; nth < 60; nth++) {
		struct rig *rig = calloc(1, sizeof(*rig));
		static struct frame template;
		struct tso tso = {.rig = rig, .frame = &template, .mss = 1000};

		rig_create(rig, RIG_FEATURES);
		rig->guest.messages_only = true;
		tso_spec = (struct frame_spec){.payload = 15000};
		make_template(&tso_spec, &template);
		for (unsigned i = 0; i < 3; i++)
			post_packet(&tso);
		rig->guest.on_access = reset_at;
		rig->guest.hook_arg = nth;
		rig_tx_ring(rig, 0);
		assert_int_equal(ionic_queue_posted(&rig->guest.dev->lif.txq[0]), 0);
		assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_DESC_FETCH_ERROR), 0);
		rig->guest.on_access = NULL;
		rig_destroy(rig);
		free(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        rig_test(test_tso_matches_naive_segments),
	        rig_test(test_tso_crosses_in_one_piece),
	        rig_test(test_tso_burst),
	        rig_test(test_tso_of_many_pieces),
	        rig_test(test_tso_waits_for_its_end),
	        rig_test(test_tso_of_one_segment),
	        rig_test(test_memory_by_messages),
	        cmocka_unit_test(test_reset_while_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
