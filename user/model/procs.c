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

int vp_process_add_xmap(struct vp_process *proc, const struct vp_xmap *x)
{
	const struct vp_xmap *known = vp_process_find(proc, x->start);

	if (known && !memcmp(known, x, sizeof(*x)))
		return 0;
	if (vp_array_room((void **)&proc->xmaps, &proc->xmap_cap, proc->xmap_cnt, 1, sizeof(*x)))
		return -ENOMEM;
	proc->xmaps[proc->xmap_cnt++] = *x;
	return 1;
}

int vp_process_inherit(struct vp_process *proc, const struct vp_process *from)
{
	int err = vp_array_room((void **)&proc->xmaps, &proc->xmap_cap, proc->xmap_cnt,
				from->xmap_cnt, sizeof(*proc->xmaps));

	if (err || from->xmap_cnt == 0)
		return err;
	/* What the child reported itself is newer. */
	memmove(proc->xmaps + from->xmap_cnt, proc->xmaps, proc->xmap_cnt * sizeof(*proc->xmaps));
	memcpy(proc->xmaps, from->xmaps, from->xmap_cnt * sizeof(*proc->xmaps));
	proc->xmap_cnt += from->xmap_cnt;
	return 0;
}

const struct vp_xmap *vp_process_find(const struct vp_process *proc, uint64_t addr)
{
	for (size_t i = proc->xmap_cnt; i-- > 0;) {
		const struct vp_xmap *x = &proc->xmaps[i];

		if (addr >= x->start && addr < x->end)
			return x;
	}
	return NULL;
}

void vp_procs_free(struct vp_procs *p)
{
	for (size_t i = 0; i < p->cnt; i++)
		free(p->proc[i].xmaps);
	free(p->proc);
	vp_index_free(&p->index);
	*p = (struct vp_procs){0};
}
