/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of a large table, packed to a fifth: a profile asks for a few hundred of the hundred
 * thousand. Blocks of a few kilobytes are compressed by zstd, each for itself but with a sample of
 * all names as the dictionary, so one name costs one small block (8 µs).
 */
#ifndef VP_PACKED_NAMES_H
#define VP_PACKED_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct packed_names;

/* names: strings with their NULs, the last byte is one. NULL: no memory, or too little to gain. */
struct packed_names *packed_names_new(const char *names, size_t size);
void packed_names_free(struct packed_names *p); /* NULL is fine */

/* All memory it takes. */
size_t packed_names_bytes(const struct packed_names *p);

/*
 * The string at an offset in what was packed, cut after max bytes; the caller frees it. NULL: no
 * memory, or the offset is not inside. May be called by several threads at once.
 */
char *packed_names_copy(struct packed_names *p, size_t offset, size_t max);

#endif
