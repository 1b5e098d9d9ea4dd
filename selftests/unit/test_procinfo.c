/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "target.h"
#include "util/procinfo.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TestSuite(procinfo, .timeout = 30);

static void pause_under_a_name(void *arg)
{
	prctl(PR_SET_NAME, arg);
	target_tell(0);
	target_pause();
}

static void expect_comm(const char *name)
{
	struct vp_procinfo info = {0};
	struct vp_err e = {""};
	struct target t;

	target_start(&t, pause_under_a_name, (void *)name);
	target_hear(&t);
	cr_expect(zero(int, vp_procinfo_check(t.pid, &info, &e)), "%s", e.text);
	cr_expect(eq(str, info.comm, (char *)name));
	cr_expect(eq(int, info.tgid, t.pid));
	cr_expect(not(info.kernel_thread));
	cr_expect(not(info.zombie));
	target_end(&t);
}

Test(procinfo, names_may_hold_anything)
{
	expect_comm("plain");
	expect_comm("a) b");
	expect_comm(") Z 1 (");
	expect_comm("(((");
	expect_comm("new\nline");
	expect_comm("");
	expect_comm("123456789012345");
	expect_comm("x\nTgid:\t1");
	expect_comm("\xff\xfe %s %n");
}

static void *pause_in_a_thread(void *arg)
{
	(void)arg;
	target_tell((uint64_t)gettid());
	target_pause();
}

static void have_a_thread(void *arg)
{
	pthread_t th;

	(void)arg;
	target_check(!pthread_create(&th, NULL, pause_in_a_thread, NULL));
	target_pause();
}

Test(procinfo, a_thread_names_its_process)
{
	struct vp_procinfo info = {0};
	struct target t;
	pid_t tid;

	target_start(&t, have_a_thread, NULL);
	tid = (pid_t)target_hear(&t);
	cr_assert(ne(int, tid, t.pid));
	cr_expect(zero(int, vp_procinfo_check(tid, &info, NULL)));
	cr_expect(eq(int, info.tgid, t.pid));
	target_end(&t);
}

static void use_cpu(void *arg)
{
	struct timespec used;

	(void)arg;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (used.tv_sec == 0 && used.tv_nsec < 300000000);
	target_tell(0);
	target_pause();
}

Test(procinfo, tells_the_cpu_time_of_a_process)
{
	struct vp_procinfo info = {0};
	const uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);
	struct target t;

	target_start(&t, use_cpu, NULL);
	target_hear(&t);
	cr_assert(zero(int, vp_procinfo_read(t.pid, &info)));
	cr_expect(ge(u64, info.cpu_ticks, hz / 5));
	cr_expect(lt(u64, info.cpu_ticks, hz * 100));
	target_end(&t);
	target_start(&t, pause_under_a_name, (void *)"idle");
	target_hear(&t);
	cr_assert(zero(int, vp_procinfo_read(t.pid, &info)));
	cr_expect(lt(u64, info.cpu_ticks, hz / 5));
	target_end(&t);
}

static void do_nothing(void *arg)
{
	(void)arg;
}

Test(procinfo, a_zombie_is_refused_by_name)
{
	struct vp_procinfo info = {0};
	struct vp_err e = {""};
	struct target t;
	siginfo_t si;

	target_start(&t, do_nothing, NULL);
	cr_assert(zero(int, waitid(P_PID, (id_t)t.pid, &si, WEXITED | WNOWAIT)));
	cr_expect(eq(int, vp_procinfo_check(t.pid, &info, &e), -ESRCH));
	cr_expect(info.zombie);
	cr_expect(strstr(e.text, ": a zombie") != NULL, "%s", e.text);
	target_end(&t);
}

static void *tell_when_leader_is_gone(void *arg)
{
	target_await_lone();
	target_tell(0);
	target_pause();
	return arg;
}

static void leave_a_thread_behind(void *arg)
{
	pthread_t th;

	(void)arg;
	target_check(!pthread_create(&th, NULL, tell_when_leader_is_gone, NULL));
	syscall(SYS_exit, 0);
}

Test(procinfo, a_process_whose_leader_has_exited_lives)
{
	struct vp_procinfo info = {0};
	struct vp_err e = {""};
	struct target t;

	target_start(&t, leave_a_thread_behind, NULL);
	target_hear(&t);
	cr_expect(zero(int, vp_procinfo_check(t.pid, &info, &e)), "%s", e.text);
	cr_expect(not(info.zombie));
	target_end(&t);
}

Test(procinfo, who_is_not_there_is_said_so)
{
	struct vp_procinfo info;
	struct vp_err e = {""};
	struct target t;
	pid_t pid;

	target_start(&t, do_nothing, NULL);
	pid = t.pid;
	target_wait(&t);
	cr_expect(eq(int, vp_procinfo_read(pid, &info), -ESRCH));
	cr_expect(eq(int, vp_procinfo_check(pid, &info, &e), -ESRCH));
	cr_expect(strstr(e.text, "no such process") != NULL, "%s", e.text);
	cr_expect(eq(int, vp_procinfo_check(INT32_MAX, &info, &e), -ESRCH));
}

Test(procinfo, a_kernel_thread_is_refused_by_name)
{
	struct vp_procinfo info = {0};
	struct vp_err e = {""};

	if (vp_procinfo_read(2, &info) || strcmp(info.comm, "kthreadd"))
		cr_skip_test("in a pid namespace: no kernel thread to be seen");
	cr_expect(info.kernel_thread);
	cr_expect(eq(int, vp_procinfo_check(2, &info, &e), -ESRCH));
	cr_expect(eq(str, e.text,
		     "PID 2 (kthreadd): a kernel thread, which has no user mappings (name a user "
		     "process)"));
}
