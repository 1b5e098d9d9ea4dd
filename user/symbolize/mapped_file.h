/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Opening the file that a process has mapped, not the one that its name leads to now:
 * /proc/TGID/map_files/START-END reaches deleted and replaced files, memfds, other mount
 * namespaces and overlayfs alike. Where that is refused or the process is gone, the name
 * is tried below the process's root and then below ours, and believed only if device, inode
 * and modification time are those of the mapping.
 */
#ifndef VP_MAPPED_FILE_H
#define VP_MAPPED_FILE_H

#include "symbolizer.h"

#include <sys/stat.h>

enum mapped_file_way {
	MAPPED_FILE_MAP_FILES = 1,
	MAPPED_FILE_ROOT,
	MAPPED_FILE_NAME,
};

/*
 * A descriptor of a regular file for reading (the caller closes it) and, if way is not
 * NULL, how it was found. -ESTALE: the process has another file there now; else the errno
 * of the last attempt, -ENOENT if the process is gone and the name leads to another file here.
 * Does not open FIFOs or devices.
 */
int mapped_file_open(const struct vp_mapped_file *f, enum mapped_file_way *way);

/* Whether what a name leads to, as stat shows it, is the mapped file, as it was mapped. */
int mapped_file_is(const struct vp_mapped_file *f, const struct stat *st);

/* mapped_file_open for a plain path, without identity: -EINVAL if it is no regular file. */
int mapped_file_open_path(const char *path);

/*
 * The same below a directory, as a process sees it whose root that is: links do not lead out, and
 * the name itself must be none. *st is the file's.
 */
int mapped_file_open_below(int root_fd, const char *name, struct stat *st);

/*
 * The same for a path below a directory (O_PATH or not) that it cannot lead out of, as if that
 * were the root of all: links, absolute or not, and ".." stay inside.
 */
int mapped_file_open_in(int root_fd, const char *path);

#endif
