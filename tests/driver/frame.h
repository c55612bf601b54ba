/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames for tests: built, cut into segments and hashed by code that owes nothing to the server's.
 */
#ifndef ERNIC_TESTS_DRIVER_FRAME_H
#define ERNIC_TESTS_DRIVER_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_PROTO_TCP 6
#define FRAME_PROTO_UDP 17
#define FRAME_TYPE_TEST 0x88b5 /* IEEE 802 local experimental */

/* What a frame carries. Addresses are filled from one byte each by flow_make(). */
struct flow {
	uint8_t dst[6], src[6];
	bool tagged;
	uint16_t tci;
	uint16_t ethertype; /* when version is 0 */
	int version;        /* 4, 6, or 0: no IP */
	uint8_t protocol;
	uint8_t saddr[16], daddr[16]; /* the first 4 for IPv4 */
	uint16_t sport, dport;
	uint32_t seq;
	uint8_t tcp_flags;
};

struct flow flow_make(int version, uint8_t protocol, const uint8_t dst[6], const uint8_t src[6]);

/* Offsets of the headers that frame_build() writes. */
size_t flow_l3(const struct flow *flow);
size_t flow_l4(const struct flow *flow);
size_t flow_payload(const struct flow *flow);
size_t flow_csum_offset(const struct flow *flow); /* of the checksum, in the L4 header */

enum frame_csum {
	FRAME_CSUM_FULL,    /* a complete frame */
	FRAME_CSUM_PARTIAL, /* as for CSUM_PARTIAL: the sum of the pseudo-header */
	FRAME_CSUM_TSO,     /* as the driver prepares TSO templates, spec ionic-ethernet 7.6 */
};

/* Writes a frame with SIZE bytes of payload made from SEED. Returns its size. */
size_t frame_build(uint8_t *out, const struct flow *flow, size_t payload, uint32_t seed,
                   enum frame_csum csum);

/* Bytes from SEED. */
void frame_fill(uint8_t *out, size_t size, uint32_t seed);

/* Folded sum of 16-bit words in network order. */
uint16_t frame_sum(const uint8_t *data, size_t size);

/* Whether IPv4 and L4 checksums of a frame of this flow are right. */
bool frame_csum_ok(const uint8_t *frame, size_t size, const struct flow *flow);

/*
 * Segment INDEX of a TSO template of this flow, complete with checksums, as it must appear on the
 * wire. Returns its size, or 0 behind the last.
 */
size_t frame_segment(const uint8_t *packet, size_t size, const struct flow *flow, uint16_t mss,
                     unsigned index, uint8_t *out);

/* Puts a tag into a frame: OUT may not be FRAME. Returns size + 4. */
size_t frame_tag(const uint8_t *frame, size_t size, uint16_t tci, uint8_t *out);

/* Toeplitz over the addresses, and the ports when PORTS (spec ionic-ethernet 9.1). */
uint32_t flow_toeplitz(const struct flow *flow, const uint8_t key[40], bool ports);

/* The steering hash of the manual when receive hash is off: 32-bit FNV-1a. */
uint32_t flow_fnv(const struct flow *flow);

#endif
