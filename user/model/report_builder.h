/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a recording and a symbolizer to the report that writers take. */
#ifndef VP_REPORT_BUILDER_H
#define VP_REPORT_BUILDER_H

#include "../output/report.h"
#include "recording.h"

/* A module whose frames have no names, for the summary. */
struct vp_nameless {
	const char *module; /* path, or "[jit]", … Borrowed from the recording */
	uint64_t frame_cnt; /* samples × frames */
	enum vp_sym_reason reason;
};

struct vp_built_report {
	struct vp_report report;
	uint64_t user_frame_cnt;      /* frames × samples */
	uint64_t user_nameless_cnt;   /* … without a symbol */
	uint64_t stitched_cnt;	      /* … resolved by a record that came after the sample */
	uint64_t unresolved_cnt;      /* … whose mapping never became known */
	struct vp_nameless *nameless; /* by frame_cnt, largest first */
	size_t nameless_cnt;
	void *storage;
};

/*
 * Files that only stitched frames use are read now (through r->worker's symbolizer s). meta
 * and r must outlive the report. 0 or -ENOMEM. Free with vp_report_free.
 */
int vp_report_build(struct vp_built_report *out, struct vp_recording *r, struct vp_symbolizer *s,
		    const struct vp_meta *meta);
void vp_report_free(struct vp_built_report *b);

#endif
