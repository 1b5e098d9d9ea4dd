/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all workloads share. A workload prints one READY line when it is set up, spins in
 * functions whose names the tests know, and ends when wl_stop becomes set or it is killed.
 *
 * The hot loops contain no calls: a profile then has the exact chain in (nearly) every sample.
 * That is why time is up by a signal that sets a flag, and no clock is read in a loop.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t wl_stop;

/*
 * First in every leaf function that spins: gcc leaves out the frame pointer of an optimized leaf
 * that does not touch the stack, -fno-omit-frame-pointer or not, and its caller is then
 * missing from the chain.
 */
#define WL_KEEP_FRAME() __attribute__((unused)) volatile int wl_frame_ = 0

__attribute__((unused, noreturn, format(printf, 1, 2))) static void wl_die(const char *fmt, ...)
{
	va_list ap;
	int err = errno;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s\n", strerror(err));
	_exit(99);
}

/* Mappings of this process as /proc shows them, [vsyscall] among them. */
__attribute__((unused)) static long wl_count_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	long lines = 0;
	int c;

	if (!f)
		wl_die("open /proc/self/maps");
	while ((c = getc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

/* A test that dies leaves nothing behind. */
__attribute__((unused)) static void wl_die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

__attribute__((unused)) static void wl_on_signal(int sig)
{
	(void)sig;
	wl_stop = 1;
}

/* Sets wl_stop after that much CPU time of the whole process; 0 or less: never. */
__attribute__((unused)) static void wl_stop_after(double cpu_s)
{
	struct sigaction sa;
	struct itimerval it;

	wl_stop = 0;
	if (cpu_s <= 0)
		return;
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = wl_on_signal;
	sa.sa_flags = SA_RESTART;
	sigaction(SIGPROF, &sa, NULL);
	memset(&it, 0, sizeof(it));
	it.it_value.tv_sec = (time_t)cpu_s;
	it.it_value.tv_usec = (suseconds_t)((cpu_s - (double)it.it_value.tv_sec) * 1e6);
	if (!it.it_value.tv_sec && !it.it_value.tv_usec)
		it.it_value.tv_usec = 1;
	setitimer(ITIMER_PROF, &it, NULL);
}

/* The number in argv[i], or fallback if there is none. */
__attribute__((unused)) static double wl_arg(int argc, char **argv, int i, double fallback)
{
	return argc > i ? strtod(argv[i], NULL) : fallback;
}

/* "READY pid=PID " and what fmt says, in one line. */
__attribute__((unused, format(printf, 1, 2))) static void wl_ready(const char *fmt, ...)
{
	va_list ap;

	printf("READY pid=%d ", getpid());
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Never returns: waits to be killed, using no CPU. */
__attribute__((unused, noreturn)) static void wl_pause(void)
{
	for (;;)
		pause();
}

/* Copies the file `from` to the descriptor `to`. */
__attribute__((unused)) static void wl_copy(const char *from, int to)
{
	char buf[65536];
	ssize_t n;
	int fd = open(from, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		wl_die("open %s", from);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			wl_die("copy %s", from);
	if (n < 0)
		wl_die("read %s", from);
	close(fd);
}

/* "DIR/NAME" with the directory of this executable. Valid until the next call. */
__attribute__((unused)) static const char *wl_sibling(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n < 0)
		wl_die("readlink /proc/self/exe");
	path[n] = '\0';
	slash = strrchr(path, '/');
	snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", name);
	return path;
}

#endif
