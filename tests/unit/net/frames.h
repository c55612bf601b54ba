/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames for tests: a builder, and checksums and segmentation done the slow and obvious way, as
 * what the real code is compared with.
 */
#ifndef ERNIC_TESTS_FRAMES_H
#define ERNIC_TESTS_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "net/net.h"

#define FRAME_BUFFER (NET_MAX_FRAME + 64)

/* What frame_build() makes. Zero fields give an untagged IPv4 TCP packet without options. */
struct frame_spec {
	bool ipv6;
	bool udp;
	bool tagged; /* 0x8100 in the bytes */
	uint16_t tci;
	unsigned tcp_options; /* bytes, a multiple of 4, at most 40 */
	size_t payload;
	uint8_t tcp_flags;
	uint32_t seq;
	uint16_t ip_id;
	uint16_t sport, dport;
	unsigned seed; /* of the payload bytes */
};

struct frame {
	uint8_t bytes[FRAME_BUFFER];
	size_t size, l3, l4, payload; /* offsets in bytes */
};

/* Builds a whole, valid packet. */
void frame_build(const struct frame_spec *spec, struct frame *frame);

/* Makes the transport checksum field the sum of the pseudo-header, with LENGTH as its length. */
void frame_unsum(struct frame *frame, uint32_t length);

/* Internet checksum of the transport part with pseudo-header, byte by byte: 0 when it is right. */
uint16_t frame_l4_error(const uint8_t *bytes, size_t size);
uint16_t frame_ip_error(const uint8_t *bytes, size_t size);

/* Plain sum of bytes as 16-bit words in network order, folded. */
uint16_t naive_sum(const uint8_t *bytes, size_t size);

/* Builds segment INDEX of the packet that SPEC describes, cut at MSS, from scratch. Returns false
 * when there is no such segment. */
bool frame_segment(const struct frame_spec *spec, size_t mss, size_t index, struct frame *segment);

/* Cuts SIZE bytes at random places into at most MAX pieces that do not touch in memory; the bytes
 * are copied to STORE, which has room for SIZE + MAX. Returns how many pieces there are. */
unsigned split_random(const uint8_t *bytes, size_t size, struct iovec *iov, unsigned max,
                      uint8_t *store);

#endif
