/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "dwarf_relocate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Far from all code, and still so when the length of any is added. */
#define NOWHERE	  (1ULL << 63)
#define CHUNK_CNT 1024

struct relocating {
	struct dwarf_object *o;
	Elf64_Sym *symbol; /* of the table with this index, 0: none is read */
	size_t symbol_cnt, table;
	uint64_t left; /* as many as an honest file can have */
	int (*bytes_of)(uint64_t type);
};

/* How many bytes a relocation stores, of those that debug sections have; 0: none. */
static int x86_64_bytes(uint64_t type)
{
	switch (type) {
	case R_X86_64_64:
		return 8;
	case R_X86_64_32:
	case R_X86_64_32S:
		return 4;
	default:
		return 0;
	}
}

static int aarch64_bytes(uint64_t type)
{
	return type == R_AARCH64_ABS64 ? 8 : type == R_AARCH64_ABS32 ? 4 : 0;
}

static int read_symbols(struct relocating *r, size_t table)
{
	const struct elf_file *f = r->o->elf;
	GElf_Shdr shdr;
	int err = 0;

	if (table == r->table)
		return 0;
	if (r->table || elf_file_section(f, table, &shdr) || shdr.sh_type != SHT_SYMTAB)
		return -ENOEXEC;
	r->symbol = elf_file_section_bytes(f, &shdr, f->size, &err);
	r->symbol_cnt = r->symbol ? shdr.sh_size / sizeof(*r->symbol) : 0;
	r->table = r->symbol ? table : 0;
	return r->symbol ? 0 : err;
}

/* Debug sections have no address, so symbols in them are offsets. */
static uint64_t symbol_value(const struct relocating *r, const Elf64_Sym *sym)
{
	const struct elf_file *f = r->o->elf;
	GElf_Shdr shdr;

	if (sym->st_shndx == f->code_section || sym->st_shndx == SHN_ABS)
		return sym->st_value;
	if (elf_file_section(f, sym->st_shndx, &shdr) || (shdr.sh_flags & SHF_ALLOC))
		return NOWHERE;
	return sym->st_value;
}

static void apply(const struct relocating *r, struct dwarf_section *s, const Elf64_Rela *rela)
{
	int bytes = r->bytes_of(ELF64_R_TYPE(rela->r_info));
	uint64_t index = ELF64_R_SYM(rela->r_info), value;

	if (!bytes || index >= r->symbol_cnt || rela->r_offset > s->size ||
	    s->size - rela->r_offset < (uint64_t)bytes)
		return;
	value = symbol_value(r, &r->symbol[index]);
	if (value != NOWHERE)
		value += (uint64_t)rela->r_addend;
	memcpy(s->bytes + rela->r_offset, &value, (size_t)bytes); /* little-endian machines */
}

static int apply_all(struct relocating *r, struct dwarf_section *s, const GElf_Shdr *shdr)
{
	static const size_t size = sizeof(Elf64_Rela);
	uint64_t cnt = shdr->sh_size / size;
	Elf64_Rela *chunk = malloc(CHUNK_CNT * size);
	int err = chunk ? 0 : -ENOMEM;

	if (cnt > r->left)
		cnt = r->left;
	r->left -= cnt;
	for (uint64_t at = 0; !err && at < cnt; at += CHUNK_CNT) {
		size_t n = cnt - at < CHUNK_CNT ? (size_t)(cnt - at) : CHUNK_CNT;

		err = elf_file_read(r->o->elf, shdr->sh_offset + at * size, chunk, n * size);
		for (size_t i = 0; !err && i < n; i++)
			apply(r, s, &chunk[i]);
	}
	free(chunk);
	return err;
}

static int read_section(struct dwarf_section *s, uint64_t *max)
{
	int err;

	if (s->bytes)
		return 0;
	if (s->size > *max)
		return -EFBIG;
	s->bytes = malloc(s->size);
	if (!s->bytes)
		return -ENOMEM;
	err = elf_file_read(s->elf, s->offset, s->bytes, s->size);
	*max -= s->size;
	return err;
}

static int choose_machine(struct relocating *r)
{
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(r->o->elf->elf, &ehdr) || !r->o->elf->is_64bit)
		return -ENOEXEC;
	r->bytes_of = ehdr.e_machine == EM_X86_64    ? x86_64_bytes
		      : ehdr.e_machine == EM_AARCH64 ? aarch64_bytes
						     : NULL;
	return r->bytes_of ? 0 : -ENOEXEC;
}

static struct dwarf_section *target_of(struct dwarf_object *o, const size_t index[DWARF_SECT_CNT],
				       size_t section)
{
	for (int i = 0; i < DWARF_SECT_CNT; i++) {
		if (section && index[i] == section && o->sect[i].size)
			return &o->sect[i];
	}
	return NULL;
}

int dwarf_relocate(struct dwarf_object *o, const size_t index[DWARF_SECT_CNT], uint64_t *max)
{
	struct relocating r = {.o = o, .left = o->elf->size / sizeof(Elf64_Rela)};
	int err = choose_machine(&r);
	GElf_Shdr shdr;

	for (size_t i = 1; !err && i < o->elf->section_cnt; i++) {
		struct dwarf_section *s;

		if (elf_file_section(o->elf, i, &shdr))
			break;
		s = shdr.sh_type == SHT_RELA ? target_of(o, index, shdr.sh_info) : NULL;
		if (!s)
			continue;
		err = read_symbols(&r, shdr.sh_link);
		if (!err)
			err = read_section(s, max);
		if (!err)
			err = apply_all(&r, s, &shdr);
	}
	free(r.symbol);
	return err;
}
