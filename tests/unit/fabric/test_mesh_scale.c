/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Large meshes in one process: joining and leaving, an incast, everybody with everybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/counter.h"
#include "fabric/mesh_view.h"
#include "mesh_rig.h"

#define PD  1
#define ALL 0x1f

static bool all_know(struct node **nodes, unsigned count, unsigned live)
{
	for (unsigned i = 0; i < count; i++)
		if (rig_live(nodes[i]) != live || (i > 0 && !nodes[i]->mesh->registered))
			return false;
	return true;
}

/* What mesh_show() tells, counted. */
struct tally {
	struct mesh_view view;
	struct mesh_view_self self;
	unsigned nodes, live, gids, gids_live, conns, up;
	uint32_t last; /* node */
};

static void tally_self(struct mesh_view *view, const struct mesh_view_self *self)
{
	container_of(view, struct tally, view)->self = *self;
}

static void tally_node(struct mesh_view *view, const struct mesh_view_node *node)
{
	struct tally *tally = container_of(view, struct tally, view);

	assert_true(tally->nodes == 0 || node->id > tally->last);
	tally->last = node->id;
	tally->nodes++;
	tally->live += node->state == MESH_VIEW_LIVE;
}

static void tally_gid(struct mesh_view *view, const struct mesh_view_gid *gid)
{
	struct tally *tally = container_of(view, struct tally, view);

	assert_int_equal(gid->node, tally->last);
	tally->gids++;
	tally->gids_live += gid->state == MESH_VIEW_CLAIM_LIVE;
}

static void tally_conn(struct mesh_view *view, const struct mesh_view_conn *conn)
{
	struct tally *tally = container_of(view, struct tally, view);

	tally->conns++;
	tally->up += conn->state == MESH_VIEW_UP && !conn->tls && conn->received > 0;
}

static struct tally take_tally(struct node *node)
{
	struct tally tally = {.view = {tally_self, tally_node, tally_gid, tally_conn}};

	assert_true(mesh_show(node->fabric, &tally.view));
	assert_int_equal(tally.nodes, tally.self.node_count);
	return tally;
}

/* More GIDs than are shown at once: the number tells that some are missing. */
static void many_claims(struct node *node)
{
	struct mesh_node *last;
	uint8_t gid[16] = {0x20};

	LIST_FOREACH(last, &node->mesh->nodes, entry)
	for (uint32_t i = 1; i < MESH_GIDS_MAX; i++) {
		gid[1] = (uint8_t)i;
		memcpy(gid + 12, &last->id, sizeof(last->id));
		mesh_claim(node->mesh, last, gid);
	}
	struct tally tally = take_tally(node);

	assert_int_equal(tally.gids, MESH_VIEW_GIDS_MAX);
	assert_int_equal(tally.self.gid_count, tally.nodes * MESH_GIDS_MAX);
}

/* 256 nodes know each other; one joins, one leaves; each has one connection, to its manager. */
static void many_nodes(void **state)
{
	enum { NODES = 256 };
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *nodes[NODES + 1];
	uint64_t start = rig_ms();

	(void)state;
	nodes[0] = node_manager_patient(loop, port, 0);
	for (unsigned i = 1; i < NODES; i++) {
		nodes[i] = node_worker(loop, port, (uint8_t)i);
		if (i % 32 == 0)
			rig_wait_nodes(nodes[0], i + 1);
	}
	RIG_WAIT(loop, all_know(nodes, NODES, NODES));
	print_message("%d nodes joined in %u ms\n", NODES, (unsigned)(rig_ms() - start));
	for (unsigned i = 1; i < NODES; i++)
		assert_int_equal(nodes[i]->mesh->conn_count, 1);
	for (unsigned i = 0; i < NODES; i += 51)
		for (unsigned j = 0; j < NODES; j += 17) {
			struct rdma_av av = {.dst_mac = {2, 0, 0, 0, 0, (uint8_t)j}};

			struct mesh_node *found = mesh_resolve(nodes[i]->mesh, &av);

			assert_true(i == j ? !found : found && found->id == nodes[j]->mesh->id);
		}
	struct tally tally = take_tally(nodes[0]);

	assert_true(tally.self.manager && tally.self.registered && tally.self.id == 0);
	assert_int_equal(tally.live, NODES);
	assert_int_equal(tally.gids_live, NODES); /* the link-local ones */
	assert_int_equal(tally.up, NODES - 1);
	start = rig_ms();
	nodes[NODES] = node_worker(loop, port, 0xff);
	memset(nodes[NODES]->mesh->mac, 9, 6);
	RIG_WAIT(loop, all_know(nodes, NODES + 1, NODES + 1));
	print_message("one more joined in %u ms\n", (unsigned)(rig_ms() - start));
	start = rig_ms();
	node_free(nodes[NODES]);
	RIG_WAIT(loop, all_know(nodes, NODES, NODES));
	print_message("one left in %u ms\n", (unsigned)(rig_ms() - start));
	tally = take_tally(nodes[1]);
	assert_true(!tally.self.manager && tally.self.registered && tally.self.id != 0);
	assert_int_equal(tally.nodes, NODES + 1);
	assert_int_equal(tally.live, NODES); /* the one that left is remembered */
	assert_int_equal(tally.gids_live, NODES);
	assert_true(tally.gids > NODES);
	assert_int_equal(tally.up, 1);
	many_claims(nodes[1]);
	for (unsigned i = NODES; i-- > 0;)
		node_free(nodes[i]);
	loop_destroy(loop);
}

/* Eight to one: when the first has written half of its data, the last is not far behind. */
static void incast(void **state)
{
	enum { SENDERS = 8, WRITES = 40, SIZE = 1 << 20 };
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *sink = node_manager_patient(loop, port, 1), *nodes[SENDERS];
	struct test_qp *from[SENDERS], *to[SENDERS];
	struct test_mr mrs[SENDERS], target;

	(void)state;
	target = mr_new(sink->nic, PD, 0x1000, SIZE, ALL);
	for (unsigned i = 0; i < SENDERS; i++) {
		nodes[i] = node_worker(loop, port, (uint8_t)(i + 2));
		rig_wait_nodes(nodes[i], i + 2);
		from[i] = qp_new(nodes[i]->nic, RDMA_QP_RC, PD);
		to[i] = qp_new(sink->nic, RDMA_QP_RC, PD);
		rig_connect(from[i], to[i]);
		mrs[i] = mr_new(nodes[i]->nic, PD, 0x1000, SIZE, ALL);
	}
	for (unsigned i = 0; i < SENDERS; i++)
		for (unsigned n = 0; n < WRITES; n++) {
			struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&mrs[i], 0, SIZE), target.va,
			                            target.key);

			qp_post_send(from[i], &wr);
		}
	uint32_t most = 0, least = 0;

	while (most < WRITES / 2) {
		loop_turn(loop, 1000000);
		least = WRITES;
		for (unsigned i = 0; i < SENDERS; i++) {
			most = from[i]->send_wcs > most ? from[i]->send_wcs : most;
			least = from[i]->send_wcs < least ? from[i]->send_wcs : least;
		}
	}
	print_message("incast: first %u, last %u of %d\n", most, least, WRITES);
	assert_true(least >= WRITES / 8);
	for (unsigned i = 0; i < SENDERS; i++)
		for (unsigned n = 0; n < WRITES; n++)
			qp_expect_send(from[i], RDMA_OK);
	mr_free(&target);
	for (unsigned i = 0; i < SENDERS; i++) {
		mr_free(&mrs[i]);
		qp_free(from[i]);
		qp_free(to[i]);
		node_free(nodes[i]);
	}
	node_free(sink);
	loop_destroy(loop);
}

/* Small messages on a connection that a large one keeps busy: they do not wait for its end. */
static void small_beside_large(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *a = node_manager_patient(loop, port, 1), *b = node_worker(loop, port, 2);
	struct test_qp *large_a, *large_b, *small_a, *small_b;

	(void)state;
	rig_wait_nodes(b, 2);
	large_a = qp_new(a->nic, RDMA_QP_RC, PD);
	large_b = qp_new(b->nic, RDMA_QP_RC, PD);
	small_a = qp_new(a->nic, RDMA_QP_RC, PD);
	small_b = qp_new(b->nic, RDMA_QP_RC, PD);
	rig_connect(large_a, large_b);
	rig_connect(small_a, small_b);
	struct test_mr here = mr_new(a->nic, PD, 0x1000, 8 << 20, ALL);
	struct test_mr there = mr_new(b->nic, PD, 0x1000, 8 << 20, ALL);
	struct rdma_wr large = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 8 << 20), there.va, there.key);
	struct rdma_wr small = wr_rdma(RDMA_WRITE, sge_of(&here, 0, 8), there.va, there.key);

	for (int i = 0; i < 20; i++)
		qp_post_send(large_a, &large);
	nic_spin(a->nic, 3);
	unsigned done = 0;

	while (large_a->send_wcs < 20 && done < 100) {
		qp_post_send(small_a, &small);
		qp_expect_send(small_a, RDMA_OK);
		done++;
	}
	print_message("%u small messages, one after the other, during %u of 20 large ones\n", done,
	              large_a->send_wcs);
	assert_true(done >= 20);
	for (int i = 0; i < 20; i++)
		qp_expect_send(large_a, RDMA_OK);
	mr_free(&here);
	mr_free(&there);
	qp_free(large_a);
	qp_free(large_b);
	qp_free(small_a);
	qp_free(small_b);
	node_free(b);
	node_free(a);
	loop_destroy(loop);
}

/* Everybody writes to everybody: connections are made on demand, two nodes share one or two. */
static void all_to_all(void **state)
{
	enum { NODES = 12, WRITES = 20, SIZE = 20000 };
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *nodes[NODES];
	struct test_qp *qps[NODES][NODES] = {{NULL}};
	struct test_mr mrs[NODES];

	(void)state;
	for (unsigned i = 0; i < NODES; i++) {
		nodes[i] = i ? node_worker(loop, port, (uint8_t)(i + 1))
		             : node_manager_patient(loop, port, 1);
		mrs[i] = mr_new(nodes[i]->nic, PD, 0x1000, SIZE, ALL);
	}
	RIG_WAIT(loop, all_know(nodes, NODES, NODES));
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < NODES; j++)
			if (i != j)
				qps[i][j] = qp_new(nodes[i]->nic, RDMA_QP_RC, PD);
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = i + 1; j < NODES; j++)
			rig_connect(qps[i][j], qps[j][i]);
	for (unsigned n = 0; n < WRITES * NODES * NODES; n++) {
		unsigned i = n % NODES, j = n / NODES % NODES;
		struct rdma_wr wr =
		        wr_rdma(RDMA_WRITE, sge_of(&mrs[i], 0, SIZE), mrs[j].va, mrs[j].key);

		if (i != j)
			qp_post_send(qps[i][j], &wr);
	}
	for (unsigned i = 0; i < NODES; i++)
		for (unsigned j = 0; j < NODES; j++)
			for (unsigned n = 0; n < WRITES && i != j; n++)
				qp_expect_send(qps[i][j], RDMA_OK);
	for (unsigned i = 0; i < NODES; i++) {
		assert_true(nodes[i]->mesh->conn_count <= 2 * NODES);
		for (unsigned j = 0; j < NODES; j++)
			if (qps[i][j])
				qp_free(qps[i][j]);
		mr_free(&mrs[i]);
	}
	for (unsigned i = NODES; i-- > 0;)
		node_free(nodes[i]);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(many_nodes),
	        cmocka_unit_test(incast),
	        cmocka_unit_test(small_beside_large),
	        cmocka_unit_test(all_to_all),
	};
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
