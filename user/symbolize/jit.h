/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the JITs of processes tell of their code: jitdump files and perf maps. Read while the process
 * runs, again as they grow, and kept when it is gone; each life of a process has its own.
 */
#ifndef VP_JIT_H
#define VP_JIT_H

#include "../../include/vp_record.h"
#include "../util/err.h"
#include "jit_table.h"
#include "symbolizer.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vp_jit;

/* 0: the default. */
struct vp_jit_opts {
	uint64_t process_bytes; /* of names and ranges of one life; 64 MiB */
	uint64_t max_bytes;	/* of all; 256 MiB. Beyond it the life not asked for longest goes */
	uint64_t read_bytes;	/* so much is read of one life's files in all; 512 MiB */
	bool lines;		/* files and lines that jitdumps tell are kept, too */
};

/* NULL opts: defaults. -ENOMEM. Free with vp_jit_free (NULL is fine). */
int vp_jit_new(struct vp_jit **out, const struct vp_jit_opts *opts);
void vp_jit_free(struct vp_jit *j);

/*
 * Reads what is new in the life's files, and in those of the process that it is a forked copy of;
 * cheap if nothing is. dump: a jitdump that it maps, or NULL.
 * Thread-safe against itself and the rest; a life that another thread is reading is read once more
 * by that one. 0, also if there is nothing to read; -ENOMEM.
 */
int vp_jit_read(struct vp_jit *j, const struct vp_proc_id *life, const struct vp_mapped_file *dump);

/*
 * The life began as a copy of `from`, with its code, so what its own files do not name has the name
 * that the other's give it. Where nobody says so it is found out, as long as both are there. 0 or
 * -ENOMEM.
 */
int vp_jit_inherit(struct vp_jit *j, const struct vp_proc_id *life, const struct vp_proc_id *from);

struct vp_jit_symbol {
	char name[VP_JIT_NAME_BYTES];
	char file[PATH_MAX];
	uint32_t line;	    /* 0: file and line are not known */
	uint64_t offset;    /* of the address in its function, bytes */
	const char *source; /* "jitdump" or "perf_map" */
};

/* What is at a run-time address: 0, or -ENOENT. */
int vp_jit_look_up(struct vp_jit *j, const struct vp_proc_id *life, uint64_t addr,
		   struct vp_jit_symbol *out);

struct vp_jit_stats {
	uint64_t life_cnt;    /* that have told something */
	uint64_t bytes;	      /* of names and ranges now */
	uint64_t bad_cnt;     /* lines and records that were none */
	uint64_t dropped_cnt; /* names without room: process_bytes */
	uint64_t cut_cnt;     /* files not read to their end: read_bytes */
	uint64_t evicted_cnt; /* lives forgotten: max_bytes */
};

void vp_jit_get_stats(struct vp_jit *j, struct vp_jit_stats *out);

#endif
