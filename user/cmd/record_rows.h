/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* vmaprof record: unwind rows that are there before the first sample. */
#ifndef VP_RECORD_ROWS_H
#define VP_RECORD_ROWS_H

#include "../kernel/session.h"
#include "../model/row_start.h"

/*
 * Loads, within a budget of time, the rows of the vdso and of the files of all processes that the
 * walk has found and of the command that is about to start (NULL: none). Called between the walk
 * and vp_session_start(). 0 or negative errno with e filled.
 */
int vp_record_first_rows(struct vp_recording *r, struct vp_session *s, const char *command,
			 struct vp_row_start *out, struct vp_err *e);

#endif
