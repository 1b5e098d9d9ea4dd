/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streaming writer of perf.data (tools/perf/Documentation/perf.data-file-format.txt and
 * tools/perf/util/header.c of Linux). Memory does not grow with the samples.
 */
#ifndef VP_PERFDATA_H
#define VP_PERFDATA_H

#include "../../include/vp_record.h"
#include "../model/meta.h"
#include "../util/err.h"

#include <stdint.h>
#include <stdio.h>

struct vp_perfdata;

/*
 * Starts a file on f (seekable, at its beginning, borrowed until finish or free).
 * kernel_stext/etext: bounds of the kernel's text, 0/0 if hidden or not known yet. Only the
 * fields of meta known before sampling are used here (event, freq, perf_type, perf_config).
 * -ENOMEM, -EIO, -ESPIPE if f cannot seek.
 */
int vp_perfdata_new(struct vp_perfdata **out, FILE *f, const struct vp_meta *meta,
		    uint64_t kernel_stext, uint64_t kernel_etext);

/*
 * The bounds of the kernel's text, if they were not known to vp_perfdata_new. Like that of a
 * module at any time before vp_perfdata_finish: dated 0, the record counts for all samples.
 */
int vp_perfdata_kernel(struct vp_perfdata *w, uint64_t stext, uint64_t etext);

/*
 * A kernel module's text, as /proc/modules has it (name without brackets). Without it perf
 * shows that module's frames as [unknown].
 */
int vp_perfdata_kernel_module(struct vp_perfdata *w, const char *name, uint64_t start,
			      uint64_t len);

/*
 * Records in the order of the ring. Each returns 0, -EIO, or -EINVAL for a record that is not
 * valid; after -EIO everything is -EIO. rec must be validated (user/model/decode.h) and its
 * name must not be in parts.
 *
 * mmap2: copies rec->perf.size bytes from rec->perf and appends the sample_id trailer.
 * sample: writes a COMM record first when the thread's comm is new or has changed. kern, user:
 * rec->kern_cnt addresses, rec->user_cnt frames.
 * exec: COMM with misc COMM_EXEC. comm: COMM, unless the file says that of the thread already.
 * inherit: the mappings written for `from` are `proc`'s, too, each written again before the first
 * sample in it.
 */
int vp_perfdata_mmap2(struct vp_perfdata *w, const struct vp_rec_mmap2 *rec);
int vp_perfdata_sample(struct vp_perfdata *w, const struct vp_rec_sample *rec, const uint64_t *kern,
		       const struct vp_frame *user);
int vp_perfdata_exec(struct vp_perfdata *w, const struct vp_rec_exec *rec);
int vp_perfdata_comm(struct vp_perfdata *w, const struct vp_rec_comm *rec);
int vp_perfdata_fork(struct vp_perfdata *w, const struct vp_rec_fork *rec);
int vp_perfdata_exit(struct vp_perfdata *w, const struct vp_rec_exit *rec);
int vp_perfdata_inherit(struct vp_perfdata *w, const struct vp_rec_inherit *rec);

/*
 * For the BUILD_ID feature section; len 1 … 20 (-EINVAL), -ENOMEM. name as in the MMAP2
 * records; the kernel's is "[kernel.kallsyms]", a module's "[name]", both with is_kernel.
 */
int vp_perfdata_add_build_id(struct vp_perfdata *w, const char *name, const uint8_t *id,
			     uint8_t len, int is_kernel);

/*
 * Mappings that were written but could not be remembered, for want of memory: a child that
 * inherits may miss them. The file itself lacks nothing else.
 */
uint64_t vp_perfdata_dropped(const struct vp_perfdata *w);

/* Writes the feature sections (all of meta) and the final header. Does not close f. */
int vp_perfdata_finish(struct vp_perfdata *w, const struct vp_meta *meta);

/* NULL is fine. */
void vp_perfdata_free(struct vp_perfdata *w);

#endif
