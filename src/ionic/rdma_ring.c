/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest memory as the RDMA function sees it, and the rings in it (spec ionic-rdma 8.1). */
#include "rdma_lif.h"

#include <errno.h>
#include <stdlib.h>

COUNTER(ionic_rdma_ring_pages_used, "rings refused because all rings have too many pages");
COUNTER(ionic_rdma_reset_in_access, "resets of the RDMA function while it accessed guest memory");

/* ---- guest memory ---- */

/* While an access waits for a message from the client, registers are accessed, and in principle the
 * function may be reset: what the work in progress stands on stays until it has returned. */
static int enter(struct ionic_rdma *rdma)
{
	if (rdma->reset_pending)
		return -ENODEV;
	rdma->in_memory++;
	return 0;
}

static int leave(struct ionic_rdma *rdma, int rc)
{
	assert(rdma->in_memory > 0);
	rdma->in_memory--;
	if (!rdma->reset_pending)
		return rc;
	counter_inc(&ionic_rdma_reset_in_access);
	return -ENODEV;
}

int ionic_rdma_read(struct ionic_rdma *rdma, uint64_t addr, void *dst, size_t size)
{
	int rc = enter(rdma);

	return rc < 0 ? rc : leave(rdma, guest_mem_read(rdma->dev->mem, addr, dst, size));
}

int ionic_rdma_write(struct ionic_rdma *rdma, uint64_t addr, const void *src, size_t size)
{
	int rc = enter(rdma);

	return rc < 0 ? rc : leave(rdma, guest_mem_write(rdma->dev->mem, addr, src, size));
}

int ionic_rdma_post(struct ionic_rdma *rdma, uint64_t addr, const void *src, size_t size)
{
	int rc = enter(rdma);

	return rc < 0 ? rc : leave(rdma, guest_mem_post(rdma->dev->mem, addr, src, size));
}

int ionic_rdma_map(struct ionic_rdma *rdma, uint64_t addr, size_t size, enum guest_access access,
                   struct iovec *iov, unsigned max)
{
	int rc = enter(rdma);

	return rc < 0 ? rc
	              : leave(rdma, guest_mem_map(rdma->dev->mem, addr, size, access, iov, max));
}

static int store32(struct ionic_rdma *rdma, uint64_t addr, be32 value)
{
	struct iovec iov;
	uint32_t word;
	int pieces = guest_mem_map(rdma->dev->mem, addr, sizeof(value), GUEST_WRITE, &iov, 1);

	assert(addr % sizeof(value) == 0);
	if (rdma->reset_pending)
		return -ENODEV;
	if (pieces == -ENOTSUP)
		return guest_mem_write(rdma->dev->mem, addr, &value, sizeof(value));
	if (pieces < 0)
		return pieces;
	memcpy(&word, value.raw, sizeof(word));
	__atomic_store_n((uint32_t *)iov.iov_base, word, __ATOMIC_RELEASE);
	return 0;
}

int ionic_rdma_store32(struct ionic_rdma *rdma, uint64_t addr, be32 value)
{
	int rc = enter(rdma);

	return rc < 0 ? rc : leave(rdma, store32(rdma, addr, value));
}

/* ---- rings ---- */

/* Slots are aligned to their size, so that none lies across a page and entries with a color can be
 * written in one piece. */
static bool slots_aligned(uint64_t addr, unsigned shift)
{
	return (addr & ((UINT64_C(1) << shift) - 1)) == 0;
}

static int read_pages(struct ionic_rdma *rdma, struct ionic_ring *ring, uint64_t table,
                      uint32_t count)
{
	int rc;

	if (count > IONIC_RDMA_RING_PAGES - rdma->ring_pages) {
		counter_inc(&ionic_rdma_ring_pages_used);
		return -ENOSPC;
	}
	ring->pages = calloc(count, sizeof(*ring->pages));
	if (!ring->pages)
		return -ENOMEM;
	ring->page_count = count;
	rdma->ring_pages += count;
	rc = ionic_rdma_read(rdma, table, ring->pages, count * sizeof(*ring->pages));
	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		ring->pages[i] = le64toh(ring->pages[i]);
		if (!slots_aligned(ring->pages[i], ring->page_shift))
			rc = -EINVAL;
	}
	if (rc < 0)
		ionic_ring_free(rdma, ring);
	return rc;
}

int ionic_ring_init(struct ionic_rdma *rdma, struct ionic_ring *ring,
                    const struct ionic_ring_config *config)
{
	unsigned shift = config->page_shift;
	uint64_t size, count;

	*ring = (struct ionic_ring){.base = config->dma_addr,
	                            .page_shift = config->page_shift,
	                            .depth_log2 = config->depth_log2,
	                            .stride_log2 = config->stride_log2};
	if (config->depth_log2 == 0 || config->depth_log2 > IONIC_RDMA_DEPTH_MAX ||
	    config->stride_log2 > IONIC_RDMA_MAX_STRIDE)
		return -EINVAL;
	size = UINT64_C(1) << (config->depth_log2 + config->stride_log2);
	if (config->map_count == 1)
		return slots_aligned(config->dma_addr, config->stride_log2) &&
		                       config->dma_addr <= UINT64_MAX - size
		               ? 0
		               : -EINVAL;
	if (shift < IONIC_RDMA_PAGE_SHIFT || shift > IONIC_RDMA_PAGE_BITS)
		return -EINVAL;
	/* More pages than the ring needs are none of our business. */
	count = (size + (UINT64_C(1) << shift) - 1) >> shift;
	if (config->map_count < count)
		return -EINVAL;
	return read_pages(rdma, ring, config->dma_addr, (uint32_t)count);
}

void ionic_ring_free(struct ionic_rdma *rdma, struct ionic_ring *ring)
{
	free(ring->pages);
	rdma->ring_pages -= ring->page_count;
	ring->pages = NULL;
	ring->page_count = 0;
}
