/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "row_start.h"

#include "../symbolize/jit_process.h"
#include "../util/clock.h"
#include "../util/procinfo.h"

#include <errno.h>
#include <stdlib.h>

/* A process may map several parts of a file: it counts once. */
static void add_mapping(struct vp_ranked_file *f, uint32_t proc, const struct vp_xmap *x,
			const uint64_t *cpu_ticks)
{
	if (f->x && f->last_proc == proc)
		return;
	if (!f->x || cpu_ticks[proc] > cpu_ticks[f->proc]) {
		f->proc = proc;
		f->x = x;
	}
	f->file_id = x->file_id;
	f->last_proc = proc;
	f->cpu_ticks += cpu_ticks[proc];
}

static int busiest_first(const void *a, const void *b)
{
	const struct vp_ranked_file *x = a, *y = b;

	if (x->cpu_ticks != y->cpu_ticks)
		return x->cpu_ticks > y->cpu_ticks ? -1 : 1;
	return (x->file_id > y->file_id) - (x->file_id < y->file_id);
}

/* A jitdump is mapped for us to see it, not to be run. */
static bool has_code(const struct vp_recording *r, const struct vp_xmap *x)
{
	const struct vp_file *file = vp_files_get(&r->files, x->file_id);

	return x->verdict == VP_VERDICT_FILE && file && !jit_is_dump_name(file->name);
}

int vp_row_start_rank(const struct vp_recording *r, const uint64_t *cpu_ticks,
		      struct vp_ranked_file **out, size_t *cnt)
{
	struct vp_ranked_file *ranked = calloc(r->files.cnt + 1, sizeof(*ranked));
	size_t n = 0;

	if (!ranked)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->procs.cnt; i++) {
		const struct vp_process *proc = &r->procs.proc[i];

		for (size_t k = 0; k < proc->xmap_cnt; k++) {
			const struct vp_xmap *x = &proc->xmaps[k];

			if (has_code(r, x))
				add_mapping(&ranked[x->file_id], i, x, cpu_ticks);
		}
	}
	for (size_t i = 0; i < r->files.cnt; i++) {
		if (ranked[i].x)
			ranked[n++] = ranked[i];
	}
	qsort(ranked, n, sizeof(*ranked), busiest_first);
	*out = ranked;
	*cnt = n;
	return 0;
}

/* Of each process; 0 for those that are gone. Caller frees; NULL: out of memory. */
static uint64_t *read_cpu_ticks(const struct vp_procs *procs)
{
	uint64_t *ticks = calloc(procs->cnt + 1, sizeof(*ticks));

	for (size_t i = 0; ticks && i < procs->cnt; i++) {
		struct vp_procinfo info;

		if (!vp_procinfo_read((pid_t)procs->proc[i].id.tgid, &info))
			ticks[i] = info.cpu_ticks;
	}
	return ticks;
}

static int request(struct vp_recording *r, const struct vp_ranked_file *ranked, size_t cnt,
		   uint64_t now_ns)
{
	const struct vp_mapped_file vdso = {.name = "[vdso]"};
	int err = vp_file_pool_request(r->pool, VP_FILE_ROWS_AHEAD, VP_FILE_ID_NONE, &vdso);

	for (size_t i = 0; i < cnt && !err; i++) {
		struct vp_file *file = vp_files_get(&r->files, ranked[i].file_id);
		const struct vp_process *proc = &r->procs.proc[ranked[i].proc];
		struct vp_mapped_file m = vp_file_mapped(file, proc->id.tgid, ranked[i].x);

		if (vp_file_ask_rows(file, now_ns))
			err = vp_file_pool_request(r->pool, VP_FILE_ROWS_AHEAD, ranked[i].file_id,
						   &m);
	}
	return err;
}

int vp_row_start(struct vp_recording *r, uint64_t budget_ns, struct vp_row_start *out)
{
	struct vp_ranked_file *ranked = NULL;
	uint64_t start_ns = vp_now_ns();
	uint64_t *ticks = read_cpu_ticks(&r->procs);
	size_t left = 0;
	int err = -ENOMEM;

	*out = (struct vp_row_start){0};
	if (ticks)
		err = vp_row_start_rank(r, ticks, &ranked, &out->file_cnt);
	if (!err)
		err = request(r, ranked, out->file_cnt, start_ns);
	if (!err)
		left = vp_file_pool_wait_rows(r->pool, start_ns + budget_ns);
	/* the vdso, and what an exec during the walk has asked for, count, too */
	out->left_cnt = left < out->file_cnt ? left : out->file_cnt;
	out->took_ns = vp_now_ns() - start_ns;
	free(ranked);
	free(ticks);
	return err;
}
