/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "stacks.h"

#include "../util/array.h"

#include <string.h>

struct stack_key {
	const struct vp_at *frames;
	size_t cnt;
};

static bool is_same_stack(const void *ctx, uint32_t item, const void *key)
{
	const struct vp_stacks *s = ctx;
	const struct stack_key *k = key;
	const struct vp_stack_ref *ref = &s->stack[item];

	return ref->cnt == k->cnt &&
	       !memcmp(s->frames + ref->first, k->frames, k->cnt * sizeof(*k->frames));
}

static bool is_same_tally(const void *ctx, uint32_t item, const void *key)
{
	const struct vp_tally *a = &((const struct vp_stacks *)ctx)->tally[item], *b = key;

	return a->stack == b->stack && a->proc == b->proc && a->tid == b->tid && a->comm == b->comm;
}

uint64_t vp_stacks_bytes(const struct vp_stacks *s)
{
	return s->frame_cap * sizeof(*s->frames) + s->stack_cap * sizeof(*s->stack) +
	       s->tally_cap * sizeof(*s->tally) +
	       (s->stack_index.cap + s->tally_index.cap) * sizeof(struct vp_index_slot);
}

static int add_stack(struct vp_stacks *s, uint64_t hash, const struct stack_key *k)
{
	if (vp_array_room((void **)&s->frames, &s->frame_cap, s->frame_cnt, k->cnt,
			  sizeof(*s->frames)) ||
	    vp_array_room((void **)&s->stack, &s->stack_cap, s->stack_cnt, 1, sizeof(*s->stack)) ||
	    vp_index_add(&s->stack_index, hash, (uint32_t)s->stack_cnt))
		return -ENOMEM;
	memcpy(s->frames + s->frame_cnt, k->frames, k->cnt * sizeof(*k->frames));
	s->stack[s->stack_cnt++] = (struct vp_stack_ref){(uint32_t)s->frame_cnt, (uint32_t)k->cnt};
	s->frame_cnt += k->cnt;
	return 0;
}

static int add_tally(struct vp_stacks *s, uint64_t hash, const struct vp_tally *t)
{
	if (vp_array_room((void **)&s->tally, &s->tally_cap, s->tally_cnt, 1, sizeof(*s->tally)) ||
	    vp_index_add(&s->tally_index, hash, (uint32_t)s->tally_cnt))
		return -ENOMEM;
	s->tally[s->tally_cnt] = *t;
	s->tally[s->tally_cnt++].count = 1;
	return 0;
}

int vp_stacks_count(struct vp_stacks *s, const struct vp_at *frames, size_t cnt,
		    const struct vp_tally *who, uint64_t max_bytes)
{
	struct stack_key k = {frames, cnt};
	uint64_t hash = vp_hash(0, frames, cnt * sizeof(*frames));
	uint32_t i = vp_index_find(&s->stack_index, hash, is_same_stack, s, &k);
	struct vp_tally t = *who;
	bool full = vp_stacks_bytes(s) + cnt * sizeof(*frames) > max_bytes;

	if (i == VP_INDEX_NONE) {
		if (full || s->frame_cnt + cnt > UINT32_MAX)
			return -ENOSPC;
		if (add_stack(s, hash, &k))
			return -ENOMEM;
		i = (uint32_t)s->stack_cnt - 1;
	}
	t.stack = i;
	t.count = 0;
	hash = vp_hash(0, &t, sizeof(t));
	i = vp_index_find(&s->tally_index, hash, is_same_tally, s, &t);
	if (i != VP_INDEX_NONE) {
		s->tally[i].count++;
		return 0;
	}
	return full ? -ENOSPC : add_tally(s, hash, &t);
}

void vp_stacks_free(struct vp_stacks *s)
{
	free(s->frames);
	free(s->stack);
	free(s->tally);
	vp_index_free(&s->stack_index);
	vp_index_free(&s->tally_index);
	*s = (struct vp_stacks){0};
}
