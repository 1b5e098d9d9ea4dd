/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a person reads when a recording ends. */
#ifndef VP_SUMMARY_H
#define VP_SUMMARY_H

#include "../kernel/sideband.h"
#include "../model/joiner.h"
#include "../model/report_builder.h"
#include "../symbolize/debuginfod.h"
#include "vp_counters.h"

#include <stdio.h>

struct vp_summary {
	const struct vp_built_report *built;
	const struct vp_recording *recording;
	const struct vp_joiner *joiner;
	const struct vp_decoder *decoder;
	uint64_t unread_cnt;
	struct vp_row_store *rows; /* NULL: frame pointers alone */
	struct vp_sideband_stats sideband;
	struct vp_symbolizer_stats symbols;
	uint64_t naming_ns;	  /* from the end of sampling until every frame had its name */
	const uint64_t *counters; /* [VP_CNT_CNT] */
	const char *output;
	uint64_t output_bytes;
	bool kernel_hidden;
	bool verbose;
	bool inlines;	 /* were asked for */
	bool debuginfod; /* missing debug files were asked for */
	struct debuginfod_stats debug_files;
};

/* All samples and events that did not arrive. */
uint64_t vp_summary_lost(const uint64_t counters[VP_CNT_CNT]);

void vp_summary_print(FILE *f, const struct vp_summary *s);

#endif
