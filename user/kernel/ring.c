/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOK_MS 100

struct source {
	int fd;
	void (*look)(void *ctx);
	void *ctx;
};

struct vp_ring {
	struct ring_buffer *rb;
	struct source source; /* look NULL: none */
	struct vp_decoder *decoder;
	pthread_t thread;
	bool running;
	int stop_fd; /* eventfd: readable when the thread should end */
	int err;     /* first failure of the decoder: later records are dropped */
};

static int on_record(void *ctx, void *data, size_t size)
{
	struct vp_ring *r = ctx;

	if (!r->err)
		r->err = vp_decode(r->decoder, data, size);
	return 0;
}

int vp_ring_open(struct vp_ring **out, int fd, struct vp_decoder *d, struct vp_err *e)
{
	struct vp_ring *r = calloc(1, sizeof(*r));

	if (!r)
		return vp_err_set(e, -ENOMEM, "ring buffer: out of memory");
	r->decoder = d;
	r->source.fd = -1; /* which poll() passes over */
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	r->rb = r->stop_fd < 0 ? NULL : ring_buffer__new(fd, on_record, r, NULL);
	if (!r->rb) {
		int err = -errno;

		if (r->stop_fd >= 0)
			close(r->stop_fd);
		free(r);
		return vp_err_set(e, err, "ring buffer: %s", strerror(-err));
	}
	*out = r;
	return 0;
}

int vp_ring_drain(struct vp_ring *r)
{
	int n = ring_buffer__consume(r->rb);

	return n < 0 ? n : r->err;
}

void vp_ring_add_source(struct vp_ring *r, int fd, void (*look)(void *ctx), void *ctx)
{
	r->source = (struct source){fd, look, ctx};
}

/* What the source has the kernel side send is read at once. */
static void look_at_all(struct vp_ring *r)
{
	ring_buffer__consume(r->rb);
	if (!r->source.look)
		return;
	r->source.look(r->source.ctx);
	ring_buffer__consume(r->rb);
}

/*
 * Woken or not, it looks at all of the ring each time: records that were sent without a wakeup do
 * not end the poll.
 */
static void *read_ring(void *arg)
{
	struct vp_ring *r = arg;
	struct pollfd fds[] = {
		{.fd = ring_buffer__epoll_fd(r->rb), .events = POLLIN},
		{.fd = r->stop_fd, .events = POLLIN},
		{.fd = r->source.fd, .events = POLLIN},
	};

	do {
		poll(fds, 3, LOOK_MS);
		look_at_all(r);
	} while (!fds[1].revents);
	return NULL;
}

int vp_ring_start(struct vp_ring *r, struct vp_err *e)
{
	sigset_t all, old;
	int err;

	/* Signals are the main thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&r->thread, NULL, read_ring, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return vp_err_set(e, -err, "reader thread: %s", strerror(err));
	r->running = true;
	return 0;
}

int vp_ring_stop(struct vp_ring *r)
{
	if (r->running) {
		eventfd_write(r->stop_fd, 1);
		pthread_join(r->thread, NULL);
		r->running = false;
	}
	return r->err;
}

void vp_ring_close(struct vp_ring *r)
{
	if (!r)
		return;
	vp_ring_stop(r);
	ring_buffer__free(r->rb);
	close(r->stop_fd);
	free(r);
}
