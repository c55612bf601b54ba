// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes captures for tests that read them: a server, or two of a fabric, each with --pcap, and
 * between their NICs every operation of every type of queue pair, the refusals, and Ethernet.
 *
 *	driver_capture loopback|tcp|roce FOLDER
 *
 * leaves FOLDER/0.pcapng and, but for loopback, FOLDER/1.pcapng. With roce the cable between the
 * two TAPs is in here, and marks some packets as a router does that is busy. Exit status: 0, 1, or
 * 77 when there can be no TAP.
 */
#include "rdma_scene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NODES = 2, PD = 7, PAGE = 1, SIZE = 1 << 17, MARK_EVERY = 16 };

struct node {
	struct server *server;
	struct peer peer; /* the host's end of its TAP */
	struct nic *nic;
	struct rdma *rdma;
	struct rdma_cq *sends, *recvs;
	struct rdma_mr mr, window;
	uint32_t ah; /* of the other */
};

static struct {
	const char *fabric, *folder;
	bool alone; /* one server has both ends */
	struct node node[NODES];
	pthread_t cable;
	atomic_bool over;
} scene;

static struct node *other(const struct node *node)
{
	return &scene.node[scene.alone || node != &scene.node[0] ? 0 : 1];
}

/* ---- the cable of roce ---- */

/* Whether a frame is RoCE over IPv4: only that may come changed, ethernet() compares its own. */
static bool is_roce(const uint8_t *frame)
{
	static const uint8_t port[] = {4791 >> 8, 4791 & 0xff};

	return frame[12] == 8 && frame[13] == 0 && frame[14] == 0x45 && frame[23] == 17 &&
	       memcmp(frame + 36, port, sizeof(port)) == 0;
}

/* Congestion experienced (RFC 3168), in an IPv4 header. */
static void mark(uint8_t *ip)
{
	ip[1] |= 3;
	ip[10] = ip[11] = 0;
	uint16_t sum = (uint16_t)~frame_sum(ip, 20);

	ip[10] = (uint8_t)(sum >> 8);
	ip[11] = (uint8_t)sum;
}

static void *carry(void *arg)
{
	static struct peer_frame frame;
	unsigned count = 0;

	(void)arg;
	while (!scene.over)
		for (unsigned i = 0; i < NODES; i++) {
			if (peer_recv(&scene.node[i].peer, &frame, 1))
				continue;
			if (is_roce(frame.data) && ++count % MARK_EVERY == 0)
				mark(frame.data + 14);
			peer_send(&scene.node[!i].peer, frame.data, frame.size);
		}
	return NULL;
}

/* ---- the servers ---- */

static void node_serve(unsigned index, uint16_t port)
{
	struct node *node = &scene.node[index];
	char backend[60], mac[18], file[300];
	const char *const args[] = {"--backend", backend, "--pcap", file, NULL};
	struct server_options options = {.args = args, .mac = mac};

	snprintf(mac, sizeof(mac), "02:00:00:00:ac:%02x", index + 1);
	snprintf(file, sizeof(file), "%s/%u.pcapng", scene.folder, index);
	if (strcmp(scene.fabric, "tcp") == 0)
		snprintf(backend, sizeof(backend),
		         index ? "tcp:worker:127.0.0.1:%u" : "tcp:manager:%u", port);
	else
		snprintf(backend, sizeof(backend), "%s", scene.fabric);
	if (strcmp(scene.fabric, "roce") == 0) {
		sys_ok(peer_open(&node->peer, false));
		options.tap = node->peer.tap;
	}
	sys_ok(server_spawn(&node->server, &options));
}

static void node_drive(struct node *node)
{
	const struct rdma_cq_config cq = {.log2 = 8, .page = PAGE};
	const struct rdma_mr_config mr = {
	        .pd = PD, .flags = MRF_ALL, .size = SIZE, .scattered = true};
	struct nic_options options = NIC_OPTIONS(node->server->socket);

	options.pairs = 1;
	options.ram_size = 64u << 20;
	nic_ok(NULL, nic_start(&node->nic, &options));
	nic_ok(node->nic, rdma_open(&node->rdma, node->nic));
	nic_ok(node->nic, rdma_cq_create(node->rdma, &node->sends, &cq));
	nic_ok(node->nic, rdma_cq_create(node->rdma, &node->recvs, &cq));
	nic_ok(node->nic, rdma_mr_create(node->rdma, &node->mr, &mr));
	rdma_mr_fill(&node->mr, 0, SIZE, (uint32_t)(node - scene.node));
	nic_ok(node->nic, rdma_mr_create_empty(node->rdma, &node->window, PD, MRF_MW_2));
}

static void start(void)
{
	uint16_t port = server_free_port();
	unsigned count = scene.alone ? 1 : NODES;

	for (unsigned i = 0; i < count; i++)
		node_serve(i, port);
	if (strcmp(scene.fabric, "roce") == 0)
		assert_int_equal(pthread_create(&scene.cable, NULL, carry, NULL), 0);
	for (unsigned i = 0; i < count; i++)
		node_drive(&scene.node[i]);
	for (unsigned i = 0; i < count; i++) {
		struct node *node = &scene.node[i];

		nic_ok(node->nic, rdma_ah_create(node->rdma, PD, other(node)->nic->mac, &node->ah));
	}
}

static void stop(void)
{
	for (unsigned i = scene.alone ? 1 : NODES; i-- > 0;) {
		struct node *node = &scene.node[i];

		rdma_cq_free(node->sends);
		rdma_cq_free(node->recvs);
		rdma_free(node->rdma);
		nic_close(node->nic);
		sys_ok(server_stop(node->server));
	}
	scene.over = true;
	if (strcmp(scene.fabric, "roce") != 0)
		return;
	pthread_join(scene.cable, NULL);
	for (unsigned i = 0; i < NODES; i++)
		peer_close(&scene.node[i].peer);
}

/* ---- traffic ---- */

/* From FROM to the other node, and back for answers. */
struct pair {
	struct node *from, *to;
	struct rdma_qp *qp, *peer;
};

static struct pair pair_open(struct node *from, enum rdma_qp_type type)
{
	struct pair pair = {.from = from, .to = other(from)};
	struct rdma_qp_config config = {
	        .type = type, .pd = PD, .page = PAGE, .sq_log2 = 6, .rq_log2 = 6};
	const struct rdma_path path = RDMA_PATH;

	config.sq_cq = from->sends;
	config.rq_cq = from->recvs;
	nic_ok(from->nic, rdma_qp_create(from->rdma, &pair.qp, &config));
	config.sq_cq = pair.to->sends;
	config.rq_cq = pair.to->recvs;
	nic_ok(pair.to->nic, rdma_qp_create(pair.to->rdma, &pair.peer, &config));
	nic_ok(from->nic, rdma_qp_connect(pair.qp, pair.peer, &path));
	return pair;
}

static void pair_close(struct pair *pair)
{
	nic_ok(pair->from->nic, rdma_qp_destroy(pair->qp));
	nic_ok(pair->to->nic, rdma_qp_destroy(pair->peer));
}

static void expect(struct node *node, struct rdma_cq *cq, enum rdma_status status)
{
	struct rdma_wc wc;

	nic_ok(node->nic, rdma_wait(cq, &wc));
	assert_int_equal(wc.status, status);
}

/* The answer to the query says that the other server knows of the receive: nothing else orders its
 * doorbell with the message, and UC and UD do not ask twice. */
static void post_recv(struct pair *pair)
{
	struct rdma_recv recv = {.num_sge = 1, .sge = {rdma_sge(&pair->to->mr, 0, SIZE)}};
	struct rdma_qp_info info;

	nic_ok(pair->to->nic, rdma_recv(pair->peer, &recv));
	nic_ok(pair->to->nic, rdma_qp_query(pair->peer, &info));
}

/* A window of the receiver's, for SEND_INV to invalidate. */
static uint32_t bind_window(struct pair *pair)
{
	struct node *to = pair->to;
	struct rdma_send request = {.op = OP_BIND_MW,
	                            .flags = WQE_SIGNALED,
	                            .imm = to->window.key,
	                            .va = to->mr.va,
	                            .length = SIZE,
	                            .lkey = to->mr.key,
	                            .access = 0xc000 | MRF_REMOTE_WRITE | MRF_REMOTE_READ};

	nic_ok(to->nic, rdma_send(pair->peer, &request));
	expect(to, to->sends, WC_OK);
	to->window.key = (to->window.key & ~0xffu) | ((to->window.key + 1) & 0xff);
	return to->window.key;
}

static void post(struct pair *pair, unsigned op, uint32_t size, uint32_t rkey)
{
	struct rdma_send send = {.op = (uint8_t)op,
	                         .num_sge = 1,
	                         .flags = WQE_SIGNALED,
	                         .sge = {rdma_sge(&pair->from->mr, 0, size)},
	                         .imm = op == OP_SEND_INV ? bind_window(pair) : 0x44332211,
	                         .va = pair->to->mr.va,
	                         .rkey = rkey,
	                         .swap_add = 1,
	                         .ah = pair->from->ah,
	                         .qpn = pair->peer->id,
	                         .qkey = pair->peer->qkey};

	nic_ok(pair->from->nic, rdma_send(pair->qp, &send));
}

static void exchange(struct pair *pair, unsigned op, uint32_t size)
{
	bool receives = RECEIVES >> op & 1;

	if (receives)
		post_recv(pair);
	post(pair, op, size, pair->to->mr.key);
	expect(pair->from, pair->from->sends, WC_OK);
	if (receives)
		expect(pair->to, pair->to->recvs, WC_OK);
}

static void every_operation(struct node *from, enum rdma_qp_type type)
{
	static const uint32_t sizes[] = {0, 1, 1000, 1024, 5000, SIZE};
	struct pair pair = pair_open(from, type);

	for (unsigned op = 0; op < OP_COUNT; op++) {
		if (!(scene_opcodes[type] >> op & 1))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			if (1u << op & ATOMICS ? sizes[i] == 0 : type != QPT_UD || sizes[i] <= 1000)
				exchange(&pair, op, 1u << op & ATOMICS ? 8 : sizes[i]);
	}
	pair_close(&pair);
}

/* A message whose receive comes late. */
static void not_ready(struct node *from)
{
	struct pair pair = pair_open(from, QPT_RC);

	post(&pair, OP_SEND, 5000, 0);
	usleep(5000);
	post_recv(&pair);
	expect(from, from->sends, WC_OK);
	expect(pair.to, pair.to->recvs, WC_OK);
	pair_close(&pair);
}

static void refusals(struct node *from)
{
	static const unsigned ops[] = {OP_WRITE, OP_READ, OP_FETCH_ADD};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct pair pair = pair_open(from, QPT_RC);

		post(&pair, ops[i], ops[i] == OP_FETCH_ADD ? 8 : 5000, 0x100);
		expect(from, from->sends, WC_REM_ACCESS);
		pair_close(&pair);
	}
}

/* A frame to the other node; with loopback nobody is there to get it. */
static void ethernet(struct node *from, int version)
{
	struct node *to = other(from);
	struct flow flow = flow_make(version, FRAME_PROTO_UDP, to->nic->mac, from->nic->mac);
	struct nic_frame *got = malloc(sizeof(*got));
	uint8_t frame[600];
	size_t size = frame_build(frame, &flow, 500, 3, FRAME_CSUM_FULL);

	assert_non_null(got);
	nic_ok(from->nic, nic_send_frame(from->nic, frame, size));
	do /* the host has things to say on a TAP of its own */
		if (!scene.alone)
			nic_ok(to->nic, nic_recv(to->nic, got));
	while (!scene.alone && (got->size != size || memcmp(got->data, frame, size) != 0));
	free(got);
}

static void traffic(void **state)
{
	static const enum rdma_qp_type types[] = {QPT_RC, QPT_UC, QPT_UD};

	(void)state;
	start();
	for (unsigned i = 0; i < (scene.alone ? 1 : NODES); i++) {
		struct node *node = &scene.node[i];

		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			every_operation(node, types[t]);
		not_ready(node);
		refusals(node);
		ethernet(node, 4);
		ethernet(node, 6);
	}
	stop();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(traffic)};

	if (argc != 3) {
		fprintf(stderr, "usage: driver_capture loopback|tcp|roce FOLDER\n");
		return 2;
	}
	scene.fabric = argv[1];
	scene.folder = argv[2];
	scene.alone = strcmp(scene.fabric, "loopback") == 0;
	return env_main("driver/capture", tests, strcmp(scene.fabric, "roce") == 0);
}
