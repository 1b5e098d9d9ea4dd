// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sampler of inline mode: kernel stack and user stack in the interrupt, every user PC
 * resolved to a file and an offset before the sample leaves the kernel.
 */
#include "vp_sample.bpf.h"
#include "vp_unwind.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static long vp_unwind_step(__u32 i, void *data)
{
	return vp_step(data, false);
}

/*
 * User registers: those of the sample if it interrupted user mode, else those that the task
 * entered the kernel with. False: there are none.
 */
static __always_inline bool vp_user_regs(struct vp_stack_buf *b, struct task_struct *task,
					 struct bpf_perf_event_data *ctx)
{
	struct pt_regs *saved;
	__u64 cs = ctx->regs.cs;

	/* Read on both paths: clang must not merge the two pointers, one is the context. */
	vp_copy_regs(b->reg, &ctx->regs);
	b->pc = ctx->regs.ip;
	b->in_syscall = 0;
	if (!vp_cs_is_user(cs)) {
		if (!vp_has_user_side(task))
			return false;
		saved = (void *)bpf_task_pt_regs(task);
		cs = saved->cs;
		if (!vp_cs_is_user(cs))
			return false;
		vp_copy_regs(b->reg, saved);
		b->pc = saved->ip;
		b->in_syscall = vp_is_syscall(saved);
	}
	b->word = vp_cs_word(cs);
	return true;
}

/*
 * A system call that returns to where nothing is mapped: execve has given up the old image, and the
 * registers are still the old one's.
 */
static __always_inline void vp_drop_old_image(struct vp_stack_buf *b)
{
	struct vp_frame *f = vp_frame_at(b, b->first_off);

	if (!b->in_syscall || !f || f->verdict != VP_VERDICT_NO_VMA)
		return;
	b->frame_off = b->first_off;
	b->cnt = 0;
	b->end = VP_END_EXITED;
}

/*
 * Hook: a perf event on each CPU, in hardirq (cpu-clock) or NMI (hardware); IRQs are off,
 * so nothing may sleep or fault and bpf_find_vma can be asked once. Reads the current task's
 * stacks; writes one VP_REC_SAMPLE and at most one VP_REC_MMAP2. Bound: 127 kernel and
 * VP_MAX_USER_FRAMES user frames. Whatever fails on the user side, the kernel frames are
 * sent, with the reason. Ring full: the sample is lost and counted.
 */
SEC("perf_event")
int vp_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct vp_stack_buf *b = vp_start_sample(task, ctx);
	struct vp_unwind u = {.buf = b, .task = task};

	if (!b)
		return 0;
	if (vp_user_regs(b, task, ctx)) {
		b->ts_ns = b->sample.hdr.ts_ns;
		vp_unwind_user(&u, vp_unwind_step, false);
		vp_drop_old_image(b);
		b->sample.user_cnt = b->cnt;
		b->sample.user_end = b->end;
		vp_count_n(VP_CNT_FRAMES, b->cnt);
	}
	vp_send_sample(b);
	return 0;
}
