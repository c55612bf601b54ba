/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a node of a mesh knows about it, for people who ask: nodes, GIDs and connections. */
#ifndef ERNIC_FABRIC_MESH_VIEW_H
#define ERNIC_FABRIC_MESH_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/transport.h"

/* Instead of an id: it has none yet, or is not known. */
#define MESH_VIEW_NO_ID 0xffffffffu

/* Texts of addresses: "[IPv6]:port" and its NUL. */
#define MESH_VIEW_TEXT 64

enum {
	MESH_VIEW_GIDS_MAX = 4096,  /* shown at once; the rest is only counted */
	MESH_VIEW_CONNS_MAX = 1024, /* likewise */
};

/* This node. */
struct mesh_view_self {
	bool manager, registered; /* the manager is registered with itself */
	uint32_t id;
	char address[MESH_VIEW_TEXT]; /* where it can be called; "" not yet */
	char manager_address[MESH_VIEW_TEXT];
	uint32_t interval_ms; /* of health checks */
	unsigned node_count, gid_count, connection_count;
};

enum mesh_view_state {
	MESH_VIEW_LIVE,   /* as far as the manager knows */
	MESH_VIEW_SILENT, /* the manager cannot reach it: its GIDs are withdrawn */
};

struct mesh_view_node {
	uint32_t id;
	enum mesh_view_state state;
	bool self, tap;
	char address[MESH_VIEW_TEXT]; /* "" when not known */
	uint8_t mac[6];
	unsigned gid_count;
	/* Since the last byte on our connection to it, or, for a silent one, since it became so. */
	bool heard; /* whether there is any such */
	uint64_t silent_ms;
};

enum mesh_view_claim {
	MESH_VIEW_CLAIM_LIVE,      /* leads to the node */
	MESH_VIEW_CLAIM_CONTESTED, /* another live node claims it too: leads nowhere */
	MESH_VIEW_CLAIM_WITHDRAWN, /* the node is silent */
};

struct mesh_view_gid {
	char gid[MESH_VIEW_TEXT];
	uint32_t node;
	enum mesh_view_claim state;
};

enum mesh_view_conn_state {
	MESH_VIEW_CALLING,
	MESH_VIEW_SECURING,
	MESH_VIEW_GREETING,
	MESH_VIEW_PROVING,
	MESH_VIEW_UP,
};

struct mesh_view_conn {
	uint32_t node; /* whom it leads to */
	char peer[MESH_VIEW_TEXT];
	bool called; /* by us */
	bool tls;
	enum mesh_view_conn_state state;
	uint64_t sent, received;                   /* bytes */
	uint64_t sent_messages, received_messages; /* of queue pairs, begun */
	uint64_t pending;                          /* bytes that wait for the peer to read */
	uint64_t silent_ms;                        /* since the last byte */
};

/* Told one after the other: self, nodes and their GIDs by id, connections. */
struct mesh_view {
	void (*self)(struct mesh_view *view, const struct mesh_view_self *self);
	void (*node)(struct mesh_view *view, const struct mesh_view_node *node);
	void (*gid)(struct mesh_view *view, const struct mesh_view_gid *gid);
	void (*connection)(struct mesh_view *view, const struct mesh_view_conn *conn);
};

/* Tells VIEW all of it. Returns false, having told nothing, when FABRIC is not a mesh. */
bool mesh_show(struct rdma_fabric *fabric, struct mesh_view *view);

#endif
