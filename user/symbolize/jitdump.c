/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jitdump.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define MAGIC	0x4a695444U /* "JiTD", written as a number of the machine's byte order */
#define VERSION 1

/*
 * V8 and LLVM add an ELF header's size to the addresses of lines, as perf once needed it: the first
 * line is then so far from the code's start, and the last ones may be behind its end.
 */
#define LINE_BIAS 0x40

struct header {
	uint32_t magic;
	uint32_t version;
	uint32_t total_size; /* of the header */
	uint32_t elf_mach;
	uint32_t pad;
	uint32_t pid;
	uint64_t timestamp;
	uint64_t flags;
};

enum record_id {
	CODE_LOAD,
	CODE_MOVE,
	CODE_DEBUG_INFO,
	CODE_CLOSE,
	CODE_UNWINDING_INFO,
};

struct prefix {
	uint32_t id;
	uint32_t total_size; /* this included */
	uint64_t timestamp;
};

/* The function's name and the code follow. */
struct load {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma;
	uint64_t code_addr;
	uint64_t code_size;
	uint64_t code_index;
};

struct move {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma;
	uint64_t old_code_addr;
	uint64_t new_code_addr;
	uint64_t code_size;
	uint64_t code_index;
};

/* So many lines follow. */
struct debug_info {
	struct prefix prefix;
	uint64_t code_addr;
	uint64_t line_cnt;
};

/* The file's name follows, with a NUL; SAME_FILE: that of the line before. */
struct debug_line {
	uint64_t addr;
	uint32_t line;
	uint32_t discriminator;
};

#define SAME_FILE "\xff"

_Static_assert(sizeof(struct header) == 40 && sizeof(struct prefix) == 16 &&
		       sizeof(struct load) == 56 && sizeof(struct move) == 64 &&
		       sizeof(struct debug_info) == 32 && sizeof(struct debug_line) == 16,
	       "as perf's specification has them");

/* Bytes of a record that are looked at: more of a name is cut anyway. */
#define NEEDED_MAX (sizeof(struct move) + VP_JIT_NAME_BYTES)

#define FILE_NAME_BYTES PATH_MAX

_Static_assert(NEEDED_MAX <= JITDUMP_WINDOW_BYTES &&
		       sizeof(struct debug_line) + FILE_NAME_BYTES <= JITDUMP_WINDOW_BYTES,
	       "a window holds what is looked at");

static int read_header(struct jitdump *d, const char *at, size_t cnt, uint64_t *next)
{
	struct header h;

	if (cnt < sizeof(h))
		return 0;
	memcpy(&h, at, sizeof(h));
	if (h.magic != MAGIC || h.version != VERSION || h.total_size < sizeof(h)) {
		d->ended = true;
		return -ENOEXEC;
	}
	d->begun = true;
	d->pid = h.pid;
	*next = h.total_size;
	return 0;
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* What is damaged in one place is not believed in another. */
static void drop_lines(struct jitdump *d)
{
	d->bad_cnt++;
	d->debug.left = 0;
	jit_lines_clear(&d->debug.lines);
}

static void begin_lines(struct jitdump *d, const char *at, size_t has, uint64_t end)
{
	struct debug_info i;

	jit_lines_clear(&d->debug.lines);
	if (has < sizeof(i)) {
		d->bad_cnt++;
		return;
	}
	memcpy(&i, at, sizeof(i));
	d->debug.code_addr = i.code_addr;
	d->debug.left = i.line_cnt;
	d->debug.end = end;
}

static bool is_file_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)name[i] < ' ')
			return false;
	}
	return true;
}

static int add_line(struct jitdump *d, const struct debug_line *l, const char *file, size_t len)
{
	uint64_t offset = l->addr - d->debug.code_addr;

	if (len == strlen(SAME_FILE) && !memcmp(file, SAME_FILE, len))
		len = 0;
	else if (!len || !is_file_name(file, len))
		return -EINVAL;
	if (offset > UINT32_MAX)
		return -EINVAL;
	return jit_lines_add(&d->debug.lines, (uint32_t)offset, l->line, file, len);
}

/* The line at `at`, of which `has` bytes are at hand. How many it takes; 0: more must be at hand. */
static size_t read_line(struct jitdump *d, const char *at, size_t has, uint64_t left, int *err)
{
	const size_t max = has < left ? has : left;
	struct debug_line l;
	const char *file = at + sizeof(l), *end = NULL;

	if (max > sizeof(l))
		end = memchr(file, '\0', max - sizeof(l));
	if (!end) {
		if (max < left && max < sizeof(l) + FILE_NAME_BYTES)
			return 0;
		drop_lines(d);
		return max;
	}
	memcpy(&l, at, sizeof(l));
	d->debug.left--;
	*err = add_line(d, &l, file, (size_t)(end - file));
	if (*err == -EINVAL) {
		drop_lines(d);
		*err = 0;
	}
	return (size_t)(end + 1 - at);
}

/* A step in the record of lines around `at`: where the next one begins; == at: more is needed. */
static uint64_t step_lines(struct jitdump *d, const char *bytes, size_t has, uint64_t at, int *err)
{
	uint64_t end = d->debug.end, next = at;

	if (d->debug.left && at < end)
		next += read_line(d, bytes, has, end - at, err);
	if (!d->debug.left || next >= end) {
		if (d->debug.left)
			drop_lines(d);
		d->debug.end = 0;
		next = end;
	}
	return next;
}

/* Those of this code, or NULL. */
static const struct jit_lines *take_lines(struct jitdump *d, const struct load *l)
{
	struct jit_lines *lines = &d->debug.lines;
	uint32_t low, high;

	if (!lines->cnt || d->debug.code_addr != l->code_addr)
		return NULL;
	jit_lines_span(lines, &low, &high);
	d->lines_are_exact |= low < LINE_BIAS;
	if (!d->lines_are_exact && (low == LINE_BIAS || high >= l->code_size)) {
		jit_lines_shift(lines, LINE_BIAS);
		high -= LINE_BIAS;
	}
	if (high < l->code_size)
		return lines;
	drop_lines(d);
	return NULL;
}

/* ---- records ---------------------------------------------------------------------------------- */

/* has is how much of the record is at hand: all, or NEEDED_MAX. */
static int read_load(struct jitdump *d, struct jit_table *t, const char *at, size_t has)
{
	struct load l;
	uint64_t name_len;
	int err;

	if (has < sizeof(l))
		return -EINVAL;
	memcpy(&l, at, sizeof(l));
	if (l.code_size >= l.prefix.total_size - sizeof(l))
		return -EINVAL;
	name_len = l.prefix.total_size - sizeof(l) - l.code_size;
	if (name_len > has - sizeof(l))
		name_len = has - sizeof(l);
	err = jit_table_add(t,
			    &(struct jit_code){.start = l.code_addr,
					       .size = l.code_size,
					       .time = l.prefix.timestamp,
					       .index = l.code_index,
					       .lines = take_lines(d, &l)},
			    at + sizeof(l), name_len);
	jit_lines_clear(&d->debug.lines);
	return err;
}

static int read_move(struct jit_table *t, const char *at, size_t has)
{
	struct move m;

	if (has < sizeof(m))
		return -EINVAL;
	memcpy(&m, at, sizeof(m));
	return jit_table_move(t, &(struct jit_code){.start = m.new_code_addr,
						    .size = m.code_size,
						    .time = m.prefix.timestamp,
						    .index = m.code_index});
}

/* end: of the record, in the file. */
static int read_record(struct jitdump *d, struct jit_table *t, const char *at, size_t has,
		       uint64_t end)
{
	struct prefix p;
	int err = 0;

	memcpy(&p, at, sizeof(p));
	switch (p.id) {
	case CODE_LOAD:
		err = read_load(d, t, at, has);
		break;
	case CODE_MOVE:
		err = read_move(t, at, has);
		break;
	case CODE_DEBUG_INFO:
		if (t->keeps_lines)
			begin_lines(d, at, has, end);
		break;
	case CODE_CLOSE:
		d->ended = true;
		break;
	default:
		break;
	}
	if (err == -EINVAL) {
		d->bad_cnt++;
		err = 0;
	}
	return err;
}

/* Bytes that must be at hand of the record at `at`, or 0: it is damaged, or not there as a whole. */
static size_t needed(struct jitdump *d, const struct prefix *p, uint64_t left)
{
	if (p->total_size < sizeof(*p)) {
		d->bad_cnt++;
		d->ended = true;
		return 0;
	}
	if (p->total_size > left)
		return 0;
	return p->total_size < NEEDED_MAX ? p->total_size : NEEDED_MAX;
}

/* A step in the file: where the next one begins; == at: more is needed, or nothing is left. */
static uint64_t step(struct jitdump *d, struct jit_table *t, const char *bytes, size_t cnt,
		     uint64_t at, uint64_t size, int *err)
{
	struct prefix p;
	size_t has;

	if (d->debug.end)
		return step_lines(d, bytes, cnt, at, err);
	if (cnt < sizeof(p))
		return at;
	memcpy(&p, bytes, sizeof(p));
	has = needed(d, &p, size > at ? size - at : 0);
	if (!has || has > cnt)
		return at;
	*err = read_record(d, t, bytes, has, at + p.total_size);
	return d->debug.end ? at + sizeof(struct debug_info) : at + p.total_size;
}

int jitdump_feed(struct jitdump *d, struct jit_table *t, const void *window, size_t cnt,
		 uint64_t offset, uint64_t size, uint64_t *next)
{
	uint64_t at = offset;
	int err = 0;

	*next = offset;
	if (d->ended)
		return 0;
	if (!d->begun)
		return read_header(d, window, cnt, next);
	while (!err && !d->ended && at - offset < cnt) {
		uint64_t to = step(d, t, (const char *)window + (at - offset), cnt - (at - offset),
				   at, size, &err);

		if (to == at)
			break;
		at = to;
	}
	*next = at;
	return err;
}

void jitdump_restart(struct jitdump *d)
{
	struct jit_lines lines = d->debug.lines;

	jit_lines_clear(&lines);
	*d = (struct jitdump){.bad_cnt = d->bad_cnt, .debug.lines = lines};
}

void jitdump_free(struct jitdump *d)
{
	jit_lines_free(&d->debug.lines);
}
