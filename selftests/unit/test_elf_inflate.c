/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compressed sections: what unpacks, and what a section may cost that only claims to. */
#include "symbolize/elf_inflate.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define TEXT_BYTES 100000
#define MAX	   (256U << 20)

static uint8_t text[TEXT_BYTES];
static uint8_t in[2 * TEXT_BYTES];
static uint8_t *out;
static size_t out_size;

static void set_up(void)
{
	for (size_t i = 0; i < TEXT_BYTES; i++)
		text[i] = (uint8_t)(i * i >> 8);
}

static void done(void)
{
	free(out);
}

TestSuite(elf_inflate, .init = set_up, .fini = done);

static size_t put_header64(uint32_t type, uint64_t size)
{
	const Elf64_Chdr h = {.ch_type = type, .ch_size = size, .ch_addralign = 1};

	memcpy(in, &h, sizeof(h));
	return sizeof(h);
}

static size_t deflated(size_t at, const uint8_t *bytes, size_t cnt)
{
	uLongf size = sizeof(in) - at;

	cr_assert(eq(int, compress2(in + at, &size, bytes, cnt, 9), Z_OK));
	return at + size;
}

static int inflated(enum elf_inflate_header header, size_t size, size_t max)
{
	free(out);
	out = NULL;
	return elf_inflate(in, size, header, max, &out, &out_size);
}

static void expect_text(enum elf_inflate_header header, size_t size)
{
	cr_assert(zero(int, inflated(header, size, MAX)));
	cr_assert(eq(sz, out_size, TEXT_BYTES));
	cr_expect(zero(int, memcmp(out, text, TEXT_BYTES)));
}

Test(elf_inflate, zlib_behind_each_header)
{
	const Elf32_Chdr small = {.ch_type = ELFCOMPRESS_ZLIB, .ch_size = TEXT_BYTES};
	const uint64_t size = htobe64(TEXT_BYTES);

	expect_text(ELF_INFLATE_64,
		    deflated(put_header64(ELFCOMPRESS_ZLIB, TEXT_BYTES), text, TEXT_BYTES));
	memcpy(in, &small, sizeof(small));
	expect_text(ELF_INFLATE_32, deflated(sizeof(small), text, TEXT_BYTES));
	memcpy(in, "ZLIB", 4);
	memcpy(in + 4, &size, sizeof(size));
	expect_text(ELF_INFLATE_GNU, deflated(12, text, TEXT_BYTES));
}

Test(elf_inflate, zstd)
{
	size_t at = put_header64(2, TEXT_BYTES);
	size_t n = ZSTD_compress(in + at, sizeof(in) - at, text, TEXT_BYTES, 3);

	expect_text(ELF_INFLATE_64, at + n);
}

Test(elf_inflate, a_wrong_size_is_damage)
{
	size_t size = deflated(put_header64(ELFCOMPRESS_ZLIB, TEXT_BYTES), text, TEXT_BYTES);

	put_header64(ELFCOMPRESS_ZLIB, TEXT_BYTES - 1);
	cr_expect(eq(int, inflated(ELF_INFLATE_64, size, MAX), -ENOEXEC));
	put_header64(ELFCOMPRESS_ZLIB, TEXT_BYTES + 1);
	cr_expect(eq(int, inflated(ELF_INFLATE_64, size, MAX), -ENOEXEC));
	put_header64(ELFCOMPRESS_ZLIB, TEXT_BYTES);
	cr_expect(eq(int, inflated(ELF_INFLATE_64, size - 1, MAX), -ENOEXEC));
	cr_expect(eq(int, inflated(ELF_INFLATE_64, size, TEXT_BYTES - 1), -EFBIG));
	put_header64(99, TEXT_BYTES);
	cr_expect(eq(int, inflated(ELF_INFLATE_64, size, MAX), -ENOEXEC));
	for (size_t n = 0; n < sizeof(Elf64_Chdr); n++) {
		for (int h = ELF_INFLATE_32; h <= ELF_INFLATE_GNU; h++)
			cr_expect(ne(int, inflated((enum elf_inflate_header)h, n, MAX), 0));
	}
}

/* Nothing but zeros: a hundred kilobytes in the file that would be a hundred megabytes. */
Test(elf_inflate, a_bomb_is_not_unpacked)
{
	const size_t size = 64U << 20;
	uint8_t *zeros = calloc(1, size);
	size_t packed = deflated(put_header64(ELFCOMPRESS_ZLIB, size), zeros, size);

	cr_expect(eq(int, inflated(ELF_INFLATE_64, packed, MAX), -ENOEXEC));
	packed = deflated(put_header64(ELFCOMPRESS_ZLIB, 1 << 20), zeros, 1 << 20);
	cr_expect(zero(int, inflated(ELF_INFLATE_64, packed, MAX)), "a small one is no harm");
	free(zeros);
}
