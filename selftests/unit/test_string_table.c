/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Strings of a file, read one by one until it is better to read all. */
#include "symbolize/elf_reader.h"
#include "symbolize/string_table.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT 10 /* where the strings are in their file */

static char bytes[200000];
static struct elf_file file;
static struct string_table table;

/* A file of so many bytes, whose strings begin at AT. */
static void make(size_t size)
{
	char path[] = "/tmp/vmaprof-strings-XXXXXX";

	file = (struct elf_file){.fd = mkstemp(path), .size = size};
	cr_assert(ge(int, file.fd, 0));
	unlink(path);
	cr_assert(eq(sz, (size_t)write(file.fd, bytes, size), size));
	table = (struct string_table){.f = &file, .offset = AT, .size = size - AT};
}

static void done(void)
{
	string_table_fini(&table);
	close(file.fd);
}

TestSuite(string_table, .fini = done);

static void expect_string(uint32_t at, size_t max, const char *want)
{
	char room[STRING_ROOM];
	size_t len = 0;
	int err = 0;
	const char *got = string_table_get(&table, at, max, room, &len, &err);

	cr_assert(ne(ptr, (void *)got, NULL), "%d", err);
	cr_expect(eq(sz, len, strlen(want)));
	cr_expect(zero(int, memcmp(got, want, strlen(want))));
}

Test(string_table, one_is_read_alone)
{
	memcpy(bytes + AT, "one\0two\0", 8);
	make(AT + 100);
	expect_string(0, 100, "one");
	expect_string(4, 100, "two");
	expect_string(5, 100, "wo");
	expect_string(3, 100, "");
	expect_string(4, 2, "tw");
	cr_expect(eq(ptr, table.all, NULL));
}

Test(string_table, the_last_may_lack_its_nul)
{
	memcpy(bytes + AT, "last", 4);
	make(AT + 4);
	expect_string(0, 100, "last");
	expect_string(3, 100, "t");
	cr_assert(zero(int, string_table_read_all(&table)));
	expect_string(0, 100, "last");
}

Test(string_table, a_long_one_has_all_read)
{
	static char want[5001];

	memset(want, 'x', 5000);
	memcpy(bytes + AT, want, 5001);
	make(AT + 6000);
	expect_string(4500, 10000, want + 4500);
	cr_expect(eq(ptr, table.all, NULL));
	expect_string(0, 10000, want);
	cr_expect(ne(ptr, table.all, NULL));
	expect_string(4990, 10000, want + 4990);
	expect_string(0, 10, "xxxxxxxxxx");
}

Test(string_table, many_have_all_read)
{
	for (int i = 0; i < 10000; i++)
		snprintf(bytes + AT + 16 * i, 16, "n%d", i);
	make(AT + 160000);
	for (int i = 0; i < 10000; i++) {
		char want[16];

		snprintf(want, sizeof(want), "n%d", i);
		expect_string(16 * (uint32_t)i, 100, want);
	}
	cr_expect(ne(ptr, table.all, NULL));
}

Test(string_table, a_file_that_shrank_is_an_error)
{
	char room[STRING_ROOM];
	size_t len;
	int err = 0;

	make(AT + 100);
	cr_assert(zero(int, ftruncate(file.fd, AT + 50)));
	expect_string(10, 20, "");
	cr_expect(eq(ptr, (void *)string_table_get(&table, 60, 20, room, &len, &err), NULL));
	cr_expect(eq(int, err, -ENOEXEC));
}
