/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the kernel's tree of VMAs can be read by BPF: tried on this process, since only the
 * kernel's source says what that tree looks like. See kern/vp_mm_walk.bpf.h.
 */
#ifndef VP_MM_WALK_H
#define VP_MM_WALK_H

#include "../util/err.h"
#include "loader.h"

struct vp_mm_walk {
	struct mm_walk *skel;
};

/* Opens the object; *unit says how it is loaded (optional). core_btf is borrowed until then. */
int vp_mm_walk_open(struct vp_mm_walk *w, struct vp_core_btf *core_btf, struct vp_load_unit *unit,
		    struct vp_err *e);

/* After the load: does the tree say the same as bpf_find_vma? */
bool vp_mm_walk_agrees(struct vp_mm_walk *w);

void vp_mm_walk_close(struct vp_mm_walk *w);

/* All of it at once: 1 it agrees, 0 it does not, or negative errno: it cannot be loaded. */
int vp_mm_walk_probe(void);

#endif
