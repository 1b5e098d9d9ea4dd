/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "kept_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void kept_files_put(struct kept_files *k, enum kept_part part, int fd)
{
	struct kept_file *f = &k->part[part];

	f->fd = fd;
	if (fd >= 0 && file_stamp_read(&f->stamp, fd))
		f->stamp = (struct file_stamp){0}; /* no file's */
}

size_t kept_files_cnt(const struct kept_files *k)
{
	size_t cnt = 0;

	for (int i = 0; i < KEPT_CNT; i++)
		cnt += k->part[i].fd >= 0;
	return cnt;
}

void kept_files_close(struct kept_files *k)
{
	for (int i = 0; i < KEPT_CNT; i++) {
		if (k->part[i].fd >= 0)
			close(k->part[i].fd);
	}
	*k = KEPT_FILES_NONE;
}

int kept_files_open(const struct kept_files *k, enum kept_part part)
{
	const struct kept_file *f = &k->part[part];
	struct file_stamp now;
	int fd;

	if (f->fd < 0)
		return -ENOENT;
	if (file_stamp_read(&now, f->fd) || !file_stamp_is_same(&now, &f->stamp))
		return -ESTALE;
	fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}
