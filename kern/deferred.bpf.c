// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The sampler of deferred mode (bpf_task_work, 6.18): the interrupt sends the kernel stack and has
 * the user stack taken by the task itself, on its way back to user mode. There every unknown PC can
 * be asked for and memory may be faulted in. The user stack follows the sample as a record of its
 * own: one for all samples between two returns to user mode.
 */
#define VP_UNWIND_IN_TASK
#include "vp_sample.bpf.h"
#include "vp_unwind.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Elements of stack_bufs. */
const volatile __u32 vp_stack_bufs = 1;

/*
 * A thread's stack that is to be taken. Cookie and seq are written by the interrupt, when nothing
 * is pending; missing and last by the program that takes the stack. `work` belongs to the kernel.
 */
struct vp_deferral {
	struct bpf_task_work work;
	__u64 cookie;  /* of the samples that wait: when the first was taken */
	__u64 missing; /* where memory was brought in last; 0: nowhere yet */
	__u32 last;    /* the next attempt's stack is taken as it is */
	__u32 seq;     /* vp_mapping_seq() when the first was taken */
};

/* Key: tid in the initial namespace. Entries leave at the thread's exit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072);
	__type(key, __u32);
	__type(value, struct vp_deferral);
} deferrals SEC(".maps");

/*
 * Stacks being made in task context, `taken` by compare-and-swap: that context can be preempted.
 * Sized by the loader.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_stack_buf);
} stack_bufs SEC(".maps");

#define VP_TAKE_TRIES 16
#define VP_ATTEMPTS   32 /* pages of one stack that are brought in */

static __always_inline struct vp_stack_buf *vp_take_stack_buf(void)
{
	__u32 first = bpf_get_smp_processor_id() * 2;
	struct vp_stack_buf *b;

	for (__u32 i = 0; i < VP_TAKE_TRIES; i++) {
		__u32 which = (first + i) % vp_stack_bufs;

		b = bpf_map_lookup_elem(&stack_bufs, &which);
		if (b && __sync_val_compare_and_swap(&b->taken, 0, 1) == 0)
			return b;
	}
	vp_count(VP_CNT_DEFER_FAILED);
	return NULL;
}

static long vp_deferred_step(__u32 i, void *data)
{
	return vp_step(data, true);
}

/* The registers that the task goes back to user mode with. */
static __always_inline bool vp_return_regs(struct vp_stack_buf *b, struct task_struct *task)
{
	struct pt_regs *regs;

	if (!vp_has_user_side(task))
		return false;
	regs = (void *)bpf_task_pt_regs(task);
	if (!vp_cs_is_user(regs->cs))
		return false;
	vp_copy_regs(b->reg, regs);
	b->pc = regs->ip;
	b->in_syscall = vp_is_syscall(regs);
	b->word = vp_cs_word(regs->cs);
	return true;
}

static __always_inline void vp_send_user_stack(struct vp_stack_buf *b, struct task_struct *task,
					       __u64 cookie)
{
	__u32 size = sizeof(b->user) + b->frame_off;

	if (size > sizeof(b->user) + sizeof(b->tail))
		size = sizeof(b->user) + sizeof(b->tail);
	vp_fill_hdr(&b->user.hdr, VP_REC_USER_STACK, size);
	vp_fill_proc_id(&b->user.proc, task);
	b->user.tid = vp_tid(task);
	b->user.user_cnt = b->cnt;
	b->user.user_end = b->end;
	b->user.cookie = cookie;
	vp_count_n(VP_CNT_FRAMES, b->cnt);
	if (bpf_ringbuf_output(&rb, &b->user, size, vp_wakeup_flag()))
		vp_count(VP_CNT_LOST_USER_STACK);
}

/* What vp_attempt gets. The rest is in the map: on the stack the verifier would follow it. */
struct vp_attempt {
	struct task_struct *task;
	struct vp_deferral *d;
};

static long vp_note_range(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	struct vp_range *range = data;

	range->start = vma->vm_start;
	range->end = vma->vm_end;
	return 0;
}

/* Is addr in the mapping that sp points into? Else 0, or -EBUSY: nobody can say now. */
static __always_inline int vp_is_stack(struct task_struct *task, __u64 addr, __u64 sp)
{
	struct vp_range range = {};

	/* With threads that only wait to change mappings it is busy, too, until they get a CPU. */
	if (bpf_find_vma(task, sp, vp_note_range, &range, 0) == -EBUSY && vp_tree_range(sp, &range))
		return -EBUSY;
	return addr >= range.start && addr < range.end;
}

/*
 * Has the page at addr brought in. False: there is none. Sleeps, as long as the page takes: so it is
 * done only for what the task is going to touch itself, its stack and code that it returns to. What
 * a guess by frame pointer leads to may be memory that this very task has to provide (userfaultfd).
 */
static __always_inline bool vp_bring_in(__u64 addr)
{
	__u8 byte;

	return bpf_copy_from_user(&byte, sizeof(byte), (void *)addr) == 0;
}

/*
 * Waits while a thread changes the process's mappings: a page fault has to. That thread may have lost its
 * CPU, to this very one. (One that waits for its turn is not waited for: a fault can get in before it.)
 * Nothing is mapped there, or else there is no fault and no wait.
 */
static __always_inline void vp_wait_for_mappings(void)
{
	vp_bring_in(sizeof(long));
}

#define VP_MISSING_ASK_AGAIN 1 /* no address that is wanted */

/* What could not be read and is worth bringing in; 0: nothing. */
static __always_inline __u64 vp_wanted_memory(const struct vp_stack_buf *b,
					      struct task_struct *task)
{
	int is_stack;

	if (!b->missing)
		return b->missing_code;
	is_stack = vp_is_stack(task, b->missing, b->sp);
	if (is_stack < 0)
		return VP_MISSING_ASK_AGAIN;
	return is_stack ? b->missing : 0;
}

/*
 * Makes the stack and sends it; 0 to try again: memory was missing that is there now. Nothing is
 * held meanwhile: the target decides how long a page takes.
 */
static long vp_attempt(__u32 i, void *data)
{
	struct vp_attempt *a = data;
	struct vp_deferral *d = a->d;
	struct vp_unwind u = {.task = a->task};
	__u64 missing = 0;

	u.buf = vp_take_stack_buf();
	if (!u.buf)
		return 1;
	if (vp_return_regs(u.buf, a->task)) {
		u.buf->ts_ns = d->cookie;
		u.buf->then_seq = d->seq;
		u.buf->frame_off = 0;
		vp_unwind_user(&u, vp_deferred_step, true);
		missing = d->last ? 0 : vp_wanted_memory(u.buf, a->task);
		if (!missing)
			vp_send_user_stack(u.buf, a->task, d->cookie);
	}
	__sync_lock_test_and_set(&u.buf->taken, 0);
	if (!missing)
		return 1;
	d->last = i + 2 >= VP_ATTEMPTS;
	if (missing == VP_MISSING_ASK_AGAIN) {
		vp_wait_for_mappings();
		return 0;
	}
	d->last |= missing == d->missing || !vp_bring_in(missing);
	d->missing = missing;
	return 0;
}

/*
 * In the task, on its way to user mode: sleepable. Mappings found are dated by the first sample
 * that waits, which they must not be later than; unless the process has changed its mappings since,
 * because the task was preempted: then what the table has of that moment is the sample's. A task
 * that died has no memory any more, and sends nothing.
 */
static int vp_take_user_stack(struct bpf_map *map, void *key, void *value)
{
	struct vp_deferral *d = value;
	struct vp_attempt a = {.task = bpf_get_current_task_btf(), .d = d};
	__u64 start = bpf_ktime_get_ns();

	d->missing = 0;
	d->last = 0;
	bpf_loop(VP_ATTEMPTS, vp_attempt, &a, 0);
	vp_count_n(VP_CNT_TASK_NS, bpf_ktime_get_ns() - start);
	return 0;
}

static __always_inline struct vp_deferral *vp_get_deferral(struct task_struct *task)
{
	static const struct vp_deferral none;
	__u32 tid = task->pid;
	struct vp_deferral *d = bpf_map_lookup_elem(&deferrals, &tid);

	if (d)
		return d;
	bpf_map_update_elem(&deferrals, &tid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&deferrals, &tid);
}

/*
 * -EBUSY: the stack is already on its way, for an earlier sample of the same stay in the kernel. An
 * interrupt while it is being taken gets that one, too: it is the same stack. plain: a constant, the
 * function's name in this kernel.
 */
static __always_inline void vp_defer(struct vp_rec_sample *rec, struct task_struct *task,
				     const bool plain)
{
	struct vp_deferral *d;
	int err = -E2BIG;

	/* Since 6.16 memory outlives sched_process_exit; nobody comes back from there. */
	if (task->flags & PF_EXITING) {
		rec->user_end = VP_END_EXITED;
		return;
	}
	d = vp_get_deferral(task);
	if (d) {
		err = plain ? bpf_task_work_schedule_resume(task, &d->work, &deferrals,
							    vp_take_user_stack)
			    : bpf_task_work_schedule_resume_impl(task, &d->work, &deferrals,
								 vp_take_user_stack, NULL);
		if (!err) {
			d->cookie = rec->hdr.ts_ns;
			d->seq = vp_mapping_seq((void *)vp_mm(task), d->cookie);
		}
	}
	if (err && err != -EBUSY) {
		rec->user_end = VP_END_EXITED;
		vp_count(VP_CNT_DEFER_FAILED);
		return;
	}
	rec->hdr.flags |= VP_SAMPLE_F_DEFERRED;
	rec->cookie = d->cookie;
}

static __always_inline int vp_sample_and_defer(struct bpf_perf_event_data *ctx, const bool plain)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct vp_stack_buf *b = vp_start_sample(task, ctx);

	if (!b)
		return 0;
	if (vp_has_user_side(task))
		vp_defer(&b->sample, task, plain);
	vp_send_sample(b);
	return 0;
}

/*
 * Hook: a perf event on each CPU, in hardirq (cpu-clock) or NMI (hardware), IRQs off. Sends one
 * VP_REC_SAMPLE with the current task's kernel stack and schedules its user stack. Bound: 127 kernel
 * frames. Ring full: the sample is lost and counted.
 */
SEC("perf_event")
int vp_sample_deferred(struct bpf_perf_event_data *ctx)
{
	return vp_sample_and_defer(ctx, false);
}

/* The same for 7.0. */
SEC("?perf_event")
int vp_sample_deferred_plain(struct bpf_perf_event_data *ctx)
{
	return vp_sample_and_defer(ctx, true);
}

/*
 * Hook: in the thread that exec'd; process context. One that was not the leader has the leader's tid
 * now, and nobody exits under its own.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(vp_forget_old_tid, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	__u32 tid = old_pid;

	if (tid != (__u32)bpf_get_current_task_btf()->pid)
		bpf_map_delete_elem(&deferrals, &tid);
	return 0;
}

/* Hook: in the exiting thread; process context. Frees what it had; a stack not taken is cancelled. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(vp_forget_deferral, struct task_struct *p)
{
	__u32 tid = bpf_get_current_task_btf()->pid;

	bpf_map_delete_elem(&deferrals, &tid);
	return 0;
}
