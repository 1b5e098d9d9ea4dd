/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_functions.h"

#include "../util/array.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

/* What no compiler comes near; a damaged or hostile unit is cut there. */
#define FUNCTION_MAX_CNT (1U << 22)
#define RANGE_MAX_CNT	 (1U << 23)
#define INLINE_MAX_CNT	 (1U << 20)
#define DEPTH_MAX	 1024
#define HOP_MAX		 16
#define NAME_MAX_BYTES	 65535

/* An inlined call in a function inside of this one is not this one's. */
#define NOT_OURS (DWARF_NO_INLINE - 1)

/* The attributes of a DIE that matter here. */
struct die {
	struct dwarf_value name, linkage, origin, low, high, ranges, call_file, call_line, sibling;
};

struct walk {
	struct dwarf_unit *u;
	struct dwarf_cursor *c;
	struct range_map *map;
	uint64_t exec_lo;
	uint32_t range_left;
	uint32_t owner; /* of the ranges that are added */
};

static void die_value(struct die *d, uint16_t name, struct dwarf_value v)
{
	switch (name) {
	case DW_AT_sibling:
		d->sibling = v;
		break;
	case DW_AT_name:
		d->name = v;
		break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		d->linkage = v;
		break;
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		d->origin = v;
		break;
	case DW_AT_low_pc:
		d->low = v;
		break;
	case DW_AT_high_pc:
		d->high = v;
		break;
	case DW_AT_ranges:
		d->ranges = v;
		break;
	case DW_AT_call_file:
		d->call_file = v;
		break;
	case DW_AT_call_line:
		d->call_line = v;
		break;
	default:
		break;
	}
}

static void read_die(struct dwarf_cursor *c, const struct dwarf_abbrevs *t,
		     const struct dwarf_abbrev *a, struct die *d)
{
	*d = (struct die){0};
	for (uint16_t i = 0; i < a->attr_cnt && !c->bad; i++) {
		const struct dwarf_attr *attr = &t->attr[a->first_attr + i];

		die_value(d, attr->name, dwarf_read_form(c, t->params, attr->form, attr->implicit));
	}
}

static int add_range(void *ctx, uint64_t lo, uint64_t hi)
{
	struct walk *w = ctx;

	if (hi - w->exec_lo > UINT32_MAX)
		return 0;
	return range_map_add(w->map, (struct addr_range){.lo = (uint32_t)(lo - w->exec_lo),
							 .hi = (uint32_t)(hi - w->exec_lo),
							 .owner = w->owner});
}

/* Damaged ranges are those before the damage: the walk goes on. */
static int add_ranges(struct walk *w, const struct die *d)
{
	int err = dwarf_unit_each_range(w->u, d->low, d->high, d->ranges, &w->range_left, add_range,
					w);

	return err == -ENOMEM ? err : 0;
}

static void walk_init(struct walk *w, struct dwarf_unit *u, struct range_map *map, uint64_t at)
{
	*w = (struct walk){.u = u, .c = &u->obj->walk, .map = map, .range_left = RANGE_MAX_CNT};
	w->exec_lo = (u->skeleton ? u->skeleton : u)->obj->exec_lo;
	dwarf_cursor_set(w->c, &u->obj->sect[DWARF_INFO], at, u->end);
}

/* To the DIE behind the children of the one just read. False: it does not say where that is. */
static bool go_to_sibling(struct walk *w, const struct die *d)
{
	uint64_t to = d->sibling.v;

	if (d->sibling.kind == DWARF_REF_UNIT)
		to += w->u->offset;
	else if (d->sibling.kind != DWARF_REF_INFO)
		return false;
	/* Only ever forward: so no loop is possible. */
	if (to < dwarf_cursor_at(w->c) || to > w->u->end)
		return false;
	dwarf_cursor_seek(w->c, to);
	return true;
}

/* ---- functions ---- */

static bool may_hold_functions(uint16_t tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_compile_unit ||
	       tag == DW_TAG_partial_unit;
}

static int add_function(struct walk *w, struct dwarf_functions *f, const struct die *d, uint64_t at)
{
	if (d->ranges.kind == DWARF_NONE && d->high.kind == DWARF_NONE)
		return 0;
	if (f->cnt == FUNCTION_MAX_CNT)
		return -ENOEXEC;
	if (vp_array_room((void **)&f->function, &f->cap, f->cnt, 1, sizeof(*f->function)))
		return -ENOMEM;
	w->owner = (uint32_t)f->cnt;
	f->function[f->cnt++] = (struct dwarf_function){.offset = at};
	return add_ranges(w, d);
}

/* The DIE at `at` whose code has been read. *in: its children come next. */
static int read_function_die(struct walk *w, struct dwarf_functions *f,
			     const struct dwarf_abbrev *a, uint64_t at, bool whole, bool *in)
{
	struct die d;
	int err = 0;

	*in = a->has_children;
	if (a->tag != DW_TAG_subprogram &&
	    (!a->has_children || !a->has_sibling || may_hold_functions(a->tag))) {
		dwarf_skip_die(w->c, w->u->abbrevs, a);
		return 0;
	}
	read_die(w->c, w->u->abbrevs, a, &d);
	if (a->tag == DW_TAG_subprogram)
		err = add_function(w, f, &d, at);
	if (!err && a->has_children && !whole && go_to_sibling(w, &d)) {
		f->is_whole = false;
		*in = false;
	}
	return err;
}

static int walk_functions(struct walk *w, struct dwarf_functions *f, bool whole)
{
	uint64_t depth = 0;
	int err = 0;

	do {
		uint64_t at = dwarf_cursor_at(w->c), code;
		bool in;

		if (at >= w->c->limit)
			break; /* terminators at the end may be left out */
		code = dwarf_uleb(w->c);
		if (!code) {
			depth -= depth > 0;
			continue;
		}
		const struct dwarf_abbrev *a = dwarf_abbrevs_find(w->u->abbrevs, code);
		if (!a || w->c->bad)
			return -ENOEXEC;
		err = read_function_die(w, f, a, at, whole, &in);
		depth += in;
	} while (!err && depth && !w->c->bad);
	return err ? err : w->c->bad ? -ENOEXEC : 0;
}

int dwarf_functions_read(struct dwarf_unit *u, bool whole, struct dwarf_functions *out)
{
	struct walk w;
	int err, err2;

	*out = (struct dwarf_functions){.is_whole = true};
	out->walk_left = 8 * (u->end - u->offset);
	walk_init(&w, u, &out->map, u->die_offset);
	err = walk_functions(&w, out, whole);
	if (err == -ENOMEM)
		return err;
	err2 = range_map_flatten(&out->map);
	return err2 ? err2 : err;
}

static void inlines_free(struct dwarf_inlines *i)
{
	if (!i)
		return;
	range_map_free(&i->map);
	free(i->node);
	free(i);
}

void dwarf_functions_free(struct dwarf_functions *f)
{
	for (size_t i = 0; i < f->cnt; i++)
		inlines_free(f->function[i].inlines);
	range_map_free(&f->map);
	free(f->function);
	*f = (struct dwarf_functions){0};
}

size_t dwarf_functions_bytes(const struct dwarf_functions *f)
{
	return f->cap * sizeof(*f->function) + range_map_bytes(&f->map);
}

/* ---- inlines ---- */

struct inline_walk {
	struct walk w;
	struct dwarf_inlines *out;
	size_t cap;
	uint32_t parent[DEPTH_MAX]; /* of what is found at a depth */
};

static struct dwarf_ref ref_of(const struct dwarf_unit *u, struct dwarf_value v)
{
	if (v.kind == DWARF_REF_UNIT)
		return (struct dwarf_ref){DWARF_REF_INFO, u->offset + v.v};
	if (v.kind == DWARF_REF_INFO || v.kind == DWARF_REF_ALT)
		return (struct dwarf_ref){v.kind, v.v};
	return (struct dwarf_ref){0};
}

static int add_inline(struct inline_walk *iw, const struct die *d, uint32_t parent)
{
	struct dwarf_inlines *out = iw->out;

	if (out->cnt == INLINE_MAX_CNT)
		return -ENOEXEC;
	if (vp_array_room((void **)&out->node, &iw->cap, out->cnt, 1, sizeof(*out->node)))
		return -ENOMEM;
	iw->w.owner = (uint32_t)out->cnt;
	out->node[out->cnt++] = (struct dwarf_inline){
		.origin = ref_of(iw->w.u, d->origin),
		.parent = parent,
		.call_file = (uint32_t)d->call_file.v,
		.call_line = (uint32_t)d->call_line.v,
	};
	return add_ranges(&iw->w, d);
}

static bool may_hold_inlines(uint16_t tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* Reads a DIE inside of a function whose parent is given; *below: the parent of its children. */
static int read_inner_die(struct inline_walk *iw, const struct dwarf_abbrev *a, uint32_t parent,
			  uint32_t *below, bool *in)
{
	struct walk *w = &iw->w;
	struct die d;
	int err = 0;

	*in = a->has_children;
	*below = a->tag == DW_TAG_subprogram ? NOT_OURS : parent;
	if (a->tag != DW_TAG_inlined_subroutine &&
	    (!a->has_children || !a->has_sibling || may_hold_inlines(a->tag))) {
		dwarf_skip_die(w->c, w->u->abbrevs, a);
		return 0;
	}
	read_die(w->c, w->u->abbrevs, a, &d);
	if (a->tag == DW_TAG_inlined_subroutine) {
		if (parent == NOT_OURS)
			return 0;
		*below = (uint32_t)iw->out->cnt;
		err = add_inline(iw, &d, parent);
	} else if (a->has_children && go_to_sibling(w, &d)) {
		*in = false;
	}
	return err;
}

static int walk_inlines(struct inline_walk *iw)
{
	struct walk *w = &iw->w;
	const struct dwarf_abbrev *a = dwarf_abbrevs_find(w->u->abbrevs, dwarf_uleb(w->c));
	uint32_t depth = 0;
	int err = 0;

	if (!a || w->c->bad)
		return -ENOEXEC;
	dwarf_skip_die(w->c, w->u->abbrevs, a);
	if (!a->has_children)
		return 0;
	iw->parent[0] = DWARF_NO_INLINE;
	for (;;) {
		uint64_t code = dwarf_uleb(w->c);
		uint32_t below;
		bool in;

		if (w->c->bad)
			return -ENOEXEC;
		if (!code) {
			if (!depth--)
				return 0;
			continue;
		}
		a = dwarf_abbrevs_find(w->u->abbrevs, code);
		if (!a)
			return -ENOEXEC;
		err = read_inner_die(iw, a, iw->parent[depth], &below, &in);
		if (err)
			return err;
		if (in && ++depth == DEPTH_MAX)
			return -ENOEXEC;
		if (in)
			iw->parent[depth] = below;
	}
}

static int read_inlines(struct inline_walk *iw, struct dwarf_functions *all,
			struct dwarf_function *f)
{
	uint64_t walked;
	int err, err2;

	iw->out = calloc(1, sizeof(*iw->out));
	if (!iw->out)
		return -ENOMEM;
	walk_init(&iw->w, iw->w.u, &iw->out->map, f->offset);
	err = walk_inlines(iw);
	walked = dwarf_cursor_at(iw->w.c) - f->offset;
	all->walk_left -= walked < all->walk_left ? walked : all->walk_left;
	err2 = range_map_flatten(&iw->out->map);
	if (err2 || !iw->out->cnt) {
		inlines_free(iw->out);
		return err2 ? err2 : err;
	}
	f->inlines = iw->out;
	return err;
}

int dwarf_function_read_inlines(struct dwarf_unit *u, struct dwarf_functions *all,
				struct dwarf_function *f, uint64_t *bytes)
{
	struct inline_walk *iw;
	int err;

	if (f->inlines_read)
		return 0;
	f->inlines_read = true;
	if (!all->walk_left)
		return -ENOEXEC;
	iw = malloc(sizeof(*iw));
	if (!iw)
		return -ENOMEM;
	iw->w.u = u;
	iw->cap = 0;
	err = read_inlines(iw, all, f);
	if (f->inlines)
		*bytes += sizeof(*f->inlines) + iw->cap * sizeof(*f->inlines->node) +
			  range_map_bytes(&f->inlines->map);
	free(iw);
	return err;
}

/* ---- names ---- */

/* The unit of a DIE: *o and u are where the reference stands. */
static struct dwarf_unit *unit_of(struct dwarf_unit *u, struct dwarf_ref at)
{
	struct dwarf_object *o = at.kind == DWARF_REF_ALT ? u->obj->alt : u->obj;

	if (!o)
		return NULL;
	if (o == u->obj && at.offset >= u->die_offset && at.offset < u->end)
		return u;
	return dwarf_object_unit_at(o, at.offset);
}

static int read_die_at(struct dwarf_unit *u, uint64_t at, struct die *d)
{
	struct dwarf_cursor *c = dwarf_object_at(u->obj, DWARF_INFO, at);
	const struct dwarf_abbrev *a = dwarf_abbrevs_find(u->abbrevs, dwarf_uleb(c));

	if (!a || c->bad)
		return -ENOEXEC;
	read_die(c, u->abbrevs, a, d);
	return c->bad ? -ENOEXEC : 0;
}

char *dwarf_function_name(struct dwarf_unit *u, struct dwarf_ref at,
			  int (*abbrevs_of)(void *ctx, struct dwarf_unit *u), void *ctx)
{
	char *name = NULL, *linkage;
	struct die d;

	for (int hop = 0; hop < HOP_MAX && at.kind != DWARF_NONE; hop++) {
		u = unit_of(u, at);
		if (!u || dwarf_unit_read_root(u) || abbrevs_of(ctx, u) ||
		    read_die_at(u, at.offset, &d))
			break;
		linkage = dwarf_unit_string(u, d.linkage, NAME_MAX_BYTES);
		if (linkage) {
			free(name);
			return linkage;
		}
		if (!name)
			name = dwarf_unit_string(u, d.name, NAME_MAX_BYTES);
		at = ref_of(u, d.origin);
	}
	return name;
}
