/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vfio-user protocol on the wire: numbers, flags and structures (spec vfio-user 2 to 5).
 *
 * All integers are in host order, because both ends are on one host; the data of regions is as the
 * PCI function has it, little endian. Nothing here is aligned in a message: copy, then look.
 */
#ifndef ERNIC_VFIO_PROTOCOL_H
#define ERNIC_VFIO_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

/* Sizes and counts that both ends keep to (spec vfio-user 2 and 3). */
#define VFIO_USER_MAX_TRANSFER  1048576u /* bytes of data in a region access or DMA message */
#define VFIO_USER_MAX_MESSAGE   (VFIO_USER_MAX_TRANSFER + 32u)
#define VFIO_USER_MAX_FDS       253 /* the kernel's limit for one sendmsg() */
#define VFIO_USER_ANNOUNCED_FDS 16
#define VFIO_USER_MAX_DMA_MAPS  65535u
#define VFIO_USER_PAGE_SIZE     4096u
#define VFIO_USER_MAX_JSON      4096u

enum vfio_user_command {
	VFIO_USER_VERSION = 1,
	VFIO_USER_DMA_MAP = 2,
	VFIO_USER_DMA_UNMAP = 3,
	VFIO_USER_GET_INFO = 4,
	VFIO_USER_GET_REGION_INFO = 5,
	VFIO_USER_GET_REGION_IO_FDS = 6,
	VFIO_USER_GET_IRQ_INFO = 7,
	VFIO_USER_SET_IRQS = 8,
	VFIO_USER_REGION_READ = 9,
	VFIO_USER_REGION_WRITE = 10,
	VFIO_USER_DMA_READ = 11,
	VFIO_USER_DMA_WRITE = 12,
	VFIO_USER_RESET = 13,
	VFIO_USER_REGION_WRITE_MULTI = 15,
	VFIO_USER_DEVICE_FEATURE = 16,
	VFIO_USER_MIG_DATA_READ = 17,
	VFIO_USER_MIG_DATA_WRITE = 18,
	VFIO_USER_COMMAND_COUNT
};

struct vfio_user_header {
	uint16_t id; /* the sender's own, echoed and nothing else */
	uint16_t command;
	uint32_t size; /* of the whole message */
	uint32_t flags;
	uint32_t error; /* a positive errno in an error reply */
};
static_assert(sizeof(struct vfio_user_header) == 16, "spec vfio-user 2");

#define VFIO_USER_TYPE_MASK    0x0fu
#define VFIO_USER_TYPE_COMMAND 0u
#define VFIO_USER_TYPE_REPLY   1u
#define VFIO_USER_NO_REPLY     0x10u
#define VFIO_USER_ERROR        0x20u

struct vfio_user_version {
	uint16_t major, minor; /* then JSON with its NUL, or nothing */
};
static_assert(sizeof(struct vfio_user_version) == 4, "spec vfio-user 3");

struct vfio_user_dma_map {
	uint32_t argsz;
	uint32_t flags;
	uint64_t offset; /* into the file */
	uint64_t address;
	uint64_t size;
};
static_assert(sizeof(struct vfio_user_dma_map) == 32, "spec vfio-user 4.1");

#define VFIO_USER_MAP_READ  1u /* the device may read */
#define VFIO_USER_MAP_WRITE 2u
#define VFIO_USER_MAP_MMAP  4u /* draft extension: the descriptor may be mapped */

struct vfio_user_dma_unmap {
	uint32_t argsz;
	uint32_t flags;
	uint64_t address;
	uint64_t size;
};
static_assert(sizeof(struct vfio_user_dma_unmap) == 24, "spec vfio-user 4.2");

#define VFIO_USER_UNMAP_ALL 2u

struct vfio_user_device_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t num_regions;
	uint32_t num_irqs;
};
static_assert(sizeof(struct vfio_user_device_info) == 16, "spec vfio-user 4.3");

#define VFIO_USER_DEVICE_RESET 1u
#define VFIO_USER_DEVICE_PCI   2u

struct vfio_user_region_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t cap_offset;
	uint64_t size;
	uint64_t offset;
};
static_assert(sizeof(struct vfio_user_region_info) == 32, "spec vfio-user 4.4");

#define VFIO_USER_REGION_FLAG_READ  1u
#define VFIO_USER_REGION_FLAG_WRITE 2u

enum vfio_user_region {
	VFIO_USER_BAR0 = 0,
	VFIO_USER_ROM = 6,
	VFIO_USER_CONFIG = 7,
	VFIO_USER_VGA = 8,
	VFIO_USER_REGION_COUNT
};

struct vfio_user_region_io_fds {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};
static_assert(sizeof(struct vfio_user_region_io_fds) == 16, "spec vfio-user 4.5");

struct vfio_user_irq_info {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t count;
};
static_assert(sizeof(struct vfio_user_irq_info) == 16, "spec vfio-user 5");

#define VFIO_USER_IRQ_EVENTFD    1u
#define VFIO_USER_IRQ_MASKABLE   2u
#define VFIO_USER_IRQ_AUTOMASKED 4u

enum vfio_user_irq {
	VFIO_USER_INTX,
	VFIO_USER_MSI,
	VFIO_USER_MSIX,
	VFIO_USER_ERR,
	VFIO_USER_REQ,
	VFIO_USER_IRQ_COUNT
};

struct vfio_user_set_irqs {
	uint32_t argsz;
	uint32_t flags;
	uint32_t index;
	uint32_t start;
	uint32_t count;
};
static_assert(sizeof(struct vfio_user_set_irqs) == 20, "spec vfio-user 5");

#define VFIO_USER_IRQ_DATA_NONE      0x01u
#define VFIO_USER_IRQ_DATA_BOOL      0x02u
#define VFIO_USER_IRQ_DATA_EVENTFD   0x04u
#define VFIO_USER_IRQ_DATA_MASK      0x07u
#define VFIO_USER_IRQ_ACTION_MASK    0x08u
#define VFIO_USER_IRQ_ACTION_UNMASK  0x10u
#define VFIO_USER_IRQ_ACTION_TRIGGER 0x20u
#define VFIO_USER_IRQ_ACTIONS        0x38u

struct vfio_user_region_access {
	uint64_t offset;
	uint32_t region;
	uint32_t count; /* bytes; a write's data follows */
};
static_assert(sizeof(struct vfio_user_region_access) == 16, "spec vfio-user 4.7");

struct vfio_user_multi_entry {
	uint64_t offset;
	uint32_t region;
	uint32_t count; /* 1..8 */
	uint8_t data[8];
};
static_assert(sizeof(struct vfio_user_multi_entry) == 24, "spec vfio-user 4.9");

struct vfio_user_dma {
	uint64_t address;
	uint64_t count; /* bytes; the data follows in a write and in the reply to a read */
};
static_assert(sizeof(struct vfio_user_dma) == 16, "spec vfio-user 4.10");

#endif
