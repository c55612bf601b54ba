/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts: MSI-X vectors that are eventfds of the client (spec vfio-user 5).
 *
 * A vector is sent by one write to its eventfd. It cannot be sent while MSI-X is disabled or the
 * function masked (both known from the configuration space), or while the client has not given an
 * eventfd; then its pending bit is set, and whichever change makes sending possible does it. The
 * masks of single vectors are the client's business: it connects a vector elsewhere, or not at
 * all, while it is masked.
 *
 * Clients replace the eventfd of a live vector whenever the guest moves it to another CPU. One
 * thread sends and replaces, so the old descriptor is closed at once.
 *
 * ERR and REQ have a vector each, because clients connect them; nothing sends them. There is no
 * INTx and no MSI.
 *
 * An eventfd is checked to be one, and not to block. A client can make it blocking again later,
 * for the file is shared; it would then stop the one server that serves it.
 */
#include "vfio/pci_irq_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/log.h"

COUNTER(vfio_irq_sent, "interrupts sent to the client");
COUNTER(vfio_irq_latched, "interrupts that had to wait for the client or the guest");
COUNTER(vfio_irq_full, "interrupts that found the eventfd full: one is pending already");
COUNTER(vfio_irq_failed, "interrupts that the eventfd refused");
COUNTER(vfio_irq_not_eventfd, "SET_IRQS requests refused because a descriptor is no eventfd");
COUNTER(vfio_irq_invalid, "SET_IRQS requests refused for their flags, range, data or descriptors");

int pci_irq_init(struct pci_irq *irq, unsigned msix_count)
{
	static const unsigned counts[VFIO_USER_IRQ_COUNT] = {
	        [VFIO_USER_ERR] = 1, [VFIO_USER_REQ] = 1};

	*irq = (struct pci_irq){.proc_fds = -1};
	for (unsigned i = 0; i < VFIO_USER_IRQ_COUNT; i++) {
		struct pci_irq_index *index = &irq->index[i];

		index->count = i == VFIO_USER_MSIX ? msix_count : counts[i];
		index->fds = malloc((index->count + 1) * sizeof(int));
		if (!index->fds) {
			pci_irq_fini(irq);
			return -ENOMEM;
		}
		memset(index->fds, 0xff, (index->count + 1) * sizeof(int)); /* all -1 */
	}
	irq->pending = calloc(1, pci_irq_pba_size(msix_count));
	if (!irq->pending) {
		pci_irq_fini(irq);
		return -ENOMEM;
	}
	/* Held open, so that it works when the file system is out of reach later. */
	irq->proc_fds = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

void pci_irq_fini(struct pci_irq *irq)
{
	pci_irq_disconnect(irq);
	for (unsigned i = 0; i < VFIO_USER_IRQ_COUNT; i++) {
		free(irq->index[i].fds);
		irq->index[i] = (struct pci_irq_index){0};
	}
	free(irq->pending);
	irq->pending = NULL;
	if (irq->proc_fds >= 0)
		close(irq->proc_fds);
	irq->proc_fds = -1;
}

/* ---- sending ---- */

static void signal_fd(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) == sizeof(one))
		counter_inc(&vfio_irq_sent);
	else if (errno == EAGAIN)
		counter_inc(&vfio_irq_full);
	else
		counter_inc(&vfio_irq_failed);
}

void pci_irq_raise(struct pci_irq *irq, unsigned vector)
{
	const struct pci_irq_index *msix = &irq->index[VFIO_USER_MSIX];

	assert(vector < msix->count);
	if (irq->enabled && !irq->masked && msix->fds[vector] >= 0) {
		signal_fd(msix->fds[vector]);
		return;
	}
	irq->pending[vector / 64] |= UINT64_C(1) << vector % 64;
	counter_inc(&vfio_irq_latched);
}

/* Sends VECTOR if it is pending and can be sent. */
static void send_pending(struct pci_irq *irq, unsigned vector)
{
	uint64_t bit = UINT64_C(1) << vector % 64;

	if (!irq->enabled || irq->masked || !(irq->pending[vector / 64] & bit) ||
	    irq->index[VFIO_USER_MSIX].fds[vector] < 0)
		return;
	irq->pending[vector / 64] &= ~bit;
	signal_fd(irq->index[VFIO_USER_MSIX].fds[vector]);
}

void pci_irq_set_function(struct pci_irq *irq, bool enabled, bool masked)
{
	if (irq->enabled && !enabled)
		pci_irq_reset(irq);
	irq->enabled = enabled;
	irq->masked = masked;
	for (unsigned vector = 0; vector < irq->index[VFIO_USER_MSIX].count; vector++)
		send_pending(irq, vector);
}

void pci_irq_reset(struct pci_irq *irq)
{
	memset(irq->pending, 0, pci_irq_pba_size(irq->index[VFIO_USER_MSIX].count));
}

void pci_irq_read_pba(const struct pci_irq *irq, size_t offset, void *data, size_t size)
{
	assert(offset <= pci_irq_pba_size(irq->index[VFIO_USER_MSIX].count) &&
	       size <= pci_irq_pba_size(irq->index[VFIO_USER_MSIX].count) - offset);
	/* The array is little endian; so are the hosts that vfio-user clients run on. */
	memcpy(data, (const uint8_t *)irq->pending + offset, size);
}

/* ---- connecting ---- */

/* Closes the eventfds of COUNT vectors from START. */
static void unassign(struct pci_irq_index *index, unsigned start, unsigned count)
{
	for (unsigned vector = start; vector - start < count; vector++) {
		if (index->fds[vector] >= 0)
			close(index->fds[vector]);
		index->fds[vector] = -1;
	}
}

void pci_irq_disconnect(struct pci_irq *irq)
{
	for (unsigned i = 0; i < VFIO_USER_IRQ_COUNT; i++)
		if (irq->index[i].fds)
			unassign(&irq->index[i], 0, irq->index[i].count);
}

/* Whether FD is an eventfd; if so it is made not to block. */
static bool take_eventfd(const struct pci_irq *irq, int fd)
{
	char name[16], target[32] = "";
	int flags = fcntl(fd, F_GETFL);

	snprintf(name, sizeof(name), "%d", fd);
	if (readlinkat(irq->proc_fds, name, target, sizeof(target) - 1) < 0 ||
	    strcmp(target, "anon_inode:[eventfd]") != 0)
		return false;
	return flags >= 0 && ((flags & O_NONBLOCK) || fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
}

/* Gives the vectors from START their eventfds, and sends those that have waited for it. */
static void assign(struct pci_irq *irq, unsigned which, unsigned start, int *fds, unsigned count)
{
	struct pci_irq_index *index = &irq->index[which];

	unassign(index, start, count);
	for (unsigned i = 0; i < count; i++) {
		index->fds[start + i] = fds[i];
		fds[i] = -1;
		if (which == VFIO_USER_MSIX)
			send_pending(irq, start + i);
	}
}

/* Sends vectors because the client asks for it. DATA has a byte for each, or is NULL for all. */
static void trigger(struct pci_irq *irq, const struct vfio_user_set_irqs *request,
                    const uint8_t *data)
{
	const struct pci_irq_index *index = &irq->index[request->index];

	for (unsigned i = 0; i < request->count; i++) {
		if (data && !data[i])
			continue;
		if (request->index == VFIO_USER_MSIX)
			pci_irq_raise(irq, request->start + i);
		else if (index->fds[request->start + i] >= 0)
			signal_fd(index->fds[request->start + i]);
	}
}

static bool one_bit(uint32_t bits)
{
	return bits != 0 && (bits & (bits - 1)) == 0;
}

/* The form that disables a whole index; it is right even for an index without vectors. */
static bool is_disable(const struct vfio_user_set_irqs *request)
{
	return request->flags == (VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_TRIGGER) &&
	       request->start == 0 && request->count == 0;
}

/* Whether the data and the descriptors are what the flags and the count call for. */
static bool data_valid(const struct vfio_user_set_irqs *request, size_t data_size,
                       unsigned fd_count)
{
	uint32_t kind = request->flags & VFIO_USER_IRQ_DATA_MASK;

	if (kind == VFIO_USER_IRQ_DATA_BOOL)
		return data_size == request->count && fd_count == 0;
	if (data_size != 0)
		return false;
	return fd_count == 0 || (kind == VFIO_USER_IRQ_DATA_EVENTFD && fd_count == request->count);
}

/* The total check of a request; no index has vectors that can be masked. */
static bool request_valid(const struct pci_irq *irq, const struct vfio_user_set_irqs *request,
                          size_t data_size, unsigned fd_count)
{
	if (request->argsz < sizeof(*request) || request->index >= VFIO_USER_IRQ_COUNT ||
	    (request->flags & ~(VFIO_USER_IRQ_DATA_MASK | VFIO_USER_IRQ_ACTIONS)) ||
	    !one_bit(request->flags & VFIO_USER_IRQ_DATA_MASK) ||
	    !one_bit(request->flags & VFIO_USER_IRQ_ACTIONS) ||
	    !data_valid(request, data_size, fd_count))
		return false;
	if (is_disable(request))
		return true;
	unsigned have = irq->index[request->index].count;

	return request->count > 0 && request->start < have &&
	       request->count <= have - request->start &&
	       (request->flags & VFIO_USER_IRQ_ACTION_TRIGGER);
}

int pci_irq_set(struct pci_irq *irq, const struct vfio_user_set_irqs *request, const uint8_t *data,
                size_t data_size, int *fds, unsigned fd_count)
{
	if (!request_valid(irq, request, data_size, fd_count)) {
		counter_inc(&vfio_irq_invalid);
		return -EINVAL;
	}
	for (unsigned i = 0; i < fd_count; i++) {
		if (take_eventfd(irq, fds[i]))
			continue;
		counter_inc(&vfio_irq_not_eventfd);
		return -EINVAL;
	}
	struct pci_irq_index *index = &irq->index[request->index];

	if (is_disable(request)) {
		unassign(index, 0, index->count);
		if (request->index == VFIO_USER_MSIX)
			pci_irq_reset(irq);
	} else if (!(request->flags & VFIO_USER_IRQ_DATA_EVENTFD)) {
		trigger(irq, request, request->flags & VFIO_USER_IRQ_DATA_BOOL ? data : NULL);
	} else if (fd_count > 0) {
		assign(irq, request->index, request->start, fds, fd_count);
	} else {
		unassign(index, request->start, request->count);
	}
	return 0;
}
