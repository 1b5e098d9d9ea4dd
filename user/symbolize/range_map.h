/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranges that overlap, flattened: of those around an address, the one added last is found by one
 * binary search.
 *
 *   [0,100) [20,40) [30,35)   ->   [0,20) 0, [20,30) 1, [30,35) 2, [35,40) 1, [40,100) 0
 */
#ifndef VP_RANGE_MAP_H
#define VP_RANGE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define RANGE_NONE UINT32_MAX

struct addr_range {
	uint32_t lo, hi; /* [lo, hi) */
	uint32_t owner;	 /* the caller's */
};

/* All zero is empty. */
struct range_map {
	struct addr_range *range;
	size_t cnt, cap;
	uint32_t *start, *which; /* flat: from start[i] on it is range which[i] or RANGE_NONE */
	size_t flat_cnt;
};

/* 0 or -ENOMEM. */
int range_map_add(struct range_map *m, struct addr_range r);

/* To be called between adding and finding. Gives back what is not needed. 0 or -ENOMEM. */
int range_map_flatten(struct range_map *m);

/* NULL: none. */
const struct addr_range *range_map_find(const struct range_map *m, uint32_t addr);

size_t range_map_bytes(const struct range_map *m);
void range_map_free(struct range_map *m);

#endif
