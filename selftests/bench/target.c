// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a process pays for being watched: CPU time of mapping and unmapping a page of an executable
 * file, without a recorder and with one, by the way in which it learns of mappings.
 */
#include "bench.h"

#include <fcntl.h>
#include <sys/mman.h>

#define ROUNDS 5
#define PAIRS  50000
#define PAGE   4096UL

enum watcher { NOBODY, AS_IT_LIKES, FENTRY, KPROBE, SIDEBAND, PERF, WATCHER_CNT };

static const struct {
	const char *id, *what;
	const char *track; /* of vmaprof record; NULL: no such option */
} watchers[WATCHER_CNT] = {
	[NOBODY] = {"nobody", "mmap and munmap of executable file memory", NULL},
	[AS_IT_LIKES] = {"record", "… with vmaprof record -p", NULL},
	[FENTRY] = {"fentry", "… --track=fentry", "--track=fentry"},
	[KPROBE] = {"kprobe", "… --track=kprobe", "--track=kprobe"},
	[SIDEBAND] = {"sideband", "… --track=sideband", "--track=sideband"},
	[PERF] = {"perf", "… with perf record -g -p", NULL},
};

struct watching {
	struct bench_series ns[WATCHER_CNT];
	char why_not[WATCHER_CNT][200]; /* empty: it works */
	char pid_text[16];
	int file;
};

static double measure_pairs(const struct watching *w)
{
	uint64_t start = bench_cpu_ns();

	for (int i = 0; i < PAIRS; i++) {
		void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, w->file, 0);

		if (p == MAP_FAILED)
			bench_die("mmap: %s", strerror(errno));
		munmap(p, PAGE);
	}
	return (double)(bench_cpu_ns() - start) / PAIRS;
}

/* Until it samples; else why not. */
static bool wait_until_it_samples(FILE *err, char why[200])
{
	char line[4096];

	snprintf(why, 200, "it said nothing");
	while (fgets(line, sizeof(line), err)) {
		line[strcspn(line, "\t\n")] = '\0';
		if (strstr(line, "vmaprof: sampling "))
			return true;
		snprintf(why, 200, "%.199s", line);
	}
	return false;
}

static void measure_record(struct watching *w, enum watcher which)
{
	char *argv[] = {strdup(bench_sibling(BENCH_VMAPROF)),
			"record",
			"-p",
			w->pid_text,
			"-o",
			"/dev/null",
			(char *)watchers[which].track,
			NULL};
	char why[200];
	FILE *err;
	pid_t pid = bench_spawn(argv, 2, &err);
	bool works = wait_until_it_samples(err, why);

	free(argv[0]);
	if (works)
		bench_add(&w->ns[which], measure_pairs(w));
	else
		memcpy(w->why_not[which], why, sizeof(why));
	bench_kill(pid);
	fclose(err);
}

static void measure_perf(struct watching *w)
{
	char *argv[] = {"perf", "record",    "-F", "99",	"-g",
			"-o",	"/dev/null", "-p", w->pid_text, NULL};
	FILE *err;
	pid_t pid = bench_spawn(argv, 2, &err);

	/* it says nothing before its end */
	bench_sleep_ms(1000);
	if (waitpid(pid, NULL, WNOHANG) == pid) {
		snprintf(w->why_not[PERF], sizeof(w->why_not[PERF]),
			 "not installed, or does not work here");
	} else {
		bench_add(&w->ns[PERF], measure_pairs(w));
		bench_kill(pid);
	}
	fclose(err);
}

static void measure(struct watching *w, enum watcher which)
{
	if (w->why_not[which][0])
		return;
	if (which == NOBODY)
		bench_add(&w->ns[which], measure_pairs(w));
	else if (which == PERF)
		measure_perf(w);
	else
		measure_record(w, which);
}

static void report(const struct watching *w)
{
	double alone = bench_median(&w->ns[NOBODY]);

	for (enum watcher i = 0; i < WATCHER_CNT; i++) {
		char id[64];

		snprintf(id, sizeof(id), "target.%s", watchers[i].id);
		if (w->why_not[i][0]) {
			bench_skip(id, watchers[i].what, w->why_not[i]);
			continue;
		}
		bench_row(id, watchers[i].what, bench_median(&w->ns[i]), "ns");
		snprintf(id, sizeof(id), "target.%s_more", watchers[i].id);
		if (i != NOBODY)
			bench_row(id, "… … more than without",
				  (bench_median(&w->ns[i]) / alone - 1) * 100, "%");
	}
}

int main(void)
{
	static struct watching w;

	w.file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (w.file < 0)
		bench_die("/proc/self/exe: %s", strerror(errno));
	snprintf(w.pid_text, sizeof(w.pid_text), "%d", getpid());
	measure_pairs(&w);
	for (int round = 0; round < ROUNDS; round++)
		for (enum watcher i = 0; i < WATCHER_CNT; i++)
			measure(&w, i);
	bench_group("What being watched costs a process that maps and unmaps files");
	report(&w);
	return 0;
}
