/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_bytes.h"

#include <stdlib.h>

#define WINDOW_BYTES (64U << 10)
#define FIRST_BYTES  512U

static void drop_window(struct dwarf_cursor *c, uint64_t at)
{
	c->base = at;
	c->start = c->p = c->end = c->window;
}

/* A section in memory is its own window. */
static void whole_window(struct dwarf_cursor *c, uint64_t at)
{
	c->base = 0;
	c->start = c->s->bytes;
	c->p = c->start + at;
	c->end = c->start + c->limit;
}

void dwarf_cursor_set(struct dwarf_cursor *c, const struct dwarf_section *s, uint64_t at,
		      uint64_t limit)
{
	c->bad = false;
	if (c->s != s) {
		c->s = s;
		c->next_bytes = FIRST_BYTES;
		drop_window(c, at);
	} else if (c->base + (uint64_t)(c->end - c->start) > limit) {
		drop_window(c, at); /* it reaches too far */
	}
	c->limit = limit < s->size ? limit : s->size;
	dwarf_cursor_seek(c, at);
}

void dwarf_cursor_free(struct dwarf_cursor *c)
{
	free(c->window);
	*c = (struct dwarf_cursor){0};
}

void dwarf_cursor_seek(struct dwarf_cursor *c, uint64_t at)
{
	if (at > c->limit) {
		c->bad = true;
		at = c->limit;
	}
	if (c->s->bytes) {
		whole_window(c, at);
		return;
	}
	if (c->window && at >= c->base && at - c->base <= (uint64_t)(c->end - c->start)) {
		c->p = c->start + (at - c->base);
		return;
	}
	/* A long jump: what is needed there may be little. */
	if (at < c->base || at - c->base > 2 * WINDOW_BYTES)
		c->next_bytes = FIRST_BYTES;
	drop_window(c, at);
}

bool dwarf_cursor_fill(struct dwarf_cursor *c, size_t n)
{
	uint64_t at = dwarf_cursor_at(c);
	size_t bytes = c->next_bytes;

	if (c->s->bytes || c->bad || at >= c->limit)
		return false;
	if (!c->window) {
		c->window = malloc(WINDOW_BYTES);
		if (!c->window)
			return false;
	}
	if (bytes > c->limit - at)
		bytes = (size_t)(c->limit - at);
	c->next_bytes = c->next_bytes * 4 < WINDOW_BYTES ? c->next_bytes * 4 : WINDOW_BYTES;
	drop_window(c, at);
	if (elf_file_read(c->s->elf, c->s->offset + at, c->window, bytes))
		return false;
	c->end = c->window + bytes;
	return bytes >= n;
}

uint64_t dwarf_uint(struct dwarf_cursor *c, unsigned int bytes)
{
	switch (bytes) {
	case 1:
		return dwarf_u8(c);
	case 2:
		return dwarf_u16(c);
	case 4:
		return dwarf_u32(c);
	case 8:
		return dwarf_u64(c);
	default:
		c->bad = true;
		return 0;
	}
}

/* The bits of a LEB128 number: as many as *bits says, of which those beyond 64 are dropped. */
static uint64_t leb128(struct dwarf_cursor *c, unsigned int *bits)
{
	uint64_t v = 0;
	uint8_t b;

	*bits = 0;
	do {
		if (!dwarf_has(c, 1)) {
			*bits = 64;
			return 0;
		}
		b = *c->p++;
		if (*bits < 64)
			v |= (uint64_t)(b & 0x7f) << *bits;
		*bits += 7;
	} while (b & 0x80);
	return v;
}

uint64_t dwarf_uleb_long(struct dwarf_cursor *c)
{
	unsigned int bits;

	return leb128(c, &bits);
}

int64_t dwarf_sleb(struct dwarf_cursor *c)
{
	unsigned int bits;
	uint64_t v = leb128(c, &bits);

	if (bits < 64 && (v >> (bits - 1) & 1))
		v |= ~0ULL << bits;
	return (int64_t)v;
}

void dwarf_skip_string(struct dwarf_cursor *c)
{
	for (;;) {
		if (!dwarf_has(c, 1))
			return;
		const uint8_t *nul = memchr(c->p, 0, (size_t)(c->end - c->p));
		if (nul) {
			c->p = nul + 1;
			return;
		}
		c->p = c->end;
	}
}

char *dwarf_string(struct dwarf_cursor *c, size_t max)
{
	char *s = NULL;
	size_t len = 0;

	while (len < max && dwarf_has(c, 1)) {
		size_t n = (size_t)(c->end - c->p);
		const uint8_t *nul = memchr(c->p, 0, n);

		n = nul ? (size_t)(nul - c->p) : n;
		n = n > max - len ? max - len : n;
		char *longer = realloc(s, len + n + 1);
		if (!longer)
			break;
		s = longer;
		memcpy(s + len, c->p, n);
		len += n;
		s[len] = '\0';
		c->p += n;
		if (nul || len == max)
			return s;
	}
	free(s);
	return NULL;
}
