/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The server and its client, as the files of this room share them. */
#ifndef ERNIC_VFIO_VFIO_INTERNAL_H
#define ERNIC_VFIO_VFIO_INTERNAL_H

#include "base/counter.h"
#include "base/listener.h"
#include "base/log.h"
#include "vfio/guest_mem_internal.h"
#include "vfio/pci_config.h"
#include "vfio/pci_irq_internal.h"
#include "vfio/transport.h"
#include "vfio/vfio.h"

/* Messages served in one go before other sources and work get their turn; a large one counts as
 * several, see message_cost(). */
#define VFIO_MESSAGE_BUDGET 256
/* Bytes to read or write that count as one message more. */
#define VFIO_MESSAGE_LARGE  4096u
/* Replies that may wait for a client that does not read; then its requests wait too. */
#define VFIO_OUTPUT_MAX     1048576
/* Data in one DMA message: larger replies can be cut short by QEMU (spec vfio-user 2). */
#define VFIO_DMA_CHUNK      65536u
/* Requests that were given up and may still be answered. */
#define VFIO_DMA_LATE_MAX   16

enum vfio_client_state {
	VFIO_CLIENT_NONE,      /* nobody is connected */
	VFIO_CLIENT_CONNECTED, /* only VERSION is understood; holds no memory, no interrupts */
	VFIO_CLIENT_ATTACHED,  /* everything is; the device is in use */
};

/* Times a client has, in ns. Its own patience with us is 5 s (spec vfio-user 1). */
struct vfio_patience {
	uint64_t handshake; /* to say its version */
	uint64_t partial;   /* to finish a message that it began */
	uint64_t output;    /* to take replies that wait */
	uint64_t dma;       /* to answer a DMA message */
	uint64_t dma_turn;  /* to answer all of those of one turn of the loop */
};

/* What the client said about itself in VERSION. */
struct vfio_client_limits {
	uint32_t max_transfer; /* bytes of data in one DMA message */
};

/* Whether the client puts the data of DMA messages where the protocol says; see dma.c. */
enum dma_layout { DMA_LAYOUT_UNKNOWN, DMA_LAYOUT_RIGHT, DMA_LAYOUT_SHIFTED };

struct dma_request {
	uint16_t id, command;
	uint64_t address;
	uint32_t count;
	void *buf;
};

/* DMA by messages to the client. */
struct dma {
	uint64_t turn;    /* loop_now() of the last turn that asked */
	uint64_t left_ns; /* of vfio_patience.dma_turn in that turn */
	uint16_t next_id;
	bool waiting; /* for the reply to CURRENT */
	int result;   /* of CURRENT, when WAITING has become false */
	struct dma_request current;
	struct dma_request late[VFIO_DMA_LATE_MAX]; /* given up, and not answered yet */
	unsigned late_count;
	bool unresponsive; /* one of them ran out of time */
	enum dma_layout layout;
};

struct vfio_server {
	struct loop *loop;
	struct vfio_pci_config pci;
	const struct vfio_device_ops *ops;
	void *device;
	bool write_multiple;

	struct pci_config space;
	struct pci_irq irq;
	struct guest_mem mem;
	uint8_t *msix_table; /* what was stored there; no client needs it (spec vfio-user 9) */

	char *socket_path; /* NULL for an inherited descriptor */
	mode_t socket_mode;
	int inherited_fd;
	struct listener socket;         /* at socket_path */
	struct loop_source listener;    /* watches it, or inherited_fd, while nobody is connected */
	struct loop_timer accept_timer; /* watches it again after a failure */

	enum vfio_client_state state;
	bool dispatching; /* a message is being executed */
	struct transport transport;
	struct loop_source client;
	uint32_t interest; /* events that client waits for */
	struct loop_work resume;
	struct loop_timer handshake_timer, partial_timer, output_timer;
	uint64_t partial_position; /* of the message that partial_timer is about */
	uint64_t output_taken;     /* transport.out.taken when output_timer was armed */
	struct vfio_client_limits limits;
	struct vfio_patience patience;
	struct dma dma;

	int poison_fd; /* signalled when guest memory was lost */
	struct loop_source poison;
};

/* ---- client.c: one client, from its connection to its end ---- */

void client_init(struct vfio_server *server);

/* Serves the client on IO and FD from now on; FD is taken in any case. Returns 0 or -errno. */
int client_open(struct vfio_server *server, const struct transport_io *io, int fd);

/* Serves what has arrived, within the budget. */
void client_serve(struct vfio_server *server);

/* The version is agreed: the device is this client's from now on. */
void client_attached(struct vfio_server *server);

/* Ends the connection, if there is one, and makes everything ready for the next. */
void client_close(struct vfio_server *server, const char *reason);

/* ---- server.c ---- */

/* Waits for the next client, or stops the loop when there cannot be one. */
void server_next_client(struct vfio_server *server);

/* ---- message.c: what a message is, and who handles it ---- */

/* Executes one message and answers it. Returns 0, or a negative errno when the connection is of no
 * more use. */
int message_dispatch(struct vfio_server *server, struct message *message);

/* Answers a message whose size is impossible. The connection must be closed then. */
void message_reject_size(struct vfio_server *server, const struct message *message);

/* What MESSAGE takes of VFIO_MESSAGE_BUDGET. */
unsigned message_cost(const struct message *message);

/* Whether MESSAGE may be executed while the device waits for a DMA message. */
bool message_nestable(const struct message *message);

/* Sends the reply, unless the request asked for none: BODY, then DATA. */
void message_reply(struct vfio_server *server, const struct message *message, const void *body,
                   size_t body_size, const void *data, size_t data_size);

/* The name of a command, for the log. */
const char *message_name(uint16_t command);

/* Counts and logs a refusal; the value is the negative errno to answer. */
#define MESSAGE_REFUSE(counter, message, error, why)                                               \
	({                                                                                         \
		counter_inc(&(counter));                                                           \
		log_guest("vfio: %s refused: %s", message_name((message)->header.command), why);   \
		-(error);                                                                          \
	})

/*
 * The handlers. The size of the message and the number of its descriptors have been checked
 * against the table in message.c. They answer the message themselves and return 0, or return a
 * negative errno to be answered.
 */
typedef int message_handler(struct vfio_server *server, struct message *message);
message_handler handle_version;
message_handler handle_dma_map, handle_dma_unmap;
message_handler handle_get_info, handle_get_region_info, handle_get_region_io_fds;
message_handler handle_get_irq_info, handle_set_irqs, handle_reset, handle_unsupported;
message_handler handle_region_read, handle_region_write, handle_region_write_multi;

/* ---- region_access.c ---- */

/* Bytes of a region; 0 for one that the function does not have. */
uint64_t region_size(const struct vfio_server *server, uint32_t region);

/* Gives the MSI-X table its state after a reset. */
void msix_table_reset(struct vfio_server *server);

/* Resets the device and its configuration space; the client keeps memory and interrupts. */
void server_reset(struct vfio_server *server, enum vfio_reset reason);

/* ---- dma.c: guest memory by messages ---- */

guest_message_dma_fn dma_access;

/* Takes a reply message. Returns 0, -ENOENT when nothing was asked, or -EPROTO when it is not what
 * was asked for. */
int dma_take_reply(struct vfio_server *server, const struct message *message);

#endif
