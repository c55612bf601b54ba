/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a message is, and who handles it.
 *
 * Everything that holds for all messages is checked here, against one table: direction and flags,
 * the order of the handshake, the size and the descriptors that the command allows. Handlers check
 * the rest. A message is refused by an error reply, unless the client said that it does not want
 * any; the connection goes on (spec vfio-user 12), except before the version is agreed.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "vfio/vfio_internal.h"

COUNTER(vfio_bad_size, "messages with a size below the header's or above the limit");
COUNTER(vfio_bad_flags, "messages with flags or a type that do not exist");
COUNTER(vfio_bad_command, "messages with a command that does not exist");
COUNTER(vfio_bad_order, "messages before VERSION, and second VERSION messages");
COUNTER(vfio_bad_body, "messages whose size is not one that their command has");
COUNTER(vfio_bad_fds, "messages with descriptors that their command does not take");
COUNTER(vfio_unsolicited, "replies to nothing that was asked");
COUNTER(vfio_errors_sent, "error replies sent");

#define HEADER_SIZE ((uint32_t)sizeof(struct vfio_user_header))

/* All facts about the commands of a client (spec vfio-user 4). */
static const struct command {
	const char *name;
	uint32_t min_size, max_size; /* of the body */
	unsigned max_fds;
	bool nestable; /* cannot pull memory or state away under a device that waits */
	message_handler *handle;
} commands[VFIO_USER_COMMAND_COUNT] = {
        [VFIO_USER_VERSION] = {"VERSION", 4, 4 + VFIO_USER_MAX_JSON, 0, false, handle_version},
        [VFIO_USER_DMA_MAP] = {"DMA_MAP", 32, 32, 1, false, handle_dma_map},
        /* SPDK sends a descriptor with it. */
        [VFIO_USER_DMA_UNMAP] = {"DMA_UNMAP", 24, 24, 1, false, handle_dma_unmap},
        [VFIO_USER_GET_INFO] = {"DEVICE_GET_INFO", 16, 16, 0, true, handle_get_info},
        /* SPDK sends as much as it can take. */
        [VFIO_USER_GET_REGION_INFO] = {"DEVICE_GET_REGION_INFO", 32, 8192, 0, true,
                                       handle_get_region_info},
        [VFIO_USER_GET_REGION_IO_FDS] = {"DEVICE_GET_REGION_IO_FDS", 16, 16, 0, true,
                                         handle_get_region_io_fds},
        [VFIO_USER_GET_IRQ_INFO] = {"DEVICE_GET_IRQ_INFO", 16, 16, 0, true, handle_get_irq_info},
        [VFIO_USER_SET_IRQS] = {"DEVICE_SET_IRQS", 20, 20 + 2048, VFIO_USER_MAX_FDS, true,
                                handle_set_irqs},
        [VFIO_USER_REGION_READ] = {"REGION_READ", 16, 16, 0, true, handle_region_read},
        [VFIO_USER_REGION_WRITE] = {"REGION_WRITE", 16, 16 + VFIO_USER_MAX_TRANSFER, 0, true,
                                    handle_region_write},
        [VFIO_USER_RESET] = {"DEVICE_RESET", 0, 0, 0, false, handle_reset},
        [VFIO_USER_REGION_WRITE_MULTI] = {"REGION_WRITE_MULTI", 8, VFIO_USER_MAX_TRANSFER, 0, true,
                                          handle_region_write_multi},
        /* There is no migration (spec vfio-user 4.12). */
        [VFIO_USER_DEVICE_FEATURE] = {"DEVICE_FEATURE", 0, UINT32_MAX, 0, false,
                                      handle_unsupported},
        [VFIO_USER_MIG_DATA_READ] = {"MIG_DATA_READ", 0, UINT32_MAX, 0, false, handle_unsupported},
        [VFIO_USER_MIG_DATA_WRITE] = {"MIG_DATA_WRITE", 0, UINT32_MAX, 0, false,
                                      handle_unsupported},
};

static const struct command *find_command(uint16_t command)
{
	if (command >= ARRAY_SIZE(commands) || !commands[command].handle)
		return NULL;
	return &commands[command];
}

const char *message_name(uint16_t command)
{
	const struct command *found = find_command(command);

	return found ? found->name : "unknown command";
}

/* Whether a write of many regions stays away from the configuration space. */
static bool multi_nestable(const struct message *message)
{
	struct vfio_user_multi_entry entry;

	for (size_t at = sizeof(uint64_t); at + sizeof(entry) <= message->body_size;
	     at += sizeof(entry)) {
		memcpy(&entry, message->body + at, sizeof(entry));
		if (entry.region == VFIO_USER_CONFIG)
			return false;
	}
	return true;
}

/* A write to the configuration space can reset the function or end bus mastering. */
bool message_nestable(const struct message *message)
{
	struct vfio_user_region_access access;
	uint32_t type = message->header.flags & VFIO_USER_TYPE_MASK;
	const struct command *command = find_command(message->header.command);

	if (type == VFIO_USER_TYPE_REPLY || !command)
		return true;
	if (message->header.command == VFIO_USER_REGION_WRITE_MULTI)
		return multi_nestable(message);
	if (message->header.command != VFIO_USER_REGION_WRITE ||
	    message->body_size < sizeof(access))
		return command->nestable;
	memcpy(&access, message->body, sizeof(access));
	return access.region != VFIO_USER_CONFIG;
}

/* A register read takes as long as the region is asked to be read. */
unsigned message_cost(const struct message *message)
{
	struct vfio_user_region_access access;
	uint32_t size = message->body_size;

	if (message->header.command == VFIO_USER_REGION_READ &&
	    message->body_size >= sizeof(access)) {
		memcpy(&access, message->body, sizeof(access));
		if (access.count <= VFIO_USER_MAX_TRANSFER) /* else it will be refused */
			size = access.count;
	}
	return 1 + size / VFIO_MESSAGE_LARGE;
}

/* ---- answers ---- */

static void send_reply(struct vfio_server *server, const struct message *message, uint32_t flags,
                       int error, const struct iovec *iov, unsigned count)
{
	struct vfio_user_header header = {.id = message->header.id,
	                                  .command = message->header.command,
	                                  .size = HEADER_SIZE,
	                                  .flags = VFIO_USER_TYPE_REPLY | flags,
	                                  .error = (uint32_t)error};
	struct iovec pieces[3] = {{.iov_base = &header, .iov_len = sizeof(header)}};
	unsigned used = 1;

	if (message->header.flags & VFIO_USER_NO_REPLY)
		return;
	for (unsigned i = 0; i < count; i++) {
		if (iov[i].iov_len == 0)
			continue;
		header.size += (uint32_t)iov[i].iov_len;
		pieces[used++] = iov[i];
	}
	transport_send(&server->transport, pieces, used);
}

void message_reply(struct vfio_server *server, const struct message *message, const void *body,
                   size_t body_size, const void *data, size_t data_size)
{
	struct iovec iov[2] = {{.iov_base = (void *)(uintptr_t)body, .iov_len = body_size},
	                       {.iov_base = (void *)(uintptr_t)data, .iov_len = data_size}};

	send_reply(server, message, 0, 0, iov, ARRAY_SIZE(iov));
}

static void reply_error(struct vfio_server *server, const struct message *message, int error)
{
	counter_inc(&vfio_errors_sent);
	send_reply(server, message, VFIO_USER_ERROR, error, NULL, 0);
}

void message_reject_size(struct vfio_server *server, const struct message *message)
{
	struct message answer = *message;

	counter_inc(&vfio_bad_size);
	answer.header.flags &= ~VFIO_USER_NO_REPLY;
	reply_error(server, &answer, EINVAL);
}

/* ---- checks ---- */

/* Whether the message may come now, at all. */
static int check_order(const struct vfio_server *server, const struct message *message)
{
	bool version = message->header.command == VFIO_USER_VERSION;

	if (version == (server->state == VFIO_CLIENT_CONNECTED))
		return 0;
	return MESSAGE_REFUSE(vfio_bad_order, message, EINVAL,
	                      version ? "the version is agreed already" : "VERSION must be first");
}

static int check_message(const struct vfio_server *server, const struct message *message)
{
	const struct command *command = find_command(message->header.command);
	int error = check_order(server, message);

	if (error)
		return error;
	if (message->header.flags & ~VFIO_USER_NO_REPLY)
		return MESSAGE_REFUSE(vfio_bad_flags, message, EINVAL, "not a command");
	if (!command)
		return MESSAGE_REFUSE(vfio_bad_command, message, EINVAL, "no such command");
	if (message->body_size < command->min_size || message->body_size > command->max_size)
		return MESSAGE_REFUSE(vfio_bad_body, message, EINVAL, "wrong size");
	if (message->fd_count > command->max_fds)
		return MESSAGE_REFUSE(vfio_bad_fds, message, EINVAL, "too many descriptors");
	return 0;
}

/* A reply of the client. It is answered when it answers nothing, as libvfio-user does. */
static int dispatch_reply(struct vfio_server *server, const struct message *message)
{
	int error = message->fd_count > 0 ? -EPROTO : dma_take_reply(server, message);

	if (error != -ENOENT)
		return error;
	counter_inc(&vfio_unsolicited);
	reply_error(server, message, EINVAL);
	return 0;
}

int message_dispatch(struct vfio_server *server, struct message *message)
{
	bool nested = server->dispatching;
	int error;

	if ((message->header.flags & VFIO_USER_TYPE_MASK) == VFIO_USER_TYPE_REPLY &&
	    server->state == VFIO_CLIENT_ATTACHED)
		return dispatch_reply(server, message);
	error = check_message(server, message);
	if (!error) {
		server->dispatching = true;
		error = commands[message->header.command].handle(server, message);
		server->dispatching = nested;
	}
	if (!error)
		return 0;
	reply_error(server, message, -error);
	return server->state == VFIO_CLIENT_ATTACHED ? 0 : -EPROTO;
}
