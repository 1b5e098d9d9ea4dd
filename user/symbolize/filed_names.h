/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The names of a large table, left where they are: in the string table of their file, which stays
 * open. A profile asks for a few hundred of the hundred thousand, each once. Deleting or replacing
 * the file does not matter; if it is written to, its names are gone, for they could be any.
 */
#ifndef VP_FILED_NAMES_H
#define VP_FILED_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct filed_names;

/*
 * Strings of so many bytes at an offset of a regular file; fd is duplicated. To be made before
 * what refers to the strings is read. NULL: it cannot be done.
 */
struct filed_names *filed_names_new(int fd, uint64_t offset, uint32_t size);
void filed_names_free(struct filed_names *n); /* NULL is fine */

/*
 * The string at an offset in the strings, cut after max bytes; the caller frees it. 0, -ENOMEM,
 * -ESTALE: the file was written to; -EIO. May be called by several threads at once.
 */
int filed_names_copy(const struct filed_names *n, uint32_t offset, size_t max, char **out);

/*
 * Many of them, offsets sorted: those that are close to each other are read at once. out[i] is NULL
 * where filed_names_copy() has an error.
 */
void filed_names_copy_many(const struct filed_names *n, const uint32_t *offsets, size_t cnt,
			   size_t max, char **out);

#endif
