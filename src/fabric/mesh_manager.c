/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The manager of a mesh: gives ids, and tells every node what has changed.
 *
 * Ids count up from 1 and are not given twice. A worker that comes back asks for the id it had: it
 * gets it when the node of that id has the same instance number and came from the same address, or
 * when nobody has it, which is how a restarted manager learns its mesh again. Otherwise it is
 * refused and asks for a new one.
 */
#include "fabric/mesh_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"

COUNTER(fabric_mesh_registered, "registrations that the manager granted");
COUNTER(fabric_mesh_refused, "registrations that the manager refused");
COUNTER(fabric_mesh_node_lost, "nodes that became unreachable");

/* ---- telling ---- */

void mesh_manager_tell_node(struct mesh *mesh, const struct mesh_node *about)
{
	struct mesh_node *node;

	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node != about && node->conn && node->state == MESH_NODE_LIVE)
		mesh_put_node(node->conn, about);
}

void mesh_manager_tell_gid(struct mesh *mesh, enum mesh_type type, const struct mesh_node *claimant,
                           const uint8_t gid[16])
{
	struct mesh_node *node;

	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node != claimant && node->conn && node->state == MESH_NODE_LIVE)
		mesh_put_gid(node->conn, type, claimant, gid);
}

/* Everything, for a newcomer. */
static void tell_all(struct mesh *mesh, const struct mesh_node *newcomer)
{
	struct mesh_node *node;
	struct mesh_gid *gid;

	LIST_FOREACH(node, &mesh->nodes, entry)
	{
		if (node == newcomer)
			continue;
		mesh_put_node(newcomer->conn, node);
		LIST_FOREACH(gid, &node->gids, of_node)
		mesh_put_gid(newcomer->conn, MESH_CLAIM, node, gid->gid);
	}
}

/* ---- registration ---- */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	uint8_t left[16], right[16];

	mesh_wire_address(a, left);
	mesh_wire_address(b, right);
	return memcmp(left, right, sizeof(left)) == 0;
}

/* The node that has been silent for longest makes room. */
static void make_room(struct mesh *mesh)
{
	struct mesh_node *node, *oldest = NULL;

	if (mesh->node_count < MESH_NODES_MAX)
		return;
	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node->state == MESH_NODE_SILENT && (!oldest || node->changed_ns < oldest->changed_ns))
		oldest = node;
	if (!oldest)
		return;
	mesh_node_set_state(mesh, oldest, MESH_NODE_FORGOTTEN);
	mesh_manager_tell_node(mesh, oldest);
	mesh_node_forget(mesh, oldest);
}

/* Where the node can be called: what it says, or else where it comes from. */
static void node_address(const struct mesh_conn *conn, const struct mesh_register *request,
                         struct sockaddr_storage *address)
{
	static const uint8_t zero[16];
	uint8_t wire[16];

	mesh_wire_address(&conn->address, wire);
	if (memcmp(request->address, zero, sizeof(zero)) != 0)
		memcpy(wire, request->address, sizeof(wire));
	mesh_host_address(wire, be16_get(request->port), address);
}

/* Finds or makes the node that asks. NULL with *REASON. */
static struct mesh_node *admit(struct mesh_conn *conn, const struct mesh_register *request,
                               enum mesh_reason *reason)
{
	struct mesh *mesh = conn->mesh;
	uint32_t wanted = be32_get(request->wanted);
	struct mesh_node *node = wanted == MESH_NODE_NONE ? NULL : mesh_node_find(mesh, wanted);
	struct sockaddr_storage address;

	*reason = MESH_REASON_ID;
	node_address(conn, request, &address);
	if (node && (node->instance != be64_get(conn->peer.instance) ||
	             !same_host(&node->address, &address)))
		return NULL;
	if (node)
		return node;
	if (wanted == MESH_NODE_NONE) {
		while (mesh_node_find(mesh, mesh->next_id))
			mesh->next_id++;
		wanted = mesh->next_id++;
	}
	*reason = MESH_REASON_FULL;
	make_room(mesh);
	return mesh_node_get(mesh, wanted);
}

static int refuse(struct mesh_conn *conn, enum mesh_reason reason)
{
	struct mesh_refuse refuse = {be32_make(reason)};

	counter_inc(&fabric_mesh_refused);
	mesh_conn_put(conn, mesh_frame_make(MESH_REFUSE, sizeof(refuse), 0, 0), &refuse);
	return 0; /* the worker goes, or asks again */
}

static void welcome(struct mesh_conn *conn, struct mesh_node *node)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_welcome welcome = {be32_make(node->id), be32_make(mesh->options.interval_ms)};

	counter_inc(&fabric_mesh_registered);
	mesh_conn_put(conn, mesh_frame_make(MESH_WELCOME, sizeof(welcome), 0, 0), &welcome);
	tell_all(mesh, node);
	mesh_manager_tell_node(mesh, node);
	log_guest("mesh: node %u at %s is here", node->id, conn->peer_text);
}

int mesh_manager_register(struct mesh_conn *conn, const struct mesh_register *request)
{
	struct mesh *mesh = conn->mesh;
	enum mesh_reason reason;

	if (!mesh->options.manager)
		return refuse(conn, MESH_REASON_ROLE);
	if (conn->node)
		return mesh_conn_violation(conn, "a second registration");
	if (be32_get(request->wanted) == MESH_NODE_MANAGER)
		return mesh_conn_violation(conn, "a registration as the manager");
	struct mesh_node *node = admit(conn, request, &reason);

	if (!node)
		return refuse(conn, reason);
	struct mesh_conn *old = node->conn;

	node->conn = conn;
	conn->node = node;
	if (old) {
		old->node = NULL; /* so that the node is not lost with it */
		mesh_conn_close(old, "its node has come again");
	}
	node->instance = be64_get(conn->peer.instance);
	node->flags = request->flags;
	memcpy(node->mac, request->mac, sizeof(node->mac));
	node_address(conn, request, &node->address);
	mesh_doubt_claims(mesh, node);
	mesh_node_set_state(mesh, node, MESH_NODE_LIVE);
	mesh_claim_mac(mesh, node);
	welcome(conn, node);
	return 0;
}

/* ---- losses ---- */

void mesh_manager_lost(struct mesh *mesh, struct mesh_node *node)
{
	if (node->state != MESH_NODE_LIVE)
		return;
	counter_inc(&fabric_mesh_node_lost);
	log_guest("mesh: node %u is unreachable; its %u GIDs are withdrawn", node->id,
	          node->gid_count);
	mesh_node_set_state(mesh, node, MESH_NODE_SILENT);
	mesh_manager_tell_node(mesh, node);
}

/* GID was claimed. A node that claimed it before may be dead without our knowing: has it answer
 * within an interval. */
void mesh_manager_suspect(struct mesh *mesh, const uint8_t gid[16])
{
	struct mesh_node *node;
	struct mesh_gid *claim;
	unsigned claims = 0;

	for (int pass = 0; pass < 2; pass++)
		LIST_FOREACH(node, &mesh->nodes, entry)
		{
			if (node->state != MESH_NODE_LIVE || !node->conn)
				continue;
			LIST_FOREACH(claim, &node->gids, of_node)
			{
				if (memcmp(claim->gid, gid, 16) != 0)
					continue;
				claims += pass == 0;
				if (pass == 0 || claims < 2)
					continue;
				node->suspected_ns = loop_now(mesh->loop);
				mesh_conn_put(node->conn, mesh_frame_make(MESH_PING, 0, 0, 0),
				              NULL);
			}
		}
}

/* ---- life ---- */

int mesh_manager_start(struct mesh *mesh, char *error, size_t size)
{
	const struct mesh_options *options = &mesh->options;
	/* without proof of who calls, nobody from outside may */
	bool open = options->secret_size > 0 || mesh->tls;
	const char *host = options->host[0] ? options->host : open ? "0.0.0.0" : "127.0.0.1";
	struct sockaddr_storage address;
	int failed = mesh_lookup(host, options->port, &address, error, size);

	if (failed)
		return failed;
	failed = mesh_listen(mesh, &address);
	if (failed) {
		snprintf(error, size, "cannot listen on %s port %u (%s); give another %s", host,
		         options->port, strerror(-failed),
		         failed == -EADDRINUSE ? "port, or end who uses it" : "ADDR:PORT");
		return -EINVAL;
	}
	if (options->host[0] && !open && strcmp(host, "127.0.0.1") != 0 && strcmp(host, "::1") != 0)
		log_warn("mesh: whoever reaches %s port %u can join: give secret= or tls= too",
		         host, options->port);
	log_info("mesh: manager on %s port %u", host, options->port);
	return 0;
}
