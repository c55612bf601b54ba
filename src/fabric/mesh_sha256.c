/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for the proof that a node knows the mesh's secret. */
#include "fabric/mesh_internal.h"

#include <string.h>

enum { ROUNDS = 64, LENGTH_AT = SHA256_BLOCK - 8 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
};

static uint32_t rotate(uint32_t value, unsigned bits)
{
	return value >> bits | value << (32 - bits);
}

static void expand(const uint8_t *block, uint32_t word[ROUNDS])
{
	for (unsigned i = 0; i < 16; i++) {
		be32 value;

		memcpy(&value, block + 4 * i, sizeof(value));
		word[i] = be32_get(value);
	}
	for (unsigned i = 16; i < ROUNDS; i++) {
		uint32_t a = word[i - 15], b = word[i - 2];

		word[i] = word[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + word[i - 7] +
		          (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void sha256_block(struct sha256 *sha, const uint8_t *block)
{
	uint32_t word[ROUNDS], s[8];

	expand(block, word);
	memcpy(s, sha->state, sizeof(s));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t high = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
		uint32_t low = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t first = s[7] + high + choice + constants[i] + word[i];

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += first;
		s[0] = first + low + majority;
	}
	for (unsigned i = 0; i < 8; i++)
		sha->state[i] += s[i];
}

void sha256_init(struct sha256 *sha)
{
	*sha = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
	                                 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_update(struct sha256 *sha, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	while (size > 0) {
		size_t fill = sha->size % SHA256_BLOCK, part = SHA256_BLOCK - fill;

		if (part > size)
			part = size;
		memcpy(sha->block + fill, bytes, part);
		sha->size += part;
		bytes += part;
		size -= part;
		if (fill + part == SHA256_BLOCK)
			sha256_block(sha, sha->block);
	}
}

void sha256_final(struct sha256 *sha, uint8_t digest[MESH_PROOF_SIZE])
{
	static const uint8_t padding[SHA256_BLOCK] = {0x80};
	be64 bits = be64_make(sha->size * 8);
	size_t fill = sha->size % SHA256_BLOCK;

	sha256_update(sha, padding,
	              (fill < LENGTH_AT ? LENGTH_AT : LENGTH_AT + SHA256_BLOCK) - fill);
	sha256_update(sha, &bits, sizeof(bits));
	for (unsigned i = 0; i < 8; i++) {
		be32 word = be32_make(sha->state[i]);

		memcpy(digest + 4 * i, &word, sizeof(word));
	}
}

/* The key, padded to a block, with every byte changed by MASK. */
static void mix_key(struct sha256 *sha, const uint8_t key[SHA256_BLOCK], uint8_t mask)
{
	uint8_t block[SHA256_BLOCK];

	for (unsigned i = 0; i < SHA256_BLOCK; i++)
		block[i] = key[i] ^ mask;
	sha256_init(sha);
	sha256_update(sha, block, sizeof(block));
}

void hmac_sha256(const void *key, size_t key_size, const struct iovec *pieces, unsigned count,
                 uint8_t digest[MESH_PROOF_SIZE])
{
	uint8_t block[SHA256_BLOCK] = {0};
	struct sha256 sha;

	if (key_size <= sizeof(block)) {
		memcpy(block, key, key_size);
	} else {
		sha256_init(&sha);
		sha256_update(&sha, key, key_size);
		sha256_final(&sha, block);
	}
	mix_key(&sha, block, 0x36);
	for (unsigned i = 0; i < count; i++)
		sha256_update(&sha, pieces[i].iov_base, pieces[i].iov_len);
	sha256_final(&sha, digest);
	mix_key(&sha, block, 0x5c);
	sha256_update(&sha, digest, MESH_PROOF_SIZE);
	sha256_final(&sha, digest);
}
