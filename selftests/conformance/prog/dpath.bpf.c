// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What bpf_d_path says of the file of one mapping; and programs that may not, or may, ask it. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "dpath.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Written by user space before a walk: whose mapping, and how much of path[] may be used. */
__u32 wanted_tgid = 0;
__u64 wanted_addr = 0;
__u32 room = 0;

/* Written by path_of_vma. */
__u32 called = 0;
__s64 length = 0;
__u32 dev = 0;
__u64 ino = 0;
char path[DPATH_ROOM] = {};

/* Hook: the iterator; process context of its reader. Asks for the file that is mapped at wanted_addr. */
SEC("iter/task_vma")
int path_of_vma(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;
	volatile __u32 *wanted_room = &room;
	__u32 size = *wanted_room;
	struct file *file;

	if (!task || !vma || task->tgid != wanted_tgid || wanted_addr < vma->vm_start ||
	    wanted_addr >= vma->vm_end || size > DPATH_ROOM)
		return 0;
	file = vma->vm_file;
	if (!file)
		return 0;
	length = bpf_d_path(&file->f_path, path, size);
	dev = file->f_inode->i_sb->s_dev;
	ino = file->f_inode->i_ino;
	called++;
	return 0;
}

/* ---- programs that the verifier judges --------------------------------------------------------- */

static __always_inline int ask(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_d_path(&task->fs->pwd, path, 64) > 0;
}

SEC("?perf_event")
int in_perf_event(void *ctx)
{
	return ask();
}

SEC("?raw_tp/sys_enter")
int in_raw_tp(void *ctx)
{
	return ask();
}

SEC("?kprobe/do_exit")
int in_kprobe(void *ctx)
{
	return ask();
}

SEC("?tp_btf/sched_switch")
int in_tp_btf(void *ctx)
{
	return ask();
}

/* Functions that the kernel lists as safe, and one that it does not. */
SEC("?fentry/filp_close")
int BPF_PROG(in_listed_function, struct file *file)
{
	length = bpf_d_path(&file->f_path, path, 64);
	return 0; /* nothing else is accepted */
}

SEC("?fentry/vfs_read")
int BPF_PROG(in_other_function, struct file *file)
{
	length = bpf_d_path(&file->f_path, path, 64);
	return 0; /* nothing else is accepted */
}
