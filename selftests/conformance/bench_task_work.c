// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What it costs to be called in a task. */
#include "bench.h"

#include "facts.h"

#include "prog/task_work.h"

#include "task_work.skel.h"

#include <errno.h>
#include <string.h>

#define TRIPS 1000 /* a round */

static const struct bench_figure schedule = {"task_work.schedule", "bpf_task_work_schedule_resume"},
				 to_callback = {"task_work.to_callback",
						"from its return to the callback in the task"},
				 round_trip = {"task_work.round_trip",
					       "a system call with a callback, less one without"};

struct trips {
	double schedule_ns[TRIPS], to_callback_ns[TRIPS];
	double syscall_ns; /* a trip, on average */
};

static void make_trips(const struct task_work_bpf *s, const struct bpf_program *p, bool is_called,
		       struct trips *t)
{
	uint64_t start = bench_cpu_ns();

	for (int i = 0; i < TRIPS; i++) {
		bench_run_program(p);
		t->schedule_ns[i] = (double)(s->bss->after_ns - s->bss->before_ns);
		if (!is_called)
			continue;
		if (!s->bss->called_ns)
			bench_die("not called before the return to user mode");
		t->to_callback_ns[i] = (double)(s->bss->called_ns - s->bss->after_ns);
	}
	t->syscall_ns = (double)(bench_cpu_ns() - start) / TRIPS;
}

static void measure(const struct task_work_bpf *s, const struct bpf_program *timed)
{
	struct bench_series in_schedule = {0}, until_called = {0}, whole = {0};

	for (int round = 0; round < BENCH_ROUNDS; round++) {
		static struct trips with, without;

		make_trips(s, s->progs.timed_nothing, false, &without);
		make_trips(s, timed, true, &with);
		bench_add(&in_schedule, bench_middle(with.schedule_ns, TRIPS) -
						bench_middle(without.schedule_ns, TRIPS));
		bench_add(&until_called, bench_middle(with.to_callback_ns, TRIPS));
		bench_add(&whole, with.syscall_ns - without.syscall_ns);
	}
	bench_result(&schedule, 0, 0, &in_schedule);
	bench_result(&to_callback, 0, 0, &until_called);
	bench_result(&round_trip, 0, 0, &whole);
}

void bench_task_work(void)
{
	static const char name[] = "bpf_task_work_schedule_resume";
	bool is_plain = fact_arguments(name) == 4;
	struct bpf_program *timed;
	struct task_work_bpf *s;

	if (!bench_is_wanted(&schedule) && !bench_is_wanted(&to_callback) &&
	    !bench_is_wanted(&round_trip))
		return;
	if (!is_plain && !fact_function("bpf_task_work_schedule_resume_impl")) {
		bench_skip(&schedule, 0, "no bpf_task_work: it came with 6.18");
		bench_skip(&to_callback, 0, "no bpf_task_work: it came with 6.18");
		bench_skip(&round_trip, 0, "no bpf_task_work: it came with 6.18");
		return;
	}
	s = task_work_bpf__open();
	if (!s)
		bench_die("the programs do not open: %s", strerror(errno));
	timed = is_plain ? s->progs.timed_plain : s->progs.timed_impl;
	bpf_program__set_autoload(timed, true);
	bpf_program__set_autoload(s->progs.timed_nothing, true);
	if (task_work_bpf__load(s))
		bench_die("the programs do not load: %s", strerror(errno));
	measure(s, timed);
}
