/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "go_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_MAX_BYTES (512ULL << 20)
#define RELOCS_MAX_BYTES  (256U << 20)
#define CHUNK_CNT	  2048
/* Any program's starting point in Go is called _rt0_ARCH_OS or so. */
#define ENTRY_PREFIX	  "_rt0_"

enum named {
	NAMED_TABLE, /* the first two are the table and nothing else */
	NAMED_RELRO_TABLE,
	NAMED_RELRO,
	NAMED_TEXT,
	NAMED_BUILDINFO, /* of Go programs only, as the next */
	NAMED_BUILDID,
	NAMED_CNT,
};

static const char *const section_names[NAMED_CNT] = {
	[NAMED_TABLE] = ".gopclntab",	     [NAMED_RELRO_TABLE] = ".data.rel.ro.gopclntab",
	[NAMED_RELRO] = ".data.rel.ro",	     [NAMED_TEXT] = ".text",
	[NAMED_BUILDINFO] = ".go.buildinfo", [NAMED_BUILDID] = ".note.go.buildid",
};

/* Sets out->t to the table at or, in a section of more, behind the section's start. */
static int find_in(struct go_table *out, int search)
{
	size_t last = search && out->size > 8 ? out->size - 8 : 0;

	for (size_t at = 0; at <= last; at += 8) {
		if (!gopclntab_open(&out->t, out->bytes + at, out->size - at)) {
			out->base = at;
			return 0;
		}
	}
	return -ENOENT;
}

static int read_section(const struct elf_file *f, const struct elf_named *s, struct go_table *out,
			int search)
{
	int err;

	if (!s->index)
		return -ENOENT;
	out->bytes = elf_file_section_bytes(f, &s->shdr, SECTION_MAX_BYTES, &err);
	if (!out->bytes)
		return err == -ENOMEM ? err : -ENOENT;
	out->size = s->shdr.sh_size;
	err = find_in(out, search);
	if (!err)
		return 0;
	free(out->bytes);
	out->bytes = NULL;
	return err;
}

/* The section that has it, or NULL and *err. */
static const struct elf_named *read_table(const struct elf_file *f, const struct elf_named *named,
					  struct go_table *out, int *err)
{
	static const enum named places[] = {NAMED_TABLE, NAMED_RELRO_TABLE, NAMED_RELRO};
	int is_go = named[NAMED_BUILDINFO].index || named[NAMED_BUILDID].index;

	*err = -ENOENT;
	for (size_t i = 0; *err == -ENOENT && i < sizeof(places) / sizeof(*places); i++) {
		const struct elf_named *s = &named[places[i]];

		if (places[i] == NAMED_RELRO && !is_go)
			break;
		*err = read_section(f, s, out, places[i] == NAMED_RELRO);
		if (!*err)
			return s;
	}
	return NULL;
}

/* ---- where the text starts ---- */

static uint32_t relative_type(const struct elf_file *f)
{
	GElf_Ehdr ehdr;

	if (!f->is_64bit || !gelf_getehdr(f->elf, &ehdr))
		return 0;
	switch (ehdr.e_machine) {
	case EM_X86_64:
		return R_X86_64_RELATIVE;
	case EM_AARCH64:
		return R_AARCH64_RELATIVE;
	default:
		return 0;
	}
}

static int find_in_chunk(const Elf64_Rela *rela, size_t cnt, uint32_t type, uint64_t addr,
			 uint64_t *value)
{
	for (size_t i = 0; i < cnt; i++) {
		if (rela[i].r_offset == addr && ELF64_R_TYPE(rela[i].r_info) == type) {
			*value = (uint64_t)rela[i].r_addend;
			return 1;
		}
	}
	return 0;
}

static int find_in_relocs(const struct elf_file *f, const GElf_Shdr *s, uint32_t type,
			  uint64_t addr, uint64_t *value, uint64_t *budget)
{
	Elf64_Rela *chunk = malloc(CHUNK_CNT * sizeof(*chunk));
	uint64_t cnt = s->sh_size / sizeof(*chunk);
	int found = 0;

	for (uint64_t i = 0; chunk && !found && i < cnt; i += CHUNK_CNT) {
		size_t n = cnt - i < CHUNK_CNT ? cnt - i : CHUNK_CNT;

		if (*budget < n * sizeof(*chunk) ||
		    elf_file_read(f, s->sh_offset + i * sizeof(*chunk), chunk, n * sizeof(*chunk)))
			break;
		*budget -= n * sizeof(*chunk);
		found = find_in_chunk(chunk, n, type, addr, value);
	}
	free(chunk);
	return found;
}

/* What the loader will write at a link-time address of a program that is at its link-time place. */
static int relocated(const struct elf_file *f, uint64_t addr, uint64_t *value)
{
	uint64_t budget = RELOCS_MAX_BYTES;
	uint32_t type = relative_type(f);
	GElf_Shdr s;

	for (size_t i = 1; type && i < f->section_cnt && !elf_file_section(f, i, &s); i++) {
		if (s.sh_type == SHT_RELA && s.sh_flags & SHF_ALLOC &&
		    find_in_relocs(f, &s, type, addr, value, &budget))
			return 1;
	}
	return 0;
}

/* With the text at t's text_start, does the program start in Go's first function? */
static int starts_at_entry(const struct elf_file *f, const struct gopclntab *t)
{
	struct gopclntab_func func;
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(f->elf, &ehdr))
		return 0;
	for (uint64_t i = 0; i < t->func_cnt; i++) {
		if (!gopclntab_func(t, i, &func) && func.start == ehdr.e_entry)
			return !strncmp((const char *)t->bytes + func.name, ENTRY_PREFIX,
					strlen(ENTRY_PREFIX));
	}
	return 0;
}

/*
 * The field itself, unless a relocation fills it. Later than Go 1.25 neither does; a program of
 * Go's own linker has its text at the start of .text then.
 */
static int set_text_start(const struct elf_file *f, const struct elf_named *table,
			  const struct elf_named *text, struct go_table *g)
{
	uint64_t field = table->shdr.sh_addr + g->base + g->t.text_start_at, value;

	if (!g->t.text_start_at)
		return 0;
	if (relocated(f, field, &value))
		g->t.text_start = value;
	if (g->t.text_start)
		return 0;
	if (!text->index)
		return -ENOENT;
	g->t.text_start = text->shdr.sh_addr;
	return starts_at_entry(f, &g->t) ? 0 : -ENOENT;
}

int go_table_read(const struct elf_file *f, struct go_table *out)
{
	struct elf_named named[NAMED_CNT];
	const struct elf_named *table;
	int err;

	*out = (struct go_table){0};
	for (size_t i = 0; i < NAMED_CNT; i++)
		named[i] = (struct elf_named){.name = section_names[i]};
	elf_file_find_named(f, named, NAMED_CNT);
	table = read_table(f, named, out, &err);
	if (!table)
		return err;
	err = set_text_start(f, table, &named[NAMED_TEXT], out);
	if (err)
		free(out->bytes);
	return err;
}
