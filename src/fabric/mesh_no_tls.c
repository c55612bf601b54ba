/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In place of mesh_tls.c in builds without OpenSSL: refuses the option. */
#include "fabric/mesh_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int mesh_tls_context_create(const struct mesh_options *options, struct mesh_tls_context **context,
                            char *error, size_t size)
{
	(void)options, (void)context;
	snprintf(error, size,
	         "this program was built without OpenSSL, so it has no tls=; use "
	         "secret=, or build it with libssl-dev");
	return -EINVAL;
}

void mesh_tls_context_destroy(struct mesh_tls_context *context)
{
	(void)context;
}

struct mesh_tls *mesh_tls_create(struct mesh_tls_context *context, int fd, bool called)
{
	(void)context, (void)fd, (void)called;
	abort(); /* there is no context to make one from */
}

void mesh_tls_destroy(struct mesh_tls *tls)
{
	(void)tls;
}

int mesh_tls_handshake(struct mesh_tls *tls, uint32_t *events, char *text, size_t size)
{
	(void)tls, (void)events, (void)text, (void)size;
	return -ENOTSUP;
}

ssize_t mesh_tls_readv(struct mesh_tls *tls, const struct iovec *iov, unsigned count)
{
	(void)tls, (void)iov, (void)count;
	return -ENOTSUP;
}

ssize_t mesh_tls_writev(struct mesh_tls *tls, const struct iovec *iov, unsigned count)
{
	(void)tls, (void)iov, (void)count;
	return -ENOTSUP;
}
