/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From an ELF file to its symbol table, keyed by file offset. */
#ifndef VP_ELF_SYMBOLS_H
#define VP_ELF_SYMBOLS_H

#include "elf_reader.h"
#include "symtab.h"

/* Where the debug files of packages are, by build id. Tests point it elsewhere. */
extern const char *elf_symbols_debug_dir;

/*
 * Merges all sources of symbols that the file has; hits carry enum vp_sym_source. *out is
 * to be freed with symtab_free and may be empty (stripped). -ENOMEM, -EFBIG (more than a
 * table holds, or a string table made to keep us busy).
 */
int elf_symbols_read(const struct elf_file *f, struct symtab **out);

#endif
