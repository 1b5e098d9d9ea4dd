// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * deleted [DIR [CPU_SECONDS]]: copies itself to DIR (TMPDIR or /tmp), becomes the copy, unlinks
 * it and spins in main -> deleted_spin.
 */
#include "workload.h"

static volatile unsigned long counter;

void deleted_spin(void)
{
	WL_KEEP_FRAME();

	while (!wl_stop)
		counter++;
}

static void become_copy(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	char path[4096];
	char *child_argv[] = {"deleted", "--child", path, argc > 2 ? argv[2] : "0", NULL};
	int fd;

	snprintf(path, sizeof(path), "%s/deleted-%d",
		 argc > 1 && argv[1][0] ? argv[1] : (tmp ? tmp : "/tmp"), getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	if (fd < 0)
		wl_die("create %s", path);
	wl_copy("/proc/self/exe", fd);
	close(fd);
	execv(path, child_argv);
	wl_die("exec %s", path);
}

int main(int argc, char **argv)
{
	wl_die_with_parent();
	if (argc < 3 || strcmp(argv[1], "--child"))
		become_copy(argc, argv);
	if (unlink(argv[2]))
		wl_die("unlink %s", argv[2]);
	wl_stop_after(wl_arg(argc, argv, 3, 0));
	wl_ready("deleted=%s", argv[2]);
	deleted_spin();
	return 0;
}
