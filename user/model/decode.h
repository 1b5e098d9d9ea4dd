/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From bytes of the ring to checked records: sizes, kinds, tails and strings are validated
 * here, once; nobody behind this has to.
 */
#ifndef VP_DECODE_H
#define VP_DECODE_H

#include "../../include/vp_record.h"

#include <stddef.h>
#include <stdint.h>

/* A whole mapping record with its name, as every consumer sees it. */
struct vp_mmap2 {
	struct vp_rec_mmap2 rec;
	char name[VP_PATH_MAX +
		  8]; /* right behind rec; NUL-terminated, padded as name_bytes says */
};

/* Any member may be NULL. A negative return ends decoding and is passed on. */
struct vp_record_ops {
	int (*mmap2)(void *ctx, const struct vp_mmap2 *m);
	int (*sample)(void *ctx, const struct vp_rec_sample *s, const uint64_t *kern,
		      const struct vp_frame *user);
	int (*exec)(void *ctx, const struct vp_rec_exec *r);
	int (*fork)(void *ctx, const struct vp_rec_fork *r);
	int (*exit)(void *ctx, const struct vp_rec_exit *r);
	int (*inherit)(void *ctx, const struct vp_rec_inherit *r);
	int (*comm)(void *ctx, const struct vp_rec_comm *r);
	/* the user part of deferred samples: see joiner.h */
	int (*user_stack)(void *ctx, const struct vp_rec_user_stack *r,
			  const struct vp_frame *user);
};

struct vp_decoder {
	const struct vp_record_ops *ops;
	void *ctx;
	uint64_t unknown_cnt; /* records of a kind this program does not know */
	uint64_t bad_cnt;     /* records that contradict themselves */
};

/*
 * One record of `size` bytes. Names in parts are put together. 0, or what the op returned; bad and
 * unknown records are counted, not errors.
 */
int vp_decode(struct vp_decoder *d, const void *data, size_t size);

/* Gives a mapping another name, cut at VP_PATH_MAX. */
void vp_mmap2_set_name(struct vp_mmap2 *m, const char *name);

#endif
