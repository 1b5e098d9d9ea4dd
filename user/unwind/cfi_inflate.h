/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compressed debug sections. */
#ifndef VP_CFI_INFLATE_H
#define VP_CFI_INFLATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Unpacks all of in, a section that begins with an Elf64_Chdr or (gnu_style: .zdebug_*) with
 * "ZLIB" and a size. 0 and *out, which the caller frees; VP_ROWS_BAD_CFI, VP_ROWS_TOO_LARGE,
 * -ENOMEM. Takes no more memory than max bytes, whatever the section claims.
 */
int cfi_inflate(const uint8_t *in, size_t in_size, int gnu_style, size_t max, uint8_t **out,
		size_t *out_size);

#endif
