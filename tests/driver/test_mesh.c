// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Servers on a mesh, each a process of its own with a NIC: verbs between them, and what is left of
 * it when one of them is killed, stopped, or started again.
 */
#include "env.h"
#include "history.h"
#include "rdma.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NODES = 3, PD = 7, PAGE = 1, SIZE = 1 << 20 };

struct node {
	struct server *server;
	struct nic *nic;
	struct rdma *rdma;
	struct rdma_cq *cq;
	struct rdma_mr mr;
};

struct mesh {
	uint16_t port;
	struct node node[NODES];
};

static void node_start(struct mesh *mesh, unsigned index)
{
	struct node *node = &mesh->node[index];
	char backend[60], mac[18];
	const char *const args[] = {"--backend", backend, NULL};
	struct server_options options = {.profile = "generic-100g", .args = args, .mac = mac};
	const struct rdma_cq_config cq = {.log2 = 10, .page = PAGE};
	const struct rdma_mr_config mr = {
	        .pd = PD, .flags = MRF_ALL, .size = SIZE, .scattered = true};

	snprintf(mac, sizeof(mac), "02:00:00:00:ac:%02x", index + 1);
	snprintf(backend, sizeof(backend), index ? "tcp:worker:127.0.0.1:%u" : "tcp:manager:%u",
	         mesh->port);
	if (index == 0)
		strcat(backend, ",interval=200");
	sys_ok(server_spawn(&node->server, &options));
	struct nic_options nic = NIC_OPTIONS(node->server->socket);

	nic.brief = true;
	nic.pairs = 1;
	nic.ram_size = 64u << 20;
	nic_ok(NULL, nic_start(&node->nic, &nic));
	nic_ok(node->nic, rdma_open(&node->rdma, node->nic));
	nic_ok(node->nic, rdma_cq_create(node->rdma, &node->cq, &cq));
	nic_ok(node->nic, rdma_mr_create(node->rdma, &node->mr, &mr));
}

static void node_forget(struct node *node)
{
	rdma_cq_free(node->cq);
	rdma_free(node->rdma);
	nic_close(node->nic);
	*node = (struct node){0};
}

/* As a machine that loses power; its client goes with it. */
static void node_kill(struct node *node)
{
	struct server *server = node->server;

	kill(server->pid, SIGKILL);
	node_forget(node);
	while (server_alive(server))
		usleep(1000);
	assert_int_equal(server_stop(server), -ECHILD); /* and says why */
}

static int setup(void **state)
{
	static struct mesh mesh;

	mesh = (struct mesh){.port = server_free_port()};
	for (unsigned i = 0; i < NODES; i++)
		node_start(&mesh, i);
	*state = &mesh;
	return 0;
}

static int teardown(void **state)
{
	struct mesh *mesh = *state;

	for (unsigned i = NODES; i-- > 0;) {
		struct server *server = mesh->node[i].server;

		node_forget(&mesh->node[i]);
		sys_ok(server_stop(server));
	}
	return 0;
}

/* ---- traffic ---- */

struct pair {
	struct node *from, *to;
	struct rdma_qp *qp, *peer;
};

/* TIMEOUT: as in rdma_path; 14 is 67 ms, 8 times. */
static void connect_pair(struct mesh *mesh, unsigned from, unsigned to, uint8_t timeout,
                         struct pair *pair)
{
	struct rdma_qp_config config = {.pd = PD, .page = PAGE, .sq_log2 = 8, .rq_log2 = 6};
	struct rdma_path path = RDMA_PATH;

	*pair = (struct pair){.from = &mesh->node[from], .to = &mesh->node[to]};
	path.timeout = timeout;
	config.sq_cq = config.rq_cq = pair->from->cq;
	nic_ok(pair->from->nic, rdma_qp_create(pair->from->rdma, &pair->qp, &config));
	config.sq_cq = config.rq_cq = pair->to->cq;
	nic_ok(pair->to->nic, rdma_qp_create(pair->to->rdma, &pair->peer, &config));
	nic_ok(pair->from->nic, rdma_qp_connect(pair->qp, pair->peer, &path));
}

static void post(struct pair *pair, uint8_t op, uint32_t size)
{
	struct rdma_send send = {.op = op,
	                         .num_sge = 1,
	                         .flags = WQE_SIGNALED,
	                         .sge = {rdma_sge(&pair->from->mr, 0, size)},
	                         .va = pair->to->mr.va,
	                         .rkey = pair->to->mr.key,
	                         .swap_add = 1};

	nic_ok(pair->from->nic, rdma_send(pair->qp, &send));
}

static enum rdma_status outcome(struct pair *pair)
{
	struct rdma_wc wc;

	do /* others share the CQ */
		nic_ok(pair->from->nic, rdma_wait(pair->from->cq, &wc));
	while (wc.qp != pair->qp);
	return wc.status;
}

static void assert_works(struct pair *pair, uint32_t seed)
{
	rdma_mr_fill(&pair->from->mr, 0, SIZE, seed);
	post(pair, OP_WRITE, SIZE);
	assert_int_equal(outcome(pair), WC_OK);
	assert_true(rdma_mr_check(&pair->to->mr, 0, SIZE, seed));
	rdma_mr_fill(&pair->to->mr, 0, SIZE, seed + 1);
	post(pair, OP_READ, SIZE);
	assert_int_equal(outcome(pair), WC_OK);
	assert_true(rdma_mr_check(&pair->from->mr, 0, SIZE, seed + 1));
}

static void destroy_pair(struct pair *pair)
{
	nic_ok(pair->from->nic, rdma_qp_destroy(pair->qp));
	nic_ok(pair->to->nic, rdma_qp_destroy(pair->peer));
}

/* ---- tests ---- */

static void test_everybody(void **state)
{
	struct mesh *mesh = *state;
	struct pair pair;

	for (unsigned from = 0; from < NODES; from++)
		for (unsigned to = 0; to < NODES; to++) {
			if (from == to)
				continue;
			connect_pair(mesh, from, to, 14, &pair);
			assert_works(&pair, from * 10 + to);
			destroy_pair(&pair);
		}
}

/* A word that two nodes add to: nothing is lost or done twice. */
static void test_counter(void **state)
{
	enum { ADDS = 200 };
	struct mesh *mesh = *state;
	struct pair pairs[2];
	uint64_t sum = 0;

	for (unsigned i = 0; i < 2; i++)
		connect_pair(mesh, i, 2, 14, &pairs[i]);
	memcpy(rdma_mr_at(&mesh->node[2].mr, 0), &sum, sizeof(sum));
	for (int n = 0; n < ADDS; n++) {
		for (unsigned i = 0; i < 2; i++)
			post(&pairs[i], OP_FETCH_ADD, 8);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(outcome(&pairs[i]), WC_OK);
	}
	memcpy(&sum, rdma_mr_at(&mesh->node[2].mr, 0), sizeof(sum));
	assert_int_equal(sum, 2 * ADDS);
	destroy_pair(&pairs[0]);
	destroy_pair(&pairs[1]);
}

enum { PARTIES = 3, ROUNDS = 60, BATCH = 8, RESULTS = 4096 };

/* A party's atomics on one word of node 2. */
struct party {
	struct pair pair;
	struct history_op *ops;
	uint32_t *seed;
	uint64_t last; /* value seen */
};

static uint64_t random64(uint32_t *seed)
{
	uint64_t high = env_random(seed);

	return high << 32 | env_random(seed);
}

static struct rdma_sge result_of(const struct party *party, unsigned n)
{
	size_t offset = RESULTS * (1 + (size_t)party->ops->party) + n % BATCH * 8;

	return rdma_sge(&party->pair.from->mr, offset, 8);
}

static void post_atomic(struct party *party, unsigned n, uint64_t *clock)
{
	struct history_op *op = &party->ops[n];
	struct node *to = party->pair.to;

	op->party = party->ops->party;
	op->swap = env_random(party->seed) % 3 == 0;
	op->operand = random64(party->seed);
	op->compare = op->swap ? party->last : 0;
	op->begin = ++*clock;
	struct rdma_send send = {.wr_id = n,
	                         .op = op->swap ? OP_CMP_SWAP : OP_FETCH_ADD,
	                         .num_sge = 1,
	                         .flags = WQE_SIGNALED,
	                         .sge = {result_of(party, n)},
	                         .va = to->mr.va,
	                         .rkey = to->mr.key,
	                         .swap_add = op->operand,
	                         .compare = op->compare};

	nic_ok(party->pair.from->nic, rdma_send(party->pair.qp, &send));
}

static void finish_atomic(struct party *party, unsigned n, uint64_t *clock)
{
	struct history_op *op = &party->ops[n];
	size_t offset = result_of(party, n).va - party->pair.from->mr.va;

	assert_int_equal(outcome(&party->pair), WC_OK);
	memcpy(&op->seen, rdma_mr_at(&party->pair.from->mr, offset), sizeof(op->seen));
	op->end = ++*clock;
	party->last = op->swap && op->seen == op->compare ? op->operand : op->seen;
}

/* Atomics on one word from both sides of each connection, two of them of the mesh, and one inside
 * the word's own server: there is an order that explains all that was seen. */
static void test_atomic_history(void **state)
{
	struct mesh *mesh = *state;
	struct history_op *ops = calloc(PARTIES * ROUNDS * BATCH, sizeof(*ops));
	struct party party[PARTIES];
	uint32_t seed = env_seed();
	uint64_t clock = 0, initial = random64(&seed), last;

	assert_non_null(ops);
	memcpy(rdma_mr_at(&mesh->node[2].mr, 0), &initial, sizeof(initial));
	for (unsigned i = 0; i < PARTIES; i++) {
		party[i] = (struct party){
		        .ops = ops + i * ROUNDS * BATCH, .seed = &seed, .last = initial};
		party[i].ops->party = i;
		connect_pair(mesh, i, 2, 14, &party[i].pair);
	}
	for (unsigned n = 0; n < ROUNDS * BATCH; n += BATCH) {
		for (unsigned k = 0; k < BATCH * PARTIES; k++)
			post_atomic(&party[k % PARTIES], n + k / PARTIES, &clock);
		for (unsigned k = 0; k < BATCH * PARTIES; k++)
			finish_atomic(&party[k / BATCH], n + k % BATCH, &clock);
	}
	memcpy(&last, rdma_mr_at(&mesh->node[2].mr, 0), sizeof(last));
	const char *wrong = history_check(ops, (size_t)PARTIES * ROUNDS * BATCH, initial, last);

	if (wrong)
		fail_msg("%s", wrong);
	/* the checker notices */
	ops[5].seen ^= 1;
	assert_non_null(history_check(ops, (size_t)PARTIES * ROUNDS * BATCH, initial, last));
	for (unsigned i = 0; i < PARTIES; i++)
		destroy_pair(&party[i].pair);
	free(ops);
}

/* A worker is killed: the queue pairs that talk to it end with retry exceeded, others go on; it is
 * started again, and is reached again. */
static void test_worker_killed(void **state)
{
	struct mesh *mesh = *state;
	struct pair dying, living;

	connect_pair(mesh, 0, 2, 14, &dying);
	connect_pair(mesh, 0, 1, 14, &living);
	assert_works(&dying, 1);
	assert_works(&living, 2);
	for (int i = 0; i < 50; i++)
		post(&dying, OP_WRITE, SIZE);
	rdma_qp_free(dying.peer);
	dying.peer = NULL;
	node_kill(&mesh->node[2]);
	enum rdma_status status;

	do
		status = outcome(&dying);
	while (status == WC_OK);
	assert_int_equal(status, WC_RETRY_EXC);
	assert_works(&living, 3);
	node_start(mesh, 2);
	struct pair again;

	connect_pair(mesh, 1, 2, 14, &again);
	assert_works(&again, 4);
	destroy_pair(&again);
	destroy_pair(&living);
	nic_ok(dying.from->nic, rdma_qp_destroy(dying.qp));
}

/* The manager is killed and started again: workers that know each other go on, and everybody is
 * reached again by everybody. */
static void test_manager_killed(void **state)
{
	struct mesh *mesh = *state;
	struct pair pair, back;

	connect_pair(mesh, 1, 2, 14, &pair);
	assert_works(&pair, 1);
	node_kill(&mesh->node[0]);
	for (uint32_t i = 0; i < 20; i++)
		assert_works(&pair, 10 + i);
	node_start(mesh, 0);
	connect_pair(mesh, 2, 0, 18, &back);
	assert_works(&back, 50);
	assert_works(&pair, 60);
	destroy_pair(&pair);
	destroy_pair(&back);
}

/* A server that stands still for a second, and goes on: retries bridge it. */
static void test_standstill(void **state)
{
	struct mesh *mesh = *state;
	struct pair pair;

	connect_pair(mesh, 1, 2, 18, &pair); /* 1 s, 8 times */
	assert_works(&pair, 1);
	kill(mesh->node[2].server->pid, SIGSTOP);
	for (int i = 0; i < 20; i++)
		post(&pair, OP_FETCH_ADD, 8);
	usleep(1200 * 1000);
	kill(mesh->node[2].server->pid, SIGCONT);
	for (int i = 0; i < 20; i++)
		assert_int_equal(outcome(&pair), WC_OK);
	assert_works(&pair, 2);
	destroy_pair(&pair);
}

/* Wherever a guest says that a checksum is, at the tag that the other's card takes off, too. */
static void test_checksum_anywhere(void **state)
{
	enum { FRAME = 64, RX_MODE_EVERYTHING = 0x1f, TAG = 4 };
	struct mesh *mesh = *state;
	struct nic *from = mesh->node[1].nic, *to = mesh->node[0].nic;
	struct nic_frame *got = malloc(sizeof(*got));
	uint8_t frame[FRAME] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint32_t filter;

	assert_non_null(got);
	nic_ok(to, nic_rx_mode(to, RX_MODE_EVERYTHING));
	nic_ok(to, nic_filter_vlan(to, 0, &filter));
	memcpy(frame + 6, from->mac, sizeof(from->mac));
	for (unsigned tagged = 0; tagged < 2; tagged++)
		for (unsigned at = 0; at < 100; at++) {
			struct nic_packet packet = {.frame = frame,
			                            .size = FRAME,
			                            .csum = true,
			                            .csum_start = (uint16_t)(14 + at % 10),
			                            .csum_offset = (uint16_t)(at / 10)};

			frame[12] = tagged ? 0x81 : 0x88;
			nic_ok(from, nic_send(from, 0, &packet));
			nic_ok(to, nic_recv(to, got));
			assert_int_equal(got->status, 0);
			assert_int_equal(got->size, tagged ? FRAME - TAG : FRAME);
			assert_memory_equal(got->data, frame, 12);
		}
	free(got);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(test_everybody),         TEST(test_counter),        TEST(test_atomic_history),
	        TEST(test_worker_killed),     TEST(test_manager_killed), TEST(test_standstill),
	        TEST(test_checksum_anywhere),
	};

	return cmocka_run_group_tests_name("driver/mesh", tests, NULL, NULL);
}
