/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vfio-user server: one PCI function for one client at a time.
 *
 * The server owns the socket, the configuration space, the interrupts and the map of guest memory.
 * The device behind it is a table of functions and knows nothing of messages.
 */
#ifndef ERNIC_VFIO_VFIO_H
#define ERNIC_VFIO_VFIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"
#include "vfio/guest_mem.h"
#include "vfio/pci_irq.h"

struct vfio_server;

#define VFIO_BAR_COUNT 6

/* Why a device is reset. */
enum vfio_reset {
	VFIO_RESET_DEVICE,     /* the client asked (machine reset) */
	VFIO_RESET_FUNCTION,   /* the guest wrote FLR */
	VFIO_RESET_DISCONNECT, /* the client is gone; guest memory is too when this returns */
};

/* What the PCI function looks like. Every BAR is 64-bit memory; odd indices belong to the even one
 * before. Sizes are in bytes, powers of two of at least 4096, or 0 for none. */
struct vfio_pci_config {
	uint16_t vendor_id, device_id, subsystem_vendor_id, subsystem_id;
	uint32_t class_code; /* 24 bits */
	uint8_t revision_id;
	uint64_t bar_size[VFIO_BAR_COUNT];
	unsigned msix_count; /* 1..2048 vectors */
	unsigned msix_bar;
	uint32_t msix_table_offset, msix_pba_offset;
	unsigned link_speed; /* PCI Express, in GT/s classes: 1 = 2.5, 2 = 5, 3 = 8, 4 = 16 */
	unsigned link_width; /* lanes */
};

/*
 * The device. Register functions are total: they get any offset inside the BAR with any SIZE from
 * 1 to 8 that does not leave it, aligned or not, and always succeed. They must not touch guest
 * memory (guest_mem.h says why); what needs it schedules work.
 */
struct vfio_device_ops {
	void (*bar_read)(void *device, unsigned bar, uint64_t offset, void *data, size_t size);
	void (*bar_write)(void *device, unsigned bar, uint64_t offset, const void *data,
	                  size_t size);
	/* Stop all DMA and interrupts and become as after power-on, before returning. */
	void (*reset)(void *device, enum vfio_reset reason);
};

struct vfio_server_config {
	struct loop *loop;
	const struct vfio_pci_config *pci; /* copied */
	const struct vfio_device_ops *ops;
	void *device;
	const char *socket_path; /* or NULL when FD is given */
	mode_t socket_mode;
	int fd; /* listening or connected socket that was inherited, or -1; the server closes it */
	bool write_multiple; /* advertise REGION_WRITE_MULTI */
};

/*
 * Makes a server, not yet reachable. guest_mem and pci_irq exist from now on.
 * Returns 0 or a negative errno.
 */
int vfio_server_create(const struct vfio_server_config *config, struct vfio_server **server);

/* Where the device reaches memory and interrupts; valid as long as the server. */
struct guest_mem *vfio_server_guest_mem(struct vfio_server *server);
struct pci_irq *vfio_server_pci_irq(struct vfio_server *server);

/*
 * Opens the socket and serves clients from the loop, one after the other; when the only client
 * there can be, that of an inherited connection, is gone, the loop is stopped. Returns 0 or
 *   -EADDRINUSE  a living server owns the path (a stale socket is replaced)
 *   -EEXIST      the path is something else than a socket
 *   -ENOTSOCK, -EPROTOTYPE  the inherited descriptor is no UNIX stream socket
 *   another negative errno of bind(), listen() or getsockopt().
 */
int vfio_server_start(struct vfio_server *server);

/*
 * A recording of what a client sends: SIZE bytes of messages, VERSION first. Both functions may be
 * NULL. ATTACH puts descriptors that belong to the message with this header (struct
 * vfio_user_header) into FDS, at most MAX, and returns their number; they are the server's then.
 * REPLY gets every message that the server sends.
 */
struct vfio_replay {
	const void *data;
	size_t size;
	unsigned (*attach)(void *arg, const void *header, int *fds, unsigned max);
	void (*reply)(void *arg, const struct iovec *iov, unsigned count);
	void *arg;
};

/*
 * Serves a recording as if a client sent it, and turns the loop as it goes; the client is gone when
 * it returns. Not from a callback of the loop. Returns 0, -EBUSY when a client is connected, or
 * another negative errno; refused messages are no error.
 */
int vfio_server_replay(struct vfio_server *server, const struct vfio_replay *recording);

/* The same with the bytes of the file at PATH, and no descriptors. */
int vfio_server_replay_file(struct vfio_server *server, const char *path);

/* Whether a client is attached: it has negotiated a version. */
bool vfio_server_attached(const struct vfio_server *server);

/* Disconnects the client, removes the socket that vfio_server_start() made. The device must still
 * be there to be reset. Accepts NULL. */
void vfio_server_destroy(struct vfio_server *server);

#endif
