/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether the kernel's symbols have to be read again. */
#include "symbolize/kernel_code.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

TestSuite(kernel_code, .timeout = 10);

static uint64_t stamp(const char *modules)
{
	FILE *f = fmemopen((void *)(uintptr_t)modules, strlen(modules), "r");

	cr_assert(ne(ptr, f, NULL));
	uint64_t hash = kernel_code_modules(f);
	fclose(f);
	return hash;
}

#define NFT "nf_tables 303104 12 nft_ct,nft_nat, Live 0xffffffffc0a43000 (E)\n"
#define XFS "xfs 1966080 1 - Live 0xffffffffc0600000\n"

Test(kernel_code, a_module_that_comes_goes_or_moves_is_seen)
{
	const uint64_t both = stamp(NFT XFS);

	cr_expect(eq(u64, stamp(NFT XFS), both));
	cr_expect(ne(u64, stamp(NFT), both));
	cr_expect(ne(u64, stamp(XFS), both));
	cr_expect(ne(u64, stamp(NFT "xfs 1966080 1 - Live 0xffffffffc0700000\n"), both));
	cr_expect(ne(u64, stamp(NFT "zfs 1966080 1 - Live 0xffffffffc0600000\n"), both));
}

Test(kernel_code, who_uses_a_module_does_not_matter)
{
	cr_expect(eq(u64, stamp("nf_tables 303104 0 - Live 0xffffffffc0a43000 (E)\n"), stamp(NFT)));
}

Test(kernel_code, lines_of_another_kind_are_passed_over)
{
	cr_expect(eq(u64, stamp("\n \nxfs\n" XFS "x y z\n"), stamp(XFS)));
}
