// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * chain [CPU_SECONDS]: one exact chain, main -> outer -> middle -> inner.
 */
#include "workload.h"

static volatile unsigned long counter;

void inner(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

void middle(void)
{
	inner();
	counter++;
}

void outer(void)
{
	middle();
	counter++;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("chain");
	outer();
	return 0;
}
