/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses: header templates (spec ionic-rdma 3.6), address handles, and the GRH area of datagrams
 * (spec ionic-rdma 9.5, spec ib-cm 3.2). */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <string.h>

#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_SIZE      20
#define IPV6_SIZE      40
#define UDP_SIZE       8
#define PROTOCOL_UDP   17
#define ROCE_PORT      4791 /* spec rocev2 1 */

static uint16_t word_at(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void put_word(uint8_t *bytes, uint32_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

/* An IPv4 address as a GID: ::ffff:a.b.c.d (spec rocev2 13). */
static void gid_of_ipv4(const uint8_t ip[4], uint8_t gid[16])
{
	memset(gid, 0, 10);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, ip, 4);
}

static int parse_ipv4(const uint8_t *ip, size_t size, struct rdma_av *av)
{
	if (size != IPV4_SIZE + UDP_SIZE || ip[0] != 0x45 || ip[9] != PROTOCOL_UDP)
		return -EINVAL;
	av->ip_version = 4;
	av->tclass = ip[1];
	av->hop_limit = ip[8];
	gid_of_ipv4(ip + 12, av->sgid);
	gid_of_ipv4(ip + 16, av->dgid);
	return IPV4_SIZE;
}

static int parse_ipv6(const uint8_t *ip, size_t size, struct rdma_av *av)
{
	if (size != IPV6_SIZE + UDP_SIZE || ip[0] >> 4 != 6 || ip[6] != PROTOCOL_UDP)
		return -EINVAL;
	av->ip_version = 6;
	av->tclass = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	av->flow_label = (uint32_t)(ip[1] & 0xf) << 16 | word_at(ip + 2);
	av->hop_limit = ip[7];
	memcpy(av->sgid, ip + 8, 16);
	memcpy(av->dgid, ip + 24, 16);
	return IPV6_SIZE;
}

/* Reads the IP header and checks the UDP header behind it. */
static int parse_ip(uint16_t ethertype, const uint8_t *ip, size_t size, struct rdma_av *av)
{
	int offset = -EINVAL;

	if (ethertype == ETHERTYPE_IPV4)
		offset = parse_ipv4(ip, size, av);
	else if (ethertype == ETHERTYPE_IPV6)
		offset = parse_ipv6(ip, size, av);
	if (offset < 0)
		return offset;
	if (word_at(ip + offset + 2) != ROCE_PORT)
		return -EINVAL;
	av->udp_sport = word_at(ip + offset);
	return 0;
}

int rdma_av_parse(const uint8_t *header, size_t size, struct rdma_av *av)
{
	struct rdma_av parsed = {.template_size = (uint8_t)size};
	size_t offset = 14;

	if (size < 14 + IPV4_SIZE + UDP_SIZE || size > RDMA_TEMPLATE_MAX)
		return -EINVAL;
	memcpy(parsed.header, header, size);
	memcpy(parsed.dst_mac, header, 6);
	memcpy(parsed.src_mac, header + 6, 6);
	if (word_at(header + 12) == ETHERTYPE_VLAN) {
		parsed.vlan = true;
		parsed.vlan_tci = word_at(header + 14);
		offset = 18;
	}
	int error = parse_ip(word_at(header + offset - 2), header + offset, size - offset, &parsed);

	if (error)
		return error;
	*av = parsed;
	return 0;
}

static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (int i = 0; i < IPV4_SIZE; i += 2)
		sum += word_at(header + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

void rdma_av_grh(const struct rdma_av *av, uint32_t udp_payload, uint8_t grh[RDMA_GRH_SIZE])
{
	const uint8_t *ip = av->header + (av->vlan ? 18 : 14);

	if (av->ip_version == 6) {
		memcpy(grh, ip, IPV6_SIZE);
		put_word(grh + 4, UDP_SIZE + udp_payload);
		return;
	}
	/* zeros in front, so that nobody takes them for an IPv6 header */
	memset(grh, 0, RDMA_GRH_SIZE - IPV4_SIZE);
	grh += RDMA_GRH_SIZE - IPV4_SIZE;
	memcpy(grh, ip, IPV4_SIZE);
	put_word(grh + 2, IPV4_SIZE + UDP_SIZE + udp_payload);
	put_word(grh + 10, 0);
	put_word(grh + 10, ipv4_checksum(grh));
}

/* ---- handles ---- */

struct rdma_ah *rdma_ah_find(struct rdma_dev *dev, uint32_t id)
{
	struct rdma_ah *ah = rdma_table_get(&dev->ahs, id);

	return ah && ah->used ? ah : NULL;
}

int rdma_ah_create(struct rdma_dev *dev, uint32_t id, uint32_t pd, const uint8_t *header,
                   size_t size)
{
	struct rdma_av av;
	int error = rdma_av_parse(header, size, &av);

	if (error)
		return error;
	if (id >= dev->ahs.limit)
		return -ERANGE;
	if (rdma_ah_find(dev, id))
		return -EEXIST;
	struct rdma_ah *ah = rdma_table_add(&dev->ahs, id);

	if (!ah)
		return -ENOMEM;
	*ah = (struct rdma_ah){.used = true, .pd = pd, .av = av};
	if (dev->fabric && dev->fabric->ops->learn)
		dev->fabric->ops->learn(dev->fabric, dev, &ah->av);
	return 0;
}

int rdma_ah_destroy(struct rdma_dev *dev, uint32_t id)
{
	struct rdma_ah *ah = rdma_ah_find(dev, id);

	if (!ah)
		return -ENOENT;
	ah->used = false;
	rdma_table_drop(&dev->ahs, id);
	return 0;
}
