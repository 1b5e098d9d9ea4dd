/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the kernel what is mapped at an address of the current task, entering the answer
 * into the table and reporting it.
 */
#ifndef VP_ASK_BPF_H
#define VP_ASK_BPF_H

#include "vp_mm_walk.bpf.h"
#include "vp_vma.bpf.h"
#include "vp_xmap.bpf.h"

/*
 * The answer and its record. A program that can be preempted may find the buffer taken: it is
 * not waited for.
 */
struct vp_ask_buf {
	__u32 taken;
	__u32 seq;	 /* vp_mapping_seq() when it was true */
	__u32 known;	 /* its record was sent before */
	__u32 seq_given; /* seq is the asker's: what holds of the VMA no lock says now */
	__u32 reserved;
	__u64 at; /* what is asked for */
	__u64 ts_ns;
	__u64 then; /* VP_ASK_THEN(vp_mapping_seq() at ts_ns), or 0: that is now */
	/* Addresses of the VMA and its task: here the verifier forgets that they are pointers. */
	__u64 vma_addr;
	__u64 task_addr;
	struct vp_xmap xmap;
	struct vp_vma vma; /* not on the stack: all frames of a call chain share 512 bytes */
	struct vp_mmap2_buf mmap2;
};

struct vp_range {
	__u64 start, end; /* [start, end) */
};

#define VP_ASK_THEN(seq) (1ULL << 32 | (seq))

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_ask_buf);
} ask_buf SEC(".maps");

static __always_inline struct vp_ask_buf *vp_ask_buf(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&ask_buf, &zero);
}

/*
 * First part of an answer: the VMA at vma_addr, as the table would have it. A global function:
 * verified once.
 */
__noinline int vp_describe_range(void)
{
	struct vp_ask_buf *ask = vp_ask_buf();
	struct vp_rec_mmap2 *rec;
	struct vp_vma *v;

	if (!ask)
		return 0;
	rec = &ask->mmap2.rec;
	v = &ask->vma;
	vp_read_vma(v, (void *)ask->vma_addr);
	if (!ask->seq_given)
		ask->seq = vp_mapping_seq(v->mm, ask->ts_ns);
	vp_fill_hdr(&rec->hdr, VP_REC_MMAP2, 0);
	/* What is there now may not have been there then. */
	if (!ask->then || ask->then == VP_ASK_THEN(ask->seq))
		rec->hdr.ts_ns = ask->ts_ns;
	vp_fill_range(rec, v);
	vp_xmap_from_rec(&ask->xmap, rec);
	return 0;
}

/* Last part: what user space calls the file. */
__noinline int vp_describe_name(void)
{
	struct vp_ask_buf *ask = vp_ask_buf();
	__u32 len;

	if (!ask)
		return 0;
	if (ask->vma.file)
		vp_fill_user_file(&ask->mmap2.rec, ask->vma.file);
	len = vp_set_vma_name(&ask->mmap2, &ask->vma, (void *)ask->vma_addr,
			      (void *)ask->task_addr);
	vp_finish_mmap2(&ask->mmap2, len);
	return 0;
}

/*
 * Is this anonymous memory where the main program's text was? Servers move their text to huge
 * pages so; a JIT cannot be there. Then it is known by the file that the text came from.
 */
static __always_inline void vp_recall_image(struct vp_ask_buf *ask, const struct vp_proc *proc)
{
	struct vp_rec_mmap2 *rec = &ask->mmap2.rec;

	if (ask->xmap.verdict != VP_VERDICT_ANON_EXEC || ask->xmap.start < proc->image.start ||
	    ask->xmap.end > proc->image.end)
		return;
	rec->verdict = VP_VERDICT_FILE;
	rec->file_id = proc->image.file_id;
	rec->perf.pgoff = proc->image.pgoff + (ask->xmap.start - proc->image.start);
	rec->hdr.flags |= VP_MMAP2_F_REMAPPED;
	vp_xmap_from_rec(&ask->xmap, rec);
}

/* All of an answer, as far as it is wanted: a name takes longer than all the rest. */
static __always_inline void vp_describe(struct task_struct *task, __u64 vma_addr)
{
	struct vp_ask_buf *ask = vp_ask_buf();
	struct vp_proc *proc;

	if (!ask)
		return;
	ask->vma_addr = vma_addr;
	ask->task_addr = (__u64)task;
	vp_describe_range();
	ask->known = ask->xmap.verdict == VP_VERDICT_NOT_EXEC;
	proc = vp_proc_get(task);
	if (proc && !ask->known) {
		vp_recall_image(ask, proc);
		ask->known = vp_xmap_is_known(proc, &ask->xmap, ask->at, ask->seq);
	}
	if (ask->known)
		return;
	vp_fill_owner(&ask->mmap2.rec, task, ask->vma.mm);
	vp_describe_name();
}

/*
 * bpf_find_vma's callback: describes, but sends nothing. It must never call bpf_find_vma nor take
 * a build-id stack: on kernels without fa9dcacdcdf4 that leaks the target's mmap_lock.
 */
static long vp_on_vma(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	vp_describe(task, (__u64)vma);
	return 0;
}

/* Has the VMA at this address been just what was described, in this mm and there, all the time? */
static __always_inline bool vp_is_still(const struct vp_vma *v, __u64 vma_addr, __u64 mm, __u64 at)
{
	const struct vm_area_struct *vma = (const void *)vma_addr;

	return (__u64)v->mm == mm && at >= v->start && at < v->end &&
	       BPF_CORE_READ(vma, vm_mm) == v->mm && BPF_CORE_READ(vma, vm_start) == v->start &&
	       BPF_CORE_READ(vma, vm_end) == v->end && BPF_CORE_READ(vma, vm_file) == v->file;
}

/*
 * The same question answered by reading the tree. A mapping that is found is that or was it a
 * moment ago; that there is none is believed only if nobody was changing anything.
 */
static __always_inline long vp_ask_tree(struct vp_ask_buf *ask, struct task_struct *task)
{
	__u64 mm_addr = vp_mm(task), vma;
	struct mm_struct *mm = (void *)mm_addr;
	__u32 seq = vp_mapping_seq(mm, ask->ts_ns);
	bool changing = vp_mm_is_changing(mm);

	if (!vp_mm_walk_on)
		return -EBUSY;
	vma = vp_mm_walk(mm_addr, ask->at);
	if (vma == VP_MM_UNCLEAR)
		return -EBUSY;
	if (vma == VP_MM_NOTHING)
		return changing || vp_mm_is_changing(mm) || vp_mapping_seq(mm, ask->ts_ns) != seq
			       ? -EBUSY
			       : -ENOENT;
	ask->seq = seq;
	ask->seq_given = 1;
	vp_describe(task, vma);
	if (!vp_is_still(&ask->vma, vma, mm_addr, ask->at) ||
	    !vp_mm_walk_saw(ask->vma.start, ask->vma.end))
		return -EBUSY;
	if (!ask->known && vp_half_changes_are_seen() && (changing || vp_mm_is_changing(mm)))
		return -EBUSY;
	return 0;
}

/*
 * Sends the record and enters the mapping. For a new file the reader is woken at once: the
 * process may not live until the next look. Not for anonymous memory: a JIT must not cost
 * wakeups. False: the record is lost, and nobody may speak of the mapping.
 */
static __always_inline bool vp_publish(struct task_struct *task, struct vp_ask_buf *ask)
{
	struct vp_proc *proc = vp_proc_get(task);
	__u32 size = ask->mmap2.rec.hdr.size;
	__u64 wakeup = BPF_RB_NO_WAKEUP;
	int entered = VP_ENTER_REFUSED;

	if (!proc)
		vp_count(VP_CNT_TABLE_BUSY);
	else
		entered = vp_xmap_enter(proc, task, &ask->xmap, ask->at, ask->seq);
	if (entered == VP_ENTER_KNOWN)
		return true;
	/* task is not always the current one: it may have exec'd since. */
	if (entered == VP_ENTER_NEW && proc->mm != (__u64)ask->vma.mm) {
		vp_proc_unlock(proc);
		return false;
	}
	if (entered == VP_ENTER_NEW) {
		ask->mmap2.rec.generation = proc->generation + 1;
		if (ask->xmap.verdict == VP_VERDICT_FILE)
			wakeup = BPF_RB_FORCE_WAKEUP;
	}
	/* A rename at this moment may mix two names, but the last byte is always 0. */
	BPF_CORE_READ_INTO(&ask->mmap2.rec.comm, task, comm);
	if (size > sizeof(ask->mmap2))
		size = sizeof(ask->mmap2);
	if (bpf_ringbuf_output(&rb, &ask->mmap2, size, wakeup)) {
		vp_count(VP_CNT_LOST_MMAP2);
		if (entered == VP_ENTER_NEW)
			vp_proc_unlock(proc);
		return false;
	}
	if (entered == VP_ENTER_NEW) {
		vp_note_image(proc, &ask->xmap, task);
		vp_xmap_publish(proc, &ask->xmap, ask->at, ask->seq);
	}
	return true;
}

static __always_inline __u32 vp_ask_locked(struct vp_ask_buf *ask, bool by_tree)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long err = -EBUSY;

	if (!by_tree) {
		err = bpf_find_vma(task, ask->at, vp_on_vma, NULL, 0);
		vp_count(err == -EBUSY ? VP_CNT_FIND_BUSY
			 : err	       ? VP_CNT_FIND_NONE
				       : VP_CNT_FIND_OK);
	}
	if (err == -EBUSY) {
		err = vp_ask_tree(ask, task);
		if (!err)
			vp_count(VP_CNT_TREE_OK);
	}
	if (err)
		return err == -EBUSY ? VP_VERDICT_BUSY : VP_VERDICT_NO_VMA;
	if (!ask->known && !vp_publish(task, ask))
		return VP_VERDICT_BUSY;
	return ask->xmap.verdict;
}

/*
 * The verdict on pc in the current task, and in *found what it lies in, if that is executable;
 * VP_VERDICT_BUSY says nothing about the address. The record of a mapping that is reported is dated
 * ts_ns: the sample's, which must not precede it; unless the process has changed its mappings since
 * `then`. By bpf_find_vma, which with IRQs off can answer once an interrupt, and where that cannot
 * answer (or by_tree says that it was asked) by the tree of the mm. A global function: verified
 * once, not once for each state of the unwinder's loop that calls it.
 */
__noinline int vp_ask(__u64 pc, __u64 ts_ns, struct vp_xmap *found, __u32 by_tree, __u64 then)
{
	struct vp_ask_buf *ask = vp_ask_buf();
	__u32 verdict;

	if (!found || !ask || __sync_val_compare_and_swap(&ask->taken, 0, 1) != 0)
		return VP_VERDICT_BUSY;
	ask->at = pc;
	ask->ts_ns = ts_ns;
	ask->then = then;
	ask->seq_given = 0;
	verdict = vp_ask_locked(ask, by_tree);
	/* Before the buffer is free for whoever preempts this program. */
	if (verdict <= VP_VERDICT_SPECIAL)
		*found = ask->xmap;
	__sync_lock_test_and_set(&ask->taken, 0);
	return verdict;
}

/*
 * What the tree says the range of the mapping at `at` is: 0, with start 0 and end 0 where nothing is mapped, or
 * -EBUSY. It can be one of a moment ago. A global function: verified once.
 */
__noinline int vp_tree_range(__u64 at, struct vp_range *range)
{
	struct vp_ask_buf *ask = vp_ask_buf();
	__u64 mm_addr = vp_mm(bpf_get_current_task_btf());
	const struct vm_area_struct *vma;
	int err = -EBUSY;

	if (!range || !ask || !vp_mm_walk_on || __sync_val_compare_and_swap(&ask->taken, 0, 1) != 0)
		return -EBUSY;
	vma = (const void *)vp_mm_walk(mm_addr, at);
	range->start = 0;
	range->end = 0;
	if ((__u64)vma == VP_MM_NOTHING) {
		err = vp_mm_is_changing((void *)mm_addr) ? -EBUSY : 0;
	} else if ((__u64)vma != VP_MM_UNCLEAR) {
		range->start = BPF_CORE_READ(vma, vm_start);
		range->end = BPF_CORE_READ(vma, vm_end);
		if ((__u64)BPF_CORE_READ(vma, vm_mm) == mm_addr && at >= range->start &&
		    at < range->end && vp_mm_walk_saw(range->start, range->end))
			err = 0;
	}
	__sync_lock_test_and_set(&ask->taken, 0);
	return err;
}

#endif
