/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The verbs engine: memory regions, queue pairs and address handles of one RDMA device.
 *
 * The room has two doors. This one is for the owner of a device: the ionic queue ABI, or a target
 * that lives in the process. rdma/transport.h is for the fabrics that carry messages.
 *
 * The engine knows no ring, no doorbell and no completion entry. It pulls work: the owner says that
 * a queue has some (rdma_qp_kick()), and the engine asks for it, one request at a time, when it is
 * that queue pair's turn. Completions, flushes and events go back through the same table of
 * functions. CQs are the owner's matter: the engine tells what is complete, not where to write it.
 *
 * When what is called. The loop runs the engine in its work phase (base/loop.h); every owner
 * function is called there, so guest memory is in reach. Owners may call the rdma_*() functions
 * from any callback of the loop, except that
 *   - what touches guest memory (rdma_mr_create()) and what completes or flushes
 *     (rdma_qp_modify(), rdma_dev_reset()) belongs in the work phase too;
 *   - inside an owner function only rdma_qp_kick(), rdma_qp_kick_recv(), rdma_qp_fail() and the
 *     queries are allowed; nothing may be destroyed there.
 *
 * Numbers of objects (QPs, keys, AHs, PDs) are chosen by the owner. They are guest input: every
 * function here checks them against the limits of the device.
 *
 * Sections named in comments are those of "spec ionic-rdma" unless another document is named.
 */
#ifndef ERNIC_RDMA_RDMA_H
#define ERNIC_RDMA_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/loop.h"

struct rdma_dev;
struct rdma_qp;
struct rdma_fabric;

/* ---- limits of the engine ---- */

#define RDMA_SGE_MAX       8          /* of one work request, 1.2 max_stride 9 */
#define RDMA_INLINE_MAX    480        /* bytes, 1.2 max_stride 9 */
#define RDMA_MESSAGE_MAX   (1u << 31) /* bytes of one message (InfiniBand: 2^31) */
#define RDMA_ID_MAX        (1u << 24) /* QPNs, AH and MR indices have 24 bits */
#define RDMA_GRH_SIZE      40         /* in front of a received datagram, 9.5 */
#define RDMA_TEMPLATE_MAX  66         /* Ethernet, VLAN, IPv6, UDP: 3.6 */
#define RDMA_QPN_GSI       1          /* the connection manager's datagrams */
#define RDMA_RETRY_FOREVER 7          /* as an RNR retry count, 9.2 */

/* ---- operations and their outcome ---- */

enum rdma_qp_type { RDMA_QP_RC, RDMA_QP_UC, RDMA_QP_UD, RDMA_QP_TYPES };

/* Everything that is known about each stands in one table, rdma/opcode.c. */
enum rdma_opcode {
	RDMA_SEND,
	RDMA_SEND_INV,
	RDMA_SEND_IMM,
	RDMA_READ,
	RDMA_WRITE,
	RDMA_WRITE_IMM,
	RDMA_CMP_SWAP,
	RDMA_FETCH_ADD,
	RDMA_REG_MR,
	RDMA_LOCAL_INV,
	RDMA_BIND_MW,
	RDMA_OPCODES
};

const char *rdma_opcode_name(enum rdma_opcode opcode);

/* READs and atomics: what max_rd_atomic counts and a fence waits for. OPCODE below RDMA_OPCODES. */
bool rdma_op_fetches(unsigned opcode);
bool rdma_op_is_atomic(unsigned opcode);

#define RDMA_MTU_SHIFT_MIN 8 /* log2 of path MTUs: 256 bytes ... */
#define RDMA_MTU_SHIFT_MAX 12

/* How a request ended. The numbers are those of completion entries, 5.1. */
enum rdma_status {
	RDMA_OK = 0,
	RDMA_LOC_LEN_ERR = 1,        /* a message did not fit its receive */
	RDMA_LOC_QP_OP_ERR = 2,      /* malformed, or not allowed on this QP */
	RDMA_LOC_PROT_ERR = 3,       /* local key, bounds, PD or permission */
	RDMA_FLUSHED = 4,            /* never passed to complete_*(); the number is taken */
	RDMA_MEM_MGMT_ERR = 5,       /* REG_MR, LOCAL_INV or BIND_MW refused */
	RDMA_BAD_RESP_ERR = 6,       /* the peer's answer made no sense */
	RDMA_LOC_ACCESS_ERR = 7,     /* a receive ended because of the peer's bad key */
	RDMA_REM_INV_REQ_ERR = 8,    /* the peer found the request invalid */
	RDMA_REM_ACCESS_ERR = 9,     /* the peer refused the key, range or permission */
	RDMA_REM_OP_ERR = 10,        /* the peer could not do it */
	RDMA_RETRY_EXC_ERR = 11,     /* no answer in timeout x retries */
	RDMA_RNR_RETRY_EXC_ERR = 12, /* no receive in RNR timer x RNR retries */
	RDMA_STATUSES = 13
};

const char *rdma_status_name(enum rdma_status status);

/* ---- work requests ---- */

/* LENGTH bytes at VA of the region that LKEY names; key 0 as in 8.4. A length of 0 is 0 bytes. */
struct rdma_sge {
	uint64_t va;
	uint32_t length;
	uint32_t lkey;
};

enum rdma_wr_flag {
	RDMA_WR_FENCE = 1,
	RDMA_WR_SOLICITED = 2,
	RDMA_WR_INLINE = 4,
	RDMA_WR_SIGNALED = 8,
};

/*
 * One request of a send queue, filled by the owner from a private copy of its descriptor. Only the
 * fields that the opcode uses need be set; the structure comes uninitialized.
 *
 * The message is the first LENGTH bytes of the SGEs (or of the inline data). SGEs behind them are
 * not looked at, so the kernel's notation of an empty SGE as 2^31 bytes (6.3) needs no
 * translation as long as it is the only one; SGEs that hold less than LENGTH make the request
 * malformed.
 */
struct rdma_wr {
	uint64_t wr_id;   /* comes back in the completion; set it even when fetch_send() fails */
	uint8_t opcode;   /* enum rdma_opcode; checked by the engine */
	uint8_t flags;    /* enum rdma_wr_flag */
	uint8_t num_sge;  /* at most RDMA_SGE_MAX; 0 with inline data */
	uint8_t key_byte; /* BIND_MW: low byte of the window's new key */
	uint32_t length;  /* bytes, at most RDMA_MESSAGE_MAX; atomics: 8 */
	union {
		uint32_t imm;     /* SEND_IMM, WRITE_IMM: four bytes as they stood in memory */
		uint32_t inv_key; /* SEND_INV, LOCAL_INV */
		uint32_t key;     /* REG_MR: the region's new key. BIND_MW: the window's old key */
	};
	union {
		struct { /* READ, WRITE*, atomics */
			uint64_t va;
			uint32_t rkey;
			uint64_t swap_add; /* value to swap in, or to add */
			uint64_t compare;  /* CMP_SWAP */
		} remote;
		struct { /* SEND* on a UD QP */
			uint32_t ah;
			uint32_t qpn;
			uint32_t qkey; /* bit 31 set: the QP's own, 6.3 */
		} ud;
		struct { /* REG_MR; page table as in struct rdma_mr_config */
			uint64_t va, length, first, dma_addr;
			uint32_t page_count;
			uint16_t access; /* of enum rdma_access, bits 0..5 */
			uint8_t page_shift;
		} reg;
		struct { /* BIND_MW; length 0 unbinds (type 1) */
			uint64_t va, length;
			uint32_t lkey;   /* of the parent region */
			uint16_t access; /* of enum rdma_access */
		} bind;
	};
	union {
		struct rdma_sge sge[RDMA_SGE_MAX];
		uint8_t inline_data[RDMA_INLINE_MAX];
	};
};

/* One request of a receive queue. It takes the first LENGTH bytes of its SGEs, or all of them when
 * they hold less. */
struct rdma_recv {
	uint64_t wr_id; /* set it even when fetch_recv() fails */
	uint32_t length;
	uint8_t num_sge;
	struct rdma_sge sge[RDMA_SGE_MAX];
};

/* What became of a request. */
struct rdma_wc {
	uint64_t wr_id;
	enum rdma_status status;
	enum rdma_opcode opcode; /* receives: SEND, SEND_INV, SEND_IMM or WRITE_IMM */
	uint32_t length;         /* receives: bytes, with the GRH area of a datagram */
	/* of sends */
	bool signaled;
	bool remote; /* answered by a peer: counts in the MSN (5.3). RC and UC, not local opcodes */
	/* of receives */
	bool solicited;
	union {
		uint32_t imm;     /* SEND_IMM, WRITE_IMM: as the sender had it in memory */
		uint32_t inv_key; /* SEND_INV: the key that is now invalid */
	};
	uint32_t src_qpn;
	/* of receives on UD QPs (9.5) */
	uint8_t src_mac[6];
	bool ipv4, vlan;
	uint16_t vlan_tci; /* 0 when untagged */
};

/* Affiliated asynchronous events, with the codes of 4.1. */
enum rdma_event {
	RDMA_EVENT_SQ_DRAINED = 1,
	RDMA_EVENT_COMM_EST = 2,
	RDMA_EVENT_QP_FATAL = 8,
	RDMA_EVENT_REQ_ERR = 9,
	RDMA_EVENT_ACCESS_ERR = 10,
};

/* ---- what the owner does for the engine ---- */

enum rdma_mem_access { RDMA_MEM_READ = 1, RDMA_MEM_WRITE = 2 }; /* as enum guest_access */

/*
 * The device's functions get the owner of the device, those of queues the owner of the QP
 * (struct rdma_qp_config). All but those marked optional are required.
 */
struct rdma_owner_ops {
	/*
	 * Translates SIZE bytes at DMA address ADDR into at most MAX host pieces, valid until the
	 * loop's work callback returns. Returns their number, -ENOTSUP when the memory can only be
	 * reached by mem_read() and mem_write(), -E2BIG when MAX do not do, or another negative
	 * errno: the access is refused.
	 */
	int (*mem_map)(void *dev_owner, uint64_t addr, size_t size, enum rdma_mem_access access,
	               struct iovec *iov, unsigned max);
	/*
	 * A number that changes whenever a translation given before may not be used any more; 0:
	 * none may be kept now. With it the engine remembers host addresses of registered pages
	 * beyond the work callback. Optional.
	 */
	uint64_t (*mem_generation)(void *dev_owner);
	/* Copies SIZE bytes out of or into DMA memory. Returns 0 or a negative errno. */
	int (*mem_read)(void *dev_owner, uint64_t addr, void *dst, size_t size);
	int (*mem_write)(void *dev_owner, uint64_t addr, const void *src, size_t size);

	/* Whether a frame to MAC is for this device (station address and filters; 11). */
	bool (*owns_mac)(void *dev_owner, const uint8_t mac[6]);

	/*
	 * Takes the next request off the queue into *WR. Returns 1, 0 when the queue is empty, or
	 *   -EINVAL  malformed: the request ends with RDMA_LOC_QP_OP_ERR (for a receive: when a
	 *            message wants it)
	 *   other    the ring cannot be read: the QP fails with RDMA_EVENT_QP_FATAL
	 * Each request is fetched once. fetch_send() is called in state RTS only, fetch_recv() when
	 * a message needs a receive; a receive that the engine holds when the message ends early
	 * serves the next message.
	 */
	int (*fetch_send)(void *qp_owner, struct rdma_wr *wr);
	int (*fetch_recv)(void *qp_owner, struct rdma_recv *recv);

	/*
	 * A request is complete. RDMA_LOC_* and RDMA_MEM_MGMT_ERR are errors of this side, which
	 * the queue ABI reports by request (NPG); all others come from the peer (MSN). Sends
	 * complete in the order of their queue, each exactly once, whether signaled or not, until
	 * the first that failed; receives likewise. The data is visible before the call. After a
	 * failed one the QP enters ERR and flush() follows.
	 */
	void (*complete_send)(void *qp_owner, const struct rdma_wc *wc);
	void (*complete_recv)(void *qp_owner, const struct rdma_wc *wc);

	/* The QP entered ERR, for whatever reason, rdma_qp_modify() included: all that is still in
	 * its two queues is flushed. Called once, after the last real completion. */
	void (*flush)(void *qp_owner);

	/* After a run of complete_send() calls of one turn: what the owner held back, in order to
	 * merge it (5.3), has to be written now, and a flush() may have come before. Optional. */
	void (*sq_pause)(void *qp_owner);

	/* Something happened to the QP that its creator wants to know. */
	void (*event)(void *qp_owner, enum rdma_event event);
};

/* ---- the device ---- */

/* Sizes of tables. What is not used costs no memory. */
struct rdma_limits {
	uint32_t qps;   /* QPNs are 1..qps-1 */
	uint32_t mrs;   /* indices (key >> 8) are 1..mrs-1 */
	uint32_t ahs;   /* AH ids are 0..ahs-1 */
	uint64_t pages; /* of the page tables of all regions together */
};

struct rdma_dev_config {
	const char *name; /* for the log; not copied */
	struct loop *loop;
	const struct rdma_owner_ops *ops;
	void *owner;
	struct rdma_limits limits;
	struct rdma_fabric *fabric; /* NULL: every destination is out of reach */
	uint32_t datagram_mtu;      /* longest payload of a UD message, bytes: 4096 */
};

/* Makes a device. Returns 0, -EINVAL for limits beyond RDMA_ID_MAX, or -ENOMEM. */
int rdma_dev_create(const struct rdma_dev_config *config, struct rdma_dev **dev);
void rdma_dev_destroy(struct rdma_dev *dev); /* accepts NULL; resets first */

/* Forgets every QP, region, window and AH: no completion, flush or event follows, and no memory of
 * the owner is touched any more (2.5). The counters stay. */
void rdma_dev_reset(struct rdma_dev *dev);

/* The port's MTU changed. */
void rdma_dev_set_datagram_mtu(struct rdma_dev *dev, uint32_t bytes);

void *rdma_dev_owner(const struct rdma_dev *dev);
struct rdma_fabric *rdma_dev_fabric(const struct rdma_dev *dev);

/* ---- memory regions and windows (8) ---- */

/* 8.3; the bits of MR flags. */
enum rdma_access {
	RDMA_ACCESS_LOCAL_WRITE = 1 << 0,
	RDMA_ACCESS_REMOTE_WRITE = 1 << 1,
	RDMA_ACCESS_REMOTE_READ = 1 << 2,
	RDMA_ACCESS_REMOTE_ATOMIC = 1 << 3,
	RDMA_ACCESS_MW_BIND = 1 << 4,
	RDMA_ACCESS_ZERO_BASED = 1 << 5,
	RDMA_MR_UKEY = 1 << 13,   /* the key byte may be changed by REG_MR or BIND_MW */
	RDMA_MR_WINDOW = 1 << 14, /* a memory window */
	RDMA_MR_INV = 1 << 15,    /* may be invalidated; a window with it is of type 2 */
};

/*
 * A region: LENGTH bytes that its users call VA and up, found as 8.1 says:
 *   page_count 0  nowhere yet: a window, or a region to be filled by REG_MR
 *   page_count 1  contiguous from DMA_ADDR on, whatever page_shift
 *   more          in pages of 2^page_shift bytes; DMA_ADDR is a table of little-endian 64-bit page
 *                 addresses, which is copied before the call returns; the region starts FIRST
 *                 bytes into the first page
 */
struct rdma_mr_config {
	uint32_t key; /* index << 8 | key byte; index 1..mrs-1 and free */
	uint32_t pd;
	uint64_t va, length;
	uint64_t first; /* < page size */
	uint64_t dma_addr;
	uint32_t page_count;
	uint8_t page_shift; /* 12..40 when page_count > 1 */
	uint16_t flags;     /* enum rdma_access */
};

/*
 * Makes a region or window. Returns 0, or
 *   -ERANGE  the index is 0 or beyond the limit     -EEXIST  ... or taken
 *   -EINVAL  the pages do not hold the range, or the range wraps, or page_shift is impossible
 *   -ENOSPC  more pages than the limit allows       -ENOMEM
 *   other    the page table cannot be read (mem_read())
 */
int rdma_mr_create(struct rdma_dev *dev, const struct rdma_mr_config *config);

/*
 * The same in steps, for page tables that take too long to copy at once. rdma_mr_begin() returns as
 * rdma_mr_create(), or 1: the table is still to be copied. Then rdma_mr_load() copies at most PAGES
 * entries more and returns 1 until all are there, 0 when the region is made, or a negative errno
 * (with it the region is gone). Meanwhile the region can only be destroyed.
 */
int rdma_mr_begin(struct rdma_dev *dev, const struct rdma_mr_config *config);
int rdma_mr_load(struct rdma_dev *dev, uint32_t key, uint32_t pages);

/* Destroys by index; the key byte is ignored, as it may have changed (3.4). Transfers under way
 * that use the region end with the error of a bad key. Returns 0 or -ENOENT. */
int rdma_mr_destroy(struct rdma_dev *dev, uint32_t key);

/* KEY will be used soon, by the next request of a queue perhaps: gets its entry into the cache. */
void rdma_mr_prefetch(const struct rdma_dev *dev, uint32_t key);

/* ---- address handles ---- */

/* An address, as a header template gives it (3.6). */
struct rdma_av {
	uint8_t dst_mac[6], src_mac[6];
	bool vlan;
	uint8_t ip_version; /* 4 or 6; 0: no address */
	uint16_t vlan_tci;  /* priority and id, 0 when untagged */
	uint8_t tclass, hop_limit;
	uint16_t udp_sport;
	uint32_t flow_label;
	uint8_t sgid[16], dgid[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t template_size;
	uint8_t header[RDMA_TEMPLATE_MAX]; /* the template itself */
};

/* Reads SIZE bytes of template. Returns 0, or -EINVAL when it is not Ethernet, at most one VLAN
 * tag, IPv4 without options or IPv6, and UDP to port 4791, exactly to the end. */
int rdma_av_parse(const uint8_t *header, size_t size, struct rdma_av *av);

/* Makes address handle ID of PD from a template. Returns 0, -ERANGE, -EEXIST, -EINVAL or -ENOMEM.
 */
int rdma_ah_create(struct rdma_dev *dev, uint32_t id, uint32_t pd, const uint8_t *header,
                   size_t size);
int rdma_ah_destroy(struct rdma_dev *dev, uint32_t id); /* 0 or -ENOENT */

/* ---- queue pairs (9) ---- */

/* Numbers of 3.4; what is legal in each is a table in rdma/qp.c. */
enum rdma_qp_state {
	RDMA_QPS_RESET,
	RDMA_QPS_INIT,
	RDMA_QPS_RTR,
	RDMA_QPS_RTS,
	RDMA_QPS_SQD,
	RDMA_QPS_SQE,
	RDMA_QPS_ERR,
	RDMA_QP_STATES
};

const char *rdma_qp_state_name(enum rdma_qp_state state);

struct rdma_qp_config {
	uint32_t qpn; /* 1..qps-1, free */
	enum rdma_qp_type type;
	uint32_t pd;
	bool privileged;        /* key 0 of an SGE is a raw DMA address (8.4) */
	bool remote_privileged; /* the peer may use key 0 the same way */
	void *owner;
};

/* Makes a QP in state RESET. Returns 0, -ERANGE, -EEXIST, -EINVAL or -ENOMEM. */
int rdma_qp_create(struct rdma_dev *dev, const struct rdma_qp_config *config, struct rdma_qp **qp);

/* Ends a QP in any state. No completion, flush or event of it follows. Accepts NULL. */
void rdma_qp_destroy(struct rdma_qp *qp);

struct rdma_qp *rdma_qp_find(struct rdma_dev *dev, uint32_t qpn); /* or NULL */

/* Which attributes are meant: the bits of ib_qp_attr_mask (3.4 MODIFY_QP). */
enum rdma_attr_mask {
	RDMA_ATTR_STATE = 1 << 0,
	RDMA_ATTR_CUR_STATE = 1 << 1,
	RDMA_ATTR_SQD_NOTIFY = 1 << 2,
	RDMA_ATTR_ACCESS = 1 << 3,
	RDMA_ATTR_PKEY = 1 << 4, /* no effect: the only one is 0xffff */
	RDMA_ATTR_PORT = 1 << 5, /* no effect: the only one is 1 */
	RDMA_ATTR_QKEY = 1 << 6,
	RDMA_ATTR_AV = 1 << 7,
	RDMA_ATTR_MTU = 1 << 8,
	RDMA_ATTR_TIMEOUT = 1 << 9,
	RDMA_ATTR_RETRY = 1 << 10,
	RDMA_ATTR_RNR_RETRY = 1 << 11,
	RDMA_ATTR_RQ_PSN = 1 << 12,
	RDMA_ATTR_MAX_RD_ATOMIC = 1 << 13,
	RDMA_ATTR_RNR_TIMER = 1 << 15,
	RDMA_ATTR_SQ_PSN = 1 << 16,
	RDMA_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	RDMA_ATTR_DEST_QPN = 1 << 20,
	RDMA_ATTR_RATE_LIMIT = 1 << 25, /* kept and reported; nothing is slowed down */
};

/* 3.5: not the bits of regions. */
enum rdma_qp_access {
	RDMA_QP_REMOTE_WRITE = 1 << 0,
	RDMA_QP_REMOTE_READ = 1 << 1,
	RDMA_QP_REMOTE_ATOMIC = 1 << 2,
};

struct rdma_qp_attr {
	enum rdma_qp_state state;
	enum rdma_qp_state cur_state; /* only of rdma_qp_modify() */
	bool sqd_notify;
	bool sq_draining;  /* only of rdma_qp_query(): SQD, and not yet drained */
	uint8_t access;    /* enum rdma_qp_access */
	uint8_t mtu_shift; /* log2 of the path MTU, RDMA_MTU_SHIFT_MIN.._MAX */
	uint8_t timeout;   /* 4.096 us x 2^n; 0 for ever */
	uint8_t retry_count, rnr_retry;
	uint8_t rnr_timer; /* code of spec rocev2 7.4 */
	uint32_t qkey, dest_qpn;
	uint32_t sq_psn, rq_psn;                    /* next to send, next expected; 24 bits */
	uint32_t max_rd_atomic, max_dest_rd_atomic; /* outstanding READs and atomics, 0: none */
	uint32_t rate_limit;                        /* kbit/s */
	struct rdma_av av;
};

/*
 * Changes a QP. ATTR fields whose bit is not in MASK are not looked at. Returns 0, or
 *   -EPROTO  no such transition from the QP's state, or it is not in cur_state (BAD_STATE)
 *   -EINVAL  a value is out of range (BAD_ATTR); nothing has changed
 *   -ENOMEM  no memory for the messages of a QP that may send; nothing has changed
 * Entering ERR flushes before the call returns; entering RESET drops everything silently, with
 * completions of the QP's old life never to come.
 */
int rdma_qp_modify(struct rdma_qp *qp, uint32_t mask, const struct rdma_qp_attr *attr);

void rdma_qp_query(const struct rdma_qp *qp, struct rdma_qp_attr *attr);

/* The send queue has work. Remembered in SQD, ignored in all other states but RTS; an owner that
 * had posts before RTS is asked for them on entering it. */
void rdma_qp_kick(struct rdma_qp *qp);

/* A receive was posted: who waits for one may go on. Ignored in RESET and ERR. */
void rdma_qp_kick_recv(struct rdma_qp *qp);

/* The owner cannot go on with the QP (its CQ overflowed): ERR, with RDMA_EVENT_QP_FATAL when FATAL.
 * Takes effect when the engine runs next, so that it may be called from anywhere. */
void rdma_qp_fail(struct rdma_qp *qp, bool fatal);

uint32_t rdma_qp_number(const struct rdma_qp *qp);
enum rdma_qp_type rdma_qp_type(const struct rdma_qp *qp);
enum rdma_qp_state rdma_qp_state(const struct rdma_qp *qp);
struct rdma_dev *rdma_qp_dev(const struct rdma_qp *qp);
void *rdma_qp_owner(const struct rdma_qp *qp);

/* ---- counters ---- */

/*
 * Counters of the device: enumerator, name, and qword index in the LIF statistics block (spec
 * ionic-ethernet 10.4; -1: not in there).
 */
#define RDMA_STATS(X)                                                                              \
	X(TX_BYTES, "tx_rdma_ucast_bytes", 48)     /* payload sent, READ responses included */     \
	X(TX_PACKETS, "tx_rdma_ucast_packets", 49) /* messages, one packet each */                 \
	X(RX_BYTES, "rx_rdma_ucast_bytes", 56)     /* payload landed */                            \
	X(RX_PACKETS, "rx_rdma_ucast_packets", 57)                                                 \
	X(REQ_RX_SEQ_ERR, "rdma_req_rx_pkt_seq_err", 96)                                           \
	X(REQ_RX_RNR_RETRY, "rdma_req_rx_rnr_retry_err", 97) /* RNR periods waited */              \
	X(REQ_RX_REM_ACCESS, "rdma_req_rx_remote_access_err", 98)                                  \
	X(REQ_RX_REM_INV_REQ, "rdma_req_rx_remote_inv_req_err", 99)                                \
	X(REQ_RX_REM_OPER, "rdma_req_rx_remote_oper_err", 100)                                     \
	X(REQ_RX_IMPLIED_NAK, "rdma_req_rx_implied_nak_seq_err", 101)                              \
	X(REQ_CQE_ERR, "rdma_req_rx_cqe_err", 102)         /* sends that failed */                 \
	X(REQ_CQE_FLUSH, "rdma_req_rx_cqe_flush_err", 103) /* send queues flushed */               \
	X(REQ_RX_DUP, "rdma_req_rx_dup_responses", 104)                                            \
	X(REQ_RX_INVALID, "rdma_req_rx_invalid_packets", 105)                                      \
	X(REQ_TX_LOC_ACCESS, "rdma_req_tx_local_access_err", 106) /* RDMA_LOC_PROT_ERR */          \
	X(REQ_TX_LOC_OPER, "rdma_req_tx_local_oper_err", 107)     /* RDMA_LOC_QP_OP_ERR */         \
	X(REQ_TX_MEM_MGMT, "rdma_req_tx_memory_mgmt_err", 108)    /* RDMA_MEM_MGMT_ERR */          \
	X(RESP_RX_DUP, "rdma_resp_rx_dup_requests", 112)                                           \
	X(RESP_RX_OUT_OF_BUFFER, "rdma_resp_rx_out_of_buffer", 113) /* no receive was posted */    \
	X(RESP_RX_OUT_OF_SEQ, "rdma_resp_rx_out_of_seq_pkts", 114)                                 \
	X(RESP_CQE_ERR, "rdma_resp_rx_cqe_err", 115)         /* receives that failed */            \
	X(RESP_CQE_FLUSH, "rdma_resp_rx_cqe_flush_err", 116) /* receive queues flushed */          \
	X(RESP_RX_LOC_LEN, "rdma_resp_rx_local_len_err", 117)                                      \
	X(RESP_RX_INV_REQ, "rdma_resp_rx_inv_request_err", 118)                                    \
	X(RESP_RX_LOC_QP_OPER, "rdma_resp_rx_local_qp_oper_err", 119)                              \
	X(RESP_RX_OUT_OF_ATOMIC, "rdma_resp_rx_out_of_atomic_resource", 120)                       \
	X(RESP_TX_SEQ_ERR, "rdma_resp_tx_pkt_seq_err", 121)                                        \
	X(RESP_TX_INV_REQ, "rdma_resp_tx_remote_inv_req_err", 122)                                 \
	X(RESP_TX_ACCESS, "rdma_resp_tx_remote_access_err", 123)                                   \
	X(RESP_TX_OPER, "rdma_resp_tx_remote_oper_err", 124)                                       \
	X(RESP_TX_RNR, "rdma_resp_tx_rnr_retry_err", 125) /* messages that found no receive */     \
	X(RETRIES, "rdma_retries", -1)                    /* timeouts answered by sending again */ \
	X(RETRY_EXC, "rdma_retry_exceeded", -1)                                                    \
	X(RNR_RETRY_EXC, "rdma_rnr_retry_exceeded", -1)                                            \
	X(NO_DESTINATION, "rdma_no_destination", -1) /* messages nobody was there to take */       \
	X(DROPPED, "rdma_dropped", -1)               /* messages a QP did not take: its state, */  \
	                                             /* type, peer, Q_Key or buffer */             \
	X(TRUNCATED, "rdma_datagram_too_long", -1)   /* datagrams above the MTU, not sent */       \
	X(TURNS, "rdma_turns", -1)                   /* turns of the engine */                     \
	X(SLICES, "rdma_slices", -1)                 /* turns of a QP that ended by its budget */

#define RDMA_STAT_ENUM(id, name, index) RDMA_STAT_##id,
enum rdma_stat { RDMA_STATS(RDMA_STAT_ENUM) RDMA_STAT_COUNT };

const char *rdma_stat_name(enum rdma_stat stat);
int rdma_stat_lif_index(enum rdma_stat stat); /* or -1 */
uint64_t rdma_dev_stat(const struct rdma_dev *dev, enum rdma_stat stat);

/* Messages and bytes by opcode: sent, and taken from a peer (a READ counts its bytes at both ends:
 * received at its requester, sent at its responder, under READ in `tx` and `rx` of the requests).
 */
struct rdma_traffic {
	uint64_t messages, bytes;
};

struct rdma_qp_stats {
	struct rdma_traffic tx[RDMA_OPCODES]; /* requests completed */
	struct rdma_traffic rx[RDMA_OPCODES]; /* requests answered */
	uint64_t receives;                    /* receives completed */
	uint64_t tx_errors, rx_errors;        /* completions with an error */
	uint64_t retries, rnrs;               /* timeouts; RNR periods waited */
	uint64_t kicks;                       /* of the send queue */
};

/* Logarithmic histogram: bucket n counts values of n significant bits. */
#define RDMA_HISTOGRAM_BUCKETS 40
struct rdma_histogram {
	uint64_t bucket[RDMA_HISTOGRAM_BUCKETS];
};

struct rdma_dev_stats {
	struct rdma_qp_stats traffic;          /* of all QPs that are or have been */
	struct rdma_histogram turn_ops;        /* requests in one turn of the engine */
	struct rdma_histogram turn_bytes;      /* payload bytes in one turn */
	struct rdma_histogram kick_to_done_ns; /* from a kick to the end of the slice it caused */
	uint32_t qps, mrs, windows, ahs;       /* in use */
	uint64_t pages;
};

const struct rdma_qp_stats *rdma_qp_stats(const struct rdma_qp *qp);
void rdma_dev_stats(const struct rdma_dev *dev, struct rdma_dev_stats *stats);

/* Calls VISIT for every QP, by number. */
void rdma_qp_visit(struct rdma_dev *dev, void (*visit)(struct rdma_qp *qp, void *arg), void *arg);

/* Whether a QP or an address handle has GID as its own end. Looks at all of them. */
bool rdma_dev_uses_gid(struct rdma_dev *dev, const uint8_t gid[16]);

typedef void rdma_stat_fn(const char *name, uint64_t value, void *arg);

/* Calls FN for every named counter of the device, for messages and bytes by opcode, for the objects
 * in use, and for the buckets of the histograms that are not empty, by the value they are below. */
void rdma_dev_stats_visit(const struct rdma_dev *dev, rdma_stat_fn *fn, void *arg);

/* Calls FN for the counters of a QP that have moved. */
void rdma_qp_stats_visit(const struct rdma_qp *qp, rdma_stat_fn *fn, void *arg);

#endif
