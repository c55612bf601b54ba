/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listening UNIX socket at a path that may hold what a dead server left behind. */
#ifndef ERNIC_BASE_LISTENER_H
#define ERNIC_BASE_LISTENER_H

#include <sys/stat.h>
#include <sys/un.h>

struct listener {
	int fd; /* listens, non-blocking; -1 when closed */
	int backlog;
	struct sockaddr_un address;
	struct stat made; /* what stands there, as we made it */
};

/*
 * Listens at PATH with permissions MODE; BACKLOG as for listen(). A dead server's socket is
 * replaced; of servers that replace it at the same time one gets the path. Returns 0 or
 *   -EADDRINUSE    a living server answers there
 *   -EEXIST        the path is something else than a socket
 *   -ENAMETOOLONG  the path does not fit into a socket address
 *   another negative errno of socket(), bind(), connect() or listen().
 */
int listener_open(struct listener *listener, const char *path, mode_t mode, int backlog);

/* Hangs up on those who wait to be accepted (base/foreign.h), closes the descriptor and removes the
 * socket, unless somebody else's stands there now. Does nothing for a listener that could not be
 * opened, or twice. */
void listener_close(struct listener *listener);

#endif
