/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet over the mesh: one learning switch, notes that travel with the frame, no loops. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/counter.h"
#include "base/iov.h"
#include "mesh_rig.h"

/* What stands in for a guest. */
struct host {
	struct net_port port;
	unsigned frames;
	struct net_frame last;
	uint8_t data[NET_MAX_FRAME];
	uint8_t mac[6];
};

static int deliver(struct net_port *port, const struct net_frame *frame)
{
	struct host *host = container_of(port, struct host, port);

	host->frames++;
	host->last = *frame;
	iov_to_buf(frame->iov, frame->iov_count, 0, host->data, frame->size);
	return 0;
}

static const struct net_port_ops ops = {.deliver = deliver};

static struct host *host_new(struct node *node)
{
	struct host *host = calloc(1, sizeof(*host));

	host->port.name = "guest";
	host->port.ops = &ops;
	host->port.offloads = NET_OFFLOAD_ALL;
	memcpy(host->mac, (uint8_t[]){2, 0, 0, 0, 1, node->ip}, 6);
	assert_int_equal(net_wire_attach(node->wire, &host->port), 0);
	return host;
}

static void host_free(struct host *host)
{
	net_wire_detach(&host->port);
	free(host);
}

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static int host_send(struct host *host, const uint8_t to[6], size_t size)
{
	static uint8_t data[NET_MAX_FRAME];
	struct iovec iov[2] = {{data, 20}, {data + 20, size - 20}};
	struct net_frame frame = {.iov = iov, .iov_count = 2, .size = size};

	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7);
	memcpy(data, to, 6);
	memcpy(data + 6, host->mac, 6);
	return net_wire_send(&host->port, &frame);
}

struct scene {
	struct loop *loop;
	struct node *nodes[3];
	struct host *hosts[3];
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	uint16_t port = rig_port();

	scene->loop = rig_loop();
	for (uint8_t i = 0; i < 3; i++) {
		scene->nodes[i] = i ? node_worker(scene->loop, port, (uint8_t)(i + 1))
		                    : node_manager(scene->loop, port, 1);
		scene->hosts[i] = host_new(scene->nodes[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		rig_wait_nodes(scene->nodes[i], 3);
	*state = scene;
	return 0;
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	for (unsigned i = 3; i-- > 0;) {
		host_free(scene->hosts[i]);
		node_free(scene->nodes[i]);
	}
	loop_destroy(scene->loop);
	free(scene);
	return 0;
}

/* A broadcast reaches each other node once; then unicast goes to one alone. */
static void switching(void **state)
{
	struct scene *scene = *state;
	struct host **h = scene->hosts;

	for (unsigned from = 0; from < 3; from++) {
		unsigned before[3] = {h[0]->frames, h[1]->frames, h[2]->frames};

		assert_int_equal(host_send(h[from], everybody, 60), 0);
		rig_pass(scene->loop, 20);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(h[i]->frames - before[i], i != from);
	}
	for (unsigned from = 0; from < 3; from++)
		for (unsigned to = 0; to < 3; to++) {
			if (from == to)
				continue;
			for (int n = 0; n < 3; n++) { /* by the manager, then directly */
				unsigned all = h[0]->frames + h[1]->frames + h[2]->frames;
				unsigned before = h[to]->frames;

				assert_int_equal(host_send(h[from], h[to]->mac, 1000), 0);
				RIG_WAIT(scene->loop, h[to]->frames == before + 1);
				rig_pass(scene->loop, 2);
				assert_int_equal(h[0]->frames + h[1]->frames + h[2]->frames,
				                 all + 1);
				assert_int_equal(h[to]->last.size, 1000);
				assert_int_equal(h[to]->data[999], (uint8_t)(999 * 7));
			}
		}
	assert_ptr_equal(mesh_eth_station(scene->nodes[1]->mesh, h[2]->mac),
	                 mesh_node_find(scene->nodes[1]->mesh, scene->nodes[2]->mesh->id));
}

static void every_size(void **state)
{
	static const size_t sizes[] = {20 + 1, 60, 1514, 8192, 8193, 9018, 65000, NET_MAX_FRAME};
	struct scene *scene = *state;
	struct host **h = scene->hosts;

	host_send(h[2], everybody, 60);
	RIG_WAIT(scene->loop, h[1]->frames == 1);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned before = h[2]->frames;

		assert_int_equal(host_send(h[1], h[2]->mac, sizes[i]), 0);
		RIG_WAIT(scene->loop, h[2]->frames == before + 1);
		assert_int_equal(h[2]->last.size, sizes[i]);
		assert_int_equal(h[2]->data[sizes[i] - 1], (uint8_t)((sizes[i] - 1) * 7));
	}
}

/* Offload notes come out as they went in. */
static void notes(void **state)
{
	struct scene *scene = *state;
	uint8_t data[3000] = {0};
	struct iovec iov = {data, sizeof(data)};
	struct net_frame frame = {.iov = &iov,
	                          .iov_count = 1,
	                          .size = sizeof(data),
	                          .csum_partial = true,
	                          .csum_start = 34,
	                          .csum_offset = 16,
	                          .vlan = true,
	                          .vlan_tci = 0x6123,
	                          .gso = NET_GSO_TCPV4,
	                          .gso_size = 1000,
	                          .gso_ecn = true,
	                          .hdr_size = 54};

	memcpy(data, everybody, 6);
	memcpy(data + 6, scene->hosts[1]->mac, 6);
	assert_int_equal(net_wire_send(&scene->hosts[1]->port, &frame), 0);
	RIG_WAIT(scene->loop, scene->hosts[2]->frames == 1);
	const struct net_frame *last = &scene->hosts[2]->last;

	assert_true(last->csum_partial && last->vlan && last->gso_ecn && !last->csum_valid);
	assert_int_equal(last->csum_start, 34);
	assert_int_equal(last->csum_offset, 16);
	assert_int_equal(last->vlan_tci, 0x6123);
	assert_int_equal(last->gso, NET_GSO_TCPV4);
	assert_int_equal(last->gso_size, 1000);
	assert_int_equal(last->hdr_size, 54);
}

/* Without a manager the workers that know each other still talk. */
static void manager_gone(void **state)
{
	struct scene *scene = *state;
	struct host **h = scene->hosts;

	for (unsigned i = 1; i < 3; i++)
		host_send(h[i], everybody, 60);
	rig_pass(scene->loop, 20);
	for (int n = 0; n < 3; n++) {
		host_send(h[1], h[2]->mac, 100);
		rig_pass(scene->loop, 10);
	}
	host_free(h[0]);
	node_free(scene->nodes[0]);
	RIG_WAIT(scene->loop, !scene->nodes[1]->mesh->registered);
	unsigned before = h[2]->frames;

	host_send(h[1], h[2]->mac, 100);
	host_send(h[1], everybody, 100);
	RIG_WAIT(scene->loop, h[2]->frames == before + 2);
	scene->nodes[0] = node_manager(scene->loop, rig_port(), 1); /* for teardown */
	h[0] = host_new(scene->nodes[0]);
}

/* Two TAPs: one of them is the way out, so a frame never comes back by the other. */
static void two_ways_out(void **state)
{
	struct scene *scene = *state;
	struct host *taps[3] = {NULL};

	for (unsigned i = 1; i < 3; i++) {
		taps[i] = host_new(scene->nodes[i]);
		taps[i]->port.group = NET_GROUP_OUTSIDE;
		taps[i]->mac[4] = 9;
		for (unsigned n = 0; n < 3; n++) {
			struct mesh *mesh = scene->nodes[n]->mesh;

			mesh_node_find(mesh, scene->nodes[i]->mesh->id)->flags = MESH_NODE_TAP;
			mesh_eth_elect(mesh);
		}
	}
	/* from outside: the lower node's is joined, the other's serves its own guest */
	bool first = scene->nodes[1]->mesh->id < scene->nodes[2]->mesh->id;
	unsigned joined = first ? 1 : 2, other = first ? 2 : 1;

	host_send(taps[joined], everybody, 60);
	host_send(taps[other], everybody, 60);
	rig_pass(scene->loop, 20);
	assert_int_equal(scene->hosts[0]->frames, 1);
	assert_int_equal(scene->hosts[joined]->frames, 1);
	assert_int_equal(scene->hosts[other]->frames, 2);
	assert_int_equal(taps[1]->frames + taps[2]->frames, 0);
	/* from a guest: out by the joined one alone */
	host_send(scene->hosts[0], everybody, 60);
	rig_pass(scene->loop, 20);
	assert_int_equal(taps[joined]->frames, 1);
	assert_int_equal(taps[other]->frames, 0);
	/* its node goes: the other takes over */
	struct mesh *mesh = scene->nodes[other]->mesh;

	mesh_node_set_state(mesh, mesh_node_find(mesh, scene->nodes[joined]->mesh->id),
	                    MESH_NODE_SILENT);
	host_send(scene->hosts[0], everybody, 60);
	rig_pass(scene->loop, 20);
	assert_int_equal(taps[other]->frames, 1);
	host_free(taps[1]);
	host_free(taps[2]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(switching),    TEST(every_size),   TEST(notes),
	        TEST(two_ways_out), TEST(manager_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
