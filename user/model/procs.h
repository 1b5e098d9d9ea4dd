/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lives of processes and what was reported of their executable mappings. */
#ifndef VP_PROCS_H
#define VP_PROCS_H

#include "../../include/vp_record.h"
#include "../util/index.h"

#include <stddef.h>
#include <stdint.h>

/* Of a process with a JIT: when what it tells of its code was asked for last, and how to open it. */
struct vp_jit_state {
	uint64_t asked_ns;	/* 0: never */
	uint64_t wait_ns;	/* so long from then on it is not again */
	uint32_t dump_file_id;	/* the jitdump that it has mapped last; VP_FILE_ID_NONE: none */
	struct vp_proc_id from; /* what it is a copy of, code included; tgid 0: nothing known */
};

struct vp_process {
	struct vp_proc_id id;
	struct vp_xmap *xmaps; /* ascending, disjoint: a newer one has cut older ones */
	size_t xmap_cnt, xmap_cap;
	uint64_t sample_cnt;
	uint64_t first_ns; /* of its first record; 0: none yet */
	struct vp_jit_state jit;
};

/* All zero is empty. */
struct vp_procs {
	struct vp_process *proc;
	size_t cnt, cap;
	struct vp_index index;
};

/* Number of the life, added if new; VP_INDEX_NONE: out of memory. */
uint32_t vp_procs_get(struct vp_procs *p, const struct vp_proc_id *id);

/* The same, but VP_INDEX_NONE if it is not known. */
uint32_t vp_procs_find(const struct vp_procs *p, const struct vp_proc_id *id);

/*
 * 1 if it is new, 0 if it is what is known at that address already (a process whose table in
 * the kernel is full reports its mappings again and again), -ENOMEM.
 */
int vp_process_add_xmap(struct vp_process *proc, const struct vp_xmap *x);

/* Whether something is known of any address in [start, end). */
bool vp_process_overlaps(const struct vp_process *proc, uint64_t start, uint64_t end);

/* proc gets what is known of from's mappings, below its own. 0 or -ENOMEM. */
int vp_process_inherit(struct vp_process *proc, const struct vp_process *from);

/* The mapping that holds addr, or NULL. Borrowed until the next add. */
const struct vp_xmap *vp_process_find(const struct vp_process *proc, uint64_t addr);

void vp_procs_free(struct vp_procs *p);

#endif
