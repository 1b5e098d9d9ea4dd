/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The limit holds, what goes first, and what comes back. */
#include "fixture_elf.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A library of so many functions takes about 40 KiB. */
#define FUNC_CNT    2000
#define TABLE_BYTES (48 << 10)

static struct fixture x;
static struct vp_symbolizer *s;
static uint64_t text; /* offset of the first function in all of them */
static uint64_t max_bytes;

static void limit_to(uint64_t bytes)
{
	const struct vp_symbolizer_opts opts = {.max_bytes = bytes, .pack_bytes = UINT64_MAX};

	max_bytes = bytes;
	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, &opts)));
}

static const char *lib_path(uint32_t id)
{
	char name[16];

	snprintf(name, sizeof(name), "lib%u", id);
	return fixture_path(&x, name);
}

/* DIR/lib1 … libN, one byte a function, whose names tell the library: f01_0, f01_1, … */
static void make_libs(uint32_t cnt)
{
	fixture_run(&x,
		    "for n in $(seq %u); do"
		    " awk -v n=$n 'BEGIN { for (i = 0; i < %d; i++)"
		    " printf \".globl f%%02d_%%d\\n.type f%%02d_%%d,@function\\nf%%02d_%%d: nop\\n"
		    ".size f%%02d_%%d,1\\n\", n, i, n, i, n, i, n, i }' >s &&"
		    " as -o o s && ld -shared -o lib$n o || exit 1; done",
		    cnt, FUNC_CNT);
	text = fixture_symbol(lib_path(1), "f01_0", 0);
}

static struct vp_symbolizer_stats stats(void)
{
	struct vp_symbolizer_stats st;

	vp_symbolizer_get_stats(s, &st);
	cr_expect(le(u64, st.table_bytes + st.fixed_bytes + st.name_bytes, max_bytes));
	return st;
}

static void load(uint32_t id)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, id, lib_path(id))));
	stats();
}

static int has_table(uint32_t id)
{
	struct vp_file_info info;

	cr_assert(zero(int, vp_symbolizer_file_info(s, id, &info)));
	return info.bytes != 0;
}

static const char *name_of(uint32_t id, uint32_t func)
{
	struct vp_symbol sym;

	vp_symbolizer_file(s, id, text + func, &sym);
	stats();
	return sym.name ? sym.name : vp_sym_reason_text(sym.reason);
}

static void expect_named(uint32_t id, uint32_t func)
{
	char want[32];

	snprintf(want, sizeof(want), "f%02u_%u", id, func);
	cr_expect(eq(str, (char *)name_of(id, func), want));
}

#define EXPECT_REASON(id, want)                                                                    \
	cr_expect(eq(str, (char *)name_of(id, 0), (char *)vp_sym_reason_text(want)))

static void set_up(void)
{
	fixture_new(&x);
}

static void tear_down(void)
{
	vp_symbolizer_free(s);
	fixture_remove(&x);
}

TestSuite(symbol_memory, .init = set_up, .fini = tear_down, .timeout = 60);

Test(symbol_memory, what_was_not_asked_for_the_longest_goes_first)
{
	make_libs(3);
	limit_to(2 * TABLE_BYTES + TABLE_BYTES / 2);
	load(1);
	load(2);
	expect_named(2, 0);
	expect_named(1, 0);
	load(3);
	cr_expect(has_table(1));
	cr_expect(not(has_table(2)));
	cr_expect(has_table(3));
	cr_expect(eq(u64, stats().evicted_cnt, 1));
}

Test(symbol_memory, an_evicted_file_is_read_again)
{
	make_libs(2);
	limit_to(TABLE_BYTES + TABLE_BYTES / 2);
	load(1);
	load(2);
	cr_assert(not(has_table(1)));
	expect_named(1, 7);
	cr_expect(has_table(1));
	cr_expect(not(has_table(2)));
	cr_expect(eq(u64, stats().reread_cnt, 1));
	cr_expect(zero(u64, stats().lost_file_cnt));
}

Test(symbol_memory, what_is_known_of_an_evicted_file_stays)
{
	struct vp_file_info info;
	uint64_t offset;

	make_libs(2);
	limit_to(TABLE_BYTES + TABLE_BYTES / 2);
	load(1);
	load(2);
	cr_assert(zero(int, vp_symbolizer_file_info(s, 1, &info)));
	cr_expect(eq(int, info.reason, VP_SYM_OK));
	cr_expect(eq(sz, info.symbol_cnt, FUNC_CNT));
	cr_expect(zero(int, vp_symbolizer_offset_of(s, 1, text, &offset)));
	cr_expect(zero(u64, stats().reread_cnt));
}

Test(symbol_memory, names_outlive_their_table)
{
	make_libs(2);
	limit_to(TABLE_BYTES + TABLE_BYTES / 2);
	load(1);
	const char *name = name_of(1, 3);
	load(2);
	cr_assert(not(has_table(1)));
	cr_expect(eq(str, (char *)name, (char *)"f01_3"));
	cr_expect(eq(ptr, (void *)name_of(1, 3), (void *)name));
}

Test(symbol_memory, an_evicted_file_that_is_gone_is_said_to_be)
{
	make_libs(2);
	limit_to(TABLE_BYTES + TABLE_BYTES / 2);
	load(1);
	load(2);
	unlink(lib_path(1));
	EXPECT_REASON(1, VP_SYM_GONE);
	cr_expect(eq(u64, stats().lost_file_cnt, 1));
	cr_expect(eq(u64, stats().file_cnt[VP_SYM_GONE], 1));
	cr_expect(eq(u64, stats().file_cnt[VP_SYM_OK], 1));
}

Test(symbol_memory, an_evicted_file_that_was_replaced_is_not_believed)
{
	make_libs(3);
	limit_to(TABLE_BYTES + TABLE_BYTES / 2);
	load(1);
	load(2);
	fixture_run(&x, "mv lib3 lib1");
	EXPECT_REASON(1, VP_SYM_GONE);
}

/* As a process has it mapped of which the name is gone. */
static void load_deleted(uint32_t id)
{
	struct stat st;
	int fd = open(lib_path(id), O_RDONLY);
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

	cr_assert(ne(ptr, p, MAP_FAILED));
	cr_assert(zero(int, fstat(fd, &st)));
	close(fd);
	unlink(lib_path(id));
	cr_assert(zero(int,
		       vp_symbolizer_load(s, id,
					  &(struct vp_mapped_file){
						  .tgid = (uint32_t)getpid(),
						  .start = (uint64_t)(uintptr_t)p,
						  .end = (uint64_t)(uintptr_t)p + 4096,
						  .name = lib_path(id),
						  .key = {.mtime_ns = (uint64_t)st.st_mtim.tv_sec *
									      1000000000ULL +
								      (uint64_t)st.st_mtim.tv_nsec},
						  .user_ino = st.st_ino,
					  })));
	if (!has_table(id))
		cr_skip("map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
}

Test(symbol_memory, what_cannot_be_read_again_goes_last)
{
	make_libs(4);
	limit_to(2 * TABLE_BYTES + TABLE_BYTES / 2);
	load_deleted(1);
	for (uint32_t id = 2; id <= 4; id++) {
		load(id);
		expect_named(id, 1);
	}
	expect_named(1, 1);
	cr_expect(zero(u64, stats().lost_file_cnt));
}

Test(symbol_memory, when_there_is_nothing_else_it_does_go_and_is_counted)
{
	make_libs(2);
	limit_to(TABLE_BYTES + TABLE_BYTES / 2);
	load_deleted(1);
	load_deleted(2);
	EXPECT_REASON(1, VP_SYM_OVER_LIMIT);
	expect_named(2, 1);
	cr_expect(eq(u64, stats().lost_file_cnt, 1));
	cr_expect(eq(u64, stats().file_cnt[VP_SYM_OVER_LIMIT], 1));
}

Test(symbol_memory, a_table_beyond_the_limit_is_refused)
{
	make_libs(1);
	limit_to(TABLE_BYTES / 2);
	load(1);
	EXPECT_REASON(1, VP_SYM_OVER_LIMIT);
	cr_expect(eq(u64, stats().lost_file_cnt, 1));
	cr_expect(zero(u64, stats().evicted_cnt));
}

Test(symbol_memory, names_in_use_count_and_are_lost_when_they_fill_it)
{
	uint32_t named = 0;

	make_libs(1);
	limit_to(2 * TABLE_BYTES);
	load(1);
	for (uint32_t i = 0; i < FUNC_CNT; i++) {
		char want[32];
		const char *name = name_of(1, i);

		snprintf(want, sizeof(want), "f01_%u", i);
		named += !strcmp(name, want);
		cr_expect(name[0] != 'f' || !strcmp(name, want));
	}
	cr_expect(gt(u32, named, 100));
	cr_expect(lt(u32, named, FUNC_CNT));
	cr_expect(gt(u64, stats().name_bytes, 0));
	cr_expect(gt(u64, stats().lost_name_cnt + stats().lost_file_cnt, 0));
}

Test(symbol_memory, many_files_under_a_small_limit_keep_their_names)
{
	const uint32_t cnt = 60;

	make_libs(cnt);
	limit_to(6 * TABLE_BYTES);
	for (uint32_t id = 1; id <= cnt; id++)
		load(id);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t id = 1; id <= cnt; id++)
			expect_named(id, (id * 31 + round) % FUNC_CNT);
	}
	cr_expect(gt(u64, stats().evicted_cnt, cnt));
	cr_expect(zero(u64, stats().lost_file_cnt + stats().lost_name_cnt));
}

/* ---- threads ---- */

#define THREAD_LIBS 8

static int wrong;

static void *ask(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;

	for (int i = 0; i < 300; i++) {
		uint32_t id = 1 + (uint32_t)rand_r(&seed) % THREAD_LIBS;
		uint32_t func = (uint32_t)rand_r(&seed) % 50;
		struct vp_symbol sym;
		char want[32];

		snprintf(want, sizeof(want), "f%02u_%u", id, func);
		if (vp_symbolizer_file(s, id, text + func, &sym) || strcmp(sym.name, want) != 0)
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *load_more(void *arg)
{
	char path[300];

	(void)arg;
	snprintf(path, sizeof(path), "%s/lib1", x.dir);
	for (uint32_t id = 100; id < 140; id++) {
		if (vp_symbolizer_load_path(s, id, path))
			__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

Test(symbol_memory, names_are_right_while_others_load_and_evict)
{
	unsigned int seeds[4] = {1, 2, 3, 4};
	pthread_t thread[5];

	make_libs(THREAD_LIBS);
	limit_to(6 * TABLE_BYTES);
	for (uint32_t id = 1; id <= THREAD_LIBS; id++)
		load(id);
	for (int i = 0; i < 4; i++)
		cr_assert(zero(int, pthread_create(&thread[i], NULL, ask, &seeds[i])));
	cr_assert(zero(int, pthread_create(&thread[4], NULL, load_more, NULL)));
	for (int i = 0; i < 5; i++)
		pthread_join(thread[i], NULL);
	cr_expect(zero(int, wrong));
	cr_expect(gt(u64, stats().reread_cnt, 0));
}
