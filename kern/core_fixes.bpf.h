/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Differences between kernels, and nothing else: each block names the commit and version of
 * the change, has a flavour struct whose suffix names the boundary, and one accessor.
 */
#ifndef VP_CORE_FIXES_BPF_H
#define VP_CORE_FIXES_BPF_H

#include "vp_common.bpf.h"

/*
 * inode times. 13bc24457850 (6.6) renamed i_mtime to __i_mtime behind accessors;
 * 3aa63a569c64 (6.11) split it into i_mtime_sec and i_mtime_nsec.
 */
struct inode___pre_v66 {
	struct timespec64 i_mtime;
} __attribute__((preserve_access_index));

struct inode___pre_v611 {
	struct timespec64 __i_mtime;
} __attribute__((preserve_access_index));

struct inode___v611 {
	long long i_mtime_sec;
	__u32 i_mtime_nsec;
} __attribute__((preserve_access_index));

static __always_inline __u64 vp_inode_mtime_ns(const struct inode *inode)
{
	const struct inode___v611 *v611 = (const void *)inode;
	const struct inode___pre_v611 *pre_v611 = (const void *)inode;
	const struct inode___pre_v66 *pre_v66 = (const void *)inode;

	if (bpf_core_field_exists(v611->i_mtime_sec))
		return VP_READ(v611, i_mtime_sec) * 1000000000ULL + VP_READ(v611, i_mtime_nsec);
	if (bpf_core_field_exists(pre_v611->__i_mtime))
		return BPF_CORE_READ(pre_v611, __i_mtime.tv_sec) * 1000000000ULL +
		       BPF_CORE_READ(pre_v611, __i_mtime.tv_nsec);
	return BPF_CORE_READ(pre_v66, i_mtime.tv_sec) * 1000000000ULL +
	       BPF_CORE_READ(pre_v66, i_mtime.tv_nsec);
}

/*
 * btrfs subvolumes number their inodes each from the start, on one s_dev; each has a device of
 * its own, which stat(2) shows. The types are there if btrfs is built in or its module was
 * loaded when the programs were: user/kernel/core_btf.c looks for them.
 */
struct btrfs_root___opt {
	__u32 anon_dev;
} __attribute__((preserve_access_index));

struct btrfs_inode___opt {
	struct btrfs_root___opt *root;
	struct inode vfs_inode;
} __attribute__((preserve_access_index));

#define VP_BTRFS_MAGIC 0x9123683e

/* The device that makes an inode number unique. */
static __always_inline __u32 vp_inode_dev(const struct inode *inode)
{
	const struct btrfs_inode___opt *btrfs;
	__u32 dev = VP_READ2(inode, i_sb, s_dev), subvolume = 0;

	if (!bpf_core_type_exists(struct btrfs_inode___opt) ||
	    VP_READ2(inode, i_sb, s_magic) != VP_BTRFS_MAGIC)
		return dev;
	btrfs = (const void *)inode - bpf_core_field_offset(struct btrfs_inode___opt, vfs_inode);
	subvolume = BPF_CORE_READ(btrfs, root, anon_dev);
	return subvolume ? subvolume : dev;
}

/*
 * Backing files. def3ae83da02 (6.8) gave struct backing_file a user_path: what a
 * file system that stacks on another (overlayfs, FUSE passthrough) shows to user space, while
 * f_path and f_inode of the mapped file are the lower layer's. Before, f_path was the user's.
 * FMODE_BACKING says that a file is embedded in a backing_file, but is no type and moved from
 * bit 25 to bit 24 (95101401bb50, 6.14); so both bits are asked, and that the mount is one the
 * kernel keeps for itself (mnt_ns is an error pointer), as all layers' are.
 */
struct backing_file___v68 {
	struct file file;
	struct path user_path;
} __attribute__((preserve_access_index));

#define VP_FMODE_BACKING_EITHER (3 << 24)

static __always_inline bool vp_mount_is_internal(const struct vfsmount *vfsmnt)
{
	const struct mount *mnt = (const void *)vfsmnt - bpf_core_field_offset(struct mount, mnt);
	__u64 ns = (__u64)BPF_CORE_READ(mnt, mnt_ns);

	return ns >= (__u64)-MAX_ERRNO;
}

/* The path that user space sees: &file->f_path, or the user_path of a backing file. */
static __always_inline const struct path *vp_file_user_path(const struct file *file, bool *layer)
{
	const struct backing_file___v68 *backing = (const void *)file;
	const struct dentry *dentry;
	const struct vfsmount *mnt;

	*layer = false;
	if (!bpf_core_field_exists(backing->user_path) ||
	    !(VP_READ(file, f_mode) & VP_FMODE_BACKING_EITHER))
		return &file->f_path;

	dentry = BPF_CORE_READ(file, f_path.dentry);
	mnt = BPF_CORE_READ(file, f_path.mnt);
	/* A file without a tree (memfd, /dev/zero) is on an internal mount, too. */
	if (BPF_CORE_READ(dentry, d_parent) == dentry || !vp_mount_is_internal(mnt))
		return &file->f_path;
	*layer = true;
	return &backing->user_path;
}

/*
 * Whether an mm's mappings have changed. 5e31275cc997 (6.4) counts write sections of mmap_lock
 * in mm_lock_seq, an int, with CONFIG_PER_VMA_LOCK; eb449bd96954 (6.14, also in 6.12.y) made it
 * a seqcount, odd within such a section. Without it every moment is another one where asking is
 * cheap (the walk of the tree), else what mmap and munmap usually move is compared, and nothing
 * is trusted for longer than VP_TRUST_SHIFT says.
 */
struct mm_struct___v64 {
	int mm_lock_seq;
} __attribute__((preserve_access_index));

struct vp_any_seqcount {
	unsigned int sequence;
};

struct mm_struct___v614 {
	struct vp_any_seqcount mm_lock_seq;
} __attribute__((preserve_access_index));

/* The walk of the mm's tree may be used: it agreed with bpf_find_vma when that was tried. */
bool vp_mm_walk_on = false;

#define VP_MOMENT_SHIFT 4  /* of ns: two samples of a thread never share a moment */
#define VP_TRUST_SHIFT	26 /* of ns: 67 ms */

/* ts_ns: of the sample or event that wants to know. */
static __always_inline __u32 vp_mapping_seq(const struct mm_struct *mm, __u64 ts_ns)
{
	const struct mm_struct___v614 *v614 = (const void *)mm;
	const struct mm_struct___v64 *v64 = (const void *)mm;
	__u32 seq = 0;

	if (bpf_core_field_exists(v614->mm_lock_seq)) {
		bpf_probe_read_kernel(&seq, sizeof(seq),
				      (void *)mm + bpf_core_field_offset(v614->mm_lock_seq));
		return seq;
	}
	if (bpf_core_field_exists(v64->mm_lock_seq))
		return BPF_CORE_READ(v64, mm_lock_seq);
	if (vp_mm_walk_on)
		return ts_ns >> VP_MOMENT_SHIFT;
	seq = BPF_CORE_READ(mm, map_count) + 31 * BPF_CORE_READ(mm, total_vm) +
	      961 * BPF_CORE_READ(mm, exec_vm);
	return seq + (__u32)(ts_ns >> VP_TRUST_SHIFT);
}

/*
 * The same, asked inside a write section of mmap_lock: its value when that section has ended. The
 * seqcount is odd until then, the int goes up by one. What is compared without either may still
 * change; a value that comes out wrong only costs a question.
 */
static __always_inline __u32 vp_mapping_seq_after(const struct mm_struct *mm, __u64 ts_ns)
{
	const struct mm_struct___v614 *v614 = (const void *)mm;
	const struct mm_struct___v64 *v64 = (const void *)mm;
	__u32 seq = vp_mapping_seq(mm, ts_ns);

	if (bpf_core_field_exists(v614->mm_lock_seq))
		return (seq | 1) + 1;
	return bpf_core_field_exists(v64->mm_lock_seq) ? seq + 1 : seq;
}

/*
 * Is somebody changing the mappings at this moment? By the lock itself: bit 0 of a
 * rw_semaphore's count says that a writer has it; on PREEMPT_RT (since 5.15) `readers` is negative
 * while none has or wants it.
 */
struct vp_any_atomic {
	int counter;
};

struct vp_any_atomic_long {
	long counter;
};

struct rw_semaphore___rt {
	struct vp_any_atomic rwbase; /* whose first member is readers */
} __attribute__((preserve_access_index));

struct rw_semaphore___plain {
	struct vp_any_atomic_long count;
} __attribute__((preserve_access_index));

struct mm_struct___lock_rt {
	struct rw_semaphore___rt mmap_lock;
} __attribute__((preserve_access_index));

static __always_inline bool vp_mm_is_changing(const struct mm_struct *mm)
{
	const struct rw_semaphore___plain *plain;
	const struct rw_semaphore___rt *rt;
	const struct mm_struct___lock_rt *m = (const void *)mm;
	const void *lock = (const void *)mm + bpf_core_field_offset(m->mmap_lock);
	int readers = 0;
	long count = 0;

	plain = lock;
	rt = lock;
	if (bpf_core_field_exists(plain->count)) {
		bpf_probe_read_kernel(&count, sizeof(count),
				      lock + bpf_core_field_offset(plain->count));
		return count & 1;
	}
	if (bpf_core_field_exists(rt->rwbase)) {
		bpf_probe_read_kernel(&readers, sizeof(readers),
				      lock + bpf_core_field_offset(rt->rwbase));
		return readers >= 0;
	}
	return true;
}

/*
 * May somebody else's change of a VMA be seen half done, for long or without a trace? On PREEMPT_RT a
 * writer can be preempted between two members; without mm_lock_seq nothing tells that it was there.
 */
static __always_inline bool vp_half_changes_are_seen(void)
{
	return bpf_core_field_exists(struct rw_semaphore___rt, rwbase) ||
	       !(bpf_core_field_exists(struct mm_struct___v614, mm_lock_seq) ||
		 bpf_core_field_exists(struct mm_struct___v64, mm_lock_seq));
}

/*
 * [heap]. d3bb89ea9c13 ("mm: refine vma_is_initial_heap…", 6.7): a VMA that only touches the
 * heap is not the heap. struct bpf_iter_task_vma came with the same release.
 */
struct bpf_iter_task_vma___v67 {
	int dummy;
};

static __always_inline bool vp_touching_is_heap(void)
{
	return !bpf_core_type_exists(struct bpf_iter_task_vma___v67);
}

/*
 * Names of anonymous memory: 9a10064f5625 (5.17), only with CONFIG_ANON_VMA_NAME; shared
 * anonymous memory has them since d09e8ca6cb93 (6.2), which moved the field out of a union with
 * `shared`.
 */
struct anon_vma_name___opt {
	char name[1];
} __attribute__((preserve_access_index));

struct vm_area_struct___anon_name {
	struct {
		int dummy;
	} shared;
	struct anon_vma_name___opt *anon_name;
} __attribute__((preserve_access_index));

/* Address of the name, NUL-terminated in kernel memory; NULL if none. */
static __always_inline const char *vp_anon_name(const struct vm_area_struct *vma, bool has_file)
{
	const struct vm_area_struct___anon_name *named = (const void *)vma;
	const struct anon_vma_name___opt *name;

	if (!bpf_core_field_exists(named->anon_name))
		return NULL;
	if (has_file &&
	    bpf_core_field_offset(named->anon_name) == bpf_core_field_offset(named->shared))
		return NULL;
	name = BPF_CORE_READ(named, anon_name);
	if (!name)
		return NULL;
	return (const char *)name + bpf_core_field_offset(struct anon_vma_name___opt, name);
}

/*
 * Whether a task is in the middle of an exec. As old as the tree; should it go away, threads that
 * exec'd are said to have been renamed, too.
 */
struct task_struct___in_execve {
	unsigned int in_execve : 1;
} __attribute__((preserve_access_index));

static __always_inline bool vp_is_in_exec(const struct task_struct *task)
{
	const struct task_struct___in_execve *t = (const void *)task;

	return bpf_core_field_exists(t->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(t, in_execve);
}

/*
 * Work in task context. 6.18 has bpf_task_work_schedule_resume with a trailing argument for the
 * verifier (ea0714d61dea named it _impl); 7.0 (6e663ffdf760) has it without. The BTF of 7.0 has both
 * names, but no program with a call of _impl in it loads, even where it is never reached: so who calls
 * one of them must not call the other.
 */
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work,
					      void *map,
					      int (*callback)(struct bpf_map *, void *, void *),
					      void *aux) __ksym __weak;
extern int
bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work, void *map,
			      int (*callback)(struct bpf_map *, void *, void *)) __ksym __weak;

#endif
