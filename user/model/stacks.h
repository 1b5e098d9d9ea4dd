/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Distinct stacks, each kept once, and how often each thread was seen in them. */
#ifndef VP_STACKS_H
#define VP_STACKS_H

#include "../../include/vp_record.h"
#include "../util/index.h"

#include <stddef.h>
#include <stdint.h>

#define VP_AT_KERNEL 0xff /* in place of a verdict: a kernel address */

/* A frame without its process: the same in every process that maps the file. */
struct vp_at {
	uint64_t value; /* file offset (FILE, 64-bit VDSO), else the address */
	uint32_t file_id;
	uint16_t verdict; /* VP_VERDICT_* or VP_AT_KERNEL */
	uint8_t leaf;	  /* not a return address */
	uint8_t remapped; /* in a copy of the file's text: VP_FRAME_F_REMAPPED */
};

struct vp_stack_ref {
	uint32_t first; /* in frames */
	uint32_t cnt;
};

/* Samples of one thread, under one name, in one stack. */
struct vp_tally {
	uint32_t stack;
	uint32_t proc; /* number in vp_procs */
	uint32_t tid;
	uint32_t comm; /* number in vp_strings */
	uint64_t count;
};

/* All zero is empty. */
struct vp_stacks {
	struct vp_at *frames; /* innermost first */
	size_t frame_cnt, frame_cap;
	struct vp_stack_ref *stack;
	size_t stack_cnt, stack_cap;
	struct vp_index stack_index;
	struct vp_tally *tally;
	size_t tally_cnt, tally_cap;
	struct vp_index tally_index;
};

/* Counts one sample. 0, -ENOMEM, or -ENOSPC: it is a new stack and max_bytes are used up. */
int vp_stacks_count(struct vp_stacks *s, const struct vp_at *frames, size_t cnt,
		    const struct vp_tally *who, uint64_t max_bytes);

/* Memory in use for frames, stacks and tallies, their indexes included. */
uint64_t vp_stacks_bytes(const struct vp_stacks *s);

void vp_stacks_free(struct vp_stacks *s);

#endif
