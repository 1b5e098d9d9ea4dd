/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From an ELF file to its symbol table, keyed by file offset. */
#ifndef VP_ELF_SYMBOLS_H
#define VP_ELF_SYMBOLS_H

#include "debug_file.h"
#include "elf_reader.h"
#include "symtab.h"

/* Where to look for a debug file. */
struct elf_symbols_from {
	struct debug_finder *finder;
	struct debug_origin at;
	int leave_names; /* a large string table's names may stay in their file, which stays open */
};

/*
 * Merges all sources of symbols that the file and its debug file have; hits carry enum
 * vp_sym_source. from NULL: there is no debug file. *out is to be freed with symtab_free and may be empty (stripped). -ENOMEM, -EFBIG (more than a
 * table holds, or a string table made to keep us busy).
 */
int elf_symbols_read(const struct elf_file *f, const struct elf_symbols_from *from,
		     struct symtab **out);

#endif
