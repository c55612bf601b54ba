/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies between flat buffers and lists of memory pieces (struct iovec). */
#ifndef ERNIC_BASE_IOV_H
#define ERNIC_BASE_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/* The number of bytes in all COUNT pieces of IOV. */
size_t iov_size(const struct iovec *iov, size_t count);

/*
 * Copies up to SIZE bytes between the pieces, starting OFFSET bytes into them, and a flat buffer.
 * Returns the number of bytes copied: less than SIZE when the pieces end first.
 */
size_t iov_to_buf(const struct iovec *iov, size_t count, size_t offset, void *buf, size_t size);
size_t iov_from_buf(const struct iovec *iov, size_t count, size_t offset, const void *buf,
                    size_t size);

/*
 * Makes DST the SIZE bytes that start OFFSET bytes into SRC. Returns the number of pieces written
 * to DST, or -E2BIG when DST_MAX does not hold them, or -EFAULT when SRC ends before.
 */
int iov_slice(const struct iovec *src, size_t src_count, size_t offset, size_t size,
              struct iovec *dst, size_t dst_max);

#endif
