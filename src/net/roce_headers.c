/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RoCEv2 packets: one table of opcodes, and reading and writing of headers by it. */
#include "net/roce_headers.h"

#include <assert.h>
#include <string.h>

#include "net/icrc.h"
#include "net/net_internal.h"

/* ---- opcodes ---- */

#define FIRST  (ROCE_STARTS | ROCE_HAS_PAYLOAD)
#define MIDDLE ROCE_HAS_PAYLOAD
#define LAST   (ROCE_ENDS | ROCE_HAS_PAYLOAD)
#define ONLY   (ROCE_STARTS | ROCE_ENDS | ROCE_HAS_PAYLOAD)
#define WHOLE  (ROCE_STARTS | ROCE_ENDS)

struct op_info {
	const char *name;
	uint16_t flags;
};

/* What RC knows; the lower part of it is what UC knows. */
static const struct op_info rc_ops[32] = {
        [ROCE_SEND_FIRST] = {"send first", ROCE_IS_SEND | FIRST},
        [ROCE_SEND_MIDDLE] = {"send middle", ROCE_IS_SEND | MIDDLE},
        [ROCE_SEND_LAST] = {"send last", ROCE_IS_SEND | LAST},
        [ROCE_SEND_LAST_IMM] = {"send last imm", ROCE_IS_SEND | LAST | ROCE_HAS_IMM},
        [ROCE_SEND_ONLY] = {"send only", ROCE_IS_SEND | ONLY},
        [ROCE_SEND_ONLY_IMM] = {"send only imm", ROCE_IS_SEND | ONLY | ROCE_HAS_IMM},
        [ROCE_WRITE_FIRST] = {"write first", ROCE_IS_WRITE | FIRST | ROCE_HAS_RETH},
        [ROCE_WRITE_MIDDLE] = {"write middle", ROCE_IS_WRITE | MIDDLE},
        [ROCE_WRITE_LAST] = {"write last", ROCE_IS_WRITE | LAST},
        [ROCE_WRITE_LAST_IMM] = {"write last imm", ROCE_IS_WRITE | LAST | ROCE_HAS_IMM},
        [ROCE_WRITE_ONLY] = {"write only", ROCE_IS_WRITE | ONLY | ROCE_HAS_RETH},
        [ROCE_WRITE_ONLY_IMM] = {"write only imm",
                                 ROCE_IS_WRITE | ONLY | ROCE_HAS_RETH | ROCE_HAS_IMM},
        [ROCE_READ_REQUEST] = {"read request", ROCE_IS_READ | WHOLE | ROCE_HAS_RETH},
        [ROCE_READ_FIRST] = {"read response first", ROCE_IS_RESPONSE | FIRST | ROCE_HAS_AETH},
        [ROCE_READ_MIDDLE] = {"read response middle", ROCE_IS_RESPONSE | MIDDLE},
        [ROCE_READ_LAST] = {"read response last", ROCE_IS_RESPONSE | LAST | ROCE_HAS_AETH},
        [ROCE_READ_ONLY] = {"read response only", ROCE_IS_RESPONSE | ONLY | ROCE_HAS_AETH},
        [ROCE_ACK] = {"acknowledge", ROCE_IS_RESPONSE | WHOLE | ROCE_HAS_AETH},
        [ROCE_ATOMIC_ACK] = {"atomic acknowledge",
                             ROCE_IS_RESPONSE | WHOLE | ROCE_HAS_AETH | ROCE_HAS_ORIGINAL},
        [ROCE_CMP_SWAP] = {"compare and swap", ROCE_IS_ATOMIC | WHOLE | ROCE_HAS_ATOMIC},
        [ROCE_FETCH_ADD] = {"fetch and add", ROCE_IS_ATOMIC | WHOLE | ROCE_HAS_ATOMIC},
        [ROCE_SEND_LAST_INV] = {"send last inv", ROCE_IS_SEND | LAST | ROCE_HAS_INV},
        [ROCE_SEND_ONLY_INV] = {"send only inv", ROCE_IS_SEND | ONLY | ROCE_HAS_INV},
};

static const struct op_info ud_send = {"datagram", ROCE_IS_SEND | ONLY | ROCE_HAS_DETH};
static const struct op_info ud_send_imm = {"datagram imm",
                                           ROCE_IS_SEND | ONLY | ROCE_HAS_DETH | ROCE_HAS_IMM};
static const struct op_info cnp = {"congestion notification",
                                   ROCE_IS_CNP | WHOLE | ROCE_HAS_PAYLOAD};
static const struct op_info unknown = {"unknown", 0};

static const struct op_info *find_op(uint8_t opcode)
{
	uint8_t op = opcode & (uint8_t)~ROCE_TRANSPORT_MASK;

	switch (opcode & ROCE_TRANSPORT_MASK) {
	case ROCE_RC:
		return rc_ops[op].flags ? &rc_ops[op] : &unknown;
	case ROCE_UC:
		return op <= ROCE_WRITE_ONLY_IMM ? &rc_ops[op] : &unknown;
	case ROCE_UD:
		if (op == ROCE_SEND_ONLY)
			return &ud_send;
		return op == ROCE_SEND_ONLY_IMM ? &ud_send_imm : &unknown;
	default:
		return opcode == ROCE_CNP_OPCODE ? &cnp : &unknown;
	}
}

uint16_t roce_op_flags(uint8_t opcode)
{
	return find_op(opcode)->flags;
}

const char *roce_op_name(uint8_t opcode)
{
	return find_op(opcode)->name;
}

/* ---- extensions, in their order on the wire (3) ---- */

static void get_deth(struct roce_fields *fields, const void *at)
{
	const struct roce_deth *deth = at;

	fields->qkey = be32_get(deth->qkey);
	fields->src_qpn = be32_get(deth->src_qpn) & ROCE_PSN_MASK;
}

static void put_deth(const struct roce_fields *fields, void *at)
{
	struct roce_deth *deth = at;

	deth->qkey = be32_make(fields->qkey);
	deth->src_qpn = be32_make(fields->src_qpn);
}

static void get_reth(struct roce_fields *fields, const void *at)
{
	const struct roce_reth *reth = at;

	fields->va = be64_get(reth->va);
	fields->rkey = be32_get(reth->rkey);
	fields->length = be32_get(reth->length);
}

static void put_reth(const struct roce_fields *fields, void *at)
{
	struct roce_reth *reth = at;

	reth->va = be64_make(fields->va);
	reth->rkey = be32_make(fields->rkey);
	reth->length = be32_make(fields->length);
}

static void get_atomic(struct roce_fields *fields, const void *at)
{
	const struct roce_atomiceth *atomic = at;

	fields->va = be64_get(atomic->va);
	fields->rkey = be32_get(atomic->rkey);
	fields->swap_add = be64_get(atomic->swap_add);
	fields->compare = be64_get(atomic->compare);
}

static void put_atomic(const struct roce_fields *fields, void *at)
{
	struct roce_atomiceth *atomic = at;

	atomic->va = be64_make(fields->va);
	atomic->rkey = be32_make(fields->rkey);
	atomic->swap_add = be64_make(fields->swap_add);
	atomic->compare = be64_make(fields->compare);
}

static void get_aeth(struct roce_fields *fields, const void *at)
{
	uint32_t word = be32_get(((const struct roce_aeth *)at)->syndrome_msn);

	fields->syndrome = (uint8_t)(word >> 24);
	fields->msn = word & ROCE_PSN_MASK;
}

static void put_aeth(const struct roce_fields *fields, void *at)
{
	struct roce_aeth *aeth = at;

	aeth->syndrome_msn =
	        be32_make((uint32_t)fields->syndrome << 24 | (fields->msn & ROCE_PSN_MASK));
}

static void get_original(struct roce_fields *fields, const void *at)
{
	fields->original = be64_get(((const struct roce_atomicacketh *)at)->original);
}

static void put_original(const struct roce_fields *fields, void *at)
{
	((struct roce_atomicacketh *)at)->original = be64_make(fields->original);
}

static void get_imm(struct roce_fields *fields, const void *at)
{
	memcpy(&fields->imm, at, sizeof(fields->imm));
}

static void put_imm(const struct roce_fields *fields, void *at)
{
	memcpy(at, &fields->imm, sizeof(fields->imm));
}

static void get_inv(struct roce_fields *fields, const void *at)
{
	be32 key;

	memcpy(&key, at, sizeof(key));
	fields->inv_key = be32_get(key);
}

static void put_inv(const struct roce_fields *fields, void *at)
{
	be32 key = be32_make(fields->inv_key);

	memcpy(at, &key, sizeof(key));
}

static const struct extension {
	uint16_t flag;
	uint16_t size;
	void (*get)(struct roce_fields *fields, const void *at);
	void (*put)(const struct roce_fields *fields, void *at);
} extensions[] = {
        {ROCE_HAS_DETH, sizeof(struct roce_deth), get_deth, put_deth},
        {ROCE_HAS_RETH, sizeof(struct roce_reth), get_reth, put_reth},
        {ROCE_HAS_ATOMIC, sizeof(struct roce_atomiceth), get_atomic, put_atomic},
        {ROCE_HAS_AETH, sizeof(struct roce_aeth), get_aeth, put_aeth},
        {ROCE_HAS_ORIGINAL, sizeof(struct roce_atomicacketh), get_original, put_original},
        {ROCE_HAS_IMM, sizeof(be32), get_imm, put_imm},
        {ROCE_HAS_INV, sizeof(be32), get_inv, put_inv},
};

size_t roce_headers_size(uint8_t opcode)
{
	size_t size = sizeof(struct roce_bth);

	for (size_t i = 0; i < ARRAY_SIZE(extensions); i++)
		if (roce_op_flags(opcode) & extensions[i].flag)
			size += extensions[i].size;
	return size;
}

/* ---- reading ---- */

#define BTH_SOLICITED 0x80
#define BTH_VERSION   0x0f
#define BTH_BECN      (1u << 30)
#define BTH_ACK       (1u << 31)

static uint16_t word_at(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void put_word(uint8_t *bytes, size_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

/* Where the IP header is, or 0 when there is none in SIZE bytes. */
static size_t find_ip(const uint8_t *frame, size_t size, uint8_t *version)
{
	size_t offset = NET_ETH_HEADER;

	if (size < NET_ETH_HEADER + NET_VLAN_HEADER + NET_IPV4_HEADER + NET_UDP_HEADER)
		return 0;
	if (word_at(frame + offset - 2) == NET_ETHERTYPE_VLAN)
		offset += NET_VLAN_HEADER;
	if (word_at(frame + offset - 2) == NET_ETHERTYPE_IPV4 && frame[offset] == 0x45)
		*version = 4;
	else if (word_at(frame + offset - 2) == NET_ETHERTYPE_IPV6 && frame[offset] >> 4 == 6)
		*version = 6;
	else
		return 0;
	return offset;
}

/* The UDP header behind the IP header at OFFSET, or 0 when the packet is none of ours. */
static size_t find_udp(const uint8_t *frame, size_t size, size_t offset, uint8_t version)
{
	size_t udp = offset + (version == 4 ? NET_IPV4_HEADER : NET_IPV6_HEADER);
	uint8_t protocol = frame[offset + (version == 4 ? 9 : 6)];

	if (protocol != NET_PROTO_UDP || size < udp + NET_UDP_HEADER)
		return 0;
	return word_at(frame + udp + 2) == ROCE_UDP_PORT ? udp : 0;
}

bool roce_is_packet(const uint8_t *frame, size_t size)
{
	uint8_t version;
	size_t ip = find_ip(frame, size, &version);

	return ip && find_udp(frame, size, ip, version);
}

static void get_bth(struct roce_fields *fields, const struct roce_bth *bth)
{
	fields->opcode = bth->opcode;
	fields->solicited = bth->flags & BTH_SOLICITED;
	fields->pad = bth->flags >> 4 & 3;
	fields->pkey = be16_get(bth->pkey);
	fields->becn = be32_get(bth->marks_qpn) & BTH_BECN;
	fields->qpn = be32_get(bth->marks_qpn) & ROCE_PSN_MASK;
	fields->ack_request = be32_get(bth->ack_psn) & BTH_ACK;
	fields->psn = be32_get(bth->ack_psn) & ROCE_PSN_MASK;
}

/* Bytes of BTH to ICRC at UDP, after the lengths of IP and UDP have been found to agree; 0 when
 * they do not, or when the packet is a fragment. */
static size_t transport_size(const uint8_t *frame, size_t size, const struct roce_packet *packet,
                             size_t udp)
{
	size_t left = size - udp, ip_payload;

	if (packet->ip_version == 4) {
		if ((word_at(packet->ip + 6) & 0x3fff) != 0 ||
		    word_at(packet->ip + 2) < NET_IPV4_HEADER)
			return 0;
		ip_payload = word_at(packet->ip + 2) - NET_IPV4_HEADER;
	} else {
		ip_payload = word_at(packet->ip + 4);
	}
	if (ip_payload > left || word_at(frame + udp + 4) != ip_payload ||
	    ip_payload < NET_UDP_HEADER + sizeof(struct roce_bth) + NET_ICRC_SIZE)
		return 0;
	return ip_payload - NET_UDP_HEADER;
}

/* Reads BTH, extensions and payload out of SIZE bytes, the ICRC not among them. */
static enum roce_verdict parse_transport(const uint8_t *bth, size_t size,
                                         struct roce_packet *packet)
{
	struct roce_fields *fields = &packet->fields;
	size_t offset = sizeof(struct roce_bth);

	memset(fields, 0, sizeof(*fields));
	get_bth(fields, (const struct roce_bth *)bth);
	packet->flags = roce_op_flags(fields->opcode);
	if (!packet->flags)
		return ROCE_BAD_OPCODE;
	if (bth[1] & BTH_VERSION)
		return ROCE_BAD_VERSION;
	if (size < roce_headers_size(fields->opcode) + fields->pad)
		return ROCE_BAD_LENGTH;
	for (size_t i = 0; i < ARRAY_SIZE(extensions); i++) {
		if (!(packet->flags & extensions[i].flag))
			continue;
		extensions[i].get(fields, bth + offset);
		offset += extensions[i].size;
	}
	packet->payload = bth + offset;
	packet->size = size - offset - fields->pad;
	if (packet->size > 0 && !(packet->flags & ROCE_HAS_PAYLOAD))
		return ROCE_BAD_LENGTH;
	return ROCE_OK;
}

enum roce_verdict roce_parse(const uint8_t *frame, size_t size, struct roce_packet *packet)
{
	size_t ip = find_ip(frame, size, &packet->ip_version);
	size_t udp = ip ? find_udp(frame, size, ip, packet->ip_version) : 0;

	if (!udp)
		return ROCE_NOT_ROCE;
	packet->ip = frame + ip;
	packet->link_size = ip;
	packet->congested = (packet->ip_version == 4 ? packet->ip[1] : packet->ip[1] >> 4) % 4 == 3;
	size_t rest = transport_size(frame, size, packet, udp);

	if (!rest)
		return ROCE_BAD_LENGTH;
	const uint8_t *bth = frame + udp + NET_UDP_HEADER;
	enum roce_verdict verdict = parse_transport(bth, rest - NET_ICRC_SIZE, packet);

	if (verdict != ROCE_OK)
		return verdict;
	le32 icrc;

	memcpy(&icrc, bth + rest - NET_ICRC_SIZE, sizeof(icrc));
	return le32_get(icrc) == net_icrc(packet->ip, udp - ip + NET_UDP_HEADER + rest - 4)
	               ? ROCE_OK
	               : ROCE_BAD_ICRC;
}

/* ---- writing ---- */

size_t roce_put_headers(const struct roce_fields *fields, size_t payload_size, uint8_t *out)
{
	struct roce_bth *bth = (struct roce_bth *)out;
	uint16_t flags = roce_op_flags(fields->opcode);
	size_t offset = sizeof(*bth);

	assert(flags);
	bth->opcode = fields->opcode;
	bth->flags = (uint8_t)((fields->solicited ? BTH_SOLICITED : 0) | (-payload_size & 3) << 4);
	bth->pkey = be16_make(ROCE_PKEY);
	bth->marks_qpn = be32_make(fields->qpn | (fields->becn ? BTH_BECN : 0));
	bth->ack_psn = be32_make(fields->psn | (fields->ack_request ? BTH_ACK : 0));
	for (size_t i = 0; i < ARRAY_SIZE(extensions); i++) {
		if (!(flags & extensions[i].flag))
			continue;
		extensions[i].put(fields, out + offset);
		offset += extensions[i].size;
	}
	return offset;
}

size_t roce_seal(uint8_t *frame, size_t link_size, size_t size, uint16_t ident)
{
	uint8_t *ip = frame + link_size;
	bool ipv4 = ip[0] >> 4 == 4;
	size_t ip_size = ipv4 ? NET_IPV4_HEADER : NET_IPV6_HEADER;
	uint8_t *udp = ip + ip_size;
	size_t pad = -(size - link_size) & 3; /* the headers are whole words */

	memset(frame + size, 0, pad);
	size += pad;
	size_t udp_size = size + NET_ICRC_SIZE - link_size - ip_size;

	if (ipv4) {
		put_word(ip + 2, ip_size + udp_size);
		put_word(ip + 4, ident);
		put_word(ip + 10, 0);
		put_word(ip + 10, (uint16_t)~net_csum_fold(net_csum_add(0, ip, ip_size)));
	} else {
		put_word(ip + 4, udp_size);
	}
	put_word(udp + 4, udp_size);
	put_word(udp + 6, 0); /* none: the ICRC protects (1) */
	le32 icrc = le32_make(net_icrc(ip, size - link_size));

	memcpy(frame + size, &icrc, sizeof(icrc));
	return size + sizeof(icrc);
}

uint16_t roce_source_port(uint32_t qpn, uint32_t peer_qpn)
{
	uint64_t label = (uint64_t)qpn * peer_qpn;

	label ^= label >> 20;
	label ^= label >> 40;
	label &= 0xfffff;
	return (uint16_t)(0xc000 | ((label & 0x3fff) ^ label >> 14));
}
