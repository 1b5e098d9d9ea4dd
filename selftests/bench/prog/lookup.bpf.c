// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * For bench/lookup.c: which mapping a PC lies in, by the product's table and by what that could
 * be instead. A program for each: it looks up all of pcs[] and says how long that took, and the sum
 * of what it found. A further one is a function like those below and its line at the end.
 */
#include "vp_mm_walk.bpf.h"
#include "vp_xmap.bpf.h"

#include "lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define SCAN_MAX 1024

/* All of this is user space's, but for the two results. */
__u64 pcs[LOOKUP_PCS] = {};
__u32 pc_of[LOOKUP_PCS] = {};		      /* the mapping of each */
struct vp_xmap xmaps[LOOKUP_XMAPS_MAX] = {};  /* in the order in which they were mapped */
struct vp_xmap sorted[LOOKUP_XMAPS_MAX] = {}; /* by address */
__u32 xmap_cnt = 0;
__u64 took_ns = 0;
__u64 sum = 0;

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct lookup_prefix);
	__type(value, __u32);
} prefixes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * LOOKUP_PCS);
	__type(key, struct lookup_page);
	__type(value, __u32);
} pages SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << LOOKUP_SET_BITS);
	__type(key, __u32);
	__type(value, struct lookup_set);
} sets SEC(".maps");

struct run {
	struct vp_proc *proc;
	struct task_struct *task;
	__u64 mm;
	__u64 sum;
};

/* ---- the product's table: what has to follow when that changes -------------------------------- */

static __always_inline __u64 near(struct run *r, __u64 pc)
{
	__u32 slot = vp_xmap_slot(r->proc, pc);

	if (slot >= VP_XMAPS_PER_PROC)
		return 0;
	barrier_var(slot);
	return r->proc->xmap[slot].start;
}

static __always_inline __u64 far(struct run *r, __u64 pc)
{
	struct vp_far_answer x;

	if (!r->proc->has_far || !vp_far_find(vp_far_owner(r->proc), pc >> PAGE_SHIFT, &x))
		return 0;
	return pc >= x.xmap.start && pc < x.xmap.end ? x.xmap.start : 0;
}

static __always_inline __u64 product(struct run *r, __u64 pc)
{
	__u64 start = far(r, pc);

	return start ? start : near(r, pc);
}

/* The other way round. */
static __always_inline __u64 slots_first(struct run *r, __u64 pc)
{
	__u64 start = near(r, pc);

	return start ? start : far(r, pc);
}

static long enter_slot(__u32 i, void *data)
{
	struct run *r = data;

	if (i >= VP_XMAPS_PER_PROC)
		return 1;
	barrier_var(i);
	r->proc->xmap[i] = xmaps[i];
	r->proc->cnt = i + 1;
	return 0;
}

/* The pages of PCs in mappings that have no slot, as if each had been asked for. */
static long enter_far(__u32 i, void *data)
{
	struct run *r = data;
	__u32 of = pc_of[i & (LOOKUP_PCS - 1)];

	if (of < VP_XMAPS_PER_PROC)
		return 0;
	r->proc->has_far = 1;
	vp_far_put(vp_far_owner(r->proc), pcs[i & (LOOKUP_PCS - 1)] >> PAGE_SHIFT,
		   &xmaps[of & (LOOKUP_XMAPS_MAX - 1)], 0);
	return 0;
}

/* Enters xmaps[], and what pcs[] uses of them; 0 if that is done. */
SEC("raw_tp")
int fill_product(void *ctx)
{
	__u32 tgid = LOOKUP_TGID, zero = 0;
	struct vp_proc *empty = bpf_map_lookup_elem(&empty_proc, &zero);
	struct run r = {};

	if (!empty || bpf_map_update_elem(&procs, &tgid, empty, BPF_ANY))
		return 1;
	r.proc = bpf_map_lookup_elem(&procs, &tgid);
	if (!r.proc)
		return 1;
	/* a life of its own: nothing of the one before is found */
	r.proc->start_ns = bpf_ktime_get_ns();
	bpf_loop(xmap_cnt, enter_slot, &r, 0);
	bpf_loop(LOOKUP_PCS, enter_far, &r, 0);
	return 0;
}

/* ---- ways to look up: the start of the mapping that holds pc, or 0 -------------------------- */

static __always_inline __u64 nothing(struct run *r, __u64 pc)
{
	return pc;
}

static __always_inline __u64 start_of(__u32 i)
{
	return xmaps[i & (LOOKUP_XMAPS_MAX - 1)].start;
}

/*
 * SCAN_MAX of the mappings older than the newest `skip`, newest first. The verifier follows no
 * loop of thousands; a global function is verified once.
 */
__noinline __u64 scan(__u64 pc, __u32 skip)
{
	__u32 cnt = xmap_cnt - skip;

	for (__u32 i = 1; i <= SCAN_MAX; i++) {
		const struct vp_xmap *x;

		if (i > cnt)
			break;
		x = &xmaps[(cnt - i) & (LOOKUP_XMAPS_MAX - 1)];
		barrier_var(x);
		if (pc >= x->start && pc < x->end)
			return x->start;
	}
	return 0;
}

__noinline __u64 scan_all(__u64 pc)
{
	for (__u32 skip = 0; skip < LOOKUP_XMAPS_MAX && skip < xmap_cnt; skip += SCAN_MAX) {
		__u64 start = scan(pc, skip);

		if (start)
			return start;
	}
	return 0;
}

static __always_inline __u64 linear(struct run *r, __u64 pc)
{
	return scan_all(pc);
}

__noinline __u64 halve(__u64 pc)
{
	__u32 low = 0, high = xmap_cnt;
	const struct vp_xmap *x;

	/* 14 times: 2^13 mappings, and the end */
	for (int i = 0; i < 14 && low < high; i++) {
		__u32 mid = (low + high) / 2;

		if (sorted[mid & (LOOKUP_XMAPS_MAX - 1)].start <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return 0;
	x = &sorted[(low - 1) & (LOOKUP_XMAPS_MAX - 1)];
	return pc < x->end ? x->start : 0;
}

static __always_inline __u64 binary(struct run *r, __u64 pc)
{
	return halve(pc);
}

static __always_inline __u64 trie(struct run *r, __u64 pc)
{
	struct lookup_prefix key = {96, LOOKUP_TGID, __builtin_bswap64(pc)};
	__u32 *i = bpf_map_lookup_elem(&prefixes, &key);

	return i ? start_of(*i) : 0;
}

static __always_inline __u64 hash(struct run *r, __u64 pc)
{
	struct lookup_page key = {LOOKUP_TGID, pc >> 12};
	__u32 *i = bpf_map_lookup_elem(&pages, &key);

	return i ? start_of(*i) : 0;
}

static __always_inline __u64 in_set(struct run *r, __u64 pc)
{
	__u64 page = pc >> 12;
	__u32 key = lookup_set_of(page);
	struct lookup_set *s = bpf_map_lookup_elem(&sets, &key);

	if (!s)
		return 0;
	for (int i = 0; i < LOOKUP_WAYS; i++)
		if (s->page[i] == page && pc >= s->xmap[i].start && pc < s->xmap[i].end)
			return s->xmap[i].start;
	return 0;
}

static long note_start(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	*(__u64 *)data = vma->vm_start;
	return 0;
}

static __always_inline __u64 find_vma(struct run *r, __u64 pc)
{
	__u64 start = 0;

	bpf_find_vma(r->task, pc, note_start, &start, 0);
	return start;
}

/* Without the product's checks that nobody changes the tree meanwhile. */
static __always_inline __u64 tree(struct run *r, __u64 pc)
{
	const struct vm_area_struct *vma = (void *)vp_mm_walk(r->mm, pc);
	__u64 start;

	if ((__u64)vma <= VP_MM_UNCLEAR)
		return 0;
	start = BPF_CORE_READ(vma, vm_start);
	return pc >= start && pc < BPF_CORE_READ(vma, vm_end) ? start : 0;
}

/* What precedes all lookups of a sample: the table of the process. */
static __always_inline __u64 table(struct run *r, __u64 pc)
{
	__u32 tgid = LOOKUP_TGID;
	struct vp_proc *proc = bpf_map_lookup_elem(&procs, &tgid);

	return proc ? pc : 0;
}

/* ---- programs ------------------------------------------------------------------------------- */

static __always_inline int look_up_all(long (*step)(__u32 i, void *data))
{
	__u32 tgid = LOOKUP_TGID;
	struct run r = {
		.proc = bpf_map_lookup_elem(&procs, &tgid),
		.task = bpf_get_current_task_btf(),
	};
	__u64 start_ns;

	if (!r.proc)
		return 1;
	r.mm = vp_mm(r.task);
	start_ns = bpf_ktime_get_ns();
	bpf_loop(LOOKUP_PCS, step, &r, 0);
	took_ns = bpf_ktime_get_ns() - start_ns;
	sum = r.sum;
	return 0;
}

#define PROGRAM(way)                                                                               \
	static long step_##way(__u32 i, void *data)                                                \
	{                                                                                          \
		struct run *r = data;                                                              \
                                                                                                   \
		r->sum += way(r, pcs[i & (LOOKUP_PCS - 1)]);                                       \
		return 0;                                                                          \
	}                                                                                          \
	SEC("raw_tp") int by_##way(void *ctx)                                                      \
	{                                                                                          \
		return look_up_all(step_##way);                                                    \
	}

PROGRAM(nothing)
PROGRAM(product)
PROGRAM(slots_first)
PROGRAM(linear)
PROGRAM(binary)
PROGRAM(trie)
PROGRAM(hash)
PROGRAM(in_set)
PROGRAM(find_vma)
PROGRAM(tree)
PROGRAM(table)
