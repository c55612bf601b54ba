/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit queues: descriptors as the driver writes them, and as it never would, against what
 * arrives at the other end of the wire, completions and counters.
 */
#include "eth_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/iov.h"

static int set_up(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig_create(rig, RIG_FEATURES);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	rig_destroy(*state);
	free(*state);
	return 0;
}

static uint64_t count_of(const char *name)
{
	const struct counter *counter = counter_find(name);

	assert_non_null(counter);
	return counter_get(counter);
}

/* Copies bytes to guest memory OFFSET into the rig's buffers. Returns their guest address. */
static uint64_t put(struct rig *rig, size_t offset, const void *bytes, size_t size)
{
	assert_true(offset + size <= RIG_MEMORY);
	memcpy(fake_ptr(&rig->guest, rig->memory + offset, size), bytes, size);
	return rig->memory + offset;
}

/* The completions up to now must cover everything up to slot LAST, in order. */
static void expect_completed(struct rig *rig, unsigned index, uint32_t last)
{
	struct fake_ring *ring = &rig->tx[index];
	const uint8_t *comp;
	uint32_t covered = ~0u;

	while ((comp = fake_ring_completion(&rig->guest, ring)))
		covered = (uint32_t)(comp[2] | comp[3] << 8);
	assert_int_equal(covered, last);
}

static void expect_no_completion(struct rig *rig, unsigned index)
{
	assert_null(fake_ring_completion(&rig->guest, &rig->tx[index]));
}

static struct rig_desc simple_desc(struct rig *rig, const struct frame *frame)
{
	return (struct rig_desc){.opcode = IONIC_TXQ_CSUM_NONE,
	                         .addr = put(rig, 0, frame->bytes, frame->size),
	                         .size = (uint16_t)frame->size};
}

static void build_small(struct frame *frame)
{
	struct frame_spec spec = {.udp = true, .payload = 100, .seed = 9};

	frame_build(&spec, frame);
}

/* ---- plain frames ---- */

static void test_plain_frame(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.frames, 1);
	assert_int_equal(rig->host.last.size, frame.size);
	assert_memory_equal(rig->host.bytes, frame.bytes, frame.size);
	expect_completed(rig, 0, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES), frame.size);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 1);
	assert_int_equal(rig_port_stat(rig, "frames_tx_ok"), 1);
	assert_int_equal(rig_port_stat(rig, "octets_tx_ok"), frame.size + 4);
	assert_int_equal(rig->guest.dev->intr[1].credits, 1);
}

static void test_scattered_frame(void **state)
{
	struct rig *rig = *state;
	struct frame_spec spec = {.payload = 5000};
	struct ionic_sg_elem sg[IONIC_TXQ_SG_MAX];
	static struct frame frame;

	frame_build(&spec, &frame);
	size_t at = 77;

	for (unsigned i = 0; i < IONIC_TXQ_SG_MAX; i++) {
		size_t size = i == IONIC_TXQ_SG_MAX - 1 ? frame.size - at : 200 + i;

		sg[i] = (struct ionic_sg_elem){
		        .addr = le64_make(put(rig, 8192 * (i + 1) + i, frame.bytes + at, size)),
		        .len = le16_make((uint16_t)size)};
		at += size;
	}
	rig_tx_post(rig, 1,
	            &(struct rig_desc){.addr = put(rig, 3, frame.bytes, 77),
	                               .size = 77,
	                               .sg = sg,
	                               .sg_count = IONIC_TXQ_SG_MAX});
	rig_tx_ring(rig, 1);
	assert_int_equal(rig->host.last.size, frame.size);
	assert_memory_equal(rig->host.bytes, frame.bytes, frame.size);
	assert_int_equal(rig->host.last.iov_count, 16);
	expect_completed(rig, 1, 0);
}

static void test_neighbours_become_one_piece(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	uint64_t addr = put(rig, 0, frame.bytes, frame.size);
	struct ionic_sg_elem sg[2] = {
	        {.addr = le64_make(addr + 50), .len = le16_make(10)},
	        {.addr = le64_make(addr + 60), .len = le16_make((uint16_t)(frame.size - 60))}};

	rig_tx_post(rig, 0, &(struct rig_desc){.addr = addr, .size = 50, .sg = sg, .sg_count = 2});
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.last.iov_count, 1);
	assert_memory_equal(rig->host.bytes, frame.bytes, frame.size);
}

static void test_checksum_and_tag(void **state)
{
	struct rig *rig = *state;
	static struct frame frame, expected;

	for (unsigned ports = 0; ports < 2; ports++) {
		struct frame_spec spec = {.payload = 1001, .seed = ports};

		net_port_set_offloads(&rig->host.port, ports ? NET_OFFLOAD_ALL : 0);
		frame_build(&spec, &frame);
		frame_unsum(&frame, (uint32_t)(frame.size - frame.l4));
		struct rig_desc desc = simple_desc(rig, &frame);

		desc.opcode = IONIC_TXQ_CSUM_PARTIAL;
		desc.flags = IONIC_TXQ_VLAN;
		desc.vlan_tci = 0x6005;
		desc.csum_start_or_hdr_len = (uint16_t)frame.l4;
		desc.csum_offset_or_mss = 16;
		rig_tx_post(rig, 0, &desc);
		rig_tx_ring(rig, 0);
		if (ports) { /* left to the port */
			assert_true(rig->host.last.csum_partial && rig->host.last.vlan);
			assert_int_equal(rig->host.last.csum_start, frame.l4);
			assert_int_equal(rig->host.last.vlan_tci, 0x6005);
			continue;
		}
		spec.tagged = true;
		spec.tci = 0x6005;
		frame_build(&spec, &expected);
		assert_int_equal(rig->host.last.size, expected.size);
		assert_memory_equal(rig->host.bytes, expected.bytes, expected.size);
	}
	assert_int_equal(rig_port_stat(rig, "frames_tx_vlan"), 2);
	assert_int_equal(rig_port_stat(rig, "frames_tx_pri_3"), 2);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES), 2 * expected.size);
}

static void test_long_burst_wraps_and_completes(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	uint32_t sent = 0;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	for (unsigned round = 0; round < 7; round++) {
		for (unsigned i = 0; i < 255; i++, sent++)
			rig_tx_post(rig, 0, &desc);
		rig_tx_ring(rig, 0);
		assert_int_equal(rig->host.frames, sent);
		expect_completed(rig, 0, (sent - 1) & 255);
	}
}

/* Interrupts are worth more than completions: a burst is covered by few. */
static void test_completions_are_few(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	for (unsigned i = 0; i < 200; i++)
		rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->guest.dev->lif.txq[0].completions, 1);
	assert_int_equal(rig->guest.msix[1], 0); /* still masked */
	expect_completed(rig, 0, 199);
}

static void test_host_refuses(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	rig->host.result = -ENOBUFS;
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	expect_completed(rig, 0, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_DROP_BYTES + 1), 1);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 0);
	assert_int_equal(rig_port_stat(rig, "frames_tx_ok"), 0);
}

static void test_no_other_port_counts_as_sent(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	net_wire_detach(&rig->host.port);
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	expect_completed(rig, 0, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_BYTES + 1), 1);
}

static void test_link_down(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	ionic_link_set(rig->guest.dev, false);
	fake_run(&rig->guest);
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	expect_completed(rig, 0, 0);
	assert_int_equal(rig->host.frames, 0);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_UCAST_DROP_BYTES + 1), 1);
}

static void test_disabled_queue_waits(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;

	build_small(&frame);
	struct rig_desc desc = simple_desc(rig, &frame);

	assert_int_equal(fake_q_control(&rig->guest, &rig->tx[0], IONIC_Q_DISABLE), 0);
	rig_tx_post(rig, 0, &desc);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.frames, 0);
	assert_int_equal(fake_q_control(&rig->guest, &rig->tx[0], IONIC_Q_ENABLE), 0);
	fake_run(&rig->guest);
	assert_int_equal(rig->host.frames, 1);
	expect_completed(rig, 0, 0);
}

/* ---- TSO ---- */

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
		expect_completed(rig, 0, (last + count - 1) & 255);
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
	uint64_t before = count_of("ionic_tx_linearized");
	unsigned rounds = 0;

	rig->host.then = check_segment;
	while (count_of("ionic_tx_linearized") < before + 5) {
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
		expect_no_completion(rig, 0);
		assert_int_equal(rig->host.frames, 0);
	}
	rig_tx_ring(rig, 0);
	assert_int_equal(rig->host.frames, 10);
	expect_completed(rig, 0, 9);
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

/* ---- nonsense ---- */

/* Posts DESC, and behind it a good frame, which must come through. */
static void expect_refused(struct rig *rig, const struct rig_desc *desc, enum ionic_lif_stat stat)
{
	static struct frame good;
	uint64_t before = rig_lif_stat(rig, stat);
	uint32_t last = (rig->tx[0].head + 1) & 255;

	build_small(&good);
	struct rig_desc behind = {.addr = put(rig, RIG_MEMORY - 4096, good.bytes, good.size),
	                          .size = (uint16_t)good.size};

	rig->host.frames = 0;
	rig_tx_post(rig, 0, desc);
	rig_tx_post(rig, 0, &behind);
	rig_tx_ring(rig, 0);
	assert_int_equal(rig_lif_stat(rig, stat), before + 1);
	assert_int_equal(rig->host.frames, 1);
	assert_memory_equal(rig->host.bytes, good.bytes, good.size);
	expect_completed(rig, 0, last);
}

static void test_bad_descriptors(void **state)
{
	struct rig *rig = *state;
	static struct frame frame;
	struct frame_spec spec = {.payload = 1000};

	frame_build(&spec, &frame);
	uint64_t addr = put(rig, 0, frame.bytes, frame.size);
	uint16_t size = (uint16_t)frame.size;
	unsigned tso = IONIC_TXQ_TSO, whole = IONIC_TXQ_TSO_SOT | IONIC_TXQ_TSO_EOT;
	const struct rig_desc bad[] = {
	        {.opcode = 2, .addr = addr, .size = size},
	        {.opcode = 7, .addr = addr, .size = size},
	        {.opcode = 0, .addr = addr, .size = 13},
	        {.opcode = 0, .addr = addr, .size = 0},
	        {.opcode = 0, .addr = addr, .size = 9217},
	        {.opcode = 0, .addr = addr, .size = 9213, .flags = IONIC_TXQ_VLAN},
	        {.opcode = 1,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 34,
	         .csum_offset_or_mss = 65535},
	        {.opcode = 1,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 65535,
	         .csum_offset_or_mss = 65535},
	        {.opcode = 1, .addr = addr, .size = size, .csum_start_or_hdr_len = 2},
	        {.opcode = 1,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 800,
	         .csum_offset_or_mss = 16},
	        {.opcode = tso,
	         .flags = 0,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = IONIC_TXQ_TSO_EOT,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = IONIC_TXQ_TSO_SOT,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100}, /* another follows */
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 0},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 53,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 65535,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = size,
	         .csum_start_or_hdr_len = 0,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = 40,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 100},
	        {.opcode = tso,
	         .flags = whole,
	         .addr = addr,
	         .size = 20000,
	         .csum_start_or_hdr_len = 54,
	         .csum_offset_or_mss = 9500}, /* segments too large */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(rig, &bad[i], IONIC_LIF_TX_DESC_DATA_ERROR);
}

static void test_bad_memory(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg[2] = {{.addr = le64_make(rig->memory), .len = le16_make(100)},
	                              {.addr = le64_make(0x1000), .len = le16_make(100)}};
	const struct rig_desc bad[] = {
	        {.addr = 0x1000, .size = 100},
	        {.addr = 0xfffffffffffff, .size = 65535},
	        {.addr = FAKE_RAM_BASE + FAKE_RAM_SIZE - 99, .size = 100},
	        {.addr = rig->memory, .size = 100, .sg = sg, .sg_count = 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_refused(rig, &bad[i], IONIC_LIF_TX_DMA_ERROR);
}

static void test_too_many_bytes(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg = {.addr = le64_make(rig->memory), .len = le16_make(65535)};

	expect_refused(rig,
	               &(struct rig_desc){.opcode = IONIC_TXQ_TSO,
	                                  .flags = IONIC_TXQ_TSO_SOT | IONIC_TXQ_TSO_EOT,
	                                  .addr = rig->memory,
	                                  .size = 66,
	                                  .csum_start_or_hdr_len = 54,
	                                  .csum_offset_or_mss = 1448,
	                                  .sg = &sg,
	                                  .sg_count = 1},
	               IONIC_LIF_TX_DESC_DATA_ERROR);
}

/* A ring full of a packet that never ends: completed, or the queue would hang for ever. */
static void test_full_ring_without_end(void **state)
{
	struct rig *rig = *state;
	uint64_t before = count_of("ionic_tx_bad_sequence");

	for (unsigned i = 0; i < 255; i++)
		rig_tx_post(rig, 0,
		            &(struct rig_desc){.opcode = IONIC_TXQ_TSO,
		                               .flags = i == 0 ? IONIC_TXQ_TSO_SOT : 0,
		                               .addr = rig->memory,
		                               .size = 60});
	rig_tx_ring(rig, 0);
	expect_completed(rig, 0, 254);
	assert_int_equal(count_of("ionic_tx_bad_sequence"), before + 1);
	assert_int_equal(rig->host.frames, 0);
}

static void test_list_on_a_queue_without_lists(void **state)
{
	struct rig *rig = *state;
	struct ionic_sg_elem sg = {.addr = le64_make(rig->memory), .len = le16_make(100)};

	rig->guest.dev->lif.txq[0].has_sg = false;
	expect_refused(
	        rig, &(struct rig_desc){.addr = rig->memory, .size = 100, .sg = &sg, .sg_count = 1},
	        IONIC_LIF_TX_DESC_DATA_ERROR);
}

static void test_unreadable_ring(void **state)
{
	struct rig *rig = *state;

	rig->guest.dev->lif.txq[0].ring_base = FAKE_RAM_BASE + FAKE_RAM_SIZE - 3 * 16;
	fake_doorbell(&rig->guest, rig->tx[0].hw_type, rig->tx[0].hw_index, 10);
	fake_run(&rig->guest);
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_DESC_FETCH_ERROR), 7);
	expect_completed(rig, 0, 9);
}

static void test_no_bus_mastering(void **state)
{
	struct rig *rig = *state;

	rig->guest.bus_master = false;
	fake_doorbell(&rig->guest, rig->tx[0].hw_type, rig->tx[0].hw_index, 200);
	fake_run(&rig->guest); /* comes to an end */
	assert_int_equal(rig_lif_stat(rig, IONIC_LIF_TX_DESC_FETCH_ERROR), 200);
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

#define txq_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        txq_test(test_plain_frame),
	        txq_test(test_scattered_frame),
	        txq_test(test_neighbours_become_one_piece),
	        txq_test(test_checksum_and_tag),
	        txq_test(test_long_burst_wraps_and_completes),
	        txq_test(test_completions_are_few),
	        txq_test(test_host_refuses),
	        txq_test(test_no_other_port_counts_as_sent),
	        txq_test(test_link_down),
	        txq_test(test_disabled_queue_waits),
	        txq_test(test_tso_matches_naive_segments),
	        txq_test(test_tso_crosses_in_one_piece),
	        txq_test(test_tso_burst),
	        txq_test(test_tso_of_many_pieces),
	        txq_test(test_tso_waits_for_its_end),
	        txq_test(test_tso_of_one_segment),
	        txq_test(test_bad_descriptors),
	        txq_test(test_bad_memory),
	        txq_test(test_too_many_bytes),
	        txq_test(test_full_ring_without_end),
	        txq_test(test_list_on_a_queue_without_lists),
	        txq_test(test_unreadable_ring),
	        txq_test(test_no_bus_mastering),
	        txq_test(test_memory_by_messages),
	        cmocka_unit_test(test_reset_while_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
