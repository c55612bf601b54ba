/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mesh: servers that reach each other over TCP.
 *
 * Theory of operation
 *
 * Goals. Two or hundreds of servers become one fabric and one Ethernet, on one host or several,
 *with nothing of the host but TCP: no TAP, no bridge, no root. Payload goes from guest memory to
 *the socket and from the socket to guest memory, a message of any size in pieces. What a guest sees
 *of errors is what it would see in one server.
 *
 * Members. One server is the manager: it has id 0, gives ids to the workers that come, and tells
 *all of them who is there and which GIDs they claim (mesh_manager.c, mesh_worker.c, mesh_member.c).
 * Workers call each other when there is something to send, and not before. The connection of a
 * worker to its manager carries both membership and messages.
 *
 * A connection (mesh_conn.c) belongs to two processes and serves all their queue pairs, in both
 * directions, and their Ethernet. States: calling, securing (TLS), greeting, proving (the secret),
 * up, dead.
 *
 *	our QP -> mesh_send.c --REQUEST, DATA--> mesh_answer.c -> its QP
 *	our QP <- mesh_send.c <-ACK, NAK, RESPONSE- mesh_answer.c <- its QP
 *	our wire -> mesh_eth.c --ETHERNET--> mesh_eth.c -> its wire
 *
 * Losses. TCP loses nothing until the connection breaks; then the queue pairs that had messages out
 * on it wait for their timeouts and try again on a new one. Their PSNs tell the other side what it
 * has seen; READs are answered again from memory, atomics from a list of old values.
 *
 * Trust. Members trust each other as far as one can lie about its own addresses; none can reach
 * memory that a queue pair's own checks do not allow, or have more of another's memory and time
 *than the limits in mesh_internal.h. Who becomes a member is a matter of secret= and tls=.
 *
 * Not done: more than one manager; relaying messages of queue pairs, as frames are.
 */
#include "fabric/mesh_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/log.h"

COUNTER(fabric_mesh_crowded, "connections closed because too many others wait to be greeted");
COUNTER(fabric_mesh_accept_refused, "connections refused because there are too many");

enum { BACKLOG = 256, ACCEPT_MAX = 16 };

static struct mesh *mesh_of(struct rdma_fabric *fabric)
{
	return container_of(fabric, struct mesh, base);
}

/* ---- what the engine calls ---- */

static enum rdma_tx op_transmit(struct rdma_fabric *fabric, struct rdma_msg *msg, size_t *budget)
{
	return mesh_transmit(mesh_of(fabric), msg, budget);
}

static void op_rewind(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	struct mesh_qp *mq = *rdma_qp_fabric_slot(qp);

	(void)fabric;
	if (mq)
		mesh_rewind(mq);
}

static void op_forget(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	struct mesh_qp *mq = *rdma_qp_fabric_slot(qp);

	(void)fabric;
	if (mq)
		mesh_qp_free(mq);
}

static void op_learn(struct rdma_fabric *fabric, struct rdma_dev *dev, const struct rdma_av *av)
{
	(void)dev;
	mesh_claim_own(mesh_of(fabric), av->sgid);
}

static void op_attach(struct rdma_fabric *fabric, struct rdma_dev *dev)
{
	local_attach(&mesh_of(fabric)->net, dev);
}

static void op_detach(struct rdma_fabric *fabric, struct rdma_dev *dev)
{
	local_detach(&mesh_of(fabric)->net, dev);
}

static void op_recv_posted(struct rdma_fabric *fabric, struct rdma_qp *qp)
{
	mesh_recv_posted(mesh_of(fabric), qp);
}

static void op_turn_ended(struct rdma_fabric *fabric)
{
	mesh_flush_all(mesh_of(fabric));
}

static const struct rdma_fabric_ops mesh_ops = {
        .name = "tcp",
        .window = MESH_WINDOW,
        .transmit = op_transmit,
        .rewind = op_rewind,
        .forget = op_forget,
        .learn = op_learn,
        .attach = op_attach,
        .detach = op_detach,
        .recv_posted = op_recv_posted,
        .turn_ended = op_turn_ended,
};

/* ---- listening ---- */

/* Those that say nothing make room: an honest peer has greeted long before it is the oldest. */
static void drop_oldest_greeting(struct mesh *mesh)
{
	struct mesh_conn *conn, *oldest = NULL;

	LIST_FOREACH(conn, &mesh->conns, entry) /* the newest comes first */
	if (conn->state < MESH_CONN_UP && !conn->called)
		oldest = conn;
	if (!oldest)
		return;
	counter_inc(&fabric_mesh_crowded);
	mesh_conn_close(oldest, NULL);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct mesh *mesh = container_of(source, struct mesh, listener);

	(void)events;
	for (int i = 0; i < ACCEPT_MAX; i++) {
		struct sockaddr_storage address;
		socklen_t size = sizeof(address);
		int fd = accept4(source->fd, (struct sockaddr *)&address, &size,
		                 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		if (mesh->conn_count >= MESH_CONNS_MAX) {
			counter_inc(&fabric_mesh_accept_refused);
			close(fd);
			continue;
		}
		if (mesh->greeting_count >= MESH_GREETING_MAX)
			drop_oldest_greeting(mesh);
		mesh_conn_accept(mesh, fd, &address);
	}
}

int mesh_listen(struct mesh *mesh, const struct sockaddr_storage *address)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(mesh->listen_address);
	int one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
	    listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&mesh->listen_address, &size) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	mesh->listener.fd = fd;
	mesh->listener.ready = listener_ready;
	int error = loop_add(mesh->loop, &mesh->listener, EPOLLIN);

	if (error)
		close(fd);
	return error;
}

void mesh_unlisten(struct mesh *mesh)
{
	if (!mesh->listener.added)
		return;
	loop_remove(mesh->loop, &mesh->listener);
	close(mesh->listener.fd);
}

/* ---- life ---- */

static void reap(struct loop_work *work)
{
	struct mesh *mesh = container_of(work, struct mesh, reap);
	struct mesh_conn *conn;

	while ((conn = LIST_FIRST(&mesh->dead))) {
		LIST_REMOVE(conn, entry);
		mesh_flows_free(&conn->outflows);
		free(conn->out);
		free(conn->in);
		free(conn);
	}
}

static void flush(struct loop_work *work)
{
	mesh_flush_all(container_of(work, struct mesh, flush));
}

static void mesh_destroy(struct rdma_fabric *fabric)
{
	struct mesh *mesh = mesh_of(fabric);
	struct mesh_read *read;

	mesh->closing = true;
	mesh_unlisten(mesh);
	mesh_worker_stop(mesh);
	while (!LIST_EMPTY(&mesh->conns))
		mesh_conn_close(LIST_FIRST(&mesh->conns), NULL);
	loop_cancel(mesh->loop, &mesh->reap);
	loop_cancel(mesh->loop, &mesh->flush);
	reap(&mesh->reap);
	mesh_member_free(mesh);
	mesh_eth_destroy(mesh);
	mesh_tls_context_destroy(mesh->tls);
	while ((read = TAILQ_FIRST(&mesh->spare_reads))) {
		TAILQ_REMOVE(&mesh->spare_reads, read, entry);
		free(read);
	}
	free(mesh);
}

static int start(struct mesh *mesh, const struct fabric_place *place, char *error, size_t size)
{
	int failed = mesh_member_init(mesh);
	struct mesh_gid *gid;

	if (failed)
		return failed;
	for (unsigned i = 0; i < place->gid_count; i++)
		mesh_claim_own(mesh, place->gids[i]);
	LIST_FOREACH(gid, &mesh->self->gids, of_node)
	gid->fixed = true;
	mesh->self->flags = place->tap ? MESH_NODE_TAP : 0;
	if (place->wire && mesh_eth_create(mesh, place->wire)) {
		snprintf(error, size, "the wire has no port left");
		return -EINVAL;
	}
	if (mesh->options.tls_cert[0])
		failed = mesh_tls_context_create(&mesh->options, &mesh->tls, error, size);
	if (!failed && mesh->options.manager)
		failed = mesh_manager_start(mesh, error, size);
	else if (!failed)
		failed = mesh_worker_start(mesh, place->mesh_wait_s, error, size);
	return failed;
}

static int mesh_create(const struct fabric_place *place, const char *text,
                       struct rdma_fabric **fabric, char *error, size_t size)
{
	struct mesh_options options;
	int failed = mesh_options_parse(text, &options, error, size);

	if (failed)
		return failed;
	struct mesh *mesh = calloc(1, sizeof(*mesh));

	if (!mesh)
		return -ENOMEM;
	mesh->base.ops = &mesh_ops;
	mesh->loop = place->loop;
	mesh->net.wire = place->wire;
	mesh->options = options;
	mesh->reap.run = reap;
	mesh->flush.run = flush;
	memcpy(mesh->mac, place->mac, sizeof(mesh->mac));
	TAILQ_INIT(&mesh->spare_reads);
	if (getrandom(&mesh->instance, sizeof(mesh->instance), 0) != sizeof(mesh->instance))
		failed = -EIO;
	if (!failed)
		failed = start(mesh, place, error, size);
	if (failed) {
		mesh_destroy(&mesh->base);
		return failed;
	}
	*fabric = &mesh->base;
	return 0;
}

const struct fabric_kind fabric_mesh = {
        .name = "tcp", .create = mesh_create, .destroy = mesh_destroy, .ops = &mesh_ops};
