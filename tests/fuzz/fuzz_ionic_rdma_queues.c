// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz target: send and receive requests, CQs and events, with guest memory changing underneath.
 *
 * Four queue pairs are up: two of one process, connected with each other (RC), one of another
 * process (UC, connected with itself) and one for datagrams of the kernel. The input posts requests
 * that are right but for a few bytes, or any bytes at all, rings, consumes and arms; its last
 * quarter says what happens to memory before each access.
 */
#include "rdma_fuzz.h"

enum op {
	OP_SEND,     /* u8 queue pair, u8 opcode, u8 flags, changes of a request */
	OP_SEND_ANY, /* u8 queue pair, bytes */
	OP_RECV,     /* u8 queue pair, changes */
	OP_RECV_ANY,
	OP_RING_SEND, /* u8 queue pair, u8: all that is posted, or this index */
	OP_RING_RECV,
	OP_CQ,    /* u8 which, u8 ring: consumes all that is there, or arms */
	OP_STATE, /* u8 queue pair, u8 state */
	OP_DOORBELL,
	OP_MEMORY,
	OP_RUN,
	OP_CREDITS,
	OP_COUNT,
};

#define OPS_MAX 200
#define QPS     4

static struct rig_cq cqs[2];
static struct rig_qp qps[QPS];
static struct rig_mr mr;

static void set_up(void)
{
	static const struct {
		uint32_t qpn;
		unsigned type;
		uint16_t dbid;
	} rows[QPS] = {{2, 0, 1}, {8, 0, 1}, {3, 1, 2}, {1, 3, 0}};

	for (unsigned i = 0; i < 2; i++)
		must(rig_cq_create(&rig, &cqs[i], 1 + 8 * i, 6, i ? 1 : 0) == 0);
	for (unsigned i = 0; i < QPS; i++)
		must(rig_qp_create(&rig, &qps[i], &cqs[i & 1], rows[i].qpn, rows[i].type,
		                   rows[i].dbid) == 0);
	rig_qp_connect(&qps[0], &qps[1]);
	rig_qp_connect(&qps[1], &qps[0]);
	rig_qp_connect(&qps[2], &qps[2]);
	rig_qp_connect(&qps[3], NULL);
	rig_mr_create(&rig, &mr, 1, 1, 4 * 4096, RIG_ALL_ACCESS);
	must(rig_ah_create(&rig, 7, 1) == 0);
}

static struct rig_qp *pick(struct input *input)
{
	return &qps[number(input, 1) % QPS];
}

static void put(struct rig_qp *qp, struct rig_wq *wq, const union ionic_rdma_wqe *wqe)
{
	memcpy(slot_of(qp, wq, 128), wqe, 128);
	wq->prod = (wq->prod + 1) & ((1u << wq->depth) - 1);
}

static void op_send(struct input *input)
{
	struct rig_qp *qp = pick(input);
	uint8_t op = (uint8_t)(number(input, 1) % 12);
	uint16_t flags = (uint16_t)number(input, 1);
	uint32_t size = (uint32_t)number(input, 2) % 9000;
	union ionic_rdma_wqe wqe = rig_wqe_rdma(op, flags & 0xf, &mr, size, &mr);
	be32 key = be32_make(mr.key);

	if (flags & RIG_INLINE)
		wqe.any.length = be32_make(size % 97);
	if (qp->qpn == 1) {
		wqe.ud.ah_id = be32_make(7);
		wqe.ud.dest_qpn = be32_make(1);
		wqe.ud.dest_qkey = be32_make(0x80000000);
	} else if (op >= IONIC_RDMA_WQE_REG_MR) {
		wqe.reg_mr.length = be64_make(100);
		wqe.reg_mr.dma_addr = be64_make(mr.addr);
		wqe.reg_mr.map_count = be32_make(flags & 0x40 ? 4 : 1);
		memcpy(wqe.any.imm_data_key, &key, 4);
	}
	mutate(input, wqe.bytes, 128);
	put(qp, &qp->sq, &wqe);
}

static void op_any(struct input *input, bool receive)
{
	struct rig_qp *qp = pick(input);
	union ionic_rdma_wqe wqe;

	memset(&wqe, 0, sizeof(wqe));
	overwrite(input, wqe.bytes, 128);
	put(qp, receive ? &qp->rq : &qp->sq, &wqe);
}

static void op_send_any(struct input *input)
{
	op_any(input, false);
}

static void op_recv_any(struct input *input)
{
	op_any(input, true);
}

static void op_recv(struct input *input)
{
	struct rig_qp *qp = pick(input);
	uint32_t slot = qp->rq.prod;

	rig_post_recv(qp, slot, &mr, 4096, (uint32_t)number(input, 2) % 9000);
	mutate(input, fake_ptr(&rig.guest, qp->rq.base + ((uint64_t)slot << qp->rq.stride), 64),
	       64);
}

static void op_ring(struct input *input, unsigned slot)
{
	struct rig_qp *qp = pick(input);
	uint32_t index = slot == IONIC_DB_RDMA_SQ ? qp->sq.prod : qp->rq.prod;
	uint32_t other = (uint32_t)number(input, 1);

	rig_doorbell(&rig, qp->dbid, slot, qp->qpn, 0, other & 0x80 ? other & 0x7f : index);
}

static void op_ring_send(struct input *input)
{
	op_ring(input, IONIC_DB_RDMA_SQ);
}

static void op_ring_recv(struct input *input)
{
	op_ring(input, IONIC_DB_RDMA_RQ);
}

static void op_cq(struct input *input)
{
	struct rig_cq *cq = &cqs[number(input, 1) % 2];
	unsigned ring = (unsigned)number(input, 1) % 3;
	union ionic_rdma_cqe cqe;

	while (ring == 0 && rig_cq_poll(cq, &cqe))
		;
	if (ring == 0)
		rig_cq_consume(cq);
	else
		rig_doorbell(&rig, cq->dbid, IONIC_DB_RDMA_CQ, cq->id, ring, 0);
}

/* The completion of the command is not looked at: the memory may say anything by now. */
static void op_state(struct input *input)
{
	struct rig_qp *qp = pick(input);
	union ionic_rdma_admin wqe = {
	        .modify_qp = {.attr_mask = be32_make(RDMA_ATTR_STATE),
	                      .type_state = (uint8_t)(number(input, 1) % RDMA_QP_STATES),
	                      .id_ver = le32_make(qp->qpn)}};

	rig_admin_post(&rig, IONIC_RDMA_MODIFY_QP, &wqe, 60);
	rig_doorbell(&rig, 0, IONIC_DB_RDMA_AQ, 0, 0, rig.aq_prod);
}

static void op_run(struct input *input)
{
	(void)input;
	fake_run(&rig.guest);
	check(rig.guest.dev->rdma);
}

static void (*const ops[OP_COUNT])(struct input *input) = {
        [OP_SEND] = op_send,
        [OP_SEND_ANY] = op_send_any,
        [OP_RECV] = op_recv,
        [OP_RECV_ANY] = op_recv_any,
        [OP_RING_SEND] = op_ring_send,
        [OP_RING_RECV] = op_ring_recv,
        [OP_CQ] = op_cq,
        [OP_STATE] = op_state,
        [OP_DOORBELL] = op_doorbell,
        [OP_MEMORY] = op_memory,
        [OP_RUN] = op_run,
        [OP_CREDITS] = op_credits,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {.data = data, .size = size};

	begin(&input);
	set_up();
	rig.guest.on_access = happen;
	for (unsigned i = 0; i < OPS_MAX && input.size > 0; i++)
		ops[number(&input, 1) % OP_COUNT](&input);
	end();
	return 0;
}
