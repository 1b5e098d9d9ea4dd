/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Resolution on demand: addresses of a process to mappings, by bpf_find_vma. */
#ifndef VP_FINDER_H
#define VP_FINDER_H

#include "../model/decode.h"
#include "../util/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vp_find.h"

struct vp_finder;

/*
 * Called once for each run of consecutive addresses in one mapping, before vp_finder_ask
 * returns.
 */
typedef int (*vp_finder_mapping)(void *ctx, const struct vp_mmap2 *m);

/* Room for `max` addresses. 0 or negative errno with e filled. */
int vp_finder_open(struct vp_finder **out, size_t max, vp_finder_mapping mapping, void *ctx,
		   struct vp_err *e);
void vp_finder_close(struct vp_finder *f);

/*
 * Asks for cnt ≤ max addresses of process tgid in one run of one program and fills
 * finds[i].verdict and, where something is mapped, start, end and pgoff. Addresses that could
 * not be asked (a thread of the process was changing its mappings) are asked again for a
 * second and stay VP_VERDICT_BUSY if that did not help. -ESRCH: no such process or no user
 * memory.
 */
int vp_finder_ask(struct vp_finder *f, pid_t tgid, struct vp_find *finds, size_t cnt,
		  struct vp_err *e);

#endif
