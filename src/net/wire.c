/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The emulated wire.
 *
 * Theory of operation
 *
 * Goal. Frames go from one port to the ports that want them, with as little work on the way as the
 * two ends allow: pieces are lent, not copied, and what the receiver can do itself (checksum,
 * segmentation, VLAN tag) is left undone.
 *
 * Forwarding. Two ports are a cable: what one sends the other gets. With three or more the wire is
 * a learning switch: the source address of every frame is noted in a table of fixed size, a unicast
 * frame to a known station goes to its port alone, everything else to all ports but the sender's.
 * The table is a hash of sets of four; a full set forgets the station that it learned first, and
 * the frames to that one are flooded until it speaks again. There is no ageing: a station that
 * moves is learned again by its next frame, and a port that goes takes its stations with it. A
 * sender is never given its own frame.
 *
 * Undone work. A port that does not take a note of the frame gets the work done: the headers are
 * copied to the stack, changed there, and the rest of the pieces is lent on. The sender's memory is
 * never written. All of this is on the stack, because a port may answer with a frame of its own
 * while it is being delivered to; how deep that may go is bounded.
 *
 *	send -> check notes -> [faults] -> learn, choose ports -> [cut] -> [tag] -> [sum] -> deliver
 *
 * Not done: queues. A port that has no room drops, and says so to the sender.
 */
#include "net/net.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/iov.h"
#include "net/fault.h"
#include "net/net_internal.h"
#include "net/pcap.h"

COUNTER(net_wire_discarded, "frames sent while no other port was on the wire");
COUNTER(net_wire_flooded, "frames given to several ports, as no single one was known for them");
COUNTER(net_wire_forgotten, "stations that the switch forgot to make room for others");
COUNTER(net_wire_separate, "frames to a station on a port that the sender's is kept apart from");
COUNTER(net_wire_hairpin, "frames to a station that is on the sender's own port, dropped");
COUNTER(net_wire_bad_notes, "frames whose offload notes did not fit their content, dropped");
COUNTER(net_wire_too_deep, "frames sent in answer to answers while being delivered, dropped");
COUNTER(net_wire_soft_gso, "large packets that the switch cut for a port");
COUNTER(net_wire_soft_csum, "checksums that the switch filled for a port");
COUNTER(net_wire_soft_vlan, "tags that the switch inserted for a port");

#define WIRE_PORTS     8
#define WIRE_SHARERS   2
#define WIRE_SETS      256 /* of the learning table, a power of two */
#define WIRE_WAYS      4
#define WIRE_DEPTH_MAX 4
#define MAC_SIZE       6
#define NOBODY         (-1)

struct station {
	uint8_t mac[MAC_SIZE];
	int8_t port; /* NOBODY: a free place */
};

struct net_wire {
	struct net_port *ports[WIRE_PORTS];
	unsigned port_count;
	struct net_sharer *sharers[WIRE_SHARERS];
	struct net_fault *fault; /* NULL: never set */
	struct net_pcap *pcap;   /* or NULL */
	bool traces;             /* the capture shows what did not cross the wire, too */
	int guest;               /* port index, or NOBODY */
	unsigned depth;          /* of deliveries that are under way */
	struct station stations[WIRE_SETS][WIRE_WAYS]; /* the one learned last comes first */
};

int net_wire_create(struct net_wire **out)
{
	struct net_wire *wire = calloc(1, sizeof(*wire));

	if (!wire)
		return -ENOMEM;
	wire->guest = NOBODY;
	for (unsigned set = 0; set < WIRE_SETS; set++)
		for (unsigned way = 0; way < WIRE_WAYS; way++)
			wire->stations[set][way].port = NOBODY;
	*out = wire;
	return 0;
}

void net_wire_destroy(struct net_wire *wire)
{
	if (!wire)
		return;
	assert(wire->port_count == 0 && !wire->sharers[0] && !wire->sharers[1]);
	net_fault_destroy(wire->fault);
	free(wire);
}

/* ---- ports ---- */

static void tell_peers(struct net_wire *wire, const struct net_port *changed)
{
	for (unsigned i = 0; i < WIRE_PORTS; i++) {
		struct net_port *port = wire->ports[i];

		if (port && port != changed && port->ops->peers_changed)
			port->ops->peers_changed(port);
	}
}

/* Segmentation leaves the checksum to whoever cuts. */
static bool offloads_sensible(unsigned offloads)
{
	return !(offloads & (NET_OFFLOAD_TSO4 | NET_OFFLOAD_TSO6)) || offloads & NET_OFFLOAD_CSUM;
}

/* Every sharer with the port of its name, as far as both are there. */
static void join_sharers(struct net_wire *wire)
{
	for (unsigned i = 0; i < WIRE_SHARERS; i++) {
		struct net_sharer *sharer = wire->sharers[i];

		for (unsigned n = 0; sharer && !sharer->port && n < WIRE_PORTS; n++)
			if (wire->ports[n] && !wire->ports[n]->sharer &&
			    strcmp(wire->ports[n]->name, sharer->port_name) == 0) {
				sharer->port = wire->ports[n];
				sharer->port->sharer = sharer;
			}
	}
}

static void part_sharer(struct net_sharer *sharer)
{
	if (!sharer || !sharer->port)
		return;
	sharer->port->sharer = NULL;
	sharer->port = NULL;
}

int net_wire_share(struct net_wire *wire, struct net_sharer *sharer)
{
	assert(sharer->port_name && sharer->take && !sharer->wire);
	for (unsigned i = 0; i < WIRE_SHARERS; i++) {
		if (wire->sharers[i])
			continue;
		wire->sharers[i] = sharer;
		sharer->wire = wire;
		join_sharers(wire);
		return 0;
	}
	return -ENOSPC;
}

void net_wire_unshare(struct net_sharer *sharer)
{
	struct net_wire *wire = sharer->wire;

	part_sharer(sharer);
	for (unsigned i = 0; wire && i < WIRE_SHARERS; i++)
		if (wire->sharers[i] == sharer)
			wire->sharers[i] = NULL;
	sharer->wire = NULL;
}

int net_wire_attach(struct net_wire *wire, struct net_port *port)
{
	assert(port->name && port->ops && port->ops->deliver && !port->wire);
	assert(offloads_sensible(port->offloads));
	for (unsigned i = 0; i < WIRE_PORTS; i++) {
		if (wire->ports[i])
			continue;
		wire->ports[i] = port;
		wire->port_count++;
		port->wire = wire;
		port->index = i;
		if (strcmp(port->name, "guest") == 0)
			wire->guest = (int)i;
		join_sharers(wire);
		tell_peers(wire, port);
		return 0;
	}
	return -ENOSPC;
}

static void forget_port(struct net_wire *wire, unsigned index)
{
	for (unsigned set = 0; set < WIRE_SETS; set++)
		for (unsigned way = 0; way < WIRE_WAYS; way++)
			if (wire->stations[set][way].port == (int8_t)index)
				wire->stations[set][way].port = NOBODY;
}

void net_wire_detach(struct net_port *port)
{
	struct net_wire *wire = port->wire;

	if (!wire)
		return;
	assert(wire->ports[port->index] == port);
	wire->ports[port->index] = NULL;
	wire->port_count--;
	port->wire = NULL;
	if (wire->guest == (int)port->index)
		wire->guest = NOBODY;
	if (wire->fault)
		net_fault_forget(wire->fault, port);
	part_sharer(port->sharer);
	forget_port(wire, port->index);
	tell_peers(wire, port);
}

void net_port_set_offloads(struct net_port *port, unsigned offloads)
{
	assert(offloads_sensible(offloads));
	if (port->offloads == offloads)
		return;
	port->offloads = offloads;
	if (port->wire)
		tell_peers(port->wire, port);
}

void net_port_ready(struct net_port *port)
{
	for (unsigned i = 0; port->wire && i < WIRE_PORTS; i++) {
		struct net_port *other = port->wire->ports[i];

		if (other && other != port && other->ops->peer_ready)
			other->ops->peer_ready(other);
	}
}

unsigned net_wire_peer_offloads(const struct net_port *port)
{
	unsigned offloads = NET_OFFLOAD_ALL;

	if (!port->wire)
		return offloads;
	for (unsigned i = 0; i < WIRE_PORTS; i++)
		if (port->wire->ports[i] && port->wire->ports[i] != port)
			offloads &= port->wire->ports[i]->offloads;
	return offloads;
}

/* ---- stations ---- */

static struct station *station_set(struct net_wire *wire, const uint8_t *mac)
{
	uint32_t hash = 2166136261u; /* FNV-1a again: cheap, and nobody gains by collisions */

	for (unsigned i = 0; i < MAC_SIZE; i++)
		hash = (hash ^ mac[i]) * 16777619u;
	return wire->stations[(hash ^ hash >> 16) & (WIRE_SETS - 1)];
}

/* Moves way WAY of the set to the front, as a station that was just heard of. */
static void put_first(struct station *set, unsigned way, const struct station *station)
{
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = *station;
}

static void learn(struct net_wire *wire, const uint8_t *mac, unsigned index)
{
	struct station *set = station_set(wire, mac);
	struct station station = {.port = (int8_t)index};
	unsigned way = 0;

	if (mac[0] & 1)
		return; /* a group is no sender */
	memcpy(station.mac, mac, MAC_SIZE);
	while (way < WIRE_WAYS - 1 && set[way].port != NOBODY &&
	       memcmp(set[way].mac, mac, MAC_SIZE) != 0)
		way++;
	if (set[way].port != NOBODY && memcmp(set[way].mac, mac, MAC_SIZE) != 0)
		counter_inc(&net_wire_forgotten);
	put_first(set, way, &station);
}

static int find_station(struct net_wire *wire, const uint8_t *mac)
{
	const struct station *set = station_set(wire, mac);

	if (mac[0] & 1)
		return NOBODY;
	for (unsigned way = 0; way < WIRE_WAYS; way++)
		if (set[way].port != NOBODY && memcmp(set[way].mac, mac, MAC_SIZE) == 0)
			return set[way].port;
	return NOBODY;
}

/* ---- undone work ---- */

/* The notes of a frame, as the offloads that a port needs to take it. */
static unsigned frame_needs(const struct net_frame *frame)
{
	static const unsigned of_gso[] = {
	        [NET_GSO_NONE] = 0,
	        [NET_GSO_TCPV4] = NET_OFFLOAD_TSO4,
	        [NET_GSO_TCPV6] = NET_OFFLOAD_TSO6,
	};

	return of_gso[frame->gso] | (frame->csum_partial ? NET_OFFLOAD_CSUM : 0u) |
	       (frame->vlan ? NET_OFFLOAD_VLAN : 0u);
}

static void put16(uint8_t *data, uint16_t value)
{
	data[0] = (uint8_t)(value >> 8);
	data[1] = (uint8_t)value;
}

/* Puts the tag into HEAD, which has room for it, and moves the notes along. */
static void insert_tag(struct net_frame *frame, uint8_t *head, size_t head_size)
{
	memmove(head + 16, head + 12, head_size - 12);
	put16(head + 12, NET_ETHERTYPE_VLAN);
	put16(head + 14, frame->vlan_tci);
	frame->vlan = false;
	frame->size += NET_VLAN_HEADER;
	if (frame->csum_partial)
		frame->csum_start = (uint16_t)(frame->csum_start + NET_VLAN_HEADER);
	if (frame->gso != NET_GSO_NONE)
		frame->hdr_size = (uint16_t)(frame->hdr_size + NET_VLAN_HEADER);
	counter_inc(&net_wire_soft_vlan);
}

/* Fills the checksum field, which is in HEAD, the first piece of the frame. */
static void fill_csum(struct net_frame *frame, uint8_t *head)
{
	size_t start = frame->csum_start;
	uint32_t sum = net_csum_iov(frame->iov, frame->iov_count, start, frame->size - start);

	put16(head + start + frame->csum_offset, net_csum_final(sum));
	frame->csum_partial = false;
	frame->csum_valid = true;
	counter_inc(&net_wire_soft_csum);
}

/* Does the tag and the checksum for a frame that is not to be cut (or whose receiver cuts it). */
static int deliver_changed(struct net_port *port, const struct net_frame *frame, unsigned undone)
{
	uint8_t head[NET_HEAD_MAX];
	struct iovec iov[NET_PORT_IOV];
	struct net_frame changed = *frame;
	size_t head_size = 2 * MAC_SIZE + 2;

	if (undone & NET_OFFLOAD_CSUM)
		head_size = (size_t)frame->csum_start + frame->csum_offset + 2;
	if (head_size > sizeof(head) - NET_VLAN_HEADER) {
		counter_inc(&net_wire_bad_notes);
		return -EBADMSG;
	}
	iov_to_buf(frame->iov, frame->iov_count, 0, head, head_size);
	int rest = iov_slice(frame->iov, frame->iov_count, head_size, frame->size - head_size,
	                     iov + 1, NET_PORT_IOV - 1);

	assert(rest >= 0); /* the size was checked, and one piece more has room */
	if (undone & NET_OFFLOAD_VLAN) {
		insert_tag(&changed, head, head_size);
		head_size += NET_VLAN_HEADER;
	}
	iov[0] = (struct iovec){.iov_base = head, .iov_len = head_size};
	changed.iov = iov;
	changed.iov_count = (unsigned)rest + 1;
	if (undone & NET_OFFLOAD_CSUM)
		fill_csum(&changed, head);
	return port->ops->deliver(port, &changed);
}

/* One segment of a cut, as a frame of its own. */
static int deliver_segment(struct net_port *port, const struct net_frame *whole,
                           struct net_cut *cut)
{
	struct iovec iov[NET_PORT_IOV];
	struct net_frame frame = {
	        .iov = iov,
	        .size = cut->header_size + cut->payload_size,
	        .csum_partial = true,
	        .csum_start = whole->csum_start,
	        .csum_offset = whole->csum_offset,
	        .vlan = whole->vlan,
	        .vlan_tci = whole->vlan_tci,
	};
	int rest = iov_slice(whole->iov, whole->iov_count, cut->payload_offset, cut->payload_size,
	                     iov + 1, NET_MAX_IOV);

	assert(rest >= 0);
	iov[0] = (struct iovec){.iov_base = cut->header, .iov_len = cut->header_size};
	frame.iov_count = (unsigned)rest + 1;
	unsigned undone = frame_needs(&frame) & ~port->offloads;

	if (undone & NET_OFFLOAD_CSUM) {
		/* The header is ours already: no second copy for the sum. */
		fill_csum(&frame, cut->header);
		undone &= ~(unsigned)NET_OFFLOAD_CSUM;
	}
	return undone ? deliver_changed(port, &frame, undone) : port->ops->deliver(port, &frame);
}

/* Returns 0 when any segment was taken: TCP repairs the rest. */
static int deliver_segments(struct net_port *port, const struct net_frame *frame)
{
	struct net_cut cut;
	int result = net_cut_begin(&cut, frame);

	if (result) {
		counter_inc(&net_wire_bad_notes);
		return result;
	}
	counter_inc(&net_wire_soft_gso);
	bool taken = false;

	while (net_cut_next(&cut)) {
		int error = deliver_segment(port, frame, &cut);

		if (error)
			result = error;
		else
			taken = true;
	}
	return taken ? 0 : result;
}

static int deliver_to(struct net_port *port, const struct net_frame *frame)
{
	unsigned undone = frame_needs(frame) & ~port->offloads;

	if (port->sharer && !port->down && port->sharer->take(port->sharer, frame))
		return 0;
	if (!undone)
		return port->ops->deliver(port, frame);
	if (undone & (NET_OFFLOAD_TSO4 | NET_OFFLOAD_TSO6))
		return deliver_segments(port, frame);
	return deliver_changed(port, frame, undone);
}

/* ---- sending ---- */

/* Whether the notes stay within the frame. What they mean there is the receiver's to check. */
static bool notes_within(const struct net_frame *frame)
{
	if (frame->size < NET_ETH_HEADER || frame->size > NET_MAX_FRAME ||
	    frame->iov_count > NET_MAX_IOV)
		return false;
	if (frame->gso != NET_GSO_NONE && !frame->csum_partial)
		return false;
	if (!frame->csum_partial)
		return true;
	return frame->csum_start >= NET_ETH_HEADER && frame->csum_start < frame->size &&
	       frame->size - frame->csum_start >= (size_t)frame->csum_offset + 2;
}

static bool separate(const struct net_port *a, const struct net_port *b)
{
	return a->group != 0 && a->group == b->group;
}

static int flood(struct net_wire *wire, unsigned from, const struct net_frame *original)
{
	const struct net_frame *frame = original;
	struct net_frame copy;
	int result = 0;
	bool taken = false;

	if (wire->port_count > 2) {
		counter_inc(&net_wire_flooded);
		/* Sent again, it would reach those twice that had room. */
		copy = *original;
		copy.may_wait = false;
		frame = &copy;
	}
	for (unsigned i = 0; i < WIRE_PORTS; i++) {
		if (i == from || !wire->ports[i] || separate(wire->ports[i], wire->ports[from]))
			continue;
		int error = deliver_to(wire->ports[i], frame);

		if (error)
			result = error;
		else
			taken = true;
	}
	return taken ? 0 : result;
}

static int forward(struct net_wire *wire, unsigned from, const struct net_frame *frame)
{
	uint8_t macs[2 * MAC_SIZE];

	if (wire->port_count == 2)
		return flood(wire, from, frame);
	iov_to_buf(frame->iov, frame->iov_count, 0, macs, sizeof(macs));
	learn(wire, macs + MAC_SIZE, from);
	int to = find_station(wire, macs);

	if (to == NOBODY)
		return flood(wire, from, frame);
	if (to == (int)from) {
		counter_inc(&net_wire_hairpin);
		return 0;
	}
	if (separate(wire->ports[to], wire->ports[from])) {
		counter_inc(&net_wire_separate);
		return 0;
	}
	return deliver_to(wire->ports[to], frame);
}

/* Counts and returns false when the frame is not one. */
static bool frame_valid(const struct net_frame *frame)
{
	assert(frame->size <= iov_size(frame->iov, frame->iov_count));
	if (notes_within(frame))
		return true;
	counter_inc(&net_wire_bad_notes);
	return false;
}

/* The frame has come through whatever the wire does to frames. */
static int pass(struct net_port *port, const struct net_frame *frame)
{
	struct net_wire *wire = port->wire;

	if (wire->depth == WIRE_DEPTH_MAX) {
		counter_inc(&net_wire_too_deep);
		return -ENOBUFS;
	}
	if (wire->pcap && wire->guest != (int)port->index)
		net_pcap_frame(wire->pcap, frame, true);
	wire->depth++;
	int result = forward(wire, port->index, frame);

	wire->depth--;
	return result;
}

int net_wire_send(struct net_port *port, const struct net_frame *frame)
{
	struct net_wire *wire = port->wire;

	if (!frame_valid(frame))
		return -EBADMSG;
	if (wire && wire->pcap && wire->guest == (int)port->index)
		net_pcap_frame(wire->pcap, frame, false);
	if (!wire || wire->port_count < 2) {
		counter_inc(&net_wire_discarded);
		return 0;
	}
	if (wire->fault && net_fault_active(wire->fault))
		return net_fault_send(wire->fault, port, frame);
	return pass(port, frame);
}

int net_wire_set_faults(struct net_wire *wire, struct loop *loop,
                        const struct net_fault_config *config)
{
	int error = wire->fault ? 0 : net_fault_create(loop, pass, &wire->fault);

	if (!error)
		net_fault_set(wire->fault, config);
	return error;
}

const struct net_fault_config *net_wire_faults(const struct net_wire *wire)
{
	return wire->fault ? net_fault_get(wire->fault) : NULL;
}

void net_wire_capture(struct net_wire *wire, struct net_pcap *pcap, bool traces)
{
	wire->pcap = pcap;
	wire->traces = pcap && traces;
}

bool net_wire_traces(const struct net_wire *wire)
{
	return wire && wire->traces && net_pcap_live(wire->pcap);
}

void net_wire_trace(struct net_wire *wire, const struct net_frame *frame, bool inbound)
{
	if (wire->traces)
		net_pcap_frame(wire->pcap, frame, inbound);
}

/* The other end of a cable that takes frames by the dozen, or NULL. */
static struct net_port *many_taker(const struct net_port *port)
{
	struct net_wire *wire = port->wire;

	if (!wire || wire->port_count != 2 || wire->depth == WIRE_DEPTH_MAX ||
	    (wire->pcap && net_pcap_live(wire->pcap)) ||
	    (wire->fault && net_fault_active(wire->fault)))
		return NULL;
	for (unsigned i = 0; i < WIRE_PORTS; i++) {
		struct net_port *other = wire->ports[i];

		if (other && other != port && !separate(other, port))
			return other->ops->deliver_many && !other->sharer ? other : NULL;
	}
	return NULL;
}

void net_wire_send_many(struct net_port *port, const struct net_frame *frames, unsigned count,
                        int *results)
{
	struct net_port *taker = many_taker(port);

	assert(count <= NET_MANY_MAX);
	for (unsigned i = 0; i < count;) {
		unsigned run = i; /* of frames that cross as they are */

		while (taker && run < count && !(frame_needs(&frames[run]) & ~taker->offloads) &&
		       frame_valid(&frames[run]))
			run++;
		if (run - i > 1) {
			port->wire->depth++;
			taker->ops->deliver_many(taker, frames + i, run - i, results + i);
			port->wire->depth--;
			i = run;
		} else {
			results[i] = net_wire_send(port, &frames[i]);
			i++;
		}
	}
}
