/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* All records in the order of the ring, kept to be looked at. */
#ifndef RECORD_LOG_H
#define RECORD_LOG_H

#include "model/decode.h"

#include <pthread.h>

struct log_item {
	union {
		struct vp_rec_hdr hdr; /* every kind begins with it */
		struct vp_rec_mmap2 mmap2;
		struct vp_rec_sample sample;
		struct vp_rec_exec exec;
		struct vp_rec_fork fork;
		struct vp_rec_exit exit;
		struct vp_rec_inherit inherit;
		struct vp_rec_user_stack user_stack;
		struct vp_rec_comm comm;
	};
	char *name;	       /* MMAP2: padded as the record says */
	uint64_t *kern;	       /* SAMPLE */
	struct vp_frame *user; /* SAMPLE, USER_STACK */
};

struct record_log {
	pthread_mutex_t lock;
	struct log_item *item;
	size_t cnt, cap;
	size_t sample_cnt;
	pthread_mutex_t gate; /* whoever holds it keeps the reader from reading samples */
	uint32_t only_tgid;   /* samples of others are dropped; 0: all are kept */
};

extern const struct vp_record_ops record_log_ops;

void record_log_init(struct record_log *l);
void record_log_clear(struct record_log *l);

size_t record_log_samples(struct record_log *l);

/* Records of a kind. */
size_t record_log_count(const struct record_log *l, uint16_t kind);

/* The i-th record of a kind, or NULL. */
const struct log_item *record_log_nth(const struct record_log *l, uint16_t kind, size_t i);

/* The address that stands for a frame: a return address is looked up one byte before. */
static inline uint64_t log_frame_at(const struct vp_frame *f)
{
	return f->flags & VP_FRAME_F_LEAF ? f->pc : f->pc - 1;
}

/*
 * The property of the stream: each FILE or VDSO frame has a mapping record of the same life
 * (its own or inherited) before it that says the same file_id and offset. Returns the number
 * of frames without one and describes the first in text.
 */
size_t record_log_unannounced(const struct record_log *l, char *text, size_t size,
			      size_t *frame_cnt);

#endif
