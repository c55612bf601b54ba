/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A connection of the mesh: bytes in, bytes out, frames to their handlers.
 *
 * In. The socket is read in the work phase, where guest memory is in reach. Frames are handled from
 * a buffer; payload of messages that is not in the buffer yet is read straight to where it belongs,
 * and the same system call takes what follows it into the buffer. The last bytes of a message are
 * never read that way: they are copied, after all others, because software polls on them. Reading
 * never stops for anything but its budget: what has to be said in answer is kept as state, not as
 * bytes (mesh_answer.c), so two nodes cannot block each other.
 *
 * Out. Small frames are gathered and sent once a turn; payload of some size is sent from where it
 * is, behind what was gathered. What the socket does not take is copied, at most one piece, and no
 * new data is accepted until it is gone: senders wait in line, and are woken a few at a time.
 *
 * Death. A connection may be closed inside any handler; it is freed by work of its own later.
 */
#include "fabric/mesh_internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/iov.h"
#include "base/log.h"

COUNTER(fabric_mesh_bad_frame, "frames whose header makes no sense; their connection was closed");
COUNTER(fabric_mesh_violation,
        "frames that do not fit the conversation; their connection was closed");
COUNTER(fabric_mesh_lost, "connections that broke or were closed by their peer");
COUNTER(fabric_mesh_too_slow, "connections closed because their peer did not read");
COUNTER(fabric_mesh_out_full,
        "connections closed because their peer read least, and all together too little");
COUNTER(fabric_mesh_late, "connections closed because their peer did not greet in time");
COUNTER(fabric_mesh_no_memory, "connections given up for lack of memory");
COUNTER(fabric_mesh_staged, "pieces whose rest was copied, as the socket was full");

enum {
	IN_SIZE = 128 * 1024, /* the longest frame that must be there as a whole, and more */
	IN_BUDGET = 512 * 1024,
	DIRECT_MIN = 4096, /* less is cheaper to copy */
	TAIL_SIZE = 64,    /* of a message, copied last */
	GREETING_MS = 5000,
};

/* ---- life ---- */

static void conn_ready(struct loop_source *source, uint32_t events)
{
	struct mesh_conn *conn = container_of(source, struct mesh_conn, source);

	(void)events; /* reading and writing find out */
	loop_schedule(conn->mesh->loop, &conn->work);
}

static void conn_run(struct loop_work *work);

static void greeting_late(struct loop_timer *timer)
{
	struct mesh_conn *conn = container_of(timer, struct mesh_conn, deadline);

	counter_inc(&fabric_mesh_late);
	mesh_conn_close(conn, "no greeting in time");
}

static struct mesh_conn *conn_new(struct mesh *mesh, int fd, const struct sockaddr_storage *address)
{
	struct mesh_conn *conn = calloc(1, sizeof(*conn));
	int one = 1;

	if (!conn)
		return NULL;
	conn->in = malloc(IN_SIZE);
	if (!conn->in) {
		free(conn);
		return NULL;
	}
	conn->mesh = mesh;
	conn->address = *address;
	mesh_address_text(address, conn->peer_text, sizeof(conn->peer_text));
	conn->source.fd = fd;
	conn->source.ready = conn_ready;
	conn->work.run = conn_run;
	conn->deadline.expired = greeting_late;
	conn->heard_ns = conn->used_ns = loop_now(mesh->loop);
	TAILQ_INIT(&conn->waiters);
	TAILQ_INIT(&conn->acks);
	TAILQ_INIT(&conn->readers);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	LIST_INSERT_HEAD(&mesh->conns, conn, entry);
	mesh->conn_count++;
	mesh->greeting_count++;
	loop_arm(mesh->loop, &conn->deadline, conn->heard_ns + GREETING_MS * NS_PER_MS);
	return conn;
}

static void conn_watch(struct mesh_conn *conn, uint32_t events)
{
	if (conn->state == MESH_CONN_DEAD || events == conn->events)
		return;
	int error = conn->source.added ? loop_modify(conn->mesh->loop, &conn->source, events)
	                               : loop_add(conn->mesh->loop, &conn->source, events);

	conn->events = events;
	if (error)
		conn->failed = true;
}

/* TCP is there: TLS, if any, then the greeting. */
static void conn_secure(struct mesh_conn *conn)
{
	struct mesh *mesh = conn->mesh;

	conn->state = MESH_CONN_GREETING;
	if (mesh->tls) {
		conn->tls = mesh_tls_create(mesh->tls, conn->source.fd, conn->called);
		conn->state = MESH_CONN_SECURING;
	}
	conn_watch(conn, EPOLLIN);
	if (mesh->tls && !conn->tls) {
		mesh_conn_close(conn, "out of memory");
		return;
	}
	if (!mesh->tls)
		mesh_hello_send(conn);
	loop_schedule(mesh->loop, &conn->work);
}

struct mesh_conn *mesh_conn_call(struct mesh *mesh, const struct sockaddr_storage *address,
                                 struct mesh_node *node)
{
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return NULL;
	int result = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	struct mesh_conn *conn = NULL;

	if (result == 0 || errno == EINPROGRESS)
		conn = conn_new(mesh, fd, address);
	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->called = true;
	conn->node = node;
	conn->state = MESH_CONN_CALLING;
	conn_watch(conn, EPOLLOUT);
	return conn;
}

void mesh_conn_accept(struct mesh *mesh, int fd, const struct sockaddr_storage *address)
{
	struct mesh_conn *conn = conn_new(mesh, fd, address);

	if (conn)
		conn_secure(conn);
	else
		close(fd);
}

/* The buffer takes so many bytes of what all share. */
static void out_charge(struct mesh_conn *conn, size_t size)
{
	conn->mesh->out_shared += size - conn->out_shared;
	conn->out_shared = size;
}

static void settled(struct mesh_conn *conn)
{
	if (conn->state < MESH_CONN_UP)
		conn->mesh->greeting_count--;
	loop_disarm(conn->mesh->loop, &conn->deadline);
}

void mesh_conn_up(struct mesh_conn *conn)
{
	settled(conn);
	conn->state = MESH_CONN_UP;
	mesh_member_up(conn);
}

void mesh_conn_close(struct mesh_conn *conn, const char *reason)
{
	struct mesh *mesh = conn->mesh;

	if (conn->state == MESH_CONN_DEAD)
		return;
	if (reason)
		log_guest("mesh: connection %s %s ended: %s", conn->called ? "to" : "from",
		          conn->peer_text, reason);
	settled(conn);
	out_charge(conn, 0);
	conn->state = MESH_CONN_DEAD;
	loop_remove(mesh->loop, &conn->source);
	mesh_tls_destroy(conn->tls);
	conn->tls = NULL;
	close(conn->source.fd);
	loop_cancel(mesh->loop, &conn->work);
	if (conn->dirty)
		LIST_REMOVE(conn, dirty_entry);
	conn->dirty = false;
	LIST_REMOVE(conn, entry);
	LIST_INSERT_HEAD(&mesh->dead, conn, entry);
	mesh->conn_count--;
	mesh_answer_lost(conn);
	mesh_member_down(conn); /* before those that wait ask for another connection */
	mesh_send_lost(conn);
	loop_schedule(mesh->loop, &mesh->reap);
}

/* May be called from a handler that goes on with the connection: it is only marked. */
static void conn_fail(struct mesh_conn *conn, struct counter *counter)
{
	if (conn->failed || conn->state == MESH_CONN_DEAD)
		return;
	counter_inc(counter);
	out_charge(conn, 0);
	conn->failed = true;
	loop_schedule(conn->mesh->loop, &conn->work);
}

int mesh_conn_violation(struct mesh_conn *conn, const char *what)
{
	counter_inc(&fabric_mesh_violation);
	log_guest("mesh: %s sent what it may not: %s", conn->peer_text, what);
	return -EPROTO;
}

/* ---- out ---- */

static size_t out_pending(const struct mesh_conn *conn)
{
	return conn->out_end - conn->out_start;
}

/* Those whose peers read least go until MORE bytes fit into what all share. Returns whether CONN,
 * which wants them, is left. */
static bool out_make_room(struct mesh_conn *conn, size_t more)
{
	struct mesh *mesh = conn->mesh;

	while (mesh->out_shared + more > MESH_OUT_SHARED && !conn->failed) {
		struct mesh_conn *other, *largest = conn;

		LIST_FOREACH(other, &mesh->conns, entry)
		if (other->out_shared > largest->out_shared)
			largest = other;
		conn_fail(largest, &fabric_mesh_out_full);
	}
	return !conn->failed;
}

static bool out_grow(struct mesh_conn *conn, size_t size)
{
	size_t wanted = conn->out_size > 0 ? conn->out_size : 2 * MESH_OUT_SOFT;

	if (conn->out_start > 0) {
		memmove(conn->out, conn->out + conn->out_start, out_pending(conn));
		conn->out_end -= conn->out_start;
		conn->out_start = 0;
	}
	while (wanted - conn->out_end < size)
		wanted *= 2;
	if (wanted > MESH_OUT_HARD) {
		conn_fail(conn, &fabric_mesh_too_slow);
		return false;
	}
	if (wanted == conn->out_size)
		return true;
	size_t shared = wanted > MESH_OUT_KEEP ? wanted - MESH_OUT_KEEP : 0;

	if (!out_make_room(conn, shared - conn->out_shared))
		return false;
	uint8_t *out = realloc(conn->out, wanted);

	if (!out) {
		conn_fail(conn, &fabric_mesh_no_memory);
		return false;
	}
	conn->out = out;
	conn->out_size = wanted;
	out_charge(conn, shared);
	return true;
}

uint8_t *mesh_conn_reserve(struct mesh_conn *conn, size_t size)
{
	if (conn->state == MESH_CONN_DEAD || conn->failed)
		return NULL;
	if (conn->out_size - conn->out_end < size && !out_grow(conn, size))
		return NULL;
	conn->used_ns = loop_now(conn->mesh->loop);
	return conn->out + conn->out_end;
}

void mesh_conn_commit(struct mesh_conn *conn, size_t size)
{
	conn->out_end += size;
	if (conn->dirty)
		return;
	conn->dirty = true;
	LIST_INSERT_HEAD(&conn->mesh->dirty, conn, dirty_entry);
	loop_schedule(conn->mesh->loop, &conn->mesh->flush);
}

static bool is_health(const struct mesh_frame *frame)
{
	return frame->type == MESH_PING || frame->type == MESH_PONG;
}

void mesh_conn_put(struct mesh_conn *conn, struct mesh_frame frame, const void *fixed)
{
	size_t size = be32_get(frame.size);
	uint64_t used = conn->used_ns;
	uint8_t *out = mesh_conn_reserve(conn, sizeof(frame) + size);

	if (!out)
		return;
	if (is_health(&frame))
		conn->used_ns = used;
	memcpy(out, &frame, sizeof(frame));
	if (size > 0)
		memcpy(out + sizeof(frame), fixed, size);
	mesh_conn_commit(conn, sizeof(frame) + size);
}

static ssize_t conn_write(struct mesh_conn *conn, const struct iovec *iov, unsigned count)
{
	struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count};
	ssize_t sent;

	if (conn->tls) {
		sent = mesh_tls_writev(conn->tls, iov, count);
	} else {
		sent = sendmsg(conn->source.fd, &message, MSG_NOSIGNAL);
		sent = sent < 0 ? -errno : sent;
	}
	if (sent > 0)
		conn->sent += (uint64_t)sent;
	return sent;
}

static void conn_block(struct mesh_conn *conn)
{
	conn->blocked = true;
	conn_watch(conn, EPOLLIN | EPOLLOUT);
}

/* Takes what was sent off the buffer. */
static void out_take(struct mesh_conn *conn, size_t size)
{
	conn->out_start += size;
	if (conn->out_start < conn->out_end)
		return;
	conn->out_start = conn->out_end = 0;
	if (conn->out_shared == 0)
		return;
	free(conn->out); /* what a burst took is not kept */
	conn->out = NULL;
	conn->out_size = 0;
	out_charge(conn, 0);
}

void mesh_conn_flush(struct mesh_conn *conn)
{
	while (out_pending(conn) > 0 && !conn->blocked && conn->state > MESH_CONN_SECURING &&
	       conn->state != MESH_CONN_DEAD) {
		struct iovec iov = {conn->out + conn->out_start, out_pending(conn)};
		ssize_t sent = conn_write(conn, &iov, 1);

		if (sent == -EAGAIN || sent == -EINTR) {
			conn_block(conn);
		} else if (sent < 0) {
			conn_fail(conn, &fabric_mesh_lost);
			return;
		} else {
			out_take(conn, (size_t)sent);
		}
	}
}

/* Whoever is told no waits for the socket, never for a flush that nobody has planned. */
bool mesh_conn_has_room(struct mesh_conn *conn)
{
	if (out_pending(conn) >= MESH_OUT_SOFT)
		mesh_conn_flush(conn);
	return conn->state == MESH_CONN_UP && !conn->blocked && !conn->failed &&
	       out_pending(conn) < MESH_OUT_SOFT;
}

/* Copies what was not sent of HEAD and the pieces: all behind their first DONE bytes. */
static void stage(struct mesh_conn *conn, const struct iovec *iov, unsigned count, size_t done)
{
	size_t size = iov_size(iov, count) - done;
	uint8_t *out = mesh_conn_reserve(conn, size);

	if (!out)
		return;
	iov_to_buf(iov, count, done, out, size);
	mesh_conn_commit(conn, size);
}

void mesh_conn_send(struct mesh_conn *conn, const void *head, size_t head_size,
                    const struct iovec *pieces, unsigned count)
{
	struct iovec iov[NET_PORT_IOV + 2];
	size_t pending = out_pending(conn), sent = 0;

	assert(count <= NET_PORT_IOV);
	if (conn->state == MESH_CONN_DEAD || conn->failed)
		return;
	conn->used_ns = loop_now(conn->mesh->loop);
	iov[0] = (struct iovec){conn->out + conn->out_start, pending};
	iov[1] = (struct iovec){(void *)(uintptr_t)head, head_size};
	memcpy(iov + 2, pieces, count * sizeof(*pieces));
	if (!conn->blocked) {
		ssize_t result = conn_write(conn, iov, count + 2);

		/* EFAULT: memory that its owner took away; copying meets the guard for that */
		if (result < 0 && result != -EAGAIN && result != -EINTR && result != -EFAULT) {
			conn_fail(conn, &fabric_mesh_lost);
			return;
		}
		sent = result > 0 ? (size_t)result : 0;
	}
	out_take(conn, sent < pending ? sent : pending);
	sent = sent > pending ? sent - pending : 0;
	if (sent == head_size + iov_size(pieces, count))
		return;
	counter_inc(&fabric_mesh_staged);
	stage(conn, iov + 1, count + 1, sent);
	if (conn->state == MESH_CONN_UP)
		conn_block(conn);
}

void mesh_flush_all(struct mesh *mesh)
{
	struct mesh_conn *conn;

	while ((conn = LIST_FIRST(&mesh->dirty))) {
		LIST_REMOVE(conn, dirty_entry);
		conn->dirty = false;
		mesh_conn_flush(conn);
	}
}

void mesh_conn_wait(struct mesh_conn *conn, struct mesh_qp *mq)
{
	if (mq->waits)
		TAILQ_REMOVE(&mq->waits->waiters, mq, waiter);
	mq->waits = conn;
	TAILQ_INSERT_TAIL(&conn->waiters, mq, waiter);
}

/* ---- frames ---- */

static int handle_ping(struct mesh_conn *conn)
{
	mesh_conn_put(conn, mesh_frame_make(MESH_PONG, 0, 0, 0), NULL);
	return 0;
}

/* A whole frame, or for types that are streamed its header and fixed part. */
static int handle(struct mesh_conn *conn, const struct mesh_frame *frame, uint8_t *body,
                  size_t payload)
{
	const void *fixed = body;
	uint8_t *data = body + mesh_type_info(frame->type)->fixed;

	switch ((enum mesh_type)frame->type) {
	case MESH_PROOF:
		return mesh_handle_proof(conn, fixed);
	case MESH_PING:
		return handle_ping(conn);
	case MESH_PONG:
		return 0;
	case MESH_REGISTER:
		return mesh_manager_register(conn, fixed);
	case MESH_WELCOME:
		return mesh_worker_welcome(conn, fixed);
	case MESH_REFUSE:
		return mesh_worker_refuse(conn, fixed);
	case MESH_NODE:
		return mesh_worker_node(conn, fixed);
	case MESH_CLAIM:
		return mesh_handle_claim(conn, fixed);
	case MESH_UNCLAIM:
		return mesh_handle_unclaim(conn, fixed);
	case MESH_FLOW:
		return mesh_handle_flow(conn, frame, fixed);
	case MESH_REQUEST:
		return mesh_handle_request(conn, fixed);
	case MESH_DATA:
		return mesh_handle_data(conn);
	case MESH_PROBE:
		return mesh_handle_probe(conn, frame);
	case MESH_CLOSE:
		return mesh_handle_close(conn, frame);
	case MESH_ACK:
		return mesh_handle_ack(conn, frame);
	case MESH_NAK:
		return mesh_handle_nak(conn, frame, fixed);
	case MESH_RESPONSE:
		return mesh_response_begin(conn);
	case MESH_ATOMIC:
		return mesh_handle_atomic(conn, frame, fixed);
	case MESH_READY:
		return mesh_handle_ready(conn, frame);
	case MESH_DATAGRAM:
		return mesh_handle_datagram(conn, fixed, data, payload);
	case MESH_ETHERNET:
		return mesh_handle_ethernet(conn, fixed, data, payload);
	case MESH_TYPES:
		break;
	}
	return -EPROTO;
}

/* Copies payload of the current frame that is in the buffer to where it belongs. */
static int step_payload(struct mesh_conn *conn)
{
	size_t size = conn->in_end - conn->in_start;
	uint8_t *data = conn->in + conn->in_start;
	int error;

	if (size == 0)
		return 0;
	if (size > conn->body_left)
		size = conn->body_left;
	conn->body_left -= (uint32_t)size;
	conn->in_start += size;
	if (conn->frame.type == MESH_RESPONSE)
		error = mesh_response_copy(conn, data, size);
	else
		error = mesh_land_copy(conn, data, size);
	return error ? error : 1;
}

/* Handles the next frame when there is enough of it. */
static int step_frame(struct mesh_conn *conn)
{
	size_t size = conn->in_end - conn->in_start;
	uint8_t *data = conn->in + conn->in_start;
	struct mesh_frame frame;

	if (size < sizeof(frame))
		return 0;
	memcpy(&frame, data, sizeof(frame));
	if (!mesh_frame_valid(&frame) ||
	    (conn->state != MESH_CONN_UP && frame.type != MESH_PROOF)) {
		counter_inc(&fabric_mesh_bad_frame);
		return -EPROTO;
	}
	const struct mesh_type_info *info = mesh_type_info(frame.type);
	size_t payload = be32_get(frame.size) - info->fixed;
	size_t needed = sizeof(frame) + info->fixed + (info->streamed ? 0 : payload);

	if (size < needed)
		return 0;
	conn->in_start += needed;
	conn->frame = frame;
	conn->body_left = info->streamed ? (uint32_t)payload : 0;
	if (frame.type == MESH_REQUEST || frame.type == MESH_DATAGRAM)
		conn->received_messages++;
	if (!is_health(&frame))
		conn->used_ns = loop_now(conn->mesh->loop);
	int error = handle(conn, &frame, data + sizeof(frame), payload);

	return error ? error : 1;
}

static int step(struct mesh_conn *conn)
{
	if (conn->state < MESH_CONN_PROVING)
		return mesh_hello_step(conn);
	return conn->body_left > 0 ? step_payload(conn) : step_frame(conn);
}

/* ---- in ---- */

static ssize_t conn_read(struct mesh_conn *conn, const struct iovec *iov, unsigned count)
{
	if (conn->tls)
		return mesh_tls_readv(conn->tls, iov, count);
	ssize_t got = readv(conn->source.fd, iov, (int)count);

	return got < 0 ? -errno : got;
}

/* Pieces of guest memory for what comes next, or none. */
static unsigned direct_pieces(struct mesh_conn *conn, struct iovec *iov, size_t *mapped)
{
	int count = 0;

	*mapped = 0;
	if (conn->in_start != conn->in_end || conn->body_left < DIRECT_MIN + TAIL_SIZE)
		return 0;
	if (conn->frame.type == MESH_RESPONSE)
		count = mesh_response_map(conn, conn->body_left - TAIL_SIZE, iov, MESH_PIECES);
	else
		count = mesh_land_map(conn, conn->body_left - TAIL_SIZE, iov, MESH_PIECES);
	if (count <= 0)
		return 0;
	*mapped = iov_size(iov, (size_t)count);
	return (unsigned)count;
}

static int direct_moved(struct mesh_conn *conn, size_t mapped, size_t size)
{
	conn->body_left -= (uint32_t)size;
	if (conn->frame.type == MESH_RESPONSE)
		return mesh_response_moved(conn, mapped, size);
	return mesh_land_moved(conn, mapped, size);
}

/* One read. Returns the bytes, or a negative errno; *MORE: there may be more to read. */
static ssize_t receive(struct mesh_conn *conn, bool *more)
{
	struct iovec iov[MESH_PIECES + 1];
	size_t mapped;

	if (conn->in_start > 0) {
		memmove(conn->in, conn->in + conn->in_start, conn->in_end - conn->in_start);
		conn->in_end -= conn->in_start;
		conn->in_start = 0;
	}
	unsigned count = direct_pieces(conn, iov, &mapped);

	iov[count] = (struct iovec){conn->in + conn->in_end, IN_SIZE - conn->in_end};
	ssize_t got = conn_read(conn, iov, count + 1);
	size_t direct = got > 0 ? (size_t)got : 0;

	if (direct > mapped)
		direct = mapped;
	if (mapped > 0) {
		int error = direct_moved(conn, mapped, direct);

		if (error)
			return error;
	}
	if (got == -EFAULT && mapped > 0) { /* the guard for such memory is met by copying */
		iov[0] = iov[count];
		got = conn_read(conn, iov, 1);
	}
	if (got <= 0)
		return got == 0 ? -ECONNRESET : got;
	conn->in_end += (size_t)got - direct;
	*more = (size_t)got == mapped + iov[count].iov_len || conn->tls;
	return got;
}

static int run_in(struct mesh_conn *conn)
{
	size_t budget = IN_BUDGET;
	bool more = true;
	int result;

	for (;;) {
		while ((result = step(conn)) > 0)
			if (conn->state == MESH_CONN_DEAD || conn->failed)
				return 0;
		if (result < 0 || !more)
			return result;
		ssize_t got = receive(conn, &more);

		if (got == -EAGAIN || got == -EINTR)
			return 0;
		if (got < 0)
			return (int)got;
		conn->heard_ns = loop_now(conn->mesh->loop);
		conn->received += (uint64_t)got;
		if ((size_t)got >= budget) {
			loop_schedule(conn->mesh->loop, &conn->work);
			more = false;
		} else {
			budget -= (size_t)got;
		}
	}
}

/* ---- work ---- */

/* connect() has an outcome. */
static int finish_call(struct mesh_conn *conn)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (getsockopt(conn->source.fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error)
		return -error;
	conn_secure(conn);
	return 0;
}

static int finish_securing(struct mesh_conn *conn)
{
	char text[128] = "";
	uint32_t events = EPOLLIN;
	int error = mesh_tls_handshake(conn->tls, &events, text, sizeof(text));

	if (error == -EAGAIN) {
		conn_watch(conn, events);
		return 0;
	}
	if (error) {
		if (conn->manager)
			log_warn("mesh: %s: TLS failed: %s", conn->peer_text, text);
		else
			log_guest("mesh: %s: TLS failed: %s", conn->peer_text, text);
		return error;
	}
	conn->state = MESH_CONN_GREETING;
	conn_watch(conn, EPOLLIN);
	mesh_hello_send(conn);
	loop_schedule(conn->mesh->loop, &conn->work);
	return 0;
}

static void run_out(struct mesh_conn *conn)
{
	bool was_blocked = conn->blocked;

	conn->blocked = false;
	mesh_conn_flush(conn);
	if (was_blocked && !conn->blocked) {
		conn_watch(conn, EPOLLIN);
		mesh_eth_room(conn->mesh);
	}
	if (conn->state == MESH_CONN_UP) {
		mesh_answer_pump(conn);
		mesh_send_wake(conn, MESH_WAKE);
		mesh_conn_flush(conn);
	}
}

static const char *reason_text(int error)
{
	if (error == -ECONNRESET || error == -EPIPE)
		return "the peer closed it";
	if (error == -EPROTO)
		return "the peer did not follow the protocol";
	if (error == -EACCES)
		return NULL; /* has been said */
	return strerror(-error);
}

static void conn_run(struct loop_work *work)
{
	struct mesh_conn *conn = container_of(work, struct mesh_conn, work);
	int error = conn->failed ? -ECONNRESET : 0;

	if (!error && conn->state == MESH_CONN_CALLING)
		error = finish_call(conn);
	else if (!error && conn->state == MESH_CONN_SECURING)
		error = finish_securing(conn);
	else if (!error)
		error = run_in(conn);
	if (!error && conn->state != MESH_CONN_DEAD)
		run_out(conn);
	if (conn->state == MESH_CONN_DEAD || (!error && !conn->failed))
		return;
	if (error != -EPROTO && error != -EACCES && conn->state == MESH_CONN_UP)
		counter_inc(&fabric_mesh_lost);
	mesh_conn_close(conn, reason_text(error ? error : -ECONNRESET));
}
