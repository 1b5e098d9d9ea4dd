/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The very file that was loaded is opened again, or none. */
#include "fixture_elf.h"
#include "symbolize/debug_info.h"
#include "symbolize/symbolizer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_ID 1

static struct fixture x;
static struct vp_symbolizer *s;
static char path[300];

static void new_symbolizer(const struct vp_symbolizer_opts *opts)
{
	vp_symbolizer_free(s);
	cr_assert(zero(int, vp_symbolizer_new(&s, opts)));
}

static void set_up(void)
{
	fixture_new(&x);
	fixture_text(&x, "l.s", ".globl f\n.type f,@function\nf: ret\n.size f,1\n");
	fixture_run(&x, "gcc -shared -nostdlib -o l l.s && cp l other");
	snprintf(path, sizeof(path), "%s", fixture_path(&x, "l"));
	new_symbolizer(NULL);
}

static void tear_down(void)
{
	vp_symbolizer_free(s);
	fixture_remove(&x);
}

TestSuite(file_home, .init = set_up, .fini = tear_down, .timeout = 10);

static uint64_t inode(const char *name)
{
	struct stat st;

	cr_assert(zero(int, stat(name, &st)), "%s", name);
	return st.st_ino;
}

/* Inode of what is opened, or a negative errno. */
static int64_t opened(uint32_t file_id)
{
	struct stat st;
	int fd = vp_symbolizer_open(s, file_id);

	if (fd < 0)
		return fd;
	cr_expect(zero(int, fstat(fd, &st)));
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(eq(int, fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY));
	close(fd);
	return (int64_t)st.st_ino;
}

/* The mapping of a file that this process has mapped, as the kernel would describe it. */
static struct vp_mapped_file mapped(const char *name)
{
	int fd = open(name, O_RDONLY);
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	struct stat st;

	cr_assert(ne(ptr, p, MAP_FAILED));
	cr_assert(zero(int, fstat(fd, &st)));
	close(fd);
	return (struct vp_mapped_file){
		.tgid = (uint32_t)getpid(),
		.start = (uint64_t)(uintptr_t)p,
		.end = (uint64_t)(uintptr_t)p + 4096,
		.name = name,
		.key = {.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL +
				    (uint64_t)st.st_mtim.tv_nsec},
		.user_ino = st.st_ino,
	};
}

static void need_map_files(const struct vp_mapped_file *m)
{
	char link[96];

	snprintf(link, sizeof(link), "/proc/self/map_files/%lx-%lx", m->start, m->end);
	int fd = open(link, O_RDONLY);
	if (fd < 0)
		cr_skip("map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
	close(fd);
}

static void load_mapped(const struct vp_mapped_file *m)
{
	struct vp_file_info info;

	cr_assert(zero(int, vp_symbolizer_load(s, FILE_ID, m)));
	cr_assert(zero(int, vp_symbolizer_file_info(s, FILE_ID, &info)));
	cr_assert(eq(int, info.reason, VP_SYM_OK));
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

Test(file_home, the_file_is_opened_again)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	cr_expect(eq(long, opened(FILE_ID), (int64_t)inode(path)));
}

Test(file_home, a_mapped_file_is_opened_again_by_its_name)
{
	struct vp_mapped_file m = mapped(path);

	need_map_files(&m);
	load_mapped(&m);
	cr_expect(eq(long, opened(FILE_ID), (int64_t)inode(path)));
}

Test(file_home, a_link_is_followed_when_it_is_loaded_not_later)
{
	uint64_t ino = inode(path);

	fixture_run(&x, "ln -s l link");
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, fixture_path(&x, "link"))));
	fixture_run(&x, "ln -sf other link");
	cr_expect(eq(long, opened(FILE_ID), (int64_t)ino));
}

Test(file_home, what_was_not_loaded_is_not_opened)
{
	cr_expect(eq(long, opened(7), -ENOENT));
	cr_assert(zero(int, vp_symbolizer_load_path(s, 8, "/nonexistent")));
	cr_expect(eq(long, opened(8), -ENOENT));
}

Test(file_home, a_replaced_file_is_not_opened)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	fixture_run(&x, "mv other l");
	cr_expect(eq(long, opened(FILE_ID), -ESTALE));
}

Test(file_home, a_file_that_was_written_to_is_not_opened)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	fixture_run(&x, "touch -d '2020-01-01' l");
	cr_expect(eq(long, opened(FILE_ID), -ESTALE));
}

Test(file_home, a_file_of_another_size_is_not_opened)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	fixture_run(&x, "touch -r l when && echo >>l && touch -r when l");
	cr_expect(eq(long, opened(FILE_ID), -ESTALE));
}

Test(file_home, a_fifo_in_its_place_is_not_opened)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	fixture_run(&x, "rm l && mkfifo l");
	cr_expect(eq(long, opened(FILE_ID), -ESTALE));
}

Test(file_home, a_deleted_file_is_gone)
{
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	unlink(path);
	cr_expect(eq(long, opened(FILE_ID), -ENOENT));
}

Test(file_home, one_that_was_deleted_before_it_was_loaded_is_kept_where_that_is_asked_for)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};
	struct vp_mapped_file m = mapped(path);
	struct vp_symbolizer_stats stats;
	uint64_t ino = inode(path);

	need_map_files(&m);
	unlink(path);
	load_mapped(&m);
	cr_expect(eq(long, opened(FILE_ID), -ENOENT));
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(zero(u64, stats.kept_fd_cnt));
	cr_expect(eq(u64, stats.unreachable_cnt, 1));

	new_symbolizer(&opts);
	load_mapped(&m);
	cr_expect(eq(long, opened(FILE_ID), (int64_t)ino));
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(eq(u64, stats.kept_fd_cnt, 1));
}

Test(file_home, one_that_was_replaced_before_it_was_loaded_is_the_mapped_one)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};
	struct vp_mapped_file m = mapped(path);
	uint64_t ino = inode(path);

	need_map_files(&m);
	fixture_run(&x, "mv other l");
	new_symbolizer(&opts);
	load_mapped(&m);
	cr_expect(eq(long, opened(FILE_ID), (int64_t)ino));
}

static void allow_descriptors(rlim_t cnt)
{
	struct rlimit files;

	cr_assert(zero(int, getrlimit(RLIMIT_NOFILE, &files)));
	cr_assert(ge(u64, files.rlim_max, cnt));
	files.rlim_cur = cnt;
	cr_assert(zero(int, setrlimit(RLIMIT_NOFILE, &files)));
}

Test(file_home, one_that_is_deleted_or_replaced_later_is_kept_where_that_is_asked_for)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};
	uint64_t ino = inode(path);

	new_symbolizer(&opts);
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	fixture_run(&x, "mv other l");
	cr_expect(eq(long, opened(FILE_ID), (int64_t)ino));
	unlink(path);
	cr_expect(eq(long, opened(FILE_ID), (int64_t)ino));
}

Test(file_home, a_kept_file_that_was_written_to_is_not_opened)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};

	new_symbolizer(&opts);
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	fixture_run(&x, "echo >>l");
	cr_expect(eq(long, opened(FILE_ID), -ESTALE));
}

Test(file_home, what_no_name_leads_to_takes_the_place_of_others)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};
	struct vp_mapped_file m = mapped(path);
	struct vp_symbolizer_stats stats;
	int before;

	need_map_files(&m);
	allow_descriptors(64); /* 16 may be kept */
	before = descriptors();
	new_symbolizer(&opts);
	for (uint32_t id = 1; id <= 20; id++)
		cr_assert(zero(int, vp_symbolizer_load_path(s, id, fixture_path(&x, "other"))));
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(eq(u64, stats.kept_fd_cnt, 16));
	cr_expect(eq(u64, stats.unkept_cnt, 4));

	unlink(path);
	for (uint32_t id = 21; id <= 38; id++)
		cr_assert(zero(int, vp_symbolizer_load(s, id, &m)));
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(eq(u64, stats.kept_fd_cnt, 16));
	cr_expect(eq(u64, stats.unkept_cnt, 20));
	cr_expect(eq(u64, stats.unreachable_cnt, 2));
	cr_expect(gt(long, opened(21), 0));
	cr_expect(gt(long, opened(1), 0)); /* by its name */
	cr_expect(eq(long, opened(38), -ENOENT));
	new_symbolizer(NULL);
	cr_expect(eq(int, descriptors(), before));
}

static int debug_descriptors(uint32_t file_id)
{
	struct debug_files files;
	int cnt;

	vp_symbolizer_open_debug(s, file_id, &files);
	cnt = (files.debug_fd >= 0) + (files.alt_fd >= 0) + (files.package_fd >= 0);
	debug_files_close(&files);
	return cnt;
}

Test(file_home, debug_files_are_kept_with_the_file_unless_they_are_written_to)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};
	struct vp_symbolizer_stats stats;
	struct vp_file_info info;

	fixture_text(&x, "t.c", "int g(void) { return 1; }\n");
	fixture_run(&x, "gcc -g -shared -o whole t.c && objcopy --only-keep-debug whole d.debug &&"
			" strip -o l whole && objcopy --add-gnu-debuglink=d.debug l &&"
			" cp d.debug l.dwp");
	new_symbolizer(&opts);
	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	cr_assert(zero(int, vp_symbolizer_load_path(s, 2, fixture_path(&x, "other"))));
	cr_assert(zero(int, vp_symbolizer_file_info(s, FILE_ID, &info)));
	cr_expect(eq(int, info.has_debug, 1));
	cr_assert(zero(int, vp_symbolizer_file_info(s, 2, &info)));
	cr_expect(zero(int, info.has_debug));
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(eq(u64, stats.kept_fd_cnt, 4));

	unlink(fixture_path(&x, "d.debug"));
	cr_expect(eq(int, debug_descriptors(FILE_ID), 2));
	fixture_run(&x, "echo >>l.dwp");
	cr_expect(eq(int, debug_descriptors(FILE_ID), 1));
	cr_expect(zero(int, debug_descriptors(2)));
	cr_expect(zero(int, debug_descriptors(7)));
}

Test(file_home, so_many_are_kept_and_all_are_closed_in_the_end)
{
	const struct vp_symbolizer_opts opts = {.keep_files = 1};
	struct vp_mapped_file m = mapped(path);
	struct vp_symbolizer_stats stats;
	int before;

	allow_descriptors(1024);
	before = descriptors();
	need_map_files(&m);
	unlink(path);
	new_symbolizer(&opts);
	for (uint32_t id = 1; id <= 262; id++)
		cr_assert(zero(int, vp_symbolizer_load(s, id, &m)));
	vp_symbolizer_get_stats(s, &stats);
	cr_expect(eq(u64, stats.kept_fd_cnt, 256));
	cr_expect(eq(u64, stats.unreachable_cnt, 6));
	cr_expect(zero(u64, stats.unkept_cnt));
	cr_expect(eq(int, descriptors(), before + 256));
	cr_expect(eq(long, opened(262), -ENOENT));
	new_symbolizer(NULL);
	cr_expect(eq(int, descriptors(), before));
}

Test(file_home, by_default_no_descriptor_is_kept)
{
	int before = descriptors();

	cr_assert(zero(int, vp_symbolizer_load_path(s, FILE_ID, path)));
	cr_expect(eq(int, descriptors(), before));
}
