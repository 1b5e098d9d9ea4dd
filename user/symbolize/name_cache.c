/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "name_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64

struct ptr_map_slot {
	uint64_t key;
	void *value; /* NULL: free */
};

/* The finalizer of splitmix64: keys are small numbers and offsets. */
static size_t hash_key(uint64_t k)
{
	k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9ULL;
	k = (k ^ (k >> 27)) * 0x94d049bb133111ebULL;
	return (size_t)(k ^ (k >> 31));
}

static struct ptr_map_slot *map_slot(const struct ptr_map *m, uint64_t key)
{
	size_t i = hash_key(key) & m->mask;

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & m->mask;
	return &m->slots[i];
}

void *ptr_map_get(const struct ptr_map *m, uint64_t key)
{
	return m->slots ? map_slot(m, key)->value : NULL;
}

static int map_grow(struct ptr_map *m)
{
	size_t old = m->slots ? m->mask + 1 : 0;
	struct ptr_map bigger = {.cnt = m->cnt, .mask = (old ? old * 2 : FIRST_SLOTS) - 1};

	bigger.slots = calloc(bigger.mask + 1, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < old; i++) {
		if (m->slots[i].value)
			*map_slot(&bigger, m->slots[i].key) = m->slots[i];
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

int ptr_map_put(struct ptr_map *m, uint64_t key, void *value)
{
	if ((!m->slots || (m->cnt + 1) * 4 > (m->mask + 1) * 3) && map_grow(m))
		return -ENOMEM;

	struct ptr_map_slot *slot = map_slot(m, key);
	m->cnt += !slot->value;
	*slot = (struct ptr_map_slot){key, value};
	return 0;
}

void ptr_map_each(const struct ptr_map *m, void (*fn)(void *value))
{
	for (size_t i = 0; m->slots && i <= m->mask; i++) {
		if (m->slots[i].value)
			fn(m->slots[i].value);
	}
}

void ptr_map_fini(struct ptr_map *m)
{
	free(m->slots);
	*m = (struct ptr_map){0};
}

static size_t hash_string(const char *s)
{
	uint64_t h = 0xcbf29ce484222325ULL; /* FNV-1a */

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	return hash_key(h);
}

static char **set_slot(const struct string_set *set, const char *s)
{
	size_t i = hash_string(s) & set->mask;

	while (set->slots[i] && strcmp(set->slots[i], s) != 0)
		i = (i + 1) & set->mask;
	return &set->slots[i];
}

static int set_grow(struct string_set *set)
{
	size_t old = set->slots ? set->mask + 1 : 0;
	struct string_set bigger = *set;

	bigger.mask = (old ? old * 2 : FIRST_SLOTS) - 1;
	bigger.slots = calloc(bigger.mask + 1, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < old; i++) {
		if (set->slots[i])
			*set_slot(&bigger, set->slots[i]) = set->slots[i];
	}
	free(set->slots);
	*set = bigger;
	return 0;
}

const char *string_set_intern(struct string_set *set, const char *s)
{
	if ((!set->slots || (set->cnt + 1) * 4 > (set->mask + 1) * 3) && set_grow(set))
		return NULL;

	char **slot = set_slot(set, s);
	if (!*slot) {
		*slot = strdup(s);
		if (!*slot)
			return NULL;
		set->cnt++;
		set->bytes += strlen(s) + 1;
	}
	return *slot;
}

void string_set_fini(struct string_set *set)
{
	for (size_t i = 0; set->slots && i <= set->mask; i++)
		free(set->slots[i]);
	free(set->slots);
	*set = (struct string_set){0};
}
