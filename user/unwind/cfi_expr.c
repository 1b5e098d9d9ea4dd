/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opcodes: DWARF 5, 7.7.1. */
#include "cfi_expr.h"
#include "arch_x86.h"

#include <dwarf.h>

#define STACK_MAX 8

struct stack {
	struct cfi_value v[STACK_MAX];
	int cnt;
};

static int push(struct stack *s, enum cfi_value_kind kind, uint64_t reg, int64_t off)
{
	if (s->cnt == STACK_MAX || reg >= ARCH_REG_CNT)
		return -1;
	s->v[s->cnt++] = (struct cfi_value){.kind = kind, .reg = (uint8_t)reg, .off = off};
	return 0;
}

static int push_const(struct stack *s, uint64_t value)
{
	return push(s, CFI_VALUE_CONST, 0, (int64_t)value);
}

/* Adds modulo 2^64, as DWARF has it. */
static int add(struct cfi_value *v, int64_t n)
{
	int64_t *to = v->kind == CFI_VALUE_DEREF ? &v->add : &v->off;

	if (v->kind == CFI_VALUE_PLT)
		return -1;
	*to = (int64_t)((uint64_t)*to + (uint64_t)n);
	return 0;
}

/* One of the two must be a constant; it is the right one for minus. */
static int combine(struct stack *s, bool minus)
{
	struct cfi_value *left, *right, swapped;

	if (s->cnt < 2)
		return -1;
	left = &s->v[s->cnt - 2];
	right = &s->v[--s->cnt];
	if (right->kind != CFI_VALUE_CONST) {
		if (minus || left->kind != CFI_VALUE_CONST)
			return -1;
		swapped = *left;
		*left = *right;
		*right = swapped;
	}
	return add(left, minus ? (int64_t) - (uint64_t)right->off : right->off);
}

static int deref(struct stack *s)
{
	if (!s->cnt || s->v[s->cnt - 1].kind != CFI_VALUE_REG)
		return -1;
	s->v[s->cnt - 1].kind = CFI_VALUE_DEREF;
	return 0;
}

/*
 * The tail of what linkers say about .plt, whose entries are 16 bytes and push one word half
 * way through: rsp + 8 + ((rip & 15) >= N) << 3. The first opcode has been read.
 */
static int plt_tail(struct cfi_cursor *ops, struct stack *s)
{
	static const uint8_t before[] = {0, DW_OP_lit15, DW_OP_and};
	static const uint8_t behind[] = {DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};
	const uint8_t *p = ops->p;
	struct cfi_value *v = &s->v[s->cnt - 1];
	uint8_t threshold;

	if (s->cnt != 1 || v->kind != CFI_VALUE_REG)
		return -1;
	if (cfi_left(ops) != sizeof(before) + 1 + sizeof(behind) ||
	    memcmp(p, before, sizeof(before)) != 0 ||
	    memcmp(p + sizeof(before) + 1, behind, sizeof(behind)) != 0)
		return -1;
	threshold = p[sizeof(before)];
	if (threshold < DW_OP_lit0 || threshold > DW_OP_lit15)
		return -1;
	v->kind = CFI_VALUE_PLT;
	v->add = threshold - DW_OP_lit0;
	ops->p = ops->end;
	return 0;
}

static int push_constant(struct cfi_cursor *ops, uint8_t op, struct stack *s)
{
	switch (op) {
	case DW_OP_const1u:
		return push_const(s, cfi_u8(ops));
	case DW_OP_const1s:
		return push_const(s, (uint64_t)(int8_t)cfi_u8(ops));
	case DW_OP_const2u:
		return push_const(s, cfi_u16(ops));
	case DW_OP_const2s:
		return push_const(s, (uint64_t)(int16_t)cfi_u16(ops));
	case DW_OP_const4u:
		return push_const(s, cfi_u32(ops));
	case DW_OP_const4s:
		return push_const(s, (uint64_t)(int32_t)cfi_u32(ops));
	case DW_OP_const8u:
	case DW_OP_const8s:
		return push_const(s, cfi_u64(ops));
	case DW_OP_constu:
		return push_const(s, cfi_uleb(ops));
	case DW_OP_consts:
		return push_const(s, (uint64_t)cfi_sleb(ops));
	default:
		return -1;
	}
}

static int push_bregx(struct cfi_cursor *ops, struct stack *s)
{
	uint64_t reg = cfi_uleb(ops);

	return push(s, CFI_VALUE_REG, reg, cfi_sleb(ops));
}

static int run_op(struct cfi_cursor *ops, uint8_t op, struct stack *s)
{
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return push_const(s, op - DW_OP_lit0);
	if (op == DW_OP_breg0 + ARCH_REG_RA && s->cnt)
		return plt_tail(ops, s);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return push(s, CFI_VALUE_REG, op - DW_OP_breg0, cfi_sleb(ops));
	switch (op) {
	case DW_OP_bregx:
		return push_bregx(ops, s);
	case DW_OP_deref:
		return deref(s);
	case DW_OP_plus_uconst:
		return s->cnt ? add(&s->v[s->cnt - 1], (int64_t)cfi_uleb(ops)) : -1;
	case DW_OP_plus:
		return combine(s, false);
	case DW_OP_minus:
		return combine(s, true);
	case DW_OP_drop:
		return s->cnt && s->cnt-- ? 0 : -1;
	case DW_OP_nop:
		return 0;
	default:
		return push_constant(ops, op, s);
	}
}

int cfi_expr(struct cfi_cursor ops, bool with_cfa, struct cfi_value *out)
{
	struct stack s = {.cnt = 0};

	if (with_cfa)
		push(&s, CFI_VALUE_CFA, 0, 0);
	while (ops.p < ops.end) {
		uint8_t op = cfi_u8(&ops);

		if (run_op(&ops, op, &s) || ops.bad)
			return -1;
	}
	if (!s.cnt)
		return -1;
	*out = s.v[s.cnt - 1];
	return 0;
}
