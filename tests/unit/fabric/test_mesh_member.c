/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who is in a mesh: ids, GIDs, restarts, losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/counter.h"
#include "mesh_rig.h"

static struct mesh_gid *own_gid(struct node *node, uint8_t ip)
{
	struct mesh_gid *found;
	uint8_t gid[16];

	rig_gid(ip, gid);
	LIST_FOREACH(found, &node->mesh->self->gids, of_node)
	if (memcmp(found->gid, gid, 16) == 0)
		return found;
	return NULL;
}

/* The node's guest has begun to use an IPv4 address, and may give it up. */
static void borrow_gid(struct node *node, uint8_t ip)
{
	uint8_t gid[16];

	rig_gid(ip, gid);
	mesh_claim_own(node->mesh, gid);
	assert_non_null(own_gid(node, ip));
}

/* ... for good. */
static void use_gid(struct node *node, uint8_t ip)
{
	borrow_gid(node, ip);
	own_gid(node, ip)->fixed = true;
}

/* Workers leave before their manager; C may be NULL. */
static void down(struct loop *loop, struct node *manager, struct node *b, struct node *c)
{
	node_free(c);
	node_free(b);
	node_free(manager);
	loop_destroy(loop);
}

static void claims(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);

	(void)state;
	rig_wait_nodes(b, 3);
	rig_wait_nodes(c, 3);
	assert_true(rig_resolves(b, 3, NULL));
	use_gid(manager, 1);
	use_gid(b, 2);
	use_gid(c, 3);
	RIG_WAIT(loop, rig_resolves(b, 1, manager) && rig_resolves(b, 3, c) &&
	                       rig_resolves(c, 2, b) && rig_resolves(manager, 3, c));
	/* two claim it: it leads to neither, anywhere */
	use_gid(b, 9);
	RIG_WAIT(loop, rig_resolves(c, 9, b));
	use_gid(c, 9);
	RIG_WAIT(loop, rig_resolves(manager, 9, NULL) && rig_resolves(b, 9, NULL) &&
	                       rig_resolves(c, 9, NULL));
	/* until one of them leaves */
	node_free(b);
	RIG_WAIT(loop, rig_resolves(manager, 9, c) && rig_resolves(manager, 2, NULL));
	node_free(c);
	node_free(manager);
	loop_destroy(loop);
}

static uint64_t conflicts(void)
{
	return counter_get(counter_find("fabric_mesh_gid_conflict"));
}

/* A node is silent, another takes its GID, which is no conflict; then the first one is back. */
static void back_to_a_conflict(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager_patient(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);

	(void)state;
	rig_wait_nodes(b, 3);
	rig_wait_nodes(c, 3);
	use_gid(b, 9);
	RIG_WAIT(loop, rig_resolves(manager, 9, b) && rig_resolves(c, 9, b));
	struct mesh_node *silent = mesh_node_find(manager->mesh, b->mesh->id);

	mesh_node_set_state(manager->mesh, silent, MESH_NODE_SILENT);
	use_gid(c, 9);
	RIG_WAIT(loop, rig_resolves(manager, 9, c) && rig_resolves(b, 9, NULL));
	uint64_t before = conflicts();

	mesh_node_set_state(manager->mesh, silent, MESH_NODE_LIVE);
	assert_int_equal(conflicts(), before + 1);
	assert_true(rig_resolves(manager, 9, NULL));
	down(loop, manager, b, c);
}

/* A worker that is restarted is a new node, and its GIDs go with it: nobody else claims them. */
static void worker_restarts(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);

	(void)state;
	use_gid(b, 2);
	rig_wait_nodes(b, 3);
	RIG_WAIT(loop, rig_resolves(c, 2, b));
	uint32_t id = b->mesh->id;
	uint64_t before = conflicts();

	node_free(b);
	RIG_WAIT(loop, rig_live(c) == 2);
	b = node_worker(loop, port, 2);
	use_gid(b, 2);
	RIG_WAIT(loop, b->mesh->registered && rig_resolves(c, 2, b) && rig_resolves(manager, 2, b));
	RIG_WAIT(loop, mesh_node_find(b->mesh, id));
	assert_int_not_equal(b->mesh->id, id);
	assert_int_equal(conflicts(), before);
	down(loop, manager, b, c);
}

/* A worker that loses its manager comes back under its id, with its claims. */
static void connection_lost(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);

	(void)state;
	use_gid(b, 2);
	rig_wait_nodes(b, 3);
	RIG_WAIT(loop, rig_resolves(c, 2, b));
	uint32_t id = b->mesh->id;

	mesh_conn_close(b->mesh->manager_conn, "test");
	RIG_WAIT(loop, rig_resolves(c, 2, NULL));
	RIG_WAIT(loop, b->mesh->registered && rig_resolves(c, 2, b));
	assert_int_equal(b->mesh->id, id);
	down(loop, manager, b, c);
}

/* A manager that is restarted learns its mesh again from its workers. */
static void manager_restarts(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);

	(void)state;
	use_gid(b, 2);
	use_gid(c, 3);
	RIG_WAIT(loop, rig_resolves(b, 3, c) && rig_resolves(c, 2, b));
	uint32_t id_b = b->mesh->id, id_c = c->mesh->id;

	node_free(manager);
	RIG_WAIT(loop, !b->mesh->registered && !c->mesh->registered);
	assert_true(rig_resolves(b, 3, c)); /* they still know each other */
	manager = node_manager(loop, port, 1);
	use_gid(manager, 1);
	rig_wait_nodes(manager, 3);
	RIG_WAIT(loop, rig_resolves(manager, 2, b) && rig_resolves(manager, 3, c) &&
	                       rig_resolves(b, 1, manager) && rig_resolves(b, 3, c));
	assert_int_equal(b->mesh->id, id_b);
	assert_int_equal(c->mesh->id, id_c);
	/* a node that does not come back stops counting */
	node_free(manager);
	RIG_WAIT(loop, !b->mesh->registered && !c->mesh->registered);
	node_free(c);
	manager = node_manager(loop, port, 1);
	RIG_WAIT(loop, b->mesh->registered && rig_resolves(b, 3, NULL));
	down(loop, manager, b, NULL);
}

/* A worker whose id was taken meanwhile asks for a new one by itself. */
static void id_gone(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2);

	(void)state;
	use_gid(b, 2);
	rig_wait_nodes(b, 2);
	node_free(manager);
	RIG_WAIT(loop, !b->mesh->registered);
	b->mesh->reconnect_ns = 1000 * NS_PER_MS;
	loop_arm(loop, &b->mesh->reconnect, loop_now(loop) + 1000 * NS_PER_MS);
	manager = node_manager(loop, port, 1);
	struct node *c = node_worker(loop, port, 3); /* gets the id of b */

	rig_wait_nodes(c, 2);
	assert_int_equal(c->mesh->id, b->mesh->id);
	RIG_WAIT(loop, b->mesh->registered && rig_resolves(c, 2, b));
	assert_int_not_equal(c->mesh->id, b->mesh->id);
	down(loop, manager, b, c);
}

/* A worker waits for a manager that is not there yet. */
static void manager_late(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *b = node_worker(loop, port, 2);

	(void)state;
	rig_pass(loop, 50);
	assert_false(b->mesh->registered);
	struct node *manager = node_manager(loop, port, 1);

	rig_wait_nodes(b, 2);
	down(loop, manager, b, NULL);
}

/* A GID that nothing of the guest has any more is withdrawn, and at once when another claims it. */
static void given_up(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);

	(void)state;
	rig_wait_nodes(b, 3);
	rig_wait_nodes(c, 3);
	/* an address moves from b to c, and one from the manager to c */
	borrow_gid(b, 9);
	borrow_gid(manager, 8);
	RIG_WAIT(loop, rig_resolves(c, 9, b) && rig_resolves(b, 8, manager));
	use_gid(c, 9);
	use_gid(c, 8);
	RIG_WAIT(loop, rig_resolves(manager, 9, c) && rig_resolves(b, 9, c) &&
	                       rig_resolves(manager, 8, c) && rig_resolves(b, 8, c));
	/* one that a queue pair has stays until that is gone for a while */
	struct test_qp *qb = qp_new(b->nic, RDMA_QP_RC, 1), *qc = qp_new(c->nic, RDMA_QP_RC, 1);

	rig_connect(qb, qc);
	RIG_WAIT(loop, rig_resolves(c, 2, b));
	own_gid(b, 2)->unused_ns = 1;
	rig_pass(loop, 5 * b->mesh->options.interval_ms);
	assert_int_equal(own_gid(b, 2)->unused_ns, 0);
	assert_true(rig_resolves(c, 2, b));
	qp_free(qb);
	qp_free(qc);
	RIG_WAIT(loop, own_gid(b, 2)->unused_ns != 0);
	assert_true(rig_resolves(c, 2, b));
	own_gid(b, 2)->unused_ns = 1;
	RIG_WAIT(loop, rig_resolves(c, 2, NULL) && rig_resolves(manager, 2, NULL));
	down(loop, manager, b, c);
}

/* A withdrawal that is lost with a connection takes effect all the same, wherever it was missed. */
static void given_up_unheard(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);
	uint8_t gid[16];

	(void)state;
	use_gid(b, 2);
	borrow_gid(b, 9);
	rig_wait_nodes(b, 3);
	RIG_WAIT(loop, rig_resolves(c, 9, b) && rig_resolves(c, 2, b));
	/* c is away while b withdraws one and the manager begins to use it */
	mesh_conn_close(c->mesh->manager_conn, "test");
	loop_disarm(loop, &c->mesh->reconnect);
	own_gid(b, 9)->unused_ns = 1;
	RIG_WAIT(loop, rig_resolves(manager, 9, NULL));
	assert_true(rig_resolves(c, 9, b));
	use_gid(manager, 9);
	loop_arm(loop, &c->mesh->reconnect, loop_now(loop));
	RIG_WAIT(loop, c->mesh->registered && rig_resolves(c, 9, manager));
	/* the manager knows one of b that b does not know of any more */
	rig_gid(8, gid);
	mesh_put_gid(b->mesh->manager_conn, MESH_CLAIM, b->mesh->self, gid);
	RIG_WAIT(loop, rig_resolves(c, 8, b));
	mesh_conn_close(b->mesh->manager_conn, "test");
	RIG_WAIT(loop, rig_resolves(c, 2, NULL));
	RIG_WAIT(loop, b->mesh->registered && rig_resolves(c, 2, b));
	RIG_WAIT(loop, rig_resolves(c, 8, NULL) && rig_resolves(manager, 8, NULL));
	/* and nothing else goes */
	assert_true(rig_resolves(c, 2, b) && rig_resolves(manager, 2, b));
	down(loop, manager, b, c);
}

static void write_byte(struct test_qp *qp, struct test_mr *from, struct test_mr *to)
{
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(from, 0, 1), to->va, to->key);

	qp_post_send(qp, &wr);
	qp_expect_send(qp, RDMA_OK);
}

/* As if nobody had used the connections of NODE for the time after which they may go; then that of
 * two health checks passes. */
static void age(struct node *node)
{
	uint64_t interval = node->mesh->options.interval_ms;
	struct mesh_conn *conn;

	rig_pass(node->loop, 20); /* what is under way is no use any more */
	LIST_FOREACH(conn, &node->mesh->conns, entry)
	conn->used_ns -= MESH_IDLE_INTERVALS * interval * NS_PER_MS;
	rig_pass(node->loop, (unsigned)interval + 50);
}

/* A connection of two workers lives as long as there are queue pairs for it, and not for ever
 * after; the next queue pair calls again. */
static void idle_connection(void **state)
{
	struct loop *loop = rig_loop();
	uint16_t port = rig_port();
	struct node *manager = node_manager(loop, port, 1);
	struct node *b = node_worker(loop, port, 2), *c = node_worker(loop, port, 3);
	const struct counter *idle = counter_find("fabric_mesh_idle");
	uint64_t before = counter_get(idle);

	(void)state;
	rig_wait_nodes(b, 3);
	rig_wait_nodes(c, 3);
	struct test_mr from = mr_new(b->nic, 1, 0x1000, 100, 0x1f);
	struct test_mr to = mr_new(c->nic, 1, 0x2000, 100, 0x1f);

	for (int round = 1; round <= 2; round++) {
		struct test_qp *qb = qp_new(b->nic, RDMA_QP_RC, 1);
		struct test_qp *qc = qp_new(c->nic, RDMA_QP_RC, 1);

		rig_connect(qb, qc);
		write_byte(qb, &from, &to);
		assert_int_equal(b->mesh->conn_count, 2);
		age(b);
		age(c);
		assert_int_equal(b->mesh->conn_count, 2);
		write_byte(qb, &from, &to);
		qp_free(qb);
		qp_free(qc);
		age(b);
		age(c);
		RIG_WAIT(loop, b->mesh->conn_count == 1 && c->mesh->conn_count == 1);
		assert_int_equal(counter_get(idle) - before, round);
	}
	assert_true(b->mesh->registered && c->mesh->registered);
	mr_free(&from);
	mr_free(&to);
	down(loop, manager, b, c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(claims),           cmocka_unit_test(back_to_a_conflict),
	        cmocka_unit_test(worker_restarts),  cmocka_unit_test(connection_lost),
	        cmocka_unit_test(manager_restarts), cmocka_unit_test(id_gone),
	        cmocka_unit_test(manager_late),     cmocka_unit_test(idle_connection),
	        cmocka_unit_test(given_up),         cmocka_unit_test(given_up_unheard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
