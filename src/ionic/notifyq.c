/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The NotifyQ: events to the driver (spec ionic-ethernet 5.4).
 *
 * A ring of events without doorbell, color or flow control: an event counts when its number is
 * greater than the last one that the driver saw. Only link changes and resets are told; drivers
 * complain about everything else.
 */
#include "ionic_internal.h"

#include <errno.h>

COUNTER(ionic_event_lost, "events that did not reach guest memory");

/* The events stand behind the descriptors, which nobody uses, on the next page. */
static uint64_t event_addr(const struct ionic_queue *queue)
{
	uint64_t descs = (uint64_t)queue->entries * IONIC_NOTIFYQ_DESC_SIZE;
	uint64_t pages = (descs + IONIC_NOTIFYQ_PAGE - 1) / IONIC_NOTIFYQ_PAGE;

	return queue->ring_base + pages * IONIC_NOTIFYQ_PAGE +
	       queue->cq_pos * sizeof(union ionic_event);
}

/* The number goes last, when the rest is there. */
static int event_write(struct ionic_queue *queue, uint64_t addr, const union ionic_event *event)
{
	struct guest_mem *mem = queue->dev->mem;
	const size_t number = sizeof(event->any.eid);
	int rc;

	rc = guest_mem_write(mem, addr + number, event->bytes + number, sizeof(*event) - number);
	if (rc == 0 && !queue->initialized)
		rc = -ENODEV; /* reset while writing */
	return rc < 0 ? rc : guest_mem_post(mem, addr, event->bytes, number);
}

static void notifyq_post(struct ionic_dev *dev, union ionic_event *event)
{
	struct ionic_queue *queue = &dev->lif.notifyq;
	uint64_t addr;

	if (!queue->initialized || !queue->enabled)
		return;
	event->any.eid = le64_make(++dev->lif.event_id);
	addr = event_addr(queue);
	queue->cq_pos = (queue->cq_pos + 1) & (queue->entries - 1);
	queue->completions++;
	dev->count.events++;
	if (event_write(queue, addr, event) < 0)
		counter_inc(&ionic_event_lost);
	else if (queue->initialized && queue->raises)
		ionic_intr_post(dev, queue->intr_index, 1);
}

void ionic_notifyq_link(struct ionic_dev *dev)
{
	union ionic_event event = {.link = {
	                                   .ecode = le16_make(IONIC_EVENT_LINK_CHANGE),
	                                   .link_status = le16_make(dev->eth_port.link_up),
	                                   .link_speed = le32_make(dev->eth_port.link_speed),
	                           }};

	notifyq_post(dev, &event);
}

void ionic_notifyq_reset_event(struct ionic_dev *dev)
{
	union ionic_event event = {.reset = {.ecode = le16_make(IONIC_EVENT_RESET)}};

	notifyq_post(dev, &event);
}
