/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handlers of the requests about the device as a whole, guest memory and interrupts. */
#include <errno.h>
#include <string.h>

#include "vfio/vfio_internal.h"

COUNTER(vfio_bad_argsz, "requests with an argsz below the size of their structure");
COUNTER(vfio_bad_index, "requests about regions or interrupts that do not exist");
COUNTER(vfio_map_flags, "DMA_MAP requests with flags that do not exist or make no sense");
COUNTER(vfio_unmap_flags, "DMA_UNMAP requests with flags that are not supported");
COUNTER(vfio_io_fds_flags, "DEVICE_GET_REGION_IO_FDS requests with flags or a count");
COUNTER(vfio_map_failed, "DMA_MAP requests that failed");
COUNTER(vfio_unmap_failed, "DMA_UNMAP requests that failed");
COUNTER(vfio_unsupported, "requests about migration, which does not exist here");
COUNTER(vfio_resets, "device resets that the client asked for");

/* ---- guest memory ---- */

static int validate_dma_map(const struct message *message, const struct vfio_user_dma_map *map)
{
	const uint32_t known = VFIO_USER_MAP_READ | VFIO_USER_MAP_WRITE |
	                       (message->fd_count > 0 ? VFIO_USER_MAP_MMAP : 0);

	if (map->argsz < sizeof(*map))
		return MESSAGE_REFUSE(vfio_bad_argsz, message, EINVAL, "argsz");
	if (map->flags & ~known)
		return MESSAGE_REFUSE(vfio_map_flags, message, EINVAL, "unknown flags");
	return 0;
}

int handle_dma_map(struct vfio_server *server, struct message *message)
{
	struct vfio_user_dma_map map;
	unsigned access = 0;

	memcpy(&map, message->body, sizeof(map));
	int error = validate_dma_map(message, &map);

	if (error)
		return error;
	if (map.flags & VFIO_USER_MAP_READ)
		access |= GUEST_READ;
	if (map.flags & VFIO_USER_MAP_WRITE)
		access |= GUEST_WRITE;
	error = guest_mem_add(&server->mem, map.address, map.size, access,
	                      message->fd_count > 0 ? message->fds[0] : -1, map.offset);
	if (error)
		return MESSAGE_REFUSE(vfio_map_failed, message, -error, strerror(-error));
	message_reply(server, message, NULL, 0, NULL, 0);
	return 0;
}

static int validate_dma_unmap(const struct message *message,
                              const struct vfio_user_dma_unmap *unmap)
{
	if (unmap->argsz < sizeof(*unmap))
		return MESSAGE_REFUSE(vfio_bad_argsz, message, EINVAL, "argsz");
	if (unmap->flags & ~VFIO_USER_UNMAP_ALL)
		return MESSAGE_REFUSE(vfio_unmap_flags, message, EINVAL, "unsupported flags");
	if ((unmap->flags & VFIO_USER_UNMAP_ALL) && (unmap->address != 0 || unmap->size != 0))
		return MESSAGE_REFUSE(vfio_unmap_flags, message, EINVAL, "all, and a range");
	return 0;
}

int handle_dma_unmap(struct vfio_server *server, struct message *message)
{
	struct vfio_user_dma_unmap unmap;

	memcpy(&unmap, message->body, sizeof(unmap));
	int error = validate_dma_unmap(message, &unmap);

	if (error)
		return error;
	/* The device is between two pieces of work and holds no pointers. */
	if (unmap.flags & VFIO_USER_UNMAP_ALL)
		guest_mem_remove_all(&server->mem);
	else
		error = guest_mem_remove(&server->mem, unmap.address, unmap.size);
	if (error)
		return MESSAGE_REFUSE(vfio_unmap_failed, message, -error, strerror(-error));
	message_reply(server, message, &unmap, sizeof(unmap), NULL, 0);
	return 0;
}

/* ---- the device ---- */

int handle_get_info(struct vfio_server *server, struct message *message)
{
	struct vfio_user_device_info info;

	memcpy(&info, message->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return MESSAGE_REFUSE(vfio_bad_argsz, message, EINVAL, "argsz");
	info = (struct vfio_user_device_info){.argsz = sizeof(info),
	                                      .flags =
	                                              VFIO_USER_DEVICE_RESET | VFIO_USER_DEVICE_PCI,
	                                      .num_regions = VFIO_USER_REGION_COUNT,
	                                      .num_irqs = VFIO_USER_IRQ_COUNT};
	message_reply(server, message, &info, sizeof(info), NULL, 0);
	return 0;
}

int handle_get_region_info(struct vfio_server *server, struct message *message)
{
	struct vfio_user_region_info info;

	memcpy(&info, message->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return MESSAGE_REFUSE(vfio_bad_argsz, message, EINVAL, "argsz");
	if (info.index >= VFIO_USER_REGION_COUNT)
		return MESSAGE_REFUSE(vfio_bad_index, message, EINVAL, "no such region");
	/* No region can be mapped: that would end posted writes for all (spec vfio-user 1). */
	info = (struct vfio_user_region_info){.argsz = sizeof(info),
	                                      .index = info.index,
	                                      .size = region_size(server, info.index)};
	if (info.size > 0)
		info.flags = VFIO_USER_REGION_FLAG_READ | VFIO_USER_REGION_FLAG_WRITE;
	message_reply(server, message, &info, sizeof(info), NULL, 0);
	return 0;
}

int handle_get_region_io_fds(struct vfio_server *server, struct message *message)
{
	struct vfio_user_region_io_fds fds;

	memcpy(&fds, message->body, sizeof(fds));
	if (fds.argsz < sizeof(fds))
		return MESSAGE_REFUSE(vfio_bad_argsz, message, EINVAL, "argsz");
	if (fds.index >= VFIO_USER_REGION_COUNT)
		return MESSAGE_REFUSE(vfio_bad_index, message, EINVAL, "no such region");
	if (fds.flags != 0 || fds.count != 0)
		return MESSAGE_REFUSE(vfio_io_fds_flags, message, EINVAL, "flags or count");
	/* There are none: doorbells carry values, and these would only carry the fact. */
	fds.argsz = sizeof(fds);
	message_reply(server, message, &fds, sizeof(fds), NULL, 0);
	return 0;
}

int handle_reset(struct vfio_server *server, struct message *message)
{
	counter_inc(&vfio_resets);
	server_reset(server, VFIO_RESET_DEVICE);
	message_reply(server, message, NULL, 0, NULL, 0);
	return 0;
}

int handle_unsupported(struct vfio_server *server, struct message *message)
{
	(void)server;
	return MESSAGE_REFUSE(vfio_unsupported, message, EINVAL, "not supported");
}

/* ---- interrupts ---- */

int handle_get_irq_info(struct vfio_server *server, struct message *message)
{
	static const uint32_t flags[VFIO_USER_IRQ_COUNT] = {
	        [VFIO_USER_INTX] =
	                VFIO_USER_IRQ_EVENTFD | VFIO_USER_IRQ_MASKABLE | VFIO_USER_IRQ_AUTOMASKED,
	        [VFIO_USER_MSI] = VFIO_USER_IRQ_EVENTFD,
	        [VFIO_USER_MSIX] = VFIO_USER_IRQ_EVENTFD,
	        [VFIO_USER_ERR] = VFIO_USER_IRQ_EVENTFD,
	        [VFIO_USER_REQ] = VFIO_USER_IRQ_EVENTFD,
	};
	struct vfio_user_irq_info info;

	memcpy(&info, message->body, sizeof(info));
	if (info.argsz < sizeof(info))
		return MESSAGE_REFUSE(vfio_bad_argsz, message, EINVAL, "argsz");
	if (info.index >= VFIO_USER_IRQ_COUNT)
		return MESSAGE_REFUSE(vfio_bad_index, message, EINVAL, "no such interrupt");
	info = (struct vfio_user_irq_info){.argsz = sizeof(info),
	                                   .flags = flags[info.index],
	                                   .index = info.index,
	                                   .count = server->irq.index[info.index].count};
	message_reply(server, message, &info, sizeof(info), NULL, 0);
	return 0;
}

int handle_set_irqs(struct vfio_server *server, struct message *message)
{
	struct vfio_user_set_irqs request;

	memcpy(&request, message->body, sizeof(request));
	int error =
	        pci_irq_set(&server->irq, &request, message->body + sizeof(request),
	                    message->body_size - sizeof(request), message->fds, message->fd_count);

	if (error) {
		log_guest("vfio: DEVICE_SET_IRQS refused: flags %#x index %u start %u count %u "
		          "with %u descriptors",
		          request.flags, request.index, request.start, request.count,
		          message->fd_count);
		return error;
	}
	message_reply(server, message, NULL, 0, NULL, 0);
	return 0;
}
