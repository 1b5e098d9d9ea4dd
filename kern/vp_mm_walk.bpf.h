/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading an mm's tree of VMAs without its lock, where bpf_find_vma cannot be asked (again): in an
 * interrupt any number of times, also on PREEMPT_RT and while a writer has the lock.
 *
 * The layout is the kernel's own affair (lib/maple_tree.c, 6.1 and later: before, VMAs were in an
 * rb-tree, and there is no walk). So nothing that is read is believed: the caller checks that the VMA
 * is one of this mm and covers the address, before and after it has read what it wants to know; and
 * user space compares the walk with bpf_find_vma before it sets vp_mm_walk_on.
 */
#ifndef VP_MM_WALK_BPF_H
#define VP_MM_WALK_BPF_H

#include "core_fixes.bpf.h"

#define VP_TREE_DEPTH	  16 /* 6 levels are 100,000 VMAs */
#define VP_NODE_WORDS	  32 /* 256 bytes, to which nodes are aligned */
#define VP_NODE_MASK	  255ULL
#define VP_NODE_TYPE(p)	  ((p) >> 3 & 15)
#define VP_NODE_LEAF_MAX  1 /* maple_dense 0, maple_leaf_64 1 */
#define VP_NODE_RANGE_64  2
#define VP_NODE_ARANGE_64 3

/* The node being looked at. The caller sees to it that nobody else walks on this CPU meanwhile. */
struct vp_tree_node {
	__u64 word[VP_NODE_WORDS];
	/* What the tree has an entry for: first and last byte. */
	__u64 first;
	__u64 last;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_tree_node);
} tree_node SEC(".maps");

static __always_inline struct vp_tree_node *vp_tree_node(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tree_node, &zero);
}

/* What vp_mm_walk returns besides the address of a VMA. */
#define VP_MM_NOTHING 0 /* nothing is mapped there */
#define VP_MM_UNCLEAR 1 /* cannot be said: not the tree that was expected, or it is being changed */

struct vp_tree_walk {
	__u64 at;
	__u64 entry; /* of the node above, at last of a leaf */
	__u32 leaf;
	__u32 unclear;
};

/*
 * The first of cnt pivots, from word `pivots` on, that is not below `at`: the last byte of what
 * the slot of that number is for. An unused one is 0, and the slot goes on to the node's end. A
 * global function: verified once.
 */
__noinline int vp_tree_slot(struct vp_tree_node *node, __u32 pivots, __u32 cnt, __u64 at)
{
	__u32 i;

	if (!node)
		return 0;
	for (i = 0; i < VP_NODE_WORDS / 2 - 1; i++) {
		__u64 pivot;

		if (i >= cnt)
			break;
		pivot = node->word[(pivots + i) & (VP_NODE_WORDS - 1)];
		if (i && !pivot)
			break;
		if (pivot >= at) {
			node->last = pivot;
			break;
		}
		node->first = pivot + 1;
	}
	return i;
}

#define vp_word_of(type, field)	 (bpf_core_field_offset(type, field) / sizeof(__u64))
#define vp_words_in(type, field) (bpf_core_field_size(type, field) / sizeof(__u64))

/* One level down; 1 ends the walk. */
static long vp_tree_level(__u32 i, void *data)
{
	struct vp_tree_walk *w = data;
	__u64 addr = w->entry & ~VP_NODE_MASK;
	__u32 type = VP_NODE_TYPE(w->entry), slots, slot;
	struct vp_tree_node *node = vp_tree_node();

	w->unclear = 1;
	if (!node || !addr || type > VP_NODE_ARANGE_64 || type == 0 ||
	    bpf_probe_read_kernel(node->word, sizeof(node->word), (void *)addr))
		return 1;
	/* A node that was taken out of the tree is its own parent. */
	if ((node->word[0] & ~VP_NODE_MASK) == addr)
		return 1;
	if (type == VP_NODE_ARANGE_64) {
		slots = vp_word_of(struct maple_arange_64, slot);
		slot = vp_tree_slot(node, vp_word_of(struct maple_arange_64, pivot),
				    vp_words_in(struct maple_arange_64, pivot), w->at);
	} else {
		slots = vp_word_of(struct maple_range_64, slot);
		slot = vp_tree_slot(node, vp_word_of(struct maple_range_64, pivot),
				    vp_words_in(struct maple_range_64, pivot), w->at);
	}
	w->entry = node->word[(slots + slot) & (VP_NODE_WORDS - 1)];
	w->leaf = type <= VP_NODE_LEAF_MAX;
	/* Entries that are neither a VMA nor nothing have their two lowest bits set to say so. */
	w->unclear = w->leaf && (w->entry & 3);
	return w->leaf;
}

/*
 * Address of the VMA that the tree of this mm has for `at`, or VP_MM_*. Nothing is known of it but
 * that and its range, in tree_node: see above. A global function: verified once.
 */
__noinline __u64 vp_mm_walk(__u64 mm_addr, __u64 at)
{
	const struct mm_struct *mm = (const void *)mm_addr;
	struct vp_tree_walk w = {.at = at, .unclear = 1};
	struct vp_tree_node *node = vp_tree_node();

	if (!bpf_core_type_exists(struct maple_range_64) || !mm || !node)
		return VP_MM_UNCLEAR;
	node->first = 0;
	node->last = ~0ULL;
	w.entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	bpf_loop(VP_TREE_DEPTH, vp_tree_level, &w, 0);
	if (w.unclear || !w.leaf)
		return VP_MM_UNCLEAR;
	return w.entry;
}

/*
 * Is this the range that the tree has for the VMA? One that is being moved or cut has its members
 * written before or after the tree is, one after the other: an interrupt can fall between them.
 */
static __always_inline bool vp_mm_walk_saw(__u64 start, __u64 end)
{
	const struct vp_tree_node *node = vp_tree_node();

	return node && node->first == start && node->last == end - 1;
}

#endif
