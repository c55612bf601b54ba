// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vfio-user messages: any stream of bytes, with any descriptors, into the real server, and a device
 * that moves guest memory wherever registers tell it. Nothing may break, leak a descriptor, or be
 * answered in a form that the protocol does not have; and the next client finds all as it was.
 *
 * The first byte of the input says what the harness does (enum mode); a stream of messages follows.
 * The upper bits of a message's id say which descriptors come with it (enum id_bits).
 */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "vfio/protocol.h"
#include "vfio/vfio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum mode {
	MODE_VERSION = 1, /* the handshake and bus mastering come first, so that the rest counts */
	MODE_SIZES = 2,   /* message sizes are made to fit the stream */
};

enum id_bits {
	ID_MEMORY = 0x8000, /* a file of guest memory */
	ID_EVENTS = 0x4000, /* eventfds, as many as ID_COUNT says */
	ID_OTHER = 0x2000,  /* something else */
	ID_COUNT = 0x0700,
};

/* What a write to BAR0 makes the device do, by its offset; its value is an address. */
enum device_op { OP_READ, OP_WRITE, OP_POST, OP_MAP, OP_RAISE, OP_TRUNCATE, OP_COUNT };

#define MEMORY_SIZE 65536
#define STREAM_MAX  65536
#define OPS_MAX     64
#define BAR0_SIZE   0x10000
#define VECTORS     16

static struct loop *loop;
static struct vfio_server *server;
static int memory = -1, event = -1, other = -1;
static bool truncated;

static struct {
	struct loop_work work;
	unsigned count;
	struct {
		enum device_op op;
		uint64_t addr;
		size_t size;
	} ops[OPS_MAX];
} device;

/* ---- the device ---- */

static void run_op(enum device_op op, uint64_t addr, size_t size)
{
	static uint8_t buf[4096];
	struct guest_mem *mem = vfio_server_guest_mem(server);
	struct iovec iov[4];
	int pieces;

	switch (op) {
	case OP_READ:
		guest_mem_read(mem, addr, buf, size);
		break;
	case OP_WRITE:
		guest_mem_write(mem, addr, buf, size);
		break;
	case OP_POST:
		guest_mem_post(mem, addr, buf, 8 + size % 8 * 8);
		break;
	case OP_MAP:
		pieces = guest_mem_map(mem, addr, size, GUEST_WRITE, iov, ARRAY_SIZE(iov));
		for (int i = 0; i < pieces; i++)
			memset(iov[i].iov_base, 0x5a, iov[i].iov_len);
		break;
	case OP_RAISE:
		pci_irq_raise(vfio_server_pci_irq(server), addr % VECTORS);
		break;
	case OP_TRUNCATE:
		truncated = true;
		if (ftruncate(memory, (off_t)(addr % MEMORY_SIZE)) < 0)
			abort();
		break;
	default:
		break;
	}
}

static void device_work(struct loop_work *work)
{
	(void)work;
	for (unsigned i = 0; i < device.count; i++)
		run_op(device.ops[i].op, device.ops[i].addr, device.ops[i].size);
	device.count = 0;
}

static void device_read(void *arg, unsigned bar, uint64_t offset, void *data, size_t size)
{
	(void)arg;
	assert(size >= 1 && size <= 8 && bar == 0 && offset <= BAR0_SIZE - size);
	memset(data, (int)offset, size);
}

static void device_write(void *arg, unsigned bar, uint64_t offset, const void *data, size_t size)
{
	uint64_t value = 0;

	(void)arg;
	assert(size >= 1 && size <= 8 && bar == 0 && offset <= BAR0_SIZE - size);
	memcpy(&value, data, size);
	if (device.count == OPS_MAX)
		return;
	device.ops[device.count].op = (enum device_op)(offset / 8 % OP_COUNT);
	device.ops[device.count].addr = value;
	device.ops[device.count++].size = 1 + offset / 64 % 4096;
	loop_schedule(loop, &device.work);
}

static void device_reset(void *arg, enum vfio_reset reason)
{
	uint8_t byte;

	(void)arg;
	(void)reason;
	assert(guest_mem_read(vfio_server_guest_mem(server), 0, &byte, 1) < 0);
	device.count = 0;
}

static void start(void)
{
	static const struct vfio_device_ops ops = {
	        .bar_read = device_read, .bar_write = device_write, .reset = device_reset};
	static const struct vfio_pci_config pci = {.bar_size = {BAR0_SIZE},
	                                           .msix_count = VECTORS,
	                                           .msix_table_offset = 0x8000,
	                                           .msix_pba_offset = 0xc000,
	                                           .link_speed = 3,
	                                           .link_width = 8};
	struct vfio_server_config config = {.pci = &pci, .ops = &ops, .fd = -1};

	device.work.run = device_work;
	if (loop_create(&loop))
		abort();
	config.loop = loop;
	if (vfio_server_create(&config, &server))
		abort();
	memory = memfd_create("guest", MFD_CLOEXEC);
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (memory < 0 || event < 0 || other < 0 || ftruncate(memory, MEMORY_SIZE) < 0)
		abort();
}

/* ---- the client ---- */

static unsigned attach(void *arg, const void *bytes, int *fds, unsigned max)
{
	struct vfio_user_header header;
	unsigned count = 0;

	(void)arg;
	memcpy(&header, bytes, sizeof(header));
	if (header.id & ID_MEMORY)
		fds[count++] = dup(memory);
	if (header.id & ID_OTHER)
		fds[count++] = dup(other);
	if (header.id & ID_EVENTS)
		for (unsigned i = 0; i <= (header.id & ID_COUNT) / 0x100; i++)
			fds[count++] = dup(event);
	assert(count <= max);
	return count;
}

static void on_reply(void *arg, const struct iovec *iov, unsigned count)
{
	struct vfio_user_header header;
	size_t size = 0;
	uint8_t sum = 0;

	(void)arg;
	assert(count > 0 && iov[0].iov_len == sizeof(header));
	memcpy(&header, iov[0].iov_base, sizeof(header));
	for (unsigned i = 0; i < count; i++) {
		/* so that memory that was never set is found */
		for (size_t j = 0; j < iov[i].iov_len; j++)
			sum ^= ((const uint8_t *)iov[i].iov_base)[j];
		size += iov[i].iov_len;
	}
	assert(header.size == size && size <= VFIO_USER_MAX_MESSAGE);
	if (header.flags == VFIO_USER_TYPE_COMMAND)
		assert(header.command == VFIO_USER_DMA_READ ||
		       header.command == VFIO_USER_DMA_WRITE);
	else if (header.flags == (VFIO_USER_TYPE_REPLY | VFIO_USER_ERROR))
		assert(header.error != 0 && size == sizeof(header));
	else
		assert(header.flags == VFIO_USER_TYPE_REPLY && header.error == 0);
	asm volatile("" : : "r"(sum));
}

static void add(uint8_t *stream, size_t *used, const void *data, size_t size)
{
	memcpy(stream + *used, data, size);
	*used += size;
}

static void add_handshake(uint8_t *stream, size_t *used)
{
	const struct vfio_user_header version = {.command = VFIO_USER_VERSION, .size = 20};
	const struct vfio_user_header write = {
	        .command = VFIO_USER_REGION_WRITE, .size = 34, .flags = VFIO_USER_NO_REPLY};
	const struct vfio_user_region_access access = {
	        .offset = 4, .region = VFIO_USER_CONFIG, .count = 2};

	add(stream, used, &version, sizeof(version));
	add(stream, used, "\0\0\0\0", 4);
	add(stream, used, &write, sizeof(write));
	add(stream, used, &access, sizeof(access));
	add(stream, used, "\x06\x00", 2);
}

/* Makes every size one that leads to the next message. */
static void repair_sizes(uint8_t *stream, size_t from, size_t used)
{
	struct vfio_user_header header;

	while (used - from >= sizeof(header)) {
		memcpy(&header, stream + from, sizeof(header));
		if (header.size < sizeof(header))
			header.size += (uint32_t)sizeof(header);
		if (header.size > used - from)
			header.size = (uint32_t)(used - from);
		memcpy(stream + from, &header, sizeof(header));
		from += header.size;
	}
}

/* The number of the next descriptor; it changes when one is leaked. */
static int next_fd(void)
{
	int fd = dup(other);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t stream[STREAM_MAX + 256];
	struct vfio_replay replay = {.data = stream, .attach = attach, .reply = on_reply};
	size_t head = 0;

	if (size < 1 || size > STREAM_MAX)
		return 0;
	if (!server)
		start();
	int free_fd = next_fd();

	if (data[0] & MODE_VERSION)
		add_handshake(stream, &head);
	replay.size = head;
	add(stream, &replay.size, data + 1, size - 1);
	if (data[0] & MODE_SIZES)
		repair_sizes(stream, head, replay.size);
	if (vfio_server_replay(server, &replay))
		abort();
	assert(!vfio_server_attached(server));
	if (truncated && ftruncate(memory, MEMORY_SIZE) < 0)
		abort();
	truncated = false;
	assert(next_fd() == free_fd);
	return 0;
}
