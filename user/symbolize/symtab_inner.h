/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a table looks like, for what builds it and what asks it. */
#ifndef VP_SYMTAB_INNER_H
#define VP_SYMTAB_INNER_H

#include "symtab.h"

/*
 * A range and its symbol. The symbol's own start is range start - back; back is not zero
 * where an outer symbol goes on behind an inner one.
 */
struct range {
	uint32_t len;
	uint32_t name;
	uint32_t back : 28;
	uint32_t source : 4;
};

#define ITEMS_MAX (4U << 20)

/* starts are apart from the rest: the binary search touches a quarter of the memory. */
struct symtab {
	uint64_t base;
	uint32_t *starts;
	struct range *ranges;
	uint16_t *tags; /* NULL if no entry had one */
	char *names;	/* NULL: packed */
	struct packed_names *packed;
	size_t cnt, names_size;
	struct filed_names *filed; /* NULL: none */
	uint32_t filed_size;	   /* names below that are filed, those from there on in names */
	int filed_cut_version;
	/* Filed names of which the best is yet to be found: tied[tie_start[i] .. tie_start[i + 1]). */
	uint32_t *tied, *tie_start;
	size_t tied_cnt, tie_cnt;
};

/* Names from there on are numbers of ties. */
#define NAME_TIES (UINT32_MAX - ITEMS_MAX - 1)

/* > 0: x is the better name for an address. */
int symtab_cmp_names(const char *x, size_t x_len, const char *y, size_t y_len);

#endif
