/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a symbolizer says of a file's link-time addresses, in words. */
#ifndef SYMBOLIZED_H
#define SYMBOLIZED_H

#include "symbolize/symbolizer.h"

/*
 * A symbolizer that has read this one file, as file 1; NULL if it cannot. host_root NULL: no debug
 * file is found anywhere. Free with vp_symbolizer_free.
 */
struct vp_symbolizer *symbolized(const char *path, const char *host_root);

/* The same with names as they are in the file. */
struct vp_symbolizer *symbolized_raw(const char *path, const char *host_root);

/* The name, or the reason why there is none, or "(in no segment)". */
const char *symbolized_name(struct vp_symbolizer *s, uint64_t vaddr);

/* vp_sym_source_text() of it; "none" if there is no name. */
const char *symbolized_source(struct vp_symbolizer *s, uint64_t vaddr);

#endif
