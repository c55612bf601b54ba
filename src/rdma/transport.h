/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine's door for fabrics: how a message gets from the QP that sends it to the QP it is for.
 *
 * A message is one work request on its way. At its origin it is a struct rdma_msg, which the engine
 * owns; where it arrives it is a struct rdma_inbound, which the fabric owns. Both may live in the
 * same process (the fabric then moves bytes from one to the other), or in two (the fabric carries
 * the request and the bytes over a socket or in packets). The fabric never sees a queue.
 *
 *	requester QP                   fabric                          responder QP
 *	  ops->transmit(msg)  ------>  finds the destination
 *	                               rdma_inbound_begin()  ------->  checks, takes a receive
 *	  rdma_msg_map()      <------  moves bytes, in pieces ------>  rdma_inbound_map()
 *	                               rdma_inbound_end()    ------->  completes, event
 *	  completes in order  <------  rdma_msg_done()
 *
 * Payload of SEND and WRITE goes from msg to inbound, that of READ back. Pieces are valid until the
 * work callback returns; a transfer that is spread over several asks again and finds out then that
 * a region was invalidated, a QP reset or the peer destroyed.
 *
 * Reliability is shared. The engine counts retries and owns the one timer of a QP; a fabric only
 * says what happened: sent, lost, not ready. After a timeout it is told to rewind and is given the
 * QP's messages again, in order. Message order, PSNs and duplicates are the fabric's affair between
 * its two ends; in one process the PSN of a message is compared with what its receiver expects.
 */
#ifndef ERNIC_RDMA_TRANSPORT_H
#define ERNIC_RDMA_TRANSPORT_H

#include "rdma/rdma.h"

/* Length of a message whose size is not known at its first packet. */
#define RDMA_LENGTH_UNKNOWN UINT32_MAX

/* What a responder is asked to do: all that travels besides the payload. */
struct rdma_request {
	uint8_t opcode;    /* enum rdma_opcode, never a local one */
	uint8_t transport; /* enum rdma_qp_type of the sender */
	bool solicited;
	uint32_t src_qpn, dst_qpn;
	uint32_t psn, packets; /* first PSN, and how many it takes (spec rocev2 6) */
	uint32_t length;       /* payload bytes, or RDMA_LENGTH_UNKNOWN (SEND only) */
	union {
		uint32_t imm;
		uint32_t inv_key;
	};
	uint32_t rkey; /* READ, WRITE*, atomics */
	uint32_t qkey; /* UD */
	uint64_t va;
	uint64_t swap_add, compare;
	const struct rdma_av *av; /* the sender's address of its destination; lent */
};

/* A list of keyed memory to walk through in order. Set up and used by the engine. */
struct rdma_cursor {
	struct rdma_dev *dev;
	const struct rdma_sge *sge; /* current one */
	const uint8_t *flat;        /* instead of SGEs: inline data */
	uint32_t sge_left;          /* entries from sge on */
	uint32_t offset;            /* bytes of the current one, or of flat, that are done */
	uint32_t pd, qpn;           /* of the QP whose memory this is */
	uint16_t access;            /* enum rdma_access needed; 0: local read */
	bool raw_key;               /* key 0 is a DMA address */
	bool remote;                /* keys are rkeys: of regions and windows */
	bool failed;                /* a key, or the memory behind it, was refused */
	/* what the current SGE's key was resolved to, while no registration has changed */
	uint32_t valid; /* bytes of it that have been checked */
	struct rdma_mr *mr;
	uint64_t base; /* of its first byte in the region */
	uint64_t generation;
};

/* ---- at the destination ---- */

/* What a responder says to a message. */
enum rdma_verdict {
	RDMA_VERDICT_OK,   /* go on, or: done */
	RDMA_VERDICT_DROP, /* no answer: wrong state, type, peer, PSN, Q_Key; UC and UD errors */
	RDMA_VERDICT_DUPLICATE, /* executed already: to be acknowledged again. RC only */
	RDMA_VERDICT_RNR,       /* no receive; the timer code is in rdma_inbound.rnr_timer */
	RDMA_VERDICT_INV_REQ,   /* these three: the QP is in ERR now, its owner has been told */
	RDMA_VERDICT_ACCESS,
	RDMA_VERDICT_OPER,
};

/* A message at its destination. Embedded by the fabric, zeroed before its first use. */
struct rdma_inbound {
	struct rdma_qp *qp; /* where it lands; NULL when not under way, or when the QP went away */
	struct rdma_inbound *next, **link; /* of all that are under way on the QP */
	const struct rdma_request *req;    /* the fabric's */
	uint32_t done;                     /* payload bytes moved */
	uint8_t rnr_timer;                 /* with RDMA_VERDICT_RNR */
	bool too_long;                     /* for its receive, as its packets came to tell */
	uint64_t atomic;        /* the old value, after rdma_inbound_end() of an atomic */
	struct rdma_sge target; /* remote memory as a list of one */
	struct rdma_cursor cursor;
};

/*
 * Offers REQ to QP. With RDMA_VERDICT_OK the message is under way: rdma_inbound_map() and
 * rdma_inbound_end() or rdma_inbound_cancel() follow, and REQ stays until then; a WRITE may become
 * a WRITE_IMM meanwhile, as its last packet tells. With any other verdict it is over.
 */
enum rdma_verdict rdma_inbound_begin(struct rdma_inbound *in, struct rdma_qp *qp,
                                     const struct rdma_request *req);

/*
 * The next pieces of the destination's memory, at most SIZE bytes and MAX pieces: to write to, or
 * for READ to read from. Returns their number and moves on behind them, or a negative errno:
 * -ENOTSUP the memory cannot be mapped; rdma_inbound_copy() reaches it. Otherwise the message
 * failed: call rdma_inbound_end(), which says how.
 */
int rdma_inbound_map(struct rdma_inbound *in, size_t size, struct iovec *iov, unsigned max);

/* The same by copying: SIZE bytes from BUF into the memory, for READ the other way. 0 or -errno. */
int rdma_inbound_copy(struct rdma_inbound *in, void *buf, size_t size);

/*
 * A WRITE has turned out to be a WRITE_IMM (its request says so now), and its last bytes are still
 * to come: takes a receive. With RDMA_VERDICT_RNR it stays under way, to be asked again; with any
 * other but OK it is over.
 */
enum rdma_verdict rdma_inbound_want_recv(struct rdma_inbound *in);

/* The peer breaks the rules of the wire, with what IN carries or has begun: as a message that
 * cannot be executed. IN may be idle; then REQ tells what was wrong. */
enum rdma_verdict rdma_inbound_refuse(struct rdma_inbound *in, struct rdma_qp *qp,
                                      const struct rdma_request *req);

/* All payload is there: executes an atomic or an invalidation, completes the receive. */
enum rdma_verdict rdma_inbound_end(struct rdma_inbound *in);

/* The message will not be continued; a receive that it held waits for the next. Idempotent. */
void rdma_inbound_cancel(struct rdma_inbound *in);

/* The next bytes are those from payload byte OFFSET on: what was mapped behind it has not been
 * moved. Bytes are accounted for again. */
void rdma_inbound_seek(struct rdma_inbound *in, uint32_t offset);

/* As rdma_msg_peek(), of bytes that have been moved. */
int rdma_inbound_peek(const struct rdma_inbound *in, uint32_t offset, void *buf, size_t size);

/*
 * Offers a READ again that rdma_inbound_begin() has found to be a duplicate: its answer got lost.
 * As rdma_inbound_begin(), but for the sequence; RDMA_VERDICT_DROP when it is no such READ.
 */
enum rdma_verdict rdma_inbound_repeat(struct rdma_inbound *in, struct rdma_qp *qp,
                                      const struct rdma_request *req);

/* Calls rdma_fabric_ops.recv_posted() once, when QP gets a receive posted. */
void rdma_qp_watch_recv(struct rdma_qp *qp);

/* Messages that a QP has answered since RESET, for the MSN of an AETH; 24 bits. */
uint32_t rdma_qp_msn(const struct rdma_qp *qp);

/* ---- at the origin ---- */

/* What transmit() did. */
enum rdma_tx {
	RDMA_TX_SENT, /* all of it is out; rdma_msg_done() has been or will be called */
	RDMA_TX_MORE, /* the budget ended first: call again in the next turn */
	RDMA_TX_WAIT, /* cannot go on now; the fabric will call rdma_qp_resume() */
	RDMA_TX_LOST, /* nobody took it: again after the QP's timeout. RC only */
	RDMA_TX_RNR,  /* no receive at the peer: again after msg->rnr_timer, or rdma_qp_resume() */
};

/* A message at its origin. The fabric may use what is marked so, and reads the rest. */
struct rdma_msg {
	struct rdma_qp *qp;
	struct rdma_request req;
	const struct rdma_av *av; /* destination; NULL: none was set */
	uint8_t state;            /* engine */
	uint8_t status;           /* engine: enum rdma_status */
	uint8_t rnr_timer;        /* fabric: with RDMA_TX_RNR */
	uint32_t fabric_word;     /* fabric: 0 when the message is new or rewound */
	uint32_t offset;          /* payload bytes that rdma_msg_map() has passed */
	struct rdma_cursor cursor;
	struct rdma_inbound inbound; /* fabric: for a destination in this process */
	struct rdma_wr wr;
};

/*
 * What a fabric offers to the engine. transmit() is called in the work phase, for the messages of
 * a QP in order, and again for the same message until it says RDMA_TX_SENT. It moves at most
 * *BUDGET payload bytes and takes what it moved off. The other functions are optional.
 */
struct rdma_fabric_ops {
	const char *name;
	unsigned window; /* messages of one QP that may be on their way; 1..64 */
	enum rdma_tx (*transmit)(struct rdma_fabric *fabric, struct rdma_msg *msg, size_t *budget);
	/* Timeout or RNR: all messages of QP that are not done will be transmitted again. */
	void (*rewind)(struct rdma_fabric *fabric, struct rdma_qp *qp);
	/* The QP left RTS for RESET or ERR, or is destroyed: it has no messages any more. */
	void (*forget)(struct rdma_fabric *fabric, struct rdma_qp *qp);
	/* A device of this fabric uses this address: av->sgid is its own. */
	void (*learn)(struct rdma_fabric *fabric, struct rdma_dev *dev, const struct rdma_av *av);
	/* QP, for which rdma_qp_watch_recv() was called, has a receive. Any context: nothing of QP
	 * may be changed. */
	void (*recv_posted)(struct rdma_fabric *fabric, struct rdma_qp *qp);
	/* A turn of a device's queue pairs ended: what transmit() has gathered can be sent. */
	void (*turn_ended)(struct rdma_fabric *fabric);
	/* A device came or will go. */
	void (*attach)(struct rdma_fabric *fabric, struct rdma_dev *dev);
	void (*detach)(struct rdma_fabric *fabric, struct rdma_dev *dev);
};

/* Embedded in every fabric. */
struct rdma_fabric {
	const struct rdma_fabric_ops *ops;
};

/* The message has been answered, or (UC, UD) sent. STATUS is OK, BAD_RESP, or one of REM_*. Without
 * effect when the QP has given it up meanwhile. */
void rdma_msg_done(struct rdma_msg *msg, enum rdma_status status);

/* Nobody is there: counts, and returns what transmit() has to say. UC and UD do not mind, they have
 * sent it. */
enum rdma_tx rdma_msg_unreachable(struct rdma_msg *msg);

/* The same for what a responder said: RDMA_VERDICT_OK or one of the last three. */
void rdma_msg_answered(struct rdma_msg *msg, enum rdma_verdict verdict);

/* A message that was RDMA_TX_SENT found no receive: it and all behind it will be transmitted again
 * when the period of the timer code has passed, or after rdma_qp_resume(). */
void rdma_msg_not_ready(struct rdma_msg *msg, uint8_t rnr_timer);

/* The memory of the message at its origin: source of SEND and WRITE, sink of READ and atomics. As
 * rdma_inbound_map(); a failure ends the message, rdma_msg_done() must not be called. */
int rdma_msg_map(struct rdma_msg *msg, size_t size, struct iovec *iov, unsigned max);
int rdma_msg_copy(struct rdma_msg *msg, void *buf, size_t size);

/* Copies SIZE bytes of the memory of the message, at payload byte OFFSET, to BUF: nothing of the
 * message changes. Returns 0 or a negative errno. */
int rdma_msg_peek(const struct rdma_msg *msg, uint32_t offset, void *buf, size_t size);

/* Starts over at payload byte OFFSET, to send (or to receive a response) again. */
void rdma_msg_seek(struct rdma_msg *msg, uint32_t offset);

/* Stores the old value that an atomic brought back. Returns 0 or as rdma_msg_map(). */
int rdma_msg_store_atomic(struct rdma_msg *msg, uint64_t value);

/* Some of what was sent has been answered: the timer and the retry counters start anew. */
void rdma_qp_progress(struct rdma_qp *qp);

/* The peer, or the order of its answers, says that something got lost: goes back to the oldest
 * message that is not done, now and not after the timeout; counts as one. Without effect while the
 * peer's receive is waited for. */
void rdma_qp_retry(struct rdma_qp *qp);

/* What transmit() waited for is there. */
void rdma_qp_resume(struct rdma_qp *qp);

/* The QP's oldest unanswered messages: the INDEX-th of them, or NULL behind the newest. */
struct rdma_msg *rdma_qp_outstanding(struct rdma_qp *qp, unsigned index);

/* The INDEX-th message of those that are not complete, sent or not; NULL behind the newest. */
struct rdma_msg *rdma_qp_message(struct rdma_qp *qp, unsigned index);

/* Whether the fabric has been given the message, and it is not done. */
bool rdma_msg_is_open(const struct rdma_msg *msg);

/* The attributes as they are now; state, cur_state and sq_draining are not kept in them. */
const struct rdma_qp_attr *rdma_qp_attributes(const struct rdma_qp *qp);

/* A pointer that belongs to the fabric; NULL at first. */
void **rdma_qp_fabric_slot(struct rdma_qp *qp);

/* ---- both ends in this process ---- */

/* Replaces the copy of payload: SIZE bytes to DST, which are at OFFSET in the message. */
typedef void rdma_copy_fn(void *arg, void *dst, const void *src, size_t size, uint32_t offset);

/*
 * Moves up to SIZE bytes between MSG and its inbound, in the direction of its opcode, piece to
 * piece. COPY may be NULL: memcpy. Returns 0, or -EIO when one end's memory failed: then MSG is
 * done and its inbound over.
 */
int rdma_msg_move(struct rdma_msg *msg, size_t size, rdma_copy_fn *copy, void *arg);

/* Wakes SENDER (rdma_qp_resume()) when RECEIVER gets a receive posted, or goes away. */
void rdma_qp_await_recv(struct rdma_qp *receiver, struct rdma_qp *sender);

/* Whether the device has any QP. */
bool rdma_dev_in_use(const struct rdma_dev *dev);

bool rdma_dev_owns_mac(struct rdma_dev *dev, const uint8_t mac[6]);

/* Counts in the device of the message's QP. */
void rdma_msg_count(struct rdma_msg *msg, enum rdma_stat stat);

#endif
