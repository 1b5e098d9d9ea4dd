/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Debug information of small programs whose lines are known. */
#include "fixture_elf.h"
#include "symbolize/dwarf_info.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct fixture x;
static struct dwarf_info *d;
static int fd = -1, other_fd = -1;

static void set_up(void)
{
	fixture_new(&x);
}

static void tear_down(void)
{
	dwarf_info_close(d);
	if (fd >= 0)
		close(fd);
	if (other_fd >= 0)
		close(other_fd);
	fixture_remove(&x);
}

TestSuite(dwarf, .init = set_up, .fini = tear_down, .timeout = 60);

/* Labels are where the line of the call is to be found, so that optimizing moves nothing. */
static const char source[] = "static inline int inner(int n) {\n"			  /* 1 */
			     "	asm volatile(\".globl in_inner\\nin_inner: nop\");\n"	  /* 2 */
			     "	return n + 1;\n"					  /* 3 */
			     "}\n"							  /* 4 */
			     "static inline int outer(int n) {\n"			  /* 5 */
			     "	n *= 3;\n"						  /* 6 */
			     "	return inner(n);\n"					  /* 7 */
			     "}\n"							  /* 8 */
			     "__attribute__((noinline)) int whole(int n) {\n"		  /* 9 */
			     "	n += 5;\n"						  /* 10 */
			     "	return outer(n);\n"					  /* 11 */
			     "}\n"							  /* 12 */
			     "int main(int argc, char **argv) { return whole(argc); }\n"; /* 13 */

static void open_with(const char *path, const struct dwarf_opts *opts)
{
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(ge(int, fd, 0));
	cr_assert(zero(int, dwarf_info_open(&d, fd, opts)));
}

static void expect_frame(const struct dwarf_frame *f, const char *function, const char *file,
			 uint32_t line, int inlined)
{
	cr_assert(eq(str, (char *)(f->function ? f->function : ""), (char *)function));
	cr_assert(ne(ptr, (void *)f->file, NULL));
	cr_assert(eq(str, (char *)f->file, (char *)fixture_path(&x, file)));
	cr_assert(eq(u32, f->line, line));
	cr_assert(eq(int, f->inlined, inlined));
}

static void expect_chain(uint64_t addr)
{
	const struct dwarf_frame *f;

	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 3));
	expect_frame(&f[0], "inner", "a.c", 2, 1);
	expect_frame(&f[1], "outer", "a.c", 7, 1);
	expect_frame(&f[2], "whole", "a.c", 11, 0);
}

static const char *build(const char *command)
{
	fixture_text(&x, "a.c", source);
	fixture_run(&x, "%s", command);
	return fixture_path(&x, "a");
}

/* Every one has the same answer. %s: the directory, as compilers would be called from elsewhere. */
static const char *const builds[] = {
	"gcc -O2 -gdwarf-4 $PWD/a.c -o a",
	"gcc -O2 -gdwarf-5 $PWD/a.c -o a",
	"gcc -O2 -gdwarf-5 a.c -o a",
	"gcc -O2 -gdwarf-4 a.c -o a",
	"gcc -O2 -gdwarf-3 a.c -o a",
	"gcc -O3 -gdwarf-5 -gdwarf64 a.c -o a",
	"gcc -O2 -g -no-pie a.c -o a",
	"gcc -O2 -g -static a.c -o a",
	"gcc -O2 -g1 a.c -o a",
	"gcc -O2 -g3 a.c -o a",
	"gcc -O2 -g -ffunction-sections -Wl,--gc-sections a.c -o a",
	"gcc -O2 -g -flto a.c -o a",
	"gcc -O2 -g -fdebug-types-section -gdwarf-4 a.c -o a",
	"gcc -O2 -g -gz=zlib a.c -o a",
	"gcc -O2 -gdwarf-4 -gz=zlib-gnu a.c -o a",
	"gcc -O2 -g a.c -o a && objcopy -R .debug_aranges a",
	"gcc -O2 -g a.c -o b && objcopy --only-keep-debug b a",
	"clang -O2 -gdwarf-4 a.c -o a",
	"clang -O2 -gdwarf-5 a.c -o a",
	"clang -O2 -gdwarf-5 -ffunction-sections a.c -o a",
	"clang -O2 -gline-tables-only a.c -o a",
	"clang -O2 -g -gdwarf-aranges a.c -o a",
	"gcc -O2 -g -shared -fPIC -Wl,-Ttext-segment=0x3000000000 a.c -o a",
	/* not linked: addresses are those in the one section of code */
	"gcc -O2 -gdwarf-4 -c a.c -o a",
	"gcc -O2 -gdwarf-5 -c a.c -o a",
	"gcc -O2 -gdwarf-5 -gz=zlib -c a.c -o a",
	"gcc -O2 -gdwarf-5 -ffunction-sections -c a.c -o a",
	"clang -O2 -gdwarf-4 -c a.c -o a",
	"clang -O2 -gdwarf-5 -ffunction-sections -c a.c -o a",
	"gcc -O2 -g -c a.c -o b && objcopy --only-keep-debug b a",
};

ParameterizedTestParameters(dwarf, has_the_chain_of_any_build)
{
	static int index[sizeof(builds) / sizeof(*builds)];

	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++)
		index[i] = (int)i;
	return cr_make_param_array(int, index, sizeof(index) / sizeof(*index));
}

ParameterizedTest(int *i, dwarf, has_the_chain_of_any_build)
{
	const char *path = build(builds[*i]);

	open_with(path, NULL);
	expect_chain(fixture_symbol(path, "in_inner", 0));
}

/* ---- split units ---- */

static int dwo_cnt;

static int open_dwo(void *ctx, const char *comp_dir, const char *name, uint64_t id)
{
	char path[512];

	(void)ctx;
	cr_assert(ne(u64, id, 0));
	cr_assert(ne(ptr, (void *)comp_dir, NULL));
	dwo_cnt++;
	snprintf(path, sizeof(path), "%s/%s", comp_dir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const char *const split_builds[] = {
	"gcc -O2 -gdwarf-4 -gsplit-dwarf -c a.c && gcc a.o -o a",
	"gcc -O2 -gdwarf-5 -gsplit-dwarf -c a.c && gcc a.o -o a",
	"clang -O2 -gdwarf-4 -gsplit-dwarf -c a.c && clang a.o -o a",
	"clang -O2 -gdwarf-5 -gsplit-dwarf -c a.c && clang a.o -o a",
};

ParameterizedTestParameters(dwarf, reads_split_units)
{
	static int index[] = {0, 1, 2, 3};

	return cr_make_param_array(int, index, sizeof(index) / sizeof(*index));
}

ParameterizedTest(int *i, dwarf, reads_split_units)
{
	const struct dwarf_opts opts = {.open_dwo = open_dwo};
	const char *path = build(split_builds[*i]);

	open_with(path, &opts);
	expect_chain(fixture_symbol(path, "in_inner", 0));
	expect_chain(fixture_symbol(path, "in_inner", 0));
	cr_assert(eq(int, dwo_cnt, 1));
}

ParameterizedTestParameters(dwarf, reads_packages_of_split_units)
{
	static int index[] = {2, 3};

	return cr_make_param_array(int, index, sizeof(index) / sizeof(*index));
}

ParameterizedTest(int *i, dwarf, reads_packages_of_split_units)
{
	const char *path = build(split_builds[*i]);

	fixture_run(&x, "llvm-dwp -e a -o a.dwp && rm a.dwo");
	open_with(path, NULL);
	other_fd = open(fixture_path(&x, "a.dwp"), O_RDONLY | O_CLOEXEC);
	cr_assert(zero(int, dwarf_info_set_package(d, other_fd)));
	expect_chain(fixture_symbol(path, "in_inner", 0));
}

Test(dwarf, has_lines_of_split_units_that_are_missing)
{
	const char *path = build(split_builds[1]);
	const struct dwarf_frame *f;

	open_with(path, NULL);
	cr_assert(eq(sz, dwarf_info_find(d, fixture_symbol(path, "in_inner", 0), &f), 1));
	cr_assert(eq(ptr, (void *)f->function, NULL));
	cr_assert(eq(u32, f->line, 2));
}

/* ---- a supplementary file ---- */

Test(dwarf, follows_references_into_a_supplementary_file)
{
	if (!fixture_try(&x, "command -v dwz"))
		cr_skip_test("needs dwz");
	const char *path =
		build("gcc -O2 -g a.c -o a && sed 's/main/other/; s/in_inner/in2/g; "
		      "s/whole/whole2/' a.c >b.c && "
		      "echo 'int main(void) { return 0; }' >>b.c && gcc -O2 -g b.c -o b && "
		      "dwz -m common a b");
	open_with(path, NULL);
	other_fd = open(fixture_path(&x, "common"), O_RDONLY | O_CLOEXEC);
	cr_assert(zero(int, dwarf_info_set_alt(d, other_fd)));
	expect_chain(fixture_symbol(path, "in_inner", 0));
}

/* ---- functions ---- */

Test(dwarf, finds_functions_inside_of_functions)
{
	const struct dwarf_frame *f;

	fixture_text(&x, "a.c",
		     "int around(int n) {\n"
		     "	__attribute__((noinline)) int within(int m) {\n"
		     "		asm volatile(\".globl in_within\\nin_within: nop\");\n"
		     "		return m * n;\n"
		     "	}\n"
		     "	return within(n) + within(1);\n"
		     "}\n"
		     "int main(int c, char **v) { return around(c); }\n");
	fixture_run(&x, "gcc -O1 -g a.c -o a");
	open_with(fixture_path(&x, "a"), NULL);
	uint64_t addr = fixture_symbol(fixture_path(&x, "a"), "in_within", 0);

	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 1));
	expect_frame(f, "within", "a.c", 3, 0);
}

Test(dwarf, joins_the_cold_piece_of_a_function)
{
	const struct dwarf_frame *f;

	fixture_text(&x, "a.c",
		     "#include <stdlib.h>\n"
		     "__attribute__((cold, noinline)) int note(int n) { return n + 1; }\n"
		     "static inline void give_up(int n) {\n"
		     "	if (note(n)) {\n"
		     "		asm volatile(\".globl in_cold\\nin_cold: nop\");\n"
		     "		abort();\n"
		     "	}\n"
		     "}\n"
		     "__attribute__((noinline)) int hot(int n) {\n"
		     "	if (n > 100)\n"
		     "		give_up(n);\n"
		     "	return n * 3;\n"
		     "}\n"
		     "int main(int c, char **v) { return hot(c); }\n");
	fixture_run(&x, "gcc -O2 -g a.c -o a");
	open_with(fixture_path(&x, "a"), NULL);
	uint64_t addr = fixture_symbol(fixture_path(&x, "a"), "in_cold", 0);
	uint64_t start = fixture_symbol(fixture_path(&x, "a"), "hot.cold", 0);

	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 2));
	expect_frame(&f[0], "give_up", "a.c", 5, 1);
	expect_frame(&f[1], "hot", "a.c", 11, 0);
	cr_assert(eq(u64, f[1].offset, addr - start));
}

Test(dwarf, prefers_linkage_names_and_demangles_on_request)
{
	const struct dwarf_opts opts = {.demangle = true};
	const struct dwarf_frame *f;

	fixture_text(&x, "a.cc",
		     "namespace space { struct T { int method(int); }; }\n"
		     "int space::T::method(int n) { return n + 1; }\n"
		     "int main(int c, char **v) { return space::T().method(c); }\n");
	fixture_run(&x, "g++ -O0 -g a.cc -o a");
	uint64_t addr = fixture_symbol(fixture_path(&x, "a"), "_ZN5space1T6methodEi", 0);

	open_with(fixture_path(&x, "a"), NULL);
	cr_assert(eq(sz, dwarf_info_find(d, addr + 1, &f), 1));
	expect_frame(f, "_ZN5space1T6methodEi", "a.cc", 2, 0);
	cr_assert(eq(u64, f->offset, 1));
	dwarf_info_close(d);
	cr_assert(zero(int, dwarf_info_open(&d, fd, &opts)));
	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 1));
	expect_frame(f, "space::T::method(int)", "a.cc", 2, 0);
}

/*
 * The linker leaves debug information of code that it drops, at address 0 and on: a large function
 * then reaches where another is.
 */
Test(dwarf, takes_no_line_of_code_that_was_dropped)
{
	const struct dwarf_frame *f;

	fixture_text(&x, "a.c",
		     "static volatile int sink;\n"
		     "void dropped(void) {\n"
		     "	asm volatile(\".fill 0x1800, 1, 0x90\");\n"
		     "	sink = 1;\n"
		     "	asm volatile(\".fill 0x1800, 1, 0x90\");\n"
		     "	sink = 2;\n"
		     "}\n"
		     "int main(void) {\n"
		     "	asm volatile(\".fill 0xf00, 1, 0x90\\n.globl in_main\\nin_main: nop\\n\"\n"
		     "		     \".fill 0x3f00, 1, 0x90\");\n"
		     "	return sink;\n"
		     "}\n");
	fixture_run(&x, "gcc -O1 -g -ffunction-sections -Wl,--gc-sections a.c -o a");
	open_with(fixture_path(&x, "a"), NULL);
	uint64_t addr = fixture_symbol(fixture_path(&x, "a"), "in_main", 0);

	cr_assert(gt(u64, addr, 0x1800));
	cr_assert(lt(u64, addr, 0x3000));
	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 1));
	expect_frame(f, "main", "a.c", 9, 0);
}

Test(dwarf, tells_nothing_of_objects_whose_relocations_it_does_not_know)
{
	fixture_text(&x, "a.c", source);
	fixture_run(&x, "gcc -m32 -O2 -g -c a.c -o a");
	fd = open(fixture_path(&x, "a"), O_RDONLY | O_CLOEXEC);
	cr_assert(eq(int, dwarf_info_open(&d, fd, NULL), -ENOEXEC));
	d = NULL;
}

Test(dwarf, knows_nothing_of_what_no_unit_covers)
{
	const char *path = build("gcc -O2 -g a.c -o a");
	const struct dwarf_frame *f;

	open_with(path, NULL);
	cr_assert(eq(sz, dwarf_info_find(d, 0, &f), 0));
	cr_assert(eq(sz, dwarf_info_find(d, UINT64_MAX, &f), 0));
	cr_assert(eq(sz, dwarf_info_find(d, fixture_symbol(path, "_start", 0), &f), 0));
}

Test(dwarf, says_that_there_is_none)
{
	build("gcc -O2 a.c -o a");
	fd = open(fixture_path(&x, "a"), O_RDONLY | O_CLOEXEC);
	cr_assert(eq(int, dwarf_info_open(&d, fd, NULL), -ENOENT));
	d = NULL;
}

/* ---- memory ---- */

#define UNIT_CNT 40

Test(dwarf, answers_the_same_within_any_memory)
{
	const struct dwarf_opts tight = {.max_bytes = 1};
	const struct dwarf_frame *f;
	uint64_t addr[UNIT_CNT], most = 0;
	char name[32];

	fixture_text(&x, "a.c", source);
	fixture_run(&x,
		    "sed -i '/^int main/d' a.c; for i in $(seq %d); do sed \"s/whole/whole$i/; "
		    "s/in_inner/in_inner$i/g\" a.c >u$i.c; gcc -O2 -g -c u$i.c; done; "
		    "echo 'int main(void) { return 0; }' >m.c && gcc -g m.c u*.o -o a",
		    UNIT_CNT);
	open_with(fixture_path(&x, "a"), &tight);
	for (int i = 0; i < UNIT_CNT; i++) {
		snprintf(name, sizeof(name), "in_inner%d", i + 1);
		addr[i] = fixture_symbol(fixture_path(&x, "a"), name, 0);
	}
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < UNIT_CNT; i++) {
			cr_assert(eq(sz, dwarf_info_find(d, addr[i], &f), 3));
			snprintf(name, sizeof(name), "whole%d", i + 1);
			cr_assert(eq(str, (char *)f[2].function, name));
			cr_assert(eq(u32, f[0].line, 2));
			if (!round && dwarf_info_bytes(d) > most)
				most = dwarf_info_bytes(d);
			cr_assert(le(u64, dwarf_info_bytes(d), most));
		}
	}
	dwarf_info_close(d);
	cr_assert(zero(int, dwarf_info_open(&d, fd, NULL)));
	for (int i = 0; i < UNIT_CNT; i++)
		cr_assert(eq(sz, dwarf_info_find(d, addr[i], &f), 3));
	/* it would all have stayed: so the first had to give something back */
	cr_assert(gt(u64, dwarf_info_bytes(d), 2 * most));
}

Test(dwarf, sorting_keeps_each_address_once)
{
	uint64_t addr[100];
	uint32_t order[100];
	char seen[100] = {0};

	open_with(build("gcc -O2 -g a.c -o a"), NULL);
	for (int i = 0; i < 100; i++)
		addr[i] = (uint64_t)(i * 7919 % 100) * 64;
	dwarf_info_sort(d, addr, order, 100);
	for (int i = 0; i < 100; i++)
		seen[order[i]]++;
	for (int i = 0; i < 100; i++)
		cr_assert(eq(int, seen[i], 1));
}

/* ---- bad input ---- */

static void ask_everywhere(uint64_t around)
{
	const struct dwarf_frame *f;

	for (uint64_t at = around < 512 ? 0 : around - 512; at < around + 512; at += 3) {
		size_t cnt = dwarf_info_find(d, at, &f);

		for (size_t i = 0; i < cnt; i++)
			cr_assert(eq(int, f[i].inlined, i + 1 < cnt));
	}
}

static const char *const damaged_builds[] = {
	"gcc -O2 -gdwarf-4 a.c -o a",	"gcc -O2 -gdwarf-5 a.c -o a",
	"clang -O2 -gdwarf-5 a.c -o a", "gcc -O2 -g -gz=zlib a.c -o a",
	"gcc -O2 -g -c a.c -o a",
};

ParameterizedTestParameters(dwarf, survives_damage_anywhere)
{
	static int index[] = {0, 1, 2, 3, 4};

	return cr_make_param_array(int, index, sizeof(index) / sizeof(*index));
}

ParameterizedTest(int *i, dwarf, survives_damage_anywhere)
{
	const char *path = build(damaged_builds[*i]);
	uint64_t around = fixture_symbol(path, "in_inner", 0);
	size_t size;
	unsigned char *bytes = fixture_read(path, &size), *copy = malloc(size);
	size_t from = size > 16384 ? 4096 : sizeof(Elf64_Ehdr); /* code is no matter */
	int opened = 0;

	cr_assert(ne(ptr, copy, NULL));
	srand(1);
	for (int round = 0; round < 3000; round++) {
		memcpy(copy, bytes, size);
		for (int k = 1 + rand() % 4; k; k--)
			copy[from + (size_t)rand() % (size - from)] = (unsigned char)rand();
		if (dwarf_info_open_memory(&d, copy, size, NULL))
			continue;
		opened++;
		ask_everywhere(around);
		dwarf_info_close(d);
	}
	d = NULL;
	cr_assert(gt(int, opened, 1000));
	free(copy);
	free(bytes);
}

Test(dwarf, survives_cut_files)
{
	const char *path = build("gcc -O2 -g a.c -o a");
	uint64_t around = fixture_symbol(path, "in_inner", 0);

	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert(zero(int, dwarf_info_open(&d, fd, NULL)));
	ask_everywhere(around);
	/* while it is open: sections are not where they were */
	cr_assert(zero(int, ftruncate(fd, 8192)));
	dwarf_info_close(d);
	d = NULL;
	fixture_run(&x, "gcc -O2 -g a.c -o a");
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert(zero(int, dwarf_info_open(&d, fd, NULL)));
	cr_assert(zero(int, ftruncate(fd, 8192)));
	ask_everywhere(around);
}

/*
 * A function whose name is said to be in itself and whose sibling is itself, with an inlined call of
 * itself in itself.
 */
static const char loops[] = "	.text\n"
			    "	.globl _start\n"
			    "_start: nop\n"
			    "	nop\n"
			    ".Lend:\n"
			    "	.section .debug_abbrev\n"
			    "	.uleb128 1, 0x11\n	.byte 1\n"
			    "	.uleb128 0x11, 0x1, 0x12, 0x6, 0, 0\n" /* low_pc, high_pc data4 */
			    "	.uleb128 2, 0x2e\n	.byte 1\n"
			    "	.uleb128 0x1, 0x13, 0x31, 0x13, 0x11, 0x1, 0x12, 0x6, 0, 0\n"
			    "	.uleb128 3, 0x1d\n	.byte 1\n"
			    "	.uleb128 0x1, 0x13, 0x31, 0x13, 0x11, 0x1, 0x12, 0x6, 0, 0\n"
			    "	.uleb128 0\n"
			    "	.section .debug_info\n"
			    ".Lcu: .long .Lcuend - .Lversion\n"
			    ".Lversion: .short 4\n"
			    "	.long .debug_abbrev\n"
			    "	.byte 8\n"
			    "	.uleb128 1\n	.quad _start\n	.long .Lend - _start\n"
			    ".Lf:	.uleb128 2\n	.long .Lf - .Lcu, .Lf - .Lcu\n"
			    "	.quad _start\n	.long .Lend - _start\n"
			    ".Li:	.uleb128 3\n	.long .Lf - .Lcu, .Li - .Lcu\n"
			    "	.quad _start\n	.long .Lend - _start\n"
			    "	.byte 0, 0, 0\n"
			    ".Lcuend:\n";

Test(dwarf, goes_round_no_loop)
{
	const struct dwarf_frame *f;

	fixture_text(&x, "a.s", loops);
	fixture_run(&x, "gcc -nostdlib -static a.s -o a");
	open_with(fixture_path(&x, "a"), NULL);
	uint64_t addr = fixture_symbol(fixture_path(&x, "a"), "_start", 0);

	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 2));
	cr_assert(eq(ptr, (void *)f[0].function, NULL));
	cr_assert(eq(ptr, (void *)f[1].function, NULL));
	cr_assert(eq(int, f[0].inlined, 1));
}

/* One function at _start; abbreviation 2 is the function's, which the test gives. */
static void build_hostile(const char *unit_abbrev, const char *function_abbrev,
			  const char *function, const char *more)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "	.text\n	.globl _start\n_start: nop\n	nop\n.Lend:\n"
		 "	.section .debug_abbrev\n.Labbrev:\n%s"
		 "	.uleb128 2, 0x2e\n	.byte 0\n	.uleb128 0x11, 0x1, 0x12, 0x6\n%s"
		 "	.uleb128 0, 0, 0\n"
		 "	.section .debug_info\n"
		 "	.long .Lcuend - .Lversion\n"
		 ".Lversion: .short 4\n	.long .Labbrev\n	.byte 8\n"
		 "	.uleb128 1\n	.quad _start\n	.long .Lend - _start\n"
		 "	.uleb128 2\n	.quad _start\n	.long .Lend - _start\n%s"
		 "	.byte 0, 0\n.Lcuend:\n%s",
		 unit_abbrev, function_abbrev, function, more);
	fixture_text(&x, "a.s", text);
	fixture_run(&x, "gcc -nostdlib -static a.s -o a");
	open_with(fixture_path(&x, "a"), NULL);
}

static const char plain_unit[] = "	.uleb128 1, 0x11\n	.byte 1\n"
				 "	.uleb128 0x11, 0x1, 0x12, 0x6, 0, 0\n";

static const struct dwarf_frame *frame_of_start(void)
{
	const struct dwarf_frame *f;
	uint64_t addr = fixture_symbol(fixture_path(&x, "a"), "_start", 0);

	cr_assert(eq(sz, dwarf_info_find(d, addr, &f), 1));
	return f;
}

Test(dwarf, has_no_name_that_is_outside_of_the_strings)
{
	build_hostile(plain_unit, "	.uleb128 0x3, 0xe\n", "	.long 0xfffffff0\n",
		      "	.section .debug_str\n	.asciz \"name\"\n");
	cr_assert(eq(ptr, (void *)frame_of_start()->function, NULL));
}

Test(dwarf, has_no_name_from_a_reference_outside_of_the_units)
{
	build_hostile(plain_unit, "	.uleb128 0x31, 0x10\n", "	.long 0xfffffff0\n", "");
	cr_assert(eq(ptr, (void *)frame_of_start()->function, NULL));
}

Test(dwarf, cuts_names_of_any_length)
{
	build_hostile(plain_unit, "	.uleb128 0x3, 0xe\n", "	.long 0\n",
		      "	.section .debug_str\n	.fill 64 << 20, 1, 'a'\n");
	const char *name = frame_of_start()->function;

	cr_assert(ne(ptr, (void *)name, NULL));
	cr_assert(le(sz, strlen(name), 65536));
	cr_assert(gt(sz, strlen(name), 1000));
	cr_assert(lt(u64, dwarf_info_bytes(d), 4 << 20));
}

/* DW_FORM_block4 of 4 GB before the name, and a form that says it is itself, again and again. */
Test(dwarf, passes_over_no_more_than_there_is)
{
	build_hostile(plain_unit, "	.uleb128 0x1c, 0x4, 0x3, 0x8\n",
		      "	.long 0xffffffff\n	.asciz \"name\"\n", "");
	cr_assert(eq(ptr, (void *)frame_of_start()->function, NULL));
}

Test(dwarf, follows_no_form_that_is_itself)
{
	build_hostile(plain_unit, "	.uleb128 0x3, 0x16\n", "	.fill 1 << 20, 1, 0x16\n",
		      "");
	cr_assert(eq(ptr, (void *)frame_of_start()->function, NULL));
}

/*
 * A quarter of a million units, each beginning with the last of as many abbreviations: 60 billion
 * of them would be read. The test's timeout tells.
 */
Test(dwarf, reads_a_long_table_for_a_million_units_never)
{
	const struct dwarf_frame *f;

	fixture_text(&x, "a.s",
		     "	.text\n	.globl _start\n_start: nop\n"
		     "	.section .debug_abbrev\n"
		     "	.rept 1 << 18\n	.uleb128 5, 0x34\n	.byte 0, 0, 0\n	.endr\n"
		     "	.uleb128 1, 0x11\n	.byte 1\n	.uleb128 0, 0, 0\n"
		     "	.section .debug_info\n"
		     "	.rept 1 << 18\n	.long 9\n	.short 4\n	.long 0\n"
		     "	.byte 8\n	.uleb128 1, 0\n	.endr\n");
	fixture_run(&x, "gcc -nostdlib -static a.s -o a");
	open_with(fixture_path(&x, "a"), NULL);
	cr_assert(eq(sz, dwarf_info_find(d, 0x401000, &f), 0));
}

Test(dwarf, refuses_what_is_no_elf_file)
{
	fixture_text(&x, "a.c", source);
	fd = open(fixture_path(&x, "a.c"), O_RDONLY | O_CLOEXEC);
	cr_assert(eq(int, dwarf_info_open(&d, fd, NULL), -ENOEXEC));
	d = NULL;
}
