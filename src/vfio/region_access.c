/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers of region reads and writes: doorbells, registers, configuration space.
 *
 * In BARs the device sees accesses of 1 to 8 bytes as they were made, and longer ones, which no
 * guest makes, in pieces of 8. The MSI-X table and the pending bits, which stand somewhere in a
 * BAR, are answered here: the pending bits from the interrupts, the table from plain storage,
 * because clients emulate it and act on it (spec vfio-user 9).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vfio/vfio_internal.h"

#define MSIX_ENTRY_SIZE 16u
#define ACCESS_MAX      8u
/* Reads up to this size are answered from the stack. */
#define READ_ON_STACK   4096u

COUNTER(vfio_access_region, "accesses to regions that do not exist");
COUNTER(vfio_access_range, "accesses that leave their region");
COUNTER(vfio_access_large, "accesses of more than the largest transfer");
COUNTER(vfio_write_size, "writes whose size is not their count");
COUNTER(vfio_multi_size, "REGION_WRITE_MULTI requests whose size is not their count");
COUNTER(vfio_multi_stopped, "REGION_WRITE_MULTI requests with an entry that is not valid");
COUNTER(vfio_flr, "function-level resets that the guest asked for");

uint64_t region_size(const struct vfio_server *server, uint32_t region)
{
	if (region < VFIO_BAR_COUNT)
		return server->pci.bar_size[region];
	return region == VFIO_USER_CONFIG ? PCI_CONFIG_SIZE : 0;
}

/* ---- configuration space and reset ---- */

/* Makes memory and interrupts do what the configuration space says. */
static void apply_config(struct vfio_server *server)
{
	server->mem.bus_master = pci_config_bus_master(&server->space);
	pci_irq_set_function(&server->irq, pci_config_msix_enabled(&server->space),
	                     pci_config_msix_masked(&server->space));
}

void msix_table_reset(struct vfio_server *server)
{
	for (unsigned i = 0; i < server->pci.msix_count; i++) {
		uint8_t *entry = server->msix_table + i * MSIX_ENTRY_SIZE;

		memset(entry, 0, MSIX_ENTRY_SIZE);
		entry[12] = 1; /* masked */
	}
}

void server_reset(struct vfio_server *server, enum vfio_reset reason)
{
	server->mem.bus_master = false;
	server->ops->reset(server->device, reason);
	pci_config_reset(&server->space);
	apply_config(server);
	pci_irq_reset(&server->irq);
	msix_table_reset(server);
}

static void write_config(struct vfio_server *server, uint64_t offset, const uint8_t *data,
                         size_t size)
{
	bool flr = pci_config_write(&server->space, (size_t)offset, data, size);

	apply_config(server);
	if (flr) {
		counter_inc(&vfio_flr);
		server_reset(server, VFIO_RESET_FUNCTION);
	}
}

/* ---- BARs ---- */

/* Whether AT is inside the SIZE bytes at START; *LEFT gets the bytes from AT to the next border. */
static bool inside(uint64_t at, uint64_t start, uint64_t size, uint64_t *left)
{
	if (at < start) {
		if (start - at < *left)
			*left = start - at;
		return false;
	}
	if (at - start >= size)
		return false;
	if (size - (at - start) < *left)
		*left = size - (at - start);
	return true;
}

/* One access that is all of the device, all of the table, or all of the pending bits. */
struct bar_piece {
	unsigned bar;
	uint64_t offset;
	size_t size;
	enum { PIECE_DEVICE, PIECE_TABLE, PIECE_PBA } kind;
};

/* The first piece of an access of SIZE bytes. */
static struct bar_piece next_piece(const struct vfio_server *server, unsigned bar, uint64_t offset,
                                   uint64_t size)
{
	struct bar_piece piece = {.bar = bar, .offset = offset, .kind = PIECE_DEVICE};
	const struct vfio_pci_config *pci = &server->pci;

	if (bar == pci->msix_bar) {
		if (inside(offset, pci->msix_table_offset, pci->msix_count * MSIX_ENTRY_SIZE,
		           &size))
			piece.kind = PIECE_TABLE;
		else if (inside(offset, pci->msix_pba_offset, pci_irq_pba_size(pci->msix_count),
		                &size))
			piece.kind = PIECE_PBA;
	}
	if (size > ACCESS_MAX && piece.kind == PIECE_DEVICE)
		size = ACCESS_MAX - offset % ACCESS_MAX;
	piece.size = (size_t)size;
	return piece;
}

static void read_bar(struct vfio_server *server, unsigned bar, uint64_t offset, uint8_t *data,
                     size_t size)
{
	while (size > 0) {
		struct bar_piece piece = next_piece(server, bar, offset, size);

		if (piece.kind == PIECE_DEVICE)
			server->ops->bar_read(server->device, bar, offset, data, piece.size);
		else if (piece.kind == PIECE_TABLE)
			memcpy(data, server->msix_table + (offset - server->pci.msix_table_offset),
			       piece.size);
		else
			pci_irq_read_pba(&server->irq,
			                 (size_t)(offset - server->pci.msix_pba_offset), data,
			                 piece.size);
		offset += piece.size;
		data += piece.size;
		size -= piece.size;
	}
}

static void write_bar(struct vfio_server *server, unsigned bar, uint64_t offset,
                      const uint8_t *data, size_t size)
{
	while (size > 0) {
		struct bar_piece piece = next_piece(server, bar, offset, size);

		if (piece.kind == PIECE_DEVICE)
			server->ops->bar_write(server->device, bar, offset, data, piece.size);
		else if (piece.kind == PIECE_TABLE)
			memcpy(server->msix_table + (offset - server->pci.msix_table_offset), data,
			       piece.size);
		/* The pending bits are read-only. */
		offset += piece.size;
		data += piece.size;
		size -= piece.size;
	}
}

/* ---- messages ---- */

static void write_region(struct vfio_server *server, uint32_t region, uint64_t offset,
                         const uint8_t *data, size_t size)
{
	if (region == VFIO_USER_CONFIG)
		write_config(server, offset, data, size);
	else
		write_bar(server, region, offset, data, size);
}

/* The check of one access, for every kind of message. */
static int validate_access(const struct vfio_server *server, const struct message *message,
                           const struct vfio_user_region_access *access)
{
	if (access->region >= VFIO_USER_REGION_COUNT)
		return MESSAGE_REFUSE(vfio_access_region, message, EINVAL, "no such region");
	if (access->count > VFIO_USER_MAX_TRANSFER)
		return MESSAGE_REFUSE(vfio_access_large, message, EINVAL, "too large");
	uint64_t size = region_size(server, access->region);

	if (access->offset > size || access->count > size - access->offset)
		return MESSAGE_REFUSE(vfio_access_range, message, EINVAL, "outside the region");
	return 0;
}

int handle_region_read(struct vfio_server *server, struct message *message)
{
	struct vfio_user_region_access access;
	uint8_t on_stack[READ_ON_STACK], *data = on_stack;

	memcpy(&access, message->body, sizeof(access));
	int error = validate_access(server, message, &access);

	if (error)
		return error;
	if (access.count > sizeof(on_stack)) {
		data = malloc(access.count);
		if (!data)
			return -ENOMEM;
	}
	memset(data, 0, access.count);
	if (access.region == VFIO_USER_CONFIG)
		pci_config_read(&server->space, (size_t)access.offset, data, access.count);
	else
		read_bar(server, access.region, access.offset, data, access.count);
	message_reply(server, message, &access, sizeof(access), data, access.count);
	if (data != on_stack)
		free(data);
	return 0;
}

int handle_region_write(struct vfio_server *server, struct message *message)
{
	struct vfio_user_region_access access;

	memcpy(&access, message->body, sizeof(access));
	int error = validate_access(server, message, &access);

	if (error)
		return error;
	if (message->body_size - sizeof(access) != access.count)
		return MESSAGE_REFUSE(vfio_write_size, message, EINVAL, "size is not count");
	write_region(server, access.region, access.offset, message->body + sizeof(access),
	             access.count);
	message_reply(server, message, &access, sizeof(access), NULL, 0);
	return 0;
}

/* Executes one entry; false when it is not valid. */
static bool write_entry(struct vfio_server *server, const struct message *message,
                        const uint8_t *bytes)
{
	struct vfio_user_multi_entry entry;

	memcpy(&entry, bytes, sizeof(entry));
	struct vfio_user_region_access access = {
	        .offset = entry.offset, .region = entry.region, .count = entry.count};

	if (entry.count == 0 || entry.count > sizeof(entry.data) ||
	    validate_access(server, message, &access) < 0)
		return false;
	write_region(server, entry.region, entry.offset, entry.data, entry.count);
	return true;
}

int handle_region_write_multi(struct vfio_server *server, struct message *message)
{
	const size_t entry_size = sizeof(struct vfio_user_multi_entry);
	size_t rest = message->body_size - sizeof(uint64_t);
	uint64_t count, done;

	memcpy(&count, message->body, sizeof(count));
	if (rest % entry_size != 0 || count != rest / entry_size)
		return MESSAGE_REFUSE(vfio_multi_size, message, EINVAL, "size is not count");
	for (done = 0; done < count; done++)
		if (!write_entry(server, message,
		                 message->body + sizeof(count) + done * entry_size))
			break;
	if (done < count)
		counter_inc(&vfio_multi_stopped);
	message_reply(server, message, &done, sizeof(done), NULL, 0);
	return 0;
}
