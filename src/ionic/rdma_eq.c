/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues: rings of four bytes each that nobody acknowledges (spec ionic-rdma 4).
 *
 * The driver tells neither how far it has read nor that it is done; all there is are the credits of
 * the queue's vector, and these never fall below the number of entries that it may not have seen
 * (intr.c). So an entry is written while there are fewer credits than entries in the ring: lapping
 * the driver would turn the color that it waits for, for ever. What does not fit waits in a list
 * until credits come back.
 *
 * A source of events (a CQ, a QP) stands in the list at most once, with a bit for each of its
 * events. So events need no memory of their own, and the same event twice before the driver hears
 * of it is one.
 */
#include "rdma_lif.h"

#include <errno.h>

COUNTER(ionic_eq_bad_id, "RDMA_CREATE_EQ of an event queue that does not exist");
COUNTER(ionic_eq_busy, "RDMA_CREATE_EQ of an event queue that is there");
COUNTER(ionic_eq_bad_intr, "RDMA_CREATE_EQ with an interrupt that does not exist");
COUNTER(ionic_eq_bad_ring, "RDMA_CREATE_EQ with a ring that cannot be");
COUNTER(ionic_eq_lost, "events that did not reach guest memory");
COUNTER(ionic_eq_nobody, "events for which there is no event queue");
COUNTER(ionic_eq_full, "times that events had to wait for the driver to read others");

struct ionic_eq *ionic_eq_find(struct ionic_rdma *rdma, uint32_t id)
{
	if (id >= rdma->dev->profile.rdma_eqs || !rdma->eqs[id].exists)
		return NULL;
	return &rdma->eqs[id];
}

static uint32_t eq_number(const struct ionic_eq *eq)
{
	return (uint32_t)(eq - eq->rdma->eqs);
}

enum ionic_status ionic_eq_create(struct ionic_rdma *rdma, uint32_t id, const union ionic_cmd *cmd)
{
	uint32_t intr = le32_get(cmd->rdma_queue.cid);
	uint64_t base = le64_get(cmd->rdma_queue.dma_addr);
	uint8_t depth = cmd->rdma_queue.depth_log2;

	if (id >= rdma->dev->profile.rdma_eqs)
		return ionic_refuse(&ionic_eq_bad_id, IONIC_RC_EQID);
	if (rdma->eqs[id].exists)
		return ionic_refuse(&ionic_eq_busy, IONIC_RC_EEXIST);
	if (intr >= rdma->dev->profile.intr_vectors)
		return ionic_refuse(&ionic_eq_bad_intr, IONIC_RC_EINVAL);
	if (cmd->rdma_queue.stride_log2 != IONIC_RDMA_EQE_SHIFT || depth == 0 ||
	    depth > IONIC_RDMA_DEPTH_MAX || base % sizeof(be32) != 0 || base >= IONIC_ADDR_END)
		return ionic_refuse(&ionic_eq_bad_ring, IONIC_RC_EINVAL);
	rdma->eqs[id] = (struct ionic_eq){.rdma = rdma,
	                                  .exists = true,
	                                  .intr_index = (uint16_t)intr,
	                                  .base = base,
	                                  .depth_log2 = depth};
	TAILQ_INIT(&rdma->eqs[id].pending);
	return IONIC_RC_SUCCESS;
}

void ionic_eq_clear(struct ionic_eq *eq)
{
	if (!eq->exists)
		return;
	/* What the driver has not seen it will never look for. */
	ionic_intr_forget(eq->rdma->dev, eq->intr_index);
	*eq = (struct ionic_eq){.exists = false};
}

/* ---- events ---- */

void ionic_eq_raise(struct ionic_rdma *rdma, struct ionic_event_source *source, unsigned code)
{
	struct ionic_eq *eq = source->eq;

	assert(code < 16);
	if (!eq) {
		counter_inc(&ionic_eq_nobody);
		return;
	}
	source->codes |= (uint16_t)(1u << code);
	if (source->queued)
		return;
	source->queued = true;
	TAILQ_INSERT_TAIL(&eq->pending, source, link);
	rdma->eqs_pending |= 1u << eq_number(eq);
	ionic_dev_schedule(rdma->dev);
}

void ionic_eq_forget(struct ionic_event_source *source)
{
	if (source->queued)
		TAILQ_REMOVE(&source->eq->pending, source, link);
	source->queued = false;
	source->codes = 0;
}

static void eq_write(struct ionic_eq *eq, const struct ionic_event_source *source, unsigned code)
{
	struct ionic_rdma *rdma = eq->rdma;
	uint32_t slot = eq->prod & ((1u << eq->depth_log2) - 1);
	uint32_t color = eq->prod >> eq->depth_log2 & 1 ? 0 : IONIC_RDMA_EQE_COLOR;
	uint32_t entry = source->id << IONIC_RDMA_EQE_ID_SHIFT | code << IONIC_RDMA_EQE_CODE_SHIFT |
	                 (uint32_t)source->type << IONIC_RDMA_EQE_TYPE_SHIFT | color;

	eq->prod++;
	eq->written++;
	if (ionic_rdma_store32(rdma, eq->base + slot * sizeof(be32), be32_make(entry)) < 0)
		counter_inc(&ionic_eq_lost);
	else
		ionic_intr_post(rdma->dev, eq->intr_index, 1);
}

static bool eq_has_room(struct ionic_eq *eq)
{
	if (ionic_intr_credits(eq->rdma->dev, eq->intr_index) < (1u << eq->depth_log2) - 1)
		return true;
	counter_inc(&ionic_eq_full);
	eq->deferred++;
	eq->rdma->eqs_deferred = true;
	return false;
}

/* The next event, taken out of the list. */
static unsigned take_event(struct ionic_eq *eq, struct ionic_event_source *source)
{
	unsigned code = (unsigned)__builtin_ctz(source->codes);

	source->codes &= (uint16_t)(source->codes - 1);
	if (source->codes == 0) {
		TAILQ_REMOVE(&eq->pending, source, link);
		source->queued = false;
	}
	return code;
}

void ionic_eq_flush(struct ionic_eq *eq)
{
	struct ionic_event_source *source;

	while (!eq->rdma->reset_pending && (source = TAILQ_FIRST(&eq->pending))) {
		if (!eq_has_room(eq))
			return;
		eq_write(eq, source, take_event(eq, source));
	}
	eq->rdma->eqs_pending &= ~(1u << eq_number(eq));
}
