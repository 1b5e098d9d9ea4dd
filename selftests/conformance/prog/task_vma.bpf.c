// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Writes down what iter/task_vma offers, and answers as a case wants it to: with output, or with
 * "no room, offer it again".
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "task_vma.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define PF_KTHREAD 0x00200000

/* Written by user space before a read. 0: of any process. */
__u32 wanted_tgid = 0, also_wanted_tgid = 0;
/* 0: whosoever's children. */
__u32 wanted_parent = 0;
/* Calls with a mapping that are answered with 0; those behind them with 1. */
__u64 room = 0;
/* Bytes of output for each mapping, its start first; 0: none. */
__u32 output_bytes = 0;
/* Only count. */
bool is_silent = false;

/* Written by the program. */
__u64 seen_cnt = 0;    /* mappings that were wanted and answered with 0 */
__u64 refused_cnt = 0; /* answered with 1 */
__u64 lost_cnt = 0;    /* that `seen` had no room for */
__u64 end_cnt = 0;     /* calls without a task */
__u64 no_vma_cnt = 0;  /* calls with a task, without a mapping */
__u64 kthread_cnt = 0; /* calls with a kernel thread */

/* Written by a thread of the case, copied into each record. */
__u64 other_work = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SEEN_MAX);
	__type(key, __u32);
	__type(value, struct seen);
} seen SEC(".maps");

/* What output is made of: too large for the stack. One reader at a time. */
#define OUTPUT_MAX 4096
__u64 output[OUTPUT_MAX / sizeof(__u64)] = {};

static __always_inline bool is_wanted(const struct task_struct *task)
{
	__u32 tgid = (__u32)task->tgid;

	if (wanted_parent && (__u32)task->real_parent->tgid != wanted_parent)
		return false;
	return !wanted_tgid || tgid == wanted_tgid || tgid == also_wanted_tgid;
}

static __always_inline void note(struct task_struct *task, struct vm_area_struct *vma)
{
	__u32 i = (__u32)seen_cnt;
	struct seen *s = bpf_map_lookup_elem(&seen, &i);

	if (!s) {
		lost_cnt++;
		return;
	}
	s->start = vma->vm_start;
	s->end = vma->vm_end;
	s->tgid = (__u32)task->tgid;
	s->pid = (__u32)task->pid;
	s->other_work = *(volatile __u64 *)&other_work;
}

static __always_inline void print(struct seq_file *seq, struct vm_area_struct *vma)
{
	__u32 bytes = output_bytes;

	if (!bytes || bytes > OUTPUT_MAX)
		return;
	output[0] = vma->vm_start;
	bpf_seq_write(seq, output, bytes);
}

static __always_inline int visit(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;

	if (!task) {
		end_cnt++;
		return 0;
	}
	if (!vma) {
		no_vma_cnt++;
		return 0;
	}
	if (task->flags & PF_KTHREAD)
		kthread_cnt++;
	if (!is_wanted(task))
		return 0;
	if (seen_cnt >= room) {
		refused_cnt++;
		return 1;
	}
	if (!is_silent)
		note(task, vma);
	seen_cnt++;
	print(ctx->meta->seq, vma);
	return 0;
}

/* Hook: a mapping is offered to a reader; mmap_lock is held for reading, IRQs on. */
SEC("?iter/task_vma")
int walk_vmas(struct bpf_iter__task_vma *ctx)
{
	return visit(ctx);
}

SEC("?iter.s/task_vma")
int walk_vmas_sleepable(struct bpf_iter__task_vma *ctx)
{
	return visit(ctx);
}
