/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deferred mode: samples and the user stacks that follow them. */
#include "expect.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"

#define WAIT_MS	  20000
#define FOLLOW	  (VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT)
#define MANY_HZ	  20000
#define RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"

static struct recorder r = {
	.mode = VP_UNWIND_DEFERRED,
	.call_graph = VP_CALL_GRAPH_FP,
	.keep_raw = true,
};

static void set_up(void)
{
	recorder_defer(&r);
}

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(deferred, .init = set_up, .fini = tear_down, .timeout = 60);

/* As many samples a second as this machine allows, up to MANY_HZ. */
static uint32_t many_hz(void)
{
	unsigned int max = MANY_HZ;
	FILE *f = fopen(RATE_PATH, "re");

	if (f) {
		if (fscanf(f, "%u", &max) != 1)
			max = MANY_HZ;
		fclose(f);
	}
	return max < MANY_HZ ? max : MANY_HZ;
}

/* ---- samples and stacks --------------------------------------------------------------------- */

static const struct log_item *stack_of(uint32_t tid, uint64_t cookie)
{
	for (size_t i = 0; i < r.raw.cnt; i++) {
		const struct log_item *it = &r.raw.item[i];

		if (it->hdr.kind == VP_REC_USER_STACK && it->user_stack.tid == tid &&
		    it->user_stack.cookie == cookie)
			return it;
	}
	return NULL;
}

static size_t raw_samples_with(uint32_t tid, uint64_t cookie)
{
	size_t n = 0;

	for (size_t i = 0; i < r.raw.cnt; i++) {
		const struct log_item *it = &r.raw.item[i];

		n += it->hdr.kind == VP_REC_SAMPLE && it->sample.tid == tid &&
		     it->sample.cookie == cookie;
	}
	return n;
}

/* A thread's stack comes once per cookie, and that is the time of the first sample with it. */
static void expect_cookies(void)
{
	for (size_t i = 0; i < r.raw.cnt; i++) {
		const struct log_item *it = &r.raw.item[i];

		if (it->hdr.kind == VP_REC_USER_STACK) {
			cr_expect(eq(ptr,
				     (void *)stack_of(it->user_stack.tid, it->user_stack.cookie),
				     (void *)it));
			cr_expect(gt(u64, it->hdr.ts_ns, it->user_stack.cookie));
		} else if (it->hdr.kind == VP_REC_SAMPLE && it->hdr.flags & VP_SAMPLE_F_DEFERRED) {
			cr_expect(zero(u32, it->sample.user_cnt));
			cr_expect(le(u64, it->sample.cookie, it->hdr.ts_ns));
		}
	}
}

/* What joining may not change: all but the user part, sample by sample of a thread. */
static void expect_the_interrupts(uint32_t tid)
{
	size_t at = 0;

	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i], *raw;

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.tid != tid)
			continue;
		while (at < r.raw.cnt && (r.raw.item[at].hdr.kind != VP_REC_SAMPLE ||
					  r.raw.item[at].sample.tid != tid))
			at++;
		cr_assert(lt(sz, at, r.raw.cnt));
		raw = &r.raw.item[at++];
		cr_expect(eq(u64, it->hdr.ts_ns, raw->hdr.ts_ns));
		cr_expect(eq(u32, it->hdr.cpu, raw->hdr.cpu));
		cr_expect(eq(u64, it->sample.period, raw->sample.period));
		cr_assert(eq(u32, it->sample.kern_cnt, raw->sample.kern_cnt));
		cr_expect(zero(
			int, memcmp(it->kern, raw->kern, it->sample.kern_cnt * sizeof(*it->kern))));
	}
}

Test(deferred, a_sample_stays_one_sample_with_its_own_time)
{
	uint64_t before = vp_now_ns(), last = 0;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	start_spinning(&t, spin_root);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 300);
	recorder_settle(&r);
	recorder_stop(&r);
	expect_accounts(&r);
	expect_cookies();
	expect_the_interrupts((uint32_t)t.pid);
	cr_expect(eq(u64, r.joiner.joined_cnt, recorder_counter(&r, VP_CNT_SAMPLES)));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_DEFER_FAILED)));
	for (size_t i = 0; i < record_log_count(&r.log, VP_REC_SAMPLE); i++) {
		const struct log_item *it = record_log_nth(&r.log, VP_REC_SAMPLE, i);

		cr_expect(is_spin_root_chain(it->user, it->sample.user_cnt));
		cr_expect(eq(u32, it->sample.user_end, VP_END_BOTTOM));
		cr_expect(gt(u64, it->hdr.ts_ns, last ? last : before));
		last = it->hdr.ts_ns;
	}
	cr_expect(lt(u64, last, vp_now_ns()));
	target_end(&t);
}

/* ---- a long stay in the kernel -------------------------------------------------------------- */

#define READS	   3
#define IOV_CNT	   1024
#define READ_BYTES (1UL << 20)

/* Shared with the target: when its system calls were made and had returned. */
static struct {
	uint64_t before, after;
} * stays;

static struct iovec iov[IOV_CNT];
static int zero_fd;

/* All of it in one system call, and without a frame of libc's. */
__attribute__((noipa)) static void read_at_once(void)
{
	KEEP_FRAME();
	long n;

	__asm__ volatile("syscall"
			 : "=a"(n)
			 : "a"(SYS_readv), "D"(zero_fd), "S"(iov), "d"(IOV_CNT)
			 : "rcx", "r11", "memory");
	target_check(n == (long)(IOV_CNT * READ_BYTES));
}

static void prepare_to_read(void)
{
	void *room =
		mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	zero_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	target_check(room != MAP_FAILED && zero_fd >= 0);
	for (int i = 0; i < IOV_CNT; i++)
		iov[i] = (struct iovec){room, READ_BYTES};
}

static void read_a_few_times(void *arg)
{
	(void)arg;
	prepare_to_read();
	target_tell(0);
	target_await();
	for (int i = 0; i < READS; i++) {
		stays[i].before = vp_now_ns();
		call_outermost(read_at_once);
		stays[i].after = vp_now_ns();
	}
	target_tell(0);
	call_outermost(spin_root);
}

/* Samples of one stay, which are all of one cookie; frames as the first has them. */
static size_t expect_one_stack(uint64_t before, uint64_t after)
{
	const struct log_item *first = NULL, *stack;
	uint64_t cookie = 0;
	size_t n = 0;

	for (size_t i = 0; i < r.raw.cnt; i++) {
		const struct log_item *it = &r.raw.item[i];

		if (it->hdr.kind == VP_REC_SAMPLE && it->hdr.ts_ns > before &&
		    it->hdr.ts_ns < after &&
		    (!cookie || raw_samples_with(it->sample.tid, cookie) < 3))
			cookie = it->sample.cookie;
	}
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->hdr.ts_ns < cookie ||
		    it->hdr.ts_ns > after || it->sample.user_cnt != 2 ||
		    !is_in(it->user[0].pc, read_at_once))
			continue;
		if (!first)
			first = it;
		cr_expect(zero(int, memcmp(it->user, first->user, 2 * sizeof(*it->user))));
		cr_expect(gt(u32, it->sample.kern_cnt, 0));
		cr_expect(eq(u32, it->sample.user_end, VP_END_BOTTOM));
		n++;
	}
	stack = first ? stack_of(first->sample.tid, cookie) : NULL;
	cr_assert(stack != NULL);
	/* taken on the way out, not when its samples were */
	cr_expect(gt(u64, stack->hdr.ts_ns, cookie));
	cr_expect(lt(u64, stack->hdr.ts_ns, after));
	cr_expect(eq(sz, n, raw_samples_with(first->sample.tid, cookie)));
	return n;
}

Test(deferred, samples_of_one_system_call_share_a_stack)
{
	struct target t;

	stays = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(stays != MAP_FAILED);
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, read_a_few_times, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	target_hear(&t);
	recorder_settle(&r);
	recorder_stop(&r);
	expect_accounts(&r);
	expect_cookies();
	expect_the_interrupts((uint32_t)t.pid);
	for (int i = 0; i < READS; i++)
		cr_expect(ge(sz, expect_one_stack(stays[i].before, stays[i].after), 5));
	target_end(&t);
}

/* ---- a task that is still in the kernel at the end ------------------------------------------ */

#define PIPE_BYTES (1 << 20)

static int pipe_fd[2];

static void write_more_than_fits(void *arg)
{
	char *bytes = mmap(NULL, 2 * PIPE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	target_check(bytes != MAP_FAILED);
	target_tell(0);
	target_await();
	for (;;)
		target_check(write(pipe_fd[1], bytes, 2 * PIPE_BYTES) == 2 * PIPE_BYTES);
}

/* In a write that is not done, and sampled in it; else it is let go on to its next one. */
static bool blocks_with_a_stack_pending(void *t)
{
	static char drain[PIPE_BYTES];

	if (!procfs_is_asleep(((struct target *)t)->pid) || !recorder_has_read_all(&r))
		return false;
	if (vp_joiner_waiting(&r.joiner))
		return true;
	for (int i = 0; i < 2; i++)
		cr_assert(gt(long, read(pipe_fd[0], drain, sizeof(drain)), 0));
	return false;
}

Test(deferred, a_task_that_is_still_in_the_kernel_keeps_its_kernel_part)
{
	size_t in_kernel = 0;
	struct target t;

	cr_assert(zero(int, pipe(pipe_fd)));
	cr_assert(gt(int, fcntl(pipe_fd[1], F_SETPIPE_SZ, PIPE_BYTES), 0));
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, write_more_than_fits, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	cr_assert(wait_until(blocks_with_a_stack_pending, &t, WAIT_MS));
	recorder_stop(&r);
	expect_accounts(&r);
	for (size_t i = 0; i < record_log_count(&r.log, VP_REC_SAMPLE); i++) {
		const struct log_item *it = record_log_nth(&r.log, VP_REC_SAMPLE, i);

		if (it->sample.user_end != VP_END_IN_KERNEL)
			continue;
		cr_expect(zero(u32, it->sample.user_cnt));
		cr_expect(gt(u32, it->sample.kern_cnt, 0));
		in_kernel++;
	}
	cr_expect(gt(sz, in_kernel, 0));
	cr_expect(eq(u64, r.joiner.in_kernel_cnt, in_kernel));
	target_end(&t);
}

/* ---- entries of threads --------------------------------------------------------------------- */

static size_t deferral_cnt(void)
{
	int fd = recorder_map_fd("deferrals");
	__u32 key, next;
	size_t n = 0;

	for (void *at = NULL; !bpf_map_get_next_key(fd, at, &next); at = &key) {
		key = next;
		n++;
	}
	return n;
}

static bool has_no_deferral(void *arg)
{
	(void)arg;
	return deferral_cnt() == 0;
}

#define THREAD_CNT 64

static void *spin_until_enough(void *arg)
{
	call_outermost(spin_root);
	return arg;
}

static void have_threads_that_end(void *arg)
{
	pthread_t th[THREAD_CNT];

	(void)arg;
	target_tell(0);
	target_await();
	for (int i = 0; i < THREAD_CNT; i++)
		target_check(!pthread_create(&th[i], NULL, spin_until_enough, NULL));
	target_await();
	enough = true;
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(th[i], NULL);
	target_tell(0);
	enough = false;
	call_outermost(spin_root);
}

static bool have_deferrals(void *arg)
{
	return deferral_cnt() >= *(const size_t *)arg;
}

Test(deferred, what_a_thread_had_goes_with_it)
{
	size_t many = THREAD_CNT;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, have_threads_that_end, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	cr_assert(wait_until(have_deferrals, &many, WAIT_MS));
	target_say(&t, 0);
	target_hear(&t);
	/* its main thread is left */
	cr_expect(le(sz, deferral_cnt(), 1));
	target_end(&t);
	cr_expect(wait_until(has_no_deferral, NULL, WAIT_MS), "%zu are left", deferral_cnt());
	recorder_stop(&r);
	expect_accounts(&r);
}

static void exec_spinner(int sig)
{
	(void)sig;
	execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
	_exit(95);
}

static void *spin_until_exec(void *arg)
{
	target_tell((uint64_t)gettid());
	call_outermost(spin_root);
	return arg;
}

static void have_a_thread_that_execs(void *arg)
{
	pthread_t th;

	(void)arg;
	signal(SIGUSR1, exec_spinner);
	target_check(!pthread_create(&th, NULL, spin_until_exec, NULL));
	call_outermost(spin_root);
}

/* It takes over the leader's number, and with its own number nobody ever exits. */
Test(deferred, what_a_thread_had_goes_when_it_execs)
{
	size_t two = 2;
	struct target t;
	pid_t tid;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, have_a_thread_that_execs, NULL);
	tid = (pid_t)target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	cr_assert(wait_until(have_deferrals, &two, WAIT_MS));
	cr_assert(zero(int, tgkill(t.pid, tid, SIGUSR1)));
	recorder_wait(&r, 100);
	target_end(&t);
	cr_expect(wait_until(has_no_deferral, NULL, 2000), "%zu are left", deferral_cnt());
	recorder_stop(&r);
	expect_accounts(&r);
}

/* ---- many samples a second ------------------------------------------------------------------ */

struct range {
	uint64_t start, end;
};

#define RANGE_CNT 16

/* Where the functions are that take stacks: "ffffffffc0001234 t bpf_prog_0123_vp_attempt [bpf]". */
static size_t find_programs(struct range *ranges)
{
	static const char *const names[] = {"_vp_take_user_stack", "_vp_attempt",
					    "_vp_deferred_step"};
	FILE *f = fopen("/proc/kallsyms", "re");
	bool open_end = false;
	char line[512];
	size_t n = 0;

	cr_assert(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		uint64_t at = strtoull(line, NULL, 16);
		bool is_one = false;

		if (open_end)
			ranges[n - 1].end = at;
		for (size_t i = 0; i < 3; i++)
			is_one |= strstr(line, "bpf_prog_") && strstr(line, names[i]);
		open_end = is_one && n < RANGE_CNT;
		if (open_end)
			ranges[n++] = (struct range){at, at + 4096};
	}
	fclose(f);
	return n;
}

static bool is_in_programs(const struct log_item *it, const struct range *ranges, size_t cnt)
{
	for (size_t i = 0; i < it->sample.kern_cnt; i++) {
		for (size_t j = 0; j < cnt; j++) {
			if (it->kern[i] >= ranges[j].start && it->kern[i] < ranges[j].end)
				return true;
		}
	}
	return false;
}

/*
 * A stack of 600 frames takes longer than the time between two samples: many interrupt the
 * program that takes it.
 */
Test(deferred, a_sample_while_the_stack_is_taken_gets_that_stack)
{
	struct range ranges[RANGE_CNT];
	size_t programs, within = 0;
	struct target t;

	r.freq_hz = many_hz();
	spin_depth = 600;
	recorder_open(&r, VP_FILTER_TGID, 0);
	programs = find_programs(ranges);
	cr_assert(gt(sz, programs, 0));
	start_spinning(&t, spin_at_depth);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 3000);
	recorder_settle(&r);
	recorder_stop(&r);
	expect_accounts(&r);
	expect_the_interrupts((uint32_t)t.pid);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		/* the first may still be on its way down */
		if (it->hdr.kind != VP_REC_SAMPLE || !is_in_programs(it, ranges, programs) ||
		    !it->sample.user_cnt || !is_in(it->user[0].pc, spin_leaf))
			continue;
		cr_expect(eq(u32, it->sample.user_cnt, 604));
		cr_expect(eq(u32, it->sample.user_end, VP_END_BOTTOM));
		within++;
	}
	cr_expect(gt(sz, within, 0));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_DEFER_FAILED)));
	target_end(&t);
}

/* Short-lived processes with threads; some exec. */
static void churn(int worker)
{
	for (int i = 0;; i++) {
		pid_t pid = target_fork();

		if (pid == 0) {
			pthread_t th;

			pthread_create(&th, NULL, spin_until_enough, NULL);
			for (volatile int n = 0; n < 1000000; n++)
				;
			if ((i + worker) % 2)
				execl("/bin/true", "true", (char *)NULL);
			_exit(0);
		}
		target_check(pid > 0);
		waitpid(pid, NULL, 0);
	}
}

static void have_churning_workers(void *arg)
{
	(void)arg;
	target_await();
	for (int i = 0; i < 4; i++) {
		pid_t pid = target_fork();

		target_check(pid >= 0);
		if (pid == 0)
			churn(i);
	}
	target_pause();
}

static void record_churn(uint64_t ring_bytes)
{
	struct target t;

	r.freq_hz = many_hz();
	recorder_open(&r, VP_FILTER_TGID, ring_bytes);
	target_start(&t, have_churning_workers, NULL);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	recorder_wait(&r, 5000);
	recorder_stop(&r);
	target_end(&t);
	expect_accounts(&r);
	cr_expect(gt(u64, r.joiner.joined_cnt, 1000));
	cr_expect(gt(u64, r.joiner.exited_cnt, 0));
}

Test(deferred, every_one_of_many_samples_is_accounted_for)
{
	record_churn(64 << 20);
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_LOST_SAMPLE)));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_LOST_USER_STACK)));
	expect_all_announced(&r, 5000);
	expect_cookies();
}

Test(deferred, every_sample_is_accounted_for_when_the_ring_is_too_small)
{
	record_churn(8192);
	cr_expect(gt(u64, recorder_counter(&r, VP_CNT_LOST_SAMPLE), 0));
	cr_expect(gt(u64, recorder_counter(&r, VP_CNT_LOST_USER_STACK), 0));
}
