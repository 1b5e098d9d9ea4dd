// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * births DIR PER_SECOND SECONDS: starts that many processes, each by the name bN (a link to one of
 * DIR/program*) with one of DIR/library* and a life of 20 to 60 ms; every tenth has a copy of the
 * library that was made just before. Prints "bN PROGRAM LIBRARY" for each.
 */
#include "workload.h"

#include <glob.h>
#include <limits.h>
#include <spawn.h>
#include <time.h>

#define NEW_EVERY 10

static glob_t programs, libraries;

static void find(const char *dir, const char *pattern, glob_t *g)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, pattern);
	if (glob(path, 0, NULL, g))
		wl_die("%s", path);
}

static void copy_library(const char *from, const char *to)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	if (fd < 0)
		wl_die("%s", to);
	wl_copy(from, fd);
	close(fd);
}

static void give_birth(const char *dir, long n)
{
	const char *program = programs.gl_pathv[(size_t)n % programs.gl_pathc];
	const char *library = libraries.gl_pathv[(size_t)n % libraries.gl_pathc];
	char link[PATH_MAX], copy[PATH_MAX], ms[16];
	char *argv[] = {link, (char *)library, ms, NULL}, *none[] = {NULL};
	pid_t pid;

	snprintf(link, sizeof(link), "%s/b%ld", dir, n);
	snprintf(ms, sizeof(ms), "%ld", 20 + n * 17 % 41);
	if (symlink(program, link))
		wl_die("%s", link);
	if (n % NEW_EVERY == NEW_EVERY - 1) {
		snprintf(copy, sizeof(copy), "%s/new%ld", dir, n);
		copy_library(library, copy);
		argv[1] = copy;
	}
	printf("b%ld %s %s\n", n, program, argv[1]);
	errno = posix_spawn(&pid, link, NULL, NULL, argv, none);
	if (errno)
		wl_die("%s", link);
}

int main(int argc, char **argv)
{
	double per_second = wl_arg(argc, argv, 2, 50);
	long cnt = (long)(per_second * wl_arg(argc, argv, 3, 10));
	const char *dir = argc > 1 ? argv[1] : ".";
	long step_ns = (long)(1e9 / per_second);
	struct timespec next;

	wl_die_with_parent();
	find(dir, "program*", &programs);
	find(dir, "library*", &libraries);
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long n = 0; n < cnt; n++) {
		give_birth(dir, n);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		next.tv_nsec += step_ns;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}
