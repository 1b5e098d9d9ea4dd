/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deferred samples made whole: stands between the decoder and a consumer of records, which sees
 * samples with both parts, as if the user stack had been taken in the interrupt.
 *
 *     decoder → vp_joiner_ops (ctx: the joiner) → inner ops (ctx: inner_ctx)
 *
 * What is not deferred is passed on at once. A deferred sample is kept until one of these:
 *
 *     the user part with its thread, cookie and life comes    that stack and its VP_END_*
 *     its thread or process ends, its process execs, or its
 *     thread goes on without it: another cookie or life       no user frames, VP_END_EXITED
 *     vp_joiner_flush(), or max_bytes are used up             no user frames, VP_END_IN_KERNEL
 *
 * Exit and exec records are passed on after the samples that they end. The last user part of a
 * thread is kept for samples that come after it.
 *
 * A sample is passed on with the interrupt's time, later than records of other threads that are
 * younger: consumers must not rely on the order of ts_ns, which records of several CPUs do not
 * have anyway. Samples of one thread and cookie keep their order. The mappings of its frames come
 * before a sample, as they came before its user part.
 */
#ifndef VP_JOINER_H
#define VP_JOINER_H

#include "../util/list.h"
#include "decode.h"

#include <stdatomic.h>
#include <stdint.h>

#define VP_JOINER_CLASS_CNT 9

/*
 * All zero but inner, inner_ctx and max_bytes is an empty one. Used by the reader thread; the
 * counters are for others when that has ended.
 */
struct vp_joiner {
	const struct vp_record_ops *inner; /* borrowed; its user_stack is never called */
	void *inner_ctx;
	uint64_t max_bytes; /* for all that is kept; 0: nothing is, and no sample is joined */

	uint64_t joined_cnt;	/* samples passed on with their user part */
	uint64_t exited_cnt;	/* … as VP_END_EXITED */
	uint64_t in_kernel_cnt; /* … as VP_END_IN_KERNEL at the end */
	uint64_t full_cnt;	/* … as VP_END_IN_KERNEL before it: max_bytes */
	uint64_t forgotten_cnt; /* last user parts not kept: max_bytes */
	uint64_t bytes;		/* in use, never above max_bytes */

	/* the joiner's own */
	atomic_uint_fast64_t waiting_cnt;
	struct vp_joiner_bucket *buckets;
	size_t bucket_cnt; /* 0 or a power of two */
	size_t thread_cnt;
	struct vp_list samples; /* that wait, the oldest first */
	struct vp_list stacks;	/* threads with room for a user part, longest not seen first */
	uint64_t now;		/* counts what is seen */
	struct vp_joiner_block *unused[VP_JOINER_CLASS_CNT]; /* by size */
};

/* ctx is the joiner. They return what the inner op did, or -ENOMEM. */
extern const struct vp_record_ops vp_joiner_ops;

/*
 * The end of a recording: passes on all that waits, in the order of arrival. 0 or what the inner
 * op returned; then the rest still waits.
 */
int vp_joiner_flush(struct vp_joiner *j);

/* How many samples wait for their user part. For any thread. */
uint64_t vp_joiner_waiting(const struct vp_joiner *j);

/* What waits is dropped. The counters stay. */
void vp_joiner_free(struct vp_joiner *j);

#endif
