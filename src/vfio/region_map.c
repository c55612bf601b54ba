/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sorted set of guest address ranges behind guest_mem.
 *
 * A tree of two levels: a directory of leaves in address order, each an array of up to LEAF_MAX
 * regions in address order. A search is two binary searches in compact arrays; a change moves at
 * most one leaf's worth of regions. With a virtual IOMMU a guest keeps tens of thousands of
 * regions and changes two for every packet, in no particular order.
 */
#include "vfio/region_map.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_MAX 128 /* 5 KiB a leaf; 65,535 regions make at most about 1,000 of them */

struct region_leaf {
	unsigned count;
	struct region regions[LEAF_MAX];
};

/* The last leaf whose first region starts at or before ADDR, or 0. */
static unsigned find_entry(const struct region_map *map, uint64_t addr)
{
	unsigned low = 0, high = map->entry_count;

	while (high - low > 1) {
		unsigned middle = low + (high - low) / 2;

		if (map->entries[middle].first <= addr)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The first region of LEAF that ends at or after ADDR, or leaf->count. */
static unsigned find_in_leaf(const struct region_leaf *leaf, uint64_t addr)
{
	unsigned low = 0, high = leaf->count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (leaf->regions[middle].last < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct region *region_map_find(const struct region_map *map, uint64_t addr)
{
	if (map->entry_count == 0)
		return NULL;
	unsigned entry = find_entry(map, addr);
	struct region_leaf *leaf = map->entries[entry].leaf;
	unsigned index = find_in_leaf(leaf, addr);

	if (index < leaf->count)
		return &leaf->regions[index];
	if (entry + 1 < map->entry_count)
		return &map->entries[entry + 1].leaf->regions[0];
	return NULL;
}

/* Makes room for a leaf at directory position AT and an empty leaf there. */
static int add_leaf(struct region_map *map, unsigned at)
{
	if (map->entry_count == map->entry_max) {
		unsigned max = map->entry_max ? map->entry_max * 2 : 8;
		struct region_entry *entries = realloc(map->entries, max * sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		map->entries = entries;
		map->entry_max = max;
	}
	struct region_leaf *leaf = malloc(sizeof(*leaf));

	if (!leaf)
		return -ENOMEM;
	leaf->count = 0;
	memmove(&map->entries[at + 1], &map->entries[at],
	        (map->entry_count - at) * sizeof(map->entries[0]));
	map->entries[at].leaf = leaf;
	map->entry_count++;
	return 0;
}

/* Moves the upper half of the full leaf ENTRY into a new one behind it; all but the last region
 * when the map grows at its end, as it does when a client maps upwards. */
static int split_leaf(struct region_map *map, unsigned entry, uint64_t addr)
{
	int error = add_leaf(map, entry + 1);

	if (error)
		return error;
	struct region_leaf *left = map->entries[entry].leaf;
	struct region_leaf *right = map->entries[entry + 1].leaf;
	bool at_end = addr > left->regions[LEAF_MAX - 1].last;
	unsigned keep = at_end ? LEAF_MAX - 1 : LEAF_MAX / 2;

	right->count = LEAF_MAX - keep;
	memcpy(right->regions, &left->regions[keep], right->count * sizeof(struct region));
	left->count = keep;
	map->entries[entry + 1].first = right->regions[0].start;
	return 0;
}

int region_map_insert(struct region_map *map, const struct region *region)
{
	unsigned entry;
	int error = map->entry_count == 0 ? add_leaf(map, 0) : 0;

	if (error)
		return error;
	entry = map->count == 0 ? 0 : find_entry(map, region->start);
	if (map->entries[entry].leaf->count == LEAF_MAX) {
		error = split_leaf(map, entry, region->start);
		if (error)
			return error;
		if (region->start >= map->entries[entry + 1].first)
			entry++;
	}
	struct region_leaf *leaf = map->entries[entry].leaf;
	unsigned index = find_in_leaf(leaf, region->start);

	assert(index == leaf->count || leaf->regions[index].start > region->last);
	memmove(&leaf->regions[index + 1], &leaf->regions[index],
	        (leaf->count - index) * sizeof(leaf->regions[0]));
	leaf->regions[index] = *region;
	leaf->count++;
	map->entries[entry].first = leaf->regions[0].start;
	map->count++;
	return 0;
}

void region_map_remove(struct region_map *map, struct region *region)
{
	unsigned entry = find_entry(map, region->start);
	struct region_leaf *leaf = map->entries[entry].leaf;
	ptrdiff_t index = region - leaf->regions;

	assert(index >= 0 && index < leaf->count);
	leaf->count--;
	map->count--;
	memmove(region, region + 1, (leaf->count - (size_t)index) * sizeof(*region));
	if (leaf->count > 0) {
		map->entries[entry].first = leaf->regions[0].start;
		return;
	}
	free(leaf);
	map->entry_count--;
	memmove(&map->entries[entry], &map->entries[entry + 1],
	        (map->entry_count - entry) * sizeof(map->entries[0]));
}

void region_map_clear(struct region_map *map)
{
	for (unsigned i = 0; i < map->entry_count; i++)
		free(map->entries[i].leaf);
	free(map->entries);
	*map = (struct region_map){0};
}
