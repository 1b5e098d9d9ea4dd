/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "fixture_elf.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GAP	vp_sym_reason_text(VP_SYM_GAP)
#define TEXT(n) (0xffffffff81000000ULL + (n))
#define MOD(n)	(0xffffffffc0000000ULL + (n))

static struct fixture x;
static struct vp_symbolizer *s;

static void set_up(void)
{
	fixture_new(&x);
}

static void tear_down(void)
{
	vp_symbolizer_free(s);
	fixture_remove(&x);
}

TestSuite(kallsyms, .init = set_up, .fini = tear_down);

static void open_text(const char *text)
{
	struct vp_symbolizer_opts opts = {
		.kallsyms_path = fixture_text(&x, "kallsyms", text),
		.demangle = 1,
	};

	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
}

/* "name" or "name module" of an address. */
static const char *at(uint64_t addr)
{
	static char text[512];
	struct vp_symbol sym;

	if (vp_symbolizer_kernel(s, addr, &sym))
		return vp_sym_reason_text(sym.reason);
	cr_expect(eq(int, sym.source, VP_SYM_KALLSYMS));
	snprintf(text, sizeof(text), "%s %s", sym.name, sym.module);
	return text;
}

#define EXPECT_AT(addr, want) cr_expect(eq(str, (char *)at(addr), (char *)(want)))

static const char kernel[] = "0000000000000000 A fixed_percpu_data\n"
			     "0000000000001000 A cpu_debug_store\n"
			     "ffffffff81000000 T _stext\n"
			     "ffffffff81000000 T _text\n"
			     "ffffffff81000000 T startup_64\n"
			     "ffffffff81000100 t helper\n"
			     "ffffffff810001f0 t __pfx_do_work\n"
			     "ffffffff81000200 T do_work\n"
			     "ffffffff81000300 W weak_one\n"
			     "ffffffff81000380 T _etext\n"
			     "ffffffff81001000 D some_data\n"
			     "ffffffff81002000 T _sinittext\n"
			     "ffffffff81002000 t init_fn\n"
			     "ffffffff81002040 T _einittext\n"
			     "ffffffffc0000000 t mod_init\t[nf_tables]\n"
			     "ffffffffc0000040 t mod_last\t[nf_tables]\n"
			     "ffffffffc0000080 d mod_data\t[nf_tables]\n"
			     "ffffffffc0100000 t bpf_prog_6deef7357e7b4530_x\t[bpf]\n";

Test(kallsyms, a_symbol_reaches_to_the_next_one)
{
	struct vp_symbol sym;

	open_text(kernel);
	EXPECT_AT(TEXT(0x100), "helper [kernel]");
	EXPECT_AT(TEXT(0x1ef), "helper [kernel]");
	EXPECT_AT(TEXT(0x210), "do_work [kernel]");
	cr_assert(zero(int, vp_symbolizer_kernel(s, TEXT(0x210), &sym)));
	cr_expect(eq(u64, sym.offset, 0x10));
}

Test(kallsyms, function_names_win_over_marks_of_the_text)
{
	open_text(kernel);
	EXPECT_AT(TEXT(0), "startup_64 [kernel]");
	EXPECT_AT(TEXT(0x2000), "init_fn [kernel]");
}

Test(kallsyms, padding_in_front_of_functions_has_no_name)
{
	open_text(kernel);
	EXPECT_AT(TEXT(0x1f0), GAP);
	EXPECT_AT(TEXT(0x1ff), GAP);
}

Test(kallsyms, the_last_function_ends_with_the_text)
{
	open_text(kernel);
	EXPECT_AT(TEXT(0x37f), "weak_one [kernel]");
	EXPECT_AT(TEXT(0x380), GAP);
	EXPECT_AT(TEXT(0x1000), GAP);
	EXPECT_AT(TEXT(0x2040), GAP);
	EXPECT_AT(0x1000, GAP);
}

Test(kallsyms, modules_are_named)
{
	open_text(kernel);
	EXPECT_AT(MOD(0x10), "mod_init [nf_tables]");
	EXPECT_AT(MOD(0x7f), "mod_last [nf_tables]");
	EXPECT_AT(MOD(0x80), GAP);
	EXPECT_AT(MOD(0x100010), "bpf_prog_6deef7357e7b4530_x [bpf]");
	EXPECT_AT(MOD(0x100000 + 0x10000), GAP); /* no program is that long */
}

Test(kallsyms, the_last_symbol_of_a_module_does_not_reach_to_the_next_module)
{
	open_text("ffffffff81000000 T _text\n"
		  "ffffffffc0000000 t a\t[one]\n"
		  "ffffffffc0800000 t b\t[two]\n");
	EXPECT_AT(MOD(0x10), "a [one]");
	EXPECT_AT(MOD(0x700000), GAP);
	EXPECT_AT(MOD(0x800000), "b [two]");
}

Test(kallsyms, hidden_addresses_are_called_hidden)
{
	uint64_t from, to;

	open_text("0000000000000000 T _stext\n0000000000000000 T f\n");
	EXPECT_AT(TEXT(0), vp_sym_reason_text(VP_SYM_HIDDEN));
	cr_expect(eq(int, vp_symbolizer_kernel_bounds(s, &from, &to), -ENOENT));
}

Test(kallsyms, bounds_are_those_of_the_text)
{
	uint64_t from = 0, to = 0;

	open_text(kernel);
	cr_assert(zero(int, vp_symbolizer_kernel_bounds(s, &from, &to)));
	cr_expect(eq(u64, from, TEXT(0)));
	cr_expect(eq(u64, to, TEXT(0x380)));
}

Test(kallsyms, what_cannot_be_read_has_a_reason)
{
	struct vp_symbolizer_opts opts = {.kallsyms_path = "/nonexistent/kallsyms"};

	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
	EXPECT_AT(TEXT(0), vp_sym_reason_text(VP_SYM_CANNOT_OPEN));
	open_text("");
	EXPECT_AT(TEXT(0), vp_sym_reason_text(VP_SYM_NO_SYMBOLS));
	open_text("ffffffff81000000 D only_data\n");
	EXPECT_AT(TEXT(0), vp_sym_reason_text(VP_SYM_NO_SYMBOLS));
}

Test(kallsyms, a_fifo_does_not_hang, .timeout = 5)
{
	struct vp_symbolizer_opts opts = {.kallsyms_path = fixture_path(&x, "fifo")};

	mkfifo(opts.kallsyms_path, 0600);
	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
	EXPECT_AT(TEXT(0), vp_sym_reason_text(VP_SYM_CANNOT_OPEN));
}

Test(kallsyms, odd_lines_are_skipped)
{
	open_text("\n\r\nrubbish\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
		  "zzzzzzzz81000000 T bad\n-ffffffff81000000 T bad\n"
		  "fffffffff81000000 T too_many_digits\n"
		  "ffffffff81000000 T crlf\r\n"
		  "ffffffff81000010 T crlf_mod\t[m]\r\n"
		  "ffffffff81000020 t \xff\xfe\n"
		  "ffffffff81000030 T no_newline");
	EXPECT_AT(TEXT(0), "crlf [kernel]");
	EXPECT_AT(TEXT(0x10), "crlf_mod [m]");
	EXPECT_AT(TEXT(0x20), "\xff\xfe [kernel]");
	EXPECT_AT(TEXT(0x30), "no_newline [kernel]");
}

Test(kallsyms, long_lines_are_survived)
{
	size_t len = 3 << 20;
	char *text = malloc(len + 64);
	int n = sprintf(text, "ffffffff81000000 T ");

	memset(text + n, 'n', len);
	strcpy(text + n + len, "\nffffffff81000010 T f\n");
	open_text(text);
	EXPECT_AT(TEXT(0x10), "f [kernel]");
	free(text);
}

Test(kallsyms, rust_names_in_the_kernel_are_demangled)
{
	open_text("ffffffff81000000 T _text\n"
		  "ffffffff81000010 t _RNvCs1234_7mycrate3foo\n");
	EXPECT_AT(TEXT(0x10), "mycrate::foo [kernel]");
}

Test(kallsyms, names_outlive_a_refresh)
{
	struct vp_symbol before, after;

	open_text("ffffffff81000000 T f\nffffffffc0000000 t g\t[old]\n");
	cr_assert(zero(int, vp_symbolizer_kernel(s, MOD(0), &before)));
	fixture_text(&x, "kallsyms", "ffffffff81000000 T f\nffffffffc0000000 t h\t[new]\n");
	cr_assert(zero(int, vp_symbolizer_kernel_refresh(s)));
	cr_assert(zero(int, vp_symbolizer_kernel(s, MOD(0), &after)));
	cr_expect(eq(str, (char *)before.name, (char *)"g"));
	cr_expect(eq(str, (char *)before.module, (char *)"[old]"));
	cr_expect(eq(str, (char *)after.name, (char *)"h"));
	cr_expect(eq(str, (char *)after.module, (char *)"[new]"));
}

Test(kallsyms, this_kernel_is_named_or_hidden)
{
	uint64_t from, to;
	struct vp_symbol sym;

	cr_assert(zero(int, vp_symbolizer_new(&s, NULL)));
	if (vp_symbolizer_kernel_bounds(s, &from, &to)) {
		cr_expect(ne(int, vp_symbolizer_kernel(s, TEXT(0), &sym), 0));
		cr_expect(eq(int, sym.reason, geteuid() ? VP_SYM_HIDDEN : sym.reason));
		cr_skip("kernel addresses are hidden");
	}
	cr_expect(zero(int, vp_symbolizer_kernel(s, from, &sym)));
	cr_expect(eq(str, (char *)sym.module, (char *)"[kernel]"));
}
