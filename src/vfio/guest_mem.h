/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: the only way to guest bytes.
 *
 * A device gives guest physical (or I/O virtual) addresses as it found them in registers and
 * descriptors; every function here checks them in full, whatever they are. Memory is shared with
 * a running guest: what has been read may differ when it is read again, so copy once and use the
 * copy.
 *
 * When to call. Only in the work phase of a turn (base/loop.h), never from a register callback:
 * memory that the client did not pass as a descriptor is reached by messages to the client, and
 * the client may not be kept waiting for a reply meanwhile. A pointer that was handed out is valid
 * until the work callback returns.
 *
 * Register functions may run inside guest_mem_read(), _write() and _post(), when these wait for
 * such messages: the client does not answer before it was answered itself. They must leave alone
 * what the work in progress relies on; a command that frees a queue belongs into work of its own.
 * Resets and unmappings never happen inside.
 *
 * While bus mastering is off every access fails with -EPERM.
 */
#ifndef ERNIC_VFIO_GUEST_MEM_H
#define ERNIC_VFIO_GUEST_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct guest_mem;

enum guest_access {
	GUEST_READ = 1,  /* the device reads guest memory */
	GUEST_WRITE = 2, /* the device writes guest memory */
};

/*
 * Translates SIZE bytes at guest address ADDR into host pieces, at most MAX of them. Returns their
 * number (0 for SIZE 0; pieces that are adjacent in this process too are one), or
 *   -EFAULT  part of the range is not mapped, or wraps
 *   -EACCES  part of it may not be accessed that way
 *   -E2BIG   it takes more than MAX pieces
 *   -ENOTSUP part of it is memory without a descriptor; guest_mem_read() and _write() reach it
 *   -EPERM   bus mastering is off
 */
int guest_mem_map(struct guest_mem *mem, uint64_t addr, size_t size, enum guest_access access,
                  struct iovec *iov, unsigned max);

/* Copies SIZE bytes out of or into guest memory. Returns 0 or as guest_mem_map(), or -EIO when a
 * message to the client failed: it refused, was too slow, or asked for something that comes first.
 * A failed write may have been done in part. */
int guest_mem_read(struct guest_mem *mem, uint64_t addr, void *dst, size_t size);
int guest_mem_write(struct guest_mem *mem, uint64_t addr, const void *src, size_t size);

/*
 * As guest_mem_write(), for entries whose last bytes tell the guest that they are there (color
 * bits, event numbers): the last 8 bytes become visible after all the others, and after everything
 * that was written before. SIZE is a multiple of 8, at most 64, and ADDR is aligned to 8.
 */
int guest_mem_post(struct guest_mem *mem, uint64_t addr, const void *src, size_t size);

/* Changes with every mapping that comes or goes: a cached translation of another generation is
 * void. 0 while bus mastering is off: none may be used then. Caching is for data paths that have
 * measured that they need it. */
uint64_t guest_mem_generation(const struct guest_mem *mem);

#endif
