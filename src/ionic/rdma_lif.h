/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the RDMA function share. Stays inside the ionic room.
 *
 * Who is who:
 *	rdma_lif.c	life of the function, its commands, doorbells (theory of operation is here)
 *	rdma_ring.c	rings in guest memory, and all access to guest memory
 *	rdma_eq.c	event queues
 *	rdma_cq.c	completion queues
 *	rdma_admin.c	the admin queue; rdma_admin_qp.c and rdma_admin_mem.c hold its commands
 *	rdma_qp.c	queue pairs: what the engine asks and tells
 *	rdma_wqe.c	from work requests of the guest to those of the engine
 *	rdma_stats.c	counters, for the guest and for the stats file
 *
 * Sections named in comments are those of "spec ionic-rdma".
 */
#ifndef ERNIC_IONIC_RDMA_LIF_H
#define ERNIC_IONIC_RDMA_LIF_H

#include <sys/queue.h>

#include "ionic_internal.h"
#include "rdma/rdma.h"
#include "rdma_if.h"
#include "vfio/guest_mem.h"

/*
 * More of what the identity offers (1.2); the rest is in ionic.h. Tables of pointers are as long as
 * that, in memory that costs nothing before it is used.
 */
#define IONIC_RDMA_AQS  1          /* commands are cheap: more would gain nothing */
#define IONIC_RDMA_PTES (4u << 20) /* bounds the driver's regions: 8 GiB each */

/* Page table entries that one turn copies. Memory for them is touched for the first time, which is
 * what takes long. */
#define IONIC_RDMA_PAGES_A_TURN 2048

/* Page table entries of one region: 4 MiB of table, the most that a driver allocates (8.1). */
#define IONIC_RDMA_MR_PAGES (1u << 19)

/* ... and of all regions together: 64 GiB of memory in pages of 4 KiB. */
#define IONIC_RDMA_ALL_PAGES (1u << 24)

/* Page table entries of all rings together: 16 GiB of rings in pages of 4 KiB. */
#define IONIC_RDMA_RING_PAGES (1u << 22)

struct ionic_rdma;

/* ---- guest memory and rings ---- */

/* As the functions of guest_mem.h, and -ENODEV once the function was reset. */
int ionic_rdma_read(struct ionic_rdma *rdma, uint64_t addr, void *dst, size_t size);
int ionic_rdma_write(struct ionic_rdma *rdma, uint64_t addr, const void *src, size_t size);
int ionic_rdma_post(struct ionic_rdma *rdma, uint64_t addr, const void *src, size_t size);

int ionic_rdma_map(struct ionic_rdma *rdma, uint64_t addr, size_t size, enum guest_access access,
                   struct iovec *iov, unsigned max);

/* Writes four aligned bytes at once, after everything written before. */
int ionic_rdma_store32(struct ionic_rdma *rdma, uint64_t addr, be32 value);

/* Slots of 2^stride_log2 bytes, 2^depth_log2 of them, contiguous or in pages. */
struct ionic_ring {
	uint64_t base;
	uint64_t *pages; /* their addresses; NULL: contiguous */
	uint32_t page_count;
	uint8_t page_shift, depth_log2, stride_log2;
};

struct ionic_ring_config {
	uint64_t dma_addr; /* of the ring, or of its page table when map_count > 1 */
	uint32_t map_count;
	uint8_t depth_log2, stride_log2, page_shift;
};

/* Copies the page table. Returns 0, -EINVAL for a ring that cannot be, -ENOSPC when all rings have
 * too many pages, -ENOMEM, or an errno of guest_mem when the table cannot be read. */
int ionic_ring_init(struct ionic_rdma *rdma, struct ionic_ring *ring,
                    const struct ionic_ring_config *config);
void ionic_ring_free(struct ionic_rdma *rdma, struct ionic_ring *ring); /* idempotent */

static inline uint32_t ionic_ring_mask(const struct ionic_ring *ring)
{
	return (1u << ring->depth_log2) - 1;
}

/* DMA address of the slot that position POS falls on. */
static inline uint64_t ionic_ring_addr(const struct ionic_ring *ring, uint32_t pos)
{
	uint64_t offset = (uint64_t)(pos & ionic_ring_mask(ring)) << ring->stride_log2;

	if (!ring->pages)
		return ring->base + offset;
	return ring->pages[offset >> ring->page_shift] +
	       (offset & ((UINT64_C(1) << ring->page_shift) - 1));
}

/* ---- event queues (4) ---- */

/* A CQ or QP that has events to tell. */
struct ionic_event_source {
	TAILQ_ENTRY(ionic_event_source) link;
	struct ionic_eq *eq; /* NULL: nobody wants to know */
	uint32_t id;
	uint8_t type;   /* enum ionic_rdma_eqe_type */
	bool queued;    /* on eq->pending */
	uint16_t codes; /* bit n: event n is to be written */
};

struct ionic_eq {
	struct ionic_rdma *rdma;
	bool exists;
	uint16_t intr_index;
	uint64_t base;
	uint8_t depth_log2;
	uint32_t prod;
	TAILQ_HEAD(ionic_event_sources, ionic_event_source) pending;
	uint64_t written, deferred;
};

enum ionic_status ionic_eq_create(struct ionic_rdma *rdma, uint32_t id, const union ionic_cmd *cmd);
void ionic_eq_clear(struct ionic_eq *eq);
struct ionic_eq *ionic_eq_find(struct ionic_rdma *rdma, uint32_t id); /* or NULL */

/* Remembers the event; it is written by ionic_eq_flush(), in this or the next work phase. */
void ionic_eq_raise(struct ionic_rdma *rdma, struct ionic_event_source *source, unsigned code);

/* Writes what is pending, as far as the driver has room. Work phase. */
void ionic_eq_flush(struct ionic_eq *eq);

/* The source goes away. */
void ionic_eq_forget(struct ionic_event_source *source);

/* ---- completion queues (5) ---- */

struct ionic_cq {
	struct ionic_rdma *rdma;
	TAILQ_ENTRY(ionic_cq) link;
	uint32_t id;
	uint16_t dbid;
	struct ionic_ring ring;
	uint32_t prod, cons; /* positions; they run on beyond the ring's end */
	uint32_t solicited;  /* position behind the last solicited entry ... */
	bool has_solicited;  /* ... which the driver has not consumed */
	bool armed, armed_solicited;
	bool failed; /* overflowed, or its ring is out of reach: nothing is written any more */
	struct ionic_event_source events;
	LIST_HEAD(ionic_wq_list, ionic_wq) users;
	bool is_admin; /* an admin queue completes here */
};

struct ionic_cq_config {
	uint32_t id, eq_id;
	uint16_t dbid;
	struct ionic_ring_config ring;
};

/* Returns 0, -ERANGE (id or EQ), -EEXIST, -EINVAL, -ENOMEM, or an errno of guest_mem. */
int ionic_cq_create(struct ionic_rdma *rdma, const struct ionic_cq_config *config);
int ionic_cq_destroy(struct ionic_rdma *rdma, uint32_t id); /* 0, -ENOENT, or -EBUSY: in use */
struct ionic_cq *ionic_cq_find(struct ionic_rdma *rdma, uint32_t id); /* or NULL */
void ionic_cq_free(struct ionic_cq *cq);

/* Writes an entry (its color is added) and the event if one is due. SOLICITED: it is one that an
 * application may wait for alone. Work phase. */
void ionic_cq_post(struct ionic_cq *cq, union ionic_rdma_cqe *cqe, bool solicited);

void ionic_cq_doorbell(struct ionic_cq *cq, unsigned ring, uint32_t index);

/* ---- queue pairs (6, 7.3) ---- */

struct ionic_wq {
	LIST_ENTRY(ionic_wq) user; /* of cq */
	struct ionic_qp *qp;
	struct ionic_cq *cq;
	struct ionic_ring ring;
	uint32_t prod, cons; /* < 2^depth_log2 */
	TAILQ_ENTRY(ionic_wq) posted;
	bool flush_due; /* in the list of those with requests posted in ERR */
};

struct ionic_qp {
	struct ionic_rdma *rdma;
	struct rdma_qp *engine;
	TAILQ_ENTRY(ionic_qp) link;
	uint32_t qpn;
	uint16_t dbid;
	bool datagram;
	struct ionic_wq sq, rq;
	uint32_t msn;          /* remote requests that are complete (5.3) */
	uint32_t msn_reported; /* ... as the driver knows */
	bool msn_wanted;       /* one of those that it does not know is signaled */
	struct ionic_event_source events;
	uint64_t doorbells, completions;
};

void ionic_qp_free(struct ionic_qp *qp);

/* Both queues are empty and new: the QP entered RESET. */
void ionic_qp_restart(struct ionic_qp *qp);

void ionic_qp_sq_doorbell(struct ionic_qp *qp, uint32_t index);
void ionic_qp_rq_doorbell(struct ionic_qp *qp, uint32_t index);

/* No flush marker is due any more. */
void ionic_wq_forget_posted(struct ionic_wq *wq);

/* A flush marker for each queue whose doorbell rang in ERR since the last call. Work phase. */
void ionic_qp_flush_posted(struct ionic_rdma *rdma);

/* Those of struct rdma_owner_ops. */
int ionic_qp_fetch_send(void *owner, struct rdma_wr *wr);
int ionic_qp_fetch_recv(void *owner, struct rdma_recv *recv);
void ionic_qp_complete_send(void *owner, const struct rdma_wc *wc);
void ionic_qp_complete_recv(void *owner, const struct rdma_wc *wc);
void ionic_qp_flush(void *owner);
void ionic_qp_sq_pause(void *owner);
void ionic_qp_event(void *owner, enum rdma_event event);

/* ---- work requests ---- */

/* Bytes of the request whose first IONIC_RDMA_WQE_SIZE are in WQE, or -EINVAL when that is more
 * than STRIDE, or the request cannot be. */
int ionic_wqe_send_size(const union ionic_rdma_wqe *wqe, size_t stride);
int ionic_wqe_recv_size(const union ionic_rdma_wqe *wqe, size_t stride);

/* Translates a request that has been read in full and whose size was found good. */
void ionic_wqe_send(const union ionic_rdma_wqe *wqe, bool datagram, struct rdma_wr *wr);
void ionic_wqe_recv(const union ionic_rdma_wqe *wqe, struct rdma_recv *recv);

/* ---- the admin queue (3) ---- */

struct ionic_aq {
	struct ionic_rdma *rdma;
	bool exists;
	uint32_t id;
	uint16_t dbid;
	struct ionic_ring ring;
	struct ionic_cq *cq;
	uint32_t prod, cons; /* strides, < 2^depth_log2 */
	/* the command that is being executed, over several turns */
	bool busy;
	uint8_t op;
	uint32_t strides, mr_key;
};

enum ionic_status ionic_aq_create(struct ionic_rdma *rdma, uint32_t id, const union ionic_cmd *cmd);
void ionic_aq_doorbell(struct ionic_aq *aq, uint32_t index);
bool ionic_aq_run(struct ionic_aq *aq); /* one budget; true when there is more */

/* What a handler returns when the command goes on in later turns, by rdma_mr_load(). */
#define IONIC_RDMA_IN_PROGRESS ((enum ionic_rdma_admin_status)0xff)

/* Handlers. WQE is a private copy, zeroed behind what the driver sent. */
typedef enum ionic_rdma_admin_status ionic_admin_fn(struct ionic_rdma *rdma,
                                                    const union ionic_rdma_admin *wqe);
ionic_admin_fn ionic_admin_create_cq, ionic_admin_destroy_cq; /* rdma_admin.c */
ionic_admin_fn ionic_admin_create_qp, ionic_admin_modify_qp, ionic_admin_query_qp,
        ionic_admin_destroy_qp; /* rdma_admin_qp.c */
ionic_admin_fn ionic_admin_create_mr, ionic_admin_destroy_mr, ionic_admin_create_ah,
        ionic_admin_destroy_ah; /* rdma_admin_mem.c */
ionic_admin_fn ionic_admin_stats_hdrs, ionic_admin_stats_vals, ionic_admin_qp_stats_hdrs,
        ionic_admin_qp_stats_vals; /* rdma_stats.c */

/* The status that stands for a negative errno, or for 0. */
enum ionic_rdma_admin_status ionic_admin_status(int error);

/* Reads a header template of SIZE bytes into HEADER. Returns 0, -EINVAL, or as guest_mem. */
int ionic_rdma_read_template(struct ionic_rdma *rdma, uint64_t addr, uint32_t size,
                             uint8_t header[RDMA_TEMPLATE_MAX]);

/* ---- the function ---- */

struct ionic_rdma {
	struct ionic_dev *dev;
	struct rdma_dev *engine;
	struct ionic_eq eqs[IONIC_RDMA_EQS_MAX];
	struct ionic_aq aqs[IONIC_RDMA_AQS];
	struct ionic_cq **cqs; /* by id */
	TAILQ_HEAD(ionic_cq_list, ionic_cq) all_cqs;
	TAILQ_HEAD(ionic_qp_list, ionic_qp) all_qps;
	TAILQ_HEAD(ionic_posted_list, ionic_wq) posted_in_err;
	uint32_t ring_pages;  /* of all rings */
	uint32_t eqs_pending; /* bit n: EQ n has something to write */
	bool eqs_deferred;    /* ... and one of them waits for the driver */
	unsigned in_memory;   /* accesses of guest memory that have not returned */
	bool reset_pending;   /* a reset came during one; nothing happens any more until then */
	uint64_t stat_base[RDMA_STAT_COUNT]; /* at the last device reset */
	struct {
		uint64_t sq_doorbells, rq_doorbells, cq_doorbells, cq_arms, aq_doorbells;
		uint64_t cqes, cq_events, qp_events, admin_commands, admin_errors, resets;
	} count;
};

#endif
