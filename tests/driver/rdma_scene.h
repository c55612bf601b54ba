/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scene of a test of verbs: two connected queue pairs of a process, their regions, and a
 * request that succeeds. Tests bend it.
 */
#ifndef ERNIC_TESTS_DRIVER_RDMA_SCENE_H
#define ERNIC_TESTS_DRIVER_RDMA_SCENE_H

#include "env.h"
#include "rdma.h"

#define SCENE_PD       3
#define SCENE_OTHER_PD 4
#define SCENE_BOUNDS   9000u /* of a region: three pages, not whole */
#define SCENE_LENGTH   5000u /* of a message */
#define SCENE_SEED     7
#define SCENE_PAGE     5 /* doorbell page of the process */

/* Groups of opcodes, as bits. */
#define OP(name)  (1u << OP_##name)
#define SENDS     (OP(SEND) | OP(SEND_INV) | OP(SEND_IMM))
#define WRITES    (OP(WRITE) | OP(WRITE_IMM))
#define ATOMICS   (OP(CMP_SWAP) | OP(FETCH_ADD))
#define FETCHES   (OP(READ) | ATOMICS)
#define REMOTES   (WRITES | FETCHES)
#define TRANSFERS (SENDS | REMOTES)
#define RECEIVES  (SENDS | OP(WRITE_IMM))
#define RC        (1u << QPT_RC)
#define UC        (1u << QPT_UC)
#define UD        (1u << QPT_UD)

/* Opcodes that a type of QP has, local ones left out. */
extern const unsigned scene_opcodes[4];

struct scene {
	struct env *env;
	struct rdma *rdma;
	enum rdma_qp_type type;
	struct rdma_cq *cq_a, *cq_b;
	struct rdma_qp *a, *b;
	struct rdma_mr src, dst, spare, extra;
	bool has_extra;
	struct rdma_send send;
	struct rdma_recv recv;
	bool no_recv;
	uint32_t ah;
	size_t used; /* of memory, before */
};

void scene_open(struct env *env, struct rdma **rdma);

/* Every function asserts that what it does succeeds. */
struct scene scene_make(struct env *env, struct rdma *rdma, enum rdma_qp_type type, uint8_t op);
void scene_end(struct scene *s); /* destroys what is left, and gives memory back */

uint32_t scene_size(const struct scene *s); /* bytes of the message */
void scene_region(struct scene *s, struct rdma_mr *mr, uint32_t pd, uint32_t flags);

/* Gives the window `spare` a range, so that SEND_INV has something to invalidate. */
void scene_bind(struct scene *s);

/* Fills the regions as the request expects to find them. */
void scene_target(struct scene *s);

/* A scene in which the request succeeds, and everything that it changes is looked at. */
void scene_run(struct env *env, struct rdma *rdma, enum rdma_qp_type type, uint8_t op);

#endif
