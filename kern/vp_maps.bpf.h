/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps that objects share. Every object declares them through this header;
 * kern/maps.bpf.c holds them alone, is loaded first, and the loader hands its descriptors to
 * the others. user/kernel/shared_maps.c sizes `rb` and `procs` before that load, and says whether
 * elements of hashes are allocated on demand.
 */
#ifndef VP_MAPS_BPF_H
#define VP_MAPS_BPF_H

#include "vp_common.bpf.h"

/*
 * Executable file mappings of one process that are kept with it: typically it has 5 to 40. What
 * is beyond that, and anonymous code, is kept in far_xmaps.
 */
#define VP_XMAPS_PER_PROC 48

/*
 * Valid for a task only while mm, start_ns and exec_id equal the task's: exec, exit and a reused
 * tgid all change one of them.
 *
 * The ranges of the slots do not overlap; a slot whose end is 0 is free. An inserter takes `lock` by
 * compare-and-swap (a lock that is taken is not waited for) and adds one to `version` before and
 * after it writes; readers take no lock, and what they copied counts if version did not move.
 */
struct vp_proc {
	__u64 mm;
	__u64 start_ns;
	__u32 exec_id;
	__u32 cnt; /* slots that have ever been used */
	__u32 lock;
	__u32 version;
	__u32 generation;     /* of the mappings: + 1 for each that is entered */
	__u32 inherit_asked;  /* whether the parent's mappings were looked for */
	__u32 barren;	      /* the last unknown PC was no address of code: see vp_resolve */
	__u32 has_far;	      /* something of it is in far_xmaps */
	__u32 far_epoch;      /* of what is known there: + 1 when a slot's mapping is forgotten */
	struct vp_xmap image; /* the main program's text, as it was first seen; end 0: not yet */
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

/*
 * A cache for all processes: the mapping in which a page of code lies. An entry is found by whose it
 * is and the page; under VP_FAR_KNOWN, the process's far_epoch and the page of a mapping's start it
 * says that this mapping's record has been sent, and none since that may contradict it. What is pushed
 * out is asked for again, and reported again.
 */
#define VP_FAR_SETS	   4096
#define VP_FAR_WAYS	   4
#define VP_FAR_KNOWN	   (1ULL << 63)
#define VP_FAR_EPOCH_SHIFT 45 /* pages of 57 bits of address are below */

struct vp_far {
	__u64 owner; /* vp_far_owner(); 0: free */
	__u64 page;
	struct vp_xmap xmap;
	__u32 seq;     /* as in vp_proc */
	__u32 version; /* odd while it is written, by whoever made it odd */
};

struct vp_far_set {
	struct vp_far way[VP_FAR_WAYS];
	__u32 next; /* way to be pushed out */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, VP_FAR_SETS);
	__type(key, __u32);
	__type(value, struct vp_far_set);
} far_xmaps SEC(".maps");

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
	__uint(max_entries, 32768);
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
