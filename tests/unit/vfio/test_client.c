/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clients that come and go: the socket, one after the other, the end at any point, patience
 * (spec vfio-user 7 and 12, rows 3, 33 to 36 and 44). */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit.h"

#define PAGE UINT64_C(4096)
#define MS   UINT64_C(1000000)
#define HOUR (3600 * 1000 * MS)

static char directory[64], path[200];

static void edit_path(struct vfio_server_config *config)
{
	config->socket_path = path;
	config->socket_mode = 0640;
	config->fd = -1;
}

static int setup(void **state)
{
	struct rig *rig;

	strcpy(directory, "/tmp/ernic-unit-XXXXXX");
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/socket", directory);
	rig = rig_create(edit_path);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	rig_destroy(*state);
	unlink(path);
	rmdir(directory);
	return 0;
}

static int connect_path(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void next_client(struct rig *rig)
{
	if (rig->fd >= 0)
		close(rig->fd);
	rig->fd = connect_path();
}

/* Sends a message COUNT times, in one piece, that wants no reply. */
static void send_many(struct rig *rig, unsigned count, uint16_t command, const void *body,
                      size_t body_size)
{
	static uint8_t bytes[1000 * 40];
	size_t size = 0;

	for (unsigned i = 0; i < count; i++)
		size += rig_build(rig, bytes + size, command, VFIO_USER_NO_REPLY, body, body_size);
	assert_true(size <= sizeof(bytes));
	rig_send_raw(rig, bytes, size, NULL, 0);
}

/* ---- the path ---- */

static void makes_the_socket_with_its_mode(void **state)
{
	struct rig *rig = *state;
	struct stat info;

	assert_int_equal(stat(path, &info), -1);
	assert_int_equal(vfio_server_start(rig->server), 0);
	assert_int_equal(stat(path, &info), 0);
	assert_true(S_ISSOCK(info.st_mode));
	assert_int_equal(info.st_mode & 0777, 0640);
	next_client(rig);
	rig_version(rig);
	vfio_server_destroy(rig->server);
	rig->server = NULL;
	assert_int_equal(stat(path, &info), -1);
}

/* Row 44. */
static void replaces_a_dead_servers_socket_only(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int stale = socket(AF_UNIX, SOCK_STREAM, 0);
	struct rig *other;
	FILE *file;

	strcpy(address.sun_path, path);
	assert_int_equal(bind(stale, (struct sockaddr *)&address, sizeof(address)), 0);
	close(stale);
	assert_int_equal(vfio_server_start(rig->server), 0);
	/* that one lives, idle or with a client */
	other = rig_create(edit_path);
	assert_int_equal(vfio_server_start(other->server), -EADDRINUSE);
	next_client(rig);
	rig_version(rig);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(vfio_server_start(other->server), -EADDRINUSE);
	rig_destroy(other);
	/* nor did the other one take it along */
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(rig_config_read(rig, 0, 2), 0x1dd8);
	vfio_server_destroy(rig->server);
	rig->server = NULL;
	/* what is no socket stays */
	file = fopen(path, "w");
	fclose(file);
	other = rig_create(edit_path);
	assert_int_equal(vfio_server_start(other->server), -EEXIST);
	rig_destroy(other);
	assert_int_equal(access(path, F_OK), 0);
}

static void leaves_a_path_that_is_not_its_own_any_more(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(vfio_server_start(rig->server), 0);
	unlink(path);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	vfio_server_destroy(rig->server);
	rig->server = NULL;
	assert_int_equal(access(path, F_OK), 0);
	close(fd);
}

static void refuses_paths_that_cannot_be(void **state)
{
	struct rig *rig;

	(void)state;
	snprintf(path, sizeof(path), "%s/none/socket", directory);
	rig = rig_create(edit_path);
	assert_int_equal(vfio_server_start(rig->server), -ENOENT);
	rig_destroy(rig);
	/* longer than a socket address holds */
	memset(path, 'x', sizeof(path) - 1);
	rig = rig_create(edit_path);
	assert_int_equal(vfio_server_start(rig->server), -ENAMETOOLONG);
	rig_destroy(rig);
	snprintf(path, sizeof(path), "%s/socket", directory);
}

/* ---- one client after the other ---- */

/* Row 35: others wait, and get their turn. */
static void serves_the_second_client_after_the_first(void **state)
{
	struct rig *rig = *state;
	uint64_t failed = rig_counter("vfio_accept_failed");
	int second, third;

	assert_int_equal(vfio_server_start(rig->server), 0);
	next_client(rig);
	rig_version(rig);
	second = connect_path();
	third = connect_path();
	rig_turn(rig);
	assert_int_equal(rig_config_read(rig, 0, 2), 0x1dd8);
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 0);
	close(rig->fd);
	rig->fd = second;
	rig_version(rig);
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 1);
	/* one that has given up while it waited */
	close(third);
	third = connect_path();
	close(rig->fd);
	rig->fd = third;
	rig_version(rig);
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 2);
	assert_int_equal(rig_counter("vfio_accept_failed"), failed);
}

/* Out of descriptors: no busy loop, and the client that waits is served later. */
static void accepts_later_what_it_cannot_accept_now(void **state)
{
	struct rig *rig = *state;
	struct rlimit limit, low;

	assert_int_equal(vfio_server_start(rig->server), 0);
	next_client(rig);
	int next = dup(rig->fd);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	EXPECT_COUNT("vfio_accept_failed", rig_turn(rig));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_false(rig->server->listener.added);
	assert_true(rig->server->accept_timer.armed);
	loop_arm(rig->loop, &rig->server->accept_timer, loop_now(rig->loop));
	rig_version(rig);
}

/* The messages of a client's life, ended behind every byte; nothing is left of it. */
static void forgets_a_client_that_ends_anywhere(void **state)
{
	struct rig *rig = *state;
	int memory = rig_memfd(PAGE), event = eventfd(0, EFD_NONBLOCK);
	uint8_t version[4] = {0}, command[2] = {6, 4}, bytes[512];
	struct vfio_user_dma_map map = {.argsz = 32, .flags = 3, .address = PAGE, .size = PAGE};
	struct vfio_user_set_irqs irqs = {.argsz = 20, .flags = 0x24, .index = 2, .count = 1};
	struct {
		struct vfio_user_region_access access;
		uint8_t data[2];
	} write = {{.offset = RIG_COMMAND_REG, .region = 7, .count = 2}, {command[0], command[1]}};
	size_t ends[8], size = 0;
	unsigned before;

	assert_int_equal(vfio_server_start(rig->server), 0);
	before = rig_open_fds();
	size += rig_build(rig, bytes, VFIO_USER_VERSION, 0, version, sizeof(version));
	ends[0] = size;
	size += rig_build(rig, bytes + size, VFIO_USER_DMA_MAP, 0, &map, sizeof(map));
	ends[1] = size;
	size += rig_build(rig, bytes + size, VFIO_USER_SET_IRQS, 0, &irqs, sizeof(irqs));
	ends[2] = size;
	size += rig_build(rig, bytes + size, VFIO_USER_REGION_WRITE, 0, &write, 18);
	ends[3] = size;
	size += rig_build(rig, bytes + size, VFIO_USER_RESET, 0, NULL, 0);
	ends[4] = size;
	for (size_t end = 0; end <= size; end++) {
		next_client(rig);
		for (size_t at = 0, i = 0; at < end; i++) {
			size_t until = ends[i] < end ? ends[i] : end;
			int fd = i == 1 ? memory : event;

			rig_send_raw(rig, bytes + at, until - at, &fd, i == 1 || i == 2);
			at = until;
			if (end % 2) /* or else it is gone before the server looks */
				rig_turn(rig);
		}
		close(rig->fd);
		rig->fd = -1;
		rig_turn(rig);
		assert_int_equal(rig_open_fds(), before);
		assert_false(vfio_server_attached(rig->server));
		assert_int_equal(vfio_server_guest_mem(rig->server)->regions.count, 0);
		assert_null(vfio_server_guest_mem(rig->server)->files.first);
	}
	/* the next one finds a device as it was in the beginning */
	next_client(rig);
	rig_version(rig);
	assert_int_equal(rig_config_read(rig, RIG_COMMAND_REG, 2), 0);
	close(memory);
	close(event);
}

/* What was there when the client went is not there for the next. */
static void hides_a_client_from_the_next(void **state)
{
	struct rig *rig = *state;
	int memory = rig_memfd(PAGE), event = eventfd(0, EFD_NONBLOCK);
	uint8_t byte;
	uint64_t bits;

	assert_int_equal(vfio_server_start(rig->server), 0);
	next_client(rig);
	rig_version(rig);
	rig_enable(rig);
	assert_int_equal(rig_map(rig, 0, PAGE, 3, memory, 0), 0);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(0x24, 2, 0, 1), &event, 1), 0);
	pci_irq_raise(vfio_server_pci_irq(rig->server), 1);
	rig_post(rig, 0, 0x10, 0x55, 8);
	next_client(rig);
	rig_version(rig);
	rig_enable(rig);
	assert_int_equal(guest_mem_read(vfio_server_guest_mem(rig->server), 0, &byte, 1), -EFAULT);
	pci_irq_raise(vfio_server_pci_irq(rig->server), 0);
	assert_int_equal(rig_signals(event), 0);
	assert_int_equal(rig_read(rig, 0, RIG_PBA, &bits, 8), 0);
	assert_int_equal(bits, 1);
	assert_int_equal(rig_read(rig, 0, 0x10, &bits, 8), 0);
	assert_int_equal(bits, 0);
	close(memory);
	close(event);
}

/* Row 36: the end in the middle of our reply, and QEMU's way to say that it gives up. */
static void ends_when_nobody_reads(void **state)
{
	static uint8_t answer[RIG_BAR2_SIZE + 32];
	struct rig *rig = *state;
	struct vfio_user_region_access access = {.region = 2, .count = RIG_BAR2_SIZE};
	unsigned before;

	assert_int_equal(vfio_server_start(rig->server), 0);
	before = rig_open_fds();
	next_client(rig);
	rig_version(rig);
	for (unsigned i = 0; i < 4; i++)
		rig_send(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
	rig_turn(rig);
	assert_int_equal(recv(rig->fd, answer, 100, 0), 100);
	close(rig->fd);
	rig->fd = -1;
	rig_turn(rig);
	assert_false(vfio_server_attached(rig->server));
	assert_int_equal(rig_open_fds(), before);
	next_client(rig);
	rig_version(rig);
	assert_int_equal(shutdown(rig->fd, SHUT_RD), 0);
	rig_send(rig, VFIO_USER_RESET, 0, NULL, 0);
	rig_turn(rig);
	assert_false(vfio_server_attached(rig->server));
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 2);
}

/* ---- inherited descriptors ---- */

static int inherited;

static void edit_fd(struct vfio_server_config *config)
{
	config->socket_path = NULL;
	config->fd = inherited;
}

/* The end of the stream, and no error: those who are served and those who wait have all sent what
 * nobody has read, descriptors among it. */
static void hangs_up_without_an_error(void **state)
{
	struct rig *rig = *state;
	struct vfio_user_region_access access = {.region = 0, .count = 4};
	int served, memory = rig_memfd(4096);
	char byte;

	assert_int_equal(vfio_server_start(rig->server), 0);
	next_client(rig);
	rig_version(rig);
	send_many(rig, 64, VFIO_USER_REGION_READ, &access, sizeof(access));
	rig_send_fds(rig, VFIO_USER_DMA_MAP, &access, sizeof(access), &memory, 1);
	served = rig->fd;
	rig->fd = connect_path();
	send_many(rig, 1, VFIO_USER_VERSION, &access, sizeof(access));
	vfio_server_destroy(rig->server);
	rig->server = NULL;
	assert_int_equal(recv(served, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(rig->fd, &byte, 1, MSG_DONTWAIT), 0);
	close(served);
	close(rig->fd);
	rig->fd = -1;
	close(memory);
}

static void serves_an_inherited_listening_socket(void **state)
{
	struct rig *rig;
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)state;
	inherited = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(inherited, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(inherited, 1), 0);
	rig = rig_create(edit_fd);
	assert_int_equal(vfio_server_start(rig->server), 0);
	for (unsigned i = 0; i < 3; i++) {
		next_client(rig);
		rig_version(rig);
	}
	rig_destroy(rig);
	/* the path is whoever made it's */
	assert_int_equal(access(path, F_OK), 0);
}

static void stops_the_loop_after_an_inherited_connection(void **state)
{
	struct rig *rig = *state;

	rig_pair(rig, NULL);
	rig_version(rig);
	close(rig->fd);
	rig->fd = -1;
	/* without a client there is nothing that could wake the loop: it must stop by itself */
	assert_int_equal(loop_run(rig->loop), 0);
	assert_int_equal(rig->resets[VFIO_RESET_DISCONNECT], 1);
}

static void refuses_inherited_descriptors_that_are_no_stream_socket(void **state)
{
	int pair[2], expected[3] = {-ENOTSOCK, -EPROTOTYPE, -EPROTOTYPE}, fds[3];
	unsigned before = rig_open_fds();

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	fds[0] = rig_memfd(0);
	fds[1] = pair[0];
	fds[2] = socket(AF_INET, SOCK_STREAM, 0);
	for (unsigned i = 0; i < 3; i++) {
		inherited = fds[i];
		struct rig *rig = rig_create(edit_fd);

		assert_int_equal(vfio_server_start(rig->server), expected[i]);
		rig_destroy(rig);
	}
	close(pair[1]);
	assert_int_equal(rig_open_fds(), before);
}

/* ---- patience ---- */

/* Turns until the server has had enough of the client. */
static void wait_for_the_end(struct rig *rig, const char *counter)
{
	uint64_t before = rig_counter(counter);

	while (rig_counter(counter) == before)
		assert_int_equal(loop_turn(rig->loop, UINT64_MAX), 0);
	rig_expect_closed(rig);
}

static void gives_up_on_a_silent_client(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(vfio_server_start(rig->server), 0);
	rig->server->patience.handshake = 10 * MS;
	next_client(rig);
	wait_for_the_end(rig, "vfio_timeout_handshake");
	/* the beginning of a VERSION is not enough */
	next_client(rig);
	rig_send_raw(rig, "\0\0\1\0", 4, NULL, 0);
	wait_for_the_end(rig, "vfio_timeout_handshake");
	/* and after it nothing is due */
	rig->server->patience.handshake = HOUR;
	next_client(rig);
	rig_version(rig);
	assert_false(rig->server->handshake_timer.armed);
	assert_false(rig->server->partial_timer.armed);
}

/* Row 3: a drip does not keep a message alive, and messages in between do not either. */
static void gives_up_on_an_unfinished_message(void **state)
{
	struct rig *rig = *state;
	uint8_t bytes[64];
	size_t size;

	assert_int_equal(vfio_server_start(rig->server), 0);
	rig->server->patience.partial = HOUR;
	next_client(rig);
	rig_version(rig);
	struct vfio_user_region_access access = {.region = 0, .count = 4};

	size = rig_build(rig, bytes, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
	rig_send_raw(rig, bytes, 5, NULL, 0);
	rig_turn(rig);
	uint64_t due = rig->server->partial_timer.due_ns;

	assert_true(rig->server->partial_timer.armed);
	rig_send_raw(rig, bytes + 5, 5, NULL, 0);
	rig_turn(rig);
	assert_int_equal(rig->server->partial_timer.due_ns, due);
	/* finished, and the next one begun in the same packet: a new time */
	memmove(bytes, bytes + 10, size - 10);
	memset(bytes + size - 10, 7, 3);
	rig_send_raw(rig, bytes, size - 10 + 3, NULL, 0);
	rig_turn(rig);
	assert_true(rig->server->partial_timer.armed);
	assert_true(rig->server->partial_timer.due_ns > due);
	rig_receive(rig, &(struct vfio_user_header){0}, bytes, sizeof(bytes));
	/* and when it is due */
	next_client(rig);
	rig_version(rig);
	rig->server->patience.partial = 10 * MS;
	rig_send_raw(rig, bytes, 5, NULL, 0);
	wait_for_the_end(rig, "vfio_timeout_partial");
}

/* Row 33: bounded memory, requests that wait, and nothing lost when the client reads after all. */
static void waits_for_a_client_that_does_not_read(void **state)
{
	static uint8_t answer[65536 + 32];
	struct rig *rig = *state;
	struct vfio_user_region_access access = {.region = 2, .count = 65536};
	struct vfio_user_header header;
	const unsigned requests = 200;
	uint16_t first = 0;

	assert_int_equal(vfio_server_start(rig->server), 0);
	next_client(rig);
	rig_version(rig);
	for (unsigned i = 0; i < requests; i++) {
		uint16_t id = rig_send(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));

		if (i == 0)
			first = id;
	}
	rig_turn(rig);
	size_t queued = transport_queued(&rig->server->transport);

	assert_true(queued >= VFIO_OUTPUT_MAX && queued < VFIO_OUTPUT_MAX + 65536 + 32);
	assert_true(rig->access_count < requests * 65536 / 8);
	for (unsigned i = 0; i < requests; i++) {
		int size = rig_receive(rig, &header, answer, sizeof(answer));

		if (size == -EAGAIN) {
			rig_turn(rig);
			size = rig_receive(rig, &header, answer, sizeof(answer));
		}
		assert_int_equal(size, 65536 + 16);
		assert_int_equal(header.id, (uint16_t)(first + i));
		if (i % 8 == 0)
			rig_turn(rig);
	}
	rig_expect_silence(rig);
	assert_int_equal(rig->access_count, requests * 65536 / 8);
	assert_false(rig->server->output_timer.armed);
}

static void gives_up_on_a_client_that_never_reads(void **state)
{
	struct rig *rig = *state;
	struct vfio_user_region_access access = {.region = 2, .count = VFIO_USER_MAX_TRANSFER};

	assert_int_equal(vfio_server_start(rig->server), 0);
	rig->server->patience.output = 20 * MS;
	next_client(rig);
	rig_version(rig);
	for (unsigned i = 0; i < 8; i++)
		rig_send(rig, VFIO_USER_REGION_READ, 0, &access, sizeof(access));
	uint64_t before = rig_counter("vfio_timeout_output");

	while (rig_counter("vfio_timeout_output") == before)
		assert_int_equal(loop_turn(rig->loop, UINT64_MAX), 0);
	assert_false(vfio_server_attached(rig->server));
	next_client(rig);
	rig_version(rig);
}

/* Row 34: a flood leaves the others their turn, and is worked off without new events. */
static void serves_a_flood_within_its_budget(void **state)
{
	struct rig *rig = *state;
	struct {
		struct vfio_user_region_access access;
		uint64_t value;
	} write = {{.region = 2, .count = 8}, 1};
	unsigned turns = 0;

	rig_pair(rig, NULL);
	rig_version(rig);
	send_many(rig, 1000, VFIO_USER_REGION_WRITE, &write, sizeof(write));
	while (rig->access_count < 1000) {
		unsigned before = rig->access_count;

		assert_int_equal(loop_turn(rig->loop, 0), 0);
		/* once for the socket, and once for what was left over */
		assert_true(rig->access_count - before <= 2 * VFIO_MESSAGE_BUDGET);
		assert_true(rig->access_count > before);
		turns++;
	}
	assert_true(turns > 1);
}

/* Whether or not they are answered, large reads take their time. */
static void serves_large_reads_one_at_a_time(void **state)
{
	struct rig *rig = *state;
	struct vfio_user_region_access access = {.region = 2, .count = VFIO_USER_MAX_TRANSFER};

	rig_pair(rig, NULL);
	rig_version(rig);
	send_many(rig, 16, VFIO_USER_REGION_READ, &access, sizeof(access));
	for (unsigned done = 0; done < 16 * (VFIO_USER_MAX_TRANSFER / 8);) {
		assert_int_equal(loop_turn(rig->loop, 0), 0);
		/* once for the socket, and once for what was left over */
		assert_in_range(rig->access_count - done, 1, 2 * (VFIO_USER_MAX_TRANSFER / 8));
		done = rig->access_count;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(makes_the_socket_with_its_mode),
	        TEST(replaces_a_dead_servers_socket_only),
	        TEST(leaves_a_path_that_is_not_its_own_any_more),
	        TEST(refuses_paths_that_cannot_be),
	        TEST(serves_the_second_client_after_the_first),
	        TEST(accepts_later_what_it_cannot_accept_now),
	        TEST(forgets_a_client_that_ends_anywhere),
	        TEST(hides_a_client_from_the_next),
	        TEST(ends_when_nobody_reads),
	        TEST(hangs_up_without_an_error),
	        TEST(serves_an_inherited_listening_socket),
	        TEST(stops_the_loop_after_an_inherited_connection),
	        TEST(refuses_inherited_descriptors_that_are_no_stream_socket),
	        TEST(gives_up_on_a_silent_client),
	        TEST(gives_up_on_an_unfinished_message),
	        TEST(waits_for_a_client_that_does_not_read),
	        TEST(gives_up_on_a_client_that_never_reads),
	        TEST(serves_a_flood_within_its_budget),
	        TEST(serves_large_reads_one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
