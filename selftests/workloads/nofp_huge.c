// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_huge [CPU_SECONDS]: frames of 40 kB, 700 kB and 3 MB, the last two with locals between
 * which no register points.
 */
#include "nofp.h"

#define FRAME(name, bytes, callee)                                                                 \
	WL_STEP int name(int n)                                                                    \
	{                                                                                          \
		char huge[bytes];                                                                  \
                                                                                                   \
		WL_KEEP(huge);                                                                     \
		WL_SPOIL_REGISTERS();                                                              \
		n += callee;                                                                       \
		WL_KEEP(huge);                                                                     \
		return n;                                                                          \
	}

WL_STEP int leaf(int n)
{
	while (!wl_stop)
		wl_count++;
	return n;
}

FRAME(frame_40k, 40000, leaf(n))
FRAME(frame_700k, 700000, frame_40k(n))
FRAME(frame_3m, 3000000, frame_700k(n))

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("chain=main;frame_3m;frame_700k;frame_40k;leaf");
	return frame_3m(argc) == 1;
}
