/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What cannot be compared, and is only counted after a check that rows really cannot say it:
 *
 *   registers that are lost: they are in another register, are computed, or are in memory at an
 *   address that is not a multiple of 8 from the origin (CFA or base) of the row's offsets;
 *
 *   rows without a rule: the CFA is computed in a way no row has, the return address is neither in
 *   a register nor at a constant distance from CFA or base, or the stack pointer is not the CFA.
 */
#include "rows_oracle.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define REG_CNT	  17
#define REG_RBX	  3
#define REG_SP	  7
#define REG_RA	  16
#define STACK_MAX 32
#define WORLD_CNT 8
#define GAP_STEP  16

#define CODE_BYTES_MAX 80 /* of a piece of code that has rows without an FDE */

#define DESCRIBED_MAX 5
#define SEGMENTS_MAX  16

static const int slot_reg[VP_SAVED_CNT] = {6, 3, 12, 13, 14, 15, REG_RA};
static const char slot_name[VP_SAVED_CNT][4] = {"rbp", "rbx", "r12", "r13", "r14", "r15", "ra"};

struct segment {
	uint64_t offset, vaddr, size;
};

struct oracle {
	Elf *elf;
	Dwarf *dwarf;
	Dwarf_CFI *eh, *debug;
	struct segment segments[SEGMENTS_MAX];
	size_t segment_cnt;
	/* what the comparison is about */
	const struct vp_rows *rows;
	const char *name;
	FILE *report;
	int described_cnt;
	uint64_t from_code; /* pieces */
	struct rows_oracle_counts *c;
};

/* Where a register of the caller is. */
enum place_kind { SAME, UNDEFINED, IN_MEMORY, IN_REGISTER, A_VALUE, UNKNOWN };

struct place {
	enum place_kind kind;
	uint64_t at; /* address, register, value */
};

/*
 * A thread that is interrupted at pc, made up. In several worlds all but the pc is different, so
 * what is the same in all of them is so by rule.
 */
struct world {
	uint64_t pc, number;
};

/* splitmix64: made-up registers and memory have nothing in common. */
static uint64_t made_up(const struct world *w, uint64_t x)
{
	x ^= w->number << 56;
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static uint64_t memory_at(const struct world *w, uint64_t address)
{
	return made_up(w, address);
}

static uint64_t register_value(const struct world *w, uint64_t reg)
{
	return reg == REG_RA ? w->pc : made_up(w, ~reg);
}

/* ---- libdw's answers ------------------------------------------------------------------------ */

struct machine {
	const struct world *w;
	uint64_t cfa;
	uint64_t stack[STACK_MAX];
	int cnt;
};

static bool push(struct machine *m, uint64_t v)
{
	if (m->cnt == STACK_MAX)
		return false;
	m->stack[m->cnt++] = v;
	return true;
}

static bool binary(struct machine *m, uint8_t atom)
{
	uint64_t b, *a;

	if (m->cnt < 2)
		return false;
	b = m->stack[--m->cnt];
	a = &m->stack[m->cnt - 1];
	switch (atom) {
	case DW_OP_plus:
		*a += b;
		return true;
	case DW_OP_minus:
		*a -= b;
		return true;
	case DW_OP_mul:
		*a *= b;
		return true;
	case DW_OP_and:
		*a &= b;
		return true;
	case DW_OP_shl:
		*a <<= b;
		return true;
	case DW_OP_ge:
		*a = (int64_t)*a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool is_constant(uint8_t atom)
{
	return atom >= DW_OP_const1u && atom <= DW_OP_consts;
}

static bool unary(struct machine *m, const Dwarf_Op *op)
{
	if (!m->cnt)
		return false;
	switch (op->atom) {
	case DW_OP_deref:
		m->stack[m->cnt - 1] = memory_at(m->w, m->stack[m->cnt - 1]);
		return true;
	case DW_OP_plus_uconst:
		m->stack[m->cnt - 1] += op->number;
		return true;
	case DW_OP_drop:
		m->cnt--;
		return true;
	default:
		return binary(m, op->atom);
	}
}

static bool run_op(struct machine *m, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(m, op->atom - DW_OP_lit0);
	if (is_constant(op->atom))
		return push(m, op->number);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push(m, register_value(m->w, op->atom - DW_OP_breg0) + op->number);
	if (op->atom == DW_OP_bregx)
		return push(m, register_value(m->w, op->number) + op->number2);
	if (op->atom == DW_OP_call_frame_cfa)
		return push(m, m->cfa);
	return op->atom == DW_OP_nop || unary(m, op);
}

/* An expression; false: beyond this little machine. */
static bool evaluate(const Dwarf_Op *ops, size_t cnt, const struct world *w, uint64_t cfa,
		     uint64_t *out)
{
	struct machine m = {.w = w, .cfa = cfa};

	for (size_t i = 0; i < cnt; i++) {
		if (!run_op(&m, &ops[i]))
			return false;
	}
	if (!m.cnt)
		return false;
	*out = m.stack[m.cnt - 1];
	return true;
}

static struct place their_place(Dwarf_Frame *frame, int reg, const struct world *w, uint64_t cfa)
{
	Dwarf_Op memory[3], *ops;
	struct place place = {.kind = UNKNOWN};
	size_t cnt;

	if (dwarf_frame_register(frame, reg, memory, &ops, &cnt))
		return place;
	if (!cnt)
		return (struct place){.kind = ops ? UNDEFINED : SAME};
	if (cnt == 1 && ops[0].atom == DW_OP_regx)
		return (struct place){.kind = IN_REGISTER, .at = ops[0].number};
	if (cnt == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return (struct place){.kind = IN_REGISTER, .at = ops[0].atom - DW_OP_reg0};
	place.kind = IN_MEMORY;
	if (ops[cnt - 1].atom == DW_OP_stack_value) {
		place.kind = A_VALUE;
		cnt--;
	}
	if (!evaluate(ops, cnt, w, cfa, &place.at))
		place.kind = UNKNOWN;
	return place;
}

/* ---- ours ----------------------------------------------------------------------------------- */

static uint64_t our_cfa(const struct vp_rule *r, const struct world *w)
{
	uint64_t at = register_value(w, r->reg) + (uint64_t)(int64_t)r->cfa_off;

	switch (r->cfa) {
	case VP_CFA_DEREF:
		return memory_at(w, at) + (uint64_t)(int64_t)r->cfa_add;
	case VP_CFA_PLT:
		return at + ((w->pc & 15) >= (uint64_t)r->cfa_add ? 8 : 0);
	default:
		return at;
	}
}

/* What the offset of a slot counts from. */
static uint64_t origin(const struct vp_rule *r, int slot, const struct world *w)
{
	uint8_t flag = slot == VP_SAVED_RA ? VP_RULE_F_RA_BASE : VP_RULE_F_SAVED_BASE;

	return r->flags & flag ? register_value(w, r->reg) : our_cfa(r, w);
}

static struct place our_place(const struct vp_rule *r, int slot, const struct world *w)
{
	int16_t saved = r->saved[slot];

	if (slot == VP_SAVED_RA && (r->flags & VP_RULE_F_RA_REG))
		return (struct place){.kind = IN_REGISTER, .at = r->ra_reg};
	if (saved == VP_SAVED_SAME)
		return (struct place){.kind = SAME};
	if (saved == VP_SAVED_LOST)
		return (struct place){.kind = UNDEFINED};
	return (struct place){
		.kind = IN_MEMORY,
		.at = origin(r, slot, w) + (uint64_t)(int64_t)saved * 8,
	};
}

/* ---- comparing ------------------------------------------------------------------------------ */

/* Can `at` be a row's offset from there? Made-up values are never near each other by accident. */
static bool is_near(uint64_t at, uint64_t from)
{
	int64_t distance = (int64_t)(at - from);

	return distance % 8 == 0 && distance / 8 >= INT16_MIN && distance / 8 < VP_SAVED_LOST;
}

static __attribute__((format(printf, 3, 4))) void differ(struct oracle *o, uint64_t pc,
							 const char *fmt, ...)
{
	va_list ap;

	o->c->differences++;
	if (o->described_cnt++ >= DESCRIBED_MAX)
		return;
	fprintf(o->report, "%s: 0x%" PRIx64 ": ", o->name, pc);
	va_start(ap, fmt);
	vfprintf(o->report, fmt, ap);
	va_end(ap);
	fputc('\n', o->report);
}

static bool their_cfa(Dwarf_Frame *frame, const struct world *w, uint64_t *cfa)
{
	Dwarf_Op *ops;
	size_t cnt;

	return !dwarf_frame_cfa(frame, &ops, &cnt) && cnt && evaluate(ops, cnt, w, 0, cfa);
}

static bool cfa_has_row_shape(Dwarf_Frame *frame, const struct world *w, uint64_t *base)
{
	Dwarf_Op *ops;
	size_t cnt;

	if (dwarf_frame_cfa(frame, &ops, &cnt) || !cnt)
		return false;
	if (ops[0].atom == DW_OP_bregx)
		*base = register_value(w, ops[0].number);
	else if (ops[0].atom >= DW_OP_breg0 && ops[0].atom < DW_OP_breg0 + REG_RA)
		*base = register_value(w, ops[0].atom - DW_OP_breg0);
	else
		return false;
	return cnt == 1 || (ops[1].atom == DW_OP_deref &&
			    (cnt == 2 || (cnt == 3 && ops[2].atom == DW_OP_plus_uconst)));
}

/* libdw has a rule, we have none: is it one that rows can say? */
static bool is_expressible(Dwarf_Frame *frame, const struct world *w)
{
	struct place sp, ra;
	uint64_t cfa, base;

	if (!their_cfa(frame, w, &cfa) || !cfa_has_row_shape(frame, w, &base))
		return false;
	sp = their_place(frame, REG_SP, w, cfa);
	if (sp.kind != A_VALUE && sp.kind != SAME && sp.kind != IN_MEMORY)
		return false;
	if ((sp.kind == A_VALUE && sp.at != cfa) ||
	    (sp.kind == IN_MEMORY && memory_at(w, sp.at) != cfa))
		return false;
	ra = their_place(frame, REG_RA, w, cfa);
	if (ra.kind == IN_MEMORY)
		return is_near(ra.at, cfa) || is_near(ra.at, base);
	return ra.kind == UNDEFINED || ra.kind == IN_REGISTER;
}

/*
 * Nothing said about a register that a function must keep means that it does. libdw knows that of
 * all but rbx: its table for the ABI has number 0 (rax) where rbx (3) is meant.
 */
static bool says_same(int slot, struct place theirs)
{
	if (theirs.kind == IN_REGISTER)
		return theirs.at == (uint64_t)slot_reg[slot];
	return theirs.kind == UNDEFINED && slot_reg[slot] == REG_RBX;
}

/*
 * May we call a register lost that libdw finds? Not if it is at an offset that the row could have;
 * where an address is rounded, it only looks so in some worlds.
 */
static bool may_be_lost(Dwarf_Frame *frame, const struct vp_rule *r, int slot, uint64_t pc)
{
	int64_t offset = 0, first = 0;

	for (struct world w = {.pc = pc}; w.number < WORLD_CNT; w.number++) {
		struct place theirs;
		uint64_t cfa;

		if (!their_cfa(frame, &w, &cfa))
			return false;
		theirs = their_place(frame, slot_reg[slot], &w, cfa);
		if (theirs.kind != IN_MEMORY)
			return theirs.kind != SAME;
		if (!is_near(theirs.at, origin(r, slot, &w)))
			return true;
		offset = (int64_t)(theirs.at - origin(r, slot, &w));
		if (!w.number)
			first = offset;
		else if (offset != first)
			return true;
	}
	return false;
}

static void compare_slot(struct oracle *o, const struct vp_rule *r, int slot, Dwarf_Frame *frame,
			 const struct world *w, uint64_t cfa)
{
	struct place theirs = their_place(frame, slot_reg[slot], w, cfa);
	struct place ours = our_place(r, slot, w);

	if (ours.kind == theirs.kind && ours.at == theirs.at)
		return;
	if (ours.kind == SAME && says_same(slot, theirs))
		return;
	if (ours.kind == UNDEFINED && may_be_lost(frame, r, slot, w->pc)) {
		o->c->lost++;
		return;
	}
	differ(o, w->pc, "%s: kind %d at %" PRIx64 ", libdw: kind %d at %" PRIx64, slot_name[slot],
	       ours.kind, ours.at, theirs.kind, theirs.at);
}

static void compare_frame(struct oracle *o, const struct vp_rule *r, Dwarf_Frame *frame,
			  const struct world *w, bool is_signal_frame)
{
	uint64_t theirs = 0;

	if (r->cfa == VP_CFA_END) {
		if (their_place(frame, REG_RA, w, 0).kind != UNDEFINED)
			differ(o, w->pc, "an end that is none to libdw");
		return;
	}
	if (!their_cfa(frame, w, &theirs) || theirs != our_cfa(r, w))
		differ(o, w->pc, "CFA %" PRIx64 ", libdw: %" PRIx64, our_cfa(r, w), theirs);
	if (is_signal_frame != !!(r->flags & VP_RULE_F_SIGNAL))
		differ(o, w->pc, "a signal frame only to one of us");
	for (int slot = 0; slot < VP_SAVED_CNT; slot++)
		compare_slot(o, r, slot, frame, w, theirs);
}

static Dwarf_Frame *find_frame(const struct oracle *o, uint64_t pc)
{
	Dwarf_Frame *frame;

	if (o->eh && !dwarf_cfi_addrframe(o->eh, pc, &frame))
		return frame;
	if (o->debug && !dwarf_cfi_addrframe(o->debug, pc, &frame))
		return frame;
	return NULL;
}

/*
 * libdw does not look at code. What code_rows.h tells of it are plain rows and, of each file, no
 * more pieces than it says.
 */
static bool is_from_code(struct oracle *o, const struct vp_rule *r)
{
	const uint64_t most = o->rows->stats.from_code_cnt * CODE_BYTES_MAX / GAP_STEP;

	const bool plain =
		r->cfa == VP_CFA_REG && r->reg == REG_SP && (r->cfa_off == 8 || r->cfa_off == 16);

	return (plain || r->cfa == VP_CFA_END || r->cfa == VP_CFA_CLONE) && ++o->from_code <= most;
}

/* The end of libdw's row; pc if it has none there. r NULL: none of ours. */
static uint64_t compare_at(struct oracle *o, const struct vp_rule *r, uint64_t pc)
{
	Dwarf_Frame *frame = find_frame(o, pc);
	struct world w = {.pc = pc};
	Dwarf_Addr start, end;
	bool is_signal_frame;

	o->c->pieces++;
	if (!frame) {
		if (r && r->cfa != VP_CFA_NONE && !is_from_code(o, r))
			differ(o, pc, "a rule where libdw has none: %s", dwarf_errmsg(-1));
		return pc;
	}
	dwarf_frame_info(frame, &start, &end, &is_signal_frame);
	if (r && r->cfa != VP_CFA_NONE)
		compare_frame(o, r, frame, &w, is_signal_frame);
	else if (is_expressible(frame, &w))
		differ(o, pc, "no rule where libdw has one");
	else
		o->c->none++;
	free(frame);
	return end > pc ? end : pc + 1;
}

/*
 * The next address to look at. libdw tells no end of a gap; functions begin at multiples of
 * GAP_STEP, nearly always.
 */
static uint64_t next_pc(struct oracle *o, const struct vp_rule *r, uint64_t pc, uint64_t end)
{
	uint64_t next = compare_at(o, r, pc);

	if (next > pc)
		return next;
	next = pc - pc % GAP_STEP + GAP_STEP;
	return pc < end - 1 && next > end - 1 ? end - 1 : next;
}

/* [first, end) in keys; all of it is one row of ours. */
static void compare_row(struct oracle *o, const struct vp_rule *r, uint32_t first, uint32_t end)
{
	for (size_t i = 0; i < o->segment_cnt; i++) {
		const struct segment *s = &o->segments[i];
		uint64_t from = o->rows->base + first, to = o->rows->base + end;

		from = from > s->offset ? from : s->offset;
		to = to < s->offset + s->size ? to : s->offset + s->size;
		if (from >= to)
			continue;
		from += s->vaddr - s->offset;
		to += s->vaddr - s->offset;
		for (uint64_t pc = from; pc < to;)
			pc = next_pc(o, r, pc, to);
	}
}

static void compare_all(struct oracle *o)
{
	const struct vp_rows *rows = o->rows;

	if (rows->key[0])
		compare_row(o, NULL, 0, rows->key[0]);
	for (uint32_t i = 0; i < rows->cnt; i++) {
		uint32_t end = i + 1 < rows->cnt ? rows->key[i + 1] : rows->span;

		o->c->rows++;
		compare_row(o, &rows->rules[rows->rule[i]], rows->key[i], end);
	}
}

static void read_segments(struct oracle *o)
{
	size_t cnt = 0;

	elf_getphdrnum(o->elf, &cnt);
	for (size_t i = 0; i < cnt && o->segment_cnt < SEGMENTS_MAX; i++) {
		GElf_Phdr p;

		if (gelf_getphdr(o->elf, (int)i, &p) && p.p_type == PT_LOAD && (p.p_flags & PF_X) &&
		    p.p_filesz)
			o->segments[o->segment_cnt++] =
				(struct segment){p.p_offset, p.p_vaddr, p.p_filesz};
	}
}

int rows_oracle_compare(const struct vp_rows *rows, int fd, const char *name, FILE *report,
			struct rows_oracle_counts *c)
{
	struct oracle o = {.rows = rows, .name = name, .report = report, .c = c};

	elf_version(EV_CURRENT);
	o.elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!o.elf)
		return -1;
	read_segments(&o);
	o.eh = dwarf_getcfi_elf(o.elf);
	o.dwarf = dwarf_begin_elf(o.elf, DWARF_C_READ, NULL);
	if (o.dwarf)
		o.debug = dwarf_getcfi(o.dwarf);
	if (o.eh || o.debug)
		compare_all(&o);
	dwarf_cfi_end(o.eh);
	dwarf_end(o.dwarf);
	elf_end(o.elf);
	return o.eh || o.debug ? 0 : -1;
}
