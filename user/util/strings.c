/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "strings.h"

#include "array.h"

#include <stdlib.h>
#include <string.h>

static bool is_same(const void *ctx, uint32_t item, const void *key)
{
	return !strcmp(((const struct vp_strings *)ctx)->str[item], key);
}

uint32_t vp_strings_add(struct vp_strings *t, const char *s)
{
	uint64_t hash = vp_hash(0, s, strlen(s));
	uint32_t i = vp_index_find(&t->index, hash, is_same, t, s);
	char *copy;

	if (i != VP_INDEX_NONE)
		return i;
	if (vp_array_room((void **)&t->str, &t->cap, t->cnt, 1, sizeof(*t->str)))
		return VP_INDEX_NONE;
	copy = strdup(s);
	if (!copy || vp_index_add(&t->index, hash, (uint32_t)t->cnt)) {
		free(copy);
		return VP_INDEX_NONE;
	}
	t->str[t->cnt] = copy;
	return (uint32_t)t->cnt++;
}

void vp_strings_free(struct vp_strings *t)
{
	for (size_t i = 0; i < t->cnt; i++)
		free(t->str[i]);
	free(t->str);
	vp_index_free(&t->index);
	*t = (struct vp_strings){0};
}
