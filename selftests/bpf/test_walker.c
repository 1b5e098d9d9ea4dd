/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk over task_vma against /proc/PID/maps and against perf's own records. */
#include "procmaps.h"
#include "record_log.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/loader.h"
#include "kernel/ring.h"
#include "kernel/shared_maps.h"
#include "kernel/vsyscall.h"
#include "kernel/walker.h"

#define PAGE 4096UL

/* ---- set-up --------------------------------------------------------------------------------- */

static struct {
	struct vp_shared_maps maps;
	struct vp_walker w;
	struct vp_ring *ring;
	struct vp_decoder d;
	struct record_log log;
} env;

static char dir[] = "/tmp/vmaprof-walker.XXXXXX";

static void open_env(uint64_t ring_bytes, bool all_maps, bool fills_table)
{
	struct vp_load_unit unit = {0};
	struct vp_err e = {""};

	record_log_init(&env.log);
	env.d = (struct vp_decoder){.ops = &record_log_ops, .ctx = &env.log};
	cr_assert(zero(int, vp_shared_maps_create(&env.maps, ring_bytes, 4096, &e)), "%s", e.text);
	cr_assert(zero(int, vp_walker_open(&env.w, &env.maps, all_maps, fills_table, &unit, &e)),
		  "%s", e.text);
	cr_assert(zero(int, vp_load(&unit, 1, false, &e)), "%s", e.text);
	cr_assert(zero(int, vp_ring_open(&env.ring, vp_shared_maps_ring_fd(&env.maps), &env.d, &e)),
		  "%s", e.text);
}

static void walk(const pid_t *tgids, size_t cnt)
{
	struct vp_err e = {""};

	record_log_clear(&env.log);
	cr_assert(zero(int, vp_walker_walk(&env.w, env.ring, tgids, cnt, &e)), "%s", e.text);
	cr_assert(zero(u64, env.d.bad_cnt));
	cr_assert(zero(u64, env.d.unknown_cnt));
}

static void walk_one(pid_t tgid)
{
	walk(&tgid, 1);
}

static uint64_t counter(int which)
{
	uint64_t c[VP_CNT_CNT];

	cr_assert(zero(int, vp_shared_maps_counters(&env.maps, c)));
	return c[which];
}

static void set_up(void)
{
	vp_loader_capture_messages(false);
	cr_assert(mkdtemp(dir) != NULL);
}

static void tear_down(void)
{
	char cmd[64];

	vp_ring_close(env.ring);
	vp_walker_close(&env.w);
	vp_shared_maps_destroy(&env.maps);
	/* knows paths longer than PATH_MAX */
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		fprintf(stderr, "%s is left behind\n", dir);
}

TestSuite(walker, .init = set_up, .fini = tear_down);

/* DIR/name with cnt pages; its descriptor. */
static int new_file(const char *name, size_t pages)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (fd < 0 || ftruncate(fd, (off_t)(pages * PAGE)))
		return -1;
	return fd;
}

static uint64_t map_exec(int fd, size_t pages, off_t offset, int flags)
{
	void *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_EXEC, flags, fd, offset);

	target_check(p != MAP_FAILED);
	return (uint64_t)p;
}

/* Opens DIR/name, maps its first page executable and says where. */
static void map_and_tell(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY);
	target_check(fd >= 0);
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	close(fd);
}

/* ---- against /proc/PID/maps ----------------------------------------------------------------- */

static void map_a_bit_of_everything(void *arg)
{
	int fd = new_file("lib", 8), nl = new_file("two\nlines", 2), mem = memfd_create("m", 0);

	(void)arg;
	target_check(fd >= 0 && nl >= 0 && mem >= 0 && !ftruncate(mem, PAGE));
	map_exec(fd, 2, 0, MAP_PRIVATE);
	map_exec(fd, 1, 3 * PAGE, MAP_SHARED);
	map_exec(nl, 1, PAGE, MAP_PRIVATE);
	map_exec(mem, 1, 0, MAP_PRIVATE);
	map_exec(-1, 3, 0, MAP_PRIVATE | MAP_ANONYMOUS);
	map_exec(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS);
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
	walk_one(pid);
	for (size_t i = 0; i < m.cnt; i++) {
		if (!all && m.row[i].prot[2] != 'x')
			continue;
		cr_assert(lt(sz, next, env.log.cnt), "missing: %" PRIx64 " %s", m.row[i].start,
			  m.row[i].name);
		expect_row(&env.log.item[next++], &m.row[i], pid);
	}
	cr_expect(eq(sz, env.log.cnt, next), "records that no row of maps has");
	cr_expect(gt(sz, next, all ? 20 : 6));
	procmaps_free(&m);
}

Test(walker, all_mappings_are_those_of_proc_maps)
{
	struct target t;

	open_env(1 << 20, true, false);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	expect_maps(t.pid, true);
	target_end(&t);
}

Test(walker, executable_mappings_are_those_of_proc_maps)
{
	struct target t;

	open_env(1 << 20, false, false);
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

	open_env(1 << 20, false, false);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	text = procfs_text(t.pid, "maps");
	has_gate = strstr(text, "[vsyscall]") != NULL;
	free(text);
	walk_one(t.pid);
	/* of a process that would have it, were it not for vsyscall=none */
	for (size_t i = 0; i < env.log.cnt; i++) {
		bool may = env.log.item[i].hdr.flags & VP_MMAP2_F_VSYSCALL;

		cr_expect(eq(int, may &&vp_vsyscall_prot(), has_gate));
	}
	target_end(&t);
}

Test(walker, one_walk_serves_several_processes_and_skips_those_that_are_not_there)
{
	struct target a, b, dead;
	pid_t tgids[4];
	size_t of_a = 0, of_b = 0;

	open_env(1 << 20, false, false);
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
	walk(tgids, 4);
	for (size_t i = 0; i < env.log.cnt; i++) {
		of_a += env.log.item[i].mmap2.proc.tgid == (uint32_t)a.pid;
		of_b += env.log.item[i].mmap2.proc.tgid == (uint32_t)b.pid;
	}
	cr_expect(gt(sz, of_a, 6));
	cr_expect(eq(sz, of_a, of_b));
	cr_expect(eq(sz, of_a + of_b, env.log.cnt));
	target_end(&a);
	target_end(&b);
}

/* ---- against perf --------------------------------------------------------------------------- */

static void wait_then_map(void *arg)
{
	int fd = new_file("mapped by perf", 16);

	(void)arg;
	target_check(fd >= 0);
	target_await();
	map_exec(fd, 1, 0, MAP_PRIVATE);
	map_exec(fd, 2, 3 * PAGE, MAP_SHARED);
	/* a guard between, so that they do not merge */
	map_exec(fd, 1, 9 * PAGE, MAP_PRIVATE | MAP_LOCKED);
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
static const struct log_item *record_at(uint64_t addr)
{
	for (size_t i = 0; i < env.log.cnt; i++) {
		if (env.log.item[i].mmap2.perf.addr == addr)
			return &env.log.item[i];
	}
	return NULL;
}

static void expect_same_as_perf(const struct vp_perf_mmap2 *perf)
{
	const struct log_item *ours = record_at(perf->addr);
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

	open_env(1 << 20, true, false);
	target_start(&t, wait_then_map, NULL);
	meta = open_sideband(t.pid);
	data = (const char *)meta + meta->data_offset;
	target_say(&t, 0);
	target_hear(&t);
	walk_one(t.pid);

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

	open_env(4096, true, false);
	target_start(&t, map_thousands, NULL);
	base = target_hear(&t);
	expect_maps(t.pid, true);
	for (size_t i = 0; i < env.log.cnt; i++) {
		uint64_t addr = env.log.item[i].mmap2.perf.addr;

		seen += addr >= base && addr < base + MANY * PAGE;
		if (i > 0)
			cr_assert(gt(u64, addr, env.log.item[i - 1].mmap2.perf.addr));
	}
	/* the last page may have merged with what lies behind */
	cr_expect(ge(u64, seen, MANY - 1));
	target_end(&t);
}

Test(walker, a_small_ring_loses_nothing_when_the_table_is_filled)
{
	struct target t;
	size_t first;

	open_env(4096, false, true);
	target_start(&t, map_thousands, NULL);
	target_hear(&t);
	walk_one(t.pid);
	first = env.log.cnt;
	cr_expect(ge(sz, first, MANY / 2));
	for (size_t i = 1; i < first; i++)
		cr_assert(gt(u64, env.log.item[i].mmap2.perf.addr,
			     env.log.item[i - 1].mmap2.perf.addr));
	cr_expect(gt(u64, counter(VP_CNT_XMAP_FULL), 0));
	target_end(&t);
}

Test(walker, a_second_walk_reports_nothing_that_is_in_the_table)
{
	struct target t;

	open_env(1 << 20, false, true);
	target_start(&t, map_a_bit_of_everything, NULL);
	target_hear(&t);
	walk_one(t.pid);
	cr_expect(gt(sz, env.log.cnt, 6));
	walk_one(t.pid);
	cr_expect(zero(sz, env.log.cnt));
	cr_expect(zero(u64, counter(VP_CNT_XMAP_FULL)));
	target_end(&t);
}

static void map_more_when_told(void *arg)
{
	int fd = new_file("late", 4);

	(void)arg;
	target_check(fd >= 0);
	for (off_t i = 0; i < 2; i++) {
		target_tell(map_exec(fd, 1, i * 2 * (off_t)PAGE, MAP_PRIVATE));
		target_await();
	}
	target_pause();
}

Test(walker, a_second_walk_reports_what_is_new)
{
	uint64_t first, second;
	struct target t;

	open_env(1 << 20, false, true);
	target_start(&t, map_more_when_told, NULL);
	first = target_hear(&t);
	walk_one(t.pid);
	cr_expect(record_at(first) != NULL);
	target_say(&t, 0);
	second = target_hear(&t);
	walk_one(t.pid);
	cr_assert(eq(sz, env.log.cnt, 1));
	cr_expect(eq(u64, env.log.item[0].mmap2.perf.addr, second));
	target_end(&t);
}

/* ---- who speaks for an mm ------------------------------------------------------------------- */

static void *say_when_leader_is_gone(void *arg)
{
	(void)arg;
	/* the leader is a zombie as soon as its exit is through: state Z in its stat */
	for (;;) {
		char text[256] = "";
		FILE *f = fopen("/proc/self/stat", "re");

		if (f) {
			fgets(text, sizeof(text), f);
			fclose(f);
		}
		if (strstr(text, ") Z "))
			break;
		usleep(1000);
	}
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

	walk_one(pid);
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
		cr_expect(record_at(start) != NULL, "missing: %s", line);
	}
	free(text);
	cr_expect(gt(sz, rows, 2));
	cr_expect(eq(sz, env.log.cnt, rows));
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

	open_env(1 << 20, false, false);
	target_start(&t, lose_the_leader, NULL);
	target_hear(&t);
	snprintf(maps_of, sizeof(maps_of), "task/%d/maps", other_thread(t.pid));
	expect_each_once(t.pid, maps_of);
	/* once for each walk, not for ever */
	expect_each_once(t.pid, maps_of);
	cr_expect(eq(u32, env.log.item[0].mmap2.proc.tgid, t.pid));
	cr_expect(eq(u32, env.log.item[0].mmap2.perf.tid, t.pid));
	target_end(&t);
}

Test(walker, each_mapping_once_in_a_walk_over_everything)
{
	struct target zombie, files;
	size_t of_zombie = 0, of_files = 0, once_zombie, once_files;

	open_env(1 << 20, false, false);
	target_start(&zombie, lose_the_leader, NULL);
	target_start(&files, have_a_thread_with_its_own_files, NULL);
	target_hear(&zombie);
	target_hear(&files);
	walk_one(zombie.pid);
	once_zombie = env.log.cnt;
	walk_one(files.pid);
	once_files = env.log.cnt;
	walk(NULL, 0);
	for (size_t i = 0; i < env.log.cnt; i++) {
		of_zombie += env.log.item[i].mmap2.proc.tgid == (uint32_t)zombie.pid;
		of_files += env.log.item[i].mmap2.proc.tgid == (uint32_t)files.pid;
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

	open_env(1 << 20, false, false);
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

	open_env(1 << 20, false, true);
	target_start(&t, share_memory_with_a_process, NULL);
	tgids[0] = t.pid;
	tgids[1] = (pid_t)target_hear(&t);
	walk(tgids, 2);
	for (size_t i = 0; i < env.log.cnt; i++) {
		const struct vp_rec_mmap2 *r = &env.log.item[i].mmap2;

		of_parent += r->proc.tgid == (uint32_t)tgids[0];
		of_child += r->proc.tgid == (uint32_t)tgids[1];
		cr_expect(eq(u32, r->perf.pid, r->proc.tgid));
	}
	cr_expect(gt(sz, of_parent, 2));
	cr_expect(eq(sz, of_parent, of_child));
	cr_expect(eq(sz, of_parent + of_child, env.log.cnt));
	kill(tgids[1], SIGKILL);
	target_end(&t);
}

/* ---- file identity -------------------------------------------------------------------------- */

/* Maps the file that it is told by number: A, B, … */
static void map_files_as_told(void *arg)
{
	(void)arg;
	for (;;) {
		char name[2] = {(char)target_await()};

		map_and_tell(name);
	}
}

static const struct log_item *ask_for(struct target *t, char name)
{
	uint64_t addr;
	const struct log_item *it;

	target_say(t, (uint64_t)name);
	addr = target_hear(t);
	walk_one(t->pid);
	it = record_at(addr);
	cr_assert(it != NULL);
	cr_assert(ne(u32, it->mmap2.file_id, 0));
	return it;
}

Test(walker, file_ids_are_of_files_and_not_of_names_or_processes)
{
	char from[64], to[64];
	uint32_t in_a, in_b, other, replaced;
	struct target a, b;

	open_env(1 << 20, false, false);
	cr_assert(new_file("A", 1) >= 0 && new_file("B", 1) >= 0 && new_file("C", 1) >= 0);
	target_start(&a, map_files_as_told, NULL);
	target_start(&b, map_files_as_told, NULL);
	in_a = ask_for(&a, 'A')->mmap2.file_id;
	in_b = ask_for(&b, 'A')->mmap2.file_id;
	other = ask_for(&b, 'B')->mmap2.file_id;
	cr_expect(eq(u32, in_a, in_b));
	cr_expect(ne(u32, in_a, other));

	snprintf(from, sizeof(from), "%s/C", dir);
	snprintf(to, sizeof(to), "%s/A", dir);
	cr_assert(zero(int, rename(from, to)));
	replaced = ask_for(&b, 'A')->mmap2.file_id;
	cr_expect(ne(u32, replaced, in_b));
	cr_expect(ne(u32, replaced, other));

	/* what is still mapped keeps its identity and says that its name is gone */
	for (size_t i = 0; i < env.log.cnt; i++) {
		const struct log_item *it = &env.log.item[i];

		if (it->mmap2.file_id != in_b)
			continue;
		cr_expect(ne(int, it->mmap2.hdr.flags &VP_MMAP2_F_DELETED, 0));
		strcat(to, " (deleted)");
		cr_expect(eq(str, it->name, to));
	}
	target_end(&a);
	target_end(&b);
}

Test(walker, a_file_written_in_place_is_another_file)
{
	struct timespec later[2] = {{1000000000, 1}, {1000000000, 1}};
	struct target t;
	uint32_t before;
	int fd;

	open_env(1 << 20, false, false);
	fd = new_file("A", 1);
	target_start(&t, map_files_as_told, NULL);
	before = ask_for(&t, 'A')->mmap2.file_id;
	cr_assert(zero(int, futimens(fd, later)));
	cr_expect(ne(u32, ask_for(&t, 'A')->mmap2.file_id, before));
	close(fd);
	target_end(&t);
}

Test(walker, a_file_written_in_place_with_its_time_put_back_is_another_file)
{
	struct target t;
	struct stat st;
	uint32_t before;
	int fd;

	open_env(1 << 20, false, false);
	fd = new_file("A", 1);
	target_start(&t, map_files_as_told, NULL);
	before = ask_for(&t, 'A')->mmap2.file_id;
	cr_assert(zero(int, fstat(fd, &st)));
	cr_assert(eq(sz, (size_t)pwrite(fd, "", 1, 2 * PAGE), 1));
	cr_assert(zero(int, futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim})));
	cr_expect(ne(u32, ask_for(&t, 'A')->mmap2.file_id, before));
	close(fd);
	target_end(&t);
}

Test(walker, a_hard_link_is_the_same_file_by_another_name)
{
	char from[64], to[64];
	const struct log_item *it;
	struct target t;
	uint32_t before;

	open_env(1 << 20, false, false);
	close(new_file("A", 1));
	target_start(&t, map_files_as_told, NULL);
	before = ask_for(&t, 'A')->mmap2.file_id;
	snprintf(from, sizeof(from), "%s/A", dir);
	snprintf(to, sizeof(to), "%s/B", dir);
	cr_assert(zero(int, link(from, to)));
	it = ask_for(&t, 'B');
	cr_expect(eq(u32, it->mmap2.file_id, before));
	cr_expect(eq(str, it->name, to));
	target_end(&t);
}

static void make_dirs(const char *const *names, size_t cnt)
{
	char path[256];

	for (size_t i = 0; i < cnt; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		cr_assert(zero(int, mkdir(path, 0755)));
	}
}

static void mount_overlay(const char *root, int nr)
{
	char options[512];

	snprintf(options, sizeof(options),
		 "lowerdir=%s/lower,upperdir=%s/tmp/upper%d,workdir=%s/tmp/work%d", dir, dir, nr,
		 dir, nr);
	target_check(!mount("overlay", root, "overlay", 0, options));
}

/* Container *arg: an overlay of its own on the common lower layer, as its root. */
static void map_in_a_container(void *arg)
{
	char root[64];
	int fd;

	snprintf(root, sizeof(root), "%s/merged%d", dir, *(const int *)arg);
	target_check(!unshare(CLONE_NEWNS));
	mount_overlay(root, *(const int *)arg);
	target_check(!chdir(root) && !syscall(SYS_pivot_root, ".", ".") &&
		     !umount2(".", MNT_DETACH) && !chdir("/"));
	fd = open("/lib.so", O_RDONLY);
	target_check(fd >= 0);
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	/* copied up: a file of its own from now on */
	fd = open("/copied.so", O_RDWR);
	target_check(fd >= 0 && pwrite(fd, "x", 1, 0) == 1);
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

struct in_container {
	uint32_t lib, copied; /* file_id */
};

static struct in_container walk_container(struct target *t)
{
	uint64_t lib = target_hear(t), copied = target_hear(t);

	walk_one(t->pid);
	cr_assert(record_at(lib) && record_at(copied));
	cr_expect(eq(str, record_at(lib)->name, "/lib.so"));
	cr_expect(eq(str, record_at(copied)->name, "/copied.so"));
	return (struct in_container){record_at(lib)->mmap2.file_id,
				     record_at(copied)->mmap2.file_id};
}

static bool kernel_has_overlays(void)
{
	char line[128];
	FILE *f = fopen("/proc/filesystems", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "overlay") != NULL;
	if (f)
		fclose(f);
	return found;
}

Test(walker, containers_share_the_files_of_a_layer_by_their_own_names)
{
	static const char *const dirs[] = {"lower", "tmp", "merged0", "merged1"};
	static const char *const layers[] = {"tmp/upper0", "tmp/work0", "tmp/upper1", "tmp/work1"};
	struct in_container in[2];
	struct target t[2];
	char tmp[64];

	if (!kernel_has_overlays())
		cr_skip_test("no overlayfs");
	open_env(1 << 20, false, false);
	cr_assert(zero(int, unshare(CLONE_NEWNS)));
	cr_assert(zero(int, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)));
	make_dirs(dirs, 4);
	/* an upper layer cannot be on every file system */
	snprintf(tmp, sizeof(tmp), "%s/tmp", dir);
	cr_assert(zero(int, mount("none", tmp, "tmpfs", 0, NULL)));
	make_dirs(layers, 4);
	close(new_file("lower/lib.so", 1));
	close(new_file("lower/copied.so", 1));
	for (int i = 0; i < 2; i++) {
		target_start(&t[i], map_in_a_container, &i);
		in[i] = walk_container(&t[i]);
	}
	cr_expect(eq(u32, in[0].lib, in[1].lib));
	cr_expect(ne(u32, in[0].copied, in[1].copied));
	cr_expect(ne(u32, in[0].copied, in[0].lib));
	target_end(&t[0]);
	target_end(&t[1]);
	umount2(tmp, MNT_DETACH);
}

#define MINOR_WANTED 300

/* Mounts until the kernel hands out a large device number; the mounts end with the process. */
static void map_on_a_device_with_a_large_minor(void *arg)
{
	char path[64], file[80];
	struct stat st = {0};
	int fd = -1;

	(void)arg;
	target_check(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	snprintf(path, sizeof(path), "%s/mnt", dir);
	target_check(!mkdir(path, 0755));
	for (int i = 0; i < MINOR_WANTED + 100 && minor(st.st_dev) < MINOR_WANTED; i++) {
		if (i)
			close(fd);
		target_check(!mount("none", path, "tmpfs", 0, NULL));
		snprintf(file, sizeof(file), "%s/lib", path);
		fd = open(file, O_RDWR | O_CREAT, 0755);
		target_check(fd >= 0 && !fstat(fd, &st));
	}
	target_check(!ftruncate(fd, PAGE));
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	target_tell(st.st_dev);
	target_pause();
}

Test(walker, large_device_minors_are_those_of_stat)
{
	const struct log_item *it;
	uint64_t addr, dev;
	struct target t;

	open_env(1 << 20, false, false);
	target_start(&t, map_on_a_device_with_a_large_minor, NULL);
	addr = target_hear(&t);
	dev = target_hear(&t);
	walk_one(t.pid);
	it = record_at(addr);
	cr_assert(it != NULL);
	cr_expect(ge(u32, it->mmap2.perf.min, 256));
	cr_expect(eq(u32, it->mmap2.perf.maj, major(dev)));
	cr_expect(eq(u32, it->mmap2.perf.min, minor(dev)));
	cr_expect(eq(u32, VP_DEV_MAJOR(it->mmap2.file.dev), major(dev)));
	cr_expect(eq(u32, VP_DEV_MINOR(it->mmap2.file.dev), minor(dev)));
	target_end(&t);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Directories below dir until a file's whole path has *arg bytes; goes there and maps it. */
static void map_a_long_name(void *arg)
{
	size_t want = *(const size_t *)arg, len = strlen(dir);
	char part[256];
	int fd;

	target_check(!chdir(dir));
	while (want - len > 256) {
		size_t n = want - len - 1 < 2 * 201 ? 100 : 200;

		memset(part, 'd', n);
		part[n] = '\0';
		target_check(!mkdir(part, 0755) && !chdir(part));
		len += n + 1;
	}
	memset(part, 'f', want - len - 1);
	part[want - len - 1] = '\0';
	fd = open(part, O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

/* The record of a file with a path of that many bytes. */
static const struct log_item *walk_long_name(struct target *t, size_t bytes)
{
	const struct log_item *it;
	uint64_t addr;

	open_env(1 << 20, false, false);
	target_start(t, map_a_long_name, &bytes);
	addr = target_hear(t);
	walk_one(t->pid);
	it = record_at(addr);
	cr_assert(it != NULL);
	return it;
}

static void expect_whole_name(size_t bytes)
{
	const struct procmaps_row *row;
	const struct log_item *it;
	struct procmaps m;
	struct target t;

	it = walk_long_name(&t, bytes);
	procmaps_read(&m, t.pid);
	row = procmaps_find(&m, it->mmap2.perf.addr);
	cr_assert(eq(sz, strlen(row->name), bytes));
	cr_expect(eq(str, it->name, row->name));
	cr_expect(zero(int, it->mmap2.hdr.flags &VP_MMAP2_F_NAME_CUT));
	cr_expect(zero(u64, counter(VP_CNT_NAME_CUT)));
	procmaps_free(&m);
	target_end(&t);
}

Test(walker, a_name_of_4000_bytes_is_whole)
{
	expect_whole_name(4000);
}

Test(walker, the_longest_name_that_a_path_may_have_is_whole)
{
	expect_whole_name(4095);
}

Test(walker, a_name_beyond_that_is_said_to_be_too_long)
{
	const struct log_item *it;
	struct target t;

	it = walk_long_name(&t, 4096);
	cr_expect(eq(str, it->name, "//toolong"));
	cr_expect(ne(int, it->mmap2.hdr.flags &VP_MMAP2_F_NAME_CUT, 0));
	cr_expect(eq(u64, counter(VP_CNT_NAME_CUT), 1));
	cr_expect(ne(u32, it->mmap2.file_id, 0));
	target_end(&t);
}

static void map_what_has_no_name(void *arg)
{
	int mem = memfd_create("code", 0), gone = new_file("gone", 1), kept = new_file("kept", 1);
	char path[64];

	(void)arg;
	snprintf(path, sizeof(path), "%s/gone", dir);
	target_check(mem >= 0 && gone >= 0 && !ftruncate(mem, PAGE) && !unlink(path));
	target_tell(map_exec(mem, 1, 0, MAP_PRIVATE));
	target_tell(map_exec(gone, 1, 0, MAP_PRIVATE));
	target_tell(map_exec(kept, 1, 0, MAP_PRIVATE));
	target_tell(map_exec(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS));
	target_pause();
}

Test(walker, files_without_a_name_are_called_deleted)
{
	char gone[64], kept[64];
	const char *names[] = {"/memfd:code (deleted)", gone, kept, "/dev/zero (deleted)"};
	uint64_t addr[4];
	struct target t;

	open_env(1 << 20, false, false);
	snprintf(gone, sizeof(gone), "%s/gone (deleted)", dir);
	snprintf(kept, sizeof(kept), "%s/kept", dir);
	target_start(&t, map_what_has_no_name, NULL);
	for (int i = 0; i < 4; i++)
		addr[i] = target_hear(&t);
	walk_one(t.pid);
	for (int i = 0; i < 4; i++) {
		const struct log_item *it = record_at(addr[i]);

		cr_assert(it != NULL);
		cr_expect(eq(str, it->name, (char *)names[i]));
		cr_expect(eq(int, !!(it->mmap2.hdr.flags & VP_MMAP2_F_DELETED), i != 2));
		cr_expect(eq(u32, it->mmap2.verdict,
			     i == 3 ? VP_VERDICT_ANON_EXEC : VP_VERDICT_FILE));
	}
	target_end(&t);
}

static void map_from_inside_a_root(void *arg)
{
	char in[4000] = "", path[4096];
	int fd;

	target_check(!chroot(dir) && !chdir("/"));
	while (strlen(in) < 3800) {
		size_t len = strlen(in);

		snprintf(in + len, sizeof(in) - len, "/%0200d", 7);
		target_check(!mkdir(in, 0755));
	}
	snprintf(path, sizeof(path), "%s/%0*d", in, (int)(*(size_t *)arg - strlen(in) - 1 - 200),
		 8);
	target_check(!mkdir(path, 0755));
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%0199d", 9);
	target_check(strlen(path) == *(size_t *)arg);
	fd = open(path, O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	fd = open("/two\nlines \x1b[31m\xff (deleted)", O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	fd = memfd_create("code", 0);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

static const char *name_at(uint64_t addr)
{
	const struct log_item *it = record_at(addr);

	cr_assert(it != NULL);
	return it->name;
}

Test(walker, names_start_at_the_root_of_the_process)
{
	size_t longest = PATH_MAX - 1;
	uint64_t far, strange, memfd;
	struct target t;

	open_env(1 << 20, false, false);
	target_start(&t, map_from_inside_a_root, &longest);
	far = target_hear(&t);
	strange = target_hear(&t);
	memfd = target_hear(&t);
	walk_one(t.pid);
	cr_expect(eq(sz, strlen(name_at(far)), longest));
	cr_expect(zero(int, strncmp(name_at(far), "/00000", 6)));
	cr_expect(eq(str, (char *)name_at(strange), "/two\nlines \x1b[31m\xff (deleted)"));
	cr_expect(zero(int, record_at(strange)->mmap2.hdr.flags &VP_MMAP2_F_DELETED));
	cr_expect(eq(str, (char *)name_at(memfd), "/memfd:code (deleted)"));
	cr_expect(zero(u64, counter(VP_CNT_NAME_CUT)));
	target_end(&t);
}
