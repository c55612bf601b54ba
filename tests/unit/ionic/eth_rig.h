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

uint64_t rig_lif_stat(const struct rig *rig, enum ionic_lif_stat stat);
uint64_t rig_port_stat(struct rig *rig, const char *name);

#endif
