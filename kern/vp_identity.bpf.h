/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who a task is, and which file a mapping is of. */
#ifndef VP_IDENTITY_BPF_H
#define VP_IDENTITY_BPF_H

#include "core_fixes.bpf.h"
#include "vp_maps.bpf.h"

/*
 * Inode number of the pid namespace whose numbers the output speaks; 0: the initial one,
 * where task->tgid is the answer.
 */
const volatile __u32 vp_pidns_inum = 0;

#define VP_PIDNS_LEVEL_MAX 32 /* MAX_PID_NS_LEVEL */

/*
 * Number in our namespace of the struct pid at this address; 0 if it is not visible there. A
 * global function, whose argument can only be a number, so that its loop is verified once.
 */
__noinline int vp_pid_number(__u64 addr)
{
	struct pid *pid = (void *)addr;
	__u32 level = BPF_CORE_READ(pid, level);

	/* The innermost first: a namespace's own tasks are the common case. */
	for (int i = VP_PIDNS_LEVEL_MAX; i >= 0; i--) {
		struct upid upid = {};

		if (i > (int)level)
			continue;
		bpf_probe_read_kernel(&upid, sizeof(upid),
				      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
					      i * sizeof(upid));
		if (BPF_CORE_READ(upid.ns, ns.inum) == vp_pidns_inum)
			return upid.nr;
	}
	return 0;
}

static __always_inline __u32 vp_tid(struct task_struct *task)
{
	if (vp_pidns_inum)
		return vp_pid_number((__u64)BPF_CORE_READ(task, thread_pid));
	return (__u32)task->pid;
}

static __always_inline __u32 vp_tgid(struct task_struct *task)
{
	if (vp_pidns_inum)
		return vp_pid_number((__u64)BPF_CORE_READ(task, group_leader, thread_pid));
	return (__u32)task->tgid;
}

static __always_inline __u64 vp_start_ns(struct task_struct *task)
{
	return VP_READ2(task, group_leader, start_boottime);
}

static __always_inline __u64 vp_mm(struct task_struct *task)
{
	return (__u64)VP_READ(task, mm);
}

static __always_inline void vp_fill_proc_id(struct vp_proc_id *id, struct task_struct *task)
{
	id->start_ns = vp_start_ns(task);
	id->tgid = vp_tgid(task);
	id->exec_id = (__u32)task->self_exec_id;
}

static __always_inline void vp_fill_hdr(struct vp_rec_hdr *hdr, __u16 kind, __u32 size)
{
	hdr->kind = kind;
	hdr->flags = 0;
	hdr->size = size;
	hdr->cpu = bpf_get_smp_processor_id();
	hdr->reserved = 0;
	hdr->ts_ns = bpf_ktime_get_ns();
}

static __always_inline void vp_fill_file_key(struct vp_file_key *key, const struct file *file)
{
	struct inode *inode = VP_READ(file, f_inode);

	key->ino = VP_READ(inode, i_ino);
	key->mtime_ns = vp_inode_mtime_ns(inode);
	key->size_bytes = VP_READ(inode, i_size);
	key->dev = vp_inode_dev(inode);
	key->ino_generation = VP_READ(inode, i_generation);
}

/* The small number of a file, the same for every process; VP_FILE_ID_NONE when out of room. */
static __always_inline __u32 vp_file_id(const struct vp_file_key *key)
{
	__u32 zero = 0, id, *known, *last;

	known = bpf_map_lookup_elem(&file_ids, key);
	if (known)
		return *known;

	last = bpf_map_lookup_elem(&last_file_id, &zero);
	if (!last)
		return VP_FILE_ID_NONE;
	id = __sync_fetch_and_add(last, 1) + 1;
	if (!bpf_map_update_elem(&file_ids, key, &id, BPF_NOEXIST))
		return id;
	/* Another CPU was faster (its number holds, ours stays a hole), or the map is full. */
	known = bpf_map_lookup_elem(&file_ids, key);
	if (known)
		return *known;
	vp_count(VP_CNT_FILE_FULL);
	return VP_FILE_ID_NONE;
}

#endif
