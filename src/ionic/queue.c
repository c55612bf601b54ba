/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all queues of the LIF have in common: Q_INIT, Q_CONTROL, doorbells, descriptors and
 * completions (spec ionic-ethernet 3.9, 3.10, 5.2, 6.3). adminq.c, notifyq.c, txq.c and rxq.c say
 * what the kinds do.
 *
 * Everything that a queue has been told is in struct ionic_queue; the rings stay in guest memory
 * and are looked at when a descriptor is taken, so that a ring without memory is no error before
 * that.
 */
#include "ionic_internal.h"

#include <errno.h>

COUNTER(ionic_q_bad_type, "Q_INIT or Q_CONTROL of a queue type that the path does not take");
COUNTER(ionic_q_bad_index, "Q_INIT or Q_CONTROL of a queue number that does not exist");
COUNTER(ionic_q_bad_version, "Q_INIT with another version than Q_IDENTIFY gave");
COUNTER(ionic_q_bad_pid, "Q_INIT for a doorbell page that is not the LIF's own");
COUNTER(ionic_q_bad_intr, "Q_INIT with an interrupt that does not exist");
COUNTER(ionic_q_bad_flags, "Q_INIT with unknown flags");
COUNTER(ionic_q_unsupported, "Q_INIT for rings in CMB, or with features that are not offered");
COUNTER(ionic_q_bad_size, "Q_INIT with a ring size out of range");
COUNTER(ionic_q_bad_addr, "Q_INIT with a ring that is misaligned or beyond the address bits");
COUNTER(ionic_q_absent, "Q_CONTROL of a queue without Q_INIT");
COUNTER(ionic_q_bad_oper, "Q_CONTROL with an unknown operation");
COUNTER(ionic_db_absent, "doorbells of queues without Q_INIT, ignored");
COUNTER(ionic_db_bad_index, "doorbells with an index beyond the ring, ignored");
COUNTER(ionic_cq_lost, "completions that did not reach guest memory");

#define Q_FLAGS (IONIC_Q_FLAG_IRQ | IONIC_Q_FLAG_ENA | IONIC_Q_FLAG_SG)

/* Doorbell slot of each type (spec Appendix A). */
static const uint8_t hw_types[IONIC_QTYPE_COUNT] = {
        [IONIC_QTYPE_ADMINQ] = IONIC_DB_ADMINQ,
        [IONIC_QTYPE_NOTIFYQ] = IONIC_DB_NOTIFYQ,
        [IONIC_QTYPE_RXQ] = IONIC_DB_RXQ,
        [IONIC_QTYPE_TXQ] = IONIC_DB_TXQ,
};

struct ionic_queue *ionic_queue_find(struct ionic_dev *dev, unsigned type, uint32_t index)
{
	struct ionic_lif *lif = &dev->lif;

	switch (type) {
	case IONIC_QTYPE_ADMINQ:
		return index == 0 ? &lif->adminq : NULL;
	case IONIC_QTYPE_NOTIFYQ:
		return index == 0 ? &lif->notifyq : NULL;
	case IONIC_QTYPE_RXQ:
		return index < dev->profile.eth_queues ? &lif->rxq[index] : NULL;
	case IONIC_QTYPE_TXQ:
		return index < dev->profile.eth_queues ? &lif->txq[index] : NULL;
	default:
		return NULL;
	}
}

void ionic_queue_clear(struct ionic_queue *queue)
{
	queue->initialized = false;
	queue->enabled = false;
	queue->entries = 1; /* nothing can be posted */
	queue->prod = 0;
	queue->cons = 0;
	queue->cq_pos = 0;
	if (queue->type == IONIC_QTYPE_TXQ)
		ionic_txq_reset(queue);
}

/* ---- the rings ---- */

int ionic_queue_read_desc(struct ionic_queue *queue, uint32_t slot, void *desc, size_t size)
{
	if (!queue->initialized)
		return -ENODEV;
	assert(slot < queue->entries);
	return guest_mem_read(queue->dev->mem, queue->ring_base + slot * size, desc, size);
}

/* The place is used up and the color turns even when the write fails: the ring may come back, and
 * the driver counts slots. */
static uint64_t comp_slot_take(struct ionic_queue *queue)
{
	uint64_t addr = queue->cq_base + (uint64_t)queue->cq_pos * IONIC_COMP_SIZE;

	queue->cq_pos = (queue->cq_pos + 1) & (queue->entries - 1);
	if (queue->cq_pos == 0)
		queue->color ^= IONIC_COMP_COLOR;
	queue->completions++;
	return addr;
}

int ionic_queue_complete(struct ionic_queue *queue, uint8_t comp[16])
{
	uint8_t color = queue->color;
	int rc;

	if (!queue->initialized)
		return -ENODEV;
	comp[15] = (uint8_t)((comp[15] & ~IONIC_COMP_COLOR) | color);
	rc = guest_mem_post(queue->dev->mem, comp_slot_take(queue), comp, IONIC_COMP_SIZE);
	if (rc < 0)
		counter_inc(&ionic_cq_lost);
	else if (queue->initialized && queue->raises)
		ionic_intr_post(queue->dev, queue->intr_index, 1);
	return rc;
}

/* ---- doorbells ---- */

void ionic_queue_doorbell(struct ionic_queue *queue, uint32_t prod)
{
	if (!queue->initialized) {
		counter_inc(&ionic_db_absent);
		if (queue->type == IONIC_QTYPE_TXQ)
			ionic_stats_inc(&queue->dev->stats, IONIC_LIF_TX_QUEUE_DISABLED);
		return;
	}
	if (prod >= queue->entries) {
		counter_inc(&ionic_db_bad_index);
		return;
	}
	/* Remembered also while the queue is disabled: receive queues are filled before they are
	 * enabled (spec 3.10). */
	queue->prod = prod;
	if (queue->type == IONIC_QTYPE_RXQ)
		ionic_rx_posted(queue);
	else if (ionic_queue_posted(queue) > 0)
		ionic_queue_make_ready(queue);
}

/* ---- Q_INIT ---- */

static bool ring_addr_valid(le64 base)
{
	uint64_t addr = le64_get(base);

	return addr % IONIC_Q_RING_ALIGN == 0 && addr < IONIC_ADDR_END;
}

static bool rings_valid(const union ionic_cmd *cmd)
{
	bool has_cq = cmd->q_init.type != IONIC_QTYPE_NOTIFYQ;
	bool has_sg = le16_get(cmd->q_init.flags) & IONIC_Q_FLAG_SG;

	return ring_addr_valid(cmd->q_init.ring_base) &&
	       (!has_cq || ring_addr_valid(cmd->q_init.cq_ring_base)) &&
	       (!has_sg || ring_addr_valid(cmd->q_init.sg_ring_base));
}

static enum ionic_status init_check(const struct ionic_dev *dev, const union ionic_cmd *cmd)
{
	uint16_t flags = le16_get(cmd->q_init.flags);
	uint8_t size = cmd->q_init.ring_size;

	if (cmd->q_init.ver != ionic_q_version(cmd->q_init.type))
		return ionic_refuse(&ionic_q_bad_version, IONIC_RC_EVERSION);
	if (le16_get(cmd->q_init.pid) != 0)
		return ionic_refuse(&ionic_q_bad_pid, IONIC_RC_EINVAL);
	if (flags & IONIC_Q_FLAG_CMB || le64_get(cmd->q_init.features) != 0)
		return ionic_refuse(&ionic_q_unsupported, IONIC_RC_ENOSUPP);
	if (flags & ~Q_FLAGS)
		return ionic_refuse(&ionic_q_bad_flags, IONIC_RC_EINVAL);
	if (flags & IONIC_Q_FLAG_IRQ &&
	    le16_get(cmd->q_init.intr_index) >= dev->profile.intr_vectors)
		return ionic_refuse(&ionic_q_bad_intr, IONIC_RC_EINVAL);
	if (size < IONIC_Q_RING_SIZE_MIN || size > IONIC_Q_RING_SIZE_MAX)
		return ionic_refuse(&ionic_q_bad_size, IONIC_RC_EINVAL);
	if (!rings_valid(cmd))
		return ionic_refuse(&ionic_q_bad_addr, IONIC_RC_BAD_ADDR);
	return IONIC_RC_SUCCESS;
}

/* Replaces whatever the queue was (spec 3.9). It may stand on the ready list: harmless. */
static void queue_setup(struct ionic_queue *queue, const union ionic_cmd *cmd)
{
	uint16_t flags = le16_get(cmd->q_init.flags);

	ionic_queue_clear(queue);
	queue->raises = flags & IONIC_Q_FLAG_IRQ;
	queue->has_sg = flags & IONIC_Q_FLAG_SG;
	queue->intr_index = le16_get(cmd->q_init.intr_index);
	queue->entries = 1u << cmd->q_init.ring_size;
	queue->ring_base = le64_get(cmd->q_init.ring_base);
	queue->cq_base = le64_get(cmd->q_init.cq_ring_base);
	queue->sg_base = le64_get(cmd->q_init.sg_ring_base);
	queue->color = IONIC_COMP_COLOR;
	queue->descs = 0;
	queue->completions = 0;
	queue->initialized = true;
	queue->enabled = flags & IONIC_Q_FLAG_ENA;
	if (queue->type == IONIC_QTYPE_NOTIFYQ)
		queue->dev->lif.event_id = 0; /* the driver expects number 1 next (spec 5.4) */
	if (queue->type == IONIC_QTYPE_RXQ)
		ionic_rx_update_offloads(queue->dev);
}

static enum ionic_status queue_init(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                    union ionic_comp *comp)
{
	struct ionic_queue *queue;
	enum ionic_status status;

	queue = ionic_queue_find(dev, cmd->q_init.type, le32_get(cmd->q_init.index));
	if (!queue)
		return ionic_refuse(&ionic_q_bad_index, IONIC_RC_EQID);
	status = init_check(dev, cmd);
	if (status != IONIC_RC_SUCCESS)
		return status;
	queue_setup(queue, cmd);
	comp->q_init.hw_index = le32_make(queue->index);
	comp->q_init.hw_type = hw_types[queue->type];
	return IONIC_RC_SUCCESS;
}

/* The AdminQ is made by device command, all others through it. */
enum ionic_status ionic_cmd_devcmd_q_init(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                          union ionic_comp *comp)
{
	if (cmd->q_init.type != IONIC_QTYPE_ADMINQ)
		return ionic_refuse(&ionic_q_bad_type, IONIC_RC_EQTYPE);
	return queue_init(dev, cmd, comp);
}

enum ionic_status ionic_cmd_adminq_q_init(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                          union ionic_comp *comp)
{
	if (cmd->q_init.type == IONIC_QTYPE_ADMINQ || cmd->q_init.type >= IONIC_QTYPE_COUNT)
		return ionic_refuse(&ionic_q_bad_type, IONIC_RC_EQTYPE);
	return queue_init(dev, cmd, comp);
}

/* ---- Q_CONTROL ---- */

/* Everything else survives: a link flap disables and enables without Q_INIT (spec 3.10). */
static void queue_enable(struct ionic_queue *queue, bool enabled)
{
	queue->enabled = enabled;
	if (queue->type == IONIC_QTYPE_RXQ)
		ionic_rx_update_offloads(queue->dev);
	if (enabled && queue->type == IONIC_QTYPE_TXQ && ionic_queue_posted(queue) > 0)
		ionic_queue_make_ready(queue);
}

enum ionic_status ionic_cmd_q_control(struct ionic_dev *dev, const union ionic_cmd *cmd,
                                      union ionic_comp *comp)
{
	uint8_t type = cmd->q_control.type;
	struct ionic_queue *queue;

	(void)comp;
	/* A disabled AdminQ could not be asked to come back. */
	if (type == IONIC_QTYPE_ADMINQ || type >= IONIC_QTYPE_COUNT)
		return ionic_refuse(&ionic_q_bad_type, IONIC_RC_EQTYPE);
	queue = ionic_queue_find(dev, type, le32_get(cmd->q_control.index));
	if (!queue)
		return ionic_refuse(&ionic_q_bad_index, IONIC_RC_EQID);
	if (!queue->initialized)
		return ionic_refuse(&ionic_q_absent, IONIC_RC_ENOENT);
	if (cmd->q_control.oper > IONIC_Q_ENABLE)
		return ionic_refuse(&ionic_q_bad_oper, IONIC_RC_EINVAL);
	queue_enable(queue, cmd->q_control.oper == IONIC_Q_ENABLE);
	return IONIC_RC_SUCCESS;
}
