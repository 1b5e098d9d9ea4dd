/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two maps that the unwinder finds rows through, `row_arrays` and `row_files`
 * (kern/vp_maps.bpf.h), as user space writes them. What is in them when is row_store.c's.
 */
#ifndef VP_ROW_MAPS_H
#define VP_ROW_MAPS_H

#include "../util/err.h"
#include "rows.h"

#include <stddef.h>
#include <stdint.h>

struct vp_row_maps {
	int arrays_fd, files_fd;
	int empty_fd;		   /* an array without rows: stands where one was taken back */
	uint32_t cnt;		   /* elements of both */
	struct vp_row_file *files; /* cnt of them, shared with the kernel side */
	size_t mapped_bytes;
};

/* A file's rows on the way to their place. */
struct vp_row_slot {
	uint32_t file_id;
	int fd; /* of the array */
	struct vp_rows_desc desc;
};

/* Both descriptors are duplicated. 0 or negative errno with e filled. */
int vp_row_maps_open(struct vp_row_maps *m, int arrays_fd, int files_fd, struct vp_err *e);

/* What was put stays: it goes with row_arrays. */
void vp_row_maps_close(struct vp_row_maps *m);

/* What the kernel holds for an array of that many elements. */
uint64_t vp_row_array_bytes(uint32_t elem_cnt);

/* A descriptor of a new array with the rows in it, or negative errno. */
int vp_row_array_new(const struct vp_rows *rows, const struct vp_rows_desc *desc);

/*
 * Puts the arrays in place and tells the kernel side of them; they count as used at now_ns
 * (CLOCK_MONOTONIC). Descriptors stay the caller's. Waits for an RCU grace period (10 to 20 ms),
 * one for up to 64 of them; a file's first rows are in use before it is over. Returns how many,
 * from the first, are in place.
 */
size_t vp_row_maps_put(struct vp_row_maps *m, const struct vp_row_slot *slots, size_t cnt,
		       uint64_t now_ns);

/* VP_ROW_FILE_UNKNOWN or _NONE: from here on nothing is looked up in its array. */
void vp_row_maps_set_state(struct vp_row_maps *m, uint32_t file_id, uint32_t state);

/* Lets go of the arrays of files whose state is no longer READY; waits as vp_row_maps_put(). */
void vp_row_maps_drop(struct vp_row_maps *m, const uint32_t *file_ids, size_t cnt);

#endif
