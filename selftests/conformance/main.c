// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * vmaprof-selftest: whether bpf_find_vma, iter/task_vma and their neighbours behave on this kernel.
 * Needs root and a kernel with BTF, and nothing else: one file to copy into a VM.
 */
#include "bench.h"
#include "facts.h"
#include "needs.h"
#include "report.h"
#include "run_case.h"

#include <fnmatch.h>
#include <getopt.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const struct ct_group find_vma_cases;
extern const struct ct_group task_vma_cases;
extern const struct ct_group task_vma_read_cases;
extern const struct ct_group verifier_cases;
extern const struct ct_group vma_iter_cases;
extern const struct ct_group dpath_cases;
extern const struct ct_group ringbuf_cases;
extern const struct ct_group task_work_cases;
extern const struct ct_group procmap_query_cases;
extern const struct ct_group lockdep_cases;

static const struct ct_group *const groups[] = {
	&find_vma_cases,      &verifier_cases, &task_vma_cases, &task_vma_read_cases,
	&vma_iter_cases,      &dpath_cases,    &ringbuf_cases,	&task_work_cases,
	&procmap_query_cases, &lockdep_cases, /* judges what the others did */
};

static const char help[] =
	"usage: vmaprof-selftest [--filter PATTERN]... [--ktap | --json] [--junit FILE]\n"
	"       vmaprof-selftest --bench [--filter PATTERN]... [--json]\n"
	"\n"
	"Says case by case whether bpf_find_vma, task_vma iteration and their neighbours behave "
	"on\n"
	"this kernel. Needs root and a kernel with BTF.\n"
	"\n"
	"  -l, --list            the cases, one line each: numbers (README), name, what is "
	"expected\n"
	"  -f, --filter PATTERN  only cases whose name matches: find_vma/*\n"
	"      --ktap            output as the kernel's own selftests have it\n"
	"      --json            an object per case and line\n"
	"      --junit FILE      a report for CI besides\n"
	"      --bench           what the helpers cost on this machine, in ns; --filter "
	"'find_vma.*'\n"
	"      --dangerous       also cases that leave an affected kernel unusable: in a VM only\n"
	"\n"
	"Results: pass, fail, skip (with the reason), xfail (a known bug of this kernel, with its\n"
	"fix), xpass (one that is not there although it should be: a failure). Exit 1 if any "
	"failed.\n";

#define FILTERS_MAX 64

struct args {
	const char *filter[FILTERS_MAX];
	size_t filter_cnt;
	const char *junit;
	enum report_form form;
	bool list, dangerous, bench, ktap, json;
};

static int misused(const char *how)
{
	fprintf(stderr, "vmaprof-selftest: %s\n", how);
	return 2;
}

/* Options that say nothing together: better refused than ignored. */
static int check_args(const struct args *a)
{
	if (a->ktap && a->json)
		return misused("--ktap and --json do not go together");
	if (a->bench && a->list)
		return misused("--bench and --list do not go together");
	if (a->bench && (a->junit || a->ktap))
		return misused("--bench has neither --ktap nor --junit");
	if (a->list && (a->junit || a->ktap || a->json))
		return misused("--list has neither --ktap nor --json nor --junit");
	return 0;
}

static int parse(int argc, char **argv, struct args *a)
{
	static const struct option options[] = {
		{"list", no_argument, NULL, 'l'},
		{"filter", required_argument, NULL, 'f'},
		{"ktap", no_argument, NULL, 'k'},
		{"json", no_argument, NULL, 'j'},
		{"junit", required_argument, NULL, 'u'},
		{"dangerous", no_argument, NULL, 'd'},
		{"bench", no_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "lf:h", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			a->list = true;
			break;
		case 'f':
			if (a->filter_cnt == FILTERS_MAX)
				return misused("more than 64 --filter");
			a->filter[a->filter_cnt++] = optarg;
			break;
		case 'k':
			a->ktap = true;
			break;
		case 'j':
			a->json = true;
			break;
		case 'u':
			a->junit = optarg;
			break;
		case 'd':
			a->dangerous = true;
			break;
		case 'b':
			a->bench = true;
			break;
		case 'h':
			fputs(help, stdout);
			exit(report_written(stdout, "the output") ? 2 : 0);
		default:
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "vmaprof-selftest: '%s' is no option (a case? --filter '%s')\n",
			argv[optind], argv[optind]);
		return 2;
	}
	a->form = a->ktap ? REPORT_KTAP : a->json ? REPORT_JSON : REPORT_TABLE;
	return check_args(a);
}

static bool is_asked_for(const struct args *a, const char *name)
{
	for (size_t i = 0; i < a->filter_cnt; i++) {
		if (!fnmatch(a->filter[i], name, 0))
			return true;
	}
	return a->filter_cnt == 0;
}

static size_t choose(const struct args *a, const struct ct_case **chosen)
{
	size_t cnt = 0;

	for (size_t g = 0; g < sizeof(groups) / sizeof(*groups); g++) {
		for (size_t i = 0; i < groups[g]->cnt; i++) {
			const struct ct_case *c = &groups[g]->cases[i];

			if (is_asked_for(a, c->name))
				chosen[cnt++] = c;
		}
	}
	return cnt;
}

/*
 * With the first event of a task and the last the kernel patches its scheduler. Cases would have it do
 * that some hundred times, and under QEMU's TCG a CPU now and then meets the breakpoint of a patch that
 * is over (seen on 6.12-rt: "Oops: int3" in __schedule). With one event that stays there is one patch.
 */
static void hold_an_event(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
	};

	/* if it cannot be had, cases say so */
	(void)!syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* For a shell it is as if the signal had not been caught. */
static void die_of(int sig)
{
	fprintf(stderr, "vmaprof-selftest: stopped by signal %d\n", sig);
	signal(sig, SIG_DFL);
	raise(sig);
}

static int run_all(const struct args *a, const struct ct_case **cases, size_t cnt)
{
	struct report *r = report_begin(a->form, a->junit, cnt);
	int failed;

	if (!r)
		return 2;
	hold_an_event();
	fact_lockdep_at_start();
	run_case_mind_signals();
	for (size_t i = 0; i < cnt && !run_case_stopped_by(); i++) {
		struct ct_result result;

		report_starts(r, cases[i]);
		run_case(cases[i], a->dangerous, &result);
		if (!run_case_stopped_by())
			report_result(r, cases[i], &result);
	}
	failed = report_end(r);
	if (run_case_stopped_by())
		die_of(run_case_stopped_by());
	if (failed < 0)
		return 2;
	return failed ? 1 : 0;
}

static int list(const struct ct_case **cases, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		printf("%-8s %-44s %s\n", cases[i]->numbers ? cases[i]->numbers : "-",
		       cases[i]->name, cases[i]->says);
	return report_written(stdout, "the output") ? 2 : 0;
}

int main(int argc, char **argv)
{
	static const struct ct_case *chosen[CT_CASES_MAX];
	struct args a = {.form = REPORT_TABLE};
	int err = parse(argc, argv, &a);
	size_t cnt;

	if (err)
		return err;
	cnt = choose(&a, chosen);
	if (!cnt && !a.bench) {
		fputs("vmaprof-selftest: no case matches (--list shows them)\n", stderr);
		return 2;
	}
	if (a.list)
		return list(chosen, cnt);
	if (needs_check())
		return 2;
	if (a.bench)
		return bench_run(a.form == REPORT_JSON, a.filter, a.filter_cnt);
	return run_all(&a, chosen, cnt);
}
