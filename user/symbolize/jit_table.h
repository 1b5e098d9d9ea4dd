/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of address ranges as a JIT tells them, one after the other: it uses addresses again, so of
 * ranges that overlap the latest wins.
 *
 *   [0,100) old, then [20,40) new   ->   [0,20) old, [20,40) new, [40,100) old
 *
 * Adding is cheap, and the first look-up after it sorts: once for all that was added. No hashing:
 * addresses and names may be chosen by an enemy.
 */
#ifndef VP_JIT_TABLE_H
#define VP_JIT_TABLE_H

#include "jit_lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer names are cut there and end with "…"; with the NUL. */
#define VP_JIT_NAME_BYTES 1024

/* All zero but max_bytes and keeps_lines is empty. */
struct jit_table {
	uint64_t max_bytes;   /* of ranges, names and lines in use */
	bool keeps_lines;     /* of code that has some */
	uint64_t dropped_cnt; /* ranges that found no room */

	/* the table's own */
	struct jit_range *range;
	size_t cnt, cap;
	char *names; /* each with its NUL and, if keeps_lines, packed lines */
	size_t name_bytes, name_cap;
	uint32_t seq;
	bool unsorted; /* range is not ascending and disjoint */
	bool full;
};

struct jit_code {
	uint64_t start;
	uint64_t size;
	uint64_t time;		       /* what is later wins; equal ones: what is added later */
	uint64_t index;		       /* by which a move may refer to it */
	const struct jit_lines *lines; /* copied; NULL: none */
};

/* Pointers are borrowed until the table's next call. */
struct jit_found {
	const char *name;
	const char *file; /* NULL: not known */
	uint32_t line;
	uint64_t offset; /* in the code, bytes */
};

/*
 * name need not end with a NUL, but ends at one. 0, also if there was no room (counted); -EINVAL: no
 * name, no size, or beyond the address space; -ENOMEM.
 */
int jit_table_add(struct jit_table *t, const struct jit_code *c, const char *name, size_t len);

/* The code that was added last under c->index is at c->start now. As jit_table_add. */
int jit_table_move(struct jit_table *t, const struct jit_code *c);

/* False: none; so also if there is no memory to sort. */
bool jit_table_find(struct jit_table *t, uint64_t addr, struct jit_found *out);

/* In use. */
uint64_t jit_table_bytes(const struct jit_table *t);

/* max_bytes, keeps_lines and dropped_cnt stay. */
void jit_table_clear(struct jit_table *t);

#endif
