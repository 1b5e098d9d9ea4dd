/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vmaprof-selftest --bench: what the helpers cost. Nothing is asserted of a time; a result that is wrong
 * ends the run, because its time says nothing.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_ROUNDS 31

/* One figure, a value a round. */
struct bench_series {
	double ns[BENCH_ROUNDS];
	size_t cnt;
};

/* A figure. name is for programs and filters and stays as it is; what is for people. */
struct bench_figure {
	const char *name, *what;
};

/*
 * All of them, or those whose name matches a pattern. 0, 1: one could not be measured, 2: none matches,
 * or the output could not be written.
 */
int bench_run(bool json, const char *const *filter, size_t filter_cnt);

/* ---- for what measures ------------------------------------------------------------------------ */

bool bench_is_wanted(const struct bench_figure *f);

/* The median; puts the values in order. */
double bench_middle(double *values, size_t cnt);

/* Ignored when the series is full. */
void bench_add(struct bench_series *s, double ns);

/* vmas: how many mappings were made for it; vmas_in_all: with the process's own. 0: it is about none. */
void bench_result(const struct bench_figure *f, long vmas, long vmas_in_all,
		  const struct bench_series *s);

void bench_skip(const struct bench_figure *f, long vmas, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The run ends with exit 1. */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/*
 * CPU time of this thread: nearly the same on a busy machine. Where it is counted in ticks: the time.
 * Only differences say something.
 */
uint64_t bench_cpu_ns(void);
uint64_t bench_now_ns(void);

/* Test run of a program. Ends the run if it fails or returns something else than 0. */
struct bpf_program;
void bench_run_program(const struct bpf_program *p);

/* ---- parts: each is run in a process of its own ------------------------------------------------- */

/* With that many mappings. */
void bench_vmas(long vmas);
/* Whether bench_vmas() has anything to do. */
bool bench_vmas_is_wanted(void);
/* Says why there is nothing about that many. */
void bench_vmas_skip(long vmas, const char *why);

void bench_task_work(void);
void bench_ring(void);

#endif
