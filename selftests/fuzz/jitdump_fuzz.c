/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Jitdumps: read while they grow they tell the same as when they are whole. */
#include "symbolize/jitdump.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_up_to(struct jitdump *d, struct jit_table *t, const uint8_t *data, uint64_t size,
		       uint64_t *offset)
{
	uint64_t next = *offset;

	do {
		uint64_t cnt;

		*offset = next;
		if (*offset >= size)
			return;
		cnt = size - *offset;
		if (cnt > JITDUMP_WINDOW_BYTES)
			cnt = JITDUMP_WINDOW_BYTES;
		if (jitdump_feed(d, t, data + *offset, cnt, *offset, size, &next))
			return;
	} while (next != *offset);
}

static int differ(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) : a != b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_table whole = {.max_bytes = 1 << 20, .keeps_lines = true}, grown = whole;
	struct jitdump one = {0}, two = {0};
	uint64_t offset = 0;

	read_up_to(&one, &whole, data, size, &offset);
	offset = 0;
	for (size_t end = 0; end < size; end += 1 + size / 16)
		read_up_to(&two, &grown, data, end, &offset);
	read_up_to(&two, &grown, data, size, &offset);
	if (one.bad_cnt != two.bad_cnt || one.ended != two.ended || one.pid != two.pid)
		abort();
	for (uint64_t addr = 0; addr < 0x4000; addr += 0x11) {
		struct jit_found a = {0}, b = {0};

		jit_table_find(&whole, addr, &a);
		jit_table_find(&grown, addr, &b);
		if (differ(a.name, b.name) || differ(a.file, b.file) || a.line != b.line ||
		    a.offset != b.offset || (a.name && strlen(a.name) >= VP_JIT_NAME_BYTES))
			abort();
	}
	jit_table_clear(&whole);
	jit_table_clear(&grown);
	jitdump_free(&one);
	jitdump_free(&two);
	return 0;
}
