// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Verbs through real queues: every opcode on every type of QP, right and with each mistake that a
 * program can make. The rules themselves have their tests beside the engine; what counts here is
 * that requests, completions, markers and events of the queue ABI say the same (spec ionic-rdma 5,
 * 6, 9.3).
 */
#include "env.h"

#include <errno.h>
#include <string.h>

#include "rdma.h"

#define PD       3
#define OTHER_PD 4
#define BOUNDS   9000u /* of a region: three pages, not whole */
#define LENGTH   5000u
#define SEED     7
#define USER     5 /* doorbell page of the process */

static const struct env_options bare = {0};

/* ---- groups of opcodes, as bits ---- */

#define OP(name)  (1u << OP_##name)
#define SENDS     (OP(SEND) | OP(SEND_INV) | OP(SEND_IMM))
#define WRITES    (OP(WRITE) | OP(WRITE_IMM))
#define ATOMICS   (OP(CMP_SWAP) | OP(FETCH_ADD))
#define FETCHES   (OP(READ) | ATOMICS)
#define REMOTES   (WRITES | FETCHES)
#define TRANSFERS (SENDS | REMOTES)
#define RECEIVES  (SENDS | OP(WRITE_IMM))
#define RC        (1u << QPT_RC)
#define UC        (1u << QPT_UC)
#define UD        (1u << QPT_UD)

static const unsigned opcodes_of[4] = {
        [QPT_RC] = TRANSFERS,
        [QPT_UC] = OP(SEND) | OP(SEND_IMM) | WRITES,
        [QPT_UD] = OP(SEND) | OP(SEND_IMM),
};

/* ---- the scene of a case: two QPs and a request that would succeed ---- */

struct scene {
	struct env *env;
	struct rdma *rdma;
	enum rdma_qp_type type;
	struct rdma_cq *cq_a, *cq_b;
	struct rdma_qp *a, *b;
	struct rdma_mr src, dst, spare, extra;
	bool has_extra;
	struct rdma_send send;
	struct rdma_recv recv;
	bool no_recv;
	uint32_t ah;
	size_t used; /* of memory, before */
};

static uint32_t message_size(const struct scene *s)
{
	if (1u << s->send.op & ATOMICS)
		return 8;
	return s->type == QPT_UD ? 1000 : LENGTH;
}

static void make_region(struct scene *s, struct rdma_mr *mr, uint32_t pd, uint32_t flags)
{
	const struct rdma_mr_config config = {
	        .pd = pd, .flags = flags, .size = BOUNDS, .scattered = true};

	nic_ok(s->env->nic, rdma_mr_create(s->rdma, mr, &config));
}

static void make_pair(struct scene *s)
{
	struct rdma_path path = RDMA_PATH;
	struct rdma_qp_config config = {
	        .type = s->type, .pd = PD, .page = USER, .sq_log2 = 6, .rq_log2 = 6};
	const struct rdma_cq_config cq = {.log2 = 8, .eq = 2, .page = USER};

	nic_ok(s->env->nic, rdma_cq_create(s->rdma, &s->cq_a, &cq));
	nic_ok(s->env->nic, rdma_cq_create(s->rdma, &s->cq_b, &cq));
	config.sq_cq = config.rq_cq = s->cq_a;
	nic_ok(s->env->nic, rdma_qp_create(s->rdma, &s->a, &config));
	config.sq_cq = config.rq_cq = s->cq_b;
	nic_ok(s->env->nic, rdma_qp_create(s->rdma, &s->b, &config));
	/* Nobody waits long for a peer that is gone. */
	path.timeout = 8;
	path.retry = 1;
	nic_ok(s->env->nic, rdma_qp_connect(s->a, s->b, &path));
}

static void make_request(struct scene *s, uint8_t op)
{
	uint32_t grh = s->type == QPT_UD ? RDMA_GRH : 0;

	s->send = (struct rdma_send){.wr_id = 0xabc,
	                             .op = op,
	                             .flags = WQE_SIGNALED,
	                             .num_sge = 1,
	                             .imm = op == OP_SEND_INV ? s->spare.key : 0x44332211,
	                             .va = s->dst.va,
	                             .rkey = s->dst.key,
	                             .swap_add = 5,
	                             .compare = 0,
	                             .ah = s->ah,
	                             .qpn = s->b->id,
	                             .qkey = s->b->qkey};
	s->send.sge[0] = rdma_sge(&s->src, 0, message_size(s));
	s->recv = (struct rdma_recv){.wr_id = 0xdef, .num_sge = 1};
	s->recv.sge[0] = rdma_sge(&s->dst, 0, message_size(s) + grh);
}

static struct scene scene_make(struct env *env, struct rdma *rdma, enum rdma_qp_type type,
                               uint8_t op)
{
	struct scene s = {.env = env, .rdma = rdma, .type = type, .used = env->nic->ram.used};

	make_pair(&s);
	make_region(&s, &s.src, PD, MRF_LOCAL_WRITE);
	make_region(&s, &s.dst, PD, MRF_ALL);
	nic_ok(env->nic, rdma_mr_create_empty(rdma, &s.spare, PD, MRF_MW_2));
	nic_ok(env->nic, rdma_ah_create(rdma, PD, env->nic->mac, &s.ah));
	rdma_mr_fill(&s.src, 0, BOUNDS, SEED);
	make_request(&s, op);
	return s;
}

static void scene_end(struct scene *s)
{
	struct nic *nic = s->env->nic;

	nic_ok(nic, rdma_qp_destroy(s->a));
	if (s->b)
		nic_ok(nic, rdma_qp_destroy(s->b));
	nic_ok(nic, rdma_cq_destroy(s->cq_a));
	nic_ok(nic, rdma_cq_destroy(s->cq_b));
	nic_ok(nic, rdma_mr_destroy(&s->src));
	if (s->dst.key)
		nic_ok(nic, rdma_mr_destroy(&s->dst));
	nic_ok(nic, rdma_mr_destroy(&s->spare));
	if (s->has_extra)
		nic_ok(nic, rdma_mr_destroy(&s->extra));
	nic_ok(nic, rdma_ah_destroy(s->rdma, s->ah));
	nic->ram.used = s->used;
}

/* Gives the window `spare` a range, so that SEND_INV has something to invalidate. */
static void bind_spare(struct scene *s)
{
	struct rdma_send bind = {.wr_id = 1,
	                         .op = OP_BIND_MW,
	                         .flags = WQE_SIGNALED,
	                         .imm = s->spare.key,
	                         .va = s->dst.va,
	                         .length = BOUNDS,
	                         .lkey = s->dst.key,
	                         .access = 0xc000 | MRF_REMOTE_WRITE | MRF_REMOTE_READ};
	struct rdma_wc wc;

	nic_ok(s->env->nic, rdma_send(s->b, &bind));
	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	/* The new key: the byte that the request gave (6.3). */
	s->spare.key = (s->spare.key & ~0xffu) | ((s->spare.key + 1) & 0xff);
	if (s->send.op == OP_SEND_INV)
		s->send.imm = s->spare.key;
}

/* ---- what succeeds ---- */

static void check_receive(struct scene *s)
{
	uint32_t grh = s->type == QPT_UD ? RDMA_GRH : 0;
	static const uint8_t ops[OP_COUNT] = {
	        [OP_SEND_INV] = 1, [OP_SEND_IMM] = 2, [OP_WRITE_IMM] = 3};
	struct rdma_wc wc;

	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	assert_true(wc.recv);
	assert_int_equal(wc.wr_id, 0xdef);
	assert_int_equal(wc.op, ops[s->send.op]);
	assert_int_equal(wc.length, message_size(s) + grh);
	assert_int_equal(wc.src_qpn, s->a->id);
	assert_int_equal(wc.ipv4, s->type == QPT_UD);
	if (s->send.op != OP_SEND)
		assert_int_equal(wc.imm, s->send.imm);
}

static void check_landed(struct scene *s)
{
	uint32_t size = message_size(s), grh = s->type == QPT_UD ? RDMA_GRH : 0;
	uint64_t word;

	if (1u << s->send.op & ATOMICS) {
		memcpy(&word, rdma_mr_at(&s->dst, 0), 8);
		assert_int_equal(word, s->send.op == OP_CMP_SWAP ? 5 : 1005);
		memcpy(&word, rdma_mr_at(&s->src, 0), 8);
		assert_int_equal(word, s->send.op == OP_CMP_SWAP ? 0 : 1000);
	} else {
		assert_true(rdma_mr_check(&s->dst, grh, size, SEED));
		assert_int_equal(*(uint8_t *)rdma_mr_at(&s->dst, grh + size), 0);
	}
}

static void prepare_target(struct scene *s)
{
	uint64_t word = s->send.op == OP_FETCH_ADD ? 1000 : 0;

	for (size_t i = 0; i < BOUNDS; i++)
		*(uint8_t *)rdma_mr_at(&s->dst, i) = 0;
	memcpy(rdma_mr_at(&s->dst, 0), &word, 8);
	if (s->send.op == OP_READ) { /* the other way round */
		rdma_mr_fill(&s->dst, 0, BOUNDS, SEED);
		for (size_t i = 0; i < BOUNDS; i++)
			*(uint8_t *)rdma_mr_at(&s->src, i) = 0;
	}
}

static void run_good(struct env *env, struct rdma *rdma, enum rdma_qp_type type, uint8_t op)
{
	struct scene s = scene_make(env, rdma, type, op);
	struct rdma_wc wc;

	if (op == OP_SEND_INV)
		bind_spare(&s);
	prepare_target(&s);
	if (1u << op & RECEIVES)
		nic_ok(env->nic, rdma_recv(s.b, &s.recv));
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	assert_int_equal(wc.status, WC_OK);
	assert_int_equal(wc.wr_id, 0xabc);
	assert_int_equal(wc.op, op);
	if (1u << op & RECEIVES)
		check_receive(&s);
	if (op == OP_READ)
		assert_true(rdma_mr_check(&s.src, 0, LENGTH, SEED));
	else
		check_landed(&s);
	scene_end(&s);
}

static void open_rdma(struct env *env, struct rdma **rdma)
{
	nic_ok(env->nic, rdma_open(rdma, env->nic));
}

static void test_every_opcode(void **state)
{
	static const enum rdma_qp_type types[] = {QPT_RC, QPT_UC, QPT_UD};
	struct env *env = *state;
	struct rdma *rdma;

	open_rdma(env, &rdma);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		for (uint8_t op = 0; op < OP_COUNT; op++)
			if (opcodes_of[types[i]] >> op & 1)
				run_good(env, rdma, types[i], op);
	nic_ok(env->nic, rdma_close(rdma));
}

/* ---- what does not ---- */

enum side { NOBODY = 0, SENDER = 1, RECEIVER = 2, BOTH = 3 };

struct fault {
	const char *name;
	unsigned types, opcodes;
	void (*inject)(struct scene *s);
	enum rdma_status send;
	enum rdma_status recv; /* of the receive, when the opcode takes one; OK: none completes */
	enum side errors;      /* who goes to ERR */
	unsigned event;        /* at the receiver, when no receive takes the blame; 0: none */
};

static void bad_opcode(struct scene *s)
{
	s->send.op = OP_COUNT;
}

static void sge_format(struct scene *s)
{
	s->send.flags |= 0x8000; /* one that does not exist */
}

static void lkey_wrong(struct scene *s)
{
	s->send.sge[0].lkey ^= 1;
}

static void lkey_zero(struct scene *s)
{
	s->send.sge[0].lkey = 0;
	s->send.sge[0].va = s->src.addr;
}

static void use_extra(struct scene *s, uint32_t pd, uint32_t flags)
{
	make_region(s, &s->extra, pd, flags);
	s->has_extra = true;
}

static void lkey_other_pd(struct scene *s)
{
	use_extra(s, OTHER_PD, MRF_ALL);
	s->send.sge[0] = rdma_sge(&s->extra, 0, message_size(s));
}

static void local_read_only(struct scene *s)
{
	use_extra(s, PD, 0);
	s->send.sge[0] = rdma_sge(&s->extra, 0, message_size(s));
}

static void local_before(struct scene *s)
{
	s->send.sge[0].va = s->src.va - 1;
}

static void local_behind(struct scene *s)
{
	s->send.sge[0].va = s->src.va + BOUNDS - message_size(s) + 1;
}

static void rkey_wrong(struct scene *s)
{
	s->send.rkey ^= 1;
}

static void rkey_other_pd(struct scene *s)
{
	use_extra(s, OTHER_PD, MRF_ALL);
	s->send.rkey = s->extra.key;
	s->send.va = s->extra.va;
}

static void rkey_no_permission(struct scene *s)
{
	uint32_t need = 1u << s->send.op & WRITES ? MRF_REMOTE_WRITE
	                : s->send.op == OP_READ   ? MRF_REMOTE_READ
	                                          : MRF_REMOTE_ATOMIC;

	use_extra(s, PD, MRF_ALL & ~need);
	s->send.rkey = s->extra.key;
	s->send.va = s->extra.va;
}

static void remote_before(struct scene *s)
{
	s->send.va = s->dst.va - (1u << s->send.op & ATOMICS ? 8 : 1);
}

static void remote_behind(struct scene *s)
{
	/* The region's last aligned word, for atomics, ends with it. */
	s->send.va =
	        1u << s->send.op & ATOMICS ? s->dst.va + BOUNDS : s->dst.va + BOUNDS - LENGTH + 1;
}

static void region_destroyed(struct scene *s)
{
	nic_ok(s->env->nic, rdma_mr_destroy(&s->dst));
	s->dst.key = 0;
}

/* A window that was bound, and then invalidated by its owner. */
static void window_revoked(struct scene *s)
{
	struct rdma_send inv = {.wr_id = 2, .op = OP_LOCAL_INV, .flags = WQE_SIGNALED};
	struct rdma_wc wc;

	bind_spare(s);
	inv.imm = s->spare.key;
	nic_ok(s->env->nic, rdma_send(s->b, &inv));
	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	s->send.rkey = s->spare.key;
}

static void window_of_other_range(struct scene *s)
{
	bind_spare(s);
	s->send.rkey = s->spare.key;
	s->send.va = s->dst.va + BOUNDS - LENGTH + 1;
}

static void qp_no_access(struct scene *s)
{
	const struct rdma_qp_attr attr = {.mask = QPM_ACCESS, .access = 0};

	nic_ok(s->env->nic, rdma_qp_modify(s->b, &attr));
}

static void misaligned(struct scene *s)
{
	s->send.va += 4;
}

static void inv_wrong_key(struct scene *s)
{
	bind_spare(s);
	s->send.imm ^= 1;
}

static void recv_short(struct scene *s)
{
	s->recv.sge[0].len -= 1;
}

static void recv_wrong_key(struct scene *s)
{
	s->recv.sge[0].lkey ^= 1;
}

static void recv_read_only(struct scene *s)
{
	use_extra(s, PD, 0);
	s->recv.sge[0].va = s->extra.va;
	s->recv.sge[0].lkey = s->extra.key;
}

static void no_recv(struct scene *s)
{
	s->no_recv = true;
}

static void no_recv_finite(struct scene *s)
{
	const struct rdma_qp_attr retry = {.mask = QPM_RNR_RETRY, .rnr_retry = 1};

	nic_ok(s->env->nic, rdma_qp_modify(s->a, &retry));
	s->no_recv = true;
}

static void peer_destroyed(struct scene *s)
{
	nic_ok(s->env->nic, rdma_qp_destroy(s->b));
	s->b = NULL;
	s->no_recv = true;
}

static void peer_reset(struct scene *s)
{
	nic_ok(s->env->nic, rdma_qp_set_state(s->b, QPS_RESET));
	s->no_recv = true;
}

static void peer_in_error(struct scene *s)
{
	struct rdma_recv recv = s->recv;
	struct rdma_wc wc;

	nic_ok(s->env->nic, rdma_recv(s->b, &recv));
	nic_ok(s->env->nic, rdma_qp_set_state(s->b, QPS_ERR));
	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_FLUSH);
	s->no_recv = true;
}

static void peer_elsewhere(struct scene *s)
{
	const struct rdma_qp_attr attr = {.mask = QPM_DEST_QPN, .dest_qpn = s->a->id + 100};

	nic_ok(s->env->nic, rdma_qp_modify(s->b, &attr));
}

static void ah_unknown(struct scene *s)
{
	s->send.ah += 1000;
}

static void qkey_wrong(struct scene *s)
{
	s->send.qkey ^= 1;
}

static void qpn_unknown(struct scene *s)
{
	s->send.qpn += 1000;
}

static const struct fault faults[] = {
        /* the sender's own mistakes */
        {"bad opcode", RC | UC | UD, TRANSFERS, bad_opcode, WC_LOC_QP_OP, 0, SENDER, 0},
        {"SGE format", RC | UC | UD, TRANSFERS & ~ATOMICS, sge_format, WC_LOC_QP_OP, 0, SENDER, 0},
        {"lkey", RC | UC | UD, TRANSFERS, lkey_wrong, WC_LOC_PROT, 0, SENDER, 0},
        {"lkey 0", RC | UC | UD, TRANSFERS, lkey_zero, WC_LOC_PROT, 0, SENDER, 0},
        {"lkey's PD", RC | UC | UD, TRANSFERS, lkey_other_pd, WC_LOC_PROT, 0, SENDER, 0},
        {"local before", RC | UC | UD, TRANSFERS, local_before, WC_LOC_PROT, 0, SENDER, 0},
        {"local behind", RC | UC | UD, TRANSFERS, local_behind, WC_LOC_PROT, 0, SENDER, 0},
        {"local read-only", RC, FETCHES, local_read_only, WC_LOC_PROT, 0, SENDER, 0},
        {"AH", UD, SENDS, ah_unknown, WC_LOC_QP_OP, 0, SENDER, 0},

        /* what the responder refuses; a receive that is taken by then takes the blame */
        {"rkey", RC, REMOTES, rkey_wrong, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH, EQE_QP_ACCESS},
        {"rkey's PD", RC, REMOTES, rkey_other_pd, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH,
         EQE_QP_ACCESS},
        {"rkey's flags", RC, REMOTES, rkey_no_permission, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH,
         EQE_QP_ACCESS},
        {"remote before", RC, REMOTES, remote_before, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH,
         EQE_QP_ACCESS},
        {"remote behind", RC, REMOTES, remote_behind, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH,
         EQE_QP_ACCESS},
        {"region gone", RC, OP(WRITE) | OP(READ) | ATOMICS, region_destroyed, WC_REM_ACCESS, 0,
         BOTH, EQE_QP_ACCESS},
        {"window revoked", RC, OP(WRITE) | OP(READ), window_revoked, WC_REM_ACCESS, 0, BOTH,
         EQE_QP_ACCESS},
        {"window behind", RC, OP(WRITE) | OP(READ), window_of_other_range, WC_REM_ACCESS, 0, BOTH,
         EQE_QP_ACCESS},
        {"QP access", RC, REMOTES, qp_no_access, WC_REM_INV_REQ, 0, BOTH, EQE_QP_REQ},
        {"misaligned", RC, ATOMICS, misaligned, WC_REM_INV_REQ, 0, BOTH, EQE_QP_REQ},
        {"key to invalidate", RC, OP(SEND_INV), inv_wrong_key, WC_REM_OP, WC_LOC_ACCESS, BOTH, 0},
        {"receive short", RC, OP(SEND) | OP(SEND_IMM), recv_short, WC_REM_INV_REQ, WC_LOC_LEN, BOTH,
         0},
        {"receive's key", RC, OP(SEND) | OP(SEND_IMM), recv_wrong_key, WC_REM_OP, WC_LOC_PROT, BOTH,
         0},
        {"receive read-only", RC, OP(SEND) | OP(SEND_IMM), recv_read_only, WC_REM_OP, WC_LOC_PROT,
         BOTH, 0},
        {"no receive", RC, RECEIVES, no_recv_finite, WC_RNR_RETRY_EXC, 0, SENDER, 0},
        {"peer destroyed", RC, TRANSFERS, peer_destroyed, WC_RETRY_EXC, 0, SENDER, 0},
        {"peer reset", RC, TRANSFERS, peer_reset, WC_RETRY_EXC, 0, SENDER, 0},
        {"peer in ERR", RC, TRANSFERS, peer_in_error, WC_RETRY_EXC, 0, BOTH, 0},
        {"not our peer", RC, TRANSFERS, peer_elsewhere, WC_RETRY_EXC, 0, SENDER, 0},

        /* UC and UD drop what does not fit; a bad receive is the receiver's own error */
        {"rkey", UC, WRITES, rkey_wrong, WC_OK, 0, NOBODY, 0},
        {"rkey's PD", UC, WRITES, rkey_other_pd, WC_OK, 0, NOBODY, 0},
        {"rkey's flags", UC, WRITES, rkey_no_permission, WC_OK, 0, NOBODY, 0},
        {"remote before", UC, WRITES, remote_before, WC_OK, 0, NOBODY, 0},
        {"remote behind", UC, WRITES, remote_behind, WC_OK, 0, NOBODY, 0},
        {"window revoked", UC, WRITES, window_revoked, WC_OK, 0, NOBODY, 0},
        {"QP access", UC, WRITES, qp_no_access, WC_OK, 0, NOBODY, 0},
        {"receive short", UC | UD, SENDS, recv_short, WC_OK, 0, NOBODY, 0},
        {"receive's key", UC | UD, SENDS, recv_wrong_key, WC_OK, WC_LOC_PROT, RECEIVER, 0},
        {"no receive", UC | UD, RECEIVES, no_recv, WC_OK, 0, NOBODY, 0},
        {"peer destroyed", UC | UD, TRANSFERS, peer_destroyed, WC_OK, 0, NOBODY, 0},
        {"peer reset", UC | UD, TRANSFERS, peer_reset, WC_OK, 0, NOBODY, 0},
        {"not our peer", UC, TRANSFERS, peer_elsewhere, WC_OK, 0, NOBODY, 0},
        {"Q_Key", UD, SENDS, qkey_wrong, WC_OK, 0, NOBODY, 0},
        {"QPN", UD, SENDS, qpn_unknown, WC_OK, 0, NOBODY, 0},
};

static void expect_state(struct scene *s, const char *who, struct rdma_qp *qp, bool error)
{
	struct rdma_qp_info info;

	if (!qp)
		return;
	nic_ok(s->env->nic, rdma_qp_query(qp, &info));
	if ((info.state == QPS_ERR) != error)
		fail_msg("the %s is in state %u", who, info.state);
}

/* What is left in both queues of a QP in ERR is flushed, and nothing else comes. */
static void expect_flush(struct scene *s, struct rdma_cq *cq, struct rdma_qp *qp)
{
	struct rdma_send more = s->send;
	struct rdma_wc wc;
	int count = 0;

	more.wr_id = 0x777;
	nic_ok(s->env->nic, rdma_send(qp, &more));
	nic_ok(s->env->nic, rdma_recv(qp, &s->recv));
	while (rdma_poll(cq, &wc) == 1) {
		assert_int_equal(wc.status, WC_FLUSH);
		count++;
	}
	if (count < 2)
		fail_msg("%d of 2 requests flushed", count);
}

static void expect_receiver(struct scene *s, const struct fault *fault, unsigned op)
{
	bool blamed = fault->recv != WC_OK && 1u << op & RECEIVES && !s->no_recv;
	struct rdma_wc wc;
	int got;

	if (!s->b)
		return;
	nic_ok(s->env->nic, rdma_events(s->rdma) < 0);
	if (blamed) {
		nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
		assert_int_equal(wc.status, fault->recv);
		assert_int_equal(wc.wr_id, 0xdef);
	} else if (fault->event && !(s->b->events >> fault->event & 1)) {
		fail_msg("no event %u at the receiver: %#x", fault->event, s->b->events);
	}
	if (fault->errors & RECEIVER)
		return;
	got = rdma_poll(s->cq_b, &wc);
	if (got)
		fail_msg("the receiver has a completion: %d, status %u", got, wc.status);
}

static void run_fault(struct env *env, struct rdma *rdma, const struct fault *fault,
                      enum rdma_qp_type type, uint8_t op)
{
	struct scene s = scene_make(env, rdma, type, op);
	struct rdma_wc wc;

	if (op == OP_SEND_INV && fault->inject != inv_wrong_key)
		bind_spare(&s);
	fault->inject(&s);
	prepare_target(&s);
	if (1u << op & RECEIVES && !s.no_recv)
		nic_ok(env->nic, rdma_recv(s.b, &s.recv));
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	if (wc.status != fault->send || wc.wr_id != 0xabc)
		fail_msg("the sender's status is %u, expected %u", wc.status, fault->send);
	/* A query is answered behind all that happened before it. */
	expect_state(&s, "sender", s.a, fault->errors & SENDER);
	expect_state(&s, "receiver", s.b, fault->errors & RECEIVER);
	expect_receiver(&s, fault, op);
	if (fault->errors & SENDER)
		expect_flush(&s, s.cq_a, s.a);
	if (fault->errors & RECEIVER && s.b)
		expect_flush(&s, s.cq_b, s.b);
	scene_end(&s);
}

static void test_every_fault(void **state)
{
	static const enum rdma_qp_type types[] = {QPT_RC, QPT_UC, QPT_UD};
	struct env *env = *state;
	struct rdma *rdma;
	unsigned runs = 0;

	open_rdma(env, &rdma);
	for (size_t f = 0; f < ARRAY_SIZE(faults); f++)
		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			for (uint8_t op = 0; op < OP_COUNT; op++) {
				if (!(faults[f].types >> types[t] & 1) ||
				    !(faults[f].opcodes & opcodes_of[types[t]] & 1u << op))
					continue;
				print_message("%s, type %u, opcode %u\n", faults[f].name, types[t],
				              op);
				run_fault(env, rdma, &faults[f], types[t], op);
				runs++;
			}
	assert_true(runs > 150);
	nic_ok(env->nic, rdma_close(rdma));
}

/* Opcodes that a type of QP does not have. */
static void test_opcodes_not_allowed(void **state)
{
	static const enum rdma_qp_type types[] = {QPT_UC, QPT_UD};
	const struct fault fault = {"not allowed", UC | UD, TRANSFERS, no_recv,
	                            WC_LOC_QP_OP,  0,       SENDER,    0};
	struct env *env = *state;
	struct rdma *rdma;

	open_rdma(env, &rdma);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (uint8_t op = 0; op < OP_COUNT; op++)
			if (TRANSFERS >> op & 1 && !(opcodes_of[types[t]] >> op & 1) &&
			    op != OP_SEND_INV)
				run_fault(env, rdma, &fault, types[t], op);
	nic_ok(env->nic, rdma_close(rdma));
}

/* ---- queues ---- */

/* A CQ that overflows: an event of its own, its QPs in ERR; other CQs go on. */
static void test_cq_overflow(void **state)
{
	struct env *env = *state;
	const struct rdma_cq_config small = {.log2 = 4, .eq = 2, .page = USER};
	struct rdma_qp_config config = {.pd = PD, .page = USER, .sq_log2 = 6, .rq_log2 = 6};
	struct rdma_path path = RDMA_PATH;
	struct rdma_cq *cq;
	struct rdma_qp *qp;
	struct rdma *rdma;
	struct scene s;

	open_rdma(env, &rdma);
	s = scene_make(env, rdma, QPT_RC, OP_WRITE);
	nic_ok(env->nic, rdma_cq_create(rdma, &cq, &small));
	config.sq_cq = config.rq_cq = cq;
	nic_ok(env->nic, rdma_qp_create(rdma, &qp, &config));
	nic_ok(env->nic, rdma_qp_connect(qp, qp, &path));
	for (int i = 0; i < 40; i++) { /* one turn each, so that each has a completion */
		struct rdma_qp_info info;

		nic_ok(env->nic, rdma_send(qp, &s.send));
		nic_ok(env->nic, rdma_qp_query(qp, &info));
		if (info.state == QPS_ERR)
			break;
	}
	expect_state(&s, "QP", qp, true);
	nic_ok(env->nic, rdma_events(rdma) < 0);
	assert_true(cq->failed);
	assert_true(qp->events >> EQE_QP_FATAL & 1);
	nic_ok(env->nic, rdma_qp_destroy(qp));
	nic_ok(env->nic, rdma_cq_destroy(cq));
	scene_end(&s);
	run_good(env, rdma, QPT_RC, OP_WRITE);
	nic_ok(env->nic, rdma_close(rdma));
}

/* Posts in states that have no sends or receives are not heard, and nothing is lost later. */
static void test_posts_in_every_state(void **state)
{
	struct env *env = *state;
	struct rdma_path path = RDMA_PATH;
	struct rdma_wc wc;
	struct rdma *rdma;
	struct scene s;

	open_rdma(env, &rdma);
	s = scene_make(env, rdma, QPT_RC, OP_WRITE);
	nic_ok(env->nic, rdma_qp_set_state(s.a, QPS_RESET));
	nic_ok(env->nic, rdma_ring_send(s.a));
	nic_ok(env->nic, rdma_doorbell(rdma, USER, rdma->id.slot.sq, 0, s.a->id, 3));
	nic_ok(env->nic, rdma_doorbell(rdma, USER, rdma->id.slot.rq, 0, s.a->id, 3));
	nic_ok(env->nic, rdma_qp_start(s.a, s.b->id, &path));
	assert_int_equal(rdma_poll(s.cq_a, &wc), 0);
	nic_ok(env->nic, rdma_send(s.a, &s.send));
	nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
	assert_int_equal(wc.status, WC_OK);
	scene_end(&s);
	nic_ok(env->nic, rdma_close(rdma));
}

/* The event of a CQ: at once when it holds entries, at the next entry otherwise, once. */
static void test_events(void **state)
{
	struct env *env = *state;
	struct rdma_wc wc;
	struct rdma *rdma;
	struct scene s;

	open_rdma(env, &rdma);
	s = scene_make(env, rdma, QPT_RC, OP_WRITE);
	for (uint64_t i = 1; i <= 20; i++) {
		nic_ok(env->nic, rdma_send(s.a, &s.send));
		if (i > 1) /* the first comes unasked: a process may block before it ever armed */
			nic_ok(env->nic, rdma_cq_arm(s.cq_a, false));
		while (s.cq_a->notified < i) {
			int events = rdma_events_wait(rdma, 2, 5000);

			if (events <= 0)
				fail_msg("round %llu: no event (%d)", (unsigned long long)i,
				         events);
		}
		nic_ok(env->nic, rdma_wait(s.cq_a, &wc));
		assert_int_equal(s.cq_a->notified, i);
	}
	scene_end(&s);
	nic_ok(env->nic, rdma_close(rdma));
}

#define WRAP_SENDS 3000

/* Sends are signalled one in three. */
static void take_sends(struct scene *s, uint32_t until_room)
{
	struct rdma_wc wc;
	int got;

	do {
		got = rdma_poll(s->cq_a, &wc);
		assert_true(got >= 0);
		if (got == 1) {
			assert_int_equal(wc.status, WC_OK);
			assert_true(wc.wr_id % 3 == 0);
		}
	} while (got == 1 || ((s->a->sq.prod - s->a->sq.cons) & 63) + until_room > 63);
}

/* Many in a row, wrapping all rings, with unsignalled ones between: retired in order, none lost. */
static void test_rings_wrap(void **state)
{
	struct env *env = *state;
	struct rdma_wc wc;
	struct rdma *rdma;
	struct scene s;
	uint64_t posted = 0, done = 0;

	open_rdma(env, &rdma);
	s = scene_make(env, rdma, QPT_RC, OP_SEND);
	while (done < WRAP_SENDS) {
		while (posted < WRAP_SENDS && posted - done < 60) {
			s.recv.wr_id = s.send.wr_id = ++posted;
			s.send.flags = posted % 3 ? 0 : WQE_SIGNALED;
			nic_ok(env->nic, rdma_recv(s.b, &s.recv));
			take_sends(&s, 1);
			nic_ok(env->nic, rdma_send(s.a, &s.send));
		}
		nic_ok(env->nic, rdma_wait(s.cq_b, &wc));
		assert_int_equal(wc.status, WC_OK);
		assert_int_equal(wc.wr_id, ++done);
	}
	take_sends(&s, 63);
	scene_end(&s);
	nic_ok(env->nic, rdma_close(rdma));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_every_opcode, &bare),         ENV_TEST(test_every_fault, &bare),
	        ENV_TEST(test_opcodes_not_allowed, &bare),  ENV_TEST(test_cq_overflow, &bare),
	        ENV_TEST(test_posts_in_every_state, &bare), ENV_TEST(test_events, &bare),
	        ENV_TEST(test_rings_wrap, &bare),
	};

	return env_main("driver/rdma", tests, false);
}
