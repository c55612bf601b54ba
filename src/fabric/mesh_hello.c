/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The greeting at the begin of a connection, and the proof of the secret.
 *
 * Both sides send a hello at once. One of another version is refused, with a line in both logs: the
 * refused side has our hello too. When there is a secret, each side then proves that it knows it,
 * by an HMAC over both hellos, which hold a fresh random number of each side, and over who called,
 * so that a proof cannot be sent back to its maker. Frames are taken from a peer when its proof is
 * good; they are sent when both are up, which the first frame of the peer shows.
 */
#include "fabric/mesh_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "base/counter.h"
#include "base/log.h"

COUNTER(fabric_mesh_not_mesh, "connections that did not begin with a mesh node's greeting");
COUNTER(fabric_mesh_other_version, "connections of nodes of another version, refused");
COUNTER(fabric_mesh_bad_proof, "connections whose peer does not know the secret, refused");
COUNTER(fabric_mesh_misdirected,
        "connections that were meant for another node, or came from ourselves");

void mesh_hello_send(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;
	struct mesh_hello *hello = &conn->own;
	uint32_t flags = (mesh->options.secret_size > 0 ? MESH_HELLO_SECRET : 0u) |
	                 (mesh->options.manager ? MESH_HELLO_MANAGER : 0u);
	uint8_t *out = mesh_conn_reserve(conn, sizeof(*hello));

	mesh_hello_init(hello);
	hello->flags = be32_make(flags);
	hello->node = be32_make(mesh->id);
	hello->peer = be32_make(conn->node ? conn->node->id : MESH_NODE_NONE);
	hello->instance = be64_make(mesh->instance);
	if (!out || getrandom(hello->nonce, sizeof(hello->nonce), 0) != sizeof(hello->nonce))
		return; /* the deadline ends it */
	memcpy(out, hello, sizeof(*hello));
	mesh_conn_commit(conn, sizeof(*hello));
}

/* What the side that CALLED has to prove. */
static void make_proof(const struct mesh_conn *conn, bool called, uint8_t proof[MESH_PROOF_SIZE])
{
	const struct mesh_options *options = &conn->mesh->options;
	uint8_t role = called;
	const struct mesh_hello *caller = conn->called ? &conn->own : &conn->peer;
	const struct mesh_hello *callee = conn->called ? &conn->peer : &conn->own;
	struct iovec pieces[] = {
	        {&role, 1},
	        {(void *)(uintptr_t)caller, sizeof(*caller)},
	        {(void *)(uintptr_t)callee, sizeof(*callee)},
	};

	hmac_sha256(options->secret, options->secret_size, pieces, ARRAY_SIZE(pieces), proof);
}

static void send_proof(struct mesh_conn *conn)
{
	struct mesh_proof proof;

	make_proof(conn, conn->called, proof.proof);
	mesh_conn_put(conn, mesh_frame_make(MESH_PROOF, sizeof(proof), 0, 0), &proof);
}

int mesh_handle_proof(struct mesh_conn *conn, const struct mesh_proof *proof)
{
	uint8_t wanted[MESH_PROOF_SIZE];
	unsigned differs = 0;

	if (conn->state != MESH_CONN_PROVING)
		return mesh_conn_violation(conn, "a proof that nobody asked for");
	make_proof(conn, !conn->called, wanted);
	for (unsigned i = 0; i < sizeof(wanted); i++) /* in constant time */
		differs |= (unsigned)(wanted[i] ^ proof->proof[i]);
	if (differs) {
		counter_inc(&fabric_mesh_bad_proof);
		log_guest("mesh: %s does not know the secret: refused", conn->peer_text);
		return -EACCES;
	}
	mesh_conn_up(conn);
	return 0;
}

static int refuse_version(struct mesh_conn *conn, unsigned version)
{
	counter_inc(&fabric_mesh_other_version);
	if (conn->manager)
		log_warn("mesh: the manager at %s speaks version %u of the protocol, this server "
		         "version %u: run the same release on all nodes",
		         conn->peer_text, version, MESH_VERSION);
	else
		log_guest("mesh: refused %s, which speaks version %u of the protocol, not %u: run "
		          "the same release on all nodes",
		          conn->peer_text, version, MESH_VERSION);
	return -EACCES;
}

static int check_secret(struct mesh_conn *conn)
{
	bool wants = be32_get(conn->peer.flags) & MESH_HELLO_SECRET;

	if (wants == (conn->mesh->options.secret_size > 0))
		return 0;
	counter_inc(&fabric_mesh_bad_proof);
	log_guest("mesh: %s %s a secret and this server %s: give secret= to all nodes or to none",
	          conn->peer_text, wants ? "wants" : "has no", wants ? "has none" : "wants one");
	return -EACCES;
}

/* Whether the two ends agree on who they are. */
static int check_ends(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;
	uint32_t meant = be32_get(conn->peer.peer);
	bool itself = be64_get(conn->peer.instance) == mesh->instance;
	bool other = conn->node && conn->node->instance != 0 &&
	             conn->node->instance != be64_get(conn->peer.instance) && !conn->manager;

	if (!itself && !other && (meant == MESH_NODE_NONE || meant == mesh->id))
		return 0;
	counter_inc(&fabric_mesh_misdirected);
	if (itself)
		log_guest("mesh: %s is this server itself", conn->peer_text);
	return -ECONNRESET;
}

int mesh_hello_step(struct mesh_conn *conn)
{
	size_t size = conn->in_end - conn->in_start;
	struct mesh_hello *peer = &conn->peer;

	if (conn->state < MESH_CONN_GREETING)
		return 0;
	memcpy(peer, conn->in + conn->in_start, size < sizeof(*peer) ? size : sizeof(*peer));
	if (size >= MESH_HELLO_FIXED && !mesh_hello_recognized(peer)) {
		counter_inc(&fabric_mesh_not_mesh);
		log_guest("mesh: %s is no mesh node: refused", conn->peer_text);
		return -EACCES;
	}
	if (size >= MESH_HELLO_FIXED && be16_get(peer->version) != MESH_VERSION)
		return refuse_version(conn, be16_get(peer->version));
	if (size < sizeof(*peer))
		return 0;
	conn->in_start += sizeof(*peer);
	int error = be16_get(peer->size) == sizeof(*peer) ? check_secret(conn) : -EPROTO;

	if (!error)
		error = check_ends(conn);
	if (error)
		return error;
	if (conn->mesh->options.secret_size > 0) {
		conn->state = MESH_CONN_PROVING;
		send_proof(conn);
	} else {
		mesh_conn_up(conn);
	}
	return 1;
}
