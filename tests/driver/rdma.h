/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Verbs of the driver model: what ionic_rdma and libionic do together, for tests and benchmarks.
 *
 * Results are those of nic.h: 0, a negative errno, or the positive status of a command that the
 * device refused (enum rdma_admin_status). The structures are open: a hostile test may bend them.
 *
 * Life:  nic_start -> rdma_open -> (regions, CQs, queue pairs, traffic) -> rdma_close
 *
 * One rdma_cq is one CQ of the device. Completions are put back into the order of the requests as
 * the driver does it (5.3), and everything that only a broken device can do is a complaint of the
 * NIC. Objects that a closed function left behind may be freed with their _free() functions.
 *
 *	rdma.c		the function: bring-up, event queues, admin queue, doorbells
 *	rdma_object.c	regions, CQs, queue pairs, address handles
 *	rdma_data.c	posting, polling
 *
 * Section numbers are those of spec ionic-rdma.
 */
#ifndef ERNIC_TESTS_DRIVER_RDMA_H
#define ERNIC_TESTS_DRIVER_RDMA_H

#include "nic.h"
#include "rdma_abi.h"

#define RDMA_EQS_MAX     32
#define RDMA_AQ_LOG2     9
#define RDMA_ADMIN_LOG2  10 /* of the admin CQ */
#define RDMA_EQ_LOG2     10
#define RDMA_TEMPLATE    42
#define RDMA_GRH         40
#define RDMA_TABLE_BYTES (1u << 20) /* memory for page tables that the device copies */

struct rdma_slots {
	uint8_t aq, sq, rq, cq;
};

struct rdma_identity {
	uint8_t version, max_stride, udma_shift, stats_type;
	uint32_t qps, cqs, mrs, ahs, eqs;
	struct rdma_slots slot; /* of doorbells */
};

struct rdma_eq {
	uint64_t ring;
	unsigned vector;
	int eventfd;
	uint32_t cons;
	uint64_t events;
};

/* A ring that the device reads or writes, in pages or contiguous. */
struct rdma_ring {
	uint64_t base;   /* contiguous in guest memory, whatever the device is told */
	uint64_t *pages; /* NULL: told as one piece */
	uint8_t log2, stride_log2;
};

struct rdma_cq {
	struct rdma *rdma;
	uint32_t id;
	uint16_t page; /* doorbell page of its process */
	struct rdma_ring ring;
	uint32_t cons;
	uint32_t told; /* consumer index that the device knows */
	uint32_t arms;
	struct rdma_qp *current; /* may have more to report */
	bool failed;             /* an event said so */
	uint64_t notified;       /* events */
};

/* A request in a queue, as the driver remembers it. */
struct rdma_slot {
	uint64_t wr_id;
	uint8_t op;
	bool remote, signaled, done;
	uint8_t status;
};

struct rdma_wq {
	struct rdma_ring ring;
	struct rdma_cq *cq;
	struct rdma_slot *slot;
	uint32_t prod, cons;
	bool flushing; /* all that is left ends with WC_FLUSH */
};

struct rdma_qp {
	struct rdma *rdma;
	uint32_t id, pd;
	enum rdma_qp_type type;
	uint16_t page;
	uint32_t qkey;
	struct rdma_wq sq, rq;
	uint32_t msn_posted, msn_done, msn_retired; /* remote requests */
	uint32_t events;                            /* bit n: event of code n came */
};

struct rdma {
	struct nic *nic;
	struct rdma_identity id;
	unsigned eq_count;
	struct rdma_eq eq[RDMA_EQS_MAX];
	struct rdma_cq admin_cq;
	uint64_t aq_ring;
	uint32_t aq_prod;                      /* strides */
	uint32_t aq_first[1u << RDMA_AQ_LOG2]; /* first stride of the commands outstanding */
	uint32_t aq_head, aq_tail;             /* of aq_first, run on */
	bool aq_deferred;                      /* rdma_admin() posts, rdma_admin_sync() waits */
	int aq_failed;                         /* first status of the deferred */
	uint64_t table, scratch;               /* page tables; query blocks and templates */
	uint32_t table_used;                   /* bytes */
	uint32_t next_mr, next_cq, next_qp, next_ah;
	uint8_t next_key;
	struct rdma_cq **cqs; /* by id */
	struct rdma_qp **qps;
};

/* ---- the function (rdma.c) ---- */

/* Brings the function up (2.4) on a NIC that is up or probed. */
int rdma_open(struct rdma **rdma, struct nic *nic);

/* RDMA_RESET_LIF and the end of it all; accepts NULL. Memory of the guest is taken back when
 * nothing else was taken since. */
int rdma_close(struct rdma *rdma);

/* ... without a word to the device. */
void rdma_free(struct rdma *rdma);

/* The command alone, through the AdminQ. */
int rdma_reset_lif(struct nic *nic);

/* One admin command with LEN bytes of body: header and posting are done here. When deferred it
 * only posts, and returns 0. */
int rdma_admin(struct rdma *rdma, enum rdma_admin_op op, union rdma_admin_cmd *cmd, unsigned len);

/* From now on commands are posted without waiting; rdma_admin_sync() waits for all of them, ends
 * that, and returns the first status that was not 0. */
void rdma_admin_defer(struct rdma *rdma);
int rdma_admin_sync(struct rdma *rdma);

/* Waits until at most LEFT commands are outstanding. */
int rdma_admin_wait(struct rdma *rdma, uint32_t left);

/* Room for a page table of COUNT entries that the device copies at once. Guest address, or 0. */
uint64_t rdma_take_table(struct rdma *rdma, uint32_t count);

/* Writes a doorbell on the page of a process. */
int rdma_doorbell(struct rdma *rdma, uint16_t page, uint8_t slot, unsigned ring, uint32_t id,
                  uint32_t index);

/* Takes what is in the event queues: QPs and CQs remember. Returns the number of events. */
int rdma_events(struct rdma *rdma);
/* Waits for events of an event queue, by its interrupt, and takes them. Returns their number, 0
 * when there was none in time, or a negative errno. */
int rdma_events_wait(struct rdma *rdma, unsigned eq, int timeout_ms);

/* ---- objects (rdma_object.c) ---- */

struct rdma_mr_config {
	uint32_t pd;
	uint32_t flags; /* MRF_* */
	size_t size;
	uint64_t va;        /* 0: one that differs from all addresses of memory */
	uint64_t addr;      /* guest address of memory to use, 0: is taken */
	uint8_t page_shift; /* 0: 12 */
	bool scattered;     /* pages in reverse order */
};

struct rdma_mr {
	struct rdma *rdma;
	uint32_t key, pd;
	uint64_t va, addr;
	size_t size;
	bool scattered;
};

int rdma_mr_create(struct rdma *rdma, struct rdma_mr *mr, const struct rdma_mr_config *config);
/* A region for REG_MR (MRF_FAST) or a window (MRF_MW_*), without pages. */
int rdma_mr_create_empty(struct rdma *rdma, struct rdma_mr *mr, uint32_t pd, uint32_t flags);
int rdma_mr_destroy(struct rdma_mr *mr);

/* Host address of byte OFFSET; the bytes that follow on the page are behind it. */
void *rdma_mr_at(const struct rdma_mr *mr, size_t offset);
void rdma_mr_fill(const struct rdma_mr *mr, size_t offset, size_t size, uint32_t seed);
/* Whether SIZE bytes are as rdma_mr_fill() makes them from SEED. */
bool rdma_mr_check(const struct rdma_mr *mr, size_t offset, size_t size, uint32_t seed);

struct rdma_cq_config {
	unsigned log2; /* entries */
	unsigned eq;
	uint16_t page; /* 0: the kernel's */
};

int rdma_cq_create(struct rdma *rdma, struct rdma_cq **cq, const struct rdma_cq_config *config);
int rdma_cq_destroy(struct rdma_cq *cq); /* frees it even when the device refused */
void rdma_cq_free(struct rdma_cq *cq);   /* accepts NULL */
int rdma_cq_arm(struct rdma_cq *cq, bool solicited);
int rdma_cq_consume(struct rdma_cq *cq); /* ring 0 */
/* What QP has completed and nobody has taken is nobody's from now on, as the driver has it. */
void rdma_cq_clean(struct rdma_cq *cq, const struct rdma_qp *qp);

struct rdma_qp_config {
	enum rdma_qp_type type;
	uint32_t pd;
	uint32_t id; /* 0: the next */
	uint16_t page;
	bool privileged;
	struct rdma_cq *sq_cq, *rq_cq;
	unsigned sq_log2, rq_log2;     /* entries */
	unsigned sq_stride, rq_stride; /* log2 of bytes, 0: 6 */
};

int rdma_qp_create(struct rdma *rdma, struct rdma_qp **qp, const struct rdma_qp_config *config);
int rdma_qp_destroy(struct rdma_qp *qp); /* frees it even when the device refused */
void rdma_qp_free(struct rdma_qp *qp);   /* accepts NULL */

/* What MODIFY_QP may change; fields that MASK does not name are sent as noise (3.4). */
struct rdma_qp_attr {
	uint32_t mask; /* QPM_* */
	enum rdma_qp_state state;
	uint16_t access;
	uint32_t qkey, dest_qpn, sq_psn, rq_psn;
	uint8_t pmtu, retry, rnr_retry, rnr_timer, timeout;
	uint8_t rd_atomic_log2, dest_rd_atomic_log2;
	uint8_t mac[6]; /* of the peer */
};
int rdma_qp_modify(struct rdma_qp *qp, const struct rdma_qp_attr *attr);
int rdma_qp_set_state(struct rdma_qp *qp, enum rdma_qp_state state);

/* How a connection is made. */
struct rdma_path {
	uint16_t access; /* QPF_* */
	uint8_t timeout, retry, rnr_retry, rnr_timer;
	uint8_t pmtu;       /* log2 of bytes, 0: 10 */
	const uint8_t *mac; /* of the peer, NULL: our own */
};
#define RDMA_PATH                                                                                  \
	((struct rdma_path){.access = QPF_ACCESS_ALL,                                              \
	                    .timeout = 14,                                                         \
	                    .retry = 7,                                                            \
	                    .rnr_retry = 7,                                                        \
	                    .rnr_timer = 1})
/* RESET to RTS, with the QP of number DEST as the peer. UD QPs have no peer. The IPv4 address of a
 * NIC with MAC ..:x:y:z is 10.x.y.z. */
int rdma_qp_start(struct rdma_qp *qp, uint32_t dest, const struct rdma_path *path);
int rdma_qp_connect(struct rdma_qp *a, struct rdma_qp *b, const struct rdma_path *path);

struct rdma_qp_info {
	enum rdma_qp_state state;
	uint32_t dest_qpn, sq_psn, rq_psn;
	uint16_t flags;
};
int rdma_qp_query(struct rdma_qp *qp, struct rdma_qp_info *info);

/* An address handle for datagrams to MAC over IPv4. */
int rdma_ah_create(struct rdma *rdma, uint32_t pd, const uint8_t mac[6], uint32_t *id);
int rdma_ah_destroy(struct rdma *rdma, uint32_t id);

/* ---- data (rdma_data.c) ---- */

struct rdma_sge {
	uint64_t va;
	uint32_t len, lkey;
};

static inline struct rdma_sge rdma_sge(const struct rdma_mr *mr, size_t offset, uint32_t len)
{
	return (struct rdma_sge){mr->va + offset, len, mr->key};
}

struct rdma_send {
	uint64_t wr_id;
	uint8_t op; /* enum rdma_op */
	uint16_t flags;
	unsigned num_sge;
	struct rdma_sge sge[WQE_SGE_MAX];
	const void *inline_data; /* with WQE_INLINE */
	uint32_t inline_size;
	uint32_t imm; /* or the key to invalidate; REG_MR: the new key; BIND_MW: the old one */
	uint64_t va;  /* remote; REG_MR, BIND_MW: of the region */
	uint32_t rkey;
	uint64_t swap_add, compare;
	uint32_t ah, qpn, qkey; /* UD */
	/* REG_MR, BIND_MW */
	uint64_t length, dma_addr;
	uint32_t map_count, lkey;
	uint16_t access;
};

struct rdma_recv {
	uint64_t wr_id;
	unsigned num_sge;
	struct rdma_sge sge[WQE_SGE_MAX];
};

/* A completion, as an application sees it. */
struct rdma_wc {
	struct rdma_qp *qp;
	uint64_t wr_id;
	enum rdma_status status;
	bool recv;
	uint8_t op;      /* sends: enum rdma_op; receives: 0 SEND, 1 _INV, 2 _IMM, 3 WRITE_IMM */
	uint32_t length; /* receives */
	uint32_t imm;    /* receives: immediate, or the key that was invalidated */
	uint32_t src_qpn;
	bool ipv4;
};

/* Writes a request without a doorbell. Returns 0, -EAGAIN when the queue is full, or -E2BIG when a
 * slot does not hold it. */
int rdma_post_send(struct rdma_qp *qp, const struct rdma_send *send);
int rdma_post_recv(struct rdma_qp *qp, const struct rdma_recv *recv);
int rdma_ring_send(struct rdma_qp *qp);
int rdma_ring_recv(struct rdma_qp *qp);

/* Post and ring. */
int rdma_send(struct rdma_qp *qp, const struct rdma_send *send);
int rdma_recv(struct rdma_qp *qp, const struct rdma_recv *recv);

/* Takes one completion. Returns 1, 0 when there is none, or a negative errno. */
int rdma_poll(struct rdma_cq *cq, struct rdma_wc *wc);
/* ... waits for it. Returns 0 or a negative errno. */
int rdma_wait(struct rdma_cq *cq, struct rdma_wc *wc);

#endif
