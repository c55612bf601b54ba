/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames for tests, the slow and obvious way. */
#include "frames.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

static uint32_t add_bytes(uint32_t sum, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		sum += i & 1 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return sum;
}

uint16_t naive_sum(const uint8_t *bytes, size_t size)
{
	return (uint16_t)add_bytes(0, bytes, size);
}

static size_t l3_of(const uint8_t *bytes)
{
	return bytes[12] == 0x81 && bytes[13] == 0 ? 18 : 14;
}

static uint32_t pseudo_sum(const uint8_t *ip, uint8_t protocol, uint32_t length)
{
	uint32_t sum = ip[0] >> 4 == 4 ? add_bytes(0, ip + 12, 8) : add_bytes(0, ip + 8, 32);

	sum += protocol;
	sum += (length & 0xffff) + (length >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static uint8_t protocol_of(const uint8_t *ip)
{
	return ip[0] >> 4 == 4 ? ip[9] : ip[6];
}

uint16_t frame_l4_error(const uint8_t *bytes, size_t size)
{
	const uint8_t *ip = bytes + l3_of(bytes);
	size_t l4 = l3_of(bytes) + (ip[0] >> 4 == 4 ? 20u : 40u);
	uint32_t sum = pseudo_sum(ip, protocol_of(ip), (uint32_t)(size - l4));

	sum = add_bytes(sum, bytes + l4, size - l4);
	return (uint16_t)~sum;
}

uint16_t frame_ip_error(const uint8_t *bytes, size_t size)
{
	const uint8_t *ip = bytes + l3_of(bytes);
	size_t length = size - l3_of(bytes);

	if (ip[0] >> 4 == 6)
		return (uint16_t)((ip[4] << 8 | ip[5]) != (int)(length - 40));
	if ((size_t)(ip[2] << 8 | ip[3]) != length)
		return 1;
	return (uint16_t)~add_bytes(0, ip, 20);
}

static void put_ip(const struct frame_spec *spec, struct frame *frame)
{
	uint8_t *ip = frame->bytes + frame->l3;
	uint8_t protocol = spec->udp ? 17 : 6;
	size_t length = frame->size - frame->l3;

	if (spec->ipv6) {
		ip[0] = 0x60;
		put16(ip + 4, (uint32_t)(length - 40));
		ip[6] = protocol;
		ip[7] = 64;
		memcpy(ip + 8, "\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
		       16);
		memcpy(ip + 24, "\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02",
		       16);
		return;
	}
	ip[0] = 0x45;
	put16(ip + 2, (uint32_t)length);
	put16(ip + 4, spec->ip_id);
	put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = protocol;
	memcpy(ip + 12, "\xc0\xa8\x4d\x01\xc0\xa8\x4d\x02", 8);
	put16(ip + 10, (uint16_t)~add_bytes(0, ip, 20));
}

static void put_l4(const struct frame_spec *spec, struct frame *frame)
{
	uint8_t *l4 = frame->bytes + frame->l4;

	put16(l4, spec->sport);
	put16(l4 + 2, spec->dport);
	if (spec->udp) {
		put16(l4 + 4, (uint32_t)(frame->size - frame->l4));
	} else {
		put32(l4 + 4, spec->seq);
		put32(l4 + 8, 0x01020304);
		l4[12] = (uint8_t)((20 + spec->tcp_options) / 4 << 4);
		l4[13] = spec->tcp_flags;
		put16(l4 + 14, 0xffff);
		memset(l4 + 20, 1, spec->tcp_options); /* no-operation */
	}
	uint16_t error = frame_l4_error(frame->bytes, frame->size);

	put16(l4 + (spec->udp ? 6 : 16), error ? error : 0xffff);
}

static uint8_t payload_byte(const struct frame_spec *spec, size_t at)
{
	uint32_t x = (uint32_t)at * 2654435761u + spec->seed * 40503u;

	return (uint8_t)(x >> 15 ^ x);
}

static void build_part(const struct frame_spec *spec, size_t payload_from, struct frame *frame)
{
	memset(frame->bytes, 0, 160);
	frame->l3 = spec->tagged ? 18 : 14;
	frame->l4 = frame->l3 + (spec->ipv6 ? 40 : 20);
	frame->payload = frame->l4 + (spec->udp ? 8 : 20 + spec->tcp_options);
	frame->size = frame->payload + spec->payload;
	assert(frame->size <= sizeof(frame->bytes));
	memcpy(frame->bytes, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01", 12);
	if (spec->tagged) {
		put16(frame->bytes + 12, 0x8100);
		put16(frame->bytes + 14, spec->tci);
	}
	put16(frame->bytes + frame->l3 - 2, spec->ipv6 ? 0x86dd : 0x0800);
	for (size_t i = 0; i < spec->payload; i++)
		frame->bytes[frame->payload + i] = payload_byte(spec, payload_from + i);
	put_ip(spec, frame);
	put_l4(spec, frame);
}

void frame_build(const struct frame_spec *spec, struct frame *frame)
{
	build_part(spec, 0, frame);
}

void frame_unsum(struct frame *frame, uint32_t length)
{
	const uint8_t *ip = frame->bytes + frame->l3;
	size_t field = protocol_of(ip) == 17 ? 6 : 16;

	put16(frame->bytes + frame->l4 + field, pseudo_sum(ip, protocol_of(ip), length));
}

bool frame_segment(const struct frame_spec *spec, size_t mss, size_t index, struct frame *segment)
{
	struct frame_spec part = *spec;
	size_t from = index * mss;
	bool last = from + mss >= spec->payload;

	if (from >= spec->payload)
		return false;
	part.payload = last ? spec->payload - from : mss;
	part.seq = spec->seq + (uint32_t)from;
	part.ip_id = (uint16_t)(spec->ip_id + index);
	if (!last)
		part.tcp_flags &= (uint8_t)~0x09u; /* FIN, PSH */
	if (index > 0)
		part.tcp_flags &= (uint8_t)~0x80u; /* CWR */
	build_part(&part, from, segment);
	return true;
}

unsigned split_random(const uint8_t *bytes, size_t size, struct iovec *iov, unsigned max,
                      uint8_t *store)
{
	unsigned count = 0;

	while (size > 0) {
		size_t chunk = size;

		if (count + 1 < max && size > 1)
			chunk = 1 +
			        (size_t)rand() % (rand() % 4 ? (size < 200 ? size : 200) : size);
		memcpy(store, bytes, chunk);
		iov[count++] = (struct iovec){.iov_base = store, .iov_len = chunk};
		store += chunk + 1;
		bytes += chunk;
		size -= chunk;
	}
	return count;
}
