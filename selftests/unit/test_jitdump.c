/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files as the specification has them, read as a whole and in pieces. */
#include "jit_name_at.h"
#include "symbolize/jitdump.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct jit_table t;
static struct jitdump d;
static unsigned char file[1 << 20];
static size_t size;

static void set_up(void)
{
	t.max_bytes = 64 << 20;
}

static void tear_down(void)
{
	jit_table_clear(&t);
	jitdump_free(&d);
}

TestSuite(jitdump, .init = set_up, .fini = tear_down);

static void start_again(void)
{
	jitdump_free(&d);
	d = (struct jitdump){0};
}

/* ---- making a file ---- */

static void put(const void *bytes, size_t n)
{
	cr_assert(le(sz, size + n, sizeof(file)));
	memcpy(file + size, bytes, n);
	size += n;
}

static void put32(uint32_t v)
{
	put(&v, sizeof(v));
}

static void put64(uint64_t v)
{
	put(&v, sizeof(v));
}

static void put_header(uint32_t magic, uint32_t version, uint32_t total)
{
	const uint32_t fields[] = {magic, version, total, 62, 0, 4711};

	put(fields, sizeof(fields));
	put64(1);
	put64(0);
}

static void put_load(uint64_t addr, uint64_t code_size, uint64_t index, const char *name)
{
	put32(0);
	put32((uint32_t)(56 + strlen(name) + 1 + code_size));
	put64(index);
	put32(4711);
	put32(4711);
	put64(addr);
	put64(addr);
	put64(code_size);
	put64(index);
	put(name, strlen(name) + 1);
	for (uint64_t i = 0; i < code_size; i++)
		put("\x90", 1);
}

static void put_move(uint64_t from, uint64_t to, uint64_t code_size, uint64_t index)
{
	put32(1);
	put32(64);
	put64(index);
	put32(4711);
	put32(4711);
	put64(to);
	put64(from);
	put64(to);
	put64(code_size);
	put64(index);
}

/* A record of another kind: debug info, unwinding info, or one of the future. */
static void put_other(uint32_t id, uint32_t body)
{
	put32(id);
	put32(16 + body);
	put64(9);
	for (uint32_t i = 0; i < body; i++)
		put("\xff", 1);
}

static void begin_debug(uint64_t addr, uint64_t line_cnt, size_t line_bytes)
{
	put32(2);
	put32((uint32_t)(32 + line_bytes));
	put64(9);
	put64(addr);
	put64(line_cnt);
}

#define LINE_BYTES(name) (16 + sizeof(name))

static void put_line(uint64_t addr, uint32_t line, const char *name)
{
	put64(addr);
	put32(line);
	put32(0);
	put(name, strlen(name) + 1);
}

/* ---- reading it ---- */

/* What there is of the first `end` bytes, by windows of `window`. */
static int read_up_to(uint64_t end, size_t window, uint64_t *offset)
{
	for (;;) {
		uint64_t next, left = end - *offset;
		size_t cnt = left < window ? left : window;
		unsigned char *copy;
		int err;

		if (*offset >= end)
			return 0;
		/* so that a sanitizer sees what lies behind it */
		copy = malloc(cnt ? cnt : 1);
		memcpy(copy, file + *offset, cnt);
		err = jitdump_feed(&d, &t, copy, cnt, *offset, end, &next);
		free(copy);
		if (err || next == *offset)
			return err;
		*offset = next;
	}
}

static void read_all(void)
{
	uint64_t offset = 0;

	cr_assert(zero(int, read_up_to(size, JITDUMP_WINDOW_BYTES, &offset)));
}

static void expect(uint64_t addr, const char *name)
{
	const char *found = jit_name_at(&t, addr);

	cr_expect(eq(str, (char *)(found ? found : "none"), (char *)name), "at %lx", addr);
}

/* "name+offset file:line" */
static void expect_line(uint64_t addr, const char *text)
{
	struct jit_found found;
	char got[256] = "none";

	if (jit_table_find(&t, addr, &found))
		snprintf(got, sizeof(got), "%s+%lu %s:%u", found.name, found.offset,
			 found.file ? found.file : "none", found.line);
	cr_expect(eq(str, (char *)got, (char *)text), "at %lx", addr);
}

static void put_example(void)
{
	put_header(0x4a695444, 1, 40);
	put_load(0x1000, 0x40, 1, "first");
	put_other(2, 100);
	put_load(0x2000, 0x80, 2, "void second(int)");
	put_other(4, 32);
	put_move(0x1000, 0x3000, 0x40, 1);
	put_other(99, 7);
	put_load(0x2000, 0x40, 3, "third");
}

static void expect_example(void)
{
	expect(0xfff, "none");
	expect(0x1000, "first");
	expect(0x103f, "first");
	expect(0x1040, "none");
	expect(0x3008, "first");
	expect(0x203f, "third");
	expect(0x2040, "void second(int)");
	expect(0x2080, "none");
	cr_expect(eq(u32, d.pid, 4711));
	cr_expect(zero(u64, d.bad_cnt));
}

Test(jitdump, loads_and_moves_are_taken_and_the_rest_is_passed_over)
{
	put_example();
	read_all();
	expect_example();
	cr_expect(not(d.ended));
}

Test(jitdump, a_file_that_grows_byte_by_byte_tells_the_same)
{
	uint64_t offset = 0;

	put_example();
	for (uint64_t end = 0; end <= size; end++)
		cr_assert(zero(int, read_up_to(end, JITDUMP_WINDOW_BYTES, &offset)));
	cr_expect(eq(u64, offset, size));
	expect_example();
}

Test(jitdump, records_larger_than_a_window_are_passed_over)
{
	uint64_t offset = 0;

	put_header(0x4a695444, 1, 48);
	put64(0); /* a longer header */
	put_load(0x100000, 200000, 1, "large");
	put_load(0x200000, 0x10, 2, "small");
	cr_assert(zero(int, read_up_to(size, JITDUMP_WINDOW_BYTES, &offset)));
	cr_expect(eq(u64, offset, size));
	expect(0x100000 + 199999, "large");
	expect(0x20000f, "small");
}

Test(jitdump, what_follows_its_end_is_not_read)
{
	put_header(0x4a695444, 1, 40);
	put_load(0x1000, 0x40, 1, "first");
	put_other(3, 0);
	put_load(0x2000, 0x40, 2, "second");
	read_all();
	cr_expect(d.ended);
	expect(0x1000, "first");
	expect(0x2000, "none");
}

Test(jitdump, other_files_are_refused)
{
	static const uint32_t headers[][3] = {
		{0x4454694a, 1, 40}, /* the other byte order */
		{0x464c457f, 1, 40}, {0x4a695444, 2, 40}, {0x4a695444, 0, 40},
		{0x4a695444, 1, 39}, {0x4a695444, 1, 0},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		uint64_t offset = 0;

		size = 0;
		start_again();
		put_header(headers[i][0], headers[i][1], headers[i][2]);
		put_load(0x1000, 0x40, 1, "first");
		cr_expect(eq(int, read_up_to(size, JITDUMP_WINDOW_BYTES, &offset), -ENOEXEC));
		cr_expect(d.ended);
		expect(0x1000, "none");
	}
}

/* The load's fields that say how long things are, each wrong. */
static void expect_bad_load(size_t field, uint64_t value, size_t bytes)
{
	size_t at;

	jit_table_clear(&t);
	start_again();
	size = 0;
	put_header(0x4a695444, 1, 40);
	at = size;
	put_load(0x1000, 0x40, 1, "first");
	memcpy(file + at + field, &value, bytes);
	put_load(0x2000, 0x40, 2, "second");
	read_all();
	expect(0x1000, "none");
}

Test(jitdump, damaged_records_name_nothing)
{
	/* code_size: more than the record, leaving no room for a name, none, wrapping */
	expect_bad_load(40, 0x1000, 8);
	cr_expect(eq(u64, d.bad_cnt, 1));
	expect(0x2000, "second");
	expect_bad_load(40, 0x46, 8);
	cr_expect(eq(u64, d.bad_cnt, 1));
	expect_bad_load(40, 0, 8);
	cr_expect(eq(u64, d.bad_cnt, 1));
	expect_bad_load(40, UINT64_MAX, 8);
	cr_expect(eq(u64, d.bad_cnt, 1));
	/* an empty name */
	expect_bad_load(56, 0, 1);
	cr_expect(eq(u64, d.bad_cnt, 1));
	/* total_size: 0 leads nowhere; a load without its fields; more than there is: waited for */
	expect_bad_load(4, 0, 4);
	cr_expect(d.ended);
	expect(0x2000, "none");
	expect_bad_load(4, 15, 4);
	cr_expect(d.ended);
	expect_bad_load(4, 55, 4);
	expect_bad_load(4, UINT32_MAX, 4);
	cr_expect(not(d.ended));
	expect(0x2000, "none");
}

static void put_example_with_lines(void)
{
	put_header(0x4a695444, 1, 40);
	begin_debug(0x1000, 4, 2 * LINE_BYTES("/src/a.js") + 2 * LINE_BYTES("\xff"));
	put_line(0x1000, 7, "/src/a.js");
	put_line(0x1020, 9, "\xff");
	put_line(0x1010, 8, "\xff");
	put_line(0x1030, 3, "/src/b.js");
	put_load(0x1000, 0x40, 1, "first");
	put_load(0x2000, 0x40, 2, "second");
	put_move(0x1000, 0x3000, 0x40, 1);
}

static void expect_example_with_lines(void)
{
	expect_line(0x1000, "first+0 /src/a.js:7");
	expect_line(0x100f, "first+15 /src/a.js:7");
	expect_line(0x1010, "first+16 /src/a.js:8");
	expect_line(0x102f, "first+47 /src/a.js:9");
	expect_line(0x103f, "first+63 /src/b.js:3");
	expect_line(0x2000, "second+0 none:0");
	expect_line(0x3018, "first+24 /src/a.js:8");
	cr_expect(zero(u64, d.bad_cnt));
}

Test(jitdump, lines_are_those_of_the_code_that_follows)
{
	t.keeps_lines = true;
	put_example_with_lines();
	read_all();
	expect_example_with_lines();
}

Test(jitdump, lines_in_a_file_that_grows_byte_by_byte_are_the_same)
{
	uint64_t offset = 0;

	t.keeps_lines = true;
	put_example_with_lines();
	for (size_t end = 0; end <= size; end++)
		cr_assert(zero(int, read_up_to(end, JITDUMP_WINDOW_BYTES, &offset)));
	expect_example_with_lines();
}

Test(jitdump, lines_are_not_kept_where_nobody_wants_them)
{
	put_example_with_lines();
	read_all();
	expect_line(0x1010, "first+16 none:0");
}

Test(jitdump, more_lines_than_a_window_holds_are_read)
{
	const uint64_t cnt = 10000;

	t.keeps_lines = true;
	put_header(0x4a695444, 1, 40);
	begin_debug(0x1000, cnt, cnt * LINE_BYTES("/src/a.js"));
	for (uint64_t i = 0; i < cnt; i++)
		put_line(0x1000 + i, (uint32_t)i + 1, "/src/a.js");
	put_load(0x1000, cnt, 1, "first");
	read_all();
	expect_line(0x1000, "first+0 /src/a.js:1");
	expect_line(0x1000 + cnt - 1, "first+9999 /src/a.js:10000");
	cr_expect(lt(u64, jit_table_bytes(&t), 150000), "the file's name is kept once");
}

static void put_code_with_line(uint64_t addr, uint64_t code_size, uint64_t line_at,
			       const char *name)
{
	begin_debug(addr, 1, LINE_BYTES("/src/a.js"));
	put_line(addr + line_at, 7, "/src/a.js");
	put_load(addr, code_size, 1, name);
}

/* V8 and LLVM have addresses of lines that are too high by an ELF header. */
Test(jitdump, lines_that_are_off_by_a_header_are_where_they_should_be)
{
	t.keeps_lines = true;
	put_header(0x4a695444, 1, 40);
	begin_debug(0x1000, 2, LINE_BYTES("/src/a.js") + LINE_BYTES("\xff"));
	put_line(0x1040, 7, "/src/a.js");
	put_line(0x1050, 8, "\xff");
	put_load(0x1000, 0x20, 1, "short");
	put_code_with_line(0x2000, 0x200, 0x40, "long");
	put_code_with_line(0x3000, 0x20, 0x48, "late");
	read_all();
	expect_line(0x1000, "short+0 /src/a.js:7");
	expect_line(0x1010, "short+16 /src/a.js:8");
	expect_line(0x2000, "long+0 /src/a.js:7");
	expect_line(0x3007, "late+7 none:0");
	expect_line(0x3008, "late+8 /src/a.js:7");
	cr_expect(zero(u64, d.bad_cnt));
}

Test(jitdump, lines_are_left_where_one_of_the_file_shows_that_they_are_right)
{
	t.keeps_lines = true;
	put_header(0x4a695444, 1, 40);
	put_code_with_line(0x1000, 0x200, 0x3f, "first");
	put_code_with_line(0x2000, 0x200, 0x40, "second");
	put_code_with_line(0x3000, 0x20, 0x48, "damaged");
	read_all();
	expect_line(0x103f, "first+63 /src/a.js:7");
	expect_line(0x203f, "second+63 none:0");
	expect_line(0x2040, "second+64 /src/a.js:7");
	expect_line(0x3010, "damaged+16 none:0");
	cr_expect(eq(u64, d.bad_cnt, 1));
}

/* One record of lines in front of good code, which has its name in any case, and then good lines. */
static void expect_no_lines(uint64_t code_addr, uint64_t line_cnt, uint64_t addr, const char *name,
			    size_t name_bytes)
{
	jit_table_clear(&t);
	start_again();
	size = 0;
	put_header(0x4a695444, 1, 40);
	begin_debug(code_addr, line_cnt, 16 + name_bytes);
	put64(addr);
	put64(7);
	put(name, name_bytes);
	put_load(0x1000, 0x40, 1, "first");
	begin_debug(0x2000, 1, LINE_BYTES("/src/b.js"));
	put_line(0x2000, 9, "/src/b.js");
	put_load(0x2000, 0x40, 2, "second");
	read_all();
	expect_line(0x1000, "first+0 none:0");
	expect_line(0x2000, "second+0 /src/b.js:9");
}

Test(jitdump, damaged_lines_are_not_believed)
{
	static char long_name[JITDUMP_WINDOW_BYTES * 2];

	t.keeps_lines = true;
	/* of other code: nobody's fault */
	expect_no_lines(0x3000, 1, 0x3000, "a.js", 5);
	cr_expect(zero(u64, d.bad_cnt));
	/* more lines than the record has room for, or as many as there can be */
	expect_no_lines(0x1000, 2, 0x1000, "a.js", 5);
	cr_expect(eq(u64, d.bad_cnt, 1));
	expect_no_lines(0x1000, UINT64_MAX, 0x1000, "a.js", 5);
	/* in front of the code, behind it, far behind it */
	expect_no_lines(0x1000, 1, 0xfff, "a.js", 5);
	expect_no_lines(0x1000, 1, 0x1080, "a.js", 5);
	expect_no_lines(0x1000, 1, UINT64_MAX, "a.js", 5);
	cr_expect(eq(u64, d.bad_cnt, 1));
	/* names: of the line before where there is none, empty, no text, without an end, too long */
	expect_no_lines(0x1000, 1, 0x1000, "\xff", 2);
	expect_no_lines(0x1000, 1, 0x1000, "", 1);
	expect_no_lines(0x1000, 1, 0x1000, "a\x1bjs", 5);
	expect_no_lines(0x1000, 1, 0x1000, "a.js", 4);
	cr_expect(eq(u64, d.bad_cnt, 1));
	memset(long_name, 'n', sizeof(long_name));
	expect_no_lines(0x1000, 1, 0x1000, long_name, sizeof(long_name));
	cr_expect(eq(u64, d.bad_cnt, 1));
}

Test(jitdump, a_record_of_lines_without_its_fields_is_skipped)
{
	t.keeps_lines = true;
	put_header(0x4a695444, 1, 40);
	put_other(2, 8);
	put_load(0x1000, 0x40, 1, "first");
	read_all();
	expect_line(0x1000, "first+0 none:0");
	cr_expect(eq(u64, d.bad_cnt, 1));
}

static void read_garbage(void (*make)(void))
{
	unsigned int seed = 5;

	for (int i = 0; i < 20000; i++) {
		uint64_t offset = 0;

		start_again();
		size = 0;
		make();
		for (int j = rand_r(&seed) % 8; j >= 0; j--)
			file[rand_r(&seed) % size] = (unsigned char)rand_r(&seed);
		size -= (size_t)(rand_r(&seed) % 3);
		read_up_to(size, 1 + (size_t)rand_r(&seed) % 400, &offset);
	}
	jit_name_at(&t, 0x1000);
}

Test(jitdump, garbage_is_survived)
{
	read_garbage(put_example);
}

Test(jitdump, garbage_among_lines_is_survived)
{
	t.keeps_lines = true;
	read_garbage(put_example_with_lines);
}
