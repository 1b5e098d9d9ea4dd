/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of addresses in files, made when they are asked for the first time. */
#include "symbolizer_inner.h"

#include "demangle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Others may push a table out again before its reader comes to it. */
#define REREADS_MAX 8
/* So many names are read before they are made readable; memory is theirs meanwhile. */
#define EXPECT_CNT  512

/* With the lock held for writing. NULL: over the limit, or no memory. */
static const char *intern(struct vp_symbolizer *s, const char *text)
{
	const char *name = string_set_find(&s->strings, text);

	if (name)
		return name;
	if (!registry_make_room(s, string_set_growth(&s->strings, strlen(text))))
		return NULL;
	return string_set_intern(&s->strings, text);
}

/* The same; failing to only costs the next one who asks some time. */
static void remember(struct vp_symbolizer *s, const struct name_place *at, uint32_t name_id,
		     const char *name)
{
	if (!registry_make_room(s, ptr_map_growth(at->names)) || *at->now != at->serial ||
	    (at->entry && !at->entry->f.table))
		return;
	ptr_map_put(at->names, name_id, (void *)(uintptr_t)name);
	if (at->entry)
		registry_count_bytes(s, at->entry);
}

/*
 * First use of a symbol: raw (taken) becomes a name for good. Two threads may come to
 * it at once; both get the same string.
 */
static const char *make_name(struct vp_symbolizer *s, const struct name_place *at, uint32_t name_id,
			     char *raw)
{
	char *readable = readable_name(raw, s->demangle);

	pthread_rwlock_wrlock(&s->lock);
	const char *name = intern(s, readable);
	if (name)
		remember(s, at, name_id, name);
	else
		s->stats.lost_name_cnt++;
	pthread_rwlock_unlock(&s->lock);
	free(readable);
	return name;
}

/* With the lock held for reading, which it gives up. */
int registry_name_hit(struct vp_symbolizer *s, const struct name_place *at, const struct symtab *t,
		      const struct symtab_hit *hit, struct vp_symbol *out)
{
	char *raw = NULL;
	int err = 0;

	out->offset = hit->offset;
	out->source = hit->source;
	out->name = ptr_map_get(at->names, hit->name_id);
	if (!out->name)
		err = symtab_copy_name(t, hit, &raw);
	pthread_rwlock_unlock(&s->lock);
	if (raw && !*raw) {
		free(raw);
		*out = (struct vp_symbol){.reason = VP_SYM_GAP};
		return -ENOENT;
	}

	if (raw)
		out->name = make_name(s, at, hit->name_id, raw);
	if (!out->name) {
		*out = (struct vp_symbol){.reason = err && err != -ENOMEM ? VP_SYM_GONE
									  : VP_SYM_OVER_LIMIT};
		return -ENOENT;
	}
	return 0;
}

/* With the lock held for reading, which it gives up. */
static int look_up(struct vp_symbolizer *s, struct entry *e, uint64_t offset, struct vp_symbol *out)
{
	struct symtab_hit hit;

	out->reason = e && e->state == FILE_LOADED ? symbol_file_find(&e->f, offset, &hit)
						   : VP_SYM_NOT_LOADED;
	if (out->reason == VP_SYM_OK) {
		const struct name_place at = {&e->f.names, e->serial, &e->serial,
					      e == &s->vdso ? NULL : e};

		registry_touch(s, e);
		return registry_name_hit(s, &at, e->f.table, &hit, out);
	}
	pthread_rwlock_unlock(&s->lock);
	return -ENOENT;
}

/* Returns with the lock held for reading; NULL if the file is not known. */
static struct entry *lock_entry(struct vp_symbolizer *s, uint32_t file_id)
{
	struct entry *e;

	pthread_rwlock_rdlock(&s->lock);
	e = ptr_map_get(&s->files, file_id);
	for (int i = 0; e && e->evicted && i < REREADS_MAX; i++) {
		pthread_rwlock_unlock(&s->lock);
		registry_read_again(s, e);
		pthread_rwlock_rdlock(&s->lock);
	}
	return e;
}

int vp_symbolizer_file(struct vp_symbolizer *s, uint32_t file_id, uint64_t offset,
		       struct vp_symbol *out)
{
	struct entry *e;

	*out = (struct vp_symbol){0};
	e = lock_entry(s, file_id);
	return look_up(s, e, offset, out);
}

/* ---- many look-ups ---- */

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sorted, each once; how many that leaves. */
static size_t sort_ids(uint32_t *ids, size_t cnt)
{
	size_t n = 0;

	qsort(ids, cnt, sizeof(*ids), by_value);
	for (size_t i = 0; i < cnt; i++) {
		if (!n || ids[i] != ids[n - 1])
			ids[n++] = ids[i];
	}
	return n;
}

/* Symbols at the offsets whose names are not known yet. With the lock held for reading. */
static size_t find_nameless(const struct entry *e, const uint64_t *offsets, size_t cnt,
			    uint32_t *ids)
{
	struct symtab_hit hit;
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (symbol_file_find(&e->f, offsets[i], &hit) == VP_SYM_OK &&
		    !ptr_map_get(&e->f.names, hit.name_id))
			ids[n++] = hit.name_id;
	}
	return n;
}

/* Up to EXPECT_CNT names. Whether the table is still the one that the ids are of. */
static int name_ids(struct vp_symbolizer *s, const struct name_place *at, const uint32_t *ids,
		    size_t cnt)
{
	char *raw[EXPECT_CNT];
	int there;

	pthread_rwlock_rdlock(&s->lock);
	there = at->entry->f.table && *at->now == at->serial;
	if (there)
		symtab_copy_names(at->entry->f.table, ids, cnt, raw);
	pthread_rwlock_unlock(&s->lock);
	for (size_t i = 0; there && i < cnt; i++) {
		if (raw[i] && *raw[i])
			make_name(s, at, ids[i], raw[i]);
		else
			free(raw[i]);
	}
	return there;
}

void vp_symbolizer_expect(struct vp_symbolizer *s, uint32_t file_id, const uint64_t *offsets,
			  size_t cnt)
{
	uint32_t *ids = malloc(cnt * sizeof(*ids));
	struct name_place at = {0};
	size_t n = 0;

	if (!ids)
		return; /* they are named as they are asked for */
	struct entry *e = lock_entry(s, file_id);
	if (e && e->state == FILE_LOADED) {
		at = (struct name_place){&e->f.names, e->serial, &e->serial, e};
		n = find_nameless(e, offsets, cnt, ids);
		registry_touch(s, e);
	}
	pthread_rwlock_unlock(&s->lock);
	n = sort_ids(ids, n);
	for (size_t i = 0; i < n; i += EXPECT_CNT) {
		if (!name_ids(s, &at, ids + i, n - i < EXPECT_CNT ? n - i : EXPECT_CNT))
			break;
	}
	free(ids);
}

int vp_symbolizer_offset_of(struct vp_symbolizer *s, uint32_t file_id, uint64_t vaddr,
			    uint64_t *offset)
{
	int err = -ENOENT;

	pthread_rwlock_rdlock(&s->lock);
	const struct entry *e = ptr_map_get(&s->files, file_id);
	if (e && e->state == FILE_LOADED)
		err = elf_segments_offset(e->f.exec, e->f.exec_cnt, vaddr, offset);
	pthread_rwlock_unlock(&s->lock);
	return err;
}

int vp_symbolizer_vdso(struct vp_symbolizer *s, uint64_t offset, struct vp_symbol *out)
{
	*out = (struct vp_symbol){0};
	pthread_rwlock_rdlock(&s->lock);
	int err = look_up(s, &s->vdso, offset, out);

	if (!err)
		out->source = VP_SYM_VDSO;
	return err;
}
