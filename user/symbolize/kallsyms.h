/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's own list of its symbols: /proc/kallsyms or a copy of it. */
#ifndef VP_KALLSYMS_H
#define VP_KALLSYMS_H

#include "symbolizer.h"
#include "symtab.h"

struct kallsyms_module {
	char *name;    /* "[kernel]", "[nf_tables]", "[bpf]" … */
	uint64_t last; /* highest address of a function */
};

struct kallsyms {
	struct symtab *table; /* tag of a hit: index into modules; NULL unless VP_SYM_OK */
	struct kallsyms_module *modules;
	size_t module_cnt;
	uint64_t stext, etext;	   /* 0: not found */
	enum vp_sym_reason reason; /* OK, CANNOT_OPEN, HIDDEN, NO_SYMBOLS or OVER_LIMIT */
};

/*
 * 0 also when nothing can be named (reason tells); -ENOMEM. Free with kallsyms_free.
 */
int kallsyms_read(struct kallsyms **out, const char *path);
void kallsyms_free(struct kallsyms *k); /* NULL is fine */

#endif
