/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file's debug information as it is opened for commands. */
#include "fixture_elf.h"
#include "symbolize/debug_info.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct fixture x;
static struct debug_finder *finder;
static struct debug_info *d;

static void set_up(void)
{
	fixture_new(&x);
	cr_assert(zero(int, debug_finder_new(&finder, NULL)));
}

static void tear_down(void)
{
	debug_info_close(d);
	debug_finder_free(finder);
	fixture_remove(&x);
}

TestSuite(debug_info, .init = set_up, .fini = tear_down);

/* fd is that of the last file opened. */
static int fd;

static int open_info(const char *path)
{
	const struct debug_origin at = {.path = path};

	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(ge(int, fd, 0));
	return debug_info_open(&d, fd, NULL, finder, &at, true);
}

static void expect_closed(void)
{
	cr_expect(eq(int, fcntl(fd, F_GETFD), -1));
	cr_expect(eq(int, errno, EBADF));
}

Test(debug_info, what_is_no_elf_file_is_closed)
{
	cr_expect(eq(int, open_info(fixture_text(&x, "t", "no ELF file\n")), -ENOEXEC));
	cr_expect(zero(ptr, d));
	expect_closed();
}

Test(debug_info, a_file_without_any_is_open_all_the_same)
{
	const char *path = fixture_path(&x, "lib.so");
	const uint64_t vaddrs[3] = {3, 1, 2};
	const struct dwarf_frame *frames;
	uint32_t order[3];

	fixture_text(&x, "t.c", "int f(void) { return 1; }\n");
	fixture_run(&x, "gcc -shared -o lib.so t.c");
	cr_assert(zero(int, open_info(path)));
	cr_expect(not(debug_info_is_there(d)));
	cr_expect(gt(sz, debug_info_elf(d)->exec_cnt, 0));
	cr_expect(zero(sz, debug_info_find(d, fixture_symbol(path, "f", 0), &frames)));
	debug_info_sort(d, vaddrs, order, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect(eq(u32, order[i], i));
	debug_info_close(d);
	d = NULL;
	expect_closed();
}

static const char *named(const char *function, uint64_t offset, bool inlined, const char *symbol,
			 uint64_t symbol_offset)
{
	const struct dwarf_frame f = {.function = function, .offset = offset, .inlined = inlined};
	const struct vp_symbol sym = {.name = symbol, .offset = symbol_offset};

	return debug_info_named(&f, &sym).function;
}

#define EXPECT_NAMED(want, ...) cr_expect(eq(str, (char *)named(__VA_ARGS__), want))

Test(debug_info, functions_are_called_as_their_symbols_inlined_calls_are_not)
{
	EXPECT_NAMED("f.cold", "f", 4, false, "f.cold", 4);
	EXPECT_NAMED("f", "f", 4, false, NULL, 0);
	EXPECT_NAMED("g", NULL, 4, false, "g", 10);
	/* a symbol that began before the function is not the function's */
	EXPECT_NAMED("f", "f", 4, false, "before", 5);
	/* one that begins in it is a part of it with a name */
	EXPECT_NAMED("f.part", "f", 4, false, "f.part", 2);
	EXPECT_NAMED("f", "f", 4, true, "caller", 4);
}
