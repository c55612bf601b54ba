/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupts: SET_IRQS in all its forms, and what a vector does meanwhile
 * (spec vfio-user 5 and 12, rows 28 to 31). */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

#define NONE    VFIO_USER_IRQ_DATA_NONE
#define BOOL    VFIO_USER_IRQ_DATA_BOOL
#define EVENTFD VFIO_USER_IRQ_DATA_EVENTFD
#define MASK    VFIO_USER_IRQ_ACTION_MASK
#define UNMASK  VFIO_USER_IRQ_ACTION_UNMASK
#define TRIGGER VFIO_USER_IRQ_ACTION_TRIGGER
#define MSIX    VFIO_USER_MSIX

#define EVENTS 8

static int events[EVENTS];

static int setup(void **state)
{
	for (unsigned i = 0; i < EVENTS; i++)
		events[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return rig_setup(state);
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < EVENTS; i++)
		close(events[i]);
	return rig_teardown(state);
}

static void raise_vector(struct rig *rig, unsigned vector)
{
	pci_irq_raise(vfio_server_pci_irq(rig->server), vector);
}

static uint64_t pending(struct rig *rig)
{
	uint64_t bits;

	assert_int_equal(rig_read(rig, 0, RIG_PBA, &bits, 8), 0);
	return bits;
}

/* The order of QEMU: enable with the function masked, vectors one by one, unmask. */
static void follows_qemu(void **state)
{
	struct rig *rig = *state;

	rig_config_write(rig, RIG_MSIX_CTRL, 0xc000, 2);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, 1), NULL, 0), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(
		        rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, i, 1), &events[i], 1),
		        0);
	raise_vector(rig, 2);
	assert_int_equal(rig_signals(events[2]), 0);
	rig_config_write(rig, RIG_MSIX_CTRL, 0x8000, 2);
	assert_int_equal(rig_signals(events[2]), 1);
	for (unsigned i = 0; i < 4; i++) {
		raise_vector(rig, i);
		raise_vector(rig, i);
		assert_int_equal(rig_signals(events[i]), 2);
	}
	assert_int_equal(pending(rig), 0);
	raise_vector(rig, 9);
	assert_int_equal(pending(rig), 1 << 9);
	/* disabled: eventfds and what is pending are gone */
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | NONE, MSIX, 0, 0), NULL, 0), 0);
	raise_vector(rig, 1);
	assert_int_equal(rig_signals(events[1]), 0);
	assert_int_equal(pending(rig), 2);
}

static void latches_until_the_vector_is_connected(void **state)
{
	struct rig *rig = *state;

	rig_enable(rig);
	for (unsigned i = 0; i < 3; i++)
		raise_vector(rig, 5);
	assert_int_equal(pending(rig), 1 << 5);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 4, 3), events, 3), 0);
	/* once, however often it was raised */
	assert_int_equal(rig_signals(events[0]), 0);
	assert_int_equal(rig_signals(events[1]), 1);
	assert_int_equal(pending(rig), 0);
	/* and no more */
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 5, 1), &events[2], 1),
	                 0);
	assert_int_equal(rig_signals(events[2]), 0);
}

static void latches_while_disabled_or_masked(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, 1), events, 1), 0);
	raise_vector(rig, 0);
	rig_config_write(rig, RIG_MSIX_CTRL, 0xc000, 2);
	assert_int_equal(rig_signals(events[0]), 0);
	rig_config_write(rig, RIG_MSIX_CTRL, 0x8000, 2);
	assert_int_equal(rig_signals(events[0]), 1);
	rig_config_write(rig, RIG_MSIX_CTRL, 0xc000, 2);
	raise_vector(rig, 0);
	assert_int_equal(pending(rig), 1);
	/* switching MSI-X off forgets it */
	rig_config_write(rig, RIG_MSIX_CTRL, 0x4000, 2);
	assert_int_equal(pending(rig), 0);
	rig_config_write(rig, RIG_MSIX_CTRL, 0x8000, 2);
	assert_int_equal(rig_signals(events[0]), 0);
}

/* Rows 30 and 31: a new eventfd for a live vector, again and again. */
static void replaces_the_eventfd_of_a_live_vector(void **state)
{
	struct rig *rig = *state;
	unsigned before;

	rig_enable(rig);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 1, 1), events, 1), 0);
	before = rig_open_fds();
	for (unsigned i = 0; i < 2000; i++) {
		int fd = events[i % EVENTS];

		assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 1, 1), &fd, 1),
		                 0);
		raise_vector(rig, 1);
		assert_int_equal(rig_signals(fd), 1);
	}
	assert_int_equal(rig_open_fds(), before);
	/* taken away, raised, given back: nothing is lost */
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 1, 1), NULL, 0), 0);
	assert_int_equal(rig_open_fds(), before - 1);
	raise_vector(rig, 1);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 1, 1), events, 1), 0);
	assert_int_equal(rig_signals(events[0]), 1);
}

/* libvfio-user loops to count instead of start + count here. */
static void takes_away_exactly_the_range(void **state)
{
	struct rig *rig = *state;

	rig_enable(rig);
	assert_int_equal(
	        rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 10, EVENTS), events, EVENTS),
	        0);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 12, 3), NULL, 0), 0);
	for (unsigned i = 0; i < EVENTS; i++) {
		raise_vector(rig, 10 + i);
		assert_int_equal(rig_signals(events[i]), i >= 2 && i < 5 ? 0 : 1);
	}
}

static void triggers_when_the_client_asks(void **state)
{
	struct rig *rig = *state;
	uint8_t request[20 + 3] = {0};
	struct vfio_user_set_irqs head = {
	        .argsz = 23, .flags = BOOL | TRIGGER, .index = MSIX, .start = 1, .count = 3};

	rig_enable(rig);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, 4), events, 4), 0);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | NONE, MSIX, 1, 2), NULL, 0), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_signals(events[i]), i == 1 || i == 2);
	memcpy(request, &head, sizeof(head));
	request[20] = 1;
	request[22] = 1;
	assert_int_equal(rig_call(rig, VFIO_USER_SET_IRQS, request, sizeof(request), NULL, 0), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_signals(events[i]), i == 1 || i == 3);
	/* ERR as well */
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | NONE, VFIO_USER_ERR, 0, 1), NULL, 0),
	                 0);
	assert_int_equal(
	        rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, VFIO_USER_ERR, 0, 1), &events[7], 1),
	        0);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | NONE, VFIO_USER_ERR, 0, 1), NULL, 0),
	                 0);
	assert_int_equal(rig_signals(events[7]), 1);
}

static void disables_every_index(void **state)
{
	struct rig *rig = *state;
	unsigned before = rig_open_fds();

	assert_int_equal(
	        rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, EVENTS), events, EVENTS), 0);
	assert_int_equal(
	        rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, VFIO_USER_ERR, 0, 1), events, 1), 0);
	assert_int_equal(
	        rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, VFIO_USER_REQ, 0, 1), events, 1), 0);
	assert_int_equal(rig_open_fds(), before + EVENTS + 2);
	/* twice: it must succeed for an index without vectors too */
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | NONE, i % 5, 0, 0), NULL, 0),
		                 0);
	assert_int_equal(rig_open_fds(), before);
}

/* Row 28. */
static void refuses_bad_combinations(void **state)
{
	static const struct {
		uint32_t flags, index, start, count;
		unsigned fds;
	} cases[] = {
	        {TRIGGER | EVENTFD, 5, 0, 1, 1},              /* no such index */
	        {TRIGGER | EVENTFD, UINT32_MAX, 0, 1, 1},     /* */
	        {TRIGGER | MASK | NONE, MSIX, 0, 1, 0},       /* two actions */
	        {TRIGGER | NONE | EVENTFD, MSIX, 0, 1, 0},    /* two kinds of data */
	        {NONE, MSIX, 0, 1, 0},                        /* no action */
	        {TRIGGER, MSIX, 0, 1, 0},                     /* no data */
	        {TRIGGER | NONE | 0x40, MSIX, 0, 1, 0},       /* unknown flag */
	        {0, MSIX, 0, 0, 0},                           /* */
	        {UINT32_MAX, MSIX, 0, 0, 0},                  /* */
	        {TRIGGER | EVENTFD, MSIX, RIG_VECTORS, 1, 1}, /* ranges */
	        {TRIGGER | EVENTFD, MSIX, RIG_VECTORS - 1, 2, 2},
	        {TRIGGER | EVENTFD, MSIX, UINT32_MAX, 2, 2},
	        {TRIGGER | NONE, MSIX, 1, UINT32_MAX, 0},
	        {TRIGGER | NONE, MSIX, 0, RIG_VECTORS + 1, 0},
	        {TRIGGER | NONE, MSIX, 1, 0, 0},           /* count 0 with a start */
	        {TRIGGER | EVENTFD, MSIX, 0, 0, 0},        /* ... with other data */
	        {MASK | NONE, MSIX, 0, 0, 0},              /* ... or action */
	        {TRIGGER | NONE, VFIO_USER_INTX, 0, 1, 0}, /* has no vectors */
	        {TRIGGER | EVENTFD, VFIO_USER_INTX, 0, 1, 1},
	        {UNMASK | EVENTFD, VFIO_USER_INTX, 0, 1, 1},
	        {UNMASK | NONE, VFIO_USER_INTX, 0, 1, 0},
	        {TRIGGER | EVENTFD, VFIO_USER_MSI, 0, 1, 1},
	        {MASK | NONE, MSIX, 0, 1, 0}, /* cannot be masked */
	        {UNMASK | NONE, MSIX, 0, 1, 0},
	        {MASK | NONE, VFIO_USER_ERR, 0, 1, 0},
	        {UNMASK | NONE, VFIO_USER_REQ, 0, 1, 0},
	        {TRIGGER | EVENTFD, VFIO_USER_ERR, 0, 2, 2},
	        {TRIGGER | EVENTFD, VFIO_USER_REQ, 1, 1, 1},
	        {TRIGGER | NONE, MSIX, 0, 1, 1}, /* descriptors without EVENTFD */
	        {TRIGGER | NONE, MSIX, 0, 0, 1},
	        {TRIGGER | EVENTFD, MSIX, 0, 3, 2}, /* too few, too many */
	        {TRIGGER | EVENTFD, MSIX, 0, 2, 3},
	};
	struct rig *rig = *state;
	unsigned before = rig_open_fds();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		EXPECT_COUNT("vfio_irq_invalid",
		             assert_int_equal(rig_set_irqs(rig,
		                                           RIG_IRQS(cases[i].flags, cases[i].index,
		                                                    cases[i].start, cases[i].count),
		                                           events, cases[i].fds),
		                              -EINVAL));
		assert_int_equal(rig_open_fds(), before);
	}
}

static int set_irqs_sized(struct rig *rig, uint32_t argsz, uint32_t flags, uint32_t count,
                          size_t data_size, unsigned fd_count)
{
	uint8_t request[20 + 16] = {0};
	struct vfio_user_set_irqs head = {
	        .argsz = argsz, .flags = flags, .index = MSIX, .count = count};

	memcpy(request, &head, sizeof(head));
	return rig_call_fds(rig, VFIO_USER_SET_IRQS, request, 20 + data_size, events, fd_count);
}

static void refuses_data_of_the_wrong_size(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(set_irqs_sized(rig, 19, TRIGGER | NONE, 0, 0, 0), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, 0, TRIGGER | NONE, 0, 0, 0), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, UINT32_MAX, TRIGGER | NONE, 0, 0, 0), 0);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | BOOL, 3, 2, 0), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | BOOL, 3, 4, 0), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | BOOL, 3, 3, 0), 0);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | BOOL, 3, 3, 1), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | BOOL, 0, 0, 0), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | NONE, 3, 3, 0), -EINVAL);
	assert_int_equal(set_irqs_sized(rig, 20, TRIGGER | EVENTFD, 2, 2, 2), -EINVAL);
}

/* Row 29: what could block, or is something else than it says. */
static void takes_eventfds_only(void **state)
{
	struct rig *rig = *state;
	int pipe_fds[2], sockets[2], memory = rig_memfd(4096);
	unsigned before;

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	int epoll = dup(rig->fd);
	const int wrong[] = {pipe_fds[0], pipe_fds[1], sockets[0], memory, epoll};

	before = rig_open_fds();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		/* the good ones before it are not taken either */
		int fds[3] = {events[0], events[1], wrong[i]};

		EXPECT_COUNT(
		        "vfio_irq_not_eventfd",
		        assert_int_equal(
		                rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, 3), fds, 3),
		                -EINVAL));
		assert_int_equal(rig_open_fds(), before);
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(sockets[0]);
	close(sockets[1]);
	close(memory);
	close(epoll);
}

/* Also row 29: an eventfd that blocks, and is full. */
static void never_blocks_on_a_full_eventfd(void **state)
{
	struct rig *rig = *state;
	int event = eventfd(0, EFD_CLOEXEC);
	uint64_t full = UINT64_MAX - 1;

	rig_enable(rig);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, 1), &event, 1), 0);
	assert_true(fcntl(event, F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(event, &full, sizeof(full)), sizeof(full));
	EXPECT_COUNT("vfio_irq_full", raise_vector(rig, 0));
	assert_int_equal(rig_signals(event), full);
	close(event);
}

/* The largest set that one message can carry. */
static void takes_as_many_descriptors_as_there_are_vectors(void **state)
{
	struct rig *rig = *state;
	int fds[RIG_VECTORS];

	for (unsigned i = 0; i < RIG_VECTORS; i++)
		fds[i] = events[i % EVENTS];
	rig_enable(rig);
	assert_int_equal(rig_set_irqs(rig, RIG_IRQS(TRIGGER | EVENTFD, MSIX, 0, RIG_VECTORS), fds,
	                              RIG_VECTORS),
	                 0);
	for (unsigned i = 0; i < RIG_VECTORS; i++)
		raise_vector(rig, i);
	for (unsigned i = 0; i < EVENTS; i++)
		assert_int_equal(rig_signals(events[i]), RIG_VECTORS / EVENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(follows_qemu),
	        TEST(latches_until_the_vector_is_connected),
	        TEST(latches_while_disabled_or_masked),
	        TEST(replaces_the_eventfd_of_a_live_vector),
	        TEST(takes_away_exactly_the_range),
	        TEST(triggers_when_the_client_asks),
	        TEST(disables_every_index),
	        TEST(refuses_bad_combinations),
	        TEST(refuses_data_of_the_wrong_size),
	        TEST(takes_eventfds_only),
	        TEST(never_blocks_on_a_full_eventfd),
	        TEST(takes_as_many_descriptors_as_there_are_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
