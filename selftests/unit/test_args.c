/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "util/args.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <errno.h>
#include <string.h>

static struct vp_pids pids;

static void tear_down(void)
{
	vp_pids_free(&pids);
}

TestSuite(args, .fini = tear_down);

Test(args, lists_of_pids_add_up_and_name_each_once)
{
	struct vp_err e = {""};

	cr_assert(zero(int, vp_pids_parse(&pids, "7", &e)));
	cr_assert(zero(int, vp_pids_parse(&pids, "8,2147483647,7", &e)));
	cr_assert(eq(sz, pids.cnt, 3));
	cr_expect(eq(int, pids.pid[0], 7));
	cr_expect(eq(int, pids.pid[1], 8));
	cr_expect(eq(int, pids.pid[2], INT32_MAX));
}

Test(args, what_is_no_pid_is_refused_and_quoted)
{
	static const struct {
		char arg[32], item[32];
	} bad[] = {
		{"", "''"},
		{",", "''"},
		{"1,", "''"},
		{",1", "''"},
		{"1,,2", "''"},
		{"0", "'0'"},
		{"-1", "'-1'"},
		{"+1", "'+1'"},
		{" 1", "' 1'"},
		{"1 ", "'1 '"},
		{"1, 2", "' 2'"},
		{"0x10", "'0x10'"},
		{"1a", "'1a'"},
		{"abc", "'abc'"},
		{"2147483648", "'2147483648'"},
		{"1;2", "'1;2'"},
		{"18446744073709551617", "'18446744073709551617'"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct vp_err e = {""};

		cr_expect(eq(int, vp_pids_parse(&pids, bad[i].arg, &e), -EINVAL), "'%s'",
			  bad[i].arg);
		cr_expect(strstr(e.text, bad[i].item) != NULL, "'%s': %s", bad[i].arg, e.text);
	}
}

Test(args, a_very_long_item_is_cut_in_the_message)
{
	static char arg[100000];
	struct vp_err e = {""};

	memset(arg, 'x', sizeof(arg) - 1);
	cr_expect(eq(int, vp_pids_parse(&pids, arg, &e), -EINVAL));
	cr_expect(eq(sz, strlen(e.text), sizeof(e.text) - 1));
}

Test(args, an_error_need_not_be_asked_for)
{
	cr_expect(eq(int, vp_pids_parse(&pids, "x", NULL), -EINVAL));
}

Test(args, sizes_are_megabytes_or_have_a_unit)
{
	uint64_t n = 0;

	cr_expect(zero(int, vp_parse_size("3", &n)));
	cr_expect(eq(u64, n, 3ULL << 20));
	cr_expect(zero(int, vp_parse_size("5K", &n)));
	cr_expect(eq(u64, n, 5ULL << 10));
	cr_expect(zero(int, vp_parse_size("64M", &n)));
	cr_expect(eq(u64, n, 64ULL << 20));
	cr_expect(zero(int, vp_parse_size("2g", &n)));
	cr_expect(eq(u64, n, 2ULL << 30));
	cr_expect(zero(int, vp_parse_size("0", &n)));
	cr_expect(zero(u64, n));

	static const char *const wrong[] = {
		"",   "M",    "-1M", "1.5G", "1MB",	     "1 M",
		" 1", "0x10", "1T",  "1KK",  "17179869184G", "99999999999999999999999"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		cr_expect(eq(int, vp_parse_size(wrong[i], &n), -EINVAL), "%s", wrong[i]);
}

Test(args, numbers_are_whole)
{
	uint64_t n = 0;

	cr_expect(zero(int, vp_parse_u64("0", 10, &n)));
	cr_expect(zero(u64, n));
	cr_expect(zero(int, vp_parse_u64("18446744073709551615", 10, &n)));
	cr_expect(eq(u64, n, UINT64_MAX));
	cr_expect(zero(int, vp_parse_u64("0x7fff", 16, &n)));
	cr_expect(eq(u64, n, 0x7fff));
	cr_expect(zero(int, vp_parse_u64("7fff", 16, &n)));
	cr_expect(eq(u64, n, 0x7fff));
	cr_expect(zero(int, vp_parse_u64("ffffffffff600000", 16, &n)));
	cr_expect(eq(u64, n, 0xffffffffff600000));
	cr_expect(zero(int, vp_parse_u64("0x10", 0, &n)));
	cr_expect(eq(u64, n, 16));

	cr_expect(eq(int, vp_parse_u64("18446744073709551616", 10, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("", 10, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("-1", 10, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("- 1", 16, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64(" 1", 10, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("1 ", 10, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("a", 10, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("0x", 16, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("0xg", 16, &n), -EINVAL));
	cr_expect(eq(int, vp_parse_u64("1.5", 10, &n), -EINVAL));
}
