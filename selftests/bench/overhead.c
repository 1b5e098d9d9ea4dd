// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What `vmaprof record` itself costs at 999 Hz on a busy machine, beside perf record where that is
 * installed.
 */
#include "bench.h"

#include <ctype.h>

#define SECONDS	      10
#define SHORT_SECONDS 0.1

struct result {
	double cpu_s, rss_mb;
	double samples, lost; /* -1: not told */
	int status;
};

/* "1986 samples in 1.0 s, …, 0 lost" */
static void read_counts(const char *line, struct result *r)
{
	const char *lost = strstr(line, " lost");
	char *end;
	double samples = strtod(line, &end);

	if (end == line || strncmp(end, " samples in ", 12) || !lost)
		return;
	while (lost > line && isdigit((unsigned char)lost[-1]))
		lost--;
	r->samples = samples;
	r->lost = strtod(lost, NULL);
}

static struct result run(char *const argv[])
{
	struct result r = {.samples = -1, .lost = -1};
	char line[4096];
	struct rusage u;
	FILE *err;
	pid_t pid = bench_spawn(argv, 2, &err);

	while (fgets(line, sizeof(line), err))
		read_counts(line, &r);
	fclose(err);
	if (wait4(pid, &r.status, 0, &u) != pid)
		bench_die("%s: %s", argv[0], strerror(errno));
	r.cpu_s = bench_cpu_s(&u);
	r.rss_mb = (double)u.ru_maxrss / 1024;
	return r;
}

static struct result run_vmaprof(double seconds, const char *output)
{
	char duration[32];
	char *argv[] = {strdup(bench_sibling(BENCH_VMAPROF)),
			"record",
			"-a",
			"-F",
			"999",
			"--duration",
			duration,
			"-o",
			(char *)output,
			NULL};
	struct result r;

	snprintf(duration, sizeof(duration), "%g", seconds);
	r = run(argv);
	if (r.status || r.samples < 0)
		bench_die("%s record failed", argv[0]);
	free(argv[0]);
	return r;
}

static void report_vmaprof(const struct result *r, const struct result *brief)
{
	double steady = (r->cpu_s - brief->cpu_s) / (SECONDS - SHORT_SECONDS);

	bench_row("record.samples", "samples", r->samples, "");
	bench_target("record.lost", "samples lost", r->lost, "", "=", 0);
	bench_row("record.cpu", "CPU time of vmaprof", r->cpu_s, "s");
	bench_row("record.cpu_fixed", "… of it start and end (a recording of 0.1 s)", brief->cpu_s,
		  "s");
	bench_row("record.cpu_steady", "… of it while sampling, of one CPU", steady * 100, "%");
	bench_row("record.rss", "memory (resident, peak)", r->rss_mb, "MB");
}

static void compare_perf(const struct result *ours, const char *output)
{
	char duration[32];
	char *argv[] = {"perf", "record",	"-F", "999",   "-g",	 "-a",
			"-o",	(char *)output, "--", "sleep", duration, NULL};
	struct result r;

	snprintf(duration, sizeof(duration), "%d", SECONDS);
	r = run(argv);
	if (r.status) {
		bench_skip("record.perf", "perf record",
			   "perf is not installed, or does not work here");
		return;
	}
	bench_row("record.perf_cpu", "CPU time of perf record -F 999 -g -a (names not looked up)",
		  r.cpu_s, "s");
	bench_row("record.perf_rss", "… its memory", r.rss_mb, "MB");
	bench_row("record.to_perf", "CPU time, vmaprof : perf record", ours->cpu_s / r.cpu_s, "x");
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	char dir[4096], data[4200];
	struct result brief, whole;
	pid_t workloads[3];

	snprintf(dir, sizeof(dir), "%s/vmaprof-bench.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		bench_die("%s: %s", dir, strerror(errno));
	snprintf(data, sizeof(data), "%s/perf.data", dir);
	workloads[0] = bench_workload(BENCH_WORKLOAD("recurse"), "30");
	workloads[1] = bench_workload(BENCH_WORKLOAD("shares"), NULL);
	workloads[2] = bench_workload(BENCH_WORKLOAD("threads"), NULL);

	brief = run_vmaprof(SHORT_SECONDS, "/dev/null");
	whole = run_vmaprof(SECONDS, "/dev/null");
	bench_group("Recording all CPUs at 999 Hz for 10 s on a busy machine");
	report_vmaprof(&whole, &brief);
	compare_perf(&whole, data);

	for (int i = 0; i < 3; i++)
		bench_kill(workloads[i]);
	unlink(data);
	rmdir(dir);
	return 0;
}
