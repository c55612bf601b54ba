/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listening UNIX socket at a path that may hold what a dead server left behind. */
#include "server/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

/* Removes the socket at the path when nobody listens on it. Returns 0 when the path is free. */
static int remove_stale(const struct sockaddr_un *address)
{
	struct stat info;
	int fd, error;

	if (lstat(address->sun_path, &info) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(info.st_mode))
		return -EEXIST;
	fd = open_socket();
	if (fd < 0)
		return fd;
	error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? errno : 0;
	close(fd);
	if (error != ECONNREFUSED)
		return -EADDRINUSE; /* connected, or its backlog is full */
	return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* The mask makes the permissions right from the first moment on. */
static int bind_at(int fd, const struct sockaddr_un *address, mode_t mode)
{
	mode_t mask = umask(~mode & 0777);
	int error = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	umask(mask);
	return error;
}

int listener_open(struct listener *listener, const char *path, mode_t mode)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, error;

	*listener = (struct listener){.fd = -1, .path = path};
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	error = remove_stale(&address);
	if (error)
		return error;
	fd = open_socket();
	if (fd < 0)
		return fd;
	error = bind_at(fd, &address, mode);
	if (error) {
		close(fd);
		return error;
	}
	listener->fd = fd;
	if (lstat(path, &listener->made) < 0 || listen(fd, BACKLOG) < 0) {
		error = -errno;
		listener_close(listener);
	}
	return error;
}

void listener_close(struct listener *listener)
{
	struct stat now;

	if (listener->fd < 0)
		return;
	close(listener->fd);
	listener->fd = -1;
	if (lstat(listener->path, &now) == 0 && now.st_ino == listener->made.st_ino &&
	    now.st_dev == listener->made.st_dev)
		unlink(listener->path);
}
