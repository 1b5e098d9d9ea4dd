// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Live tracking: new mappings as they are made, by a program on perf_event_mmap(). The loader takes
 * one of them: a kernel may refuse the other.
 */
#include "vp_ask.bpf.h"
#include "vp_target.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * A mapping that one thread makes is there for all of its process: where threads are sampled,
 * those processes are wanted that have a table.
 */
static __always_inline bool vp_live_wants(struct task_struct *current)
{
	__u32 tgid = current->tgid;

	if (vp_filter == VP_FILTER_TID)
		return bpf_map_lookup_elem(&procs, &tgid) != NULL;
	return vp_current_is_wanted(current);
}

/* Executable, and not just memory: what a JIT maps costs no record. */
static __always_inline bool vp_live_is_code(struct vm_area_struct *vma)
{
	const struct vm_operations_struct *ops;

	if (!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC))
		return false;
	if (BPF_CORE_READ(vma, vm_file))
		return true;
	ops = BPF_CORE_READ(vma, vm_ops);
	return ops && BPF_CORE_READ(vma, vm_private_data) && BPF_CORE_READ(ops, name);
}

/* Describes, enters and reports; what bpf_find_vma's answer goes through in a sample, too. */
static __noinline int vp_live_publish(struct task_struct *current, struct vm_area_struct *vma)
{
	struct vp_ask_buf *ask = vp_ask_buf();

	if (!ask || __sync_val_compare_and_swap(&ask->taken, 0, 1) != 0) {
		vp_count(VP_CNT_LIVE_BUSY);
		return 0;
	}
	ask->at = BPF_CORE_READ(vma, vm_start);
	ask->ts_ns = bpf_ktime_get_ns();
	/* The lock is held: true from when it is released. */
	ask->seq = vp_mapping_seq_after(BPF_CORE_READ(vma, vm_mm), ask->ts_ns);
	ask->seq_given = 1;
	/* A fork's first mapping must not hide what it has from its parent. */
	vp_proc_get_or_inherit(current, ask->ts_ns);
	vp_describe(current, (__u64)vma);
	if (!ask->known && ask->xmap.verdict != VP_VERDICT_ANON_EXEC)
		vp_publish(current, ask);
	__sync_lock_test_and_set(&ask->taken, 0);
	return 0;
}

/*
 * Hook: perf_event_mmap(vma), in the thread that maps, after the vma is in place: mmap, mprotect,
 * the loaders of exec. Process context, IRQs on, mmap_lock held for write: vma is stable and
 * bpf_find_vma would find the lock taken. Not called for mremap, munmap and brk that shrinks: an
 * answer that contradicts the table replaces it later. Nearly all calls end at the first test.
 */
static __always_inline int vp_live(struct vm_area_struct *vma)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (!vp_live_is_code(vma))
		return 0;
	if ((__u64)BPF_CORE_READ(vma, vm_mm) != vp_mm(current) || !vp_live_wants(current))
		return 0;
	return vp_live_publish(current, vma);
}

/* Hook: see vp_live; by a trampoline. Returns 0 always. */
SEC("?fentry/perf_event_mmap")
int BPF_PROG(vp_live_fentry, struct vm_area_struct *vma)
{
	return vp_live(vma);
}

/* Hook: see vp_live; preemption may be off here. Returns 0 always. */
SEC("?kprobe/perf_event_mmap")
int BPF_KPROBE(vp_live_kprobe, struct vm_area_struct *vma)
{
	return vp_live(vma);
}
