// SPDX-License-Identifier: GPL-2.0-or-later
/* The vfio-user client of vfu.h. */
#include "vfu.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define VFU_BUFFER_SIZE (VFU_MAX_DATA + 64)
#define VFU_FDS_MAX     16

/* What QEMU proposes, key by key (spec vfio-user 3). */
static const char vfu_version_json[] =
        "{\"capabilities\": {\"pgsizes\": 4096, \"max_msg_fds\": 16, \"max_dma_maps\": 65535, "
        "\"max_data_xfer_size\": 1048576, \"migration\": {\"max_bitmap_size\": 268435456, "
        "\"pgsize\": 4096}, \"write_multiple\": true}}";

struct vfu_dma_body {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

struct vfu_region_body {
	uint32_t argsz, flags, index, cap_offset;
	uint64_t size, offset;
};

struct vfu_access_body {
	uint64_t offset;
	uint32_t region, count;
};

static int vfu_errno(void)
{
	if (errno == EAGAIN || errno == EWOULDBLOCK)
		return -ETIMEDOUT;
	return -errno;
}

/* Of every wait, also that of connect() for room in the backlog. */
static void vfu_set_timeout(int fd, int timeout_ms)
{
	struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
}

static int vfu_connect(const char *path, int timeout_ms)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	vfu_set_timeout(fd, timeout_ms);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		int err = vfu_errno();

		close(fd);
		return err;
	}
	return fd;
}

int vfu_open(struct vfu **vfu, const char *path, int fd, int timeout_ms)
{
	struct vfu *new;

	if (path) {
		fd = vfu_connect(path, timeout_ms);
		if (fd < 0)
			return fd;
	}
	vfu_set_timeout(fd, timeout_ms);
	new = calloc(1, sizeof(*new));
	if (new)
		new->buffer = malloc(VFU_BUFFER_SIZE);
	if (!new || !new->buffer) {
		free(new);
		close(fd);
		return -ENOMEM;
	}
	new->fd = fd;
	*vfu = new;
	return 0;
}

void vfu_close(struct vfu *vfu)
{
	if (!vfu)
		return;
	close(vfu->fd);
	free(vfu->buffer);
	free(vfu);
}

/* ---- sending ---- */

static int vfu_sendmsg(struct vfu *vfu, const struct iovec *iov, unsigned iov_count, const int *fds,
                       unsigned fd_count)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(253 * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = iov_count};
	size_t total = 0;
	ssize_t sent;

	for (unsigned i = 0; i < iov_count; i++)
		total += iov[i].iov_len;
	if (fd_count) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
	}
	sent = sendmsg(vfu->fd, &msg, MSG_NOSIGNAL);
	if (sent < 0)
		return vfu_errno();
	return (size_t)sent == total ? 0 : -EPROTO;
}

static int vfu_send_split(struct vfu *vfu, const uint8_t *data, size_t size, const int *fds,
                          unsigned fd_count)
{
	for (size_t done = 0; done < size;) {
		size_t piece = size - done < vfu->split ? size - done : vfu->split;
		struct iovec iov = {(void *)(data + done), piece};
		int err = vfu_sendmsg(vfu, &iov, 1, fds, done ? 0 : fd_count);

		if (err)
			return err;
		done += piece;
	}
	return 0;
}

int vfu_send_raw(struct vfu *vfu, const void *data, size_t size, const int *fds, unsigned count)
{
	struct iovec iov = {(void *)data, size};

	if (vfu->split)
		return vfu_send_split(vfu, data, size, fds, count);
	return vfu_sendmsg(vfu, &iov, 1, fds, count);
}

static void vfu_flatten(uint8_t *flat, const struct iovec *iov, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_len)
			memcpy(flat, iov[i].iov_base, iov[i].iov_len);
		flat += iov[i].iov_len;
	}
}

/* Sends header and body; the flags say what kind of message it is. */
static int vfu_send(struct vfu *vfu, struct vfu_header *header, const struct iovec *body,
                    unsigned count, const struct vfu_request *request)
{
	struct iovec iov[4] = {{header, sizeof(*header)}};
	const int *fds = request ? request->fds : NULL;
	unsigned fd_count = request ? request->fd_count : 0;

	header->size = sizeof(*header);
	for (unsigned i = 0; i < count; i++) {
		iov[i + 1] = body[i];
		header->size += (uint32_t)body[i].iov_len;
	}
	if (vfu->holding) {
		assert(!fd_count && header->size <= VFU_BUFFER_SIZE - vfu->held);
		vfu_flatten(vfu->buffer + vfu->held, iov, count + 1);
		vfu->held += header->size;
		return 0;
	}
	if (vfu->split) {
		vfu_flatten(vfu->buffer, iov, count + 1);
		return vfu_send_split(vfu, vfu->buffer, header->size, fds, fd_count);
	}
	return vfu_sendmsg(vfu, iov, count + 1, fds, fd_count);
}

void vfu_hold(struct vfu *vfu)
{
	vfu->holding = true;
	vfu->held = 0;
}

int vfu_release(struct vfu *vfu)
{
	vfu->holding = false;
	return vfu_send_raw(vfu, vfu->buffer, vfu->held, NULL, 0);
}

/* ---- receiving ---- */

static int vfu_receive(struct vfu *vfu, void *data, size_t size)
{
	ssize_t got;

	if (!size)
		return 0;
	got = recv(vfu->fd, data, size, MSG_WAITALL);
	if (got < 0)
		return vfu_errno();
	if (got == 0)
		return -ECONNRESET;
	return (size_t)got == size ? 0 : -ETIMEDOUT;
}

static int vfu_serve_dma(struct vfu *vfu, const struct vfu_header *request)
{
	struct vfu_header reply = {.id = request->id, .command = request->command};
	struct {
		uint64_t addr, count;
	} body;
	uint8_t *data = vfu->buffer + sizeof(body);
	bool is_read = request->command == VFU_DMA_READ;
	struct iovec iov[2] = {{&body, sizeof(body)}, {data, 0}};
	int err;

	memcpy(&body, vfu->buffer, sizeof(body));
	if (request->size != 32 + (is_read ? 0 : body.count) || body.count > 65536)
		return -EPROTO;
	if (!vfu->memory.read)
		err = -ENODEV;
	else if (is_read)
		err = vfu->memory.read(vfu->memory.arg, body.addr, data, body.count);
	else
		err = vfu->memory.write(vfu->memory.arg, body.addr, data, body.count);
	*(is_read ? &vfu->dma_reads : &vfu->dma_writes) += 1;
	reply.flags = VFU_FLAG_REPLY;
	if (err) {
		reply.flags |= VFU_FLAG_ERROR;
		reply.error = (uint32_t)-err;
		return vfu_send(vfu, &reply, NULL, 0, NULL);
	}
	iov[1].iov_len = is_read ? body.count : 0;
	/* Splitting would use the buffer that holds the data. */
	size_t split = vfu->split;
	vfu->split = 0;
	err = vfu_send(vfu, &reply, iov, 2, NULL);
	vfu->split = split;
	return err;
}

/* Reads one message into *HEADER and the buffer; requests are served, then *IS_REPLY is false. */
static int vfu_receive_message(struct vfu *vfu, struct vfu_header *header, bool *is_reply)
{
	int err = vfu_receive(vfu, header, sizeof(*header));

	if (err)
		return err;
	if (header->size < sizeof(*header) || header->size > VFU_BUFFER_SIZE)
		return -EPROTO;
	err = vfu_receive(vfu, vfu->buffer, header->size - sizeof(*header));
	if (err)
		return err;
	*is_reply = (header->flags & 0xf) == VFU_FLAG_REPLY;
	if (*is_reply)
		return 0;
	if (header->command != VFU_DMA_READ && header->command != VFU_DMA_WRITE)
		return -EPROTO;
	return vfu_serve_dma(vfu, header);
}

int vfu_service(struct vfu *vfu)
{
	struct vfu_header header;
	bool is_reply;

	for (;;) {
		ssize_t got = recv(vfu->fd, &header, sizeof(header), MSG_PEEK | MSG_DONTWAIT);

		if (got == 0)
			return -ECONNRESET;
		if (got < 0)
			return errno == EAGAIN ? 0 : -errno;
		int err = vfu_receive_message(vfu, &header, &is_reply);
		if (err)
			return err;
		if (is_reply)
			return -EPROTO; /* nobody asked */
	}
}

static int vfu_wait_reply(struct vfu *vfu, const struct vfu_header *sent,
                          struct vfu_request *request)
{
	struct vfu_header header;
	bool is_reply = false;
	size_t size;

	while (!is_reply) {
		int err = vfu_receive_message(vfu, &header, &is_reply);

		if (err)
			return err;
	}
	if (header.id != sent->id || header.command != sent->command)
		return -EPROTO;
	size = header.size - sizeof(header);
	if (header.flags & VFU_FLAG_ERROR) {
		if (header.error == 0 || header.error > 4095 || size)
			return -EPROTO;
		return -(int)header.error;
	}
	if (size > request->reply_size) {
		memcpy(request->reply, vfu->buffer, request->reply_size);
	} else if (size) {
		memcpy(request->reply, vfu->buffer, size);
	}
	request->reply_size = size;
	return 0;
}

int vfu_call(struct vfu *vfu, struct vfu_request *request)
{
	struct vfu_header header = {.id = vfu->next_id++, .command = request->command};
	struct iovec body = {(void *)request->body, request->body_size};
	int err = vfu_send(vfu, &header, &body, 1, request);

	return err ? err : vfu_wait_reply(vfu, &header, request);
}

/* As vfu_call(), for replies that have exactly one size. */
static int vfu_call_exact(struct vfu *vfu, struct vfu_request *request)
{
	size_t want = request->reply_size;
	int err = vfu_call(vfu, request);

	if (err)
		return err;
	return request->reply_size == want ? 0 : -EPROTO;
}

int vfu_wait_closed(struct vfu *vfu)
{
	for (;;) {
		ssize_t got = recv(vfu->fd, vfu->buffer, VFU_BUFFER_SIZE, 0);

		if (got == 0)
			return 0;
		if (got < 0)
			return errno == ECONNRESET ? 0 : vfu_errno();
	}
}

/* ---- commands ---- */

int vfu_version(struct vfu *vfu)
{
	struct {
		uint16_t major, minor;
		char json[sizeof(vfu_version_json)];
	} body = {0};
	struct {
		uint16_t major, minor;
		char json[252];
	} reply = {0};
	struct vfu_request request = {.command = VFU_VERSION,
	                              .body = &body,
	                              .body_size = sizeof(body),
	                              .reply = &reply,
	                              .reply_size = sizeof(reply)};
	int err;

	memcpy(body.json, vfu_version_json, sizeof(vfu_version_json));
	err = vfu_call(vfu, &request);
	if (err)
		return err;
	/* A reply larger than the request is one that QEMU cannot take (spec vfio-user 1, rule 4).
	 */
	if (request.reply_size < 5 || request.reply_size > sizeof(body) || reply.major != 0 ||
	    reply.minor != 0)
		return -EPROTO;
	if (reply.json[request.reply_size - 5] != '\0')
		return -EPROTO;
	strcpy(vfu->version_reply, reply.json);
	vfu->version_reply_size = request.reply_size + sizeof(struct vfu_header);
	return 0;
}

int vfu_dma_map(struct vfu *vfu, const struct vfu_map *map)
{
	struct vfu_dma_body body = {sizeof(body), map->flags, map->offset, map->addr, map->size};
	struct vfu_request request = {.command = VFU_DMA_MAP,
	                              .body = &body,
	                              .body_size = sizeof(body),
	                              .fds = &map->fd,
	                              .fd_count = map->fd >= 0 ? 1 : 0};

	return vfu_call_exact(vfu, &request);
}

int vfu_dma_unmap(struct vfu *vfu, uint64_t addr, uint64_t size)
{
	struct {
		uint32_t argsz, flags;
		uint64_t addr, size;
	} body = {sizeof(body), 0, addr, size}, reply;
	struct vfu_request request = {.command = VFU_DMA_UNMAP,
	                              .body = &body,
	                              .body_size = sizeof(body),
	                              .reply = &reply,
	                              .reply_size = sizeof(reply)};

	return vfu_call_exact(vfu, &request);
}

int vfu_get_info(struct vfu *vfu, struct vfu_info *info)
{
	uint32_t body[4] = {sizeof(body)}, reply[4];
	struct vfu_request request = {.command = VFU_GET_INFO,
	                              .body = body,
	                              .body_size = sizeof(body),
	                              .reply = reply,
	                              .reply_size = sizeof(reply)};
	int err = vfu_call_exact(vfu, &request);

	if (!err)
		*info = (struct vfu_info){reply[1], reply[2], reply[3]};
	return err;
}

int vfu_region_info(struct vfu *vfu, unsigned index, struct vfu_region *region)
{
	struct vfu_region_body body = {.argsz = sizeof(body), .index = index}, reply;
	struct vfu_request request = {.command = VFU_GET_REGION_INFO,
	                              .body = &body,
	                              .body_size = sizeof(body),
	                              .reply = &reply,
	                              .reply_size = sizeof(reply)};
	int err = vfu_call_exact(vfu, &request);

	if (!err)
		*region = (struct vfu_region){reply.flags, reply.size};
	return err;
}

int vfu_irq_info(struct vfu *vfu, unsigned index, uint32_t *flags, uint32_t *count)
{
	uint32_t body[4] = {sizeof(body), 0, index, 0}, reply[4];
	struct vfu_request request = {.command = VFU_GET_IRQ_INFO,
	                              .body = body,
	                              .body_size = sizeof(body),
	                              .reply = reply,
	                              .reply_size = sizeof(reply)};
	int err = vfu_call_exact(vfu, &request);

	if (!err) {
		*flags = reply[1];
		*count = reply[3];
	}
	return err;
}

int vfu_set_irqs(struct vfu *vfu, unsigned index, unsigned start, unsigned count, const int *fds)
{
	uint32_t body[5] = {sizeof(body), 0x24, index, start, count};
	struct vfu_request request = {.command = VFU_SET_IRQS,
	                              .body = body,
	                              .body_size = sizeof(body),
	                              .fds = fds,
	                              .fd_count = fds ? count : 0};

	return vfu_call_exact(vfu, &request);
}

int vfu_disable_irqs(struct vfu *vfu, unsigned index)
{
	uint32_t body[5] = {sizeof(body), 0x21, index, 0, 0};
	struct vfu_request request = {
	        .command = VFU_SET_IRQS, .body = body, .body_size = sizeof(body)};

	return vfu_call_exact(vfu, &request);
}

int vfu_read(struct vfu *vfu, unsigned region, uint64_t offset, void *data, size_t size)
{
	struct vfu_header header = {.id = vfu->next_id++, .command = VFU_REGION_READ};
	struct vfu_access_body body = {offset, region, (uint32_t)size};
	struct iovec iov = {&body, sizeof(body)};
	struct vfu_request reply = {.reply = &body, .reply_size = sizeof(body)};
	int err = vfu_send(vfu, &header, &iov, 1, NULL);

	if (!err)
		err = vfu_wait_reply(vfu, &header, &reply);
	if (err)
		return err;
	if (reply.reply_size != sizeof(body) + size || body.count != size)
		return -EPROTO;
	memcpy(data, vfu->buffer + sizeof(body), size);
	return 0;
}

static int vfu_send_write(struct vfu *vfu, struct vfu_header *header,
                          const struct vfu_access_body *body, const void *data)
{
	struct iovec iov[2] = {{(void *)body, sizeof(*body)}, {(void *)data, body->count}};

	header->id = vfu->next_id++;
	header->command = VFU_REGION_WRITE;
	return vfu_send(vfu, header, iov, 2, NULL);
}

int vfu_write(struct vfu *vfu, unsigned region, uint64_t offset, const void *data, size_t size)
{
	struct vfu_header header = {0};
	struct vfu_access_body body = {offset, region, (uint32_t)size};
	struct vfu_request reply = {.reply = &body, .reply_size = sizeof(body)};
	int err = vfu_send_write(vfu, &header, &body, data);

	if (!err)
		err = vfu_wait_reply(vfu, &header, &reply);
	if (!err && (reply.reply_size != sizeof(body) || body.count != size))
		err = -EPROTO;
	return err;
}

int vfu_write_posted(struct vfu *vfu, unsigned region, uint64_t offset, const void *data,
                     size_t size)
{
	struct vfu_header header = {.flags = VFU_FLAG_NO_REPLY};
	struct vfu_access_body body = {offset, region, (uint32_t)size};

	return vfu_send_write(vfu, &header, &body, data);
}

int vfu_reset(struct vfu *vfu)
{
	struct vfu_request request = {.command = VFU_RESET};

	return vfu_call_exact(vfu, &request);
}
