/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the workloads without frame pointers share. Their READY line says which chain every
 * sample has: chain=main;a;b;leaf from the outermost to the innermost, C++ names without
 * parameters. Leaves that are many have their chains separated by '|'.
 */
#ifndef NOFP_H
#define NOFP_H

#include "workload.h"

/* A function that is on the stack under its own name, whatever the optimizer thinks. */
#if defined(__clang__)
#define WL_STEP __attribute__((noinline))
#else
#define WL_STEP __attribute__((noipa))
#endif

/* A tail call is a jump if the compiler optimizes: its caller is then not on the stack. */
#ifdef __OPTIMIZE__
#define WL_UNLESS_TAIL(name) ""
#else
#define WL_UNLESS_TAIL(name) name
#endif

/*
 * Puts nonsense into all registers that a callee must preserve, the frame pointer among them.
 * Who calls it has saved them, and who follows frame pointers from here on is lost.
 */
#if defined(__x86_64__)
#define WL_SPOIL_REGISTERS()                                                                       \
	__asm__ volatile("mov $0x5bad0, %%ebx\n\tmov $0x5bad8, %%ebp\n\tmov $0x5bad1, %%r12d\n\t"  \
			 "mov $0x5bad2, %%r13d\n\tmov $0x5bad3, %%r14d\n\tmov $0x5bad4, %%r15d"    \
			 :                                                                         \
			 :                                                                         \
			 : "rbx", "rbp", "r12", "r13", "r14", "r15")
#else
#define WL_SPOIL_REGISTERS()
#endif

/* Makes the compiler keep the object p points to where it is. */
#define WL_KEEP(p) __asm__ volatile("" : : "r"(p) : "memory")

static volatile unsigned long wl_count;

#endif
