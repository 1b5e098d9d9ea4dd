/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading call frame information byte by byte. What lies behind the end reads as zero and sets
 * `bad`, so a caller may read several fields and look once. Little endian, as the machine is.
 */
#ifndef VP_CFI_BYTES_H
#define VP_CFI_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cfi_cursor {
	const uint8_t *p, *end;
	bool bad;
};

static inline size_t cfi_left(const struct cfi_cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline void cfi_skip(struct cfi_cursor *c, uint64_t n)
{
	if (n > cfi_left(c)) {
		c->bad = true;
		n = cfi_left(c);
	}
	c->p += n;
}

static inline uint64_t cfi_fixed(struct cfi_cursor *c, size_t n)
{
	uint64_t v = 0;

	if (n > cfi_left(c)) {
		c->bad = true;
		c->p = c->end;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static inline uint8_t cfi_u8(struct cfi_cursor *c)
{
	return (uint8_t)cfi_fixed(c, 1);
}

static inline uint16_t cfi_u16(struct cfi_cursor *c)
{
	return (uint16_t)cfi_fixed(c, 2);
}

static inline uint32_t cfi_u32(struct cfi_cursor *c)
{
	return (uint32_t)cfi_fixed(c, 4);
}

static inline uint64_t cfi_u64(struct cfi_cursor *c)
{
	return cfi_fixed(c, 8);
}

/* Of a LEB128 number bits beyond 64 are dropped; one that does not end in 16 bytes is bad. */
static inline uint64_t cfi_uleb(struct cfi_cursor *c)
{
	uint64_t v = 0;

	if (c->p < c->end && !(*c->p & 0x80))
		return *c->p++;
	for (unsigned int bits = 0; bits < 16 * 7; bits += 7) {
		uint8_t byte = cfi_u8(c);

		if (bits < 64)
			v |= (uint64_t)(byte & 0x7f) << bits;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

static inline int64_t cfi_sleb(struct cfi_cursor *c)
{
	uint64_t v = 0;

	for (unsigned int bits = 0; bits < 16 * 7; bits += 7) {
		uint8_t byte = cfi_u8(c);

		if (bits < 64)
			v |= (uint64_t)(byte & 0x7f) << bits;
		if (byte & 0x80)
			continue;
		if (bits + 7 < 64 && (byte & 0x40))
			v |= UINT64_MAX << (bits + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

#endif
