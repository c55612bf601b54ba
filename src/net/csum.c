/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Internet checksums over flat memory and lists of pieces.
 *
 * Ones' complement addition does not care about byte order until the end (RFC 1071, 2 B), so words
 * are summed as they stand in memory and the folded result is swapped once. The inner loop adds
 * 32-bit halves into 64-bit lanes, which need no carries: a lane holds 2^32 additions, more than
 * any frame has. Vectors are the compiler's own, so every target gets what it has.
 */
#include "net/net.h"

#include <endian.h>
#include <string.h>

typedef uint64_t lanes __attribute__((vector_size(32)));

#define LANE_LOW ((lanes){0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff})
#define BLOCK    64 /* bytes of one turn of the inner loop */

/* A 64-bit sum of native 32-bit words as one native 16-bit word. */
static uint16_t fold_native(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sums fewer than 8 bytes. */
static inline __attribute__((always_inline)) uint64_t sum_last(const uint8_t *src, size_t size)
{
	uint64_t sum = 0;

	if (size & 4) {
		uint32_t word;

		memcpy(&word, src, sizeof(word));
		sum += word;
		src += sizeof(word);
	}
	if (size & 2) {
		uint16_t word;

		memcpy(&word, src, sizeof(word));
		sum += word;
		src += sizeof(word);
	}
	if (size & 1)
		sum += le16toh(*src); /* first in memory */
	return sum;
}

/* Sums the last bytes, fewer than BLOCK; copies them when DST is set. */
static inline __attribute__((always_inline)) uint64_t sum_tail(uint8_t *dst, const uint8_t *src,
                                                               size_t size)
{
	uint64_t sum = 0, word;

	for (; size >= sizeof(word); size -= sizeof(word), src += sizeof(word)) {
		memcpy(&word, src, sizeof(word));
		if (dst) {
			memcpy(dst, &word, sizeof(word));
			dst += sizeof(word);
		}
		sum += (word & 0xffffffff) + (word >> 32);
	}
	sum += sum_last(src, size);
	if (dst)
		memcpy(dst, src, size);
	return sum;
}

/* Both directions of the loop; the compiler makes one function of each use. */
static inline __attribute__((always_inline)) uint16_t sum_native(uint8_t *dst, const uint8_t *src,
                                                                 size_t size)
{
	uint64_t sum = 0;

	if (size >= BLOCK) {
		lanes even = {0}, odd = {0};

		for (; size >= BLOCK; size -= BLOCK, src += BLOCK) {
			lanes a, b;

			memcpy(&a, src, sizeof(a));
			memcpy(&b, src + sizeof(a), sizeof(b));
			if (dst) {
				memcpy(dst, &a, sizeof(a));
				memcpy(dst + sizeof(a), &b, sizeof(b));
				dst += BLOCK;
			}
			even += (a & LANE_LOW) + (b & LANE_LOW);
			odd += (a >> 32) + (b >> 32);
		}
		even += odd;
		sum = (uint64_t)fold_native(even[0] + even[1]) + fold_native(even[2] + even[3]);
	}
	return fold_native(sum + sum_tail(dst, src, size));
}

#ifdef __x86_64__
/* The same code for wider registers: two to three times as fast, and every server has them. */
static __attribute__((target("avx2"))) uint16_t sum_avx2(uint8_t *dst, const uint8_t *src,
                                                         size_t size)
{
	return dst ? sum_native(dst, src, size) : sum_native(NULL, src, size);
}

static bool has_avx2;

static __attribute__((constructor)) void detect(void)
{
	has_avx2 = __builtin_cpu_supports("avx2") != 0;
}
#endif

static uint16_t sum_any(uint8_t *dst, const uint8_t *src, size_t size)
{
#ifdef __x86_64__
	if (has_avx2)
		return sum_avx2(dst, src, size);
#endif
	return dst ? sum_native(dst, src, size) : sum_native(NULL, src, size);
}

uint32_t net_csum_add(uint32_t sum, const void *data, size_t size)
{
	return net_csum_join(sum, be16toh(sum_any(NULL, data, size)), false);
}

uint32_t net_csum_copy(uint32_t sum, void *dst, const void *src, size_t size)
{
	return net_csum_join(sum, be16toh(sum_any(dst, src, size)), false);
}

uint32_t net_csum_iov(const struct iovec *iov, unsigned count, size_t offset, size_t size)
{
	uint32_t sum = 0;
	bool odd = false;

	for (unsigned i = 0; i < count && size > 0; i++) {
		if (offset >= iov[i].iov_len) {
			offset -= iov[i].iov_len;
			continue;
		}
		size_t chunk = iov[i].iov_len - offset;

		if (chunk > size)
			chunk = size;
		sum = net_csum_join(
		        sum, net_csum_add(0, (const uint8_t *)iov[i].iov_base + offset, chunk),
		        odd);
		odd ^= chunk & 1;
		size -= chunk;
		offset = 0;
	}
	return sum;
}
