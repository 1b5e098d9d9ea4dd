// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sampler: kernel stack, user stack by frame pointers, every user PC resolved to a file
 * and an offset before the sample leaves the kernel.
 */
#include "vp_ask.bpf.h"
#include "vp_target.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Data waiting in the ring, bytes, beyond which a sample wakes the reader at once. */
const volatile __u64 vp_wakeup_bytes = 0;

struct vp_sample_buf {
	struct vp_rec_sample rec;
	/* Kernel addresses, then frames right behind them. */
	__u8 tail[VP_MAX_KERN_FRAMES * sizeof(__u64) +
		  VP_MAX_USER_FRAMES * sizeof(struct vp_frame)];
};

/* The sample being made. Only this program uses it, and it is never nested on a CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_sample_buf);
} sample_buf SEC(".maps");

struct vp_unwind {
	struct vp_sample_buf *buf;
	struct vp_proc *proc; /* NULL: no table */
	struct task_struct *task;
	__u64 pc;
	__u64 fp;
	__u64 sp;
	__u32 frame_off; /* of the next frame in buf->tail */
	__u32 cnt;
	__u32 word; /* bytes of a stack slot: 8, or 4 in a 32-bit process */
	__u16 end;
	bool asked;	 /* the one bpf_find_vma of this interrupt is spent */
	__u32 now_seq;	 /* vp_mapping_seq() now */
	__u64 doubt_pc;	 /* first frame whose mapping was last confirmed at another seq; 0: none */
	__u64 hit_start; /* range, offset base and file of the last frame's mapping */
	__u64 hit_end;
	__u64 hit_pgoff;
	__u32 hit_file_id;
	__u32 hit_verdict;
};

static __always_inline void vp_remember_hit(struct vp_unwind *u, const struct vp_xmap *x)
{
	u->hit_start = x->start;
	u->hit_end = x->end;
	u->hit_pgoff = x->pgoff;
	u->hit_file_id = x->file_id;
	u->hit_verdict = x->verdict;
}

/* The one question that an interrupt may ask. */
static __always_inline __u32 vp_resolve_unknown(struct vp_unwind *u)
{
	__u32 zero = 0, verdict = vp_ask(u->pc, u->buf->rec.hdr.ts_ns);
	struct vp_ask_buf *ask = bpf_map_lookup_elem(&ask_buf, &zero);

	u->asked = true;
	if (u->proc && verdict != VP_VERDICT_BUSY)
		u->proc->barren = verdict > VP_VERDICT_SPECIAL;
	if (ask && verdict <= VP_VERDICT_SPECIAL)
		vp_remember_hit(u, &ask->xmap);
	return verdict;
}

/* In a barren process every second sample, by a bit of its time that is as good as random. */
static __always_inline bool vp_doubts_first(const struct vp_unwind *u)
{
	return u->doubt_pc && u->proc && u->proc->barren && (u->buf->rec.hdr.ts_ns >> 10) & 1;
}

/*
 * Known mappings first, the one question for the first unknown PC, else BUSY. A PC that is no
 * address at all, as frame pointers yield at the end of many a stack, is unknown in each sample
 * anew: where that happens, doubts (vp_confirm) have to come first now and then.
 */
static __always_inline __u32 vp_resolve(struct vp_unwind *u, __u16 *flags)
{
	__u32 slot;

	if (u->pc >= u->hit_start && u->pc < u->hit_end)
		return u->hit_verdict;
	if (u->proc) {
		slot = vp_xmap_slot(u->proc, u->pc);
		if (slot < VP_XMAPS_PER_PROC) {
			/* Else clang computes the address before the check. */
			barrier_var(slot);
			vp_remember_hit(u, &u->proc->xmap[slot]);
			if (!u->doubt_pc && u->proc->seq[slot] != u->now_seq)
				u->doubt_pc = u->pc;
			/* What was copied while another CPU was writing it does not count. */
			if (u->pc >= u->hit_start && u->pc < u->hit_end)
				return u->hit_verdict;
		}
	}
	if (u->asked || vp_doubts_first(u))
		return VP_VERDICT_BUSY;
	*flags |= VP_FRAME_F_FRESH;
	return vp_resolve_unknown(u);
}

/* The resolution of f->pc by the mapping that was hit last. */
static __always_inline void vp_set_frame(const struct vp_unwind *u, struct vp_frame *f,
					 __u32 verdict)
{
	f->offset = 0;
	f->file_id = VP_FILE_ID_NONE;
	f->verdict = verdict;
	if (verdict == VP_VERDICT_FILE || verdict == VP_VERDICT_VDSO) {
		f->offset = f->pc - u->hit_start + u->hit_pgoff;
		f->file_id = u->hit_file_id;
	}
}

/* Resolves u->pc and appends it; returns the verdict. */
static __always_inline __u32 vp_push_frame(struct vp_unwind *u, __u16 flags)
{
	__u32 verdict = vp_resolve(u, &flags), off = u->frame_off;
	struct vp_frame *f;

	if (off > sizeof(u->buf->tail) - sizeof(*f))
		return verdict;
	f = (void *)u->buf->tail + off;
	f->pc = u->pc;
	f->flags = flags;
	vp_set_frame(u, f, verdict);
	if (verdict == VP_VERDICT_BUSY)
		vp_count(VP_CNT_FRAMES_UNRESOLVED);
	u->frame_off = off + sizeof(*f);
	u->cnt++;
	return verdict;
}

/* {saved frame pointer, return address} at fp, for both widths. */
static __always_inline long vp_read_frame(struct vp_unwind *u, __u64 next[2])
{
	__u32 narrow[2];
	long err;

	if (u->word == 8)
		return bpf_probe_read_user(next, 16, (void *)u->fp);
	err = bpf_probe_read_user(narrow, sizeof(narrow), (void *)u->fp);
	next[0] = narrow[0];
	next[1] = narrow[1];
	return err;
}

/*
 * One step outwards along the frame pointers; 1 ends the stack with u->end. The frame pointer
 * must lie above the last one (the first: not below the stack pointer), so a loop in hostile
 * memory ends, too.
 */
static long vp_unwind_step(__u32 i, void *data)
{
	struct vp_unwind *u = data;
	__u64 next[2];
	__u32 verdict;

	if (u->fp == 0) {
		u->end = VP_END_BOTTOM;
		return 1;
	}
	if (u->fp < u->sp || (u->fp & (u->word - 1))) {
		u->end = VP_END_BAD_FP;
		return 1;
	}
	if (vp_read_frame(u, next)) {
		u->end = VP_END_BAD_MEMORY;
		return 1;
	}
	if (next[1] == 0) {
		u->end = VP_END_BOTTOM;
		return 1;
	}
	if (u->cnt >= VP_MAX_USER_FRAMES) {
		u->end = VP_END_DEPTH;
		return 1;
	}
	u->sp = u->fp + 2 * u->word;
	u->fp = next[0];
	u->pc = next[1];
	verdict = vp_push_frame(u, VP_FRAME_F_FP);
	if (verdict == VP_VERDICT_NO_VMA || verdict == VP_VERDICT_NOT_EXEC) {
		u->end = VP_END_UNKNOWN_PC;
		return 1;
	}
	return 0;
}

#define VP_CS_USER32 0x23 /* x86: code segment of 32-bit tasks */

static __always_inline bool vp_cs_is_user(__u64 cs)
{
	return (cs & 3) == 3;
}

/*
 * User registers: those of the sample if it interrupted user mode, else those that the task
 * entered the kernel with. False: there are none.
 */
static __always_inline bool vp_user_regs(struct vp_unwind *u, struct bpf_perf_event_data *ctx)
{
	struct pt_regs *saved;
	__u64 cs = ctx->regs.cs;

	/* Read on both paths: clang must not merge the two pointers, one is the context. */
	u->pc = ctx->regs.ip;
	u->sp = ctx->regs.sp;
	u->fp = ctx->regs.bp;
	if (!vp_cs_is_user(cs)) {
		if ((u->task->flags & PF_KTHREAD) || !vp_mm(u->task))
			return false;
		saved = (void *)bpf_task_pt_regs(u->task);
		cs = saved->cs;
		if (!vp_cs_is_user(cs))
			return false;
		u->pc = saved->ip;
		u->sp = saved->sp;
		u->fp = saved->bp;
	}
	u->word = cs == VP_CS_USER32 ? 4 : 8;
	return true;
}

struct vp_mend {
	struct vp_unwind *u;
	__u32 first_off; /* of the first frame in the tail */
};

/*
 * A frame that lies in the mapping asked for last is resolved by it. The offset comes from i:
 * a verifier that follows the loop would take each value of a counter for a new state.
 */
static long vp_mend_frame(__u32 i, void *data)
{
	struct vp_mend *m = data;
	struct vp_unwind *u = m->u;
	__u32 off = m->first_off + i * sizeof(struct vp_frame);
	struct vp_frame *f;

	if (off > sizeof(u->buf->tail) - sizeof(*f))
		return 1;
	f = (void *)u->buf->tail + off;
	if (f->pc >= u->hit_start && f->pc < u->hit_end)
		vp_set_frame(u, f, u->hit_verdict);
	return 0;
}

/*
 * A question that is left goes to the first frame whose mapping was last confirmed before the
 * process changed its mappings. An answer that
 * contradicts the table replaces it there and in this sample.
 */
static __always_inline void vp_confirm(struct vp_unwind *u, __u32 first_off)
{
	struct vp_mend m = {.u = u, .first_off = first_off};
	__u32 zero = 0, verdict;
	struct vp_ask_buf *ask;

	if (!u->doubt_pc || u->asked)
		return;
	verdict = vp_ask(u->doubt_pc, u->buf->rec.hdr.ts_ns);
	ask = bpf_map_lookup_elem(&ask_buf, &zero);
	if (!ask || verdict == VP_VERDICT_BUSY)
		return;
	if (verdict <= VP_VERDICT_SPECIAL) {
		vp_remember_hit(u, &ask->xmap);
	} else {
		if (u->proc)
			vp_xmap_forget(u->proc, u->doubt_pc);
		u->hit_start = u->doubt_pc;
		u->hit_end = u->doubt_pc + 1;
		u->hit_verdict = verdict;
	}
	bpf_loop(u->cnt, vp_mend_frame, &m, 0);
}

static __always_inline void vp_unwind_user(struct vp_unwind *u)
{
	__u32 first_off = u->frame_off;

	u->proc = vp_proc_get_or_inherit(u->task, u->buf->rec.hdr.ts_ns);
	u->now_seq = vp_mapping_seq((void *)vp_mm(u->task));
	u->end = VP_END_DEPTH;
	vp_push_frame(u, VP_FRAME_F_LEAF);
	bpf_loop(VP_MAX_USER_FRAMES + 1, vp_unwind_step, u, 0);
	vp_confirm(u, first_off);
}

/* Bytes of kernel stack put at the start of the tail. */
static __always_inline __u32 vp_kernel_stack(struct vp_sample_buf *buf,
					     struct bpf_perf_event_data *ctx)
{
	long n = bpf_get_stack(ctx, buf->tail, VP_MAX_KERN_FRAMES * sizeof(__u64), 0);

	if (n >= 0)
		return (__u32)n & ~7U;
	/* -EFAULT: nothing to show; a sample in user mode has no kernel stack. */
	if (buf->rec.hdr.flags & VP_SAMPLE_F_KERNEL_MODE)
		vp_count(VP_CNT_KERN_STACK_FAILED);
	return 0;
}

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
	rec->cookie = 0;
}

static __always_inline void vp_send_sample(struct vp_sample_buf *buf, __u32 tail_bytes)
{
	__u64 wakeup = BPF_RB_NO_WAKEUP;
	__u32 size = sizeof(buf->rec) + tail_bytes;

	if (size > sizeof(*buf))
		size = sizeof(*buf);
	buf->rec.hdr.size = size;
	if (bpf_ringbuf_query(&rb, BPF_RB_AVAIL_DATA) > vp_wakeup_bytes)
		wakeup = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&rb, buf, size, wakeup))
		vp_count(VP_CNT_LOST_SAMPLE);
	else
		vp_count(VP_CNT_SAMPLES);
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
	struct vp_sample_buf *buf;
	struct vp_unwind u = {};
	__u32 zero = 0, kern_bytes;

	if (task->pid == 0 || !vp_current_is_wanted(task))
		return 0;
	buf = bpf_map_lookup_elem(&sample_buf, &zero);
	if (!buf)
		return 0;

	vp_fill_sample(&buf->rec, task, ctx);
	kern_bytes = vp_kernel_stack(buf, ctx);
	if (kern_bytes > VP_MAX_KERN_FRAMES * sizeof(__u64))
		kern_bytes = VP_MAX_KERN_FRAMES * sizeof(__u64);
	if (kern_bytes == VP_MAX_KERN_FRAMES * sizeof(__u64))
		buf->rec.hdr.flags |= VP_SAMPLE_F_KERN_CUT;
	u.buf = buf;
	u.task = task;
	u.frame_off = kern_bytes;
	u.end = VP_END_KERNEL_ONLY;
	if (vp_user_regs(&u, ctx))
		vp_unwind_user(&u);

	buf->rec.kern_cnt = kern_bytes / sizeof(__u64);
	buf->rec.user_cnt = u.cnt;
	buf->rec.user_end = u.end;
	vp_count_n(VP_CNT_FRAMES, u.cnt);
	vp_send_sample(buf, u.frame_off);
	return 0;
}
