/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses to mappings by bpf_find_vma, against /proc/PID/maps. */
#include "procmaps.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/finder.h"
#include "kernel/loader.h"
#include "kernel/vsyscall.h"
#include "vp_xmap.h"

#define PAGE 4096UL
#define MAX  10000

static struct vp_finder *finder;
static struct vp_find finds[MAX];
static size_t mapping_cnt;

static int on_mapping(void *ctx, const struct vp_mmap2 *m)
{
	(void)ctx;
	(void)m;
	mapping_cnt++;
	return 0;
}

static void set_up(void)
{
	struct vp_err e = {""};

	vp_loader_capture_messages(false);
	cr_assert(zero(int, vp_finder_open(&finder, MAX, on_mapping, NULL, &e)), "%s", e.text);
}

static void tear_down(void)
{
	vp_finder_close(finder);
}

TestSuite(finder, .init = set_up, .fini = tear_down);

static int ask(pid_t pid, size_t cnt, struct vp_err *e)
{
	mapping_cnt = 0;
	return vp_finder_ask(finder, pid, finds, cnt, e);
}

static void ask_all(pid_t pid, size_t cnt)
{
	struct vp_err e = {""};

	cr_assert(zero(int, ask(pid, cnt, &e)), "%s", e.text);
}

/* ---- boundaries ----------------------------------------------------------------------------- */

enum { AT_FILE, AT_NONE, AT_JIT, AT_HEAP, AT_CNT };

/* A page between two that are unmapped. */
static uint64_t map_alone(int prot, int flags, int fd, off_t offset)
{
	char *p = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	target_check(p != MAP_FAILED);
	target_check(mmap(p + PAGE, PAGE, prot, flags | MAP_FIXED, fd, offset) != MAP_FAILED);
	target_check(!munmap(p, PAGE) && !munmap(p + 2 * PAGE, PAGE));
	return (uint64_t)p + PAGE;
}

static void map_alone_and_tell(void *arg)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)arg;
	target_check(fd >= 0);
	target_tell(map_alone(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 2 * PAGE));
	target_tell(map_alone(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	target_tell(map_alone(PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	target_check(sbrk(4 * PAGE) != (void *)-1);
	target_tell((uint64_t)sbrk(0) - PAGE);
	target_pause();
}

static uint32_t verdict_of(struct target *t, uint64_t addr)
{
	finds[0] = (struct vp_find){.addr = addr};
	ask_all(t->pid, 1);
	cr_expect(eq(u64, finds[0].addr, addr));
	return finds[0].verdict;
}

static uint64_t start_of(struct target *t, const char *name, int any)
{
	const struct procmaps_row *row;
	struct procmaps m;
	uint64_t start;

	procmaps_read(&m, t->pid);
	row = procmaps_named(&m, name, any);
	cr_assert(row != NULL, "no %s", name);
	start = row->start;
	procmaps_free(&m);
	return start;
}

Test(finder, boundaries_and_special_addresses)
{
	uint64_t at[AT_CNT];
	struct target t;

	target_start(&t, map_alone_and_tell, NULL);
	for (int i = 0; i < AT_CNT; i++)
		at[i] = target_hear(&t);

	cr_expect(eq(u32, verdict_of(&t, at[AT_FILE]), VP_VERDICT_FILE));
	cr_expect(eq(u64, finds[0].start, at[AT_FILE]));
	cr_expect(eq(u64, finds[0].end, at[AT_FILE] + PAGE));
	cr_expect(eq(u64, finds[0].pgoff, 2 * PAGE));
	cr_expect(eq(u32, verdict_of(&t, at[AT_FILE] + PAGE - 1), VP_VERDICT_FILE));
	cr_expect(eq(u64, finds[0].start, at[AT_FILE]));
	cr_expect(eq(u32, verdict_of(&t, at[AT_FILE] + PAGE), VP_VERDICT_NO_VMA));
	cr_expect(zero(u64, finds[0].start));
	cr_expect(zero(u64, finds[0].end));
	cr_expect(eq(u32, verdict_of(&t, at[AT_FILE] - 1), VP_VERDICT_NO_VMA));

	cr_expect(eq(u32, verdict_of(&t, at[AT_NONE]), VP_VERDICT_NOT_EXEC));
	cr_expect(eq(u64, finds[0].start, at[AT_NONE]));
	cr_expect(eq(u32, verdict_of(&t, at[AT_JIT] + 7), VP_VERDICT_ANON_EXEC));
	cr_expect(zero(u64, finds[0].pgoff));
	cr_expect(eq(u32, verdict_of(&t, at[AT_HEAP]), VP_VERDICT_NOT_EXEC));
	cr_expect(eq(u32, verdict_of(&t, start_of(&t, "[stack]", 1)), VP_VERDICT_NOT_EXEC));
	cr_expect(eq(u32, verdict_of(&t, start_of(&t, "[stack]", 1) - 1), VP_VERDICT_NO_VMA));
	cr_expect(eq(u32, verdict_of(&t, start_of(&t, "[vdso]", 0) + 1), VP_VERDICT_VDSO));

	cr_expect(eq(u32, verdict_of(&t, 0), VP_VERDICT_NO_VMA));
	cr_expect(eq(u32, verdict_of(&t, ~0ULL), VP_VERDICT_NO_VMA));
	cr_expect(eq(u32, verdict_of(&t, 1ULL << 63), VP_VERDICT_NO_VMA));
	cr_expect(eq(u32, verdict_of(&t, 0x0000800000000000), VP_VERDICT_NO_VMA));
	cr_expect(eq(u32, verdict_of(&t, VP_VSYSCALL_ADDR), VP_VERDICT_NO_VMA));
	target_end(&t);
}

/* ---- many ----------------------------------------------------------------------------------- */

static void map_a_checkerboard(void *arg)
{
	char *p = mmap(NULL, 600 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)arg;
	target_check(p != MAP_FAILED && fd >= 0);
	for (size_t i = 0; i < 600; i += 3) {
		target_check(mmap(p + i * PAGE, PAGE, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_FIXED, fd,
				  (off_t)((i % 7) * PAGE)) != MAP_FAILED);
		target_check(!munmap(p + (i + 1) * PAGE, PAGE));
	}
	target_tell(0);
	target_pause();
}

static uint64_t random_u64(void)
{
	return ((uint64_t)mrand48() << 32) ^ (uint32_t)mrand48();
}

/* Mostly near what is mapped, else anywhere. */
static uint64_t random_address(const struct procmaps *m)
{
	const struct procmaps_row *row = &m->row[random_u64() % m->cnt];

	if (random_u64() % 8 == 0)
		return random_u64() >> (random_u64() % 64);
	return row->start - PAGE + random_u64() % (row->end - row->start + 2 * PAGE);
}

static void expect_as_maps(const struct procmaps *m, const struct vp_find *f)
{
	const struct procmaps_row *row = procmaps_find(m, f->addr);
	uint32_t want = VP_VERDICT_NO_VMA;

	if (row && row->prot[2] != 'x')
		want = VP_VERDICT_NOT_EXEC;
	else if (row && row->ino)
		want = VP_VERDICT_FILE;
	else if (row)
		want = strcmp(row->name, "[vdso]") ? VP_VERDICT_ANON_EXEC : VP_VERDICT_VDSO;
	cr_assert(eq(u32, f->verdict, want), "%" PRIx64, (uint64_t)f->addr);
	cr_assert(eq(u64, f->start, row ? row->start : 0));
	cr_assert(eq(u64, f->end, row ? row->end : 0));
	cr_assert(eq(u64, f->pgoff, row ? row->pgoff : 0));
}

Test(finder, ten_thousand_random_addresses_are_as_maps_says)
{
	struct procmaps m;
	struct target t;

	target_start(&t, map_a_checkerboard, NULL);
	target_hear(&t);
	procmaps_read(&m, t.pid);
	srand48(1);
	for (size_t i = 0; i < MAX; i++)
		finds[i] = (struct vp_find){.addr = random_address(&m)};
	ask_all(t.pid, MAX);
	for (size_t i = 0; i < MAX; i++)
		expect_as_maps(&m, &finds[i]);
	cr_expect(gt(sz, mapping_cnt, 300));
	procmaps_free(&m);
	target_end(&t);
}

/* One of our descriptors of the program of that name, from their fdinfo; its id. */
static uint32_t own_program(const char *name)
{
	DIR *d = opendir("/proc/self/fdinfo");
	uint32_t found = 0, id;
	struct dirent *de;

	cr_assert(d != NULL);
	while (!found && (de = readdir(d))) {
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);
		char fdinfo[32];
		char *text, *line;
		int fd;

		if (de->d_name[0] == '.')
			continue;
		snprintf(fdinfo, sizeof(fdinfo), "fdinfo/%.10s", de->d_name);
		if (atoi(de->d_name) == dirfd(d))
			continue;
		text = procfs_text(getpid(), fdinfo);
		line = strstr(text, "prog_id:");
		if (!strstr(text, "prog_type:") || !line ||
		    sscanf(line, "prog_id: %" SCNu32, &id) != 1) {
			free(text);
			continue;
		}
		free(text);
		fd = bpf_prog_get_fd_by_id(id);
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name))
			found = id;
		close(fd);
	}
	closedir(d);
	return found;
}

static uint64_t runs_of(uint32_t prog_id)
{
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(prog_id);

	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, bpf_obj_get_info_by_fd(fd, &info, &len)));
	close(fd);
	return info.run_cnt;
}

Test(finder, ten_thousand_addresses_take_one_run)
{
	uint64_t base, before;
	struct target t;
	uint32_t prog;
	int stats;

	target_start(&t, map_alone_and_tell, NULL);
	base = target_hear(&t);
	for (size_t i = 0; i < MAX; i++)
		finds[i] = (struct vp_find){.addr = base + i % PAGE};
	prog = own_program("vp_find_all");
	cr_assert(ne(u32, prog, 0));
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	cr_assert(ge(int, stats, 0));
	before = runs_of(prog);
	ask_all(t.pid, MAX);
	/* for its one thread, and for the end of the iteration */
	cr_expect(eq(u64, runs_of(prog) - before, 2));
	close(stats);
	for (size_t i = 0; i < MAX; i++)
		cr_assert(eq(u32, finds[i].verdict, VP_VERDICT_FILE));
	cr_expect(eq(sz, mapping_cnt, 1));
	target_end(&t);
}

/* ---- while mappings change ------------------------------------------------------------------ */

static void *map_and_unmap(void *arg)
{
	(void)arg;
	for (;;) {
		void *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		target_check(p != MAP_FAILED && !munmap(p, 4 * PAGE));
	}
	return NULL;
}

static void churn_beside_stable_mappings(void *arg)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pthread_t th;

	(void)arg;
	target_check(fd >= 0);
	for (int i = 0; i < 16; i++)
		target_tell(map_alone(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, i * (off_t)PAGE));
	target_check(!pthread_create(&th, NULL, map_and_unmap, NULL));
	target_tell(0);
	target_pause();
}

Test(finder, a_busy_writer_never_makes_a_mapping_look_missing)
{
	uint64_t at[16], answered = 0, busy = 0, end;
	struct target t;

	target_start(&t, churn_beside_stable_mappings, NULL);
	for (int i = 0; i < 16; i++)
		at[i] = target_hear(&t);
	target_hear(&t);
	end = now_ms() + 700;
	do {
		for (size_t i = 0; i < 160; i++)
			finds[i] = (struct vp_find){.addr = at[i % 16] + i};
		ask_all(t.pid, 160);
		for (size_t i = 0; i < 160; i++) {
			busy += finds[i].verdict == VP_VERDICT_BUSY;
			if (finds[i].verdict == VP_VERDICT_BUSY)
				continue;
			answered++;
			cr_assert(eq(u32, finds[i].verdict, VP_VERDICT_FILE));
			cr_assert(eq(u64, finds[i].start, at[i % 16]));
			cr_assert(eq(u64, finds[i].pgoff, i % 16 * PAGE));
		}
	} while (now_ms() < end);
	cr_expect(gt(u64, answered, busy), "%" PRIu64 " answered, %" PRIu64 " busy", answered,
		  busy);
	target_end(&t);
}

/* ---- processes without memory --------------------------------------------------------------- */

static void expect_refused(pid_t pid, const char *why)
{
	struct vp_err e = {""};

	finds[0] = (struct vp_find){.addr = PAGE};
	cr_expect(eq(int, ask(pid, 1, &e), -ESRCH));
	cr_expect(strstr(e.text, why) != NULL, "'%s' lacks '%s'", e.text, why);
}

static void do_nothing(void *arg)
{
	(void)arg;
}

Test(finder, a_dead_process_is_said_to_be_none)
{
	struct target t;
	pid_t pid;

	target_start(&t, do_nothing, NULL);
	pid = t.pid;
	target_wait(&t);
	expect_refused(pid, "no such process");
}

Test(finder, a_kernel_thread_is_named_as_one)
{
	expect_refused(2, "kernel thread");
}

Test(finder, a_zombie_has_no_memory)
{
	struct target t;
	siginfo_t info;

	target_start(&t, do_nothing, NULL);
	cr_assert(zero(int, waitid(P_PID, (id_t)t.pid, &info, WEXITED | WNOWAIT)));
	expect_refused(t.pid, "exiting");
	target_end(&t);
}

static void *tell_when_alone(void *arg)
{
	target_await_lone();
	target_tell((uint64_t)arg);
	target_pause();
}

static void leave_a_thread_behind(void *arg)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	pthread_t th;

	(void)arg;
	target_check(!pthread_create(
		&th, NULL, tell_when_alone,
		(void *)map_alone(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 3 * PAGE)));
	syscall(SYS_exit, 0);
}

Test(finder, threads_answer_for_a_leader_that_has_exited)
{
	struct target t;
	uint64_t addr;

	target_start(&t, leave_a_thread_behind, NULL);
	addr = target_hear(&t);
	cr_expect(eq(u32, verdict_of(&t, addr + 5), VP_VERDICT_FILE));
	cr_expect(eq(u64, finds[0].pgoff, 3 * PAGE));
	target_end(&t);
}

Test(finder, no_question_needs_no_process)
{
	struct vp_err e = {""};

	cr_expect(zero(int, ask(getpid(), 0, &e)));
}
