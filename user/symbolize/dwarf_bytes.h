/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes of debug sections, read through a small window that moves along: sections are as large
 * as hundreds of megabytes, of which an answer needs a few kilobytes. Never mmap: a truncated
 * file would be SIGBUS. Only compressed sections are in memory as a whole.
 */
#ifndef VP_DWARF_BYTES_H
#define VP_DWARF_BYTES_H

#include "elf_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dwarf_section {
	const struct elf_file *elf;
	uint64_t offset; /* in the file */
	uint64_t size;	 /* 0: there is none */
	uint8_t *bytes;	 /* unpacked, owned; NULL: in the file */
};

/*
 * A place in a section. What is read behind `limit` or cannot be read is 0, and `bad` is set, so
 * that readers check once in a while instead of everywhere. Zero-initialized, then
 * dwarf_cursor_set; dwarf_cursor_free at last.
 */
struct dwarf_cursor {
	const uint8_t *p, *end; /* the window's rest */
	const uint8_t *start;
	uint64_t base; /* the window's offset in the section */
	uint64_t limit;
	const struct dwarf_section *s;
	uint8_t *window;   /* owned */
	size_t next_bytes; /* how much to read: grows while reading goes straight on */
	bool bad;
};

/* To read [at, limit); keeps what it has of the window. */
void dwarf_cursor_set(struct dwarf_cursor *c, const struct dwarf_section *s, uint64_t at,
		      uint64_t limit);
void dwarf_cursor_free(struct dwarf_cursor *c);

/* Moves the window so that it holds n bytes (at most 16) if there are so many; false: fewer. */
bool dwarf_cursor_fill(struct dwarf_cursor *c, size_t n);

/* Goes anywhere below the limit; beyond is bad. */
void dwarf_cursor_seek(struct dwarf_cursor *c, uint64_t at);

static inline uint64_t dwarf_cursor_at(const struct dwarf_cursor *c)
{
	return c->base + (uint64_t)(c->p - c->start);
}

static inline bool dwarf_has(struct dwarf_cursor *c, size_t n)
{
	if ((size_t)(c->end - c->p) >= n || dwarf_cursor_fill(c, n))
		return true;
	c->bad = true;
	return false;
}

static inline uint8_t dwarf_u8(struct dwarf_cursor *c)
{
	return dwarf_has(c, 1) ? *c->p++ : 0;
}

static inline uint16_t dwarf_u16(struct dwarf_cursor *c)
{
	uint16_t v = 0;

	if (dwarf_has(c, sizeof(v))) {
		memcpy(&v, c->p, sizeof(v));
		c->p += sizeof(v);
	}
	return v;
}

static inline uint32_t dwarf_u32(struct dwarf_cursor *c)
{
	uint32_t v = 0;

	if (dwarf_has(c, sizeof(v))) {
		memcpy(&v, c->p, sizeof(v));
		c->p += sizeof(v);
	}
	return v;
}

static inline uint64_t dwarf_u64(struct dwarf_cursor *c)
{
	uint64_t v = 0;

	if (dwarf_has(c, sizeof(v))) {
		memcpy(&v, c->p, sizeof(v));
		c->p += sizeof(v);
	}
	return v;
}

static inline uint32_t dwarf_u24(struct dwarf_cursor *c)
{
	uint32_t low = dwarf_u16(c);

	return low | (uint32_t)dwarf_u8(c) << 16;
}

/* bytes: 1, 2, 4 or 8; anything else is bad. */
uint64_t dwarf_uint(struct dwarf_cursor *c, unsigned int bytes);

uint64_t dwarf_uleb_long(struct dwarf_cursor *c);
int64_t dwarf_sleb(struct dwarf_cursor *c);

static inline uint64_t dwarf_uleb(struct dwarf_cursor *c)
{
	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	return dwarf_uleb_long(c);
}

/* Passes over n bytes. */
static inline void dwarf_skip(struct dwarf_cursor *c, uint64_t n)
{
	if ((uint64_t)(c->end - c->p) >= n)
		c->p += n;
	else
		dwarf_cursor_seek(c, n > UINT64_MAX / 2 ? UINT64_MAX : dwarf_cursor_at(c) + n);
}

/* Passes over a string with its NUL. */
void dwarf_skip_string(struct dwarf_cursor *c);

/* A copy of the string there, cut at max bytes; caller frees. NULL: none, or no memory. */
char *dwarf_string(struct dwarf_cursor *c, size_t max);

#endif
