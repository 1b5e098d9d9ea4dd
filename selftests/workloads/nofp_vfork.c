// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_vfork [CHILDREN]: all CPU time is that of children of vfork, one after the other, which
 * use their parent's stack while it waits; each ends after a while. 0 children: no end.
 */
#include "nofp.h"

WL_STEP void child_spin(void)
{
	for (unsigned long i = 0; i < 30000000; i++)
		wl_count++;
}

WL_STEP int runs_child(int n)
{
	pid_t pid;

	WL_SPOIL_REGISTERS();
	pid = vfork();
	if (pid < 0)
		wl_die("vfork");
	if (pid == 0) {
		wl_die_with_parent();
		child_spin();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return n + 1;
}

int main(int argc, char **argv)
{
	int child_cnt = (int)wl_arg(argc, argv, 1, 0), n = 0;

	wl_die_with_parent();
	wl_ready("chain=main;runs_child;child_spin|main;runs_child|main;runs_child;prctl|"
		 "main;runs_child;_exit|main;runs_child;vfork|main;runs_child;wait4");
	do
		n = runs_child(n);
	while (n != child_cnt);
	return 0;
}
