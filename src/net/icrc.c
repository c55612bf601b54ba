/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invariant CRC of RoCEv2. What routers may change on the way counts as ones, so the headers
 * are summed from a copy; everything behind them is summed where it is.
 */
#include "net/icrc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "net/net_internal.h"

/* The stand-in for the local route header of InfiniBand: 8 bytes of ones (spec rocev2 5.1, 3). */
#define LRH_SIZE 8
#define BTH_SIZE 12

/* Where BTH keeps FECN, BECN and six reserved bits. */
#define BTH_MARKS 4

static size_t mask_ipv4(uint8_t *ip)
{
	ip[1] = 0xff;             /* type of service */
	ip[8] = 0xff;             /* time to live */
	memset(ip + 10, 0xff, 2); /* checksum */
	return NET_IPV4_HEADER;
}

static size_t mask_ipv6(uint8_t *ip)
{
	ip[0] |= 0x0f; /* traffic class and flow label */
	memset(ip + 1, 0xff, 3);
	ip[7] = 0xff; /* hop limit */
	return NET_IPV6_HEADER;
}

uint32_t net_icrc(const uint8_t *ip, size_t size)
{
	uint8_t head[LRH_SIZE + NET_IPV6_HEADER + NET_UDP_HEADER + BTH_SIZE];
	size_t ip_size = ip[0] >> 4 == 4 ? NET_IPV4_HEADER : NET_IPV6_HEADER;
	size_t head_size = ip_size + NET_UDP_HEADER + BTH_SIZE;
	uint8_t *masked = head + LRH_SIZE;

	memset(head, 0xff, LRH_SIZE);
	memcpy(masked, ip, head_size);
	masked += ip_size == NET_IPV4_HEADER ? mask_ipv4(masked) : mask_ipv6(masked);
	memset(masked + 6, 0xff, 2); /* UDP checksum */
	masked[NET_UDP_HEADER + BTH_MARKS] = 0xff;
	uint32_t crc = crc32_gzip_refl(0, head, LRH_SIZE + head_size);

	return crc32_gzip_refl(crc, ip + head_size, size - head_size);
}
