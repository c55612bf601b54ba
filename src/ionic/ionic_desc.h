/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Descriptors and completions of the Ethernet transmit and receive queues, as they stand in guest
 * memory (spec ionic-ethernet 7, 8). Everything is little-endian; ionic_if.h has the rest of the
 * interface.
 */
#ifndef ERNIC_IONIC_IONIC_DESC_H
#define ERNIC_IONIC_IONIC_DESC_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* One buffer of a scatter-gather list, of either direction. */
struct ionic_sg_elem {
	le64 addr;
	le16 len; /* bytes */
	uint8_t reserved[6];
};
static_assert(sizeof(struct ionic_sg_elem) == 16, "spec 7.2, 8.1");

/* ---- transmit ---- */

struct ionic_txq_desc {
	le64 cmd; /* flags, opcode, element count and address; see the macros below */
	le16 len; /* bytes in the first buffer */
	le16 vlan_tci;
	le16 csum_start_or_hdr_len; /* CSUM_PARTIAL: csum_start; TSO: hdr_len */
	le16 csum_offset_or_mss;    /* CSUM_PARTIAL: csum_offset; TSO: mss */
};
static_assert(sizeof(struct ionic_txq_desc) == 16, "spec 7.2");
static_assert(offsetof(struct ionic_txq_desc, csum_offset_or_mss) == 14, "spec 7.2");

/* Fields of cmd. */
#define IONIC_TXQ_FLAGS(cmd)    ((unsigned)((cmd)&0xf))
#define IONIC_TXQ_OPCODE(cmd)   ((unsigned)((cmd) >> 4 & 0xf))
#define IONIC_TXQ_SG_COUNT(cmd) ((unsigned)((cmd) >> 8 & 0xf))
#define IONIC_TXQ_ADDR(cmd)     ((uint64_t)(cmd) >> 12)

#define IONIC_TXQ_CMD(opcode, flags, sg_count, addr)                                               \
	((uint64_t)(addr) << 12 | (uint64_t)(sg_count) << 8 | (uint64_t)(opcode) << 4 |            \
	 (uint64_t)(flags))

enum ionic_txq_opcode {
	IONIC_TXQ_CSUM_NONE = 0,
	IONIC_TXQ_CSUM_PARTIAL = 1,
	IONIC_TXQ_CSUM_HW = 2, /* no driver sends it */
	IONIC_TXQ_TSO = 3,
};

enum ionic_txq_flag {
	IONIC_TXQ_VLAN = 0x1,
	IONIC_TXQ_ENCAP = 0x2,
	IONIC_TXQ_TSO_SOT = 0x4, /* first descriptor of the packet */
	IONIC_TXQ_TSO_EOT = 0x8, /* last descriptor of the packet */
};

/* The version 1 list: 16 elements of room, 15 usable. List i belongs to descriptor i. */
#define IONIC_TXQ_SG_MAX    15
#define IONIC_TXQ_SG_STRIDE 256

struct ionic_txq_comp {
	uint8_t status; /* enum ionic_status */
	uint8_t reserved;
	le16 comp_index; /* slot of the last descriptor covered */
	uint8_t reserved2[11];
	uint8_t color;
};
static_assert(sizeof(struct ionic_txq_comp) == 16, "spec 7.7");
static_assert(offsetof(struct ionic_txq_comp, color) == 15, "spec 7.7");

/* ---- receive ---- */

struct ionic_rxq_desc {
	uint8_t opcode; /* enum ionic_rxq_opcode */
	uint8_t reserved[5];
	le16 len; /* of the first buffer, bytes */
	le64 addr;
};
static_assert(sizeof(struct ionic_rxq_desc) == 16, "spec 8.1");
static_assert(offsetof(struct ionic_rxq_desc, addr) == 8, "spec 8.1");

enum ionic_rxq_opcode {
	IONIC_RXQ_SIMPLE = 0, /* one buffer; the list of the slot may hold stale data */
	IONIC_RXQ_SG = 1,     /* the list follows, up to its first all-zero element */
};

#define IONIC_RXQ_SG_MAX    8
#define IONIC_RXQ_SG_STRIDE 128

struct ionic_rxq_comp {
	uint8_t status;
	uint8_t num_sg_elems; /* used, not counting the first buffer */
	le16 comp_index;
	le32 rss_hash;
	uint8_t csum[2]; /* of everything behind the Ethernet header, in network order (spec 8.4) */
	le16 vlan_tci;
	le16 len; /* bytes written to the buffers */
	uint8_t csum_flags;
	uint8_t pkt_type_color;
};
static_assert(sizeof(struct ionic_rxq_comp) == 16, "spec 8.4");
static_assert(offsetof(struct ionic_rxq_comp, csum) == 8, "spec 8.4");
static_assert(offsetof(struct ionic_rxq_comp, len) == 12, "spec 8.4");

enum ionic_rxq_csum_flag {
	IONIC_RXQ_CSUM_TCP_OK = 0x01,
	IONIC_RXQ_CSUM_TCP_BAD = 0x02,
	IONIC_RXQ_CSUM_UDP_OK = 0x04,
	IONIC_RXQ_CSUM_UDP_BAD = 0x08,
	IONIC_RXQ_CSUM_IP_OK = 0x10,
	IONIC_RXQ_CSUM_IP_BAD = 0x20,
	IONIC_RXQ_CSUM_VLAN = 0x40, /* vlan_tci is valid */
	IONIC_RXQ_CSUM_CALC = 0x80, /* csum is valid */
};

enum ionic_rxq_pkt_type {
	IONIC_PKT_NON_IP = 0x00,
	IONIC_PKT_IPV4 = 0x01,
	IONIC_PKT_IPV4_TCP = 0x03,
	IONIC_PKT_IPV4_UDP = 0x05,
	IONIC_PKT_IPV6 = 0x08,
	IONIC_PKT_IPV6_TCP = 0x18,
	IONIC_PKT_IPV6_UDP = 0x28,
};

/* Neither direction keeps state between runs beyond struct ionic_queue: a packet is taken off the
 * ring only when all of its descriptors are there. */

#endif
