// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The walk of the tree of VMAs, compared with bpf_find_vma before anybody relies on it. */
#include "vp_mm_walk.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define VP_TRY_MAX 64

/* The question: addresses of the process that runs the program. Written by user space. */
__u64 vp_try_at[VP_TRY_MAX];
__u32 vp_try_cnt = 0;

/* The answer. */
__u32 vp_try_agreed = 0;
__u32 vp_try_busy = 0; /* bpf_find_vma could not be asked */

struct vp_try_range {
	__u64 start;
	__u64 end;
};

static long vp_try_found(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	struct vp_try_range *r = data;

	r->start = vma->vm_start;
	r->end = vma->vm_end;
	return 0;
}

static __always_inline bool vp_try_agrees(__u64 vma_addr, const struct vp_try_range *r, __u64 mm)
{
	const struct vm_area_struct *vma = (const void *)vma_addr;

	if (!r->end || vma_addr == VP_MM_NOTHING)
		return !r->end && vma_addr == VP_MM_NOTHING;
	return BPF_CORE_READ(vma, vm_start) == r->start && BPF_CORE_READ(vma, vm_end) == r->end &&
	       (__u64)BPF_CORE_READ(vma, vm_mm) == mm && vp_mm_walk_saw(r->start, r->end);
}

static long vp_try_one(__u32 i, void *data)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct vp_try_range r = {};
	/* Read as a number: a pointer cannot be the argument of a global function. */
	__u64 mm = (__u64)BPF_CORE_READ(task, mm), vma;

	if (i >= VP_TRY_MAX || i >= vp_try_cnt)
		return 1;
	if (bpf_find_vma(task, vp_try_at[i], vp_try_found, &r, 0) == -EBUSY) {
		vp_try_busy++;
		return 0;
	}
	vma = vp_mm_walk(mm, vp_try_at[i]);
	if (vma != VP_MM_UNCLEAR && vp_try_agrees(vma, &r, mm))
		vp_try_agreed++;
	return 0;
}

/* Hook: none; run by user space in its own process, IRQs on. */
SEC("raw_tp")
int vp_try_mm_walk(void *ctx)
{
	bpf_loop(VP_TRY_MAX, vp_try_one, NULL, 0);
	return 0;
}
