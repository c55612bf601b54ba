/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages in and out of a byte stream.
 *
 * In. One recvmsg() takes whatever has arrived, hundreds of posted writes at a time, into one flat
 * buffer, and messages are used where they lie. Only the remainder of an incomplete message is
 * ever moved. The buffer grows for a message that is larger than it, as far as that message's size
 * was found acceptable, and shrinks when it is empty again.
 *
 * Descriptors. The kernel ends a receive behind the first packet that carried descriptors, so at
 * most one set comes with it, and it belongs to the message that the last received byte is in
 * (spec vfio-user 2). That message may be complete at once, or its beginning may have been here
 * before; a set that is already there for the same message is added to.
 *
 * Out. A message is handed to the kernel in one piece. What it does not take is queued, and so is
 * everything behind it; the queue is emptied a message at a time, because QEMU reads a header in
 * one call and must find all of it.
 */
#include "vfio/transport.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/foreign.h"
#include "base/iov.h"

#define BUFFER_SIZE 65536 /* 1,600 doorbells; a socket holds about 300 */
#define NS_PER_MS   UINT64_C(1000000)
#define NS_PER_S    UINT64_C(1000000000)

COUNTER(vfio_receives, "receives from the client's socket that returned something");
COUNTER(vfio_fds_truncated, "receives that lost descriptors");
COUNTER(vfio_fds_too_many, "messages with more descriptors than one sendmsg() carries");
COUNTER(vfio_sends_queued, "messages that the socket did not take at once");

/* ---- socket ---- */

/* Takes the descriptors out of a control message, whatever else is there. */
static_assert(VFIO_USER_MAX_FDS == FOREIGN_FDS_MAX, "a set takes what comes");

static ssize_t socket_receive(struct transport *transport, void *buf, size_t size, int *fds,
                              unsigned *fd_count)
{
	ssize_t got = foreign_recv(transport->fd, buf, size, fds, fd_count);

	if (got == -EMFILE)
		counter_inc(&vfio_fds_truncated);
	return got;
}

static ssize_t socket_send(struct transport *transport, const struct iovec *iov, unsigned count)
{
	struct msghdr header = {.msg_iov = (struct iovec *)iov, .msg_iovlen = count};
	ssize_t sent = sendmsg(transport->fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return sent;
}

static int socket_wait(struct transport *transport, bool output, uint64_t deadline_ns)
{
	struct pollfd entry = {.fd = transport->fd,
	                       .events = (short)(output ? POLLIN | POLLOUT : POLLIN)};
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t now_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	uint64_t left_ns = deadline_ns - now_ns;
	struct timespec left = {.tv_sec = (time_t)(left_ns / NS_PER_S),
	                        .tv_nsec = (long)(left_ns % NS_PER_S)};

	return ppoll(&entry, 1, &left, NULL) < 0 && errno != EINTR ? -errno : 0;
}

const struct transport_io transport_socket_io = {
        .receive = socket_receive,
        .send = socket_send,
        .wait = socket_wait,
};

/* ---- life ---- */

int transport_open(struct transport *transport, const struct transport_io *io, int fd)
{
	assert(!transport->io);
	*transport = (struct transport){.io = io, .fd = fd};
	transport->size = BUFFER_SIZE;
	transport->buf = malloc(transport->size);
	if (!transport->buf) {
		transport->io = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void close_set(struct transport_fds *set)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->fds[i] >= 0)
			foreign_close(set->fds[i]);
	set->count = 0;
}

void transport_close(struct transport *transport)
{
	if (!transport->io)
		return;
	for (unsigned i = 0; i < transport->fds_count; i++)
		close_set(&transport->fds[i]);
	transport->fds_count = 0;
	if (transport->fd >= 0)
		foreign_hang_up(transport->fd);
	free(transport->buf);
	free(transport->out.buf);
	transport->buf = transport->out.buf = NULL;
	transport->head = transport->tail = transport->out.head = transport->out.tail = 0;
	transport->io = NULL;
	transport->fd = -1;
}

/* ---- in ---- */

static bool peek_header(const struct transport *transport, size_t at,
                        struct vfio_user_header *header)
{
	if (transport->tail - at < sizeof(*header))
		return false;
	memcpy(header, transport->buf + at, sizeof(*header));
	return true;
}

/* The stream position of the message that the last received byte is in. */
static uint64_t last_message(const struct transport *transport)
{
	struct vfio_user_header header;
	size_t at = transport->head;

	while (peek_header(transport, at, &header) && header.size >= sizeof(header) &&
	       header.size < transport->tail - at)
		at += header.size;
	return transport->position + (at - transport->head);
}

/* Files the COUNT descriptors at the end of SET, the free one, under their message. */
static int file_fds(struct transport *transport, struct transport_fds *set, unsigned count)
{
	struct transport_fds *other = &transport->fds[0];

	set->position = last_message(transport);
	set->count = count;
	transport->fds_count++;
	if (transport->fds_count == 1 || other->position != set->position)
		return 0;
	if (count > VFIO_USER_MAX_FDS - other->count) {
		counter_inc(&vfio_fds_too_many);
		return -E2BIG;
	}
	memcpy(&other->fds[other->count], set->fds, count * sizeof(int));
	other->count += count;
	set->count = 0;
	transport->fds_count--;
	return 0;
}

/* Makes room behind tail: for the rest of a large message, and in any case for something. */
static int make_room(struct transport *transport)
{
	struct vfio_user_header header;
	size_t unread = transport->tail - transport->head, need = BUFFER_SIZE;

	if (transport->head > 0) {
		memmove(transport->buf, transport->buf + transport->head, unread);
		transport->head = 0;
		transport->tail = unread;
	}
	if (peek_header(transport, 0, &header) && header.size > need &&
	    header.size <= transport->message_max)
		need = header.size;
	if (need == transport->size)
		return 0;
	uint8_t *buf = realloc(transport->buf, need);

	if (!buf)
		return -ENOMEM;
	transport->buf = buf;
	transport->size = need;
	return 0;
}

int transport_receive(struct transport *transport)
{
	struct transport_fds *set = &transport->fds[transport->fds_count];
	unsigned fd_count;
	int error;

	assert(transport->fds_count < 2);
	if (transport->head > 0 || transport->tail == transport->size ||
	    transport->size > BUFFER_SIZE) {
		error = make_room(transport);
		if (error)
			return error;
	}
	size_t room = transport->size - transport->tail;
	ssize_t got = transport->io->receive(transport, transport->buf + transport->tail, room,
	                                     set->fds, &fd_count);

	if (got <= 0)
		return got == 0 ? -ENODATA : (int)got;
	counter_inc(&vfio_receives);
	transport->tail += (size_t)got;
	transport->drained = (size_t)got < room && fd_count == 0;
	return fd_count > 0 ? file_fds(transport, set, fd_count) : 0;
}

int transport_peek(struct transport *transport, struct message *message)
{
	if (!peek_header(transport, transport->head, &message->header))
		return 0;
	uint32_t size = message->header.size;

	if (size < sizeof(message->header))
		return -EBADMSG;
	if (size > transport->message_max)
		return -EMSGSIZE;
	if (size > transport->tail - transport->head)
		return 0;
	message->body = transport->buf + transport->head + sizeof(message->header);
	message->body_size = size - (uint32_t)sizeof(message->header);
	message->fd_count = 0;
	if (transport->fds_count > 0 && transport->fds[0].position == transport->position) {
		message->fds = transport->fds[0].fds;
		message->fd_count = transport->fds[0].count;
	}
	return 1;
}

void transport_finish(struct transport *transport, struct message *message)
{
	transport->head += message->header.size;
	transport->position += message->header.size;
	if (transport->head == transport->tail)
		transport->head = transport->tail = 0;
	if (message->fd_count == 0)
		return;
	close_set(&transport->fds[0]);
	transport->fds_count--;
	if (transport->fds_count > 0) {
		transport->fds[0] = transport->fds[1];
		transport->fds[1].count = 0;
	}
}

/* ---- out ---- */

/* Adds what is behind the first SKIP bytes of a message to the queue. */
static int queue_rest(struct transport *transport, const struct iovec *iov, unsigned count,
                      size_t skip)
{
	size_t rest = iov_size(iov, count) - skip, queued = transport_queued(transport);

	if (transport->out.head > 0) {
		memmove(transport->out.buf, transport->out.buf + transport->out.head, queued);
		transport->out.head = 0;
		transport->out.tail = queued;
	}
	if (rest > transport->out.size - queued) {
		size_t size = (queued + rest) * 2;
		uint8_t *buf = realloc(transport->out.buf, size);

		if (!buf)
			return -ENOMEM;
		transport->out.buf = buf;
		transport->out.size = size;
	}
	iov_to_buf(iov, count, skip, transport->out.buf + queued, rest);
	transport->out.tail += rest;
	if (queued == 0)
		transport->out.first_left = rest;
	counter_inc(&vfio_sends_queued);
	return 0;
}

void transport_send(struct transport *transport, const struct iovec *iov, unsigned count)
{
	ssize_t sent = 0;

	if (transport->error)
		return;
	if (transport_queued(transport) == 0)
		sent = transport->io->send(transport, iov, count);
	if (sent < 0)
		transport->error = (int)sent;
	else if ((size_t)sent < iov_size(iov, count))
		transport->error = queue_rest(transport, iov, count, (size_t)sent);
}

/* The size of the message at the head of the queue, none of which was sent. */
static size_t first_queued(const struct transport *transport)
{
	struct vfio_user_header header;

	memcpy(&header, transport->out.buf + transport->out.head, sizeof(header));
	return header.size;
}

void transport_flush(struct transport *transport)
{
	while (!transport->error && transport_queued(transport) > 0) {
		struct iovec iov = {.iov_base = transport->out.buf + transport->out.head,
		                    .iov_len = transport->out.first_left};
		ssize_t sent = transport->io->send(transport, &iov, 1);

		if (sent < 0)
			transport->error = (int)sent;
		if (sent <= 0)
			return;
		transport->out.head += (size_t)sent;
		transport->out.first_left -= (size_t)sent;
		transport->out.taken += (size_t)sent;
		if (transport->out.first_left == 0 && transport_queued(transport) > 0)
			transport->out.first_left = first_queued(transport);
	}
	if (transport_queued(transport) == 0 && transport->out.size > BUFFER_SIZE) {
		free(transport->out.buf);
		transport->out.buf = NULL;
		transport->out.size = transport->out.head = transport->out.tail = 0;
	}
}
