/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the unwinder makes of rules, on stacks made by hand. */
#include "scene.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static struct recorder r = {.mode = VP_UNWIND_INLINE, .call_graph = VP_CALL_GRAPH_AUTO};

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(unwind_rules, .fini = tear_down, .timeout = 60);

static void set_deferred(void)
{
	recorder_defer(&r);
}

TestSuite(unwind_rules_deferred, .init = set_deferred, .fini = tear_down, .timeout = 60);

/* ---- rules that say how it is --------------------------------------------------------------- */

#define BY(r, off)                                                                                 \
	{                                                                                          \
		.cfa = VP_CFA_REG, .reg = (r), .cfa_off = (off), ALL_SAME                          \
	}
#define OUTERMOST                                                                                  \
	{                                                                                          \
		.cfa = VP_CFA_END                                                                  \
	}

static const struct scene said[] = {
	{
		.name = "rsp",
		.rule = {BY(RSP, 8), BY(RSP, 24), OUTERMOST},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1), 1, 2, RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbp, saved right below the return address",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RBP,
			  .cfa_off = 16,
			  SAVED(-2, SAME, SAME, SAME, SAME, SAME, -1)},
			 {.cfa = VP_CFA_REG,
			  .reg = RBP,
			  .cfa_off = 16,
			  SAVED(-2, SAME, SAME, SAME, SAME, SAME, -1)},
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[4] = AT(8), RET(1), [8] = 1, RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbp, saved elsewhere",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 40,
			  SAVED(-4, SAME, SAME, SAME, SAME, SAME, -1)},
			 BY(RBP, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = 1},
		.word = {0, AT(9), 2, 3, RET(1), [10] = RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbx",
		.rule = {BY(RBX, 16), OUTERMOST},
		.reg = {[RSP] = AT(0), [RBX] = AT(3)},
		.word = {[4] = RET(1)},
		.chain = {RET(1)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "r12, below it",
		.rule = {BY(R12, -16), OUTERMOST},
		.reg = {[RSP] = AT(0), [R12] = AT(6)},
		.word = {[3] = RET(1)},
		.chain = {RET(1)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rax in the leaf and its caller, and not further",
		.rule = {BY(RAX, 16), BY(RAX, 32), BY(RAX, 48)},
		.reg = {[RSP] = AT(0), [RAX] = AT(3)},
		.word = {[4] = RET(1), [6] = RET(2), [8] = RET(3)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "memory",
		.rule = {{.cfa = VP_CFA_DEREF, .reg = RBP, .cfa_off = -8, ALL_SAME},
			 {.cfa = VP_CFA_DEREF, .reg = RSP, .cfa_off = 8, .cfa_add = 16, ALL_SAME},
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[3] = AT(12), [11] = RET(1), [13] = AT(20), [21] = RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "first half of a PLT entry",
		.rule = {{.cfa = VP_CFA_PLT, .reg = RSP, .cfa_off = 8, .cfa_add = 8, ALL_SAME},
			 OUTERMOST},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1), RET(2)},
		.chain = {RET(1)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "second half of a PLT entry",
		.rule = {{.cfa = VP_CFA_PLT, .reg = RSP, .cfa_off = 8, .cfa_add = 8, ALL_SAME},
			 OUTERMOST,
			 OUTERMOST},
		.leaf = 8,
		.reg = {[RSP] = AT(0)},
		.word = {RET(1), RET(2)},
		.chain = {RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "the outermost frame alone",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1)},
		.end = VP_END_BOTTOM,
	},
	{
		/* function 1 has a rule, too: the interrupted pc is 2's first byte, not a return's */
		.name = "a signal, on a stack above its own",
		.rule = {BY(RSP, 8),
			 {.cfa = VP_CFA_DEREF,
			  .reg = RSP,
			  .cfa_off = 16,
			  SAVED(3, 4, SAME, SAME, SAME, SAME, 5),
			  .flags = VP_RULE_F_SIGNAL | VP_RULE_F_SAVED_BASE | VP_RULE_F_RA_BASE},
			 BY(RBX, 16),
			 {.cfa = VP_CFA_REG,
			  .reg = RBP,
			  .cfa_off = 16,
			  SAVED(-2, SAME, SAME, SAME, SAME, SAME, -1)},
			 OUTERMOST},
		.reg = {[RSP] = AT(20)},
		.word = {[3] = RET(3),
			 [6] = 0,
			 RET(4),
			 [20] = RET(1),
			 [23] = AT(1),
			 AT(6),
			 AT(2),
			 START(2)},
		.chain = {RET(1), START(2), RET(3), RET(4)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "the return address in a register",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .ra_reg = R11,
			  .flags = VP_RULE_F_RA_REG,
			  ALL_SAME},
			 {.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 8,
			  .ra_reg = R12,
			  .flags = VP_RULE_F_RA_REG,
			  ALL_SAME},
			 BY(RSP, 8),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [R11] = RET(1), [R12] = RET(2)},
		.word = {1, RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "registers saved where another one points",
		.rule = {{.cfa = VP_CFA_DEREF,
			  .reg = RBP,
			  .cfa_off = -8,
			  SAVED(0, -2, SAME, SAME, SAME, SAME, -1),
			  .flags = VP_RULE_F_SAVED_BASE},
			 BY(RBX, 16),
			 BY(RBP, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(8), [RBX] = 1},
		.word = {[6] = AT(20), AT(14), AT(24), [13] = RET(1), [21] = RET(2), [25] = RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "the return address where another register points",
		.rule = {{.cfa = VP_CFA_DEREF,
			  .reg = RBP,
			  .cfa_off = -8,
			  SAVED(-2, SAME, SAME, SAME, SAME, SAME, 1),
			  .flags = VP_RULE_F_RA_BASE},
			 BY(RBP, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(8)},
		.word = {[7] = AT(14), 1, RET(1), [12] = AT(20), [21] = RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbx, needed two frames later",
		.rule = {BY(RSP, 8), BY(RSP, 16), BY(RBX, 16), OUTERMOST},
		.reg = {[RSP] = AT(0), [RBX] = AT(10)},
		.word = {RET(1), 1, RET(2), [11] = RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbx, saved, kept, and needed",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 24,
			  SAVED(SAME, -2, SAME, SAME, SAME, SAME, -1)},
			 BY(RSP, 8),
			 BY(RBX, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBX] = 1},
		.word = {1, AT(10), RET(1), RET(2), [11] = RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbx, saved twice: the outer one counts",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 16,
			  SAVED(SAME, -2, SAME, SAME, SAME, SAME, -1)},
			 {.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 16,
			  SAVED(SAME, -2, SAME, SAME, SAME, SAME, -1)},
			 BY(RBX, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBX] = 1},
		.word = {AT(6), RET(1), AT(10), RET(2), [7] = RET(4), [11] = RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbx, lost",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 8,
			  SAVED(SAME, LOST, SAME, SAME, SAME, SAME, -1)},
			 BY(RSP, 8),
			 BY(RBX, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBX] = AT(10)},
		.word = {RET(1), RET(2), [11] = RET(3)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "rbx, lost and found",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 8,
			  SAVED(SAME, LOST, SAME, SAME, SAME, SAME, -1)},
			 {.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 16,
			  SAVED(SAME, -2, SAME, SAME, SAME, SAME, -1)},
			 BY(RBX, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0), [RBX] = 1},
		.word = {RET(1), AT(10), RET(2), [11] = RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "all six registers, each needed once",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 56,
			  SAVED(-2, -3, -4, -5, -6, -7, -1)},
			 BY(RBX, 16),
			 BY(R12, 16),
			 BY(R13, 16),
			 BY(R14, 16),
			 BY(R15, 16),
			 BY(RBP, 16),
			 OUTERMOST},
		.reg = {[RSP] = AT(0)},
		.word = {AT(48), AT(40), AT(32), AT(24), AT(16), AT(56), RET(1), [17] = RET(2),
			 [25] = RET(3), [33] = RET(4), [41] = RET(5), [49] = RET(6), [57] = RET(7)},
		.chain = {RET(1), RET(2), RET(3), RET(4), RET(5), RET(6), RET(7)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "a register saved in memory that is none, and not needed",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 8,
			  SAVED(SAME, -1000, SAME, SAME, SAME, SAME, -1)},
			 BY(RSP, 8),
			 OUTERMOST},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1), RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "a return address of 0",
		.rule = {BY(RSP, 8), BY(RSP, 8)},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1), 0},
		.chain = {RET(1)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "a return address that is no code",
		.rule = {BY(RSP, 8), BY(RSP, 8)},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1), AT(3)},
		.chain = {RET(1), AT(3)},
		.end = VP_END_UNKNOWN_PC,
	},
	{
		.name = "a frame pointer where there is no rule, and a rule again",
		.rule = {{0}, BY(RSP, 8), BY(RBP, 16), OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[4] = AT(10), RET(1), RET(2), [11] = RET(3)},
		.chain = {RET(1), RET(2), RET(3)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "rbx, not known behind a frame pointer",
		.rule = {{0}, BY(RBX, 16), OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4), [RBX] = AT(10)},
		.word = {[4] = AT(10), RET(1), [11] = RET(2)},
		.chain = {RET(1)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "a frame pointer that finds no code",
		.rule = {BY(RSP, 8), {0}},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {RET(1), [4] = AT(10), 4711},
		.chain = {RET(1)},
		.end = VP_END_NO_ROW,
	},
};

#define SAID_CNT (sizeof(said) / sizeof(said[0]))

/* ---- rules that lie ------------------------------------------------------------------------- */

#define KERNEL_ADDRESS 0xffff888000001000ULL

static const struct scene lies[] = {
	{
		.name = "a CFA that goes nowhere",
		.rule = {BY(RSP, 0)},
		.reg = {[RSP] = AT(4)},
		.word = {[3] = RET(0)},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "a CFA that goes back",
		.rule = {BY(RSP, 8), BY(RSP, -8)},
		.reg = {[RSP] = AT(4)},
		.word = {[3] = RET(0), RET(1)},
		.chain = {RET(1)},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "a return address in a register that never changes",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .ra_reg = R12,
			  .flags = VP_RULE_F_RA_REG,
			  ALL_SAME}},
		.reg = {[RSP] = AT(0), [R12] = RET(0)},
		.chain = {RET(0)},
		.more = VP_MAX_USER_FRAMES - 2,
		.end = VP_END_DEPTH,
	},
	{
		.name = "memory that leads to itself",
		.rule = {{.cfa = VP_CFA_DEREF, .reg = RBX, ALL_SAME}},
		.reg = {[RSP] = AT(20), [RBX] = AT(4)},
		.word = {[3] = RET(0), AT(4)},
		.chain = {RET(0)},
		.more = VP_MAX_USER_FRAMES - 2,
		.end = VP_END_DEPTH,
	},
	{
		.name = "a signal frame that leads to itself",
		.rule = {{.cfa = VP_CFA_DEREF,
			  .reg = RSP,
			  SAVED(SAME, SAME, SAME, SAME, SAME, SAME, 1),
			  .flags = VP_RULE_F_SIGNAL | VP_RULE_F_SAVED_BASE | VP_RULE_F_RA_BASE}},
		.reg = {[RSP] = AT(4)},
		.word = {[4] = AT(4), START(0)},
		.chain = {START(0)},
		.more = VP_MAX_USER_FRAMES - 2,
		.end = VP_END_DEPTH,
	},
	{
		.name = "a CFA in the kernel",
		.rule = {BY(RBX, 16)},
		.reg = {[RSP] = AT(0), [RBX] = KERNEL_ADDRESS},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a CFA read from the kernel",
		.rule = {{.cfa = VP_CFA_DEREF, .reg = RBX, ALL_SAME}},
		.reg = {[RSP] = AT(0), [RBX] = KERNEL_ADDRESS},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a CFA in no address space",
		.rule = {BY(RBX, 16)},
		.reg = {[RSP] = AT(0), [RBX] = 1ULL << 63},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a CFA beyond all addresses",
		.rule = {BY(RBX, 16)},
		.reg = {[RSP] = AT(0), [RBX] = -8ULL},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "a register saved in the kernel",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RBX,
			  .cfa_off = 16,
			  SAVED(SAME, SAME, SAME, SAME, SAME, SAME, 0),
			  .flags = VP_RULE_F_RA_BASE}},
		.reg = {[RSP] = AT(0), [RBX] = KERNEL_ADDRESS},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a return address in the kernel",
		.rule = {BY(RSP, 8)},
		.reg = {[RSP] = AT(0)},
		.word = {KERNEL_ADDRESS},
		.end = VP_END_UNKNOWN_PC,
	},
	{
		.name = "a return address in the first page",
		.rule = {BY(RSP, 8)},
		.reg = {[RSP] = AT(0)},
		.word = {4095},
		.end = VP_END_UNKNOWN_PC,
	},
	{
		.name = "a register that there is not",
		.rule = {BY(16, 16)},
		.reg = {[RSP] = AT(0)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "the last register number",
		.rule = {BY(255, 16)},
		.reg = {[RSP] = AT(0)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "a return address in a register that there is not",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = 8,
			  .ra_reg = 39,
			  .flags = VP_RULE_F_RA_REG,
			  ALL_SAME}},
		.reg = {[RSP] = AT(0)},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a frame pointer to itself",
		.rule = {{0}},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[4] = AT(4), RET(1)},
		.chain = {RET(1)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "a frame pointer that is not aligned",
		.rule = {{0}},
		.reg = {[RSP] = AT(0), [RBP] = AT(4) + 4},
		.word = {[4] = AT(8), RET(1)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "a frame pointer into the kernel",
		.rule = {{0}},
		.reg = {[RSP] = AT(0), [RBP] = KERNEL_ADDRESS},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "the largest offsets",
		.rule = {{.cfa = VP_CFA_REG,
			  .reg = RSP,
			  .cfa_off = INT32_MAX,
			  SAVED(0x7ffd, 0x7ffd, INT16_MIN, INT16_MIN, 0, 0, 0x7ffd)}},
		.reg = {[RSP] = AT(0)},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a stack pointer in no address space",
		.rule = {BY(RSP, 8)},
		.reg = {[RSP] = 1ULL << 62},
		.end = VP_END_BAD_MEMORY,
	},
};

#define LIES_CNT (sizeof(lies) / sizeof(lies[0]))

/* ---- other call graphs ---------------------------------------------------------------------- */

/* Each function has a rule that leads elsewhere. */
static const struct scene fp_only[] = {
	{
		.name = "frame pointers, and rules that say otherwise",
		.rule = {BY(RSP, 8), OUTERMOST, OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {RET(3), [4] = AT(8), RET(1), [8] = 0, RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
	{
		.name = "a frame pointer to itself",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[4] = AT(4), RET(1)},
		.chain = {RET(1)},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "frame pointers that lead to each other",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[4] = AT(8), RET(1), [8] = AT(4), RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "a frame pointer below the stack pointer",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(6), [RBP] = AT(4)},
		.word = {[4] = AT(8), RET(1)},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "a frame pointer that is not aligned",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4) + 4},
		.end = VP_END_BAD_FP,
	},
	{
		.name = "a frame pointer into the kernel",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = KERNEL_ADDRESS},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a frame pointer at the end of all addresses",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = -8ULL},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a frame pointer at the end of a page, with nothing behind",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(SCENE_WORDS - 1)},
		.word = {[SCENE_WORDS - 1] = AT(0)},
		.end = VP_END_BAD_MEMORY,
	},
	{
		.name = "a return address that is no code",
		.rule = {OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {[4] = AT(8), 4711},
		.chain = {4711},
		.end = VP_END_UNKNOWN_PC,
	},
	{
		.name = "a frame pointer of 0",
		.rule = {BY(RSP, 8)},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1)},
		.end = VP_END_BOTTOM,
	},
};

static const struct scene rows_only[] = {
	{
		.name = "a function without a rule, and a frame pointer that would do",
		.rule = {BY(RSP, 8), {0}},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {RET(1), [4] = AT(8), RET(2)},
		.chain = {RET(1)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "a function without a rule where there is no frame pointer",
		.rule = {BY(RSP, 8), {0}},
		.reg = {[RSP] = AT(0)},
		.word = {RET(1)},
		.chain = {RET(1)},
		.end = VP_END_NO_ROW,
	},
	{
		.name = "rules all the way",
		.rule = {BY(RSP, 8), BY(RSP, 8), OUTERMOST},
		.reg = {[RSP] = AT(0), [RBP] = AT(4)},
		.word = {RET(1), RET(2)},
		.chain = {RET(1), RET(2)},
		.end = VP_END_BOTTOM,
	},
};

/* ---- comparing ------------------------------------------------------------------------------ */

static bool is_frame(const struct vp_frame *f, uint32_t scene, uint64_t want)
{
	bool interrupted = (want & ~0xfffULL) == START(0) && !(want & (FUNC_BYTES - 1));

	return f->pc == scene_value(scene, want) && !!(f->flags & VP_FRAME_F_LEAF) == interrupted &&
	       !(f->flags & VP_FRAME_F_NO_ROWS);
}

static uint32_t chain_length(const struct scene *s)
{
	uint32_t n = 0;

	while (s->chain[n])
		n++;
	return n;
}

static bool is_as_said(const struct scene *s, uint32_t scene, const struct log_item *it)
{
	uint32_t len = chain_length(s);

	if (it->sample.user_end != s->end || it->sample.user_cnt != 1 + len + s->more)
		return false;
	for (uint32_t i = 0; i < len + s->more; i++) {
		if (!is_frame(&it->user[1 + i], scene, s->chain[i < len ? i : len - 1]))
			return false;
	}
	return true;
}

static void expect_scene(const struct scene *s, uint32_t scene, uint32_t tid)
{
	size_t right = 0, wrong = 0;

	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.tid != tid ||
		    !scene_is_sample(s, scene, it))
			continue;
		if (is_as_said(s, scene, it))
			right++;
		else if (wrong++ == 0)
			scene_print_sample(it);
	}
	cr_expect(zero(sz, wrong), "%s", s->name);
	cr_expect(gt(sz, right, 0), "%s", s->name);
}

static void expect_scenes(const struct scene *s, uint32_t cnt)
{
	uint32_t tid[SCENES_MAX];

	scenes_record(&r, s, cnt, 3, tid);
	for (uint32_t i = 0; i < cnt; i++)
		expect_scene(&s[i], i, tid[i]);
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_DEFER_FAILED)));
}

Test(unwind_rules, every_kind_of_rule_is_followed)
{
	expect_scenes(said, SAID_CNT);
}

Test(unwind_rules_deferred, every_kind_of_rule_is_followed)
{
	expect_scenes(said, SAID_CNT);
}

Test(unwind_rules, hostile_rules_end_a_stack_with_a_reason)
{
	expect_scenes(lies, LIES_CNT);
}

Test(unwind_rules_deferred, hostile_rules_end_a_stack_with_a_reason)
{
	expect_scenes(lies, LIES_CNT);
}

static void expect_fp_only(void)
{
	r.call_graph = VP_CALL_GRAPH_FP;
	expect_scenes(fp_only, sizeof(fp_only) / sizeof(fp_only[0]));
}

Test(unwind_rules, hostile_frame_pointers_end_a_stack_with_a_reason)
{
	expect_fp_only();
}

Test(unwind_rules_deferred, hostile_frame_pointers_end_a_stack_with_a_reason)
{
	expect_fp_only();
}

static void expect_rows_only(void)
{
	r.call_graph = VP_CALL_GRAPH_DWARF;
	expect_scenes(rows_only, sizeof(rows_only) / sizeof(rows_only[0]));
}

Test(unwind_rules, by_rows_alone_a_function_without_a_rule_ends_a_stack)
{
	expect_rows_only();
}

Test(unwind_rules_deferred, by_rows_alone_a_function_without_a_rule_ends_a_stack)
{
	expect_rows_only();
}
