/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "file_home.h"

#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct file_stamp stamp_of(const struct stat *st)
{
	return (struct file_stamp){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000ULL +
			    (uint64_t)st->st_mtim.tv_nsec,
		.size = (uint64_t)st->st_size,
	};
}

int file_stamp_read(struct file_stamp *out, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*out = stamp_of(&st);
	return 0;
}

int file_stamp_is_same(const struct file_stamp *a, const struct file_stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mtime_ns == b->mtime_ns &&
	       a->size == b->size;
}

static int open_named(uint32_t tgid, const char *path, struct stat *st)
{
	char root[64] = "/";
	int root_fd, fd;

	if (tgid)
		snprintf(root, sizeof(root), "/proc/%" PRIu32 "/root", tgid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	fd = mapped_file_open_in(root_fd, path);
	close(root_fd);
	if (fd >= 0 && fstat(fd, st)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* Whether the name leads to the file that *st is of, which then tells how stat shows it there. */
static int leads_to(uint32_t tgid, const char *path, const struct vp_mapped_file *m,
		    struct stat *st)
{
	struct stat named = {0};
	int fd = open_named(tgid, path, &named);

	if (fd < 0)
		return 0;
	close(fd);
	if ((named.st_dev != st->st_dev || named.st_ino != st->st_ino) &&
	    !(m && mapped_file_is(m, &named)))
		return 0;
	*st = named;
	return 1;
}

int file_home_find(struct file_home *h, int fd, const char *path, const struct vp_mapped_file *m)
{
	struct stat st;

	*h = (struct file_home){0};
	if (!path || path[0] != '/' || fstat(fd, &st))
		return 0;
	if (!leads_to(0, path, m, &st)) {
		if (!m || !m->tgid || !leads_to(m->tgid, path, m, &st))
			return 0;
		h->tgid = m->tgid;
	}
	h->stamp = stamp_of(&st);
	h->path = strdup(path);
	return h->path ? 0 : -ENOMEM;
}

void file_home_fini(struct file_home *h)
{
	free(h->path);
	*h = (struct file_home){0};
}

int file_home_open(const struct file_home *h)
{
	struct stat st = {0};

	if (!h->path)
		return -ENOENT;

	int fd = open_named(h->tgid, h->path, &st);
	if (fd < 0)
		return fd == -EINVAL ? -ESTALE : fd; /* no regular file: another one for sure */

	const struct file_stamp stamp = stamp_of(&st);
	if (file_stamp_is_same(&stamp, &h->stamp))
		return fd;
	close(fd);
	return -ESTALE;
}
