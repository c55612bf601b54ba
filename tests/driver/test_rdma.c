// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Verbs through real queues: every opcode on every type of QP, right and with each mistake that a
 * program can make. The rules themselves have their tests beside the engine; what counts here is
 * that requests, completions, markers and events of the queue ABI say the same (spec ionic-rdma 5,
 * 6, 9.3).
 */
#include "rdma_scene.h"

#include <errno.h>
#include <string.h>

static const struct env_options bare = {0};

static void test_every_opcode(void **state)
{
	static const enum rdma_qp_type types[] = {QPT_RC, QPT_UC, QPT_UD};
	struct env *env = *state;
	struct rdma *rdma;

	scene_open(env, &rdma);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		for (unsigned op = 0; op < OP_COUNT; op++)
			if (scene_opcodes[types[i]] >> op & 1)
				scene_run(env, rdma, types[i], (uint8_t)op);
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
	scene_region(s, &s->extra, pd, flags);
	s->has_extra = true;
}

static void lkey_other_pd(struct scene *s)
{
	use_extra(s, SCENE_OTHER_PD, MRF_ALL);
	s->send.sge[0] = rdma_sge(&s->extra, 0, scene_size(s));
}

static void local_read_only(struct scene *s)
{
	use_extra(s, SCENE_PD, 0);
	s->send.sge[0] = rdma_sge(&s->extra, 0, scene_size(s));
}

static void local_before(struct scene *s)
{
	s->send.sge[0].va = s->src.va - 1;
}

static void local_behind(struct scene *s)
{
	s->send.sge[0].va = s->src.va + SCENE_BOUNDS - scene_size(s) + 1;
}

static void rkey_wrong(struct scene *s)
{
	s->send.rkey ^= 1;
}

static void rkey_other_pd(struct scene *s)
{
	use_extra(s, SCENE_OTHER_PD, MRF_ALL);
	s->send.rkey = s->extra.key;
	s->send.va = s->extra.va;
}

static void rkey_no_permission(struct scene *s)
{
	uint32_t need = 1u << s->send.op & WRITES ? MRF_REMOTE_WRITE
	                : s->send.op == OP_READ   ? MRF_REMOTE_READ
	                                          : MRF_REMOTE_ATOMIC;

	use_extra(s, SCENE_PD, MRF_ALL & ~need);
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
	s->send.va = 1u << s->send.op & ATOMICS ? s->dst.va + SCENE_BOUNDS
	                                        : s->dst.va + SCENE_BOUNDS - SCENE_LENGTH + 1;
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

	scene_bind(s);
	inv.imm = s->spare.key;
	nic_ok(s->env->nic, rdma_send(s->b, &inv));
	nic_ok(s->env->nic, rdma_wait(s->cq_b, &wc));
	assert_int_equal(wc.status, WC_OK);
	s->send.rkey = s->spare.key;
}

static void window_of_other_range(struct scene *s)
{
	scene_bind(s);
	s->send.rkey = s->spare.key;
	s->send.va = s->dst.va + SCENE_BOUNDS - SCENE_LENGTH + 1;
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
	scene_bind(s);
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
	use_extra(s, SCENE_PD, 0);
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
        {"lkey's SCENE_PD", RC | UC | UD, TRANSFERS, lkey_other_pd, WC_LOC_PROT, 0, SENDER, 0},
        {"local before", RC | UC | UD, TRANSFERS, local_before, WC_LOC_PROT, 0, SENDER, 0},
        {"local behind", RC | UC | UD, TRANSFERS, local_behind, WC_LOC_PROT, 0, SENDER, 0},
        {"local read-only", RC, FETCHES, local_read_only, WC_LOC_PROT, 0, SENDER, 0},
        {"AH", UD, SENDS, ah_unknown, WC_LOC_QP_OP, 0, SENDER, 0},

        /* what the responder refuses; a receive that is taken by then takes the blame */
        {"rkey", RC, REMOTES, rkey_wrong, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH, EQE_QP_ACCESS},
        {"rkey's SCENE_PD", RC, REMOTES, rkey_other_pd, WC_REM_ACCESS, WC_LOC_ACCESS, BOTH,
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
        {"rkey's SCENE_PD", UC, WRITES, rkey_other_pd, WC_OK, 0, NOBODY, 0},
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
		scene_bind(&s);
	fault->inject(&s);
	scene_target(&s);
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

	scene_open(env, &rdma);
	for (size_t f = 0; f < ARRAY_SIZE(faults); f++)
		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			for (unsigned op = 0; op < OP_COUNT; op++) {
				if (!(faults[f].types >> types[t] & 1) ||
				    !(faults[f].opcodes & scene_opcodes[types[t]] & 1u << op))
					continue;
				print_message("%s, type %u, opcode %u\n", faults[f].name, types[t],
				              op);
				run_fault(env, rdma, &faults[f], types[t], (uint8_t)op);
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

	scene_open(env, &rdma);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (unsigned op = 0; op < OP_COUNT; op++)
			if (TRANSFERS >> op & 1 && !(scene_opcodes[types[t]] >> op & 1) &&
			    op != OP_SEND_INV)
				run_fault(env, rdma, &fault, types[t], (uint8_t)op);
	nic_ok(env->nic, rdma_close(rdma));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        ENV_TEST(test_every_opcode, &bare),
	        ENV_TEST(test_every_fault, &bare),
	        ENV_TEST(test_opcodes_not_allowed, &bare),
	};

	return env_main("driver/rdma", tests, false);
}
