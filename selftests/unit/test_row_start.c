/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "made_records.h"
#include "model/row_start.h"
#include "util/clock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct vp_recording r;
static struct made m;

static void set_up(void)
{
	r.max_stack_bytes = UINT64_MAX;
	made_init(&m, &vp_recording_ops, &r);
}

static void tear_down(void)
{
	vp_file_pool_stop(r.pool);
	vp_recording_free(&r);
}

TestSuite(row_start, .init = set_up, .fini = tear_down);

/* The next process, with mappings of the files listed up to a 0. */
static void add_process(const uint32_t *files)
{
	m.proc.tgid++;
	for (uint64_t at = 0x1000; *files; files++, at += 0x3000) {
		cr_assert(zero(
			int, made_map(&m, at, at + 0x1000, 0, *files, VP_VERDICT_FILE, "/lib/x")));
		cr_assert(zero(int, made_map(&m, at + 0x2000, at + 0x3000, 0x5000, *files,
					     VP_VERDICT_FILE, "/lib/x")));
	}
}

static void expect_ranks(const uint64_t *ticks, const uint32_t *files, const uint64_t *file_ticks,
			 size_t n)
{
	struct vp_ranked_file *ranked;
	size_t cnt;

	cr_assert(zero(int, vp_row_start_rank(&r, ticks, &ranked, &cnt)));
	cr_assert(eq(sz, cnt, n));
	for (size_t i = 0; i < n; i++) {
		cr_expect(eq(u32, ranked[i].file_id, files[i]), "rank %zu", i);
		cr_expect(eq(u64, ranked[i].cpu_ticks, file_ticks[i]), "rank %zu", i);
	}
	free(ranked);
}

Test(row_start, files_of_busy_processes_come_first_and_those_that_never_ran_last)
{
	static const uint64_t ticks[] = {0, 500, 70, 300};
	static const uint32_t files[] = {3, 6, 1, 2, 5, 4};
	static const uint64_t file_ticks[] = {800, 570, 500, 500, 300, 0};

	add_process((uint32_t[]){3, 4, 6, 0});
	add_process((uint32_t[]){2, 3, 1, 6, 0});
	add_process((uint32_t[]){6, 0});
	add_process((uint32_t[]){5, 3, 0});
	expect_ranks(ticks, files, file_ticks, 6);
}

Test(row_start, a_file_is_opened_through_the_busiest_process_that_maps_it)
{
	static const uint64_t ticks[] = {10, 30, 20};
	struct vp_ranked_file *ranked;
	size_t cnt;

	add_process((uint32_t[]){1, 0});
	add_process((uint32_t[]){2, 1, 0});
	add_process((uint32_t[]){1, 0});
	cr_assert(zero(int, vp_row_start_rank(&r, ticks, &ranked, &cnt)));
	cr_assert(eq(sz, cnt, 2));
	cr_expect(eq(u32, ranked[0].file_id, 1));
	cr_expect(eq(u64, ranked[0].cpu_ticks, 60));
	cr_expect(eq(u32, ranked[0].proc, 1));
	cr_expect(eq(u64, ranked[0].x->start, 0x4000));
	cr_expect(eq(u32, ranked[1].proc, 1));
	free(ranked);
}

Test(row_start, what_is_no_file_has_no_rank)
{
	static const uint64_t ticks[] = {10};

	m.proc.tgid++;
	cr_assert(zero(int, made_map(&m, 0x1000, 0x2000, 0, 0, VP_VERDICT_VDSO, "[vdso]")));
	cr_assert(zero(int, made_map(&m, 0x3000, 0x4000, 0, 0, VP_VERDICT_ANON_EXEC, "//anon")));
	cr_assert(zero(int, made_map(&m, 0x5000, 0x6000, 0, UINT32_MAX, VP_VERDICT_FILE, "/x")));
	cr_assert(zero(int, made_map(&m, 0x7000, 0x8000, 0, 3, VP_VERDICT_FILE, "/jit-7.dump")));
	expect_ranks(ticks, NULL, NULL, 0);
}

Test(row_start, of_nothing_there_is_nothing)
{
	expect_ranks((uint64_t[]){0}, NULL, NULL, 0);
}

/* ---- with a pool ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t let_go;
	bool hold;
	size_t asked[4];
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER, .let_go = PTHREAD_COND_INITIALIZER, .hold = true};

static void run_rows(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	(void)ctx;
	(void)f;
	pthread_mutex_lock(&jobs.lock);
	jobs.asked[file_id % 4]++;
	while (jobs.hold)
		pthread_cond_wait(&jobs.let_go, &jobs.lock);
	pthread_mutex_unlock(&jobs.lock);
}

static uint64_t size_of(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	(void)ctx;
	(void)file_id;
	(void)f;
	return 1;
}

static void let_go(void)
{
	pthread_mutex_lock(&jobs.lock);
	jobs.hold = false;
	pthread_cond_broadcast(&jobs.let_go);
	pthread_mutex_unlock(&jobs.lock);
}

static void open_pool(void)
{
	const struct vp_file_work work = {.rows = run_rows, .size = size_of};
	struct vp_err e = {""};

	cr_assert(zero(int, vp_file_pool_start_work(&r.pool, &work, 0, &e)), "%s", e.text);
	m.ts_ns = vp_now_ns();
}

Test(row_start, says_what_is_left_when_the_budget_is_used_up)
{
	struct vp_row_start start;

	add_process((uint32_t[]){1, 2, 3, 0});
	open_pool();
	cr_assert(zero(int, vp_row_start(&r, 1, &start)));
	cr_expect(eq(sz, start.file_cnt, 3));
	cr_expect(eq(sz, start.left_cnt, 3));
	cr_expect(gt(u64, start.took_ns, 0));
	let_go();
	vp_file_pool_wait(r.pool);
	for (int i = 0; i <= 3; i++)
		cr_expect(eq(sz, jobs.asked[i], 1));
}

Test(row_start, waits_until_all_are_done)
{
	struct vp_row_start start;

	add_process((uint32_t[]){1, 2, 3, 0});
	open_pool();
	let_go();
	cr_assert(zero(int, vp_row_start(&r, 8000000000ULL, &start)));
	cr_expect(eq(sz, start.file_cnt, 3));
	cr_expect(zero(sz, start.left_cnt));
	for (int i = 0; i <= 3; i++)
		cr_expect(eq(sz, jobs.asked[i], 1));
}
