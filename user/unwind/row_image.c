/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "row_image.h"

#include <string.h>

#define BLOCKS_MAX (VP_ROWS_FANOUT * VP_ROWS_FANOUT)

typedef uint32_t key_array[VP_ROWS_FANOUT];

/* The number of rows, from the one at key on, that one block holds. */
static size_t block_rows(const uint32_t *key, size_t cnt)
{
	size_t n = cnt < VP_ROWS_FANOUT ? cnt : VP_ROWS_FANOUT;

	/* Keys ascend: usually the last one fits and so do all. */
	while (key[n - 1] - key[0] >= VP_ROWS_NO_DELTA)
		n--;
	return n;
}

static uint32_t count_blocks(const uint32_t *key, size_t cnt)
{
	uint32_t blocks = 0;

	for (size_t i = 0; i < cnt; i += block_rows(key + i, cnt - i))
		blocks++;
	return blocks;
}

static uint32_t divide_up(uint32_t n, uint32_t by)
{
	return n / by + (n % by != 0);
}

bool row_image_fits(const uint32_t *key, size_t cnt)
{
	return count_blocks(key, cnt) <= BLOCKS_MAX;
}

struct vp_rows_desc vp_rows_layout(const struct vp_rows *rows)
{
	uint32_t blocks = count_blocks(rows->key, rows->cnt);
	uint32_t dirs = blocks > VP_ROWS_FANOUT ? divide_up(blocks, VP_ROWS_FANOUT) : 0;
	struct vp_rows_desc d = {
		.base = rows->base,
		.span = rows->span,
		.dir_cnt = dirs,
		.block_cnt = blocks,
		.rule_elem = 1 + dirs + blocks,
		.rule_cnt = rows->rule_cnt,
	};

	d.elem_cnt = d.rule_elem + divide_up(rows->rule_cnt, VP_RULES_PER_ELEM);
	return d;
}

static void *element(void *dst, size_t i)
{
	return (char *)dst + i * VP_ROWS_ELEM_BYTES;
}

static void fill_block(const struct vp_rows *rows, size_t first, size_t cnt,
		       struct vp_row_block *block)
{
	for (size_t i = 0; i < cnt; i++)
		block->delta[i] = (uint16_t)(rows->key[first + i] - rows->key[first]);
	for (size_t i = cnt; i < VP_ROWS_FANOUT; i++)
		block->delta[i] = VP_ROWS_NO_DELTA;
	memcpy(block->rule, rows->rule + first, cnt * sizeof(*block->rule));
}

/* The root and directories: without directories the root is the only one. */
static void fill_keys(const struct vp_rows_desc *d, key_array *arrays)
{
	memset(arrays, 0xff, sizeof(*arrays) * (1 + (size_t)d->dir_cnt)); /* VP_ROWS_NO_KEY */
}

static void set_block_key(const struct vp_rows_desc *d, key_array *arrays, size_t block,
			  uint32_t key)
{
	size_t dir = block / VP_ROWS_FANOUT, i = block % VP_ROWS_FANOUT;

	if (!d->dir_cnt) {
		arrays[0][i] = key;
		return;
	}
	arrays[1 + dir][i] = key;
	if (!i)
		arrays[0][dir] = key;
}

static void fill_rules(const struct vp_rows *rows, const struct vp_rows_desc *d, void *dst)
{
	for (size_t i = 0, n; i < rows->rule_cnt; i += n) {
		n = rows->rule_cnt - i < VP_RULES_PER_ELEM ? rows->rule_cnt - i : VP_RULES_PER_ELEM;
		memcpy(element(dst, d->rule_elem + i / VP_RULES_PER_ELEM), &rows->rules[i],
		       n * sizeof(*rows->rules));
	}
}

void vp_rows_fill(const struct vp_rows *rows, const struct vp_rows_desc *desc, void *dst)
{
	key_array *arrays = dst;
	size_t n;

	fill_keys(desc, arrays);
	for (size_t i = 0, block = 0; i < rows->cnt; i += n, block++) {
		n = block_rows(rows->key + i, rows->cnt - i);
		set_block_key(desc, arrays, block, rows->key[i]);
		fill_block(rows, i, n, element(dst, 1 + desc->dir_cnt + block));
	}
	fill_rules(rows, desc, dst);
}
