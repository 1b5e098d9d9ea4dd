/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "rule_dict.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define START_CNT 256

/* A rule as words: it has no padding. */
struct words {
	uint64_t w[sizeof(struct vp_rule) / sizeof(uint64_t)];
};

static struct words words_of(const struct vp_rule *rule)
{
	struct words x;

	memcpy(&x, rule, sizeof(x));
	return x;
}

/* Odd factors spread the bits upwards; three products at a time, not one after another. */
static uint32_t hash(const struct words *x)
{
	uint64_t h = x->w[0] * 0x9e3779b97f4a7c15ULL ^ x->w[1] * 0xbf58476d1ce4e5b9ULL ^
		     x->w[2] * 0x94d049bb133111ebULL;

	return (uint32_t)(h >> 40 ^ h >> 20);
}

static bool is_same(const struct rule_dict *d, uint32_t number, const struct words *x)
{
	struct words y = words_of(&d->rules[number]);

	return x->w[0] == y.w[0] && x->w[1] == y.w[1] && x->w[2] == y.w[2];
}

/* The rule's slot, or the free one where it belongs. */
static uint32_t find_slot(const struct rule_dict *d, const struct words *x)
{
	uint32_t i = hash(x) & (d->slot_cnt - 1);

	while (d->slots[i] && !is_same(d, d->slots[i], x))
		i = (i + 1) & (d->slot_cnt - 1);
	return i;
}

static int grow(struct rule_dict *d)
{
	uint32_t cap = d->cap ? d->cap * 2 : START_CNT;
	struct vp_rule *rules = reallocarray(d->rules, cap, sizeof(*rules));
	uint32_t *slots;

	if (!rules)
		return -ENOMEM;
	d->rules = rules;
	slots = calloc((size_t)cap * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(d->slots);
	d->slots = slots;
	d->slot_cnt = cap * 2;
	d->cap = cap;
	for (uint32_t i = 1; i < d->cnt; i++) {
		struct words x = words_of(&d->rules[i]);

		d->slots[find_slot(d, &x)] = i;
	}
	return 0;
}

int rule_dict_init(struct rule_dict *d)
{
	*d = (struct rule_dict){0};
	if (grow(d))
		return -ENOMEM;
	d->rules[0] = (struct vp_rule){0};
	d->cnt = 1;
	return 0;
}

void rule_dict_free(struct rule_dict *d)
{
	free(d->rules);
	free(d->slots);
	*d = (struct rule_dict){0};
}

int rule_dict_add(struct rule_dict *d, const struct vp_rule *rule)
{
	struct words x = words_of(rule);
	uint32_t slot;

	if (!(x.w[0] | x.w[1] | x.w[2]))
		return 0;
	slot = find_slot(d, &x);
	if (d->slots[slot])
		return (int)d->slots[slot];
	if (d->cnt == VP_RULES_MAX)
		return -ENOSPC;
	if (d->cnt == d->cap) {
		if (grow(d))
			return -ENOMEM;
		slot = find_slot(d, &x);
	}
	d->rules[d->cnt] = *rule;
	d->slots[slot] = d->cnt;
	return (int)d->cnt++;
}
