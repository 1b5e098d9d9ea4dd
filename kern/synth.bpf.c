// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Synthesis: the mappings that exist, as VP_REC_MMAP2 records on the ring. One reader of the
 * iterator at a time: `walk_buf` is shared.
 */
#define VP_DIRECT_READS
#include "vp_xmap.bpf.h"
#include "vp_vma.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* All mappings, not only executable ones. */
const volatile bool vp_all_maps = false;
/* Enter executable mappings into `procs` and report only those not there yet. */
const volatile bool vp_walk_fills_table = false;

/*
 * Where the iterator's own task filter is missing (before 6.1) or does not reach the threads of
 * a leader that has exited (6.1): one walk over everything, filtered here. Keys: tgid in the
 * reader's namespace. Both are set between walks.
 */
bool vp_walk_filter = false;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} walk_tgids SEC(".maps");

/*
 * Whether any VMA was offered in this walk, wanted or not (a single unwanted one may go
 * unnoticed: a second, filtered walk then finds nothing either).
 */
bool vp_walk_offered = false;

/* The record being made: too large for the stack, written by the one reader's program. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_mmap2_buf);
} walk_buf SEC(".maps");

/*
 * Which thread speaks for a process whose leader has exited. key: (tgid, mm); value: the tid
 * first seen. Cleared by user space between walks.
 */
struct vp_walk_key {
	__u64 mm;
	__u32 tgid;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct vp_walk_key);
	__type(value, __u32);
} walk_seen SEC(".maps");

/*
 * The iterator offers an mm once for each task with a files table of its own and, when the
 * leader is a zombie, once for each thread. One of them counts.
 */
static __always_inline bool vp_speaks_for_mm(struct task_struct *task)
{
	struct vp_walk_key key = {};
	__u32 tid = task->pid, *seen;

	if (VP_READ2(task, group_leader, mm))
		return task->pid == task->tgid;

	key.mm = vp_mm(task);
	key.tgid = task->tgid;
	seen = bpf_map_lookup_elem(&walk_seen, &key);
	if (seen)
		return *seen == tid;
	if (bpf_map_update_elem(&walk_seen, &key, &tid, BPF_NOEXIST))
		vp_count(VP_CNT_WALK_DEDUPE_FULL);
	return true;
}

/*
 * What the VMAs of one task share is found out at the first and kept in the record: whose they
 * are and whether they are wanted. User space clears vp_walk_task between walks.
 */
__u64 vp_walk_task = 0;
__u64 vp_walk_mm = 0;
bool vp_walk_wanted = false;
__u16 vp_walk_flags = 0; /* for hdr.flags */
bool vp_walk_readers_root = false;

static __always_inline bool vp_walk_wants(struct task_struct *task)
{
	__u32 tgid;

	if (vp_walk_filter) {
		tgid = vp_tgid(task);
		if (!bpf_map_lookup_elem(&walk_tgids, &tgid))
			return false;
	}
	return vp_speaks_for_mm(task);
}

static __always_inline void vp_walk_meet(struct task_struct *task, struct mm_struct *mm,
					 struct vp_mmap2_buf *buf)
{
	vp_walk_task = (__u64)task;
	vp_walk_mm = (__u64)mm;
	vp_walk_wanted = vp_walk_wants(task);
	if (!vp_walk_wanted)
		return;
	vp_fill_hdr(&buf->rec.hdr, VP_REC_MMAP2, 0);
	buf->rec.hdr.flags = VP_MMAP2_F_FROM_WALK;
	vp_fill_owner(&buf->rec, task, mm);
	vp_walk_flags = buf->rec.hdr.flags;
	vp_walk_readers_root = vp_has_readers_root(task);
	BPF_CORE_READ_INTO(&buf->rec.comm, task, group_leader, comm);
}

/* 0, or 1 if the ring is full. */
static __always_inline int vp_walk_send(struct vp_mmap2_buf *buf, __u32 size)
{
	if (size > sizeof(*buf))
		return 0;
	return bpf_ringbuf_output(&rb, buf, size, BPF_RB_NO_WAKEUP) ? 1 : 0;
}

/* Sends the record unless one was sent before; 1 if the ring is full. */
static __always_inline int vp_walk_enter(struct task_struct *task, struct vp_mmap2_buf *buf,
					 __u32 size, __u32 seq)
{
	struct vp_proc *proc = vp_proc_get(task);
	struct vp_xmap x;
	int full;

	if (!proc)
		return vp_walk_send(buf, size);
	vp_xmap_from_rec(&x, &buf->rec);
	switch (vp_xmap_enter(proc, task, &x, x.start, seq)) {
	case VP_ENTER_KNOWN:
		return 0;
	case VP_ENTER_REFUSED:
		return vp_walk_send(buf, size);
	}
	buf->rec.generation = proc->generation + 1;
	full = vp_walk_send(buf, size);
	if (full) {
		vp_proc_unlock(proc);
		return full;
	}
	vp_note_image(proc, &x, task);
	vp_xmap_publish(proc, &x, x.start, seq);
	return 0;
}

/* A VMA that is executable or wanted all the same; 1 if the ring is full. */
static __noinline int vp_walk_vma(struct task_struct *task, struct vm_area_struct *vma)
{
	struct vp_mmap2_buf *buf;
	__u32 zero = 0, size, len;
	struct vp_vma v;

	vp_walk_offered = true;
	buf = bpf_map_lookup_elem(&walk_buf, &zero);
	if (!buf)
		return 0;

	vp_read_vma(&v, vma);
	if (vp_walk_task != (__u64)task || vp_walk_mm != (__u64)v.mm)
		vp_walk_meet(task, v.mm, buf);
	if (!vp_walk_wanted)
		return 0;
	buf->rec.hdr.flags = vp_walk_flags;
	vp_fill_mapping(&buf->rec, &v);
	len = vp_set_walk_name(buf, &v, vma, task, vp_walk_readers_root);
	size = vp_finish_mmap2(buf, len);
	if (vp_walk_fills_table && buf->rec.verdict != VP_VERDICT_NOT_EXEC)
		return vp_walk_enter(task, buf, size, vp_mapping_seq(v.mm, bpf_ktime_get_ns()));
	return vp_walk_send(buf, size);
}

/*
 * Hook: each VMA of each task, in process context of the reader, the mm's lock held for
 * read, not sleepable. Writes a record per mapping to `rb`. Ring full: returns 1, so read()
 * gives EAGAIN, the reader drains and the same VMA is offered again; nothing is lost.
 * No seq output ever: its overflow would run the program twice for a VMA.
 */
SEC("iter/task_vma")
int vp_walk(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;

	if (!vma || !task) {
		/* The last call of a walk; seq_num is 0 after one VMA as after none. */
		if (ctx->meta->seq_num > 0)
			vp_walk_offered = true;
		return 0;
	}
	/*
	 * Most VMAs end here, in a large process 100,000 of them: nothing else on this path, and
	 * what comes after it in a function of its own, so that no register has to be saved.
	 */
	if (!vp_all_maps && !(vma->vm_flags & VM_EXEC))
		return 0;
	return vp_walk_vma(task, vma) ? 1 : 0;
}
