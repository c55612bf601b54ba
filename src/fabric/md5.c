/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MD5 (RFC 1321), for the digests in loopback's log. Not for anything that needs to be secure. */
#include "fabric/fabric_internal.h"

#include <endian.h>
#include <math.h>
#include <string.h>

#define MD5_STEPS 64

/* Left rotations by round and step (RFC 1321 3.4). */
static const uint8_t rotations[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

/* floor(2^32 * |sin(i + 1)|), i in radians (RFC 1321 3.4). */
static uint32_t sine_table[MD5_STEPS];

static void make_sine_table(void)
{
	for (unsigned i = 0; i < MD5_STEPS; i++)
		sine_table[i] = (uint32_t)(fabs(sin(i + 1.0)) * 4294967296.0);
}

static uint32_t rotate(uint32_t value, unsigned bits)
{
	return value << bits | value >> (32 - bits);
}

/* The round's function of three words, and which word of the block the step takes. */
static uint32_t round_mix(unsigned step, const uint32_t word[4], unsigned *index)
{
	uint32_t b = word[1], c = word[2], d = word[3];

	switch (step / 16) {
	case 0:
		*index = step;
		return (b & c) | (~b & d);
	case 1:
		*index = 5 * step + 1;
		return (b & d) | (c & ~d);
	case 2:
		*index = 3 * step + 5;
		return b ^ c ^ d;
	default:
		*index = 7 * step;
		return c ^ (b | ~d);
	}
}

static void md5_block(struct md5 *md5, const uint8_t *block)
{
	uint32_t input[16], word[4];

	memcpy(input, block, sizeof(input));
	memcpy(word, md5->state, sizeof(word));
	for (unsigned step = 0; step < MD5_STEPS; step++) {
		unsigned index;
		uint32_t mix = word[0] + round_mix(step, word, &index) + sine_table[step] +
		               le32toh(input[index % 16]);

		word[0] = word[3];
		word[3] = word[2];
		word[2] = word[1];
		word[1] += rotate(mix, rotations[step / 16][step % 4]);
	}
	for (unsigned i = 0; i < 4; i++)
		md5->state[i] += word[i];
}

void md5_init(struct md5 *md5)
{
	if (sine_table[0] == 0)
		make_sine_table();
	*md5 = (struct md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void md5_update(struct md5 *md5, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	while (size > 0) {
		size_t fill = md5->size % MD5_BLOCK, part = MD5_BLOCK - fill;

		if (part > size)
			part = size;
		memcpy(md5->block + fill, bytes, part);
		md5->size += part;
		bytes += part;
		size -= part;
		if (fill + part == MD5_BLOCK)
			md5_block(md5, md5->block);
	}
}

void md5_final(struct md5 *md5, uint8_t digest[MD5_SIZE])
{
	static const uint8_t padding[MD5_BLOCK] = {0x80};
	uint64_t bits = htole64(md5->size * 8);
	size_t fill = md5->size % MD5_BLOCK;

	md5_update(md5, padding, (fill < 56 ? 56 : 120) - fill);
	md5_update(md5, &bits, sizeof(bits));
	for (unsigned i = 0; i < 4; i++) {
		uint32_t word = htole32(md5->state[i]);

		memcpy(digest + 4 * i, &word, 4);
	}
}
