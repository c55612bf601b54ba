/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the RoCEv2 fabric share.
 *
 * Who is who:
 *	roce.c		the fabric: theory of operation, queue pairs, incoming packets
 *	roce_tx.c	frames on their way out
 *	roce_req.c	requester: from messages to request packets
 *	roce_comp.c	requester: what responses mean
 *	roce_resp.c	responder: what request packets do
 *	roce_reply.c	responder: answers, in the order of the requests
 *	roce_rate.c	congestion: marks, notifications, window
 *	roce_trace.c	messages that stay in the process, for captures
 */
#ifndef ERNIC_FABRIC_ROCE_INTERNAL_H
#define ERNIC_FABRIC_ROCE_INTERNAL_H

#include <sys/queue.h>

#include "fabric/fabric_internal.h"
#include "net/net.h"
#include "net/roce_headers.h"

/* Ethernet with a tag, IPv6, UDP, BTH with the largest extensions, payload, pad, ICRC. */
#define ROCE_FRAME_MAX 4224

enum {
	ROCE_TX_BATCH = NET_MANY_MAX,
	/* Packets of a QP that may be unacknowledged: a TAP queues 1000, from all senders (15, 2).
	 */
	ROCE_WINDOW = 128,
	ROCE_WINDOW_MIN = 4,
	/* At least one packet of so many asks for an acknowledgement (7.2). */
	ROCE_ACK_EVERY = 32,
	/* Packets of READ responses of a QP in one turn, so that others come in between. */
	ROCE_ANSWER_SLICE = 64,
	/* READs and atomics of a QP that are remembered, at most. */
	ROCE_FETCHES_MAX = 128,
};

_Static_assert(ROCE_FRAME_MAX >= 18 + 40 + 8 + 12 + 28 + ROCE_MTU_MAX + 3 + 4, "any packet fits");

/* A READ or an atomic at its responder: being answered, or remembered in case it is asked again. */
struct roce_fetch {
	TAILQ_ENTRY(roce_fetch) link; /* of those that are to be answered */
	bool queued;
	bool begun;               /* a READ: its first packet is out */
	struct rdma_request req;  /* as it was accepted */
	struct rdma_request part; /* what is to be answered of a READ: all, or its end */
	uint32_t next;            /* PSN of the next response packet */
	uint32_t msn;
	uint64_t original; /* of an atomic */
	struct rdma_inbound in;
};
TAILQ_HEAD(roce_fetches, roce_fetch);

enum roce_reply { ROCE_REPLY_NONE, ROCE_REPLY_ACK, ROCE_REPLY_NAK };

/* The fabric's part of a queue pair. PSNs have 24 bits. */
struct roce_qp {
	struct roce *roce;
	struct rdma_qp *qp;
	TAILQ_ENTRY(roce_qp) due; /* has something to answer */
	bool on_due;

	/* requester: una..next are out, next..newest were out before the last rewind */
	bool started;
	bool waiting; /* RDMA_TX_WAIT was said */
	uint32_t una, next, newest;
	uint32_t fetched; /* of una..next: PSNs of READ responses, which the window spares */
	bool recovering;  /* what was out at a rewind, up to recover, is being sent again */
	uint32_t recover;
	uint32_t unasked; /* packets since the last that asked for an acknowledgement */
	bool gap_seen;    /* a response was missing, at una = gap_una, and was asked for again */
	uint32_t gap_una;

	/* congestion */
	uint32_t window, grown; /* packets; acknowledged since it last grew */
	uint64_t cnp_sent_ns;   /* 0: never */
	bool cnp_due;

	/* responder: what is under way, if anything */
	uint16_t landing;    /* ROCE_IS_SEND, ROCE_IS_WRITE, or 0 */
	uint32_t expected;   /* while landing: the next PSN */
	bool gap_told;       /* the peer has been told what is expected */
	uint32_t gap_newest; /* ... and this had come meanwhile */
	struct rdma_request req;
	struct rdma_inbound in;
	/* answers */
	struct roce_fetches answers;
	struct roce_fetch *fetches;
	uint32_t fetch_count, fetch_next;
	uint8_t reply, syndrome; /* enum roce_reply; after all answers */
	uint32_t reply_psn;      /* of a NAK */
};
TAILQ_HEAD(roce_qps, roce_qp);

struct roce {
	struct rdma_fabric base;
	struct loop *loop;
	struct local_net net;
	struct net_sharer sharer;
	struct loop_work work; /* answers */
	struct roce_qps due;
	unsigned due_count;
	struct roce_qp *busy; /* whose packet is being looked at: not to be freed */
	uint16_t ident;

	/* frames that are complete and not sent */
	unsigned tx_count;
	struct iovec tx_iov[ROCE_TX_BATCH];
	struct net_frame tx_frame[ROCE_TX_BATCH];
	uint8_t tx_bytes[ROCE_TX_BATCH][ROCE_FRAME_MAX];

	struct rdma_av rx_av; /* of the packet that is being looked at */
	uint8_t rx_bytes[ROCE_FRAME_MAX];
};

/* A packet for a QP. */
struct roce_rx {
	struct roce *roce;
	struct rdma_qp *qp;
	struct roce_qp *rq; /* NULL for datagrams */
	const struct rdma_qp_attr *attr;
	struct roce_packet packet;
	bool retry; /* something got lost on the way */
};

/* ---- roce.c ---- */

/* The fabric's part of QP, made when it is not there; NULL when there is no memory. */
struct roce_qp *roce_qp_get(struct roce *roce, struct rdma_qp *qp);

/* RQ has something to answer. */
void roce_qp_due(struct roce_qp *rq);

/* ---- roce_tx.c ---- */

/* Writes the headers FIELDS of a packet to AV to FRAME. Returns where its SIZE bytes of payload go.
 */
uint8_t *roce_frame_begin(uint8_t frame[ROCE_FRAME_MAX], const struct rdma_av *av,
                          const struct roce_fields *fields, size_t size);

/*
 * Begins a frame to AV with the headers FIELDS. Returns where its SIZE bytes of payload go (at most
 * ROCE_MTU_MAX). A frame that is begun and not added was never there.
 */
uint8_t *roce_tx_begin(struct roce *roce, const struct rdma_av *av,
                       const struct roce_fields *fields, size_t size);

/* The payload of the frame that was begun is there. It leaves with the batch. */
void roce_tx_add(struct roce *roce);

/* Sends all that was added. */
void roce_tx_flush(struct roce *roce);

/* ---- roce_req.c ---- */

/* As rdma_fabric_ops.transmit(), for destinations on the wire. */
enum rdma_tx roce_transmit_packets(struct roce *roce, struct rdma_msg *msg, size_t *budget);

/* Fills FIELDS for packet INDEX of a message with a path MTU of 2^SHIFT. Returns its payload bytes
 * (of a READ: those of its answer). */
uint32_t roce_packet_fields(const struct rdma_request *req, unsigned shift, uint32_t index,
                            struct roce_fields *fields);

/* Everything that is not acknowledged will be sent again. */
void roce_requester_rewind(struct roce_qp *rq);

/* Whether the next packet of a SEND or WRITE, or the next READ or atomic, may leave. */
bool roce_may_send(const struct roce_qp *rq);
bool roce_may_fetch(const struct roce_qp *rq);

/* ---- roce_comp.c ---- */

void roce_receive_response(struct roce_rx *rx);

/* ---- roce_resp.c ---- */

void roce_receive_request(struct roce_rx *rx);
void roce_receive_datagram(struct roce_rx *rx);

/* ---- roce_reply.c ---- */

/* The place for a new READ or atomic, or NULL when all are in use. */
struct roce_fetch *roce_fetch_new(struct roce_qp *rq);

/* The remembered READ or atomic that PSN is of, or NULL. */
struct roce_fetch *roce_fetch_find(struct roce_qp *rq, uint32_t psn);

/* FETCH is to be answered, from PSN next on. */
void roce_fetch_queue(struct roce_qp *rq, struct roce_fetch *fetch);

void roce_reply_ack(struct roce_qp *rq);
void roce_reply_nak(struct roce_qp *rq, uint32_t psn, uint8_t syndrome);

/* What the responder said, to the sender of the packet with PSN. */
void roce_reply_verdict(struct roce_qp *rq, uint32_t psn, enum rdma_verdict verdict,
                        uint8_t rnr_timer);

/* The syndrome for a verdict that refuses. */
uint8_t roce_syndrome(enum rdma_verdict verdict);

/* Sends what RQ has to answer. Returns true when there is more. */
bool roce_answer(struct roce_qp *rq);

/* RQ is about to go: sends the acknowledgement that it owes, unless other answers are before it. */
void roce_answer_last(struct roce_qp *rq);

/* The newest request that was executed, or its part that has come so far. */
uint32_t roce_newest_psn(const struct roce_qp *rq);

/* ---- roce_rate.c ---- */

void roce_rate_reset(struct roce_qp *rq);
void roce_rate_acknowledged(struct roce_qp *rq, uint32_t packets);
void roce_rate_lost(struct roce_qp *rq);     /* something has to be sent again */
void roce_rate_marked(struct roce_qp *rq);   /* a packet came with a router's mark */
void roce_rate_notified(struct roce_qp *rq); /* the peer saw ours marked */
void roce_rate_send_cnp(struct roce_qp *rq);

#endif
