/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "elf_symbols.h"
#include "mapped_file.h"
#include "symbolizer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *elf_symbols_debug_dir = "/usr/lib/debug/.build-id";

/* A table holds 4 M symbols; these are their names, read at once. */
#define STRINGS_MAX_BYTES (512ULL << 20)
/* Symbols are read in pieces of this many. */
#define CHUNK_CNT	  4096

/* Executable sections by index; symbols are only taken from those. */
struct code_section {
	uint64_t start, end; /* link-time; equal: not code */
};

struct reader {
	const struct elf_file *f;	/* whose sections are read */
	const struct elf_file *runtime; /* whose segments are mapped: f, unless f is a debug file */
	struct symtab_builder *b;
	struct code_section *sections;
	char *strings[SYMTAB_STRINGS_MAX]; /* as the builder numbers them; NULL: adopted */
	int adopted;			   /* by the builder, which can take one */
};

/* One section of symbols and its strings. */
struct symbol_section {
	GElf_Shdr symbols, names;
	int dynamic;
	int strings; /* index in builder and reader */
	size_t added_cnt;
};

static int read_sections(struct reader *r)
{
	const struct elf_file *f = r->f;

	r->sections = calloc(f->section_cnt + 1, sizeof(*r->sections));
	if (!r->sections)
		return -ENOMEM;
	for (size_t i = 1; i < f->section_cnt; i++) {
		GElf_Shdr s;

		if (elf_file_section(f, i, &s))
			break;
		if (!(s.sh_flags & SHF_EXECINSTR))
			continue;
		/* A debug file keeps the addresses of code, not its bytes. */
		if (s.sh_type == SHT_NOBITS && f == r->runtime)
			continue;
		if (s.sh_size > UINT64_MAX - s.sh_addr)
			continue;
		r->sections[i] = (struct code_section){s.sh_addr, s.sh_addr + s.sh_size};
	}
	return 0;
}

/* $x, $d.7, … mark code and data for disassemblers; .L names are the compiler's labels. */
static int is_marker_name(const char *s, size_t max)
{
	if (!max || !*s)
		return 1;
	if (max >= 2 && s[0] == '.' && s[1] == 'L')
		return 1;
	return max >= 3 && s[0] == '$' && strchr("adtx", s[1]) && s[1] &&
	       (s[2] == '\0' || s[2] == '.');
}

static int symbol_type(const GElf_Sym *sym)
{
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
		return SYMTAB_FUNC;
	case STT_GNU_IFUNC:
		return SYMTAB_IFUNC;
	case STT_NOTYPE:
		return SYMTAB_NOTYPE;
	default:
		return -1;
	}
}

static int symbol_binding(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return SYMTAB_LOCAL;
	case STB_WEAK:
		return SYMTAB_WEAK;
	default:
		return SYMTAB_GLOBAL; /* and STB_GNU_UNIQUE */
	}
}

/* The code section that a symbol says it is in and really is; NULL: none. */
static const struct code_section *symbol_section(const struct reader *r, const GElf_Sym *sym)
{
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= r->f->section_cnt)
		return NULL; /* SHN_ABS and its like are above any real index */

	const struct code_section *s = &r->sections[sym->st_shndx];
	return sym->st_value >= s->start && sym->st_value < s->end ? s : NULL;
}

/*
 * A dynamic symbol without size holds at its very address only: what follows may be any
 * number of functions that were stripped.
 */
static int add_symbol(const struct reader *r, const GElf_Sym *sym, struct symbol_section *from)
{
	const struct code_section *s = symbol_section(r, sym);
	uint64_t offset;
	int type = symbol_type(sym);

	if (type < 0 || !s ||
	    elf_segments_offset(r->runtime->exec, r->runtime->exec_cnt, sym->st_value, &offset))
		return 0;

	uint64_t to_end = s->end - sym->st_value;
	struct symtab_entry e = {
		.start = offset,
		.end = sym->st_size < to_end ? offset + sym->st_size : offset + to_end,
		.limit = !sym->st_size && from->dynamic ? offset + 1 : offset + to_end,
		.name = sym->st_name,
		.strings = (uint8_t)from->strings,
		.binding = (uint8_t)symbol_binding(sym),
		.type = (uint8_t)type,
	};

	from->added_cnt++;
	return symtab_builder_add(r->b, &e);
}

static int is_inside(const struct elf_file *f, const GElf_Shdr *s)
{
	return s->sh_type != SHT_NOBITS && s->sh_offset <= f->size &&
	       s->sh_size <= f->size - s->sh_offset;
}

/* 0, -ENOENT: no such section, or not inside the file. */
static int find_symbols(const struct elf_file *f, uint32_t type, struct symbol_section *out)
{
	if (!elf_file_find_section(f, type, &out->symbols) || !is_inside(f, &out->symbols))
		return -ENOENT;
	if (elf_file_section(f, out->symbols.sh_link, &out->names) || !is_inside(f, &out->names))
		return -ENOENT;
	out->dynamic = type == SHT_DYNSYM;
	return out->names.sh_size && out->names.sh_size <= STRINGS_MAX_BYTES ? 0 : -ENOENT;
}

static int read_strings(struct reader *r, struct symbol_section *s, uint8_t source)
{
	char *strings = malloc(s->names.sh_size + 1); /* symtab_builder_adopt wants one more */

	if (!strings)
		return -ENOMEM;

	int err = elf_file_read(r->f, s->names.sh_offset, strings, s->names.sh_size);
	s->strings = err ? err
			 : symtab_builder_strings(r->b, &(struct symtab_strings){
								.base = strings,
								.size = s->names.sh_size,
								.source = source,
								.cut_version = !s->dynamic,
							});
	if (s->strings < 0) {
		free(strings);
		return s->strings;
	}
	r->strings[s->strings] = strings;
	return 0;
}

static GElf_Sym get_symbol(const struct reader *r, const void *chunk, size_t i)
{
	if (r->f->is_64bit)
		return ((const Elf64_Sym *)chunk)[i];

	const Elf32_Sym *sym = (const Elf32_Sym *)chunk + i;
	return (GElf_Sym){
		.st_name = sym->st_name,
		.st_info = sym->st_info,
		.st_other = sym->st_other,
		.st_shndx = sym->st_shndx,
		.st_value = sym->st_value,
		.st_size = sym->st_size,
	};
}

static int add_chunk(struct reader *r, struct symbol_section *s, const void *chunk, size_t cnt)
{
	const char *strings = r->strings[s->strings];

	for (size_t i = 0; i < cnt; i++) {
		GElf_Sym sym = get_symbol(r, chunk, i);

		if (sym.st_name >= s->names.sh_size ||
		    is_marker_name(strings + sym.st_name, s->names.sh_size - sym.st_name))
			continue;
		int err = add_symbol(r, &sym, s);
		if (err)
			return err;
	}
	return 0;
}

static int add_symbols(struct reader *r, struct symbol_section *s)
{
	static const size_t sizes[] = {sizeof(Elf32_Sym), sizeof(Elf64_Sym)};
	size_t size = sizes[r->f->is_64bit], cnt = s->symbols.sh_size / size, n;
	Elf64_Sym *chunk = malloc(CHUNK_CNT * sizeof(*chunk));
	int err = chunk ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < cnt; i += n) {
		n = cnt - i < CHUNK_CNT ? cnt - i : CHUNK_CNT;
		err = elf_file_read(r->f, s->symbols.sh_offset + i * size, chunk, n * size);
		if (!err)
			err = add_chunk(r, s, chunk, n);
	}
	free(chunk);
	return err;
}

/* Where most symbols are functions it is quicker to keep all names than to copy theirs. */
static void maybe_adopt(struct reader *r, const struct symbol_section *s)
{
	size_t cnt = s->symbols.sh_size / sizeof(Elf64_Sym);

	if (r->adopted || s->added_cnt < cnt / 2)
		return;
	r->adopted = 1;
	symtab_builder_adopt(r->b, s->strings);
	r->strings[s->strings] = NULL;
}

static int read_symbols(struct reader *r, uint32_t section_type, uint8_t source)
{
	struct symbol_section s = {0};

	if (find_symbols(r->f, section_type, &s))
		return 0;

	int err = read_strings(r, &s, source);
	if (!err)
		err = add_symbols(r, &s);
	if (!err)
		maybe_adopt(r, &s);
	return err;
}

static int read_symtab(struct reader *r)
{
	return read_symbols(r, SHT_SYMTAB, VP_SYM_SYMTAB);
}

static int read_dynsym(struct reader *r)
{
	return read_symbols(r, SHT_DYNSYM, VP_SYM_DYNSYM);
}

/* The open debug file that belongs to r->f, or NULL. *fd is to be closed after it. */
static struct elf_file *open_debug_file(const struct reader *r, int *fd)
{
	uint8_t id[VP_BUILD_ID_MAX], its[VP_BUILD_ID_MAX];
	size_t len = elf_file_build_id(r->f, id, sizeof(id));
	char path[PATH_MAX];
	struct elf_file *debug;
	int n;

	if (len < 2)
		return NULL;
	n = snprintf(path, sizeof(path), "%.*s/%02x/", PATH_MAX / 2, elf_symbols_debug_dir, id[0]);
	for (size_t i = 1; i < len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	*fd = mapped_file_open_path(path);
	if (*fd < 0)
		return NULL;
	if (!elf_file_open(&debug, *fd)) {
		if (elf_file_build_id(debug, its, sizeof(its)) == len && !memcmp(id, its, len))
			return debug;
		elf_file_close(debug);
	}
	close(*fd);
	return NULL;
}

/*
 * A stripped file's .symtab is in a file of its own if its -dbg package is installed, found by
 * build id. Its segments are those of the stripped file.
 */
static int read_debug_file(struct reader *r)
{
	struct code_section *sections = r->sections;
	struct elf_file *debug;
	GElf_Shdr own;
	int fd, err;

	if (elf_file_find_section(r->f, SHT_SYMTAB, &own))
		return 0;
	debug = open_debug_file(r, &fd);
	if (!debug)
		return 0;
	r->f = debug;
	err = read_sections(r);
	if (!err)
		err = read_symtab(r);
	free(r->sections);
	r->sections = sections;
	r->f = r->runtime;
	elf_file_close(debug);
	close(fd);
	/* A damaged one is as good as none. */
	return err == -ENOMEM ? err : 0;
}

/*
 * Best first. All are merged: a .symtab may hold a handful of symbols that a packager kept
 * while the exported ones are in .dynsym only.
 */
static int (*const sources[])(struct reader *r) = {read_symtab, read_debug_file, read_dynsym};

static uint64_t table_base(const struct elf_file *f)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < f->exec_cnt; i++) {
		if (f->exec[i].offset < base)
			base = f->exec[i].offset;
	}
	return base;
}

int elf_symbols_read(const struct elf_file *f, struct symtab **out)
{
	struct reader r = {.f = f, .runtime = f, .b = symtab_builder_new(table_base(f))};

	if (!r.b)
		return -ENOMEM;

	int err = read_sections(&r);
	for (size_t i = 0; !err && i < sizeof(sources) / sizeof(*sources); i++)
		err = sources[i](&r);
	if (!err)
		err = symtab_builder_finish(r.b, out);
	symtab_builder_free(r.b);
	for (int i = 0; i < SYMTAB_STRINGS_MAX; i++)
		free(r.strings[i]);
	free(r.sections);
	return err;
}
