/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a file that was opened can be found again when the mapping that led to it is gone: by its
 * name, believed only while that leads to the same file, as it was.
 */
#ifndef VP_FILE_HOME_H
#define VP_FILE_HOME_H

#include "symbolizer.h"

#include <stdint.h>

/* What is compared: a file that was written or replaced since is another one. */
struct file_stamp {
	uint64_t dev, ino, mtime_ns, size;
};

/* Of an open file. 0 or negative errno. */
int file_stamp_read(struct file_stamp *out, int fd);
int file_stamp_is_same(const struct file_stamp *a, const struct file_stamp *b);

/* Zero-initialized: none. */
struct file_home {
	char *path;    /* owned; NULL: no name leads to it */
	uint32_t tgid; /* below whose root, as long as it lives; 0: below ours */
	struct file_stamp stamp;
};

/*
 * Finds a name of the open file fd: path (absolute, may be NULL) below our root, else below that
 * of m's process. m, which may be NULL, knows files that stat shows otherwise than descriptors
 * do. *h has no path if none leads there. 0 or -ENOMEM.
 */
int file_home_find(struct file_home *h, int fd, const char *path, const struct vp_mapped_file *m);
void file_home_fini(struct file_home *h);

/*
 * The file again, for reading; the caller closes it. -ESTALE: the name leads to another one, or it
 * was written to; -ENOENT: nothing leads to it; or another errno.
 */
int file_home_open(const struct file_home *h);

#endif
