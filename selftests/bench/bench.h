// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What all benchmarks share: time, medians, children that do not outlive them, and rows for
 * selftests/bench/run, which prints them as a table. A row is a line of tab-separated fields:
 *
 *     row ID FIGURE VALUE UNIT RELATION TARGET VERDICT NOTE
 *
 * ID names it for ever (in --json), FIGURE says to a human what it is. RELATION is <=, <, >=, =
 * or empty, VERDICT met, MISSED, skipped or empty. "group\tTITLE" starts a part of the table.
 */
#ifndef BENCH_H
#define BENCH_H

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BENCH __attribute__((unused)) static

#define BENCH_SERIES_MAX 64

/* One figure over the rounds. */
struct bench_series {
	double v[BENCH_SERIES_MAX];
	size_t cnt;
};

/* The measurement could not be made: the only reason for a benchmark to fail. */
__attribute__((unused, noreturn, format(printf, 1, 2))) static void bench_die(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("bench: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

BENCH uint64_t bench_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

BENCH double bench_ms_since(uint64_t start_ns)
{
	return (double)(bench_now_ns() - start_ns) / 1e6;
}

/*
 * CPU time of this thread. For what does not wait for anything it is the time it takes on an
 * idle machine, and stays nearly that on a busy one.
 */
BENCH uint64_t bench_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

BENCH void bench_sleep_ms(long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

BENCH void bench_add(struct bench_series *s, double value)
{
	if (s->cnt < BENCH_SERIES_MAX)
		s->v[s->cnt++] = value;
}

BENCH int bench_by_value(const void *a, const void *b)
{
	double da = *(const double *)a, db = *(const double *)b;

	return (da > db) - (da < db);
}

/* q: 0 the smallest, 0.5 the median, 1 the largest. */
BENCH double bench_quantile(const struct bench_series *s, double q)
{
	double sorted[BENCH_SERIES_MAX];

	if (s->cnt == 0)
		return NAN;
	memcpy(sorted, s->v, s->cnt * sizeof(*sorted));
	qsort(sorted, s->cnt, sizeof(*sorted), bench_by_value);
	return sorted[(size_t)(q * (double)(s->cnt - 1) + 0.5)];
}

BENCH double bench_median(const struct bench_series *s)
{
	return bench_quantile(s, 0.5);
}

BENCH void bench_group(const char *title)
{
	printf("group\t%s\n", title);
	fflush(stdout);
}

BENCH void bench_row(const char *id, const char *what, double value, const char *unit)
{
	printf("row\t%s\t%s\t%.6g\t%s\t\t\t\t\n", id, what, value, unit);
	fflush(stdout);
}

BENCH bool bench_holds(double value, const char *relation, double target)
{
	if (!strcmp(relation, "<="))
		return value <= target;
	if (!strcmp(relation, "<"))
		return value < target;
	if (!strcmp(relation, ">="))
		return value >= target;
	return value == target;
}

BENCH void bench_target(const char *id, const char *what, double value, const char *unit,
			const char *relation, double target)
{
	printf("row\t%s\t%s\t%.6g\t%s\t%s\t%.6g\t%s\t\n", id, what, value, unit, relation, target,
	       bench_holds(value, relation, target) ? "met" : "MISSED");
	fflush(stdout);
}

BENCH void bench_skip(const char *id, const char *what, const char *why)
{
	printf("row\t%s\t%s\t\t\t\t\tskipped\t%s\n", id, what, why);
	fflush(stdout);
}

/* "DIR/NAME", DIR being that of this executable. Valid until the next call. */
BENCH const char *bench_sibling(const char *name)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (n < 0)
		bench_die("readlink /proc/self/exe: %s", strerror(errno));
	path[n] = '\0';
	slash = strrchr(path, '/');
	snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s", name);
	return path;
}

/* Memory that is ours alone, KiB. */
BENCH double bench_private_kb(void)
{
	char line[256];
	long kb = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "RssAnon: %ld", &kb);
	if (f)
		fclose(f);
	return (double)kb;
}

#define BENCH_VMAPROF	  "../../vmaprof"
#define BENCH_WORKLOAD(x) "../workloads/" x

/* In a new child: ends with us, however we end. */
BENCH void bench_die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

/*
 * Starts argv[0] (a path); what it prints on descriptor `from` (1 or 2) can be read from
 * *out, the other one goes to /dev/null.
 */
BENCH pid_t bench_spawn(char *const argv[], int from, FILE **out)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	if (pipe(fds))
		bench_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		bench_die("fork: %s", strerror(errno));
	if (pid == 0) {
		FILE *null = fopen("/dev/null", "we");

		bench_die_with_parent(parent);
		if (null)
			dup2(fileno(null), from == 1 ? 2 : 1);
		dup2(fds[1], from);
		close(fds[0]);
		close(fds[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	*out = fdopen(fds[0], "r");
	if (!*out)
		bench_die("fdopen: %s", strerror(errno));
	return pid;
}

BENCH void bench_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A workload that has said READY; its output closed. */
BENCH pid_t bench_workload(const char *name, const char *arg)
{
	char *argv[] = {strdup(bench_sibling(name)), (char *)arg, NULL};
	char line[256];
	FILE *out;
	pid_t pid = bench_spawn(argv, 1, &out);

	if (!fgets(line, sizeof(line), out) || strncmp(line, "READY ", 6))
		bench_die("%s did not start", argv[0]);
	fclose(out);
	free(argv[0]);
	return pid;
}

BENCH double bench_cpu_s(const struct rusage *u)
{
	return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
	       (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

#endif
