/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges that overlap against an array with the owner of each address. */
#include "jit_name_at.h"
#include "symbolize/jit_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct jit_table t;

static void set_up(void)
{
	t.max_bytes = 1 << 20;
}

static void tear_down(void)
{
	jit_table_clear(&t);
}

TestSuite(jit_table, .init = set_up, .fini = tear_down);

static void add(uint64_t start, uint64_t size, const char *name)
{
	const struct jit_code c = {.start = start, .size = size};

	cr_assert(zero(int, jit_table_add(&t, &c, name, strlen(name))));
}

static void expect(uint64_t addr, const char *name)
{
	const char *found = jit_name_at(&t, addr);

	cr_expect(eq(str, (char *)(found ? found : "none"), (char *)name), "at %lx", addr);
}

Test(jit_table, the_latest_wins_and_the_rest_of_an_older_one_stays)
{
	add(0x100, 0x100, "old");
	add(0x120, 0x10, "new");
	expect(0xff, "none");
	expect(0x100, "old");
	expect(0x11f, "old");
	expect(0x120, "new");
	expect(0x12f, "new");
	expect(0x130, "old");
	expect(0x1ff, "old");
	expect(0x200, "none");
	add(0x100, 0x100, "newest");
	expect(0x120, "newest");
	expect(0x1ff, "newest");
}

Test(jit_table, an_empty_one_has_nothing)
{
	expect(0, "none");
	jit_table_clear(&t);
	expect(UINT64_MAX, "none");
}

Test(jit_table, what_is_no_range_is_refused)
{
	static const struct jit_code bad[] = {
		{.start = 0x100, .size = 0},
		{.start = UINT64_MAX, .size = 2},
		{.start = 0x100, .size = UINT64_MAX},
	};
	const struct jit_code good = {.start = 0x100, .size = 1};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect(eq(int, jit_table_add(&t, &bad[i], "x", 1), -EINVAL));
		cr_expect(eq(int, jit_table_move(&t, &bad[i]), -EINVAL));
	}
	cr_expect(eq(int, jit_table_add(&t, &good, "", 0), -EINVAL));
	cr_expect(eq(int, jit_table_add(&t, &good, "\0x", 2), -EINVAL));
	add(UINT64_MAX - 1, 1, "last");
	expect(UINT64_MAX - 1, "last");
}

Test(jit_table, the_later_time_wins_whatever_is_told_first)
{
	struct jit_code c = {.start = 0x100, .size = 0x10, .time = 7};

	cr_assert(zero(int, jit_table_add(&t, &c, "later", 5)));
	c.time = 3;
	cr_assert(zero(int, jit_table_add(&t, &c, "earlier", 7)));
	expect(0x108, "later");
}

/* ---- an oracle ---- */

#define SPACE	  512
#define RANGE_CNT 3000

struct owner {
	uint64_t time;
	int number; /* 0: none */
};

static void claim(struct owner *owners, const struct jit_code *c, int number)
{
	for (uint64_t at = c->start; at < c->start + c->size; at++) {
		if (!owners[at].number || c->time >= owners[at].time)
			owners[at] = (struct owner){c->time, number};
	}
}

static void compare(const struct owner *owners)
{
	char name[16];

	for (uint64_t at = 0; at < SPACE; at++) {
		snprintf(name, sizeof(name), owners[at].number ? "f%d" : "none", owners[at].number);
		expect(at, name);
	}
}

Test(jit_table, random_ranges_have_the_owners_that_they_should)
{
	struct owner owners[2 * SPACE] = {0};
	unsigned int seed = 1;
	char name[16];

	for (int i = 1; i <= RANGE_CNT; i++) {
		struct jit_code c = {.start = (uint64_t)rand_r(&seed) % SPACE,
				     .size = 1 + (uint64_t)rand_r(&seed) % 40};

		/* times in order, for the most part */
		c.time = (uint64_t)i / 4 + (rand_r(&seed) % 8 ? 0 : (uint64_t)rand_r(&seed) % 9);
		snprintf(name, sizeof(name), "f%d", i);
		cr_assert(zero(int, jit_table_add(&t, &c, name, strlen(name))));
		claim(owners, &c, i);
		if (i % 500 == 0)
			compare(owners);
	}
}

/* ---- moves ---- */

static void load(uint64_t index, uint64_t start, const char *name)
{
	const struct jit_code c = {.start = start, .size = 0x10, .index = index};

	cr_assert(zero(int, jit_table_add(&t, &c, name, strlen(name))));
}

static void move(uint64_t index, uint64_t start)
{
	const struct jit_code c = {.start = start, .size = 0x10, .index = index};

	cr_assert(zero(int, jit_table_move(&t, &c)));
}

Test(jit_table, moved_code_keeps_its_name)
{
	move(2, 0x900); /* before it was loaded: of nothing */
	load(1, 0x100, "one");
	load(2, 0x200, "two");
	move(1, 0x300);
	move(1, 0x400); /* once more */
	load(1, 0x500, "one again");
	move(1, 0x600);
	move(77, 0x700); /* nothing known */
	expect(0x308, "one");
	expect(0x408, "one");
	expect(0x608, "one again");
	expect(0x708, "none");
	expect(0x908, "none");
	expect(0x208, "two");
	move(2, 0x308);
	expect(0x307, "one");
	expect(0x308, "two");
}

Test(jit_table, a_million_moves_of_nothing_are_forgotten, .timeout = 60)
{
	t.max_bytes = 1 << 30;
	load(1, 0x100, "one");
	for (uint64_t i = 0; i < 1000000; i++)
		move(2, 0x1000 + i);
	expect(0x1000, "none");
	expect(0x100, "one");
	cr_expect(lt(u64, jit_table_bytes(&t), 1000));
}

/* ---- names ---- */

Test(jit_table, long_names_are_cut_between_characters)
{
	const struct jit_code c = {.start = 0x100, .size = 1};
	char name[3 * VP_JIT_NAME_BYTES];
	const char *found;
	size_t len;

	for (size_t shift = 0; shift < 3; shift++) {
		memset(name, 'x', shift);
		for (size_t i = shift; i + 3 <= sizeof(name); i += 3)
			memcpy(name + i, "\xe2\x82\xac", 3);
		cr_assert(zero(int, jit_table_add(&t, &c, name, sizeof(name) - 3)));
		found = jit_name_at(&t, 0x100);
		len = strlen(found);
		cr_expect(lt(sz, len, VP_JIT_NAME_BYTES));
		cr_expect(ge(sz, len, VP_JIT_NAME_BYTES - 8));
		cr_expect(eq(str, (char *)found + len - 3, "\xe2\x80\xa6"));
		cr_expect(zero(sz, (len - shift) % 3));
	}
	/* the longest that is whole */
	memset(name, 'y', sizeof(name));
	cr_assert(zero(int, jit_table_add(&t, &c, name, VP_JIT_NAME_BYTES - 1)));
	found = jit_name_at(&t, 0x100);
	cr_expect(eq(sz, strlen(found), VP_JIT_NAME_BYTES - 1));
	cr_expect(eq(chr, found[VP_JIT_NAME_BYTES - 2], 'y'));
	/* bytes of no encoding, and one NUL */
	memset(name, 0x80, sizeof(name));
	cr_assert(zero(int, jit_table_add(&t, &c, name, sizeof(name))));
	cr_expect(gt(sz, strlen(jit_name_at(&t, 0x100)), VP_JIT_NAME_BYTES - 8));
	cr_assert(zero(int, jit_table_add(&t, &c, "ab\0cd", 5)));
	expect(0x100, "ab");
}

/* ---- memory ---- */

Test(jit_table, code_that_replaces_code_never_fills_it, .timeout = 60)
{
	char name[64];

	for (int i = 0; i < 300000; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		add(0x1000 + (uint64_t)(i % 1000) * 0x40, 0x40, name);
		cr_assert(le(u64, jit_table_bytes(&t), t.max_bytes));
	}
	cr_expect(zero(u64, t.dropped_cnt));
	expect(0x1000, "function_299000");
	expect(0x1000 + 999 * 0x40, "function_299999");
	expect(0x1000 + 1000 * 0x40, "none");
}

Test(jit_table, when_it_is_full_the_rest_is_counted_and_what_it_has_stays)
{
	char name[64];

	for (int i = 0; i < 100000; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		add(0x1000 + (uint64_t)i * 0x40, 0x40, name);
	}
	cr_expect(le(u64, jit_table_bytes(&t), t.max_bytes));
	cr_expect(gt(u64, t.dropped_cnt, 50000));
	cr_expect(lt(u64, t.dropped_cnt, 99000));
	expect(0x1000, "function_0");
	expect(0x1000 + 1000 * 0x40, "function_1000");
	expect(0x1000 + 99999 * 0x40, "none");
}
