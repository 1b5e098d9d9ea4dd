/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Debug files from the servers in DEBUGINFOD_URLS, by the client library of elfutils, which is
 * loaded when it is asked for: it brings a web client along. The library keeps what it gets, and
 * what it does not, in ~/.cache.
 *
 * A server may take its time; nobody waits longer than told to here.
 */
#ifndef VP_DEBUGINFOD_H
#define VP_DEBUGINFOD_H

#include "debug_file.h"

struct debuginfod;

/*
 * file_ns: until one file must be there, to about a second; total_ns: that all files together may
 * take, then no more are asked for. 0; -ENOENT: no such library; -EDESTADDRREQ: DEBUGINFOD_URLS
 * names no server; -ENOMEM. Free with debuginfod_free (NULL is fine).
 */
int debuginfod_new(struct debuginfod **out, uint64_t file_ns, uint64_t total_ns);
void debuginfod_free(struct debuginfod *d);

/* A debug_fetch_fn with a struct debuginfod for its ctx. -ETIME: the time is used up. */
int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len);

#endif
