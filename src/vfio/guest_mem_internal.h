/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest memory as the server fills it; inside the room only. */
#ifndef ERNIC_VFIO_GUEST_MEM_INTERNAL_H
#define ERNIC_VFIO_GUEST_MEM_INTERNAL_H

#include "vfio/guest_file.h"
#include "vfio/guest_mem.h"
#include "vfio/region_map.h"

/*
 * Moves SIZE bytes between BUF and guest address ADDR by messages to the client; ACCESS says which
 * way. Returns 0 or a negative errno.
 */
typedef int guest_message_dma_fn(void *arg, enum guest_access access, uint64_t addr, void *buf,
                                 size_t size);

struct guest_mem {
	struct region_map regions;
	struct region *last; /* the region of the last access; NULL after a change */
	uint64_t generation;
	bool bus_master; /* COMMAND and power state allow DMA */
	guest_message_dma_fn *message_dma;
	void *message_arg;
	struct guest_files files;
};

void guest_mem_init(struct guest_mem *mem, struct loop *loop, int poison_fd);

/*
 * Adds a range of guest addresses, with the file FD that holds it or, when FD is -1, reached by
 * messages. ACCESS is a set of enum guest_access. Adding a range again with all the same is no
 * error. Returns 0 or
 *   -EINVAL  the range is empty or wraps, or alignment or file are wrong
 *   -EEXIST  it overlaps another
 *   -ENOSPC  there are too many
 *   another negative errno of guest_file_map().
 */
int guest_mem_add(struct guest_mem *mem, uint64_t addr, uint64_t size, unsigned access, int fd,
                  uint64_t offset);

/* Removes every range that lies inside the given one. Returns 0, or -EINVAL when it is empty or
 * wraps or would cut a range. */
int guest_mem_remove(struct guest_mem *mem, uint64_t addr, uint64_t size);

/* Removes all ranges. */
void guest_mem_remove_all(struct guest_mem *mem);

/* Removes all ranges and unmaps all files, now. */
void guest_mem_clear(struct guest_mem *mem);

#endif
