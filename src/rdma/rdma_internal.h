/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the rdma room share. Stays inside the room.
 *
 * Who is who:
 *	dev.c		the device: tables, turns of the engine, reset (theory of operation is here)
 *	opcode.c	the table of all facts about an opcode; names
 *	qp.c		life of a QP: the table of states, attributes, errors, timer
 *	requester.c	from a send queue to the fabric, and its completions
 *	responder.c	from the fabric to memory and receive queue
 *	mr.c		regions, windows, keys
 *	translate.c	from a place in a region to host memory
 *	cursor.c	walks lists of keyed memory and copies between two of them
 *	ah.c		header templates and address handles
 *	stats.c		counters
 */
#ifndef ERNIC_RDMA_INTERNAL_H
#define ERNIC_RDMA_INTERNAL_H

#include <assert.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/log.h"
#include "rdma/rdma.h"
#include "rdma/transport.h"

/*
 * How much of the loop's turn the engine may take. A slice is one QP's share of it; QPs with more
 * to do queue up behind the others. The turn ends with the slice that uses up its time: that bounds
 * what busy queues add to the latency of all others, however fast memory is. The byte limit is for
 * clocks that do not tick finely enough.
 */
enum {
	RDMA_SLICE_OPS = 64,
	RDMA_SLICE_BYTES = 256 * 1024,
	RDMA_TURN_NS = 30000,
	RDMA_TURN_BYTES = 2 * 1024 * 1024,
};

#define RDMA_WINDOW_MAX 64
#define RDMA_PSN_MASK   0xffffffu
#define RDMA_NS_PER_US  1000ull

/* ---- opcode.c ---- */

enum rdma_op_flag {
	OP_OUT = 1 << 0,    /* carries payload to the peer */
	OP_IN = 1 << 1,     /* brings payload, or an old value, back */
	OP_RECV = 1 << 2,   /* takes a receive */
	OP_SINK = 1 << 3,   /* ... and its payload lands there */
	OP_IMM = 1 << 4,    /* has immediate data */
	OP_INV = 1 << 5,    /* invalidates a key of the peer */
	OP_REMOTE = 1 << 6, /* touches memory that the request names by address and rkey */
	OP_ATOMIC = 1 << 7,
	OP_LOCAL = 1 << 8, /* no peer takes part */
	OP_DRAIN = 1 << 9, /* waits until all earlier requests are complete */
};

struct rdma_op_info {
	const char *name;
	uint16_t flags;    /* enum rdma_op_flag */
	uint8_t qp_types;  /* bit n: allowed on enum rdma_qp_type n */
	uint8_t qp_access; /* enum rdma_qp_access that the responder's QP must have */
	uint16_t remote;   /* enum rdma_access that the remote memory must have */
	uint16_t local;    /* ... and the local one */
};

extern const struct rdma_op_info rdma_ops[RDMA_OPCODES];

static inline bool rdma_op_is(unsigned opcode, unsigned flags)
{
	return (rdma_ops[opcode].flags & flags) != 0;
}

/* ---- tables by number: chunks that exist while something is in them (dev.c) ---- */

enum { RDMA_CHUNK_SHIFT = 6, RDMA_CHUNK = 1 << RDMA_CHUNK_SHIFT };

struct rdma_table {
	struct rdma_chunk **chunks;
	uint32_t limit; /* ids are below */
	uint32_t count; /* ids in use */
	size_t size;    /* of an item */
};

struct rdma_chunk {
	uint32_t used;
	_Alignas(64) uint8_t items[];
};

int rdma_table_init(struct rdma_table *table, uint32_t limit, size_t item_size);
void rdma_table_free(struct rdma_table *table);

/* The item's memory, or NULL when nothing near it is in use. Whether it is used, it says itself. */
static inline void *rdma_table_get(const struct rdma_table *table, uint32_t id)
{
	if (id >= table->limit)
		return NULL;
	struct rdma_chunk *chunk = table->chunks[id >> RDMA_CHUNK_SHIFT];

	return chunk ? chunk->items + (id & (RDMA_CHUNK - 1)) * table->size : NULL;
}

/* Memory for an item that is not in use, zeroed, or NULL. ID is below the limit. */
void *rdma_table_add(struct rdma_table *table, uint32_t id);
void rdma_table_drop(struct rdma_table *table, uint32_t id);

/* ---- regions and windows ---- */

enum rdma_mr_state {
	RDMA_MR_ABSENT,
	RDMA_MR_LOADING, /* its page table is being copied: rdma_mr_load() makes it valid */
	RDMA_MR_FREE,    /* exists, names no memory: REG_MR or BIND_MW makes it valid */
	RDMA_MR_VALID,   /* may be used; LOCAL_INV, SEND_INV or unbinding makes it free */
};

struct rdma_mr {
	/* what every access looks at: one cache line */
	uint8_t state : 4;       /* enum rdma_mr_state */
	uint8_t host_access : 2; /* enum rdma_mem_access that host is for */
	uint8_t host_asked : 2;  /* ... and what the owner has been asked */
	uint8_t page_shift;      /* when paged */
	uint16_t flags;          /* enum rdma_access; type bits stay as created */
	uint32_t key, pd;
	uint32_t page_count; /* 0: contiguous */
	uint64_t va, length, first;
	uint64_t dma;             /* of a region that is contiguous */
	uint8_t *host;            /* the same in host memory, when host_generation is the owner's */
	uint64_t host_generation; /* of host, or of the host half of pages */

	uint64_t *pages; /* page_room DMA addresses, then as many of the host; kept for REG_MR */
	uint32_t page_room;
	uint32_t loaded;     /* pages that have been copied, while LOADING */
	bool scattered;      /* ... and are not contiguous */
	bool host_fresh;     /* the host half of pages has been zero since it was allocated */
	uint64_t generation; /* changes whenever the registration does */
	/* of windows */
	uint64_t parent_generation, parent_offset;
	uint32_t parent; /* index of the region */
	uint32_t qpn;    /* type 2: the QP that bound it; others may not use it */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct rdma_mr, pages) == 64, "an access touches one cache line");

/* What an access wants to do. */
struct rdma_mr_access {
	uint64_t va, size;
	uint32_t key, pd;
	uint32_t qpn;    /* of the QP whose memory this is */
	uint16_t access; /* enum rdma_access needed */
	bool remote;     /* by rkey */
};

/* A place in a region. */
struct rdma_place {
	struct rdma_mr *mr;
	uint64_t offset; /* from the region's first byte */
};

/* Checks key, state, PD, permission and bounds. Returns false when any does not fit. */
bool rdma_mr_resolve(struct rdma_dev *dev, const struct rdma_mr_access *access,
                     struct rdma_place *place);

/* Host memory, or where it is when there is none. */
struct rdma_run {
	size_t size;  /* bytes, at most as many as were asked for */
	uint64_t dma; /* with -ENOTSUP: its DMA address */
};

/*
 * Translates up to RUN->size bytes at PLACE into up to MAX pieces; sets RUN->size to what they
 * hold. Returns their number, or a negative errno as rdma_owner_ops.mem_map(), with *RUN set for
 * -ENOTSUP.
 */
int rdma_place_map(struct rdma_dev *dev, const struct rdma_place *place,
                   enum rdma_mem_access access, struct iovec *iov, unsigned max,
                   struct rdma_run *run);

/* The same for a DMA address, RUN->dma. */
int rdma_dma_map(struct rdma_dev *dev, enum rdma_mem_access access, struct iovec *iov, unsigned max,
                 struct rdma_run *run);

/* The local opcodes; RDMA_OK or RDMA_MEM_MGMT_ERR. */
enum rdma_status rdma_mr_register(struct rdma_qp *qp, const struct rdma_wr *wr);
enum rdma_status rdma_mr_bind(struct rdma_qp *qp, const struct rdma_wr *wr);
enum rdma_status rdma_mr_invalidate(struct rdma_qp *qp, uint32_t key);

void rdma_mr_reset(struct rdma_dev *dev);

/* ---- cursors ---- */

/* Checks the first SIZE bytes of the list. Returns RDMA_OK, RDMA_LOC_QP_OP_ERR when it holds less,
 * or RDMA_LOC_PROT_ERR. */
enum rdma_status rdma_cursor_check(struct rdma_cursor *cursor, uint64_t size);

/* Makes CURSOR start over, OFFSET bytes into the COUNT entries at SGE, or into its flat buffer. */
void rdma_cursor_seek(struct rdma_cursor *cursor, const struct rdma_sge *sge, uint32_t count,
                      uint32_t offset);

/* As rdma_inbound_map() and rdma_inbound_copy(); a refusal also sets `failed`. */
int rdma_cursor_map(struct rdma_cursor *cursor, size_t size, struct iovec *iov, unsigned max);
int rdma_cursor_write(struct rdma_cursor *cursor, const void *buf, size_t size);
int rdma_cursor_read(struct rdma_cursor *cursor, void *buf, size_t size);

struct rdma_copy {
	rdma_copy_fn *fn; /* NULL: memcpy */
	void *arg;
	uint32_t offset; /* of the next byte in the message */
};

/* Moves SIZE bytes. Returns 0, or -EIO; then one of the cursors has failed. */
int rdma_cursor_move(struct rdma_cursor *dst, struct rdma_cursor *src, size_t size,
                     struct rdma_copy *copy);

/* The 8 bytes at the cursor as one word for atomics. Returns 0, -EINVAL when they are not aligned
 * or not in one piece, -ENOTSUP when they can only be copied, or -EACCES. */
int rdma_cursor_word(struct rdma_cursor *cursor, _Atomic uint64_t **word);

/* ---- address handles ---- */

struct rdma_ah {
	bool used;
	uint32_t pd;
	struct rdma_av av;
};

struct rdma_ah *rdma_ah_find(struct rdma_dev *dev, uint32_t id); /* or NULL */

/* The 40 bytes in front of a datagram with UDP_PAYLOAD bytes behind its UDP header (9.5). */
void rdma_av_grh(const struct rdma_av *av, uint32_t udp_payload, uint8_t grh[RDMA_GRH_SIZE]);

/* ---- queue pairs ---- */

enum rdma_msg_state {
	RDMA_MSG_IDLE,    /* belongs to nobody */
	RDMA_MSG_OPEN,    /* fetched, and found good */
	RDMA_MSG_STARTED, /* the fabric has it */
	RDMA_MSG_DONE,    /* waits for its turn to be completed */
};

/* Why the send queue does not go on by itself. */
enum rdma_block {
	RDMA_BLOCK_NONE,
	RDMA_BLOCK_FABRIC, /* RDMA_TX_WAIT */
	RDMA_BLOCK_LOST,   /* RDMA_TX_LOST: until the timeout */
	RDMA_BLOCK_RNR,    /* until the RNR period has passed, or a receive is posted */
};

struct rdma_qp {
	struct rdma_dev *dev;
	void *owner;
	uint32_t qpn, pd;
	uint8_t type, state; /* enum rdma_qp_type, rdma_qp_state */
	bool privileged, remote_privileged;

	/* turns */
	TAILQ_ENTRY(rdma_qp) ready;
	bool on_ready;
	bool running;                  /* in its slice right now */
	bool fail_pending, fail_fatal; /* rdma_qp_fail() */
	uint64_t kick_ns;              /* first kick since the last slice, 0: none */

	/* requester: messages head..tail of the window are not complete, head..tx have been sent */
	struct rdma_msg *window;
	uint32_t window_mask;
	uint32_t head, tx, tail;
	uint32_t fetching; /* READs and atomics among head..tx that are not done */
	bool kicked;       /* the owner may have more */
	bool stopped;      /* what follows in the window cannot go well: fetch no more */
	bool sqd_event;    /* SQD: tell when drained */
	bool paused;       /* completions since the last sq_pause() */
	uint8_t block;     /* enum rdma_block */
	uint8_t rnr_code;  /* with RDMA_BLOCK_RNR */
	uint8_t retry_left, rnr_left;
	bool timer_fired, timer_stale;
	uint8_t timer_kind; /* enum rdma_timer */
	struct loop_timer timer;
	struct rdma_qp *awaits; /* whose receive this QP waits for */
	TAILQ_ENTRY(rdma_qp) waiter;
	void *fabric_slot;

	/* responder */
	TAILQ_HEAD(rdma_waiters, rdma_qp) waiters;
	struct rdma_inbound *inbounds; /* under way */
	struct rdma_inbound *landing;  /* the one of them that is not a READ or atomic */
	uint32_t answering;            /* READs and atomics among them */
	bool recv_held;                /* recv is fetched and not completed */
	bool comm_est;                 /* the event was sent */
	bool recv_watched;             /* rdma_qp_watch_recv() */
	uint32_t msn;
	struct rdma_recv recv;

	struct rdma_qp_attr attr; /* state, cur_state and sq_draining are not kept here */
	struct rdma_qp_stats stats;
};

/* What is legal in a state; the table is in qp.c. */
struct rdma_state_info {
	const char *name;
	uint8_t to;    /* bit n: rdma_qp_modify() may lead to state n */
	bool fetches;  /* new requests are taken from the send queue */
	bool sends;    /* what has been taken goes on */
	bool answers;  /* messages of peers are taken */
	bool receives; /* receives may be posted */
};

extern const struct rdma_state_info rdma_states[RDMA_QP_STATES];

/* A completed send or receive failed, or worse: state ERR, flush, EVENT (0: none). */
void rdma_qp_enter_error(struct rdma_qp *qp, enum rdma_event event);

/* Puts the QP at the end of those that have work. */
void rdma_qp_make_ready(struct rdma_qp *qp);

enum rdma_timer { RDMA_TIMER_NONE, RDMA_TIMER_ACK, RDMA_TIMER_RNR };

/* Makes the timer be what the QP waits for, if it waits for anything. */
void rdma_qp_update_timer(struct rdma_qp *qp);

void rdma_qp_stop_waiting(struct rdma_qp *qp); /* for a receive */

/* ---- requester and responder ---- */

/* What is left of a turn or slice. */
struct rdma_budget {
	uint32_t ops;
	size_t bytes;
};

/* Runs the send queue until it is blocked, empty, or out of BUDGET; true in the last case. */
bool rdma_requester_run(struct rdma_qp *qp, struct rdma_budget *budget);

/* Forgets all messages. */
void rdma_requester_drop(struct rdma_qp *qp);

/* Goes back to the oldest message that is not done. */
void rdma_requester_rewind(struct rdma_qp *qp);

/* Forgets what is under way and the receive it holds. */
void rdma_responder_drop(struct rdma_qp *qp);

static inline struct rdma_msg *rdma_qp_msg(struct rdma_qp *qp, uint32_t index)
{
	return &qp->window[index & qp->window_mask];
}

/* ---- the device ---- */

TAILQ_HEAD(rdma_ready, rdma_qp);

struct rdma_dev {
	const char *name;
	struct loop *loop;
	const struct rdma_owner_ops *ops;
	void *owner;
	struct rdma_fabric *fabric;
	uint32_t datagram_mtu;
	uint32_t window; /* messages of a QP, a power of two */

	struct rdma_table qps; /* of struct rdma_qp * */
	struct rdma_table mrs; /* of struct rdma_mr */
	struct rdma_table ahs; /* of struct rdma_ah */
	uint64_t pages, pages_limit;
	uint64_t mr_generation;
	uint32_t windows;

	struct loop_work work;
	struct rdma_ready ready;

	uint64_t stat[RDMA_STAT_COUNT];
	struct rdma_dev_stats stats;
};

static inline void rdma_count(struct rdma_dev *dev, enum rdma_stat stat)
{
	dev->stat[stat]++;
}

void rdma_histogram_add(struct rdma_histogram *histogram, uint64_t value);

/* A message of BYTES went out, or was taken in: counters of QP and device. */
void rdma_count_tx(struct rdma_qp *qp, unsigned opcode, uint64_t bytes);
void rdma_count_rx(struct rdma_qp *qp, unsigned opcode, uint64_t bytes);

#endif
