/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the unwinder has to know of the processor. */
#ifndef VP_ARCH_BPF_H
#define VP_ARCH_BPF_H

#include "vp_common.bpf.h"

#ifdef __TARGET_ARCH_x86

/* Registers by their DWARF numbers (System V ABI, AMD64 supplement, figure 3.36). */
#define VP_REG_CNT    16
#define VP_REG_FP     6
#define VP_REG_SP     7
#define VP_REG_RESULT 0 /* rax: of a system call */

#define VP_REGS_ALL	  ((1U << VP_REG_CNT) - 1)
/* rbx, rbp, r12 to r15: what a function gives back as it was. */
#define VP_REGS_PRESERVED (1U << 3 | 1U << VP_REG_FP | 0xfU << 12)

/* The register of a slot of vp_rule.saved between VP_SAVED_FP and VP_SAVED_RA. */
#define vp_slot_reg(slot) ((slot) == 1 ? 3 : 10 + (slot))

/* p: struct pt_regs, also behind a program's context; a macro because that type is special. */
#define vp_copy_regs(to, p)                                                                        \
	do {                                                                                       \
		(to)[0] = (p)->ax;                                                                 \
		(to)[1] = (p)->dx;                                                                 \
		(to)[2] = (p)->cx;                                                                 \
		(to)[3] = (p)->bx;                                                                 \
		(to)[4] = (p)->si;                                                                 \
		(to)[5] = (p)->di;                                                                 \
		(to)[6] = (p)->bp;                                                                 \
		(to)[7] = (p)->sp;                                                                 \
		(to)[8] = (p)->r8;                                                                 \
		(to)[9] = (p)->r9;                                                                 \
		(to)[10] = (p)->r10;                                                               \
		(to)[11] = (p)->r11;                                                               \
		(to)[12] = (p)->r12;                                                               \
		(to)[13] = (p)->r13;                                                               \
		(to)[14] = (p)->r14;                                                               \
		(to)[15] = (p)->r15;                                                               \
	} while (0)

#define VP_CS_USER32 0x23 /* code segment of 32-bit tasks */

static __always_inline bool vp_cs_is_user(__u64 cs)
{
	return (cs & 3) == 3;
}

/* Entered the kernel by a system call: orig_ax is its number, else negative (arch/x86/entry). */
#define vp_is_syscall(p) ((long)(p)->orig_ax >= 0)

#define VP_SYSCALL_BYTES 2

static __always_inline bool vp_is_syscall_insn(const __u8 code[VP_SYSCALL_BYTES])
{
	return code[0] == 0x0f && code[1] == 0x05;
}

/* Where no user code can be: the first page, and what no size of address space reaches. */
static __always_inline bool vp_is_no_pc(__u64 pc)
{
	return pc < 4096 || pc >> 56;
}

/*
 * The page that old programs call the time from. The kernel does its functions' work when it is
 * to fetch their first instruction: the stack is as the call left it.
 */
static __always_inline bool vp_is_vsyscall(__u64 pc)
{
	return pc >= VP_VSYSCALL_ADDR && pc < VP_VSYSCALL_END;
}

static __always_inline void vp_called_rule(struct vp_rule *rule)
{
	__builtin_memset(rule, 0, sizeof(*rule));
	rule->cfa = VP_CFA_REG;
	rule->reg = VP_REG_SP;
	rule->cfa_off = 8;
	for (int i = 0; i < VP_SAVED_CNT; i++)
		rule->saved[i] = VP_SAVED_SAME;
	rule->saved[VP_SAVED_RA] = -1;
}

static __always_inline __u32 vp_cs_word(__u64 cs)
{
	return cs == VP_CS_USER32 ? 4 : 8;
}

/*
 * What a signal handler returns to: mov $__NR_rt_sigreturn, %rax; syscall. C libraries without
 * unwind information for it, and Go's runtime, have just these bytes. The stack pointer then
 * points at a struct ucontext, with the registers as arch/x86/include/uapi/asm/sigcontext.h
 * lays them out from byte 40 on.
 */
#define VP_SIGRETURN_BYTES 9

static __always_inline bool vp_is_sigreturn(const __u8 code[VP_SIGRETURN_BYTES])
{
	static const __u8 want[VP_SIGRETURN_BYTES] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};

	for (int i = 0; i < VP_SIGRETURN_BYTES; i++) {
		if (code[i] != want[i])
			return false;
	}
	return true;
}

static __always_inline void vp_sigreturn_rule(struct vp_rule *rule)
{
	rule->cfa_off = 160; /* rsp */
	rule->cfa_add = 0;
	rule->cfa = VP_CFA_DEREF;
	rule->reg = VP_REG_SP;
	rule->saved[VP_SAVED_FP] = 120 / 8;
	rule->saved[1] = 128 / 8; /* rbx */
	rule->saved[2] = 72 / 8;  /* r12 */
	rule->saved[3] = 80 / 8;
	rule->saved[4] = 88 / 8;
	rule->saved[5] = 96 / 8;
	rule->saved[VP_SAVED_RA] = 168 / 8; /* rip */
	rule->ra_reg = 0;
	rule->flags = VP_RULE_F_SAVED_BASE | VP_RULE_F_RA_BASE | VP_RULE_F_SIGNAL;
}

#else
#error "unwinding is written for x86-64 alone"
#endif

#endif
