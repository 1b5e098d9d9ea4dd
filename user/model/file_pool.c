/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "file_pool.h"

#include "../symbolize/mapped_file.h"
#include "../util/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MIN  4
#define THREADS_MAX  16
/* Besides them: */
#define JIT_THREADS  2
#define OPEN_THREADS 4 /* a file system that does not answer takes one for each of its files */
#define ALL_THREADS  (THREADS_MAX + JIT_THREADS + OPEN_THREADS)
/* Opened files that wait for their symbols to be read; the next ones are not opened meanwhile. */
#define HELD_MAX     256
#define TIDY_NS	     1000000000
#define STALLED_NS   10000000000

/* In order of precedence. A request for rows moves to the next lane if its file proves large. */
enum lane {
	LANE_OPEN, /* for LANE_SYMBOLS, where requests go on: files wait, processes end */
	LANE_ROWS,
	LANE_ROWS_LARGE,
	LANE_AHEAD,
	LANE_AHEAD_LARGE,
	LANE_TIDY, /* has no requests, but its time */
	LANE_JIT,  /* before symbols: processes end, open files stay */
	LANE_SYMBOLS,
	LANE_CNT,
};

struct request {
	struct request *next;
	uint32_t file_id;
	struct vp_mapped_file file; /* of LANE_JIT: its name may be "" for none */
	struct vp_proc_id life;	    /* of LANE_JIT */
	int fd;			    /* of LANE_SYMBOLS: the open file, or a negative errno */
	char name[];
};

struct queue {
	struct request *first, **last;
};

struct vp_file_pool {
	struct vp_file_work work;
	struct vp_symbolizer *symbolizer; /* of vp_file_pool_start() */
	struct vp_jit *jit;
	struct vp_row_store *rows;
	unsigned int thread_cnt; /* with the two following */
	unsigned int jit_threads, open_threads;
	pthread_t thread[ALL_THREADS];

	pthread_mutex_t lock;	/* all below */
	pthread_cond_t to_do;	/* there is something that one more thread can do */
	pthread_cond_t is_done; /* no request for rows, or none at all, is left */
	struct queue queue[LANE_CNT];
	size_t rows_left, left; /* requests not done yet: for rows, all */
	unsigned int main_cnt;	/* threads on what neither jit_threads nor open_threads are for */
	unsigned int slow_cnt;	/* … on the rows of large files or on symbols */
	unsigned int late_cnt;	/* … that no sample waits for */
	unsigned int jit_cnt;	/* threads on what JITs tell */
	unsigned int open_cnt;	/* threads on opening files */
	unsigned int held_cnt;	/* files opened or being opened, until their symbols are read */
	uint64_t tidy_at_ns;
	bool time_kept;		    /* a thread without work has an eye on tidy_at_ns */
	uint32_t busy[ALL_THREADS]; /* files whose rows threads are at */
	unsigned int busy_cnt;
	uint64_t done_cnt; /* requests */
	bool rows_ended;
	bool stalled;
	bool stop;
};

/* ---- requests; with the lock held ---- */

static bool is_rows(enum lane lane)
{
	return lane >= LANE_ROWS && lane < LANE_TIDY;
}

static bool is_main(enum lane lane)
{
	return lane != LANE_OPEN && lane != LANE_JIT;
}

static bool is_slow(enum lane lane)
{
	return lane == LANE_ROWS_LARGE || lane == LANE_AHEAD_LARGE || lane == LANE_SYMBOLS;
}

static bool is_late(enum lane lane)
{
	return lane == LANE_AHEAD_LARGE || lane == LANE_SYMBOLS;
}

/* Whether its symbols are of a file that is opened first: not the kernel's. */
static bool is_opened(const struct vp_file_pool *p, uint32_t file_id)
{
	return p->work.open && file_id != VP_FILE_ID_NONE;
}

static void push(struct queue *q, struct request *r)
{
	r->next = NULL;
	*q->last = r;
	q->last = &r->next;
}

static struct request *pop(struct queue *q)
{
	struct request *r = q->first;

	q->first = r->next;
	if (!q->first)
		q->last = &q->first;
	return r;
}

static void free_request(struct request *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

static void done(struct vp_file_pool *p, enum lane lane, size_t cnt)
{
	if (is_rows(lane))
		p->rows_left -= cnt;
	p->left -= cnt;
	p->done_cnt += cnt;
	if (!p->rows_left || !p->left)
		pthread_cond_broadcast(&p->is_done);
}

static void forget(struct vp_file_pool *p, enum lane lane)
{
	size_t cnt = 0;

	for (; p->queue[lane].first; cnt++)
		free_request(pop(&p->queue[lane]));
	done(p, lane, cnt);
}

/* ---- what a thread does next; with the lock held ---- */

/* CLOCK_MONOTONIC, as the conditions have it. */
static struct timespec time_at(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};
}

static bool tidies(const struct vp_file_pool *p)
{
	return p->work.tidy && !p->rows_ended;
}

static bool is_tidy_due(const struct vp_file_pool *p)
{
	return tidies(p) && vp_now_ns() >= p->tidy_at_ns;
}

static bool may_run(const struct vp_file_pool *p, enum lane lane)
{
	const unsigned int thread_cnt = p->thread_cnt - p->jit_threads - p->open_threads;

	if (lane == LANE_OPEN)
		return p->open_cnt < p->open_threads && p->held_cnt < HELD_MAX;
	if (lane == LANE_JIT)
		return p->jit_cnt < p->jit_threads;
	if (p->main_cnt >= thread_cnt)
		return false;
	if (is_slow(lane) && p->slow_cnt >= thread_cnt - 1)
		return false;
	return !is_late(lane) || p->late_cnt < thread_cnt - 2;
}

/* LANE_CNT: nothing. */
static enum lane choose(const struct vp_file_pool *p)
{
	for (enum lane lane = 0; lane < LANE_CNT; lane++) {
		bool any = lane == LANE_TIDY ? is_tidy_due(p) : p->queue[lane].first != NULL;

		if (any && may_run(p, lane))
			return lane;
	}
	return LANE_CNT;
}

static void wait_for_work(struct vp_file_pool *p)
{
	const struct timespec until = time_at(p->tidy_at_ns);

	if (p->time_kept || !tidies(p)) {
		pthread_cond_wait(&p->to_do, &p->lock);
		return;
	}
	p->time_kept = true;
	pthread_cond_timedwait(&p->to_do, &p->lock, &until);
	p->time_kept = false;
}

/*
 * A signal wakes one thread for one request, and that may have to leave it to others; or it has
 * woken the one that kept the time.
 */
static void wake_another(struct vp_file_pool *p)
{
	if (choose(p) != LANE_CNT || (tidies(p) && !p->time_kept))
		pthread_cond_signal(&p->to_do);
}

/* ---- jobs; with the lock held, which they give up meanwhile ---- */

static void tidy(struct vp_file_pool *p)
{
	uint64_t now_ns = vp_now_ns();

	p->tidy_at_ns = now_ns + p->work.tidy_ns;
	pthread_mutex_unlock(&p->lock);
	p->work.tidy(p->work.ctx, now_ns);
	pthread_mutex_lock(&p->lock);
}

/* Whether it is a large one, which is now in the lane of those. */
static bool set_aside(struct vp_file_pool *p, enum lane lane, struct request *r)
{
	uint64_t size;

	pthread_mutex_unlock(&p->lock);
	size = p->work.size(p->work.ctx, r->file_id, &r->file);
	pthread_mutex_lock(&p->lock);
	if (size <= VP_FILE_LARGE_BYTES || p->rows_ended)
		return false;
	push(&p->queue[lane + 1], r);
	return true;
}

static bool is_busy(const struct vp_file_pool *p, uint32_t file_id)
{
	for (unsigned int i = 0; i < p->busy_cnt; i++) {
		if (p->busy[i] == file_id)
			return true;
	}
	return false;
}

static void end_busy(struct vp_file_pool *p, uint32_t file_id)
{
	for (unsigned int i = 0; i < p->busy_cnt; i++) {
		if (p->busy[i] == file_id) {
			p->busy[i] = p->busy[--p->busy_cnt];
			return;
		}
	}
}

static void run_rows(struct vp_file_pool *p, enum lane lane, struct request *r)
{
	const uint32_t file_id = r->file_id;
	bool aside;

	p->busy[p->busy_cnt++] = file_id;
	aside = (lane == LANE_ROWS || lane == LANE_AHEAD) && set_aside(p, lane, r);
	if (!aside) {
		pthread_mutex_unlock(&p->lock);
		p->work.rows(p->work.ctx, file_id, &r->file);
		free_request(r);
		pthread_mutex_lock(&p->lock);
		done(p, lane, 1);
	}
	end_busy(p, file_id);
}

/* It goes on in LANE_SYMBOLS. */
static void run_open(struct vp_file_pool *p, struct request *r)
{
	p->held_cnt++;
	pthread_mutex_unlock(&p->lock);
	r->fd = p->work.open(p->work.ctx, &r->file);
	pthread_mutex_lock(&p->lock);
	push(&p->queue[LANE_SYMBOLS], r);
}

static void run_symbols(struct vp_file_pool *p, struct request *r)
{
	const bool held = is_opened(p, r->file_id);

	pthread_mutex_unlock(&p->lock);
	p->work.symbols(p->work.ctx, r->file_id, &r->file, r->fd);
	free(r); /* fd is theirs */
	pthread_mutex_lock(&p->lock);
	p->held_cnt -= held;
	done(p, LANE_SYMBOLS, 1);
}

static void run_jit(struct vp_file_pool *p, struct request *r)
{
	pthread_mutex_unlock(&p->lock);
	p->work.jit(p->work.ctx, &r->life, r->name[0] ? &r->file : NULL);
	free_request(r);
	pthread_mutex_lock(&p->lock);
	done(p, LANE_JIT, 1);
}

static void run(struct vp_file_pool *p, enum lane lane)
{
	struct request *r = pop(&p->queue[lane]);

	if (lane == LANE_OPEN)
		run_open(p, r);
	else if (lane == LANE_SYMBOLS)
		run_symbols(p, r);
	else if (lane == LANE_JIT)
		run_jit(p, r);
	else
		run_rows(p, lane, r);
}

static void run_lane(struct vp_file_pool *p, enum lane lane)
{
	p->main_cnt += is_main(lane);
	p->slow_cnt += is_slow(lane);
	p->late_cnt += is_late(lane);
	p->jit_cnt += lane == LANE_JIT;
	p->open_cnt += lane == LANE_OPEN;
	wake_another(p);
	if (lane == LANE_TIDY)
		tidy(p);
	else
		run(p, lane);
	p->main_cnt -= is_main(lane);
	p->slow_cnt -= is_slow(lane);
	p->late_cnt -= is_late(lane);
	p->jit_cnt -= lane == LANE_JIT;
	p->open_cnt -= lane == LANE_OPEN;
}

static void *work(void *arg)
{
	struct vp_file_pool *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		enum lane lane = choose(p);

		if (lane == LANE_CNT)
			wait_for_work(p);
		else
			run_lane(p, lane);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

/* ---- the real work ---- */

static int open_file(void *ctx, const struct vp_mapped_file *f)
{
	(void)ctx;
	return mapped_file_open(f, NULL);
}

/* What could not be read is remembered there with its reason. */
static void load_symbols(void *ctx, uint32_t file_id, const struct vp_mapped_file *f, int fd)
{
	const struct vp_file_pool *p = ctx;

	if (file_id == VP_FILE_ID_NONE)
		vp_symbolizer_kernel_refresh(p->symbolizer);
	else
		vp_symbolizer_load_opened(p->symbolizer, file_id, f, fd);
}

/* Without memory for them names are missing. */
static void load_jit(void *ctx, const struct vp_proc_id *life, const struct vp_mapped_file *dump)
{
	const struct vp_file_pool *p = ctx;

	vp_jit_read(p->jit, life, dump);
}

static void load_rows(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	const struct vp_file_pool *p = ctx;

	if (file_id == VP_FILE_ID_NONE)
		vp_row_store_load_vdso(p->rows);
	else
		vp_row_store_load(p->rows, file_id, f);
}

static uint64_t file_size(void *ctx, uint32_t file_id, const struct vp_mapped_file *f)
{
	const struct vp_file_pool *p = ctx;
	struct stat st = {0};
	int fd;

	if (file_id == VP_FILE_ID_NONE || !vp_row_store_wants(p->rows, file_id))
		return 0;
	fd = mapped_file_open(f, NULL);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st))
		st.st_size = 0;
	close(fd);
	return (uint64_t)st.st_size;
}

static void trim_rows(void *ctx, uint64_t now_ns)
{
	const struct vp_file_pool *p = ctx;

	vp_row_store_trim(p->rows, now_ns);
}

/* ---- life ---- */

static struct vp_file_pool *new_pool(void)
{
	struct vp_file_pool *p = calloc(1, sizeof(*p));
	pthread_condattr_t monotonic;

	if (!p)
		return NULL;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->to_do, &monotonic);
	pthread_cond_init(&p->is_done, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (int i = 0; i < LANE_CNT; i++)
		p->queue[i].last = &p->queue[i].first;
	return p;
}

static void end_threads(struct vp_file_pool *p, unsigned int cnt)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->to_do);
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < cnt; i++)
		pthread_join(p->thread[i], NULL);
}

static void free_pool(struct vp_file_pool *p)
{
	for (int i = 0; i < LANE_CNT; i++)
		forget(p, i);
	pthread_cond_destroy(&p->is_done);
	pthread_cond_destroy(&p->to_do);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* All or none: how many there are is what the lanes are counted by. */
static int start_threads(struct vp_file_pool *p)
{
	sigset_t all, old;
	unsigned int n = 0;
	int err = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (n < p->thread_cnt && !err) {
		err = pthread_create(&p->thread[n], NULL, work, p);
		n += !err;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		end_threads(p, n);
	return -err;
}

/* Takes p. */
static int start_pool(struct vp_file_pool **out, struct vp_file_pool *p, unsigned int thread_cnt,
		      struct vp_err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int err;

	if (!thread_cnt)
		thread_cnt = cpus > THREADS_MIN ? (unsigned int)cpus : THREADS_MIN;
	p->jit_threads = p->work.jit ? JIT_THREADS : 0;
	p->open_threads = p->work.open ? OPEN_THREADS : 0;
	p->thread_cnt = (thread_cnt < THREADS_MAX ? thread_cnt : THREADS_MAX) + p->jit_threads +
			p->open_threads;
	p->tidy_at_ns = vp_now_ns() + p->work.tidy_ns;
	err = start_threads(p);
	if (err) {
		free_pool(p);
		return vp_err_set(e, err, "file threads: %s", strerror(-err));
	}
	*out = p;
	return 0;
}

int vp_file_pool_start_work(struct vp_file_pool **out, const struct vp_file_work *work,
			    unsigned int thread_cnt, struct vp_err *e)
{
	struct vp_file_pool *p = new_pool();

	if (!p)
		return vp_err_set(e, -ENOMEM, "out of memory");
	p->work = *work;
	return start_pool(out, p, thread_cnt, e);
}

int vp_file_pool_start(struct vp_file_pool **out, struct vp_symbolizer *s, struct vp_jit *jit,
		       struct vp_row_store *rows, struct vp_err *e)
{
	struct vp_file_pool *p = new_pool();

	if (!p)
		return vp_err_set(e, -ENOMEM, "out of memory");
	p->symbolizer = s;
	p->jit = jit;
	p->rows = rows;
	p->work = (struct vp_file_work){.ctx = p, .open = open_file, .symbols = load_symbols};
	if (jit)
		p->work.jit = load_jit;
	if (rows) {
		p->work.rows = load_rows;
		p->work.size = file_size;
		p->work.tidy = trim_rows;
		p->work.tidy_ns = TIDY_NS;
	}
	return start_pool(out, p, 0, e);
}

static enum lane lane_of(const struct vp_file_pool *p, enum vp_file_job job, uint32_t file_id)
{
	if (job == VP_FILE_SYMBOLS)
		return is_opened(p, file_id) ? LANE_OPEN : LANE_SYMBOLS;
	return job == VP_FILE_ROWS ? LANE_ROWS : LANE_AHEAD;
}

static struct request *new_request(uint32_t file_id, const struct vp_mapped_file *f)
{
	size_t len = strlen(f->name) + 1;
	struct request *r = malloc(sizeof(*r) + len);

	if (!r)
		return NULL;
	memcpy(r->name, f->name, len);
	r->file_id = file_id;
	r->fd = -1;
	r->file = *f;
	r->file.name = r->name;
	return r;
}

static void push_request(struct vp_file_pool *p, enum lane lane, struct request *r)
{
	push(&p->queue[lane], r);
	p->left++;
	p->rows_left += is_rows(lane);
	if (is_rows(lane) && p->rows_ended)
		forget(p, lane);
	else
		pthread_cond_signal(&p->to_do);
}

int vp_file_pool_request_jit(struct vp_file_pool *p, const struct vp_proc_id *life,
			     const struct vp_mapped_file *dump)
{
	const struct vp_mapped_file none = {.name = ""};
	struct request *r;

	if (!p->work.jit)
		return 0;
	r = new_request(VP_FILE_ID_NONE, dump ? dump : &none);
	if (!r)
		return -ENOMEM;
	r->life = *life;
	pthread_mutex_lock(&p->lock);
	push_request(p, LANE_JIT, r);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int vp_file_pool_request(struct vp_file_pool *p, enum vp_file_job job, uint32_t file_id,
			 const struct vp_mapped_file *f)
{
	enum lane lane = lane_of(p, job, file_id);
	struct request *r;

	if (is_rows(lane) && !p->work.rows)
		return 0;
	r = new_request(file_id, f);
	if (!r)
		return -ENOMEM;
	pthread_mutex_lock(&p->lock);
	if (is_rows(lane) && is_busy(p, file_id)) {
		pthread_mutex_unlock(&p->lock);
		free_request(r);
		return 0;
	}
	push_request(p, lane, r);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

size_t vp_file_pool_wait_rows(struct vp_file_pool *p, uint64_t deadline_ns)
{
	const struct timespec until = time_at(deadline_ns);
	size_t left;

	pthread_mutex_lock(&p->lock);
	while (p->rows_left) {
		if (pthread_cond_timedwait(&p->is_done, &p->lock, &until) == ETIMEDOUT)
			break;
	}
	left = p->rows_left;
	pthread_mutex_unlock(&p->lock);
	return left;
}

void vp_file_pool_end_rows(struct vp_file_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->rows_ended = true;
	for (enum lane lane = LANE_ROWS; is_rows(lane); lane++)
		forget(p, lane);
	pthread_mutex_unlock(&p->lock);
}

size_t vp_file_pool_wait(struct vp_file_pool *p)
{
	size_t left;

	pthread_mutex_lock(&p->lock);
	while (p->left && !p->stalled) {
		struct timespec until = time_at(vp_now_ns() + STALLED_NS);
		uint64_t done_cnt = p->done_cnt;

		p->stalled = pthread_cond_timedwait(&p->is_done, &p->lock, &until) == ETIMEDOUT &&
			     p->done_cnt == done_cnt;
	}
	left = p->left;
	pthread_mutex_unlock(&p->lock);
	return left;
}

static void leave_threads(struct vp_file_pool *p)
{
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->to_do);
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < p->thread_cnt; i++)
		pthread_detach(p->thread[i]);
}

bool vp_file_pool_stop(struct vp_file_pool *p)
{
	if (!p)
		return true;
	if (p->stalled) {
		leave_threads(p);
		return false;
	}
	end_threads(p, p->thread_cnt);
	free_pool(p);
	return true;
}
