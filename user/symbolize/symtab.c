/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../util/array.h"
#include "filed_names.h"
#include "packed_names.h"
#include "symtab_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Smaller ones stay as they are. */
#define PACK_MIN_BYTES (1U << 20)

static const struct range *find_range(const struct symtab *t, uint32_t rel, size_t *index)
{
	size_t lo = 0, n = t->cnt;

	/* Invariant: starts[0 .. lo) <= rel. The body has no branch to mispredict. */
	while (n) {
		size_t half = n / 2;
		size_t right = t->starts[lo + half] <= rel;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	if (!lo || rel - t->starts[lo - 1] >= t->ranges[lo - 1].len)
		return NULL;
	*index = lo - 1;
	return &t->ranges[lo - 1];
}

/* NULL where the name is not in memory as it is. */
static const char *name_in_memory(const struct symtab *t, uint32_t name)
{
	return t->names && name >= t->filed_size && name < NAME_TIES
		       ? t->names + (name - t->filed_size)
		       : NULL;
}

int symtab_find(const struct symtab *t, uint64_t addr, struct symtab_hit *out)
{
	size_t i;

	if (addr < t->base || addr - t->base > UINT32_MAX)
		return -ENOENT;

	uint32_t rel = (uint32_t)(addr - t->base);
	const struct range *r = find_range(t, rel, &i);
	if (!r)
		return -ENOENT;
	*out = (struct symtab_hit){
		.name = name_in_memory(t, r->name),
		.name_id = r->name,
		.offset = (uint64_t)(rel - t->starts[i]) + r->back,
		.source = r->source,
		.tag = t->tags ? t->tags[i] : 0,
	};
	return 0;
}

size_t symtab_cnt(const struct symtab *t)
{
	return t->cnt;
}

size_t symtab_bytes(const struct symtab *t)
{
	size_t per_range =
		sizeof(*t->starts) + sizeof(*t->ranges) + (t->tags ? sizeof(*t->tags) : 0);

	return sizeof(*t) + t->cnt * per_range +
	       (t->tied_cnt + (t->tie_cnt ? t->tie_cnt + 1 : 0)) * sizeof(*t->tied) +
	       (t->packed ? packed_names_bytes(t->packed) : t->names_size);
}

size_t symtab_source_cnt(const struct symtab *t, uint8_t source)
{
	size_t n = 0;

	for (size_t i = 0; i < t->cnt; i++)
		n += t->ranges[i].source == source;
	return n;
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	free(t->starts);
	free(t->ranges);
	free(t->tags);
	free(t->names);
	packed_names_free(t->packed);
	filed_names_free(t->filed);
	free(t->tied);
	free(t->tie_start);
	free(t);
}

void symtab_pack_names(struct symtab *t)
{
	if (!t->names || t->names_size < PACK_MIN_BYTES)
		return;
	t->packed = packed_names_new(t->names, t->names_size);
	if (!t->packed)
		return;
	free(t->names);
	t->names = NULL;
}

int symtab_has_filed_names(const struct symtab *t)
{
	return t->filed != NULL;
}

static void cut_version(char *name)
{
	char *at = *name ? strchr(name + 1, '@') : NULL;

	if (at)
		*at = '\0';
}

/* Of a name that is not filed. */
static char *copy_kept(const struct symtab *t, uint32_t name_id)
{
	size_t at = name_id - t->filed_size;

	return t->packed ? packed_names_copy(t->packed, at, SYMTAB_NAME_MAX_BYTES)
			 : strndup(t->names + at, SYMTAB_NAME_MAX_BYTES);
}

static size_t underscores(const char *name, size_t len)
{
	size_t n = 0;

	while (n < len && name[n] == '_')
		n++;
	return n;
}

int symtab_cmp_names(const char *x, size_t x_len, const char *y, size_t y_len)
{
	size_t xu = underscores(x, x_len), yu = underscores(y, y_len);

	if (xu != yu)
		return xu < yu ? 1 : -1;
	if (x_len != y_len)
		return x_len < y_len ? 1 : -1;
	return memcmp(y, x, x_len);
}

static int copy_filed(const struct symtab *t, uint32_t name_id, char **out)
{
	int err = filed_names_copy(t->filed, name_id, SYMTAB_NAME_MAX_BYTES, out);

	if (!err && t->filed_cut_version)
		cut_version(*out);
	return err;
}

/* Keeps the better of two names, of which *best may be NULL, and frees the other. */
static void take_better(char **best, char *name)
{
	if (*best && symtab_cmp_names(name, strlen(name), *best, strlen(*best)) <= 0) {
		free(name);
		return;
	}
	free(*best);
	*best = name;
}

static int copy_best(const struct symtab *t, uint32_t tie, char **out)
{
	char *name;

	*out = NULL;
	for (size_t i = t->tie_start[tie]; i < t->tie_start[tie + 1]; i++) {
		int err = copy_filed(t, t->tied[i], &name);

		if (err) {
			free(*out);
			return err;
		}
		take_better(out, name);
	}
	return 0;
}

int symtab_copy_name(const struct symtab *t, const struct symtab_hit *hit, char **out)
{
	if (hit->name_id < t->filed_size)
		return copy_filed(t, hit->name_id, out);
	if (hit->name_id >= NAME_TIES)
		return copy_best(t, hit->name_id - NAME_TIES, out);
	*out = copy_kept(t, hit->name_id);
	return *out ? 0 : -ENOMEM;
}

static void copy_filed_many(const struct symtab *t, const uint32_t *offsets, size_t cnt, char **out)
{
	filed_names_copy_many(t->filed, offsets, cnt, SYMTAB_NAME_MAX_BYTES, out);
	for (size_t i = 0; i < cnt; i++) {
		if (out[i] && t->filed_cut_version)
			cut_version(out[i]);
	}
}

struct candidate {
	uint32_t name;
	uint32_t i; /* whose it is */
};

static int by_name(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return vp_cmp_u64(x->name, y->name);
}

/* All that are tied for these names, sorted. */
static void find_candidates(const struct symtab *t, const uint32_t *name_ids, size_t cnt,
			    struct candidate *out)
{
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		uint32_t tie = name_ids[i] - NAME_TIES;

		for (size_t k = t->tie_start[tie]; k < t->tie_start[tie + 1]; k++)
			out[n++] = (struct candidate){t->tied[k], (uint32_t)i};
	}
	qsort(out, n, sizeof(*out), by_name);
}

/* The best names of ties. */
static void copy_best_many(const struct symtab *t, const uint32_t *name_ids, size_t cnt, char **out)
{
	struct candidate *c;
	uint32_t *offsets;
	char **names;
	size_t n = 0;

	memset(out, 0, cnt * sizeof(*out));
	for (size_t i = 0; i < cnt; i++)
		n += t->tie_start[name_ids[i] - NAME_TIES + 1] -
		     t->tie_start[name_ids[i] - NAME_TIES];
	c = malloc(n * sizeof(*c));
	offsets = malloc(n * sizeof(*offsets));
	names = malloc(n * sizeof(*names));
	if (c && offsets && names) {
		find_candidates(t, name_ids, cnt, c);
		for (size_t i = 0; i < n; i++)
			offsets[i] = c[i].name;
		copy_filed_many(t, offsets, n, names);
		for (size_t i = 0; i < n; i++) {
			if (names[i])
				take_better(&out[c[i].i], names[i]);
		}
	}
	free(c);
	free(offsets);
	free(names);
}

void symtab_copy_names(const struct symtab *t, const uint32_t *name_ids, size_t cnt, char **out)
{
	size_t filed = 0, tied = cnt;

	while (filed < cnt && name_ids[filed] < t->filed_size)
		filed++;
	while (tied > filed && name_ids[tied - 1] >= NAME_TIES)
		tied--;
	if (filed)
		copy_filed_many(t, name_ids, filed, out);
	for (size_t i = filed; i < tied; i++)
		out[i] = copy_kept(t, name_ids[i]);
	if (tied < cnt)
		copy_best_many(t, name_ids + tied, cnt - tied, out + tied);
}
