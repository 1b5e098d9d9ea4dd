/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows as the kernel holds them, searched the way the kernel does. */
#include "unwind/row_image.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

TestSuite(rows_image, .timeout = 60);

#define BASE 0x1234

/* cnt rows of random length below max_step, and as many rules as given. */
static struct vp_rows *make_rows(uint32_t cnt, uint32_t max_step, uint32_t rule_cnt)
{
	struct vp_rows *rows = calloc(1, sizeof(*rows));
	unsigned int seed = cnt + max_step;
	uint32_t key = 0;

	rows->base = BASE;
	rows->cnt = cnt;
	rows->rule_cnt = rule_cnt;
	rows->key = malloc((cnt + 1) * sizeof(*rows->key));
	rows->rule = malloc((cnt + 1) * sizeof(*rows->rule));
	rows->rules = calloc(rule_cnt, sizeof(*rows->rules));
	for (uint32_t i = 0; i < cnt; i++) {
		key += 1 + (uint32_t)rand_r(&seed) % max_step;
		rows->key[i] = key;
		rows->rule[i] = (uint16_t)((uint32_t)rand_r(&seed) % rule_cnt);
	}
	rows->span = key + 100;
	for (uint32_t i = 1; i < rule_cnt; i++)
		rows->rules[i] = (struct vp_rule){.cfa = VP_CFA_REG, .cfa_off = (int32_t)i};
	return rows;
}

/* Number of keys that are not larger; those behind the last real one are larger than any. */
static uint32_t keys_up_to(const uint32_t *keys, uint32_t key)
{
	uint32_t n = 0;

	while (n < VP_ROWS_FANOUT && keys[n] <= key)
		n++;
	return n;
}

static const void *element(const void *image, uint32_t i)
{
	return (const char *)image + (size_t)i * VP_ROWS_ELEM_BYTES;
}

/* What the kernel does: root, directory, block, rule; include/vp_rows.h. NULL: no row. */
static const struct vp_rule *find_in_image(const void *image, const struct vp_rows_desc *d,
					   uint64_t offset)
{
	const struct vp_row_block *block;
	const uint32_t *keys = image;
	uint32_t key = (uint32_t)(offset - d->base), n, dir = 0, delta, rule;

	if (offset < d->base || offset - d->base >= d->span)
		return NULL;
	if (d->dir_cnt) {
		n = keys_up_to(keys, key);
		if (!n)
			return NULL;
		dir = n - 1;
		cr_assert(lt(u32, dir, d->dir_cnt));
		keys = element(image, 1 + dir);
	}
	n = keys_up_to(keys, key);
	if (!n)
		return NULL;
	cr_assert(lt(u32, dir * VP_ROWS_FANOUT + n - 1, d->block_cnt));
	block = element(image, 1 + d->dir_cnt + dir * VP_ROWS_FANOUT + n - 1);
	delta = key - keys[n - 1];
	n = 0;
	while (n < VP_ROWS_FANOUT && block->delta[n] != VP_ROWS_NO_DELTA &&
	       block->delta[n] <= delta)
		n++;
	cr_assert(gt(u32, n, 0));
	rule = block->rule[n - 1];
	cr_assert(lt(u32, rule, d->rule_cnt));
	return (const struct vp_rule *)element(image, d->rule_elem + rule / VP_RULES_PER_ELEM) +
	       rule % VP_RULES_PER_ELEM;
}

static void check_at(const struct vp_rows *rows, const struct vp_rows_desc *d, const void *image,
		     uint64_t offset)
{
	const struct vp_rule *ours = vp_rows_find(rows, offset, NULL);
	const struct vp_rule *theirs = find_in_image(image, d, offset);

	cr_assert(eq(int, !ours, !theirs));
	if (ours)
		cr_assert(zero(int, memcmp(ours, theirs, sizeof(*ours))));
}

/* Random offsets, and around the first rows of blocks. Frees the rows. */
static struct vp_rows_desc check_rows(struct vp_rows *rows)
{
	struct vp_rows_desc d = vp_rows_layout(rows);
	void *image = calloc(d.elem_cnt, VP_ROWS_ELEM_BYTES);
	unsigned int seed = 7;

	cr_assert(eq(u32, d.elem_cnt, 1 + d.dir_cnt + d.block_cnt + (d.rule_cnt + 41) / 42));
	vp_rows_fill(rows, &d, image);
	for (int i = 0; i < 20000; i++)
		check_at(rows, &d, image, BASE - 50 + (uint64_t)rand_r(&seed) % (rows->span + 100));
	for (uint32_t i = 0; i < rows->cnt; i += 1 + (uint32_t)rand_r(&seed) % 200) {
		for (int near = -1; near <= 1; near++)
			check_at(rows, &d, image, BASE + rows->key[i] + (uint64_t)near);
	}
	check_at(rows, &d, image, 0);
	check_at(rows, &d, image, UINT64_MAX);
	check_at(rows, &d, image, BASE + rows->span - 1);
	check_at(rows, &d, image, BASE + rows->span);
	free(image);
	vp_rows_free(rows);
	return d;
}

Test(rows_image, a_search_through_it_finds_the_same)
{
	static const uint32_t cnts[] = {1,    2,     255,   256,   257,		511,	512,
					1000, 65535, 65536, 65537, 65536 + 256, 131072, 200000};

	for (size_t i = 0; i < sizeof(cnts) / sizeof(*cnts); i++)
		check_rows(make_rows(cnts[i], 9, 300));
}

Test(rows_image, the_root_holds_blocks_as_long_as_they_fit)
{
	struct vp_rows_desc d = check_rows(make_rows(65536, 3, 2));

	cr_expect(zero(u32, d.dir_cnt));
	cr_expect(eq(u32, d.block_cnt, 256));
	d = check_rows(make_rows(65537, 3, 2));
	cr_expect(eq(u32, d.dir_cnt, 2));
	cr_expect(eq(u32, d.block_cnt, 257));
	cr_expect(eq(u32, d.rule_elem, 260));
}

Test(rows_image, rows_far_apart_get_blocks_of_their_own)
{
	struct vp_rows_desc d = check_rows(make_rows(5000, 100000, 43));

	cr_expect(gt(u32, d.block_cnt, 2000));
	cr_expect(eq(u32, d.elem_cnt, d.rule_elem + 2));
}

Test(rows_image, a_delta_never_is_the_mark_of_an_empty_slot)
{
	for (uint32_t step = VP_ROWS_NO_DELTA - 1; step <= VP_ROWS_NO_DELTA + 1; step++) {
		struct vp_rows *rows = make_rows(3, 1, 3);

		rows->key[0] = 5;
		rows->key[1] = 6;
		rows->key[2] = 5 + step;
		rows->span = 10 * VP_ROWS_NO_DELTA;
		cr_expect(eq(u32, check_rows(rows).block_cnt, step < VP_ROWS_NO_DELTA ? 1 : 2));
	}
}

Test(rows_image, the_largest_keys_are_found)
{
	struct vp_rows *rows = make_rows(2, 1, 3);

	rows->key[0] = 0;
	rows->key[1] = 0xfffffffd;
	rows->span = 0xfffffffe;
	check_rows(rows);
}

Test(rows_image, no_rows_are_a_root_and_rules)
{
	struct vp_rows_desc d = check_rows(make_rows(0, 1, 1));

	cr_expect(zero(u32, d.block_cnt));
	cr_expect(eq(u32, d.elem_cnt, 2));
}

Test(rows_image, as_many_blocks_as_directories_hold_and_no_more)
{
	uint32_t cnt = VP_ROWS_FANOUT * VP_ROWS_FANOUT, *key = malloc((cnt + 1) * sizeof(*key));

	/* one row a block */
	for (uint32_t i = 0; i <= cnt; i++)
		key[i] = i * (VP_ROWS_NO_DELTA - 1) + i;
	cr_expect(eq(int, row_image_fits(key, cnt), 1));
	cr_expect(eq(int, row_image_fits(key, cnt + 1), 0));
	free(key);
}

Test(rows_image, as_many_rules_as_there_are_numbers)
{
	check_rows(make_rows(70000, 5, VP_RULES_MAX));
}
