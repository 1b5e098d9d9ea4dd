/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "plt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_MAX_BYTES (16U << 20)
#define STUBS_MAX_CNT	  (1U << 18)
#define NAMES_MAX_BYTES	  (64U << 20)
/* Of all sections together, which may overlap in a file that is made to. */
#define RELOCS_MAX_BYTES  (256U << 20)
#define NAME_MAX_BYTES	  4096
#define CHUNK_CNT	  2048
#define SUFFIX		  "@plt"

/* A jump through a slot, and where it was found. */
struct jump {
	uint64_t slot;
	uint64_t start, end; /* of the stub */
	int named;
};

struct reader {
	const struct elf_file *f;
	struct plt *out;
	const struct plt_ifunc *ifuncs;
	size_t ifunc_cnt;
	struct jump *jumps; /* by slot */
	size_t jump_cnt, jump_cap, named_cnt;
	/* Stubs that only say which entry of .rela.plt theirs is. */
	struct jump *pushes; /* slot: that number */
	size_t push_cnt, push_cap;
	uint64_t reloc_budget;	    /* bytes still to be read */
	GElf_Shdr symbols, strings; /* .dynsym's; of no size if there is none */
	char name[NAME_MAX_BYTES + 1];
};

static int add_jump(struct jump **jumps, size_t *cnt, size_t *cap, struct jump j)
{
	if (*cnt == STUBS_MAX_CNT)
		return -ENOSPC;
	if (*cnt == *cap) {
		size_t new_cap = *cap ? *cap * 2 : 256;
		struct jump *p = realloc(*jumps, new_cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		*jumps = p;
		*cap = new_cap;
	}
	(*jumps)[(*cnt)++] = j;
	return 0;
}

/* ---- stubs ---- */

static int is_endbr64(const uint8_t *p)
{
	return p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa;
}

/* jmp *disp32(%rip), within the first bytes of a stub. Where the displacement is, or 0. */
static size_t find_jump(const uint8_t *stub, size_t size)
{
	for (size_t i = 0; i + 6 <= size && i <= 11; i++) {
		if (stub[i] == 0xff && stub[i + 1] == 0x25)
			return i + 2;
	}
	return 0;
}

static int add_stub(struct reader *r, const uint8_t *stub, size_t size, uint64_t addr)
{
	size_t at = find_jump(stub, size);
	struct jump j = {.start = addr, .end = addr + size};
	int32_t disp;
	uint32_t n;

	/* The first entry of .plt is for the others: push GOT[1]; jmp *GOT[2]. */
	if (stub[0] == 0xff && stub[1] == 0x35)
		return 0;
	if (at) {
		memcpy(&disp, stub + at, sizeof(disp));
		j.slot = addr + at + sizeof(disp) + (uint64_t)(int64_t)disp;
		return add_jump(&r->jumps, &r->jump_cnt, &r->jump_cap, j);
	}
	if (size < 9 || !is_endbr64(stub) || stub[4] != 0x68)
		return 0;
	memcpy(&n, stub + 5, sizeof(n));
	j.slot = n;
	return add_jump(&r->pushes, &r->push_cnt, &r->push_cap, j);
}

/* entry: size of a stub. */
static int read_stubs(struct reader *r, const GElf_Shdr *s, size_t entry)
{
	int err;
	uint8_t *bytes = elf_file_section_bytes(r->f, s, SECTION_MAX_BYTES, &err);

	if (!bytes)
		return err == -ENOMEM ? err : 0;
	err = 0;
	for (uint64_t at = 0; !err && s->sh_size - at >= entry; at += entry)
		err = add_stub(r, bytes + at, entry, s->sh_addr + at);
	free(bytes);
	return err;
}

static size_t entry_size(const struct elf_file *f, const struct elf_named *s)
{
	uint8_t head[4];

	if (s->shdr.sh_entsize == 8 || s->shdr.sh_entsize == 16)
		return s->shdr.sh_entsize;
	if (strcmp(s->name, ".plt.got") != 0)
		return 16;
	return !elf_file_read(f, s->shdr.sh_offset, head, sizeof(head)) && is_endbr64(head) ? 16
											    : 8;
}

static int by_slot(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;

	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static int read_all_stubs(struct reader *r)
{
	struct elf_named s[] = {
		{.name = ".plt"}, {.name = ".plt.sec"}, {.name = ".plt.got"}, {.name = ".iplt"}};
	int err = 0;

	elf_file_find_named(r->f, s, sizeof(s) / sizeof(*s));
	for (size_t i = 0; !err && i < sizeof(s) / sizeof(*s); i++) {
		if (s[i].index && s[i].shdr.sh_flags & SHF_EXECINSTR)
			err = read_stubs(r, &s[i].shdr, entry_size(r->f, &s[i]));
	}
	if (r->jump_cnt)
		qsort(r->jumps, r->jump_cnt, sizeof(*r->jumps), by_slot);
	if (r->push_cnt)
		qsort(r->pushes, r->push_cnt, sizeof(*r->pushes), by_slot);
	return err;
}

/* The first of the jumps through a slot; NULL: none. */
static struct jump *find_slot(struct jump *jumps, size_t cnt, uint64_t slot)
{
	size_t lo = 0, hi = cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (jumps[mid].slot < slot)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < cnt && jumps[lo].slot == slot ? &jumps[lo] : NULL;
}

/* ---- names ---- */

static const char *resolved_name(const struct reader *r, uint64_t resolver)
{
	size_t lo = 0, hi = r->ifunc_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->ifuncs[mid].resolver < resolver)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->ifunc_cnt && r->ifuncs[lo].resolver == resolver ? r->ifuncs[lo].name : NULL;
}

/* Name of a dynamic symbol. A few hundred are asked for, of as many as a hundred thousand. */
static const char *symbol_name(struct reader *r, uint64_t index)
{
	Elf64_Sym sym;

	if (index >= r->symbols.sh_size / sizeof(sym) ||
	    elf_file_read(r->f, r->symbols.sh_offset + index * sizeof(sym), &sym, sizeof(sym)) ||
	    sym.st_name >= r->strings.sh_size)
		return NULL;
	for (size_t max = 128; max <= NAME_MAX_BYTES; max *= 2) {
		uint64_t left = r->strings.sh_size - sym.st_name;
		size_t n = left < max ? left : max;

		if (elf_file_read(r->f, r->strings.sh_offset + sym.st_name, r->name, n))
			return NULL;
		r->name[n] = '\0';
		if (n == left || strlen(r->name) < n)
			break;
	}
	return r->name;
}

/* NULL: the relocation names nothing. */
static const char *reloc_name(struct reader *r, const Elf64_Rela *rela)
{
	switch (ELF64_R_TYPE(rela->r_info)) {
	case R_X86_64_IRELATIVE:
		return resolved_name(r, (uint64_t)rela->r_addend);
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return symbol_name(r, ELF64_R_SYM(rela->r_info));
	default:
		return NULL;
	}
}

static int reserve_name(struct plt *p, size_t len)
{
	if (p->names_size + len > NAMES_MAX_BYTES)
		return -ENOSPC;
	if (p->names_size + len <= p->names_cap)
		return 0;

	size_t cap = 2 * (p->names_cap + len);
	char *names = realloc(p->names, cap);
	if (!names)
		return -ENOMEM;
	p->names = names;
	p->names_cap = cap;
	return 0;
}

static int reserve_stub(struct plt *p)
{
	size_t cap = p->cap ? 2 * p->cap : 64;

	if (p->cnt < p->cap)
		return 0;

	struct plt_stub *stubs = realloc(p->stubs, cap * sizeof(*stubs));
	if (!stubs)
		return -ENOMEM;
	p->stubs = stubs;
	p->cap = cap;
	return 0;
}

static int put_stub(struct reader *r, struct jump *j, const char *name, size_t len)
{
	struct plt *p = r->out;
	int err = reserve_name(p, len + sizeof(SUFFIX));

	if (!err)
		err = reserve_stub(p);
	if (err)
		return err;
	p->stubs[p->cnt++] = (struct plt_stub){j->start, j->end, (uint32_t)p->names_size};
	memcpy(p->names + p->names_size, name, len);
	memcpy(p->names + p->names_size + len, SUFFIX, sizeof(SUFFIX));
	p->names_size += len + sizeof(SUFFIX);
	j->named = 1;
	r->named_cnt++;
	return 0;
}

/* Stubs of one slot get their names together, so the first one tells whether they have. */
static int name_slot(struct reader *r, struct jump *jumps, size_t cnt, uint64_t slot,
		     const Elf64_Rela *rela)
{
	struct jump *j = find_slot(jumps, cnt, slot);
	const char *name = j && !j->named ? reloc_name(r, rela) : NULL;
	size_t len = name ? strnlen(name, NAME_MAX_BYTES) : 0;
	int err = 0;

	for (; !err && len && j < jumps + cnt && j->slot == slot; j++)
		err = put_stub(r, j, name, len);
	return err;
}

/* Relocation number n of its section. */
static int use_reloc(struct reader *r, const Elf64_Rela *rela, size_t n, int numbered)
{
	int err = numbered ? name_slot(r, r->pushes, r->push_cnt, n, rela) : 0;

	return err ? err : name_slot(r, r->jumps, r->jump_cnt, rela->r_offset, rela);
}

/* ---- relocations ---- */

static int is_all_relative(const Elf64_Rela *rela, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (ELF64_R_TYPE(rela[i].r_info) != R_X86_64_RELATIVE)
			return 0;
	}
	return 1;
}

/*
 * From the end, because linkers put the many relocations that name nothing first, until all
 * stubs have names or that part is reached.
 */
static int read_relocs(struct reader *r, const GElf_Shdr *s, int numbered)
{
	Elf64_Rela *chunk = malloc(CHUNK_CNT * sizeof(*chunk));
	uint64_t left = s->sh_size / sizeof(*chunk);
	int err = chunk ? 0 : -ENOMEM;

	while (!err && left && r->named_cnt < r->jump_cnt + r->push_cnt) {
		size_t n = left < CHUNK_CNT ? left : CHUNK_CNT;

		left -= n;
		if (r->reloc_budget < n * sizeof(*chunk))
			break;
		r->reloc_budget -= n * sizeof(*chunk);
		if (elf_file_read(r->f, s->sh_offset + left * sizeof(*chunk), chunk,
				  n * sizeof(*chunk)) ||
		    is_all_relative(chunk, n))
			break;
		for (size_t i = 0; !err && i < n; i++)
			err = use_reloc(r, &chunk[i], left + i, numbered);
	}
	free(chunk);
	return err;
}

/* Relocations that lazy stubs count in are those that a section of stubs' slots is named by. */
static int read_all_relocs(struct reader *r)
{
	struct elf_named plt = {.name = ".rela.plt"};
	int err = 0;

	elf_file_find_named(r->f, &plt, 1);
	if (plt.index)
		err = read_relocs(r, &plt.shdr, 1);
	for (size_t i = 1; !err && i < r->f->section_cnt; i++) {
		GElf_Shdr s;

		if (elf_file_section(r->f, i, &s))
			break;
		if (i != plt.index && s.sh_type == SHT_RELA && s.sh_flags & SHF_ALLOC)
			err = read_relocs(r, &s, 0);
	}
	return err;
}

/* Without dynamic symbols there may be resolvers still. */
static void find_dynsym(struct reader *r)
{
	if (!elf_file_find_section(r->f, SHT_DYNSYM, &r->symbols) ||
	    elf_file_section(r->f, r->symbols.sh_link, &r->strings))
		r->symbols.sh_size = 0;
}

static int is_x86_64(const struct elf_file *f)
{
	GElf_Ehdr ehdr;

	return f->is_64bit && gelf_getehdr(f->elf, &ehdr) && ehdr.e_machine == EM_X86_64;
}

static int read_plt(struct reader *r)
{
	int err = read_all_stubs(r);

	if (err || !(r->jump_cnt + r->push_cnt))
		return err;
	find_dynsym(r);
	return read_all_relocs(r);
}

int plt_read(struct plt *out, const struct elf_file *f, const struct plt_ifunc *ifuncs,
	     size_t ifunc_cnt)
{
	struct reader *r;
	int err;

	*out = (struct plt){0};
	if (!is_x86_64(f))
		return 0;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->f = f;
	r->out = out;
	r->reloc_budget = RELOCS_MAX_BYTES;
	r->ifuncs = ifuncs;
	r->ifunc_cnt = ifunc_cnt;
	err = read_plt(r);
	free(r->jumps);
	free(r->pushes);
	free(r);
	return err == -ENOSPC ? 0 : err; /* more than any real file has: those that fit */
}

void plt_fini(struct plt *p)
{
	free(p->stubs);
	free(p->names);
}
