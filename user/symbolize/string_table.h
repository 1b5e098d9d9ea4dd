/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A string table of a file whose strings are read as they are asked for, or, when many are, all at
 * once: of the twenty megabytes of names that a large library has, its table of symbols needs few.
 */
#ifndef VP_STRING_TABLE_H
#define VP_STRING_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct string_table {
	const struct elf_file *f; /* borrowed */
	uint64_t offset;	  /* in the file; all of the table lies in it */
	size_t size;
	/* zero at first */
	char *all; /* size bytes and a NUL, once they have been read; free with string_table_fini */
	unsigned int asked_cnt;
};

/* Longer strings than that make the table be read as a whole. */
#define STRING_ROOM 1024

/*
 * The string at an offset below size, in room or in the table itself, not always with a NUL behind
 * it. *len is cut at max. NULL: *err is -ENOMEM, or as elf_file_read's.
 */
const char *string_table_get(struct string_table *t, uint32_t at, size_t max, char *room,
			     size_t *len, int *err);

/* Reads all of it if that has not been done. 0, -ENOMEM, or as elf_file_read. */
int string_table_read_all(struct string_table *t);

void string_table_fini(struct string_table *t);

#endif
