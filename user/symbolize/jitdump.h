/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jitdump files (tools/perf/Documentation/jitdump-specification.txt): a header, then a record for each
 * function that a JIT has made or moved, with its code, which is not read here. Line numbers and
 * unwinding information are passed over.
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

/* All zero is the beginning of a file. */
struct jitdump {
	uint64_t bad_cnt; /* records skipped */
	uint32_t pid;	  /* the header's: in whatever namespace the process has written it */
	bool begun;	  /* the header has been read */
	bool ended;	  /* closed, or damaged: nothing more is to be had */
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

#endif
