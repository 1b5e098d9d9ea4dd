/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "jit_name_at.h"
#include "symbolize/perf_map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct jit_table t;
static struct perf_map m;

static void set_up(void)
{
	t.max_bytes = 256 << 20;
}

static void tear_down(void)
{
	jit_table_clear(&t);
	perf_map_free(&m);
}

TestSuite(perf_map, .init = set_up, .fini = tear_down);

static void feed(const char *text)
{
	cr_assert(zero(int, perf_map_feed(&m, &t, text, strlen(text))));
}

static void expect(uint64_t addr, const char *name)
{
	const char *found = jit_name_at(&t, addr);

	cr_expect(eq(str, (char *)(found ? found : "none"), (char *)name), "at %lx", addr);
}

Test(perf_map, lines_name_ranges)
{
	feed("7f00001000 40 LazyCompile:*render /srv/app/page.js:12\n"
	     "0x7f00002000 0X1f void Hot.spin(int)\n"
	     "  7f00003000\t8  tabbed\t\r\n"
	     "0000000000007F00004000 10 capital and leading zeros\n"
	     "7f00005000 10 0x10 is a name\n");
	expect(0x7f00000fff, "none");
	expect(0x7f00001000, "LazyCompile:*render /srv/app/page.js:12");
	expect(0x7f0000103f, "LazyCompile:*render /srv/app/page.js:12");
	expect(0x7f00001040, "none");
	expect(0x7f0000201e, "void Hot.spin(int)");
	expect(0x7f0000201f, "none");
	expect(0x7f00003007, "tabbed");
	expect(0x7f00004000, "capital and leading zeros");
	expect(0x7f00005000, "0x10 is a name");
	cr_expect(zero(u64, m.bad_cnt));
}

static void feed_bytes(const char *bytes, size_t cnt)
{
	cr_assert(zero(int, perf_map_feed(&m, &t, bytes, cnt)));
}

Test(perf_map, a_name_ends_at_a_nul)
{
	static const char text[] = "1000 10 cut\0here\n2000 10 \0nothing\n3000 \0 10 x\n\0\n";

	feed_bytes(text, sizeof(text) - 1);
	expect(0x1000, "cut");
	expect(0x2000, "none");
	expect(0x3000, "none");
	cr_expect(eq(u64, m.bad_cnt, 3));
}

Test(perf_map, what_is_no_line_is_skipped_and_counted)
{
	static const char *const bad[] = {
		"",
		" ",
		"1000",
		"1000 ",
		"1000 20",
		"1000 20 ",
		"1000 20 \r",
		"zz 20 x",
		"1000 zz x",
		"0x 20 x",
		"1000 0x x",
		"-1000 20 x",
		"1000 0 no size",
		"10000000000000000 20 too long",
		"ffffffffffffffff 20 beyond",
		"1000,20,x",
		"# a comment",
		"\x7f\x45LF\x02\x01\x01",
		"name 1000 20",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		feed(bad[i]);
		feed("\n");
		cr_expect(eq(u64, m.bad_cnt, i + 1), "'%s' was taken", bad[i]);
		cr_expect(zero(u64, jit_table_bytes(&t)), "'%s' was taken", bad[i]);
	}
	feed("1000 20 good\n");
	expect(0x1000, "good");
}

Test(perf_map, a_line_counts_when_its_end_is_there_however_it_comes)
{
	const char text[] = "1000 20 first\nbad\n2000 20 second one\n3000 20 third";

	for (size_t step = 1; step < sizeof(text); step++) {
		jit_table_clear(&t);
		perf_map_restart(&m);
		m.bad_cnt = 0;
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t n = sizeof(text) - 1 - at;

			cr_assert(zero(int, perf_map_feed(&m, &t, text + at, n < step ? n : step)));
		}
		expect(0x1000, "first");
		expect(0x2000, "second one");
		expect(0x3000, "none");
		cr_expect(eq(u64, m.bad_cnt, 1));
		feed(" of all\n");
		expect(0x3000, "third of all");
	}
}

Test(perf_map, a_half_line_is_not_continued_by_another_file)
{
	feed("1000 20 half");
	perf_map_restart(&m);
	feed("2000 20 whole\n");
	expect(0x1000, "none");
	expect(0x2000, "whole");
}

Test(perf_map, a_name_of_four_gigabytes_is_cut, .timeout = 120)
{
	const size_t chunk = 1 << 20;
	char *bytes = malloc(chunk);

	memset(bytes, 'n', chunk);
	feed("1000 20 ");
	for (int i = 0; i < 4096; i++)
		cr_assert(zero(int, perf_map_feed(&m, &t, bytes, chunk)));
	feed("\n2000 20 next\n");
	free(bytes);
	cr_expect(lt(sz, strlen(jit_name_at(&t, 0x1000)), VP_JIT_NAME_BYTES));
	expect(0x2000, "next");
	cr_expect(lt(u64, jit_table_bytes(&t), 10000));
}

Test(perf_map, a_million_lines, .timeout = 120)
{
	char line[64];

	for (uint64_t i = 0; i < 1000000; i++) {
		/* in no order */
		uint64_t n = i * 7919 % 1000000;

		snprintf(line, sizeof(line), "%lx 40 f%lu\n", 0x7f0000000000 + n * 0x40, n);
		feed(line);
	}
	expect(0x7f0000000000, "f0");
	expect(0x7f0000000000 + 123456 * 0x40 + 0x3f, "f123456");
	expect(0x7f0000000000 + 999999 * 0x40, "f999999");
	expect(0x7f0000000000 + 1000000 * 0x40, "none");
	cr_expect(zero(u64, m.bad_cnt));
	cr_expect(zero(u64, t.dropped_cnt));
}

Test(perf_map, garbage_is_survived)
{
	unsigned int seed = 3;
	char bytes[4096];

	for (int i = 0; i < 500; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = "0123456789abcdefx \n\r\t\0\xff"[rand_r(&seed) % 23];
		cr_assert(zero(int, perf_map_feed(&m, &t, bytes, sizeof(bytes))));
	}
	feed("\n7777777777777 20 good\n");
	cr_expect(gt(u64, m.bad_cnt, 1000));
	cr_expect(ne(ptr, (void *)jit_name_at(&t, 0x7777777777777), NULL));
}
