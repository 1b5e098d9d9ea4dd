// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Walks over mappings in a program: of the current task, with IRQs on and off. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "vma_iter.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EBUSY	   16
#define EOPNOTSUPP 95

/* Since 6.7. Weak: a program that asks whether they are there loads where they are not. */
struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 __u64 addr) __weak __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __weak __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __weak __ksym;

__u64 from = 0; /* where walks begin */
__u64 absent_cnt = 0;
__u64 run_cnt = 0;

/* Of two walks one behind the other. */
struct vma_iter_result result[2] = {};

static __always_inline void count(struct vma_iter_result *r, int err)
{
	r->last = err;
	if (err == 0)
		r->ok++;
	else if (err == -EBUSY)
		r->busy++;
	else if (err == -EOPNOTSUPP)
		r->unsupported++;
	else
		r->other++;
}

/* Counts in memory: in registers they would be more states than the verifier looks at. */
static __always_inline void walk(struct vma_iter_result *r)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;

	r->cnt = r->start = r->end = 0;
	count(r, bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), from));
	while ((vma = bpf_iter_task_vma_next(&it))) {
		if (!r->cnt) {
			r->start = vma->vm_start;
			r->end = vma->vm_end;
		}
		r->cnt++;
		if (r->cnt >= MAPPINGS_MAX)
			break;
	}
	bpf_iter_task_vma_destroy(&it);
}

static __always_inline void walk_twice(void)
{
	if (!bpf_iter_task_vma_new) {
		absent_cnt++;
		return;
	}
	walk(&result[0]);
	walk(&result[1]);
}

/* Hook: test run; IRQs on. */
SEC("?syscall")
int walk_in_call(void *ctx)
{
	walk_twice();
	run_cnt++;
	return 0;
}

__u32 wanted_tgid = 0;

/* Hook: a sample; hardirq, IRQs off. */
SEC("?perf_event")
int walk_in_interrupt(struct bpf_perf_event_data *ctx)
{
	if ((__u32)(bpf_get_current_pid_tgid() >> 32) != wanted_tgid)
		return 0;
	walk_twice();
	run_cnt++;
	return 0;
}

/* ---- refused ---------------------------------------------------------------------------------- */

SEC("?syscall")
int never_destroys(void *ctx)
{
	struct bpf_iter_task_vma it;

	bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), 0);
	return 0;
}

/* ---- a mapping that goes while a program looks at it ------------------------------------------ */

/* Of the first mapping, when it was found and when the other thread had unmapped it. */
__u64 start_before = 0, start_after = 0, end_before = 0, end_after = 0;
__u64 inode_before = 0, inode_after = 0;
bool has_found = false; /* written by the program */
__u32 is_gone = 0;	/* by the other thread, once munmap() has returned */
bool was_gone = false;	/* the program saw it */

/* Stands still for a while: seconds at most, when the other cannot do it meanwhile. */
#define ROUNDS 128
#define TURNS  (1 << 20)

/* Not a bool's byte: the verifier wants to see that it is 0 or 1. */
static __always_inline int has_gone(void)
{
	return *(volatile __u32 *)&is_gone != 0;
}

static int turn(__u32 i, void *ctx)
{
	return has_gone();
}

static int round(__u32 i, void *ctx)
{
	bpf_loop(TURNS, turn, NULL, 0);
	return has_gone();
}

static __always_inline __u64 inode_of(const struct vm_area_struct *vma)
{
	const struct file *file = vma->vm_file;

	return file ? file->f_inode->i_ino : 0;
}

SEC("?syscall")
int look_and_wait(void *ctx)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;

	if (!bpf_iter_task_vma_new) {
		absent_cnt++;
		return 0;
	}
	count(&result[0], bpf_iter_task_vma_new(&it, bpf_get_current_task_btf(), from));
	vma = bpf_iter_task_vma_next(&it);
	if (vma) {
		start_before = vma->vm_start;
		end_before = vma->vm_end;
		inode_before = inode_of(vma);
		*(volatile bool *)&has_found = true;
		bpf_loop(ROUNDS, round, NULL, 0);
		was_gone = has_gone();
		start_after = vma->vm_start;
		end_after = vma->vm_end;
		inode_after = inode_of(vma);
	}
	bpf_iter_task_vma_destroy(&it);
	return 0;
}
