/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the cases of bpf_iter_task_vma in a program and their programs: what came of a walk. */
#ifndef VMA_ITER_H
#define VMA_ITER_H

struct vma_iter_result {
	/* how often _new gave each answer */
	unsigned long long ok, busy, unsupported, other;
	long long last;		       /* the last answer */
	unsigned long long cnt;	       /* mappings of the last walk, at most MAPPINGS_MAX */
	unsigned long long start, end; /* of its first; 0: none */
};

#define MAPPINGS_MAX 4096

#endif
