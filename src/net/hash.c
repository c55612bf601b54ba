/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which flow a frame belongs to: FNV-1a for steering without a key, Toeplitz for receive-side
 * scaling.
 */
#include "net/net.h"

#include <string.h>

#include "net/net_internal.h"

/* FNV-1a, 32 bits (the FNV hash, Fowler, Noll, Vo: offset basis and prime). */
#define FNV_BASIS 2166136261u
#define FNV_PRIME 16777619u

#define RSS_INPUT_MAX 36 /* two IPv6 addresses and two ports */
#define IPV4_ADDRS    8  /* two addresses, bytes */
#define IPV6_ADDRS    32
#define PORTS         4 /* two ports, bytes */

static uint32_t fnv_add(uint32_t hash, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * FNV_PRIME;
	return hash;
}

/* The source and destination address of an IP frame, and their size together. */
static const uint8_t *ip_addresses(const uint8_t *data, const struct net_headers *headers,
                                   size_t *size)
{
	bool v4 = headers->ip_version == 4;

	*size = v4 ? IPV4_ADDRS : IPV6_ADDRS;
	return data + headers->l3_offset + (v4 ? 12 : 8);
}

uint32_t net_flow_hash(const uint8_t *data, size_t size, const struct net_headers *headers)
{
	size_t addrs_size;

	if (headers->ip_version == 0)
		return fnv_add(FNV_BASIS, data, size < 12 ? size : 12);
	const uint8_t *addrs = ip_addresses(data, headers, &addrs_size);
	uint32_t hash = fnv_add(FNV_BASIS, addrs, addrs_size);

	hash = fnv_add(hash, &headers->protocol, 1);
	if (headers->l4_offset != 0)
		hash = fnv_add(hash, data + headers->l4_offset, PORTS);
	return hash;
}

/* The hash of an input byte is the exclusive or of the key's 32 bits at the place of each of its
 * set bits (Microsoft, RSS hashing types); it is linear, so that a byte's share is one look-up. */
void net_rss_key_init(struct net_rss_key *rss, const uint8_t key[NET_RSS_KEY_SIZE])
{
	for (size_t pos = 0; pos < RSS_INPUT_MAX; pos++) {
		uint64_t window = 0; /* the key from this byte on */
		uint32_t *row = rss->table[pos];

		for (size_t i = 0; i < 5; i++)
			window = window << 8 | (pos + i < NET_RSS_KEY_SIZE ? key[pos + i] : 0);
		row[0] = 0;
		for (unsigned bit = 0; bit < 8; bit++)
			for (unsigned low = 0; low < 1u << bit; low++)
				row[1u << bit | low] = row[low] ^ (uint32_t)(window >> (bit + 1));
	}
}

static uint32_t toeplitz_add(const struct net_rss_key *rss, size_t pos, const uint8_t *data,
                             size_t size)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < size; i++)
		hash ^= rss->table[pos + i][data[i]];
	return hash;
}

bool net_rss_hash(const struct net_rss_key *rss, unsigned types, const uint8_t *data,
                  const struct net_headers *headers, uint32_t *hash, bool *l4)
{
	/* IPv6's bits are those of IPv4, three further up (spec ionic-ethernet 9.1). */
	unsigned shift = headers->ip_version == 6 ? 3 : 0;
	size_t addrs_size;

	if (headers->ip_version == 0)
		return false;
	*l4 = headers->l4_offset != 0 &&
	      ((headers->protocol == NET_PROTO_TCP && types & NET_RSS_IPV4_TCP << shift) ||
	       (headers->protocol == NET_PROTO_UDP && types & NET_RSS_IPV4_UDP << shift));
	if (!*l4 && !(types & NET_RSS_IPV4 << shift))
		return false;
	const uint8_t *addrs = ip_addresses(data, headers, &addrs_size);

	*hash = toeplitz_add(rss, 0, addrs, addrs_size);
	if (*l4)
		*hash ^= toeplitz_add(rss, addrs_size, data + headers->l4_offset, PORTS);
	return true;
}
