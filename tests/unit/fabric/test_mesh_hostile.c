/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Peers that do what they may not: only they suffer, and each refusal moves its counter. */
#include <errno.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/counter.h"
#include "mesh_rig.h"
#include "net/pcap.h"

#define PD  1
#define ALL 0x1f

/* A mesh of two, with traffic between them, and what an intruder needs. */
struct scene {
	struct loop *loop;
	uint16_t port;
	struct node *a, *b;
	struct test_qp *qa, *qb;
	struct test_mr here, there;
};

static int setup(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	scene->loop = rig_loop();
	scene->port = rig_port();
	scene->a = node_manager(scene->loop, scene->port, 1);
	scene->b = node_worker(scene->loop, scene->port, 2);
	rig_wait_nodes(scene->b, 2);
	scene->qa = qp_new(scene->a->nic, RDMA_QP_RC, PD);
	scene->qb = qp_new(scene->b->nic, RDMA_QP_RC, PD);
	rig_connect(scene->qa, scene->qb);
	scene->here = mr_new(scene->a->nic, PD, 0x1000, 200000, ALL);
	scene->there = mr_new(scene->b->nic, PD, 0x2000, 200000, ALL);
	*state = scene;
	return 0;
}

/* The two still reach each other, and nobody's data has changed. */
static void assert_unharmed(struct scene *scene)
{
	struct rdma_wr wr = wr_rdma(RDMA_WRITE, sge_of(&scene->here, 0, 200000), scene->there.va,
	                            scene->there.key);

	mr_fill(&scene->here, 7);
	mr_fill(&scene->there, 8);
	qp_post_send(scene->qa, &wr);
	qp_expect_send(scene->qa, RDMA_OK);
	for (size_t i = 0; i < 200000; i += 999)
		assert_int_equal(*mr_byte(&scene->here, i), *mr_byte(&scene->there, i));
}

static int teardown(void **state)
{
	struct scene *scene = *state;

	mr_free(&scene->here);
	mr_free(&scene->there);
	qp_free(scene->qa);
	qp_free(scene->qb);
	node_free(scene->b);
	node_free(scene->a);
	loop_destroy(scene->loop);
	free(scene);
	return 0;
}

static uint64_t count(const char *name)
{
	const struct counter *counter = counter_find(name);

	assert_non_null(counter);
	return counter_get(counter);
}

/* ---- the intruder ---- */

static int dial(struct scene *scene)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons(scene->port),
	                              .sin_addr.s_addr = htonl(0x7f000001)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	assert_true(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
	            errno == EINPROGRESS);
	rig_pass(scene->loop, 2);
	return fd;
}

static void put(struct scene *scene, int fd, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	while (size > 0) {
		ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return; /* closed meanwhile */
		if (sent > 0) {
			bytes += sent;
			size -= (size_t)sent;
		}
		loop_turn(scene->loop, 0);
	}
	rig_pass(scene->loop, 2);
}

static void put_frame(struct scene *scene, int fd, struct mesh_frame frame, const void *fixed,
                      size_t size)
{
	uint8_t bytes[70000] = {0};

	memcpy(bytes, &frame, sizeof(frame));
	if (fixed)
		memcpy(bytes + sizeof(frame), fixed, size);
	put(scene, fd, bytes, sizeof(frame) + size);
}

static void greet(struct scene *scene, int fd)
{
	struct mesh_hello hello;

	mesh_hello_init(&hello);
	hello.node = hello.peer = be32_make(MESH_NODE_NONE);
	hello.instance = be64_make((uint64_t)fd * 12345);
	put(scene, fd, &hello, sizeof(hello));
}

static void enroll(struct scene *scene, int fd)
{
	struct mesh_register request = {.wanted = be32_make(MESH_NODE_NONE),
	                                .port = be16_make(9),
	                                .mac = {2, 7, 7, 7, 7, (uint8_t)fd}};

	greet(scene, fd);
	put_frame(scene, fd, mesh_frame_make(MESH_REGISTER, sizeof(request), 0, 0), &request,
	          sizeof(request));
}

/* Whether the server has closed the connection, after whatever it had to say. */
static bool is_closed(struct scene *scene, int fd)
{
	uint8_t bytes[4096];

	for (int i = 0; i < 200; i++) {
		ssize_t got = recv(fd, bytes, sizeof(bytes), 0);

		if (got == 0 || (got < 0 && errno != EAGAIN))
			return true;
		if (got < 0)
			rig_pass(scene->loop, 1);
	}
	return false;
}

#define ASSERT_COUNTS(name, what)                                                                  \
	do {                                                                                       \
		uint64_t before_ = count(name);                                                    \
		what;                                                                              \
		assert_true(count(name) > before_);                                                \
	} while (0)

/* ---- tests ---- */

static void not_a_node(void **state)
{
	struct scene *scene = *state;
	int fd = dial(scene);

	ASSERT_COUNTS("fabric_mesh_not_mesh", put(scene, fd, "GET / HTTP/1.1\r\n\r\n", 18));
	assert_true(is_closed(scene, fd));
	close(fd);
	assert_unharmed(scene);
}

static void other_version(void **state)
{
	struct scene *scene = *state;
	struct mesh_hello hello, answer;
	int fd = dial(scene);

	mesh_hello_init(&hello);
	hello.version = be16_make(MESH_VERSION + 1);
	hello.size = be16_make(999);
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_true(mesh_hello_recognized(&answer)); /* so that it can say which version we are */
	ASSERT_COUNTS("fabric_mesh_other_version", put(scene, fd, &hello, MESH_HELLO_FIXED));
	assert_true(is_closed(scene, fd));
	close(fd);
}

/* Many connections that say nothing do not keep others out. */
static void silent_crowd(void **state)
{
	struct scene *scene = *state;
	int fds[3 * MESH_GREETING_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial(scene);
		if (i % 2)
			put(scene, fds[i], "ERN", 3);
	}
	assert_true(scene->a->mesh->greeting_count <= MESH_GREETING_MAX);
	struct node *c = node_worker(scene->loop, scene->port, 3);

	rig_wait_nodes(c, 3);
	node_free(c);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	RIG_WAIT(scene->loop, scene->a->mesh->greeting_count == 0);
	assert_unharmed(scene);
}

/* Half a greeting, and then nothing: closed in time. */
static void half_greeting(void **state)
{
	struct scene *scene = *state;
	int fd = dial(scene);

	put(scene, fd, "ERNICmsh", 8);
	RIG_WAIT(scene->loop, scene->a->mesh->greeting_count == 0);
	assert_true(is_closed(scene, fd));
	close(fd);
	assert_unharmed(scene);
}

static void bad_frames(void **state)
{
	struct scene *scene = *state;

	for (unsigned type = 0; type < MESH_TYPES + 3; type++) {
		const struct mesh_type_info *info = mesh_type_info(type);
		uint32_t sizes[] = {info && info->fixed ? info->fixed - 1u : UINT32_MAX,
		                    info ? info->fixed + info->payload_max + 1 : 0, UINT32_MAX};

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			int fd = dial(scene);

			enroll(scene, fd);
			struct mesh_frame frame = mesh_frame_make(MESH_PING, sizes[i], 1, 2);

			frame.type = (uint8_t)type;
			ASSERT_COUNTS("fabric_mesh_bad_frame",
			              put_frame(scene, fd, frame, NULL, 0));
			assert_true(is_closed(scene, fd));
			close(fd);
		}
	}
	assert_unharmed(scene);
}

/* Frames whose form is right and that may not come from this peer, or now. */
static void out_of_place(void **state)
{
	struct scene *scene = *state;
	struct mesh_register again = {.wanted = be32_make(MESH_NODE_NONE)};
	struct mesh_claim claim = {.node = be32_make(scene->b->mesh->id), .gid = {1, 2, 3}};
	struct mesh_node_info info = {.node = be32_make(1), .state = MESH_NODE_LIVE};
	struct mesh_welcome welcome = {be32_make(5), be32_make(1000)};
	struct mesh_refuse refuse = {be32_make(MESH_REASON_ID)};
	struct mesh_flow flow = {.transport = RDMA_QP_UD};
	struct mesh_nak nak = {.verdict = RDMA_VERDICT_OK};
	struct mesh_proof proof = {{0}};
	struct mesh_datagram datagram = {.address.size = 200};
	uint8_t frame[sizeof(struct mesh_ethernet) + 60] = {0};
	const struct {
		enum mesh_type type;
		const void *fixed;
		size_t size;
	} cases[] = {
	        {MESH_REGISTER, &again, sizeof(again)},
	        {MESH_CLAIM, &claim, sizeof(claim)},
	        {MESH_NODE, &info, sizeof(info)},
	        {MESH_WELCOME, &welcome, sizeof(welcome)},
	        {MESH_REFUSE, &refuse, sizeof(refuse)},
	        {MESH_FLOW, &flow, sizeof(flow)},
	        {MESH_NAK, &nak, sizeof(nak)},
	        {MESH_PROOF, &proof, sizeof(proof)},
	        {MESH_DATAGRAM, &datagram, sizeof(datagram)},
	        {MESH_ETHERNET, frame, sizeof(frame)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = dial(scene);

		enroll(scene, fd);
		ASSERT_COUNTS("fabric_mesh_violation",
		              put_frame(scene, fd,
		                        mesh_frame_make(cases[i].type, cases[i].size, 1, 2),
		                        cases[i].fixed, cases[i].size));
		assert_true(is_closed(scene, fd));
		close(fd);
	}
	assert_unharmed(scene);
}

/* An intruder with a flow to somebody's queue pair: its address, PSN and keys are checked, and
 * lengths that do not fit end the connection. */
static void foreign_flow(void **state)
{
	struct scene *scene = *state;
	struct mesh_flow flow = {.src_qpn = be32_make(scene->qb->qpn),
	                         .dst_qpn = be32_make(scene->qa->qpn),
	                         .transport = RDMA_QP_RC};
	struct rdma_request req = {.opcode = RDMA_WRITE, .packets = 1, .length = 100};
	struct mesh_request wire;
	uint8_t body[sizeof(wire) + 100] = {0};
	int fd = dial(scene);

	req.va = scene->here.va;
	req.rkey = scene->here.key;
	mesh_request_put(&wire, &req);
	memcpy(body, &wire, sizeof(wire));
	/* from a third address to the manager's guest */
	struct nic stranger = {.mac = {2, 7, 7, 7, 7, 7}, .ip = 99};

	flow.address.size =
	        (uint8_t)nic_template(&stranger, scene->a->nic, 4, false, flow.address.header);
	enroll(scene, fd);
	mr_fill(&scene->here, 1);
	put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), 7, 0), &flow, sizeof(flow));
	ASSERT_COUNTS("rdma_rx_bad_peer",
	              put_frame(scene, fd, mesh_frame_make(MESH_REQUEST, sizeof(body), 7, 5), body,
	                        sizeof(body)));
	/* a flow of that number is there already */
	ASSERT_COUNTS("fabric_mesh_violation",
	              put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), 7, 0), &flow,
	                        sizeof(flow)));
	assert_true(is_closed(scene, fd));
	close(fd);
	/* more payload than the message has, at once and later */
	for (int later = 0; later < 2; later++) {
		fd = dial(scene);
		enroll(scene, fd);
		put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), 7, 0), &flow,
		          sizeof(flow));
		req.length = later ? 100 : 99;
		mesh_request_put(&wire, &req);
		memcpy(body, &wire, sizeof(wire));
		put_frame(scene, fd, mesh_frame_make(MESH_REQUEST, sizeof(body), 7, 5), body,
		          sizeof(body));
		if (later)
			put_frame(scene, fd, mesh_frame_make(MESH_DATA, 1, 7, 5), body, 1);
		assert_true(is_closed(scene, fd));
		close(fd);
	}
	assert_unharmed(scene);
}

static void flow_to(struct scene *scene, int fd, uint32_t id, enum rdma_qp_type transport)
{
	struct mesh_flow flow = {.src_qpn = be32_make(scene->qb->qpn),
	                         .dst_qpn = be32_make(scene->qa->qpn),
	                         .transport = (uint8_t)transport};

	flow.address.size =
	        (uint8_t)nic_template(scene->b->nic, scene->a->nic, 4, false, flow.address.header);
	put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), id, 0), &flow, sizeof(flow));
}

/* Requests that no packet could be, as their transport has not got them: a capture of what peers
 * send goes on without them. */
static void strange_requests_captured(void **state)
{
	struct scene *scene = *state;
	char path[] = "/tmp/ernic-capture-XXXXXX";
	struct net_pcap *pcap;
	struct mesh_request wire;
	int file = mkstemp(path), fd = dial(scene);

	assert_true(file >= 0);
	close(file);
	assert_int_equal(net_pcap_open(scene->loop, path, &pcap), 0);
	net_wire_capture(scene->a->wire, pcap, true);
	enroll(scene, fd);
	for (uint32_t transport = RDMA_QP_RC; transport <= RDMA_QP_UC; transport++) {
		flow_to(scene, fd, transport, transport);
		for (unsigned opcode = 0; opcode < RDMA_OPCODES; opcode++) {
			/* nothing of it is in order but its form: it is dropped */
			struct rdma_request req = {
			        .opcode = (uint8_t)opcode, .packets = 1, .length = 8};

			mesh_request_put(&wire, &req);
			put_frame(scene, fd,
			          mesh_frame_make(MESH_REQUEST, sizeof(wire), transport, 0x800000),
			          &wire, sizeof(wire));
		}
	}
	assert_true(count("net_pcap_frames") > 0);
	assert_int_equal(rig_live(scene->a), 3);
	close(fd);
	net_wire_capture(scene->a->wire, NULL, false);
	net_pcap_close(pcap);
	unlink(path);
	assert_unharmed(scene);
}

/* The old value that the last answer to an atomic on FD brought, of all that has come. */
static uint64_t atomic_answer(struct scene *scene, int fd)
{
	uint8_t bytes[4096];
	uint64_t value = UINT64_MAX;
	size_t size = 0;

	for (int i = 0; i < 20 && size < sizeof(bytes); i++) {
		ssize_t got = recv(fd, bytes + size, sizeof(bytes) - size, 0);

		size += got > 0 ? (size_t)got : 0;
		rig_pass(scene->loop, 1);
	}
	for (size_t at = 0; at + sizeof(struct mesh_frame) <= size;) {
		struct mesh_frame frame;
		struct mesh_atomic atomic;

		memcpy(&frame, bytes + at, sizeof(frame));
		at += sizeof(frame);
		if (frame.type == MESH_ATOMIC) {
			memcpy(&atomic, bytes + at, sizeof(atomic));
			value = be64_get(atomic.value);
		}
		at += be32_get(frame.size);
	}
	return value;
}

/* An atomic that is asked again gets its own old value, not that of one whose PSN was the same a
 * round of PSNs before. */
static void same_number_again(void **state)
{
	struct scene *scene = *state;
	struct mesh_flow flow = {.src_qpn = be32_make(scene->qb->qpn),
	                         .dst_qpn = be32_make(scene->qa->qpn),
	                         .transport = RDMA_QP_RC};
	struct rdma_request req = {.opcode = RDMA_FETCH_ADD,
	                           .packets = 1,
	                           .length = 8,
	                           .va = scene->here.va,
	                           .rkey = scene->here.key,
	                           .swap_add = 5};
	struct rdma_qp_attr attr = *rdma_qp_attributes(scene->qa->qp);
	struct mesh_frame frame =
	        mesh_frame_make(MESH_REQUEST, sizeof(struct mesh_request), 7, attr.rq_psn);
	static const uint64_t answers[] = {100, 105, 105};
	struct mesh_request wire;
	uint8_t greeting[sizeof(struct mesh_hello)];
	int fd = dial(scene);

	mr_set(&scene->here, 0, &(uint64_t){100}, 8);
	mesh_request_put(&wire, &req);
	flow.address.size =
	        (uint8_t)nic_template(scene->b->nic, scene->a->nic, 4, false, flow.address.header);
	greet(scene, fd);
	assert_int_equal(recv(fd, greeting, sizeof(greeting), 0), sizeof(greeting));
	put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), 7, 0), &flow, sizeof(flow));
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (i == 1) /* the round is over */
			assert_int_equal(rdma_qp_modify(scene->qa->qp, RDMA_ATTR_RQ_PSN, &attr), 0);
		put_frame(scene, fd, frame, &wire, sizeof(wire));
		assert_int_equal(atomic_answer(scene, fd), answers[i]);
	}
	close(fd);
}

/* Flows of all peers together have a bound; those that are there go on. */
static void many_flows(void **state)
{
	struct scene *scene = *state;
	struct mesh *mesh = scene->a->mesh;
	struct mesh_flow flow = {.transport = RDMA_QP_RC};

	flow.address.size =
	        (uint8_t)nic_template(scene->b->nic, scene->a->nic, 4, false, flow.address.header);
	assert_unharmed(scene); /* has a flow now, where it needs one */
	uint32_t others = mesh->inflow_count;
	int fd = dial(scene);

	greet(scene, fd);
	mesh->inflow_count = MESH_INFLOWS_MAX - 1;
	put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), 1, 0), &flow, sizeof(flow));
	assert_int_equal(mesh->inflow_count, MESH_INFLOWS_MAX);
	ASSERT_COUNTS("fabric_mesh_rx_flows_full",
	              put_frame(scene, fd, mesh_frame_make(MESH_FLOW, sizeof(flow), 2, 0), &flow,
	                        sizeof(flow)));
	assert_int_equal(mesh->inflow_count, MESH_INFLOWS_MAX);
	assert_unharmed(scene);
	mesh->inflow_count = others + 1;
	close(fd);
	RIG_WAIT(scene->loop, mesh->inflow_count == others);
}

/* Answers to questions that nobody asked are no harm. */
static void answers_to_nothing(void **state)
{
	static const enum mesh_type types[] = {MESH_ACK, MESH_READY, MESH_CLOSE, MESH_PROBE};
	struct scene *scene = *state;
	int fd = dial(scene);
	uint8_t bytes[5000] = {0};

	enroll(scene, fd);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		for (uint32_t flow = 0; flow < 40; flow++)
			put_frame(scene, fd, mesh_frame_make(types[i], 0, flow << 15 | flow, 77),
			          NULL, 0);
	put_frame(scene, fd, mesh_frame_make(MESH_RESPONSE, 5000, 1, 7), bytes, 5000);
	put_frame(scene, fd, mesh_frame_make(MESH_DATA, 5000, 1, 7), bytes, 5000);
	put_frame(scene, fd, mesh_frame_make(MESH_REQUEST, sizeof(struct mesh_request) + 100, 1, 7),
	          bytes, sizeof(struct mesh_request) + 100);
	assert_false(is_closed(scene, fd));
	close(fd);
	assert_unharmed(scene);
}

/* One that asks and never reads is cut off; memory stays within its bound. */
static void never_reads(void **state)
{
	struct scene *scene = *state;
	int fd = dial(scene), small = 4096;
	struct mesh_frame pings[512];

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	enroll(scene, fd);
	for (size_t i = 0; i < ARRAY_SIZE(pings); i++)
		pings[i] = mesh_frame_make(MESH_PING, 0, 0, 0);
	uint64_t before = count("fabric_mesh_too_slow");

	for (int i = 0; i < 4000 && count("fabric_mesh_too_slow") == before; i++)
		put(scene, fd, pings, sizeof(pings));
	assert_true(count("fabric_mesh_too_slow") > before);
	close(fd);
	assert_unharmed(scene);
}

/* Many that do not read, each within its own bound: together they have one too. */
static void many_never_read(void **state)
{
	enum { CROWD = 40, HEAP = 3 << 20 };
	struct scene *scene = *state;
	struct mesh *mesh = scene->a->mesh;
	struct mesh_conn *conn;
	int fd[CROWD], small = 4096;
	uint64_t before = count("fabric_mesh_out_full");

	for (int i = 0; i < CROWD; i++) {
		fd[i] = dial(scene);
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		greet(scene, fd[i]);
	}
	RIG_WAIT(scene->loop, mesh->conn_count == CROWD + 1 && mesh->greeting_count == 0);
	LIST_FOREACH(conn, &mesh->conns, entry)
	{
		if (conn->node) /* the one of ours */
			continue;
		uint8_t *out = mesh_conn_reserve(conn, HEAP);

		assert_non_null(out); /* another goes, which has more */
		memset(out, 0, HEAP);
		mesh_conn_commit(conn, HEAP);
		assert_true(mesh->out_shared <= MESH_OUT_SHARED);
	}
	assert_true(mesh->out_shared > MESH_OUT_SHARED / 2);
	assert_true(count("fabric_mesh_out_full") > before);
	assert_unharmed(scene);
	assert_true(mesh->conn_count < CROWD);
	for (int i = 0; i < CROWD; i++)
		close(fd[i]);
	RIG_WAIT(scene->loop, mesh->conn_count == 1);
	assert_int_equal(mesh->out_shared, 0);
	assert_unharmed(scene);
}

/* Registrations without end: the list of nodes has its bound, and lets the next one in. */
static void crowd_of_nodes(void **state)
{
	struct scene *scene = *state;

	for (int i = 0; i < MESH_NODES_MAX + 50; i++) {
		int fd = dial(scene);

		enroll(scene, fd);
		close(fd);
	}
	assert_true(scene->a->mesh->node_count <= MESH_NODES_MAX);
	struct node *c = node_worker(scene->loop, scene->port, 3);

	RIG_WAIT(scene->loop, c->mesh->registered);
	node_free(c);
	assert_unharmed(scene);
}

static void many_gids(void **state)
{
	struct scene *scene = *state;
	int fd = dial(scene);

	enroll(scene, fd);
	RIG_WAIT(scene->loop, rig_live(scene->a) == 3);
	uint64_t before = count("fabric_mesh_gid_too_many");

	for (uint32_t i = 1; i < MESH_GIDS_MAX + 100; i++) {
		struct mesh_claim claim = {.node = be32_make(2),
		                           .gid = {0x20, 1, [15] = (uint8_t)i}};

		claim.gid[14] = (uint8_t)(i >> 8);
		put_frame(scene, fd, mesh_frame_make(MESH_CLAIM, sizeof(claim), 0, 0), &claim,
		          sizeof(claim));
	}
	assert_true(count("fabric_mesh_gid_too_many") > before);
	close(fd);
	assert_unharmed(scene);
}

/* One that claims a GID and withdraws it without end is cut off, as the manager tells all others of
 * every change; one that only has much to say is not. */
static void fickle_claims(void **state)
{
	struct scene *scene = *state;
	struct {
		struct mesh_frame frame;
		struct mesh_claim claim;
	} changes[2 * MESH_GIDS_MAX];
	int fd = dial(scene);

	enroll(scene, fd);
	RIG_WAIT(scene->loop, rig_live(scene->a) == 3);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		changes[i].frame = mesh_frame_make(i % 2 ? MESH_UNCLAIM : MESH_CLAIM,
		                                   sizeof(changes[i].claim), 0, 0);
		changes[i].claim = (struct mesh_claim){.node = be32_make(2), .gid = {0x20, 1}};
	}
	put(scene, fd, changes, sizeof(changes));
	assert_int_equal(rig_live(scene->a), 3);
	uint64_t before = count("fabric_mesh_violation");

	for (int i = 0; i < 100 && rig_live(scene->a) == 3; i++)
		put(scene, fd, changes, sizeof(changes));
	assert_true(count("fabric_mesh_violation") > before);
	assert_true(is_closed(scene, fd));
	close(fd);
	assert_unharmed(scene);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(not_a_node),    TEST(other_version),
	        TEST(silent_crowd),  TEST(half_greeting),
	        TEST(bad_frames),    TEST(out_of_place),
	        TEST(foreign_flow),  TEST(answers_to_nothing),
	        TEST(never_reads),   TEST(crowd_of_nodes),
	        TEST(many_gids),     TEST(same_number_again),
	        TEST(many_flows),    TEST(many_never_read),
	        TEST(fickle_claims), TEST(strange_requests_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
