/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a struct vm_area_struct to a vp_rec_mmap2, by the rules of the kernel's own
 * perf_event_mmap_event() and fs/proc/task_mmu.c. The vma must be stable: the caller holds
 * the mm's lock, as the iterator and bpf_find_vma do for us.
 */
#ifndef VP_VMA_BPF_H
#define VP_VMA_BPF_H

#include "vp_identity.bpf.h"

#define VM_READ	    0x1
#define VM_WRITE    0x2
#define VM_EXEC	    0x4
#define VM_MAYSHARE 0x80
#define VM_LOCKED   0x2000
#define VM_HUGETLB  0x400000

#define MAP_SHARED  0x01
#define MAP_PRIVATE 0x02
#define MAP_LOCKED  0x2000
#define MAP_HUGETLB 0x40000

#define MM_CONTEXT_HAS_VSYSCALL 2 /* x86: 1 << 1 since 5.4 */

/*
 * What is needed of a VMA, read once.
 */
struct vp_vma {
	__u64 start;
	__u64 end;
	__u64 pgoff; /* bytes, whatever is mapped */
	__u64 flags;
	struct mm_struct *mm;
	struct file *file;
	const struct vm_operations_struct *ops;
	void *private_data;
};

static __always_inline void vp_read_vma(struct vp_vma *v, struct vm_area_struct *vma)
{
	v->start = VP_READ(vma, vm_start);
	v->end = VP_READ(vma, vm_end);
	v->pgoff = (__u64)VP_READ(vma, vm_pgoff) << PAGE_SHIFT;
	v->flags = VP_READ(vma, vm_flags);
	v->mm = VP_READ(vma, vm_mm);
	v->file = VP_READ(vma, vm_file);
	v->ops = VP_READ(vma, vm_ops);
	/* Only special mappings' is of interest, and anonymous memory has no ops. */
	v->private_data = v->ops ? BPF_CORE_READ(vma, vm_private_data) : NULL;
}

/* Longest component, so that a name can be read without knowing its length. */
#define VP_NAME_MAX 256

/* A record with room for its name; a name may be written up to VP_PATH_MAX + VP_NAME_MAX. */
struct vp_mmap2_buf {
	struct vp_rec_mmap2 rec;
	char name[VP_PATH_MAX + VP_NAME_MAX + 8];
};

/* Special mappings ([vdso], [vvar], [uprobes], …) have no file, but a name of their own. */
static __always_inline bool vp_vma_is_special(const struct vp_vma *v)
{
	const struct vm_operations_struct *ops = v->ops;

	return ops && v->private_data && VP_READ(ops, name);
}

/* A file that never had a name in a tree (memfd, shared anonymous memory): its dentry is a root. */
static __always_inline bool vp_path_is_nameless(const struct path *path)
{
	const struct dentry *dentry = BPF_CORE_READ(path, dentry);

	return BPF_CORE_READ(dentry, d_parent) == dentry &&
	       BPF_CORE_READ(path, mnt, mnt_root) != dentry;
}

/* Of the nameless files only this kind can be given contents before it is mapped. */
static __always_inline bool vp_dentry_is_memfd(const struct dentry *dentry)
{
	const char memfd[] = "memfd:";
	char name[sizeof(memfd)] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(dentry, d_name.name));
	for (__u32 i = 0; i < sizeof(memfd) - 1; i++)
		if (name[i] != memfd[i])
			return false;
	return true;
}

/*
 * Memory that starts empty although the kernel keeps a file for it: private mappings of
 * /dev/zero (without ops, as anonymous memory), shared anonymous, huge and SysV memory.
 */
static __always_inline bool vp_vma_is_empty_file(const struct vp_vma *v)
{
	const struct path *path = &v->file->f_path;

	return !v->ops ||
	       (vp_path_is_nameless(path) && !vp_dentry_is_memfd(BPF_CORE_READ(path, dentry)));
}

/* Of a special mapping, by its name: an exec notes where it is only after it has mapped it. */
static __always_inline bool vp_vma_is_vdso(const struct vp_vma *v)
{
	const struct vm_special_mapping *special = v->private_data;
	const union {
		char text[8];
		__u64 word;
	} vdso = {.text = "[vdso]"};
	__u64 name = 0;

	bpf_probe_read_kernel_str(&name, sizeof(name), BPF_CORE_READ(special, name));
	return name == vdso.word;
}

static __always_inline __u16 vp_vma_verdict(const struct vp_vma *v)
{
	if (!(v->flags & VM_EXEC))
		return VP_VERDICT_NOT_EXEC;
	if (v->file)
		return vp_vma_is_empty_file(v) ? VP_VERDICT_ANON_EXEC : VP_VERDICT_FILE;
	if (!vp_vma_is_special(v))
		return VP_VERDICT_ANON_EXEC;
	return vp_vma_is_vdso(v) ? VP_VERDICT_VDSO : VP_VERDICT_SPECIAL;
}

static __always_inline __u32 vp_vma_map_flags(__u64 vm_flags)
{
	__u32 flags = vm_flags & VM_MAYSHARE ? MAP_SHARED : MAP_PRIVATE;

	if (vm_flags & VM_LOCKED)
		flags |= MAP_LOCKED;
	if (vm_flags & VM_HUGETLB)
		flags |= MAP_HUGETLB;
	return flags;
}

static __always_inline void vp_fill_perf_mmap2(struct vp_perf_mmap2 *m, const struct vp_vma *v)
{
	m->type = VP_PERF_RECORD_MMAP2;
	m->misc = VP_PERF_MISC_USER | (v->flags & VM_EXEC ? 0 : VP_PERF_MISC_MMAP_DATA);
	m->addr = v->start;
	m->len = v->end - v->start;
	m->pgoff = v->file ? v->pgoff : 0;
	m->maj = 0;
	m->min = 0;
	m->ino = 0;
	m->ino_generation = 0;
	m->prot = v->flags & (VM_READ | VM_WRITE | VM_EXEC);
	m->flags = vp_vma_map_flags(v->flags);
}

/* d_unlinked(): hashed nowhere and not a root. */
static __always_inline bool vp_dentry_is_deleted(const struct dentry *dentry)
{
	return !BPF_CORE_READ(dentry, d_hash.pprev) && BPF_CORE_READ(dentry, d_parent) != dentry;
}

/* The device and inode as /proc shows them; sets the DELETED and NAMELESS flags. */
static __always_inline void vp_fill_user_file(struct vp_rec_mmap2 *rec, const struct file *file)
{
	bool layer;
	const struct path *path = vp_file_user_path(file, &layer);
	struct dentry *dentry = BPF_CORE_READ(path, dentry);
	struct inode *inode = layer ? BPF_CORE_READ(dentry, d_inode) : BPF_CORE_READ(file, f_inode);
	__u32 dev = BPF_CORE_READ(inode, i_sb, s_dev);

	rec->perf.maj = VP_DEV_MAJOR(dev);
	rec->perf.min = VP_DEV_MINOR(dev);
	rec->perf.ino = BPF_CORE_READ(inode, i_ino);
	rec->perf.ino_generation = BPF_CORE_READ(inode, i_generation);
	if (vp_dentry_is_deleted(dentry))
		rec->hdr.flags |= VP_MMAP2_F_DELETED;
	if (vp_path_is_nameless(path))
		rec->hdr.flags |= VP_MMAP2_F_NAMELESS;
}

/* What the records of all mappings of a process share; ORs a flag into hdr.flags. */
static __always_inline void vp_fill_owner(struct vp_rec_mmap2 *rec, struct task_struct *task,
					  struct mm_struct *mm)
{
#ifdef __TARGET_ARCH_x86
	if (VP_READ(mm, context.flags) & MM_CONTEXT_HAS_VSYSCALL)
		rec->hdr.flags |= VP_MMAP2_F_VSYSCALL;
#endif
	vp_fill_proc_id(&rec->proc, task);
	rec->perf.pid = rec->proc.tgid;
	rec->perf.tid = rec->proc.tgid;
}

/* What a table needs to know of a mapping. */
static __always_inline void vp_fill_range(struct vp_rec_mmap2 *rec, const struct vp_vma *v)
{
	vp_fill_perf_mmap2(&rec->perf, v);
	rec->generation = 0;
	rec->reserved = 0;
	rec->verdict = vp_vma_verdict(v);
	if (!v->file || rec->verdict == VP_VERDICT_ANON_EXEC) {
		__builtin_memset(&rec->file, 0, sizeof(rec->file));
		rec->file_id = VP_FILE_ID_NONE;
		return;
	}
	vp_fill_file_key(&rec->file, v->file);
	/* A JIT's own memory file changes with all that it compiles, and stays the same file. */
	if (vp_path_is_nameless(&v->file->f_path)) {
		rec->file.mtime_ns = 0;
		rec->file.size_bytes = 0;
	}
	rec->file_id = vp_file_id(&rec->file);
}

/* All but owner, comm and name; ORs flags into hdr.flags. */
static __always_inline void vp_fill_mapping(struct vp_rec_mmap2 *rec, const struct vp_vma *v)
{
	vp_fill_range(rec, v);
	if (v->file)
		vp_fill_user_file(rec, v->file);
}

/* Sizes and pads a name of len bytes without its NUL; returns the size of the record. */
static __always_inline __u32 vp_finish_mmap2(struct vp_mmap2_buf *buf, __u32 len)
{
	__u32 padded;

	len &= 2 * VP_PATH_MAX - 1;
	if (len > VP_PATH_MAX)
		len = VP_PATH_MAX;
	barrier_var(len);
	for (int i = 0; i < 8; i++)
		buf->name[len + i] = 0;
	padded = (len + 8) & ~7U;
	buf->rec.name_bytes = padded;
	buf->rec.perf.size = sizeof(struct vp_perf_mmap2) + padded;
	buf->rec.hdr.size = sizeof(struct vp_rec_mmap2) + padded;
	return buf->rec.hdr.size;
}

static __always_inline bool vp_vma_is_heap(const struct vp_vma *v)
{
	struct mm_struct *mm = v->mm;
	__u64 brk = VP_READ(mm, brk), start_brk = VP_READ(mm, start_brk);

	if (vp_touching_is_heap())
		return v->start <= brk && v->end >= start_brk;
	return v->start < brk && v->end > start_brk;
}

static __always_inline bool vp_vma_is_stack(const struct vp_vma *v)
{
	struct mm_struct *mm = v->mm;
	__u64 start_stack = VP_READ(mm, start_stack);

	return v->start <= start_stack && v->end >= start_stack;
}

#define vp_set_name(buf, literal)                                                                  \
	({                                                                                         \
		__builtin_memcpy((buf)->name, literal, sizeof(literal));                           \
		sizeof(literal) - 1;                                                               \
	})

/* "[anon:NAME]" as prctl(PR_SET_VMA) named it; the prefix ends with the colon. */
static __always_inline __u32 vp_set_given_name(struct vp_mmap2_buf *buf, const char *given,
					       __u32 prefix_len)
{
	long n = bpf_probe_read_kernel_str(buf->name + prefix_len, VP_NAME_MAX, given);
	__u32 end;

	if (n < 1)
		n = 1;
	end = prefix_len + (__u32)n - 1;
	end &= VP_PATH_MAX - 1;
	buf->name[end] = ']';
	return end + 1;
}

/* Name of memory without a file; returns its length without NUL. */
static __always_inline __u32 vp_set_nofile_name(struct vp_mmap2_buf *buf, const struct vp_vma *v,
						struct vm_area_struct *vma)
{
	struct vm_special_mapping *special = v->private_data;
	const char *given;

	if (vp_vma_is_special(v)) {
		long n = bpf_probe_read_kernel_str(buf->name, VP_NAME_MAX,
						   BPF_CORE_READ(special, name));

		if (n > 1)
			return (__u32)n - 1;
	}
	if (vp_vma_is_heap(v))
		return vp_set_name(buf, "[heap]");
	if (vp_vma_is_stack(v))
		return vp_set_name(buf, "[stack]");
	given = vp_anon_name(vma, false);
	if (given) {
		vp_set_name(buf, "[anon:");
		return vp_set_given_name(buf, given, sizeof("[anon:") - 1);
	}
	return vp_set_name(buf, "//anon");
}

/*
 * The path by bpf_d_path, where that is allowed (iterators): as the reader sees it. Returns
 * its length without NUL; sets the NAME_CUT flag.
 */
static __always_inline __u32 vp_set_path_name(struct vp_mmap2_buf *buf, struct file *file)
{
	long n = bpf_d_path(&file->f_path, buf->name, VP_PATH_MAX);

	if (n > 0)
		return (__u32)n - 1;
	vp_count(VP_CNT_NAME_CUT);
	buf->rec.hdr.flags |= VP_MMAP2_F_NAME_CUT;
	return vp_set_name(buf, "//toolong");
}

/*
 * The length so far is in buf->rec.name_bytes: of what is on its own stack the verifier knows
 * bounds, which grow with each component, and would go through the loop for each.
 */
struct vp_parts {
	struct vp_mmap2_buf *buf;
	const struct dentry *dentry;
	const struct mount *mnt;
	const struct dentry *mnt_root;
	const struct dentry *stop_dentry; /* root of the task whose view it is */
	const struct mount *stop_mnt;
};

static __always_inline const struct mount *vp_real_mount(const struct vfsmount *vfsmnt)
{
	return (const void *)vfsmnt - bpf_core_field_offset(struct mount, mnt);
}

#define VP_PATH_STEPS VP_PATH_MAX

static __always_inline long vp_cut_name(struct vp_mmap2_buf *buf)
{
	buf->rec.hdr.flags |= VP_MMAP2_F_NAME_CUT;
	return 1;
}

/*
 * One component, or one step up through a mount point; 1 ends the walk. Members go through
 * locals: BPF_CORE_READ(p->x, …) would relocate vp_parts itself, which no kernel has.
 */
static long vp_parts_step(__u32 i, void *data)
{
	struct vp_parts *p = data;
	const struct dentry *dentry = p->dentry, *up;
	const struct mount *mnt = p->mnt, *parent;
	__u32 len = p->buf->rec.name_bytes;
	long n;

	if (dentry == p->stop_dentry && mnt == p->stop_mnt)
		return 1;
	if (dentry == p->mnt_root) {
		parent = BPF_CORE_READ(mnt, mnt_parent);
		if (parent == mnt)
			return 1;
		p->dentry = BPF_CORE_READ(mnt, mnt_mountpoint);
		p->mnt = parent;
		p->mnt_root = BPF_CORE_READ(parent, mnt.mnt_root);
		return 0;
	}
	if (len >= VP_PATH_MAX)
		return vp_cut_name(p->buf);
	n = bpf_probe_read_kernel_str(p->buf->name + len, VP_NAME_MAX,
				      BPF_CORE_READ(dentry, d_name.name));
	if (n < 0)
		return vp_cut_name(p->buf);
	if (n <= 1)
		return 1;
	p->buf->rec.name_bytes = len + n;
	up = BPF_CORE_READ(dentry, d_parent);
	p->dentry = up;
	/* A dentry that is its own parent, but no root of a mount, has no tree (memfd). */
	return up == dentry;
}

/*
 * The path of a dentry on a mount up to a root. A global function, so that it is verified once
 * and not for each way that leads to it; its arguments can only be numbers.
 */
__noinline int vp_path_parts(struct vp_mmap2_buf *buf, __u64 dentry, __u64 vfsmnt,
			     __u64 root_dentry, __u64 root_vfsmnt)
{
	struct vp_parts p = {.buf = buf};

	if (!buf)
		return 0;
	buf->rec.name_bytes = 0;
	p.dentry = (const void *)dentry;
	p.mnt = vp_real_mount((const void *)vfsmnt);
	p.mnt_root = BPF_CORE_READ((const struct vfsmount *)vfsmnt, mnt_root);
	p.stop_dentry = (const void *)root_dentry;
	p.stop_mnt = vp_real_mount((const void *)root_vfsmnt);
	/* A component has two bytes at least; the rest is for mounts. */
	if (bpf_loop(VP_PATH_STEPS, vp_parts_step, &p, 0) == VP_PATH_STEPS)
		vp_cut_name(buf);
	if (buf->rec.hdr.flags & VP_MMAP2_F_NAME_CUT)
		vp_count(VP_CNT_NAME_CUT);
	return buf->rec.name_bytes ? buf->rec.name_bytes - 1 : 0;
}

/*
 * A file's path in parts, leaf first (see vp_rec_mmap2): as the task sees it, from its root. Not
 * under rename_lock: a rename at this very moment can mix old and new components. Returns the
 * length without the last NUL.
 */
static __always_inline __u32 vp_set_name_parts(struct vp_mmap2_buf *buf, const struct file *file,
					       struct task_struct *task)
{
	bool layer;
	const struct path *path = vp_file_user_path(file, &layer);

	buf->rec.hdr.flags |= VP_MMAP2_F_NAME_PARTS;
	return vp_path_parts(buf, (__u64)BPF_CORE_READ(path, dentry),
			     (__u64)BPF_CORE_READ(path, mnt),
			     (__u64)BPF_CORE_READ(task, fs, root.dentry),
			     (__u64)BPF_CORE_READ(task, fs, root.mnt));
}

/* Whether a path is called the same by the task and by the reader, who runs this. */
static __always_inline bool vp_has_readers_root(struct task_struct *task)
{
	struct task_struct *reader = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, fs, root.dentry) == BPF_CORE_READ(reader, fs, root.dentry) &&
	       BPF_CORE_READ(task, fs, root.mnt) == BPF_CORE_READ(reader, fs, root.mnt);
}

/* A file's name where bpf_d_path is allowed; readers_root: see above. */
static __always_inline __u32 vp_set_walk_file_name(struct vp_mmap2_buf *buf, struct file *file,
						   struct task_struct *task, bool readers_root)
{
	bool layer;

	vp_file_user_path(file, &layer);
	/* What has no place in a tree may name itself: "anon_inode:[…]". */
	if ((readers_root && !layer) || (buf->rec.hdr.flags & VP_MMAP2_F_NAMELESS))
		return vp_set_path_name(buf, file);
	return vp_set_name_parts(buf, file, task);
}

/* "[anon_shmem:NAME]" of shared anonymous memory that was given one; 0: it was not. */
static __always_inline __u32 vp_set_shared_name(struct vp_mmap2_buf *buf,
						struct vm_area_struct *vma)
{
	const char *given = vp_anon_name(vma, true);

	if (!given)
		return 0;
	vp_set_name(buf, "[anon_shmem:");
	return vp_set_given_name(buf, given, sizeof("[anon_shmem:") - 1);
}

/* Name of any mapping as the task sees it, where bpf_d_path is not allowed. */
static __always_inline __u32 vp_set_vma_name(struct vp_mmap2_buf *buf, const struct vp_vma *v,
					     struct vm_area_struct *vma, struct task_struct *task)
{
	__u32 len;

	if (!v->file)
		return vp_set_nofile_name(buf, v, vma);
	len = vp_set_shared_name(buf, vma);
	return len ? len : vp_set_name_parts(buf, v->file, task);
}

/* The same where it is allowed. */
static __always_inline __u32 vp_set_walk_name(struct vp_mmap2_buf *buf, const struct vp_vma *v,
					      struct vm_area_struct *vma, struct task_struct *task,
					      bool readers_root)
{
	__u32 len;

	if (!v->file)
		return vp_set_nofile_name(buf, v, vma);
	len = vp_set_shared_name(buf, vma);
	return len ? len : vp_set_walk_file_name(buf, vma->vm_file, task, readers_root);
}

#endif
