/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A listening UNIX socket at a path that may hold what a dead server left behind.
 *
 * A socket that stands at the path may be a living server's or a dead one's. Connecting tells: a
 * dead one refuses. But so does one between bind() and listen(), and between our question and our
 * unlink() another server may put its own there. So the folder is locked from before bind() until
 * after listen(): of servers that start at the same time one gets the path, the others are told.
 */
#include "base/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/foreign.h"
#include "base/log.h"

/* Whoever may read a folder may lock it for good, and /tmp is everybody's: no server waits longer
 * than this. An honest holder is done after a few system calls. */
enum { LOCK_TRIES = 100, LOCK_PAUSE_NS = 10 * 1000 * 1000 };

static int open_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int bind_to(int fd, const struct sockaddr_un *address)
{
	return bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
}

/* Removes a dead server's socket. Returns 0 when the path is free, or as listener_open(). */
static int remove_stale(const struct sockaddr_un *address)
{
	struct stat info;

	if (lstat(address->sun_path, &info) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(info.st_mode))
		return -EEXIST;
	int fd = open_socket();

	if (fd < 0)
		return fd;
	int error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? errno : 0;

	close(fd);
	if (error == 0 || error == EAGAIN) /* connected, or its backlog is full */
		return -EADDRINUSE;
	if (error != ECONNREFUSED && error != ENOENT) /* not for us to know */
		return -error;
	return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Locks the folder of the path. Returns a descriptor to close, or -1 when it cannot be opened:
 * then, as when the lock is not to be had, only the race of servers at their start is left
 * unguarded. */
static int lock_folder(const struct sockaddr_un *address)
{
	struct sockaddr_un copy = *address; /* dirname() writes to it */
	const char *folder = dirname(copy.sun_path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned try = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0; try++) {
		if (try == LOCK_TRIES) {
			log_warn("another process keeps a lock on %s: going on without", folder);
			break;
		}
		nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
	}
	return fd;
}

/* The mask makes the permissions right from the first moment on. */
static int bind_at(int fd, const struct sockaddr_un *address, mode_t mode)
{
	mode_t mask = umask(~mode & 0777);
	int error = bind_to(fd, address);

	if (error == -EADDRINUSE) {
		error = remove_stale(address);
		if (!error)
			error = bind_to(fd, address);
	}
	umask(mask);
	return error;
}

int listener_open(struct listener *listener, const char *path, mode_t mode, int backlog)
{
	*listener = (struct listener){.fd = -1, .backlog = backlog, .address.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(listener->address.sun_path))
		return -ENAMETOOLONG;
	strcpy(listener->address.sun_path, path);
	int fd = open_socket();

	if (fd < 0)
		return fd;
	int lock = lock_folder(&listener->address);
	int error = bind_at(fd, &listener->address, mode);

	if (error) {
		close(fd);
	} else {
		listener->fd = fd;
		if (lstat(path, &listener->made) < 0 || listen(fd, backlog) < 0) {
			error = -errno;
			listener_close(listener);
		}
	}
	if (lock >= 0)
		close(lock);
	return error;
}

static void turn_away(const struct listener *listener)
{
	/* The kernel takes one more than it is told. */
	for (int i = 0; i <= listener->backlog; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		foreign_hang_up(fd);
	}
}

void listener_close(struct listener *listener)
{
	const char *path = listener->address.sun_path;
	struct stat now;

	if (listener->fd < 0)
		return;
	turn_away(listener);
	close(listener->fd);
	listener->fd = -1;
	if (lstat(path, &now) == 0 && now.st_ino == listener->made.st_ino &&
	    now.st_dev == listener->made.st_dev)
		unlink(path);
}
