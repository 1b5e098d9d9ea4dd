/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a perf.data file needs besides the records: the kernel's maps and build ids. */
#ifndef VP_RECORD_PERFDATA_H
#define VP_RECORD_PERFDATA_H

#include "../model/files.h"
#include "../output/perfdata.h"
#include "../symbolize/symbolizer.h"

/*
 * The kernel's and its modules' maps, the build ids of the kernel and of all files in which a
 * sample was, then vp_perfdata_finish.
 */
int vp_record_perfdata_finish(struct vp_perfdata *w, const struct vp_meta *meta,
			      const struct vp_files *files, struct vp_symbolizer *s);

#endif
