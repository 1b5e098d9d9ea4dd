/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The walk over task_vma: which file a mapping is of, and what it is called. */
#include "procmaps.h"
#include "target.h"
#include "walker_env.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

TestSuite(walker_files, .init = walker_set_up, .fini = walker_tear_down);

/* ---- file identity -------------------------------------------------------------------------- */

/* Maps the file that it is told by number: A, B, … */
static void map_files_as_told(void *arg)
{
	(void)arg;
	for (;;) {
		char name[2] = {(char)target_await()};

		walker_map_and_tell(name);
	}
}

static const struct log_item *ask_for(struct target *t, char name)
{
	uint64_t addr;
	const struct log_item *it;

	target_say(t, (uint64_t)name);
	addr = target_hear(t);
	walker_walk_one(t->pid);
	it = walker_record_at(addr);
	cr_assert(it != NULL);
	cr_assert(ne(u32, it->mmap2.file_id, 0));
	return it;
}

Test(walker_files, file_ids_are_of_files_and_not_of_names_or_processes)
{
	char from[64], to[64];
	uint32_t in_a, in_b, other, replaced;
	struct target a, b;

	walker_open(1 << 20, false, false);
	cr_assert(walker_file("A", 1) >= 0 && walker_file("B", 1) >= 0 && walker_file("C", 1) >= 0);
	target_start(&a, map_files_as_told, NULL);
	target_start(&b, map_files_as_told, NULL);
	in_a = ask_for(&a, 'A')->mmap2.file_id;
	in_b = ask_for(&b, 'A')->mmap2.file_id;
	other = ask_for(&b, 'B')->mmap2.file_id;
	cr_expect(eq(u32, in_a, in_b));
	cr_expect(ne(u32, in_a, other));

	snprintf(from, sizeof(from), "%s/C", walker_dir);
	snprintf(to, sizeof(to), "%s/A", walker_dir);
	cr_assert(zero(int, rename(from, to)));
	replaced = ask_for(&b, 'A')->mmap2.file_id;
	cr_expect(ne(u32, replaced, in_b));
	cr_expect(ne(u32, replaced, other));

	/* what is still mapped keeps its identity and says that its name is gone */
	for (size_t i = 0; i < walker_env.log.cnt; i++) {
		const struct log_item *it = &walker_env.log.item[i];

		if (it->mmap2.file_id != in_b)
			continue;
		cr_expect(ne(int, it->mmap2.hdr.flags &VP_MMAP2_F_DELETED, 0));
		strcat(to, " (deleted)");
		cr_expect(eq(str, it->name, to));
	}
	target_end(&a);
	target_end(&b);
}

Test(walker_files, a_file_written_in_place_is_another_file)
{
	struct timespec later[2] = {{1000000000, 1}, {1000000000, 1}};
	struct target t;
	uint32_t before;
	int fd;

	walker_open(1 << 20, false, false);
	fd = walker_file("A", 1);
	target_start(&t, map_files_as_told, NULL);
	before = ask_for(&t, 'A')->mmap2.file_id;
	cr_assert(zero(int, futimens(fd, later)));
	cr_expect(ne(u32, ask_for(&t, 'A')->mmap2.file_id, before));
	close(fd);
	target_end(&t);
}

Test(walker_files, a_file_written_in_place_with_its_time_put_back_is_another_file)
{
	struct target t;
	struct stat st;
	uint32_t before;
	int fd;

	walker_open(1 << 20, false, false);
	fd = walker_file("A", 1);
	target_start(&t, map_files_as_told, NULL);
	before = ask_for(&t, 'A')->mmap2.file_id;
	cr_assert(zero(int, fstat(fd, &st)));
	cr_assert(eq(sz, (size_t)pwrite(fd, "", 1, 2 * PAGE), 1));
	cr_assert(zero(int, futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim})));
	cr_expect(ne(u32, ask_for(&t, 'A')->mmap2.file_id, before));
	close(fd);
	target_end(&t);
}

Test(walker_files, a_hard_link_is_the_same_file_by_another_name)
{
	char from[64], to[64];
	const struct log_item *it;
	struct target t;
	uint32_t before;

	walker_open(1 << 20, false, false);
	close(walker_file("A", 1));
	target_start(&t, map_files_as_told, NULL);
	before = ask_for(&t, 'A')->mmap2.file_id;
	snprintf(from, sizeof(from), "%s/A", walker_dir);
	snprintf(to, sizeof(to), "%s/B", walker_dir);
	cr_assert(zero(int, link(from, to)));
	it = ask_for(&t, 'B');
	cr_expect(eq(u32, it->mmap2.file_id, before));
	cr_expect(eq(str, it->name, to));
	target_end(&t);
}

static void make_dirs(const char *const *names, size_t cnt)
{
	char path[256];

	for (size_t i = 0; i < cnt; i++) {
		snprintf(path, sizeof(path), "%s/%s", walker_dir, names[i]);
		cr_assert(zero(int, mkdir(path, 0755)));
	}
}

static void mount_overlay(const char *root, int nr)
{
	char options[512];

	snprintf(options, sizeof(options),
		 "lowerdir=%s/lower,upperdir=%s/tmp/upper%d,workdir=%s/tmp/work%d", walker_dir,
		 walker_dir, nr, walker_dir, nr);
	target_check(!mount("overlay", root, "overlay", 0, options));
}

/* Container *arg: an overlay of its own on the common lower layer, as its root. */
static void map_in_a_container(void *arg)
{
	char root[64];
	int fd;

	snprintf(root, sizeof(root), "%s/merged%d", walker_dir, *(const int *)arg);
	target_check(!unshare(CLONE_NEWNS));
	mount_overlay(root, *(const int *)arg);
	target_check(!chdir(root) && !syscall(SYS_pivot_root, ".", ".") &&
		     !umount2(".", MNT_DETACH) && !chdir("/"));
	fd = open("/lib.so", O_RDONLY);
	target_check(fd >= 0);
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	/* copied up: a file of its own from now on */
	fd = open("/copied.so", O_RDWR);
	target_check(fd >= 0 && pwrite(fd, "x", 1, 0) == 1);
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

struct in_container {
	uint32_t lib, copied; /* file_id */
};

static struct in_container walk_container(struct target *t)
{
	uint64_t lib = target_hear(t), copied = target_hear(t);

	walker_walk_one(t->pid);
	cr_assert(walker_record_at(lib) && walker_record_at(copied));
	cr_expect(eq(str, walker_record_at(lib)->name, "/lib.so"));
	cr_expect(eq(str, walker_record_at(copied)->name, "/copied.so"));
	return (struct in_container){walker_record_at(lib)->mmap2.file_id,
				     walker_record_at(copied)->mmap2.file_id};
}

static bool kernel_has_overlays(void)
{
	char line[128];
	FILE *f = fopen("/proc/filesystems", "re");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "overlay") != NULL;
	if (f)
		fclose(f);
	return found;
}

Test(walker_files, containers_share_the_files_of_a_layer_by_their_own_names)
{
	static const char *const dirs[] = {"lower", "tmp", "merged0", "merged1"};
	static const char *const layers[] = {"tmp/upper0", "tmp/work0", "tmp/upper1", "tmp/work1"};
	struct in_container in[2];
	struct target t[2];
	char tmp[64];

	if (!kernel_has_overlays())
		cr_skip_test("no overlayfs");
	walker_open(1 << 20, false, false);
	cr_assert(zero(int, unshare(CLONE_NEWNS)));
	cr_assert(zero(int, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)));
	make_dirs(dirs, 4);
	/* an upper layer cannot be on every file system */
	snprintf(tmp, sizeof(tmp), "%s/tmp", walker_dir);
	cr_assert(zero(int, mount("none", tmp, "tmpfs", 0, NULL)));
	make_dirs(layers, 4);
	close(walker_file("lower/lib.so", 1));
	close(walker_file("lower/copied.so", 1));
	for (int i = 0; i < 2; i++) {
		target_start(&t[i], map_in_a_container, &i);
		in[i] = walk_container(&t[i]);
	}
	cr_expect(eq(u32, in[0].lib, in[1].lib));
	cr_expect(ne(u32, in[0].copied, in[1].copied));
	cr_expect(ne(u32, in[0].copied, in[0].lib));
	target_end(&t[0]);
	target_end(&t[1]);
	umount2(tmp, MNT_DETACH);
}

#define MINOR_WANTED 300

/* Mounts until the kernel hands out a large device number; the mounts end with the process. */
static void map_on_a_device_with_a_large_minor(void *arg)
{
	char path[64], file[80];
	struct stat st = {0};
	int fd = -1;

	(void)arg;
	target_check(!unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	snprintf(path, sizeof(path), "%s/mnt", walker_dir);
	target_check(!mkdir(path, 0755));
	for (int i = 0; i < MINOR_WANTED + 100 && minor(st.st_dev) < MINOR_WANTED; i++) {
		if (i)
			close(fd);
		target_check(!mount("none", path, "tmpfs", 0, NULL));
		snprintf(file, sizeof(file), "%s/lib", path);
		fd = open(file, O_RDWR | O_CREAT, 0755);
		target_check(fd >= 0 && !fstat(fd, &st));
	}
	target_check(!ftruncate(fd, PAGE));
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	target_tell(st.st_dev);
	target_pause();
}

Test(walker_files, large_device_minors_are_those_of_stat)
{
	const struct log_item *it;
	uint64_t addr, dev;
	struct target t;

	walker_open(1 << 20, false, false);
	target_start(&t, map_on_a_device_with_a_large_minor, NULL);
	addr = target_hear(&t);
	dev = target_hear(&t);
	walker_walk_one(t.pid);
	it = walker_record_at(addr);
	cr_assert(it != NULL);
	cr_expect(ge(u32, it->mmap2.perf.min, 256));
	cr_expect(eq(u32, it->mmap2.perf.maj, major(dev)));
	cr_expect(eq(u32, it->mmap2.perf.min, minor(dev)));
	cr_expect(eq(u32, VP_DEV_MAJOR(it->mmap2.file.dev), major(dev)));
	cr_expect(eq(u32, VP_DEV_MINOR(it->mmap2.file.dev), minor(dev)));
	target_end(&t);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Directories below walker_dir until a file's whole path has *arg bytes; goes there and maps it. */
static void map_a_long_name(void *arg)
{
	size_t want = *(const size_t *)arg, len = strlen(walker_dir);
	char part[256];
	int fd;

	target_check(!chdir(walker_dir));
	while (want - len > 256) {
		size_t n = want - len - 1 < 2 * 201 ? 100 : 200;

		memset(part, 'd', n);
		part[n] = '\0';
		target_check(!mkdir(part, 0755) && !chdir(part));
		len += n + 1;
	}
	memset(part, 'f', want - len - 1);
	part[want - len - 1] = '\0';
	fd = open(part, O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

/* The record of a file with a path of that many bytes. */
static const struct log_item *walk_long_name(struct target *t, size_t bytes)
{
	const struct log_item *it;
	uint64_t addr;

	walker_open(1 << 20, false, false);
	target_start(t, map_a_long_name, &bytes);
	addr = target_hear(t);
	walker_walk_one(t->pid);
	it = walker_record_at(addr);
	cr_assert(it != NULL);
	return it;
}

static void expect_whole_name(size_t bytes)
{
	const struct procmaps_row *row;
	const struct log_item *it;
	struct procmaps m;
	struct target t;

	it = walk_long_name(&t, bytes);
	procmaps_read(&m, t.pid);
	row = procmaps_find(&m, it->mmap2.perf.addr);
	cr_assert(eq(sz, strlen(row->name), bytes));
	cr_expect(eq(str, it->name, row->name));
	cr_expect(zero(int, it->mmap2.hdr.flags &VP_MMAP2_F_NAME_CUT));
	cr_expect(zero(u64, walker_counter(VP_CNT_NAME_CUT)));
	procmaps_free(&m);
	target_end(&t);
}

Test(walker_files, a_name_of_4000_bytes_is_whole)
{
	expect_whole_name(4000);
}

Test(walker_files, the_longest_name_that_a_path_may_have_is_whole)
{
	expect_whole_name(4095);
}

Test(walker_files, a_name_beyond_that_is_said_to_be_too_long)
{
	const struct log_item *it;
	struct target t;

	it = walk_long_name(&t, 4096);
	cr_expect(eq(str, it->name, "//toolong"));
	cr_expect(ne(int, it->mmap2.hdr.flags &VP_MMAP2_F_NAME_CUT, 0));
	cr_expect(eq(u64, walker_counter(VP_CNT_NAME_CUT), 1));
	cr_expect(ne(u32, it->mmap2.file_id, 0));
	target_end(&t);
}

static void map_what_has_no_name(void *arg)
{
	int mem = memfd_create("code", 0), gone = walker_file("gone", 1),
	    kept = walker_file("kept", 1);
	char path[64];

	(void)arg;
	snprintf(path, sizeof(path), "%s/gone", walker_dir);
	target_check(mem >= 0 && gone >= 0 && !ftruncate(mem, PAGE) && !unlink(path));
	target_tell(walker_map_exec(mem, 1, 0, MAP_PRIVATE));
	target_tell(walker_map_exec(gone, 1, 0, MAP_PRIVATE));
	target_tell(walker_map_exec(kept, 1, 0, MAP_PRIVATE));
	target_tell(walker_map_exec(-1, 1, 0, MAP_SHARED | MAP_ANONYMOUS));
	target_pause();
}

Test(walker_files, files_without_a_name_are_called_deleted)
{
	char gone[64], kept[64];
	const char *names[] = {"/memfd:code (deleted)", gone, kept, "/dev/zero (deleted)"};
	uint64_t addr[4];
	struct target t;

	walker_open(1 << 20, false, false);
	snprintf(gone, sizeof(gone), "%s/gone (deleted)", walker_dir);
	snprintf(kept, sizeof(kept), "%s/kept", walker_dir);
	target_start(&t, map_what_has_no_name, NULL);
	for (int i = 0; i < 4; i++)
		addr[i] = target_hear(&t);
	walker_walk_one(t.pid);
	for (int i = 0; i < 4; i++) {
		const struct log_item *it = walker_record_at(addr[i]);

		cr_assert(it != NULL);
		cr_expect(eq(str, it->name, (char *)names[i]));
		cr_expect(eq(int, !!(it->mmap2.hdr.flags & VP_MMAP2_F_DELETED), i != 2));
		cr_expect(eq(u32, it->mmap2.verdict,
			     i == 3 ? VP_VERDICT_ANON_EXEC : VP_VERDICT_FILE));
	}
	target_end(&t);
}

static void map_from_inside_a_root(void *arg)
{
	char in[4000] = "", path[4096];
	int fd;

	target_check(!chroot(walker_dir) && !chdir("/"));
	while (strlen(in) < 3800) {
		size_t len = strlen(in);

		snprintf(in + len, sizeof(in) - len, "/%0200d", 7);
		target_check(!mkdir(in, 0755));
	}
	snprintf(path, sizeof(path), "%s/%0*d", in, (int)(*(size_t *)arg - strlen(in) - 1 - 200),
		 8);
	target_check(!mkdir(path, 0755));
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%0199d", 9);
	target_check(strlen(path) == *(size_t *)arg);
	fd = open(path, O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	fd = open("/two\nlines \x1b[31m\xff (deleted)", O_RDWR | O_CREAT, 0755);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	fd = memfd_create("code", 0);
	target_check(fd >= 0 && !ftruncate(fd, PAGE));
	target_tell(walker_map_exec(fd, 1, 0, MAP_PRIVATE));
	target_pause();
}

static const char *name_at(uint64_t addr)
{
	const struct log_item *it = walker_record_at(addr);

	cr_assert(it != NULL);
	return it->name;
}

Test(walker_files, names_start_at_the_root_of_the_process)
{
	size_t longest = PATH_MAX - 1;
	uint64_t far, strange, memfd;
	struct target t;

	walker_open(1 << 20, false, false);
	target_start(&t, map_from_inside_a_root, &longest);
	far = target_hear(&t);
	strange = target_hear(&t);
	memfd = target_hear(&t);
	walker_walk_one(t.pid);
	cr_expect(eq(sz, strlen(name_at(far)), longest));
	cr_expect(zero(int, strncmp(name_at(far), "/00000", 6)));
	cr_expect(eq(str, (char *)name_at(strange), "/two\nlines \x1b[31m\xff (deleted)"));
	cr_expect(zero(int, walker_record_at(strange)->mmap2.hdr.flags &VP_MMAP2_F_DELETED));
	cr_expect(eq(str, (char *)name_at(memfd), "/memfd:code (deleted)"));
	cr_expect(zero(u64, walker_counter(VP_CNT_NAME_CUT)));
	target_end(&t);
}
