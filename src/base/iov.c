/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies between flat buffers and lists of memory pieces (struct iovec). */
#include "base/iov.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t iov_size(const struct iovec *iov, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += iov[i].iov_len;
	return size;
}

/* Both directions of the copy; BUF is only written when TO_BUF. */
static size_t iov_copy(const struct iovec *iov, size_t count, size_t offset, uint8_t *buf,
                       size_t size, bool to_buf)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < size; i++) {
		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		uint8_t *piece = (uint8_t *)iov[i].iov_base + offset;
		size_t chunk = iov[i].iov_len - offset;

		if (chunk > size - done)
			chunk = size - done;
		if (to_buf)
			memcpy(buf + done, piece, chunk);
		else
			memcpy(piece, buf + done, chunk);
		done += chunk;
		offset = 0;
	}
	return done;
}

size_t iov_to_buf(const struct iovec *iov, size_t count, size_t offset, void *buf, size_t size)
{
	return iov_copy(iov, count, offset, buf, size, true);
}

size_t iov_from_buf(const struct iovec *iov, size_t count, size_t offset, const void *buf,
                    size_t size)
{
	return iov_copy(iov, count, offset, (uint8_t *)(uintptr_t)buf, size, false);
}

int iov_slice(const struct iovec *src, size_t src_count, size_t offset, size_t size,
              struct iovec *dst, size_t dst_max)
{
	size_t pieces = 0;

	for (size_t i = 0; i < src_count && size > 0; i++) {
		if (offset >= src[i].iov_len) {
			offset -= src[i].iov_len;
			continue;
		}
		size_t chunk = src[i].iov_len - offset;

		if (chunk > size)
			chunk = size;
		if (pieces == dst_max)
			return -E2BIG;
		dst[pieces].iov_base = (uint8_t *)src[i].iov_base + offset;
		dst[pieces].iov_len = chunk;
		pieces++;
		size -= chunk;
		offset = 0;
	}
	return size > 0 ? -EFAULT : (int)pieces;
}
