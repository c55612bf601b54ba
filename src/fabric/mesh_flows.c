/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers of flows on a connection: 16 bits of index below 16 bits of generation, so that an answer
 * to a flow that has ended does not find the one that took its place.
 */
#include "fabric/mesh_internal.h"

#include <errno.h>
#include <stdlib.h>

#define INDEX(id)      ((id)&0xffffu)
#define GENERATION(id) ((uint16_t)((id) >> 16))

static int grow(struct mesh_flows *flows, uint32_t index)
{
	uint32_t size = flows->size > 0 ? flows->size : 16;

	if (index >= MESH_FLOWS_MAX)
		return -ENOSPC;
	while (size <= index)
		size *= 2;
	if (size == flows->size)
		return 0;
	void **items = reallocarray(flows->items, size, sizeof(*items));

	if (!items)
		return -ENOMEM;
	flows->items = items;
	uint16_t *generations = reallocarray(flows->generations, size, sizeof(*generations));

	if (!generations)
		return -ENOMEM;
	flows->generations = generations;
	for (uint32_t i = flows->size; i < size; i++) {
		items[i] = NULL;
		generations[i] = 0;
	}
	flows->size = size;
	return 0;
}

int mesh_flows_add(struct mesh_flows *flows, void *item, uint32_t *id)
{
	uint32_t index = flows->hint;

	while (index < flows->size && flows->items[index])
		index++;
	if (index >= flows->size) {
		int error = grow(flows, index);

		if (error)
			return error;
	}
	flows->hint = index + 1;
	flows->items[index] = item;
	flows->used++;
	*id = (uint32_t)++flows->generations[index] << 16 | index;
	return 0;
}

int mesh_flows_set(struct mesh_flows *flows, uint32_t id, void *item)
{
	int error = INDEX(id) < flows->size ? 0 : grow(flows, INDEX(id));

	if (error)
		return error;
	if (flows->items[INDEX(id)])
		return -EEXIST;
	flows->items[INDEX(id)] = item;
	flows->generations[INDEX(id)] = GENERATION(id);
	flows->used++;
	return 0;
}

void *mesh_flows_get(const struct mesh_flows *flows, uint32_t id)
{
	if (INDEX(id) >= flows->size || flows->generations[INDEX(id)] != GENERATION(id))
		return NULL;
	return flows->items[INDEX(id)];
}

void mesh_flows_drop(struct mesh_flows *flows, uint32_t id)
{
	if (!mesh_flows_get(flows, id))
		return;
	flows->items[INDEX(id)] = NULL;
	flows->used--;
	if (INDEX(id) < flows->hint)
		flows->hint = INDEX(id);
}

void mesh_flows_free(struct mesh_flows *flows)
{
	free(flows->items);
	free(flows->generations);
	*flows = (struct mesh_flows){0};
}
