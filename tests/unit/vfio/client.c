/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A vfio-user client and the server under test, in one process. */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "unit.h"

/* ---- the device ---- */

static void note(struct rig *rig, bool write, unsigned bar, uint64_t offset, const void *data,
                 size_t size)
{
	struct rig_access *access = &rig->accesses[rig->access_count % RIG_ACCESSES];

	assert_in_range(size, 1, 8);
	assert_true(bar == 0 || bar == 2);
	assert_true(offset + size <= (bar == 0 ? RIG_BAR0_SIZE : RIG_BAR2_SIZE));
	*access = (struct rig_access){.write = write, .bar = bar, .offset = offset, .size = size};
	memcpy(&access->value, data, size);
	rig->access_count++;
}

static void device_read(void *device, unsigned bar, uint64_t offset, void *data, size_t size)
{
	struct rig *rig = device;

	memset(data, 0, size);
	if (bar == 0)
		memcpy(data, rig->bar0 + offset, size);
	note(rig, false, bar, offset, data, size);
}

static void device_write(void *device, unsigned bar, uint64_t offset, const void *data, size_t size)
{
	struct rig *rig = device;

	if (bar == 0)
		memcpy(rig->bar0 + offset, data, size);
	note(rig, true, bar, offset, data, size);
	if (rig->on_write)
		rig->on_write(rig);
	if (rig->on_work)
		loop_schedule(rig->loop, &rig->work);
}

static void device_reset(void *device, enum vfio_reset reason)
{
	struct rig *rig = device;

	rig->resets[reason]++;
	memset(rig->bar0, 0, sizeof(rig->bar0));
}

static void device_work(struct loop_work *work)
{
	struct rig *rig = container_of(work, struct rig, work);

	rig->on_work(rig);
}

static const struct vfio_device_ops device_ops = {
        .bar_read = device_read,
        .bar_write = device_write,
        .reset = device_reset,
};

static const struct vfio_pci_config device_pci = {
        .vendor_id = 0x1dd8,
        .device_id = 0x1002,
        .subsystem_vendor_id = 0x1dd8,
        .subsystem_id = 0x4000,
        .class_code = 0x020000,
        .revision_id = 3,
        .bar_size = {RIG_BAR0_SIZE, 0, RIG_BAR2_SIZE},
        .msix_count = RIG_VECTORS,
        .msix_bar = 0,
        .msix_table_offset = RIG_TABLE,
        .msix_pba_offset = RIG_PBA,
        .link_speed = 4,
        .link_width = 16,
};

/* ---- life ---- */

struct rig *rig_create(void (*edit)(struct vfio_server_config *config))
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct vfio_server_config config = {
	        .pci = &device_pci, .ops = &device_ops, .device = rig, .fd = -1};

	assert_non_null(rig);
	rig->fd = -1;
	rig->work.run = device_work;
	assert_int_equal(loop_create(&rig->loop), 0);
	config.loop = rig->loop;
	if (edit)
		edit(&config);
	assert_int_equal(vfio_server_create(&config, &rig->server), 0);
	return rig;
}

void rig_destroy(struct rig *rig)
{
	vfio_server_destroy(rig->server);
	loop_cancel(rig->loop, &rig->work);
	loop_destroy(rig->loop);
	if (rig->fd >= 0)
		close(rig->fd);
	free(rig);
}

void rig_pair(struct rig *rig, void (*edit)(struct vfio_server_config *config))
{
	int fds[2];
	struct vfio_server_config config = {
	        .loop = rig->loop, .pci = &device_pci, .ops = &device_ops, .device = rig};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	vfio_server_destroy(rig->server);
	config.fd = fds[0];
	if (edit)
		edit(&config);
	assert_int_equal(vfio_server_create(&config, &rig->server), 0);
	assert_int_equal(vfio_server_start(rig->server), 0);
	if (rig->fd >= 0)
		close(rig->fd);
	rig->fd = fds[1];
}

int rig_setup_silent(void **state)
{
	struct rig *rig = rig_create(NULL);

	rig_pair(rig, NULL);
	*state = rig;
	return 0;
}

int rig_setup(void **state)
{
	rig_setup_silent(state);
	rig_version(*state);
	return 0;
}

int rig_teardown(void **state)
{
	rig_destroy(*state);
	return 0;
}

void rig_turn(struct rig *rig)
{
	struct loop_stats before, after;

	/* Idle is when a turn found neither a message nor work, some times in a row: connections
	 * that come and go take a turn each, and leave nothing to see. */
	for (unsigned quiet = 0; quiet < 10;) {
		uint64_t receives = rig_counter("vfio_receives");

		loop_get_stats(rig->loop, &before);
		assert_int_equal(loop_turn(rig->loop, 0), 0);
		loop_get_stats(rig->loop, &after);
		if (receives != rig_counter("vfio_receives") ||
		    after.work_turns != before.work_turns)
			quiet = 0;
		else
			quiet++;
	}
}

/* ---- messages ---- */

void rig_send_raw(struct rig *rig, const void *data, size_t size, const int *fds, unsigned fd_count)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(VFIO_USER_MAX_FDS * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd_count > 0) {
		header.msg_control = control.space;
		header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	assert_int_equal(sendmsg(rig->fd, &header, MSG_NOSIGNAL), size);
}

size_t rig_build(struct rig *rig, void *buf, uint16_t command, uint32_t flags, const void *body,
                 size_t size)
{
	struct vfio_user_header header = {.id = rig->next_id++,
	                                  .command = command,
	                                  .size = (uint32_t)(sizeof(header) + size),
	                                  .flags = flags};

	memcpy(buf, &header, sizeof(header));
	if (size > 0)
		memcpy((uint8_t *)buf + sizeof(header), body, size);
	return sizeof(header) + size;
}

static uint16_t send_message(struct rig *rig, const struct vfio_user_header *header,
                             const void *body, const int *fds, unsigned fd_count)
{
	uint8_t *buf = malloc(header->size);

	assert_non_null(buf);
	size_t size = rig_build(rig, buf, header->command, header->flags, body,
	                        header->size - sizeof(*header));

	rig_send_raw(rig, buf, size, fds, fd_count);
	free(buf);
	return (uint16_t)(rig->next_id - 1);
}

uint16_t rig_send(struct rig *rig, uint16_t command, uint32_t flags, const void *body, size_t size)
{
	struct vfio_user_header header = {
	        .command = command, .size = (uint32_t)(sizeof(header) + size), .flags = flags};

	return send_message(rig, &header, body, NULL, 0);
}

uint16_t rig_send_fds(struct rig *rig, uint16_t command, const void *body, size_t size,
                      const int *fds, unsigned fd_count)
{
	struct vfio_user_header header = {.command = command,
	                                  .size = (uint32_t)(sizeof(header) + size)};

	return send_message(rig, &header, body, fds, fd_count);
}

int rig_receive(struct rig *rig, struct vfio_user_header *header, void *body, size_t max)
{
	ssize_t got = recv(rig->fd, header, sizeof(*header), MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (got <= 0)
		return -ENODATA;
	/* QEMU wants the whole header at once, and so do we. */
	assert_int_equal(got, sizeof(*header));
	assert_true(header->size >= sizeof(*header));
	size_t size = header->size - sizeof(*header);

	assert_true(size <= max);
	if (size > 0)
		assert_int_equal(recv(rig->fd, body, size, MSG_WAITALL), size);
	return (int)size;
}

/* Takes the answer to request ID. */
static int take_answer(struct rig *rig, uint16_t id, uint16_t command, void *answer, size_t max)
{
	struct vfio_user_header header;

	rig_turn(rig);
	int got = rig_receive(rig, &header, answer, max);

	if (got < 0)
		fail_msg("command %u: no answer (%s)", command, strerror(-got));
	assert_int_equal(header.id, id);
	assert_int_equal(header.command, command);
	if (header.flags == VFIO_USER_TYPE_REPLY) {
		assert_int_equal(header.error, 0);
		return got;
	}
	assert_int_equal(header.flags, VFIO_USER_TYPE_REPLY | VFIO_USER_ERROR);
	assert_int_equal(got, 0);
	assert_int_not_equal(header.error, 0);
	return -(int)header.error;
}

int rig_call_fds(struct rig *rig, uint16_t command, const void *body, size_t size, const int *fds,
                 unsigned fd_count)
{
	uint8_t answer[4096];
	uint16_t id = rig_send_fds(rig, command, body, size, fds, fd_count);

	return take_answer(rig, id, command, answer, sizeof(answer));
}

int rig_call(struct rig *rig, uint16_t command, const void *body, size_t size, void *answer,
             size_t max)
{
	uint16_t id = rig_send(rig, command, 0, body, size);

	return take_answer(rig, id, command, answer, max);
}

void rig_expect_closed(struct rig *rig)
{
	char byte;

	rig_turn(rig);
	assert_false(vfio_server_attached(rig->server));
	assert_int_equal(recv(rig->fd, &byte, 1, MSG_DONTWAIT), 0); /* ECONNRESET: base/foreign.h */
	close(rig->fd);
	rig->fd = -1;
}

void rig_expect_silence(struct rig *rig)
{
	char byte;

	rig_turn(rig);
	assert_int_equal(recv(rig->fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

/* ---- requests ---- */

void rig_version(struct rig *rig)
{
	static const char json[] =
	        "{\"capabilities\": {\"pgsizes\": 4096, \"max_msg_fds\": 16, "
	        "\"max_dma_maps\": 65535, \"max_data_xfer_size\": 1048576, "
	        "\"migration\": {\"max_bitmap_size\": 268435456, \"pgsize\": 4096}, "
	        "\"write_multiple\": true}}";
	uint8_t body[4 + sizeof(json)] = {0}, answer[256];

	memcpy(body + 4, json, sizeof(json));
	int size = rig_call(rig, VFIO_USER_VERSION, body, sizeof(body), answer, sizeof(answer));

	assert_true(size > 4);
	assert_true(vfio_server_attached(rig->server));
}

int rig_map(struct rig *rig, uint64_t addr, uint64_t size, uint32_t flags, int fd, uint64_t offset)
{
	struct vfio_user_dma_map map = {.argsz = sizeof(map),
	                                .flags = flags,
	                                .offset = offset,
	                                .address = addr,
	                                .size = size};

	return rig_call_fds(rig, VFIO_USER_DMA_MAP, &map, sizeof(map), &fd, fd >= 0 ? 1 : 0);
}

int rig_unmap(struct rig *rig, uint64_t addr, uint64_t size)
{
	struct vfio_user_dma_unmap unmap = {.argsz = sizeof(unmap), .address = addr, .size = size};
	struct vfio_user_dma_unmap answer;
	int got =
	        rig_call(rig, VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), &answer, sizeof(answer));

	if (got < 0)
		return got;
	assert_int_equal(got, sizeof(answer));
	assert_memory_equal(&answer, &unmap, sizeof(unmap));
	return 0;
}

int rig_read(struct rig *rig, uint32_t region, uint64_t offset, void *data, uint32_t size)
{
	struct vfio_user_region_access access = {.offset = offset, .region = region, .count = size};
	uint8_t *answer = malloc(sizeof(access) + size);

	assert_non_null(answer);
	int got = rig_call(rig, VFIO_USER_REGION_READ, &access, sizeof(access), answer,
	                   sizeof(access) + size);

	if (got >= 0) {
		assert_int_equal(got, sizeof(access) + size);
		assert_memory_equal(answer, &access, sizeof(access));
		if (size > 0)
			memcpy(data, answer + sizeof(access), size);
		got = 0;
	}
	free(answer);
	return got;
}

/* The body of a REGION_WRITE, to be freed. */
static uint8_t *write_body(uint32_t region, uint64_t offset, const void *data, uint32_t size)
{
	struct vfio_user_region_access access = {.offset = offset, .region = region, .count = size};
	uint8_t *body = malloc(sizeof(access) + size);

	assert_non_null(body);
	memcpy(body, &access, sizeof(access));
	if (size > 0)
		memcpy(body + sizeof(access), data, size);
	return body;
}

int rig_write(struct rig *rig, uint32_t region, uint64_t offset, const void *data, uint32_t size)
{
	struct vfio_user_region_access answer;
	uint8_t *body = write_body(region, offset, data, size);
	int got = rig_call(rig, VFIO_USER_REGION_WRITE, body, sizeof(answer) + size, &answer,
	                   sizeof(answer));

	if (got >= 0) {
		assert_int_equal(got, sizeof(answer));
		assert_memory_equal(&answer, body, sizeof(answer));
		got = 0;
	}
	free(body);
	return got;
}

void rig_post(struct rig *rig, uint32_t region, uint64_t offset, uint64_t value, uint32_t size)
{
	uint8_t *body = write_body(region, offset, &value, size);

	rig_send(rig, VFIO_USER_REGION_WRITE, VFIO_USER_NO_REPLY, body,
	         sizeof(struct vfio_user_region_access) + size);
	free(body);
}

int rig_set_irqs(struct rig *rig, const struct vfio_user_set_irqs *request, const int *fds,
                 unsigned fd_count)
{
	return rig_call_fds(rig, VFIO_USER_SET_IRQS, request, sizeof(*request), fds, fd_count);
}

uint32_t rig_config_read(struct rig *rig, uint64_t offset, uint32_t size)
{
	uint32_t value = 0;

	assert_int_equal(rig_read(rig, VFIO_USER_CONFIG, offset, &value, size), 0);
	return value;
}

void rig_config_write(struct rig *rig, uint64_t offset, uint32_t value, uint32_t size)
{
	assert_int_equal(rig_write(rig, VFIO_USER_CONFIG, offset, &value, size), 0);
}

void rig_enable(struct rig *rig)
{
	rig_config_write(rig, RIG_COMMAND_REG, 0x0406, 2);
	rig_config_write(rig, RIG_MSIX_CTRL, 0x8000, 2);
}

/* ---- things ---- */

int rig_memfd(uint64_t size)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

uint64_t rig_signals(int eventfd)
{
	uint64_t value = 0;

	return read(eventfd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

unsigned rig_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

uint64_t rig_counter(const char *name)
{
	const struct counter *counter = counter_find(name);

	if (!counter)
		fail_msg("no counter is called %s", name);
	return counter ? counter_get(counter) : 0;
}
