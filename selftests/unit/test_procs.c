/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "model/procs.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

static struct vp_procs p;

static void tear_down(void)
{
	vp_procs_free(&p);
}

TestSuite(procs, .fini = tear_down);

static struct vp_process *life(uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	const struct vp_proc_id id = {.start_ns = start_ns, .tgid = tgid, .exec_id = exec_id};
	uint32_t i = vp_procs_get(&p, &id);

	cr_assert(ne(u32, i, VP_INDEX_NONE));
	return &p.proc[i];
}

static void add(struct vp_process *proc, uint64_t start, uint64_t end, uint32_t file_id)
{
	const struct vp_xmap x = {
		.start = start, .end = end, .file_id = file_id, .verdict = VP_VERDICT_FILE};

	cr_assert(eq(int, vp_process_add_xmap(proc, &x), 1));
}

static uint32_t file_at(const struct vp_process *proc, uint64_t addr)
{
	const struct vp_xmap *x = vp_process_find(proc, addr);

	return x ? x->file_id : 0;
}

Test(procs, a_life_is_tgid_start_and_exec)
{
	life(1, 100, 1);
	life(1, 100, 2);
	life(1, 101, 1);
	life(2, 100, 1);
	life(1, 100, 1);
	cr_expect(eq(sz, p.cnt, 4));
}

Test(procs, many_lives_are_found_again)
{
	for (uint32_t i = 0; i < 20000; i++)
		life(i % 1000 + 1, i, i % 3)->sample_cnt = i;
	cr_assert(eq(sz, p.cnt, 20000));
	for (uint32_t i = 0; i < 20000; i++)
		cr_assert(eq(u64, life(i % 1000 + 1, i, i % 3)->sample_cnt, i));
}

Test(procs, the_newest_mapping_counts)
{
	struct vp_process *proc = life(1, 1, 1);

	add(proc, 0x1000, 0x5000, 1);
	add(proc, 0x2000, 0x3000, 2);
	cr_expect(eq(u32, file_at(proc, 0x1fff), 1));
	cr_expect(eq(u32, file_at(proc, 0x2000), 2));
	cr_expect(eq(u32, file_at(proc, 0x2fff), 2));
	cr_expect(eq(u32, file_at(proc, 0x3000), 1));
	add(proc, 0x1000, 0x5000, 3);
	cr_expect(eq(u32, file_at(proc, 0x2000), 3));
}

Test(procs, ends_are_not_part_of_mappings)
{
	struct vp_process *proc = life(1, 1, 1);

	cr_expect(zero(u32, file_at(proc, 0x1000)));
	add(proc, 0x1000, 0x2000, 1);
	cr_expect(zero(u32, file_at(proc, 0xfff)));
	cr_expect(eq(u32, file_at(proc, 0x1000), 1));
	cr_expect(zero(u32, file_at(proc, 0x2000)));
	cr_expect(zero(u32, file_at(proc, UINT64_MAX)));
}

Test(procs, what_is_known_already_is_not_kept_again)
{
	struct vp_process *proc = life(1, 1, 1);
	struct vp_xmap x = {
		.start = 0x1000, .end = 0x2000, .file_id = 1, .verdict = VP_VERDICT_FILE};

	cr_expect(eq(int, vp_process_add_xmap(proc, &x), 1));
	for (int i = 0; i < 1000; i++)
		cr_assert(zero(int, vp_process_add_xmap(proc, &x)));
	cr_expect(eq(sz, proc->xmap_cnt, 1));
	x.pgoff = 0x1000;
	cr_expect(eq(int, vp_process_add_xmap(proc, &x), 1));
	/* what was there before the last one is new again */
	x.pgoff = 0;
	cr_expect(eq(int, vp_process_add_xmap(proc, &x), 1));
	cr_expect(eq(sz, proc->xmap_cnt, 1));
	cr_expect(zero(u64, vp_process_find(proc, 0x1000)->pgoff));
}

/* Mapped, its second half mapped over, then all of it again as at first. */
Test(procs, a_mapping_that_comes_back_lies_over_what_came_between)
{
	struct vp_process *proc = life(1, 1, 1);
	const struct vp_xmap whole = {
		.start = 0x1000, .end = 0x5000, .file_id = 1, .verdict = VP_VERDICT_FILE};

	vp_process_add_xmap(proc, &whole);
	add(proc, 0x3000, 0x5000, 2);
	vp_process_add_xmap(proc, &whole);
	cr_expect(eq(u32, file_at(proc, 0x4000), 1));
}

Test(procs, a_child_has_a_copy_and_its_own_is_newer)
{
	struct vp_process *parent = life(1, 1, 1), *child;

	for (uint32_t i = 0; i < 100; i++)
		add(parent, 0x1000 * (i + 1), 0x1000 * (i + 2), i + 1);
	child = life(2, 2, 1);
	/* reported before it inherited: the child's own answer stays the newer one */
	add(child, 0x3000, 0x4000, 777);
	cr_assert(zero(int, vp_process_inherit(child, life(1, 1, 1))));
	cr_expect(eq(u32, file_at(child, 0x3000), 777));
	cr_expect(eq(u32, file_at(child, 0x2000), 2));
	cr_expect(eq(u32, file_at(child, 100 * 0x1000), 100));
	/* a copy: what comes later is not shared */
	add(child, 0x2000, 0x3000, 888);
	add(life(1, 1, 1), 0x5000, 0x6000, 999);
	cr_expect(eq(u32, file_at(life(1, 1, 1), 0x2000), 2));
	cr_expect(eq(u32, file_at(child, 0x5000), 5));
}

Test(procs, nothing_can_be_inherited)
{
	struct vp_process *child;

	life(1, 1, 1);
	child = life(2, 2, 1);
	add(child, 0x1000, 0x2000, 1);
	cr_assert(zero(int, vp_process_inherit(child, life(1, 1, 1))));
	cr_expect(eq(u32, file_at(child, 0x1000), 1));
}

/* ---- against a table of pages --------------------------------------------------------------- */

#define PAGE  0x1000ULL
#define PAGES 64

/* What is mapped on each page, as the kernel's own replacement of mappings would have it. */
struct page {
	uint32_t file_id;
	uint64_t pgoff;
};

static void expect_pages(const struct vp_process *proc, const struct page *page)
{
	for (size_t i = 0; i < proc->xmap_cnt; i++) {
		cr_assert(lt(u64, proc->xmaps[i].start, proc->xmaps[i].end));
		if (i > 0)
			cr_assert(le(u64, proc->xmaps[i - 1].end, proc->xmaps[i].start));
	}
	for (uint64_t i = 0; i < PAGES; i++) {
		const struct vp_xmap *x = vp_process_find(proc, i * PAGE + 0x123);

		cr_assert(eq(u32, x ? x->file_id : 0, page[i].file_id), "page %zu", (size_t)i);
		if (x)
			cr_assert(eq(u64, i * PAGE - x->start + x->pgoff, page[i].pgoff));
	}
}

static void add_randomly(struct vp_process *proc, struct page *page, uint32_t file_id)
{
	uint64_t first = (uint64_t)lrand48() % PAGES, cnt = (uint64_t)lrand48() % 12 + 1;
	struct vp_xmap x = {.start = first * PAGE,
			    .pgoff = (uint64_t)lrand48() % 1000 * PAGE,
			    .file_id = file_id,
			    .verdict = VP_VERDICT_FILE};

	if (first + cnt > PAGES)
		cnt = PAGES - first;
	x.end = x.start + cnt * PAGE;
	cr_assert(eq(int, vp_process_add_xmap(proc, &x), 1));
	for (uint64_t i = 0; i < cnt; i++)
		page[first + i] = (struct page){file_id, x.pgoff + i * PAGE};
}

Test(procs, each_page_is_of_the_mapping_that_came_last)
{
	struct vp_process *proc = life(1, 1, 1);
	struct page page[PAGES] = {{0}};

	srand48(6);
	for (uint32_t i = 1; i <= 5000; i++) {
		add_randomly(proc, page, i);
		expect_pages(proc, page);
	}
	cr_expect(le(sz, proc->xmap_cnt, PAGES));
}

Test(procs, an_heir_has_its_own_pages_and_below_them_its_parents)
{
	srand48(7);
	for (uint32_t round = 1; round <= 300; round++) {
		struct page above[PAGES] = {{0}}, below[PAGES] = {{0}};

		life(1, round, 1);
		life(2, round, 1);
		for (uint32_t i = 1; i <= round % 20; i++)
			add_randomly(life(1, round, 1), below, i);
		for (uint32_t i = 1; i <= round % 7; i++)
			add_randomly(life(2, round, 1), above, 100 + i);
		cr_assert(zero(int, vp_process_inherit(life(2, round, 1), life(1, round, 1))));
		expect_pages(life(1, round, 1), below);
		for (size_t i = 0; i < PAGES; i++) {
			if (!above[i].file_id)
				above[i] = below[i];
		}
		expect_pages(life(2, round, 1), above);
	}
}
