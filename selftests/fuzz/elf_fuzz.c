/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader of ELF files and their symbols. */
#include "symbolize/elf_symbols.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct symtab *t)
{
	struct symtab_hit hit;

	for (uint64_t at = 0; at < 0x4000; at += 7)
		symtab_find(t, at, &hit);
	symtab_find(t, UINT64_MAX, &hit);
}

/* Sections that name other files. */
static void look_for_files(const struct elf_file *f, struct debug_finder *finder)
{
	const struct debug_origin at = {.path = "/nonexistent/program"};
	struct debug_found found;

	if (!debug_finder_open(finder, f, &at, &found) ||
	    !debug_finder_open_alt(finder, f, &at, &found))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *f = NULL;
	struct symtab *t = NULL;
	uint8_t id[20];
	static struct elf_symbols_from from;

	if (!from.finder && debug_finder_new(&from.finder, &(struct debug_finder_opts){
								   .host_root = "/nonexistent"}))
		return 0;
	if (elf_file_open_memory(&f, data, size))
		return 0;
	if (elf_file_build_id(f, id, sizeof(id)) > sizeof(id))
		abort();
	look_for_files(f, from.finder);
	if (!elf_symbols_read(f, &from, &t))
		look_up(t);
	symtab_free(t);
	elf_file_close(f);
	return 0;
}
