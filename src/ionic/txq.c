/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet transmit queues: descriptors to frames on the wire.
 *
 * Theory of operation
 *
 * A run takes packets off the ring until it is empty, a packet is not complete yet, or the budget
 * is spent. Per packet:
 *
 *	fetch		descriptors are copied in batches; only the copies are looked at again
 *	delimit		one descriptor, or for TSO all from SOT to EOT; a TSO packet without its EOT
 *			stays on the ring until the guest posts more
 *	gather		the buffers are translated, not copied; neighbours in memory become one
 *			piece. What has too many pieces, or lies in memory that can only be read by
 *			messages, is copied to a flat buffer
 *	describe	offload notes. Of a TSO packet the headers are copied and made those of one
 *			large packet (spec 7.6), so that it crosses the wire in one piece
 *	collect		the packet joins those that are sent at once: a port may take many for
 *			the price of one
 *	send, count, complete
 *
 * Completions. The driver takes one completion for everything up to its index (spec 7.7), so one is
 * written for all packets of a run: it costs an interrupt, and the budget bounds how long the guest
 * waits for it. Data has been read when it is written, because what was collected is sent before,
 * and the wire has taken or dropped it when the call returns.
 *
 * Errors. Whatever a descriptor says, it is consumed and completed, in error if need be; a packet
 * that makes no sense moves tx_desc_data_error and a counter that says why. A ring that is full and
 * has no EOT could never get one and is taken for such a packet.
 *
 * No state is kept between runs but the ring's indices. While memory is read by messages the device
 * may be reset under us; `enabled` tells, and nothing is touched any more then.
 *
 * Not done: opcode CSUM_HW, which no driver sends; TSO inside tunnels, which is not offered.
 */
#include "ionic/ionic_internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "ionic/ionic_desc.h"
#include "vfio/guest_mem.h"

COUNTER(ionic_tx_bad_opcode, "transmit descriptors with an opcode that does not exist");
COUNTER(ionic_tx_bad_sequence, "TSO packets without their first or last descriptor");
COUNTER(ionic_tx_unreadable, "TSO packets of which a descriptor could not be read");
COUNTER(ionic_tx_too_many_descs, "TSO packets of more descriptors than any packet needs");
COUNTER(ionic_tx_bad_size, "packets shorter than an Ethernet header or above the port's maximum");
COUNTER(ionic_tx_bad_sg, "packets with more list elements than there are");
COUNTER(ionic_tx_bad_csum, "packets with a checksum field outside of them or far into them");
COUNTER(ionic_tx_bad_tso,
        "TSO packets with headers that are not those of TCP, or a bad segment size");
COUNTER(ionic_tx_linearized, "packets that were copied to have fewer pieces, or to be read at all");
COUNTER(ionic_tx_link_down, "packets sent while the link was down");

#define TX_FETCH         256               /* descriptors copied at once */
#define TX_PACKET_DESCS  8192              /* 64 KiB in the smallest segments, NET_GSO_SIZE_MIN */
#define TX_IOV           (2 * NET_MAX_IOV) /* pieces of all packets that are sent at once */
#define TCP_CSUM_OFFSET  16
#define TCP_FLAGS_OFFSET 13
#define TCP_FLAG_CWR     0x80
#define IPV6_HEADER      40

/* How a packet that is to be sent will be counted. */
struct tx_count {
	struct ionic_frame_facts facts; /* of the packet, or of each segment but the last */
	uint32_t segments;
	uint32_t last_size; /* of the last segment */
};

/* The workplace of all transmit queues of a device; nothing in it outlives a run. */
struct ionic_txq_state {
	struct ionic_txq_desc descs[TX_PACKET_DESCS + TX_FETCH];

	/* The packets that are sent at once. Each has its pieces in iov, in front of them a place
	 * for the copy of its headers. */
	struct net_frame frames[NET_MANY_MAX];
	struct tx_count counts[NET_MANY_MAX];
	uint8_t heads[NET_MANY_MAX][NET_HEAD_MAX];
	int results[NET_MANY_MAX];
	struct iovec iov[TX_IOV];
	uint8_t flat[NET_MAX_FRAME]; /* of the last one, when it was copied */
};

struct tx_run {
	struct ionic_queue *queue;
	struct ionic_dev *dev;
	struct ionic_txq_state *state;
	/* Copies of the descriptors from queue->cons on are in state->descs[first..end). */
	uint32_t first, end;
	const uint8_t *lists; /* of all slots, NULL when they are not in one piece of memory */
	/* Packets collected, and pieces used by them. */
	unsigned frames, iov_used;
	/* Taken off the ring. */
	uint32_t descs;
	size_t bytes;
	enum ionic_status status; /* the first error among them */
};

/* A packet that is being made: its descriptors, and its pieces. */
struct tx_packet {
	const struct ionic_txq_desc *descs;
	uint32_t count;
	struct iovec *iov; /* pieces begin at [1] */
	unsigned iov_count;
	size_t size;
	bool flat; /* the pieces have been copied to state->flat */
	struct net_frame *frame;
	struct tx_count *counts;
};

int ionic_txq_create(struct ionic_dev *dev)
{
	dev->lif.txq_state = calloc(1, sizeof(*dev->lif.txq_state));
	return dev->lif.txq_state ? 0 : -ENOMEM;
}

void ionic_txq_destroy(struct ionic_dev *dev)
{
	free(dev->lif.txq_state);
	dev->lif.txq_state = NULL;
}

void ionic_txq_reset(struct ionic_queue *queue)
{
	(void)queue; /* a packet is only taken when it is complete */
}

/* All reads that may be messages. Afterwards the queue may be gone: then -ENODEV. */
static int read_guest(struct tx_run *run, uint64_t addr, void *dst, size_t size)
{
	int error = guest_mem_read(run->dev->mem, addr, dst, size);

	return run->queue->enabled ? error : -ENODEV;
}

/* ---- fetch ---- */

/* The lists are spread over many cache lines which the guest has just written; finding them early
 * is worth more than all the arithmetic that follows. */
static void find_lists(struct tx_run *run)
{
	const struct ionic_queue *queue = run->queue;
	struct iovec piece;

	if (queue->has_sg &&
	    guest_mem_map(run->dev->mem, queue->sg_base,
	                  (size_t)queue->entries * IONIC_TXQ_SG_STRIDE, GUEST_READ, &piece, 1) == 1)
		run->lists = piece.iov_base;
}

static void expect_lists(const struct tx_run *run, uint32_t slot, uint32_t count)
{
	const struct ionic_txq_desc *desc = &run->state->descs[run->end];

	for (uint32_t i = 0; run->lists && i < count; i++)
		if (IONIC_TXQ_SG_COUNT(le64_get(desc[i].cmd)) > 0)
			__builtin_prefetch(run->lists + (size_t)(slot + i) * IONIC_TXQ_SG_STRIDE);
}

static int read_descs(struct tx_run *run, uint32_t slot, uint32_t count)
{
	const struct ionic_queue *queue = run->queue;
	size_t size = sizeof(struct ionic_txq_desc);

	return read_guest(run, queue->ring_base + slot * size, &run->state->descs[run->end],
	                  count * size);
}

/* Copies more descriptors, up to the end of the ring. Returns how many: 0 when none are posted; or
 * a negative errno when not even the next one can be read. */
static int fetch(struct tx_run *run)
{
	const struct ionic_queue *queue = run->queue;
	uint32_t have = run->end - run->first;
	uint32_t count = ionic_queue_posted(queue) - have;
	uint32_t slot = (queue->cons + have) & (queue->entries - 1);

	if (count > TX_FETCH)
		count = TX_FETCH;
	if (count > queue->entries - slot)
		count = queue->entries - slot;
	if (count == 0)
		return 0;
	if (run->first > 0) {
		memmove(run->state->descs, run->state->descs + run->first,
		        have * sizeof(struct ionic_txq_desc));
		run->first = 0;
		run->end = have;
	}
	assert(run->end + count <= ARRAY_SIZE(run->state->descs));
	int error = read_descs(run, slot, count);

	if (error && error != -ENODEV && count > 1) {
		count = 1; /* the rest of the batch may be what cannot be read */
		error = read_descs(run, slot, count);
	}
	if (error)
		return error;
	expect_lists(run, slot, count);
	run->end += count;
	return (int)count;
}

/* ---- send ---- */

static void count_sent(struct ionic_stats *stats, const struct tx_count *count)
{
	if (count->segments == 1)
		ionic_stats_tx(stats, &count->facts);
	else
		ionic_stats_tx_segments(stats, &count->facts, count->segments, count->last_size);
}

static void count_drop(struct ionic_stats *stats, const struct tx_count *count)
{
	struct ionic_frame_facts last = count->facts;

	last.size = count->last_size;
	for (uint32_t i = 1; i < count->segments; i++)
		ionic_stats_tx_drop(stats, &count->facts);
	ionic_stats_tx_drop(stats, &last);
}

static void send_frames(struct tx_run *run)
{
	struct ionic_txq_state *state = run->state;

	if (ionic_link_up(run->dev)) {
		net_wire_send_many(&run->dev->port, state->frames, run->frames, state->results);
		return;
	}
	counter_add(&ionic_tx_link_down, run->frames);
	for (unsigned i = 0; i < run->frames; i++)
		state->results[i] = -ENETDOWN;
}

/* Sends what was collected; of a device that was reset meanwhile, nothing. */
static void flush(struct tx_run *run)
{
	struct ionic_txq_state *state = run->state;
	struct ionic_stats *stats = &run->dev->stats;

	if (run->frames > 0 && run->queue->enabled) {
		send_frames(run);
		for (unsigned i = 0; i < run->frames; i++) {
			if (!state->results[i]) {
				count_sent(stats, &state->counts[i]);
				continue;
			}
			count_drop(stats, &state->counts[i]);
			if (run->status == IONIC_RC_SUCCESS)
				run->status = IONIC_RC_EIO;
		}
	}
	run->frames = 0;
	run->iov_used = 0;
}

/* ---- completion ---- */

/* Everything that was consumed is done with. */
static void complete(struct tx_run *run)
{
	struct ionic_queue *queue = run->queue;

	flush(run);
	if (run->descs == 0 || !queue->enabled)
		return;
	struct ionic_txq_comp comp = {
	        .status = (uint8_t)run->status,
	        .comp_index = le16_make((uint16_t)((queue->cons - 1) & (queue->entries - 1))),
	};
	uint8_t raw[sizeof(comp)];

	memcpy(raw, &comp, sizeof(raw));
	if (ionic_queue_complete(queue, raw))
		ionic_stats_inc(&run->dev->stats, IONIC_LIF_TX_DMA_ERROR);
}

/* Takes COUNT descriptors off the ring, of a packet of SIZE bytes. */
static void consume(struct tx_run *run, uint32_t count, size_t size, enum ionic_status status)
{
	if (!run->queue->enabled)
		return;
	ionic_queue_advance(run->queue, count);
	run->first += count;
	run->descs += count;
	run->bytes += size;
	if (run->status == IONIC_RC_SUCCESS)
		run->status = status;
}

static enum ionic_status refuse(struct tx_run *run, struct counter *why)
{
	if (!run->queue->enabled)
		return IONIC_RC_ERROR; /* reset meanwhile: the counters have begun anew */
	ionic_stats_inc(&run->dev->stats, IONIC_LIF_TX_DESC_DATA_ERROR);
	return ionic_refuse(why, IONIC_RC_EINVAL);
}

/* ---- delimit ---- */

enum tx_delimited { TX_COMPLETE, TX_WAITS, TX_BAD };

static enum tx_delimited bad_packet(struct tx_run *run, struct tx_packet *packet, uint32_t count,
                                    struct counter *why)
{
	refuse(run, why);
	packet->count = count;
	return TX_BAD;
}

/* Finds the descriptor with EOT. Those before it must be of the same packet. */
static enum tx_delimited delimit_tso(struct tx_run *run, struct tx_packet *packet)
{
	for (uint32_t i = 0; i < TX_PACKET_DESCS; i++) {
		if (run->first + i == run->end) {
			int more = fetch(run);

			packet->descs = &run->state->descs[run->first];
			if (more < 0)
				return bad_packet(run, packet, i, &ionic_tx_unreadable);
			if (more == 0 && i == run->queue->entries - 1)
				return bad_packet(run, packet, i, &ionic_tx_bad_sequence);
			if (more == 0)
				return TX_WAITS;
		}
		uint64_t cmd = le64_get(packet->descs[i].cmd);
		bool starts = IONIC_TXQ_FLAGS(cmd) & IONIC_TXQ_TSO_SOT;

		if (IONIC_TXQ_OPCODE(cmd) != IONIC_TXQ_TSO || starts != (i == 0))
			return bad_packet(run, packet, i ? i : 1, &ionic_tx_bad_sequence);
		if (IONIC_TXQ_FLAGS(cmd) & IONIC_TXQ_TSO_EOT) {
			packet->count = i + 1;
			return TX_COMPLETE;
		}
	}
	return bad_packet(run, packet, TX_PACKET_DESCS, &ionic_tx_too_many_descs);
}

static enum tx_delimited delimit(struct tx_run *run, struct tx_packet *packet)
{
	packet->descs = &run->state->descs[run->first];
	packet->count = 1;
	switch (IONIC_TXQ_OPCODE(le64_get(packet->descs[0].cmd))) {
	case IONIC_TXQ_CSUM_NONE:
	case IONIC_TXQ_CSUM_PARTIAL:
		return TX_COMPLETE;
	case IONIC_TXQ_TSO:
		return delimit_tso(run, packet);
	default:
		return bad_packet(run, packet, 1, &ionic_tx_bad_opcode);
	}
}

/* ---- gather ---- */

/* From here on the packet is copied. */
static void make_flat(struct tx_run *run, struct tx_packet *packet)
{
	struct ionic_txq_state *state = run->state;

	iov_to_buf(packet->iov + 1, packet->iov_count, 0, state->flat, packet->size);
	packet->flat = true;
	packet->iov_count = 1;
	packet->iov[1] = (struct iovec){.iov_base = state->flat, .iov_len = packet->size};
	counter_inc(&ionic_tx_linearized);
}

/* Appends the COUNT pieces that stand behind the ones of the packet; merges what touches. */
static void append_pieces(struct tx_packet *packet, unsigned count)
{
	struct iovec *next = packet->iov + 1 + packet->iov_count;

	for (unsigned i = 0; i < count; i++) {
		struct iovec *last = packet->iov + packet->iov_count;
		struct iovec piece = next[i];

		if (packet->iov_count > 0 &&
		    (uint8_t *)last->iov_base + last->iov_len == (uint8_t *)piece.iov_base) {
			last->iov_len += piece.iov_len;
		} else {
			last[1] = piece;
			packet->iov_count++;
		}
	}
}

static int add_buffer(struct tx_run *run, struct tx_packet *packet, uint64_t addr, size_t size)
{
	struct ionic_txq_state *state = run->state;

	if (size > NET_MAX_FRAME - packet->size)
		return -EMSGSIZE;
	if (!packet->flat) {
		int pieces = guest_mem_map(run->dev->mem, addr, size, GUEST_READ,
		                           packet->iov + 1 + packet->iov_count,
		                           NET_MAX_IOV - 1 - packet->iov_count);

		if (pieces >= 0) {
			append_pieces(packet, (unsigned)pieces);
			packet->size += size;
			return 0;
		}
		if (pieces != -E2BIG && pieces != -ENOTSUP)
			return pieces;
		make_flat(run, packet);
	}
	int error = read_guest(run, addr, state->flat + packet->size, size);

	packet->size += size;
	packet->iov[1].iov_len = packet->size;
	return error;
}

static int add_list(struct tx_run *run, struct tx_packet *packet, uint32_t slot, unsigned count)
{
	uint8_t copy[IONIC_TXQ_SG_MAX * sizeof(struct ionic_sg_elem)];
	size_t offset = (size_t)slot * IONIC_TXQ_SG_STRIDE;
	const uint8_t *list = copy;
	int error = 0;

	if (run->lists)
		list = run->lists + offset;
	else
		error = read_guest(run, run->queue->sg_base + offset, copy,
		                   count * sizeof(struct ionic_sg_elem));
	for (unsigned i = 0; i < count && !error; i++) {
		struct ionic_sg_elem elem; /* looked at once; of a fixed size, that is two loads */

		memcpy(&elem, list + i * sizeof(elem), sizeof(elem));
		error = add_buffer(run, packet, le64_get(elem.addr), le16_get(elem.len));
	}
	return error;
}

static enum ionic_status gather_error(struct tx_run *run, int error)
{
	if (error == -EMSGSIZE)
		return refuse(run, &ionic_tx_bad_size);
	if (error != -ENODEV)
		ionic_stats_inc(&run->dev->stats, IONIC_LIF_TX_DMA_ERROR);
	return IONIC_RC_BAD_ADDR;
}

static enum ionic_status gather(struct tx_run *run, struct tx_packet *packet)
{
	const struct ionic_queue *queue = run->queue;

	for (uint32_t i = 0; i < packet->count; i++) {
		const struct ionic_txq_desc *desc = &packet->descs[i];
		uint64_t cmd = le64_get(desc->cmd);
		unsigned elems = IONIC_TXQ_SG_COUNT(cmd);
		uint32_t slot = (queue->cons + i) & (queue->entries - 1);
		int error = add_buffer(run, packet, IONIC_TXQ_ADDR(cmd), le16_get(desc->len));

		if (!error && elems > 0) {
			if (!queue->has_sg || elems > IONIC_TXQ_SG_MAX)
				return refuse(run, &ionic_tx_bad_sg);
			error = add_list(run, packet, slot, elems);
		}
		if (error)
			return gather_error(run, error);
	}
	return IONIC_RC_SUCCESS;
}

/* ---- describe ---- */

static void put16(uint8_t *data, size_t value)
{
	data[0] = (uint8_t)(value >> 8);
	data[1] = (uint8_t)value;
}

static uint16_t get16(const uint8_t *data)
{
	return (uint16_t)(data[0] << 8 | data[1]);
}

/* Puts HEAD, a copy of the first SIZE bytes, in the place of the original. */
static void replace_head(struct tx_packet *packet, uint8_t *head, size_t size)
{
	struct iovec *piece = packet->iov + 1;
	size_t skip = size;

	while (skip > 0 && skip >= piece->iov_len) {
		skip -= piece->iov_len;
		piece++;
		packet->iov_count--;
	}
	if (skip > 0) {
		piece->iov_base = (uint8_t *)piece->iov_base + skip;
		piece->iov_len -= skip;
	}
	piece--;
	*piece = (struct iovec){.iov_base = head, .iov_len = size};
	packet->frame->iov = piece;
	packet->frame->iov_count = packet->iov_count + 1;
}

/* Makes the headers those of one packet of the whole size: IP length and checksum, and the length
 * in the sum of the pseudo-header, which the driver leaves out. Returns false when the packet is
 * longer than IP can say. */
static bool complete_headers(struct tx_packet *packet, uint8_t *head,
                             const struct net_headers *headers)
{
	uint8_t *ip = head + headers->l3_offset, *tcp = head + headers->l4_offset;
	size_t ip_size = packet->size - headers->l3_offset;
	size_t tcp_size = packet->size - headers->l4_offset;
	uint32_t seed = get16(tcp + TCP_CSUM_OFFSET);

	if (ip_size > UINT16_MAX)
		return false;
	if (headers->ip_version == 4) {
		put16(ip + 2, ip_size);
		put16(ip + 10, 0);
		put16(ip + 10,
		      (uint16_t)~net_csum_fold(net_csum_add(0, ip, (size_t)(ip[0] & 15) * 4)));
	} else {
		put16(ip + 4, ip_size - IPV6_HEADER);
	}
	put16(tcp + TCP_CSUM_OFFSET, net_csum_fold(seed + (uint32_t)tcp_size));
	packet->frame->gso_ecn = tcp[TCP_FLAGS_OFFSET] & TCP_FLAG_CWR;
	return true;
}

/* Notes of a packet of which the headers are in state->head and fit. */
static void note_tso(struct tx_packet *packet, const struct net_headers *headers, uint16_t hdr_size,
                     uint16_t mss)
{
	struct net_frame *frame = packet->frame;
	size_t payload = packet->size - hdr_size;

	frame->csum_partial = true;
	frame->csum_start = headers->l4_offset;
	frame->csum_offset = TCP_CSUM_OFFSET;
	if (payload <= mss)
		return; /* one segment: nothing to cut */
	frame->gso = headers->ip_version == 4 ? NET_GSO_TCPV4 : NET_GSO_TCPV6;
	frame->gso_size = mss;
	frame->hdr_size = hdr_size;
	packet->counts->segments = (uint32_t)((payload + mss - 1) / mss);
	packet->counts->last_size =
	        (uint32_t)(hdr_size + payload - (packet->counts->segments - 1) * (size_t)mss);
}

static enum ionic_status describe_tso(struct tx_run *run, struct tx_packet *packet)
{
	const struct ionic_txq_desc *desc = &packet->descs[0];
	uint16_t hdr_size = le16_get(desc->csum_start_or_hdr_len);
	uint16_t mss = le16_get(desc->csum_offset_or_mss);
	uint8_t *head = run->state->heads[run->frames];
	struct net_headers headers;

	if (hdr_size > NET_HEAD_MAX - NET_VLAN_HEADER || hdr_size > packet->size ||
	    mss < NET_GSO_SIZE_MIN)
		return refuse(run, &ionic_tx_bad_tso);
	iov_to_buf(packet->frame->iov, packet->frame->iov_count, 0, head, hdr_size);
	net_headers_parse(head, hdr_size, &headers);
	if (headers.payload_offset != hdr_size || headers.protocol != IPPROTO_TCP ||
	    !complete_headers(packet, head, &headers))
		return refuse(run, &ionic_tx_bad_tso);
	note_tso(packet, &headers, hdr_size, mss);
	replace_head(packet, head, hdr_size);
	return IONIC_RC_SUCCESS;
}

static enum ionic_status describe_csum(struct tx_run *run, struct tx_packet *packet)
{
	const struct ionic_txq_desc *desc = &packet->descs[0];
	uint16_t start = le16_get(desc->csum_start_or_hdr_len);
	uint16_t offset = le16_get(desc->csum_offset_or_mss);
	size_t end = (size_t)start + offset + 2; /* of the field */

	if (start < NET_ETH_HEADER || end > packet->size || end > NET_HEAD_MAX - NET_VLAN_HEADER)
		return refuse(run, &ionic_tx_bad_csum);
	packet->frame->csum_partial = true;
	packet->frame->csum_start = start;
	packet->frame->csum_offset = offset;
	return IONIC_RC_SUCCESS;
}

/* What the packet, or each of its segments, will look like on the wire. */
static void note_facts(struct tx_packet *packet)
{
	uint8_t head[NET_ETH_HEADER + NET_VLAN_HEADER] = {0};
	const struct net_frame *frame = packet->frame;
	struct tx_count *count = packet->counts;
	struct ionic_frame_facts *facts = &count->facts;

	iov_to_buf(frame->iov, frame->iov_count, 0, head, sizeof(head));
	memcpy(facts->dst, head, sizeof(facts->dst));
	uint16_t ethertype = get16(head + 12);

	if (frame->vlan || ethertype == 0x8100 || ethertype == 0x88a8) {
		facts->tagged = true;
		facts->pcp = frame->vlan ? (uint8_t)(frame->vlan_tci >> 13) : head[14] >> 5;
	}
	uint32_t tag = frame->vlan ? NET_VLAN_HEADER : 0;

	facts->size = tag + (uint32_t)(frame->gso == NET_GSO_NONE
	                                       ? frame->size
	                                       : (size_t)frame->hdr_size + frame->gso_size);
	count->last_size = count->segments == 1 ? facts->size : count->last_size + tag;
}

static enum ionic_status describe(struct tx_run *run, struct tx_packet *packet)
{
	const struct ionic_txq_desc *desc = &packet->descs[0];
	uint64_t cmd = le64_get(desc->cmd);
	enum ionic_status status = IONIC_RC_SUCCESS;

	if (packet->size < NET_ETH_HEADER)
		return refuse(run, &ionic_tx_bad_size);
	*packet->counts = (struct tx_count){.segments = 1};
	*packet->frame = (struct net_frame){
	        .iov = packet->iov + 1,
	        .iov_count = packet->iov_count,
	        .size = packet->size,
	        .vlan = IONIC_TXQ_FLAGS(cmd) & IONIC_TXQ_VLAN,
	        .vlan_tci = le16_get(desc->vlan_tci),
	};
	if (IONIC_TXQ_OPCODE(cmd) == IONIC_TXQ_TSO)
		status = describe_tso(run, packet);
	else if (IONIC_TXQ_OPCODE(cmd) == IONIC_TXQ_CSUM_PARTIAL)
		status = describe_csum(run, packet);
	if (status)
		return status;
	note_facts(packet);
	if (packet->counts->facts.size > ionic_max_frame(run->dev))
		return refuse(run, &ionic_tx_bad_size);
	return IONIC_RC_SUCCESS;
}

/* ---- run ---- */

/* Makes sure that a descriptor is at hand. Returns false when there is none to look at. */
static bool have_desc(struct tx_run *run)
{
	int count = run->first == run->end ? fetch(run) : 1;

	if (count >= 0 || count == -ENODEV)
		return count > 0;
	/* It cannot be read. It is taken off all the same, or the queue would stop here. */
	ionic_stats_inc(&run->dev->stats, IONIC_LIF_TX_DESC_FETCH_ERROR);
	run->first = run->end = 0;
	consume(run, 1, 0, IONIC_RC_EFAULT);
	run->first = run->end = 0;
	return false;
}

/* A place for the next packet among those that are sent at once. */
static struct tx_packet start_packet(struct tx_run *run)
{
	struct ionic_txq_state *state = run->state;

	if (run->frames == NET_MANY_MAX || run->iov_used > TX_IOV - NET_MAX_IOV)
		flush(run);
	return (struct tx_packet){
	        .iov = state->iov + run->iov_used,
	        .frame = &state->frames[run->frames],
	        .counts = &state->counts[run->frames],
	};
}

/* The packet is ready and joins the others. */
static void collect(struct tx_run *run, const struct tx_packet *packet)
{
	const struct net_frame *frame = packet->frame;

	run->frames++;
	run->iov_used = (unsigned)(frame->iov + frame->iov_count - run->state->iov);
	if (packet->flat)
		flush(run); /* the next one may need the buffer */
}

/* One packet. Returns false when the rest of the ring has to wait for the guest. */
static bool transmit(struct tx_run *run)
{
	struct tx_packet packet = start_packet(run);
	enum ionic_status status = IONIC_RC_EINVAL;

	if (!have_desc(run))
		return ionic_queue_posted(run->queue) > 0;
	switch (delimit(run, &packet)) {
	case TX_WAITS:
		return false;
	case TX_COMPLETE:
		status = gather(run, &packet);
		if (!run->queue->enabled)
			return false; /* reset while memory was read */
		if (!status)
			status = describe(run, &packet);
		if (!status)
			collect(run, &packet);
		break;
	case TX_BAD:
		break;
	}
	consume(run, packet.count, packet.size, status);
	return true;
}

bool ionic_txq_run(struct ionic_queue *queue)
{
	struct tx_run run = {.queue = queue, .dev = queue->dev, .state = queue->dev->lif.txq_state};
	bool more = true;

	find_lists(&run);
	while (more && queue->enabled) {
		if (run.descs >= IONIC_TX_BUDGET_DESCS || run.bytes >= IONIC_TX_BUDGET_BYTES)
			break;
		more = transmit(&run);
	}
	complete(&run);
	return more && queue->enabled && ionic_queue_posted(queue) > 0;
}
