/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads Ethernet, VLAN, IPv4, IPv6 and transport headers as far as a frame has them.
 *
 * Total: any bytes of any length give an answer. A header counts only when it is complete within
 * the bytes given and says nothing impossible; what is behind it is then left out.
 */
#include "net/net.h"

#include "base/bytes.h"
#include "net/net_internal.h"

#define VLAN_TAGS_MAX       2
#define IPV6_EXTENSIONS_MAX 8 /* a longer chain is not followed; senders use none to three */

static uint16_t read16(const uint8_t *data)
{
	return (uint16_t)(data[0] << 8 | data[1]);
}

/* Steps over the tags. Returns the offset behind the EtherType, 0 when the frame is too short. */
static size_t parse_ethernet(const uint8_t *data, size_t size, struct net_headers *headers)
{
	size_t offset = NET_ETH_HEADER;

	if (size < offset)
		return 0;
	headers->ethertype = read16(data + 12);
	while (headers->vlan_tags < VLAN_TAGS_MAX && (headers->ethertype == NET_ETHERTYPE_VLAN ||
	                                              headers->ethertype == NET_ETHERTYPE_QINQ)) {
		if (size - offset < NET_VLAN_HEADER)
			return 0;
		if (headers->vlan_tags++ == 0) {
			headers->vlan_tpid = headers->ethertype;
			headers->vlan_tci = read16(data + offset);
		}
		headers->ethertype = read16(data + offset + 2);
		offset += NET_VLAN_HEADER;
	}
	return offset;
}

/* Returns the offset of what follows the IPv4 header, 0 when nothing usable does. */
static size_t parse_ipv4(const uint8_t *data, size_t size, size_t offset,
                         struct net_headers *headers)
{
	const uint8_t *ip = data + offset;

	if (size - offset < NET_IPV4_HEADER || ip[0] >> 4 != 4)
		return 0;
	size_t header_size = (size_t)(ip[0] & 15) * 4;

	if (header_size < NET_IPV4_HEADER)
		return 0;
	headers->ip_version = 4;
	headers->l3_offset = (uint16_t)offset;
	headers->protocol = ip[9];
	headers->fragment = (read16(ip + 6) & 0x3fff) != 0; /* MF, or an offset */
	if (headers->fragment || size - offset < header_size)
		return 0;
	return offset + header_size;
}

/* The size of the extension header at EXT, of which 8 bytes are readable; 0 when PROTOCOL is none
 * that is stepped over (RFC 8200 4, RFC 4302 2.2). */
static size_t ipv6_extension_size(uint8_t protocol, const uint8_t *ext)
{
	switch (protocol) {
	case NET_IPV6_HOP_BY_HOP:
	case NET_IPV6_ROUTING:
	case NET_IPV6_DESTINATION:
		return ((size_t)ext[1] + 1) * 8;
	case NET_IPV6_AUTHENTICATION:
		return ((size_t)ext[1] + 2) * 4;
	case NET_IPV6_FRAGMENT:
		return 8;
	default:
		return 0;
	}
}

/* Returns the offset of what follows the IPv6 headers, 0 when nothing usable does. */
static size_t parse_ipv6(const uint8_t *data, size_t size, size_t offset,
                         struct net_headers *headers)
{
	if (size - offset < NET_IPV6_HEADER || data[offset] >> 4 != 6)
		return 0;
	headers->ip_version = 6;
	headers->l3_offset = (uint16_t)offset;
	headers->protocol = data[offset + 6];
	offset += NET_IPV6_HEADER;
	for (unsigned i = 0; i < IPV6_EXTENSIONS_MAX && size - offset >= 8; i++) {
		const uint8_t *ext = data + offset;
		size_t ext_size = ipv6_extension_size(headers->protocol, ext);

		if (ext_size == 0)
			return offset;
		if (headers->protocol == NET_IPV6_FRAGMENT && (read16(ext + 2) & 0xfff9) != 0)
			headers->fragment = true; /* an offset, or more to come */
		headers->protocol = ext[0];
		/* In a fragment the chain ends here for every one of them: the first would show
		 * more than the others. */
		if (headers->fragment || size - offset < ext_size)
			return 0;
		offset += ext_size;
	}
	return offset;
}

static void parse_transport(const uint8_t *data, size_t size, size_t offset,
                            struct net_headers *headers)
{
	size_t left = size - offset, header_size;

	if (headers->protocol == NET_PROTO_TCP) {
		if (left < NET_TCP_HEADER)
			return;
		header_size = (size_t)(data[offset + 12] >> 4) * 4;
	} else if (headers->protocol == NET_PROTO_UDP) {
		header_size = NET_UDP_HEADER;
	} else if (headers->protocol == NET_PROTO_SCTP) {
		header_size = NET_SCTP_HEADER;
	} else {
		return;
	}
	if (left < 8)
		return;
	headers->l4_offset = (uint16_t)offset;
	if (headers->protocol != NET_PROTO_SCTP && left >= header_size &&
	    (headers->protocol == NET_PROTO_UDP || header_size >= NET_TCP_HEADER))
		headers->payload_offset = (uint16_t)(offset + header_size);
}

void net_headers_parse(const uint8_t *data, size_t size, struct net_headers *headers)
{
	*headers = (struct net_headers){0};
	if (size > NET_HEADERS_LIMIT) /* offsets are 16 bits wide */
		size = NET_HEADERS_LIMIT;
	size_t offset = parse_ethernet(data, size, headers);

	if (offset == 0)
		return;
	if (headers->ethertype == NET_ETHERTYPE_IPV4)
		offset = parse_ipv4(data, size, offset, headers);
	else if (headers->ethertype == NET_ETHERTYPE_IPV6)
		offset = parse_ipv6(data, size, offset, headers);
	else
		return;
	if (offset != 0)
		parse_transport(data, size, offset, headers);
}
