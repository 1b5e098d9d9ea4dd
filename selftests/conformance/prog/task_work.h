/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the cases of bpf_task_work and their programs. */
#ifndef TASK_WORK_H
#define TASK_WORK_H

/* Elements of the map whose values have the work in them: few, so that a leak is seen. */
#define WORKS_MAX 8

/* find_vma calls in a callback. */
#define FINDS 4

/* How often each answer was given. */
struct answers {
	unsigned long long ok, busy, other;
	long long last;
};

/* What a program is asked to do besides scheduling once. */
#define TW_TWICE  1 /* schedule the same value again at once */
#define TW_DELETE 2 /* delete the value at once */
#define TW_SIGNAL 4 /* wake the thread for it, if it sleeps */

#endif
