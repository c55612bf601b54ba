/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sender of forged packets, with a guest that helps it: the engine stays whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "net/roce_headers.h"
#include "roce_rig.h"

#define PD  1
#define ALL 0x1f
#define PSN 0xfffff0u

enum { SIZE = 65536 };

/* What side 0 forges arrives at the QP of side 1. */
struct scene {
	struct rig *rig;
	struct test_qp *a, *b;
	struct test_mr mr; /* of b */
	uint64_t original; /* of the last answer to an atomic */
	unsigned answers;  /* to atomics */
	bool cut;          /* nothing arrives at b */
};

static unsigned look(struct rig *rig, unsigned side, struct rig_frame *frame)
{
	struct scene *scene = rig->arg;
	be64 original;

	if (side == 1 && frame->bytes[42] == ROCE_ATOMIC_ACK) {
		memcpy(&original, frame->bytes + 42 + 12 + 4, sizeof(original));
		scene->original = be64_get(original);
		scene->answers++;
	}
	return side == 0 && scene->cut ? 0 : 1;
}

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	uint8_t header[RDMA_TEMPLATE_MAX];

	scene->rig = rig_new();
	scene->rig->look = look;
	scene->rig->arg = scene;
	scene->a = qp_new(scene->rig->side[0].nic, RDMA_QP_RC, PD);
	scene->b = qp_new(scene->rig->side[1].nic, RDMA_QP_RC, PD);
	scene->mr = mr_new(scene->b->nic, PD, 0x10000, SIZE, ALL);
	for (int i = 0; i < 2; i++) {
		struct test_qp *own = i ? scene->b : scene->a, *peer = i ? scene->a : scene->b;
		size_t size = nic_template(own->nic, peer->nic, 4, false, header);
		struct rdma_qp_attr attr = qp_attr(own, peer);

		attr.sq_psn = attr.rq_psn = PSN;
		attr.max_rd_atomic = attr.max_dest_rd_atomic = 4;
		assert_int_equal(rdma_av_parse(header, size, &attr.av), 0);
		qp_up(own, &attr);
	}
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	qp_free(scene->a);
	qp_free(scene->b);
	mr_free(&scene->mr);
	rig_free(scene->rig);
	free(scene);
	return 0;
}

/* Sends a packet with FIELDS and SIZE bytes of payload to b. */
static void forge(struct scene *scene, struct roce_fields fields, size_t size)
{
	uint8_t frame[4300] = {0};
	size_t at = nic_template(scene->a->nic, scene->b->nic, 4, false, frame);

	fields.qpn = scene->b->qpn;
	fields.src_qpn = scene->a->qpn;
	at += roce_put_headers(&fields, size, frame + at);
	rig_inject(scene->rig, 0, frame, roce_seal(frame, 14, at + size, 1));
	nic_spin(scene->a->nic, 6);
}

/* Sends a middle packet of a READ response to a. */
static void forge_answer(struct scene *scene, uint32_t psn)
{
	struct roce_fields fields = {
	        .opcode = ROCE_READ_MIDDLE, .psn = psn & 0xffffff, .qpn = scene->a->qpn};
	uint8_t frame[4300] = {0};
	size_t at = nic_template(scene->b->nic, scene->a->nic, 4, false, frame);

	at += roce_put_headers(&fields, 1024, frame + at);
	rig_inject(scene->rig, 1, frame, roce_seal(frame, 14, at + 1024, 1));
	nic_spin(scene->a->nic, 4);
}

static void set_mtu(struct scene *scene, unsigned shift)
{
	struct rdma_qp_attr attr = {.mtu_shift = (uint8_t)shift};

	assert_int_equal(rdma_qp_modify(scene->b->qp, RDMA_ATTR_MTU, &attr), 0);
}

/* A WRITE whose end with immediate data found no receive is a WRITE again: it goes on in the
 * middle, its memory is gone by then, and another one begins. */
static void end_that_was_none(void **state)
{
	struct scene *scene = *state;
	struct roce_fields fields = {.opcode = ROCE_WRITE_FIRST,
	                             .psn = PSN,
	                             .va = scene->mr.va,
	                             .rkey = scene->mr.key,
	                             .length = 1024};

	set_mtu(scene, 8);
	forge(scene, fields, 256);
	set_mtu(scene, 10);
	fields.opcode = ROCE_WRITE_LAST_IMM;
	fields.psn = PSN + 1;
	forge(scene, fields, 768);
	assert_int_equal(rdma_dev_stat(scene->b->nic->dev, RDMA_STAT_RESP_TX_RNR), 1);
	set_mtu(scene, 8);
	assert_int_equal(rdma_mr_destroy(scene->b->nic->dev, scene->mr.key), 0);
	fields.opcode = ROCE_WRITE_MIDDLE;
	forge(scene, fields, 256);
	fields.opcode = ROCE_WRITE_FIRST;
	fields.psn = PSN;
	forge(scene, fields, 256);
	assert_int_equal(rdma_qp_state(scene->b->qp), RDMA_QPS_ERR);
	assert_int_equal(rdma_dev_stat(scene->b->nic->dev, RDMA_STAT_RESP_TX_ACCESS), 1);
}

/* An atomic that is asked again gets its own old value, not that of one whose PSN was the same a
 * round of PSNs before. */
static void same_number_again(void **state)
{
	struct scene *scene = *state;
	struct rdma_qp_attr attr = {.rq_psn = PSN};
	struct roce_fields fields = {.opcode = ROCE_FETCH_ADD,
	                             .psn = PSN,
	                             .va = scene->mr.va,
	                             .rkey = scene->mr.key,
	                             .swap_add = 5};

	mr_set(&scene->mr, 0, &(uint64_t){100}, 8);
	forge(scene, fields, 0);
	assert_int_equal(scene->original, 100);
	assert_int_equal(rdma_qp_modify(scene->b->qp, RDMA_ATTR_RQ_PSN, &attr), 0);
	forge(scene, fields, 0);
	assert_int_equal(scene->original, 105);
	forge(scene, fields, 0);
	assert_int_equal(scene->answers, 3);
	assert_int_equal(scene->original, 105);
}

/* Responses behind a missing one, in any order and more of them than there are retries: what is
 * missing is asked for once more, and no retry is used up for the rest. */
static void gap_told_often(void **state)
{
	enum { PACKETS = 40 };
	struct scene *scene = *state;
	struct test_mr sink = mr_new(scene->a->nic, PD, 0x20000, SIZE, ALL);
	struct rdma_wr wr = {.opcode = RDMA_READ,
	                     .num_sge = 1,
	                     .flags = RDMA_WR_SIGNALED,
	                     .length = PACKETS * 1024,
	                     .sge = {{sink.va, PACKETS * 1024, sink.key}},
	                     .remote = {.va = scene->mr.va, .rkey = scene->mr.key}};
	struct rdma_qp_attr attr = {.timeout = 0}; /* no timer: retries are for gaps alone */
	struct rdma_dev *dev = scene->a->nic->dev;

	assert_int_equal(rdma_qp_modify(scene->a->qp, RDMA_ATTR_TIMEOUT, &attr), 0);
	scene->cut = true; /* no answers but the forged ones */
	qp_post_send(scene->a, &wr);
	nic_spin(scene->a->nic, 4);
	for (uint32_t i = PACKETS - 2; i > 0; i--) /* each before the one that came last */
		forge_answer(scene, PSN + i);
	assert_int_equal(rdma_dev_stat(dev, RDMA_STAT_REQ_RX_IMPLIED_NAK), 1);
	assert_int_equal(rdma_dev_stat(dev, RDMA_STAT_RETRIES), 1);
	assert_int_equal(rdma_qp_state(scene->a->qp), RDMA_QPS_RTS);
	mr_free(&sink);
}

static void leave(struct test_qp *qp, const struct rdma_wc *wc)
{
	(void)wc;
	*(bool *)qp->arg = true;
}

/* The receiver of a last message destroys its QP as soon as it has seen it: the sender, which
 * nobody would answer any more, was told before that. */
static void receiver_leaves_at_once(void **state)
{
	struct scene *scene = *state;
	struct test_mr source = mr_new(scene->a->nic, PD, 0x20000, SIZE, ALL);
	bool received = false;

	scene->b->on_recv = leave;
	scene->b->arg = &received;
	qp_post_recv_sge(scene->b, 1, sge_of(&scene->mr, 0, 64));
	struct rdma_wr wr = wr_send(RDMA_SEND, sge_of(&source, 0, 64));

	qp_post_send(scene->a, &wr);
	for (unsigned turn = 0; turn < 100 && !received; turn++)
		nic_spin(scene->a->nic, 1);
	assert_true(received);
	rdma_qp_destroy(scene->b->qp);
	scene->b->qp = NULL;
	qp_expect_send(scene->a, RDMA_OK);
	mr_free(&source);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(end_that_was_none), TEST(same_number_again),
	                                   TEST(gap_told_often), TEST(receiver_leaves_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
