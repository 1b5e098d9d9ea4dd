/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compressed debug sections. */
#ifndef VP_ELF_INFLATE_H
#define VP_ELF_INFLATE_H

#include <stddef.h>
#include <stdint.h>

enum elf_inflate_header {
	ELF_INFLATE_32,	 /* Elf32_Chdr */
	ELF_INFLATE_64,	 /* Elf64_Chdr */
	ELF_INFLATE_GNU, /* .zdebug_*: "ZLIB" and a size */
};

/*
 * Unpacks all of in, a section that begins with that header. 0 and *out, which the caller frees;
 * -ENOEXEC: damaged, -EFBIG, -ENOMEM. Takes no more memory than max bytes, whatever the section
 * claims.
 */
int elf_inflate(const uint8_t *in, size_t in_size, enum elf_inflate_header header, size_t max,
		uint8_t **out, size_t *out_size);

#endif
