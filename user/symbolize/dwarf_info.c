/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_info.h"

#include "demangle.h"
#include "dwarf_functions.h"
#include "dwarf_lines.h"
#include "name_cache.h"

#include "../util/array.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES	  (16ULL << 20)
#define DEFAULT_MAX_INFLATE_BYTES (2ULL << 30)
#define NAME_MAX_BYTES		  4096
#define UNIT_RANGE_MAX_CNT	  (1U << 22)
#define ABBREV_BUCKETS		  256
/* What an open file costs besides memory: that bounds how many there are. */
#define OPEN_FILE_BYTES		  (64U << 10)

/* A table of abbreviations that units use. */
struct abbrev_entry {
	struct dwarf_abbrevs table; /* first: units point to it */
	const struct dwarf_object *obj;
	struct abbrev_entry *next;
};

/* What is read of a unit; in the order of use. */
struct dwarf_loaded {
	struct dwarf_loaded *newer, *older;
	struct dwarf_unit *unit;
	struct dwarf_unit *code; /* where its functions are: unit or &split */
	struct dwarf_unit split;
	struct dwarf_object *dwo; /* owned */
	struct dwarf_functions functions;
	struct dwarf_lines *lines;
	bool code_found, functions_read, functions_whole, lines_read;
	struct ptr_map names; /* of functions and files, "" for none; owned */
	uint64_t bytes;
};

struct dwarf_info {
	struct dwarf_object *obj, *alt, *package;
	struct dwarf_opts opts;
	struct range_map units; /* owners are indices of obj->unit; relative to exec_lo */
	struct abbrev_entry *abbrevs[ABBREV_BUCKETS];
	struct dwarf_loaded *newest, *oldest;
	uint64_t bytes; /* of what is loaded */
	struct dwarf_frame *frame;
	size_t frame_cnt, frame_cap;
};

/* ---- abbreviations ---- */

static struct abbrev_entry **bucket(struct dwarf_info *d, uint64_t offset)
{
	return &d->abbrevs[(offset ^ offset >> 8 ^ offset >> 16) % ABBREV_BUCKETS];
}

static struct abbrev_entry *find_abbrevs(struct dwarf_info *d, const struct dwarf_unit *u)
{
	struct abbrev_entry *e = *bucket(d, u->abbrev_offset);

	for (; e; e = e->next) {
		if (e->obj == u->obj && e->table.offset == u->abbrev_offset &&
		    !memcmp(&e->table.params, &u->params, sizeof(u->params)))
			return e;
	}
	return NULL;
}

static int read_abbrevs(struct dwarf_info *d, struct dwarf_unit *u)
{
	struct abbrev_entry *e = find_abbrevs(d, u), **b = bucket(d, u->abbrev_offset);
	int err;

	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		err = dwarf_abbrevs_read(&e->table,
					 dwarf_object_at(u->obj, DWARF_ABBREV, u->abbrev_offset),
					 u->params, 0);
		if (err) {
			dwarf_abbrevs_free(&e->table);
			free(e);
			return err;
		}
		e->obj = u->obj;
		e->next = *b;
		*b = e;
	}
	e->table.user_cnt++;
	u->abbrevs = &e->table;
	return 0;
}

static void release_abbrevs(struct dwarf_info *d, struct dwarf_unit *u)
{
	struct abbrev_entry **e;

	if (!u->abbrevs)
		return;
	e = bucket(d, u->abbrev_offset);
	while (*e && &(*e)->table != u->abbrevs)
		e = &(*e)->next;
	if (*e && !--(*e)->table.user_cnt) {
		struct abbrev_entry *unused = *e;

		*e = unused->next;
		dwarf_abbrevs_free(&unused->table);
		free(unused);
	}
	u->abbrevs = NULL;
}

/* ---- units in memory ---- */

static void grow(struct dwarf_info *d, struct dwarf_loaded *l, uint64_t bytes)
{
	l->bytes += bytes;
	d->bytes += bytes;
}

static void unlink_loaded(struct dwarf_info *d, struct dwarf_loaded *l)
{
	*(l->newer ? &l->newer->older : &d->newest) = l->older;
	*(l->older ? &l->older->newer : &d->oldest) = l->newer;
}

static void link_newest(struct dwarf_info *d, struct dwarf_loaded *l)
{
	l->newer = NULL;
	l->older = d->newest;
	*(d->newest ? &d->newest->newer : &d->oldest) = l;
	d->newest = l;
}

static void unload(struct dwarf_info *d, struct dwarf_loaded *l);

/* Other units of a .dwo that names were in. */
static void unload_dwo(struct dwarf_info *d, struct dwarf_loaded *l)
{
	struct dwarf_loaded *older;

	for (struct dwarf_loaded *k = l->dwo ? d->newest : NULL; k; k = older) {
		older = k->older;
		if (k->unit->obj == l->dwo)
			unload(d, k);
	}
}

static void unload(struct dwarf_info *d, struct dwarf_loaded *l)
{
	unload_dwo(d, l);
	unlink_loaded(d, l);
	d->bytes -= l->bytes;
	l->unit->loaded = NULL;
	release_abbrevs(d, l->unit);
	release_abbrevs(d, &l->split);
	dwarf_functions_free(&l->functions);
	dwarf_lines_free(l->lines);
	ptr_map_each(&l->names, free);
	ptr_map_fini(&l->names);
	dwarf_object_close(l->dwo);
	free(l);
}

/* Nothing that the last answer pointed to stays good. */
static void evict(struct dwarf_info *d)
{
	while (d->bytes > d->opts.max_bytes && d->oldest != d->newest)
		unload(d, d->oldest);
}

static struct dwarf_loaded *load(struct dwarf_info *d, struct dwarf_unit *u)
{
	struct dwarf_loaded *l = u->loaded;

	if (l) {
		unlink_loaded(d, l);
		link_newest(d, l);
		return l;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->unit = l->code = u;
	u->loaded = l;
	link_newest(d, l);
	grow(d, l, sizeof(*l));
	return l;
}

/* A unit that a name is in: its abbreviations count as its own. */
static int abbrevs_of(void *ctx, struct dwarf_unit *u)
{
	struct dwarf_info *d = ctx;
	struct dwarf_loaded *l;
	int err;

	if (u->abbrevs)
		return 0;
	l = load(d, u);
	err = l ? read_abbrevs(d, u) : -ENOMEM;
	if (!err)
		grow(d, l, dwarf_abbrevs_bytes(u->abbrevs));
	return err;
}

/* ---- split units ---- */

static struct dwarf_object *open_dwo(struct dwarf_info *d, const struct dwarf_unit *u)
{
	char *name = dwarf_unit_string(u, u->root.dwo_name, NAME_MAX_BYTES);
	char *dir = dwarf_unit_string(u, u->root.comp_dir, NAME_MAX_BYTES);
	struct dwarf_object *o = NULL;
	int fd = -ENOENT;

	if (name && d->opts.open_dwo)
		fd = d->opts.open_dwo(d->opts.ctx, dir, name, u->id);
	free(name);
	free(dir);
	if (fd >= 0 && dwarf_object_open(&o, fd, d->opts.max_inflate_bytes))
		close(fd);
	else if (fd >= 0)
		o->fd = fd;
	return o;
}

/* Where the functions are if not in the unit itself. Without it there are still lines. */
static void find_code(struct dwarf_info *d, struct dwarf_loaded *l)
{
	struct dwarf_unit *u = l->unit;
	bool found;

	l->code_found = true;
	if (dwarf_unit_read_root(u) || u->root.dwo_name.kind == DWARF_NONE)
		return;
	found = d->package && dwarf_object_split_unit(d->package, u->id, &l->split);
	if (!found) {
		l->dwo = open_dwo(d, u);
		found = l->dwo && dwarf_object_split_unit(l->dwo, u->id, &l->split);
		if (l->dwo)
			grow(d, l, dwarf_object_bytes(l->dwo) + OPEN_FILE_BYTES);
	}
	l->split.skeleton = u;
	l->split.loaded = l;
	if (!found || dwarf_unit_read_root(&l->split) || read_abbrevs(d, &l->split))
		return;
	grow(d, l, dwarf_abbrevs_bytes(l->split.abbrevs));
	l->code = &l->split;
}

/* ---- names ---- */

enum name_space { NAME_INFO, NAME_ALT, NAME_FILE };

static uint64_t name_key(enum name_space space, uint64_t at)
{
	return at << 2 | space;
}

/* Takes text, which may be NULL. The answer is good as long as l. */
static const char *keep_name(struct dwarf_info *d, struct dwarf_loaded *l, uint64_t key, char *text)
{
	if (!text)
		text = strdup("");
	if (!text || ptr_map_put(&l->names, key, text)) {
		free(text);
		return NULL;
	}
	grow(d, l, strlen(text) + 1 + 4 * sizeof(void *));
	return text[0] ? text : NULL;
}

static const char *function_name(struct dwarf_info *d, struct dwarf_loaded *l, struct dwarf_ref ref)
{
	uint64_t key = name_key(ref.kind == DWARF_REF_ALT ? NAME_ALT : NAME_INFO, ref.offset);
	const char *known = ptr_map_get(&l->names, key);
	char *raw;

	if (known)
		return known[0] ? known : NULL;
	raw = dwarf_function_name(l->code, ref, abbrevs_of, d);
	return keep_name(d, l, key, readable_name(raw, d->opts.demangle));
}

static const char *file_name(struct dwarf_info *d, struct dwarf_loaded *l, uint32_t file)
{
	uint64_t key = name_key(NAME_FILE, file);
	const char *known = ptr_map_get(&l->names, key);

	if (known)
		return known[0] ? known : NULL;
	return l->lines ? keep_name(d, l, key, dwarf_lines_file(l->lines, file)) : NULL;
}

/* ---- an answer ---- */

static int read_functions(struct dwarf_info *d, struct dwarf_loaded *l, bool whole)
{
	int err = dwarf_unit_read_root(l->code);

	if (!err)
		err = abbrevs_of(d, l->code);
	if (err)
		return err;
	dwarf_functions_free(&l->functions);
	l->functions_read = true;
	l->functions_whole = whole;
	err = dwarf_functions_read(l->code, whole, &l->functions);
	grow(d, l, dwarf_functions_bytes(&l->functions));
	return err;
}

static void read_lines(struct dwarf_info *d, struct dwarf_loaded *l)
{
	l->lines_read = true;
	if (!dwarf_unit_read_root(l->unit) && !dwarf_lines_read(&l->lines, l->unit))
		grow(d, l, dwarf_lines_bytes(l->lines));
}

/*
 * Most units are read quickly, without the inside of functions. An address in none of the functions
 * found may be in one that is inside of another's DIE.
 */
static const struct addr_range *find_function(struct dwarf_info *d, struct dwarf_loaded *l,
					      uint32_t rel)
{
	const struct addr_range *r;

	if (!l->functions_read && read_functions(d, l, false))
		l->functions_read = true;
	r = range_map_find(&l->functions.map, rel);
	if (!r && !l->functions_whole && !l->functions.is_whole) {
		if (read_functions(d, l, true))
			l->functions_whole = true;
		r = range_map_find(&l->functions.map, rel);
	}
	return r;
}

static struct dwarf_frame *add_frame(struct dwarf_info *d)
{
	if (vp_array_room((void **)&d->frame, &d->frame_cap, d->frame_cnt, 1, sizeof(*d->frame)))
		return NULL;
	d->frame[d->frame_cnt] = (struct dwarf_frame){0};
	return &d->frame[d->frame_cnt++];
}

/* Where the piece of an inlined call around rel begins; ranges are in the order of owners. */
static uint32_t piece_start(const struct dwarf_inlines *in, uint32_t node, uint32_t rel)
{
	size_t lo = 0, n = in->map.cnt;

	while (n) {
		size_t half = n / 2, right = in->map.range[lo + half].owner < node;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	for (; lo < in->map.cnt && in->map.range[lo].owner == node; lo++) {
		const struct addr_range *r = &in->map.range[lo];

		if (rel >= r->lo && rel < r->hi)
			return r->lo;
	}
	return rel;
}

/* From the innermost call outwards; *file and *line become where the outermost one was called. */
static int add_inlined(struct dwarf_info *d, struct dwarf_loaded *l, const struct dwarf_inlines *in,
		       uint32_t rel, uint32_t *file, uint32_t *line)
{
	const struct addr_range *r = range_map_find(&in->map, rel);

	for (uint32_t i = r ? r->owner : DWARF_NO_INLINE; i < in->cnt; i = in->node[i].parent) {
		const struct dwarf_inline *node = &in->node[i];
		struct dwarf_frame *f = add_frame(d);

		if (!f)
			return -ENOMEM;
		f->function = function_name(d, l, node->origin);
		f->file = file_name(d, l, *file);
		f->line = *line;
		f->inlined = true;
		f->offset = rel - piece_start(in, i, rel);
		*file = node->call_file;
		*line = node->call_line;
	}
	return 0;
}

#define NO_FILE UINT32_MAX

static int add_frames(struct dwarf_info *d, struct dwarf_loaded *l, uint64_t addr)
{
	uint32_t rel = (uint32_t)(addr - d->obj->exec_lo), file = NO_FILE, line = 0;
	const struct addr_range *r = find_function(d, l, rel);
	struct dwarf_function *function = r ? &l->functions.function[r->owner] : NULL;
	struct dwarf_frame *f;
	int err = 0;

	if (l->lines)
		dwarf_lines_find(l->lines, addr, &file, &line);
	if (function) {
		uint64_t bytes = 0;

		dwarf_function_read_inlines(l->code, &l->functions, function, &bytes);
		grow(d, l, bytes);
		if (function->inlines)
			err = add_inlined(d, l, function->inlines, rel, &file, &line);
	}
	if (!function && file == NO_FILE)
		return 0;
	f = err ? NULL : add_frame(d);
	if (!f)
		return -ENOMEM;
	f->file = file_name(d, l, file);
	f->line = line;
	if (function) {
		f->function =
			function_name(d, l, (struct dwarf_ref){DWARF_REF_INFO, function->offset});
		f->offset = rel - r->lo;
	}
	return 0;
}

static struct dwarf_unit *unit_around(const struct dwarf_info *d, uint64_t addr)
{
	const struct addr_range *r = NULL;

	if (addr >= d->obj->exec_lo && addr - d->obj->exec_lo <= UINT32_MAX)
		r = range_map_find(&d->units, (uint32_t)(addr - d->obj->exec_lo));
	return r ? &d->obj->unit[r->owner] : NULL;
}

size_t dwarf_info_find(struct dwarf_info *d, uint64_t addr, const struct dwarf_frame **frames)
{
	struct dwarf_unit *u = unit_around(d, addr);
	struct dwarf_loaded *l;

	d->frame_cnt = 0;
	if (!u)
		return 0;
	l = load(d, u);
	evict(d); /* but for the newest */
	if (!l)
		return 0;
	if (!l->code_found)
		find_code(d, l);
	if (!l->lines_read)
		read_lines(d, l);
	if (add_frames(d, l, addr))
		d->frame_cnt = 0;
	*frames = d->frame;
	return d->frame_cnt;
}

/* ---- which unit is where ---- */

struct collecting {
	struct dwarf_info *d;
	uint32_t owner;
	uint32_t range_left;
};

static int add_unit_range(void *ctx, uint64_t lo, uint64_t hi)
{
	struct collecting *g = ctx;
	uint64_t base = g->d->obj->exec_lo;

	if (hi - base > UINT32_MAX)
		return 0;
	return range_map_add(&g->d->units, (struct addr_range){.lo = (uint32_t)(lo - base),
							       .hi = (uint32_t)(hi - base),
							       .owner = g->owner});
}

static int add_checked_range(struct collecting *g, uint64_t lo, uint64_t len)
{
	const struct dwarf_object *o = g->d->obj;

	if (!g->range_left)
		return -EFBIG;
	g->range_left--;
	if (!len || lo < o->exec_lo || lo >= o->exec_hi || len > o->exec_hi - lo)
		return 0;
	return add_unit_range(g, lo, lo + len);
}

/* A set of .debug_aranges at c, DWARF 5, 6.1.2. covered[unit] is set if it says something. */
static int read_arange_set(struct collecting *g, struct dwarf_cursor *c, uint8_t *covered)
{
	struct dwarf_object *o = g->d->obj;
	uint64_t start = dwarf_cursor_at(c), length = dwarf_u32(c), end, info;
	unsigned int off_size = 4, addr_size;
	struct dwarf_unit *u;
	int err = 0;

	if (length == UINT32_MAX) {
		off_size = 8;
		length = dwarf_u64(c);
	}
	if (c->bad || length > c->limit - dwarf_cursor_at(c))
		return -ENOEXEC;
	end = dwarf_cursor_at(c) + length;
	dwarf_u16(c); /* version */
	info = dwarf_uint(c, off_size);
	addr_size = dwarf_u8(c);
	dwarf_u8(c); /* segment selectors: nobody has them */
	u = dwarf_object_unit_at(o, info + (off_size == 4 ? 12 : 24));
	if (!u || u->offset != info || (addr_size != 4 && addr_size != 8)) {
		dwarf_cursor_seek(c, end);
		return 0;
	}
	g->owner = (uint32_t)(u - o->unit);
	dwarf_skip(c, -(dwarf_cursor_at(c) - start) % (2 * addr_size));
	while (!err && !c->bad && dwarf_cursor_at(c) < end) {
		uint64_t lo = dwarf_uint(c, addr_size), len = dwarf_uint(c, addr_size);

		if (!lo && !len)
			break;
		covered[g->owner] = 1;
		err = add_checked_range(g, lo, len);
	}
	dwarf_cursor_seek(c, end);
	return err;
}

static int read_aranges(struct collecting *g, uint8_t *covered)
{
	struct dwarf_cursor *c = dwarf_object_at(g->d->obj, DWARF_ARANGES, 0);
	int err = 0;

	while (!err && !c->bad && dwarf_cursor_at(c) < c->limit)
		err = read_arange_set(g, c, covered);
	return err == -ENOEXEC ? 0 : err;
}

/* A unit that does not say what it covers has all that its functions do. */
static int collect_from_functions(struct collecting *g, struct dwarf_unit *u)
{
	struct dwarf_functions f = {0};
	uint64_t base = g->d->obj->exec_lo;
	bool is_known = find_abbrevs(g->d, u);
	int err = u->obj->abbrev_left ? abbrevs_of(g->d, u) : -ENOEXEC;

	if (!err && !is_known)
		dwarf_object_count_abbrevs(u->obj, dwarf_abbrevs_bytes(u->abbrevs));
	if (!err)
		err = dwarf_functions_read(u, false, &f);
	for (size_t i = 0; err != -ENOMEM && i < f.map.cnt; i++) {
		if (add_checked_range(g, base + f.map.range[i].lo,
				      f.map.range[i].hi - f.map.range[i].lo))
			break;
	}
	dwarf_functions_free(&f);
	evict(g->d);
	return err;
}

static int collect_from_unit(struct collecting *g, struct dwarf_unit *u)
{
	const struct dwarf_root *r = &u->root;
	size_t before = g->d->units.cnt;
	int err;

	if (u->type == DW_UT_type || u->type == DW_UT_split_type || u->type == DW_UT_partial)
		return 0;
	err = dwarf_unit_read_root(u);
	if (err || r->tag == DW_TAG_partial_unit || r->tag == DW_TAG_type_unit)
		return err == -ENOMEM ? err : 0;
	g->owner = (uint32_t)(u - g->d->obj->unit);
	err = dwarf_unit_each_range(u, r->low, r->high, r->ranges, &g->range_left, add_unit_range,
				    g);
	if (!err && g->d->units.cnt == before && r->ranges.kind == DWARF_NONE &&
	    r->high.kind == DWARF_NONE && r->tag == DW_TAG_compile_unit)
		err = collect_from_functions(g, u);
	return err == -ENOMEM ? err : 0;
}

/* Of two units at one address the first is right: so it comes last. */
static int by_owner(const void *a, const void *b)
{
	const struct addr_range *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner > y->owner ? -1 : 1;
	return (x->lo > y->lo) - (x->lo < y->lo);
}

static int collect_units(struct dwarf_info *d)
{
	struct collecting g = {.d = d, .range_left = UNIT_RANGE_MAX_CNT};
	uint8_t *covered = calloc(d->obj->unit_cnt + 1, 1);
	int err;

	if (!covered)
		return -ENOMEM;
	err = read_aranges(&g, covered);
	for (size_t i = 0; !err && i < d->obj->unit_cnt; i++) {
		if (!covered[i])
			err = collect_from_unit(&g, &d->obj->unit[i]);
	}
	free(covered);
	if (err)
		return err;
	if (d->units.cnt)
		qsort(d->units.range, d->units.cnt, sizeof(*d->units.range), by_owner);
	return range_map_flatten(&d->units);
}

/* ---- order ---- */

struct sort_key {
	uint64_t addr;
	uint32_t unit, index;
};

static int by_key(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

void dwarf_info_sort(const struct dwarf_info *d, const uint64_t *addrs, uint32_t *order, size_t cnt)
{
	struct sort_key *keys = malloc((cnt + 1) * sizeof(*keys));

	for (size_t i = 0; i < cnt; i++)
		order[i] = (uint32_t)i;
	if (!keys)
		return; /* any order is right */
	for (size_t i = 0; i < cnt; i++) {
		const struct dwarf_unit *u = unit_around(d, addrs[i]);

		keys[i] = (struct sort_key){addrs[i], u ? (uint32_t)(u - d->obj->unit) : UINT32_MAX,
					    (uint32_t)i};
	}
	qsort(keys, cnt, sizeof(*keys), by_key);
	for (size_t i = 0; i < cnt; i++)
		order[i] = keys[i].index;
	free(keys);
}

/* ---- life ---- */

/* Takes obj over. */
static int open_info(struct dwarf_info **out, struct dwarf_object *obj,
		     const struct dwarf_opts *opts)
{
	struct dwarf_info *d = calloc(1, sizeof(*d));
	int err;

	if (!d) {
		dwarf_object_close(obj);
		return -ENOMEM;
	}
	d->obj = obj;
	d->opts = *opts;
	err = obj->sect[DWARF_INFO].size ? collect_units(d) : -ENOENT;
	if (err) {
		dwarf_info_close(d);
		return err;
	}
	*out = d;
	return 0;
}

static struct dwarf_opts defaults(const struct dwarf_opts *opts)
{
	struct dwarf_opts o = opts ? *opts : (struct dwarf_opts){0};

	o.max_bytes = o.max_bytes ? o.max_bytes : DEFAULT_MAX_BYTES;
	o.max_inflate_bytes = o.max_inflate_bytes ? o.max_inflate_bytes : DEFAULT_MAX_INFLATE_BYTES;
	return o;
}

int dwarf_info_open(struct dwarf_info **out, int fd, const struct dwarf_opts *opts)
{
	const struct dwarf_opts o = defaults(opts);
	struct dwarf_object *obj;
	int err = dwarf_object_open(&obj, fd, o.max_inflate_bytes);

	return err ? err : open_info(out, obj, &o);
}

int dwarf_info_open_memory(struct dwarf_info **out, const void *image, size_t size,
			   const struct dwarf_opts *opts)
{
	const struct dwarf_opts o = defaults(opts);
	struct dwarf_object *obj;
	int err = dwarf_object_open_memory(&obj, image, size, o.max_inflate_bytes);

	return err ? err : open_info(out, obj, &o);
}

int dwarf_info_set_alt(struct dwarf_info *d, int fd)
{
	int err = d->alt ? -EEXIST : dwarf_object_open(&d->alt, fd, d->opts.max_inflate_bytes);

	if (!err)
		d->obj->alt = d->alt;
	return err;
}

int dwarf_info_set_package(struct dwarf_info *d, int fd)
{
	return d->package ? -EEXIST : dwarf_object_open(&d->package, fd, d->opts.max_inflate_bytes);
}

void dwarf_info_close(struct dwarf_info *d)
{
	if (!d)
		return;
	for (struct dwarf_loaded *l = d->oldest, *next; l; l = next) {
		next = l->newer;
		unload(d, l);
	}
	range_map_free(&d->units);
	free(d->frame);
	dwarf_object_close(d->obj);
	dwarf_object_close(d->alt);
	dwarf_object_close(d->package);
	free(d);
}

uint64_t dwarf_info_bytes(const struct dwarf_info *d)
{
	uint64_t bytes = sizeof(*d) + d->bytes + range_map_bytes(&d->units);

	bytes += dwarf_object_bytes(d->obj);
	bytes += d->alt ? dwarf_object_bytes(d->alt) : 0;
	bytes += d->package ? dwarf_object_bytes(d->package) : 0;
	return bytes;
}
