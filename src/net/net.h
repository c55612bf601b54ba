/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The emulated wire: a small switch with named ports that carries Ethernet frames.
 *
 * A frame is a list of pieces of somebody's memory, lent for the length of the call, with notes on
 * what is still to be done to it (checksum to fill, segments to cut, VLAN tag to insert). A port
 * says which of these it takes; the switch does the rest before it hands the frame over. Nothing
 * is queued in the switch: a port delivers, or drops and counts.
 */
#ifndef ERNIC_NET_NET_H
#define ERNIC_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/loop.h"

#define NET_ETH_HEADER  14
#define NET_VLAN_HEADER 4
#define NET_MIN_FRAME   60 /* without FCS (IEEE 802.3) */
#define NET_FCS         4

/* Largest packet that crosses the wire in one piece: 64 KiB of IP behind Ethernet and a VLAN tag.
 */
#define NET_MAX_FRAME (65535 + NET_ETH_HEADER + NET_VLAN_HEADER)

/* Pieces of a frame that is sent, at most: 64 KiB of page-sized fragments, with room. What the
 * switch adds (a new head, a tag) comes on top of it, so that a port sees up to NET_PORT_IOV. */
#define NET_MAX_IOV  256
#define NET_PORT_IOV (NET_MAX_IOV + 2)

/* Frames that are sent at once, at most. */
#define NET_MANY_MAX 32

/* The switch changes headers in a copy of this size; a checksum field or a TCP header that ends
 * later is refused. Ethernet, two tags, IPv6 with extensions, TCP with options: 142 without the
 * extensions; tunnels with both headers stay below 300. */
#define NET_HEAD_MAX 512

enum net_gso { NET_GSO_NONE, NET_GSO_TCPV4, NET_GSO_TCPV6 };

struct net_frame {
	const struct iovec *iov;
	unsigned iov_count;
	size_t size; /* of all pieces: from the Ethernet header on, no FCS, no padding */

	/* A checksum to fill: over csum_start to the end, into csum_start + csum_offset, which
	 * holds the pseudo-header's sum. Always set for a frame to be segmented. Offsets in bytes.
	 */
	bool csum_partial;
	/* The sender vouches for the transport checksum, though it may be absent. */
	bool csum_valid;
	/* A tag that is not in the pieces: to insert behind the MAC addresses, type 0x8100. */
	bool vlan;
	uint16_t csum_start, csum_offset;
	uint16_t vlan_tci;

	/* To cut into segments of gso_size payload bytes behind a header of hdr_size bytes. The IP
	 * lengths and the TCP checksum are those of the whole packet, valid for one big segment. */
	enum net_gso gso;
	uint16_t gso_size, hdr_size;
	bool gso_ecn; /* CWR is set in the template, only the first segment keeps it */

	/* The sender can offer the frame again. A port that has no room now may answer -EAGAIN; it
	 * counts nothing then, and calls net_port_ready() when it has. */
	bool may_wait;
};

/* Payload bytes of a segment, at least: what is left of the smallest MSS that Linux takes (48) when
 * TCP options fill 40 of them. */
#define NET_GSO_SIZE_MIN 8

/* What a port can take undone. */
enum net_offload {
	NET_OFFLOAD_CSUM = 1, /* frames with csum_partial */
	NET_OFFLOAD_TSO4 = 2, /* frames with gso NET_GSO_TCPV4 (needs CSUM) */
	NET_OFFLOAD_TSO6 = 4,
	NET_OFFLOAD_VLAN = 8, /* frames with vlan */
	NET_OFFLOAD_ALL = 15,
};

struct net_fault_config;
struct net_pcap;
struct net_wire;
struct net_port;

struct net_port_ops {
	/* Takes the frame, which is only lent. Returns 0, or a negative errno when it was dropped:
	 * -ENOBUFS no room, -ENETDOWN nobody listens, -EMSGSIZE too large, -EIO the host failed.
	 * -EAGAIN: not dropped, see may_wait. */
	int (*deliver)(struct net_port *port, const struct net_frame *frame);
	/* As deliver for each of COUNT frames (at most NET_MANY_MAX) in their order, and sets their
	 * results. Optional, for ports that are cheaper by the dozen. */
	void (*deliver_many)(struct net_port *port, const struct net_frame *frames, unsigned count,
	                     int *results);
	/* A port that answered -EAGAIN has room. Any context; optional. */
	void (*peer_ready)(struct net_port *port);
	/* Somebody else's ability to take offloads changed; see net_wire_peer_offloads(). Optional.
	 */
	void (*peers_changed)(struct net_port *port);
};

/* Ways out of the process that lead to the same network, where a frame that went from one to the
 * other would come back. */
#define NET_GROUP_OUTSIDE 1

/* Embedded by its owner. */
struct net_port {
	const char *name; /* guest, host, mesh, inband, p4 */
	const struct net_port_ops *ops;
	unsigned offloads; /* enum net_offload */
	struct net_wire *wire;
	unsigned index;
	struct net_sharer *sharer; /* or NULL */
	unsigned group;            /* ports of the same one, but 0, exchange no frames */
	bool down;                 /* its owner says: no link, for its sharer neither */
};

/*
 * Somebody who shares a port with its owner: sees every frame before it is delivered to the port,
 * and may take it; sends as the port does. Embedded by its owner. One a port.
 */
struct net_sharer {
	const char *port_name;
	/* Whether the frame is the sharer's; it is only lent. */
	bool (*take)(struct net_sharer *sharer, const struct net_frame *frame);
	struct net_wire *wire;
	struct net_port *port; /* while it is attached */
};

/* Returns 0 or a negative errno. */
int net_wire_create(struct net_wire **wire);
void net_wire_destroy(struct net_wire *wire);

/* Attaches a port with name, ops and offloads set. Returns 0, or -ENOSPC beyond 8 ports. */
int net_wire_attach(struct net_wire *wire, struct net_port *port);
void net_wire_detach(struct net_port *port); /* idempotent */

/* Sets the faults of the wire (net/fault.h). LOOP stays the same in all calls. Returns 0 or
 * -ENOMEM.
 */
int net_wire_set_faults(struct net_wire *wire, struct loop *loop,
                        const struct net_fault_config *config);
const struct net_fault_config *net_wire_faults(const struct net_wire *wire); /* NULL: never set */

/* Writes all frames that port "guest" sends and gets to PCAP (net/pcap.h), which stays the
 * caller's; NULL ends that. With TRACES so are frames of net_wire_trace(). */
void net_wire_capture(struct net_wire *wire, struct net_pcap *pcap, bool traces);

/* Adds a frame that the guest would have sent, or got when INBOUND, had it been one. */
bool net_wire_traces(const struct net_wire *wire); /* whether anybody looks; accepts NULL: nobody */
void net_wire_trace(struct net_wire *wire, const struct net_frame *frame, bool inbound);

/* Shares the port called sharer->port_name of WIRE, which may be attached later or again. Returns
 * 0, or -ENOSPC beyond 2 sharers. */
int net_wire_share(struct net_wire *wire, struct net_sharer *sharer);
void net_wire_unshare(struct net_sharer *sharer); /* idempotent */

/* The port's owner changed what it takes. */
void net_port_set_offloads(struct net_port *port, unsigned offloads);

/* The port has room for a frame that it answered with -EAGAIN. Any context. */
void net_port_ready(struct net_port *port);

/* What all other ports take in common: what PORT may send undone without the switch doing it. */
unsigned net_wire_peer_offloads(const struct net_port *port);

/*
 * Sends a frame from PORT to whoever owns the destination (learned), or to all others. Returns 0
 * when at least one port took it or no other port exists to want it (the frame is then counted as
 * discarded), else the negative errno of the port that refused it. -EBADMSG: the frame's notes do
 * not fit its content. -EAGAIN, only with may_wait: nobody took it, it may be sent again.
 */
int net_wire_send(struct net_port *port, const struct net_frame *frame);

/* As net_wire_send() for each of COUNT frames (at most NET_MANY_MAX) in their order. */
void net_wire_send_many(struct net_port *port, const struct net_frame *frames, unsigned count,
                        int *results);

/* ---- headers, hashes, sums ---- */

/* What a frame is, as far as its headers tell. Offsets in bytes from the Ethernet header, 0 when
 * there is no such header. */
struct net_headers {
	uint16_t ethertype;      /* behind the tags */
	uint8_t vlan_tags;       /* 0..2 tags in the frame (0x8100, 0x88a8) */
	uint16_t vlan_tci;       /* of the outer one */
	uint16_t vlan_tpid;      /* of the outer one */
	uint16_t l3_offset;      /* IPv4 or IPv6 header */
	uint16_t l4_offset;      /* TCP, UDP, SCTP header */
	uint8_t ip_version;      /* 4, 6 or 0 */
	uint8_t protocol;        /* IP protocol behind extension headers */
	bool fragment;           /* any fragment: has no l4_offset */
	uint16_t payload_offset; /* behind the TCP or UDP header, when it is complete */
};

/* Reads the headers of the first SIZE bytes of a frame; total: never fails, tells what it could
 * see. DATA may be shorter than the frame; 128 bytes see everything that is read. */
void net_headers_parse(const uint8_t *data, size_t size, struct net_headers *headers);
#define NET_HEADERS_MAX 128

/* The receive steering hash when receive hashing is off: 32-bit FNV-1a over addresses, protocol
 * and ports (manual, The ionic Device, Ethernet and TCP/IP). */
uint32_t net_flow_hash(const uint8_t *data, size_t size, const struct net_headers *headers);

#define NET_RSS_KEY_SIZE 40
enum net_rss_type { /* spec ionic-ethernet 9.1 */
	            NET_RSS_IPV4 = 1,
	            NET_RSS_IPV4_TCP = 2,
	            NET_RSS_IPV4_UDP = 4,
	            NET_RSS_IPV6 = 8,
	            NET_RSS_IPV6_TCP = 16,
	            NET_RSS_IPV6_UDP = 32,
};

/* A Toeplitz key made ready for hashing by table. */
struct net_rss_key {
	uint32_t table[36][256]; /* by byte position of the longest input (IPv6 and ports), value */
};
void net_rss_key_init(struct net_rss_key *rss, const uint8_t key[NET_RSS_KEY_SIZE]);

/* Toeplitz hash under TYPES (enum net_rss_type) of the frame that DATA begins and HEADERS was read
 * from. Sets *L4 to whether ports took part. Returns false when no enabled type fits the frame. */
bool net_rss_hash(const struct net_rss_key *rss, unsigned types, const uint8_t *data,
                  const struct net_headers *headers, uint32_t *hash, bool *l4);

/*
 * Internet checksum arithmetic (RFC 1071). A sum is a 32-bit ones' complement accumulator of 16-bit
 * words in network order; it can be added to another with net_csum_join(). An odd SIZE is extended
 * by a zero byte.
 */
uint32_t net_csum_add(uint32_t sum, const void *data, size_t size);
/* As net_csum_add(), and copies the bytes to DST on the way. */
uint32_t net_csum_copy(uint32_t sum, void *dst, const void *src, size_t size);
/* Sum of SIZE bytes that start OFFSET bytes into the pieces; any piece may have an odd size. What
 * the pieces lack counts as zero. */
uint32_t net_csum_iov(const struct iovec *iov, unsigned count, size_t offset, size_t size);

/* Adds B, the sum of bytes that begin at an odd distance from those of A when ODD. */
static inline uint32_t net_csum_join(uint32_t a, uint32_t b, bool odd)
{
	uint64_t sum = b;

	if (odd)
		sum = (uint64_t)b << 8;
	sum += a;
	return (uint32_t)(sum & 0xffffffff) + (uint32_t)(sum >> 32);
}

/* The sum as one word: not complemented, host order value. */
static inline uint16_t net_csum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

/* The sum as a transport header carries it: complemented, and never 0, which would say "none". */
static inline uint16_t net_csum_final(uint32_t sum)
{
	uint16_t csum = (uint16_t)~net_csum_fold(sum);

	return csum ? csum : 0xffff;
}

/* ---- segmentation ---- */

/* Cuts a frame with gso into the segments that the wire carries, one header at a time; where the
 * payload goes, and who sums it, is the caller's business. */
struct net_cut {
	/* The header of the current segment: final, but for the TCP checksum field, which holds the
	 * sum of the pseudo-header. */
	uint8_t header[NET_HEAD_MAX];
	uint16_t header_size;
	uint16_t l3_offset, l4_offset;
	/* Where the payload of the current segment is in the frame, and how much of it. */
	size_t payload_offset, payload_size;
	uint32_t index, count; /* current segment, and how many there are */

	/* private */
	size_t frame_size;
	uint32_t seq, pseudo_sum, ip_sum;
	uint16_t ip_id, mss;
	uint8_t tcp_flags;
	bool ipv6;
};

/* Checks the notes of FRAME against its headers. Returns 0, or -EBADMSG when they do not fit. */
int net_cut_begin(struct net_cut *cut, const struct net_frame *frame);

/* Makes the next segment the current one. Returns false when there is none. */
bool net_cut_next(struct net_cut *cut);

/* ---- the host's TAP ---- */

struct net_tap;

/*
 * Opens the existing TAP interface IFNAME with as many queues as it has, up to QUEUES, and attaches
 * it to WIRE as port "host". Returns 0, or
 *   -ENODEV  no such interface, or not a TAP     -EPERM   it belongs to somebody else
 *   -EBUSY   another program has it open         or another negative errno of the kernel.
 */
int net_tap_open(struct loop *loop, struct net_wire *wire, const char *ifname, unsigned queues,
                 struct net_tap **tap);
void net_tap_close(struct net_tap *tap); /* accepts NULL */

#endif
