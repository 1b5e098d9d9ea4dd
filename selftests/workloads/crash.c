// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* crash [CPU_SECONDS]: spins in main -> crash_spin (0.5 s), then dies of SIGSEGV. */
#include "workload.h"

static volatile unsigned long counter;
static volatile int *volatile nowhere;

void crash_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0.5));
	wl_ready("crash");
	crash_spin();
	return *nowhere;
}
