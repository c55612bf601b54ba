/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a description to a fabric. */
#include "fabric/fabric_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct fabric_kind *const kinds[] = {&fabric_loopback, &fabric_mesh, &fabric_none,
                                                  &fabric_roce};

static const struct fabric_kind *kind_by_name(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strlen(kinds[i]->name) == length && strncmp(kinds[i]->name, name, length) == 0)
			return kinds[i];
	return NULL;
}

int fabric_create(const struct fabric_place *place, const char *text, struct rdma_fabric **fabric,
                  char *error, size_t size)
{
	const char *colon = strchrnul(text, ':');
	const struct fabric_kind *kind = kind_by_name(text, (size_t)(colon - text));

	if (!kind) {
		snprintf(error, size, "unknown fabric '%.*s' (fabrics: loopback, tcp, none, roce)",
		         (int)(colon - text), text);
		return -EINVAL;
	}
	return kind->create(place, *colon ? colon + 1 : NULL, fabric, error, size);
}

void fabric_destroy(struct rdma_fabric *fabric)
{
	if (!fabric)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i]->ops == fabric->ops) {
			kinds[i]->destroy(fabric);
			return;
		}
}
