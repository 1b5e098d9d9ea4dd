/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table alone: which symbol wins which address. */
#include "symbolize/symtab.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 0x10000

/* A symbol with its name in place; size 0: none known. */
struct sym {
	const char *name;
	uint64_t start, size;
	int binding, type;
};

static char names[1 << 16];

static struct symtab *build_bounded(const struct sym *s, size_t cnt, uint64_t limit)
{
	struct symtab_builder *b = symtab_builder_new(0);
	struct symtab *t = NULL;
	size_t used = 0;

	for (size_t i = 0; i < cnt; i++) {
		strcpy(names + used, s[i].name);
		used += strlen(s[i].name) + 1;
	}
	int strings = symtab_builder_strings(
		b, &(struct symtab_strings){names, used, .source = 1, .cut_version = 1});
	used = 0;
	for (size_t i = 0; i < cnt; i++) {
		struct symtab_entry e = {
			.start = s[i].start,
			.end = s[i].start + s[i].size,
			.limit = limit,
			.name = (uint32_t)used,
			.strings = (uint8_t)strings,
			.binding = (uint8_t)s[i].binding,
			.type = (uint8_t)s[i].type,
		};
		cr_assert(zero(int, symtab_builder_add(b, &e)));
		used += strlen(s[i].name) + 1;
	}
	cr_assert(zero(int, symtab_builder_finish(b, &t)));
	symtab_builder_free(b);
	return t;
}

#define BUILD(...)                                                                                 \
	({                                                                                         \
		const struct sym syms_[] = {__VA_ARGS__};                                          \
		build_bounded(syms_, sizeof(syms_) / sizeof(*syms_), LIMIT);                       \
	})

/* Name at an address, "" for none. */
static const char *at(const struct symtab *t, uint64_t addr)
{
	struct symtab_hit hit;

	return symtab_find(t, addr, &hit) ? "" : hit.name;
}

#define EXPECT(t, addr, name) cr_expect(eq(str, (char *)at(t, addr), (char *)(name)))

Test(symtab, names_every_byte_of_a_symbol)
{
	struct symtab *t = BUILD({"f", 0x100, 0x20, SYMTAB_GLOBAL, SYMTAB_FUNC});
	struct symtab_hit hit;

	EXPECT(t, 0xff, "");
	EXPECT(t, 0x100, "f");
	EXPECT(t, 0x11f, "f");
	EXPECT(t, 0x120, "");
	cr_assert(zero(int, symtab_find(t, 0x107, &hit)));
	cr_expect(eq(u64, hit.offset, 7));
	cr_expect(eq(u8, hit.source, 1));
	symtab_free(t);
}

Test(symtab, gap_is_not_the_previous_function)
{
	struct symtab *t = BUILD({"f", 0x100, 0x10, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"g", 0x200, 0x10, SYMTAB_GLOBAL, SYMTAB_FUNC});

	EXPECT(t, 0x110, "");
	EXPECT(t, 0x1ff, "");
	EXPECT(t, 0x200, "g");
	symtab_free(t);
}

Test(symtab, an_empty_table_names_nothing)
{
	struct symtab *t = build_bounded(NULL, 0, LIMIT);

	EXPECT(t, 0, "");
	cr_expect(zero(sz, symtab_cnt(t)));
	symtab_free(t);
}

Test(symtab, global_wins_over_weak_over_local)
{
	struct symtab *t = BUILD({"a_local", 0x100, 8, SYMTAB_LOCAL, SYMTAB_FUNC},
				 {"long_weak", 0x100, 8, SYMTAB_WEAK, SYMTAB_FUNC},
				 {"longest_global", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"loc", 0x200, 8, SYMTAB_LOCAL, SYMTAB_FUNC},
				 {"weaker", 0x200, 8, SYMTAB_WEAK, SYMTAB_FUNC});

	EXPECT(t, 0x100, "longest_global");
	EXPECT(t, 0x207, "weaker");
	symtab_free(t);
}

Test(symtab, fewer_underscores_then_shorter_then_first_in_byte_order)
{
	struct symtab *t = BUILD({"__f", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"f_unlocked", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"_f", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"gz", 0x200, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"ga", 0x200, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"gaz", 0x200, 8, SYMTAB_GLOBAL, SYMTAB_FUNC});

	EXPECT(t, 0x100, "f_unlocked");
	EXPECT(t, 0x200, "ga");
	symtab_free(t);
}

Test(symtab, the_winner_does_not_depend_on_the_order_in_the_file)
{
	const struct sym s[] = {{"x1", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				{"x2", 0x100, 16, SYMTAB_GLOBAL, SYMTAB_FUNC},
				{"y", 0x100, 0, SYMTAB_GLOBAL, SYMTAB_NOTYPE}};
	const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (int i = 0; i < 6; i++) {
		struct symtab *t = BUILD(s[order[i][0]], s[order[i][1]], s[order[i][2]]);

		EXPECT(t, 0x100, "x1");
		EXPECT(t, 0x108, "x2"); /* the longer alias has the rest */
		EXPECT(t, 0x110, "");
		symtab_free(t);
	}
}

Test(symtab, an_ifunc_does_not_hide_its_resolver)
{
	struct symtab *t = BUILD({"memcpy", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_IFUNC},
				 {"memcpy_resolver", 0x100, 8, SYMTAB_LOCAL, SYMTAB_FUNC},
				 {"strlen", 0x200, 8, SYMTAB_GLOBAL, SYMTAB_IFUNC});

	EXPECT(t, 0x100, "memcpy_resolver");
	EXPECT(t, 0x200, "strlen");
	symtab_free(t);
}

Test(symtab, a_sizeless_symbol_reaches_to_the_next_one)
{
	struct symtab *t = BUILD({"asm1", 0x100, 0, SYMTAB_GLOBAL, SYMTAB_NOTYPE},
				 {"asm2", 0x140, 0, SYMTAB_LOCAL, SYMTAB_NOTYPE},
				 {"f", 0x180, 0x10, SYMTAB_GLOBAL, SYMTAB_FUNC});

	EXPECT(t, 0x13f, "asm1");
	EXPECT(t, 0x140, "asm2");
	EXPECT(t, 0x17f, "asm2");
	EXPECT(t, 0x190, "");
	symtab_free(t);
}

Test(symtab, a_sizeless_symbol_ends_at_its_limit)
{
	const struct sym s[] = {{"asm1", 0x100, 0, SYMTAB_GLOBAL, SYMTAB_NOTYPE}};
	struct symtab *t = build_bounded(s, 1, 0x120);

	EXPECT(t, 0x11f, "asm1");
	EXPECT(t, 0x120, "");
	symtab_free(t);
}

Test(symtab, a_label_does_not_split_the_function_around_it)
{
	struct symtab *t = BUILD({"f", 0x100, 0x40, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"loop", 0x110, 0, SYMTAB_LOCAL, SYMTAB_NOTYPE},
				 {"g", 0x200, 0x10, SYMTAB_GLOBAL, SYMTAB_FUNC});

	EXPECT(t, 0x110, "f");
	EXPECT(t, 0x13f, "f");
	EXPECT(t, 0x150, ""); /* behind f, still nearest to the label */
	symtab_free(t);
}

Test(symtab, an_outer_function_goes_on_behind_an_inner_one)
{
	struct symtab *t = BUILD({"outer", 0x100, 0x100, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"inner", 0x140, 0x10, SYMTAB_LOCAL, SYMTAB_FUNC});
	struct symtab_hit hit;

	EXPECT(t, 0x13f, "outer");
	EXPECT(t, 0x14f, "inner");
	EXPECT(t, 0x150, "outer");
	EXPECT(t, 0x200, "");
	cr_assert(zero(int, symtab_find(t, 0x150, &hit)));
	cr_expect(eq(u64, hit.offset, 0x50));
	symtab_free(t);
}

Test(symtab, the_later_start_wins_where_functions_overlap)
{
	struct symtab *t = BUILD({"a", 0x100, 0x100, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"b", 0x180, 0x200, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"c", 0x1c0, 0x10, SYMTAB_GLOBAL, SYMTAB_FUNC});

	EXPECT(t, 0x17f, "a");
	EXPECT(t, 0x1c0, "c");
	EXPECT(t, 0x1d0, "b");
	EXPECT(t, 0x37f, "b");
	symtab_free(t);
}

Test(symtab, versions_are_cut_from_names)
{
	struct symtab *t = BUILD({"so_ver@@V2", 0x100, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"so_ver@V1", 0x200, 8, SYMTAB_GLOBAL, SYMTAB_FUNC},
				 {"@", 0x300, 8, SYMTAB_GLOBAL, SYMTAB_FUNC});

	EXPECT(t, 0x100, "so_ver");
	EXPECT(t, 0x200, "so_ver");
	EXPECT(t, 0x300, "@");
	symtab_free(t);
}

Test(symtab, a_string_table_need_not_end_with_a_nul)
{
	struct symtab_builder *b = symtab_builder_new(0);
	struct symtab *t;
	char *text = malloc(5); /* to the byte, for the address sanitizer */

	memcpy(text, "\0abcd", 5);
	symtab_builder_strings(b, &(struct symtab_strings){.base = text, .size = 5});
	symtab_builder_add(b, &(struct symtab_entry){.start = 1, .end = 2, .limit = 9, .name = 3});
	symtab_builder_add(b, &(struct symtab_entry){.start = 3, .end = 4, .limit = 9, .name = 5});
	cr_assert(zero(int, symtab_builder_finish(b, &t)));
	symtab_builder_free(b);
	free(text);
	EXPECT(t, 1, "cd");
	EXPECT(t, 3, "");
	symtab_free(t);
}

Test(symtab, adopted_strings_are_cut_at_versions_and_their_end)
{
	static const char text[] = "\0so_ver@@V2\0@odd\0end";
	struct symtab_builder *b = symtab_builder_new(0);
	char *own = malloc(sizeof(text)), other[] = "other";
	struct symtab *t;

	memcpy(own, text, sizeof(text) - 1);
	own[sizeof(text) - 1] = 'x'; /* the byte to spare */
	int i = symtab_builder_strings(b,
				       &(struct symtab_strings){own, sizeof(text) - 1, 1, 1, NULL});
	int k = symtab_builder_strings(b,
				       &(struct symtab_strings){other, sizeof(other), 2, 0, NULL});
	const struct symtab_entry entries[] = {
		{.start = 1, .end = 2, .limit = 9, .name = 1, .strings = (uint8_t)i},
		{.start = 2, .end = 3, .limit = 9, .name = 12, .strings = (uint8_t)i},
		{.start = 3, .end = 4, .limit = 9, .name = 17, .strings = (uint8_t)i},
		{.start = 4, .end = 5, .limit = 9, .name = 0, .strings = (uint8_t)k},
	};
	for (int n = 0; n < 4; n++)
		cr_assert(zero(int, symtab_builder_add(b, &entries[n])));
	symtab_builder_adopt(b, i);
	cr_assert(zero(int, symtab_builder_finish(b, &t)));
	symtab_builder_free(b);
	EXPECT(t, 1, "so_ver");
	EXPECT(t, 2, "@odd");
	EXPECT(t, 3, "end");
	EXPECT(t, 4, "other");
	symtab_free(t);
}

Test(symtab, adopted_strings_are_freed_without_a_table)
{
	struct symtab_builder *b = symtab_builder_new(0);
	char *own = calloc(1, 8);

	symtab_builder_adopt(
		b, symtab_builder_strings(b, &(struct symtab_strings){own, 7, 1, 1, NULL}));
	symtab_builder_free(b);
}

Test(symtab, a_name_beyond_reason_is_cut)
{
	size_t len = 4 * SYMTAB_NAME_MAX_BYTES;
	struct symtab_builder *b = symtab_builder_new(0);
	char *text = malloc(len);
	struct symtab *t;

	memset(text, 'n', len);
	symtab_builder_strings(b, &(struct symtab_strings){.base = text, .size = len});
	symtab_builder_add(b, &(struct symtab_entry){.start = 1, .end = 2, .limit = 9});
	cr_assert(zero(int, symtab_builder_finish(b, &t)));
	cr_expect(eq(sz, strlen(at(t, 1)), SYMTAB_NAME_MAX_BYTES));
	symtab_builder_free(b);
	symtab_free(t);
	free(text);
}

/* 200,000 symbols that all name the tail of one endless string would copy 13 GB. */
Test(symtab, shared_endless_names_are_refused, .timeout = 20)
{
	size_t len = 1 << 20;
	struct symtab_builder *b = symtab_builder_new(0);
	char *text = malloc(len);
	struct symtab *t = NULL;

	memset(text, 'n', len);
	symtab_builder_strings(b, &(struct symtab_strings){.base = text, .size = len});
	for (uint32_t i = 0; i < 200000; i++)
		symtab_builder_add(b, &(struct symtab_entry){.start = i,
							     .end = i + 1ULL,
							     .limit = UINT32_MAX,
							     .name = i % 4096});
	cr_expect(eq(int, symtab_builder_finish(b, &t), -EFBIG));
	cr_expect(zero(ptr, t));
	symtab_builder_free(b);
	free(text);
}

Test(symtab, addresses_at_the_ends_of_the_range_are_safe)
{
	struct symtab_builder *b = symtab_builder_new(0x1000);
	struct symtab *t;
	struct symtab_hit hit;

	symtab_builder_strings(b, &(struct symtab_strings){.base = "abc", .size = 4});
	symtab_builder_add(b, &(struct symtab_entry){.start = 0, .end = 0x2000, .limit = 0x2000});
	symtab_builder_add(
		b, &(struct symtab_entry){.start = 0x1000, .end = UINT64_MAX, .limit = UINT64_MAX});
	symtab_builder_add(b, &(struct symtab_entry){.start = UINT64_MAX - 1,
						     .end = UINT64_MAX,
						     .limit = UINT64_MAX});
	cr_assert(zero(int, symtab_builder_finish(b, &t)));
	symtab_builder_free(b);
	cr_expect(eq(int, symtab_find(t, 0xfff, &hit), -ENOENT));
	cr_expect(zero(int, symtab_find(t, 0x1000, &hit)));
	cr_expect(eq(int, symtab_find(t, UINT64_MAX, &hit), -ENOENT));
	symtab_free(t);
}

/* The naive answer to the rules in symtab.h, without labels. */
static const struct sym *naive(const struct sym *s, size_t cnt, uint64_t addr)
{
	const struct sym *best = NULL;

	for (size_t i = 0; i < cnt; i++) {
		if (addr < s[i].start || addr >= s[i].start + s[i].size)
			continue;
		if (!best || s[i].start > best->start ||
		    (s[i].start == best->start && s[i].binding > best->binding))
			best = &s[i];
	}
	return best;
}

Test(symtab, agrees_with_the_naive_search_on_random_tables, .timeout = 30)
{
	static const char *const n[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7",
					"s8", "s9", "sa", "sb", "sc", "sd", "se", "sf"};
	unsigned int seed = 7;

	for (int round = 0; round < 500; round++) {
		struct sym s[16];

		for (int i = 0; i < 16; i++) /* at most three at one start, of other binding */
			s[i] = (struct sym){n[i], (uint64_t)(rand_r(&seed) % 32) * 3 + i % 3,
					    1 + (uint64_t)rand_r(&seed) % 40, i % 3, SYMTAB_FUNC};
		for (int i = 0; i < 16; i++)
			for (int k = 0; k < i; k++)
				if (s[k].start == s[i].start)
					s[i].start += 200 + 50 * (uint64_t)i;
		struct symtab *t = build_bounded(s, 16, LIMIT);

		for (uint64_t a = 0; a < 1100; a++) {
			const struct sym *want = naive(s, 16, a);

			cr_assert(eq(str, (char *)at(t, a), (char *)(want ? want->name : "")),
				  "round %d address %lu", round, a);
		}
		symtab_free(t);
	}
}
