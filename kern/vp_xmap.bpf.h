/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of executable mappings that each process has in `procs`. */
#ifndef VP_XMAP_BPF_H
#define VP_XMAP_BPF_H

#include "vp_identity.bpf.h"

/* A whole empty vp_proc to insert: too large for the stack. Never written. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_proc);
} empty_proc SEC(".maps");

static __always_inline bool vp_proc_is_of(const struct vp_proc *proc, struct task_struct *task)
{
	return proc->mm == vp_mm(task) && proc->exec_id == (__u32)task->self_exec_id &&
	       proc->start_ns == vp_start_ns(task);
}

/*
 * The table of task's process, made anew if it is an older life's. NULL: no room, or another
 * CPU is making it (mm is 0 until that is done).
 */
static __noinline struct vp_proc *vp_proc_get(struct task_struct *task)
{
	__u32 tgid = task->tgid, zero = 0;
	struct vp_proc *proc = bpf_map_lookup_elem(&procs, &tgid), *empty;
	long err;

	if (proc && vp_proc_is_of(proc, task))
		return proc;
	if (proc && proc->mm == 0)
		return NULL;
	if (proc)
		bpf_map_delete_elem(&procs, &tgid);
	empty = bpf_map_lookup_elem(&empty_proc, &zero);
	if (!empty)
		return NULL;
	err = bpf_map_update_elem(&procs, &tgid, empty, BPF_NOEXIST);
	if (err == -E2BIG)
		vp_count(VP_CNT_PROC_FULL);
	if (err)
		return NULL;
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!proc)
		return NULL;
	proc->start_ns = vp_start_ns(task);
	proc->exec_id = (__u32)task->self_exec_id;
	barrier();
	*(volatile __u64 *)&proc->mm = vp_mm(task);
	return proc;
}

static __always_inline void vp_proc_unlock(struct vp_proc *proc)
{
	__sync_lock_test_and_set(&proc->lock, 0);
}

/*
 * A process that was forked and has not exec'd since has its parent's mappings: start with a
 * copy of what is known of them, made when it is first needed. A parent that has exec'd
 * since, or is gone, gives nothing. Not inlined: its record would lie on the stack below the
 * unwinder's.
 */
static __noinline int vp_proc_inherit(struct vp_proc *proc, struct task_struct *task, __u64 ts_ns)
{
	struct task_struct *parent = BPF_CORE_READ(task, group_leader, real_parent);
	__u32 exec_id = (__u32)task->parent_exec_id, tgid = BPF_CORE_READ(parent, tgid);
	struct vp_rec_inherit rec = {};
	struct vp_proc *from;
	__u32 cnt;

	if ((__u32)task->self_exec_id != exec_id)
		return 0;
	from = bpf_map_lookup_elem(&procs, &tgid);
	if (!from || from->cnt == 0 || from->exec_id != exec_id ||
	    from->start_ns != BPF_CORE_READ(parent, group_leader, start_boottime))
		return 0;
	vp_fill_hdr(&rec.hdr, VP_REC_INHERIT, sizeof(rec));
	rec.hdr.ts_ns = ts_ns;
	vp_fill_proc_id(&rec.proc, task);
	rec.from.start_ns = from->start_ns;
	rec.from.exec_id = from->exec_id;
	rec.from.tgid =
		vp_pidns_inum
			? vp_pid_number((__u64)BPF_CORE_READ(parent, group_leader, thread_pid))
			: tgid;
	if (__sync_val_compare_and_swap(&proc->lock, 0, 1) != 0)
		return 0;
	if (proc->cnt != 0)
		goto out;
	cnt = from->cnt;
	bpf_probe_read_kernel(proc->xmap, sizeof(proc->xmap), from->xmap);
	if (bpf_ringbuf_output(&rb, &rec, sizeof(rec), BPF_RB_NO_WAKEUP))
		vp_count(VP_CNT_LOST_EVENT);
	else
		*(volatile __u32 *)&proc->cnt = cnt;
out:
	vp_proc_unlock(proc);
	return 0;
}

/*
 * vp_proc_get, and for a process seen for the first time what it has from its parent; the
 * record of that is dated ts_ns.
 */
static __always_inline struct vp_proc *vp_proc_get_or_inherit(struct task_struct *task, __u64 ts_ns)
{
	struct vp_proc *proc = vp_proc_get(task);

	if (proc && !proc->inherit_asked) {
		proc->inherit_asked = 1;
		vp_proc_inherit(proc, task, ts_ns);
	}
	return proc;
}

/*
 * Slot of the mapping that holds pc, or -1. Newest first: on overlap the later mapping is the
 * one that is there now. A global function, so that its loop is verified once.
 */
__noinline int vp_xmap_slot(const struct vp_proc *proc, __u64 pc)
{
	__u32 cnt;

	if (!proc)
		return -1;
	cnt = proc->cnt;
	for (int i = 0; i < VP_XMAPS_PER_PROC; i++) {
		__u32 slot = cnt - 1 - i;
		const struct vp_xmap *x;

		if (slot >= VP_XMAPS_PER_PROC)
			break;
		x = &proc->xmap[slot];
		/* Else clang computes the address again from i, unbounded to the verifier. */
		barrier_var(x);
		if (pc >= x->start && pc < x->end)
			return slot;
	}
	return -1;
}

static __always_inline bool vp_xmap_equal(const struct vp_xmap *a, const struct vp_xmap *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff &&
	       a->file_id == b->file_id && a->verdict == b->verdict;
}

#define VP_ENTER_NEW	 0 /* locked: send the record, then vp_xmap_publish or _unlock */
#define VP_ENTER_KNOWN	 1 /* was there already, word for word: its record was sent */
#define VP_ENTER_REFUSED 2 /* no room or another CPU is entering one: counted */

/*
 * The slot that new takes the place of as a whole, or VP_XMAPS_PER_PROC: a new one. Only where
 * no other slot holds new's ends, or an older answer would hide it.
 */
static __always_inline __u32 vp_xmap_replaced(const struct vp_proc *proc, const struct vp_xmap *new)
{
	__u32 slot = vp_xmap_slot(proc, new->start), last = vp_xmap_slot(proc, new->end - 1);
	const struct vp_xmap *x;

	if (slot >= VP_XMAPS_PER_PROC || slot != last)
		return VP_XMAPS_PER_PROC;
	barrier_var(slot);
	x = &proc->xmap[slot];
	return new->start <= x->start &&new->end >= x->end ? slot : VP_XMAPS_PER_PROC;
}

/*
 * First half of an insertion. Between the halves the record of the mapping is sent, so that
 * no sample can use a mapping whose record does not precede it. seq: vp_mapping_seq() when new
 * was true.
 */
static __always_inline int vp_xmap_enter(struct vp_proc *proc, struct task_struct *task,
					 const struct vp_xmap *new, __u32 seq)
{
	__u32 slot;

	if (__sync_val_compare_and_swap(&proc->lock, 0, 1) != 0) {
		vp_count(VP_CNT_TABLE_BUSY);
		return VP_ENTER_REFUSED;
	}
	/* The element may have become another process's since it was looked up. */
	if (!vp_proc_is_of(proc, task)) {
		vp_proc_unlock(proc);
		return VP_ENTER_REFUSED;
	}
	slot = vp_xmap_replaced(proc, new);
	if (slot < VP_XMAPS_PER_PROC) {
		barrier_var(slot);
		if (!vp_xmap_equal(&proc->xmap[slot], new))
			return VP_ENTER_NEW;
		proc->seq[slot] = seq;
		vp_proc_unlock(proc);
		return VP_ENTER_KNOWN;
	}
	if (proc->cnt >= VP_XMAPS_PER_PROC) {
		vp_proc_unlock(proc);
		vp_count(VP_CNT_XMAP_FULL);
		return VP_ENTER_REFUSED;
	}
	return VP_ENTER_NEW;
}

/* Second half; see struct vp_proc for the order of the stores, which x86 keeps. */
static __always_inline void vp_xmap_publish(struct vp_proc *proc, const struct vp_xmap *new,
					    __u32 seq)
{
	__u32 slot = vp_xmap_replaced(proc, new), cnt = proc->cnt;
	bool append = slot >= VP_XMAPS_PER_PROC;
	struct vp_xmap *x;

	if (append)
		slot = cnt;
	if (slot < VP_XMAPS_PER_PROC) {
		barrier_var(slot);
		x = &proc->xmap[slot];
		*(volatile __u64 *)&x->end = 0;
		barrier();
		x->start = new->start;
		x->pgoff = new->pgoff;
		x->file_id = new->file_id;
		x->verdict = new->verdict;
		proc->seq[slot] = seq;
		barrier();
		*(volatile __u64 *)&x->end = new->end;
		barrier();
		if (append)
			*(volatile __u32 *)&proc->cnt = cnt + 1;
		proc->generation++;
	}
	vp_proc_unlock(proc);
}

/* What was known of pc is not true any more. */
static __always_inline void vp_xmap_forget(struct vp_proc *proc, __u64 pc)
{
	__u32 slot = vp_xmap_slot(proc, pc);

	if (slot >= VP_XMAPS_PER_PROC)
		return;
	barrier_var(slot);
	*(volatile __u64 *)&proc->xmap[slot].end = 0;
}

static __always_inline void vp_xmap_from_rec(struct vp_xmap *x, const struct vp_rec_mmap2 *rec)
{
	x->start = rec->perf.addr;
	x->end = rec->perf.addr + rec->perf.len;
	x->pgoff = rec->perf.pgoff;
	x->file_id = rec->file_id;
	x->verdict = rec->verdict;
}

#endif
