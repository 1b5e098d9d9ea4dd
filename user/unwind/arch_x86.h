/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64 as unwinding sees it: System V ABI, AMD64 supplement, figure 3.36 (DWARF register
 * numbers). The only place that knows the numbers.
 */
#ifndef VP_ARCH_X86_H
#define VP_ARCH_X86_H

#include "rows.h"

#include <elf.h>

#define ARCH_ELF_MACHINE EM_X86_64

#define ARCH_REG_CNT 16 /* 0 … 15 can be what a CFA counts from */
#define ARCH_REG_SP  7
#define ARCH_REG_RA  16

/* Behind the slots of vp_rule.saved: the stack pointer, which must be the CFA. */
#define SLOT_SP	  VP_SAVED_CNT
#define SLOT_CNT  (VP_SAVED_CNT + 1)
#define SLOT_NONE (-1)

/* Where a register's rule is kept; SLOT_NONE: nobody needs it. */
static inline int arch_slot(uint64_t reg)
{
	static const int8_t slots[] = {
		SLOT_NONE,   SLOT_NONE, SLOT_NONE, 1,	      SLOT_NONE,   SLOT_NONE,
		VP_SAVED_FP, SLOT_SP,	SLOT_NONE, SLOT_NONE, SLOT_NONE,   SLOT_NONE,
		2,	     3,		4,	   5,	      VP_SAVED_RA,
	};

	return reg < sizeof(slots) ? slots[reg] : SLOT_NONE;
}

/* Names of vp_rule.saved, for people. */
#define ARCH_SLOT_NAMES                                                                            \
	{                                                                                          \
		"rbp", "rbx", "r12", "r13", "r14", "r15", "ra"                                     \
	}

static inline const char *arch_reg_name(unsigned int reg)
{
	static const char names[][4] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					"rbp", "rsp", "r8",  "r9",  "r10", "r11",
					"r12", "r13", "r14", "r15", "ra"};

	return reg < sizeof(names) / sizeof(*names) ? names[reg] : "?";
}

#endif
