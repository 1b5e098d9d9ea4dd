/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records that no kernel sent, given to a consumer's ops. */
#ifndef MADE_RECORDS_H
#define MADE_RECORDS_H

#include "model/decode.h"

struct made {
	const struct vp_record_ops *ops;
	void *ctx;
	/* of the next record */
	struct vp_proc_id proc;
	uint32_t tid; /* 0: the leader's */
	uint64_t ts_ns;
	uint16_t map_flags; /* VP_MMAP2_F_* */
	const char *comm;
};

/* Above any tgid that exists: nothing real is found for it. */
#define MADE_TGID 4200000

/* As MADE_TGID's first image, "made", at 1 s. */
void made_init(struct made *m, const struct vp_record_ops *ops, void *ctx);

/* A mapping of file_id (0: of none) with the identity that stat() gives `name`, if it is there. */
int made_map(struct made *m, uint64_t start, uint64_t end, uint64_t pgoff, uint32_t file_id,
	     uint32_t verdict, const char *name);

struct vp_frame made_file_frame(uint32_t file_id, uint64_t pc, uint64_t offset);
struct vp_frame made_frame(uint32_t verdict, uint64_t pc);

/* The first frame is made the leaf, in addition to what flags they have. */
int made_sample(struct made *m, const uint64_t *kern, size_t kern_cnt, const struct vp_frame *user,
		size_t user_cnt, uint16_t end);

/* A sample of kernel frames whose user part follows. */
int made_deferred(struct made *m, const uint64_t *kern, size_t kern_cnt, uint64_t cookie);

/* The first frame is made the leaf, in addition to what flags they have. */
int made_user_stack(struct made *m, const struct vp_frame *user, size_t user_cnt, uint16_t end,
		    uint64_t cookie);

/* m->proc is the new life. */
int made_exec(struct made *m);
int made_exit(struct made *m);

int made_inherit(struct made *m, struct vp_proc_id proc, struct vp_proc_id from);

#endif
