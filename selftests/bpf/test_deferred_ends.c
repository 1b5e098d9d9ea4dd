/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deferred mode: threads that never return to user mode, and those that have none. */
#include "expect.h"
#include "fixture_elf.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 20000

static struct recorder r = {
	.mode = VP_UNWIND_DEFERRED,
	.call_graph = VP_CALL_GRAPH_FP,
	.keep_raw = true,
};

static struct fixture x;

static void set_up(void)
{
	recorder_defer(&r);
	fixture_new(&x);
}

static void tear_down(void)
{
	recorder_close(&r);
	if (x.dir[0])
		fixture_remove(&x);
}

TestSuite(deferred_ends, .init = set_up, .fini = tear_down, .timeout = 60);

/* ---- memory that takes long to let go of ---------------------------------------------------- */

#define TIMES	  512
#define ALL_BYTES (1UL << 20)

/* The same megabyte at many addresses: page tables and no memory. */
static void map_much(void)
{
	int fd = memfd_create("vp-much", MFD_CLOEXEC);

	target_check(fd >= 0 && !ftruncate(fd, ALL_BYTES));
	for (int i = 0; i < TIMES; i++)
		target_check(mmap(NULL, ALL_BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_POPULATE, fd, 0) != MAP_FAILED);
}

/* Samples of tgid, from item `from` to item `to`, that ended so; each has a kernel part. */
static size_t count_ended(const struct record_log *l, uint32_t tgid, uint16_t end, size_t from,
			  size_t to)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.proc.tgid != tgid ||
		    it->sample.user_end != end)
			continue;
		cr_expect(zero(u32, it->sample.user_cnt));
		cr_expect(gt(u32, it->sample.kern_cnt, 0));
		n++;
	}
	return n;
}

/* What is there is of the image that m was read from. */
static void expect_frames_of(const struct record_log *l, const struct procmaps *m, uint32_t tgid,
			     size_t to)
{
	for (size_t i = 0; i < to; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.proc.tgid != tgid)
			continue;
		for (size_t j = 0; j < it->sample.user_cnt; j++)
			cr_expect(procmaps_find(m, log_frame_at(&it->user[j])) != NULL);
	}
}

/* ---- exec ----------------------------------------------------------------------------------- */

static void exec_shell(int sig)
{
	(void)sig;
	execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
	_exit(95);
}

static void spin_until_exec(void *arg)
{
	(void)arg;
	map_much();
	signal(SIGUSR1, exec_shell);
	target_tell((uint64_t)gettid());
	call_outermost(spin_root);
}

static void *spin_until_exec_in_a_thread(void *arg)
{
	target_tell((uint64_t)gettid());
	call_outermost(spin_root);
	return arg;
}

static void have_a_thread_that_execs(void *arg)
{
	pthread_t th;

	(void)arg;
	map_much();
	signal(SIGUSR1, exec_shell);
	target_check(!pthread_create(&th, NULL, spin_until_exec_in_a_thread, NULL));
	call_outermost(spin_root);
}

/*
 * The old memory goes while the system call runs: samples of it cannot have a stack, and must not
 * get the new image's.
 */
static void expect_exec_ends_stacks(target_body body)
{
	struct procmaps m;
	struct target t;
	size_t exec_at;
	pid_t tid;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, body, NULL);
	tid = (pid_t)target_hear(&t);
	procmaps_read(&m, t.pid);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	recorder_wait(&r, 20);
	cr_assert(zero(int, tgkill(t.pid, tid, SIGUSR1)));
	recorder_wait(&r, 150);
	recorder_settle(&r);
	recorder_stop(&r);
	expect_accounts(&r);

	cr_assert(eq(sz, record_log_count(&r.log, VP_REC_EXEC), 1));
	exec_at = first_of(&r.log, VP_REC_EXEC, (uint32_t)t.pid);
	cr_expect(gt(sz, count_ended(&r.log, (uint32_t)t.pid, VP_END_EXITED, 0, exec_at), 0));
	expect_frames_of(&r.log, &m, (uint32_t)t.pid, exec_at);
	cr_expect(gt(u64, r.joiner.exited_cnt, 0));
	procmaps_free(&m);
	target_end(&t);
}

Test(deferred_ends, an_exec_ends_what_waits)
{
	expect_exec_ends_stacks(spin_until_exec);
}

Test(deferred_ends, an_exec_by_a_thread_ends_what_waits)
{
	expect_exec_ends_stacks(have_a_thread_that_execs);
}

/* ---- death ---------------------------------------------------------------------------------- */

static void spin_with_much(void *arg)
{
	(void)arg;
	map_much();
	target_tell(0);
	call_outermost(spin_root);
	_exit(0);
}

static void stop_spinning(int sig)
{
	(void)sig;
	_exit(0);
}

static void spin_until_exit(void *arg)
{
	signal(SIGUSR1, stop_spinning);
	spin_with_much(arg);
}

#define IOV_CNT	   1024
#define READ_BYTES (1UL << 20)

static void read_for_ever(void *arg)
{
	static struct iovec iov[IOV_CNT];
	void *room =
		mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)arg;
	target_check(room != MAP_FAILED && fd >= 0);
	for (int i = 0; i < IOV_CNT; i++)
		iov[i] = (struct iovec){room, READ_BYTES};
	target_tell(0);
	for (;;)
		readv(fd, iov, IOV_CNT);
}

/* All that was sampled of a process that has ended has its stack, or says why not. */
static void expect_all_ended(uint32_t tgid)
{
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.proc.tgid != tgid)
			continue;
		cr_expect(ne(u32, it->sample.user_end, VP_END_IN_KERNEL));
		if (it->sample.user_end == VP_END_EXITED ||
		    it->sample.user_end == VP_END_KERNEL_ONLY)
			cr_expect(gt(u32, it->sample.kern_cnt, 0));
		else
			cr_expect(gt(u32, it->sample.user_cnt, 0));
	}
	cr_expect(zero(u64, r.joiner.in_kernel_cnt));
}

static void record_death(struct target *t, target_body body, int sig, uint32_t samples)
{
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(t, body, NULL);
	target_hear(t);
	recorder_add(&r, t->pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t->pid);
	recorder_wait(&r, samples);
	cr_assert(zero(int, kill(t->pid, sig)));
	while (waitid(P_PID, (id_t)t->pid, &(siginfo_t){0}, WEXITED | WNOWAIT) && errno == EINTR)
		;
	recorder_settle(&r);
	recorder_stop(&r);
	expect_accounts(&r);
	expect_all_ended((uint32_t)t->pid);
}

Test(deferred_ends, a_process_that_exits_loses_no_sample)
{
	struct target t;

	record_death(&t, spin_until_exit, SIGUSR1, 20);
	cr_expect(gt(sz,
		     count_ended(&r.log, (uint32_t)t.pid, VP_END_EXITED, 0, r.log.cnt) +
			     count_ended(&r.log, (uint32_t)t.pid, VP_END_KERNEL_ONLY, 0, r.log.cnt),
		     0));
	target_end(&t);
}

Test(deferred_ends, a_process_that_is_killed_loses_no_sample)
{
	struct target t;

	record_death(&t, spin_with_much, SIGKILL, 20);
	cr_expect(gt(sz,
		     count_ended(&r.log, (uint32_t)t.pid, VP_END_EXITED, 0, r.log.cnt) +
			     count_ended(&r.log, (uint32_t)t.pid, VP_END_KERNEL_ONLY, 0, r.log.cnt),
		     0));
	target_end(&t);
}

Test(deferred_ends, a_process_that_is_killed_in_a_system_call_loses_no_sample)
{
	struct target t;

	record_death(&t, read_for_ever, SIGKILL, 50);
	target_end(&t);
}

#define CORE_BYTES (64UL << 20)

static void spin_until_a_core_is_dumped(void *arg)
{
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	char *much =
		mmap(NULL, CORE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	target_check(much != MAP_FAILED);
	memset(much, 1, CORE_BYTES);
	target_check(!chdir(x.dir) && !setrlimit(RLIMIT_CORE, &unlimited));
	/* of a test process that Criterion watches */
	signal(SIGQUIT, SIG_DFL);
	target_tell(0);
	call_outermost(spin_root);
}

/* The dump is written after the last chance of the task to have its stack taken. */
Test(deferred_ends, a_thread_that_dies_with_its_stack_pending_keeps_its_kernel_part)
{
	char pattern[128] = "";
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "re");
	struct target t;

	if (f) {
		if (!fgets(pattern, sizeof(pattern), f))
			pattern[0] = '\0';
		fclose(f);
	}
	if (!pattern[0] || pattern[0] == '\n' || strchr("|/", pattern[0])) {
		fixture_remove(&x);
		cr_skip_test("core dumps do not go to the working directory");
	}
	record_death(&t, spin_until_a_core_is_dumped, SIGQUIT, 20);
	cr_expect(gt(u64, r.joiner.exited_cnt, 0));
	cr_expect(ge(sz, count_ended(&r.log, (uint32_t)t.pid, VP_END_EXITED, 0, r.log.cnt),
		     r.joiner.exited_cnt));
	target_end(&t);
}

/* ---- tasks without a user side -------------------------------------------------------------- */

static int uring_fd;
static char *sq, *sqes;
static struct io_uring_params params;

static void open_uring(void)
{
	uring_fd = (int)syscall(SYS_io_uring_setup, 4, &params);
	target_check(uring_fd >= 0);
	sq = mmap(NULL, params.sq_off.array + 4 * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		  MAP_SHARED, uring_fd, IORING_OFF_SQ_RING);
	sqes = mmap(NULL, 4 * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
		    uring_fd, IORING_OFF_SQES);
	target_check(sq != MAP_FAILED && sqes != MAP_FAILED);
}

/* Has a worker of the kernel's read, waits for it, and again. Completions are not looked at. */
static void read_by_a_worker(void *arg)
{
	static struct iovec iov[IOV_CNT];
	void *room =
		mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint32_t *tail, *array;

	(void)arg;
	target_check(room != MAP_FAILED && fd >= 0);
	for (int i = 0; i < IOV_CNT; i++)
		iov[i] = (struct iovec){room, READ_BYTES};
	open_uring();
	tail = (uint32_t *)(sq + params.sq_off.tail);
	array = (uint32_t *)(sq + params.sq_off.array);
	*(struct io_uring_sqe *)sqes = (struct io_uring_sqe){
		.opcode = IORING_OP_READV,
		.flags = IOSQE_ASYNC,
		.fd = fd,
		.addr = (uint64_t)iov,
		.len = IOV_CNT,
	};
	array[*tail & 3] = 0;
	target_tell(0);
	for (;;) {
		uint32_t *cq_head = (uint32_t *)(sq + params.cq_off.head);
		uint32_t *cq_tail = (uint32_t *)(sq + params.cq_off.tail);

		array[*tail & 3] = 0;
		__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
		target_check(syscall(SYS_io_uring_enter, uring_fd, 1, 1, IORING_ENTER_GETEVENTS,
				     NULL, 0) == 1);
		__atomic_store_n(cq_head, __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
	}
}

static void expect_kernel_only(const struct log_item *it)
{
	cr_expect(zero(u32, it->hdr.flags & VP_SAMPLE_F_DEFERRED));
	cr_expect(zero(u64, it->sample.cookie));
	cr_expect(eq(u32, it->sample.user_end, VP_END_KERNEL_ONLY));
	cr_expect(zero(u32, it->sample.user_cnt));
	cr_expect(gt(u32, it->sample.kern_cnt, 0));
}

static bool is_worker(const struct log_item *it)
{
	return it->hdr.kind == VP_REC_SAMPLE && !strncmp(it->sample.comm, "iou-wrk-", 8);
}

static bool are_workers_there(void *arg)
{
	struct record_log *l = arg;
	size_t n = 0;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->cnt; i++)
		n += is_worker(&l->item[i]);
	pthread_mutex_unlock(&l->lock);
	return n >= 20;
}

static void expect_workers_have_no_stack(void)
{
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, read_by_a_worker, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	cr_assert(wait_until(are_workers_there, &r.raw, WAIT_MS));
	recorder_stop(&r);
	expect_accounts(&r);
	for (size_t i = 0; i < r.raw.cnt; i++) {
		if (is_worker(&r.raw.item[i]))
			expect_kernel_only(&r.raw.item[i]);
	}
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_DEFER_FAILED)));
	target_end(&t);
}

Test(deferred_ends, the_kernels_helpers_of_a_process_have_no_stack)
{
	expect_workers_have_no_stack();
}

Test(deferred_ends, the_kernels_helpers_of_a_process_have_no_stack_inline)
{
	r.mode = VP_UNWIND_INLINE;
	expect_workers_have_no_stack();
}

/* Keeps the block layer's and the file system's threads busy. */
static void write_and_sync(void *arg)
{
	static char bytes[65536];
	int fd = open(x.dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	(void)arg;
	target_check(fd >= 0);
	for (int i = 0;; i = (i + 1) % 64) {
		target_check(pwrite(fd, bytes, sizeof(bytes), (off_t)i * (off_t)sizeof(bytes)) > 0);
		fdatasync(fd);
	}
}

static bool is_kernel_thread(uint32_t tid)
{
	char path[64], line[512] = "", *rest;
	unsigned int flags = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	rest = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return rest && sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       (flags & 0x00200000);
}

static bool is_kernel_thread_there(void *arg)
{
	struct record_log *l = arg;
	uint32_t tid = 0;

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->cnt && !tid; i++) {
		if (l->item[i].hdr.kind == VP_REC_SAMPLE && is_kernel_thread(l->item[i].sample.tid))
			tid = l->item[i].sample.tid;
	}
	pthread_mutex_unlock(&l->lock);
	return tid != 0;
}

Test(deferred_ends, kernel_threads_have_no_stack)
{
	struct target t;
	size_t n = 0;

	recorder_open(&r, VP_FILTER_ALL, 0);
	target_start(&t, write_and_sync, NULL);
	recorder_start(&r, 0);
	cr_assert(wait_until(is_kernel_thread_there, &r.raw, WAIT_MS));
	recorder_stop(&r);
	expect_accounts(&r);
	for (size_t i = 0; i < r.raw.cnt; i++) {
		const struct log_item *it = &r.raw.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || !is_kernel_thread(it->sample.tid))
			continue;
		expect_kernel_only(it);
		n++;
	}
	cr_expect(gt(sz, n, 0));
	target_end(&t);
}
