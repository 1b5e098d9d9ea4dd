/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk over task_vma against /proc/PID/maps and against perf's own records. */
#include "procmaps.h"
#include "target.h"
#include "walker_env.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/vsyscall.h"

TestSuite(walker, .init = walker_set_up, .fini = walker_tear_down);

/* ---- against /proc/PID/maps ----------------------------------------------------------------- */

static void map_a_bit_of_everything(void *arg)
{
	int fd = walker_file("lib", 8), nl = walker_file("two\nlines", 2),
	    mem = memfd_create("m", 0);

	(void)arg;
	target_check(fd >= 0 && nl >= 0 && mem >= 0 && !ftruncate(mem, PAGE));
	walker_map_exec(fd, 2, 0, MAP_PRIVATE);
	walker_map_exec(fd, 1, 3 * PAGE, MAP_SHARED);
	walker_map_exec(nl, 1, PAGE, MAP_PRIVATE);
	walker_map_exec(mem, 1, 0, MAP_PRIVATE);
	walker_map_exec(-1, 3, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	walker_map_exec(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS);
	target_check(mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
	target_check(mmap(NULL, PAGE, PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, 5 * PAGE) !=
		     MAP_FAILED);
	target_check(sbrk(64 * PAGE) != (void *)-1);
	target_tell(0);
	target_pause();
}

/* What a record must say of a row of maps; pgoff of anonymous memory is 0 in both. */
static void expect_row(const struct log_item *it, const struct procmaps_row *row, pid_t pid)
{
	const struct vp_perf_mmap2 *p = &it->mmap2.perf;
	const char *name = row->name[0] ? row->name : "//anon";

	cr_expect(eq(u64, p->addr, row->start));
	cr_expect(eq(u64, p->addr + p->len, row->end), "%s", row->name);
	cr_expect(eq(u64, p->pgoff, row->pgoff), "%s", row->name);
	cr_expect(eq(u32, p->maj, row->maj), "%s", row->name);
	cr_expect(eq(u32, p->min, row->min), "%s", row->name);
	cr_expect(eq(u64, p->ino, row->ino), "%s", row->name);
	cr_expect(eq(str, it->name, (char *)name), "%" PRIx64, row->start);
	cr_expect(
		eq(u32, p->prot,
		   (row->prot[0] == 'r') | (row->prot[1] == 'w') << 1 | (row->prot[2] == 'x') << 2),
		"%s", row->name);
	cr_expect(eq(u32, p->flags & 3, row->prot[3] == 's' ? MAP_SHARED : MAP_PRIVATE), "%s",
		  row->name);
	cr_expect(eq(u32, p->type, PERF_RECORD_MMAP2));
	cr_expect(
		eq(u16, p->misc,
		   PERF_RECORD_MISC_USER | (row->prot[2] == 'x' ? 0 : PERF_RECORD_MISC_MMAP_DATA)));
	cr_expect(eq(u32, p->pid, pid));
	cr_expect(eq(u32, p->tid, pid));
	cr_expect(eq(u32, it->mmap2.proc.tgid, pid));
	cr_expect(eq(u16, it->mmap2.hdr.flags & VP_MMAP2_F_FROM_WALK, VP_MMAP2_F_FROM_WALK));
	cr_expect(eq(int, it->mmap2.verdict == VP_VERDICT_NOT_EXEC, row->prot[2] != 'x'));
	/* executable shared memory has an inode, but is no file */
	cr_expect(eq(int, it->mmap2.file_id != 0,
		     row->ino != 0 && it->mmap2.verdict != VP_VERDICT_ANON_EXEC),
		  "%s", row->name);
	cr_expect(eq(int, it->mmap2.verdict == VP_VERDICT_ANON_EXEC,
		     row->prot[2] == 'x' &&
			     (!row->name[0] || !strcmp(row->name, "/dev/zero (deleted)"))),
		  "%s", row->name);
}

/* The walk of pid equals its maps, row for row and in order. */
static void expect_maps(pid_t pid, bool all)
{
	struct procmaps m;
	size_t next = 0;

	procmaps_read(&m, pid);
	walker_walk_one(pid);
	for (size_t i = 0; i < m.cnt; i++) {
		if (!all && m.row[i].prot[2] != 'x')
			continue;
		cr_assert(lt(sz, next, walker_env.log.cnt), "missing: %" PRIx64 " %s",
			  m.row[i].start, m.row[i].name);
		expect_row(&walker_env.log.item[next++], &m.row[i], pid);
	}
	cr_expect(eq(sz, walker_env.log.cnt, next), "records that no row of maps has");
	cr_expect(gt(sz, next, all ? 20 : 6));
	procmaps_free(&m);
}

Test(walker, all_mappings_are_those_of_proc_maps)
{
	struct target t;

	walker_open(1 << 20, true, false);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	expect_maps(t.pid, true);
	target_end(&t);
}

Test(walker, executable_mappings_are_those_of_proc_maps)
{
	struct target t;

	walker_open(1 << 20, false, false);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	expect_maps(t.pid, false);
	target_end(&t);
}

Test(walker, the_gate_page_is_announced_by_a_flag)
{
	struct target t;
	char *text;
	bool has_gate;

	walker_open(1 << 20, false, false);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	text = procfs_text(t.pid, "maps");
	has_gate = strstr(text, "[vsyscall]") != NULL;
	free(text);
	walker_walk_one(t.pid);
	/* of a process that would have it, were it not for vsyscall=none */
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		bool may = walker_env.log.item[i].hdr.flags & VP_MMAP2_F_VSYSCALL;

		cr_expect(eq(int, may &&vp_vsyscall_prot(), has_gate));
	}
	target_end(&t);
}

Test(walker, one_walk_serves_several_processes_and_skips_those_that_are_not_there)
{
	struct target a, b, dead;
	pid_t tgids[4];
	size_t of_a = 0, of_b = 0;

	walker_open(1 << 20, false, false);
	target_start(&dead, map_a_bit_of_everything, NULL);
	tgids[0] = dead.pid;
	target_end(&dead);
	target_start(&a, map_a_bit_of_everything, NULL);
	target_start(&b, map_a_bit_of_everything, NULL);
	target_hear(&a);
	target_hear(&b);
	tgids[1] = a.pid;
	tgids[2] = 2; /* kthreadd */
	tgids[3] = b.pid;
	walker_walk(tgids, 4);
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		of_a += walker_env.log.item[i].mmap2.proc.tgid == (uint32_t)a.pid;
		of_b += walker_env.log.item[i].mmap2.proc.tgid == (uint32_t)b.pid;
	}
	cr_expect(gt(sz, of_a, 6));
	cr_expect(eq(sz, of_a, of_b));
	cr_expect(eq(sz, of_a + of_b, walker_env.log.cnt));
	target_end(&a);
	target_end(&b);
}

/* ---- against perf --------------------------------------------------------------------------- */

static void wait_then_map(void *arg)
{
	int fd = walker_file("mapped by perf", 16);

	(void)arg;
	target_check(fd >= 0);
	target_await();
	walker_map_exec(fd, 1, 0, MAP_PRIVATE);
	walker_map_exec(fd, 2, 3 * PAGE, MAP_SHARED);
	/* a guard between, so that they do not merge */
	walker_map_exec(fd, 1, 9 * PAGE, MAP_PRIVATE | MAP_LOCKED);
	target_check(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 11 * PAGE) != MAP_FAILED);
	target_check(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 13 * PAGE) !=
		     MAP_FAILED);
	target_tell(0);
	target_pause();
}

#define PERF_PAGES 64

static struct perf_event_mmap_page *open_sideband(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
		.mmap_data = 1,
		.sample_period = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	void *p;

	cr_assert(ge(int, fd, 0), "perf_event_open: %s", strerror(errno));
	p = mmap(NULL, (1 + PERF_PAGES) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert(p != MAP_FAILED);
	return p;
}

/* The record of ours with that start, or NULL. */
static void expect_same_as_perf(const struct vp_perf_mmap2 *perf)
{
	const struct log_item *ours = walker_record_at(perf->addr);
	const char *name = (const char *)(perf + 1);
	const struct vp_perf_mmap2 *p;

	cr_assert(ours != NULL, "no record for %s", name);
	p = &ours->mmap2.perf;
	cr_expect(eq(u32, p->type, perf->type));
	cr_expect(eq(u16, p->misc, perf->misc));
	cr_expect(eq(u16, p->size, perf->size));
	cr_expect(eq(u32, p->pid, perf->pid));
	cr_expect(eq(u32, p->tid, perf->tid));
	cr_expect(eq(u64, p->len, perf->len));
	cr_expect(eq(u64, p->pgoff, perf->pgoff));
	cr_expect(eq(u32, p->maj, perf->maj));
	cr_expect(eq(u32, p->min, perf->min));
	cr_expect(eq(u64, p->ino, perf->ino));
	cr_expect(eq(u64, p->ino_generation, perf->ino_generation));
	cr_expect(eq(u32, p->prot, perf->prot));
	cr_expect(eq(u32, p->flags, perf->flags));
	cr_expect(eq(str, ours->name, (char *)name));
	cr_expect(zero(int, memcmp(p, perf, sizeof(*perf))));
	cr_expect(eq(sz, ours->mmap2.name_bytes, perf->size - sizeof(*perf)));
	cr_expect(zero(int, memcmp(ours->name, name, perf->size - sizeof(*perf))));
}

Test(walker, bodies_are_those_that_perf_itself_sends)
{
	struct perf_event_mmap_page *meta;
	const char *data;
	struct target t;
	int compared = 0;

	walker_open(1 << 20, true, false);
	target_start(&t, wait_then_map, NULL);
	meta = open_sideband(t.pid);
	data = (const char *)meta + meta->data_offset;
	target_say(&t, 0);
	target_hear(&t);
	walker_walk_one(t.pid);

	for (uint64_t pos = 0; pos < __atomic_load_n(&meta->data_head, __ATOMIC_ACQUIRE);) {
		/* the ring is large enough not to wrap */
		const struct vp_perf_mmap2 *perf = (const void *)(data + pos);

		if (perf->type == PERF_RECORD_MMAP2 &&
		    strstr((const char *)(perf + 1), "mapped by perf")) {
			expect_same_as_perf(perf);
			compared++;
		}
		pos += perf->size;
	}
	cr_expect(eq(int, compared, 5));
	target_end(&t);
}

/* ---- nothing lost, nothing twice ------------------------------------------------------------ */

#define MANY 5000

/* Alternating rights: neighbours do not merge. */
static void map_thousands(void *arg)
{
	char *p = mmap(NULL, MANY * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	target_check(p != MAP_FAILED);
	for (size_t i = 0; i < MANY; i += 2)
		target_check(!mprotect(p + i * PAGE, PAGE, PROT_READ | PROT_EXEC));
	target_tell((uint64_t)p);
	target_pause();
}

Test(walker, a_small_ring_loses_nothing_and_repeats_nothing)
{
	uint64_t base, seen = 0;
	struct target t;

	walker_open(4096, true, false);
	target_start(&t, map_thousands, NULL);
	base = target_hear(&t);
	expect_maps(t.pid, true);
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		uint64_t addr = walker_env.log.item[i].mmap2.perf.addr;

		seen += addr >= base && addr < base + MANY * PAGE;
		if (i > 0)
			cr_assert(gt(u64, addr, walker_env.log.item[i - 1].mmap2.perf.addr));
	}
	/* the last page may have merged with what lies behind */
	cr_expect(ge(u64, seen, MANY - 1));
	target_end(&t);
}

Test(walker, a_small_ring_loses_nothing_when_the_table_is_filled)
{
	struct target t;
	size_t first;

	walker_open(4096, false, true);
	target_start(&t, map_thousands, NULL);
	target_hear(&t);
	walker_walk_one(t.pid);
	first = walker_env.log.cnt;
	cr_expect(ge(sz, first, MANY / 2));
	for (size_t i = 1; i < first; i++)
		cr_assert(gt(u64, walker_env.log.item[i].mmap2.perf.addr,
			     walker_env.log.item[i - 1].mmap2.perf.addr));
	cr_expect(gt(u64, walker_counter(VP_CNT_XMAP_FULL), 0));
	target_end(&t);
}

Test(walker, a_second_walk_reports_nothing_that_is_in_the_table)
{
	struct target t;

	walker_open(1 << 20, false, true);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	walker_walk_one(t.pid);
	cr_expect(gt(sz, walker_env.log.cnt, 6));
	walker_walk_one(t.pid);
	cr_expect(zero(sz, walker_env.log.cnt));
	cr_expect(zero(u64, walker_counter(VP_CNT_XMAP_FULL)));
	target_end(&t);
}

static void map_more_when_told(void *arg)
{
	int fd = walker_file("late", 4);

	(void)arg;
	target_check(fd >= 0);
	for (off_t i = 0; i < 2; i++) {
		target_tell(walker_map_exec(fd, 1, i * 2 * (off_t)PAGE, MAP_PRIVATE));
		target_await();
	}
	target_pause();
}

Test(walker, a_second_walk_reports_what_is_new)
{
	uint64_t first, second;
	struct target t;

	walker_open(1 << 20, false, true);
	target_start(&t, map_more_when_told, NULL);
	first = target_hear(&t);
	walker_walk_one(t.pid);
	cr_expect(walker_record_at(first) != NULL);
	target_say(&t, 0);
	second = target_hear(&t);
	walker_walk_one(t.pid);
	cr_assert(eq(sz, walker_env.log.cnt, 1));
	cr_expect(eq(u64, walker_env.log.item[0].mmap2.perf.addr, second));
	target_end(&t);
}

/* ---- who speaks for an mm ------------------------------------------------------------------- */

static void *say_when_leader_is_gone(void *arg)
{
	(void)arg;
	target_await_lone();
	target_tell(0);
	target_pause();
}

static void *just_pause(void *arg)
{
	(void)arg;
	target_pause();
}

static void lose_the_leader(void *arg)
{
	pthread_t a, b, c;

	(void)arg;
	target_check(!pthread_create(&a, NULL, just_pause, NULL));
	target_check(!pthread_create(&b, NULL, say_when_leader_is_gone, NULL));
	target_check(!pthread_create(&c, NULL, just_pause, NULL));
	/* not pthread_exit: that unwinds through the test framework's frames */
	syscall(SYS_exit, 0);
}

static void *unshare_files(void *arg)
{
	(void)arg;
	target_check(!unshare(CLONE_FILES));
	target_tell(0);
	target_pause();
}

static void have_a_thread_with_its_own_files(void *arg)
{
	pthread_t th;

	(void)arg;
	target_check(!pthread_create(&th, NULL, unshare_files, NULL));
	target_pause();
}

/* Each executable VMA of pid once, by the ranges that its maps show. */
static void expect_each_once(pid_t pid, const char *maps_of)
{
	char path[64], *text, *rest, *line;
	size_t rows = 0;

	walker_walk_one(pid);
	snprintf(path, sizeof(path), "%s", maps_of);
	text = procfs_text(pid, path);
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		uint64_t start;
		char prot[5];

		if (sscanf(line, "%" SCNx64 "-%*x %4s", &start, prot) != 2 || prot[2] != 'x' ||
		    strstr(line, "[vsyscall]"))
			continue;
		rows++;
		cr_expect(walker_record_at(start) != NULL, "missing: %s", line);
	}
	free(text);
	cr_expect(gt(sz, rows, 2));
	cr_expect(eq(sz, walker_env.log.cnt, rows));
}

/* A thread of pid that is not the leader. */
static pid_t other_thread(pid_t pid)
{
	for (pid_t tid = pid + 1; tid < pid + 10000; tid++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
		if (!access(path, F_OK))
			return tid;
	}
	return 0;
}

Test(walker, each_mapping_once_after_the_leader_has_exited)
{
	char maps_of[64];
	struct target t;

	walker_open(1 << 20, false, false);
	target_start(&t, lose_the_leader, NULL);
	target_hear(&t);
	snprintf(maps_of, sizeof(maps_of), "task/%d/maps", other_thread(t.pid));
	expect_each_once(t.pid, maps_of);
	/* once for each walk, not for ever */
	expect_each_once(t.pid, maps_of);
	cr_expect(eq(u32, walker_env.log.item[0].mmap2.proc.tgid, t.pid));
	cr_expect(eq(u32, walker_env.log.item[0].mmap2.perf.tid, t.pid));
	target_end(&t);
}

Test(walker, each_mapping_once_in_a_walk_over_everything)
{
	struct target zombie, files;
	size_t of_zombie = 0, of_files = 0, once_zombie, once_files;

	walker_open(1 << 20, false, false);
	target_start(&zombie, lose_the_leader, NULL);
	target_start(&files, have_a_thread_with_its_own_files, NULL);
	target_hear(&zombie);
	target_hear(&files);
	walker_walk_one(zombie.pid);
	once_zombie = walker_env.log.cnt;
	walker_walk_one(files.pid);
	once_files = walker_env.log.cnt;
	walker_walk(NULL, 0);
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		of_zombie += walker_env.log.item[i].mmap2.proc.tgid == (uint32_t)zombie.pid;
		of_files += walker_env.log.item[i].mmap2.proc.tgid == (uint32_t)files.pid;
	}
	cr_expect(eq(sz, of_zombie, once_zombie));
	cr_expect(eq(sz, of_files, once_files));
	cr_expect(gt(sz, once_files, 2));
	target_end(&zombie);
	target_end(&files);
}

Test(walker, each_mapping_once_with_a_thread_that_has_its_own_files)
{
	struct target t;

	walker_open(1 << 20, false, false);
	target_start(&t, have_a_thread_with_its_own_files, NULL);
	target_hear(&t);
	expect_each_once(t.pid, "maps");
	target_end(&t);
}

static int pause_in_shared_memory(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (syscall(SYS_pause))
		;
	return 0;
}

static void share_memory_with_a_process(void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	int pid = clone(pause_in_shared_memory, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	(void)arg;
	target_check(pid > 0);
	target_tell((uint64_t)pid);
	target_pause();
}

Test(walker, a_process_that_shares_its_memory_speaks_for_itself)
{
	size_t of_parent = 0, of_child = 0;
	pid_t tgids[2];
	struct target t;

	walker_open(1 << 20, false, true);
	target_start(&t, share_memory_with_a_process, NULL);
	tgids[0] = t.pid;
	tgids[1] = (pid_t)target_hear(&t);
	walker_walk(tgids, 2);
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		const struct vp_rec_mmap2 *r = &walker_env.log.item[i].mmap2;

		of_parent += r->proc.tgid == (uint32_t)tgids[0];
		of_child += r->proc.tgid == (uint32_t)tgids[1];
		cr_expect(eq(u32, r->perf.pid, r->proc.tgid));
	}
	cr_expect(gt(sz, of_parent, 2));
	cr_expect(eq(sz, of_parent, of_child));
	cr_expect(eq(sz, of_parent + of_child, walker_env.log.cnt));
	kill(tgids[1], SIGKILL);
	target_end(&t);
}
