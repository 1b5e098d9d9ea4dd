// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What no program of ours may do, for test_objects.c, which compiles it once for each way and has
 * the objects scanned. NEVER LOAD IT: in an interrupt it leaves the target's mmap_lock taken for
 * ever, on most kernels.
 */
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>

#define ALLOWED	      0
#define ASK_AGAIN     1 /* in the callback */
#define ASK_IN_LOOP   2 /* in a loop of a function that it calls */
#define BUILD_IDS     3 /* a stack with build ids in the callback */
#define BUILD_IDS_TOO 4 /* … and in a program that asks, but not in the callback */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__u64 places[32] = {};

static long look(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	return 0;
}

static long look_again(__u32 i, void *data)
{
	bpf_find_vma(bpf_get_current_task_btf(), places[i & 31], look, NULL, 0);
	return 0;
}

__noinline int look_around(__u32 cnt)
{
	return (int)bpf_loop(cnt, look_again, NULL, 0);
}

static long describe(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	if (WAY == ASK_AGAIN)
		bpf_find_vma(task, vma->vm_end, look, NULL, 0);
	if (WAY == ASK_IN_LOOP)
		look_around(2);
	if (WAY == BUILD_IDS)
		bpf_get_task_stack(task, places, sizeof(places),
				   BPF_F_USER_STACK | BPF_F_USER_BUILD_ID);
	return 0;
}

SEC("perf_event")
int ask(struct bpf_perf_event_data *ctx)
{
	bpf_find_vma(bpf_get_current_task_btf(), ctx->regs.ip, describe, NULL, 0);
	bpf_get_stack(ctx, places, sizeof(places),
		      WAY == BUILD_IDS_TOO ? BPF_F_USER_STACK | BPF_F_USER_BUILD_ID : 0);
	return 0;
}
