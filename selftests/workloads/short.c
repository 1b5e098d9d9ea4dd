// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * short [CPU_MS]: a process that lives for 30 ms of CPU time in main -> short_spin.
 * short --spawn N [CPU_MS]: starts N of them, one after the other.
 */
#include "workload.h"

static volatile unsigned long counter;

void short_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

static void spawn_one(const char *path, char *cpu_ms)
{
	char *argv[] = {"short", cpu_ms, NULL};
	pid_t pid = vfork();

	if (pid < 0)
		wl_die("vfork");
	if (!pid) {
		execv(path, argv);
		_exit(98);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	if (argc > 2 && !strcmp(argv[1], "--spawn")) {
		wl_ready("spawning");
		for (int i = 0; i < atoi(argv[2]); i++)
			spawn_one(wl_sibling("short"), argc > 3 ? argv[3] : "30");
		return 0;
	}
	wl_stop_after(wl_arg(argc, argv, 1, 30) / 1000);
	short_spin();
	return 0;
}
