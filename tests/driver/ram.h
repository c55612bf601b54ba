/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of a guest: one file in memory that client and server share, as QEMU's memfd backend
 * makes it, and an allocator that only ever grows.
 */
#ifndef ERNIC_TESTS_DRIVER_RAM_H
#define ERNIC_TESTS_DRIVER_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RAM_PAGE 4096
/* Where guest memory begins: above 4 GiB, so that half an address shows. */
#define RAM_BASE 0x140000000ull

struct ram {
	int fd;
	uint8_t *host;
	uint64_t base;
	size_t size, used;
};

/* Makes SIZE bytes (a multiple of RAM_PAGE) of zeros, sealed against shrinking. Returns 0 or a
 * negative errno. */
int ram_create(struct ram *ram, size_t size);
void ram_destroy(struct ram *ram);

/* Whether [ADDR, ADDR+SIZE) is inside. */
bool ram_has(const struct ram *ram, uint64_t addr, size_t size);

/* Host address of the guest address ADDR, which is inside. */
void *ram_at(const struct ram *ram, uint64_t addr);

/* Takes SIZE bytes that begin on a page. Returns their guest address, or 0 when memory is used up.
 */
uint64_t ram_take(struct ram *ram, size_t size);

#endif
