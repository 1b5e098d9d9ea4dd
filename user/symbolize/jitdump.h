/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jitdump files (tools/perf/Documentation/jitdump-specification.txt): a header, then a record for each
 * function that a JIT has made or moved, with its code, which is not read here. A function's lines
 * come in a record of their own right before it, and are taken if the table keeps lines. Unwinding
 * information is passed over.
 *
 * Like a perf map it is written while it is read: a record that is not there as a whole is left for
 * the next time.
 */
#ifndef VP_JITDUMP_H
#define VP_JITDUMP_H

#include "jit_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The record of lines that is being read, then those lines until their code comes. */
struct jitdump_lines {
	uint64_t code_addr;
	uint64_t left; /* lines that follow in the record */
	uint64_t end;  /* of the record, in the file; 0: none is being read */
	struct jit_lines lines;
};

/* All zero is the beginning of a file. */
struct jitdump {
	uint64_t bad_cnt;     /* records skipped */
	uint32_t pid;	      /* the header's: in whatever namespace the process has written it */
	bool lines_are_exact; /* an address of a line has shown it: see jitdump.c */
	bool begun;	      /* the header has been read */
	bool ended;	      /* closed, or damaged: nothing more is to be had */
	struct jitdump_lines debug;
};

/* So many bytes at a file offset are enough to get on, or all there are until the file's end. */
#define JITDUMP_WINDOW_BYTES 65536

/*
 * Takes what the file has at `offset`, `cnt` bytes of it: at first those from 0 on, then those from
 * *next on, where the first record begins that has not been taken; == offset: it is not there yet.
 * size is the file's. 0; -ENOEXEC: this is no jitdump of this machine's byte order and a version that
 * is known; -ENOMEM.
 */
int jitdump_feed(struct jitdump *d, struct jit_table *t, const void *window, size_t cnt,
		 uint64_t offset, uint64_t size, uint64_t *next);

/* The beginning of a file follows. bad_cnt stays. */
void jitdump_restart(struct jitdump *d);

void jitdump_free(struct jitdump *d);

#endif
