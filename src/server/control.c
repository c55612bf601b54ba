/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The control socket: lines between its clients and the commands.
 *
 * Theory of operation
 *
 * Each client has a buffer for one line and at most one answer on its way. A client is in one of
 * these states, and control_update() makes the loop wait for what the state needs:
 *
 *	reading		no complete line, no answer	waits for input
 *	working		a complete line in the buffer	scheduled as work
 *	answering	an answer is not all sent	waits for room to send
 *
 * The work phase does one command of a client at a time and then lets everything else have its
 * turn, so that a client that sends without end slows down itself. A client that does not read its
 * answers is not read from either. A line that is too long, and the end of input behind the last
 * answer, close the connection. Nothing here blocks.
 *
 * Who may connect is decided by the permissions of the socket: its owner.
 */
#include "server/control.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/foreign.h"
#include "base/listener.h"
#include "base/loop.h"
#include "server/server.h"

COUNTER(server_control_clients, "clients of the control socket that were accepted");
COUNTER(server_control_clients_refused, "clients of the control socket beyond the limit");
COUNTER(server_control_accept_errors, "times a client of the control socket could not be accepted");
COUNTER(server_control_line_too_long, "lines of the control socket beyond the limit");

#define ACCEPT_RETRY_NS 100000000ull
#define BACKLOG         16

struct client {
	struct control *control;
	struct loop_source source;
	struct loop_work work;
	bool finished; /* no more input will come, or none is wanted */
	struct json_object *answer;
	const char *answer_text;  /* lives in answer */
	size_t answer_size, sent; /* with the newline */
	size_t used;
	char line[CONTROL_LINE_MAX];
};

struct control {
	struct server *server;
	struct loop_source listener;
	struct loop_timer accept_again;
	struct listener socket;
	struct client *clients[CONTROL_CLIENTS_MAX];
};

/* ---- one client ---- */

static void client_close(struct client *client)
{
	struct control *control = client->control;
	struct loop *loop = control->server->loop;

	loop_cancel(loop, &client->work);
	loop_remove(loop, &client->source);
	foreign_hang_up(client->source.fd);
	json_object_put(client->answer);
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (control->clients[i] == client)
			control->clients[i] = NULL;
	free(client);
}

/* Whether there is something to do a command for: a line, or the rest before the end of input. */
static bool has_line(const struct client *client)
{
	return memchr(client->line, '\n', client->used) || (client->finished && client->used > 0);
}

/* Waits for what the client's state needs, or closes it when there is nothing left to do. */
static void client_update(struct client *client)
{
	struct loop *loop = client->control->server->loop;
	uint32_t events = 0;

	if (client->answer)
		events = EPOLLOUT;
	else if (has_line(client))
		loop_schedule(loop, &client->work);
	else if (!client->finished)
		events = EPOLLIN;
	else {
		client_close(client);
		return;
	}
	loop_modify(loop, &client->source, events);
}

/* Sends what is left of the answer. Returns false when the client was closed. */
static bool client_send(struct client *client)
{
	struct iovec iov[2] = {
	        {.iov_base = (char *)(uintptr_t)client->answer_text + client->sent,
	         .iov_len = client->answer_size - 1 - client->sent},
	        {.iov_base = (char[]){'\n'}, .iov_len = 1},
	};
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = ARRAY_SIZE(iov)};
	ssize_t done = sendmsg(client->source.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (done < 0) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		client_close(client);
		return false;
	}
	client->sent += (size_t)done;
	if (client->sent == client->answer_size) {
		json_object_put(client->answer);
		client->answer = NULL;
	}
	return true;
}

static bool client_answer(struct client *client, struct json_object *answer)
{
	client->answer = answer;
	client->answer_text = json_object_to_json_string_ext(
	        answer, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	client->answer_size = strlen(client->answer_text) + 1;
	client->sent = 0;
	return client_send(client);
}

static bool is_blank(const char *line, size_t size)
{
	return strspn(line, " \t\r") >= size;
}

/* Work: does the first line of the buffer. */
static void client_work(struct loop_work *work)
{
	struct client *client = container_of(work, struct client, work);
	char *newline = memchr(client->line, '\n', client->used);
	size_t size = newline ? (size_t)(newline - client->line) : client->used;
	struct json_object *answer = NULL;

	client->line[size] =
	        '\0'; /* the newline's place, or behind the last byte, which is spare */
	if (!is_blank(client->line, size))
		answer = control_execute(client->control->server, client->line, size);
	if (newline)
		size++;
	client->used -= size;
	memmove(client->line, client->line + size, client->used);
	if (!answer || client_answer(client, answer))
		client_update(client);
}

static void client_read(struct client *client)
{
	int fds[FOREIGN_FDS_MAX];
	unsigned fd_count;
	ssize_t got = foreign_recv(client->source.fd, client->line + client->used,
	                           CONTROL_LINE_MAX - 1 - client->used, fds, &fd_count);

	for (unsigned i = 0; i < fd_count; i++) /* no command takes one */
		foreign_close(fds[i]);
	if (got < 0) {
		if (got != -EAGAIN)
			client_close(client);
		return;
	}
	client->used += (size_t)got;
	client->finished = got == 0;
	if (client->used == CONTROL_LINE_MAX - 1 && !has_line(client)) {
		counter_inc(&server_control_line_too_long);
		client->used = 0;
		client->finished = true;
		if (!client_answer(client,
		                   control_refuse("the line is too long", "send less than 64 KiB")))
			return;
	}
	client_update(client);
}

static void client_ready(struct loop_source *source, uint32_t events)
{
	struct client *client = container_of(source, struct client, source);

	if (client->answer) {
		/* With the peer gone this fails and closes. */
		if (client_send(client))
			client_update(client);
	} else if (client->work.scheduled) {
		return; /* a peer that hung up has its commands done all the same */
	} else if (events & EPOLLIN) {
		client_read(client);
	} else {
		client_close(client);
	}
}

/* ---- accepting ---- */

static int client_create(struct control *control, unsigned slot, int fd)
{
	struct client *client = calloc(1, sizeof(*client));
	int error;

	if (!client)
		return -ENOMEM;
	client->control = control;
	client->source = (struct loop_source){.ready = client_ready, .fd = fd};
	client->work.run = client_work;
	error = loop_add(control->server->loop, &client->source, EPOLLIN);
	if (error) {
		free(client);
		return error;
	}
	control->clients[slot] = client;
	counter_inc(&server_control_clients);
	return 0;
}

static void refuse_client(int fd)
{
	static const char text[] = "{\"ok\":false,\"error\":\"too many clients\","
	                           "\"remedy\":\"close one of the others\"}\n";

	counter_inc(&server_control_clients_refused);
	send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	foreign_hang_up(fd);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct control *control = container_of(source, struct control, listener);
	struct loop *loop = control->server->loop;
	unsigned slot = 0;
	int fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd < 0) {
		if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
			return;
		/* Out of descriptors or memory: the client stays in the backlog for a while. */
		counter_inc(&server_control_accept_errors);
		loop_remove(loop, source);
		loop_arm(loop, &control->accept_again, loop_now(loop) + ACCEPT_RETRY_NS);
		return;
	}
	while (slot < CONTROL_CLIENTS_MAX && control->clients[slot])
		slot++;
	if (slot == CONTROL_CLIENTS_MAX)
		refuse_client(fd);
	else if (client_create(control, slot, fd))
		close(fd);
}

static void accept_again(struct loop_timer *timer)
{
	struct control *control = container_of(timer, struct control, accept_again);
	struct loop *loop = control->server->loop;

	if (loop_add(loop, &control->listener, EPOLLIN))
		loop_arm(loop, timer, loop_now(loop) + ACCEPT_RETRY_NS);
}

/* ---- life ---- */

int control_create(struct server *server, const char *path, struct control **out,
                   struct error_text *error)
{
	struct control *control = calloc(1, sizeof(*control));
	int failed;

	if (!control)
		return error_set(error, -ENOMEM, "--control %s: out of memory", path);
	control->server = server;
	control->accept_again.expired = accept_again;
	control->listener.ready = listener_ready;
	control->listener.fd = -1;
	failed = listener_open(&control->socket, path, 0600, BACKLOG);
	if (!failed) {
		control->listener.fd = control->socket.fd;
		failed = loop_add(server->loop, &control->listener, EPOLLIN);
	}
	if (failed) {
		control_destroy(control);
		return server_refuse_socket("control", path, failed, error);
	}
	*out = control;
	return 0;
}

void control_destroy(struct control *control)
{
	if (!control)
		return;
	for (unsigned i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (control->clients[i])
			client_close(control->clients[i]);
	loop_disarm(control->server->loop, &control->accept_again);
	loop_remove(control->server->loop, &control->listener);
	listener_close(&control->socket);
	free(control);
}
