/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbol_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum vp_sym_reason error_reason(int err)
{
	switch (err) {
	case 0:
		return VP_SYM_OK;
	case -ESTALE:
		return VP_SYM_OTHER_FILE;
	case -ENOEXEC:
	case -EINVAL:
		return VP_SYM_NOT_ELF;
	case -EFBIG:
		return VP_SYM_OVER_LIMIT;
	default:
		return VP_SYM_CANNOT_OPEN;
	}
}

/* Moves the segments out of elf: they are all that look-ups need besides the table. */
static void take_segments(struct elf_file *elf, struct symbol_file *f)
{
	f->exec = elf->exec;
	f->exec_cnt = elf->exec_cnt;
	elf->exec = NULL;
	elf->exec_cnt = 0;
}

static int read_elf(struct elf_file *elf, const struct elf_symbols_from *from,
		    struct symbol_file *f)
{
	int err = 0;

	f->info.build_id_len = (uint8_t)elf_file_build_id(elf, f->info.build_id, VP_BUILD_ID_MAX);
	if (elf->exec_cnt)
		err = elf_symbols_read(elf, from, &f->table);
	take_segments(elf, f);
	if (err)
		return err;
	if (!f->table) {
		f->info.reason = VP_SYM_NO_SEGMENT;
		return 0;
	}
	f->info.symbol_cnt = symtab_cnt(f->table);
	f->info.symtab_cnt = symtab_source_cnt(f->table, VP_SYM_SYMTAB);
	f->only_stubs = f->info.symbol_cnt == symtab_source_cnt(f->table, VP_SYM_PLT);
	f->info.reason = f->info.symbol_cnt ? VP_SYM_OK : VP_SYM_NO_SYMBOLS;
	return 0;
}

/* Takes elf, which is there unless err says why not. */
static int read_opened(struct symbol_file *f, struct elf_file *elf, int err,
		       const struct elf_symbols_from *from)
{
	if (!err)
		err = read_elf(elf, from, f);
	elf_file_close(elf);
	if (err == -ENOMEM)
		return err;
	if (err)
		f->info.reason = error_reason(err);
	if (f->info.reason != VP_SYM_OK) {
		symbol_file_drop_table(f);
		f->info.symbol_cnt = 0;
	}
	return 0;
}

int symbol_file_read(struct symbol_file *f, int fd, const struct elf_symbols_from *from)
{
	struct elf_file *elf = NULL;
	int err = fd < 0 ? fd : elf_file_open(&elf, fd);

	return read_opened(f, elf, err, from);
}

int symbol_file_read_memory(struct symbol_file *f, const void *image, size_t size)
{
	struct elf_file *elf = NULL;
	int err = image ? elf_file_open_memory(&elf, image, size) : -ENOENT;

	return read_opened(f, elf, err, NULL);
}

void symbol_file_drop_table(struct symbol_file *f)
{
	symtab_free(f->table);
	f->table = NULL;
	ptr_map_fini(&f->names);
}

void symbol_file_fini(struct symbol_file *f)
{
	symbol_file_drop_table(f);
	free(f->exec);
	file_home_fini(&f->home);
	kept_files_close(&f->kept);
	*f = SYMBOL_FILE_NONE;
}

int symbol_file_is_elf(const struct symbol_file *f)
{
	return f->info.reason == VP_SYM_OK || f->info.reason == VP_SYM_NO_SYMBOLS;
}

uint64_t symbol_file_table_bytes(const struct symbol_file *f)
{
	return f->table ? symtab_bytes(f->table) + ptr_map_bytes(&f->names) : 0;
}

uint64_t symbol_file_fixed_bytes(const struct symbol_file *f)
{
	return f->exec_cnt * sizeof(*f->exec) + (f->home.path ? strlen(f->home.path) + 1 : 0);
}

enum vp_sym_reason symbol_file_find(const struct symbol_file *f, uint64_t offset,
				    struct symtab_hit *hit)
{
	if (f->info.reason != VP_SYM_OK)
		return f->info.reason;
	if (!elf_segments_cover(f->exec, f->exec_cnt, offset))
		return VP_SYM_NO_SEGMENT;
	if (!f->table)
		return VP_SYM_OVER_LIMIT;
	if (!symtab_find(f->table, offset, hit))
		return VP_SYM_OK;
	return f->only_stubs ? VP_SYM_NO_SYMBOLS : VP_SYM_GAP;
}
