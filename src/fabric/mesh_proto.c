/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The protocol of the mesh: the table of frame types, and structures to and from the wire. */
#include "fabric/mesh_proto.h"

#include <errno.h>

#include "net/net.h"

static const uint8_t magic[MESH_MAGIC_SIZE] = {'E', 'R', 'N', 'I', 'C', 'm', 's', 'h'};

static const struct mesh_type_info types[MESH_TYPES] = {
        [MESH_PROOF] = {"PROOF", sizeof(struct mesh_proof), 0, false},
        [MESH_PING] = {"PING", 0, 0, false},
        [MESH_PONG] = {"PONG", 0, 0, false},
        [MESH_REGISTER] = {"REGISTER", sizeof(struct mesh_register), 0, false},
        [MESH_WELCOME] = {"WELCOME", sizeof(struct mesh_welcome), 0, false},
        [MESH_REFUSE] = {"REFUSE", sizeof(struct mesh_refuse), 0, false},
        [MESH_NODE] = {"NODE", sizeof(struct mesh_node_info), 0, false},
        [MESH_CLAIM] = {"CLAIM", sizeof(struct mesh_claim), 0, false},
        [MESH_FLOW] = {"FLOW", sizeof(struct mesh_flow), 0, false},
        [MESH_REQUEST] = {"REQUEST", sizeof(struct mesh_request), MESH_PIECE_MAX, true},
        [MESH_DATA] = {"DATA", 0, MESH_PIECE_MAX, true},
        [MESH_PROBE] = {"PROBE", 0, 0, false},
        [MESH_CLOSE] = {"CLOSE", 0, 0, false},
        [MESH_ACK] = {"ACK", 0, 0, false},
        [MESH_NAK] = {"NAK", sizeof(struct mesh_nak), 0, false},
        [MESH_RESPONSE] = {"RESPONSE", 0, MESH_PIECE_MAX, true},
        [MESH_ATOMIC] = {"ATOMIC", sizeof(struct mesh_atomic), 0, false},
        [MESH_READY] = {"READY", 0, 0, false},
        [MESH_DATAGRAM] = {"DATAGRAM", sizeof(struct mesh_datagram), 4096, false},
        [MESH_ETHERNET] = {"ETHERNET", sizeof(struct mesh_ethernet), NET_MAX_FRAME, false},
        [MESH_UNCLAIM] = {"UNCLAIM", sizeof(struct mesh_claim), 0, false},
};

void mesh_hello_init(struct mesh_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	memcpy(hello->magic, magic, sizeof(magic));
	hello->version = be16_make(MESH_VERSION);
	hello->size = be16_make(sizeof(*hello));
}

bool mesh_hello_recognized(const struct mesh_hello *hello)
{
	return memcmp(hello->magic, magic, sizeof(magic)) == 0;
}

const struct mesh_type_info *mesh_type_info(unsigned type)
{
	return type < MESH_TYPES && types[type].name ? &types[type] : NULL;
}

bool mesh_frame_valid(const struct mesh_frame *frame)
{
	const struct mesh_type_info *info = mesh_type_info(frame->type);
	uint32_t size = be32_get(frame->size);

	return info && size >= info->fixed && size - info->fixed <= info->payload_max &&
	       be32_get(frame->psn) >> 24 == 0;
}

struct mesh_frame mesh_frame_make(enum mesh_type type, size_t size, uint32_t flow, uint32_t psn)
{
	return (struct mesh_frame){.type = (uint8_t)type,
	                           .size = be32_make((uint32_t)size),
	                           .flow = be32_make(flow),
	                           .psn = be32_make(psn)};
}

void mesh_address_put(struct mesh_address *wire, const struct rdma_av *av)
{
	memset(wire, 0, sizeof(*wire));
	wire->size = av->template_size;
	memcpy(wire->header, av->header, av->template_size);
}

int mesh_address_get(const struct mesh_address *wire, struct rdma_av *av)
{
	if (wire->size > sizeof(wire->header))
		return -EINVAL;
	return rdma_av_parse(wire->header, wire->size, av);
}

void mesh_request_put(struct mesh_request *wire, const struct rdma_request *req)
{
	be32 key = be32_make(req->inv_key);

	memset(wire, 0, sizeof(*wire));
	wire->opcode = req->opcode;
	wire->solicited = req->solicited;
	wire->packets = be32_make(req->packets);
	wire->length = be32_make(req->length);
	if (req->opcode == RDMA_SEND_INV)
		memcpy(wire->imm, &key, sizeof(key));
	else
		memcpy(wire->imm, &req->imm, sizeof(req->imm));
	wire->rkey = be32_make(req->rkey);
	wire->va = be64_make(req->va);
	wire->swap_add = be64_make(req->swap_add);
	wire->compare = be64_make(req->compare);
}

int mesh_request_get(const struct mesh_request *wire, struct rdma_request *req)
{
	be32 key;

	req->opcode = wire->opcode;
	req->solicited = wire->solicited;
	req->packets = be32_get(wire->packets);
	req->length = be32_get(wire->length);
	if (req->opcode == RDMA_SEND_INV) {
		memcpy(&key, wire->imm, sizeof(key));
		req->inv_key = be32_get(key);
	} else {
		memcpy(&req->imm, wire->imm, sizeof(req->imm));
	}
	req->rkey = be32_get(wire->rkey);
	req->va = be64_get(wire->va);
	req->swap_add = be64_get(wire->swap_add);
	req->compare = be64_get(wire->compare);
	/* what the engine takes for granted of a fabric */
	if (req->opcode >= RDMA_OPCODES || req->length > RDMA_MESSAGE_MAX || req->packets == 0 ||
	    req->packets >> 24 != 0)
		return -EINVAL;
	return 0;
}
