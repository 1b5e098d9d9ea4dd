/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What ends a recording: a signal, the time, or the end of what is recorded. */
#ifndef VP_RECORD_WAIT_H
#define VP_RECORD_WAIT_H

#include "../util/err.h"

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct vp_waiter;

/* Takes SIGINT, SIGTERM and SIGHUP from here on: they wait until vp_waiter_wait. */
int vp_waiter_open(struct vp_waiter **out, struct vp_err *e);
void vp_waiter_close(struct vp_waiter *w); /* gives the signals back; NULL is fine */

/* The mask before, for a command that is started. */
const sigset_t *vp_waiter_old_mask(const struct vp_waiter *w);

/* The recording ends when all watched processes have. One that is gone already counts as ended. */
int vp_waiter_watch(struct vp_waiter *w, pid_t pid);

/*
 * Until one of those signals, duration_ns (0: no limit) or the end of all watched processes. tick,
 * if not NULL, is called every second. Afterwards the signals are delivered again: a second
 * Ctrl-C is the caller's to handle. 1: a signal ended it; 0: something else did; -errno.
 */
int vp_waiter_wait(struct vp_waiter *w, uint64_t duration_ns, void (*tick)(void *ctx), void *ctx);

#endif
