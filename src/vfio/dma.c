/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory by messages, for ranges that the client did not pass as a file (spec
 * vfio-user 4.10).
 *
 * A message is sent and its reply awaited right here, in the middle of the device's work, for
 * vfio_patience.dma at most. A client may have asked something of us at that moment, and QEMU
 * answers nothing before it has its own reply. So the stream is served meanwhile, in order: region
 * accesses and questions are executed (the device's register functions run inside its work;
 * guest_mem.h says so), and so are changes of eventfds, which every guest makes while its first
 * interrupts arrive. Anything that takes memory or state away ends the wait at once: the access
 * fails with -EIO, the request stays where it is, and the loop executes it when the device's work
 * has returned. So does a client that does not take its replies.
 *
 * A reply that comes after its request was given up is recognised by its id, and dropped. After one
 * that ran out of time nothing is asked any more until the client has answered it.
 *
 * One turn of the loop may ask many times. Slow answers, each of them in time, are not to keep the
 * rest of the program waiting: all that one turn waits is vfio_patience.dma_turn at most.
 *
 * A client is only asked for ranges that it declared as reachable by messages, so one that cannot
 * answer (cloud-hypervisor, SPDK: they pass files only) never gets such a message.
 *
 * QEMU 10.1 to 10.2 put the data 4 bytes too early, over the upper half of `count`. They would
 * corrupt guest memory, so this is found out before anything is believed or written, and such a
 * client is not asked again.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "vfio/vfio_internal.h"

/* Time for every byte on top of vfio_patience.dma: 1 MB/s is what a working client beats easily. */
#define NS_PER_BYTE UINT64_C(1000)

COUNTER(vfio_dma_reads, "DMA_READ messages sent");
COUNTER(vfio_dma_writes, "DMA_WRITE messages sent");
COUNTER(vfio_dma_refused, "DMA messages that the client answered with an error");
COUNTER(vfio_dma_aborted, "DMA messages given up because the client asked for something first");
COUNTER(vfio_dma_timeouts, "DMA messages that the client did not answer in time");
COUNTER(vfio_dma_turn_used, "accesses refused because their turn has waited long enough");
COUNTER(vfio_dma_late, "replies to DMA messages that had been given up");
COUNTER(vfio_dma_malformed, "replies to DMA messages that do not fit their request");
COUNTER(vfio_dma_shifted, "clients that misplace the data of DMA messages; not asked again");
COUNTER(vfio_dma_unanswered, "accesses refused because the client owes answers");
COUNTER(vfio_dma_misplaced, "accesses refused because they were made from a register function");

static uint64_t clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- replies ---- */

static bool take_late(struct dma *dma, const struct message *message)
{
	for (unsigned i = 0; i < dma->late_count; i++) {
		if (dma->late[i].id != message->header.id ||
		    dma->late[i].command != message->header.command)
			continue;
		dma->late_count--;
		memmove(&dma->late[i], &dma->late[i + 1],
		        (dma->late_count - i) * sizeof(dma->late[0]));
		dma->unresponsive = false;
		counter_inc(&vfio_dma_late);
		return true;
	}
	return false;
}

/* Checks and takes the reply to the current request. Returns what the request comes to, or -EPROTO
 * when the reply does not fit. */
static int take_current(struct dma *dma, const struct message *message)
{
	const struct dma_request *request = &dma->current;
	bool read = request->command == VFIO_USER_DMA_READ;
	struct vfio_user_dma body;

	if (message->header.flags & VFIO_USER_ERROR) {
		counter_inc(&vfio_dma_refused);
		return -EIO;
	}
	if (!read && message->body_size == 0) {
		/* Only the clients that misplace data answer so. */
		dma->layout = dma->layout == DMA_LAYOUT_UNKNOWN ? DMA_LAYOUT_SHIFTED : dma->layout;
		return dma->layout == DMA_LAYOUT_SHIFTED ? -EIO : 0;
	}
	if (message->body_size != sizeof(body) + (read ? request->count : 0))
		return -EPROTO;
	memcpy(&body, message->body, sizeof(body));
	if (body.address != request->address || (uint32_t)body.count != request->count)
		return -EPROTO;
	if (body.count != request->count) {
		if (!read)
			return -EPROTO;
		dma->layout = DMA_LAYOUT_SHIFTED;
		return -EIO;
	}
	if (read)
		memcpy(request->buf, message->body + sizeof(body), request->count);
	else
		dma->layout = DMA_LAYOUT_RIGHT;
	return 0;
}

int dma_take_reply(struct vfio_server *server, const struct message *message)
{
	struct dma *dma = &server->dma;

	if (!dma->waiting || dma->current.id != message->header.id ||
	    dma->current.command != message->header.command)
		return take_late(dma, message) ? 0 : -ENOENT;
	dma->result = take_current(dma, message);
	dma->waiting = false;
	if (dma->result != -EPROTO)
		return 0;
	counter_inc(&vfio_dma_malformed);
	return -EPROTO;
}

/* ---- one message and its reply ---- */

/* Whether something is next in the stream that cannot be served inside the device's work, or
 * nothing can be as its replies would pile up. */
static bool must_return(struct transport *transport, struct message *message, int *found)
{
	*found = transport_peek(transport, message);
	return transport->error || transport_queued(transport) >= VFIO_OUTPUT_MAX || *found < 0 ||
	       (*found > 0 && !message_nestable(message));
}

/* Serves what has arrived until the reply is among it. Returns 0, and dma->waiting tells whether
 * it was, -ECANCELED when something comes first that cannot wait, or -ETIMEDOUT. */
static int serve_nested(struct vfio_server *server, uint64_t deadline_ns)
{
	struct transport *transport = &server->transport;
	struct message message;
	int found;

	while (server->dma.waiting) {
		if (must_return(transport, &message, &found))
			return -ECANCELED;
		if (found == 0)
			break;
		int error = message_dispatch(server, &message);

		transport_finish(transport, &message);
		if (error && !transport->error)
			transport->error = error;
		if (server->dma.waiting && clock_now() >= deadline_ns)
			return -ETIMEDOUT; /* what comes first has no end */
	}
	return transport->error ? -ECANCELED : 0;
}

/* Waits for the reply. Returns 0 when it has come, -ETIMEDOUT, or -ECANCELED. */
static int await_reply(struct vfio_server *server, uint64_t deadline_ns)
{
	struct transport *transport = &server->transport;

	for (;;) {
		int error = serve_nested(server, deadline_ns);

		if (error || !server->dma.waiting)
			return error;
		if (clock_now() >= deadline_ns) /* bytes come, and no message */
			return -ETIMEDOUT;
		error = transport->io->wait(transport, transport_queued(transport) > 0,
		                            deadline_ns);
		if (error == -ETIMEDOUT)
			return error;
		transport_flush(transport);
		if (!error)
			error = transport_receive(transport);
		if (error && error != -EAGAIN && !transport->error)
			transport->error = error;
	}
}

/* What is left to do when the reply did not come. */
static void give_up(struct vfio_server *server, int why)
{
	struct dma *dma = &server->dma;

	dma->waiting = false;
	dma->late[dma->late_count++] = dma->current;
	if (why == -ETIMEDOUT) {
		counter_inc(&vfio_dma_timeouts);
		dma->unresponsive = true;
	} else {
		counter_inc(&vfio_dma_aborted);
	}
}

static void send_request(struct vfio_server *server, const struct dma_request *request)
{
	bool write = request->command == VFIO_USER_DMA_WRITE;
	struct vfio_user_dma body = {.address = request->address, .count = request->count};
	struct vfio_user_header header = {.id = request->id,
	                                  .command = request->command,
	                                  .size = (uint32_t)(sizeof(header) + sizeof(body)) +
	                                          (write ? request->count : 0)};
	struct iovec iov[3] = {{.iov_base = &header, .iov_len = sizeof(header)},
	                       {.iov_base = &body, .iov_len = sizeof(body)},
	                       {.iov_base = request->buf, .iov_len = request->count}};

	counter_inc(write ? &vfio_dma_writes : &vfio_dma_reads);
	transport_send(&server->transport, iov, write ? 3 : 2);
}

/* await_reply() within what the turn has left. */
static int await_within_turn(struct vfio_server *server, uint64_t deadline_ns)
{
	struct dma *dma = &server->dma;
	uint64_t begin = clock_now();

	if (deadline_ns > begin && deadline_ns - begin > dma->left_ns)
		deadline_ns = begin + dma->left_ns;
	int error = await_reply(server, deadline_ns);
	uint64_t spent = clock_now() - begin;

	dma->left_ns -= spent < dma->left_ns ? spent : dma->left_ns;
	return error;
}

/* Sends one message and takes its reply. Returns 0 or -EIO. */
static int exchange(struct vfio_server *server, enum guest_access access, uint64_t addr, void *buf,
                    uint32_t count, uint64_t deadline_ns)
{
	struct dma *dma = &server->dma;
	struct message next;
	int found;

	if (dma->turn != loop_now(server->loop)) {
		dma->turn = loop_now(server->loop);
		dma->left_ns = server->patience.dma_turn;
	}
	if (dma->left_ns == 0) {
		counter_inc(&vfio_dma_turn_used);
		return -EIO;
	}
	if (dma->unresponsive || dma->late_count == VFIO_DMA_LATE_MAX) {
		counter_inc(&vfio_dma_unanswered);
		return -EIO;
	}
	if (must_return(&server->transport, &next, &found)) {
		counter_inc(&vfio_dma_aborted);
		return -EIO;
	}
	dma->current = (struct dma_request){.id = dma->next_id++,
	                                    .command = access == GUEST_READ ? VFIO_USER_DMA_READ
	                                                                    : VFIO_USER_DMA_WRITE,
	                                    .address = addr,
	                                    .count = count,
	                                    .buf = buf};
	dma->waiting = true;
	send_request(server, &dma->current);
	int error = await_within_turn(server, deadline_ns);

	if (error)
		give_up(server, error);
	/* Whatever made the wait end early, or came behind the reply, is the loop's to serve. */
	if (error || transport_partial(&server->transport) || transport_queued(&server->transport))
		loop_schedule(server->loop, &server->resume);
	return error || dma->result ? -EIO : 0;
}

/* ---- where the client puts the data ---- */

/*
 * After a read whose reply looks right: a client that misplaces data would have put the first 4
 * bytes, zeros, elsewhere, and what is at I here would be at I + 4 in memory. Read from there: such
 * a client shows itself by what is not zero. Nothing but zeros tells nothing, and is right anyway.
 */
static int settle_by_read(struct vfio_server *server, uint64_t addr, const uint8_t *data,
                          uint32_t count, uint64_t deadline_ns)
{
	uint8_t probe[4];
	uint32_t i = 0;

	while (i < count && data[i] == 0)
		i++;
	if (i == count)
		return 0;
	if (count - i > 4) {
		uint32_t size = count - i - 4 < 4 ? count - i - 4 : 4;
		int error = exchange(server, GUEST_READ, addr + i + 4, probe, size, deadline_ns);

		if (error)
			return error;
	}
	server->dma.layout = DMA_LAYOUT_RIGHT;
	return 0;
}

/*
 * Before the first write: read the 4 bytes that it begins at. If they are not zero, a client that
 * misplaces data shows itself; if they are, it would write zeros over them, and then shows itself
 * by its reply, which has no body.
 */
static int settle_by_write(struct vfio_server *server, uint64_t addr, uint8_t *data, uint32_t count,
                           uint64_t deadline_ns)
{
	uint8_t probe[4];
	uint32_t size = count < 4 ? count : 4;
	int error = exchange(server, GUEST_READ, addr, probe, size, deadline_ns);

	return error ? error : exchange(server, GUEST_WRITE, addr, data, size, deadline_ns);
}

static int transfer(struct vfio_server *server, enum guest_access access, uint64_t addr,
                    uint8_t *data, uint32_t count, uint64_t deadline_ns)
{
	bool unknown = server->dma.layout == DMA_LAYOUT_UNKNOWN;
	int error = 0;

	if (unknown && access == GUEST_WRITE)
		error = settle_by_write(server, addr, data, count, deadline_ns);
	if (!error)
		error = exchange(server, access, addr, data, count, deadline_ns);
	if (!error && unknown && access == GUEST_READ)
		error = settle_by_read(server, addr, data, count, deadline_ns);
	if (unknown && server->dma.layout == DMA_LAYOUT_SHIFTED) {
		counter_inc(&vfio_dma_shifted);
		log_guest("vfio: the client misplaces the data of DMA messages (QEMU before 11); "
		          "use memory-backend-memfd,share=on");
	}
	return error;
}

int dma_access(void *arg, enum guest_access access, uint64_t addr, void *buf, size_t size)
{
	struct vfio_server *server = arg;
	uint8_t *data = buf;
	uint32_t max = server->limits.max_transfer < VFIO_DMA_CHUNK ? server->limits.max_transfer
	                                                            : VFIO_DMA_CHUNK;
	uint64_t deadline_ns = clock_now() + server->patience.dma + size * NS_PER_BYTE;

	if (server->dispatching) {
		counter_inc(&vfio_dma_misplaced);
		return -EIO;
	}
	while (size > 0) {
		uint32_t count = size < max ? (uint32_t)size : max;

		if (server->dma.layout == DMA_LAYOUT_SHIFTED)
			return -EIO;
		int error = transfer(server, access, addr, data, count, deadline_ns);

		if (error)
			return error;
		addr += count;
		data += count;
		size -= count;
	}
	return 0;
}
