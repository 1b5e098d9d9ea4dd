/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "elf_inflate.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

/* elf.h of older C libraries does not know it. */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/*
 * Debug sections unpack to two to ten times their size. What claims to be much more was made to take
 * memory: so that is bounded by what is in the file, but for small ones, which may well repeat.
 */
#define MAX_RATIO   64
#define SMALL_BYTES (1U << 20)

#define GNU_MAGIC "ZLIB"

/* What a section says about itself. */
struct packed {
	uint32_t type; /* ELFCOMPRESS_* */
	uint64_t size; /* unpacked */
	const uint8_t *bytes;
	size_t bytes_cnt;
};

/* Behind a header of so many bytes that says type and size. */
static bool is_packed(struct packed *p, const uint8_t *in, size_t in_cnt, size_t header,
		      uint32_t type, uint64_t size)
{
	*p = (struct packed){
		.type = type,
		.size = size,
		.bytes = in + header,
		.bytes_cnt = in_cnt - header,
	};
	return true;
}

static bool parse_gnu(const uint8_t *in, size_t size, struct packed *p)
{
	const size_t magic = sizeof(GNU_MAGIC) - 1, header = magic + sizeof(p->size);
	uint64_t unpacked;

	if (size < header || memcmp(in, GNU_MAGIC, magic) != 0)
		return false;
	memcpy(&unpacked, in + magic, sizeof(unpacked));
	return is_packed(p, in, size, header, ELFCOMPRESS_ZLIB, be64toh(unpacked));
}

static bool parse_elf64(const uint8_t *in, size_t size, struct packed *p)
{
	Elf64_Chdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, in, sizeof(header));
	return is_packed(p, in, size, sizeof(header), header.ch_type, header.ch_size);
}

static bool parse_elf32(const uint8_t *in, size_t size, struct packed *p)
{
	Elf32_Chdr header;

	if (size < sizeof(header))
		return false;
	memcpy(&header, in, sizeof(header));
	return is_packed(p, in, size, sizeof(header), header.ch_type, header.ch_size);
}

static bool parse(enum elf_inflate_header header, const uint8_t *in, size_t size, struct packed *p)
{
	switch (header) {
	case ELF_INFLATE_GNU:
		return parse_gnu(in, size, p);
	case ELF_INFLATE_64:
		return parse_elf64(in, size, p);
	default:
		return parse_elf32(in, size, p);
	}
}

/* The number of bytes that came out; 0: damaged. */
static size_t unpack(const struct packed *p, uint8_t *out)
{
	uLongf cnt = p->size;

	if (p->type == ELFCOMPRESS_ZSTD) {
		size_t n = ZSTD_decompress(out, p->size, p->bytes, p->bytes_cnt);
		return ZSTD_isError(n) ? 0 : n;
	}
	return uncompress(out, &cnt, p->bytes, p->bytes_cnt) == Z_OK ? cnt : 0;
}

int elf_inflate(const uint8_t *in, size_t in_size, enum elf_inflate_header header, size_t max,
		uint8_t **out, size_t *out_size)
{
	struct packed p;

	if (!parse(header, in, in_size, &p))
		return -ENOEXEC;
	if (p.type != ELFCOMPRESS_ZLIB && p.type != ELFCOMPRESS_ZSTD)
		return -ENOEXEC;
	if (p.size > max)
		return -EFBIG;
	if (!p.size || (p.size > SMALL_BYTES && p.size / MAX_RATIO > p.bytes_cnt))
		return -ENOEXEC;
	*out = malloc(p.size);
	if (!*out)
		return -ENOMEM;
	if (unpack(&p, *out) != p.size) {
		free(*out);
		*out = NULL;
		return -ENOEXEC;
	}
	*out_size = p.size;
	return 0;
}
