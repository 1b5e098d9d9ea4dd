/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which file is opened for a mapping of this process, whatever became of its name. */
#include "fixture_elf.h"
#include "symbolize/mapped_file.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEAD_TGID 0x7ffffffe

static struct fixture x;
static struct vp_mapped_file m;
static char name[300];

/* Maps DIR/lib with the contents "mapped" and describes that as the kernel would. */
static void map_fd(int fd)
{
	struct stat st;

	cr_assert(zero(int, fstat(fd, &st)));
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert(ne(ptr, p, MAP_FAILED));
	close(fd);
	m = (struct vp_mapped_file){
		.tgid = (uint32_t)getpid(),
		.start = (uint64_t)(uintptr_t)p,
		.end = (uint64_t)(uintptr_t)p + 4096,
		.name = name,
		.key = {.ino = st.st_ino,
			.mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000ULL +
				    (uint64_t)st.st_mtim.tv_nsec},
		.user_dev_major = major(st.st_dev),
		.user_dev_minor = minor(st.st_dev),
		.user_ino = st.st_ino,
	};
}

static void set_up(void)
{
	fixture_new(&x);
	snprintf(name, sizeof(name), "%s", fixture_text(&x, "lib", "mapped"));
	map_fd(open(name, O_RDONLY));
}

static void tear_down(void)
{
	fixture_remove(&x);
}

TestSuite(mapped_file, .init = set_up, .fini = tear_down, .timeout = 5);

/* First six bytes of what is opened, or the error's name. */
static const char *contents(enum mapped_file_way *way)
{
	static char buf[7];
	int fd = mapped_file_open(&m, way);

	if (fd < 0)
		return strerrorname_np(-fd);
	memset(buf, 0, sizeof(buf));
	cr_expect(ne(long, read(fd, buf, 6), -1));
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return buf;
}

#define EXPECT_OPENS(want) cr_expect(eq(str, (char *)contents(NULL), (char *)(want)))

static void need_map_files(void)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", m.start, m.end);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		cr_skip("map_files needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
	close(fd);
}

/* The target is gone, or map_files refused: only names are left. */
static void forget_mapping(void)
{
	m.start = m.end = 0;
}

Test(mapped_file, opens_through_the_mapping)
{
	enum mapped_file_way way = 0;

	need_map_files();
	cr_expect(eq(str, (char *)contents(&way), (char *)"mapped"));
	cr_expect(eq(int, way, MAPPED_FILE_MAP_FILES));
}

Test(mapped_file, a_deleted_file_is_still_the_mapped_one)
{
	need_map_files();
	unlink(name);
	EXPECT_OPENS("mapped");
}

Test(mapped_file, a_replaced_file_is_still_the_mapped_one)
{
	need_map_files();
	fixture_text(&x, "new", "newfil");
	cr_assert(zero(int, rename(fixture_path(&x, "new"), name)));
	EXPECT_OPENS("mapped");
}

Test(mapped_file, a_memfd_is_read)
{
	int fd = memfd_create("prog", 0);

	need_map_files();
	cr_assert(eq(long, write(fd, "in ram", 6), 6));
	map_fd(fd);
	strcpy(name, "/memfd:prog (deleted)");
	EXPECT_OPENS("in ram");
}

Test(mapped_file, another_mapping_at_the_address_is_noticed)
{
	need_map_files();
	forget_mapping();
	struct vp_mapped_file old = m;
	unlink(name);
	int fd = open(fixture_text(&x, "other", "other!"), O_RDONLY);
	map_fd(fd);
	old.start = m.start;
	old.end = m.end;
	m = old;
	EXPECT_OPENS("ESTALE");
}

Test(mapped_file, falls_back_to_the_name)
{
	enum mapped_file_way way = 0;

	forget_mapping();
	cr_expect(eq(str, (char *)contents(&way), (char *)"mapped"));
	cr_expect(eq(int, way, MAPPED_FILE_ROOT));
	m.tgid = DEAD_TGID;
	cr_expect(eq(str, (char *)contents(&way), (char *)"mapped"));
	cr_expect(eq(int, way, MAPPED_FILE_NAME));
}

Test(mapped_file, the_kernels_deleted_suffix_is_no_part_of_the_name)
{
	forget_mapping();
	strcat(name, " (deleted)");
	EXPECT_OPENS("mapped");
	fixture_text(&x, "lib (deleted)", "other");
	EXPECT_OPENS("mapped");
}

Test(mapped_file, by_name_a_replaced_file_is_another_file)
{
	forget_mapping();
	fixture_text(&x, "new", "newfil");
	cr_assert(zero(int, rename(fixture_path(&x, "new"), name)));
	EXPECT_OPENS("ESTALE");
	/* Gone, it may have had another root. */
	m.tgid = DEAD_TGID;
	EXPECT_OPENS("ENOENT");
}

Test(mapped_file, by_name_a_file_written_since_is_another_file)
{
	const struct timespec times[2] = {{1, 0}, {1, 0}};

	forget_mapping();
	cr_assert(zero(int, utimensat(AT_FDCWD, name, times, 0)));
	EXPECT_OPENS("ESTALE");
}

Test(mapped_file, by_name_nothing_is_believed_without_an_identity)
{
	forget_mapping();
	m.user_ino = 0;
	EXPECT_OPENS("ESTALE");
}

Test(mapped_file, another_device_number_is_bridged_by_the_modification_time)
{
	m.user_dev_major ^= 1;
	EXPECT_OPENS("mapped");
	forget_mapping();
	EXPECT_OPENS("mapped");
	m.key.mtime_ns = 0;
	EXPECT_OPENS("ESTALE");
}

Test(mapped_file, the_kernels_device_is_as_good_as_that_of_the_mapping)
{
	struct stat st;

	cr_assert(zero(int, stat(name, &st)));
	m.user_dev_minor ^= 1;
	m.key.mtime_ns = 0;
	EXPECT_OPENS("ESTALE");
	m.key.dev = major(st.st_dev) << 20 | minor(st.st_dev);
	EXPECT_OPENS("mapped");
	forget_mapping();
	EXPECT_OPENS("mapped");
}

Test(mapped_file, by_name_a_file_of_another_size_is_another_file)
{
	forget_mapping();
	m.key.size_bytes = 6;
	EXPECT_OPENS("mapped");
	m.key.size_bytes = 7;
	EXPECT_OPENS("ESTALE");
}

Test(mapped_file, a_fifo_of_the_name_does_not_hang)
{
	forget_mapping();
	unlink(name);
	cr_assert(zero(int, mkfifo(name, 0600)));
	EXPECT_OPENS("ESTALE");
	cr_expect(eq(int, mapped_file_open_path(name), -EINVAL));
}

Test(mapped_file, a_missing_file_is_missing)
{
	forget_mapping();
	unlink(name);
	EXPECT_OPENS("ENOENT");
}

Test(mapped_file, names_that_are_no_paths_are_not_opened)
{
	static const char *const names[] = {"//anon", "[heap]", "", "relative", "anon_inode:x"};

	forget_mapping();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		strcpy(name, names[i]);
		EXPECT_OPENS("ENOENT");
	}
	m.name = NULL;
	EXPECT_OPENS("ENOENT");
}

Test(mapped_file, descriptors_do_not_leak)
{
	int before = dup(0);

	close(before);
	for (int i = 0; i < 50; i++) {
		forget_mapping();
		m.user_ino += (uint64_t)(i % 2);
		contents(NULL);
	}
	int after = dup(0);
	cr_expect(eq(int, before, after));
	close(after);
}
