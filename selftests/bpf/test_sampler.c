/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Samples of children whose stacks are known, against their /proc/PID/maps. */
#include "expect.h"
#include "live_env.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FOLLOW (VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT)

static struct recorder r = RECORDER_PLAIN;

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(sampler, .fini = tear_down, .timeout = 60);

static void set_deferred(void)
{
	recorder_defer(&r);
}

TestSuite(sampler_deferred, .init = set_deferred, .fini = tear_down, .timeout = 60);

/* ---- one process ---------------------------------------------------------------------------- */

static void a_spinning_process_has_exactly_its_chain(void)
{
	struct procmaps m;
	struct target t;
	size_t on_its_way = 0, chains = 0, samples;

	recorder_open(&r, VP_FILTER_TGID, 0);
	start_spinning(&t, spin_root);
	procmaps_read(&m, t.pid);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait_in_function(&r, t.pid, spin_leaf, 100);
	recorder_stop(&r);

	samples = record_log_count(&r.log, VP_REC_SAMPLE);
	for (size_t i = 0; i < samples; i++) {
		const struct log_item *it = record_log_nth(&r.log, VP_REC_SAMPLE, i);
		const struct vp_frame *f = it->user;

		on_its_way +=
			on_its_way == i && !(it->sample.user_cnt && is_in(f[0].pc, spin_leaf));

		cr_expect(eq(u32, it->sample.proc.tgid, t.pid));
		cr_expect(eq(u32, it->sample.tid, t.pid));
		cr_expect(eq(str, (char *)it->sample.comm, "vp spinner"));
		cr_expect(gt(u64, it->sample.period, 0));
		cr_expect(eq(int, it->sample.kern_cnt > 0,
			     !!(it->sample.hdr.flags & VP_SAMPLE_F_KERNEL_MODE)));
		chains += is_spin_root_chain(f, it->sample.user_cnt) &&
			  it->sample.user_end == VP_END_BOTTOM;
	}
	cr_expect(eq(sz, on_its_way + chains, samples));
	expect_all_as_maps(&r.log, &m, (uint32_t)t.pid);
	expect_all_announced(&r, 4 * samples);
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_FRAMES_UNRESOLVED)));
	cr_expect(eq(u64, recorder_counter(&r, VP_CNT_SAMPLES), samples));
	procmaps_free(&m);
	target_end(&t);
}

static void a_process_that_was_not_walked_is_learned_from_its_samples(void)
{
	struct procmaps m;
	struct target t;
	struct vp_err e;

	recorder_open(&r, VP_FILTER_TGID, 0);
	start_spinning(&t, spin_root);
	procmaps_read(&m, t.pid);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	cr_assert(zero(int, vp_session_start(r.s, &e)));
	recorder_wait(&r, 50);
	recorder_stop(&r);
	expect_all_as_maps(&r.log, &m, (uint32_t)t.pid);
	expect_all_announced(&r, 200);
	/* one question was enough: all of the chain is in one mapping; none is answered on PREEMPT_RT */
	cr_expect(eq(u64, recorder_counter(&r, VP_CNT_FIND_OK),
		     r.mode == VP_UNWIND_DEFERRED || live_have(VP_FEAT_IRQ_FIND_VMA)));
	cr_expect(eq(sz, record_log_count(&r.log, VP_REC_MMAP2), 1));
	procmaps_free(&m);
	target_end(&t);
}

static void expect_depth(int calls, size_t frames, uint16_t end)
{
	struct procmaps m;
	struct target t;

	spin_depth = calls;
	recorder_open(&r, VP_FILTER_TGID, 0);
	start_spinning(&t, spin_at_depth);
	procmaps_read(&m, t.pid);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait_in_function(&r, t.pid, spin_leaf, 32);
	recorder_stop(&r);
	/* not those of its first instructions, before there is a frame */
	cr_expect(ge(sz, count_spinning(&r.log, (uint32_t)t.pid, frames, end), 30));
	expect_all_as_maps(&r.log, &m, (uint32_t)t.pid);
	procmaps_free(&m);
	target_end(&t);
}

static void a_stack_of_600_calls_is_whole(void)
{
	expect_depth(600, 600 + 4, VP_END_BOTTOM);
}

static void a_stack_that_just_fits_is_whole(void)
{
	expect_depth(VP_MAX_USER_FRAMES - 4, VP_MAX_USER_FRAMES, VP_END_BOTTOM);
}

static void a_stack_beyond_the_limit_says_so(void)
{
	expect_depth(VP_MAX_USER_FRAMES - 3, VP_MAX_USER_FRAMES, VP_END_DEPTH);
}

static void run_generated_code(void *arg)
{
	void *page;

	(void)arg;
	target_tell(0);
	target_await();
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	target_check(page != MAP_FAILED);
	memcpy(page, endless_code, sizeof(endless_code));
	target_tell((uint64_t)page);
	call_outermost((void (*)(void))page);
}

static void generated_code_is_reported_once_and_named_so(void)
{
	size_t in_jit = 0, reported = 0;
	uint64_t page;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, run_generated_code, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	page = target_hear(&t);
	recorder_wait_in(&r, t.pid, (const void *)page, PAGE, 60);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		reported += it->hdr.kind == VP_REC_MMAP2 && it->mmap2.perf.addr == page;
		if (it->hdr.kind == VP_REC_SAMPLE && it->user[0].pc >= page &&
		    it->user[0].pc < page + PAGE) {
			cr_expect(eq(u32, it->user[0].verdict, VP_VERDICT_ANON_EXEC));
			cr_expect(zero(u64, it->user[0].offset));
			cr_expect(zero(u32, it->user[0].file_id));
			/* its first instructions, where the page fault is, set up the frame */
			if (it->user[0].pc >= page + ENDLESS_CODE_LOOP)
				cr_expect(eq(u32, it->sample.user_cnt, 2));
			cr_expect(eq(u32, it->sample.user_end, VP_END_BOTTOM));
			in_jit++;
		}
	}
	cr_expect(ge(sz, in_jit, 60));
	cr_expect(eq(sz, reported, 1));
	target_end(&t);
}

/* ---- mappings beyond the table, and mappings that change ------------------------------------ */

#define MANY 160

static void run_code_in_many_mappings(void *arg)
{
	void (*fn[MANY])(void);
	int fd = code_file(MANY, short_code, sizeof(short_code));

	(void)arg;
	for (size_t i = 0; i < MANY; i++) {
		/* backwards in the file, so that no two merge wherever they come to lie */
		void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			       (off_t)((i * 37 % MANY) * PAGE));

		target_check(p != MAP_FAILED);
		fn[i] = (void (*)(void))p;
	}
	target_tell(0);
	for (size_t i = 0;; i++) {
		if (i == 3 * MANY)
			target_tell(0);
		call_outermost(fn[i % MANY]);
	}
}

static void more_mappings_than_the_table_holds_cost_no_right_answer(void)
{
	bool seen[MANY] = {false};
	size_t distinct = 0;
	struct procmaps m;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, run_code_in_many_mappings, NULL);
	target_hear(&t);
	procmaps_read(&m, t.pid);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 600);
	/* it was in each of them */
	target_hear(&t);
	recorder_stop(&r);
	expect_all_as_maps(&r.log, &m, (uint32_t)t.pid);
	expect_all_announced(&r, 1000);
	cr_expect(gt(u64, recorder_counter(&r, VP_CNT_XMAP_FULL), 0));
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind == VP_REC_SAMPLE && it->user[0].verdict == VP_VERDICT_FILE &&
		    strstr(name_of_file(&r.log, it->user[0].file_id), "vmaprof-sampler."))
			seen[it->user[0].offset / PAGE % MANY] = true;
	}
	for (size_t i = 0; i < MANY; i++)
		distinct += seen[i];
	cr_expect(gt(sz, distinct, 120));
	procmaps_free(&m);
	target_end(&t);
}

static void replace_a_mapping(void *arg)
{
	int other = code_file(2, endless_code, sizeof(endless_code));
	int brief = code_file(1, short_code, sizeof(short_code));
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, brief, 0);

	(void)arg;
	target_check(p != MAP_FAILED);
	target_tell((uint64_t)p);
	for (int i = 0; i < 400; i++)
		call_outermost((void (*)(void))p);
	/* as after dlclose and dlopen of another library */
	target_check(mmap(p, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, other,
			  (off_t)PAGE) == p);
	target_tell(0);
	call_outermost((void (*)(void))p);
}

static void a_mapping_that_took_the_place_of_another_is_the_one_reported(void)
{
	size_t after = 0, right = 0;
	struct timespec now;
	struct procmaps m;
	struct target t;
	uint64_t p, since;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, replace_a_mapping, NULL);
	p = target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	target_hear(&t);
	clock_gettime(CLOCK_MONOTONIC, &now);
	since = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	procmaps_read(&m, t.pid);
	/* more than can be waiting in the ring from before */
	recorder_wait(&r, 300);
	recorder_stop(&r);
	for (size_t i = 0; i < record_log_count(&r.log, VP_REC_SAMPLE); i++) {
		const struct log_item *it = record_log_nth(&r.log, VP_REC_SAMPLE, i);
		const struct vp_frame *f = &it->user[0];

		if (it->hdr.ts_ns < since || f->pc < p || f->pc >= p + PAGE)
			continue;
		after++;
		right += f->verdict == VP_VERDICT_BUSY || f->offset == f->pc - p + PAGE;
	}
	cr_expect(ge(sz, after, 40));
	cr_expect(eq(sz, right, after));
	procmaps_free(&m);
	target_end(&t);
}

/* ---- lives ---------------------------------------------------------------------------------- */

static void fork_when_told(void *arg)
{
	pid_t child;

	target_tell(0);
	target_await();
	child = target_fork();
	if (child == 0) {
		call_outermost(arg);
		_exit(0);
	}
	target_tell((uint64_t)child);
	target_pause();
}

static void a_child_without_exec_has_its_parents_mappings(void)
{
	size_t fork_at, inherit_at, sample_at;
	const struct log_item *it;
	struct procmaps m;
	struct target t;
	pid_t child;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, fork_when_told, spin_root);
	target_hear(&t);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	child = (pid_t)target_hear(&t);
	procmaps_read(&m, child);
	recorder_wait_in_function(&r, child, spin_leaf, 60);
	recorder_stop(&r);

	fork_at = first_of(&r.log, VP_REC_FORK, (uint32_t)child);
	inherit_at = first_of(&r.log, VP_REC_INHERIT, (uint32_t)child);
	sample_at = first_of(&r.log, VP_REC_SAMPLE, (uint32_t)child);
	cr_assert(lt(sz, sample_at, r.log.cnt));
	cr_expect(lt(sz, fork_at, inherit_at));
	cr_expect(lt(sz, inherit_at, sample_at));
	if (inherit_at < r.log.cnt) {
		it = &r.log.item[inherit_at];
		cr_expect(eq(u32, it->inherit.from.tgid, t.pid));
		cr_expect(eq(u32, it->inherit.proc.exec_id, it->inherit.from.exec_id));
		cr_expect(zero(int, memcmp(&it->inherit.proc, &r.log.item[sample_at].sample.proc,
					   sizeof(it->inherit.proc))));
	}
	it = &r.log.item[fork_at];
	cr_expect(eq(u32, it->fork.parent_tgid, t.pid));
	cr_expect(eq(u32, it->fork.child_tid, child));
	cr_expect(ge(sz, count_spinning(&r.log, (uint32_t)child, 4, VP_END_BOTTOM), 58));
	expect_all_as_maps(&r.log, &m, (uint32_t)child);
	expect_all_announced(&r, 200);
	procmaps_free(&m);
	target_end(&t);
}

static void on_usr1(int sig)
{
	(void)sig;
	execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
	_exit(95);
}

static void spin_until_exec(void *arg)
{
	(void)arg;
	signal(SIGUSR1, on_usr1);
	target_tell((uint64_t)getpid());
	spin_leaf();
}

static void *spin_until_exec_in_a_thread(void *arg)
{
	target_tell((uint64_t)gettid());
	spin_leaf();
	return arg;
}

static void have_a_thread_that_execs(void *arg)
{
	pthread_t th;

	(void)arg;
	signal(SIGUSR1, on_usr1);
	target_check(!pthread_create(&th, NULL, spin_until_exec_in_a_thread, NULL));
	spin_leaf();
}

static bool is_a_shell(void *target)
{
	const struct target *t = target;
	char path[64], comm[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", t->pid);
	f = fopen(path, "re");
	if (f) {
		if (!fgets(comm, sizeof(comm), f))
			comm[0] = '\0';
		fclose(f);
	}
	return !strcmp(comm, "sh\n");
}

static void expect_a_new_life(target_body body)
{
	const struct log_item *exec;
	size_t after = 0;
	struct target t;
	bool seen = false;
	pid_t tid;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, body, NULL);
	tid = (pid_t)target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 20);
	cr_assert(zero(int, tgkill(t.pid, tid, SIGUSR1)));
	cr_assert(wait_until(is_a_shell, &t, 20000));
	recorder_wait(&r, 100);
	recorder_stop(&r);

	cr_assert(eq(sz, record_log_count(&r.log, VP_REC_EXEC), 1));
	exec = record_log_nth(&r.log, VP_REC_EXEC, 0);
	cr_expect(eq(u32, exec->exec.proc.tgid, t.pid));
	cr_expect(eq(u32, exec->exec.tid, t.pid));
	cr_expect(eq(str, (char *)exec->exec.comm, "sh"));
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		seen |= it == exec;
		if (it->hdr.kind != VP_REC_SAMPLE && it->hdr.kind != VP_REC_MMAP2)
			continue;
		if (!seen) {
			cr_expect(le(u32, it->sample.proc.exec_id, exec->exec.proc.exec_id));
			continue;
		}
		cr_expect(zero(
			int, memcmp(&it->sample.proc, &exec->exec.proc, sizeof(exec->exec.proc))));
		if (it->hdr.kind == VP_REC_SAMPLE) {
			cr_expect(eq(str, (char *)it->sample.comm, "sh"));
			after++;
		}
	}
	cr_expect(gt(sz, after, 50));
	expect_all_announced(&r, 120);
	target_end(&t);
}

static void nothing_of_the_old_image_follows_an_exec(void)
{
	expect_a_new_life(spin_until_exec);
}

static void nothing_of_the_old_image_follows_an_exec_by_a_thread(void)
{
	expect_a_new_life(have_a_thread_that_execs);
}

static void a_command_is_sampled_from_its_exec_on(void)
{
	const struct log_item *exec;
	struct target t;
	uint64_t turn;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, spin_until_exec, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_INHERIT);
	recorder_start(&r, 0);
	/* as many ticks as would be samples, if it were armed */
	turn = now_ms() + 50;
	while (now_ms() < turn)
		sched_yield();
	cr_expect(zero(sz, record_log_samples(&r.log)));
	kill(t.pid, SIGUSR1);
	recorder_wait(&r, 30);
	recorder_stop(&r);
	cr_assert(eq(sz, record_log_count(&r.log, VP_REC_EXEC), 1));
	exec = record_log_nth(&r.log, VP_REC_EXEC, 0);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind == VP_REC_SAMPLE)
			cr_expect(zero(int, memcmp(&it->sample.proc, &exec->exec.proc,
						   sizeof(exec->exec.proc))));
	}
	expect_all_announced(&r, 30);
	target_end(&t);
}

#define WORKERS	 8
#define CHILDREN 6 /* of each, at least */

static void burn_ms(int ms)
{
	struct timespec ts;
	int64_t end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	end = ts.tv_sec * 1000 + ts.tv_nsec / 1000000 + ms;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < end);
}

static void *burn_in_a_thread(void *arg)
{
	burn_ms(3);
	return arg;
}

static void work_in_children(int worker)
{
	for (int i = 0;; i++) {
		pid_t pid = target_fork();

		if (pid == 0) {
			pthread_t th;

			/* both CPUs meet the new process at once */
			if (i % 4 < 2)
				pthread_create(&th, NULL, burn_in_a_thread, NULL);
			burn_ms(3);
			if ((i + worker) % 2)
				execl("/bin/sh", "sh", "-c",
				      "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done",
				      (char *)NULL);
			_exit(0);
		}
		target_check(pid > 0);
		waitpid(pid, NULL, 0);
		if (i == CHILDREN)
			target_tell(0);
	}
}

static void have_busy_workers(void *arg)
{
	(void)arg;
	target_await();
	for (int i = 0; i < WORKERS; i++) {
		pid_t pid = target_fork();

		target_check(pid >= 0);
		if (pid == 0)
			work_in_children(i);
	}
	target_pause();
}

static void expect_announced_under_churn(uint32_t filter)
{
	struct target t;

	recorder_open(&r, filter, 0);
	target_start(&t, have_busy_workers, NULL);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, filter == VP_FILTER_ALL ? 0 : t.pid);
	target_say(&t, 0);
	recorder_wait(&r, 2500);
	for (int i = 0; i < WORKERS; i++)
		target_hear(&t);
	recorder_stop(&r);
	target_end(&t);
	cr_expect(gt(sz, record_log_count(&r.log, VP_REC_EXEC), 10));
	cr_expect(gt(sz, record_log_count(&r.log, VP_REC_FORK), 20));
	cr_expect(gt(sz, record_log_count(&r.log, VP_REC_EXIT), 20));
	cr_expect(gt(sz, record_log_count(&r.log, VP_REC_INHERIT), 10));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_PROC_FULL)));
	expect_all_announced(&r, 1000);
}

static void mappings_precede_the_samples_of_processes_that_fork_and_exec(void)
{
	expect_announced_under_churn(VP_FILTER_TGID);
}

static void mappings_precede_the_samples_of_all_processes(void)
{
	expect_announced_under_churn(VP_FILTER_ALL);
}

/* ---- whom ----------------------------------------------------------------------------------- */

static void a_process_is_recorded_and_no_other(void)
{
	struct target wanted, other;

	recorder_open(&r, VP_FILTER_TGID, 0);
	start_spinning(&other, spin_root);
	start_spinning(&wanted, spin_root);
	recorder_add(&r, wanted.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, wanted.pid);
	recorder_wait(&r, 60);
	recorder_stop(&r);
	expect_only(&r.log, (uint32_t)wanted.pid, (uint32_t)wanted.pid);
	target_end(&wanted);
	target_end(&other);
}

static void *spin_in_a_thread(void *arg)
{
	target_tell((uint64_t)gettid());
	call_outermost(arg);
	return NULL;
}

static void spin_in_three_threads(void *arg)
{
	for (int i = 0; i < 2; i++) {
		pthread_t th;

		target_check(!pthread_create(&th, NULL, spin_in_a_thread, arg));
	}
	call_outermost(arg);
}

static void a_thread_is_recorded_and_no_other(void)
{
	struct target t;
	pid_t tid;

	recorder_open(&r, VP_FILTER_TID, 0);
	target_start(&t, spin_in_three_threads, spin_root);
	target_hear(&t);
	tid = (pid_t)target_hear(&t);
	recorder_add(&r, tid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 60);
	recorder_stop(&r);
	expect_only(&r.log, (uint32_t)t.pid, (uint32_t)tid);
	target_end(&t);
}

static void threads_of_a_process_are_told_apart(void)
{
	size_t of[3] = {0};
	struct target t;
	pid_t tid[3];

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, spin_in_three_threads, spin_root);
	tid[0] = t.pid;
	tid[1] = (pid_t)target_hear(&t);
	tid[2] = (pid_t)target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 400);
	recorder_stop(&r);
	expect_only(&r.log, (uint32_t)t.pid, 0);
	for (size_t i = 0; i < r.log.cnt; i++) {
		for (int j = 0; j < 3; j++)
			of[j] += r.log.item[i].hdr.kind == VP_REC_SAMPLE &&
				 r.log.item[i].sample.tid == (uint32_t)tid[j];
	}
	for (int j = 0; j < 3; j++)
		cr_expect(gt(sz, of[j], 20));
	cr_expect(eq(sz, of[0] + of[1] + of[2], record_log_count(&r.log, VP_REC_SAMPLE)));
	target_end(&t);
}

static void a_cgroup_is_recorded_and_no_other(void)
{
	char dir[] = "/tmp/vmaprof-cgroup.XXXXXX", group[64], procs[80];
	struct target wanted, other;
	struct vp_err e;
	int fd;
	FILE *f;

	cr_assert(mkdtemp(dir) != NULL);
	cr_assert(zero(int, unshare(CLONE_NEWNS)));
	cr_assert(zero(int, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)));
	if (mount("none", dir, "cgroup2", 0, NULL)) {
		rmdir(dir);
		cr_skip_test("cgroup2 cannot be mounted");
	}
	snprintf(group, sizeof(group), "%s/vmaprof-selftest-%d", dir, getpid());
	cr_assert(zero(int, mkdir(group, 0755)));

	recorder_open(&r, VP_FILTER_CGROUP, 0);
	start_spinning(&other, spin_root);
	start_spinning(&wanted, spin_root);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
	f = fopen(procs, "we");
	cr_assert(f != NULL);
	fprintf(f, "%d\n", wanted.pid);
	cr_assert(zero(int, fclose(f)));
	fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert(zero(int, vp_session_set_cgroup(r.s, fd, &e)));
	recorder_start(&r, wanted.pid);
	recorder_wait(&r, 60);
	recorder_stop(&r);
	expect_only(&r.log, (uint32_t)wanted.pid, (uint32_t)wanted.pid);

	target_end(&wanted);
	target_end(&other);
	close(fd);
	recorder_close(&r);
	rmdir(group);
	umount(dir);
	rmdir(dir);
}

/* ---- losses --------------------------------------------------------------------------------- */

static bool are_lost(void *arg)
{
	return recorder_counter(&r, VP_CNT_LOST_SAMPLE) > *(const uint64_t *)arg;
}

static void samples_that_do_not_fit_are_counted_and_later_ones_come(void)
{
	uint64_t some = 30, lost, delivered;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 4096);
	start_spinning(&t, spin_root);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 20);
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_LOST_SAMPLE)));

	pthread_mutex_lock(&r.log.gate);
	cr_assert(wait_until(are_lost, &some, 20000));
	pthread_mutex_unlock(&r.log.gate);
	recorder_wait(&r, 60);
	recorder_stop(&r);

	lost = recorder_counter(&r, VP_CNT_LOST_SAMPLE);
	delivered = recorder_counter(&r, VP_CNT_SAMPLES);
	cr_expect(gt(u64, lost, some));
	cr_expect(eq(u64, delivered, record_log_count(&r.log, VP_REC_SAMPLE)));
	target_end(&t);
}

/* ---- in both modes ------------------------------------------------------------------------- */

Test(sampler, a_spinning_process_has_exactly_its_chain)
{
	a_spinning_process_has_exactly_its_chain();
}

Test(sampler_deferred, a_spinning_process_has_exactly_its_chain)
{
	a_spinning_process_has_exactly_its_chain();
}

Test(sampler, a_process_that_was_not_walked_is_learned_from_its_samples)
{
	a_process_that_was_not_walked_is_learned_from_its_samples();
}

Test(sampler_deferred, a_process_that_was_not_walked_is_learned_from_its_samples)
{
	a_process_that_was_not_walked_is_learned_from_its_samples();
}

Test(sampler, a_stack_of_600_calls_is_whole)
{
	a_stack_of_600_calls_is_whole();
}

Test(sampler_deferred, a_stack_of_600_calls_is_whole)
{
	a_stack_of_600_calls_is_whole();
}

Test(sampler, a_stack_that_just_fits_is_whole)
{
	a_stack_that_just_fits_is_whole();
}

Test(sampler_deferred, a_stack_that_just_fits_is_whole)
{
	a_stack_that_just_fits_is_whole();
}

Test(sampler, a_stack_beyond_the_limit_says_so)
{
	a_stack_beyond_the_limit_says_so();
}

Test(sampler_deferred, a_stack_beyond_the_limit_says_so)
{
	a_stack_beyond_the_limit_says_so();
}

Test(sampler, generated_code_is_reported_once_and_named_so)
{
	generated_code_is_reported_once_and_named_so();
}

Test(sampler_deferred, generated_code_is_reported_once_and_named_so)
{
	generated_code_is_reported_once_and_named_so();
}

Test(sampler, more_mappings_than_the_table_holds_cost_no_right_answer)
{
	more_mappings_than_the_table_holds_cost_no_right_answer();
}

Test(sampler_deferred, more_mappings_than_the_table_holds_cost_no_right_answer)
{
	more_mappings_than_the_table_holds_cost_no_right_answer();
}

Test(sampler, a_mapping_that_took_the_place_of_another_is_the_one_reported)
{
	a_mapping_that_took_the_place_of_another_is_the_one_reported();
}

Test(sampler_deferred, a_mapping_that_took_the_place_of_another_is_the_one_reported)
{
	a_mapping_that_took_the_place_of_another_is_the_one_reported();
}

Test(sampler, a_child_without_exec_has_its_parents_mappings)
{
	a_child_without_exec_has_its_parents_mappings();
}

Test(sampler_deferred, a_child_without_exec_has_its_parents_mappings)
{
	a_child_without_exec_has_its_parents_mappings();
}

Test(sampler, nothing_of_the_old_image_follows_an_exec)
{
	nothing_of_the_old_image_follows_an_exec();
}

Test(sampler_deferred, nothing_of_the_old_image_follows_an_exec)
{
	nothing_of_the_old_image_follows_an_exec();
}

Test(sampler, nothing_of_the_old_image_follows_an_exec_by_a_thread)
{
	nothing_of_the_old_image_follows_an_exec_by_a_thread();
}

Test(sampler_deferred, nothing_of_the_old_image_follows_an_exec_by_a_thread)
{
	nothing_of_the_old_image_follows_an_exec_by_a_thread();
}

Test(sampler, a_command_is_sampled_from_its_exec_on)
{
	a_command_is_sampled_from_its_exec_on();
}

Test(sampler_deferred, a_command_is_sampled_from_its_exec_on)
{
	a_command_is_sampled_from_its_exec_on();
}

Test(sampler, mappings_precede_the_samples_of_processes_that_fork_and_exec)
{
	mappings_precede_the_samples_of_processes_that_fork_and_exec();
}

Test(sampler_deferred, mappings_precede_the_samples_of_processes_that_fork_and_exec)
{
	mappings_precede_the_samples_of_processes_that_fork_and_exec();
}

Test(sampler, mappings_precede_the_samples_of_all_processes)
{
	mappings_precede_the_samples_of_all_processes();
}

Test(sampler_deferred, mappings_precede_the_samples_of_all_processes)
{
	mappings_precede_the_samples_of_all_processes();
}

Test(sampler, a_process_is_recorded_and_no_other)
{
	a_process_is_recorded_and_no_other();
}

Test(sampler_deferred, a_process_is_recorded_and_no_other)
{
	a_process_is_recorded_and_no_other();
}

Test(sampler, a_thread_is_recorded_and_no_other)
{
	a_thread_is_recorded_and_no_other();
}

Test(sampler_deferred, a_thread_is_recorded_and_no_other)
{
	a_thread_is_recorded_and_no_other();
}

Test(sampler, threads_of_a_process_are_told_apart)
{
	threads_of_a_process_are_told_apart();
}

Test(sampler_deferred, threads_of_a_process_are_told_apart)
{
	threads_of_a_process_are_told_apart();
}

Test(sampler, a_cgroup_is_recorded_and_no_other)
{
	a_cgroup_is_recorded_and_no_other();
}

Test(sampler_deferred, a_cgroup_is_recorded_and_no_other)
{
	a_cgroup_is_recorded_and_no_other();
}

Test(sampler, samples_that_do_not_fit_are_counted_and_later_ones_come)
{
	samples_that_do_not_fit_are_counted_and_later_ones_come();
}

Test(sampler_deferred, samples_that_do_not_fit_are_counted_and_later_ones_come)
{
	samples_that_do_not_fit_are_counted_and_later_ones_come();
}
