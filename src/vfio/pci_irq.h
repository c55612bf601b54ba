/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interrupts of a PCI function, as its device logic sees them. */
#ifndef ERNIC_VFIO_PCI_IRQ_H
#define ERNIC_VFIO_PCI_IRQ_H

struct pci_irq;

/*
 * Sends MSI-X vector VECTOR (below the count that the function declares). Never blocks. A vector
 * that the client has not connected yet, or while MSI-X is disabled or the function is masked, is
 * latched and sent when it can be.
 */
void pci_irq_raise(struct pci_irq *irq, unsigned vector);

#endif
