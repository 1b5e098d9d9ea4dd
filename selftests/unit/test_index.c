/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "util/index.h"
#include "util/strings.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(index);

#define MANY 100000

static uint64_t items[MANY];

static bool is_item(const void *ctx, uint32_t item, const void *key)
{
	return ((const uint64_t *)ctx)[item] == *(const uint64_t *)key;
}

static uint32_t find(const struct vp_index *ix, uint64_t key, uint64_t hash)
{
	return vp_index_find(ix, hash, is_item, items, &key);
}

Test(index, an_empty_one_holds_nothing)
{
	struct vp_index ix = {0};

	cr_expect(eq(u32, find(&ix, 1, 1), VP_INDEX_NONE));
	vp_index_free(&ix);
	vp_index_free(&ix);
}

Test(index, a_hundred_thousand_items_are_found_again)
{
	struct vp_index ix = {0};
	uint64_t absent = MANY;

	for (uint32_t i = 0; i < MANY; i++) {
		items[i] = i;
		cr_assert(zero(int, vp_index_add(&ix, vp_hash(0, &items[i], 8), i)));
	}
	cr_expect(eq(sz, ix.cnt, MANY));
	/* never fuller than three quarters, and a power of two */
	cr_expect(ge(sz, ix.cap * 3, ix.cnt * 4));
	cr_expect(zero(sz, ix.cap & (ix.cap - 1)));
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert(eq(u32, find(&ix, items[i], vp_hash(0, &items[i], 8)), i));
	cr_expect(eq(u32, find(&ix, absent, vp_hash(0, &absent, 8)), VP_INDEX_NONE));
	vp_index_free(&ix);
	cr_expect(zero(sz, ix.cnt));
	cr_expect(eq(u32, find(&ix, 1, 1), VP_INDEX_NONE));
}

Test(index, equal_hashes_are_told_apart_by_the_caller)
{
	struct vp_index ix = {0};

	for (uint32_t i = 0; i < 200; i++) {
		items[i] = i * 7;
		cr_assert(zero(int, vp_index_add(&ix, UINT64_MAX, i)));
	}
	for (uint32_t i = 0; i < 200; i++)
		cr_expect(eq(u32, find(&ix, i * 7, UINT64_MAX), i));
	cr_expect(eq(u32, find(&ix, 1, UINT64_MAX), VP_INDEX_NONE));
	vp_index_free(&ix);
}

Test(index, hashes_depend_on_each_byte_the_length_and_the_seed)
{
	unsigned char buf[40] = {0};
	uint64_t seen[400];
	size_t n = 0;

	for (size_t len = 0; len <= sizeof(buf); len++)
		seen[n++] = vp_hash(0, buf, len);
	for (size_t i = 0; i < sizeof(buf); i++) {
		buf[i] = 1;
		seen[n++] = vp_hash(0, buf, sizeof(buf));
		buf[i] = 0;
	}
	seen[n++] = vp_hash(0x123456789, buf, sizeof(buf));
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < i; j++)
			cr_assert(ne(u64, seen[i], seen[j]), "%zu and %zu", i, j);
	}
	cr_expect(eq(u64, vp_hash(0, buf, 40), vp_hash(0, buf, 40)));
}

Test(index, strings_are_kept_once_and_stay_where_they_are)
{
	struct vp_strings t = {0};
	const char *first;
	char text[32];

	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), "string %u", i);
		cr_assert(eq(u32, vp_strings_add(&t, text), i));
	}
	first = t.str[0];
	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), "string %u", i);
		cr_assert(eq(u32, vp_strings_add(&t, text), i));
		cr_assert(eq(str, t.str[i], text));
	}
	cr_expect(eq(ptr, (void *)t.str[0], (void *)first));
	cr_expect(eq(u32, vp_strings_add(&t, ""), 10000));
	cr_expect(eq(sz, t.cnt, 10001));
	vp_strings_free(&t);
	cr_expect(zero(sz, t.cnt));
}
