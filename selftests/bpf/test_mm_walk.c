/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk of the kernel's tree of VMAs, alone and in the sampler. */
#include "expect.h"
#include "live_env.h"
#include "spinner.h"

#include "kernel/mm_walk.h"
#include "mm_walk.skel.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARMED VP_TARGET_F_ARMED

static struct recorder r = RECORDER_PLAIN;

static void tear_down(void)
{
	recorder_close(&r);
}

TestSuite(mm_walk, .fini = tear_down, .timeout = 60);

/* ---- alone ---------------------------------------------------------------------------------- */

static struct vp_core_btf core_btf;
static struct vp_mm_walk walk;

static void load_walk(void)
{
	struct vp_load_unit unit;
	struct vp_err e = {0};

	vp_core_btf_open(&core_btf);
	cr_assert(zero(int, vp_mm_walk_open(&walk, &core_btf, &unit, &e)), "%s", e.text);
	cr_assert(zero(int, vp_load(&unit, 1, true, &e)), "%s", e.text);
	cr_assert(zero(int, unit.err), "%s", unit.log);
	vp_load_units_free(&unit, 1);
}

static void close_walk(void)
{
	vp_mm_walk_close(&walk);
	vp_core_btf_close(&core_btf);
}

/* How many of these addresses tree and bpf_find_vma agree on; *busy: bpf_find_vma gave no answer. */
static size_t count_agreed(const uint64_t *at, size_t cnt, size_t *busy)
{
	struct mm_walk__bss *bss = walk.skel->bss;
	const size_t room = sizeof(bss->vp_try_at) / sizeof(bss->vp_try_at[0]);
	LIBBPF_OPTS(bpf_test_run_opts, run);
	size_t agreed = 0;

	for (size_t i = 0; i < cnt; i += room) {
		size_t n = cnt - i < room ? cnt - i : room;

		memcpy(bss->vp_try_at, at + i, n * sizeof(*at));
		bss->vp_try_cnt = (uint32_t)n;
		bss->vp_try_agreed = 0;
		bss->vp_try_busy = 0;
		cr_assert(
			zero(int, bpf_prog_test_run_opts(
					  bpf_program__fd(walk.skel->progs.vp_try_mm_walk), &run)));
		agreed += bss->vp_try_agreed;
		*busy += bss->vp_try_busy;
	}
	return agreed;
}

Test(mm_walk, the_try_at_the_start_succeeds)
{
	load_walk();
	cr_expect(vp_mm_walk_agrees(&walk));
	close_walk();
}

#define ISLANDS 12000

/* First and last bytes of mappings, and of the gaps between them. */
static size_t fill_islands(uint64_t *at)
{
	char *base = mmap(NULL, 2 * ISLANDS * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t n = 0;

	cr_assert(ne(ptr, base, MAP_FAILED));
	for (size_t i = 1; i < 2 * ISLANDS; i += 2)
		cr_assert(zero(int, munmap(base + i * PAGE, PAGE)));
	for (size_t i = 0; i < 2 * ISLANDS; i++) {
		at[n++] = (uint64_t)base + i * PAGE;
		at[n++] = (uint64_t)base + i * PAGE + PAGE - 1;
	}
	return n;
}

Test(mm_walk, every_end_of_12000_mappings_and_gaps_is_as_bpf_find_vma_has_it)
{
	uint64_t *at = malloc(4 * ISLANDS * sizeof(*at));
	size_t cnt, busy = 0;

	load_walk();
	cnt = fill_islands(at);
	cr_expect(eq(sz, count_agreed(at, cnt, &busy), cnt));
	cr_expect(zero(sz, busy));
	close_walk();
	free(at);
}

static atomic_bool churn_on;

static void *churn(void *arg)
{
	(void)arg;
	while (atomic_load(&churn_on)) {
		char *p = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			break;
		mprotect(p + 16 * PAGE, PAGE, PROT_READ);
		munmap(p + 32 * PAGE, PAGE);
		munmap(p, 64 * PAGE);
	}
	return NULL;
}

/* The tree is read without a lock: now and then it cannot be; it is never wrong for long. */
Test(mm_walk, mappings_that_stay_are_found_while_others_come_and_go)
{
	uint64_t *at = malloc(4 * ISLANDS * sizeof(*at));
	size_t cnt, busy = 0, agreed;
	pthread_t thread;

	load_walk();
	cnt = fill_islands(at);
	atomic_store(&churn_on, true);
	cr_assert(zero(int, pthread_create(&thread, NULL, churn, NULL)));
	agreed = count_agreed(at, cnt, &busy);
	atomic_store(&churn_on, false);
	pthread_join(thread, NULL);
	cr_expect(ge(sz, agreed + busy, cnt - cnt / 1000));
	close_walk();
	free(at);
}

/* ---- in the sampler ------------------------------------------------------------------------- */

#define LINKS 8

/* Calls the next function of the list that its argument points to, from a frame of its own. */
static const unsigned char link_code[] = {
	0x55,			/* push %rbp */
	0x48, 0x89, 0xe5,	/* mov %rsp,%rbp */
	0x48, 0x8b, 0x07,	/* mov (%rdi),%rax */
	0x48, 0x83, 0xc7, 0x08, /* add $8,%rdi */
	0xff, 0xd0,		/* call *%rax */
	0x5d,			/* pop %rbp */
	0xc3			/* ret */
};

/* A stack through as many mappings as it has frames, all of them made after the start. */
static void call_through_new_mappings(void *arg)
{
	int fd = code_file(2 * LINKS, link_code, sizeof(link_code));
	void *link[LINKS + 1];

	(void)arg;
	target_tell(0);
	target_await();
	for (size_t i = 0; i < LINKS; i++) {
		/* every second page, backwards: no two merge */
		link[i] = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			       (off_t)((2 * LINKS - 2 - 2 * i) * PAGE));
		target_check(link[i] != MAP_FAILED);
	}
	link[LINKS] = (void *)spin_leaf;
	target_tell(0);
	((void (*)(void **))link[0])(&link[1]);
}

/* Frames of the links in the first sample that ends in spin_leaf, by verdict. */
static void count_links(const struct record_log *l, size_t *known, size_t *busy)
{
	*known = *busy = 0;
	for (size_t i = 0; i < l->cnt; i++) {
		const struct log_item *it = &l->item[i];

		if (it->hdr.kind != VP_REC_SAMPLE || it->sample.user_cnt < LINKS + 1 ||
		    it->user[0].pc < (uint64_t)spin_leaf ||
		    it->user[0].pc >= (uint64_t)spin_leaf + 64)
			continue;
		for (size_t n = 1; n <= LINKS; n++) {
			*known += it->user[n].verdict == VP_VERDICT_FILE &&
				  it->user[n].offset == 2 * (n - 1) * PAGE + sizeof(link_code) - 2;
			*busy += it->user[n].verdict == VP_VERDICT_BUSY;
		}
		return;
	}
}

static void record_links(bool no_mm_walk, size_t *known, size_t *busy)
{
	struct target t;

	r.no_mm_walk = no_mm_walk;
	recorder_open(&r, VP_FILTER_TGID, 0);
	target_start(&t, call_through_new_mappings, NULL);
	target_hear(&t);
	recorder_add(&r, t.pid, ARMED);
	recorder_walk(&r, t.pid);
	target_say(&t, 0);
	target_hear(&t);
	recorder_attach(&r);
	recorder_wait(&r, 40);
	recorder_stop(&r);
	count_links(&r.log, known, busy);
	expect_all_announced(&r, 40 * LINKS);
	target_end(&t);
}

Test(mm_walk, all_unknown_frames_of_the_first_sample_are_resolved)
{
	size_t known, busy;

	record_links(false, &known, &busy);
	cr_expect(vp_session_walks_mm(r.s));
	cr_expect(eq(sz, known, LINKS));
	cr_expect(zero(sz, busy));
	cr_expect(ge(u64, recorder_counter(&r, VP_CNT_TREE_OK), LINKS - 1));
}

Test(mm_walk, without_it_one_unknown_frame_of_a_sample_is_resolved)
{
	size_t known, busy;

	if (!live_have(VP_FEAT_IRQ_FIND_VMA))
		cr_skip_test("bpf_find_vma never answers in an interrupt of this kernel");
	record_links(true, &known, &busy);
	cr_expect(not(vp_session_walks_mm(r.s)));
	cr_expect(le(sz, known, 1));
	cr_expect(ge(sz, busy, LINKS - 1));
	cr_expect(zero(u64, recorder_counter(&r, VP_CNT_TREE_OK)));
}
