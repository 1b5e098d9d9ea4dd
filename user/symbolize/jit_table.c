/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jit_table.h"

#include "../util/array.h"
#include "../util/utf8.h"

#include <string.h>

/* In place of a name: that of the code with this index. */
#define NAME_BY_INDEX UINT32_MAX

struct jit_range {
	uint64_t start, end;
	uint64_t code; /* where what this is a piece of starts */
	uint64_t time;
	uint64_t index;
	uint32_t name; /* offset in names */
	uint32_t seq;
};

uint64_t jit_table_bytes(const struct jit_table *t)
{
	return t->cnt * sizeof(*t->range) + t->name_bytes;
}

void jit_table_clear(struct jit_table *t)
{
	free(t->range);
	free(t->names);
	*t = (struct jit_table){
		.max_bytes = t->max_bytes,
		.keeps_lines = t->keeps_lines,
		.dropped_cnt = t->dropped_cnt,
	};
}

/* ---- names of moved code ---------------------------------------------------------------------- */

static int by_index(const void *a, const void *b)
{
	const struct jit_range *ra = a, *rb = b;

	if (ra->index != rb->index)
		return ra->index < rb->index ? -1 : 1;
	return (ra->seq > rb->seq) - (ra->seq < rb->seq);
}

static void name_moves(struct jit_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->cnt && !n; i++)
		n += t->range[i].name == NAME_BY_INDEX;
	if (!n)
		return;
	qsort(t->range, t->cnt, sizeof(*t->range), by_index);
	for (size_t i = 1; i < t->cnt; i++) {
		if (t->range[i].name == NAME_BY_INDEX && t->range[i - 1].index == t->range[i].index)
			t->range[i].name = t->range[i - 1].name;
	}
	/* those that moved nothing known */
	n = 0;
	for (size_t i = 0; i < t->cnt; i++) {
		if (t->range[i].name != NAME_BY_INDEX)
			t->range[n++] = t->range[i];
	}
	t->cnt = n;
}

/* ---- from overlapping ranges to disjoint ones ------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct jit_range *ra = a, *rb = b;

	return (ra->start > rb->start) - (ra->start < rb->start);
}

static bool is_later(const struct jit_range *a, const struct jit_range *b)
{
	return a->time != b->time ? a->time > b->time : a->seq > b->seq;
}

/* Ranges that hold an address, the latest on top. */
struct heap {
	const struct jit_range **item;
	size_t cnt;
};

static void heap_push(struct heap *h, const struct jit_range *r)
{
	size_t i = h->cnt++;

	for (; i && is_later(r, h->item[(i - 1) / 2]); i = (i - 1) / 2)
		h->item[i] = h->item[(i - 1) / 2];
	h->item[i] = r;
}

static void heap_pop(struct heap *h)
{
	const struct jit_range *last = h->item[--h->cnt];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < h->cnt) {
		if (child + 1 < h->cnt && is_later(h->item[child + 1], h->item[child]))
			child++;
		if (!is_later(h->item[child], last))
			break;
		h->item[i] = h->item[child];
		i = child;
	}
	h->item[i] = last;
}

struct flat {
	struct jit_range *range;
	size_t cnt, cap;
};

static int put_piece(struct flat *f, const struct jit_range *r, uint64_t start, uint64_t end)
{
	struct jit_range *last = f->cnt ? &f->range[f->cnt - 1] : NULL;

	if (last && last->seq == r->seq && last->end == start) {
		last->end = end;
		return 0;
	}
	if (vp_array_room((void **)&f->range, &f->cap, f->cnt, 1, sizeof(*f->range)))
		return -ENOMEM;
	f->range[f->cnt] = *r;
	f->range[f->cnt].start = start;
	f->range[f->cnt++].end = end;
	return 0;
}

/* A sweep over the ends: at most two pieces for each range. */
static int flatten(const struct jit_range *r, size_t cnt, struct heap *h, struct flat *f)
{
	uint64_t at = 0;

	for (size_t i = 0; i < cnt || h->cnt;) {
		uint64_t end;

		if (!h->cnt)
			at = r[i].start;
		while (i < cnt && r[i].start <= at)
			heap_push(h, &r[i++]);
		while (h->cnt && h->item[0]->end <= at)
			heap_pop(h);
		if (!h->cnt)
			continue;
		end = h->item[0]->end;
		if (i < cnt && r[i].start < end)
			end = r[i].start;
		if (put_piece(f, h->item[0], at, end))
			return -ENOMEM;
		at = end;
	}
	return 0;
}

static int sort(struct jit_table *t)
{
	struct heap h = {0};
	struct flat f = {0};
	int err;

	if (!t->unsorted)
		return 0;
	name_moves(t);
	qsort(t->range, t->cnt, sizeof(*t->range), by_start);
	h.item = calloc(t->cnt + 1, sizeof(*h.item));
	err = h.item ? flatten(t->range, t->cnt, &h, &f) : -ENOMEM;
	free(h.item);
	if (err) {
		free(f.range);
		return err;
	}
	free(t->range);
	t->range = f.range;
	t->cnt = f.cnt;
	t->cap = f.cap;
	t->unsorted = false;
	return 0;
}

/* ---- making room ------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
	uint32_t va = *(const uint32_t *)a, vb = *(const uint32_t *)b;

	return (va > vb) - (va < vb);
}

/* Of a name and what follows it. */
static size_t name_room(const struct jit_table *t, const char *name)
{
	size_t len = strlen(name) + 1;

	return t->keeps_lines ? len + jit_lines_bytes_at(name + len) : len;
}

/* Moves the names that begin at the cnt offsets (ascending) together; *to are their new ones. */
static void pack_names(struct jit_table *t, const uint32_t *from, uint32_t *to, size_t cnt)
{
	uint32_t used = 0;

	for (size_t i = 0; i < cnt; i++) {
		uint32_t len = (uint32_t)name_room(t, t->names + from[i]);

		memmove(t->names + used, t->names + from[i], len);
		to[i] = used;
		used += len;
	}
	t->name_bytes = used;
}

static size_t drop_repeated(uint32_t *v, size_t cnt)
{
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		if (!n || v[n - 1] != v[i])
			v[n++] = v[i];
	}
	return n;
}

/* Names that no range has any more go. */
static int drop_names(struct jit_table *t)
{
	uint32_t *from = calloc(t->cnt + 1, sizeof(*from)), *to = calloc(t->cnt + 1, sizeof(*to));
	size_t n;

	if (!from || !to) {
		free(from);
		free(to);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->cnt; i++)
		from[i] = t->range[i].name;
	qsort(from, t->cnt, sizeof(*from), by_value);
	n = drop_repeated(from, t->cnt);
	pack_names(t, from, to, n);
	for (size_t i = 0; i < t->cnt; i++) {
		const uint32_t *at = bsearch(&t->range[i].name, from, n, sizeof(*from), by_value);

		if (at)
			t->range[i].name = to[at - from];
	}
	free(from);
	free(to);
	return 0;
}

/*
 * What has been replaced goes; if that is not much it will not be soon, and nothing more is taken:
 * 0, or -ENOSPC.
 */
static int make_room(struct jit_table *t, size_t more)
{
	int err = 0;

	if (!t->full && jit_table_bytes(t) + more <= t->max_bytes)
		return 0;
	if (!t->full) {
		err = sort(t);
		if (!err)
			err = drop_names(t);
		t->full = jit_table_bytes(t) + more > t->max_bytes / 4 * 3;
	}
	if (!err && t->full) {
		t->dropped_cnt++;
		err = -ENOSPC;
	}
	return err;
}

/* ---- adding ----------------------------------------------------------------------------------- */

static uint32_t put_name(struct jit_table *t, const char *name, size_t len,
			 const struct jit_lines *lines)
{
	uint32_t at = (uint32_t)t->name_bytes;
	char *to = t->names + at;

	if (len < VP_JIT_NAME_BYTES)
		to = mempcpy(to, name, len);
	else
		to = stpcpy(
			mempcpy(to, name,
				vp_utf8_fit(name, VP_JIT_NAME_BYTES - sizeof(VP_UTF8_CUT_MARK))),
			VP_UTF8_CUT_MARK);
	*to++ = '\0';
	t->name_bytes = (size_t)(to - t->names);
	if (t->keeps_lines) {
		jit_lines_pack(lines, to);
		t->name_bytes += jit_lines_packed_bytes(lines);
	}
	return at;
}

static bool is_range(const struct jit_code *c)
{
	return c->size && c->start + c->size > c->start;
}

static int add_range(struct jit_table *t, const struct jit_code *c, uint32_t name)
{
	const struct jit_range *last = t->cnt ? &t->range[t->cnt - 1] : NULL;

	t->unsorted |= name == NAME_BY_INDEX || (last && c->start < last->end);
	t->range[t->cnt++] = (struct jit_range){
		.start = c->start,
		.end = c->start + c->size,
		.code = c->start,
		.time = c->time,
		.index = c->index,
		.name = name,
		.seq = t->seq++,
	};
	return 0;
}

int jit_table_add(struct jit_table *t, const struct jit_code *c, const char *name, size_t len)
{
	size_t room;
	int err;

	len = strnlen(name, len);
	if (!len || !is_range(c))
		return -EINVAL;
	room = len < VP_JIT_NAME_BYTES ? len + 1 : VP_JIT_NAME_BYTES;
	if (t->keeps_lines)
		room += jit_lines_packed_bytes(c->lines);
	err = make_room(t, sizeof(*t->range) + room);
	if (err)
		return err == -ENOSPC ? 0 : err;
	if (vp_array_room((void **)&t->names, &t->name_cap, t->name_bytes, room, 1) ||
	    vp_array_room((void **)&t->range, &t->cap, t->cnt, 1, sizeof(*t->range)))
		return -ENOMEM;
	return add_range(t, c, put_name(t, name, len, c->lines));
}

int jit_table_move(struct jit_table *t, const struct jit_code *c)
{
	int err;

	if (!is_range(c))
		return -EINVAL;
	err = make_room(t, sizeof(*t->range));
	if (err)
		return err == -ENOSPC ? 0 : err;
	if (vp_array_room((void **)&t->range, &t->cap, t->cnt, 1, sizeof(*t->range)))
		return -ENOMEM;
	return add_range(t, c, NAME_BY_INDEX);
}

static void tell(const struct jit_table *t, const struct jit_range *r, uint64_t addr,
		 struct jit_found *out)
{
	*out = (struct jit_found){.name = t->names + r->name, .offset = addr - r->code};
	if (t->keeps_lines)
		jit_lines_find(out->name + strlen(out->name) + 1, out->offset, &out->file,
			       &out->line);
}

bool jit_table_find(struct jit_table *t, uint64_t addr, struct jit_found *out)
{
	size_t lo = 0, hi;

	if (sort(t))
		return false;
	hi = t->cnt;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->range[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo == t->cnt || addr < t->range[lo].start)
		return false;
	tell(t, &t->range[lo], addr, out);
	return true;
}
