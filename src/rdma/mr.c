/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regions, windows and keys: who may touch what, and where it is (spec ionic-rdma 8).
 *
 * A key is an index and a byte. The index finds the entry in constant time, the whole key must
 * match. A window has no memory of its own: it names a range of a region. It remembers the
 * generation of the region's registration, so that a region may go, be invalidated or registered
 * anew without a search for its windows; they are dead from then on.
 *
 * Page tables are copied when the region is made. A table whose pages turn out to be contiguous is
 * kept as one address. REG_MR reuses the room that earlier registrations of the same region had,
 * so that in steady state nothing is allocated.
 */
#include "rdma/rdma_internal.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What an access may be besides its type bits (8.3). */
#define MR_ACCESS_BITS 0x3fu

/* Spec rocev2 does not limit it; the identity advertises 4 KiB to 1 GiB. */
#define PAGE_SHIFT_MIN 12
#define PAGE_SHIFT_MAX 40

COUNTER(rdma_mr_bad_key, "accesses with a key that names nothing, or a stale one");
COUNTER(rdma_mr_bad_pd, "accesses with a key of another protection domain");
COUNTER(rdma_mr_bad_access, "accesses that the region or window does not permit");
COUNTER(rdma_mr_bad_range, "accesses beyond the bounds of the region or window");
COUNTER(rdma_mr_stale_window, "accesses through a window whose region is gone");

static uint32_t key_index(uint32_t key)
{
	return key >> 8;
}

/* The existing entry that KEY's index names, or NULL. */
static struct rdma_mr *mr_by_index(struct rdma_dev *dev, uint32_t index)
{
	struct rdma_mr *mr = rdma_table_get(&dev->mrs, index);

	return mr && mr->state != RDMA_MR_ABSENT ? mr : NULL;
}

static struct rdma_mr *mr_by_key(struct rdma_dev *dev, uint32_t key)
{
	struct rdma_mr *mr = mr_by_index(dev, key_index(key));

	return mr && mr->key == key ? mr : NULL;
}

static bool is_window(const struct rdma_mr *mr)
{
	return mr->flags & RDMA_MR_WINDOW;
}

/* The address that the users of MR call its first byte (8.2). */
static uint64_t mr_base(const struct rdma_mr *mr)
{
	return mr->flags & RDMA_ACCESS_ZERO_BASED ? 0 : mr->va;
}

/* Whether SIZE bytes at VA are inside; sets where. */
static bool mr_contains(const struct rdma_mr *mr, uint64_t va, uint64_t size, uint64_t *offset)
{
	*offset = va - mr_base(mr); /* wraps to a huge offset when VA is before */
	return size <= mr->length && *offset <= mr->length - size;
}

/* ---- page tables ---- */

struct pages {
	uint64_t va, length, first, dma_addr;
	uint32_t count;
	uint8_t shift;
};

static int pages_check(const struct pages *pages)
{
	if (pages->length > 0 && pages->va > UINT64_MAX - (pages->length - 1))
		return -EINVAL;
	if (pages->count == 1)
		return pages->length > 0 && pages->dma_addr > UINT64_MAX - (pages->length - 1)
		               ? -EINVAL
		               : 0;
	if (pages->shift < PAGE_SHIFT_MIN || pages->shift > PAGE_SHIFT_MAX)
		return -EINVAL;
	uint64_t page = 1ull << pages->shift;

	if (pages->first >= page)
		return -EINVAL;
	/* 2^32 pages of 2^40 bytes do not fit 64 bits: compare in pages */
	uint64_t room = pages->count;
	uint64_t last = pages->length + pages->first;

	if (last < pages->length)
		return -EINVAL;
	return last > 0 && (last - 1) >> pages->shift >= room ? -EINVAL : 0;
}

static void pages_release(struct rdma_dev *dev, struct rdma_mr *mr)
{
	free(mr->pages);
	mr->pages = NULL;
	dev->pages -= mr->page_room;
	mr->page_room = 0;
	mr->page_count = 0;
}

/* Room for COUNT pages; what was in it is lost when it has to grow. Memory that nobody has touched
 * costs nothing, so that a large table costs its time where it is filled. */
static int pages_reserve(struct rdma_dev *dev, struct rdma_mr *mr, uint32_t count)
{
	if (count <= mr->page_room)
		return 0;
	if (count - mr->page_room > dev->pages_limit - dev->pages)
		return -ENOSPC;
	uint64_t *grown = calloc(count, 2 * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	free(mr->pages);
	dev->pages += count - mr->page_room;
	mr->pages = grown;
	mr->page_room = count;
	mr->host_fresh = true;
	return 0;
}

/* Copies COUNT entries more of MR's table. */
static int pages_read(struct rdma_dev *dev, struct rdma_mr *mr, uint32_t count)
{
	uint64_t *page = mr->pages + mr->loaded;
	uint64_t size = 1ull << mr->page_shift;
	int error = dev->ops->mem_read(dev->owner, mr->dma + mr->loaded * sizeof(*page), page,
	                               count * sizeof(*page));

	if (error)
		return error;
	for (uint32_t i = 0; i < count; i++) {
		page[i] = le64toh(page[i]);
		if (mr->loaded + i > 0 && page[i] != page[(int64_t)i - 1] + size)
			mr->scattered = true;
	}
	mr->loaded += count;
	return 0;
}

/* All that MR has of memory is known. */
static void mr_make_valid(struct rdma_dev *dev, struct rdma_mr *mr)
{
	if (mr->page_count > 1)
		mr->dma = mr->pages[0] + mr->first;
	if (!mr->scattered)
		mr->page_count = 0;
	mr->host_generation = 0;
	mr->generation = ++dev->mr_generation;
	mr->state = RDMA_MR_VALID;
}

/* Gives MR the memory of PAGES: at once, or by mr_load() when it returns 1. On failure it has none.
 */
static int mr_open(struct rdma_dev *dev, struct rdma_mr *mr, const struct pages *pages)
{
	int error = pages_check(pages);

	mr->page_count = 0;
	if (!error && pages->count > 1)
		error = pages_reserve(dev, mr, pages->count);
	if (error)
		return error;
	mr->va = pages->va;
	mr->length = pages->length;
	mr->first = pages->first;
	mr->page_shift = pages->shift;
	mr->dma = pages->dma_addr;
	mr->loaded = 0;
	mr->scattered = false;
	if (pages->count == 1) {
		mr_make_valid(dev, mr);
		return 0;
	}
	mr->page_count = pages->count;
	mr->state = RDMA_MR_LOADING;
	return 1;
}

/* Copies at most COUNT entries of the table. Returns 1 when there are more, 0 when MR is valid, or
 * a negative errno; then MR is free. */
static int mr_load(struct rdma_dev *dev, struct rdma_mr *mr, uint32_t count)
{
	uint32_t left = mr->page_count - mr->loaded;
	int error = pages_read(dev, mr, count < left ? count : left);

	if (error) {
		mr->page_count = 0;
		mr->state = RDMA_MR_FREE;
		return error;
	}
	if (mr->loaded < mr->page_count)
		return 1;
	mr_make_valid(dev, mr);
	return 0;
}

static int mr_fill(struct rdma_dev *dev, struct rdma_mr *mr, const struct pages *pages)
{
	int result = mr_open(dev, mr, pages);

	return result == 1 ? mr_load(dev, mr, pages->count) : result;
}

/* ---- life ---- */

int rdma_mr_begin(struct rdma_dev *dev, const struct rdma_mr_config *config)
{
	uint32_t index = key_index(config->key);

	if (index == 0 || index >= dev->mrs.limit)
		return -ERANGE;
	if (mr_by_index(dev, index))
		return -EEXIST;
	struct rdma_mr *mr = rdma_table_add(&dev->mrs, index);

	if (!mr)
		return -ENOMEM;
	mr->key = config->key;
	mr->pd = config->pd;
	mr->flags = config->flags;
	mr->state = RDMA_MR_FREE;
	if (is_window(mr)) {
		dev->windows++;
		return 0;
	}
	if (config->page_count == 0)
		return 0;
	int result = mr_open(dev, mr,
	                     &(struct pages){.va = config->va,
	                                     .length = config->length,
	                                     .first = config->first,
	                                     .dma_addr = config->dma_addr,
	                                     .count = config->page_count,
	                                     .shift = config->page_shift});

	if (result < 0)
		rdma_mr_destroy(dev, config->key);
	return result;
}

int rdma_mr_load(struct rdma_dev *dev, uint32_t key, uint32_t pages)
{
	struct rdma_mr *mr = mr_by_index(dev, key_index(key));

	if (!mr || mr->state != RDMA_MR_LOADING)
		return -ENOENT;
	int result = mr_load(dev, mr, pages);

	if (result < 0)
		rdma_mr_destroy(dev, key);
	return result;
}

int rdma_mr_create(struct rdma_dev *dev, const struct rdma_mr_config *config)
{
	int result = rdma_mr_begin(dev, config);

	return result == 1 ? rdma_mr_load(dev, config->key, config->page_count) : result;
}

int rdma_mr_destroy(struct rdma_dev *dev, uint32_t key)
{
	struct rdma_mr *mr = mr_by_index(dev, key_index(key));

	if (!mr)
		return -ENOENT;
	if (is_window(mr))
		dev->windows--;
	pages_release(dev, mr);
	dev->mr_generation++;
	mr->state = RDMA_MR_ABSENT;
	rdma_table_drop(&dev->mrs, key_index(key));
	return 0;
}

void rdma_mr_reset(struct rdma_dev *dev)
{
	for (uint32_t index = 0; index < dev->mrs.limit && dev->mrs.count > 0; index++) {
		if (!rdma_table_get(&dev->mrs, index)) /* none in this chunk */
			index |= RDMA_CHUNK - 1;
		else
			rdma_mr_destroy(dev, index << 8);
	}
}

/* ---- access ---- */

void rdma_mr_prefetch(const struct rdma_dev *dev, uint32_t key)
{
	__builtin_prefetch(rdma_table_get(&dev->mrs, key_index(key)));
}

static bool mr_refuse(struct counter *counter)
{
	counter_inc(counter);
	return false;
}

/* Follows a window to its region. */
static bool resolve_window(struct rdma_dev *dev, const struct rdma_mr *window,
                           const struct rdma_mr_access *access, struct rdma_place *place)
{
	struct rdma_mr *parent = mr_by_index(dev, window->parent);

	if (!access->remote || (window->qpn != 0 && window->qpn != access->qpn))
		return mr_refuse(&rdma_mr_bad_access);
	if (!parent || parent->state != RDMA_MR_VALID ||
	    parent->generation != window->parent_generation)
		return mr_refuse(&rdma_mr_stale_window);
	place->mr = parent;
	place->offset += window->parent_offset;
	return true;
}

bool rdma_mr_resolve(struct rdma_dev *dev, const struct rdma_mr_access *access,
                     struct rdma_place *place)
{
	struct rdma_mr *mr = mr_by_key(dev, access->key);

	if (!mr || mr->state != RDMA_MR_VALID)
		return mr_refuse(&rdma_mr_bad_key);
	if (mr->pd != access->pd)
		return mr_refuse(&rdma_mr_bad_pd);
	if (access->access & ~mr->flags)
		return mr_refuse(&rdma_mr_bad_access);
	if (!mr_contains(mr, access->va, access->size, &place->offset))
		return mr_refuse(&rdma_mr_bad_range);
	place->mr = mr;
	return is_window(mr) ? resolve_window(dev, mr, access, place) : true;
}

/* ---- the local opcodes ---- */

enum rdma_status rdma_mr_register(struct rdma_qp *qp, const struct rdma_wr *wr)
{
	struct rdma_dev *dev = qp->dev;
	struct rdma_mr *mr = mr_by_index(dev, key_index(wr->key));

	if (!mr || is_window(mr) || mr->state != RDMA_MR_FREE || mr->pd != qp->pd)
		return RDMA_MEM_MGMT_ERR;
	if (mr->key != wr->key && !(mr->flags & RDMA_MR_UKEY))
		return RDMA_MEM_MGMT_ERR;
	if (wr->reg.page_count == 0 || mr_fill(dev, mr,
	                                       &(struct pages){.va = wr->reg.va,
	                                                       .length = wr->reg.length,
	                                                       .first = wr->reg.first,
	                                                       .dma_addr = wr->reg.dma_addr,
	                                                       .count = wr->reg.page_count,
	                                                       .shift = wr->reg.page_shift}))
		return RDMA_MEM_MGMT_ERR;
	mr->key = wr->key;
	mr->flags = (uint16_t)((mr->flags & ~MR_ACCESS_BITS) | (wr->reg.access & MR_ACCESS_BITS));
	return RDMA_OK;
}

static void mr_make_free(struct rdma_dev *dev, struct rdma_mr *mr)
{
	dev->mr_generation++;
	mr->state = RDMA_MR_FREE;
	mr->page_count = 0;
}

/* The window that WR means, when it may be bound now, or NULL. */
static struct rdma_mr *bind_target(struct rdma_qp *qp, const struct rdma_wr *wr)
{
	struct rdma_mr *window = mr_by_key(qp->dev, wr->key);

	if (!window || !is_window(window) || window->pd != qp->pd)
		return NULL;
	bool type2 = window->flags & RDMA_MR_INV;

	/* type 2 is bound once and then invalidated; type 1 is bound over and over */
	if (type2 && (window->state != RDMA_MR_FREE || wr->bind.length == 0))
		return NULL;
	return window;
}

/* The region that WR wants a window on, when it allows that, or NULL. */
static struct rdma_mr *bind_parent(struct rdma_qp *qp, const struct rdma_wr *wr, uint64_t *offset)
{
	struct rdma_mr *parent = mr_by_key(qp->dev, wr->bind.lkey);
	uint16_t writes = RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_ATOMIC;

	if (!parent || is_window(parent) || parent->state != RDMA_MR_VALID ||
	    parent->pd != qp->pd || !(parent->flags & RDMA_ACCESS_MW_BIND))
		return NULL;
	if ((wr->bind.access & writes) && !(parent->flags & RDMA_ACCESS_LOCAL_WRITE))
		return NULL;
	return mr_contains(parent, wr->bind.va, wr->bind.length, offset) ? parent : NULL;
}

enum rdma_status rdma_mr_bind(struct rdma_qp *qp, const struct rdma_wr *wr)
{
	struct rdma_mr *window = bind_target(qp, wr), *parent = NULL;
	uint64_t offset = 0;

	if (!window)
		return RDMA_MEM_MGMT_ERR;
	if (wr->bind.length > 0) {
		parent = bind_parent(qp, wr, &offset);
		if (!parent)
			return RDMA_MEM_MGMT_ERR;
	}
	window->key = (window->key & ~0xffu) | wr->key_byte;
	mr_make_free(qp->dev, window);
	if (!parent)
		return RDMA_OK;
	window->va = wr->bind.va;
	window->length = wr->bind.length;
	window->flags =
	        (uint16_t)((window->flags & ~MR_ACCESS_BITS) | (wr->bind.access & MR_ACCESS_BITS));
	window->parent = key_index(parent->key);
	window->parent_generation = parent->generation;
	window->parent_offset = offset;
	window->qpn = window->flags & RDMA_MR_INV ? qp->qpn : 0;
	window->state = RDMA_MR_VALID;
	return RDMA_OK;
}

enum rdma_status rdma_mr_invalidate(struct rdma_qp *qp, uint32_t key)
{
	struct rdma_mr *mr = mr_by_key(qp->dev, key);

	if (!mr || !(mr->flags & RDMA_MR_INV) || mr->pd != qp->pd || mr->state == RDMA_MR_LOADING)
		return RDMA_MEM_MGMT_ERR;
	if (is_window(mr) && (mr->state != RDMA_MR_VALID || mr->qpn != qp->qpn))
		return RDMA_MEM_MGMT_ERR;
	mr_make_free(qp->dev, mr);
	return RDMA_OK;
}
