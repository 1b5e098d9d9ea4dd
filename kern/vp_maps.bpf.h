/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that objects share. Every object declares them through this header;
 * kern/maps.bpf.c holds them alone, is loaded first, and the loader hands its descriptors to
 * the others. max_entries of `rb` and `procs` are set before that load.
 */
#ifndef VP_MAPS_BPF_H
#define VP_MAPS_BPF_H

#include "vp_common.bpf.h"

/*
 * Executable mappings of one process that the kernel side knows. More than that is rare
 * (typically 5 to 60); beyond it, mappings are asked for each time, counted.
 */
#define VP_XMAPS_PER_PROC 96

/*
 * Valid for a task only while mm, start_ns and exec_id equal the task's: exec, exit and a reused
 * tgid all change one of them.
 * An inserter takes `lock` by compare-and-swap, writes a new slot and then publishes it by
 * storing cnt. A slot whose mapping was replaced as a whole is used again: its `end` is 0 until
 * everything else is written. Readers take no lock and check what they copied. A lock that is
 * taken is not waited for.
 */
struct vp_proc {
	__u64 mm;
	__u64 start_ns;
	__u32 exec_id;
	__u32 cnt;
	__u32 lock;
	__u32 generation;    /* of the mappings: + 1 for each insertion */
	__u32 inherit_asked; /* whether the parent's mappings were looked for */
	__u32 barren;	     /* the last unknown PC was no address of code: see vp_resolve */
	/* vp_mapping_seq() when the slot was last known to be true. Plain stores: the last wins. */
	__u32 seq[VP_XMAPS_PER_PROC];
	struct vp_xmap xmap[VP_XMAPS_PER_PROC];
};

/* Written by all programs, read by the reader thread. Sized by the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} rb SEC(".maps");

/* Key: tgid in the initial namespace. Written by all programs; entries leave at exit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct vp_proc);
} procs SEC(".maps");

/* Files that have numbers. */
#define VP_FILES_MAX 65536

/* Written by whichever program first sees a file; never deleted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VP_FILES_MAX);
	__type(key, struct vp_file_key);
	__type(value, __u32);
} file_ids SEC(".maps");

/* [0]: the last file_id given out. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} last_file_id SEC(".maps");

/*
 * Unwind rows, by file_id ([0]: the vdso): filled by user/unwind/row_store.c, read by the
 * unwinder. row_files says what is where in an array of row_arrays; see include/vp_rows.h.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, VP_FILES_MAX);
	__type(key, __u32);
	__type(value, struct vp_row_file);
} row_files SEC(".maps");

/* Sizes differ by file (BPF_F_INNER_MAP), and user space writes through mmap: 1 ns a row. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, VP_FILES_MAX);
	__type(key, __u32);
	__array(
		values, struct {
			__uint(type, BPF_MAP_TYPE_ARRAY);
			__uint(map_flags, BPF_F_INNER_MAP | BPF_F_MMAPABLE);
			__uint(max_entries, 1);
			__uint(key_size, sizeof(__u32));
			__uint(value_size, VP_ROWS_ELEM_BYTES);
		});
} row_arrays SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VP_CNT_CNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/*
 * Whom to sample, by vp_filter. Key: tgid or tid as the reader numbers it; value:
 * VP_TARGET_F_*. Written by user space before the sampler attaches, by the fork, exec and
 * exit programs after.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target_cgroup SEC(".maps");

static __always_inline void vp_count_n(__u32 which, __u64 n)
{
	__u64 *c = bpf_map_lookup_elem(&counters, &which);

	if (c)
		__sync_fetch_and_add(c, n);
}

static __always_inline void vp_count(__u32 which)
{
	vp_count_n(which, 1);
}

#endif
