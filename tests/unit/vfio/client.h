/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A vfio-user client and the server under test, in one process: the client sends, turns the
 * server's loop, and looks at what came back. Behind the server is a device that notes what it is
 * told. Failures fail the test.
 */
#ifndef ERNIC_TESTS_UNIT_VFIO_CLIENT_H
#define ERNIC_TESTS_UNIT_VFIO_CLIENT_H

#include "base/loop.h"
#include "vfio/protocol.h"
#include "vfio/vfio.h"
#include "vfio/vfio_internal.h"

/* The function under test. */
#define RIG_BAR0_SIZE   0x10000u
#define RIG_BAR2_SIZE   0x100000u
#define RIG_TABLE       0x8000u
#define RIG_PBA         0xc000u
#define RIG_VECTORS     80u
#define RIG_ACCESSES    4096
#define RIG_COMMAND_REG 0x04
#define RIG_MSIX_CTRL   0x62
#define RIG_DEVCTL      0x78
#define RIG_PMCSR       0x54

struct rig_access {
	bool write;
	unsigned bar;
	uint64_t offset;
	size_t size;
	uint64_t value;
};

struct rig {
	struct loop *loop;
	struct vfio_server *server;
	int fd; /* the client's end, or -1 */
	uint16_t next_id;

	/* the device */
	uint8_t bar0[RIG_BAR0_SIZE];
	struct rig_access accesses[RIG_ACCESSES];
	unsigned access_count;
	unsigned resets[3]; /* by enum vfio_reset */
	struct loop_work work;
	void (*on_work)(struct rig *rig);  /* runs in the work phase after a register write */
	void (*on_write)(struct rig *rig); /* runs in the register function */
	int result;                        /* for on_work to leave something */
};

/* cmocka set-up and tear-down: *STATE is a struct rig with an attached client. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* The same before the handshake. */
int rig_setup_silent(void **state);

/* A rig without any client, to be given one by rig_connect(). CONFIG may be changed by EDIT. */
struct rig *rig_create(void (*edit)(struct vfio_server_config *config));
void rig_destroy(struct rig *rig);

/* A server on one end of a socket pair, and the client on the other. */
void rig_pair(struct rig *rig, void (*edit)(struct vfio_server_config *config));

/* Turns the loop until it has nothing to do. */
void rig_turn(struct rig *rig);

/* Sends raw bytes, with descriptors. */
void rig_send_raw(struct rig *rig, const void *data, size_t size, const int *fds,
                  unsigned fd_count);

/* Builds a message in BUF, which is large enough; returns its size. */
size_t rig_build(struct rig *rig, void *buf, uint16_t command, uint32_t flags, const void *body,
                 size_t size);

/* Sends one message. Returns its id. */
uint16_t rig_send(struct rig *rig, uint16_t command, uint32_t flags, const void *body, size_t size);
uint16_t rig_send_fds(struct rig *rig, uint16_t command, const void *body, size_t size,
                      const int *fds, unsigned fd_count);

/* Takes one message of the server if there is one now. Returns its body's size, -EAGAIN when there
 * is none, -ENODATA when the server has closed. BODY holds MAX bytes, enough for any answer. */
int rig_receive(struct rig *rig, struct vfio_user_header *header, void *body, size_t max);

/*
 * Sends a request and takes the answer, which must be there when the server has nothing more to do
 * and be a well-formed one to this request. Returns the size of the answer's body, or the negative
 * errno that the server answered.
 */
int rig_call(struct rig *rig, uint16_t command, const void *body, size_t size, void *answer,
             size_t max);

/* The same with descriptors; the answer's body is not looked at. */
int rig_call_fds(struct rig *rig, uint16_t command, const void *body, size_t size, const int *fds,
                 unsigned fd_count);

/* Asserts that the server has closed the connection, and closes our end too. */
void rig_expect_closed(struct rig *rig);

/* Asserts that nothing was sent. */
void rig_expect_silence(struct rig *rig);

/* Requests. They return what rig_call() does; a reply's size is checked. */
void rig_version(struct rig *rig);
int rig_map(struct rig *rig, uint64_t addr, uint64_t size, uint32_t flags, int fd, uint64_t offset);
int rig_unmap(struct rig *rig, uint64_t addr, uint64_t size);
int rig_read(struct rig *rig, uint32_t region, uint64_t offset, void *data, uint32_t size);
int rig_write(struct rig *rig, uint32_t region, uint64_t offset, const void *data, uint32_t size);
void rig_post(struct rig *rig, uint32_t region, uint64_t offset, uint64_t value, uint32_t size);
int rig_set_irqs(struct rig *rig, const struct vfio_user_set_irqs *request, const int *fds,
                 unsigned fd_count);
uint32_t rig_config_read(struct rig *rig, uint64_t offset, uint32_t size);
void rig_config_write(struct rig *rig, uint64_t offset, uint32_t value, uint32_t size);

/* A SET_IRQS request without data. */
#define RIG_IRQS(flags, index, start, count)                                                       \
	(&(struct vfio_user_set_irqs){sizeof(struct vfio_user_set_irqs), flags, index, start,      \
	                              count})

/* Bus mastering and MSI-X on. */
void rig_enable(struct rig *rig);

/* A new memfd of SIZE bytes. */
int rig_memfd(uint64_t size);

/* How often an eventfd was signalled since it was asked last. */
uint64_t rig_signals(int eventfd);

/* Descriptors that this process has open. */
unsigned rig_open_fds(void);

/* The value of a counter that must exist. */
uint64_t rig_counter(const char *name);

/* Asserts that STATEMENT moves the counter called NAME by one. */
#define EXPECT_COUNT(name, statement)                                                              \
	do {                                                                                       \
		uint64_t before_ = rig_counter(name);                                              \
		statement;                                                                         \
		assert_int_equal(rig_counter(name), before_ + 1);                                  \
	} while (0)

#endif
