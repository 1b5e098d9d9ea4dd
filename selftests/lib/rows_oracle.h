/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unwind rows against libdw, which reads the same sections by code of its own. Both are asked for
 * every row with the same made-up registers and memory: compared is where they find what, not how
 * they put it.
 */
#ifndef ROWS_ORACLE_H
#define ROWS_ORACLE_H

#include "unwind/rows.h"

#include <stdio.h>

struct rows_oracle_counts {
	uint64_t rows;	      /* of ours */
	uint64_t pieces;      /* of ours, cut where libdw's begin; each was compared */
	uint64_t lost;	      /* registers that libdw finds and rows cannot say */
	uint64_t none;	      /* pieces without a rule that libdw has and rows cannot say */
	uint64_t differences; /* everything else */
};

/*
 * Adds to *c; the first few differences of the file are described on report. 0; -1: libdw cannot
 * read the file.
 */
int rows_oracle_compare(const struct vp_rows *rows, int fd, const char *name, FILE *report,
			struct rows_oracle_counts *c);

#endif
