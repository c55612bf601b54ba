// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transmit of the driver model: cuts a packet into pieces of guest memory and the pieces into
 * descriptors, for TSO one descriptor a segment (spec ionic-ethernet 7.6).
 */
#include "nic.h"

#include <errno.h>
#include <string.h>

#define NIC_PIECES_MAX 128
/* Unused bytes between two pieces, so that reading on beyond the end of one shows in the frame. */
#define NIC_PIECE_GAP  3

struct nic_piece {
	uint64_t addr;
	size_t size;
};

struct nic_gather {
	struct nic_piece piece[NIC_PIECES_MAX];
	unsigned count;
	/* where the next descriptor begins */
	unsigned at;
	size_t offset;
};

/* ---- data area: a ring of bytes in which a packet does not wrap ---- */

static int nic_data_take(struct nic_pair *pair, size_t size, uint64_t *addr)
{
	size_t area = pair->tx.data_size;
	uint64_t head = pair->data_head;

	if (area - head % area < size)
		head += area - head % area;
	if (size > area || head + size - pair->data_tail > area)
		return -EAGAIN;
	*addr = pair->tx.data + head % area;
	pair->data_head = head + size;
	return 0;
}

/* Copies the packet to guest memory, piece by piece, or finds the pieces there. */
static int nic_gather(struct nic *nic, struct nic_pair *pair, const struct nic_packet *packet,
                      struct nic_gather *gather)
{
	size_t first = packet->linear ? packet->linear
	               : packet->mss  ? packet->hdr_size
	                              : packet->size;
	size_t further = packet->fragment ? packet->fragment : 4096;
	size_t done = 0, need;
	uint64_t addr;
	int err;

	if (first > packet->size)
		first = packet->size;
	gather->count = 1 + (unsigned)((packet->size - first + further - 1) / further);
	if (gather->count > NIC_PIECES_MAX)
		return -EMSGSIZE;
	need = packet->size + (size_t)gather->count * NIC_PIECE_GAP;
	addr = packet->resident;
	err = addr ? 0 : nic_data_take(pair, need, &addr);
	if (err)
		return err;
	for (unsigned i = 0; i < gather->count; i++) {
		size_t size = i == 0 ? first : further;

		if (size > packet->size - done)
			size = packet->size - done;
		gather->piece[i] = (struct nic_piece){addr, size};
		if (!packet->resident) {
			memcpy(ram_at(&nic->ram, addr), (const uint8_t *)packet->frame + done,
			       size);
			addr += NIC_PIECE_GAP;
		}
		addr += size;
		done += size;
	}
	gather->at = 0;
	gather->offset = 0;
	return 0;
}

/* Takes the next SIZE bytes into OUT; fewer than SIZE at the end. Returns the number of pieces, or
 * -EMSGSIZE. */
static int nic_gather_next(struct nic_gather *gather, size_t size, struct nic_piece *out,
                           unsigned max)
{
	unsigned count = 0;

	while (size && gather->at < gather->count) {
		struct nic_piece *piece = &gather->piece[gather->at];
		size_t part = piece->size - gather->offset;

		if (count == max)
			return -EMSGSIZE;
		if (part > size)
			part = size;
		out[count++] = (struct nic_piece){piece->addr + gather->offset, part};
		size -= part;
		gather->offset += part;
		if (gather->offset == piece->size) {
			gather->at++;
			gather->offset = 0;
		}
	}
	return (int)count;
}

/* ---- descriptors ---- */

static void nic_tx_write_desc(struct nic *nic, struct nic_queue *queue, const struct tx_desc *shape,
                              uint64_t cmd, const struct nic_piece *pieces, unsigned count)
{
	struct tx_desc *desc = ram_at(&nic->ram, queue->desc + sizeof(*desc) * queue->head);
	struct sg_elem *sg = ram_at(&nic->ram, queue->sg + (uint64_t)TX_SG_STRIDE * queue->head);

	for (unsigned i = 1; i < count; i++) {
		sg[i - 1].addr = le64_make(pieces[i].addr);
		sg[i - 1].len = le16_make((uint16_t)pieces[i].size);
	}
	*desc = *shape;
	desc->len = le16_make((uint16_t)pieces[0].size);
	desc->cmd = le64_make(cmd | (uint64_t)(count - 1) << 8 | pieces[0].addr << 12);
}

static void nic_tx_account(struct nic_pair *pair, bool last)
{
	pair->slots[pair->tx.head] = (struct nic_tx_slot){pair->data_head, last};
	pair->tx.head = nic_queue_next(&pair->tx, pair->tx.head);
}

static int nic_tx_plain(struct nic *nic, struct nic_pair *pair, const struct nic_packet *packet,
                        struct nic_gather *gather)
{
	struct nic_piece pieces[1 + TX_SG_MAX];
	struct tx_desc shape = {.vlan_tci = le16_make(packet->vlan_tci),
	                        .csum_start = le16_make(packet->csum_start),
	                        .csum_offset = le16_make(packet->csum_offset)};
	uint64_t cmd = TX_CMD(packet->csum ? TX_CSUM_PARTIAL : TX_CSUM_NONE,
	                      packet->vlan ? TX_FLAG_VLAN : 0, 0, 0);
	int count = nic_gather_next(gather, packet->size, pieces, ARRAY_SIZE(pieces));

	if (count < 0)
		return count;
	nic_tx_write_desc(nic, &pair->tx, &shape, cmd, pieces, (unsigned)count);
	nic_tx_account(pair, true);
	return 0;
}

static int nic_tx_tso(struct nic *nic, struct nic_pair *pair, const struct nic_packet *packet,
                      struct nic_gather *gather)
{
	struct nic_piece pieces[1 + TX_SG_MAX];
	struct tx_desc shape = {.vlan_tci = le16_make(packet->vlan_tci),
	                        .csum_start = le16_make(packet->hdr_size),
	                        .csum_offset = le16_make(packet->mss)};
	uint32_t head = pair->tx.head;
	size_t done = 0;

	while (done < packet->size) {
		size_t size = (done ? 0 : packet->hdr_size) + (size_t)packet->mss;
		unsigned flags = packet->vlan ? TX_FLAG_VLAN : 0;
		int count;

		if (size > packet->size - done)
			size = packet->size - done;
		flags |= done ? 0 : TX_FLAG_SOT;
		flags |= done + size == packet->size ? TX_FLAG_EOT : 0;
		count = nic_gather_next(gather, size, pieces, ARRAY_SIZE(pieces));
		if (count < 0) {
			pair->tx.head = head;
			return count;
		}
		nic_tx_write_desc(nic, &pair->tx, &shape, TX_CMD(TX_TSO, flags, 0, 0), pieces,
		                  (unsigned)count);
		nic_tx_account(pair, done + size == packet->size);
		done += size;
	}
	return 0;
}

static uint32_t nic_tx_descs(const struct nic_packet *packet)
{
	if (!packet->mss || packet->size <= packet->hdr_size)
		return 1;
	return (uint32_t)((packet->size - packet->hdr_size + packet->mss - 1) / packet->mss);
}

int nic_tx_post(struct nic *nic, struct nic_pair *pair, const struct nic_packet *packet)
{
	struct nic_gather gather;
	uint64_t data_head = pair->data_head;
	int err;

	if (packet->size > NIC_PACKET_MAX || (!packet->mss && packet->size > 65535))
		return -EMSGSIZE;
	if (nic_queue_room(&pair->tx) < nic_tx_descs(packet))
		return -EAGAIN;
	err = nic_gather(nic, pair, packet, &gather);
	if (err)
		return err;
	err = packet->mss ? nic_tx_tso(nic, pair, packet, &gather)
	                  : nic_tx_plain(nic, pair, packet, &gather);
	if (err)
		pair->data_head = data_head;
	return err;
}

int nic_tx_ring(struct nic *nic, struct nic_pair *pair)
{
	/* Descriptors are in memory before the device hears of them. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return nic_doorbell(nic, pair->tx.hw_type, DB_VALUE(pair->tx.hw_index, pair->tx.head));
}

/* ---- completions ---- */

/* Takes back the descriptors up to and including SLOT. */
static int nic_tx_complete(struct nic *nic, struct nic_pair *pair, uint16_t slot)
{
	struct nic_queue *queue = &pair->tx;
	uint32_t mask = queue->entries - 1;
	uint32_t outstanding = (queue->head - queue->tail) & mask;

	if (slot > mask || ((slot - queue->tail) & mask) >= outstanding)
		return nic_complain(nic, "TXQ %u completion of slot %u outside [%u, %u)",
		                    queue->index, slot, queue->tail, queue->head);
	if (!pair->slots[slot].last)
		return nic_complain(nic, "TXQ %u completion of slot %u inside a packet",
		                    queue->index, slot);
	pair->data_tail = pair->slots[slot].data_end;
	do {
		pair->tx_packets += pair->slots[queue->tail].last;
		queue->tail = nic_queue_next(queue, queue->tail);
	} while (queue->tail != ((slot + 1u) & mask));
	return 0;
}

int nic_tx_reap(struct nic *nic, struct nic_pair *pair, unsigned limit)
{
	unsigned reaped = 0;

	if (!nic_pair_awake(nic, pair))
		return 0;
	while (reaped < limit) {
		const uint8_t *comp = nic_queue_peek(nic, &pair->tx);
		int err;

		if (!comp)
			break;
		err = nic_tx_complete(nic, pair, (uint16_t)(comp[2] | comp[3] << 8));
		if (err)
			return err;
		nic_queue_consume(&pair->tx);
		pair->work++;
		reaped++;
	}
	return (int)reaped;
}

int nic_tx_flush(struct nic *nic, struct nic_pair *pair)
{
	int64_t deadline = nic_now_ms() + nic->options.timeout_ms;

	for (;;) {
		int err = nic_tx_reap(nic, pair, UINT32_MAX);

		if (err < 0)
			return err;
		if (pair->tx.tail == pair->tx.head)
			return 0;
		if (nic_now_ms() >= deadline)
			return -ETIMEDOUT;
		err = nic_pair_wait(nic, pair, deadline);
		if (err)
			return err;
	}
}

int nic_send(struct nic *nic, unsigned index, const struct nic_packet *packet)
{
	struct nic_pair *pair = &nic->pair[index];
	int err = nic_tx_post(nic, pair, packet);

	if (!err)
		err = nic_tx_ring(nic, pair);
	return err ? err : nic_tx_flush(nic, pair);
}

int nic_send_frame(struct nic *nic, const void *frame, size_t size)
{
	const struct nic_packet packet = {.frame = frame, .size = size};

	return nic_send(nic, 0, &packet);
}
