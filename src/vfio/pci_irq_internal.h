/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interrupts as the server connects them to the client; inside the room only. */
#ifndef ERNIC_VFIO_PCI_IRQ_INTERNAL_H
#define ERNIC_VFIO_PCI_IRQ_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vfio/pci_irq.h"
#include "vfio/protocol.h"

struct pci_irq {
	struct pci_irq_index {
		unsigned count; /* vectors */
		int *fds;       /* an eventfd for each, or -1 */
	} index[VFIO_USER_IRQ_COUNT];
	uint64_t *pending; /* MSI-X vectors that wait, one bit each: the pending bit array */
	bool enabled, masked;
	int proc_fds; /* the directory that tells what a descriptor is, or -1 */
};

/* Makes the interrupts of a function with MSIX_COUNT vectors. Returns 0 or a negative errno. */
int pci_irq_init(struct pci_irq *irq, unsigned msix_count);
void pci_irq_fini(struct pci_irq *irq);

/* What the MSI-X capability says now. Switching it off drops what is pending; switching it on or
 * unmasking it sends that. */
void pci_irq_set_function(struct pci_irq *irq, bool enabled, bool masked);

/* Forgets all pending vectors. */
void pci_irq_reset(struct pci_irq *irq);

/* Closes all eventfds. */
void pci_irq_disconnect(struct pci_irq *irq);

/*
 * Executes a SET_IRQS request (spec vfio-user 5), whose DATA_SIZE bytes of DATA and FDS are as they
 * arrived. Descriptors that are kept are replaced by -1 in FDS. Returns 0, or -EINVAL and nothing
 * was done.
 */
int pci_irq_set(struct pci_irq *irq, const struct vfio_user_set_irqs *request, const uint8_t *data,
                size_t data_size, int *fds, unsigned fd_count);

/* Reads the pending bit array: SIZE bytes at OFFSET, inside pci_irq_pba_size(). */
void pci_irq_read_pba(const struct pci_irq *irq, size_t offset, void *data, size_t size);

/* Bytes of the pending bit array of COUNT vectors. */
static inline size_t pci_irq_pba_size(unsigned count)
{
	return (count + 63u) / 64u * sizeof(uint64_t);
}

#endif
