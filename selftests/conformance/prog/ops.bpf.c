// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls what user space has written into ops[], in the context that a case is about: a sample's
 * interrupt (IRQs off) or a system call (IRQs on), of one process.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "ops.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EBUSY  16
#define ENOENT 2
#define EINVAL 22

/* uapi/linux/bpf.h: struct bpf_stack_build_id */
struct frame_id {
	__s32 status;
	__u8 build_id[20];
	__u64 ip;
};

#define STATUS_VALID 1
#define STATUS_IP    2

struct op ops[OPS_MAX] = {};
__u32 op_cnt = 0;
__u32 wanted_tgid = 0;	/* whose interrupts and system calls count */
__u32 wanted_flags = 0; /* or: any task with one of these flags */
__u64 runs = 0;		/* of ops[], complete */
__u64 runs_max = ~0ULL;

/* ctx: the number of the op, on the caller's stack: callbacks get no pointer into a map. */

static long on_inner_vma(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return 0;
}

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	__u32 i = *(__u32 *)ctx;
	struct op *o;

	if (i >= OPS_MAX)
		return 0;
	o = &ops[i];
	o->called++;
	o->start = vma->vm_start;
	o->end = vma->vm_end;
	return 0;
}

static long on_outer_vma(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	__u32 i = *(__u32 *)ctx;

	on_vma(task, vma, ctx);
	if (i < OPS_MAX)
		ops[i].last_inner = bpf_find_vma(task, ops[i].addr, on_inner_vma, ctx, 0);
	return 0;
}

static __always_inline void count(struct op *o, long err)
{
	o->last = err;
	if (err == 0)
		o->ok++;
	else if (err == -EBUSY)
		o->busy++;
	else if (err == -ENOENT)
		o->noent++;
	else if (err == -EINVAL)
		o->inval++;
	else
		o->other++;
}

static __always_inline void build_ids(struct op *o, void *ctx)
{
	struct frame_id id[8] = {};
	long n = bpf_get_stack(ctx, id, sizeof(id), BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);

	count(o, n < 0 ? n : 0);
	for (int i = 0; i < 8; i++) {
		if (n < (long)((i + 1) * sizeof(id[0])))
			break;
		o->by_ip += id[i].status == STATUS_IP;
		o->by_id += id[i].status == STATUS_VALID;
	}
}

static __always_inline void run_op(__u32 i, struct task_struct *task, void *ctx)
{
	struct op *o = &ops[i];

	switch (o->kind) {
	case OP_FIND_VMA:
		count(o, bpf_find_vma(task, o->addr, on_vma, &i, o->flags));
		break;
	case OP_FIND_FOREIGN:
		count(o, bpf_find_vma(task->real_parent, o->addr, on_vma, &i, 0));
		break;
	case OP_FIND_NESTED:
		count(o, bpf_find_vma(task, o->addr, on_outer_vma, &i, 0));
		break;
	case OP_BUILD_IDS:
		build_ids(o, ctx);
		break;
	}
}

static __always_inline bool is_wanted(struct task_struct *task)
{
	if (runs >= runs_max)
		return false;
	if (wanted_flags)
		return task->flags & wanted_flags;
	return (__u32)task->tgid == wanted_tgid;
}

static __always_inline void run_ops(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!is_wanted(task))
		return;
	for (__u32 i = 0; i < OPS_MAX; i++) {
		if (i >= op_cnt)
			break;
		run_op(i, task, ctx);
	}
	__sync_fetch_and_add(&runs, 1);
}

/* Hook: a sample; hardirq, IRQs off. */
SEC("perf_event")
int ops_in_interrupt(struct bpf_perf_event_data *ctx)
{
	run_ops(ctx);
	return 0;
}

/* Hook: entry of a system call; IRQs on. Only getppid, so that setting up does not count. */
SEC("raw_tp/sys_enter")
int ops_in_syscall(struct bpf_raw_tracepoint_args *ctx)
{
	if (ctx->args[1] == 110)
		run_ops(ctx);
	return 0;
}

/* Hook: mmap() looks for a free range; IRQs on, mmap_lock is held for writing. */
SEC("raw_tp/vm_unmapped_area")
int ops_in_mmap(struct bpf_raw_tracepoint_args *ctx)
{
	run_ops(ctx);
	return 0;
}

/* Hook: a task is offered to a reader; IRQs on. The first op, of children of the wanted process. */
SEC("iter/task")
int op_of_children(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 i = 0;

	if (!task || (__u32)task->real_parent->tgid != wanted_tgid)
		return 0;
	count(&ops[0], bpf_find_vma(task, ops[0].addr, on_vma, &i, 0));
	runs++;
	return 0;
}
