/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VERSION: the first message, and the only one with text in it (spec vfio-user 3).
 *
 * The client's JSON is hostile input to a parser, so what reaches the parser is limited first: its
 * size, its depth, its end. Every key that the protocol names must have the type and the range
 * that the protocol gives it; others are ignored.
 */
#include <assert.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "vfio/vfio_internal.h"

#define JSON_DEPTH_MAX 8

/* QEMU takes no reply that is larger than its request, and that has 193 characters of JSON. */
#define JSON_REPLY_MAX 193

COUNTER(vfio_version_major, "VERSION requests for another major version");
COUNTER(vfio_version_json, "VERSION requests with JSON that is malformed or too deep");
COUNTER(vfio_version_value, "VERSION requests with a capability of the wrong type or range");

/* One capability that the protocol names. */
struct capability {
	const char *name;
	json_type type;
	int64_t min, max; /* of an integer */
	int64_t multiple; /* of which it must be one; 0 for any */
	uint32_t *value;  /* where it goes, or NULL */
};

static bool capability_valid(const struct capability *capability, struct json_object *value)
{
	if (!json_object_is_type(value, capability->type))
		return false;
	if (capability->type != json_type_int)
		return true;
	/* What does not fit 64 bits comes out as the nearest that does. */
	int64_t number = json_object_get_int64(value);

	if (number < capability->min || number > capability->max ||
	    (capability->multiple && number % capability->multiple != 0))
		return false;
	if (capability->value)
		*capability->value = (uint32_t)number;
	return true;
}

/* Checks the members of OBJECT that the table names; the others may be anything. */
static bool members_valid(struct json_object *object, const struct capability *table, size_t count)
{
	struct json_object *value;

	for (size_t i = 0; i < count; i++)
		if (json_object_object_get_ex(object, table[i].name, &value) &&
		    !capability_valid(&table[i], value))
			return false;
	return true;
}

static bool capabilities_valid(struct json_object *root, struct vfio_client_limits *limits)
{
	const struct capability capabilities[] = {
	        {"max_msg_fds", json_type_int, 0, 1024, 0, NULL},
	        {"max_data_xfer_size", json_type_int, 1, UINT32_MAX, 0, &limits->max_transfer},
	        {"max_dma_maps", json_type_int, 1, UINT32_MAX, 0, NULL},
	        {"pgsizes", json_type_int, 4096, INT64_MAX, 4096, NULL},
	        {"write_multiple", json_type_boolean, 0, 0, 0, NULL},
	        {"migration", json_type_object, 0, 0, 0, NULL},
	        {"twin_socket", json_type_object, 0, 0, 0, NULL},
	};
	static const struct capability migration[] = {
	        {"pgsize", json_type_int, 4096, INT64_MAX, 4096, NULL},
	        {"max_bitmap_size", json_type_int, 1, INT64_MAX, 0, NULL},
	};
	static const struct capability twin_socket[] = {
	        {"supported", json_type_boolean, 0, 0, 0, NULL},
	        {"fd_index", json_type_int, 0, VFIO_USER_MAX_FDS, 0, NULL},
	};
	struct json_object *object, *inner;

	if (!json_object_is_type(root, json_type_object))
		return false;
	if (!json_object_object_get_ex(root, "capabilities", &object))
		return true;
	if (!json_object_is_type(object, json_type_object) ||
	    !members_valid(object, capabilities, ARRAY_SIZE(capabilities)))
		return false;
	if (json_object_object_get_ex(object, "migration", &inner) &&
	    !members_valid(inner, migration, ARRAY_SIZE(migration)))
		return false;
	return !json_object_object_get_ex(object, "twin_socket", &inner) ||
	       members_valid(inner, twin_socket, ARRAY_SIZE(twin_socket));
}

/* Parses exactly SIZE bytes, the last of which is the NUL. Returns NULL when they are not that. */
static struct json_object *parse(const char *text, size_t size)
{
	struct json_object *root = NULL;

	if (memchr(text, '\0', size) != text + size - 1)
		return NULL;
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX);

	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, text, (int)size);
	json_tokener_free(tokener);
	return root;
}

static int read_capabilities(struct vfio_server *server, const struct message *message)
{
	size_t size = message->body_size - sizeof(struct vfio_user_version);
	const char *text = (const char *)message->body + sizeof(struct vfio_user_version);

	if (size == 0)
		return 0;
	struct json_object *root = parse(text, size);

	if (!root)
		return MESSAGE_REFUSE(vfio_version_json, message, EINVAL, "malformed JSON");
	bool valid = capabilities_valid(root, &server->limits);

	json_object_put(root);
	if (!valid)
		return MESSAGE_REFUSE(vfio_version_value, message, EINVAL,
		                      "a capability has a wrong type or value");
	return 0;
}

static size_t write_capabilities(const struct vfio_server *server, char *text, size_t max)
{
	int size = snprintf(text, max,
	                    "{\"capabilities\":{\"max_msg_fds\":%d,\"max_data_xfer_size\":%u,"
	                    "\"pgsizes\":%u,\"max_dma_maps\":%u%s}}",
	                    VFIO_USER_ANNOUNCED_FDS, VFIO_USER_MAX_TRANSFER, VFIO_USER_PAGE_SIZE,
	                    VFIO_USER_MAX_DMA_MAPS,
	                    server->write_multiple ? ",\"write_multiple\":true" : "");

	assert(size > 0 && (size_t)size < max);
	return (size_t)size + 1;
}

int handle_version(struct vfio_server *server, struct message *message)
{
	struct vfio_user_version version;
	char text[JSON_REPLY_MAX + 1];

	memcpy(&version, message->body, sizeof(version));
	if (version.major != 0)
		return MESSAGE_REFUSE(vfio_version_major, message, EINVAL, "unknown major version");
	server->limits = (struct vfio_client_limits){.max_transfer = VFIO_USER_MAX_TRANSFER};
	int error = read_capabilities(server, message);

	if (error)
		return error;
	/* 0.0 to everybody: there is no minor version that changes anything. */
	version = (struct vfio_user_version){0};
	message_reply(server, message, &version, sizeof(version), text,
	              write_capabilities(server, text, sizeof(text)));
	client_attached(server);
	return 0;
}
