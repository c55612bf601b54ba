/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every error, on every opcode and QP type it applies to: what the sender's completion says, what
 * the receiver's says, who goes to ERR, which event is raised, and that not a byte has moved.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "verbs.h"

#define PD     3
#define BOUNDS 4096u
#define RW     (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | RDMA_ACCESS_REMOTE_READ)
#define ALL    (RW | RDMA_ACCESS_REMOTE_ATOMIC | RDMA_ACCESS_MW_BIND)

/* Groups of opcodes, as bits. */
#define OP(name)  (1u << RDMA_##name)
#define SENDS     (OP(SEND) | OP(SEND_INV) | OP(SEND_IMM))
#define WRITES    (OP(WRITE) | OP(WRITE_IMM))
#define ATOMICS   (OP(CMP_SWAP) | OP(FETCH_ADD))
#define READS     OP(READ)
#define FETCHES   (READS | ATOMICS)
#define REMOTES   (WRITES | FETCHES)
#define TRANSFERS (SENDS | REMOTES)
#define RECEIVES  (SENDS | OP(WRITE_IMM))
#define RC        (1u << RDMA_QP_RC)
#define UC        (1u << RDMA_QP_UC)
#define UD        (1u << RDMA_QP_UD)

static const unsigned opcodes_of[RDMA_QP_TYPES] = {
        [RDMA_QP_RC] = TRANSFERS,
        [RDMA_QP_UC] = OP(SEND) | OP(SEND_IMM) | WRITES,
        [RDMA_QP_UD] = OP(SEND) | OP(SEND_IMM),
};

/* The scene of each case: a's region, b's region, and a request that would succeed. */
struct scene {
	struct nic *nic;
	enum rdma_qp_type type;
	struct test_qp *a, *b;
	struct test_mr src, dst, spare;
	struct rdma_wr wr;
	struct rdma_recv recv;
	bool no_recv;
	bool takes_recv;
};

enum side { NOBODY = 0, SENDER = 1, RECEIVER = 2, BOTH = 3 };

struct fault {
	const char *name;
	unsigned types, opcodes;
	void (*inject)(struct scene *s);
	enum rdma_status send;
	enum rdma_status recv; /* of the receive, when the opcode takes one; OK: none completes */
	enum side errors;      /* who goes to ERR */
	enum rdma_event event; /* at the receiver, when no receive takes the blame; 0: none */
};

static bool takes_recv(const struct scene *s)
{
	return s->takes_recv;
}

/* There are hundreds of scenes: each is small. */
static const struct rdma_limits scene_limits = {.qps = 16, .mrs = 16, .ahs = 8, .pages = 16};

static struct test_qp *scene_qp(struct nic *nic, enum rdma_qp_type type)
{
	struct rdma_qp_config config = {.qpn = nic->next_qpn++, .type = type, .pd = PD};

	return qp_new_config(nic, &config, 16);
}

static struct scene scene_new(enum rdma_qp_type type, unsigned opcode)
{
	struct scene s = {.nic = nic_new_limits("loopback", &scene_limits, 256 << 10),
	                  .type = type,
	                  .takes_recv = 1u << opcode & RECEIVES};
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(s.nic, s.nic, 4, false, header);
	uint32_t length = 1u << opcode & ATOMICS ? 8 : 1000;

	s.a = scene_qp(s.nic, type);
	s.b = scene_qp(s.nic, type);
	qp_connect(s.a, s.b);
	s.src = mr_new(s.nic, PD, 0x10000, BOUNDS, RDMA_ACCESS_LOCAL_WRITE);
	s.dst = mr_new(s.nic, PD, 0x20000, BOUNDS, ALL);
	s.spare = mr_new(s.nic, PD, 0x30000, BOUNDS, RW | RDMA_MR_INV);
	assert_int_equal(rdma_ah_create(s.nic->dev, 0, PD, header, size), 0);
	if (1u << opcode & REMOTES) {
		s.wr = wr_rdma(opcode, sge_of(&s.src, 0, length), s.dst.va, s.dst.key);
		s.wr.remote.swap_add = s.wr.remote.compare = 1;
	} else {
		s.wr = wr_send(opcode, sge_of(&s.src, 0, length));
	}
	if (opcode == RDMA_SEND_INV)
		s.wr.inv_key = s.spare.key;
	if (type == RDMA_QP_UD) {
		s.wr.ud.qpn = s.b->qpn;
		s.wr.ud.qkey = 0x11111111;
		s.wr.ud.ah = 0;
	}
	s.wr.wr_id = 1;
	s.recv = (struct rdma_recv){
	        .wr_id = 2, .num_sge = 1, .length = BOUNDS, .sge = {sge_of(&s.dst, 0, BOUNDS)}};
	return s;
}

static void scene_free(struct scene *s)
{
	if (s->a)
		qp_free(s->a);
	if (s->b)
		qp_free(s->b);
	nic_free(s->nic);
}

/* ---- faults ---- */

static void bad_opcode(struct scene *s)
{
	s->wr.opcode = RDMA_OPCODES;
}

static void huge_opcode(struct scene *s)
{
	s->wr.opcode = 0xff;
}

static void too_many_sges(struct scene *s)
{
	s->wr.num_sge = RDMA_SGE_MAX + 1;
}

static void sges_too_short(struct scene *s)
{
	s->wr.sge[0].length -= 1;
}

static void malformed(struct scene *s)
{
	s->a->fetch_error = -EINVAL;
}

static void too_long(struct scene *s)
{
	s->wr.length = s->wr.sge[0].length = RDMA_MESSAGE_MAX + 1;
}

static void inline_too_long(struct scene *s)
{
	s->wr.flags |= RDMA_WR_INLINE;
	s->wr.length = RDMA_INLINE_MAX + 1;
}

static void inline_fetch(struct scene *s)
{
	s->wr.flags |= RDMA_WR_INLINE;
	s->wr.length = 8;
}

static void no_depth(struct scene *s)
{
	struct rdma_qp_attr attr = {.max_rd_atomic = 0};

	rdma_qp_modify(s->a->qp, RDMA_ATTR_MAX_RD_ATOMIC, &attr);
}

static void lkey_unknown(struct scene *s)
{
	s->wr.sge[0].lkey = 0x12345600;
}

static void lkey_out_of_table(struct scene *s)
{
	s->wr.sge[0].lkey = 0xffffffff;
}

static void lkey_stale_byte(struct scene *s)
{
	s->wr.sge[0].lkey ^= 1;
}

static void lkey_zero(struct scene *s)
{
	s->wr.sge[0].lkey = 0;
	s->wr.sge[0].va = s->src.dma;
}

static void lkey_other_pd(struct scene *s)
{
	struct test_mr mr = mr_new(s->nic, PD + 1, 0x10000, BOUNDS, ALL);

	s->wr.sge[0].lkey = mr.key;
}

static void local_before(struct scene *s)
{
	s->wr.sge[0].va = s->src.va - 1;
}

static void local_behind(struct scene *s)
{
	s->wr.sge[0].va = s->src.va + BOUNDS - s->wr.length + 1;
}

static void local_wraps(struct scene *s)
{
	s->wr.sge[0].va = UINT64_MAX - 4;
}

static void second_sge_bad(struct scene *s)
{
	s->wr.num_sge = 2;
	s->wr.sge[0].length -= 1;
	s->wr.sge[1] = sge_of(&s->src, BOUNDS, 1);
}

static void local_read_only(struct scene *s)
{
	struct test_mr mr = mr_new(s->nic, PD, 0x10000, BOUNDS, 0);

	s->wr.sge[0].lkey = mr.key;
}

static void local_no_memory(struct scene *s)
{
	s->nic->hole = s->src.dma;
	s->nic->hole_end = s->src.dma + 1;
}

static void ah_unknown(struct scene *s)
{
	s->wr.ud.ah = 1;
}

static void ah_other_pd(struct scene *s)
{
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(s->nic, s->nic, 4, false, header);

	assert_int_equal(rdma_ah_create(s->nic->dev, 5, PD + 1, header, size), 0);
	s->wr.ud.ah = 5;
}

static void rkey_unknown(struct scene *s)
{
	s->wr.remote.rkey = 0x12345600;
}

static void rkey_stale_byte(struct scene *s)
{
	s->wr.remote.rkey ^= 0x80;
}

static void rkey_zero(struct scene *s)
{
	s->wr.remote.rkey = 0;
	s->wr.remote.va = s->dst.dma;
}

static void rkey_other_pd(struct scene *s)
{
	struct test_mr mr = mr_new(s->nic, PD + 1, 0x20000, BOUNDS, ALL);

	s->wr.remote.rkey = mr.key;
}

static void rkey_no_permission(struct scene *s)
{
	unsigned all = ALL, op = s->wr.opcode;
	unsigned need = 1u << op & WRITES ? RDMA_ACCESS_REMOTE_WRITE
	                : op == RDMA_READ ? RDMA_ACCESS_REMOTE_READ
	                                  : RDMA_ACCESS_REMOTE_ATOMIC;
	struct test_mr mr = mr_new(s->nic, PD, 0x20000, BOUNDS, all & ~need);

	s->wr.remote.rkey = mr.key;
}

static void remote_before(struct scene *s)
{
	s->wr.remote.va = s->dst.va - (1u << s->wr.opcode & ATOMICS ? 8 : 1);
}

static void remote_behind(struct scene *s)
{
	s->wr.remote.va =
	        s->dst.va + BOUNDS - s->wr.length + (1u << s->wr.opcode & ATOMICS ? 8 : 1);
}

static void remote_wraps(struct scene *s)
{
	s->wr.remote.va = UINT64_MAX - 7;
}

static void remote_destroyed(struct scene *s)
{
	assert_int_equal(rdma_mr_destroy(s->nic->dev, s->dst.key), 0);
}

static void remote_no_memory(struct scene *s)
{
	s->nic->hole = s->dst.dma;
	s->nic->hole_end = s->dst.dma + 1;
}

static void misaligned(struct scene *s)
{
	s->wr.remote.va += 4;
}

static void qp_no_access(struct scene *s)
{
	struct rdma_qp_attr attr = {.access = 0};

	rdma_qp_modify(s->b->qp, RDMA_ATTR_ACCESS, &attr);
}

static void no_responder_depth(struct scene *s)
{
	struct rdma_qp_attr attr = {.max_dest_rd_atomic = 0};

	rdma_qp_modify(s->b->qp, RDMA_ATTR_MAX_DEST_RD_ATOMIC, &attr);
}

static void inv_key_unknown(struct scene *s)
{
	s->wr.inv_key ^= 1;
}

static void inv_not_allowed(struct scene *s)
{
	s->wr.inv_key = s->dst.key;
}

static void recv_too_short(struct scene *s)
{
	s->recv.length = s->wr.length - 1 + (s->type == RDMA_QP_UD ? 40 : 0);
}

static void recv_sges_too_short(struct scene *s)
{
	s->recv.sge[0].length = s->wr.length - 1;
}

static void recv_bad_key(struct scene *s)
{
	s->recv.sge[0].lkey ^= 1;
}

static void recv_read_only(struct scene *s)
{
	struct test_mr mr = mr_new(s->nic, PD, 0x20000, BOUNDS, 0);

	s->recv.sge[0].lkey = mr.key;
}

static void recv_malformed(struct scene *s)
{
	s->b->fetch_recv_error = -EINVAL;
}

static void recv_too_many_sges(struct scene *s)
{
	s->recv.num_sge = RDMA_SGE_MAX + 1;
}

static void no_recv_finite(struct scene *s)
{
	struct rdma_qp_attr attr = {.rnr_retry = 2, .rnr_timer = 1};

	s->no_recv = true;
	rdma_qp_modify(s->a->qp, RDMA_ATTR_RNR_RETRY, &attr);
	rdma_qp_modify(s->b->qp, RDMA_ATTR_RNR_TIMER, &attr);
}

static void no_recv(struct scene *s)
{
	s->no_recv = true;
}

static void peer_destroyed(struct scene *s)
{
	qp_free(s->b);
	s->b = NULL;
}

static void peer_reset(struct scene *s)
{
	qp_state(s->b, RDMA_QPS_RESET);
	s->no_recv = true;
}

static void peer_in_init(struct scene *s)
{
	struct rdma_qp_attr attr = qp_attr(s->b, s->a);

	qp_state(s->b, RDMA_QPS_RESET);
	qp_state(s->b, RDMA_QPS_INIT);
	rdma_qp_modify(s->b->qp, QP_ATTR_ALL, &attr);
}

static void peer_connected_elsewhere(struct scene *s)
{
	struct rdma_qp_attr attr = {.dest_qpn = s->a->qpn + 100};

	rdma_qp_modify(s->b->qp, RDMA_ATTR_DEST_QPN, &attr);
}

static void peer_expects_other_psn(struct scene *s)
{
	struct rdma_qp_attr attr;

	rdma_qp_query(s->b->qp, &attr);
	attr.rq_psn = (attr.rq_psn + 1) & 0xffffff;
	rdma_qp_modify(s->b->qp, RDMA_ATTR_RQ_PSN, &attr);
}

static void peer_at_other_address(struct scene *s)
{
	struct nic other = {.mac = {2, 0, 0, 0, 0, 1}, .ip = 9};
	struct rdma_qp_attr attr = qp_attr(s->b, s->a);
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(s->nic, &other, 4, false, header);

	assert_int_equal(rdma_av_parse(header, size, &attr.av), 0);
	rdma_qp_modify(s->b->qp, RDMA_ATTR_AV, &attr);
}

static void nobody_there(struct scene *s)
{
	struct nic other = {.mac = {2, 0, 0, 0, 0, 99}, .ip = 99};
	struct rdma_qp_attr attr = qp_attr(s->b, s->a);
	uint8_t header[RDMA_TEMPLATE_MAX];
	size_t size = nic_template(s->nic, &other, 4, false, header);

	assert_int_equal(rdma_av_parse(header, size, &attr.av), 0);
	rdma_qp_modify(s->a->qp, RDMA_ATTR_AV, &attr);
}

#define NO_EVENT 0
#define REQ      RDMA_EVENT_REQ_ERR
#define ACCESS   RDMA_EVENT_ACCESS_ERR

static const struct fault faults[] = {
        /* the sender's own mistakes: its completion alone, and the other side sees nothing */
        {"bad opcode", RC | UC | UD, TRANSFERS, bad_opcode, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"huge opcode", RC | UC | UD, TRANSFERS, huge_opcode, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"9 SGEs", RC | UC | UD, TRANSFERS, too_many_sges, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"SGEs short", RC | UC | UD, TRANSFERS, sges_too_short, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"malformed", RC | UC | UD, TRANSFERS, malformed, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"2^31 + 1", RC | UC | UD, SENDS | WRITES | READS, too_long, RDMA_LOC_LEN_ERR, 0, SENDER,
         0},
        {"inline too long", RC | UC | UD, SENDS | WRITES, inline_too_long, RDMA_LOC_QP_OP_ERR, 0,
         SENDER, 0},
        {"inline fetch", RC, FETCHES, inline_fetch, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"depth 0", RC, FETCHES, no_depth, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"lkey unknown", RC | UC | UD, TRANSFERS, lkey_unknown, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"lkey beyond", RC | UC | UD, TRANSFERS, lkey_out_of_table, RDMA_LOC_PROT_ERR, 0, SENDER,
         0},
        {"lkey stale", RC | UC | UD, TRANSFERS, lkey_stale_byte, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"lkey 0", RC | UC | UD, TRANSFERS, lkey_zero, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"lkey other PD", RC | UC | UD, TRANSFERS, lkey_other_pd, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"local before", RC | UC | UD, TRANSFERS, local_before, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"local behind", RC | UC | UD, TRANSFERS, local_behind, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"local wraps", RC | UC | UD, TRANSFERS, local_wraps, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"second SGE", RC | UC | UD, TRANSFERS & ~ATOMICS, second_sge_bad, RDMA_LOC_PROT_ERR, 0,
         SENDER, 0},
        {"local read-only", RC, FETCHES, local_read_only, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"local hole", RC | UC | UD, TRANSFERS, local_no_memory, RDMA_LOC_PROT_ERR, 0, SENDER, 0},
        {"AH unknown", UD, SENDS, ah_unknown, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},
        {"AH other PD", UD, SENDS, ah_other_pd, RDMA_LOC_QP_OP_ERR, 0, SENDER, 0},

        /* what the responder refuses; a receive that is taken by then takes the blame */
        {"rkey unknown", RC, REMOTES, rkey_unknown, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR, BOTH,
         ACCESS},
        {"rkey stale", RC, REMOTES, rkey_stale_byte, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR, BOTH,
         ACCESS},
        {"rkey 0", RC, REMOTES, rkey_zero, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR, BOTH, ACCESS},
        {"rkey other PD", RC, REMOTES, rkey_other_pd, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR,
         BOTH, ACCESS},
        {"rkey permission", RC, REMOTES, rkey_no_permission, RDMA_REM_ACCESS_ERR,
         RDMA_LOC_ACCESS_ERR, BOTH, ACCESS},
        {"remote before", RC, REMOTES, remote_before, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR,
         BOTH, ACCESS},
        {"remote behind", RC, REMOTES, remote_behind, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR,
         BOTH, ACCESS},
        {"remote wraps", RC, REMOTES, remote_wraps, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR, BOTH,
         ACCESS},
        {"region destroyed", RC, REMOTES, remote_destroyed, RDMA_REM_ACCESS_ERR,
         RDMA_LOC_ACCESS_ERR, BOTH, ACCESS},
        {"remote hole", RC, REMOTES, remote_no_memory, RDMA_REM_ACCESS_ERR, RDMA_LOC_ACCESS_ERR,
         BOTH, ACCESS},
        {"misaligned", RC, ATOMICS, misaligned, RDMA_REM_INV_REQ_ERR, 0, BOTH, REQ},
        {"QP access", RC, REMOTES, qp_no_access, RDMA_REM_INV_REQ_ERR, 0, BOTH, REQ},
        {"responder depth 0", RC, FETCHES, no_responder_depth, RDMA_REM_INV_REQ_ERR, 0, BOTH, REQ},
        {"inv key", RC, OP(SEND_INV), inv_key_unknown, RDMA_REM_OP_ERR, RDMA_LOC_ACCESS_ERR, BOTH,
         0},
        {"inv forbidden", RC, OP(SEND_INV), inv_not_allowed, RDMA_REM_OP_ERR, RDMA_LOC_ACCESS_ERR,
         BOTH, 0},
        {"receive short", RC, SENDS, recv_too_short, RDMA_REM_INV_REQ_ERR, RDMA_LOC_LEN_ERR, BOTH,
         0},
        {"receive SGEs short", RC, SENDS, recv_sges_too_short, RDMA_REM_INV_REQ_ERR,
         RDMA_LOC_LEN_ERR, BOTH, 0},
        {"receive key", RC, SENDS, recv_bad_key, RDMA_REM_OP_ERR, RDMA_LOC_PROT_ERR, BOTH, 0},
        {"receive read-only", RC, SENDS, recv_read_only, RDMA_REM_OP_ERR, RDMA_LOC_PROT_ERR, BOTH,
         0},
        {"receive malformed", RC, RECEIVES, recv_malformed, RDMA_REM_OP_ERR, RDMA_LOC_QP_OP_ERR,
         BOTH, 0},
        {"receive 9 SGEs", RC, RECEIVES, recv_too_many_sges, RDMA_REM_OP_ERR, RDMA_LOC_QP_OP_ERR,
         BOTH, 0},
        {"no receive", RC, RECEIVES, no_recv_finite, RDMA_RNR_RETRY_EXC_ERR, 0, SENDER, 0},

        /* UC and UD: dropped; but a bad receive is the receiver's own error */
        {"rkey unknown", UC, WRITES, rkey_unknown, RDMA_OK, 0, NOBODY, 0},
        {"remote behind", UC, WRITES, remote_behind, RDMA_OK, 0, NOBODY, 0},
        {"QP access", UC, WRITES, qp_no_access, RDMA_OK, 0, NOBODY, 0},
        {"receive short", UC | UD, SENDS, recv_too_short, RDMA_OK, 0, NOBODY, 0},
        {"receive key", UC | UD, SENDS, recv_bad_key, RDMA_OK, RDMA_LOC_PROT_ERR, RECEIVER, 0},
        {"receive malformed", UC | UD, RECEIVES, recv_malformed, RDMA_OK, RDMA_LOC_QP_OP_ERR,
         RECEIVER, 0},
        {"no receive", UC | UD, RECEIVES, no_recv, RDMA_OK, 0, NOBODY, 0},
        {"peer destroyed", UC | UD, TRANSFERS, peer_destroyed, RDMA_OK, 0, NOBODY, 0},
        {"peer reset", UC | UD, TRANSFERS, peer_reset, RDMA_OK, 0, NOBODY, 0},
        {"peer in init", UC | UD, TRANSFERS, peer_in_init, RDMA_OK, 0, NOBODY, 0},
        {"nobody there", UC, TRANSFERS, nobody_there, RDMA_OK, 0, NOBODY, 0},
        {"not our peer", UC, TRANSFERS, peer_connected_elsewhere, RDMA_OK, 0, NOBODY, 0},

        /* RC: nobody answers */
        {"peer destroyed", RC, TRANSFERS, peer_destroyed, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
        {"peer reset", RC, TRANSFERS, peer_reset, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
        {"peer in init", RC, TRANSFERS, peer_in_init, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
        {"not our peer", RC, TRANSFERS, peer_connected_elsewhere, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
        {"other PSN", RC, TRANSFERS, peer_expects_other_psn, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
        {"other address", RC, TRANSFERS, peer_at_other_address, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
        {"nobody there", RC, TRANSFERS, nobody_there, RDMA_RETRY_EXC_ERR, 0, SENDER, 0},
};

/* ---- the run ---- */

static void check_side(const char *which, const struct fault *fault, struct test_qp *qp, bool error)
{
	if (!qp)
		return;
	bool is = rdma_qp_state(qp->qp) == RDMA_QPS_ERR;

	if (is != error || qp->flushes != (error ? 1 : 0))
		fail_msg("%s: the %s is in %s with %u flushes", fault->name, which,
		         rdma_qp_state_name(rdma_qp_state(qp->qp)), qp->flushes);
}

static void check_receiver(const struct fault *fault, struct scene *s)
{
	struct test_qp *b = s->b;
	bool blamed = takes_recv(s) && fault->recv != RDMA_OK;

	if (!b)
		return;
	if (b->recv_wcs != (blamed ? 1 : 0))
		fail_msg("%s: %u receives completed", fault->name, b->recv_wcs);
	if (blamed) {
		assert_int_equal(qp_expect_recv(b, fault->recv)->wr_id, 2);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(b->events); i++) {
		unsigned want = i != 0 && i == fault->event && !blamed;

		if (b->events[i] != want)
			fail_msg("%s: event %u came %u times", fault->name, i, b->events[i]);
	}
}

static void run_fault(const struct fault *fault, enum rdma_qp_type type, unsigned opcode)
{
	struct scene s = scene_new(type, opcode);
	const struct rdma_wc *wc;

	mr_fill(&s.src, 1);
	mr_fill(&s.dst, 2);
	fault->inject(&s);
	if (s.b && !s.no_recv)
		qp_post_recv(s.b, &s.recv);
	qp_post_send(s.a, &s.wr);
	wc = qp_expect_send(s.a, fault->send);
	assert_int_equal(wc->wr_id, 1);
	nic_spin(s.nic, 4);
	assert_null(qp_poll_send(s.a));
	check_side("sender", fault, s.a, fault->errors & SENDER);
	check_side("receiver", fault, s.b, fault->errors & RECEIVER);
	check_receiver(fault, &s);
	/* nothing has landed, but what lands before the fault is found out */
	bool lands = opcode == RDMA_SEND_INV || (fault->inject == local_no_memory &&
	                                         (1u << opcode & ATOMICS || type == RDMA_QP_UD));

	for (size_t i = 0; i < BOUNDS && !lands; i++)
		if (s.dst.mem[i] != (uint8_t)(2 + i * 131 + (i >> 8) * 17) ||
		    s.src.mem[i] != (uint8_t)(1 + i * 131 + (i >> 8) * 17))
			fail_msg("%s: byte %zu has changed", fault->name, i);
	scene_free(&s);
}

static void all_faults(void **state)
{
	unsigned runs = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		for (unsigned type = 0; type < RDMA_QP_TYPES; type++)
			for (unsigned op = 0; op < RDMA_OPCODES; op++) {
				if (!(faults[i].types & 1u << type) ||
				    !(faults[i].opcodes & opcodes_of[type] & 1u << op))
					continue;
				run_fault(&faults[i], type, op);
				runs++;
			}
	print_message("%u combinations of fault, opcode and type\n", runs);
}

/* The same scenes succeed without a fault, up to the last byte at both ends. */
static void no_fault(void **state)
{
	(void)state;
	for (unsigned type = 0; type < RDMA_QP_TYPES; type++)
		for (unsigned op = 0; op < RDMA_OPCODES; op++)
			for (unsigned end = 0; end < 2; end++) {
				if (!(opcodes_of[type] & 1u << op))
					continue;
				struct scene s = scene_new(type, op);

				if (end) {
					s.wr.sge[0].va = s.src.va + BOUNDS - s.wr.length;
					if (1u << op & REMOTES)
						s.wr.remote.va = s.dst.va + BOUNDS - s.wr.length;
				}
				qp_post_recv(s.b, &s.recv);
				qp_post_send(s.a, &s.wr);
				qp_expect_send(s.a, RDMA_OK);
				assert_int_equal(s.b->recv_wcs, takes_recv(&s) ? 1 : 0);
				scene_free(&s);
			}
}

/* Opcodes that a QP type does not have. */
static void wrong_type(void **state)
{
	(void)state;
	for (unsigned type = RDMA_QP_UC; type < RDMA_QP_TYPES; type++)
		for (unsigned op = 0; op < RDMA_OPCODES; op++) {
			if (opcodes_of[type] & 1u << op || op == RDMA_REG_MR ||
			    op == RDMA_LOCAL_INV || (op == RDMA_BIND_MW && type == RDMA_QP_UC))
				continue;
			struct scene s = scene_new(type, op);

			qp_post_send(s.a, &s.wr);
			qp_expect_send(s.a, RDMA_LOC_QP_OP_ERR);
			scene_free(&s);
		}
}

/* What precedes a local error is reported first, in order; what follows is not reported at all. */
static void errors_in_order(void **state)
{
	struct scene s = scene_new(RDMA_QP_RC, RDMA_WRITE);
	struct rdma_wr bad = s.wr;

	(void)state;
	bad.sge[0].lkey ^= 1;
	for (uint64_t i = 0; i < 6; i++) {
		struct rdma_wr *wr = i == 3 ? &bad : &s.wr;

		wr->wr_id = i;
		qp_put_send(s.a, wr);
	}
	rdma_qp_kick(s.a->qp);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(qp_expect_send(s.a, RDMA_OK)->wr_id, i);
	assert_int_equal(qp_expect_send(s.a, RDMA_LOC_PROT_ERR)->wr_id, 3);
	nic_spin(s.nic, 3);
	assert_int_equal(s.a->send_wcs, 4);
	assert_int_equal(s.a->flushes, 1);
	/* in ERR: kicks and modifies to ERR are legal and do nothing */
	qp_post_send(s.a, &s.wr);
	assert_int_equal(qp_state(s.a, RDMA_QPS_ERR), 0);
	nic_spin(s.nic, 3);
	assert_int_equal(s.a->send_wcs, 4);
	assert_int_equal(s.a->flushes, 1);
	scene_free(&s);
}

/* A ring that cannot be read is fatal to its QP alone. */
static void unreadable_rings(void **state)
{
	struct scene s = scene_new(RDMA_QP_RC, RDMA_SEND);

	(void)state;
	s.a->fetch_error = -EFAULT;
	qp_post_send(s.a, &s.wr);
	nic_spin(s.nic, 3);
	assert_int_equal(s.a->events[RDMA_EVENT_QP_FATAL], 1);
	assert_int_equal(s.a->flushes, 1);
	assert_int_equal(s.a->send_wcs, 0);
	assert_int_equal(s.b->flushes, 0);
	scene_free(&s);

	s = scene_new(RDMA_QP_RC, RDMA_SEND);
	s.b->fetch_recv_error = -EFAULT;
	qp_post_recv(s.b, &s.recv);
	qp_post_send(s.a, &s.wr);
	qp_expect_send(s.a, RDMA_REM_OP_ERR);
	assert_int_equal(s.b->events[RDMA_EVENT_QP_FATAL], 1);
	assert_int_equal(s.b->recv_wcs, 0);
	scene_free(&s);
}

/* An owner whose CQ is full says so in the middle of a completion. */
static void owner_fails_qp(void **state)
{
	struct scene s = scene_new(RDMA_QP_RC, RDMA_WRITE);

	(void)state;
	s.a->fail_on_complete = true;
	qp_put_send(s.a, &s.wr);
	qp_put_send(s.a, &s.wr);
	rdma_qp_kick(s.a->qp);
	nic_spin(s.nic, 3);
	assert_int_equal(s.a->send_wcs, 1);
	assert_int_equal(s.a->flushes, 1);
	assert_int_equal(s.a->events[RDMA_EVENT_QP_FATAL], 1);
	rdma_qp_fail(s.b->qp, false); /* of a QP that does nothing */
	nic_spin(s.nic, 3);
	assert_int_equal(s.b->flushes, 1);
	assert_int_equal(s.b->events[RDMA_EVENT_QP_FATAL], 0);
	scene_free(&s);
}

/* The fabric `none`, and no fabric: not even the NIC itself is there. */
static void nothing_in_reach(void **state)
{
	struct nic *nic = nic_new("none");
	struct test_qp *a = qp_new(nic, RDMA_QP_RC, PD), *u = qp_new(nic, RDMA_QP_UC, PD);
	struct test_mr mr = mr_new(nic, PD, 0x1000, 4096, ALL);
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&mr, 0, 8), mr.va, mr.key);

	(void)state;
	qp_connect(a, a);
	qp_connect(u, u);
	qp_post_send(a, &wr);
	qp_post_send(u, &wr);
	qp_expect_send(u, RDMA_OK);
	qp_expect_send(a, RDMA_RETRY_EXC_ERR);
	assert_int_equal(rdma_qp_stats(a->qp)->retries, 3);
	assert_int_equal(rdma_dev_stat(nic->dev, RDMA_STAT_RETRIES), 3);
	assert_int_equal(rdma_dev_stat(nic->dev, RDMA_STAT_RETRY_EXC), 1);
	qp_free(a);
	qp_free(u);
	nic_free(nic);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(all_faults),       cmocka_unit_test(no_fault),
	        cmocka_unit_test(wrong_type),       cmocka_unit_test(errors_in_order),
	        cmocka_unit_test(unreadable_rings), cmocka_unit_test(owner_fails_qp),
	        cmocka_unit_test(nothing_in_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
