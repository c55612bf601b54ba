/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks lists of keyed memory, and copies between two of them.
 *
 * A position is an SGE and an offset in it. Each step resolves the key again, translates as far as
 * the memory is contiguous, and asks the owner for host pieces; nothing of that outlives the call,
 * so a region that was invalidated between two turns is found out at the next step.
 */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* Host pieces that one translation may give; more are asked for in smaller runs. */
#define SPAN_PIECES 16

/* For memory that can only be copied, at both ends. */
#define BOUNCE_SIZE 4096

COUNTER(rdma_dma_refused, "accesses to registered memory that the owner of the device refused");
COUNTER(rdma_dma_copied, "accesses to memory that cannot be mapped");
COUNTER(rdma_atomic_split, "atomics on a word that is not aligned in host memory");

/* A run of memory at a cursor: host pieces, or a DMA address that can only be copied. */
struct span {
	unsigned piece, pieces;
	size_t left; /* of a run that can only be copied */
	uint64_t dma;
	struct iovec iov[SPAN_PIECES];
};

void rdma_cursor_seek(struct rdma_cursor *cursor, const struct rdma_sge *sge, uint32_t count,
                      uint32_t offset)
{
	while (count > 0 && offset > sge->length) {
		offset -= sge->length;
		sge++;
		count--;
	}
	cursor->sge = sge;
	cursor->sge_left = count;
	cursor->offset = offset;
	cursor->valid = 0;
	cursor->failed = false;
}

static int cursor_refuse(struct rdma_cursor *cursor)
{
	cursor->failed = true;
	return -EACCES;
}

static bool sge_is_raw(const struct rdma_cursor *cursor, const struct rdma_sge *sge)
{
	return sge->lkey == 0 && cursor->raw_key;
}

/* Checks the first SIZE bytes of an SGE. */
static bool sge_resolve(const struct rdma_cursor *cursor, const struct rdma_sge *sge, uint64_t size,
                        struct rdma_place *place)
{
	struct rdma_mr_access access = {.va = sge->va,
	                                .size = size,
	                                .key = sge->lkey,
	                                .pd = cursor->pd,
	                                .qpn = cursor->qpn,
	                                .access = cursor->access,
	                                .remote = cursor->remote};

	return rdma_mr_resolve(cursor->dev, &access, place);
}

/* Remembers what the current SGE's key stands for. */
static void cursor_keep(struct rdma_cursor *cursor, const struct rdma_place *place, uint32_t valid)
{
	cursor->mr = place->mr;
	cursor->base = place->offset;
	cursor->valid = valid;
	cursor->generation = cursor->dev->mr_generation;
}

enum rdma_status rdma_cursor_check(struct rdma_cursor *cursor, uint64_t size)
{
	const struct rdma_sge *sge = cursor->sge;
	struct rdma_place place;

	for (uint32_t i = 0; i < cursor->sge_left && size > 0; i++, sge++) {
		uint64_t part = sge->length < size ? sge->length : size;

		size -= part;
		if (part == 0 || sge_is_raw(cursor, sge))
			continue;
		if (!sge_resolve(cursor, sge, part, &place))
			return RDMA_LOC_PROT_ERR;
		if (i == 0)
			cursor_keep(cursor, &place, (uint32_t)part);
	}
	return size > 0 ? RDMA_LOC_QP_OP_ERR : RDMA_OK;
}

/* Where the cursor is. SIZE becomes the bytes, of those wanted, that the current SGE has. */
static int cursor_place(struct rdma_cursor *cursor, size_t *size, struct rdma_place *place)
{
	while (cursor->sge_left > 0 && cursor->offset == cursor->sge->length) {
		cursor->sge++;
		cursor->sge_left--;
		cursor->offset = 0;
		cursor->valid = 0;
	}
	if (cursor->sge_left == 0)
		return cursor_refuse(cursor);
	const struct rdma_sge *sge = cursor->sge;

	if (*size > sge->length - cursor->offset)
		*size = sge->length - cursor->offset;
	uint32_t end = cursor->offset + (uint32_t)*size;

	if (sge_is_raw(cursor, sge)) {
		place->mr = NULL;
		place->offset = sge->va + cursor->offset;
		return 0;
	}
	if (end > cursor->valid || cursor->generation != cursor->dev->mr_generation) {
		if (!sge_resolve(cursor, sge, end, place))
			return cursor_refuse(cursor);
		cursor_keep(cursor, place, end);
	}
	place->mr = cursor->mr;
	place->offset = cursor->base + cursor->offset;
	return 0;
}

static enum rdma_mem_access cursor_mem_access(const struct rdma_cursor *cursor)
{
	uint16_t writes =
	        RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC;

	return cursor->access & writes ? RDMA_MEM_WRITE : RDMA_MEM_READ;
}

/* Maps what is at the cursor, up to RUN->size bytes, into up to MAX pieces. Does not move it. */
static int cursor_pieces(struct rdma_cursor *cursor, struct iovec *iov, unsigned max,
                         struct rdma_run *run)
{
	enum rdma_mem_access access = cursor_mem_access(cursor);
	struct rdma_place place;
	int count = cursor_place(cursor, &run->size, &place);

	if (count < 0)
		return count;
	if (place.mr) {
		count = rdma_place_map(cursor->dev, &place, access, iov, max, run);
	} else {
		run->dma = place.offset;
		count = rdma_dma_map(cursor->dev, access, iov, max, run);
	}
	if (count > 0 || count == -ENOTSUP)
		return count;
	counter_inc(&rdma_dma_refused);
	return cursor_refuse(cursor);
}

int rdma_cursor_map(struct rdma_cursor *cursor, size_t size, struct iovec *iov, unsigned max)
{
	unsigned count = 0;

	if (cursor->flat && size > 0 && max > 0) {
		iov->iov_base = (void *)(uintptr_t)(cursor->flat + cursor->offset);
		iov->iov_len = size;
		cursor->offset += (uint32_t)size;
		return 1;
	}
	while (size > 0 && count < max) {
		struct rdma_run run = {.size = size};
		int got = cursor_pieces(cursor, iov + count, max - count, &run);

		if (got < 0)
			return count > 0 && got == -ENOTSUP ? (int)count : got;
		count += (unsigned)got;
		cursor->offset += (uint32_t)run.size;
		size -= run.size;
	}
	return (int)count;
}

/* ---- spans ---- */

static int span_fill(struct span *span, struct rdma_cursor *cursor, size_t size)
{
	span->piece = span->pieces = 0;
	span->left = 0;
	if (cursor->flat) {
		span->iov[0].iov_base = (void *)(uintptr_t)(cursor->flat + cursor->offset);
		span->iov[0].iov_len = size;
		span->pieces = 1;
		return 0;
	}
	struct rdma_run run = {.size = size};
	int count = cursor_pieces(cursor, span->iov, SPAN_PIECES, &run);

	if (count == -ENOTSUP) {
		counter_inc(&rdma_dma_copied);
		span->left = run.size;
		span->dma = run.dma;
		return 0;
	}
	if (count < 0)
		return count;
	span->pieces = (unsigned)count;
	return 0;
}

static bool span_empty(const struct span *span)
{
	return span->piece == span->pieces && span->left == 0;
}

/* Host memory at the front of the span, or NULL when it can only be copied. */
static void *span_host(const struct span *span)
{
	return span->left > 0 ? NULL : span->iov[span->piece].iov_base;
}

static size_t span_size(const struct span *span)
{
	assert(!span_empty(span));
	return span->left > 0 ? span->left : span->iov[span->piece].iov_len;
}

static void span_take(struct span *span, struct rdma_cursor *cursor, size_t size)
{
	cursor->offset += (uint32_t)size;
	if (span->left > 0) {
		span->left -= size;
		span->dma += size;
		return;
	}
	struct iovec *iov = &span->iov[span->piece];

	iov->iov_base = (uint8_t *)iov->iov_base + size;
	iov->iov_len -= size;
	if (iov->iov_len == 0)
		span->piece++;
}

/* ---- copying ---- */

/*
 * The last piece of a move. Software watches the last bytes of a buffer to learn that a WRITE has
 * landed, and memmove() may store its ends in any order. So the last word is stored after all the
 * others. A guest may name the same memory on both sides, shifted: what it finds there is its own
 * affair, but it is why this is not memcpy().
 */
static void copy_last(void *dst, const void *src, size_t size)
{
	if (size <= sizeof(uint64_t)) {
		memmove(dst, src, size);
		return;
	}
	size_t tail = (((uintptr_t)dst + size - 1) & (sizeof(uint64_t) - 1)) + 1;

	memmove(dst, src, size - tail);
	atomic_thread_fence(memory_order_release);
	memmove((uint8_t *)dst + size - tail, (const uint8_t *)src + size - tail, tail);
}

static int copy_fail(struct rdma_cursor *cursor)
{
	counter_inc(&rdma_dma_refused);
	return cursor_refuse(cursor);
}

/* One side or both can only be copied: at most BOUNCE_SIZE bytes go through a buffer. */
static int copy_bounced(struct rdma_cursor *dst, const struct span *to, struct rdma_cursor *src,
                        const struct span *from, size_t size, struct rdma_copy *copy)
{
	uint8_t bounce[BOUNCE_SIZE];
	const void *bytes = span_host(from);
	void *target = span_host(to);
	uint8_t filtered[BOUNCE_SIZE];

	if (!bytes) {
		if (src->dev->ops->mem_read(src->dev->owner, from->dma, bounce, size))
			return copy_fail(src);
		bytes = bounce;
	}
	if (copy->fn) {
		copy->fn(copy->arg, filtered, bytes, size, copy->offset);
		bytes = filtered;
	}
	if (target)
		copy_last(target, bytes, size);
	else if (dst->dev->ops->mem_write(dst->dev->owner, to->dma, bytes, size))
		return copy_fail(dst);
	return 0;
}

int rdma_cursor_move(struct rdma_cursor *dst, struct rdma_cursor *src, size_t size,
                     struct rdma_copy *copy)
{
	struct span to, from;

	to.piece = to.pieces = from.piece = from.pieces = 0;
	to.left = from.left = 0;
	while (size > 0) {
		if (span_empty(&from) && span_fill(&from, src, size))
			return -EIO;
		if (span_empty(&to) && span_fill(&to, dst, size))
			return -EIO;
		size_t part = span_size(&from) < span_size(&to) ? span_size(&from) : span_size(&to);

		if (!span_host(&from) || !span_host(&to)) {
			if (part > BOUNCE_SIZE)
				part = BOUNCE_SIZE;
			if (copy_bounced(dst, &to, src, &from, part, copy))
				return -EIO;
		} else if (copy->fn) {
			copy->fn(copy->arg, span_host(&to), span_host(&from), part, copy->offset);
		} else if (part < size) {
			memmove(span_host(&to), span_host(&from), part);
		} else {
			copy_last(span_host(&to), span_host(&from), part);
		}
		span_take(&from, src, part);
		span_take(&to, dst, part);
		copy->offset += (uint32_t)part;
		size -= part;
	}
	return 0;
}

/* ---- flat buffers ---- */

int rdma_cursor_write(struct rdma_cursor *cursor, const void *buf, size_t size)
{
	struct rdma_cursor flat = {.flat = buf};
	struct rdma_copy copy = {.fn = NULL};

	return rdma_cursor_move(cursor, &flat, size, &copy);
}

int rdma_cursor_read(struct rdma_cursor *cursor, void *buf, size_t size)
{
	struct rdma_cursor flat = {.flat = buf};
	struct rdma_copy copy = {.fn = NULL};

	return rdma_cursor_move(&flat, cursor, size, &copy);
}

int rdma_cursor_word(struct rdma_cursor *cursor, _Atomic uint64_t **word)
{
	struct rdma_run run = {.size = sizeof(uint64_t)};
	struct iovec iov[2];
	int count = cursor_pieces(cursor, iov, 2, &run);

	if (count < 0)
		return count;
	if (run.size < sizeof(uint64_t) || count != 1 ||
	    (uintptr_t)iov[0].iov_base % sizeof(uint64_t) != 0) {
		counter_inc(&rdma_atomic_split);
		return -EINVAL;
	}
	*word = iov[0].iov_base;
	return 0;
}
