/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LIF and port counters: which there are, where they stand in the guest's blocks, and what moves
 * them. The lists are those of the interface (spec ionic-ethernet 10.4, 10.5).
 */
#ifndef ERNIC_IONIC_STATS_H
#define ERNIC_IONIC_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IONIC_LIF_STATS_COUNT  128 /* qwords of the block; not all have names */
#define IONIC_PORT_STATS_COUNT 89

/* The LIF counters that the data path moves, by qword index. stats.c has all names. */
enum ionic_lif_stat {
	IONIC_LIF_RX_UCAST_BYTES = 0, /* then packets; mcast, bcast follow in steps of 2 */
	IONIC_LIF_RX_UCAST_DROP_BYTES = 8,
	IONIC_LIF_RX_DMA_ERROR = 14,
	IONIC_LIF_TX_UCAST_BYTES = 16,
	IONIC_LIF_TX_UCAST_DROP_BYTES = 24,
	IONIC_LIF_TX_DMA_ERROR = 30,
	IONIC_LIF_RX_QUEUE_DISABLED = 32,
	IONIC_LIF_RX_QUEUE_EMPTY = 33,
	IONIC_LIF_RX_QUEUE_ERROR = 34,
	IONIC_LIF_RX_DESC_FETCH_ERROR = 35,
	IONIC_LIF_RX_DESC_DATA_ERROR = 36,
	IONIC_LIF_TX_QUEUE_DISABLED = 40,
	IONIC_LIF_TX_QUEUE_ERROR = 41,
	IONIC_LIF_TX_DESC_FETCH_ERROR = 42,
	IONIC_LIF_TX_DESC_DATA_ERROR = 43,
	IONIC_LIF_TX_QUEUE_EMPTY = 44,
};

struct ionic_stats {
	uint64_t lif[IONIC_LIF_STATS_COUNT];
	uint64_t port[IONIC_PORT_STATS_COUNT];
};

struct ionic_dev;

/* What a counted frame looked like on the wire: its length without padding and FCS, its class by
 * destination address, its outer tag. */
struct ionic_frame_facts {
	uint8_t dst[6];
	uint32_t size;
	bool tagged; /* 0x8100, or a 0x88a8 outer tag */
	uint8_t pcp; /* priority of the tag, 0 when untagged */
};

/* A frame left, or came in and was delivered: LIF and port counters. */
void ionic_stats_tx(struct ionic_stats *stats, const struct ionic_frame_facts *facts);
void ionic_stats_rx(struct ionic_stats *stats, const struct ionic_frame_facts *facts);

/* As COUNT frames of one size and class, for segments: the last one has LAST_SIZE. */
void ionic_stats_tx_segments(struct ionic_stats *stats, const struct ionic_frame_facts *facts,
                             uint32_t count, uint32_t last_size);

/* The host refused a transmit: tx_*_drop_*; the port did not send it. */
void ionic_stats_tx_drop(struct ionic_stats *stats, const struct ionic_frame_facts *facts);

/* The port took the frame and the LIF dropped it because of REASON (a lif stat, or -1 for none):
 * port counters of a received frame, frames_rx_dropped, rx_*_drop_*, and REASON. */
void ionic_stats_rx_drop(struct ionic_stats *stats, const struct ionic_frame_facts *facts,
                         int reason);

/* The port took the frame, and the LIF's filters did not want it: port counters only. */
void ionic_stats_rx_filtered(struct ionic_stats *stats, const struct ionic_frame_facts *facts);

/* The frame exceeds the port's maximum: too_long, oversized, bad_all; the LIF never saw it. */
void ionic_stats_rx_oversize(struct ionic_stats *stats);

static inline void ionic_stats_inc(struct ionic_stats *stats, enum ionic_lif_stat stat)
{
	stats->lif[stat]++;
}

/* Writes the LIF and port blocks to guest memory where the driver has given them. Work phase. */
void ionic_stats_publish(struct ionic_dev *dev);

#endif
