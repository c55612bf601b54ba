/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: translation of guest addresses, and copies.
 *
 * A sorted map of ranges (region_map.c) leads from a guest address to a view of a file mapping
 * (guest_file.c), or to nothing but the client itself, which is then asked by messages (dma.c).
 * Every access goes through walk(): it checks the whole range piece by piece, so that an access
 * may cross ranges, and merges what is adjacent in this process too.
 *
 * The region of the last access is remembered: rings and buffers of a driver are close together.
 */
#include "vfio/guest_mem_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/counter.h"
#include "vfio/protocol.h"

COUNTER(vfio_mem_fault, "device accesses to guest addresses that are not mapped");
COUNTER(vfio_mem_access, "device accesses to guest addresses that do not allow them");
COUNTER(vfio_mem_no_master, "device accesses while bus mastering was off");
COUNTER(vfio_mem_pieces, "translations that need more pieces than the caller has");
COUNTER(vfio_mem_overlap, "guest ranges refused because they overlap others");
COUNTER(vfio_mem_range, "guest ranges refused because they are empty, wrap or are not aligned");
COUNTER(vfio_mem_cut, "unmappings refused because they would cut a range");
COUNTER(vfio_mem_limit, "guest ranges refused because there are too many");

void guest_mem_init(struct guest_mem *mem, struct loop *loop, int poison_fd)
{
	*mem = (struct guest_mem){.generation = 1};
	guest_files_init(&mem->files, loop, poison_fd);
}

uint64_t guest_mem_generation(const struct guest_mem *mem)
{
	return mem->bus_master ? mem->generation : 0;
}

/* ---- ranges ---- */

static void changed(struct guest_mem *mem)
{
	mem->last = NULL;
	mem->generation++;
}

static bool range_valid(uint64_t addr, uint64_t size)
{
	return size > 0 && size - 1 <= UINT64_MAX - addr;
}

/* Whether REGION is the range that NEW describes, with the same memory behind it. */
static bool same_region(const struct region *region, const struct region *new)
{
	return region->start == new->start && region->last == new->last &&
	       region->host == new->host && region->file == new->file &&
	       region->access == new->access;
}

static int insert_region(struct guest_mem *mem, const struct region *region)
{
	struct region *other = region_map_find(&mem->regions, region->start);
	bool overlaps = other && other->start <= region->last;

	if (overlaps && same_region(other, region)) {
		if (region->file) /* the range that is there has a reference already */
			guest_file_put(&mem->files, region->file);
		return 0;
	}
	if (overlaps) {
		counter_inc(&vfio_mem_overlap);
		return -EEXIST;
	}
	if (mem->regions.count >= VFIO_USER_MAX_DMA_MAPS) {
		counter_inc(&vfio_mem_limit);
		return -ENOSPC;
	}
	changed(mem);
	return region_map_insert(&mem->regions, region);
}

int guest_mem_add(struct guest_mem *mem, uint64_t addr, uint64_t size, unsigned access, int fd,
                  uint64_t offset)
{
	struct region region = {.start = addr, .last = addr + size - 1, .access = access};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int error;

	if (!range_valid(addr, size) ||
	    (fd >= 0 && ((addr | size | offset) % page != 0 || offset > INT64_MAX ||
	                 size > (uint64_t)INT64_MAX - offset))) {
		counter_inc(&vfio_mem_range);
		return -EINVAL;
	}
	if (fd >= 0) {
		error = guest_file_map(&mem->files, fd, offset, &region);
		if (error)
			return error;
	}
	error = insert_region(mem, &region);
	if (error && region.file)
		guest_file_put(&mem->files, region.file);
	return error;
}

static void remove_region(struct guest_mem *mem, struct region *region)
{
	if (region->file)
		guest_file_put(&mem->files, region->file);
	region_map_remove(&mem->regions, region);
}

int guest_mem_remove(struct guest_mem *mem, uint64_t addr, uint64_t size)
{
	struct region *region;

	if (!range_valid(addr, size)) {
		counter_inc(&vfio_mem_range);
		return -EINVAL;
	}
	uint64_t last = addr + size - 1;
	const struct region *first = region_map_find(&mem->regions, addr);
	const struct region *end = region_map_find(&mem->regions, last);

	if ((first && first->start < addr) || (end && end->start <= last && end->last > last)) {
		counter_inc(&vfio_mem_cut);
		return -EINVAL;
	}
	changed(mem);
	while ((region = region_map_find(&mem->regions, addr)) && region->start <= last)
		remove_region(mem, region);
	return 0;
}

void guest_mem_remove_all(struct guest_mem *mem)
{
	struct region *region;

	changed(mem);
	for (uint64_t addr = 0; (region = region_map_find(&mem->regions, addr));) {
		if (region->file)
			guest_file_put(&mem->files, region->file);
		if (region->last == UINT64_MAX)
			break;
		addr = region->last + 1;
	}
	region_map_clear(&mem->regions);
}

void guest_mem_clear(struct guest_mem *mem)
{
	guest_mem_remove_all(mem);
	guest_files_trim(&mem->files);
}

/* ---- access ---- */

/* The region that contains ADDR and allows ACCESS, in *REGION, or a negative errno. */
static int find_region(struct guest_mem *mem, uint64_t addr, enum guest_access access,
                       const struct region **out)
{
	struct region *region = mem->last;

	if (!region || addr < region->start || addr > region->last) {
		region = region_map_find(&mem->regions, addr);
		if (!region || region->start > addr) {
			counter_inc(&vfio_mem_fault);
			return -EFAULT;
		}
		mem->last = region;
	}
	if (!(region->access & access)) {
		counter_inc(&vfio_mem_access);
		return -EACCES;
	}
	*out = region;
	return 0;
}

/* How many of SIZE bytes at ADDR are inside REGION, which contains ADDR. */
static size_t size_inside(const struct region *region, uint64_t addr, size_t size)
{
	return size - 1 > region->last - addr ? (size_t)(region->last - addr) + 1 : size;
}

/* What every access asks first. */
static int check_range(const struct guest_mem *mem, uint64_t addr, size_t size)
{
	if (size > 0 && size - 1 > UINT64_MAX - addr) {
		counter_inc(&vfio_mem_fault);
		return -EFAULT;
	}
	if (!mem->bus_master) {
		counter_inc(&vfio_mem_no_master);
		return -EPERM;
	}
	return 0;
}

int guest_mem_map(struct guest_mem *mem, uint64_t addr, size_t size, enum guest_access access,
                  struct iovec *iov, unsigned max)
{
	const struct region *region;
	unsigned count = 0;
	int error = check_range(mem, addr, size);

	while (!error && size > 0) {
		error = find_region(mem, addr, access, &region);
		if (error)
			break;
		if (!region->host)
			return -ENOTSUP;
		size_t chunk = size_inside(region, addr, size);
		uint8_t *host = region->host + (addr - region->start);

		if (count > 0 &&
		    (uint8_t *)iov[count - 1].iov_base + iov[count - 1].iov_len == host) {
			iov[count - 1].iov_len += chunk;
		} else if (count == max) {
			counter_inc(&vfio_mem_pieces);
			return -E2BIG;
		} else {
			iov[count++] = (struct iovec){.iov_base = host, .iov_len = chunk};
		}
		addr += chunk;
		size -= chunk;
	}
	return error ? error : (int)count;
}

/* Both directions of a copy; BUF is only written when ACCESS is GUEST_READ. */
static int copy(struct guest_mem *mem, uint64_t addr, uint8_t *buf, size_t size,
                enum guest_access access)
{
	const struct region *region;
	int error = check_range(mem, addr, size);

	while (!error && size > 0) {
		error = find_region(mem, addr, access, &region);
		if (error)
			break;
		size_t chunk = size_inside(region, addr, size);

		if (!region->host) {
			error = mem->message_dma(mem->message_arg, access, addr, buf, chunk);
		} else if (access == GUEST_READ) {
			memcpy(buf, region->host + (addr - region->start), chunk);
		} else {
			memcpy(region->host + (addr - region->start), buf, chunk);
		}
		addr += chunk;
		buf += chunk;
		size -= chunk;
	}
	return error;
}

int guest_mem_read(struct guest_mem *mem, uint64_t addr, void *dst, size_t size)
{
	return copy(mem, addr, dst, size, GUEST_READ);
}

int guest_mem_write(struct guest_mem *mem, uint64_t addr, const void *src, size_t size)
{
	return copy(mem, addr, (uint8_t *)(uintptr_t)src, size, GUEST_WRITE);
}

int guest_mem_post(struct guest_mem *mem, uint64_t addr, const void *src, size_t size)
{
	struct iovec piece;
	uint64_t tail;

	assert(size > 0 && size % 8 == 0 && size <= 64);
	int pieces = addr % 8 ? -ENOTSUP : guest_mem_map(mem, addr, size, GUEST_WRITE, &piece, 1);

	/* Messages, and an entry across two files: the client orders what it executes, and two
	 * copies are in order. */
	if (pieces == -ENOTSUP || pieces == -E2BIG) {
		int error = guest_mem_write(mem, addr, src, size - 8);

		return error ? error
		             : guest_mem_write(mem, addr + size - 8,
		                               (const uint8_t *)src + size - 8, 8);
	}
	if (pieces < 0)
		return pieces;
	uint8_t *dst = piece.iov_base;

	memcpy(dst, src, size - 8);
	memcpy(&tail, (const uint8_t *)src + size - 8, 8);
	/* The guest polls these bytes: everything before is visible when they are. */
	__atomic_store_n((uint64_t *)(void *)(dst + size - 8), tail, __ATOMIC_RELEASE);
	return 0;
}
