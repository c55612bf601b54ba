/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One client, from its connection to its end.
 *
 * client_serve() is where everything comes together: messages that are in the buffer, one receive
 * after the other, replies that wait to be sent, and the timers that give up on a client that
 * stops in the middle of something. It never blocks, and never takes more than its budget.
 */
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "vfio/vfio_internal.h"

COUNTER(vfio_clients, "clients that connected");
COUNTER(vfio_clients_attached, "clients that agreed on a version");
COUNTER(vfio_clients_lost, "clients that were disconnected for an error of theirs");
COUNTER(vfio_budget_used, "turns that left messages for the next one");
COUNTER(vfio_output_full, "times a client's requests waited because it read no replies");
COUNTER(vfio_timeout_handshake, "clients disconnected because they did not say their version");
COUNTER(vfio_timeout_partial, "clients disconnected because they did not finish a message");
COUNTER(vfio_timeout_output, "clients disconnected because they read no replies");
COUNTER(vfio_memory_lost, "clients disconnected because their memory was truncated");

#define NS_PER_S UINT64_C(1000000000)

/* A reply that waits must not hold the client up: more than the largest one fits the socket. */
#define SEND_BUFFER (2 * VFIO_USER_MAX_MESSAGE)

/* ---- begin and end ---- */

int client_open(struct vfio_server *server, const struct transport_io *io, int fd)
{
	int size = SEND_BUFFER;
	int error;

	assert(server->state == VFIO_CLIENT_NONE);
	error = transport_open(&server->transport, io, fd);
	if (error) {
		if (fd >= 0)
			close(fd);
		return error;
	}
	counter_inc(&vfio_clients);
	server->transport.message_max = sizeof(struct vfio_user_header) +
	                                sizeof(struct vfio_user_version) + VFIO_USER_MAX_JSON;
	server->dma = (struct dma){0};
	server->state = VFIO_CLIENT_CONNECTED;
	loop_arm(server->loop, &server->handshake_timer,
	         loop_now(server->loop) + server->patience.handshake);
	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	server->client.fd = fd;
	server->interest = EPOLLIN;
	error = loop_add(server->loop, &server->client, server->interest);
	if (error)
		client_close(server, strerror(-error));
	return error;
}

void client_attached(struct vfio_server *server)
{
	assert(server->state == VFIO_CLIENT_CONNECTED);
	server->state = VFIO_CLIENT_ATTACHED;
	server->transport.message_max = VFIO_USER_MAX_MESSAGE;
	loop_disarm(server->loop, &server->handshake_timer);
	counter_inc(&vfio_clients_attached);
	log_guest("vfio: client attached");
}

/* Whether a page of guest memory was lost since it was asked last. */
static bool take_poison(struct vfio_server *server)
{
	uint64_t lost;

	return read(server->poison_fd, &lost, sizeof(lost)) == sizeof(lost);
}

void client_close(struct vfio_server *server, const char *reason)
{
	bool attached = server->state == VFIO_CLIENT_ATTACHED;

	if (server->state == VFIO_CLIENT_NONE)
		return;
	server->state = VFIO_CLIENT_NONE;
	log_guest("vfio: client disconnected: %s", reason);
	loop_remove(server->loop, &server->client);
	loop_cancel(server->loop, &server->resume);
	loop_disarm(server->loop, &server->handshake_timer);
	loop_disarm(server->loop, &server->partial_timer);
	loop_disarm(server->loop, &server->output_timer);
	transport_close(&server->transport);
	pci_irq_disconnect(&server->irq);
	if (attached)
		server_reset(server, VFIO_RESET_DISCONNECT);
	guest_mem_clear(&server->mem);
	take_poison(server); /* what this client's files did is not the next one's fault */
	if (attached)
		malloc_trim(0); /* nor is the memory that it had us use */
	server_next_client(server);
}

/* ---- service ---- */

/* Executes complete messages. Returns 0 when there are no more, 1 when there may be but it is
 * somebody else's turn, or a negative errno when the connection is of no more use. */
static int serve_buffered(struct vfio_server *server, unsigned *budget)
{
	struct transport *transport = &server->transport;
	struct message message;
	int found;

	while (!transport->error && (found = transport_peek(transport, &message)) != 0) {
		if (found < 0) {
			message_reject_size(server, &message);
			return found;
		}
		if (*budget == 0 || transport_queued(transport) >= VFIO_OUTPUT_MAX)
			return 1;
		unsigned cost = message_cost(&message);

		*budget -= cost < *budget ? cost : *budget;
		int error = message_dispatch(server, &message);

		transport_finish(transport, &message);
		if (error)
			return error;
	}
	return transport->error;
}

static int serve(struct vfio_server *server)
{
	struct transport *transport = &server->transport;
	unsigned budget = VFIO_MESSAGE_BUDGET;
	bool more = true;
	int result;

	while ((result = serve_buffered(server, &budget)) == 0 && more) {
		result = transport_receive(transport);
		if (result)
			break;
		more = !transport->drained;
	}
	if (result == 1 && budget == 0) {
		counter_inc(&vfio_budget_used);
		loop_schedule(server->loop, &server->resume);
	}
	return result == -EAGAIN ? 0 : result;
}

/* Starts or stops TIMER. One that is running is not moved while STANDING: while it waits for the
 * same thing as before. */
static void keep_timer(struct vfio_server *server, struct loop_timer *timer, bool needed,
                       bool standing, uint64_t period_ns)
{
	if (!needed)
		loop_disarm(server->loop, timer);
	else if (!timer->armed || !standing)
		loop_arm(server->loop, timer, loop_now(server->loop) + period_ns);
}

/* Sets the timers and what the socket is watched for, by what is left to do. */
static void update_waits(struct vfio_server *server, bool paused)
{
	struct transport *transport = &server->transport;
	size_t queued = transport_queued(transport);
	bool full = queued >= VFIO_OUTPUT_MAX;
	uint32_t interest = (full ? 0 : EPOLLIN) | (queued > 0 ? EPOLLOUT : 0);
	bool partial = !paused && transport_partial(transport);

	if (full && (server->interest & EPOLLIN))
		counter_inc(&vfio_output_full);
	if (interest != server->interest && server->client.added) {
		server->interest = interest;
		loop_modify(server->loop, &server->client, interest);
	}
	keep_timer(server, &server->partial_timer, partial,
	           server->partial_position == transport->position, server->patience.partial);
	server->partial_position = transport->position;
	keep_timer(server, &server->output_timer, queued > 0,
	           server->output_taken == transport->out.taken, server->patience.output);
	server->output_taken = transport->out.taken;
}

void client_serve(struct vfio_server *server)
{
	transport_flush(&server->transport);
	int result = serve(server);

	if (result == 0 || result == 1) {
		update_waits(server, result == 1);
		return;
	}
	if (result != -ENODATA)
		counter_inc(&vfio_clients_lost);
	client_close(server, result == -ENODATA ? "it closed the connection" : strerror(-result));
}

static void on_ready(struct loop_source *source, uint32_t events)
{
	struct vfio_server *server = container_of(source, struct vfio_server, client);

	/* Nothing more is read while replies wait, but an end must not be missed. */
	if ((events & (EPOLLHUP | EPOLLERR)) && !(server->interest & EPOLLIN))
		client_close(server, "it closed the connection");
	else
		client_serve(server);
}

static void on_resume(struct loop_work *work)
{
	client_serve(container_of(work, struct vfio_server, resume));
}

/* ---- patience ---- */

static void on_handshake_timer(struct loop_timer *timer)
{
	counter_inc(&vfio_timeout_handshake);
	client_close(container_of(timer, struct vfio_server, handshake_timer),
	             "it did not say its version");
}

static void on_partial_timer(struct loop_timer *timer)
{
	counter_inc(&vfio_timeout_partial);
	client_close(container_of(timer, struct vfio_server, partial_timer),
	             "it did not finish a message");
}

static void on_output_timer(struct loop_timer *timer)
{
	counter_inc(&vfio_timeout_output);
	client_close(container_of(timer, struct vfio_server, output_timer), "it reads no replies");
}

static void on_poison(struct loop_source *source, uint32_t events)
{
	struct vfio_server *server = container_of(source, struct vfio_server, poison);

	(void)events;
	if (!take_poison(server))
		return;
	counter_inc(&vfio_memory_lost);
	client_close(server, "its memory was truncated");
}

void client_init(struct vfio_server *server)
{
	server->patience = (struct vfio_patience){.handshake = 10 * NS_PER_S,
	                                          .partial = 5 * NS_PER_S,
	                                          .output = 5 * NS_PER_S,
	                                          .dma = 1 * NS_PER_S,
	                                          .dma_turn = 3 * NS_PER_S};
	server->client.ready = on_ready;
	server->resume.run = on_resume;
	server->handshake_timer.expired = on_handshake_timer;
	server->partial_timer.expired = on_partial_timer;
	server->output_timer.expired = on_output_timer;
	server->poison.ready = on_poison;
}
