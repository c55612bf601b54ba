/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of strangers, and the descriptors that come through them. */
#ifndef ERNIC_BASE_FOREIGN_H
#define ERNIC_BASE_FOREIGN_H

#include <stddef.h>
#include <sys/types.h>

#define FOREIGN_FDS_MAX 253 /* the kernel's limit for one sendmsg() */

/*
 * Receives up to SIZE bytes from a UNIX socket without waiting, and the descriptors that came with
 * them: *COUNT of them in FDS, which has room for FOREIGN_FDS_MAX and is the caller's to close.
 * Returns the bytes, 0 at the end of the stream, or
 *   -EAGAIN  nothing is there
 *   -EMFILE  descriptors were lost for want of room in this process; none is left in FDS
 *   another negative errno of recvmsg().
 */
ssize_t foreign_recv(int socket, void *buf, size_t size, int *fds, unsigned *count);

/* Closes a descriptor that somebody sent. A socket is told not to linger before, or whoever made it
 * could have us wait in close() for as long as he likes. */
void foreign_close(int fd);

/*
 * Closes a connected UNIX socket so that the other side finds the end of the stream. A plain
 * close() with something unread would be an error to it, ECONNRESET, and QEMU 11.1, whose doorbells
 * never stop coming, fails an assertion then (util/error.c, an error on top of an error) and takes
 * the guest with it.
 */
void foreign_hang_up(int socket);

#endif
