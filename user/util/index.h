/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A hash index over items that live in an array of the caller's: it stores their numbers, the
 * caller compares them.
 */
#ifndef VP_INDEX_H
#define VP_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VP_INDEX_NONE UINT32_MAX

struct vp_index_slot {
	uint64_t hash;
	uint32_t item; /* VP_INDEX_NONE: empty */
};

/* All zero is an empty index. */
struct vp_index {
	struct vp_index_slot *slots;
	size_t cap; /* 0 or a power of two */
	size_t cnt;
};

/* Whether item number `item` is the one that `key` means. */
typedef bool (*vp_index_eq)(const void *ctx, uint32_t item, const void *key);

/* The item with that hash that eq accepts, or VP_INDEX_NONE. */
uint32_t vp_index_find(const struct vp_index *ix, uint64_t hash, vp_index_eq eq, const void *ctx,
		       const void *key);

/* Adds an item that is not there yet. 0 or -ENOMEM. */
int vp_index_add(struct vp_index *ix, uint64_t hash, uint32_t item);

void vp_index_free(struct vp_index *ix);

/* Of `len` bytes, continuing from `seed` (0 to begin). Not for hostile keys beyond counting. */
uint64_t vp_hash(uint64_t seed, const void *data, size_t len);

#endif
