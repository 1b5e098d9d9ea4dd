// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_vdso [CPU_SECONDS]: reads a clock all the time: main -> reads_clock -> clock_gettime of
 * libc -> the vdso.
 */
#include "nofp.h"

#include <time.h>

WL_STEP long reads_clock(void)
{
	struct timespec ts;
	long sum = 0;

	while (!wl_stop) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		sum += ts.tv_nsec;
	}
	return sum;
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("chain=main;reads_clock|main;reads_clock;clock_gettime|main;reads_clock;clock_"
		 "gettime;[vdso]");
	return reads_clock() == 1;
}
