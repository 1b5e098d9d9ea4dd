// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* setname [COMM [CPU_SECONDS]]: takes an awkward name ("a;b c 1"), spins in main -> named_spin. */
#include "workload.h"

static volatile unsigned long counter;

void named_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	prctl(PR_SET_NAME, argc > 1 ? argv[1] : "a;b c 1");
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	wl_ready("setname");
	named_spin();
	return 0;
}
