/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The aggregate writers: from a finished report to a stream. */
#ifndef VP_WRITERS_H
#define VP_WRITERS_H

#include "report.h"

#include <stdio.h>

/*
 * Both return 0 or a negative errno (-EIO if the stream reports an error, -ENOMEM); the
 * caller owns f and commits or aborts the file.
 */

/*
 * Folded stacks as FlameGraph's scripts read them: "comm;root;…;leaf COUNT\n", sorted by
 * bytes, equal lines merged (threads of one comm are one), marks _[k] _[j] _[i] as suffixes
 * of kernel, JIT and inlined frames. ';', newlines and control characters in a name are
 * replaced, spaces kept.
 */
int vp_write_folded(FILE *f, const struct vp_report *r);

/* A self-contained interactive flame graph: one HTML file, no network. */
int vp_write_html(FILE *f, const struct vp_report *r);

#endif
