/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets of strangers, and the descriptors that come through them.
 *
 * Whoever closes the last reference to a descriptor does the work that this means, and a receive
 * that has no room for descriptors closes them too, in the kernel. So all are received, also where
 * none is wanted, and closed here.
 *
 * Not done: a file of a file system in user space (FUSE) is flushed when it is closed, and its
 * owner may take for ever. No call prevents that.
 */
#include "base/foreign.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The descriptors of a message. */
static unsigned take_fds(struct msghdr *header, int *fds)
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t size = c->cmsg_len - CMSG_LEN(0);

		memcpy(&fds[count], CMSG_DATA(c), size);
		count += (unsigned)(size / sizeof(int));
	}
	return count;
}

ssize_t foreign_recv(int socket, void *buf, size_t size, int *fds, unsigned *count)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(FOREIGN_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = buf, .iov_len = size};
	struct msghdr header = {.msg_iov = &iov,
	                        .msg_iovlen = 1,
	                        .msg_control = control.space,
	                        .msg_controllen = sizeof(control.space)};
	ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*count = 0;
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (header.msg_controllen > 0)
		*count = take_fds(&header, fds);
	if (header.msg_flags & MSG_CTRUNC) { /* which ones were lost cannot be known */
		for (unsigned i = 0; i < *count; i++)
			foreign_close(fds[i]);
		*count = 0;
		return -EMFILE;
	}
	return got;
}

void foreign_close(int fd)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

void foreign_hang_up(int socket)
{
	int fds[FOREIGN_FDS_MAX];
	char unread[4096];
	unsigned count;
	ssize_t got = 0;

	/* From here on nothing more can be sent to us: what is there is bounded by the buffers. */
	if (shutdown(socket, SHUT_RDWR) == 0)
		do {
			got = foreign_recv(socket, unread, sizeof(unread), fds, &count);
			for (unsigned i = 0; i < count; i++)
				foreign_close(fds[i]);
		} while (got > 0 || got == -EMFILE);
	close(socket);
}
