/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of functions in each of its layouts, written here as Go's linker does. */
#include "symbolize/gopclntab.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 0x401000ULL

struct made {
	unsigned char bytes[512];
	size_t size;
};

static void put(struct made *m, size_t at, uint64_t value, size_t size)
{
	memcpy(m->bytes + at, &value, size);
	if (at + size > m->size)
		m->size = at + size;
}

static void put_header(struct made *m, uint32_t magic, unsigned int ptr_size, uint64_t func_cnt)
{
	memset(m, 0, sizeof(*m));
	put(m, 0, magic, 4);
	put(m, 6, 1, 1);
	put(m, 7, ptr_size, 1);
	put(m, 8, func_cnt, ptr_size);
}

/* Two functions, "main.f" of 0x20 bytes and "main.(*T).g" of 0x10. */
static const char names[] = "\0main.f\0main.(*T).g";
#define NAME_F 1
#define NAME_G 8

/*
 * table: where the functions' list is; entries are of addr_size; functions' own data follow it and
 * begin with an address.
 */
static void put_functions(struct made *m, size_t table, size_t base, unsigned int addr_size,
			  uint64_t text, uint64_t name_at)
{
	size_t data = table + 5 * (size_t)addr_size;

	put(m, table, text, addr_size);
	put(m, table + addr_size, data - base, addr_size);
	put(m, table + 2 * addr_size, text + 0x20, addr_size);
	put(m, table + 3 * addr_size, data + 16 - base, addr_size);
	put(m, table + 4 * addr_size, text + 0x30, addr_size);
	put(m, data, text, addr_size);
	put(m, data + addr_size, name_at + NAME_F, 4);
	put(m, data + 16, text + 0x20, addr_size);
	put(m, data + 16 + addr_size, name_at + NAME_G, 4);
	m->size = data + 32;
}

static void make_1_2(struct made *m, unsigned int ptr_size)
{
	put_header(m, 0xfffffffb, ptr_size, 2);
	put_functions(m, 8 + ptr_size, 0, ptr_size, TEXT, 300);
	memcpy(m->bytes + 300, names, sizeof(names));
	m->size = 300 + sizeof(names);
}

static void make_1_16(struct made *m, unsigned int ptr_size)
{
	put_header(m, 0xfffffffa, ptr_size, 2);
	put(m, 8 + 2 * ptr_size, 100, ptr_size);
	put(m, 8 + 6 * ptr_size, 200, ptr_size);
	memcpy(m->bytes + 100, names, sizeof(names));
	put_functions(m, 200, 200, ptr_size, TEXT, 0);
}

static void make_1_18(struct made *m, uint32_t magic, unsigned int ptr_size)
{
	put_header(m, magic, ptr_size, 2);
	put(m, 8 + 2 * ptr_size, TEXT, ptr_size);
	put(m, 8 + 3 * ptr_size, 100, ptr_size);
	put(m, 8 + 7 * ptr_size, 200, ptr_size);
	memcpy(m->bytes + 100, names, sizeof(names));
	put_functions(m, 200, 200, 4, 0, 0);
}

static void make(struct made *m, int layout, unsigned int ptr_size)
{
	switch (layout) {
	case 0:
		make_1_2(m, ptr_size);
		break;
	case 1:
		make_1_16(m, ptr_size);
		break;
	case 2:
		make_1_18(m, 0xfffffff0, ptr_size);
		break;
	default:
		make_1_18(m, 0xfffffff1, ptr_size);
	}
}

TestSuite(gopclntab, .timeout = 30);

Test(gopclntab, has_every_function_in_every_layout)
{
	for (int i = 0; i < 8; i++) {
		struct gopclntab_func f;
		struct gopclntab t;
		struct made m;

		make(&m, i / 2, i % 2 ? 4 : 8);
		cr_assert(zero(int, gopclntab_open(&t, m.bytes, m.size)), "layout %d", i);
		cr_assert(eq(u64, t.func_cnt, 2));
		cr_assert(zero(int, gopclntab_func(&t, 0, &f)), "layout %d", i);
		cr_expect(eq(u64, f.start, TEXT));
		cr_expect(eq(u64, f.end, TEXT + 0x20));
		cr_expect(eq(str, (char *)m.bytes + f.name, "main.f"));
		cr_assert(zero(int, gopclntab_func(&t, 1, &f)), "layout %d", i);
		cr_expect(eq(u64, f.start, TEXT + 0x20));
		cr_expect(eq(u64, f.end, TEXT + 0x30));
		cr_expect(eq(str, (char *)m.bytes + f.name, "main.(*T).g"));
	}
}

Test(gopclntab, says_where_a_relocation_fills_in_the_text_s_start)
{
	struct gopclntab t;
	struct made m;

	make(&m, 3, 8);
	cr_assert(zero(int, gopclntab_open(&t, m.bytes, m.size)));
	cr_expect(eq(u64, t.text_start, TEXT));
	cr_expect(eq(sz, t.text_start_at, 24));
	make(&m, 1, 8);
	cr_assert(zero(int, gopclntab_open(&t, m.bytes, m.size)));
	cr_expect(zero(sz, t.text_start_at));
}

/* All that is read of it lies inside, however the table is cut; memory tools see to it. */
Test(gopclntab, cut_anywhere_gives_no_byte_behind_the_cut)
{
	for (int i = 0; i < 8; i++) {
		struct made m;

		make(&m, i / 2, i % 2 ? 4 : 8);
		for (size_t size = 0; size < m.size; size++) {
			unsigned char *cut = malloc(size ? size : 1);
			struct gopclntab_func f;
			struct gopclntab t;

			memcpy(cut, m.bytes, size);
			if (!gopclntab_open(&t, cut, size)) {
				for (uint64_t k = 0; k < t.func_cnt; k++) {
					if (!gopclntab_func(&t, k, &f))
						cr_assert(lt(sz, f.name, size));
				}
			}
			free(cut);
		}
	}
}

Test(gopclntab, of_absurd_numbers_is_refused)
{
	struct gopclntab_func f;
	struct gopclntab t;
	struct made m;

	make(&m, 3, 8);
	put(&m, 8, UINT64_MAX, 8); /* functions */
	cr_expect(eq(int, gopclntab_open(&t, m.bytes, m.size), -ENOEXEC));
	make(&m, 3, 8);
	put(&m, 8 + 7 * 8, UINT64_MAX - 4, 8); /* their list */
	cr_expect(eq(int, gopclntab_open(&t, m.bytes, m.size), -ENOEXEC));
	make(&m, 3, 8);
	put(&m, 7, 3, 1); /* pointers of three bytes */
	cr_expect(eq(int, gopclntab_open(&t, m.bytes, m.size), -ENOEXEC));
	make(&m, 3, 8);
	put(&m, 200 + 4, UINT32_MAX, 4); /* a function's data */
	cr_assert(zero(int, gopclntab_open(&t, m.bytes, m.size)));
	cr_expect(eq(int, gopclntab_func(&t, 0, &f), -ENOEXEC));
	cr_expect(zero(int, gopclntab_func(&t, 1, &f)));
	make(&m, 3, 8);
	put(&m, 200 + 8, 0, 4); /* one that ends where it begins */
	cr_assert(zero(int, gopclntab_open(&t, m.bytes, m.size)));
	cr_expect(eq(int, gopclntab_func(&t, 0, &f), -ENOEXEC));
}
