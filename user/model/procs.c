/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "procs.h"

#include "../util/array.h"

#include <string.h>

static bool is_same(const void *ctx, uint32_t item, const void *key)
{
	const struct vp_procs *p = ctx;

	return !memcmp(&p->proc[item].id, key, sizeof(struct vp_proc_id));
}

uint32_t vp_procs_get(struct vp_procs *p, const struct vp_proc_id *id)
{
	uint64_t hash = vp_hash(0, id, sizeof(*id));
	uint32_t i = vp_index_find(&p->index, hash, is_same, p, id);

	if (i != VP_INDEX_NONE)
		return i;
	if (vp_array_room((void **)&p->proc, &p->cap, p->cnt, 1, sizeof(*p->proc)) ||
	    vp_index_add(&p->index, hash, (uint32_t)p->cnt))
		return VP_INDEX_NONE;
	p->proc[p->cnt] = (struct vp_process){.id = *id};
	return (uint32_t)p->cnt++;
}

uint32_t vp_procs_find(const struct vp_procs *p, const struct vp_proc_id *id)
{
	return vp_index_find(&p->index, vp_hash(0, id, sizeof(*id)), is_same, p, id);
}

/* Index of the first mapping that ends above addr. */
static size_t first_above(const struct vp_process *proc, uint64_t addr)
{
	size_t lo = 0, hi = proc->xmap_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (proc->xmaps[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* What is left of old above end. */
static struct vp_xmap upper_part(const struct vp_xmap *old, uint64_t end)
{
	struct vp_xmap part = *old;

	part.start = end;
	if (old->verdict == VP_VERDICT_FILE || old->verdict == VP_VERDICT_VDSO)
		part.pgoff += end - old->start;
	return part;
}

/* Puts n mappings in place of those from first up to (not including) last. */
static void replace(struct vp_process *proc, size_t first, size_t last, const struct vp_xmap *with,
		    size_t n)
{
	memmove(proc->xmaps + first + n, proc->xmaps + last,
		(proc->xmap_cnt - last) * sizeof(*proc->xmaps));
	memcpy(proc->xmaps + first, with, n * sizeof(*with));
	proc->xmap_cnt += n - (last - first);
}

int vp_process_add_xmap(struct vp_process *proc, const struct vp_xmap *x)
{
	size_t first = first_above(proc, x->start), last = first, n = 0;
	struct vp_xmap with[3];

	if (first < proc->xmap_cnt && !memcmp(&proc->xmaps[first], x, sizeof(*x)))
		return 0;
	/* At most an old one's lower part, x, and an old one's upper part. */
	if (vp_array_room((void **)&proc->xmaps, &proc->xmap_cap, proc->xmap_cnt, 2, sizeof(*x)))
		return -ENOMEM;
	while (last < proc->xmap_cnt && proc->xmaps[last].start < x->end)
		last++;
	if (first < last && proc->xmaps[first].start < x->start) {
		with[n] = proc->xmaps[first];
		with[n++].end = x->start;
	}
	with[n++] = *x;
	if (first < last && proc->xmaps[last - 1].end > x->end)
		with[n++] = upper_part(&proc->xmaps[last - 1], x->end);
	replace(proc, first, last, with, n);
	return 1;
}

bool vp_process_overlaps(const struct vp_process *proc, uint64_t start, uint64_t end)
{
	size_t i = first_above(proc, start);

	return i < proc->xmap_cnt && proc->xmaps[i].start < end;
}

int vp_process_inherit(struct vp_process *proc, const struct vp_process *from)
{
	struct vp_process merged = {
		.id = proc->id,
		.sample_cnt = proc->sample_cnt,
		.first_ns = proc->first_ns,
		.jit = proc->jit,
	};
	int err = 0;

	for (size_t i = 0; i < from->xmap_cnt && err >= 0; i++)
		err = vp_process_add_xmap(&merged, &from->xmaps[i]);
	/* What the child reported itself is newer. */
	for (size_t i = 0; i < proc->xmap_cnt && err >= 0; i++)
		err = vp_process_add_xmap(&merged, &proc->xmaps[i]);
	if (err < 0) {
		free(merged.xmaps);
		return err;
	}
	free(proc->xmaps);
	*proc = merged;
	return 0;
}

const struct vp_xmap *vp_process_find(const struct vp_process *proc, uint64_t addr)
{
	size_t i = first_above(proc, addr);

	return i < proc->xmap_cnt && addr >= proc->xmaps[i].start ? &proc->xmaps[i] : NULL;
}

void vp_procs_free(struct vp_procs *p)
{
	for (size_t i = 0; i < p->cnt; i++)
		free(p->proc[i].xmaps);
	free(p->proc);
	vp_index_free(&p->index);
	*p = (struct vp_procs){0};
}
