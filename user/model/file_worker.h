/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The thread that opens mapped files, so that the reader never does. */
#ifndef VP_FILE_WORKER_H
#define VP_FILE_WORKER_H

#include "../symbolize/symbolizer.h"

struct vp_file_worker;

/* s is borrowed. 0 or negative errno with e filled. */
int vp_file_worker_start(struct vp_file_worker **out, struct vp_symbolizer *s, struct vp_err *e);

/* Has f read into s as file_id, soon; f's name is copied. 0 or -ENOMEM. */
int vp_file_worker_request(struct vp_file_worker *w, uint32_t file_id,
			   const struct vp_mapped_file *f);

/* Waits until all that was requested is done. */
void vp_file_worker_wait(struct vp_file_worker *w);

/* Ends the thread after the file it is reading; NULL is fine. */
void vp_file_worker_stop(struct vp_file_worker *w);

#endif
