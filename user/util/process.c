/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "process.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#define LARGE_BLOCK_BYTES (128 << 10)

static struct rlimit old_files;
static bool files_raised;

/* open(2) gives the lowest free number: in this order each gets its own. */
static void fill_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* Not writable for standard output: a command that prints must still fail. */
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDERR_FILENO ? O_RDWR : O_RDONLY);
	}
}

/*
 * Reading a file takes much memory for a short time, on several threads. malloc would keep it, in an
 * arena for each: of 30 MB, 3 are in use later.
 */
static void give_memory_back(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK_BYTES);
}

void vp_process_setup(void)
{
	struct rlimit raised;

	give_memory_back();
	fill_standard_files();
	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &old_files))
		return;
	raised = old_files;
	raised.rlim_cur = raised.rlim_max;
	files_raised = !setrlimit(RLIMIT_NOFILE, &raised);
}

void vp_process_restore(void)
{
	signal(SIGXFSZ, SIG_DFL);
	if (files_raised)
		setrlimit(RLIMIT_NOFILE, &old_files);
}
