/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names that went through compression are what they were. */
#include "symbolize/packed_names.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_BYTES (2U << 20)

static char *names;
static size_t size;

/* Mangled names as of a program with many instances of few templates; here and there a long one. */
static void make_names(void)
{
	unsigned int n = 0;

	names = malloc(NAMES_BYTES + 1);
	for (size = 0; size < NAMES_BYTES - 20000; n++) {
		size += (size_t)sprintf(names + size, "_ZN5boost6detail%uclass_%xILi%dEE3runEv",
					7 + n % 90, n * 2654435761U, (int)(n % 17)) +
			1;
		if (n % 5000)
			continue;
		memset(names + size, 'a' + (int)(n % 26), 18000);
		size += 18000;
		names[size++] = '\0';
	}
}

static void tear_down(void)
{
	free(names);
}

TestSuite(packed_names, .init = make_names, .fini = tear_down, .timeout = 60);

Test(packed_names, every_name_is_what_it_was)
{
	struct packed_names *p = packed_names_new(names, size);
	size_t cnt = 0;

	cr_assert(ne(ptr, p, NULL));
	for (size_t at = 0; at < size; at += strlen(names + at) + 1, cnt++) {
		char *copy = packed_names_copy(p, at, SIZE_MAX);

		cr_assert(eq(str, copy, names + at));
		free(copy);
	}
	cr_expect(gt(sz, cnt, 10000));
	cr_expect(lt(sz, packed_names_bytes(p), size / 2));
	packed_names_free(p);
}

Test(packed_names, a_name_is_cut_where_it_is_asked_to_be)
{
	struct packed_names *p = packed_names_new(names, size);
	size_t at = strlen(names) + 1; /* the first long one, over several blocks */

	for (size_t max = 1; max < 20000; max += 777) {
		size_t want = max < 18000 ? max : 18000;
		char *copy = packed_names_copy(p, at, max);

		cr_expect(eq(sz, strlen(copy), want));
		cr_expect(zero(int, memcmp(copy, names + at, want)));
		free(copy);
	}
	packed_names_free(p);
}

Test(packed_names, an_offset_behind_the_end_has_no_name)
{
	struct packed_names *p = packed_names_new(names, size);
	char *last = packed_names_copy(p, size - 1, SIZE_MAX);

	cr_expect(eq(str, last, ""));
	free(last);
	cr_expect(eq(ptr, packed_names_copy(p, size, SIZE_MAX), NULL));
	cr_expect(eq(ptr, packed_names_copy(p, SIZE_MAX, SIZE_MAX), NULL));
	packed_names_free(p);
}

Test(packed_names, what_does_not_shrink_or_is_small_is_not_packed)
{
	srandom(1);
	cr_expect(eq(ptr, packed_names_new(names, 1000), NULL));
	for (size_t i = 0; i < size; i++)
		names[i] = (char)random();
	cr_expect(eq(ptr, packed_names_new(names, size), NULL));
}

static void *ask(void *p)
{
	for (size_t at = 0, n = 0; at < size; at += strlen(names + at) + 1, n++) {
		if (n % 13)
			continue;
		char *copy = packed_names_copy(p, at, SIZE_MAX);

		if (!copy || strcmp(copy, names + at) != 0) {
			free(copy);
			return names + at;
		}
		free(copy);
	}
	return NULL;
}

Test(packed_names, several_threads_may_ask)
{
	struct packed_names *p = packed_names_new(names, size);
	pthread_t threads[4];
	void *wrong;

	for (int i = 0; i < 4; i++)
		cr_assert(zero(int, pthread_create(&threads[i], NULL, ask, p)));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &wrong);
		cr_expect(eq(ptr, wrong, NULL));
	}
	packed_names_free(p);
}

/* The memory of libLLVM's table, of which half is names, and all of its names in order. */
static uint64_t read_library(uint64_t pack_bytes, char **text)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1";
	const struct vp_symbolizer_opts opts = {.pack_bytes = pack_bytes, .names_in_memory = 1};
	struct vp_file_info info;
	struct vp_symbolizer *s;
	struct vp_symbol sym;
	size_t size_;
	FILE *f = open_memstream(text, &size_);

	if (access(path, R_OK))
		cr_skip("no such library here");
	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
	cr_assert(zero(int, vp_symbolizer_load_path(s, 1, path)));
	cr_assert(zero(int, vp_symbolizer_file_info(s, 1, &info)));
	for (uint64_t offset = 0; offset < 80U << 20; offset += 4099) {
		if (!vp_symbolizer_file(s, 1, offset, &sym))
			fprintf(f, "%s+%lu\n", sym.name, sym.offset);
	}
	fclose(f);
	vp_symbolizer_free(s);
	return info.bytes;
}

Test(packed_names, when_memory_is_short_a_large_library_takes_half_and_says_the_same)
{
	char *plain, *packed;
	uint64_t plain_bytes = read_library(UINT64_MAX, &plain);
	uint64_t packed_bytes = read_library(1, &packed);

	cr_expect(lt(u64, packed_bytes, plain_bytes / 2));
	cr_expect(gt(sz, strlen(plain), 100000));
	cr_expect(zero(int, strcmp(plain, packed)));
	free(plain);
	free(packed);
}
