/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What open_counter.bpf.c counts and open_counter.c prints. */
#ifndef OPEN_COUNTER_H
#define OPEN_COUNTER_H

#include <linux/types.h>

struct open_counts {
	__u64 map_opens;   /* of /proc/PID/maps, smaps, smaps_rollup */
	__u64 map_queries; /* PROCMAP_QUERY */
	__u64 all_opens;
};

#endif
