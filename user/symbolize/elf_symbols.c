/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "elf_symbols.h"

#include "debugdata.h"
#include "filed_names.h"
#include "go_table.h"
#include "plt.h"
#include "string_table.h"
#include "symbolizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A table holds 4 M symbols; these are their names, read at once. */
#define STRINGS_MAX_BYTES   (512ULL << 20)
#define DEBUGDATA_MAX_BYTES (32U << 20)
#define IFUNC_MAX_CNT	    4096
/* Smaller string tables are not worth an open file. */
#define FILED_MIN_BYTES	    (1U << 20)
/* What is_marker_name() looks at. */
#define MARKER_BYTES	    3
/* Symbols are read in pieces of this many. */
#define CHUNK_CNT	    4096

enum named {
	NAMED_DEBUGLINK,
	NAMED_DEBUGDATA,
	NAMED_CNT,
};

static const char *const section_names[NAMED_CNT] = {
	[NAMED_DEBUGLINK] = ".gnu_debuglink",
	[NAMED_DEBUGDATA] = ".gnu_debugdata",
};

/* Executable sections by index; symbols are only taken from those. */
struct code_section {
	uint64_t start, end; /* link-time; equal: not code */
};

struct reader {
	const struct elf_file *f;	/* whose sections are read */
	const struct elf_file *runtime; /* whose segments are mapped: f, unless f is a debug file */
	struct symtab_builder *b;
	struct code_section *sections;
	char *strings[SYMTAB_STRINGS_MAX]; /* of functions and stubs, as the builder numbers them */
	int adopted; /* one string table is kept as a whole, by the builder or in its file */
	const struct elf_symbols_from *from; /* NULL: no debug file */
	struct elf_named named[NAMED_CNT];   /* sections of runtime */
	int has_symtab;			     /* or its debug file has */
	struct plt_ifunc *ifuncs;	     /* their names are in tables */
	size_t ifunc_cnt;
	struct string_table tables[SYMTAB_STRINGS_MAX];
	int table_cnt;
};

/* One section of symbols and its strings. */
struct symbol_section {
	GElf_Shdr symbols, names;
	int dynamic;
	int strings;		    /* index in builder */
	struct string_table *table; /* one of the reader's */
	size_t added_cnt;
	struct filed_names *filed; /* NULL: the names are not left in the file */
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
		if (!(s.sh_flags & SHF_EXECINSTR) || (!f->is_linked && i != f->code_section))
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
static int is_marker_name(const char *s, size_t len)
{
	if (!len)
		return 1;
	if (len >= 2 && s[0] == '.' && s[1] == 'L')
		return 1;
	return len >= 2 && s[0] == '$' && strchr("adtx", s[1]) && (len == 2 || s[2] == '.');
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
	case STT_OBJECT:
		/* Tables between functions; code that is embedded as one has no other name. */
		return sym->st_size ? SYMTAB_NOTYPE : -1;
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
static int add_symbol(const struct reader *r, const GElf_Sym *sym, int type,
		      const struct code_section *s, struct symbol_section *from)
{
	uint64_t offset;

	if (elf_segments_offset(r->runtime->exec, r->runtime->exec_cnt, sym->st_value, &offset))
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
	return s->sh_type != SHT_NOBITS && !(s->sh_flags & SHF_COMPRESSED) &&
	       s->sh_offset <= f->size && s->sh_size <= f->size - s->sh_offset;
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
	struct symtab_strings strings = {
		.size = s->names.sh_size,
		.source = source,
		.cut_version = !s->dynamic,
	};
	struct string_table *t = &r->tables[r->table_cnt];

	*t = (struct string_table){
		.f = r->f, .offset = s->names.sh_offset, .size = s->names.sh_size};
	if (s->filed) {
		strings.table = t;
	} else {
		int err = string_table_read_all(t);

		if (err)
			return err;
		strings.base = t->all;
	}
	s->strings = symtab_builder_strings(r->b, &strings);
	if (s->strings < 0) {
		string_table_fini(t);
		return s->strings;
	}
	s->table = t;
	r->table_cnt++;
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

/* What .plt's relocations without a symbol call by. */
static int note_ifunc(struct reader *r, const struct symbol_section *s, const GElf_Sym *sym)
{
	int err;

	if (r->ifunc_cnt == IFUNC_MAX_CNT)
		return 0;
	if (!r->ifuncs)
		r->ifuncs = calloc(IFUNC_MAX_CNT, sizeof(*r->ifuncs));
	if (!r->ifuncs)
		return -ENOMEM;
	err = string_table_read_all(s->table);
	if (err)
		return err;
	r->ifuncs[r->ifunc_cnt++] = (struct plt_ifunc){sym->st_value, s->table->all + sym->st_name};
	return 0;
}

/*
 * The name of what is typed as a function is not looked at: names are all over their table, and to
 * wait for a hundred thousand of them is a quarter of the time.
 */
static int has_name(const struct symbol_section *s, const GElf_Sym *sym, int *err)
{
	char room[STRING_ROOM];
	const char *name;
	size_t len;

	if (GELF_ST_TYPE(sym->st_info) == STT_FUNC)
		return sym->st_name != 0;
	name = string_table_get(s->table, sym->st_name, MARKER_BYTES, room, &len, err);
	return name && !is_marker_name(name, len);
}

static int take_symbol(struct reader *r, struct symbol_section *s, const GElf_Sym *sym)
{
	const struct code_section *section = symbol_section(r, sym);
	int type = symbol_type(sym), err = 0;

	if (type < 0 || (!section && type != SYMTAB_IFUNC) || sym->st_name >= s->names.sh_size ||
	    !has_name(s, sym, &err))
		return err;
	if (type == SYMTAB_IFUNC)
		err = note_ifunc(r, s, sym);
	return !err && section ? add_symbol(r, sym, type, section, s) : err;
}

static int add_chunk(struct reader *r, struct symbol_section *s, const void *chunk, size_t cnt)
{
	int err = 0;

	for (size_t i = 0; i < cnt && !err; i++) {
		const GElf_Sym sym = get_symbol(r, chunk, i);

		err = take_symbol(r, s, &sym);
	}
	return err;
}

static int add_symbols(struct reader *r, struct symbol_section *s)
{
	static const size_t sizes[] = {sizeof(Elf32_Sym), sizeof(Elf64_Sym)};
	size_t size = sizes[r->f->is_64bit], cnt = s->symbols.sh_size / size, n;
	Elf64_Sym *chunk = malloc(CHUNK_CNT * sizeof(*chunk));
	int err = chunk ? 0 : -ENOMEM;

	symtab_builder_reserve(r->b, cnt);
	for (size_t i = 0; !err && i < cnt; i += n) {
		n = cnt - i < CHUNK_CNT ? cnt - i : CHUNK_CNT;
		err = elf_file_read(r->f, s->symbols.sh_offset + i * size, chunk, n * size);
		if (!err)
			err = add_chunk(r, s, chunk, n);
	}
	free(chunk);
	return err;
}

/*
 * Names of a large table stay in the file. Else, where most symbols are functions it is quicker to
 * keep all names than to copy theirs.
 */
static void keep_names(struct reader *r, struct symbol_section *s)
{
	size_t cnt = s->symbols.sh_size / sizeof(Elf64_Sym);

	if (r->adopted)
		return;
	if (s->filed) {
		symtab_builder_leave(r->b, s->strings, s->filed);
		s->filed = NULL;
		r->adopted = 1;
		return;
	}
	if (s->added_cnt < cnt / 2)
		return;
	r->adopted = 1;
	symtab_builder_adopt(r->b, s->strings);
	s->table->all = NULL;
}

static int read_symbols(struct reader *r, uint32_t section_type, uint8_t source)
{
	struct symbol_section s = {0};

	if (find_symbols(r->f, section_type, &s))
		return 0;

	if (!r->adopted && r->from && r->from->leave_names && s.names.sh_size >= FILED_MIN_BYTES)
		s.filed = filed_names_new(r->f->fd, s.names.sh_offset, (uint32_t)s.names.sh_size);

	int err = read_strings(r, &s, source);
	if (!err)
		err = add_symbols(r, &s);
	if (!err)
		keep_names(r, &s);
	filed_names_free(s.filed);
	return err;
}

static int read_symtab(struct reader *r)
{
	GElf_Shdr s;

	r->has_symtab = elf_file_find_section(r->f, SHT_SYMTAB, &s) != 0;
	return read_symbols(r, SHT_SYMTAB, VP_SYM_SYMTAB);
}

static int read_dynsym(struct reader *r)
{
	return read_symbols(r, SHT_DYNSYM, VP_SYM_DYNSYM);
}

/* Reads .symtab of another file that tells of r->f's code. */
static int read_symtab_of(struct reader *r, const struct elf_file *other, uint8_t source)
{
	struct code_section *sections = r->sections;
	int err;

	r->f = other;
	err = read_sections(r);
	if (!err)
		err = read_symbols(r, SHT_SYMTAB, source);
	free(r->sections);
	r->sections = sections;
	r->f = r->runtime;
	/* A damaged one is as good as none. */
	return err == -ENOMEM ? err : 0;
}

/*
 * A stripped file's .symtab is in a file of its own. Its segments are those of the stripped one:
 * a debug file's own say nothing.
 */
static int read_debug_file(struct reader *r)
{
	struct debug_found found;
	struct elf_file *debug;
	int err = 0;

	if (!r->from || (r->has_symtab && !r->named[NAMED_DEBUGLINK].index) ||
	    debug_finder_open(r->from->finder, r->f, &r->from->at, &found))
		return 0;
	if (!elf_file_open(&debug, found.fd)) {
		err = read_symtab_of(r, debug, VP_SYM_SYMTAB);
		r->has_symtab = 1;
		elf_file_close(debug);
	}
	close(found.fd);
	return err;
}

/* What .gnu_debugdata has is part of .symtab. */
static int read_debugdata(struct reader *r)
{
	const struct elf_named *s = &r->named[NAMED_DEBUGDATA];
	struct elf_file *mini;
	void *packed, *image;
	size_t size;
	int err;

	if (r->has_symtab || !s->index)
		return 0;
	packed = elf_file_section_bytes(r->f, &s->shdr, DEBUGDATA_MAX_BYTES, &err);
	if (!packed)
		return err == -ENOMEM ? err : 0;
	image = debugdata_unpack(packed, s->shdr.sh_size, &size, &err);
	free(packed);
	if (!image)
		return err == -ENOMEM ? err : 0;
	if (!elf_file_open_memory(&mini, image, size)) {
		err = read_symtab_of(r, mini, VP_SYM_DEBUGDATA);
		elf_file_close(mini);
	}
	free(image);
	return err;
}

/* ---- Go ---- */

/* Adds a range of code that is in one segment. */
static int add_range(struct reader *r, uint64_t start, uint64_t end, uint32_t name, int strings)
{
	uint64_t offset, last;

	if (elf_segments_offset(r->f->exec, r->f->exec_cnt, start, &offset) ||
	    elf_segments_offset(r->f->exec, r->f->exec_cnt, end - 1, &last) || last < offset)
		return 0;
	return symtab_builder_add(r->b, &(struct symtab_entry){
						.start = offset,
						.end = last + 1,
						.limit = last + 1,
						.name = name,
						.strings = (uint8_t)strings,
						.binding = SYMTAB_GLOBAL,
						.type = SYMTAB_FUNC,
					});
}

static int add_go_functions(struct reader *r, const struct go_table *g, int strings)
{
	struct gopclntab_func func;
	int err = 0;

	for (uint64_t i = 0; !err && i < g->t.func_cnt; i++) {
		if (!gopclntab_func(&g->t, i, &func))
			err = add_range(r, func.start, func.end, (uint32_t)(g->base + func.name),
					strings);
	}
	return err;
}

static int read_gopclntab(struct reader *r)
{
	struct go_table g;
	int err, strings;

	if (r->has_symtab)
		return 0;
	err = go_table_read(r->f, &g);
	if (err)
		return err == -ENOMEM ? err : 0;
	strings = symtab_builder_strings(r->b, &(struct symtab_strings){
						       .base = g.bytes,
						       .size = g.size,
						       .source = VP_SYM_GOPCLNTAB,
					       });
	if (strings < 0) {
		free(g.bytes);
		return strings;
	}
	r->strings[strings] = g.bytes;
	return add_go_functions(r, &g, strings);
}

/* ---- stubs ---- */

/* Of several names the one that symtab.h would choose. */
static int by_resolver(const void *a, const void *b)
{
	const struct plt_ifunc *x = a, *y = b;
	size_t x_us = strspn(x->name, "_"), y_us = strspn(y->name, "_");
	size_t x_len = strlen(x->name), y_len = strlen(y->name);

	if (x->resolver != y->resolver)
		return x->resolver < y->resolver ? -1 : 1;
	if (x_us != y_us)
		return x_us < y_us ? -1 : 1;
	if (x_len != y_len)
		return x_len < y_len ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int add_stubs(struct reader *r, const struct plt *plt)
{
	int strings, err = 0;

	if (!plt->cnt)
		return 0;
	strings = symtab_builder_strings(r->b, &(struct symtab_strings){
						       .base = plt->names,
						       .size = plt->names_size,
						       .source = VP_SYM_PLT,
					       });
	if (strings < 0)
		return strings;
	r->strings[strings] = plt->names;
	for (size_t i = 0; !err && i < plt->cnt; i++)
		err = add_range(r, plt->stubs[i].start, plt->stubs[i].end, plt->stubs[i].name,
				strings);
	return err;
}

static int read_plt(struct reader *r)
{
	struct plt plt;
	int err;

	if (r->ifunc_cnt)
		qsort(r->ifuncs, r->ifunc_cnt, sizeof(*r->ifuncs), by_resolver);
	err = plt_read(&plt, r->f, r->ifuncs, r->ifunc_cnt);
	if (!err) {
		err = add_stubs(r, &plt);
		if (!err && plt.cnt)
			plt.names = NULL; /* r's */
	}
	plt_fini(&plt);
	return err;
}

/*
 * Best first. All are merged: a .symtab may hold a handful of symbols that a packager kept
 * while the exported ones are in .dynsym only.
 */
static int (*const sources[])(struct reader *r) = {read_symtab,	   read_debug_file, read_debugdata,
						   read_gopclntab, read_dynsym,	    read_plt};

static uint64_t table_base(const struct elf_file *f)
{
	uint64_t base = UINT64_MAX;

	for (size_t i = 0; i < f->exec_cnt; i++) {
		if (f->exec[i].offset < base)
			base = f->exec[i].offset;
	}
	return base;
}

int elf_symbols_read(const struct elf_file *f, const struct elf_symbols_from *from,
		     struct symtab **out)
{
	struct reader r = {
		.f = f, .runtime = f, .from = from, .b = symtab_builder_new(table_base(f))};

	if (!r.b)
		return -ENOMEM;

	int err = read_sections(&r);
	for (size_t i = 0; i < NAMED_CNT; i++)
		r.named[i].name = section_names[i];
	elf_file_find_named(f, r.named, NAMED_CNT);
	for (size_t i = 0; !err && i < sizeof(sources) / sizeof(*sources); i++)
		err = sources[i](&r);
	if (!err)
		err = symtab_builder_finish(r.b, out);
	symtab_builder_free(r.b);
	for (int i = 0; i < SYMTAB_STRINGS_MAX; i++) {
		free(r.strings[i]);
		string_table_fini(&r.tables[i]);
	}
	free(r.sections);
	free(r.ifuncs);
	return err;
}
