/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fake guest with its RDMA function up: what the tests of the RDMA queues stand on. It does what
 * the two drivers do (spec ionic-rdma): the kernel's for everything that is made, the application's
 * library for queues and doorbells. A step that fails ends the test, unless it returns a status.
 */
#ifndef ERNIC_TESTS_UNIT_IONIC_RDMA_RIG_H
#define ERNIC_TESTS_UNIT_IONIC_RDMA_RIG_H

#include "fake_guest.h"
#include "ionic/rdma_if.h"
#include "ionic/rdma_lif.h"
#include "rdma/rdma.h"

#define RIG_EQS         4
#define RIG_EQ_VECTOR   1 /* of EQ 0; the others follow */
#define RIG_EQ_DEPTH    4 /* exponents */
#define RIG_AQ_DEPTH    4
#define RIG_ADMIN_DEPTH 4

struct rdma_rig;

/* A ring that the device writes, as its reader sees it. */
struct rig_cq {
	struct rdma_rig *rig;
	uint32_t id, depth;
	uint16_t dbid;
	uint64_t base;      /* contiguous in the guest, also when told by a page table */
	uint32_t cons;      /* position */
	uint32_t arm_count; /* doorbells so far */
};

struct rig_wq {
	uint64_t base;
	uint32_t depth, stride; /* exponents */
	uint32_t prod;          /* index */
};

struct rig_qp {
	struct rdma_rig *rig;
	uint32_t qpn, pd;
	uint16_t dbid;
	struct rig_wq sq, rq;
	struct rig_cq *cq;
};

struct rig_mr {
	uint64_t addr; /* guest memory; also the address that its users call it by */
	uint64_t size;
	uint32_t key;
};

struct rdma_rig {
	struct fake_guest guest;
	uint64_t eq[RIG_EQS];
	uint32_t eq_cons[RIG_EQS];
	struct rig_cq admin_cq;
	uint64_t aq;
	uint32_t aq_prod;
	uint32_t aq_last; /* first stride of the last command */
	uint32_t next_key;
};

/* Probed, with EQs, admin queue and loopback fabric. */
void rig_create(struct rdma_rig *rig);
void rig_destroy(struct rdma_rig *rig);

/* Steps of bring-up, for those who want to begin themselves. */
struct rig_command {
	unsigned opcode; /* 50 to 53 */
	uint32_t id, cid;
	unsigned depth, stride; /* log2 */
	uint64_t addr;
};
int rig_execute(struct rdma_rig *rig, const struct rig_command *command);

/* rig_command(&rig, opcode, id, cid, depth, stride, addr) */
#define rig_command(rig, ...) rig_execute(rig, &(const struct rig_command){__VA_ARGS__})
void rig_bring_up(struct rdma_rig *rig);

/* Posts LEN bytes of body in as many strides as they take, rings, and runs. Returns the status of
 * the completion, 0 without its error bit; -1 when there is none. */
int rig_admin(struct rdma_rig *rig, uint8_t op, union ionic_rdma_admin *wqe, uint16_t len);
void rig_admin_post(struct rdma_rig *rig, uint8_t op, union ionic_rdma_admin *wqe, uint16_t len);
void rig_admin_ring(struct rdma_rig *rig);
int rig_admin_result(struct rdma_rig *rig);

/* Any doorbell: slot of enum ionic_db_slot, page of its owner. No turn of the loop. */
void rig_doorbell(struct rdma_rig *rig, uint16_t page, unsigned slot, uint32_t id, unsigned ring,
                  uint32_t index);

/* A CQ of 2^DEPTH entries, in pages if DBID is a process's and it has several. */
int rig_cq_create(struct rdma_rig *rig, struct rig_cq *cq, uint32_t id, unsigned depth,
                  uint16_t dbid);
/* The next entry, consumed but not told so; false when there is none. */
bool rig_cq_poll(struct rig_cq *cq, union ionic_rdma_cqe *cqe);
void rig_cq_consume(struct rig_cq *cq); /* doorbell ring 0 */
void rig_cq_arm(struct rig_cq *cq, bool solicited);

/* The next event of EQ n as (type, code, id), or false. */
struct rig_event {
	unsigned type, code;
	uint32_t id;
};
bool rig_event(struct rdma_rig *rig, unsigned eq, struct rig_event *event);
void rig_unmask(struct rdma_rig *rig, unsigned eq); /* what the handler does when it is done */

/* A queue pair with both queues on CQ; TYPE as in CREATE_QP. */
int rig_qp_create(struct rdma_rig *rig, struct rig_qp *qp, struct rig_cq *cq, uint32_t qpn,
                  unsigned type, uint16_t dbid);
int rig_qp_modify(struct rig_qp *qp, uint32_t mask, const struct rdma_qp_attr *attr);
int rig_qp_state(struct rig_qp *qp, enum rdma_qp_state state);
int rig_qp_destroy(struct rig_qp *qp);
/* RESET to RTS, the other end being PEER (may be itself); a datagram QP with Q_Key 0x11111111. */
void rig_qp_connect(struct rig_qp *qp, const struct rig_qp *peer);

/* Puts a request of SIZE bytes into the next slot; no doorbell. */
void rig_post_send(struct rig_qp *qp, union ionic_rdma_wqe *wqe, size_t size);
void rig_post_recv(struct rig_qp *qp, uint64_t wqe_id, const struct rig_mr *mr, uint64_t offset,
                   uint32_t size);
void rig_ring_send(struct rig_qp *qp); /* ... and the loop turned */
void rig_ring_recv(struct rig_qp *qp);

/* A region of SIZE bytes of fresh memory. */
void rig_mr_create(struct rdma_rig *rig, struct rig_mr *mr, uint32_t index, uint32_t pd,
                   uint64_t size, uint16_t flags);
int rig_ah_create(struct rdma_rig *rig, uint32_t id, uint32_t pd);

/* Requests with one SGE. FLAGS are those of the WQE. */
union ionic_rdma_wqe rig_wqe_send(uint8_t op, uint16_t flags, const struct rig_mr *mr,
                                  uint64_t offset, uint32_t size);
union ionic_rdma_wqe rig_wqe_rdma(uint8_t op, uint16_t flags, const struct rig_mr *local,
                                  uint32_t size, const struct rig_mr *remote);

#define RIG_SIGNALED  8
#define RIG_SOLICITED 2
#define RIG_INLINE    4
#define RIG_ALL_ACCESS                                                                             \
	(RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ |            \
	 RDMA_ACCESS_REMOTE_ATOMIC | RDMA_ACCESS_MW_BIND)

/* Parts of a completion. */
static inline unsigned cqe_type(const union ionic_rdma_cqe *cqe)
{
	return be32_get(cqe->any.qid_type_flags) >> 5 & 7;
}

static inline uint32_t cqe_qid(const union ionic_rdma_cqe *cqe)
{
	return be32_get(cqe->any.qid_type_flags) >> 8;
}

static inline bool cqe_error(const union ionic_rdma_cqe *cqe)
{
	return be32_get(cqe->any.qid_type_flags) >> 1 & 1;
}

static inline uint32_t cqe_status(const union ionic_rdma_cqe *cqe)
{
	return be32_get(cqe->any.status_length);
}

uint64_t rig_counter(const char *name);

#endif
