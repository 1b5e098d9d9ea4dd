// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * shares [CPU_SECONDS]: three_quarters and one_quarter run the same loop, three times as long
 * in the first, so their CPU time is 3:1 on any machine.
 */
#include "workload.h"

/* About 0.1 ms; the loop is one instruction pair, aligned alike in both functions. */
#define ROUNDS 300000L
#define BURN(rounds)                                                                               \
	do {                                                                                       \
		long n_ = (rounds);                                                                \
		__asm__ volatile(".p2align 6\n1:\tdec %0\n\tjnz 1b" : "+r"(n_));                   \
	} while (0)

void three_quarters(void)
{
	WL_KEEP_FRAME();

	BURN(3 * ROUNDS);
}

void one_quarter(void)
{
	WL_KEEP_FRAME();

	BURN(ROUNDS);
}

void alternate(void)
{
	while (!wl_stop) {
		three_quarters();
		one_quarter();
	}
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("shares");
	alternate();
	return 0;
}
