/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two small hash tables behind the symbolizer: 64-bit keys to pointers, and strings to one
 * stable copy each. Neither locks.
 */
#ifndef VP_NAME_CACHE_H
#define VP_NAME_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* Zero-initialized is empty. Values are borrowed and not NULL. */
struct ptr_map {
	struct ptr_map_slot *slots;
	size_t cnt, mask;
};

void *ptr_map_get(const struct ptr_map *m, uint64_t key);
int ptr_map_put(struct ptr_map *m, uint64_t key, void *value); /* replaces; -ENOMEM */
void ptr_map_fini(struct ptr_map *m);
size_t ptr_map_bytes(const struct ptr_map *m);
/* So many bytes more may it take after the next ptr_map_put. */
size_t ptr_map_growth(const struct ptr_map *m);
/* Calls fn for every value. */
void ptr_map_each(const struct ptr_map *m, void (*fn)(void *value));

/* Zero-initialized is empty. */
struct string_set {
	struct string_slot *slots;
	size_t cnt, mask;
	uint64_t bytes; /* of the strings and of slots */
};

/* The set's copy of s, the same pointer for equal strings; NULL: no memory. */
const char *string_set_intern(struct string_set *set, const char *s);
/* The same if it is there, else NULL. */
const char *string_set_find(const struct string_set *set, const char *s);
/* So many bytes more would it take with another string of that length. */
size_t string_set_growth(const struct string_set *set, size_t len);
void string_set_fini(struct string_set *set);

#endif
