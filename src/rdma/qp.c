/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Life of a queue pair: states, attributes, errors, and the timer that its two halves share. */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TO(state) (1 << RDMA_QPS_##state)

/*
 * The states (spec ionic-rdma 9.1). RESET and ERR can be entered from everywhere. SQE is where the
 * architecture puts UC and UD queue pairs after a failed send; here they go to ERR as RC does,
 * because that is what the driver makes of any failed send (9.3).
 */
const struct rdma_state_info rdma_states[RDMA_QP_STATES] = {
        [RDMA_QPS_RESET] = {.name = "reset", .to = TO(RESET) | TO(INIT) | TO(ERR)},
        [RDMA_QPS_INIT] = {.name = "init",
                           .to = TO(RESET) | TO(INIT) | TO(RTR) | TO(ERR),
                           .receives = true},
        [RDMA_QPS_RTR] = {.name = "rtr",
                          .to = TO(RESET) | TO(RTS) | TO(ERR),
                          .answers = true,
                          .receives = true},
        [RDMA_QPS_RTS] = {.name = "rts",
                          .to = TO(RESET) | TO(RTS) | TO(SQD) | TO(ERR),
                          .fetches = true,
                          .sends = true,
                          .answers = true,
                          .receives = true},
        [RDMA_QPS_SQD] = {.name = "sqd",
                          .to = TO(RESET) | TO(RTS) | TO(SQD) | TO(ERR),
                          .sends = true,
                          .answers = true,
                          .receives = true},
        [RDMA_QPS_SQE] = {.name = "sqe",
                          .to = TO(RESET) | TO(RTS) | TO(ERR),
                          .answers = true,
                          .receives = true},
        [RDMA_QPS_ERR] = {.name = "err", .to = TO(RESET) | TO(ERR)},
};

/* RNR timer codes in units of 10 us (spec rocev2 7.4). */
static const uint32_t rnr_timer_10us[32] = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* ACK timeout codes count in units of 4.096 us (spec rocev2 7.5). */
#define ACK_TIMEOUT_UNIT_NS 4096ull
#define ACK_TIMEOUT_MAX     31

const char *rdma_qp_state_name(enum rdma_qp_state state)
{
	return (unsigned)state < RDMA_QP_STATES ? rdma_states[state].name : "?";
}

/* ---- the timer ---- */

static void timer_expired(struct loop_timer *timer)
{
	struct rdma_qp *qp = container_of(timer, struct rdma_qp, timer);

	qp->timer_fired = true;
	rdma_qp_make_ready(qp);
}

static void timer_stop(struct rdma_qp *qp)
{
	loop_disarm(qp->dev->loop, &qp->timer);
	qp->timer_kind = RDMA_TIMER_NONE;
	qp->timer_fired = false;
}

/* What the QP waits for, when it is a matter of time. */
static enum rdma_timer timer_wanted(const struct rdma_qp *qp)
{
	if (qp->head == qp->tail || qp->type != RDMA_QP_RC)
		return RDMA_TIMER_NONE;
	if (qp->block == RDMA_BLOCK_RNR)
		return RDMA_TIMER_RNR;
	if (qp->attr.timeout == 0 || (qp->head == qp->tx && qp->block == RDMA_BLOCK_NONE))
		return RDMA_TIMER_NONE;
	return RDMA_TIMER_ACK;
}

static uint64_t timer_period(const struct rdma_qp *qp, enum rdma_timer kind)
{
	if (kind == RDMA_TIMER_RNR)
		return rnr_timer_10us[qp->rnr_code & 31] * 10 * RDMA_NS_PER_US;
	return ACK_TIMEOUT_UNIT_NS << qp->attr.timeout;
}

void rdma_qp_update_timer(struct rdma_qp *qp)
{
	enum rdma_timer kind = timer_wanted(qp);

	if (kind == qp->timer_kind && !qp->timer_stale)
		return;
	if (kind == RDMA_TIMER_NONE && qp->timer_kind == RDMA_TIMER_NONE) {
		qp->timer_stale = false;
		return;
	}
	timer_stop(qp);
	qp->timer_stale = false;
	if (kind == RDMA_TIMER_NONE)
		return;
	qp->timer_kind = (uint8_t)kind;
	loop_arm(qp->dev->loop, &qp->timer, loop_now(qp->dev->loop) + timer_period(qp, kind));
}

/* ---- waiting for a receive ---- */

void rdma_qp_await_recv(struct rdma_qp *receiver, struct rdma_qp *sender)
{
	rdma_qp_stop_waiting(sender);
	sender->awaits = receiver;
	TAILQ_INSERT_TAIL(&receiver->waiters, sender, waiter);
}

void rdma_qp_stop_waiting(struct rdma_qp *qp)
{
	if (!qp->awaits)
		return;
	TAILQ_REMOVE(&qp->awaits->waiters, qp, waiter);
	qp->awaits = NULL;
}

static void wake_waiters(struct rdma_qp *qp)
{
	struct rdma_qp *sender;

	while ((sender = TAILQ_FIRST(&qp->waiters))) {
		rdma_qp_stop_waiting(sender);
		rdma_qp_resume(sender);
	}
}

/* ---- life ---- */

struct rdma_qp *rdma_qp_find(struct rdma_dev *dev, uint32_t qpn)
{
	struct rdma_qp **slot = rdma_table_get(&dev->qps, qpn);

	return slot ? *slot : NULL;
}

static const struct rdma_qp_attr attr_at_reset = {.mtu_shift = 10};

/* Forgets everything of the QP's work; attributes stay. */
static void qp_clear(struct rdma_qp *qp)
{
	rdma_requester_drop(qp);
	rdma_responder_drop(qp);
	timer_stop(qp);
	wake_waiters(qp);
	if (qp->on_ready)
		TAILQ_REMOVE(&qp->dev->ready, qp, ready);
	qp->on_ready = false;
	qp->fail_pending = qp->fail_fatal = false;
	qp->sqd_event = false;
	qp->paused = false;
	qp->recv_watched = false;
}

/* Made when a QP may send for the first time: 32 K that never do would otherwise cost a gigabyte on
 * some fabrics. It stays until the QP goes, because fabrics may ask after messages of a QP that has
 * been reset meanwhile (rdma_msg_done()). */
static int window_make(struct rdma_qp *qp)
{
	uint32_t size = qp->dev->window;

	if (qp->window)
		return 0;
	qp->window = calloc(size, sizeof(*qp->window));
	if (!qp->window)
		return -ENOMEM;
	qp->window_mask = size - 1;
	for (uint32_t i = 0; i < size; i++)
		qp->window[i].qp = qp;
	return 0;
}

int rdma_qp_create(struct rdma_dev *dev, const struct rdma_qp_config *config, struct rdma_qp **out)
{
	if (config->qpn == 0 || config->qpn >= dev->qps.limit)
		return -ERANGE;
	if ((unsigned)config->type >= RDMA_QP_TYPES)
		return -EINVAL;
	if (rdma_qp_find(dev, config->qpn))
		return -EEXIST;
	struct rdma_qp *qp = calloc(1, sizeof(*qp));
	struct rdma_qp **slot = qp ? rdma_table_add(&dev->qps, config->qpn) : NULL;

	if (!slot) {
		free(qp);
		return -ENOMEM;
	}
	qp->dev = dev;
	qp->owner = config->owner;
	qp->qpn = config->qpn;
	qp->pd = config->pd;
	qp->type = (uint8_t)config->type;
	qp->privileged = config->privileged;
	qp->remote_privileged = config->remote_privileged;
	qp->attr = attr_at_reset;
	qp->timer.expired = timer_expired;
	TAILQ_INIT(&qp->waiters);
	*slot = qp;
	*out = qp;
	return 0;
}

void rdma_qp_destroy(struct rdma_qp *qp)
{
	if (!qp)
		return;
	qp_clear(qp);
	struct rdma_qp **slot = rdma_table_get(&qp->dev->qps, qp->qpn);

	*slot = NULL;
	rdma_table_drop(&qp->dev->qps, qp->qpn);
	free(qp->window);
	free(qp);
}

/* ---- errors ---- */

void rdma_qp_enter_error(struct rdma_qp *qp, enum rdma_event event)
{
	struct rdma_dev *dev = qp->dev;

	if (qp->state != RDMA_QPS_ERR) {
		qp->state = RDMA_QPS_ERR;
		qp_clear(qp);
		rdma_count(dev, RDMA_STAT_REQ_CQE_FLUSH);
		rdma_count(dev, RDMA_STAT_RESP_CQE_FLUSH);
		dev->ops->flush(qp->owner);
	}
	if (event)
		dev->ops->event(qp->owner, event);
}

void rdma_qp_fail(struct rdma_qp *qp, bool fatal)
{
	if (qp->state == RDMA_QPS_ERR || qp->state == RDMA_QPS_RESET)
		return;
	qp->fail_pending = true;
	qp->fail_fatal |= fatal;
	rdma_qp_make_ready(qp);
}

/* ---- attributes ---- */

static bool attr_valid(uint32_t mask, const struct rdma_qp_attr *attr)
{
	const struct {
		uint32_t bit;
		uint32_t value, min, max;
	} ranges[] = {
	        {RDMA_ATTR_STATE, attr->state, 0, RDMA_QP_STATES - 1},
	        {RDMA_ATTR_MTU, attr->mtu_shift, RDMA_MTU_SHIFT_MIN, RDMA_MTU_SHIFT_MAX},
	        {RDMA_ATTR_TIMEOUT, attr->timeout, 0, ACK_TIMEOUT_MAX},
	        {RDMA_ATTR_RETRY, attr->retry_count, 0, 7},
	        {RDMA_ATTR_RNR_RETRY, attr->rnr_retry, 0, 7},
	        {RDMA_ATTR_RNR_TIMER, attr->rnr_timer, 0, 31},
	        {RDMA_ATTR_SQ_PSN, attr->sq_psn, 0, RDMA_PSN_MASK},
	        {RDMA_ATTR_RQ_PSN, attr->rq_psn, 0, RDMA_PSN_MASK},
	        {RDMA_ATTR_DEST_QPN, attr->dest_qpn, 0, RDMA_ID_MAX - 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if ((mask & ranges[i].bit) &&
		    (ranges[i].value < ranges[i].min || ranges[i].value > ranges[i].max))
			return false;
	return true;
}

#define TAKE(bit, field)                                                                           \
	do {                                                                                       \
		if (mask & RDMA_ATTR_##bit)                                                        \
			qp->attr.field = attr->field;                                              \
	} while (0)

static void attr_take(struct rdma_qp *qp, uint32_t mask, const struct rdma_qp_attr *attr)
{
	TAKE(SQD_NOTIFY, sqd_notify);
	TAKE(ACCESS, access);
	TAKE(QKEY, qkey);
	TAKE(AV, av);
	TAKE(MTU, mtu_shift);
	TAKE(TIMEOUT, timeout);
	TAKE(RETRY, retry_count);
	TAKE(RNR_RETRY, rnr_retry);
	TAKE(RNR_TIMER, rnr_timer);
	TAKE(SQ_PSN, sq_psn);
	TAKE(RQ_PSN, rq_psn);
	TAKE(DEST_QPN, dest_qpn);
	TAKE(MAX_RD_ATOMIC, max_rd_atomic);
	TAKE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(RATE_LIMIT, rate_limit);
	if (mask & (RDMA_ATTR_RETRY | RDMA_ATTR_RNR_RETRY)) {
		qp->retry_left = qp->attr.retry_count;
		qp->rnr_left = qp->attr.rnr_retry;
	}
	struct rdma_fabric *fabric = qp->dev->fabric;

	if ((mask & RDMA_ATTR_AV) && fabric && fabric->ops->learn && qp->attr.av.ip_version)
		fabric->ops->learn(fabric, qp->dev, &qp->attr.av);
}

static void enter_reset(struct rdma_qp *qp)
{
	qp->state = RDMA_QPS_RESET;
	qp_clear(qp);
	qp->attr = attr_at_reset;
	qp->msn = 0;
	qp->comm_est = false;
}

static void enter_state(struct rdma_qp *qp, enum rdma_qp_state state)
{
	switch (state) {
	case RDMA_QPS_RESET:
		enter_reset(qp);
		return;
	case RDMA_QPS_ERR:
		rdma_qp_enter_error(qp, 0);
		return;
	case RDMA_QPS_SQD: /* what has been fetched goes on; the requester tells when it is done */
		qp->sqd_event = qp->attr.sqd_notify && qp->state != RDMA_QPS_SQD;
		break;
	case RDMA_QPS_RTS: /* there may have been kicks before */
		qp->kicked = true;
		break;
	default:
		break;
	}
	qp->state = (uint8_t)state;
	if (rdma_states[state].sends)
		rdma_qp_make_ready(qp);
}

int rdma_qp_modify(struct rdma_qp *qp, uint32_t mask, const struct rdma_qp_attr *attr)
{
	if (!attr_valid(mask, attr))
		return -EINVAL;
	if ((mask & RDMA_ATTR_CUR_STATE) && attr->cur_state != qp->state)
		return -EPROTO;
	if ((mask & RDMA_ATTR_STATE) && !(rdma_states[qp->state].to & 1 << attr->state))
		return -EPROTO;
	if ((mask & RDMA_ATTR_STATE) && rdma_states[attr->state].fetches && window_make(qp) < 0)
		return -ENOMEM;
	attr_take(qp, mask, attr);
	if (mask & RDMA_ATTR_STATE)
		enter_state(qp, attr->state);
	return 0;
}

void rdma_qp_query(const struct rdma_qp *qp, struct rdma_qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = attr->cur_state = qp->state;
	attr->sq_draining = qp->state == RDMA_QPS_SQD && qp->head != qp->tail;
}

/* ---- kicks ---- */

void rdma_qp_kick(struct rdma_qp *qp)
{
	if (!rdma_states[qp->state].sends)
		return;
	qp->kicked = true;
	qp->stats.kicks++;
	if (!rdma_states[qp->state].fetches)
		return;
	if (qp->kick_ns == 0)
		qp->kick_ns = loop_now(qp->dev->loop);
	rdma_qp_make_ready(qp);
}

void rdma_qp_kick_recv(struct rdma_qp *qp)
{
	if (!rdma_states[qp->state].receives)
		return;
	wake_waiters(qp);
	if (!qp->recv_watched)
		return;
	qp->recv_watched = false;
	qp->dev->fabric->ops->recv_posted(qp->dev->fabric, qp);
}

void rdma_qp_watch_recv(struct rdma_qp *qp)
{
	assert(qp->dev->fabric && qp->dev->fabric->ops->recv_posted);
	qp->recv_watched = true;
}

uint32_t rdma_qp_number(const struct rdma_qp *qp)
{
	return qp->qpn;
}

enum rdma_qp_type rdma_qp_type(const struct rdma_qp *qp)
{
	return qp->type;
}

enum rdma_qp_state rdma_qp_state(const struct rdma_qp *qp)
{
	return qp->state;
}

struct rdma_dev *rdma_qp_dev(const struct rdma_qp *qp)
{
	return qp->dev;
}

void *rdma_qp_owner(const struct rdma_qp *qp)
{
	return qp->owner;
}

uint32_t rdma_qp_msn(const struct rdma_qp *qp)
{
	return qp->msn;
}

const struct rdma_qp_attr *rdma_qp_attributes(const struct rdma_qp *qp)
{
	return &qp->attr;
}

void **rdma_qp_fabric_slot(struct rdma_qp *qp)
{
	return &qp->fabric_slot;
}
