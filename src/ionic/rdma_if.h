/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RDMA part of the ionic interface: admin commands, work requests, completions and events, as
 * they stand in guest memory (spec ionic-rdma).
 *
 * Admin commands are little-endian but for the fields that have a be type; work requests,
 * completions and events are big-endian but for their 64-bit ids. Offsets count from the start of
 * the entry, header included.
 */
#ifndef ERNIC_IONIC_RDMA_IF_H
#define ERNIC_IONIC_RDMA_IF_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define IONIC_RDMA_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), #type)
#define IONIC_RDMA_ASSERT_OFFSET(type, field, value)                                               \
	static_assert(offsetof(type, field) == (value), #field)

/* Ids of queues and objects have 24 bits; a version may stand above them (spec 2.2). */
#define IONIC_RDMA_ID_MASK 0xffffffu

/* ---- identity (spec 1.2) ---- */

struct ionic_rdma_qtype {
	uint8_t qtype; /* doorbell slot */
	uint8_t reserved[3];
	le32 count;
	le32 base;
};

struct ionic_rdma_identity {
	uint8_t version, qp_opcodes, admin_opcodes, minor_version;
	le32 npts, nmrs, nahs;
	uint8_t max_stride, cl_stride, pte_stride, rrq_stride, rsq_stride;
	uint8_t dcqcn_profiles, udma_shift, reserved;
	le64 page_size_cap;
	struct ionic_rdma_qtype aq, sq, rq, cq, eq;
	le16 stats_type;
	uint8_t reserved2[162];
};
IONIC_RDMA_ASSERT_SIZE(struct ionic_rdma_identity, 256);
IONIC_RDMA_ASSERT_OFFSET(struct ionic_rdma_identity, max_stride, 0x10);
IONIC_RDMA_ASSERT_OFFSET(struct ionic_rdma_identity, udma_shift, 0x16);
IONIC_RDMA_ASSERT_OFFSET(struct ionic_rdma_identity, aq, 0x20);
IONIC_RDMA_ASSERT_OFFSET(struct ionic_rdma_identity, eq, 0x50);
IONIC_RDMA_ASSERT_OFFSET(struct ionic_rdma_identity, stats_type, 0x5c);

#define IONIC_RDMA_STATS_PORT 1 /* bits of stats_type */
#define IONIC_RDMA_STATS_QP   2

/* ---- entry sizes ---- */

#define IONIC_RDMA_EQE_SHIFT   2 /* spec 4.1 */
#define IONIC_RDMA_CQE_SHIFT   5 /* spec 5.1 */
#define IONIC_RDMA_AQ_SHIFT    6 /* spec 3.1 */
#define IONIC_RDMA_CQE_SIZE    32
#define IONIC_RDMA_AQ_STRIDE   64
#define IONIC_RDMA_WQE_SHIFT   6 /* the smallest, spec 6.2 */
#define IONIC_RDMA_WQE_SIZE    64
#define IONIC_RDMA_MAX_STRIDE  9 /* log2 of the largest */
#define IONIC_RDMA_WQE_MAX     512
#define IONIC_RDMA_DEPTH_MAX   16   /* indices in doorbells have 16 bits, spec 7.2 */
#define IONIC_RDMA_PAGE_SHIFT  12   /* the smallest page of a table, spec 8.1 */
#define IONIC_RDMA_PAGE_BITS   40   /* log2 of the largest */
#define IONIC_RDMA_EQ_DEPTH    10   /* what drivers ask for, spec 2.2 */
#define IONIC_RDMA_UDMA_SHIFT  3    /* bit of a queue id that tells its half, spec 1.4 */
#define IONIC_RDMA_STATS_BYTES 4096 /* of a statistics blob, spec 12.1 */

/* ---- admin commands (spec 3) ---- */

enum ionic_rdma_admin_op {
	IONIC_RDMA_NOOP = 0,
	IONIC_RDMA_CREATE_CQ = 1,
	IONIC_RDMA_CREATE_QP = 2,
	IONIC_RDMA_CREATE_MR = 3,
	IONIC_RDMA_STATS_HDRS = 4,
	IONIC_RDMA_STATS_VALS = 5,
	IONIC_RDMA_DESTROY_MR = 6,
	IONIC_RDMA_RESIZE_CQ = 7,
	IONIC_RDMA_DESTROY_CQ = 8,
	IONIC_RDMA_MODIFY_QP = 9,
	IONIC_RDMA_QUERY_QP = 10,
	IONIC_RDMA_DESTROY_QP = 11,
	IONIC_RDMA_DEBUG = 12,
	IONIC_RDMA_CREATE_AH = 13,
	IONIC_RDMA_QUERY_AH = 14,
	IONIC_RDMA_MODIFY_DCQCN = 15,
	IONIC_RDMA_DESTROY_AH = 16,
	IONIC_RDMA_QP_STATS_HDRS = 17,
	IONIC_RDMA_QP_STATS_VALS = 18,
	IONIC_RDMA_ADMIN_OPS = 19,
};

enum ionic_rdma_admin_status {
	IONIC_RDMA_OK = 0,
	IONIC_RDMA_BAD_CMD = 1,
	IONIC_RDMA_BAD_INDEX = 2,
	IONIC_RDMA_BAD_STATE = 3,
	IONIC_RDMA_BAD_TYPE = 4,
	IONIC_RDMA_BAD_ATTR = 5,
	IONIC_RDMA_MSG_TOO_BIG = 6,
};

#define IONIC_RDMA_ADMIN_HEADER 4

/* Where a queue's ring or a region's pages are (spec 8.1). */
struct ionic_rdma_pages {
	le32 tbl_index;
	le32 map_count;
	le64 dma_addr;
};

/* A ring in CREATE_QP. */
struct ionic_rdma_queue_desc {
	le32 cq_id;
	uint8_t depth_log2, stride_log2, dir_size_log2, page_size_log2;
	struct ionic_rdma_pages pages;
};

union ionic_rdma_admin {
	uint8_t bytes[2 * IONIC_RDMA_AQ_STRIDE];
	struct {
		uint8_t op;
		uint8_t reserved;
		le16 len; /* bytes that follow */
	} any;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le32 eq_id;
		uint8_t depth_log2, stride_log2, dir_size_log2, page_size_log2;
		le32 cq_flags;
		le32 id_ver;
		struct ionic_rdma_pages pages;
		le16 dbid_flags;
	} create_cq;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le32 pd_id;
		be32 priv_flags;
		struct ionic_rdma_queue_desc sq, rq;
		le32 id_ver;
		le16 dbid_flags;
		uint8_t type_state;
		uint8_t reserved;
	} create_qp;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le64 va, length;
		le32 pd_id;
		le32 id_ver; /* the key */
		struct ionic_rdma_pages pages;
		le16 flags;
		uint8_t pt_type, dir_size_log2, page_size_log2;
	} create_mr;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		be32 attr_mask;
		uint8_t dcqcn_profile, csum_profile;
		be16 access_flags;
		le32 rq_psn, sq_psn;
		le32 qkey_dest_qpn;
		le32 rate_limit_kbps;
		uint8_t pmtu, retry, rnr_timer, retry_timeout;
		uint8_t rsq_depth, rrq_depth;
		le16 pkey_id;
		le32 ah_id_len;
		uint8_t en_pcp, ip_dscp, reserved, type_state;
		le32 rrq_index, rsq_index;
		le64 dma_addr;
		le32 id_ver;
	} modify_qp;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le64 hdr_dma_addr, sq_dma_addr, rq_dma_addr;
		le32 ah_id;
		le32 id_ver;
		le16 dbid_flags;
	} query_qp;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le64 dma_addr;
		le32 length;
		le32 pd_id;
		le32 id_ver;
		le16 dbid_flags;
		uint8_t csum_profile, crypto;
	} create_ah;
	struct {
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le64 dma_addr;
		le32 length;
		le32 id_ver;
		uint8_t type_state;
	} stats;
	struct { /* DESTROY_* */
		uint8_t header[IONIC_RDMA_ADMIN_HEADER];
		le32 id;
	} destroy;
};
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_cq.id_ver, 16);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_cq.pages.dma_addr, 28);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_cq.dbid_flags, 36);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_qp.sq, 12);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_qp.rq, 36);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_qp.rq.pages.dma_addr, 52);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_qp.type_state, 66);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_mr.pages, 28);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_mr.page_size_log2, 48);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, modify_qp.pmtu, 28);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, modify_qp.ah_id_len, 36);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, modify_qp.type_state, 43);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, modify_qp.id_ver, 60);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, query_qp.id_ver, 32);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, create_ah.csum_profile, 26);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_admin, stats.type_state, 20);

/* Flags of a QP, in CREATE_QP, MODIFY_QP and QUERY_QP (spec 3.5). */
enum ionic_rdma_qp_flag {
	IONIC_RDMA_QPF_ACCESS = 0x7, /* enum rdma_qp_access */
	IONIC_RDMA_QPF_REMOTE_PRIVILEGED = 1 << 10,
	IONIC_RDMA_QPF_SQ_DRAINING = 1 << 11,
	IONIC_RDMA_QPF_SQD_NOTIFY = 1 << 12,
	IONIC_RDMA_QPF_SQ_CMB = 1 << 13,
	IONIC_RDMA_QPF_RQ_CMB = 1 << 14,
	IONIC_RDMA_QPF_PRIVILEGED = 1 << 15,
};

/* The blocks of QUERY_QP; each holds the PSN of the other direction (spec 3.4). */
struct ionic_rdma_query_sq {
	uint8_t rnr_timer, retry_timeout;
	be16 flags;
	be16 reserved, pkey_id;
	be32 qkey_dest_qpn;
	be32 rate_limit_kbps;
	be32 rq_psn;
};
IONIC_RDMA_ASSERT_SIZE(struct ionic_rdma_query_sq, 20);

struct ionic_rdma_query_rq {
	uint8_t state_pmtu;
	uint8_t retry_rnrtry;
	uint8_t rrq_depth, rsq_depth;
	be32 sq_psn;
	be16 flags;
	be16 reserved;
};
IONIC_RDMA_ASSERT_SIZE(struct ionic_rdma_query_rq, 12);

/* One counter in the list that STATS_HDRS gives (spec 12.1). */
struct ionic_rdma_stat_header {
	be32 type_off; /* type in the upper 4 bits */
	char name[28];
};
IONIC_RDMA_ASSERT_SIZE(struct ionic_rdma_stat_header, 32);

#define IONIC_RDMA_STAT_LE64 4u

/* ---- completions (spec 5.1) ---- */

enum ionic_rdma_cqe_type {
	IONIC_RDMA_CQE_ADMIN = 0,
	IONIC_RDMA_CQE_RECV = 1,
	IONIC_RDMA_CQE_SEND_MSN = 2,
	IONIC_RDMA_CQE_SEND_NPG = 3,
};

#define IONIC_RDMA_CQE_COLOR      1u
#define IONIC_RDMA_CQE_ERROR      2u
#define IONIC_RDMA_CQE_TYPE_SHIFT 5
#define IONIC_RDMA_CQE_QID_SHIFT  8

/* Status of a flush marker (spec 5.6); the others are enum rdma_status. */
#define IONIC_RDMA_STATUS_FLUSHED 4

union ionic_rdma_cqe {
	uint8_t bytes[IONIC_RDMA_CQE_SIZE];
	struct {
		uint8_t specific[24];
		be32 status_length;
		be32 qid_type_flags; /* color in its last bit */
	} any;
	struct {
		be16 cmd_idx; /* first stride */
		uint8_t cmd_op;
	} admin;
	struct {
		le64 wqe_id;
		be32 src_qpn_op;
		uint8_t src_mac[6];
		be16 vlan_tag;
		uint8_t imm_data_rkey[4];
	} recv;
	struct {
		uint8_t reserved[4];
		be32 msn;
	} msn;
	struct {
		uint8_t reserved[16];
		le64 wqe_id;
	} npg;
};
IONIC_RDMA_ASSERT_SIZE(union ionic_rdma_cqe, IONIC_RDMA_CQE_SIZE);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_cqe, any.qid_type_flags, 28);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_cqe, recv.vlan_tag, 18);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_cqe, recv.imm_data_rkey, 20);

/* Bits of src_qpn_op above the QPN. */
#define IONIC_RDMA_RECV_OP_SHIFT 24
#define IONIC_RDMA_RECV_VLAN     (1u << 30)
#define IONIC_RDMA_RECV_IPV4     (1u << 31)

enum ionic_rdma_recv_op {
	IONIC_RDMA_RECV_SEND = 0,
	IONIC_RDMA_RECV_SEND_INV = 1,
	IONIC_RDMA_RECV_SEND_IMM = 2,
	IONIC_RDMA_RECV_WRITE_IMM = 3,
};

/* ---- events (spec 4.1) ---- */

enum ionic_rdma_eqe_type { IONIC_RDMA_EQE_CQ = 0, IONIC_RDMA_EQE_QP = 1 };

#define IONIC_RDMA_EQE_COLOR      1u
#define IONIC_RDMA_EQE_TYPE_SHIFT 1
#define IONIC_RDMA_EQE_CODE_SHIFT 4
#define IONIC_RDMA_EQE_ID_SHIFT   8

/* Codes of CQ events; those of QPs are enum rdma_event. */
#define IONIC_RDMA_CQ_NOTIFY 0
#define IONIC_RDMA_CQ_ERROR  8

/* ---- work requests (spec 6) ---- */

/* Opcodes of identity version 1 (spec 6.4). */
enum ionic_rdma_wqe_op {
	IONIC_RDMA_WQE_SEND = 0,
	IONIC_RDMA_WQE_SEND_INV = 1,
	IONIC_RDMA_WQE_SEND_IMM = 2,
	IONIC_RDMA_WQE_READ = 3,
	IONIC_RDMA_WQE_WRITE = 4,
	IONIC_RDMA_WQE_WRITE_IMM = 5,
	IONIC_RDMA_WQE_CMP_SWAP = 6,
	IONIC_RDMA_WQE_FETCH_ADD = 7,
	IONIC_RDMA_WQE_REG_MR = 8,
	IONIC_RDMA_WQE_LOCAL_INV = 9,
	IONIC_RDMA_WQE_BIND_MW = 10,
	IONIC_RDMA_WQE_OPS = 11,
};

/* Flags; the first four are enum rdma_wr_flag. */
#define IONIC_RDMA_WQE_FLAGS        0xf
#define IONIC_RDMA_WQE_INLINE       0x4
#define IONIC_RDMA_WQE_FORMAT_SHIFT 12

enum ionic_rdma_sge_format {
	IONIC_RDMA_SGE_PLAIN = 0,
	IONIC_RDMA_SGE_SPEC32 = 1,
	IONIC_RDMA_SGE_SPEC16 = 2,
	IONIC_RDMA_SGE_FORMATS = 3,
};

/* How drivers write the length of an empty SGE (spec 6.3). */
#define IONIC_RDMA_SGE_EMPTY 0x80000000u

struct ionic_rdma_sge {
	be64 va;
	be32 len;
	be32 lkey;
};

/* The first 32 bytes of a request, and what follows them in the smallest stride. */
union ionic_rdma_wqe {
	uint8_t bytes[IONIC_RDMA_WQE_MAX];
	struct {
		le64 wqe_id;
		uint8_t op, num_sge_key;
		be16 flags;
		uint8_t imm_data_key[4];
		uint8_t specific[12];
		be32 length;
	} any;
	struct { /* SEND* on a UD QP */
		uint8_t header[16];
		be32 ah_id, dest_qpn, dest_qkey;
	} ud;
	struct { /* READ, WRITE* and atomics */
		uint8_t header[16];
		be64 va;
		be32 rkey;
	} rdma;
	struct {
		uint8_t header[28];
		be64 swap_add;
		be64 compare;
		uint8_t reserved[4];
		struct ionic_rdma_sge sge;
	} atomic;
	struct {
		uint8_t header[16];
		be64 va, length, offset, dma_addr;
		be32 map_count;
		be16 flags;
		uint8_t dir_size_log2, page_size_log2;
	} reg_mr;
	struct {
		uint8_t header[16];
		be64 va, length;
		be32 lkey;
		be16 flags;
	} bind_mw;
	struct {
		le64 wqe_id; /* an opaque token */
		uint8_t reserved, num_sge;
		be16 flags;
		be32 length;
	} recv;
};
IONIC_RDMA_ASSERT_SIZE(union ionic_rdma_wqe, IONIC_RDMA_WQE_MAX);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, any.imm_data_key, 12);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, any.length, 28);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, rdma.rkey, 24);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, atomic.compare, 36);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, atomic.sge, 48);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, reg_mr.dma_addr, 40);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, reg_mr.page_size_log2, 55);
IONIC_RDMA_ASSERT_OFFSET(union ionic_rdma_wqe, bind_mw.flags, 36);

#define IONIC_RDMA_WQE_PAYLOAD   32 /* inline data, or SGEs */
#define IONIC_RDMA_WQE_SPEC_SGES 64 /* SGEs behind a list of lengths */

#endif
