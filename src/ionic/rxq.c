/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet receive side: frames from the wire to buffers of the guest.
 *
 * Theory of operation
 *
 * The wire hands over a frame in the loop's work phase. What is the same for all segments of a
 * large packet is decided once: link, size, filters, VLAN tag, queue and hash. Then each frame, or
 * each segment that net_cut_next() makes, takes the next descriptor of the queue and is copied
 * into its buffers.
 *
 * One pass. The payload is copied and summed at once; from that sum come the transport checksum,
 * when the sender left it to be filled, and the checksum of everything behind the Ethernet header,
 * which the driver wants (spec 8.4). The headers are small, are changed in a private copy, and are
 * written last:
 *
 *	+----------+-----+--------------+---------------------------+
 *	| MACs     | tag | other headers| payload                   |
 *	+----------+-----+--------------+---------------------------+
 *	 <- head: copied, tag removed -> <- rest: copied with sum -->
 *
 * A checksum that the sender left undone is always filled, whether or not the guest has asked for
 * receive checksums: the stack would compare it with what we report.
 *
 * Steering. With receive hashing on: Toeplitz and the guest's table (spec 9.1). Else the flow hash
 * modulo the number of enabled queues. A queue that is not enabled yet is replaced by the lowest
 * one that is (spec 8.3, rule 1).
 *
 * Waiting. A large packet that may wait (net.h) does so until its queue has a buffer for each
 * segment, or as many as a driver keeps posted in a ring of that size.
 *
 * Errors. A frame that finds no buffer, or a buffer that is too small, is dropped and the
 * descriptor stays for the next one (spec 8.3, rule 3). A descriptor that can never be used, with
 * an unknown opcode or a buffer out of memory, is completed in error, or the queue would stop
 * for good. A short frame is delivered as it is, without padding: the driver does not need it and
 * the sum would have to cover it.
 *
 * Memory that can only be written by messages gets its frame through a flat buffer. The device may
 * be reset while a message is answered; `enabled` tells, and nothing is touched any more then.
 *
 * Not done: reading descriptors ahead of the frames. The guest may be given back a disabled queue's
 * memory at any time, and a copy would outlive it.
 */
#include "ionic/ionic_internal.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/iov.h"
#include "ionic/ionic_desc.h"
#include "vfio/guest_mem.h"

COUNTER(ionic_rx_not_ready, "frames for the guest while it had no LIF, link or enabled queue");
COUNTER(ionic_rx_bad_notes, "frames for the guest with offload notes that do not fit, dropped");
COUNTER(ionic_rx_redirected, "frames given to the first enabled queue, as theirs was not enabled");
COUNTER(ionic_rx_bad_opcode, "receive descriptors with an opcode that does not exist");
COUNTER(ionic_rx_too_small, "frames dropped because the posted buffers were too small");
COUNTER(ionic_rx_bounced, "frames written to guest memory through messages");

#define RX_MAX_IOV   32   /* host pieces of one descriptor's nine buffers */
#define RX_FRAME_MAX 9600 /* mtu_max's limit of 9582, and 18; larger ones are oversize */
#define MACS         12
#define NO_REASON    (-1)

/* What holds for a frame, or for all segments of a large packet. */
struct rx_common {
	struct ionic_dev *dev;
	const struct net_frame *frame;
	struct net_headers headers;
	struct ionic_frame_facts facts; /* size: of the current frame or segment */
	struct ionic_queue *queue;
	uint32_t hash;
	uint8_t pkt_type;
	bool strip; /* remove the outer tag */
};

/* One frame on its way into a buffer. Offsets in HEAD count before the tag is removed. */
struct rx_packet {
	uint8_t *head;
	size_t head_size;
	size_t rest_offset, rest_size; /* what follows, in the pieces of the frame */
	bool fill;                     /* the checksum field, which is in the head */
	size_t csum_start, csum_field;
	size_t size;   /* as delivered, tag removed */
	uint16_t csum; /* of everything behind the Ethernet header, as delivered */
};

/* The buffers of a descriptor, as far as a frame needs them. */
struct rx_target {
	struct ionic_sg_elem buffers[1 + IONIC_RXQ_SG_MAX];
	unsigned buffer_count;
	struct iovec iov[RX_MAX_IOV];
	unsigned iov_count;
	bool bounce; /* iov is a flat buffer, to be written to the guest afterwards */
};

/* ---- steering ---- */

static struct ionic_queue *nth_enabled(struct ionic_dev *dev, unsigned n)
{
	for (unsigned i = 0; i < dev->profile.eth_queues; i++)
		if (dev->lif.rxq[i].enabled && n-- == 0)
			return &dev->lif.rxq[i];
	return NULL;
}

static unsigned count_enabled(const struct ionic_dev *dev)
{
	unsigned count = 0;

	for (unsigned i = 0; i < dev->profile.eth_queues; i++)
		count += dev->lif.rxq[i].enabled;
	return count;
}

static struct ionic_queue *queue_by_index(struct ionic_dev *dev, unsigned index)
{
	assert(index < dev->profile.eth_queues);
	if (dev->lif.rxq[index].enabled)
		return &dev->lif.rxq[index];
	struct ionic_queue *queue = nth_enabled(dev, 0);

	if (queue)
		counter_inc(&ionic_rx_redirected);
	return queue;
}

static uint8_t pkt_type(const struct net_headers *headers, bool l4)
{
	bool tcp = l4 && headers->protocol == IPPROTO_TCP;
	bool udp = l4 && headers->protocol == IPPROTO_UDP;

	if (headers->ip_version == 4)
		return tcp ? IONIC_PKT_IPV4_TCP : udp ? IONIC_PKT_IPV4_UDP : IONIC_PKT_IPV4;
	if (headers->ip_version == 6)
		return tcp ? IONIC_PKT_IPV6_TCP : udp ? IONIC_PKT_IPV6_UDP : IONIC_PKT_IPV6;
	return IONIC_PKT_NON_IP;
}

/* Chooses queue, hash and packet type; the type tells the driver what kind of hash it is. */
static void steer(struct rx_common *rx, const uint8_t *head, size_t size)
{
	struct ionic_dev *dev = rx->dev;
	const struct ionic_lif *lif = &dev->lif;
	bool l4 = rx->headers.l4_offset != 0;

	if (lif->features & IONIC_FEATURE_RX_HASH) {
		bool hashed = lif->rss.types && net_rss_hash(&lif->rss.key, lif->rss.types, head,
		                                             &rx->headers, &rx->hash, &l4);

		rx->queue = queue_by_index(
		        dev, hashed && lif->rss.valid
		                     ? lif->rss.table[rx->hash % sizeof(lif->rss.table)]
		                     : 0);
	} else {
		unsigned enabled = count_enabled(dev);

		if (enabled == 1)
			rx->queue = nth_enabled(dev, 0);
		else if (enabled > 1)
			rx->queue =
			        nth_enabled(dev, net_flow_hash(head, size, &rx->headers) % enabled);
	}
	rx->pkt_type = pkt_type(&rx->headers, l4);
}

/* ---- waiting ---- */

/* What a driver that keeps up has posted at least: it refills when 16 slots, or an eighth of the
 * ring, are free (spec ionic-ethernet 8.2). To wait for more could be to wait for ever. */
static uint32_t buffers_at_most(const struct ionic_queue *queue)
{
	uint32_t slack = queue->entries / 8;

	return queue->entries - 1 - (slack < 16 ? slack : 16);
}

/* Whether a packet of COUNT segments has to wait for buffers. */
static bool has_to_wait(const struct rx_common *rx, uint32_t count)
{
	struct ionic_lif *lif = &rx->dev->lif;

	if (!rx->frame->may_wait || !rx->queue)
		return false;
	uint32_t most = buffers_at_most(rx->queue);

	if (count > most)
		count = most;
	if (ionic_queue_posted(rx->queue) >= count)
		return false;
	lif->rx_wanted = count;
	lif->rx_waiting = rx->queue->index;
	return true;
}

void ionic_rx_posted(struct ionic_queue *queue)
{
	struct ionic_lif *lif = &queue->dev->lif;

	if (lif->rx_wanted == 0 || queue->index != lif->rx_waiting ||
	    ionic_queue_posted(queue) < lif->rx_wanted)
		return;
	lif->rx_wanted = 0;
	net_port_ready(&queue->dev->port);
}

/* ---- the buffers of a descriptor ---- */

/* Accesses may be messages, and the queue be gone when they return: then ERROR is -ENODEV. */
static int after_access(const struct ionic_queue *queue, int error)
{
	return queue->enabled ? error : -ENODEV;
}

/* Reads the list of a descriptor. It ends at the first element of zeroes (spec 8.1). */
static int read_list(struct ionic_queue *queue, struct rx_target *target)
{
	static const struct ionic_sg_elem end;
	struct ionic_sg_elem *list = &target->buffers[1];
	int error = guest_mem_read(queue->dev->mem,
	                           queue->sg_base + (uint64_t)queue->cons * IONIC_RXQ_SG_STRIDE,
	                           list, IONIC_RXQ_SG_MAX * sizeof(*list));

	error = after_access(queue, error);
	if (error)
		return error;
	while (target->buffer_count <= IONIC_RXQ_SG_MAX &&
	       memcmp(&target->buffers[target->buffer_count], &end, sizeof(end)) != 0)
		target->buffer_count++;
	return 0;
}

/* Keeps of the buffers what SIZE bytes fill, the first ones to their ends. Returns false when they
 * hold less. */
static bool trim_buffers(struct rx_target *target, size_t size)
{
	for (unsigned i = 0; i < target->buffer_count; i++) {
		size_t len = le16_get(target->buffers[i].len);

		if (len >= size) {
			target->buffers[i].len = le16_make((uint16_t)size);
			target->buffer_count = i + 1;
			return true;
		}
		size -= len;
	}
	return false;
}

/* Translates the buffers. Memory that cannot be mapped is replaced by BOUNCE. */
static int map_buffers(struct ionic_dev *dev, struct rx_target *target, uint8_t *bounce)
{
	target->iov_count = 0;
	for (unsigned i = 0; i < target->buffer_count; i++) {
		const struct ionic_sg_elem *buffer = &target->buffers[i];
		int pieces = guest_mem_map(dev->mem, le64_get(buffer->addr), le16_get(buffer->len),
		                           GUEST_WRITE, target->iov + target->iov_count,
		                           RX_MAX_IOV - target->iov_count);

		if (pieces == -ENOTSUP || pieces == -E2BIG) {
			target->bounce = true;
			target->iov[0] =
			        (struct iovec){.iov_base = bounce, .iov_len = RX_FRAME_MAX};
			target->iov_count = 1;
			return 0;
		}
		if (pieces < 0)
			return pieces;
		target->iov_count += (unsigned)pieces;
	}
	return 0;
}

static int write_bounced(struct ionic_queue *queue, const struct rx_target *target)
{
	const uint8_t *data = target->iov[0].iov_base;

	counter_inc(&ionic_rx_bounced);
	for (unsigned i = 0; i < target->buffer_count; i++) {
		size_t size = le16_get(target->buffers[i].len);
		uint64_t addr = le64_get(target->buffers[i].addr);
		int error = guest_mem_write(queue->dev->mem, addr, data, size);

		error = after_access(queue, error);
		if (error)
			return error;
		data += size;
	}
	return 0;
}

/* ---- copying ---- */

/* Copies SIZE bytes from OFFSET of the frame's pieces to DST, which is flat, with their sum. */
static uint32_t copy_to_flat(const struct net_frame *frame, size_t offset, uint8_t *dst,
                             size_t size)
{
	uint32_t sum = 0;
	size_t done = 0;

	for (unsigned i = 0; i < frame->iov_count && done < size; i++) {
		const struct iovec *piece = &frame->iov[i];

		if (offset >= piece->iov_len) {
			offset -= piece->iov_len;
			continue;
		}
		size_t chunk = piece->iov_len - offset;

		if (chunk > size - done)
			chunk = size - done;
		uint32_t part =
		        net_csum_copy(0, dst + done, (uint8_t *)piece->iov_base + offset, chunk);

		sum = net_csum_join(sum, part, done & 1);
		done += chunk;
		offset = 0;
	}
	return sum;
}

/* Copies the rest of the packet to its place behind the head, and returns its sum. */
static uint32_t copy_rest(const struct rx_target *target, const struct rx_packet *packet,
                          const struct net_frame *frame)
{
	size_t skip = packet->size - packet->rest_size; /* where it begins in the buffers */
	size_t done = 0;
	uint32_t sum = 0;

	for (unsigned i = 0; i < target->iov_count && done < packet->rest_size; i++) {
		const struct iovec *piece = &target->iov[i];

		if (skip >= piece->iov_len) {
			skip -= piece->iov_len;
			continue;
		}
		size_t chunk = piece->iov_len - skip;

		if (chunk > packet->rest_size - done)
			chunk = packet->rest_size - done;
		uint32_t part = copy_to_flat(frame, packet->rest_offset + done,
		                             (uint8_t *)piece->iov_base + skip, chunk);

		sum = net_csum_join(sum, part, done & 1);
		done += chunk;
		skip = 0;
	}
	return sum;
}

/* Writes the packet into the buffers: rest, checksums, head. */
static void place(const struct rx_common *rx, const struct rx_target *target,
                  struct rx_packet *packet)
{
	size_t tag = rx->strip ? NET_VLAN_HEADER : 0;
	uint8_t *head = packet->head;
	uint32_t rest_sum = copy_rest(target, packet, rx->frame);

	if (packet->fill) {
		size_t size = packet->head_size - packet->csum_start;
		uint32_t sum = net_csum_add(0, head + packet->csum_start, size);
		uint16_t csum = net_csum_final(net_csum_join(sum, rest_sum, size & 1));

		head[packet->csum_field] = (uint8_t)(csum >> 8);
		head[packet->csum_field + 1] = (uint8_t)csum;
	}
	size_t l3 = NET_ETH_HEADER + tag;
	uint32_t sum = net_csum_add(0, head + l3, packet->head_size - l3);

	packet->csum = net_csum_fold(
	        net_csum_join(sum, rest_sum, (packet->head_size - NET_ETH_HEADER) & 1));
	if (tag == 0) {
		iov_from_buf(target->iov, target->iov_count, 0, head, packet->head_size);
		return;
	}
	iov_from_buf(target->iov, target->iov_count, 0, head, MACS);
	iov_from_buf(target->iov, target->iov_count, MACS, head + MACS + tag,
	             packet->head_size - MACS - tag);
}

/* ---- one frame ---- */

static int drop(const struct rx_common *rx, int reason, int error)
{
	ionic_stats_rx_drop(&rx->dev->stats, &rx->facts, reason);
	return error;
}

/* Completes the descriptor that is next. PACKET is NULL when it is completed in error. */
static int complete(const struct rx_common *rx, const struct rx_target *target,
                    const struct rx_packet *packet, enum ionic_status status)
{
	struct ionic_queue *queue = rx->queue;
	uint64_t features = rx->dev->lif.features;
	struct ionic_rxq_comp comp = {
	        .status = (uint8_t)status,
	        .comp_index = le16_make((uint16_t)queue->cons),
	};
	uint8_t raw[sizeof(comp)];

	if (packet) {
		comp.num_sg_elems = (uint8_t)(target->buffer_count - 1);
		comp.rss_hash = le32_make(rx->hash);
		comp.len = le16_make((uint16_t)packet->size);
		comp.pkt_type_color = rx->pkt_type;
		if (features & IONIC_FEATURE_RX_CSUM) {
			comp.csum[0] = (uint8_t)(packet->csum >> 8);
			comp.csum[1] = (uint8_t)packet->csum;
			comp.csum_flags |= IONIC_RXQ_CSUM_CALC;
		}
		if (rx->strip) {
			comp.vlan_tci = le16_make(rx->headers.vlan_tci);
			comp.csum_flags |= IONIC_RXQ_CSUM_VLAN;
		}
	}
	ionic_queue_advance(queue, 1);
	memcpy(raw, &comp, sizeof(raw));
	return ionic_queue_complete(queue, raw);
}

/* A descriptor that no frame can use: gone, in error, with the frame. */
static int spoil(const struct rx_common *rx, int reason, enum ionic_status status)
{
	if (rx->queue->enabled && complete(rx, NULL, NULL, status) &&
	    reason != IONIC_LIF_RX_DMA_ERROR)
		ionic_stats_inc(&rx->dev->stats, IONIC_LIF_RX_DMA_ERROR);
	return drop(rx, reason, -EIO);
}

/* Reads the next descriptor, and its list when the frame of SIZE bytes needs it. Returns 0, or the
 * result of the delivery when there is nothing to deliver into; -ENODEV: the device was reset. */
static int take_buffers(const struct rx_common *rx, struct rx_target *target, size_t size)
{
	struct ionic_queue *queue = rx->queue;
	struct ionic_rxq_desc desc = {0};

	if (ionic_queue_posted(queue) == 0)
		return drop(rx, IONIC_LIF_RX_QUEUE_EMPTY, -ENOBUFS);
	int error = ionic_queue_read_desc(queue, queue->cons, &desc, sizeof(desc));

	error = after_access(queue, error);
	if (!error && desc.opcode > IONIC_RXQ_SG) {
		counter_inc(&ionic_rx_bad_opcode);
		spoil(rx, IONIC_LIF_RX_DESC_DATA_ERROR, IONIC_RC_EINVAL);
		return -EIO;
	}
	target->bounce = false;
	target->buffer_count = 1;
	target->buffers[0] = (struct ionic_sg_elem){.addr = desc.addr, .len = desc.len};
	if (!error && le16_get(desc.len) < size && desc.opcode == IONIC_RXQ_SG && queue->has_sg)
		error = read_list(queue, target);
	if (error == -ENODEV)
		return error;
	if (error)
		return drop(rx, IONIC_LIF_RX_DESC_FETCH_ERROR, -EIO);
	if (!trim_buffers(target, size)) {
		counter_inc(&ionic_rx_too_small);
		return drop(rx, IONIC_LIF_RX_DESC_DATA_ERROR, -EMSGSIZE);
	}
	return 0;
}

static int deliver_one(struct rx_common *rx, struct rx_packet *packet)
{
	struct ionic_dev *dev = rx->dev;
	struct rx_target target;
	uint8_t bounce[RX_FRAME_MAX];

	rx->facts.size = (uint32_t)(packet->head_size + packet->rest_size);
	packet->size = rx->facts.size - (rx->strip ? NET_VLAN_HEADER : 0u);
	if (!rx->queue) {
		counter_inc(&ionic_rx_not_ready);
		return drop(rx, NO_REASON, -ENETDOWN);
	}
	int error = take_buffers(rx, &target, packet->size);

	if (error)
		return error;
	error = map_buffers(dev, &target, bounce);
	if (!error) {
		place(rx, &target, packet);
		if (target.bounce)
			error = write_bounced(rx->queue, &target);
	}
	if (error == -ENODEV)
		return error;
	if (error)
		return spoil(rx, IONIC_LIF_RX_DMA_ERROR, IONIC_RC_BAD_ADDR);
	if (complete(rx, &target, packet, IONIC_RC_SUCCESS))
		return drop(rx, IONIC_LIF_RX_DMA_ERROR, -EIO);
	ionic_stats_rx(&dev->stats, &rx->facts);
	return 0;
}

/* ---- from the wire ---- */

/* A frame that is complete but perhaps for a checksum. */
static int deliver_frame(struct rx_common *rx)
{
	const struct net_frame *frame = rx->frame;
	uint8_t head[NET_HEAD_MAX];
	struct rx_packet packet = {
	        .head = head,
	        .head_size = NET_ETH_HEADER + (rx->strip ? NET_VLAN_HEADER : 0u),
	        .fill = frame->csum_partial,
	};

	if (frame->csum_partial) {
		packet.csum_start = frame->csum_start;
		packet.csum_field = (size_t)frame->csum_start + frame->csum_offset;
		if (packet.head_size < packet.csum_field + 2)
			packet.head_size = packet.csum_field + 2;
	}
	if (packet.head_size > sizeof(head) || packet.csum_start > packet.head_size) {
		counter_inc(&ionic_rx_bad_notes);
		return drop(rx, NO_REASON, -EBADMSG);
	}
	iov_to_buf(frame->iov, frame->iov_count, 0, head, packet.head_size);
	packet.rest_offset = packet.head_size;
	packet.rest_size = frame->size - packet.head_size;
	return deliver_one(rx, &packet);
}

/* A large packet, segment by segment. Returns 0 when the guest got any: TCP repairs the rest. */
static int deliver_segments(struct rx_common *rx, struct net_cut *cut)
{
	struct rx_packet packet = {
	        .head = cut->header,
	        .head_size = cut->header_size,
	        .fill = true,
	        .csum_start = rx->frame->csum_start,
	        .csum_field = (size_t)rx->frame->csum_start + rx->frame->csum_offset,
	};
	int result = -ENOBUFS;

	while (net_cut_next(cut)) {
		packet.rest_offset = cut->payload_offset;
		packet.rest_size = cut->payload_size;
		int error = deliver_one(rx, &packet);

		if (error == -ENODEV)
			return error; /* reset: nobody is there for the rest */
		if (!error)
			result = 0;
		else if (result)
			result = error;
	}
	return result;
}

static void note_facts(struct rx_common *rx, const uint8_t *head)
{
	memcpy(rx->facts.dst, head, sizeof(rx->facts.dst));
	rx->facts.size = (uint32_t)rx->frame->size;
	rx->facts.tagged = rx->headers.vlan_tags > 0;
	rx->facts.pcp = (uint8_t)(rx->headers.vlan_tci >> 13);
}

/* The filters do not want the frame, or none of the segments of CUT. */
static void count_filtered(struct rx_common *rx, struct net_cut *cut)
{
	if (!cut) {
		ionic_stats_rx_filtered(&rx->dev->stats, &rx->facts);
		return;
	}
	while (net_cut_next(cut)) {
		rx->facts.size = (uint32_t)(cut->header_size + cut->payload_size);
		ionic_stats_rx_filtered(&rx->dev->stats, &rx->facts);
	}
}

static int receive(struct rx_common *rx, const uint8_t *head, size_t head_size)
{
	struct ionic_dev *dev = rx->dev;
	const struct net_frame *frame = rx->frame;
	struct net_cut cut;
	bool large = frame->gso != NET_GSO_NONE;
	size_t size = frame->size; /* of the largest frame on the wire */

	if (large) {
		if (net_cut_begin(&cut, frame)) {
			counter_inc(&ionic_rx_bad_notes);
			return -EBADMSG;
		}
		if (size > (size_t)frame->hdr_size + frame->gso_size)
			size = (size_t)frame->hdr_size + frame->gso_size;
	}
	if (size > ionic_max_frame(dev) || size > RX_FRAME_MAX) {
		ionic_stats_rx_oversize(&dev->stats);
		return -EMSGSIZE;
	}
	net_headers_parse(head, head_size, &rx->headers);
	note_facts(rx, head);
	if (!ionic_filter_accept(dev, rx->facts.dst, &rx->headers)) {
		count_filtered(rx, large ? &cut : NULL);
		return 0;
	}
	rx->strip = dev->lif.features & IONIC_FEATURE_VLAN_RX_STRIP && rx->headers.vlan_tags > 0 &&
	            rx->headers.vlan_tpid == 0x8100;
	steer(rx, head, head_size);
	if (!large)
		return deliver_frame(rx);
	return has_to_wait(rx, cut.count) ? -EAGAIN : deliver_segments(rx, &cut);
}

int ionic_rx_deliver(struct net_port *port, const struct net_frame *frame)
{
	struct ionic_dev *dev = container_of(port, struct ionic_dev, port);
	struct rx_common rx = {.dev = dev, .frame = frame};
	uint8_t copy[NET_HEADERS_MAX];
	size_t size = frame->size < sizeof(copy) ? frame->size : sizeof(copy);

	assert(!frame->vlan); /* we do not take NET_OFFLOAD_VLAN */
	if (!dev->lif.initialized || !ionic_link_up(dev)) {
		counter_inc(&ionic_rx_not_ready);
		return -ENETDOWN;
	}
	if (frame->iov[0].iov_len >= size)
		return receive(&rx, frame->iov[0].iov_base, frame->iov[0].iov_len);
	iov_to_buf(frame->iov, frame->iov_count, 0, copy, size);
	return receive(&rx, copy, size);
}

void ionic_rx_update_offloads(struct ionic_dev *dev)
{
	/* Whatever the guest has asked for, we cut and sum while we copy. */
	net_port_set_offloads(&dev->port, NET_OFFLOAD_CSUM | NET_OFFLOAD_TSO4 | NET_OFFLOAD_TSO6);
	if (dev->lif.rx_wanted > 0) { /* its queue may be another one now, or gone */
		dev->lif.rx_wanted = 0;
		net_port_ready(&dev->port);
	}
}
