/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hostile names on a terminal. */
#include "util/terminal.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static void expect(const char *in, const char *want)
{
	char *got = NULL;
	size_t len;
	FILE *f = open_memstream(&got, &len);

	vp_print_safe(f, in);
	fclose(f);
	cr_expect(eq(str, got, (char *)want));
	free(got);
}

Test(terminal, text_is_left_alone)
{
	expect("std::vector<int>::push_back(int&&)", "std::vector<int>::push_back(int&&)");
	expect("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
	       "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

Test(terminal, control_characters_do_not_reach_it)
{
	expect("a\x1b[31m\x1b]0;title\a\nb\tc\x7f", "a?[31m?]0;title??b?c?");
	expect("c1\xc2\x9b"
	       "31m",
	       "c1?31m");
	expect("bidi\xe2\x80\xae"
	       "x\xe2\x81\xa6y",
	       "bidi?x?y");
	expect("line\xe2\x80\xa8"
	       "x",
	       "line?x");
}

Test(terminal, bytes_that_are_not_utf8_do_not_reach_it)
{
	expect("inv\xff\xfe", "inv??");
	expect("cut\xe2\x82", "cut??");
}
