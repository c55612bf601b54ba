/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's socket: made at a path, or inherited.
 *
 * A path that is taken by a socket may be a living server's or a dead one's. Connecting tells: a
 * dead one refuses. The directory is locked from there to the end of bind(), so that of two servers
 * that start at the same time one gets the path and the other is told.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "vfio/vfio_internal.h"

/* Clients that may wait while one is attached; the kernel admits one more. */
#define BACKLOG 3

static int fill_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	memcpy(address->sun_path, path, strlen(path));
	return 0;
}

/* Removes a dead server's socket. Returns 0, -EADDRINUSE, -EEXIST, or another negative errno. */
static int remove_stale(const char *path, const struct sockaddr_un *address)
{
	struct stat info;

	if (lstat(path, &info) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(info.st_mode))
		return -EEXIST;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	int error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? errno : 0;

	close(fd);
	if (error != ECONNREFUSED) /* accepted, waiting (EAGAIN), or not for us to know */
		return error == 0 || error == EAGAIN ? -EADDRINUSE : -error;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Locks the directory of PATH. Returns a descriptor to close, or -1: some cannot be opened, and
 * then only the race at start-up is left unguarded. */
static int lock_directory(const char *path)
{
	char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];

	strcpy(copy, path); /* its length was checked */
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		log_info("vfio: another process holds a lock on %s: waiting for it", copy);
		flock(fd, LOCK_EX);
	}
	return fd;
}

static int bind_path(int fd, const char *path, const struct sockaddr_un *address, mode_t mode)
{
	/* So that nobody else can connect between bind() and a chmod(). */
	mode_t saved = umask(~mode & 0777);
	int error = bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;

	if (error == -EADDRINUSE) {
		error = remove_stale(path, address);
		if (!error && bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
			error = -errno;
	}
	umask(saved);
	return error;
}

int listen_at_path(struct vfio_server *server)
{
	struct sockaddr_un address;
	int error = fill_address(server->socket_path, &address);

	if (error)
		return error;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	int lock = lock_directory(server->socket_path);

	error = bind_path(fd, server->socket_path, &address, server->socket_mode);
	if (!error &&
	    (lstat(server->socket_path, &server->socket_identity) < 0 || listen(fd, BACKLOG) < 0))
		error = -errno;
	if (lock >= 0)
		close(lock);
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

void listen_remove_path(struct vfio_server *server)
{
	struct stat now;

	/* Only what we made: somebody may have put another one there. */
	if (server->socket_identity.st_ino != 0 && lstat(server->socket_path, &now) == 0 &&
	    now.st_ino == server->socket_identity.st_ino &&
	    now.st_dev == server->socket_identity.st_dev)
		unlink(server->socket_path);
}

static int socket_option(int fd, int option, int *value)
{
	socklen_t size = sizeof(*value);

	return getsockopt(fd, SOL_SOCKET, option, value, &size) < 0 ? -errno : 0;
}

int listen_inherited_kind(int fd)
{
	int domain, type, listening;
	int error = socket_option(fd, SO_DOMAIN, &domain);

	if (!error)
		error = socket_option(fd, SO_TYPE, &type);
	if (!error)
		error = socket_option(fd, SO_ACCEPTCONN, &listening);
	if (error)
		return error;
	if (domain != AF_UNIX || type != SOCK_STREAM)
		return -EPROTOTYPE;
	return listening;
}
