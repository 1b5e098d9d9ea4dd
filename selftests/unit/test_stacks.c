/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "model/stacks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <string.h>

#define NO_LIMIT UINT64_MAX

static struct vp_stacks s;

static void tear_down(void)
{
	vp_stacks_free(&s);
}

TestSuite(stacks, .fini = tear_down);

/* A stack of cnt frames that differ by `seed`. */
static int count(uint64_t seed, size_t cnt, uint32_t tid, uint64_t limit)
{
	struct vp_at at[64] = {0};
	const struct vp_tally who = {.proc = 1, .tid = tid, .comm = 2};

	for (size_t i = 0; i < cnt; i++)
		at[i] = (struct vp_at){.value = seed + i,
				       .file_id = 1,
				       .verdict = VP_VERDICT_FILE,
				       .leaf = i == 0};
	return vp_stacks_count(&s, at, cnt, &who, limit);
}

Test(stacks, equal_stacks_are_kept_once)
{
	for (int i = 0; i < 5; i++)
		cr_assert(zero(int, count(100, 10, 7, NO_LIMIT)));
	cr_assert(zero(int, count(200, 10, 7, NO_LIMIT)));
	cr_expect(eq(sz, s.stack_cnt, 2));
	cr_expect(eq(sz, s.frame_cnt, 20));
	cr_assert(eq(sz, s.tally_cnt, 2));
	cr_expect(eq(u64, s.tally[0].count, 5));
	cr_expect(eq(u64, s.tally[1].count, 1));
	cr_expect(eq(u64, s.frames[s.stack[1].first + 3].value, 203));
}

Test(stacks, a_prefix_is_another_stack)
{
	cr_assert(zero(int, count(100, 3, 7, NO_LIMIT)));
	cr_assert(zero(int, count(100, 2, 7, NO_LIMIT)));
	cr_assert(zero(int, count(100, 0, 7, NO_LIMIT)));
	cr_assert(zero(int, count(100, 0, 7, NO_LIMIT)));
	cr_expect(eq(sz, s.stack_cnt, 3));
	cr_expect(eq(u64, s.tally[2].count, 2));
	cr_expect(zero(u32, s.stack[2].cnt));
}

Test(stacks, a_stack_has_a_tally_for_each_thread_name_and_process)
{
	struct vp_at at = {.value = 1, .verdict = VP_VERDICT_FILE};
	struct vp_tally who = {.proc = 1, .tid = 1, .comm = 1};

	for (int i = 0; i < 2; i++) {
		who = (struct vp_tally){.proc = 1, .tid = 1, .comm = 1};
		cr_assert(zero(int, vp_stacks_count(&s, &at, 1, &who, NO_LIMIT)));
		who.tid = 2;
		cr_assert(zero(int, vp_stacks_count(&s, &at, 1, &who, NO_LIMIT)));
		who.comm = 2;
		cr_assert(zero(int, vp_stacks_count(&s, &at, 1, &who, NO_LIMIT)));
		who.proc = 2;
		cr_assert(zero(int, vp_stacks_count(&s, &at, 1, &who, NO_LIMIT)));
	}
	cr_expect(eq(sz, s.stack_cnt, 1));
	cr_assert(eq(sz, s.tally_cnt, 4));
	for (size_t i = 0; i < 4; i++) {
		cr_expect(eq(u64, s.tally[i].count, 2));
		cr_expect(zero(u32, s.tally[i].stack));
	}
}

Test(stacks, what_the_caller_left_in_the_tally_does_not_matter)
{
	struct vp_at at = {.value = 1, .verdict = VP_VERDICT_FILE};
	struct vp_tally who = {.proc = 1, .tid = 1, .comm = 1, .stack = 99, .count = 1234};

	cr_assert(zero(int, vp_stacks_count(&s, &at, 1, &who, NO_LIMIT)));
	who.count = 5;
	cr_assert(zero(int, vp_stacks_count(&s, &at, 1, &who, NO_LIMIT)));
	cr_assert(eq(sz, s.tally_cnt, 1));
	cr_expect(eq(u64, s.tally[0].count, 2));
}

Test(stacks, beyond_the_limit_known_stacks_still_count)
{
	const uint64_t limit = 100000;
	uint64_t kept = 0;

	while (!count(kept * 1000, 50, 7, limit))
		kept++;
	cr_expect(gt(u64, kept, 20));
	cr_expect(eq(int, count(1u << 30, 50, 7, limit), -ENOSPC));
	/* a stack that is there, from a thread that is there */
	cr_expect(zero(int, count(0, 50, 7, limit)));
	cr_expect(eq(u64, s.tally[0].count, 2));
	/* from another thread: a tally more */
	cr_expect(eq(int, count(0, 50, 8, limit), -ENOSPC));
	cr_expect(eq(sz, s.tally_cnt, kept));
	cr_expect(eq(sz, s.stack_cnt, kept));
	/* arrays grow by half: that is what the limit may be exceeded by */
	cr_expect(le(u64, vp_stacks_bytes(&s), limit * 2));
}

Test(stacks, the_limit_bounds_tallies_alone_too)
{
	const uint64_t limit = 1 << 20;
	uint32_t tid = 1;

	while (!count(0, 5, tid, limit)) {
		tid++;
		cr_assert(lt(u32, tid, 1000000));
	}
	cr_expect(eq(int, count(0, 5, tid, limit), -ENOSPC));
	cr_expect(le(u64, vp_stacks_bytes(&s), limit * 2));
}

Test(stacks, bytes_are_those_of_the_arrays)
{
	cr_expect(zero(u64, vp_stacks_bytes(&s)));
	count(0, 50, 1, NO_LIMIT);
	cr_expect(ge(u64, vp_stacks_bytes(&s), 50 * sizeof(struct vp_at)));
	vp_stacks_free(&s);
	cr_expect(zero(u64, vp_stacks_bytes(&s)));
}
