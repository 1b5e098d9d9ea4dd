/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom to sample, and how. The loader sets vp_filter in the objects and fills the map `targets`.
 */
#ifndef VP_TARGET_H
#define VP_TARGET_H

#define VP_FILTER_ALL	 0
#define VP_FILTER_TGID	 1 /* keys of `targets` are tgids */
#define VP_FILTER_TID	 2 /* … tids */
#define VP_FILTER_CGROUP 3

/* Values of `targets`. */
#define VP_TARGET_F_ARMED   1 /* sample it; without: from its next exec on */
#define VP_TARGET_F_INHERIT 2 /* and its children */

/* How user stacks are followed: the loader sets vp_call_graph. */
#define VP_CALL_GRAPH_AUTO  0 /* by rows; where there are none, by frame pointers */
#define VP_CALL_GRAPH_FP    1
#define VP_CALL_GRAPH_DWARF 2 /* by rows alone */

#endif
