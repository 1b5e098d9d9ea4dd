/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the cases of bpf_find_vma and the programs that call it: what to call, and what came of it. */
#ifndef OPS_H
#define OPS_H

#define OPS_MAX 8

enum op_kind {
	OP_FIND_VMA,	 /* of the current task */
	OP_FIND_FOREIGN, /* of its parent */
	OP_FIND_NESTED,	 /* from the callback of a first one */
	OP_BUILD_IDS,	 /* a user stack with build ids */
	OP_KIND_CNT,
};

struct op {
	/* in */
	unsigned int kind;
	unsigned int unused;
	unsigned long long addr, flags;
	/* out: how often each answer was given */
	unsigned long long ok, busy, noent, inval, other;
	unsigned long long called;	 /* callbacks */
	unsigned long long start, end;	 /* of the mapping that was found last */
	unsigned long long by_ip, by_id; /* OP_BUILD_IDS: frames with an address, with a build id */
	long long last;			 /* the last answer */
	long long last_inner;		 /* OP_FIND_NESTED: of the inner call */
};

#endif
