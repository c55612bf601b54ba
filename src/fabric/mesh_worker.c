/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker of a mesh: finds its manager, registers, and learns from it who else is there.
 *
 * When the connection to the manager ends the worker connects again, under the id it has, as long
 * as it takes; meanwhile it keeps its tables and its connections to other workers. A manager with
 * another instance number than before has restarted: nodes that it does not name within three
 * intervals count as silent.
 */
#include "fabric/mesh_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/log.h"
#include "base/signals.h"

COUNTER(fabric_mesh_reconnects, "times a worker lost its manager and called it again");
COUNTER(fabric_mesh_new_id, "times a worker's id was gone and it asked for a new one");

enum { PAUSE_MIN_MS = 100, PAUSE_MAX_MS = 2000, TRY_MS = 200 };

/* ---- the connection to the manager ---- */

static void call_manager(struct mesh *mesh)
{
	struct mesh_conn *conn = mesh_conn_call(mesh, &mesh->manager_address, NULL);

	if (!conn) {
		mesh_worker_lost(mesh);
		return;
	}
	conn->manager = true;
	mesh->manager_conn = conn;
}

static void reconnect_expired(struct loop_timer *timer)
{
	call_manager(container_of(timer, struct mesh, reconnect));
}

void mesh_worker_lost(struct mesh *mesh)
{
	char text[64];
	uint64_t pause = mesh->reconnect_ns;

	mesh->manager_conn = NULL;
	mesh->registered = false;
	if (mesh->closing)
		return;
	counter_inc(&fabric_mesh_reconnects);
	mesh_address_text(&mesh->manager_address, text, sizeof(text));
	if (!mesh->said_absent)
		log_warn("mesh: no manager at %s; trying until there is one", text);
	mesh->said_absent = true;
	mesh->reconnect_ns =
	        pause * 2 < PAUSE_MAX_MS * NS_PER_MS ? pause * 2 : PAUSE_MAX_MS * NS_PER_MS;
	loop_arm(mesh->loop, &mesh->reconnect, loop_now(mesh->loop) + pause);
}

static void send_register(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_register request = {.wanted = be32_make(mesh->id),
	                                .port = be16_make(mesh_port(&mesh->listen_address)),
	                                .flags = mesh->self->flags};

	memcpy(request.mac, mesh->mac, sizeof(request.mac));
	mesh_conn_put(conn, mesh_frame_make(MESH_REGISTER, sizeof(request), 0, 0), &request);
}

/* Other workers call us where the manager sees us. */
static int listen_beside(struct mesh_conn *conn)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	uint8_t now[16], before[16];

	if (getsockname(conn->source.fd, (struct sockaddr *)&address, &size) < 0)
		return -errno;
	mesh_wire_address(&address, now);
	mesh_wire_address(&conn->mesh->listen_address, before);
	if (conn->mesh->listener.added && memcmp(now, before, sizeof(now)) == 0)
		return 0;
	mesh_unlisten(conn->mesh);
	mesh_host_address(now, 0, &address);
	return mesh_listen(conn->mesh, &address);
}

void mesh_worker_up(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_node *manager = mesh_node_get(mesh, MESH_NODE_MANAGER);

	if (!manager || listen_beside(conn)) {
		log_warn("mesh: no port for other workers to call");
		return;
	}
	conn->node = manager;
	manager->conn = conn;
	send_register(conn);
}

/* ---- what the manager says ---- */

static bool from_manager(const struct mesh_conn *conn)
{
	return conn == conn->mesh->manager_conn && conn->manager;
}

static void doubt_all(struct mesh *mesh)
{
	struct mesh_node *node;

	LIST_FOREACH(node, &mesh->nodes, entry)
	node->unconfirmed = node->id != MESH_NODE_MANAGER;
	mesh->confirm_by_ns = loop_now(mesh->loop) +
	                      MESH_SILENT_INTERVALS * mesh->options.interval_ms * NS_PER_MS;
}

int mesh_worker_welcome(struct mesh_conn *conn, const struct mesh_welcome *welcome)
{
	struct mesh *mesh = conn->mesh;
	uint32_t id = be32_get(welcome->node), interval = be32_get(welcome->interval_ms);
	struct mesh_node *node;
	struct mesh_gid *gid;

	if (!from_manager(conn) || mesh->registered)
		return mesh_conn_violation(conn, "a welcome that nobody asked for");
	if (id == MESH_NODE_MANAGER || id == MESH_NODE_NONE || interval == 0 || interval > 60000)
		return mesh_conn_violation(conn, "a welcome that makes no sense");
	struct mesh_node *former = mesh_node_find(mesh, id);

	if (former && former != mesh->self)
		mesh_node_forget(mesh, former);
	mesh_node_rename(mesh, mesh->self, id);
	mesh->id = id;
	mesh_eth_elect(mesh);
	mesh->registered = true;
	mesh->said_absent = false;
	mesh->reconnect_ns = PAUSE_MIN_MS * NS_PER_MS;
	mesh->options.interval_ms = interval;
	if (mesh->manager_instance != be64_get(conn->peer.instance))
		doubt_all(mesh);
	mesh->manager_instance = be64_get(conn->peer.instance);
	LIST_FOREACH(node, &mesh->nodes, entry)
	if (node != mesh->self)
		mesh_doubt_claims(mesh, node);
	LIST_FOREACH(gid, &mesh->self->gids, of_node)
	mesh_put_gid(conn, MESH_CLAIM, mesh->self, gid->gid);
	log_info("mesh: registered as node %u with %s", id, conn->peer_text);
	return 0;
}

int mesh_worker_refuse(struct mesh_conn *conn, const struct mesh_refuse *refuse)
{
	struct mesh *mesh = conn->mesh;

	if (!from_manager(conn) || mesh->registered)
		return mesh_conn_violation(conn, "a refusal of nothing");
	switch (be32_get(refuse->reason)) {
	case MESH_REASON_ID:
		if (mesh->id == MESH_NODE_NONE)
			return mesh_conn_violation(conn, "a refusal of no id");
		counter_inc(&fabric_mesh_new_id);
		log_info("mesh: node id %u is gone; asking for a new one", mesh->id);
		mesh->id = MESH_NODE_NONE;
		mesh_node_rename(mesh, mesh->self, mesh->id);
		send_register(conn);
		return 0;
	case MESH_REASON_FULL:
		log_warn("mesh: the mesh of %s is full", conn->peer_text);
		return -EACCES;
	default:
		log_warn("mesh: %s is a worker, not a manager; give the manager's port",
		         conn->peer_text);
		return -EACCES;
	}
}

/* A connection that is for whoever had this id before. */
static void drop_former(struct mesh *mesh, struct mesh_node *node)
{
	struct mesh_conn *conn, *next;

	for (conn = LIST_FIRST(&mesh->conns); conn; conn = next) {
		next = LIST_NEXT(conn, entry);
		if (conn->node == node)
			mesh_conn_close(conn, "its node id is another's now");
	}
}

/* Peers that called before the manager told us who they are. */
static void bind_callers(struct mesh *mesh, struct mesh_node *node)
{
	struct mesh_conn *conn;

	LIST_FOREACH(conn, &mesh->conns, entry)
	if (!conn->node && conn->state == MESH_CONN_UP && !conn->manager &&
	    be32_get(conn->peer.node) == node->id &&
	    be64_get(conn->peer.instance) == node->instance) {
		conn->node = node;
		if (!node->conn)
			node->conn = conn;
	}
}

static void take_info(struct mesh *mesh, struct mesh_node *node, const struct mesh_node_info *info)
{
	uint64_t instance = be64_get(info->instance);

	if (node->instance != 0 && node->instance != instance && node->id != MESH_NODE_MANAGER)
		drop_former(mesh, node);
	node->instance = instance;
	node->flags = info->flags;
	node->unconfirmed = false;
	memcpy(node->mac, info->mac, sizeof(node->mac));
	mesh_host_address(info->address, be16_get(info->port), &node->address);
	if (info->state == MESH_NODE_LIVE)
		node->call_after_ns = 0;
	mesh_node_set_state(mesh, node, info->state);
	mesh_claim_mac(mesh, node);
	bind_callers(mesh, node);
}

int mesh_worker_node(struct mesh_conn *conn, const struct mesh_node_info *info)
{
	struct mesh *mesh = conn->mesh;
	uint32_t id = be32_get(info->node);

	if (!from_manager(conn) || !mesh->registered || id == MESH_NODE_NONE)
		return mesh_conn_violation(conn, "news of a node that is not its to tell");
	if (id == mesh->id)
		return 0;
	if (info->state == MESH_NODE_FORGOTTEN) {
		struct mesh_node *node = mesh_node_find(mesh, id);

		if (node && id != MESH_NODE_MANAGER) {
			drop_former(mesh, node);
			mesh_node_forget(mesh, node);
		}
		return 0;
	}
	if (info->state != MESH_NODE_LIVE && info->state != MESH_NODE_SILENT)
		return mesh_conn_violation(conn, "a node in no state");
	struct mesh_node *node = mesh_node_get(mesh, id);

	if (node)
		take_info(mesh, node, info);
	return 0;
}

/* ---- life ---- */

int mesh_lookup(const char *host, uint16_t port, struct sockaddr_storage *address, char *error,
                size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	int failed = getaddrinfo(host, service, &hints, &found);

	if (failed) {
		snprintf(error, size, "the host %s is not known (%s); give a name or an address",
		         host, gai_strerror(failed));
		return -EINVAL;
	}
	memset(address, 0, sizeof(*address));
	memcpy(address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
}

/* Whether somebody accepts there, within TRY_MS. */
static bool answers(const struct sockaddr_storage *address)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	int failed = -1;
	socklen_t size = sizeof(failed);

	if (fd < 0)
		return false;
	if ((connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	     errno == EINPROGRESS) &&
	    poll(&wait, 1, TRY_MS) == 1 && (wait.revents & POLLOUT))
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
	close(fd);
	return failed == 0;
}

/* Start-up only: nothing is served yet, so waiting keeps nobody. */
static bool wait_for_manager(const struct mesh *mesh, int wait_s)
{
	struct timespec now, pause = {.tv_nsec = TRY_MS * 1000000};

	clock_gettime(CLOCK_MONOTONIC, &now);
	time_t end = now.tv_sec + wait_s;

	while (!answers(&mesh->manager_address)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= end || signals_end_asked())
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

int mesh_worker_start(struct mesh *mesh, int wait_s, char *error, size_t size)
{
	const struct mesh_options *options = &mesh->options;
	int failed = mesh_lookup(options->host, options->port, &mesh->manager_address, error, size);

	if (failed)
		return failed;
	if (wait_s >= 0 && !wait_for_manager(mesh, wait_s)) {
		snprintf(error, size,
		         "no manager answers at %s port %u; start one with --backend "
		         "tcp:manager:%u, or leave --mesh-wait out to wait for it",
		         options->host, options->port, options->port);
		return -EINVAL;
	}
	mesh->reconnect.expired = reconnect_expired;
	mesh->reconnect_ns = PAUSE_MIN_MS * NS_PER_MS;
	call_manager(mesh);
	return 0;
}

void mesh_worker_stop(struct mesh *mesh)
{
	loop_disarm(mesh->loop, &mesh->reconnect);
}
