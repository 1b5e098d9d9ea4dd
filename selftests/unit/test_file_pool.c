/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Jobs that stay until the test lets them go: what waits behind what can be told from outside. */
#include "model/file_pool.h"
#include "target.h"
#include "util/clock.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS	   20000
#define FAR_NS	   20000000000ULL
#define THREAD_CNT 4
#define LARGE_ID   1000 /* files from here on are large */
#define HELD_ID	   100	/* files from here on stay until `hold` ends; those below do not */
#define LOG_MAX	   256

static struct {
	pthread_mutex_t lock;
	pthread_cond_t let_go;
	bool hold;
	uint32_t let_go_id; /* this one may end although `hold` */
	uint32_t log[LOG_MAX];
	size_t begun, ended;
	size_t running, max_running;
	size_t symbols_running, max_symbols_running;
	char name[64]; /* of the last one */
	bool bad_mask;
	atomic_uint tidied;
} jobs = {.lock = PTHREAD_MUTEX_INITIALIZER, .let_go = PTHREAD_COND_INITIALIZER, .hold = true};

static struct vp_file_pool *pool;

static bool may_end(uint32_t file_id)
{
	return !jobs.hold || file_id < HELD_ID || file_id == jobs.let_go_id;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static void run(uint32_t file_id, const struct vp_mapped_file *f, bool symbols)
{
	sigset_t mask;

	pthread_mutex_lock(&jobs.lock);
	jobs.log[jobs.begun++ % LOG_MAX] = file_id;
	jobs.max_running = larger(jobs.max_running, ++jobs.running);
	jobs.symbols_running += symbols;
	jobs.max_symbols_running = larger(jobs.max_symbols_running, jobs.symbols_running);
	snprintf(jobs.name, sizeof(jobs.name), "%s", f->name);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	jobs.bad_mask |= !sigismember(&mask, SIGINT) || !sigismember(&mask, SIGCHLD);
	while (!may_end(file_id))
		pthread_cond_wait(&jobs.let_go, &jobs.lock);
	jobs.ended++;
	jobs.running--;
	jobs.symbols_running -= symbols;
	pthread_mutex_unlock(&jobs.lock);
}

static void run_rows(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	(void)ctx;
	run(file_id, f, false);
}

static void run_symbols(void *ctx, uint32_t file_id, const struct vp_mapped_file *f, int fd)
{
	(void)ctx;
	if (fd >= 0)
		close(fd);
	run(file_id, f, true);
}

static uint64_t size_of(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	(void)ctx;
	(void)f;
	return file_id < LARGE_ID ? VP_FILE_LARGE_BYTES : VP_FILE_LARGE_BYTES + 1;
}

static void tidy(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	atomic_fetch_add(&jobs.tidied, 1);
}

static void let_go(uint32_t file_id)
{
	pthread_mutex_lock(&jobs.lock);
	if (file_id)
		jobs.let_go_id = file_id;
	else
		jobs.hold = false;
	pthread_cond_broadcast(&jobs.let_go);
	pthread_mutex_unlock(&jobs.lock);
}

static void open_pool(uint64_t tidy_ns)
{
	const struct vp_file_work work = {
		.symbols = run_symbols,
		.rows = run_rows,
		.size = size_of,
		.tidy = tidy_ns ? tidy : NULL,
		.tidy_ns = tidy_ns,
	};
	struct vp_err e = {""};

	cr_assert(zero(int, vp_file_pool_start_work(&pool, &work, THREAD_CNT, &e)), "%s", e.text);
}

static void set_up(void)
{
	open_pool(0);
}

static void tear_down(void)
{
	let_go(0);
	vp_file_pool_stop(pool);
}

TestSuite(file_pool, .init = set_up, .fini = tear_down, .timeout = 60);

static void ask(enum vp_file_job job, uint32_t file_id)
{
	const struct vp_mapped_file f = {.name = "/some/file"};

	cr_assert(zero(int, vp_file_pool_request(pool, job, file_id, &f)));
}

static size_t value_of(const size_t *value)
{
	size_t v;

	pthread_mutex_lock(&jobs.lock);
	v = *value;
	pthread_mutex_unlock(&jobs.lock);
	return v;
}

struct wanted {
	const size_t *value;
	size_t least;
};

static bool is_reached(void *arg)
{
	const struct wanted *w = arg;

	return value_of(w->value) >= w->least;
}

static void expect_reached(const size_t *value, size_t least)
{
	struct wanted w = {value, least};

	cr_assert(wait_until(is_reached, &w, WAIT_MS), "%zu, not %zu", value_of(value), least);
}

/* ---- what JITs tell ---- */

static struct {
	atomic_uint cnt;
	struct vp_proc_id life;
	char name[64]; /* "none" without a dump */
} jit;

static void note_jit(void *ctx, const struct vp_proc_id *life, const struct vp_mapped_file *dump)
{
	(void)ctx;
	jit.life = *life;
	snprintf(jit.name, sizeof(jit.name), "%s", dump ? dump->name : "none");
	atomic_fetch_add(&jit.cnt, 1);
}

/* ---- files are opened before their symbols are read ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t let_go;
	bool hold;
	size_t cnt, stuck_cnt;
} opens = {.lock = PTHREAD_MUTEX_INITIALIZER, .let_go = PTHREAD_COND_INITIALIZER, .hold = true};

/* "/stuck": of a file system that does not answer. */
static int open_null(void *ctx, const struct vp_mapped_file *f)
{
	(void)ctx;
	pthread_mutex_lock(&opens.lock);
	if (!strcmp(f->name, "/stuck")) {
		opens.stuck_cnt++;
		while (opens.hold)
			pthread_cond_wait(&opens.let_go, &opens.lock);
	}
	opens.cnt++;
	pthread_mutex_unlock(&opens.lock);
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool are_opened(void *arg)
{
	size_t cnt;

	pthread_mutex_lock(&opens.lock);
	cnt = opens.cnt + (opens.hold ? opens.stuck_cnt : 0);
	pthread_mutex_unlock(&opens.lock);
	return cnt >= *(size_t *)arg;
}

static void expect_opened(size_t cnt)
{
	cr_assert(wait_until(are_opened, &cnt, WAIT_MS), "%zu of %zu", opens.cnt, cnt);
}

static void start_opening_pool(void)
{
	const struct vp_file_work work = {
		.open = open_null, .symbols = run_symbols, .rows = run_rows, .size = size_of};
	struct vp_err e = {""};

	vp_file_pool_stop(pool);
	cr_assert(zero(int, vp_file_pool_start_work(&pool, &work, THREAD_CNT, &e)));
}

Test(file_pool, a_file_is_opened_however_much_there_is_to_be_read)
{
	start_opening_pool();
	for (uint32_t i = 0; i < 10; i++) {
		ask(VP_FILE_ROWS, HELD_ID + i);
		ask(VP_FILE_ROWS, LARGE_ID + i);
	}
	expect_reached(&jobs.running, THREAD_CNT);
	for (uint32_t i = 0; i < 20; i++)
		ask(VP_FILE_SYMBOLS, HELD_ID + 50 + i);
	expect_opened(20);
	cr_expect(eq(sz, value_of(&jobs.max_running), THREAD_CNT));
	cr_expect(zero(sz, value_of(&jobs.max_symbols_running)));
	let_go(0);
	cr_expect(zero(sz, vp_file_pool_wait(pool)));
	cr_expect(eq(sz, jobs.ended, 40));
}

Test(file_pool, so_many_open_files_wait_to_be_read)
{
	start_opening_pool();
	for (uint32_t i = 0; i < 400; i++)
		ask(VP_FILE_SYMBOLS, HELD_ID + i);
	expect_opened(256);
	expect_reached(&jobs.running, THREAD_CNT - 2);
	cr_expect(eq(sz, opens.cnt, 256));
	let_go(0);
	cr_expect(zero(sz, vp_file_pool_wait(pool)));
	cr_expect(eq(sz, opens.cnt, 400));
	cr_expect(eq(sz, jobs.ended, 400));
}

Test(file_pool, files_that_cannot_be_opened_take_no_thread_from_rows)
{
	const struct vp_mapped_file stuck = {.name = "/stuck"};

	start_opening_pool();
	ask(VP_FILE_SYMBOLS, 1);
	expect_reached(&jobs.ended, 1);
	for (uint32_t i = 2; i < 20; i++)
		cr_assert(zero(int, vp_file_pool_request(pool, VP_FILE_SYMBOLS, i, &stuck)));
	expect_opened(5); /* one is */
	for (uint32_t i = 0; i < 10; i++)
		ask(VP_FILE_ROWS, HELD_ID + i);
	expect_reached(&jobs.running, THREAD_CNT);
	pthread_mutex_lock(&opens.lock);
	opens.hold = false;
	pthread_cond_broadcast(&opens.let_go);
	pthread_mutex_unlock(&opens.lock);
	let_go(0);
	cr_expect(zero(sz, vp_file_pool_wait(pool)));
	cr_expect(eq(sz, jobs.ended, 29));
}

static bool is_jit_read(void *arg)
{
	return atomic_load(&jit.cnt) >= *(unsigned int *)arg;
}

Test(file_pool, what_jits_tell_waits_for_no_other_file)
{
	const struct vp_file_work work = {
		.symbols = run_symbols, .rows = run_rows, .size = size_of, .jit = note_jit};
	const struct vp_mapped_file dump = {.name = "/tmp/jit-1.dump"};
	const struct vp_proc_id life = {.start_ns = 1, .tgid = 2, .exec_id = 3};
	unsigned int cnt = 1;
	struct vp_err e = {""};

	vp_file_pool_stop(pool);
	cr_assert(zero(int, vp_file_pool_start_work(&pool, &work, THREAD_CNT, &e)));
	for (uint32_t i = 0; i < 10; i++) {
		ask(VP_FILE_SYMBOLS, HELD_ID + i);
		ask(VP_FILE_ROWS, LARGE_ID + i);
	}
	expect_reached(&jobs.running, THREAD_CNT - 1);
	cr_assert(zero(int, vp_file_pool_request_jit(pool, &life, NULL)));
	cr_assert(wait_until(is_jit_read, &cnt, WAIT_MS));
	cr_expect(eq(str, jit.name, "none"));
	cr_expect(zero(int, memcmp(&jit.life, &life, sizeof(life))));
	cnt = 2;
	cr_assert(zero(int, vp_file_pool_request_jit(pool, &life, &dump)));
	cr_assert(wait_until(is_jit_read, &cnt, WAIT_MS));
	cr_expect(eq(str, jit.name, "/tmp/jit-1.dump"));
	/* and they take no thread from the others */
	cr_expect(eq(sz, value_of(&jobs.max_running), THREAD_CNT - 1));
}

Test(file_pool, nobody_asks_what_jits_tell)
{
	const struct vp_proc_id life = {.tgid = 2};

	cr_assert(zero(int, vp_file_pool_request_jit(pool, &life, NULL)));
	cr_expect(zero(sz, vp_file_pool_wait(pool)));
}

/* All threads but one stay with a small file each; that one goes on alone. */
static void leave_one_thread(void)
{
	for (uint32_t i = 0; i < THREAD_CNT - 1; i++)
		ask(VP_FILE_ROWS, HELD_ID + i);
	expect_reached(&jobs.begun, THREAD_CNT - 1);
}

Test(file_pool, rows_that_samples_wait_for_come_first_and_symbols_last)
{
	static const uint32_t expected[] = {7, 8, LARGE_ID + 1, 5, 6, LARGE_ID, 3, 4};

	leave_one_thread();
	ask(VP_FILE_ROWS, HELD_ID + 50);
	expect_reached(&jobs.begun, THREAD_CNT);
	ask(VP_FILE_SYMBOLS, 3);
	ask(VP_FILE_ROWS_AHEAD, LARGE_ID);
	ask(VP_FILE_ROWS_AHEAD, 5);
	ask(VP_FILE_ROWS, LARGE_ID + 1);
	ask(VP_FILE_ROWS, 7);
	ask(VP_FILE_SYMBOLS, 4);
	ask(VP_FILE_ROWS_AHEAD, 6);
	ask(VP_FILE_ROWS, 8);

	pthread_mutex_lock(&jobs.lock);
	jobs.begun = 0;
	pthread_mutex_unlock(&jobs.lock);
	let_go(HELD_ID + 50);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		expect_reached(&jobs.begun, i + 1);
		cr_expect(eq(u32, jobs.log[i], expected[i]), "as number %zu", i);
		let_go(expected[i]);
	}
}

Test(file_pool, a_small_file_never_waits_behind_large_ones)
{
	for (uint32_t i = 0; i < 10; i++)
		ask(VP_FILE_ROWS, LARGE_ID + i);
	expect_reached(&jobs.running, THREAD_CNT - 1);
	for (uint32_t i = 1; i <= 20; i++) {
		ask(VP_FILE_ROWS, i);
		ask(VP_FILE_ROWS_AHEAD, i + 20);
	}
	expect_reached(&jobs.ended, 40);
	cr_expect(eq(sz, value_of(&jobs.running), THREAD_CNT - 1));
	let_go(0);
	cr_expect(zero(sz, vp_file_pool_wait_rows(pool, vp_now_ns() + FAR_NS)));
	cr_expect(eq(sz, jobs.ended, 50));
}

Test(file_pool, a_large_file_never_waits_behind_symbols)
{
	for (uint32_t i = 0; i < 10; i++)
		ask(VP_FILE_SYMBOLS, HELD_ID + i);
	expect_reached(&jobs.running, THREAD_CNT - 2);
	ask(VP_FILE_ROWS, LARGE_ID);
	expect_reached(&jobs.running, THREAD_CNT - 1);
	ask(VP_FILE_ROWS, 1);
	expect_reached(&jobs.ended, 1);
	let_go(0);
	vp_file_pool_wait(pool);
	cr_expect(eq(sz, jobs.ended, 12));
	cr_expect(eq(sz, jobs.max_symbols_running, THREAD_CNT - 2));
}

Test(file_pool, a_large_file_never_waits_behind_those_that_may_be_needed)
{
	for (uint32_t i = 1; i < 10; i++)
		ask(VP_FILE_ROWS_AHEAD, LARGE_ID + i);
	expect_reached(&jobs.running, THREAD_CNT - 2);
	ask(VP_FILE_ROWS, LARGE_ID);
	expect_reached(&jobs.running, THREAD_CNT - 1);
	cr_expect(eq(u32, jobs.log[THREAD_CNT - 2], LARGE_ID));
}

Test(file_pool, all_threads_share_what_is_asked_for_at_once)
{
	for (uint32_t i = 0; i < 100; i++)
		ask(VP_FILE_ROWS_AHEAD, HELD_ID + i);
	expect_reached(&jobs.running, THREAD_CNT);
	let_go(0);
	vp_file_pool_wait(pool);
	cr_expect(eq(sz, jobs.ended, 100));
	cr_expect(eq(sz, jobs.max_running, THREAD_CNT));
}

Test(file_pool, who_waits_for_rows_does_so_until_the_deadline)
{
	cr_expect(zero(sz, vp_file_pool_wait_rows(pool, 0)));
	ask(VP_FILE_SYMBOLS, HELD_ID);
	cr_expect(zero(sz, vp_file_pool_wait_rows(pool, vp_now_ns() + FAR_NS)));
	for (uint32_t i = 1; i <= 10; i++)
		ask(i % 2 ? VP_FILE_ROWS : VP_FILE_ROWS_AHEAD, HELD_ID + i);
	cr_expect(eq(sz, vp_file_pool_wait_rows(pool, vp_now_ns()), 10));
	cr_expect(eq(sz, vp_file_pool_wait_rows(pool, 0), 10));
	let_go(HELD_ID + 1);
	expect_reached(&jobs.ended, 1);
	ask(VP_FILE_ROWS, LARGE_ID);
	let_go(0);
	cr_expect(zero(sz, vp_file_pool_wait_rows(pool, vp_now_ns() + FAR_NS)));
	vp_file_pool_wait(pool);
	cr_expect(eq(sz, jobs.ended, 12));
}

Test(file_pool, when_rows_end_those_not_begun_are_forgotten)
{
	leave_one_thread();
	ask(VP_FILE_ROWS, LARGE_ID);
	expect_reached(&jobs.begun, THREAD_CNT);
	for (uint32_t i = 1; i <= 10; i++) {
		ask(VP_FILE_ROWS, i);
		ask(VP_FILE_ROWS, LARGE_ID + i);
		ask(VP_FILE_ROWS_AHEAD, 10 + i);
	}
	ask(VP_FILE_SYMBOLS, 50);
	vp_file_pool_end_rows(pool);
	ask(VP_FILE_ROWS, 60);
	ask(VP_FILE_SYMBOLS, 61);
	let_go(0);
	vp_file_pool_wait(pool);
	cr_expect(eq(sz, jobs.ended, THREAD_CNT + 2));
}

static void *stop_pool(void *arg)
{
	vp_file_pool_stop(pool);
	return arg;
}

/* What is still asked for is freed: LeakSanitizer sees to that. */
Test(file_pool, may_be_stopped_with_jobs_in_every_queue)
{
	pthread_t th;

	for (uint32_t i = 0; i < 30; i++) {
		ask(VP_FILE_ROWS, HELD_ID + i);
		ask(VP_FILE_ROWS, LARGE_ID + i);
		ask(VP_FILE_ROWS_AHEAD, HELD_ID + i);
		ask(VP_FILE_ROWS_AHEAD, LARGE_ID + i);
		ask(VP_FILE_SYMBOLS, HELD_ID + i);
	}
	expect_reached(&jobs.running, THREAD_CNT);
	cr_assert(zero(int, pthread_create(&th, NULL, stop_pool, NULL)));
	let_go(0);
	pthread_join(th, NULL);
	pool = NULL;
	cr_expect(zero(sz, jobs.running));
	cr_expect(ge(sz, jobs.ended, THREAD_CNT));
}

Test(file_pool, requests_keep_the_name)
{
	char name[] = "/the/name";
	const struct vp_mapped_file f = {.name = name};

	leave_one_thread();
	ask(VP_FILE_ROWS, HELD_ID + 50);
	expect_reached(&jobs.begun, THREAD_CNT);
	cr_assert(zero(int, vp_file_pool_request(pool, VP_FILE_SYMBOLS, 1, &f)));
	memset(name, 'x', sizeof(name) - 1);
	let_go(0);
	vp_file_pool_wait(pool);
	cr_expect(eq(str, jobs.name, "/the/name"));
}

Test(file_pool, its_threads_take_no_signals)
{
	ask(VP_FILE_SYMBOLS, 1);
	ask(VP_FILE_ROWS, 2);
	vp_file_pool_wait(pool);
	cr_expect(not(jobs.bad_mask));
}

static bool is_tidied(void *arg)
{
	return atomic_load(&jobs.tidied) >= *(unsigned int *)arg;
}

Test(file_pool, tidies_again_and_again_whatever_else_there_is_to_do)
{
	unsigned int goal = 3;

	vp_file_pool_stop(pool);
	open_pool(1000000);
	cr_expect(wait_until(is_tidied, &goal, WAIT_MS));
	for (uint32_t i = 0; i < 10; i++) {
		ask(VP_FILE_ROWS, LARGE_ID + i);
		ask(VP_FILE_SYMBOLS, HELD_ID + i);
	}
	expect_reached(&jobs.running, THREAD_CNT - 1);
	goal = atomic_load(&jobs.tidied) + 3;
	cr_expect(wait_until(is_tidied, &goal, WAIT_MS));
	/* no more once rows have ended, but by those that are at it */
	vp_file_pool_end_rows(pool);
	goal = atomic_load(&jobs.tidied) + THREAD_CNT;
	let_go(0);
	vp_file_pool_wait(pool);
	vp_file_pool_stop(pool);
	pool = NULL;
	cr_expect(le(u32, atomic_load(&jobs.tidied), goal));
}

/* --call-graph fp */
Test(file_pool, does_without_a_store_of_rows)
{
	const char *path = "/proc/self/exe";
	struct vp_mapped_file f = {.tgid = (uint32_t)getpid(), .name = path};
	struct vp_file_info info;
	struct vp_symbolizer *s;
	struct vp_err e = {""};

	vp_file_pool_stop(pool);
	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
	cr_assert(zero(int, vp_file_pool_start(&pool, s, NULL, NULL, &e)), "%s", e.text);
	ask(VP_FILE_ROWS, 1);
	ask(VP_FILE_ROWS_AHEAD, 2);
	cr_expect(zero(sz, vp_file_pool_wait_rows(pool, 0)));
	cr_assert(zero(int, vp_file_pool_request(pool, VP_FILE_SYMBOLS, 3, &f)));
	vp_file_pool_wait(pool);
	cr_expect(zero(int, vp_symbolizer_file_info(s, 3, &info)));
	vp_file_pool_end_rows(pool);
	vp_file_pool_stop(pool);
	pool = NULL;
	vp_symbolizer_free(s);
}
