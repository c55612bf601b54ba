/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages in and out of a byte stream; inside the room only. */
#ifndef ERNIC_VFIO_TRANSPORT_H
#define ERNIC_VFIO_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "vfio/protocol.h"

struct transport;
struct vfio_replay;

/* Where bytes come from and go to: a socket, or a recording (transport_replay.c). */
struct transport_io {
	/* Reads up to SIZE bytes and the descriptors that came with them, *FD_COUNT at most
	 * VFIO_USER_MAX_FDS. Returns the bytes read, 0 at the end of the stream, -EAGAIN when
	 * nothing is there, or another negative errno when the stream is of no more use. */
	ssize_t (*receive)(struct transport *transport, void *buf, size_t size, int *fds,
	                   unsigned *fd_count);
	/* Writes; returns the bytes taken, 0 when none can be, or a negative errno. */
	ssize_t (*send)(struct transport *transport, const struct iovec *iov, unsigned count);
	/* Waits until there is something to receive or, when OUTPUT, room to send. Returns 0,
	 * -ETIMEDOUT at DEADLINE_NS of CLOCK_MONOTONIC, or another negative errno. */
	int (*wait)(struct transport *transport, bool output, uint64_t deadline_ns);
};

extern const struct transport_io transport_socket_io;
extern const struct transport_io transport_replay_io;

/* Descriptors that arrived, and the stream position of the message they belong to. */
struct transport_fds {
	uint64_t position;
	unsigned count;
	int fds[VFIO_USER_MAX_FDS];
};

struct transport {
	const struct transport_io *io; /* NULL while closed */
	int fd;
	struct {
		const struct vfio_replay *recording;
		size_t position;     /* of the next byte */
		size_t message_left; /* bytes of the message that it is in */
	} replay;

	uint8_t *buf;         /* unread bytes are at head..tail */
	size_t size;          /* of buf */
	size_t head, tail;    /* offsets in buf */
	uint64_t position;    /* of head in the stream */
	uint32_t message_max; /* larger messages end the connection */
	bool drained;         /* the last receive took all there was */

	struct transport_fds fds[2]; /* of the message at head, and of the last one */
	unsigned fds_count;

	struct {
		uint8_t *buf; /* messages that are still to be sent are at head..tail */
		size_t size, head, tail;
		size_t first_left; /* bytes of the first of them, which may be sent in part */
		uint64_t taken;    /* bytes that left the queue, ever */
	} out;
	int error; /* of the last send: 0, or why the connection is of no more use */
};

/* A message in place: good until transport_finish(). */
struct message {
	struct vfio_user_header header;
	const uint8_t *body; /* not aligned */
	uint32_t body_size;
	int *fds; /* who keeps one puts -1 in its place */
	unsigned fd_count;
};

/* Opens a closed transport on FD (or a recording). Returns 0 or -ENOMEM. */
int transport_open(struct transport *transport, const struct transport_io *io, int fd);

/* Hangs up (base/foreign.h), and closes every descriptor that was received and not kept.
 * Idempotent. */
void transport_close(struct transport *transport);

/* Receives once. Returns 0, -EAGAIN when nothing was there, -ENODATA at the end of the stream, or
 * another negative errno when the connection is of no more use. */
int transport_receive(struct transport *transport);

/*
 * Looks at the next message. Returns 1 with *MESSAGE, or 0 when it is not complete yet, or
 *   -EBADMSG   its size is less than a header
 *   -EMSGSIZE  its size is more than message_max
 * with the header alone in *MESSAGE.
 */
int transport_peek(struct transport *transport, struct message *message);

/* Drops the message that transport_peek() gave, and closes its descriptors that were not kept. */
void transport_finish(struct transport *transport, struct message *message);

/* Whether a message has begun to arrive. */
static inline bool transport_partial(const struct transport *transport)
{
	return transport->tail > transport->head;
}

/* Sends one message, now or as soon as it can be; a failure is left in transport->error. */
void transport_send(struct transport *transport, const struct iovec *iov, unsigned count);

/* Sends what is queued as far as it goes; as transport_send(). */
void transport_flush(struct transport *transport);

/* Bytes that wait to be sent. */
static inline size_t transport_queued(const struct transport *transport)
{
	return transport->out.tail - transport->out.head;
}

#endif
