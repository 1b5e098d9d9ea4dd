/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A command that is started, but waits before its first instruction until it is released. */
#ifndef VP_CHILD_H
#define VP_CHILD_H

#include "err.h"

#include <signal.h>
#include <sys/types.h>

struct vp_child {
	pid_t pid;	/* 0: none */
	int go_fd;	/* to write to; -1: released */
	int go_read_fd; /* kept, so that the write never fails for want of a reader */
	int err_fd;
};

/* mask: the signal mask the command gets. 0 or negative errno with e filled. */
int vp_child_prepare(struct vp_child *c, char **argv, const sigset_t *mask, struct vp_err *e);

/*
 * Lets it exec and waits until that is done. -ENOENT etc. with e filled if it cannot be
 * executed; then it is gone.
 */
int vp_child_release(struct vp_child *c, char **argv, struct vp_err *e);

/* Ends a child that was never released; one that runs is left alone. */
void vp_child_abandon(struct vp_child *c);

#endif
