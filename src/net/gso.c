/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * TCP segmentation: cuts one large packet into the segments that a wire carries.
 *
 * Only headers are made here (spec ionic-ethernet 7.6 lists what changes from segment to segment);
 * the payload stays where it is. The header is copied out of the frame once and every decision is
 * taken on the copy, so a sender that rewrites its memory meanwhile gets odd segments and no more.
 *
 * Sums. The template's TCP checksum field holds the pseudo-header's sum with the length of the
 * whole packet. It is kept instead of adding the addresses up again, because behind a routing
 * header only the sender knows the final destination; the length is exchanged per segment.
 */
#include "net/net.h"

#include <errno.h>

#include "base/iov.h"
#include "net/net_internal.h"

#define TCP_CSUM_OFFSET 16

static void write16(uint8_t *data, uint16_t value)
{
	data[0] = (uint8_t)(value >> 8);
	data[1] = (uint8_t)value;
}

static void write32(uint8_t *data, uint32_t value)
{
	write16(data, (uint16_t)(value >> 16));
	write16(data + 2, (uint16_t)value);
}

static uint16_t read16(const uint8_t *data)
{
	return (uint16_t)(data[0] << 8 | data[1]);
}

/* The complement: what subtracts VALUE in ones' complement arithmetic. */
static uint32_t negate16(size_t value)
{
	return (uint32_t)(~value & 0xffff);
}

static bool notes_fit(const struct net_frame *frame, const struct net_headers *headers)
{
	unsigned version = frame->gso == NET_GSO_TCPV6 ? 6 : 4;

	return headers->ip_version == version && headers->protocol == NET_PROTO_TCP &&
	       headers->payload_offset == frame->hdr_size &&
	       headers->l4_offset == frame->csum_start && frame->csum_offset == TCP_CSUM_OFFSET;
}

/* Takes out of the header what changes, so that a segment only has to put its own values in. */
static void read_template(struct net_cut *cut)
{
	uint8_t *ip = cut->header + cut->l3_offset, *tcp = cut->header + cut->l4_offset;
	size_t tcp_size = cut->frame_size - cut->l4_offset;

	cut->seq = (uint32_t)read16(tcp + 4) << 16 | read16(tcp + 6);
	cut->tcp_flags = tcp[13];
	cut->pseudo_sum = (uint32_t)read16(tcp + TCP_CSUM_OFFSET) + negate16(tcp_size);
	if (cut->ipv6)
		return;
	cut->ip_id = read16(ip + 4);
	write16(ip + 2, 0);
	write16(ip + 4, 0);
	write16(ip + 10, 0);
	cut->ip_sum = net_csum_add(0, ip, (size_t)(ip[0] & 15) * 4);
}

int net_cut_begin(struct net_cut *cut, const struct net_frame *frame)
{
	struct net_headers headers;

	if (frame->gso == NET_GSO_NONE || !frame->csum_partial ||
	    frame->gso_size < NET_GSO_SIZE_MIN ||
	    frame->hdr_size > NET_HEAD_MAX - NET_VLAN_HEADER || frame->size <= frame->hdr_size)
		return -EBADMSG;
	iov_to_buf(frame->iov, frame->iov_count, 0, cut->header, frame->hdr_size);
	net_headers_parse(cut->header, frame->hdr_size, &headers);
	if (!notes_fit(frame, &headers))
		return -EBADMSG;
	size_t payload_size = frame->size - frame->hdr_size;

	cut->header_size = frame->hdr_size;
	cut->l3_offset = headers.l3_offset;
	cut->l4_offset = headers.l4_offset;
	cut->frame_size = frame->size;
	cut->mss = frame->gso_size;
	cut->ipv6 = frame->gso == NET_GSO_TCPV6;
	cut->count = (uint32_t)((payload_size + cut->mss - 1) / cut->mss);
	cut->index = UINT32_MAX; /* the first one is next */
	read_template(cut);
	return 0;
}

static void put_ipv4(struct net_cut *cut)
{
	uint8_t *ip = cut->header + cut->l3_offset;
	uint16_t size = (uint16_t)(cut->header_size - cut->l3_offset + cut->payload_size);
	uint16_t id = (uint16_t)(cut->ip_id + cut->index);

	write16(ip + 2, size);
	write16(ip + 4, id);
	write16(ip + 10,
	        (uint16_t)~net_csum_fold(net_csum_join(cut->ip_sum, (uint32_t)size + id, false)));
}

static void put_ipv6(struct net_cut *cut)
{
	size_t size = cut->header_size - cut->l3_offset - NET_IPV6_HEADER + cut->payload_size;

	write16(cut->header + cut->l3_offset + 4, (uint16_t)size);
}

static void put_tcp(struct net_cut *cut)
{
	uint8_t *tcp = cut->header + cut->l4_offset;
	size_t size = cut->header_size - cut->l4_offset + cut->payload_size;
	uint8_t flags = cut->tcp_flags;

	if (cut->index > 0)
		flags &= (uint8_t)~NET_TCP_CWR;
	if (cut->index < cut->count - 1)
		flags &= (uint8_t) ~(NET_TCP_FIN | NET_TCP_PSH);
	tcp[13] = flags;
	write32(tcp + 4, cut->seq + cut->index * cut->mss);
	write16(tcp + TCP_CSUM_OFFSET, net_csum_fold(cut->pseudo_sum + (uint32_t)size));
}

bool net_cut_next(struct net_cut *cut)
{
	if (++cut->index >= cut->count)
		return false;
	cut->payload_offset = cut->header_size + (size_t)cut->index * cut->mss;
	cut->payload_size = cut->frame_size - cut->payload_offset;
	if (cut->payload_size > cut->mss)
		cut->payload_size = cut->mss;
	if (cut->ipv6)
		put_ipv6(cut);
	else
		put_ipv4(cut);
	put_tcp(cut);
	return true;
}
