/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Meshes in one process; see mesh_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "mesh_rig.h"

uint64_t rig_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct loop *rig_loop(void)
{
	struct loop *loop;

	assert_int_equal(loop_create(&loop), 0);
	return loop;
}

uint16_t rig_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	close(fd);
	return ntohs(address.sin_port);
}

struct node *node_new(struct loop *loop, const char *text, uint8_t ip)
{
	struct node *node = calloc(1, sizeof(*node));
	char error[200] = "";

	assert_non_null(node);
	node->loop = loop;
	node->ip = ip;
	assert_int_equal(net_wire_create(&node->wire), 0);
	struct fabric_place place = {
	        .loop = loop, .wire = node->wire, .mac = {2, 0, 0, 0, 0, ip}, .mesh_wait_s = -1};

	if (fabric_create(&place, text, &node->fabric, error, sizeof(error)))
		fail_msg("%s: %s", text, error);
	node->mesh = container_of(node->fabric, struct mesh, base);
	node->nic = nic_on(loop, node->fabric, ip);
	return node;
}

static struct node *manager_every(struct loop *loop, uint16_t port, uint8_t ip, unsigned ms)
{
	char text[80];

	snprintf(text, sizeof(text), "tcp:manager:%u,interval=%u", port, ms);
	return node_new(loop, text, ip);
}

struct node *node_manager(struct loop *loop, uint16_t port, uint8_t ip)
{
	return manager_every(loop, port, ip, 200);
}

struct node *node_manager_patient(struct loop *loop, uint16_t port, uint8_t ip)
{
	return manager_every(loop, port, ip, 10000);
}

struct node *node_worker(struct loop *loop, uint16_t port, uint8_t ip)
{
	char text[80];

	snprintf(text, sizeof(text), "tcp:worker:127.0.0.1:%u", port);
	return node_new(loop, text, ip);
}

void node_free(struct node *node)
{
	if (!node)
		return;
	if (node->nic)
		nic_free(node->nic);
	fabric_destroy(node->fabric);
	net_wire_destroy(node->wire);
	free(node);
}

void rig_pass(struct loop *loop, unsigned ms)
{
	uint64_t end = rig_ms() + ms;

	while (rig_ms() < end)
		loop_turn(loop, 1000000);
}

unsigned rig_live(const struct node *node)
{
	const struct mesh_node *other;
	unsigned count = 0;

	LIST_FOREACH(other, &node->mesh->nodes, entry)
	count += other->state == MESH_NODE_LIVE;
	return count;
}

void rig_wait_nodes(struct node *node, unsigned count)
{
	RIG_WAIT(node->loop, (node->mesh->options.manager || node->mesh->registered) &&
	                             rig_live(node) == count);
}

void rig_gid(uint8_t ip, uint8_t gid[16])
{
	memcpy(gid, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 10, [15] = ip}, 16);
}

bool rig_resolves(struct node *node, uint8_t ip, const struct node *to)
{
	struct rdma_av av = {.dst_mac = {2, 9, 9, 9, 9, 9}};

	rig_gid(ip, av.dgid);
	struct mesh_node *found = mesh_resolve(node->mesh, &av);

	return to ? found && found->id == to->mesh->id : !found;
}

struct rdma_qp_attr rig_attr(struct test_qp *qp, struct test_qp *peer)
{
	struct rdma_qp_attr attr = qp_attr(qp, peer);

	attr.timeout = 14; /* 67 ms */
	attr.retry_count = 7;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 16;
	return attr;
}

void rig_connect(struct test_qp *a, struct test_qp *b)
{
	struct rdma_qp_attr attr = rig_attr(a, b);

	qp_up(a, &attr);
	attr = rig_attr(b, a);
	qp_up(b, &attr);
}
