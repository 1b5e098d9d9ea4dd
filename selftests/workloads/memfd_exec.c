// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * memfd_exec [CPU_SECONDS]: becomes a copy of itself that exists only in a memfd named
 * "wl memfd", and spins there in main -> memfd_spin.
 */
#include "workload.h"

static volatile unsigned long counter;

void memfd_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

static void become_memfd(const char *cpu_s)
{
	char *argv[] = {"memfd_exec", "--child", (char *)cpu_s, NULL};
	int fd = memfd_create("wl memfd", MFD_CLOEXEC);

	if (fd < 0)
		wl_die("memfd_create");
	wl_copy("/proc/self/exe", fd);
	fexecve(fd, argv, environ);
	wl_die("fexecve");
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	if (argc < 2 || strcmp(argv[1], "--child"))
		become_memfd(argc > 1 ? argv[1] : "0");
	wl_stop_after(wl_arg(argc, argv, 2, 0));
	wl_ready("memfd");
	memfd_spin();
	return 0;
}
