// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: transmit descriptors, with guest memory changing underneath. The port at the other
 * end looks at every byte that it is given, and at whether the notes of a frame are sound.
 */
#include "eth_fuzz.h"

enum op {
	OP_DESC,     /* u64 cmd, u16 size, 3 x u16, list: a descriptor as it comes */
	OP_PACKET,   /* u8 kind, u16 payload, u16 mss: a good packet, in one or more descriptors */
	OP_DOORBELL, /* u8 index, or the next slot's */
	OP_RUN,      /* the loop turns */
	OP_MEMORY,   /* u24 offset, u8 size, bytes */
	OP_OFFLOADS, /* u8: of the port */
	OP_MESSAGES, /* u8: memory that can be mapped, or not */
	OP_LINK,     /* u8 */
	OP_COUNT,
};

static int deliver(struct net_port *port, const struct net_frame *frame)
{
	static uint8_t copy[NET_MAX_FRAME + NET_VLAN_HEADER];
	uint32_t max = ionic_max_frame(eth.guest.dev);

	(void)port;
	must(frame->iov_count <= NET_PORT_IOV);
	must(iov_to_buf(frame->iov, frame->iov_count, 0, copy, sizeof(copy)) == frame->size);
	must(frame->size >= NET_ETH_HEADER);
	if (frame->gso == NET_GSO_NONE) {
		must(frame->size <= max);
	} else {
		must((uint32_t)frame->hdr_size + frame->gso_size <= max);
		must(frame->hdr_size < frame->size && frame->gso_size >= NET_GSO_SIZE_MIN);
		must(frame->csum_partial);
	}
	return number(&eth.input, 1) == 0xee ? -ENOBUFS : 0;
}

static const struct net_port_ops host_ops = {.deliver = deliver};

static void op_desc(struct input *input)
{
	struct ionic_sg_elem list[IONIC_TXQ_SG_MAX];
	uint64_t cmd = number(input, 2);
	uint64_t addr = address(number(input, 2));
	struct ionic_txq_desc desc = {
	        .cmd = le64_make((cmd & 0xfff) | addr << 12),
	        .len = le16_make((uint16_t)number(input, 2)),
	        .vlan_tci = le16_make((uint16_t)number(input, 2)),
	        .csum_start_or_hdr_len = le16_make((uint16_t)number(input, 2)),
	        .csum_offset_or_mss = le16_make((uint16_t)number(input, 2)),
	};
	size_t count = make_list(input, list, IONIC_TXQ_SG_MAX);

	put_desc(&desc, list, count, IONIC_TXQ_SG_STRIDE);
}

/* Headers that are good enough to be segmented, in front of whatever memory holds. */
static size_t put_headers(bool ipv6)
{
	uint8_t *head = fake_ptr(&eth.guest, eth.memory, 128);
	size_t l4 = ipv6 ? 54 : 34;

	memset(head, 0, 128);
	memcpy(head + 12, ipv6 ? "\x86\xdd" : "\x08\x00", 2);
	head[14] = ipv6 ? 0x60 : 0x45;
	head[ipv6 ? 20 : 23] = 6;
	head[l4 + 12] = 0x80;
	return l4 + 32;
}

static void op_packet(struct input *input)
{
	uint64_t kind = number(input, 1);
	size_t hdr_size = put_headers(kind & 1);
	size_t left = hdr_size + number(input, 2), mss = number(input, 2);
	uint64_t addr = eth.memory;

	for (unsigned i = 0; i < 31 && left > 0; i++) {
		size_t chunk = mss + (i == 0 ? hdr_size : 0);

		if (chunk > left || mss == 0)
			chunk = left;
		if (chunk > UINT16_MAX)
			chunk = UINT16_MAX;
		left -= chunk;
		struct ionic_txq_desc desc = {
		        .cmd = le64_make(IONIC_TXQ_CMD(IONIC_TXQ_TSO,
		                                       (kind & 2 ? IONIC_TXQ_VLAN : 0u) |
		                                               (i == 0 ? IONIC_TXQ_TSO_SOT : 0u) |
		                                               (left ? 0u : IONIC_TXQ_TSO_EOT),
		                                       0, addr)),
		        .len = le16_make((uint16_t)chunk),
		        .csum_start_or_hdr_len = le16_make((uint16_t)hdr_size),
		        .csum_offset_or_mss = le16_make((uint16_t)mss),
		};

		put_desc(&desc, NULL, 0, IONIC_TXQ_SG_STRIDE);
		addr += chunk;
	}
}

static void operate(struct input *input)
{
	unsigned offloads;

	switch ((enum op)(number(input, 1) % OP_COUNT)) {
	case OP_DESC:
		op_desc(input);
		break;
	case OP_PACKET:
		op_packet(input);
		break;
	case OP_DOORBELL:
		op_doorbell(input);
		break;
	case OP_RUN:
		fake_run(&eth.guest);
		break;
	case OP_MEMORY:
		op_memory(input);
		break;
	case OP_OFFLOADS:
		offloads = (unsigned)number(input, 1) & NET_OFFLOAD_ALL;
		net_port_set_offloads(&eth.host, offloads | (offloads & 6 ? NET_OFFLOAD_CSUM : 0u));
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

/* What is left on the ring waits for the rest of a packet; a full ring has no rest. */
static void check(const struct ionic_queue *queue)
{
	must(queue->cons < queue->entries && queue->cq_pos < queue->entries);
	must(queue->entries == 1 || !queue->enabled ||
	     ionic_queue_posted(queue) < queue->entries - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start(data, size, &host_ops);
	net_port_set_offloads(&eth.host, 0);
	probe(IONIC_QTYPE_TXQ, 0x7bf);
	for (unsigned ops = 0; eth.input.size > 0 && ops < OPS_MAX; ops++)
		operate(&eth.input);
	fake_run(&eth.guest);
	check(&eth.guest.dev->lif.txq[0]);
	return 0;
}
