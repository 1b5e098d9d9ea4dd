/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whom to sample: decided in the kernel, by rodata and the maps `targets`, `target_cgroup`. */
#ifndef VP_TARGET_BPF_H
#define VP_TARGET_BPF_H

#include "vp_identity.bpf.h"
#include "vp_target.h"

const volatile __u32 vp_filter = VP_FILTER_ALL;

/* Key of task in `targets`: as user space numbers it. */
static __always_inline __u32 vp_target_key(struct task_struct *task)
{
	return vp_filter == VP_FILTER_TID ? vp_tid(task) : vp_tgid(task);
}

/* VP_TARGET_F_* of task; 0: not wanted. */
static __always_inline __u32 vp_target_flags(struct task_struct *task)
{
	__u32 key = vp_target_key(task);
	__u32 *flags = bpf_map_lookup_elem(&targets, &key);

	return flags ? *flags : 0;
}

/*
 * Is the current task wanted? A task outside our pid namespace is not: it has no number to
 * show. Works in any context.
 */
static __always_inline bool vp_current_is_wanted(struct task_struct *current)
{
	switch (vp_filter) {
	case VP_FILTER_ALL:
		break;
	case VP_FILTER_CGROUP:
		if (bpf_current_task_under_cgroup(&target_cgroup, 0) != 1)
			return false;
		break;
	default:
		if (!(vp_target_flags(current) & VP_TARGET_F_ARMED))
			return false;
	}
	return !vp_pidns_inum || vp_tgid(current) != 0;
}

#endif
