/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The table cuts names anyway; of a longer line nothing more is kept. */
#define LINE_MAX_BYTES 4096

#define HEX_DIGITS_MAX 16

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* A number and the blanks around it; NULL: there is none. */
static const char *parse_hex(const char *at, const char *end, uint64_t *value)
{
	const char *first, *blank;
	size_t digits = 0;

	at = skip_blanks(at, end);
	if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
		at += 2;
	*value = 0;
	for (first = at; at < end && hex_digit(*at) >= 0; at++) {
		*value = *value << 4 | (uint64_t)hex_digit(*at);
		digits += digits || *value;
	}
	blank = at;
	at = skip_blanks(at, end);
	return blank == first || blank == at || digits > HEX_DIGITS_MAX ? NULL : at;
}

/* 0 also if the line says nothing and was counted. */
static int parse_line(struct perf_map *m, struct jit_table *t, const char *at, size_t len)
{
	const char *end = at + len;
	struct jit_code c = {0};
	int err = -EINVAL;

	while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
		end--;
	at = parse_hex(at, end, &c.start);
	if (at)
		at = parse_hex(at, end, &c.size);
	if (at)
		err = jit_table_add(t, &c, at, (size_t)(end - at));
	if (err != -EINVAL)
		return err;
	m->bad_cnt++;
	return 0;
}

/* Appends to the line that is kept, as far as there is room. */
static int keep(struct perf_map *m, const char *bytes, size_t cnt)
{
	size_t room = LINE_MAX_BYTES - m->line_len;

	if (!m->line)
		m->line = malloc(LINE_MAX_BYTES);
	if (!m->line)
		return -ENOMEM;
	if (cnt > room)
		cnt = room;
	memcpy(m->line + m->line_len, bytes, cnt);
	m->line_len += cnt;
	return 0;
}

static int end_line(struct perf_map *m, struct jit_table *t, const char *bytes, size_t cnt)
{
	int err;

	if (!m->line_len)
		return parse_line(m, t, bytes, cnt < LINE_MAX_BYTES ? cnt : LINE_MAX_BYTES);
	err = keep(m, bytes, cnt);
	if (!err)
		err = parse_line(m, t, m->line, m->line_len);
	m->line_len = 0;
	return err;
}

int perf_map_feed(struct perf_map *m, struct jit_table *t, const char *bytes, size_t cnt)
{
	const char *end = bytes + cnt, *newline;

	while (bytes < end && (newline = memchr(bytes, '\n', (size_t)(end - bytes)))) {
		int err = end_line(m, t, bytes, (size_t)(newline - bytes));

		if (err)
			return err;
		bytes = newline + 1;
	}
	return bytes < end ? keep(m, bytes, (size_t)(end - bytes)) : 0;
}

void perf_map_restart(struct perf_map *m)
{
	m->line_len = 0;
}

void perf_map_free(struct perf_map *m)
{
	free(m->line);
	m->line = NULL;
	m->line_len = 0;
}
