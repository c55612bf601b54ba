/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RoCEv2 packets: the base transport header, its extensions, and all that is known about an opcode
 * (spec rocev2 1..4). Knows no queue pairs.
 */
#ifndef ERNIC_NET_ROCE_HEADERS_H
#define ERNIC_NET_ROCE_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define ROCE_UDP_PORT  4791 /* spec rocev2 1 */
#define ROCE_PKEY      0xffff
#define ROCE_PSN_MASK  0xffffffu
#define ROCE_MTU_MAX   4096
#define ROCE_CNP_BYTES 16 /* of zeros behind the BTH of a congestion notification (11) */

/* ---- headers on the wire (2, 3) ---- */

struct roce_bth {
	uint8_t opcode;
	uint8_t flags; /* SE, MigReq, pad count (2 bits), version (4 bits) */
	be16 pkey;
	be32 marks_qpn; /* FECN, BECN, reserved (6), destination QPN (24) */
	be32 ack_psn;   /* AckReq, reserved (7), PSN (24) */
};

struct roce_deth {
	be32 qkey;
	be32 src_qpn; /* upper 8 bits reserved */
};

struct roce_reth {
	be64 va;
	be32 rkey, length;
};

struct roce_atomiceth {
	be64 va;
	be32 rkey;
	be64 swap_add, compare;
};

struct roce_aeth {
	be32 syndrome_msn; /* 8 and 24 bits */
};

struct roce_atomicacketh {
	be64 original;
};

_Static_assert(sizeof(struct roce_bth) == 12, "spec rocev2 2");
_Static_assert(sizeof(struct roce_deth) == 8, "spec rocev2 3");
_Static_assert(sizeof(struct roce_reth) == 16, "spec rocev2 3");
_Static_assert(sizeof(struct roce_atomiceth) == 28, "spec rocev2 3");
_Static_assert(sizeof(struct roce_aeth) == 4, "spec rocev2 3");
_Static_assert(sizeof(struct roce_atomicacketh) == 8, "spec rocev2 3");

/* ---- opcodes (4) ---- */

enum roce_transport { ROCE_RC = 0x00, ROCE_UC = 0x20, ROCE_UD = 0x60, ROCE_CNP = 0x80 };
#define ROCE_TRANSPORT_MASK 0xe0

enum roce_opcode { /* to be added to a transport */
	           ROCE_SEND_FIRST = 0x00,
	           ROCE_SEND_MIDDLE = 0x01,
	           ROCE_SEND_LAST = 0x02,
	           ROCE_SEND_LAST_IMM = 0x03,
	           ROCE_SEND_ONLY = 0x04,
	           ROCE_SEND_ONLY_IMM = 0x05,
	           ROCE_WRITE_FIRST = 0x06,
	           ROCE_WRITE_MIDDLE = 0x07,
	           ROCE_WRITE_LAST = 0x08,
	           ROCE_WRITE_LAST_IMM = 0x09,
	           ROCE_WRITE_ONLY = 0x0a,
	           ROCE_WRITE_ONLY_IMM = 0x0b,
	           ROCE_READ_REQUEST = 0x0c,
	           ROCE_READ_FIRST = 0x0d,
	           ROCE_READ_MIDDLE = 0x0e,
	           ROCE_READ_LAST = 0x0f,
	           ROCE_READ_ONLY = 0x10,
	           ROCE_ACK = 0x11,
	           ROCE_ATOMIC_ACK = 0x12,
	           ROCE_CMP_SWAP = 0x13,
	           ROCE_FETCH_ADD = 0x14,
	           ROCE_SEND_LAST_INV = 0x16,
	           ROCE_SEND_ONLY_INV = 0x17,
	           ROCE_CNP_OPCODE = 0x81, /* whole */
};

enum roce_op_flag {
	/* headers behind the BTH, in their order on the wire */
	ROCE_HAS_DETH = 1 << 0,
	ROCE_HAS_RETH = 1 << 1,
	ROCE_HAS_ATOMIC = 1 << 2,
	ROCE_HAS_AETH = 1 << 3,
	ROCE_HAS_ORIGINAL = 1 << 4,
	ROCE_HAS_IMM = 1 << 5,
	ROCE_HAS_INV = 1 << 6,
	/* place in its message */
	ROCE_STARTS = 1 << 7,
	ROCE_ENDS = 1 << 8,
	/* what it is */
	ROCE_IS_SEND = 1 << 9,
	ROCE_IS_WRITE = 1 << 10,
	ROCE_IS_READ = 1 << 11,     /* the request */
	ROCE_IS_ATOMIC = 1 << 12,   /* the request */
	ROCE_IS_RESPONSE = 1 << 13, /* of any kind: goes to the requester */
	ROCE_IS_CNP = 1 << 14,
	ROCE_HAS_PAYLOAD = 1 << 15,
};

/* What OPCODE is, of enum roce_op_flag; 0: unknown. */
uint16_t roce_op_flags(uint8_t opcode);
const char *roce_op_name(uint8_t opcode);

/* Bytes of BTH and extensions. */
size_t roce_headers_size(uint8_t opcode);

/* ---- AETH syndromes (7.1) ---- */

enum {
	ROCE_SYNDROME_ACK = 0x1f, /* with no limit of credits */
	ROCE_SYNDROME_RNR = 0x20, /* and a timer code */
	ROCE_SYNDROME_SEQUENCE = 0x60,
	ROCE_SYNDROME_INVALID = 0x61,
	ROCE_SYNDROME_ACCESS = 0x62,
	ROCE_SYNDROME_OPERATION = 0x63,
};

/* ---- one packet ---- */

/* The fields of BTH and extensions; which are meant depends on the opcode. */
struct roce_fields {
	uint8_t opcode; /* with the transport */
	bool solicited, ack_request, becn;
	uint8_t pad;
	uint8_t syndrome;
	uint16_t pkey;
	uint32_t qpn, psn, msn;
	uint32_t qkey, src_qpn;
	uint32_t rkey, length;
	uint32_t imm; /* four bytes as they stand on the wire */
	uint32_t inv_key;
	uint64_t va, swap_add, compare, original;
};

/* A packet that was received: places in the frame, and its fields. */
struct roce_packet {
	const uint8_t *ip;  /* IPv4 without options, or IPv6 */
	size_t link_size;   /* bytes in front of it */
	uint8_t ip_version; /* 4 or 6 */
	bool congested;     /* the mark of a router (11) */
	uint16_t flags;     /* enum roce_op_flag */
	struct roce_fields fields;
	const uint8_t *payload;
	size_t size; /* of the payload, without pad */
};

enum roce_verdict {
	ROCE_OK,
	ROCE_NOT_ROCE,    /* not IP, or not UDP to port 4791 */
	ROCE_BAD_LENGTH,  /* cut short, a fragment, or the lengths contradict each other */
	ROCE_BAD_OPCODE,  /* unknown */
	ROCE_BAD_VERSION, /* of the BTH */
	ROCE_BAD_ICRC,
};

/* Whether a frame is RoCEv2 at all: a quick look at its first SIZE bytes. */
bool roce_is_packet(const uint8_t *frame, size_t size);

/*
 * Reads a frame of SIZE bytes, from its Ethernet header on. Total: nothing behind SIZE is looked
 * at; the end of the packet is where the IP header says (spec rocev2 1).
 */
enum roce_verdict roce_parse(const uint8_t *frame, size_t size, struct roce_packet *packet);

/*
 * Writes BTH and extensions of FIELDS, for PAYLOAD_SIZE bytes behind them, to OUT. The pad count
 * follows from the size. Returns roce_headers_size().
 */
size_t roce_put_headers(const struct roce_fields *fields, size_t payload_size, uint8_t *out);

/*
 * Completes a packet whose link, IP and UDP headers, BTH, extensions and payload stand in FRAME, in
 * SIZE bytes of which LINK_SIZE are in front of the IP header: pad, lengths, IPv4 identification
 * IDENT and checksum, ICRC. Up to 7 bytes are added. Returns the new size.
 */
size_t roce_seal(uint8_t *frame, size_t link_size, size_t size, uint16_t ident);

/* The UDP source port for a flow without a label (12), the same in both directions. */
uint16_t roce_source_port(uint32_t qpn, uint32_t peer_qpn);

/* ---- sequence numbers: 24 bits, compared through their difference (6) ---- */

static inline uint32_t roce_psn_add(uint32_t psn, uint32_t count)
{
	return (psn + count) & ROCE_PSN_MASK;
}

/* How far A is behind B (positive) or in front of it. */
static inline int32_t roce_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

#endif
