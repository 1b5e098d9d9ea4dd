// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O2 -g -fomit-frame-pointer -pthread */
/*
 * nofp_image deleted|memfd [CPU_SECONDS]: becomes a copy of itself that has no name any more, or
 * never had one: what is known of its frames is in a file that cannot be opened by name. Its
 * thread is named image-deleted or image-memfd.
 */
#include "nofp.h"

WL_STEP int leaf(int n)
{
	while (!wl_stop)
		wl_count++;
	return n;
}

WL_STEP int spoils_registers(int n)
{
	WL_SPOIL_REGISTERS();
	return leaf(n) + 1;
}

WL_STEP int wide_frame(int n)
{
	char wide[5000];

	WL_KEEP(wide);
	n += spoils_registers(n);
	WL_KEEP(wide);
	return n;
}

static void become_copy(const char *kind, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	char path[4096];
	char *child_argv[] = {argv[0], "--child", (char *)kind, path, argv[1] ? argv[2] : NULL,
			      NULL};
	int fd;

	if (!strcmp(kind, "memfd")) {
		fd = memfd_create("nofp_image", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "a memfd");
	} else {
		snprintf(path, sizeof(path), "%s/nofp_image-%d", tmp ? tmp : "/tmp", getpid());
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	}
	if (fd < 0)
		wl_die("create %s", path);
	wl_copy("/proc/self/exe", fd);
	if (!strcmp(kind, "memfd"))
		fexecve(fd, child_argv, environ);
	close(fd);
	execv(path, child_argv);
	wl_die("exec %s", path);
}

int main(int argc, char **argv)
{
	char name[16];

	wl_die_with_parent();
	if (argc < 4 || strcmp(argv[1], "--child"))
		become_copy(argc > 1 ? argv[1] : "deleted", argv);
	if (!strcmp(argv[2], "deleted") && unlink(argv[3]))
		wl_die("unlink %s", argv[3]);
	snprintf(name, sizeof(name), "image-%s", argv[2]);
	prctl(PR_SET_NAME, name);
	wl_stop_after(wl_arg(argc, argv, 4, 0));
	wl_ready("chain=main;wide_frame;spoils_registers;leaf");
	return wide_frame(argc) == 1;
}
