/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A vfio-user client: what a virtual machine monitor says to the server, and what it could say
 * wrong.
 *
 * One thread, one request at a time. While it waits for a reply it serves the server's own
 * requests to read and write memory (DMA_READ, DMA_WRITE), as spec vfio-user 4.10 wants of a
 * client.
 * Functions return 0 or a negative errno; an error reply of the server is that errno, -EPROTO an
 * answer that the specification does not allow, -ECONNRESET or -EPIPE the end of the connection,
 * -ETIMEDOUT silence.
 */
#ifndef ERNIC_TESTS_DRIVER_VFU_H
#define ERNIC_TESTS_DRIVER_VFU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Commands, spec vfio-user 4. */
enum vfu_command {
	VFU_VERSION = 1,
	VFU_DMA_MAP = 2,
	VFU_DMA_UNMAP = 3,
	VFU_GET_INFO = 4,
	VFU_GET_REGION_INFO = 5,
	VFU_GET_REGION_IO_FDS = 6,
	VFU_GET_IRQ_INFO = 7,
	VFU_SET_IRQS = 8,
	VFU_REGION_READ = 9,
	VFU_REGION_WRITE = 10,
	VFU_DMA_READ = 11,
	VFU_DMA_WRITE = 12,
	VFU_RESET = 13,
	VFU_WRITE_MULTI = 15,
};

#define VFU_FLAG_REPLY    0x01
#define VFU_FLAG_NO_REPLY 0x10
#define VFU_FLAG_ERROR    0x20

#define VFU_REGION_BAR0   0
#define VFU_REGION_BAR2   2
#define VFU_REGION_CONFIG 7

#define VFU_IRQ_MSIX 2
#define VFU_IRQ_ERR  3

#define VFU_DMA_R  1
#define VFU_DMA_RW 3

#define VFU_MAX_DATA (1024 * 1024)

struct vfu_header {
	uint16_t id, command;
	uint32_t size, flags, error;
};

/* Memory that the server reaches by messages. The functions return 0 or a negative errno. */
struct vfu_memory {
	int (*read)(void *arg, uint64_t addr, void *data, size_t size);
	int (*write)(void *arg, uint64_t addr, const void *data, size_t size);
	void *arg;
};

struct vfu {
	int fd;
	uint16_t next_id;
	struct vfu_memory memory;
	unsigned dma_reads, dma_writes; /* served */
	/* Fault: a message goes out in pieces of this many bytes; 0: in one. */
	size_t split;
	uint8_t *buffer; /* of a message of VFU_MAX_DATA */
	bool holding;    /* messages gather in the buffer */
	size_t held;     /* bytes of them */
	char version_reply[256];
	size_t version_reply_size; /* bytes of the whole VERSION reply */
};

/* Connects to the socket at PATH, or takes the connected socket FD when PATH is NULL. Every wait
 * ends after TIMEOUT_MS. */
int vfu_open(struct vfu **vfu, const char *path, int fd, int timeout_ms);
void vfu_close(struct vfu *vfu); /* accepts NULL */

/* Negotiates as QEMU does. */
int vfu_version(struct vfu *vfu);

/* Maps SIZE bytes at guest address ADDR: FD at OFFSET, or memory without a descriptor when FD is
 * -1. FLAGS are VFU_DMA_R and _RW. */
struct vfu_map {
	int fd;
	uint64_t offset, addr, size;
	uint32_t flags;
};
int vfu_dma_map(struct vfu *vfu, const struct vfu_map *map);
int vfu_dma_unmap(struct vfu *vfu, uint64_t addr, uint64_t size);

struct vfu_info {
	uint32_t flags, num_regions, num_irqs;
};
int vfu_get_info(struct vfu *vfu, struct vfu_info *info);

struct vfu_region {
	uint32_t flags;
	uint64_t size;
};
int vfu_region_info(struct vfu *vfu, unsigned index, struct vfu_region *region);
int vfu_irq_info(struct vfu *vfu, unsigned index, uint32_t *flags, uint32_t *count);

/* Gives COUNT eventfds to the interrupts START.. of INDEX; FDS is NULL to take them away. */
int vfu_set_irqs(struct vfu *vfu, unsigned index, unsigned start, unsigned count, const int *fds);
int vfu_disable_irqs(struct vfu *vfu, unsigned index);

int vfu_read(struct vfu *vfu, unsigned region, uint64_t offset, void *data, size_t size);
/* A posted write asks for no reply. */
int vfu_write(struct vfu *vfu, unsigned region, uint64_t offset, const void *data, size_t size);
int vfu_write_posted(struct vfu *vfu, unsigned region, uint64_t offset, const void *data,
                     size_t size);
/* Posted writes between the two arrive at the server in one piece. Nothing else may be sent there.
 */
void vfu_hold(struct vfu *vfu);
int vfu_release(struct vfu *vfu);
int vfu_reset(struct vfu *vfu);

/* Answers what the server asked meanwhile, without waiting. */
int vfu_service(struct vfu *vfu);

/* ---- below the protocol, for hostile clients ---- */

/* Sends bytes as they are, with COUNT descriptors on the first one. */
int vfu_send_raw(struct vfu *vfu, const void *data, size_t size, const int *fds, unsigned count);

/* Sends command COMMAND with BODY and waits for the reply, of which at most REPLY_SIZE bytes behind
 * the header are stored; *REPLY_SIZE becomes what came. */
struct vfu_request {
	uint16_t command;
	const void *body;
	size_t body_size;
	const int *fds;
	unsigned fd_count;
	void *reply;
	size_t reply_size;
};
int vfu_call(struct vfu *vfu, struct vfu_request *request);

/* Waits for the server to close the connection; what it sends before is thrown away. */
int vfu_wait_closed(struct vfu *vfu);

#endif
