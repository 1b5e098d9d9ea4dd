/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The compiler of unwind rows. Input that begins like an ELF file is one; all else is taken for
 * the bytes of .eh_frame and of .debug_frame in a file that is in order.
 */
#include "made_cfi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_rows(const struct vp_rows *rows)
{
	require(rows->cnt && rows->rule_cnt && rows->rule_cnt <= VP_RULES_MAX);
	for (uint32_t i = 0; i < rows->cnt; i++) {
		require(rows->rule[i] < rows->rule_cnt && rows->key[i] < rows->span);
		require(!i || rows->key[i] > rows->key[i - 1]);
		require(!i || rows->rule[i] != rows->rule[i - 1]);
	}
	for (uint32_t i = 1; i < rows->rule_cnt; i++) {
		const struct vp_rule *r = &rows->rules[i];

		require(r->cfa > VP_CFA_NONE && r->cfa <= VP_CFA_CLONE && r->reg < 16);
		require(r->saved[VP_SAVED_RA] < VP_SAVED_LOST && r->ra_reg < 16);
	}
}

/* Every row is found at its first byte, and not before. */
static void check_find(const struct vp_rows *rows)
{
	for (uint32_t i = 0; i < rows->cnt; i++) {
		uint64_t at = rows->base + rows->key[i], first;

		require(vp_rows_find(rows, at, &first) == &rows->rules[rows->rule[i]] &&
			first == at);
		require(!at || !vp_rows_find(rows, at - 1, &first) || first < at);
	}
	vp_rows_find(rows, UINT64_MAX, NULL);
}

static void check_image(const struct vp_rows *rows)
{
	struct vp_rows_desc d = vp_rows_layout(rows);
	void *image = calloc(d.elem_cnt, VP_ROWS_ELEM_BYTES);

	vp_rows_fill(rows, &d, image);
	free(image);
}

static void compile(const uint8_t *image, size_t size)
{
	struct vp_rows *rows;
	int reason = vp_rows_compile_memory(&rows, image, size);

	require(reason >= 0 && !rows == (reason != VP_ROWS_OK));
	if (!rows)
		return;
	check_rows(rows);
	check_find(rows);
	check_image(rows);
	vp_rows_free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct made_cfi eh = {.is_eh = true}, debug = {.is_eh = false};
	uint8_t *image;

	if (size >= SELFMAG && !memcmp(data, ELFMAG, SELFMAG)) {
		compile(data, size);
		return 0;
	}
	made_put(&eh, data, size);
	made_put(&debug, data, size);
	image = made_image(&(struct made_image){.eh = &eh, .debug = &debug}, &size);
	compile(image, size);
	free(image);
	made_cfi_free(&eh);
	made_cfi_free(&debug);
	return 0;
}
