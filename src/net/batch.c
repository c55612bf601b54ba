/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many reads or writes in one system call, by io_uring.
 *
 * A system call costs as much as what a TAP does with a small frame, in a virtual machine more than
 * twice as much. io_uring (io_uring(7)) takes a list of operations with one call. None of them may
 * wait (RWF_NOWAIT), so the kernel does each on the spot and in order, and all are done when the
 * call returns; nothing is ever left in flight, and the memory can be lent.
 *
 * The plain calls are used for a single operation, for what the ring does not take at the moment,
 * and where io_uring is missing, forbidden, or does not know the descriptor as one that cannot wait
 * (the tun driver before Linux 5.11).
 *
 * The rings are used by hand: three structures and two barriers are less than a library to depend
 * on.
 */
#include "net/batch.h"

#include <assert.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/counter.h"

COUNTER(net_batch_unavailable, "io_uring could not be set up; frames cost a system call each");
COUNTER(net_batch_refused, "operations that io_uring did not take and plain calls did");

/* Both are in every kernel since 5.6: one mapping for both rings, and no completion is lost. */
#define FEATURES_NEEDED (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP)

struct net_batch {
	int fd; /* of the ring, -1: none */
	void *rings;
	size_t rings_size;
	struct io_uring_sqe *sqes;
	size_t sqes_size;
	unsigned *sq_tail, *cq_head, *cq_tail; /* shared with the kernel */
	unsigned sq_mask, cq_mask;
	struct io_uring_cqe *cqes;
};

/* ---- life ---- */

static void ring_close(struct net_batch *batch)
{
	if (batch->fd < 0)
		return;
	if (batch->sqes)
		munmap(batch->sqes, batch->sqes_size);
	if (batch->rings)
		munmap(batch->rings, batch->rings_size);
	close(batch->fd);
	batch->sqes = NULL;
	batch->rings = NULL;
	batch->fd = -1;
}

static void *ring_map(const struct net_batch *batch, size_t size, off_t offset)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, batch->fd,
	                offset);

	return at == MAP_FAILED ? NULL : at;
}

static size_t rings_size(const struct io_uring_params *params)
{
	size_t sq = params->sq_off.array + params->sq_entries * sizeof(unsigned);
	size_t cq = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);

	return sq > cq ? sq : cq;
}

/* Finds the parts of the mapped rings. Entry n of the submission ring is always entry n. */
static void ring_locate(struct net_batch *batch, const struct io_uring_params *params)
{
	char *base = batch->rings;
	unsigned *array = (unsigned *)(void *)(base + params->sq_off.array);

	batch->sq_tail = (unsigned *)(void *)(base + params->sq_off.tail);
	batch->cq_head = (unsigned *)(void *)(base + params->cq_off.head);
	batch->cq_tail = (unsigned *)(void *)(base + params->cq_off.tail);
	batch->cqes = (struct io_uring_cqe *)(void *)(base + params->cq_off.cqes);
	batch->sq_mask = params->sq_entries - 1;
	batch->cq_mask = params->cq_entries - 1;
	for (unsigned i = 0; i < params->sq_entries; i++)
		array[i] = i;
}

static bool ring_open(struct net_batch *batch)
{
	struct io_uring_params params = {0};

	batch->fd = (int)syscall(SYS_io_uring_setup, NET_BATCH_MAX, &params);
	if (batch->fd < 0)
		return false;
	batch->rings_size = rings_size(&params);
	batch->sqes_size = params.sq_entries * sizeof(struct io_uring_sqe);
	if ((params.features & FEATURES_NEEDED) != FEATURES_NEEDED)
		return false;
	batch->rings = ring_map(batch, batch->rings_size, IORING_OFF_SQ_RING);
	batch->sqes = ring_map(batch, batch->sqes_size, (off_t)IORING_OFF_SQES);
	if (!batch->rings || !batch->sqes)
		return false;
	ring_locate(batch, &params);
	return true;
}

struct net_batch *net_batch_create(void)
{
	struct net_batch *batch = calloc(1, sizeof(*batch));

	if (batch && !ring_open(batch)) {
		ring_close(batch);
		counter_inc(&net_batch_unavailable);
	}
	return batch;
}

void net_batch_destroy(struct net_batch *batch)
{
	if (!batch)
		return;
	ring_close(batch);
	free(batch);
}

bool net_batch_fast(const struct net_batch *batch)
{
	return batch->fd >= 0;
}

/* ---- operations ---- */

static void do_plain(struct net_batch_op *op, bool write)
{
	do
		op->result = write ? writev(op->fd, op->iov, (int)op->iov_count)
		                   : readv(op->fd, op->iov, (int)op->iov_count);
	while (op->result < 0 && errno == EINTR);
	if (op->result < 0)
		op->result = -errno;
}

static void put_entry(struct io_uring_sqe *sqe, const struct net_batch_op *op, unsigned index,
                      bool write)
{
	*sqe = (struct io_uring_sqe){
	        .opcode = write ? IORING_OP_WRITEV : IORING_OP_READV,
	        .fd = op->fd,
	        .addr = (uintptr_t)op->iov,
	        .len = op->iov_count,
	        .off = (uint64_t)-1, /* as readv() and writev(): no position */
	        /* O_NONBLOCK alone would make the ring wait for the descriptor. */
	        .rw_flags = RWF_NOWAIT,
	        .user_data = index,
	};
}

/* Takes the results that are there. Returns how many. */
static unsigned reap(struct net_batch *batch, struct net_batch_op *ops)
{
	unsigned head = *batch->cq_head, first = head;
	unsigned tail = __atomic_load_n(batch->cq_tail, __ATOMIC_ACQUIRE);

	for (; head != tail; head++) {
		const struct io_uring_cqe *cqe = &batch->cqes[head & batch->cq_mask];

		ops[cqe->user_data].result = cqe->res;
	}
	__atomic_store_n(batch->cq_head, head, __ATOMIC_RELEASE);
	return head - first;
}

/* Submits what is between the kernel's head and TAIL, and waits until all of it is done. Returns
 * the number of entries that the kernel did not take. */
static unsigned submit(struct net_batch *batch, struct net_batch_op *ops, unsigned count)
{
	unsigned done = 0, left = count;

	while (done < count) {
		long taken = syscall(SYS_io_uring_enter, batch->fd, left, count - done,
		                     IORING_ENTER_GETEVENTS, NULL, 0);

		if (taken > 0)
			left -= (unsigned)taken;
		done += reap(batch, ops);
		if (taken < 0 && errno != EINTR && left > 0 && done == count - left)
			return left; /* it takes no more, and owes nothing */
		assert(taken >= 0 || errno == EINTR || errno == EAGAIN || errno == EBUSY);
	}
	return left;
}

/* Returns how many operations, the first ones, were done by the ring. */
static unsigned do_ring(struct net_batch *batch, struct net_batch_op *ops, unsigned count,
                        bool write)
{
	unsigned tail = *batch->sq_tail;

	for (unsigned i = 0; i < count; i++)
		put_entry(&batch->sqes[(tail + i) & batch->sq_mask], &ops[i], i, write);
	__atomic_store_n(batch->sq_tail, tail + count, __ATOMIC_RELEASE);
	unsigned left = submit(batch, ops, count);

	if (left > 0) { /* taken back */
		__atomic_store_n(batch->sq_tail, tail + count - left, __ATOMIC_RELEASE);
		counter_add(&net_batch_refused, left);
	}
	if (left < count && ops[0].result == -EOPNOTSUPP) { /* and so were all the others */
		ring_close(batch);
		counter_inc(&net_batch_unavailable);
		return 0;
	}
	return count - left;
}

static void do_batch(struct net_batch *batch, struct net_batch_op *ops, unsigned count, bool write)
{
	unsigned done = 0;

	assert(count <= NET_BATCH_MAX);
	if (count > 1 && batch->fd >= 0)
		done = do_ring(batch, ops, count, write);
	for (; done < count; done++)
		do_plain(&ops[done], write);
}

void net_batch_write(struct net_batch *batch, struct net_batch_op *ops, unsigned count)
{
	do_batch(batch, ops, count, true);
}

void net_batch_read(struct net_batch *batch, struct net_batch_op *ops, unsigned count)
{
	do_batch(batch, ops, count, false);
}
