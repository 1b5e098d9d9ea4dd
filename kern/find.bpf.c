// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Resolution on demand: all addresses of one request in one run of one program. The answers
 * are written into `finds`; the VMA behind an answer is sent as a VP_REC_MMAP2, once as
 * long as consecutive addresses fall into it.
 */
#define VP_DIRECT_READS
#include "vp_vma.bpf.h"
#include "vp_find.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Sized by the loader. Written by user space before, read after the run, through mmap. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct vp_find);
} finds SEC(".maps");

/* The one reader's program alone uses these. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vp_mmap2_buf);
} find_buf SEC(".maps");

/* The request: written by user space before a run. tgid in the reader's namespace. */
__u32 vp_find_tgid = 0;
__u32 vp_find_cnt = 0;

/* State over the reads of a request: EAGAIN offers the task again. */
__u32 vp_find_next = 0;	      /* first address not yet answered */
__u64 vp_find_last_start = 0; /* VMA of the last record sent */
__u32 vp_find_seen = 0;	      /* VP_FIND_SEEN_*: what kind of process it is */

struct vp_find_ctx {
	struct task_struct *task;
	struct vp_find *find;
	bool full;
};

/* True if the ring had no room. */
static __always_inline bool vp_find_send(struct task_struct *task, const struct vp_vma *v,
					 struct vm_area_struct *vma)
{
	struct vp_mmap2_buf *buf;
	__u32 zero = 0, size, len;

	buf = bpf_map_lookup_elem(&find_buf, &zero);
	if (!buf)
		return false;
	vp_fill_hdr(&buf->rec.hdr, VP_REC_MMAP2, 0);
	vp_fill_owner(&buf->rec, task, v->mm);
	vp_fill_mapping(&buf->rec, v);
	len = vp_set_walk_name(buf, v, vma, task, vp_has_readers_root(task));
	size = vp_finish_mmap2(buf, len);
	if (size > sizeof(*buf))
		return false;
	return bpf_ringbuf_output(&rb, buf, size, BPF_RB_NO_WAKEUP) != 0;
}

static long vp_found(struct task_struct *task, struct vm_area_struct *vma, void *data)
{
	struct vp_find_ctx *c = data;
	struct vp_find *find = c->find;
	struct vp_vma v;

	vp_read_vma(&v, vma);
	if (v.start != vp_find_last_start) {
		if (vp_find_send(task, &v, vma)) {
			c->full = true;
			return 0;
		}
		vp_find_last_start = v.start;
	}
	find->start = v.start;
	find->end = v.end;
	find->pgoff = v.file ? v.pgoff : 0;
	find->verdict = vp_vma_verdict(&v);
	return 0;
}

/* One address; 1 ends the loop: the ring is full. */
static long vp_find_one(__u32 i, void *data)
{
	struct vp_find_ctx *c = data;
	__u32 idx = vp_find_next;
	long err;

	if (idx >= vp_find_cnt)
		return 1;
	c->find = bpf_map_lookup_elem(&finds, &idx);
	if (!c->find)
		return 1;
	err = bpf_find_vma(c->task, c->find->addr, vp_found, c, 0);
	if (c->full)
		return 1;
	if (err == -EBUSY)
		c->find->verdict = VP_VERDICT_BUSY;
	else if (err)
		c->find->verdict = VP_VERDICT_NO_VMA;
	vp_find_next = idx + 1;
	return 0;
}

/*
 * Hook: each thread of the process in turn (or each task, without the task filter), in process
 * context of the reader, IRQs on, so bpf_find_vma works any number of times. The first thread
 * that has an mm answers everything. Ring full: returns 1, and the task is offered again after
 * the reader has drained. bpf_loop bounds the work to 2^23 addresses a run.
 */
SEC("iter/task")
int vp_find_all(struct bpf_iter__task *ctx)
{
	struct vp_find_ctx c = {};
	struct task_struct *task = ctx->task;

	if (!task || vp_tgid(task) != vp_find_tgid)
		return 0;
	vp_find_seen |= VP_FIND_SEEN_TASK;
	if (task->flags & PF_KTHREAD)
		vp_find_seen |= VP_FIND_SEEN_KTHREAD;
	if (!vp_mm(task) || vp_find_next >= vp_find_cnt)
		return 0;
	vp_find_seen |= VP_FIND_SEEN_MM;
	c.task = task;
	bpf_loop(1 << 23, vp_find_one, &c, 0);
	return c.full ? 1 : 0;
}
