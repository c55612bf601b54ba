// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the allocations of a program that this is preloaded into: a 64-bit number at the start of
 * the file named in $BENCH_ALLOC_FILE.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* What glibc has behind malloc() and the others. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

static uint64_t nowhere;
static uint64_t *counter = &nowhere;

__attribute__((constructor)) static void find_counter(void)
{
	const char *path = getenv("BENCH_ALLOC_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		counter = map;
}

void *malloc(size_t size)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
	return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
	return __libc_realloc(memory, size);
}
