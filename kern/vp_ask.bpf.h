/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asking the kernel what is mapped at an address of the current task, entering the answer
 * into the table and reporting it.
 */
#ifndef VP_ASK_BPF_H
#define VP_ASK_BPF_H

#include "vp_vma.bpf.h"
#include "vp_xmap.bpf.h"

/*
 * The answer and its record. A program that can be preempted may find the buffer taken: it is
 * not waited for.
 */
struct vp_ask_buf {
	__u32 taken;
	__u32 seq; /* vp_mapping_seq() when it was true */
	struct vp_xmap xmap;
	struct vp_vma vma; /* not on the stack: all frames of a call chain share 512 bytes */
	struct vp_mmap2_buf mmap2;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_ask_buf);
} ask_buf SEC(".maps");

/*
 * bpf_find_vma's callback: describes, but sends nothing. It must never call bpf_find_vma nor take
 * a build-id stack: on kernels without fa9dcacdcdf4 that leaks the target's mmap_lock.
 */
static long vp_describe(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	__u32 zero = 0;
	struct vp_ask_buf *ask = bpf_map_lookup_elem(&ask_buf, &zero);
	struct vp_mmap2_buf *buf;
	struct vp_vma *v;

	if (!ask)
		return 0;
	buf = &ask->mmap2;
	v = &ask->vma;
	vp_read_vma(v, vma);
	ask->seq = vp_mapping_seq(v->mm);
	vp_fill_hdr(&buf->rec.hdr, VP_REC_MMAP2, 0);
	vp_fill_owner(&buf->rec, task, v->mm);
	vp_fill_mapping(&buf->rec, v);
	vp_finish_mmap2(buf, vp_set_vma_name(buf, v, vma, task));
	return 0;
}

/*
 * Sends the record and enters the mapping. For a new file the reader is woken at once: the
 * process may not live until the next look. Not for anonymous memory: a JIT must not cost
 * wakeups; nor for what finds no room in the table and is reported again and again.
 */
static __always_inline void vp_publish(struct task_struct *task, struct vp_ask_buf *ask)
{
	struct vp_proc *proc = vp_proc_get(task);
	__u32 size = ask->mmap2.rec.hdr.size;
	__u64 wakeup = BPF_RB_NO_WAKEUP;
	int entered = VP_ENTER_REFUSED;

	if (proc)
		entered = vp_xmap_enter(proc, task, &ask->xmap, ask->seq);
	if (entered == VP_ENTER_KNOWN)
		return;
	if (entered == VP_ENTER_NEW && ask->xmap.verdict == VP_VERDICT_FILE)
		wakeup = BPF_RB_FORCE_WAKEUP;
	bpf_get_current_comm(ask->mmap2.rec.comm, VP_COMM_LEN);
	if (size > sizeof(ask->mmap2))
		size = sizeof(ask->mmap2);
	if (bpf_ringbuf_output(&rb, &ask->mmap2, size, wakeup)) {
		vp_count(VP_CNT_LOST_MMAP2);
		if (entered == VP_ENTER_NEW)
			vp_proc_unlock(proc);
		return;
	}
	if (entered == VP_ENTER_NEW)
		vp_xmap_publish(proc, &ask->xmap, ask->seq);
}

static __always_inline __u32 vp_ask_locked(struct vp_ask_buf *ask, __u64 pc, __u64 ts_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long err = bpf_find_vma(task, pc, vp_describe, NULL, 0);

	if (err == -EBUSY) {
		vp_count(VP_CNT_FIND_BUSY);
		return VP_VERDICT_BUSY;
	}
	if (err) {
		vp_count(VP_CNT_FIND_NONE);
		return VP_VERDICT_NO_VMA;
	}
	vp_count(VP_CNT_FIND_OK);
	ask->mmap2.rec.hdr.ts_ns = ts_ns;
	vp_xmap_from_rec(&ask->xmap, &ask->mmap2.rec);
	if (ask->xmap.verdict != VP_VERDICT_NOT_EXEC)
		vp_publish(task, ask);
	return ask->xmap.verdict;
}

/*
 * The verdict on pc in the current task, and what it lies in, in *found, if that is executable; VP_VERDICT_BUSY says nothing about the address. The
 * record of a mapping that is reported is dated ts_ns: the sample's, which must not precede it.
 * With IRQs off it can answer once an interrupt. A global function: verified once, not once
 * for each state of the unwinder's loop that calls it.
 */
__noinline int vp_ask(__u64 pc, __u64 ts_ns, struct vp_xmap *found)
{
	__u32 zero = 0, verdict;
	struct vp_ask_buf *ask = bpf_map_lookup_elem(&ask_buf, &zero);

	if (!found || !ask || __sync_val_compare_and_swap(&ask->taken, 0, 1) != 0)
		return VP_VERDICT_BUSY;
	verdict = vp_ask_locked(ask, pc, ts_ns);
	/* Before the buffer is free for whoever preempts this program. */
	if (verdict <= VP_VERDICT_SPECIAL)
		*found = ask->xmap;
	__sync_lock_test_and_set(&ask->taken, 0);
	return verdict;
}

#endif
