/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "file_worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct request {
	struct request *next;
	uint32_t file_id;
	struct vp_mapped_file file;
	char name[];
};

struct vp_file_worker {
	struct vp_symbolizer *symbolizer;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a request came, one is done, or stop */
	struct request *first, **last;
	bool busy;
	bool stop;
};

static struct request *next_request(struct vp_file_worker *w)
{
	struct request *r;

	pthread_mutex_lock(&w->lock);
	w->busy = false;
	pthread_cond_broadcast(&w->changed);
	while (!w->first && !w->stop)
		pthread_cond_wait(&w->changed, &w->lock);
	r = w->stop ? NULL : w->first;
	if (r) {
		w->first = r->next;
		if (!w->first)
			w->last = &w->first;
		w->busy = true;
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

static void *work(void *arg)
{
	struct vp_file_worker *w = arg;
	struct request *r;

	while ((r = next_request(w))) {
		/* What could not be read is remembered there with its reason. */
		vp_symbolizer_load(w->symbolizer, r->file_id, &r->file);
		free(r);
	}
	return NULL;
}

int vp_file_worker_start(struct vp_file_worker **out, struct vp_symbolizer *s, struct vp_err *e)
{
	struct vp_file_worker *w = calloc(1, sizeof(*w));
	sigset_t all, old;
	int err;

	if (!w)
		return vp_err_set(e, -ENOMEM, "out of memory");
	w->symbolizer = s;
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&w->thread, NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		free(w);
		return vp_err_set(e, -err, "file thread: %s", strerror(err));
	}
	*out = w;
	return 0;
}

int vp_file_worker_request(struct vp_file_worker *w, uint32_t file_id,
			   const struct vp_mapped_file *f)
{
	size_t len = strlen(f->name) + 1;
	struct request *r = malloc(sizeof(*r) + len);

	if (!r)
		return -ENOMEM;
	memcpy(r->name, f->name, len);
	r->next = NULL;
	r->file_id = file_id;
	r->file = *f;
	r->file.name = r->name;
	pthread_mutex_lock(&w->lock);
	*w->last = r;
	w->last = &r->next;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

void vp_file_worker_wait(struct vp_file_worker *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->first || w->busy)
		pthread_cond_wait(&w->changed, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

void vp_file_worker_stop(struct vp_file_worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	while (w->first) {
		struct request *r = w->first;

		w->first = r->next;
		free(r);
	}
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
