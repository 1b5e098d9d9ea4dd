/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Asking about mappings that perf has told of: kern/resolve.bpf.c, user/kernel/sideband.c. */
#ifndef VP_SIDEBAND_H
#define VP_SIDEBAND_H

#include "vp_types.h"

/* Addresses of one process that a run takes. */
#define VP_SIDEBAND_BATCH 1024

#endif
