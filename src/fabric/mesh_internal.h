/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the mesh share. Stays inside the room.
 *
 * Who is who:
 *	mesh.c		the fabric, its life, and the theory of operation
 *	mesh_options.c	from a description to options
 *	mesh_proto.c	the protocol's frames
 *	mesh_conn.c	a connection: bytes in, bytes out, frames to their handlers
 *	mesh_hello.c	the greeting at the begin of a connection, and the proof of the secret
 *	mesh_tls.c	the same bytes through TLS
 *	mesh_sha256.c	SHA-256 and HMAC
 *	mesh_member.c	who is there: nodes, GIDs, health
 *	mesh_manager.c	the side of membership that decides
 *	mesh_worker.c	the side of membership that asks
 *	mesh_send.c	messages from our queue pairs, and what comes back for them
 *	mesh_answer.c	messages for our queue pairs
 *	mesh_trace.c	messages of both kinds, for captures
 *	mesh_eth.c	Ethernet frames
 *	mesh_view.c	what a node knows, for people who ask
 */
#ifndef ERNIC_FABRIC_MESH_INTERNAL_H
#define ERNIC_FABRIC_MESH_INTERNAL_H

#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/uio.h>

#include "base/loop.h"
#include "fabric/fabric_internal.h"
#include "fabric/mesh_proto.h"
#include "net/net.h"

enum {
	MESH_NODES_MAX = 1024,      /* of a mesh; bounds what a hostile manager can make us keep */
	MESH_GIDS_MAX = 64,         /* of a node */
	MESH_CONNS_MAX = 4096,      /* of a process */
	MESH_GREETING_MAX = 64,     /* connections that were accepted and are not yet up */
	MESH_FLOWS_MAX = 32768,     /* of a connection and direction */
	MESH_INFLOWS_MAX = 131072,  /* of peers, in a process; honest ones need one a queue pair */
	MESH_SILENT_INTERVALS = 3,  /* of health checks, until a peer counts as gone */
	MESH_IDLE_INTERVALS = 30,   /* until what nobody uses goes: GIDs, connections of workers */
	MESH_OUT_SOFT = 32 * 1024,  /* no new data while so much waits to be sent */
	MESH_OUT_HARD = 4 << 20,    /* a peer that lets so much pile up is cut off */
	MESH_OUT_KEEP = 128 * 1024, /* of a buffer, a connection's own; what is beyond is ... */
	MESH_OUT_SHARED = 64 << 20, /* ... shared by all: with more, the largest is cut off */
	MESH_COPY_MAX = 8 * 1024,   /* payload up to this is gathered, beyond it is sent in place */
	MESH_WINDOW = 64,           /* messages of a queue pair under way */
	MESH_WAKE = 8,              /* queue pairs that are woken at once when there is room */
	MESH_PIECES = 64,           /* host pieces of one write or read */
};

#define NS_PER_MS 1000000ull

struct mesh;
struct mesh_conn;
struct mesh_node;
struct mesh_inflow;
struct mesh_qp;
struct mesh_tls;

/* ---- options (mesh_options.c) ---- */

#define MESH_TEXT_MAX   256
#define MESH_SECRET_MAX 256

struct mesh_options {
	bool manager;
	char host[MESH_TEXT_MAX]; /* manager: to listen on, "" for the default; worker: to call */
	uint16_t port;
	uint32_t interval_ms; /* of health checks; a worker takes its manager's */
	uint8_t secret[MESH_SECRET_MAX];
	size_t secret_size; /* 0: none */
	char tls_cert[MESH_TEXT_MAX], tls_key[MESH_TEXT_MAX], tls_ca[MESH_TEXT_MAX];
};

/* Reads what follows "tcp:". Returns 0, or -EINVAL with a sentence in ERROR. */
int mesh_options_parse(const char *text, struct mesh_options *options, char *error, size_t size);

/* ---- digests (mesh_sha256.c) ---- */

#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t size;
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *sha);
void sha256_update(struct sha256 *sha, const void *data, size_t size);
void sha256_final(struct sha256 *sha, uint8_t digest[MESH_PROOF_SIZE]);
/* RFC 2104 over COUNT pieces. */
void hmac_sha256(const void *key, size_t key_size, const struct iovec *pieces, unsigned count,
                 uint8_t digest[MESH_PROOF_SIZE]);

/* ---- connections (mesh_conn.c, mesh_hello.c) ---- */

enum mesh_conn_state {
	MESH_CONN_CALLING,  /* connect() is under way */
	MESH_CONN_SECURING, /* TLS handshake */
	MESH_CONN_GREETING, /* our hello is out, the peer's is awaited */
	MESH_CONN_PROVING,  /* the peer's proof is awaited */
	MESH_CONN_UP,       /* frames of all types */
	MESH_CONN_DEAD,     /* closed; freed when nobody is inside any more */
};

/* Numbers of flows: an index, and a generation above it, so that a number is not used again soon.
 */
struct mesh_flows {
	void **items; /* by index; NULL: free */
	uint16_t *generations;
	uint32_t size, used, hint;
};

TAILQ_HEAD(mesh_waiters, mesh_qp);
TAILQ_HEAD(mesh_inflows, mesh_inflow);
TAILQ_HEAD(mesh_reads, mesh_read);

struct mesh_conn {
	struct mesh *mesh;
	LIST_ENTRY(mesh_conn) entry;
	struct mesh_node *node; /* whom it leads to; NULL: not known (yet) */
	enum mesh_conn_state state;
	bool called;  /* by us */
	bool manager; /* leads to our manager, and was called for that */
	bool failed;  /* to be closed by its work */
	char peer_text[64];
	struct sockaddr_storage address;
	struct loop_source source;
	struct loop_work work;
	struct loop_timer deadline; /* of the greeting */
	uint32_t events;            /* the source waits for */
	uint64_t heard_ns;          /* last byte */
	uint64_t used_ns;           /* last frame, in or out, but of health checks */
	uint64_t sent, received;    /* bytes, without what TLS adds */
	uint64_t sent_messages, received_messages;
	struct mesh_tls *tls;
	struct mesh_hello own, peer;

	uint8_t *out; /* out_start..out_end wait to be sent */
	size_t out_start, out_end, out_size;
	size_t out_shared; /* counted in mesh->out_shared */
	bool blocked;      /* the socket takes no more now */
	bool dirty;        /* on mesh->dirty */
	LIST_ENTRY(mesh_conn) dirty_entry;

	uint8_t *in; /* in_start..in_end are not handled yet */
	size_t in_start, in_end;
	struct mesh_frame frame; /* the one whose payload is being streamed */
	uint32_t body_left;      /* of its payload */

	struct mesh_flows outflows; /* of struct mesh_qp, our numbers */
	struct mesh_flows inflows;  /* of struct mesh_inflow, the peer's numbers */
	struct mesh_waiters waiters;
	struct mesh_inflows acks;    /* with something to say */
	struct mesh_inflows readers; /* with READs to answer */
};

/* Calls an address. Returns NULL when that failed at once. */
struct mesh_conn *mesh_conn_call(struct mesh *mesh, const struct sockaddr_storage *address,
                                 struct mesh_node *node);
/* Takes over a descriptor that was accepted. */
void mesh_conn_accept(struct mesh *mesh, int fd, const struct sockaddr_storage *address);
/* The greeting is over. */
void mesh_conn_up(struct mesh_conn *conn);
/* Ends it: flows, waiters and node hear of it now. REASON is for the log; NULL: none. */
void mesh_conn_close(struct mesh_conn *conn, const char *reason);

/* The peer did what it may not: counted, logged now and then, and the connection ends. Returns
 * -EPROTO, for handlers. */
int mesh_conn_violation(struct mesh_conn *conn, const char *what);

/* Whether data may be sent now: there is room, and nothing waits. */
bool mesh_conn_has_room(struct mesh_conn *conn);

/* Appends a frame without payload; FIXED may be NULL when the type has none. */
void mesh_conn_put(struct mesh_conn *conn, struct mesh_frame frame, const void *fixed);
/* Room for SIZE bytes behind what waits to be sent; NULL: the connection is being closed. */
uint8_t *mesh_conn_reserve(struct mesh_conn *conn, size_t size);
void mesh_conn_commit(struct mesh_conn *conn, size_t size);
/* Sends HEAD and the pieces at once, behind what waits; what the socket does not take is copied. */
void mesh_conn_send(struct mesh_conn *conn, const void *head, size_t head_size,
                    const struct iovec *iov, unsigned count);
/* Sends what waits. */
void mesh_conn_flush(struct mesh_conn *conn);
void mesh_flush_all(struct mesh *mesh);

/* Waiting for room, or for the connection to be up. */
void mesh_conn_wait(struct mesh_conn *conn, struct mesh_qp *mq);

void mesh_hello_send(struct mesh_conn *conn);
/* Handles what stands in the in-buffer before frames do. Returns 1 when it took something, 0 when
 * more is needed, or a negative errno. */
int mesh_hello_step(struct mesh_conn *conn);
int mesh_handle_proof(struct mesh_conn *conn, const struct mesh_proof *proof);

/* Numbers: an index of 16 bits below a generation. */
int mesh_flows_add(struct mesh_flows *flows, void *item, uint32_t *id);
int mesh_flows_set(struct mesh_flows *flows, uint32_t id, void *item);
void *mesh_flows_get(const struct mesh_flows *flows, uint32_t id);
void mesh_flows_drop(struct mesh_flows *flows, uint32_t id);
void mesh_flows_free(struct mesh_flows *flows);

/* ---- TLS (mesh_tls.c) ---- */

struct mesh_tls_context;

/* Returns 0, or -EINVAL (-ENOTSUP: not built in) with a sentence in ERROR. */
int mesh_tls_context_create(const struct mesh_options *options, struct mesh_tls_context **context,
                            char *error, size_t size);
void mesh_tls_context_destroy(struct mesh_tls_context *context);
struct mesh_tls *mesh_tls_create(struct mesh_tls_context *context, int fd, bool called);
void mesh_tls_destroy(struct mesh_tls *tls);
/* 0: done; -EAGAIN with *EVENTS to wait for; other: failed, the reason is in TEXT. */
int mesh_tls_handshake(struct mesh_tls *tls, uint32_t *events, char *text, size_t size);
/* As readv() and writev(), with a negative errno instead of errno. */
ssize_t mesh_tls_readv(struct mesh_tls *tls, const struct iovec *iov, unsigned count);
ssize_t mesh_tls_writev(struct mesh_tls *tls, const struct iovec *iov, unsigned count);

/* ---- members (mesh_member.c, mesh_manager.c, mesh_worker.c) ---- */

struct mesh_gid {
	struct mesh_gid *next; /* of the same hash */
	struct mesh_node *node;
	LIST_ENTRY(mesh_gid) of_node;
	uint8_t gid[16];
	bool unconfirmed; /* has not been claimed again since mesh_doubt_claims() */
	/* of our own */
	bool fixed;         /* not from the guest's use of it: it stays */
	uint64_t unused_ns; /* since when the guest has not used it; 0: it does */
};

struct mesh_node {
	struct mesh_node *next; /* of the same hash */
	LIST_ENTRY(mesh_node) entry;
	uint32_t id;
	uint8_t state; /* enum mesh_node_state */
	uint8_t flags;
	uint8_t mac[6];
	uint64_t instance;
	struct sockaddr_storage address;
	struct mesh_conn *conn; /* to send on */
	uint64_t call_after_ns; /* no new call before */
	unsigned gid_count;
	LIST_HEAD(mesh_gids, mesh_gid) gids;
	uint64_t changed_ns;   /* its state */
	uint64_t suspected_ns; /* another claims its GID: to be heard of since then; 0: not */
	bool unconfirmed;      /* of an earlier manager: the present one has not named it */
	uint64_t claims_by_ns; /* when claims that were not made again go; 0: none are in doubt */
	uint64_t changes_ns;   /* what its changes of GIDs have used up; see note_change() */
};

#define MESH_HASH 256

struct mesh {
	struct rdma_fabric base;
	struct local_net net;
	struct loop *loop;
	struct mesh_options options;
	struct mesh_tls_context *tls;
	uint64_t instance; /* random */
	uint32_t id;       /* MESH_NODE_NONE until the manager has told */
	uint8_t mac[6];
	bool closing;

	struct loop_source listener;
	struct sockaddr_storage listen_address;
	LIST_HEAD(mesh_conns, mesh_conn) conns, dead, dirty;
	unsigned conn_count, greeting_count;
	size_t out_shared;      /* bytes of buffers beyond MESH_OUT_KEEP each */
	struct loop_work reap;  /* frees the dead */
	struct loop_work flush; /* sends what callbacks outside of work have gathered */

	struct mesh_node *self;
	struct mesh_node *node_table[MESH_HASH];
	LIST_HEAD(mesh_nodes, mesh_node) nodes;
	unsigned node_count;
	struct mesh_gid *gid_table[MESH_HASH];
	struct mesh_gid *reviewed; /* the last of our own that was looked at; NULL: none */
	uint32_t next_id;
	struct loop_timer health;
	uint64_t confirm_by_ns; /* when nodes that are unconfirmed count as silent */

	/* worker */
	struct mesh_conn *manager_conn;
	struct sockaddr_storage manager_address;
	struct loop_timer reconnect;
	uint64_t reconnect_ns; /* the pause before the next try */
	uint64_t manager_instance;
	bool registered;
	bool said_absent;

	struct mesh_eth *eth;
	struct mesh_reads spare_reads;
	uint32_t inflow_count;
};

int mesh_member_init(struct mesh *mesh);
void mesh_member_free(struct mesh *mesh);
struct mesh_node *mesh_node_find(struct mesh *mesh, uint32_t id);
/* Finds or makes; NULL when there are too many, or no memory. */
struct mesh_node *mesh_node_get(struct mesh *mesh, uint32_t id);
void mesh_node_rename(struct mesh *mesh, struct mesh_node *node, uint32_t id);
void mesh_node_forget(struct mesh *mesh, struct mesh_node *node);
void mesh_node_set_state(struct mesh *mesh, struct mesh_node *node, uint8_t state);
/* The connection to send to NODE on: there is one, or it is called. NULL: not now. */
struct mesh_conn *mesh_node_conn(struct mesh *mesh, struct mesh_node *node);
/* The connection is up and its peer's greeting is known. */
void mesh_member_up(struct mesh_conn *conn);
void mesh_member_down(struct mesh_conn *conn);
/* Whom the address leads to, or NULL. */
struct mesh_node *mesh_resolve(struct mesh *mesh, const struct rdma_av *av);
/* NODE uses GID. Returns 1 when that is news, 0 when not, or a negative errno. */
int mesh_claim(struct mesh *mesh, struct mesh_node *node, const uint8_t gid[16]);
/* Whether another live node claims the same GID. */
bool mesh_gid_contested(struct mesh *mesh, const struct mesh_gid *claim);
/* We were out of touch with NODE, or with who told us of it, and may have missed a withdrawal: what
 * it does not claim again within three intervals is dropped. */
void mesh_doubt_claims(struct mesh *mesh, struct mesh_node *node);
/* NODE's own link-local address. */
void mesh_claim_mac(struct mesh *mesh, struct mesh_node *node);
/* We use GID ourselves. */
void mesh_claim_own(struct mesh *mesh, const uint8_t gid[16]);
void mesh_gid_text(const uint8_t gid[16], char text[INET6_ADDRSTRLEN]);
void mesh_gid_of_mac(const uint8_t mac[6], uint8_t gid[16]);
void mesh_address_text(const struct sockaddr_storage *address, char *text, size_t size);
/* The 16 bytes of an address in the protocol: IPv6, or IPv4 as ::ffff:a.b.c.d. */
void mesh_wire_address(const struct sockaddr_storage *address, uint8_t wire[16]);
void mesh_host_address(const uint8_t wire[16], uint16_t port, struct sockaddr_storage *address);
uint16_t mesh_port(const struct sockaddr_storage *address);

void mesh_put_node(struct mesh_conn *conn, const struct mesh_node *node);
/* TYPE: MESH_CLAIM or MESH_UNCLAIM. */
void mesh_put_gid(struct mesh_conn *conn, enum mesh_type type, const struct mesh_node *node,
                  const uint8_t gid[16]);

int mesh_manager_start(struct mesh *mesh, char *error, size_t size);
int mesh_manager_register(struct mesh_conn *conn, const struct mesh_register *request);
void mesh_manager_tell_node(struct mesh *mesh, const struct mesh_node *node);
void mesh_manager_tell_gid(struct mesh *mesh, enum mesh_type type, const struct mesh_node *node,
                           const uint8_t gid[16]);
void mesh_manager_suspect(struct mesh *mesh, const uint8_t gid[16]);
void mesh_manager_lost(struct mesh *mesh, struct mesh_node *node);

/* WAIT_S: seconds to wait for the manager, negative: not at all. 0, or -EINVAL with ERROR. */
int mesh_worker_start(struct mesh *mesh, int wait_s, char *error, size_t size);
void mesh_worker_up(struct mesh_conn *conn);
void mesh_worker_lost(struct mesh *mesh);
void mesh_worker_stop(struct mesh *mesh);
int mesh_worker_welcome(struct mesh_conn *conn, const struct mesh_welcome *welcome);
int mesh_worker_refuse(struct mesh_conn *conn, const struct mesh_refuse *refuse);
int mesh_worker_node(struct mesh_conn *conn, const struct mesh_node_info *info);

int mesh_handle_claim(struct mesh_conn *conn, const struct mesh_claim *claim);
int mesh_handle_unclaim(struct mesh_conn *conn, const struct mesh_claim *claim);

/* The first address of HOST, blocking. Returns 0, or -EINVAL with ERROR. */
int mesh_lookup(const char *host, uint16_t port, struct sockaddr_storage *address, char *error,
                size_t size);
/* Opens mesh->listener on ADDRESS. Returns 0 or a negative errno. */
int mesh_listen(struct mesh *mesh, const struct sockaddr_storage *address);
void mesh_unlisten(struct mesh *mesh);

/* ---- messages from our queue pairs (mesh_send.c) ---- */

/* A message that is out, until it has been answered. */
struct mesh_sent {
	struct rdma_msg *msg;
	uint32_t received; /* payload bytes of a READ that have come back */
	bool fetch;        /* is answered by a RESPONSE or ATOMIC */
	bool whole;        /* all of it has been sent */
	bool done;
};

/* Old values of atomics, for those that are sent again (spec rocev2 7.1). */
struct mesh_replay {
	uint32_t next;
	struct {
		bool used;
		uint32_t psn;
		uint64_t value;
	} old[MESH_WINDOW];
};

/* What the mesh keeps of one of our queue pairs: rdma_qp_fabric_slot(). */
struct mesh_qp {
	struct mesh *mesh;
	struct rdma_qp *qp;
	/* sender */
	struct mesh_conn *conn; /* the flow is open on; NULL: none */
	uint32_t flow;
	uint32_t head, tail; /* of sent, a ring */
	struct mesh_sent sent[MESH_WINDOW];
	uint32_t offset;         /* payload bytes that have gone out of the message under way */
	bool lost;               /* the connection broke: nothing until the timeout */
	bool rewound;            /* messages come again that may be in `sent` */
	bool ask;                /* a PROBE has to come first */
	bool asked;              /* and is out */
	uint16_t mark;           /* of the last PROBE */
	uint32_t msn;            /* messages that were answered well, as AETHs count them */
	struct mesh_conn *waits; /* for room, or to be up */
	TAILQ_ENTRY(mesh_qp) waiter;
	/* responder */
	struct mesh_replay *replay;
	struct mesh_inflow *starved; /* was told that there is no receive */
};

enum rdma_tx mesh_transmit(struct mesh *mesh, struct rdma_msg *msg, size_t *budget);
void mesh_rewind(struct mesh_qp *mq);
/* NULL: no memory. */
struct mesh_qp *mesh_qp_get(struct mesh *mesh, struct rdma_qp *qp);
void mesh_qp_free(struct mesh_qp *mq);
/* The connection is gone. */
void mesh_send_lost(struct mesh_conn *conn);
/* There is room again, or it is up: those that wait go on. */
void mesh_send_wake(struct mesh_conn *conn, unsigned count);

int mesh_handle_ack(struct mesh_conn *conn, const struct mesh_frame *frame);
int mesh_handle_nak(struct mesh_conn *conn, const struct mesh_frame *frame,
                    const struct mesh_nak *nak);
int mesh_handle_ready(struct mesh_conn *conn, const struct mesh_frame *frame);
int mesh_handle_atomic(struct mesh_conn *conn, const struct mesh_frame *frame,
                       const struct mesh_atomic *atomic);
int mesh_response_begin(struct mesh_conn *conn);
/* Where payload of the current frame goes: as mesh_land_*(). */
int mesh_response_map(struct mesh_conn *conn, size_t size, struct iovec *iov, unsigned max);
int mesh_response_moved(struct mesh_conn *conn, size_t mapped, size_t size);
int mesh_response_copy(struct mesh_conn *conn, void *data, size_t size);

/* ---- messages for our queue pairs (mesh_answer.c) ---- */

struct mesh_read {
	struct rdma_inbound in;
	struct rdma_request req;
	TAILQ_ENTRY(mesh_read) entry;
};

/* A flow of the peer's. */
struct mesh_inflow {
	struct mesh_conn *conn;
	uint32_t id;
	uint32_t src_qpn, dst_qpn;
	uint8_t transport;
	struct rdma_av av;
	bool landing;      /* a message is under way, and wanted */
	uint32_t expected; /* payload bytes of it that are still to come, wanted or not */
	struct rdma_request req;
	struct rdma_inbound in;
	bool ack, ready; /* to be said */
	uint32_t ack_psn;
	bool on_acks, on_readers;
	struct mesh_qp *starves; /* whose `starved` is this */
	TAILQ_ENTRY(mesh_inflow) ack_entry, reader_entry;
	unsigned read_count;
	struct mesh_reads reads;
};

int mesh_handle_flow(struct mesh_conn *conn, const struct mesh_frame *frame,
                     const struct mesh_flow *flow);
int mesh_handle_request(struct mesh_conn *conn, const struct mesh_request *request);
int mesh_handle_data(struct mesh_conn *conn);
int mesh_handle_probe(struct mesh_conn *conn, const struct mesh_frame *frame);
int mesh_handle_close(struct mesh_conn *conn, const struct mesh_frame *frame);
int mesh_handle_datagram(struct mesh_conn *conn, const struct mesh_datagram *datagram,
                         uint8_t *payload, size_t size);
/* Host memory for at most SIZE bytes of the current frame's payload: the number of pieces, 0 when
 * it has to be copied or skipped. Then how many of the MAPPED bytes have been filled. */
int mesh_land_map(struct mesh_conn *conn, size_t size, struct iovec *iov, unsigned max);
int mesh_land_moved(struct mesh_conn *conn, size_t mapped, size_t size);
int mesh_land_copy(struct mesh_conn *conn, void *data, size_t size);
/* Says what is to be said, and answers READs while there is room. */
void mesh_answer_pump(struct mesh_conn *conn);
void mesh_answer_lost(struct mesh_conn *conn);
void mesh_recv_posted(struct mesh *mesh, struct rdma_qp *qp);
void mesh_inflow_free(struct mesh_inflow *flow);

/* ---- captures (mesh_trace.c); each does nothing when there is none ---- */

/* Payload bytes BEFORE..NOW of a message of ours have left. */
void mesh_trace_sent(const struct mesh *mesh, const struct rdma_msg *msg, uint32_t before,
                     uint32_t now);
/* What came back for it: of a READ, the last SIZE bytes that were received. */
void mesh_trace_acked(const struct mesh_qp *mq, const struct rdma_msg *msg);
void mesh_trace_nakked(const struct mesh_qp *mq, const struct rdma_msg *msg,
                       const struct mesh_nak *nak);
void mesh_trace_old_value(const struct mesh_qp *mq, const struct rdma_msg *msg, uint64_t value);
void mesh_trace_response(const struct mesh_qp *mq, const struct mesh_sent *sent, size_t size);
/* A READ or an atomic of a peer to QP began, or any message was refused at its begin. */
void mesh_trace_begun(const struct mesh *mesh, const struct rdma_qp *qp,
                      const struct rdma_inbound *in, const struct rdma_request *req);
/* The last SIZE bytes that IN has moved. */
void mesh_trace_landed(const struct mesh *mesh, const struct rdma_inbound *in, size_t size);
/* What QP said to it. */
void mesh_trace_answer(const struct mesh *mesh, const struct rdma_qp *qp,
                       const struct rdma_request *req, enum rdma_verdict verdict,
                       uint8_t rnr_timer);
void mesh_trace_value(const struct mesh *mesh, const struct rdma_qp *qp,
                      const struct rdma_request *req, uint64_t value);

/* ---- Ethernet (mesh_eth.c) ---- */

int mesh_eth_create(struct mesh *mesh, struct net_wire *wire);
void mesh_eth_destroy(struct mesh *mesh);
int mesh_handle_ethernet(struct mesh_conn *conn, const struct mesh_ethernet *head, uint8_t *data,
                         size_t size);
/* The node behind a station, or NULL. */
struct mesh_node *mesh_eth_station(struct mesh *mesh, const uint8_t mac[6]);
void mesh_eth_forget(struct mesh *mesh, const struct mesh_node *node);
void mesh_eth_room(struct mesh *mesh);
/* Nodes have come, gone or changed: whose TAP is the way out? */
void mesh_eth_elect(struct mesh *mesh);

#endif
