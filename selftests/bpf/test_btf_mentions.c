/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kernel/btf_mentions.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

Test(btf_mentions, names_and_their_beginnings)
{
	cr_expect(eq(int, vp_btf_mentions("task_struct"), VP_BTF_WHOLE));
	cr_expect(eq(int, vp_btf_mentions("task_struc"), VP_BTF_BEGINNING));
	cr_expect(eq(int, vp_btf_mentions("ask_struct"), VP_BTF_NOT));
	cr_expect(eq(int, vp_btf_mentions("task_struct_of_nobody"), VP_BTF_NOT));
	/* others begin with it, and it is a name itself */
	cr_expect(eq(int, vp_btf_mentions("bpf_prog"), VP_BTF_WHOLE));
}
