/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of one file: its symbols, where its code is, and where it can be read again. */
#ifndef VP_SYMBOL_FILE_H
#define VP_SYMBOL_FILE_H

#include "elf_symbols.h"
#include "file_home.h"
#include "kept_files.h"
#include "name_cache.h"
#include "symbolizer.h"

struct symbol_file {
	struct vp_file_info info;
	struct symtab *table; /* NULL unless info.reason is VP_SYM_OK, or while it is evicted */
	struct ptr_map names; /* name_id of the table -> strings, which are not ours */
	int only_stubs;	      /* stripped, but for the names of stubs */
	struct elf_segment *exec;
	size_t exec_cnt;
	struct file_home home;
	uint32_t tgid; /* below whose root debug files are looked for, too */
	struct kept_files kept;
};

/* What symbol_file_fini leaves, and what to begin with. */
#define SYMBOL_FILE_NONE ((struct symbol_file){.kept = KEPT_FILES_NONE})

/*
 * Reads the open file fd, or takes a negative errno as the reason why there is nothing to read.
 * 0, also if nothing can be named (f->info.reason tells); -ENOMEM.
 */
int symbol_file_read(struct symbol_file *f, int fd, const struct elf_symbols_from *from);
/* The same of an ELF image in memory, without debug file. */
int symbol_file_read_memory(struct symbol_file *f, const void *image, size_t size);
void symbol_file_fini(struct symbol_file *f);

/* Whether the file could be opened and is an ELF file. */
int symbol_file_is_elf(const struct symbol_file *f);

/* The table and its names, which can go; and what stays, besides the struct itself. */
void symbol_file_drop_table(struct symbol_file *f);
uint64_t symbol_file_table_bytes(const struct symbol_file *f);
uint64_t symbol_file_fixed_bytes(const struct symbol_file *f);

/* VP_SYM_OK and *hit, or why there is none. */
enum vp_sym_reason symbol_file_find(const struct symbol_file *f, uint64_t offset,
				    struct symtab_hit *hit);

#endif
