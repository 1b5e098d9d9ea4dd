/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sym_jit.h"

#include "../kernel/walker.h"
#include "../model/mapping_text.h"
#include "../symbolize/jit_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_BYTES (1U << 20)

struct vp_sym_jit {
	struct vp_jit *jit;
	struct vp_proc_id life;
	char *dump_name; /* NULL: it maps none */
	struct vp_mapped_file dump;
};

/* A jitdump is mapped executable, for those who look at mappings to see it. */
static int on_mmap2(void *ctx, const struct vp_mmap2 *mapping)
{
	struct vp_sym_jit *j = ctx;
	const struct vp_perf_mmap2 *perf = &mapping->rec.perf;
	struct vp_mmap2 stripped = *mapping;

	vp_mapping_strip_deleted(&stripped);
	if (mapping->rec.verdict != VP_VERDICT_FILE || !jit_is_dump_name(stripped.name))
		return 0;
	free(j->dump_name);
	j->dump_name = strdup(stripped.name);
	j->dump = (struct vp_mapped_file){
		.tgid = j->life.tgid,
		.start = perf->addr,
		.end = perf->addr + perf->len,
		.name = j->dump_name,
		.key = mapping->rec.file,
		.user_dev_major = perf->maj,
		.user_dev_minor = perf->min,
		.user_ino = perf->ino,
	};
	return j->dump_name ? 0 : -ENOMEM;
}

static int find_dump(struct vp_sym_jit *j, struct vp_err *e)
{
	static const struct vp_record_ops ops = {.mmap2 = on_mmap2};
	struct vp_decoder decoder = {.ops = &ops, .ctx = j};
	struct vp_shared_maps maps = {0};
	struct vp_walker walker = {0};
	struct vp_load_unit unit = {0};
	struct vp_ring *ring = NULL;
	const pid_t tgid = (pid_t)j->life.tgid;
	int err = vp_shared_maps_create(&maps, RING_BYTES, 1, e);

	if (!err)
		err = vp_walker_open(&walker, &maps, false, false, &unit, e);
	if (!err)
		err = vp_load(&unit, 1, false, e);
	if (!err)
		err = vp_ring_open(&ring, vp_shared_maps_ring_fd(&maps), &decoder, e);
	if (!err)
		err = vp_walker_walk(&walker, ring, &tgid, 1, e);
	vp_ring_close(ring);
	vp_walker_close(&walker);
	vp_load_units_free(&unit, 1);
	vp_shared_maps_destroy(&maps);
	return err;
}

int vp_sym_jit_open(struct vp_sym_jit **out, pid_t tgid, struct vp_err *e)
{
	const struct vp_jit_opts opts = {.lines = true};
	struct vp_sym_jit *j = calloc(1, sizeof(*j));
	int err;

	if (!j || vp_jit_new(&j->jit, &opts)) {
		vp_sym_jit_close(j);
		return vp_err_set(e, -ENOMEM, "out of memory");
	}
	/* One that is gone by now has told what nobody reads any more. */
	err = jit_process_life((uint32_t)tgid, &j->life) ? 0 : find_dump(j, e);
	if (!err && vp_sym_jit_read(j))
		err = vp_err_set(e, -ENOMEM, "out of memory");
	if (err) {
		vp_sym_jit_close(j);
		return err;
	}
	*out = j;
	return 0;
}

void vp_sym_jit_close(struct vp_sym_jit *j)
{
	if (!j)
		return;
	vp_jit_free(j->jit);
	free(j->dump_name);
	free(j);
}

int vp_sym_jit_read(struct vp_sym_jit *j)
{
	if (!j->life.tgid)
		return 0;
	return vp_jit_read(j->jit, &j->life, j->dump_name ? &j->dump : NULL);
}

int vp_sym_jit_find(struct vp_sym_jit *j, uint64_t addr, struct vp_jit_symbol *out)
{
	return vp_jit_look_up(j->jit, &j->life, addr, out);
}
