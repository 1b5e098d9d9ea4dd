/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Questions and answers between user/kernel/finder.c and kern/find.bpf.c: one array element
 * each.
 */
#ifndef VP_FIND_H
#define VP_FIND_H

#include "vp_types.h"

/* In: addr. Out: the rest. verdict 0: not asked (yet). */
struct vp_find {
	__u64 addr;
	__u64 start; /* of the VMA; 0 if none */
	__u64 end;
	__u64 pgoff; /* bytes; 0 for anonymous memory */
	__u32 verdict;
	__u32 reserved;
};

/* What the run met (vp_find_seen in the object). */
#define VP_FIND_SEEN_TASK    1 /* a task of that tgid */
#define VP_FIND_SEEN_MM	     2 /* … with user memory */
#define VP_FIND_SEEN_KTHREAD 4 /* … a kernel thread */

_Static_assert(sizeof(struct vp_find) == 40, "array element");

#endif
