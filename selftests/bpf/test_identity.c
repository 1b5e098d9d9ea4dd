/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose a sample is: images that follow each other fast, numbers used again, threads alone. */
#include "expect.h"
#include "recorder.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLLOW (VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT)

static struct recorder r = {.call_graph = VP_CALL_GRAPH_FP};
static char dir[] = "/tmp/vmaprof-identity.XXXXXX";

static void set_inline(void)
{
	r.mode = VP_UNWIND_INLINE;
}

static void set_deferred(void)
{
	recorder_defer(&r);
}

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void tear_down(void)
{
	recorder_close(&r);
	if (strchr(dir, 'X'))
		return;
	unlink(in_dir("exec_loop_a"));
	unlink(in_dir("exec_loop_b"));
	rmdir(dir);
}

TestSuite(identity, .init = set_inline, .fini = tear_down, .timeout = 60);
TestSuite(identity_deferred, .init = set_deferred, .fini = tear_down, .timeout = 60);

/* ---- exec after exec ------------------------------------------------------------------------- */

#define IMAGES 300

/* Its two names are links to the workload. */
static void make_names(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	cr_assert(gt(int, (int)n, 0));
	path[n] = '\0';
	strcpy(strrchr(path, '/'), "/workloads/exec_loop");
	cr_assert(mkdtemp(dir) != NULL);
	cr_assert(zero(int, symlink(path, in_dir("exec_loop_a"))));
	cr_assert(zero(int, symlink(path, in_dir("exec_loop_b"))));
}

static void exec_in_a_loop(void *arg)
{
	char images[24];

	(void)arg;
	snprintf(images, sizeof(images), "%d", IMAGES);
	target_tell(0);
	target_await();
	execl(in_dir("exec_loop_a"), "exec_loop", images, "200000", dir, (char *)NULL);
}

/*
 * Between its new name and its new number an image is the kernel's alone: there a sample may have the
 * name of the next image. Never that of the one before.
 */
static bool has_its_own_name(const struct vp_rec_sample *s, uint32_t first)
{
	char names[2] = {'b', 'a'};
	char is = s->comm[strlen("exec_loop_")];

	return is == names[(s->proc.exec_id - first + 1) % 2] ||
	       s->hdr.flags & VP_SAMPLE_F_KERNEL_MODE;
}

static void images_that_exec_each_other_are_not_mixed_up(void)
{
	uint32_t first = 0, last = 0;
	size_t named = 0, in_image = 0;
	struct target t;

	make_names();
	r.freq_hz = 3999;
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, exec_in_a_loop, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_INHERIT);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	cr_expect(zero(int, target_wait(&t)));
	recorder_stop(&r);

	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind == VP_REC_EXEC) {
			first = first ? first : it->exec.proc.exec_id;
			/* each one is there, in their order */
			cr_expect(eq(u32, it->exec.proc.exec_id, last ? last + 1 : first));
			last = it->exec.proc.exec_id;
		}
		if (it->hdr.kind != VP_REC_SAMPLE)
			continue;
		/* nothing of an image follows the exec of the next */
		cr_expect(ge(u32, it->sample.proc.exec_id, last));
		cr_expect(has_its_own_name(&it->sample, first), "'%s' in exec %u of %u",
			  it->sample.comm, it->sample.proc.exec_id, first);
		named++;
		for (size_t j = 0; j < it->sample.user_cnt; j++)
			in_image += it->user[j].verdict == VP_VERDICT_FILE &&
				    strstr(name_of_file(&r.log, it->user[j].file_id),
					   "/exec_loop") != NULL;
	}
	cr_expect(eq(u32, last - first, IMAGES));
	cr_expect(ge(sz, named, IMAGES / 4));
	cr_expect(ge(sz, in_image, IMAGES / 4));
	expect_all_announced(&r, IMAGES / 4);
}

/* ---- a number that is used again ------------------------------------------------------------- */

#define CODE_AT 0x20000000000UL
#define LIVES	6

static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {.exit_signal = SIGCHLD,
				  .set_tid = pid ? (uintptr_t)&pid : 0,
				  .set_tid_size = pid ? 1 : 0};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static void *map_code(int fd, size_t page)
{
	void *p = mmap((void *)CODE_AT, PAGE, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, (off_t)(page * PAGE));

	target_check(p == (void *)CODE_AT);
	return p;
}

/* Lives of one number, one after the other, each with another page at the same address. */
static void live_again_and_again(void *arg)
{
	int fd = code_file(LIVES, endless_code, sizeof(endless_code));
	pid_t pid = 0, self = getpid();

	(void)arg;
	target_tell(0);
	target_await();
	for (size_t n = 0; n < LIVES; n++) {
		pid = fork_as(pid);
		if (pid < 0 && errno == EPERM)
			target_tell(0);
		target_check(pid >= 0);
		if (!pid) {
			target_die_with(self);
			call_outermost((void (*)(void))map_code(fd, n));
		}
		target_tell((uint64_t)pid);
		target_await();
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

/* The n-th life of that number, as its fork announced it; 0: there is none. */
static uint64_t nth_start(uint32_t tgid, size_t n)
{
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind == VP_REC_FORK && it->fork.child.tgid == tgid && n-- == 0)
			return it->fork.child.start_ns;
	}
	return 0;
}

struct life {
	uint32_t tgid;
	size_t n;
};

/* Samples of a life in its own code: in the n-th page, whatever the mapping is said to be. */
static size_t check_life(const struct life *life)
{
	uint64_t start_ns = nth_start(life->tgid, life->n);
	size_t n = 0;

	for (size_t i = 0; i < r.log.cnt && start_ns; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.proc.tgid != life->tgid ||
		    it->sample.proc.start_ns != start_ns || !it->sample.user_cnt ||
		    (it->user[0].pc & ~(PAGE - 1)) != CODE_AT)
			continue;
		cr_expect(eq(u32, it->user[0].verdict, VP_VERDICT_FILE));
		cr_expect(eq(u64, it->user[0].offset, it->user[0].pc - CODE_AT + life->n * PAGE));
		n++;
	}
	return n;
}

#define LIFE_SAMPLES 20

static bool is_sampled(void *arg)
{
	size_t n;

	pthread_mutex_lock(&r.log.lock);
	n = check_life(arg);
	pthread_mutex_unlock(&r.log.lock);
	return n >= LIFE_SAMPLES;
}

static void a_number_that_is_used_again_is_another_process(void)
{
	struct life life = {0};
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, live_again_and_again, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	for (; life.n < LIVES; life.n++) {
		uint32_t tgid = (uint32_t)target_hear(&t);

		if (!tgid)
			cr_skip_test("numbers cannot be chosen here");
		cr_expect(life.n == 0 || tgid == life.tgid);
		life.tgid = tgid;
		cr_expect(wait_until(is_sampled, &life, 20000), "life %zu", life.n);
		target_say(&t, 0);
	}
	cr_expect(zero(int, target_wait(&t)));
	recorder_stop(&r);
	for (life.n = 0; life.n < LIVES; life.n++)
		cr_expect(ge(sz, check_life(&life), LIFE_SAMPLES), "life %zu", life.n);
	expect_all_announced(&r, LIVES * LIFE_SAMPLES);
}

/* ---- a process without its leader ------------------------------------------------------------ */

/* What it maps, the leader never saw. */
static void *map_alone(void *arg)
{
	int fd = code_file(2, endless_code, sizeof(endless_code));

	target_await_lone();
	prctl(PR_SET_NAME, "vp alone");
	target_tell((uint64_t)gettid());
	call_outermost((void (*)(void))map_code(fd, 1));
	return arg;
}

static void leave_a_thread_alone(void *arg)
{
	pthread_t th;

	(void)arg;
	target_tell(0);
	target_await();
	target_check(!pthread_create(&th, NULL, map_alone, NULL));
	pthread_exit(NULL);
}

static void a_thread_whose_leader_is_gone_has_its_mappings(void)
{
	size_t alone = 0;
	struct target t;
	pid_t tid;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, leave_a_thread_alone, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	tid = (pid_t)target_hear(&t);
	recorder_wait_in(&r, t.pid, (const void *)CODE_AT, PAGE, 60);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.tid != (uint32_t)tid ||
		    !it->sample.user_cnt || (it->user[0].pc & ~(PAGE - 1)) != CODE_AT)
			continue;
		cr_expect(eq(u32, it->sample.proc.tgid, t.pid));
		cr_expect(eq(str, (char *)it->sample.comm, "vp alone"));
		cr_expect(eq(u32, it->user[0].verdict, VP_VERDICT_FILE));
		cr_expect(eq(u64, it->user[0].offset, it->user[0].pc - CODE_AT + PAGE));
		alone++;
	}
	cr_expect(ge(sz, alone, 60));
	/* once: its table outlived the leader */
	alone = 0;
	for (size_t i = 0; i < r.log.cnt; i++)
		alone += r.log.item[i].hdr.kind == VP_REC_MMAP2 &&
			 r.log.item[i].mmap2.perf.addr == CODE_AT;
	cr_expect(eq(sz, alone, 1));
	expect_all_announced(&r, 60);
	target_end(&t);
}

/* ---- memory that two processes share --------------------------------------------------------- */

struct shared_code {
	pid_t parent;
	void *code;
};

static int spin_in_the_same_memory(void *arg)
{
	const struct shared_code *c = arg;

	target_die_with(c->parent);
	call_outermost((void (*)(void))c->code);
	return 0;
}

static void share_memory_with_a_child(void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	int fd = code_file(2, endless_code, sizeof(endless_code));
	bool wait_for_it = *(const bool *)arg;
	struct shared_code c = {.parent = getpid()};
	pid_t pid;

	target_tell(0);
	target_await();
	c.code = map_code(fd, 1);
	/* as vfork does: the parent sleeps until the child execs or ends, and it does not */
	pid = clone(spin_in_the_same_memory, stack + sizeof(stack),
		    CLONE_VM | SIGCHLD | (wait_for_it ? CLONE_VFORK : 0), &c);
	target_check(pid > 0);
	call_outermost((void (*)(void))c.code);
}

static void expect_own_samples_of_a_child_in_the_same_memory(bool vfork)
{
	size_t of_parent = 0, of_child = 0;
	uint32_t child = 0;
	struct target t;

	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, share_memory_with_a_child, &vfork);
	target_hear(&t);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	recorder_wait(&r, 200);
	recorder_stop(&r);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind == VP_REC_FORK)
			child = it->fork.child.tgid;
		if (it->hdr.kind != VP_REC_SAMPLE || !it->sample.user_cnt ||
		    (it->user[0].pc & ~(PAGE - 1)) != CODE_AT)
			continue;
		cr_expect(eq(u64, it->user[0].offset, it->user[0].pc - CODE_AT + PAGE));
		of_parent += it->sample.proc.tgid == (uint32_t)t.pid;
		of_child += it->sample.proc.tgid == child;
	}
	cr_expect(ge(sz, of_child, 20));
	if (vfork)
		cr_expect(zero(sz, of_parent));
	else
		cr_expect(ge(sz, of_parent, 20));
	expect_all_announced(&r, 150);
	kill((pid_t)child, SIGKILL);
	target_end(&t);
}

static void a_child_in_the_same_memory_is_a_process_of_its_own(void)
{
	expect_own_samples_of_a_child_in_the_same_memory(false);
}

static void a_child_of_vfork_is_a_process_of_its_own(void)
{
	expect_own_samples_of_a_child_in_the_same_memory(true);
}

/* ---- in both modes --------------------------------------------------------------------------- */

Test(identity, images_that_exec_each_other_are_not_mixed_up)
{
	images_that_exec_each_other_are_not_mixed_up();
}

Test(identity_deferred, images_that_exec_each_other_are_not_mixed_up)
{
	images_that_exec_each_other_are_not_mixed_up();
}

Test(identity, a_number_that_is_used_again_is_another_process)
{
	a_number_that_is_used_again_is_another_process();
}

Test(identity_deferred, a_number_that_is_used_again_is_another_process)
{
	a_number_that_is_used_again_is_another_process();
}

Test(identity, a_thread_whose_leader_is_gone_has_its_mappings)
{
	a_thread_whose_leader_is_gone_has_its_mappings();
}

Test(identity_deferred, a_thread_whose_leader_is_gone_has_its_mappings)
{
	a_thread_whose_leader_is_gone_has_its_mappings();
}

Test(identity, a_child_in_the_same_memory_is_a_process_of_its_own)
{
	a_child_in_the_same_memory_is_a_process_of_its_own();
}

Test(identity_deferred, a_child_in_the_same_memory_is_a_process_of_its_own)
{
	a_child_in_the_same_memory_is_a_process_of_its_own();
}

Test(identity, a_child_of_vfork_is_a_process_of_its_own)
{
	a_child_of_vfork_is_a_process_of_its_own();
}

Test(identity_deferred, a_child_of_vfork_is_a_process_of_its_own)
{
	a_child_of_vfork_is_a_process_of_its_own();
}
