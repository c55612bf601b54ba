/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vfio-user server: one PCI function for one client at a time (spec vfio-user).
 *
 * Theory of operation
 *
 * Goals. A doorbell costs little more than its share of one recvmsg(). A reply leaves as soon as
 * its request is read, because QEMU stops the whole guest while it waits. Nothing that a client
 * sends, in whatever order and however cut into pieces, costs more than its connection; the next
 * client finds the server as the first one did.
 *
 * Parts, from the socket inwards:
 *
 *	client.c	a connection's life, budget and timers
 *	transport.c	messages in a byte stream, and their descriptors; transport_replay.c: from a
 *			recording
 *	message.c	the table of commands and the checks that all share
 *	version.c handlers.c region_access.c	the handlers
 *	guest_mem.c	guest addresses: region_map.c the ranges, guest_file.c the files behind
 *			them, dma.c what is reached by messages only
 *	pci_irq.c	interrupts
 *	pci_config.c	configuration space
 *
 * States of a connection are those of enum vfio_client_state. While a client is connected the
 * listening socket is not watched: others wait in its backlog. A client that came over an inherited
 * connection has no successor; the loop is stopped when it is gone.
 *
 * In. The socket becomes readable; one receive takes everything; messages are executed in order, in
 * place: registers and configuration space at once, guest memory and interrupts by changing tables.
 * After VFIO_MESSAGE_BUDGET messages the rest of the program gets its turn.
 *
 * Out. Replies are sent by their handlers. What a client does not take is queued; beyond
 * VFIO_OUTPUT_MAX its requests are not read, after a while without progress it is disconnected.
 *
 * Guest memory belongs to the device in the work phase of a turn and to the client in the rest of
 * it. So an unmapping is final when its handler runs, and its reply may say so.
 *
 * Trust. The client is trusted with the guest and with nothing here. It can make its device
 * useless; it cannot make the server read or write anything but what it passed, nor wait for it
 * for long, nor hold descriptors or memory beyond limits that stand in the code.
 *
 * Not done: mapped regions (they end posted writes for the whole device), INTx and MSI, migration,
 * I/O event descriptors, a second socket for our own messages (no client that matters uses these).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "vfio/vfio_internal.h"

#define ACCEPT_RETRY_NS UINT64_C(1000000000)

/* Clients that may wait while one is attached; the kernel admits one more. */
#define BACKLOG 3

COUNTER(vfio_accept_failed, "connections that could not be accepted");

/* ---- clients, one after the other ---- */

static void on_listener(struct loop_source *source, uint32_t events)
{
	struct vfio_server *server = container_of(source, struct vfio_server, listener);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR))
		return;
	loop_remove(server->loop, source);
	if (fd >= 0 && client_open(server, &transport_socket_io, fd) == 0)
		return;
	/* Out of descriptors or memory: the connection stays, so look again in a while. */
	counter_inc(&vfio_accept_failed);
	if (server->state == VFIO_CLIENT_NONE)
		loop_arm(server->loop, &server->accept_timer,
		         loop_now(server->loop) + ACCEPT_RETRY_NS);
}

static void on_accept_timer(struct loop_timer *timer)
{
	server_next_client(container_of(timer, struct vfio_server, accept_timer));
}

void server_next_client(struct vfio_server *server)
{
	if (server->listener.fd < 0)
		loop_stop(server->loop);
	else if (!server->listener.added)
		loop_add(server->loop, &server->listener, EPOLLIN);
}

/* ---- life ---- */

static bool pci_valid(const struct vfio_pci_config *pci)
{
	for (unsigned bar = 0; bar < VFIO_BAR_COUNT; bar++) {
		uint64_t size = pci->bar_size[bar];

		if (size != 0 && (bar % 2 != 0 || size < 4096 || (size & (size - 1)) != 0))
			return false;
	}
	if (pci->msix_count < 1 || pci->msix_count > 2048 || pci->msix_bar >= VFIO_BAR_COUNT)
		return false;
	uint64_t size = pci->bar_size[pci->msix_bar], table = pci->msix_count * UINT64_C(16);
	uint64_t pba = pci_irq_pba_size(pci->msix_count);

	return pci->msix_table_offset % 8 == 0 && pci->msix_pba_offset % 8 == 0 && table <= size &&
	       pci->msix_table_offset <= size - table && pba <= size &&
	       pci->msix_pba_offset <= size - pba &&
	       (pci->msix_table_offset + table <= pci->msix_pba_offset ||
	        pci->msix_pba_offset + pba <= pci->msix_table_offset);
}

static void server_init(struct vfio_server *server, const struct vfio_server_config *config)
{
	server->loop = config->loop;
	server->pci = *config->pci;
	server->ops = config->ops;
	server->device = config->device;
	server->write_multiple = config->write_multiple;
	server->socket_mode = config->socket_mode;
	server->inherited_fd = config->socket_path ? -1 : config->fd;
	server->socket.fd = server->listener.fd = server->client.fd = -1;
	server->listener.ready = on_listener;
	server->accept_timer.expired = on_accept_timer;
	client_init(server);
	pci_config_init(&server->space, &server->pci);
	server->poison_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	server->poison.fd = server->poison_fd;
	guest_mem_init(&server->mem, server->loop, server->poison_fd);
	server->mem.message_dma = dma_access;
	server->mem.message_arg = server;
}

int vfio_server_create(const struct vfio_server_config *config, struct vfio_server **out)
{
	struct vfio_server *server = calloc(1, sizeof(*server));
	int error;

	assert(pci_valid(config->pci));
	if (!server)
		return -ENOMEM;
	server_init(server, config);
	error = pci_irq_init(&server->irq, server->pci.msix_count);
	if (!error && server->poison_fd < 0)
		error = -errno;
	if (!error)
		error = loop_add(server->loop, &server->poison, EPOLLIN);
	server->msix_table = calloc(server->pci.msix_count, 16);
	if (config->socket_path)
		server->socket_path = strdup(config->socket_path);
	if (!error && (!server->msix_table || (config->socket_path && !server->socket_path)))
		error = -ENOMEM;
	if (error) {
		vfio_server_destroy(server);
		return error;
	}
	msix_table_reset(server);
	*out = server;
	return 0;
}

static int socket_option(int fd, int option, int *value)
{
	socklen_t size = sizeof(*value);

	return getsockopt(fd, SOL_SOCKET, option, value, &size) < 0 ? -errno : 0;
}

/* What an inherited descriptor is: 1 listening, 0 connected, or a negative errno. */
static int inherited_kind(int fd)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	int domain, type, listening;
	int error = socket_option(fd, SO_DOMAIN, &domain);

	if (!error)
		error = socket_option(fd, SO_TYPE, &type);
	if (!error)
		error = socket_option(fd, SO_ACCEPTCONN, &listening);
	if (error)
		return error;
	if (domain != AF_UNIX || type != SOCK_STREAM)
		return -EPROTOTYPE;
	/* One without a peer would end as a client that left at once does. */
	if (!listening && getpeername(fd, (struct sockaddr *)&peer, &size) < 0)
		return -errno;
	return listening;
}

static int start_inherited(struct vfio_server *server)
{
	int kind = inherited_kind(server->inherited_fd);

	if (kind < 0)
		return kind;
	if (kind == 0) {
		int fd = server->inherited_fd;

		server->inherited_fd = -1;
		return client_open(server, &transport_socket_io, fd);
	}
	/* A client can be gone between the event and accept(), which must not wait then. */
	if (fcntl(server->inherited_fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	server->listener.fd = server->inherited_fd;
	return loop_add(server->loop, &server->listener, EPOLLIN);
}

int vfio_server_start(struct vfio_server *server)
{
	if (!server->socket_path)
		return start_inherited(server);
	int error =
	        listener_open(&server->socket, server->socket_path, server->socket_mode, BACKLOG);

	if (error)
		return error;
	server->listener.fd = server->socket.fd;
	return loop_add(server->loop, &server->listener, EPOLLIN);
}

void vfio_server_destroy(struct vfio_server *server)
{
	if (!server)
		return;
	client_close(server, "the server ends");
	loop_disarm(server->loop, &server->accept_timer);
	loop_remove(server->loop, &server->listener);
	loop_remove(server->loop, &server->poison);
	if (server->inherited_fd >= 0)
		close(server->inherited_fd);
	listener_close(&server->socket);
	guest_mem_clear(&server->mem);
	pci_irq_fini(&server->irq);
	if (server->poison_fd >= 0)
		close(server->poison_fd);
	free(server->msix_table);
	free(server->socket_path);
	free(server);
}

/* ---- what the device sees ---- */

struct guest_mem *vfio_server_guest_mem(struct vfio_server *server)
{
	return &server->mem;
}

struct pci_irq *vfio_server_pci_irq(struct vfio_server *server)
{
	return &server->irq;
}

bool vfio_server_attached(const struct vfio_server *server)
{
	return server->state == VFIO_CLIENT_ATTACHED;
}
