// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_asm MODE [CPU_SECONDS]: assembly with unwind information that compilers do not write, or
 * without any.
 *
 *   r11       the CFA is in a register that calls do not preserve
 *   scratch   the same in a function that calls another: OpenSSL's assembly calls functions that are
 *             known to leave the register alone
 *   base      the CFAs of several functions are in rbx, r12 and r15, which others save
 *   register  the return address is in a register
 *   deref     the CFA is in memory, as OpenSSL's assembly has it
 *   saved     a register's place is an expression
 *   moved     a register that the caller needs is in another register
 *   stack     a function moves to another stack
 *   fp        no unwind information, but a frame pointer
 *   bare      neither: the stack ends there
 */
#include "nofp.h"

#ifndef __x86_64__
int main(void)
{
	printf("not for this machine\n");
	return 77;
}
#else

// clang-format off
#define FUNCTION(name)                                                                             \
	".globl " #name "\n"                                                                       \
	".type " #name ", @function\n" #name ":\n"
#define END(name) ".size " #name ", . - " #name "\n"
#define SPIN	  "1: incq wl_count(%rip)\n cmpl $0, wl_stop(%rip)\n je 1b\n"

/* CFA in reg, an unknown number of bytes above the stack pointer. */
#define BASE(name, reg, callee)                                                                    \
	FUNCTION(name)                                                                             \
	" .cfi_startproc\n"                                                                        \
	" push %" reg "\n .cfi_def_cfa_offset 16\n .cfi_offset %" reg ", -16\n"                    \
	" mov %rsp, %" reg "\n .cfi_def_cfa_register %" reg "\n"                                   \
	" sub $200, %rsp\n"                                                                        \
	" and $-64, %rsp\n"                                                                        \
	" call " callee "\n"                                                                       \
	" mov %" reg ", %rsp\n .cfi_def_cfa_register %rsp\n"                                       \
	" pop %" reg "\n .cfi_def_cfa_offset 8\n .cfi_restore %" reg "\n"                          \
	" ret\n"                                                                                   \
	" .cfi_endproc\n" END(name)

__asm__(".text\n"
	/* r11 */
	FUNCTION(cfa_r11)
	" .cfi_startproc\n"
	" mov %rsp, %r11\n .cfi_def_cfa_register %r11\n"
	" sub $100, %rsp\n"
	" and $-32, %rsp\n" SPIN
	" mov %r11, %rsp\n .cfi_def_cfa_register %rsp\n"
	" ret\n"
	" .cfi_endproc\n" END(cfa_r11)

	/* scratch */
	FUNCTION(cfa_scratch)
	" .cfi_startproc\n"
	" mov %rsp, %rax\n .cfi_def_cfa_register %rax\n"
	" push %rbx\n .cfi_offset %rbx, -16\n"
	" sub $100, %rsp\n"
	" and $-64, %rsp\n"
	" call leaves_rax_alone\n"
	" mov -8(%rax), %rbx\n .cfi_restore %rbx\n"
	" mov %rax, %rsp\n .cfi_def_cfa_register %rsp\n"
	" ret\n"
	" .cfi_endproc\n" END(cfa_scratch)
	FUNCTION(leaves_rax_alone)
	" .cfi_startproc\n" SPIN
	" ret\n"
	" .cfi_endproc\n" END(leaves_rax_alone)

	/* base */
	BASE(cfa_rbx, "rbx", "cfa_r12")
	BASE(cfa_r12, "r12", "spoils_registers")
	BASE(cfa_r15, "r15", "leaf")

	/* register */
	FUNCTION(ra_in_register)
	" .cfi_startproc\n"
	" pop %rdx\n .cfi_def_cfa_offset 0\n .cfi_register %rip, %rdx\n" SPIN
	" push %rdx\n .cfi_def_cfa_offset 8\n .cfi_offset %rip, -8\n"
	" ret\n"
	" .cfi_endproc\n" END(ra_in_register)

	/* deref: DW_CFA_def_cfa_expression { rsp + 152; deref; + 8 } */
	FUNCTION(cfa_in_memory)
	" .cfi_startproc\n"
	" mov %rsp, %rax\n .cfi_def_cfa_register %rax\n"
	" push %rbx\n .cfi_offset %rbx, -16\n"
	" push %rbp\n .cfi_offset %rbp, -24\n"
	" sub $1000, %rsp\n"
	" and $-64, %rsp\n"
	" mov %rax, 152(%rsp)\n"
	" .cfi_escape 0x0f, 0x06, 0x77, 0x98, 0x01, 0x06, 0x23, 0x08\n"
	" call spoils_registers\n"
	" mov 152(%rsp), %rax\n .cfi_def_cfa %rax, 8\n"
	" mov -16(%rax), %rbp\n .cfi_restore %rbp\n"
	" mov -8(%rax), %rbx\n .cfi_restore %rbx\n"
	" mov %rax, %rsp\n .cfi_def_cfa_register %rsp\n"
	" ret\n"
	" .cfi_endproc\n" END(cfa_in_memory)

	/* saved: DW_CFA_expression rbx { rsp + 16 }, for the caller's CFA */
	FUNCTION(saved_by_expression)
	" .cfi_startproc\n"
	" sub $40, %rsp\n .cfi_def_cfa_offset 48\n"
	" mov %rbx, 16(%rsp)\n"
	" .cfi_escape 0x10, 0x03, 0x02, 0x77, 0x10\n"
	" mov $0x5bad, %ebx\n" SPIN
	" mov 16(%rsp), %rbx\n .cfi_restore %rbx\n"
	" add $40, %rsp\n .cfi_def_cfa_offset 8\n"
	" ret\n"
	" .cfi_endproc\n" END(saved_by_expression)
	BASE(calls_saved, "rbx", "saved_by_expression")

	/* moved */
	FUNCTION(saved_in_register)
	" .cfi_startproc\n"
	" mov %rbx, %r11\n .cfi_register %rbx, %r11\n"
	" mov $0x5bad, %ebx\n" SPIN
	" mov %r11, %rbx\n .cfi_restore %rbx\n"
	" ret\n"
	" .cfi_endproc\n" END(saved_in_register)
	BASE(calls_moved, "rbx", "saved_in_register")

	/* stack */
	FUNCTION(other_stack)
	" .cfi_startproc\n"
	" push %rbp\n .cfi_def_cfa_offset 16\n .cfi_offset %rbp, -16\n"
	" mov %rsp, %rbp\n .cfi_def_cfa_register %rbp\n"
	" mov %rdi, %rsp\n"
	" call spoils_registers\n"
	" mov %rbp, %rsp\n .cfi_def_cfa_register %rsp\n"
	" pop %rbp\n .cfi_def_cfa_offset 8\n .cfi_restore %rbp\n"
	" ret\n"
	" .cfi_endproc\n" END(other_stack)

	/* fp */
	FUNCTION(only_frame_pointer)
	" push %rbp\n"
	" mov %rsp, %rbp\n"
	" sub $32, %rsp\n"
	" call spoils_registers\n"
	" leave\n"
	" ret\n" END(only_frame_pointer)

	/* bare */
	FUNCTION(neither)
	" sub $24, %rsp\n"
	" call leaf\n"
	" add $24, %rsp\n"
	" ret\n" END(neither));
// clang-format on

void cfa_r11(void), cfa_scratch(void), cfa_rbx(void), ra_in_register(void), cfa_in_memory(void),
	calls_saved(void);
void calls_moved(void), only_frame_pointer(void), neither(void), cfa_r15(void);
void other_stack(void *top);

WL_STEP void leaf(void)
{
	while (!wl_stop)
		wl_count++;
}

WL_STEP void spoils_registers(void)
{
	WL_SPOIL_REGISTERS();
	cfa_r15();
	WL_SPOIL_REGISTERS();
}

WL_STEP void runs(const char *mode)
{
	static char _Alignas(16) other[65536];

	WL_SPOIL_REGISTERS();
	if (!strcmp(mode, "r11"))
		cfa_r11();
	else if (!strcmp(mode, "scratch"))
		cfa_scratch();
	else if (!strcmp(mode, "base"))
		cfa_rbx();
	else if (!strcmp(mode, "register"))
		ra_in_register();
	else if (!strcmp(mode, "deref"))
		cfa_in_memory();
	else if (!strcmp(mode, "saved"))
		calls_saved();
	else if (!strcmp(mode, "moved"))
		calls_moved();
	else if (!strcmp(mode, "stack"))
		other_stack(other + sizeof(other));
	else if (!strcmp(mode, "fp"))
		only_frame_pointer();
	else
		neither();
	wl_count++;
}

int main(int argc, char **argv)
{
	static const char *const chains[][2] = {
		{"r11", "cfa_r11"},
		{"scratch", "cfa_scratch;leaves_rax_alone"},
		{"base", "cfa_rbx;cfa_r12;spoils_registers;cfa_r15;leaf"},
		{"register", "ra_in_register"},
		{"deref", "cfa_in_memory;spoils_registers;cfa_r15;leaf"},
		{"saved", "calls_saved;saved_by_expression"},
		{"moved", "calls_moved;saved_in_register"},
		{"stack", "other_stack;spoils_registers;cfa_r15;leaf"},
		{"fp", "only_frame_pointer;spoils_registers;cfa_r15;leaf"},
	};
	const char *mode = argc > 1 ? argv[1] : "bare";
	const char *chain = NULL;

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	for (size_t i = 0; i < sizeof(chains) / sizeof(chains[0]); i++)
		if (!strcmp(mode, chains[i][0]))
			chain = chains[i][1];
	if (chain)
		wl_ready("chain=main;runs;%s", chain);
	else
		wl_ready("chain=neither;leaf");
	runs(mode);
	return 0;
}
#endif
