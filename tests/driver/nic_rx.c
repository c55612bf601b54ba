// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Receive of the driver model: posts buffers of MTU + 18 bytes, cut at pages, and puts frames
 * together from completions (spec ionic-ethernet 8).
 *
 * The buffers of a slot never move. Small ones begin at odd places inside their 2 KiB, the pages of
 * large ones are posted last to first, so that a device that ignores an address cannot pass.
 */
#include "nic.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

/* Linux refills when an eighth of the ring, or 16, are free. */
#define NIC_RX_REFILL 16

size_t nic_rx_capacity(const struct nic *nic)
{
	return nic->options.mtu + 18;
}

/* Address and size of piece INDEX of a slot's buffers; size 0 behind the last. */
static uint64_t nic_rx_piece(const struct nic *nic, const struct nic_queue *queue, uint32_t slot,
                             unsigned index, size_t *size)
{
	size_t capacity = nic_rx_capacity(nic);
	size_t pages = (capacity + RAM_PAGE - 1) / RAM_PAGE;

	if (capacity <= 2048) {
		*size = index ? 0 : capacity;
		return queue->data + 2048ull * slot + slot * 7 % (2048 - capacity + 1);
	}
	if (index >= pages) {
		*size = 0;
		return 0;
	}
	*size = index + 1 < pages ? RAM_PAGE : capacity - (pages - 1) * RAM_PAGE;
	return queue->data + RAM_PAGE * (pages * slot + (pages - 1 - index));
}

static void nic_rx_write_desc(struct nic *nic, struct nic_queue *queue, uint32_t slot)
{
	struct rx_desc *desc = ram_at(&nic->ram, queue->desc + sizeof(*desc) * slot);
	struct sg_elem *sg = ram_at(&nic->ram, queue->sg + (uint64_t)RX_SG_STRIDE * slot);
	size_t size;
	uint64_t addr = nic_rx_piece(nic, queue, slot, 0, &size);

	*desc = (struct rx_desc){.len = le16_make((uint16_t)size), .addr = le64_make(addr)};
	for (unsigned i = 1; i <= RX_SG_MAX; i++) {
		addr = nic_rx_piece(nic, queue, slot, i, &size);
		if (size)
			desc->opcode = 1;
		/* The element behind the last is zero and ends the list (8.1). */
		sg[i - 1] = (struct sg_elem){.addr = le64_make(size ? addr : 0),
		                             .len = le16_make((uint16_t)size)};
		if (!size)
			break;
	}
}

int nic_rx_post(struct nic *nic, struct nic_pair *pair, unsigned count)
{
	struct nic_queue *queue = &pair->rx;
	uint32_t room = nic_queue_room(queue);

	if (count > room)
		count = room;
	if (!count)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		nic_rx_write_desc(nic, queue, queue->head);
		queue->head = nic_queue_next(queue, queue->head);
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return nic_doorbell(nic, queue->hw_type, DB_VALUE(queue->hw_index, queue->head));
}

int nic_rx_fill(struct nic *nic, struct nic_pair *pair)
{
	return nic_rx_post(nic, pair, UINT32_MAX);
}

/* ---- completions ---- */

static int nic_rx_check(struct nic *nic, const struct nic_queue *queue, const struct rx_comp *comp)
{
	size_t size = le16_get(comp->len), piece, sum = 0;
	unsigned used = 0;

	if (le16_get(comp->comp_index) != queue->tail || queue->tail == queue->head)
		return nic_complain(nic, "RXQ %u completion of slot %u, expected %u of [%u, %u)",
		                    queue->index, le16_get(comp->comp_index), queue->tail,
		                    queue->tail, queue->head);
	if (comp->status)
		return 0;
	if (size > nic_rx_capacity(nic))
		return nic_complain(nic, "RXQ %u frame of %zu bytes in a buffer of %zu",
		                    queue->index, size, nic_rx_capacity(nic));
	do {
		nic_rx_piece(nic, queue, queue->tail, used, &piece);
		sum += piece;
		used++;
	} while (sum < size);
	if (comp->num_sg != used - 1)
		return nic_complain(nic, "RXQ %u frame of %zu bytes in %u SG elements",
		                    queue->index, size, comp->num_sg);
	return 0;
}

static void nic_rx_copy(struct nic *nic, const struct nic_queue *queue, const struct rx_comp *comp,
                        struct nic_frame *frame)
{
	size_t done = 0;

	*frame = (struct nic_frame){.queue = queue->index,
	                            .status = comp->status,
	                            .csum_flags = comp->csum_flags,
	                            .type = comp->type_color & (uint8_t)~COLOR_MASK,
	                            .num_sg = comp->num_sg,
	                            .csum = be16_get(comp->csum),
	                            .vlan_tci = le16_get(comp->vlan_tci),
	                            .hash = le32_get(comp->rss_hash),
	                            .size = comp->status ? 0 : le16_get(comp->len)};
	for (unsigned i = 0; done < frame->size; i++) {
		size_t size;
		uint64_t addr = nic_rx_piece(nic, queue, queue->tail, i, &size);

		if (size > frame->size - done)
			size = frame->size - done;
		memcpy(frame->data + done, ram_at(&nic->ram, addr), size);
		done += size;
	}
}

int nic_rx_take(struct nic *nic, struct nic_pair *pair, struct nic_frame *frame)
{
	struct nic_queue *queue = &pair->rx;
	const struct rx_comp *entry = nic_pair_awake(nic, pair) ? nic_queue_peek(nic, queue) : NULL;
	struct rx_comp comp;
	int err;

	if (!entry)
		return 0;
	comp = *entry;
	err = nic_rx_check(nic, queue, &comp);
	if (err)
		return err;
	if (frame)
		nic_rx_copy(nic, queue, &comp, frame);
	nic_queue_consume(queue);
	queue->tail = nic_queue_next(queue, queue->tail);
	pair->work++;
	pair->rx_frames++;
	if (pair->work >= 64) {
		err = nic_pair_credits(nic, pair, false);
		if (err)
			return err;
	}
	if (nic_queue_room(queue) >=
	    (queue->entries / 8 < NIC_RX_REFILL ? queue->entries / 8 : NIC_RX_REFILL))
		err = nic_rx_fill(nic, pair);
	return err ? err : 1;
}

/* Looks at every pair once, beginning behind the one that had the last frame. */
static int nic_rx_take_any(struct nic *nic, struct nic_frame *frame)
{
	for (unsigned i = 0; i < nic->pair_count; i++) {
		unsigned index = (nic->rx_next + i) % nic->pair_count;
		int err = nic_rx_take(nic, &nic->pair[index], frame);

		if (err) {
			nic->rx_next = (index + 1) % nic->pair_count;
			return err;
		}
	}
	return 0;
}

/* Unmasks all pairs and waits for one of their interrupts; -ETIMEDOUT when none comes, whatever
 * has. */
static int nic_rx_wait(struct nic *nic, int64_t deadline)
{
	struct pollfd fds[NIC_PAIRS_MAX + 1];
	int64_t left = deadline - nic_now_ms();
	uint64_t count;
	int ready, err = 0;

	for (unsigned i = 0; i < nic->pair_count && !err; i++) {
		struct nic_pair *pair = &nic->pair[i];

		fds[i] = (struct pollfd){pair->eventfd, POLLIN, 0};
		if (!pair->armed || pair->work)
			err = nic_pair_credits(nic, pair, true);
	}
	if (err)
		return err;
	fds[nic->pair_count] = (struct pollfd){nic->vfu->fd, POLLIN, 0};
	ready = poll(fds, nic->pair_count + 1, left > 0 ? (int)left : 0);
	if (ready < 0)
		return errno == EINTR ? 0 : -errno;
	if (ready == 0) {
		for (unsigned i = 0; i < nic->pair_count; i++)
			nic_pair_late(nic, &nic->pair[i]);
		return -ETIMEDOUT;
	}
	for (unsigned i = 0; i < nic->pair_count; i++) {
		if (!fds[i].revents || eventfd_read(nic->pair[i].eventfd, &count) < 0)
			continue;
		nic->pair[i].irqs++;
		nic->pair[i].armed = false;
	}
	return fds[nic->pair_count].revents ? vfu_service(nic->vfu) : 0;
}

int nic_recv_timeout(struct nic *nic, struct nic_frame *frame, int timeout_ms)
{
	int64_t deadline = nic_now_ms() + timeout_ms;

	for (;;) {
		int err = nic_rx_take_any(nic, frame);

		if (err)
			return err < 0 ? err : 0;
		if (nic_now_ms() >= deadline)
			return -ETIMEDOUT;
		err = nic->options.polled ? vfu_service(nic->vfu) : nic_rx_wait(nic, deadline);
		if (err)
			return err;
	}
}

int nic_recv(struct nic *nic, struct nic_frame *frame)
{
	return nic_recv_timeout(nic, frame, nic->options.timeout_ms);
}
