/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sorted set of guest address ranges behind guest_mem; inside the room only. */
#ifndef ERNIC_VFIO_REGION_MAP_H
#define ERNIC_VFIO_REGION_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct guest_file;

/* A range of guest addresses that the client mapped. Ranges never overlap. */
struct region {
	uint64_t start, last;    /* both inside; the end may be 2^64 */
	uint8_t *host;           /* where START is, or NULL: reached by messages only */
	struct guest_file *file; /* what HOST is part of; a reference is held */
	unsigned access;         /* enum guest_access bits that the device has */
};

struct region_leaf;

struct region_map {
	struct region_entry {
		uint64_t first; /* start of the leaf's first region */
		struct region_leaf *leaf;
	} * entries;
	unsigned entry_count, entry_max;
	unsigned count; /* regions in all */
};

/* The region that contains ADDR, or else the first one behind it, or NULL. The pointer is good
 * until the map changes. */
struct region *region_map_find(const struct region_map *map, uint64_t addr);

/* Adds a copy of REGION, which must not overlap another. Returns 0 or -ENOMEM. */
int region_map_insert(struct region_map *map, const struct region *region);

/* Removes REGION, a pointer that region_map_find() gave. */
void region_map_remove(struct region_map *map, struct region *region);

/* Frees what the map holds, regions included. */
void region_map_clear(struct region_map *map);

#endif
