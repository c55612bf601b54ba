/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a peer of the mesh sends after its greeting. The first byte says who it is: a registered
 * worker's connection to a manager, another worker's, or the manager's to a worker; the rest is the
 * stream. The device behind the mesh has queue pairs and memory for it to reach, or not to reach.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "mesh_rig.h"
#include "net/pcap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct loop *loop;
static struct node *manager, *worker;
static struct test_qp *qps[4];

/* What peers send is shown to captures, too. */
static void capture(struct node *node)
{
	struct net_pcap *pcap;

	if (net_pcap_open(loop, "/dev/null", &pcap))
		abort();
	net_wire_capture(node->wire, pcap, true);
}

static void start(void)
{
	uint16_t port = rig_port();
	struct rdma_qp_attr attr;

	log_set_level(LOG_LEVEL_NONE);
	loop = rig_loop();
	manager = node_manager(loop, port, 1);
	worker = node_worker(loop, port, 2);
	rig_wait_nodes(worker, 2);
	capture(manager);
	capture(worker);
	for (unsigned i = 0; i < 4; i++) { /* QPNs 2 and 3 of both, each its own peer's number */
		qps[i] = qp_new(i < 2 ? manager->nic : worker->nic, RDMA_QP_RC, 1);
		struct test_mr mr = mr_new(qps[i]->nic, 1, 0x1000, 65536, 0x1f);

		for (int n = 0; n < 4; n++)
			qp_post_recv_sge(qps[i], 1, sge_of(&mr, 0, 65536));
	}
	for (unsigned i = 0; i < 2; i++) {
		attr = rig_attr(qps[i], qps[i + 2]);
		attr.rq_psn = attr.sq_psn = 0;
		qp_up(qps[i], &attr);
		attr = rig_attr(qps[i + 2], qps[i]);
		attr.rq_psn = attr.sq_psn = 0;
		qp_up(qps[i + 2], &attr);
	}
}

/* QPs that a message has ended begin anew, so that the next input finds them. */
static void revive(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rdma_qp_attr attr = rig_attr(qps[i], qps[(i + 2) % 4]);

		qp_state(qps[i], RDMA_QPS_RESET);
		attr.rq_psn = attr.sq_psn = 0;
		qp_up(qps[i], &attr);
		qps[i]->flushes = 0;
	}
}

static void greet(int fd)
{
	struct mesh_hello hello;

	mesh_hello_init(&hello);
	hello.node = hello.peer = be32_make(MESH_NODE_NONE);
	hello.instance = be64_make(99);
	if (write(fd, &hello, sizeof(hello)) != sizeof(hello))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_storage address = {.ss_family = AF_INET};
	int fds[2];

	if (!loop)
		start();
	if (size < 1 || size > 60000 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
		return 0;
	struct mesh *mesh = data[0] % 3 == 0 ? manager->mesh : worker->mesh;
	struct mesh_conn *former = mesh->manager_conn;
	bool registered = mesh->registered;

	greet(fds[1]);
	mesh_conn_accept(mesh, fds[0], &address);
	if (data[0] % 3 == 2) { /* as if it were the manager's */
		struct mesh_conn *conn = LIST_FIRST(&mesh->conns);

		conn->manager = true;
		mesh->manager_conn = conn;
		mesh->registered = false;
	}
	if (write(fds[1], data + 1, size - 1) < 0)
		abort();
	for (int i = 0; i < 12; i++)
		loop_turn(loop, 0);
	close(fds[1]);
	for (int i = 0; i < 3; i++)
		loop_turn(loop, 0);
	if (data[0] % 3 == 2) {
		loop_disarm(loop, &mesh->reconnect);
		mesh->manager_conn = former;
		mesh->registered = registered;
	}
	revive();
	return 0;
}
