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
 * Samples come to a task's end behind the event that ends its table, and a walk holds the memory of
 * a process that may be gone: neither makes a table that nobody would end.
 */
static __always_inline bool vp_proc_is_ending(struct task_struct *task)
{
	return !vp_mm(task) || BPF_CORE_READ(task, signal, live.counter) == 0;
}

/*
 * The table of task's process, made anew if it is an older life's. NULL: no room, the process is
 * ending, or another CPU is making it (mm is 0 until that is done).
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
	if (vp_proc_is_ending(task))
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
	/* It ended meanwhile, and its table may have been looked for before this one was there. */
	if (vp_proc_is_ending(task)) {
		bpf_map_delete_elem(&procs, &tgid);
		return NULL;
	}
	return proc;
}

static __always_inline void vp_proc_unlock(struct vp_proc *proc)
{
	__sync_lock_test_and_set(&proc->lock, 0);
}

/*
 * What a child has from its parent is as good as old, whatever it says: it is confirmed when it is
 * first used.
 */
static __always_inline void vp_copy_table(struct vp_proc *proc, const struct vp_proc *from,
					  __u32 now_seq)
{
	bpf_probe_read_kernel(&proc->image, sizeof(proc->image), &from->image);
	bpf_probe_read_kernel(proc->xmap, sizeof(proc->xmap), from->xmap);
	for (int i = 0; i < VP_XMAPS_PER_PROC; i++)
		proc->seq[i] = ~now_seq;
}

/*
 * Both run what one exec started. A process whose parent is gone gets another one, whose count
 * of execs says nothing.
 */
static __always_inline bool vp_is_same_image(__u64 mm_addr, __u64 other_addr)
{
	const struct mm_struct *mm = (const void *)mm_addr, *other = (const void *)other_addr;

	return BPF_CORE_READ(mm, exe_file) == BPF_CORE_READ(other, exe_file);
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
	    from->start_ns != BPF_CORE_READ(parent, group_leader, start_boottime) ||
	    !vp_is_same_image(from->mm, vp_mm(task)))
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
	vp_copy_table(proc, from, vp_mapping_seq((void *)vp_mm(task), ts_ns));
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

/* ---- what is kept with the process ----------------------------------------------------------- */

/*
 * Slot of the mapping that holds pc, or -1. A global function, so that its loop is verified once.
 */
__noinline int vp_xmap_slot(const struct vp_proc *proc, __u64 pc)
{
	__u32 cnt;

	if (!proc)
		return -1;
	cnt = proc->cnt;
	for (__u32 i = 0; i < VP_XMAPS_PER_PROC; i++) {
		const struct vp_xmap *x = &proc->xmap[i];

		if (i >= cnt)
			break;
		if (pc >= x->start && pc < x->end)
			return i;
	}
	return -1;
}

static __always_inline bool vp_xmap_equal(const struct vp_xmap *a, const struct vp_xmap *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff &&
	       a->file_id == b->file_id && a->verdict == b->verdict && a->flags == b->flags;
}

/* The first slot that x lies over, or -1. */
__noinline int vp_xmap_under(const struct vp_proc *proc, const struct vp_xmap *x)
{
	__u32 cnt;

	if (!proc || !x)
		return -1;
	cnt = proc->cnt;
	for (__u32 i = 0; i < VP_XMAPS_PER_PROC; i++) {
		if (i >= cnt)
			break;
		if (proc->xmap[i].start < x->end && proc->xmap[i].end > x->start)
			return i;
	}
	return -1;
}

/* A slot that `new` may take: a free one; VP_XMAPS_PER_PROC: none. Under the lock. */
__noinline int vp_xmap_room(const struct vp_proc *proc, const struct vp_xmap *new)
{
	__u32 cnt;

	if (!proc || !new)
		return VP_XMAPS_PER_PROC;
	cnt = proc->cnt;
	for (__u32 i = 0; i < VP_XMAPS_PER_PROC; i++) {
		const struct vp_xmap *x = &proc->xmap[i];

		/* What `new` covers is not there any more, and makes room for it. */
		if (i >= cnt || !x->end || (x->start >= new->start && x->end <= new->end))
			return i;
	}
	return VP_XMAPS_PER_PROC;
}

/*
 * Cuts the slots that lie under a mapping that is there now, as user space does. 1: one of them goes on
 * beyond it on both sides, and its upper part is forgotten. Under the lock, within a version.
 */
__noinline int vp_xmap_clear(struct vp_proc *proc, __u64 start, __u64 end)
{
	__u32 cnt;
	int beyond = 0;

	if (!proc)
		return 0;
	cnt = proc->cnt;
	for (__u32 i = 0; i < VP_XMAPS_PER_PROC; i++) {
		struct vp_xmap *x = &proc->xmap[i];

		if (i >= cnt)
			break;
		if (x->start >= end || x->end <= start)
			continue;
		if (x->start < start) {
			beyond |= x->end > end;
			x->end = start;
		} else if (x->end > end) {
			if (x->verdict == VP_VERDICT_FILE || x->verdict == VP_VERDICT_VDSO)
				x->pgoff += end - x->start;
			x->start = end;
		} else {
			x->end = 0;
		}
	}
	return beyond;
}

static __always_inline void vp_version_step(__u32 *version)
{
	barrier();
	*(volatile __u32 *)version = *version + 1;
	barrier();
}

/* ---- what is kept in the shared cache -------------------------------------------------------- */

/* A life of a process, as a number that is no other's. */
static __always_inline __u64 vp_far_owner(const struct vp_proc *proc)
{
	return (proc->mm ^ proc->exec_id) + proc->start_ns * 0x9e3779b97f4a7c15ULL;
}

static __always_inline struct vp_far_set *vp_far_set_of(__u64 owner, __u64 page)
{
	__u64 hash = (owner ^ page) * 0x9e3779b97f4a7c15ULL;
	__u32 i = hash >> 52;

	_Static_assert(VP_FAR_SETS == 1 << (64 - 52), "the hash's upper bits are the index");
	return bpf_map_lookup_elem(&far_xmaps, &i);
}

struct vp_far_answer {
	struct vp_xmap xmap;
	__u32 seq;
	__u32 reserved;
};

/*
 * The entry of that key, or NULL: none, or it is being written. What is read of it counts if
 * vp_far_is_unchanged says so afterwards.
 */
static __always_inline struct vp_far *vp_far_at(__u64 owner, __u64 page, __u32 *version)
{
	struct vp_far_set *set = vp_far_set_of(owner, page);

	if (!set)
		return NULL;
	for (int i = 0; i < VP_FAR_WAYS; i++) {
		struct vp_far *f = &set->way[i];

		*version = *(volatile __u32 *)&f->version;
		if (f->owner == owner && f->page == page && !(*version & 1))
			return f;
	}
	return NULL;
}

static __always_inline bool vp_far_is_unchanged(const struct vp_far *f, __u32 version)
{
	barrier();
	return *(volatile __u32 *)&f->version == version;
}

/* 1 and the entry, or 0: none, or it is being written. */
__noinline int vp_far_find(__u64 owner, __u64 page, struct vp_far_answer *out)
{
	__u32 version = 0;
	const struct vp_far *f = vp_far_at(owner, page, &version);

	if (!f || !out)
		return 0;
	out->xmap = f->xmap;
	out->seq = f->seq;
	return vp_far_is_unchanged(f, version);
}

/* The way that (owner, page) has or gets. */
static __always_inline struct vp_far *vp_far_way(struct vp_far_set *set, __u64 owner, __u64 page)
{
	__u32 victim = set->next;

	for (int i = 0; i < VP_FAR_WAYS; i++) {
		if (set->way[i].owner == owner && set->way[i].page == page)
			return &set->way[i];
	}
	for (int i = 0; i < VP_FAR_WAYS; i++) {
		if (!set->way[i].owner)
			return &set->way[i];
	}
	set->next = victim + 1;
	return &set->way[victim % VP_FAR_WAYS];
}

/* Not done if another CPU writes there: it will be asked for again. */
__noinline int vp_far_put(__u64 owner, __u64 page, const struct vp_xmap *x, __u32 seq)
{
	struct vp_far_set *set = vp_far_set_of(owner, page);
	struct vp_far *f;
	__u32 version;

	if (!set || !x)
		return 0;
	f = vp_far_way(set, owner, page);
	version = f->version;
	if (version & 1 ||
	    __sync_val_compare_and_swap(&f->version, version, version + 1) != version)
		return 0;
	f->owner = owner;
	f->page = page;
	f->xmap = *x;
	f->seq = seq;
	barrier();
	*(volatile __u32 *)&f->version = version + 2;
	return 0;
}

static __always_inline __u64 vp_far_known_key(const struct vp_proc *proc, const struct vp_xmap *x)
{
	__u64 epoch = (__u64)proc->far_epoch << VP_FAR_EPOCH_SHIFT;

	return x->start >> PAGE_SHIFT | (epoch & ~VP_FAR_KNOWN) | VP_FAR_KNOWN;
}

/* Is this mapping known by that key, word for word? Compared in place: the stack is short. */
__noinline int vp_far_is_known(__u64 owner, __u64 page, const struct vp_xmap *x)
{
	__u32 version = 0;
	const struct vp_far *f = vp_far_at(owner, page, &version);

	return f && x && vp_xmap_equal(&f->xmap, x) && vp_far_is_unchanged(f, version);
}

/* ---- entering -------------------------------------------------------------------------------- */

/* A JIT's memory comes and goes: it must not push out what stays. */
static __always_inline bool vp_xmap_is_far(const struct vp_xmap *x)
{
	return x->verdict == VP_VERDICT_ANON_EXEC;
}

/*
 * Is this mapping known, word for word? Then its record was sent; it is noted that it was still
 * true at seq, also for the page of `at`. A global function: verified once.
 */
__noinline int vp_xmap_is_known(struct vp_proc *proc, const struct vp_xmap *x, __u64 at, __u32 seq)
{
	__u32 slot;

	if (!proc || !x)
		return false;
	slot = vp_xmap_under(proc, x);
	/* What the shared cache has of x is older than what x lies over. */
	if (slot < VP_XMAPS_PER_PROC) {
		barrier_var(slot);
		if (!vp_xmap_equal(&proc->xmap[slot], x))
			return false;
		proc->seq[slot] = seq;
		if (proc->has_far)
			vp_far_put(vp_far_owner(proc), at >> PAGE_SHIFT, x, seq);
		return true;
	}
	if (!proc->has_far || !vp_far_is_known(vp_far_owner(proc), vp_far_known_key(proc, x), x))
		return false;
	vp_far_put(vp_far_owner(proc), at >> PAGE_SHIFT, x, seq);
	return true;
}

#define VP_ENTER_NEW	 0 /* locked: send the record, then vp_xmap_publish or vp_proc_unlock */
#define VP_ENTER_KNOWN	 1 /* was there already, word for word: its record was sent */
#define VP_ENTER_REFUSED 2 /* another CPU is entering one: counted */

/*
 * First half of an insertion. Between the halves the record of the mapping is sent, so that
 * no sample can use a mapping whose record does not precede it. seq: vp_mapping_seq() when new
 * was true. at: an address in it that is used.
 */
static __always_inline int vp_xmap_enter(struct vp_proc *proc, struct task_struct *task,
					 const struct vp_xmap *new, __u64 at, __u32 seq)
{
	if (vp_xmap_is_known(proc, new, at, seq))
		return VP_ENTER_KNOWN;
	if (__sync_val_compare_and_swap(&proc->lock, 0, 1) != 0) {
		vp_count(VP_CNT_TABLE_BUSY);
		return VP_ENTER_REFUSED;
	}
	/* The element may have become another process's since it was looked up. */
	if (!vp_proc_is_of(proc, task)) {
		vp_proc_unlock(proc);
		vp_count(VP_CNT_TABLE_BUSY);
		return VP_ENTER_REFUSED;
	}
	if (vp_xmap_is_known(proc, new, at, seq)) {
		vp_proc_unlock(proc);
		return VP_ENTER_KNOWN;
	}
	return VP_ENTER_NEW;
}

static __always_inline void vp_xmap_write(struct vp_proc *proc, __u32 slot,
					  const struct vp_xmap *new, __u32 seq)
{
	vp_version_step(&proc->version);
	if (vp_xmap_clear(proc, new->start, new->end))
		proc->far_epoch++;
	if (slot < VP_XMAPS_PER_PROC) {
		barrier_var(slot);
		proc->xmap[slot] = *new;
		proc->seq[slot] = seq;
		if (slot >= proc->cnt)
			proc->cnt = slot + 1;
	}
	vp_version_step(&proc->version);
}

/* Second half. x86 keeps the order of the stores. */
static __always_inline void vp_xmap_publish(struct vp_proc *proc, const struct vp_xmap *new,
					    __u64 at, __u32 seq)
{
	__u32 slot = VP_XMAPS_PER_PROC;

	if (!vp_xmap_is_far(new))
		slot = vp_xmap_room(proc, new);
	vp_xmap_write(proc, slot, new, seq);
	if (slot >= VP_XMAPS_PER_PROC) {
		if (!vp_xmap_is_far(new))
			vp_count(VP_CNT_XMAP_FULL);
		proc->has_far = 1;
		vp_far_put(vp_far_owner(proc), vp_far_known_key(proc, new), new, seq);
	}
	/* The page may be there as another mapping's. */
	if (proc->has_far)
		vp_far_put(vp_far_owner(proc), at >> PAGE_SHIFT, new, seq);
	proc->generation++;
	vp_proc_unlock(proc);
}

/* Nothing is mapped at pc any more. Without the lock: a range that the slot gets meanwhile is lost. */
static __always_inline void vp_xmap_forget(struct vp_proc *proc, __u64 pc)
{
	__u32 slot = vp_xmap_slot(proc, pc);

	if (slot >= VP_XMAPS_PER_PROC)
		return;
	barrier_var(slot);
	*(volatile __u64 *)&proc->xmap[slot].end = 0;
	proc->far_epoch++;
}

/* The main program's text is remembered as it was first seen. */
static __always_inline void vp_note_image(struct vp_proc *proc, const struct vp_xmap *x,
					  struct task_struct *task)
{
	__u64 code = BPF_CORE_READ(task, mm, start_code);

	if (x->verdict == VP_VERDICT_FILE && !proc->image.end && code >= x->start && code < x->end)
		proc->image = *x;
}

static __always_inline void vp_xmap_from_rec(struct vp_xmap *x, const struct vp_rec_mmap2 *rec)
{
	x->start = rec->perf.addr;
	x->end = rec->perf.addr + rec->perf.len;
	x->pgoff = rec->perf.pgoff;
	x->file_id = rec->file_id;
	x->verdict = rec->verdict;
	x->flags = rec->hdr.flags & VP_MMAP2_F_REMAPPED ? VP_XMAP_F_REMAPPED : 0;
}

#endif
