/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "symbolize/demangle.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The result in a static buffer; "-" for none. */
static const char *text(const char *name)
{
	static char buf[1 << 17];
	char *out = demangle(name);

	snprintf(buf, sizeof(buf), "%s", out ? out : "-");
	free(out);
	return buf;
}

#define EXPECT(name, want) cr_expect(eq(str, (char *)text(name), (char *)(want)))

Test(demangle, reads_cxx_names)
{
	EXPECT("_ZN3foo3barEv", "foo::bar()");
	EXPECT("_ZN12_GLOBAL__N_13fooEi", "(anonymous namespace)::foo(int)");
	EXPECT("_Z3fooi.cold", "foo(int) [clone .cold]");
	EXPECT("_ZSt4sortIPiEvT_S1_", "void std::sort<int*>(int*, int*)");
}

Test(demangle, reads_both_rust_schemes)
{
	EXPECT("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	EXPECT("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
	       "core::fmt::Formatter::write_str");
	EXPECT("_ZN4test4main17h0123456789abcdefE.llvm.1234567", "test::main");
	EXPECT("_ZN63_$LT$alloc..string..String$u20$as$u20$core..ops..drop..Drop$GT$4drop17h"
	       "0123456789abcdefE",
	       "<alloc::string::String as core::ops::drop::Drop>::drop");
}

Test(demangle, leaves_plain_names_alone)
{
	EXPECT("main", "-");
	EXPECT("", "-");
	EXPECT("_", "-");
	EXPECT("_Z", "-");
	EXPECT("_R", "-");
	EXPECT("_Zebra", "-");
	EXPECT("_ZN3foo", "-");
	EXPECT("\xff\xfe", "-");
}

/* name of count times one byte between a prefix and a suffix */
static char *repeat(const char *prefix, char c, size_t count, const char *suffix)
{
	size_t n = strlen(prefix);
	char *s = malloc(n + count + strlen(suffix) + 1);

	memcpy(s, prefix, n);
	memset(s + n, c, count);
	strcpy(s + n + count, suffix);
	return s;
}

Test(demangle, nesting_without_end_is_refused)
{
	char *s = repeat("_Z1f", 'P', 200000, "i");

	EXPECT(s, "-");
	free(s);
	s = repeat("_Z1f", 'P', 200000, "");
	EXPECT(s, "-");
	free(s);
}

/* On the stack for long names every one byte of nesting must fit; so fill the length. */
Test(demangle, the_longest_accepted_names_do_not_exhaust_the_stack, .timeout = 60)
{
	static const char *const prefixes[] = {"_Z1f",	 "_ZN",	   "_Z1fX", "_Z1fI",
					       "_Z1fIX", "_RI",	   "_RNv",  "_RY",
					       "_Z",	 "_Z1fDp", "_ZGR",  "_Z1fM1A"};
	static const char bytes[] = "PKRVOGCFNXILJADTSUZEMWYB_0123456789asnclptdovwxi";

	for (size_t p = 0; p < sizeof(prefixes) / sizeof(*prefixes); p++) {
		for (size_t i = 0; bytes[i]; i++) {
			char *s = repeat(prefixes[p], bytes[i], 16300, "i");

			free(demangle(s));
			free(s);
		}
	}
}

/* Pairs of letters nest where single ones do not: F for functions, DT for decltype, … */
Test(demangle, long_names_of_nested_pairs_do_not_exhaust_the_stack, .timeout = 60)
{
	static const char *const units[] = {"FP",   "DT",   "DTng", "ILi",  "XL",  "Dp",
					    "A_",   "PF",   "MF",   "NSt",  "1AI", "J1A",
					    "sZ",   "cvi",  "ngng", "stst", "S_I", "T_P",
					    "LZ1f", "Z1fI", "dtdt", "qu",   "cl",  "nx"};

	for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
		char *s = malloc(17000);
		size_t n = (size_t)sprintf(s, "_Z1f");

		while (n + strlen(units[u]) < 16300)
			n += (size_t)sprintf(s + n, "%s", units[u]);
		free(demangle(s));
		free(s);
	}
}

Test(demangle, long_real_names_are_read)
{
	/* 200 nested namespaces: 2,400 bytes, beyond libiberty's own limit of 1,024 */
	char name[4096] = "_ZN";
	size_t n = 3;

	for (int i = 0; i < 200; i++)
		n += (size_t)sprintf(name + n, "10abcdefghij");
	strcpy(name + n, "Ev");
	cr_expect(eq(sz, strlen(text(name)), 200 * 12));
	name[n] = '\0';
	EXPECT(name, "-");
}

/* Each S_ names a type of twice the length of the one before: 2^60 bytes of output. */
Test(demangle, names_that_spell_terabytes_are_refused_at_once, .timeout = 5)
{
	char name[4096];
	int n = sprintf(name, "_Z1f1AIiiES_IS0_S0_E");

	for (int i = 1; i < 60; i++) {
		char id[3] = {0};
		int v = i; /* base 36, S_ S0_ S1_ … */

		if (v >= 36)
			snprintf(id, sizeof(id), "%c%c", '0' + v / 36,
				 v % 36 < 10 ? '0' + v % 36 : 'A' + v % 36 - 10);
		else
			snprintf(id, sizeof(id), "%c", v < 10 ? '0' + v : 'A' + v - 10);
		n += sprintf(name + n, "S_IS%s_S%s_E", id, id);
	}
	EXPECT(name, "-");
}

/* C<A, B<A, A>, B<B<A, A>, B<A, A>>, …>, which is to be a pack: each is twice what is before it. */
Test(demangle, searching_doubled_back_references_for_a_pack_is_refused, .timeout = 10)
{
	char name[1024];
	int n = sprintf(name, "_Z1fDp1CI1A1BIS0_S0_E");

	for (int i = 2; i < 34; i++) {
		char id = (char)(i < 10 ? '0' + i : 'A' + i - 10);

		n += sprintf(name + n, "S1_IS%c_S%c_E", id, id);
	}
	sprintf(name + n, "E");
	EXPECT(name, "-");
}

Test(demangle, reads_packs)
{
	EXPECT("_Z1fIJiPcEEvDpT_", "void f<int, char*>(int, char*)");
	EXPECT("_GLOBAL__I__Z1fIJiPcEEvDpT_",
	       "global constructors keyed to void f<int, char*>(int, char*)");
}

Test(demangle, random_names_are_survived, .timeout = 30)
{
	static const char *const seeds[] = {
		"_ZNSt6vectorIN5boost3mplI1AEESaIS3_EE9push_backERKS3_",
		"_RNvXs_NtCs1234_7mycrate3fooINtB4_3BarlENtNtCs99_4core3fmt5Debug3fmt",
		"_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
		"_ZZN1A1fIJDpT_EEEvvENKUlvE_clEv",
	};
	unsigned int seed = 4;

	for (int i = 0; i < 40000; i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s", seeds[i % 4]);
		for (int k = rand_r(&seed) % 6; k >= 0; k--) {
			size_t at = 2 + (size_t)rand_r(&seed) % (strlen(seeds[i % 4]) - 2);

			name[at] = (char)(33 + rand_r(&seed) % 94);
		}
		free(demangle(name));
	}
}

static void *demangle_often(void *failed)
{
	for (int i = 0; i < 2000; i++) {
		char *out = demangle(i % 2 ? "_ZN3foo3barEv" : "_RNvCs1234_7mycrate3foo");

		if (!out || strcmp(out, i % 2 ? "foo::bar()" : "mycrate::foo") != 0)
			*(int *)failed = 1;
		free(out);
	}
	return NULL;
}

Test(demangle, threads_do_not_disturb_each_other)
{
	pthread_t t[4];
	int failed[4] = {0};

	for (int i = 0; i < 4; i++)
		cr_assert(zero(int, pthread_create(&t[i], NULL, demangle_often, &failed[i])));
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		cr_expect(zero(int, failed[i]));
	}
}

/* A name of len characters 'a' and then the text, as it is shown; the caller frees it. */
static char *shown(size_t len, const char *text)
{
	char *raw = malloc(len + strlen(text) + 1);

	memset(raw, 'a', len);
	strcpy(raw + len, text);
	return readable_name(raw, true);
}

Test(demangle, names_are_cut_between_characters)
{
	char *whole = shown(READABLE_NAME_MAX_BYTES - 2, "\u00e9");
	char *cut = shown(READABLE_NAME_MAX_BYTES - 4, "\u00e9aaaa");
	char *long_one = shown(60000, "");

	cr_expect(eq(sz, strlen(whole), READABLE_NAME_MAX_BYTES));
	cr_expect(eq(str, whole + READABLE_NAME_MAX_BYTES - 3, (char *)"a\u00e9"));
	cr_expect(eq(str, cut + READABLE_NAME_MAX_BYTES - 5, (char *)"a\u2026"));
	cr_expect(eq(sz, strlen(long_one), READABLE_NAME_MAX_BYTES));
	cr_expect(eq(str, long_one + READABLE_NAME_MAX_BYTES - 4, (char *)"a\u2026"));
	cr_expect(eq(ptr, readable_name(NULL, true), NULL));
	free(whole);
	free(cut);
	free(long_one);
}
