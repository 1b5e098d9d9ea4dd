// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * recurse [DEPTH [CPU_SECONDS]]: main, DEPTH (600) times recurse, then bottom_spin.
 */
#include "workload.h"

static volatile unsigned long counter;

void bottom_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

void recurse(long left)
{
	if (left > 1)
		recurse(left - 1);
	else
		bottom_spin();
	counter++;
}

int main(int argc, char **argv)
{
	long depth = (long)wl_arg(argc, argv, 1, 600);

	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	wl_ready("depth=%ld", depth);
	recurse(depth);
	return 0;
}
