/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a recording keeps of the records: processes, files, distinct stacks. Fed by the reader
 * thread alone; read by the main thread after it has ended.
 */
#ifndef VP_RECORDING_H
#define VP_RECORDING_H

#include "../output/perfdata.h"
#include "../util/strings.h"
#include "decode.h"
#include "file_pool.h"
#include "files.h"
#include "procs.h"
#include "stacks.h"

#include <stdatomic.h>

struct vp_recording {
	struct vp_procs procs;
	struct vp_files files;
	struct vp_strings comms;
	struct vp_stacks stacks;
	struct vp_file_pool *pool;    /* borrowed; NULL: no file is opened */
	struct vp_jit *jit;	      /* borrowed; NULL: code of JITs has no names */
	struct vp_perfdata *perfdata; /* borrowed; NULL: not written */
	uint64_t max_stack_bytes;
	bool kernel_asked; /* its symbols are read, or will be */

	atomic_uint_fast64_t sample_cnt;     /* read by the progress line while it grows */
	atomic_uint_fast64_t frame_cnt;	     /* user frames */
	atomic_uint_fast64_t unresolved_cnt; /* … whose mapping was not known at the time */
	uint64_t fp_cnt;		     /* user frames found by frame pointer */
	uint64_t no_rows_cnt;		     /* user frames whose file had no rows yet */
	uint64_t remapped_cnt;		     /* user frames in copies of a file's text */
	uint64_t end_cnt[VP_END_CNT];	     /* user stacks by why they ended */
	uint64_t kern_cut_cnt;		     /* kernel stacks that filled the room */
	uint64_t stacks_full_cnt;	     /* samples not kept as a stack: memory limit */
	uint64_t first_ns, last_ns;	     /* of the samples; 0: none */
};

/* The decoder's ops for it; ctx is the recording. */
extern const struct vp_record_ops vp_recording_ops;

/*
 * Before the report: what JITs have told since they were asked last, and the kernel's symbols where
 * they have changed. 0 or -ENOMEM.
 */
int vp_recording_ask_again(struct vp_recording *r);

void vp_recording_free(struct vp_recording *r);

#endif
