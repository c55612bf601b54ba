/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a place in a region to host memory.
 *
 * Asking the owner for every page of every transfer costs as much as copying the page does. When
 * the owner can tell that its map has not changed (mem_generation()), a region remembers what it
 * was told: a contiguous one its host address, one of pages the host address of each page that has
 * been used. The two low bits of a remembered page, which is aligned, say for which access it was
 * mapped.
 */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <string.h>

#define ACCESS_BITS ((uint64_t)(RDMA_MEM_READ | RDMA_MEM_WRITE))

static uint64_t owner_generation(struct rdma_dev *dev)
{
	return dev->ops->mem_generation ? dev->ops->mem_generation(dev->owner) : 0;
}

int rdma_dma_map(struct rdma_dev *dev, enum rdma_mem_access access, struct iovec *iov, unsigned max,
                 struct rdma_run *run)
{
	for (;;) {
		int count = dev->ops->mem_map(dev->owner, run->dma, run->size, access, iov, max);

		if (count != -E2BIG || run->size == 1)
			return count;
		run->size /= 2;
	}
}

/* ---- contiguous regions ---- */

/* Remembers where the whole region is for ACCESS, if that is one piece. Memory may allow one access
 * and refuse the other, so what is known of one says nothing about the other. */
static bool remember_region(struct rdma_dev *dev, struct rdma_mr *mr, enum rdma_mem_access access,
                            uint64_t generation)
{
	struct iovec iov;

	if (generation == 0)
		return false;
	if (mr->host_generation != generation)
		mr->host_access = mr->host_asked = 0;
	mr->host_generation = generation;
	if (mr->host_asked & access)
		return mr->host_access & access;
	mr->host_asked = (mr->host_asked | access) & ACCESS_BITS;
	if (dev->ops->mem_map(dev->owner, mr->dma, mr->length, access, &iov, 1) != 1)
		return false;
	if (mr->host != iov.iov_base)
		mr->host_access = 0;
	mr->host = iov.iov_base;
	mr->host_access = (mr->host_access | access) & ACCESS_BITS;
	return true;
}

static int map_contiguous(struct rdma_dev *dev, const struct rdma_place *place,
                          enum rdma_mem_access access, struct iovec *iov, unsigned max,
                          struct rdma_run *run)
{
	if (remember_region(dev, place->mr, access, owner_generation(dev))) {
		iov->iov_base = place->mr->host + place->offset;
		iov->iov_len = run->size;
		return 1;
	}
	run->dma = place->mr->dma + place->offset;
	return rdma_dma_map(dev, access, iov, max, run);
}

/* ---- regions of pages ---- */

/* The remembered host addresses of MR's pages, none of another generation. */
static uint64_t *host_pages(struct rdma_mr *mr, uint64_t generation)
{
	uint64_t *hosts = mr->pages + mr->page_room;

	if (generation != 0 && mr->host_generation != generation) {
		if (!mr->host_fresh)
			memset(hosts, 0, mr->page_count * sizeof(*hosts));
		mr->host_fresh = false;
		mr->host_generation = generation;
	}
	return hosts;
}

/* Host address of a page, from memory or from the owner; NULL when it is not one aligned piece. */
static uint8_t *page_host(struct rdma_dev *dev, struct rdma_mr *mr, uint64_t page,
                          enum rdma_mem_access access, uint64_t *hosts)
{
	struct iovec iov;

	if (hosts[page] & access)
		return (uint8_t *)(uintptr_t)(hosts[page] & ~ACCESS_BITS);
	int count = dev->ops->mem_map(dev->owner, mr->pages[page], 1ull << mr->page_shift, access,
	                              &iov, 1);

	if (count != 1 || (uintptr_t)iov.iov_base & ACCESS_BITS)
		return NULL;
	if ((hosts[page] & ~ACCESS_BITS) == (uintptr_t)iov.iov_base)
		hosts[page] |= access;
	else
		hosts[page] = (uintptr_t)iov.iov_base | access;
	return iov.iov_base;
}

/* Pieces from remembered pages, neighbours joined; fewer bytes than wanted when one is not, and
 * none when nothing may be remembered. */
static int map_remembered(struct rdma_dev *dev, const struct rdma_place *place,
                          enum rdma_mem_access access, struct iovec *iov, unsigned max,
                          struct rdma_run *run)
{
	struct rdma_mr *mr = place->mr;
	uint64_t generation = owner_generation(dev);
	uint64_t *hosts = host_pages(mr, generation);
	uint64_t at = mr->first + place->offset, size = 1ull << mr->page_shift;
	size_t done = 0;
	unsigned count = 0;

	while (generation != 0 && done < run->size) {
		uint64_t page = at >> mr->page_shift, inside = at & (size - 1);
		uint8_t *host = page_host(dev, mr, page, access, hosts);
		size_t part = size - inside < run->size - done ? size - inside : run->size - done;

		if (!host)
			break;
		if (count > 0 &&
		    (uint8_t *)iov[count - 1].iov_base + iov[count - 1].iov_len == host + inside) {
			iov[count - 1].iov_len += part;
		} else if (count == max) {
			break;
		} else {
			iov[count++] = (struct iovec){.iov_base = host + inside, .iov_len = part};
		}
		done += part;
		at += part;
	}
	if (count > 0)
		run->size = done;
	return (int)count;
}

/* The DMA address at PLACE; RUN->size shrinks to what follows it contiguously. */
static void translate_pages(const struct rdma_place *place, struct rdma_run *run)
{
	const struct rdma_mr *mr = place->mr;
	uint64_t at = mr->first + place->offset, size = 1ull << mr->page_shift;
	uint64_t page = at >> mr->page_shift;
	size_t got = size - (at & (size - 1));

	run->dma = mr->pages[page] + (at & (size - 1));
	while (got < run->size && mr->pages[page + 1] == mr->pages[page] + size) {
		got += size;
		page++;
	}
	if (got < run->size)
		run->size = got;
}

int rdma_place_map(struct rdma_dev *dev, const struct rdma_place *place,
                   enum rdma_mem_access access, struct iovec *iov, unsigned max,
                   struct rdma_run *run)
{
	struct rdma_mr *mr = place->mr;

	if (mr->page_count == 0)
		return map_contiguous(dev, place, access, iov, max, run);
	int count = map_remembered(dev, place, access, iov, max, run);

	if (count > 0)
		return count;
	translate_pages(place, run);
	return rdma_dma_map(dev, access, iov, max, run);
}
