/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet over the mesh: all nodes are ports of one learning switch.
 *
 * The wire of this process has a port `mesh`. A frame for a station that was heard of from a node
 * goes to that node alone, on the connection that messages use; all others, and those for groups,
 * go to the manager, who gives them to every node: a broadcast costs its sender one frame, and
 * nobody needs a connection to everybody. Until there is a direct connection to a node the manager
 * relays for it too. What comes from the mesh is never sent into it again, so there are no loops.
 *
 * Offload notes travel with the frame, so that a segment of 64 KiB crosses in one piece, and its
 * checksum is filled where it leaves the mesh, if anywhere.
 *
 * One TAP is the way out for all nodes: see mesh_eth_elect().
 */
#include "fabric/mesh_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/iov.h"
#include "base/log.h"

COUNTER(fabric_mesh_eth_no_room, "frames dropped because a connection was full");
COUNTER(fabric_mesh_eth_nobody, "frames dropped because no other node is in reach");
COUNTER(fabric_mesh_eth_refused, "frames from the mesh whose notes make no sense, dropped");
COUNTER(fabric_mesh_eth_relayed, "frames that the manager relayed");
COUNTER(fabric_mesh_eth_undelivered, "frames from the mesh that nobody here had room for");

enum { SETS = 256, WAYS = 4, MAC_SIZE = 6 };

struct station {
	struct mesh_node *node; /* NULL: a free place */
	uint8_t mac[MAC_SIZE];
};

struct mesh_eth {
	struct net_port port;
	struct mesh *mesh;
	bool waiting;                        /* somebody was told -EAGAIN */
	struct station stations[SETS][WAYS]; /* the one learned last comes first */
};

/* ---- stations ---- */

static struct station *station_set(struct mesh_eth *eth, const uint8_t *mac)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (unsigned i = 0; i < MAC_SIZE; i++)
		hash = (hash ^ mac[i]) * 16777619u;
	return eth->stations[(hash ^ hash >> 16) % SETS];
}

static void learn(struct mesh_eth *eth, const uint8_t *mac, struct mesh_node *node)
{
	struct station *set = station_set(eth, mac);
	unsigned way = 0;

	if (mac[0] & 1)
		return;
	while (way < WAYS - 1 && set[way].node && memcmp(set[way].mac, mac, MAC_SIZE) != 0)
		way++;
	memmove(set + 1, set, way * sizeof(*set));
	set[0].node = node;
	memcpy(set[0].mac, mac, MAC_SIZE);
}

struct mesh_node *mesh_eth_station(struct mesh *mesh, const uint8_t mac[6])
{
	const struct station *set;

	if (!mesh->eth || (mac[0] & 1))
		return NULL;
	set = station_set(mesh->eth, mac);
	for (unsigned way = 0; way < WAYS; way++)
		if (set[way].node && memcmp(set[way].mac, mac, MAC_SIZE) == 0)
			return set[way].node;
	return NULL;
}

void mesh_eth_forget(struct mesh *mesh, const struct mesh_node *node)
{
	if (!mesh->eth)
		return;
	for (unsigned set = 0; set < SETS; set++)
		for (unsigned way = 0; way < WAYS; way++)
			if (mesh->eth->stations[set][way].node == node)
				mesh->eth->stations[set][way].node = NULL;
}

/* ---- out ---- */

enum { HEAD_SIZE = sizeof(struct mesh_frame) + sizeof(struct mesh_ethernet) };

static struct mesh_ethernet notes_of(const struct net_frame *frame)
{
	return (struct mesh_ethernet){
	        .flags = (uint8_t)((frame->csum_partial ? MESH_ETH_CSUM_PARTIAL : 0) |
	                           (frame->csum_valid ? MESH_ETH_CSUM_VALID : 0) |
	                           (frame->vlan ? MESH_ETH_VLAN : 0) |
	                           (frame->gso_ecn ? MESH_ETH_ECN : 0)),
	        .gso = (uint8_t)frame->gso,
	        .csum_start = be16_make(frame->csum_start),
	        .csum_offset = be16_make(frame->csum_offset),
	        .vlan_tci = be16_make(frame->vlan_tci),
	        .gso_size = be16_make(frame->gso_size),
	        .hdr_size = be16_make(frame->hdr_size),
	};
}

/* Sends SIZE bytes of IOV with their notes. */
static void send_frame(struct mesh_conn *conn, const struct mesh_ethernet *notes,
                       const struct iovec *iov, unsigned count, size_t size)
{
	struct mesh_frame frame = mesh_frame_make(MESH_ETHERNET, sizeof(*notes) + size, 0, 0);
	struct iovec exact[NET_PORT_IOV];
	uint8_t head[HEAD_SIZE];

	memcpy(head, &frame, sizeof(frame));
	memcpy(head + sizeof(frame), notes, sizeof(*notes));
	if (size > MESH_COPY_MAX) {
		int pieces = iov_slice(iov, count, 0, size, exact, NET_PORT_IOV);

		if (pieces > 0)
			mesh_conn_send(conn, head, sizeof(head), exact, (unsigned)pieces);
		return;
	}
	uint8_t *out = mesh_conn_reserve(conn, sizeof(head) + size);

	if (!out)
		return;
	memcpy(out, head, sizeof(head));
	iov_to_buf(iov, count, 0, out + sizeof(head), size);
	mesh_conn_commit(conn, sizeof(head) + size);
}

/* The connection for a frame to NODE: its own, or the manager's. */
static struct mesh_conn *way_to(struct mesh *mesh, struct mesh_node *node)
{
	struct mesh_conn *conn = mesh_node_conn(mesh, node);

	if (conn && conn->state == MESH_CONN_UP)
		return conn;
	return mesh->registered ? mesh->manager_conn : NULL;
}

/* To all that we have a connection to, but EXCEPT. Returns whether anybody got it. */
static bool send_to_all(struct mesh *mesh, const struct mesh_node *except,
                        const struct mesh_ethernet *notes, const struct iovec *iov, unsigned count,
                        size_t size)
{
	struct mesh_node *node;
	bool any = false;

	LIST_FOREACH(node, &mesh->nodes, entry)
	{
		if (node == except || !node->conn || node->conn->state != MESH_CONN_UP)
			continue;
		any = true;
		if (mesh_conn_has_room(node->conn))
			send_frame(node->conn, notes, iov, count, size);
		else
			counter_inc(&fabric_mesh_eth_no_room);
	}
	return any;
}

static int send_on(struct mesh_eth *eth, struct mesh_conn *conn, const struct mesh_ethernet *notes,
                   const struct net_frame *frame)
{
	if (!conn) {
		counter_inc(&fabric_mesh_eth_nobody);
		return -ENETDOWN;
	}
	if (!mesh_conn_has_room(conn)) {
		if (frame->may_wait) {
			eth->waiting = true;
			return -EAGAIN;
		}
		counter_inc(&fabric_mesh_eth_no_room);
		return -ENOBUFS;
	}
	send_frame(conn, notes, frame->iov, frame->iov_count, frame->size);
	return 0;
}

static int deliver(struct net_port *port, const struct net_frame *frame)
{
	struct mesh_eth *eth = container_of(port, struct mesh_eth, port);
	struct mesh *mesh = eth->mesh;
	struct mesh_ethernet notes = notes_of(frame);
	uint8_t mac[MAC_SIZE];

	iov_to_buf(frame->iov, frame->iov_count, 0, mac, sizeof(mac));
	struct mesh_node *node = mesh_eth_station(mesh, mac);

	notes.src = be32_make(mesh->id);
	notes.dst = be32_make(node ? node->id : MESH_NODE_NONE);
	if (node)
		return send_on(eth, way_to(mesh, node), &notes, frame);
	if (mesh->registered)
		return send_on(eth, mesh->manager_conn, &notes, frame);
	if (send_to_all(mesh, NULL, &notes, frame->iov, frame->iov_count, frame->size))
		return 0;
	counter_inc(&fabric_mesh_eth_nobody);
	return -ENETDOWN;
}

/* The TAPs of two nodes may lead to the same network, which would then be a loop: only that of the
 * live node with the lowest id is the mesh's way out. The others serve their own guests. */
void mesh_eth_elect(struct mesh *mesh)
{
	const struct mesh_node *node, *elected = mesh->self;

	if (!mesh->eth || !(mesh->self->flags & MESH_NODE_TAP))
		return;
	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node->state == MESH_NODE_LIVE && (node->flags & MESH_NODE_TAP) &&
	    node->id < elected->id)
		elected = node;
	unsigned group = elected == mesh->self ? 0 : NET_GROUP_OUTSIDE;

	if (group != mesh->eth->port.group)
		log_guest("mesh: the TAP of node %u is the way out of the mesh%s", elected->id,
		          group ? "; this server's is not joined to it" : "");
	mesh->eth->port.group = group;
}

void mesh_eth_room(struct mesh *mesh)
{
	if (!mesh->eth || !mesh->eth->waiting)
		return;
	mesh->eth->waiting = false;
	net_port_ready(&mesh->eth->port);
}

/* ---- in ---- */

static bool notes_valid(const struct mesh_ethernet *notes, size_t size)
{
	bool gso = notes->gso != NET_GSO_NONE;

	if (size < NET_ETH_HEADER || notes->gso > NET_GSO_TCPV6 ||
	    notes->flags &
	            ~(MESH_ETH_CSUM_PARTIAL | MESH_ETH_CSUM_VALID | MESH_ETH_VLAN | MESH_ETH_ECN))
		return false;
	return !gso || ((notes->flags & MESH_ETH_CSUM_PARTIAL) &&
	                be16_get(notes->gso_size) >= NET_GSO_SIZE_MIN);
}

static void deliver_here(struct mesh_eth *eth, struct mesh_node *from,
                         const struct mesh_ethernet *notes, uint8_t *data, size_t size)
{
	struct iovec iov = {data, size};
	struct net_frame frame = {
	        .iov = &iov,
	        .iov_count = 1,
	        .size = size,
	        .csum_partial = notes->flags & MESH_ETH_CSUM_PARTIAL,
	        .csum_valid = notes->flags & MESH_ETH_CSUM_VALID,
	        .vlan = notes->flags & MESH_ETH_VLAN,
	        .gso_ecn = notes->flags & MESH_ETH_ECN,
	        .csum_start = be16_get(notes->csum_start),
	        .csum_offset = be16_get(notes->csum_offset),
	        .vlan_tci = be16_get(notes->vlan_tci),
	        .gso = (enum net_gso)notes->gso,
	        .gso_size = be16_get(notes->gso_size),
	        .hdr_size = be16_get(notes->hdr_size),
	};

	if (from)
		learn(eth, data + MAC_SIZE, from);
	if (net_wire_send(&eth->port, &frame))
		counter_inc(&fabric_mesh_eth_undelivered);
}

/* The manager passes on what is not, or not only, for itself. */
static void relay(struct mesh *mesh, struct mesh_node *from, const struct mesh_ethernet *notes,
                  uint8_t *data, size_t size)
{
	uint32_t dst = be32_get(notes->dst);
	struct iovec iov = {data, size};
	struct mesh_node *node = dst == MESH_NODE_NONE ? NULL : mesh_node_find(mesh, dst);

	counter_inc(&fabric_mesh_eth_relayed);
	if (dst == MESH_NODE_NONE)
		send_to_all(mesh, from, notes, &iov, 1, size);
	else if (node && node->conn && mesh_conn_has_room(node->conn))
		send_frame(node->conn, notes, &iov, 1, size);
	else
		counter_inc(&fabric_mesh_eth_no_room);
}

int mesh_handle_ethernet(struct mesh_conn *conn, const struct mesh_ethernet *notes, uint8_t *data,
                         size_t size)
{
	struct mesh *mesh = conn->mesh;
	uint32_t dst = be32_get(notes->dst);
	struct mesh_node *from = mesh_node_find(mesh, be32_get(notes->src));
	bool relayed = conn == mesh->manager_conn && mesh->registered;

	if (!relayed && from != conn->node)
		return mesh_conn_violation(conn, "a frame in another node's name");
	if (from == mesh->self)
		return mesh_conn_violation(conn, "a frame in our name");
	if (!notes_valid(notes, size)) {
		counter_inc(&fabric_mesh_eth_refused);
		return 0;
	}
	if (mesh->options.manager && !from)
		return 0; /* not registered */
	if (mesh->options.manager && dst != mesh->id)
		relay(mesh, from, notes, data, size);
	if (mesh->eth && (dst == mesh->id || dst == MESH_NODE_NONE))
		deliver_here(mesh->eth, from, notes, data, size);
	return 0;
}

/* ---- life ---- */

static void peer_ready(struct net_port *port)
{
	(void)port; /* what found no room here is not offered again */
}

static const struct net_port_ops ops = {.deliver = deliver, .peer_ready = peer_ready};

int mesh_eth_create(struct mesh *mesh, struct net_wire *wire)
{
	struct mesh_eth *eth = calloc(1, sizeof(*eth));

	if (!eth)
		return -ENOMEM;
	eth->mesh = mesh;
	eth->port.name = "mesh";
	eth->port.ops = &ops;
	eth->port.offloads = NET_OFFLOAD_ALL;
	int error = net_wire_attach(wire, &eth->port);

	if (error) {
		free(eth);
		return error;
	}
	mesh->eth = eth;
	return 0;
}

void mesh_eth_destroy(struct mesh *mesh)
{
	if (!mesh->eth)
		return;
	net_wire_detach(&mesh->eth->port);
	free(mesh->eth);
	mesh->eth = NULL;
}
