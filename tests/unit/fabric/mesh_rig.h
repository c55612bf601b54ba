/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Meshes of several nodes in one process, on one loop, for tests. */
#ifndef ERNIC_TESTS_FABRIC_MESH_RIG_H
#define ERNIC_TESTS_FABRIC_MESH_RIG_H

#include "fabric/mesh_internal.h"
#include "verbs.h"

/* A server as far as the mesh sees it. */
struct node {
	struct loop *loop;
	struct rdma_fabric *fabric;
	struct mesh *mesh;
	struct net_wire *wire;
	struct nic *nic; /* 10.0.0.IP; NULL without one */
	uint8_t ip;
};

struct loop *rig_loop(void);
/* A TCP port that nobody uses. */
uint16_t rig_port(void);
/* Starts a node: TEXT as behind --backend. Ends the test when that fails. */
struct node *node_new(struct loop *loop, const char *text, uint8_t ip);
/* A manager that looks for silent nodes every 200 ms; the patient one seldom enough for all nodes
 * of a large mesh to share one slow thread. */
struct node *node_manager(struct loop *loop, uint16_t port, uint8_t ip);
struct node *node_manager_patient(struct loop *loop, uint16_t port, uint8_t ip);
struct node *node_worker(struct loop *loop, uint16_t port, uint8_t ip);
/* As if the process had ended. */
void node_free(struct node *node);

/* Turns the loop until CONDITION; fails the test after 60 s. */
#define RIG_WAIT(loop, condition)                                                                  \
	do {                                                                                       \
		uint64_t end_ = rig_ms() + 60000;                                                  \
		while (!(condition)) {                                                             \
			if (rig_ms() > end_)                                                       \
				fail_msg("%s:%d: waited 60 s for: %s", __FILE__, __LINE__,         \
				         #condition);                                              \
			loop_turn(loop, 1000000);                                                  \
		}                                                                                  \
	} while (0)
void rig_pass(struct loop *loop, unsigned ms);
uint64_t rig_ms(void);

/* Until the node is registered and knows COUNT live nodes, itself included. */
void rig_wait_nodes(struct node *node, unsigned count);
unsigned rig_live(const struct node *node);
/* Whether NODE's tables lead to TO by the GID of its NIC. */
bool rig_resolves(struct node *node, uint8_t ip, const struct node *to);
void rig_gid(uint8_t ip, uint8_t gid[16]);

/* Connects with attributes that suit a network. */
void rig_connect(struct test_qp *a, struct test_qp *b);
struct rdma_qp_attr rig_attr(struct test_qp *qp, struct test_qp *peer);

#endif
