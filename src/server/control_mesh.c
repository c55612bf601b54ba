/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command `mesh` of the control socket: what this node knows of its mesh, as JSON. */
#include "server/control.h"

#include <assert.h>
#include <json-c/json.h>
#include <stdint.h>

#include "base/bytes.h"
#include "fabric/mesh_view.h"
#include "server/server.h"
#include "server/text.h"

/* What the answer is built in. */
struct mesh_answer {
	struct mesh_view view;
	struct json_object *answer, *nodes, *gids, *connections;
};

static const char *const node_states[] = {[MESH_VIEW_LIVE] = "live", [MESH_VIEW_SILENT] = "silent"};

static const char *const claim_states[] = {
        [MESH_VIEW_CLAIM_LIVE] = "live",
        [MESH_VIEW_CLAIM_CONTESTED] = "contested",
        [MESH_VIEW_CLAIM_WITHDRAWN] = "withdrawn",
};
static_assert(ARRAY_SIZE(claim_states) == MESH_VIEW_CLAIM_WITHDRAWN + 1, "every state has a name");

static const char *const conn_states[] = {
        [MESH_VIEW_CALLING] = "calling",
        [MESH_VIEW_SECURING] = "securing",
        [MESH_VIEW_GREETING] = "greeting",
        [MESH_VIEW_PROVING] = "proving",
        [MESH_VIEW_UP] = "up",
};
static_assert(ARRAY_SIZE(conn_states) == MESH_VIEW_UP + 1, "every state has a name");

/* An address; null while it is not known. */
static void add_address(struct json_object *object, const char *name, const char *value)
{
	json_object_object_add(object, name, *value ? json_object_new_string(value) : NULL);
}

static void add_number(struct json_object *object, const char *name, uint64_t value)
{
	json_object_object_add(object, name, json_object_new_uint64(value));
}

static void add_node(struct json_object *object, uint32_t id)
{
	json_object_object_add(object, "node",
	                       id == MESH_VIEW_NO_ID ? NULL : json_object_new_uint64(id));
}

static void show_self(struct mesh_view *view, const struct mesh_view_self *self)
{
	struct json_object *answer = container_of(view, struct mesh_answer, view)->answer;

	add_node(answer, self->id);
	control_add_text(answer, "role", self->manager ? "manager" : "worker");
	control_add_bool(answer, "registered", self->registered);
	add_address(answer, "address", self->address);
	add_address(answer, "manager", self->manager_address);
	add_number(answer, "interval_ms", self->interval_ms);
	add_number(answer, "node_count", self->node_count);
	add_number(answer, "gid_count", self->gid_count);
	add_number(answer, "connection_count", self->connection_count);
}

static void show_node(struct mesh_view *view, const struct mesh_view_node *node)
{
	struct json_object *entry = json_object_new_object();
	char mac[TEXT_MAC_SIZE];

	add_node(entry, node->id);
	control_add_text(entry, "state", node_states[node->state]);
	add_address(entry, "address", node->address);
	control_add_text(entry, "mac", text_mac_format(node->mac, mac));
	control_add_bool(entry, "self", node->self);
	control_add_bool(entry, "tap", node->tap);
	add_number(entry, "gids", node->gid_count);
	json_object_object_add(entry, "silent_ms",
	                       node->heard ? json_object_new_uint64(node->silent_ms) : NULL);
	json_object_array_add(container_of(view, struct mesh_answer, view)->nodes, entry);
}

static void show_gid(struct mesh_view *view, const struct mesh_view_gid *gid)
{
	struct json_object *entry = json_object_new_object();

	control_add_text(entry, "gid", gid->gid);
	add_node(entry, gid->node);
	control_add_text(entry, "state", claim_states[gid->state]);
	json_object_array_add(container_of(view, struct mesh_answer, view)->gids, entry);
}

static void show_connection(struct mesh_view *view, const struct mesh_view_conn *conn)
{
	struct json_object *entry = json_object_new_object();

	add_node(entry, conn->node);
	control_add_text(entry, "peer", conn->peer);
	control_add_bool(entry, "called", conn->called);
	control_add_text(entry, "state", conn_states[conn->state]);
	control_add_bool(entry, "tls", conn->tls);
	add_number(entry, "sent_bytes", conn->sent);
	add_number(entry, "received_bytes", conn->received);
	add_number(entry, "sent_messages", conn->sent_messages);
	add_number(entry, "received_messages", conn->received_messages);
	add_number(entry, "pending_bytes", conn->pending);
	add_number(entry, "silent_ms", conn->silent_ms);
	json_object_array_add(container_of(view, struct mesh_answer, view)->connections, entry);
}

struct json_object *control_mesh(struct server *server, const char *text,
                                 struct json_object *answer)
{
	struct mesh_answer build = {
	        .view = {show_self, show_node, show_gid, show_connection},
	        .answer = answer,
	        .nodes = json_object_new_array(),
	        .gids = json_object_new_array(),
	        .connections = json_object_new_array(),
	};
	bool shown = mesh_show(server->fabric, &build.view);

	(void)text;
	json_object_object_add(answer, "nodes", build.nodes);
	json_object_object_add(answer, "gids", build.gids);
	json_object_object_add(answer, "connections", build.connections);
	return shown ? NULL
	             : control_refuse("mesh: this server is not in one",
	                              "start it with --backend tcp:manager:PORT or "
	                              "tcp:worker:HOST:PORT");
}
