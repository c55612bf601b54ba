/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the fabric room share. Stays inside the room.
 *
 * Who is who:
 *	fabric.c	from a description to a fabric
 *	local.c		destinations in this process, for every fabric that has any
 *	loopback.c	a fabric that has no others, and test patterns
 *	mesh*.c		a fabric of several servers, over TCP
 *	none.c		a fabric that has none at all
 *	roce*.c		real packets on the emulated wire; see roce_internal.h
 *	md5.c		digests for loopback's log
 */
#ifndef ERNIC_FABRIC_INTERNAL_H
#define ERNIC_FABRIC_INTERNAL_H

#include "base/bytes.h"
#include "fabric/fabric.h"

/* ---- local.c ---- */

#define LOCAL_DEVICES_MAX 16 /* the guest's and one for each target */

/* The devices of this process that a fabric connects. Embedded in the fabric, zeroed at first. */
struct local_net {
	struct rdma_dev *devices[LOCAL_DEVICES_MAX];
	unsigned count;
	/* What lands instead of the payload; NULL: the payload. ARG is the message. */
	rdma_copy_fn *copy;
	/* Its captures show messages too; optional. */
	struct net_wire *wire;
	/* The message has landed in full; optional. */
	void (*landed)(struct local_net *net, struct rdma_msg *msg);
};

void local_attach(struct local_net *net, struct rdma_dev *dev);
void local_detach(struct local_net *net, struct rdma_dev *dev);

/* The device that MSG is addressed to, or NULL. */
struct rdma_dev *local_find(const struct local_net *net, const struct rdma_msg *msg);

/* As rdma_fabric_ops.transmit(). */
enum rdma_tx local_transmit(struct local_net *net, struct rdma_msg *msg, size_t *budget);

/* ---- roce_trace.c ---- */

/* A message that is no packets, as it is shown to a capture. */
struct roce_trace {
	struct net_wire *wire; /* one with net_wire_traces() */
	const struct rdma_request *req;
	const struct rdma_av *av; /* the requester's address of its destination */
	unsigned mtu_shift;
	uint32_t msn;                  /* for answers */
	bool from_peer, to_peer;       /* the requester, or the responder, is another server */
	const struct rdma_msg *msg;    /* where payload is read: at its origin */
	const struct rdma_inbound *in; /* ... or where it goes, when msg is NULL */
};

/* Shows the first packet of the request: all there is of a READ or an atomic. For others only when
 * they are refused at once, as roce_trace_moved() shows it otherwise. */
void roce_trace_begin(const struct roce_trace *trace);

/* Payload bytes up to NOW have been moved, BEFORE of them earlier: shows the packets that ended
 * since, of the request or of a READ's answer. The time it takes is bounded by the bytes. */
void roce_trace_moved(const struct roce_trace *trace, uint32_t before, uint32_t now);

/* Shows that all before PSN is acknowledged. */
void roce_trace_ack(const struct roce_trace *trace, uint32_t psn);

/* Shows the old value that an atomic is answered with. */
void roce_trace_atomic(const struct roce_trace *trace, uint64_t value);

/* Shows that the packet PSN was refused; RNR_TIMER goes with RDMA_VERDICT_RNR. */
void roce_trace_nak(const struct roce_trace *trace, uint32_t psn, enum rdma_verdict verdict,
                    uint8_t rnr_timer);

/* ---- makers; OPTIONS is what follows the name and may be NULL ---- */

struct fabric_kind {
	const char *name;
	/* Returns 0, -ENOMEM, or -EINVAL with a sentence in ERROR. */
	int (*create)(const struct fabric_place *place, const char *options,
	              struct rdma_fabric **fabric, char *error, size_t size);
	void (*destroy)(struct rdma_fabric *fabric);
	const struct rdma_fabric_ops *ops;
};

extern const struct fabric_kind fabric_loopback, fabric_mesh, fabric_none, fabric_roce;

/* ---- md5.c (RFC 1321) ---- */

#define MD5_SIZE  16
#define MD5_BLOCK 64

struct md5 {
	uint32_t state[4];
	uint64_t size; /* bytes so far */
	uint8_t block[MD5_BLOCK];
};

void md5_init(struct md5 *md5);
void md5_update(struct md5 *md5, const void *data, size_t size);
void md5_final(struct md5 *md5, uint8_t digest[MD5_SIZE]);

#endif
