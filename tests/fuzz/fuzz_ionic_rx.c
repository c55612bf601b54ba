// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: receive descriptors with guest memory changing underneath, and any frame with any
 * offload notes from the wire into them.
 */
#include "eth_fuzz.h"

enum op {
	OP_DESC,     /* u8 opcode, u16 size, address, list: a descriptor as it comes */
	OP_BUFFERS,  /* u8 count, u16 size: good buffers in one piece */
	OP_DOORBELL, /* u8 index, or the next slot's */
	OP_FRAME,    /* notes, u16 size, bytes */
	OP_TCP,      /* u8 kind, u16 payload, u16 mss: a good packet, perhaps to be cut */
	OP_MEMORY,   /* u24 offset, u8 size, bytes */
	OP_FEATURES, /* u16: of the LIF */
	OP_MESSAGES, /* u8: memory that can be mapped, or not */
	OP_LINK,     /* u8 */
	OP_COUNT,
};

static int deliver(struct net_port *port, const struct net_frame *frame)
{
	(void)port;
	(void)frame;
	return 0;
}

static const struct net_port_ops host_ops = {.deliver = deliver};

static void op_desc(struct input *input)
{
	struct ionic_sg_elem list[IONIC_RXQ_SG_MAX];
	struct ionic_rxq_desc desc = {
	        .opcode = (uint8_t)number(input, 1),
	        .len = le16_make((uint16_t)number(input, 2)),
	        .addr = le64_make(address(number(input, 2))),
	};
	size_t count = make_list(input, list, IONIC_RXQ_SG_MAX);

	put_desc(&desc, list, count, IONIC_RXQ_SG_STRIDE);
}

static void op_buffers(struct input *input)
{
	uint64_t count = number(input, 1) % 32, size = number(input, 2);

	for (uint64_t i = 0; i < count; i++) {
		struct ionic_rxq_desc desc = {.len = le16_make((uint16_t)size),
		                              .addr = le64_make(eth.memory + i * 4096)};

		put_desc(&desc, NULL, 0, IONIC_RXQ_SG_STRIDE);
	}
	fake_doorbell(&eth.guest, eth.ring.hw_type, eth.ring.hw_index, eth.ring.head);
}

static void send(const uint8_t *data, size_t size, struct net_frame frame)
{
	struct iovec iov[2];
	size_t first = size < 40 ? size : 40;

	/* Copies, so that a sanitizer sees the ends of them. */
	iov[0] = (struct iovec){.iov_base = malloc(first + 1), .iov_len = first};
	iov[1] = (struct iovec){.iov_base = malloc(size - first + 1), .iov_len = size - first};
	must(iov[0].iov_base && iov[1].iov_base);
	memcpy(iov[0].iov_base, data, first);
	memcpy(iov[1].iov_base, data + first, size - first);
	frame.iov = iov;
	frame.iov_count = size > first ? 2 : 1;
	frame.size = size;
	net_wire_send(&eth.host, &frame);
	free(iov[0].iov_base);
	free(iov[1].iov_base);
}

static void op_frame(struct input *input)
{
	struct net_frame frame = {0};
	uint64_t flags = number(input, 1);
	const uint8_t *data;

	frame.csum_partial = flags & 1;
	frame.csum_valid = flags & 2;
	frame.vlan = flags & 4;
	frame.gso = (enum net_gso)(flags >> 4) % 3;
	frame.csum_start = (uint16_t)number(input, 2);
	frame.csum_offset = (uint16_t)number(input, 2);
	frame.vlan_tci = (uint16_t)number(input, 2);
	frame.gso_size = (uint16_t)number(input, 2);
	frame.hdr_size = (uint16_t)number(input, 2);
	size_t size = bytes(input, &data, number(input, 2));

	send(data, size, frame);
}

static void op_tcp(struct input *input)
{
	static uint8_t packet[NET_MAX_FRAME];
	uint64_t kind = number(input, 1);
	bool ipv6 = kind & 1, tagged = kind & 2;
	size_t l3 = tagged ? 18 : 14, l4 = l3 + (ipv6 ? 40 : 20), payload = number(input, 2);
	size_t mss = number(input, 2), size = l4 + 20 + payload;

	if (size > sizeof(packet))
		return;
	memset(packet, 0, 128);
	memcpy(packet + 12, "\x81\x00\x00\x05", 4);
	memcpy(packet + l3 - 2, ipv6 ? "\x86\xdd" : "\x08\x00", 2);
	packet[l3] = ipv6 ? 0x60 : 0x45;
	packet[l3 + (ipv6 ? 6 : 9)] = 6;
	packet[l4 + 12] = 0x50;
	struct net_frame frame = {
	        .csum_partial = true, .csum_start = (uint16_t)l4, .csum_offset = 16};

	if (kind & 4) { /* a checksum that has nothing to do with TCP, in a tag for example */
		frame.csum_start = (uint16_t)(NET_ETH_HEADER + (kind >> 3 & 0xf));
		frame.csum_offset = (uint16_t)(mss & 0xf);
	} else if (mss) {
		frame.gso = ipv6 ? NET_GSO_TCPV6 : NET_GSO_TCPV4;
		frame.gso_size = (uint16_t)mss;
		frame.hdr_size = (uint16_t)(l4 + 20);
	}
	send(packet, size, frame);
}

static void operate(struct input *input)
{
	switch ((enum op)(number(input, 1) % OP_COUNT)) {
	case OP_DESC:
		op_desc(input);
		break;
	case OP_BUFFERS:
		op_buffers(input);
		break;
	case OP_DOORBELL:
		op_doorbell(input);
		break;
	case OP_FRAME:
		op_frame(input);
		break;
	case OP_TCP:
		op_tcp(input);
		break;
	case OP_MEMORY:
		op_memory(input);
		break;
	case OP_FEATURES:
		eth.guest.dev->lif.features = number(input, 2) & 0x7bf;
		break;
	case OP_MESSAGES:
		eth.guest.messages_only = number(input, 1) & 1;
		break;
	case OP_LINK:
		ionic_link_set(eth.guest.dev, number(input, 1) & 1);
		break;
	case OP_COUNT:
		break;
	}
}

/* As many completions as descriptors, whatever happened (spec ionic-ethernet 8.3). */
static void check(const struct ionic_queue *queue)
{
	must(queue->cons < queue->entries && queue->cq_pos < queue->entries);
	must(queue->entries == 1 || queue->cons == queue->cq_pos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start(data, size, &host_ops);
	probe(IONIC_QTYPE_RXQ, 0x7bf);
	for (unsigned ops = 0; eth.input.size > 0 && ops < OPS_MAX; ops++)
		operate(&eth.input);
	fake_run(&eth.guest);
	check(&eth.guest.dev->lif.rxq[0]);
	return 0;
}
