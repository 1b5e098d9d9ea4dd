/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files as the specification has them, read as a whole and in pieces. */
#include "symbolize/jitdump.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
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
}

TestSuite(jitdump, .init = set_up, .fini = tear_down);

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
	const char *found = jit_table_find(&t, addr);

	cr_expect(eq(str, (char *)(found ? found : "none"), (char *)name), "at %lx", addr);
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
		d = (struct jitdump){0};
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
	d = (struct jitdump){0};
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

Test(jitdump, garbage_is_survived)
{
	unsigned int seed = 5;

	for (int i = 0; i < 20000; i++) {
		uint64_t offset = 0;

		d = (struct jitdump){0};
		size = 0;
		put_example();
		for (int j = rand_r(&seed) % 8; j >= 0; j--)
			file[rand_r(&seed) % size] = (unsigned char)rand_r(&seed);
		size -= (size_t)(rand_r(&seed) % 3);
		read_up_to(size, 1 + (size_t)rand_r(&seed) % 400, &offset);
	}
	jit_table_find(&t, 0x1000);
}
