/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fake guest with its Ethernet queues up, and a port on the other end of the wire: what the
 * tests of the transmit and receive queues stand on.
 */
#ifndef ERNIC_TESTS_UNIT_IONIC_ETH_RIG_H
#define ERNIC_TESTS_UNIT_IONIC_ETH_RIG_H

#include "../net/frames.h"
#include "fake_guest.h"
#include "ionic/ionic_desc.h"

#define RIG_FEATURES 0x7bf /* everything that is offered (spec 4.7) */
#define RIG_RING     8     /* exponent of the ring sizes: 256 entries */
#define RIG_SINK_LOG 400

/* The other end of the wire; keeps what it is given. */
struct rig_port {
	struct net_port port;
	unsigned frames;
	struct net_frame last;
	uint8_t bytes[FRAME_BUFFER];
	int result;
	void (*then)(struct rig_port *port, const struct net_frame *frame);
	unsigned ready; /* calls of peer_ready */
};

struct rig {
	struct fake_guest guest;
	struct rig_port host;
	struct fake_ring tx[4], rx[4];
	uint64_t memory; /* for buffers, RIG_MEMORY bytes */
};
#define RIG_MEMORY (1u << 20)

/* Probed, FEATURES accepted, broadcast and the address of frames.h received, all queues enabled. */
void rig_create(struct rig *rig, uint64_t features);
void rig_destroy(struct rig *rig);

/* A transmit descriptor into the next slot of queue INDEX; no doorbell. */
struct rig_desc {
	unsigned opcode, flags;
	uint64_t addr;
	uint16_t size, vlan_tci;
	uint16_t csum_start_or_hdr_len, csum_offset_or_mss;
	const struct ionic_sg_elem *sg;
	unsigned sg_count;
};
void rig_tx_post(struct rig *rig, unsigned index, const struct rig_desc *desc);
void rig_tx_ring(struct rig *rig, unsigned index); /* doorbell, and the loop turned */

/* A receive buffer of SIZE bytes in one piece, or with COUNT elements more; no doorbell. */
void rig_rx_post(struct rig *rig, unsigned index, uint64_t addr, uint16_t size,
                 const struct ionic_sg_elem *sg, unsigned count);
void rig_rx_ring(struct rig *rig, unsigned index);

/* Sends from the other end. */
int rig_host_send(struct rig *rig, const uint8_t *bytes, size_t size, struct net_frame frame);

/* Turns table entries and types of the hash into a command. */
void rig_rss(struct rig *rig, unsigned types, const uint8_t key[40], const uint8_t table[128]);

/* ---- for cmocka ---- */

/* *STATE is a rig; with all features, with none, or without receive hashing. */
int rig_set_up(void **state);
int rig_set_up_plain(void **state);
int rig_set_up_no_hash(void **state);
int rig_tear_down(void **state);

#define rig_test(name)       cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)
#define rig_test_plain(name) cmocka_unit_test_setup_teardown(name, rig_set_up_plain, rig_tear_down)
#define rig_test_no_hash(name)                                                                     \
	cmocka_unit_test_setup_teardown(name, rig_set_up_no_hash, rig_tear_down)

/* Copies bytes to guest memory, OFFSET into the rig's buffers. Returns their guest address. */
uint64_t rig_put(struct rig *rig, size_t offset, const void *bytes, size_t size);

/* The transmit completions up to now must cover everything up to slot LAST, in order. */
void rig_expect_sent(struct rig *rig, unsigned index, uint32_t last);
void rig_expect_none_sent(struct rig *rig, unsigned index);

/* COUNT buffers of SIZE bytes in one piece, to receive queue INDEX, with doorbell. */
void rig_rx_post_simple(struct rig *rig, unsigned index, unsigned count, uint16_t size);
#define RIG_RX_STRIDE 16384u
uint8_t *rig_rx_buffer(struct rig *rig, unsigned n); /* the Nth of such a post */

/* The next receive completion, color removed. */
struct ionic_rxq_comp rig_expect_comp(struct rig *rig, unsigned index);
void rig_expect_no_comp(struct rig *rig, unsigned index);

/* The driver's view of the checksum: bytes behind the Ethernet header, in network order. */
void rig_expect_csum(const struct ionic_rxq_comp *comp, const uint8_t *bytes, size_t size);

uint64_t rig_counter(const char *name); /* of the program */
uint64_t rig_lif_stat(const struct rig *rig, enum ionic_lif_stat stat);
uint64_t rig_port_stat(struct rig *rig, const char *name);

#endif
