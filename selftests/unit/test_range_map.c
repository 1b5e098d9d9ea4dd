/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/range_map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static struct range_map m;

static void tear_down(void)
{
	range_map_free(&m);
}

TestSuite(range_map, .fini = tear_down);

static void add(uint32_t lo, uint32_t hi)
{
	cr_assert(zero(int, range_map_add(&m, (struct addr_range){lo, hi, (uint32_t)m.cnt})));
}

static uint32_t owner(uint32_t addr)
{
	const struct addr_range *r = range_map_find(&m, addr);

	return r ? r->owner : RANGE_NONE;
}

Test(range_map, finds_nothing_in_an_empty_one)
{
	cr_assert(zero(int, range_map_flatten(&m)));
	cr_assert(eq(u32, owner(0), RANGE_NONE));
	cr_assert(eq(u32, owner(UINT32_MAX), RANGE_NONE));
}

Test(range_map, finds_the_inner_range_and_the_outer_behind_it)
{
	add(10, 100);
	add(20, 40);
	add(30, 35);
	add(200, UINT32_MAX);
	cr_assert(zero(int, range_map_flatten(&m)));
	static const struct {
		uint32_t addr, owner;
	} expected[] = {
		{0, RANGE_NONE},
		{9, RANGE_NONE},
		{10, 0},
		{19, 0},
		{20, 1},
		{30, 2},
		{34, 2},
		{35, 1},
		{40, 0},
		{99, 0},
		{100, RANGE_NONE},
		{199, RANGE_NONE},
		{200, 3},
		{UINT32_MAX - 1, 3},
		{UINT32_MAX, RANGE_NONE},
	};
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		cr_assert(eq(u32, owner(expected[i].addr), expected[i].owner));
}

Test(range_map, of_equal_ranges_takes_the_last)
{
	for (int i = 0; i < 5; i++)
		add(7, 9);
	cr_assert(zero(int, range_map_flatten(&m)));
	cr_assert(eq(u32, owner(6), RANGE_NONE));
	cr_assert(eq(u32, owner(7), 4));
	cr_assert(eq(u32, owner(8), 4));
	cr_assert(eq(u32, owner(9), RANGE_NONE));
}

#define SPACE 500

Test(range_map, agrees_with_painting_at_random)
{
	uint32_t painted[SPACE];

	srand(1);
	for (int round = 0; round < 500; round++) {
		for (size_t i = 0; i < SPACE; i++)
			painted[i] = RANGE_NONE;
		for (int n = rand() % 60, i = 0; i < n; i++) {
			uint32_t lo = (uint32_t)rand() % SPACE;
			uint32_t hi = lo + 1 + (uint32_t)rand() % (SPACE - lo);

			for (uint32_t at = lo; at < hi; at++)
				painted[at] = (uint32_t)m.cnt;
			add(lo, hi);
		}
		cr_assert(zero(int, range_map_flatten(&m)));
		for (uint32_t at = 0; at < SPACE; at++)
			cr_assert(eq(u32, owner(at), painted[at]));
		range_map_free(&m);
	}
}
