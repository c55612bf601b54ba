/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who is in the mesh: nodes, the GIDs that they claim, connections between them, and their health.
 *
 * Every node keeps the same two tables, as the manager tells. A node is LIVE, or SILENT when the
 * manager cannot reach it; claims of a silent node are kept and do not count, so they count again
 * when it comes back. A GID leads to the one live node that claims it, and nowhere when two do. A
 * node withdraws a GID that no queue pair and address handle of its guest has any more. A
 * withdrawal can get lost with a connection; so whoever registers claims anew, is told all claims
 * anew, and what is not among them goes.
 *
 * Health. Who has heard nothing on a connection for an interval sends a PING; after three intervals
 * the connection is closed. All else follows from that.
 *
 * A connection between workers that no queue pair has a flow on, and that has carried nothing for a
 * while, is closed by the side that called it: there may be two when both called at once, and the
 * next message calls again.
 */
#include "fabric/mesh_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/log.h"

COUNTER(fabric_mesh_gid_conflict, "GIDs that a second live node claimed");
COUNTER(fabric_mesh_gid_too_many, "claims of nodes that claim too many GIDs, ignored");
COUNTER(fabric_mesh_gid_withdrawn, "GIDs that the guest had given up, and so did we");
COUNTER(fabric_mesh_gid_stale, "claims dropped as they were not made again after a registration");
COUNTER(fabric_mesh_node_too_many, "nodes beyond the limit, ignored");
COUNTER(fabric_mesh_silent, "connections closed because their peer was silent for too long");

COUNTER(fabric_mesh_idle, "connections between workers closed because nobody used them");

enum { CALL_PAUSE_MS = 200 };

/* ---- addresses as text and on the wire ---- */

void mesh_gid_text(const uint8_t gid[16], char text[INET6_ADDRSTRLEN])
{
	inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}

/* The link-local address of an EUI-48 (RFC 4291 A). */
void mesh_gid_of_mac(const uint8_t mac[6], uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	memcpy(gid + 8, mac, 3);
	gid[8] ^= 2;
	gid[11] = 0xff;
	gid[12] = 0xfe;
	memcpy(gid + 13, mac + 3, 3);
}

uint16_t mesh_port(const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)address)->sin_port);
	return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
}

void mesh_wire_address(const struct sockaddr_storage *address, uint8_t wire[16])
{
	memset(wire, 0, 16);
	if (address->ss_family == AF_INET6) {
		memcpy(wire, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	} else {
		wire[10] = wire[11] = 0xff;
		memcpy(wire + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	}
}

void mesh_host_address(const uint8_t wire[16], uint16_t port, struct sockaddr_storage *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(address, 0, sizeof(*address));
	if (memcmp(wire, mapped, sizeof(mapped)) == 0) {
		struct sockaddr_in *ipv4 = (struct sockaddr_in *)address;

		ipv4->sin_family = AF_INET;
		ipv4->sin_port = htons(port);
		memcpy(&ipv4->sin_addr, wire + 12, 4);
	} else {
		struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)address;

		ipv6->sin6_family = AF_INET6;
		ipv6->sin6_port = htons(port);
		memcpy(&ipv6->sin6_addr, wire, 16);
	}
}

void mesh_address_text(const struct sockaddr_storage *address, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->ss_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, host,
		          sizeof(host));
	else if (address->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, host,
		          sizeof(host));
	snprintf(text, size, address->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
	         mesh_port(address));
}

/* ---- nodes ---- */

static struct mesh_node **node_bucket(struct mesh *mesh, uint32_t id)
{
	return &mesh->node_table[id % MESH_HASH];
}

struct mesh_node *mesh_node_find(struct mesh *mesh, uint32_t id)
{
	struct mesh_node *node = *node_bucket(mesh, id);

	while (node && node->id != id)
		node = node->next;
	return node;
}

static void node_link(struct mesh *mesh, struct mesh_node *node, uint32_t id)
{
	struct mesh_node **bucket = node_bucket(mesh, id);

	node->id = id;
	node->next = *bucket;
	*bucket = node;
}

static void node_unlink(struct mesh *mesh, struct mesh_node *node)
{
	struct mesh_node **link = node_bucket(mesh, node->id);

	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
}

void mesh_node_rename(struct mesh *mesh, struct mesh_node *node, uint32_t id)
{
	node_unlink(mesh, node);
	node_link(mesh, node, id);
}

struct mesh_node *mesh_node_get(struct mesh *mesh, uint32_t id)
{
	struct mesh_node *node = mesh_node_find(mesh, id);

	if (node)
		return node;
	if (mesh->node_count >= MESH_NODES_MAX) {
		counter_inc(&fabric_mesh_node_too_many);
		return NULL;
	}
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	LIST_INIT(&node->gids);
	node->changed_ns = loop_now(mesh->loop);
	LIST_INSERT_HEAD(&mesh->nodes, node, entry);
	mesh->node_count++;
	node_link(mesh, node, id);
	return node;
}

static struct mesh_gid **gid_bucket(struct mesh *mesh, const uint8_t gid[16])
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (unsigned i = 0; i < 16; i++)
		hash = (hash ^ gid[i]) * 16777619u;
	return &mesh->gid_table[(hash ^ hash >> 16) % MESH_HASH];
}

static void gid_drop(struct mesh *mesh, struct mesh_gid *entry)
{
	struct mesh_gid **link = gid_bucket(mesh, entry->gid);

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	if (mesh->reviewed == entry)
		mesh->reviewed = NULL;
	LIST_REMOVE(entry, of_node);
	entry->node->gid_count--;
	free(entry);
}

void mesh_node_forget(struct mesh *mesh, struct mesh_node *node)
{
	struct mesh_conn *conn;

	LIST_FOREACH(conn, &mesh->conns, entry)
	if (conn->node == node)
		conn->node = NULL;
	LIST_FOREACH(conn, &mesh->dead, entry)
	if (conn->node == node)
		conn->node = NULL;
	mesh_eth_forget(mesh, node);
	for (struct mesh_gid *gid = LIST_FIRST(&node->gids), *next; gid; gid = next) {
		next = LIST_NEXT(gid, of_node);
		gid_drop(mesh, gid);
	}
	node_unlink(mesh, node);
	LIST_REMOVE(node, entry);
	mesh->node_count--;
	free(node);
}

/* ---- GIDs ---- */

static struct mesh_gid *gid_next(struct mesh_gid *entry, const uint8_t gid[16])
{
	while (entry && memcmp(entry->gid, gid, 16) != 0)
		entry = entry->next;
	return entry;
}

/* Another live node that claims the same GID, or NULL. */
static const struct mesh_node *rival(struct mesh *mesh, const struct mesh_gid *claim)
{
	for (struct mesh_gid *other = gid_next(*gid_bucket(mesh, claim->gid), claim->gid); other;
	     other = gid_next(other->next, claim->gid))
		if (other->node != claim->node && other->node->state == MESH_NODE_LIVE)
			return other->node;
	return NULL;
}

bool mesh_gid_contested(struct mesh *mesh, const struct mesh_gid *claim)
{
	return rival(mesh, claim) != NULL;
}

static void check_conflict(struct mesh *mesh, const struct mesh_gid *claim)
{
	static struct log_limit limit;
	const struct mesh_node *other = rival(mesh, claim);
	char text[INET6_ADDRSTRLEN];

	if (!other || claim->node->state != MESH_NODE_LIVE)
		return;
	counter_inc(&fabric_mesh_gid_conflict);
	mesh_gid_text(claim->gid, text);
	if (log_enabled(LOG_LEVEL_WARN) && log_limit_pass(&limit))
		log_warn("mesh: nodes %u and %u both claim the GID %s: it leads to neither until "
		         "one of them leaves",
		         other->id, claim->node->id, text);
}

/* The node lives again: somebody may have taken its GIDs meanwhile. */
static void check_claims(struct mesh *mesh, const struct mesh_node *node)
{
	const struct mesh_gid *claim;

	LIST_FOREACH(claim, &node->gids, of_node)
	check_conflict(mesh, claim);
}

void mesh_node_set_state(struct mesh *mesh, struct mesh_node *node, uint8_t state)
{
	if (node->state == state)
		return;
	node->state = state;
	node->changed_ns = loop_now(mesh->loop);
	node->suspected_ns = 0;
	if (state != MESH_NODE_LIVE)
		mesh_eth_forget(mesh, node);
	else
		check_claims(mesh, node);
	mesh_eth_elect(mesh);
}

int mesh_claim(struct mesh *mesh, struct mesh_node *node, const uint8_t gid[16])
{
	struct mesh_gid **bucket = gid_bucket(mesh, gid);

	for (struct mesh_gid *entry = gid_next(*bucket, gid); entry;
	     entry = gid_next(entry->next, gid))
		if (entry->node == node) {
			entry->unused_ns = 0;
			entry->unconfirmed = false;
			return 0;
		}
	if (node->gid_count >= MESH_GIDS_MAX) {
		counter_inc(&fabric_mesh_gid_too_many);
		return -ENOSPC;
	}
	struct mesh_gid *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return -ENOMEM;
	memcpy(entry->gid, gid, sizeof(entry->gid));
	entry->node = node;
	entry->next = *bucket;
	*bucket = entry;
	LIST_INSERT_HEAD(&node->gids, entry, of_node);
	node->gid_count++;
	check_conflict(mesh, entry);
	return 1;
}

void mesh_claim_mac(struct mesh *mesh, struct mesh_node *node)
{
	uint8_t gid[16];

	mesh_gid_of_mac(node->mac, gid);
	mesh_claim(mesh, node, gid);
}

/* Not an address that anybody could be reached at. */
static bool gid_is_useless(const uint8_t gid[16])
{
	static const uint8_t zero[16], mapped_zero[16] = {[10] = 0xff, [11] = 0xff};

	return gid[0] == 0xff || memcmp(gid, zero, 16) == 0 || memcmp(gid, mapped_zero, 16) == 0;
}

static void tell_own(struct mesh *mesh, enum mesh_type type, const uint8_t gid[16])
{
	if (mesh->options.manager)
		mesh_manager_tell_gid(mesh, type, mesh->self, gid);
	else if (mesh->registered)
		mesh_put_gid(mesh->manager_conn, type, mesh->self, gid);
}

void mesh_claim_own(struct mesh *mesh, const uint8_t gid[16])
{
	char text[INET6_ADDRSTRLEN];

	if (gid_is_useless(gid) || mesh_claim(mesh, mesh->self, gid) != 1)
		return;
	mesh_gid_text(gid, text);
	log_guest("mesh: claiming the GID %s", text);
	tell_own(mesh, MESH_CLAIM, gid);
}

void mesh_doubt_claims(struct mesh *mesh, struct mesh_node *node)
{
	struct mesh_gid *gid;

	LIST_FOREACH(gid, &node->gids, of_node)
	gid->unconfirmed = true;
	node->claims_by_ns = loop_now(mesh->loop) +
	                     MESH_SILENT_INTERVALS * mesh->options.interval_ms * NS_PER_MS;
}

/* A GID goes that NODE does not claim any more. */
static void claim_ends(struct mesh *mesh, struct mesh_node *node, struct mesh_gid *entry)
{
	uint8_t gid[16];

	memcpy(gid, entry->gid, sizeof(gid));
	gid_drop(mesh, entry);
	if (node == mesh->self)
		tell_own(mesh, MESH_UNCLAIM, gid);
	else if (mesh->options.manager)
		mesh_manager_tell_gid(mesh, MESH_UNCLAIM, node, gid);
}

static void drop_doubtful(struct mesh *mesh, struct mesh_node *node)
{
	node->claims_by_ns = 0;
	for (struct mesh_gid *gid = LIST_FIRST(&node->gids), *next; gid; gid = next) {
		next = LIST_NEXT(gid, of_node);
		if (!gid->unconfirmed)
			continue;
		counter_inc(&fabric_mesh_gid_stale);
		claim_ends(mesh, node, gid);
	}
}

/*
 * The manager tells every node of every change, so a node may not change its GIDs as often as it
 * likes. An honest one begins with all that it may have, and then withdraws, and can claim anew,
 * one GID a health check: 4 changes an interval. Twice as many are allowed.
 */
static int note_change(struct mesh_conn *conn, struct mesh_node *node)
{
	struct mesh *mesh = conn->mesh;
	uint64_t now = loop_now(mesh->loop), price = mesh->options.interval_ms * NS_PER_MS / 8;

	if (node->changes_ns < now)
		node->changes_ns = now;
	node->changes_ns += price;
	if (node->changes_ns - now <= 4 * MESH_GIDS_MAX * price)
		return 0;
	return mesh_conn_violation(conn, "changes of GIDs without end");
}

/* Whether CONN may speak of NODE's GIDs. */
static bool may_claim(const struct mesh_conn *conn, const struct mesh_node *node)
{
	const struct mesh *mesh = conn->mesh;

	return conn == mesh->manager_conn || (mesh->options.manager && node && node == conn->node);
}

int mesh_handle_claim(struct mesh_conn *conn, const struct mesh_claim *claim)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_node *node = mesh_node_find(mesh, be32_get(claim->node));

	if (!may_claim(conn, node))
		return mesh_conn_violation(conn, "a claim for another node");
	if (!node || node == mesh->self || gid_is_useless(claim->gid) ||
	    mesh_claim(mesh, node, claim->gid) != 1 || !mesh->options.manager)
		return 0;
	mesh_manager_tell_gid(mesh, MESH_CLAIM, node, claim->gid);
	mesh_manager_suspect(mesh, claim->gid);
	return note_change(conn, node);
}

int mesh_handle_unclaim(struct mesh_conn *conn, const struct mesh_claim *claim)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_node *node = mesh_node_find(mesh, be32_get(claim->node));
	struct mesh_gid *entry;

	if (!may_claim(conn, node))
		return mesh_conn_violation(conn, "a withdrawal for another node");
	if (!node || node == mesh->self)
		return 0;
	LIST_FOREACH(entry, &node->gids, of_node)
	if (memcmp(entry->gid, claim->gid, sizeof(entry->gid)) == 0)
		break;
	if (!entry)
		return 0;
	claim_ends(mesh, node, entry);
	return mesh->options.manager ? note_change(conn, node) : 0;
}

static bool uses_gid(const struct mesh *mesh, const uint8_t gid[16])
{
	for (unsigned i = 0; i < mesh->net.count; i++)
		if (rdma_dev_uses_gid(mesh->net.devices[i], gid))
			return true;
	return false;
}

static void withdraw(struct mesh *mesh, struct mesh_gid *entry)
{
	char text[INET6_ADDRSTRLEN];

	counter_inc(&fabric_mesh_gid_withdrawn);
	mesh_gid_text(entry->gid, text);
	log_guest("mesh: the guest does not use the GID %s any more", text);
	claim_ends(mesh, mesh->self, entry);
}

/* Looks at one of our own GIDs, the next each time: the guest cannot say that it has given one up,
 * but then nothing of it has that address. Where another claims it too there is no time to lose,
 * but for one more look. */
static void review_gid(struct mesh *mesh, uint64_t now)
{
	struct mesh_gid *entry = mesh->reviewed ? LIST_NEXT(mesh->reviewed, of_node) : NULL;
	uint64_t patience = MESH_IDLE_INTERVALS * mesh->options.interval_ms * NS_PER_MS;

	if (!entry)
		entry = LIST_FIRST(&mesh->self->gids);
	mesh->reviewed = entry;
	if (!entry || entry->fixed)
		return;
	if (uses_gid(mesh, entry->gid))
		entry->unused_ns = 0;
	else if (entry->unused_ns == 0)
		entry->unused_ns = now;
	else if (now - entry->unused_ns >= patience || mesh_gid_contested(mesh, entry))
		withdraw(mesh, entry);
}

static struct mesh_node *claimant(struct mesh *mesh, const uint8_t gid[16], bool *conflict)
{
	struct mesh_node *found = NULL;

	*conflict = false;
	for (struct mesh_gid *entry = gid_next(*gid_bucket(mesh, gid), gid); entry;
	     entry = gid_next(entry->next, gid)) {
		if (entry->node->state != MESH_NODE_LIVE)
			continue;
		*conflict = found != NULL;
		if (*conflict)
			return NULL;
		found = entry->node;
	}
	return found;
}

/* By the GID; one that nobody has claimed yet by the MAC address, as the sender's neighbour table
 * has it: from a frame, or from the link-local GID that every node claims. */
struct mesh_node *mesh_resolve(struct mesh *mesh, const struct rdma_av *av)
{
	uint8_t gid[16];
	bool conflict;

	if (!av)
		return NULL;
	struct mesh_node *node = claimant(mesh, av->dgid, &conflict);

	if (!node && !conflict)
		node = mesh_eth_station(mesh, av->dst_mac);
	if (!node && !conflict) {
		mesh_gid_of_mac(av->dst_mac, gid);
		node = claimant(mesh, gid, &conflict);
	}
	return node == mesh->self ? NULL : node;
}

/* ---- connections between nodes ---- */

struct mesh_conn *mesh_node_conn(struct mesh *mesh, struct mesh_node *node)
{
	uint64_t now = loop_now(mesh->loop);

	if (node->conn)
		return node->conn;
	/* a worker comes to its manager by itself, and the manager does not call workers */
	if (mesh->options.manager || node->id == MESH_NODE_MANAGER || now < node->call_after_ns ||
	    mesh->conn_count >= MESH_CONNS_MAX)
		return NULL;
	node->call_after_ns = now + CALL_PAUSE_MS * NS_PER_MS;
	node->conn = mesh_conn_call(mesh, &node->address, node);
	return node->conn;
}

void mesh_member_up(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;

	if (conn->manager) {
		mesh_worker_up(conn);
		return;
	}
	if (mesh->options.manager)
		return; /* it will register */
	if (!conn->node) {
		struct mesh_node *node = mesh_node_find(mesh, be32_get(conn->peer.node));

		if (node && node != mesh->self && node->instance == be64_get(conn->peer.instance))
			conn->node = node;
	}
	if (conn->node && !conn->node->conn)
		conn->node->conn = conn;
}

/* Another connection to the node that is up, or NULL. */
static struct mesh_conn *other_conn(struct mesh *mesh, const struct mesh_node *node)
{
	struct mesh_conn *conn;

	LIST_FOREACH(conn, &mesh->conns, entry)
	if (conn->node == node && conn->state == MESH_CONN_UP)
		return conn;
	return NULL;
}

void mesh_member_down(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_node *node = conn->node;

	if (node && node->conn == conn) {
		node->call_after_ns = loop_now(mesh->loop) + CALL_PAUSE_MS * NS_PER_MS;
		node->conn = other_conn(mesh, node);
		if (mesh->options.manager && !node->conn && !mesh->closing)
			mesh_manager_lost(mesh, node);
	}
	if (conn == mesh->manager_conn)
		mesh_worker_lost(mesh);
}

/* ---- health ---- */

static bool is_idle(const struct mesh_conn *conn, uint64_t now)
{
	const struct mesh *mesh = conn->mesh;

	return conn->called && !conn->manager && conn->node && conn->outflows.used == 0 &&
	       conn->inflows.used == 0 && TAILQ_EMPTY(&conn->waiters) &&
	       now - conn->used_ns >= MESH_IDLE_INTERVALS * mesh->options.interval_ms * NS_PER_MS;
}

static void close_idle(struct mesh_conn *conn)
{
	struct mesh_node *node = conn->node;

	counter_inc(&fabric_mesh_idle);
	mesh_conn_close(conn, "nobody uses it");
	node->call_after_ns = 0; /* nothing is wrong with it */
}

static void check_conn(struct mesh_conn *conn, uint64_t now)
{
	uint64_t interval = conn->mesh->options.interval_ms * NS_PER_MS;
	uint64_t quiet = now - conn->heard_ns;
	struct mesh_node *node = conn->node;
	bool suspect = node && node->suspected_ns != 0 && conn->heard_ns < node->suspected_ns;

	if (conn->state != MESH_CONN_UP)
		return;
	if (quiet >= MESH_SILENT_INTERVALS * interval || (suspect && quiet >= interval)) {
		counter_inc(&fabric_mesh_silent);
		mesh_conn_close(conn, "silent for too long");
	} else if (is_idle(conn, now)) {
		close_idle(conn);
		return;
	} else if (quiet >= interval / 2) {
		mesh_conn_put(conn, mesh_frame_make(MESH_PING, 0, 0, 0), NULL);
	}
	if (node && !suspect)
		node->suspected_ns = 0;
}

static void confirm_nodes(struct mesh *mesh, uint64_t now)
{
	struct mesh_node *node;

	if (mesh->confirm_by_ns == 0 || now < mesh->confirm_by_ns)
		return;
	mesh->confirm_by_ns = 0;
	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node->unconfirmed && node != mesh->self) {
		node->unconfirmed = false;
		mesh_node_set_state(mesh, node, MESH_NODE_SILENT);
	}
}

static void confirm_claims(struct mesh *mesh, uint64_t now)
{
	struct mesh_node *node;

	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node->claims_by_ns != 0 && now >= node->claims_by_ns)
		drop_doubtful(mesh, node);
}

static void health_expired(struct loop_timer *timer)
{
	struct mesh *mesh = container_of(timer, struct mesh, health);
	struct mesh_conn *conn, *next;
	uint64_t now = loop_now(mesh->loop);

	for (conn = LIST_FIRST(&mesh->conns); conn; conn = next) {
		next = LIST_NEXT(conn, entry);
		check_conn(conn, now);
	}
	confirm_nodes(mesh, now);
	confirm_claims(mesh, now);
	if (mesh->options.manager || mesh->registered) /* else nobody would hear of it */
		review_gid(mesh, now);
	loop_arm(mesh->loop, timer, now + mesh->options.interval_ms * NS_PER_MS / 2);
}

/* ---- frames ---- */

void mesh_put_node(struct mesh_conn *conn, const struct mesh_node *node)
{
	struct mesh_node_info info = {.node = be32_make(node->id),
	                              .port = be16_make(mesh_port(&node->address)),
	                              .state = node->state,
	                              .flags = node->flags,
	                              .instance = be64_make(node->instance)};

	memcpy(info.mac, node->mac, sizeof(info.mac));
	mesh_wire_address(&node->address, info.address);
	mesh_conn_put(conn, mesh_frame_make(MESH_NODE, sizeof(info), 0, 0), &info);
}

void mesh_put_gid(struct mesh_conn *conn, enum mesh_type type, const struct mesh_node *node,
                  const uint8_t gid[16])
{
	struct mesh_claim claim = {.node = be32_make(node->id)};

	memcpy(claim.gid, gid, sizeof(claim.gid));
	mesh_conn_put(conn, mesh_frame_make(type, sizeof(claim), 0, 0), &claim);
}

/* ---- life ---- */

int mesh_member_init(struct mesh *mesh)
{
	LIST_INIT(&mesh->nodes);
	mesh->id = mesh->options.manager ? MESH_NODE_MANAGER : MESH_NODE_NONE;
	mesh->next_id = MESH_NODE_MANAGER + 1;
	mesh->self = mesh_node_get(mesh, mesh->id);
	if (!mesh->self)
		return -ENOMEM;
	mesh->self->state = MESH_NODE_LIVE;
	mesh->self->instance = mesh->instance;
	mesh->self->address.ss_family = AF_INET;
	memcpy(mesh->self->mac, mesh->mac, sizeof(mesh->mac));
	mesh_claim_mac(mesh, mesh->self);
	mesh->health.expired = health_expired;
	loop_arm(mesh->loop, &mesh->health,
	         loop_now(mesh->loop) + mesh->options.interval_ms * NS_PER_MS / 2);
	return 0;
}

void mesh_member_free(struct mesh *mesh)
{
	loop_disarm(mesh->loop, &mesh->health);
	while (!LIST_EMPTY(&mesh->nodes))
		mesh_node_forget(mesh, LIST_FIRST(&mesh->nodes));
}
