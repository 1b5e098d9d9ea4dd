/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "filed_names.h"
#include "string_table.h"
#include "symtab_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_NONE      UINT32_MAX
#define BACK_MAX       (1U << 28)
#define ITEMS_AHEAD    16
/* Ranges that symbols of one start may have behind each other, the rest is dropped. */
#define SAME_START_MAX 4

struct item {
	uint32_t start, end; /* relative to base; end of a sizeless one: its limit */
	uint32_t name;	     /* in its string table */
	uint32_t out_name;   /* in the blob; NAME_NONE until the first range of it */
	uint16_t tag;
	uint8_t strings;
	uint8_t sized : 1;
	uint8_t boundary : 1;
	uint8_t binding : 2;
	uint8_t type : 2;
};

struct symtab_builder {
	uint64_t base;
	struct symtab_strings strings[SYMTAB_STRINGS_MAX];
	int strings_cnt;
	int adopted; /* string table that became, or will become, t->names; -1: none */
	char *adopted_base;
	int filed; /* string table whose names stay where they are; -1: none */
	struct filed_names *filed_names;
	struct item *items; /* finish sorts them by their starts */
	size_t cnt, cap;

	/* of finish */
	uint64_t scan_left; /* name bytes that may still be looked at */
	size_t ranges_cap, names_cap, tied_cap, tie_cap;
	uint32_t *stack; /* items that cover the position, closest start last */
	size_t stack_cnt;
	uint32_t pos;
	int has_tags;
	struct symtab *t;
};

struct symtab_builder *symtab_builder_new(uint64_t base)
{
	struct symtab_builder *b = calloc(1, sizeof(*b));

	if (b) {
		b->base = base;
		b->adopted = b->filed = -1;
	}
	return b;
}

void symtab_builder_free(struct symtab_builder *b)
{
	if (!b)
		return;
	symtab_free(b->t);
	free(b->adopted_base);
	filed_names_free(b->filed_names);
	free(b->items);
	free(b->stack);
	free(b);
}

int symtab_builder_strings(struct symtab_builder *b, const struct symtab_strings *s)
{
	if (b->strings_cnt == SYMTAB_STRINGS_MAX)
		return -ENOSPC;
	b->strings[b->strings_cnt] = *s;
	return b->strings_cnt++;
}

void symtab_builder_adopt(struct symtab_builder *b, int strings)
{
	b->adopted = strings;
	b->adopted_base = (char *)(uintptr_t)b->strings[strings].base;
}

void symtab_builder_leave(struct symtab_builder *b, int strings, struct filed_names *names)
{
	b->filed = strings;
	b->filed_names = names;
}

/* An array with room for one more element, or NULL; the old one stays valid then. */
static void *grow(void *array, size_t *cap, size_t cnt, size_t elem_size)
{
	if (cnt < *cap)
		return array;

	size_t new_cap = *cap ? *cap * 2 : 1024;
	void *p = realloc(array, new_cap * elem_size);
	if (p)
		*cap = new_cap;
	return p;
}

void symtab_builder_reserve(struct symtab_builder *b, size_t cnt)
{
	size_t cap = cnt < ITEMS_MAX - b->cnt ? b->cnt + cnt : ITEMS_MAX;
	struct item *items;

	if (cap <= b->cap)
		return;
	items = realloc(b->items, cap * sizeof(*items));
	if (!items)
		return;
	b->items = items;
	b->cap = cap;
}

/* An address relative to base, cut at the 4 GiB that a table spans. */
static uint32_t relative(const struct symtab_builder *b, uint64_t addr)
{
	uint64_t rel = addr - b->base;

	return rel > UINT32_MAX ? UINT32_MAX : (uint32_t)rel;
}

int symtab_builder_add(struct symtab_builder *b, const struct symtab_entry *e)
{
	int sized = e->end > e->start;
	uint64_t end = sized && e->end < e->limit ? e->end : e->limit;

	if (e->start < b->base || e->start - b->base >= UINT32_MAX || end <= e->start)
		return 0;
	if (!e->boundary &&
	    (e->strings >= b->strings_cnt || e->name >= b->strings[e->strings].size))
		return 0;
	if (b->cnt == ITEMS_MAX)
		return -EFBIG;

	struct item *items = grow(b->items, &b->cap, b->cnt, sizeof(*b->items));
	if (!items)
		return -ENOMEM;
	b->items = items;
	b->has_tags |= e->tag != 0;
	b->items[b->cnt++] = (struct item){
		.start = relative(b, e->start),
		.end = relative(b, end),
		.name = e->name,
		.out_name = NAME_NONE,
		.tag = e->tag,
		.strings = e->strings,
		.sized = sized,
		.boundary = e->boundary,
		.binding = e->binding,
		.type = e->type,
	};
	return 0;
}

/*
 * Sorts by the upper half of each value, stable: three passes of 11 bits. Five times
 * faster than qsort at the sizes that matter.
 */
static int radix_sort(uint64_t *v, size_t n)
{
	uint64_t *tmp = malloc(n * sizeof(*tmp)), *from = v, *to = tmp;

	if (!tmp)
		return -ENOMEM;
	for (int shift = 32; shift < 64; shift += 11) {
		size_t pos[2049] = {0};

		for (size_t i = 0; i < n; i++)
			pos[((from[i] >> shift) & 2047) + 1]++;
		for (size_t i = 1; i < 2048; i++)
			pos[i] += pos[i - 1];
		for (size_t i = 0; i < n; i++)
			to[pos[(from[i] >> shift) & 2047]++] = from[i];

		uint64_t *swap = from;
		from = to;
		to = swap;
	}
	memcpy(v, from, n * sizeof(*v)); /* after an odd number of passes it is in tmp */
	free(tmp);
	return 0;
}

/* Puts the items into order: of start << 32 | item, sorted. */
static int gather_items(struct symtab_builder *b, const uint64_t *order)
{
	struct item *sorted = malloc(b->cnt * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < b->cnt; i++) {
		/* They are in the file's order, which is any: each would be waited for. */
		if (i + ITEMS_AHEAD < b->cnt)
			__builtin_prefetch(&b->items[(uint32_t)order[i + ITEMS_AHEAD]]);
		sorted[i] = b->items[(uint32_t)order[i]];
	}
	free(b->items);
	b->items = sorted;
	b->cap = b->cnt;
	return 0;
}

static int sort_items(struct symtab_builder *b)
{
	uint64_t *order = malloc(b->cnt * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < b->cnt; i++)
		order[i] = (uint64_t)b->items[i].start << 32 | i;

	int err = radix_sort(order, b->cnt);
	if (!err)
		err = gather_items(b, order);
	free(order);
	return err;
}

/*
 * A symbol without size reaches to the next start, and is none at all inside a sized one
 * or where one begins: there it is a label.
 */
static void bound_sizeless(struct symtab_builder *b)
{
	uint32_t next = UINT32_MAX;

	for (size_t i = b->cnt; i-- > 0;) {
		struct item *it = &b->items[i];

		if (!it->sized && !it->boundary && it->end > next && next > it->start)
			it->end = next;
		if (i && b->items[i - 1].start < it->start)
			next = it->start;
	}
}

/* Name of an item, perhaps in room, not NUL-terminated. NULL: *err, -EFBIG: the scan budget is used up. */
static const char *item_name(struct symtab_builder *b, const struct item *it, char *room,
			     size_t *len, int *err)
{
	const struct symtab_strings *s = &b->strings[it->strings];
	/* adopted strings move when names of others are added to them */
	const char *base = it->strings == b->adopted ? b->t->names : s->base, *name;
	size_t max = s->size - it->name;

	if (max > SYMTAB_NAME_MAX_BYTES)
		max = SYMTAB_NAME_MAX_BYTES;
	if (s->table) {
		name = string_table_get(s->table, it->name, max, room, len, err);
		if (!name)
			return NULL;
	} else {
		name = base + it->name;
		*len = strnlen(name, max);
	}
	if (*len >= b->scan_left) {
		*err = -EFBIG;
		return NULL;
	}
	b->scan_left -= *len + 1;
	if (s->cut_version && *len) {
		const char *at = memchr(name + 1, '@', *len - 1);

		*len = at ? (size_t)(at - name) : *len;
	}
	return name;
}

/*
 * Names are scanned more than once where symbols share a start, and string tables share
 * tails; beyond this the table was made to keep us busy.
 */
static void set_scan_budget(struct symtab_builder *b)
{
	b->scan_left = 1 << 20;
	for (int i = 0; i < b->strings_cnt; i++)
		b->scan_left += 8 * (uint64_t)b->strings[i].size;
}

/* > 0: x is better by what is known without its name. */
static int cmp_ranks(const struct item *x, const struct item *y)
{
	if (x->sized != y->sized)
		return x->sized - y->sized;
	if ((x->type == SYMTAB_IFUNC) != (y->type == SYMTAB_IFUNC))
		return x->type == SYMTAB_IFUNC ? -1 : 1;
	if (x->strings != y->strings)
		return y->strings - x->strings;
	if (x->binding != y->binding)
		return x->binding - y->binding;
	return x->type - y->type;
}

/* Names of one and the same range that stay in their file: which is better can wait. */
static int are_tied(const struct symtab_builder *b, const struct item *x, const struct item *y)
{
	return x->strings == b->filed && !cmp_ranks(x, y) && x->end == y->end;
}

/* > 0: x is better. *err is set if its name cannot be had. */
static int cmp_items(struct symtab_builder *b, const struct item *x, const struct item *y, int *err)
{
	char x_room[STRING_ROOM], y_room[STRING_ROOM];
	const char *x_name, *y_name;
	size_t x_len, y_len;
	int by_rank = cmp_ranks(x, y);

	if (by_rank || are_tied(b, x, y))
		return by_rank;
	x_name = item_name(b, x, x_room, &x_len, err);
	if (!x_name)
		return 0;
	y_name = item_name(b, y, y_room, &y_len, err);
	return y_name ? symtab_cmp_names(x_name, x_len, y_name, y_len) : 0;
}

static int copy_name(struct symtab_builder *b, const char *name, size_t len)
{
	struct symtab *t = b->t;

	if (t->filed_size + t->names_size + len + 1 >= NAME_TIES)
		return -EFBIG;
	while (t->names_size + len + 1 > b->names_cap) {
		char *names = grow(t->names, &b->names_cap, b->names_cap, 1);

		if (!names)
			return -ENOMEM;
		t->names = names;
	}
	memcpy(t->names + t->names_size, name, len);
	t->names[t->names_size + len] = '\0';
	t->names_size += len + 1;
	return 0;
}

/* Sets an item's out_name at its first use. */
static int put_name(struct symtab_builder *b, struct item *it)
{
	size_t len, at = b->t->filed_size + b->t->names_size;
	char room[STRING_ROOM];
	const char *name;
	int err = 0;

	if (it->out_name != NAME_NONE)
		return 0;
	if (it->strings == b->adopted || it->strings == b->filed) {
		it->out_name = it->name;
		return 0;
	}
	name = item_name(b, it, room, &len, &err);
	if (!name)
		return err;
	it->out_name = (uint32_t)at;
	return copy_name(b, name, len);
}

static int grow_ranges(struct symtab_builder *b)
{
	struct symtab *t = b->t;

	if (t->cnt < b->ranges_cap)
		return 0;

	size_t starts_cap = b->ranges_cap;
	uint32_t *starts = grow(t->starts, &starts_cap, t->cnt, sizeof(*t->starts));

	if (!starts)
		return -ENOMEM;
	t->starts = starts;
	if (b->has_tags) {
		size_t tags_cap = b->ranges_cap;
		uint16_t *tags = grow(t->tags, &tags_cap, t->cnt, sizeof(*t->tags));

		if (!tags)
			return -ENOMEM;
		t->tags = tags;
	}

	struct range *ranges = grow(t->ranges, &b->ranges_cap, t->cnt, sizeof(*t->ranges));
	if (!ranges)
		return -ENOMEM;
	t->ranges = ranges;
	return 0;
}

/* Appends [b->pos, end) as it's. */
static int emit_range(struct symtab_builder *b, struct item *it, uint32_t end)
{
	struct symtab *t = b->t;
	int err = put_name(b, it);

	if (!err)
		err = grow_ranges(b);
	if (err)
		return err;

	uint32_t back = b->pos - it->start;
	if (back >= BACK_MAX)
		return 0; /* no function is a quarter of a GiB long */
	t->starts[t->cnt] = b->pos;
	t->ranges[t->cnt] = (struct range){
		.len = end - b->pos,
		.name = it->out_name,
		.back = back & (BACK_MAX - 1),
		.source = b->strings[it->strings].source & 15,
	};
	if (t->tags)
		t->tags[t->cnt] = it->tag;
	t->cnt++;
	return 0;
}

/* Writes ranges up to `to`, taking off what ends before it. */
static int advance(struct symtab_builder *b, uint32_t to)
{
	while (b->stack_cnt && b->pos < to) {
		struct item *top = &b->items[b->stack[b->stack_cnt - 1]];
		uint32_t end = top->end < to ? top->end : to;

		if (end > b->pos) {
			int err = emit_range(b, top, end);

			if (err)
				return err;
			b->pos = end;
		}
		if (top->end <= b->pos)
			b->stack_cnt--;
	}
	b->pos = to;
	return 0;
}

/* The best of items[from, to) that ends behind `after`; NULL: none. */
static struct item *best_item(struct symtab_builder *b, size_t from, size_t to, uint32_t after,
			      int *err)
{
	struct item *best = NULL;

	for (size_t i = from; i < to && !*err; i++) {
		struct item *it = &b->items[i];

		if (it->boundary || it->end <= after)
			continue;
		if (!best || cmp_items(b, it, best, err) > 0)
			best = it;
	}
	return best;
}

static void push(struct symtab_builder *b, const struct item *it)
{
	b->stack[b->stack_cnt++] = (uint32_t)(it - b->items);
}

static int add_tied(struct symtab_builder *b, uint32_t name)
{
	struct symtab *t = b->t;
	uint32_t *tied = grow(t->tied, &b->tied_cap, t->tied_cnt, sizeof(*tied));

	if (!tied)
		return -ENOMEM;
	t->tied = tied;
	t->tied[t->tied_cnt++] = name;
	return 0;
}

static int end_tie(struct symtab_builder *b, size_t start, struct item *it)
{
	struct symtab *t = b->t;
	uint32_t *starts = grow(t->tie_start, &b->tie_cap, t->tie_cnt + 1, sizeof(*starts));

	if (!starts)
		return -ENOMEM;
	t->tie_start = starts;
	t->tie_start[t->tie_cnt] = (uint32_t)start;
	it->out_name = NAME_TIES + (uint32_t)t->tie_cnt++;
	t->tie_start[t->tie_cnt] = (uint32_t)t->tied_cnt;
	return 0;
}

/* Notes all items[from, to) that may have a better name than it. */
static int put_ties(struct symtab_builder *b, struct item *it, size_t from, size_t to)
{
	size_t start = b->t->tied_cnt;
	int err = 0;

	for (size_t i = from; i < to && b->t->tied_cnt - start < SYMTAB_TIED_MAX && !err; i++) {
		const struct item *other = &b->items[i];

		if (!other->boundary && are_tied(b, it, other))
			err = add_tied(b, other->name);
	}
	if (!err && b->t->tied_cnt - start >= 2)
		return end_tie(b, start, it);
	b->t->tied_cnt = start;
	return err;
}

/*
 * Pushes the symbols of one start, items[from, to): the winner on top and below it those
 * that are longer than it. covered: sized symbols reach beyond this start.
 */
static int push_group(struct symtab_builder *b, size_t from, size_t to, int covered)
{
	struct item *chain[SAME_START_MAX];
	uint32_t after = b->items[from].start;
	int n = 0, err = 0;

	if (to - from == 1) { /* most */
		if (!b->items[from].boundary && (b->items[from].sized || !covered))
			push(b, &b->items[from]);
		return 0;
	}

	while (n < SAME_START_MAX) {
		struct item *it = best_item(b, from, to, after, &err);

		if (err)
			return err;
		if (!it || (!it->sized && (covered || n)))
			break;
		chain[n++] = it;
		after = it->end;
	}
	while (n--) {
		err = put_ties(b, chain[n], from, to);
		if (err)
			return err;
		push(b, chain[n]);
	}
	return 0;
}

/* Mostly a range a symbol; what there is no memory for is made as it is needed, or not at all. */
static void reserve_ranges(struct symtab_builder *b)
{
	struct symtab *t = b->t;

	t->starts = malloc(b->cnt * sizeof(*t->starts));
	t->ranges = malloc(b->cnt * sizeof(*t->ranges));
	t->tags = b->has_tags ? malloc(b->cnt * sizeof(*t->tags)) : NULL;
	if (t->starts && t->ranges && (t->tags || !b->has_tags))
		b->ranges_cap = b->cnt;
}

static int flatten(struct symtab_builder *b)
{
	uint32_t covered_to = 0; /* the furthest end of any sized symbol so far */
	size_t to;

	for (size_t from = 0; from < b->cnt; from = to) {
		uint32_t start = b->items[from].start;
		int err = advance(b, start);

		for (to = from; to < b->cnt && b->items[to].start == start;)
			to++;
		if (!err)
			err = push_group(b, from, to, covered_to > start);
		if (err)
			return err;
		for (size_t i = from; i < to; i++) {
			const struct item *it = &b->items[i];

			if (it->sized && it->end > covered_to)
				covered_to = it->end;
		}
	}
	return advance(b, UINT32_MAX);
}

/* Gives back what growing by doubling took too much; failing to is no failure. */
static void *shrunk(void *array, size_t bytes)
{
	void *p = bytes ? realloc(array, bytes) : NULL;

	return p ? p : array;
}

static void shrink_table(struct symtab *t)
{
	t->starts = shrunk(t->starts, t->cnt * sizeof(*t->starts));
	t->ranges = shrunk(t->ranges, t->cnt * sizeof(*t->ranges));
	t->tags = shrunk(t->tags, t->tags ? t->cnt * sizeof(*t->tags) : 0);
	t->names = shrunk(t->names, t->names_size);
	t->tied = shrunk(t->tied, t->tied_cnt * sizeof(*t->tied));
}

/* Cuts all versions in one pass over the strings: names are not looked at one by one. */
static void take_adopted(struct symtab_builder *b)
{
	const struct symtab_strings *s = &b->strings[b->adopted];
	char *base = b->adopted_base, *end = base + s->size, *p = base;

	*end = '\0';
	while (s->cut_version && p < end && (p = memchr(p, '@', (size_t)(end - p)))) {
		if (p > base && p[-1])
			*p = '\0';
		p++;
	}
	b->t->names = base;
	b->t->names_size = b->names_cap = s->size + 1;
	b->adopted_base = NULL;
}

static void take_filed(struct symtab_builder *b)
{
	const struct symtab_strings *s = &b->strings[b->filed];

	b->t->filed = b->filed_names;
	b->t->filed_size = (uint32_t)s->size;
	b->t->filed_cut_version = s->cut_version;
	b->filed_names = NULL;
}

int symtab_builder_finish(struct symtab_builder *b, struct symtab **out)
{
	struct symtab *t = b->t = calloc(1, sizeof(*b->t));

	if (!t)
		return -ENOMEM;
	t->base = b->base;
	if (b->adopted >= 0)
		take_adopted(b);
	if (b->filed >= 0)
		take_filed(b);
	if (b->cnt) {
		int err = sort_items(b);

		b->stack = malloc(b->cnt * sizeof(*b->stack));
		if (err || !b->stack)
			return -ENOMEM;
		set_scan_budget(b);
		bound_sizeless(b);
		reserve_ranges(b);
		err = flatten(b);
		if (err)
			return err;
		shrink_table(t);
	}
	b->t = NULL;
	*out = t;
	return 0;
}
