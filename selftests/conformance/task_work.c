// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bpf_task_work (6.18): a callback in a task, scheduled from where hardly anything is allowed. */
#include "case.h"
#include "facts.h"
#include "thread_state.h"
#include "judge.h"

#include "prog/task_work.h"

#include "task_work.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TIMES	300
#define LIMIT_S 60 /* an emulated guest on a busy machine is slow */

#define RESUME "bpf_task_work_schedule_resume"
#define SIGNAL "bpf_task_work_schedule_signal"

/* ---- running the programs --------------------------------------------------------------------- */

static void be_there(void)
{
	if (!fact_function(RESUME) && !fact_function(RESUME "_impl"))
		ct_skip("no bpf_task_work: it came with 6.18");
}

/* Has NAME the form of 7.0? Else it is NAME_impl. */
static bool is_plain(void)
{
	return fact_arguments(RESUME) == 4;
}

static uint64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec;
}

static uint64_t value(const __u64 *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* One program of the object, and what it is to do. */
static struct task_work_bpf *load(bool in_interrupt, uint32_t asked)
{
	struct task_work_bpf *s;
	struct bpf_program *p;

	be_there();
	s = task_work_bpf__open();
	ct_require(s != NULL, "the programs do not open: %s", strerror(errno));
	if (is_plain())
		p = in_interrupt ? s->progs.in_interrupt_plain : s->progs.in_syscall_plain;
	else
		p = in_interrupt ? s->progs.in_interrupt_impl : s->progs.in_syscall_impl;
	bpf_program__set_autoload(p, true);
	ct_require(task_work_bpf__load(s) == 0, "the programs do not load: %s", strerror(errno));
	s->bss->asked = asked;
	s->bss->addr = (uint64_t)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return s;
}

static struct bpf_link *attach_samples(struct task_work_bpf *s)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 5000,
		.freq = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link;

	ct_require(fd >= 0, "no cpu-clock event: %s", strerror(errno));
	s->bss->wanted_tid = (uint32_t)gettid();
	link = bpf_program__attach_perf_event(
		is_plain() ? s->progs.in_interrupt_plain : s->progs.in_interrupt_impl, fd);
	ct_require(link != NULL, "attach: %s", strerror(errno));
	return link;
}

/* Spins in user mode until a counter has come that far. */
static void spin_until(const __u64 *counter, uint64_t times)
{
	uint64_t until = now_s() + LIMIT_S;

	while (value(counter) < times && now_s() <= until)
		for (volatile int i = 0; i < 10000; i++)
			;
	ct_require(value(counter) >= times, "%llu times of %llu",
		   (unsigned long long)value(counter), (unsigned long long)times);
}

static const char *text(const struct answers *a)
{
	static char buf[4][96];
	static unsigned int turn;
	char *t = buf[turn++ % 4];

	snprintf(t, sizeof(buf[0]), "ok %llu, busy %llu, other %llu (last %lld)", a->ok, a->busy,
		 a->other, a->last);
	return t;
}

/* ---- from an interrupt ------------------------------------------------------------------------ */

static void from_an_interrupt(void)
{
	struct task_work_bpf *s = load(true, 0);
	struct bpf_link *link = attach_samples(s);

	spin_until(&s->bss->called, TIMES);
	bpf_link__destroy(link);
	/* the last one's callback came before destroy returned to user mode */
	ct_expect(s->bss->called == s->bss->scheduled.ok, "%llu callbacks, scheduled: %s",
		  (unsigned long long)s->bss->called, text(&s->bss->scheduled));
	ct_expect(s->bss->scheduled.other == 0, "scheduled: %s", text(&s->bss->scheduled));
	ct_expect(s->bss->in_another_thread == 0, "%llu in another thread",
		  (unsigned long long)s->bss->in_another_thread);
	ct_expect(s->bss->found.ok == FINDS * s->bss->called, "bpf_find_vma: %s",
		  text(&s->bss->found));
}

static void a_second_time(void)
{
	struct task_work_bpf *s = load(true, TW_TWICE);
	struct bpf_link *link = attach_samples(s);

	spin_until(&s->bss->called, TIMES);
	bpf_link__destroy(link);
	ct_expect(s->bss->again.ok == 0 && s->bss->again.other == 0 && s->bss->again.busy > 0,
		  "the second: %s", text(&s->bss->again));
	ct_expect(s->bss->called == s->bss->scheduled.ok, "%llu callbacks, scheduled: %s",
		  (unsigned long long)s->bss->called, text(&s->bss->scheduled));
}

/*
 * Deleted in the same interrupt: before the kernel has even told the task. A value that is not given
 * back would be missed after WORKS_MAX samples.
 */
static void deleted_at_once(void)
{
	struct task_work_bpf *s = load(true, TW_DELETE);
	struct bpf_link *link = attach_samples(s);
	uint64_t called;

	spin_until(&s->bss->entered, TIMES);
	called = value(&s->bss->called);
	ct_expect(s->bss->scheduled.ok >= TIMES, "scheduled: %s", text(&s->bss->scheduled));
	ct_expect(called == 0, "%llu callbacks", (unsigned long long)called);
	ct_expect(s->bss->no_value == 0, "no room for a value %llu times",
		  (unsigned long long)s->bss->no_value);
	/* and it works as before when nobody deletes */
	s->bss->asked = 0;
	spin_until(&s->bss->called, 10);
	bpf_link__destroy(link);
}

/* ---- in a thread that sleeps ------------------------------------------------------------------ */

struct sleeper {
	int pipe[2];
	volatile pid_t tid;
	volatile bool may_read;
	pthread_t thread;
};

/* Its read(pipe) is what the program schedules in. */
static void *sleep_in_read(void *arg)
{
	struct sleeper *l = arg;
	char byte;

	l->tid = gettid();
	while (!l->may_read)
		poll(NULL, 0, 1);
	(void)!read(l->pipe[0], &byte, 1);
	return NULL;
}

/* Waits until the counter is not 0. */
static bool comes(const __u64 *counter)
{
	uint64_t until = now_s() + LIMIT_S;

	while (!value(counter) && now_s() <= until)
		poll(NULL, 0, 1);
	return value(counter) != 0;
}

/* A thread that sleeps in read(), with work scheduled at that call's entry. */
static struct bpf_link *start_sleeper(struct sleeper *l, struct task_work_bpf *s)
{
	struct bpf_link *link;

	*l = (struct sleeper){0};
	ct_require(pipe(l->pipe) == 0 && !pthread_create(&l->thread, NULL, sleep_in_read, l),
		   "a thread: %s", strerror(errno));
	while (!l->tid)
		poll(NULL, 0, 1);
	s->bss->wanted_tid = (uint32_t)l->tid;
	s->bss->wanted_fd = (uint64_t)l->pipe[0];
	/* a call that is interrupted is entered again */
	s->data->entered_max = 1;
	link = bpf_program__attach(is_plain() ? s->progs.in_syscall_plain
					      : s->progs.in_syscall_impl);
	ct_require(link != NULL, "raw_tp/sys_enter: %s", strerror(errno));
	l->may_read = true;
	ct_require(comes(&s->bss->entered), "its read() was not seen");
	ct_require(s->bss->scheduled.ok == 1, "scheduled: %s", text(&s->bss->scheduled));
	return link;
}

/* It sleeps, and has for a while: what was to wake it would have. */
static void wait_until_asleep(const struct sleeper *l)
{
	uint64_t until = now_s() + LIMIT_S;
	int asleep = 0;

	while (asleep < 50 && now_s() <= until) {
		asleep = thread_state(l->tid) == 'S' ? asleep + 1 : 0;
		poll(NULL, 0, 1);
	}
	ct_require(asleep == 50, "its state is %c", thread_state(l->tid));
}

static void end_sleeper(struct sleeper *l)
{
	ct_require(write(l->pipe[1], "", 1) == 1, "write: %s", strerror(errno));
	pthread_join(l->thread, NULL);
}

static void when_the_task_sleeps(void)
{
	struct task_work_bpf *s = load(false, 0);
	struct sleeper l;

	start_sleeper(&l, s);
	wait_until_asleep(&l);
	ct_expect(value(&s->bss->called) == 0, "called while it sleeps");
	end_sleeper(&l);
	ct_expect(value(&s->bss->called) == 1, "called %llu times after that",
		  (unsigned long long)s->bss->called);
	ct_expect(s->bss->in_another_thread == 0, "in another thread");
}

static void with_a_signal(void)
{
	struct task_work_bpf *s = load(false, TW_SIGNAL);
	struct sleeper l;
	struct bpf_link *link = start_sleeper(&l, s);

	ct_expect(comes(&s->bss->called), "not called while it sleeps");
	ct_expect(s->bss->in_another_thread == 0, "in another thread");
	/* the call begins anew, and is not seen to have been interrupted */
	bpf_link__destroy(link);
	wait_until_asleep(&l);
	end_sleeper(&l);
}

static void deleted_while_it_waits(void)
{
	struct task_work_bpf *s = load(false, 0);
	struct sleeper l;
	uint32_t key = 0;

	start_sleeper(&l, s);
	wait_until_asleep(&l);
	ct_require(bpf_map__delete_elem(s->maps.works, &key, sizeof(key), 0) == 0, "no value");
	end_sleeper(&l);
	ct_expect(value(&s->bss->called) == 0, "called");
}

/* ---- what is refused -------------------------------------------------------------------------- */

/* Its name in this kernel's form. */
static const char *formed(const char *program)
{
	static char name[64];

	snprintf(name, sizeof(name), "%s_%s", program, is_plain() ? "plain" : "impl");
	return name;
}

static void programs_that_are_refused(void)
{
	static const char *const wrong_map[] = {"doesn't match map pointer", NULL};
	static const char *const untrusted[] = {"must be referenced or trusted", NULL};
	static const char *const no_map[] = {"doesn't point to a map value", NULL};

	be_there();
	expect_loads(task_work_bpf__elf_bytes, formed("in_interrupt"));
	expect_refused(task_work_bpf__elf_bytes, formed("of_another_map"), wrong_map);
	expect_refused(task_work_bpf__elf_bytes, formed("of_an_untrusted_task"), untrusted);
	expect_refused(task_work_bpf__elf_bytes, formed("of_no_map"), no_map);
}

static int create_map(const struct task_work_bpf *s, enum bpf_map_type type)
{
	DECLARE_LIBBPF_OPTS(bpf_map_create_opts, opts,
			    .btf_fd = (uint32_t)bpf_object__btf_fd(s->obj),
			    .btf_key_type_id = bpf_map__btf_key_type_id(s->maps.works),
			    .btf_value_type_id = bpf_map__btf_value_type_id(s->maps.works), );
	int fd = bpf_map_create(type, "works", sizeof(uint32_t), bpf_map__value_size(s->maps.works),
				WORKS_MAX, &opts);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? -errno : 0;
}

static void maps_that_are_refused(void)
{
	static const struct {
		enum bpf_map_type type;
		const char *what;
		int err;
	} maps[] = {
		{BPF_MAP_TYPE_HASH, "a hash", 0},
		{BPF_MAP_TYPE_LRU_HASH, "an LRU hash", 0},
		{BPF_MAP_TYPE_ARRAY, "an array", 0},
		{BPF_MAP_TYPE_PERCPU_ARRAY, "a per-CPU array", -EOPNOTSUPP},
		{BPF_MAP_TYPE_PERCPU_HASH, "a per-CPU hash", -EOPNOTSUPP},
	};
	struct task_work_bpf *s = load(true, 0);

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		int err = create_map(s, maps[i].type);

		ct_expect(err == maps[i].err, "%s: %d instead of %d", maps[i].what, err,
			  maps[i].err);
	}
}

/* ---- names ------------------------------------------------------------------------------------ */

static void names(void)
{
	be_there();
	if (fact_function(RESUME)) {
		ct_expect(fact_arguments(RESUME) == 4, RESUME " has %d arguments",
			  fact_arguments(RESUME));
		ct_expect(fact_arguments(SIGNAL) == 4, SIGNAL " has %d arguments",
			  fact_arguments(SIGNAL));
		return;
	}
	ct_expect(fact_arguments(RESUME "_impl") == 5, RESUME "_impl has %d arguments",
		  fact_arguments(RESUME "_impl"));
	ct_expect(fact_arguments(SIGNAL "_impl") == 5, SIGNAL "_impl has %d arguments",
		  fact_arguments(SIGNAL "_impl"));
}

static const struct ct_case cases[] = {
	CT_CASE("task_work/", from_an_interrupt,
		"called in the same thread; bpf_find_vma always answers there", .numbers = "69"),
	CT_CASE("task_work/", when_the_task_sleeps, "called when it returns to user mode",
		.numbers = "69"),
	CT_CASE("task_work/", with_a_signal, "called at once", .numbers = "69"),
	CT_CASE("task_work/", a_second_time, "-EBUSY while it is pending", .numbers = "70"),
	CT_CASE("task_work/", programs_that_are_refused,
		"another map's value, one of no map, an untrusted task", .numbers = "71"),
	CT_CASE("task_work/", maps_that_are_refused, "-EOPNOTSUPP for those that are per CPU",
		.numbers = "71"),
	CT_CASE("task_work/", deleted_at_once, "not called; the value can be had again",
		.numbers = "72"),
	CT_CASE("task_work/", deleted_while_it_waits, "not called", .numbers = "72"),
	CT_CASE("task_work/", names, "NAME_impl with 5 arguments (6.18) or NAME with 4 (7.0)",
		.numbers = "73"),
};

CT_GROUP(task_work_cases, cases);
