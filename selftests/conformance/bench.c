// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "case.h"
#include "bench.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_MAP_COUNT "/proc/sys/vm/max_map_count"
#define OWN_VMAS      1000 /* more than a process has by itself */

static const long sizes[] = {10, 100, 1000, 10000, 100000, 200000};

static struct {
	bool is_json;
	const char *const *filter;
	size_t filter_cnt;
	volatile unsigned long *rows; /* shared with the parts' processes */
} bench;

/* ---- rows ------------------------------------------------------------------------------------- */

bool bench_is_wanted(const struct bench_figure *f)
{
	for (size_t i = 0; i < bench.filter_cnt; i++) {
		if (!fnmatch(bench.filter[i], f->name, 0))
			return true;
	}
	return bench.filter_cnt == 0;
}

void bench_add(struct bench_series *s, double ns)
{
	if (s->cnt < BENCH_ROUNDS)
		s->ns[s->cnt++] = ns;
}

static int by_value(const void *a, const void *b)
{
	double da = *(const double *)a, db = *(const double *)b;

	return (da > db) - (da < db);
}

double bench_middle(double *values, size_t cnt)
{
	qsort(values, cnt, sizeof(*values), by_value);
	return values[cnt / 2];
}

static void head(void)
{
	struct utsname u;

	if (bench.is_json)
		return;
	uname(&u);
	printf("kernel %s, %ld CPUs\n", u.release, sysconf(_SC_NPROCESSORS_ONLN));
	printf("%-52s %8s %10s %10s %6s\n", "", "VMAs", "ns, min", "median", "rounds");
}

static void row_begins(const struct bench_figure *f, long vmas)
{
	char number[24] = "";

	if (vmas)
		snprintf(number, sizeof(number), "%ld", vmas);
	++*bench.rows;
	if (bench.is_json)
		printf("{\"bench\":\"%s\",\"vmas\":%s", f->name, vmas ? number : "null");
	else
		printf("%-52s %8s ", f->what, number);
}

void bench_result(const struct bench_figure *f, long vmas, long vmas_in_all,
		  const struct bench_series *s)
{
	struct bench_series sorted = *s;
	double min, median;

	if (!bench_is_wanted(f))
		return;
	if (!s->cnt)
		bench_die("%s: no value", f->name);
	median = bench_middle(sorted.ns, sorted.cnt);
	min = sorted.ns[0];
	row_begins(f, vmas);
	if (bench.is_json && vmas)
		printf(",\"vmas_in_all\":%ld", vmas_in_all);
	if (bench.is_json)
		printf(",\"min_ns\":%.1f,\"median_ns\":%.1f,\"rounds\":%zu,\"skipped\":null}\n",
		       min, median, s->cnt);
	else
		printf("%10.1f %10.1f %6zu\n", min, median, s->cnt);
}

void bench_skip(const struct bench_figure *f, long vmas, const char *format, ...)
{
	char why[256];
	va_list args;

	if (!bench_is_wanted(f))
		return;
	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	row_begins(f, vmas);
	if (bench.is_json)
		printf(",\"skipped\":\"%s\"}\n", why);
	else
		printf("skipped: %s\n", why);
}

void bench_die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("vmaprof-selftest: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

/* ---- time ------------------------------------------------------------------------------------- */

static uint64_t ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#define STEP_MAX_NS 100000

/* A machine without a stable TSC counts CPU time in ticks: of milliseconds. */
static bool has_fine_cpu_time(void)
{
	uint64_t least = UINT64_MAX, last = ns_of(CLOCK_THREAD_CPUTIME_ID);

	for (int steps = 0; steps < 8;) {
		uint64_t now = ns_of(CLOCK_THREAD_CPUTIME_ID);

		if (now == last)
			continue;
		least = now - last < least ? now - last : least;
		last = now;
		steps++;
	}
	return least <= STEP_MAX_NS;
}

uint64_t bench_cpu_ns(void)
{
	static clockid_t clock = -1;

	if (clock == -1)
		clock = has_fine_cpu_time() ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	return ns_of(clock);
}

uint64_t bench_now_ns(void)
{
	return ns_of(CLOCK_MONOTONIC);
}

void bench_run_program(const struct bpf_program *p)
{
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err = bpf_prog_test_run_opts(bpf_program__fd(p), &opts);

	if (err || opts.retval)
		bench_die("%s: %s, returned %u", bpf_program__name(p), strerror(-err), opts.retval);
}

/* ---- how many mappings a process may have ------------------------------------------------------ */

static struct {
	long before, ours; /* ours 0: not changed */
} limit;

static long read_limit(void)
{
	FILE *f = fopen(MAX_MAP_COUNT, "re");
	long n = 0;

	if (f) {
		(void)!fscanf(f, "%ld", &n);
		fclose(f);
	}
	return n;
}

/* 0 or an errno. */
static int write_limit(long n)
{
	FILE *f = fopen(MAX_MAP_COUNT, "we");
	int err = 0;

	if (!f)
		return errno;
	if (fprintf(f, "%ld\n", n) < 0 || fflush(f))
		err = errno;
	fclose(f);
	return err;
}

static void put_limit_back(void)
{
	/* unless somebody else has changed it meanwhile */
	if (limit.ours && read_limit() == limit.ours)
		write_limit(limit.before);
	limit.ours = 0;
}

/* 0, or why there cannot be as many. */
static int allow(long vmas)
{
	long now = read_limit(), wanted = vmas + OWN_VMAS;
	int err;

	if (now >= wanted)
		return 0;
	err = write_limit(wanted);
	if (err)
		return err;
	if (!limit.ours)
		limit.before = now;
	limit.ours = wanted;
	return 0;
}

/* ---- parts ------------------------------------------------------------------------------------ */

static volatile sig_atomic_t is_interrupted;

static void on_signal(int sig)
{
	(void)sig;
	is_interrupted = 1;
}

static void catch_signals(void)
{
	struct sigaction a = {.sa_handler = on_signal};

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	sigaction(SIGHUP, &a, NULL);
}

/* A part's exit: what it measured is lost. */
#define EXIT_UNWRITTEN 3

static bool is_unwritten;

/* Nothing more to measure. */
static bool is_over(void)
{
	return is_interrupted || is_unwritten;
}

static void be_the_part(void (*part)(long), long vmas)
{
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	part(vmas);
	_exit(fflush(stdout) || ferror(stdout) ? EXIT_UNWRITTEN : 0);
}

/* Did it go well? */
static bool run_part(void (*part)(long), long vmas)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = ct_fork();
	if (pid == 0)
		be_the_part(part, vmas);
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
		/* a terminal sends it to both, others to us alone */
		if (is_interrupted)
			kill(pid, SIGTERM);
	}
	if (WIFSIGNALED(status) && !is_interrupted)
		fprintf(stderr, "vmaprof-selftest: a measurement died of signal %d\n",
			WTERMSIG(status));
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_UNWRITTEN)
		is_unwritten = true;
	return status == 0;
}

static void task_work_part(long vmas)
{
	(void)vmas;
	bench_task_work();
}

static void ring_part(long vmas)
{
	(void)vmas;
	bench_ring();
}

static bool run_sizes(void)
{
	bool ok = true;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes) && !is_over(); i++) {
		int err = allow(sizes[i]);
		char why[128];

		if (!err) {
			ok &= run_part(bench_vmas, sizes[i]);
			continue;
		}
		snprintf(why, sizeof(why), "vm.max_map_count is %ld and cannot be raised: %s",
			 read_limit(), strerror(err));
		bench_vmas_skip(sizes[i], why);
	}
	return ok;
}

int bench_run(bool json, const char *const *filter, size_t filter_cnt)
{
	static unsigned long none;
	unsigned long *rows = mmap(NULL, sizeof(*rows), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool ok = true;

	bench.is_json = json;
	bench.filter = filter;
	bench.filter_cnt = filter_cnt;
	bench.rows = rows == MAP_FAILED ? &none : rows;
	setvbuf(stdout, NULL, _IOLBF, 0);
	catch_signals();
	head();
	if (bench_vmas_is_wanted())
		ok &= run_sizes();
	put_limit_back();
	if (!is_over())
		ok &= run_part(task_work_part, 0);
	if (!is_over())
		ok &= run_part(ring_part, 0);
	if (is_interrupted)
		return 130;
	if (is_unwritten || fflush(stdout) || ferror(stdout)) {
		fputs("vmaprof-selftest: the output could not be written\n", stderr);
		return 2;
	}
	if (ok && !*bench.rows) {
		fputs("vmaprof-selftest: no figure has such a name\n", stderr);
		return 2;
	}
	return ok ? 0 : 1;
}
