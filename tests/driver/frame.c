// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames for tests, frame.h. */
#include "frame.h"

#include <string.h>

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

struct flow flow_make(int version, uint8_t protocol, const uint8_t dst[6], const uint8_t src[6])
{
	struct flow flow = {.version = version,
	                    .protocol = protocol,
	                    .ethertype = FRAME_TYPE_TEST,
	                    .sport = 40001,
	                    .dport = 5201,
	                    .seq = 0xfffff000, /* wraps soon */
	                    .tcp_flags = 0x18};
	static const uint8_t from4[4] = {10, 5, 0, 2}, to4[4] = {10, 5, 0, 1};

	memcpy(flow.dst, dst, 6);
	memcpy(flow.src, src, 6);
	if (version == 4) {
		memcpy(flow.saddr, from4, 4);
		memcpy(flow.daddr, to4, 4);
	} else if (version == 6) {
		flow.saddr[0] = flow.daddr[0] = 0xfd;
		flow.saddr[15] = 2;
		flow.daddr[15] = 1;
	}
	return flow;
}

size_t flow_l3(const struct flow *flow)
{
	return flow->tagged ? 18 : 14;
}

size_t flow_l4(const struct flow *flow)
{
	return flow_l3(flow) + (flow->version == 4 ? 20 : flow->version == 6 ? 40 : 0);
}

size_t flow_payload(const struct flow *flow)
{
	if (flow->version == 0)
		return flow_l3(flow);
	return flow_l4(flow) + (flow->protocol == FRAME_PROTO_TCP   ? 20
	                        : flow->protocol == FRAME_PROTO_UDP ? 8
	                                                            : 0);
}

size_t flow_csum_offset(const struct flow *flow)
{
	return flow->protocol == FRAME_PROTO_TCP ? 16 : 6;
}

void frame_fill(uint8_t *out, size_t size, uint32_t seed)
{
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < size; i++) {
		state ^= state << 13;
		state ^= state >> 17;
		state ^= state << 5;
		out[i] = (uint8_t)(state >> 11);
	}
}

/* ---- sums ---- */

static uint64_t sum_add(uint64_t sum, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += get16(data + i);
	return size & 1 ? sum + ((unsigned)data[size - 1] << 8) : sum;
}

static uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

uint16_t frame_sum(const uint8_t *data, size_t size)
{
	return sum_fold(sum_add(0, data, size));
}

/* Sum of the pseudo-header with SIZE bytes behind it. */
static uint64_t sum_pseudo(const struct flow *flow, size_t size)
{
	size_t addr = flow->version == 4 ? 4 : 16;

	return sum_add(sum_add(flow->protocol + size, flow->saddr, addr), flow->daddr, addr);
}

/* The checksum that belongs into the L4 header, which holds 0 there. */
static uint16_t l4_checksum(const uint8_t *frame, size_t size, const struct flow *flow)
{
	size_t l4 = flow_l4(flow);
	uint16_t sum = sum_fold(sum_add(sum_pseudo(flow, size - l4), frame + l4, size - l4));

	sum = (uint16_t)~sum;
	return sum ? sum : 0xffff;
}

/* ---- building ---- */

static void write_ethernet(uint8_t *out, const struct flow *flow)
{
	unsigned type = flow->version == 4 ? 0x0800 : flow->version == 6 ? 0x86dd : flow->ethertype;

	memcpy(out, flow->dst, 6);
	memcpy(out + 6, flow->src, 6);
	if (flow->tagged) {
		put16(out + 12, 0x8100);
		put16(out + 14, flow->tci);
	}
	put16(out + flow_l3(flow) - 2, type);
}

static void write_ip(uint8_t *ip, const struct flow *flow, size_t size, enum frame_csum csum)
{
	if (flow->version == 4) {
		memset(ip, 0, 20);
		ip[0] = 0x45;
		put16(ip + 2, (unsigned)size);
		put16(ip + 4, 0xfffe); /* wraps with the third segment */
		ip[6] = 0x40;
		ip[8] = 64;
		ip[9] = flow->protocol;
		memcpy(ip + 12, flow->saddr, 4);
		memcpy(ip + 16, flow->daddr, 4);
		if (csum != FRAME_CSUM_TSO)
			put16(ip + 10, (uint16_t)~frame_sum(ip, 20));
		return;
	}
	memset(ip, 0, 8);
	ip[0] = 0x60;
	put16(ip + 4, csum == FRAME_CSUM_TSO ? 0 : (unsigned)(size - 40));
	ip[6] = flow->protocol;
	ip[7] = 64;
	memcpy(ip + 8, flow->saddr, 16);
	memcpy(ip + 24, flow->daddr, 16);
}

static void write_l4(uint8_t *l4, const struct flow *flow, size_t size)
{
	put16(l4, flow->sport);
	put16(l4 + 2, flow->dport);
	if (flow->protocol == FRAME_PROTO_UDP) {
		put16(l4 + 4, (unsigned)size);
		put16(l4 + 6, 0);
		return;
	}
	put32(l4 + 4, flow->seq);
	put32(l4 + 8, 0x12345678);
	l4[12] = 5 << 4;
	l4[13] = flow->tcp_flags;
	put16(l4 + 14, 0x7fff);
	put32(l4 + 16, 0);
}

size_t frame_build(uint8_t *out, const struct flow *flow, size_t payload, uint32_t seed,
                   enum frame_csum csum)
{
	size_t l3 = flow_l3(flow), l4 = flow_l4(flow), data = flow_payload(flow);
	size_t size = data + payload;
	uint8_t *field;

	write_ethernet(out, flow);
	frame_fill(out + data, payload, seed);
	if (flow->version == 0)
		return size;
	write_ip(out + l3, flow, size - l3, csum);
	if (data == l4)
		return size;
	write_l4(out + l4, flow, size - l4);
	field = out + l4 + flow_csum_offset(flow);
	if (csum == FRAME_CSUM_FULL)
		put16(field, l4_checksum(out, size, flow));
	else
		put16(field, sum_fold(sum_pseudo(flow, csum == FRAME_CSUM_TSO ? 0 : size - l4)));
	return size;
}

bool frame_csum_ok(const uint8_t *frame, size_t size, const struct flow *flow)
{
	size_t l3 = flow_l3(flow), l4 = flow_l4(flow);

	if (size < flow_payload(flow))
		return false;
	if (flow->version == 4 && frame_sum(frame + l3, 20) != 0xffff)
		return false;
	return sum_fold(sum_add(sum_pseudo(flow, size - l4), frame + l4, size - l4)) == 0xffff;
}

size_t frame_tag(const uint8_t *frame, size_t size, uint16_t tci, uint8_t *out)
{
	memcpy(out, frame, 12);
	put16(out + 12, 0x8100);
	put16(out + 14, tci);
	memcpy(out + 16, frame + 12, size - 12);
	return size + 4;
}

/* ---- segments (7.6) ---- */

static void segment_tcp_flags(uint8_t *flags, bool first, bool last)
{
	if (!last)
		*flags &= (uint8_t)~0x09; /* FIN, PSH */
	if (!first)
		*flags &= (uint8_t)~0x80; /* CWR */
}

size_t frame_segment(const uint8_t *packet, size_t size, const struct flow *flow, uint16_t mss,
                     unsigned index, uint8_t *out)
{
	size_t l3 = flow_l3(flow), l4 = flow_l4(flow), hdr = flow_payload(flow);
	size_t from = hdr + (size_t)index * mss, part;
	uint8_t *ip = out + l3, *tcp = out + l4;

	if (from >= size && index)
		return 0;
	part = size - from < mss ? size - from : mss;
	memcpy(out, packet, hdr);
	memcpy(out + hdr, packet + from, part);
	if (flow->version == 4) {
		put16(ip + 2, (unsigned)(hdr - l3 + part));
		put16(ip + 4, get16(packet + l3 + 4) + index);
		put16(ip + 10, 0);
		put16(ip + 10, (uint16_t)~frame_sum(ip, 20));
	} else {
		put16(ip + 4, (unsigned)(hdr - l4 + part));
	}
	put32(tcp + 4, (get16(tcp + 4) << 16 | get16(tcp + 6)) + index * mss);
	segment_tcp_flags(tcp + 13, index == 0, from + part == size);
	put16(tcp + 16, 0);
	put16(tcp + 16, l4_checksum(out, hdr + part, flow));
	return hdr + part;
}

/* ---- hashes ---- */

uint32_t flow_toeplitz(const struct flow *flow, const uint8_t key[40], bool ports)
{
	size_t addr = flow->version == 4 ? 4 : 16, size = 0;
	uint8_t input[36];
	uint32_t hash = 0;

	memcpy(input, flow->saddr, addr);
	memcpy(input + addr, flow->daddr, addr);
	size = 2 * addr;
	if (ports) {
		put16(input + size, flow->sport);
		put16(input + size + 2, flow->dport);
		size += 4;
	}
	for (size_t bit = 0; bit < size * 8; bit++) {
		uint64_t window = 0;

		if (!(input[bit / 8] & 0x80 >> bit % 8))
			continue;
		for (unsigned i = 0; i < 5; i++)
			window = window << 8 | key[bit / 8 + i];
		hash ^= (uint32_t)(window >> (8 - bit % 8));
	}
	return hash;
}

static uint32_t fnv_add(uint32_t hash, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 16777619u;
	return hash;
}

uint32_t flow_fnv(const struct flow *flow)
{
	size_t addr = flow->version == 4 ? 4 : 16;
	uint32_t hash = 2166136261u;
	uint8_t ports[4];

	if (flow->version == 0) /* the two MAC addresses, as they stand in the frame */
		return fnv_add(fnv_add(hash, flow->dst, 6), flow->src, 6);
	put16(ports, flow->sport);
	put16(ports + 2, flow->dport);
	hash = fnv_add(hash, flow->saddr, addr);
	hash = fnv_add(hash, flow->daddr, addr);
	hash = fnv_add(hash, &flow->protocol, 1);
	return fnv_add(hash, ports, 4);
}
