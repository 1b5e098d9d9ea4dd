/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An output file that is there whole or not at all: written beside its name, renamed at the
 * end; an older file of that name is kept as NAME.old.
 */
#ifndef VP_OUTFILE_H
#define VP_OUTFILE_H

#include "../util/err.h"

#include <stdint.h>
#include <stdio.h>

struct vp_outfile;

/*
 * "-" is standard output: nothing is renamed. A name that exists and is no regular file
 * (/dev/full, a FIFO) is written to directly. Negative errno and e filled on failure.
 */
int vp_outfile_open(struct vp_outfile **out, const char *path, struct vp_err *e);

/* Borrowed, valid until commit or abort. Seekable unless the output is not a regular file. */
FILE *vp_outfile_stream(struct vp_outfile *o);

/* What an abrupt end has to remove; NULL: nothing. Borrowed, valid until commit or abort. */
const char *vp_outfile_temporary(const struct vp_outfile *o);

/*
 * Flushes, checks for write errors, keeps the old file as NAME.old, renames, frees o. On
 * failure the temporary file is removed, an older file is where it was, and e says why.
 */
int vp_outfile_commit(struct vp_outfile *o, uint64_t *size_bytes, struct vp_err *e);

/* Removes the temporary file and frees o. NULL is fine. */
void vp_outfile_abort(struct vp_outfile *o);

#endif
