/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transport of a recording: what a client sent, from memory or a file, at once and again.
 *
 * Fuzzers and people with a trace use it. It is the other end of the same transport (transport.c),
 * so everything above works as it does on a socket. Descriptors are not part of a recording; who
 * replays may attach some to a message.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/iov.h"
#include "vfio/vfio_internal.h"

/* Gives what is left at once; with descriptors, a message at a time, as a socket would. */
static ssize_t replay_receive(struct transport *transport, void *buf, size_t size, int *fds,
                              unsigned *fd_count)
{
	const struct vfio_replay *recording = transport->replay.recording;
	const uint8_t *next = (const uint8_t *)recording->data + transport->replay.position;
	size_t left = recording->size - transport->replay.position;
	struct vfio_user_header header;

	*fd_count = 0;
	if (recording->attach && transport->replay.message_left == 0 && left >= sizeof(header)) {
		memcpy(&header, next, sizeof(header));
		*fd_count = recording->attach(recording->arg, &header, fds, VFIO_USER_MAX_FDS);
		transport->replay.message_left = header.size;
	}
	if (size > left)
		size = left;
	if (transport->replay.message_left > 0) {
		if (size > transport->replay.message_left)
			size = transport->replay.message_left;
		transport->replay.message_left -= size;
	}
	memcpy(buf, next, size);
	transport->replay.position += size;
	return (ssize_t)size;
}

static ssize_t replay_send(struct transport *transport, const struct iovec *iov, unsigned count)
{
	const struct vfio_replay *recording = transport->replay.recording;

	if (recording->reply)
		recording->reply(recording->arg, iov, count);
	return (ssize_t)iov_size(iov, count);
}

static int replay_wait(struct transport *transport, bool output, uint64_t deadline_ns)
{
	(void)transport;
	(void)output;
	(void)deadline_ns;
	return 0;
}

const struct transport_io transport_replay_io = {
        .receive = replay_receive,
        .send = replay_send,
        .wait = replay_wait,
};

int vfio_server_replay(struct vfio_server *server, const struct vfio_replay *recording)
{
	if (server->state != VFIO_CLIENT_NONE)
		return -EBUSY;
	int error = client_open(server, &transport_replay_io, -1);

	if (error)
		return error;
	server->transport.replay.recording = recording;
	while (!error && server->state != VFIO_CLIENT_NONE) {
		client_serve(server);
		error = loop_turn(server->loop, 0);
	}
	client_close(server, "the loop failed");
	return error;
}

int vfio_server_replay_file(struct vfio_server *server, const char *path)
{
	struct vfio_replay recording = {0};
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = 0;

	if (fd < 0 || fstat(fd, &info) < 0) {
		error = -errno;
	} else if (info.st_size > 0) {
		void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		recording.data = data;
		recording.size = (size_t)info.st_size;
		error = data == MAP_FAILED ? -errno : vfio_server_replay(server, &recording);
		if (data != MAP_FAILED)
			munmap(data, recording.size);
	}
	if (fd >= 0)
		close(fd);
	return error;
}
