/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Mappings of the files that hold guest memory, and what happens when one is truncated.
 *
 * A file is known by device and inode, and mapped whole and shared: regions are views of it, so
 * that a client with a virtual IOMMU costs one mmap() and not one for every page. The descriptor
 * is closed after the mapping, which keeps the inode alive; a client cannot use up descriptors.
 *
 * Only regular files of tmpfs and hugetlbfs are taken. Pages of other file systems can take
 * forever to arrive (FUSE, NFS), and the thread with them, and so can what fstat() asks for.
 *
 * A client can truncate its file at any time, and the next access raises SIGBUS. The handler
 * replaces the whole mapping by anonymous zeros, so that the access goes on, and signals the
 * poison_fd of the file's owner, who disconnects the client. Checks beforehand cannot do this.
 */
#include "vfio/guest_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/log.h"
#include "vfio/guest_mem.h"
#include "vfio/region_map.h"

/* A machine has one file for its RAM and one for each memory module that is plugged in. */
#define FILES_MAX  512
/* Of 128 TiB that a process has. */
#define MAPPED_MAX (UINT64_C(1) << 45)
#define IDLE_NS    UINT64_C(500000000)

COUNTER(vfio_file_mapped, "files of guest memory that were mapped");
COUNTER(vfio_file_refused, "descriptors for guest memory that are no tmpfs or hugetlbfs file");
COUNTER(vfio_file_range, "guest memory that reaches behind the end of its file");
COUNTER(vfio_file_limit, "guest memory refused because too many files are mapped");
COUNTER(vfio_file_lost, "files of guest memory that lost a page and were replaced by zeros");

struct guest_file {
	struct guest_file *next;
	dev_t dev;
	ino_t ino;
	uint8_t *base;
	uint64_t size; /* bytes mapped; the file may have grown since */
	bool writable;
	unsigned refs;
	struct bus_slot *slot;
};

/* ---- lost pages ---- */

/* What the signal handler knows. A slot is free while base is 0; base is written last. */
static struct bus_slot {
	_Atomic uintptr_t base;
	_Atomic size_t size;
	_Atomic int poison_fd;
} bus_slots[FILES_MAX];

static struct sigaction bus_previous;

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	int saved = errno;

	(void)context;
	for (size_t i = 0; i < ARRAY_SIZE(bus_slots); i++) {
		struct bus_slot *slot = &bus_slots[i];
		uintptr_t base = atomic_load(&slot->base);
		size_t size = atomic_load(&slot->size);
		uint64_t one = 1;

		if (base == 0 || addr < base || addr - base >= size)
			continue;
		if (mmap((void *)base, size, PROT_READ | PROT_WRITE,
		         MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		         0) == MAP_FAILED)
			break;
		counter_inc(&vfio_file_lost);
		ssize_t ignored __attribute__((unused)) =
		        write(atomic_load(&slot->poison_fd), &one, sizeof(one));
		errno = saved;
		return;
	}
	/* Not ours: the access is done again and meets whoever was there before. */
	sigaction(signal, &bus_previous, NULL);
	errno = saved;
}

/* Puts our handler in place, on top of whatever was there. Asked for with every file, because
 * libraries and test frameworks set handlers too. */
static int install_handler(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, now;

	if (sigaction(SIGBUS, NULL, &now) < 0)
		return -errno;
	if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus)
		return 0;
	bus_previous = now;
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}

static struct bus_slot *bus_slot_take(uint8_t *base, size_t size, int poison_fd)
{
	if (install_handler() < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(bus_slots); i++) {
		struct bus_slot *slot = &bus_slots[i];

		if (atomic_load(&slot->base) != 0)
			continue;
		atomic_store(&slot->size, size);
		atomic_store(&slot->poison_fd, poison_fd);
		atomic_store(&slot->base, (uintptr_t)base);
		return slot;
	}
	return NULL;
}

/* ---- files ---- */

static void idle_expired(struct loop_timer *timer)
{
	guest_files_trim(container_of(timer, struct guest_files, idle_timer));
}

void guest_files_init(struct guest_files *files, struct loop *loop, int poison_fd)
{
	*files = (struct guest_files){.loop = loop, .poison_fd = poison_fd};
	files->idle_timer.expired = idle_expired;
}

static void unmap_file(struct guest_files *files, struct guest_file *file)
{
	atomic_store(&file->slot->base, 0);
	munmap(file->base, file->size);
	files->count--;
	files->mapped -= file->size;
	free(file);
}

void guest_files_trim(struct guest_files *files)
{
	struct guest_file **link = &files->first;

	loop_disarm(files->loop, &files->idle_timer);
	while (*link) {
		struct guest_file *file = *link;

		if (file->refs > 0) {
			link = &file->next;
			continue;
		}
		*link = file->next;
		unmap_file(files, file);
	}
}

void guest_file_put(struct guest_files *files, struct guest_file *file)
{
	assert(file->refs > 0);
	file->refs--;
	if (file->refs == 0)
		loop_arm(files->loop, &files->idle_timer, loop_now(files->loop) + IDLE_NS);
}

/* Whether pages of the file that FD is open on come without help from elsewhere. Only files of
 * memory have seals; no other file system is asked anything, because already fstat() waits for the
 * process that serves a file. */
static bool file_is_memory(int fd)
{
	return fcntl(fd, F_GET_SEALS) >= 0;
}

/* The size that mappings of the file are a multiple of, or 0 when it is of another file system. */
static uint64_t file_block(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return 0;
	if (fs.f_type == TMPFS_MAGIC)
		return (uint64_t)sysconf(_SC_PAGESIZE);
	return fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : 0;
}

static int refuse_file(void)
{
	counter_inc(&vfio_file_refused);
	log_guest("vfio: guest memory is not a memfd, shared-memory or hugetlbfs file; "
	          "use memory-backend-memfd,share=on");
	return -EINVAL;
}

static struct guest_file *find_file(struct guest_files *files, const struct stat *info,
                                    uint64_t end, bool writable)
{
	for (struct guest_file *file = files->first; file; file = file->next)
		if (file->ino == info->st_ino && file->dev == info->st_dev && end <= file->size &&
		    file->writable == writable)
			return file;
	return NULL;
}

static int map_whole(struct guest_files *files, int fd, struct guest_file *file)
{
	int prot = file->writable ? PROT_READ | PROT_WRITE : PROT_READ;
	void *base = mmap(NULL, file->size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	file->base = base;
	file->slot = bus_slot_take(base, file->size, files->poison_fd);
	if (!file->slot) {
		munmap(base, file->size);
		return -ENOSPC;
	}
	/* Guest memory has no place in our core dumps. */
	madvise(base, file->size, MADV_DONTDUMP);
	return 0;
}

static int add_file(struct guest_files *files, int fd, const struct stat *info, bool writable,
                    struct guest_file **out)
{
	uint64_t block = file_block(fd);

	if (block == 0)
		return refuse_file();
	uint64_t size = ((uint64_t)info->st_size + block - 1) / block * block;

	if (files->count == FILES_MAX || size > MAPPED_MAX - files->mapped) {
		counter_inc(&vfio_file_limit);
		return -ENOSPC;
	}
	struct guest_file *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	*file = (struct guest_file){.dev = info->st_dev,
	                            .ino = info->st_ino,
	                            .size = size,
	                            .writable = writable,
	                            .next = files->first};
	int error = map_whole(files, fd, file);

	if (error) {
		free(file);
		return error;
	}
	files->first = file;
	files->count++;
	files->mapped += size;
	counter_inc(&vfio_file_mapped);
	*out = file;
	return 0;
}

int guest_file_map(struct guest_files *files, int fd, uint64_t offset, struct region *region)
{
	uint64_t size = region->last - region->start + 1;
	int mode = fcntl(fd, F_GETFL);
	struct stat info;

	if (mode < 0 || (mode & O_PATH) || !file_is_memory(fd))
		return refuse_file();
	if (fstat(fd, &info) < 0)
		return -errno;
	if (offset > (uint64_t)info.st_size || size > (uint64_t)info.st_size - offset) {
		counter_inc(&vfio_file_range);
		return -EINVAL;
	}
	bool writable = (mode & O_ACCMODE) == O_RDWR;

	if ((region->access & GUEST_WRITE) && !writable)
		return -EACCES;
	struct guest_file *file = find_file(files, &info, offset + size, writable);

	if (!file) {
		int error = add_file(files, fd, &info, writable, &file);

		if (error)
			return error;
	}
	file->refs++;
	region->file = file;
	region->host = file->base + offset;
	return 0;
}
