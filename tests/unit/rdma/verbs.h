/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An owner of RDMA devices for tests: queues, completions and DMA memory in arrays. It offers what
 * libibverbs offers, and lets the engine do everything else.
 */
#ifndef ERNIC_TESTS_RDMA_VERBS_H
#define ERNIC_TESTS_RDMA_VERBS_H

#include "base/loop.h"
#include "fabric/fabric.h"
#include "rdma/rdma.h"

/* DMA memory of a NIC: SIZE bytes from DMA_BASE on. */
#define DMA_BASE 0x100000000ull
#define DMA_PAGE 4096u

struct nic {
	struct loop *loop;
	struct rdma_fabric *fabric;
	bool owns_fabric;
	struct rdma_dev *dev;
	uint8_t mac[6];
	uint8_t ip;   /* last byte of 10.0.0.x and fe80::x */
	uint8_t *mem; /* mem_size bytes */
	size_t mem_size, mem_used;
	size_t piece;                      /* longest host piece that a translation gives, 0: any */
	uint64_t copy_only, copy_only_end; /* DMA range that cannot be mapped */
	uint64_t hole, hole_end;           /* DMA range that is refused */
	uint64_t read_only, read_only_end; /* DMA range that may only be read */
	uint64_t generation;               /* of translations; 0: none may be kept */
	uint64_t maps, copies;             /* calls of mem_map(), mem_read() and mem_write() */
	uint32_t next_mr, next_qpn, next_ah;
};

enum { QUEUE_MAX = 1024 }; /* items in a ring of qp_new() */

struct test_qp {
	struct nic *nic;
	struct rdma_qp *qp;
	uint32_t qpn;
	struct rdma_wr *sq; /* rings of queue_max items */
	struct rdma_recv *rq;
	struct rdma_wc *send_wc, *recv_wc;
	uint32_t queue_max; /* what is not polled in time is overwritten */
	uint32_t sq_head, sq_tail, rq_head, rq_tail;
	uint32_t send_wcs, recv_wcs;
	uint32_t send_polled, recv_polled;
	uint32_t flushes, pauses;
	uint32_t events[16]; /* by enum rdma_event */
	int fetch_error;     /* what fetch_send() returns instead */
	int fetch_recv_error;
	bool fail_on_complete; /* call rdma_qp_fail() from complete_send() */
	void (*on_recv)(struct test_qp *qp, const struct rdma_wc *wc);
	void (*on_send)(struct test_qp *qp, const struct rdma_wc *wc);
	void *arg;
};

/* A region made for a test. */
struct test_mr {
	struct nic *nic;
	uint32_t key;
	uint64_t va;
	size_t size;
	uint8_t *mem; /* when contiguous */
	uint64_t dma;
	uint32_t pages; /* scattered: page n is at mem + pages order, see mr_byte() */
	uint64_t *page_dma;
	uint64_t first;
};

/* The functions of the owner; the device's owner is the struct nic, a QP's its struct test_qp. */
extern const struct rdma_owner_ops *const nic_owner_ops;

/* A NIC with its own loop and fabric, of the description given. Ends the test when it fails. */
struct nic *nic_new(const char *fabric);
/* The NIC 10.0.0.IP on a loop and a fabric of the caller's. */
struct nic *nic_on(struct loop *loop, struct rdma_fabric *fabric, uint8_t ip);
/* A second NIC on the loop and fabric of the first. */
struct nic *nic_join(struct nic *first);
struct nic *nic_new_limits(const char *fabric, const struct rdma_limits *limits, size_t mem);
void nic_free(struct nic *nic);

/* Allocates SIZE bytes of DMA memory, aligned to ALIGN. */
uint64_t nic_dma(struct nic *nic, size_t size, size_t align);
uint8_t *nic_host(struct nic *nic, uint64_t dma);

/* Turns of the loop without waiting. */
void nic_spin(struct nic *nic, unsigned turns);
/* Turns until *COUNTER is at least VALUE; fails the test after 10 s. */
void nic_wait(struct nic *nic, const uint32_t *counter, uint32_t value);
/* Turns for MS milliseconds. */
void nic_pass(struct nic *nic, unsigned ms);

/* Builds a template; returns its size. FROM's MAC and address to TO's; VERSION 4 or 6. */
size_t nic_template(const struct nic *from, const struct nic *to, int version, bool vlan,
                    uint8_t out[RDMA_TEMPLATE_MAX]);

struct test_mr mr_new(struct nic *nic, uint32_t pd, uint64_t va, size_t size, unsigned access);
/* The same in pages that are nowhere contiguous, beginning FIRST bytes into the first. */
struct test_mr mr_scattered(struct nic *nic, uint32_t pd, uint64_t va, size_t size,
                            unsigned access);
void mr_free(struct test_mr *mr);
uint8_t *mr_byte(const struct test_mr *mr, size_t offset);
void mr_set(const struct test_mr *mr, size_t offset, const void *bytes, size_t size);
void mr_get(const struct test_mr *mr, size_t offset, void *bytes, size_t size);
/* Fills with a pattern that depends on SEED and the offset. */
void mr_fill(const struct test_mr *mr, unsigned seed);
struct rdma_sge sge_of(const struct test_mr *mr, size_t offset, size_t size);

struct test_qp *qp_new(struct nic *nic, enum rdma_qp_type type, uint32_t pd);
struct test_qp *qp_new_config(struct nic *nic, const struct rdma_qp_config *config,
                              uint32_t queue_max);
void qp_free(struct test_qp *qp); /* destroys the QP too, if it is there */

/* Connects two QPs (or one with itself), all accesses allowed, and takes them to RTS. */
void qp_connect(struct test_qp *a, struct test_qp *b);
struct rdma_qp_attr qp_attr(struct test_qp *qp, struct test_qp *peer);
#define QP_ATTR_ALL                                                                                \
	(RDMA_ATTR_ACCESS | RDMA_ATTR_QKEY | RDMA_ATTR_AV | RDMA_ATTR_MTU | RDMA_ATTR_TIMEOUT |    \
	 RDMA_ATTR_RETRY | RDMA_ATTR_RNR_RETRY | RDMA_ATTR_RQ_PSN | RDMA_ATTR_MAX_RD_ATOMIC |      \
	 RDMA_ATTR_RNR_TIMER | RDMA_ATTR_SQ_PSN | RDMA_ATTR_MAX_DEST_RD_ATOMIC |                   \
	 RDMA_ATTR_DEST_QPN)
void qp_up(struct test_qp *qp, const struct rdma_qp_attr *attr); /* RESET to RTS */
int qp_state(struct test_qp *qp, enum rdma_qp_state state);

/* Posts without a kick, and with one. */
void qp_put_send(struct test_qp *qp, const struct rdma_wr *wr);
void qp_post_send(struct test_qp *qp, const struct rdma_wr *wr);
void qp_post_recv(struct test_qp *qp, const struct rdma_recv *recv);
void qp_post_recv_sge(struct test_qp *qp, uint64_t wr_id, struct rdma_sge sge);

/* The next completion that was not polled yet, or NULL. */
const struct rdma_wc *qp_poll_send(struct test_qp *qp);
const struct rdma_wc *qp_poll_recv(struct test_qp *qp);

/* Runs turns until one more completion of a send is there and checks its status. */
const struct rdma_wc *qp_expect_send(struct test_qp *qp, enum rdma_status status);
const struct rdma_wc *qp_expect_recv(struct test_qp *qp, enum rdma_status status);

/* Ready-made requests. */
struct rdma_wr wr_rdma(enum rdma_opcode opcode, struct rdma_sge sge, uint64_t va, uint32_t rkey);
struct rdma_wr wr_send(enum rdma_opcode opcode, struct rdma_sge sge);
struct rdma_wr wr_atomic(enum rdma_opcode opcode, struct rdma_sge sge, uint64_t va, uint32_t rkey);

/* A small generator for tests that print their seed. */
uint64_t test_random(uint64_t *state);
/* From the environment (ERNIC_TEST_SEED), or the clock; prints it. */
uint64_t test_seed(void);

#endif
