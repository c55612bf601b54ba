/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shows what a node knows about its mesh; changes nothing of it. */
#include "fabric/mesh_view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/mesh_internal.h"

static_assert(MESH_VIEW_NO_ID == MESH_NODE_NONE, "the same on both sides of the door");
static_assert(MESH_VIEW_TEXT >= INET6_ADDRSTRLEN + sizeof("[]:65535"), "an address fits");

/* Address or port 0: not known yet. */
static void show_address(const struct sockaddr_storage *address, char text[MESH_VIEW_TEXT])
{
	text[0] = '\0';
	if (address->ss_family != AF_UNSPEC && mesh_port(address) != 0)
		mesh_address_text(address, text, MESH_VIEW_TEXT);
}

static uint64_t ms_since(const struct mesh *mesh, uint64_t ns)
{
	uint64_t now = loop_now(mesh->loop);

	return now > ns ? (now - ns) / NS_PER_MS : 0;
}

static int by_id(const void *left, const void *right)
{
	uint32_t a = (*(struct mesh_node *const *)left)->id;
	uint32_t b = (*(struct mesh_node *const *)right)->id;

	return (a > b) - (a < b);
}

/* Fills NODES in the order of their ids; returns how many there are. */
static unsigned sort_nodes(struct mesh *mesh, struct mesh_node *nodes[MESH_NODES_MAX])
{
	struct mesh_node *node;
	unsigned count = 0;

	LIST_FOREACH(node, &mesh->nodes, entry)
	{
		assert(count < MESH_NODES_MAX);
		nodes[count++] = node;
	}
	qsort(nodes, count, sizeof(*nodes), by_id);
	return count;
}

static void show_self(struct mesh *mesh, struct mesh_view *view)
{
	struct mesh_view_self self = {.manager = mesh->options.manager,
	                              .registered = mesh->options.manager || mesh->registered,
	                              .id = mesh->id,
	                              .interval_ms = mesh->options.interval_ms,
	                              .node_count = mesh->node_count,
	                              .connection_count = mesh->conn_count};
	const struct mesh_node *node;

	LIST_FOREACH(node, &mesh->nodes, entry)
	self.gid_count += node->gid_count;
	show_address(&mesh->listen_address, self.address);
	show_address(self.manager ? &mesh->listen_address : &mesh->manager_address,
	             self.manager_address);
	view->self(view, &self);
}

static void show_node(struct mesh *mesh, const struct mesh_node *node, struct mesh_view *view)
{
	bool self = node == mesh->self, live = node->state == MESH_NODE_LIVE;
	struct mesh_view_node shown = {.id = node->id,
	                               .state = live ? MESH_VIEW_LIVE : MESH_VIEW_SILENT,
	                               .self = self,
	                               .tap = node->flags & MESH_NODE_TAP,
	                               .gid_count = node->gid_count,
	                               .heard = !self && (node->conn || !live)};

	if (shown.heard)
		shown.silent_ms =
		        ms_since(mesh, node->conn ? node->conn->heard_ns : node->changed_ns);
	memcpy(shown.mac, node->mac, sizeof(shown.mac));
	show_address(self ? &mesh->listen_address : &node->address, shown.address);
	view->node(view, &shown);
}

static void show_gids(struct mesh *mesh, const struct mesh_node *node, struct mesh_view *view,
                      unsigned *left)
{
	const struct mesh_gid *gid;

	LIST_FOREACH(gid, &node->gids, of_node)
	{
		struct mesh_view_gid shown = {.node = node->id, .state = MESH_VIEW_CLAIM_LIVE};

		if (*left == 0)
			return;
		--*left;
		if (node->state != MESH_NODE_LIVE)
			shown.state = MESH_VIEW_CLAIM_WITHDRAWN;
		else if (mesh_gid_contested(mesh, gid))
			shown.state = MESH_VIEW_CLAIM_CONTESTED;
		mesh_gid_text(gid->gid, shown.gid);
		view->gid(view, &shown);
	}
}

static enum mesh_view_conn_state conn_state(const struct mesh_conn *conn)
{
	static const enum mesh_view_conn_state states[] = {
	        [MESH_CONN_CALLING] = MESH_VIEW_CALLING,
	        [MESH_CONN_SECURING] = MESH_VIEW_SECURING,
	        [MESH_CONN_GREETING] = MESH_VIEW_GREETING,
	        [MESH_CONN_PROVING] = MESH_VIEW_PROVING,
	        [MESH_CONN_UP] = MESH_VIEW_UP,
	};

	assert(conn->state != MESH_CONN_DEAD); /* those are on another list */
	return states[conn->state];
}

static void show_conn(const struct mesh_conn *conn, struct mesh_view *view)
{
	struct mesh_view_conn shown = {.node = conn->node ? conn->node->id : MESH_VIEW_NO_ID,
	                               .called = conn->called,
	                               .tls = conn->tls != NULL,
	                               .state = conn_state(conn),
	                               .sent = conn->sent,
	                               .received = conn->received,
	                               .sent_messages = conn->sent_messages,
	                               .received_messages = conn->received_messages,
	                               .pending = conn->out_end - conn->out_start,
	                               .silent_ms = ms_since(conn->mesh, conn->heard_ns)};

	static_assert(sizeof(shown.peer) >= sizeof(conn->peer_text), "a peer's text fits");
	memcpy(shown.peer, conn->peer_text, sizeof(conn->peer_text));
	view->connection(view, &shown);
}

bool mesh_show(struct rdma_fabric *fabric, struct mesh_view *view)
{
	struct mesh_node *nodes[MESH_NODES_MAX];
	unsigned gids = MESH_VIEW_GIDS_MAX, conns = MESH_VIEW_CONNS_MAX;
	const struct mesh_conn *conn;

	if (fabric->ops != fabric_mesh.ops)
		return false;
	struct mesh *mesh = container_of(fabric, struct mesh, base);
	unsigned count = sort_nodes(mesh, nodes);

	show_self(mesh, view);
	for (unsigned i = 0; i < count; i++) {
		show_node(mesh, nodes[i], view);
		show_gids(mesh, nodes[i], view, &gids);
	}
	LIST_FOREACH(conn, &mesh->conns, entry)
	{
		if (conns-- == 0)
			break;
		show_conn(conn, view);
	}
	return true;
}
