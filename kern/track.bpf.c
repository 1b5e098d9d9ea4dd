// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lives of processes: exec, fork, exit and new names as records, the target set that follows
 * children, and tables that end with their process.
 */
#include "vp_ask.bpf.h"
#include "vp_target.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void vp_send_event(void *rec, __u32 size)
{
	if (bpf_ringbuf_output(&rb, rec, size, BPF_RB_NO_WAKEUP))
		vp_count(VP_CNT_LOST_EVENT);
}

/*
 * What a new image certainly has: its own code, the dynamic loader (where it starts to run)
 * and the vdso. So the first sample of a process knows them without a question of its own.
 */
static __always_inline void vp_enter_image(struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	__u64 now = bpf_ktime_get_ns();
	struct vp_xmap found = {};

	if (!vp_mm(task))
		return;
	vp_ask(BPF_CORE_READ(task, mm, start_code), now, &found, false, 0);
#ifdef __TARGET_ARCH_x86
	vp_ask(regs->ip, now, &found, false, 0);
	/* Read as a number: newer verifiers type a loaded void * as memory. */
	vp_ask((__u64)BPF_CORE_READ(task, mm, context.vdso), now, &found, false, 0);
#endif
}

/*
 * Hook: in the task that exec'd, after the new image is in place; process context, IRQs on.
 * Sends VP_REC_EXEC, starts the new life's table and, last, arms a command that waited for its
 * exec: no sample of it can precede the records.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(vp_exec, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct vp_rec_exec rec = {};
	__u32 key = vp_target_key(task), *waiting = NULL;

	if (vp_filter == VP_FILTER_TGID)
		waiting = bpf_map_lookup_elem(&targets, &key);
	if (!waiting && !vp_current_is_wanted(task))
		return 0;
	vp_fill_hdr(&rec.hdr, VP_REC_EXEC, sizeof(rec));
	vp_fill_proc_id(&rec.proc, task);
	rec.tid = vp_tid(task);
	bpf_get_current_comm(rec.comm, sizeof(rec.comm));
	vp_send_event(&rec, sizeof(rec));
	vp_enter_image(task);
	if (waiting)
		*waiting |= VP_TARGET_F_ARMED;
	return 0;
}

/* A new process of a wanted one is wanted, too. */
static __always_inline void vp_follow_child(struct task_struct *parent, struct task_struct *child)
{
	__u32 flags = vp_target_flags(parent), key = vp_target_key(child);

	if (vp_filter != VP_FILTER_TGID || !(flags & VP_TARGET_F_INHERIT) ||
	    child->tgid == parent->tgid)
		return;
	if (bpf_map_update_elem(&targets, &key, &flags, BPF_ANY))
		vp_count(VP_CNT_TARGET_FULL);
}

/*
 * Hook: in the parent, before the child first runs; process context. Follows children of
 * targets and sends VP_REC_FORK for processes and threads.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(vp_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct vp_rec_fork rec = {};

	vp_follow_child(parent, child);
	if (!vp_current_is_wanted(current))
		return 0;
	vp_fill_hdr(&rec.hdr, VP_REC_FORK, sizeof(rec));
	vp_fill_proc_id(&rec.child, child);
	rec.child_tid = vp_tid(child);
	rec.parent_tgid = vp_tgid(parent);
	rec.parent_tid = vp_tid(parent);
	vp_send_event(&rec, sizeof(rec));
	return 0;
}

/* The table and the target entry of a process end with its last thread. */
static __always_inline void vp_forget(struct task_struct *task)
{
	__u32 key = vp_target_key(task), tgid = task->tgid;

	if (vp_filter == VP_FILTER_TID)
		bpf_map_delete_elem(&targets, &key);
	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return;
	if (vp_filter == VP_FILTER_TGID)
		bpf_map_delete_elem(&targets, &key);
	bpf_map_delete_elem(&procs, &tgid);
}

static __always_inline __u32 vp_parent_tgid(struct task_struct *task)
{
	if (vp_pidns_inum)
		return vp_pid_number(
			(__u64)BPF_CORE_READ(task, real_parent, group_leader, thread_pid));
	return BPF_CORE_READ(task, real_parent, tgid);
}

/* Hook: in the exiting thread; process context. Sends VP_REC_EXIT, frees what it had. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(vp_exit, struct task_struct *p)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct vp_rec_exit rec = {};

	if (vp_current_is_wanted(task)) {
		vp_fill_hdr(&rec.hdr, VP_REC_EXIT, sizeof(rec));
		vp_fill_proc_id(&rec.proc, task);
		rec.tid = vp_tid(task);
		rec.parent_tgid = vp_parent_tgid(task);
		vp_send_event(&rec, sizeof(rec));
	}
	vp_forget(task);
	return 0;
}

/*
 * Hook: in whoever renames a thread, mostly itself; process context, before the new name is in
 * place. Sends VP_REC_COMM, but not for an exec's new name, which comes before the new life
 * begins: VP_REC_EXEC carries it.
 */
SEC("tp_btf/task_rename")
int BPF_PROG(vp_rename, struct task_struct *task, const char *comm)
{
	struct vp_rec_comm rec = {};

	if (!vp_current_is_wanted(task) || vp_is_in_exec(task))
		return 0;
	vp_fill_hdr(&rec.hdr, VP_REC_COMM, sizeof(rec));
	vp_fill_proc_id(&rec.proc, task);
	rec.tid = vp_tid(task);
	bpf_probe_read_kernel_str(rec.comm, sizeof(rec.comm), comm);
	vp_send_event(&rec, sizeof(rec));
	return 0;
}
