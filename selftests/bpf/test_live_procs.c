/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Live tracking: whose mappings; suites are those of test_live.c. */
#include "live_env.h"
#include "procmaps.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 20000

/* ---- processes ------------------------------------------------------------------------------ */

static void *map_in_a_thread(void *arg)
{
	target_tell(live_map_exec(*(int *)arg, 1, 0, MAP_PRIVATE));
	return NULL;
}

/* Tells what a thread of it mapped, a child's tgid, and what that mapped. */
static void map_in_thread_and_child(void *arg)
{
	int fd = live_new_file("shared", 8);
	pthread_t th;
	pid_t child;

	(void)arg;
	target_await();
	target_check(!pthread_create(&th, NULL, map_in_a_thread, &fd));
	pthread_join(th, NULL);
	child = target_fork();
	target_check(child >= 0);
	if (child == 0) {
		target_tell((uint64_t)getpid());
		target_tell(live_map_exec(fd, 1, 2 * PAGE, MAP_PRIVATE));
	}
	target_pause();
}

static void threads_and_children_are_tracked(void)
{
	uint64_t by_thread, by_child;
	struct target t;
	pid_t child;
	size_t n;

	live_open();
	target_start(&t, map_in_thread_and_child, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT);
	live_attach();
	live_walk(&live_env.filling, t.pid);
	live_start_reading();
	target_say(&t, 0);
	by_thread = target_hear(&t);
	child = (pid_t)target_hear(&t);
	by_child = target_hear(&t);
	live_stop_reading();

	n = live_env.log.cnt;
	live_walk(&live_env.checking, t.pid);
	live_walk(&live_env.checking, child);
	live_expect_start_once(t.pid, by_thread, n);
	live_expect_start_once(child, by_child, n);
	/* … and has all that its parent had */
	cr_expect(eq(sz, record_log_count(&live_env.log, VP_REC_INHERIT), 1));
	target_end(&t);
}

static void exec_sleep(void *arg)
{
	(void)arg;
	target_await();
	execlp("sleep", "sleep", "1000", NULL);
}

static bool is_sleep_asleep(void *pid)
{
	char *comm = procfs_text(*(pid_t *)pid, "comm");
	bool is = !strcmp(comm, "sleep\n") && procfs_is_asleep(*(pid_t *)pid);

	free(comm);
	return is;
}

static void a_new_image_is_reported_whole(void)
{
	struct target t;
	size_t execs = 0;

	live_open();
	target_start(&t, exec_sleep, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	live_walk(&live_env.filling, t.pid);
	live_start_reading();
	target_say(&t, 0);
	cr_assert(wait_until(is_sleep_asleep, &t.pid, WAIT_MS));
	live_stop_reading();
	for (size_t i = 0; i < live_env.log.cnt; i++) {
		execs += live_env.log.item[i].hdr.kind == VP_REC_EXEC;
		/* the exec's own new name is in its record */
		cr_expect(ne(u16, live_env.log.item[i].hdr.kind, VP_REC_COMM));
	}
	cr_expect(eq(sz, execs, 1));
	live_expect_all_once(t.pid);
	target_end(&t);
}

static void a_process_that_is_not_wanted_gives_none(void)
{
	struct target wanted, other;

	live_open();
	target_start(&wanted, live_map_all_kinds, NULL);
	target_start(&other, live_map_all_kinds, NULL);
	live_want(wanted.pid, VP_TARGET_F_ARMED);
	live_attach();
	live_start_reading();
	target_say(&other, 0);
	target_hear(&other);
	target_say(&wanted, 0);
	target_hear(&wanted);
	live_stop_reading();
	cr_expect(zero(sz, live_count_of(other.pid)));
	cr_expect(ge(sz, live_count_of(wanted.pid), 9));
	target_end(&wanted);
	target_end(&other);
}

static void *wait_in_a_thread(void *arg)
{
	(void)arg;
	target_tell((uint64_t)gettid());
	target_pause();
}

static void map_beside_a_thread(void *arg)
{
	int fd = live_new_file("beside", 1);
	pthread_t th;

	(void)arg;
	target_check(!pthread_create(&th, NULL, wait_in_a_thread, NULL));
	target_await();
	target_tell(live_map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

static void what_another_thread_maps_is_reported_for_a_thread(void)
{
	struct target wanted, other;
	uint64_t addr;
	size_t n;
	pid_t tid;

	live_env.filter = VP_FILTER_TID;
	live_open();
	target_start(&wanted, map_beside_a_thread, NULL);
	target_start(&other, map_beside_a_thread, NULL);
	tid = (pid_t)target_hear(&wanted);
	target_hear(&other);
	live_want(tid, VP_TARGET_F_ARMED);
	cr_assert(zero(int, vp_live_add_process(live_env.live, wanted.pid)));
	live_attach();
	live_walk(&live_env.filling, wanted.pid);
	live_start_reading();
	target_say(&wanted, 0);
	addr = target_hear(&wanted);
	target_say(&other, 0);
	target_hear(&other);
	live_stop_reading();
	n = live_env.log.cnt;
	live_walk(&live_env.checking, wanted.pid);
	live_expect_start_once(wanted.pid, addr, n);
	cr_expect(zero(sz, live_count_of(other.pid)));
	target_end(&wanted);
	target_end(&other);
}

static char group[96];

static void move_to_group(pid_t pid, const char *to)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", to);
	f = fopen(path, "we");
	cr_assert(f != NULL);
	fprintf(f, "%d\n", pid);
	cr_assert(zero(int, fclose(f)));
}

/* GROUP/inner exists then. */
static void make_groups(void)
{
	char inner[128];

	cr_assert(zero(int, unshare(CLONE_NEWNS)));
	cr_assert(zero(int, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)));
	snprintf(group, sizeof(group), "%s/cgroup", live_dir);
	cr_assert(zero(int, mkdir(group, 0755)));
	if (mount("none", group, "cgroup2", 0, NULL))
		cr_skip_test("cgroup2 cannot be mounted");
	snprintf(group, sizeof(group), "%s/cgroup/vmaprof-live-%d", live_dir, getpid());
	snprintf(inner, sizeof(inner), "%s/inner", group);
	cr_assert(zero(int, mkdir(group, 0755)));
	cr_assert(zero(int, mkdir(inner, 0755)));
}

static bool has_removed(void *path)
{
	return !rmdir(path) || errno == ENOENT;
}

static void remove_groups(void)
{
	char inner[128], mounted[64];

	snprintf(inner, sizeof(inner), "%s/inner", group);
	cr_expect(wait_until(has_removed, inner, WAIT_MS));
	cr_expect(wait_until(has_removed, group, WAIT_MS));
	snprintf(mounted, sizeof(mounted), "%s/cgroup", live_dir);
	cr_expect(zero(int, umount(mounted)));
}

static void set_cgroup(void)
{
	int fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__u32 zero = 0;
	struct stat st;

	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, fstat(fd, &st)));
	vp_live_set_cgroup(live_env.live, st.st_ino);
	cr_assert(zero(int, bpf_map_update_elem(vp_shared_maps_fd(&live_env.maps, "target_cgroup"),
						&zero, &fd, BPF_ANY)));
	close(fd);
}

static void processes_of_a_cgroup_are_tracked_and_no_other(void)
{
	struct target wanted, inner, other;
	char path[128];

	make_groups();
	live_env.filter = VP_FILTER_CGROUP;
	live_open();
	target_start(&wanted, live_map_all_kinds, NULL);
	target_start(&inner, live_map_all_kinds, NULL);
	target_start(&other, live_map_all_kinds, NULL);
	move_to_group(wanted.pid, group);
	snprintf(path, sizeof(path), "%s/inner", group);
	move_to_group(inner.pid, path);
	set_cgroup();
	live_attach();
	live_start_reading();
	target_say(&other, 0);
	target_hear(&other);
	target_say(&wanted, 0);
	target_hear(&wanted);
	target_say(&inner, 0);
	target_hear(&inner);
	live_stop_reading();
	cr_expect(ge(sz, live_count_of(wanted.pid), 9));
	cr_expect(ge(sz, live_count_of(inner.pid), 9));
	cr_expect(zero(sz, live_count_of(other.pid)));
	target_end(&wanted);
	target_end(&inner);
	target_end(&other);
	remove_groups();
}

Test(live_fentry, threads_and_children_are_tracked)
{
	threads_and_children_are_tracked();
}

Test(live_kprobe, threads_and_children_are_tracked)
{
	threads_and_children_are_tracked();
}

Test(live_sideband, threads_and_children_are_tracked)
{
	threads_and_children_are_tracked();
}

Test(live_fentry, a_new_image_is_reported_whole)
{
	a_new_image_is_reported_whole();
}

Test(live_kprobe, a_new_image_is_reported_whole)
{
	a_new_image_is_reported_whole();
}

Test(live_sideband, a_new_image_is_reported_whole)
{
	a_new_image_is_reported_whole();
}

Test(live_fentry, a_process_that_is_not_wanted_gives_none)
{
	a_process_that_is_not_wanted_gives_none();
}

Test(live_kprobe, a_process_that_is_not_wanted_gives_none)
{
	a_process_that_is_not_wanted_gives_none();
}

Test(live_sideband, a_process_that_is_not_wanted_gives_none)
{
	a_process_that_is_not_wanted_gives_none();
}

Test(live_fentry, what_another_thread_maps_is_reported_for_a_thread)
{
	what_another_thread_maps_is_reported_for_a_thread();
}

Test(live_kprobe, what_another_thread_maps_is_reported_for_a_thread)
{
	what_another_thread_maps_is_reported_for_a_thread();
}

Test(live_sideband, what_another_thread_maps_is_reported_for_a_thread)
{
	what_another_thread_maps_is_reported_for_a_thread();
}

Test(live_fentry, processes_of_a_cgroup_are_tracked_and_no_other)
{
	processes_of_a_cgroup_are_tracked_and_no_other();
}

Test(live_kprobe, processes_of_a_cgroup_are_tracked_and_no_other)
{
	processes_of_a_cgroup_are_tracked_and_no_other();
}

Test(live_sideband, processes_of_a_cgroup_are_tracked_and_no_other)
{
	processes_of_a_cgroup_are_tracked_and_no_other();
}

/* ---- names of threads ----------------------------------------------------------------------- */

static pthread_barrier_t renamed;

static void *rename_itself(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "vp by itself");
	target_tell((uint64_t)gettid());
	pthread_barrier_wait(&renamed);
	target_pause();
}

static void rename_threads(void *arg)
{
	pthread_t th;

	(void)arg;
	target_await();
	pthread_barrier_init(&renamed, NULL, 2);
	target_check(!pthread_create(&th, NULL, rename_itself, NULL));
	pthread_barrier_wait(&renamed);
	/* by another thread, through /proc */
	target_check(!pthread_setname_np(th, "vp by another"));
	target_tell(0);
	target_pause();
}

static bool has_name(uint32_t tid, const char *name)
{
	for (size_t i = 0; i < live_env.log.cnt; i++) {
		const struct log_item *it = &live_env.log.item[i];

		if (it->hdr.kind == VP_REC_COMM && it->comm.tid == tid &&
		    !strcmp(it->comm.comm, name))
			return true;
	}
	return false;
}

Test(live_sideband, a_renamed_thread_is_reported)
{
	struct target t;
	uint32_t tid;

	live_open();
	target_start(&t, rename_threads, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_start_reading();
	target_say(&t, 0);
	tid = (uint32_t)target_hear(&t);
	target_hear(&t);
	live_stop_reading();
	cr_expect(has_name(tid, "vp by itself"));
	cr_expect(has_name(tid, "vp by another"));
	target_end(&t);
}
