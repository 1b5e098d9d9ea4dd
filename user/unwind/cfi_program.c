/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Instructions: DWARF 5, 6.4.2 and 7.24; the GNU ones as the LSB describes them. */
#include "cfi_program.h"
#include "cfi_expr.h"

#include <dwarf.h>

/* Instructions whose operand is in the opcode: which, and how much of it. */
#define OPCODE(op)  ((op)&0xc0)
#define OPERAND(op) ((op)&0x3f)

int cfi_encoded(struct cfi_cursor *c, uint8_t encoding, uint64_t *out)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*out = cfi_u64(c);
		break;
	case DW_EH_PE_uleb128:
		*out = cfi_uleb(c);
		break;
	case DW_EH_PE_sleb128:
		*out = (uint64_t)cfi_sleb(c);
		break;
	case DW_EH_PE_udata2:
		*out = cfi_u16(c);
		break;
	case DW_EH_PE_sdata2:
		*out = (uint64_t)(int16_t)cfi_u16(c);
		break;
	case DW_EH_PE_udata4:
		*out = cfi_u32(c);
		break;
	case DW_EH_PE_sdata4:
		*out = (uint64_t)(int32_t)cfi_u32(c);
		break;
	default:
		return -1;
	}
	return c->bad ? -1 : 0;
}

int cfi_pointer(struct cfi_cursor *c, uint8_t encoding, const struct cfi_pointers *p, uint64_t *out)
{
	uint64_t at = p->vaddr + (uint64_t)(c->p - p->bytes);

	if (cfi_encoded(c, encoding, out))
		return -1;
	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr:
		return 0;
	case DW_EH_PE_pcrel:
		*out += at;
		return 0;
	default:
		return -1;
	}
}

static void set_slot(struct cfi_state *s, int slot, enum cfi_how how, uint64_t reg, int64_t off)
{
	if (slot == SLOT_NONE)
		return;
	if (off == (int32_t)off && reg < ARCH_REG_CNT)
		cfi_set_slot(s, slot, how, (uint8_t)reg, (int32_t)off);
	else
		cfi_set_slot(s, slot, CFI_ODD, 0, 0);
}

/* CFA = reg + off, if a row can say it. */
static void place_cfa(struct cfi_state *s, uint64_t reg, int64_t off)
{
	bool fits = off == (int32_t)off && reg < ARCH_REG_CNT;

	s->cfa = fits ? VP_CFA_REG : VP_CFA_NONE;
	s->cfa_reg = fits ? (uint8_t)reg : 0;
	s->cfa_off = fits ? (int32_t)off : 0;
	s->cfa_add = 0;
}

static void set_cfa(struct cfi_state *s, uint64_t reg, int64_t off)
{
	place_cfa(s, reg, off);
	s->cfa_plain_off = off;
}

/* A product that does not fit is as large as can be, which no row can say. */
static int64_t scaled(const struct cfi_run *r, int64_t n)
{
	int64_t product;

	return __builtin_mul_overflow(n, r->cie->data_align, &product) ? INT64_MAX : product;
}

/* An offset that was read as unsigned. */
static int64_t scaled_u(const struct cfi_run *r, uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : scaled(r, (int64_t)n);
}

static int64_t scaled_negative(const struct cfi_run *r, uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : scaled(r, -(int64_t)n);
}

static void advance(struct cfi_run *r, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, r->cie->code_align, &bytes) || bytes > r->len - r->to)
		bytes = r->len - r->to;
	r->to += bytes;
}

static int set_location(struct cfi_run *r)
{
	uint64_t vaddr;

	if (cfi_pointer(&r->program, r->cie->encoding, r->pointers, &vaddr) ||
	    vaddr < r->vaddr + r->to)
		return -1;
	r->to = vaddr - r->vaddr < r->len ? vaddr - r->vaddr : r->len;
	return 0;
}

/* The block of bytes that an expression is. */
static struct cfi_cursor read_block(struct cfi_cursor *c)
{
	uint64_t size = cfi_uleb(c);
	struct cfi_cursor block = {.p = c->p, .end = c->p};

	cfi_skip(c, size);
	block.end = c->p;
	return block;
}

static void cfa_expression(struct cfi_run *r)
{
	static const uint8_t cfa_of[] = {
		[CFI_VALUE_REG] = VP_CFA_REG,
		[CFI_VALUE_DEREF] = VP_CFA_DEREF,
		[CFI_VALUE_PLT] = VP_CFA_PLT,
	};
	struct cfi_cursor ops = read_block(&r->program);
	struct cfi_state *s = &r->now;
	struct cfi_value v;

	s->cfa = VP_CFA_NONE;
	if (cfi_expr(ops, false, &v) || v.add != (int16_t)v.add)
		return;
	if (v.kind == CFI_VALUE_CONST || v.kind == CFI_VALUE_CFA)
		return;
	place_cfa(s, v.reg, v.off);
	if (s->cfa == VP_CFA_NONE)
		return;
	s->cfa = cfa_of[v.kind];
	s->cfa_add = (int16_t)v.add;
}

/* The register is in memory at (or, is_value, is itself) what the expression says. */
static void register_expression(struct cfi_run *r, bool is_value)
{
	static const uint8_t how_of[][2] = {
		[CFI_VALUE_CONST] = {CFI_ODD, CFI_ODD},
		[CFI_VALUE_REG] = {CFI_AT_REG, CFI_IS_REG},
		[CFI_VALUE_CFA] = {CFI_AT_CFA, CFI_IS_CFA},
		[CFI_VALUE_DEREF] = {CFI_ODD, CFI_ODD},
		[CFI_VALUE_PLT] = {CFI_ODD, CFI_ODD},
	};
	int slot = arch_slot(cfi_uleb(&r->program));
	struct cfi_cursor ops = read_block(&r->program);
	struct cfi_value v;

	if (slot == SLOT_NONE)
		return;
	if (cfi_expr(ops, true, &v))
		v = (struct cfi_value){.kind = CFI_VALUE_CONST};
	set_slot(&r->now, slot, how_of[v.kind][is_value], v.reg, v.off);
}

static int remember(struct cfi_run *r)
{
	if (r->remembered_cnt == CFI_REMEMBER_MAX)
		return -1;
	r->remembered[r->remembered_cnt++] = r->now;
	return 0;
}

static int recall(struct cfi_run *r)
{
	if (!r->remembered_cnt)
		return -1;
	r->now = r->remembered[--r->remembered_cnt];
	return 0;
}

/* Back to what the CIE says. */
static int restore(struct cfi_run *r, uint64_t reg)
{
	int slot = arch_slot(reg);

	if (r->in_cie)
		return -1;
	if (slot != SLOT_NONE)
		cfi_copy_slot(&r->now, slot, &r->cie->initial);
	return 0;
}

static void saved_at_cfa(struct cfi_run *r, uint64_t reg, int64_t off)
{
	set_slot(&r->now, arch_slot(reg), CFI_AT_CFA, 0, off);
}

/*
 * Half of a CFA that is register + offset. While it is an expression, DWARF allows neither, but
 * libgcrypt's Keccak ends such a stretch by naming just the register: as libgcc has it, the
 * offset from before is meant then.
 */
static void change_cfa_register(struct cfi_run *r, uint64_t reg)
{
	set_cfa(&r->now, reg, r->now.cfa_plain_off);
}

static void change_cfa_offset(struct cfi_run *r, int64_t off)
{
	if (r->now.cfa == VP_CFA_REG)
		set_cfa(&r->now, r->now.cfa_reg, off);
	r->now.cfa_plain_off = off;
}

static int cfa_op(struct cfi_run *r, uint8_t op)
{
	struct cfi_cursor *c = &r->program;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_uleb(c);
		set_cfa(&r->now, reg, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(c);
		set_cfa(&r->now, reg, scaled(r, cfi_sleb(c)));
		return 0;
	case DW_CFA_def_cfa_register:
		change_cfa_register(r, cfi_uleb(c));
		return 0;
	case DW_CFA_def_cfa_offset:
		change_cfa_offset(r, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa_offset(r, scaled(r, cfi_sleb(c)));
		return 0;
	case DW_CFA_def_cfa_expression:
		cfa_expression(r);
		return 0;
	default:
		return -1;
	}
}

/* Instructions with a register and what its rule is. */
static int register_op(struct cfi_run *r, uint8_t op)
{
	struct cfi_cursor *c = &r->program;
	uint64_t reg = cfi_uleb(c);

	switch (op) {
	case DW_CFA_offset_extended:
		saved_at_cfa(r, reg, scaled_u(r, cfi_uleb(c)));
		return 0;
	case DW_CFA_offset_extended_sf:
		saved_at_cfa(r, reg, scaled(r, cfi_sleb(c)));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		saved_at_cfa(r, reg, scaled_negative(r, cfi_uleb(c)));
		return 0;
	case DW_CFA_val_offset:
		set_slot(&r->now, arch_slot(reg), CFI_IS_CFA, 0, scaled_u(r, cfi_uleb(c)));
		return 0;
	case DW_CFA_val_offset_sf:
		set_slot(&r->now, arch_slot(reg), CFI_IS_CFA, 0, scaled(r, cfi_sleb(c)));
		return 0;
	case DW_CFA_register:
		set_slot(&r->now, arch_slot(reg), CFI_IS_REG, cfi_uleb(c), 0);
		return 0;
	case DW_CFA_undefined:
		set_slot(&r->now, arch_slot(reg), CFI_UNDEFINED, 0, 0);
		return 0;
	case DW_CFA_same_value:
		set_slot(&r->now, arch_slot(reg), CFI_SAME, 0, 0);
		return 0;
	case DW_CFA_restore_extended:
		return restore(r, reg);
	default:
		return -1;
	}
}

static int advance_op(struct cfi_run *r, uint8_t op)
{
	struct cfi_cursor *c = &r->program;

	if (r->in_cie)
		return -1;
	switch (op) {
	case DW_CFA_advance_loc1:
		advance(r, cfi_u8(c));
		return 0;
	case DW_CFA_advance_loc2:
		advance(r, cfi_u16(c));
		return 0;
	case DW_CFA_advance_loc4:
		advance(r, cfi_u32(c));
		return 0;
	case DW_CFA_MIPS_advance_loc8:
		advance(r, cfi_u64(c));
		return 0;
	case DW_CFA_set_loc:
		return set_location(r);
	default:
		return -1;
	}
}

static int other_op(struct cfi_run *r, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_remember_state:
		return remember(r);
	case DW_CFA_restore_state:
		return recall(r);
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		register_expression(r, op == DW_CFA_val_expression);
		return 0;
	case DW_CFA_GNU_args_size:
		cfi_uleb(&r->program);
		return 0;
	case DW_CFA_set_loc:
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
	case DW_CFA_MIPS_advance_loc8:
		return advance_op(r, op);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return cfa_op(r, op);
	default:
		return register_op(r, op);
	}
}

/* One instruction. 0 or -1. */
static int run_one(struct cfi_run *r)
{
	uint8_t op = *r->program.p++;

	switch (OPCODE(op)) {
	case DW_CFA_advance_loc:
		if (r->in_cie)
			return -1;
		advance(r, OPERAND(op));
		return 0;
	case DW_CFA_offset:
		saved_at_cfa(r, OPERAND(op), scaled_u(r, cfi_uleb(&r->program)));
		return 0;
	case DW_CFA_restore:
		return restore(r, OPERAND(op));
	default:
		return other_op(r, op);
	}
}

int cfi_run_next(struct cfi_run *r)
{
	r->from = r->to;
	if (r->from >= r->len)
		return 0;
	while (r->program.p < r->program.end) {
		if (run_one(r) || r->program.bad)
			return -1;
		if (r->to != r->from)
			return 1;
	}
	r->to = r->len;
	return 1;
}

int cfi_run_initial(struct cfi_cie *cie, struct cfi_cursor program)
{
	struct cfi_run r;

	r.cie = cie;
	r.program = program;
	r.in_cie = true;
	r.remembered_cnt = 0;
	cfi_state_init(&r.now);
	while (r.program.p < r.program.end) {
		if (run_one(&r) || r.program.bad)
			return -1;
	}
	cie->initial = r.now;
	return 0;
}
