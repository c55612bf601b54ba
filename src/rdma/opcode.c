/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All facts about opcodes, in one table (spec ionic-rdma 6.4; spec rocev2 4), and names. */
#include "rdma/rdma_internal.h"

#define ON_RC (1 << RDMA_QP_RC)
#define ON_UC (1 << RDMA_QP_UC)
#define ON_UD (1 << RDMA_QP_UD)

const struct rdma_op_info rdma_ops[RDMA_OPCODES] = {
        [RDMA_SEND] = {.name = "send",
                       .flags = OP_OUT | OP_RECV | OP_SINK,
                       .qp_types = ON_RC | ON_UC | ON_UD},
        [RDMA_SEND_INV] = {.name = "send_inv",
                           .flags = OP_OUT | OP_RECV | OP_SINK | OP_INV,
                           .qp_types = ON_RC},
        [RDMA_SEND_IMM] = {.name = "send_imm",
                           .flags = OP_OUT | OP_RECV | OP_SINK | OP_IMM,
                           .qp_types = ON_RC | ON_UC | ON_UD},
        [RDMA_READ] = {.name = "read",
                       .flags = OP_IN | OP_REMOTE,
                       .qp_types = ON_RC,
                       .qp_access = RDMA_QP_REMOTE_READ,
                       .remote = RDMA_ACCESS_REMOTE_READ,
                       .local = RDMA_ACCESS_LOCAL_WRITE},
        [RDMA_WRITE] = {.name = "write",
                        .flags = OP_OUT | OP_REMOTE,
                        .qp_types = ON_RC | ON_UC,
                        .qp_access = RDMA_QP_REMOTE_WRITE,
                        .remote = RDMA_ACCESS_REMOTE_WRITE},
        [RDMA_WRITE_IMM] = {.name = "write_imm",
                            .flags = OP_OUT | OP_REMOTE | OP_RECV | OP_IMM,
                            .qp_types = ON_RC | ON_UC,
                            .qp_access = RDMA_QP_REMOTE_WRITE,
                            .remote = RDMA_ACCESS_REMOTE_WRITE},
        [RDMA_CMP_SWAP] = {.name = "cmp_swap",
                           .flags = OP_IN | OP_REMOTE | OP_ATOMIC,
                           .qp_types = ON_RC,
                           .qp_access = RDMA_QP_REMOTE_ATOMIC,
                           .remote = RDMA_ACCESS_REMOTE_ATOMIC,
                           .local = RDMA_ACCESS_LOCAL_WRITE},
        [RDMA_FETCH_ADD] = {.name = "fetch_add",
                            .flags = OP_IN | OP_REMOTE | OP_ATOMIC,
                            .qp_types = ON_RC,
                            .qp_access = RDMA_QP_REMOTE_ATOMIC,
                            .remote = RDMA_ACCESS_REMOTE_ATOMIC,
                            .local = RDMA_ACCESS_LOCAL_WRITE},
        [RDMA_REG_MR] = {.name = "reg_mr", .flags = OP_LOCAL, .qp_types = ON_RC | ON_UC | ON_UD},
        [RDMA_LOCAL_INV] = {.name = "local_inv",
                            .flags = OP_LOCAL | OP_DRAIN,
                            .qp_types = ON_RC | ON_UC | ON_UD},
        [RDMA_BIND_MW] = {.name = "bind_mw", .flags = OP_LOCAL, .qp_types = ON_RC | ON_UC},
};

bool rdma_op_fetches(unsigned opcode)
{
	return rdma_op_is(opcode, OP_IN);
}

bool rdma_op_is_atomic(unsigned opcode)
{
	return rdma_op_is(opcode, OP_ATOMIC);
}

const char *rdma_opcode_name(enum rdma_opcode opcode)
{
	return (unsigned)opcode < RDMA_OPCODES ? rdma_ops[opcode].name : "?";
}

static const char *const status_names[] = {
        [RDMA_OK] = "ok",
        [RDMA_LOC_LEN_ERR] = "local length error",
        [RDMA_LOC_QP_OP_ERR] = "local QP operation error",
        [RDMA_LOC_PROT_ERR] = "local protection error",
        [RDMA_FLUSHED] = "flushed",
        [RDMA_MEM_MGMT_ERR] = "memory management operation error",
        [RDMA_BAD_RESP_ERR] = "bad response",
        [RDMA_LOC_ACCESS_ERR] = "local access error",
        [RDMA_REM_INV_REQ_ERR] = "remote invalid request",
        [RDMA_REM_ACCESS_ERR] = "remote access error",
        [RDMA_REM_OP_ERR] = "remote operation error",
        [RDMA_RETRY_EXC_ERR] = "retries exceeded",
        [RDMA_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
};
_Static_assert(ARRAY_SIZE(status_names) == RDMA_STATUSES, "a name for every status");

const char *rdma_status_name(enum rdma_status status)
{
	return (unsigned)status < RDMA_STATUSES ? status_names[status] : "?";
}
