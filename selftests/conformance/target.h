/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process that stands still, to be looked at. It ends with the case. */
#ifndef TARGET_H
#define TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum target_kind {
	TARGET_PLAIN,	     /* one thread */
	TARGET_THREADS,	     /* two more: `plain` shares the leader's files, `own_files` does not */
	TARGET_ZOMBIE_LEADER /* three, and the leader has exited */
};

struct target {
	pid_t pid;
	pid_t plain, own_files; /* tids */
};

/* Ends the case if it cannot be had. */
struct target target_start(enum target_kind kind);

/* Kills it and waits until it is gone. */
void target_end(const struct target *t);

/* The ranges that /proc/PID/maps shows, but for [vsyscall]: start and end in turn. How many ranges. */
size_t target_ranges(pid_t pid, uint64_t (*range)[2], size_t max);

#endif
