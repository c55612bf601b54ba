/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many reads or writes of descriptors that do not block, in one system call. Stays in the room. */
#ifndef ERNIC_NET_BATCH_H
#define ERNIC_NET_BATCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NET_BATCH_MAX 32 /* operations at once */

struct net_batch;

struct net_batch_op {
	int fd; /* O_NONBLOCK */
	const struct iovec *iov;
	unsigned iov_count;
	ssize_t result; /* bytes, or a negative errno */
};

/* Returns NULL when there is no memory; without io_uring it works too, one call an operation. */
struct net_batch *net_batch_create(void);
void net_batch_destroy(struct net_batch *batch); /* accepts NULL */

/* Does COUNT operations, at most NET_BATCH_MAX, in their order, and sets their results. Each is one
 * of its own: a read may find something though the one before it found nothing. */
void net_batch_write(struct net_batch *batch, struct net_batch_op *ops, unsigned count);
void net_batch_read(struct net_batch *batch, struct net_batch_op *ops, unsigned count);

/* Whether io_uring is in use. */
bool net_batch_fast(const struct net_batch *batch);

#endif
