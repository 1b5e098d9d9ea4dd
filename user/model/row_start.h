/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind rows before the first sample: for the files of the processes that the walk has found, the
 * busiest processes' first, as far as a budget of time goes.
 */
#ifndef VP_ROW_START_H
#define VP_ROW_START_H

#include "recording.h"

struct vp_row_start {
	size_t file_cnt; /* of the processes found */
	size_t left_cnt; /* … not done when the budget was used up: they follow while it samples */
	uint64_t took_ns;
};

/*
 * Asks r->pool for the rows of the vdso and of the files, and waits for them, for budget_ns at most.
 * Called between the walk and the start of the reader's thread, by the thread that has walked: the
 * recording is that one's alone then. 0 or -ENOMEM.
 */
int vp_row_start(struct vp_recording *r, uint64_t budget_ns, struct vp_row_start *out);

struct vp_ranked_file {
	uint32_t file_id;
	uint32_t proc;		 /* the busiest process that maps it: its number in r->procs */
	const struct vp_xmap *x; /* … and its mapping, borrowed from r */
	uint64_t cpu_ticks;	 /* of all processes that map it */
	uint32_t last_proc;	 /* that was counted */
};

/*
 * The files by the CPU time of the processes that map them, most of it first. cpu_ticks: that of
 * each of r->procs. *out is the caller's to free. 0 or -ENOMEM.
 */
int vp_row_start_rank(const struct vp_recording *r, const uint64_t *cpu_ticks,
		      struct vp_ranked_file **out, size_t *cnt);

#endif
