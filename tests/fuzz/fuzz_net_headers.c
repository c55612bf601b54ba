// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: any frame with any offload notes, through the switch to a port that takes any set of
 * offloads; header parser and hashes on the way.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* The input: notes, sizes of the first pieces, then the frame. */
struct notes {
	uint8_t offloads; /* of the receiving port */
	uint8_t flags;    /* 1 csum_partial, 2 csum_valid, 4 vlan, 8 gso_ecn, 16 as many */
	uint8_t gso;
	uint8_t pieces[5];
	uint16_t csum_start, csum_offset, vlan_tci, gso_size, hdr_size;
	uint16_t size; /* the frame is made so long, with zeroes, when it is shorter */
};

static size_t delivered;

static int deliver(struct net_port *port, const struct net_frame *frame)
{
	static uint8_t bytes[NET_MAX_FRAME + NET_VLAN_HEADER];
	struct net_cut cut;

	must(frame->iov_count <= NET_PORT_IOV);
	must(iov_size(frame->iov, frame->iov_count) >= frame->size);
	must(iov_to_buf(frame->iov, frame->iov_count, 0, bytes, sizeof(bytes)) >= frame->size);
	must(!frame->csum_partial || port->offloads & NET_OFFLOAD_CSUM);
	must(!frame->vlan || port->offloads & NET_OFFLOAD_VLAN);
	must(frame->gso != NET_GSO_TCPV4 || port->offloads & NET_OFFLOAD_TSO4);
	must(frame->gso != NET_GSO_TCPV6 || port->offloads & NET_OFFLOAD_TSO6);
	must(!frame->csum_partial ||
	     (size_t)frame->csum_start + frame->csum_offset + 2 <= frame->size);
	if (frame->gso != NET_GSO_NONE && net_cut_begin(&cut, frame) == 0) {
		size_t payload = 0;

		while (net_cut_next(&cut)) {
			must(cut.payload_offset + cut.payload_size <= frame->size);
			payload += cut.payload_size;
		}
		must(payload == frame->size - frame->hdr_size);
	}
	delivered++;
	return 0;
}

static const struct net_port_ops ops = {.deliver = deliver};

static void look_at_headers(const uint8_t *data, size_t size)
{
	static struct net_rss_key key;
	static bool ready;
	struct net_headers headers;
	uint32_t hash;
	bool l4;

	if (!ready)
		net_rss_key_init(&key, (const uint8_t[NET_RSS_KEY_SIZE]){1, 2, 3, 250});
	ready = true;
	net_headers_parse(data, size, &headers);
	must(headers.vlan_tags <= 2);
	must(headers.l3_offset <= size && headers.l4_offset <= size);
	must(headers.payload_offset <= size);
	must(headers.payload_offset == 0 || headers.payload_offset > headers.l4_offset);
	must(!headers.fragment || headers.l4_offset == 0);
	net_flow_hash(data, size, &headers);
	net_rss_hash(&key, 63, data, &headers, &hash, &l4);
}

/* Pieces of the sizes asked for, each in memory of its own, so that a sanitizer sees its ends. */
static unsigned make_pieces(const struct notes *notes, const uint8_t *data, size_t size,
                            struct iovec *iov)
{
	unsigned count = 0;

	for (size_t i = 0, at = 0; at < size; i++) {
		size_t chunk = i < sizeof(notes->pieces) ? notes->pieces[i] : size;

		if (chunk > size - at)
			chunk = size - at;
		iov[count].iov_base = malloc(chunk ? chunk : 1);
		iov[count].iov_len = chunk;
		must(iov[count].iov_base);
		memcpy(iov[count].iov_base, data + at, chunk);
		at += chunk;
		count++;
	}
	return count;
}

static void send(const struct notes *notes, const uint8_t *data, size_t size)
{
	struct net_port from = {.name = "from", .ops = &ops};
	struct net_port to = {.name = "to", .ops = &ops, .offloads = notes->offloads & 15};
	struct net_frame frames[2];
	struct iovec iov[8];
	struct net_wire *wire;
	int results[2];

	frames[0] = (struct net_frame){
	        .iov = iov,
	        .iov_count = make_pieces(notes, data, size, iov),
	        .size = size,
	        .csum_partial = notes->flags & 1,
	        .csum_valid = notes->flags & 2,
	        .vlan = notes->flags & 4,
	        .gso_ecn = notes->flags & 8,
	        .csum_start = notes->csum_start,
	        .csum_offset = notes->csum_offset,
	        .vlan_tci = notes->vlan_tci,
	        .gso = notes->gso % 3,
	        .gso_size = notes->gso_size,
	        .hdr_size = notes->hdr_size,
	};
	frames[1] = frames[0];
	if (to.offloads & (NET_OFFLOAD_TSO4 | NET_OFFLOAD_TSO6))
		to.offloads |= NET_OFFLOAD_CSUM;
	must(net_wire_create(&wire) == 0);
	must(net_wire_attach(wire, &from) == 0 && net_wire_attach(wire, &to) == 0);
	delivered = 0;
	net_wire_send_many(&from, frames, 2, results);
	must(results[0] == results[1] && (results[0] != 0) == (delivered == 0));
	net_wire_detach(&from);
	net_wire_detach(&to);
	net_wire_destroy(wire);
	for (unsigned i = 0; i < frames[0].iov_count; i++)
		free(iov[i].iov_base);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t frame[UINT16_MAX];
	struct notes notes;

	if (size < sizeof(notes))
		return 0;
	memcpy(&notes, data, sizeof(notes));
	data += sizeof(notes);
	size -= sizeof(notes);
	if (size > sizeof(frame))
		size = sizeof(frame);
	look_at_headers(data, size);
	memset(frame, 0, sizeof(frame));
	memcpy(frame, data, size);
	send(&notes, frame, size > notes.size ? size : notes.size);
	return 0;
}
