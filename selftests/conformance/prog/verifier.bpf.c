// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One program for each thing that the verifier accepts or refuses around bpf_find_vma. A case loads
 * one of them alone; none is ever attached.
 */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} values SEC(".maps");

__u64 sink = 0;

/* A sample's program that looks up a mapping of its task, with that callback. */
#define CALLS_BACK(prog, callback)                                                                 \
	SEC("?perf_event")                                                                         \
	int prog(void *ctx)                                                                        \
	{                                                                                          \
		__u64 on_stack = 0;                                                                \
                                                                                                   \
		bpf_find_vma(bpf_get_current_task_btf(), 4096, callback, &on_stack, 0);            \
		return 0;                                                                          \
	}

/* ---- what a callback may not do --------------------------------------------------------------- */

static long writes_vma(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	vma->vm_pgoff = 1;
	return 0;
}
CALLS_BACK(callback_writes_to_the_mapping, writes_vma)

static long writes_task(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	task->pid = 1;
	return 0;
}
CALLS_BACK(callback_writes_to_the_task, writes_task)

static long returns_two(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return 2;
}
CALLS_BACK(callback_returns_two, returns_two)

static long returns_minus_one(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return -1;
}
CALLS_BACK(callback_returns_minus_one, returns_minus_one)

static long asks_for_path(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	char path[16];

	if (vma->vm_file)
		bpf_d_path(&vma->vm_file->f_path, path, sizeof(path));
	return 0;
}
CALLS_BACK(callback_asks_for_a_path, asks_for_path)

static long copies_from_user(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	__u64 word;

	bpf_copy_from_user(&word, sizeof(word), (const void *)vma->vm_start);
	sink = word;
	return 0;
}
CALLS_BACK(callback_copies_from_user, copies_from_user)

/* ---- what it may ------------------------------------------------------------------------------ */

static long returns_zero(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return 0;
}

static long returns_one(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	return 1;
}
CALLS_BACK(callback_returns_one, returns_one)

static long reads_file(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	struct file *file = vma->vm_file;

	if (file)
		sink = file->f_inode->i_ino + file->f_inode->i_sb->s_dev;
	sink += vma->vm_pgoff + (__u64)vma->vm_mm->map_count + (__u64)task->pid;
	return 0;
}
CALLS_BACK(callback_reads_the_file, reads_file)

static long sends_record(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	__u64 *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
	__u32 key = 0;
	__u64 start = vma->vm_start;

	if (r) {
		*r = start;
		bpf_ringbuf_submit(r, 0);
	}
	bpf_map_update_elem(&values, &key, &start, BPF_ANY);
	return 0;
}
CALLS_BACK(callback_sends_a_record, sends_record)

static int step(__u32 i, void *ctx)
{
	sink += i;
	return 0;
}

static long loops(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	bpf_loop(10, step, NULL, 0);
	return 0;
}
CALLS_BACK(callback_loops, loops)

static long reads_user(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (const void *)vma->vm_start);
	sink = word;
	return 0;
}
CALLS_BACK(callback_reads_user_memory, reads_user)

static long finds_another(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	__u64 on_stack = 0;

	bpf_find_vma(task, vma->vm_end, returns_zero, &on_stack, 0);
	return 0;
}
/* never run it in an interrupt: find_vma/nested_in_an_interrupt */
CALLS_BACK(callback_finds_another, finds_another)

/* ---- its arguments ---------------------------------------------------------------------------- */

SEC("?perf_event")
int context_in_a_map(void *ctx)
{
	__u32 key = 0;
	__u64 *value = bpf_map_lookup_elem(&values, &key);

	if (value)
		bpf_find_vma(bpf_get_current_task_btf(), 4096, returns_zero, value, 0);
	return 0;
}

SEC("?perf_event")
int no_context(void *ctx)
{
	bpf_find_vma(bpf_get_current_task_btf(), 4096, returns_zero, NULL, 0);
	return 0;
}

SEC("?perf_event")
int task_that_is_a_number(void *ctx)
{
	__u64 on_stack = 0;

	bpf_find_vma((struct task_struct *)bpf_get_current_task(), 4096, returns_zero, &on_stack,
		     0);
	return 0;
}

SEC("?perf_event")
int no_task(void *ctx)
{
	__u64 on_stack = 0;

	bpf_find_vma(NULL, 4096, returns_zero, &on_stack, 0);
	return 0;
}

SEC("?perf_event")
int the_parent(void *ctx)
{
	__u64 on_stack = 0;
	struct task_struct *task = bpf_get_current_task_btf();

	bpf_find_vma(task->real_parent, 4096, returns_zero, &on_stack, 0);
	return 0;
}

/* ---- where a callback may ask for a path ------------------------------------------------------ */

SEC("?iter/task")
int path_in_an_iterator(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 on_stack = 0;

	if (task)
		bpf_find_vma(task, 4096, asks_for_path, &on_stack, 0);
	return 0;
}
