/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows in the kernel's maps, read back by the maps' ids. */
#include "fixture_elf.h"
#include "proc_life.h"
#include "target.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kernel/features.h"
#include "kernel/loader.h"
#include "kernel/shared_maps.h"
#include "model/file_pool.h"
#include "symbolize/vdso_image.h"
#include "unwind/row_store.h"
#include "util/clock.h"

#include "maps.skel.h"

#define WAIT_MS	 20000
#define IDLE_NS	 30000000000ULL
#define NO_LIMIT UINT64_MAX
#define UNIT_NS	 (1ULL << VP_ROW_USED_SHIFT)

/* ---- set-up --------------------------------------------------------------------------------- */

static struct {
	struct vp_shared_maps maps;
	int arrays_fd, files_fd;
	struct vp_row_file *files; /* as the kernel side sees it */
	size_t files_bytes;
	struct vp_row_store *store;
	struct fixture x;
	char exe[512]; /* a file with many rows: this one */
} env;

static void open_store(uint64_t max_bytes)
{
	const struct vp_row_store_opts o = {
		.arrays_fd = env.arrays_fd,
		.files_fd = env.files_fd,
		.max_bytes = max_bytes,
		.idle_ns = IDLE_NS,
	};
	struct vp_err e = {""};

	cr_assert(zero(int, vp_row_store_new(&env.store, &o, &e)), "%s", e.text);
}

static void map_files(void)
{
	const size_t max = bpf_map__max_entries(env.maps.skel->maps.row_files);

	env.files_bytes = (max * sizeof(*env.files) + 4095) & ~4095UL;
	env.files =
		mmap(NULL, env.files_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, env.files_fd, 0);
	cr_assert(env.files != MAP_FAILED);
}

static void set_up(void)
{
	struct vp_err e = {""};
	ssize_t n;

	vp_loader_capture_messages(false);
	cr_assert(zero(int, vp_shared_maps_create(&env.maps, 4096, 16, &e)), "%s", e.text);
	env.arrays_fd = bpf_map__fd(env.maps.skel->maps.row_arrays);
	env.files_fd = bpf_map__fd(env.maps.skel->maps.row_files);
	map_files();
	fixture_new(&env.x);
	n = readlink("/proc/self/exe", env.exe, sizeof(env.exe) - 1);
	cr_assert(gt(long, n, 0));
}

static void close_all(void)
{
	vp_row_store_free(env.store);
	env.store = NULL;
	if (env.files)
		munmap(env.files, env.files_bytes);
	env.files = NULL;
	vp_shared_maps_destroy(&env.maps);
}

static void tear_down(void)
{
	close_all();
	fixture_remove(&env.x);
}

TestSuite(row_store, .init = set_up, .fini = tear_down);

/* By its name, with the identity that it has now. */
static struct vp_mapped_file mapped(const char *path)
{
	struct vp_mapped_file f = {.tgid = (uint32_t)getpid(), .name = path};
	struct stat st;

	if (stat(path, &st))
		return f;
	f.user_dev_major = major(st.st_dev);
	f.user_dev_minor = minor(st.st_dev);
	f.user_ino = st.st_ino;
	f.key.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	return f;
}

static int load(uint32_t file_id, const char *path)
{
	const struct vp_mapped_file f = mapped(path);

	vp_row_store_load(env.store, file_id, &f);
	return vp_row_store_result(env.store, file_id);
}

static struct vp_row_store_stats stats(void)
{
	struct vp_row_store_stats st;

	vp_row_store_get_stats(env.store, &st);
	return st;
}

/* As if the kernel side had last looked up rows of the file so many units ago. */
static void set_age(uint32_t file_id, uint32_t units)
{
	env.files[file_id].used = (uint32_t)(vp_now_ns() >> VP_ROW_USED_SHIFT) - units;
}

/* Of the array in a file's place; 0: none was ever there. */
static uint32_t array_id(uint32_t file_id)
{
	uint32_t id = 0;

	return bpf_map_lookup_elem(env.arrays_fd, &file_id, &id) ? 0 : id;
}

static int open_array(uint32_t file_id)
{
	int fd = bpf_map_get_fd_by_id(array_id(file_id));

	cr_assert(ge(int, fd, 0));
	return fd;
}

static bool is_gone(void *id)
{
	int fd = bpf_map_get_fd_by_id(*(uint32_t *)id);

	if (fd >= 0)
		close(fd);
	return fd < 0;
}

/* The kernel frees maps some time after the last one has let go of them. */
static void expect_gone(uint32_t map_id)
{
	cr_expect(wait_until(is_gone, &map_id, WAIT_MS), "map %u is still there", map_id);
}

static void expect_state(uint32_t file_id, uint32_t state)
{
	cr_expect(eq(u32, env.files[file_id].state, state), "file %u", file_id);
}

/* ---- loading -------------------------------------------------------------------------------- */

static void expect_elements(int fd, const char *expected, uint32_t cnt)
{
	char elem[VP_ROWS_ELEM_BYTES];

	for (uint32_t i = 0; i < cnt; i++) {
		cr_assert(zero(int, bpf_map_lookup_elem(fd, &i, elem)));
		cr_assert(
			zero(int, memcmp(elem, expected + (size_t)i * sizeof(elem), sizeof(elem))),
			"element %u", i);
	}
	cr_expect(ne(int, bpf_map_lookup_elem(fd, &cnt, elem), 0));
}

/* What is in the kernel is `rows`, which are freed. */
static void expect_rows(uint32_t file_id, struct vp_rows *rows)
{
	const struct vp_rows_desc desc = vp_rows_layout(rows);
	char *elems = calloc(desc.elem_cnt, VP_ROWS_ELEM_BYTES);
	struct vp_row_file file;
	int fd = open_array(file_id);

	cr_assert(elems != NULL);
	vp_rows_fill(rows, &desc, elems);
	cr_assert(zero(int, bpf_map_lookup_elem(env.files_fd, &file_id, &file)));
	cr_expect(eq(u32, file.state, VP_ROW_FILE_READY));
	cr_expect(zero(int, memcmp(&file.desc, &desc, sizeof(desc))));
	expect_elements(fd, elems, desc.elem_cnt);
	close(fd);
	free(elems);
	vp_rows_free(rows);
}

Test(row_store, puts_a_files_rows_where_the_kernel_side_looks_for_them)
{
	struct vp_rows *rows;
	int fd = open(env.exe, O_RDONLY | O_CLOEXEC);

	cr_assert(zero(int, vp_rows_compile(&rows, fd)));
	close(fd);
	cr_assert(gt(u32, rows->cnt, 1000));
	open_store(NO_LIMIT);
	expect_state(7, VP_ROW_FILE_UNKNOWN);
	cr_expect(eq(int, vp_row_store_result(env.store, 7), VP_ROW_NOT_ASKED));
	cr_expect(vp_row_store_wants(env.store, 7));
	cr_expect(eq(int, load(7, env.exe), VP_ROWS_OK));
	cr_expect(not(vp_row_store_wants(env.store, 7)));
	cr_expect(eq(u64, stats().row_cnt, rows->cnt));
	expect_rows(7, rows);
	expect_state(6, VP_ROW_FILE_UNKNOWN);
	expect_state(8, VP_ROW_FILE_UNKNOWN);
}

Test(row_store, the_vdso_is_number_0_and_stays)
{
	struct vp_rows *rows;
	size_t size;
	const void *image = vdso_image(&size);

	if (!image)
		cr_skip_test("no vdso");
	cr_assert(zero(int, vp_rows_compile_memory(&rows, image, size)));
	open_store(NO_LIMIT);
	vp_row_store_load_vdso(env.store);
	cr_expect(eq(int, vp_row_store_result(env.store, 0), VP_ROWS_OK));
	set_age(0, 1000000);
	vp_row_store_trim(env.store, vp_now_ns());
	expect_rows(0, rows);
	vp_row_store_load_vdso(env.store);
	cr_expect(eq(u64, stats().load_cnt, 1));
}

/* "memlock: 4096" */
static uint64_t bytes_of_map(int fd)
{
	char path[64], line[128];
	uint64_t bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "memlock:", 8))
			bytes = strtoull(line + 8, NULL, 10);
	}
	if (f)
		fclose(f);
	return bytes;
}

/* Until 6.4 what the kernel says of a map leaves out its own page. */
static uint64_t bytes_left_out(void)
{
	struct vp_features *f;
	bool says_all;

	cr_assert(zero(int, vp_features_new(&f)));
	says_all = vp_features_has_member(f, "bpf_map_ops", "map_mem_usage");
	vp_features_free(f);
	return says_all ? 0 : (uint64_t)sysconf(_SC_PAGESIZE);
}

Test(row_store, counts_the_bytes_that_the_kernel_holds)
{
	uint64_t bytes = 0;

	open_store(NO_LIMIT);
	fixture_text(&env.x, "t.c", "int f(void) { return 1; }\n");
	fixture_run(&env.x, "gcc -shared -o small t.c");
	cr_assert(eq(int, load(1, env.exe), VP_ROWS_OK));
	cr_assert(eq(int, load(2, fixture_path(&env.x, "small")), VP_ROWS_OK));
	for (uint32_t i = 1; i <= 2; i++) {
		int fd = open_array(i);

		bytes += bytes_of_map(fd) + bytes_left_out();
		close(fd);
	}
	cr_expect(eq(u64, stats().bytes, bytes));
	cr_expect(eq(u64, stats().peak_bytes, bytes));
}

#define THREAD_CNT 8
#define SHARED_CNT 20

static void *load_all(void *arg)
{
	for (uint32_t i = 1; i <= SHARED_CNT; i++)
		load(i, env.exe);
	return arg;
}

Test(row_store, what_many_threads_ask_for_at_once_is_loaded_once)
{
	pthread_t th[THREAD_CNT];
	uint64_t one;

	open_store(NO_LIMIT);
	cr_assert(eq(int, load(SHARED_CNT + 1, env.exe), VP_ROWS_OK));
	one = stats().bytes;
	for (int i = 0; i < THREAD_CNT; i++)
		cr_assert(zero(int, pthread_create(&th[i], NULL, load_all, NULL)));
	for (int i = 0; i < THREAD_CNT; i++)
		pthread_join(th[i], NULL);
	cr_expect(eq(u64, stats().load_cnt, SHARED_CNT + 1));
	cr_expect(eq(u64, stats().file_cnt[VP_ROWS_OK], SHARED_CNT + 1));
	cr_expect(eq(u64, stats().bytes, one * (SHARED_CNT + 1)));
	for (uint32_t i = 1; i <= SHARED_CNT; i++) {
		expect_state(i, VP_ROW_FILE_READY);
		cr_expect(ne(u32, array_id(i), 0));
	}
}

Test(row_store, numbers_that_no_file_has_are_ignored)
{
	open_store(NO_LIMIT);
	cr_expect(eq(int, load(UINT32_MAX, env.exe), VP_ROW_NOT_ASKED));
	cr_expect(eq(int, load(65536, env.exe), VP_ROW_NOT_ASKED));
	cr_expect(not(vp_row_store_wants(env.store, 65536)));
	cr_expect(zero(u64, stats().bytes));
	cr_expect(eq(int, load(65535, env.exe), VP_ROWS_OK));
}

Test(row_store, other_maps_are_refused)
{
	const struct vp_row_store_opts o = {
		.arrays_fd = env.files_fd, .files_fd = env.arrays_fd, .max_bytes = 1};
	const struct vp_row_store_opts none = {.arrays_fd = -1, .files_fd = -1};
	struct vp_row_store *s;
	struct vp_err e = {""};

	cr_expect(eq(int, vp_row_store_new(&s, &o, &e), -EINVAL));
	cr_expect(strstr(e.text, "unwind rows") != NULL, "%s", e.text);
	cr_expect(eq(int, vp_row_store_new(&s, &none, &e), -EBADF));
}

/* ---- files without rows --------------------------------------------------------------------- */

struct failures {
	char name[8][256];
	int result[8];
	size_t cnt;
};

static void note_failure(void *ctx, const char *name, int result)
{
	struct failures *f = ctx;

	snprintf(f->name[f->cnt % 8], sizeof(f->name[0]), "%s", name);
	f->result[f->cnt++ % 8] = result;
}

static void write_foreign(void)
{
	size_t size;
	unsigned char *exe = fixture_read(env.exe, &size);

	exe[18] = 0xf3; /* e_machine: RISC-V */
	exe[19] = 0;
	fixture_write(&env.x, "foreign", exe, size);
	free(exe);
}

Test(row_store, files_without_rows_are_told_by_name_and_reason)
{
	static const struct {
		const char *name;
		int result;
	} files[] = {
		{"text", VP_ROWS_NOT_ELF}, {"foreign", VP_ROWS_FOREIGN}, {"bare", VP_ROWS_NO_CFI}};
	struct failures f = {0};

	open_store(NO_LIMIT);
	fixture_text(&env.x, "text", "no ELF file");
	fixture_text(&env.x, "t.c", "int f(void) { return 1; }\n");
	fixture_run(&env.x, "gcc -shared -nostdlib -fno-asynchronous-unwind-tables -o bare t.c");
	fixture_run(&env.x, "objcopy -R .eh_frame -R .eh_frame_hdr bare 2>/dev/null");
	write_foreign();
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect(
			eq(int, load(1 + i, fixture_path(&env.x, files[i].name)), files[i].result));
		expect_state(1 + i, VP_ROW_FILE_NONE);
		cr_expect(not(vp_row_store_wants(env.store, 1 + i)));
		cr_expect(zero(u32, array_id(1 + i)));
	}
	vp_row_store_each_failed(env.store, note_failure, &f);
	cr_assert(eq(sz, f.cnt, 3));
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect(eq(str, f.name[i], (char *)fixture_path(&env.x, files[i].name)));
		cr_expect(eq(int, f.result[i], files[i].result));
		cr_expect(eq(u64, stats().file_cnt[files[i].result], 1));
		cr_expect(ne(str, (char *)vp_row_result_text(f.result[i]), "?"));
	}
	cr_expect(zero(u64, stats().bytes));
}

/* Another process may still have it: asking again can help. */
Test(row_store, what_could_not_be_opened_may_be_asked_for_again)
{
	struct vp_mapped_file f;
	struct failures failed = {0};
	char path[256];

	open_store(NO_LIMIT);
	snprintf(path, sizeof(path), "%s", fixture_path(&env.x, "lib"));
	cr_expect(eq(int, load(1, path), VP_ROW_CANNOT_OPEN));
	expect_state(1, VP_ROW_FILE_UNKNOWN);
	cr_expect(vp_row_store_wants(env.store, 1));

	fixture_run(&env.x, "cp %s lib", env.exe);
	f = mapped(path);
	fixture_run(&env.x, "cp lib lib2 && touch lib2 && mv lib2 lib");
	vp_row_store_load(env.store, 1, &f);
	cr_expect(eq(int, vp_row_store_result(env.store, 1), VP_ROW_OTHER_FILE));
	expect_state(1, VP_ROW_FILE_UNKNOWN);
	vp_row_store_each_failed(env.store, note_failure, &failed);
	cr_expect(eq(sz, failed.cnt, 1));
	cr_expect(eq(str, failed.name[0], path));

	cr_expect(eq(int, load(1, path), VP_ROWS_OK));
	expect_state(1, VP_ROW_FILE_READY);
	failed.cnt = 0;
	vp_row_store_each_failed(env.store, note_failure, &failed);
	cr_expect(zero(sz, failed.cnt));
}

/* ---- leaving -------------------------------------------------------------------------------- */

Test(row_store, frees_what_is_idle_and_loads_it_again_when_asked)
{
	uint32_t freed, kept;
	uint64_t one;

	open_store(NO_LIMIT);
	cr_assert(eq(int, load(1, env.exe), VP_ROWS_OK));
	one = stats().bytes;
	cr_assert(eq(int, load(2, env.exe), VP_ROWS_OK));
	freed = array_id(1);
	kept = array_id(2);
	set_age(1, IDLE_NS / UNIT_NS + 3);
	set_age(2, IDLE_NS / UNIT_NS - 1);
	vp_row_store_trim(env.store, vp_now_ns());
	expect_state(1, VP_ROW_FILE_UNKNOWN);
	expect_state(2, VP_ROW_FILE_READY);
	cr_expect(eq(int, vp_row_store_result(env.store, 1), VP_ROW_FREED));
	cr_expect(eq(u64, stats().bytes, one));
	cr_expect(eq(u64, stats().idle_cnt, 1));
	cr_expect(eq(u32, array_id(2), kept));
	expect_gone(freed);

	cr_expect(vp_row_store_wants(env.store, 1));
	cr_expect(eq(int, load(1, env.exe), VP_ROWS_OK));
	expect_state(1, VP_ROW_FILE_READY);
	cr_expect(eq(u64, stats().bytes, 2 * one));
	/* loaded just now counts as used */
	vp_row_store_trim(env.store, vp_now_ns());
	expect_state(1, VP_ROW_FILE_READY);
	vp_row_store_trim(env.store, vp_now_ns() + 2 * IDLE_NS);
	cr_expect(zero(u64, stats().bytes));
	cr_expect(zero(u64, stats().row_cnt));
}

/* Reopens the store with room for so many files like this one. */
static uint64_t limit_to(unsigned int files)
{
	uint64_t one;

	open_store(NO_LIMIT);
	cr_assert(eq(int, load(1, env.exe), VP_ROWS_OK));
	one = stats().bytes;
	vp_row_store_free(env.store);
	open_store(one * files + one / 2);
	for (uint32_t i = 1; i <= files; i++)
		cr_assert(eq(int, load(i, env.exe), VP_ROWS_OK));
	return one;
}

Test(row_store, the_least_recently_used_make_room)
{
	uint64_t one = limit_to(4);

	set_age(1, 10);
	set_age(2, 30);
	set_age(3, 5);
	set_age(4, 20);
	cr_expect(eq(int, load(5, env.exe), VP_ROWS_OK));
	expect_state(2, VP_ROW_FILE_UNKNOWN);
	cr_expect(eq(int, load(6, env.exe), VP_ROWS_OK));
	expect_state(4, VP_ROW_FILE_UNKNOWN);
	expect_state(1, VP_ROW_FILE_READY);
	expect_state(3, VP_ROW_FILE_READY);
	expect_state(5, VP_ROW_FILE_READY);
	expect_state(6, VP_ROW_FILE_READY);
	cr_expect(eq(u64, stats().evicted_cnt, 2));
	cr_expect(eq(u64, stats().bytes, 4 * one));
	cr_expect(eq(u64, stats().peak_bytes, 4 * one));
	cr_expect(zero(u64, stats().refused_cnt));
}

Test(row_store, a_file_that_would_drive_out_what_is_in_use_is_refused)
{
	uint64_t one = limit_to(2);

	set_age(1, 0);
	cr_expect(eq(int, load(3, env.exe), VP_ROW_NO_ROOM));
	expect_state(1, VP_ROW_FILE_READY);
	expect_state(2, VP_ROW_FILE_READY);
	expect_state(3, VP_ROW_FILE_UNKNOWN);
	cr_expect(eq(int, load(3, env.exe), VP_ROW_NO_ROOM));
	cr_expect(eq(u64, stats().refused_cnt, 2));
	cr_expect(eq(u64, stats().bytes, 2 * one));
	cr_expect(vp_row_store_wants(env.store, 3));
	set_age(1, 3);
	cr_expect(eq(int, load(3, env.exe), VP_ROWS_OK));
	expect_state(1, VP_ROW_FILE_UNKNOWN);
}

Test(row_store, a_file_over_the_limit_has_no_rows_and_drives_out_none)
{
	uint64_t one;

	open_store(NO_LIMIT);
	fixture_text(&env.x, "t.c", "int f(void) { return 1; }\n");
	fixture_run(&env.x, "gcc -shared -o small t.c");
	cr_assert(eq(int, load(1, fixture_path(&env.x, "small")), VP_ROWS_OK));
	one = stats().bytes;
	vp_row_store_free(env.store);
	open_store(one);
	cr_assert(eq(int, load(1, fixture_path(&env.x, "small")), VP_ROWS_OK));
	set_age(1, 100);
	cr_expect(eq(int, load(2, env.exe), VP_ROW_OVER_LIMIT));
	expect_state(2, VP_ROW_FILE_NONE);
	expect_state(1, VP_ROW_FILE_READY);
	cr_expect(not(vp_row_store_wants(env.store, 2)));
	cr_expect(eq(u64, stats().bytes, one));
	cr_expect(eq(u64, stats().refused_cnt, 1));
}

/* ---- by the pool ---------------------------------------------------------------------------- */

Test(row_store, is_filled_by_a_pool_of_threads)
{
	struct vp_mapped_file file, large, vdso = {.name = "[vdso]"};
	struct vp_symbolizer *symbolizer;
	struct vp_file_pool *pool;
	struct vp_err e = {""};
	char path[256];

	open_store(NO_LIMIT);
	snprintf(path, sizeof(path), "%s", fixture_path(&env.x, "large"));
	fixture_run(&env.x, "cp %s large && truncate -s +%llu large", env.exe, VP_FILE_LARGE_BYTES);
	file = mapped(env.exe);
	large = mapped(path);
	cr_assert(zero(int, vp_symbolizer_new(&symbolizer, NULL)));
	cr_assert(zero(int, vp_file_pool_start(&pool, symbolizer, NULL, env.store, &e)), "%s",
		  e.text);
	for (uint32_t i = 1; i <= 10; i++) {
		vp_file_pool_request(pool, VP_FILE_ROWS_AHEAD, i, &file);
		vp_file_pool_request(pool, VP_FILE_ROWS, i, &large);
		vp_file_pool_request(pool, VP_FILE_ROWS_AHEAD, 10 + i, &large);
		vp_file_pool_request(pool, VP_FILE_SYMBOLS, i, &file);
	}
	vp_file_pool_request(pool, VP_FILE_ROWS_AHEAD, VP_FILE_ID_NONE, &vdso);
	cr_expect(zero(sz, vp_file_pool_wait_rows(pool, vp_now_ns() + 20000000000ULL)));
	for (uint32_t i = 0; i <= 20; i++)
		expect_state(i, VP_ROW_FILE_READY);
	cr_expect(eq(u64, stats().load_cnt, 21));
	vp_file_pool_wait(pool);
	vp_file_pool_stop(pool);
	vp_symbolizer_free(symbolizer);
}

/* ---- all at once ---------------------------------------------------------------------------- */

#define ROUNDS	 15
#define FILE_CNT 12

static void *load_in_turns(void *first)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		load(1 + (i * 5 + *(uint32_t *)first) % FILE_CNT, env.exe);
	return NULL;
}

static void *age_and_trim(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		for (uint32_t id = 1; id <= FILE_CNT; id++)
			set_age(id, (i * id) % 8);
		vp_row_store_trim(env.store, vp_now_ns() + (i % 3 ? 0 : IDLE_NS - 2 * UNIT_NS));
	}
	return NULL;
}

Test(row_store, loading_evicting_and_trimming_at_once_keep_the_books)
{
	uint32_t first[] = {1, 4, 7};
	pthread_t th[4];
	uint64_t one = limit_to(5), ready = 0;

	for (int i = 0; i < 3; i++)
		cr_assert(zero(int, pthread_create(&th[i], NULL, load_in_turns, &first[i])));
	cr_assert(zero(int, pthread_create(&th[3], NULL, age_and_trim, NULL)));
	for (int i = 0; i < 4; i++)
		pthread_join(th[i], NULL);
	for (uint32_t i = 1; i <= FILE_CNT; i++) {
		bool loaded = vp_row_store_result(env.store, i) == VP_ROWS_OK;

		expect_state(i, loaded ? VP_ROW_FILE_READY : VP_ROW_FILE_UNKNOWN);
		ready += loaded;
		cr_expect(ne(int, vp_row_store_wants(env.store, i), loaded));
	}
	cr_expect(eq(u64, stats().file_cnt[VP_ROWS_OK], ready));
	cr_expect(eq(u64, stats().bytes, ready * one));
	cr_expect(le(u64, stats().peak_bytes, 5 * one));
	cr_expect(eq(u64, stats().load_cnt, ready + stats().idle_cnt + stats().evicted_cnt));
}

Test(row_store, leaves_nothing_behind)
{
	uint32_t ids[FILE_CNT + 1];
	size_t fds = open_fds();

	limit_to(5);
	for (uint32_t i = 0; i < FILE_CNT; i++) {
		set_age(1 + i % 5, 10);
		load(1 + i, env.exe);
	}
	vp_row_store_load_vdso(env.store);
	for (uint32_t i = 0; i <= FILE_CNT; i++)
		ids[i] = array_id(i);
	vp_row_store_free(env.store);
	env.store = NULL;
	cr_expect(eq(sz, open_fds(), fds));
	close_all();
	for (uint32_t i = 0; i <= FILE_CNT; i++) {
		if (ids[i])
			expect_gone(ids[i]);
	}
}
