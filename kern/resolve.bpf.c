// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Live tracking, third rung: perf has told user space that a process mapped code somewhere. What
 * is there now is asked here, in the reader's context, and entered and reported as everything
 * else is.
 */
#include "vp_ask.bpf.h"
#include "vp_target.bpf.h"
#include "vp_sideband.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * The request: written by user space before a run. tgid as the reader numbers it. An address
 * becomes 0 when it has been answered.
 */
__u32 vp_resolve_tgid = 0;
__u32 vp_resolve_cnt = 0;
bool vp_resolve_done = false; /* a thread has answered for its process */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_SIDEBAND_BATCH);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} resolve_addrs SEC(".maps");

/* Of the cgroup that is sampled: bpf_current_task_under_cgroup would ask about the reader. */
__u64 vp_target_cgroup_id = 0;

#define VP_CGROUP_DEPTH_MAX 256

struct vp_cgroup_walk {
	const struct cgroup_subsys_state *css;
	bool found;
};

/* One cgroup further up; 1 ends the walk. */
static long vp_cgroup_step(__u32 i, void *data)
{
	struct vp_cgroup_walk *w = data;
	const struct cgroup_subsys_state *css = w->css;
	const struct cgroup *cgroup =
		(const void *)css - bpf_core_field_offset(struct cgroup, self);

	if (BPF_CORE_READ(cgroup, kn, id) == vp_target_cgroup_id) {
		w->found = true;
		return 1;
	}
	css = BPF_CORE_READ(css, parent);
	w->css = css;
	return !css;
}

static __always_inline bool vp_is_in_target_cgroup(struct task_struct *task)
{
	const struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	struct vp_cgroup_walk w = {};

	w.css = (const void *)cgroup + bpf_core_field_offset(struct cgroup, self);
	bpf_loop(VP_CGROUP_DEPTH_MAX, vp_cgroup_step, &w, 0);
	return w.found;
}

/* vp_current_is_wanted() of a task that is not the current one. */
static __always_inline bool vp_task_is_wanted(struct task_struct *task)
{
	switch (vp_filter) {
	case VP_FILTER_ALL:
		return true;
	case VP_FILTER_CGROUP:
		return vp_is_in_target_cgroup(task);
	default:
		return vp_target_flags(task) & VP_TARGET_F_ARMED;
	}
}

/*
 * What is mapped at addr. False: could not be asked, because the process holds its lock. An exec
 * meanwhile can make the record one of a life's mapping with the next life's exec count, which
 * is seen: the count is the same before and after, and goes up before the new image is mapped.
 */
static __noinline bool vp_resolve_addr(struct task_struct *task, struct vp_ask_buf *ask, __u64 addr)
{
	__u64 mm = vp_mm(task);
	__u32 exec_id = (__u32)task->self_exec_id;
	long err;

	ask->at = addr;
	ask->ts_ns = bpf_ktime_get_ns();
	vp_proc_get_or_inherit(task, ask->ts_ns);
	err = bpf_find_vma(task, addr, vp_on_vma, NULL, 0);
	if (err == -EBUSY)
		return false;
	if (err || ask->known || ask->xmap.verdict == VP_VERDICT_ANON_EXEC)
		return true;
	if ((__u64)ask->vma.mm == mm && ask->mmap2.rec.proc.exec_id == exec_id)
		vp_publish(task, ask);
	return true;
}

struct vp_resolve_ctx {
	struct task_struct *task;
	struct vp_ask_buf *ask;
};

static long vp_resolve_step(__u32 i, void *data)
{
	struct vp_resolve_ctx *c = data;
	__u64 *addr = bpf_map_lookup_elem(&resolve_addrs, &i);

	if (!addr)
		return 1;
	if (*addr && vp_resolve_addr(c->task, c->ask, *addr))
		*addr = 0;
	return 0;
}

/*
 * Hook: each thread of the process in turn (or each task, without the task filter), in process
 * context of the reader, IRQs on, so bpf_find_vma works any number of times. The first wanted
 * thread that has an mm answers for all. Bounded by the size of a batch. A full ring loses
 * records, counted: the reader, which drains it, waits for this run.
 */
SEC("iter/task")
int vp_resolve_new(struct bpf_iter__task *ctx)
{
	struct vp_resolve_ctx c = {};
	struct task_struct *task = ctx->task;

	if (!task || vp_resolve_done || vp_tgid(task) != vp_resolve_tgid)
		return 0;
	if (!vp_mm(task) || !vp_task_is_wanted(task))
		return 0;
	c.ask = vp_ask_buf();
	if (!c.ask)
		return 0;
	c.task = task;
	vp_resolve_done = true;
	bpf_loop(vp_resolve_cnt, vp_resolve_step, &c, 0);
	return 0;
}
