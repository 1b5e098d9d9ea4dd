// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What is measured: a program for each figure, which does it often and says how long that took. The walk
 * of the tree is the product's own.
 */
#include "vp_mm_walk.bpf.h"

#include "bench.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Written by user space. */
__u64 pcs[BENCH_PCS] = {};
__u64 flags = 0; /* of records */

/* Written by the programs. */
__u64 took_ns = 0;
__u64 found_cnt = 0;   /* PCs with a mapping that covers them */
__u64 unclear_cnt = 0; /* -EBUSY; a tree that is not understood */
__u64 lost_cnt = 0;    /* records without room */
__u64 visited = 0, paths = 0;
char path[BENCH_PATH_BYTES] = {};

/* ---- the mapping of a PC ----------------------------------------------------------------------- */

struct run {
	struct task_struct *task;
	__u64 mm;
	__u64 found, unclear;
};

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	struct run *r = data;

	r->found++;
	return 0;
}

static __always_inline void by_nothing(struct run *r, __u64 pc)
{
	r->found += pc != 0;
}

static __always_inline void by_find_vma(struct run *r, __u64 pc)
{
	if (bpf_find_vma(r->task, pc, on_vma, r, 0) == -EBUSY)
		r->unclear++;
}

static __always_inline void by_tree(struct run *r, __u64 pc)
{
	const struct vm_area_struct *vma = (void *)vp_mm_walk(r->mm, pc);

	if ((__u64)vma == VP_MM_UNCLEAR)
		r->unclear++;
	else if (vma && pc >= BPF_CORE_READ(vma, vm_start) && pc < BPF_CORE_READ(vma, vm_end))
		r->found++;
}

static __always_inline int look_up_all(long (*step)(__u32 i, void *data))
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct run r = {.task = task, .mm = (__u64)BPF_CORE_READ(task, mm)};
	__u64 start_ns = bpf_ktime_get_ns();

	bpf_loop(BENCH_PCS, step, &r, 0);
	took_ns = bpf_ktime_get_ns() - start_ns;
	found_cnt = r.found;
	unclear_cnt = r.unclear;
	return 0;
}

#define LOOKUP(way)                                                                                \
	static long step_##way(__u32 i, void *data)                                                \
	{                                                                                          \
		way(data, pcs[i & (BENCH_PCS - 1)]);                                               \
		return 0;                                                                          \
	}                                                                                          \
	SEC("raw_tp") int lookup_##way(void *ctx)                                                  \
	{                                                                                          \
		return look_up_all(step_##way);                                                    \
	}

LOOKUP(by_nothing)
LOOKUP(by_find_vma)
LOOKUP(by_tree)

/* ---- all mappings ------------------------------------------------------------------------------ */

SEC("iter/task_vma")
int visit(struct bpf_iter__task_vma *ctx)
{
	visited += ctx->vma != NULL;
	return 0;
}

SEC("iter/task_vma")
int visit_with_path(struct bpf_iter__task_vma *ctx)
{
	struct vm_area_struct *vma = ctx->vma;

	if (!vma)
		return 0;
	visited++;
	if (vma->vm_file && bpf_d_path(&vma->vm_file->f_path, path, sizeof(path)) > 0)
		paths++;
	return 0;
}

/* ---- records ----------------------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, BENCH_RING_BYTES);
} ring SEC(".maps");

struct bench_record record = {};

static long reserve_and_submit(__u32 i, void *data)
{
	struct bench_record *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		lost_cnt++;
		return 0;
	}
	r->sent_ns = i;
	bpf_ringbuf_submit(r, flags);
	return 0;
}

static long output(__u32 i, void *data)
{
	record.sent_ns = i;
	lost_cnt += bpf_ringbuf_output(&ring, &record, sizeof(record), flags) != 0;
	return 0;
}

static __always_inline int send_all(long (*step)(__u32 i, void *data))
{
	__u64 start_ns = bpf_ktime_get_ns();

	bpf_loop(BENCH_RECORDS, step, NULL, 0);
	took_ns = bpf_ktime_get_ns() - start_ns;
	return 0;
}

SEC("raw_tp")
int send_reserved(void *ctx)
{
	return send_all(reserve_and_submit);
}

SEC("raw_tp")
int send_output(void *ctx)
{
	return send_all(output);
}

/* One, with the time. */
SEC("raw_tp")
int send_one(void *ctx)
{
	record.sent_ns = bpf_ktime_get_ns();
	lost_cnt += bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP) != 0;
	return 0;
}
