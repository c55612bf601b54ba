/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings of the files that hold guest memory, and what happens when one is truncated; inside the
 * room only. */
#ifndef ERNIC_VFIO_GUEST_FILE_H
#define ERNIC_VFIO_GUEST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"

struct guest_file;
struct region;

/* The files of one client. */
struct guest_files {
	struct loop *loop;
	struct guest_file *first;
	unsigned count;
	uint64_t mapped; /* bytes of address space in all */
	int poison_fd;   /* an eventfd that is signalled when a page of a file was lost */
	struct loop_timer idle_timer;
};

void guest_files_init(struct guest_files *files, struct loop *loop, int poison_fd);

/*
 * Maps what is at OFFSET of the file that FD is open on, as much as REGION is large, for the access
 * that it allows, and sets its file and host; its file gets a reference. The whole file is mapped
 * once and shared by all its regions; FD is not needed any more. Returns 0 or
 *   -EINVAL  not a regular file of tmpfs or hugetlbfs, or the range is not inside it
 *   -EACCES  the region may be written, and the descriptor may not
 *   -ENOSPC  the client holds too many files, or too much address space
 *   another negative errno of mmap() or fstat().
 */
int guest_file_map(struct guest_files *files, int fd, uint64_t offset, struct region *region);

/* Gives a reference back. A file without any stays mapped for a moment: at every change of its
 * memory layout the client takes a file away and brings it back at once. */
void guest_file_put(struct guest_files *files, struct guest_file *file);

/* Unmaps the files that have no references, now. */
void guest_files_trim(struct guest_files *files);

#endif
