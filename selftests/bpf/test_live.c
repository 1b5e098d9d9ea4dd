/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Live tracking: what a process maps while it is tracked, against a walk over the same process
 * afterwards. Each rung that the kernel has; no sampler runs, so nothing is found by samples.
 */
#include "recorder.h"
#include "procmaps.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
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

#include "kernel/features.h"
#include "kernel/live.h"
#include "kernel/loader.h"
#include "kernel/walker.h"
#include "track.skel.h"

#define PAGE	4096UL
#define WAIT_MS 20000

static struct {
	enum vp_track_rung rung;
	uint32_t filter;
	size_t sideband_bytes;
	struct vp_shared_maps maps;
	struct vp_walker filling, checking; /* one fills the tables, one reports all there is */
	struct track *track;
	struct vp_live *live;
	struct vp_ring *ring;
	struct vp_decoder d;
	struct record_log log;
} env;

static char dir[] = "/tmp/vmaprof-live.XXXXXX";

/* ---- set-up --------------------------------------------------------------------------------- */

static void open_track(struct vp_load_unit *unit)
{
	env.track = track__open();
	cr_assert(env.track != NULL);
	env.track->rodata->vp_filter = env.filter;
	*unit = (struct vp_load_unit){.name = "track", .skeleton = env.track->skeleton};
	cr_assert(zero(int, vp_shared_maps_reuse(&env.maps, env.track->obj, NULL)));
}

/* Attaches; nobody has walked yet, and the ring has no thread. */
static void open_env(void)
{
	const struct vp_live_opts o = {
		.rung = env.rung, .filter = env.filter, .sideband_bytes = env.sideband_bytes};
	struct vp_load_unit units[4] = {0};
	struct vp_err e = {""};

	record_log_init(&env.log);
	env.d = (struct vp_decoder){.ops = &record_log_ops, .ctx = &env.log};
	cr_assert(zero(int, vp_shared_maps_create(&env.maps, 4 << 20, 4096, &e)), "%s", e.text);
	cr_assert(zero(int, vp_walker_open(&env.filling, &env.maps, false, true, &units[0], &e)));
	cr_assert(zero(int, vp_walker_open(&env.checking, &env.maps, false, false, &units[1], &e)));
	open_track(&units[2]);
	cr_assert(zero(int, vp_live_open(&env.live, &o, &env.maps, &units[3], &e)), "%s", e.text);
	cr_assert(zero(int, vp_load(units, 4, false, &e)), "%s", e.text);
	cr_assert(zero(int, units[3].err), "%s", units[3].log);
	cr_assert(
		zero(int, vp_ring_open(&env.ring, vp_shared_maps_ring_fd(&env.maps), &env.d, &e)));
	cr_assert(zero(int, track__attach(env.track)));
}

static void attach(void)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_live_attach(env.live, 0, env.ring, &e)), "%s", e.text);
	cr_assert(eq(int, vp_live_rung(env.live), env.rung));
}

static void want(pid_t id, uint32_t flags)
{
	cr_assert(zero(int, bpf_map_update_elem(vp_shared_maps_fd(&env.maps, "targets"), &id,
						&flags, BPF_ANY)));
}

static void walk(struct vp_walker *w, pid_t pid)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_walker_walk(w, env.ring, &pid, 1, &e)), "%s", e.text);
}

static void start_reading(void)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_ring_start(env.ring, &e)), "%s", e.text);
}

/* All that was mapped until now is in the log then: the thread looks once more before it ends. */
static void stop_reading(void)
{
	cr_assert(zero(int, vp_ring_stop(env.ring)));
	cr_expect(zero(u64, env.d.bad_cnt));
	cr_expect(zero(u64, env.d.unknown_cnt));
}

static uint64_t counter(int which)
{
	uint64_t c[VP_CNT_CNT];

	cr_assert(zero(int, vp_shared_maps_counters(&env.maps, c)));
	return c[which];
}

static bool have(enum vp_feature_id id)
{
	struct vp_features *f;
	bool found;

	cr_assert(zero(int, vp_features_new(&f)));
	found = vp_features_have(f, id);
	vp_features_free(f);
	return found;
}

static void set_up(enum vp_track_rung rung)
{
	vp_loader_capture_messages(false);
	env.rung = rung;
	env.filter = VP_FILTER_TGID;
	cr_assert(mkdtemp(dir) != NULL);
}

static void set_up_fentry(void)
{
	if (!have(VP_FEAT_FENTRY))
		cr_skip_test("this kernel, or a policy, refuses fentry");
	set_up(VP_TRACK_FENTRY);
}

static void set_up_kprobe(void)
{
	if (!have(VP_FEAT_KPROBE))
		cr_skip_test("this kernel has no kprobes");
	set_up(VP_TRACK_KPROBE);
}

static void set_up_sideband(void)
{
	set_up(VP_TRACK_SIDEBAND);
}

static void tear_down(void)
{
	char cmd[64];

	vp_live_detach(env.live);
	vp_ring_close(env.ring);
	vp_live_close(env.live);
	track__destroy(env.track);
	vp_walker_close(&env.filling);
	vp_walker_close(&env.checking);
	vp_shared_maps_destroy(&env.maps);
	if (strchr(dir, 'X'))
		return;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	if (system(cmd))
		fprintf(stderr, "%s is left behind\n", dir);
}

TestSuite(live_fentry, .init = set_up_fentry, .fini = tear_down, .timeout = 90);
TestSuite(live_kprobe, .init = set_up_kprobe, .fini = tear_down, .timeout = 90);
TestSuite(live_sideband, .init = set_up_sideband, .fini = tear_down, .timeout = 90);

/* ---- what processes do ---------------------------------------------------------------------- */

/* DIR/name with cnt pages; its descriptor. */
static int new_file(const char *name, size_t pages)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	target_check(fd >= 0 && !ftruncate(fd, (off_t)(pages * PAGE)));
	return fd;
}

static uint64_t map_at(void *at, int fd, size_t pages, off_t offset, int prot, int flags)
{
	void *p = mmap(at, pages * PAGE, prot, flags, fd, offset);

	target_check(p != MAP_FAILED);
	return (uint64_t)p;
}

static uint64_t map_exec(int fd, size_t pages, off_t offset, int flags)
{
	return map_at(NULL, fd, pages, offset, PROT_READ | PROT_EXEC, flags);
}

static void load_a_copy_of_a_library(void)
{
	char cmd[600], copy[64];
	Dl_info info;

	snprintf(copy, sizeof(copy), "%s/libcopy.so", dir);
	target_check(dladdr((void *)bpf_object__open, &info));
	snprintf(cmd, sizeof(cmd), "cp %s %s", info.dli_fname, copy);
	target_check(!system(cmd));
	target_check(dlopen(copy, RTLD_NOW | RTLD_LOCAL) != NULL);
}

/* r--: its second and third page become executable one by one, then its fifth. */
static void make_pages_executable(int fd)
{
	char *p = (char *)map_at(NULL, fd, 6, 0, PROT_READ, MAP_PRIVATE);

	target_check(!mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC));
	target_check(!mprotect(p + 2 * PAGE, PAGE, PROT_READ | PROT_EXEC));
	target_check(!mprotect(p + 4 * PAGE, PAGE, PROT_READ | PROT_EXEC));
}

static void map_files(void)
{
	int fd = new_file("lib", 16), nl = new_file("two\nlines", 2), mem = memfd_create("m", 0);
	int gone = new_file("gone", 1);
	char path[64];

	target_check(mem >= 0 && !ftruncate(mem, (off_t)PAGE));
	map_exec(fd, 2, 0, MAP_PRIVATE);
	map_exec(fd, 1, 5 * PAGE, MAP_SHARED);
	map_at(NULL, fd, 1, 8 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
	map_exec(nl, 1, PAGE, MAP_PRIVATE);
	map_exec(mem, 1, 0, MAP_PRIVATE);
	snprintf(path, sizeof(path), "%s/gone", dir);
	target_check(!unlink(path));
	map_exec(gone, 1, 0, MAP_PRIVATE);
	make_pages_executable(fd);
}

static void map_without_files(void)
{
	char *p = (char *)map_exec(-1, 3, 0, MAP_PRIVATE | MAP_ANONYMOUS);

	target_check(!mprotect(p + PAGE, PAGE, PROT_READ));
	target_check(!mprotect(p + PAGE, PAGE, PROT_READ | PROT_EXEC));
}

/* Tells when it is asked to go on, and when it is through. */
static void map_all_kinds(void *arg)
{
	(void)arg;
	target_await();
	map_files();
	load_a_copy_of_a_library();
	map_without_files();
	target_tell(0);
	target_pause();
}

/* ---- what is expected ----------------------------------------------------------------------- */

static bool same_range(const struct log_item *a, const struct log_item *b)
{
	return a->mmap2.perf.addr == b->mmap2.perf.addr && a->mmap2.perf.len == b->mmap2.perf.len;
}

static bool is_mapping_of(const struct log_item *it, pid_t pid)
{
	return it->hdr.kind == VP_REC_MMAP2 && it->mmap2.proc.tgid == (uint32_t)pid;
}

/* Records of pid among the first n that are of the same mapping as `walked`; the last in *out. */
static size_t count_same(const struct log_item *walked, pid_t pid, size_t n,
			 const struct log_item **out)
{
	size_t cnt = 0;

	for (size_t i = 0; i < n; i++) {
		const struct log_item *it = &env.log.item[i];

		if (is_mapping_of(it, pid) && same_range(it, walked) &&
		    it->mmap2.file_id == walked->mmap2.file_id &&
		    it->mmap2.proc.exec_id == walked->mmap2.proc.exec_id) {
			*out = it;
			cnt++;
		}
	}
	return cnt;
}

/* All but when it was sent, by whom, and from where. */
static void expect_same_record(const struct log_item *live, const struct log_item *walked)
{
	cr_expect(
		zero(int, memcmp(&live->mmap2.perf, &walked->mmap2.perf, sizeof(live->mmap2.perf))),
		"%s", walked->name);
	cr_expect(
		zero(int, memcmp(&live->mmap2.file, &walked->mmap2.file, sizeof(live->mmap2.file))),
		"%s", walked->name);
	cr_expect(
		zero(int, memcmp(&live->mmap2.proc, &walked->mmap2.proc, sizeof(live->mmap2.proc))),
		"%s", walked->name);
	cr_expect(eq(u32, live->mmap2.file_id, walked->mmap2.file_id), "%s", walked->name);
	cr_expect(eq(u16, live->mmap2.verdict, walked->mmap2.verdict), "%s", walked->name);
	cr_expect(eq(u16, live->mmap2.hdr.flags & ~VP_MMAP2_F_FROM_WALK,
		     walked->mmap2.hdr.flags & ~VP_MMAP2_F_FROM_WALK),
		  "%s", walked->name);
	cr_expect(eq(str, live->name, walked->name));
	cr_expect(eq(str, (char *)live->mmap2.comm, (char *)walked->mmap2.comm), "%s",
		  walked->name);
}

static void expect_once(const struct log_item *walked, pid_t pid, size_t n)
{
	const struct log_item *live = NULL;

	cr_expect(eq(sz, count_same(walked, pid, n, &live), 1), "%" PRIx64 "-%" PRIx64 " %s",
		  (uint64_t)walked->mmap2.perf.addr,
		  (uint64_t)(walked->mmap2.perf.addr + walked->mmap2.perf.len), walked->name);
	if (live)
		expect_same_record(live, walked);
}

/*
 * Each executable mapping that pid has now was reported exactly once, memory without a name
 * never; how many were found by live tracking.
 */
static size_t expect_all_once(pid_t pid)
{
	size_t n = env.log.cnt, by_walk = 0, all = 0;

	walk(&env.checking, pid);
	for (size_t i = n; i < env.log.cnt; i++) {
		if (env.log.item[i].mmap2.verdict == VP_VERDICT_ANON_EXEC)
			continue;
		expect_once(&env.log.item[i], pid, n);
		all++;
	}
	for (size_t i = 0; i < n; i++) {
		const struct log_item *it = &env.log.item[i];

		if (!is_mapping_of(it, pid))
			continue;
		by_walk += !!(it->hdr.flags & VP_MMAP2_F_FROM_WALK);
		cr_expect(ne(u16, it->mmap2.verdict, VP_VERDICT_ANON_EXEC), "%" PRIx64,
			  (uint64_t)it->mmap2.perf.addr);
		cr_expect(ne(u16, it->mmap2.verdict, VP_VERDICT_NOT_EXEC));
	}
	return all - by_walk;
}

/* The one mapping that starts at addr, reported exactly once among the first n. */
static void expect_start_once(pid_t pid, uint64_t addr, size_t n)
{
	for (size_t i = n; i < env.log.cnt; i++) {
		if (is_mapping_of(&env.log.item[i], pid) &&
		    env.log.item[i].mmap2.perf.addr == addr) {
			expect_once(&env.log.item[i], pid, n);
			return;
		}
	}
	cr_expect(false, "the walk has no mapping at %" PRIx64, addr);
}

static size_t count_of(pid_t pid)
{
	size_t cnt = 0;

	for (size_t i = 0; i < env.log.cnt; i++)
		cnt += is_mapping_of(&env.log.item[i], pid);
	return cnt;
}

/* ---- kinds of mappings ---------------------------------------------------------------------- */

static void what_is_mapped_is_reported_once_as_a_walk_would(void)
{
	struct target t;

	open_env();
	target_start(&t, map_all_kinds, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	walk(&env.filling, t.pid);
	start_reading();
	target_say(&t, 0);
	target_hear(&t);
	stop_reading();
	/* six of files, two of pages that became executable, the library */
	cr_expect(eq(sz, expect_all_once(t.pid), 9));
	cr_expect(zero(u64, counter(VP_CNT_LIVE_BUSY)));
	target_end(&t);
}

static void what_is_mapped_between_attaching_and_the_walk_is_reported_once(void)
{
	struct target t;

	open_env();
	target_start(&t, map_all_kinds, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	target_say(&t, 0);
	target_hear(&t);
	/* the walk reports anonymous memory, too */
	walk(&env.filling, t.pid);
	start_reading();
	stop_reading();
	walk(&env.checking, t.pid);
	for (size_t i = 0; i < env.log.cnt; i++) {
		const struct log_item *it = &env.log.item[i], *last;
		size_t twice = it->hdr.kind == VP_REC_MMAP2
				       ? count_same(it, t.pid, env.log.cnt, &last)
				       : 2;

		/* once before and once by the walk that checks; a merge leaves one before */
		cr_expect(le(sz, twice, 2), "%s", it->name);
	}
	target_end(&t);
}

/* Tells where: a mapping over the middle of another, and one whose middle lost its right. */
static void map_over_code(void *arg)
{
	int a = new_file("under", 8), b = new_file("over", 8);
	uint64_t under, cut;

	(void)arg;
	target_await();
	under = map_exec(a, 3, 0, MAP_PRIVATE);
	target_tell(map_at((void *)(under + PAGE), b, 1, 2 * PAGE, PROT_READ | PROT_EXEC,
			   MAP_PRIVATE | MAP_FIXED));
	cut = map_exec(b, 3, 4 * PAGE, MAP_PRIVATE);
	target_check(!mprotect((void *)(cut + PAGE), PAGE, PROT_READ));
	target_tell(cut);
	target_pause();
}

/* Of what the first n say of addr, the newest is right, or nothing is said. */
static void expect_newest_is_right(const struct log_item *walked, pid_t pid, size_t n)
{
	const struct vp_perf_mmap2 *w = &walked->mmap2.perf;
	const struct log_item *newest = NULL;

	for (size_t i = 0; i < n; i++) {
		const struct log_item *it = &env.log.item[i];

		if (is_mapping_of(it, pid) && w->addr >= it->mmap2.perf.addr &&
		    w->addr < it->mmap2.perf.addr + it->mmap2.perf.len)
			newest = it;
	}
	/* perf tells where a mapping began that is not there any more */
	if (!newest && env.rung == VP_TRACK_SIDEBAND)
		return;
	cr_assert(newest != NULL, "%" PRIx64 " %s", (uint64_t)w->addr, walked->name);
	cr_expect(eq(u32, newest->mmap2.file_id, walked->mmap2.file_id), "%s", walked->name);
	cr_expect(eq(u64, newest->mmap2.perf.pgoff + w->addr - newest->mmap2.perf.addr, w->pgoff),
		  "%s", walked->name);
}

static void what_is_mapped_over_code_is_the_newest(void)
{
	struct target t;
	uint64_t over;
	size_t n;

	open_env();
	target_start(&t, map_over_code, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	walk(&env.filling, t.pid);
	start_reading();
	target_say(&t, 0);
	over = target_hear(&t);
	target_hear(&t);
	stop_reading();

	n = env.log.cnt;
	walk(&env.checking, t.pid);
	expect_start_once(t.pid, over, n);
	for (size_t i = n; i < env.log.cnt; i++)
		expect_newest_is_right(&env.log.item[i], t.pid, n);
	target_end(&t);
}

#define ANON_CNT 2000

static void map_memory_often(void *arg)
{
	(void)arg;
	target_await();
	for (int i = 0; i < ANON_CNT; i++) {
		void *p = (void *)map_exec(-1, 1, 0, MAP_PRIVATE | MAP_ANONYMOUS);

		target_check(!munmap(p, PAGE));
	}
	target_tell(0);
	target_pause();
}

/* Whether any of this process's epolls has something to tell. */
static bool is_woken(void)
{
	for (int fd = 0; fd < 1024; fd++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char path[64], is[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, is, sizeof(is) - 1);
		if (n < 0)
			continue;
		is[n] = '\0';
		if (!strcmp(is, "anon_inode:[eventpoll]") && poll(&p, 1, 0) == 1)
			return true;
	}
	return false;
}

/* Nobody reads, so a wakeup would still be there at the end. */
static void memory_costs_no_record_and_no_wakeup(void)
{
	struct vp_sideband_stats st;
	struct target t;
	size_t before;

	env.sideband_bytes = 1 << 20;
	open_env();
	target_start(&t, map_memory_often, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	walk(&env.filling, t.pid);
	before = env.log.cnt;
	target_say(&t, 0);
	target_hear(&t);
	cr_expect(not(is_woken()));
	start_reading();
	stop_reading();
	cr_expect(eq(sz, env.log.cnt, before));
	vp_live_get_stats(env.live, &st);
	if (env.rung == VP_TRACK_SIDEBAND)
		cr_expect(ge(u64, st.seen_cnt, ANON_CNT));
	cr_expect(zero(u64, st.asked_cnt));
	cr_expect(zero(u64, st.lost_cnt));
	target_end(&t);
}

/* Its root is DIR; the file is called as from there. */
static void map_below_another_root(void *arg)
{
	int fd;

	(void)arg;
	target_await();
	target_check(!chroot(dir) && !chdir("/") && !mkdir("/sub", 0755));
	fd = open("/sub/inside", O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, (off_t)PAGE));
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

static void names_are_as_the_process_sees_them(void)
{
	struct target t;
	uint64_t addr;
	size_t found = 0;

	open_env();
	target_start(&t, map_below_another_root, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	walk(&env.filling, t.pid);
	start_reading();
	target_say(&t, 0);
	addr = target_hear(&t);
	stop_reading();
	for (size_t i = 0; i < env.log.cnt; i++) {
		const struct log_item *it = &env.log.item[i];

		if (!is_mapping_of(it, t.pid) || it->mmap2.perf.addr != addr)
			continue;
		cr_expect(eq(str, it->name, "/sub/inside"));
		found++;
	}
	cr_expect(eq(sz, found, 1));
	target_end(&t);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void *map_in_a_thread(void *arg)
{
	target_tell(map_exec(*(int *)arg, 1, 0, MAP_PRIVATE));
	return NULL;
}

/* Tells what a thread of it mapped, a child's tgid, and what that mapped. */
static void map_in_thread_and_child(void *arg)
{
	int fd = new_file("shared", 8);
	pthread_t th;
	pid_t child;

	(void)arg;
	target_await();
	target_check(!pthread_create(&th, NULL, map_in_a_thread, &fd));
	pthread_join(th, NULL);
	child = fork();
	target_check(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		target_tell((uint64_t)getpid());
		target_tell(map_exec(fd, 1, 2 * PAGE, MAP_PRIVATE));
	}
	target_pause();
}

static void threads_and_children_are_tracked(void)
{
	uint64_t by_thread, by_child;
	struct target t;
	pid_t child;
	size_t n;

	open_env();
	target_start(&t, map_in_thread_and_child, NULL);
	want(t.pid, VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT);
	attach();
	walk(&env.filling, t.pid);
	start_reading();
	target_say(&t, 0);
	by_thread = target_hear(&t);
	child = (pid_t)target_hear(&t);
	by_child = target_hear(&t);
	stop_reading();

	n = env.log.cnt;
	walk(&env.checking, t.pid);
	walk(&env.checking, child);
	expect_start_once(t.pid, by_thread, n);
	expect_start_once(child, by_child, n);
	/* … and has all that its parent had */
	cr_expect(eq(sz, record_log_count(&env.log, VP_REC_INHERIT), 1));
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

	open_env();
	target_start(&t, exec_sleep, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	walk(&env.filling, t.pid);
	start_reading();
	target_say(&t, 0);
	cr_assert(wait_until(is_sleep_asleep, &t.pid, WAIT_MS));
	stop_reading();
	for (size_t i = 0; i < env.log.cnt; i++) {
		execs += env.log.item[i].hdr.kind == VP_REC_EXEC;
		/* the exec's own new name is in its record */
		cr_expect(ne(u16, env.log.item[i].hdr.kind, VP_REC_COMM));
	}
	cr_expect(eq(sz, execs, 1));
	expect_all_once(t.pid);
	target_end(&t);
}

static void a_process_that_is_not_wanted_gives_none(void)
{
	struct target wanted, other;

	open_env();
	target_start(&wanted, map_all_kinds, NULL);
	target_start(&other, map_all_kinds, NULL);
	want(wanted.pid, VP_TARGET_F_ARMED);
	attach();
	start_reading();
	target_say(&other, 0);
	target_hear(&other);
	target_say(&wanted, 0);
	target_hear(&wanted);
	stop_reading();
	cr_expect(zero(sz, count_of(other.pid)));
	cr_expect(ge(sz, count_of(wanted.pid), 9));
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
	int fd = new_file("beside", 1);
	pthread_t th;

	(void)arg;
	target_check(!pthread_create(&th, NULL, wait_in_a_thread, NULL));
	target_await();
	target_tell(map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

static void what_another_thread_maps_is_reported_for_a_thread(void)
{
	struct target wanted, other;
	uint64_t addr;
	size_t n;
	pid_t tid;

	env.filter = VP_FILTER_TID;
	open_env();
	target_start(&wanted, map_beside_a_thread, NULL);
	target_start(&other, map_beside_a_thread, NULL);
	tid = (pid_t)target_hear(&wanted);
	target_hear(&other);
	want(tid, VP_TARGET_F_ARMED);
	cr_assert(zero(int, vp_live_add_process(env.live, wanted.pid)));
	attach();
	walk(&env.filling, wanted.pid);
	start_reading();
	target_say(&wanted, 0);
	addr = target_hear(&wanted);
	target_say(&other, 0);
	target_hear(&other);
	stop_reading();
	n = env.log.cnt;
	walk(&env.checking, wanted.pid);
	expect_start_once(wanted.pid, addr, n);
	cr_expect(zero(sz, count_of(other.pid)));
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
	snprintf(group, sizeof(group), "%s/cgroup", dir);
	cr_assert(zero(int, mkdir(group, 0755)));
	if (mount("none", group, "cgroup2", 0, NULL))
		cr_skip_test("cgroup2 cannot be mounted");
	snprintf(group, sizeof(group), "%s/cgroup/vmaprof-live-%d", dir, getpid());
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
	snprintf(mounted, sizeof(mounted), "%s/cgroup", dir);
	cr_expect(zero(int, umount(mounted)));
}

static void set_cgroup(void)
{
	int fd = open(group, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__u32 zero = 0;
	struct stat st;

	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, fstat(fd, &st)));
	vp_live_set_cgroup(env.live, st.st_ino);
	cr_assert(zero(int, bpf_map_update_elem(vp_shared_maps_fd(&env.maps, "target_cgroup"),
						&zero, &fd, BPF_ANY)));
	close(fd);
}

static void processes_of_a_cgroup_are_tracked_and_no_other(void)
{
	struct target wanted, inner, other;
	char path[128];

	make_groups();
	env.filter = VP_FILTER_CGROUP;
	open_env();
	target_start(&wanted, map_all_kinds, NULL);
	target_start(&inner, map_all_kinds, NULL);
	target_start(&other, map_all_kinds, NULL);
	move_to_group(wanted.pid, group);
	snprintf(path, sizeof(path), "%s/inner", group);
	move_to_group(inner.pid, path);
	set_cgroup();
	attach();
	start_reading();
	target_say(&other, 0);
	target_hear(&other);
	target_say(&wanted, 0);
	target_hear(&wanted);
	target_say(&inner, 0);
	target_hear(&inner);
	stop_reading();
	cr_expect(ge(sz, count_of(wanted.pid), 9));
	cr_expect(ge(sz, count_of(inner.pid), 9));
	cr_expect(zero(sz, count_of(other.pid)));
	target_end(&wanted);
	target_end(&inner);
	target_end(&other);
	remove_groups();
}

Test(live_fentry, what_is_mapped_is_reported_once_as_a_walk_would)
{
	what_is_mapped_is_reported_once_as_a_walk_would();
}

Test(live_kprobe, what_is_mapped_is_reported_once_as_a_walk_would)
{
	what_is_mapped_is_reported_once_as_a_walk_would();
}

Test(live_sideband, what_is_mapped_is_reported_once_as_a_walk_would)
{
	what_is_mapped_is_reported_once_as_a_walk_would();
}

Test(live_fentry, what_is_mapped_between_attaching_and_the_walk_is_reported_once)
{
	what_is_mapped_between_attaching_and_the_walk_is_reported_once();
}

Test(live_kprobe, what_is_mapped_between_attaching_and_the_walk_is_reported_once)
{
	what_is_mapped_between_attaching_and_the_walk_is_reported_once();
}

Test(live_sideband, what_is_mapped_between_attaching_and_the_walk_is_reported_once)
{
	what_is_mapped_between_attaching_and_the_walk_is_reported_once();
}

Test(live_fentry, what_is_mapped_over_code_is_the_newest)
{
	what_is_mapped_over_code_is_the_newest();
}

Test(live_kprobe, what_is_mapped_over_code_is_the_newest)
{
	what_is_mapped_over_code_is_the_newest();
}

Test(live_sideband, what_is_mapped_over_code_is_the_newest)
{
	what_is_mapped_over_code_is_the_newest();
}

Test(live_fentry, memory_costs_no_record_and_no_wakeup)
{
	memory_costs_no_record_and_no_wakeup();
}

Test(live_kprobe, memory_costs_no_record_and_no_wakeup)
{
	memory_costs_no_record_and_no_wakeup();
}

Test(live_sideband, memory_costs_no_record_and_no_wakeup)
{
	memory_costs_no_record_and_no_wakeup();
}

Test(live_fentry, names_are_as_the_process_sees_them)
{
	names_are_as_the_process_sees_them();
}

Test(live_kprobe, names_are_as_the_process_sees_them)
{
	names_are_as_the_process_sees_them();
}

Test(live_sideband, names_are_as_the_process_sees_them)
{
	names_are_as_the_process_sees_them();
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

/* ---- the sideband alone --------------------------------------------------------------------- */

static void map_memory_on_one_cpu(void *arg)
{
	cpu_set_t one;

	(void)arg;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	target_check(!sched_setaffinity(0, sizeof(one), &one));
	for (;;) {
		for (uint64_t cnt = target_await(); cnt > 0; cnt--)
			map_exec(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS);
		target_tell(0);
	}
}

/* 40 records of 96 bytes fit; how many were lost is told before the next that fits. */
Test(live_sideband, what_does_not_fit_into_perfs_buffer_is_counted)
{
	struct vp_sideband_stats st;
	struct target t;

	env.sideband_bytes = PAGE;
	open_env();
	target_start(&t, map_memory_on_one_cpu, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	target_say(&t, 300);
	target_hear(&t);
	start_reading();
	stop_reading();
	target_say(&t, 1);
	target_hear(&t);
	start_reading();
	stop_reading();
	vp_live_get_stats(env.live, &st);
	cr_expect(ge(u64, st.lost_cnt, 200));
	cr_expect(ge(u64, st.lost_cnt + st.seen_cnt, 301));
	target_end(&t);
}

#define FILE_MAP_CNT 4000

static void map_a_file_often(void *arg)
{
	int fd = new_file("often", 2);

	(void)arg;
	target_await();
	/* by turns, so that neighbours do not merge */
	for (int i = 0; i < FILE_MAP_CNT; i++)
		map_exec(fd, 1, i % 2 ? (off_t)PAGE : 0, MAP_PRIVATE);
	target_tell(0);
	target_pause();
}

Test(live_sideband, a_process_that_maps_too_often_is_held_back)
{
	struct vp_sideband_stats st;
	struct target t;

	env.sideband_bytes = 1 << 20;
	open_env();
	target_start(&t, map_a_file_often, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	attach();
	target_say(&t, 0);
	target_hear(&t);
	start_reading();
	stop_reading();
	vp_live_get_stats(env.live, &st);
	cr_expect(gt(u64, st.limited_cnt, 1000));
	cr_expect(ge(u64, st.asked_cnt, 1000));
	cr_expect(zero(u64, st.lost_cnt));
	cr_expect(eq(u64, st.limited_cnt + st.asked_cnt, FILE_MAP_CNT));
	target_end(&t);
}

static void map_and_end(void *arg)
{
	int fd = new_file("short", 1);

	(void)arg;
	target_await();
	map_exec(fd, 1, 0, MAP_PRIVATE);
}

Test(live_sideband, a_process_that_has_ended_yields_nothing)
{
	struct target t;
	pid_t pid;

	open_env();
	target_start(&t, map_and_end, NULL);
	pid = t.pid;
	want(pid, VP_TARGET_F_ARMED);
	attach();
	target_say(&t, 0);
	cr_assert(zero(int, target_wait(&t)));
	start_reading();
	stop_reading();
	cr_expect(zero(sz, count_of(pid)));
}

/* ---- which rung ----------------------------------------------------------------------------- */

TestSuite(live, .fini = tear_down);

static enum vp_track_rung best_rung(void)
{
	if (have(VP_FEAT_FENTRY))
		return VP_TRACK_FENTRY;
	return have(VP_FEAT_KPROBE) ? VP_TRACK_KPROBE : VP_TRACK_SIDEBAND;
}

Test(live, the_first_rung_that_works_is_taken_and_named_by_doctor)
{
	struct recorder r = RECORDER_PLAIN;
	const struct vp_feature *named;
	struct vp_features *f;
	struct vp_err e = {""};

	r.live = true;
	recorder_open(&r, VP_FILTER_ALL, 0);
	cr_assert(zero(int, vp_session_track_live(r.s, &e)), "%s", e.text);
	cr_expect(eq(int, vp_session_rung(r.s), best_rung()));
	cr_assert(zero(int, vp_features_new(&f)));
	named = vp_features_get(f, VP_FEAT_LIVE_TRACKING);
	cr_expect(named->present);
	cr_expect(strstr(named->detail, vp_track_rung_name(best_rung())) != NULL, "%s",
		  named->detail);
	vp_features_free(f);
	recorder_close(&r);
}

Test(live, a_rung_that_was_asked_for_and_is_missing_is_an_error)
{
	struct vp_live_opts o = {.rung = VP_TRACK_FENTRY};
	struct vp_load_unit unit;
	struct vp_err e = {""};

	if (best_rung() == VP_TRACK_FENTRY)
		cr_skip_test("this kernel has all rungs");
	cr_assert(zero(int, vp_shared_maps_create(&env.maps, 4096, 16, &e)));
	cr_expect(lt(int, vp_live_open(&env.live, &o, &env.maps, &unit, &e), 0));
	cr_expect(strstr(e.text, "--track=fentry: ") == e.text, "%s", e.text);
}

/* xor %ebp, %ebp; jmp to itself: a stack of one frame */
static const unsigned char spin_code[] = {0x31, 0xed, 0xeb, 0xfe};

static void spin_in_a_mapped_page(void *arg)
{
	int fd = new_file("spin", 1);
	void (*spin)(void);

	(void)arg;
	target_check(pwrite(fd, spin_code, sizeof(spin_code), 0) == sizeof(spin_code));
	target_await();
	spin = (void (*)(void))map_exec(fd, 1, 0, MAP_PRIVATE);
	target_tell(0);
	target_await();
	spin();
}

/* What was entered while the mappings were being changed holds when that is over. */
static void what_is_tracked_needs_no_question(enum vp_track_rung rung)
{
	struct recorder r = RECORDER_PLAIN;
	struct vp_err e = {""};
	struct target t;

	if (!have(VP_FEAT_MM_LOCK_SEQ))
		cr_skip_test("this kernel does not count changes of mappings");
	if (!have(VP_FEAT_IRQ_FIND_VMA))
		cr_skip_test("bpf_find_vma never answers in an interrupt of this kernel");
	r.live = true;
	r.track = rung;
	r.freq_hz = 99;
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, spin_in_a_mapped_page, NULL);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	cr_assert(zero(int, vp_session_track_live(r.s, &e)), "%s", e.text);
	recorder_walk(&r, t.pid);
	target_say(&t, 0);
	target_hear(&t);
	recorder_attach(&r);
	target_say(&t, 0);
	recorder_wait(&r, 20);
	recorder_stop(&r);
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_FIND_OK)));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_FIND_BUSY)));
	target_end(&t);
	recorder_close(&r);
}

Test(live_fentry, what_is_tracked_needs_no_question)
{
	what_is_tracked_needs_no_question(VP_TRACK_FENTRY);
}

Test(live_kprobe, what_is_tracked_needs_no_question)
{
	what_is_tracked_needs_no_question(VP_TRACK_KPROBE);
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
	for (size_t i = 0; i < env.log.cnt; i++) {
		const struct log_item *it = &env.log.item[i];

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

	open_env();
	target_start(&t, rename_threads, NULL);
	want(t.pid, VP_TARGET_F_ARMED);
	start_reading();
	target_say(&t, 0);
	tid = (uint32_t)target_hear(&t);
	target_hear(&t);
	stop_reading();
	cr_expect(has_name(tid, "vp by itself"));
	cr_expect(has_name(tid, "vp by another"));
	target_end(&t);
}
