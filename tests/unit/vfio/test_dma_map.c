/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest memory that the client passes as files: mapping, access, and everything that goes wrong
 * with it (spec vfio-user 4.1, 4.2, 6 and 12, rows 9 and 15 to 26). */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define RW    (VFIO_USER_MAP_READ | VFIO_USER_MAP_WRITE)
#define PAGE  UINT64_C(4096)
#define MIB   UINT64_C(1048576)
#define GUEST UINT64_C(0x40000000)

static struct guest_mem *mem;
static int memory; /* 1 MiB, every page filled with its number */
static uint8_t *view;

static int setup(void **state)
{
	rig_setup(state);
	rig_enable(*state);
	mem = vfio_server_guest_mem(((struct rig *)*state)->server);
	memory = rig_memfd(MIB);
	view = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	assert_true(view != MAP_FAILED);
	for (uint64_t page = 0; page < MIB / PAGE; page++)
		memset(view + page * PAGE, (int)page, PAGE);
	return 0;
}

static int teardown(void **state)
{
	munmap(view, MIB);
	close(memory);
	return rig_teardown(state);
}

/* The byte that the device reads at ADDR, or a negative errno. */
static int byte_at(uint64_t addr)
{
	uint8_t byte;
	int error = guest_mem_read(mem, addr, &byte, 1);

	return error ? error : byte;
}

static void maps_the_file_at_its_offset(void **state)
{
	struct rig *rig = *state;
	uint64_t value = 0x1122334455667788;

	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, memory, 32 * PAGE), 0);
	assert_int_equal(byte_at(GUEST - 1), -EFAULT);
	assert_int_equal(byte_at(GUEST), 32);
	assert_int_equal(byte_at(GUEST + 16 * PAGE - 1), 47);
	assert_int_equal(byte_at(GUEST + 16 * PAGE), -EFAULT);
	assert_int_equal(guest_mem_write(mem, GUEST + 5, &value, 8), 0);
	assert_memory_equal(view + 32 * PAGE + 5, &value, 8);
	assert_int_equal(rig_unmap(rig, GUEST, 16 * PAGE), 0);
	assert_int_equal(byte_at(GUEST), -EFAULT);
}

static void accepts_what_qemu_maps(void **state)
{
	struct rig *rig = *state;
	uint32_t flags = RW | VFIO_USER_MAP_MMAP;

	/* RAM in pieces of one file, ROM between them read-only, BIOS without a file */
	assert_int_equal(rig_map(rig, 0, 0x40000, flags, memory, 0), 0);
	assert_int_equal(rig_map(rig, 0x40000, 0x20000, VFIO_USER_MAP_READ, memory, 0x40000), 0);
	assert_int_equal(rig_map(rig, 0x60000, 0xa0000, RW, memory, 0x60000), 0);
	assert_int_equal(rig_map(rig, 0xfffc0000, 0x40000, VFIO_USER_MAP_READ, -1, 0), 0);
	assert_int_equal(rig_map(rig, 0x100000008, 24, RW, -1, 0), 0);
	/* what is adjacent in the file is one piece */
	struct iovec iov[2];

	assert_int_equal(guest_mem_map(mem, 0, MIB, GUEST_READ, iov, 2), 1);
	assert_int_equal(iov[0].iov_len, MIB);
	assert_int_equal(guest_mem_map(mem, 0, MIB, GUEST_WRITE, iov, 2), -EACCES);
	assert_int_equal(rig_counter("vfio_file_mapped") > 0, 1);
}

/* A PAM change takes all RAM away and brings it back: it costs no mmap(). */
static void maps_a_file_once(void **state)
{
	struct rig *rig = *state;
	uint64_t before = rig_counter("vfio_file_mapped");

	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(rig_map(rig, i * MIB, MIB / 2, RW, memory, 0), 0);
		assert_int_equal(rig_map(rig, i * MIB + MIB / 2, MIB / 2, 1, memory, MIB / 2), 0);
		assert_int_equal(rig_unmap(rig, i * MIB, MIB), 0);
	}
	assert_int_equal(rig_counter("vfio_file_mapped"), before + 1);
	/* a file that grew is mapped again when the new part is asked for */
	assert_int_equal(ftruncate(memory, 2 * MIB), 0);
	assert_int_equal(rig_map(rig, 0, MIB, RW, memory, 0), 0);
	assert_int_equal(rig_map(rig, MIB, MIB, RW, memory, MIB), 0);
	assert_int_equal(rig_counter("vfio_file_mapped"), before + 2);
	assert_int_equal(byte_at(MIB), 0);
}

/* A file without ranges goes after a moment; one with any stays. */
static void lets_go_of_a_file_that_is_not_used(void **state)
{
	struct rig *rig = *state;
	int other = rig_memfd(PAGE);

	assert_int_equal(rig_map(rig, 0, PAGE, RW, memory, 0), 0);
	assert_int_equal(rig_map(rig, PAGE, PAGE, RW, other, 0), 0);
	assert_int_equal(rig_unmap(rig, 0, PAGE), 0);
	assert_int_equal(mem->files.count, 2);
	assert_true(mem->files.idle_timer.armed);
	loop_arm(rig->loop, &mem->files.idle_timer, loop_now(rig->loop));
	rig_turn(rig);
	assert_int_equal(mem->files.count, 1);
	assert_int_equal(mem->files.mapped, PAGE);
	assert_int_equal(byte_at(PAGE), 0);
	close(other);
}

/* Row 15. */
static void refuses_impossible_ranges(void **state)
{
	static const struct {
		uint64_t addr, size, offset;
		bool file;
	} cases[] = {
	        {0, 0, 0, false},
	        {0, 0, 0, true},
	        {PAGE, UINT64_MAX - PAGE + 2, 0, false},
	        {UINT64_MAX, 2, 0, false},
	        {GUEST + 1, PAGE, 0, true},
	        {GUEST, PAGE + 8, 0, true},
	        {GUEST, PAGE, 8, true},
	        {GUEST, PAGE, INT64_MAX, true},
	        {GUEST, PAGE, UINT64_MAX - PAGE + 1, true},
	        {GUEST, INT64_MAX - PAGE + 1, PAGE, true},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_COUNT("vfio_mem_range",
		             assert_int_equal(rig_map(rig, cases[i].addr, cases[i].size, RW,
		                                      cases[i].file ? memory : -1, cases[i].offset),
		                              -EINVAL));
	/* the end may be the end of the address space */
	assert_int_equal(rig_map(rig, UINT64_MAX - PAGE + 1, PAGE, RW, memory, 7 * PAGE), 0);
	assert_int_equal(byte_at(UINT64_MAX), 7);
	assert_int_equal(rig_unmap(rig, UINT64_MAX - PAGE + 1, PAGE), 0);
}

/* Row 17. */
static void refuses_overlaps_but_not_repetitions(void **state)
{
	static const uint64_t overlaps[][2] = {
	        {GUEST, 4 * PAGE},         {GUEST, 17 * PAGE},        {GUEST - PAGE, 2 * PAGE},
	        {GUEST + 15 * PAGE, PAGE}, {GUEST - PAGE, 20 * PAGE}, {GUEST + 8 * PAGE, 16 * PAGE},
	};
	struct rig *rig = *state;
	int other = rig_memfd(MIB);

	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, memory, 0), 0);
	for (size_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++) {
		EXPECT_COUNT("vfio_mem_overlap",
		             assert_int_equal(
		                     rig_map(rig, overlaps[i][0], overlaps[i][1], RW, memory, 0),
		                     -EEXIST));
		EXPECT_COUNT(
		        "vfio_mem_overlap",
		        assert_int_equal(rig_map(rig, overlaps[i][0], overlaps[i][1], RW, -1, 0),
		                         -EEXIST));
	}
	/* the same again is no error, any number of times, and counts once */
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, memory, 0), 0);
	/* the same with another file, offset, access, or none */
	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, other, 0), -EEXIST);
	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, memory, PAGE), -EEXIST);
	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, VFIO_USER_MAP_READ, memory, 0), -EEXIST);
	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, -1, 0), -EEXIST);
	assert_int_equal(rig_unmap(rig, GUEST, 16 * PAGE), 0);
	assert_int_equal(byte_at(GUEST), -EFAULT);
	assert_int_equal(rig_map(rig, GUEST, 16 * PAGE, RW, other, 0), 0);
	assert_int_equal(byte_at(GUEST), 0);
	close(other);
}

/* Row 18. */
static void refuses_ranges_behind_the_end_of_the_file(void **state)
{
	struct rig *rig = *state;

	EXPECT_COUNT("vfio_file_range",
	             assert_int_equal(rig_map(rig, GUEST, MIB + PAGE, RW, memory, 0), -EINVAL));
	EXPECT_COUNT("vfio_file_range",
	             assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, MIB), -EINVAL));
	EXPECT_COUNT(
	        "vfio_file_range",
	        assert_int_equal(rig_map(rig, GUEST, 2 * PAGE, RW, memory, MIB - PAGE), -EINVAL));
	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, MIB - PAGE), 0);
	/* also for a file that is mapped already and has shrunk since */
	assert_int_equal(ftruncate(memory, MIB / 2), 0);
	EXPECT_COUNT("vfio_file_range",
	             assert_int_equal(rig_map(rig, 0, PAGE, RW, memory, MIB / 2), -EINVAL));
}

/* Row 20. */
static void refuses_everything_but_memory_files(void **state)
{
	struct rig *rig = *state;
	char path[] = "/var/tmp/ernic-unit-XXXXXX";
	int pipe_fds[2], sockets[2];

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	const int wrong[] = {pipe_fds[0],
	                     pipe_fds[1],
	                     sockets[0],
	                     eventfd(0, 0),
	                     open("/", O_RDONLY | O_DIRECTORY),
	                     open("/dev/zero", O_RDWR),
	                     open("/proc/self/mem", O_RDWR),
	                     open("/proc/self/exe", O_PATH)};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(wrong[i] >= 0);
		assert_int_equal(rig_map(rig, GUEST, PAGE, RW, wrong[i], 0), -EINVAL);
		close(wrong[i]);
	}
	close(sockets[1]);
	/* an ordinary file, unless it happens to be on a tmpfs here */
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	uint64_t before = rig_counter("vfio_file_refused");
	int error = rig_map(rig, GUEST, PAGE, RW, fd, 0);

	assert_true(error == 0 ||
	            (error == -EINVAL && rig_counter("vfio_file_refused") == before + 1));
	close(fd);
}

/* Row 21. */
static void refuses_to_write_what_can_only_be_read(void **state)
{
	struct rig *rig = *state;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, fd, 0), -EACCES);
	assert_int_equal(rig_map(rig, GUEST, PAGE, VFIO_USER_MAP_READ, fd, PAGE), 0);
	assert_int_equal(byte_at(GUEST), 1);
	/* a right that another descriptor of the file gave is not passed on */
	assert_int_equal(rig_map(rig, 0, PAGE, RW, memory, 0), 0);
	assert_int_equal(rig_map(rig, GUEST + MIB, PAGE, RW, fd, 0), -EACCES);
	close(fd);
	/* a write-only descriptor cannot be mapped at all */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(rig_map(rig, GUEST + MIB, PAGE, RW, fd, 0), -EACCES);
	close(fd);
}

static void checks_flags_and_argsz(void **state)
{
	struct rig *rig = *state;
	struct vfio_user_dma_map map = {.argsz = 31, .flags = RW, .size = PAGE};

	EXPECT_COUNT("vfio_bad_argsz",
	             assert_int_equal(rig_call(rig, VFIO_USER_DMA_MAP, &map, sizeof(map), NULL, 0),
	                              -EINVAL));
	map.argsz = UINT32_MAX; /* more than needed is what the client can take: no matter */
	assert_int_equal(rig_call(rig, VFIO_USER_DMA_MAP, &map, sizeof(map), NULL, 0), 0);
	for (uint32_t bit = 2; bit < 32; bit++) {
		EXPECT_COUNT("vfio_map_flags",
		             assert_int_equal(rig_map(rig, GUEST, PAGE, RW | 1u << bit, -1, 0),
		                              -EINVAL));
		if (bit > 2)
			EXPECT_COUNT("vfio_map_flags",
			             assert_int_equal(
			                     rig_map(rig, GUEST, PAGE, RW | 1u << bit, memory, 0),
			                     -EINVAL));
	}
	/* neither read nor write: there, and of no use */
	assert_int_equal(rig_map(rig, GUEST, PAGE, 0, memory, 0), 0);
	assert_int_equal(byte_at(GUEST), -EACCES);
}

/* ---- unmapping ---- */

static int unmap_raw(struct rig *rig, uint32_t argsz, uint32_t flags, uint64_t addr, uint64_t size)
{
	struct vfio_user_dma_unmap unmap = {
	        .argsz = argsz, .flags = flags, .address = addr, .size = size};

	return rig_call(rig, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), &unmap, sizeof(unmap));
}

static void unmaps_what_lies_inside(void **state)
{
	struct rig *rig = *state;

	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(rig_map(rig, GUEST + 2 * i * PAGE, PAGE, RW, memory, i * PAGE), 0);
	/* nothing there: QEMU does that */
	assert_int_equal(rig_unmap(rig, 0, GUEST), 0);
	assert_int_equal(rig_unmap(rig, GUEST + PAGE, PAGE), 0);
	/* one, two, and the rest with a range of a virtual IOMMU */
	assert_int_equal(rig_unmap(rig, GUEST, PAGE), 0);
	assert_int_equal(rig_unmap(rig, GUEST + PAGE, 4 * PAGE), 0);
	assert_int_equal(byte_at(GUEST + 4 * PAGE), -EFAULT);
	assert_int_equal(byte_at(GUEST + 6 * PAGE), 3);
	assert_int_equal(rig_unmap(rig, 0, UINT64_MAX), 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(byte_at(GUEST + 2 * i * PAGE), -EFAULT);
}

static void refuses_to_cut_ranges(void **state)
{
	static const uint64_t cuts[][2] = {
	        {GUEST, PAGE},
	        {GUEST + 3 * PAGE, PAGE},
	        {GUEST + PAGE, PAGE},
	        {GUEST - PAGE, 2 * PAGE},
	        {GUEST + 3 * PAGE, 8 * PAGE},
	        {GUEST + 1, 4 * PAGE - 1},
	        {GUEST, 4 * PAGE - 1},
	};
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, GUEST, 4 * PAGE, RW, memory, 0), 0);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		EXPECT_COUNT("vfio_mem_cut",
		             assert_int_equal(rig_unmap(rig, cuts[i][0], cuts[i][1]), -EINVAL));
	assert_int_equal(byte_at(GUEST), 0);
}

/* Rows 23 and 24. */
static void checks_unmap_flags_and_argsz(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, PAGE), 0);
	assert_int_equal(unmap_raw(rig, 23, 0, GUEST, PAGE), -EINVAL);
	assert_int_equal(unmap_raw(rig, 0, 0, GUEST, PAGE), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, 1, GUEST, PAGE), -EINVAL); /* dirty bitmap */
	assert_int_equal(unmap_raw(rig, 24, 4, GUEST, PAGE), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, UINT32_MAX, 0, 0), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, 3, 0, 0), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, 0, GUEST, 0), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, 0, GUEST, UINT64_MAX), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, VFIO_USER_UNMAP_ALL, GUEST, 0), -EINVAL);
	assert_int_equal(unmap_raw(rig, 24, VFIO_USER_UNMAP_ALL, 0, PAGE), -EINVAL);
	assert_int_equal(byte_at(GUEST), 1);
	assert_int_equal(unmap_raw(rig, UINT32_MAX, VFIO_USER_UNMAP_ALL, 0, 0), 24);
	assert_int_equal(byte_at(GUEST), -EFAULT);
	assert_int_equal(unmap_raw(rig, 24, VFIO_USER_UNMAP_ALL, 0, 0), 24);
}

/* SPDK sends a descriptor along. */
static void closes_a_descriptor_that_comes_with_an_unmap(void **state)
{
	struct rig *rig = *state;
	struct vfio_user_dma_unmap unmap = {.argsz = 24, .address = GUEST, .size = PAGE};
	unsigned before = rig_open_fds();

	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, 0), 0);
	assert_int_equal(rig_call_fds(rig, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), &memory, 1),
	                 sizeof(unmap));
	assert_int_equal(rig_open_fds(), before);
}

/* ---- limits ---- */

/* Maps 64 pages, pipelined as QEMU does, in an order that is neither up nor down: 40503 is coprime
 * to 65536. Only the very last does not find room. */
static void map_64(struct rig *rig, uint64_t first)
{
	struct vfio_user_header header;

	for (uint64_t i = first; i < first + 64; i++) {
		uint64_t page = i * 40503 % 65536;
		struct vfio_user_dma_map map = {.argsz = 32,
		                                .flags = RW,
		                                .offset = page % 256 * PAGE,
		                                .address = GUEST + page * PAGE,
		                                .size = PAGE};

		rig_send_fds(rig, VFIO_USER_DMA_MAP, &map, sizeof(map), &memory, 1);
	}
	rig_turn(rig);
	for (uint64_t i = first; i < first + 64; i++) {
		assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
		assert_int_equal(header.error, i < 65535 ? 0 : ENOSPC);
	}
}

/* Rows 9, 16 and 25: a virtual IOMMU's worth of maps, each with a descriptor. */
static void holds_65535_maps_of_one_file(void **state)
{
	struct rig *rig = *state;
	unsigned before = rig_open_fds();
	uint64_t files = rig_counter("vfio_file_mapped");

	for (uint64_t i = 0; i < 65536; i += 64)
		map_64(rig, i);
	assert_int_equal(rig_open_fds(), before);
	assert_int_equal(rig_counter("vfio_file_mapped"), files + 1);
	for (uint64_t page = 0; page < 65536; page += 251)
		assert_int_equal(byte_at(GUEST + page * PAGE), page % 256);
	/* translations merge what the file has adjacent */
	struct iovec iov[1];

	assert_int_equal(guest_mem_map(mem, GUEST, 256 * PAGE, GUEST_READ, iov, 1), 1);
	assert_int_equal(guest_mem_map(mem, GUEST, 256 * PAGE + 1, GUEST_READ, iov, 1), -E2BIG);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(rig_unmap(rig, GUEST + i * 61 * PAGE, PAGE), 0);
	assert_int_equal(byte_at(GUEST + 61 * PAGE), -EFAULT);
	assert_int_equal(byte_at(GUEST + 62 * PAGE), 62);
	assert_int_equal(unmap_raw(rig, 24, VFIO_USER_UNMAP_ALL, 0, 0), 24);
	assert_int_equal(byte_at(GUEST + 62 * PAGE), -EFAULT);
}

static void limits_files_and_address_space(void **state)
{
	struct rig *rig = *state;
	int error = 0;
	uint64_t i;

	for (i = 0; error == 0 && i < 1000; i++) {
		int fd = rig_memfd(PAGE);

		error = rig_map(rig, i * PAGE, PAGE, RW, fd, 0);
		close(fd);
	}
	assert_int_equal(error, -ENOSPC);
	assert_true(i > 256); /* a machine with every memory slot filled */
	/* they are gone with their ranges, if not at once */
	assert_int_equal(unmap_raw(rig, 24, VFIO_USER_UNMAP_ALL, 0, 0), 24);
	guest_files_trim(&mem->files);
	int large = rig_memfd(INT64_MAX / 2);

	EXPECT_COUNT("vfio_file_limit",
	             assert_int_equal(rig_map(rig, 0, PAGE, RW, large, 0), -ENOSPC));
	assert_int_equal(rig_map(rig, 0, PAGE, RW, memory, 0), 0);
	close(large);
}

/* Row 8 and 9: the kernel drops descriptors that do not fit our table. */
static void drops_a_client_whose_descriptors_were_lost(void **state)
{
	struct rig *rig = *state;
	struct rlimit limit, low;
	struct vfio_user_set_irqs request = {.argsz = 20, .flags = 0x24, .index = 2, .count = 4};
	int fds[4];
	unsigned before;

	for (unsigned i = 0; i < 4; i++)
		fds[i] = eventfd(0, EFD_CLOEXEC);
	before = rig_open_fds();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	rig_send_fds(rig, VFIO_USER_SET_IRQS, &request, sizeof(request), fds, 4);
	int highest = dup(memory); /* the next two numbers are free, and no others */

	close(highest);
	low = limit;
	low.rlim_cur = (rlim_t)highest + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	EXPECT_COUNT("vfio_fds_truncated", rig_turn(rig));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	rig_expect_closed(rig);
	assert_int_equal(rig_open_fds(), before - 2);
	for (unsigned i = 0; i < 4; i++)
		close(fds[i]);
}

/* ---- access ---- */

/* Row 26. */
static void crosses_ranges_and_stops_at_holes(void **state)
{
	struct rig *rig = *state;
	uint8_t data[3 * 4096];
	struct iovec iov[4];

	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, 9 * PAGE), 0);
	assert_int_equal(rig_map(rig, GUEST + PAGE, PAGE, RW, memory, 3 * PAGE), 0);
	assert_int_equal(rig_map(rig, GUEST + 2 * PAGE, PAGE, VFIO_USER_MAP_READ, memory, 0), 0);
	assert_int_equal(guest_mem_map(mem, GUEST + 8, 3 * PAGE - 16, GUEST_READ, iov, 4), 3);
	assert_int_equal(iov[0].iov_len, PAGE - 8);
	assert_int_equal(iov[1].iov_len, PAGE);
	assert_int_equal(iov[2].iov_len, PAGE - 8);
	assert_int_equal(guest_mem_map(mem, GUEST + 8, 3 * PAGE - 16, GUEST_READ, iov, 2), -E2BIG);
	assert_int_equal(guest_mem_map(mem, GUEST, 2 * PAGE + 1, GUEST_WRITE, iov, 4), -EACCES);
	assert_int_equal(guest_mem_map(mem, GUEST, 3 * PAGE + 1, GUEST_READ, iov, 4), -EFAULT);
	assert_int_equal(guest_mem_map(mem, GUEST - 1, 2, GUEST_READ, iov, 4), -EFAULT);
	assert_int_equal(guest_mem_map(mem, GUEST, SIZE_MAX, GUEST_READ, iov, 4), -EFAULT);
	assert_int_equal(guest_mem_map(mem, UINT64_MAX, 2, GUEST_READ, iov, 4), -EFAULT);
	assert_int_equal(guest_mem_map(mem, 0, 0, GUEST_READ, iov, 4), 0);
	assert_int_equal(guest_mem_read(mem, GUEST + PAGE - 2, data, 4), 0);
	assert_memory_equal(data, "\x09\x09\x03\x03", 4);
	assert_int_equal(guest_mem_write(mem, GUEST + PAGE - 2, "abcd", 4), 0);
	assert_memory_equal(view + 10 * PAGE - 2, "ab", 2);
	assert_memory_equal(view + 3 * PAGE, "cd", 2);
	assert_int_equal(guest_mem_write(mem, GUEST + 2 * PAGE - 2, "abcd", 4), -EACCES);
	assert_int_equal(view[0], 0);
}

static void needs_bus_mastering(void **state)
{
	struct rig *rig = *state;
	struct iovec iov;
	uint64_t value = 0;

	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, 0), 0);
	rig_config_write(rig, RIG_COMMAND_REG, 0x0402, 2);
	assert_int_equal(guest_mem_map(mem, GUEST, 8, GUEST_READ, &iov, 1), -EPERM);
	assert_int_equal(guest_mem_read(mem, GUEST, &value, 8), -EPERM);
	assert_int_equal(guest_mem_write(mem, GUEST, &value, 8), -EPERM);
	EXPECT_COUNT("vfio_mem_no_master",
	             assert_int_equal(guest_mem_post(mem, GUEST, &value, 8), -EPERM));
	rig_config_write(rig, RIG_COMMAND_REG, 0x0406, 2);
	assert_int_equal(guest_mem_read(mem, GUEST, &value, 8), 0);
}

static void posts_entries(void **state)
{
	struct rig *rig = *state;
	uint8_t entry[64];

	for (unsigned i = 0; i < sizeof(entry); i++)
		entry[i] = (uint8_t)(0x80 + i);
	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, 0), 0);
	assert_int_equal(rig_map(rig, GUEST + PAGE, PAGE, RW, memory, 5 * PAGE), 0);
	for (size_t size = 8; size <= 64; size += 8) {
		memset(view, 0, PAGE);
		assert_int_equal(guest_mem_post(mem, GUEST + 0x40, entry, size), 0);
		assert_memory_equal(view + 0x40, entry, size);
		assert_int_equal(view[0x3f], 0);
		assert_int_equal(view[0x40 + size], 0);
	}
	/* across two files, and where nobody should put them */
	assert_int_equal(guest_mem_post(mem, GUEST + PAGE - 16, entry, 32), 0);
	assert_memory_equal(view + PAGE - 16, entry, 16);
	assert_memory_equal(view + 5 * PAGE, entry + 16, 16);
	assert_int_equal(guest_mem_post(mem, GUEST + 3, entry, 16), 0);
	assert_memory_equal(view + 3, entry, 16);
	assert_int_equal(guest_mem_post(mem, GUEST + 2 * PAGE - 8, entry, 16), -EFAULT);
	assert_int_equal(guest_mem_post(mem, GUEST + 2 * PAGE, entry, 8), -EFAULT);
}

static void changes_its_generation_with_every_change(void **state)
{
	struct rig *rig = *state;
	uint64_t last = guest_mem_generation(mem);

	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, 0), 0);
	assert_int_not_equal(guest_mem_generation(mem), last);
	last = guest_mem_generation(mem);
	assert_int_equal(rig_map(rig, GUEST, PAGE, RW, memory, 0), 0);
	byte_at(GUEST);
	assert_int_equal(guest_mem_generation(mem), last);
	assert_int_equal(rig_unmap(rig, GUEST, PAGE), 0);
	assert_int_not_equal(guest_mem_generation(mem), last);
}

/* Row 19: the server lives, the client goes, and the next one is served. */
static void survives_a_truncated_file(void **state)
{
	struct rig *rig = *state;
	unsigned before = rig_open_fds();
	static uint8_t data[MIB];

	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(rig_map(rig, GUEST, MIB, RW, memory, 0), 0);
		assert_int_equal(byte_at(GUEST + MIB / 2), 128);
		assert_int_equal(ftruncate(memory, (off_t)MIB / 2), 0);
		assert_int_equal(byte_at(GUEST), 0);
		if (round == 0)
			EXPECT_COUNT("vfio_file_lost",
			             assert_int_equal(guest_mem_read(mem, GUEST, data, MIB), 0));
		else if (round == 1)
			EXPECT_COUNT("vfio_file_lost",
			             assert_int_equal(guest_mem_write(mem, GUEST, data, MIB), 0));
		else
			EXPECT_COUNT("vfio_file_lost",
			             assert_int_equal(
			                     guest_mem_post(mem, GUEST + MIB - 64, data, 64), 0));
		EXPECT_COUNT("vfio_memory_lost", rig_turn(rig));
		rig_expect_closed(rig);
		assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], round + 1);
		assert_int_equal(ftruncate(memory, (off_t)MIB), 0);
		for (uint64_t page = 0; page < MIB / PAGE; page++)
			memset(view + page * PAGE, (int)page, PAGE);
		rig_pair(rig, NULL);
		rig_version(rig);
		rig_enable(rig);
		mem = vfio_server_guest_mem(rig->server);
	}
	assert_int_equal(rig_open_fds(), before);
}

/* The client that did it is gone before the loop hears of it; the next one is not punished. */
static void forgets_a_truncated_file_with_its_client(void **state)
{
	struct rig *rig = *state;
	int pair[2];

	assert_int_equal(rig_map(rig, GUEST, MIB, RW, memory, 0), 0);
	assert_int_equal(ftruncate(memory, 0), 0);
	EXPECT_COUNT("vfio_file_lost", assert_int_equal(byte_at(GUEST), 0));
	client_close(rig->server, "the test says so");
	close(rig->fd);
	assert_int_equal(ftruncate(memory, (off_t)MIB), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	rig->fd = pair[1];
	assert_int_equal(client_open(rig->server, &transport_socket_io, pair[0]), 0);
	rig_version(rig);
	rig_enable(rig);
	assert_int_equal(rig_map(rig, GUEST, MIB, RW, memory, 0), 0);
	assert_int_equal(byte_at(GUEST), 0);
	assert_true(vfio_server_attached(rig->server));
}

/* A lost page that is none of the guest's is nobody's to forgive. */
static void does_not_hide_the_errors_of_others(void **state)
{
	struct rig *rig = *state;
	int own = rig_memfd(PAGE), status;
	volatile uint8_t *page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, own, 0);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGBUS, SIG_DFL);
		if (rig_map(rig, 0, PAGE, RW, memory, 0) || ftruncate(own, 0))
			_exit(1);
		_exit(page[0] == 0 ? 2 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
	munmap((void *)page, PAGE);
	close(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(maps_the_file_at_its_offset),
	        TEST(accepts_what_qemu_maps),
	        TEST(maps_a_file_once),
	        TEST(lets_go_of_a_file_that_is_not_used),
	        TEST(refuses_impossible_ranges),
	        TEST(refuses_overlaps_but_not_repetitions),
	        TEST(refuses_ranges_behind_the_end_of_the_file),
	        TEST(refuses_everything_but_memory_files),
	        TEST(refuses_to_write_what_can_only_be_read),
	        TEST(checks_flags_and_argsz),
	        TEST(unmaps_what_lies_inside),
	        TEST(refuses_to_cut_ranges),
	        TEST(checks_unmap_flags_and_argsz),
	        TEST(closes_a_descriptor_that_comes_with_an_unmap),
	        TEST(holds_65535_maps_of_one_file),
	        TEST(limits_files_and_address_space),
	        TEST(drops_a_client_whose_descriptors_were_lost),
	        TEST(crosses_ranges_and_stops_at_holes),
	        TEST(needs_bus_mastering),
	        TEST(posts_entries),
	        TEST(changes_its_generation_with_every_change),
	        TEST(survives_a_truncated_file),
	        TEST(does_not_hide_the_errors_of_others),
	        TEST(forgets_a_truncated_file_with_its_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
