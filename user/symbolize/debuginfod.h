/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Debug files from the servers in DEBUGINFOD_URLS, by the client library of elfutils, which is
 * loaded when it is asked for: it brings a web client along. The library keeps what it gets, and
 * what it does not, in ~/.cache.
 *
 * A server may take its time: threads of its own get the files, while those who ask for one go on
 * without it and ask again later. Servers that say nothing for too long are not asked any more.
 */
#ifndef VP_DEBUGINFOD_H
#define VP_DEBUGINFOD_H

#include "debug_file.h"

struct debuginfod;

/*
 * silence_ns: for how long a server may say nothing, to about a second. 0; -ENOENT: no such
 * library; -EDESTADDRREQ: DEBUGINFOD_URLS names no server; -ENOMEM, -EAGAIN. Free with
 * debuginfod_free (NULL is fine), which may take another second.
 */
int debuginfod_new(struct debuginfod **out, uint64_t silence_ns);
void debuginfod_free(struct debuginfod *d);

/*
 * A debug_fetch_fn with a struct debuginfod for its ctx. -EAGAIN: it is being got, or will be;
 * -ENOENT: there is none; -ETIME: the servers do not answer, or no file is waited for any more.
 */
int debuginfod_fetch(void *ctx, const uint8_t *build_id, size_t len);

/* How many files are still to be got. */
size_t debuginfod_left(struct debuginfod *d);

/*
 * From now on debuginfod_fetch() waits for its file, until CLOCK_MONOTONIC is at deadline_ns; then
 * no more are got. May be called again with another one.
 */
void debuginfod_end_at(struct debuginfod *d, uint64_t deadline_ns);

struct debuginfod_stats {
	size_t asked_cnt; /* files; the sum of the others, once the end has come */
	size_t found_cnt, missing_cnt;
	size_t unanswered_cnt; /* or not asked for, since others were not answered */
};

void debuginfod_get_stats(struct debuginfod *d, struct debuginfod_stats *out);

#endif
