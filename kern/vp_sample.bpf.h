/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a sample is made of whatever the mode: who was interrupted, and its kernel stack. */
#ifndef VP_SAMPLE_BPF_H
#define VP_SAMPLE_BPF_H

#include "vp_resolve.bpf.h"
#include "vp_target.bpf.h"

/* Data waiting in the ring, bytes, beyond which a sample wakes the reader at once. */
const volatile __u64 vp_wakeup_bytes = 0;

/* The sample being made. Used in the interrupt alone, which is never nested on a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_stack_buf);
} sample_buf SEC(".maps");

#define VP_KERN_BYTES (VP_MAX_KERN_FRAMES * sizeof(__u64))

static __always_inline void vp_fill_sample(struct vp_rec_sample *rec, struct task_struct *task,
					   struct bpf_perf_event_data *ctx)
{
	vp_fill_hdr(&rec->hdr, VP_REC_SAMPLE, 0);
	if (!vp_cs_is_user(ctx->regs.cs))
		rec->hdr.flags |= VP_SAMPLE_F_KERNEL_MODE;
	vp_fill_proc_id(&rec->proc, task);
	rec->tid = vp_tid(task);
	rec->period = ctx->sample_period;
	bpf_get_current_comm(rec->comm, sizeof(rec->comm));
	__builtin_memset(rec->reserved, 0, sizeof(rec->reserved));
	rec->user_cnt = 0;
	rec->user_end = VP_END_KERNEL_ONLY;
	rec->cookie = 0;
}

/* The kernel stack, at the start of the tail; frame_off is behind it. */
static __always_inline void vp_kernel_stack(struct vp_stack_buf *b, struct bpf_perf_event_data *ctx)
{
	long n = bpf_get_stack(ctx, b->tail, VP_KERN_BYTES, 0);
	__u32 bytes = 0;

	if (n >= 0)
		bytes = (__u32)n & ~7U;
	/* -EFAULT: nothing to show; a sample in user mode has no kernel stack. */
	else if (b->sample.hdr.flags & VP_SAMPLE_F_KERNEL_MODE)
		vp_count(VP_CNT_KERN_STACK_FAILED);
	if (bytes >= VP_KERN_BYTES) {
		bytes = VP_KERN_BYTES;
		b->sample.hdr.flags |= VP_SAMPLE_F_KERN_CUT;
	}
	b->frame_off = bytes;
	b->sample.kern_cnt = bytes / sizeof(__u64);
}

/*
 * Starts a sample of the current task in this CPU's buffer: all but the user stack. NULL: it is
 * not wanted.
 */
static __always_inline struct vp_stack_buf *vp_start_sample(struct task_struct *task,
							    struct bpf_perf_event_data *ctx)
{
	struct vp_stack_buf *b;
	__u32 zero = 0;

	if (task->pid == 0 || !vp_current_is_wanted(task))
		return NULL;
	b = bpf_map_lookup_elem(&sample_buf, &zero);
	if (!b)
		return NULL;
	vp_fill_sample(&b->sample, task, ctx);
	vp_kernel_stack(b, ctx);
	return b;
}

/* Has the task a user side? Kernel threads have none, nor do the kernel's helpers of a process. */
static __always_inline bool vp_has_user_side(struct task_struct *task)
{
	return !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER)) && vp_mm(task);
}

static __always_inline __u64 vp_wakeup_flag(void)
{
	return bpf_ringbuf_query(&rb, BPF_RB_AVAIL_DATA) > vp_wakeup_bytes ? BPF_RB_FORCE_WAKEUP
									   : BPF_RB_NO_WAKEUP;
}

/* Sends b->sample with what is in the tail. Ring full: it is lost, and counted. */
static __always_inline void vp_send_sample(struct vp_stack_buf *b)
{
	__u32 size = sizeof(b->sample) + b->frame_off;

	if (size > sizeof(b->sample) + sizeof(b->tail))
		size = sizeof(b->sample) + sizeof(b->tail);
	b->sample.hdr.size = size;
	if (bpf_ringbuf_output(&rb, &b->sample, size, vp_wakeup_flag()))
		vp_count(VP_CNT_LOST_SAMPLE);
	else
		vp_count(VP_CNT_SAMPLES);
}

#endif
