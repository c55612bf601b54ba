/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The configuration space of the function (spec vfio-user 9).
 *
 * It is four arrays of bytes: the registers, their values after a reset, and for each bit whether
 * it can be written and whether a written 1 clears it. A write applies the masks byte by byte, so
 * every width, alignment and length is the same case. BAR sizing needs no code of its own: the
 * bits of an address below the BAR's size are read-only zeros.
 *
 * The capabilities come from a table. What a capability does (bus mastering, MSI-X, reset) is asked
 * of the registers by the functions at the end, after every write.
 */
#include "vfio/pci_config.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "base/bytes.h"
#include "vfio/vfio.h"

/* Header, PCI Local Bus 3.0 chapter 6. */
enum {
	PCI_VENDOR = 0x00,
	PCI_DEVICE = 0x02,
	PCI_COMMAND = 0x04,
	PCI_STATUS = 0x06,
	PCI_REVISION = 0x08,
	PCI_CLASS = 0x09,
	PCI_CACHE_LINE = 0x0c,
	PCI_BARS = 0x10,
	PCI_SUBSYSTEM_VENDOR = 0x2c,
	PCI_SUBSYSTEM = 0x2e,
	PCI_CAPABILITIES = 0x34,
	PCI_INTERRUPT_LINE = 0x3c,
};

#define COMMAND_MASTER   0x0004u
#define COMMAND_WRITABLE 0x0557u /* I/O, memory, master, invalidate, parity, SERR, INTx disable */
#define STATUS_HAS_CAPS  0x0010u
#define STATUS_CLEAR     0xf900u
#define BAR_MEMORY_64    0x4u

/* Power management, PCI PM 1.2 section 3.2. */
enum { PM_OFFSET = 0x50, PM_ID = 0x01, PM_SIZE = 8, PM_PMC = 2, PM_PMCSR = 4 };
#define PMC_VERSION     3u
#define PMCSR_STATE     0x3u
#define PMCSR_D0        0u
#define PMCSR_D3        3u
#define PMCSR_SOFT_KEPT 0x8u /* no soft reset between D3 and D0 */

/* MSI-X, PCI Local Bus 3.0 section 6.8.2. */
enum { MSIX_OFFSET = 0x60, MSIX_ID = 0x11, MSIX_SIZE = 12 };
enum { MSIX_CONTROL = 2, MSIX_TABLE = 4, MSIX_PBA = 8 };
#define MSIX_ENABLE        0x8000u
#define MSIX_FUNCTION_MASK 0x4000u

/* PCI Express capability version 2, PCI Express 4.0 section 7.5.3. */
enum { EXP_OFFSET = 0x70, EXP_ID = 0x10, EXP_SIZE = 0x3c };
enum {
	EXP_FLAGS = 0x02,
	EXP_DEVCAP = 0x04,
	EXP_DEVCTL = 0x08,
	EXP_DEVSTA = 0x0a,
	EXP_LNKCAP = 0x0c,
	EXP_LNKCTL = 0x10,
	EXP_LNKSTA = 0x12,
	EXP_DEVCAP2 = 0x24,
	EXP_DEVCTL2 = 0x28,
	EXP_LNKCAP2 = 0x2c,
	EXP_LNKCTL2 = 0x30,
};
#define EXP_FLAGS_V2_ENDPOINT 0x0002u
#define DEVCAP_PAYLOAD_256    0x00000001u
#define DEVCAP_ROLE_ERRORS    0x00008000u
#define DEVCAP_FLR            0x10000000u
#define DEVCTL_INITIAL        0x2810u /* reads of 512 bytes, no snoop, relaxed ordering */
#define DEVCTL_WRITABLE       0x78ffu /* all but what DEVCAP does not offer */
#define DEVCTL_FLR            0x8000u
#define DEVSTA_CLEAR          0x000fu
#define LNKCTL_WRITABLE       0x00cbu /* ASPM, read boundary, common clock, extended synch */
#define DEVCAP2_TIMEOUT_OFF   0x0010u
#define DEVCTL2_WRITABLE      0x0010u
#define LNKCTL2_SPEED         0x000fu

/* ---- fields of the space being built ---- */

static void put16(uint8_t *bytes, size_t offset, unsigned value)
{
	le16 field = le16_make((uint16_t)value);

	memcpy(bytes + offset, &field, sizeof(field));
}

static void put32(uint8_t *bytes, size_t offset, uint32_t value)
{
	le32 field = le32_make(value);

	memcpy(bytes + offset, &field, sizeof(field));
}

static unsigned get16(const uint8_t *bytes, size_t offset)
{
	le16 field;

	memcpy(&field, bytes + offset, sizeof(field));
	return le16_get(field);
}

/* ---- the header ---- */

static void build_header(struct pci_config *config, const struct vfio_pci_config *pci)
{
	uint8_t *data = config->initial;

	put16(data, PCI_VENDOR, pci->vendor_id);
	put16(data, PCI_DEVICE, pci->device_id);
	put16(config->writable, PCI_COMMAND, COMMAND_WRITABLE);
	put16(data, PCI_STATUS, STATUS_HAS_CAPS);
	put16(config->clear, PCI_STATUS, STATUS_CLEAR);
	/* The class is the upper three bytes behind the revision. */
	put32(data, PCI_REVISION, pci->class_code << 8 | pci->revision_id);
	config->writable[PCI_CACHE_LINE] = 0xff;
	put16(data, PCI_SUBSYSTEM_VENDOR, pci->subsystem_vendor_id);
	put16(data, PCI_SUBSYSTEM, pci->subsystem_id);
	config->writable[PCI_INTERRUPT_LINE] = 0xff;
}

static void build_bars(struct pci_config *config, const struct vfio_pci_config *pci)
{
	for (unsigned bar = 0; bar < VFIO_BAR_COUNT; bar += 2) {
		size_t offset = PCI_BARS + bar * 4u;
		uint64_t mask = ~(pci->bar_size[bar] - 1);

		if (pci->bar_size[bar] == 0)
			continue;
		put32(config->initial, offset, BAR_MEMORY_64);
		put32(config->writable, offset, (uint32_t)mask);
		put32(config->writable, offset + 4, (uint32_t)(mask >> 32));
	}
}

/* ---- capabilities ---- */

static void build_pm(struct pci_config *config, const struct vfio_pci_config *pci)
{
	(void)pci;
	put16(config->initial, PM_OFFSET + PM_PMC, PMC_VERSION);
	put16(config->initial, PM_OFFSET + PM_PMCSR, PMCSR_SOFT_KEPT);
	put16(config->writable, PM_OFFSET + PM_PMCSR, PMCSR_STATE);
}

static void build_msix(struct pci_config *config, const struct vfio_pci_config *pci)
{
	put16(config->initial, MSIX_OFFSET + MSIX_CONTROL, pci->msix_count - 1);
	put16(config->writable, MSIX_OFFSET + MSIX_CONTROL, MSIX_ENABLE | MSIX_FUNCTION_MASK);
	put32(config->initial, MSIX_OFFSET + MSIX_TABLE, pci->msix_table_offset | pci->msix_bar);
	put32(config->initial, MSIX_OFFSET + MSIX_PBA, pci->msix_pba_offset | pci->msix_bar);
}

static void build_express(struct pci_config *config, const struct vfio_pci_config *pci)
{
	uint8_t *data = config->initial + EXP_OFFSET, *writable = config->writable + EXP_OFFSET;
	unsigned link = pci->link_width << 4 | pci->link_speed;

	put16(data, EXP_FLAGS, EXP_FLAGS_V2_ENDPOINT);
	put32(data, EXP_DEVCAP, DEVCAP_PAYLOAD_256 | DEVCAP_ROLE_ERRORS | DEVCAP_FLR);
	put16(data, EXP_DEVCTL, DEVCTL_INITIAL);
	put16(writable, EXP_DEVCTL, DEVCTL_WRITABLE);
	put16(config->clear + EXP_OFFSET, EXP_DEVSTA, DEVSTA_CLEAR);
	put32(data, EXP_LNKCAP, link);
	put16(writable, EXP_LNKCTL, LNKCTL_WRITABLE);
	put16(data, EXP_LNKSTA, link);
	put32(data, EXP_DEVCAP2, DEVCAP2_TIMEOUT_OFF);
	put16(writable, EXP_DEVCTL2, DEVCTL2_WRITABLE);
	/* One bit a speed, from bit 1 on; without it guests do not know speeds above 5 GT/s. */
	put32(data, EXP_LNKCAP2, ((1u << pci->link_speed) - 1) << 1);
	put16(data, EXP_LNKCTL2, pci->link_speed);
	put16(writable, EXP_LNKCTL2, LNKCTL2_SPEED);
}

/* In the order of the list that the guest walks. */
static const struct capability {
	uint8_t id;
	uint8_t offset;
	uint8_t size;
	void (*build)(struct pci_config *config, const struct vfio_pci_config *pci);
} capabilities[] = {
        {PM_ID, PM_OFFSET, PM_SIZE, build_pm},
        {MSIX_ID, MSIX_OFFSET, MSIX_SIZE, build_msix},
        {EXP_ID, EXP_OFFSET, EXP_SIZE, build_express},
};

static void build_capabilities(struct pci_config *config, const struct vfio_pci_config *pci)
{
	size_t link = PCI_CAPABILITIES, end = 0x40;

	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		const struct capability *capability = &capabilities[i];

		assert(capability->offset >= end && capability->offset % 4 == 0);
		end = capability->offset + (size_t)capability->size;
		config->initial[link] = capability->offset;
		config->initial[capability->offset] = capability->id;
		link = capability->offset + 1u;
		capability->build(config, pci);
	}
	assert(end <= 0x100);
}

void pci_config_init(struct pci_config *config, const struct vfio_pci_config *pci)
{
	*config = (struct pci_config){0};
	build_header(config, pci);
	build_bars(config, pci);
	build_capabilities(config, pci);
	pci_config_reset(config);
}

void pci_config_reset(struct pci_config *config)
{
	memcpy(config->data, config->initial, sizeof(config->data));
}

/* ---- access ---- */

void pci_config_read(const struct pci_config *config, size_t offset, void *data, size_t size)
{
	assert(offset <= PCI_CONFIG_SIZE && size <= PCI_CONFIG_SIZE - offset);
	memcpy(data, config->data + offset, size);
}

/* Whether a write of SIZE bytes at OFFSET covers the byte AT. */
static bool covers(size_t offset, size_t size, size_t at)
{
	return at >= offset && at - offset < size;
}

bool pci_config_write(struct pci_config *config, size_t offset, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint8_t state = config->data[PM_OFFSET + PM_PMCSR];
	const size_t flr_byte = EXP_OFFSET + EXP_DEVCTL + 1;

	assert(offset <= PCI_CONFIG_SIZE && size <= PCI_CONFIG_SIZE - offset);
	for (size_t i = 0; i < size; i++) {
		size_t at = offset + i;
		uint8_t keep = (uint8_t)~config->writable[at];

		config->data[at] =
		        (uint8_t)((config->data[at] & keep & ~(bytes[i] & config->clear[at])) |
		                  (bytes[i] & config->writable[at]));
	}
	/* D1 and D2 do not exist; asking for them changes nothing. */
	unsigned asked = config->data[PM_OFFSET + PM_PMCSR] & PMCSR_STATE;

	if (asked != PMCSR_D0 && asked != PMCSR_D3)
		config->data[PM_OFFSET + PM_PMCSR] = state;
	return covers(offset, size, flr_byte) && (bytes[flr_byte - offset] & (DEVCTL_FLR >> 8));
}

bool pci_config_bus_master(const struct pci_config *config)
{
	return (get16(config->data, PCI_COMMAND) & COMMAND_MASTER) &&
	       (get16(config->data, PM_OFFSET + PM_PMCSR) & PMCSR_STATE) == PMCSR_D0;
}

bool pci_config_msix_enabled(const struct pci_config *config)
{
	return get16(config->data, MSIX_OFFSET + MSIX_CONTROL) & MSIX_ENABLE;
}

bool pci_config_msix_masked(const struct pci_config *config)
{
	return get16(config->data, MSIX_OFFSET + MSIX_CONTROL) & MSIX_FUNCTION_MASK;
}
