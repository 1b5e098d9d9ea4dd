/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_CAP 64

static size_t probe(const struct vp_index *ix, size_t i)
{
	return i & (ix->cap - 1);
}

uint32_t vp_index_find(const struct vp_index *ix, uint64_t hash, vp_index_eq eq, const void *ctx,
		       const void *key)
{
	if (ix->cap == 0)
		return VP_INDEX_NONE;

	for (size_t i = probe(ix, hash);; i = probe(ix, i + 1)) {
		const struct vp_index_slot *s = &ix->slots[i];

		if (s->item == VP_INDEX_NONE)
			return VP_INDEX_NONE;
		if (s->hash == hash && eq(ctx, s->item, key))
			return s->item;
	}
}

static void put(struct vp_index *ix, uint64_t hash, uint32_t item)
{
	size_t i = probe(ix, hash);

	while (ix->slots[i].item != VP_INDEX_NONE)
		i = probe(ix, i + 1);
	ix->slots[i] = (struct vp_index_slot){hash, item};
}

static int grow(struct vp_index *ix)
{
	struct vp_index bigger = {.cap = ix->cap ? ix->cap * 2 : MIN_CAP, .cnt = ix->cnt};

	bigger.slots = malloc(bigger.cap * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < bigger.cap; i++)
		bigger.slots[i].item = VP_INDEX_NONE;
	for (size_t i = 0; i < ix->cap; i++) {
		if (ix->slots[i].item != VP_INDEX_NONE)
			put(&bigger, ix->slots[i].hash, ix->slots[i].item);
	}
	free(ix->slots);
	*ix = bigger;
	return 0;
}

int vp_index_add(struct vp_index *ix, uint64_t hash, uint32_t item)
{
	if (ix->cnt * 4 >= ix->cap * 3) {
		int err = grow(ix);

		if (err)
			return err;
	}
	put(ix, hash, item);
	ix->cnt++;
	return 0;
}

void vp_index_free(struct vp_index *ix)
{
	free(ix->slots);
	*ix = (struct vp_index){0};
}

/* A multiply-xor hash over 8-byte words; the final mix is that of MurmurHash3's finalizer. */
static uint64_t mix(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdULL;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ULL;
	return h ^ (h >> 33);
}

uint64_t vp_hash(uint64_t seed, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = seed ^ (len * 0x9e3779b97f4a7c15ULL);

	while (len > 0) {
		uint64_t word = 0;
		size_t n = len < sizeof(word) ? len : sizeof(word);

		memcpy(&word, p, n);
		h = mix(h ^ word) * 0x9e3779b97f4a7c15ULL;
		p += n;
		len -= n;
	}
	return mix(h);
}
