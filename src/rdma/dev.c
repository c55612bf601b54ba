/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RDMA device: its tables, and the turns in which its queue pairs work.
 *
 * Theory of operation
 *
 * Goals: verbs as the InfiniBand architecture has them, at the speed of memory; a payload byte is
 * copied once; nothing is allocated, and no system call made, for a message; no queue pair can hold
 * up another for longer than a slice.
 *
 * Turns. A QP that has something to do is on the device's list of ready QPs, once. In the work
 * phase of the loop the device takes the first, gives it a slice (so many requests, so many bytes)
 * and puts it at the end again if it was not enough. When the turn's time is used up the device
 * schedules itself for the next turn of the loop, so that doorbells, timers and other rooms come in
 * between. What makes a QP ready: a kick, a timer, a receive it waited for, its fabric.
 *
 * Requests. The requester (requester.c) fetches a request from the owner into a message of the
 * QP's window, checks it, and gives it to the fabric. The window is a ring: head..tx are out,
 * tx..tail are not (at most one), and they complete strictly from the head, whatever order answers
 * come in. A request that fails locally takes its place in the window too and fails when it gets to
 * the head, so that everything before it is reported first. The window's size is the fabric's: 1
 * when both ends are in this process, because a message is then done when it has been sent.
 *
 *	fetch -> OPEN -> transmit ... -> (answer) DONE -> head -> complete_send()
 *	             \-> local opcode, or refused ----> DONE
 *
 * Answers. The responder (responder.c) sees a message begin, take its bytes, and end. Between
 * these, turns may pass in which a QP is reset, a region invalidated, a peer destroyed: every step
 * resolves keys again, and a QP knows the messages that are under way on it.
 *
 * Errors. Whatever ends a QP goes through rdma_qp_enter_error(): messages are forgotten, the fabric
 * too, then the owner is told to flush. Which status, on which side, with which event: spec
 * ionic-rdma 9.3.
 *
 * Not done: shared receive queues, XRC, multicast, path migration, rate limits; the stock driver
 * has no way to ask for them.
 */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- tables ---- */

int rdma_table_init(struct rdma_table *table, uint32_t limit, size_t item_size)
{
	uint32_t chunks = (limit + RDMA_CHUNK - 1) >> RDMA_CHUNK_SHIFT;

	table->chunks = calloc(chunks > 0 ? chunks : 1, sizeof(*table->chunks));
	table->limit = limit;
	table->size = item_size;
	return table->chunks ? 0 : -ENOMEM;
}

void rdma_table_free(struct rdma_table *table)
{
	assert(table->count == 0);
	free(table->chunks);
	table->chunks = NULL;
}

static struct rdma_chunk *chunk_new(const struct rdma_table *table)
{
	size_t align = _Alignof(struct rdma_chunk);
	size_t size = sizeof(struct rdma_chunk) + RDMA_CHUNK * table->size;
	struct rdma_chunk *chunk = aligned_alloc(align, (size + align - 1) / align * align);

	if (chunk)
		memset(chunk, 0, size);
	return chunk;
}

void *rdma_table_add(struct rdma_table *table, uint32_t id)
{
	assert(id < table->limit);
	struct rdma_chunk **chunk = &table->chunks[id >> RDMA_CHUNK_SHIFT];

	if (!*chunk)
		*chunk = chunk_new(table);
	if (!*chunk)
		return NULL;
	(*chunk)->used++;
	table->count++;
	void *item = rdma_table_get(table, id);

	memset(item, 0, table->size);
	return item;
}

void rdma_table_drop(struct rdma_table *table, uint32_t id)
{
	struct rdma_chunk **chunk = &table->chunks[id >> RDMA_CHUNK_SHIFT];

	assert(*chunk && (*chunk)->used > 0);
	table->count--;
	if (--(*chunk)->used == 0) {
		free(*chunk);
		*chunk = NULL;
	}
}

/* ---- turns ---- */

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

void rdma_qp_make_ready(struct rdma_qp *qp)
{
	if (qp->on_ready)
		return;
	qp->on_ready = true;
	TAILQ_INSERT_TAIL(&qp->dev->ready, qp, ready);
	loop_schedule(qp->dev->loop, &qp->dev->work);
}

/* How long a kick waited for its slice to end; it is stamped with the time of its turn. */
static void note_kick(struct rdma_qp *qp, uint64_t now_ns)
{
	if (qp->kick_ns != 0 && now_ns > qp->kick_ns)
		rdma_histogram_add(&qp->dev->stats.kick_to_done_ns, now_ns - qp->kick_ns);
	qp->kick_ns = 0;
}

/* Gives QP a slice of what is left of the turn. Returns the number of requests it has started. */
static uint32_t run_slice(struct rdma_qp *qp, size_t *bytes)
{
	struct rdma_budget slice = {.ops = RDMA_SLICE_OPS,
	                            .bytes = *bytes < RDMA_SLICE_BYTES ? *bytes : RDMA_SLICE_BYTES};
	size_t before = slice.bytes;

	if (rdma_requester_run(qp, &slice)) {
		rdma_count(qp->dev, RDMA_STAT_SLICES);
		rdma_qp_make_ready(qp);
	}
	*bytes -= before - slice.bytes;
	return RDMA_SLICE_OPS - slice.ops;
}

static void dev_run(struct loop_work *work)
{
	struct rdma_dev *dev = container_of(work, struct rdma_dev, work);
	uint64_t start = clock_ns(), now = start;
	size_t bytes = RDMA_TURN_BYTES;
	struct rdma_qp *qp;
	uint64_t ops = 0;

	while (bytes > 0 && now - start < RDMA_TURN_NS && (qp = TAILQ_FIRST(&dev->ready))) {
		TAILQ_REMOVE(&dev->ready, qp, ready);
		qp->on_ready = false;
		ops += run_slice(qp, &bytes);
		now = clock_ns();
		note_kick(qp, now);
	}
	if (dev->fabric && dev->fabric->ops->turn_ended)
		dev->fabric->ops->turn_ended(dev->fabric);
	rdma_count(dev, RDMA_STAT_TURNS);
	rdma_histogram_add(&dev->stats.turn_ops, ops);
	rdma_histogram_add(&dev->stats.turn_bytes, RDMA_TURN_BYTES - bytes);
	if (!TAILQ_EMPTY(&dev->ready))
		loop_schedule(dev->loop, &dev->work);
}

/* ---- life ---- */

static int dev_init_tables(struct rdma_dev *dev, const struct rdma_limits *limits)
{
	int error = rdma_table_init(&dev->qps, limits->qps, sizeof(struct rdma_qp *));

	if (!error)
		error = rdma_table_init(&dev->mrs, limits->mrs, sizeof(struct rdma_mr));
	if (!error)
		error = rdma_table_init(&dev->ahs, limits->ahs, sizeof(struct rdma_ah));
	dev->pages_limit = limits->pages;
	return error;
}

static void dev_init_fabric(struct rdma_dev *dev, struct rdma_fabric *fabric)
{
	dev->fabric = fabric;
	dev->window = 1;
	if (!fabric)
		return;
	assert(fabric->ops->window >= 1 && fabric->ops->window <= RDMA_WINDOW_MAX);
	while (dev->window < fabric->ops->window)
		dev->window *= 2;
	if (fabric->ops->attach)
		fabric->ops->attach(fabric, dev);
}

int rdma_dev_create(const struct rdma_dev_config *config, struct rdma_dev **out)
{
	const struct rdma_limits *limits = &config->limits;

	if (limits->qps > RDMA_ID_MAX || limits->mrs > RDMA_ID_MAX || limits->ahs > RDMA_ID_MAX)
		return -EINVAL;
	struct rdma_dev *dev = calloc(1, sizeof(*dev));

	if (!dev)
		return -ENOMEM;
	dev->name = config->name;
	dev->loop = config->loop;
	dev->ops = config->ops;
	dev->owner = config->owner;
	dev->datagram_mtu = config->datagram_mtu;
	dev->work.run = dev_run;
	TAILQ_INIT(&dev->ready);
	int error = dev_init_tables(dev, limits);

	if (error) {
		rdma_dev_destroy(dev);
		return error;
	}
	dev_init_fabric(dev, config->fabric);
	*out = dev;
	return 0;
}

void rdma_dev_destroy(struct rdma_dev *dev)
{
	if (!dev)
		return;
	if (dev->qps.chunks && dev->mrs.chunks && dev->ahs.chunks)
		rdma_dev_reset(dev);
	if (dev->fabric && dev->fabric->ops->detach)
		dev->fabric->ops->detach(dev->fabric, dev);
	loop_cancel(dev->loop, &dev->work);
	rdma_table_free(&dev->qps);
	rdma_table_free(&dev->mrs);
	rdma_table_free(&dev->ahs);
	free(dev);
}

static void destroy_qp(struct rdma_qp *qp, void *arg __attribute__((unused)))
{
	rdma_qp_destroy(qp);
}

void rdma_dev_reset(struct rdma_dev *dev)
{
	rdma_qp_visit(dev, destroy_qp, NULL);
	rdma_mr_reset(dev);
	for (uint32_t id = 0; id < dev->ahs.limit && dev->ahs.count > 0; id++)
		rdma_ah_destroy(dev, id);
	assert(dev->qps.count == 0 && dev->mrs.count == 0 && dev->ahs.count == 0);
	assert(dev->pages == 0 && dev->windows == 0 && TAILQ_EMPTY(&dev->ready));
}

void rdma_dev_set_datagram_mtu(struct rdma_dev *dev, uint32_t bytes)
{
	dev->datagram_mtu = bytes;
}

void *rdma_dev_owner(const struct rdma_dev *dev)
{
	return dev->owner;
}

struct rdma_fabric *rdma_dev_fabric(const struct rdma_dev *dev)
{
	return dev->fabric;
}

bool rdma_dev_in_use(const struct rdma_dev *dev)
{
	return dev->qps.count > 0;
}

bool rdma_dev_owns_mac(struct rdma_dev *dev, const uint8_t mac[6])
{
	return dev->ops->owns_mac(dev->owner, mac);
}

void rdma_qp_visit(struct rdma_dev *dev, void (*visit)(struct rdma_qp *qp, void *arg), void *arg)
{
	uint32_t left = dev->qps.count;

	for (uint32_t qpn = 0; qpn < dev->qps.limit && left > 0; qpn++) {
		if (!rdma_table_get(&dev->qps, qpn)) { /* none in this chunk */
			qpn |= RDMA_CHUNK - 1;
			continue;
		}
		struct rdma_qp *qp = rdma_qp_find(dev, qpn);

		if (qp) {
			left--;
			visit(qp, arg);
		}
	}
}

struct gid_search {
	const uint8_t *gid;
	bool found;
};

static void search_qp(struct rdma_qp *qp, void *arg)
{
	struct gid_search *search = arg;

	if (qp->attr.av.ip_version)
		search->found |= memcmp(qp->attr.av.sgid, search->gid, 16) == 0;
}

bool rdma_dev_uses_gid(struct rdma_dev *dev, const uint8_t gid[16])
{
	struct gid_search search = {.gid = gid};
	uint32_t left = dev->ahs.count;

	rdma_qp_visit(dev, search_qp, &search);
	for (uint32_t id = 0; id < dev->ahs.limit && left > 0 && !search.found; id++) {
		const struct rdma_ah *ah = rdma_ah_find(dev, id);

		if (!ah)
			continue;
		left--;
		search.found = memcmp(ah->av.sgid, gid, 16) == 0;
	}
	return search.found;
}
