// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* iter/task_vma: whose mappings it visits, without a filter and with one. */
#include "case.h"
#include "facts.h"
#include "target.h"
#include "vma_walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define READS_MAX  10000
#define RANGES_MAX 512
#define NOBODY	   0x3fffffff /* above every pid_max */

/* What /proc says of the process that is looked at. */
static uint64_t range[RANGES_MAX][2];
static size_t range_cnt;

/* The records of a thread are these ranges, in this order, each once. */
static void expect_ranges(const struct walk *w, pid_t tgid, pid_t tid)
{
	size_t nth = 0;

	for (size_t i = 0; i < w->s->bss->seen_cnt; i++) {
		const struct seen *s = &w->seen[i];

		if ((pid_t)s->tgid != tgid || (pid_t)s->pid != tid)
			continue;
		ct_require(nth < range_cnt, "%d: more than the %zu mappings of /proc: %llx-%llx",
			   tid, range_cnt, s->start, s->end);
		ct_require(s->start == range[nth][0] && s->end == range[nth][1],
			   "%d, number %zu: %llx-%llx, in /proc %lx-%lx", tid, nth, s->start,
			   s->end, range[nth][0], range[nth][1]);
		nth++;
	}
	ct_expect(nth == range_cnt, "%d: %zu mappings of %zu", tid, nth, range_cnt);
}

static void look_at(pid_t pid)
{
	range_cnt = target_ranges(pid, range, RANGES_MAX);
	ct_require(range_cnt > 3, "/proc/%d/maps has %zu lines", pid, range_cnt);
}

/* A pass over everybody, of which one process is written down. */
static void walk_without_filter(struct walk *w, pid_t tgid)
{
	walk_load(w);
	w->s->bss->wanted_tgid = (uint32_t)tgid;
	walk_begin(w, NULL);
	walk_to_end(w, READS_MAX);
}

static void walk_with(struct walk *w, const struct walk_filter *filter)
{
	walk_load(w);
	w->s->bss->wanted_tgid = 0;
	walk_begin(w, filter);
	walk_to_end(w, READS_MAX);
}

static void what_proc_maps_shows(void)
{
	struct target t = target_start(TARGET_PLAIN);
	struct walk w;

	look_at(t.pid);
	walk_without_filter(&w, t.pid);
	expect_ranges(&w, t.pid, t.pid);
}

static void threads_are_no_processes(void)
{
	struct target t = target_start(TARGET_THREADS);
	struct walk w;

	look_at(t.pid);
	walk_without_filter(&w, t.pid);
	expect_ranges(&w, t.pid, t.pid);
	ct_expect(walk_cnt_of(&w, (uint32_t)t.pid, (uint32_t)t.plain) == 0,
		  "a thread with the leader's files is visited");
	expect_ranges(&w, t.pid, t.own_files);
	ct_expect(walk_thread_cnt(&w, (uint32_t)t.pid) == 2, "%zu tasks instead of 2",
		  walk_thread_cnt(&w, (uint32_t)t.pid));
}

static void leader_that_has_exited(void)
{
	struct target t = target_start(TARGET_ZOMBIE_LEADER);
	struct walk w;

	look_at(t.plain);
	walk_without_filter(&w, t.pid);
	ct_expect(walk_cnt_of(&w, (uint32_t)t.pid, (uint32_t)t.pid) == 0, "the leader is visited");
	ct_expect(walk_thread_cnt(&w, (uint32_t)t.pid) == 3, "%zu copies instead of 3",
		  walk_thread_cnt(&w, (uint32_t)t.pid));
	expect_ranges(&w, t.pid, t.plain);
	ct_expect(w.s->bss->seen_cnt == 3 * range_cnt, "%llu mappings of 3 × %zu",
		  (unsigned long long)w.s->bss->seen_cnt, range_cnt);
}

static int stand_still(void *parent)
{
	ct_die_with(*(pid_t *)parent);
	for (;;)
		syscall(SYS_pause);
	return 0;
}

static void child_with_the_same_memory(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct walk w;
	pid_t parent = getpid();
	pid_t pid = clone(stand_still, stack + sizeof(stack), CLONE_VM | SIGCHLD, &parent);

	ct_require(pid > 0, "clone: %s", strerror(errno));
	walk_load(&w);
	w.s->bss->also_wanted_tgid = (uint32_t)pid;
	walk_begin(&w, NULL);
	look_at(pid);
	walk_to_end(&w, READS_MAX);
	expect_ranges(&w, getpid(), getpid());
	expect_ranges(&w, pid, pid);
}

static void kernel_threads_and_the_end(void)
{
	struct walk w;

	walk_load(&w);
	w.s->bss->wanted_tgid = 0;
	w.s->bss->is_silent = true;
	walk_begin(&w, NULL);
	walk_to_end(&w, READS_MAX);
	ct_expect(w.s->bss->seen_cnt > 0, "nothing is visited");
	ct_expect(w.s->bss->kthread_cnt == 0, "%llu mappings of kernel threads",
		  (unsigned long long)w.s->bss->kthread_cnt);
	ct_expect(w.s->bss->no_vma_cnt == 0, "%llu calls with a task, without a mapping",
		  (unsigned long long)w.s->bss->no_vma_cnt);
	ct_expect(w.s->bss->end_cnt == 1, "%llu calls without a task instead of 1",
		  (unsigned long long)w.s->bss->end_cnt);
}

/* That task alone, with all of its mappings. */
static void expect_only(const struct walk_filter *filter, pid_t tgid, pid_t tid)
{
	struct walk w;

	walk_with(&w, filter);
	expect_ranges(&w, tgid, tid);
	ct_expect(w.s->bss->seen_cnt == range_cnt, "tid %u: %llu mappings of %zu", filter->tid,
		  (unsigned long long)w.s->bss->seen_cnt, range_cnt);
	ct_expect(w.s->bss->end_cnt == 1, "%llu ends", (unsigned long long)w.s->bss->end_cnt);
}

static void tid_of_a_leader(void)
{
	struct target t = target_start(TARGET_THREADS);

	look_at(t.pid);
	expect_only(&(struct walk_filter){.tid = (uint32_t)t.pid}, t.pid, t.pid);
}

static void tid_of_another_thread(void)
{
	struct target t = target_start(TARGET_THREADS);
	struct walk w;

	look_at(t.pid);
	/* Only what came with 6.12 tells that the fix must be there: it is in older ones, too. */
	if (!fact_function("bpf_copy_from_user_str")) {
		walk_with(&w, &(struct walk_filter){.tid = (uint32_t)t.plain});
		if (w.s->bss->seen_cnt == 0)
			ct_known_bug(
				"\"bpf: Fix iter/task tid filtering\" (6.1.115, 6.11.6, 6.12)");
	}
	expect_only(&(struct walk_filter){.tid = (uint32_t)t.plain}, t.pid, t.plain);
	expect_only(&(struct walk_filter){.tid = (uint32_t)t.own_files}, t.pid, t.own_files);
}

/* The leader, and the thread that has files of its own. */
static void expect_process(const struct walk_filter *filter, const struct target *t)
{
	struct walk w;

	walk_with(&w, filter);
	expect_ranges(&w, t->pid, t->pid);
	ct_require(walk_cnt_of(&w, (uint32_t)t->pid, (uint32_t)t->plain) == 0,
		   "a thread with the leader's files is visited");
	/* c12e785e8648; the iterator for programs came in the same cycle */
	if (!fact_function("bpf_iter_task_vma_new"))
		ct_known_bug(
			"\"bpf: task_group_seq_get_next: fix the skip_if_dup_files check\" (6.7)");
	expect_ranges(&w, t->pid, t->own_files);
	ct_expect(w.s->bss->seen_cnt == 2 * range_cnt, "%llu mappings of 2 × %zu",
		  (unsigned long long)w.s->bss->seen_cnt, range_cnt);
}

static void pid_of_a_process(void)
{
	struct target t = target_start(TARGET_THREADS);

	look_at(t.pid);
	expect_process(&(struct walk_filter){.pid = (uint32_t)t.pid}, &t);
}

static void pidfd_of_a_process(void)
{
	struct target t = target_start(TARGET_THREADS);
	int fd = (int)syscall(SYS_pidfd_open, t.pid, 0);

	ct_require(fd > 0, "pidfd_open: %s", strerror(errno));
	look_at(t.pid);
	expect_process(&(struct walk_filter){.pid_fd = fd}, &t);
}

static void two_filters(void)
{
	uint32_t me = (uint32_t)getpid();
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	const struct walk_filter filter[] = {
		{.tid = me, .pid = me}, {.tid = me, .pid_fd = fd}, {.pid = me, .pid_fd = fd}};
	struct walk w;

	libbpf_set_print(NULL); /* it reports what is expected here */
	walk_load(&w);
	for (size_t i = 0; i < sizeof(filter) / sizeof(*filter); i++) {
		int err = walk_attach(&w, &filter[i]);

		ct_expect(err == -EINVAL, "pair %zu: %s", i, strerror(-err));
	}
	ct_expect(walk_attach(&w, &(struct walk_filter){.pid = me}) == 0, "one alone is refused");
}

static void expect_nobody(const struct walk_filter *filter, const char *who)
{
	struct walk w;

	walk_with(&w, filter);
	ct_expect(w.s->bss->seen_cnt == 0, "%s: %llu mappings", who,
		  (unsigned long long)w.s->bss->seen_cnt);
	ct_expect(w.s->bss->end_cnt == 1, "%s: %llu calls without a task instead of 1", who,
		  (unsigned long long)w.s->bss->end_cnt);
}

static void ids_that_nobody_has(void)
{
	struct target dead = target_start(TARGET_PLAIN), t = target_start(TARGET_THREADS);

	target_end(&dead);
	expect_nobody(&(struct walk_filter){.tid = NOBODY}, "no such tid");
	expect_nobody(&(struct walk_filter){.pid = NOBODY}, "no such pid");
	expect_nobody(&(struct walk_filter){.tid = (uint32_t)dead.pid}, "dead tid");
	expect_nobody(&(struct walk_filter){.pid = (uint32_t)dead.pid}, "dead pid");
	expect_nobody(&(struct walk_filter){.pid = (uint32_t)t.plain}, "a thread's id as pid");
}

/* How many of the target's mappings a reader of the link sees, and no others. */
static size_t cnt_seen(struct walk *w, pid_t tgid)
{
	size_t cnt;

	walk_open(w);
	walk_to_end(w, READS_MAX);
	cnt = walk_cnt_of(w, (uint32_t)tgid, 0);
	ct_expect(cnt == 0 || cnt == w->s->bss->seen_cnt, "%llu mappings, %zu of the target",
		  (unsigned long long)w->s->bss->seen_cnt, cnt);
	return cnt;
}

static void attach_tid(struct walk *w, uint32_t tid)
{
	int err;

	walk_load(w);
	w->s->bss->wanted_tgid = 0;
	err = walk_attach(w, &(struct walk_filter){.tid = tid});
	ct_require(!err, "attach: %s", strerror(-err));
}

/* The target has two ids: 1 in its namespace, and the one outside, where both walks are attached. */
static void ids_of_a_namespace(void)
{
	struct walk inner_id, outer_id;
	struct target t;
	int status = -1;
	pid_t reader;

	if (unshare(CLONE_NEWPID))
		ct_skip("unshare(CLONE_NEWPID): %s", strerror(errno));
	t = target_start(TARGET_PLAIN);
	look_at(t.pid);
	attach_tid(&inner_id, 1);
	attach_tid(&outer_id, (uint32_t)t.pid);
	ct_expect(cnt_seen(&inner_id, t.pid) == 0, "found by its inner id from outside");
	ct_expect(cnt_seen(&outer_id, t.pid) == range_cnt, "not found by its id from outside");
	reader = ct_fork();
	if (reader == 0) {
		ct_expect(getpid() == 2, "the reader is not in the namespace");
		ct_expect(cnt_seen(&inner_id, t.pid) == range_cnt,
			  "not found by its id from inside");
		ct_expect(cnt_seen(&outer_id, t.pid) == 0, "found by its outer id from inside");
		_exit(0);
	}
	waitpid(reader, &status, 0);
	ct_expect(status == 0, "the reader inside: status %d", status);
}

static bool fdinfo_has(int fd, const char *name, uint32_t value)
{
	char path[64], line[256], wanted[64];
	bool has = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	snprintf(wanted, sizeof(wanted), "%s:\t%u\n", name, value);
	f = fopen(path, "re");
	while (f && !has && fgets(line, sizeof(line), f))
		has = !strcmp(line, wanted);
	if (f)
		fclose(f);
	return has;
}

static void expect_shown(const struct walk_filter *filter, uint32_t tid, uint32_t pid)
{
	struct bpf_link_info info;
	uint32_t len = sizeof(info);
	struct walk w;
	int fd, err;

	memset(&info, 0, sizeof(info));
	walk_load(&w);
	ct_require(!walk_attach(&w, filter), "attach: %s", strerror(errno));
	fd = bpf_link__fd(w.link);
	err = bpf_obj_get_info_by_fd(fd, &info, &len);
	ct_require(!err, "link info: %s", strerror(errno));
	ct_expect(info.iter.task.tid == tid && info.iter.task.pid == pid,
		  "link info: tid %u, pid %u instead of %u, %u", info.iter.task.tid,
		  info.iter.task.pid, tid, pid);
	if (tid)
		ct_expect(fdinfo_has(fd, "tid", tid), "fdinfo does not show tid %u", tid);
	if (pid)
		ct_expect(fdinfo_has(fd, "pid", pid), "fdinfo does not show pid %u", pid);
}

static void filters_are_shown(void)
{
	struct target t = target_start(TARGET_PLAIN);
	int fd = (int)syscall(SYS_pidfd_open, t.pid, 0);

	expect_shown(&(struct walk_filter){.tid = (uint32_t)t.pid}, (uint32_t)t.pid, 0);
	expect_shown(&(struct walk_filter){.pid = (uint32_t)t.pid}, 0, (uint32_t)t.pid);
	expect_shown(&(struct walk_filter){.pid_fd = fd}, 0, (uint32_t)t.pid);
}

static void sleepable(void)
{
	struct target t = target_start(TARGET_PLAIN);
	static char log[65536];
	struct walk w;
	int err;

	err = walk_load_sleepable(&w, log, sizeof(log));
	/* an older one names the types that can be, and iter is not among them */
	if (err && strstr(log, "can be sleepable") && !strstr(log, "iter"))
		ct_skip("no sleepable iterators in this kernel (5.18)");
	ct_require(!err, "it does not load: %s: %s", strerror(-err), log);
	w.s->bss->wanted_tgid = (uint32_t)t.pid;
	look_at(t.pid);
	walk_begin(&w, NULL);
	walk_to_end(&w, READS_MAX);
	expect_ranges(&w, t.pid, t.pid);
}

static const struct ct_case cases[] = {
	CT_CASE("task_vma/", what_proc_maps_shows,
		"the ranges of /proc/PID/maps but for [vsyscall], ascending", .numbers = "24"),
	CT_CASE("task_vma/", threads_are_no_processes,
		"the leader, and again for a thread that has files of its own", .numbers = "25"),
	CT_CASE("task_vma/", leader_that_has_exited, "a copy for each live thread",
		.numbers = "26"),
	CT_CASE("task_vma/", child_with_the_same_memory,
		"a CLONE_VM child has the same ranges once more", .numbers = "27"),
	CT_CASE("task_vma/", kernel_threads_and_the_end,
		"no kernel threads; one call without a task, the last", .numbers = "28"),
	CT_CASE("task_vma/", tid_of_a_leader, "the leader alone", .numbers = "29"),
	CT_CASE("task_vma/", tid_of_another_thread, "that thread alone", .numbers = "29"),
	CT_CASE("task_vma/", pid_of_a_process,
		"the leader, and again for a thread that has files of its own", .numbers = "30"),
	CT_CASE("task_vma/", pidfd_of_a_process, "the same as with its pid", .numbers = "31"),
	CT_CASE("task_vma/", two_filters, "-EINVAL", .numbers = "32"),
	CT_CASE("task_vma/", ids_that_nobody_has, "the end at once, and no error", .numbers = "33"),
	CT_CASE("task_vma/", sleepable, "loads, and the same is seen", .numbers = "40"),
	CT_CASE("task_vma/", ids_of_a_namespace,
		"they are those of who opens it, not of who attached it", .numbers = "41"),
	CT_CASE("task_vma/", filters_are_shown, "in the link's info and in fdinfo",
		.numbers = "42"),
};

CT_GROUP(task_vma_cases, cases);
