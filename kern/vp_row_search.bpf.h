/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rule at a file offset: looked up in a cache of this CPU first, then searched for in the
 * file's rows (include/vp_rows.h). What costs is a map lookup, so one is made per 256 keys and
 * the search inside is pointer arithmetic without branches.
 */
#ifndef VP_ROW_SEARCH_BPF_H
#define VP_ROW_SEARCH_BPF_H

#include "vp_maps.bpf.h"

/*
 * Steps of a binary search for the last key that is not above `key`: index in [0, 255]. Without
 * the asm clang makes branches of it, and the verifier follows each of 2^8 ways. Without the
 * barrier it adds by |, of which 6.1's verifier knows no bounds.
 */
#define vp_search_step(keys, key, i, half)                                                         \
	do {                                                                                       \
		__u64 diff_ = (__u64)(keys)[(i) + (half)] - (key)-1;                               \
		asm volatile("%0 s>>= 63" : "+r"(diff_));                                          \
		barrier_var(i);                                                                    \
		(i) += diff_ & (half);                                                             \
	} while (0)

#define vp_search(keys, key, i)                                                                    \
	do {                                                                                       \
		vp_search_step(keys, key, i, 128);                                                 \
		vp_search_step(keys, key, i, 64);                                                  \
		vp_search_step(keys, key, i, 32);                                                  \
		vp_search_step(keys, key, i, 16);                                                  \
		vp_search_step(keys, key, i, 8);                                                   \
		vp_search_step(keys, key, i, 4);                                                   \
		vp_search_step(keys, key, i, 2);                                                   \
		vp_search_step(keys, key, i, 1);                                                   \
	} while (0)

/* One level of directory: *elem and *first become those of the part that holds key. */
static __always_inline bool vp_descend(void *array, __u64 key, __u32 *elem, __u64 *first,
				       __u32 next_elem)
{
	const __u32 *keys = bpf_map_lookup_elem(array, elem);
	__u64 i = 0;

	if (!keys)
		return false;
	vp_search(keys, key, i);
	*first = keys[i];
	*elem = next_elem + i;
	return *first <= key;
}

/* Number of the rule at key; 0: none. */
static __always_inline __u32 vp_rule_number(const struct vp_row_file *file, void *array, __u64 key)
{
	__u32 elem = 0, dirs = file->desc.dir_cnt;
	const struct vp_row_block *block;
	__u64 first, delta, i = 0;

	if (!vp_descend(array, key, &elem, &first, 1))
		return 0;
	if (dirs && !vp_descend(array, key, &elem, &first, 1 + dirs + (elem - 1) * VP_ROWS_FANOUT))
		return 0;
	block = bpf_map_lookup_elem(array, &elem);
	if (!block)
		return 0;
	delta = key - first;
	if (delta >= VP_ROWS_NO_DELTA)
		delta = VP_ROWS_NO_DELTA - 1;
	vp_search(block->delta, delta, i);
	return block->rule[i];
}

static __always_inline void vp_copy_rule(struct vp_rule *to, void *array, __u32 elem, __u32 number)
{
	const struct vp_rule *rules;

	elem += number / VP_RULES_PER_ELEM;
	number %= VP_RULES_PER_ELEM;
	rules = bpf_map_lookup_elem(array, &elem);
	/* The verifier does not see what a division leaves, and clang does not see why to check. */
	barrier_var(number);
	if (rules && number < VP_RULES_PER_ELEM)
		__builtin_memcpy(to, &rules[number], sizeof(*to));
}

/*
 * A file's rows may be freed at any moment. In an interrupt they stay while it lasts; in task
 * context that takes a read lock.
 */
#ifdef VP_UNWIND_IN_TASK
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
#define vp_rows_lock()	 bpf_rcu_read_lock()
#define vp_rows_unlock() bpf_rcu_read_unlock()
#else
#define vp_rows_lock()
#define vp_rows_unlock()
#endif

static __always_inline __u32 vp_search_rows(const struct vp_row_file *file, __u32 file_id,
					    __u64 key, struct vp_rule *rule)
{
	__u32 state = VP_ROW_FILE_UNKNOWN;
	void *array;

	vp_rows_lock();
	array = bpf_map_lookup_elem(&row_arrays, &file_id);
	if (array) {
		vp_copy_rule(rule, array, file->desc.rule_elem, vp_rule_number(file, array, key));
		/* The state is taken back before the array is: what was searched may have been another. */
		state = *(volatile const __u32 *)&file->state;
	}
	vp_rows_unlock();
	return state;
}

/* Written only when it changes: all CPUs read it. */
static __always_inline void vp_touch_rows(struct vp_row_file *file, __u64 now_ns)
{
	__u32 now = now_ns >> VP_ROW_USED_SHIFT;

	if (file->used != now)
		file->used = now;
}

/*
 * The rule at a file offset (of the vdso: file_id 0) and the file's VP_ROW_FILE_*; the rule is
 * all zero where there is none. A global function: verified once.
 */
__noinline int vp_find_rule(__u32 file_id, __u64 offset, struct vp_rule *rule)
{
	struct vp_row_file *file;
	__u64 key;

	if (!rule)
		return VP_ROW_FILE_UNKNOWN;
	__builtin_memset(rule, 0, sizeof(*rule));
	file = bpf_map_lookup_elem(&row_files, &file_id);
	if (!file)
		return VP_ROW_FILE_NONE;
	if (file->state != VP_ROW_FILE_READY)
		return file->state;
	vp_touch_rows(file, bpf_ktime_get_ns());
	key = offset - file->desc.base;
	if (key >= file->desc.span)
		return VP_ROW_FILE_READY;
	return vp_search_rows(file, file_id, key, rule);
}

#define VP_RULE_CACHE_SIZE 2048

/*
 * An entry of zeros is empty: no code is at offset 0, where the file's header is. owner: the tgid
 * whose memory the rule was read from, and which alone may use it; 0: it is from the file's rows.
 */
struct vp_cached_rule {
	__u64 offset;
	__u32 file_id;
	__u32 owner;
	struct vp_rule rule;
};

/*
 * Programs run through the same few thousand call sites again and again. A number is never
 * given to another file, so what is here stays true. `taken` by the program that uses it:
 * unwinding in task context can be preempted by another one; who finds it taken does without.
 */
struct vp_rule_cache {
	__u32 taken;
	__u32 reserved[7];
	struct vp_cached_rule entry[VP_RULE_CACHE_SIZE];
};

/* By CPU; sized by the loader. Not per-CPU memory: that is limited to 32 KiB. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_rule_cache);
} rule_caches SEC(".maps");

static __always_inline struct vp_rule_cache *vp_take_rule_cache(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct vp_rule_cache *cache = bpf_map_lookup_elem(&rule_caches, &cpu);

	if (cache && __sync_val_compare_and_swap(&cache->taken, 0, 1) == 0)
		return cache;
	return NULL;
}

static __always_inline void vp_release_rule_cache(struct vp_rule_cache *cache)
{
	if (cache)
		__sync_lock_test_and_set(&cache->taken, 0);
}

/* Rows whose rules are all found in the cache are in use, too: one sample in 16 says so. */
static __always_inline void vp_note_cached_use(__u32 file_id, __u64 now_ns)
{
	struct vp_row_file *file;

	if ((now_ns >> 10) & 15)
		return;
	file = bpf_map_lookup_elem(&row_files, &file_id);
	if (file)
		vp_touch_rows(file, now_ns);
}

static __always_inline __u32 vp_rule_hash(__u32 file_id, __u64 offset)
{
	__u64 h = (offset ^ ((__u64)file_id << 20)) * 0x9e3779b97f4a7c15ULL;

	return (h >> 40) & (VP_RULE_CACHE_SIZE - 1);
}

#endif
