/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The protocol of the mesh: what stands in the stream between two nodes. Stays inside the room.
 *
 * A connection begins with a struct mesh_hello of each side; then come frames: a header, the fixed
 * part of its type, and for some types payload up to the size that the header says. The manual (The
 * mesh) tells the conversations. All numbers are big-endian; fields that are not used are 0.
 */
#ifndef ERNIC_FABRIC_MESH_PROTO_H
#define ERNIC_FABRIC_MESH_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "rdma/transport.h"

#define MESH_VERSION    2 /* changes with every change that an older peer would not understand */
#define MESH_MAGIC_SIZE 8
#define MESH_NONCE_SIZE 32
#define MESH_PROOF_SIZE 32 /* SHA-256 */

#define MESH_NODE_NONE    0xffffffffu /* a worker without an id; as a destination: everybody */
#define MESH_NODE_MANAGER 0u

/* ---- the greeting ---- */

enum mesh_hello_flag {
	MESH_HELLO_SECRET = 1,  /* its sender wants proof of the secret */
	MESH_HELLO_MANAGER = 2, /* its sender is the manager of a mesh */
};

/* The first 12 bytes are the same in every version, so that a refusal can say which it was. */
struct mesh_hello {
	uint8_t magic[MESH_MAGIC_SIZE];
	be16 version;
	be16 size; /* of this structure */
	be32 flags;
	be32 node; /* its sender's id, or MESH_NODE_NONE */
	be32 peer; /* whom it thinks to talk to; MESH_NODE_NONE when it was called */
	be32 zero;
	be64 instance; /* random, the same as long as its sender's process lives */
	uint8_t nonce[MESH_NONCE_SIZE];
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_hello) == 68, "wire format");
#define MESH_HELLO_FIXED 12

void mesh_hello_init(struct mesh_hello *hello);

/* Whether the first bytes are those of a mesh node, of whatever version. */
bool mesh_hello_recognized(const struct mesh_hello *hello);

/* ---- frames ---- */

enum mesh_type {
	/* of the connection */
	MESH_PROOF = 1, /* that its sender knows the secret */
	MESH_PING,
	MESH_PONG,
	/* of the membership */
	MESH_REGISTER, /* worker to manager: let me in */
	MESH_WELCOME,  /* manager to worker: who you are */
	MESH_REFUSE,   /* manager to worker: you are not */
	MESH_NODE,     /* manager to worker: a node and where it is */
	MESH_CLAIM,    /* a node uses a GID; relayed by the manager */
	/* of a queue pair and its peer; `flow` is the sender's number for the pair */
	MESH_FLOW,    /* who talks to whom */
	MESH_REQUEST, /* a message begins; payload */
	MESH_DATA,    /* it goes on; payload */
	MESH_PROBE,   /* what have you executed? */
	MESH_CLOSE,   /* the flow ends */
	/* the other way */
	MESH_ACK,      /* all before `psn` is executed */
	MESH_NAK,      /* the message of `psn` was refused */
	MESH_RESPONSE, /* payload of a READ */
	MESH_ATOMIC,   /* the old value */
	MESH_READY,    /* a receive was posted after a NAK that there was none */
	/* without a flow */
	MESH_DATAGRAM, /* a message of an unreliable datagram queue pair */
	MESH_ETHERNET, /* a frame of the emulated wire */
	/* of the membership again */
	MESH_UNCLAIM, /* a node does not use a GID any more; relayed by the manager */
	MESH_TYPES
};

enum mesh_frame_flag {
	MESH_PROBED = 1, /* an ACK that answers a PROBE: all that was sent before it has arrived */
};

struct mesh_frame {
	uint8_t type;  /* enum mesh_type */
	uint8_t flags; /* enum mesh_frame_flag */
	be16 mark;     /* of a PROBE, and of the ACK that answers it */
	be32 size;     /* bytes that follow */
	be32 flow;
	be32 psn; /* 24 bits */
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_frame) == 16, "wire format");

/* Payload of a frame, at most: what can be sent of a message before it is another's turn. */
#define MESH_PIECE_MAX (64 * 1024)

struct mesh_proof {
	uint8_t proof[MESH_PROOF_SIZE];
} __attribute__((packed));

enum mesh_node_flag { MESH_NODE_TAP = 1 }; /* it has a way out of the mesh */

struct mesh_register {
	be32 wanted;         /* the id it had, or MESH_NODE_NONE */
	uint8_t address[16]; /* where it can be called; 0: where this connection comes from */
	be16 port;
	uint8_t flags;
	uint8_t zero;
	uint8_t mac[6];
	be16 zero2;
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_register) == 32, "wire format");

struct mesh_welcome {
	be32 node;
	be32 interval_ms; /* of health checks */
} __attribute__((packed));

enum mesh_reason {
	MESH_REASON_ID = 1, /* the id is another node's: ask for a new one */
	MESH_REASON_FULL,   /* no node more */
	MESH_REASON_ROLE,   /* not a manager */
};

struct mesh_refuse {
	be32 reason;
} __attribute__((packed));

enum mesh_node_state { MESH_NODE_LIVE = 1, MESH_NODE_SILENT, MESH_NODE_FORGOTTEN };

struct mesh_node_info {
	be32 node;
	uint8_t address[16];
	be16 port;
	uint8_t state; /* enum mesh_node_state */
	uint8_t flags;
	be64 instance;
	uint8_t mac[6];
	be16 zero;
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_node_info) == 40, "wire format");

struct mesh_claim {
	be32 node;
	uint8_t gid[16];
} __attribute__((packed));

/* An address handle: the headers in front of a RoCEv2 packet that goes that way. */
struct mesh_address {
	uint8_t size;
	uint8_t zero;
	uint8_t header[RDMA_TEMPLATE_MAX];
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_address) == 68, "wire format");

struct mesh_flow {
	be32 src_qpn, dst_qpn;
	uint8_t transport; /* enum rdma_qp_type, RC or UC */
	uint8_t zero[3];
	struct mesh_address address;
} __attribute__((packed));

struct mesh_request {
	uint8_t opcode; /* enum rdma_opcode */
	uint8_t solicited;
	be16 zero;
	be32 packets, length;
	uint8_t imm[4]; /* as it stood in memory; SEND_INV: the key, big-endian */
	be32 rkey;
	be64 va, swap_add, compare;
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_request) == 44, "wire format");

struct mesh_nak {
	uint8_t verdict; /* enum rdma_verdict: RNR, INV_REQ, ACCESS or OPER */
	uint8_t rnr_timer;
	be16 zero;
} __attribute__((packed));

struct mesh_atomic {
	be64 value;
} __attribute__((packed));

struct mesh_datagram {
	be32 src_qpn, dst_qpn, qkey;
	uint8_t opcode;
	uint8_t solicited;
	be16 zero;
	uint8_t imm[4];
	struct mesh_address address;
} __attribute__((packed));

enum mesh_ethernet_flag {
	MESH_ETH_CSUM_PARTIAL = 1,
	MESH_ETH_CSUM_VALID = 2,
	MESH_ETH_VLAN = 4,
	MESH_ETH_ECN = 8,
};

struct mesh_ethernet {
	be32 dst, src; /* nodes; dst MESH_NODE_NONE: all */
	uint8_t flags; /* enum mesh_ethernet_flag */
	uint8_t gso;   /* enum net_gso */
	be16 csum_start, csum_offset, vlan_tci, gso_size, hdr_size;
	be16 zero;
} __attribute__((packed));
_Static_assert(sizeof(struct mesh_ethernet) == 22, "wire format");

/* ---- what is known about each type ---- */

struct mesh_type_info {
	const char *name;
	uint16_t fixed;       /* bytes behind the header that every frame of the type has */
	uint32_t payload_max; /* bytes that may follow these */
	bool streamed;        /* payload need not be there as a whole before it is handled */
};

/* NULL when there is no such type. */
const struct mesh_type_info *mesh_type_info(unsigned type);

/* Whether header and type fit each other: the total check of a frame before its handler. */
bool mesh_frame_valid(const struct mesh_frame *frame);

struct mesh_frame mesh_frame_make(enum mesh_type type, size_t size, uint32_t flow, uint32_t psn);

/* Between the engine's structures and the wire's. get: 0, or -EINVAL. */
void mesh_address_put(struct mesh_address *wire, const struct rdma_av *av);
int mesh_address_get(const struct mesh_address *wire, struct rdma_av *av);
void mesh_request_put(struct mesh_request *wire, const struct rdma_request *req);
int mesh_request_get(const struct mesh_request *wire, struct rdma_request *req);

#endif
