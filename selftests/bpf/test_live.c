/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Live tracking: kinds of mappings, and which rung does it. Each rung that the kernel has. */
#include "live_env.h"
#include "recorder.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/loader.h"

static void set_up_fentry(void)
{
	if (!live_have(VP_FEAT_FENTRY))
		cr_skip_test("this kernel, or a policy, refuses fentry");
	live_set_up(VP_TRACK_FENTRY);
}

static void set_up_kprobe(void)
{
	if (!live_have(VP_FEAT_KPROBE))
		cr_skip_test("this kernel has no kprobes");
	live_set_up(VP_TRACK_KPROBE);
}

static void set_up_sideband(void)
{
	live_set_up(VP_TRACK_SIDEBAND);
}

TestSuite(live_fentry, .init = set_up_fentry, .fini = live_tear_down, .timeout = 90);
TestSuite(live_kprobe, .init = set_up_kprobe, .fini = live_tear_down, .timeout = 90);
TestSuite(live_sideband, .init = set_up_sideband, .fini = live_tear_down, .timeout = 90);

/* ---- kinds of mappings ---------------------------------------------------------------------- */

static void what_is_mapped_is_reported_once_as_a_walk_would(void)
{
	struct target t;

	live_open();
	target_start(&t, live_map_all_kinds, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	live_walk(&live_env.filling, t.pid);
	live_start_reading();
	target_say(&t, 0);
	target_hear(&t);
	live_stop_reading();
	/* six of files, two of pages that became executable, the library */
	cr_expect(eq(sz, live_expect_all_once(t.pid), 9));
	cr_expect(zero(u64, live_counter(VP_CNT_LIVE_BUSY)));
	target_end(&t);
}

static void what_is_mapped_between_attaching_and_the_walk_is_reported_once(void)
{
	struct target t;

	live_open();
	target_start(&t, live_map_all_kinds, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	target_say(&t, 0);
	target_hear(&t);
	/* the walk reports anonymous memory, too */
	live_walk(&live_env.filling, t.pid);
	live_start_reading();
	live_stop_reading();
	live_walk(&live_env.checking, t.pid);
	for (size_t i = 0; i < live_env.log.cnt; i++) {
		const struct log_item *it = &live_env.log.item[i], *last;
		size_t twice = it->hdr.kind == VP_REC_MMAP2
				       ? live_count_same(it, t.pid, live_env.log.cnt, &last)
				       : 2;

		/* once before and once by the walk that checks; a merge leaves one before */
		cr_expect(le(sz, twice, 2), "%s", it->name);
	}
	target_end(&t);
}

/* Tells where: a mapping over the middle of another, and one whose middle lost its right. */
static void map_over_code(void *arg)
{
	int a = live_new_file("under", 8), b = live_new_file("over", 8);
	uint64_t under, cut;

	(void)arg;
	target_await();
	under = live_map_exec(a, 3, 0, MAP_PRIVATE);
	target_tell(live_map_at((void *)(under + PAGE), b, 1, 2 * PAGE, PROT_READ | PROT_EXEC,
				MAP_PRIVATE | MAP_FIXED));
	cut = live_map_exec(b, 3, 4 * PAGE, MAP_PRIVATE);
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
		const struct log_item *it = &live_env.log.item[i];

		if (live_is_mapping_of(it, pid) && w->addr >= it->mmap2.perf.addr &&
		    w->addr < it->mmap2.perf.addr + it->mmap2.perf.len)
			newest = it;
	}
	/* perf tells where a mapping began that is not there any more */
	if (!newest && live_env.rung == VP_TRACK_SIDEBAND)
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

	live_open();
	target_start(&t, map_over_code, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	live_walk(&live_env.filling, t.pid);
	live_start_reading();
	target_say(&t, 0);
	over = target_hear(&t);
	target_hear(&t);
	live_stop_reading();

	n = live_env.log.cnt;
	live_walk(&live_env.checking, t.pid);
	live_expect_start_once(t.pid, over, n);
	for (size_t i = n; i < live_env.log.cnt; i++)
		expect_newest_is_right(&live_env.log.item[i], t.pid, n);
	target_end(&t);
}

#define ANON_CNT 2000

static void map_memory_often(void *arg)
{
	(void)arg;
	target_await();
	for (int i = 0; i < ANON_CNT; i++) {
		void *p = (void *)live_map_exec(-1, 1, 0, MAP_PRIVATE | MAP_ANONYMOUS);

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

	live_env.sideband_bytes = 1 << 20;
	live_open();
	target_start(&t, map_memory_often, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	live_walk(&live_env.filling, t.pid);
	before = live_env.log.cnt;
	target_say(&t, 0);
	target_hear(&t);
	cr_expect(not(is_woken()));
	live_start_reading();
	live_stop_reading();
	cr_expect(eq(sz, live_env.log.cnt, before));
	vp_live_get_stats(live_env.live, &st);
	if (live_env.rung == VP_TRACK_SIDEBAND)
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
	target_check(!chroot(live_dir) && !chdir("/") && !mkdir("/sub", 0755));
	fd = open("/sub/inside", O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, (off_t)PAGE));
	target_tell(live_map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

static void names_are_as_the_process_sees_them(void)
{
	struct target t;
	uint64_t addr;
	size_t found = 0;

	live_open();
	target_start(&t, map_below_another_root, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	live_walk(&live_env.filling, t.pid);
	live_start_reading();
	target_say(&t, 0);
	addr = target_hear(&t);
	live_stop_reading();
	for (size_t i = 0; i < live_env.log.cnt; i++) {
		const struct log_item *it = &live_env.log.item[i];

		if (!live_is_mapping_of(it, t.pid) || it->mmap2.perf.addr != addr)
			continue;
		cr_expect(eq(str, it->name, "/sub/inside"));
		found++;
	}
	cr_expect(eq(sz, found, 1));
	target_end(&t);
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
			live_map_exec(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS);
		target_tell(0);
	}
}

/* 40 records of 96 bytes fit; how many were lost is told before the next that fits. */
Test(live_sideband, what_does_not_fit_into_perfs_buffer_is_counted)
{
	struct vp_sideband_stats st;
	struct target t;

	live_env.sideband_bytes = PAGE;
	live_open();
	target_start(&t, map_memory_on_one_cpu, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	target_say(&t, 300);
	target_hear(&t);
	live_start_reading();
	live_stop_reading();
	target_say(&t, 1);
	target_hear(&t);
	live_start_reading();
	live_stop_reading();
	vp_live_get_stats(live_env.live, &st);
	cr_expect(ge(u64, st.lost_cnt, 200));
	cr_expect(ge(u64, st.lost_cnt + st.seen_cnt, 301));
	target_end(&t);
}

#define FILE_MAP_CNT 4000

static void map_a_file_often(void *arg)
{
	int fd = live_new_file("often", 2);

	(void)arg;
	target_await();
	/* by turns, so that neighbours do not merge */
	for (int i = 0; i < FILE_MAP_CNT; i++)
		live_map_exec(fd, 1, i % 2 ? (off_t)PAGE : 0, MAP_PRIVATE);
	target_tell(0);
	target_pause();
}

Test(live_sideband, a_process_that_maps_too_often_is_held_back)
{
	struct vp_sideband_stats st;
	struct target t;

	live_env.sideband_bytes = 1 << 20;
	live_open();
	target_start(&t, map_a_file_often, NULL);
	live_want(t.pid, VP_TARGET_F_ARMED);
	live_attach();
	target_say(&t, 0);
	target_hear(&t);
	live_start_reading();
	live_stop_reading();
	vp_live_get_stats(live_env.live, &st);
	cr_expect(gt(u64, st.limited_cnt, 1000));
	cr_expect(ge(u64, st.asked_cnt, 1000));
	cr_expect(zero(u64, st.lost_cnt));
	cr_expect(eq(u64, st.limited_cnt + st.asked_cnt, FILE_MAP_CNT));
	target_end(&t);
}

static void map_and_end(void *arg)
{
	int fd = live_new_file("short", 1);

	(void)arg;
	target_await();
	live_map_exec(fd, 1, 0, MAP_PRIVATE);
}

Test(live_sideband, a_process_that_has_ended_yields_nothing)
{
	struct target t;
	pid_t pid;

	live_open();
	target_start(&t, map_and_end, NULL);
	pid = t.pid;
	live_want(pid, VP_TARGET_F_ARMED);
	live_attach();
	target_say(&t, 0);
	cr_assert(zero(int, target_wait(&t)));
	live_start_reading();
	live_stop_reading();
	cr_expect(zero(sz, live_count_of(pid)));
}

/* ---- which rung ----------------------------------------------------------------------------- */

TestSuite(live, .fini = live_tear_down);

static enum vp_track_rung best_rung(void)
{
	if (live_have(VP_FEAT_FENTRY))
		return VP_TRACK_FENTRY;
	return live_have(VP_FEAT_KPROBE) ? VP_TRACK_KPROBE : VP_TRACK_SIDEBAND;
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
	cr_assert(zero(int, vp_shared_maps_create(&live_env.maps, 4096, 16, &e)));
	cr_expect(lt(int, vp_live_open(&live_env.live, &o, &live_env.maps, &unit, &e), 0));
	cr_expect(strstr(e.text, "--track=fentry: ") == e.text, "%s", e.text);
}

/* xor %ebp, %ebp; jmp to itself: a stack of one frame */
static const unsigned char spin_code[] = {0x31, 0xed, 0xeb, 0xfe};

static void spin_in_a_mapped_page(void *arg)
{
	int fd = live_new_file("spin", 1);
	void (*spin)(void);

	(void)arg;
	target_check(pwrite(fd, spin_code, sizeof(spin_code), 0) == sizeof(spin_code));
	target_await();
	spin = (void (*)(void))live_map_exec(fd, 1, 0, MAP_PRIVATE);
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

	if (!live_have(VP_FEAT_MM_LOCK_SEQ))
		cr_skip_test("this kernel does not count changes of mappings");
	if (!live_have(VP_FEAT_IRQ_FIND_VMA))
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
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_TREE_OK)));
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
