// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * forker [CHILDREN [CPU_SECONDS]]: forks children (2) that spin without an exec, in
 * main -> fork_children -> child_main -> child_spin, for that much CPU time each; the parent
 * waits for them. READY children=PID,PID.
 */
#include "workload.h"

static volatile unsigned long counter;

void child_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

void child_main(double cpu_s)
{
	wl_die_with_parent();
	wl_stop_after(cpu_s);
	child_spin();
	_exit(0);
}

void fork_children(int children, double cpu_s, char *list, size_t list_bytes)
{
	size_t used = 0;

	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid < 0)
			wl_die("fork");
		if (!pid)
			child_main(cpu_s);
		if (used < list_bytes)
			used += (size_t)snprintf(list + used, list_bytes - used, "%s%d",
						 i ? "," : "", pid);
	}
}

int main(int argc, char **argv)
{
	char list[4096] = "";

	wl_die_with_parent();
	fork_children((int)wl_arg(argc, argv, 1, 2), wl_arg(argc, argv, 2, 0), list, sizeof(list));
	wl_ready("children=%s", list);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 0;
}
