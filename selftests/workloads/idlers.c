// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* build: -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-inline -ldl */
/*
 * idlers N LIBRARY…: N processes, each exec'd, that load the libraries (those that there are), and
 * once a second run for 1 ms in main -> idle_spin. READY when all have loaded them.
 */
#include "workload.h"

#include <dlfcn.h>
#include <time.h>

static volatile unsigned long counter;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void idle_spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		for (int i = 0; i < 1000; i++)
			counter++;
}

/* Not all at once: by its number. Says with a byte that it is there. */
static void idle(long number, int libs, char **lib)
{
	for (int i = 0; i < libs; i++)
		dlopen(lib[i], RTLD_NOW);
	if (write(STDOUT_FILENO, "", 1) != 1)
		_exit(99);
	usleep((useconds_t)(number % 100 * 10000));
	for (;;) {
		idle_spin(1000000);
		usleep(999000);
	}
}

static void start(long number, int out, int libs, char **lib)
{
	char text[32], *argv[libs + 4];
	pid_t pid;

	snprintf(text, sizeof(text), "%ld", number);
	argv[0] = "idler";
	argv[1] = "--one";
	argv[2] = text;
	for (int i = 0; i < libs; i++)
		argv[3 + i] = lib[i];
	argv[3 + libs] = NULL;
	pid = fork();
	if (pid < 0)
		wl_die("fork");
	if (pid == 0) {
		wl_die_with_parent();
		dup2(out, STDOUT_FILENO);
		execv("/proc/self/exe", argv);
		_exit(98);
	}
}

int main(int argc, char **argv)
{
	long n = (long)wl_arg(argc, argv, 1, 1);
	int pipe_of_all[2];
	char byte;

	wl_die_with_parent();
	if (argc > 2 && !strcmp(argv[1], "--one"))
		idle(strtol(argv[2], NULL, 10), argc - 3, argv + 3);
	if (pipe(pipe_of_all))
		wl_die("pipe");
	for (long i = 0; i < n; i++)
		start(i, pipe_of_all[1], argc - 2, argv + 2);
	for (long i = 0; i < n; i++)
		if (read(pipe_of_all[0], &byte, 1) != 1)
			wl_die("read");
	wl_ready("idlers=%ld", n);
	wl_pause();
}
