/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that stay in their file are the same names, whatever becomes of the file. */
#include "fixture_elf.h"
#include "symbolize/filed_names.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* So many names take more than a megabyte, from which on they are left in the file. */
#define FUNC_CNT 25000
#define OPEN_MAX 64

static struct fixture x;
static struct vp_symbolizer *s;
static char path[300];

static void new_symbolizer(const struct vp_symbolizer_opts *opts)
{
	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, opts)));
}

static void set_up(void)
{
	fixture_new(&x);
	new_symbolizer(NULL);
}

static void tear_down(void)
{
	vp_symbolizer_free(s);
	fixture_remove(&x);
}

TestSuite(filed_names, .init = set_up, .fini = tear_down, .timeout = 60);

/* ---- strings ---- */

/* The string at an offset of "xx" and then so many bytes of text, or the error's name. */
static const char *copied(const char *text, size_t size, uint32_t offset, size_t max)
{
	static char *out;
	char *bytes = malloc(size + 2);

	memcpy(bytes, "xx", 2);
	memcpy(bytes + 2, text, size);
	int fd = open(fixture_write(&x, "strings", bytes, size + 2), O_RDONLY);
	struct filed_names *n = filed_names_new(fd, 2, (uint32_t)size);

	cr_assert(ne(ptr, n, NULL));
	close(fd);
	free(bytes);
	free(out);
	out = NULL;

	int err = filed_names_copy(n, offset, max, &out);
	filed_names_free(n);
	return err ? strerrorname_np(-err) : out;
}

#define EXPECT_COPY(text, offset, max, want)                                                       \
	cr_expect(eq(str, (char *)copied(text, sizeof(text), offset, max), (char *)(want)))

Test(filed_names, a_string_is_read_from_any_of_its_bytes)
{
	EXPECT_COPY("\0one\0three", 0, 100, "");
	EXPECT_COPY("\0one\0three", 1, 100, "one");
	EXPECT_COPY("\0one\0three", 7, 100, "ree");
	EXPECT_COPY("\0one\0three", 10, 100, "");
	EXPECT_COPY("\0one\0three", 11, 100, "EIO");
	EXPECT_COPY("\0one\0three", UINT32_MAX, 100, "EIO");
}

Test(filed_names, it_ends_with_the_strings_without_a_nul)
{
	cr_expect(eq(str, (char *)copied("abcdef", 4, 1, 100), (char *)"bcd"));
}

Test(filed_names, long_ones_are_read_and_cut)
{
	char text[3001];

	for (size_t len = 250; len < 3000; len = len < 262 ? len + 1 : len * 2) {
		memset(text, 'n', len);
		text[len] = '\0';
		cr_expect(eq(str, (char *)copied(text, len + 1, 0, 100000), text));
	}
	cr_expect(eq(sz, strlen(copied(text, sizeof(text), 0, 1000)), 1000));
	cr_expect(eq(sz, strlen(copied(text, sizeof(text), 0, 7)), 7));
}

Test(filed_names, a_file_that_was_written_to_has_none)
{
	char *out = NULL;
	int fd = open(fixture_text(&x, "strings", "one"), O_RDWR);
	struct filed_names *n = filed_names_new(fd, 0, 3);

	fixture_run(&x, "touch -d 2020-01-01 strings");
	cr_expect(eq(int, filed_names_copy(n, 0, 10, &out), -ESTALE));
	cr_assert(zero(int, ftruncate(fd, 0)));
	cr_expect(eq(int, filed_names_copy(n, 0, 10, &out), -ESTALE));
	cr_expect(eq(ptr, out, NULL));
	close(fd);
	filed_names_free(n);
}

/* NULL where the other is. */
static int is_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

Test(filed_names, many_are_what_each_is)
{
	enum { SIZE = 1 << 20, CNT = 4000 };
	static char bytes[SIZE], *many[CNT];
	static uint32_t offsets[CNT];
	char *one = NULL;
	int fd;

	srandom(1);
	for (size_t i = 0; i < SIZE; i++) /* the last is not ended; one is as long as two windows */
		bytes[i] = random() % 100 || (i > 1000 && i < 200000) ? 'a' + (char)(i % 26) : '\0';
	for (size_t i = 0, at = 0; i < CNT; i++) {
		at += (size_t)random() % (i % 1000 < 500 ? 20 : i % 1000 < 520 ? 40000 : 40);
		offsets[i] = (uint32_t)at; /* beyond the end at last */
	}
	fd = open(fixture_write(&x, "strings", bytes, SIZE), O_RDONLY);
	struct filed_names *n = filed_names_new(fd, 0, SIZE);

	cr_assert(gt(u32, offsets[CNT - 1], (uint32_t)SIZE));
	filed_names_copy_many(n, offsets, CNT, 5000, many);
	for (size_t i = 0; i < CNT; i++) {
		one = NULL;
		filed_names_copy(n, offsets[i], 5000, &one);
		cr_expect(is_same(one, many[i]), "%zu: %s, but %s", i, one, many[i]);
		free(one);
		free(many[i]);
	}
	filed_names_free(n);
	close(fd);
}

/* ---- a library ---- */

/* A byte a function; in .symtab names end in @@V1. Where the first is. */
static uint64_t make_library(void)
{
	fixture_run(
		&x,
		"awk 'BEGIN { for (i = 0; i < %d; i++) { n = sprintf("
		"\"a_function_with_a_rather_long_name_%%05d\", i);"
		" printf \".globl %%s\\n.type %%s,@function\\n.symver %%s,%%s@@@V1\\n%%s: nop\\n"
		".size %%s,1\\n\","
		" n, n, n, n, n, n } }' >s && as -o o s && echo 'V1 { global: *; };' >v &&"
		" ld -shared --version-script v -o lib o",
		FUNC_CNT);
	snprintf(path, sizeof(path), "%s", fixture_path(&x, "lib"));
	return fixture_symbol(path, "a_function_with_a_rather_long_name_00000@@V1", 0);
}

static const char *name_of(uint32_t id, uint64_t offset)
{
	struct vp_symbol sym;

	vp_symbolizer_file(s, id, offset, &sym);
	return sym.name ? sym.name : vp_sym_reason_text(sym.reason);
}

static void expect_named(uint32_t id, uint64_t text, int func)
{
	char want[64];

	snprintf(want, sizeof(want), "a_function_with_a_rather_long_name_%05d", func);
	cr_expect(eq(str, (char *)name_of(id, text + (uint64_t)func), want));
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static uint64_t table_bytes(uint32_t id)
{
	struct vp_file_info info;

	cr_assert(zero(int, vp_symbolizer_file_info(s, id, &info)));
	return info.bytes;
}

Test(filed_names, a_large_library_is_named_from_its_open_file)
{
	uint64_t text = make_library();
	int before = descriptors();

	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_expect(eq(int, descriptors(), before + 1));
	cr_expect(lt(u64, table_bytes(1), FUNC_CNT * 20));
	for (int i = 0; i < FUNC_CNT; i += 97)
		expect_named(1, text, i);
	expect_named(1, text, FUNC_CNT - 1);
	new_symbolizer(NULL);
	cr_expect(eq(int, descriptors(), before));
}

static uint64_t name_cnt(void)
{
	struct vp_symbolizer_stats stats;

	vp_symbolizer_get_stats(s, &stats);
	return stats.name_cnt;
}

/* Of every function, and of some twice; of some in no order, and some where none is. */
static void expect_all(uint64_t text)
{
	static uint64_t offsets[2 * FUNC_CNT];

	for (uint64_t i = 0; i < 2 * FUNC_CNT; i++)
		offsets[i] = i % 101 ? text + (i * 7919) % FUNC_CNT : i;
	vp_symbolizer_expect(s, 1, offsets, 2 * FUNC_CNT);
}

Test(filed_names, expected_ones_are_there_before_they_are_asked_for)
{
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		const struct vp_symbolizer_opts opts = {.names_in_memory = in_memory,
							.pack_bytes = 1};
		uint64_t text = make_library();

		new_symbolizer(&opts);
		expect_all(text); /* not loaded */
		cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
		expect_all(text);
		cr_expect(ge(u64, name_cnt(), (uint64_t)FUNC_CNT));
		uint64_t known = name_cnt();
		for (int i = 0; i < FUNC_CNT; i += 97)
			expect_named(1, text, i);
		expect_all(text);
		cr_expect(eq(u64, name_cnt(), known));
	}
}

Test(filed_names, expected_ones_are_gone_with_their_file)
{
	uint64_t text = make_library();

	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	fixture_run(&x, "cp lib copy && cat copy >lib");
	expect_all(text);
	cr_expect(eq(str, (char *)name_of(1, text + 2), (char *)vp_sym_reason_text(VP_SYM_GONE)));
}

Test(filed_names, one_that_is_deleted_or_replaced_keeps_its_names)
{
	uint64_t text = make_library();

	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	unlink(path);
	expect_named(1, text, 1);
	fixture_run(&x, "echo other >lib");
	expect_named(1, text, 2);
}

Test(filed_names, one_that_is_written_to_says_so)
{
	uint64_t text = make_library();

	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	expect_named(1, text, 1);
	fixture_run(&x, "cp lib copy && cat copy >lib");
	cr_expect(eq(str, (char *)name_of(1, text + 2), (char *)vp_sym_reason_text(VP_SYM_GONE)));
	expect_named(1, text, 1); /* known before */
}

Test(filed_names, so_many_files_are_open_and_the_rest_has_its_names_in_memory)
{
	uint64_t text = make_library();
	int before = descriptors();

	for (uint32_t id = 1; id <= OPEN_MAX + 2; id++)
		cr_assert(zero(int, vp_symbolizer_load_path(s, id, path)));
	cr_expect(eq(int, descriptors(), before + OPEN_MAX));
	cr_expect(gt(u64, table_bytes(OPEN_MAX + 1), 2 * table_bytes(OPEN_MAX)));
	expect_named(OPEN_MAX, text, 5);
	expect_named(OPEN_MAX + 1, text, 5);
}

Test(filed_names, eviction_closes_the_file)
{
	const struct vp_symbolizer_opts opts = {.max_bytes = 700 << 10};
	uint64_t text = make_library();
	int before = descriptors();

	new_symbolizer(&opts);
	for (uint32_t id = 1; id <= 10; id++)
		cr_assert(zero(int, vp_symbolizer_load_path(s, id, path)));
	cr_expect(eq(int, descriptors(), before + 1));
	for (uint32_t id = 1; id <= 10; id++)
		expect_named(id, text, 5);
	cr_expect(eq(int, descriptors(), before + 1));
}

Test(filed_names, they_can_be_in_memory_instead)
{
	const struct vp_symbolizer_opts opts = {.names_in_memory = 1};
	uint64_t text = make_library();
	int before = descriptors();

	new_symbolizer(&opts);
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_expect(eq(int, descriptors(), before));
	expect_named(1, text, 77);
}

/* ---- several names for one function ---- */

/*
 * Functions of two bytes with aliases of the same size and of another, and labels of which `label_cnt`
 * have to be looked at. Where the first is.
 */
static uint64_t make_aliases(int label_cnt)
{
	fixture_run(&x,
		    "awk 'function sym(n, i, size) { printf "
		    "\".globl %%s\\n.type %%s,@function\\n.set %%s,f + %%d\\n.size %%s,%%d\\n\","
		    " n, n, n, 2 * i, n, size }"
		    " BEGIN { print \"f:\"; for (i = 0; i < %d; i++) { print \"nop\\nnop\";"
		    " sym(sprintf(\"a_function_with_a_rather_long_name_%%05d\", i), i, 2);"
		    " if (i %% 5 == 0) sym(sprintf(\"__under_%%d\", i), i, 2);"
		    " if (i %% 7 == 0) sym(sprintf(\"short_%%d\", i), i, 2);"
		    " if (i %% 7 == 1) sym(sprintf(\"short_%%d\", i), i, 1);"
		    " if (i %% 14 == 0) sym(sprintf(\"shore_%%d\", i), i, 2);"
		    " if (i < %d) printf \".set label_%%d,f + %%d\\n\", i, 2 * i + 1;"
		    " if (i %% 3 == 0) printf \".set $x.%%d,f + %%d\\n\", i, 2 * i;"
		    " } }' >s && as -o o s && ld -shared -o lib o",
		    FUNC_CNT, label_cnt);
	snprintf(path, sizeof(path), "%s", fixture_path(&x, "lib"));
	return fixture_symbol(path, "a_function_with_a_rather_long_name_00000", 0);
}

/* The names in the file are chosen as those in memory are, one by one and many at once. */
static void expect_same_choice(uint64_t text)
{
	const struct vp_symbolizer_opts opts = {.names_in_memory = 1};
	static uint64_t offsets[2 * FUNC_CNT];
	static char *want[2 * FUNC_CNT];

	new_symbolizer(&opts);
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	for (uint64_t i = 0; i < 2 * FUNC_CNT; i++) {
		offsets[i] = text + i;
		want[i] = strdup(name_of(1, offsets[i]));
	}
	for (int at_once = 0; at_once < 2; at_once++) {
		new_symbolizer(NULL);
		cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
		if (at_once)
			vp_symbolizer_expect(s, 1, offsets, 2 * FUNC_CNT);
		for (int i = 0; i < 2 * FUNC_CNT; i++)
			cr_assert(eq(str, (char *)name_of(1, offsets[i]), want[i]));
	}
	for (int i = 0; i < 2 * FUNC_CNT; i++)
		free(want[i]);
}

Test(filed_names, of_several_the_best_is_found_when_it_is_asked_for)
{
	uint64_t text = make_aliases(100);

	expect_same_choice(text);
	cr_expect(eq(str, (char *)name_of(1, text + 2 * 5),
		     "a_function_with_a_rather_long_name_00005"));
	cr_expect(eq(str, (char *)name_of(1, text + 2 * 7), "short_7"));
	cr_expect(eq(str, (char *)name_of(1, text + 2 * 14 + 1), "shore_14"));
	cr_expect(eq(str, (char *)name_of(1, text + 2 * 15), "short_15"));
}

Test(filed_names, so_many_labels_that_all_names_are_read)
{
	expect_same_choice(make_aliases(FUNC_CNT));
}

Test(filed_names, of_a_thousand_names_one_is_chosen)
{
	fixture_run(&x,
		    "awk 'BEGIN { for (i = 0; i < 25000; i++) printf"
		    " \".globl name_of_rather_many_bytes_for_a_name_%%d\\n"
		    ".type name_of_rather_many_bytes_for_a_name_%%d,@function\\n"
		    "name_of_rather_many_bytes_for_a_name_%%d:\\n\", i, i, i;"
		    " print \"nop\"; for (i = 0; i < 25000; i++)"
		    " printf \".size name_of_rather_many_bytes_for_a_name_%%d,1\\n\", i }' >s &&"
		    " as -o o s && ld -shared -o lib o");
	snprintf(path, sizeof(path), "%s", fixture_path(&x, "lib"));
	uint64_t text = fixture_symbol(path, "name_of_rather_many_bytes_for_a_name_1", 0);

	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_expect(zero(int, strncmp(name_of(1, text), "name_of_rather", 14)));
}
