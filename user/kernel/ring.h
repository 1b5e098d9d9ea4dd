/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The reader of the ring. */
#ifndef VP_RING_H
#define VP_RING_H

#include "../model/decode.h"
#include "../util/err.h"

struct vp_ring;

/* Records go through d, in the order of the ring. fd and d are borrowed. */
int vp_ring_open(struct vp_ring **out, int fd, struct vp_decoder *d, struct vp_err *e);
void vp_ring_close(struct vp_ring *r); /* stops the thread if it runs; NULL is fine */

/* Reads all that is there now, on the calling thread. 0 or what the decoder returned. */
int vp_ring_drain(struct vp_ring *r);

/*
 * Something else that the thread looks after, one at most, before it runs: look() is called when fd
 * (borrowed) is readable and at each look at the ring.
 */
void vp_ring_add_source(struct vp_ring *r, int fd, void (*look)(void *ctx), void *ctx);

/*
 * From now on a thread reads. It looks at least every 100 ms; the kernel side wakes it when
 * the ring fills or a file is new.
 */
int vp_ring_start(struct vp_ring *r, struct vp_err *e);

/* Ends the thread after a last look. Returns the first error of a decoder call, or 0. */
int vp_ring_stop(struct vp_ring *r);

#endif
