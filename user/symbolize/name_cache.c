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

/* Slots of a table after one more entry: never more than three quarters are taken. */
static size_t slots_after(size_t slots, size_t cnt)
{
	if (!slots)
		return FIRST_SLOTS;
	return (cnt + 1) * 4 > slots * 3 ? slots * 2 : slots;
}

static size_t map_slots(const struct ptr_map *m)
{
	return m->slots ? m->mask + 1 : 0;
}

size_t ptr_map_bytes(const struct ptr_map *m)
{
	return map_slots(m) * sizeof(*m->slots);
}

size_t ptr_map_growth(const struct ptr_map *m)
{
	return (slots_after(map_slots(m), m->cnt) - map_slots(m)) * sizeof(*m->slots);
}

int ptr_map_put(struct ptr_map *m, uint64_t key, void *value)
{
	if (ptr_map_growth(m) && map_grow(m))
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

struct string_slot {
	uint64_t hash;
	char *text; /* NULL: free */
};

/* Eight bytes at a time: names of a hundred and more are common. */
static uint64_t hash_string(const char *s, size_t len)
{
	uint64_t h = len, part;

	for (; len >= sizeof(part); s += sizeof(part), len -= sizeof(part)) {
		memcpy(&part, s, sizeof(part));
		h = (h ^ part) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 29;
	}
	part = 0;
	memcpy(&part, s, len);
	return hash_key(h ^ part);
}

static struct string_slot *set_slot(const struct string_set *set, const char *s, uint64_t hash)
{
	size_t i = hash & set->mask;

	while (set->slots[i].text &&
	       (set->slots[i].hash != hash || strcmp(set->slots[i].text, s) != 0))
		i = (i + 1) & set->mask;
	return &set->slots[i];
}

static struct string_slot *free_slot(const struct string_set *set, uint64_t hash)
{
	size_t i = hash & set->mask;

	while (set->slots[i].text)
		i = (i + 1) & set->mask;
	return &set->slots[i];
}

static size_t set_slots(const struct string_set *set)
{
	return set->slots ? set->mask + 1 : 0;
}

static size_t slots_growth(const struct string_set *set)
{
	return (slots_after(set_slots(set), set->cnt) - set_slots(set)) * sizeof(*set->slots);
}

size_t string_set_growth(const struct string_set *set, size_t len)
{
	return slots_growth(set) + len + 1;
}

static int set_grow(struct string_set *set)
{
	size_t old = set_slots(set);
	struct string_set bigger = *set;

	bigger.mask = slots_after(old, set->cnt) - 1;
	bigger.bytes += slots_growth(set);
	bigger.slots = calloc(bigger.mask + 1, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < old; i++) {
		if (set->slots[i].text)
			*free_slot(&bigger, set->slots[i].hash) = set->slots[i];
	}
	free(set->slots);
	*set = bigger;
	return 0;
}

const char *string_set_find(const struct string_set *set, const char *s)
{
	return set->slots ? set_slot(set, s, hash_string(s, strlen(s)))->text : NULL;
}

const char *string_set_intern(struct string_set *set, const char *s)
{
	size_t len = strlen(s);
	uint64_t hash = hash_string(s, len);

	if (slots_growth(set) && set_grow(set))
		return NULL;

	struct string_slot *slot = set_slot(set, s, hash);
	if (!slot->text) {
		slot->text = strdup(s);
		if (!slot->text)
			return NULL;
		slot->hash = hash;
		set->cnt++;
		set->bytes += len + 1;
	}
	return slot->text;
}

void string_set_fini(struct string_set *set)
{
	for (size_t i = 0; i < set_slots(set); i++)
		free(set->slots[i].text);
	free(set->slots);
	*set = (struct string_set){0};
}
