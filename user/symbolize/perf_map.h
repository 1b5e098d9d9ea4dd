/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Perf maps, a line for each function that a JIT has made (tools/perf/Documentation/jit-interface.txt):
 *
 *	START SIZE NAME
 *	7f2b3c001a40 1c0 LazyCompile:*render /srv/app/page.js:12
 *
 * START and SIZE are hexadecimal; NAME goes to the end of the line. Written while it is read, and
 * by anybody: what is no such line is skipped, and a line is one when its newline is there.
 */
#ifndef VP_PERF_MAP_H
#define VP_PERF_MAP_H

#include "jit_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is the beginning of a file. */
struct perf_map {
	uint64_t bad_cnt; /* lines skipped */
	char *line;	  /* the beginning of one whose end was not seen yet */
	size_t line_len;
};

/* Takes the bytes that follow those it was given before. 0 or -ENOMEM. */
int perf_map_feed(struct perf_map *m, struct jit_table *t, const char *bytes, size_t cnt);

/* The beginning of a file follows. bad_cnt stays. */
void perf_map_restart(struct perf_map *m);

void perf_map_free(struct perf_map *m);

#endif
