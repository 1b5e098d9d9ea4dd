/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "debuginfod.h"

#include "../util/clock.h"
#include "symbolizer.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY	    "libdebuginfod.so.1"
#define SERVERS_ENV "DEBUGINFOD_URLS"
#define THREAD_CNT  4
#define FILES_MAX   4096
/* A thread that does not end by then is left behind: the library may be waiting for a name. */
#define END_NS	    2000000000

/* Of the library's header, which need not be there; its interface is versioned by name. */
typedef struct debuginfod_client client;
typedef int (*progress_fn)(client *c, long a, long b);

/* A file that was asked for. */
struct file {
	uint8_t id[VP_BUILD_ID_MAX];
	size_t id_len;
	int result; /* 0: it is at path; -EAGAIN: not known yet */
	char *path;
};

struct debuginfod {
	void *library;
	client *(*begin)(void);
	void (*end)(client *c);
	int (*find_debuginfo)(client *c, const unsigned char *id, int len, char **path);
	void (*set_progressfn)(client *c, progress_fn fn);
	uint64_t silence_ns;
	atomic_bool stop; /* what is being got is given up */
	pthread_t thread[THREAD_CNT];
	unsigned int thread_cnt;

	pthread_mutex_t lock; /* all below */
	pthread_cond_t changed;
	struct file *files; /* FILES_MAX: they stay where they are */
	size_t cnt, begun_cnt, left;
	uint64_t end_ns; /* 0: not known yet */
	bool silent;	 /* a server did not answer */
};

/* Of the fetch that this thread is at, which is the one whose progress it is told of. */
static __thread struct {
	struct debuginfod *d;
	uint64_t deadline_ns;
	long bytes;
} fetch;

/* Not 0: give up. Of a file that is being sent, b is its size and a what is there of it. */
static int on_progress(client *c, long a, long b)
{
	uint64_t now_ns = vp_now_ns();

	(void)c;
	if (b > 0 && a != fetch.bytes) {
		fetch.bytes = a;
		fetch.deadline_ns = now_ns + fetch.d->silence_ns;
	}
	return now_ns > fetch.deadline_ns || atomic_load(&fetch.d->stop);
}

/* ---- the threads ---- */

/* 0 with *path, which the caller frees; -ETIME: no answer; or negative errno. */
static int find(struct debuginfod *d, const struct file *f, char **path)
{
	client *c = d->begin();
	int fd;

	if (!c)
		return -ENOMEM;
	fetch.d = d;
	fetch.bytes = 0;
	fetch.deadline_ns = vp_now_ns() + d->silence_ns;
	d->set_progressfn(c, on_progress);
	fd = d->find_debuginfo(c, f->id, (int)f->id_len, path);
	d->end(c);
	if (fd >= 0) {
		close(fd);
		return *path ? 0 : -ENOMEM;
	}
	return vp_now_ns() > fetch.deadline_ns || fd == -ETIMEDOUT ? -ETIME : fd;
}

/* With the lock held. */
static void give_up(struct debuginfod *d)
{
	for (; d->begun_cnt < d->cnt; d->begun_cnt++, d->left--)
		d->files[d->begun_cnt].result = -ETIME;
	pthread_cond_broadcast(&d->changed);
}

/* With the lock held, which it gives up meanwhile. */
static void get_next(struct debuginfod *d)
{
	struct file *f = &d->files[d->begun_cnt++];
	char *path = NULL;
	int result;

	pthread_mutex_unlock(&d->lock);
	result = find(d, f, &path);
	pthread_mutex_lock(&d->lock);
	f->path = path;
	f->result = result == -EAGAIN ? -EIO : result;
	d->left--;
	d->silent |= result == -ETIME;
	if (d->silent)
		give_up(d);
	pthread_cond_broadcast(&d->changed);
}

static void *work(void *arg)
{
	struct debuginfod *d = arg;

	pthread_mutex_lock(&d->lock);
	while (!atomic_load(&d->stop)) {
		if (d->begun_cnt < d->cnt)
			get_next(d);
		else
			pthread_cond_wait(&d->changed, &d->lock);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* One is enough. */
static int start(struct debuginfod *d)
{
	sigset_t all, old;
	int err = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (d->thread_cnt < THREAD_CNT && !err) {
		err = pthread_create(&d->thread[d->thread_cnt], NULL, work, d);
		d->thread_cnt += !err;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return d->thread_cnt ? 0 : -err;
}

/* ---- asking ---- */

/* With the lock held. NULL: too many. */
static struct file *find_file(struct debuginfod *d, const uint8_t *id, size_t len)
{
	struct file *f;

	for (size_t i = 0; i < d->cnt; i++) {
		if (d->files[i].id_len == len && !memcmp(d->files[i].id, id, len))
			return &d->files[i];
	}
	if (d->cnt == FILES_MAX || len > sizeof(f->id))
		return NULL;
	f = &d->files[d->cnt++];
	memcpy(f->id, id, len);
	f->id_len = len;
	f->result = -EAGAIN;
	d->left++;
	if (d->silent || (d->end_ns && vp_now_ns() >= d->end_ns))
		give_up(d);
	pthread_cond_broadcast(&d->changed);
	return f;
}

/* With the lock held. */
static int wait_for(struct debuginfod *d, const struct file *f)
{
	while (d->end_ns && f->result == -EAGAIN) {
		const struct timespec until = {
			.tv_sec = (time_t)(d->end_ns / 1000000000),
			.tv_nsec = (long)(d->end_ns % 1000000000),
		};

		if (pthread_cond_timedwait(&d->changed, &d->lock, &until) == ETIMEDOUT)
			return f->result == -EAGAIN ? -ETIME : f->result;
	}
	return f->result;
}

int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len)
{
	struct debuginfod *d = ctx;
	const struct file *f;
	int err, fd;

	pthread_mutex_lock(&d->lock);
	f = find_file(d, build_id, len);
	err = f ? wait_for(d, f) : -ENOENT;
	pthread_mutex_unlock(&d->lock);
	if (err)
		return err;
	fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

size_t debuginfod_left(struct debuginfod *d)
{
	size_t left;

	pthread_mutex_lock(&d->lock);
	left = d->left;
	pthread_mutex_unlock(&d->lock);
	return left;
}

void debuginfod_end_at(struct debuginfod *d, uint64_t deadline_ns)
{
	pthread_mutex_lock(&d->lock);
	d->end_ns = deadline_ns;
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

void debuginfod_get_stats(struct debuginfod *d, struct debuginfod_stats *out)
{
	*out = (struct debuginfod_stats){0};
	pthread_mutex_lock(&d->lock);
	out->asked_cnt = d->cnt;
	for (size_t i = 0; i < d->cnt; i++) {
		out->found_cnt += d->files[i].result == 0;
		out->missing_cnt += d->files[i].result == -ENOENT;
	}
	out->unanswered_cnt = d->cnt - out->found_cnt - out->missing_cnt;
	pthread_mutex_unlock(&d->lock);
}

/* ---- life ---- */

static int load(struct debuginfod *d)
{
	d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!d->library)
		return -ENOENT;
	*(void **)&d->begin = dlsym(d->library, "debuginfod_begin");
	*(void **)&d->end = dlsym(d->library, "debuginfod_end");
	*(void **)&d->find_debuginfo = dlsym(d->library, "debuginfod_find_debuginfo");
	*(void **)&d->set_progressfn = dlsym(d->library, "debuginfod_set_progressfn");
	return d->begin && d->end && d->find_debuginfo && d->set_progressfn ? 0 : -ENOENT;
}

static struct debuginfod *allocate(uint64_t silence_ns)
{
	struct debuginfod *d = calloc(1, sizeof(*d));
	pthread_condattr_t monotonic;

	if (!d)
		return NULL;
	d->files = calloc(FILES_MAX, sizeof(*d->files));
	if (!d->files) {
		free(d);
		return NULL;
	}
	d->silence_ns = silence_ns;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return d;
}

int debuginfod_new(struct debuginfod **out, uint64_t silence_ns)
{
	const char *servers = getenv(SERVERS_ENV);
	struct debuginfod *d;
	int err;

	if (!servers || !*servers)
		return -EDESTADDRREQ;
	d = allocate(silence_ns);
	if (!d)
		return -ENOMEM;
	err = load(d);
	if (!err)
		err = start(d);
	if (err)
		debuginfod_free(d);
	else
		*out = d;
	return err;
}

/* Whether all have ended. */
static bool end_threads(struct debuginfod *d)
{
	const uint64_t until_ns = vp_now_ns() + END_NS;
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / 1000000000),
		.tv_nsec = (long)(until_ns % 1000000000),
	};
	bool all = true;

	pthread_mutex_lock(&d->lock);
	atomic_store(&d->stop, true);
	pthread_cond_broadcast(&d->changed);
	pthread_mutex_unlock(&d->lock);
	for (unsigned int i = 0; i < d->thread_cnt; i++) {
		if (pthread_clockjoin_np(d->thread[i], NULL, CLOCK_MONOTONIC, &until)) {
			pthread_detach(d->thread[i]);
			all = false;
		}
	}
	return all;
}

/* The library stays loaded: what it uses leaves threads and handlers behind. */
void debuginfod_free(struct debuginfod *d)
{
	if (!d || !end_threads(d))
		return;
	for (size_t i = 0; i < d->cnt; i++)
		free(d->files[i].path);
	free(d->files);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
