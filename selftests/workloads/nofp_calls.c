// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread -fno-builtin -Wl,-z,lazy */
/*
 * nofp_calls [CPU_SECONDS]: calls short functions all the time, so that samples fall on the
 * pushes and pops at their starts and ends and into the stubs of .plt.
 */
#include "nofp.h"

/* Saves six registers. */
WL_STEP void pushes_six(void)
{
	WL_SPOIL_REGISTERS();
}

/* Several ends, each restores on its own. */
WL_STEP int many_ends(int n)
{
	WL_SPOIL_REGISTERS();
	if (n & 1)
		return n;
	WL_SPOIL_REGISTERS();
	if (n & 2)
		return -n;
	WL_SPOIL_REGISTERS();
	return n + 1;
}

WL_STEP int aligned_frame(int n)
{
	_Alignas(64) char aligned[64];

	WL_KEEP(aligned);
	return n + 1;
}

WL_STEP int wide_frame(int n)
{
	char wide[1000];

	WL_KEEP(wide);
	return n + 1;
}

WL_STEP void calls(void)
{
	for (int n = 0; !wl_stop; n++) {
		pushes_six();
		n = aligned_frame(many_ends(n)) - 1;
		n = wide_frame(n) - 1;
		/* of libc, by its stub */
		wl_count += (unsigned long)labs(n);
	}
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	wl_stop_after(wl_arg(argc, argv, 1, 0));
	wl_ready("chain=main;calls|main;calls;pushes_six|main;calls;many_ends|main;calls;aligned_"
		 "frame|"
		 "main;calls;wide_frame|main;calls;labs|main;calls;labs@plt");
	calls();
	return 0;
}
