/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the cases of iter/task_vma and their program: what was seen. */
#ifndef TASK_VMA_H
#define TASK_VMA_H

/* One call of the program with a mapping. */
struct seen {
	unsigned long long start, end;
	unsigned int tgid, pid;
	unsigned long long other_work; /* of walk_vmas.other_work, at that time */
};

#define SEEN_MAX 131072

#endif
