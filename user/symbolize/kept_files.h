/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A file and those that its debug information is in, kept open: their names may lead nowhere later.
 */
#ifndef VP_KEPT_FILES_H
#define VP_KEPT_FILES_H

#include "file_home.h"

#include <stddef.h>

enum kept_part {
	KEPT_SELF,
	KEPT_DEBUG, /* the debug file */
	KEPT_ALT,   /* what dwz took out of either */
	KEPT_PACKAGE,
};
#define KEPT_CNT (KEPT_PACKAGE + 1)

struct kept_file {
	int fd; /* owned; -1: none */
	struct file_stamp stamp;
};

struct kept_files {
	struct kept_file part[KEPT_CNT];
};

/* To begin with, and what kept_files_close leaves. */
#define KEPT_FILES_NONE ((struct kept_files){.part = {[0 ... KEPT_CNT - 1] = {.fd = -1}}})

/* Takes fd, which may be -1. */
void kept_files_put(struct kept_files *k, enum kept_part part, int fd);
size_t kept_files_cnt(const struct kept_files *k);
void kept_files_close(struct kept_files *k);

/*
 * A descriptor of the caller's own, whose file offset is not. -ENOENT: none is kept; -ESTALE: it was
 * written to; or another errno.
 */
int kept_files_open(const struct kept_files *k, enum kept_part part);

#endif
