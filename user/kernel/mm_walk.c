/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mm_walk.h"

#include "mm_walk.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRIES 3 /* another thread may change the mappings meanwhile */
#define ISLAND_CNT                                                                                 \
	48 /* mappings of a page with a page of nothing between them: makes the tree deep */

int vp_mm_walk_open(struct vp_mm_walk *w, struct vp_core_btf *core_btf, struct vp_load_unit *unit,
		    struct vp_err *e)
{
	struct bpf_object_open_opts opts = vp_core_btf_opts(core_btf);

	w->skel = mm_walk__open_opts(&opts);
	if (!w->skel)
		return vp_err_set(e, -errno, "BPF object mm_walk: %s", strerror(errno));
	*unit = (struct vp_load_unit){.name = "mm_walk",
				      .skeleton = w->skel->skeleton,
				      .optional = true,
				      .core_btf = core_btf};
	return 0;
}

void vp_mm_walk_close(struct vp_mm_walk *w)
{
	mm_walk__destroy(w->skel);
	w->skel = NULL;
}

static void ask_for(struct mm_walk__bss *bss, uint64_t at)
{
	if (bss->vp_try_cnt < sizeof(bss->vp_try_at) / sizeof(bss->vp_try_at[0]))
		bss->vp_try_at[bss->vp_try_cnt++] = at;
}

/* Code, data, stack, what has no VMA, and the islands: every second page is a gap. */
static void fill_questions(struct mm_walk__bss *bss, const char *islands, size_t page)
{
	bss->vp_try_cnt = 0;
	bss->vp_try_agreed = 0;
	bss->vp_try_busy = 0;
	ask_for(bss, (uint64_t)(uintptr_t)fill_questions);
	ask_for(bss, (uint64_t)(uintptr_t)memcpy);
	ask_for(bss, (uint64_t)(uintptr_t)&page);
	ask_for(bss, (uint64_t)(uintptr_t)bss);
	ask_for(bss, getauxval(AT_SYSINFO_EHDR));
	ask_for(bss, 1);
	ask_for(bss, UINT64_MAX);
	ask_for(bss, 1ULL << 47);
	for (size_t i = 0; i < 2 * ISLAND_CNT; i += 2) {
		ask_for(bss, (uint64_t)(uintptr_t)(islands + i * page));
		if (i % 8 == 0)
			ask_for(bss, (uint64_t)(uintptr_t)(islands + (i + 1) * page + page - 1));
	}
}

static bool try_once(struct mm_walk *skel, const char *islands, size_t page)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	fill_questions(skel->bss, islands, page);
	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.vp_try_mm_walk), &run))
		return false;
	return skel->bss->vp_try_agreed == skel->bss->vp_try_cnt;
}

bool vp_mm_walk_agrees(struct vp_mm_walk *w)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 2 * ISLAND_CNT * page;
	char *islands = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool agrees = false;

	if (islands == MAP_FAILED)
		return false;
	for (size_t i = 1; i < 2 * ISLAND_CNT; i += 2)
		munmap(islands + i * page, page);
	for (int i = 0; i < TRIES && !agrees; i++)
		agrees = try_once(w->skel, islands, page);
	/* One by one: what another thread has mapped in a gap is not ours. */
	for (size_t i = 0; i < 2 * ISLAND_CNT; i += 2)
		munmap(islands + i * page, page);
	return agrees;
}

int vp_mm_walk_probe(void)
{
	struct vp_core_btf core_btf = {0};
	struct vp_load_unit unit = {0};
	struct vp_mm_walk w = {0};
	struct vp_err e;
	int err;

	vp_core_btf_open(&core_btf);
	err = vp_mm_walk_open(&w, &core_btf, &unit, &e);
	if (!err)
		err = vp_load(&unit, 1, true, &e);
	if (!err)
		err = unit.err;
	if (!err)
		err = vp_mm_walk_agrees(&w);
	vp_load_units_free(&unit, 1);
	vp_mm_walk_close(&w);
	vp_core_btf_close(&core_btf);
	return err;
}
