/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a recording and a symbolizer to the report that writers take. */
#ifndef VP_REPORT_BUILDER_H
#define VP_REPORT_BUILDER_H

#include "../output/report.h"
#include "../symbolize/kernel_debug.h"
#include "recording.h"

/* A module whose frames have no names, for the summary. */
struct vp_nameless {
	const char *module; /* path, or "[jit]", … Borrowed from the recording */
	uint64_t frame_cnt; /* samples × frames */
	enum vp_sym_reason reason;
	bool has_build_id; /* by which debug files are found */
	bool has_symtab;   /* its own or a debug file's: there is no better table to be had */
};

struct vp_built_report {
	struct vp_report report;
	uint64_t user_frame_cnt;    /* frames × samples */
	uint64_t user_nameless_cnt; /* … without a symbol */
	uint64_t stitched_cnt;	    /* … resolved by a record that came after the sample */
	uint64_t unresolved_cnt;    /* … whose mapping never became known */
	uint64_t inlined_cnt;	    /* inlined calls in user frames × samples */
	bool debug_cut;	       /* that was too much for max_bytes: some or all frames are without */
	size_t debug_cnt;      /* files whose debug information was there, if it was asked for */
	size_t debug_gone_cnt; /* … was there when they were loaded, but not any more */
	struct vp_nameless *nameless; /* by frame_cnt, largest first */
	size_t nameless_cnt;
	void *storage;
};

struct vp_report_opts {
	/*
	 * Calls that a compiler inlined are frames of their own and labels have lines, both from debug
	 * information, for which files are opened again.
	 */
	bool inlines;
	struct kernel_debug *kernel; /* that of the kernel; borrowed; NULL: none */
	uint64_t max_bytes;	     /* that this may take in the report; 0: 256 MiB */
};

/*
 * Files that only stitched frames use are read now (through the symbolizer of r's pool, s).
 * opts may be NULL: names only. meta and r must outlive the report. 0 or -ENOMEM. Free with
 * vp_report_free.
 */
int vp_report_build(struct vp_built_report *out, struct vp_recording *r, struct vp_symbolizer *s,
		    const struct vp_meta *meta, const struct vp_report_opts *opts);
void vp_report_free(struct vp_built_report *b);

#endif
