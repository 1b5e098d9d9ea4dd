/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "string_table.h"

#include "elf_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* So many strings by themselves take as long as ten megabytes at once. */
#define ASKED_MAX_CNT	 4096
#define LARGE_PAGE_BYTES (2U << 20)

/* Faulting twenty megabytes in by pages of four kilobytes takes longer than reading them. */
static void use_large_pages(char *bytes, size_t size)
{
	uintptr_t from =
		((uintptr_t)bytes + LARGE_PAGE_BYTES - 1) & ~(uintptr_t)(LARGE_PAGE_BYTES - 1);
	uintptr_t to = ((uintptr_t)bytes + size) & ~(uintptr_t)(LARGE_PAGE_BYTES - 1);

	if (to > from)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

int string_table_read_all(struct string_table *t)
{
	char *all;
	int err;

	if (t->all)
		return 0;
	all = malloc(t->size + 1);
	if (!all)
		return -ENOMEM;
	use_large_pages(all, t->size);
	err = elf_file_read(t->f, t->offset, all, t->size);
	if (err) {
		free(all);
		return err;
	}
	all[t->size] = '\0';
	t->all = all;
	return 0;
}

void string_table_fini(struct string_table *t)
{
	free(t->all);
	t->all = NULL;
}

/* Whether the whole string is in room then. */
static int get_one(struct string_table *t, uint32_t at, size_t max, char *room, size_t *len)
{
	size_t n = t->size - at < STRING_ROOM ? t->size - at : STRING_ROOM;

	if (n > max)
		n = max;
	if (t->asked_cnt == ASKED_MAX_CNT || elf_file_read(t->f, t->offset + at, room, n))
		return 0;
	t->asked_cnt++;
	*len = strnlen(room, n);
	return *len < n || n == t->size - at || n == max;
}

const char *string_table_get(struct string_table *t, uint32_t at, size_t max, char *room,
			     size_t *len, int *err)
{
	if (!t->all && get_one(t, at, max, room, len))
		return room;
	*err = string_table_read_all(t);
	if (*err)
		return NULL;
	if (max > t->size - at)
		max = t->size - at;
	*len = strnlen(t->all + at, max);
	return t->all + at;
}
