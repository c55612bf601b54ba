/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory that is reached by messages: chunks, what may come in between, and clients that do
 * not answer as they should (spec vfio-user 4.10 and 12, rows 22, 26 and 37).
 *
 * The device's work asks for memory and would wait for the client, which is this same thread. So
 * the place where the server waits is replaced: there the client gets its turn.
 */
#include "base/bytes.h"
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

#define BASE UINT64_C(0x80000000)
#define SIZE UINT64_C(0x100000)
#define MS   UINT64_C(1000000)

static struct rig *rig;
static struct guest_mem *mem;
static struct transport_io io; /* the socket's, with a wait of ours */
static uint8_t guest[SIZE];    /* the client's memory at BASE */

/* What the client does when the server waits. */
static void (*client)(void);
static unsigned waits, requests;
static size_t largest;

/* The request that the client has taken. */
static struct vfio_user_header request;
static struct vfio_user_dma dma;
static uint8_t data[VFIO_DMA_CHUNK + sizeof(struct vfio_user_dma)];

static int test_wait(struct transport *transport, bool output, uint64_t deadline_ns)
{
	(void)transport;
	(void)output;
	(void)deadline_ns;
	waits++;
	if (!client)
		return -ETIMEDOUT;
	client();
	return 0;
}

/* Takes a DMA request if there is one. */
static bool take_request(void)
{
	static uint8_t body[sizeof(data)];
	int size = rig_receive(rig, &request, body, sizeof(body));

	if (size < 0)
		return false;
	assert_true(size >= (int)sizeof(dma));
	assert_int_equal(request.flags, VFIO_USER_TYPE_COMMAND);
	memcpy(&dma, body, sizeof(dma));
	memcpy(data, body + sizeof(dma), (size_t)size - sizeof(dma));
	assert_true(dma.count > 0);
	assert_true(dma.address >= BASE && dma.address - BASE <= SIZE - dma.count);
	assert_int_equal((size_t)size - sizeof(dma),
	                 request.command == VFIO_USER_DMA_WRITE ? dma.count : 0);
	requests++;
	if (dma.count > largest)
		largest = dma.count;
	return true;
}

static void answer(uint32_t flags, uint32_t error, const void *body, size_t size)
{
	uint8_t *buf = malloc(sizeof(request) + size);
	struct vfio_user_header header = {.id = request.id,
	                                  .command = request.command,
	                                  .size = (uint32_t)(sizeof(header) + size),
	                                  .flags = VFIO_USER_TYPE_REPLY | flags,
	                                  .error = error};

	assert_non_null(buf);
	memcpy(buf, &header, sizeof(header));
	if (size > 0)
		memcpy(buf + sizeof(header), body, size);
	rig_send_raw(rig, buf, sizeof(header) + size, NULL, 0);
	free(buf);
}

/* Answers as the protocol says; a client of the other kind puts the data 4 bytes early. */
static void answer_dma(bool shifted)
{
	static uint8_t body[sizeof(dma) + VFIO_DMA_CHUNK];
	size_t early = shifted ? 4 : 0;

	memset(body, 0, sizeof(body));
	memcpy(body, &dma, sizeof(dma));
	if (request.command == VFIO_USER_DMA_READ) {
		memcpy(body + sizeof(dma) - early, guest + (dma.address - BASE), dma.count);
		answer(0, 0, body, sizeof(dma) + dma.count);
		return;
	}
	uint32_t high = (uint32_t)(dma.count >> 32);

	if (shifted && dma.count >= 4) {
		memcpy(guest + (dma.address - BASE), &high, 4);
		memcpy(guest + (dma.address - BASE) + 4, data, dma.count - 4);
	} else if (shifted) {
		memcpy(guest + (dma.address - BASE), &high, dma.count);
	} else {
		memcpy(guest + (dma.address - BASE), data, dma.count);
	}
	answer(0, 0, body, shifted ? 0 : sizeof(dma));
}

/* A large answer takes the server more than one receive, and so more than one wait. */
static void client_good(void)
{
	if (take_request())
		answer_dma(false);
}

static void client_shifted(void)
{
	assert_true(take_request());
	answer_dma(true);
}

/* Replaces the wait of the server's transport, once the client is there. */
static void hook(void)
{
	io = transport_socket_io;
	io.wait = test_wait;
	rig->server->transport.io = &io;
}

static void attach(void)
{
	rig_version(rig);
	hook();
	mem = vfio_server_guest_mem(rig->server);
	assert_int_equal(rig_map(rig, BASE, SIZE, 3, -1, 0), 0);
	rig_enable(rig);
}

static int setup(void **state)
{
	rig_setup_silent(state);
	rig = *state;
	for (size_t i = 0; i < SIZE; i++)
		guest[i] = (uint8_t)(i * 7 + i / 256 + 1);
	client = client_good;
	waits = requests = 0;
	largest = 0;
	attach();
	return 0;
}

static int teardown(void **state)
{
	client = NULL;
	return rig_teardown(state);
}

static void moves_data_in_chunks(void **state)
{
	static uint8_t copy[SIZE];
	uint8_t word[8] = {1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	assert_int_equal(guest_mem_read(mem, BASE, copy, SIZE), 0);
	assert_memory_equal(copy, guest, SIZE);
	/* and one to find out where the client puts its data */
	assert_int_equal(requests, SIZE / VFIO_DMA_CHUNK + 1);
	assert_int_equal(largest, VFIO_DMA_CHUNK);
	for (size_t i = 0; i < SIZE; i++)
		copy[i] = (uint8_t)(i * 3 + i / 512);
	assert_int_equal(guest_mem_write(mem, BASE, copy, SIZE), 0);
	assert_memory_equal(copy, guest, SIZE);
	assert_int_equal(guest_mem_read(mem, BASE + SIZE - 1, copy, 1), 0);
	assert_int_equal(copy[0], guest[SIZE - 1]);
	assert_int_equal(guest_mem_post(mem, BASE + 64, word, sizeof(word)), 0);
	assert_memory_equal(guest + 64, word, sizeof(word));
	assert_int_equal(guest_mem_read(mem, BASE + SIZE - 1, copy, 2), -EFAULT);
	struct iovec iov;

	assert_int_equal(guest_mem_map(mem, BASE, 8, GUEST_READ, &iov, 1), -ENOTSUP);
	rig_expect_silence(rig);
}

static void crosses_from_a_file_to_messages(void **state)
{
	int memory = rig_memfd(4096);
	uint8_t text[8] = "abcdefg", got[8];

	(void)state;
	assert_int_equal(rig_map(rig, BASE - 4096, 4096, 3, memory, 0), 0);
	assert_int_equal(guest_mem_write(mem, BASE - 4, text, 8), 0);
	assert_memory_equal(guest, "efg", 4);
	assert_int_equal(guest_mem_read(mem, BASE - 4, got, 8), 0);
	assert_memory_equal(got, text, 8);
	assert_int_equal(guest_mem_post(mem, BASE - 8, data, 16), 0);
	close(memory);
}

/* What the client announced is not exceeded, however small. */
static void keeps_to_the_clients_limit(void **state)
{
	uint8_t got[64], version[4 + 64] = {0};
	struct vfio_user_header header;
	uint8_t body[256];

	(void)state;
	rig_pair(rig, NULL);
	strcpy((char *)version + 4, "{\"capabilities\":{\"max_data_xfer_size\":8}}");
	rig_send(rig, VFIO_USER_VERSION, 0, version, 4 + strlen((char *)version + 4) + 1);
	rig_turn(rig);
	assert_true(rig_receive(rig, &header, body, sizeof(body)) > 0);
	hook();
	mem = vfio_server_guest_mem(rig->server);
	assert_int_equal(rig_map(rig, BASE, SIZE, 3, -1, 0), 0);
	rig_enable(rig);
	assert_int_equal(guest_mem_read(mem, BASE, got, sizeof(got)), 0);
	assert_memory_equal(got, guest, sizeof(got));
	assert_int_equal(largest, 8);
}

static void client_refuses(void)
{
	assert_true(take_request());
	answer(VFIO_USER_ERROR, ENODEV, NULL, 0);
}

static void fails_when_the_client_refuses(void **state)
{
	uint8_t byte;

	(void)state;
	client = client_refuses;
	EXPECT_COUNT("vfio_dma_refused",
	             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
	EXPECT_COUNT("vfio_dma_refused",
	             assert_int_equal(guest_mem_write(mem, BASE, &byte, 1), -EIO));
	client = client_good;
	assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), 0);
	assert_int_equal(byte, guest[0]);
}

/* ---- what comes in between ---- */

static void client_busy(void)
{
	struct vfio_user_region_access access = {.offset = 0x20, .region = 0, .count = 8};
	static struct vfio_user_header header;
	static uint8_t body[64];
	static int step;

	switch (step++ % 3) {
	case 0: /* QEMU holds its lock: an answer to this before anything else */
		assert_true(take_request());
		rig_post(rig, 0, 0x20, 0xabcdef, 8);
		rig_send(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
		break;
	case 1:
		assert_int_equal(rig_receive(rig, &header, body, sizeof(body)), 24);
		assert_int_equal(header.command, VFIO_USER_REGION_READ);
		access.region = VFIO_USER_CONFIG;
		access.offset = 0;
		access.count = 4;
		rig_send(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
		break;
	default:
		assert_int_equal(rig_receive(rig, &header, body, sizeof(body)), 20);
		assert_memory_equal(body + 16, "\xd8\x1d\x02\x10", 4);
		answer_dma(false);
		break;
	}
}

static void serves_registers_while_it_waits(void **state)
{
	uint8_t got[16];
	uint64_t value;

	(void)state;
	rig->server->dma.layout = DMA_LAYOUT_RIGHT;
	client = client_busy;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(guest_mem_read(mem, BASE + i, got, sizeof(got)), 0);
		assert_memory_equal(got, guest + i, sizeof(got));
	}
	memcpy(&value, rig->bar0 + 0x20, 8);
	assert_int_equal(value, 0xabcdef);
}

static void client_takes_the_blame(void)
{
	struct vfio_user_header header;

	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.command, 200);
	assert_int_equal(header.error, EINVAL);
	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.command, VFIO_USER_DMA_WRITE);
	assert_int_equal(header.error, EINVAL);
	answer_dma(false);
}

/* A command that does not exist, and a reply to nothing. */
static void client_confused(void)
{
	assert_true(take_request());
	rig_send(rig, 200, 0, NULL, 0);
	rig_send(rig, VFIO_USER_DMA_WRITE, VFIO_USER_TYPE_REPLY, NULL, 0);
	client = client_takes_the_blame;
}

static void refuses_nonsense_while_it_waits(void **state)
{
	uint8_t got[16];

	(void)state;
	rig->server->dma.layout = DMA_LAYOUT_RIGHT;
	client = client_confused;
	assert_int_equal(guest_mem_read(mem, BASE, got, sizeof(got)), 0);
	assert_memory_equal(got, guest, sizeof(got));
}

/* A vector is connected, as it is when a guest moves it to another CPU. */
static int event;

static void client_connected(void)
{
	struct vfio_user_header header;

	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.command, VFIO_USER_SET_IRQS);
	assert_int_equal(header.error, 0);
	answer_dma(false);
}

static void client_connects(void)
{
	struct vfio_user_set_irqs irqs = {
	        .argsz = 20, .flags = 0x24, .index = 2, .start = 3, .count = 1};

	assert_true(take_request());
	rig_send_fds(rig, VFIO_USER_SET_IRQS, &irqs, sizeof(irqs), &event, 1);
	client = client_connected;
}

static void connects_vectors_while_it_waits(void **state)
{
	uint8_t got[16];

	(void)state;
	rig->server->dma.layout = DMA_LAYOUT_RIGHT;
	event = eventfd(0, EFD_NONBLOCK);
	pci_irq_raise(vfio_server_pci_irq(rig->server), 3);
	client = client_connects;
	assert_int_equal(guest_mem_read(mem, BASE, got, sizeof(got)), 0);
	assert_memory_equal(got, guest, sizeof(got));
	assert_int_equal(rig_signals(event), 1);
	close(event);
}

/* A request that comes first: sent instead of an answer. */
static uint16_t urgent_command;
static uint8_t urgent_body[64];
static size_t urgent_size;

static void client_urgent(void)
{
	assert_true(take_request());
	rig->on_work = NULL;          /* once is enough */
	rig_post(rig, 0, 0x28, 1, 8); /* this one can be served */
	rig_send(rig, urgent_command, 0, urgent_body, urgent_size);
}

static void work_reads(struct rig *self)
{
	uint8_t got[16];

	self->result = guest_mem_read(mem, BASE, got, sizeof(got));
	if (self->result == -EIO) { /* the one that must come first has not been served yet */
		assert_int_equal(mem->regions.count, 1);
		assert_int_equal(self->resets[VFIO_RESET_DEVICE], 0);
		assert_int_equal(self->resets[VFIO_RESET_FUNCTION], 0);
		/* and does not get in the way of more of the same */
		assert_int_equal(guest_mem_read(mem, BASE, got, sizeof(got)), -EIO);
	}
}

static void expect_urgent(uint16_t command, const void *body, size_t size)
{
	struct vfio_user_header header;
	uint64_t before = rig_counter("vfio_dma_aborted"), late = rig_counter("vfio_dma_late");
	uint8_t reply[64], byte;

	urgent_command = command;
	urgent_size = size;
	if (size > 0)
		memcpy(urgent_body, body, size);
	client = client_urgent;
	rig->on_work = work_reads;
	rig->result = 1;
	rig_post(rig, 0, 0, 1, 8);
	rig_turn(rig);
	rig->on_work = NULL;
	assert_int_equal(rig->result, -EIO);
	/* the two reads of the work; the second was not even sent */
	assert_int_equal(rig_counter("vfio_dma_aborted"), before + 2);
	/* it was served after the work */
	assert_true(rig_receive(rig, &header, reply, sizeof(reply)) >= 0);
	assert_int_equal(header.command, command);
	/* the answer comes when nobody waits any more: it is known, and dropped */
	answer_dma(false);
	rig_expect_silence(rig);
	assert_int_equal(rig_counter("vfio_dma_late"), late + 1);
	/* all is well again */
	client = client_good;
	if (mem->regions.count == 0)
		assert_int_equal(rig_map(rig, BASE, SIZE, 3, -1, 0), 0);
	rig_enable(rig);
	assert_int_equal(guest_mem_read(mem, BASE + 5, &byte, 1), 0);
	assert_int_equal(byte, guest[5]);
	memset(rig->resets, 0, sizeof(rig->resets));
}

/* Row 22: an unmapping, a reset and whatever else must be answered soon end the wait at once. */
static void gives_up_when_the_client_needs_an_answer(void **state)
{
	struct vfio_user_dma_unmap unmap = {.argsz = 24, .address = BASE, .size = SIZE};
	struct vfio_user_dma_map map = {.argsz = 32, .flags = 3, .size = 4096};
	struct {
		struct vfio_user_region_access access;
		uint32_t value;
	} flr = {{.offset = RIG_DEVCTL, .region = 7, .count = 2}, 0x8000};
	struct {
		uint64_t count;
		struct vfio_user_multi_entry entry;
	} multi = {1, {.offset = RIG_DEVCTL, .region = 7, .count = 2, .data = {0, 0x80}}};

	(void)state;
	rig->server->dma.layout = DMA_LAYOUT_RIGHT;
	expect_urgent(VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap));
	expect_urgent(VFIO_USER_RESET, NULL, 0);
	expect_urgent(VFIO_USER_DMA_MAP, &map, sizeof(map));
	assert_int_equal(rig_unmap(rig, 0, 4096), 0);
	expect_urgent(VFIO_USER_REGION_WRITE, &flr, 18);
	expect_urgent(VFIO_USER_REGION_WRITE_MULTI, &multi, sizeof(multi));
}

static void client_leaves(void)
{
	assert_true(take_request());
	close(rig->fd);
	rig->fd = -1;
}

static void client_breaks(void)
{
	assert_true(take_request());
	rig_send_raw(rig, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, NULL, 0);
}

/* The device's work ends before the client does. */
static void ends_the_client_after_the_work(void **state)
{
	(void)state;
	rig->server->dma.layout = DMA_LAYOUT_RIGHT;
	client = client_leaves;
	rig->on_work = work_reads;
	rig_post(rig, 0, 0, 1, 8);
	rig_turn(rig);
	assert_int_equal(rig->result, -EIO);
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 1);
	assert_false(vfio_server_attached(rig->server));
	rig->on_work = NULL;
	rig_pair(rig, NULL);
	attach();
	rig->server->dma.layout = DMA_LAYOUT_RIGHT;
	client = client_breaks;
	rig->on_work = work_reads;
	rig_post(rig, 0, 0, 1, 8);
	EXPECT_COUNT("vfio_bad_size", rig_turn(rig));
	assert_int_equal(rig->result, -EIO);
	assert_false(vfio_server_attached(rig->server));
	rig->on_work = NULL;
}

/* ---- clients that do not answer as they should ---- */

static unsigned mistake;

static void client_wrong(void)
{
	uint8_t body[64] = {0};
	struct vfio_user_dma wrong;

	assert_true(take_request());
	wrong = dma;
	if (mistake == 0) /* too little, too much */
		answer(0, 0, body, 15);
	else if (mistake == 1)
		answer(0, 0, body, sizeof(dma) + dma.count + 1);
	else if (mistake == 2)
		answer(0, 0, body, 0);
	else if (mistake == 3)
		wrong.address++;
	else
		wrong.count++;
	if (mistake >= 3) {
		memcpy(body, &wrong, sizeof(wrong));
		answer(0, 0, body,
		       sizeof(dma) + (request.command == VFIO_USER_DMA_READ ? dma.count : 0));
	}
}

/* Row 37. */
static void ends_a_client_whose_answers_do_not_fit(void **state)
{
	uint8_t bytes[8] = {0};

	(void)state;
	for (unsigned write = 0; write < 2; write++)
		for (mistake = 0; mistake < 5; mistake++) {
			if (write && mistake == 2)
				continue; /* an answer without a body is right for a write */
			rig->server->dma.layout = DMA_LAYOUT_RIGHT;
			client = client_wrong;
			EXPECT_COUNT("vfio_dma_malformed",
			             assert_int_equal(write ? guest_mem_write(mem, BASE, bytes, 8)
			                                    : guest_mem_read(mem, BASE, bytes, 8),
			                              -EIO));
			client = client_good;
			rig_expect_closed(rig);
			rig_pair(rig, NULL);
			attach();
		}
}

/* A reply with another id or command is a reply to nothing. */
static void ignores_answers_to_nothing(void **state)
{
	struct vfio_user_header header;

	(void)state;
	request = (struct vfio_user_header){.id = 0, .command = VFIO_USER_DMA_READ};
	EXPECT_COUNT("vfio_unsolicited", {
		answer(0, 0, data, 16);
		rig_turn(rig);
	});
	assert_int_equal(rig_receive(rig, &header, NULL, 0), 0);
	assert_int_equal(header.error, EINVAL);
	assert_true(vfio_server_attached(rig->server));
}

/* One time-out, and no more until the client has answered. */
static void does_not_wait_for_a_dead_client_twice(void **state)
{
	uint8_t byte;

	(void)state;
	client = NULL;
	EXPECT_COUNT("vfio_dma_timeouts",
	             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
	assert_int_equal(waits, 1);
	for (unsigned i = 0; i < 100; i++)
		EXPECT_COUNT("vfio_dma_unanswered",
		             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
	assert_int_equal(waits, 1);
	assert_true(take_request());
	answer_dma(false);
	EXPECT_COUNT("vfio_dma_late", rig_turn(rig));
	client = client_good;
	assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), 0);
}

/* The real wait, for a moment. */
static void waits_no_longer_than_it_should(void **state)
{
	uint8_t byte;

	(void)state;
	io.wait = transport_socket_io.wait;
	rig->server->patience.dma = 10 * MS;
	EXPECT_COUNT("vfio_dma_timeouts",
	             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
}

/* Never answers, and never stops asking. */
static void client_posts(void)
{
	rig_post(rig, 2, 0, 1, 8);
}

static void client_trickles(void)
{
	static const struct vfio_user_header large = {.command = VFIO_USER_REGION_WRITE,
	                                              .size = VFIO_USER_MAX_TRANSFER};
	static unsigned sent;

	if (sent < sizeof(large))
		rig_send_raw(rig, (const uint8_t *)&large + sent, 1, NULL, 0);
	else
		rig_send_raw(rig, "", 1, NULL, 0);
	sent++;
}

static void waits_no_longer_for_who_asks_on(void **state)
{
	static void (*const endless[])(void) = {client_posts, client_trickles};
	uint8_t byte;

	(void)state;
	rig->server->patience.dma = 10 * MS;
	for (size_t i = 0; i < ARRAY_SIZE(endless); i++) {
		rig->server->dma = (struct dma){0};
		client = endless[i];
		EXPECT_COUNT("vfio_dma_timeouts",
		             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
	}
}

static void client_slow(void)
{
	usleep(3000);
	client_good();
}

/* Row 34: answers that come late, but in time, do not add up without end. */
static void waits_no_longer_in_a_turn(void **state)
{
	unsigned good = 0;
	uint8_t byte;

	(void)state;
	client = client_slow;
	rig->server->patience.dma_turn = 10 * MS;
	EXPECT_COUNT("vfio_dma_turn_used", while (guest_mem_read(mem, BASE, &byte, 1) == 0) good++);
	assert_in_range(good, 0, 4);
	assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO);
	loop_turn(rig->loop, 0);
	client = client_good;
	assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), 0);
}

/* Takes none of the replies to what it asks. */
static void client_hoards(void)
{
	const struct vfio_user_region_access access = {.region = 2,
	                                               .count = VFIO_USER_MAX_TRANSFER};

	rig_send(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
}

static void does_not_wait_while_replies_pile_up(void **state)
{
	size_t most = VFIO_OUTPUT_MAX + VFIO_USER_MAX_TRANSFER + 4096;
	uint8_t byte;

	(void)state;
	client = client_hoards;
	EXPECT_COUNT("vfio_dma_aborted",
	             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
	assert_in_range(transport_queued(&rig->server->transport), VFIO_OUTPUT_MAX, most);
	/* nor does it ask again before they are gone */
	unsigned before = waits;

	EXPECT_COUNT("vfio_dma_aborted",
	             assert_int_equal(guest_mem_read(mem, BASE, &byte, 1), -EIO));
	assert_int_equal(waits, before);
}

static void on_write_reads(struct rig *self)
{
	uint8_t byte;

	self->result = guest_mem_read(mem, BASE, &byte, 1);
}

/* A device that asks from a register function would make the client wait for itself. */
static void refuses_to_wait_in_a_register_function(void **state)
{
	(void)state;
	rig->on_write = on_write_reads;
	EXPECT_COUNT("vfio_dma_misplaced", {
		rig_post(rig, 0, 0, 1, 8);
		rig_turn(rig);
	});
	assert_int_equal(rig->result, -EIO);
	assert_int_equal(requests, 0);
	rig->on_write = NULL;
}

/* ---- QEMU before 11 ---- */

static void expect_shifted(int result)
{
	uint8_t bytes[64];
	unsigned before;

	assert_int_equal(result, -EIO);
	assert_int_equal(rig->server->dma.layout, DMA_LAYOUT_SHIFTED);
	before = requests;
	assert_int_equal(guest_mem_read(mem, BASE, bytes, 8), -EIO);
	assert_int_equal(guest_mem_write(mem, BASE, bytes, 8), -EIO);
	assert_int_equal(requests, before);
}

static void never_believes_a_client_that_misplaces_data(void **state)
{
	static uint8_t saved[SIZE];
	uint8_t bytes[64];

	(void)state;
	for (unsigned zeros = 0; zeros <= 64; zeros++)
		for (size_t size = 1; size <= 64; size = size * 2 + (size == 4)) {
			/* something that is not zero, somewhere */
			memset(guest, 0, zeros);
			memset(guest + zeros, 0x5a, 128);
			memcpy(saved, guest, SIZE);
			rig->server->dma = (struct dma){0};
			client = client_shifted;
			memset(bytes, 0xff, sizeof(bytes));
			int error = guest_mem_read(mem, BASE, bytes, size);

			if (error == 0)
				assert_memory_equal(bytes, guest, size);
			else
				expect_shifted(error);
			/* to write is to be sure */
			rig->server->dma = (struct dma){0};
			memset(bytes, 0xc3, sizeof(bytes));
			expect_shifted(guest_mem_write(mem, BASE, bytes, size));
			assert_memory_equal(guest, saved, SIZE);
			/* a good client is believed */
			rig->server->dma = (struct dma){0};
			client = client_good;
			assert_int_equal(guest_mem_read(mem, BASE, bytes, size), 0);
			assert_memory_equal(bytes, guest, size);
			assert_int_equal(guest_mem_write(mem, BASE + 300, bytes, size), 0);
			assert_memory_equal(bytes, guest + 300, size);
			assert_int_equal(rig->server->dma.layout, DMA_LAYOUT_RIGHT);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(moves_data_in_chunks),
	        TEST(crosses_from_a_file_to_messages),
	        TEST(keeps_to_the_clients_limit),
	        TEST(fails_when_the_client_refuses),
	        TEST(serves_registers_while_it_waits),
	        TEST(refuses_nonsense_while_it_waits),
	        TEST(connects_vectors_while_it_waits),
	        TEST(gives_up_when_the_client_needs_an_answer),
	        TEST(ends_the_client_after_the_work),
	        TEST(ends_a_client_whose_answers_do_not_fit),
	        TEST(ignores_answers_to_nothing),
	        TEST(does_not_wait_for_a_dead_client_twice),
	        TEST(waits_no_longer_than_it_should),
	        TEST(waits_no_longer_for_who_asks_on),
	        TEST(waits_no_longer_in_a_turn),
	        TEST(does_not_wait_while_replies_pile_up),
	        TEST(refuses_to_wait_in_a_register_function),
	        TEST(never_believes_a_client_that_misplaces_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
