/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Mapped files by file_id. */
#ifndef VP_FILES_H
#define VP_FILES_H

#include "../symbolize/symbolizer.h"
#include "decode.h"

#include <stdbool.h>

struct vp_file {
	char *name;		 /* without " (deleted)"; NULL: this id was not reported */
	struct vp_rec_mmap2 rec; /* of the last mapping reported: identity, and where to open it */
	bool requested;		 /* symbols were asked for */
	uint64_t rows_asked_ns;	 /* when unwind rows were asked for last; 0: never */
	uint64_t rows_wait_ns;	 /* so long from then on they are not again */
};

/* All zero is empty. */
struct vp_files {
	struct vp_file *file; /* by file_id */
	size_t cnt, cap;
};

/* Remembers the file of m (nothing to do if it has none). 0 or -ENOMEM. */
int vp_files_add(struct vp_files *f, const struct vp_mmap2 *m);

/* NULL if unknown. Borrowed until the next add. */
struct vp_file *vp_files_get(const struct vp_files *f, uint32_t file_id);

/*
 * Whether unwind rows are to be asked for at ts_ns (CLOCK_MONOTONIC, not 0), which is then noted.
 * A file is asked for again, for its process may have been gone before it could be opened, or
 * its rows have been freed; but ever more seldom while that does not help, and not at each frame.
 */
bool vp_file_ask_rows(struct vp_file *file, uint64_t ts_ns);

/*
 * How to open the file: through mapping x of process tgid, or, x being NULL, through the last
 * one that was reported. Its name is borrowed from file.
 */
struct vp_mapped_file vp_file_mapped(const struct vp_file *file, uint32_t tgid,
				     const struct vp_xmap *x);

/* Code that has no file to name it after, although a file holds it: a memfd. */
bool vp_file_is_memory(const struct vp_file *file);

void vp_files_free(struct vp_files *f);

#endif
