/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * .gnu_debugdata: a small ELF file with the .symtab of functions that are not in .dynsym, packed
 * by xz into the stripped file ("MiniDebugInfo").
 */
#ifndef VP_DEBUGDATA_H
#define VP_DEBUGDATA_H

#include <stddef.h>

/*
 * Unpacks; the caller frees. NULL and *err: -ENOEXEC (damaged), -EFBIG (more than 64 MiB, or a
 * dictionary that big), -ENOMEM.
 */
void *debugdata_unpack(const void *packed, size_t packed_size, size_t *size, int *err);

#endif
