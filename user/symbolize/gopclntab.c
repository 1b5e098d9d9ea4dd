/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "gopclntab.h"

#include <errno.h>
#include <string.h>

#define MAGIC_1_2   0xfffffffbU
#define MAGIC_1_16  0xfffffffaU
#define MAGIC_1_18  0xfffffff0U
#define MAGIC_1_20  0xfffffff1U
/* magic, two zeros, the smallest instruction's size, a pointer's size */
#define HEADER_SIZE 8

/* An unsigned number of 4 or 8 bytes. -ENOEXEC if it is not all inside. */
static int get(const struct gopclntab *t, uint64_t at, size_t size, uint64_t *out)
{
	uint32_t v;

	if (at > t->size || size > t->size - at)
		return -ENOEXEC;
	if (size == sizeof(*out)) {
		memcpy(out, t->bytes + at, sizeof(*out));
		return 0;
	}
	memcpy(&v, t->bytes + at, sizeof(v));
	*out = v;
	return 0;
}

/* Word i behind the header, as an offset inside the section. */
static int get_offset(const struct gopclntab *t, unsigned int i, size_t *out)
{
	uint64_t v;

	if (get(t, HEADER_SIZE + (uint64_t)i * t->ptr_size, t->ptr_size, &v) || v >= t->size)
		return -ENOEXEC;
	*out = v;
	return 0;
}

/* pad: words of the header before the offsets. */
static int set_parts(struct gopclntab *t, unsigned int pad)
{
	if (get_offset(t, pad, &t->names) || get_offset(t, pad + 4, &t->table))
		return -ENOEXEC;
	t->func_base = t->table;
	return 0;
}

static int set_layout(struct gopclntab *t, uint64_t magic)
{
	t->addr_size = t->ptr_size;
	switch (magic) {
	case MAGIC_1_2:
		t->table = HEADER_SIZE + t->ptr_size;
		return 0;
	case MAGIC_1_16:
		return set_parts(t, 2);
	case MAGIC_1_18:
	case MAGIC_1_20:
		t->addr_size = 4;
		t->text_start_at = HEADER_SIZE + 2 * (size_t)t->ptr_size;
		if (get(t, t->text_start_at, t->ptr_size, &t->text_start))
			return -ENOEXEC;
		return set_parts(t, 3);
	default:
		return -ENOEXEC;
	}
}

int gopclntab_open(struct gopclntab *t, const void *bytes, size_t size)
{
	uint64_t magic;

	*t = (struct gopclntab){.bytes = bytes, .size = size};
	if (size < HEADER_SIZE || get(t, 0, 4, &magic))
		return -ENOEXEC;
	t->ptr_size = t->bytes[7];
	if (t->bytes[4] || t->bytes[5] || (t->ptr_size != 4 && t->ptr_size != 8))
		return -ENOEXEC;
	if (get(t, HEADER_SIZE, t->ptr_size, &t->func_cnt) || set_layout(t, magic))
		return -ENOEXEC;
	/* Behind the last function is the address where it ends. */
	if (t->table >= size || t->func_cnt > (size - t->table) / (2 * (size_t)t->addr_size))
		return -ENOEXEC;
	return 0;
}

int gopclntab_func(const struct gopclntab *t, uint64_t i, struct gopclntab_func *out)
{
	uint64_t at = t->table + i * 2 * t->addr_size, func, name;

	if (get(t, at, t->addr_size, &out->start) ||
	    get(t, at + t->addr_size, t->addr_size, &func) ||
	    get(t, at + 2 * (uint64_t)t->addr_size, t->addr_size, &out->end))
		return -ENOEXEC;
	if (func > t->size || get(t, t->func_base + func + t->addr_size, 4, &name))
		return -ENOEXEC;
	if (name >= t->size - t->names || out->end <= out->start ||
	    out->end > UINT64_MAX - t->text_start)
		return -ENOEXEC;
	out->start += t->text_start;
	out->end += t->text_start;
	out->name = t->names + name;
	return 0;
}
