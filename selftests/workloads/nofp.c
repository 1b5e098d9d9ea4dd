// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp [CPU_SECONDS]: a chain of functions without frame pointers, each with another kind of
 * frame. The Makefile builds it for many compilers, levels and forms of linking, too.
 */
#include "nofp.h"

#include <alloca.h>

WL_STEP void leaf(void)
{
	while (!wl_stop)
		wl_count++;
}

__attribute__((noreturn)) WL_STEP void never_returns(void)
{
	leaf();
	_exit(0);
}

/* Its last instruction is the call. */
WL_STEP void ends_with_call(void)
{
	wl_count++;
	never_returns();
}

/* Ends the symbol of the function before it: a return address there is in this one. */
WL_STEP void innocent_neighbour(void)
{
	wl_count--;
}

WL_STEP int tail_target(int n)
{
	/* a compiler that knew that this never returns would not make a tail call of it */
	void (*volatile opaque)(void) = ends_with_call;

	opaque();
	return n + (int)wl_count;
}

WL_STEP int tail_caller(int n)
{
	wl_count++;
	return tail_target(n + 1);
}

WL_STEP int all_registers(int n)
{
	WL_SPOIL_REGISTERS();
	n += tail_caller(3);
	WL_SPOIL_REGISTERS();
	return n;
}

/* Arguments on the stack and an alignment: gcc finds them by a register that it saves (DRAP). */
WL_STEP int over_aligned(int a, int b, int c, int d, int e, int f, int g, int h, int n)
{
	_Alignas(64) char aligned[128];
	char *variable = (char *)alloca((size_t)n);

	WL_KEEP(aligned);
	WL_KEEP(variable);
	n = all_registers(a + b + c + d + e + f + g + h);
	WL_KEEP(aligned);
	return n + 1;
}

/* Pushes arguments. */
WL_STEP int stack_args(int n)
{
	return 1 + over_aligned(n, 2, 3, 4, 5, 6, 7, n, n) + n;
}

WL_STEP int uses_alloca(int n)
{
	char *variable = (char *)alloca((size_t)n);

	WL_KEEP(variable);
	n += stack_args(n);
	WL_KEEP(variable);
	return n;
}

WL_STEP int wide_frame(int n)
{
	char wide[5000];

	WL_KEEP(wide);
	n += uses_alloca(n);
	WL_KEEP(wide);
	return n;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	if (argc > 100)
		innocent_neighbour();
	wl_ready("chain=main;wide_frame;uses_alloca;stack_args;over_aligned;all_registers;%s%s",
		 WL_UNLESS_TAIL("tail_caller;"), "tail_target;ends_with_call;never_returns;leaf");
	return wide_frame(argc + 99) == 1;
}
