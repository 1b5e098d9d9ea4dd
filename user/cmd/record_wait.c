/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "record_wait.h"

#include "../util/array.h"
#include "../util/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS 1000000000ULL

/* fd[0] is the signals', the others are pidfds; an ended process leaves -1. */
struct vp_waiter {
	struct pollfd *fd;
	size_t cnt, cap;
	bool watching; /* whether any process was given */
	sigset_t old_mask;
};

static int add_fd(struct vp_waiter *w, int fd)
{
	int err = vp_array_room((void **)&w->fd, &w->cap, w->cnt, 1, sizeof(*w->fd));

	if (!err)
		w->fd[w->cnt++] = (struct pollfd){.fd = fd, .events = POLLIN};
	return err;
}

int vp_waiter_open(struct vp_waiter **out, struct vp_err *e)
{
	struct vp_waiter *w = calloc(1, sizeof(*w));
	sigset_t mask;
	int fd, err;

	if (!w)
		return vp_err_set(e, -ENOMEM, "out of memory");
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, &w->old_mask);
	fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	err = fd < 0 ? -errno : add_fd(w, fd);
	if (err) {
		vp_waiter_close(w);
		return vp_err_set(e, err, "signals: %s", strerror(-err));
	}
	*out = w;
	return 0;
}

void vp_waiter_close(struct vp_waiter *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->cnt; i++) {
		if (w->fd[i].fd >= 0)
			close(w->fd[i].fd);
	}
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
	free(w->fd);
	free(w);
}

const sigset_t *vp_waiter_old_mask(const struct vp_waiter *w)
{
	return &w->old_mask;
}

int vp_waiter_watch(struct vp_waiter *w, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	w->watching = true;
	if (fd < 0)
		return errno == ESRCH ? 0 : -errno;
	return add_fd(w, fd);
}

/* Whether it is over: a signal came, or every process has ended. */
static bool is_over(struct vp_waiter *w)
{
	bool alive = false;

	if (w->fd[0].revents)
		return true;
	for (size_t i = 1; i < w->cnt; i++) {
		if (w->fd[i].fd >= 0 && w->fd[i].revents) {
			close(w->fd[i].fd);
			w->fd[i].fd = -1;
		}
		alive |= w->fd[i].fd >= 0;
	}
	return w->watching && !alive;
}

/* All that have come, or they would be delivered when the mask is lifted. Whether there were any. */
static int take_signals(struct vp_waiter *w)
{
	struct signalfd_siginfo info;
	int cnt = 0;

	while (read(w->fd[0].fd, &info, sizeof(info)) == sizeof(info))
		cnt++;
	return cnt > 0;
}

int vp_waiter_wait(struct vp_waiter *w, uint64_t duration_ns, void (*tick)(void *ctx), void *ctx)
{
	uint64_t end = duration_ns ? vp_now_ns() + duration_ns : UINT64_MAX;
	bool over = w->watching && w->cnt == 1;
	int by_signal;

	while (!over) {
		uint64_t now = vp_now_ns(), left = now < end ? end - now : 0;
		struct timespec ts;

		if (left == 0)
			break;
		if (left > TICK_NS)
			left = TICK_NS;
		ts = (struct timespec){(time_t)(left / 1000000000), (long)(left % 1000000000)};
		if (ppoll(w->fd, w->cnt, &ts, NULL) < 0 && errno != EINTR)
			return -errno;
		over = is_over(w);
		if (tick && !over)
			tick(ctx);
	}
	by_signal = take_signals(w);
	sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
	return by_signal;
}
