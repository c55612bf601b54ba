/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A fake guest with its Ethernet queues up; see eth_rig.h. */
#include "eth_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/iov.h"

static int port_deliver(struct net_port *net_port, const struct net_frame *frame)
{
	struct rig_port *port = (struct rig_port *)net_port;

	port->frames++;
	port->last = *frame;
	assert_int_equal(iov_to_buf(frame->iov, frame->iov_count, 0, port->bytes, frame->size),
	                 frame->size);
	if (port->then)
		port->then(port, frame);
	return port->result;
}

static void port_peer_ready(struct net_port *net_port)
{
	((struct rig_port *)net_port)->ready++;
}

static const struct net_port_ops port_ops = {.deliver = port_deliver,
                                             .peer_ready = port_peer_ready};

static void set_up_lif(struct rig *rig, uint64_t features)
{
	struct fake_guest *guest = &rig->guest;
	union ionic_cmd attr = {.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                     .attr = IONIC_LIF_ATTR_FEATURES,
	                                     .features = le64_make(features)}};
	union ionic_cmd mode = {
	        .rx_mode_set = {.opcode = IONIC_CMD_RX_MODE_SET, .rx_mode = le16_make(7)}};
	union ionic_cmd filter = {.rx_filter_add = {.opcode = IONIC_CMD_RX_FILTER_ADD,
	                                            .match = le16_make(IONIC_RX_FILTER_MAC),
	                                            .mac = {2, 0, 0, 0, 0, 2}}};
	union ionic_cmd vlan = {.rx_filter_add = {.opcode = IONIC_CMD_RX_FILTER_ADD,
	                                          .match = le16_make(IONIC_RX_FILTER_VLAN),
	                                          .vlan = le16_make(5)}};

	assert_int_equal(fake_admin(guest, &attr, NULL), 0);
	assert_int_equal(fake_admin(guest, &mode, NULL), 0);
	assert_int_equal(fake_admin(guest, &filter, NULL), 0);
	assert_int_equal(fake_admin(guest, &vlan, NULL), 0);
}

static void set_up_queues(struct rig *rig)
{
	struct fake_guest *guest = &rig->guest;

	for (unsigned i = 0; i < 4; i++) {
		fake_ring_init(guest, &rig->rx[i], IONIC_QTYPE_RXQ, i, RIG_RING);
		fake_q_init(guest, &rig->rx[i], 1 + i, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_SG);
		fake_ring_init(guest, &rig->tx[i], IONIC_QTYPE_TXQ, i, RIG_RING);
		fake_q_init(guest, &rig->tx[i], 1 + i, IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_SG);
		assert_int_equal(fake_q_control(guest, &rig->rx[i], IONIC_Q_ENABLE), 0);
		assert_int_equal(fake_q_control(guest, &rig->tx[i], IONIC_Q_ENABLE), 0);
	}
}

void rig_create(struct rig *rig, uint64_t features)
{
	fake_guest_create(&rig->guest, NULL);
	fake_probe(&rig->guest);
	set_up_lif(rig, features);
	set_up_queues(rig);
	rig->memory = fake_alloc(&rig->guest, RIG_MEMORY);
	rig->host = (struct rig_port){.port = {.name = "host", .ops = &port_ops}};
	assert_int_equal(net_wire_attach(rig->guest.wire, &rig->host.port), 0);
	memset(&rig->guest.dev->stats, 0, sizeof(rig->guest.dev->stats));
}

static int set_up(void **state, uint64_t features)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	rig_create(rig, features);
	*state = rig;
	return 0;
}

int rig_set_up(void **state)
{
	return set_up(state, RIG_FEATURES);
}

int rig_set_up_plain(void **state)
{
	return set_up(state, 0);
}

int rig_set_up_no_hash(void **state)
{
	return set_up(state, RIG_FEATURES & ~IONIC_FEATURE_RX_HASH);
}

int rig_tear_down(void **state)
{
	rig_destroy(*state);
	free(*state);
	return 0;
}

void rig_destroy(struct rig *rig)
{
	net_wire_detach(&rig->host.port);
	fake_guest_destroy(&rig->guest);
}

/* ---- transmit ---- */

void rig_tx_post(struct rig *rig, unsigned index, const struct rig_desc *desc)
{
	struct fake_ring *ring = &rig->tx[index];
	struct ionic_txq_desc raw = {
	        .cmd = le64_make(
	                IONIC_TXQ_CMD(desc->opcode, desc->flags, desc->sg_count, desc->addr)),
	        .len = le16_make(desc->size),
	        .vlan_tci = le16_make(desc->vlan_tci),
	        .csum_start_or_hdr_len = le16_make(desc->csum_start_or_hdr_len),
	        .csum_offset_or_mss = le16_make(desc->csum_offset_or_mss),
	};
	uint64_t sg = ring->sg + (uint64_t)ring->head * IONIC_TXQ_SG_STRIDE;

	memcpy(fake_ptr(&rig->guest, ring->desc + ring->head * sizeof(raw), sizeof(raw)), &raw,
	       sizeof(raw));
	memset(fake_ptr(&rig->guest, sg, IONIC_TXQ_SG_STRIDE), 0xdd, IONIC_TXQ_SG_STRIDE);
	if (desc->sg_count > 0)
		memcpy(fake_ptr(&rig->guest, sg, IONIC_TXQ_SG_STRIDE), desc->sg,
		       desc->sg_count * sizeof(*desc->sg));
	ring->head = (ring->head + 1) & (ring->entries - 1);
}

void rig_tx_ring(struct rig *rig, unsigned index)
{
	struct fake_ring *ring = &rig->tx[index];

	fake_doorbell(&rig->guest, ring->hw_type, ring->hw_index, ring->head);
	fake_run(&rig->guest);
}

/* ---- receive ---- */

void rig_rx_post(struct rig *rig, unsigned index, uint64_t addr, uint16_t size,
                 const struct ionic_sg_elem *sg, unsigned count)
{
	struct fake_ring *ring = &rig->rx[index];
	struct ionic_rxq_desc raw = {
	        .opcode = count > 0 ? IONIC_RXQ_SG : IONIC_RXQ_SIMPLE,
	        .len = le16_make(size),
	        .addr = le64_make(addr),
	};
	uint64_t list = ring->sg + (uint64_t)ring->head * IONIC_RXQ_SG_STRIDE;
	uint8_t *at = fake_ptr(&rig->guest, list, IONIC_RXQ_SG_STRIDE);

	memcpy(fake_ptr(&rig->guest, ring->desc + ring->head * sizeof(raw), sizeof(raw)), &raw,
	       sizeof(raw));
	if (count == 0) {
		memset(at, 0xdd, IONIC_RXQ_SG_STRIDE); /* stale: not to be looked at */
	} else {
		memset(at, 0, IONIC_RXQ_SG_STRIDE);
		memcpy(at, sg, count * sizeof(*sg));
	}
	ring->head = (ring->head + 1) & (ring->entries - 1);
}

void rig_rx_ring(struct rig *rig, unsigned index)
{
	struct fake_ring *ring = &rig->rx[index];

	fake_doorbell(&rig->guest, ring->hw_type, ring->hw_index, ring->head);
}

int rig_host_send(struct rig *rig, const uint8_t *bytes, size_t size, struct net_frame frame)
{
	static uint8_t store[FRAME_BUFFER + NET_MAX_IOV];
	struct iovec iov[NET_MAX_IOV];

	frame.iov = iov;
	frame.iov_count = split_random(bytes, size, iov, rand() % 2 ? 1 : 20, store);
	frame.size = size;
	return net_wire_send(&rig->host.port, &frame);
}

void rig_rss(struct rig *rig, unsigned types, const uint8_t key[40], const uint8_t table[128])
{
	uint64_t addr = fake_alloc(&rig->guest, 128);
	union ionic_cmd cmd = {.lif_attr = {.opcode = IONIC_CMD_LIF_SETATTR,
	                                    .attr = IONIC_LIF_ATTR_RSS,
	                                    .rss = {.types = le16_make((uint16_t)types),
	                                            .addr = le64_make(addr)}}};

	memcpy(cmd.lif_attr.rss.key, key, 40);
	memcpy(fake_ptr(&rig->guest, addr, 128), table, 128);
	assert_int_equal(fake_admin(&rig->guest, &cmd, NULL), 0);
}

/* ---- counters ---- */

uint64_t rig_lif_stat(const struct rig *rig, enum ionic_lif_stat stat)
{
	return rig->guest.dev->stats.lif[stat];
}

struct lookup {
	const char *name;
	uint64_t value;
	bool found;
};

static void look(const char *name, uint64_t value, void *arg)
{
	struct lookup *lookup = arg;

	if (strcmp(name, lookup->name) == 0) {
		lookup->value = value;
		lookup->found = true;
	}
}

uint64_t rig_port_stat(struct rig *rig, const char *name)
{
	struct lookup lookup = {.name = name};

	ionic_port_stats_visit(rig->guest.dev, look, &lookup);
	assert_true(lookup.found);
	return lookup.value;
}

/* ---- what tests look at ---- */

uint64_t rig_counter(const char *name)
{
	const struct counter *counter = counter_find(name);

	assert_non_null(counter);
	return counter_get(counter);
}

uint64_t rig_put(struct rig *rig, size_t offset, const void *bytes, size_t size)
{
	assert_true(offset + size <= RIG_MEMORY);
	memcpy(fake_ptr(&rig->guest, rig->memory + offset, size), bytes, size);
	return rig->memory + offset;
}

void rig_expect_sent(struct rig *rig, unsigned index, uint32_t last)
{
	struct fake_ring *ring = &rig->tx[index];
	const uint8_t *comp;
	uint32_t covered = ~0u;

	while ((comp = fake_ring_completion(&rig->guest, ring)))
		covered = (uint32_t)(comp[2] | comp[3] << 8);
	assert_int_equal(covered, last);
}

void rig_expect_none_sent(struct rig *rig, unsigned index)
{
	assert_null(fake_ring_completion(&rig->guest, &rig->tx[index]));
}

void rig_rx_post_simple(struct rig *rig, unsigned index, unsigned count, uint16_t size)
{
	for (unsigned i = 0; i < count; i++)
		rig_rx_post(rig, index, rig->memory + i * RIG_RX_STRIDE, size, NULL, 0);
	rig_rx_ring(rig, index);
}

uint8_t *rig_rx_buffer(struct rig *rig, unsigned n)
{
	return fake_ptr(&rig->guest, rig->memory + n * RIG_RX_STRIDE, RIG_RX_STRIDE);
}

struct ionic_rxq_comp rig_expect_comp(struct rig *rig, unsigned index)
{
	const uint8_t *raw = fake_ring_completion(&rig->guest, &rig->rx[index]);
	struct ionic_rxq_comp comp;

	assert_non_null(raw);
	memcpy(&comp, raw, sizeof(comp));
	comp.pkt_type_color &= 0x7f;
	return comp;
}

void rig_expect_no_comp(struct rig *rig, unsigned index)
{
	assert_null(fake_ring_completion(&rig->guest, &rig->rx[index]));
}

void rig_expect_csum(const struct ionic_rxq_comp *comp, const uint8_t *bytes, size_t size)
{
	uint16_t sum = naive_sum(bytes + 14, size - 14);

	assert_int_equal(comp->csum_flags & IONIC_RXQ_CSUM_CALC, IONIC_RXQ_CSUM_CALC);
	assert_int_equal((comp->csum[0] << 8 | comp->csum[1]) % 0xffff, sum % 0xffff);
}
