/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_lines.h"

#include "../util/array.h"

#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_MAX_CNT	  (1U << 20)
#define SEQUENCE_MAX_CNT  (1U << 22)
#define MARK_MAX_CNT	  (1U << 24)
#define PATH_PART_MAX	  4096
#define FORMAT_MAX_CNT	  16
#define MARK_EVERY_ROWS	  64
#define MARK_EVERY_BYTES  1024
#define LOOK_UP_MAX_BYTES (64U << 10)
#define OVERLAP_MAX	  8

/* A row and the place in the program behind it. */
struct mark {
	uint32_t addr; /* relative to exec_lo */
	uint32_t at;   /* in the program, bytes */
	uint32_t file, line;
};

/* A run of ascending addresses; its marks are those from `first` to the next one's. */
struct sequence {
	uint32_t lo, hi;
	uint32_t first, cnt;
};

struct file_entry {
	struct dwarf_value name;
	uint32_t dir;
};

struct dwarf_lines {
	const struct dwarf_unit *u; /* outlives this */
	struct dwarf_params params;
	uint64_t program, end; /* in .debug_line */
	uint8_t min_inst, line_range, opcode_base;
	int8_t line_base;
	uint8_t operand_cnt[256]; /* of standard opcodes */
	struct dwarf_value *dir;
	struct file_entry *file;
	struct mark *mark;
	struct sequence *sequence;
	size_t dir_cnt, dir_cap, file_cnt, file_cap, mark_cnt, mark_cap, sequence_cnt, sequence_cap;
};

/* ---- the header ---- */

static int add_dir(struct dwarf_lines *l, struct dwarf_value v)
{
	if (l->dir_cnt == FILE_MAX_CNT)
		return -ENOEXEC;
	if (vp_array_room((void **)&l->dir, &l->dir_cap, l->dir_cnt, 1, sizeof(v)))
		return -ENOMEM;
	l->dir[l->dir_cnt++] = v;
	return 0;
}

static int add_file(struct dwarf_lines *l, struct file_entry f)
{
	if (l->file_cnt == FILE_MAX_CNT)
		return -ENOEXEC;
	if (vp_array_room((void **)&l->file, &l->file_cap, l->file_cnt, 1, sizeof(f)))
		return -ENOMEM;
	l->file[l->file_cnt++] = f;
	return 0;
}

/* Before DWARF 5: strings until an empty one. */
static int read_old_tables(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	int err = 0;

	while (!err && !c->bad) {
		struct dwarf_value v = {DWARF_STR_HERE, dwarf_cursor_at(c)};

		dwarf_skip_string(c);
		if (dwarf_cursor_at(c) == v.v + 1)
			break;
		err = add_dir(l, v);
	}
	while (!err && !c->bad) {
		struct file_entry f = {.name = {DWARF_STR_HERE, dwarf_cursor_at(c)}};

		dwarf_skip_string(c);
		if (dwarf_cursor_at(c) == f.name.v + 1)
			break;
		f.dir = (uint32_t)dwarf_uleb(c);
		dwarf_uleb(c); /* time */
		dwarf_uleb(c); /* size */
		err = add_file(l, f);
	}
	return err;
}

struct format {
	uint64_t content[FORMAT_MAX_CNT];
	uint16_t form[FORMAT_MAX_CNT];
	unsigned int cnt;
};

static bool read_format(struct dwarf_cursor *c, struct format *f)
{
	f->cnt = dwarf_u8(c);
	if (f->cnt > FORMAT_MAX_CNT)
		return false;
	for (unsigned int i = 0; i < f->cnt; i++) {
		f->content[i] = dwarf_uleb(c);
		f->form[i] = (uint16_t)dwarf_uleb(c);
	}
	return !c->bad;
}

static struct file_entry read_entry(struct dwarf_lines *l, struct dwarf_cursor *c,
				    const struct format *f)
{
	struct file_entry e = {0};

	for (unsigned int i = 0; i < f->cnt; i++) {
		struct dwarf_value v = dwarf_read_form(c, l->params, f->form[i], 0);

		if (f->content[i] == DW_LNCT_path)
			e.name = v;
		else if (f->content[i] == DW_LNCT_directory_index)
			e.dir = (uint32_t)v.v;
	}
	return e;
}

static int read_new_tables(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	struct format f;
	uint64_t cnt;
	int err = 0;

	if (!read_format(c, &f))
		return -ENOEXEC;
	cnt = dwarf_uleb(c);
	for (uint64_t i = 0; !err && i < cnt && !c->bad; i++)
		err = add_dir(l, read_entry(l, c, &f).name);
	if (err || !read_format(c, &f))
		return err ? err : -ENOEXEC;
	cnt = dwarf_uleb(c);
	for (uint64_t i = 0; !err && i < cnt && !c->bad; i++)
		err = add_file(l, read_entry(l, c, &f));
	return err;
}

static int read_header(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	uint64_t length = dwarf_u32(c), header;
	int err;

	l->params.off_size = 4;
	if (length == UINT32_MAX) {
		l->params.off_size = 8;
		length = dwarf_u64(c);
	}
	if (c->bad || length > c->limit - dwarf_cursor_at(c))
		return -ENOEXEC;
	l->end = dwarf_cursor_at(c) + length;
	l->params.version = (uint8_t)dwarf_u16(c);
	l->params.addr_size = l->u->params.addr_size;
	if (l->params.version < 2 || l->params.version > 5)
		return -ENOEXEC;
	if (l->params.version == 5) {
		l->params.addr_size = dwarf_u8(c);
		dwarf_u8(c); /* segment selectors: nobody has them */
	}
	header = dwarf_uint(c, l->params.off_size);
	if (c->bad || header > l->end - dwarf_cursor_at(c))
		return -ENOEXEC;
	l->program = dwarf_cursor_at(c) + header;
	l->min_inst = dwarf_u8(c);
	if (l->params.version >= 4)
		dwarf_u8(c); /* operations an instruction: 1 wherever we run */
	dwarf_u8(c);	     /* default_is_stmt */
	l->line_base = (int8_t)dwarf_u8(c);
	l->line_range = dwarf_u8(c);
	l->opcode_base = dwarf_u8(c);
	for (unsigned int i = 1; i < l->opcode_base; i++)
		l->operand_cnt[i] = dwarf_u8(c);
	if (c->bad || !l->line_range || !l->opcode_base || l->end - l->program > UINT32_MAX)
		return -ENOEXEC;
	err = l->params.version < 5 ? read_old_tables(l, c) : read_new_tables(l, c);
	return err ? err : c->bad ? -ENOEXEC : 0;
}

/* ---- the program ---- */

struct row {
	uint64_t addr;
	uint32_t file, line;
};

enum event { EVENT_NONE, EVENT_ROW, EVENT_END };

static enum event extended(const struct dwarf_lines *l, struct dwarf_cursor *c, struct row *r)
{
	uint64_t len = dwarf_uleb(c), start = dwarf_cursor_at(c);
	enum event event = EVENT_NONE;

	if (!len)
		return EVENT_NONE;
	switch (dwarf_u8(c)) {
	case DW_LNE_end_sequence:
		event = EVENT_END;
		break;
	case DW_LNE_set_address:
		r->addr = dwarf_uint(c, len == 9 ? 8 : l->params.addr_size);
		break;
	default:
		break;
	}
	dwarf_cursor_seek(c, len > c->limit - start ? UINT64_MAX : start + len);
	return event;
}

static void standard(const struct dwarf_lines *l, struct dwarf_cursor *c, uint8_t op, struct row *r)
{
	switch (op) {
	case DW_LNS_advance_pc:
		r->addr += dwarf_uleb(c) * l->min_inst;
		break;
	case DW_LNS_advance_line:
		r->line += (uint32_t)dwarf_sleb(c);
		break;
	case DW_LNS_set_file:
		r->file = (uint32_t)dwarf_uleb(c);
		break;
	case DW_LNS_const_add_pc:
		r->addr += (uint64_t)((255 - l->opcode_base) / l->line_range) * l->min_inst;
		break;
	case DW_LNS_fixed_advance_pc:
		r->addr += dwarf_u16(c);
		break;
	default:
		for (unsigned int i = 0; i < l->operand_cnt[op]; i++)
			dwarf_uleb(c);
		break;
	}
}

static inline enum event step(const struct dwarf_lines *l, struct dwarf_cursor *c, struct row *r)
{
	uint8_t op = dwarf_u8(c);

	if (op >= l->opcode_base) {
		unsigned int special = op - l->opcode_base;

		r->addr += (uint64_t)(special / l->line_range) * l->min_inst;
		r->line += (uint32_t)(l->line_base + (int)(special % l->line_range));
		return EVENT_ROW;
	}
	if (!op)
		return extended(l, c, r);
	if (op == DW_LNS_copy)
		return EVENT_ROW;
	standard(l, c, op, r);
	return EVENT_NONE;
}

/* A sequence as it is read. */
struct reading {
	struct dwarf_lines *l;
	uint64_t exec_lo, exec_hi;
	uint64_t last_addr;
	uint64_t last_mark_at;
	uint32_t rows; /* since the last mark */
	bool open;
	bool dropped; /* by the linker: it left the sequence where no code is */
};

static int add_mark(struct reading *g, const struct row *r, uint64_t at)
{
	struct dwarf_lines *l = g->l;

	if (l->mark_cnt == MARK_MAX_CNT)
		return -ENOEXEC;
	if (vp_array_room((void **)&l->mark, &l->mark_cap, l->mark_cnt, 1, sizeof(*l->mark)))
		return -ENOMEM;
	l->mark[l->mark_cnt++] = (struct mark){
		.addr = (uint32_t)(r->addr - g->exec_lo),
		.at = (uint32_t)(at - l->program),
		.file = r->file,
		.line = r->line,
	};
	g->rows = 0;
	g->last_mark_at = at;
	return 0;
}

static int open_sequence(struct reading *g, const struct row *r, uint64_t at)
{
	struct dwarf_lines *l = g->l;

	/* To its end: what goes on for long enough gets to where other code is. */
	g->dropped =
		r->addr < g->exec_lo || r->addr >= g->exec_hi || r->addr - g->exec_lo > UINT32_MAX;
	if (g->dropped)
		return 0;
	if (l->sequence_cnt == SEQUENCE_MAX_CNT)
		return -ENOEXEC;
	if (vp_array_room((void **)&l->sequence, &l->sequence_cap, l->sequence_cnt, 1,
			  sizeof(*l->sequence)))
		return -ENOMEM;
	l->sequence[l->sequence_cnt] = (struct sequence){.lo = (uint32_t)(r->addr - g->exec_lo),
							 .first = (uint32_t)l->mark_cnt};
	g->open = true;
	g->last_addr = r->addr;
	return add_mark(g, r, at);
}

static void close_sequence(struct reading *g, uint64_t end)
{
	struct dwarf_lines *l = g->l;
	struct sequence *s;

	if (!g->open)
		return;
	g->open = false;
	s = &l->sequence[l->sequence_cnt];
	if (end <= g->exec_lo + s->lo || end > g->exec_hi || end - g->exec_lo > UINT32_MAX) {
		l->mark_cnt = s->first;
		return;
	}
	s->hi = (uint32_t)(end - g->exec_lo);
	s->cnt = (uint32_t)l->mark_cnt - s->first;
	l->sequence_cnt++;
}

static int on_row(struct reading *g, const struct row *r, uint64_t at)
{
	/* Addresses ascend in a sequence; if not, it is another one. */
	if (g->open && (r->addr < g->last_addr || r->addr - g->exec_lo > UINT32_MAX))
		close_sequence(g, g->last_addr);
	if (!g->open)
		return g->dropped ? 0 : open_sequence(g, r, at);
	g->last_addr = r->addr;
	if (++g->rows < MARK_EVERY_ROWS && at - g->last_mark_at < MARK_EVERY_BYTES)
		return 0;
	return add_mark(g, r, at);
}

static const struct row first_row = {.file = 1, .line = 1};

static int run_program(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	struct reading g = {.l = l, .exec_lo = l->u->obj->exec_lo, .exec_hi = l->u->obj->exec_hi};
	struct row r = first_row;
	int err = 0;

	while (!err && dwarf_cursor_at(c) < c->limit && !c->bad) {
		enum event event = step(l, c, &r);

		if (event == EVENT_ROW) {
			err = on_row(&g, &r, dwarf_cursor_at(c));
		} else if (event == EVENT_END) {
			close_sequence(&g, r.addr);
			g.dropped = false;
			r = first_row;
		}
	}
	close_sequence(&g, g.last_addr); /* one without an end */
	return err;
}

static int by_lo(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

static int read_lines(struct dwarf_lines *l, uint64_t at)
{
	struct dwarf_object *o = l->u->obj;
	struct dwarf_cursor *c = dwarf_object_at(o, DWARF_LINE, at);
	int err = c->bad ? -ENOEXEC : read_header(l, c);

	if (err)
		return err;
	dwarf_cursor_set(c, &o->sect[DWARF_LINE], l->program, l->end);
	err = run_program(l, c);
	if (err == -ENOMEM)
		return err;
	/* Behind damage there is nothing, before it there is. */
	if (l->sequence_cnt)
		qsort(l->sequence, l->sequence_cnt, sizeof(*l->sequence), by_lo);
	return 0;
}

int dwarf_lines_read(struct dwarf_lines **out, const struct dwarf_unit *u)
{
	struct dwarf_lines *l;
	int err;

	if (u->root.stmt_list.kind != DWARF_SEC_OFFSET && u->root.stmt_list.kind != DWARF_CONST)
		return -ENOENT;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->u = u;
	err = read_lines(l, u->root.stmt_list.v);
	if (err) {
		dwarf_lines_free(l);
		return err;
	}
	*out = l;
	return 0;
}

void dwarf_lines_free(struct dwarf_lines *l)
{
	if (!l)
		return;
	free(l->dir);
	free(l->file);
	free(l->mark);
	free(l->sequence);
	free(l);
}

size_t dwarf_lines_bytes(const struct dwarf_lines *l)
{
	return sizeof(*l) + l->dir_cap * sizeof(*l->dir) + l->file_cap * sizeof(*l->file) +
	       l->mark_cap * sizeof(*l->mark) + l->sequence_cap * sizeof(*l->sequence);
}

/* ---- answers ---- */

/* The last of those that begin at or before addr and end behind it. */
static const struct sequence *find_sequence(const struct dwarf_lines *l, uint32_t addr)
{
	size_t lo = 0, n = l->sequence_cnt;

	while (n) {
		size_t half = n / 2, right = l->sequence[lo + half].lo <= addr;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	for (int i = 0; lo && i < OVERLAP_MAX; i++, lo--) {
		if (addr < l->sequence[lo - 1].hi)
			return &l->sequence[lo - 1];
	}
	return NULL;
}

static const struct mark *find_mark(const struct dwarf_lines *l, const struct sequence *s,
				    uint32_t addr)
{
	const struct mark *m = &l->mark[s->first];
	size_t lo = 1, n = s->cnt - 1; /* the first is at or before addr */

	while (n) {
		size_t half = n / 2, right = m[lo + half].addr <= addr;

		lo = right ? lo + half + 1 : lo;
		n = right ? n - half - 1 : half;
	}
	return &m[lo - 1];
}

int dwarf_lines_find(const struct dwarf_lines *l, uint64_t addr, uint32_t *file, uint32_t *line)
{
	struct dwarf_object *o = l->u->obj;
	const struct sequence *s = NULL;
	const struct mark *m;
	struct dwarf_cursor *c;
	struct row r, best;
	uint64_t at;

	if (addr >= o->exec_lo && addr - o->exec_lo <= UINT32_MAX)
		s = find_sequence(l, (uint32_t)(addr - o->exec_lo));
	if (!s)
		return -ENOENT;
	m = find_mark(l, s, (uint32_t)(addr - o->exec_lo));
	best = r = (struct row){o->exec_lo + m->addr, m->file, m->line};
	at = l->program + m->at;
	c = &o->cursor[DWARF_LINE];
	dwarf_cursor_set(c, &o->sect[DWARF_LINE], at, l->end);
	while (dwarf_cursor_at(c) - at < LOOK_UP_MAX_BYTES) {
		enum event event = step(l, c, &r);

		if (c->bad || event == EVENT_END)
			break;
		if (event != EVENT_ROW)
			continue;
		if (r.addr > addr || r.addr < best.addr)
			break;
		best = r;
	}
	*file = best.file;
	*line = best.line;
	return 0;
}

static char *string_of(const struct dwarf_lines *l, struct dwarf_value v)
{
	if (v.kind == DWARF_STR_HERE)
		return dwarf_string(dwarf_object_at(l->u->obj, DWARF_LINE, v.v), PATH_PART_MAX);
	return dwarf_unit_string(l->u, v, PATH_PART_MAX);
}

/* dir/name, unless name needs no dir. Takes both; either may be NULL. */
static char *join(char *dir, char *name)
{
	const char *slash;
	char *path = NULL;

	if (!name || name[0] == '/' || !dir || !dir[0]) {
		free(dir);
		return name;
	}
	slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
	if (asprintf(&path, "%s%s%s", dir, slash, name) < 0)
		path = NULL;
	free(dir);
	free(name);
	return path;
}

/* Directory 0 is that of compilation, which before DWARF 5 only the unit knows. */
static char *directory(const struct dwarf_lines *l, uint32_t dir)
{
	uint32_t index = l->params.version < 5 ? dir - 1 : dir;
	char *comp_dir = dwarf_unit_string(l->u, l->u->root.comp_dir, PATH_PART_MAX);

	if (index >= l->dir_cnt)
		return comp_dir;
	return join(comp_dir, string_of(l, l->dir[index]));
}

char *dwarf_lines_file(const struct dwarf_lines *l, uint32_t file)
{
	uint32_t index = l->params.version < 5 ? file - 1 : file;
	char *name;

	if (index >= l->file_cnt)
		return NULL;
	name = string_of(l, l->file[index].name);
	if (!name || name[0] == '/')
		return name;
	return join(directory(l, l->file[index].dir), name);
}
