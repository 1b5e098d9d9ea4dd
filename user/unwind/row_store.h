/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The unwind rows that are in the kernel: one copy per file, however many processes map it,
 * within a limit of bytes, the least recently used ones leaving first, and none that is idle.
 *
 * A file whose rows were freed, did not fit or could not be opened may be asked for again: the
 * kernel side marks frames in it (VP_FRAME_F_NO_ROWS). One that has none is not marked.
 *
 * All functions may be called by several threads at once.
 */
#ifndef VP_ROW_STORE_H
#define VP_ROW_STORE_H

#include "../symbolize/symbolizer.h"
#include "../util/err.h"
#include "rows.h"

#include <stdbool.h>
#include <stdint.h>

struct vp_row_store;

struct vp_row_store_opts {
	int arrays_fd, files_fd; /* `row_arrays` and `row_files` of kern/vp_maps.bpf.h */
	uint64_t max_bytes;	 /* as the kernel holds them */
	uint64_t idle_ns;	 /* freed when not looked up for so long; told in steps of 1 s */
};

/*
 * The descriptors are duplicated. Rows stay in the maps when the store is freed (NULL is fine)
 * and go with them. 0 or negative errno with e filled.
 */
int vp_row_store_new(struct vp_row_store **out, const struct vp_row_store_opts *o,
		     struct vp_err *e);
void vp_row_store_free(struct vp_row_store *s);

/* What became of a file: an enum vp_rows_reason, or one of these. */
#define VP_ROW_CANNOT_OPEN (VP_ROWS_TOO_LARGE + 1) /* gone, or not allowed */
#define VP_ROW_OTHER_FILE  (VP_ROWS_TOO_LARGE + 2) /* what the name leads to is not what is mapped */
#define VP_ROW_OVER_LIMIT  (VP_ROWS_TOO_LARGE + 3) /* takes more than max_bytes */
#define VP_ROW_NO_ROOM	   (VP_ROWS_TOO_LARGE + 4) /* all rows in the kernel are in use */
#define VP_ROW_NO_MEMORY   (VP_ROWS_TOO_LARGE + 5) /* ours, or the kernel's */
#define VP_ROW_FREED	   (VP_ROWS_TOO_LARGE + 6) /* had rows, but was idle or made room */
#define VP_ROW_NOT_ASKED   (VP_ROWS_TOO_LARGE + 7) /* or not done yet */
#define VP_ROW_RESULT_CNT  (VP_ROWS_TOO_LARGE + 8)

/* A short phrase for a person. Static. */
const char *vp_row_result_text(int result);

/* Whether loading file_id now would do anything: it has no rows, may have, and nobody is at it. */
bool vp_row_store_wants(struct vp_row_store *s, uint32_t file_id);

/*
 * Opens the file, compiles its rows and puts them into the kernel, unless it has them or another
 * thread is at it. Threads that come at once share the wait for the kernel's grace period: one
 * stays until the rows of all are in place, the others return before.
 */
void vp_row_store_load(struct vp_row_store *s, uint32_t file_id, const struct vp_mapped_file *f);

/* The same for the vdso, [0]. It is never freed. */
void vp_row_store_load_vdso(struct vp_row_store *s);

/* Frees what is idle at now_ns (CLOCK_MONOTONIC). */
void vp_row_store_trim(struct vp_row_store *s, uint64_t now_ns);

int vp_row_store_result(struct vp_row_store *s, uint32_t file_id);

struct vp_row_store_stats {
	uint64_t file_cnt[VP_ROW_RESULT_CNT]; /* by what became of them; [VP_ROWS_OK]: loaded */
	uint64_t bytes, peak_bytes;	      /* in the kernel */
	uint64_t row_cnt;		      /* in the kernel */
	uint64_t load_cnt;		      /* rows put into the kernel, again and again */
	uint64_t load_ns, max_load_ns;	      /* … from the call until they were in place: sum */
	uint64_t idle_cnt;		      /* times a file was freed as idle */
	uint64_t evicted_cnt;		      /* … to make room */
	uint64_t refused_cnt;		      /* times that a file found no room */
	uint64_t bad_fde_cnt;		      /* damaged FDEs in the files loaded */
};

void vp_row_store_get_stats(struct vp_row_store *s, struct vp_row_store_stats *out);

/*
 * Calls fn for each file whose last attempt failed, with its name (borrowed). fn must not call
 * the store.
 */
void vp_row_store_each_failed(struct vp_row_store *s,
			      void (*fn)(void *ctx, const char *name, int result), void *ctx);

#endif
