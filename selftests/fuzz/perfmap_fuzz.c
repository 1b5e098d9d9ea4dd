/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Perf maps: given in two pieces they tell the same as in one. */
#include "../lib/jit_name_at.h"
#include "symbolize/perf_map.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct perf_map *m, struct jit_table *t, const uint8_t *data, size_t size)
{
	if (perf_map_feed(m, t, (const char *)data, size))
		abort();
}

static void compare(struct jit_table *a, struct jit_table *b, uint64_t addr)
{
	const char *in_a = jit_name_at(a, addr), *in_b = jit_name_at(b, addr);

	if (!in_a != !in_b || (in_a && (strcmp(in_a, in_b) || strlen(in_a) >= VP_JIT_NAME_BYTES)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_table whole = {.max_bytes = 1 << 20}, halves = {.max_bytes = 1 << 20};
	struct perf_map one = {0}, two = {0};
	size_t half = size ? data[0] % size : 0;

	feed(&one, &whole, data, size);
	feed(&two, &halves, data, half);
	feed(&two, &halves, data + half, size - half);
	if (one.bad_cnt != two.bad_cnt || jit_table_bytes(&whole) != jit_table_bytes(&halves))
		abort();
	for (uint64_t addr = 0; addr < 0x2000; addr += 0x11)
		compare(&whole, &halves, addr);
	compare(&whole, &halves, UINT64_MAX);
	jit_table_clear(&whole);
	jit_table_clear(&halves);
	perf_map_free(&one);
	perf_map_free(&two);
	return 0;
}
