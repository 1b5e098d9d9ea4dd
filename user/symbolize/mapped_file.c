/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DELETED_SUFFIX " (deleted)"
#define PATH_BYTES     4096

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000ULL + (uint64_t)st->st_mtim.tv_nsec;
}

static int is_device(const struct stat *st, unsigned int dev_major, unsigned int dev_minor)
{
	return major(st->st_dev) == dev_major && minor(st->st_dev) == dev_minor;
}

/* As /proc shows it or, of a btrfs subvolume, as only stat does. */
static int same_device(const struct vp_mapped_file *f, const struct stat *st)
{
	return is_device(st, f->user_dev_major, f->user_dev_minor) ||
	       (f->key.dev && is_device(st, VP_DEV_MAJOR(f->key.dev), VP_DEV_MINOR(f->key.dev)));
}

/*
 * map_files already leads to the right inode unless the mapping was replaced meanwhile. On
 * overlays stat can show another device than the kernel's mappings do: an equal modification
 * time stands in for it. The contents may have been written since; the process runs those.
 */
static int is_same_inode(const struct vp_mapped_file *f, const struct stat *st)
{
	if (!f->user_ino)
		return 1;
	return st->st_ino == f->user_ino &&
	       (same_device(f, st) || (f->key.mtime_ns && mtime_ns(st) == f->key.mtime_ns));
}

/* By name nothing is known but what stat says, and an inode number is soon used again. */
int mapped_file_is(const struct vp_mapped_file *f, const struct stat *st)
{
	if (!f->user_ino || st->st_ino != f->user_ino)
		return 0;
	if (f->key.mtime_ns && mtime_ns(st) != f->key.mtime_ns)
		return 0;
	if (f->key.size_bytes && (uint64_t)st->st_size != f->key.size_bytes)
		return 0;
	return same_device(f, st) || f->key.mtime_ns;
}

/*
 * Takes an O_PATH descriptor and gives one for reading. In two steps because opening a
 * device can do things (rewind a tape, arm a watchdog), and O_PATH does not open it.
 */
static int reopen(int path_fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	int err = fd < 0 ? -errno : fd;
	close(path_fd);
	return err;
}

static int refuse(int path_fd, int err)
{
	close(path_fd);
	return err;
}

/* reopen() what an open with O_PATH gave, -1 and errno among it, if it is a regular file. */
static int reopen_regular(int path_fd, struct stat *st)
{
	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, st))
		return refuse(path_fd, -errno);
	return S_ISREG(st->st_mode) ? reopen(path_fd) : refuse(path_fd, -EINVAL);
}

int mapped_file_open_path(const char *path)
{
	struct stat st;

	return reopen_regular(open(path, O_PATH | O_CLOEXEC), &st);
}

static int open_map_files(const struct vp_mapped_file *f)
{
	struct stat st;
	char path[96];

	if (f->start >= f->end)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, f->tgid,
		 f->start, f->end);
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		return refuse(fd, -errno);
	if (!S_ISREG(st.st_mode))
		return refuse(fd, -EINVAL);
	return is_same_inode(f, &st) ? reopen(fd) : refuse(fd, -ESTALE);
}

/* An absolute name of a file, not "//anon", "[heap]" and their like. */
static int is_path(const char *name)
{
	return name && name[0] == '/' && name[1] != '/';
}

/* -1 and errno. Absolute links inside the target's tree lead to the target's files. */
static int open_below(int root_fd, const char *name, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_IN_ROOT,
	};

	return (int)syscall(SYS_openat2, root_fd, name, &how, sizeof(how));
}

int mapped_file_open_below(int root_fd, const char *name, struct stat *st)
{
	return reopen_regular(open_below(root_fd, name, O_NOFOLLOW), st);
}

int mapped_file_open_in(int root_fd, const char *path)
{
	struct stat st;

	return reopen_regular(open_below(root_fd, path, 0), &st);
}

static int open_checked(const struct vp_mapped_file *f, int root_fd, const char *name)
{
	struct stat st;
	int fd = open_below(root_fd, name, 0);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		return refuse(fd, -errno);
	if (!S_ISREG(st.st_mode) || !mapped_file_is(f, &st))
		return refuse(fd, -ESTALE);
	return reopen(fd);
}

/* name as it is, for a file may be called so, then without the kernel's " (deleted)". */
static int open_names(const struct vp_mapped_file *f, const char *root)
{
	const size_t suffix = strlen(DELETED_SUFFIX);
	char name[PATH_BYTES];
	size_t len = strlen(f->name);
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root_fd < 0)
		return -errno;

	int fd = open_checked(f, root_fd, f->name);
	if (fd < 0 && len > suffix && len < sizeof(name) &&
	    !strcmp(f->name + len - suffix, DELETED_SUFFIX)) {
		memcpy(name, f->name, len - suffix);
		name[len - suffix] = '\0';
		int stripped = open_checked(f, root_fd, name);

		fd = stripped >= 0 || fd != -ESTALE ? stripped : fd;
	}
	close(root_fd);
	return fd;
}

/*
 * That the name leads to another file tells something only below the process's root: ours need
 * not be its own.
 */
int mapped_file_open(const struct vp_mapped_file *f, enum mapped_file_way *way)
{
	enum mapped_file_way found = MAPPED_FILE_MAP_FILES;
	int fd = open_map_files(f), stale = fd == -ESTALE;

	if (fd < 0 && is_path(f->name)) {
		char root[64];

		snprintf(root, sizeof(root), "/proc/%" PRIu32 "/root", f->tgid);
		found = MAPPED_FILE_ROOT;
		fd = open_names(f, root);
		stale |= fd == -ESTALE;
	}
	if (fd < 0 && is_path(f->name)) {
		found = MAPPED_FILE_NAME;
		fd = open_names(f, "/");
		if (fd == -ESTALE && !stale)
			fd = -ENOENT;
	}
	if (fd >= 0 && way)
		*way = found;
	return fd < 0 && stale ? -ESTALE : fd;
}
