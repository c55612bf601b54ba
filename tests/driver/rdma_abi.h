/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest's RDMA driver knows of the device: admin commands, work requests, completions and
 * events, as spec ionic-rdma states them.
 *
 * Written from the specification and not shared with the server, so that a slip on one side shows
 * as a disagreement. Section numbers are those of spec ionic-rdma; offsets count from the start of
 * an entry.
 */
#ifndef ERNIC_TESTS_DRIVER_RDMA_ABI_H
#define ERNIC_TESTS_DRIVER_RDMA_ABI_H

#include <assert.h>
#include <stdint.h>

#include "base/bytes.h"

/* ---- identity (1.2), offsets in the data window of LIF_IDENTIFY ---- */

#define RDMA_ID_VERSION       0x188
#define RDMA_ID_QP_OPCODES    0x189
#define RDMA_ID_ADMIN_OPCODES 0x18a
#define RDMA_ID_NMRS          0x190
#define RDMA_ID_NAHS          0x194
#define RDMA_ID_MAX_STRIDE    0x198
#define RDMA_ID_UDMA_SHIFT    0x19e
#define RDMA_ID_AQ            0x1a8 /* u8 doorbell slot, le32 count at 4, le32 base at 8 */
#define RDMA_ID_SQ            0x1b4
#define RDMA_ID_RQ            0x1c0
#define RDMA_ID_CQ            0x1cc
#define RDMA_ID_EQ            0x1d8
#define RDMA_ID_STATS         0x1e4

/* ---- commands of the Ethernet AdminQ (2.2) ---- */

#define CMD_RDMA_CREATE_EQ     51
#define CMD_RDMA_CREATE_CQ     52
#define CMD_RDMA_CREATE_ADMINQ 53

struct rdma_queue_cmd {
	uint8_t opcode;
	uint8_t reserved;
	le16 lif_index;
	le32 qid_ver;
	le32 cid; /* EQ: interrupt; CQ: EQ; AQ: CQ */
	le16 dbid;
	uint8_t depth_log2, stride_log2;
	le64 dma_addr;
	uint8_t reserved2[40];
};
static_assert(sizeof(struct rdma_queue_cmd) == 64, "2.2");

/* ---- admin commands (3.4) ---- */

enum rdma_admin_op {
	AQ_NOOP = 0,
	AQ_CREATE_CQ = 1,
	AQ_CREATE_QP = 2,
	AQ_CREATE_MR = 3,
	AQ_STATS_HDRS = 4,
	AQ_STATS_VALS = 5,
	AQ_DESTROY_MR = 6,
	AQ_DESTROY_CQ = 8,
	AQ_MODIFY_QP = 9,
	AQ_QUERY_QP = 10,
	AQ_DESTROY_QP = 11,
	AQ_CREATE_AH = 13,
	AQ_DESTROY_AH = 16,
	AQ_QP_STATS_HDRS = 17,
	AQ_QP_STATS_VALS = 18,
};

enum rdma_admin_status {
	AQ_OK,
	AQ_BAD_CMD,
	AQ_BAD_INDEX,
	AQ_BAD_STATE,
	AQ_BAD_TYPE,
	AQ_BAD_ATTR,
	AQ_MSG_TOO_BIG,
};

#define AQ_STRIDE   64
#define AQ_HEADER   4
#define AQ_NO_INDEX 0xffffffffu /* tbl_index: where the device likes (8.1) */

/* The ring of a QP in CREATE_QP. */
struct rdma_ring_desc {
	le32 cq_id;
	uint8_t depth_log2, stride_log2, reserved, page_size_log2;
	le32 tbl_index, map_count;
	le64 dma_addr;
} __attribute__((packed));
static_assert(sizeof(struct rdma_ring_desc) == 24, "3.4 CREATE_QP");

/* Commands in full, CREATE_QP in its two strides. */
union rdma_admin_cmd {
	uint8_t raw[2 * AQ_STRIDE];
	struct {
		uint8_t op, reserved;
		le16 len;
	} header;
	struct {
		uint8_t header[AQ_HEADER];
		le32 eq_id;
		uint8_t depth_log2, stride_log2, reserved, page_size_log2;
		le32 flags, id, tbl_index, map_count;
		le64 dma_addr;
		le16 dbid;
	} __attribute__((packed)) create_cq;
	struct {
		uint8_t header[AQ_HEADER];
		le32 pd;
		be32 flags;
		struct rdma_ring_desc sq, rq;
		le32 id;
		le16 dbid;
		uint8_t type, reserved;
	} __attribute__((packed)) create_qp;
	struct {
		uint8_t header[AQ_HEADER];
		le64 va, length;
		le32 pd, key, tbl_index, map_count;
		le64 dma_addr;
		le16 flags;
		uint8_t pt_type, dir_size_log2, page_size_log2;
	} __attribute__((packed)) create_mr;
	struct {
		uint8_t header[AQ_HEADER];
		be32 mask;
		uint8_t dcqcn_profile, csum_profile;
		be16 access;
		le32 rq_psn, sq_psn, qkey_dest_qpn, rate_limit;
		uint8_t pmtu, retry, rnr_timer, timeout, rsq_depth, rrq_depth;
		le16 pkey;
		le32 ah_id_len;
		uint8_t sl, dscp, reserved, state;
		le32 rrq_index, rsq_index;
		le64 template_addr;
		le32 id;
	} __attribute__((packed)) modify_qp;
	struct {
		uint8_t header[AQ_HEADER];
		le64 template_addr, sq_addr, rq_addr;
		le32 ah, id;
		le16 dbid;
	} __attribute__((packed)) query_qp;
	struct {
		uint8_t header[AQ_HEADER];
		le64 template_addr;
		le32 length, pd, id;
		le16 dbid;
		uint8_t csum_profile, crypto;
	} __attribute__((packed)) create_ah;
	struct {
		uint8_t header[AQ_HEADER];
		le64 addr;
		le32 length, id;
		uint8_t type_state;
	} __attribute__((packed)) stats;
	struct {
		uint8_t header[AQ_HEADER];
		le32 id;
	} destroy;
};
static_assert(sizeof(union rdma_admin_cmd) == 128, "3.1");

/* Bodies, in bytes (3.4). */
#define AQ_CREATE_CQ_LEN 34
#define AQ_CREATE_QP_LEN 64
#define AQ_CREATE_MR_LEN 45
#define AQ_MODIFY_QP_LEN 60
#define AQ_QUERY_QP_LEN  34
#define AQ_CREATE_AH_LEN 24
#define AQ_STATS_LEN     17
#define AQ_DESTROY_LEN   4

/* Bits of MODIFY_QP's mask. */
enum rdma_qp_mask {
	QPM_STATE = 1 << 0,
	QPM_CUR_STATE = 1 << 1,
	QPM_SQD_NOTIFY = 1 << 2,
	QPM_ACCESS = 1 << 3,
	QPM_PKEY = 1 << 4,
	QPM_PORT = 1 << 5,
	QPM_QKEY = 1 << 6,
	QPM_AV = 1 << 7,
	QPM_PMTU = 1 << 8,
	QPM_TIMEOUT = 1 << 9,
	QPM_RETRY = 1 << 10,
	QPM_RNR_RETRY = 1 << 11,
	QPM_RQ_PSN = 1 << 12,
	QPM_RD_ATOMIC = 1 << 13,
	QPM_RNR_TIMER = 1 << 15,
	QPM_SQ_PSN = 1 << 16,
	QPM_DEST_RD_ATOMIC = 1 << 17,
	QPM_DEST_QPN = 1 << 20,
};

enum rdma_qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR };
enum rdma_qp_type { QPT_RC = 0, QPT_UC = 1, QPT_UD = 3 };

/* QP flags (3.5). */
#define QPF_REMOTE_WRITE  0x1
#define QPF_REMOTE_READ   0x2
#define QPF_REMOTE_ATOMIC 0x4
#define QPF_ACCESS_ALL    0x7
#define QPF_SPEC          0x300
#define QPF_SQD_NOTIFY    0x1000
#define QPF_PRIVILEGED    0x8000

/* Region flags (8.3). */
#define MRF_LOCAL_WRITE   0x01
#define MRF_REMOTE_WRITE  0x02
#define MRF_REMOTE_READ   0x04
#define MRF_REMOTE_ATOMIC 0x08
#define MRF_MW_BIND       0x10
#define MRF_ALL           0x1f
#define MRF_FAST          0xa000
#define MRF_MW_1          0x6000
#define MRF_MW_2          0xe000

/* ---- events and completions (4.1, 5.1) ---- */

#define EQE_TYPE(word) ((word) >> 1 & 0x7)
#define EQE_CODE(word) ((word) >> 4 & 0xf)
#define EQE_ID(word)   ((word) >> 8)
#define EQE_CQ         0
#define EQE_QP         1
#define EQE_CQ_NOTIFY  0
#define EQE_CQ_ERROR   8
#define EQE_SQ_DRAINED 1
#define EQE_COMM_EST   2
#define EQE_QP_FATAL   8
#define EQE_QP_REQ     9
#define EQE_QP_ACCESS  10

#define CQE_SIZE        32
#define CQE_TYPE(word)  ((word) >> 5 & 0x7)
#define CQE_QID_SHIFT   8
#define CQE_QID(word)   ((word) >> CQE_QID_SHIFT)
#define CQE_COLOR       0x1
#define CQE_ERROR       0x2
#define CQE_ADMIN       0
#define CQE_RECV        1
#define CQE_SEND_MSN    2
#define CQE_SEND_NPG    3
#define CQE_RECV_OP(w)  ((w) >> 24 & 0x1f)
#define CQE_RECV_QPN(w) ((w)&0xffffff)
#define CQE_RECV_VLAN   (1u << 30)
#define CQE_RECV_IPV4   (1u << 31)

union rdma_cqe {
	uint8_t raw[CQE_SIZE];
	struct {
		uint8_t specific[24];
		be32 status_length, qid_type_flags;
	} any;
	struct {
		be16 index;
		uint8_t op;
	} admin;
	struct {
		le64 wqe_id;
		be32 src_qpn_op;
		uint8_t src_mac[6];
		be16 vlan;
		uint8_t imm_key[4];
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
static_assert(sizeof(union rdma_cqe) == CQE_SIZE, "5.1");

enum rdma_status {
	WC_OK = 0,
	WC_LOC_LEN = 1,
	WC_LOC_QP_OP = 2,
	WC_LOC_PROT = 3,
	WC_FLUSH = 4,
	WC_MEM_MGMT = 5,
	WC_BAD_RESP = 6,
	WC_LOC_ACCESS = 7,
	WC_REM_INV_REQ = 8,
	WC_REM_ACCESS = 9,
	WC_REM_OP = 10,
	WC_RETRY_EXC = 11,
	WC_RNR_RETRY_EXC = 12,
};

/* ---- work requests (6) ---- */

enum rdma_op {
	OP_SEND = 0,
	OP_SEND_INV = 1,
	OP_SEND_IMM = 2,
	OP_READ = 3,
	OP_WRITE = 4,
	OP_WRITE_IMM = 5,
	OP_CMP_SWAP = 6,
	OP_FETCH_ADD = 7,
	OP_REG_MR = 8,
	OP_LOCAL_INV = 9,
	OP_BIND_MW = 10,
	OP_COUNT = 11,
};

#define WQE_FENCE     0x1
#define WQE_SOLICITED 0x2
#define WQE_INLINE    0x4
#define WQE_SIGNALED  0x8
#define WQE_SPEC32    0x1000
#define WQE_HEADER    32
#define WQE_SGE_MAX   8

struct rdma_wqe_sge {
	be64 va;
	be32 len, lkey;
};
static_assert(sizeof(struct rdma_wqe_sge) == 16, "6.3");

union rdma_wqe {
	uint8_t raw[512];
	struct {
		le64 wqe_id;
		uint8_t op, num_sge_key;
		be16 flags;
		uint8_t imm_key[4];
		uint8_t specific[12];
		be32 length;
	} __attribute__((packed)) any;
	struct {
		uint8_t base[16];
		be32 ah, dest_qpn, dest_qkey;
	} ud;
	struct {
		uint8_t base[16];
		be64 va;
		be32 rkey;
	} __attribute__((packed)) rdma;
	struct {
		uint8_t base[28];
		be64 swap_add, compare;
		uint8_t reserved[4];
		struct rdma_wqe_sge sge;
	} __attribute__((packed)) atomic;
	struct {
		uint8_t base[16];
		be64 va, length, offset, dma_addr;
		be32 map_count;
		be16 flags;
		uint8_t dir_size_log2, page_size_log2;
	} __attribute__((packed)) reg;
	struct {
		uint8_t base[16];
		be64 va, length;
		be32 lkey;
		be16 flags;
	} __attribute__((packed)) bind;
	struct {
		le64 wqe_id;
		uint8_t reserved, num_sge;
		be16 flags;
		be32 length;
	} __attribute__((packed)) recv;
};

#endif
