// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * noreturn [CPU_SECONDS]: main -> calls_noreturn -> never_returns.
 * The call of never_returns is the last instruction of calls_noreturn, so the return address
 * on the stack belongs to whatever function comes next: a symbolizer must look one byte back.
 */
#include "workload.h"

static volatile unsigned long counter;

__attribute__((noreturn)) void never_returns(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
	_exit(0);
}

void calls_noreturn(void)
{
	counter++;
	never_returns();
}

void innocent_neighbour(void)
{
	counter--;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("noreturn");
	if (argc > 100)
		innocent_neighbour();
	calls_noreturn();
	return 0;
}
