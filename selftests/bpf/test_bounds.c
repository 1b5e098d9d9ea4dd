/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes with too many mappings, and too many processes: what is said of a frame is right, or
 * that it could not be said; nothing gets stuck, and what was taken is given back.
 */
#include "expect.h"
#include "recorder.h"
#include "spinner.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/pidns.h"

#define FOLLOW	  (VP_TARGET_F_ARMED | VP_TARGET_F_INHERIT)
#define BOUNDS_HZ 3999

static struct recorder r = {.call_graph = VP_CALL_GRAPH_FP, .freq_hz = BOUNDS_HZ};
static unsigned int old_map_count; /* 0: it is as it was */

#define MAP_COUNT "/proc/sys/vm/max_map_count"

static unsigned int read_map_count(void)
{
	FILE *f = fopen(MAP_COUNT, "re");
	unsigned int n = 0;

	cr_assert(f && fscanf(f, "%u", &n) == 1);
	fclose(f);
	return n;
}

static void write_map_count(unsigned int n)
{
	FILE *f = fopen(MAP_COUNT, "we");

	cr_assert(f != NULL);
	fprintf(f, "%u\n", n);
	cr_assert(zero(int, fclose(f)));
}

static void set_inline(void)
{
	r.mode = VP_UNWIND_INLINE;
}

static void set_deferred(void)
{
	recorder_defer(&r);
}

static void tear_down(void)
{
	if (old_map_count)
		write_map_count(old_map_count);
	recorder_close(&r);
}

TestSuite(bounds, .init = set_inline, .fini = tear_down, .timeout = 90);
TestSuite(bounds_deferred, .init = set_deferred, .fini = tear_down, .timeout = 90);

/* ---- pages of code, each a mapping of its own ------------------------------------------------ */

/* The n-th of cnt pages is page n * 37 % file_pages of a file, so no two of them merge. */
static struct layout {
	size_t cnt;	   /* pages */
	size_t file_pages; /* prime to 37 */
	size_t every;	   /* of which only each that many-th is run */
	bool half_anon;	   /* those of odd number are anonymous */
	long spins;
} layout;

#define CHAIN 24

static bool is_anon(size_t i)
{
	return layout.half_anon && i % 2;
}

static size_t file_page(size_t i)
{
	return i * 37 % layout.file_pages;
}

/* The pages that are run have the numbers of runner 0, 1, …: both kinds of them. */
static size_t page_of(size_t runner)
{
	return runner * layout.every % layout.cnt + (layout.half_anon ? runner % 2 : 0);
}

static char *map_pages(void)
{
	int fd = code_file(layout.file_pages, chain_code, sizeof(chain_code));
	char *base = mmap(NULL, layout.cnt * PAGE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	target_check(base != MAP_FAILED);
	for (size_t i = 0; i < layout.cnt; i++) {
		int prot = PROT_READ | PROT_EXEC | (is_anon(i) ? PROT_WRITE : 0);
		int flags = MAP_PRIVATE | MAP_FIXED | (is_anon(i) ? MAP_ANONYMOUS : 0);

		target_check(mmap(base + i * PAGE, PAGE, prot, flags, is_anon(i) ? -1 : fd,
				  is_anon(i) ? 0 : (off_t)(file_page(i) * PAGE)) != MAP_FAILED);
	}
	for (size_t n = 0; n * layout.every < layout.cnt; n++) {
		if (is_anon(page_of(n)))
			memcpy(base + page_of(n) * PAGE, chain_code, sizeof(chain_code));
	}
	return base;
}

/* The innermost link: most samples have the whole chain. */
__attribute__((noipa)) static void spin_link(void **list, long spins)
{
	KEEP_FRAME();
	(void)list;
	for (volatile long i = 0; i < spins * 8; i++)
		;
}

static void run_chain(char *base, size_t first)
{
	void *list[CHAIN + 2] = {NULL};

	for (size_t i = 0; i < CHAIN; i++)
		list[i] = base + page_of(first + i) * PAGE;
	list[CHAIN] = (void *)spin_link;
	((link_fn *)list[0])(list + 1, layout.spins);
	NOT_THE_END();
}

/*
 * It says so when it has run each page that often: where code takes long, that is not over when there
 * are enough samples. A multiple of what makes whole chains of the pages of each layout.
 */
#define ROUNDS (CHAIN / 2)

static void run_pages(void *arg)
{
	char *base = map_pages();

	(void)arg;
	target_tell((uint64_t)base);
	for (size_t first = 0;; first += CHAIN) {
		if (first == ROUNDS * (layout.cnt / layout.every))
			target_tell(0);
		run_chain(base, first);
	}
}

struct found {
	size_t right, wrong, busy, distinct;
	uint8_t *seen;
	char text[256];
};

static bool is_right(const struct vp_frame *f, uint64_t base, size_t i)
{
	if (is_anon(i))
		return f->verdict == VP_VERDICT_ANON_EXEC && !f->offset && !f->file_id;
	return f->verdict == VP_VERDICT_FILE &&
	       f->offset == file_page(i) * PAGE + f->pc - (base + i * PAGE);
}

static void look_at_frame(const struct vp_frame *f, uint64_t base, struct found *found)
{
	uint64_t at = log_frame_at(f);
	size_t i = (at - base) / PAGE;

	if (at < base || i >= layout.cnt)
		return;
	if (f->verdict == VP_VERDICT_BUSY) {
		found->busy++;
	} else if (is_right(f, base, i)) {
		found->right++;
		found->distinct += !found->seen[i];
		found->seen[i] = 1;
	} else if (!found->wrong++) {
		snprintf(found->text, sizeof(found->text),
			 "page %zu: verdict %u offset %" PRIx64 " file %u flags %x", i, f->verdict,
			 (uint64_t)f->offset, f->file_id, f->flags);
	}
}

static void look_at_all(uint64_t base, struct found *found)
{
	*found = (struct found){.seen = calloc(layout.cnt, 1)};
	cr_assert(found->seen != NULL);
	for (size_t i = 0; i < r.log.cnt; i++) {
		const struct log_item *it = &r.log.item[i];

		if (it->hdr.kind != VP_REC_SAMPLE)
			continue;
		for (size_t j = 0; j < it->sample.user_cnt; j++)
			look_at_frame(&it->user[j], base, found);
	}
	free(found->seen);
	fprintf(stderr,
		"bounds: %zu right, %zu wrong, %zu busy, %zu distinct; full %" PRIu64 ", %" PRIu64
		" questions, %zu reports\n",
		found->right, found->wrong, found->busy, found->distinct,
		recorder_counter(&r, VP_CNT_XMAP_FULL), recorder_counter(&r, VP_CNT_FIND_OK),
		record_log_count(&r.log, VP_REC_MMAP2));
}

/* What is said is right; what is not said is counted; that is little, and nothing in a task. */
static void expect_right_or_counted(const struct found *found, size_t right)
{
	cr_expect(zero(sz, found->wrong), "%s", found->text);
	cr_expect(ge(sz, found->right, right));
	cr_expect(le(u64, found->busy, recorder_counter(&r, VP_CNT_FRAMES_UNRESOLVED)));
	cr_expect(le(sz, found->busy * 100, found->right));
	if (r.mode == VP_UNWIND_DEFERRED)
		cr_expect(zero(sz, found->busy));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_LOST_SAMPLE)));
}

static void record_pages(const struct layout *l, size_t samples, struct found *found)
{
	struct target t;
	uint64_t base;

	layout = *l;
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, run_pages, NULL);
	base = target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	/* those of an emulated machine, which stands still at times, come in clusters and hit less */
	recorder_wait(&r, test_patience() > 1 ? 3 * samples : samples);
	target_hear(&t);
	recorder_stop(&r);
	look_at_all(base, found);
	expect_right_or_counted(found, samples * CHAIN / 2);
	expect_all_announced(&r, samples * CHAIN / 4);
	target_end(&t);
}

static void all_of_5000_files_in_one_process_are_told_apart(void)
{
	const struct layout l = {.cnt = 5000, .file_pages = 5003, .every = 1, .spins = 2000};
	struct found found;

	record_pages(&l, 4000, &found);
	/* as many as are hit by that many samples */
	cr_expect(ge(sz, found.distinct, l.cnt - l.cnt / 50));
}

static void sixty_thousand_pages_of_code_are_told_apart(void)
{
	const struct layout l = {
		.cnt = 60000, .file_pages = 97, .every = 20, .half_anon = true, .spins = 2000};
	struct found found;

	if (read_map_count() < 65000)
		cr_skip_test("vm.max_map_count is too low");
	record_pages(&l, 3000, &found);
	/* of the 3000 that are run */
	cr_expect(ge(sz, found.distinct, 2500));
}

/* ---- much that is no code -------------------------------------------------------------------- */

#define MANY_VMAS 200000

/* Every second page of the region cannot be read: each is a mapping. */
static void run_4_of_200000(void *arg)
{
	char *much = mmap(NULL, MANY_VMAS * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *base = map_pages();

	(void)arg;
	target_check(much != MAP_FAILED);
	for (size_t i = 1; i < MANY_VMAS; i += 2)
		target_check(!mprotect(much + i * PAGE, PAGE, PROT_NONE));
	/* in the middle of it all */
	base = mremap(base, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		      much + MANY_VMAS / 2 * PAGE) == MAP_FAILED
		       ? NULL
		       : base;
	target_check(base != NULL);
	target_tell((uint64_t)base);
	target_tell((uint64_t)much + MANY_VMAS / 2 * PAGE);
	for (;;) {
		void *list[] = {base + PAGE,	   base + 2 * PAGE,
				base + 3 * PAGE,   much + MANY_VMAS / 2 * PAGE,
				(void *)spin_link, NULL};

		((link_fn *)list[0])(list + 1, 2000);
		NOT_THE_END();
	}
}

static void four_that_are_code_among_200000_are_found(void)
{
	struct found found = {0};
	uint64_t base, moved;
	struct target t;

	old_map_count = read_map_count();
	if (old_map_count < MANY_VMAS + 10000)
		write_map_count(MANY_VMAS + 10000);
	layout = (struct layout){.cnt = 4, .file_pages = 4, .every = 1};
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, run_4_of_200000, NULL);
	base = target_hear(&t);
	moved = target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_start(&r, t.pid);
	/* none of those that are no code was reported */
	cr_expect(lt(sz, record_log_count(&r.log, VP_REC_MMAP2), 100));
	recorder_wait(&r, 500);
	recorder_stop(&r);
	look_at_all(base, &found);
	expect_right_or_counted(&found, 1000);
	cr_expect(eq(sz, found.distinct, 3));
	look_at_all(moved, &found);
	expect_right_or_counted(&found, 200);
	expect_all_announced(&r, 1500);
	target_end(&t);
}

/* ---- many processes -------------------------------------------------------------------------- */

/* Tables that there are. */
static size_t count_tables(void)
{
	int fd = recorder_map_fd("procs");
	uint32_t key, next;
	size_t n = 0;

	for (int err = bpf_map_get_next_key(fd, NULL, &next); !err;
	     err = bpf_map_get_next_key(fd, &key, &next)) {
		key = next;
		n++;
	}
	return n;
}

static bool are_no_tables(void *arg)
{
	(void)arg;
	return count_tables() == 0;
}

/* … whose process is gone. */
static size_t count_orphans(void)
{
	int fd = recorder_map_fd("procs");
	uint32_t key, next;
	size_t n = 0;

	for (int err = bpf_map_get_next_key(fd, NULL, &next); !err;
	     err = bpf_map_get_next_key(fd, &key, &next)) {
		key = next;
		n += kill((pid_t)key, 0) && errno == ESRCH;
	}
	return n;
}

static bool are_no_orphans(void *arg)
{
	(void)arg;
	return count_orphans() == 0;
}

static void be_brief(char *base, size_t n)
{
	run_chain(base, n * CHAIN);
	_exit(0);
}

#define AT_ONCE 8
#define FORK_MS 8000 /* where others want the CPUs, fewer have to do */

static void have_many_children(void *arg)
{
	size_t cnt = *(const size_t *)arg;
	uint64_t end_ms = now_ms() + FORK_MS;
	char *base = map_pages();

	target_tell((uint64_t)base);
	target_await();
	for (size_t n = 0; n < cnt && (n < 300 || now_ms() < end_ms); n++) {
		pid_t pid = target_fork();

		target_check(pid >= 0);
		if (!pid)
			be_brief(base, n);
		if (n >= AT_ONCE)
			wait(NULL);
	}
	while (wait(NULL) > 0)
		;
}

static void tables_end_with_their_processes(void)
{
	size_t cnt = 3000;
	struct found found;
	struct target t;
	uint64_t base;

	layout = (struct layout){.cnt = 60, .file_pages = 64, .every = 1, .spins = 500};
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, have_many_children, &cnt);
	base = target_hear(&t);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	cr_expect(zero(int, target_wait(&t)));
	cr_expect(wait_until(are_no_tables, NULL, 5000), "%zu tables are left", count_tables());
	recorder_stop(&r);
	look_at_all(base, &found);
	cr_expect(zero(sz, found.wrong), "%s", found.text);
	cr_expect(ge(sz, found.right, 1000));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_PROC_FULL)));
	expect_all_announced(&r, 1000);
}

/* Samples of a process come to its very end, behind the event that ends its table. */
static void no_table_is_made_for_a_process_that_ends(void)
{
	size_t cnt = 800;
	struct target t;
	uint64_t base;

	if (vp_pidns_inum())
		cr_skip_test("tables are numbered as in another pid namespace");
	layout = (struct layout){.cnt = 60, .file_pages = 64, .every = 1, .spins = 10};
	recorder_open(&r, VP_FILTER_ALL, 0);
	target_start(&t, have_many_children, &cnt);
	base = target_hear(&t);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	cr_expect(zero(int, target_wait(&t)));
	cr_expect(ne(u64, base, 0));
	cr_expect(wait_until(are_no_orphans, NULL, 5000), "%zu tables of %zu are nobody's",
		  count_orphans(), count_tables());
	recorder_stop(&r);
}

static struct target victim;

static bool are_many_reported(void *arg)
{
	size_t cnt;

	(void)arg;
	pthread_mutex_lock(&r.log.lock);
	cnt = r.log.cnt;
	pthread_mutex_unlock(&r.log.lock);
	return cnt > 2000;
}

static void *kill_in_the_middle(void *arg)
{
	if (wait_until(are_many_reported, NULL, 20000))
		target_end(&victim);
	return arg;
}

/* The walk holds the memory, not the process. */
static void a_process_that_is_killed_while_it_is_walked_leaves_nothing(void)
{
	struct found found;
	struct target t;
	pthread_t killer;
	uint64_t base;

	if (read_map_count() < 65000)
		cr_skip_test("vm.max_map_count is too low");
	layout = (struct layout){
		.cnt = 60000, .file_pages = 97, .every = 20, .half_anon = true, .spins = 2000};
	recorder_open(&r, VP_FILTER_TGID, 65536);
	target_start(&victim, run_pages, NULL);
	target_hear(&victim);
	cr_assert(zero(int, pthread_create(&killer, NULL, kill_in_the_middle, NULL)));
	recorder_walk(&r, victim.pid);
	cr_assert(zero(int, pthread_join(killer, NULL)));
	cr_expect(zero(int, victim.pid));
	cr_expect(wait_until(are_no_tables, NULL, 5000), "%zu tables are left", count_tables());

	layout = (struct layout){.cnt = 24, .file_pages = 64, .every = 1, .spins = 1000};
	target_start(&t, run_pages, NULL);
	base = target_hear(&t);
	recorder_add(&r, t.pid, VP_TARGET_F_ARMED);
	recorder_attach(&r);
	recorder_wait(&r, 200);
	recorder_stop(&r);
	look_at_all(base, &found);
	cr_expect(zero(sz, found.wrong), "%s", found.text);
	cr_expect(ge(sz, found.right, 200));
	target_end(&t);
}

#define MORE_THAN_FIT 48

static void have_children_that_stay(void *arg)
{
	char *base = map_pages();

	(void)arg;
	target_tell((uint64_t)base);
	target_await();
	for (int i = 0; i < MORE_THAN_FIT; i++) {
		pid_t pid = target_fork();

		target_check(pid >= 0);
		if (pid)
			continue;
		for (size_t first = 0;; first += CHAIN)
			run_chain(base, first);
	}
	target_pause();
}

/* Without a table every mapping is asked for each time: in an interrupt, one of a stack. */
static void processes_that_find_no_room_are_sampled_all_the_same(void)
{
	size_t of_whom[MORE_THAN_FIT + 1] = {0}, whom = 0;
	struct found found;
	struct target t;
	uint64_t base;

	layout = (struct layout){.cnt = 60, .file_pages = 64, .every = 1, .spins = 1000};
	r.procs_max = 8;
	/* without a table all is reported again and again: room for a reader that is slow */
	recorder_open(&r, VP_FILTER_TGID, 16 << 20);
	target_start(&t, have_children_that_stay, NULL);
	base = target_hear(&t);
	recorder_add(&r, t.pid, FOLLOW);
	recorder_start(&r, t.pid);
	target_say(&t, 0);
	recorder_wait(&r, 3000);
	cr_expect(le(sz, count_tables(), r.procs_max));
	target_end(&t);
	cr_expect(wait_until(are_no_tables, NULL, 5000), "%zu tables are left", count_tables());
	recorder_stop(&r);
	look_at_all(base, &found);
	cr_expect(zero(sz, found.wrong), "%s", found.text);
	cr_expect(ge(sz, found.right, 3000));
	cr_expect(le(u64, found.busy, recorder_counter(&r, VP_CNT_FRAMES_UNRESOLVED)));
	cr_expect(gt(u64, recorder_counter(&r, VP_CNT_PROC_FULL), 0));
	expect_all_announced(&r, 3000);
	for (size_t i = 0, j; i < r.log.cnt; i++) {
		if (r.log.item[i].hdr.kind != VP_REC_SAMPLE)
			continue;
		for (j = 0; j < whom && of_whom[j] != r.log.item[i].sample.proc.tgid; j++)
			;
		if (j == whom && whom < MORE_THAN_FIT)
			of_whom[whom++] = r.log.item[i].sample.proc.tgid;
	}
	cr_expect(gt(sz, whom, r.procs_max));
}

/* ---- in both modes --------------------------------------------------------------------------- */

Test(bounds, all_of_5000_files_in_one_process_are_told_apart)
{
	all_of_5000_files_in_one_process_are_told_apart();
}

Test(bounds_deferred, all_of_5000_files_in_one_process_are_told_apart)
{
	all_of_5000_files_in_one_process_are_told_apart();
}

Test(bounds, sixty_thousand_pages_of_code_are_told_apart)
{
	sixty_thousand_pages_of_code_are_told_apart();
}

Test(bounds_deferred, sixty_thousand_pages_of_code_are_told_apart)
{
	sixty_thousand_pages_of_code_are_told_apart();
}

Test(bounds, four_that_are_code_among_200000_are_found)
{
	four_that_are_code_among_200000_are_found();
}

Test(bounds_deferred, four_that_are_code_among_200000_are_found)
{
	four_that_are_code_among_200000_are_found();
}

Test(bounds, tables_end_with_their_processes)
{
	tables_end_with_their_processes();
}

Test(bounds_deferred, tables_end_with_their_processes)
{
	tables_end_with_their_processes();
}

Test(bounds, no_table_is_made_for_a_process_that_ends)
{
	no_table_is_made_for_a_process_that_ends();
}

Test(bounds_deferred, no_table_is_made_for_a_process_that_ends)
{
	no_table_is_made_for_a_process_that_ends();
}

Test(bounds, a_process_that_is_killed_while_it_is_walked_leaves_nothing)
{
	a_process_that_is_killed_while_it_is_walked_leaves_nothing();
}

Test(bounds, processes_that_find_no_room_are_sampled_all_the_same)
{
	processes_that_find_no_room_are_sampled_all_the_same();
}

Test(bounds_deferred, processes_that_find_no_room_are_sampled_all_the_same)
{
	processes_that_find_no_room_are_sampled_all_the_same();
}
