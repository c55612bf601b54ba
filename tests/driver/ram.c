// SPDX-License-Identifier: GPL-2.0-or-later
/* The guest memory of ram.h. */
#include "ram.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int ram_create(struct ram *ram, size_t size)
{
	int err;

	*ram = (struct ram){.fd = -1, .base = RAM_BASE, .size = size};
	ram->fd = memfd_create("guest-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ram->fd < 0)
		return -errno;
	if (ftruncate(ram->fd, (off_t)size) < 0)
		goto fail;
	if (fcntl(ram->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto fail;
	ram->host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ram->fd, 0);
	if (ram->host == MAP_FAILED)
		goto fail;
	return 0;
fail:
	err = -errno;
	close(ram->fd);
	ram->fd = -1;
	ram->host = NULL;
	return err;
}

void ram_destroy(struct ram *ram)
{
	if (ram->host)
		munmap(ram->host, ram->size);
	if (ram->fd >= 0)
		close(ram->fd);
	ram->host = NULL;
	ram->fd = -1;
}

bool ram_has(const struct ram *ram, uint64_t addr, size_t size)
{
	uint64_t offset = addr - ram->base;

	return size <= ram->size && offset <= ram->size - size;
}

void *ram_at(const struct ram *ram, uint64_t addr)
{
	assert(ram_has(ram, addr, 1));
	return ram->host + (addr - ram->base);
}

uint64_t ram_take(struct ram *ram, size_t size)
{
	uint64_t addr = ram->base + ram->used;

	size = (size + RAM_PAGE - 1) & ~(size_t)(RAM_PAGE - 1);
	if (size > ram->size - ram->used)
		return 0;
	ram->used += size;
	return addr;
}
