/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listening UNIX socket at a path that may hold what a dead server left behind. */
#ifndef ERNIC_SERVER_LISTENER_H
#define ERNIC_SERVER_LISTENER_H

#include <sys/stat.h>

struct listener {
	int fd;           /* listens, non-blocking; -1 when closed */
	const char *path; /* the caller's */
	struct stat made; /* what stands there, as we made it */
};

/*
 * Listens at PATH with permissions MODE. A stale socket is replaced. Returns 0 or
 *   -EADDRINUSE  a living server answers there
 *   -EEXIST      the path is something else than a socket
 *   another negative errno of socket(), bind() or listen().
 */
int listener_open(struct listener *listener, const char *path, mode_t mode);

/* Closes the descriptor and removes the socket, unless somebody else's stands there now. Does
 * nothing for a listener that could not be opened, or twice. */
void listener_close(struct listener *listener);

#endif
