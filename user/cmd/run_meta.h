/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts about this machine and run, for the outputs. */
#ifndef VP_RUN_META_H
#define VP_RUN_META_H

#include "../model/meta.h"

#include <sys/utsname.h>

struct vp_run_meta {
	struct vp_meta meta;
	struct utsname uts;
	char cpu_desc[128];
	char target[256];
};

/* Fills what is known before sampling. */
void vp_run_meta_fill(struct vp_run_meta *m);

#endif
