/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration space of the function; inside the room only. */
#ifndef ERNIC_VFIO_PCI_CONFIG_H
#define ERNIC_VFIO_PCI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vfio_pci_config;

#define PCI_CONFIG_SIZE 4096

struct pci_config {
	uint8_t data[PCI_CONFIG_SIZE];
	uint8_t initial[PCI_CONFIG_SIZE];  /* data after a reset */
	uint8_t writable[PCI_CONFIG_SIZE]; /* bits that keep what is written */
	uint8_t clear[PCI_CONFIG_SIZE];    /* bits that a written 1 clears */
};

/* Builds the space of the function that PCI describes, in its state after a reset. */
void pci_config_init(struct pci_config *config, const struct vfio_pci_config *pci);

void pci_config_reset(struct pci_config *config);

/* Total functions: any part of the space (OFFSET + SIZE at most PCI_CONFIG_SIZE), any width. */
void pci_config_read(const struct pci_config *config, size_t offset, void *data, size_t size);

/* Returns true when the guest asks for a function-level reset, which the caller does. */
bool pci_config_write(struct pci_config *config, size_t offset, const void *data, size_t size);

/* What the registers say now. */
bool pci_config_bus_master(const struct pci_config *config); /* may do DMA: enabled, and in D0 */
bool pci_config_msix_enabled(const struct pci_config *config);
bool pci_config_msix_masked(const struct pci_config *config); /* the function mask */

#endif
