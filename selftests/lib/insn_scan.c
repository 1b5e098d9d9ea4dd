/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "insn_scan.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELPER_GET_STACKID    27
#define HELPER_GET_STACK      67
#define HELPER_GET_TASK_STACK 141
#define HELPER_FIND_VMA	      180

#define LD_IMM64 (BPF_LD | BPF_IMM | BPF_DW)
#define CALL	 (BPF_JMP | BPF_CALL)

/* ---- one function --------------------------------------------------------------------------- */

static bool is_helper_call(const struct bpf_insn *i, int helper)
{
	return i->code == CALL && i->src_reg == 0 && i->imm == helper;
}

static bool is_subprog_call(const struct bpf_insn *i)
{
	return i->code == CALL && i->src_reg == BPF_PSEUDO_CALL;
}

static bool is_func_address(const struct bpf_insn *i)
{
	return i->code == LD_IMM64 && i->src_reg == BPF_PSEUDO_FUNC;
}

static size_t target_of(const struct insn_text *t, size_t i)
{
	return (size_t)((long)i + t->insn[i].imm + 1);
}

/* Number of the function that instruction i belongs to. */
static size_t function_of(const struct insn_text *t, size_t i)
{
	size_t f = 0;

	while (f + 1 < t->start_cnt && t->start[f + 1] <= i)
		f++;
	return f;
}

static size_t end_of(const struct insn_text *t, size_t f)
{
	return f + 1 < t->start_cnt ? t->start[f + 1] : t->cnt;
}

/* Whether instruction i sets reg; calls set r0 to r5. */
static bool sets(const struct bpf_insn *i, int reg)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
	case BPF_LD:
	case BPF_LDX:
		return i->dst_reg == reg;
	case BPF_JMP:
		return BPF_OP(i->code) == BPF_CALL && reg <= 5;
	default:
		return false;
	}
}

/*
 * The instruction that gave reg its value before i, by going straight up and through moves; -1
 * if there is none. Branches are not followed: what is found may be one of several.
 */
static long definition(const struct insn_text *t, size_t i, int reg)
{
	size_t start = t->start[function_of(t, i)];

	while (i-- > start) {
		const struct bpf_insn *insn = &t->insn[i];

		/* the second half of a 64-bit load */
		if (insn->code == 0 || !sets(insn, reg))
			continue;
		if (insn->code != (BPF_ALU64 | BPF_MOV | BPF_X))
			return (long)i;
		reg = insn->src_reg;
	}
	return -1;
}

/* ---- callbacks and what they reach ---------------------------------------------------------- */

/* Whether there are any. */
static bool mark_all_addresses(const struct insn_text *t, size_t f, bool *marked)
{
	bool any = false;

	for (size_t i = t->start[f]; i < end_of(t, f); i++) {
		if (!is_func_address(&t->insn[i]))
			continue;
		marked[function_of(t, target_of(t, i))] = true;
		any = true;
	}
	return any;
}

static bool is_jump(const struct bpf_insn *i)
{
	int op = BPF_OP(i->code);

	return (BPF_CLASS(i->code) == BPF_JMP || BPF_CLASS(i->code) == BPF_JMP32) &&
	       op != BPF_CALL && op != BPF_EXIT;
}

/* Whether what runs at `to` came from `from` for certain: nothing jumps in between. */
static bool is_straight(const struct insn_text *t, size_t from, size_t to)
{
	size_t f = function_of(t, to);

	for (size_t i = t->start[f]; i < end_of(t, f); i++) {
		size_t at = (size_t)((long)i + t->insn[i].off + 1);

		if (is_jump(&t->insn[i]) && at > from && at <= to)
			return false;
	}
	return true;
}

/* Of the call at i; all whose address the function takes, if it cannot be told. False: none. */
static bool mark_callbacks(const struct insn_text *t, size_t i, bool *marked)
{
	long def = definition(t, i, BPF_REG_3);

	if (def < 0 || !is_func_address(&t->insn[def]) || !is_straight(t, (size_t)def, i))
		return mark_all_addresses(t, function_of(t, i), marked);
	marked[function_of(t, target_of(t, (size_t)def))] = true;
	return true;
}

static void mark_reachable(const struct insn_text *t, bool *marked)
{
	bool more;

	do {
		more = false;
		for (size_t i = 0; i < t->cnt; i++) {
			size_t to;

			if (!is_subprog_call(&t->insn[i]) && !is_func_address(&t->insn[i]))
				continue;
			to = function_of(t, target_of(t, i));
			if (marked[function_of(t, i)] && !marked[to]) {
				marked[to] = true;
				more = true;
			}
		}
	} while (more);
}

/* Flags that are not a constant could be anything. */
static bool may_take_build_ids(const struct insn_text *t, size_t i, int flags_reg)
{
	long def = definition(t, i, flags_reg);
	const struct bpf_insn *insn = def < 0 ? NULL : &t->insn[def];

	if (!insn)
		return true;
	if (BPF_CLASS(insn->code) != BPF_ALU64 && BPF_CLASS(insn->code) != BPF_ALU)
		return insn->code != LD_IMM64 || (insn->imm & BPF_F_USER_BUILD_ID);
	if (BPF_OP(insn->code) != BPF_MOV || BPF_SRC(insn->code) != BPF_K)
		return true;
	return insn->imm & BPF_F_USER_BUILD_ID;
}

static const char *build_id_stack(const struct insn_text *t, size_t i)
{
	const struct bpf_insn *insn = &t->insn[i];

	if (is_helper_call(insn, HELPER_GET_STACK) && may_take_build_ids(t, i, BPF_REG_4))
		return "bpf_get_stack with build ids";
	if (is_helper_call(insn, HELPER_GET_TASK_STACK) && may_take_build_ids(t, i, BPF_REG_4))
		return "bpf_get_task_stack with build ids";
	if (is_helper_call(insn, HELPER_GET_STACKID) && may_take_build_ids(t, i, BPF_REG_3))
		return "bpf_get_stackid with build ids";
	return NULL;
}

static const char *forbidden(const struct insn_text *t, size_t i)
{
	return is_helper_call(&t->insn[i], HELPER_FIND_VMA) ? "bpf_find_vma" : build_id_stack(t, i);
}

static void scan_callbacks(const struct insn_text *t, bool *marked, struct insn_scan *out)
{
	for (size_t i = 0; i < t->cnt; i++) {
		if (!is_helper_call(&t->insn[i], HELPER_FIND_VMA))
			continue;
		out->find_cnt++;
		out->unknown_cnt += !mark_callbacks(t, i, marked);
	}
	for (size_t f = 0; f < t->start_cnt; f++)
		out->callback_cnt += marked[f];
	mark_reachable(t, marked);
	for (size_t i = 0; i < t->cnt; i++) {
		const char *what = marked[function_of(t, i)] ? forbidden(t, i) : NULL;

		if (what && out->bad_cnt++ == 0)
			snprintf(out->text, sizeof(out->text),
				 "instruction %zu, in a callback of bpf_find_vma: %s", i, what);
	}
}

/*
 * Everything that function f reaches, whatever it is: a program, or a part of one. The two share
 * what releases the lock in an interrupt, so neither works after the other.
 */
static bool is_mixed(const struct insn_text *t, size_t f, bool *marked)
{
	bool asks = false, stacks = false;

	memset(marked, 0, t->start_cnt * sizeof(*marked));
	marked[f] = true;
	mark_reachable(t, marked);
	for (size_t i = 0; i < t->cnt; i++) {
		if (!marked[function_of(t, i)])
			continue;
		asks = asks || is_helper_call(&t->insn[i], HELPER_FIND_VMA);
		stacks = stacks || build_id_stack(t, i);
	}
	return asks && stacks;
}

void insn_scan(const struct insn_text *t, struct insn_scan *out)
{
	bool *marked = calloc(t->start_cnt + 1, sizeof(*marked));

	if (!marked)
		abort();
	*out = (struct insn_scan){0};
	scan_callbacks(t, marked, out);
	for (size_t f = 0; f < t->start_cnt; f++)
		out->mixed_cnt += is_mixed(t, f, marked);
	free(marked);
}

/* ---- from an ELF object --------------------------------------------------------------------- */

#define SECTIONS_MAX 256

struct object {
	Elf *elf;
	Elf_Data *symbols;
	size_t symbol_cnt;
	long base[SECTIONS_MAX]; /* first instruction in the text; -1: no code */
};

static void add_code(struct object *o, struct insn_text *t, size_t index, Elf_Scn *scn)
{
	Elf_Data *d = elf_getdata(scn, NULL);
	size_t cnt = d ? d->d_size / sizeof(struct bpf_insn) : 0;

	if (cnt == 0)
		return;
	t->insn = reallocarray(t->insn, t->cnt + cnt, sizeof(*t->insn));
	if (!t->insn)
		abort();
	memcpy(t->insn + t->cnt, d->d_buf, cnt * sizeof(*t->insn));
	o->base[index] = (long)t->cnt;
	t->cnt += cnt;
}

static void read_sections(struct object *o, struct insn_text *t)
{
	Elf_Scn *scn = NULL;

	for (size_t i = 0; i < SECTIONS_MAX; i++)
		o->base[i] = -1;
	while ((scn = elf_nextscn(o->elf, scn))) {
		size_t index = elf_ndxscn(scn);
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || index >= SECTIONS_MAX)
			continue;
		if (sh.sh_type == SHT_SYMTAB) {
			o->symbols = elf_getdata(scn, NULL);
			o->symbol_cnt = sh.sh_size / sh.sh_entsize;
		} else if (sh.sh_type == SHT_PROGBITS && (sh.sh_flags & SHF_EXECINSTR)) {
			add_code(o, t, index, scn);
		}
	}
}

/*
 * Calls and addresses in code that the linker has to complete (libbpf, bpf_object__relocate_calls):
 * a call holds the instructions from the symbol to its target, less one; an address bytes.
 */
static void relocate(struct object *o, struct insn_text *t, size_t at, const GElf_Sym *sym)
{
	struct bpf_insn *insn = &t->insn[at];
	long to;

	if (sym->st_shndx >= SECTIONS_MAX || o->base[sym->st_shndx] < 0)
		return;
	to = o->base[sym->st_shndx] + (long)(sym->st_value / sizeof(*insn));
	if (insn->code == CALL) {
		to += insn->imm + 1;
	} else if (insn->code == LD_IMM64) {
		to += insn->imm / (int)sizeof(*insn);
		insn->src_reg = BPF_PSEUDO_FUNC;
	} else {
		return;
	}
	insn->imm = (int)(to - (long)at - 1);
}

static void apply_relocations(struct object *o, struct insn_text *t)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(o->elf, scn))) {
		Elf_Data *d;
		GElf_Shdr sh;
		GElf_Rel rel;
		GElf_Sym sym;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_REL ||
		    sh.sh_info >= SECTIONS_MAX || o->base[sh.sh_info] < 0)
			continue;
		d = elf_getdata(scn, NULL);
		for (int i = 0; d && gelf_getrel(d, i, &rel); i++) {
			if (gelf_getsym(o->symbols, (int)GELF_R_SYM(rel.r_info), &sym))
				relocate(o, t,
					 (size_t)o->base[sh.sh_info] +
						 rel.r_offset / sizeof(struct bpf_insn),
					 &sym);
		}
	}
}

static int ascending(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

/* Functions begin where symbols, calls and callbacks say. */
static void find_starts(struct object *o, struct insn_text *t)
{
	size_t n = 0, unique = 0, *s = calloc(t->cnt + o->symbol_cnt + 1, sizeof(*s));

	if (!s)
		abort();
	for (size_t i = 0; i < o->symbol_cnt; i++) {
		GElf_Sym sym;

		if (gelf_getsym(o->symbols, (int)i, &sym) &&
		    GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_shndx < SECTIONS_MAX &&
		    o->base[sym.st_shndx] >= 0)
			s[n++] = (size_t)o->base[sym.st_shndx] +
				 sym.st_value / sizeof(struct bpf_insn);
	}
	for (size_t i = 0; i < t->cnt; i++) {
		if (is_subprog_call(&t->insn[i]) || is_func_address(&t->insn[i]))
			s[n++] = target_of(t, i);
	}
	qsort(s, n, sizeof(*s), ascending);
	for (size_t i = 0; i < n; i++) {
		if (unique == 0 || s[unique - 1] != s[i])
			s[unique++] = s[i];
	}
	t->start = s;
	t->start_cnt = unique;
}

int insn_text_read(const char *path, struct insn_text *t)
{
	struct object o = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = -1;

	*t = (struct insn_text){0};
	elf_version(EV_CURRENT);
	o.elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ, NULL);
	if (o.elf) {
		read_sections(&o, t);
		if (o.symbols) {
			apply_relocations(&o, t);
			find_starts(&o, t);
			err = 0;
		}
		elf_end(o.elf);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

void insn_text_free(struct insn_text *t)
{
	free(t->insn);
	free(t->start);
	*t = (struct insn_text){0};
}
