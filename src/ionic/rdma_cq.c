/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues (spec ionic-rdma 5).
 *
 * A CQ is written in the work phase and consumed and armed by doorbells. Its event is due when it
 * is armed and holds an entry that the driver has not consumed: at the entry if the CQ was armed
 * before, at the arming otherwise. Both then disarm it, so that a CQ has one event at a time. A
 * doorbell may not touch guest memory, so an event that is due there is written in the work phase
 * of the same turn.
 *
 * A CQ that has no room for an entry, or whose ring cannot be written, has failed: its owner gets
 * an event, the queue pairs that complete there end, and it takes nothing more until it is
 * destroyed.
 */
#include "rdma_lif.h"

#include <errno.h>
#include <stdlib.h>

COUNTER(ionic_cq_overflow, "CQs that overflowed");
COUNTER(ionic_cq_unreachable, "CQs that failed because their ring could not be written");
COUNTER(ionic_cq_after_failure, "completions for a CQ that had failed, dropped");
COUNTER(ionic_cq_bad_index, "CQ doorbells that consume what is not there, ignored");
COUNTER(ionic_cq_bad_ring, "CQ doorbells of a ring that does not exist, ignored");

/* ---- life ---- */

struct ionic_cq *ionic_cq_find(struct ionic_rdma *rdma, uint32_t id)
{
	return id < IONIC_RDMA_CQS ? rdma->cqs[id] : NULL;
}

static void cq_init(struct ionic_rdma *rdma, struct ionic_cq *cq,
                    const struct ionic_cq_config *config)
{
	cq->rdma = rdma;
	cq->id = config->id;
	cq->dbid = config->dbid;
	cq->events = (struct ionic_event_source){.eq = ionic_eq_find(rdma, config->eq_id),
	                                         .id = config->id,
	                                         .type = IONIC_RDMA_EQE_CQ};
	/* A program may block for its first event without having rung a doorbell (5.7). */
	cq->armed = config->dbid != 0;
	LIST_INIT(&cq->users);
	TAILQ_INSERT_TAIL(&rdma->all_cqs, cq, link);
	rdma->cqs[config->id] = cq;
}

int ionic_cq_create(struct ionic_rdma *rdma, const struct ionic_cq_config *config)
{
	struct ionic_cq *cq;
	int rc;

	if (config->id >= IONIC_RDMA_CQS || !ionic_eq_find(rdma, config->eq_id))
		return -ERANGE;
	if (rdma->cqs[config->id])
		return -EEXIST;
	if (config->ring.stride_log2 != IONIC_RDMA_CQE_SHIFT || config->dbid >= IONIC_DB_PAGES)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	rc = ionic_ring_init(rdma, &cq->ring, &config->ring);
	if (rc < 0) {
		free(cq);
		return rc;
	}
	cq_init(rdma, cq, config);
	return 0;
}

void ionic_cq_free(struct ionic_cq *cq)
{
	struct ionic_rdma *rdma = cq->rdma;

	assert(LIST_EMPTY(&cq->users));
	ionic_eq_forget(&cq->events);
	TAILQ_REMOVE(&rdma->all_cqs, cq, link);
	rdma->cqs[cq->id] = NULL;
	ionic_ring_free(rdma, &cq->ring);
	free(cq);
}

int ionic_cq_destroy(struct ionic_rdma *rdma, uint32_t id)
{
	struct ionic_cq *cq = ionic_cq_find(rdma, id);

	if (!cq)
		return -ENOENT;
	if (!LIST_EMPTY(&cq->users) || cq->is_admin)
		return -EBUSY;
	ionic_cq_free(cq);
	return 0;
}

/* ---- events ---- */

/* Whether an event is due now; if so, the CQ is disarmed. */
static bool take_notification(struct ionic_cq *cq)
{
	bool due =
	        cq->prod != cq->cons && (cq->armed || (cq->armed_solicited && cq->has_solicited));

	if (!due || cq->failed)
		return false;
	cq->armed = false;
	cq->armed_solicited = false;
	cq->rdma->count.cq_events++;
	return true;
}

/* The queue pairs end when the engine comes to them. */
static void cq_fail(struct ionic_cq *cq, struct counter *counter)
{
	struct ionic_wq *wq;

	counter_inc(counter);
	log_guest("ionic: CQ %u failed: %s", cq->id, counter->help);
	cq->failed = true;
	ionic_eq_raise(cq->rdma, &cq->events, IONIC_RDMA_CQ_ERROR);
	LIST_FOREACH(wq, &cq->users, user)
	rdma_qp_fail(wq->qp->engine, true);
}

/* ---- entries ---- */

static void cq_write(struct ionic_cq *cq, union ionic_rdma_cqe *cqe, bool solicited)
{
	uint64_t addr = ionic_ring_addr(&cq->ring, cq->prod);
	bool color = !(cq->prod >> cq->ring.depth_log2 & 1);

	assert(!(cqe->bytes[IONIC_RDMA_CQE_SIZE - 1] & IONIC_RDMA_CQE_COLOR));
	if (color)
		cqe->bytes[IONIC_RDMA_CQE_SIZE - 1] |= IONIC_RDMA_CQE_COLOR;
	cq->prod++;
	if (solicited) {
		cq->solicited = cq->prod;
		cq->has_solicited = true;
	}
	cq->rdma->count.cqes++;
	if (ionic_rdma_post(cq->rdma, addr, cqe, sizeof(*cqe)) < 0)
		cq_fail(cq, &ionic_cq_unreachable);
}

void ionic_cq_post(struct ionic_cq *cq, union ionic_rdma_cqe *cqe, bool solicited)
{
	if (cq->rdma->reset_pending)
		return;
	if (cq->failed) {
		counter_inc(&ionic_cq_after_failure);
		return;
	}
	if (cq->prod - cq->cons >= ionic_ring_mask(&cq->ring))
		cq_fail(cq, &ionic_cq_overflow);
	else
		cq_write(cq, cqe, solicited);
	if (take_notification(cq))
		ionic_eq_raise(cq->rdma, &cq->events, IONIC_RDMA_CQ_NOTIFY);
	if (cq->events.queued)
		ionic_eq_flush(cq->events.eq);
}

/* ---- doorbells (5.7) ---- */

static void consume(struct ionic_cq *cq, uint32_t index)
{
	uint32_t mask = ionic_ring_mask(&cq->ring);
	uint32_t count = (index - cq->cons) & mask;

	if (index > mask || count > cq->prod - cq->cons) {
		counter_inc(&ionic_cq_bad_index);
		return;
	}
	cq->cons += count;
	if (cq->has_solicited && cq->prod - cq->solicited >= cq->prod - cq->cons)
		cq->has_solicited = false;
}

void ionic_cq_doorbell(struct ionic_cq *cq, unsigned ring, uint32_t index)
{
	switch (ring) {
	case 0:
		cq->rdma->count.cq_doorbells++;
		consume(cq, index);
		return;
	case 1:
		cq->armed = true;
		break;
	case 2:
		cq->armed_solicited = true;
		break;
	default:
		counter_inc(&ionic_cq_bad_ring);
		return;
	}
	cq->rdma->count.cq_arms++;
	if (take_notification(cq))
		ionic_eq_raise(cq->rdma, &cq->events, IONIC_RDMA_CQ_NOTIFY);
}
