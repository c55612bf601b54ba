/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A listening UNIX socket at a path that may hold what a dead server left behind. */
#ifndef ERNIC_SERVER_LISTENER_H
#define ERNIC_SERVER_LISTENER_H

#include <sys/types.h>

/*
 * Listens at PATH with permissions MODE, non-blocking. A stale socket is replaced. Returns the
 * descriptor, or
 *   -EADDRINUSE  a living server answers there
 *   -EEXIST      the path is something else than a socket
 *   another negative errno of socket(), bind() or listen().
 */
int listener_open(const char *path, mode_t mode);

/* Closes the descriptor (-1 for none) and removes the socket. */
void listener_close(int fd, const char *path);

#endif
