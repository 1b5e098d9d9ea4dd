/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Walks of the task_vma iterator: what is mapped now, as records through a ring. */
#ifndef VP_WALKER_H
#define VP_WALKER_H

#include "loader.h"
#include "ring.h"
#include "shared_maps.h"

#include <stdbool.h>
#include <sys/types.h>

struct synth;

struct vp_walker {
	struct synth *skel;
};

/* Opens the object and sets its knobs; the caller loads `unit`. maps is borrowed until then. */
int vp_walker_open(struct vp_walker *w, struct vp_shared_maps *maps, bool all_maps,
		   bool fills_table, struct vp_load_unit *unit, struct vp_err *e);
void vp_walker_close(struct vp_walker *w);

/*
 * Walks the processes with these tgids (cnt 0: all) and passes every record to the ring's
 * decoder before it returns. Nothing is lost when the ring is full. A tgid that is not there
 * yields no record and no error. The ring must not have a thread of its own.
 */
int vp_walker_walk(struct vp_walker *w, struct vp_ring *ring, const pid_t *tgids, size_t cnt,
		   struct vp_err *e);

#endif
