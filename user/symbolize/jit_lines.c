/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jit_lines.h"

#include "../util/array.h"

#include <errno.h>
#include <string.h>

/* Packed: how many bytes in all; unless that is all, the number of lines, the lines, the files. */
struct jit_line {
	uint32_t offset;
	uint32_t line;
	uint32_t file; /* offset in files */
};

#define NONE_BYTES sizeof(uint32_t)
#define HEAD_BYTES (2 * sizeof(uint32_t))

static uint32_t read_u32(const char *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static bool is_last_file(const struct jit_lines *l, const char *file, size_t len)
{
	const char *last;

	if (!l->file_bytes)
		return false;
	last = l->files + l->last_file;
	return strlen(last) == len && !memcmp(last, file, len);
}

static int add_file(struct jit_lines *l, const char *file, size_t len)
{
	if (is_last_file(l, file, len))
		return 0;
	if (vp_array_room((void **)&l->files, &l->file_cap, l->file_bytes, len + 1, 1))
		return -ENOMEM;
	l->last_file = (uint32_t)l->file_bytes;
	memcpy(l->files + l->file_bytes, file, len);
	l->files[l->file_bytes + len] = '\0';
	l->file_bytes += len + 1;
	return 0;
}

int jit_lines_add(struct jit_lines *l, uint32_t offset, uint32_t line, const char *file, size_t len)
{
	len = strnlen(file, len);
	if (!len && !l->file_bytes)
		return -EINVAL;
	if (jit_lines_packed_bytes(l) + HEAD_BYTES + sizeof(*l->line) + len + 1 >
	    JIT_LINES_MAX_BYTES)
		return -EINVAL;
	if (vp_array_room((void **)&l->line, &l->cap, l->cnt, 1, sizeof(*l->line)))
		return -ENOMEM;
	if (len && add_file(l, file, len))
		return -ENOMEM;
	l->line[l->cnt++] = (struct jit_line){.offset = offset, .line = line, .file = l->last_file};
	return 0;
}

void jit_lines_clear(struct jit_lines *l)
{
	l->cnt = l->file_bytes = 0;
	l->last_file = 0;
}

void jit_lines_free(struct jit_lines *l)
{
	free(l->line);
	free(l->files);
	*l = (struct jit_lines){0};
}

void jit_lines_span(const struct jit_lines *l, uint32_t *low, uint32_t *high)
{
	*low = UINT32_MAX;
	*high = 0;
	for (size_t i = 0; i < l->cnt; i++) {
		*low = l->line[i].offset < *low ? l->line[i].offset : *low;
		*high = l->line[i].offset > *high ? l->line[i].offset : *high;
	}
}

void jit_lines_shift(struct jit_lines *l, uint32_t by)
{
	for (size_t i = 0; i < l->cnt; i++)
		l->line[i].offset -= by;
}

size_t jit_lines_packed_bytes(const struct jit_lines *l)
{
	if (!l || !l->cnt)
		return NONE_BYTES;
	return HEAD_BYTES + l->cnt * sizeof(*l->line) + l->file_bytes;
}

void jit_lines_pack(const struct jit_lines *l, char *to)
{
	const uint32_t bytes = (uint32_t)jit_lines_packed_bytes(l);
	uint32_t cnt;

	to = mempcpy(to, &bytes, sizeof(bytes));
	if (bytes == NONE_BYTES)
		return;
	cnt = (uint32_t)l->cnt;
	to = mempcpy(to, &cnt, sizeof(cnt));
	to = mempcpy(to, l->line, cnt * sizeof(*l->line));
	memcpy(to, l->files, l->file_bytes);
}

size_t jit_lines_bytes_at(const char *packed)
{
	return read_u32(packed);
}

/* Lines may come in any order; of several at one offset the last counts. */
bool jit_lines_find(const char *packed, uint64_t offset, const char **file, uint32_t *line)
{
	const bool none = jit_lines_bytes_at(packed) == NONE_BYTES;
	const uint32_t cnt = none ? 0 : read_u32(packed + sizeof(uint32_t));
	const char *at = packed + HEAD_BYTES;
	struct jit_line best = {0}, l;
	bool found = false;

	for (uint32_t i = 0; i < cnt; i++, at += sizeof(l)) {
		memcpy(&l, at, sizeof(l));
		if (l.offset > offset || (found && l.offset < best.offset))
			continue;
		best = l;
		found = true;
	}
	if (!found)
		return false;
	*file = at + best.file;
	*line = best.line;
	return true;
}
